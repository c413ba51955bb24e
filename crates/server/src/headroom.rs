//! What clients have asked for, what that will cost, and what is left.
//!
//! Subscriptions say what they will make the server do: messages and values per second. Prices turn that into CPU. They come
//! from a cost model that was measured on this machine; this crate only multiplies. The demand is the most that can come: each
//! item changes in every interval. A server without a [`Headroom`] has one branch more per change of a subscription.
//!
//! A machine is not always as fast as it was when it was measured: a busy neighbour of a virtual machine or of a hyperthread makes
//! the same work dearer. A server that uses more CPU than predicted therefore raises its prices, slowly and by at most
//! [`FACTOR_MAX`]. It does not lower them below the calibration: values that do not change now may change later.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

/// What things cost on this machine. CPU is in seconds of one core.
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
    /// CPU of a load in cores.
    #[must_use]
    pub fn cpu(&self, values_per_s: f64, messages_per_s: f64, subscriptions: f64) -> f64 {
        self.idle + values_per_s * self.of_value(subscriptions) + messages_per_s * self.message
    }

    fn of_value(&self, subscriptions: f64) -> f64 {
        self.value + self.value_growth * subscriptions.max(0.0).powf(0.3)
    }
}

/// What becomes of requests that would not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Admit {
    /// They are granted: the headroom is only shown.
    #[default]
    Always,
    /// Publishing intervals are revised upward, and items are refused with Bad_TooManyMonitoredItems.
    Headroom,
}

/// The load that clients have asked for, against what this machine can take. Shared by all shards.
#[derive(Debug)]
pub struct Headroom {
    prices: Prices,
    /// Most CPU, in cores.
    limit: f64,
    admit: Admit,
    /// In millionths, so that what was added is taken off exactly.
    values: AtomicI64,
    messages: AtomicI64,
    items: AtomicI64,
    subscriptions: AtomicI64,
    /// Requests that were revised or refused.
    revised: AtomicU64,
    refused: AtomicU64,
    /// The CPU that the driver measured last, in millionths of a core.
    actual: AtomicU64,
    has_actual: AtomicBool,
    /// By how much everything is dearer than in the calibration, in millionths.
    factor: AtomicU64,
    /// The values that were asked for when the CPU was measured last.
    before: AtomicI64,
}

const MILLIONTHS: f64 = 1e6;
/// Prices are raised by at most this factor.
pub const FACTOR_MAX: f64 = 2.0;
/// Time in which about two thirds of a difference to the prediction go into the prices: longer than a disturbance.
const LEARNING: Duration = Duration::from_secs(15);
/// With less predicted CPU, in cores, nothing is learnt: what else the server does counts for too much.
const LEARNING_MIN: f64 = 0.05;

/// What is left and what is used, at one moment. CPU is in cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// CPU of what clients have asked for.
    pub predicted: f64,
    /// CPU that was measured last; `None` before that.
    pub actual: Option<f64>,
    /// Most CPU.
    pub limit: f64,
    /// Values per second that clients have asked for.
    pub values_per_s: f64,
    /// Messages per second that clients have asked for.
    pub messages_per_s: f64,
    /// Monitored items that are not disabled.
    pub items: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Values per second that still fit.
    pub remaining_values_per_s: f64,
    /// Items that still fit, if they are like the present ones: one value per second without any.
    pub remaining_items: f64,
    /// Sessions with one subscription each that still fit, if they are like the present ones: one item and one message per
    /// second without any.
    pub remaining_sessions: f64,
    /// By how much work is dearer than in the calibration: 1 or more.
    pub factor: f64,
    /// Publishing intervals that were revised upward.
    pub revised: u64,
    /// Items that were refused.
    pub refused: u64,
}

