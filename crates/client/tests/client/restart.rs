//! Servers that restart with a different configuration, and servers that refuse.

use crate::common::*;
use taktwerk_client::{
    Event, EventQuery, Misuse, Note, OperationKind, SubscriptionEvent, SubscriptionHandle, WantedItem,
};
use taktwerk_schema::{
    ActivateSessionRequest, AggregateFilter, BrowsePath, CreateSessionRequest, CreateSubscriptionRequest,
    EventFilter, GetEndpointsRequest, MonitoredItemCreateRequest, PublishRequest, ReadResponse, RelativePath,
    RelativePathElement,
};
use taktwerk_types::{ExtensionObject, NodeId, QualifiedName, StatusCode, Structure};

const UA: &str = "http://opcfoundation.org/UA/";

fn item_in(namespace_index: u16, client_handle: u32) -> MonitoredItemCreateRequest {
    let mut item = item(client_handle);
    item.item_to_monitor.node_id.namespace_index = namespace_index;
    item
}

/// A client of a server with a plant in namespace 3.
fn plant() -> (World, SubscriptionHandle) {
    let mut world = Setup::default().world();
    world.server.knobs.namespaces = vec![UA, "urn:plc", "urn:other", "urn:plant"];
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    let handle = world.client.create_subscription(params(), world.now);
    world.client.add_items(handle, [item_in(3, 7), item_in(1, 8)], world.now).unwrap();
    world.seconds(1);
    assert_eq!(nodes(&world), [(7, NodeId::numeric(3, 7)), (8, NodeId::numeric(1, 8))]);
    world.take_events();
    (world, handle)
}

