//! The phase of a subscription within its publishing interval: directly after the writes of its variables.
//!
//! 1. Each message shows when its values were written. Most writers are periodic, usually with the same interval.
//! 2. If the last writes are concentrated in one part of the interval, the phase moves directly after that part. Of
//!    several such parts, it selects the one that minimizes the mean age of all values.
//! 3. From then on the phase follows the last write of each burst, at a distance that covers its variation.
//! 4. If items are missing that came in every cycle, the burst is late or not complete: the cycle waits for them, for
//!    at most a quarter of the interval, or three quarters if nothing has arrived. If it waits repeatedly, the phase
//!    moves later.
//!    Where cycles are empty too often for that, one of them waits now and then: late writes would otherwise never be seen
//!    if each of them is overwritten by an early one.
//! 5. A distance that has grown is reduced on trial now and then: if all items arrive earlier, the cycle becomes
//!    earlier.
//! 6. The phase follows a drift of up to 1 ‰, so that the mean interval stays the revised one. A writer with a larger
//!    deviation passes through, and the phase stays.
//! 7. A move shortens one cycle, at most by half, because a shorter cycle never loses a value. Moves become rare if
//!    they do not help.
//! 8. Without a periodic writer all phases are equivalent: such subscriptions use the phase of others with the same
//!    interval, so that one turn serves them all.

use taktwerk_types::Instant;

/// Number of pieces of the interval for the histogram of writes.
const PIECES: usize = 32;
/// The weight of one message's writes in the histogram, which loses an eighth with each message.
const WEIGHT: u32 = 512;
/// Phases are multiples of this fraction of the interval, or of [`STEP_MAX`] ns if that is shorter, so that
/// subscriptions after one burst share wake-ups.
const STEPS: i64 = 256;
const STEP_MAX: i64 = 250_000;
/// The shortest distance between the last write and the cycle, in ns: timers are not more precise.
const DISTANCE_MIN: i64 = 50_000;
/// A phase of other subscriptions is shared if it is later by at most this many steps.
const STEPS_SHARED: i64 = 4;
/// The phase moves closer to a burst only by at least this many steps.
const STEPS_CLOSER: i64 = 2;
/// Number of messages, or cycles, evaluated together.
const BLOCK: u32 = 32;
/// The same after a move, for fast convergence.
const BLOCK_FIRST: u32 = 4;
/// Minimum number of cycles between two moves; doubled with each move, up to `<< BACKOFF_MAX`.
const MOVE_PAUSE: u32 = 16;
const BACKOFF_MAX: u32 = 6;
/// The phase follows a drift of at most one part in this many. A shift by more than this fraction of the interval is no
/// drift.
const DRIFT: i64 = 1000;
const FOLLOWED_MAX: i64 = 2;
/// Cycles between two trials of a shorter distance, and after all trials.
const TRY_PAUSE: u32 = 8;
const TRIED_PAUSE: u32 = 256;

/// Number of values per message whose write times are evaluated.
pub(crate) const SAMPLES: usize = 64;

/// What a subscription does when its publishing timer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The cycle runs now, and the timer expires again at this time.
    Publish(Instant),
    /// Items are missing: the cycle has not run, and the timer expires again at this time.
    Wait(Instant),
}

/// The phases of subscriptions by interval, for sharing wake-ups: interval and phase in ns.
#[derive(Debug, Default)]
pub(crate) struct SharedPhases {
    phases: Vec<(i64, i64)>,
}

impl SharedPhases {
    /// Maximum number of intervals remembered; there are rarely more than a few.
    const MAX: usize = 64;

    fn get(&self, interval: i64) -> Option<i64> {
        self.phases.iter().find(|(of, _)| *of == interval).map(|(_, phase)| *phase)
    }

    fn set(&mut self, interval: i64, phase: i64) {
        match self.phases.iter_mut().find(|(of, _)| *of == interval) {
            Some(entry) => entry.1 = phase,
            None => {
                if self.phases.len() >= Self::MAX {
                    self.phases.remove(0);
                }
                self.phases.push((interval, phase));
            }
        }
    }

