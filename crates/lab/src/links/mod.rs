//! Emulated networks: delay, jitter, loss and rate between a client and a server on one machine.
//!
//! - [`address`]: choice of the server's address behind a link;
//!
//! The properties of a link and the emulator are in [`taktwerk_netem`]. This module has the parts that need an
//! operating system:
//!
//! - [`link`]: a link in use, made by the kernel alone, by IP packets through the emulator ([`tun`]), or by a relay in
//!   user space ([`proxy`]);
//! - [`namespace`]: unnamed network namespaces, which disappear with their last program;
//! - [`switch`]: a switch with hosts, for multicast;
//! - [`tcp`]: the TCP model compared with the kernel's TCP over the same link;
//! - [`mod@probe`]: verifies that the link has the requested properties.
//!
//! Nothing outlives the process, even if it is killed: namespaces have no names, interfaces are not persistent, and a
//! relay is a thread.

pub mod address;
pub(crate) mod driver;
mod kernel;
pub mod link;
pub mod namespace;
pub mod probe;
pub mod proxy;
pub mod switch;
pub mod tcp;
pub mod tun;

/// Begin of the names of threads that emulate links.
pub(crate) const THREADS: &str = "link-";

pub use link::{Link, LinkError, Method};
pub use namespace::Namespace;
pub use probe::{Effort, Probed, probe};
pub use taktwerk_netem::Profile;
