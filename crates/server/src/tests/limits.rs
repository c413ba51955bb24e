//! Every published limit, at the limit and one beyond (Part 5 §6.3.2, §6.3.11), and the limits for all clients
//! together.

use super::attribute::{add, read, variable};
use super::*;
use crate::limits::Rate;
use crate::service::table;
use crate::{Limits, Refusal};
use core::net::{IpAddr, Ipv4Addr};
use schema::{
    BrowseDescription, BrowseNextRequest, BrowsePath, BrowseRequest, CallMethodRequest, CallRequest,
    CreateMonitoredItemsRequest, CreateSubscriptionRequest, DeleteMonitoredItemsRequest,
    DeleteSubscriptionsRequest, GetEndpointsRequest, MonitoredItemCreateRequest, MonitoringMode,
    MonitoringParameters, ReadRequest, ReadValueId, RegisterNodesRequest, TimestampsToReturn,
    TranslateBrowsePathsToNodeIdsRequest, UnregisterNodesRequest, WriteRequest, WriteValue,
};
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::ids::variable_ids as v;
use taktwerk_types::{BuiltInType, Variant};

const MAX: u32 = 3;

/// A server in which every operation limit is three.
fn small() -> Server {
    let server = Server::with(|config| {
        let limits = &mut config.limits;
        limits.nodes_per_read_max = MAX;
        limits.nodes_per_write_max = MAX;
        limits.nodes_per_method_call_max = MAX;
        limits.nodes_per_browse_max = MAX;
        limits.nodes_per_register_nodes_max = MAX;
        limits.nodes_per_translate_max = MAX;
        limits.monitored_items_per_call_max = MAX;
    });
    add(&server, variable(1, BuiltInType::Double, 1.0));
    server
}

/// A limit as published by the server.
fn published(client: &mut Client, server: &mut Server, id: u32) -> Variant {
    read(client, server, id.into(), 13).value.unwrap()
}

/// The ServiceResult of a request.
fn result<R: Request>(client: &mut Client, server: &mut Server, request: &R) -> StatusCode
where
    R::Response: Response,
{
    client.call(server, request).err().unwrap_or(StatusCode::GOOD)
}

/// Checks that as many operations as published are accepted, and one more is not.
fn at_and_beyond<R: Request>(id: u32, mut make: impl FnMut(&mut Client, &mut Server, usize) -> R)
where
    R::Response: Response,
{
    let mut server = small();
    let mut client = server.session();
    assert_eq!(published(&mut client, &mut server, id), Variant::from(MAX));
    let at = make(&mut client, &mut server, MAX as usize);
    assert_eq!(result(&mut client, &mut server, &at), StatusCode::GOOD);
    let beyond = make(&mut client, &mut server, MAX as usize + 1);
    assert_eq!(result(&mut client, &mut server, &beyond), StatusCode::BAD_TOO_MANY_OPERATIONS);
    let none = make(&mut client, &mut server, 0);
    assert_eq!(result(&mut client, &mut server, &none), StatusCode::BAD_NOTHING_TO_DO);
    assert!(!client.closed);
}

/// For all request types: the published OperationLimits are those of the service table. The tests below try each.
#[test]
fn published_limits_are_those_of_the_service_table() {
    let mut server = Server::with(|config| {
        let limits = &mut config.limits;
        limits.nodes_per_read_max = 11;
        limits.nodes_per_write_max = 12;
        limits.nodes_per_method_call_max = 13;
        limits.nodes_per_browse_max = 14;
        limits.nodes_per_register_nodes_max = 15;
        limits.nodes_per_translate_max = 16;
        limits.monitored_items_per_call_max = 17;
        limits.nodes_per_node_management_max = 18;
        limits.nodes_per_history_read_max = 19;
        limits.nodes_per_history_update_max = 20;
    });
    let mut client = server.session();
    let limits = server.shard.shared().config().limits.clone();
    let mut known = BTreeMap::new();
    for service in table::all() {
        let name = schema::message_name(service.request).unwrap();
        let variable = service.operations.as_ref().and_then(|operations| operations.limit.variable);
        let Some(id) = variable else { continue };
        let max = (service.operations.as_ref().unwrap().limit.max)(&limits);
        assert_eq!(published(&mut client, &mut server, id), Variant::from(max), "{name}");
        known.insert(id, max);
    }
    assert_eq!(known.values().copied().collect::<BTreeSet<_>>(), (11..=20).collect());
    // All others are zero: their services are not supported.
    let history = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_HISTORY_READ_DATA;
    for id in (11705..=11714).filter(|id| ![11706, 11708].contains(id)).chain(history..history + 4) {
        if !known.contains_key(&id) {
            assert_eq!(published(&mut client, &mut server, id), Variant::from(0u32), "{id}");
        }
    }
}

