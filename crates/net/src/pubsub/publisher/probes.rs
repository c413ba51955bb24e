//! The thread that receives discovery probes, because the timer thread must not wait for sockets.

use super::super::inlet::{self, Inlet};
use super::super::{Address, PubSubError, link};
use super::{Shared, lock};
use crate::poll::{Interest, Poller};
use crate::wake::Waker;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::thread::JoinHandle;
use taktwerk_pubsub::config::{Configuration, Connection};

/// Maximum discovery probes that wait for the timer thread.
const PROBES_MAX: usize = 256;

/// The thread that receives discovery probes.
#[derive(Debug)]
pub(super) struct Listener {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl Listener {
    pub(super) fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        let _ = self.thread.join();
    }
}

/// Starts the thread. Without it, probes are not answered.
pub(super) fn listen(configuration: &Configuration, shared: &Arc<Shared>) -> Option<Listener> {
    let publishing: Vec<(usize, Connection)> =
        probed(configuration).map(|(position, connection)| (position, connection.clone())).collect();
    if publishing.is_empty() {
        return None;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let waker = Waker::new().ok()?;
    let (told, theirs, shared) = (Arc::clone(&stop), waker.clone(), Arc::clone(shared));
    let thread = std::thread::Builder::new().name("pubsub-probes".to_owned()).spawn(move || {
        if let Err(error) = take_probes(&publishing, &theirs, &shared, &told) {
            tracing::warn!(%error, "cannot listen for discovery probes: they are not answered");
        }
    });
    Some(Listener { stop, waker, thread: thread.ok()? })
}

/// The connections on which probes may arrive.
fn probed(configuration: &Configuration) -> impl Iterator<Item = (usize, &Connection)> {
    configuration.connections.iter().enumerate().filter(|(_, connection)| {
        !connection.writer_groups.is_empty() && connection.url.starts_with("opc.udp")
    })
}

/// Whether probes arrive the same way in two configurations.
pub(super) fn listens_alike(old: &Configuration, new: &Configuration) -> bool {
    let ways = |configuration: &Configuration| {
        let ways = probed(configuration).map(|(position, connection)| {
            (
                position,
                connection.url.clone(),
                connection.network_interface.clone(),
                link::discovery_url(connection),
            )
        });
        ways.collect::<Vec<_>>()
    };
    ways(old) == ways(new)
}

fn take_probes(
    publishing: &[(usize, Connection)],
    waker: &Waker,
    shared: &Shared,
    stop: &AtomicBool,
) -> Result<(), PubSubError> {
    let fail = |error: std::io::Error| PubSubError::socket("wait for discovery probes", error);
    let mut poller = Poller::new().map_err(fail)?;
    poller.add_edge(waker.fd(), u64::MAX).map_err(fail)?;
    let mut inlets: Vec<(usize, Box<dyn Inlet>)> = Vec::new();
    for (position, connection) in publishing {
        // If data is sent to a unicast address, its port belongs to the receiver and is not listened at.
        let is_group = Address::parse(&connection.url)?.is_multicast();
        let inlet = match inlet::open_discovery(connection)? {
            Some(inlet) => inlet,
            None if is_group => inlet::open(connection)?,
            None => continue,
        };
        poller.add(inlet.fd(), inlets.len() as u64, Interest::READ).map_err(fail)?;
        inlets.push((*position, inlet));
    }
    while !stop.load(Ordering::Acquire) {
        if waker.sleep() {
            poller.wait(Some(Duration::from_secs(1))).map_err(fail)?;
        }
        waker.awake();
        for (connection, inlet) in &mut inlets {
            let more = inlet.receive(&mut |datagram| {
                let mut probes = lock(&shared.probes);
                if probes.len() < PROBES_MAX {
                    probes.push_back((*connection, datagram.to_vec()));
                    shared.has_probes.store(true, Ordering::Release);
                    shared.alarm.wake();
                }
            });
            more.map_err(fail)?;
        }
    }
    Ok(())
}
