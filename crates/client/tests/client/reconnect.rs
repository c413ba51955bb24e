//! Connection loss at every step, and the state after reconnecting.

use crate::common::*;
use core::time::Duration;
use taktwerk_client::{ClientError, Event, Restored, SubscriptionEvent, SubscriptionParams};
use taktwerk_schema::{
    ActivateSessionRequest, CreateSessionRequest, ModifySubscriptionRequest, MonitoringMode, ReadRequest,
    ReadResponse, SetMonitoringModeRequest, SetPublishingModeRequest,
};
use taktwerk_types::{Instant, StatusCode, Structure};

#[test]
fn a_cut_at_any_step_of_connecting_is_survived() {
    for cut in 0..14 {
        let mut world = retrying().world();
        world.cut_after = Some(cut);
        world.client.connect(target(), world.now).unwrap();
        world.seconds(2);
        assert!(world.client.is_up(), "cut {cut}: {:?}", world.take_events());
        let connected =
            world.take_events().iter().filter(|event| matches!(event, Event::Connected(_))).count();
        assert_eq!(connected, 1);
        let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
        assert!(world.response::<ReadResponse>(handle).is_ok());
        // Sessions created before the cut are left to time out, at most one per attempt.
        assert!(world.server.sessions.len() <= 2);
    }
}

#[test]
fn without_retries_a_cut_while_connecting_is_the_end() {
    for cut in 0..8 {
        let mut world = Setup::default().world();
        world.cut_after = Some(cut);
        world.client.connect(target(), world.now).unwrap();
        world.seconds(100);
        let events = world.take_events();
        assert!(
            matches!(&events[..], [Event::Disconnected(Some(ClientError::Connection(_)))]),
            "{cut}: {events:?}"
        );
        assert_eq!(world.client.poll_timeout(), None);
    }
}

#[test]
fn requests_on_a_lost_connection_are_answered_with_the_error() {
    let mut world = World::connected();
    world.server.knobs.silent.insert(ReadRequest::BINARY_ENCODING_ID);
    let single = world.client.request(&mut read(1..2), None, world.now).unwrap();
    let list = world.client.operate(read(1..20), world.now).unwrap();
    world.settle();
    world.break_connection();
    for handle in [single, list] {
        assert!(world.response::<ReadResponse>(handle).unwrap_err().is_connection());
    }
    world.server.knobs.silent.clear();
    world.seconds(1);
    let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
    assert!(world.response::<ReadResponse>(handle).is_ok());
}

/// The delay between attempts grows, with jitter, up to its maximum.
#[test]
fn attempts_back_off_with_jitter() {
    let mut world = World::connected();
    world.refuse = true;
    world.take_events();
    world.break_connection();
    world.seconds(300);
    let mut last = world.now;
    let mut delays = Vec::new();
    for event in world.take_events() {
        let (Event::ConnectionLost { retry_at, .. } | Event::ConnectFailed { retry_at, .. }) = event else {
            panic!("{event:?}")
        };
        if delays.is_empty() {
            last = START;
        }
        delays.push(retry_at.since(last));
        last = retry_at;
    }
    assert!(delays[0] >= Duration::from_millis(50) && delays[0] <= Duration::from_millis(100));
    assert!(delays.windows(2).take(5).all(|pair| pair[1] > pair[0].mul_f64(0.9)));
    assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(30)));
    assert!(delays.len() > 12 && delays.len() < 40, "{}", delays.len());
    world.refuse = false;
    world.seconds(31);
    assert!(world.client.is_up());
}

#[test]
fn attempts_can_be_limited() {
    let mut setup = Setup::default();
    setup.client.reconnect.attempts_max = Some(3);
    let mut world = World::connected_with(setup);
    world.refuse = true;
    world.take_events();
    world.break_connection();
    world.seconds(100);
    let events = world.take_events();
    assert_eq!(events.len(), 4);
    assert!(matches!(events.last(), Some(Event::Disconnected(Some(_)))));
}

#[test]
fn the_same_session_continues_without_loss() {
    let mut world = World::connected();
    let (handle, id) = world.subscribe(3);
    world.server.change(id, 1, 1.0);
    world.run(Duration::from_millis(100));
    world.take_events();
    assert_eq!(world.take_values(), [1.0]);
    world.break_connection();
    // The server queues changes while there is no connection.
    world.server.change(id, 1, 2.0);
    world.run(Duration::from_millis(500));
    world.server.change(id, 2, 3.0);
    world.run(Duration::from_millis(200));
    assert_eq!(world.take_values(), [2.0, 3.0]);
    let events = world.take_events();
    let [
        Event::ConnectionLost { .. },
        Event::Restored(Restored::SameSession, _),
        Event::Subscription(kept, event),
    ] = &events[..3]
    else {
        panic!("{events:?}")
    };
    assert_eq!((kept, event), (&handle, &SubscriptionEvent::Kept));
    assert_eq!(world.client.subscription_id(handle), Some(id));
    assert!(!world.server.received.iter().skip(20).any(|id| *id == CreateSessionRequest::BINARY_ENCODING_ID));
}

