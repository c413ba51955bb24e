//! The node tables: finding, adding and deleting nodes and references.

use super::error::NodeError;
use super::node::{GENERATION_MAX, INDEX_MAX, Node, NodeKind, PackedReference, VariableExtra, VariableNode};
use super::page::{PAGE_SLOTS, Page};
use super::slot::{Scalar, Snapshot};
use super::spec::NodeSpec;
use super::store::{SlotHandle, SlotShare, SlotStore};
use super::view::{NodeView, is_builtin_method};
use super::{NodeIx, Reference};
use crate::authorization::{Access, AccessTable, Decisions};
use crate::callback::ValueSource;
use crate::diagnostics::Live;
use crate::diagnostics::nodes::{SessionNode, summary_references};
use crate::history::NodeHistory;
use core::hash::{BuildHasher, Hash, Hasher};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_schema::ids::{data_type_ids, method_ids, object_ids, reference_type_ids, variable_ids};
use taktwerk_schema::ns0::Ns0;
use taktwerk_schema::{NodeClass, PermissionType};
use taktwerk_types::{
    Array, ArrayValues, BuiltInType, IdentifierRef, NodeId, NodeIdRef, QualifiedName, StatusCode, UaString,
    UtcTime, Variant,
};

/// How many nodes there may be besides the static ones.
const NODES_MAX: usize = 8_000_000;
const _: () = assert!(NODES_MAX + (NodeIx::DYNAMIC as usize) < INDEX_MAX as usize);

/// Where a Variable's value comes from.
#[derive(Debug)]
pub(crate) enum ValueAt<'a> {
    /// A slot; read it with [`Nodes::slot`].
    Slot(&'a SlotShare),
    /// A callback, with the slot that its last value is kept in.
    Source(&'a Arc<dyn ValueSource>, &'a SlotShare),
    /// The binary encoding of a Variant in the static blob.
    Static(&'static [u8]),
    /// Made from the server's own state when somebody asks, by [`Nodes::computed`].
    Computed(NodeIx),
    /// No value at all.
    None,
}

/// All nodes.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(super) hasher: DefaultHashBuilder,
    /// Indexes into `nodes`, hashed by NodeId.
    table: HashTable<u32>,
    nodes: Vec<Option<Node>>,
    /// Indexes of nodes that are gone, each with the generation of its next one.
    free: Vec<NodeIx>,
    /// References from static nodes to others.
    pub(super) ns0_references: BTreeMap<u32, Vec<PackedReference>>,
    /// Live values of static Variables.
    ns0_values: BTreeMap<u32, Ns0Value>,
    /// Implementations of static Methods.
    ns0_methods: BTreeMap<u32, Arc<dyn crate::callback::MethodHandler>>,
    namespaces: Vec<String>,
    /// What the server's own Variables show, and the sessions that have diagnostics nodes.
    live: Option<Arc<Live>>,
    /// Subscriptions can be durable.
    durable: bool,
    /// Where events are kept, and whether clients may change that.
    event_history: Option<(Arc<NodeHistory>, bool)>,
    data_types: Vec<NodeId>,
    /// The built-in type's number of each of `data_types` that is one, 0 for all others.
    data_type_kinds: Vec<u8>,
    slots: Arc<SlotStore>,
    pages: Vec<Arc<Page>>,
    nodes_max: usize,
    /// What clients have added; `None` if they cannot.
    pub(super) added: Option<super::added::Added>,
    pub(super) names: super::names::Names,
    pub(super) versions: super::versions::Versions,
    pub(super) instances: super::instances::Instances,
    access: AccessTable,
}

/// What replaces the blob's value of a static Variable.
#[derive(Debug)]
struct Ns0Value {
    slot: SlotShare,
    source: Option<Arc<dyn ValueSource>>,
}

