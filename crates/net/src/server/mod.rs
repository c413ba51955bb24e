//! The server's threads: one per shard, each with its own epoll.
//!
//! - `turn`: the event loop; `connection`: sockets and partial chunks; `accept`: listening and load balancing;
//! - `coalesced`: connections whose wake-ups are coalesced;
//! - `mailbox`: messages from other threads; `effects`: slow work on other threads;
//! - `core`: the interface to the state machine, and `shard`: its implementation; [`options`]: busy polling, pinning;
//! - [`audit`]: the receiver of audit records;
//! - `turn_times`: how long turns take, if measured;
//! - `running`: a whole server.

mod accept;
pub mod audit;
mod coalesced;
mod connection;
mod core;
mod effects;
mod mailbox;
pub mod options;
mod running;
mod shard;
#[cfg(test)]
mod tests;
mod turn;
mod turn_times;

pub use audit::AuditSink;
pub use options::ServerOptions;
pub use running::{RunningServer, Stopper};
pub use turn_times::{TurnTimes, Turns};

use crate::affinity::pin_current_thread;
use crate::clock::monotonic;
use crate::error::StartError;
use crate::executor::Executor;
use crate::socket::Listener;
use crate::wake::Waker;
use ::core::net::SocketAddr;
use ::core::num::NonZeroU64;
use ::core::time::Duration;
use accept::Acceptor;
use core::Core;
use effects::{Effects, Pools};
use mailbox::{Mail, Mailbox};
use rustix::thread::set_current_timer_slack;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use turn::{Loop, ShardSetup};

/// Stack size of a shard's thread; only touched pages take memory.
const STACK_LEN: usize = 2 << 20;

/// Running shards.
pub(crate) struct Threads<C: Core> {
    mailboxes: Arc<[Arc<Mailbox<C>>]>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    addresses: Vec<SocketAddr>,
}

impl<C: Core> Threads<C> {
    /// Starts one thread per shard; the first one accepts connections for all. `prepare` is called with each shard's
    /// number and waker before any thread runs.
    pub(crate) fn start(
        cores: Vec<C>,
        listeners: Vec<Listener>,
        options: ServerOptions,
        mut prepare: impl FnMut(usize, &Waker),
    ) -> Result<Self, StartError> {
        if listeners.is_empty() {
            return Err(StartError::NoAddress);
        }
        let addresses = listeners.iter().map(Listener::address).collect();
        let options = Arc::new(options);
        let pools = Pools::new(&options);
        let executor = Arc::new(Executor::new());
        let mailboxes: Arc<[Arc<Mailbox<C>>]> = (0..cores.len())
            .map(|shard| Mailbox::new().map_err(|source| StartError::Thread { shard, source }))
            .collect::<Result<_, _>>()?;
        let mut acceptor = Some(Acceptor::new(listeners));
        let mut this =
            Self { mailboxes: Arc::clone(&mailboxes), threads: Vec::with_capacity(cores.len()), addresses };
        for (shard, mailbox) in mailboxes.iter().enumerate() {
            prepare(shard, mailbox.waker());
        }
        for ((shard, core), mailbox) in cores.into_iter().enumerate().zip(mailboxes.iter()) {
            let setup = ShardSetup {
                core,
                number: shard,
                options: Arc::clone(&options),
                mailboxes: Arc::clone(&mailboxes),
                acceptor: acceptor.take(),
                effects: Effects::new(Arc::clone(mailbox), pools.clone(), Arc::clone(&executor)),
            };
            match spawn(setup) {
                Ok(thread) => this.threads.push(thread),
                Err(source) => {
                    this.stop(Duration::ZERO);
                    return Err(StartError::Thread { shard, source });
                }
            }
        }
        Ok(this)
    }

    /// The addresses the server listens on, with the actual ports.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.mailboxes.iter().map(|mailbox| mailbox.connections()).sum()
    }

    /// Stops listening at once, gives connections this long to end, closes the rest, and waits for the threads.
    pub(crate) fn stop(&mut self, grace: Duration) {
        let at = monotonic() + grace;
        self.mailboxes.iter().for_each(|mailbox| mailbox.post(Mail::Stop(at)));
        self.join();
    }

    /// Waits until the threads have ended: after a stop, or if epoll fails.
    pub(crate) fn join(&mut self) {
        for thread in self.threads.drain(..) {
            if let Ok(Err(error)) = thread.join() {
                tracing::error!(%error, "a shard ended");
            }
        }
    }

    /// Whether a shard has ended, normally or not. The other shards then end, too.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

impl<C: Core> Drop for Threads<C> {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// Disables the kernel's timer slack for the calling thread: up to 50 µs of delay that saves power.
fn exact_timers() {
    if let Err(error) = set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!(%error, "timeouts keep their slack");
    }
}

/// Runs a shard until it is told to stop. If it fails or panics, the whole server ends: state after a panic cannot be
/// trusted, and a server without one of its shards would serve some clients and refuse others. The application or
/// supervisor must start the server again.
fn run<C: Core>(turn: &mut Loop<C>, mailboxes: &[Arc<Mailbox<C>>]) -> io::Result<()> {
    let result = catch_unwind(AssertUnwindSafe(|| turn.run()))
        .unwrap_or_else(|_| Err(io::Error::other("a shard panicked; the server ends")));
    if result.is_err() {
        mailboxes.iter().for_each(|mailbox| mailbox.post(Mail::Stop(monotonic())));
    }
    result
}

/// Starts a shard's thread and waits until it is pinned and set up.
fn spawn<C: Core>(setup: ShardSetup<C>) -> io::Result<JoinHandle<io::Result<()>>> {
    let (ready, wait) = mpsc::channel();
    let name = format!("taktwerk-{}", setup.number);
    let mailboxes = Arc::clone(&setup.mailboxes);
    let thread = thread::Builder::new().name(name).stack_size(STACK_LEN).spawn(move || {
        exact_timers();
        // Pin first, so that memory is allocated near the CPU.
        let cpu = setup.options.cpus.get(setup.number).copied();
        let turn = cpu.map_or(Ok(()), pin_current_thread).and_then(|()| Loop::new(setup));
        let (told, turn) = match turn {
            Ok(turn) => (Ok(()), Some(turn)),
            Err(error) => (Err(error), None),
        };
        // The other end waits for this message.
        let _ = ready.send(told);
        turn.map_or(Ok(()), |mut turn| run(&mut turn, &mailboxes))
    })?;
    match wait.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the thread ended before it began")),
    }
}
