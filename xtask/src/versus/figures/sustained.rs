//! How many signals per second a server holds on one core.

use super::Figure;
use super::subscribe::every_value;
use crate::versus::report::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, StandError};
use std::collections::BTreeMap;
use std::time::Duration;

/// Signals change and are published every 100 ms, so each contributes ten per second.
const PER_SECOND: f64 = 10.0;
/// A few clients, as a busy server has; one subscription alone would hit limits on items and message sizes first.
const CLIENTS: &str = "4";
/// Numbers of signals are tried in steps of ten percent.
const STEP: f64 = 1.1;
/// Nobody gets further than this; it bounds the search.
const MOST: usize = 800_000;

/// The largest number of signals with which every item is on time and none is lost. Each repetition searches again,
/// beginning where the last one ended.
pub(super) struct Sustained {
    quick: bool,
    last: BTreeMap<Side, usize>,
}

impl Sustained {
    pub(super) fn new(quick: bool) -> Self {
        Self { quick, last: BTreeMap::new() }
    }

    /// Whether `items` signals hold.
    fn holds(&self, side: Side, items: usize, stand: &Stand) -> Result<bool, StandError> {
        let server = stand.server(side, items, 100)?;
        let count = items.to_string();
        // 99 % of the worst item needs a hundred cycles to mean anything.
        let seconds = if self.quick { "5" } else { "11" };
        let arguments = every_value(CLIENTS, &count, seconds);
        let result = stand.bench(&server, &arguments, Duration::from_secs(120));
        let outcome = match result {
            Ok(outcome) => outcome,
            // Beyond its limit a server may not even create all items, or leave some silent: that is "does not hold".
            Err(StandError::Failed { line, status, stderr }) => {
                eprintln!("  {side}: {items} signals: no ({})", stderr.lines().last().unwrap_or(&status));
                return if stderr.contains("load generator") {
                    Err(StandError::Failed { line, status, stderr })
                } else {
                    Ok(false)
                };
            }
            Err(other) => return Err(other),
        };
        let worst = outcome.number("/progress/worst_item_ratio")?;
        let late = outcome.number("/progress/cycle_p99_ms")?;
        let lost = outcome.number("/progress/overflows")? + outcome.number("/progress/bad")?;
        let enough = if self.quick { 0.97 } else { 0.99 };
        let holds = worst >= enough && lost == 0.0 && late <= 150.0;
        eprintln!(
            "  {side}: {items} signals: {} (worst item {:.1} %, p99 cycle {late:.0} ms, server {:.0} %, load {:.0} %)",
            if holds { "yes" } else { "no" },
            worst * 100.0,
            outcome.number("/server/cpu_percent")?,
            outcome.number("/generator/cpu_percent")?,
        );
        Ok(holds)
    }

    fn search(&self, side: Side, stand: &Stand) -> Result<usize, StandError> {
        let first = if side == Side::Ours { 150_000 } else { 20_000 };
        let mut items = self.last.get(&side).copied().unwrap_or(first);
        let known = self.last.contains_key(&side);
        // Coarse steps until the first answer is bracketed, then fine ones.
        let coarse = if known { STEP } else { 1.5 };
        let times = |items: usize, factor: f64| (items as f64 * factor).round() as usize;
        if self.holds(side, items, stand)? {
            while items < MOST && self.holds(side, times(items, coarse), stand)? {
                items = times(items, coarse);
            }
        } else {
            loop {
                items = times(items, 1.0 / coarse);
                if items < 100 || self.holds(side, items, stand)? {
                    break;
                }
            }
        }
        let mut step = items;
        while coarse > STEP && times(step, STEP) < times(items, coarse) {
            step = times(step, STEP);
            if !self.holds(side, step, stand)? {
                return Ok(times(step, 1.0 / STEP));
            }
        }
        Ok(step)
    }
}

impl Figure for Sustained {
    fn id(&self) -> &'static str {
        "sustained"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, StandError> {
        let items = self.search(side, stand)?;
        self.last.insert(side, items);
        Ok(vec![("per_second", items as f64 * PER_SECOND)])
    }

    fn judge(&self, samples: &Samples) -> Vec<Row> {
        let row = Row::new("sustained", "signals sustained, one core, 100 ms", Unit::PerSecond)
            .figures(samples.median(Side::Ours, "per_second"), samples.median(Side::Peer, "per_second"), None)
            .ratio(
                samples.of(Side::Ours, "per_second"),
                samples.of(Side::Peer, "per_second"),
                Required::AtLeast(8.0),
                "× peer",
            );
        vec![row]
    }
}
