//! Nodes and references that clients add: marked as such, and charged to the server's account while they exist.

use super::NodeIx;
use super::error::NodeError;
use super::node::{NodeKind, PackedReference};
use super::nodes::Nodes;
use super::spec::NodeSpec;
use crate::account::{Account, Category, Charge, HeapSize};
use crate::callback::{CallContext, WriteHandler};
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_schema::AccessLevelType;
use taktwerk_schema::ids::{data_type_ids, reference_type_ids};
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime};

/// Bytes of a node without its texts: its table entries (tables grow by doubling), its slot, rare attributes, the
/// references to its parent and type at both ends, and its name in the index of its parent.
const NODE: usize = 768;
/// Bytes of a reference between two nodes, at both ends.
const REFERENCE: usize = 64;

/// The charge of a client's node.
pub(crate) struct AddedNode {
    _bytes: Charge,
    _count: Charge,
}

impl fmt::Debug for AddedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddedNode")
    }
}

/// Data of clients' additions other than nodes.
#[derive(Debug)]
pub(crate) struct Added {
    account: Arc<Account>,
    /// References, and DataType ids in the table of data types.
    kept: Charge,
    /// The next numeric identifier to try for ids chosen by the server.
    next_id: u32,
}

/// The first numeric identifier chosen by the server.
const FIRST_ID: u32 = 1_000_000;

impl Added {
    pub(crate) fn new(account: &Arc<Account>) -> Self {
        Self { account: Arc::clone(account), kept: account.nothing(Category::AddedNodes), next_id: FIRST_ID }
    }

    /// Returns the charge of references.
    pub(super) fn forget_references(&mut self, count: usize) {
        self.kept.resize_anyway(self.kept.amount().saturating_sub(count * REFERENCE));
    }
}

/// Charges the values written to a client's Variable.
struct ChargedValue {
    charge: Mutex<Charge>,
}

impl WriteHandler for ChargedValue {
    fn write(&self, _: &CallContext, value: DataValue) -> Result<DataValue, StatusCode> {
        let size = value.value.as_ref().map_or(0, HeapSize::heap_size);
        let mut charge = self.charge.lock().unwrap_or_else(PoisonError::into_inner);
        charge.resize(size).map_err(crate::account::Exhausted::status)?;
        Ok(value)
    }
}

/// Bytes of a node without the value of a Variable.
fn cost(spec: &NodeSpec) -> usize {
    let kind = match &spec.kind {
        NodeKind::Variable(_) => 0,
        NodeKind::VariableType(kind) => {
            256 + kind.array_dimensions.heap_size() + spec.value.as_ref().map_or(0, HeapSize::heap_size)
        }
        NodeKind::ReferenceType(kind) => 128 + kind.inverse_name.heap_size(),
        NodeKind::DataType(kind) => 128 + kind.definition.heap_size(),
        _ => 0,
    };
    let variable = spec.extra.variable.as_ref();
    NODE + kind
        + spec.id.heap_size()
        + spec.browse_name.name.as_str().len()
        + spec.extra.display_name.heap_size()
        + spec.extra.description.heap_size()
        + variable.map_or(0, |extra| size_of_val(&**extra) + extra.array_dimensions.heap_size())
}

/// Whether all values of a DataType and ValueRank have the same size.
fn is_fixed(data_type: &NodeId, value_rank: i32) -> bool {
    value_rank == -1
        && matches!(
            data_type.ns0(),
            Some(
                data_type_ids::BOOLEAN
                    ..=data_type_ids::DOUBLE | data_type_ids::DATE_TIME | data_type_ids::STATUS_CODE
            )
        )
}

impl Nodes {
    /// Allows clients to add nodes, charged to an account.
    pub(crate) fn set_added(&mut self, account: &Arc<Account>) {
        self.added = Some(Added::new(account));
    }

