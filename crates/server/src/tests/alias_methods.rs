//! Clients that change alias categories (Part 17 §6.3.4, §6.3.5).

use super::aliases::{ALIASES, TAGS, find, id, last_change};
use super::attribute::{add, variable};
use super::node_management::{add_one, expanded, refer, reference};
use super::*;
use crate::callback::{CallContext, MethodCall, MethodHandler};
use crate::space::AddressSpace;
use schema::ids::{method_ids as m, reference_type_ids as r};
use schema::{CallMethodRequest, CallRequest};
use std::sync::{Arc, Weak};
use taktwerk_types::{ArrayValues, BuiltInType, ExpandedNodeId, QualifiedName, UaString, Variant};

const OWN: &str = "urn:test:own";

/// The methods, at a fixed time.
struct Method(Weak<AddressSpace>, bool, UtcTime);

impl MethodHandler for Method {
    fn call(&self, caller: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let space = self.0.upgrade().unwrap();
        MethodCall::Now(match self.1 {
            true => space.add_aliases_for(caller, inputs, OWN, self.2),
            false => space.delete_aliases_for(caller, inputs, self.2),
        })
    }
}

/// A server with the Variables 1 to 3, whose clients may change aliases.
fn plant() -> (Server, Client) {
    let mut server = Server::with(|config| config.node_management = true);
    for number in 1..=3 {
        add(&server, variable(number, BuiltInType::Double, 1.5));
    }
    let handler = |is_add| Arc::new(Method(Arc::downgrade(&server.space), is_add, server.now.utc)) as _;
    server.space.set_alias_methods(handler(true), handler(false));
    let client = server.session();
    (server, client)
}

