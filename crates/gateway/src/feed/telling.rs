//! Limits the log of a source's errors: each error once, at a limited rate. All errors are counted.

use core::time::Duration;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use tokio::time::Instant;

/// Most lines in a burst …
const BURST: u32 = 20;
/// … and the time until another line is allowed.
const REFILL: Duration = Duration::from_secs(30);
/// A persisting error is logged again after this time.
const AGAIN: Duration = Duration::from_secs(600);
/// Most errors that are remembered.
const REMEMBERED: usize = 64;

/// The errors that were logged.
#[derive(Debug)]
pub(super) struct Telling {
    /// Lines that may be logged now.
    left: u32,
    refilled: Option<Instant>,
    /// Logged errors, with the time.
    told: VecDeque<(u64, Instant)>,
    /// Errors since the last line that were not logged.
    silent: u64,
}

impl Default for Telling {
    fn default() -> Self {
        Self { left: BURST, refilled: None, told: VecDeque::new(), silent: 0 }
    }
}

impl Telling {
    /// Whether to log an error. Returns the number of unlogged errors before it.
    pub(super) fn tell(&mut self, error: &str, now: Instant) -> Option<u64> {
        let refilled = *self.refilled.get_or_insert(now);
        let more = now.duration_since(refilled).as_millis() / REFILL.as_millis();
        if more > 0 {
            let more = u32::try_from(more).unwrap_or(BURST);
            self.left = self.left.saturating_add(more).min(BURST);
            self.refilled = Some(now);
        }
        while self.told.front().is_some_and(|(_, at)| now.duration_since(*at) >= AGAIN) {
            self.told.pop_front();
        }
        let mut hasher = DefaultHasher::new();
        error.hash(&mut hasher);
        let hash = hasher.finish();
        if self.left == 0 || self.told.iter().any(|(known, _)| *known == hash) {
            self.silent += 1;
            return None;
        }
        self.left -= 1;
        if self.told.len() == REMEMBERED {
            self.told.pop_front();
        }
        self.told.push_back((hash, now));
        Some(core::mem::take(&mut self.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_logged_once_and_a_flood_is_counted() {
        let mut telling = Telling::default();
        let begin = Instant::now();
        assert_eq!(telling.tell("a", begin), Some(0));
        for _ in 0..100 {
            assert_eq!(telling.tell("a", begin), None);
        }
        assert_eq!(telling.tell("b", begin), Some(100));
        let logged = (0..1_000).filter(|number| telling.tell(&number.to_string(), begin).is_some()).count();
        assert_eq!(logged, BURST as usize - 2);
        assert_eq!(telling.tell("c", begin + REFILL), Some(1_000 - 18));
        assert_eq!(telling.tell("d", begin + REFILL), None);
        // A persisting error is logged again, and memory is bounded.
        assert_eq!(telling.tell("a", begin + AGAIN), Some(1));
        let mut at = begin + AGAIN;
        for number in 0..1_000 {
            at += REFILL;
            telling.tell(&number.to_string(), at);
        }
        assert!(telling.told.len() <= REMEMBERED);
    }
}
