//! Admission by predicted CPU load: what clients have requested, what it will cost, and what is left.
//!
//! Subscriptions report their demand: messages and values per second. [`Prices`] convert demand into CPU. They come
//! from a cost model measured on this machine; this crate only multiplies. The demand is the maximum: every item
//! changes all the time and delivers as many values per publishing interval as its queue and its sampling interval
//! allow ([`values_per_cycle`]). A server without a [`Headroom`] pays one branch per subscription change and per
//! message.
//!
//! The speed of a machine varies, for example because of other virtual machines or hyperthreads. The server therefore
//! compares its CPU use with the predicted cost of the messages it has sent, and adjusts its prices within seconds,
//! from [`FACTOR_MIN`] to [`FACTOR_MAX`]. Requested but unsent values do not count for that: values that do not change
//! now may change later.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

/// The cost of operations on this machine, in CPU seconds of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Per second, without clients.
    pub idle: f64,
    /// Per value.
    pub value: f64,
    /// Per value, times the number of subscriptions to the power of 0.3.
    pub value_growth: f64,
    /// Per message.
    pub message: f64,
}

impl Prices {
    /// CPU of a load, in cores.
    #[must_use]
    pub fn cpu(&self, values_per_s: f64, messages_per_s: f64, subscriptions: f64) -> f64 {
        self.idle + values_per_s * self.of_value(subscriptions) + messages_per_s * self.message
    }

    fn of_value(&self, subscriptions: f64) -> f64 {
        self.value + self.value_growth * subscriptions.max(0.0).powf(0.3)
    }
}

/// How to handle requests that would not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Admit {
    /// They are granted: the headroom is only reported.
    #[default]
    Always,
    /// Publishing intervals are revised upward, and items are refused with Bad_TooManyMonitoredItems.
    Headroom,
}

/// The requested load and the capacity of this machine. Shared by all shards.
#[derive(Debug)]
pub struct Headroom {
    prices: Prices,
    /// CPU limit, in cores.
    limit: f64,
    admit: Admit,
    /// In millionths, so that additions and subtractions cancel exactly.
    values: AtomicI64,
    messages: AtomicI64,
    items: AtomicI64,
    subscriptions: AtomicI64,
    /// Number of revised or refused requests.
    revised: AtomicU64,
    refused: AtomicU64,
    /// The last CPU measurement from the driver, in millionths of a core.
    actual: AtomicU64,
    has_actual: AtomicBool,
    /// Current prices relative to the calibration, in millionths.
    factor: AtomicU64,
    /// The requested values per second at the last CPU measurement.
    before: AtomicI64,
    /// Values and messages sent since then.
    sent_values: AtomicU64,
    sent_messages: AtomicU64,
}

const MILLIONTHS: f64 = 1e6;
/// Upper bound of the price factor.
pub const FACTOR_MAX: f64 = 2.0;
/// Lower bound of the price factor.
pub const FACTOR_MIN: f64 = 0.7;
/// Time constant of the price adjustment (about two thirds of a difference): longer than a short disturbance.
const LEARNING: Duration = Duration::from_secs(5);
/// Minimum share of the demand that must be sent for an adjustment.
const LEARNING_SHARE: f64 = 0.5;
/// Minimum predicted CPU of the sent messages for an adjustment, as a share of the CPU limit. Below it, the server's
/// other work would dominate the measurement.
const LEARNING_MIN: f64 = 0.05;

/// Used and remaining capacity at one moment. CPU is in cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Predicted CPU of the requested load.
    pub predicted: f64,
    /// CPU at the last measurement; `None` before the first.
    pub actual: Option<f64>,
    /// CPU limit.
    pub limit: f64,
    /// Requested values per second.
    pub values_per_s: f64,
    /// Requested messages per second.
    pub messages_per_s: f64,
    /// Monitored items that are not disabled.
    pub items: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Further values per second that fit.
    pub remaining_values_per_s: f64,
    /// Further items that fit, if they are like the present ones. Without any: one value per second each.
    pub remaining_items: f64,
    /// Further sessions with one subscription each that fit, if they are like the present ones. Without any: one item
    /// and one message per second each.
    pub remaining_sessions: f64,
    /// Current prices relative to the calibration: [`FACTOR_MIN`] to [`FACTOR_MAX`].
    pub factor: f64,
    /// Publishing intervals that were revised upward.
    pub revised: u64,
    /// Items that were refused.
    pub refused: u64,
}

