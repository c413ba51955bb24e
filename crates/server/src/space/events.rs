//! Events in the address space: event types, and the notifier nodes of an event.
//!
//! An event is reported by its source, by every node above it with an EventNotifier, and by the Server Object (Part 3
//! §4.7, §7.16, §7.17). "Above" means against the direction of hierarchical References: HasEventSource and HasNotifier
//! if the model has them, otherwise HasComponent, Organizes and similar ones.

use super::data_type::built_in;
use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::content_filter::relation::Names;
use crate::event::filter::Types;
use crate::event::model::EventNodes;
use crate::event::{Event, EventBus, FieldName, NewEvent};
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::{BuiltInType, ByteString, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// Maximum number of nodes searched above a source.
const NODES_MAX: usize = 256;
/// The source of events without a source.
const SERVER: NodeIx = NodeIx::ns0(object_ids::SERVER);
/// The bit of EventNotifier that lets clients subscribe (Part 3 §8.59).
pub(crate) const SUBSCRIBE_TO_EVENTS: u8 = 1;

/// The bit of EventNotifier that allows reading the history of events.
pub(crate) const HISTORY_READ: u8 = 4;
/// The bit of EventNotifier that allows changing the history of events.
pub(crate) const HISTORY_WRITE: u8 = 8;

impl Names for Nodes {
    fn kind(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        if id.is_null() {
            return Err(StatusCode::BAD_NODE_ID_INVALID);
        }
        let ix = self.resolve(id.as_ref()).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        match self.view(ix).map(|view| view.class()) {
            Some(NodeClass::OBJECT_TYPE | NodeClass::VARIABLE_TYPE) => Ok(ix),
            _ => Err(StatusCode::BAD_NOT_TYPE_DEFINITION),
        }
    }

    fn reference_type(&self, id: &NodeId) -> Result<NodeIx, StatusCode> {
        let invalid = StatusCode::BAD_REFERENCE_TYPE_ID_INVALID;
        let ix = self.resolve(id.as_ref()).ok_or(invalid)?;
        let is_one = self.view(ix).is_some_and(|view| view.class() == NodeClass::REFERENCE_TYPE);
        if is_one { Ok(ix) } else { Err(invalid) }
    }
}

impl Types for Nodes {
    fn event_type(&self, id: &NodeId) -> Option<NodeIx> {
        let node = self.resolve(id.as_ref())?;
        let is_event = self.view(node)?.class() == NodeClass::OBJECT_TYPE
            && self.is_subtype(node, NodeIx::ns0(object_type_ids::BASE_EVENT_TYPE));
        is_event.then_some(node)
    }

    fn has_field(&self, kind: NodeIx, path: &[QualifiedName]) -> bool {
        self.event_field(kind, path).is_some()
    }

    fn is_base(&self, kind: NodeIx) -> bool {
        kind == NodeIx::ns0(object_type_ids::BASE_EVENT_TYPE)
    }

    fn is_condition(&self, kind: NodeIx) -> bool {
        self.is_subtype(kind, NodeIx::ns0(object_type_ids::CONDITION_TYPE))
    }

    fn built_in_type(&self, data_type: &NodeId) -> Option<BuiltInType> {
        built_in(self, self.resolve(data_type.as_ref())?)
    }
}

impl Nodes {
    /// The Variable that declares a field, in the type or its nearest supertype.
    pub(super) fn event_field(&self, kind: NodeIx, path: &[QualifiedName]) -> Option<NodeIx> {
        let mut kind = Some(kind);
        for _ in 0..64 {
            let node = kind?;
            let found = path.iter().try_fold(node, |node, name| self.child(node, name));
            if found.is_some() {
                return found;
            }
            // Above it there are no fields, but types whose names look like fields, such as CertificateType.
            kind = self.supertype(node).filter(|_| !self.is_base(node));
        }
        None
    }

    /// The data for an event of a type from a source. An event with an unknown source or type is reported by the Server
    /// Object.
    pub(super) fn event_nodes(&self, event_type: &NodeId, source: &NodeId) -> EventNodes {
        let mut types = SmallVec::new();
        let kind = self.resolve(event_type.as_ref());
        let mut next = kind;
        while let Some(node) = next.filter(|_| types.len() < 64) {
            types.push(node);
            next = self.supertype(node);
        }
        let source = self.resolve(source.as_ref());
        let mut notifiers = SmallVec::new();
        if let Some(source) = source {
            self.notifiers_above(source, &mut notifiers);
        }
        if !notifiers.contains(&SERVER) {
            notifiers.push(SERVER);
        }
        let access = [kind, source].map(|node| self.access_set(node.unwrap_or(SERVER)));
        let source_name = source.and_then(|node| self.view(node)).map(|view| view.display_name().text);
        EventNodes { types, notifiers, access, source_name: source_name.unwrap_or_default() }
    }

    /// The current permission sets of an event's type and source.
    pub(crate) fn event_access(&self, event: &Event) -> [u16; 2] {
        [FieldName::event_type(), FieldName::source_node()].map(|name| match event.get(&name) {
            Some(Variant::NodeId(id)) => self.access_set(self.resolve((**id).as_ref()).unwrap_or(SERVER)),
            _ => u16::MAX,
        })
    }

    /// The source and the nodes above it that have an EventNotifier.
    fn notifiers_above(&self, source: NodeIx, found: &mut SmallVec<[NodeIx; 6]>) {
        let hierarchical = NodeIx::ns0(reference_type_ids::HIERARCHICAL_REFERENCES);
        let mut seen: SmallVec<[NodeIx; 16]> = SmallVec::new();
        seen.push(source);
        let mut at = 0;
        while let Some(node) = seen.get(at).copied() {
            at += 1;
            let notifier = self.view(node).and_then(|view| view.event_notifier()).unwrap_or(0);
            if notifier & SUBSCRIBE_TO_EVENTS != 0 {
                found.push(node);
            }
            self.references(node, |reference| {
                let is_above = !reference.is_forward
                    && self.is_subtype(reference.reference_type, hierarchical)
                    && !seen.contains(&reference.target);
                if is_above {
                    seen.push(reference.target);
                }
                seen.len() < NODES_MAX
            });
        }
    }
}

/// Why an event of a type cannot be raised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventTypeError {
    /// The event type does not exist.
    #[error("the server has no event type {0}: import the NodeSet that defines it first")]
    Unknown(NodeId),
    /// The type is a ConditionType.
    #[error("{0} is a condition type, and only conditions raise its events: add an alarm of this type")]
    Condition(NodeId),
    /// Neither the type nor its supertypes declare the field.
    #[error(
        "the event type {event_type} has no field {field}: the NodeSet of the server may be another version"
    )]
    NoField {
        /// The type.
        event_type: NodeId,
        /// The path of the field.
        field: String,
    },
}

