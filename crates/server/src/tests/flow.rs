//! Subscriptions over the wire, slow clients, limits of connections, and moves between shards.

use super::attribute::{add, variable};
use super::*;
use crate::shard::Command;
use schema::{
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DataChangeNotification,
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, PublishRequest, PublishResponse,
    ReadRequest, ReadValueId, TimestampsToReturn,
};
use taktwerk_types::{BuiltInType, Variant};

pub(super) fn subscribe(client: &mut Client, server: &mut Server, node_id: NodeId) -> u32 {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    let subscription_id = client.call(server, &request).unwrap().subscription_id;
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId { node_id, attribute_id: 13, ..Default::default() },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters {
            client_handle: 5,
            sampling_interval: 100.0,
            queue_size: 1,
            discard_oldest: true,
            ..Default::default()
        },
    };
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: vec![item],
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    assert_eq!(result.status_code, StatusCode::GOOD);
    subscription_id
}

pub(super) fn publish(client: &mut Client, server: &mut Server) -> u32 {
    let header = client.header();
    let request =
        PublishRequest { request_header: RequestHeader { timeout_hint: 0, ..header }, ..Default::default() };
    client.send(server, PublishRequest::BINARY_ENCODING_ID, &request)
}

pub(super) fn values(response: &PublishResponse) -> Vec<Variant> {
    let data = &response.notification_message.notification_data;
    data.iter()
        .flat_map(|data| data.decode::<DataChangeNotification>().unwrap().monitored_items)
        .filter_map(|item| item.value.value)
        .collect()
}

#[test]
fn changes_reach_the_client() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    let none = publish(&mut client, &mut server);
    assert_eq!(client.response::<PublishResponse>(none), Some(Err(StatusCode::BAD_NO_SUBSCRIPTION)));
    let subscription_id = subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    let (first, second) = (publish(&mut client, &mut server), publish(&mut client, &mut server));
    assert!(client.responses.is_empty());
    server.pass(Duration::from_millis(250));
    client.drain(&mut server);
    let response = client.response::<PublishResponse>(first).unwrap().unwrap();
    assert_eq!(response.subscription_id, subscription_id);
    assert_eq!(values(&response), [Variant::from(1.0)]);
    server.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(2.0, server.now.utc);
    server.pass(Duration::from_millis(250));
    client.drain(&mut server);
    let response = client.response::<PublishResponse>(second).unwrap().unwrap();
    assert_eq!(values(&response), [Variant::from(2.0)]);
    assert_eq!(response.available_sequence_numbers.len(), 2);
}

#[test]
fn current_time_can_be_monitored() {
    let mut server = Server::new();
    let mut client = server.session();
    subscribe(&mut client, &mut server, 2258.into());
    for _ in 0..3 {
        let id = publish(&mut client, &mut server);
        server.pass(Duration::from_millis(300));
        client.drain(&mut server);
        let response = client.response::<PublishResponse>(id).unwrap().unwrap();
        assert_eq!(values(&response).len(), 1);
    }
}

#[test]
fn queued_publish_requests_are_answered_when_the_session_ends() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    server.pass(Duration::from_millis(250));
    let first = publish(&mut client, &mut server);
    assert!(client.response::<PublishResponse>(first).unwrap().is_ok());
    let cancelled = publish(&mut client, &mut server);
    let handle = client.handle;
    let waiting = publish(&mut client, &mut server);
    let cancel = schema::CancelRequest { request_header: client.header(), request_handle: handle };
    assert_eq!(client.call(&mut server, &cancel).unwrap().cancel_count, 1);
    let result = client.response::<PublishResponse>(cancelled);
    assert_eq!(result, Some(Err(StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT)));
    let close = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &close).unwrap();
    assert_eq!(client.response::<PublishResponse>(waiting), Some(Err(StatusCode::BAD_SESSION_CLOSED)));
    assert_eq!(server.shard.shared().live().counters.current_subscription_count.value(), 0);
}

