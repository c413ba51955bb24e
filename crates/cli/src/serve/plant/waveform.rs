//! Simulated signals similar to real sensors: periodic, drifting or stepping, with noise.

use std::f64::consts::TAU;

/// The waveform of a simulated value. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Waveform {
    /// A sine around the middle.
    Sine {
        /// Length of a period.
        period: f64,
    },
    /// Rises linearly and drops at once.
    Ramp {
        /// Length of a rise.
        period: f64,
    },
    /// Follows a setpoint that jumps, like a controlled quantity, with an exponential approach.
    Step {
        /// Time between jumps.
        every: f64,
        /// Time constant of the approach.
        lag: f64,
    },
    /// A random drift with a pull to the middle.
    Walk {
        /// Typical change per second as a share of the range.
        pace: f64,
    },
    /// Noise around the middle.
    Noise,
    /// Two states.
    Square {
        /// Length of a period.
        period: f64,
    },
}

/// One simulated value.
#[derive(Debug, Clone)]
pub(crate) struct Signal {
    low: f64,
    high: f64,
    waveform: Waveform,
    random: Random,
    /// Position of the value in the range, between 0 and 1.
    level: f64,
    setpoint: f64,
    next_jump: f64,
    last: f64,
    phase: f64,
}

impl Signal {
    /// A signal within a range. Equal seeds give equal signals.
    pub(crate) fn new(low: f64, high: f64, waveform: Waveform, seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995);
        let phase = random.uniform();
        Self { low, high, waveform, random, level: 0.5, setpoint: 0.5, next_jump: 0.0, last: 0.0, phase }
    }

    /// The value at a time in seconds. Times must not decrease.
    pub(crate) fn at(&mut self, time: f64) -> f64 {
        let step = (time - self.last).max(0.0);
        self.last = time;
        let noise = self.random.gauss();
        let turn = |period: f64| (time / period + self.phase).rem_euclid(1.0);
        self.level = match self.waveform {
            Waveform::Sine { period } => 0.5 + 0.4 * (TAU * turn(period)).sin() + 0.01 * noise,
            Waveform::Ramp { period } => 0.05 + 0.9 * turn(period) + 0.005 * noise,
            Waveform::Step { every, lag } => {
                if time >= self.next_jump {
                    self.setpoint = 0.1 + 0.8 * self.random.uniform();
                    self.next_jump = time + every;
                }
                // The exact response of a first-order lag, independent of the length of the step.
                let kept = (-step / lag).exp();
                self.setpoint + (self.level - self.setpoint) * kept + 0.002 * noise
            }
            Waveform::Walk { pace } => {
                self.level + pace * step.sqrt() * noise + 0.05 * step.min(1.0) * (0.5 - self.level)
            }
            Waveform::Noise => 0.5 + 0.1 * noise,
            Waveform::Square { period } => (if turn(period) < 0.5 { 0.2 } else { 0.8 }) + 0.002 * noise,
        }
        .clamp(0.0, 1.0);
        self.low + (self.high - self.low) * self.level
    }
}

/// A small deterministic generator (splitmix64), which avoids a dependency.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniformly distributed between 0 and 1.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately normal: the sum of twelve uniform numbers.
    fn gauss(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_stay_in_range_move_and_repeat() {
        for (seed, waveform) in (0..).zip([
            Waveform::Sine { period: 10.0 },
            Waveform::Ramp { period: 7.0 },
            Waveform::Step { every: 5.0, lag: 1.0 },
            Waveform::Walk { pace: 0.05 },
            Waveform::Noise,
            Waveform::Square { period: 4.0 },
        ]) {
            let mut signal = Signal::new(-20.0, 80.0, waveform, seed);
            let mut again = signal.clone();
            let values: Vec<f64> = (0..1_000).map(|tick| signal.at(f64::from(tick) * 0.1)).collect();
            assert!(values.iter().all(|value| (-20.0..=80.0).contains(value)), "{waveform:?}");
            // Noise changes nearly every value, as subscriptions need.
            let changes = values.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes > 900, "{waveform:?}: {changes}");
            assert_eq!(again.at(0.0), values[0]);
        }
    }
}