#[test]
fn nodes_per_read() {
    at_and_beyond(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ, |client, _, count| {
        let node = ReadValueId { node_id: NodeId::numeric(1, 1), attribute_id: 13, ..Default::default() };
        ReadRequest {
            request_header: client.header(),
            nodes_to_read: vec![node; count],
            ..Default::default()
        }
    });
}

#[test]
fn nodes_per_write() {
    at_and_beyond(v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_WRITE, |client, _, count| {
        let value = taktwerk_types::DataValue::new(1.0);
        let node =
            WriteValue { node_id: NodeId::numeric(1, 1), attribute_id: 13, value, ..Default::default() };
        WriteRequest { request_header: client.header(), nodes_to_write: vec![node; count] }
    });
}

#[test]
fn nodes_per_method_call() {
    let id = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_METHOD_CALL;
    at_and_beyond(id, |client, _, count| CallRequest {
        request_header: client.header(),
        methods_to_call: vec![CallMethodRequest::default(); count],
    });
}

#[test]
fn nodes_per_browse() {
    let id = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_BROWSE;
    at_and_beyond(id, |client, _, count| BrowseRequest {
        request_header: client.header(),
        nodes_to_browse: vec![BrowseDescription { node_id: 84.into(), ..Default::default() }; count],
        ..Default::default()
    });
    at_and_beyond(id, |client, _, count| BrowseNextRequest {
        request_header: client.header(),
        continuation_points: vec![b"unknown".as_slice().into(); count],
        ..Default::default()
    });
}

#[test]
fn nodes_per_register_nodes() {
    let id = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_REGISTER_NODES;
    at_and_beyond(id, |client, _, count| RegisterNodesRequest {
        request_header: client.header(),
        nodes_to_register: vec![NodeId::numeric(1, 1); count],
    });
    at_and_beyond(id, |client, _, count| UnregisterNodesRequest {
        request_header: client.header(),
        nodes_to_unregister: vec![NodeId::numeric(1, 1); count],
    });
}

#[test]
fn nodes_per_translate_browse_paths() {
    let id = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_TRANSLATE_BROWSE_PATHS_TO_NODE_IDS;
    at_and_beyond(id, |client, _, count| TranslateBrowsePathsToNodeIdsRequest {
        request_header: client.header(),
        browse_paths: vec![BrowsePath { starting_node: 84.into(), ..Default::default() }; count],
    });
}

#[test]
fn monitored_items_per_call() {
    let id = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_MONITORED_ITEMS_PER_CALL;
    at_and_beyond(id, |client, server, count| {
        let subscription = subscription(client, server).unwrap();
        items_request(client, subscription, count, 1)
    });
    at_and_beyond(id, |client, server, count| DeleteMonitoredItemsRequest {
        subscription_id: subscription(client, server).unwrap(),
        request_header: client.header(),
        monitored_item_ids: vec![7; count],
    });
}

fn subscription(client: &mut Client, server: &mut Server) -> Result<u32, StatusCode> {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 30,
        requested_max_keep_alive_count: 10,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(server, &request).map(|response| response.subscription_id)
}

fn items_request(
    client: &mut Client,
    subscription_id: u32,
    count: usize,
    queue_size: u32,
) -> CreateMonitoredItemsRequest {
    let item = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, 1),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters { queue_size, ..Default::default() },
    };
    CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: vec![item; count],
    }
}

/// Creates items. Returns their StatusCodes and revised queue sizes.
fn items(
    client: &mut Client,
    server: &mut Server,
    subscription_id: u32,
    count: usize,
    queue_size: u32,
) -> Vec<(StatusCode, u32)> {
    let request = items_request(client, subscription_id, count, queue_size);
    let results = client.call(server, &request).unwrap().results;
    results.iter().map(|result| (result.status_code, result.revised_queue_size)).collect()
}

