//! Interfaces that Objects get later (Part 3 §4.10).

use super::members::{Walk, members, sources_of};
use super::{INSTANCE_DEPTH_MAX, Wanted, complete};
use crate::space::NodeIx;
use crate::space::error::NodeError;
use crate::space::nodes::Nodes;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_types::UtcTime;

/// Whether a node is an interface (Part 3 §4.10.2).
pub(crate) fn is_interface(nodes: &Nodes, ix: NodeIx) -> bool {
    nodes.is_subtype(ix, NodeIx::ns0(object_type_ids::BASE_INTERFACE_TYPE))
}

/// How much of an interface an Object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All mandatory members.
    Complete,
    /// Some mandatory members are missing.
    Incomplete,
    /// A child has the name of a member, but another NodeClass: the interface cannot be applied.
    Collision,
}

/// Compares an Object with the members of an interface.
///
/// # Errors
/// The limit of the walk.
pub(crate) fn coverage(
    nodes: &mut Nodes,
    object: NodeIx,
    interface: NodeIx,
    walk: &mut Walk,
) -> Result<Coverage, NodeError> {
    walk.start();
    coverage_of(nodes, object, &[interface], 0, walk)
}

fn coverage_of(
    nodes: &mut Nodes,
    at: NodeIx,
    sources: &[NodeIx],
    depth: usize,
    walk: &mut Walk,
) -> Result<Coverage, NodeError> {
    let mut found = Coverage::Complete;
    // Many paths can lead to one child.
    if depth > INSTANCE_DEPTH_MAX || !walk.enters(at, sources) {
        return Ok(found);
    }
    for member in members(nodes, sources, walk)? {
        let child = nodes.child_indexed(at, &member.name);
        let class = |ix| nodes.view(ix).map(|view| view.class());
        let inner = match child {
            Some(child) if class(child) != class(member.declaration) => Coverage::Collision,
            Some(child) => {
                let inner = sources_of(nodes, &member);
                coverage_of(nodes, child, &inner, depth + 1, walk)?
            }
            None if member.is_mandatory => Coverage::Incomplete,
            None => Coverage::Complete,
        };
        match inner {
            Coverage::Collision => return Ok(inner),
            Coverage::Incomplete => found = inner,
            Coverage::Complete => {}
        }
    }
    Ok(found)
}

/// Adds the mandatory members of an interface to an Object that lacks them. They belong to the clients.
///
/// # Errors
/// The limits of clients and of the walk. Nothing is added then.
pub(crate) fn apply_interface(
    nodes: &mut Nodes,
    object: NodeIx,
    interface: NodeIx,
    walk: &mut Walk,
    now: UtcTime,
) -> Result<(), NodeError> {
    let owner = nodes.added_account();
    complete(nodes, object, interface, Wanted { optional: &[], owner: owner.as_ref(), now }, walk).map(drop)
}