/// Restarts the server with another NamespaceArray.
fn restart(world: &mut World, namespaces: &[&'static str]) {
    world.break_connection();
    world.server.restart();
    world.server.knobs.namespaces = namespaces.to_vec();
    world.seconds(2);
    assert!(world.client.is_up());
}

/// Client handles and nodes of all items on the server.
fn nodes(world: &World) -> Vec<(u32, NodeId)> {
    let items = world.server.subscriptions.values().flat_map(|subscription| subscription.items.values());
    let mut nodes: Vec<_> = items
        .map(|item| (item.requested_parameters.client_handle, item.item_to_monitor.node_id.clone()))
        .collect();
    nodes.sort();
    nodes
}

fn count(world: &World, request: u32) -> usize {
    world.server.received.iter().filter(|id| **id == request).count()
}

#[test]
fn items_follow_the_uri_of_their_namespace() {
    let (mut world, handle) = plant();
    restart(&mut world, &[UA, "urn:plc", "urn:plant"]);
    assert_eq!(nodes(&world), [(7, NodeId::numeric(2, 7)), (8, NodeId::numeric(1, 8))]);
    let events = world.take_events();
    assert!(events.contains(&Event::Note(Note::NamespacesChanged)), "{events:?}");
    let results = events.iter().find_map(|event| match event {
        Event::Subscription(of, SubscriptionEvent::Items(results)) if *of == handle => Some(results),
        _ => None,
    });
    let told: Vec<_> =
        results.unwrap().iter().map(|result| (result.client_handle, &result.node_id)).collect();
    assert_eq!(told, [(7, &NodeId::numeric(2, 7)), (8, &NodeId::numeric(1, 8))]);
    // And back, and once more with no change.
    restart(&mut world, &[UA, "urn:plc", "urn:a", "urn:b", "urn:plant"]);
    assert_eq!(nodes(&world)[0], (7, NodeId::numeric(4, 7)));
    world.take_events();
    restart(&mut world, &[UA, "urn:plc", "urn:a", "urn:b", "urn:plant"]);
    assert_eq!(nodes(&world)[0], (7, NodeId::numeric(4, 7)));
    assert!(!world.take_events().contains(&Event::Note(Note::NamespacesChanged)));
}

/// Types, fields and values of conditions contain indexes, too.
#[test]
fn filters_of_events_follow_the_uris_of_their_namespaces() {
    let filter = |plant: u16, plc: u16| {
        let condition = format!(
            "{plant}:Cause = 'x' and SourceNode = ns={plc};i=5 and SourceNode in (i=2253, ns={plant};s=Pump) and \
             relatedto (ns={plant};i=1, i=58, i=47, 1)"
        );
        EventQuery::new()
            .select("Severity")
            .select(&format!("ActiveState/{plant}:Reason"))
            .select_of(&NodeId::numeric(plant, 1003), vec![QualifiedName::new(plc, "Operator")])
            .of_type(NodeId::numeric(plant, 1003), &condition)
            .unwrap()
            .event_filter()
            .clone()
    };
    let mut world = Setup::default().world();
    world.server.knobs.namespaces = vec![UA, "urn:plc", "urn:other", "urn:plant"];
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    let handle = world.client.create_subscription(params(), world.now);
    let mut events = item_in(0, 7);
    events.requested_parameters.filter = ExtensionObject::new(&filter(3, 1));
    let mut values = item_in(1, 8);
    let aggregate = AggregateFilter { aggregate_type: NodeId::numeric(3, 9), ..AggregateFilter::default() };
    values.requested_parameters.filter = ExtensionObject::new(&aggregate);
    world.client.add_items(handle, [events, values], world.now).unwrap();
    world.seconds(1);
    let filters = |world: &World| -> Vec<ExtensionObject> {
        let items = world.server.subscriptions.values().flat_map(|subscription| subscription.items.values());
        items.map(|item| item.requested_parameters.filter.clone()).collect()
    };
    assert_eq!(filters(&world)[0].decode::<EventFilter>().unwrap(), filter(3, 1));
    restart(&mut world, &[UA, "urn:plant", "urn:plc"]);
    let now = filters(&world);
    assert_eq!(now[0].decode::<EventFilter>().unwrap(), filter(1, 2));
    assert_eq!(now[1].decode::<AggregateFilter>().unwrap().aggregate_type, NodeId::numeric(1, 9));
    // A removed type is not confused with another one.
    world.take_events();
    restart(&mut world, &[UA, "urn:stranger", "urn:plc"]);
    assert_eq!(filters(&world), []);
    let missing =
        SubscriptionEvent::NamespaceMissing { namespace_uri: "urn:plant".into(), client_handles: vec![7, 8] };
    let told = world.subscription_events();
    assert!(told.contains(&missing), "{told:?}");
}

/// Another node may have the index now: it must not be monitored.
#[test]
fn a_removed_namespace_is_reported_and_no_other_node_is_monitored() {
    let (mut world, _) = plant();
    restart(&mut world, &[UA, "urn:plc", "urn:other", "urn:stranger"]);
    assert_eq!(nodes(&world), [(8, NodeId::numeric(1, 8))]);
    let events = world.subscription_events();
    let missing =
        SubscriptionEvent::NamespaceMissing { namespace_uri: "urn:plant".into(), client_handles: vec![7] };
    assert!(events.contains(&missing), "{events:?}");
    let refused = events.iter().any(|event| {
        matches!(event, SubscriptionEvent::Items(results)
            if results[0].client_handle == 7 && results[0].status == StatusCode::BAD_NODE_ID_UNKNOWN)
    });
    assert!(refused, "{events:?}");
    // The namespace exists again.
    restart(&mut world, &[UA, "urn:plc", "urn:plant"]);
    assert_eq!(nodes(&world)[0], (7, NodeId::numeric(2, 7)));
}

/// The server kept the session, but its NamespaceArray changed while the connection was down.
#[test]
fn namespaces_are_read_again_with_the_old_session_too() {
    let (mut world, _) = plant();
    world.break_connection();
    world.server.knobs.namespaces = vec![UA, "urn:plc", "urn:plant"];
    world.seconds(2);
    assert_eq!(world.client.namespaces().len(), 3);
    assert!(world.take_events().contains(&Event::Note(Note::NamespacesChanged)));
}

#[test]
fn a_request_with_outdated_indexes_is_not_sent() {
    let (mut world, _) = plant();
    let before = world.client.namespaces().clone();
    assert!(world.client.operate_in(&before, read(1..2), world.now).is_ok());
    restart(&mut world, &[UA, "urn:plc", "urn:plant"]);
    let refused = world.client.operate_in(&before, read(1..2), world.now);
    assert_eq!(refused, Err(Misuse::NamespacesChanged.into()));
    let now = world.client.namespaces().clone();
    let handle = world.client.operate_in(&now, read(1..2), world.now).unwrap();
    assert!(world.response::<ReadResponse>(handle).is_ok());
}

#[test]
fn browse_paths_are_followed_again() {
    let mut world = World::connected();
    world.server.knobs.namespaces = vec![UA, "urn:plc", "urn:plant"];
    restart(&mut world, &[UA, "urn:plc", "urn:plant"]);
    world.server.knobs.paths = [("Temperature", NodeId::numeric(1, 51))].into();
    let handle = world.client.create_subscription(params(), world.now);
    let wanted = |client_handle, name: &'static str| {
        let target_name = QualifiedName::new(2, name);
        let elements = vec![RelativePathElement { target_name, ..Default::default() }];
        let starting_node = NodeId::numeric(0, 85);
        let path = BrowsePath { starting_node, relative_path: RelativePath { elements } };
        WantedItem { request: item(client_handle), browse_path: Some(path) }
    };
    let items = [wanted(1, "Temperature"), wanted(2, "Nowhere")];
    world.client.add_items(handle, items, world.now).unwrap();
    world.seconds(1);
    assert_eq!(nodes(&world), [(1, NodeId::numeric(1, 51))]);
    let events = world.subscription_events();
    let results: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            SubscriptionEvent::Items(results) => Some(results),
            _ => None,
        })
        .flatten()
        .map(|result| (result.client_handle, result.status))
        .collect();
    assert_eq!(results, [(2, StatusCode::BAD_NO_MATCH), (1, StatusCode::GOOD)]);
    // The restart assigns new ids, and the namespaces have moved, too.
    world.server.knobs.paths =
        [("Temperature", NodeId::numeric(1, 77)), ("Nowhere", NodeId::numeric(1, 78))].into();
    restart(&mut world, &[UA, "urn:plant"]);
    assert_eq!(nodes(&world), [(1, NodeId::numeric(1, 77)), (2, NodeId::numeric(1, 78))]);
}

