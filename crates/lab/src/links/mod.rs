//! Networks that are not there: delay, jitter, loss and rate between a client and a server on one machine.
//!
//! - [`address`]: which of a server's addresses it leads to;
//! - [`profile`]: what a link is like, named or described;
//! - [`emulator`]: one direction of it as a state machine without clock and socket;
//! - [`link`]: a link that stands, made by the kernel alone, by IP packets through the emulator ([`tun`]), or by a relay
//!   in user space ([`proxy`]);
//! - [`namespace`]: networks of their own, which disappear with the programs in them;
//! - [`switch`]: a switch with hosts, for multicast;
//! - [`mod@probe`]: whether the link does what was asked for.
//!
//! Nothing outlives the process, however it ends: namespaces have no names, interfaces are not persistent, and a relay
//! is a thread.

pub mod address;
pub(crate) mod driver;
pub mod emulator;
mod kernel;
pub mod link;
pub mod namespace;
pub mod probe;
pub mod profile;
pub mod proxy;
pub mod switch;
pub mod tun;

pub use link::{Link, LinkError, Method};
pub use namespace::Namespace;
pub use probe::{Effort, Probed, probe};
pub use profile::Profile;
