//! What writes down a run while it goes on.

use crate::capture::Capture;
use crate::trace::Trace;

/// Records of a run. They do not change its outcome.
#[derive(Debug, Default)]
pub struct Instruments {
    /// Turns, messages and faults.
    pub trace: Option<Trace>,
    /// Packets of links, by their numbers in [`Scenario::links`](super::Scenario::links).
    pub captures: Vec<(usize, Capture)>,
}
