//! Networks that are not there: delay, jitter, loss and rate between a client and a server on one machine.
//!
//! - [`profile`]: what a link is like, named or described;
//! - [`emulator`]: one direction of it as a state machine without clock and socket.

pub mod emulator;
pub mod profile;