#[test]
fn sessions() {
    let mut server = Server::with(|config| config.limits.sessions_max = 2);
    let mut client = server.session();
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_SESSIONS;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(2u32));
    let _second = server.session();
    let mut third = server.connect();
    assert_eq!(third.create(&mut server).unwrap_err(), StatusCode::BAD_TOO_MANY_SESSIONS);
}

#[test]
fn sessions_per_connection() {
    let mut server = Server::with(|config| config.limits.sessions_per_connection_max = 2);
    let mut client = server.session();
    client.create(&mut server).unwrap();
    client.activate(&mut server).unwrap();
    assert_eq!(client.create(&mut server).unwrap_err(), StatusCode::BAD_TOO_MANY_SESSIONS);
    // Other connections have their own limit.
    server.session();
}

#[test]
fn subscriptions_per_session_and_per_server() {
    let mut server = Server::with(|config| {
        config.limits.subscriptions.subscriptions_per_session_max = 2;
        config.limits.subscriptions.subscriptions_max = 3;
    });
    let mut client = server.session();
    let mut other = server.session();
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS_PER_SESSION;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(2u32));
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(3u32));
    let first = subscription(&mut client, &mut server).unwrap();
    subscription(&mut client, &mut server).unwrap();
    let too_many = StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS;
    assert_eq!(subscription(&mut client, &mut server).unwrap_err(), too_many);
    subscription(&mut other, &mut server).unwrap();
    assert_eq!(subscription(&mut other, &mut server).unwrap_err(), too_many);
    let request =
        DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![first] };
    client.call(&mut server, &request).unwrap();
    subscription(&mut other, &mut server).unwrap();
    assert_eq!(server.used(Category::SubscriptionCount), 3);
}

#[test]
fn the_budget_of_subscriptions_spans_shards() {
    let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
    let space = Arc::new(AddressSpace::new(2, 64, APPLICATION));
    let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
    config.limits.subscriptions.subscriptions_max = 1;
    let shared = ServerShared::new(config, Arc::clone(&space), 2, utc);
    let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
    let mut shards = [0, 1].map(|index| Server {
        from: None,
        shard: Shard::new(index, Arc::clone(&shared), Box::new(SeededEntropy::new(index as u64))),
        space: Arc::clone(&space),
        now,
    });
    let [one, two] = &mut shards;
    subscription(&mut one.session(), one).unwrap();
    let result = subscription(&mut two.session(), two);
    assert_eq!(result.unwrap_err(), StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
}

#[test]
fn monitored_items_per_subscription_and_per_server() {
    let mut server = Server::with(|config| {
        config.limits.subscriptions.monitored_items_per_subscription_max = 2;
        config.limits.subscriptions.monitored_items_max = 3;
    });
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_PER_SUBSCRIPTION;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(2u32));
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(3u32));
    let one = subscription(&mut client, &mut server).unwrap();
    let two = subscription(&mut client, &mut server).unwrap();
    let (good, full) = ((StatusCode::GOOD, 1), StatusCode::BAD_TOO_MANY_MONITORED_ITEMS);
    let results = items(&mut client, &mut server, one, 3, 1);
    assert_eq!(results[..2], [good, good]);
    assert_eq!(results[2].0, full);
    let results = items(&mut client, &mut server, two, 2, 1);
    assert_eq!(results[0], good);
    assert_eq!(results[1].0, full);
    let request =
        DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![one, two] };
    client.call(&mut server, &request).unwrap();
    assert_eq!(server.used(Category::MonitoredItemCount), 0);
}

#[test]
fn queue_sizes_are_revised_to_the_remaining_limit() {
    let mut server = Server::with(|config| {
        config.limits.subscriptions.queue_size_max = 100;
        config.limits.subscriptions.queue_places_max = 150;
    });
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_QUEUE_SIZE;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(100u32));
    let subscription = subscription(&mut client, &mut server).unwrap();
    let sizes: Vec<u32> =
        items(&mut client, &mut server, subscription, 3, 1000).into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes, [100, 52, 1]);
    assert_eq!(server.used(Category::QueuePlaces), 150 * crate::limits::cost::QUEUE_ENTRY);
    let close = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &close).unwrap();
    assert_eq!(server.used(Category::QueuePlaces), 0);
}