impl Nodes {
    pub(crate) fn new(slots: Arc<SlotStore>, application_uri: &str) -> Self {
        let mut nodes = Self {
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            ns0_references: BTreeMap::new(),
            ns0_values: BTreeMap::new(),
            ns0_methods: BTreeMap::new(),
            namespaces: vec!["http://opcfoundation.org/UA/".to_owned(), application_uri.to_owned()],
            live: None,
            durable: false,
            event_history: None,
            data_types: vec![NodeId::numeric(0, data_type_ids::BASE_DATA_TYPE)],
            data_type_kinds: vec![0],
            slots,
            pages: Vec::new(),
            nodes_max: NODES_MAX,
            added: None,
            names: super::names::Names::default(),
            versions: super::versions::Versions::default(),
            instances: super::instances::Instances::default(),
            access: AccessTable::new(),
        };
        nodes.access.add_namespace(application_uri);
        nodes.publish_namespaces();
        nodes
    }

    /// Connects the server's own Variables with what they show.
    pub(crate) fn set_live(&mut self, live: Arc<Live>) {
        self.live = Some(live);
    }

    /// Says where events are kept, and whether clients may change that.
    pub(crate) fn set_event_history(&mut self, history: NodeHistory, writable: bool) {
        self.event_history = Some((Arc::new(history), writable));
    }

    /// Where events are kept.
    pub(crate) fn event_history(&self) -> Option<&Arc<NodeHistory>> {
        self.event_history.as_ref().map(|(history, _)| history)
    }

    /// What EventNotifiers say of the history of events.
    pub(crate) fn event_history_bits(&self) -> u8 {
        match self.event_history {
            None => 0,
            Some((_, false)) => super::events::HISTORY_READ,
            Some((_, true)) => super::events::HISTORY_READ | super::events::HISTORY_WRITE,
        }
    }

    /// Says whether subscriptions can be durable.
    pub(crate) fn set_durable(&mut self, durable: bool) {
        self.durable = durable;
    }

    /// Whether the server itself answers calls of a method of namespace 0.
    pub(crate) fn is_builtin_method(&self, id: u32) -> bool {
        let is_offered = id != method_ids::SERVER_SET_SUBSCRIPTION_DURABLE || self.durable;
        is_offered && is_builtin_method(id)
    }

    // ---- namespaces

    /// The NamespaceArray.
    pub(crate) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The index of a namespace, registered if need be.
    pub(crate) fn add_namespace(&mut self, uri: &str) -> u16 {
        if let Some(index) = self.namespaces.iter().position(|known| known == uri) {
            return u16::try_from(index).unwrap_or(u16::MAX);
        }
        self.namespaces.push(uri.to_owned());
        self.access.add_namespace(uri);
        self.publish_namespaces();
        u16::try_from(self.namespaces.len() - 1).unwrap_or(u16::MAX)
    }

    fn publish_namespaces(&mut self) {
        let uris: Vec<UaString> = self.namespaces.iter().map(|uri| uri.as_str().into()).collect();
        let slot = self.ns0_slot(variable_ids::SERVER_NAMESPACE_ARRAY);
        slot.set(uris.into(), StatusCode::GOOD, UtcTime::NULL, UtcTime::NULL);
    }

    // ---- access

    /// Who may do what with which set of nodes.
    pub(crate) fn access(&self) -> &AccessTable {
        &self.access
    }

    /// Takes over what the configuration says about roles.
    pub(crate) fn configure_access(&mut self, authorization: &crate::authorization::Authorization) {
        self.access.configure(authorization, &self.namespaces);
        super::metadata::publish(self);
    }

    /// Sets the defaults of a namespace.
    pub(crate) fn set_namespace_access(&mut self, index: u16, access: Access) {
        self.access.set_namespace(index, access);
        super::metadata::publish(self);
    }

    /// Which of the sets a node belongs to; one that nobody may do anything with if the node is gone.
    #[inline]
    pub(crate) fn access_set(&self, ix: NodeIx) -> u16 {
        if ix.index < NodeIx::DYNAMIC {
            return self.access.ns0(ix.index);
        }
        match self.dynamic(ix) {
            Some(node) => node.access,
            None => {
                SessionNode::from_ix(ix).map_or(u16::MAX, |node| self.access.session(node.is_confidential()))
            }
        }
    }

