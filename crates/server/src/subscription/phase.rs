//! When in its interval a subscription publishes: right behind the writes of its variables.
//!
//! 1. Each message tells when its values were written. Most writers have a rhythm, and most often that of the interval.
//! 2. If the last writes stand together in one part of the interval, the phase moves right behind that part. Of several
//!    such parts it takes the one behind which the mean age of all values is smallest.
//! 3. From then on the phase follows the last write of each burst, at a distance that covers how much it varies.
//! 4. If items that came in every cycle are missing, the burst is late or still under way: the cycle waits for them, a
//!    quarter of the interval at most, or three if nothing is there. If it waits again and again, the phase moves later.
//! 5. A distance that has grown is tried shorter now and then: if all items are there earlier, the cycle is earlier.
//! 6. The phase follows a drift of up to 1 ‰, so that the mean interval stays the revised one. A writer that is off by
//!    more passes through, and the phase stays where it is.
//! 7. A move makes one cycle shorter, at most by half, because a shorter cycle never loses a value. Moves become rare if
//!    they do not help.
//! 8. Without a rhythm every phase is as good as another: such subscriptions stand where others of their interval do, so
//!    that one turn serves them all.

use taktwerk_types::Instant;

/// The interval is cut into so many pieces to see where writes stand.
const PIECES: usize = 32;
/// The weight of one message's writes in the histogram, which forgets an eighth with each message.
const WEIGHT: u32 = 512;
/// Phases are multiples of this part of the interval, or of this time in ns if it is shorter: so subscriptions behind one
/// burst share wake-ups.
const STEPS: i64 = 256;
const STEP_MAX: i64 = 250_000;
/// The shortest distance between the last write and the cycle, ns: timers are no better.
const DISTANCE_MIN: i64 = 50_000;
/// The phase of others is good enough to share it if it is later by no more than so many steps.
const STEPS_SHARED: i64 = 4;
/// The phase comes closer to a burst by no less than so many steps.
const STEPS_CLOSER: i64 = 2;
/// Messages, or cycles, that are looked at together.
const BLOCK: u32 = 32;
/// The same after a move, to come close soon.
const BLOCK_FIRST: u32 = 4;
/// Cycles between two moves, at least; doubled with each up to `<< BACKOFF_MAX`.
const MOVE_PAUSE: u32 = 16;
const BACKOFF_MAX: u32 = 6;
/// The phase follows a drift of one part in so many. What takes it further than this part of the interval is no drift.
const DRIFT: i64 = 1000;
const FOLLOWED_MAX: i64 = 2;
/// Cycles between two tries of a shorter distance, and after all of them were made.
const TRY_PAUSE: u32 = 8;
const TRIED_PAUSE: u32 = 256;

/// Of how many values of a message the times are looked at.
pub(crate) const SAMPLES: usize = 64;

/// What a subscription does when its publishing timer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The cycle runs now, and the timer expires again at this time.
    Publish(Instant),
    /// Items are missing: the timer expires again at this time, and the cycle has not run.
    Wait(Instant),
}

/// Where subscriptions of each interval publish, to share wake-ups: the interval and the phase in ns.
#[derive(Debug, Default)]
pub(crate) struct SharedPhases {
    phases: Vec<(i64, i64)>,
}

impl SharedPhases {
    /// Intervals that are remembered; there are rarely more than a handful.
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

    /// The first instant after `now` at which subscriptions of an interval publish; multiples of it if there are none.
    pub(crate) fn first_after(&self, now: Instant, interval: u64) -> Instant {
        let (now, interval) = (signed(now.as_nanos()), signed(interval).max(1));
        let phase = self.get(interval).unwrap_or(0);
        instant(now + interval - (now - phase).rem_euclid(interval))
    }
}

