//! When the table is drawn again: at once after a key, and only now and then while events arrive.
//!
//! Drawing sorts all alarms. A refresh of 10 000 alarms must not be drawn 10 000 times: no event would be received meanwhile.

use std::time::Duration;
use taktwerk_types::Instant;

/// Shortest time between two drawings because of events.
const EVERY: Duration = Duration::from_millis(100);
/// With many alarms, drawing takes at most one part in this many plus one of the time.
const REST: u32 = 4;

#[derive(Debug)]
pub(super) struct Pace {
    due: Option<Instant>,
    /// Events do not cause a drawing before this time.
    earliest: Instant,
}

impl Pace {
    /// The first drawing is due now.
    pub(super) fn new(now: Instant) -> Self {
        Self { due: Some(now), earliest: now }
    }

    /// The user expects an answer.
    pub(super) fn at_once(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Something has changed.
    pub(super) fn soon(&mut self, now: Instant) {
        self.due.get_or_insert(self.earliest.max(now));
    }

    /// The time of the next drawing, if one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether to draw now: at the end also what has changed since the last drawing.
    pub(super) fn is_due(&self, now: Instant, is_over: bool) -> bool {
        self.due.is_some_and(|due| due <= now || is_over)
    }

    /// The table was drawn.
    pub(super) fn drawn(&mut self, began: Instant, now: Instant) {
        self.due = None;
        self.earliest = now + EVERY.max(now.since(began) * REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn the_last_changes_are_drawn_at_the_end() {
        let mut pace = Pace::new(START);
        assert!(pace.is_due(START, false));
        pace.drawn(START, START);
        let now = START + Duration::from_millis(10);
        assert!(!pace.is_due(now, true), "nothing has changed");
        pace.soon(now);
        assert!(!pace.is_due(now, false) && pace.is_due(now, true));
    }

    /// Draws whenever it is due, which takes `cost`, and takes an event every millisecond otherwise.
    fn drawings(cost: Duration, total: Duration) -> u32 {
        let (mut pace, mut now, mut count) = (Pace::new(START), START, 0);
        while now < START + total {
            if pace.is_due(now, false) {
                let began = now;
                now = now + cost;
                pace.drawn(began, now);
                count += 1;
            }
            now = now + Duration::from_millis(1);
            pace.soon(now);
        }
        count
    }

    #[test]
    fn a_flood_of_events_is_drawn_now_and_then() {
        assert!((95..=101).contains(&drawings(Duration::from_micros(10), Duration::from_secs(10))));
        // 100 000 alarms: a fifth of the time is spent on drawing.
        assert!((38..=41).contains(&drawings(Duration::from_millis(50), Duration::from_secs(10))));
    }

    #[test]
    fn keys_and_single_events_are_shown_at_once() {
        let mut pace = Pace::new(START);
        assert_eq!(pace.due(), Some(START));
        pace.drawn(START, START);
        assert_eq!(pace.due(), None);
        let soon = START + Duration::from_millis(10);
        pace.soon(soon);
        assert_eq!(pace.due(), Some(START + EVERY));
        pace.at_once(soon);
        assert_eq!(pace.due(), Some(soon));
        pace.drawn(soon, soon);
        let later = soon + Duration::from_secs(1);
        pace.soon(later);
        assert_eq!(pace.due(), Some(later));
    }
}