    /// Changes what a node says about who may do what with it.
    pub(crate) fn set_access(&mut self, ix: NodeIx, access: Access) -> Result<(), NodeError> {
        let namespace = self.id_of(ix).namespace_index;
        let set = self.access.intern(namespace, access).ok_or(NodeError::Full(usize::from(u16::MAX)))?;
        if ix.index < NodeIx::DYNAMIC {
            self.access.set_ns0(ix.index, set);
        } else if let Some(node) = self.dynamic_mut(ix) {
            node.access = set;
            self.access.touch();
        }
        Ok(())
    }

    // ---- finding

    /// The place of a node.
    #[inline]
    pub(crate) fn resolve(&self, id: NodeIdRef<'_>) -> Option<NodeIx> {
        if let (0, IdentifierRef::Numeric(value)) = (id.namespace_index, id.identifier) {
            if value < NodeIx::DYNAMIC && Ns0::get().contains(value) {
                return Some(NodeIx::ns0(value));
            }
        }
        let found = self.table.find(hash(&self.hasher, id), |at| {
            self.nodes.get(*at as usize).and_then(Option::as_ref).is_some_and(|node| node.id_ref() == id)
        });
        let Some(&at) = found else {
            return SessionNode::resolve(id, self.live.as_deref()?).map(SessionNode::ix);
        };
        let node = self.nodes.get(at as usize)?.as_ref()?;
        Some(NodeIx { index: at + NodeIx::DYNAMIC, generation: node.generation })
    }

    /// Like [`Self::resolve`], as services answer it.
    pub(crate) fn find(&self, id: &NodeId) -> Result<NodeIx, NodeError> {
        self.resolve(id.as_ref()).ok_or_else(|| NodeError::Unknown(id.clone()))
    }

    /// The index with its present generation; `None` if the node is gone.
    pub(crate) fn ix(&self, index: u32) -> Option<NodeIx> {
        if index < NodeIx::DYNAMIC {
            return Some(NodeIx::ns0(index));
        }
        let at = (index - NodeIx::DYNAMIC) as usize;
        let node = self.nodes.get(at)?.as_ref()?;
        Some(NodeIx { index, generation: node.generation })
    }

    /// Refuses references of nodes that are made when somebody asks for them: those of sessions.
    pub(super) fn check_ends(&self, source: NodeIx, target: NodeIx) -> Result<(), NodeError> {
        match [source, target].into_iter().find(|ix| !self.is_there(*ix)) {
            Some(made) => Err(NodeError::Unknown(self.id_of(made))),
            None => Ok(()),
        }
    }

    /// Whether a node of a stored reference still exists.
    #[inline]
    fn is_there(&self, ix: NodeIx) -> bool {
        ix.index < NodeIx::DYNAMIC || self.dynamic(ix).is_some()
    }

    /// A node on the heap.
    pub(crate) fn dynamic(&self, ix: NodeIx) -> Option<&Node> {
        let at = ix.index.checked_sub(NodeIx::DYNAMIC)? as usize;
        self.nodes.get(at)?.as_ref().filter(|node| node.generation == ix.generation)
    }

    pub(crate) fn dynamic_mut(&mut self, ix: NodeIx) -> Option<&mut Node> {
        let at = ix.index.checked_sub(NodeIx::DYNAMIC)? as usize;
        self.nodes.get_mut(at)?.as_mut().filter(|node| node.generation == ix.generation)
    }

