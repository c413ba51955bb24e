//! Events over the wire: items, filters, queues, permissions and moves.

use super::flow::publish;
use super::transfer::Pair;
use super::*;
use crate::NewEvent;
use crate::space::NodeSpec;
use crate::space::build::Under;
use schema::ids::{object_ids, object_type_ids, reference_type_ids};
use schema::{
    ContentFilter, ContentFilterElement, CreateMonitoredItemsRequest, CreateSubscriptionRequest, EventFilter,
    EventFilterResult, EventNotificationList, FilterOperator, LiteralOperand, ModifyMonitoredItemsRequest,
    MonitoredItemCreateRequest, MonitoredItemCreateResult, MonitoredItemModifyRequest, MonitoringMode,
    MonitoringParameters, PublishResponse, ReadValueId, SetMonitoringModeRequest, SimpleAttributeOperand,
};
use taktwerk_types::{ExtensionObject, LocalizedText, QualifiedName, Variant};

pub(super) const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
/// An area with an EventNotifier, and a pump in it.
pub(super) const AREA: NodeId = NodeId::numeric(1, 100);
const PUMP: NodeId = NodeId::numeric(1, 101);

pub(super) fn plant(space: &AddressSpace) {
    let object = |id: NodeId, name: &str| NodeSpec::object(id, QualifiedName::new(1, name));
    let add = |spec: NodeSpec, parent: NodeId, reference: u32| {
        let under =
            Under { parent: &parent, reference_type: &NodeId::numeric(0, reference), type_definition: None };
        space.add_node(spec, under, UtcTime::NULL).unwrap();
    };
    let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
    add(object(AREA, "Area").event_notifier(1), objects, reference_type_ids::ORGANIZES);
    add(object(PUMP, "Pump"), AREA, reference_type_ids::HAS_COMPONENT);
}

fn select(names: &[&str]) -> Vec<SimpleAttributeOperand> {
    names
        .iter()
        .map(|name| SimpleAttributeOperand {
            type_definition_id: NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE),
            browse_path: name.split('/').map(QualifiedName::parse).collect(),
            attribute_id: 13,
            ..Default::default()
        })
        .collect()
}

pub(super) fn severity_at_least(severity: u16) -> ContentFilter {
    let operands = vec![
        ExtensionObject::new(&select(&["Severity"]).remove(0)),
        ExtensionObject::new(&LiteralOperand { value: severity.into() }),
    ];
    let element = ContentFilterElement {
        filter_operator: FilterOperator::GREATER_THAN_OR_EQUAL,
        filter_operands: operands,
    };
    ContentFilter { elements: vec![element] }
}

pub(super) fn filter(names: &[&str]) -> EventFilter {
    EventFilter { select_clauses: select(names), where_clause: ContentFilter::default() }
}

pub(super) fn parameters(filter: &EventFilter, queue_size: u32) -> MonitoringParameters {
    MonitoringParameters {
        client_handle: 7,
        sampling_interval: 0.0,
        filter: ExtensionObject::new(filter),
        queue_size,
        discard_oldest: true,
    }
}

pub(super) fn item(node: NodeId, parameters: MonitoringParameters) -> MonitoredItemCreateRequest {
    let item_to_monitor = ReadValueId { node_id: node, attribute_id: 12, ..Default::default() };
    MonitoredItemCreateRequest {
        item_to_monitor,
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: parameters,
    }
}

pub(super) fn subscription(client: &mut Client, server: &mut Server) -> u32 {
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 100,
        publishing_enabled: true,
        ..Default::default()
    };
    client.call(server, &request).unwrap().subscription_id
}

pub(super) fn create(
    client: &mut Client,
    server: &mut Server,
    subscription_id: u32,
    item: MonitoredItemCreateRequest,
) -> MonitoredItemCreateResult {
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: schema::TimestampsToReturn::BOTH,
        items_to_create: vec![item],
    };
    client.call(server, &request).unwrap().results.remove(0)
}

