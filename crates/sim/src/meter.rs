//! Measures the cost of the cores' work on this machine while it runs in virtual time.
//!
//! Virtual time has no processors. An implementation with a clock is called at the beginning and end of each piece of
//! work. The costs of a host profile are derived from these measurements.

use taktwerk_client::Work as ClientWork;
use taktwerk_server::Work as ServerWork;

/// A completed piece of work.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// A step of a server's shard; `true` if it served deadlines instead of an input.
    Server(&'a ServerWork, bool),
    /// A step of a client; `true` if it served deadlines instead of an input.
    Client(&'a ClientWork, bool),
    /// A slow job of a server, by [`JobKind::name`](taktwerk_server::JobKind::name).
    Job(&'a str),
    /// A slow job of a client, by [`client_job_name`](crate::host::client_job_name).
    ClientJob(&'a str),
}

/// Measures pieces of work, which do not overlap.
pub trait Meter: core::fmt::Debug + Send {
    /// A piece of work begins.
    fn begin(&mut self);
    /// It is complete. Not called for pieces without a result; then the next one begins.
    fn end(&mut self, piece: Piece<'_>);
}
