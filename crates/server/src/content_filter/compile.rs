//! Compiles a ContentFilter from the wire (Part 4 §7.7.1, §7.7.2).

use super::like::{PATTERN_LEN_MAX, Pattern};
use super::{Element, Filter, Operand};
use taktwerk_schema::{
    AttributeOperand, ContentFilter, ContentFilterElement, ContentFilterElementResult, ContentFilterResult,
    ElementOperand, FilterOperator as Op, LiteralOperand, SimpleAttributeOperand,
};
use taktwerk_types::{BuiltInType, ExtensionObject, NodeId, StatusCode, Variant};

/// Resolves operands.
pub(crate) trait Resolve {
    /// A type of nodes.
    type Type;

    /// The number of an operand's field.
    ///
    /// # Errors
    /// The status of the operand.
    fn field(&mut self, operand: SimpleAttributeOperand) -> Result<u32, StatusCode>;

    /// The number of an AttributeOperand's field. Part 4 §7.22.3: events are filtered by SimpleAttributeOperands.
    ///
    /// # Errors
    /// The status of the operand.
    fn attribute(&mut self, _operand: AttributeOperand) -> Result<u32, StatusCode> {
        Err(StatusCode::BAD_NOT_SUPPORTED)
    }

    /// The number of a RelatedTo's relation; `index` is the number of its element.
    ///
    /// # Errors
    /// The result of the element.
    fn related(
        &mut self,
        _index: u32,
        _element: &ContentFilterElement,
    ) -> Result<u32, ContentFilterElementResult> {
        Err(refusal(StatusCode::BAD_FILTER_OPERATOR_UNSUPPORTED))
    }

    /// The number of the View of an InView.
    ///
    /// # Errors
    /// The result of the element; Bad_FilterOperatorUnsupported if Views are not supported.
    fn view(&mut self, _id: &NodeId) -> Result<u32, StatusCode> {
        Err(StatusCode::BAD_FILTER_OPERATOR_UNSUPPORTED)
    }

    /// The type of an OfType.
    ///
    /// # Errors
    /// The status of the operand.
    fn of_type(&mut self, id: &NodeId) -> Result<Self::Type, StatusCode>;

    /// The built-in type that values of a data type are encoded as, for Cast.
    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType>;
}

/// Limits for filters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterLimits {
    /// Maximum number of elements, and of operands in total.
    pub(crate) operands_max: usize,
}

/// Maximum number of element evaluations per event, as a multiple of the number of elements. An element can be an
/// operand of several others.
const COST_FACTOR: usize = 4;
/// Maximum nesting depth of elements.
const DEPTH_MAX: usize = 64;

/// The compiled filter, or the errors by element.
pub(crate) struct Compiled<T> {
    /// `None` if an element is in error.
    pub(crate) filter: Option<Filter<T>>,
    /// Empty without errors.
    pub(crate) result: ContentFilterResult,
}

/// Checks and compiles a filter.
///
/// # Errors
/// Bad_EventFilterInvalid, or a status such as Bad_TooManyOperations, for the filter as a whole: it is too large, or
/// its elements form a loop.
pub(crate) fn compile<R: Resolve>(
    filter: &ContentFilter,
    limits: FilterLimits,
    resolve: &mut R,
) -> Result<Compiled<R::Type>, StatusCode> {
    let operands: usize = filter.elements.iter().map(|element| element.filter_operands.len()).sum();
    if filter.elements.len() > limits.operands_max || operands > limits.operands_max {
        return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
    }
    let count = filter.elements.len();
    let mut elements = Vec::with_capacity(count);
    let mut results = Vec::with_capacity(count);
    let mut is_good = true;
    for (index, element) in (0u32..).zip(&filter.elements) {
        match compile_element(index, element, count, resolve) {
            Ok(compiled) => {
                elements.push(compiled);
                results.push(ContentFilterElementResult::default());
            }
            Err(result) => {
                is_good = false;
                results.push(result);
            }
        }
    }
    if !is_good {
        let result = ContentFilterResult { element_results: results, ..Default::default() };
        return Ok(Compiled { filter: None, result });
    }
    if let Some(cost) = cost(&elements)
        && cost <= COST_FACTOR * count.max(16)
    {
        let filter = Some(Filter { elements: elements.into() });
        return Ok(Compiled { filter, result: ContentFilterResult::default() });
    }
    Err(StatusCode::BAD_EVENT_FILTER_INVALID)
}

