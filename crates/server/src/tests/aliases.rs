//! AliasNames and FindAlias (Part 17).

use super::attribute::{add, variable};
use super::*;
use crate::authorization::Access;
use crate::space::NodeSpec;
use crate::space::build::Under;
use schema::{AliasNameDataType, AliasNameVerboseDataType, CallMethodRequest, CallRequest, PermissionType};
use taktwerk_schema::ids::{method_ids, object_ids, object_type_ids, reference_type_ids as r, variable_ids};
use taktwerk_types::{ArrayValues, BuiltInType, ExtensionObject, QualifiedName, Variant};

pub(super) const ALIASES: NodeId = NodeId::numeric(0, object_ids::ALIASES);
pub(super) const TAGS: NodeId = NodeId::numeric(0, object_ids::TAG_VARIABLES);

/// The result of a category's method.
fn call(
    client: &mut Client,
    server: &mut Server,
    category: NodeId,
    method: u32,
    inputs: Vec<Variant>,
) -> Result<Vec<ExtensionObject>, StatusCode> {
    let request = CallRequest {
        request_header: client.header(),
        methods_to_call: vec![CallMethodRequest {
            object_id: category,
            method_id: NodeId::numeric(0, method),
            input_arguments: inputs,
        }],
    };
    let result = client.call(server, &request).unwrap().results.remove(0);
    if result.status_code.is_bad() {
        return Err(result.status_code);
    }
    let Variant::Array(array) = &result.output_arguments[0] else { panic!("{result:?}") };
    let ArrayValues::ExtensionObject(objects) = &array.values else { panic!("{array:?}") };
    Ok(objects.clone())
}

pub(super) fn find(
    client: &mut Client,
    server: &mut Server,
    category: NodeId,
    pattern: &str,
    filter: NodeId,
) -> Result<Vec<(String, Vec<NodeId>)>, StatusCode> {
    let method = method_ids::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS;
    let objects = call(client, server, category, method, vec![pattern.into(), filter.into()])?;
    let alias = |alias: AliasNameDataType| {
        let nodes = alias.referenced_nodes.into_iter().map(|node| node.node_id);
        (alias.alias_name.name.as_str().to_owned(), nodes.collect())
    };
    Ok(objects.iter().map(|object| alias(object.decode().unwrap())).collect())
}

pub(super) fn id(number: u32) -> NodeId {
    NodeId::numeric(1, number)
}

fn plant() -> (Server, Client) {
    let mut server = Server::new();
    for number in 1..=3 {
        add(&server, variable(number, BuiltInType::Double, 1.0));
    }
    // A category below TagVariables.
    let under = Under {
        parent: &TAGS,
        reference_type: &r::ORGANIZES.into(),
        type_definition: Some(&object_type_ids::ALIAS_NAME_CATEGORY_TYPE.into()),
    };
    let line = NodeSpec::object(id(100), QualifiedName::new(1, "Line 2"));
    server.space.add_node(line, under, server.now.utc).unwrap();
    for (category, alias, node) in
        [(TAGS, "TIC101", 1), (TAGS, "TIC102", 2), (TAGS, "TIC102", 3), (id(100), "FIC201", 3)]
    {
        server.space.add_alias(&category, alias, &id(node), server.now.utc).unwrap();
    }
    let client = server.session();
    (server, client)
}

#[test]
fn aliases_are_found_by_patterns_in_a_category_and_below() {
    let (mut server, mut client) = plant();
    let mut all = |category: NodeId, pattern: &str| {
        let mut found = find(&mut client, &mut server, category, pattern, NodeId::NULL).unwrap();
        found.sort();
        found
    };
    let one = ("TIC101".to_owned(), vec![id(1)]);
    let two = ("TIC102".to_owned(), vec![id(2), id(3)]);
    let three = ("FIC201".to_owned(), vec![id(3)]);
    assert_eq!(all(TAGS, "TIC101"), std::slice::from_ref(&one));
    assert_eq!(all(TAGS, "TIC%"), [one.clone(), two.clone()]);
    assert_eq!(all(ALIASES, "%"), [three.clone(), one, two.clone()]);
    assert_eq!(all(id(100), "_IC2[0-9]1"), [three]);
    assert_eq!(all(TAGS, "%102"), [two]);
    assert_eq!(all(NodeId::numeric(0, object_ids::TOPICS), "%"), []);
    let again = server.space.add_alias(&TAGS, "TIC101", &id(1), server.now.utc);
    assert!(again.is_err(), "it stands for it already");
    assert!(server.space.add_alias(&TAGS, "X", &id(99), server.now.utc).is_err());
}

