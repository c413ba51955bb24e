//! Options of a server's threads.

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
    /// How long a shard's thread spins after activity before it sleeps. Zero, the default, never spins. Waking a
    /// sleeping thread costs about 5 µs on bare metal and 20 to 40 µs on virtual machines. A spinning thread uses a
    /// whole CPU.
    pub busy_poll: Duration,
    /// CPUs to pin the shards' threads to, in the order of the shards; empty pins none.
    pub cpus: Vec<usize>,
    /// Maximum number of threads for handshakes, signatures and certificates. Default 4. Like all worker threads, they
    /// exist only while there is such work.
    pub security_threads_max: usize,
    /// Maximum number of threads for passwords and other credentials. Default 4.
    /// [`Limits::credential_checks_max`](taktwerk_server::Limits::credential_checks_max) limits how many are checked at
    /// a time.
    pub credential_threads_max: usize,
    /// Maximum number of threads for the application's methods. Default 8. If this many block, other methods have to
    /// wait.
    pub callback_threads_max: usize,
    /// Maximum number of threads that read and change history. Default 2. Each may hold about 20 MB of the memory limit
    /// for requests.
    pub history_threads_max: usize,
    /// Maximum number of threads that wait for history of other servers. Default 2. Further reads have to wait.
    pub remote_history_threads_max: usize,
    /// Maximum number of threads for the application's blocking sources. A source that blocks holds one thread, and a
    /// second one if a write blocks, too. Default 64.
    pub source_threads_max: usize,
    /// Options of the connections' sockets.
    pub socket: SocketOptions,
    /// Maximum bytes per read.
    pub receive_buffer_len: usize,
    /// Where to record the traffic of all connections. Default: no recording.
    pub capture: Option<Arc<Capture>>,
    /// Measures how long turns take. Default: no measurement.
    pub turn_times: Option<Arc<TurnTimes>>,
    /// The receiver of audit records. By default they are logged with the target `taktwerk::audit`.
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
            remote_history_threads_max: 2,
            source_threads_max: 64,
            socket: SocketOptions::default(),
            receive_buffer_len: 64 << 10,
            capture: None,
            turn_times: None,
            audit: Arc::new(AuditTracing),
        }
    }
}
