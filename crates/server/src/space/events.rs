//! Events and the address space: which types there are, and at which nodes an event can be seen.
//!
//! An event can be seen at its source and at every node above it that has an EventNotifier, and at the Server Object
//! (Part 3 §4.7, §7.16, §7.17). "Above" is against hierarchical References: HasEventSource and HasNotifier where a model
//! has them, and HasComponent, Organizes and the like where it has not.

use super::data_type::built_in;
use super::nodes::Nodes;
use super::{AddressSpace, NodeIx};
use crate::content_filter::relation::Names;
use crate::event::filter::Types;
use crate::event::model::Placed;
use crate::event::{Event, EventBus, FieldName, NewEvent};
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::NodeClass;
use taktwerk_schema::ids::{object_ids, object_type_ids, reference_type_ids};
use taktwerk_types::{BuiltInType, ByteString, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// Nodes that are looked at above a source, at most.
const NODES_MAX: usize = 256;
/// What an event without a source comes from.
const SERVER: NodeIx = NodeIx::ns0(object_ids::SERVER);
/// The bit of EventNotifier that lets clients subscribe (Part 3 §8.59).
pub(crate) const SUBSCRIBE_TO_EVENTS: u8 = 1;

/// The bit of EventNotifier that says that the history of events can be read.
pub(crate) const HISTORY_READ: u8 = 4;
/// The bit of EventNotifier that says that the history of events can be changed.
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
    /// The Variable that declares a field, of the type or of the next supertype that has one.
    pub(super) fn event_field(&self, kind: NodeIx, path: &[QualifiedName]) -> Option<NodeIx> {
        let mut kind = Some(kind);
        for _ in 0..64 {
            let node = kind?;
            let found = path.iter().try_fold(node, |node, name| self.child(node, name));
            if found.is_some() {
                return found;
            }
            // Above it there are no fields, but types whose names could be taken for some, such as CertificateType.
            kind = self.supertype(node).filter(|_| !self.is_base(node));
        }
        None
    }

    /// What an event of a type from a source needs to know. A source or a type that does not exist is no obstacle: such
    /// an event can be seen at the Server Object.
    pub(super) fn place(&self, event_type: &NodeId, source: &NodeId) -> Placed {
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
        Placed { types, notifiers, access, source_name: source_name.unwrap_or_default() }
    }

    /// The sets of permissions that the type and the source of an event have now.
    pub(crate) fn event_access(&self, event: &Event) -> [u16; 2] {
        [FieldName::event_type(), FieldName::source_node()].map(|name| match event.get(&name) {
            Some(Variant::NodeId(id)) => self.access_set(self.resolve((**id).as_ref()).unwrap_or(SERVER)),
            _ => u16::MAX,
        })
    }

    /// The source and the nodes above it, as far as they have an EventNotifier.
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
    /// There is no such event type.
    #[error("the server has no event type {0}: import the NodeSet that defines it first")]
    Unknown(NodeId),
    /// The type is a ConditionType.
    #[error("{0} is a type of conditions, whose events come from conditions only: add an alarm of this type")]
    Condition(NodeId),
    /// The type and its supertypes do not declare a field.
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
    /// The Variable that declares a field of an event type or a type of conditions, where its DataType is.
    #[must_use]
    pub fn event_field(&self, event_type: &NodeId, name: &FieldName) -> Option<NodeId> {
        let nodes = self.read();
        let found = nodes.event_field(nodes.event_type(event_type)?, name.path())?;
        Some(nodes.id_of(found))
    }

    /// Whether a type is a type of events, or of conditions, and the same as another one or a subtype of it.
    #[must_use]
    pub fn is_event_subtype(&self, event_type: &NodeId, base: &NodeId) -> bool {
        let nodes = self.read();
        let (kind, base) = (nodes.event_type(event_type), nodes.event_type(base));
        kind.zip(base).is_some_and(|(kind, base)| nodes.is_subtype(kind, base))
    }

    /// Checks that there is an event type that has fields.
    ///
    /// # Errors
    /// There is no such type, it is a ConditionType, or it has no such field.
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

    /// From those who raise events to the shards.
    #[must_use]
    pub fn events(&self) -> &Arc<EventBus> {
        &self.events
    }

    /// Raises an event: clients that monitor its source, a node above it, or the Server Object, get it if their filters let
    /// it pass and they may see it. Returns the EventId if somebody may want the event; otherwise nothing is done.
    ///
    /// Callable from any thread. Costs one relaxed load while no client monitors events.
    #[inline]
    pub fn raise(&self, event: NewEvent, now: UtcTime) -> Option<ByteString> {
        if !self.events.is_watched() {
            return None;
        }
        Some(self.raise_watched(event, now))
    }

    /// Raises an event that is expensive to make: `event` is called only if somebody may want it.
    #[inline]
    pub fn raise_with(&self, now: UtcTime, event: impl FnOnce() -> NewEvent) -> Option<ByteString> {
        if !self.events.is_watched() {
            return None;
        }
        Some(self.raise_watched(event(), now))
    }

    /// Whether events of a source can be seen at a node: it is the source or stands above it, or is the Server Object.
    pub(crate) fn sees_events_of(&self, notifier: &NodeId, source: &NodeId) -> bool {
        let nodes = self.read();
        let Some(notifier) = nodes.resolve(notifier.as_ref()) else { return false };
        let mut found = SmallVec::new();
        if let Some(source) = nodes.resolve(source.as_ref()) {
            nodes.notifiers_above(source, &mut found);
        }
        notifier == SERVER || found.contains(&notifier)
    }

    /// An event that is not raised: what a refresh gives to some items only.
    pub(crate) fn shared_event(&self, new: NewEvent, now: UtcTime) -> Arc<Event> {
        let event_id = new.event_id.clone().unwrap_or_else(|| self.events.next_event_id());
        let placed = self.event_places.place(&self.read(), &new.event_type, &new.source);
        Arc::new(Event::new(new, placed, || event_id, now))
    }

    /// An event that was raised before, and when it was received.
    pub(crate) fn shared_event_again(&self, (new, received): (NewEvent, Option<UtcTime>)) -> Arc<Event> {
        let time = received.or(new.time).unwrap_or(UtcTime::NULL);
        self.shared_event(new, time)
    }

    #[cold]
    fn raise_watched(&self, new: NewEvent, now: UtcTime) -> ByteString {
        let event_id = new.event_id.clone().unwrap_or_else(|| self.events.next_event_id());
        let placed = self.event_places.place(&self.read(), &new.event_type, &new.source);
        let event = Arc::new(Event::new(new, placed, || event_id.clone(), now));
        self.events.hand_over(&event, |shard| self.slots.wake(shard));
        event_id
    }
}
