//! Tells why a destination loses values: in its state, and in the log at most once a minute.

use super::counters::Snapshot;
use super::queue::WhenFull;
use core::time::Duration;
use tokio::time::Instant;

/// Shortest time between two lines in the log.
const AGAIN: Duration = Duration::from_secs(60);

/// What was counted before, and what was logged.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Overrun, evicted and expired values at the last look.
    seen: [u64; 3],
    /// The same when they were last logged.
    logged: [u64; 3],
    logged_at: Option<Instant>,
}

/// Newly lost values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Why, for users.
    pub(super) reason: String,
    /// The number to log now, which includes those that were not logged before; `None` if a line was logged a short time ago.
    pub(super) logged: Option<u64>,
}

impl Losses {
    /// Compares with the last look; `None` if nothing was lost since.
    pub(super) fn look(&mut self, now: &Snapshot, when_full: WhenFull, at: Instant) -> Option<Loss> {
        let counted = [now.overrun, now.evicted, now.expired];
        let before = core::mem::replace(&mut self.seen, counted);
        let is_new = |index: usize| counted.get(index) > before.get(index);
        let reason = if is_new(0) {
            "the queue cannot be written, or not fast enough: new values are lost, the queue keeps what it has. Make room \
             on its disk"
        } else if is_new(1) {
            match when_full {
                WhenFull::DropOldest => {
                    "the queue is full (queue_mb_max): the oldest values are dropped (when_full = \"drop-oldest\")"
                }
                WhenFull::DropNewest => {
                    "the queue is full (queue_mb_max): new values are dropped (when_full = \"drop-newest\")"
                }
            }
        } else if is_new(2) {
            "values in the queue are older than age_max and are dropped"
        } else {
            return None;
        };
        let is_due = self.logged_at.is_none_or(|last| at.duration_since(last) >= AGAIN);
        let logged = is_due.then(|| {
            let total = |counts: [u64; 3]| counts.iter().sum::<u64>();
            self.logged_at = Some(at);
            total(counted) - total(core::mem::replace(&mut self.logged, counted))
        });
        Some(Loss { reason: reason.to_owned(), logged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_explained_and_logged_once_a_minute_with_their_number() {
        let mut losses = Losses::default();
        let start = Instant::now();
        let mut look = |overrun: u64, evicted: u64, expired: u64, seconds: u64| {
            let now = Snapshot { overrun, evicted, expired, ..Snapshot::default() };
            let at = start + Duration::from_secs(seconds);
            losses.look(&now, WhenFull::DropOldest, at).map(|loss| (loss.reason, loss.logged))
        };
        assert_eq!(look(0, 0, 0, 0), None);
        let (reason, logged) = look(0, 5, 0, 1).unwrap();
        assert!(reason.contains("drop-oldest") && reason.contains("queue_mb_max"), "{reason}");
        assert_eq!(logged, Some(5));
        assert_eq!(look(0, 5, 0, 2), None);
        // Within the minute it is in the state, not in the log.
        assert_eq!(look(7, 6, 0, 3).unwrap().1, None);
        let (reason, logged) = look(9, 6, 1, 61).unwrap();
        assert!(reason.contains("cannot be written"), "{reason}");
        assert_eq!(logged, Some(11));
        assert!(look(9, 6, 2, 62).unwrap().0.contains("age_max"));
    }
}
