//! QueryFirst and QueryNext: the examples of Part 4 Annex B.3, and limits.

use super::*;
use crate::account::Category;
use crate::authorization::{Access, Authorization};
use crate::space::NodeSpec;
use crate::space::build::Under;
use crate::space::node::NodeKind;
use schema::ids::{object_ids, object_type_ids, reference_type_ids as r, variable_ids, variable_type_ids};
use schema::{
    AttributeOperand, BrowseNextRequest, ContentFilter, ContentFilterElement, ElementOperand,
    FilterOperator as Op, LiteralOperand, NodeTypeDescription, PermissionType, QueryDataDescription,
    QueryFirstRequest, QueryFirstResponse, QueryNextRequest, QueryNextResponse, ReferenceDescription,
    RelativePath, RelativePathElement, ViewDescription,
};
use taktwerk_types::{
    BuiltInType, ByteString, ExpandedNodeId, ExtensionObject, Identifier, QualifiedName, Variant,
};

const fn id(number: u32) -> NodeId {
    NodeId::numeric(1, number)
}

fn number_of(node: &NodeId) -> u32 {
    match node.identifier {
        Identifier::Numeric(number) => number,
        _ => panic!("all ids here are numbers"),
    }
}

const HAS_CHILD: NodeId = id(1);
const HAS_ANIMAL: NodeId = id(2);
const HAS_PET: NodeId = id(3);
const HAS_FARM_ANIMAL: NodeId = id(4);
const HAS_SCHEDULE: NodeId = id(5);
const PERSON: NodeId = id(10);
const ANIMAL: NodeId = id(11);
const DOG: NodeId = id(12);
const CAT: NodeId = id(13);
const PIG: NodeId = id(14);
const SCHEDULE: NodeId = id(15);
const FEEDING: NodeId = id(16);
const J_FAMILY1: NodeId = id(30);
const H_FAMILY0: NodeId = id(41);
const H_FAMILY1: NodeId = id(42);
const H_FAMILY2: NodeId = id(48);
const CAT1: NodeId = id(70);
const DOG1: NodeId = id(80);
const PIG1: NodeId = id(91);

fn put(server: &Server, spec: NodeSpec, parent: &NodeId, reference: NodeId, kind: Option<NodeId>) {
    let under = Under { parent, reference_type: &reference, type_definition: kind.as_ref() };
    server.space.add_node(spec, under, server.now.utc).unwrap();
}

fn name(text: &str) -> QualifiedName {
    QualifiedName::new(1, text)
}

fn object(server: &Server, node: NodeId, text: &str, kind: NodeId) {
    let objects = object_ids::OBJECTS_FOLDER.into();
    put(server, NodeSpec::object(node, name(text)), &objects, r::ORGANIZES.into(), Some(kind));
}

fn property(server: &Server, parent: &NodeId, number: u32, text: &str, value: impl Into<Variant>) {
    let value = value.into();
    let kind = u32::from(value.built_in_type().unwrap().number()).into();
    let spec = NodeSpec::variable(id(number), name(text), kind, Some(value));
    put(server, spec, parent, r::HAS_PROPERTY.into(), Some(variable_type_ids::PROPERTY_TYPE.into()));
}

fn refer(server: &Server, source: NodeId, kind: NodeId, target: NodeId) {
    server.space.add_reference(&source, &kind, &target).unwrap();
}

