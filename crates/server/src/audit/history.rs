//! The parameters of a HistoryUpdate operation in an audit record (Part 11 §5.8).

use super::record::{AuditField, cut};
use super::value::AuditValue;
use crate::event::NewEvent;
use crate::history::HistoryValue;
use std::borrow::Cow;
use taktwerk_schema::ids::object_type_ids as t;
use taktwerk_schema::{
    Annotation, EventFilter, HistoryEventFieldList, PerformUpdateType, SimpleAttributeOperand,
};
use taktwerk_types::{ByteString, DataValue, NodeId, QualifiedName, StatusCode, UtcTime, Variant};

/// Maximum number of values, times, ids and clauses in a record.
const ENTRIES_MAX: usize = 16;
/// Maximum number of events in a record.
const EVENTS_MAX: usize = 4;
/// Longest EventId in a record, in bytes.
const EVENT_ID_LEN_MAX: usize = 64;

/// The parameters of an operation. Long lists are cut. Values are shown as in other records: texts and bytes only by
/// type and length, except EventIds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AuditHistory {
    /// UpdateStructureDataDetails.
    Annotations {
        /// What was done.
        perform: PerformUpdateType,
        /// The annotations of the request. Their messages are shown by length.
        new_values: Vec<Annotation>,
    },
    /// UpdateDataDetails.
    Values {
        /// What was done.
        perform: PerformUpdateType,
        /// The values of the request.
        new_values: Vec<DataValue>,
        /// The values before.
        old_values: Vec<DataValue>,
    },
    /// UpdateEventDetails.
    Events {
        /// What was done.
        perform: PerformUpdateType,
        /// The fields of each event.
        filter: EventFilter,
        /// The events of the request.
        new_values: Vec<HistoryEventFieldList>,
    },
    /// DeleteRawModifiedDetails.
    DeleteRange {
        /// Deletes the record of changes instead of values.
        is_delete_modified: bool,
        /// Start of the range.
        start_time: UtcTime,
        /// End of the range.
        end_time: UtcTime,
        /// The first deleted values; none if the record of changes was deleted.
        old_values: Vec<DataValue>,
    },
    /// DeleteAtTimeDetails.
    DeleteTimes {
        /// The times of the values.
        req_times: Vec<UtcTime>,
        /// The deleted values.
        old_values: Vec<DataValue>,
    },
    /// DeleteEventDetails.
    DeleteEvents {
        /// The ids of the events.
        event_ids: Vec<ByteString>,
    },
    /// The details could not be decoded.
    Unknown,
}

impl AuditHistory {
    pub(crate) fn values(perform: PerformUpdateType, values: &[DataValue]) -> Self {
        let shown = |value: &DataValue| DataValue {
            value: value.value.as_ref().map(plain),
            status: value.status,
            source_timestamp: value.source_timestamp,
            server_timestamp: value.server_timestamp,
            ..DataValue::default()
        };
        let new_values = values.iter().take(ENTRIES_MAX).map(shown).collect();
        Self::Values { perform, new_values, old_values: Vec::new() }
    }

    pub(crate) fn annotations(perform: PerformUpdateType, values: &[DataValue]) -> Self {
        let shown = |value: &DataValue| {
            let Some(Variant::ExtensionObject(object)) = &value.value else { return Annotation::default() };
            let Annotation { message, user_name, annotation_time } = object.decode().unwrap_or_default();
            let message = AuditValue::of(&message.into()).as_str().into();
            Annotation { message, user_name: (&*cut(user_name.as_str())).into(), annotation_time }
        };
        Self::Annotations { perform, new_values: values.iter().take(ENTRIES_MAX).map(shown).collect() }
    }

    /// Adds the values before the operation.
    pub(crate) fn set_old(&mut self, old: &[HistoryValue]) {
        let shown = |value: &HistoryValue| DataValue {
            value: Some(plain(&value.value)).filter(|value| !value.is_empty()),
            status: Some(value.status).filter(|status| *status != StatusCode::GOOD),
            source_timestamp: Some(value.source),
            server_timestamp: Some(value.server),
            ..DataValue::default()
        };
        match self {
            Self::Values { old_values, .. }
            | Self::DeleteRange { old_values, .. }
            | Self::DeleteTimes { old_values, .. } => {
                *old_values = old.iter().take(ENTRIES_MAX).map(shown).collect();
            }
            Self::Annotations { .. } | Self::Events { .. } | Self::DeleteEvents { .. } | Self::Unknown => {}
        }
    }

