//! Read and Write.

use super::*;
use crate::callback::{CallContext, SourceRead, ValueSource};
use crate::space::NodeSpec;
use crate::space::build::{Under, ValueShape};
use schema::{AccessLevelType, ReadRequest, ReadValueId, TimestampsToReturn, WriteRequest, WriteValue};
use std::sync::atomic::{AtomicU32, Ordering};
use taktwerk_schema::ids::{data_type_ids, object_ids, reference_type_ids, variable_ids, variable_type_ids};
use taktwerk_types::{BuiltInType, ByteString, DataValue, LocalizedText, QualifiedName, Variant};

pub(crate) const READ_WRITE: AccessLevelType = AccessLevelType(3);

/// Adds a Variable below Objects.
pub(crate) fn add(server: &Server, spec: NodeSpec) {
    let under = Under {
        parent: &object_ids::OBJECTS_FOLDER.into(),
        reference_type: &reference_type_ids::HAS_COMPONENT.into(),
        type_definition: Some(&variable_type_ids::BASE_DATA_VARIABLE_TYPE.into()),
    };
    server.space.add_node(spec, under, server.now.utc).unwrap();
}

pub(crate) fn variable(number: u32, kind: BuiltInType, value: impl Into<Variant>) -> NodeSpec {
    let name = QualifiedName::new(1, format!("v{number}"));
    NodeSpec::variable(NodeId::numeric(1, number), name, u32::from(kind.number()).into(), Some(value.into()))
        .access_level(READ_WRITE)
}

fn value_id(node_id: NodeId, attribute_id: u32) -> ReadValueId {
    ReadValueId { node_id, attribute_id, ..ReadValueId::default() }
}

fn request(client: &mut Client, nodes_to_read: Vec<ReadValueId>) -> ReadRequest {
    ReadRequest {
        request_header: client.header(),
        max_age: 0.0,
        timestamps_to_return: TimestampsToReturn::BOTH,
        nodes_to_read,
    }
}

fn read_all(client: &mut Client, server: &mut Server, nodes: Vec<ReadValueId>) -> Vec<DataValue> {
    let request = request(client, nodes);
    client.call(server, &request).unwrap().results
}

pub(crate) fn read(
    client: &mut Client,
    server: &mut Server,
    node_id: NodeId,
    attribute_id: u32,
) -> DataValue {
    read_all(client, server, vec![value_id(node_id, attribute_id)]).remove(0)
}

fn write(client: &mut Client, server: &mut Server, number: u32, value: DataValue) -> StatusCode {
    write_range(client, server, number, "", value)
}

fn write_range(
    client: &mut Client,
    server: &mut Server,
    number: u32,
    range: &str,
    value: DataValue,
) -> StatusCode {
    let value = WriteValue {
        node_id: NodeId::numeric(1, number),
        attribute_id: 13,
        index_range: range.into(),
        value,
    };
    let request = WriteRequest { request_header: client.header(), nodes_to_write: vec![value] };
    client.call(server, &request).unwrap().results[0]
}

#[test]
fn server_status_is_live() {
    let mut server = Server::new();
    let mut client = server.session();
    server.pass(Duration::from_secs(5));
    let id: NodeId = variable_ids::SERVER_SERVER_STATUS_CURRENT_TIME.into();
    let value = read(&mut client, &mut server, id, 13);
    assert_eq!(value.value, Some(Variant::DateTime(server.now.utc)));
    assert_eq!(value.source_timestamp, Some(server.now.utc));
    let status = read(&mut client, &mut server, variable_ids::SERVER_SERVER_STATUS.into(), 13);
    let Some(Variant::ExtensionObject(status)) = status.value else { panic!() };
    let status: schema::ServerStatusDataType = status.decode().unwrap();
    assert_eq!(status.current_time, server.now.utc);
    assert_eq!(status.state, schema::ServerState::RUNNING);
}

