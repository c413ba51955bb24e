//! Heap allocations of a publish cycle in steady state.

use super::Figure;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Programs, Stand, VersusError};
use std::time::Duration;

/// Counted in a whole server process: updates, publishing, sockets and timers.
pub(super) struct Allocations;

impl Figure for Allocations {
    fn id(&self) -> &'static str {
        "allocations"
    }

    fn lacks(&self, programs: &Programs) -> Option<&'static str> {
        programs
            .allocations
            .is_none()
            .then_some("the allocation benchmark is missing: `cargo xtask versus` builds it")
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours]
    }

    fn measure(&mut self, _: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let outcome = stand.allocations(Duration::from_secs(60))?;
        Ok(vec![("per_cycle", outcome.number("/allocations_per_cycle")?)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("allocations", "heap allocations per publish cycle", Unit::Count)
            .figures(samples.median(Side::Ours, "per_cycle"), None, None)
            .absolute(samples.of(Side::Ours, "per_cycle"), Required::AtMost(0.0), "0");
        vec![row]
    }
}
