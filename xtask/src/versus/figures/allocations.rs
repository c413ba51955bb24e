//! Heap allocations of a publish cycle in steady state.

use super::Figure;
use crate::versus::report::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, StandError};
use std::time::Duration;

/// Counted in a whole server process: updates, publishing, sockets and timers.
pub(super) struct Allocations;

impl Figure for Allocations {
    fn id(&self) -> &'static str {
        "allocations"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours]
    }

    fn measure(&mut self, _: Side, stand: &Stand) -> Result<Quantities, StandError> {
        let outcome = stand.allocations(Duration::from_secs(60))?;
        Ok(vec![("per_cycle", outcome.number("/allocations_per_cycle")?)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("allocations", "heap allocations per publish cycle", Unit::Count)
            .figures(samples.median(Side::Ours, "per_cycle"), None, None)
            .absolute(Required::AtMost(0.0), "0");
        vec![row]
    }
}