    /// A node, wherever it lives.
    pub(crate) fn view(&self, ix: NodeIx) -> Option<NodeView<'_>> {
        NodeView::new(self, ix)
    }

    /// Calls `each` with every reference of a node, static ones first, until it returns false.
    #[inline]
    pub(crate) fn references(&self, ix: NodeIx, mut each: impl FnMut(Reference) -> bool) {
        self.references_from(ix, 0, |_, reference| each(reference));
    }

    /// The same from the one with the number `from` on, and with their numbers: where to go on, as long as no
    /// reference of the node is deleted.
    pub(crate) fn references_from(
        &self,
        ix: NodeIx,
        from: usize,
        mut each: impl FnMut(usize, Reference) -> bool,
    ) {
        if let Some(node) = SessionNode::from_ix(ix) {
            let mut numbers = 0..;
            return node.references(|reference| {
                let at = numbers.next().unwrap_or(usize::MAX);
                at < from || each(at, reference)
            });
        }
        let mut at = from;
        let mut give = |at: usize, reference_type: u32, is_forward: bool, target: NodeIx| -> bool {
            match self.ix(reference_type) {
                Some(reference_type) if self.is_there(target) => {
                    each(at, Reference { reference_type, is_forward, target })
                }
                _ => true,
            }
        };
        let mut before = 0;
        let packed: &[PackedReference] = if ix.index < NodeIx::DYNAMIC {
            let fixed = Ns0::get().references(ix.index);
            before = fixed.len();
            for reference in fixed.skip(from) {
                let target = NodeIx::ns0(reference.target);
                if !give(at, reference.reference_type, reference.is_forward, target) {
                    return;
                }
                at += 1;
            }
            self.ns0_references.get(&ix.index).map_or(&[], Vec::as_slice)
        } else {
            self.dynamic(ix).map_or(&[], |node| node.references.as_slice())
        };
        for reference in packed.get(at - before..).unwrap_or_default() {
            if !give(at, reference.reference_type(), reference.is_forward(), reference.target()) {
                return;
            }
            at += 1;
        }
        if ix == NodeIx::ns0(object_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY) {
            if let Some(live) = &self.live {
                let mut numbers = before + packed.len()..;
                summary_references(live, |reference| {
                    let at = numbers.next().unwrap_or(usize::MAX);
                    at < from || each(at, reference)
                });
            }
        }
    }

    /// Whether a type is `ancestor` or one of its subtypes.
    pub(crate) fn is_subtype(&self, mut ix: NodeIx, ancestor: NodeIx) -> bool {
        // Types nest a dozen levels deep; the bound only stops a cycle that a broken NodeSet brought.
        for _ in 0..64 {
            if ix == ancestor {
                return true;
            }
            if ix.index < NodeIx::DYNAMIC {
                return ancestor.index < NodeIx::DYNAMIC
                    && Ns0::get().is_subtype_of(ix.index, ancestor.index);
            }
            let mut parent = None;
            self.references(ix, |reference| {
                if !reference.is_forward && reference.reference_type.index == reference_type_ids::HAS_SUBTYPE
                {
                    parent = Some(reference.target);
                }
                parent.is_none()
            });
            let Some(next) = parent else { return false };
            ix = next;
        }
        false
    }

    /// The type that a type derives from.
    pub(crate) fn supertype(&self, ix: NodeIx) -> Option<NodeIx> {
        if ix.index < NodeIx::DYNAMIC {
            return Ns0::get().node(ix.index)?.supertype().map(NodeIx::ns0);
        }
        let mut parent = None;
        self.references(ix, |reference| {
            if !reference.is_forward && reference.reference_type.index == reference_type_ids::HAS_SUBTYPE {
                parent = Some(reference.target);
            }
            parent.is_none()
        });
        parent
    }

    /// The first target of a forward reference of exactly this type.
    pub(crate) fn forward_target(&self, ix: NodeIx, reference_type: u32) -> Option<NodeIx> {
        let mut found = None;
        self.references(ix, |reference| {
            if reference.is_forward && reference.reference_type.index == reference_type {
                found = Some(reference.target);
            }
            found.is_none()
        });
        found
    }

    /// The child that a hierarchical forward reference names so.
    pub(crate) fn child(&self, parent: NodeIx, name: &QualifiedName) -> Option<NodeIx> {
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let mut found = None;
        self.references(parent, |reference| {
            if reference.is_forward
                && self.is_subtype(reference.reference_type, hierarchical)
                && self.view(reference.target).is_some_and(|node| node.has_browse_name(name))
            {
                found = Some(reference.target);
            }
            found.is_none()
        });
        found
    }

    /// The child that a forward reference of exactly this type names so.
    pub(crate) fn child_by(
        &self,
        parent: NodeIx,
        reference_type: u32,
        name: &QualifiedName,
    ) -> Option<NodeIx> {
        let mut found = None;
        self.references(parent, |reference| {
            if reference.is_forward
                && reference.reference_type.index == reference_type
                && self.view(reference.target).is_some_and(|node| node.has_browse_name(name))
            {
                found = Some(reference.target);
            }
            found.is_none()
        });
        found
    }

    // ---- values

    /// Where a Variable's value is.
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

    /// The value of a [`ValueAt::None`]: a list has nothing in it, and a type or an InstanceDeclaration need not have a
    /// value (Part 3 §5.6.2, §6.2.6).
    ///
    /// # Errors
    /// Bad_NotSupported for anything else: the Variable belongs to something that this server does not do.
    pub(crate) fn unset_value(&self, ix: NodeIx) -> Result<Variant, StatusCode> {
        let view = self.view(ix).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let is_declaration = self.forward_target(ix, reference_type_ids::HAS_MODELLING_RULE).is_some();
        if is_declaration || view.class() == taktwerk_schema::NodeClass::VARIABLE_TYPE {
            return Ok(Variant::Empty);
        }
        let data_type = view.data_type().and_then(|id| self.resolve(id.as_ref()));
        let kind = data_type.and_then(|ix| super::data_type::built_in(self, ix));
        match (view.value_rank(), kind) {
            (Some(1), Some(kind)) => Ok(Variant::Array(Box::new(Array {
                values: ArrayValues::empty(kind),
                dimensions: Vec::new(),
            }))),
            _ => Err(StatusCode::BAD_NOT_SUPPORTED),
        }
    }

    /// The value of a [`ValueAt::Computed`] at a time.
    ///
    /// # Errors
    /// Bad_NodeIdUnknown if the node is gone.
    pub(crate) fn computed(&self, ix: NodeIx, now: UtcTime) -> Result<Variant, StatusCode> {
        let live = self.live.as_deref().ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        match SessionNode::from_ix(ix) {
            Some(node) => live.session_value(node),
            None => live.ns0_value(ix.index, now),
        }
        .ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)
    }

    /// The name of a session that exists.
    pub(crate) fn session_name(&self, session: u32) -> Option<Box<str>> {
        Some(self.live.as_deref()?.session(session)?.name.clone())
    }

    /// A consistent copy of a slot.
    #[inline]
    pub(crate) fn slot(&self, slot: &SlotShare) -> Option<Snapshot> {
        Some(self.pages.get(slot.index() as usize / PAGE_SLOTS)?.read(slot.index()))
    }

    /// The inline value of an ordinary Variable with a numeric id: the fast way through a Read, one hash and one
    /// comparison. `None` says nothing but that another way has to be taken.
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
                && matches!(node.identifier, taktwerk_types::Identifier::Numeric(known) if known == value)
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

    /// The value of an ordinary Variable of the heap that the session may read. `None` says nothing but that the slow way
    /// has to be taken.
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

    /// A handle to a Variable's slot, made on the spot for static Variables. `None` if `ix` is no Variable.
    pub(crate) fn slot_handle(&self, ix: NodeIx) -> Option<SlotHandle> {
        match self.value_at(ix) {
            ValueAt::Slot(slot) | ValueAt::Source(_, slot) => Some(self.slots.handle(slot)),
            ValueAt::Static(_) | ValueAt::Computed(_) | ValueAt::None => None,
        }
    }

    /// A handle to the slot of a static Variable; its value replaces the blob's.
    pub(crate) fn ns0_slot(&mut self, id: u32) -> SlotHandle {
        if let Some(value) = self.ns0_values.get(&id) {
            return self.slots.handle(&value.slot);
        }
        let slot = self.allocate_slot();
        let handle = self.slots.handle(&slot);
        self.ns0_values.insert(id, Ns0Value { slot, source: None });
        handle
    }

    /// Lets a callback make the value of a static Variable.
    pub(crate) fn set_ns0_source(&mut self, id: u32, source: Arc<dyn ValueSource>) {
        self.ns0_slot(id);
        if let Some(value) = self.ns0_values.get_mut(&id) {
            value.source = Some(source);
        }
    }

    /// Implements a static Method.
    pub(crate) fn set_ns0_method(&mut self, id: u32, handler: Arc<dyn crate::callback::MethodHandler>) {
        self.ns0_methods.insert(id, handler);
    }

    pub(crate) fn ns0_method(&self, id: u32) -> Option<&Arc<dyn crate::callback::MethodHandler>> {
        self.ns0_methods.get(&id)
    }

    fn allocate_slot(&mut self) -> SlotShare {
        let slot = self.slots.allocate();
        let known = self.pages.len();
        if slot.index() as usize / PAGE_SLOTS >= known {
            self.pages.extend(self.slots.pages_from(known));
        }
        slot
    }

    /// Stores a scalar in an ordinary Variable of just its built-in type: the fast way through a Write. Gives the value
    /// back if another way has to be taken.
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
            // Properties of namespace 0 can give their variable its meaning.
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

    /// Who decides on writes to a Variable.
    pub(crate) fn write_handler(&self, ix: NodeIx) -> Option<&Arc<dyn crate::callback::WriteHandler>> {
        self.dynamic(ix)?.variable_extra()?.on_write.as_ref()
    }

    /// The implementation of a Method.
    pub(crate) fn method_handler(&self, ix: NodeIx) -> Option<&Arc<dyn crate::callback::MethodHandler>> {
        if ix.index < NodeIx::DYNAMIC {
            return self.ns0_method(ix.index);
        }
        self.dynamic(ix)?.handler()
    }

    /// Where the history of a Variable is.
    pub(crate) fn history(&self, ix: NodeIx) -> Option<&Arc<NodeHistory>> {
        self.dynamic(ix)?.variable_extra()?.history.as_ref()
    }

    // ---- changing

    /// The index of a data type in the table that Variables refer to.
    pub(crate) fn intern_data_type(&mut self, id: &NodeId) -> u16 {
        let at = self.data_types.iter().position(|known| known == id).unwrap_or_else(|| {
            self.data_types.push(id.clone());
            // Structures and what is abstract have subtypes to be looked at.
            let kind = id.ns0().filter(|id| *id <= u32::from(BuiltInType::LocalizedText.number()));
            self.data_type_kinds.push(kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(0));
            self.data_types.len() - 1
        });
        u16::try_from(at).unwrap_or(0)
    }

    /// Whether the table of data types has the id.
    pub(super) fn knows_data_type(&self, id: &NodeId) -> bool {
        self.data_types.contains(id)
    }

    /// How many nodes there may be besides the static ones.
    pub(super) fn nodes_max(&self) -> usize {
        self.nodes_max
    }

    pub(crate) fn data_type(&self, index: u16) -> &NodeId {
        static NULL: NodeId = NodeId::NULL;
        self.data_types.get(usize::from(index)).unwrap_or(&NULL)
    }

    /// Adds a node without references.
    pub(crate) fn add(&mut self, spec: NodeSpec, now: UtcTime) -> Result<NodeIx, NodeError> {
        let NodeSpec { id, browse_name, mut kind, extra, data_type, value, access } = spec;
        if usize::from(id.namespace_index) >= self.namespaces.len() {
            return Err(NodeError::Namespace(id.namespace_index));
        }
        if id.is_null() || self.resolve(id.as_ref()).is_some() {
            return Err(NodeError::IdExists(id));
        }
        // Indexes that are not used again count as nodes: they keep their place.
        if self.nodes.len() - self.free.len() >= self.nodes_max {
            return Err(NodeError::Full(self.nodes_max));
        }
        let access = if access == Access::default() {
            self.access.silent(id.namespace_index)
        } else {
            let set = self.access.intern(id.namespace_index, access);
            set.ok_or(NodeError::Full(usize::from(u16::MAX)))?
        };
        match &mut kind {
            NodeKind::Variable(variable) => {
                variable.data_type = self.intern_data_type(&data_type);
                let slot = self.allocate_slot();
                // Somebody will say: nothing is no good value.
                if let (Some(value), Some(page)) = (
                    value.filter(|value| !value.is_empty()),
                    self.pages.get(slot.index() as usize / PAGE_SLOTS),
                ) {
                    page.set(slot.index(), value, StatusCode::GOOD, now, now);
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
        // Growing rehashes by id, so the closure needs the tables but not `self.table`.
        let Self { hasher, table, nodes, .. } = self;
        table.insert_unique(hash, at, |at| rehash(hasher, nodes, *at));
        Ok(ix)
    }

    /// Adds a reference and its inverse. `inverse` can be left out for references to types, which would otherwise
    /// collect one entry per instance.
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

    pub(super) fn push_reference(&mut self, at: NodeIx, reference: PackedReference) {
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

    /// Removes the references to nodes that are gone before a list of references grows: as lists grow by doubling, that
    /// costs no more than the growing.
    fn make_room(&mut self, at: NodeIx) {
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
            if references.len() < references.capacity() {
                return;
            }
            let mut references = core::mem::take(references);
            references.retain(|reference| is_kept(self, reference));
            self.ns0_references.insert(at.index, references);
        } else {
            let Some(node) = self.dynamic_mut(at) else { return };
            if node.references.len() < node.references.capacity() {
                return;
            }
            let mut references = core::mem::take(&mut node.references);
            references.retain(|reference| is_kept(self, reference));
            if let Some(node) = self.dynamic_mut(at) {
                node.references = references;
            }
        }
        if let Some(added) = self.added.as_mut().filter(|_| charged > 0) {
            added.forget_references(charged);
        }
        if removed > 0 {
            // It has their names too, and is made anew when it is needed.
            self.names.remove_parent(at.index);
        }
    }

    /// Deletes a node of the heap with all references from and to it. Says how many references were looked at.
    pub(crate) fn delete(&mut self, ix: NodeIx) -> Result<usize, NodeError> {
        if ix.index < NodeIx::DYNAMIC {
            return Err(NodeError::Static(self.id_of(ix)));
        }
        let mut others = Vec::new();
        self.references(ix, |reference| {
            others.push(reference);
            true
        });
        self.note_deleted(ix);
        self.unindex_instance(ix, self.forward_target(ix, reference_type_ids::HAS_TYPE_DEFINITION));
        for reference in &others {
            self.note_reference_deleted(reference.target, !reference.is_forward, ix);
        }
        let class = self.view(ix).map(|view| view.class());
        let charged = self
            .dynamic(ix)
            .map_or(0, |node| node.references.iter().filter(|reference| reference.is_charged()).count());
        if let Some(added) = &mut self.added {
            added.forget_references(charged);
        }
        let mut looked_at = others.len();
        for Reference { reference_type, is_forward, target: other } in others {
            if !is_forward {
                self.unindex_reference(other, reference_type, ix);
            }
            if other.index < NodeIx::DYNAMIC {
                if let Some(references) = self.ns0_references.get_mut(&other.index) {
                    looked_at += references.len();
                    references.retain(|reference| reference.target() != ix);
                }
            } else if let Some(node) = self.dynamic_mut(other) {
                looked_at += node.references.len();
                node.references.retain(|reference| reference.target() != ix);
            }
        }
        if let Some(NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE | NodeClass::REFERENCE_TYPE) = class {
            self.forget_type(ix);
        }
        self.names.remove_parent(ix.index);
        let at = ix.index - NodeIx::DYNAMIC;
        let Some(node) = self.nodes.get_mut(at as usize).and_then(Option::take) else {
            return Ok(looked_at);
        };
        let hash = hash(&self.hasher, node.id_ref());
        if let Ok(entry) = self.table.find_entry(hash, |candidate| *candidate == at) {
            entry.remove();
        }
        if let NodeKind::Variable(VariableNode { slot: Some(slot), .. }) = node.kind {
            // Items that still watch see this as their last value, whatever is still on its way.
            self.slots.handle(&slot).close();
            self.slots.release(slot);
        }
        // An index whose generations are used up is left alone: no reference may mean another node.
        if node.generation < GENERATION_MAX {
            self.free.push(NodeIx { generation: node.generation + 1, ..ix });
        }
        Ok(looked_at)
    }

    /// Removes the references of all nodes to a type that is deleted: instances are not among the type's own references.
    fn forget_type(&mut self, ix: NodeIx) {
        let mut charged = 0;
        let mut keep = |reference: &PackedReference| {
            let kept = reference.target() != ix && reference.reference_type() != ix.index;
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

    /// How many places for nodes there are on the heap.
    pub(super) fn places(&self) -> usize {
        self.nodes.len()
    }

    /// The instances of a type. A type does not know them: all nodes are looked at. None for nodes that are no types.
    pub(super) fn instances_of(&self, kind: NodeIx) -> Vec<NodeIx> {
        let class = self.view(kind).map(|view| view.class());
        if !matches!(class, Some(NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE)) {
            return Vec::new();
        }
        let is_it = |reference: &PackedReference| {
            reference.is_forward()
                && reference.reference_type() == reference_type_ids::HAS_TYPE_DEFINITION
                && reference.target() == kind
        };
        let all = self.nodes.iter().zip(NodeIx::DYNAMIC..);
        all.filter_map(|(node, index)| Some((node.as_ref()?, index)))
            .filter(|(node, _)| node.references.iter().any(is_it))
            .map(|(node, index)| NodeIx { index, generation: node.generation })
            .collect()
    }

    /// A node's id; null if it is gone.
    pub(crate) fn id_of(&self, ix: NodeIx) -> NodeId {
        if ix.index < NodeIx::DYNAMIC {
            return NodeId::numeric(0, ix.index);
        }
        if let Some(node) = SessionNode::from_ix(ix) {
            return node.id();
        }
        self.dynamic(ix).map(crate::space::node::Node::id).unwrap_or_default()
    }

    /// How many nodes there are, namespace 0 included.
    pub(crate) fn len(&self) -> usize {
        self.table.len() + Ns0::get().len()
    }

    /// Changes the rare attributes of a heap Variable.
    pub(crate) fn variable_mut(&mut self, ix: NodeIx) -> Option<&mut VariableNode> {
        match &mut self.dynamic_mut(ix)?.kind {
            NodeKind::Variable(variable) => Some(variable),
            _ => None,
        }
    }

    pub(crate) fn variable_extra_mut(&mut self, ix: NodeIx) -> Option<&mut VariableExtra> {
        let node = self.dynamic_mut(ix).filter(|node| matches!(node.kind, NodeKind::Variable(_)))?;
        Some(node.extra.get_or_insert_default().variable.get_or_insert_default())
    }
}

#[inline]
fn hash_number(hasher: &DefaultHashBuilder, namespace_index: u16, value: u32) -> u64 {
    hasher.hash_one(u64::from(value) << 16 | u64::from(namespace_index))
}

fn hash(hasher: &DefaultHashBuilder, id: NodeIdRef<'_>) -> u64 {
    // Sequential numeric ids are the common case: hash them as one word.
    match id.identifier {
        IdentifierRef::Numeric(value) => hash_number(hasher, id.namespace_index, value),
        other => {
            let mut state = hasher.build_hasher();
            id.namespace_index.hash(&mut state);
            other.hash(&mut state);
            state.finish()
        }
    }
}

fn rehash(hasher: &DefaultHashBuilder, nodes: &[Option<Node>], at: u32) -> u64 {
    nodes.get(at as usize).and_then(Option::as_ref).map_or(0, |node| hash(hasher, node.id_ref()))
}