/// The types of Annex B.3.2 and some families of Annex B.3.3.
fn families(change: impl FnOnce(&mut ServerConfig)) -> (Server, Client) {
    let mut server = Server::with(change);
    let sub = |server: &Server, node: NodeId, text: &str, parent: NodeId, kind: NodeKind| {
        put(server, NodeSpec::with_kind(node, name(text), kind), &parent, r::HAS_SUBTYPE.into(), None);
    };
    let reference = |server: &Server, node, text: &str, parent| {
        sub(server, node, text, parent, NodeKind::ReferenceType(Box::default()));
    };
    let hierarchical = || NodeId::numeric(0, r::HIERARCHICAL_REFERENCES);
    reference(&server, HAS_CHILD, "HasChild", hierarchical());
    reference(&server, HAS_ANIMAL, "HasAnimal", hierarchical());
    reference(&server, HAS_PET, "HasPet", HAS_ANIMAL);
    reference(&server, HAS_FARM_ANIMAL, "HasFarmAnimal", HAS_ANIMAL);
    reference(&server, HAS_SCHEDULE, "HasSchedule", hierarchical());
    let base = || NodeId::numeric(0, object_type_ids::BASE_OBJECT_TYPE);
    for (node, text, parent) in [
        (PERSON, "PersonType", base()),
        (ANIMAL, "AnimalType", base()),
        (DOG, "DogType", ANIMAL),
        (CAT, "CatType", ANIMAL),
        (PIG, "PigType", ANIMAL),
        (SCHEDULE, "ScheduleType", base()),
        (FEEDING, "FeedingScheduleType", SCHEDULE),
    ] {
        sub(&server, node, text, parent, NodeKind::ObjectType { is_abstract: false });
    }
    for (node, text, last, zip) in [
        (J_FAMILY1, "JFamily1", "Jones", "02138"),
        (H_FAMILY0, "HFamily0", "Hervey", "48108"),
        (H_FAMILY1, "HFamily1", "Hervey", "48109"),
        (H_FAMILY2, "HFamily2", "Hervey", "48110"),
    ] {
        object(&server, node.clone(), text, PERSON);
        let number = 1000 + 10 * number_of(&node);
        property(&server, &node, number, "LastName", last);
        property(&server, &node, number + 1, "ZipCode", zip);
    }
    for (node, text, called, kind) in
        [(CAT1, "Cat1", "Rosemary", CAT), (DOG1, "Dog1", "Oliver", DOG), (PIG1, "Pig1", "Wilbur", PIG)]
    {
        object(&server, node.clone(), text, kind);
        property(&server, &node, 2000 + 10 * number_of(&node), "Name", called);
    }
    for (node, text, period, amount) in
        [(id(71), "CatFeeding", "Hourly", 8u32), (id(81), "DogFeeding", "Daily", 20)]
    {
        object(&server, node.clone(), text, FEEDING);
        let number = 3000 + 10 * number_of(&node);
        property(&server, &node, number, "Period", period);
        property(&server, &node, number + 1, "AmountToFeed", amount);
    }
    refer(&server, J_FAMILY1, HAS_PET, CAT1);
    refer(&server, J_FAMILY1, HAS_PET, DOG1);
    refer(&server, CAT1, HAS_SCHEDULE, id(71));
    refer(&server, DOG1, HAS_SCHEDULE, id(81));
    refer(&server, H_FAMILY0, HAS_CHILD, H_FAMILY1);
    refer(&server, H_FAMILY1, HAS_CHILD, H_FAMILY2);
    refer(&server, H_FAMILY1, HAS_FARM_ANIMAL, PIG1);
    refer(&server, H_FAMILY2, HAS_PET, PIG1);
    let client = server.session();
    (server, client)
}

fn step(reference_type: NodeId, target: &str) -> RelativePathElement {
    RelativePathElement {
        reference_type_id: reference_type,
        is_inverse: false,
        include_subtypes: true,
        target_name: if target.is_empty() { QualifiedName::default() } else { name(target) },
    }
}

fn prop(target: &str) -> RelativePathElement {
    step(r::HAS_PROPERTY.into(), target)
}

fn data(path: Vec<RelativePathElement>, attribute_id: u32) -> QueryDataDescription {
    QueryDataDescription {
        relative_path: RelativePath { elements: path },
        attribute_id,
        index_range: Default::default(),
    }
}

fn of_type(
    kind: NodeId,
    include_sub_types: bool,
    data_to_return: Vec<QueryDataDescription>,
) -> NodeTypeDescription {
    NodeTypeDescription {
        type_definition_node: ExpandedNodeId::from(kind),
        include_sub_types,
        data_to_return,
    }
}

fn node(node_id: NodeId) -> ExtensionObject {
    ExtensionObject::new(&AttributeOperand { node_id, attribute_id: 1, ..Default::default() })
}

fn value_of(node_id: NodeId, alias: &str, path: &str) -> ExtensionObject {
    ExtensionObject::new(&AttributeOperand {
        node_id,
        alias: alias.into(),
        browse_path: RelativePath { elements: vec![prop(path)] },
        attribute_id: 13,
        index_range: Default::default(),
    })
}

fn literal(value: impl Into<Variant>) -> ExtensionObject {
    ExtensionObject::new(&LiteralOperand { value: value.into() })
}