fn refusal(status: StatusCode) -> ContentFilterElementResult {
    ContentFilterElementResult { status_code: status, ..Default::default() }
}

fn compile_element<R: Resolve>(
    index: u32,
    element: &ContentFilterElement,
    count: usize,
    resolve: &mut R,
) -> Result<Element<R::Type>, ContentFilterElementResult> {
    let operator = element.filter_operator;
    let wanted = match operator {
        Op::IS_NULL | Op::NOT | Op::OF_TYPE => 1..=1,
        Op::BETWEEN => 3..=3,
        Op::IN_LIST => 2..=usize::MAX,
        Op::EQUALS
        | Op::GREATER_THAN
        | Op::LESS_THAN
        | Op::GREATER_THAN_OR_EQUAL
        | Op::LESS_THAN_OR_EQUAL
        | Op::LIKE
        | Op::AND
        | Op::OR
        | Op::CAST
        | Op::BITWISE_AND
        | Op::BITWISE_OR => 2..=2,
        Op::RELATED_TO => return compile_relation(index, element, count, resolve),
        Op::IN_VIEW => return compile_in_view(element, resolve),
        _ => return Err(refusal(StatusCode::BAD_FILTER_OPERATOR_INVALID)),
    };
    if !wanted.contains(&element.filter_operands.len()) {
        return Err(refusal(StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH));
    }
    let mut operands = Vec::with_capacity(element.filter_operands.len());
    let mut statuses = Vec::with_capacity(element.filter_operands.len());
    for (at, operand) in element.filter_operands.iter().enumerate() {
        match compile_operand(operator, at, operand, count, resolve) {
            Ok(operand) => {
                operands.push(operand);
                statuses.push(StatusCode::GOOD);
            }
            Err(status) => statuses.push(status),
        }
    }
    if operands.len() < statuses.len() {
        return Err(ContentFilterElementResult {
            status_code: StatusCode::BAD_FILTER_OPERAND_INVALID,
            operand_status_codes: statuses,
            ..Default::default()
        });
    }
    Ok(Element { operator, operands: operands.into() })
}

/// A RelatedTo: its relation, and its target if that is an element.
fn compile_relation<R: Resolve>(
    index: u32,
    element: &ContentFilterElement,
    count: usize,
    resolve: &mut R,
) -> Result<Element<R::Type>, ContentFilterElementResult> {
    let mut operands = vec![Operand::Field(resolve.related(index, element)?)];
    if !(4..=6).contains(&element.filter_operands.len()) {
        return Err(refusal(StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH));
    }
    for operand in element.filter_operands.iter().filter(|operand| operand.is::<ElementOperand>()) {
        match operand.decode::<ElementOperand>() {
            Ok(ElementOperand { index }) if (index as usize) < count => {
                operands.push(Operand::Element(index))
            }
            _ => return Err(refusal(StatusCode::BAD_FILTER_ELEMENT_INVALID)),
        }
    }
    Ok(Element { operator: Op::RELATED_TO, operands: operands.into() })
}

fn compile_in_view<R: Resolve>(
    element: &ContentFilterElement,
    resolve: &mut R,
) -> Result<Element<R::Type>, ContentFilterElementResult> {
    let [operand] = element.filter_operands.as_slice() else {
        return Err(refusal(StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH));
    };
    let id = view_id(operand).map_err(|status| ContentFilterElementResult {
        status_code: StatusCode::BAD_FILTER_OPERAND_INVALID,
        operand_status_codes: vec![status],
        ..Default::default()
    })?;
    let view = resolve.view(&id).map_err(refusal)?;
    Ok(Element { operator: Op::IN_VIEW, operands: [Operand::Field(view)].into() })
}

fn view_id(operand: &ExtensionObject) -> Result<NodeId, StatusCode> {
    if !operand.is::<LiteralOperand>() {
        return Err(StatusCode::BAD_FILTER_OPERAND_INVALID);
    }
    let LiteralOperand { value } = operand.decode().map_err(|_| StatusCode::BAD_FILTER_OPERAND_INVALID)?;
    node_id(value)
}

