//! HistoryRead and HistoryUpdate over the wire.

use super::attribute::{add, variable};
use super::*;
use crate::history::aggregate::Aggregate;
use crate::history::{HistoryStore, HistoryValue, MemoryStore, NodeHistory};
use proptest::prelude::*;
use schema::{
    DeleteAtTimeDetails, DeleteRawModifiedDetails, HistoryData, HistoryModifiedData, HistoryReadRequest,
    HistoryReadResult, HistoryReadValueId, HistoryUpdateRequest, HistoryUpdateResult, PerformUpdateType,
    ReadAtTimeDetails, ReadProcessedDetails, ReadRawModifiedDetails, UpdateDataDetails,
};
use taktwerk_types::{BuiltInType, ByteString, DataValue, ExtensionObject, Variant};

pub(super) fn time(seconds: i64) -> UtcTime {
    UtcTime::from_ticks(UtcTime::parse("2026-01-01T00:00:00Z").unwrap().ticks() + seconds * 10_000_000)
}

fn value(seconds: i64, number: f64) -> HistoryValue {
    HistoryValue {
        source: time(seconds),
        server: time(seconds),
        status: StatusCode::GOOD,
        value: number.into(),
    }
}

/// A server whose variable 1 has values at the seconds 10, 20, … 100.
fn server() -> (Server, Client, Arc<MemoryStore>) {
    let mut server = Server::new();
    let store = Arc::new(MemoryStore::new(10_000));
    for number in [1, 2] {
        add(&server, variable(number, BuiltInType::Double, 1.0));
    }
    let id = NodeId::numeric(1, 1);
    let key = server.space.node_key(&id);
    assert_eq!(&*key, "nsu=urn:test:server;i=1");
    let values: Vec<_> = (1..=10).map(|at| (Arc::clone(&key), value(at * 10, at as f64))).collect();
    store.append(&values).unwrap();
    let history = NodeHistory::new(Arc::clone(&store) as Arc<dyn HistoryStore>, key);
    server.space.set_history(&id, history, true, true, server.now.utc).unwrap();
    let client = server.session();
    (server, client, store)
}

fn node(number: u32, continuation: &ByteString) -> HistoryReadValueId {
    HistoryReadValueId {
        node_id: NodeId::numeric(1, number),
        continuation_point: continuation.clone(),
        ..Default::default()
    }
}

fn read<T: Structure>(
    server: &mut Server,
    client: &mut Client,
    details: &T,
    nodes: Vec<HistoryReadValueId>,
    release: bool,
) -> Result<Vec<HistoryReadResult>, StatusCode> {
    let request = HistoryReadRequest {
        request_header: client.header(),
        history_read_details: ExtensionObject::new(details),
        timestamps_to_return: schema::TimestampsToReturn::SOURCE,
        release_continuation_points: release,
        nodes_to_read: nodes,
    };
    Ok(client.call(server, &request)?.results)
}

pub(super) fn raw(start: Option<i64>, end: Option<i64>, count: u32, bounds: bool) -> ReadRawModifiedDetails {
    ReadRawModifiedDetails {
        is_read_modified: false,
        start_time: start.map_or(UtcTime::NULL, time),
        end_time: end.map_or(UtcTime::NULL, time),
        num_values_per_node: count,
        return_bounds: bounds,
    }
}

/// The seconds of all values; missing bounds are negative. Follows continuation points.
fn all(server: &mut Server, client: &mut Client, details: &ReadRawModifiedDetails) -> (Vec<i64>, usize) {
    all_of(server, client, &NodeId::numeric(1, 1), details)
}

pub(super) fn all_of(
    server: &mut Server,
    client: &mut Client,
    node_id: &NodeId,
    details: &ReadRawModifiedDetails,
) -> (Vec<i64>, usize) {
    let mut found = Vec::new();
    let mut point = ByteString::default();
    for pages in 1.. {
        let node = HistoryReadValueId { node_id: node_id.clone(), ..node(1, &point) };
        let results = read(server, client, details, vec![node], false).unwrap();
        assert!(results[0].status_code.is_good(), "{:?}", results[0].status_code);
        let data = &results[0].history_data;
        let values = if details.is_read_modified {
            data.decode().map(|data: HistoryModifiedData| data.data_values)
        } else {
            data.decode().map(|data: HistoryData| data.data_values)
        };
        for value in values.unwrap() {
            let at = (value.source_timestamp.unwrap().ticks() - time(0).ticks()) / 10_000_000;
            found.push(if value.status() == StatusCode::BAD_BOUND_NOT_FOUND { -at } else { at });
        }
        point = results[0].continuation_point.clone();
        if point.as_bytes().is_empty() {
            return (found, pages);
        }
    }
    unreachable!()
}

