//! The phase with all kinds of writers, in virtual time.

use super::*;
use proptest::prelude::*;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const INTERVAL: i64 = 100 * MS;
const START: i64 = 1_000_000 * MS;

/// A write of an item, seen by the server at `at`, with the source time `stamp`.
#[derive(Debug, Clone, Copy)]
struct Write {
    at: i64,
    stamp: i64,
    item: usize,
}

/// Deterministic random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as i64).rem_euclid(limit.max(1))
    }

    /// Approximately normally distributed with this deviation.
    fn normal(&mut self, deviation: i64) -> i64 {
        (0..12).map(|_| self.below(deviation + 1)).sum::<i64>() - 6 * deviation
    }
}

/// Writes of a writer: start of each burst, its duration, and its items.
fn writer(bursts: impl Iterator<Item = i64>, takes: i64, items: core::ops::Range<usize>) -> Vec<Write> {
    let count = items.len().max(1) as i64;
    let burst = |begin: i64| {
        items.clone().map(move |item| {
            let at = begin + takes * (item - items.start + 1) as i64 / count;
            Write { at, stamp: begin, item }
        })
    };
    bursts.flat_map(burst).collect()
}

fn steady(phase: i64, period: i64, count: i64) -> impl Iterator<Item = i64> {
    (0..count).map(move |number| START + phase + number * period)
}

/// The result of a run.
#[derive(Debug, Default)]
struct Outcome {
    /// When each value was published, and its age then.
    values: Vec<(i64, i64)>,
    /// When values were overwritten.
    lost: Vec<i64>,
    cycles: Vec<i64>,
    expiries: usize,
}

impl Outcome {
    /// Sorted ages of values published after a given time.
    fn ages(&self, from: i64) -> Vec<i64> {
        let mut ages: Vec<_> =
            self.values.iter().filter(|(at, _)| *at >= START + from).map(|(_, age)| *age).collect();
        ages.sort_unstable();
        ages
    }

    fn mean_age(&self, from: i64) -> i64 {
        let ages = self.ages(from);
        ages.iter().sum::<i64>() / ages.len().max(1) as i64
    }

    fn percentile(&self, from: i64, percent: usize) -> i64 {
        let ages = self.ages(from);
        ages[(ages.len() - 1) * percent / 100]
    }

    /// Overwritten values per million after a given time.
    fn lost_ppm(&self, from: i64) -> usize {
        let lost = self.lost.iter().filter(|at| **at >= START + from).count();
        lost * 1_000_000 / (lost + self.ages(from).len()).max(1)
    }

    fn mean_interval(&self) -> i64 {
        (self.cycles[self.cycles.len() - 1] - self.cycles[0]) / (self.cycles.len() as i64 - 1)
    }
}

/// Runs one subscription with these writes.
fn play(interval: i64, begin: i64, mut writes: Vec<Write>) -> Outcome {
    writes.sort_by_key(|write| write.at);
    let mut shared = SharedPhases::default();
    let mut phase = Phase::new(instant(START + begin), interval as u64, &mut shared);
    let items = writes.iter().map(|write| write.item + 1).max().unwrap_or(0);
    let mut pending: Vec<Option<Write>> = vec![None; items];
    let mut ready = 0;
    let mut outcome = Outcome::default();
    let (mut at, mut writes) = (signed(phase.first().as_nanos()), writes.into_iter().peekable());
    while writes.peek().is_some() {
        while let Some(write) = writes.next_if(|write| write.at <= at) {
            match pending[write.item].replace(write) {
                Some(_) => outcome.lost.push(write.at),
                None => ready += 1,
            }
        }
        outcome.expiries += 1;
        let next = match phase.expired(instant(at), ready, &mut shared) {
            Expiry::Wait(next) => next,
            Expiry::Publish(next) => {
                outcome.cycles.push(at);
                let published: Vec<_> = pending.iter_mut().filter_map(Option::take).collect();
                outcome.values.extend(published.iter().map(|write| (at, at - write.at)));
                let every = published.len().div_ceil(SAMPLES).max(1);
                let stamps: Vec<_> = published.iter().step_by(every).map(|write| write.stamp).collect();
                phase.observe(&stamps);
                ready = 0;
                next
            }
        };
        let next = signed(next.as_nanos());
        assert!(next > at, "time advances");
        at = next;
    }
    // The rule for moves: no cycle is shorter than half of the interval.
    let shortest = outcome.cycles.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(interval);
    assert!(shortest >= interval / 4, "{shortest}");
    outcome
}

