//! The operating system under the sans-IO core: sockets, clocks and threads live here and nowhere else.
//!
//! - [`server`]: a server's shards on threads; [`client`]: clients as tasks, on a thread, or by the thousand;
//! - [`clock`]: one reading per turn for both the monotonic and the wall clock; [`entropy`]: randomness;
//! - [`pubsub`]: publishers and subscribers on UDP and Ethernet;
//! - `poll`, `socket`, `recv`, `wake`: epoll, TCP sockets, and waking a sleeping loop; [`affinity`]: pinning threads;
//!   [`files`]: how many connections there can be;
//! - [`capture`]: recording connections and keys, on purpose;
//! - `workers`, `executor`: where slow work and futures run; `sources`: where the application's sources do;
//! - [`error`]: what can go wrong here, with advice.
//!
//! Needs Linux 5.11 or later.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("taktwerk-net drives sockets with epoll and so needs Linux");

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
pub use server::{AuditSink, RunningServer, ServerOptions, TurnTimes, Turns};
pub use socket::{Listener, SocketOptions};
pub use wake::Waker;