#[test]
fn raw_values_with_bounds_in_both_directions_and_in_pages() {
    let (mut server, mut client, _) = server();
    let mut check = |details: ReadRawModifiedDetails, expected: &[i64]| {
        let (found, _) = all(&mut server, &mut client, &details);
        assert_eq!(found, expected, "{details:?}");
    };
    check(raw(Some(10), Some(40), 0, false), &[10, 20, 30]);
    check(raw(Some(40), Some(10), 0, false), &[40, 30, 20]);
    check(raw(Some(15), Some(35), 0, true), &[10, 20, 30, 40]);
    check(raw(Some(35), Some(15), 0, true), &[40, 30, 20, 10]);
    check(raw(Some(20), Some(40), 0, true), &[20, 30, 40]);
    check(raw(Some(5), Some(200), 0, true), &[-5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, -200]);
    check(raw(Some(5), Some(200), 3, true), &[-5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, -200]);
    check(raw(Some(200), Some(5), 4, true), &[-200, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10, -5]);
    check(raw(Some(20), None, 3, false), &[20, 30, 40]);
    check(raw(None, Some(35), 2, false), &[30, 20]);
    check(raw(Some(30), Some(30), 0, false), &[30]);
    check(raw(Some(30), Some(30), 0, true), &[30]);
    check(raw(Some(31), Some(39), 0, false), &[]);
    check(raw(Some(31), Some(39), 0, true), &[30, 40]);
    server.assert_nothing_is_kept_for_history(&mut client);
}

impl Server {
    fn assert_nothing_is_kept_for_history(&mut self, client: &mut Client) {
        let before = self.used(Category::Requests);
        let results = read(
            self,
            client,
            &raw(Some(0), Some(1), 0, false),
            vec![node(1, &ByteString::default())],
            false,
        );
        assert_eq!(results.unwrap()[0].status_code, StatusCode::GOOD_NO_DATA);
        assert_eq!(before, self.used(Category::Requests));
    }
}

/// A server with these values in variable 1, and with short responses.
fn short_responses(values: Vec<HistoryValue>) -> (Server, Client) {
    let mut server = Server::with(|config| config.limits.response_len_max = 64 << 10);
    let store = Arc::new(MemoryStore::new(10_000));
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let id = NodeId::numeric(1, 1);
    let key = server.space.node_key(&id);
    let values: Vec<_> = values.into_iter().map(|value| (Arc::clone(&key), value)).collect();
    store.append(&values).unwrap();
    let history = NodeHistory::new(store as Arc<dyn HistoryStore>, key);
    server.space.set_history(&id, history, true, true, server.now.utc).unwrap();
    let client = server.session();
    (server, client)
}

/// A response contains fewer values than the smallest values would allow. The last page begins at a continuation point.
#[test]
fn pages_larger_than_a_response_lose_nothing() {
    let (mut server, mut client) = short_responses((1..=5_000).map(|at| value(at, at as f64)).collect());
    let check = |server: &mut Server, client: &mut Client, details, expected: Vec<i64>| {
        let (found, pages) = all(server, client, &details);
        assert!(pages > 1, "{pages}");
        assert!(found == expected, "{details:?}: {} values", found.len());
    };
    check(&mut server, &mut client, raw(Some(1), Some(6_000), 0, false), (1..=5_000).collect());
    check(&mut server, &mut client, raw(Some(6_000), Some(0), 0, false), (1..=5_000).rev().collect());
    check(&mut server, &mut client, raw(Some(1), None, 4_500, false), (1..=4_500).collect());
    check(&mut server, &mut client, raw(None, Some(5_000), 4_500, false), (501..=5_000).rev().collect());
    // Also for modified values.
    let change: Vec<DataValue> = (1..=4_000)
        .map(|at| DataValue {
            value: Some(0.5.into()),
            source_timestamp: Some(time(at)),
            ..DataValue::default()
        })
        .collect();
    let details = UpdateDataDetails {
        node_id: NodeId::numeric(1, 1),
        perform_insert_replace: PerformUpdateType::REPLACE,
        update_values: change,
    };
    assert!(update(&mut server, &mut client, &details).status_code.is_good());
    let modified = |start, end, count| ReadRawModifiedDetails {
        is_read_modified: true,
        ..raw(start, end, count, false)
    };
    check(&mut server, &mut client, modified(Some(1), Some(6_000), 0), (1..=4_000).collect());
    check(&mut server, &mut client, modified(Some(1), None, 3_500), (1..=3_500).collect());
}