    /// The first instant after `now` at which subscriptions of an interval publish; multiples of the interval if there
    /// are none.
    pub(crate) fn first_after(&self, now: Instant, interval: u64) -> Instant {
        let (now, interval) = (signed(now.as_nanos()), signed(interval).max(1));
        let phase = self.get(interval).unwrap_or(0);
        instant(now + interval - (now - phase).rem_euclid(interval))
    }
}

/// The phase of one subscription. All times are in ns.
#[derive(Debug)]
pub(crate) struct Phase {
    interval: i64,
    /// When the next cycle is due.
    planned: i64,
    /// When the previous one was due.
    previous: i64,
    /// How long this cycle has waited for missing items, and how long the previous one had.
    waited: i64,
    waited_before: i64,
    /// When the last two cycles ran.
    ran: [i64; 2],
    /// By how much cycles must still become earlier, because a move does not fit into one.
    moving: i64,
    /// Whether this cycle has a different length.
    is_moved: bool,
    /// Cycles until the next move is allowed, and how often this pause was doubled.
    pause: u32,
    backoff: u32,
    /// Cycles since the last move.
    calm: u32,
    /// Histogram of recent write times within the interval.
    histogram: [u32; PIECES],
    /// Number of messages in it, up to a bound.
    messages: u32,
    /// Number of ready items.
    ready: Blocks<Ready>,
    /// The burst that is followed.
    rhythm: Option<Rhythm>,
}

/// A burst that is followed. Its times are relative to when cycles are due, negative before that.
#[derive(Debug)]
struct Rhythm {
    /// The last write of the burst.
    edge: Blocks<Edge>,
    /// How long after its last write the burst was complete.
    lag: i64,
    /// The part of the lag that is omitted on trial, and the number of cycles until then.
    cut: i64,
    try_in: u32,
    /// Whether the timer expires early for such a trial.
    is_try: bool,
    /// Which of the last cycles waited, one bit each.
    waits: u32,
    /// Empty cycles until one waits although nothing is expected, and the next such number.
    probe_in: u32,
    probe_pause: u32,
    /// How far the phase has recently followed the burst.
    followed: i64,
    /// Whether the phase may move closer now.
    may_close_up: bool,
}

/// Measurements in the current block and in the previous one.
#[derive(Debug, Default)]
struct Blocks<T> {
    now: T,
    len: u32,
    before: Option<T>,
}

impl<T: Default> Blocks<T> {
    /// Counts a measurement. Returns whether a block is complete.
    fn count(&mut self) -> bool {
        self.len += 1;
        let is_complete = self.len >= if self.before.is_some() { BLOCK } else { BLOCK_FIRST };
        if is_complete {
            self.before = Some(core::mem::take(&mut self.now));
            self.len = 0;
        }
        is_complete
    }
}

/// Numbers of ready items in the cycles of a block.
#[derive(Debug)]
struct Ready {
    /// The smallest numbers, negated, sorted with the smallest number first.
    fewest: [i64; Self::FEW],
    most: i64,
    len: usize,
}

impl Default for Ready {
    fn default() -> Self {
        Self { fewest: [i64::MIN; Self::FEW], most: 0, len: 0 }
    }
}

impl Ready {
    /// In one of this many cycles, fewer items than expected may be ready.
    const FEW: usize = 6;

    fn add(&mut self, ready: usize) {
        let ready = i64::try_from(ready).unwrap_or(i64::MAX);
        insert(&mut self.fewest, -ready);
        self.most = self.most.max(ready);
        self.len += 1;
    }

    /// Number of ready items in most cycles, and in the fullest.
    fn usual(&self) -> Option<(i64, i64)> {
        let fewest =
            self.fewest.get((self.len + 2) / Self::FEW).filter(|_| self.len >= BLOCK_FIRST as usize)?;
        Some((-fewest, self.most))
    }
}