#[test]
fn continuation_points() {
    let mut server = Server::with(|config| config.limits.browse_continuation_points_max = 2);
    let mut client = server.session();
    let id = v::SERVER_SERVER_CAPABILITIES_MAX_BROWSE_CONTINUATION_POINTS;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(2u16));
    let node = BrowseDescription { node_id: 84.into(), result_mask: 63, ..Default::default() };
    let request = BrowseRequest {
        request_header: client.header(),
        requested_max_references_per_node: 1,
        nodes_to_browse: vec![node; 3],
        ..Default::default()
    };
    let results = client.call(&mut server, &request).unwrap().results;
    let status: Vec<StatusCode> = results.iter().map(|result| result.status_code).collect();
    assert_eq!(status, [StatusCode::GOOD, StatusCode::GOOD, StatusCode::BAD_NO_CONTINUATION_POINTS]);
}

#[test]
fn strings_and_arrays() {
    let mut server = Server::with(|config| {
        config.limits.string_len_max = 10;
        config.limits.byte_string_len_max = 30;
        config.limits.array_len_max = 5;
    });
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.connect();
    let request = schema::CreateSessionRequest { request_header: client.header(), ..Default::default() };
    client.send(&mut server, schema::CreateSessionRequest::BINARY_ENCODING_ID, &request);
    let created = client.responses.pop().unwrap().1;
    let mut decoder = Decoder::new(&created, DecodeLimits::DEFAULT);
    NodeId::decode(&mut decoder).unwrap();
    client.token = schema::CreateSessionResponse::decode(&mut decoder).unwrap().authentication_token;
    client.activate(&mut server).unwrap();
    for (id, max) in [
        (v::SERVER_SERVER_CAPABILITIES_MAX_STRING_LENGTH, 10u32),
        (v::SERVER_SERVER_CAPABILITIES_MAX_BYTE_STRING_LENGTH, 30),
        (v::SERVER_SERVER_CAPABILITIES_MAX_ARRAY_LENGTH, 5),
    ] {
        assert_eq!(published(&mut client, &mut server, id), Variant::from(max));
    }
    let mut write = |value: Variant| {
        let node = WriteValue {
            node_id: NodeId::numeric(1, 1),
            attribute_id: 13,
            value: taktwerk_types::DataValue::new(value),
            ..Default::default()
        };
        let request = WriteRequest { request_header: client.header(), nodes_to_write: vec![node] };
        result(&mut client, &mut server, &request)
    };
    let limit = StatusCode::BAD_ENCODING_LIMITS_EXCEEDED;
    assert_eq!(write("0123456789".into()), StatusCode::GOOD);
    assert_eq!(write("0123456789a".into()), limit);
    assert_eq!(write(taktwerk_types::ByteString::from(vec![0; 30]).into()), StatusCode::GOOD);
    assert_eq!(write(taktwerk_types::ByteString::from(vec![0; 31]).into()), limit);
    assert_eq!(write(vec![0.0; 5].into()), StatusCode::GOOD);
    assert_eq!(write(vec![0.0; 6].into()), limit);
}

#[test]
fn zeros_are_not_unlimited() {
    let mut server = Server::with(|config| {
        config.limits.nodes_per_read_max = 0;
        config.limits.subscriptions.subscriptions_max = 0;
        config.limits.reassembly_bytes_max = 0;
        config.channel.message_size_max = 0;
    });
    let mut client = server.session();
    let id = v::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ;
    assert_eq!(published(&mut client, &mut server, id), Variant::from(1u32));
    subscription(&mut client, &mut server).unwrap();
    let refused = subscription(&mut client, &mut server).unwrap_err();
    assert_eq!(refused, StatusCode::BAD_TOO_MANY_SUBSCRIPTIONS);
    // In the Acknowledge, where zero means no limit, the server announces the enforced limits.
    assert!(server.shard.shared().config().channel.message_size_max > 0);
}

// ---- connections

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