fn element(index: u32) -> ExtensionObject {
    ExtensionObject::new(&ElementOperand { index })
}

fn op(filter_operator: Op, filter_operands: Vec<ExtensionObject>) -> ContentFilterElement {
    ContentFilterElement { filter_operator, filter_operands }
}

/// The examples write hops as text.
fn related(source: NodeId, target: ExtensionObject, reference: NodeId, hops: &str) -> ContentFilterElement {
    op(Op::RELATED_TO, vec![node(source), target, node(reference), literal(hops)])
}

fn request(
    client: &mut Client,
    node_types: Vec<NodeTypeDescription>,
    elements: Vec<ContentFilterElement>,
    max: u32,
) -> QueryFirstRequest {
    QueryFirstRequest {
        request_header: client.header(),
        view: ViewDescription::default(),
        node_types,
        filter: ContentFilter { elements },
        max_data_sets_to_return: max,
        max_references_to_return: 0,
    }
}

fn query(
    (server, client): &mut (Server, Client),
    types: Vec<NodeTypeDescription>,
    elements: Vec<ContentFilterElement>,
) -> QueryFirstResponse {
    let request = request(client, types, elements, 0);
    let response = client.call(server, &request).unwrap();
    assert!(response.continuation_point.is_null());
    response
}

/// Node and values of each data set.
fn found(response: &QueryFirstResponse) -> Vec<(NodeId, Vec<Variant>)> {
    let sets = response.query_data_sets.iter();
    sets.map(|set| (set.node_id.node_id.clone(), set.values.clone())).collect()
}

fn ids(response: &QueryFirstResponse) -> Vec<NodeId> {
    found(response).into_iter().map(|(id, _)| id).collect()
}

fn texts(all: &[&str]) -> Variant {
    all.iter().map(|text| Variant::from(*text)).collect::<Vec<_>>().into()
}

/// PersonType.LastName, AnimalType.Name, ScheduleType.Period.
fn names_and_periods(schedule: &str) -> Vec<NodeTypeDescription> {
    let pet = || step(HAS_PET, "AnimalType");
    vec![of_type(
        PERSON,
        false,
        vec![
            data(vec![prop("LastName")], 13),
            data(vec![pet(), prop("Name")], 13),
            data(vec![pet(), step(HAS_SCHEDULE, schedule), prop("Period")], 13),
        ],
    )]
}

#[test]
fn example_1_a_person_has_a_pet_that_has_a_schedule() {
    let mut model = families(|_| {});
    let filter =
        vec![related(PERSON, element(1), HAS_PET, "1"), related(ANIMAL, node(SCHEDULE), HAS_SCHEDULE, "1")];
    let response = query(&mut model, names_and_periods("ScheduleType"), filter);
    let values = vec!["Jones".into(), texts(&["Rosemary", "Oliver"]), texts(&["Hourly", "Daily"])];
    assert_eq!(found(&response), [(J_FAMILY1, values)]);
    assert_eq!(response.query_data_sets[0].type_definition_node.node_id, PERSON);
    assert!(response.parsing_results.is_empty() && response.filter_result.element_results.is_empty());
}

#[test]
fn example_2_disjoint_nodes() {
    let mut model = families(|_| {});
    let types = vec![
        of_type(PERSON, false, vec![data(vec![prop("LastName")], 13)]),
        of_type(ANIMAL, true, vec![data(vec![prop("Name")], 13)]),
    ];
    let filter = vec![
        op(Op::OR, vec![element(1), element(2)]),
        related(PERSON, node(PERSON), HAS_CHILD, "1"),
        related(CAT, node(FEEDING), HAS_SCHEDULE, "1"),
    ];
    let response = query(&mut model, types, filter);
    let expected = [
        (H_FAMILY0, vec!["Hervey".into()]),
        (H_FAMILY1, vec!["Hervey".into()]),
        (CAT1, vec!["Rosemary".into()]),
    ];
    assert_eq!(found(&response), expected);
    assert_eq!(response.query_data_sets[2].type_definition_node.node_id, CAT);
}

