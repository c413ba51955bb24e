//! Sources of Variables' values: slots, callbacks, the static data, or the server's own state.

use super::{Nodes, hash_number};
use crate::authorization::Decisions;
use crate::callback::{MethodHandler, ValueSource, WriteHandler};
use crate::diagnostics::Live;
use crate::diagnostics::nodes::SessionNode;
use crate::history::NodeHistory;
use crate::space::NodeIx;
use crate::space::data_type::built_in;
use crate::space::node::{NodeKind, VariableNode};
use std::sync::Arc;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{NodeClass, PermissionType};
use taktwerk_slots::{PAGE_SLOTS, Scalar, SlotHandle, SlotShare, Snapshot};
use taktwerk_types::{Array, ArrayValues, Identifier, StatusCode, UtcTime, Variant};

/// The source of a Variable's value.
#[derive(Debug)]
pub(crate) enum ValueAt<'a> {
    /// A slot; read it with [`Nodes::slot`].
    Slot(&'a SlotShare),
    /// A callback, with the slot for its last value.
    Source(&'a Arc<dyn ValueSource>, &'a SlotShare),
    /// The binary encoding of a Variant in the static data.
    Static(&'static [u8]),
    /// Computed on access from the server's own state, by [`Nodes::computed`].
    Computed(NodeIx),
    /// No value at all.
    None,
}

/// Replaces the static value of a static Variable.
#[derive(Debug)]
pub(super) struct Ns0Value {
    slot: SlotShare,
    source: Option<Arc<dyn ValueSource>>,
}

impl Nodes {
    /// The source of a Variable's value.
    pub(crate) fn value_at(&self, ix: NodeIx) -> ValueAt<'_> {
        if ix.index < NodeIx::DYNAMIC {
            if self.live.is_some() && Live::computes(ix.index) {
                return ValueAt::Computed(ix);
            }
            return match self.ns0_values.get(&ix.index) {
                Some(Ns0Value { slot, source: Some(source) }) => ValueAt::Source(source, slot),
                Some(Ns0Value { slot, source: None }) => ValueAt::Slot(slot),
                None => match Ns0::get().node(ix.index).and_then(|node| node.extras().value) {
                    Some(bytes) => ValueAt::Static(bytes),
                    None => ValueAt::None,
                },
            };
        }
        match self.dynamic(ix).map(|node| (&node.kind, node)) {
            Some((NodeKind::Variable(VariableNode { slot: Some(slot), .. }), node)) => match node.source() {
                Some(source) => ValueAt::Source(source, slot),
                None => ValueAt::Slot(slot),
            },
            _ if SessionNode::from_ix(ix).is_some() => ValueAt::Computed(ix),
            _ => ValueAt::None,
        }
    }

    /// The value of a [`ValueAt::None`]: an empty list for arrays; null for types and InstanceDeclarations, which need
    /// no value (Part 3 §5.6.2, §6.2.6).
    ///
    /// # Errors
    /// Bad_NotSupported for all others: the Variable belongs to a feature that this server does not support.
    pub(crate) fn unset_value(&self, ix: NodeIx) -> Result<Variant, StatusCode> {
        let view = self.view(ix).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let is_declaration = self.forward_target(ix, reference_type_ids::HAS_MODELLING_RULE).is_some();
        if is_declaration || view.class() == NodeClass::VARIABLE_TYPE {
            return Ok(Variant::Empty);
        }
        let data_type = view.data_type().and_then(|id| self.resolve(id.as_ref()));
        let kind = data_type.and_then(|ix| built_in(self, ix));
        match (view.value_rank(), kind) {
            (Some(1), Some(kind)) => Ok(Variant::Array(Box::new(Array {
                values: ArrayValues::empty(kind),
                dimensions: Vec::new(),
            }))),
            _ => Err(StatusCode::BAD_NOT_SUPPORTED),
        }
    }

    /// The current value of a [`ValueAt::Computed`].
    ///
    /// # Errors
    /// Bad_NodeIdUnknown if the node no longer exists.
    pub(crate) fn computed(&self, ix: NodeIx, now: UtcTime) -> Result<Variant, StatusCode> {
        let live = self.live.as_deref().ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        match SessionNode::from_ix(ix) {
            Some(node) => live.session_value(node),
            None => live.ns0_value(ix.index, now),
        }
        .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
    }

    /// The name of an existing session.
    pub(crate) fn session_name(&self, session: u32) -> Option<Box<str>> {
        Some(self.live.as_deref()?.session(session)?.name.clone())
    }

    /// A consistent copy of a slot.
    #[inline]
    pub(crate) fn slot(&self, slot: &SlotShare) -> Option<Snapshot> {
        Some(self.pages.get(slot.index() as usize / PAGE_SLOTS)?.read(slot.index()))
    }

    /// Fast path of Read: the inline value of an ordinary Variable with a numeric id, with one hash and one comparison.
    /// `None` means that the general path must be used.
    #[inline]
    pub(crate) fn readable_scalar(
        &self,
        decisions: &Decisions,
        namespace_index: u16,
        value: u32,
    ) -> Option<Scalar> {
        let at = *self.table.find(hash_number(&self.hasher, namespace_index, value), |at| {
            let Some(Some(node)) = self.nodes.get(*at as usize) else { return false };
            node.namespace_index == namespace_index
                && matches!(node.identifier, Identifier::Numeric(known) if known == value)
        })?;
        let node = self.nodes.get(at as usize)?.as_ref()?;
        if !decisions.of_set(node.access).contains(PermissionType::READ) {
            return None;
        }
        match &node.kind {
            NodeKind::Variable(variable) if variable.is_readable() && node.source().is_none() => {
                let slot = variable.slot.as_ref()?.index();
                self.pages.get(slot as usize / PAGE_SLOTS)?.read_scalar(slot)
            }
            _ => None,
        }
    }

    /// The value of an ordinary heap Variable that the session may read. `None` means that the general path must be
    /// used.
    #[inline]
    pub(crate) fn readable_slot(&self, decisions: &Decisions, ix: NodeIx) -> Option<Snapshot> {
        let node = self.dynamic(ix)?;
        if !decisions.of_set(node.access).contains(PermissionType::READ) {
            return None;
        }
        match &node.kind {
            NodeKind::Variable(variable) if variable.is_readable() && node.source().is_none() => {
                self.slot(variable.slot.as_ref()?)
            }
            _ => None,
        }
    }

    /// A handle to a Variable's slot, created if necessary for static Variables. `None` if `ix` is not a Variable.
    pub(crate) fn slot_handle(&self, ix: NodeIx) -> Option<SlotHandle> {
        match self.value_at(ix) {
            ValueAt::Slot(slot) | ValueAt::Source(_, slot) => Some(self.slots.handle(slot)),
            ValueAt::Static(_) | ValueAt::Computed(_) | ValueAt::None => None,
        }
    }

    /// A handle to the slot of a static Variable; its value replaces the static one.
    pub(crate) fn ns0_slot(&mut self, id: u32) -> SlotHandle {
        if let Some(value) = self.ns0_values.get(&id) {
            return self.slots.handle(&value.slot);
        }
        let slot = self.allocate_slot();
        let handle = self.slots.handle(&slot);
        self.ns0_values.insert(id, Ns0Value { slot, source: None });
        handle
    }

    /// Sets a callback as the source of a static Variable's value.
    pub(crate) fn set_ns0_source(&mut self, id: u32, source: Arc<dyn ValueSource>) {
        self.ns0_slot(id);
        if let Some(value) = self.ns0_values.get_mut(&id) {
            value.source = Some(source);
        }
    }

    /// Implements a static Method.
    pub(crate) fn set_ns0_method(&mut self, id: u32, handler: Arc<dyn MethodHandler>) {
        self.ns0_methods.insert(id, handler);
    }

    pub(crate) fn ns0_method(&self, id: u32) -> Option<&Arc<dyn MethodHandler>> {
        self.ns0_methods.get(&id)
    }

    pub(super) fn allocate_slot(&mut self) -> SlotShare {
        let slot = self.slots.allocate();
        let known = self.pages.len();
        if slot.index() as usize / PAGE_SLOTS >= known {
            self.pages.extend(self.slots.pages_from(known));
        }
        slot
    }

    /// Fast path of Write: stores a scalar in an ordinary Variable of exactly its built-in type. Returns the value if
    /// the general path must be used.
    #[inline]
    pub(crate) fn write_scalar(
        &self,
        decisions: &Decisions,
        ix: NodeIx,
        value: Variant,
        source: UtcTime,
        server: UtcTime,
    ) -> Option<Variant> {
        let plain = self.dynamic(ix).and_then(|node| match &node.kind {
            // Properties of namespace 0 can define the semantics of their variable.
            NodeKind::Variable(variable)
                if node.variable_extra().is_none()
                    && node.browse_namespace() != 0
                    && decisions.of_set(node.access).contains(PermissionType::WRITE) =>
            {
                Some(variable)
            }
            _ => None,
        });
        let fits = plain.filter(|variable| {
            let kind = self.data_type_kinds.get(usize::from(variable.data_type)).copied().unwrap_or(0);
            variable.is_writable()
                && variable.value_rank == -1
                && value.as_array().is_none()
                && value.built_in_type().is_some_and(|built_in| built_in.number() == kind)
        });
        let slot = fits.and_then(|variable| variable.slot.as_ref()).map(SlotShare::index);
        let Some((slot, page)) =
            slot.and_then(|slot| Some((slot, self.pages.get(slot as usize / PAGE_SLOTS)?)))
        else {
            return Some(value);
        };
        page.set(slot, value, StatusCode::GOOD, source, server);
        None
    }

    /// The write handler of a Variable.
    pub(crate) fn write_handler(&self, ix: NodeIx) -> Option<&Arc<dyn WriteHandler>> {
        if ix.index < NodeIx::DYNAMIC {
            return self.ns0_writers.get(&ix.index);
        }
        self.dynamic(ix)?.variable_extra()?.on_write.as_ref()
    }

    /// Sets the write handler of a static Variable that the specification makes writable.
    pub(crate) fn set_ns0_writer(&mut self, id: u32, handler: Arc<dyn WriteHandler>) {
        self.ns0_slot(id);
        self.ns0_writers.insert(id, handler);
    }

    /// The implementation of a Method.
    pub(crate) fn method_handler(&self, ix: NodeIx) -> Option<&Arc<dyn MethodHandler>> {
        if ix.index < NodeIx::DYNAMIC {
            return self.ns0_method(ix.index);
        }
        self.dynamic(ix)?.handler()
    }

    /// The history of a Variable.
    pub(crate) fn history(&self, ix: NodeIx) -> Option<&Arc<NodeHistory>> {
        self.dynamic(ix)?.variable_extra()?.history.as_ref()
    }
}
