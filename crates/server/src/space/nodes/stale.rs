//! References to deleted nodes that are still in the lists of large nodes.
//!
//! The list of a node that many others belong to, such as a folder, is not searched for each of them that is deleted: what has
//! become stale is noted here, and the list is cleaned when half of it is stale. Thus deleting costs a constant number of
//! looks for each reference, however the deletions are divided. Readers leave out references to nodes that are gone.

use super::Nodes;
use crate::space::NodeIx;
use crate::space::node::PackedReference;
use std::collections::BTreeMap;

/// References from which on a list is large.
const LARGE: usize = 64;

/// What is stale in the lists of nodes.
#[derive(Debug, Default)]
pub(super) struct Stale {
    /// By the index of the node that has the list.
    noted: BTreeMap<u32, Vec<PackedReference>>,
    /// How many nodes have been deleted.
    deleted: u64,
    /// How many there were when a large list was looked through last, by the index of the node that has it.
    looked_through: BTreeMap<u32, u64>,
}

impl Stale {
    /// A node is deleted; its index may be used again.
    pub(super) fn forget(&mut self, index: u32) {
        self.deleted += 1;
        if !self.looked_through.is_empty() {
            self.looked_through.remove(&index);
        }
    }

    /// Whether a list of this many references may have some that lead to nodes which are gone, and which nobody has noted. It
    /// is looked through then, so the next answer is no until a node is deleted.
    pub(super) fn has_more(&mut self, index: u32, count: usize) -> bool {
        if count < LARGE {
            return self.deleted > 0;
        }
        self.deleted != self.looked_through.insert(index, self.deleted).unwrap_or(0)
    }
}

impl Nodes {
    /// Notes that references in the list of a node lead to nodes that are about to be deleted; each comes with that node's
    /// index. Their charge has been given back. Cleans the list `at_once`, or when much of it is stale. Says how many
    /// references were looked at.
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

    /// Removes what is stale from the list of a node. Says how many references were looked at.
    pub(super) fn clean(&mut self, at: NodeIx) -> usize {
        if self.stale.noted.is_empty() {
            return 0;
        }
        let Some(mut stale) = self.stale.noted.remove(&at.index) else { return 0 };
        stale.sort_unstable();
        let looked_at = self.list_len(at);
        // Lists are in about the order in which their nodes were added, as `stale` is then: most often no search is needed.
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

    /// How many references a node has besides those of the specification.
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

    /// How many references are looked at for each node that is deleted alone.
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
            assert!(looks(count, |number| number) <= 16, "in the order in which they came");
            assert!(looks(count, |number| count - 1 - number) <= 16, "backwards");
            assert!(looks(count, |number| number * 7919 % count) <= 16, "in any order");
        }
    }

    #[test]
    fn what_is_left_and_what_comes_anew_is_there() {
        let space = folder(1000);
        let number = |number: &u32| NodeId::numeric(1, *number);
        let mut expected: Vec<u32> = (2..1002).collect();
        for (at, next) in (2000..2700).enumerate() {
            let gone = expected.remove(at * 31 % expected.len());
            space.delete_node(&number(&gone)).unwrap();
            if at % 3 == 0 {
                // It takes the index of a node that is gone.
                add(&space, next, &FOLDER);
                expected.push(next);
            }
            if at % 50 == 0 {
                assert_eq!(children(&space), expected.iter().map(number).collect::<Vec<_>>());
            }
        }
        // The folder goes with what is stale in it, and another one gets its index.
        space.delete_node(&FOLDER).unwrap();
        add(&space, 1, &NodeId::numeric(0, object_ids::OBJECTS_FOLDER));
        assert_eq!(children(&space), []);
    }
}