    /// The account for clients' nodes; `None` if clients cannot add any.
    pub(crate) fn added_account(&self) -> Option<Arc<Account>> {
        self.added.as_ref().map(|added| Arc::clone(&added.account))
    }

    /// Whether a client has added the node.
    pub(crate) fn is_added(&self, ix: NodeIx) -> bool {
        self.dynamic(ix).and_then(|node| node.extra.as_ref()).is_some_and(|extra| extra.added.is_some())
    }

    /// Adds a node without references. With an account it is a client's node.
    ///
    /// # Errors
    /// As [`Nodes::add`], or a limit of the account.
    pub(super) fn add_owned(
        &mut self,
        mut spec: NodeSpec,
        owner: Option<&Arc<Account>>,
        now: UtcTime,
    ) -> Result<NodeIx, NodeError> {
        let Some(account) = owner else { return self.add(spec, now) };
        if let NodeKind::Variable(variable) = &spec.kind {
            let can_change = variable.access_level & AccessLevelType::CURRENT_WRITE.0 != 0;
            if !is_fixed(&spec.data_type, variable.value_rank()) {
                let size = spec.value.as_ref().map_or(0, HeapSize::heap_size);
                let charge = account.charge(Category::AddedNodes, size)?;
                if can_change || size > 0 {
                    let handler = Arc::new(ChargedValue { charge: Mutex::new(charge) });
                    spec.extra.variable.get_or_insert_default().on_write.get_or_insert(handler);
                }
            }
            self.charge_data_type(&spec.data_type)?;
        }
        spec.extra.added = Some(Box::new(AddedNode {
            _bytes: account.charge(Category::AddedNodes, cost(&spec))?,
            _count: account.charge(Category::AddedNodeCount, 1)?,
        }));
        self.add(spec, now)
    }

    /// Charges the entry of a DataType in the table of data types.
    fn charge_data_type(&mut self, id: &NodeId) -> Result<(), NodeError> {
        // Those of namespace 0 have numbers and need no entry.
        if id.namespace_index != 0
            && !self.knows_data_type(id)
            && let Some(added) = &mut self.added
        {
            let size = added.kept.amount() + size_of::<NodeId>() * 2 + id.heap_size();
            added.kept.resize(size)?;
        }
        Ok(())
    }

    /// Adds a client's reference.
    ///
    /// # Errors
    /// The limits of the account.
    pub(crate) fn add_client_reference(
        &mut self,
        source: NodeIx,
        reference_type: NodeIx,
        target: NodeIx,
    ) -> Result<(), NodeError> {
        self.check_ends(source, target)?;
        let charged = |forward, to| PackedReference::new(reference_type.index, forward, to).charged();
        // If one end of a reference was deleted alone, the other end still exists and is charged.
        let left = self.reference_end(target, reference_type, false, source);
        if left.is_none_or(|left| !left.is_charged())
            && let Some(added) = &mut self.added
        {
            added.kept.resize(added.kept.amount() + REFERENCE)?;
        }
        self.push_reference(source, charged(true, target));
        if left.is_none() && super::build::wants_inverse(reference_type) {
            self.push_reference(target, charged(false, source));
        }
        Ok(())
    }

    /// Deletes a reference at both of its ends, or only at its source. False if it does not exist or belongs to the
    /// specification's nodes.
    pub(crate) fn delete_reference(
        &mut self,
        source: NodeIx,
        reference_type: NodeIx,
        is_forward: bool,
        target: NodeIx,
        at_both_ends: bool,
    ) -> bool {
        let there = self.remove_reference(source, reference_type, is_forward, target);
        let Some(mut was_charged) = there else { return false };
        let mut is_left = false;
        if at_both_ends {
            was_charged |= self.remove_reference(target, reference_type, !is_forward, source) == Some(true);
        } else if was_charged {
            is_left = self
                .reference_end(target, reference_type, !is_forward, source)
                .is_some_and(PackedReference::is_charged);
        }
        if was_charged
            && !is_left
            && let Some(added) = &mut self.added
        {
            added.forget_references(1);
        }
        true
    }