impl Headroom {
    /// `limit` is the CPU limit in cores.
    #[must_use]
    pub fn new(prices: Prices, limit: f64, admit: Admit) -> Arc<Self> {
        Arc::new(Self {
            prices,
            limit,
            admit,
            values: AtomicI64::new(0),
            messages: AtomicI64::new(0),
            items: AtomicI64::new(0),
            subscriptions: AtomicI64::new(0),
            revised: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            actual: AtomicU64::new(0),
            has_actual: AtomicBool::new(false),
            factor: AtomicU64::new(MILLIONTHS as u64),
            before: AtomicI64::new(0),
            sent_values: AtomicU64::new(0),
            sent_messages: AtomicU64::new(0),
        })
    }

    /// Records a measurement from the driver: CPU in cores over the last `span`. Call it from one thread only.
    pub fn measured(&self, cores: f64, span: Duration) {
        if !cores.is_finite() || span.is_zero() {
            return;
        }
        // `as` saturates.
        self.actual.store((cores.max(0.0) * MILLIONTHS) as u64, Ordering::Relaxed);
        self.has_actual.store(true, Ordering::Relaxed);
        self.learn(cores, span);
    }

    fn learn(&self, cores: f64, span: Duration) {
        let seconds = span.as_secs_f64();
        let rate = |sent: &AtomicU64| sent.swap(0, Ordering::Relaxed) as f64 / seconds.max(1e-3);
        let (values, messages) = (rate(&self.sent_values), rate(&self.sent_messages));
        let asked = self.values.load(Ordering::Relaxed);
        // Creating subscriptions costs CPU too.
        if self.before.swap(asked, Ordering::Relaxed) != asked {
            return;
        }
        let subscriptions = self.subscriptions.load(Ordering::Relaxed).max(0) as f64;
        let idle = self.prices.idle;
        let calibrated = self.prices.cpu(values, messages, subscriptions) - idle;
        // If little of the requested load was sent, the CPU was mostly used for other work: reads, history, handshakes.
        // That must not raise the prices of items.
        let messages_asked = self.messages.load(Ordering::Relaxed).max(0) as f64 / MILLIONTHS;
        let demand = self.prices.cpu(asked.max(0) as f64 / MILLIONTHS, messages_asked, subscriptions) - idle;
        if calibrated < LEARNING_MIN * self.limit.max(1.0) || calibrated < demand * LEARNING_SHARE {
            return;
        }
        let seen = ((cores - idle) / calibrated).clamp(FACTOR_MIN, FACTOR_MAX);
        let share = 1.0 - (-seconds / LEARNING.as_secs_f64()).exp();
        let factor = self.factor();
        self.factor.store(((factor + (seen - factor) * share) * MILLIONTHS) as u64, Ordering::Relaxed);
    }

    fn factor(&self) -> f64 {
        self.factor.load(Ordering::Relaxed) as f64 / MILLIONTHS
    }

    /// The current prices.
    #[must_use]
    pub fn prices(&self) -> Prices {
        let (factor, prices) = (self.factor(), self.prices);
        Prices {
            idle: prices.idle,
            value: prices.value * factor,
            value_growth: prices.value_growth * factor,
            message: prices.message * factor,
        }
    }

    /// The prices for admission. They do not fall below the calibration: admitted load stays, and the machine may
    /// become slower again.
    fn admission(&self) -> Prices {
        if self.factor() < 1.0 { self.prices } else { self.prices() }
    }

