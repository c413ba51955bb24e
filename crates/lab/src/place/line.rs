//! Reads the counters of a link while a load runs, to find out what the link carried within the load's window.

use super::Standing;
use super::watch::{Watch, window};
use crate::pin::CpuList;
use std::sync::Arc;
use std::time::Duration;
use taktwerk_load::result::{Accounts, LineRates};

/// Interval between two readings. Between them, the counters are interpolated.
const EVERY: Duration = Duration::from_millis(50);

/// Time in milliseconds since 1970, and bytes on the line in each direction so far.
type Reading = (f64, [f64; 2]);

/// The thread that reads the counters.
pub(super) struct Line(Watch<Vec<Reading>>);

impl Line {
    /// Starts to read the counters of a link, on these CPUs.
    pub(super) fn watch(standing: &Arc<Standing>, cpus: CpuList) -> std::io::Result<Self> {
        let standing = Arc::clone(standing);
        let read = move |readings: &mut Vec<Reading>, at_ms: f64| {
            let carried = standing.link.counters().map(|direction| direction.line_bytes as f64);
            readings.push((at_ms, carried));
        };
        Watch::start("line", EVERY, cpus, Vec::new(), read).map(Self)
    }

    /// The rates within the window of a load; `None` if its time is unknown.
    pub(super) fn rates(self, accounts: &Accounts) -> Option<LineRates> {
        let readings = self.0.end()?;
        let (from, until) = window(accounts)?;
        within(&readings, from, until)
    }
}

fn within(readings: &[Reading], from_ms: f64, until_ms: f64) -> Option<LineRates> {
    let (before, after) = (at(readings, from_ms)?, at(readings, until_ms)?);
    let seconds = (until_ms - from_ms) / 1e3;
    let rate = |side: usize| (after[side] - before[side]) * 8.0 / seconds;
    (seconds > 0.0).then(|| LineRates::new(rate(0), rate(1)))
}

/// The counters at a time between two readings.
fn at(readings: &[Reading], ms: f64) -> Option<[f64; 2]> {
    let after = readings.iter().position(|(at, _)| *at >= ms)?;
    let (end, last) = readings.get(after)?;
    let (begin, first) = readings.get(after.checked_sub(1)?)?;
    let share = if end > begin { (ms - begin) / (end - begin) } else { 1.0 };
    Some([0, 1].map(|side: usize| first[side] + (last[side] - first[side]) * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_window() {
        // 1 kB every 50 ms up, and 10 kB down, but nothing before 1 s and after 3 s.
        let reading = |number: u32| {
            let ms = f64::from(number) * 50.0;
            let carried = (ms.clamp(1_000.0, 3_000.0) - 1_000.0) / 50.0 * 1e3;
            (ms, [carried, carried * 10.0])
        };
        let readings: Vec<Reading> = (0..100).map(reading).collect();
        let rates = within(&readings, 1_010.0, 2_990.0).unwrap();
        assert!((rates.up_bits_s - 160e3).abs() < 1.0, "{rates:?}");
        assert!((rates.both_bits_s - 1_760e3).abs() < 1.0 && rates.busier_bits_s == rates.down_bits_s);
        // Half of this window carries nothing.
        let rates = within(&readings, 2_000.0, 4_000.0).unwrap();
        assert!((rates.up_bits_s - 80e3).abs() < 1.0, "{rates:?}");
        assert_eq!(within(&readings, 1_000.0, 9_000.0), None);
        assert_eq!(within(&readings, -10.0, 2_000.0), None);
    }
}
