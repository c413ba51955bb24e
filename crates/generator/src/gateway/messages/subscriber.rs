//! A plain subscriber of the broker on its own thread: the baseline for the delay of the gateway's client.

use super::payload;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use taktwerk_lab::mqtt::{Event, Fleet, Happened, Qos, Version};
use taktwerk_load::clock;
use taktwerk_load::latency::Times;

/// Interval for checking whether to end, in nanoseconds.
const LOOK: u64 = 100_000_000;

#[derive(Debug, Default)]
struct Shared {
    delays: Mutex<Times>,
    is_lost: AtomicBool,
    ends: AtomicBool,
}

/// Receives until it is dropped.
#[derive(Debug)]
pub(super) struct Subscriber(Arc<Shared>);

impl Subscriber {
    /// Connects and subscribes to all topics of the load.
    pub(super) fn start(broker: SocketAddr) -> io::Result<Self> {
        let mut fleet = Fleet::new(false)?;
        fleet.add(broker, Version::V311, &format!("tw-subscriber-{}", std::process::id()))?;
        fleet.subscribe(0, &payload::topic_filter(), Qos::AtMostOnce);
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("subscriber".to_owned()).spawn(move || {
            if receive(&mut fleet, &of_thread).is_err() {
                of_thread.is_lost.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(Self(shared))
    }

    /// Delays from the publisher to here since the last call.
    pub(super) fn take(&self) -> io::Result<Times> {
        if self.0.is_lost.load(Ordering::Relaxed) {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the plain subscriber's connection is lost",
            ));
        }
        Ok(std::mem::take(&mut *self.0.delays.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.0.ends.store(true, Ordering::Relaxed);
    }
}

fn receive(fleet: &mut Fleet, shared: &Shared) -> io::Result<()> {
    let mut ages = Vec::new();
    while !shared.ends.load(Ordering::Relaxed) {
        let mut is_lost = false;
        fleet.run_once(clock::monotonic() + LOOK, |_, what| match what {
            Happened::Event(Event::Message { payload, .. }) => {
                ages.extend(
                    payload::number(payload).and_then(|number| payload::age(number, clock::monotonic())),
                );
            }
            Happened::Event(_) => {}
            Happened::Lost | Happened::Failed(_) => is_lost = true,
        })?;
        if is_lost {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let mut delays = shared.delays.lock().unwrap_or_else(PoisonError::into_inner);
        ages.drain(..).for_each(|age| delays.record(age));
    }
    Ok(())
}
