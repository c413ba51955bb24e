//! Publishing the subscription diagnostics of a shard, for readers on any shard.

use crate::diagnostics::nodes::session_id;
use crate::session::{SessionKey, Sessions};
use crate::shared::ServerShared;
use crate::subscription::Engine;
use core::sync::atomic::Ordering;
use taktwerk_schema::SubscriptionDiagnosticsDataType;

/// Publishes the subscription diagnostics of a shard, for readers on any shard.
pub(crate) fn publish(shared: &ServerShared, sessions: &Sessions, engine: &Engine) {
    let number = |key: Option<crate::subscription::SessionKey>| {
        key.and_then(|key| sessions.at(key)).map_or(0, |session| session.entry.number)
    };
    let all = engine
        .subscriptions()
        .map(|subscription| {
            let counters = &subscription.counters;
            let parameters = &subscription.parameters;
            SubscriptionDiagnosticsDataType {
                session_id: session_id(number(subscription.session)),
                subscription_id: subscription.id,
                priority: parameters.priority,
                publishing_interval: parameters.publishing_interval,
                max_keep_alive_count: parameters.max_keep_alive_count,
                max_lifetime_count: parameters.lifetime_count,
                max_notifications_per_publish: parameters.max_notifications,
                publishing_enabled: subscription.publishing_enabled,
                modify_count: counters.modify,
                enable_count: counters.enable,
                disable_count: counters.disable,
                republish_request_count: counters.republish_requests,
                republish_message_request_count: counters.republish_requests,
                republish_message_count: counters.republished,
                transfer_request_count: counters.transfer_requests,
                transferred_to_alt_client_count: counters.transferred_to_alt_client,
                transferred_to_same_client_count: counters.transferred_to_same_client,
                publish_request_count: counters.publish_requests,
                data_change_notifications_count: counters.data_changes,
                event_notifications_count: 0,
                notifications_count: counters.notifications,
                late_publish_request_count: counters.late,
                current_keep_alive_count: subscription.keep_alive_counter,
                current_lifetime_count: subscription.lifetime_counter,
                unacknowledged_message_count: count(subscription.retransmission.sequence_numbers().len()),
                discarded_message_count: counters.discarded_messages,
                monitored_item_count: count(subscription.items.len()),
                disabled_monitored_item_count: subscription.disabled_items(),
                monitoring_queue_overflow_count: counters.queue_overflows,
                next_sequence_number: subscription.next_sequence_number,
                event_queue_overflow_count: 0,
            }
        })
        .collect();
    shared.live().publish_subscriptions(sessions.shard(), all);
    for (key, session) in sessions.iter() {
        let (subscriptions, items, requests) = session_counts(engine, key);
        session.entry.subscriptions.store(subscriptions, Ordering::Relaxed);
        session.entry.monitored_items.store(items, Ordering::Relaxed);
        session.entry.publish_requests.store(requests, Ordering::Relaxed);
    }
}

fn session_counts(engine: &Engine, key: SessionKey) -> (u32, u32, u32) {
    let items = engine.session_subscriptions(key.into()).map(|subscription| subscription.items.len()).sum();
    let subscriptions = engine.session_subscription_count(key.into());
    (count(subscriptions), count(items), count(engine.publish_request_count(key.into())))
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
