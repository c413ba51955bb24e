//! Fair turns: long requests are processed in slices, other connections get their turn in between, and results do not
//! change.

use super::attribute::{add, variable};
use super::flow::subscribe;
use super::node_management::object;
use super::*;
use crate::callback::{SourceRead, ValueSource};
use proptest::prelude::*;
use schema::{
    AddNodesRequest, BrowseDescription, BrowseDirection, BrowseNextRequest, BrowsePath, BrowseRequest,
    BrowseResponse, CallMethodRequest, CallRequest, CreateMonitoredItemsRequest, DeleteMonitoredItemsRequest,
    DeleteNodesItem, DeleteNodesRequest, DeleteSubscriptionsRequest, ModifyMonitoredItemsRequest,
    MonitoredItemCreateRequest, MonitoredItemModifyRequest, MonitoringMode, MonitoringParameters,
    PublishRequest, ReadRequest, ReadResponse, ReadValueId, RegisterNodesRequest, RelativePath,
    RelativePathElement, SetMonitoringModeRequest, SetPublishingModeRequest, TimestampsToReturn,
    TranslateBrowsePathsToNodeIdsRequest, UnregisterNodesRequest, WriteRequest, WriteValue,
};
use taktwerk_schema::ids::{method_ids, object_ids, reference_type_ids, variable_ids};
use taktwerk_types::{BuiltInType, ByteString, DataValue, QualifiedName, Variant};

/// Default work units per turn, and the minimum per connection.
const TURN: i64 = 40_000;
const QUANTUM: i64 = 2_000;

pub(super) fn with_variables(count: u32) -> Server {
    let server = Server::new();
    for number in 1..=count {
        add(&server, variable(number, BuiltInType::Double, f64::from(number)));
    }
    server
}

/// Makes turns short.
pub(super) fn slow(server: &mut Server) {
    server.shard.turns.set_units(100, 100);
    server.now.instant = server.now.instant + Duration::from_micros(10);
}

/// Sends a request without running a turn.
pub(super) fn post<R: Request>(client: &mut Client, server: &mut Server, request: &R) -> u32
where
    R::Response: Response,
{
    let id = client.enqueue(R::BINARY_ENCODING_ID, request);
    client.push(server);
    client.drain(server);
    id
}

/// A turn of the driver: advances the time and handles what is due.
pub(super) fn turn(server: &mut Server, client: &mut Client) {
    server.now.instant = server.now.instant + Duration::from_micros(10);
    server.shard.timer(server.now);
    client.push(server);
    client.drain(server);
}

pub(super) fn values(numbers: impl IntoIterator<Item = u32>) -> Vec<ReadValueId> {
    let node =
        |number| ReadValueId { node_id: NodeId::numeric(1, number), attribute_id: 13, ..Default::default() };
    numbers.into_iter().map(node).collect()
}

pub(super) fn read(client: &mut Client, nodes_to_read: Vec<ReadValueId>) -> ReadRequest {
    ReadRequest {
        request_header: client.header(),
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read,
        ..Default::default()
    }
}

pub(super) fn write(client: &mut Client, numbers: impl IntoIterator<Item = u32>, value: f64) -> WriteRequest {
    let node = |number| WriteValue {
        node_id: NodeId::numeric(1, number),
        attribute_id: 13,
        value: DataValue::new(value),
        ..Default::default()
    };
    let nodes_to_write = numbers.into_iter().map(node).collect();
    WriteRequest { request_header: client.header(), nodes_to_write }
}

pub(super) fn browse(client: &mut Client, id: u32, count: usize) -> BrowseRequest {
    let what = BrowseDescription { node_id: id.into(), result_mask: 63, ..Default::default() };
    BrowseRequest {
        request_header: client.header(),
        nodes_to_browse: vec![what; count],
        ..Default::default()
    }
}

// ---- slicing does not change results