/// Example 3 with another Zipcode, amount and period: the conditions hold for the same schedule.
fn example_3(zip: &str, amount: u32, periods: [&str; 2], alias: &str) -> Vec<ContentFilterElement> {
    let period = |wanted: &str| op(Op::EQUALS, vec![value_of(FEEDING, alias, "Period"), literal(wanted)]);
    let target =
        AttributeOperand { node_id: FEEDING, alias: alias.into(), attribute_id: 1, ..Default::default() };
    let target = ExtensionObject::new(&target);
    vec![
        op(Op::AND, vec![element(1), element(2)]),
        op(Op::AND, vec![element(4), element(6)]),
        op(Op::AND, vec![element(3), element(9)]),
        op(Op::OR, vec![element(7), element(8)]),
        related(PERSON, element(5), HAS_PET, "1"),
        related(ANIMAL, target, HAS_SCHEDULE, "1"),
        op(Op::EQUALS, vec![value_of(PERSON, "", "ZipCode"), literal(zip)]),
        period(periods[0]),
        period(periods[1]),
        op(Op::GREATER_THAN, vec![value_of(FEEDING, alias, "AmountToFeed"), literal(amount)]),
    ]
}

#[test]
fn example_3_several_criteria_on_one_related_node() {
    let mut model = families(|_| {});
    for alias in ["", "schedule"] {
        let mut ids_of = |zip, amount, periods| {
            let filter = example_3(zip, amount, periods, alias);
            ids(&query(&mut model, names_and_periods("FeedingScheduleType"), filter))
        };
        assert_eq!(ids_of("02138", 10, ["Daily", "Hourly"]), [J_FAMILY1]);
        assert_eq!(ids_of("02139", 10, ["Daily", "Hourly"]), []);
        assert_eq!(ids_of("02138", 20, ["Daily", "Hourly"]), []);
        // The cat's schedule is hourly, and the dog's amount is above ten: these are two schedules.
        assert_eq!(ids_of("02138", 10, ["Hourly", "Hourly"]), []);
        assert_eq!(ids_of("02138", 7, ["Hourly", "Hourly"]), [J_FAMILY1]);
    }
}

#[test]
fn example_4_hops() {
    let mut model = families(|_| {});
    let mut with = |hops: &str| {
        let filter =
            vec![related(PERSON, element(1), HAS_CHILD, hops), related(PERSON, node(ANIMAL), HAS_PET, "1")];
        ids(&query(&mut model, vec![of_type(PERSON, false, vec![])], filter))
    };
    assert_eq!(with("2"), [H_FAMILY0]);
    assert_eq!(with("1"), [H_FAMILY1]);
    // All the way, however far.
    assert_eq!(with("0"), [H_FAMILY0, H_FAMILY1]);
    assert_eq!(with("3"), []);
}

#[test]
fn example_6_references_are_returned() {
    let mut model = families(|_| {});
    let child = || step(HAS_CHILD, "PersonType");
    let wanted = vec![
        data(vec![], 1),
        data(vec![child(), step(HAS_ANIMAL, "AnimalType")], 1),
        data(vec![step(HAS_CHILD, "")], 0),
        data(vec![child(), step(HAS_ANIMAL, "")], 0),
    ];
    let filter =
        vec![related(PERSON, element(1), HAS_CHILD, "1"), related(PERSON, node(ANIMAL), HAS_ANIMAL, "1")];
    let response = query(&mut model, vec![of_type(PERSON, false, wanted)], filter);
    assert_eq!(ids(&response), [H_FAMILY0, H_FAMILY1]);
    let values = &response.query_data_sets[1].values;
    assert_eq!(values[..2], [H_FAMILY1.into(), PIG1.into()]);
    let reference = |value: &Variant| match value {
        Variant::ExtensionObject(object) => object.decode::<ReferenceDescription>().unwrap(),
        other => panic!("{other:?}"),
    };
    let (has_child, has_pet) = (reference(&values[2]), reference(&values[3]));
    assert_eq!((has_child.reference_type_id, has_child.node_id.node_id), (HAS_CHILD, H_FAMILY2));
    assert_eq!((has_pet.reference_type_id, has_pet.node_id.node_id), (HAS_PET, PIG1));
    assert_eq!((has_pet.browse_name, has_pet.type_definition.node_id), (name("Pig1"), PIG));
}

