//! How a server's threads behave.

use super::audit::{AuditSink, AuditTracing};
use super::turn_times::TurnTimes;
use crate::capture::Capture;
use crate::socket::SocketOptions;
use core::time::Duration;
use std::sync::Arc;

/// Options of a server's threads and sockets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// How long a shard's thread spins after something happened before it sleeps. Zero, the default, never spins.
    /// Waking a sleeping thread costs some 5 µs on bare metal and 20 to 40 µs on virtual machines; while it spins, a
    /// thread uses a whole CPU.
    pub busy_poll: Duration,
    /// CPUs to pin the shards' threads to, the first shard to the first; empty pins none.
    pub cpus: Vec<usize>,
    /// Most threads for handshakes, signatures and certificates. Default 4. Like all worker threads, they exist only while
    /// there is such work.
    pub security_threads_max: usize,
    /// Most threads for passwords and other credentials. Default 4;
    /// [`Limits::credential_checks_max`](taktwerk_server::Limits::credential_checks_max) says how many are checked at a
    /// time.
    pub credential_threads_max: usize,
    /// Most threads for the application's methods. Default 8: as many can hang before other methods have to wait.
    pub callback_threads_max: usize,
    /// Most threads that read and change history. Default 2: each may hold some 20 MB of the limit for requests.
    pub history_threads_max: usize,
    /// Most threads for the application's sources that block. A source that hangs holds one, and a second one if a write
    /// hangs, too. Default 64.
    pub source_threads_max: usize,
    /// Options of the connections' sockets.
    pub socket: SocketOptions,
    /// Bytes that one read takes at most.
    pub receive_buffer_len: usize,
    /// Records what goes over all connections. Default: nothing is.
    pub capture: Option<Arc<Capture>>,
    /// Measures how long turns take. Default: nothing is measured.
    pub turn_times: Option<Arc<TurnTimes>>,
    /// Where audit records go. By default they are logged with the target `taktwerk::audit`.
    pub audit: Arc<dyn AuditSink>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            busy_poll: Duration::ZERO,
            cpus: Vec::new(),
            security_threads_max: 4,
            credential_threads_max: 4,
            callback_threads_max: 8,
            history_threads_max: 2,
            source_threads_max: 64,
            socket: SocketOptions::default(),
            receive_buffer_len: 64 << 10,
            capture: None,
            turn_times: None,
            audit: Arc::new(AuditTracing),
        }
    }
}
