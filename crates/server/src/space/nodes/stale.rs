//! References to deleted nodes that are still in the lists of large nodes.
//!
//! A node with many references, such as a folder, is not searched for each deleted target. Stale references are
//! recorded here, and the list is cleaned when half of it is stale. So deleting costs a constant number of steps per
//! reference, however deletions are grouped. Readers skip references to deleted nodes.

use super::Nodes;
use crate::space::NodeIx;
use crate::space::node::PackedReference;
use std::collections::BTreeMap;

/// Number of references from which a list counts as large.
const LARGE: usize = 64;

/// Stale references in the lists of nodes.
#[derive(Debug, Default)]
pub(super) struct Stale {
    /// By the index of the node with the list.
    noted: BTreeMap<u32, Vec<PackedReference>>,
    /// Number of nodes deleted so far.
    deleted: u64,
    /// The value of `deleted` when a large list was last searched, by the index of the node with the list.
    looked_through: BTreeMap<u32, u64>,
}

impl Stale {
    /// A node is deleted; its index may be reused.
    pub(super) fn forget(&mut self, index: u32) {
        self.deleted += 1;
        if !self.looked_through.is_empty() {
            self.looked_through.remove(&index);
        }
    }

    /// Whether a list with this many references may contain unrecorded references to deleted nodes. The caller then
    /// searches it, so the next answer is no until another node is deleted.
    pub(super) fn has_more(&mut self, index: u32, count: usize) -> bool {
        if count < LARGE {
            return self.deleted > 0;
        }
        self.deleted != self.looked_through.insert(index, self.deleted).unwrap_or(0)
    }
}

impl Nodes {
    /// Records references in the list of a node to nodes that are about to be deleted, each with that node's index.
    /// Their charge has been returned. Cleans the list `at_once`, or when much of it is stale. Returns how many
    /// references were examined.
    pub(super) fn leave_out(
        &mut self,
        at: NodeIx,
        gone: &[(NodeIx, PackedReference)],
        at_once: bool,
    ) -> usize {
        let count = self.list_len(at);
        let stale = self.stale.noted.entry(at.index).or_default();
        stale.extend(gone.iter().map(|(_, reference)| *reference));
        let is_late = count < LARGE || 2 * stale.len() >= count;
        gone.len() + if at_once || is_late { self.clean(at) } else { 0 }
    }

    /// Removes stale references from the list of a node. Returns how many references were examined.
    pub(super) fn clean(&mut self, at: NodeIx) -> usize {
        if self.stale.noted.is_empty() {
            return 0;
        }
        let Some(mut stale) = self.stale.noted.remove(&at.index) else { return 0 };
        stale.sort_unstable();
        let looked_at = self.list_len(at);
        // Lists, and `stale`, are roughly in the order of insertion, so mostly no search is needed.
        let mut next = 0;
        let mut is_kept = |reference: &PackedReference| {
            let reference = reference.uncharged();
            let is_before = stale.get(next).is_none_or(|stale| reference < *stale);
            let is_behind =
                next.checked_sub(1).and_then(|last| stale.get(last)).is_none_or(|last| *last < reference);
            if is_before && is_behind {
                return true;
            }
            match stale.binary_search(&reference) {
                Ok(found) => next = found + 1,
                Err(between) => next = between,
            }
            next.checked_sub(1).and_then(|last| stale.get(last)) != Some(&reference)
        };
        if at.index < NodeIx::DYNAMIC {
            if let Some(list) = self.ns0_references.get_mut(&at.index) {
                list.retain(is_kept);
            }
        } else if let Some(node) = self.dynamic_mut(at) {
            node.references.retain(|reference| is_kept(reference));
        }
        looked_at
    }

    /// Number of references of a node, not counting those of the specification.
    pub(super) fn list_len(&self, at: NodeIx) -> usize {
        if at.index < NodeIx::DYNAMIC {
            return self.ns0_references.get(&at.index).map_or(0, Vec::len);
        }
        self.dynamic(at).map_or(0, |node| node.references.len())
    }

    /// The same for all nodes.
    pub(super) fn clean_all(&mut self) {
        let indexes: Vec<u32> = self.stale.noted.keys().copied().collect();
        for index in indexes {
            if let Some(ix) = self.ix(index) {
                self.clean(ix);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::space::build::Under;
    use crate::space::{AddressSpace, NodeIx, NodeSpec};
    use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
    use taktwerk_types::{NodeId, QualifiedName, UtcTime};

    const FOLDER: NodeId = NodeId::numeric(1, 1);

    fn add(space: &AddressSpace, number: u32, parent: &NodeId) {
        let id = NodeId::numeric(1, number);
        let spec = NodeSpec::object(id, QualifiedName::new(1, format!("n{number}")));
        let under = Under {
            parent,
            reference_type: &NodeId::numeric(0, reference_type_ids::ORGANIZES),
            type_definition: Some(&NodeId::numeric(0, object_type_ids::FOLDER_TYPE)),
        };
        space.add_node(spec, under, UtcTime::NULL).unwrap();
    }

    fn folder(count: u32) -> AddressSpace {
        let space = AddressSpace::new(1, 16, "urn:test");
        add(&space, 1, &NodeId::numeric(0, object_ids::OBJECTS_FOLDER));
        (2..2 + count).for_each(|number| add(&space, number, &FOLDER));
        space
    }

    fn children(space: &AddressSpace) -> Vec<NodeId> {
        let nodes = space.read();
        let mut found = Vec::new();
        nodes.references(nodes.find(&FOLDER).unwrap(), |reference| {
            if reference.is_forward && reference.reference_type == NodeIx::ns0(reference_type_ids::ORGANIZES)
            {
                found.push(nodes.id_of(reference.target));
            }
            true
        });
        found
    }

    /// Number of references examined per individually deleted node.
    fn looks(count: u32, order: impl Fn(u32) -> u32) -> usize {
        let space = folder(count);
        let mut looked_at = 0;
        for number in 0..count {
            let mut nodes = space.write();
            let ix = nodes.find(&NodeId::numeric(1, 2 + order(number))).unwrap();
            looked_at += nodes.delete(ix).unwrap();
        }
        assert_eq!(children(&space), []);
        looked_at / count as usize
    }

    #[test]
    fn nodes_of_a_large_folder_are_deleted_at_the_same_cost() {
        for count in [1000, 8000] {
            assert!(looks(count, |number| number) <= 16, "in the order of insertion");
            assert!(looks(count, |number| count - 1 - number) <= 16, "backwards");
            assert!(looks(count, |number| number * 7919 % count) <= 16, "in any order");
        }
    }

    #[test]
    fn remaining_and_new_references_are_found() {
        let space = folder(1000);
        let number = |number: &u32| NodeId::numeric(1, *number);
        let mut expected: Vec<u32> = (2..1002).collect();
        for (at, next) in (2000..2700).enumerate() {
            let gone = expected.remove(at * 31 % expected.len());
            space.delete_node(&number(&gone)).unwrap();
            if at % 3 == 0 {
                // It reuses the index of a deleted node.
                add(&space, next, &FOLDER);
                expected.push(next);
            }
            if at % 50 == 0 {
                assert_eq!(children(&space), expected.iter().map(number).collect::<Vec<_>>());
            }
        }
        // The folder is deleted together with its stale references, and another node gets its index.
        space.delete_node(&FOLDER).unwrap();
        add(&space, 1, &NodeId::numeric(0, object_ids::OBJECTS_FOLDER));
        assert_eq!(children(&space), []);
    }
}