/// A client that monitors the events of a node.
pub(super) fn watching(server: &mut Server, node: NodeId, filter: &EventFilter) -> (Client, u32, u32) {
    let mut client = server.session();
    let id = subscription(&mut client, server);
    let result = create(&mut client, server, id, item(node, parameters(filter, 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!((result.revised_queue_size, result.revised_sampling_interval), (1000, 0.0));
    assert!(result.filter_result.is_null());
    (client, id, result.monitored_item_id)
}

/// The events of the next message, as (client handle, fields).
pub(super) fn next(client: &mut Client, server: &mut Server) -> Vec<(u32, Vec<Variant>)> {
    let request = publish(client, server);
    server.pass(Duration::from_millis(200));
    client.drain(server);
    client.response::<PublishResponse>(request).map_or_else(Vec::new, |response| events(&response.unwrap()))
}

pub(super) fn events(response: &PublishResponse) -> Vec<(u32, Vec<Variant>)> {
    let blocks = &response.notification_message.notification_data;
    let lists = blocks.iter().filter_map(|block| block.decode::<EventNotificationList>().ok());
    lists.flat_map(|list| list.events).map(|event| (event.client_handle, event.event_fields)).collect()
}

pub(super) fn raise(server: &Server, source: NodeId, severity: u16) {
    let message = LocalizedText::new("en", format!("event {severity}"));
    let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), source);
    server.space.raise(event.severity(severity).message(message), server.now.utc);
}

pub(super) fn severities(events: &[(u32, Vec<Variant>)]) -> Vec<Variant> {
    events.iter().map(|(_, fields)| fields[0].clone()).collect()
}

#[test]
fn an_event_is_reported_by_its_area_and_the_server() {
    let mut server = Server::new();
    plant(&server.space);
    let names = ["Severity", "SourceName", "Message", "Time", "EventId", "2:Unknown"];
    let (mut at_server, ..) = watching(&mut server, SERVER, &filter(&names));
    let (mut at_area, ..) = watching(&mut server, AREA, &filter(&names));
    raise(&server, PUMP, 300);
    raise(&server, SERVER, 100);
    let seen = next(&mut at_server, &mut server);
    assert_eq!(severities(&seen), [Variant::from(300u16), Variant::from(100u16)]);
    let (handle, fields) = &seen[0];
    assert_eq!((*handle, &fields[1]), (7, &Variant::from("Pump")));
    assert_eq!(fields[2], LocalizedText::new("en", "event 300").into());
    assert!(matches!(&fields[3], Variant::DateTime(time) if !time.is_null()));
    assert!(matches!(&fields[4], Variant::ByteString(id) if id.as_bytes().len() == 16));
    assert_eq!(fields[5], Variant::Empty);
    let request = publish(&mut at_area, &mut server);
    server.pass(Duration::from_millis(200));
    at_area.drain(&mut server);
    let response = at_area.response::<PublishResponse>(request).unwrap().unwrap();
    assert_eq!(severities(&events(&response)), [Variant::from(300u16)]);
}

#[test]
fn the_where_clause_decides() {
    let mut server = Server::new();
    plant(&server.space);
    let filter = EventFilter { where_clause: severity_at_least(500), ..filter(&["Severity"]) };
    let (mut client, ..) = watching(&mut server, SERVER, &filter);
    for severity in [100, 500, 499, 900] {
        raise(&server, PUMP, severity);
    }
    assert_eq!(severities(&next(&mut client, &mut server)), [Variant::from(500u16), Variant::from(900u16)]);
}

#[test]
fn nodes_without_events_are_refused_with_the_reason() {
    let mut server = Server::new();
    plant(&server.space);
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let mut status = |node: NodeId, parameters: MonitoringParameters| {
        let result = create(&mut client, &mut server, id, item(node, parameters));
        (result.status_code, result.filter_result.decode::<EventFilterResult>().ok())
    };
    let good = || parameters(&filter(&["Severity"]), 0);
    assert_eq!(status(PUMP, good()).0, StatusCode::BAD_NOT_SUPPORTED);
    assert_eq!(status(NodeId::numeric(1, 9), good()).0, StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(status(NodeId::numeric(0, 2255), good()).0, StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    let none = MonitoringParameters { filter: ExtensionObject::NULL, ..good() };
    assert_eq!(status(SERVER, none).0, StatusCode::BAD_EVENT_FILTER_INVALID);
    let data = ExtensionObject::new(&schema::DataChangeFilter::default());
    assert_eq!(
        status(SERVER, MonitoringParameters { filter: data, ..good() }).0,
        StatusCode::BAD_FILTER_NOT_ALLOWED
    );
    // One of two clauses is valid: the item is created, and the result shows the invalid one.
    let mut clauses = filter(&["Severity", "Severity"]);
    clauses.select_clauses[1].type_definition_id = NodeId::numeric(1, 4711);
    let (made, result) = status(SERVER, parameters(&clauses, 0));
    assert_eq!(made, StatusCode::GOOD);
    assert_eq!(result.unwrap().select_clause_results, [StatusCode::GOOD, StatusCode::BAD_NODE_ID_UNKNOWN]);
    clauses.select_clauses.remove(0);
    assert_eq!(status(SERVER, parameters(&clauses, 0)).0, StatusCode::BAD_EVENT_FILTER_INVALID);
    let mut wrong = filter(&["Severity"]);
    wrong.where_clause = severity_at_least(1);
    wrong.where_clause.elements[0].filter_operands.pop();
    let (refused, result) = status(SERVER, parameters(&wrong, 0));
    assert_eq!(refused, StatusCode::BAD_EVENT_FILTER_INVALID);
    assert_eq!(
        result.unwrap().where_clause_result.element_results[0].status_code,
        StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH
    );
    let many = filter(&vec!["Severity"; 1001]);
    assert_eq!(status(SERVER, parameters(&many, 0)).0, StatusCode::BAD_TOO_MANY_OPERATIONS);
}

#[test]
fn typed_clauses_select_from_their_type_only() {
    let mut server = Server::new();
    let mut clauses = filter(&["Severity", "Status", "EnabledState/Id"]);
    clauses.select_clauses[1].type_definition_id = NodeId::numeric(0, object_type_ids::AUDIT_EVENT_TYPE);
    clauses.select_clauses[2].type_definition_id = NodeId::numeric(0, object_type_ids::CONDITION_TYPE);
    clauses.select_clauses.push(SimpleAttributeOperand {
        type_definition_id: NodeId::numeric(0, object_type_ids::CONDITION_TYPE),
        attribute_id: 1,
        ..Default::default()
    });
    let (mut client, ..) = watching(&mut server, SERVER, &clauses);
    for kind in [object_type_ids::BASE_EVENT_TYPE, object_type_ids::EXCLUSIVE_LEVEL_ALARM_TYPE] {
        let event = NewEvent::new(NodeId::numeric(0, kind), SERVER)
            .field("Status", true)
            .field("EnabledState/Id", true)
            .condition(NodeId::numeric(1, 55));
        server.space.raise(event, server.now.utc);
    }
    let seen = next(&mut client, &mut server);
    assert_eq!(seen[0].1[1..], [Variant::Empty, Variant::Empty, Variant::Empty]);
    assert_eq!(seen[1].1[1..], [Variant::Empty, true.into(), NodeId::numeric(1, 55).into()]);
}

#[test]
fn a_full_queue_reports_lost_events() {
    let mut server = Server::new();
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let result = create(
        &mut client,
        &mut server,
        id,
        item(SERVER, parameters(&filter(&["Severity", "EventType"]), 1)),
    );
    // A queue of one is too short for events.
    assert_eq!(result.revised_queue_size, 10);
    (1..=13).for_each(|severity| raise(&server, SERVER, severity));
    let seen = next(&mut client, &mut server);
    assert_eq!(seen.len(), 11);
    let overflow = NodeId::numeric(0, object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE);
    assert_eq!(seen[0].1[1], overflow.into());
    assert_eq!(seen[1].1[0], Variant::from(4u16));
    raise(&server, SERVER, 77);
    assert_eq!(severities(&next(&mut client, &mut server)), [Variant::from(77u16)]);
}

#[test]
fn items_can_be_modified_disabled_and_deleted() {
    let mut server = Server::new();
    let (mut client, subscription_id, item_id) = watching(&mut server, SERVER, &filter(&["Severity"]));
    raise(&server, SERVER, 1);
    let modify = ModifyMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: schema::TimestampsToReturn::BOTH,
        items_to_modify: vec![MonitoredItemModifyRequest {
            monitored_item_id: item_id,
            requested_parameters: parameters(
                &EventFilter { where_clause: severity_at_least(500), ..filter(&["Severity"]) },
                50,
            ),
        }],
    };
    let result = client.call(&mut server, &modify).unwrap().results.remove(0);
    assert_eq!((result.status_code, result.revised_queue_size), (StatusCode::GOOD, 50));
    (400..=600).step_by(100).for_each(|severity| raise(&server, SERVER, severity));
    let expected = [Variant::from(1u16), Variant::from(500u16), Variant::from(600u16)];
    assert_eq!(severities(&next(&mut client, &mut server)), expected);
    let mode = |client: &mut Client, server: &mut Server, mode| {
        let request = SetMonitoringModeRequest {
            request_header: client.header(),
            subscription_id,
            monitoring_mode: mode,
            monitored_item_ids: vec![item_id],
        };
        client.call(server, &request).unwrap();
    };
    raise(&server, SERVER, 700);
    mode(&mut client, &mut server, MonitoringMode::DISABLED);
    raise(&server, SERVER, 800);
    assert!(!server.space.events().is_watched());
    mode(&mut client, &mut server, MonitoringMode::SAMPLING);
    raise(&server, SERVER, 900);
    let request = publish(&mut client, &mut server);
    server.pass(Duration::from_millis(200));
    client.drain(&mut server);
    assert!(client.response::<PublishResponse>(request).is_none());
    mode(&mut client, &mut server, MonitoringMode::REPORTING);
    server.pass(Duration::from_millis(200));
    client.drain(&mut server);
    let response = client.response::<PublishResponse>(request).unwrap().unwrap();
    assert_eq!(severities(&events(&response)), [Variant::from(900u16)]);
    let request = schema::DeleteSubscriptionsRequest {
        request_header: client.header(),
        subscription_ids: vec![subscription_id],
    };
    raise(&server, SERVER, 901);
    client.call(&mut server, &request).unwrap();
    assert!(!server.space.events().is_watched());
    let request = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &request).unwrap();
    server.shard.closed(client.connection, server.now);
    server.assert_nothing_is_kept();
}

#[test]
fn an_item_modified_twice_applies_each_filter_to_its_events() {
    let mut server = Server::new();
    let (mut client, subscription_id, item_id) = watching(&mut server, SERVER, &filter(&["Severity"]));
    raise(&server, SERVER, 1);
    let to = |severity| MonitoredItemModifyRequest {
        monitored_item_id: item_id,
        requested_parameters: parameters(
            &EventFilter { where_clause: severity_at_least(severity), ..filter(&["Severity"]) },
            50,
        ),
    };
    let modify = ModifyMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id,
        timestamps_to_return: schema::TimestampsToReturn::BOTH,
        // Both before the event is taken.
        items_to_modify: vec![to(500), to(300)],
    };
    let results = client.call(&mut server, &modify).unwrap().results;
    assert!(results.iter().all(|result| result.status_code == StatusCode::GOOD));
    [400, 200].into_iter().for_each(|severity| raise(&server, SERVER, severity));
    let expected = [Variant::from(1u16), Variant::from(400u16)];
    assert_eq!(severities(&next(&mut client, &mut server)), expected);
}

