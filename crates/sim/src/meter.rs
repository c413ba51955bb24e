//! Measuring what the work of the cores takes on this machine, while it is done in virtual time.
//!
//! Virtual time knows no processor. Whoever has a clock is told when a piece of work begins and ends, and what it was; from
//! that come the costs of a host profile.

use taktwerk_client::Work as ClientWork;
use taktwerk_server::Work as ServerWork;

/// A piece of work that was done.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// A step of a server's shard; `true` if it served deadlines instead of an input.
    Server(&'a ServerWork, bool),
    /// A step of a client; `true` if it served deadlines instead of an input.
    Client(&'a ClientWork, bool),
    /// A slow job of a server, as [`JobKind::name`](taktwerk_server::JobKind::name) has it.
    Job(&'a str),
    /// A slow job of a client, as [`client_job_name`](crate::host::client_job_name) has it.
    ClientJob(&'a str),
}

/// Has a clock. Pieces of work do not overlap.
pub trait Meter: core::fmt::Debug + Send {
    /// A piece of work begins.
    fn begin(&mut self);
    /// It is done. Of pieces that come to nothing there is no end: the next one begins.
    fn end(&mut self, piece: Piece<'_>);
}