/// Calls a method of a category. Returns the status of each alias.
fn call(
    client: &mut Client,
    server: &mut Server,
    category: &NodeId,
    method: u32,
    inputs: Vec<Variant>,
) -> Result<Vec<StatusCode>, StatusCode> {
    let request = CallRequest {
        request_header: client.header(),
        methods_to_call: vec![CallMethodRequest {
            object_id: category.clone(),
            method_id: NodeId::numeric(0, method),
            input_arguments: inputs,
        }],
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    if result.status_code.is_bad() {
        return Err(result.status_code);
    }
    let Variant::Array(array) = &result.output_arguments[0] else { panic!("{result:?}") };
    let ArrayValues::StatusCode(codes) = &array.values else { panic!("{array:?}") };
    Ok(codes.clone())
}

fn arrays(items: &[(&str, NodeId)]) -> Vec<Variant> {
    let names: Vec<UaString> = items.iter().map(|(name, _)| UaString::from(*name)).collect();
    let targets: Vec<ExpandedNodeId> = items.iter().map(|(_, id)| ExpandedNodeId::from(id.clone())).collect();
    vec![names.into(), targets.into()]
}

fn add_to(
    client: &mut Client,
    server: &mut Server,
    items: &[(&str, NodeId)],
    servers: Vec<UaString>,
    kind: NodeId,
) -> Result<Vec<StatusCode>, StatusCode> {
    add_in(client, server, &TAGS, items, servers, kind)
}

fn add_in(
    client: &mut Client,
    server: &mut Server,
    category: &NodeId,
    items: &[(&str, NodeId)],
    servers: Vec<UaString>,
    kind: NodeId,
) -> Result<Vec<StatusCode>, StatusCode> {
    let mut inputs = arrays(items);
    inputs.extend([servers.into(), kind.into()]);
    call(client, server, category, m::ALIAS_NAME_CATEGORY_TYPE_ADD_ALIASES_TO_CATEGORY, inputs)
}

fn delete_from(
    client: &mut Client,
    server: &mut Server,
    items: &[(&str, NodeId)],
) -> Result<Vec<StatusCode>, StatusCode> {
    delete_in(client, server, &TAGS, items)
}

fn delete_in(
    client: &mut Client,
    server: &mut Server,
    category: &NodeId,
    items: &[(&str, NodeId)],
) -> Result<Vec<StatusCode>, StatusCode> {
    call(client, server, category, m::ALIAS_NAME_CATEGORY_TYPE_DELETE_ALIASES_FROM_CATEGORY, arrays(items))
}

const GOOD: StatusCode = StatusCode::GOOD;

#[test]
fn clients_add_and_delete_aliases() {
    let (mut server, mut client) = plant();
    let nodes = server.space.node_count();
    let items = [("A", id(1)), ("B", id(2)), ("A", id(3))];
    let added = add_to(&mut client, &mut server, &items, Vec::new(), NodeId::NULL);
    assert_eq!(added, Ok(vec![GOOD; 3]));
    assert_eq!(server.space.node_count(), nodes + 2);
    let all = |client: &mut Client, server: &mut Server| {
        let mut found = find(client, server, ALIASES, "%", NodeId::NULL).unwrap();
        found.sort();
        found
    };
    let a = |targets: &[u32]| ("A".to_owned(), targets.iter().copied().map(id).collect::<Vec<_>>());
    let b = || ("B".to_owned(), vec![id(2)]);
    assert_eq!(all(&mut client, &mut server), [a(&[1, 3]), b()]);
    // One target; then the last one, which takes the alias with it; then all targets of another one.
    assert_eq!(delete_from(&mut client, &mut server, &[("A", id(1))]), Ok(vec![GOOD]));
    assert_eq!(all(&mut client, &mut server), [a(&[3]), b()]);
    let gone = [("A", id(3)), ("B", NodeId::NULL), ("B", NodeId::NULL)];
    assert_eq!(delete_from(&mut client, &mut server, &gone), Ok(vec![GOOD, GOOD, StatusCode::BAD_NOT_FOUND]));
    assert_eq!((all(&mut client, &mut server), server.space.node_count()), (Vec::new(), nodes));
    assert!(!server.is_over(Category::AddedNodes), "nothing is charged any more");
}

#[test]
fn each_alias_has_its_own_status() {
    let (mut server, mut client) = plant();
    server.space.add_alias(&TAGS, "OWN", &id(1), server.now.utc).unwrap();
    let long = "x".repeat(513);
    let items = [("A", id(1)), ("A", id(1)), ("", id(1)), (&*long, id(1)), ("B", id(99)), ("OWN", id(2))];
    let expected = [
        GOOD,
        StatusCode::BAD_DUPLICATE_REFERENCE_NOT_ALLOWED,
        StatusCode::BAD_BROWSE_NAME_INVALID,
        StatusCode::BAD_BROWSE_NAME_INVALID,
        StatusCode::BAD_NODE_ID_UNKNOWN,
        GOOD,
    ];
    let added = add_to(&mut client, &mut server, &items, Vec::new(), NodeId::NULL);
    assert_eq!(added, Ok(expected.to_vec()));
    // Nodes of this server only.
    let servers = ["", OWN, "urn:other"].map(UaString::from).to_vec();
    let items = [("C", id(1)), ("D", id(1)), ("E", id(1))];
    let added = add_to(&mut client, &mut server, &items, servers, NodeId::NULL);
    assert_eq!(added, Ok(vec![GOOD, GOOD, StatusCode::BAD_REFERENCE_LOCAL_ONLY]));
    // The application's alias stays; its second target came from a client.
    let deleted = delete_from(&mut client, &mut server, &[("OWN", NodeId::NULL), ("C", id(2)), ("C", id(1))]);
    assert_eq!(deleted, Ok(vec![StatusCode::BAD_NO_DELETE_RIGHTS, StatusCode::BAD_NOT_FOUND, GOOD]));
    // Wrong calls.
    let mut wrong = |items: &[(&str, NodeId)], servers: Vec<UaString>, kind: NodeId| {
        add_to(&mut client, &mut server, items, servers, kind).unwrap_err()
    };
    assert_eq!(wrong(&[], Vec::new(), NodeId::NULL), StatusCode::BAD_INVALID_ARGUMENT);
    let two = vec![UaString::NULL, UaString::NULL];
    assert_eq!(wrong(&[("F", id(1))], two, NodeId::NULL), StatusCode::BAD_INVALID_ARGUMENT);
    for kind in [id(1), NodeId::numeric(0, 35), NodeId::numeric(0, 9_999_999)] {
        let refused = wrong(&[("F", id(1))], Vec::new(), kind);
        assert_eq!(refused, StatusCode::BAD_REFERENCE_TYPE_ID_INVALID);
    }
    let many: Vec<(&str, NodeId)> = (0..1001).map(|_| ("F", id(1))).collect();
    assert_eq!(wrong(&many, Vec::new(), NodeId::NULL), StatusCode::BAD_TOO_MANY_OPERATIONS);
}

#[test]
fn strangers_change_no_aliases() {
    use crate::authorization::{Access, role::well_known};
    use schema::PermissionType;
    let (mut server, mut client) = plant();
    let items = [("A", id(1))];
    assert_eq!(add_to(&mut client, &mut server, &items, Vec::new(), NodeId::NULL), Ok(vec![GOOD]));
    // The target may be seen, but not referred to.
    let seen = PermissionType::BROWSE | PermissionType::READ;
    server.space.set_access(&id(2), Access::roles([(well_known::ANONYMOUS.into(), seen)])).unwrap();
    let nobody: Vec<(NodeId, PermissionType)> = Vec::new();
    server.space.set_access(&id(3), Access::roles(nobody)).unwrap();
    let items = [("B", id(2)), ("B", id(3))];
    let added = add_to(&mut client, &mut server, &items, Vec::new(), NodeId::NULL);
    assert_eq!(added, Ok(vec![StatusCode::BAD_USER_ACCESS_DENIED, StatusCode::BAD_NODE_ID_UNKNOWN]));
    let alias = find(&mut client, &mut server, TAGS, "A", NodeId::NULL).unwrap();
    assert_eq!(alias.len(), 1);
}

/// The names and targets in a category.
fn found(client: &mut Client, server: &mut Server, category: &NodeId) -> Vec<(String, Vec<NodeId>)> {
    let mut found = find(client, server, category.clone(), "%", NodeId::NULL).unwrap();
    found.sort();
    found
}

/// One alias can be in several categories (Part 17 §9.3).
#[test]
fn an_alias_stays_in_its_other_categories() {
    let (mut server, mut client) = plant();
    let now = server.now.utc;
    let line = server.space.add_alias_category(&ALIASES, "Line", now).unwrap();
    let cell = server.space.add_alias_category(&ALIASES, "Cell", now).unwrap();
    let items = [("A", id(1)), ("A", id(2))];
    assert_eq!(add_to(&mut client, &mut server, &items, Vec::new(), NodeId::NULL), Ok(vec![GOOD; 2]));
    let alias = server.space.child(&TAGS, &QualifiedName::new(1, "A")).unwrap();
    server.space.add_reference(&line, &r::ORGANIZES.into(), &alias).unwrap();
    let all = vec![("A".to_owned(), vec![id(1), id(2)])];
    assert_eq!(found(&mut client, &mut server, &line), all);
    // The other category would lose the target.
    let refused = delete_in(&mut client, &mut server, &line, &[("A", id(1))]);
    assert_eq!(refused, Ok(vec![StatusCode::BAD_INVALID_STATE]));
    assert_eq!(delete_in(&mut client, &mut server, &line, &[("A", NodeId::NULL)]), Ok(vec![GOOD]));
    assert_eq!(found(&mut client, &mut server, &line), []);
    assert_eq!(found(&mut client, &mut server, &TAGS), all);
    // A client cannot take the application's alias out of the application's category, but out of its own one.
    server.space.add_alias(&line, "OWN", &id(1), now).unwrap();
    let own = server.space.child(&line, &QualifiedName::new(1, "OWN")).unwrap();
    let item = reference(cell.clone(), r::ORGANIZES, own);
    assert_eq!(refer(&mut client, &mut server, item), GOOD);
    let refused = delete_in(&mut client, &mut server, &line, &[("OWN", NodeId::NULL)]);
    assert_eq!(refused, Ok(vec![StatusCode::BAD_NO_DELETE_RIGHTS]));
    assert_eq!(delete_in(&mut client, &mut server, &cell, &[("OWN", NodeId::NULL)]), Ok(vec![GOOD]));
    assert_eq!(found(&mut client, &mut server, &line), [("OWN".to_owned(), vec![id(1)])]);
}

/// TagVariables has aliases of Variables, Topics those of PublishedDataSets (Part 17 §9.3, §9.4).
#[test]
fn categories_restrict_the_targets() {
    let (mut server, mut client) = plant();
    let now = server.now.utc;
    let below = server.space.add_alias_category(&TAGS, "Line", now).unwrap();
    let topics = NodeId::numeric(0, schema::ids::object_ids::TOPICS);
    let object = NodeId::string(1, "object");
    let item = super::node_management::object(object.clone(), "object");
    assert_eq!(add_one(&mut client, &mut server, item).status_code, GOOD);
    let data_set = NodeId::string(1, "data set");
    let item = schema::AddNodesItem {
        type_definition: expanded(schema::ids::object_type_ids::PUBLISHED_DATA_ITEMS_TYPE),
        ..super::node_management::object(data_set.clone(), "data set")
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, GOOD);
    let refused = StatusCode::BAD_REFERENCE_NOT_ALLOWED;
    for (category, target, expected) in [
        (&TAGS, &object, refused),
        (&below, &object, refused),
        (&below, &id(1), GOOD),
        (&topics, &id(1), refused),
        (&topics, &object, refused),
        (&topics, &data_set, GOOD),
        (&ALIASES, &object, GOOD),
        (&ALIASES, &id(1), GOOD),
    ] {
        let items = [("X", target.clone())];
        let added = add_in(&mut client, &mut server, category, &items, Vec::new(), NodeId::NULL);
        assert_eq!(added, Ok(vec![expected]), "{category} {target}");
    }
    // An alias that is in TagVariables, too, has no other targets in another category.
    let alias = server.space.child(&below, &QualifiedName::new(1, "X")).unwrap();
    let cell = server.space.add_alias_category(&ALIASES, "Cell", now).unwrap();
    server.space.add_reference(&cell, &r::ORGANIZES.into(), &alias).unwrap();
    let items = [("X", object)];
    let added = add_in(&mut client, &mut server, &cell, &items, Vec::new(), NodeId::NULL);
    assert_eq!(added, Ok(vec![refused]));
}

#[test]
fn names_in_several_namespaces_and_of_categories() {
    let (mut server, mut client) = plant();
    let now = server.now.utc;
    server.space.add_namespace("urn:two");
    let items = [("P", id(1))];
    assert_eq!(add_to(&mut client, &mut server, &items, Vec::new(), NodeId::NULL), Ok(vec![GOOD]));
    for (name, target) in [("P", 2), ("Q", 3)] {
        let item = schema::AddNodesItem {
            parent_node_id: expanded(TAGS),
            browse_name: QualifiedName::new(2, name),
            type_definition: expanded(schema::ids::object_type_ids::ALIAS_NAME_TYPE),
            ..super::node_management::object(NodeId::string(1, format!("two {name}")), name)
        };
        assert_eq!(add_one(&mut client, &mut server, item).status_code, GOOD);
        let item = reference(NodeId::string(1, format!("two {name}")), r::ALIAS_FOR, id(target));
        assert_eq!(refer(&mut client, &mut server, item), GOOD);
    }
    assert_eq!(delete_from(&mut client, &mut server, &[("P", id(2))]), Ok(vec![GOOD]));
    assert_eq!(found(&mut client, &mut server, &TAGS).len(), 2, "1:P and 2:Q");
    let item = schema::AddNodesItem {
        parent_node_id: expanded(TAGS),
        browse_name: QualifiedName::new(2, "P"),
        type_definition: expanded(schema::ids::object_type_ids::ALIAS_NAME_TYPE),
        ..super::node_management::object(NodeId::string(1, "two P"), "P")
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, GOOD);
    // All aliases with the name.
    assert_eq!(delete_from(&mut client, &mut server, &[("P", NodeId::NULL)]), Ok(vec![GOOD]));
    for namespace in [1, 2] {
        assert_eq!(server.space.child(&TAGS, &QualifiedName::new(namespace, "P")), None);
    }
    server.space.add_alias_category(&TAGS, "Line", now).unwrap();
    let added = add_to(&mut client, &mut server, &[("Line", id(1))], Vec::new(), NodeId::NULL);
    assert_eq!(added, Ok(vec![StatusCode::BAD_BROWSE_NAME_DUPLICATED]));
}

#[test]
fn clients_take_back_their_targets_and_change_the_last_change_with_each() {
    let (mut server, mut client) = plant();
    server.space.add_alias(&TAGS, "OWN", &id(1), server.now.utc).unwrap();
    let kind = NodeId::string(1, "RefersTo");
    let item = schema::AddNodesItem {
        parent_node_id: expanded(r::ALIAS_FOR),
        reference_type_id: r::HAS_SUBTYPE.into(),
        node_class: schema::NodeClass::REFERENCE_TYPE,
        type_definition: Default::default(),
        ..super::node_management::object(kind.clone(), "RefersTo")
    };
    assert_eq!(add_one(&mut client, &mut server, item).status_code, GOOD);
    server.space.raise_model_changes(server.now.utc);
    let mut before = last_change(&server, &TAGS);
    let mut has_changed = |server: &Server| {
        let now = last_change(server, &TAGS);
        core::mem::replace(&mut before, now) != now
    };
    for kind in [NodeId::NULL, kind] {
        let items = [("OWN", id(2))];
        assert_eq!(add_to(&mut client, &mut server, &items, Vec::new(), kind.clone()), Ok(vec![GOOD]));
        assert!(has_changed(&server), "{kind}");
        assert_eq!(delete_from(&mut client, &mut server, &items), Ok(vec![GOOD]));
        assert!(has_changed(&server), "{kind}");
    }
    // The application's target stays.
    let refused = delete_from(&mut client, &mut server, &[("OWN", id(1))]);
    assert_eq!(refused, Ok(vec![StatusCode::BAD_NO_DELETE_RIGHTS]));
    assert_eq!(found(&mut client, &mut server, &TAGS), [("OWN".to_owned(), vec![id(1)])]);
}
