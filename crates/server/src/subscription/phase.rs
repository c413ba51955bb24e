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
/// What has to be left of both for a cycle that has found its place: a move costs a value or two, and times vary.
const MARGIN_KEPT: u32 = PIECES / 8;
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
    /// The cycle that has been moved, and is longer or shorter than the others, says nothing.
    moving: bool,
    /// Whether its place was found to be good, or chosen.
    settled: bool,
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
            moving: false,
            settled: false,
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
        self.settled = false;
    }

    /// A cycle begins. Sometimes it says where the next ones may stand.
    pub(crate) fn turn(&mut self) -> Option<Room> {
        if self.moving {
            self.watch(self.watching, self.left);
            return None;
        }
        self.cycles += u32::from(self.items > 0 || self.cycles > 0);
        self.items_most = self.items_most.max(self.items);
        self.items = 0;
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return None;
        }
        if !self.watching {
            self.watch(true, WINDOW);
            return None;
        }
        if self.changes == 0 {
            // Nobody wrote.
            self.watch(true, WINDOW);
            return Some(Room::ANYWHERE);
        }
        self.matched = self.is_matched();
        if !self.matched && !self.doubted {
            self.doubted = true;
            self.watch(true, WINDOW);
            return None;
        }
        self.doubted = false;
        let room = if self.matched { self.verdict() } else { Some(Room::ANYWHERE) };
        self.settled = self.matched;
        if !room.is_some_and(|room| room.must) {
            self.moves = 0;
            self.watch(false, PAUSE);
            return room;
        }
        // One move should be enough; who has to move again and again has a source that no phase suits.
        self.moves += 1;
        match self.moves {
            1 => self.watch(true, WINDOW),
            more => self.watch(false, PAUSE << more.min(BACKOFF_MAX)),
        }
        self.moving = true;
        room
    }

    fn watch(&mut self, watching: bool, cycles: u32) {
        *self = Self {
            left: cycles,
            watching,
            settled: self.settled,
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

    /// Where a cycle may stand, if anywhere.
    fn verdict(&self) -> Option<Room> {
        let written = self.written;
        if written == 0 {
            return Some(Room::ANYWHERE);
        }
        let (before, behind) = (written.trailing_zeros(), written.leading_zeros());
        let (margin_before, margin_behind) =
            if self.settled { (MARGIN_KEPT, MARGIN_KEPT) } else { (MARGIN_BEFORE, MARGIN_BEHIND) };
        let must = self.torn || before < margin_before || behind < margin_behind;
        let (start, len) = if must { widest_gap(written) } else { (PIECES - behind, before + behind) };
        (len >= GAP_MIN).then(|| Room {
            first: (start + MARGIN_BEHIND) % PIECES,
            places: len - MARGIN_BEFORE - MARGIN_BEHIND + 1,
            must,
        })
    }
}

/// Where the cycles of a subscription may stand, in pieces of its interval before where they stand now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    first: u32,
    places: u32,
    /// Whether they cannot stay.
    pub(crate) must: bool,
}

impl Room {
    /// Nothing speaks against any place.
    pub(crate) const ANYWHERE: Self = Self { first: 0, places: PIECES, must: false };

    /// Whether `ago` ns before where it stands now is in it. Pieces are counted from where each stands: for who need not
    /// move, a piece more on both sides is what others may have found good.
    pub(crate) fn holds(&self, ago: u64, interval: u64) -> bool {
        let piece = u128::from(ago) * u128::from(PIECES) / u128::from(interval.max(1));
        let slack = u32::from(!self.must);
        (piece as u32 + PIECES + slack - self.first) % PIECES < self.places + 2 * slack
    }

    /// The place that is best, as a move in ns, later if positive; `seed` spreads subscriptions that look for the
    /// same gap.
    pub(crate) fn best(&self, interval: u64, seed: u32) -> i64 {
        let usable = self.places.min(SPREAD);
        let spread = seed.wrapping_mul(0x9e37_79b9) >> 16;
        let ago = (self.first + (self.places - usable) * 2 / 3 + spread % usable) % PIECES;
        let interval = i64::try_from(interval).unwrap_or(i64::MAX);
        shorter_way(i64::from(ago).saturating_mul(interval / i64::from(PIECES)), interval)
    }
}

/// A cycle that should have been `ago` earlier can as well be `interval - ago` later.
pub(crate) fn shorter_way(ago: i64, interval: i64) -> i64 {
    if ago <= interval / 2 { -ago } else { interval - ago }
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

    /// By how much the next cycle moves if no other one attracts it, ns.
    fn turn(finder: &mut PhaseFinder) -> i64 {
        finder.turn().filter(|room| room.must).map_or(0, |room| room.best(INTERVAL, 7))
    }

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
            let shift = turn(&mut finder) / 100;
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
            turn(finder)
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
                moves += u32::from(turn(&mut finder) != 0);
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

    #[test]
    fn rooms_hold_what_is_free() {
        // Written just before the cycle, and nowhere else.
        let finder = PhaseFinder { written: 1, ..PhaseFinder::default() };
        let room = finder.verdict().unwrap();
        assert!(room.must);
        let holds = |percent: u64| room.holds(INTERVAL / 100 * percent, INTERVAL);
        assert_eq!([0, 20, 30, 50, 70, 80, 99].map(holds), [false, false, true, true, true, false, false]);
        // In the middle: it may stay, and stand a little earlier or later.
        let finder = PhaseFinder { written: 1 << 16, ..PhaseFinder::default() };
        let room = finder.verdict().unwrap();
        assert!(!room.must);
        let holds = |percent: u64| room.holds(INTERVAL / 100 * percent, INTERVAL);
        assert_eq!([0, 20, 35, 50, 65, 80, 99].map(holds), [true, true, false, false, false, true, true]);
        assert!((0..100).all(|percent| Room::ANYWHERE.holds(INTERVAL / 100 * percent, INTERVAL)));
    }

    #[test]
    fn who_has_a_place_keeps_it_until_writes_come_really_near() {
        let must = |settled, piece: u32| {
            let finder = PhaseFinder { written: 1 << piece, settled, ..PhaseFinder::default() };
            finder.verdict().unwrap().must
        };
        assert_eq!([3, 5, 7, 8, 16, 23, 24, 26, 28].map(|piece| must(false, piece)), {
            [true, true, true, false, false, false, true, true, true]
        });
        assert_eq!([3, 5, 7, 8, 16, 23, 24, 26, 28].map(|piece| must(true, piece)), {
            [true, false, false, false, false, false, false, false, true]
        });
    }

    proptest! {
        #[test]
        fn the_best_place_is_in_the_room(written: u32, torn: bool, seed: u32) {
            let finder = PhaseFinder { written, torn, ..PhaseFinder::default() };
            if let Some(room) = finder.verdict() {
                let ago = (-room.best(INTERVAL, seed)).rem_euclid(INTERVAL as i64);
                prop_assert!(room.holds(ago as u64, INTERVAL), "{room:?} {ago}");
            }
        }

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