impl EventTypeError {
    /// The matching status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unknown(_) => StatusCode::BAD_TYPE_DEFINITION_INVALID,
            Self::Condition(_) => StatusCode::BAD_INVALID_ARGUMENT,
            Self::NoField { .. } => StatusCode::BAD_NOT_FOUND,
        }
    }
}

impl AddressSpace {
    /// The Variable that declares a field of an event type or condition type, and with it the DataType.
    #[must_use]
    pub fn event_field(&self, event_type: &NodeId, name: &FieldName) -> Option<NodeId> {
        let nodes = self.read();
        let found = nodes.event_field(nodes.event_type(event_type)?, name.path())?;
        Some(nodes.id_of(found))
    }

    /// Whether a type is an event type or condition type that equals another one or is a subtype of it.
    #[must_use]
    pub fn is_event_subtype(&self, event_type: &NodeId, base: &NodeId) -> bool {
        let nodes = self.read();
        let (kind, base) = (nodes.event_type(event_type), nodes.event_type(base));
        kind.zip(base).is_some_and(|(kind, base)| nodes.is_subtype(kind, base))
    }

    /// Checks that an event type exists and has the given fields.
    ///
    /// # Errors
    /// The type does not exist, is a ConditionType, or lacks a field.
    pub fn check_event_type<'a>(
        &self,
        event_type: &NodeId,
        fields: impl IntoIterator<Item = &'a FieldName>,
    ) -> Result<(), EventTypeError> {
        let nodes = self.read();
        let kind = nodes.event_type(event_type).ok_or_else(|| EventTypeError::Unknown(event_type.clone()))?;
        if nodes.is_condition(kind) {
            return Err(EventTypeError::Condition(event_type.clone()));
        }
        match fields.into_iter().find(|field| !nodes.has_field(kind, field.path())) {
            Some(field) => {
                Err(EventTypeError::NoField { event_type: event_type.clone(), field: field.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Delivery of events to the shards.
    #[must_use]
    pub fn events(&self) -> &Arc<EventBus> {
        &self.events
    }

    /// Raises an event. Clients that monitor its source, a node above it, or the Server Object receive it if it passes
    /// their filters and they have permission. Returns the EventId if any client may want the event; otherwise does
    /// nothing.
    ///
    /// Callable from any thread. Costs one relaxed load while no client monitors events.
    #[inline]
    pub fn raise(&self, event: NewEvent, now: UtcTime) -> Option<ByteString> {
        if !self.events.is_watched() {
            return None;
        }
        Some(self.raise_watched(event, now))
    }

    /// Raises an event that is expensive to create: `event` is called only if any client may want it.
    #[inline]
    pub fn raise_with(&self, now: UtcTime, event: impl FnOnce() -> NewEvent) -> Option<ByteString> {
        if !self.events.is_watched() {
            return None;
        }
        Some(self.raise_watched(event(), now))
    }

    /// Whether a node reports events of a source: it is the source, a node above it, or the Server Object.
    pub(crate) fn sees_events_of(&self, notifier: &NodeId, source: &NodeId) -> bool {
        let nodes = self.read();
        let Some(notifier) = nodes.resolve(notifier.as_ref()) else { return false };
        let mut found = SmallVec::new();
        if let Some(source) = nodes.resolve(source.as_ref()) {
            nodes.notifiers_above(source, &mut found);
        }
        notifier == SERVER || found.contains(&notifier)
    }

    /// An event that is not raised, for refreshes of individual items.
    pub(crate) fn shared_event(&self, new: NewEvent, now: UtcTime) -> Arc<Event> {
        let event_id = new.event_id.clone().unwrap_or_else(|| self.events.next_event_id());
        let placed = self.notifier_cache.event_nodes(&self.read(), &new.event_type, &new.source);
        Arc::new(Event::new(new, placed, || event_id, now))
    }

    /// An event that was raised before, with its ReceiveTime.
    pub(crate) fn shared_event_again(&self, (new, received): (NewEvent, Option<UtcTime>)) -> Arc<Event> {
        let time = received.or(new.time).unwrap_or(UtcTime::NULL);
        self.shared_event(new, time)
    }

    #[cold]
    fn raise_watched(&self, new: NewEvent, now: UtcTime) -> ByteString {
        let event_id = new.event_id.clone().unwrap_or_else(|| self.events.next_event_id());
        let placed = self.notifier_cache.event_nodes(&self.read(), &new.event_type, &new.source);
        let event = Arc::new(Event::new(new, placed, || event_id.clone(), now));
        self.events.hand_over(&event, |shard| self.slots.wake(shard));
        event_id
    }
}
