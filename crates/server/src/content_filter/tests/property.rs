//! Random filters against the evaluator in [`naive`].

use super::{LIMITS, Model, NodeModel, Subject, element, field, literal, naive, row};
use crate::content_filter::compile::{Resolve, compile};
use crate::content_filter::convert::{is_explicit, is_implicit};
use core::cell::{Cell, RefCell};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use taktwerk_schema::{ContentFilter, ContentFilterElement, FilterOperator as Op};
use taktwerk_types::{
    BuiltInType, ByteString, ExpandedNodeId, ExtensionObject, Guid, LocalizedText, NodeId, QualifiedName,
    StatusCode, UaString, UtcTime, Variant,
};

/// Numbers near each other in all types, so that many are equal and many do not fit.
fn any_number() -> BoxedStrategy<Variant> {
    prop_oneof![
        any::<bool>().prop_map(Variant::from),
        (-2i8..4).prop_map(Variant::from),
        prop_oneof![0u8..4, Just(u8::MAX)].prop_map(Variant::from),
        prop_oneof![-2i16..4, Just(i16::MIN), Just(500)].prop_map(Variant::from),
        prop_oneof![0u16..4, Just(0x8001), Just(500)].prop_map(Variant::from),
        prop_oneof![-2i32..4, Just(i32::MIN), Just(0x8001_0000u32 as i32), Just(500)].prop_map(Variant::from),
        prop_oneof![0u32..4, Just(u32::MAX), Just(0x8001_0000)].prop_map(Variant::from),
        prop_oneof![-2i64..4, Just(i64::MIN), Just(0x8001_0000)].prop_map(Variant::from),
        prop_oneof![0u64..4, Just(u64::MAX), Just((1 << 60) + (1 << 36) + 1)].prop_map(Variant::from),
        prop_oneof![Just(f32::NAN), Just(1.0), Just(0.0), Just(-1.5), Just(2.5), Just(1e30)]
            .prop_map(Variant::from),
        prop_oneof![Just(f64::NAN), Just(1.0), Just(1.5), Just(-2.0), Just(1e300), Just(f64::INFINITY)]
            .prop_map(Variant::from),
    ]
    .boxed()
}

const GUID: &str = "72962b91-fa75-4ae6-8d28-b404dc7daf63";

fn any_text() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("1"),
        Just("0"),
        Just("1.5"),
        Just("true"),
        Just("fAlse"),
        Just("500"),
        Just("pump"),
        Just(" 1:pump "),
        Just(""),
        Just("i=2"),
        Just("ns=1;s=pump"),
        Just(GUID),
        Just("1601-01-01T00:00:00.0000002Z"),
    ]
}

fn any_identity() -> BoxedStrategy<Variant> {
    let id = prop_oneof![Just(NodeId::NULL), Just(NodeId::numeric(0, 2)), Just(NodeId::string(1, "pump")),];
    let guid = GUID.parse::<Guid>().unwrap();
    prop_oneof![
        id.clone().prop_map(Variant::from),
        id.prop_map(|id| ExpandedNodeId::from(id).into()),
        any::<bool>().prop_map(|is_remote| {
            let mut id = ExpandedNodeId::from(NodeId::numeric(0, 2));
            if is_remote {
                id.server_index = 1;
            } else {
                id.namespace_uri = "urn:other".into();
            }
            id.into()
        }),
        Just(guid.into()),
        Just(ByteString::from(guid.as_bytes().as_slice()).into()),
        Just(ByteString::NULL.into()),
    ]
    .boxed()
}

/// Every type that has a conversion, and nulls.
fn any_value() -> BoxedStrategy<Variant> {
    prop_oneof![
        1 => Just(Variant::Empty),
        8 => any_number(),
        4 => any_text().prop_map(Variant::from),
        2 => any_identity(),
        1 => any_text().prop_map(|text| LocalizedText::new("en", text).into()),
        1 => any_text().prop_map(|text| QualifiedName::new(1, text).into()),
        1 => (0i64..4).prop_map(|ticks| UtcTime::from_ticks(ticks).into()),
        1 => prop_oneof![Just(0u32), Just(1), Just(0x8001_0000), Just(0x8001_0003)]
            .prop_map(|code| StatusCode(code).into()),
        1 => Just(UaString::NULL.into()),
        2 => any_array(),
    ]
    .boxed()
}

