//! The node tables and lookups of nodes and references. `values`: values of Variables; `change`: adding and deleting;
//! `stale`: remaining references to deleted nodes.

mod change;
mod stale;
mod values;

pub(crate) use values::ValueAt;

use super::error::NodeError;
use super::node::{INDEX_MAX, Node, NodeKind, PackedReference, VariableExtra, VariableNode};
use super::segmented::SegmentedList;
use super::view::{NodeView, is_builtin_method};
use super::{NodeIx, Reference};
use crate::authorization::{Access, AccessTable};
use crate::diagnostics::Live;
use crate::diagnostics::nodes::{SessionNode, summary_references};
use crate::history::NodeHistory;
use crate::spread::Spread;
use core::hash::{BuildHasher, Hash, Hasher};
use hashbrown::DefaultHashBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::{data_type_ids, method_ids, object_ids, reference_type_ids, variable_ids};
use taktwerk_schema::ns0::Ns0;
use taktwerk_slots::{Page, SlotStore};
use taktwerk_types::{IdentifierRef, NodeId, NodeIdRef, QualifiedName, StatusCode, UaString, UtcTime};

/// Maximum number of nodes besides the static ones.
const NODES_MAX: usize = 8_000_000;
const _: () = assert!(NODES_MAX + (NodeIx::DYNAMIC as usize) < INDEX_MAX as usize);

/// All nodes.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(super) hasher: DefaultHashBuilder,
    /// Indexes into `nodes`, hashed by NodeId.
    table: Spread<u32>,
    nodes: SegmentedList<Option<Node>>,
    /// Indexes of deleted nodes, each with the generation of the next node.
    free: Vec<NodeIx>,
    /// References from static nodes to others.
    pub(super) ns0_references: BTreeMap<u32, Vec<PackedReference>>,
    /// Remaining references to deleted nodes.
    stale: stale::Stale,
    /// Live values of static Variables.
    ns0_values: BTreeMap<u32, values::Ns0Value>,
    /// Implementations of static Methods.
    ns0_methods: BTreeMap<u32, Arc<dyn crate::callback::MethodHandler>>,
    /// Write handlers of static Variables.
    ns0_writers: BTreeMap<u32, Arc<dyn crate::callback::WriteHandler>>,
    namespaces: Vec<String>,
    /// The source of the server's own Variables, and the sessions with diagnostics nodes.
    live: Option<Arc<Live>>,
    /// Whether subscriptions can be durable.
    durable: bool,
    /// The history of events, and whether clients may change it.
    event_history: Option<(Arc<NodeHistory>, bool)>,
    data_types: Vec<NodeId>,
    /// The number of the built-in type for each of `data_types` that is one, 0 for all others.
    data_type_kinds: Vec<u8>,
    slots: Arc<SlotStore>,
    pages: Vec<Arc<Page>>,
    nodes_max: usize,
    /// Whether any node has a handler that deletes it for clients.
    pub(super) has_deletable: bool,
    /// Data of clients' additions; `None` if clients cannot add nodes.
    pub(super) added: Option<super::added::Added>,
    pub(super) names: super::names::Names,
    pub(super) versions: super::versions::Versions,
    pub(super) instances: super::instances::Instances,
    /// The nodes below which Variables are recorded.
    pub(super) recorded: super::recording::Recorded,
    /// Number of nodes added so far.
    additions: u64,
    access: AccessTable,
}

impl Nodes {
    pub(crate) fn new(slots: Arc<SlotStore>, application_uri: &str) -> Self {
        let mut nodes = Self {
            hasher: DefaultHashBuilder::default(),
            table: Spread::default(),
            nodes: SegmentedList::default(),
            free: Vec::new(),
            ns0_references: BTreeMap::new(),
            stale: stale::Stale::default(),
            ns0_values: BTreeMap::new(),
            ns0_methods: BTreeMap::new(),
            ns0_writers: BTreeMap::new(),
            namespaces: vec!["http://opcfoundation.org/UA/".to_owned(), application_uri.to_owned()],
            live: None,
            durable: false,
            event_history: None,
            data_types: vec![NodeId::numeric(0, data_type_ids::BASE_DATA_TYPE)],
            data_type_kinds: vec![0],
            slots,
            pages: Vec::new(),
            nodes_max: NODES_MAX,
            has_deletable: false,
            added: None,
            names: super::names::Names::default(),
            versions: super::versions::Versions::default(),
            instances: super::instances::Instances::default(),
            recorded: super::recording::Recorded::default(),
            additions: 0,
            access: AccessTable::new(),
        };
        nodes.access.add_namespace(application_uri);
        nodes.publish_namespaces();
        nodes
    }

    /// Connects the server's own Variables with their source.
    pub(crate) fn set_live(&mut self, live: Arc<Live>) {
        self.live = Some(live);
    }

    /// Sets the history of events, and whether clients may change it.
    pub(crate) fn set_event_history(&mut self, history: NodeHistory, writable: bool) {
        self.event_history = Some((Arc::new(history), writable));
    }

    /// The history of events.
    pub(crate) fn event_history(&self) -> Option<&Arc<NodeHistory>> {
        self.event_history.as_ref().map(|(history, _)| history)
    }

    /// The history bits of EventNotifiers.
    pub(crate) fn event_history_bits(&self) -> u8 {
        match self.event_history {
            None => 0,
            Some((_, false)) => super::events::HISTORY_READ,
            Some((_, true)) => super::events::HISTORY_READ | super::events::HISTORY_WRITE,
        }
    }

