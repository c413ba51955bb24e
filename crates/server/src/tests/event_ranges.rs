//! IndexRanges in the select and where clauses of EventFilters (Part 4 §7.22.3, §7.7.4.5).

use super::events::{create, filter, item, next, parameters, subscription, watching};
use super::*;
use crate::NewEvent;
use schema::ids::{object_ids, object_type_ids};
use schema::{
    ContentFilter, ContentFilterElement, EventFilter, EventFilterResult, FilterOperator, LiteralOperand,
    SimpleAttributeOperand,
};
use taktwerk_types::{ByteString, ExtensionObject, LocalizedText, UaString, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const NULL: Variant = Variant::Empty;

/// A clause for a part of a field.
fn part(name: &str, range: &str) -> SimpleAttributeOperand {
    let mut clause = filter(&[name]).select_clauses.remove(0);
    clause.index_range = range.into();
    clause
}

fn selecting(clauses: &[(&str, &str)]) -> EventFilter {
    let select_clauses = clauses.iter().map(|(name, range)| part(name, range)).collect();
    EventFilter { select_clauses, where_clause: ContentFilter::default() }
}

fn matrix() -> Variant {
    Variant::matrix(vec![0i32, 1, 2, 3, 4, 5], vec![2, 3]).unwrap()
}

/// An event with a field of each shape.
fn raise(server: &Server, list: &[i32]) {
    let event = NewEvent::new(NodeId::numeric(0, object_type_ids::BASE_EVENT_TYPE), SERVER)
        .severity(300)
        .message(LocalizedText::new("en", "häuser"))
        .field("List", list.to_vec())
        .field("Matrix", matrix())
        .field("Text", "häuser")
        .field("Bytes", ByteString::from(vec![7, 8, 9]))
        .field("Names", vec![UaString::from("abc"), UaString::from("de"), UaString::from("")])
        .field("Number", 5.0);
    server.space.raise(event, server.now.utc);
}

#[test]
fn a_select_clause_selects_a_part_of_a_field() {
    let names =
        |names: &[&str]| Variant::from(names.iter().map(|name| UaString::from(*name)).collect::<Vec<_>>());
    let cases: [(&str, &str, Variant); 22] = [
        ("List", "", vec![10i32, 11, 12, 13].into()),
        ("List", "1:2", vec![11i32, 12].into()),
        ("List", "3", vec![13i32].into()),
        ("List", "2:9", vec![12i32, 13].into()),
        ("List", "4", NULL),
        ("List", "4:5", NULL),
        ("List", "0,0", NULL),
        ("Matrix", "1,0:1", Variant::matrix(vec![3i32, 4], vec![1, 2]).unwrap()),
        ("Matrix", "0:1,2", Variant::matrix(vec![2i32, 5], vec![2, 1]).unwrap()),
        ("Matrix", "0:9,1:9", Variant::matrix(vec![1i32, 2, 4, 5], vec![2, 2]).unwrap()),
        ("Matrix", "2,0", NULL),
        ("Matrix", "0,3:4", NULL),
        ("Matrix", "1", NULL),
        ("Matrix", "0,0,0", NULL),
        ("Text", "1:2", "äu".into()),
        ("Text", "5", "r".into()),
        ("Text", "6", NULL),
        ("Bytes", "1:5", ByteString::from(vec![8, 9]).into()),
        ("Names", "1:2", names(&["de", ""])),
        ("Names", "0:1,1:2", names(&["bc", "e"])),
        // Part 4 §7.22.3: null if the field is no array, or the event has no such field.
        ("Number", "0", NULL),
        ("Unknown", "0", NULL),
    ];
    let mut server = Server::new();
    let clauses: Vec<_> = cases.iter().map(|(name, range, _)| (*name, *range)).collect();
    let (mut client, ..) = watching(&mut server, SERVER, &selecting(&clauses));
    raise(&server, &[10, 11, 12, 13]);
    let told = next(&mut client, &mut server);
    let [(_, fields)] = told.as_slice() else { panic!("{told:?}") };
    for ((name, range, expected), found) in cases.iter().zip(fields) {
        assert_eq!(found, expected, "{name}[{range}]");
    }
    assert_eq!(fields.len(), cases.len());
}

/// Each event is evaluated by itself: a range may fit one and not another.
#[test]
fn a_range_fits_the_events_that_have_the_part() {
    let mut server = Server::new();
    let (mut client, ..) = watching(&mut server, SERVER, &selecting(&[("List", "2:3")]));
    for list in [&[1, 2, 3, 4][..], &[1, 2, 3], &[1, 2], &[]] {
        raise(&server, list);
    }
    let told: Vec<_> =
        next(&mut client, &mut server).into_iter().map(|(_, fields)| fields[0].clone()).collect();
    assert_eq!(told, [vec![3i32, 4].into(), vec![3i32].into(), NULL, NULL]);
}

/// Texts that are no ranges: the clause is invalid (Part 4 §7.22.3). An item needs a valid clause.
#[test]
fn wrong_ranges_are_reported_for_their_clause() {
    let mut server = Server::new();
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let limit = crate::Limits::default().index_range_dimensions_max;
    let too_many = vec!["0"; limit + 1].join(",");
    let wrong = ["1:1", "2:1", "-1", "a", "1:", ":1", "0,,1", "1:2:3", " 1", "99999999999", &*too_many];
    let clauses: Vec<_> =
        wrong.iter().map(|range| ("List", *range)).chain([("List", "0"), ("Severity", "")]).collect();
    let created = create(&mut client, &mut server, id, item(SERVER, parameters(&selecting(&clauses), 0)));
    assert_eq!(created.status_code, StatusCode::GOOD);
    let result: EventFilterResult = created.filter_result.decode().unwrap();
    let mut expected = vec![StatusCode::BAD_INDEX_RANGE_INVALID; wrong.len()];
    expected.extend([StatusCode::GOOD; 2]);
    assert_eq!(result.select_clause_results, expected);
    raise(&server, &[10, 11]);
    let told = next(&mut client, &mut server);
    let (valid, nothing) = (&told[0].1[wrong.len()..], &told[0].1[..wrong.len()]);
    let expected: [Variant; 2] = [vec![10i32].into(), 300u16.into()];
    assert_eq!(valid, expected);
    assert!(nothing.iter().all(|value| *value == NULL), "{nothing:?}");
    let only_wrong = selecting(&[("List", "2:1")]);
    let created = create(&mut client, &mut server, id, item(SERVER, parameters(&only_wrong, 0)));
    assert_eq!(created.status_code, StatusCode::BAD_EVENT_FILTER_INVALID);
}

fn condition(operator: FilterOperator, operand: &SimpleAttributeOperand, value: Variant) -> ContentFilter {
    let filter_operands =
        vec![ExtensionObject::new(operand), ExtensionObject::new(&LiteralOperand { value })];
    ContentFilter { elements: vec![ContentFilterElement { filter_operator: operator, filter_operands }] }
}

#[test]
fn a_where_clause_compares_a_part_of_a_field() {
    let equals = FilterOperator::EQUALS;
    for (operator, name, range, value, passes) in [
        (equals, "List", "1:2", Variant::from(vec![11i32, 12]), true),
        (equals, "List", "1:2", vec![11i32, 13].into(), false),
        (equals, "List", "", vec![11i32, 12].into(), false),
        (equals, "Text", "0:1", "hä".into(), true),
        (equals, "Text", "0:1", "ha".into(), false),
        (FilterOperator::LIKE, "Text", "2:5", "us%".into(), true),
        (FilterOperator::LIKE, "Text", "1:5", "us%".into(), false),
        (equals, "Bytes", "2", ByteString::from(vec![9]).into(), true),
        (equals, "Matrix", "1,0:1", Variant::matrix(vec![3i32, 4], vec![1, 2]).unwrap(), true),
        (equals, "Matrix", "0,0:1", Variant::matrix(vec![3i32, 4], vec![1, 2]).unwrap(), false),
        // Outside: null, for which no comparison is true.
        (equals, "List", "7", vec![11i32].into(), false),
        (equals, "Matrix", "7,7", matrix(), false),
        (equals, "Text", "7", "".into(), false),
        (equals, "Number", "0", 5.0.into(), false),
    ] {
        let mut server = Server::new();
        let mut wanted = filter(&["Severity"]);
        wanted.where_clause = condition(operator, &part(name, range), value.clone());
        let (mut client, ..) = watching(&mut server, SERVER, &wanted);
        raise(&server, &[10, 11, 12, 13]);
        let count = next(&mut client, &mut server).len();
        assert_eq!(count, usize::from(passes), "{name}[{range}] {operator:?} {value}");
    }
    // IsNull finds events without the part.
    let mut server = Server::new();
    let mut wanted = filter(&["Severity"]);
    let operand = ExtensionObject::new(&part("List", "1"));
    wanted.where_clause.elements = vec![ContentFilterElement {
        filter_operator: FilterOperator::IS_NULL,
        filter_operands: vec![operand],
    }];
    let (mut client, ..) = watching(&mut server, SERVER, &wanted);
    [&[1][..], &[1, 2], &[]].iter().for_each(|list| raise(&server, list));
    assert_eq!(next(&mut client, &mut server).len(), 2);
}

/// Two parts of a field are different operands, and a wrong range is reported for its operand.
#[test]
fn operands_of_a_where_clause_have_their_own_ranges() {
    let mut server = Server::new();
    let between = |low: &str, high: &str| {
        let operands = [part("Text", low), part("Text", high)].map(|one| ExtensionObject::new(&one));
        let element = ContentFilterElement {
            filter_operator: FilterOperator::EQUALS,
            filter_operands: operands.into(),
        };
        let mut wanted = filter(&["Severity"]);
        wanted.where_clause.elements = vec![element];
        wanted
    };
    let (mut same, ..) = watching(&mut server, SERVER, &between("1", "1"));
    let (mut other, ..) = watching(&mut server, SERVER, &between("1", "2"));
    raise(&server, &[]);
    assert_eq!(next(&mut same, &mut server).len(), 1);
    assert_eq!(next(&mut other, &mut server).len(), 0);
    let mut client = server.session();
    let id = subscription(&mut client, &mut server);
    let created = create(&mut client, &mut server, id, item(SERVER, parameters(&between("1", "2:1"), 0)));
    assert_eq!(created.status_code, StatusCode::BAD_EVENT_FILTER_INVALID);
    let result: EventFilterResult = created.filter_result.decode().unwrap();
    let element = &result.where_clause_result.element_results[0];
    assert_eq!(element.status_code, StatusCode::BAD_FILTER_OPERAND_INVALID);
    let statuses = [StatusCode::GOOD, StatusCode::BAD_INDEX_RANGE_INVALID];
    assert_eq!(element.operand_status_codes, statuses);
}
