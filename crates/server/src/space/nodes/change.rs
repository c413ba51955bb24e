//! Adding and deleting nodes and references.

use super::{Nodes, hash};
use crate::authorization::Access;
use crate::space::error::NodeError;
use crate::space::events::SUBSCRIBE_TO_EVENTS;
use crate::space::node::{GENERATION_MAX, Node, NodeKind, PackedReference, VariableNode};
use crate::space::spec::NodeSpec;
use crate::space::{NodeIx, Reference};
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_slots::PAGE_SLOTS;
use taktwerk_types::{BuiltInType, NodeId, UtcTime, Variant};

/// The additional capacity of a list after it was searched, so that it is searched again only after it has grown.
fn room(len: usize) -> usize {
    (len / 4).max(1)
}

impl Nodes {
    /// The index of a data type in the table that Variables refer to.
    pub(crate) fn intern_data_type(&mut self, id: &NodeId) -> u16 {
        let at = self.data_types.iter().position(|known| known == id).unwrap_or_else(|| {
            self.data_types.push(id.clone());
            // Structures and abstract types have subtypes that must be examined.
            let kind = id.ns0().filter(|id| *id <= u32::from(BuiltInType::LocalizedText.number()));
            self.data_type_kinds.push(kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(0));
            self.data_types.len() - 1
        });
        u16::try_from(at).unwrap_or(0)
    }

    /// Whether the table of data types contains the id.
    pub(in crate::space) fn knows_data_type(&self, id: &NodeId) -> bool {
        self.data_types.contains(id)
    }

    /// Maximum number of nodes besides the static ones.
    pub(in crate::space) fn nodes_max(&self) -> usize {
        self.nodes_max
    }

    /// How many nodes can be added. Indexes that cannot be reused count as nodes: they still use memory.
    pub(in crate::space) fn room(&self) -> usize {
        self.nodes_max.saturating_sub(self.nodes.len() - self.free.len())
    }

    /// Number of nodes added so far: as long as it is the same, a missing node is still missing.
    pub(crate) fn additions(&self) -> u64 {
        self.additions
    }

    pub(crate) fn data_type(&self, index: u16) -> &NodeId {
        static NULL: NodeId = NodeId::NULL;
        self.data_types.get(usize::from(index)).unwrap_or(&NULL)
    }