/// No more values are read than fit into a response, whatever their number.
#[test]
fn large_values_are_read_a_few_at_a_time() {
    let text = |at| HistoryValue { value: "x".repeat(10_000).into(), ..value(at, 0.0) };
    let (mut server, mut client) = short_responses((1..=40).map(text).collect());
    for (details, expected) in [
        (raw(Some(1), Some(100), 0, false), (1..=40).collect::<Vec<i64>>()),
        (raw(Some(100), Some(0), 0, false), (1..=40).rev().collect()),
        (raw(Some(1), None, 30, false), (1..=30).collect()),
        (raw(Some(1), Some(41), 0, true), (1..=40).chain([-41]).collect()),
        (raw(Some(1), Some(40), 0, true), (1..=40).collect()),
    ] {
        let (found, pages) = all(&mut server, &mut client, &details);
        assert_eq!(found, expected, "{details:?}");
        assert!((8..=14).contains(&pages), "{pages} pages");
    }
}

/// Part 4 §7.9: continuation points that a client has abandoned do not block its next request.
#[test]
fn continuation_points_of_earlier_requests_are_freed_for_new_ones() {
    let (mut server, mut client, _) = server();
    let none = ByteString::default();
    let page = raw(Some(0), Some(1000), 2, false);
    let mut first = None;
    for _ in 0..150 {
        let result = read(&mut server, &mut client, &page, vec![node(1, &none)], false).unwrap().remove(0);
        assert_eq!(result.status_code, StatusCode::GOOD);
        first.get_or_insert(result.continuation_point);
    }
    let gone = read(&mut server, &mut client, &page, vec![node(1, &first.unwrap())], false).unwrap();
    assert_eq!(gone[0].status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
}

#[test]
fn continuation_points_are_bounded_released_and_belong_to_their_session() {
    let (mut server, mut client, _) = server();
    let none = ByteString::default();
    let page = raw(Some(0), Some(1000), 2, false);
    let many = vec![node(1, &none); 101];
    let results = read(&mut server, &mut client, &page, many, false).unwrap();
    assert_eq!(results[99].status_code, StatusCode::GOOD);
    assert_eq!(results[100].status_code, StatusCode::BAD_NO_CONTINUATION_POINTS);
    let point = results[0].continuation_point.clone();
    let mut other = server.session();
    let stolen = read(&mut server, &mut other, &page, vec![node(1, &point)], false).unwrap();
    assert_eq!(stolen[0].status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
    let points = results.iter().take(100).map(|result| node(1, &result.continuation_point)).collect();
    let released = read(&mut server, &mut client, &page, points, true).unwrap();
    assert!(released.iter().all(|result| result.status_code == StatusCode::GOOD));
    let gone = read(&mut server, &mut client, &page, vec![node(1, &point)], false).unwrap();
    assert_eq!(gone[0].status_code, StatusCode::BAD_CONTINUATION_POINT_INVALID);
}

#[test]
fn failed_reads_have_a_status() {
    let (mut server, mut client, _) = server();
    let none = ByteString::default();
    let details = raw(Some(0), Some(100), 0, false);
    let nodes = vec![node(1, &none), node(2, &none), node(99, &none)];
    let results = read(&mut server, &mut client, &details, nodes, false).unwrap();
    let statuses: Vec<_> = results.iter().map(|result| result.status_code).collect();
    let unsupported = StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED;
    assert_eq!(statuses, [StatusCode::GOOD, unsupported, StatusCode::BAD_NODE_ID_UNKNOWN]);
    let one = || vec![node(1, &none)];
    let alone = read(&mut server, &mut client, &raw(Some(0), None, 0, false), one(), false);
    assert_eq!(alone.unwrap_err(), StatusCode::BAD_INVALID_TIMESTAMP_ARGUMENT);
    let other = read(&mut server, &mut client, &schema::Annotation::default(), one(), false);
    assert_eq!(other.unwrap_err(), StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED);
    let processed = ReadProcessedDetails { start_time: time(0), end_time: time(9), ..Default::default() };
    let mismatch = read(&mut server, &mut client, &processed, one(), false);
    assert_eq!(mismatch.unwrap_err(), StatusCode::BAD_AGGREGATE_LIST_MISMATCH);
}

fn update<T: Structure>(server: &mut Server, client: &mut Client, details: &T) -> HistoryUpdateResult {
    let request = HistoryUpdateRequest {
        request_header: client.header(),
        history_update_details: vec![ExtensionObject::new(details)],
    };
    client.call(server, &request).unwrap().results.remove(0)
}

fn change(perform: PerformUpdateType, seconds: i64, number: f64) -> UpdateDataDetails {
    UpdateDataDetails {
        node_id: NodeId::numeric(1, 1),
        perform_insert_replace: perform,
        update_values: vec![DataValue::new(number).at(time(seconds), time(seconds)), DataValue::new(1.0)],
    }
}

#[test]
fn values_are_inserted_replaced_and_deleted_with_modified_values() {
    let (mut server, mut client, store) = server();
    let no_time = StatusCode::BAD_INVALID_TIMESTAMP;
    for (perform, at, expected) in [
        (PerformUpdateType::INSERT, 15, StatusCode::GOOD_ENTRY_INSERTED),
        (PerformUpdateType::INSERT, 15, StatusCode::BAD_ENTRY_EXISTS),
        (PerformUpdateType::REPLACE, 15, StatusCode::GOOD_ENTRY_REPLACED),
        (PerformUpdateType::REPLACE, 16, StatusCode::BAD_NO_ENTRY_EXISTS),
        (PerformUpdateType::UPDATE, 16, StatusCode::GOOD_ENTRY_INSERTED),
    ] {
        let result = update(&mut server, &mut client, &change(perform, at, 7.5));
        assert_eq!(result.status_code, StatusCode::GOOD);
        assert_eq!(result.operation_results, [expected, no_time]);
    }
    let delete = DeleteRawModifiedDetails {
        node_id: NodeId::numeric(1, 1),
        is_delete_modified: false,
        start_time: time(10),
        end_time: time(20),
    };
    assert_eq!(update(&mut server, &mut client, &delete).status_code, StatusCode::GOOD);
    assert_eq!(update(&mut server, &mut client, &delete).status_code, StatusCode::GOOD_NO_DATA);
    let at = DeleteAtTimeDetails { node_id: NodeId::numeric(1, 1), req_times: vec![time(20), time(21)] };
    let result = update(&mut server, &mut client, &at);
    assert_eq!(result.operation_results, [StatusCode::GOOD, StatusCode::BAD_NO_ENTRY_EXISTS]);
    assert_eq!(all(&mut server, &mut client, &raw(Some(0), Some(45), 0, false)).0, [30, 40]);
    let mut modified = raw(Some(0), Some(45), 0, false);
    modified.is_read_modified = true;
    let results = read(&mut server, &mut client, &modified, vec![node(1, &ByteString::default())], false);
    let data: HistoryModifiedData = results.unwrap()[0].history_data.decode().unwrap();
    assert_eq!(data.data_values.len(), 7);
    assert_eq!(data.modification_infos.len(), 7);
    drop(store);
}

/// Also where there is an entry already: the type is checked first.
#[test]
fn values_of_another_type_are_refused_whether_or_not_there_is_an_entry() {
    let (mut server, mut client, _) = server();
    let mismatch = StatusCode::BAD_TYPE_MISMATCH;
    let at = |value: Variant, seconds| DataValue::new(value).at(time(seconds), time(seconds));
    let bad = DataValue { value: None, status: Some(StatusCode::BAD_NO_COMMUNICATION), ..at(0.0.into(), 12) };
    for (perform, fitting) in [
        (PerformUpdateType::INSERT, StatusCode::GOOD_ENTRY_INSERTED),
        (PerformUpdateType::REPLACE, StatusCode::GOOD_ENTRY_REPLACED),
        (PerformUpdateType::UPDATE, StatusCode::GOOD_ENTRY_REPLACED),
    ] {
        let details = UpdateDataDetails {
            node_id: NodeId::numeric(1, 1),
            perform_insert_replace: perform,
            update_values: vec![
                at("text".into(), 10),
                at("text".into(), 11),
                at(Variant::from(vec![1.0, 2.0]), 10),
                DataValue { value: None, ..at(0.0.into(), 10) },
                bad.clone(),
            ],
        };
        let result = update(&mut server, &mut client, &details);
        assert_eq!(result.status_code, StatusCode::GOOD);
        assert_eq!(result.operation_results[..4], [mismatch; 4], "{perform:?}");
        assert_eq!(result.operation_results[4], fitting, "{perform:?}");
    }
    assert_eq!(all(&mut server, &mut client, &raw(Some(10), Some(12), 0, false)).0, [10]);
}

#[test]
fn values_at_times_and_aggregates() {
    let (mut server, mut client, _) = server();
    let details =
        ReadAtTimeDetails { req_times: vec![time(10), time(15), time(5)], use_simple_bounds: false };
    let results = read(&mut server, &mut client, &details, vec![node(1, &ByteString::default())], false);
    let data: HistoryData = results.unwrap()[0].history_data.decode().unwrap();
    let values: Vec<_> = data.data_values.iter().map(|value| value.value.clone()).collect();
    assert_eq!(values, [Some(1.0.into()), Some(1.0.into()), None], "the variable is stepped");
    assert_eq!(data.data_values[2].status(), StatusCode::BAD_NO_DATA);
    let details = ReadProcessedDetails {
        start_time: time(10),
        end_time: time(60),
        processing_interval: 20_000.0,
        aggregate_type: vec![NodeId::numeric(0, Aggregate::Average.id())],
        aggregate_configuration: schema::AggregateConfiguration {
            use_server_capabilities_defaults: true,
            ..Default::default()
        },
    };
    let results = read(&mut server, &mut client, &details, vec![node(1, &ByteString::default())], false);
    let data: HistoryData = results.unwrap()[0].history_data.decode().unwrap();
    let values: Vec<_> = data.data_values.iter().map(|value| value.value.clone().unwrap()).collect();
    assert_eq!(values, [Variant::from(1.5), 3.5.into(), 5.0.into()]);
    assert_eq!(data.data_values[0].status().0 & 0x1f, 1, "calculated");
    assert_eq!(data.data_values[2].status().0 & 0x1f, 1, "an average is never partial (Part 13 §5.4.3.5)");
}

#[test]
fn many_times_and_intervals_without_values_are_answered_in_pieces() {
    let mut server = Server::with(|config| config.limits.history_raw_values_max = 1_000);
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let id = NodeId::numeric(1, 1);
    let history = NodeHistory::new(Arc::new(MemoryStore::new(10)), server.space.node_key(&id));
    server.space.set_history(&id, history, false, false, server.now.utc).unwrap();
    let mut client = server.session();
    let none = ByteString::default();
    let times = ReadAtTimeDetails { req_times: vec![time(1); 100], use_simple_bounds: false };
    let notes = schema::ReadAnnotationDataDetails { req_times: vec![time(1); 100] };
    let intervals = ReadProcessedDetails {
        start_time: time(0),
        end_time: time(100),
        processing_interval: 1_000.0,
        aggregate_type: vec![NodeId::numeric(0, Aggregate::Average.id())],
        aggregate_configuration: schema::AggregateConfiguration {
            use_server_capabilities_defaults: true,
            ..Default::default()
        },
    };
    let mut pages = |details: &dyn Fn(&mut Server, &mut Client, ByteString) -> HistoryReadResult| {
        let (mut point, mut count, mut values) = (none.clone(), 0, 0);
        loop {
            let result = details(&mut server, &mut client, point);
            assert!(result.status_code.is_good(), "{:?}", result.status_code);
            values += result.history_data.decode::<HistoryData>().map_or(0, |data| data.data_values.len());
            (point, count) = (result.continuation_point, count + 1);
            if point.as_bytes().is_empty() {
                return (count, values);
            }
        }
    };
    // 30 store queries at a time.
    assert_eq!(pages(&|s, c, p| read(s, c, &times, vec![node(1, &p)], false).unwrap().remove(0)), (4, 100));
    assert_eq!(
        pages(&|s, c, p| read(s, c, &intervals, vec![node(1, &p)], false).unwrap().remove(0)),
        (4, 100)
    );
    assert_eq!(pages(&|s, c, p| read(s, c, &notes, vec![node(1, &p)], false).unwrap().remove(0)), (4, 0));
}

#[test]
fn a_point_in_time_with_bounds_is_one_page() {
    let (mut server, mut client, _) = server();
    for time in [5, 10, 15, 100, 120] {
        let whole = all(&mut server, &mut client, &raw(Some(time), Some(time), 0, true)).0;
        let paged = all(&mut server, &mut client, &raw(Some(time), Some(time), 1, true)).0;
        assert_eq!(whole, paged, "{time}");
    }
}

/// Null values take one byte each on the wire.
#[test]
fn values_of_an_update_are_charged_as_they_are_kept() {
    const COUNT: usize = 20_000;
    let mut server = server().0;
    let mut client = server.session();
    let mut send = |server: &mut Server, node: u32, operations: usize| {
        let details = UpdateDataDetails {
            node_id: NodeId::numeric(1, node),
            perform_insert_replace: PerformUpdateType::INSERT,
            update_values: vec![DataValue::default(); COUNT],
        };
        let request = HistoryUpdateRequest {
            request_header: client.header(),
            history_update_details: vec![ExtensionObject::new(&details); operations],
        };
        let id = client.send(server, HistoryUpdateRequest::BINARY_ENCODING_ID, &request);
        let used = server.used(Category::Requests);
        while server.run_effect() {
            client.drain(server);
        }
        let results = client.response::<schema::HistoryUpdateResponse>(id).unwrap().unwrap().results;
        (used, results.iter().map(|result| result.status_code).collect::<Vec<_>>())
    };
    let (used, statuses) = send(&mut server, 1, 3);
    assert!(used >= 3 * COUNT * size_of::<HistoryValue>(), "{used}");
    assert_eq!(statuses, [StatusCode::GOOD; 3]);
    // Nothing of what is refused is kept.
    let (used, statuses) = send(&mut server, 2, 3);
    assert!(used < COUNT, "{used}");
    assert_eq!(statuses, [StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED; 3]);
}

/// The limit of a request's memory is for all operations together.
#[test]
fn operations_of_an_update_share_the_memory_of_the_request() {
    const COUNT: usize = 20_000;
    const MAX: usize = 5 * COUNT * size_of::<DataValue>();
    let mut server = Server::with(|config| config.limits.request_memory_max = MAX);
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    let details = UpdateDataDetails {
        node_id: NodeId::numeric(1, 1),
        perform_insert_replace: PerformUpdateType::INSERT,
        update_values: vec![DataValue::default(); COUNT],
    };
    let request = HistoryUpdateRequest {
        request_header: client.header(),
        history_update_details: vec![ExtensionObject::new(&details); 20],
    };
    let results = client.call(&mut server, &request).unwrap().results;
    let is_refused =
        |result: &HistoryUpdateResult| result.status_code == StatusCode::BAD_ENCODING_LIMITS_EXCEEDED;
    let first = results.iter().position(is_refused).unwrap();
    assert!((2..9).contains(&first), "{first}");
    assert!(is_refused(&results[19]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn pages_equal_one_large_response(start in 0i64..120, end in 0i64..120, page in 1u32..6, bounds: bool) {
        let (mut server, mut client, _) = server();
        let whole = all(&mut server, &mut client, &raw(Some(start), Some(end), 0, bounds)).0;
        let paged = all(&mut server, &mut client, &raw(Some(start), Some(end), page, bounds)).0;
        prop_assert_eq!(&whole, &paged);
        let mut expected: Vec<i64> = (1..=10).map(|at| at * 10).filter(|at| {
            if start <= end { start <= *at && (*at < end || start == end && *at == end) } else { end < *at && *at <= start }
        }).collect();
        if start > end {
            expected.reverse();
        }
        if !bounds {
            prop_assert_eq!(whole, expected);
        }
    }
}