impl Headroom {
    /// `limit` is the most CPU in cores.
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
        })
    }

    /// Takes over what the driver has measured: CPU in cores, over the last `span`. Only one thread calls this.
    pub fn measured(&self, cores: f64, span: Duration) {
        // `as` saturates.
        self.actual.store((cores.max(0.0) * MILLIONTHS) as u64, Ordering::Relaxed);
        self.has_actual.store(true, Ordering::Relaxed);
        self.learn(cores, span);
    }

    fn learn(&self, cores: f64, span: Duration) {
        let values = self.values.load(Ordering::Relaxed);
        // Making subscriptions costs too, and the time was part of both loads.
        if self.before.swap(values, Ordering::Relaxed) != values {
            return;
        }
        let of = |counter: &AtomicI64| counter.load(Ordering::Relaxed).max(0) as f64;
        let (values, messages) = (of(&self.values) / MILLIONTHS, of(&self.messages) / MILLIONTHS);
        let idle = self.prices.idle;
        let calibrated = self.prices.cpu(values, messages, of(&self.subscriptions)) - idle;
        if calibrated < LEARNING_MIN {
            return;
        }
        let seen = ((cores - idle) / calibrated).clamp(1.0, FACTOR_MAX);
        let share = 1.0 - (-span.as_secs_f64() / LEARNING.as_secs_f64()).exp();
        let factor = self.factor();
        self.factor.store(((factor + (seen - factor) * share) * MILLIONTHS) as u64, Ordering::Relaxed);
    }

    fn factor(&self) -> f64 {
        self.factor.load(Ordering::Relaxed) as f64 / MILLIONTHS
    }

    /// The prices of today.
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

    /// What is used and what is left.
    #[must_use]
    pub fn report(&self) -> Report {
        let of = |counter: &AtomicI64| counter.load(Ordering::Relaxed).max(0) as f64;
        let (values, messages) = (of(&self.values) / MILLIONTHS, of(&self.messages) / MILLIONTHS);
        let (items, subscriptions) = (of(&self.items), of(&self.subscriptions));
        let prices = self.prices();
        let predicted = prices.cpu(values, messages, subscriptions);
        let left = (self.limit - predicted).max(0.0);
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

/// What one subscription asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Demand {
    /// Millionths per second.
    values: i64,
    messages: i64,
    items: i64,
}

impl Demand {
    fn new(items: u32, interval_ms: f64) -> Self {
        let cycles = 1e3 / interval_ms.max(1e-3) * MILLIONTHS;
        // `as` saturates. Without items there are keep-alives only.
        Self {
            values: (f64::from(items) * cycles) as i64,
            messages: if items > 0 { cycles as i64 } else { 0 },
            items: i64::from(items),
        }
    }
}

/// A subscription's part of the demand. It is taken off when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    headroom: Arc<Headroom>,
    demand: Demand,
}

impl Share {
    pub(crate) fn new(headroom: &Arc<Headroom>) -> Self {
        headroom.subscriptions.fetch_add(1, Ordering::Relaxed);
        Self { headroom: Arc::clone(headroom), demand: Demand::default() }
    }

    /// The subscription has so many items that are not disabled, and publishes so often.
    pub(crate) fn set(&mut self, items: u32, interval_ms: f64, is_publishing: bool) {
        let demand = Demand::new(if is_publishing { items } else { 0 }, interval_ms);
        let add = |counter: &AtomicI64, after: i64, before: i64| {
            counter.fetch_add(after.saturating_sub(before), Ordering::Relaxed);
        };
        add(&self.headroom.values, demand.values, self.demand.values);
        add(&self.headroom.messages, demand.messages, self.demand.messages);
        add(&self.headroom.items, demand.items, self.demand.items);
        self.demand = demand;
    }