#[test]
fn a_query_continues_where_it_stopped() {
    let (mut server, mut client) = families(|_| {});
    let types = || vec![of_type(ANIMAL, true, vec![data(vec![], 1)])];
    let first = request(&mut client, types(), vec![], 2);
    let first: QueryFirstResponse = client.call(&mut server, &first).unwrap();
    assert_eq!(first.query_data_sets.len(), 2);
    let next = |client: &mut Client, server: &mut Server, point: &ByteString, release| {
        let request = QueryNextRequest {
            request_header: client.header(),
            release_continuation_point: release,
            continuation_point: point.clone(),
        };
        client.call::<QueryNextRequest>(server, &request)
    };
    // Using a point with Browse is refused and does not remove it.
    let browse = BrowseNextRequest {
        request_header: client.header(),
        release_continuation_points: false,
        continuation_points: vec![first.continuation_point.clone()],
    };
    let browsed = client.call(&mut server, &browse).unwrap().results.remove(0).status_code;
    assert_eq!(browsed, StatusCode::BAD_CONTINUATION_POINT_INVALID);
    // A node added after it is found, and a deleted one is not.
    object(&server, id(92), "Pig2", PIG);
    let second: QueryNextResponse = next(&mut client, &mut server, &first.continuation_point, false).unwrap();
    let mut all: Vec<_> = first.query_data_sets.iter().map(|set| set.node_id.node_id.clone()).collect();
    all.extend(second.query_data_sets.iter().map(|set| set.node_id.node_id.clone()));
    all.sort();
    assert_eq!(all, [CAT1, DOG1, PIG1, id(92)]);
    // The requested number was returned again; the end was not reached yet.
    let last = next(&mut client, &mut server, &second.revised_continuation_point, false).unwrap();
    assert!(last.query_data_sets.is_empty() && last.revised_continuation_point.is_null());
    let again = next(&mut client, &mut server, &second.revised_continuation_point, false);
    assert_eq!(again.unwrap_err(), StatusCode::BAD_CONTINUATION_POINT_INVALID);
    // Releasing a point frees its memory.
    let large = || vec![of_type(ANIMAL, true, vec![data(vec![prop("Name"); 4], 13); 60])];
    let before = server.used(Category::Sessions);
    let points: Vec<_> = (0..4)
        .map(|_| {
            let first = request(&mut client, large(), vec![], 1);
            let first: QueryFirstResponse = client.call(&mut server, &first).unwrap();
            first.continuation_point
        })
        .collect();
    assert!(server.used(Category::Sessions) > before + 4 * 60 * 4 * 32);
    for point in points {
        next(&mut client, &mut server, &point, true).unwrap();
    }
    // Higher levels are charged in steps of 8 KiB.
    assert!(server.used(Category::Sessions) <= before + 8192);
    server.space.delete_node(&id(92)).unwrap();
    let response = query(&mut (server, client), types(), vec![]);
    assert_eq!(response.query_data_sets.len(), 3);
}

#[test]
fn slices_find_the_same() {
    let mut model = families(|_| {});
    for number in 0..300 {
        object(&model.0, id(10_000 + number), &format!("Cat {number}"), CAT);
    }
    let all = |model: &mut (Server, Client)| {
        let types = vec![of_type(ANIMAL, true, vec![data(vec![], 3)])];
        let first = request(&mut model.1, types, vec![], 0);
        model.1.call(&mut model.0, &first).unwrap().query_data_sets
    };
    let whole = all(&mut model);
    assert_eq!(whole.len(), 303);
    let mut sliced = families(|_| {});
    for number in 0..300 {
        object(&sliced.0, id(10_000 + number), &format!("Cat {number}"), CAT);
    }
    sliced.0.shard.turns.set_units(100, 100);
    sliced.0.now.instant = sliced.0.now.instant + Duration::from_micros(10);
    assert_eq!(all(&mut sliced), whole);
    assert!(sliced.0.shard.take_work().suspensions > 10);
}

