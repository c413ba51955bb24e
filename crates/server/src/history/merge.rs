//! Merges stored values or events with others that are not stored yet.

use super::store::{HistoryValue, Order, ReadLimit, StoreError};
use crate::account::HeapSize;
use core::cmp::Ordering;

/// Appends to `out` what a store has and `others`, up to `limit`, in reading order. Both have unique keys. For equal keys,
/// the element of `others` is taken. `more` reads the store: elements behind the given one, in order, up to a limit.
///
/// # Errors
/// Those of `more`.
pub fn merge_unstored<T: HeapSize + Clone, K: Ord>(
    others: Vec<T>,
    order: Order,
    mut limit: ReadLimit,
    key: impl Fn(&T) -> K,
    out: &mut Vec<T>,
    mut more: impl FnMut(Option<&T>, ReadLimit, &mut Vec<T>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let compare = |one: &T, other: &T| match order {
        Order::Forward => key(one).cmp(&key(other)),
        Order::Backward => key(other).cmp(&key(one)),
    };
    let mut others = others.into_iter().peekable();
    let mut last = None;
    loop {
        let mut stored = Vec::new();
        more(last.as_ref(), limit, &mut stored)?;
        // The store may have more behind the last one found. Elements of `others` behind it must wait.
        let is_cut = limit.behind(&stored).is_reached();
        last = stored.last().cloned();
        let mut stored = stored.into_iter().peekable();
        let mut next = || match (stored.peek(), others.peek()) {
            (Some(one), Some(other)) => match compare(one, other) {
                Ordering::Less => stored.next(),
                Ordering::Greater => others.next(),
                Ordering::Equal => {
                    stored.next();
                    others.next()
                }
            },
            (Some(_), None) => stored.next(),
            (None, _) if is_cut => None,
            (None, _) => others.next(),
        };
        while !limit.is_reached() {
            let Some(next) = next() else { break };
            limit.give(&next);
            out.push(next);
        }
        // The limit is not reached if elements of `others` replaced larger ones.
        if limit.is_reached() || !is_cut {
            return Ok(());
        }
    }
}

/// Sorts values by time. Of several values with the same time the last is kept.
pub fn sort_values(values: &mut Vec<HistoryValue>) {
    if values.windows(2).all(|pair| matches!(pair, [one, other] if one.source < other.source)) {
        return;
    }
    values.reverse();
    values.sort_by_key(|value| value.source);
    values.dedup_by_key(|value| value.source);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use taktwerk_types::{StatusCode, UtcTime, Variant};

    fn value(time: i64, len: usize) -> HistoryValue {
        let source = UtcTime::from_ticks(time);
        let value = Variant::from("x".repeat(len));
        HistoryValue { source, server: source, status: StatusCode::GOOD, value }
    }

    /// A small generator of numbers, so that failures can be repeated.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, max: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % max
        }
    }

    #[test]
    fn merging_equals_sorting_everything() {
        for seed in 0..2_000 {
            let mut numbers = Numbers(seed);
            let mut list = |max: u64| -> BTreeMap<i64, HistoryValue> {
                let count = numbers.below(max);
                let one = |_| (numbers.below(30) as i64, numbers.below(40) as usize);
                (0..count).map(one).map(|(time, len)| (time, value(time, len))).collect()
            };
            let (stored, others) = (list(20), list(8));
            let order = if numbers.below(2) == 0 { Order::Forward } else { Order::Backward };
            let limit = ReadLimit { count: numbers.below(25) as usize, bytes: numbers.below(300) as usize };
            let sorted = |values: BTreeMap<i64, HistoryValue>| -> Vec<HistoryValue> {
                match order {
                    Order::Forward => values.into_values().collect(),
                    Order::Backward => values.into_values().rev().collect(),
                }
            };
            let mut all = stored.clone();
            all.extend(others.clone());
            let expected: Vec<_> = limit.of(sorted(all).into_iter()).collect();
            let (stored, others) = (sorted(stored), sorted(others));
            let mut found = Vec::new();
            let more = |after: Option<&HistoryValue>, limit: ReadLimit, out: &mut Vec<HistoryValue>| {
                let at = after
                    .map_or(0, |after| stored.iter().position(|one| one.source == after.source).unwrap() + 1);
                out.extend(limit.of(stored.iter().skip(at).cloned()));
                Ok(())
            };
            merge_unstored(others, order, limit, |value| value.source, &mut found, more).unwrap();
            assert_eq!(found, expected, "seed {seed}");
        }
    }
}
