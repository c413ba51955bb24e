//! Compiled filters: each operator, and errors. [`property`] compares random filters with an independent evaluator
//! ([`naive`]), which works on the wire format.

mod naive;
mod property;

use super::compile::{FilterLimits, Resolve, compile};
use super::{Evaluate, Filter};
use core::cell::Cell;
use std::borrow::Cow;
use taktwerk_schema::{
    ContentFilter, ContentFilterElement, ContentFilterElementResult, ElementOperand, FilterOperator as Op,
    LiteralOperand, SimpleAttributeOperand,
};
use taktwerk_types::{BuiltInType, ExtensionObject, LocalizedText, NodeId, StatusCode, Variant};

/// A field is identified by the number in its AttributeId. Types are numbers; each is a subtype of the smaller ones.
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

/// The same for nodes, which have relations and are in Views. A relation is identified by the number in its first
/// operand, a View by the number of its id.
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

/// Which relations hold, and which Views contain the node; the third one is unknown.
fn holds(number: u32) -> Option<bool> {
    (number != 2).then_some(number == 1)
}

struct Subject {
    fields: Vec<Variant>,
    kind: u32,
    /// Work so far, and the limit.
    spent: Cell<usize>,
    spent_max: usize,
    /// Number of fields read.
    read: Cell<usize>,
}

impl Subject {
    fn new(fields: Vec<Variant>, kind: u32) -> Self {
        Self { fields, kind, spent: Cell::new(0), spent_max: usize::MAX, read: Cell::new(0) }
    }
}