#[test]
fn limits_and_arrays_are_published() {
    let mut server = Server::with(|config| config.limits.nodes_per_read_max = 77);
    let mut client = server.session();
    for (id, expected) in [
        (variable_ids::SERVER_SERVER_CAPABILITIES_OPERATION_LIMITS_MAX_NODES_PER_READ, Variant::from(77u32)),
        (variable_ids::SERVER_SERVICE_LEVEL, 255u8.into()),
        (variable_ids::SERVER_SERVER_ARRAY, vec![taktwerk_types::UaString::from(APPLICATION)].into()),
        (
            variable_ids::SERVER_NAMESPACE_ARRAY,
            vec!["http://opcfoundation.org/UA/".into(), taktwerk_types::UaString::from(APPLICATION)].into(),
        ),
        (variable_ids::SERVER_SERVER_DIAGNOSTICS_ENABLED_FLAG, true.into()),
    ] {
        assert_eq!(read(&mut client, &mut server, id.into(), 13).value, Some(expected), "{id}");
    }
    let many = vec![value_id(object_ids::SERVER.into(), 1); 78];
    let request = request(&mut client, many);
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_TOO_MANY_OPERATIONS);
}

#[test]
fn every_attribute_of_every_class_is_there_or_not() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.5));
    let mut client = server.session();
    let nodes: [(NodeId, &[u32]); 7] = [
        (object_ids::SERVER.into(), &[1, 2, 3, 4, 5, 6, 7, 12]),
        (NodeId::numeric(1, 1), &[1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 17, 18, 19, 20, 27]),
        (58.into(), &[1, 2, 3, 4, 5, 6, 7, 8]),
        (62.into(), &[1, 2, 3, 4, 5, 6, 7, 8, 14, 15]),
        (reference_type_ids::ORGANIZES.into(), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (data_type_ids::ARGUMENT.into(), &[1, 2, 3, 4, 5, 6, 7, 8, 23]),
        (11492.into(), &[1, 2, 3, 4, 5, 6, 7, 21, 22]),
    ];
    for (id, present) in nodes {
        let items = (0..30).map(|attribute_id| value_id(id.clone(), attribute_id)).collect();
        let values = read_all(&mut client, &mut server, items);
        for (attribute_id, value) in (0u32..).zip(values) {
            if present.contains(&attribute_id) {
                assert_eq!(value.status(), StatusCode::GOOD, "{id} attribute {attribute_id}");
                assert!(value.value.is_some());
            } else {
                let allowed = value.status() == StatusCode::BAD_ATTRIBUTE_ID_INVALID
                    || matches!(attribute_id, 5 | 16 | 24 | 25 | 26);
                assert!(allowed, "{id} attribute {attribute_id}: {value:?}");
            }
            assert!(attribute_id == 13 || value.source_timestamp.is_none());
        }
    }
    let name = read(&mut client, &mut server, object_ids::SERVER.into(), 3);
    assert_eq!(name.value, Some(QualifiedName::new(0, "Server").into()));
}

#[test]
fn service_parameters_are_checked() {
    let mut server = Server::new();
    let mut client = server.session();
    let good = request(&mut client, vec![value_id(object_ids::SERVER.into(), 1)]);
    for (change, status) in [
        (ReadRequest { max_age: -1.0, ..good.clone() }, StatusCode::BAD_MAX_AGE_INVALID),
        (
            ReadRequest { timestamps_to_return: TimestampsToReturn(4), ..good.clone() },
            StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID,
        ),
        (ReadRequest { nodes_to_read: vec![], ..good.clone() }, StatusCode::BAD_NOTHING_TO_DO),
    ] {
        assert_eq!(client.call(&mut server, &change).unwrap_err(), status);
    }
    assert!(client.call(&mut server, &good).is_ok());
}