#[test]
fn messages_are_shared_between_values_and_events() {
    let mut server = Server::new();
    let mut client = server.session();
    let request = CreateSubscriptionRequest {
        request_header: client.header(),
        requested_publishing_interval: 100.0,
        requested_lifetime_count: 1000,
        requested_max_keep_alive_count: 100,
        max_notifications_per_publish: 4,
        publishing_enabled: true,
        ..Default::default()
    };
    let id = client.call(&mut server, &request).unwrap().subscription_id;
    create(&mut client, &mut server, id, item(SERVER, parameters(&filter(&["Severity"]), 0)));
    let time = MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(0, 2257),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters { sampling_interval: -1.0, ..Default::default() },
    };
    create(&mut client, &mut server, id, time);
    (1..=5).for_each(|severity| raise(&server, SERVER, severity));
    let requests = [publish(&mut client, &mut server), publish(&mut client, &mut server)];
    server.pass(Duration::from_millis(200));
    client.drain(&mut server);
    let [first, second] =
        requests.map(|request| client.response::<PublishResponse>(request).unwrap().unwrap());
    assert_eq!((first.notification_message.notification_data.len(), first.more_notifications), (2, true));
    assert_eq!((events(&first).len(), events(&second).len()), (2, 3));
    // Sent messages can be republished.
    let request = schema::RepublishRequest {
        request_header: client.header(),
        subscription_id: id,
        retransmit_sequence_number: first.notification_message.sequence_number,
    };
    assert_eq!(client.call(&mut server, &request).unwrap().notification_message, first.notification_message);
}

