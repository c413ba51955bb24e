//! Data about users and conditions after a restart.

use super::*;

/// The user of a durable subscription had to change the password when the server stopped.
#[test]
fn a_limited_user_stays_limited_after_a_restart() {
    use super::session::{login, with_users};
    use crate::identity::{Accepted, Credential, IdentityVerifier, Verification};
    struct Expiring;
    impl IdentityVerifier for Expiring {
        fn verify(&self, credential: Credential) -> Verification {
            let Credential::Password { password, .. } = credential else { return Verification::refused() };
            let accepted = Accepted::default();
            let expired = password.expose() == b"old";
            Verification::Now(Ok(if expired { accepted.changing_password() } else { accepted }))
        }
    }
    let store = Arc::new(Memory::default());
    let started = || started_with(&store, |_| {}, |config| with_users(config, Arc::new(Expiring)));
    let mut first = started();
    let mut client = first.connect();
    client.create(&mut first).unwrap();
    let request = login(&mut client, "joe", "new");
    client.call(&mut first, &request).unwrap();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    assert_eq!(of_item(&next(&mut client, &mut first).notification_message, 5), [(0.0, false)]);
    let request = login(&mut client, "joe", "old");
    client.call(&mut first, &request).unwrap();
    first.set(1.0);
    first.pass_and_write(300);
    drop(first);
    let mut second = started();
    second.pass_and_write(300);
    let now = second.now;
    let cx = second.shard.context(None, now);
    let (_, grant) = cx.engine.orphans().remove(0);
    assert!(grant.is_limited);
    // New values are not stored for a user without permission.
    second.set(2.0);
    second.pass_and_write(300);
    let mut client = second.connect();
    client.create(&mut second).unwrap();
    let request = login(&mut client, "joe", "new");
    client.call(&mut second, &request).unwrap();
    second.set(3.0);
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(value, _)| *value != 3.0) {
        let message = next(&mut client, &mut second).notification_message;
        seen.extend(of_item(&message, 5));
        assert!(message.sequence_number < 10, "{seen:?}");
    }
    assert!(seen.iter().all(|(value, _)| value.is_nan() || *value >= 3.0), "{seen:?}");
}

/// Filtered Retain (Part 9 §5.5.2) across a restart: the server remembers the client's retained conditions.
#[test]
fn conditions_that_leave_a_filter_after_a_restart_are_reported_with_retain_false() {
    use super::alarms::{level, set};
    use super::events::{events, filter, item, parameters, severity_at_least};
    let plant = |server: &mut Server, value: f64| {
        server.space.add_condition(level(1), server.now.utc).unwrap();
        set(server, 1, value);
    };
    let told = |response: &PublishResponse| -> Vec<(Variant, Variant)> {
        let all = events(response);
        // Without the overflow event.
        let is_ours = |fields: &&Vec<Variant>| fields[1] != Variant::Empty;
        let all = all.iter().map(|(_, fields)| fields).filter(is_ours);
        all.map(|fields| (fields[0].clone(), fields[1].clone())).collect()
    };
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    plant(&mut first, 20.0);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    let mut filter = filter(&["Severity", "Retain"]);
    filter.where_clause = severity_at_least(700);
    create_items(&mut client, &mut first, id, item(object_ids::SERVER.into(), parameters(&filter, 100)));
    set(&mut first, 1, 96.0);
    let response = next(&mut client, &mut first);
    assert_eq!(told(&response), [(800u16.into(), true.into())]);
    first.pass_and_write(300);
    drop(first);
    // The log is read, compacted and read again.
    for value in [20.0, 85.0] {
        let mut second = server(&store);
        plant(&mut second, 20.0);
        let mut client = second.session();
        assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
        set(&mut second, 1, value);
        let response = next(&mut client, &mut second);
        if value > 80.0 {
            assert_eq!(told(&response), [(500u16.into(), false.into())], "the client still keeps it");
        } else {
            assert_eq!(told(&response), []);
        }
        second.pass_and_write(300);
    }
    // It was reported, so there is nothing to report again.
    let mut third = server(&store);
    plant(&mut third, 20.0);
    let mut client = third.session();
    assert_eq!(transfer(&mut client, &mut third, id).status_code, StatusCode::GOOD);
    set(&mut third, 1, 85.0);
    assert_eq!(told(&next(&mut client, &mut third)), []);
}