#[test]
fn limits_are_read_again() {
    let mut world = Setup::default().world();
    world.server.knobs.published_max = 10;
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    assert_eq!(world.client.limits().max(OperationKind::Read), 10);
    world.server.knobs.published_max = 3;
    world.server.knobs.enforced_max = usize::MAX;
    restart(&mut world, &[UA]);
    assert_eq!(world.client.limits().max(OperationKind::Read), 3);
    world.server.knobs.published_max = 0;
    restart(&mut world, &[UA]);
    assert_eq!(world.client.limits().max(OperationKind::Read), usize::MAX);
}

/// Publish faults of any kind must not cause endless requests; when they stop, values arrive again.
#[test]
fn publish_faults_back_off() {
    for status in [
        StatusCode::BAD_INTERNAL_ERROR,
        StatusCode::BAD_TIMEOUT,
        StatusCode::BAD_SERVICE_UNSUPPORTED,
        StatusCode::BAD_SERVER_TOO_BUSY,
        StatusCode::BAD_NO_SUBSCRIPTION,
        StatusCode::BAD_TOO_MANY_PUBLISH_REQUESTS,
        StatusCode::BAD_USER_ACCESS_DENIED,
    ] {
        let mut world = World::connected();
        let (_, id) = world.subscribe(1);
        let publish = PublishRequest::BINARY_ENCODING_ID;
        world.server.knobs.always.insert(publish, status);
        world.server.change(id, 0, 1.0);
        world.seconds(1);
        let before = count(&world, publish);
        world.seconds(120);
        let asked = count(&world, publish) - before;
        assert!((4..150).contains(&asked), "{status}: {asked} in two minutes");
        world.server.knobs.always.clear();
        world.seconds(11);
        world.take_values();
        world.server.change(id, 0, 2.0);
        world.seconds(1);
        assert_eq!(world.take_values(), [2.0], "{status}");
    }
}