#[test]
fn connections_per_address_are_freed_when_they_end() {
    let mut server = Server::with(|config| config.limits.connections_per_address_max = 2);
    let shared = Arc::clone(server.shard.shared());
    let open = |server: &mut Server| {
        shared
            .admit(address(1), server.now.instant)
            .map(|()| server.shard.opened_from(address(1), server.now))
    };
    let first = open(&mut server).unwrap();
    open(&mut server).unwrap();
    assert_eq!(open(&mut server), Err(Refusal::AddressFull));
    assert_eq!(shared.live().counters.refused_connection_count.value(), 1);
    server.shard.closed(first, server.now);
    open(&mut server).unwrap();
    // Any end of a connection frees it: here the deadline of the Hello.
    server.pass(Duration::from_secs(11));
    flush(&mut server);
    assert_eq!(server.shard.connection_count(), 0);
    open(&mut server).unwrap();
    open(&mut server).unwrap();
}

#[test]
fn a_moved_connection_still_counts_for_its_address() {
    let mut server = Server::with(|config| config.limits.connections_per_address_max = 1);
    let shared = Arc::clone(server.shard.shared());
    shared.admit(address(1), server.now.instant).unwrap();
    let id = server.shard.opened_from(address(1), server.now);
    let state = server.shard.export(id, server.now).unwrap();
    assert_eq!(shared.admit(address(1), server.now.instant), Err(Refusal::AddressFull));
    let id = server.shard.import(state, server.now);
    server.shard.closed(id, server.now);
    assert_eq!(shared.admit(address(1), server.now.instant), Ok(()));
    shared.turned_away(address(1));
    assert_eq!(shared.admit(address(1), server.now.instant), Ok(()));
}

/// Sends and closes everything that is due.
fn flush(server: &mut Server) -> usize {
    let mut closed = 0;
    while let Some(id) = server.shard.poll_transmit() {
        let len = server.shard.unsent(id).len();
        server.shard.sent(id, len);
    }
    while server.shard.poll_close().is_some() {
        closed += 1;
    }
    closed
}

fn is_gone(server: &Server, client: &Client) -> bool {
    server.shard.connections.get(client.connection.0).is_none()
}

#[test]
fn a_silent_connection_without_a_session_is_closed_and_one_with_a_session_is_not() {
    let mut server = Server::with(|config| config.limits.sessionless_timeout = 20_000.0);
    let idle = server.connect();
    let mut curious = server.connect();
    let mut busy = server.session();
    for _ in 0..3 {
        server.pass(Duration::from_secs(15));
        let request = GetEndpointsRequest { request_header: curious.header(), ..Default::default() };
        curious.call(&mut server, &request).unwrap();
        let request = ReadRequest { request_header: busy.header(), ..Default::default() };
        assert_eq!(result(&mut busy, &mut server, &request), StatusCode::BAD_NOTHING_TO_DO);
    }
    flush(&mut server);
    assert_eq!([&idle, &curious, &busy].map(|client| is_gone(&server, client)), [true, false, false]);
    server.pass(Duration::from_secs(21));
    flush(&mut server);
    assert_eq!([&curious, &busy].map(|client| is_gone(&server, client)), [true, false]);
    // The session ends after its timeout, and then its connection.
    server.pass(Duration::from_secs(61 + 21));
    flush(&mut server);
    assert_eq!((server.shard.session_count(), server.shard.connection_count()), (0, 0));
}

