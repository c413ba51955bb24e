//! Network links as pure code: rate, delay, jitter, loss, framing, competing traffic (design §2, §8).
//!
//! The laboratory sends real packets through this code, between network namespaces or in a relay on loopback. There are
//! no clocks, sockets or threads: packets and times go in, packets and times come out, and a seed reproduces
//! everything.
//!
//! - [`profile`]: the properties of a link, by name or as text;
//! - [`emulator`]: one direction of a link as a state machine;
//! - [`tcp`]: one end of a TCP connection as a state machine.

#![forbid(unsafe_code)]

pub mod emulator;
pub mod profile;
pub mod tcp;

pub use profile::Profile;
