//! Where in its interval a subscription publishes: not where its values are being written.
//!
//! A source that writes as often as a subscription publishes is seen exactly once per cycle, except if both happen at
//! about the same time: then a write that is a little late is missed by one cycle, and the next cycle finds two, of
//! which a queue of one keeps the newest. Nothing is wrong with either side, and still values are lost. So a
//! subscription watches for some cycles when its values were written, and if its own cycle stands too close, or values
//! were lost this way, it moves once, into the widest gap. There it stands nearer to the writes before it than to those
//! behind it: values are fresher, and a shard with many items to publish is done before they change again. Sources of any
//! other rate leave it where it is.

/// The interval is cut into so many pieces.
const PIECES: u32 = u32::BITS;
/// Pieces before a cycle that have to be free of writes: a quarter of the interval. Sources give one time to many
/// values, and go on writing for a while after it.
const MARGIN_BEFORE: u32 = PIECES / 4;
/// Pieces behind a cycle that have to be free: a quarter as well, because publishing takes time, above all if many
/// subscriptions of a shard do it together.
const MARGIN_BEHIND: u32 = PIECES / 4;
/// Subscriptions that move share so many pieces.
const SPREAD: u32 = PIECES / 4;
/// Changes in one cycle that tell of a lost value, where one is the rule.
pub(crate) const TORN: u32 = 2;
/// A gap of fewer pieces is not worth a move.
const GAP_MIN: u32 = PIECES / 2;
/// Cycles that are watched before anything is decided.
const WINDOW: u32 = 6;
/// Cycles with changes that a rate can be told from.
const CYCLES_MIN: u32 = 4;
/// Cycles between windows while all is well: clocks of sources drift.
const PAUSE: u32 = 64;
/// Moves that did not help make the pauses longer, up to `PAUSE << BACKOFF_MAX` cycles.
const BACKOFF_MAX: u32 = 8;

/// What one subscription has seen of its writers.
#[derive(Debug)]
pub(crate) struct PhaseFinder {
    /// Cycles left in this window or pause.
    left: u32,
    watching: bool,
    /// Moves in a row.
    moves: u32,
    /// Whether the writers were as fast as the cycles when they were watched last.
    matched: bool,
    /// Whether the last window said that they were not; one hiccup of theirs is no rate.
    doubted: bool,
    /// Whether a value was overwritten by the next one before it was published.
    torn: bool,
    /// Pieces in which writes fell; bit 0 is the piece just before the cycle.
    written: u32,
    /// Changes that the items went through, those included that were overwritten.
    changes: u64,
    /// Cycles since the first change was seen, that one included: items report their first value without a change.
    cycles: u32,
    /// Items seen in this cycle, and in the fullest one.
    items: u32,
    items_most: u32,
}

impl Default for PhaseFinder {
    fn default() -> Self {
        Self {
            left: WINDOW,
            watching: true,
            moves: 0,
            matched: false,
            doubted: false,
            torn: false,
            written: 0,
            changes: 0,
            cycles: 0,
            items: 0,
            items_most: 0,
        }
    }
}

impl PhaseFinder {
    /// Whether [`PhaseFinder::note`] is wanted.
    #[inline]
    pub(crate) fn is_watching(&self) -> bool {
        self.watching
    }

    /// An item is published: how often its variable changed since the last time, and how long ago the newest change
    /// was (100 ns), with the interval in the same unit.
    #[inline]
    pub(crate) fn note(&mut self, changes: u32, age: i64, interval: i64) {
        self.changes += u64::from(changes);
        self.torn |= changes == TORN;
        self.items += 1;
        if interval > 0 {
            // A clock that was set back makes an age negative for one cycle.
            let piece = i128::from(age.rem_euclid(interval)) * i128::from(PIECES) / i128::from(interval);
            self.written |= 1 << (piece as u32 & (PIECES - 1));
        }
    }

    /// In a cycle that was not watched some item had changed [`TORN`] times.
    pub(crate) fn was_torn(&mut self) {
        if self.matched {
            self.left = self.left.min(1);
        }
    }

    /// Items were added: what has been seen so far says nothing about them.
    pub(crate) fn restart(&mut self) {
        self.watch(true, WINDOW + 1);
    }