#[test]
fn wrong_arguments_and_the_filter() {
    let (mut server, mut client) = plant();
    let mut find = |pattern: &str, filter: NodeId| find(&mut client, &mut server, TAGS, pattern, filter);
    assert_eq!(find("", NodeId::NULL), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(find(&"%a".repeat(600), NodeId::NULL), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(find("%", id(1)), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(find("%", r::ORGANIZES.into()).unwrap(), []);
    assert_eq!(find("%", r::ALIAS_FOR.into()).unwrap().len(), 3);
    assert_eq!(find("%", r::NON_HIERARCHICAL_REFERENCES.into()).unwrap().len(), 3);
}

#[test]
fn aliases_hidden_from_the_caller_are_not_found() {
    let (mut server, mut client) = plant();
    let nobody: Vec<(NodeId, PermissionType)> = Vec::new();
    server.space.set_access(&id(3), Access::roles(nobody)).unwrap();
    let mut found = find(&mut client, &mut server, TAGS, "%", NodeId::NULL).unwrap();
    found.sort();
    assert_eq!(found, [("TIC101".to_owned(), vec![id(1)]), ("TIC102".to_owned(), vec![id(2)])]);
}

#[test]
fn many_aliases_are_found_in_slices_and_too_many_are_refused() {
    let (mut server, mut client) = plant();
    for number in 0..5000 {
        server.space.add_alias(&id(100), &format!("P{number}"), &id(1), server.now.utc).unwrap();
    }
    assert_eq!(find(&mut client, &mut server, TAGS, "P%", NodeId::NULL).unwrap().len(), 5000);
    assert_eq!(find(&mut client, &mut server, TAGS, "P4999", NodeId::NULL).unwrap().len(), 1);
    assert_eq!(find(&mut client, &mut server, TAGS, "%", NodeId::NULL).unwrap().len(), 5003);
    for number in 5000..10_001 {
        server.space.add_alias(&TAGS, &format!("P{number}"), &id(1), server.now.utc).unwrap();
    }
    let all = find(&mut client, &mut server, TAGS, "P%", NodeId::NULL);
    assert_eq!(all, Err(StatusCode::BAD_RESPONSE_TOO_LARGE));
}

/// One alias with many targets in many categories takes much more memory in the answer than in the server.
#[test]
fn the_targets_of_all_aliases_are_limited() {
    let (mut server, mut client) = plant();
    let now = server.now.utc;
    for number in 1000..1600 {
        add(&server, variable(number, BuiltInType::Double, 1.0));
        server.space.add_alias(&ALIASES, "SHARED", &id(number), now).unwrap();
    }
    assert_eq!(find(&mut client, &mut server, ALIASES, "SHARED", NodeId::NULL).unwrap()[0].1.len(), 600);
    let alias = server.space.child(&ALIASES, &QualifiedName::new(1, "SHARED")).unwrap();
    for number in 0..100 {
        let category = server.space.add_alias_category(&ALIASES, &format!("C{number}"), now).unwrap();
        server.space.add_reference(&category, &r::ORGANIZES.into(), &alias).unwrap();
    }
    let all = find(&mut client, &mut server, ALIASES, "SHARED", NodeId::NULL);
    assert_eq!(all, Err(StatusCode::BAD_RESPONSE_TOO_LARGE));
}

#[test]
fn the_verbose_method_returns_the_category_of_an_alias() {
    let (mut server, mut client) = plant();
    let method = method_ids::ALIAS_NAME_CATEGORY_TYPE_FIND_ALIAS_VERBOSE;
    for category in [ALIASES, TAGS, NodeId::numeric(0, object_ids::TOPICS)] {
        let name = QualifiedName::new(0, "FindAliasVerbose");
        assert_eq!(server.space.child(&category, &name), Some(NodeId::numeric(0, method)));
    }
    let mut verbose = |pattern: &str| -> Result<Vec<AliasNameVerboseDataType>, StatusCode> {
        let inputs = vec![pattern.into(), NodeId::NULL.into()];
        let objects = call(&mut client, &mut server, ALIASES, method, inputs)?;
        Ok(objects.iter().map(|object| object.decode().unwrap()).collect())
    };
    assert_eq!(verbose(""), Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(verbose("nothing"), Ok(Vec::new()));
    for (alias, category, nodes) in [("TIC102", TAGS, vec![id(2), id(3)]), ("FIC201", id(100), vec![id(3)])] {
        let found = verbose(alias).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].alias_name.name.as_str(), alias);
        assert_eq!(found[0].alias_name_category_id, category);
        let referenced: Vec<NodeId> =
            found[0].referenced_nodes.iter().map(|node| node.node_id.clone()).collect();
        assert_eq!(referenced, nodes);
        assert_eq!(found[0].server_uris, vec![taktwerk_types::UaString::NULL; nodes.len()]);
    }
}

#[test]
fn the_last_change_of_aliases_is_shown_and_never_repeats() {
    let (server, _client) = plant();
    let last = |server: &Server| {
        let variable = server.space.variable(&NodeId::numeric(0, variable_ids::ALIASES_LAST_CHANGE)).unwrap();
        match variable.get().value {
            Some(Variant::UInt32(time)) => time,
            other => panic!("{other:?}"),
        }
    };
    let seconds = |server: &Server| server.now.utc.unix_nanos() / 1_000_000_000 - 946_684_800;
    let begun = last(&server);
    assert!(i128::from(begun) >= seconds(&server), "{begun}");
    // Other nodes do not affect it.
    add(&server, variable(4, BuiltInType::Double, 1.0));
    server.space.raise_model_changes(server.now.utc);
    assert_eq!(last(&server), begun);
    // Two changes in one second.
    server.space.add_alias(&TAGS, "TIC103", &id(4), server.now.utc).unwrap();
    let added = last(&server);
    assert!(added > begun);
    server.space.add_alias(&TAGS, "TIC103", &id(1), server.now.utc).unwrap();
    let more = last(&server);
    assert!(more > added);
    // The target of an alias is deleted, then the alias.
    server.space.delete_node(&id(4)).unwrap();
    server.space.raise_model_changes(server.now.utc);
    let gone = last(&server);
    assert!(gone > more);
    let alias = server.space.child(&TAGS, &QualifiedName::new(1, "TIC101")).unwrap();
    server.space.delete_node(&alias).unwrap();
    server.space.raise_model_changes(server.now.utc);
    assert!(last(&server) > gone);
}

/// LastChange of a category.
pub(super) fn last_change(server: &Server, category: &NodeId) -> Option<u32> {
    let property = server.space.child(category, &QualifiedName::new(0, "LastChange"))?;
    match server.space.variable(&property).unwrap().get().value {
        Some(Variant::UInt32(time)) => Some(time),
        other => panic!("{other:?}"),
    }
}

/// Which of the categories have changed since the last call.
struct Seen<'a>(Vec<(&'a str, NodeId, Option<u32>)>);