/// End of the learning phase.
const LEARNT: i64 = 3_000 * MS;

/// Bursts that are early or late at random.
fn with_jitter(phase: i64, count: i64, mut jitter: impl FnMut() -> i64) -> Vec<Write> {
    writer(steady(phase, INTERVAL, count).map(move |at| at + jitter()), 50 * US, 0..5)
}

/// Items written at random times with a mean interval.
fn at_random(random: &mut Random, items: usize, mean: i64, until: i64) -> Vec<Write> {
    let mut writes = Vec::new();
    for item in 0..items {
        let mut at = START;
        while at < START + until {
            at += random.below(2 * mean);
            writes.push(Write { at, stamp: at, item });
        }
    }
    writes
}

#[test]
fn a_steady_writer_is_followed_after_a_few_cycles() {
    for phase in 0..100 {
        let outcome = play(INTERVAL, 0, writer(steady(phase * MS, INTERVAL, 100), 100 * US, 0..50));
        let worst = [700 * MS, 1_500 * MS].map(|from| outcome.percentile(from, 100));
        assert!(worst[0] < 10 * MS && worst[1] < 1500 * US, "{phase}: {worst:?}");
        assert_eq!(outcome.lost_ppm(700 * MS), 0, "{phase}");
        assert!(outcome.expiries < outcome.cycles.len() + 10, "{phase}: {}", outcome.expiries);
    }
}

#[test]
fn intervals_of_any_length_end_directly_after_the_burst() {
    for (interval, most) in
        [(MS, 100 * US), (10 * MS, 300 * US), (1_000 * MS, 1500 * US), (60_000 * MS, 1500 * US)]
    {
        let outcome = play(interval, 0, writer(steady(interval / 3, interval, 200), 50 * US, 0..5));
        assert!(
            outcome.percentile(40 * interval, 99) < most,
            "{interval}: {}",
            outcome.percentile(40 * interval, 99)
        );
    }
}

#[test]
fn slower_writers_are_followed_too() {
    for period in [2, 5, 10] {
        let outcome = play(INTERVAL, 0, writer(steady(37 * MS, period * INTERVAL, 300), 100 * US, 0..5));
        assert!(outcome.percentile(LEARNT * period, 99) < MS, "{period}");
        assert_eq!(outcome.lost, []);
    }
}

#[test]
fn a_drift_is_followed_without_a_lost_value() {
    for (period_us, most) in [(100_010, MS), (99_990, 3 * MS), (100_100, 2 * MS), (99_900, 10 * MS)] {
        let period = period_us * US;
        let outcome = play(INTERVAL, 0, writer(steady(50 * MS, period, 12_000), 100 * US, 0..5));
        assert_eq!(outcome.lost_ppm(LEARNT), 0, "{period_us}");
        assert!(outcome.percentile(LEARNT, 99) < most, "{period_us}: {}", outcome.percentile(LEARNT, 99));
    }
}

#[test]
fn faster_drifts_are_not_followed_and_the_interval_stays() {
    for period_us in [101_000, 99_000, 103_000, 97_000, 107_000, 7_000] {
        let period = period_us * US;
        let outcome = play(INTERVAL, 0, writer(steady(0, period, 3_000 * INTERVAL / period), 100 * US, 0..5));
        // The loss that any phase has with a shorter period, and slightly more.
        let unavoidable = (1_000_000 - period_us * 10).max(0) as usize;
        assert!(outcome.lost_ppm(LEARNT) < unavoidable + 2_500, "{period_us}: {}", outcome.lost_ppm(LEARNT));
        assert!(outcome.mean_age(LEARNT) < INTERVAL * 52 / 100, "{period_us}: {}", outcome.mean_age(LEARNT));
        let off = outcome.mean_interval().abs_diff(INTERVAL);
        assert!(off < INTERVAL as u64 / 300, "{period_us}: {off}");
    }
}