    /// Sets whether subscriptions can be durable.
    pub(crate) fn set_durable(&mut self, durable: bool) {
        self.durable = durable;
    }

    /// Whether the server itself handles calls of a method of namespace 0.
    pub(crate) fn is_builtin_method(&self, id: u32) -> bool {
        let is_offered = id != method_ids::SERVER_SET_SUBSCRIPTION_DURABLE || self.durable;
        is_offered && is_builtin_method(id)
    }

    // ---- namespaces

    /// The NamespaceArray.
    pub(crate) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The index of a namespace, which is registered if necessary.
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

    /// The access rights of all sets.
    pub(crate) fn access(&self) -> &AccessTable {
        &self.access
    }

    /// Applies the roles and permissions of the configuration.
    pub(crate) fn configure_access(&mut self, authorization: &crate::authorization::Authorization) {
        self.access.configure(authorization, &self.namespaces);
        super::metadata::publish(self);
    }

    /// Sets the defaults of a namespace.
    pub(crate) fn set_namespace_access(&mut self, index: u16, access: Access) {
        self.access.set_namespace(index, access);
        super::metadata::publish(self);
    }

    /// The permission set of a node; for a deleted node, a set without permissions.
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

    /// Changes the access rights that a node specifies.
    pub(crate) fn set_access(&mut self, ix: NodeIx, access: Access) -> Result<(), NodeError> {
        let namespace = self.id_of(ix).namespace_index;
        let set = self.access.intern(namespace, access).ok_or(NodeError::NoPermissionsLeft(1))?;
        if ix.index < NodeIx::DYNAMIC {
            self.access.set_ns0(ix.index, set);
        } else if let Some(node) = self.dynamic_mut(ix) {
            node.access = set;
            self.access.touch();
        }
        Ok(())
    }

    // ---- finding

    /// The index of a node.
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

    /// Like [`Self::resolve`], with the error of services.
    pub(crate) fn find(&self, id: &NodeId) -> Result<NodeIx, NodeError> {
        self.resolve(id.as_ref()).ok_or_else(|| NodeError::Unknown(id.clone()))
    }

    /// The index with its current generation; `None` if the node was deleted.
    pub(crate) fn ix(&self, index: u32) -> Option<NodeIx> {
        if index < NodeIx::DYNAMIC {
            return Some(NodeIx::ns0(index));
        }
        let at = (index - NodeIx::DYNAMIC) as usize;
        let node = self.nodes.get(at)?.as_ref()?;
        Some(NodeIx { index, generation: node.generation })
    }

    /// The Objects and Views whose events can be subscribed to.
    pub(in crate::space) fn event_notifiers(&self) -> Vec<NodeIx> {
        let fixed = Ns0::get().nodes().map(|node| NodeIx::ns0(node.id()));
        let added = (0..self.nodes.len())
            .filter_map(|at| self.ix(u32::try_from(at).unwrap_or(u32::MAX).saturating_add(NodeIx::DYNAMIC)));
        let notifies = |ix: &NodeIx| {
            let bits = self.view(*ix).and_then(|view| view.declared_event_notifier());
            bits.unwrap_or(0) & super::events::SUBSCRIBE_TO_EVENTS != 0
        };
        fixed.chain(added).filter(notifies).collect()
    }

    /// Refuses references to virtual nodes, those of sessions.
    pub(super) fn check_ends(&self, source: NodeIx, target: NodeIx) -> Result<(), NodeError> {
        match [source, target].into_iter().find(|ix| !self.is_there(*ix)) {
            Some(made) => Err(NodeError::Unknown(self.id_of(made))),
            None => Ok(()),
        }
    }

    /// Whether a node of a stored reference still exists.
    #[inline]
    pub(in crate::space) fn is_there(&self, ix: NodeIx) -> bool {
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

    /// A node, static or on the heap.
    pub(crate) fn view(&self, ix: NodeIx) -> Option<NodeView<'_>> {
        NodeView::new(self, ix)
    }

    /// Calls `each` with every reference of a node, static ones first, until it returns false.
    #[inline]
    pub(crate) fn references(&self, ix: NodeIx, mut each: impl FnMut(Reference) -> bool) {
        self.references_from(ix, 0, |_, reference| each(reference));
    }

    /// The same starting at reference number `from`, with the numbers of the references. The numbers are valid for
    /// continuing as long as no reference of the node is deleted.
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
        // Types nest about a dozen levels deep; the bound only stops a cycle from an invalid NodeSet.
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

    /// The direct supertype of a type.
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

    /// The child with this name by a hierarchical forward reference.
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

    /// The child with this name by a forward reference of exactly this type.
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

    /// Number of heap slots for nodes.
    pub(super) fn places(&self) -> usize {
        self.nodes.len()
    }

    /// The instances of a type, found by searching all nodes. Empty for nodes that are not types.
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

    /// A node's id; null if it was deleted.
    pub(crate) fn id_of(&self, ix: NodeIx) -> NodeId {
        if ix.index < NodeIx::DYNAMIC {
            return NodeId::numeric(0, ix.index);
        }
        if let Some(node) = SessionNode::from_ix(ix) {
            return node.id();
        }
        self.dynamic(ix).map(crate::space::node::Node::id).unwrap_or_default()
    }

    /// Number of nodes, including namespace 0.
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
    // Sequential numeric ids are the common case: they are hashed as one word.
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