    /// Used and remaining capacity.
    #[must_use]
    pub fn report(&self) -> Report {
        let of = |counter: &AtomicI64| counter.load(Ordering::Relaxed).max(0) as f64;
        let (values, messages) = (of(&self.values) / MILLIONTHS, of(&self.messages) / MILLIONTHS);
        let (items, subscriptions) = (of(&self.items), of(&self.subscriptions));
        let prices = self.prices();
        let predicted = prices.cpu(values, messages, subscriptions);
        // The remaining capacity is what would be admitted.
        let prices = self.admission();
        let left = (self.limit - prices.cpu(values, messages, subscriptions)).max(0.0);
        let price = prices.of_value(subscriptions);
        let per = |cost: f64| if cost > 0.0 { left / cost } else { f64::MAX };
        let mean = |sum: f64, count: f64| if count > 0.0 { sum / count } else { 1.0 };
        let per_item = mean(values, items) * price;
        let per_session =
            mean(values, subscriptions) * price + mean(messages, subscriptions) * prices.message;
        Report {
            predicted,
            actual: self
                .has_actual
                .load(Ordering::Relaxed)
                .then(|| self.actual.load(Ordering::Relaxed) as f64 / MILLIONTHS),
            limit: self.limit,
            values_per_s: values,
            messages_per_s: messages,
            items: items as u64,
            subscriptions: subscriptions as u64,
            remaining_values_per_s: per(price),
            remaining_items: per(per_item).floor(),
            remaining_sessions: per(per_session).floor(),
            factor: self.factor(),
            revised: self.revised.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

/// Unit of [`Load::values`]: one value.
pub(crate) const VALUE: u64 = 1_000;

/// Most values that an item delivers per publishing interval, in thousandths: one per sampling interval, but no more
/// than its queue holds, and at least one. Both intervals in ms.
pub(crate) fn values_per_cycle(queue_size: u32, sampling_ms: f64, interval_ms: f64) -> u64 {
    let queue = f64::from(queue_size.max(1));
    // Without a sampling interval, the queue is the limit.
    let samples = if sampling_ms > 0.0 { interval_ms / sampling_ms } else { queue };
    // `as` saturates.
    (samples.clamp(1.0, queue) * VALUE as f64) as u64
}

/// The enabled items of a subscription, and what they deliver at most per publishing interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Load {
    pub(crate) items: u32,
    /// In thousandths, so that additions and subtractions cancel exactly.
    pub(crate) values: u64,
}

/// The enabled items of a subscription, for its load at other publishing intervals.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// Items that deliver one value per publishing interval, whatever it is.
    pub(crate) single: u32,
    /// Queue size and sampling interval (ms) of the others.
    pub(crate) queued: Vec<(u32, f64)>,
}

impl Items {
    /// Their load at a publishing interval in ms.
    pub(crate) fn load(&self, interval_ms: f64) -> Load {
        let queued =
            self.queued.iter().map(|(queue, sampling)| values_per_cycle(*queue, *sampling, interval_ms));
        Load {
            items: self.single.saturating_add(u32::try_from(self.queued.len()).unwrap_or(u32::MAX)),
            values: queued.fold(u64::from(self.single) * VALUE, u64::saturating_add),
        }
    }
}

/// The demand of one subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Demand {
    /// Millionths per second.
    values: i64,
    messages: i64,
    items: i64,
}

impl Demand {
    fn new(load: Load, interval_ms: f64) -> Self {
        let cycles = 1e3 / interval_ms.max(1e-3) * MILLIONTHS;
        // `as` saturates. Without items there are keep-alives only.
        Self {
            values: (load.values as f64 / VALUE as f64 * cycles) as i64,
            messages: if load.items > 0 { cycles as i64 } else { 0 },
            items: i64::from(load.items),
        }
    }
}

/// A subscription's share of the demand. Dropping it removes the share.
#[derive(Debug)]
pub(crate) struct Share {
    headroom: Arc<Headroom>,
    demand: Demand,
    /// What its enabled items deliver at most per publishing interval, in thousandths; see [`values_per_cycle`].
    pub(crate) values: u64,
}

