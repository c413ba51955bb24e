//! Deleting aliases from a category. An alias can be in several categories (Part 17 §9.3), and stays in the others.

use super::{Item, aliases_of, category_of, target_of};
use crate::authorization::Decisions;
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use taktwerk_schema::PermissionType;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_types::{NodeId, StatusCode};

/// A reference: its source, its type and its target.
type Triple = (NodeIx, NodeIx, NodeIx);

/// What happens to an alias.
enum Change {
    /// These references are deleted: to some of its targets, or from the category to the alias.
    References(Vec<Triple>),
    /// The node is deleted.
    Node(NodeIx),
}

/// Deletes the aliases with a name from a category, or one target of them.
pub(super) fn delete(
    nodes: &mut Nodes,
    decisions: &Decisions,
    category_id: &NodeId,
    item: &Item<'_>,
) -> Result<(), StatusCode> {
    let category = category_of(nodes, decisions, category_id)?;
    let mut aliases = aliases_of(nodes, category, item.name);
    aliases.retain(|alias| decisions.knows(nodes, *alias));
    if aliases.is_empty() {
        return Err(StatusCode::BAD_NOT_FOUND);
    }
    let target = match item.target.node_id.is_null() {
        true => None,
        false => Some(target_of(nodes, decisions, item.target)?),
    };
    let mut changes = Vec::new();
    for alias in aliases {
        changes.extend(change_of(nodes, category, alias, target)?);
    }
    if changes.is_empty() {
        return Err(StatusCode::BAD_NOT_FOUND);
    }
    // All of them or none.
    changes.iter().try_for_each(|change| check(nodes, decisions, change))?;
    for change in changes {
        match change {
            Change::Node(alias) => drop(nodes.delete(alias).map_err(|error| error.status())?),
            Change::References(all) => {
                for (from, kind, to) in all {
                    nodes.delete_reference(from, kind, true, to, true);
                }
            }
        }
    }
    Ok(())
}

/// What happens to an alias of a category; `None` if it does not have the target.
fn change_of(
    nodes: &Nodes,
    category: NodeIx,
    alias: NodeIx,
    target: Option<NodeIx>,
) -> Result<Option<Change>, StatusCode> {
    let is_elsewhere = nodes.categories_of(alias).iter().any(|known| *known != category);
    let all = references(nodes, alias, true, reference_type_ids::ALIAS_FOR);
    let gone: Vec<Triple> = all.iter().filter(|(_, _, to)| target == Some(*to)).copied().collect();
    if target.is_some() && gone.is_empty() {
        return Ok(None);
    }
    Ok(Some(if target.is_some() && gone.len() < all.len() {
        if is_elsewhere {
            // The other categories would lose the target, too.
            return Err(StatusCode::BAD_INVALID_STATE);
        }
        Change::References(gone)
    } else if is_elsewhere {
        // From the alias: a category may have very many.
        let mut links = references(nodes, alias, false, reference_type_ids::HIERARCHICAL_REFERENCES);
        links.retain(|(from, ..)| *from == category);
        Change::References(links)
    } else {
        Change::Node(alias)
    }))
}

/// The forward or the inverse references of a node by a type or its subtypes.
fn references(nodes: &Nodes, ix: NodeIx, is_forward: bool, base: u32) -> Vec<Triple> {
    let mut found = Vec::new();
    nodes.references(ix, |reference| {
        let (kind, other) = (reference.reference_type, reference.target);
        if reference.is_forward == is_forward && nodes.is_subtype(kind, NodeIx::ns0(base)) {
            found.push(if is_forward { (ix, kind, other) } else { (other, kind, ix) });
        }
        true
    });
    found
}

/// Whether a client may make a change: those that DeleteNodes and DeleteReferences allow.
fn check(nodes: &Nodes, decisions: &Decisions, change: &Change) -> Result<(), StatusCode> {
    let is_granted = |ix: NodeIx| nodes.access().role_permissions(nodes.access_set(ix)).is_some();
    let may = |is_allowed: bool| if is_allowed { Ok(()) } else { Err(StatusCode::BAD_NO_DELETE_RIGHTS) };
    match change {
        Change::Node(alias) => {
            decisions.check(nodes, *alias, PermissionType::DELETE_NODE)?;
            may(nodes.is_added(*alias) || is_granted(*alias))
        }
        Change::References(all) => all.iter().try_for_each(|(from, kind, to)| {
            for ix in [from, to] {
                decisions.check(nodes, *ix, PermissionType::REMOVE_REFERENCE)?;
            }
            let is_added = nodes.is_added_reference(*from, *kind, true, *to);
            may(is_added || (is_granted(*from) && is_granted(*to)))
        }),
    }
}
