//! Compiled filters against an evaluator that works on the wire form, step by step, with rules of its own.

use super::compile::{FilterLimits, Resolve, compile};
use super::{Evaluate, Filter};
use proptest::prelude::*;
use std::borrow::Cow;
use taktwerk_schema::{
    ContentFilter, ContentFilterElement, ContentFilterElementResult, ElementOperand, FilterOperator as Op,
    LiteralOperand, SimpleAttributeOperand,
};
use taktwerk_types::{BuiltInType, ExtensionObject, LocalizedText, NodeId, StatusCode, Variant};

/// Fields are named by the number in their AttributeId; types are numbers, and each is a subtype of the smaller ones.
struct Model;

impl Resolve for Model {
    type Type = u32;
    fn field(&mut self, operand: SimpleAttributeOperand) -> Result<u32, StatusCode> {
        Ok(operand.attribute_id)
    }
    fn of_type(&mut self, id: &NodeId) -> Result<u32, StatusCode> {
        id.ns0().ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
    }
    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType> {
        BuiltInType::from_number(data_type.ns0()?.try_into().ok()?)
    }
}

/// The same for nodes, which have relations and are in Views. Relations are named by the number in their first operand, and
/// Views by that of their id.
struct NodeModel;

impl Resolve for NodeModel {
    type Type = u32;
    fn field(&mut self, operand: SimpleAttributeOperand) -> Result<u32, StatusCode> {
        Model.field(operand)
    }
    fn related(
        &mut self,
        _index: u32,
        element: &ContentFilterElement,
    ) -> Result<u32, ContentFilterElementResult> {
        Ok(number_of(&element.filter_operands[0]))
    }
    fn view(&mut self, id: &NodeId) -> Result<u32, StatusCode> {
        id.ns0().ok_or(StatusCode::BAD_VIEW_ID_UNKNOWN)
    }
    fn of_type(&mut self, id: &NodeId) -> Result<u32, StatusCode> {
        Model.of_type(id)
    }
    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType> {
        Model.built_in_type(data_type)
    }
}

