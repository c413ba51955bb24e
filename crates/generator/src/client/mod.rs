//! Sessions as connection options describe them, and nodes as users write them.
//!
//! - [`session`]: one request after the other on the calling thread; [`security`]: certificates and trust lists;
//!   [`recording`]: keys and captures for Wireshark;
//! - [`resolve`]: node names to ids; [`walk`]: browsing.

pub mod recording;
pub mod resolve;
pub mod security;
pub mod session;
pub mod walk;

pub use session::Session;

/// Tells the user something that is neither a result nor an entry of the log, such as a certificate that was made.
pub trait Tell {
    /// Tells one line.
    fn tell(&self, line: &str);
}

/// Tells nobody.
impl Tell for () {
    fn tell(&self, _: &str) {}
}