    /// A cycle begins. Returns by how much the next one should be moved, ns; mostly 0. `seed` spreads subscriptions
    /// that look for the same gap.
    pub(crate) fn turn(&mut self, interval: u64, seed: u32) -> i64 {
        self.cycles += u32::from(self.items > 0 || self.cycles > 0);
        self.items_most = self.items_most.max(self.items);
        self.items = 0;
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return 0;
        }
        if !self.watching {
            self.watch(true, WINDOW);
            return 0;
        }
        if self.changes == 0 {
            // Nobody wrote.
            self.watch(true, WINDOW);
            return 0;
        }
        self.matched = self.is_matched();
        if !self.matched && !self.doubted {
            self.doubted = true;
            self.watch(true, WINDOW);
            return 0;
        }
        self.doubted = false;
        let pieces = if self.matched { self.verdict(seed) } else { 0 };
        if pieces == 0 {
            self.moves = 0;
            self.watch(false, PAUSE);
            return 0;
        }
        // One move should be enough; who has to move again and again has a source that no phase suits.
        self.moves += 1;
        match self.moves {
            1 => self.watch(true, WINDOW),
            more => self.watch(false, PAUSE << more.min(BACKOFF_MAX)),
        }
        let interval = i64::try_from(interval).unwrap_or(i64::MAX);
        i64::from(pieces).saturating_mul(interval / i64::from(PIECES))
    }

    fn watch(&mut self, watching: bool, cycles: u32) {
        *self = Self {
            left: cycles,
            watching,
            moves: self.moves,
            matched: self.matched,
            doubted: self.doubted,
            ..Self::default()
        };
    }

    /// Whether values change about once per cycle; at another rate there is nothing to avoid.
    fn is_matched(&self) -> bool {
        let expected = u64::from(self.items_most) * u64::from(self.cycles);
        self.cycles >= CYCLES_MIN && (expected * 4 / 5..=expected * 5 / 4).contains(&self.changes)
    }

    /// By how many pieces to move, later if positive.
    fn verdict(&self, seed: u32) -> i32 {
        let written = self.written;
        let (before, behind) = (written.trailing_zeros(), written.leading_zeros());
        if written == 0 || (!self.torn && before >= MARGIN_BEFORE && behind >= MARGIN_BEHIND) {
            return 0;
        }
        let (start, len) = widest_gap(written);
        if len < GAP_MIN {
            return 0;
        }
        // Where a cycle may stand, counted from the end of the gap backwards.
        let places = len - MARGIN_BEFORE - MARGIN_BEHIND + 1;
        let usable = places.min(SPREAD);
        let spread = seed.wrapping_mul(0x9e37_79b9) >> 16;
        let ago = (start + MARGIN_BEHIND + (places - usable) * 2 / 3 + spread % usable) % PIECES;
        // A cycle that should have been `ago` pieces earlier can as well be `PIECES - ago` later: the shorter way.
        let ago = ago as i32;
        if ago <= PIECES as i32 / 2 { -ago } else { PIECES as i32 - ago }
    }
}