#[test]
fn operations_fail_by_themselves() {
    let mut server = Server::new();
    add(
        &server,
        variable(1, BuiltInType::Int32, vec![1i32, 2, 3]).shape(ValueShape::array(BuiltInType::Int32)),
    );
    add(&server, variable(2, BuiltInType::Double, 1.0).access_level(AccessLevelType(2)));
    let mut client = server.session();
    let plain = |number: u32| value_id(NodeId::numeric(1, number), 13);
    let range = |number: u32, range: &str| ReadValueId { index_range: range.into(), ..plain(number) };
    let encoding = |id: NodeId, attribute_id: u32, name: &str| ReadValueId {
        data_encoding: QualifiedName::new(0, name),
        ..value_id(id, attribute_id)
    };
    let status: NodeId = variable_ids::SERVER_SERVER_STATUS.into();
    let items = vec![
        (value_id(NodeId::NULL, 13), StatusCode::BAD_NODE_ID_INVALID),
        (value_id(NodeId::string(9, "x"), 13), StatusCode::BAD_NODE_ID_UNKNOWN),
        (plain(2), StatusCode::BAD_NOT_READABLE),
        (value_id(object_ids::SERVER.into(), 13), StatusCode::BAD_ATTRIBUTE_ID_INVALID),
        (range(1, "1:1"), StatusCode::BAD_INDEX_RANGE_INVALID),
        (range(1, "5"), StatusCode::BAD_INDEX_RANGE_NO_DATA),
        (range(1, "1:2"), StatusCode::GOOD),
        (encoding(NodeId::numeric(1, 1), 13, "Default Binary"), StatusCode::BAD_DATA_ENCODING_INVALID),
        (encoding(status.clone(), 13, "Default Binary"), StatusCode::GOOD),
        (encoding(status.clone(), 13, "Default XML"), StatusCode::BAD_DATA_ENCODING_UNSUPPORTED),
        (encoding(status, 3, "Default Binary"), StatusCode::BAD_DATA_ENCODING_INVALID),
        (plain(1), StatusCode::GOOD),
    ];
    let (items, expected): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    let values = read_all(&mut client, &mut server, items);
    assert_eq!(values.iter().map(DataValue::status).collect::<Vec<_>>(), expected);
    assert_eq!(values[6].value, Some(vec![2i32, 3].into()));
    assert!(values[..6].iter().all(|value| value.value.is_none()));
}

#[test]
fn timestamps_are_returned_as_requested() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    add(&server, variable(2, BuiltInType::String, "text"));
    let written = server.now.utc;
    let mut client = server.session();
    server.pass(Duration::from_secs(3));
    for (wire, source, of_server) in [(0, true, false), (1, false, true), (2, true, true), (3, false, false)]
    {
        let mut request = request(
            &mut client,
            vec![value_id(NodeId::numeric(1, 1), 13), value_id(NodeId::numeric(1, 2), 13)],
        );
        request.timestamps_to_return = TimestampsToReturn(wire);
        for value in client.call(&mut server, &request).unwrap().results {
            assert_eq!(value.source_timestamp, source.then_some(written));
            assert_eq!(value.server_timestamp, of_server.then_some(server.now.utc));
        }
    }
}

/// Counts its reads, and answers later.
struct Slow(Arc<AtomicU32>);

impl ValueSource for Slow {
    fn read(&self) -> SourceRead {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        SourceRead::Blocking(Box::new(move || DataValue::new(f64::from(count))))
    }
}

fn slow(server: &Server) -> Arc<AtomicU32> {
    let asked = Arc::new(AtomicU32::new(0));
    add(server, variable(1, BuiltInType::Double, 0.5).source(Arc::new(Slow(Arc::clone(&asked)))));
    add(server, variable(2, BuiltInType::Double, 2.5));
    asked
}

#[test]
fn slow_values_are_waited_for_and_the_response_keeps_its_order() {
    let mut server = Server::new();
    slow(&server);
    let mut client = server.session();
    let plain = |number: u32| value_id(NodeId::numeric(1, number), 13);
    let request = request(&mut client, vec![plain(2), plain(1), plain(2), plain(1), plain(9)]);
    let id = client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &request);
    assert!(client.responses.is_empty());
    // In the meantime other requests are served.
    assert_eq!(read(&mut client, &mut server, NodeId::numeric(1, 2), 13).value, Some(2.5.into()));
    while server.run_effect() {}
    client.drain(&mut server);
    let values = client.response::<schema::ReadResponse>(id).unwrap().unwrap().results;
    let numbers: Vec<_> = values.iter().map(|value| value.value.clone()).collect();
    assert_eq!(numbers, [Some(2.5.into()), Some(0.0.into()), Some(2.5.into()), Some(1.0.into()), None]);
    assert_eq!(values[4].status(), StatusCode::BAD_NODE_ID_UNKNOWN);
}