/// A sequence of client requests; the bodies of all responses.
fn conversation(server: &mut Server, picks: &[(u8, u8)]) -> Vec<Vec<u8>> {
    let mut client = server.session();
    let mut bodies = Vec::new();
    let subscription_id = subscribe(&mut client, server, NodeId::numeric(1, 1));
    let mut items = vec![1];
    let mut point = ByteString::from(b"none".as_slice());
    for (what, size) in picks {
        let size = usize::from(*size % 40) + 1;
        let header = client.header();
        let numbers = (0..size as u32).map(|at| at * 7 % 35);
        let node = |number: u32| NodeId::numeric(1, number);
        macro_rules! ask {
            ($request:expr) => {{
                let request = $request;
                ask(&mut client, server, &request)
            }};
        }
        let body = match what % 14 {
            0 => {
                let mut nodes = values(numbers);
                for (at, node) in nodes.iter_mut().enumerate() {
                    match at % 5 {
                        1 => node.attribute_id = at as u32,
                        2 => node.node_id = 2256.into(),
                        3 => node.index_range = "1:2".into(),
                        _ => {}
                    }
                }
                ask!(read(&mut client, nodes))
            }
            1 => ask!(write(&mut client, numbers, size as f64)),
            2 => {
                let call = |at: usize| CallMethodRequest {
                    object_id: object_ids::SERVER.into(),
                    method_id: method_ids::SERVER_GET_MONITORED_ITEMS.into(),
                    input_arguments: vec![(subscription_id + (at as u32 % 2)).into()],
                };
                ask!(CallRequest { request_header: header, methods_to_call: (0..size).map(call).collect() })
            }
            3 | 4 => {
                let mut request = browse(&mut client, object_ids::SERVER, size);
                request.requested_max_references_per_node = (size % 4) as u32 * 9;
                for (at, what) in request.nodes_to_browse.iter_mut().enumerate() {
                    what.browse_direction = BrowseDirection((at % 4) as i32);
                    what.node_id = [85, 2253, 84, 12345][at % 4].into();
                    what.node_class_mask = if at % 3 == 0 { 2 } else { 0 };
                }
                let body = ask!(request);
                let mut decoder = Decoder::new(&body[4..], DecodeLimits::DEFAULT);
                let results = BrowseResponse::decode(&mut decoder).unwrap().results;
                let mut given = results.into_iter().map(|result| result.continuation_point);
                point = given.rfind(|point| !point.is_null()).unwrap_or(point);
                body
            }
            5 => ask!(BrowseNextRequest {
                request_header: header,
                release_continuation_points: size == 7,
                continuation_points: vec![point.clone(), b"unknown".as_slice().into()],
            }),
            6 => {
                let element = |name: &str| RelativePathElement {
                    reference_type_id: reference_type_ids::HIERARCHICAL_REFERENCES.into(),
                    include_subtypes: true,
                    target_name: QualifiedName::new(0, name),
                    ..Default::default()
                };
                let path = |at: usize| BrowsePath {
                    starting_node: 84.into(),
                    relative_path: RelativePath {
                        elements: ["Objects", "Server", "ServerStatus", "Nothing"][..at % 5]
                            .iter()
                            .map(|name| element(name))
                            .collect(),
                    },
                };
                let browse_paths = (0..size).map(path).collect();
                ask!(TranslateBrowsePathsToNodeIdsRequest { request_header: header, browse_paths })
            }
            7 => ask!(RegisterNodesRequest {
                request_header: header,
                nodes_to_register: numbers.map(node).collect()
            }),
            8 => ask!(UnregisterNodesRequest {
                request_header: header,
                nodes_to_unregister: numbers.map(node).collect()
            }),
            9 => {
                let item = |number| MonitoredItemCreateRequest {
                    item_to_monitor: values([number]).remove(0),
                    monitoring_mode: MonitoringMode::REPORTING,
                    requested_parameters: MonitoringParameters { queue_size: number, ..Default::default() },
                };
                items.extend(2..=size as u32);
                ask!(CreateMonitoredItemsRequest {
                    request_header: header,
                    subscription_id,
                    timestamps_to_return: TimestampsToReturn::BOTH,
                    items_to_create: numbers.map(item).collect(),
                })
            }
            10 => {
                let item = |id: &u32| MonitoredItemModifyRequest {
                    monitored_item_id: *id,
                    requested_parameters: MonitoringParameters { queue_size: *id, ..Default::default() },
                };
                ask!(ModifyMonitoredItemsRequest {
                    request_header: header,
                    subscription_id,
                    timestamps_to_return: TimestampsToReturn::SOURCE,
                    items_to_modify: items.iter().map(item).collect(),
                })
            }
            11 => ask!(SetMonitoringModeRequest {
                request_header: header,
                subscription_id,
                monitoring_mode: MonitoringMode::SAMPLING,
                monitored_item_ids: items.clone(),
            }),
            12 => ask!(DeleteMonitoredItemsRequest {
                request_header: header,
                subscription_id,
                monitored_item_ids: items.iter().skip(1).copied().collect(),
            }),
            _ => ask!(SetPublishingModeRequest {
                request_header: header,
                publishing_enabled: size > 20,
                subscription_ids: (0..size as u32).map(|at| subscription_id + at % 2).collect(),
            }),
        };
        bodies.push(body);
    }
    let request_header = client.header();
    let subscription_ids = vec![subscription_id, 77];
    bodies.push(ask(&mut client, server, &DeleteSubscriptionsRequest { request_header, subscription_ids }));
    bodies
}

