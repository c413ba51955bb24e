//! The promise of a monitored item: every written value arrives, in order, or the application is notified that values
//! are missing.
//!
//! Values count up, so a gap is visible. The model knows only this rule and nothing about how servers work.

/// State of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// The last received number; negative before the first value.
    pub(super) last: i64,
    /// The application was notified of a loss since the last value.
    lossy: bool,
    /// Number of values that may arrive a second time: after a loss the client requests the current values
    /// (ResendData).
    repeats: u8,
}

impl Default for Item {
    fn default() -> Self {
        Self { last: -1, lossy: false, repeats: 0 }
    }
}

/// The rule for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Every value must arrive.
    Each,
    /// No value may arrive twice or out of order. Values may be missing, because items that sample or have no queue
    /// skip values.
    Order,
}

/// The classification of a received value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It is a new one.
    New,
    /// It was already known.
    Again,
    /// It violates the promise.
    Wrong,
}

impl Item {
    /// The application was notified that values may be missing.
    pub(super) fn lose(&mut self) {
        self.lossy = true;
        self.repeats = self.repeats.saturating_add(1);
    }

    /// A value arrives.
    pub(super) fn take(&mut self, number: i64, overflow: bool, rule: Rule) -> Came {
        if self.repeats > 0 && number == self.last {
            self.repeats -= 1;
            return Came::Again;
        }
        let follows = match self.last {
            last if last < 0 => true,
            last if self.lossy => number >= last,
            last if overflow || rule == Rule::Order => number > last,
            last => number == last + 1,
        };
        if !follows {
            return Came::Wrong;
        }
        let is_new = number > self.last;
        (self.last, self.lossy) = (number, false);
        if is_new { Came::New } else { Came::Again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(values: &[(i64, bool)], lose_before: usize, rule: Rule) -> Vec<Came> {
        let mut item = Item::default();
        let mut came = Vec::new();
        for (at, (number, overflow)) in values.iter().enumerate() {
            if at == lose_before {
                item.lose();
            }
            came.push(item.take(*number, *overflow, rule));
        }
        came
    }

    #[test]
    fn a_gap_must_be_reported() {
        use Came::{Again, New, Wrong};
        let none = usize::MAX;
        assert_eq!(take(&[(3, false), (4, false), (6, false)], none, Rule::Each), [New, New, Wrong]);
        assert_eq!(take(&[(3, false), (6, true), (7, false)], none, Rule::Each), [New, New, New]);
        assert_eq!(take(&[(3, false), (6, false), (6, false)], none, Rule::Order), [New, New, Wrong]);
        assert_eq!(take(&[(3, false), (2, true)], none, Rule::Each), [New, Wrong]);
        assert_eq!(take(&[(3, false), (9, false), (10, false)], 1, Rule::Each), [New, New, New]);
        // After a loss, the current value may arrive once more.
        assert_eq!(take(&[(3, false), (3, false), (4, false)], 1, Rule::Each), [New, Again, New]);
        assert_eq!(take(&[(3, false), (2, false)], 1, Rule::Each), [New, Wrong]);
    }
}
