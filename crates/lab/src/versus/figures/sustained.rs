//! The number of signals per second that a server sustains on one core.

use super::Figure;
use super::subscribe::every_value;
use crate::versus::row::{Required, Row, Unit};
use crate::versus::samples::{Quantities, Samples, Side};
use crate::versus::stand::{Stand, VersusError};
use std::collections::BTreeMap;
use std::time::Duration;

/// Signals change and are published every 100 ms, so each contributes ten per second.
const PER_SECOND: f64 = 10.0;
/// A few clients; a single subscription would first reach limits on items and message sizes.
const CLIENTS: &str = "4";
/// Relative step of the search.
const STEP: f64 = 1.1;
/// Coarse steps before.
const COARSE: f64 = 1.5;
/// Upper bound of the search.
const MOST: usize = 800_000;
/// Lower bound of the search; below it, the failure has another cause.
const LEAST: usize = 100;

/// The largest number of signals with which every item is on time and none is lost. Each repetition starts its search
/// at the previous result.
pub(super) struct Sustained {
    quick: bool,
    last: BTreeMap<Side, usize>,
}

impl Sustained {
    pub(super) fn new(quick: bool) -> Self {
        Self { quick, last: BTreeMap::new() }
    }

    /// Whether `items` signals are sustained.
    fn holds(&self, side: Side, items: usize, stand: &Stand) -> Result<bool, VersusError> {
        let server = stand.server(side, items, 100)?;
        let count = items.to_string();
        // The limit of 99 % for the worst item needs at least a hundred cycles.
        let seconds = if self.quick { "5" } else { "11" };
        let arguments = every_value(CLIENTS, &count, seconds);
        let result = stand.bench(&server, &arguments, Duration::from_secs(120));
        let outcome = match result {
            Ok(outcome) => outcome,
            // Beyond its limit, a server may fail to create all items or to serve some of them. This counts as not
            // sustained.
            Err(VersusError::Failed { line, status, stderr }) => {
                stand.note(&format!(
                    "{side}: {items} signals: no ({})",
                    stderr.lines().last().unwrap_or(&status)
                ));
                return if stderr.contains("load generator") {
                    Err(VersusError::Failed { line, status, stderr })
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
        stand.note(&format!(
            "{side}: {items} signals: {} (worst item {:.1} %, p99 cycle {late:.0} ms, server {:.0} %, load {:.0} %)",
            if holds { "yes" } else { "no" },
            worst * 100.0,
            outcome.number("/server/cpu_percent")?,
            outcome.number("/generator/cpu_percent")?,
        ));
        Ok(holds)
    }

    fn search(&self, side: Side, stand: &Stand) -> Result<usize, VersusError> {
        let first = if side == Side::Ours { 150_000 } else { 20_000 };
        // Coarse steps until the first result is bracketed, then fine steps.
        let (first, coarse) = self.last.get(&side).map_or((first, COARSE), |last| (*last, STEP));
        largest(first, coarse, |items| self.holds(side, items, stand))?
            .ok_or(VersusError::Nothing { least: LEAST })
    }
}

/// The largest sustained load, within one step; the first one is bracketed by coarse steps. `None` if nothing is
/// sustained down to the minimum, because then the failure is not caused by the load.
fn largest<E>(
    first: usize,
    coarse: f64,
    mut holds: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let times = |items: usize, factor: f64| (items as f64 * factor).round() as usize;
    let mut items = first;
    if holds(items)? {
        while items < MOST && holds(times(items, coarse))? {
            items = times(items, coarse);
        }
    } else {
        loop {
            items = times(items, 1.0 / coarse);
            if items < LEAST {
                return Ok(None);
            }
            if holds(items)? {
                break;
            }
        }
    }
    let mut held = items;
    while held < MOST && times(held, STEP) < times(items, coarse) {
        if !holds(times(held, STEP))? {
            break;
        }
        held = times(held, STEP);
    }
    Ok(Some(held))
}

impl Figure for Sustained {
    fn id(&self) -> &'static str {
        "sustained"
    }

    fn sides(&self) -> &[Side] {
        &[Side::Ours, Side::Peer]
    }

    fn measure(&mut self, side: Side, stand: &Stand) -> Result<Quantities, VersusError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for a server that sustains `limit`, and the number of attempts.
    fn found(first: usize, coarse: f64, limit: usize) -> (Option<usize>, usize) {
        let mut asked = 0;
        let result = largest::<()>(first, coarse, |items| {
            asked += 1;
            Ok(items <= limit)
        });
        (result.unwrap(), asked)
    }

    #[test]
    fn the_largest_load_is_found_to_a_step() {
        for (first, coarse) in [(20_000, COARSE), (20_000, STEP), (150_000, COARSE)] {
            for limit in [1_000, 19_000, 20_000, 24_200, 36_000, 449_213] {
                let (found, asked) = found(first, coarse, limit);
                let found = found.unwrap();
                assert!(
                    found <= limit && found as f64 * STEP + 1.0 > limit as f64,
                    "{first} {limit}: {found}"
                );
                assert!(asked < 60, "{first} {limit}: {asked}");
            }
        }
        let (found, _) = found(20_000, COARSE, usize::MAX);
        assert!((MOST..2 * MOST).contains(&found.unwrap()), "{found:?}");
    }

    #[test]
    fn servers_that_sustain_nothing_have_no_figure() {
        assert_eq!(found(20_000, COARSE, 0).0, None);
        assert_eq!(found(20_000, COARSE, LEAST - 1).0, None);
        assert_eq!(largest(20_000, COARSE, |_| Err("no CPU")), Err("no CPU"));
    }
}