fn any_array() -> BoxedStrategy<Variant> {
    fn of<V: core::fmt::Debug + Clone + 'static>(
        one: impl Strategy<Value = V> + 'static,
    ) -> BoxedStrategy<Variant>
    where
        Variant: From<Vec<V>>,
    {
        proptest::collection::vec(one, 0..3).prop_map(Variant::from).boxed()
    }
    prop_oneof![
        of(0u8..3),
        of(-1i16..3),
        of(0i32..3),
        of(0u64..3),
        of(prop_oneof![Just(1.0), Just(2.0)]),
        of(any::<bool>()),
        of(any_text().prop_map(UaString::from)),
    ]
    .boxed()
}

fn any_pattern() -> BoxedStrategy<ExtensionObject> {
    prop_oneof![Just("%"), Just("%u%"), Just("_"), Just("[0-9]%"), Just("p[^a]mp"), Just("ns=1;%")]
        .prop_map(literal)
        .boxed()
}

fn any_operand(later: core::ops::Range<u32>) -> BoxedStrategy<ExtensionObject> {
    let plain = prop_oneof![any_value().prop_map(literal), (0u32..5).prop_map(field)];
    if later.is_empty() {
        plain.boxed()
    } else {
        prop_oneof![1 => plain, 2 => later.prop_map(element)].boxed()
    }
}

fn any_cast() -> impl Strategy<Value = ExtensionObject> {
    (1u32..=21).prop_map(|number| literal(NodeId::numeric(0, number)))
}

fn any_element(index: u32, count: u32) -> BoxedStrategy<ContentFilterElement> {
    let operand = move || any_operand(index + 1..count);
    let operands = move |operator: Op, len: usize| {
        proptest::collection::vec(operand(), len).prop_map(move |operands| row(operator, operands)).boxed()
    };
    let type_number = (0u32..8).prop_map(|number| literal(NodeId::numeric(0, number)));
    prop_oneof![
        operands(Op::EQUALS, 2),
        operands(Op::IS_NULL, 1),
        operands(Op::GREATER_THAN, 2),
        operands(Op::LESS_THAN, 2),
        operands(Op::GREATER_THAN_OR_EQUAL, 2),
        operands(Op::LESS_THAN_OR_EQUAL, 2),
        operands(Op::NOT, 1),
        operands(Op::BETWEEN, 3),
        operands(Op::IN_LIST, 4),
        operands(Op::AND, 2),
        operands(Op::OR, 2),
        operands(Op::BITWISE_AND, 2),
        operands(Op::BITWISE_OR, 2),
        operands(Op::LIKE, 2),
        (operand(), any_pattern()).prop_map(|(value, pattern)| row(Op::LIKE, vec![value, pattern])),
        (operand(), any_cast()).prop_map(|(value, to)| row(Op::CAST, vec![value, to])),
        type_number.prop_map(|kind| row(Op::OF_TYPE, vec![kind])),
    ]
    .boxed()
}

/// RelatedTo or InView (Part 4 §7.7.3).
fn any_node_element() -> impl Strategy<Value = ContentFilterElement> {
    (0u32..3, 4usize..=6, any::<bool>()).prop_map(|(number, len, is_view)| {
        if is_view {
            return row(Op::IN_VIEW, vec![literal(NodeId::numeric(0, number))]);
        }
        row(Op::RELATED_TO, vec![literal(number); len])
    })
}

fn any_filter(for_nodes: bool) -> impl Strategy<Value = ContentFilter> {
    (1u32..6).prop_flat_map(move |count| {
        let any = |index| match for_nodes {
            true => prop_oneof![any_element(index, count), any_node_element()].boxed(),
            false => any_element(index, count),
        };
        let elements: Vec<_> = (0..count).map(any).collect();
        elements.prop_map(|elements| ContentFilter { elements })
    })
}

