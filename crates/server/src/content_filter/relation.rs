//! RelatedTo (Part 4 §7.7.3): a relation between nodes, read from the wire.
//!
//! It holds for an instance of a type that has references to an instance of another type, or to a node for which the
//! RelatedTo of another element holds. `query/subject.rs` evaluates it.

use crate::node_ix::NodeIx;
use taktwerk_schema::{AttributeOperand, ContentFilterElement, ElementOperand, LiteralOperand};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode, Variant};

/// Maximum number of hops of a RelatedTo. More would lead through most of an address space.
const HOPS_MAX: u32 = 64;
/// The NodeId attribute.
const NODE_ID: u32 = 1;

/// A RelatedTo.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Relation {
    /// The element of the filter.
    pub(crate) element: u32,
    pub(crate) source: NodeIx,
    pub(crate) target: Target,
    pub(crate) reference_type: NodeIx,
    /// Number of hops; 0 means all the way.
    pub(crate) hops: u32,
    pub(crate) include_subtypes: bool,
    pub(crate) include_reference_subtypes: bool,
    /// The alias of the target.
    pub(crate) alias: Box<str>,
    /// Whether it is the target of another RelatedTo.
    pub(crate) is_nested: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// An instance of a type.
    Type(NodeIx),
    /// A node for which the RelatedTo of another element holds.
    Element(u32),
}

/// Resolves the ids in a relation.
pub(crate) trait Names {
    /// An ObjectType or VariableType.
    ///
    /// # Errors
    /// Bad_NodeIdInvalid, Bad_NodeIdUnknown, Bad_NotTypeDefinition
    fn kind(&self, id: &NodeId) -> Result<NodeIx, StatusCode>;

    /// A ReferenceType.
    ///
    /// # Errors
    /// Bad_ReferenceTypeIdInvalid
    fn reference_type(&self, id: &NodeId) -> Result<NodeIx, StatusCode>;
}

/// Whether AttributeOperands may name types. Part 4 §7.22.3: not in an EventFilter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    Literals,
    LiteralsAndAttributes,
}

/// Why an element is not a valid RelatedTo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It has the wrong number of operands.
    Count,
    /// The operand with this number is invalid.
    Operand(usize, StatusCode),
}

impl Refusal {
    /// The status, for any operand.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Count => StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH,
            Self::Operand(_, status) => status,
        }
    }
}

impl Relation {
    /// Parses an element of a filter.
    ///
    /// # Errors
    /// Why it is invalid.
    pub(crate) fn read(
        element: u32,
        from: &ContentFilterElement,
        allowed: Operands,
        names: &dyn Names,
    ) -> Result<Self, Refusal> {
        let operands = from.filter_operands.as_slice();
        // Annex B.3 omits the last two operands.
        let [source, second, reference_type, number, flags @ ..] = operands else {
            return Err(Refusal::Count);
        };
        if flags.len() > 2 {
            return Err(Refusal::Count);
        }
        let of = |at: usize| move |status: StatusCode| Refusal::Operand(at, status);
        let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
        let named = |at: usize, operand| named(operand, allowed).map_err(of(at));
        let source = names.kind(&named(0, source)?.0).map_err(of(0))?;
        let (target, alias) = if second.is::<ElementOperand>() {
            let ElementOperand { index } = second.decode().map_err(|_| of(1)(invalid))?;
            (Target::Element(index), "".into())
        } else {
            let (id, alias) = named(1, second)?;
            (Target::Type(names.kind(&id).map_err(of(1))?), alias)
        };
        let reference_type = names.reference_type(&named(2, reference_type)?.0).map_err(of(2))?;
        let hops = literal(number).and_then(|value| hops(&value).ok_or(invalid)).map_err(of(3))?;
        if hops > HOPS_MAX {
            return Err(Refusal::Operand(3, StatusCode::BAD_QUERY_TOO_COMPLEX));
        }
        // If omitted, subtypes are included. Part 4 §7.7.3: a value that is not Boolean counts as false.
        let is_true = |at: usize| match flags.get(at) {
            None => true,
            Some(operand) => literal(operand).ok() == Some(Variant::Boolean(true)),
        };
        Ok(Self {
            element,
            source,
            target,
            reference_type,
            hops,
            include_subtypes: is_true(0),
            include_reference_subtypes: is_true(1),
            alias,
            is_nested: false,
        })
    }
}

/// Marks the relations that are targets of others.
///
/// # Errors
/// The element of a relation whose target is not a RelatedTo.
pub(crate) fn link(relations: &mut [Relation]) -> Result<(), u32> {
    for at in 0..relations.len() {
        let Some((target, element)) = relations.get(at).map(|relation| (relation.target, relation.element))
        else {
            continue;
        };
        let Target::Element(wanted) = target else { continue };
        let nested = relations.iter_mut().find(|relation| relation.element == wanted);
        nested.ok_or(element)?.is_nested = true;
    }
    Ok(())
}

/// The id and alias of a node operand: a literal, or an AttributeOperand for its NodeId.
fn named(operand: &ExtensionObject, allowed: Operands) -> Result<(NodeId, Box<str>), StatusCode> {
    let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    if operand.is::<AttributeOperand>() && allowed == Operands::LiteralsAndAttributes {
        let operand: AttributeOperand = operand.decode().map_err(|_| invalid)?;
        let is_id = operand.attribute_id == NODE_ID && operand.browse_path.elements.is_empty();
        return if is_id { Ok((operand.node_id, operand.alias.as_str().into())) } else { Err(invalid) };
    }
    match literal(operand)? {
        Variant::NodeId(id) => Ok((*id, "".into())),
        Variant::ExpandedNodeId(id) => Ok((id.local().cloned().ok_or(invalid)?, "".into())),
        _ => Err(invalid),
    }
}

fn literal(operand: &ExtensionObject) -> Result<Variant, StatusCode> {
    let invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    if !operand.is::<LiteralOperand>() {
        return Err(invalid);
    }
    operand.decode::<LiteralOperand>().map(|operand| operand.value).map_err(|_| invalid)
}

/// A number of hops. The specification's examples write it as text.
fn hops(value: &Variant) -> Option<u32> {
    match value {
        Variant::Byte(value) => Some(u32::from(*value)),
        Variant::UInt16(value) => Some(u32::from(*value)),
        Variant::UInt32(value) => Some(*value),
        Variant::UInt64(value) => u32::try_from(*value).ok(),
        Variant::SByte(value) => u32::try_from(*value).ok(),
        Variant::Int16(value) => u32::try_from(*value).ok(),
        Variant::Int32(value) => u32::try_from(*value).ok(),
        Variant::Int64(value) => u32::try_from(*value).ok(),
        Variant::String(text) => text.as_str().trim().parse().ok(),
        _ => None,
    }
}
