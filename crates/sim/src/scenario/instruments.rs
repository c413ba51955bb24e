//! What looks at a run while it goes on.

use crate::capture::Capture;
use crate::trace::Trace;
use core::time::Duration;

/// What is looked at beside the outcome, which it does not change.
#[derive(Debug, Default)]
pub struct Instruments {
    /// Turns, messages and faults.
    pub trace: Option<Trace>,
    /// Packets of links, by their numbers in [`Scenario::links`](super::Scenario::links).
    pub captures: Vec<(usize, Capture)>,
    /// At the end all clients leave. After so much virtual time their servers must have forgotten them.
    pub farewell: Option<Duration>,
}
