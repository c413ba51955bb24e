//! Sessions from connection options, and nodes from the user's notation.
//!
//! - [`session`]: one request after the other on the calling thread; [`security`]: certificates and trust lists;
//!   [`recording`]: keys and captures for Wireshark;
//! - [`resolve`]: node names to NodeIds; [`walk`]: browsing.

pub mod recording;
pub mod resolve;
pub mod security;
pub mod session;
pub mod walk;

pub use session::Session;

/// Shows messages to the user that are neither results nor log entries, such as a new certificate.
pub trait Tell {
    /// Shows one line.
    fn tell(&self, line: &str);
}

/// Shows nothing.
impl Tell for () {
    fn tell(&self, _: &str) {}
}
