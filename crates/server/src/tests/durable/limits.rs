//! Limits of durable subscriptions, and the statuses for clients.

use super::*;

#[test]
fn unauthenticated_clients_share_one_limit() {
    let store = Arc::new(Memory::default());
    let mut server = server(&store);
    let stranger = |server: &mut Server, uri: &str| {
        let mut client = server.connect();
        let mut request = schema::CreateSessionRequest {
            request_header: client.header(),
            endpoint_url: URL.into(),
            requested_session_timeout: 60_000.0,
            ..Default::default()
        };
        request.client_description.application_uri = uri.into();
        client.token = client.call(server, &request).unwrap().authentication_token;
        client.activate(server).unwrap();
        client
    };
    let mut made = 0;
    let refused = 'all: loop {
        let mut client = stranger(&mut server, &format!("urn:stranger:{made}"));
        for _ in 0..40 {
            let id = create(&mut client, &mut server);
            let result = make_durable(&mut client, &mut server, id, 0);
            if result.status_code != StatusCode::GOOD {
                break 'all result.status_code;
            }
            made += 1;
        }
        let now = server.now;
        server.shard.closed(client.connection, now);
    };
    assert_eq!((made, refused), (100, StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS));
}

#[test]
fn limits_and_states_are_reported() {
    let store = Arc::new(Memory::default());
    let mut server = started(&store, |durable| {
        durable.lifetime_hours_max = 2;
        durable.queue_size_max = 50;
        durable.bytes_per_user_max = 64 << 10;
    });
    let mut client = server.session();
    let plain = create(&mut client, &mut server);
    add_item(&mut client, &mut server, plain, 10, 1);
    assert_eq!(make_durable(&mut client, &mut server, plain, 1).status_code, StatusCode::BAD_INVALID_STATE);
    assert_eq!(
        make_durable(&mut client, &mut server, 9, 1).status_code,
        StatusCode::BAD_SUBSCRIPTION_ID_INVALID
    );
    let id = create(&mut client, &mut server);
    let mut other = server.session();
    assert_eq!(make_durable(&mut other, &mut server, id, 1).status_code, StatusCode::BAD_USER_ACCESS_DENIED);
    for (asked, revised) in [(1, 1u32), (9, 2), (0, 2)] {
        let result = make_durable(&mut client, &mut server, id, asked);
        assert_eq!(result.output_arguments, [Variant::from(revised)]);
    }
    add_item(&mut client, &mut server, id, 1_000_000, 5);
    next(&mut client, &mut server);
    // Half an hour without a client: an ordinary subscription would have expired.
    let request =
        DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![plain] };
    client.call(&mut server, &request).unwrap();
    let now = server.now;
    server.shard.closed(client.connection, now);
    for value in 1..=100 {
        server.set(f64::from(value));
        server.pass_and_write(20);
    }
    server.pass(Duration::from_secs(60));
    while server.run_effect() {}
    let mut client = server.session();
    assert_eq!(transfer(&mut client, &mut server, id).status_code, StatusCode::GOOD);
    let values = of_item(&next(&mut client, &mut server).notification_message, 5);
    assert_eq!(values.len(), 50);
    assert_eq!((values[0], values[49]), ((51.0, true), (100.0, false)));
    // The data of one user has a limit, for any number of subscriptions.
    let mut refused = 0;
    for _ in 0..50 {
        let id = create(&mut client, &mut server);
        let result = make_durable(&mut client, &mut server, id, 1);
        if result.status_code == StatusCode::BAD_OUT_OF_MEMORY {
            refused += 1;
            continue;
        }
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: NodeId::numeric(1, 1),
                attribute_id: 13,
                ..Default::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters { queue_size: 50, ..Default::default() },
        };
        let request = CreateMonitoredItemsRequest {
            request_header: client.header(),
            subscription_id: id,
            timestamps_to_return: TimestampsToReturn::BOTH,
            items_to_create: vec![item],
        };
        client.call(&mut server, &request).unwrap();
    }
    assert!(refused > 10, "{refused}");
    // Without a store there are no durable subscriptions.
    let mut other = Server::new();
    let mut client = other.session();
    let id = create(&mut client, &mut other);
    assert_eq!(make_durable(&mut client, &mut other, id, 1).status_code, StatusCode::BAD_NOT_EXECUTABLE);
}
