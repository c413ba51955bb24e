//! Types must not derive from themselves.

use crate::model::Node;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_types::NodeId;

/// i=45.
const HAS_SUBTYPE: u32 = 45;

/// A type that is its own supertype. HasSubtype is a HasChild Reference, and those have no loops (Part 3 §7.5).
pub(crate) fn of_subtypes(nodes: &[Node]) -> Option<&Node> {
    let supertypes = supertypes(nodes);
    let mut checked: BTreeSet<&NodeId> = BTreeSet::new();
    for node in nodes {
        let mut path = BTreeSet::new();
        let mut id = &node.node_id;
        // A node of the path again is a loop; nodes of earlier paths lead to none.
        while !checked.contains(id) {
            if !path.insert(id) {
                return nodes.iter().find(|node| node.node_id == *id);
            }
            let Some(next) = supertypes.get(id) else { break };
            id = next;
        }
        checked.extend(path);
    }
    None
}

fn supertypes(nodes: &[Node]) -> BTreeMap<&NodeId, &NodeId> {
    let is_subtype = |id: &NodeId| *id == NodeId::numeric(0, HAS_SUBTYPE);
    let all = nodes.iter().flat_map(|node| node.references.iter().map(move |reference| (node, reference)));
    all.filter(|(_, reference)| is_subtype(&reference.reference_type))
        .map(|(node, reference)| match reference.is_forward {
            true => (&reference.target, &node.node_id),
            false => (&node.node_id, &reference.target),
        })
        .collect()
}
