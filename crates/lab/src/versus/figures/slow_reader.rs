//! One of 100 subscribers stops reading from its socket: the effect on the others.

use super::Figure;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, VersusError};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// p99 of the delivery time (source timestamp to arrival) of 99 subscribers, with and without a further subscriber that
/// stops reading until its messages fill all buffers.
pub(super) struct SlowReader {
    pub(super) quick: bool,
}

impl Figure for SlowReader {
    fn id(&self) -> &'static str {
        "slow-reader"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
        let seconds = if self.quick { "4" } else { "10" };
        let server = stand.server(side, 10_000, 100)?;
        // A short publishing interval, so that waiting for the next publish does not hide the effect of the slow
        // reader. Both windows are in one run, so that the phases of updates and publishing are the same.
        let arguments = [
            "subscribe",
            "-c",
            "99",
            "--items",
            "1980",
            "-I",
            "20",
            "--sampling",
            "20",
            "--update",
            "100",
            "-d",
            seconds,
            "--warmup",
            "3",
            "--heavy",
            "10000",
            "--stall",
        ];
        let outcome = stand.bench(&server, &arguments, LIMIT)?;
        Ok(vec![
            ("all_read", outcome.number("/delivery_before_stall/p99_us")?),
            ("one_stops", outcome.number("/delivery/p99_us")?),
        ])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("slow-reader", "p99 delivery, 1 of 100 stops reading", Unit::Micros)
            .figures(
                samples.median(Side::Ours, "one_stops"),
                samples.median(Side::Peer, "one_stops"),
                samples.median(Side::Ours, "all_read"),
            )
            .ratio(
                samples.of(Side::Ours, "one_stops"),
                samples.of(Side::Ours, "all_read"),
                Required::AtMost(1.2),
                "× before",
            );
        vec![row]
    }
}
