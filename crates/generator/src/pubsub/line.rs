//! The mean period of cycles, from their times of receipt.

use taktwerk_model::statistics::median;

/// Estimates the mean period from times of receipt. The window has 40 parts. From each part, the cycle with the least
/// delay is used. The result is the median of the slopes between each of these and the one half a window later.
///
/// This is robust against a receiver that is late by 100 µs while it sleeps, and against single late messages. A
/// least-squares line, or the time between the first and the last message, is not: in a window of ten cycles of 100 ms,
/// one message that is 20 ms late at an edge is an error of 2 %.
#[derive(Debug, Default)]
pub(super) struct Line {
    received: Vec<(u32, u64)>,
    nominal: u64,
}

/// Number of parts of the window, each represented by the cycle with the least delay.
const PARTS: usize = 40;

impl Line {
    /// `nominal` is the configured period in nanoseconds.
    pub(super) fn new(nominal: u64) -> Self {
        Self { received: Vec::new(), nominal }
    }

    /// Number of received cycles.
    pub(super) fn cycles(&self) -> usize {
        self.received.len()
    }

    /// Adds the receipt of a cycle, in nanoseconds.
    pub(super) fn add(&mut self, cycle: u32, nanos: u64) {
        self.received.push((cycle, nanos));
    }

    /// The mean period in nanoseconds; `None` for a single cycle.
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
        // Up to 60 µs late, without a period of its own.
        let late = |cycle: u32| u64::from(cycle.wrapping_mul(2_654_435_761) >> 16) % 60_000;
        let at = |cycle: u32| {
            let time = 5_000_000 + u64::from(cycle) * 1_000_100 + late(cycle);
            (cycle.wrapping_add(u32::MAX - 500), time)
        };
        let error = slope((0..1000).map(at)).unwrap() - 1_000_000.0;
        assert!((error - 100.0).abs() < 20.0, "{error}");
    }

    #[test]
    fn a_sleeping_receiver_does_not_change_the_period() {
        let at = |cycle: u32| {
            let asleep = if cycle < 300 && !cycle.is_multiple_of(7) { 100_000 } else { 0 };
            (cycle, 5_000_000 + u64::from(cycle) * 1_000_000 + asleep)
        };
        let error = slope((0..600).map(at)).unwrap() - 1_000_000.0;
        assert!(error.abs() < 1.0, "{error}");
    }

    #[test]
    fn a_late_message_at_an_edge_does_not_change_the_period() {
        const PERIOD: u64 = 100_000_000;
        let cycles = |late: u32| {
            (0..10u32).map(move |n| (n, u64::from(n) * PERIOD + 60_000_000 * u64::from(n == late)))
        };
        for late in [0, 4, 9] {
            let error = slope(cycles(late)).unwrap() / PERIOD as f64 - 1.0;
            assert!(error.abs() < 1e-9, "{late}: {error}");
        }
        // A cycle with a wrong number, because the publisher had missed another one.
        let counted =
            (0..10u32).map(|n| (n + u32::from(n == 4 || n > 5), u64::from(n + u32::from(n > 5)) * PERIOD));
        assert!((slope(counted).unwrap() / PERIOD as f64 - 1.0).abs() < 1e-9);
        // A growing period is detected despite a late message.
        let stretched = cycles(9).map(|(n, at)| (n, at + u64::from(n) * 1_600_000));
        assert!((slope(stretched).unwrap() / PERIOD as f64 - 1.016).abs() < 1e-9);
    }
}
