//! Events about the server itself: state changes and semantic changes.

use super::attribute::{add, variable};
use super::events::{filter, next, watching};
use super::flow::publish;
use super::*;
use crate::shard::Command;
use crate::space::NodeSpec;
use crate::space::build::Under;
use schema::ids::{data_type_ids, object_ids, object_type_ids as t, reference_type_ids, variable_type_ids};
use schema::{
    AccessLevelType, EventNotificationList, PublishResponse, SemanticChangeStructureDataType, WriteRequest,
    WriteValue,
};
use taktwerk_types::{Array, ArrayValues, BuiltInType, DataValue, QualifiedName, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const LEVEL: NodeId = NodeId::numeric(1, 1);
const PRECISION: NodeId = NodeId::numeric(1, 2);

#[test]
fn clients_are_informed_of_the_shutdown_before_their_sessions_end() {
    let mut server = Server::new();
    let (mut client, ..) = watching(&mut server, SERVER, &filter(&["EventType", "SystemState"]));
    let waiting = publish(&mut client, &mut server);
    server.shard.command(Command::Shutdown, server.now);
    client.drain(&mut server);
    let response = client.response::<PublishResponse>(waiting).unwrap().unwrap();
    let blocks = &response.notification_message.notification_data;
    let list: EventNotificationList = blocks[0].decode().unwrap();
    let kind = NodeId::numeric(0, t::SYSTEM_STATUS_CHANGE_EVENT_TYPE);
    assert_eq!(list.events[0].event_fields, [kind.into(), schema::ServerState::SHUTDOWN.0.into()]);
    assert!(client.closed);
}

#[test]
fn a_state_is_reported_once() {
    let mut server = Server::new();
    let (mut client, ..) = watching(&mut server, SERVER, &filter(&["SystemState"]));
    let shared = std::sync::Arc::clone(server.shard.shared());
    shared.change_state(schema::ServerState::RUNNING, server.now.utc);
    shared.change_state(schema::ServerState::SUSPENDED, server.now.utc);
    shared.change_state(schema::ServerState::SUSPENDED, server.now.utc);
    let told: Vec<_> = next(&mut client, &mut server).into_iter().flat_map(|(_, fields)| fields).collect();
    assert_eq!(told, [schema::ServerState::SUSPENDED.0.into()]);
}

fn write(client: &mut Client, server: &mut Server, values: &[(NodeId, f64)]) -> Vec<StatusCode> {
    let value = |(node, value): &(NodeId, f64)| WriteValue {
        node_id: node.clone(),
        attribute_id: 13,
        value: DataValue { value: Some((*value).into()), ..DataValue::default() },
        ..Default::default()
    };
    let nodes_to_write = values.iter().map(value).collect();
    let request = WriteRequest { request_header: client.header(), nodes_to_write };
    client.call(server, &request).unwrap().results
}

#[test]
fn a_semantic_change_is_an_event_of_the_server() {
    let mut server = Server::new();
    let writable = AccessLevelType::CURRENT_READ | AccessLevelType::CURRENT_WRITE;
    add(&server, variable(1, BuiltInType::Double, 20.0).access_level(writable));
    let double = NodeId::numeric(0, data_type_ids::DOUBLE);
    let name = QualifiedName::new(0, "ValuePrecision");
    let spec = NodeSpec::variable(PRECISION, name, double, Some(1.0.into())).access_level(writable);
    let under = Under {
        parent: &LEVEL,
        reference_type: &NodeId::numeric(0, reference_type_ids::HAS_PROPERTY),
        type_definition: Some(&NodeId::numeric(0, variable_type_ids::PROPERTY_TYPE)),
    };
    server.space.add_node(spec, under, server.now.utc).unwrap();
    let (mut client, ..) = watching(&mut server, SERVER, &filter(&["EventType", "Changes"]));
    // Neither a change of the value itself nor a refused write is a semantic change.
    let wrong = NodeId::numeric(1, 99);
    let results = write(&mut client, &mut server, &[(LEVEL, 21.0), (wrong, 1.0)]);
    assert_eq!(results, [StatusCode::GOOD, StatusCode::BAD_NODE_ID_UNKNOWN]);
    assert!(next(&mut client, &mut server).is_empty());
    // Two changes in one request give one event that lists the variable once.
    write(&mut client, &mut server, &[(PRECISION, 2.0), (PRECISION, 3.0)]);
    let told = next(&mut client, &mut server);
    let [(_, fields)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(fields[0], NodeId::numeric(0, t::SEMANTIC_CHANGE_EVENT_TYPE).into());
    let Variant::Array(changes) = &fields[1] else { panic!("{fields:?}") };
    let Array { values: ArrayValues::ExtensionObject(changes), .. } = &**changes else {
        panic!("{changes:?}")
    };
    let kinds = server.space.child(&LEVEL, &QualifiedName::new(0, "ValuePrecision"));
    assert_eq!(kinds, Some(PRECISION));
    let change: SemanticChangeStructureDataType = changes[0].decode().unwrap();
    assert_eq!((changes.len(), change.affected), (1, LEVEL));
    assert_eq!(change.affected_type, NodeId::numeric(0, variable_type_ids::BASE_DATA_VARIABLE_TYPE));
    // Writing the same value again is not a change.
    write(&mut client, &mut server, &[(PRECISION, 3.0)]);
    // The brief form, and no events.
    server.space.events().set_model_changes(crate::ModelChangeEvents::Brief);
    write(&mut client, &mut server, &[(PRECISION, 2.0)]);
    let told = next(&mut client, &mut server);
    let base = Variant::from(NodeId::numeric(0, t::BASE_MODEL_CHANGE_EVENT_TYPE));
    assert_eq!(
        told.iter().map(|(_, fields)| fields.clone()).collect::<Vec<_>>(),
        [vec![base, Variant::Empty]]
    );
    server.space.events().set_model_changes(crate::ModelChangeEvents::Off);
    write(&mut client, &mut server, &[(PRECISION, 1.0)]);
    assert!(next(&mut client, &mut server).is_empty());
}