/// The phase of one subscription. All times are ns.
#[derive(Debug)]
pub(crate) struct Phase {
    interval: i64,
    /// When the cycle is due that comes next.
    planned: i64,
    /// When the one before it was due.
    previous: i64,
    /// How long this cycle has waited for missing items, and how long the one before it had.
    waited: i64,
    waited_before: i64,
    /// When the last two cycles ran.
    ran: [i64; 2],
    /// By how much cycles have yet to become earlier, because a move does not fit one.
    moving: i64,
    /// Whether this cycle is longer or shorter than the others.
    is_moved: bool,
    /// Cycles until the next move is allowed, and how often that was doubled.
    pause: u32,
    backoff: u32,
    /// Cycles since the last move.
    calm: u32,
    /// Where in the interval values were written lately.
    histogram: [u32; PIECES],
    /// Messages in it, up to a bound.
    messages: u32,
    /// How many items were ready.
    ready: Blocks<Ready>,
    /// The burst that is followed.
    rhythm: Option<Rhythm>,
}

/// A burst that is followed. Its times count from when cycles are due, negative before it.
#[derive(Debug)]
struct Rhythm {
    /// The last write of the burst.
    edge: Blocks<Edge>,
    /// How long after its last write the burst was complete.
    lag: i64,
    /// A part of the lag that is tried to be left out, and in how many cycles.
    cut: i64,
    try_in: u32,
    /// Whether the timer expires early for such a try.
    is_try: bool,
    /// Which of the last cycles waited, a bit each.
    waits: u32,
    /// How far the phase has followed the burst lately.
    followed: i64,
    /// Whether the phase may come closer now.
    may_close_up: bool,
}

/// What was measured in the block that grows and in the one before it.
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

/// How many items were ready in the cycles of a block.
#[derive(Debug)]
struct Ready {
    /// The fewest, as negative numbers, the fewest first.
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
    /// In one of so many cycles fewer may be ready than are expected.
    const FEW: usize = 6;

    fn add(&mut self, ready: usize) {
        let ready = i64::try_from(ready).unwrap_or(i64::MAX);
        insert(&mut self.fewest, -ready);
        self.most = self.most.max(ready);
        self.len += 1;
    }

    /// How many are ready in most cycles, and in the fullest.
    fn usual(&self) -> Option<(i64, i64)> {
        let fewest =
            self.fewest.get((self.len + 2) / Self::FEW).filter(|_| self.len >= BLOCK_FIRST as usize)?;
        Some((-fewest, self.most))
    }
}