#[test]
fn max_age_takes_the_last_value_of_a_slow_source() {
    let mut server = Server::new();
    let asked = slow(&server);
    let mut client = server.session();
    let ask = |server: &mut Server, client: &mut Client, max_age: f64| {
        let request = ReadRequest { max_age, ..request(client, vec![value_id(NodeId::numeric(1, 1), 13)]) };
        let id = client.send(server, ReadRequest::BINARY_ENCODING_ID, &request);
        while server.run_effect() {}
        client.drain(server);
        client.response::<schema::ReadResponse>(id).unwrap().unwrap().results.remove(0).value
    };
    assert_eq!(ask(&mut server, &mut client, 0.0), Some(0.0.into()));
    server.pass(Duration::from_secs(2));
    assert_eq!(ask(&mut server, &mut client, 5_000.0), Some(0.0.into()));
    assert_eq!(ask(&mut server, &mut client, 1_000.0), Some(1.0.into()));
    assert_eq!(ask(&mut server, &mut client, 0.0), Some(2.0.into()));
    server.pass(Duration::from_secs(20));
    assert_eq!(ask(&mut server, &mut client, f64::from(i32::MAX)), Some(2.0.into()));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn slow_requests_time_out_and_can_be_cancelled() {
    let mut server = Server::new();
    slow(&server);
    let mut client = server.session();
    let items = vec![value_id(NodeId::numeric(1, 1), 13)];
    let late = request(&mut client, items.clone());
    let id = client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &late);
    server.pass(Duration::from_secs(11));
    client.drain(&mut server);
    assert_eq!(client.response::<schema::ReadResponse>(id), Some(Err(StatusCode::BAD_TIMEOUT)));
    // A late result has no effect.
    assert!(server.run_effect());
    let waiting = request(&mut client, items);
    let id = client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &waiting);
    let cancel = schema::CancelRequest {
        request_header: client.header(),
        request_handle: waiting.request_header.request_handle,
    };
    assert_eq!(client.call(&mut server, &cancel).unwrap().cancel_count, 1);
    let result = client.response::<schema::ReadResponse>(id);
    assert_eq!(result, Some(Err(StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT)));
    assert!(server.run_effect());
    client.drain(&mut server);
    assert!(client.responses.is_empty());
}

#[test]
fn another_user_does_not_get_results_of_the_previous_user() {
    use super::session::{login, with_users};
    let anybody = |_: &str, _: &[u8]| Ok(());
    let mut server = Server::with(|config| with_users(config, Arc::new(anybody)));
    slow(&server);
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    let joe = login(&mut client, "joe", "x");
    client.call(&mut server, &joe).unwrap();
    let begun = |client: &mut Client, server: &mut Server| {
        let request = request(client, vec![value_id(NodeId::numeric(1, 1), 13)]);
        client.send(server, ReadRequest::BINARY_ENCODING_ID, &request)
    };
    // Activating the same user again changes nothing.
    let id = begun(&mut client, &mut server);
    let again = login(&mut client, "joe", "x");
    client.call(&mut server, &again).unwrap();
    while server.run_effect() {}
    client.drain(&mut server);
    assert!(client.response::<schema::ReadResponse>(id).unwrap().is_ok());
    let id = begun(&mut client, &mut server);
    let ann = login(&mut client, "ann", "x");
    let activation = client.send(&mut server, schema::ActivateSessionRequest::BINARY_ENCODING_ID, &ann);
    let cancelled = client.response::<schema::ReadResponse>(id);
    assert_eq!(cancelled, Some(Err(StatusCode::BAD_REQUEST_CANCELLED_BY_CLIENT)));
    assert!(client.response::<schema::ActivateSessionResponse>(activation).unwrap().is_ok());
    // A later result is dropped.
    assert!(server.run_effect());
    client.drain(&mut server);
    assert!(client.responses.is_empty());
}

#[test]
fn outstanding_effects_are_bounded() {
    let mut server = Server::with(|config| config.limits.effects_max = 2);
    slow(&server);
    let mut client = server.session();
    let request = request(&mut client, vec![value_id(NodeId::numeric(1, 1), 13); 3]);
    let id = client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &request);
    while server.run_effect() {}
    client.drain(&mut server);
    let values = client.response::<schema::ReadResponse>(id).unwrap().unwrap().results;
    let statuses: Vec<_> = values.iter().map(DataValue::status).collect();
    assert_eq!(statuses, [StatusCode::GOOD, StatusCode::GOOD, StatusCode::BAD_SERVER_TOO_BUSY]);
}