/// The client does not send a CreateSession for each ActivateSession that a busy server refuses.
#[test]
fn a_busy_server_keeps_the_session() {
    let mut world = World::connected();
    let (_, id) = world.subscribe(1);
    world
        .server
        .knobs
        .always
        .insert(ActivateSessionRequest::BINARY_ENCODING_ID, StatusCode::BAD_SERVER_TOO_BUSY);
    let (created, discovered) = (
        count(&world, CreateSessionRequest::BINARY_ENCODING_ID),
        count(&world, GetEndpointsRequest::BINARY_ENCODING_ID),
    );
    world.break_connection();
    world.seconds(20);
    let asked = count(&world, ActivateSessionRequest::BINARY_ENCODING_ID) - 1;
    assert!((3..20).contains(&asked), "{asked}");
    assert_eq!(count(&world, CreateSessionRequest::BINARY_ENCODING_ID), created);
    assert_eq!(count(&world, GetEndpointsRequest::BINARY_ENCODING_ID), discovered);
    world.server.knobs.always.clear();
    world.seconds(31);
    world.server.change(id, 0, 5.0);
    world.seconds(1);
    assert_eq!(world.take_values(), [5.0], "the old session and its subscription continue");
}

/// A server that refuses all sessions, and one that closes them at once.
#[test]
fn refused_sessions_back_off() {
    for (request, status) in [
        (CreateSessionRequest::BINARY_ENCODING_ID, StatusCode::BAD_SERVER_TOO_BUSY),
        (CreateSessionRequest::BINARY_ENCODING_ID, StatusCode::BAD_TOO_MANY_SESSIONS),
        (PublishRequest::BINARY_ENCODING_ID, StatusCode::BAD_SESSION_ID_INVALID),
        (PublishRequest::BINARY_ENCODING_ID, StatusCode::BAD_SESSION_CLOSED),
    ] {
        let mut world = World::connected();
        world.subscribe(1);
        world.server.knobs.always.insert(request, status);
        world.break_connection();
        world.server.restart();
        let before = world.opens;
        world.seconds(60);
        let first = world.opens - before;
        assert!((3..30).contains(&first), "{status}: {first} in a minute");
        world.seconds(60);
        let second = world.opens - before - first;
        assert!(second < first && second < 10, "{status}: {first}, then {second}");
        world.server.knobs.always.clear();
        world.seconds(61);
        assert!(world.client.is_up());
        assert!(world.server.subscriptions.len() == 1, "{status}: {:?}", world.take_events());
    }
}

/// The client repeats the creation until a busy restarted server accepts it.
#[test]
fn a_busy_server_is_asked_again_to_create_a_subscription() {
    let mut world = World::connected();
    world.subscribe(2);
    let create = CreateSubscriptionRequest::BINARY_ENCODING_ID;
    world.server.knobs.always.insert(create, StatusCode::BAD_SERVER_TOO_BUSY);
    let before = count(&world, create);
    restart(&mut world, &[UA, "urn:plc"]);
    world.seconds(60);
    let asked = count(&world, create) - before;
    assert!((3..20).contains(&asked), "{asked}");
    world.server.knobs.always.clear();
    world.seconds(31);
    assert_eq!(nodes(&world).len(), 2);
}

#[test]
fn publishing_is_switched_off_and_on() {
    let mut world = World::connected();
    let (handle, _) = world.subscribe(1);
    world.take_events();
    for enabled in [false, true] {
        assert_eq!(world.client.set_publishing_mode(handle, enabled, world.now), Ok(true));
        world.settle();
        assert_eq!(world.subscription_events(), [SubscriptionEvent::PublishingModeSet(enabled)]);
    }
}