/// Compares random filters, and counts how many compile and pass.
fn compare<R: Resolve<Type = u32>>(for_nodes: bool, model: impl Fn() -> R) {
    const CASES: u32 = 2_000;
    let (compiles, passes) = (Cell::new(0u32), Cell::new(0u32));
    let fields = proptest::collection::vec(any_value(), 0..5);
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let result = runner.run(&(any_filter(for_nodes), fields, 0u32..8), |(filter, fields, kind)| {
        let compiled = compile(&filter, LIMITS, &mut model()).ok().and_then(|compiled| compiled.filter);
        let Some(compiled) = compiled else { return Ok(()) };
        compiles.set(compiles.get() + 1);
        let expected = naive::passes(&filter, &fields, kind);
        passes.set(passes.get() + u32::from(expected));
        prop_assert_eq!(compiled.passes(&Subject::new(fields, kind)), expected);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (compiles, passes) = (compiles.get(), passes.get());
    assert!(compiles > CASES * 95 / 100, "only {compiles} of {CASES} filters compile");
    assert!(passes > CASES / 40, "only {passes} of {CASES} filters pass");
}

#[test]
fn compiled_filters_agree_with_the_naive_evaluator() {
    compare(false, || Model);
}

#[test]
fn relations_and_views_agree_with_the_naive_evaluator() {
    compare(true, || NodeModel);
}

/// Each operator alone, with values of every type: none hides the result of another.
#[test]
fn single_operators_agree_with_the_naive_evaluator() {
    let strategy = (any_element(0, 1), proptest::collection::vec(any_value(), 5), 0u32..8);
    let counts = RefCell::new(BTreeMap::<(u32, Option<bool>), u32>::new());
    let mut runner =
        TestRunner::new(Config { cases: 15_000, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |(element, fields, kind)| {
        let operator = element.filter_operator.0 as u32;
        let mut results = [false; 2];
        // The negation distinguishes false from null.
        for (is_negated, result) in [false, true].into_iter().zip(&mut results) {
            let mut elements = vec![element.clone()];
            if is_negated {
                elements.insert(0, row(Op::NOT, vec![super::element(1)]));
            }
            let filter = ContentFilter { elements };
            let compiled = compile(&filter, LIMITS, &mut Model).ok().and_then(|compiled| compiled.filter);
            *result = naive::passes(&filter, &fields, kind);
            let subject = Subject::new(fields.clone(), kind);
            prop_assert_eq!(compiled.map(|compiled| compiled.passes(&subject)), Some(*result));
        }
        let truth = match results {
            [true, _] => Some(true),
            [_, true] => Some(false),
            _ => None,
        };
        *counts.borrow_mut().entry((operator, truth)).or_default() += 1;
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    for operator in (0..18).filter(|operator| !matches!(operator, 13 | 15)) {
        let count = |truth| counts.borrow().get(&(operator, truth)).copied().unwrap_or(0);
        // Bitwise operations have no truth value, and Cast has one only for the type Boolean.
        let is_condition = !matches!(operator, 12 | 16 | 17);
        let (is_true, is_false) = (count(Some(true)), count(Some(false)));
        assert!(
            !is_condition || is_true + is_false >= 5,
            "operator {operator}: {is_true} × true, {is_false} × false"
        );
    }
}

/// Casts and bitwise operations as operands of a comparison.
#[test]
fn results_that_are_values_agree_with_the_naive_evaluator() {
    let operand = || any_operand(2..2);
    let inner = prop_oneof![
        (operand(), any_cast()).prop_map(|(value, to)| row(Op::CAST, vec![value, to])),
        [operand(), operand()].prop_map(|operands| row(Op::BITWISE_AND, operands.into())),
        [operand(), operand()].prop_map(|operands| row(Op::BITWISE_OR, operands.into())),
    ];
    let operators =
        prop_oneof![Just(Op::EQUALS), Just(Op::LESS_THAN), Just(Op::GREATER_THAN_OR_EQUAL), Just(Op::LIKE),];
    let strategy = (
        inner,
        operators,
        any_value(),
        any_pattern(),
        proptest::collection::vec(any_value(), 5),
        any::<bool>(),
    );
    let passes = Cell::new(0u32);
    const CASES: u32 = 8_000;
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |(inner, operator, value, pattern, fields, is_negated)| {
        let other = if operator == Op::LIKE { pattern } else { literal(value) };
        let mut elements = vec![row(operator, vec![element(1), other]), inner];
        if is_negated {
            elements = vec![row(Op::NOT, vec![element(1)]), elements[0].clone(), elements[1].clone()];
            elements[1].filter_operands[0] = element(2);
        }
        let filter = ContentFilter { elements };
        let compiled = compile(&filter, LIMITS, &mut Model).ok().and_then(|compiled| compiled.filter);
        let expected = naive::passes(&filter, &fields, 0);
        passes.set(passes.get() + u32::from(expected));
        let subject = Subject::new(fields, 0);
        prop_assert_eq!(compiled.map(|compiled| compiled.passes(&subject)), Some(expected));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let passes = passes.get();
    assert!(passes > CASES / 100, "only {passes} of {CASES} filters pass");
}

#[test]
fn the_conversions_are_those_of_the_table() {
    for from in BuiltInType::ALL {
        for to in BuiltInType::ALL.into_iter().filter(|to| *to != from) {
            let rule = naive::rule(from, to);
            assert_eq!(is_implicit(from, to), rule == 'I', "implicit: {from} to {to}");
            assert_eq!(is_explicit(from, to), rule != 'X', "by Cast: {from} to {to}");
        }
    }
}