/// The body of a response.
fn ask<R: Request>(client: &mut Client, server: &mut Server, request: &R) -> Vec<u8>
where
    R::Response: Response,
{
    let id = client.send(server, R::BINARY_ENCODING_ID, request);
    let at = client.responses.iter().position(|(of, _)| *of == id).expect("every request is answered");
    client.responses.remove(at).1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_request_processed_in_any_slices_has_the_same_response(
        picks in prop::collection::vec((any::<u8>(), any::<u8>()), 1..12),
        units in 1i64..120,
    ) {
        let mut whole = with_variables(30);
        let mut cut = with_variables(30);
        cut.shard.turns.set_units(units, units.min(40));
        let expected = conversation(&mut whole, &picks);
        prop_assert_eq!(whole.shard.take_work().suspensions, 0);
        let bodies = conversation(&mut cut, &picks);
        prop_assert!(units > 10 || cut.shard.take_work().suspensions > 0);
        for (at, (body, expected)) in bodies.iter().zip(&expected).enumerate() {
            prop_assert_eq!(body, expected, "response {} of {:?}", at, &picks);
        }
        prop_assert_eq!(bodies.len(), expected.len());
        prop_assert!(cut.shard.turns.is_idle());
    }
}

// ---- fairness

/// Fifty connections with requests of thousands of long operations, and one that occasionally reads a value.
#[test]
fn a_small_request_is_answered_within_few_units() {
    const GREEDY: usize = 50;
    let mut server = Server::new();
    for number in 1..=300 {
        add(&server, variable(number, BuiltInType::Double, 1.0));
    }
    let mut greedy: Vec<Client> = (0..GREEDY).map(|_| server.session()).collect();
    let mut honest = server.session();
    let array =
        variable_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY;
    server.shard.take_work();
    let mut longest = 0;
    for round in 0..60 {
        server.now.instant = server.now.instant + Duration::from_millis(1);
        let mut units = 0;
        let is_asking = round % 3 == 0;
        for (at, client) in greedy.iter_mut().enumerate() {
            // The small request is somewhere among them.
            if is_asking && at == round % GREEDY {
                let request = read(&mut honest, values([1]));
                let before = server.shard.take_work();
                let id = post(&mut honest, &mut server, &request);
                let own = server.shard.take_work();
                assert!(honest.response::<ReadResponse>(id).is_some(), "it does not wait");
                assert!(own.units < 20, "{own:?}");
                units += before.units;
            }
            if round == 0 {
                let request = browse(client, object_ids::OBJECTS_FOLDER, 2_000);
                client.enqueue(BrowseRequest::BINARY_ENCODING_ID, &request);
                let node = ReadValueId { node_id: array.into(), attribute_id: 13, ..Default::default() };
                let request = read(client, vec![node; 2_000]);
                client.enqueue(ReadRequest::BINARY_ENCODING_ID, &request);
            }
            client.push(&mut server);
        }
        server.shard.timer(server.now);
        units += server.shard.take_work().units;
        longest = longest.max(units);
    }
    // The driver's work between two polls of its sockets: a quantum for each connection plus the rest of a turn when it
    // reads, and a turn when it continues. Single operations may exceed it.
    let most = 2 * TURN + (GREEDY as i64 + 1) * (QUANTUM + 700);
    assert!(longest > 0 && longest <= most as u64, "{longest} of {most}");
    assert!(greedy.iter().all(|client| !client.closed));
}

