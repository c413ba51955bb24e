//! The thread that evaluates alarms.

use core::time::Duration;
use std::sync::{Arc, Weak};
use std::thread::{self, Thread};
use taktwerk_net::clock;
use taktwerk_server::AddressSpace;
use taktwerk_server::space::Wake;

/// Interval for evaluating the inputs of alarms.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval for evaluating times if no alarm has an input, as in a server that has only the alarms of its certificates.
const TIMES_EVERY: Duration = Duration::from_secs(1);

/// Wakes the thread.
struct Waker(Thread);

impl Wake for Waker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Starts the thread that evaluates the conditions of an address space, if it does not run yet. It ends with the address space.
pub(crate) fn watch(space: &Arc<AddressSpace>) {
    let alarms = space.alarms_or_new();
    if !alarms.claim_driver() {
        alarms.wake_driver();
        return;
    }
    let watched = Arc::downgrade(space);
    let thread = thread::Builder::new().name("taktwerk-alarms".to_owned()).spawn(move || look(&watched));
    match thread {
        Ok(thread) => alarms.set_waker(Box::new(Waker(thread.thread().clone()))),
        Err(error) => tracing::error!(
            %error,
            "cannot start the thread of alarms: alarms that watch variables are not evaluated"
        ),
    }
}

fn look(space: &Weak<AddressSpace>) {
    loop {
        let (next, every) = {
            let Some(space) = space.upgrade() else { return };
            let next = space.poll_alarms(clock::wall());
            let watches = space.alarms().is_some_and(|alarms| alarms.watches_variables());
            (next, if watches { LOOK_EVERY } else { TIMES_EVERY })
        };
        let until = next.map_or(i64::MAX, |next| next.ticks().saturating_sub(clock::wall().ticks()));
        // Wake up earlier if something is due earlier.
        let micros = u64::try_from(until / 10).unwrap_or(0).max(1_000);
        thread::park_timeout(every.min(Duration::from_micros(micros)));
    }
}