/// A message that the store does not have yet would be unknown after a crash, and its number would be used again. So no
/// service gives it to a client before.
#[test]
fn no_client_receives_a_message_before_it_is_written() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    let number = next(&mut client, &mut first).notification_message.sequence_number + 1;
    first.pass_and_write(300);
    let published = publish(&mut client, &mut first);
    first.set(1.0);
    // Nothing is written meanwhile.
    (0..20).for_each(|_| first.pass(Duration::from_millis(10)));
    let again = |client: &mut Client, server: &mut Server| {
        let request = RepublishRequest {
            request_header: client.header(),
            subscription_id: id,
            retransmit_sequence_number: number,
        };
        let sent = client.send(server, RepublishRequest::BINARY_ENCODING_ID, &request);
        client.exchange(server);
        sent
    };
    let asked = again(&mut client, &mut first);
    let lost = again(&mut client, &mut first);
    assert!(client.response::<PublishResponse>(published).is_none());
    assert!(client.response::<RepublishResponse>(asked).is_none());
    let cx = first.shard.context(None, first.now);
    let place = cx.engine.find_any(id).unwrap();
    assert!(!cx.engine.available(place).contains(&number), "it is announced before it is written");
    // Writing answers all of them.
    first.pass_and_write(100);
    client.drain(&mut first);
    let message = client.response::<PublishResponse>(published).unwrap().unwrap().notification_message;
    assert_eq!((message.sequence_number, of_item(&message, 5)), (number, vec![(1.0, false)]));
    for request in [asked, lost, again(&mut client, &mut first)] {
        let same = client.response::<RepublishResponse>(request).unwrap().unwrap().notification_message;
        assert_eq!(same, message);
    }
    // After a crash, the number of the next message is new to the client, or the message is the one that it has.
    first.set(2.0);
    let published = publish(&mut client, &mut first);
    (0..20).for_each(|_| first.pass(Duration::from_millis(10)));
    drop(first);
    assert!(client.response::<PublishResponse>(published).is_none());
    let mut second = server(&store);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    second.set(3.0);
    assert_eq!(next(&mut client, &mut second).notification_message.sequence_number, number + 1);
}

/// Requests that wait for a write are answered if their subscription ends, moves or fails to be written.
#[test]
fn every_waiting_republish_request_is_answered() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum What {
        Deleted,
        Taken,
        Full,
        Closed,
    }
    for what in [What::Deleted, What::Taken, What::Full, What::Closed] {
        let store = Arc::new(Memory::default());
        let mut server = server(&store);
        let (mut client, mut other) = (server.session(), server.session());
        let id = durable(&mut client, &mut server);
        add_item(&mut client, &mut server, id, 100, 5);
        let number = next(&mut client, &mut server).notification_message.sequence_number + 1;
        server.pass_and_write(300);
        publish(&mut client, &mut server);
        server.set(1.0);
        (0..20).for_each(|_| server.pass(Duration::from_millis(10)));
        let request = RepublishRequest {
            request_header: client.header(),
            subscription_id: id,
            retransmit_sequence_number: number,
        };
        let asked = client.send(&mut server, RepublishRequest::BINARY_ENCODING_ID, &request);
        client.exchange(&mut server);
        let expected = match what {
            What::Deleted => {
                let request = DeleteSubscriptionsRequest {
                    request_header: client.header(),
                    subscription_ids: vec![id],
                };
                client.call(&mut server, &request).unwrap();
                Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
            }
            What::Taken => {
                let request = TransferSubscriptionsRequest {
                    request_header: other.header(),
                    subscription_ids: vec![id],
                    send_initial_values: false,
                };
                // Not `call`, which would take the other client's response.
                other.enqueue(TransferSubscriptionsRequest::BINARY_ENCODING_ID, &request);
                other.push(&mut server);
                Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)
            }
            What::Full => {
                *store.is_full.lock().unwrap() = true;
                server.pass_and_write(100);
                Ok(number)
            }
            What::Closed => {
                let request = schema::CloseSessionRequest {
                    request_header: client.header(),
                    delete_subscriptions: false,
                };
                client.call(&mut server, &request).unwrap();
                Err(StatusCode::BAD_SESSION_CLOSED)
            }
        };
        client.drain(&mut server);
        let answer = client.response::<RepublishResponse>(asked);
        let answer = answer.unwrap_or_else(|| panic!("{what:?}: no answer"));
        assert_eq!(answer.map(|it| it.notification_message.sequence_number), expected, "{what:?}");
    }
}

