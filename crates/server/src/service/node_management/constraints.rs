//! References allowed by the data model (Part 3 §7).

use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::reference_type_ids as r;
use taktwerk_types::{NodeId, StatusCode};

/// A ReferenceType that can be used for references.
///
/// # Errors
/// Bad_ReferenceTypeIdInvalid if it is not a ReferenceType; Bad_ReferenceNotAllowed if it is abstract.
pub(super) fn reference_type(nodes: &Nodes, id: &NodeId) -> Result<NodeIx, StatusCode> {
    let invalid = StatusCode::BAD_REFERENCE_TYPE_ID_INVALID;
    let ix = nodes.resolve(id.as_ref()).ok_or(invalid)?;
    let view = nodes.view(ix).filter(|view| view.class() == NodeClass::REFERENCE_TYPE).ok_or(invalid)?;
    match view.is_abstract() {
        Some(false) => Ok(ix),
        _ => Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED),
    }
}

/// Whether the data model allows a reference between nodes of these classes.
///
/// # Errors
/// Bad_ReferenceNotAllowed.
pub(super) fn allows(
    nodes: &Nodes,
    reference_type: NodeIx,
    source: NodeClass,
    target: NodeClass,
) -> Result<(), StatusCode> {
    use NodeClass as C;
    let is = |kind: u32| nodes.is_subtype(reference_type, NodeIx::ns0(kind));
    let is_type =
        |class| matches!(class, C::OBJECT_TYPE | C::VARIABLE_TYPE | C::DATA_TYPE | C::REFERENCE_TYPE);
    let allowed = if is(r::HAS_SUBTYPE) {
        source == target && is_type(source)
    } else if is(r::HAS_PROPERTY) {
        target == C::VARIABLE
    } else if is(r::HAS_INTERFACE) {
        matches!(source, C::OBJECT | C::OBJECT_TYPE) && target == C::OBJECT_TYPE
    } else if is(r::HAS_ADD_IN) {
        matches!(source, C::OBJECT | C::OBJECT_TYPE) && target == C::OBJECT
    } else if is(r::HAS_COMPONENT) {
        match source {
            C::OBJECT | C::OBJECT_TYPE => matches!(target, C::OBJECT | C::VARIABLE | C::METHOD),
            C::VARIABLE | C::VARIABLE_TYPE => matches!(target, C::VARIABLE | C::METHOD | C::OBJECT),
            C::DATA_TYPE | C::REFERENCE_TYPE | C::VIEW => false,
            _ => true,
        }
    } else if is(r::HAS_TYPE_DEFINITION) {
        matches!((source, target), (C::OBJECT, C::OBJECT_TYPE) | (C::VARIABLE, C::VARIABLE_TYPE))
    } else if is(r::HAS_MODELLING_RULE) {
        matches!(source, C::OBJECT | C::VARIABLE | C::METHOD) && target == C::OBJECT
    } else if is(r::HAS_ENCODING) {
        source == C::DATA_TYPE && target == C::OBJECT
    } else if is(r::HAS_EVENT_SOURCE) {
        matches!(source, C::OBJECT | C::OBJECT_TYPE | C::VIEW)
    } else {
        true
    };
    if allowed { Ok(()) } else { Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED) }
}