#[test]
fn nodes_hidden_from_the_session_are_not_found() {
    let mut model = families(|config| config.authorization = Authorization::open());
    let nobody: Vec<(NodeId, PermissionType)> = Vec::new();
    model.0.space.set_access(&CAT1, Access::roles(nobody)).unwrap();
    let browse = [(NodeId::numeric(0, object_ids::WELL_KNOWN_ROLE_ANONYMOUS), PermissionType::BROWSE)];
    let dogs_name = id(2000 + 10 * 80);
    model.0.space.set_access(&dogs_name, Access::roles(browse.to_vec())).unwrap();
    let types = || vec![of_type(ANIMAL, true, vec![data(vec![prop("Name")], 13)])];
    let response = query(&mut model, types(), vec![]);
    let denied = Variant::StatusCode(StatusCode::BAD_USER_ACCESS_DENIED);
    assert_eq!(found(&response), [(DOG1, vec![denied]), (PIG1, vec!["Wilbur".into()])]);
    // A filter neither reveals unreadable values nor passes hidden nodes.
    for wanted in ["Oliver", "Wilbur"] {
        let filter = vec![op(Op::EQUALS, vec![value_of(ANIMAL, "", "Name"), literal(wanted)])];
        let found = ids(&query(&mut model, types(), filter));
        assert_eq!(found, if wanted == "Wilbur" { vec![PIG1] } else { vec![] });
    }
    let filter = vec![related(PERSON, node(CAT), HAS_PET, "1")];
    assert_eq!(ids(&query(&mut model, vec![of_type(PERSON, false, vec![])], filter)), []);
}

