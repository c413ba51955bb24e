//! An index of children by BrowseName for parents with many children: AddNodes checks the name of every new node.

use super::NodeIx;
use super::nodes::Nodes;
use crate::spread::Spread;
use core::hash::BuildHasher;
use std::collections::BTreeMap;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_types::QualifiedName;

/// Number of references from which a parent's children are indexed.
const REFERENCES_MIN: usize = 64;

/// The indexed parents. Empty and free of cost until a client adds a node below a large parent.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The children by parent, then by the hash of their names.
    parents: BTreeMap<u32, Spread<NodeIx>>,
}

impl Names {
    pub(super) fn is_indexed(&self, parent: u32) -> bool {
        !self.parents.is_empty() && self.parents.contains_key(&parent)
    }

    fn insert(&mut self, parent: u32, hash: u64, child: NodeIx) {
        if let Some(children) = self.parents.get_mut(&parent) {
            children.insert_unique(hash, child);
        }
    }

    fn remove(&mut self, parent: u32, hash: u64, child: NodeIx) {
        if let Some(children) = self.parents.get_mut(&parent) {
            children.remove(hash, |candidate| *candidate == child);
        }
    }

    /// A parent was deleted.
    pub(super) fn remove_parent(&mut self, parent: u32) {
        if !self.parents.is_empty() {
            self.parents.remove(&parent);
        }
    }
}

impl Nodes {
    pub(super) fn name_hash(&self, namespace: u16, name: &str) -> u64 {
        self.hasher.hash_one((namespace, name))
    }

    /// The hash of a node's BrowseName.
    pub(super) fn hash_of_name(&self, ix: NodeIx) -> Option<u64> {
        let (namespace, name) = self.view(ix)?.browse_name_parts();
        Some(self.name_hash(namespace, &name))
    }

    /// As [`Nodes::child`]; parents with many children are indexed.
    pub(crate) fn child_indexed(&mut self, parent: NodeIx, name: &QualifiedName) -> Option<NodeIx> {
        if !self.names.is_indexed(parent.index) {
            if self.reference_count(parent) < REFERENCES_MIN {
                return self.child(parent, name);
            }
            self.index_children(parent);
        }
        let hash = self.name_hash(name.namespace_index, name.name.as_str());
        let children = self.names.parents.get(&parent.index)?;
        children.find(hash, |child| self.view(*child).is_some_and(|view| view.has_browse_name(name))).copied()
    }

    /// Number of references of a node, including those to deleted nodes.
    pub(in crate::space) fn reference_count(&self, ix: NodeIx) -> usize {
        if ix.index < NodeIx::DYNAMIC {
            let more = self.ns0_references.get(&ix.index).map_or(0, Vec::len);
            return Ns0::get().references(ix.index).len() + more;
        }
        self.dynamic(ix).map_or(0, |node| node.references.len())
    }

    fn index_children(&mut self, parent: NodeIx) {
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let mut children = Spread::default();
        self.references(parent, |reference| {
            if reference.is_forward
                && self.is_subtype(reference.reference_type, hierarchical)
                && let Some(hash) = self.hash_of_name(reference.target)
            {
                children.insert_unique(hash, reference.target);
            }
            true
        });
        self.names.parents.insert(parent.index, children);
    }

    /// Updates the index when a forward reference is added.
    pub(super) fn index_reference(&mut self, parent: NodeIx, reference_type: u32, child: NodeIx) {
        if !self.names.is_indexed(parent.index) {
            return;
        }
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        if self.ix(reference_type).is_some_and(|kind| self.is_subtype(kind, hierarchical))
            && let Some(hash) = self.hash_of_name(child)
        {
            self.names.insert(parent.index, hash, child);
        }
    }

    /// Updates the index when a forward reference is deleted.
    pub(super) fn unindex_reference(&mut self, parent: NodeIx, reference_type: NodeIx, child: NodeIx) {
        if !self.names.is_indexed(parent.index) {
            return;
        }
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        if self.is_subtype(reference_type, hierarchical)
            && let Some(hash) = self.hash_of_name(child)
        {
            self.names.remove(parent.index, hash, child);
        }
    }
}