/// Whether a request was answered before the change was written, and whether it was answered then.
fn answered<R: Request>(client: &mut Client, server: &mut Server, request: &R) -> (bool, bool) {
    let sent = client.send(server, R::BINARY_ENCODING_ID, request);
    let early = client.has_response(sent);
    server.pass_and_write(50);
    client.drain(server);
    (early, client.has_response(sent))
}

/// After a crash, items would be missing that a client was told to exist, and nothing would report their values.
#[test]
fn changes_are_confirmed_when_they_are_written() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    let item = add_item(&mut client, &mut server, id, 100, 5);
    let modify = schema::ModifyMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_modify: vec![schema::MonitoredItemModifyRequest {
            monitored_item_id: item,
            requested_parameters: MonitoringParameters { client_handle: 6, ..Default::default() },
        }],
    };
    assert_eq!(answered(&mut client, &mut server, &modify), (false, true));
    let mode = SetMonitoringModeRequest {
        request_header: client.header(),
        subscription_id: id,
        monitoring_mode: MonitoringMode::SAMPLING,
        monitored_item_ids: vec![item],
    };
    assert_eq!(answered(&mut client, &mut server, &mode), (false, true));
    let publishing = schema::SetPublishingModeRequest {
        request_header: client.header(),
        publishing_enabled: false,
        subscription_ids: vec![77, id],
    };
    assert_eq!(answered(&mut client, &mut server, &publishing), (false, true));
    let parameters = schema::ModifySubscriptionRequest {
        request_header: client.header(),
        subscription_id: id,
        requested_publishing_interval: 200.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 10,
        ..Default::default()
    };
    assert_eq!(answered(&mut client, &mut server, &parameters), (false, true));
    let triggering = schema::SetTriggeringRequest {
        request_header: client.header(),
        subscription_id: id,
        triggering_item_id: item,
        links_to_add: vec![item],
        ..Default::default()
    };
    assert_eq!(answered(&mut client, &mut server, &triggering), (false, true));
    let delete = DeleteMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        monitored_item_ids: vec![item],
    };
    assert_eq!(answered(&mut client, &mut server, &delete), (false, true));
    // A refused change is no change.
    assert_eq!(answered(&mut client, &mut server, &delete), (true, true));
    // A client relies on the answer that its subscription survives.
    let calls =
        [create(&mut client, &mut server), create(&mut client, &mut server)].map(|id| set_durable(id, 10));
    let both = CallRequest { request_header: client.header(), methods_to_call: calls.to_vec() };
    assert_eq!(answered(&mut client, &mut server, &both), (false, true));
    let unknown =
        CallRequest { request_header: client.header(), methods_to_call: vec![set_durable(9_999, 10)] };
    assert_eq!(answered(&mut client, &mut server, &unknown), (true, true));
    // While the store fails, nobody waits for it.
    add_item(&mut client, &mut server, id, 100, 5);
    *store.is_full.lock().unwrap() = true;
    server.set(1.0);
    server.pass_and_write(300);
    assert_eq!(answered(&mut client, &mut server, &parameters), (true, true));
}
