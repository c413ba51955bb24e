//! Annotations Properties, and what the server announces about history (Part 11 §5).

use super::attribute::{add, read as read_attribute, variable};
use super::history::{all_of, raw, time};
use super::*;
use crate::authorization::Access;
use crate::history::{
    HistoryStore, HistoryValue, MemoryStore, NodeHistory, NodeKey, Order, ReadLimit, Rule, Span, StoreError,
};
use crate::space::build::Under;
use crate::space::events::{HISTORY_READ, SUBSCRIBE_TO_EVENTS};
use crate::space::{AddressSpace, NodeSpec};
use core::time::Duration;
use schema::ids::{object_ids, object_type_ids, reference_type_ids, variable_ids as v};
use schema::{Annotation, EventFilter, HistoryUpdateRequest, PerformUpdateType, UpdateStructureDataDetails};
use taktwerk_types::{BuiltInType, DataValue, ExtensionObject, QualifiedName, Variant};

/// A source that can only be read, such as the history of a device.
#[derive(Debug)]
struct Device;

impl HistoryStore for Device {
    fn read(
        &self,
        _: &NodeKey,
        _: Span,
        _: Order,
        _: ReadLimit,
        _: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

fn historize(server: &Server, number: u32, store: Arc<dyn HistoryStore>, writable: bool) -> NodeId {
    add(server, variable(number, BuiltInType::Double, 1.0));
    let id = NodeId::numeric(1, number);
    let history = NodeHistory::new(store, server.space.node_key(&id));
    server.space.set_history(&id, history, writable, false, server.now.utc).unwrap();
    id
}

fn child(space: &AddressSpace, parent: &NodeId, name: &str) -> Option<NodeId> {
    space.child(parent, &QualifiedName::new(0, name))
}

/// The value of a Property or component.
fn value(server: &mut Server, client: &mut Client, parent: &NodeId, names: &[&str]) -> Option<Variant> {
    let mut at = parent.clone();
    for name in names {
        at = child(&server.space, &at, name)?;
    }
    read_attribute(client, server, at, 13).value
}

fn annotate(server: &mut Server, client: &mut Client, node_id: &NodeId, times: &[i64]) -> Vec<StatusCode> {
    let annotation = Annotation { message: "note".into(), user_name: "ann".into(), annotation_time: time(1) };
    let value = |at: &i64| DataValue {
        value: Some(Variant::from_structure(&annotation)),
        source_timestamp: Some(time(*at)),
        ..DataValue::default()
    };
    let details = UpdateStructureDataDetails {
        node_id: node_id.clone(),
        perform_insert_replace: PerformUpdateType::INSERT,
        update_values: times.iter().map(value).collect(),
    };
    let request = HistoryUpdateRequest {
        request_header: client.header(),
        history_update_details: vec![ExtensionObject::new(&details)],
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    if result.status_code.is_bad() { vec![result.status_code] } else { result.operation_results }
}

const CAPABILITIES: [u32; 7] = [
    v::HISTORY_SERVER_CAPABILITIES_ACCESS_HISTORY_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_INSERT_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_REPLACE_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_UPDATE_DATA_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_DELETE_RAW_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_DELETE_AT_TIME_CAPABILITY,
    v::HISTORY_SERVER_CAPABILITIES_INSERT_ANNOTATION_CAPABILITY,
];

fn announced(server: &mut Server, client: &mut Client) -> Vec<bool> {
    let mut read = |id| read_attribute(client, server, NodeId::numeric(0, id), 13).value;
    CAPABILITIES.into_iter().map(|id| read(id) == Some(true.into())).collect()
}

/// Only what at least one node can do is announced.
#[test]
fn capabilities_are_those_of_the_nodes() {
    let mut server = Server::new();
    let mut client = server.session();
    assert_eq!(announced(&mut server, &mut client), [false; 7]);
    let memory: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new(10));
    let fixed = historize(&server, 1, Arc::clone(&memory), false);
    let device = historize(&server, 2, Arc::new(Device), true);
    let only_read = [true, false, false, false, false, false, false];
    assert_eq!(announced(&mut server, &mut client), only_read);
    for id in [fixed, device] {
        let level = read_attribute(&mut client, &mut server, id.clone(), 17).value;
        assert_eq!(level, Some(0b0000_0111u8.into()), "no HistoryWrite");
        assert_eq!(child(&server.space, &id, "Annotations"), None);
    }
    let level = historize(&server, 3, memory, true);
    assert_eq!(announced(&mut server, &mut client), [true; 7]);
    let property = child(&server.space, &level, "Annotations").unwrap();
    assert_eq!(read_attribute(&mut client, &mut server, property.clone(), 17).value, Some(12u8.into()));
    let data_type = read_attribute(&mut client, &mut server, property, 14).value;
    assert_eq!(data_type, Some(NodeId::numeric(0, 891).into()));
}

/// ReadRaw of the Property in pages, in both directions, and for several annotations of one time.
#[test]
fn annotations_are_raw_data_of_their_property() {
    let mut server = Server::new();
    let store = Arc::new(MemoryStore::new(1_000));
    let level = historize(&server, 1, Arc::clone(&store) as _, true);
    let mut client = server.session();
    let property = child(&server.space, &level, "Annotations").unwrap();
    let good = StatusCode::GOOD_ENTRY_INSERTED;
    assert_eq!(annotate(&mut server, &mut client, &property, &[10, 20, 30]), [good; 3]);
    // Also through the Variable.
    assert_eq!(annotate(&mut server, &mut client, &level, &[40]), [good]);
    let mut check = |start, end, count, expected: &[i64]| {
        let details = raw(start, end, count, false);
        assert_eq!(all_of(&mut server, &mut client, &property, &details).0, expected, "{details:?}");
    };
    for page in [0, 1, 2, 3] {
        check(Some(10), Some(40), page, &[10, 20, 30]);
        check(Some(40), Some(10), page, &[40, 30, 20]);
        check(Some(20), Some(20), page, &[20]);
    }
    check(Some(15), None, 2, &[20, 30]);
    check(None, Some(35), 2, &[30, 20]);
    check(Some(41), Some(50), 0, &[]);
    // Values and annotations are separate.
    assert_eq!(all_of(&mut server, &mut client, &level, &raw(Some(0), Some(99), 0, false)).0, []);
}

/// A response holds fewer annotations than asked for. None is lost or repeated.
#[test]
fn many_annotations_are_returned_in_several_responses() {
    let mut server = Server::with(|config| config.limits.response_len_max = 16 << 10);
    let level = historize(&server, 1, Arc::new(MemoryStore::new(10_000)), true);
    let mut client = server.session();
    let property = child(&server.space, &level, "Annotations").unwrap();
    let times: Vec<i64> = (1..=1_000).collect();
    for part in times.chunks(100) {
        annotate(&mut server, &mut client, &property, part);
    }
    let (found, pages) = all_of(&mut server, &mut client, &property, &raw(Some(0), Some(2_000), 0, false));
    assert!(found == times && pages > 3, "{} in {pages} pages", found.len());
}

/// Permissions of the Variable apply to its annotations, and the Property goes with the Variable.
#[test]
fn the_property_belongs_to_its_variable() {
    let mut server = Server::new();
    let level = historize(&server, 1, Arc::new(MemoryStore::new(10)), true);
    let property = child(&server.space, &level, "Annotations").unwrap();
    let mut client = server.session();
    let good = StatusCode::GOOD_ENTRY_INSERTED;
    assert_eq!(annotate(&mut server, &mut client, &property, &[1]), [good]);
    let nobody = Access { role_permissions: Some(vec![]), ..Access::default() };
    server.space.set_access(&level, nobody).unwrap();
    let refused = annotate(&mut server, &mut client, &property, &[2]);
    assert!(refused[0].is_bad() && refused[0] != good, "{refused:?}");
    server.space.delete_node(&level).unwrap();
    assert!(!server.space.contains(&property));
    let again = historize(&server, 1, Arc::new(MemoryStore::new(10)), true);
    assert_eq!(child(&server.space, &again, "Annotations"), Some(property));
}

/// Part 11 §5.2.2: the configuration shows the recording rule, and follows it.
#[test]
fn the_configuration_shows_the_rule() {
    let mut server = Server::new();
    server.space.set_history_store(Arc::new(MemoryStore::new(500)));
    for number in [1, 2, 3] {
        add(&server, variable(number, BuiltInType::Double, 1.0));
    }
    let rule = Rule { deadband: 0.5, interval: Duration::from_secs(2), on_change: false };
    let utc = server.now.utc;
    let historize = |server: &Server, number, rule| {
        let id = NodeId::numeric(1, number);
        server.space.historize(&id, false, rule, utc).unwrap();
        id
    };
    let with_rule = historize(&server, 1, rule);
    let every = historize(&server, 2, Rule::default());
    let same = historize(&server, 3, rule);
    let mut client = server.session();
    let name = "HA Configuration";
    let configuration = |server: &Server, id: &NodeId| child(&server.space, id, name).unwrap();
    let first = configuration(&server, &with_rule);
    let mut shown = |id: &NodeId, property| value(&mut server, &mut client, id, &[name, property]);
    assert_eq!(shown(&with_rule, "ExceptionDeviation"), Some(0.5.into()));
    assert_eq!(shown(&with_rule, "ExceptionDeviationFormat"), Some(0i32.into()));
    assert_eq!(shown(&with_rule, "MinTimeInterval"), Some(2_000.0.into()));
    assert_eq!(shown(&with_rule, "MaxCountStoredValues"), Some(500u32.into()));
    assert_eq!(shown(&with_rule, "Stepped"), Some(false.into()));
    for absent in ["ExceptionDeviation", "ExceptionDeviationFormat", "MinTimeInterval"] {
        assert_eq!(shown(&every, absent), None);
    }
    assert_eq!(shown(&every, "MaxCountStoredValues"), Some(500u32.into()));
    assert_eq!(configuration(&server, &same), first, "it is shared");
    historize(&server, 1, Rule::default());
    assert_eq!(configuration(&server, &with_rule), configuration(&server, &every), "the rule has changed");
}

/// Part 11 §5.4.2, §5.4.3: every Object with recorded events shows what is recorded, also if it is added later.
#[test]
fn objects_with_recorded_events_show_what_is_recorded() {
    let mut server = Server::new();
    let mut client = server.session();
    server.space.set_history_store(Arc::new(MemoryStore::new(500)));
    let object = |server: &Server, name: &str, bits| {
        let id = NodeId::string(1, name);
        let spec = NodeSpec::object(id.clone(), QualifiedName::new(1, name)).event_notifier(bits);
        let under = Under {
            parent: &object_ids::OBJECTS_FOLDER.into(),
            reference_type: &reference_type_ids::HAS_COMPONENT.into(),
            type_definition: Some(&object_type_ids::BASE_OBJECT_TYPE.into()),
        };
        server.space.add_node(spec, under, server.now.utc).unwrap();
        id
    };
    let before = object(&server, "before", SUBSCRIBE_TO_EVENTS);
    let silent = object(&server, "silent", 0);
    let own: NodeId = object_ids::SERVER.into();
    assert_eq!(child(&server.space, &own, "HistoricalEventFilter"), None);
    server.space.historize_events(false, server.now.utc).unwrap();
    // A second call, such as after the configuration was loaded again, changes nothing.
    server.space.historize_events(false, server.now.utc).unwrap();
    let later = object(&server, "later", SUBSCRIBE_TO_EVENTS);
    for id in [&own, &before, &later] {
        let notifier = read_attribute(&mut client, &mut server, id.clone(), 12).value;
        assert_eq!(notifier, Some((SUBSCRIBE_TO_EVENTS | HISTORY_READ).into()));
        let filter = value(&mut server, &mut client, id, &["HistoricalEventFilter"]);
        let Some(Variant::ExtensionObject(filter)) = filter else { panic!("{filter:?}") };
        let filter: EventFilter = filter.decode().unwrap();
        let names: Vec<_> =
            filter.select_clauses.iter().map(|clause| clause.browse_path[0].name.as_str()).collect();
        assert!(names.contains(&"EventId") && names.contains(&"Severity"), "{names:?}");
        assert!(filter.where_clause.elements.is_empty());
        let configuration = child(&server.space, id, "HE Configuration").unwrap();
        let types = child(&server.space, &configuration, "EventTypes").unwrap();
        let base = child(&server.space, &types, "BaseEventType");
        assert_eq!(base, Some(object_type_ids::BASE_EVENT_TYPE.into()));
    }
    assert_eq!(child(&server.space, &silent, "HistoricalEventFilter"), None);
}

#[test]
fn the_property_of_a_clients_variable_is_one_of_its_nodes() {
    use super::node_management::{add_one, delete, double};
    let mut server = Server::with(|config| {
        config.node_management = true;
        config.limits.added_nodes_max = 3;
    });
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new(10));
    let mut client = server.session();
    let mut recorded = |server: &mut Server, name: &str| {
        let id = NodeId::string(1, name);
        let node = double(id.clone(), object_ids::OBJECTS_FOLDER, name, 1.0);
        let status = add_one(&mut client, server, node).status_code;
        if status.is_good() {
            let history = NodeHistory::new(Arc::clone(&store), server.space.node_key(&id));
            server.space.set_history(&id, history, true, false, server.now.utc).unwrap();
        }
        (status, child(&server.space, &id, "Annotations").is_some())
    };
    assert_eq!(recorded(&mut server, "a"), (StatusCode::GOOD, true));
    // The limit is reached: it is recorded without annotations.
    assert_eq!(recorded(&mut server, "b"), (StatusCode::GOOD, false));
    assert_eq!(recorded(&mut server, "c").0, StatusCode::BAD_RESOURCE_UNAVAILABLE);
    assert_eq!(delete(&mut client, &mut server, &[NodeId::string(1, "a")]), [StatusCode::GOOD]);
    let mut again = |name: &str| {
        let node = double(NodeId::string(1, name), object_ids::OBJECTS_FOLDER, name, 1.0);
        add_one(&mut client, &mut server, node).status_code
    };
    assert_eq!([again("d"), again("e"), again("f")].map(|status| status.is_good()), [true, true, false]);
}
