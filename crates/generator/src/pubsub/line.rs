//! The mean period of cycles, from when they were received.

use taktwerk_model::statistics::median;

/// When cycles were received, for the mean period: of each fortieth of the window the cycle that was the least late, and the
/// median of the slopes between each of these and the one that came half a window later.
///
/// A receiver that is asleep for some time and awake for some is late by 100 µs in the one and not in the other, which is
/// nothing of the publisher's. One late message, wherever it stands, moves one of these slopes; of the time between the first
/// and the last message of a short window, or of a least-squares line, a late one at an edge is a large part: 20 ms in ten
/// cycles of 100 ms are 2 %.
#[derive(Debug, Default)]
pub(super) struct Line {
    received: Vec<(u32, u64)>,
    nominal: u64,
}

/// Parts of a window of which the cycle that was the least late counts.
const PARTS: usize = 40;

impl Line {
    /// `nominal` is what the period should be, nanoseconds.
    pub(super) fn new(nominal: u64) -> Self {
        Self { received: Vec::new(), nominal }
    }

    /// How many cycles were received.
    pub(super) fn cycles(&self) -> usize {
        self.received.len()
    }

    /// A cycle of this number was received at this time, nanoseconds.
    pub(super) fn add(&mut self, cycle: u32, nanos: u64) {
        self.received.push((cycle, nanos));
    }

    /// The mean period, nanoseconds; none of a single cycle.
    pub(super) fn slope(&self) -> Option<f64> {
        let first = self.received.first()?.0;
        let late = |(cycle, nanos): &&(u32, u64)| {
            i128::from(*nanos) - i128::from(cycle.wrapping_sub(first)) * i128::from(self.nominal)
        };
        let parts = self.received.chunks((self.received.len() / PARTS).max(1));
        let received: Vec<&(u32, u64)> = parts.filter_map(|part| part.iter().min_by_key(late)).collect();
        let half = received.len().div_ceil(2);
        let later = received.iter().skip(half);
        let slopes: Vec<f64> = received
            .iter()
            .zip(later)
            .filter_map(|((cycle, nanos), (later_cycle, later_nanos))| {
                let cycles = later_cycle.wrapping_sub(*cycle);
                (cycles > 0).then(|| later_nanos.saturating_sub(*nanos) as f64 / f64::from(cycles))
            })
            .collect();
        median(&slopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(cycles: impl IntoIterator<Item = (u32, u64)>) -> Option<f64> {
        let mut line = Line::new(1_000_000);
        cycles.into_iter().for_each(|(cycle, nanos)| line.add(cycle, nanos));
        line.slope()
    }

    #[test]
    fn the_slope_is_the_mean_period() {
        assert_eq!((slope([]), slope([(7, 9)])), (None, None));
        // Late by up to 60 µs, in no order that repeats with the cycle.
        let late = |cycle: u32| u64::from(cycle.wrapping_mul(2_654_435_761) >> 16) % 60_000;
        let at = |cycle: u32| {
            let time = 5_000_000 + u64::from(cycle) * 1_000_100 + late(cycle);
            (cycle.wrapping_add(u32::MAX - 500), time)
        };
        let error = slope((0..1000).map(at)).unwrap() - 1_000_000.0;
        assert!((error - 100.0).abs() < 20.0, "{error}");
    }

    #[test]
    fn a_receiver_that_is_awake_for_some_time_only_is_no_other_period() {
        let at = |cycle: u32| {
            let asleep = if cycle < 300 && !cycle.is_multiple_of(7) { 100_000 } else { 0 };
            (cycle, 5_000_000 + u64::from(cycle) * 1_000_000 + asleep)
        };
        let error = slope((0..600).map(at)).unwrap() - 1_000_000.0;
        assert!(error.abs() < 1.0, "{error}");
    }

    #[test]
    fn a_late_message_at_the_edge_of_a_short_window_is_no_other_period() {
        const PERIOD: u64 = 100_000_000;
        let cycles = |late: u32| {
            (0..10u32).map(move |n| (n, u64::from(n) * PERIOD + 60_000_000 * u64::from(n == late)))
        };
        for late in [0, 4, 9] {
            let error = slope(cycles(late)).unwrap() / PERIOD as f64 - 1.0;
            assert!(error.abs() < 1e-9, "{late}: {error}");
        }
        // A cycle whose number was noted wrongly, because the publisher had missed another one meanwhile.
        let counted =
            (0..10u32).map(|n| (n + u32::from(n == 4 || n > 5), u64::from(n + u32::from(n > 5)) * PERIOD));
        assert!((slope(counted).unwrap() / PERIOD as f64 - 1.0).abs() < 1e-9);
        // One that stretches is seen, also beside a late message.
        let stretched = cycles(9).map(|(n, at)| (n, at + u64::from(n) * 1_600_000));
        assert!((slope(stretched).unwrap() / PERIOD as f64 - 1.016).abs() < 1e-9);
    }
}
