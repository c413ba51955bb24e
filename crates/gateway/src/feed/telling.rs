//! Which errors of a source are logged: each one once, and not too many. All are counted.

use core::time::Duration;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

/// Lines that may come together …
const BURST: u32 = 20;
/// … and the time after which there may be one more.
const REFILL: Duration = Duration::from_secs(30);
/// An error that goes on is logged again after so long.
const AGAIN: Duration = Duration::from_secs(600);
/// Errors that are remembered.
const REMEMBERED: usize = 64;

/// What was logged.
#[derive(Debug)]
pub(super) struct Telling {
    /// Lines that may be logged now.
    left: u32,
    refilled: Option<Instant>,
    /// Errors that were logged, and when.
    told: VecDeque<(u64, Instant)>,
    /// Errors since the last line that have none.
    silent: u64,
}

impl Default for Telling {
    fn default() -> Self {
        Self { left: BURST, refilled: None, told: VecDeque::new(), silent: 0 }
    }
}

impl Telling {
    /// Whether an error is to be logged: if so, the number of those before it that were not.
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
        // One that goes on is told again, and memory is bounded.
        assert_eq!(telling.tell("a", begin + AGAIN), Some(1));
        let mut at = begin + AGAIN;
        for number in 0..1_000 {
            at += REFILL;
            telling.tell(&number.to_string(), at);
        }
        assert!(telling.told.len() <= REMEMBERED);
    }
}