    pub(crate) fn events(
        perform: PerformUpdateType,
        filter: &EventFilter,
        events: &[HistoryEventFieldList],
    ) -> Self {
        let clauses = filter.select_clauses.iter().take(ENTRIES_MAX);
        let is_id = |at: usize| {
            let clause = filter.select_clauses.get(at);
            clause.is_some_and(
                |clause| matches!(clause.browse_path.as_slice(), [name] if *name == event_id_name()),
            )
        };
        let field = |(at, value): (usize, &Variant)| match value {
            Variant::ByteString(id) if is_id(at) => short(id).into(),
            value => plain(value),
        };
        let event = |event: &HistoryEventFieldList| HistoryEventFieldList {
            event_fields: event.event_fields.iter().enumerate().take(ENTRIES_MAX).map(field).collect(),
        };
        Self::Events {
            perform,
            filter: EventFilter { select_clauses: clauses.map(clause).collect(), ..Default::default() },
            new_values: events.iter().take(EVENTS_MAX).map(event).collect(),
        }
    }

    pub(crate) fn delete_times(times: &[UtcTime]) -> Self {
        let req_times = times.iter().copied().take(ENTRIES_MAX).collect();
        Self::DeleteTimes { req_times, old_values: Vec::new() }
    }

    pub(crate) fn delete_events(ids: &[ByteString]) -> Self {
        Self::DeleteEvents { event_ids: ids.iter().take(ENTRIES_MAX).map(short).collect() }
    }

    /// The EventType.
    pub(super) fn event_type(&self) -> u32 {
        match self {
            Self::Annotations { .. } => t::AUDIT_HISTORY_ANNOTATION_UPDATE_EVENT_TYPE,
            Self::Values { .. } => t::AUDIT_HISTORY_VALUE_UPDATE_EVENT_TYPE,
            Self::Events { .. } => t::AUDIT_HISTORY_EVENT_UPDATE_EVENT_TYPE,
            Self::DeleteRange { .. } => t::AUDIT_HISTORY_RAW_MODIFY_DELETE_EVENT_TYPE,
            Self::DeleteTimes { .. } => t::AUDIT_HISTORY_AT_TIME_DELETE_EVENT_TYPE,
            Self::DeleteEvents { .. } => t::AUDIT_HISTORY_EVENT_DELETE_EVENT_TYPE,
            Self::Unknown => t::AUDIT_HISTORY_UPDATE_EVENT_TYPE,
        }
    }

    /// What was done, for the message of the event (Part 11 §5.8.1).
    pub(super) fn verb(&self) -> &'static str {
        let perform = match self {
            Self::Annotations { perform, .. }
            | Self::Values { perform, .. }
            | Self::Events { perform, .. } => *perform,
            Self::Unknown => return "changed",
            _ => return "deleted",
        };
        match perform {
            PerformUpdateType::INSERT => "inserted",
            PerformUpdateType::REPLACE => "replaced",
            PerformUpdateType::REMOVE => "removed",
            _ => "updated",
        }
    }

    /// Adds the fields of the EventType. Previous events and annotations are not read, so their OldValues are empty: the
    /// specification accepts a null value then (§5.8.3 to §5.8.8).
    pub(super) fn add_fields(&self, event: NewEvent) -> NewEvent {
        match self {
            Self::Annotations { perform, new_values } => event
                .field("PerformInsertReplace", perform.0)
                .field("NewValues", Variant::from_structures(new_values))
                .field("OldValues", Variant::from_structures::<Annotation>([])),
            Self::Values { perform, new_values, old_values } => event
                .field("PerformInsertReplace", perform.0)
                .field("NewValues", new_values.clone())
                .field("OldValues", old_values.clone()),
            Self::Events { perform, filter, new_values } => event
                .field("PerformInsertReplace", perform.0)
                .field("Filter", Variant::from_structure(filter))
                .field("NewValues", Variant::from_structures(new_values))
                .field("OldValues", Variant::from_structures::<HistoryEventFieldList>([])),
            Self::DeleteRange { is_delete_modified, start_time, end_time, old_values } => event
                .field("IsDeleteModified", *is_delete_modified)
                .field("StartTime", *start_time)
                .field("EndTime", *end_time)
                .field("OldValues", old_values.clone()),
            Self::DeleteTimes { req_times, old_values } => {
                event.field("ReqTimes", req_times.clone()).field("OldValues", old_values.clone())
            }
            Self::DeleteEvents { event_ids } => event
                .field("EventIds", event_ids.clone())
                .field("OldValues", Variant::from_structure(&HistoryEventFieldList::default())),
            Self::Unknown => event,
        }
    }

    /// The fields for a text, such as a line of the audit file.
    pub(super) fn fields<'a>(&'a self, all: &mut Vec<(&'static str, AuditField<'a>)>) {
        let text = |text: String| AuditField::Text(Cow::Owned(text));
        let list = |texts: Vec<String>| AuditField::List(texts.into_iter().map(Cow::Owned).collect());
        match self {
            Self::Values { perform, new_values, old_values } => {
                all.push(("PerformInsertReplace", text(perform.to_string())));
                all.push(("NewValues", list(new_values.iter().map(shown).collect())));
                all.push(("OldValues", list(old_values.iter().map(shown).collect())));
            }
            Self::Annotations { perform, .. } | Self::Events { perform, .. } => {
                all.push(("PerformInsertReplace", text(perform.to_string())));
            }
            Self::DeleteRange { is_delete_modified, start_time, end_time, old_values } => {
                all.push(("IsDeleteModified", AuditField::Boolean(*is_delete_modified)));
                all.push(("StartTime", text(start_time.to_string())));
                all.push(("EndTime", text(end_time.to_string())));
                all.push(("OldValues", list(old_values.iter().map(shown).collect())));
            }
            Self::DeleteTimes { req_times, old_values } => {
                all.push(("ReqTimes", list(req_times.iter().map(ToString::to_string).collect())));
                all.push(("OldValues", list(old_values.iter().map(shown).collect())));
            }
            Self::DeleteEvents { event_ids } => {
                let shown = |id: &ByteString| super::record::hexadecimal(id.as_bytes()).into();
                all.push(("EventIds", list(event_ids.iter().map(shown).collect())));
            }
            Self::Unknown => {}
        }
    }
}

