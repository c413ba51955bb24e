//! An event: its fields and its notifiers.

use super::field::{FieldName, fnv1a};
use crate::account::{HeapSize, allocation};
use crate::history::StoredEvent;
use crate::node_ix::NodeIx;
use smallvec::SmallVec;
use std::sync::Arc;
use taktwerk_schema::ids::object_type_ids;
use taktwerk_types::{ByteString, Encode, LocalizedText, NodeId, UaString, UtcTime, Variant};

/// Highest severity (Part 5 §6.4.2).
pub const SEVERITY_MAX: u16 = 1000;

/// An event to be raised. Unset fields get the specification's defaults: the name of the source, the current time, a
/// severity of 1.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct NewEvent {
    pub(crate) event_type: NodeId,
    pub(crate) source: NodeId,
    pub(crate) source_name: Option<UaString>,
    pub(crate) time: Option<UtcTime>,
    pub(crate) message: LocalizedText,
    pub(crate) severity: u16,
    pub(crate) event_id: Option<ByteString>,
    pub(crate) condition: Option<NodeId>,
    pub(crate) fields: Vec<(FieldName, Variant)>,
}

impl NewEvent {
    /// An event of a type, raised by a node.
    pub fn new(event_type: impl Into<NodeId>, source: NodeId) -> Self {
        Self {
            event_type: event_type.into(),
            source,
            source_name: None,
            time: None,
            message: LocalizedText::default(),
            severity: 1,
            event_id: None,
            condition: None,
            fields: Vec::new(),
        }
    }

    /// A stored event, restored from all its fields, with its ReceiveTime.
    pub(crate) fn again(stored: StoredEvent) -> (Self, Option<UtcTime>) {
        let mut new = Self { condition: stored.condition, ..Self::new(NodeId::NULL, NodeId::NULL) };
        let mut received = None;
        for (path, value) in stored.fields {
            let name = FieldName::new(&path);
            match value {
                Variant::NodeId(id) if name == FieldName::event_type() => new.event_type = *id,
                Variant::NodeId(id) if name == FieldName::source_node() => new.source = *id,
                Variant::String(text) if name == FieldName::source_name() => new.source_name = Some(text),
                Variant::DateTime(time) if name == FieldName::time() => new.time = Some(time),
                Variant::DateTime(time) if name == FieldName::receive_time() => received = Some(time),
                Variant::LocalizedText(text) if name == FieldName::message() => new.message = *text,
                Variant::UInt16(severity) if name == FieldName::severity() => new.severity = severity,
                Variant::ByteString(id) if name == FieldName::event_id() => new.event_id = Some(id),
                value => new.fields.push((name, value)),
            }
        }
        (new, received)
    }

    /// When it happened (Time). Default: the time of raising it.
    pub fn time(mut self, time: UtcTime) -> Self {
        self.time = Some(time);
        self
    }

    /// The message for users.
    pub fn message(mut self, message: impl Into<LocalizedText>) -> Self {
        self.message = message.into();
        self
    }

    /// The severity, from 1 to 1000; other numbers are clamped.
    pub fn severity(mut self, severity: u16) -> Self {
        self.severity = severity.clamp(1, SEVERITY_MAX);
        self
    }

    /// The name of the source. Default: its DisplayName.
    pub fn source_name(mut self, name: impl Into<UaString>) -> Self {
        self.source_name = Some(name.into());
        self
    }

    /// The EventId. Default: a new one.
    pub fn event_id(mut self, id: ByteString) -> Self {
        self.event_id = Some(id);
        self
    }

    /// The condition that it is a notification of (Part 9 §5.5.2).
    pub fn condition(mut self, id: NodeId) -> Self {
        self.condition = Some(id);
        self
    }