#[test]
fn a_subscription_outlives_its_session_and_goes_to_the_same_user_only() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    let id = subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    let close = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: false };
    client.call(&mut server, &close).unwrap();
    let mut stranger = server.connect();
    let create = schema::CreateSessionRequest {
        request_header: stranger.header(),
        client_description: schema::ApplicationDescription {
            application_uri: "urn:stranger".into(),
            ..Default::default()
        },
        ..Default::default()
    };
    stranger.token = stranger.call(&mut server, &create).unwrap().authentication_token;
    stranger.activate(&mut server).unwrap();
    let request = schema::TransferSubscriptionsRequest {
        request_header: stranger.header(),
        subscription_ids: vec![id],
        send_initial_values: true,
    };
    let results = stranger.call(&mut server, &request).unwrap().results;
    assert_eq!(results[0].status_code, StatusCode::BAD_USER_ACCESS_DENIED, "another Anonymous");
    let mut other = server.session();
    let request = schema::TransferSubscriptionsRequest {
        request_header: other.header(),
        subscription_ids: vec![id, 99],
        send_initial_values: true,
    };
    let results = other.call(&mut server, &request).unwrap().results;
    assert_eq!(results[0].status_code, StatusCode::GOOD);
    assert_eq!(results[1].status_code, StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    let waiting = publish(&mut other, &mut server);
    server.pass(Duration::from_millis(250));
    other.drain(&mut server);
    let response = other.response::<PublishResponse>(waiting).unwrap().unwrap();
    assert_eq!(values(&response), [Variant::from(1.0)]);
}

/// A Read with a long response.
fn long_read(client: &mut Client) -> ReadRequest {
    let item = ReadValueId { node_id: NodeId::numeric(1, 1), attribute_id: 13, ..Default::default() };
    ReadRequest { request_header: client.header(), nodes_to_read: vec![item; 20], ..Default::default() }
}

#[test]
fn a_client_that_does_not_read_is_not_served_and_finally_closed() {
    let mut server = Server::with(|config| config.limits.send_budget = 100_000);
    add(&server, variable(1, BuiltInType::String, "x".repeat(2_000)));
    let mut slow = server.session();
    let mut other = server.session();
    let id = slow.connection;
    let mut bytes = Vec::new();
    for _ in 0..10 {
        let request = long_read(&mut slow);
        let start = slow.channel.begin(&mut bytes);
        NodeId::numeric(0, ReadRequest::BINARY_ENCODING_ID).encode(&mut bytes);
        request.encode(&mut bytes);
        let request_id = slow.channel.next_request_id();
        slow.channel.finish(start, request_id, &mut bytes).unwrap();
    }
    let done = server.shard.received(id, &mut bytes, server.now);
    assert!(done < bytes.len());
    assert!(!server.shard.wants_read(id));
    assert!(server.shard.unsent(id).len() < 200_000);
    assert_eq!(server.shard.poll_transmit(), Some(id));
    server.shard.sent(id, 1000);
    server.shard.blocked(id, server.now);
    assert_eq!(server.shard.poll_transmit(), None);
    // Other clients are not affected.
    let request = long_read(&mut other);
    assert_eq!(other.call(&mut server, &request).unwrap().results.len(), 20);
    // When it reads again, it is served again.
    server.shard.writable(id);
    assert_eq!(server.shard.poll_transmit(), Some(id));
    let len = server.shard.unsent(id).len();
    server.shard.sent(id, len);
    assert!(server.shard.wants_read(id));
    let mut rest = bytes.split_off(done);
    assert!(server.shard.received(id, &mut rest, server.now) > 0);
    assert_eq!(server.shard.poll_transmit(), Some(id));
    server.shard.blocked(id, server.now);
    server.pass(Duration::from_secs(59));
    assert_eq!(server.shard.poll_close(), None);
    server.pass(Duration::from_secs(2));
    assert_eq!(server.shard.poll_close(), Some(id));
    assert_eq!(server.shard.connection_count(), 1);
}

#[test]
fn idle_connections_have_no_buffer() {
    let mut server = Server::new();
    let client = server.session();
    let connection = server.shard.connections.get(client.connection.0).unwrap();
    assert_eq!(connection.out.capacity(), 0);
}

#[test]
fn connections_are_limited_and_those_without_a_session_are_evicted() {
    let mut server = Server::with(|config| config.limits.connections_max = 2);
    let _first = server.session();
    let idle = server.connect();
    let _second = server.session();
    assert_eq!(server.shard.connection_count(), 2);
    let mut extra = server.shard.opened(server.now);
    assert_eq!(server.shard.poll_transmit(), Some(extra));
    let refusal = server.shard.unsent(extra).to_vec();
    assert!(refusal.starts_with(b"ERRF"));
    server.shard.sent(extra, refusal.len());
    assert_eq!(server.shard.poll_close(), Some(extra));
    extra = idle.connection;
    assert_eq!(server.shard.unsent(extra), b"");
}

