//! Undelivered notifications survive the server, and delivered ones do not return.

use super::*;

#[test]
fn undelivered_notifications_survive_the_server() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    let item = add_item(&mut client, &mut first, id, 100, 5);
    let other = add_item(&mut client, &mut first, id, 100, 6);
    assert_eq!(of_item(&next(&mut client, &mut first).notification_message, 5), [(0.0, false)]);
    for value in [1.0, 2.0] {
        first.set(value);
    }
    // A message that was sent but not acknowledged, and values that were not sent.
    let sent = next(&mut client, &mut first).notification_message;
    assert_eq!(of_item(&sent, 5), [(1.0, false), (2.0, false)]);
    for value in [3.0, 4.0] {
        first.set(value);
        first.pass_and_write(100);
    }
    // Not written: the server crashes before.
    first.set(5.0);
    drop(first);

    let mut second = server(&store);
    let mut stranger = second.connect();
    stranger.create(&mut second).unwrap();
    stranger.activate(&mut second).unwrap();
    let result = transfer(&mut stranger, &mut second, id);
    assert_eq!(
        result.status_code,
        StatusCode::GOOD,
        "anonymous clients of one application are the same user"
    );
    assert!(result.available_sequence_numbers.contains(&sent.sequence_number));
    let request = RepublishRequest {
        request_header: stranger.header(),
        subscription_id: id,
        retransmit_sequence_number: sent.sequence_number,
    };
    let again = stranger.call(&mut second, &request).unwrap().notification_message;
    assert_eq!(again, sent);
    let message = next(&mut stranger, &mut second).notification_message;
    assert_eq!(message.sequence_number, sent.sequence_number + 1);
    // The variable's present value has the Overflow bit, because earlier ones may be missing.
    for handle in [5, 6] {
        assert_eq!(of_item(&message, handle), [(3.0, false), (4.0, false), (0.0, true)]);
    }
    second.set(7.0);
    assert_eq!(of_item(&next(&mut stranger, &mut second).notification_message, 5), [(7.0, false)]);
    // Items have the ids that the client knows.
    let request = DeleteMonitoredItemsRequest {
        request_header: stranger.header(),
        subscription_id: id,
        monitored_item_ids: vec![item],
    };
    assert_eq!(stranger.call(&mut second, &request).unwrap().results, [StatusCode::GOOD]);
    second.pass_and_write(200);
    drop(second);
    let mut third = server(&store);
    let mut client = third.session();
    assert_eq!(transfer(&mut client, &mut third, id).status_code, StatusCode::GOOD);
    let message = next(&mut client, &mut third).notification_message;
    assert_eq!(of_item(&message, 5), []);
    assert_eq!(of_item(&message, 6), [(0.0, true)]);
    let request = SetMonitoringModeRequest {
        request_header: client.header(),
        subscription_id: id,
        monitoring_mode: MonitoringMode::SAMPLING,
        monitored_item_ids: vec![other],
    };
    assert_eq!(client.call(&mut third, &request).unwrap().results, [StatusCode::GOOD]);
    let request = DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![id] };
    assert_eq!(client.call(&mut third, &request).unwrap().results, [StatusCode::GOOD]);
    third.pass_and_write(200);
    assert!(store.logs.lock().unwrap().is_empty());
}

#[test]
fn a_regular_shutdown_loses_nothing() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    add_item(&mut client, &mut first, id, 100, 5);
    next(&mut client, &mut first);
    first.set(1.0);
    let now = first.now;
    first.shard.command(crate::shard::Command::Shutdown, now);
    while first.shard.is_ending() {
        assert!(first.run_effect());
    }
    drop(first);
    let mut second = server(&store);
    second.set(0.0);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let message = next(&mut client, &mut second).notification_message;
    assert_eq!(of_item(&message, 5), [(1.0, false), (0.0, false)]);
}