#[test]
fn busy_connections_get_equal_shares() {
    let mut server = with_variables(1);
    server.shard.turns.set_units(1_000, 200);
    let mut clients: Vec<Client> = (0..5).map(|_| server.session()).collect();
    // One sends large requests, the others small ones, as often as possible.
    let mut answered = [0u64; 5];
    for _ in 0..100 {
        server.now.instant = server.now.instant + Duration::from_millis(1);
        for (at, client) in clients.iter_mut().enumerate() {
            let count = if at == 0 { 2_000 } else { 50 };
            while client.queued() < 5_000 {
                let request = read(client, vec![values([1]).remove(0); count]);
                client.enqueue(ReadRequest::BINARY_ENCODING_ID, &request);
            }
            client.push(&mut server);
        }
        server.shard.timer(server.now);
        while let Some(id) = server.shard.poll_transmit() {
            let bytes = server.shard.unsent(id).to_vec();
            server.shard.sent(id, bytes.len());
            let at = clients.iter().position(|client| client.connection == id).unwrap();
            answered[at] += bytes.len() as u64;
            clients[at].deliver(&bytes, server.now.instant);
            clients[at].responses.clear();
        }
    }
    let (least, most) = (answered.iter().min().unwrap(), answered.iter().max().unwrap());
    assert!(*least * 4 > *most * 3, "{answered:?}");
}

#[test]
fn due_work_precedes_long_requests() {
    let mut server = with_variables(600);
    let mut watcher = server.session();
    subscribe(&mut watcher, &mut server, NodeId::numeric(1, 1));
    let request = PublishRequest { request_header: watcher.header(), ..Default::default() };
    let publish = post(&mut watcher, &mut server, &request);
    let mut greedy = server.session();
    let request = browse(&mut greedy, object_ids::OBJECTS_FOLDER, 10_000);
    let id = post(&mut greedy, &mut server, &request);
    assert!(greedy.response::<BrowseResponse>(id).is_none());
    // The publishing interval ends during the Browse: after one turn, the message is sent.
    server.now.instant = server.now.instant + Duration::from_millis(200);
    server.shard.timer(server.now);
    watcher.drain(&mut server);
    assert!(watcher.response::<schema::PublishResponse>(publish).is_some());
    assert!(!server.shard.turns.is_idle());
}

#[test]
fn nodes_are_added_and_deleted_in_short_turns() {
    let mut server = Server::with(|config| config.node_management = true);
    let (mut adder, mut reader) = (server.session(), server.session());
    let ids: Vec<NodeId> = (0..1_000).map(|number| NodeId::numeric(1, 5_000 + number)).collect();
    let named = |id: &NodeId| object(id.clone(), &id.to_string());
    let add =
        AddNodesRequest { request_header: adder.header(), nodes_to_add: ids.iter().map(named).collect() };
    let nodes_to_delete = ids
        .iter()
        .map(|id| DeleteNodesItem { node_id: id.clone(), delete_target_references: true })
        .collect();
    let delete = DeleteNodesRequest { request_header: adder.header(), nodes_to_delete };
    server.shard.take_work();
    for id in [post(&mut adder, &mut server, &add), post(&mut adder, &mut server, &delete)] {
        let mut turns = 0;
        // A Read is answered after a few dozen nodes, although the other connection could use the rest of the turn.
        while !adder.responses.iter().any(|(of, _)| *of == id) {
            let units = server.shard.take_work().units;
            // The end of a request and the beginning of the next.
            assert!(units <= 3_300, "{units} units in one turn");
            let request = read(&mut reader, values([1]));
            let asked = post(&mut reader, &mut server, &request);
            assert!(reader.response::<ReadResponse>(asked).is_some());
            turn(&mut server, &mut adder);
            turns += 1;
        }
        assert!((20..100).contains(&turns), "{turns}");
    }
}

