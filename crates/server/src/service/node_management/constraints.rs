//! References allowed by the data model (Part 3 §7).

use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use std::collections::BTreeSet;
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

/// Maximum number of references followed to find a loop, in all. Takes about 100 µs, while nobody else can use the nodes. If
/// there are more, the loop is not found: it would harm nobody, because everything that follows references expects loops.
const LOOP_REFERENCES_MAX: usize = 2_000;

/// References of a kind never lead back to their start (Part 3 §7.5, §7.17).
///
/// # Errors
/// Bad_ReferenceNotAllowed if the reference would close a loop.
pub(super) fn closes_no_loop(
    nodes: &Nodes,
    reference_type: NodeIx,
    from: NodeIx,
    to: NodeIx,
) -> Result<(), StatusCode> {
    for kind in [r::HAS_CHILD, r::HAS_EVENT_SOURCE].map(NodeIx::ns0) {
        // No type is a subtype of both. Usually one end has few references.
        let leads = |from, to, is_forward| leads(nodes, kind, from, to, is_forward);
        if nodes.is_subtype(reference_type, kind) && (leads(to, from, true) || leads(from, to, false)) {
            return Err(StatusCode::BAD_REFERENCE_NOT_ALLOWED);
        }
    }
    Ok(())
}

/// Whether references of a kind lead from a node to another one in this direction.
fn leads(nodes: &Nodes, kind: NodeIx, from: NodeIx, to: NodeIx, is_forward: bool) -> bool {
    let (mut reached, mut seen) = (vec![from], BTreeSet::from([from]));
    let (mut followed, mut found) = (0, false);
    while let Some(here) = reached.pop() {
        nodes.references(here, |reference| {
            followed += 1;
            if reference.is_forward == is_forward && nodes.is_subtype(reference.reference_type, kind) {
                found |= reference.target == to;
                if seen.insert(reference.target) {
                    reached.push(reference.target);
                }
            }
            !found && followed < LOOP_REFERENCES_MAX / 2
        });
        if found || followed >= LOOP_REFERENCES_MAX / 2 {
            break;
        }
    }
    found
}
