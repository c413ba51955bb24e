//! Model change events and NodeVersions (Part 3 §9.32).

use super::events::{filter, next, watching};
use super::node_management::{add_all, add_one, delete, double, object, refer, reference, server, unrefer};
use super::*;
use crate::ModelChangeEvents;
use crate::authorization::Access;
use crate::space::NodeSpec;
use crate::space::build::Under;
use schema::ids::{data_type_ids, object_ids, object_type_ids, reference_type_ids as r, variable_type_ids};
use schema::{
    AddNodesItem, ModelChangeStructureDataType, ModelChangeStructureVerbMask as Verb, NodeAttributesMask,
    PermissionType, VariableAttributes,
};
use taktwerk_types::{ArrayValues, ExtensionObject, QualifiedName, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const LINE: NodeId = NodeId::numeric(1, 10);
const VERSION: NodeId = NodeId::numeric(1, 11);
const FOLDER: NodeId = NodeId::numeric(0, object_type_ids::FOLDER_TYPE);

fn version(id: NodeId, parent: NodeId, value: &str) -> AddNodesItem {
    let attributes = VariableAttributes {
        specified_attributes: (NodeAttributesMask::VALUE.0
            | NodeAttributesMask::DATA_TYPE.0
            | NodeAttributesMask::VALUE_RANK.0) as u32,
        value: value.into(),
        data_type: data_type_ids::STRING.into(),
        value_rank: -1,
        ..Default::default()
    };
    AddNodesItem {
        reference_type_id: r::HAS_PROPERTY.into(),
        browse_name: QualifiedName::new(0, "NodeVersion"),
        node_attributes: ExtensionObject::new(&attributes),
        type_definition: NodeId::numeric(0, variable_type_ids::PROPERTY_TYPE).into(),
        ..double(id, parent, "", 0.0)
    }
}

/// A server with a line that has a NodeVersion, and a client that monitors model changes.
fn line() -> (Server, Client) {
    let mut server = server();
    let (mut client, ..) = watching(&mut server, SERVER, &filter(&["EventType", "SourceNode", "Changes"]));
    let nodes = vec![object(LINE, "Line"), version(VERSION, LINE, "7")];
    for result in add_all(&mut client, &mut server, nodes) {
        assert_eq!(result.status_code, StatusCode::GOOD);
    }
    (server, client)
}

fn version_of(server: &Server, property: &NodeId) -> Option<Variant> {
    server.space.variable(property).unwrap().get().value
}

/// The received events: affected node, its type, and verb; `None` for an event without details.
fn seen(client: &mut Client, server: &mut Server) -> Vec<Option<Vec<(NodeId, NodeId, u8)>>> {
    let events = next(client, server).into_iter().map(|(_, fields)| {
        let [Variant::NodeId(kind), Variant::NodeId(source), changes] = fields.as_slice() else {
            panic!("{fields:?}")
        };
        assert_eq!(**source, SERVER);
        match (kind.ns0().unwrap(), changes) {
            (object_type_ids::GENERAL_MODEL_CHANGE_EVENT_TYPE, Variant::Array(array)) => {
                let ArrayValues::ExtensionObject(changes) = &array.values else { panic!("{array:?}") };
                let changes = changes.iter().map(|change| {
                    let change = change.decode::<ModelChangeStructureDataType>().unwrap();
                    (change.affected, change.affected_type, change.verb)
                });
                Some(changes.collect())
            }
            (object_type_ids::BASE_MODEL_CHANGE_EVENT_TYPE, Variant::Empty) => None,
            other => panic!("{other:?}"),
        }
    });
    events.collect()
}

fn bits(verbs: &[Verb]) -> u8 {
    verbs.iter().fold(0, |bits, verb| bits | verb.0 as u8)
}

#[test]
fn changes_of_one_request_give_one_event_and_one_version() {
    let (mut server, mut client) = line();
    // The line has got its NodeVersion.
    let added = bits(&[Verb::REFERENCE_ADDED]);
    assert_eq!(seen(&mut client, &mut server), [Some(vec![(LINE, FOLDER, added)])]);
    assert_eq!(version_of(&server, &VERSION), Some("8".into()));
    let nodes =
        (0..20).map(|at| double(NodeId::numeric(1, 100 + at), LINE, &format!("V{at}"), 1.0)).collect();
    add_all(&mut client, &mut server, nodes);
    assert_eq!(seen(&mut client, &mut server), [Some(vec![(LINE, FOLDER, added)])]);
    assert_eq!(version_of(&server, &VERSION), Some("9".into()));
    delete(&mut client, &mut server, &[NodeId::numeric(1, 100), NodeId::numeric(1, 101)]);
    let deleted = bits(&[Verb::REFERENCE_DELETED]);
    assert_eq!(seen(&mut client, &mut server), [Some(vec![(LINE, FOLDER, deleted)])]);
    assert_eq!(version_of(&server, &VERSION), Some("10".into()));
}

#[test]
fn the_brief_form_lists_no_nodes_and_versions_always_change() {
    let (mut server, mut client) = line();
    seen(&mut client, &mut server);
    for (events, expected) in [(ModelChangeEvents::Brief, vec![None]), (ModelChangeEvents::Off, vec![])] {
        server.space.events().set_model_changes(events);
        let (before, node) = (version_of(&server, &VERSION), NodeId::numeric(1, 90 + expected.len() as u32));
        add_one(&mut client, &mut server, double(node, LINE, &format!("{events:?}"), 1.0));
        assert_eq!(seen(&mut client, &mut server), expected);
        assert_ne!(version_of(&server, &VERSION), before);
    }
}

#[test]
fn too_many_changes_are_reported_in_brief() {
    let (mut server, mut client) = line();
    seen(&mut client, &mut server);
    let (count, component, has_property) =
        (16 * 1_000 + 1, NodeId::numeric(0, r::HAS_COMPONENT), NodeId::numeric(0, r::HAS_PROPERTY));
    let add = |spec: NodeSpec, parent: &NodeId, reference_type: &NodeId| {
        let under = Under { parent, reference_type, type_definition: None };
        server.space.add_node(spec, under, server.now.utc).unwrap();
    };
    server.space.events().set_model_changes(ModelChangeEvents::Off);
    let ids: Vec<NodeId> = (0..count).map(|number| NodeId::numeric(1, 100_000 + number)).collect();
    for (number, id) in (0..).zip(&ids) {
        add(NodeSpec::object(id.clone(), QualifiedName::new(1, format!("N{number}"))), &LINE, &component);
        let its_version = NodeId::numeric(1, 200_000 + number);
        let name = QualifiedName::new(0, "NodeVersion");
        let spec = NodeSpec::variable(its_version, name, data_type_ids::STRING.into(), Some("1".into()));
        add(spec, id, &has_property);
    }
    server.space.events().set_model_changes(ModelChangeEvents::Full);
    server.space.delete_nodes(&ids);
    server.space.raise_model_changes(server.now.utc);
    assert_eq!(seen(&mut client, &mut server), [None]);
}

#[test]
fn references_change_both_of_their_ends() {
    let (mut server, mut client) = line();
    let (other, its_version) = (NodeId::numeric(1, 20), NodeId::numeric(1, 21));
    let nodes = vec![object(other.clone(), "Other"), version(its_version.clone(), other.clone(), "first")];
    add_all(&mut client, &mut server, nodes);
    seen(&mut client, &mut server);
    let both = |verb: Verb| {
        let verb = bits(&[verb]);
        [Some(vec![(LINE, FOLDER, verb), (other.clone(), FOLDER, verb)])]
    };
    let organizes = reference(LINE, r::ORGANIZES, other.clone());
    assert_eq!(refer(&mut client, &mut server, organizes), StatusCode::GOOD);
    assert_eq!(seen(&mut client, &mut server), both(Verb::REFERENCE_ADDED));
    assert_eq!(version_of(&server, &its_version), Some("2".into()), "a text is not a number");
    let status = unrefer(&mut client, &mut server, LINE, r::ORGANIZES, other.clone());
    assert_eq!(status, StatusCode::GOOD);
    assert_eq!(seen(&mut client, &mut server), both(Verb::REFERENCE_DELETED));
}

#[test]
fn a_deleted_node_is_reported_and_its_version_deleted() {
    let (mut server, mut client) = line();
    seen(&mut client, &mut server);
    assert_eq!(delete(&mut client, &mut server, &[LINE]), [StatusCode::GOOD]);
    let deleted = bits(&[Verb::NODE_DELETED]);
    assert_eq!(seen(&mut client, &mut server), [Some(vec![(LINE, FOLDER, deleted)])]);
    assert!(!server.space.contains(&VERSION));
}

#[test]
fn changes_of_a_node_without_a_version_are_not_reported() {
    let (mut server, mut client) = line();
    seen(&mut client, &mut server);
    let quiet = NodeId::numeric(1, 30);
    add_one(&mut client, &mut server, object(quiet.clone(), "Quiet"));
    add_one(&mut client, &mut server, double(NodeId::numeric(1, 31), quiet, "V", 1.0));
    assert!(seen(&mut client, &mut server).is_empty());
    // The line loses its NodeVersion.
    assert_eq!(delete(&mut client, &mut server, &[VERSION]), [StatusCode::GOOD]);
    add_one(&mut client, &mut server, double(NodeId::numeric(1, 32), LINE, "V", 1.0));
    assert!(seen(&mut client, &mut server).is_empty());
}

#[test]
fn hidden_nodes_are_not_listed() {
    let (mut server, mut client) = line();
    seen(&mut client, &mut server);
    let nobody = Access::roles([(NodeId::numeric(0, 15704), PermissionType::BROWSE)]);
    server.space.set_access(&LINE, nobody).unwrap();
    let spec = crate::space::NodeSpec::object(NodeId::numeric(1, 40), QualifiedName::new(1, "Secret"));
    let under = crate::space::build::Under {
        parent: &LINE,
        reference_type: &NodeId::numeric(0, r::HAS_COMPONENT),
        type_definition: None,
    };
    server.space.add_node(spec, under, server.now.utc).unwrap();
    assert_eq!(seen(&mut client, &mut server), [None]);
    assert_eq!(version_of(&server, &VERSION), Some("9".into()));
}

#[test]
fn instances_of_a_type_with_a_version_are_added_not_changed() {
    let (mut server, mut client) = line();
    seen(&mut client, &mut server);
    // A type whose instances have a NodeVersion; the type itself has none.
    let kind = NodeId::numeric(1, 50);
    let node = AddNodesItem {
        parent_node_id: NodeId::numeric(0, object_type_ids::BASE_OBJECT_TYPE).into(),
        reference_type_id: r::HAS_SUBTYPE.into(),
        node_class: schema::NodeClass::OBJECT_TYPE,
        type_definition: Default::default(),
        ..object(kind.clone(), "MachineType")
    };
    let declaration = NodeId::numeric(1, 51);
    add_all(&mut client, &mut server, vec![node, version(declaration.clone(), kind.clone(), "1")]);
    let mandatory = NodeId::numeric(0, object_ids::MODELLING_RULE_MANDATORY);
    let rule = reference(declaration, r::HAS_MODELLING_RULE, mandatory);
    assert_eq!(refer(&mut client, &mut server, rule), StatusCode::GOOD);
    seen(&mut client, &mut server);
    let machine = NodeId::numeric(1, 60);
    let node = AddNodesItem { type_definition: kind.clone().into(), ..object(machine.clone(), "Machine") };
    assert_eq!(add_one(&mut client, &mut server, node).status_code, StatusCode::GOOD);
    let added = bits(&[Verb::NODE_ADDED]);
    assert_eq!(seen(&mut client, &mut server), [Some(vec![(machine, kind, added)])]);
}