#[test]
fn values_are_written_with_their_type() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    add(
        &server,
        variable(2, BuiltInType::Int32, 1i32).shape(ValueShape {
            data_type: data_type_ids::NUMBER.into(),
            ..ValueShape::scalar(BuiltInType::Int32)
        }),
    );
    add(
        &server,
        variable(3, BuiltInType::Double, 1.0).shape(ValueShape {
            data_type: data_type_ids::DURATION.into(),
            ..ValueShape::scalar(BuiltInType::Double)
        }),
    );
    add(
        &server,
        variable(4, BuiltInType::Int32, 0i32).shape(ValueShape {
            data_type: data_type_ids::SERVER_STATE.into(),
            ..ValueShape::scalar(BuiltInType::Int32)
        }),
    );
    add(&server, variable(5, BuiltInType::Variant, 1.0));
    let mut client = server.session();
    let mut try_write =
        |number: u32, value: Variant| write(&mut client, &mut server, number, DataValue::new(value));
    let mismatch = StatusCode::BAD_TYPE_MISMATCH;
    assert_eq!(try_write(1, 2.5.into()), StatusCode::GOOD);
    assert_eq!(try_write(1, 2.5f32.into()), mismatch);
    assert_eq!(try_write(1, vec![2.5].into()), mismatch);
    assert_eq!(try_write(1, Variant::Empty), mismatch);
    assert_eq!(try_write(2, 7u8.into()), StatusCode::GOOD);
    assert_eq!(try_write(2, 7.5.into()), StatusCode::GOOD);
    assert_eq!(try_write(2, "7".into()), mismatch);
    assert_eq!(try_write(3, 7.5.into()), StatusCode::GOOD);
    assert_eq!(try_write(4, 1i32.into()), StatusCode::GOOD);
    assert_eq!(try_write(4, 1u32.into()), mismatch);
    assert_eq!(try_write(5, LocalizedText::from("any").into()), StatusCode::GOOD);
    assert_eq!(try_write(5, Variant::Empty), StatusCode::GOOD);
    assert_eq!(try_write(9, 1.0.into()), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(read(&mut client, &mut server, NodeId::numeric(1, 1), 13).value, Some(2.5.into()));
}

#[test]
fn arrays_are_written_whole_and_in_parts() {
    let mut server = Server::new();
    add(
        &server,
        variable(1, BuiltInType::Int32, vec![1i32, 2, 3, 4])
            .shape(ValueShape { array_dimensions: vec![5], ..ValueShape::array(BuiltInType::Int32) }),
    );
    add(&server, variable(2, BuiltInType::Byte, vec![1u8, 2, 3]).shape(ValueShape::array(BuiltInType::Byte)));
    add(&server, variable(3, BuiltInType::ByteString, Variant::ByteString(vec![1u8, 2].into())));
    let mut client = server.session();
    let get = |client: &mut Client, server: &mut Server, number: u32| {
        read(client, server, NodeId::numeric(1, number), 13).value.unwrap()
    };
    let value = |value: Variant| DataValue::new(value);
    assert_eq!(
        write_range(&mut client, &mut server, 1, "1:2", value(vec![20i32, 30].into())),
        StatusCode::GOOD
    );
    assert_eq!(get(&mut client, &mut server, 1), vec![1i32, 20, 30, 4].into());
    for (range, part, status) in [
        ("3:4", vec![1i32, 2], StatusCode::BAD_INDEX_RANGE_NO_DATA),
        ("0:1", vec![1], StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH),
        ("1:0", vec![1], StatusCode::BAD_INDEX_RANGE_INVALID),
        ("", vec![1; 6], StatusCode::BAD_OUT_OF_RANGE),
    ] {
        assert_eq!(write_range(&mut client, &mut server, 1, range, value(part.into())), status, "{range}");
    }
    assert_eq!(get(&mut client, &mut server, 1), vec![1i32, 20, 30, 4].into());
    // ByteString and array of Byte are interchangeable.
    let bytes = Variant::ByteString(ByteString::from(vec![7u8, 8]));
    assert_eq!(write(&mut client, &mut server, 2, value(bytes.clone())), StatusCode::GOOD);
    assert_eq!(get(&mut client, &mut server, 2), vec![7u8, 8].into());
    assert_eq!(write(&mut client, &mut server, 3, value(vec![7u8, 8].into())), StatusCode::GOOD);
    assert_eq!(get(&mut client, &mut server, 3), bytes);
    let part = Variant::ByteString(ByteString::from(vec![9u8]));
    assert_eq!(write_range(&mut client, &mut server, 2, "0", value(part)), StatusCode::GOOD);
    assert_eq!(get(&mut client, &mut server, 2), vec![9u8, 8].into());
}