/// The id in a literal.
fn node_id(value: Variant) -> Result<NodeId, StatusCode> {
    let invalid = StatusCode::BAD_FILTER_LITERAL_INVALID;
    match value {
        Variant::NodeId(id) => Ok(*id),
        Variant::ExpandedNodeId(id) => id.local().cloned().ok_or(invalid),
        _ => Err(invalid),
    }
}

fn compile_operand<R: Resolve>(
    operator: Op,
    at: usize,
    operand: &ExtensionObject,
    count: usize,
    resolve: &mut R,
) -> Result<Operand<R::Type>, StatusCode> {
    let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    if operand.is::<LiteralOperand>() {
        let LiteralOperand { value } = operand.decode().map_err(|_| invalid)?;
        return literal(operator, at, value, resolve);
    }
    if matches!((operator, at), (Op::OF_TYPE, _) | (Op::CAST, 1)) {
        // The compared type must not depend on the event.
        return Err(invalid);
    }
    if operand.is::<ElementOperand>() {
        let ElementOperand { index } = operand.decode().map_err(|_| invalid)?;
        let exists = (index as usize) < count;
        return if exists {
            Ok(Operand::Element(index))
        } else {
            Err(StatusCode::BAD_FILTER_ELEMENT_INVALID)
        };
    }
    if operand.is::<SimpleAttributeOperand>() {
        let operand = operand.decode().map_err(|_| invalid)?;
        return Ok(Operand::Field(resolve.field(operand)?));
    }
    if operand.is::<AttributeOperand>() {
        let operand = operand.decode().map_err(|_| invalid)?;
        return Ok(Operand::Field(resolve.attribute(operand)?));
    }
    Err(invalid)
}

fn literal<R: Resolve>(
    operator: Op,
    at: usize,
    value: Variant,
    resolve: &mut R,
) -> Result<Operand<R::Type>, StatusCode> {
    match (operator, at, value) {
        (Op::OF_TYPE, _, value) => Ok(Operand::Type(resolve.of_type(&node_id(value)?)?)),
        (Op::CAST, 1, value) => resolve
            .built_in_type(&node_id(value)?)
            .map(Operand::Cast)
            .ok_or(StatusCode::BAD_DATA_TYPE_ID_UNKNOWN),
        (Op::LIKE, 1, Variant::String(pattern)) if pattern.as_str().len() > PATTERN_LEN_MAX => {
            Err(StatusCode::BAD_FILTER_LITERAL_INVALID)
        }
        (Op::LIKE, 1, Variant::String(pattern)) if !pattern.is_null() => {
            Ok(Operand::Pattern(Pattern::new(pattern.as_str())))
        }
        (_, _, value) => Ok(Operand::Literal(value)),
    }
}

/// The maximum cost of evaluating an element.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Number of evaluated elements.
    elements: usize,
    /// Nesting depth.
    depth: usize,
}

/// The maximum number of evaluated elements, starting from the first; `None` if elements form a loop or nest too deep.
fn cost<T>(elements: &[Element<T>]) -> Option<usize> {
    let mut known: Vec<Option<Cost>> = vec![None; elements.len()];
    let mut is_open = vec![false; elements.len()];
    for index in 0..elements.len() {
        element_cost(elements, index, 0, &mut known, &mut is_open)?;
    }
    Some(known.first().copied().flatten().map_or(0, |cost| cost.elements))
}

fn element_cost<T>(
    elements: &[Element<T>],
    index: usize,
    depth: usize,
    known: &mut [Option<Cost>],
    is_open: &mut [bool],
) -> Option<Cost> {
    if let Some(cost) = known.get(index).copied().flatten() {
        return Some(cost);
    }
    let open = is_open.get_mut(index)?;
    if depth >= DEPTH_MAX || core::mem::replace(open, true) {
        return None;
    }
    let mut cost = Cost { elements: 1, depth: 1 };
    for operand in &*elements.get(index)?.operands {
        if let Operand::Element(other) = operand {
            let other = element_cost(elements, *other as usize, depth + 1, known, is_open)?;
            cost.elements = cost.elements.saturating_add(other.elements);
            // An element evaluated before adds its depth again.
            cost.depth = cost.depth.max(other.depth + 1);
        }
    }
    if cost.depth > DEPTH_MAX {
        return None;
    }
    *is_open.get_mut(index)? = false;
    *known.get_mut(index)? = Some(cost);
    Some(cost)
}