    /// Whether the server can take so many items in all of this subscription.
    pub(crate) fn admits(&self, items: u32, interval_ms: f64) -> bool {
        let fits = self.headroom.admit == Admit::Always
            || self.with(Demand::new(items, interval_ms)) <= self.headroom.limit;
        if !fits {
            self.headroom.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// The interval nearest to `interval_ms`, and not shorter, with which the items of this subscription fit. At most `longest`.
    pub(crate) fn revise(&self, items: u32, interval_ms: f64, longest: f64) -> f64 {
        if self.headroom.admit == Admit::Always
            || self.with(Demand::new(items, interval_ms)) <= self.headroom.limit
        {
            return interval_ms;
        }
        // A little longer than exact: both are rounded later.
        let left = (self.headroom.limit - self.with(Demand::default())) * 0.999;
        let prices = self.headroom.prices();
        let cycle = f64::from(items) * prices.of_value(self.subscriptions()) + prices.message;
        let fitting = if left > 0.0 { cycle / left * 1e3 } else { f64::MAX };
        let revised = fitting.max(interval_ms).min(longest.max(interval_ms));
        if revised > interval_ms {
            self.headroom.revised.fetch_add(1, Ordering::Relaxed);
        }
        revised
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
        self.headroom.prices().cpu(values, messages, self.subscriptions())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0, 1e3, false);
        self.headroom.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 % at rest, 1 µs per value, 20 µs per message.
    const PRICES: Prices = Prices { idle: 0.01, value: 1e-6, value_growth: 0.0, message: 20e-6 };

    #[test]
    fn demand_becomes_cpu_and_is_given_back() {
        let headroom = Headroom::new(PRICES, 0.8, Admit::Always);
        let mut share = Share::new(&headroom);
        share.set(1_000, 100.0, true);
        let report = headroom.report();
        // 10 000 values and 10 messages per second.
        assert!((report.predicted - (0.01 + 0.01 + 0.0002)).abs() < 1e-9, "{report:?}");
        assert_eq!((report.items, report.subscriptions, report.actual), (1_000, 1, None));
        assert!((report.remaining_values_per_s - 779_800.0).abs() < 1.0, "{report:?}");
        // Each item costs 10 µs a second, each session a thousand of them and ten messages.
        assert_eq!((report.remaining_items, report.remaining_sessions), (77_980.0, 76.0));
        share.set(1_000, 100.0, false);
        assert_eq!(headroom.report().values_per_s, 0.0);
        headroom.measured(0.25, Duration::from_secs(1));
        drop(share);
        let report = headroom.report();
        assert_eq!((report.predicted, report.subscriptions, report.actual), (0.01, 0, Some(0.25)));
    }

    #[test]
    fn what_does_not_fit_is_refused_or_slowed_down() {
        let headroom = Headroom::new(PRICES, 0.5, Admit::Headroom);
        let mut others = Share::new(&headroom);
        others.set(4_000, 10.0, true);
        // 0.412 of 0.5 are used. 1000 items at 10 ms would be 0.102 more.
        let mut share = Share::new(&headroom);
        assert!(share.admits(500, 10.0) && !share.admits(1_000, 10.0));
        let revised = share.revise(1_000, 10.0, 60_000.0);
        assert!((11.5..12.0).contains(&revised), "{revised}");
        share.set(1_000, revised, true);
        assert!(headroom.report().predicted <= 0.5);
        assert_eq!((headroom.report().refused, headroom.report().revised), (1, 1));
        others.set(6_000, 10.0, true);
        assert_eq!(share.revise(1_000, 10.0, 60_000.0), 60_000.0);
        assert_eq!(share.revise(1_000, 90_000.0, 60_000.0), 90_000.0);
        // Nothing is refused if the headroom is only shown.
        let open = Headroom::new(PRICES, 0.001, Admit::Always);
        let share = Share::new(&open);
        assert!(share.admits(1_000, 1.0));
        assert_eq!(share.revise(1_000, 1.0, 60_000.0), 1.0);
    }

    #[test]
    fn a_server_that_uses_more_than_predicted_raises_its_prices() {
        let headroom = Headroom::new(PRICES, 0.8, Admit::Headroom);
        let mut share = Share::new(&headroom);
        // 0.2 cores, and 0.0002 for messages.
        share.set(20_000, 100.0, true);
        let second = Duration::from_secs(1);
        let after = |cores: f64, seconds: usize| {
            (0..seconds).for_each(|_| headroom.measured(cores, second));
            headroom.report()
        };
        // The first second may be part of another load.
        assert_eq!(after(0.3, 1).factor, 1.0);
        let left = headroom.report().remaining_values_per_s;
        let slow = after(0.3, 15);
        assert!((1.2..1.35).contains(&slow.factor) && slow.predicted < 0.3, "{slow:?}");
        assert!((after(0.3, 100).predicted - 0.3).abs() < 0.001);
        assert!(headroom.report().remaining_values_per_s < left * 0.62, "{:?}", headroom.report());
        // 0.545 cores by the calibration.
        assert!(!share.admits(55_000, 100.0) && share.admits(54_000, 100.0));
        assert!(share.revise(60_000, 100.0, 1e6) > 110.0);
        // Somebody else's work is not taken for that of clients without end.
        assert!((after(9.0, 200).factor - FACTOR_MAX).abs() < 0.001);
        // What costs less than predicted has only not changed yet.
        let cheap = after(0.05, 200);
        assert!((cheap.factor - 1.0).abs() < 0.001 && (cheap.predicted - 0.2102).abs() < 0.001, "{cheap:?}");
        // With little to do, the rest counts for too much.
        share.set(2_000, 100.0, true);
        assert!((after(0.5, 100).factor - 1.0).abs() < 0.001);
    }

    #[test]
    fn values_can_cost_more_with_more_subscriptions() {
        let prices = Prices { value_growth: 1e-6, ..PRICES };
        assert!((prices.cpu(1e5, 0.0, 10.0) - (0.01 + 0.1 + 0.1 * 10f64.powf(0.3))).abs() < 1e-9);
    }
}
