//! What writes down a run while it goes on.

use crate::trace::Trace;

/// Records of a run. They do not change its outcome.
#[derive(Debug, Default)]
pub struct Instruments {
    /// Turns, messages and faults.
    pub trace: Option<Trace>,
}