#[test]
fn messages_are_written_before_they_are_sent() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    add_item(&mut client, &mut server, id, 100, 5);
    let request = publish(&mut client, &mut server);
    server.pass(Duration::from_millis(300));
    client.drain(&mut server);
    assert!(client.response::<PublishResponse>(request).is_none());
    while server.run_effect() {}
    client.drain(&mut server);
    let response = client.response::<PublishResponse>(request).unwrap().unwrap();
    assert_eq!(of_item(&response.notification_message, 5), [(0.0, false)]);
    // If the connection is lost in the meantime, the response is lost, but not the message.
    server.set(1.0);
    publish(&mut client, &mut server);
    server.pass(Duration::from_millis(300));
    let now = server.now;
    server.shard.closed(client.connection, now);
    while server.run_effect() {}
    let mut client = server.session();
    let result = transfer(&mut client, &mut server, id);
    let lost = response.notification_message.sequence_number + 1;
    assert!(result.available_sequence_numbers.contains(&lost));
    let request = RepublishRequest {
        request_header: client.header(),
        subscription_id: id,
        retransmit_sequence_number: lost,
    };
    let message = client.call(&mut server, &request).unwrap().notification_message;
    assert_eq!(of_item(&message, 5), [(1.0, false)]);
}

#[test]
fn acknowledged_messages_do_not_return_and_logs_stay_short() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let mut client = server.session();
    let id = durable(&mut client, &mut server);
    add_item(&mut client, &mut server, id, 2_000, 5);
    let mut last = next(&mut client, &mut server).notification_message.sequence_number;
    for round in 0..60 {
        for value in 0..1_000 {
            server.set(f64::from(round * 1_000 + value + 1));
        }
        let request = schema::PublishRequest {
            request_header: RequestHeader { timeout_hint: 0, ..client.header() },
            subscription_acknowledgements: vec![SubscriptionAcknowledgement {
                subscription_id: id,
                sequence_number: last,
            }],
        };
        let request = client.send(&mut server, schema::PublishRequest::BINARY_ENCODING_ID, &request);
        server.pass_and_write(200);
        client.drain(&mut server);
        let response = client.response::<PublishResponse>(request).unwrap().unwrap();
        assert_eq!(values(&response).len(), 1_000);
        assert_eq!(response.results, [StatusCode::GOOD]);
        last = response.notification_message.sequence_number;
        assert_eq!(response.available_sequence_numbers, [last]);
    }
    server.pass_and_write(200);
    let bytes: usize = store.records(id).unwrap().iter().map(Vec::len).sum();
    // 60 messages of 1000 values have about 1.9 MB.
    assert!(bytes < 1_300_000, "{bytes}");
}

#[test]
fn events_survive_too() {
    let store = Arc::new(Memory::default());
    let mut first = server(&store);
    let mut client = first.session();
    let id = durable(&mut client, &mut first);
    let select = |name: &str| SimpleAttributeOperand {
        type_definition_id: object_type_ids::BASE_EVENT_TYPE.into(),
        browse_path: vec![QualifiedName::new(0, name)],
        attribute_id: 13,
        ..Default::default()
    };
    let filter =
        EventFilter { select_clauses: vec![select("Message"), select("EventId")], ..Default::default() };
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: object_ids::SERVER.into(),
            attribute_id: 12,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: 9,
            filter: ExtensionObject::new(&filter),
            queue_size: 100,
            discard_oldest: true,
            ..Default::default()
        },
    };
    create_items(&mut client, &mut first, id, item);
    first.pass_and_write(200);
    let mut ids: Vec<Variant> = Vec::new();
    for text in ["one", "two"] {
        let event = crate::NewEvent::new(
            NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE),
            NodeId::numeric(0, object_ids::SERVER),
        );
        ids.extend(first.space.raise(event.message(text), first.now.utc).map(Variant::from));
    }
    first.pass_and_write(200);
    drop(first);
    let mut second = server(&store);
    let mut client = second.session();
    assert_eq!(transfer(&mut client, &mut second, id).status_code, StatusCode::GOOD);
    let message = next(&mut client, &mut second).notification_message;
    let list = message.notification_data[0].decode::<EventNotificationList>().unwrap();
    let fields: Vec<(String, Variant)> = list
        .events
        .iter()
        .map(|event| match event.event_fields.as_slice() {
            [Variant::LocalizedText(text), id] => (text.text.as_str().to_owned(), id.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    // The overflow event comes first.
    assert_eq!(fields.len(), 3);
    assert!(fields[0].0.contains("lost"));
    assert_eq!(fields[1..], [("one".to_owned(), ids[0].clone()), ("two".to_owned(), ids[1].clone())]);
}
