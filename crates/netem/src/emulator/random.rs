//! Random numbers, reproducible by seed.

/// A small generator (splitmix64): not for secrets, but with the same results for a seed on all platforms.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
    /// The second of two normal numbers, which are computed together.
    spare: Option<f64>,
}

impl Random {
    /// A generator with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // 1 − u is never 0, so its logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.unit();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_reproducible() {
        let (mut one, mut two, mut other) = (Random::new(7), Random::new(7), Random::new(8));
        for _ in 0..100 {
            let number = one.next_u64();
            assert_eq!(number, two.next_u64());
            assert_ne!(number, other.next_u64());
        }
    }

    #[test]
    fn moments() {
        const COUNT: usize = 200_000;
        let mut random = Random::new(1);
        let moments = |mut draw: Box<dyn FnMut() -> f64>| {
            let values: Vec<f64> = (0..COUNT).map(|_| draw()).collect();
            let mean = values.iter().sum::<f64>() / COUNT as f64;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / COUNT as f64;
            (mean, variance.sqrt())
        };
        let mut other = random.clone();
        let mut third = random.clone();
        let (mean, std) = moments(Box::new(move || random.normal()));
        assert!(mean.abs() < 0.01 && (std - 1.0).abs() < 0.01, "{mean} {std}");
        let (mean, std) = moments(Box::new(move || other.exponential()));
        assert!((mean - 1.0).abs() < 0.01 && (std - 1.0).abs() < 0.02, "{mean} {std}");
        let (mean, _) = moments(Box::new(move || f64::from(u8::from(third.chance(0.036)))));
        assert!((mean - 0.036).abs() < 0.002, "{mean}");
    }
}