    /// Sets a field of its type.
    pub fn field(mut self, name: impl Into<FieldName>, value: impl Into<Variant>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

/// Data from the address space about an event's type and source.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct EventNodes {
    /// Its type and all supertypes.
    pub(crate) types: SmallVec<[NodeIx; 8]>,
    /// The nodes that notify of it.
    pub(crate) notifiers: SmallVec<[NodeIx; 6]>,
    /// The permission sets of its type and its source.
    pub(crate) access: [u16; 2],
    /// The DisplayName of its source.
    pub(crate) source_name: UaString,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Sorted by the hash of the name.
    fields: Vec<(FieldName, Variant)>,
    condition: Option<NodeId>,
    condition_key: Option<u64>,
    retains: bool,
    nodes_of_event: Arc<EventNodes>,
    size: usize,
    time: UtcTime,
}

impl Event {
    /// Assembles an event. `id` and `now` are used for unset fields.
    pub(crate) fn new(
        new: NewEvent,
        nodes_of_event: impl Into<Arc<EventNodes>>,
        id: impl FnOnce() -> ByteString,
        now: UtcTime,
    ) -> Self {
        let nodes_of_event = nodes_of_event.into();
        let mut fields = new.fields;
        let time = new.time.unwrap_or(now);
        let source_name = new.source_name.unwrap_or_else(|| nodes_of_event.source_name.clone());
        fields.reserve_exact(8);
        for (name, value) in [
            (FieldName::event_id(), new.event_id.unwrap_or_else(id).into()),
            (FieldName::event_type(), new.event_type.into()),
            (FieldName::source_node(), new.source.into()),
            (FieldName::source_name(), Variant::String(source_name)),
            (FieldName::time(), time.into()),
            (FieldName::receive_time(), now.into()),
            (FieldName::message(), new.message.into()),
            (FieldName::severity(), new.severity.into()),
        ] {
            fields.push((name, value));
        }
        // If a field is set twice, the later value counts; the standard fields are last.
        fields.reverse();
        fields.sort_by_key(|(name, _)| name.hash());
        fields.dedup_by_key(|(name, _)| name.hash());
        let mut event = Self {
            fields,
            condition: new.condition,
            condition_key: None,
            retains: false,
            nodes_of_event,
            size: 0,
            time,
        };
        // Computed once: each item that receives the event needs it.
        event.retains = event.get(&FieldName::retain()) == Some(&Variant::Boolean(true));
        event.condition_key = event.key_of_condition();
        event.size = allocation(size_of::<Self>() + 16) + event.heap_size();
        event
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &FieldName) -> Option<&Variant> {
        self.by_hash(name.hash())
    }

    #[inline]
    pub(crate) fn by_hash(&self, hash: u64) -> Option<&Variant> {
        let at = self.fields.binary_search_by_key(&hash, |(name, _)| name.hash()).ok()?;
        self.fields.get(at).map(|(_, value)| value)
    }

    /// All fields with their names.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&FieldName, &Variant)> {
        self.fields.iter().map(|(name, value)| (name, value))
    }

    /// The event in its stored form.
    pub(crate) fn to_stored(&self) -> StoredEvent {
        let fields = self.fields.iter().map(|(name, value)| (name.path().to_vec(), value.clone()));
        StoredEvent { condition: self.condition.clone(), fields: fields.collect() }
    }

    /// The condition that it is a notification of.
    #[must_use]
    pub fn condition_id(&self) -> Option<&NodeId> {
        self.condition.as_ref()
    }

    /// The same in every version of this software: durable subscriptions store it.
    fn key_of_condition(&self) -> Option<u64> {
        let mut bytes = Vec::new();
        self.condition.as_ref()?.encode(&mut bytes);
        if let Some(Variant::NodeId(branch)) = self.get(&FieldName::branch_id()) {
            branch.encode(&mut bytes);
        }
        Some(fnv1a(bytes))
    }

    /// A hash of the condition and its branch; `None` if the event is not a notification of a condition.
    pub(crate) fn condition_key(&self) -> Option<u64> {
        self.condition_key
    }

    /// Whether clients should retain the condition (Retain, Part 9 §5.5.2).
    pub(crate) fn retains(&self) -> bool {
        self.retains
    }

    /// The same event with Retain false, for a client whose filter no longer passes the condition.
    pub(crate) fn leaving(&self) -> Self {
        let mut event = self.clone();
        let hash = FieldName::retain().hash();
        if let Ok(at) = event.fields.binary_search_by_key(&hash, |(name, _)| name.hash())
            && let Some((_, value)) = event.fields.get_mut(at)
        {
            *value = false.into();
        }
        event.retains = false;
        event
    }

