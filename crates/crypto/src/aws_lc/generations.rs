//! Our identities, which can be replaced while the process runs.
//!
//! Callers borrow certificates for the lifetime of the provider, so replaced generations stay in memory.

use super::Identity;
use std::sync::{Arc, OnceLock};

/// Maximum number of replacements while a process runs.
pub(super) const RENEWALS_MAX: usize = 64;

/// One generation of identities, and the next one.
#[derive(Debug, Default)]
pub(super) struct Generations {
    identities: Vec<Arc<Identity>>,
    next: OnceLock<Box<Self>>,
}

impl Generations {
    pub(super) fn new(identities: Vec<Arc<Identity>>) -> Self {
        Self { identities, next: OnceLock::new() }
    }

    /// The current identities.
    pub(super) fn newest(&self) -> &[Arc<Identity>] {
        let mut newest = self;
        while let Some(next) = newest.next.get() {
            newest = next;
        }
        &newest.identities
    }

    /// Number of replacements still possible.
    pub(super) fn replacements_left(&self) -> usize {
        let (mut newest, mut left) = (self, RENEWALS_MAX);
        while let Some(next) = newest.next.get() {
            (newest, left) = (next, left.saturating_sub(1));
        }
        left
    }

    /// Replaces the identities. False if the maximum is reached.
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
    fn the_newest_generation_is_used_and_older_ones_stay_valid() {
        let all = Generations::new(Vec::new());
        let first = all.newest();
        for done in 0..RENEWALS_MAX {
            assert_eq!(all.replacements_left(), RENEWALS_MAX - done);
            assert!(all.replace(Vec::new()));
        }
        assert_eq!(all.replacements_left(), 0);
        assert!(!all.replace(Vec::new()), "the number of generations is limited");
        assert!(first.is_empty());
    }
}