/// A value of a list as text.
fn shown(value: &DataValue) -> String {
    let time = value.source_timestamp.unwrap_or(UtcTime::NULL);
    let value = value.value.as_ref().map(Variant::to_string).unwrap_or_default();
    format!("{time} {value}")
}

/// A value that may be shown, or a text about its type and length.
fn plain(value: &Variant) -> Variant {
    use Variant as V;
    match value {
        V::Empty
        | V::Boolean(_)
        | V::SByte(_)
        | V::Byte(_)
        | V::Int16(_)
        | V::UInt16(_)
        | V::Int32(_)
        | V::UInt32(_)
        | V::Int64(_)
        | V::UInt64(_)
        | V::Float(_)
        | V::Double(_)
        | V::DateTime(_)
        | V::StatusCode(_) => value.clone(),
        value => AuditValue::of(value).as_str().into(),
    }
}

fn short(id: &ByteString) -> ByteString {
    let bytes = id.as_bytes();
    bytes.get(..EVENT_ID_LEN_MAX).unwrap_or(bytes).to_vec().into()
}

fn event_id_name() -> QualifiedName {
    QualifiedName::new(0, "EventId")
}

/// A clause with short names.
fn clause(clause: &SimpleAttributeOperand) -> SimpleAttributeOperand {
    let name = |name: &QualifiedName| QualifiedName::new(name.namespace_index, &*cut(name.name.as_str()));
    SimpleAttributeOperand {
        type_definition_id: match clause.type_definition_id.ns0() {
            Some(id) => NodeId::numeric(0, id),
            None => NodeId::NULL,
        },
        browse_path: clause.browse_path.iter().take(2).map(name).collect(),
        attribute_id: clause.attribute_id,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_and_texts_are_not_shown() {
        let secret = "canary";
        let values = vec![DataValue::new(secret); 1_000];
        let AuditHistory::Values { new_values, .. } =
            AuditHistory::values(PerformUpdateType::INSERT, &values)
        else {
            panic!("values")
        };
        assert_eq!(new_values.len(), ENTRIES_MAX);
        assert_eq!(new_values[0].value, Some("String (6 bytes)".into()));
        let path = |name: &str| SimpleAttributeOperand {
            browse_path: vec![QualifiedName::new(0, name)],
            ..Default::default()
        };
        let filter =
            EventFilter { select_clauses: vec![path("EventId"), path("Message")], ..Default::default() };
        let id = ByteString::from(vec![7u8; 100]);
        let event = HistoryEventFieldList { event_fields: vec![id.into(), secret.into()] };
        let noted = AuditHistory::events(PerformUpdateType::INSERT, &filter, &vec![event; 100]);
        let AuditHistory::Events { new_values, .. } = &noted else { panic!("events") };
        assert_eq!(new_values.len(), EVENTS_MAX);
        assert_eq!(new_values[0].event_fields[0], ByteString::from(vec![7u8; EVENT_ID_LEN_MAX]).into());
        assert!(!format!("{noted:?}").contains(secret));
        assert_eq!(
            AuditHistory::delete_times(&[UtcTime::NULL; 99]),
            AuditHistory::delete_times(&[UtcTime::NULL; 16])
        );
    }
}
