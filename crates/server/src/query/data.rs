//! Attributes and references along a path from a node.

use super::Access;
use super::plan::{Data, Step};
use crate::space::NodeIx;
use crate::space::attribute as attribute_of;
use crate::space::nodes::ValueAt;
use crate::space::view::attribute;
use std::collections::BTreeSet;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{NodeClass, PermissionType, ReferenceDescription};
use taktwerk_types::{
    Decode, DecodeLimits, ExpandedNodeId, ExtensionObject, NodeId, NumericRange, QualifiedName, StatusCode,
    Variant,
};

/// The result for one QueryDataDescription (Part 4 §7.28): null for nothing, the value, or an array of several values.
/// A StatusCode replaces a bad value.
pub(super) fn value(
    access: Access<'_>,
    node: NodeIx,
    data: &Data,
    references_max: usize,
) -> Result<Variant, StatusCode> {
    let (last, before) = match data.path.split_last() {
        Some((last, before)) if last.name.is_null() => (Some(last), before),
        _ => (None, &*data.path),
    };
    let targets = follow(access, node, before)?;
    if let Some(step) = last {
        let mut found = Vec::new();
        for target in targets {
            references(access, target, step, references_max, &mut found);
        }
        return too_complex(access, one_or_many(found.into_iter().map(Variant::from).collect()));
    }
    let mut values = Vec::with_capacity(targets.len());
    for target in targets {
        let value = read(access, target, data.attribute_id, data.range.as_ref());
        values.push(too_complex(access, value.unwrap_or_else(Variant::StatusCode))?);
    }
    Ok(one_or_many(values))
}

fn one_or_many(mut values: Vec<Variant>) -> Variant {
    if values.len() > 1 { values.into() } else { values.pop().unwrap_or_default() }
}

fn too_complex<T>(access: Access<'_>, found: T) -> Result<T, StatusCode> {
    if access.is_exhausted() { Err(StatusCode::BAD_QUERY_TOO_COMPLEX) } else { Ok(found) }
}

/// The nodes at the end of a path, each once, in the order in which they are found.
///
/// # Errors
/// Bad_QueryTooComplex
pub(super) fn follow(access: Access<'_>, node: NodeIx, path: &[Step]) -> Result<Vec<NodeIx>, StatusCode> {
    let mut level = vec![node];
    for step in path {
        let mut next = Vec::new();
        let mut seen = BTreeSet::new();
        for source in level {
            each(access, source, step, |reference, _| {
                if seen.insert(reference) {
                    next.push(reference);
                }
                true
            });
        }
        level = too_complex(access, next)?;
    }
    Ok(level)
}

/// Calls `found` with every target of a step and the type of its reference.
fn each(access: Access<'_>, source: NodeIx, step: &Step, mut found: impl FnMut(NodeIx, NodeIx) -> bool) {
    let Access { nodes, decisions, .. } = access;
    nodes.references(source, |reference| {
        access.follow(1);
        let right_type = match step.reference_type {
            None => true,
            Some(kind) if step.include_subtypes => nodes.is_subtype(reference.reference_type, kind),
            Some(kind) => reference.reference_type == kind,
        };
        let fits = right_type
            && reference.is_forward != step.is_inverse
            && decisions.allows(nodes, reference.target, PermissionType::BROWSE)
            && (step.name.is_null() || is_called(access, reference.target, &step.name));
        !access.is_exhausted() && (!fits || found(reference.target, reference.reference_type))
    });
}

/// Whether a node, or the type that it is an instance of, has a BrowseName (Part 4 B.2.3).
fn is_called(access: Access<'_>, node: NodeIx, name: &QualifiedName) -> bool {
    let Access { nodes, .. } = access;
    if nodes.view(node).is_some_and(|view| view.has_browse_name(name)) {
        return true;
    }
    let mut kind = nodes.forward_target(node, reference_type_ids::HAS_TYPE_DEFINITION);
    // Types nest about a dozen levels deep.
    for _ in 0..64 {
        let Some(here) = kind else { return false };
        if nodes.view(here).is_some_and(|view| view.has_browse_name(name)) {
            return true;
        }
        access.follow(1);
        kind = nodes.supertype(here);
    }
    false
}

fn references(
    access: Access<'_>,
    source: NodeIx,
    step: &Step,
    references_max: usize,
    out: &mut Vec<ExtensionObject>,
) {
    let Access { nodes, decisions, .. } = access;
    let id = |ix: Option<NodeIx>| {
        let visible = ix.filter(|ix| decisions.allows(nodes, *ix, PermissionType::BROWSE));
        visible.map_or(NodeId::NULL, |ix| nodes.id_of(ix))
    };
    each(access, source, step, |target, reference_type| {
        let Some(view) = nodes.view(target) else { return true };
        let has_definition = matches!(view.class(), NodeClass::OBJECT | NodeClass::VARIABLE);
        let definition =
            nodes.forward_target(target, reference_type_ids::HAS_TYPE_DEFINITION).filter(|_| has_definition);
        out.push(ExtensionObject::new(&ReferenceDescription {
            reference_type_id: id(Some(reference_type)),
            is_forward: !step.is_inverse,
            node_id: ExpandedNodeId::from(view.id()),
            browse_name: view.browse_name(),
            display_name: view.display_name(),
            node_class: view.class(),
            type_definition: ExpandedNodeId::from(id(definition)),
        }));
        out.len() < references_max
    });
}

/// An attribute, subject to the session's permissions. Value sources are not called: their last value is used.
pub(super) fn read(
    access: Access<'_>,
    node: NodeIx,
    attribute_id: u32,
    range: Option<&NumericRange>,
) -> Result<Variant, StatusCode> {
    let Access { nodes, decisions, now, .. } = access;
    let view = nodes.view(node).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let value = if attribute_id == attribute::VALUE {
        if !view.has_value() {
            return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
        }
        if !view.is_readable() {
            return Err(StatusCode::BAD_NOT_READABLE);
        }
        decisions.check(nodes, node, PermissionType::READ)?;
        match nodes.value_at(node) {
            ValueAt::Slot(slot) | ValueAt::Source(_, slot) => {
                let value = nodes.slot(slot).ok_or(StatusCode::BAD_INTERNAL_ERROR)?.to_data_value();
                if value.status().is_bad() {
                    return Err(value.status());
                }
                value.value.unwrap_or_default()
            }
            ValueAt::Static(bytes) => Variant::decode_from(bytes, DecodeLimits::DEFAULT)
                .map_err(|_| StatusCode::BAD_INTERNAL_ERROR)?,
            ValueAt::Computed(ix) => nodes.computed(ix, now.utc)?,
            ValueAt::None => nodes.unset_value(node)?,
        }
    } else {
        attribute_of(nodes, decisions, node, &view, attribute_id)?
    };
    access.copy(&value);
    match range {
        Some(range) => range.read(&value),
        None => Ok(value),
    }
}