/// Times of the last writes of a block's bursts.
#[derive(Debug)]
struct Edge {
    /// The three latest, the latest first.
    latest: [i64; 3],
    sum: i64,
    len: i64,
}

impl Default for Edge {
    fn default() -> Self {
        Self { latest: [i64::MIN; 3], sum: 0, len: 0 }
    }
}

impl Edge {
    fn add(&mut self, at: i64) {
        self.sum += at;
        self.len += 1;
        insert(&mut self.latest, at);
    }

    /// Cycles become due later by `by`.
    fn shift(&mut self, by: i64) {
        self.sum -= by * self.len;
        for at in &mut self.latest {
            *at = at.saturating_sub(by);
        }
    }

    /// When the burst ends, with a margin for its variation, which is uncertain after few bursts. `later` bursts may
    /// end later.
    fn end(&self, later: usize) -> Option<i64> {
        let latest = *self.latest.get(later).filter(|_| self.len > later as i64)?;
        let varies = (latest - self.sum.checked_div(self.len)?).max(0);
        Some(latest + varies / 2 + varies * i64::from(BLOCK_FIRST) / i64::from(BLOCK_FIRST).max(self.len))
    }
}

impl Rhythm {
    fn new(lag: i64) -> Self {
        Self {
            edge: Blocks::default(),
            lag,
            cut: 0,
            try_in: TRY_PAUSE,
            is_try: false,
            waits: 0,
            probe_in: 0,
            probe_pause: 0,
            followed: 0,
            may_close_up: false,
        }
    }

    /// When the burst ends. If cycles wait for it, it may sometimes end later.
    fn end(&self, waits: bool) -> Option<i64> {
        let Some(before) = &self.edge.before else { return Some(self.edge.now.end(0)? + self.lag) };
        let later = if waits { 2 } else { 0 };
        let before = before.end(if before.len > i64::from(BLOCK_FIRST) { later } else { 0 });
        Some(before.max(self.edge.now.end(later))? + self.lag)
    }

    /// The burst is complete at least `by` after its last write.
    fn lags(&mut self, by: i64, interval: i64, try_in: u32) {
        let by = by.min(interval / 2);
        if by > self.lag {
            self.try_in = try_in;
            self.followed -= by - self.lag;
            (self.lag, self.cut) = (by, by / 2);
        }
    }

    /// The last write of a burst was at `at`.
    fn follow(&mut self, at: i64) {
        self.edge.now.add(at);
        self.may_close_up |= self.edge.count();
    }

    /// Cycles become due later by `by`.
    fn shift(&mut self, by: i64) {
        self.followed += by;
        self.edge.now.shift(by);
        if let Some(before) = &mut self.edge.before {
            before.shift(by);
        }
    }

    /// A shorter lag was tried.
    fn tried(&mut self, is_complete: bool) {
        self.is_try = false;
        if is_complete {
            (self.lag, self.followed) = (self.lag - self.cut, self.followed + self.cut);
            self.cut = self.cut.min(self.lag / 2);
            self.may_close_up = true;
        } else {
            self.cut /= 2;
        }
    }

    /// Nothing is ready, and nothing is expected. Returns whether the cycle waits all the same.
    fn probes(&mut self) -> bool {
        let is_probe = self.probe_in == 0;
        if is_probe {
            self.probe_in = self.probe_pause;
            self.probe_pause = (2 * self.probe_pause + 1).min(TRIED_PAUSE);
        } else {
            self.probe_in -= 1;
        }
        is_probe
    }

    /// How much earlier the next cycle is for a trial of a shorter lag, if it is.
    fn next_try(&mut self, interval: i64) -> Option<i64> {
        let least = distance_min(interval);
        if self.lag < least {
            return None;
        }
        self.try_in = self.try_in.saturating_sub(1);
        if self.try_in > 0 {
            return None;
        }
        if self.cut < least / 2 {
            (self.cut, self.try_in) = (self.lag / 2, TRIED_PAUSE);
            return None;
        }
        (self.try_in, self.is_try) = (TRY_PAUSE, true);
        Some(self.cut)
    }
}