#[test]
fn sessions_not_activated_in_time_end() {
    let mut server = Server::with(|config| config.limits.session_activation_timeout = 5_000.0);
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    server.pass(Duration::from_millis(4_900));
    assert_eq!(server.shard.session_count(), 1);
    server.pass(Duration::from_millis(200));
    assert_eq!(server.shard.session_count(), 0);
    assert_eq!(client.activate(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

// ---- limits for all clients together

/// An incomplete message on a new connection: intermediate chunks of `len` bytes in total.
fn unfinished(server: &mut Server, len: usize) -> Client {
    let mut client = server.connect();
    let mut sequence = 2;
    let mut left = len;
    while left > 0 {
        let part = left.min(60_000);
        left -= part;
        let mut chunk = Vec::new();
        chunk.extend_from_slice(b"MSGC");
        chunk.extend_from_slice(&u32::try_from(24 + part).unwrap().to_le_bytes());
        for field in [client.channel.id(), 1, sequence, 77] {
            chunk.extend_from_slice(&field.to_le_bytes());
        }
        chunk.resize(24 + part, 0);
        sequence += 1;
        client.out.extend_from_slice(&chunk);
        client.exchange(server);
    }
    client
}

#[test]
fn the_budget_of_incomplete_messages_closes_only_the_largest() {
    let mut server = Server::with(|config| config.limits.reassembly_bytes_max = 1 << 20);
    let mut honest = server.session();
    let small = unfinished(&mut server, 100_000);
    let large = unfinished(&mut server, 700_000);
    let expected = 800_000 - 2 * crate::limits::ALLOWANCE;
    // Reserved memory counts: at most a quarter more than has arrived.
    assert!(
        (expected..=expected + 200_000).contains(&server.used(Category::IncompleteMessages)),
        "{}",
        server.used(Category::IncompleteMessages)
    );
    let more = unfinished(&mut server, 400_000);
    flush(&mut server);
    let gone = [&small, &large, &more, &honest].map(|client| is_gone(&server, client));
    assert_eq!(gone, [false, true, false, false]);
    assert!(!server.is_over(Category::IncompleteMessages));
    assert_eq!(server.shard.shared().live().counters.evicted_connection_count.value(), 1);
    read(&mut honest, &mut server, 2259.into(), 13);
    // Messages not completed in time are dropped too.
    server.pass(Duration::from_secs(121));
    flush(&mut server);
    assert_eq!(server.used(Category::IncompleteMessages), 0);
}

#[test]
fn incomplete_chunks_count() {
    let mut server = Server::new();
    let mut client = server.connect();
    let mut chunk = b"MSGF".to_vec();
    chunk.extend_from_slice(&60_000u32.to_le_bytes());
    chunk.resize(50_000, 0);
    client.out = chunk;
    client.exchange(&mut server);
    // The driver stores them in a vector that doubles when it grows.
    assert_eq!(server.used(Category::IncompleteMessages), 2 * 50_000 - crate::limits::ALLOWANCE);
    // The rest of a chunk has ten seconds.
    server.pass(Duration::from_millis(9_900));
    client.drain(&mut server);
    assert!(!client.closed);
    server.pass(Duration::from_millis(200));
    client.drain(&mut server);
    assert!(client.closed);
    assert_eq!(server.used(Category::IncompleteMessages), 0);
}

/// Requests a large value and never reads the response.
fn zero_window(server: &mut Server) -> Client {
    let mut client = server.session();
    let node = ReadValueId { node_id: NodeId::numeric(1, 9), attribute_id: 13, ..Default::default() };
    let request =
        ReadRequest { request_header: client.header(), nodes_to_read: vec![node], ..Default::default() };
    let start = client.channel.begin(&mut client.out);
    NodeId::numeric(0, ReadRequest::BINARY_ENCODING_ID).encode(&mut client.out);
    request.encode(&mut client.out);
    let request_id = client.channel.next_request_id();
    client.channel.finish(start, request_id, &mut client.out).unwrap();
    let mut sent = core::mem::take(&mut client.out);
    server.shard.received(client.connection, &mut sent, server.now);
    assert_eq!(server.shard.poll_transmit(), Some(client.connection));
    server.shard.blocked(client.connection, server.now);
    client
}

#[test]
fn the_budget_of_unsent_bytes_closes_clients_that_do_not_read() {
    let mut server = Server::with(|config| config.limits.unsent_bytes_max = 1 << 20);
    add(&server, variable(9, BuiltInType::ByteString, taktwerk_types::ByteString::from(vec![7; 300_000])));
    let mut honest = server.session();
    let mut stuck: Vec<Client> = (0..3).map(|_| zero_window(&mut server)).collect();
    assert!(server.used(Category::UnsentMessages) > 870_000 && !server.is_over(Category::UnsentMessages));
    assert_eq!(flush(&mut server), 0);
    stuck.push(zero_window(&mut server));
    assert!(!server.is_over(Category::UnsentMessages));
    assert_eq!(flush(&mut server), 1, "the one with most is closed without a message");
    read(&mut honest, &mut server, 2259.into(), 13);
    // The others after the timeout for blocked connections.
    server.pass(Duration::from_secs(59));
    assert_eq!(flush(&mut server), 0);
    server.pass(Duration::from_secs(2));
    assert_eq!(flush(&mut server), 3);
    assert_eq!(server.used(Category::UnsentMessages), 0);
}

#[test]
fn no_response_is_longer_than_the_server_allows() {
    let mut server = Server::with(|config| config.limits.response_len_max = 500_000);
    add(&server, variable(9, BuiltInType::ByteString, taktwerk_types::ByteString::from(vec![7; 100_000])));
    let mut client = server.session();
    let node = ReadValueId { node_id: NodeId::numeric(1, 9), attribute_id: 13, ..Default::default() };
    let mut read = |count: usize| {
        let nodes_to_read = vec![node.clone(); count];
        let request = ReadRequest { request_header: client.header(), nodes_to_read, ..Default::default() };
        result(&mut client, &mut server, &request)
    };
    assert_eq!(read(4), StatusCode::GOOD);
    // A response of 10^9 bytes is never written.
    assert_eq!(read(10_000), StatusCode::BAD_RESPONSE_TOO_LARGE);
    assert_eq!(read(5), StatusCode::BAD_RESPONSE_TOO_LARGE);
}

#[test]
fn discovery_is_limited_per_address_bounded_and_deterministic() {
    let mut server = Server::with(|config| {
        config.limits.discovery_rate_per_address = Rate::new(10.0, 3);
        config.limits.discovery_response_len_max = 2_000;
        let endpoint = config.endpoints[0].clone();
        config.endpoints = vec![endpoint; 50];
    });
    let mut client = server.connect();
    let connection = server.shard.connections.get_mut(client.connection.0).unwrap();
    connection.address = Some(address(1));
    server.shard.shared().admit(address(1), server.now.instant).unwrap();
    let mut ask = |server: &mut Server| {
        let request = GetEndpointsRequest { request_header: client.header(), ..Default::default() };
        client.call(server, &request).map(|response| response.endpoints)
    };
    let first = ask(&mut server).unwrap();
    assert!(!first.is_empty() && first.len() < 50, "{} endpoints", first.len());
    assert_eq!(ask(&mut server).unwrap(), first);
    assert_eq!(ask(&mut server).unwrap(), first);
    assert_eq!(ask(&mut server).unwrap_err(), StatusCode::BAD_SERVER_TOO_BUSY);
    server.pass(Duration::from_millis(100));
    assert_eq!(ask(&mut server).unwrap(), first);
    // Clients compare this list with that of a new session.
    assert_eq!(server.connect().create(&mut server).unwrap().server_endpoints, first);
}

#[test]
fn the_account_returns_to_zero_without_clients() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    for _ in 0..3 {
        let mut client = server.session();
        let id = subscription(&mut client, &mut server).unwrap();
        items(&mut client, &mut server, id, 10, 10);
        super::flow::publish(&mut client, &mut server);
    }
    let _unfinished = unfinished(&mut server, 200_000);
    server.pass(Duration::from_secs(1));
    flush(&mut server);
    let used = Category::ALL.into_iter().filter(|category| server.used(*category) > 0).count();
    assert!(used >= 7, "{:?}", server.shard.shared().account());
    server.pass(Duration::from_secs(7_300));
    flush(&mut server);
    assert_eq!(server.shard.connection_count(), 0);
    server.assert_nothing_is_kept();
}

#[test]
fn the_sum_of_memory_follows_the_limits() {
    let channel = taktwerk_channel::ChannelLimits::default();
    let base = Limits::default();
    let sum = base.memory_max(&channel, 1);
    let more = Limits { unsent_bytes_max: base.unsent_bytes_max + 1000, ..base.clone() };
    assert_eq!(more.memory_max(&channel, 1), sum + 1000);
    let request = Limits { request_memory_max: base.request_memory_max + 1000, ..base.clone() };
    assert_eq!(request.memory_max(&channel, 3), base.memory_max(&channel, 3) + 3000);
    assert!(base.memory_max(&channel, 2) > sum);
}