#[test]
fn errors_are_reported() {
    let (mut server, mut client) = families(|_| {});
    let mut ask = |types: Vec<NodeTypeDescription>, filter: Vec<ContentFilterElement>| {
        let request = request(&mut client, types, filter, 0);
        client.call(&mut server, &request)
    };
    assert_eq!(ask(vec![], vec![]).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    let types = vec![
        of_type(PERSON, false, vec![data(vec![], 99), data(vec![], 1)]),
        of_type(id(999), false, vec![]),
        of_type(J_FAMILY1, false, vec![]),
    ];
    let response = ask(types, vec![]).unwrap();
    assert_eq!(response.response_header.service_result, StatusCode::BAD_INVALID_ARGUMENT);
    let statuses: Vec<_> = response.parsing_results.iter().map(|result| result.status_code).collect();
    let unknown = StatusCode::BAD_NODE_ID_UNKNOWN;
    assert_eq!(statuses, [StatusCode::BAD_INVALID_ARGUMENT, unknown, StatusCode::BAD_NOT_TYPE_DEFINITION]);
    let data = &response.parsing_results[0].data_status_codes;
    assert_eq!(data[..], [StatusCode::BAD_ATTRIBUTE_ID_INVALID, StatusCode::GOOD]);

    let person = || vec![of_type(PERSON, false, vec![])];
    for (filter, status) in [
        (related(id(999), node(ANIMAL), HAS_PET, "1"), unknown),
        (related(PERSON, node(ANIMAL), PERSON, "1"), StatusCode::BAD_REFERENCE_TYPE_ID_INVALID),
        (related(PERSON, node(ANIMAL), HAS_PET, "many"), StatusCode::BAD_FILTER_OPERAND_INVALID),
        (related(PERSON, element(7), HAS_PET, "1"), StatusCode::BAD_FILTER_ELEMENT_INVALID),
        (op(Op::IN_VIEW, vec![literal(PERSON)]), StatusCode::BAD_VIEW_ID_UNKNOWN),
    ] {
        let response = ask(person(), vec![filter]).unwrap();
        let (result, of) = (response.response_header.service_result, response.filter_result.element_results);
        assert_eq!((result, of[0].status_code), (StatusCode::BAD_CONTENT_FILTER_INVALID, status));
    }
    // Relations that refer to themselves, and a target that is not a relation.
    let looped = vec![related(PERSON, element(0), HAS_CHILD, "1")];
    assert_eq!(ask(person(), looped).unwrap_err(), StatusCode::BAD_CONTENT_FILTER_INVALID);
    let target = vec![related(PERSON, element(1), HAS_CHILD, "1"), op(Op::IS_NULL, vec![literal(1u32)])];
    assert_eq!(ask(person(), target).unwrap_err(), StatusCode::BAD_CONTENT_FILTER_INVALID);
}

#[test]
fn the_cost_of_one_candidate_is_bounded() {
    let mut model = families(|_| {});
    // A person with so many children that each grandchild would be examined a hundred thousand times.
    for number in 0..400 {
        object(&model.0, id(20_000 + number), &format!("Child {number}"), PERSON);
        refer(&model.0, J_FAMILY1, HAS_CHILD, id(20_000 + number));
    }
    for number in 0..400 {
        for other in 0..60 {
            refer(&model.0, id(20_000 + number), HAS_CHILD, id(20_000 + (number + other) % 400));
        }
    }
    let filter = vec![related(PERSON, node(PIG), HAS_CHILD, "3")];
    let request = request(&mut model.1, vec![of_type(PERSON, false, vec![])], filter, 0);
    assert_eq!(model.1.call(&mut model.0, &request).unwrap_err(), StatusCode::BAD_QUERY_TOO_COMPLEX);
}

#[test]
fn copies_of_a_large_value_are_bounded() {
    let mut model = families(|_| {});
    property(&model.0, &J_FAMILY1, 600, "Picture", ByteString::from(vec![7u8; 1 << 20]));
    let ask = |model: &mut (Server, Client), count: usize| {
        let types = vec![of_type(PERSON, false, vec![data(vec![prop("Picture")], 13); count])];
        let request = request(&mut model.1, types, vec![], 0);
        model.1.call(&mut model.0, &request).map(|response| found(&response).len())
    };
    assert_eq!(ask(&mut model, 1).unwrap(), 4);
    // They would not fit into the response, and are not created either.
    assert_eq!(ask(&mut model, 200).unwrap_err(), StatusCode::BAD_QUERY_TOO_COMPLEX);
}

#[test]
fn values_of_every_kind_are_returned() {
    let mut model = families(|_| {});
    // A static value, a computed one, and one that is not set.
    let spec =
        NodeSpec::variable(id(500), name("Unset"), u32::from(BuiltInType::Double.number()).into(), None);
    put(
        &model.0,
        spec,
        &PIG1,
        r::HAS_COMPONENT.into(),
        Some(variable_type_ids::BASE_DATA_VARIABLE_TYPE.into()),
    );
    let variable = |text: &str| vec![step(r::HAS_COMPONENT.into(), text)];
    let types = vec![of_type(PIG, false, vec![data(variable("Unset"), 13), data(variable("None"), 13)])];
    let response = query(&mut model, types, vec![]);
    assert!(matches!(
        found(&response)[0].1[..],
        [Variant::StatusCode(_) | Variant::Empty | Variant::Double(_), Variant::Empty]
    ));
    let status =
        RelativePathElement { target_name: QualifiedName::new(0, "State"), ..step(NodeId::NULL, "x") };
    let types =
        vec![of_type(variable_type_ids::SERVER_STATUS_TYPE.into(), false, vec![data(vec![status], 13)])];
    let response = query(&mut model, types, vec![]);
    let server_status = NodeId::numeric(0, variable_ids::SERVER_SERVER_STATUS);
    let (_, values) = found(&response).into_iter().find(|(id, _)| *id == server_status).unwrap();
    assert_eq!(values, [Variant::Int32(0)]);
}

/// A stranger chooses patterns and texts whose comparison takes seconds.
#[test]
fn comparing_patterns_is_bounded() {
    let mut model = families(|_| {});
    let (text, pattern) = ("a".repeat(20_000), format!("%{}b", "a".repeat(4_000)));
    let filter = vec![op(Op::LIKE, vec![literal(text.as_str()), literal(pattern.as_str())])];
    let request = request(&mut model.1, vec![of_type(PERSON, false, vec![])], filter, 0);
    model.0.shard.take_work();
    let found = model.1.call(&mut model.0, &request).map(|response| found(&response).len());
    // The result is unknown for each of the candidates, and each costs its work.
    assert_eq!(found, Ok(0));
    assert!(model.0.shard.take_work().units >= 4 * 3_000 * crate::work::unit::REFERENCE as u64);
}

#[test]
fn the_types_of_a_query_are_bounded_together() {
    let mut model = families(|_| {});
    let ask = |model: &mut (Server, Client), count: usize| {
        let base = NodeId::numeric(0, schema::ids::object_type_ids::BASE_OBJECT_TYPE);
        let request = request(&mut model.1, vec![of_type(base, true, vec![]); count], vec![], 1);
        model.1.call(&mut model.0, &request).map(|_| ())
    };
    assert_eq!(ask(&mut model, 2), Ok(()));
    assert_eq!(ask(&mut model, 1_000), Err(StatusCode::BAD_QUERY_TOO_COMPLEX));
}
