//! The drivers of the sans-IO core: all sockets, clocks and threads are in this crate.
//!
//! - [`server`]: runs a server's shards on threads; [`client`]: runs clients as tasks, on one thread, or by the
//!   thousand;
//! - [`clock`]: monotonic and wall-clock time from one reading per turn; [`entropy`]: random bytes;
//! - [`pubsub`]: publishers and subscribers over UDP, Ethernet and MQTT;
//! - `poll`, `socket`, `recv`, `wake`: epoll, TCP sockets, and waking an event loop; [`affinity`]: pinning threads to
//!   CPUs;
//! - [`files`]: the limit of open files;
//! - [`capture`]: recording of connections and keys, for debugging;
//! - `workers`, `executor`: threads for blocking work and for futures; `sources`: threads for the application's
//!   sources;
//! - [`error`]: errors with advice.
//!
//! Needs Linux 5.11 or later.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("taktwerk-net needs Linux: it drives sockets with epoll");

pub mod affinity;
pub mod capture;
pub mod client;
pub mod clock;
pub mod entropy;
pub mod error;
mod executor;
pub mod files;
mod poll;
mod port_owner;
pub mod pubsub;
mod recv;
pub mod server;
mod socket;
mod sources;
mod wake;
mod workers;

pub use entropy::OsEntropy;
pub use error::{BindError, StartError};
pub use server::{AuditSink, RunningServer, ServerOptions, Stopper, TurnTimes, Turns};
pub use socket::{Listener, SocketOptions};
pub use wake::Waker;