#[test]
fn with_two_writers_the_phase_minimizes_the_mean_age() {
    for (other, best) in
        [(5, 2_500 * US), (20, 10_000 * US), (40, 20_000 * US), (60, 20_000 * US), (95, 2_500 * US)]
    {
        let mut writes = writer(steady(13 * MS, INTERVAL, 500), 100 * US, 0..50);
        writes.extend(writer(steady((13 + other) * MS, INTERVAL, 500), 100 * US, 50..100));
        let outcome = play(INTERVAL, 0, writes);
        assert!(outcome.mean_age(LEARNT) < best + 1500 * US, "{other}: {}", outcome.mean_age(LEARNT));
        assert_eq!(outcome.lost_ppm(LEARNT), 0, "{other}");
    }
}

#[test]
fn a_few_irregular_items_do_not_affect_many_periodic_ones() {
    let mut writes = writer(steady(13 * MS, INTERVAL, 1_000), 100 * US, 0..100);
    let others = at_random(&mut Random(5), 5, INTERVAL, 100_000 * MS);
    writes.extend(others.into_iter().map(|write| Write { item: write.item + 100, ..write }));
    let outcome = play(INTERVAL, 0, writes);
    assert!(outcome.percentile(LEARNT, 90) < 2 * MS, "{}", outcome.percentile(LEARNT, 90));
}

#[test]
fn long_bursts_are_published_whole() {
    // All values of a burst have the time of its beginning, as applications write them.
    for takes in [2, 5, 20, 40] {
        let outcome = play(INTERVAL, 0, writer(steady(50 * MS, INTERVAL, 1_000), takes * MS, 0..200));
        let from = 20_000 * MS;
        assert_eq!(outcome.lost_ppm(from), 0, "{takes}");
        let (p50, worst) = (outcome.percentile(from, 50), outcome.percentile(from, 100));
        assert!(
            p50 < takes * MS * 6 / 10 + MS && worst < takes * MS * 12 / 10 + MS,
            "{takes}: {p50} {worst}"
        );
    }
}

#[test]
fn a_burst_with_changing_items_loses_little() {
    let mut random = Random(3);
    let mut writes = writer(steady(50 * MS, INTERVAL, 2_000), 2 * MS, 0..200);
    writes.retain(|_| random.below(2) == 0);
    let outcome = play(INTERVAL, 0, writes);
    assert!(outcome.lost_ppm(LEARNT) < 2_000, "{}", outcome.lost_ppm(LEARNT));
    assert!(outcome.mean_age(LEARNT) < 6 * MS, "{}", outcome.mean_age(LEARNT));
}

#[test]
fn occasional_late_bursts_lose_little() {
    let mut random = Random(9);
    let late = || if random.below(50) == 0 { random.below(60 * MS) } else { 0 };
    let outcome = play(INTERVAL, 0, with_jitter(0, 5_000, late));
    assert!(outcome.lost_ppm(LEARNT) < 1_000, "{}", outcome.lost_ppm(LEARNT));
    assert!(outcome.percentile(LEARNT, 50) < 5 * MS, "{}", outcome.percentile(LEARNT, 50));
}

#[test]
fn irregular_values_are_no_older_than_with_a_random_phase() {
    for (seed, items, mean) in [(1, 1, 200 * MS), (2, 1, 30 * MS), (3, 20, INTERVAL), (4, 300, 1_000 * MS)] {
        let outcome = play(INTERVAL, 33 * MS, at_random(&mut Random(seed), items, mean, 1_000_000 * MS));
        assert!(outcome.mean_age(LEARNT) < INTERVAL * 51 / 100, "{items}: {}", outcome.mean_age(LEARNT));
        let off = outcome.mean_interval().abs_diff(INTERVAL);
        assert!(off < INTERVAL as u64 / 300, "{items}: {off}");
    }
}