/// A source that answers on another thread.
struct Slow;

impl ValueSource for Slow {
    fn read(&self) -> SourceRead {
        SourceRead::Blocking(Box::new(|| DataValue::new(4.5)))
    }
}

#[test]
fn a_postponed_request_waits_for_its_slow_values() {
    let mut server = with_variables(600);
    let spec = variable(1000, BuiltInType::Double, 0.0).source(Arc::new(Slow));
    add(&server, spec);
    let mut client = server.session();
    slow(&mut server);
    let nodes = values((1..=300).chain([1000]).chain(301..=600).chain([1000]));
    let request = read(&mut client, nodes);
    let id = post(&mut client, &mut server, &request);
    while !server.shard.turns.is_idle() {
        turn(&mut server, &mut client);
    }
    assert!(client.responses.is_empty());
    while server.run_effect() {}
    client.drain(&mut server);
    let results = client.response::<ReadResponse>(id).unwrap().unwrap().results;
    let got: Vec<f64> = results
        .iter()
        .map(|value| match value.value {
            Some(Variant::Double(value)) => value,
            ref other => panic!("{other:?}"),
        })
        .collect();
    let expected: Vec<f64> =
        (1..=300).map(f64::from).chain([4.5]).chain((301..=600).map(f64::from)).chain([4.5]).collect();
    assert_eq!(got, expected);
}

// ---- responses that are too large

#[test]
#[allow(clippy::type_complexity)] // a table of requests
fn a_response_that_grows_too_large_is_abandoned_at_once() {
    let mut server = with_variables(2);
    let mut client = server.connect();
    let create = schema::CreateSessionRequest {
        request_header: client.header(),
        endpoint_url: URL.into(),
        requested_session_timeout: 60_000.0,
        max_response_message_size: 10_000,
        ..Default::default()
    };
    client.token = client.call(&mut server, &create).unwrap().authentication_token;
    client.activate(&mut server).unwrap();
    let array =
        variable_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_DIAGNOSTICS_ARRAY;
    let node = |id: u32| ReadValueId { node_id: id.into(), attribute_id: 13, ..Default::default() };
    let requests: [(&str, Box<dyn Fn(&mut Client, &mut Server) -> StatusCode>); 4] = [
        (
            "Read",
            Box::new(move |client, server| {
                let request = read(client, vec![node(array); 9_999]);
                client.call(server, &request).unwrap_err()
            }),
        ),
        (
            "Call",
            Box::new(|client, server| {
                let method = CallMethodRequest::default();
                let methods_to_call = vec![method; 999];
                let request = CallRequest { request_header: client.header(), methods_to_call };
                client.call(server, &request).unwrap_err()
            }),
        ),
        (
            "TranslateBrowsePathsToNodeIds",
            Box::new(|client, server| {
                let path = BrowsePath { starting_node: 84.into(), ..Default::default() };
                let request = TranslateBrowsePathsToNodeIdsRequest {
                    request_header: client.header(),
                    browse_paths: vec![path; 9_999],
                };
                client.call(server, &request).unwrap_err()
            }),
        ),
        (
            "Browse",
            Box::new(|client, server| {
                let request = browse(client, object_ids::OBJECTS_FOLDER, 9_999);
                client.call(server, &request).unwrap_err()
            }),
        ),
    ];
    for (name, ask) in requests {
        server.shard.take_work();
        assert_eq!(ask(&mut client, &mut server), StatusCode::BAD_RESPONSE_TOO_LARGE, "{name}");
        let work = server.shard.take_work();
        // An operation's result is at least eight bytes.
        assert!(work.operations <= 10_000 / 8, "{name}: {work:?}");
    }
}