#[test]
fn access_status_and_timestamps_of_writes() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    add(&server, variable(2, BuiltInType::Double, 1.0).access_level(AccessLevelType(1)));
    add(&server, variable(3, BuiltInType::Double, 1.0).access_level(AccessLevelType(3 | 32 | 64)));
    let mut client = server.session();
    let old = UtcTime::parse("2020-01-01T00:00:00Z").unwrap();
    let stamped = DataValue::new(5.0).at(old, old);
    assert_eq!(write(&mut client, &mut server, 2, stamped.clone()), StatusCode::BAD_NOT_WRITABLE);
    assert_eq!(write(&mut client, &mut server, 1, stamped.clone()), StatusCode::BAD_WRITE_NOT_SUPPORTED);
    let sourced = DataValue { server_timestamp: None, ..stamped.clone() };
    assert_eq!(write(&mut client, &mut server, 1, sourced.clone()), StatusCode::GOOD);
    let bad = DataValue { status: Some(StatusCode::BAD_SENSOR_FAILURE), ..sourced };
    assert_eq!(write(&mut client, &mut server, 1, bad), StatusCode::BAD_WRITE_NOT_SUPPORTED);
    let bad = DataValue { status: Some(StatusCode::BAD_SENSOR_FAILURE), ..stamped };
    assert_eq!(write(&mut client, &mut server, 3, bad), StatusCode::GOOD);
    assert_eq!(write(&mut client, &mut server, 1, DataValue::default()), StatusCode::BAD_WRITE_NOT_SUPPORTED);
    let value = read(&mut client, &mut server, NodeId::numeric(1, 3), 13);
    assert_eq!((value.status(), value.source_timestamp), (StatusCode::BAD_SENSOR_FAILURE, Some(old)));
    // Other attributes exist but are not writable.
    for (attribute_id, status) in [
        (4, StatusCode::BAD_NOT_WRITABLE),
        (12, StatusCode::BAD_ATTRIBUTE_ID_INVALID),
        (99, StatusCode::BAD_ATTRIBUTE_ID_INVALID),
    ] {
        let value = WriteValue {
            node_id: NodeId::numeric(1, 1),
            attribute_id,
            value: DataValue::new(LocalizedText::from("x")),
            ..WriteValue::default()
        };
        let request = WriteRequest { request_header: client.header(), nodes_to_write: vec![value] };
        assert_eq!(client.call(&mut server, &request).unwrap().results, [status]);
    }
}

#[test]
fn handlers_decide_on_writes() {
    let mut server = Server::new();
    let clamp = |context: &CallContext, mut value: DataValue| {
        assert!(!context.session_id.is_null());
        match value.value {
            Some(Variant::Double(number)) if number < 0.0 => Err(StatusCode::BAD_OUT_OF_RANGE),
            Some(Variant::Double(number)) => {
                value.value = Some(number.min(10.0).into());
                Ok(value)
            }
            _ => Err(StatusCode::BAD_TYPE_MISMATCH),
        }
    };
    add(&server, variable(1, BuiltInType::Double, 1.0).write_handler(Arc::new(clamp)));
    let mut client = server.session();
    assert_eq!(write(&mut client, &mut server, 1, DataValue::new(-1.0)), StatusCode::BAD_OUT_OF_RANGE);
    assert_eq!(write(&mut client, &mut server, 1, DataValue::new(99.0)), StatusCode::GOOD);
    assert_eq!(read(&mut client, &mut server, NodeId::numeric(1, 1), 13).value, Some(10.0.into()));
}