#[test]
fn only_clients_with_permission_receive_events() {
    let mut server = Server::new();
    plant(&server.space);
    let node = NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE);
    let mut reader = server.session();
    let id = subscription(&mut reader, &mut server);
    create(&mut reader, &mut server, id, item(SERVER, parameters(&filter(&["Severity"]), 0)));
    raise(&server, PUMP, 1);
    assert_eq!(next(&mut reader, &mut server).len(), 1);
    // The source becomes hidden: waiting events are not reported either.
    raise(&server, PUMP, 2);
    server.pass(Duration::from_millis(200));
    let nobody =
        crate::authorization::Access::roles([(NodeId::numeric(0, 15704), schema::PermissionType::ALL_BITS)]);
    server.space.set_access(&PUMP, nobody).unwrap();
    raise(&server, PUMP, 3);
    raise(&server, AREA, 4);
    assert!(server.space.contains(&node));
    // The subscription was late, and has nothing left to report.
    assert!(next(&mut reader, &mut server).is_empty());
    assert_eq!(severities(&next(&mut reader, &mut server)), [Variant::from(4u16)]);
}

#[test]
fn event_items_move_to_another_shard_with_their_queues() {
    let mut pair = Pair::new();
    plant(&pair.shards[0].space);
    let (mut old, id, _) = watching(&mut pair.shards[0], SERVER, &filter(&["Severity", "EventType"]));
    raise(&pair.shards[0], PUMP, 1);
    let now = pair.shards[0].now;
    let mut client = pair.shards[1].session();
    assert_eq!(pair.transfer(&mut client, 1, &[id]), [StatusCode::GOOD]);
    assert_eq!(pair.shards.each_mut().map(Server::filter_count), [0, 1]);
    raise(&pair.shards[0], PUMP, 2);
    assert!(pair.shards[0].space.events().is_watched());
    let request = publish(&mut client, &mut pair.shards[1]);
    pair.pass(200);
    client.drain(&mut pair.shards[1]);
    let response = client.response::<PublishResponse>(request).unwrap().unwrap();
    assert_eq!(severities(&events(&response)), [Variant::from(1u16), Variant::from(2u16)]);
    // Events raised during the move are lost, and the client is informed.
    let request = pair.ask(&mut old, 0, &[id]);
    let message = pair.shards[0].shard.poll_message().unwrap();
    pair.shards[1].shard.message(message.1, now);
    raise(&pair.shards[0], PUMP, 3);
    pair.deliver();
    old.drain(&mut pair.shards[0]);
    assert!(old.responses.iter().any(|(id, _)| *id == request));
    let request = publish(&mut old, &mut pair.shards[0]);
    pair.pass(200);
    old.drain(&mut pair.shards[0]);
    let response = old.response::<PublishResponse>(request).unwrap().unwrap();
    let overflow = Variant::from(NodeId::numeric(0, object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE));
    let kinds: Vec<_> = events(&response).into_iter().map(|(_, fields)| fields[1].clone()).collect();
    assert_eq!(kinds, [overflow]);
}