#[test]
fn writers_that_pause_are_found_again() {
    let mut writes = Vec::new();
    for go in 0..20 {
        writes.extend(writer(steady(go * 10_037 * MS, INTERVAL, 70), 100 * US, 0..5));
    }
    let outcome = play(INTERVAL, 0, writes);
    assert!(outcome.percentile(0, 50) < MS && outcome.mean_age(0) < 6 * MS, "{}", outcome.mean_age(0));
    assert_eq!(outcome.lost_ppm(LEARNT), 0);
}

#[test]
fn subscriptions_after_one_burst_converge_to_a_shared_phase() {
    let mut shared = SharedPhases::default();
    let mut phases: Vec<Phase> = (0..20)
        .map(|at| Phase::new(instant(START + at * 4_321 * US), INTERVAL as u64, &mut shared))
        .collect();
    for cycle in 2..60 {
        for (number, phase) in phases.iter_mut().enumerate() {
            while phase.planned < START + cycle * INTERVAL {
                phase.expired(instant(phase.planned), 1, &mut shared);
                // Each has another item of the burst.
                let burst = (phase.previous - START - 41 * MS).div_euclid(INTERVAL) * INTERVAL;
                phase.observe(&[START + 41 * MS + burst + number as i64 * 20 * US]);
            }
        }
    }
    let mut found: Vec<_> = phases.iter().map(|phase| phase.planned.rem_euclid(INTERVAL)).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!((41 * MS..44 * MS).contains(&found[0]), "{found:?}");
    // A later subscription begins there.
    let late = Phase::new(instant(START + 100_017 * MS), INTERVAL as u64, &mut shared);
    assert_eq!(late.planned.rem_euclid(INTERVAL), found[0]);
    assert!(late.planned <= START + 100_117 * MS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn jitter_adds_only_unavoidable_delay(
        phase in 0i64..100,
        jitter in prop_oneof![100i64..1_000, 1_000i64..15_000],
        is_normal: bool,
        seed: u64,
    ) {
        let jitter = jitter * US;
        let mut random = Random(seed);
        let draw = || if is_normal { random.normal(jitter / 3) } else { random.below(2 * jitter) - jitter };
        let outcome = play(INTERVAL, 0, with_jitter(phase * MS, 3_000, draw));
        prop_assert!(outcome.lost_ppm(LEARNT) < 1_000, "{}", outcome.lost_ppm(LEARNT));
        // The best phase is at the end of the variation: the age of values is then the one-sided width of the
        // variation.
        let mean = outcome.mean_age(LEARNT);
        prop_assert!(mean < jitter * 17 / 10 + 1500 * US, "{mean}");
    }

    /// With any source times, the timer continues at a rate near the revised one.
    #[test]
    fn arbitrary_source_times_do_not_affect_the_timer(
        interval in prop_oneof![1i64..1_000_000, Just(3_600_000_000_000)],
        stamps in prop::collection::vec(prop::collection::vec(any::<i64>(), 0..8), 1..80),
    ) {
        let mut shared = SharedPhases::default();
        let mut phase = Phase::new(instant(START), interval as u64, &mut shared);
        let mut at = signed(phase.first().as_nanos());
        let mut cycles = 0;
        for stamps in stamps.iter().cycle().take(400) {
            let (Expiry::Publish(next) | Expiry::Wait(next)) = phase.expired(instant(at), stamps.len(), &mut shared);
            prop_assert!(signed(next.as_nanos()) > at);
            cycles += 1;
            at = signed(next.as_nanos());
            phase.observe(stamps);
        }
        prop_assert!(i128::from(at - START) > i128::from(interval) * cycles / 16);
    }
}