    /// One end of a reference, if it exists.
    fn reference_end(
        &self,
        at: NodeIx,
        reference_type: NodeIx,
        is_forward: bool,
        target: NodeIx,
    ) -> Option<PackedReference> {
        self.packed_end(at, reference_type.index, is_forward, target)
    }

    /// The same with the index of the reference type, as stored in references.
    pub(super) fn packed_end(
        &self,
        at: NodeIx,
        reference_type: u32,
        is_forward: bool,
        target: NodeIx,
    ) -> Option<PackedReference> {
        let references = if at.index < NodeIx::DYNAMIC {
            self.ns0_references.get(&at.index)?.as_slice()
        } else {
            self.dynamic(at)?.references.as_slice()
        };
        let is_it = |reference: &&PackedReference| {
            reference.reference_type() == reference_type
                && reference.is_forward() == is_forward
                && reference.target() == target
        };
        references.iter().find(is_it).copied()
    }

    /// Removes one end of a reference. Returns whether it was charged; `None` if it does not exist.
    fn remove_reference(
        &mut self,
        at: NodeIx,
        reference_type: NodeIx,
        is_forward: bool,
        target: NodeIx,
    ) -> Option<bool> {
        let is_it = |reference: &PackedReference| {
            reference.reference_type() == reference_type.index
                && reference.is_forward() == is_forward
                && reference.target() == target
        };
        let removed = if at.index < NodeIx::DYNAMIC {
            let references = self.ns0_references.get_mut(&at.index)?;
            let place = references.iter().position(is_it)?;
            references.remove(place)
        } else {
            let references = &mut self.dynamic_mut(at)?.references;
            let place = references.iter().position(is_it)?;
            references.remove(place)
        };
        self.note_reference_deleted(at, reference_type.index, is_forward, target);
        if is_forward {
            self.unindex_reference(at, reference_type, target);
        }
        Some(removed.is_charged())
    }

    /// Whether a reference can be deleted: a client added it, or one of its nodes.
    pub(crate) fn is_added_reference(
        &self,
        source: NodeIx,
        reference_type: NodeIx,
        is_forward: bool,
        target: NodeIx,
    ) -> bool {
        if self.is_added(source) || self.is_added(target) {
            return true;
        }
        self.reference_end(source, reference_type, is_forward, target)
            .is_some_and(PackedReference::is_charged)
    }

    /// An unused numeric id in a namespace.
    pub(crate) fn unused_id(&mut self, namespace: u16) -> Option<NodeId> {
        let mut next = self.added.as_ref()?.next_id;
        // One more than the maximum number of nodes.
        for _ in 0..=self.nodes_max() {
            let id = NodeId::numeric(namespace, next);
            next = next.checked_add(1).unwrap_or(FIRST_ID);
            if self.resolve(id.as_ref()).is_none() {
                if let Some(added) = &mut self.added {
                    added.next_id = next;
                }
                return Some(id);
            }
        }
        None
    }

    /// The parts (targets of Aggregates) of a client's node that clients have added.
    pub(crate) fn added_parts(&self, ix: NodeIx) -> Vec<NodeIx> {
        let aggregates = NodeIx::ns0(reference_type_ids::AGGREGATES);
        let mut parts = Vec::new();
        self.references(ix, |reference| {
            if reference.is_forward
                && self.is_added(reference.target)
                && self.is_subtype(reference.reference_type, aggregates)
            {
                parts.push(reference.target);
            }
            true
        });
        parts
    }

    /// Whether no hierarchical reference points to a node.
    pub(crate) fn is_orphan(&self, ix: NodeIx) -> bool {
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let mut found = false;
        self.references(ix, |reference| {
            found = !reference.is_forward && self.is_subtype(reference.reference_type, hierarchical);
            !found
        });
        !found
    }
}
