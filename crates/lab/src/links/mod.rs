//! Emulated networks: delay, jitter, loss and rate between a client and a server on one machine.
//!
//! - [`address`]: which of a server's addresses it leads to;
//!
//! The properties of a link and the emulator are in [`taktwerk_netem`]. Here is what needs an operating system:
//!
//! - [`link`]: a link in use, made by the kernel alone, by IP packets through the emulator ([`tun`]), or by a relay in
//!   user space ([`proxy`]);
//! - [`namespace`]: networks of their own, which disappear with the programs in them;
//! - [`switch`]: a switch with hosts, for multicast;
//! - [`tcp`]: the TCP model beside the kernel's TCP over the same link;
//! - [`mod@probe`]: whether the link does what was asked for.
//!
//! Nothing outlives the process, however it ends: namespaces have no names, interfaces are not persistent, and a relay
//! is a thread.

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

pub use link::{Link, LinkError, Method};
pub use namespace::Namespace;
pub use probe::{Effort, Probed, probe};
pub use taktwerk_netem::Profile;