impl Evaluate<u32> for Subject {
    fn field(&self, number: u32) -> Cow<'_, Variant> {
        self.read.set(self.read.get() + 1);
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
    fn spend(&self, steps: usize) -> bool {
        self.spent.set(self.spent.get() + steps);
        self.spent.get() <= self.spent_max
    }
    fn left(&self) -> usize {
        self.spent_max.saturating_sub(self.spent.get())
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
    compiled(&ContentFilter { elements: rows }).unwrap().passes(&Subject::new(fields, 5))
}

#[test]
fn each_operator_is_evaluated() {
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
    // Null does not pass, and neither does its negation.
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
fn errors_are_reported_for_their_element() {
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
fn loops_and_exponential_filters_are_refused() {
    let looped = vec![row(Op::NOT, vec![element(1)]), row(Op::NOT, vec![element(0)])];
    assert!(compile(&ContentFilter { elements: looped }, LIMITS, &mut Model).is_err());
    // Each element doubles the cost of the previous one.
    let mut rows: Vec<_> = (1..40u32).map(|next| row(Op::AND, vec![element(next), element(next)])).collect();
    rows.push(row(Op::IS_NULL, vec![field(0)]));
    assert!(compile(&ContentFilter { elements: rows }, LIMITS, &mut Model).is_err());
    let mut deep: Vec<_> = (1..200u32).map(|next| row(Op::NOT, vec![element(next)])).collect();
    deep.push(row(Op::IS_NULL, vec![field(0)]));
    assert!(compile(&ContentFilter { elements: deep }, LIMITS, &mut Model).is_err());
    // Two halves, neither of which is too deep: the first is already evaluated when the second one refers to it.
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

/// Clients choose the operands and sometimes the fields: the work of every operator is counted, and ends at the limit with
/// an unknown result, which is not true, and neither is its negation.
#[test]
fn the_work_of_every_operator_is_counted_and_limited() {
    let long = "a".repeat(1 << 20);
    let text = || literal(long.as_str());
    let operators = [
        (Op::EQUALS, vec![text(), text()]),
        (Op::GREATER_THAN, vec![text(), text()]),
        (Op::LESS_THAN, vec![text(), text()]),
        (Op::GREATER_THAN_OR_EQUAL, vec![text(), text()]),
        (Op::LESS_THAN_OR_EQUAL, vec![text(), text()]),
        (Op::LIKE, vec![text(), literal("%b")]),
        (Op::LIKE, vec![field(0), literal("%b")]),
        (Op::LIKE, vec![field(0), field(0)]),
        (Op::IN_LIST, vec![text(), text(), text()]),
        (Op::BETWEEN, vec![text(), text(), text()]),
        (Op::IS_NULL, vec![text()]),
        (Op::EQUALS, vec![field(1), field(1)]),
    ];
    let numbers: Variant = vec![7i32; 1 << 18].into();
    for (operator, operands) in operators {
        let filter = |is_negated: bool| {
            let mut rows = vec![row(operator, operands.clone())];
            if is_negated {
                rows.insert(0, row(Op::NOT, vec![element(1)]));
            }
            compiled(&ContentFilter { elements: rows }).unwrap()
        };
        let subject = Subject::new(vec![long.as_str().into(), numbers.clone()], 5);
        filter(false).passes(&subject);
        assert!(subject.spent.get() >= (1 << 20) / 64, "{operator:?}: {}", subject.spent.get());
        for is_negated in [false, true] {
            let subject =
                Subject { spent_max: 100, ..Subject::new(vec![long.as_str().into(), numbers.clone()], 5) };
            // Nothing is known of a value that is not looked at.
            assert!(!filter(is_negated).passes(&subject), "{operator:?}");
        }
    }
}

/// The limit is for the whole filter, however many elements and operands it has, and nothing is read beyond it.
#[test]
fn nothing_is_evaluated_when_the_limit_is_reached() {
    let long = "a".repeat(10_000);
    let likes = |count: u32| {
        let mut rows: Vec<_> =
            (1..count).map(|at| row(Op::OR, vec![element(count - 1 + at), element(at)])).collect();
        rows.push(row(Op::NOT, vec![literal(true)]));
        rows.extend((1..count).map(|_| row(Op::LIKE, vec![field(0), literal("%b")])));
        rows
    };
    let listed =
        vec![row(Op::IN_LIST, vec![literal("b"); 2].into_iter().chain(vec![field(0); 900]).collect())];
    for rows in [likes(40), vec![row(Op::IN_LIST, vec![field(0); 900])], listed] {
        let filter = compiled(&ContentFilter { elements: rows }).unwrap();
        let subject = Subject { spent_max: 50_000, ..Subject::new(vec![long.as_str().into()], 5) };
        filter.passes(&subject);
        assert!(subject.spent.get() <= 50_200, "{}", subject.spent.get());
    }
    let exhausted = Subject { spent_max: 0, ..Subject::new(vec![long.as_str().into()], 5) };
    let filter = compiled(&ContentFilter { elements: vec![row(Op::IS_NULL, vec![field(0)])] }).unwrap();
    assert!(!filter.passes(&exhausted));
    assert_eq!(exhausted.read.get(), 0);
}

/// Converting an element takes much longer than its bytes tell.
#[test]
fn each_converted_element_of_an_array_is_counted() {
    let bits: Variant = vec![true; 10_000].into();
    let cast = vec![
        row(Op::IS_NULL, vec![element(1)]),
        row(Op::CAST, vec![field(0), literal(NodeId::numeric(0, 12))]),
    ];
    let mixed = vec![row(Op::EQUALS, vec![field(0), literal(vec![1u16; 10_000])])];
    let listed = vec![row(Op::IN_LIST, vec![literal(vec![1u16; 10_000]), field(0)])];
    for rows in [cast, mixed, listed] {
        let filter = compiled(&ContentFilter { elements: rows }).unwrap();
        let subject = Subject::new(vec![bits.clone()], 5);
        filter.passes(&subject);
        assert!(subject.spent.get() >= 10 * 10_000, "{}", subject.spent.get());
    }
}

#[test]
fn literals_that_take_much_memory_or_time_are_refused() {
    let refused = |operand: ExtensionObject| {
        let rows = vec![row(Op::LIKE, vec![field(0), operand])];
        let compiled = compile(&ContentFilter { elements: rows }, LIMITS, &mut Model).unwrap();
        compiled.result.element_results.first().map(|result| result.operand_status_codes[1])
    };
    assert_eq!(refused(literal("a".repeat(4096).as_str())), None);
    assert_eq!(refused(literal("[".repeat(4097).as_str())), Some(StatusCode::BAD_FILTER_LITERAL_INVALID));
    // One byte each in the message.
    let nothing = literal(vec![Variant::Empty; 4_000_000]);
    assert_eq!(refused(nothing), Some(StatusCode::BAD_FILTER_OPERAND_INVALID));
}
