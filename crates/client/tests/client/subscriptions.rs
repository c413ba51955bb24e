//! Publish requests in flight, order, gaps, keep-alives, and changes of subscriptions.

use crate::common::*;
use core::time::Duration;
use proptest::prelude::*;
use taktwerk_client::{Event, Misuse, Restored, SubscriptionEvent, SubscriptionHandle};
use taktwerk_schema::{CreateSubscriptionRequest, MonitoringMode, PublishRequest, RepublishRequest};
use taktwerk_types::{StatusCode, Structure};

#[test]
fn items_are_created_in_parts_and_failures_are_reported_individually() {
    let mut world = Setup::default().world();
    world.server.knobs.published_max = 10;
    world.server.knobs.enforced_max = 10;
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    world.take_events();
    let handle = world.client.create_subscription(params(), world.now);
    let mut items: Vec<_> = (0..35).map(item).collect();
    items[17].item_to_monitor.node_id.namespace_index = 9;
    world.client.add_items(handle, items, world.now).unwrap();
    world.settle();
    let events = world.subscription_events();
    let [SubscriptionEvent::Created { .. }, SubscriptionEvent::Items(items), ..] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(items.len(), 35);
    assert!(items.iter().enumerate().all(|(at, item)| item.client_handle as usize == at));
    assert_eq!(items[17].status, StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(items.iter().filter(|item| item.status.is_good()).count(), 34);
    assert_eq!(world.client.monitored_item_id(handle, 17), None);
    assert!(world.client.monitored_item_id(handle, 18).is_some());
}

#[test]
fn values_arrive_in_order_and_are_acknowledged() {
    let mut world = World::connected();
    let (handle, id) = world.subscribe(5);
    for value in 0..1000 {
        world.server.change(id, value % 5, f64::from(value));
        world.run(Duration::from_millis(100));
    }
    let values: Vec<_> = world.values.iter().map(|(of, _, value)| (*of, *value)).collect();
    assert_eq!(values, (0..1000).map(|value| (handle, f64::from(value))).collect::<Vec<_>>());
    // All but the last few are acknowledged.
    assert!(world.server.subscriptions[&id].retransmission.len() <= 3);
}

#[test]
fn publish_requests_follow_subscriptions_and_the_server() {
    let mut world = World::connected();
    assert_eq!(world.client.outstanding().0, 0);
    let (first, _) = world.subscribe(1);
    assert_eq!(world.client.outstanding().0, 2);
    let (second, _) = world.subscribe(1);
    assert_eq!(world.client.outstanding().0, 3);
    for handle in [first, second] {
        world.client.delete_subscription(handle, world.now).unwrap();
    }
    world.settle();
    assert!(world.server.subscriptions.is_empty());
    assert!(matches!(
        world.subscription_events()[..],
        [.., SubscriptionEvent::Deleted, SubscriptionEvent::Deleted]
    ));
    // A server that accepts few requests does not get more again and again.
    let mut world = World::connected();
    world.server.knobs.publish_max = 2;
    for _ in 0..5 {
        world.subscribe(1);
    }
    world.seconds(5);
    let before = world.server.received.iter().filter(|id| **id == PublishRequest::BINARY_ENCODING_ID).count();
    world.seconds(10);
    let after = world.server.received.iter().filter(|id| **id == PublishRequest::BINARY_ENCODING_ID).count();
    assert_eq!(world.client.outstanding().0, 2);
    // Five keep-alives per second, and one request for each.
    assert!((45..=60).contains(&(after - before)), "{}", after - before);
}

#[test]
fn a_missing_message_is_fetched_and_order_is_kept() {
    for swallowed in [vec![2], vec![2, 3], vec![1], vec![2, 4, 6], vec![2, 3, 4, 5, 6, 7]] {
        let mut world = World::connected();
        let (_, id) = world.subscribe(1);
        world.server.knobs.swallow = swallowed.iter().copied().collect();
        for value in 1..=8 {
            world.server.change(id, 0, f64::from(value));
            world.run(Duration::from_millis(100));
        }
        assert_eq!(world.take_values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "{swallowed:?}");
        assert!(
            !world
                .subscription_events()
                .iter()
                .any(|event| matches!(event, SubscriptionEvent::DataLost { .. }))
        );
    }
}

/// The last message before a pause is lost: only the keep-alive shows it.
#[test]
fn a_keep_alive_reveals_a_missing_message() {
    let mut world = World::connected();
    let (_, id) = world.subscribe(1);
    world.server.knobs.swallow = [1, 2].into();
    world.server.change(id, 0, 1.0);
    world.run(Duration::from_millis(100));
    world.server.change(id, 0, 2.0);
    world.seconds(3);
    assert_eq!(world.take_values(), [1.0, 2.0]);
}

#[test]
fn unavailable_messages_are_reported_as_lost_and_values_resent() {
    let mut world = World::connected();
    let (_, id) = world.subscribe(1);
    world.server.knobs.forget = [2, 3, 5].into();
    world.server.knobs.swallow = [4].into();
    for value in 1..=6 {
        world.server.change(id, 0, f64::from(value));
        world.run(Duration::from_millis(100));
    }
    assert_eq!(world.take_values(), [1.0, 4.0, 6.0]);
    let lost: Vec<_> = world
        .subscription_events()
        .into_iter()
        .filter_map(|event| match event {
            SubscriptionEvent::DataLost { from, to } => Some((from, to)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(2, 3), (5, 5)]);
    assert_eq!(world.server.resends, [id, id]);
}

#[test]
fn sequence_numbers_wrap_to_one() {
    let mut world = World::connected();
    let (_, id) = world.subscribe(1);
    // Reach the wrap by jumps that count as losses.
    for number in [1, 0x7000_0000, 0xe000_0000, u32::MAX - 2] {
        world.server.subscriptions.get_mut(&id).unwrap().next_number = number;
        world.server.change(id, 0, 0.0);
        world.run(Duration::from_millis(100));
    }
    world.take_values();
    world.server.knobs.swallow = [u32::MAX, 1].into();
    for value in 1..=7 {
        world.server.change(id, 0, f64::from(value));
        world.run(Duration::from_millis(100));
    }
    assert_eq!(world.take_values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn silence_is_detected_and_a_lost_subscription_is_recreated() {
    let mut world = World::connected();
    let (handle, id) = world.subscribe(2);
    world.seconds(3);
    let events = world.subscription_events();
    assert!(events.iter().filter(|event| **event == SubscriptionEvent::KeepAlive).count() >= 3);
    // The server sends no keep-alives, but the subscription exists.
    world.server.knobs.keep_alives = false;
    world.seconds(3);
    let events = world.subscription_events();
    assert_eq!(events[events.len() - 2..], [SubscriptionEvent::Inactive, SubscriptionEvent::Active]);
    // The server drops the subscription without notice.
    world.server.subscriptions.remove(&id);
    world.seconds(3);
    let events = world.subscription_events();
    let gone = SubscriptionEvent::Recreating(StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    assert!(events.contains(&gone), "{events:?}");
    assert!(world.client.subscription_id(handle).is_some_and(|new| new != id));
}

#[test]
fn a_missing_keep_alive_reveals_a_dead_connection() {
    let mut setup = Setup::default();
    setup.client.idle_probe = Duration::from_secs(1000);
    setup.client.request_timeout = Duration::from_secs(2);
    let mut world = World::connected_with(setup);
    world.subscribe(1);
    world.seconds(2);
    world.take_events();
    world.dead = true;
    world.seconds(6);
    let events = world.take_events();
    let lost = events.iter().position(|event| matches!(event, Event::ConnectionLost { .. })).unwrap();
    assert!(matches!(events[lost + 1], Event::Restored(Restored::SameSession, _)));
    assert!(world.server.received.contains(&RepublishRequest::BINARY_ENCODING_ID));
}

#[test]
fn the_server_ends_a_subscription() {
    for (status, comes_back) in
        [(StatusCode::BAD_TIMEOUT, true), (StatusCode::GOOD_SUBSCRIPTION_TRANSFERRED, false)]
    {
        let mut world = World::connected();
        let (handle, id) = world.subscribe(2);
        world.take_events();
        world.server.subscriptions.get_mut(&id).unwrap().status_change = Some(status);
        world.seconds(1);
        let events = world.subscription_events();
        if comes_back {
            assert_eq!(events[0], SubscriptionEvent::Recreating(status));
            assert!(world.client.subscription_id(handle).is_some_and(|new| new != id));
        } else {
            assert_eq!(events, [SubscriptionEvent::Ended(status)]);
            assert_eq!(world.client.delete_subscription(handle, world.now), Err(Misuse::NoSuchSubscription));
        }
    }
}

#[test]
fn changed_items_and_modes_survive_a_restart() {
    let mut world = World::connected();
    let (handle, id) = world.subscribe(4);
    world.client.remove_items(handle, &[1, 77], world.now).unwrap();
    world.client.set_monitoring_mode(handle, &[2], MonitoringMode::DISABLED, world.now).unwrap();
    // Replacing an item deletes the old one.
    world.client.add_items(handle, [item(3)], world.now).unwrap();
    world.settle();
    let handles = |world: &World, id: u32| {
        let items = world.server.subscriptions[&id].items.values();
        let mut handles: Vec<_> =
            items.map(|item| (item.requested_parameters.client_handle, item.monitoring_mode)).collect();
        handles.sort();
        handles
    };
    let wanted =
        [(0, MonitoringMode::REPORTING), (2, MonitoringMode::DISABLED), (3, MonitoringMode::REPORTING)];
    assert_eq!(handles(&world, id), wanted);
    world.break_connection();
    world.server.restart();
    world.seconds(1);
    let id = world.client.subscription_id(handle).unwrap();
    assert_eq!(handles(&world, id), wanted);
    let faster = taktwerk_client::SubscriptionParams { publishing_interval_ms: 50.0, ..params() };
    world.take_events();
    world.client.modify_subscription(handle, faster, world.now).unwrap();
    world.settle();
    assert!(matches!(
        world.subscription_events()[..],
        [SubscriptionEvent::Modified { publishing_interval_ms: 50.0, .. }]
    ));
    assert_eq!(
        world.client.add_items(SubscriptionHandle(99), [item(1)], world.now),
        Err(Misuse::NoSuchSubscription)
    );
}

#[test]
fn subscriptions_can_be_added_before_connecting() {
    let mut world = Setup::default().world();
    let handle = world.client.create_subscription(params(), world.now);
    world.client.add_items(handle, (0..3).map(item), world.now).unwrap();
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    assert!(world.client.monitored_item_id(handle, 2).is_some());
}

#[test]
fn a_refused_subscription_is_reported() {
    let mut world = World::connected();
    let full = (CreateSubscriptionRequest::BINARY_ENCODING_ID, StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    world.server.knobs.faults.push(full);
    world.take_events();
    let handle = world.client.create_subscription(params(), world.now);
    world.seconds(1);
    let events = world.subscription_events();
    let [SubscriptionEvent::CreateFailed(error)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(error.status(), StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    world.client.delete_subscription(handle, world.now).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is lost, dropped or cut: every value arrives once and in order, or is reported as lost.
    #[test]
    fn no_silent_loss_no_duplicate_no_disorder(
        swallow in prop::collection::btree_set(1u32..40, 0..15),
        forget in prop::collection::btree_set(1u32..40, 0..6),
        breaks in prop::collection::vec((1u32..40, any::<bool>()), 0..4),
    ) {
        let mut world = World::connected();
        let (_, id) = world.subscribe(1);
        world.take_events();
        world.server.knobs.swallow = swallow.clone();
        world.server.knobs.forget = forget.clone();
        for value in 1..=40u32 {
            world.server.change(id, 0, f64::from(value));
            world.server.flush(world.now);
            for (at, drop_session) in &breaks {
                if *at == value {
                    world.break_connection();
                    if *drop_session {
                        world.server.forget_sessions();
                    }
                }
            }
            world.run(Duration::from_millis(300));
        }
        world.seconds(60);
        world.server.knobs.swallow.clear();
        world.server.knobs.forget.clear();
        world.server.change(id, 0, 41.0);
        world.seconds(5);
        let values = world.take_values();
        let mut lost = std::collections::BTreeSet::new();
        for event in world.subscription_events() {
            match event {
                SubscriptionEvent::DataLost { from, to } => lost.extend(from..=to),
                SubscriptionEvent::Recreating(_) => panic!("the server did not lose it"),
                _ => {}
            }
        }
        prop_assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        prop_assert!(lost.iter().all(|number| forget.contains(number)), "{lost:?}");
        prop_assert_eq!(lost.is_empty(), world.server.forgotten.is_empty());
        // Each value arrived, or was in a message that was reported as lost.
        let mut all = [values, world.server.forgotten.clone()].concat();
        all.sort_by(f64::total_cmp);
        prop_assert_eq!(all, (1..=41u32).map(f64::from).collect::<Vec<_>>());
    }
}