impl Share {
    pub(crate) fn new(headroom: &Arc<Headroom>) -> Self {
        headroom.subscriptions.fetch_add(1, Ordering::Relaxed);
        Self { headroom: Arc::clone(headroom), demand: Demand::default(), values: 0 }
    }

    /// Sets the subscription's load and its publishing interval.
    pub(crate) fn set(&mut self, load: Load, interval_ms: f64, is_publishing: bool) {
        let demand = Demand::new(if is_publishing { load } else { Load::default() }, interval_ms);
        let add = |counter: &AtomicI64, after: i64, before: i64| {
            counter.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
        };
        add(&self.headroom.values, demand.values, self.demand.values);
        add(&self.headroom.messages, demand.messages, self.demand.messages);
        add(&self.headroom.items, demand.items, self.demand.items);
        self.demand = demand;
    }

    /// Counts a message with `values` values.
    pub(crate) fn sent(&self, values: u32) {
        self.headroom.sent_values.fetch_add(u64::from(values), Ordering::Relaxed);
        self.headroom.sent_messages.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the server can accept this subscription with this load in total. A refusal is counted.
    pub(crate) fn admits(&self, load: Load, interval_ms: f64) -> bool {
        let fits = self.fits(load, interval_ms);
        if !fits {
            self.headroom.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// Whether anything can be refused or revised.
    pub(crate) fn can_refuse(&self) -> bool {
        self.headroom.admit != Admit::Always
    }

    fn fits(&self, load: Load, interval_ms: f64) -> bool {
        !self.can_refuse() || self.with(Demand::new(load, interval_ms)) <= self.headroom.limit
    }

    /// The shortest interval, at least `interval_ms` and at most `longest`, with which the items of this subscription
    /// fit.
    pub(crate) fn revise(&self, items: &Items, interval_ms: f64, longest: f64) -> f64 {
        if self.fits(items.load(interval_ms), interval_ms) {
            return interval_ms;
        }
        let longest = longest.max(interval_ms);
        let revised = if self.fits(items.load(longest), longest) {
            self.bisect(items, interval_ms, longest)
        } else {
            longest
        };
        if revised > interval_ms {
            self.headroom.revised.fetch_add(1, Ordering::Relaxed);
        }
        revised
    }

    /// Between an interval that is too short and one that is long enough. The demand never rises with the interval.
    fn bisect(&self, items: &Items, mut short: f64, mut long: f64) -> f64 {
        // Intervals are rounded to whole microseconds later, so the result is slightly longer than necessary.
        while long > short * 1.0005 {
            let middle = (short.max(1e-3) * long).sqrt();
            if middle <= short || middle >= long {
                break;
            }
            if self.fits(items.load(middle), middle) {
                long = middle;
            } else {
                short = middle;
            }
        }
        (long * 1e3).ceil() / 1e3
    }

    fn subscriptions(&self) -> f64 {
        self.headroom.subscriptions.load(Ordering::Relaxed).max(0) as f64
    }

    /// The server's CPU if this subscription had another demand.
    fn with(&self, demand: Demand) -> f64 {
        let of = |counter: &AtomicI64, own: i64, other: i64| {
            counter.load(Ordering::Relaxed).saturating_sub(own).saturating_add(other).max(0) as f64
                / MILLIONTHS
        };
        let values = of(&self.headroom.values, self.demand.values, demand.values);
        let messages = of(&self.headroom.messages, self.demand.messages, demand.messages);
        self.headroom.admission().cpu(values, messages, self.subscriptions())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(Load::default(), 1e3, false);
        self.headroom.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle 1 %, 1 µs per value, 20 µs per message.
    const PRICES: Prices = Prices { idle: 0.01, value: 1e-6, value_growth: 0.0, message: 20e-6 };

    fn items(single: u32) -> Items {
        Items { single, queued: Vec::new() }
    }

    /// Items that deliver one value per interval.
    fn single(count: u32) -> Load {
        items(count).load(1.0)
    }

    /// Part 4 §5.13.1.2 and §5.13.1.5: an item delivers up to its queue per interval, one value per sampling.
    #[test]
    fn values_per_interval_follow_queue_and_sampling() {
        let values = |queue, sampling, interval| values_per_cycle(queue, sampling, interval) as f64 / 1e3;
        assert_eq!(values(100, 10.0, 1_000.0), 100.0);
        assert_eq!(values(10, 10.0, 1_000.0), 10.0);
        assert_eq!(values(1, 10.0, 1_000.0), 1.0);
        assert_eq!(values(100, 400.0, 1_000.0), 2.5);
        assert_eq!(values(100, 5_000.0, 1_000.0), 1.0);
        // Every write: the queue is the limit.
        assert_eq!(values(100, 0.0, 1_000.0), 100.0);
        assert_eq!(values(0, f64::NAN, 1_000.0), 1.0);
        let mixed = Items { single: 3, queued: vec![(100, 10.0), (5, 0.0)] };
        assert_eq!(mixed.load(200.0), Load { items: 5, values: 28_000 });
    }

    /// With a queue, a longer interval helps only as far as the queue overflows or messages become fewer.
    #[test]
    fn revised_intervals_fit_items_with_queues() {
        let headroom = Headroom::new(PRICES, 0.06, Admit::Headroom);
        let share = Share::new(&headroom);
        // 0.05 are left. Up to 100 ms, an item delivers 1 000 values/s; then 100 per interval.
        let items = Items { single: 0, queued: vec![(100, 1.0); 100] };
        let revised = share.revise(&items, 100.0, 60_000.0);
        assert!((200.0..201.0).contains(&revised), "{revised}");
        assert_eq!(headroom.report().revised, 1);
    }

    #[test]
    fn demand_is_converted_to_cpu_and_returned() {
        let headroom = Headroom::new(PRICES, 0.8, Admit::Always);
        let mut share = Share::new(&headroom);
        share.set(single(1_000), 100.0, true);
        let report = headroom.report();
        // 10 000 values and 10 messages per second.
        assert!((report.predicted - (0.01 + 0.01 + 0.0002)).abs() < 1e-9, "{report:?}");
        assert_eq!((report.items, report.subscriptions, report.actual), (1_000, 1, None));
        assert!((report.remaining_values_per_s - 779_800.0).abs() < 1.0, "{report:?}");
        // Each item costs 10 µs per second; each session has a thousand of them and ten messages.
        assert_eq!((report.remaining_items, report.remaining_sessions), (77_980.0, 76.0));
        share.set(single(1_000), 100.0, false);
        assert_eq!(headroom.report().values_per_s, 0.0);
        headroom.measured(0.25, Duration::from_secs(1));
        drop(share);
        let report = headroom.report();
        assert_eq!((report.predicted, report.subscriptions, report.actual), (0.01, 0, Some(0.25)));
    }

    #[test]
    fn excess_demand_is_refused_or_slowed_down() {
        let headroom = Headroom::new(PRICES, 0.5, Admit::Headroom);
        let mut others = Share::new(&headroom);
        others.set(single(4_000), 10.0, true);
        // 0.412 of 0.5 are used. 1000 items at 10 ms would add 0.102.
        let mut share = Share::new(&headroom);
        assert!(share.admits(single(500), 10.0) && !share.admits(single(1_000), 10.0));
        let revised = share.revise(&items(1_000), 10.0, 60_000.0);
        assert!((11.5..12.0).contains(&revised), "{revised}");
        share.set(single(1_000), revised, true);
        assert!(headroom.report().predicted <= 0.5);
        assert_eq!((headroom.report().refused, headroom.report().revised), (1, 1));
        others.set(single(6_000), 10.0, true);
        assert_eq!(share.revise(&items(1_000), 10.0, 60_000.0), 60_000.0);
        assert_eq!(share.revise(&items(1_000), 90_000.0, 60_000.0), 90_000.0);
        // If the headroom is only reported, nothing is refused.
        let open = Headroom::new(PRICES, 0.001, Admit::Always);
        let share = Share::new(&open);
        assert!(share.admits(single(1_000), 1.0));
        assert_eq!(share.revise(&items(1_000), 1.0, 60_000.0), 1.0);
    }

    #[test]
    fn prices_follow_measured_costs() {
        let headroom = Headroom::new(PRICES, 0.8, Admit::Headroom);
        let mut share = Share::new(&headroom);
        // 0.2 cores, and 0.0002 for messages.
        share.set(single(20_000), 100.0, true);
        let second = Duration::from_secs(1);
        let after = |share: &Share, values: u32, cores: f64, seconds: usize| {
            for _ in 0..seconds {
                (0..10).for_each(|_| share.sent(values / 10));
                headroom.measured(cores, second);
            }
            headroom.report()
        };
        // The first second may still include another load.
        assert_eq!(after(&share, 200_000, 0.3, 1).factor, 1.0);
        let left = headroom.report().remaining_values_per_s;
        let slow = after(&share, 200_000, 0.3, 5);
        assert!((1.2..1.35).contains(&slow.factor) && slow.predicted < 0.3, "{slow:?}");
        assert!((after(&share, 200_000, 0.3, 100).predicted - 0.3).abs() < 0.001);
        assert!(headroom.report().remaining_values_per_s < left * 0.62, "{:?}", headroom.report());
        // 0.545 cores by the calibration.
        assert!(!share.admits(single(55_000), 100.0) && share.admits(single(54_000), 100.0));
        assert!(share.revise(&items(60_000), 100.0, 1e6) > 110.0);
        // The factor is bounded, because other work may use the CPU.
        assert!((after(&share, 200_000, 9.0, 200).factor - FACTOR_MAX).abs() < 0.001);
        // Slightly more than half of the values change, at their calibrated price: the others may change later.
        let calm = after(&share, 110_000, 0.1202, 200);
        assert!((calm.factor - 1.0).abs() < 0.001 && (calm.predicted - 0.2102).abs() < 0.001, "{calm:?}");
        // A faster machine has more capacity, but the factor has a lower bound.
        let fast = after(&share, 200_000, 0.17, 200);
        assert!((fast.factor - 0.8).abs() < 0.002 && (fast.predicted - 0.17).abs() < 0.001, "{fast:?}");
        assert!((after(&share, 200_000, 0.02, 200).factor - FACTOR_MIN).abs() < 0.001);
        // Admission does not use the lower price.
        assert!(!share.admits(single(80_000), 100.0) && share.admits(single(78_000), 100.0));
        // With little load, other work dominates: nothing changes.
        let before = headroom.report().factor;
        assert_eq!(after(&share, 20_000, 0.5, 100).factor, before);
        // The same if little of the requested load is sent: the CPU was used for reads or other clients.
        share.set(single(200_000), 100.0, true);
        after(&share, 0, 0.5, 1);
        assert_eq!(after(&share, 900_000, 9.0, 100).factor, before);
        // A zero span or a non-finite value is not a measurement.
        share.set(single(20_000), 100.0, true);
        after(&share, 0, 0.5, 1);
        for (cores, span) in [(f64::NAN, second), (0.5, Duration::ZERO), (f64::INFINITY, second)] {
            headroom.measured(cores, span);
            assert_eq!(headroom.report().factor, before, "{cores} {span:?}");
        }
    }

    #[test]
    fn values_can_cost_more_with_more_subscriptions() {
        let prices = Prices { value_growth: 1e-6, ..PRICES };
        assert!((prices.cpu(1e5, 0.0, 10.0) - (0.01 + 0.1 + 0.1 * 10f64.powf(0.3))).abs() < 1e-9);
    }
}
