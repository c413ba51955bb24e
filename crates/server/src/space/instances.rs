//! An index of instances by type, for Query. Types do not store their instances, so servers without queries pay
//! nothing. The first Query builds the index in pieces; afterwards it is kept up to date.

use super::NodeIx;
use super::nodes::Nodes;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::ns0::Ns0;

/// The index; empty until the first Query.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    index: Option<Box<Index>>,
}

#[derive(Debug, Default)]
struct Index {
    by_type: BTreeMap<NodeIx, BTreeSet<NodeIx>>,
    /// Number of static nodes of namespace 0 already indexed.
    fixed: usize,
    /// Number of heap slots already indexed.
    dynamic: usize,
    is_complete: bool,
}

impl Nodes {
    /// Whether the index is complete.
    pub(crate) fn has_instances(&self) -> bool {
        self.instances.index.as_ref().is_some_and(|index| index.is_complete)
    }

    /// Indexes up to `count` more nodes. Returns whether the index is complete.
    pub(crate) fn index_instances(&mut self, count: usize) -> bool {
        let mut index = self.instances.index.take().unwrap_or_default();
        if index.is_complete {
            self.instances.index = Some(index);
            return true;
        }
        let fixed = Ns0::get().nodes();
        let static_end = (index.fixed + count).min(fixed.len());
        let looked_at = static_end - index.fixed;
        for node in fixed.skip(index.fixed).take(looked_at) {
            if let Some(kind) = node.type_definition() {
                index.by_type.entry(NodeIx::ns0(kind)).or_default().insert(NodeIx::ns0(node.id()));
            }
        }
        index.fixed = static_end;
        let places = self.places();
        let end = (index.dynamic + count - looked_at).min(places);
        for at in index.dynamic..end {
            let at = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(NodeIx::DYNAMIC);
            let Some(ix) = self.ix(at) else { continue };
            if let Some(kind) = self.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION) {
                index.by_type.entry(kind).or_default().insert(ix);
            }
        }
        index.dynamic = end;
        index.is_complete = index.fixed == Ns0::get().nodes().len() && end == places;
        let is_complete = index.is_complete;
        self.instances.index = Some(index);
        is_complete
    }

    /// The first instance of exactly this type after another one.
    pub(crate) fn instance_after(&self, kind: NodeIx, last: Option<NodeIx>) -> Option<NodeIx> {
        let all = self.instances.index.as_ref()?.by_type.get(&kind)?;
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        all.range((from, Bound::Unbounded)).next().copied()
    }

    /// Updates the index when a node gets a type.
    pub(super) fn index_instance(&mut self, ix: NodeIx, kind: NodeIx) {
        // Nodes that are not indexed yet will be.
        if let Some(index) = &mut self.instances.index {
            index.by_type.entry(kind).or_default().insert(ix);
        }
    }

    /// Updates the index when a node with a type, or a type, is deleted.
    pub(super) fn unindex_instance(&mut self, ix: NodeIx, kind: Option<NodeIx>) {
        let Some(index) = &mut self.instances.index else { return };
        index.by_type.remove(&ix);
        if let Some(all) = kind.and_then(|kind| index.by_type.get_mut(&kind)) {
            all.remove(&ix);
        }
    }
}