fn number_of(operand: &ExtensionObject) -> u32 {
    match operand.decode::<LiteralOperand>().unwrap().value {
        Variant::UInt32(number) => number,
        Variant::NodeId(id) => id.ns0().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Which relations hold, and which Views have the node; of the third one it is unknown.
fn holds(number: u32) -> Option<bool> {
    (number != 2).then_some(number == 1)
}

struct Subject {
    fields: Vec<Variant>,
    kind: u32,
}

impl Evaluate<u32> for Subject {
    fn field(&self, number: u32) -> Cow<'_, Variant> {
        self.fields.get(number as usize).map_or(Cow::Owned(Variant::Empty), Cow::Borrowed)
    }
    fn is_of_type(&self, kind: &u32) -> bool {
        *kind <= self.kind
    }
    fn is_related(&self, number: u32) -> Option<bool> {
        holds(number)
    }
    fn is_in_view(&self, number: u32) -> Option<bool> {
        holds(number)
    }
}

const LIMITS: FilterLimits = FilterLimits { operands_max: 1000 };

fn compiled(filter: &ContentFilter) -> Option<Filter<u32>> {
    compile(filter, LIMITS, &mut Model).ok()?.filter
}

fn literal(value: impl Into<Variant>) -> ExtensionObject {
    ExtensionObject::new(&LiteralOperand { value: value.into() })
}

fn field(number: u32) -> ExtensionObject {
    ExtensionObject::new(&SimpleAttributeOperand { attribute_id: number, ..Default::default() })
}

fn element(index: u32) -> ExtensionObject {
    ExtensionObject::new(&ElementOperand { index })
}

fn row(operator: Op, operands: Vec<ExtensionObject>) -> ContentFilterElement {
    ContentFilterElement { filter_operator: operator, filter_operands: operands }
}

fn passes(rows: Vec<ContentFilterElement>, fields: Vec<Variant>) -> bool {
    compiled(&ContentFilter { elements: rows }).unwrap().passes(&Subject { fields, kind: 5 })
}

#[test]
fn each_operator_does_what_it_says() {
    let fields = || vec![500u16.into(), LocalizedText::new("en", "pump 7 stopped").into(), Variant::Empty];
    let one = |operator, operands| passes(vec![row(operator, operands)], fields());
    assert!(one(Op::EQUALS, vec![field(0), literal(500i32)]));
    assert!(one(Op::IS_NULL, vec![field(2)]) && !one(Op::IS_NULL, vec![field(0)]));
    assert!(one(Op::GREATER_THAN, vec![field(0), literal(499.5)]));
    assert!(!one(Op::GREATER_THAN, vec![field(0), literal(500i64)]));
    assert!(one(Op::LESS_THAN_OR_EQUAL, vec![field(0), literal(500u64)]));
    assert!(one(Op::LIKE, vec![field(1), literal("%pump%")]));
    assert!(one(Op::BETWEEN, vec![field(0), literal(1u8), literal(500i64)]));
    assert!(!one(Op::BETWEEN, vec![field(0), literal(501i16), literal(600i16)]));
    assert!(one(Op::IN_LIST, vec![field(0), literal("x"), literal("500")]));
    assert!(one(Op::OF_TYPE, vec![literal(NodeId::numeric(0, 5))]));
    assert!(!one(Op::OF_TYPE, vec![literal(NodeId::numeric(0, 6))]));
    // What is unknown does not pass, and neither does its negation.
    let unknown = || row(Op::EQUALS, vec![field(2), literal(1)]);
    assert!(!passes(vec![unknown()], fields()));
    assert!(!passes(vec![row(Op::NOT, vec![element(1)]), unknown()], fields()));
    assert!(passes(vec![row(Op::OR, vec![element(1), literal(true)]), unknown()], fields()));
    let bits = row(Op::BITWISE_AND, vec![field(0), literal(0x100u16)]);
    assert!(passes(vec![row(Op::EQUALS, vec![element(1), literal(0x100u16)]), bits], fields()));
    let cast = row(Op::CAST, vec![field(0), literal(NodeId::numeric(0, 12))]);
    assert!(passes(vec![row(Op::LIKE, vec![element(1), literal("5__")]), cast], fields()));
}

#[test]
fn what_is_wrong_is_said_of_its_element() {
    let status = |rows: Vec<ContentFilterElement>| {
        let compiled = compile(&ContentFilter { elements: rows }, LIMITS, &mut Model).unwrap();
        assert!(compiled.filter.is_none());
        let results = &compiled.result.element_results;
        let bad = results.iter().find(|result| result.status_code.is_bad()).unwrap();
        (bad.status_code, bad.operand_status_codes.iter().copied().find(|status| status.is_bad()))
    };
    let of = |operator, operands| status(vec![row(operator, operands)]);
    assert_eq!(of(Op::EQUALS, vec![literal(1)]).0, StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH);
    assert_eq!(of(Op::RELATED_TO, vec![]).0, StatusCode::BAD_FILTER_OPERATOR_UNSUPPORTED);
    assert_eq!(of(Op(99), vec![]).0, StatusCode::BAD_FILTER_OPERATOR_INVALID);
    let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    assert_eq!(of(Op::NOT, vec![element(1)]), (invalid, Some(StatusCode::BAD_FILTER_ELEMENT_INVALID)));
    assert_eq!(of(Op::OF_TYPE, vec![literal("x")]), (invalid, Some(StatusCode::BAD_FILTER_LITERAL_INVALID)));
    assert_eq!(of(Op::OF_TYPE, vec![field(0)]), (invalid, Some(invalid)));
    assert_eq!(
        of(Op::CAST, vec![field(0), literal(NodeId::numeric(0, 999))]),
        (invalid, Some(StatusCode::BAD_DATA_TYPE_ID_UNKNOWN))
    );
}

#[test]
fn loops_and_what_grows_without_end_are_refused() {
    let looped = vec![row(Op::NOT, vec![element(1)]), row(Op::NOT, vec![element(0)])];
    assert!(compile(&ContentFilter { elements: looped }, LIMITS, &mut Model).is_err());
    // Each element doubles what the one before costs.
    let mut rows: Vec<_> = (1..40u32).map(|next| row(Op::AND, vec![element(next), element(next)])).collect();
    rows.push(row(Op::IS_NULL, vec![field(0)]));
    assert!(compile(&ContentFilter { elements: rows }, LIMITS, &mut Model).is_err());
    let mut deep: Vec<_> = (1..200u32).map(|next| row(Op::NOT, vec![element(next)])).collect();
    deep.push(row(Op::IS_NULL, vec![field(0)]));
    assert!(compile(&ContentFilter { elements: deep }, LIMITS, &mut Model).is_err());
    // Two halves, neither of which is too deep: the first one is known when the second one leads to it.
    let mut halves = vec![row(Op::AND, vec![element(1), element(41)])];
    halves.extend((2..=40).map(|next| row(Op::NOT, vec![element(next)])));
    halves.push(row(Op::IS_NULL, vec![field(0)]));
    let second = |last| {
        let chain = (42..=80).map(|next| row(Op::NOT, vec![element(next)]));
        let elements = halves.iter().cloned().chain(chain).chain([last]).collect();
        compile(&ContentFilter { elements }, LIMITS, &mut Model)
    };
    assert!(second(row(Op::NOT, vec![element(1)])).is_err());
    assert!(second(row(Op::IS_NULL, vec![field(0)])).is_ok_and(|compiled| compiled.filter.is_some()));
    let many = ContentFilter { elements: vec![row(Op::IN_LIST, vec![literal(1); 1001])] };
    assert!(compile(&many, LIMITS, &mut Model).is_err());
}

/// The specification's rules once more, for numbers, texts and truth values, without the code under test.
mod naive {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Value {
        Null,
        Bool(bool),
        Integer(i128, u8),
        Real(f64, u8),
        Text(String),
    }

    fn value(variant: &Variant) -> Value {
        match variant {
            Variant::Boolean(value) => Value::Bool(*value),
            Variant::Byte(value) => Value::Integer((*value).into(), 11),
            Variant::Int16(value) => Value::Integer((*value).into(), 8),
            Variant::UInt32(value) => Value::Integer((*value).into(), 6),
            Variant::Int64(value) => Value::Integer((*value).into(), 3),
            Variant::Double(value) => Value::Real(*value, 1),
            Variant::String(text) => Value::Text(text.as_str().to_owned()),
            _ => Value::Null,
        }
    }

    fn fits(value: i128, rank: u8) -> bool {
        match rank {
            11 => u8::try_from(value).is_ok(),
            8 => i16::try_from(value).is_ok(),
            6 => u32::try_from(value).is_ok(),
            _ => i64::try_from(value).is_ok(),
        }
    }

    /// Both as (real, integer) pairs of one type, or nothing.
    fn meet(one: &Value, other: &Value) -> Option<(Value, Value)> {
        let rank = |value: &Value| match value {
            Value::Integer(_, rank) | Value::Real(_, rank) => *rank,
            Value::Bool(_) => 12,
            Value::Text(_) => 14,
            Value::Null => 99,
        };
        if matches!(one, Value::Null) || matches!(other, Value::Null) {
            return None;
        }
        let to = rank(one).min(rank(other));
        let convert = |value: &Value| -> Option<Value> {
            if rank(value) == to {
                return Some(value.clone());
            }
            let integer = match value {
                Value::Integer(value, _) => *value,
                Value::Bool(value) => (*value).into(),
                Value::Text(text) if to == 1 => {
                    return text.trim().parse().ok().map(|real| Value::Real(real, 1));
                }
                Value::Text(text) if to == 12 => {
                    return match text.trim() {
                        "true" | "1" => Some(Value::Bool(true)),
                        "false" | "0" => Some(Value::Bool(false)),
                        _ => None,
                    };
                }
                Value::Text(text) => text.trim().parse().ok()?,
                _ => return None,
            };
            match to {
                1 => Some(Value::Real(integer as f64, 1)),
                _ => fits(integer, to).then_some(Value::Integer(integer, to)),
            }
        };
        Some((convert(one)?, convert(other)?))
    }

    fn equal(one: &Value, other: &Value) -> Option<bool> {
        if matches!(one, Value::Null) || matches!(other, Value::Null) {
            return None;
        }
        Some(meet(one, other).is_some_and(|(one, other)| match (one, other) {
            (Value::Real(one, _), Value::Real(other, _)) => one == other,
            (one, other) => one == other,
        }))
    }

    fn less(one: &Value, other: &Value) -> Option<core::cmp::Ordering> {
        match meet(one, other)? {
            (Value::Integer(one, _), Value::Integer(other, _)) => Some(one.cmp(&other)),
            (Value::Real(one, _), Value::Real(other, _)) => one.partial_cmp(&other),
            (Value::Text(one), Value::Text(other)) => Some(one.cmp(&other)),
            _ => None,
        }
    }

    fn truth(value: &Value) -> Option<bool> {
        match value {
            Value::Bool(value) => Some(*value),
            Value::Text(text) => match text.trim() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn operand(filter: &ContentFilter, operand: &ExtensionObject, fields: &[Variant]) -> Value {
        if let Ok(literal) = operand.decode::<LiteralOperand>() {
            return value(&literal.value);
        }
        if let Ok(field) = operand.decode::<SimpleAttributeOperand>() {
            return fields.get(field.attribute_id as usize).map_or(Value::Null, value);
        }
        let index = operand.decode::<ElementOperand>().unwrap().index;
        evaluate(filter, index as usize, fields).map_or(Value::Null, Value::Bool)
    }

    pub(super) fn evaluate(filter: &ContentFilter, index: usize, fields: &[Variant]) -> Option<bool> {
        let element = &filter.elements[index];
        if matches!(element.filter_operator, Op::RELATED_TO | Op::IN_VIEW) {
            return holds(number_of(&element.filter_operands[0]));
        }
        let values: Vec<Value> =
            element.filter_operands.iter().map(|it| operand(filter, it, fields)).collect();
        // The truth table of three values, written down.
        let both = |one: Option<bool>, other: Option<bool>| match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        let not = |value: Option<bool>| value.map(|value| !value);
        let ordered = |one: &Value, other: &Value, accepted: &[i8]| {
            less(one, other).map(|order| accepted.contains(&(order as i8)))
        };
        match element.filter_operator {
            Op::EQUALS => equal(&values[0], &values[1]),
            Op::IS_NULL => Some(matches!(values[0], Value::Null)),
            Op::GREATER_THAN => ordered(&values[0], &values[1], &[1]),
            Op::LESS_THAN => ordered(&values[0], &values[1], &[-1]),
            Op::GREATER_THAN_OR_EQUAL => ordered(&values[0], &values[1], &[0, 1]),
            Op::LESS_THAN_OR_EQUAL => ordered(&values[0], &values[1], &[-1, 0]),
            Op::NOT => not(truth(&values[0])),
            Op::AND => both(truth(&values[0]), truth(&values[1])),
            Op::OR => not(both(not(truth(&values[0])), not(truth(&values[1])))),
            Op::BETWEEN => {
                both(ordered(&values[0], &values[1], &[0, 1]), ordered(&values[0], &values[2], &[-1, 0]))
            }
            Op::IN_LIST => {
                let results: Vec<_> = values[1..].iter().map(|it| equal(&values[0], it)).collect();
                if results.contains(&Some(true)) {
                    Some(true)
                } else if results.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            other => panic!("no such operator here: {other:?}"),
        }
    }
}

fn any_value() -> impl Strategy<Value = Variant> {
    prop_oneof![
        Just(Variant::Empty),
        any::<bool>().prop_map(Variant::from),
        (0u8..4).prop_map(Variant::from),
        (-2i16..4).prop_map(Variant::from),
        prop_oneof![0u32..4, Just(u32::MAX)].prop_map(Variant::from),
        prop_oneof![-2i64..4, Just(i64::MIN)].prop_map(Variant::from),
        prop_oneof![Just(f64::NAN), Just(1.0), Just(1.5), Just(-2.0)].prop_map(Variant::from),
        prop_oneof![Just("1"), Just("1.5"), Just("true"), Just("pump"), Just("")].prop_map(Variant::from),
    ]
}

fn any_operand(later: core::ops::Range<u32>) -> BoxedStrategy<ExtensionObject> {
    let plain = prop_oneof![any_value().prop_map(literal), (0u32..5).prop_map(field)];
    if later.is_empty() { plain.boxed() } else { prop_oneof![plain, later.prop_map(element)].boxed() }
}

fn any_element(index: u32, count: u32) -> BoxedStrategy<ContentFilterElement> {
    let operators = prop_oneof![
        Just((Op::EQUALS, 2usize)),
        Just((Op::IS_NULL, 1)),
        Just((Op::GREATER_THAN, 2)),
        Just((Op::LESS_THAN, 2)),
        Just((Op::GREATER_THAN_OR_EQUAL, 2)),
        Just((Op::LESS_THAN_OR_EQUAL, 2)),
        Just((Op::NOT, 1)),
        Just((Op::BETWEEN, 3)),
        Just((Op::IN_LIST, 4)),
        Just((Op::AND, 2)),
        Just((Op::OR, 2)),
    ];
    operators
        .prop_flat_map(move |(operator, len)| {
            proptest::collection::vec(any_operand(index + 1..count), len)
                .prop_map(move |operands| row(operator, operands))
        })
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn compiled_filters_agree_with_the_naive_evaluator(
        filter in any_filter(false),
        fields in proptest::collection::vec(any_value(), 0..5),
    ) {
        let Some(compiled) = compiled(&filter) else { return Ok(()) };
        let expected = naive::evaluate(&filter, 0, &fields) == Some(true);
        let subject = Subject { fields, kind: 0 };
        prop_assert_eq!(compiled.passes(&subject), expected);
    }

    #[test]
    fn relations_and_views_agree_with_the_naive_evaluator(
        filter in any_filter(true),
        fields in proptest::collection::vec(any_value(), 0..5),
    ) {
        let compiled = compile(&filter, LIMITS, &mut NodeModel).ok().and_then(|compiled| compiled.filter);
        let Some(compiled) = compiled else { return Ok(()) };
        let expected = naive::evaluate(&filter, 0, &fields) == Some(true);
        let subject = Subject { fields, kind: 0 };
        prop_assert_eq!(compiled.passes(&subject), expected);
    }
}