#[test]
fn connections_that_never_say_hello_are_closed() {
    let mut server = Server::new();
    let id = server.shard.opened(server.now);
    server.pass(Duration::from_secs(11));
    assert_eq!(server.shard.poll_transmit(), Some(id));
    let len = server.shard.unsent(id).len();
    server.shard.sent(id, len);
    assert_eq!(server.shard.poll_close(), Some(id));
    assert_eq!(server.shard.poll_timeout(), None);
    assert_eq!(server.shard.shared().live().counters.current_connection_count.value(), 0);
}

#[test]
fn shutting_down_answers_and_closes() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    server.pass(Duration::from_millis(250));
    let first = publish(&mut client, &mut server);
    let waiting = publish(&mut client, &mut server);
    assert!(client.response::<PublishResponse>(first).is_some());
    server.shard.command(Command::Shutdown, server.now);
    client.drain(&mut server);
    assert_eq!(client.response::<PublishResponse>(waiting), Some(Err(StatusCode::BAD_SESSION_CLOSED)));
    assert!(client.closed);
    assert_eq!((server.shard.connection_count(), server.shard.session_count()), (0, 0));
}

#[test]
fn a_connection_moves_to_the_shard_of_its_session() {
    let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
    let space = Arc::new(AddressSpace::new(2, 64, APPLICATION));
    let config = ServerConfig::new("Test", APPLICATION, URL, utc);
    let shared = ServerShared::new(config, Arc::clone(&space), 2, utc);
    let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
    let make = |index| Shard::new(index, Arc::clone(&shared), Box::new(SeededEntropy::new(index as u64)));
    let mut server = Server { shard: make(1), space: Arc::clone(&space), now, from: None };
    let home = server.session();
    let mut away = Server { shard: make(0), space, now, from: None };
    let mut client = away.connect();
    client.token = home.token.clone();
    // The session's client returns on a connection of another shard.
    let request = schema::ActivateSessionRequest { request_header: client.header(), ..Default::default() };
    let id = client.send(&mut away, schema::ActivateSessionRequest::BINARY_ENCODING_ID, &request);
    assert!(client.responses.is_empty());
    assert_eq!(away.shard.poll_move(), Some((client.connection, 1)));
    let state = away.shard.export(client.connection, now).unwrap();
    assert_eq!(away.shard.connection_count(), 0);
    client.connection = server.shard.import(state, now);
    client.drain(&mut server);
    assert!(client.response::<schema::ActivateSessionResponse>(id).unwrap().is_ok());
    let read = ReadRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &read).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    // A token of a missing shard moves nothing.
    let mut bytes = vec![9, 9, 0, 0, 0, 0];
    bytes.resize(22, 0);
    client.token = NodeId::opaque(0, bytes);
    assert_eq!(client.activate(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

#[test]
fn only_clients_with_waiting_publish_requests_may_be_served_later() {
    let mut server = Server::new();
    let id = NodeId::numeric(1, 1);
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    subscribe(&mut client, &mut server, id.clone());
    for _ in 0..4 {
        publish(&mut client, &mut server);
    }
    let may_wait =
        |server: &Server, client: &Client| server.shard.may_wait(client.connection, server.now.instant);
    assert!(!may_wait(&server, &client), "it has just connected");
    server.pass(Duration::from_millis(1_100));
    publish(&mut client, &mut server);
    assert!(may_wait(&server, &client));
    let read = ReadRequest {
        request_header: client.header(),
        nodes_to_read: vec![ReadValueId { node_id: id.clone(), attribute_id: 13, ..Default::default() }],
        ..Default::default()
    };
    client.call(&mut server, &read).unwrap();
    assert!(!may_wait(&server, &client), "it reads");
    server.pass(Duration::from_millis(1_100));
    assert!(may_wait(&server, &client));
    // All requests are used up and a value remains: the next request is answered at once.
    for number in 0..8 {
        server.space.variable(&id).unwrap().set_at(f64::from(number), server.now.utc);
        server.pass(Duration::from_millis(100));
    }
    client.drain(&mut server);
    client.responses.clear();
    publish(&mut client, &mut server);
    assert_eq!(client.responses.len(), 1);
    assert!(!may_wait(&server, &client), "it has fallen behind");
}