    /// When it happened.
    #[must_use]
    pub fn time(&self) -> UtcTime {
        self.time
    }

    /// The nodes that notify of it.
    pub(crate) fn notifiers(&self) -> &[NodeIx] {
        &self.nodes_of_event.notifiers
    }

    /// The permission sets of its type and its source.
    pub(crate) fn access(&self) -> [u16; 2] {
        self.nodes_of_event.access
    }

    /// Whether it has a type or one of its subtypes.
    #[inline]
    pub(crate) fn is_of_type(&self, kind: NodeIx) -> bool {
        self.nodes_of_event.types.contains(&kind)
    }

    /// Its size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The event that reports lost events (Part 4 §7.22.3, EventQueueOverflowEventType).
    pub(crate) fn overflow(id: ByteString, now: UtcTime) -> Self {
        let new = NewEvent::new(
            NodeId::numeric(0, object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE),
            NodeId::numeric(0, taktwerk_schema::ids::object_ids::SERVER),
        )
        .message("Events were lost because the queue of the monitored item was full.")
        .source_name("Server")
        .severity(500);
        Self::new(new, EventNodes::default(), || id, now)
    }

    /// Whether it reports lost events.
    #[cfg(test)]
    pub(crate) fn is_overflow(&self) -> bool {
        matches!(self.get(&FieldName::event_type()), Some(Variant::NodeId(id))
            if id.ns0() == Some(object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE))
    }
}

impl HeapSize for Event {
    fn heap_size(&self) -> usize {
        let spilled = |is_spilled: bool, bytes: usize| if is_spilled { allocation(bytes) } else { 0 };
        let nodes_of_event = &self.nodes_of_event;
        let own = allocation(self.fields.capacity() * size_of::<(FieldName, Variant)>())
            + spilled(nodes_of_event.types.spilled(), nodes_of_event.types.len() * size_of::<NodeIx>())
            + spilled(
                nodes_of_event.notifiers.spilled(),
                nodes_of_event.notifiers.len() * size_of::<NodeIx>(),
            )
            + nodes_of_event.source_name.heap_size()
            + self.condition.heap_size();
        self.fields.iter().fold(own, |sum, (_, value)| sum + value.heap_size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_condition_stays_the_same_in_every_version() {
        let event = |condition: Option<NodeId>, branch: NodeId| {
            let mut new = NewEvent::new(NodeId::numeric(0, 2915), NodeId::NULL).field("BranchId", branch);
            new.condition = condition;
            Event::new(new, EventNodes::default(), || ByteString::from(vec![1]), UtcTime::NULL)
                .condition_key()
        };
        let condition = || Some(NodeId::string(2, "Boiler/Level"));
        assert_eq!(event(None, NodeId::NULL), None);
        assert_eq!(event(condition(), NodeId::NULL), Some(5_133_441_598_628_053_300));
        assert_ne!(event(condition(), NodeId::numeric(1, 7)), Some(5_133_441_598_628_053_300));
    }

    #[test]
    fn unset_fields_have_default_values() {
        let (id, now) = (ByteString::from(vec![1, 2]), UtcTime::from_ticks(77));
        let new = NewEvent::new(NodeId::numeric(0, 2041), NodeId::numeric(1, 5))
            .severity(2000)
            .field("2:Pressure", 1.5)
            .field("Severity", 3u16);
        let event = Event::new(new, EventNodes::default(), || id.clone(), now);
        let get = |name: &str| event.get(&FieldName::from(name)).cloned();
        assert_eq!(get("EventId"), Some(id.into()));
        assert_eq!(get("Time"), Some(now.into()));
        assert_eq!(get("Severity"), Some(1000u16.into()));
        assert_eq!(get("2:Pressure"), Some(1.5.into()));
        assert_eq!(get("Pressure"), None);
        assert_eq!(event.fields().len(), 9);
        assert!(event.size() > 500 && !event.is_overflow());
    }
}