/// When the last writes of a block's bursts were.
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

    /// Cycles are due later by so much.
    fn shift(&mut self, by: i64) {
        self.sum -= by * self.len;
        for at in &mut self.latest {
            *at = at.saturating_sub(by);
        }
    }

    /// When the burst is over, with what its variation needs, which few bursts say little about. So many may be later.
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
            followed: 0,
            may_close_up: false,
        }
    }

    /// When the burst is over. Where cycles wait for it, it may be later now and then.
    fn end(&self, waits: bool) -> Option<i64> {
        let Some(before) = &self.edge.before else { return Some(self.edge.now.end(0)? + self.lag) };
        let later = if waits { 2 } else { 0 };
        let before = before.end(if before.len > i64::from(BLOCK_FIRST) { later } else { 0 });
        Some(before.max(self.edge.now.end(later))? + self.lag)
    }

    /// The burst is complete no sooner than so long after its last write.
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

    /// Cycles are due later by so much.
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

    /// By how much the next cycle is earlier to try a shorter lag, if it is.
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
    /// The phase of a subscription that begins now. Its first cycle ends after an interval, or before it when others of the
    /// interval publish.
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

    /// The publishing timer has expired, and so many items are ready.
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

    /// How many items are ready in every cycle; 0 if that cannot be told.
    fn expected(&self) -> usize {
        if self.rhythm.is_none() {
            return 0;
        }
        let blocks = [Some(&self.ready.now), self.ready.before.as_ref()];
        let usual = blocks.into_iter().flatten().filter_map(Ready::usual);
        let usual = usual.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        usual.map_or(0, |(few, most)| usize::try_from(few - 2 * (most - few)).unwrap_or(0))
    }

    /// Until when the cycle waits for items that are missing.
    fn wait_until(&mut self, ready: usize) -> Option<i64> {
        let is_complete = ready >= self.expected();
        let most = self.interval / 4 * if ready == 0 { 3 } else { 1 };
        if let Some(rhythm) = self.rhythm.as_mut().filter(|rhythm| rhythm.is_try) {
            rhythm.tried(is_complete);
            return (!is_complete).then_some(self.planned);
        }
        if is_complete || self.is_moved {
            return None;
        }
        if self.waited >= most {
            // They were not late but left out.
            self.waited = 0;
            return None;
        }
        // Longer each time: few looks, however long it takes.
        self.waited = (2 * self.waited + distance_min(self.interval)).min(most);
        Some(self.planned + self.waited)
    }

    /// Notes how many items were ready in a cycle.
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
                // The writers have stopped. They may go on at any time.
                self.forget();
            }
            self.ready.count();
        }
        self.waited_before = core::mem::take(&mut self.waited);
    }

    /// When the next cycle is due, which would be at `next` if nothing had changed.
    fn follow(&mut self, next: i64, shared: &mut SharedPhases) -> i64 {
        let interval = self.interval;
        let own = next.rem_euclid(interval);
        let common = shared.get(interval).unwrap_or(own);
        if self.moving == 0 && self.rhythm.is_none() && self.calm.is_multiple_of(2 * BLOCK) {
            // Wherever others are is as good.
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
        // Others follow who stood here, or who could as well.
        let near = STEPS_SHARED * step(interval);
        let since_common = (own - common + near).rem_euclid(interval) - near;
        if since_common <= near && (at != next || since_common > 0) {
            shared.set(interval, at.rem_euclid(interval));
        }
        at
    }

    /// The same with nothing else to heed than the burst, and where others publish.
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

    /// Looks for a rhythm from the beginning.
    fn forget(&mut self) {
        self.rhythm = None;
        (self.histogram, self.messages, self.pause) = ([0; PIECES], 0, 0);
    }

    /// No move for a while, and for longer after each one that did not help for long.
    fn rest(&mut self) {
        if self.calm > MOVE_PAUSE << (self.backoff + 4) {
            self.backoff = 0;
        }
        self.pause = MOVE_PAUSE << self.backoff;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.calm = 0;
    }

    /// A message has values that were written at these times: at most [`SAMPLES`] of all that it has.
    pub(crate) fn observe(&mut self, written: &[i64]) {
        let Some(share) = WEIGHT.checked_div(u32::try_from(written.len()).unwrap_or(0)) else { return };
        let interval = self.interval;
        self.messages = (self.messages + 1).min(BLOCK);
        for weight in &mut self.histogram {
            *weight -= weight.div_ceil(8);
        }
        // Counted from when cycles are due from now on; later than that is what the last cycle waited for, or missed.
        let due = self.planned - interval;
        let last = self.waited_before.max(interval / 16);
        // The last sixteenth of the writes: a few values without a rhythm say nothing about many that have one.
        let mut latest = [i64::MIN; SAMPLES / 16 + 1];
        // Values of a time before the last cycle may have come after it all the same. For how long that cycle was too early.
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

    /// Finds the part of the interval behind which values are freshest.
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
            // It follows from here.
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

/// Puts a number among the largest, which are sorted.
fn insert(largest: &mut [i64], number: i64) {
    let mut number = number;
    for place in largest {
        if number > *place {
            core::mem::swap(&mut number, place);
        }
    }
}

/// The piece of the interval in which an instant lies.
fn piece(at: i64, interval: i64) -> usize {
    (i128::from(at.rem_euclid(interval)) * PIECES as i128 / i128::from(interval)) as usize
}

/// The first phase that subscriptions share at or after an instant.
fn step_up(at: i64, interval: i64) -> i64 {
    let (phase, step) = (at.rem_euclid(interval), step(interval));
    at + ((step - phase % step) % step).min(interval - phase)
}

/// How far apart phases are.
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
