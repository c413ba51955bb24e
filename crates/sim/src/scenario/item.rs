//! The promise of a monitored item: every value that was written arrives, in order, or it is said that some are missing.
//!
//! Values count up, so that a gap shows. The model knows one sentence and nothing of how servers work.

/// What is known of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// The number that came last; none yet if negative.
    pub(super) last: i64,
    /// Something was lost since, and the application was told.
    lossy: bool,
    /// Values that may come a second time: after a loss the client asks for the present ones (ResendData).
    repeats: u8,
}

impl Default for Item {
    fn default() -> Self {
        Self { last: -1, lossy: false, repeats: 0 }
    }
}

/// What an item promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Every value.
    Each,
    /// No value twice or out of order: items that sample or have no queue leave values out.
    Order,
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It is a new one.
    New,
    /// It was known.
    Again,
    /// It breaks the promise.
    Wrong,
}

impl Item {
    /// The application was told that values may be missing.
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
    fn a_gap_must_be_told() {
        use Came::{Again, New, Wrong};
        let none = usize::MAX;
        assert_eq!(take(&[(3, false), (4, false), (6, false)], none, Rule::Each), [New, New, Wrong]);
        assert_eq!(take(&[(3, false), (6, true), (7, false)], none, Rule::Each), [New, New, New]);
        assert_eq!(take(&[(3, false), (6, false), (6, false)], none, Rule::Order), [New, New, Wrong]);
        assert_eq!(take(&[(3, false), (2, true)], none, Rule::Each), [New, Wrong]);
        assert_eq!(take(&[(3, false), (9, false), (10, false)], 1, Rule::Each), [New, New, New]);
        // After a loss, the present value may come again once.
        assert_eq!(take(&[(3, false), (3, false), (4, false)], 1, Rule::Each), [New, Again, New]);
        assert_eq!(take(&[(3, false), (2, false)], 1, Rule::Each), [New, Wrong]);
    }
}