impl Phase {
    /// The phase of a subscription that begins now. Its first cycle ends after an interval, or earlier if others with
    /// this interval publish then.
    pub(crate) fn new(now: Instant, interval: u64, shared: &mut SharedPhases) -> Self {
        let interval = signed(interval).max(1);
        let end = signed(now.as_nanos()).saturating_add(interval);
        let planned = match shared.get(interval) {
            Some(phase) => end - (end - phase).rem_euclid(interval),
            None => {
                let planned = step_up(end, interval);
                shared.set(interval, planned.rem_euclid(interval));
                planned
            }
        };
        Self {
            interval,
            planned,
            previous: planned - interval,
            waited: 0,
            waited_before: 0,
            ran: [planned - interval; 2],
            moving: 0,
            is_moved: true,
            pause: 0,
            backoff: 0,
            calm: 0,
            histogram: [0; PIECES],
            messages: 0,
            ready: Blocks::default(),
            rhythm: None,
        }
    }

    /// When the first cycle ends.
    pub(crate) fn first(&self) -> Instant {
        instant(self.planned)
    }

    /// The publishing timer has expired, and `ready` items are ready.
    pub(crate) fn expired(&mut self, now: Instant, ready: usize, shared: &mut SharedPhases) -> Expiry {
        if let Some(at) = self.wait_until(ready) {
            return Expiry::Wait(instant(at));
        }
        self.count(ready);
        let late = (signed(now.as_nanos()) - self.planned).max(0) / self.interval;
        self.ran = [self.ran[1], signed(now.as_nanos())];
        self.previous = self.planned;
        self.planned = self.follow(self.planned + (late + 1) * self.interval, shared);
        let can_try = self.moving == 0 && self.expected() > 0;
        let rhythm = self.rhythm.as_mut().filter(|_| can_try);
        let earlier = rhythm.and_then(|rhythm| rhythm.next_try(self.interval)).unwrap_or(0);
        Expiry::Publish(instant(self.planned - earlier))
    }

    /// Number of items that are ready in every cycle; 0 if unknown.
    fn expected(&self) -> usize {
        if self.rhythm.is_none() {
            return 0;
        }
        let blocks = [Some(&self.ready.now), self.ready.before.as_ref()];
        let usual = blocks.into_iter().flatten().filter_map(Ready::usual);
        let usual = usual.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        usual.map_or(0, |(few, most)| usize::try_from(few - 2 * (most - few)).unwrap_or(0))
    }

    /// Until when the cycle waits for missing items.
    fn wait_until(&mut self, ready: usize) -> Option<i64> {
        let expected = self.expected();
        let is_complete = ready >= expected;
        let most = self.interval / 4 * if ready == 0 && expected > 0 { 3 } else { 1 };
        if let Some(rhythm) = self.rhythm.as_mut().filter(|rhythm| rhythm.is_try) {
            rhythm.tried(is_complete);
            return (!is_complete).then_some(self.planned);
        }
        if self.is_moved {
            return None;
        }
        if is_complete {
            let rhythm = self.rhythm.as_mut().filter(|_| ready == 0)?;
            if self.waited == 0 && !rhythm.probes() {
                return None;
            }
        }
        if self.waited >= most {
            // They were not late but missing.
            self.waited = 0;
            return None;
        }
        // Longer each time: few checks, however long it takes.
        self.waited = (2 * self.waited + distance_min(self.interval)).min(most);
        Some(self.planned + self.waited)
    }

    /// Records how many items were ready in a cycle.
    fn count(&mut self, ready: usize) {
        self.calm = self.calm.saturating_add(1);
        self.pause = self.pause.saturating_sub(1);
        if let Some(rhythm) = &mut self.rhythm {
            rhythm.waits = rhythm.waits << 1 | u32::from(self.waited > 0);
        }
        if !core::mem::take(&mut self.is_moved) {
            let expected = self.expected();
            self.ready.now.add(ready);
            if ready == 0 && expected > 0 && self.expected() == 0 {
                // The writers have stopped. They may resume at any time.
                self.forget();
            }
            self.ready.count();
        }
        self.waited_before = core::mem::take(&mut self.waited);
    }

