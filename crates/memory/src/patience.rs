//! Decides when to return memory: an attempt takes milliseconds, in which the allocator blocks.

/// Minimum excess over the lowest level so far, in bytes, for an attempt.
const WORTH: usize = 8 << 20;
/// Smaller changes are ignored, in bytes.
const NOISE: usize = 1 << 20;
/// Maximum pause between two attempts without result, in checks.
const PAUSE_MAX: u32 = 24;

/// Decides when to try to return memory, from the process's resident memory only.
///
/// It tries when there is more memory than at the lowest level and it does not grow any more. After attempts without
/// result, the memory is in use, and the pause doubles. A change of the resident memory resets the pause.
#[derive(Debug)]
pub struct Patience {
    lowest: usize,
    last: usize,
    pause: u32,
    left: u32,
}

impl Patience {
    /// Starts with the process's resident memory, in bytes.
    pub fn new(resident: usize) -> Self {
        Self { lowest: resident, last: resident, pause: 1, left: 1 }
    }

    /// Takes the current resident memory, in bytes. Returns whether to try; report the result to [`Patience::gave`].
    pub fn look(&mut self, resident: usize) -> bool {
        let last = core::mem::replace(&mut self.last, resident);
        self.lowest = self.lowest.min(resident);
        if resident.abs_diff(last) > NOISE {
            (self.pause, self.left) = (1, 1);
        }
        if resident < self.lowest.saturating_add(WORTH) || resident > last.saturating_add(NOISE) {
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Takes the result of an attempt: resident memory before and after it, in bytes.
    pub fn gave(&mut self, before: usize, after: usize) {
        let brought = before.saturating_sub(after) > NOISE;
        self.pause = if brought { 1 } else { (self.pause * 2).min(PAUSE_MAX) };
        self.left = self.pause;
        self.last = after;
        self.lowest = self.lowest.min(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: usize = 1 << 20;

    /// Simulates a process that has `resident(n)` MiB, of which `free(n)` can be returned. Returns the checks with an
    /// attempt.
    fn tries(resident: impl Fn(u32) -> usize, free: impl Fn(u32) -> usize, looks: u32) -> Vec<u32> {
        let mut patience = Patience::new(resident(0) * MIB);
        let mut given = 0;
        let mut tries = Vec::new();
        for look in 1..=looks {
            let before = resident(look) - given;
            if patience.look(before * MIB) {
                tries.push(look);
                let after = before - (free(look) - given);
                patience.gave(before * MIB, after * MIB);
                given = free(look);
            }
        }
        tries
    }

    #[test]
    fn pauses_grow_while_all_memory_is_in_use() {
        assert!(tries(|_| 16, |_| 0, 1_000).is_empty());
        // The process has started and is steady: the pause soon grows to minutes.
        let tries = tries(|look| if look > 2 { 100 } else { 16 }, |_| 0, 1_000);
        assert!(tries.len() < 50 && tries[0] > 3, "{tries:?}");
        assert!(tries.windows(2).skip(5).all(|pair| pair[1] - pair[0] == PAUSE_MAX), "{tries:?}");
    }

    #[test]
    fn there_are_no_attempts_while_memory_grows() {
        let growing = tries(|look| 16 + 2 * look as usize, |_| 0, 100);
        assert!(growing.is_empty(), "{growing:?}");
    }

    #[test]
    fn memory_freed_after_a_flood_is_returned_soon() {
        // A flood from check 10 to 60 takes 300 MiB, of which 40 stay free in pieces, at 62 and 64.
        let resident = |look| match look {
            0..10 => 16,
            10..60 => 300,
            _ => 56,
        };
        let free = |look| match look {
            0..62 => 0,
            62..64 => 20,
            _ => 40,
        };
        let tries = tries(resident, free, 200);
        let after: Vec<_> = tries.iter().filter(|look| **look >= 60).collect();
        assert!(after.iter().any(|look| (64..70).contains(*look)), "{tries:?}");
        // All of it is returned then.
        assert!(after.iter().all(|look| **look < 75), "{tries:?}");
    }

    proptest! {
        #[test]
        fn there_are_no_attempts_without_a_reason(sizes in prop::collection::vec(0usize..1 << 30, 2..200)) {
            let mut patience = Patience::new(sizes[0]);
            for (at, pair) in sizes.windows(2).enumerate() {
                let lowest = sizes[..=at].iter().copied().min().unwrap_or(0);
                if patience.look(pair[1]) {
                    prop_assert!(pair[1] >= lowest + WORTH && pair[1] <= pair[0] + NOISE);
                    patience.gave(pair[1], pair[1]);
                }
            }
        }
    }
}
