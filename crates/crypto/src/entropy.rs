//! Randomness as a parameter: the core never calls the operating system.

/// A source of random bytes.
pub trait Entropy: Send {
    /// Overwrites `bytes` with random ones.
    fn fill(&mut self, bytes: &mut [u8]);

    /// A random number.
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A random number in `0..bound`; 0 if `bound` is 0. The bias is below `bound / 2^64`.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Reproducible numbers from a seed, for tests and simulation.
///
/// **Not for keys, nonces or tokens**: an observer of a few outputs can predict the rest. Drivers give the core a
/// source from the operating system instead.
#[derive(Debug, Clone)]
pub struct SeededEntropy {
    state: u64,
}

impl SeededEntropy {
    /// The sequence of numbers for `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// One step of the SplitMix64 generator: a counter, and a mixing function over it.
    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_bound_holds() {
        let (mut one, mut two) = (SeededEntropy::new(7), SeededEntropy::new(7));
        let (mut left, mut right) = ([0; 21], [0; 21]);
        one.fill(&mut left);
        two.fill(&mut right);
        assert_eq!(left, right);
        assert!((0..1000).all(|_| one.below(10) < 10));
        assert_eq!(one.below(0), 0);
        assert_ne!(SeededEntropy::new(8).next_u64(), SeededEntropy::new(7).next_u64());
    }
}
