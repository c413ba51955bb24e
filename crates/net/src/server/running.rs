//! A running server.

use super::mailbox::{Mail, Mailbox};
use super::{ServerOptions, Threads};
use crate::clock::{monotonic, wall};
use crate::entropy::OsEntropy;
use crate::error::StartError;
use crate::socket::Listener;
use crate::sources::SourceThreads;
use crate::wake::Waker;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_schema::ServerState;
use taktwerk_server::space::Wake;
use taktwerk_server::{ServerShared, Shard};

/// Connections that the kernel queues until they are accepted; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// How often a thread that waits for another one yields before it sleeps.
const PAUSE_YIELDS: u32 = 8;
/// How long it sleeps after that: about the time the kernel needs to schedule the other thread.
const PAUSE: Duration = Duration::from_micros(50);

/// A server whose shards run on their own threads. Dropping it closes all connections at once. Use
/// [`RunningServer::stop`] for an orderly shutdown.
pub struct RunningServer {
    threads: Threads<Shard>,
    shared: Arc<ServerShared>,
    _sources: RunningSources,
}

/// Stops a server from any thread, also while the thread that owns the server is blocked.
#[derive(Clone)]
pub struct Stopper {
    mailboxes: Arc<[Arc<Mailbox<Shard>>]>,
    shared: Arc<ServerShared>,
}

impl core::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stopper").finish_non_exhaustive()
    }
}

impl Stopper {
    /// As [`RunningServer::stop`], but does not wait for the end.
    pub fn stop(&self, grace: Duration) {
        // Before any shard ends its sessions, so that the clients of all shards are notified.
        self.shared.change_state(ServerState::SHUTDOWN, wall());
        let at = monotonic() + grace;
        self.mailboxes.iter().for_each(|mailbox| mailbox.post(Mail::Stop(at)));
    }

    /// Number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.mailboxes.iter().map(|mailbox| mailbox.connections()).sum()
    }
}

/// The application's sources, which are polled as long as the server runs.
struct RunningSources(Arc<ServerShared>);

impl Drop for RunningSources {
    fn drop(&mut self) {
        self.0.space().sources().stop();
    }
}

impl core::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RunningServer").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

impl RunningServer {
    /// Listens on the addresses and starts a thread for each shard.
    ///
    /// # Errors
    /// An address cannot be listened on, or a thread cannot be started.
    pub fn start(
        shared: &Arc<ServerShared>,
        addresses: &[SocketAddr],
        options: ServerOptions,
    ) -> Result<Self, StartError> {
        let listeners = addresses
            .iter()
            .map(|address| Listener::bind(*address, BACKLOG))
            .collect::<Result<Vec<_>, _>>()?;
        Self::start_on(shared, listeners, options)
    }

    /// Like [`Self::start`], with existing listeners. Their addresses can then be used in the configuration.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start_on(
        shared: &Arc<ServerShared>,
        listeners: Vec<Listener>,
        options: ServerOptions,
    ) -> Result<Self, StartError> {
        let sources = Arc::new(SourceThreads::new(options.source_threads_max));
        let shards = (0..shared.shards())
            .map(|shard| Shard::new(shard, Arc::clone(shared), Box::new(OsEntropy)))
            .collect();
        shared.space().set_pause(pause);
        let threads = Threads::start(shards, listeners, options, |shard, waker| {
            shared.space().set_waker(shard, Box::new(waker.clone()));
        })?;
        shared.space().sources().start(sources);
        let _sources = RunningSources(Arc::clone(shared));
        Ok(Self { threads, shared: Arc::clone(shared), _sources })
    }

    /// The addresses the server listens on, with the actual ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.threads.addresses()
    }

    /// The state that the shards share: configuration, address space, counters.
    #[must_use]
    pub fn shared(&self) -> &Arc<ServerShared> {
        &self.shared
    }

    /// Number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.threads.connections()
    }

    /// Stops listening and ends all sessions. Closes connections that have not ended after `grace`.
    pub fn stop(mut self, grace: Duration) {
        self.stopper().stop(grace);
        self.threads.join();
    }

    /// A handle that stops the server from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { mailboxes: Arc::clone(&self.threads.mailboxes), shared: Arc::clone(&self.shared) }
    }

    /// Whether the server has ended by itself: epoll failed, or a shard panicked. The log says which. Start a new
    /// server then.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.threads.has_ended()
    }

    /// Waits until the server ends. Without [`Self::stop`] that happens only if epoll fails or a shard panics.
    pub fn join(mut self) {
        self.threads.join();
    }
}

/// Yields the CPU while waiting for another thread. A preempted thread with lower priority runs only while this one
/// sleeps.
fn pause(count: u32) {
    if count < PAUSE_YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(PAUSE);
    }
}

impl Wake for Waker {
    fn wake(&self) {
        Self::wake(self);
    }
}