#[test]
fn work_is_counted() {
    let mut server = with_variables(10);
    let mut client = server.session();
    subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    server.shard.take_work();
    let request = read(&mut client, values(1..=10));
    client.call(&mut server, &request).unwrap();
    let work = server.shard.take_work();
    assert_eq!((work.requests, work.operations, work.suspensions), (1, 10, 0));
    assert_eq!((work.chunks_received, work.chunks_sent, work.signatures), (1, 1, 0));
    assert!(work.bytes_received > 100 && work.bytes_sent > 100 && work.units >= 18, "{work:?}");
    let request = browse(&mut client, object_ids::OBJECTS_FOLDER, 1);
    client.call(&mut server, &request).unwrap();
    assert!(server.shard.take_work().references >= 10);
    let request = PublishRequest { request_header: client.header(), ..Default::default() };
    post(&mut client, &mut server, &request);
    server.space.variable(&NodeId::numeric(1, 1)).unwrap().set_at(5.0, server.now.utc);
    server.pass(Duration::from_millis(250));
    client.drain(&mut server);
    let work = server.shard.take_work();
    assert_eq!((work.publish_responses, work.notifications), (1, 1));
    assert!(work.items_walked >= 1);
    assert_eq!(server.shard.take_work(), crate::Work::default(), "it was taken");
}

/// One short request can be about all items of a subscription.
#[test]
fn requests_about_all_items_cost_as_much_as_their_items() {
    const ITEMS: u32 = 4_000;
    let mut server = with_variables(ITEMS);
    let mut client = server.session();
    let subscription_id = subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    let item = |number| MonitoredItemCreateRequest {
        item_to_monitor: values([number]).remove(0),
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters { sampling_interval: 400.0, ..Default::default() },
    };
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: TimestampsToReturn::BOTH,
        items_to_create: (1..=ITEMS).map(item).collect(),
    };
    client.call(&mut server, &request).unwrap();
    let units_of = |server: &mut Server, client: &mut Client, interval: f64| {
        server.shard.take_work();
        let request = schema::ModifySubscriptionRequest {
            request_header: client.header(),
            subscription_id,
            requested_publishing_interval: interval,
            requested_lifetime_count: 1000,
            requested_max_keep_alive_count: 10,
            ..Default::default()
        };
        client.call(server, &request).unwrap();
        i64::try_from(server.shard.take_work().units).unwrap()
    };
    let items = i64::from(ITEMS);
    assert!(units_of(&mut server, &mut client, 350.0) >= items / 8);
    // Every item changes to another way of sampling.
    assert!(units_of(&mut server, &mut client, 5_000.0) >= items * 16);
    let resend = CallMethodRequest {
        object_id: object_ids::SERVER.into(),
        method_id: method_ids::SERVER_RESEND_DATA.into(),
        input_arguments: vec![subscription_id.into()],
    };
    let methods_to_call = vec![resend; 100];
    let request = CallRequest { request_header: client.header(), methods_to_call };
    // What the changes cost is paid back first.
    (0..100).for_each(|_| turn(&mut server, &mut client));
    server.shard.take_work();
    post(&mut client, &mut server, &request);
    let work = server.shard.take_work();
    assert!(work.suspensions > 0 && (work.units as i64) < 2 * TURN, "{work:?}");
}

/// Deadlines that are replaced again and again must not fill the memory until the last one is due.
#[test]
fn replaced_deadlines_are_forgotten() {
    let mut server = with_variables(1);
    let mut client = server.session();
    let subscription_id = subscribe(&mut client, &mut server, NodeId::numeric(1, 1));
    for step in 0..5_000u32 {
        let request = schema::ModifySubscriptionRequest {
            request_header: client.header(),
            subscription_id,
            requested_publishing_interval: f64::from(3_600_000 - step * 7),
            requested_lifetime_count: 1000,
            requested_max_keep_alive_count: 10,
            ..Default::default()
        };
        client.call(&mut server, &request).unwrap();
    }
    for _ in 0..2_000 {
        let create = schema::CreateSubscriptionRequest {
            request_header: client.header(),
            requested_publishing_interval: 3_600_000.0,
            requested_lifetime_count: 1000,
            requested_max_keep_alive_count: 10,
            publishing_enabled: true,
            ..Default::default()
        };
        let id = client.call(&mut server, &create).unwrap().subscription_id;
        let delete =
            DeleteSubscriptionsRequest { request_header: client.header(), subscription_ids: vec![id] };
        client.call(&mut server, &delete).unwrap();
    }
    let deadlines = server.shard.context(None, server.now).engine.deadlines();
    assert!(deadlines < 1_100, "{deadlines}");
}