    /// Adds a node without references.
    pub(crate) fn add(&mut self, spec: NodeSpec, now: UtcTime) -> Result<NodeIx, NodeError> {
        let NodeSpec { id, browse_name, mut kind, extra, data_type, value, status, access } = spec;
        if usize::from(id.namespace_index) >= self.namespaces.len() {
            return Err(NodeError::Namespace(id.namespace_index));
        }
        if id.is_null() || self.resolve(id.as_ref()).is_some() {
            return Err(NodeError::IdExists(id));
        }
        if self.room() == 0 {
            return Err(NodeError::Full(self.nodes_max));
        }
        let access = if access == Access::default() {
            self.access.silent(id.namespace_index)
        } else {
            let set = self.access.intern(id.namespace_index, access);
            set.ok_or(NodeError::NoPermissionsLeft(1))?
        };
        let notifies = kind.event_notifier() & SUBSCRIBE_TO_EVENTS != 0;
        match &mut kind {
            NodeKind::Variable(variable) => {
                variable.data_type = self.intern_data_type(&data_type);
                let slot = self.allocate_slot();
                // Without a value the status must be bad, and with a bad status there is no value.
                let first = match value {
                    _ if status.is_bad() => Some(Variant::Empty),
                    value => value.filter(|value| !value.is_empty()),
                };
                if let (Some(first), Some(page)) = (first, self.pages.get(slot.index() as usize / PAGE_SLOTS))
                {
                    page.set(slot.index(), first, status, now, now);
                }
                variable.slot = Some(slot);
            }
            NodeKind::VariableType(variable_type) => {
                variable_type.data_type = self.intern_data_type(&data_type);
                variable_type.value = value;
            }
            _ => {}
        }
        let mut extra = extra;
        if browse_name.namespace_index != id.namespace_index {
            extra.browse_namespace = Some(browse_name.namespace_index);
        }
        let ix = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            let at = u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX);
            NodeIx { index: at.saturating_add(NodeIx::DYNAMIC), generation: 0 }
        });
        let NodeIx { index, generation } = ix;
        let at = index - NodeIx::DYNAMIC;
        let hash = hash(&self.hasher, id.as_ref());
        self.additions += 1;
        self.recorded.note_added(&id, ix);
        let node = Node {
            identifier: id.identifier,
            namespace_index: id.namespace_index,
            browse_name: browse_name.name.as_str().into(),
            references: smallvec::SmallVec::new(),
            extra: (!extra.is_empty()).then(|| Box::new(extra)),
            generation,
            access,
            kind,
        };
        if let Some(place) = self.nodes.get_mut(at as usize) {
            *place = Some(node);
        }
        self.table.insert_unique(hash, at);
        if notifies && self.event_history().is_some() {
            self.link_event_history(ix)?;
        }
        Ok(ix)
    }

    /// Adds a reference and its inverse. Omit `inverse` for references to types, which would otherwise accumulate one
    /// entry per instance.
    pub(crate) fn add_reference(
        &mut self,
        source: NodeIx,
        reference_type: NodeIx,
        target: NodeIx,
        inverse: bool,
    ) -> Result<(), NodeError> {
        let class = self.view(reference_type).map(|node| node.class());
        if class != Some(NodeClass::REFERENCE_TYPE) {
            return Err(NodeError::ReferenceType(self.id_of(reference_type)));
        }
        self.check_ends(source, target)?;
        self.push_reference(source, PackedReference::new(reference_type.index, true, target));
        if inverse {
            self.push_reference(target, PackedReference::new(reference_type.index, false, source));
        }
        Ok(())
    }

    /// Whether the forward reference exists.
    pub(crate) fn has_reference(&self, source: NodeIx, reference_type: NodeIx, target: NodeIx) -> bool {
        let mut found = false;
        self.references(source, |reference| {
            found = reference.is_forward
                && reference.reference_type == reference_type
                && reference.target == target;
            !found
        });
        found
    }

    pub(in crate::space) fn push_reference(&mut self, at: NodeIx, reference: PackedReference) {
        if reference.is_forward() {
            self.index_reference(at, reference.reference_type(), reference.target());
            if reference.reference_type() == reference_type_ids::HAS_TYPE_DEFINITION {
                self.index_instance(at, reference.target());
            }
        }
        self.make_room(at);
        if at.index < NodeIx::DYNAMIC {
            self.ns0_references.entry(at.index).or_default().push(reference);
        } else if let Some(node) = self.dynamic_mut(at) {
            node.references.push(reference);
        }
        let (kind, target) = (reference.reference_type(), reference.target());
        self.note_reference_added(at, kind, reference.is_forward(), target);
    }

    /// Removes the references to deleted nodes before a list of references grows. Lists grow by doubling, so this costs
    /// no more than growing.
    fn make_room(&mut self, at: NodeIx) {
        let is_full = if at.index < NodeIx::DYNAMIC {
            self.ns0_references.get(&at.index).is_some_and(|list| list.len() == list.capacity())
        } else {
            self.dynamic(at).is_some_and(|node| node.references.len() == node.references.capacity())
        };
        if !is_full {
            return;
        }
        self.clean(at);
        let count = self.list_len(at);
        if !self.stale.has_more(at.index, count) {
            return;
        }
        let mut charged = 0;
        let mut removed = 0;
        let mut is_kept = |nodes: &Self, reference: &PackedReference| {
            let is_kept = nodes.is_there(reference.target());
            charged += usize::from(!is_kept && reference.is_charged());
            removed += usize::from(!is_kept);
            is_kept
        };
        if at.index < NodeIx::DYNAMIC {
            let Some(references) = self.ns0_references.get_mut(&at.index) else { return };
            let mut references = core::mem::take(references);
            references.retain(|reference| is_kept(self, reference));
            references.reserve(room(references.len()));
            self.ns0_references.insert(at.index, references);
        } else {
            let Some(node) = self.dynamic_mut(at) else { return };
            let mut references = core::mem::take(&mut node.references);
            references.retain(|reference| is_kept(self, reference));
            references.reserve(room(references.len()));
            if let Some(node) = self.dynamic_mut(at) {
                node.references = references;
            }
        }
        if let Some(added) = self.added.as_mut().filter(|_| charged > 0) {
            added.forget_references(charged);
        }
        if removed > 0 {
            // The index of names contains them too. It is rebuilt when needed.
            self.names.remove_parent(at.index);
        }
    }

    /// Deletes a heap node with all references from and to it. Returns how many references were examined.
    pub(crate) fn delete(&mut self, ix: NodeIx) -> Result<usize, NodeError> {
        self.delete_all(&[ix])
    }

    /// [`Self::delete`] for several different nodes. A node with references to many of them, such as their folder, is
    /// searched once.
    pub(crate) fn delete_all(&mut self, all: &[NodeIx]) -> Result<usize, NodeError> {
        if let Some(ix) = all.iter().find(|ix| ix.index < NodeIx::DYNAMIC) {
            return Err(NodeError::Static(self.id_of(*ix)));
        }
        let mut going = all.to_vec();
        going.extend(self.annotations_of(all));
        going.sort_unstable();
        going.dedup();
        let all = &going;
        let is_type = |ix: &&NodeIx| {
            matches!(
                self.view(**ix).map(|view| view.class()),
                Some(NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE | NodeClass::REFERENCE_TYPE)
            )
        };
        let types: Vec<NodeIx> = going.iter().filter(is_type).copied().collect();
        if !types.is_empty() {
            self.clean_all();
        }
        let mut looked_at: usize = all.iter().map(|ix| self.clean(*ix)).sum();
        // References that clients added between two deleted nodes; each is charged once.
        let mut among = Vec::new();
        for (ix, node) in all.iter().filter_map(|ix| Some((*ix, self.dynamic(*ix)?))) {
            let charged = node.references.iter().filter(|reference| {
                reference.is_charged()
                    && reference.is_forward()
                    && going.binary_search(&reference.target()).is_ok()
            });
            among.extend(charged.map(|reference| (ix, reference.uncharged())));
        }
        among.sort_unstable();
        let mut ends = Vec::new();
        for ix in all {
            looked_at += self.detach(*ix, &among, &mut ends);
        }
        ends.sort_unstable();
        for end in ends.chunk_by(|(one, _), (other, _)| one == other) {
            if let Some((at, _)) = end.first().filter(|(at, _)| going.binary_search(at).is_err()) {
                looked_at += self.leave_out(*at, end, !types.is_empty());
            }
        }
        if !types.is_empty() {
            self.forget_types(&types);
        }
        all.iter().for_each(|ix| self.take_out(*ix));
        Ok(looked_at)
    }

    /// Collects data about a node before it is deleted. `among` contains the charged forward references between the
    /// deleted nodes, sorted. Adds the nodes at the other ends of its references to `ends`, with their list entries.
    /// Returns the number of its references.
    fn detach(
        &mut self,
        ix: NodeIx,
        among: &[(NodeIx, PackedReference)],
        ends: &mut Vec<(NodeIx, PackedReference)>,
    ) -> usize {
        let mut others = Vec::new();
        self.references(ix, |reference| {
            others.push(reference);
            true
        });
        self.note_deleted(ix);
        self.unindex_instance(ix, self.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION));
        for reference in &others {
            let (kind, other) = (reference.reference_type, reference.target);
            self.note_reference_deleted(other, kind.index, !reference.is_forward, ix);
        }
        // A reference is charged once. If both ends are deleted, the forward one counts.
        let counts = |reference: &&PackedReference| {
            let forward = PackedReference::new(reference.reference_type(), true, ix);
            reference.is_charged()
                && (reference.is_forward() || among.binary_search(&(reference.target(), forward)).is_err())
        };
        let charged = self.dynamic(ix).map_or(0, |node| node.references.iter().filter(counts).count());
        if let Some(added) = &mut self.added {
            added.forget_references(charged);
        }
        for Reference { reference_type, is_forward, target: other } in &others {
            if !is_forward {
                self.unindex_reference(*other, *reference_type, ix);
            }
            ends.push((*other, PackedReference::new(reference_type.index, !is_forward, ix)));
        }
        others.len()
    }

    /// Deletes a node without references to it.
    fn take_out(&mut self, ix: NodeIx) {
        self.names.remove_parent(ix.index);
        self.stale.forget(ix.index);
        self.recorded.forget(ix);
        let at = ix.index - NodeIx::DYNAMIC;
        let Some(node) = self.nodes.get_mut(at as usize).and_then(Option::take) else { return };
        let hash = hash(&self.hasher, node.id_ref());
        self.table.remove(hash, |candidate| *candidate == at);
        if let NodeKind::Variable(VariableNode { slot: Some(slot), .. }) = node.kind {
            // Remaining items see this as their last value, whatever is still in transit.
            self.slots.handle(&slot).close();
            self.slots.release(slot);
        }
        // An index whose generations are used up is not reused, so that no reference points to another node.
        if node.generation < GENERATION_MAX {
            self.free.push(NodeIx { generation: node.generation + 1, ..ix });
        }
    }

    /// Removes references of all nodes to deleted types, sorted. Types have no references to their instances.
    fn forget_types(&mut self, types: &[NodeIx]) {
        let mut charged = 0;
        let mut keep = |reference: &PackedReference| {
            let kept = types.binary_search(&reference.target()).is_err()
                && types.binary_search_by_key(&reference.reference_type(), |ix| ix.index).is_err();
            charged += usize::from(!kept && reference.is_charged() && reference.is_forward());
            kept
        };
        for node in self.nodes.iter_mut().flatten() {
            node.references.retain(|reference| keep(reference));
        }
        for references in self.ns0_references.values_mut() {
            references.retain(|reference| keep(reference));
        }
        if let Some(added) = &mut self.added {
            added.forget_references(charged);
        }
    }
}
