//! Our identities, and those that replace them while the process runs.
//!
//! Callers borrow a certificate for as long as they have the provider, so a generation that was replaced stays in memory.

use super::Identity;
use std::sync::{Arc, OnceLock};

/// How often the identities can be replaced while a process runs.
pub(super) const RENEWALS_MAX: usize = 64;

/// The identities of one time, and behind them those of the next.
#[derive(Debug, Default)]
pub(super) struct Generations {
    identities: Vec<Arc<Identity>>,
    next: OnceLock<Box<Self>>,
}

impl Generations {
    pub(super) fn new(identities: Vec<Arc<Identity>>) -> Self {
        Self { identities, next: OnceLock::new() }
    }

    /// The identities that count.
    pub(super) fn newest(&self) -> &[Arc<Identity>] {
        let mut newest = self;
        while let Some(next) = newest.next.get() {
            newest = next;
        }
        &newest.identities
    }

    /// How often they can still be replaced.
    pub(super) fn replacements_left(&self) -> usize {
        let (mut newest, mut left) = (self, RENEWALS_MAX);
        while let Some(next) = newest.next.get() {
            (newest, left) = (next, left.saturating_sub(1));
        }
        left
    }

    /// Replaces the identities. False if that was done too often.
    pub(super) fn replace(&self, identities: Vec<Arc<Identity>>) -> bool {
        let mut new = Box::new(Self::new(identities));
        let mut at = self;
        for _ in 0..RENEWALS_MAX {
            match at.next.set(new) {
                Ok(()) => return true,
                Err(back) => new = back,
            }
            match at.next.get() {
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_generation_counts_and_older_ones_stay_valid() {
        let all = Generations::new(Vec::new());
        let first = all.newest();
        for done in 0..RENEWALS_MAX {
            assert_eq!(all.replacements_left(), RENEWALS_MAX - done);
            assert!(all.replace(Vec::new()));
        }
        assert_eq!(all.replacements_left(), 0);
        assert!(!all.replace(Vec::new()), "each one stays in memory");
        assert!(first.is_empty());
    }
}