/// The longest run of pieces without writes, in a circle: where it starts and how long it is.
fn widest_gap(written: u32) -> (u32, u32) {
    (0..PIECES)
        .map(|start| (start, written.rotate_right(start).trailing_zeros()))
        .max_by_key(|(start, len)| (*len, core::cmp::Reverse(*start)))
        .unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 100 ms in ns and in 100 ns.
    const INTERVAL: u64 = 100_000_000;
    const TICKS: i64 = 1_000_000;

    /// Runs cycles; `write` gives changes and age (100 ns) of one item in a cycle at a phase. Returns the final phase
    /// and the number of moves.
    fn run(cycles: u64, mut phase: i64, write: impl Fn(u64, i64) -> (u32, i64)) -> (i64, u32) {
        let mut finder = PhaseFinder::default();
        let mut moves = 0;
        for cycle in 0..cycles {
            if finder.is_watching() {
                let (changes, age) = write(cycle, phase);
                if changes > 0 {
                    finder.note(changes, age, TICKS);
                }
            }
            let shift = finder.turn(INTERVAL, 7) / 100;
            moves += u32::from(shift != 0);
            phase = (phase + shift).rem_euclid(TICKS);
        }
        (phase, moves)
    }

    #[test]
    fn a_cycle_behind_its_writer_moves_away_once() {
        // Writes at phase 0.
        let (phase, moves) = run(200, 10_000, |_, phase| (1, phase));
        assert_eq!(moves, 1);
        assert!((330_000..600_000).contains(&phase), "{phase}");
        let (phase, moves) = run(200, 990_000, |_, phase| (1, phase));
        assert_eq!(moves, 1);
        assert!((330_000..600_000).contains(&phase), "{phase}");
    }

    #[test]
    fn torn_cycles_are_recognised() {
        // The writer is on time every other cycle: nothing, then two.
        let (phase, moves) = run(200, 5_000, |cycle, phase| match (phase, cycle % 2) {
            (5_000, 0) => (0, 0),
            (5_000, _) => (2, 1_000),
            _ => (1, phase),
        });
        assert_eq!(moves, 1);
        assert!((330_000..600_000).contains(&phase), "{phase}");
    }

    #[test]
    fn torn_cycles_end_a_pause() {
        let mut finder = PhaseFinder::default();
        let cycle = |finder: &mut PhaseFinder, changes| {
            if finder.is_watching() {
                finder.note(changes, 700_000, TICKS);
            } else if changes == TORN {
                finder.was_torn();
            }
            finder.turn(INTERVAL, 3)
        };
        while finder.is_watching() {
            assert_eq!(cycle(&mut finder, 1), 0);
        }
        assert_eq!(cycle(&mut finder, TORN), 0);
        assert!(finder.is_watching());
        // Times look well, but the values say that the writers are still at it.
        let moved: Vec<i64> =
            (0..WINDOW).map(|at| cycle(&mut finder, if at == 3 { TORN } else { 1 })).collect();
        assert_eq!(moved.iter().filter(|shift| **shift != 0).count(), 1);
        // Into the first half of the gap.
        let age = 70_000_000 + moved.last().unwrap();
        assert!((33_000_000..60_000_000).contains(&age), "{age}");
    }

    #[test]
    fn first_values_and_a_hiccup_do_not_hide_the_rate() {
        // Two items, one a little early, one a little late; nothing in the first cycle, as after items were added.
        for silent in [0..1, 0..2, 3..5, 0..4] {
            let mut finder = PhaseFinder::default();
            finder.restart();
            let mut moves = 0;
            for cycle in 0..40 {
                if finder.is_watching() && !silent.contains(&cycle) {
                    finder.note(1 + cycle % 2 * (cycle / 4 % 2), 10_000, TICKS);
                    finder.note(1, 1_000, TICKS);
                }
                moves += u32::from(finder.turn(INTERVAL, 7) != 0);
            }
            assert!(moves > 0, "{silent:?}");
        }
    }

    #[test]
    fn a_cycle_in_the_middle_stays() {
        assert_eq!(run(500, 500_000, |_, phase| (1, phase)), (500_000, 0));
    }

    #[test]
    fn other_rates_are_left_alone() {
        assert_eq!(run(500, 1_000, |_, _| (10, 1_000)), (1_000, 0));
        assert_eq!(run(500, 1_000, |cycle, _| (u32::from(cycle % 10 == 0), 1_000)), (1_000, 0));
        assert_eq!(run(500, 1_000, |_, _| (0, 0)), (1_000, 0));
    }

    #[test]
    fn a_source_that_no_phase_suits_is_given_up() {
        // Always written right before we look, wherever that is.
        let (_, moves) = run(10_000, 1_000, |_, _| (1, 1_000));
        assert!((2..12).contains(&moves), "{moves}");
    }

    proptest! {
        #[test]
        fn the_gap_is_free_and_the_widest(written in 1u32..) {
            let (start, len) = widest_gap(written);
            for piece in 0..len {
                prop_assert_eq!(written >> ((start + piece) % PIECES) & 1, 0);
            }
            for other in 0..PIECES {
                prop_assert!(written.rotate_right(other).trailing_zeros() <= len);
            }
        }

        #[test]
        fn moves_end_in_the_free_part(from in 0i64..TICKS, width in 0i64..200_000) {
            // Writes spread over the first `width` of each interval.
            let (phase, moves) = run(400, from, |cycle, phase| (1, phase - (cycle as i64 * 37_777) % (width + 1)));
            prop_assert!(moves <= 1, "{moves}");
            if moves == 1 {
                prop_assert!(phase > width + 200_000 && phase < TICKS - 200_000, "{phase} {width}");
            }
        }
    }
}
