//! The messages of a subscription: values become readings, and losses are counted.

use super::translation::Translation;
use crate::fault::Fault;
use crate::feed::{Feed, Reading};
use crate::statistics::{Count, Statistics};
use std::collections::HashMap;
use taktwerk::client::Update;
use taktwerk_client::SubscriptionEvent;
use taktwerk_types::{DataValue, StatusCode};

/// The info bits of a value without its info type (Part 4 §7.39.1): limit, overflow, and those of historical values.
const DATA_VALUE_BITS: u32 = 0x0000_03ff;

/// The reading for a value of the other server.
pub(super) fn reading(value: DataValue, translation: &Translation) -> Reading {
    let time = value.source_timestamp;
    let reading = Reading::of(value).at(time);
    let status = without_overflow(reading.status);
    match translation.value_here(reading.value) {
        Some(value) => Reading { value, status, ..reading },
        // A structure of an unknown type.
        None => Reading::bad(StatusCode::BAD_DATA_TYPE_ID_UNKNOWN).at(time),
    }
}

/// The bit describes the queue of the gateway's item. The variable here has items with their own queues.
fn without_overflow(status: StatusCode) -> StatusCode {
    if !status.has_overflow() {
        return status;
    }
    let rest = status.0 & !StatusCode::OVERFLOW;
    StatusCode(if rest & DATA_VALUE_BITS == 0 { rest & !StatusCode::INFO_TYPE_DATA_VALUE } else { rest })
}

pub(super) fn take(
    update: Update,
    positions: &HashMap<u32, usize>,
    translation: &Translation,
    readings: &mut Vec<(usize, Reading)>,
    feed: &Feed,
    target: &str,
) -> Result<(), Fault> {
    count_losses(&update, feed.statistics());
    match update {
        Update::Change(change) => {
            if let Some(position) = positions.get(&change.item) {
                readings.push((*position, reading(change.value, translation)));
            }
        }
        Update::State(event) => return end(event, target).map_or(Ok(()), Err),
        _ => {}
    }
    Ok(())
}

/// Counts what is known to be lost. How many values an overflow or a message stands for is unknown: each counts once.
fn count_losses(update: &Update, statistics: &Statistics) {
    let lost = match update {
        Update::Change(change) => usize::from(change.value.status().has_overflow()),
        Update::Lagged(count) => *count,
        // Sequence numbers start again at 1 (Part 4 §7.28), so across the end there is one less.
        Update::State(SubscriptionEvent::DataLost { from, to }) => {
            to.wrapping_sub(*from).wrapping_add(u32::from(to >= from)) as usize
        }
        _ => 0,
    };
    statistics.add(Count::Dropped, lost);
}

/// The fault for a subscription event that ends the flow of values.
fn end(event: SubscriptionEvent, target: &str) -> Option<Fault> {
    match event {
        SubscriptionEvent::CreateFailed(error) => Some(Fault::other(target, error)),
        SubscriptionEvent::Ended(status) => {
            Some(Fault::other(target, format!("the subscription has ended: {status}")))
        }
        // Otherwise the values would stay good forever.
        SubscriptionEvent::Inactive => {
            Some(Fault::other(target, "the server sends neither values nor keep-alives"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{NodeId, UtcTime};

    #[test]
    fn a_subscription_without_keep_alives_ends_the_connection() {
        let fault = end(SubscriptionEvent::Inactive, "plc").unwrap().to_string();
        assert!(fault.contains("neither values nor keep-alives"), "{fault}");
        assert!(end(SubscriptionEvent::Ended(StatusCode::BAD_TIMEOUT), "plc").is_some());
        assert!(end(SubscriptionEvent::DataLost { from: 1, to: 1 }, "plc").is_none());
    }

    #[test]
    fn losses_are_counted() {
        let statistics = Statistics::default();
        let mut expected = 0;
        let mut check = |update, more| {
            count_losses(&update, &statistics);
            expected += more;
            assert_eq!(statistics.snapshot().dropped, expected, "{update:?}");
        };
        check(Update::State(SubscriptionEvent::DataLost { from: 7, to: 7 }), 1);
        check(Update::State(SubscriptionEvent::DataLost { from: 8, to: 10 }), 3);
        check(Update::State(SubscriptionEvent::DataLost { from: u32::MAX, to: 2 }), 3);
        check(Update::State(SubscriptionEvent::Active), 0);
        check(Update::Lagged(5), 5);
        let change = |status| {
            let value = DataValue { status: Some(status), ..DataValue::new(1.0) };
            let (node, publish_time) = (NodeId::NULL, UtcTime::NULL);
            Update::Change(taktwerk::client::Change { item: 1, node, value, publish_time })
        };
        check(change(StatusCode::GOOD), 0);
        check(change(StatusCode::GOOD.with_overflow()), 1);
        check(change(StatusCode::BAD_SENSOR_FAILURE.with_overflow()), 1);
    }

    #[test]
    fn the_overflow_bit_is_not_passed_on() {
        let limited = StatusCode(0x0600);
        for status in [StatusCode::GOOD, StatusCode::BAD_SENSOR_FAILURE, limited] {
            assert_eq!(without_overflow(status), status);
            assert_eq!(without_overflow(status.with_overflow()), status);
        }
    }
}