impl<'a> Seen<'a> {
    fn changed(&mut self, server: &Server) -> Vec<&'a str> {
        server.space.raise_model_changes(server.now.utc);
        let mut names = Vec::new();
        for (name, category, before) in &mut self.0 {
            let now = last_change(server, category);
            if now != *before {
                assert!(now > *before, "{name}: {now:?} is behind {before:?}");
                names.push(*name);
            }
            *before = now;
        }
        names
    }
}

#[test]
fn each_category_shows_its_last_change_including_nested_ones() {
    let (server, _client) = plant();
    let now = server.now.utc;
    let space = &server.space;
    let topics = NodeId::numeric(0, object_ids::TOPICS);
    let line = space.add_alias_category(&TAGS, "Line 3", now).unwrap();
    let cell = space.add_alias_category(&line, "Cell", now).unwrap();
    assert!(space.add_alias_category(&TAGS, "Line 3", now).is_err());
    let of = |name, id: &NodeId| (name, id.clone(), None);
    let mut seen = Seen(vec![
        of("Aliases", &ALIASES),
        of("TagVariables", &TAGS),
        of("Topics", &topics),
        of("Line 3", &line),
        of("Cell", &cell),
    ]);
    assert_eq!(seen.changed(&server).len(), 5, "all have a LastChange");
    assert!(seen.changed(&server).is_empty());

    space.add_alias(&cell, "FIC301", &id(1), now).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "TagVariables", "Line 3", "Cell"]);
    space.add_alias(&topics, "Orders", &id(2), now).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "Topics"]);
    // It gets a second target, then loses one.
    space.add_alias(&cell, "FIC301", &id(2), now).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "TagVariables", "Line 3", "Cell"]);
    space.delete_node(&id(2)).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "TagVariables", "Topics", "Line 3", "Cell"]);
    // An alias can be in several categories (§6.3.1).
    let alias = space.child(&cell, &QualifiedName::new(1, "FIC301")).unwrap();
    space.add_reference(&topics, &r::ORGANIZES.into(), &alias).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "Topics"]);
    // Variables and Methods below a category are not aliases, and other nodes do not affect it.
    let under = Under { parent: &line, reference_type: &r::HAS_COMPONENT.into(), type_definition: None };
    space.add_node(variable(7, BuiltInType::Double, 1.0), under, now).unwrap();
    add(&server, variable(8, BuiltInType::Double, 1.0));
    assert!(seen.changed(&server).is_empty());
    space.delete_node(&alias).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "TagVariables", "Topics", "Line 3", "Cell"]);
    // A category is added and deleted.
    let more = space.add_alias_category(&topics, "More", now).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "Topics"]);
    space.delete_node(&more).unwrap();
    assert_eq!(seen.changed(&server), ["Aliases", "Topics"]);
}

#[test]
fn a_property_that_cannot_hold_a_version_time_is_not_changed() {
    let (server, _client) = plant();
    let under = Under { parent: &id(100), reference_type: &r::HAS_PROPERTY.into(), type_definition: None };
    let text = NodeSpec::variable(
        id(101),
        QualifiedName::new(0, "LastChange"),
        NodeId::numeric(0, 12),
        Some("yesterday".into()),
    );
    server.space.add_node(text, under, server.now.utc).unwrap();
    server.space.add_alias(&id(100), "FIC202", &id(1), server.now.utc).unwrap();
    assert_eq!(server.space.variable(&id(101)).unwrap().get().value, Some("yesterday".into()));
}
