//! Clients that change alias categories (Part 17 §6.3.4, §6.3.5).

use super::aliases::{ALIASES, TAGS, find, id};
use super::attribute::{add, variable};
use super::*;
use crate::callback::{CallContext, MethodCall, MethodHandler};
use crate::space::AddressSpace;
use schema::ids::method_ids as m;
use schema::{CallMethodRequest, CallRequest};
use std::sync::{Arc, Weak};
use taktwerk_types::{ArrayValues, BuiltInType, ExpandedNodeId, UaString, Variant};

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
    let mut inputs = arrays(items);
    inputs.extend([servers.into(), kind.into()]);
    call(client, server, &TAGS, m::ALIAS_NAME_CATEGORY_TYPE_ADD_ALIASES_TO_CATEGORY, inputs)
}

fn delete_from(
    client: &mut Client,
    server: &mut Server,
    items: &[(&str, NodeId)],
) -> Result<Vec<StatusCode>, StatusCode> {
    call(client, server, &TAGS, m::ALIAS_NAME_CATEGORY_TYPE_DELETE_ALIASES_FROM_CATEGORY, arrays(items))
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
