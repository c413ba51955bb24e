//! What must hold for the notifications of one item, and across all items of one variable.
//!
//! - Values of one writer arrive in the order in which they were written; all items see the values of all writers in
//!   the same order.
//! - No value arrives twice, except for values that the protocol repeats.
//! - An item that reports every write gets every write, or a loss is reported.

use crate::plant::{POLLED, WRITER};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_client::{Event, SubscriptionEvent, SubscriptionHandle};
use taktwerk_sim::Subscriber;
use taktwerk_types::StatusCode;

/// InfoBits: type DataValue with Overflow set (Part 4 §7.39.1).
const OVERFLOW: u32 = 0x0480;

/// A StatusCode without its InfoBits (Part 4 §7.39.1).
const CODE: u32 = 0xffff_0000;

/// An item, from the time when it was requested.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) handle: u32,
    pub(crate) variable: u32,
    pub(crate) subscription: SubscriptionHandle,
    /// It reports every write during its whole life.
    pub(crate) wants_all: bool,
    /// It has not been deleted.
    pub(crate) is_live: bool,
    /// How often it was switched on again: each time, it starts with the current value.
    pub(crate) switched: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Value {
        number: i64,
        overflow: bool,
    },
    /// A polled value with a status that is not good.
    Doubtful(StatusCode),
    /// Messages were lost, or the subscription was created again.
    Loss,
}

fn told(app: &Subscriber, life: &Life) -> Vec<(u64, Told)> {
    let losses = app.events.iter().filter_map(|happened| {
        let Event::Subscription(subscription, event) = &happened.event else { return None };
        let lost = matches!(
            event,
            SubscriptionEvent::DataLost { .. }
                | SubscriptionEvent::Recreating(_)
                | SubscriptionEvent::Ended(_)
        );
        (lost && *subscription == life.subscription).then_some((happened.order, Told::Loss))
    });
    let values = app.values_of(life.handle).iter().map(|received| {
        let status = received.value.status();
        let number = received.value.value.clone().and_then(|value| i64::try_from(value).ok());
        let told = match number {
            Some(number) if status.is_good() => {
                Told::Value { number, overflow: status.0 & OVERFLOW == OVERFLOW }
            }
            _ => Told::Doubtful(status),
        };
        (received.order, told)
    });
    let mut all: Vec<_> = losses.chain(values).collect();
    all.sort_by_key(|(order, _)| *order);
    all
}

/// Counts of what happened in many worlds. If something never happened, the test does not cover it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) values: u64,
    pub(crate) overflows: u64,
    pub(crate) losses: u64,
    pub(crate) doubtful: u64,
    pub(crate) moves: u64,
    pub(crate) modified: u64,
    pub(crate) deleted: u64,
    pub(crate) confirmed: u64,
}

/// By variable: the numbers whose writes were confirmed to clients.
pub(crate) type Confirmed = BTreeMap<u32, BTreeSet<i64>>;

/// Checks an item against the rules.
pub(crate) fn check(
    app: &Subscriber,
    life: &Life,
    confirmed: &Confirmed,
    seen: &mut Seen,
) -> Result<(), String> {
    let told = told(app, life);
    let none = BTreeSet::new();
    let confirmed = confirmed.get(&life.variable).unwrap_or(&none);
    // By writer: its last number, and whether the numbers after it may be missing.
    let mut writers: BTreeMap<i64, (i64, bool)> = BTreeMap::new();
    let mut last = None;
    let mut known = BTreeSet::new();
    let mut repeats = life.switched;
    for (at, (_, one)) in told.iter().enumerate() {
        let fail = |why: &str| {
            let around = &told[at.saturating_sub(6)..(at + 3).min(told.len())];
            Err(format!("{life:?}: {one:?}: {why}; last {last:?}, around: {around:?}"))
        };
        let (number, overflow) = match *one {
            Told::Value { number, overflow } => (number, overflow),
            Told::Doubtful(status) => {
                seen.doubtful += 1;
                if !POLLED.contains(&life.variable) {
                    return fail("a written value must be good");
                }
                let code = StatusCode(status.0 & CODE);
                let hanging = [
                    StatusCode::BAD_WAITING_FOR_INITIAL_DATA,
                    StatusCode::UNCERTAIN_LAST_USABLE_VALUE,
                    StatusCode::BAD_NO_COMMUNICATION,
                ];
                if !hanging.contains(&code) {
                    return fail("not a status of a hanging device");
                }
                continue;
            }
            Told::Loss => {
                seen.losses += 1;
                repeats += 1;
                writers.values_mut().for_each(|(_, may_miss)| *may_miss = true);
                continue;
            }
        };
        seen.values += 1;
        seen.overflows += u64::from(overflow);
        if Some(number) == last && repeats > 0 {
            repeats -= 1;
            continue;
        }
        if !known.insert(number) {
            return fail("it arrives twice");
        }
        if overflow {
            writers.values_mut().for_each(|(_, may_miss)| *may_miss = true);
        }
        let writer = number / WRITER;
        let is_ordered = writer == 0 || confirmed.contains(&number);
        if let Some((before, may_miss)) = writers.get(&writer).copied().filter(|_| is_ordered) {
            if number < before {
                return fail("out of order");
            }
            let missing = match writer {
                0 => (before + 1 < number).then_some(before + 1),
                _ => confirmed.range(before + 1..number).next().copied(),
            };
            if let Some(missing) = missing.filter(|_| life.wants_all && !may_miss) {
                return fail(&format!("{missing} is missing"));
            }
        }
        if is_ordered {
            writers.insert(writer, (number, false));
        }
        last = Some(number);
    }
    Ok(())
}

/// The values of an item without repetitions.
pub(crate) fn order(app: &Subscriber, life: &Life) -> Vec<i64> {
    let mut numbers: Vec<i64> = told(app, life)
        .into_iter()
        .filter_map(|(_, told)| match told {
            Told::Value { number, .. } => Some(number),
            Told::Doubtful(_) | Told::Loss => None,
        })
        .collect();
    numbers.dedup();
    numbers
}

/// Checks that two items of a variable see its values in the same order.
pub(crate) fn agree(one: &[i64], other: &[i64]) -> Result<(), String> {
    let places: BTreeMap<i64, usize> =
        one.iter().enumerate().map(|(place, number)| (*number, place)).collect();
    let mut last = None;
    for number in other {
        let Some(place) = places.get(number) else { continue };
        if let Some((before, last)) = last
            && place < last
        {
            return Err(format!("one item sees {before} before {number}, another after it"));
        }
        last = Some((number, place));
    }
    Ok(())
}

#[test]
fn different_orders_are_detected() {
    assert_eq!(agree(&[1, 2, 3, 5], &[1, 3, 4, 5]), Ok(()));
    assert!(agree(&[1, 2, 3], &[2, 1]).is_err());
}