    /// When the next cycle is due; `next` is the time without any change.
    fn follow(&mut self, next: i64, shared: &mut SharedPhases) -> i64 {
        let interval = self.interval;
        let own = next.rem_euclid(interval);
        let common = shared.get(interval).unwrap_or(own);
        if self.moving == 0 && self.rhythm.is_none() && self.calm.is_multiple_of(2 * BLOCK) {
            // Any phase is equally good, so use the one of others.
            self.moving = (own - common).rem_euclid(interval);
        }
        let at = if self.moving == 0 {
            self.follow_burst(next, common)
        } else {
            let part = self.moving.min(interval / 2);
            self.moving -= part;
            self.is_moved = true;
            next - part
        };
        // Subscriptions that were here, or could be, follow.
        let near = STEPS_SHARED * step(interval);
        let since_common = (own - common + near).rem_euclid(interval) - near;
        if since_common <= near && (at != next || since_common > 0) {
            shared.set(interval, at.rem_euclid(interval));
        }
        at
    }

    /// The same considering only the burst and the phase of others.
    fn follow_burst(&mut self, next: i64, common: i64) -> i64 {
        let interval = self.interval;
        let waits = self.expected() > 0;
        let Some(rhythm) = &mut self.rhythm else { return next };
        rhythm.followed -= rhythm.followed.clamp(-interval / DRIFT, interval / DRIFT);
        let Some(end) = rhythm.end(waits) else { return next };
        let by = (end + distance_min(interval)).clamp(-interval / 2, interval / 4);
        let wanted = next + by;
        let to_common = (common - wanted).rem_euclid(interval);
        let is_common = to_common <= STEPS_SHARED * step(interval);
        let at = if is_common { wanted + to_common } else { step_up(wanted, interval) };
        let may_close_up = core::mem::take(&mut rhythm.may_close_up);
        if at <= next && !(may_close_up && at <= next - STEPS_CLOSER * step(interval)) {
            return next;
        }
        rhythm.shift(at - next);
        if rhythm.followed.abs() > interval / FOLLOWED_MAX {
            self.forget();
            self.rest();
            return next;
        }
        at
    }

    /// Restarts the search for a periodic burst.
    fn forget(&mut self) {
        self.rhythm = None;
        (self.histogram, self.messages, self.pause) = ([0; PIECES], 0, 0);
    }

    /// Pauses moves for a while, longer after each one that did not help for long.
    fn rest(&mut self) {
        if self.calm > MOVE_PAUSE << (self.backoff + 4) {
            self.backoff = 0;
        }
        self.pause = MOVE_PAUSE << self.backoff;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.calm = 0;
    }

    /// A message contains values written at these times: at most [`SAMPLES`] of them.
    pub(crate) fn observe(&mut self, written: &[i64]) {
        let Some(share) = WEIGHT.checked_div(u32::try_from(written.len()).unwrap_or(0)) else { return };
        let interval = self.interval;
        self.messages = (self.messages + 1).min(BLOCK);
        for weight in &mut self.histogram {
            *weight -= weight.div_ceil(8);
        }
        // Relative to when cycles are due from now on. Later writes are those that the last cycle waited for or missed.
        let due = self.planned - interval;
        let last = self.waited_before.max(interval / 16);
        // The last sixteenth of the writes: a few irregular values do not affect many periodic ones.
        let mut latest = [i64::MIN; SAMPLES / 16 + 1];
        // Values from before the last cycle may have arrived after it: by how much that cycle was too early.
        let (mut missed, mut early) = (0, 0);
        let lag = self.rhythm.as_ref().map_or(0, |rhythm| rhythm.lag);
        for at in written {
            let since = self.ran[0].saturating_sub(*at);
            if (1..interval / 2).contains(&since) {
                (missed, early) = (missed + 1, early.max(since));
            }
            if let Some(weight) = self.histogram.get_mut(piece(at.saturating_add(lag), interval)) {
                *weight += share;
            }
            let since = at.rem_euclid(interval) - (due + last).rem_euclid(interval);
            insert(&mut latest, since.rem_euclid(interval) + last - interval);
        }
        let is_moving = self.moving != 0 || self.is_moved;
        if let (Some(rhythm), Some(at), false) = (&mut self.rhythm, latest.get(written.len() / 16), is_moving)
        {
            let least = distance_min(interval);
            if self.waited_before > 0 && rhythm.waits.count_ones() > 1 {
                rhythm.lags(self.previous + self.waited_before - due - at - least, interval, TRY_PAUSE);
            }
            if 32 * missed > written.len() {
                rhythm.lags(2 * early, interval, TRIED_PAUSE / 4);
            }
            rhythm.follow(*at);
        }
        self.waited_before = 0;
        self.choose();
    }

