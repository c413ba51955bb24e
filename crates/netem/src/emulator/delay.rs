//! The delay of packets.

use super::random::Random;
use serde::Serialize;
use std::time::Duration;

/// Variation of the delay, added to [`Delay::base`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(tag = "distribution", rename_all = "kebab-case")]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform from zero to `max`.
    Uniform {
        /// Maximum.
        max: Duration,
    },
    /// Normal around the base, in both directions; the total is never negative.
    Normal {
        /// Standard deviation.
        std: Duration,
    },
    /// Exponential: many short delays, few long ones.
    Exponential {
        /// Mean, which equals the standard deviation.
        mean: Duration,
    },
    /// A heavy tail (Pareto with shape 3, shifted to start at zero), as in `tc netem`.
    Pareto {
        /// Standard deviation; the mean is this divided by √3.
        std: Duration,
    },
    /// A long tail, as in mobile networks and over long distances.
    LogNormal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        std: Duration,
    },
}

/// Retransmissions below IP, as in radio networks: they cause delay instead of loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Repeats {
    /// Probability that an attempt fails.
    pub probability: f64,
    /// Delay of each further attempt.
    pub each: Duration,
}

/// Maximum number of attempts per packet. Radios give up earlier and lose the packet: see [`super::loss`].
const ATTEMPTS_MAX: u32 = 16;

/// Delay of the packets of one direction, without queueing.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Delay {
    /// Minimum delay.
    pub base: Duration,
    /// Variation.
    pub jitter: Jitter,
    /// Retransmissions below IP.
    pub repeats: Option<Repeats>,
}

impl Delay {
    /// A delay without variation.
    #[must_use]
    pub fn constant(base: Duration) -> Self {
        Self { base, ..Self::default() }
    }

    /// Whether there is no delay.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Mean in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let jitter = match self.jitter {
            Jitter::None | Jitter::Normal { .. } => 0.0,
            Jitter::Uniform { max } => max.as_secs_f64() / 2.0,
            Jitter::Exponential { mean } | Jitter::LogNormal { mean, .. } => mean.as_secs_f64(),
            Jitter::Pareto { std } => std.as_secs_f64() / 3f64.sqrt(),
        };
        let repeats = self.repeats.map_or(0.0, |it| {
            it.each.as_secs_f64() * it.probability / (1.0 - it.probability.clamp(0.0, 0.99))
        });
        self.base.as_secs_f64() + jitter + repeats
    }

    /// Standard deviation in seconds.
    #[must_use]
    pub fn std(&self) -> f64 {
        let jitter = match self.jitter {
            Jitter::None => 0.0,
            Jitter::Uniform { max } => max.as_secs_f64() / 12f64.sqrt(),
            Jitter::Normal { std } | Jitter::LogNormal { std, .. } | Jitter::Pareto { std } => {
                std.as_secs_f64()
            }
            Jitter::Exponential { mean } => mean.as_secs_f64(),
        };
        let repeats = self.repeats.map_or(0.0, |it| {
            let failing = it.probability.clamp(0.0, 0.99);
            it.each.as_secs_f64() * failing.sqrt() / (1.0 - failing)
        });
        jitter.hypot(repeats)
    }

    /// Draws the delay of one packet in nanoseconds.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let base = self.base.as_secs_f64();
        let jitter = match self.jitter {
            Jitter::None => 0.0,
            Jitter::Uniform { max } => max.as_secs_f64() * random.unit(),
            Jitter::Normal { std } => std.as_secs_f64() * random.normal(),
            Jitter::Exponential { mean } => mean.as_secs_f64() * random.exponential(),
            // With the smallest value σ, (u^(−1/3) − 1) σ has the mean σ/2 and the standard deviation σ √3/2.
            Jitter::Pareto { std } => {
                std.as_secs_f64() * 2.0 / 3f64.sqrt() * ((1.0 - random.unit()).cbrt().recip() - 1.0)
            }
            Jitter::LogNormal { mean, std } => log_normal(mean.as_secs_f64(), std.as_secs_f64(), random),
        };
        let repeats = self.repeats.map_or(0.0, |it| {
            let failed = (0..ATTEMPTS_MAX).take_while(|_| random.chance(it.probability)).count();
            it.each.as_secs_f64() * failed as f64
        });
        ((base + jitter).max(0.0) + repeats.max(0.0)).mul_add(1e9, 0.5) as u64
    }
}

/// A log-normal number with this mean and standard deviation.
fn log_normal(mean: f64, std: f64, random: &mut Random) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    let variance = (1.0 + (std / mean).powi(2)).ln();
    (mean.ln() - variance / 2.0 + variance.sqrt() * random.normal()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(number: f64) -> Duration {
        Duration::from_secs_f64(number / 1e3)
    }

    #[test]
    fn distributions_have_the_documented_moments() {
        let jitters = [
            Jitter::None,
            Jitter::Uniform { max: milliseconds(4.0) },
            Jitter::Normal { std: milliseconds(2.0) },
            Jitter::Exponential { mean: milliseconds(3.0) },
            Jitter::LogNormal { mean: milliseconds(4.0), std: milliseconds(1.3) },
        ];
        let repeats = [None, Some(Repeats { probability: 0.1, each: milliseconds(1.0) })];
        for (jitter, repeats) in jitters.into_iter().flat_map(|jitter| repeats.map(|it| (jitter, it))) {
            let delay = Delay { base: milliseconds(20.0), jitter, repeats };
            let mut random = Random::new(3);
            let drawn: Vec<f64> = (0..100_000).map(|_| delay.draw(&mut random) as f64 / 1e9).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let square = drawn.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
            assert!((mean / delay.mean() - 1.0).abs() < 0.01, "{delay:?}: {mean}");
            assert!(
                (square.sqrt() - delay.std()).abs() < 0.05 * delay.std() + 1e-9,
                "{delay:?}: {}",
                square.sqrt()
            );
        }
    }

    /// The fourth moment of this distribution is infinite, so its sample deviation is not informative; check quantiles
    /// instead.
    #[test]
    fn a_heavy_tail_has_the_quantiles_of_its_distribution() {
        let std = 2.0;
        let delay = Delay {
            base: milliseconds(20.0),
            jitter: Jitter::Pareto { std: milliseconds(std) },
            repeats: None,
        };
        let mut random = Random::new(3);
        let mut drawn: Vec<f64> = (0..100_000).map(|_| delay.draw(&mut random) as f64 / 1e6 - 20.0).collect();
        drawn.sort_by(f64::total_cmp);
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean / (delay.mean() * 1e3 - 20.0) - 1.0).abs() < 0.02, "{mean}");
        for share in [0.1, 0.5, 0.9, 0.99] {
            let expected = std * 2.0 / 3f64.sqrt() * ((1.0f64 - share).powf(-1.0 / 3.0) - 1.0);
            let found = drawn[(share * drawn.len() as f64) as usize];
            assert!((found / expected - 1.0).abs() < 0.05, "{share}: {found}, not {expected}");
        }
        assert!((delay.std() * 1e3 - std).abs() < 1e-9);
    }

    #[test]
    fn delays_are_never_negative() {
        let delay = Delay {
            base: milliseconds(1.0),
            jitter: Jitter::Normal { std: milliseconds(50.0) },
            repeats: None,
        };
        let mut random = Random::new(5);
        let drawn: Vec<u64> = (0..1_000).map(|_| delay.draw(&mut random)).collect();
        assert!(drawn.contains(&0) && drawn.iter().any(|it| *it > 50_000_000));
    }
}