/// Messages in transit when the connection broke are fetched by Republish, in order.
#[test]
fn messages_lost_with_the_connection_are_republished() {
    let mut world = World::connected();
    let (_, id) = world.subscribe(3);
    for value in 1..=5 {
        // Sent by the server, but the connection breaks before they arrive.
        world.server.change(id, 1, f64::from(value));
        world.server.flush(world.now);
    }
    world.break_connection();
    world.server.change(id, 1, 6.0);
    world.seconds(1);
    assert_eq!(world.take_values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn a_dropped_session_is_replaced_and_its_subscriptions_transferred() {
    let mut world = World::connected();
    let (handle, id) = world.subscribe(3);
    for value in 1..=3 {
        world.server.change(id, 1, f64::from(value));
        world.server.flush(world.now);
    }
    world.take_events();
    world.break_connection();
    world.server.forget_sessions();
    world.seconds(1);
    let events = world.take_events();
    assert!(
        matches!(
            &events[..],
            [
                Event::ConnectionLost { .. },
                Event::Restored(Restored::NewSession, _),
                Event::Subscription(_, SubscriptionEvent::Transferred),
                ..
            ]
        ),
        "{events:?}"
    );
    assert_eq!(world.take_values(), [1.0, 2.0, 3.0]);
    assert_eq!(world.client.subscription_id(handle), Some(id));
    world.server.change(id, 1, 4.0);
    world.run(Duration::from_millis(100));
    assert_eq!(world.take_values(), [4.0]);
}

#[test]
fn untransferable_subscriptions_are_recreated_with_the_same_handles() {
    for transfer_supported in [true, false] {
        let mut world = World::connected();
        let (handle, id) = world.subscribe(3);
        world.take_events();
        world.server.knobs.transfer = transfer_supported;
        world.break_connection();
        world.server.restart();
        world.seconds(1);
        let events = world.subscription_events();
        let [
            SubscriptionEvent::Recreating(_),
            SubscriptionEvent::Created { subscription_id, .. },
            SubscriptionEvent::Items(items),
            ..,
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_ne!(*subscription_id, id);
        assert_eq!(items.iter().map(|item| item.client_handle).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(world.client.subscription_id(handle), Some(*subscription_id));
        world.server.change(*subscription_id, 2, 9.0);
        world.run(Duration::from_millis(100));
        assert_eq!(world.take_values(), [9.0]);
    }
}

#[test]
fn a_refused_reactivation_leads_to_a_new_session() {
    let mut world = World::connected();
    world.take_events();
    let refused = (ActivateSessionRequest::BINARY_ENCODING_ID, StatusCode::BAD_SESSION_ID_INVALID);
    world.server.knobs.faults.push(refused);
    world.break_connection();
    world.seconds(1);
    let events = world.take_events();
    assert!(matches!(&events[..], [Event::ConnectionLost { .. }, Event::Restored(Restored::NewSession, _)]));
}

/// After a password change: one attempt, then the application is notified.
#[test]
fn a_refused_user_is_not_retried_if_configured() {
    let activate = ActivateSessionRequest::BINARY_ENCODING_ID;
    for status in [StatusCode::BAD_USER_ACCESS_DENIED, StatusCode::BAD_IDENTITY_TOKEN_REJECTED] {
        for retries in [false, true] {
            let mut setup = Setup::default();
            setup.client.reconnect.retry_refused_user = retries;
            let mut world = World::connected_with(setup);
            world.take_events();
            world.server.knobs.always.insert(activate, status);
            let count = |world: &World| world.server.received.iter().filter(|id| **id == activate).count();
            let before = count(&world);
            world.server.forget_sessions();
            world.break_connection();
            world.seconds(60);
            let events = world.take_events();
            let ended = events.iter().filter(|event| matches!(event, Event::Disconnected(Some(_)))).count();
            let attempts = count(&world) - before;
            if retries {
                assert!(ended == 0 && attempts > 3, "{attempts}: {events:?}");
            } else {
                assert_eq!((ended, attempts), (1, 1), "{events:?}");
                assert_eq!(world.client.poll_timeout(), None);
            }
        }
    }
}

/// The server drops its sessions without notice.
#[test]
fn a_lost_session_is_replaced_whichever_request_detects_it() {
    for first in 0..4 {
        let mut world = World::connected();
        let (one, _) = world.subscribe(1);
        world.take_events();
        world.server.forget_sessions();
        let mut two = None;
        match first {
            0 => two = Some(world.client.create_subscription(params(), world.now)),
            1 => world.client.add_items(one, [item(7)], world.now).unwrap(),
            2 => world.client.modify_subscription(one, params(), world.now).map(drop).unwrap(),
            _ => {
                let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
                world.settle();
                let status = world.response::<ReadResponse>(handle).unwrap_err().status();
                assert_eq!(status, StatusCode::BAD_SESSION_ID_INVALID);
            }
        }
        world.seconds(2);
        let events = world.take_events();
        let restored = |event: &Event| matches!(event, Event::Restored(Restored::NewSession, _));
        assert_eq!(events.iter().filter(|event| restored(event)).count(), 1, "{first}: {events:?}");
        for subscription in core::iter::once(one).chain(two) {
            assert!(world.client.subscription_id(subscription).is_some(), "{first}: {events:?}");
        }
        if first == 1 {
            assert!(world.client.monitored_item_id(one, 7).is_some(), "{events:?}");
        }
    }
}

/// If a server does not answer an internal request, the client reconnects and sends it again.
#[test]
fn a_timeout_while_subscribing_is_retried() {
    use taktwerk_schema::{CreateMonitoredItemsRequest, CreateSubscriptionRequest};
    for silent in
        [CreateSubscriptionRequest::BINARY_ENCODING_ID, CreateMonitoredItemsRequest::BINARY_ENCODING_ID]
    {
        let mut world = World::connected();
        world.take_events();
        world.server.knobs.silent.insert(silent);
        let handle = world.client.create_subscription(params(), world.now);
        world.client.add_items(handle, (0..2).map(item), world.now).unwrap();
        world.seconds(11);
        world.server.knobs.silent.clear();
        world.seconds(11);
        let events = world.take_events();
        let lost = events.iter().filter(|event| matches!(event, Event::ConnectionLost { .. })).count();
        assert!(lost >= 1, "{events:?}");
        let refused =
            |event: &Event| matches!(event, Event::Subscription(_, SubscriptionEvent::CreateFailed(_)));
        assert!(!events.iter().any(refused), "{events:?}");
        assert!(world.client.monitored_item_id(handle, 1).is_some(), "{events:?}");
    }
}

#[test]
fn a_cut_at_any_step_of_reconnecting_is_survived_without_loss() {
    for drop_session in [false, true] {
        for cut in 0..24 {
            let mut world = World::connected();
            let (_, id) = world.subscribe(2);
            world.take_events();
            for value in 1..=3 {
                world.server.change(id, 1, f64::from(value));
                world.server.flush(world.now);
            }
            world.break_connection();
            if drop_session {
                world.server.forget_sessions();
            }
            world.cut_after = Some(cut);
            world.seconds(5);
            world.server.change(id, 1, 4.0);
            world.seconds(2);
            assert!(world.client.is_up());
            let (values, events) = (world.take_values(), world.take_events());
            assert_eq!(values, [1.0, 2.0, 3.0, 4.0], "cut {cut}, dropped {drop_session}: {events:#?}");
        }
    }
}

/// The response with the created items is lost: items are neither duplicated nor forgotten, and a subscription whose
/// creation was not reported is deleted.
#[test]
fn a_cut_while_creating_leaves_neither_duplicates_nor_orphans() {
    let mut audits = 0;
    for cut in 0..10 {
        let mut world = World::connected();
        world.cut_after = Some(cut);
        let handle = world.client.create_subscription(params(), world.now);
        world.client.add_items(handle, (0..5).map(item), world.now).unwrap();
        world.seconds(5);
        world.client.remove_items(handle, &[0], world.now).unwrap();
        world.seconds(5);
        let id = world.client.subscription_id(handle).unwrap();
        assert_eq!(world.server.subscriptions.keys().copied().collect::<Vec<_>>(), [id], "cut {cut}");
        let items = world.server.subscriptions[&id].items.iter();
        let mut found: Vec<_> =
            items.map(|(id, item)| (item.requested_parameters.client_handle, Some(*id))).collect();
        found.sort_unstable();
        let wanted = (1..5).map(|item| (item, world.client.monitored_item_id(handle, item)));
        assert_eq!(found, wanted.collect::<Vec<_>>(), "cut {cut}");
        assert!(world.server.audits <= 1);
        audits += world.server.audits;
    }
    assert!(audits > 0);
}

#[test]
fn a_busy_server_causes_longer_delays() {
    let mut world = retrying().world();
    let busy = (CreateSessionRequest::BINARY_ENCODING_ID, StatusCode::BAD_TOO_MANY_SESSIONS);
    world.server.knobs.faults.push(busy);
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    let events = world.take_events();
    let [Event::ConnectFailed { retry_at, .. }] = events[..] else { panic!("{events:?}") };
    assert!(retry_at.since(START) >= Duration::from_millis(200));
}

#[test]
fn disconnecting_while_waiting_or_connecting_ends_at_once() {
    let mut world = World::connected();
    world.refuse = true;
    world.break_connection();
    world.take_events();
    world.client.disconnect(world.now);
    world.run(Duration::ZERO);
    assert_eq!(world.take_events(), [Event::Disconnected(None)]);
    let mut world = Setup::default().world();
    world.client.connect(target(), world.now).unwrap();
    world.client.disconnect(world.now);
    world.seconds(1);
    assert_eq!(world.take_events(), [Event::Disconnected(None)]);
    assert_eq!(world.client.poll_timeout(), None);
    assert!(world.client.connect(target(), Instant::FAR).is_ok());
}

/// Callers of `disconnect` wait for its event and cannot know that the client has ended in the meantime.
#[test]
fn disconnecting_an_ended_client_is_confirmed() {
    let mut setup = Setup::default();
    setup.client.reconnect.enabled = false;
    let mut world = setup.world();
    world.client.disconnect(world.now);
    world.run(Duration::ZERO);
    assert_eq!(world.take_events(), [Event::Disconnected(None)], "never connected");
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    world.take_events();
    // Without retries, the client ends.
    world.break_connection();
    assert!(matches!(world.take_events()[..], [Event::Disconnected(Some(_))]));
    world.client.disconnect(world.now);
    world.run(Duration::ZERO);
    assert_eq!(world.take_events(), [Event::Disconnected(None)]);
    assert_eq!(world.client.poll_timeout(), None);
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    assert!(world.client.is_up(), "{:?}", world.take_events());
}

/// Changes requested while the connection broke are made on the next one if the subscription is kept.
#[test]
fn changes_lost_with_the_connection_are_requested_again() {
    let services = [
        SetPublishingModeRequest::BINARY_ENCODING_ID,
        ModifySubscriptionRequest::BINARY_ENCODING_ID,
        SetMonitoringModeRequest::BINARY_ENCODING_ID,
    ];
    let change = |world: &mut World, handle| {
        let slower = SubscriptionParams { publishing_interval_ms: 300.0, ..params() };
        world.client.modify_subscription(handle, slower, world.now).unwrap();
        world.client.set_publishing_mode(handle, false, world.now).unwrap();
        world.client.set_monitoring_mode(handle, &[1, 2], MonitoringMode::DISABLED, world.now).unwrap();
    };
    let asked =
        |world: &World| services.map(|id| world.server.received.iter().filter(|it| **it == id).count());
    for case in ["not sent", "not answered", "overdue", "no connection"] {
        let mut world = World::connected();
        let (handle, id) = world.subscribe(3);
        if case == "no connection" {
            world.break_connection();
            world.client.handle_timeout(world.now, &mut world.queue);
        }
        if case == "not answered" || case == "overdue" {
            world.server.knobs.silent.extend(services);
        }
        change(&mut world, handle);
        if case == "not answered" {
            world.settle();
        }
        if case == "overdue" {
            world.seconds(8);
        }
        world.server.knobs.silent.clear();
        let before = asked(&world);
        if case == "overdue" {
            world.seconds(30);
        } else if case != "no connection" {
            world.break_connection();
        }
        world.seconds(2);
        assert_eq!(world.client.subscription_id(handle), Some(id), "{case}: the subscription is kept");
        assert_eq!(asked(&world), before.map(|count| count + 1), "{case}: {before:?}");
        let modes: Vec<_> =
            world.server.subscriptions[&id].items.values().map(|item| item.monitoring_mode).collect();
        let (reporting, disabled) = (MonitoringMode::REPORTING, MonitoringMode::DISABLED);
        assert_eq!(modes, [reporting, disabled, disabled], "{case}");
        let told = world.subscription_events();
        let is_told = |event: &SubscriptionEvent| matches!(event, SubscriptionEvent::Modified { .. });
        assert_eq!(told.iter().filter(|event| is_told(event)).count(), 1, "{case}: {told:?}");
        assert!(told.contains(&SubscriptionEvent::PublishingModeSet(false)), "{case}: {told:?}");
        // They are sent only once.
        world.break_connection();
        world.seconds(2);
        assert_eq!(asked(&world), before.map(|count| count + 1), "{case}");
    }
}

/// The application changes the mode while the item is being created.
#[test]
fn a_mode_set_during_item_creation_is_applied() {
    let mut world = World::connected();
    let (handle, id) = world.subscribe(1);
    world.client.add_items(handle, [item(1)], world.now).unwrap();
    world.client.set_monitoring_mode(handle, &[1], MonitoringMode::SAMPLING, world.now).unwrap();
    world.seconds(1);
    let modes: Vec<_> =
        world.server.subscriptions[&id].items.values().map(|item| item.monitoring_mode).collect();
    assert_eq!(modes, [MonitoringMode::REPORTING, MonitoringMode::SAMPLING]);
}