    /// Finds the part of the interval after which values are freshest.
    fn choose(&mut self) {
        let interval = self.interval;
        let total: i64 = self.histogram.iter().map(|weight| i64::from(*weight)).sum();
        if self.moving != 0 || self.pause > 0 || total == 0 {
            return;
        }
        // Twice the sum of all ages at the beginning of each piece, in pieces.
        let ages = self.histogram.iter().enumerate();
        let mut age: i64 = ages.map(|(at, weight)| i64::from(*weight) * (2 * (PIECES - at) as i64 - 1)).sum();
        let here = piece(self.planned, interval);
        let (mut best, mut least, mut age_here) = (0, i64::MAX, i64::MAX);
        for (at, weight) in self.histogram.iter().enumerate() {
            if age < least {
                (best, least) = (at, age);
            }
            if at == here || at == (here + 1) % PIECES {
                age_here = age_here.min(age);
            }
            age += 2 * total - 2 * PIECES as i64 * i64::from(*weight);
        }
        let mean_is_at_most = |pieces: i64| least <= 2 * pieces * total;
        let is_worth_it = match self.rhythm {
            Some(_) => least + 2 * 5 * total < age_here,
            None => {
                (self.messages >= 3 && mean_is_at_most(2)) || (self.messages >= 12 && mean_is_at_most(10))
            }
        };
        if !is_worth_it {
            return;
        }
        let ago = (self.planned - best as i64 * interval / PIECES as i64).rem_euclid(interval);
        self.moving = match ago {
            // It follows the burst from here.
            near if near <= interval / 16 => 0,
            ago => ago,
        };
        self.rest();
        if self.rhythm.is_none() {
            self.ready = Blocks::default();
        }
        let lag = self.rhythm.as_ref().map_or(0, |rhythm| rhythm.lag);
        self.rhythm = Some(Rhythm::new(lag));
    }
}

/// Inserts a number into the sorted list of the largest.
fn insert(largest: &mut [i64], number: i64) {
    let mut number = number;
    for place in largest {
        if number > *place {
            core::mem::swap(&mut number, place);
        }
    }
}

/// The piece of the interval that contains an instant.
fn piece(at: i64, interval: i64) -> usize {
    (i128::from(at.rem_euclid(interval)) * PIECES as i128 / i128::from(interval)) as usize
}

/// The first shared phase at or after an instant.
fn step_up(at: i64, interval: i64) -> i64 {
    let (phase, step) = (at.rem_euclid(interval), step(interval));
    at + ((step - phase % step) % step).min(interval - phase)
}

/// The distance between phases.
fn step(interval: i64) -> i64 {
    (interval / STEPS).clamp(1, STEP_MAX)
}

/// The shortest distance between the last write and the cycle.
fn distance_min(interval: i64) -> i64 {
    step(interval).max(DISTANCE_MIN)
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

fn instant(nanos: i64) -> Instant {
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[cfg(test)]
mod tests;
