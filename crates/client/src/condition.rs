//! Conditions (Part 9): the fields to select from their events, a table of the retained ones, and calls of their
//! Methods.

use crate::event_query::EventQuery;
use std::collections::BTreeMap;
use taktwerk_schema::CallMethodRequest;
use taktwerk_schema::ids::{method_ids, object_type_ids};
use taktwerk_types::{ByteString, LocalizedText, NodeId, StatusCode, UtcTime, Variant};

/// Maximum number of conditions and branches in a table; further ones are counted and dropped.
pub const CONDITIONS_MAX: usize = 100_000;

/// The fields of the query, in order.
const FIELDS: [&str; 25] = [
    "EventType",
    "EventId",
    "ConditionId",
    "BranchId",
    "ConditionName",
    "SourceNode",
    "SourceName",
    "Time",
    "Message",
    "Severity",
    "Retain",
    "EnabledState/Id",
    "ActiveState/Id",
    "AckedState/Id",
    "ConfirmedState/Id",
    "SuppressedOrShelved",
    "ShelvingState/CurrentState",
    "ActiveState/EffectiveDisplayName",
    "Quality",
    "Comment",
    "ClientUserId",
    "LimitState/CurrentState",
    "ActiveState/TransitionTime",
    "DialogState/Id",
    "DialogState/TransitionTime",
];

/// The state of a condition, as reported by an event.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ConditionEvent {
    /// The type of the condition.
    pub event_type: NodeId,
    /// The EventId, as Acknowledge, Confirm and AddComment need it.
    pub event_id: ByteString,
    /// The condition.
    pub condition_id: NodeId,
    /// The branch; null for the condition itself.
    pub branch_id: NodeId,
    /// ConditionName.
    pub name: String,
    /// SourceNode.
    pub source: NodeId,
    /// SourceName.
    pub source_name: String,
    /// Time of the event.
    pub time: Option<UtcTime>,
    /// Message of the event.
    pub message: String,
    /// From 1 to 1000.
    pub severity: u16,
    /// Whether clients should display the condition.
    pub retain: bool,
    /// EnabledState.
    pub enabled: bool,
    /// ActiveState; `None` if the condition is no alarm.
    pub active: Option<bool>,
    /// AckedState; `None` if it cannot be acknowledged.
    pub acked: Option<bool>,
    /// ConfirmedState; `None` if it cannot be confirmed.
    pub confirmed: Option<bool>,
    /// SuppressedOrShelved.
    pub suppressed_or_shelved: bool,
    /// Name of the current shelving state.
    pub shelving: String,
    /// The state as display text.
    pub state: String,
    /// Quality.
    pub quality: StatusCode,
    /// The last comment.
    pub comment: String,
    /// The user who made the comment.
    pub user: String,
    /// The violated limit of an exclusive limit alarm.
    pub limit: String,
    /// When ActiveState last changed, or DialogState of a dialog; `None` if the server does not say it.
    pub changed: Option<UtcTime>,
    /// DialogState: whether a dialog waits for a response; `None` if the condition is no dialog.
    pub asks: Option<bool>,
}

impl ConditionEvent {
    /// Selects the fields that [`Self::read`] expects, for all conditions and the refresh events.
    #[must_use]
    pub fn query() -> EventQuery {
        let query = FIELDS.iter().fold(EventQuery::new(), |query, name| query.select(name));
        // ConditionType, RefreshStartEventType, RefreshEndEventType, RefreshRequiredEventType.
        let filter = "oftype i=2782 or oftype i=2787 or oftype i=2788 or oftype i=2789 or oftype i=3035";
        // A constant text, which is always valid.
        query.filter(filter).unwrap_or_default()
    }

    /// Number of fields that [`Self::query`] selects. Additional fields of the caller follow them.
    #[must_use]
    pub const fn len() -> usize {
        FIELDS.len()
    }

    /// Reads the fields of an event. Fields that the server does not provide keep their defaults.
    #[must_use]
    pub fn read(fields: &[Variant]) -> Self {
        let at = |name: &str| {
            let at = FIELDS.iter().position(|known| *known == name)?;
            fields.get(at)
        };
        let node = |name: &str| match at(name) {
            Some(Variant::NodeId(id)) => (**id).clone(),
            _ => NodeId::NULL,
        };
        let text = |name: &str| match at(name) {
            Some(Variant::String(text)) => text.as_str().to_owned(),
            Some(Variant::LocalizedText(text)) => text.text.as_str().to_owned(),
            _ => String::new(),
        };
        let flag = |name: &str| match at(name) {
            Some(Variant::Boolean(flag)) => Some(*flag),
            _ => None,
        };
        let time = |name: &str| match at(name) {
            Some(Variant::DateTime(time)) if !time.is_null() => Some(*time),
            _ => None,
        };
        Self {
            event_type: node("EventType"),
            event_id: match at("EventId") {
                Some(Variant::ByteString(id)) => id.clone(),
                _ => ByteString::default(),
            },
            condition_id: node("ConditionId"),
            branch_id: node("BranchId"),
            name: text("ConditionName"),
            source: node("SourceNode"),
            source_name: text("SourceName"),
            time: match at("Time") {
                Some(Variant::DateTime(time)) => Some(*time),
                _ => None,
            },
            message: text("Message"),
            severity: match at("Severity") {
                Some(Variant::UInt16(severity)) => *severity,
                _ => 0,
            },
            retain: flag("Retain").unwrap_or(false),
            enabled: flag("EnabledState/Id").unwrap_or(true),
            active: flag("ActiveState/Id"),
            acked: flag("AckedState/Id"),
            confirmed: flag("ConfirmedState/Id"),
            suppressed_or_shelved: flag("SuppressedOrShelved").unwrap_or(false),
            shelving: text("ShelvingState/CurrentState"),
            state: text("ActiveState/EffectiveDisplayName"),
            quality: match at("Quality") {
                Some(Variant::StatusCode(status)) => *status,
                _ => StatusCode::GOOD,
            },
            comment: text("Comment"),
            user: text("ClientUserId"),
            limit: text("LimitState/CurrentState"),
            changed: time("ActiveState/TransitionTime").or_else(|| time("DialogState/TransitionTime")),
            asks: flag("DialogState/Id"),
        }
    }

    /// Since when the condition is active or inactive. Comments and acknowledgements do not change it. The time of the
    /// event if the server does not say it.
    #[must_use]
    pub fn since(&self) -> Option<UtcTime> {
        self.changed.or(self.time)
    }

    fn is_type(&self, id: u32) -> bool {
        self.event_type.ns0() == Some(id)
    }
}

/// The change that an event has made to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableChange {
    /// A condition was added or changed.
    Changed,
    /// A condition was removed.
    Removed,
    /// A refresh has started; existing entries may be outdated.
    RefreshStarted,
    /// The refresh has ended: the table is complete.
    RefreshEnded,
    /// The server requests a refresh, or events were lost: call ConditionRefresh.
    RefreshRequired,
    /// The event changes nothing in the table.
    Nothing,
}

/// The retained conditions, updated from events (Part 9 §4.5).
#[derive(Debug, Clone, Default)]
pub struct ConditionTable {
    conditions: BTreeMap<(NodeId, NodeId), Entry>,
    left_out: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    event: ConditionEvent,
    /// The current refresh has not reported it yet.
    is_suspect: bool,
}

impl ConditionTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Processes an event.
    pub fn take(&mut self, event: ConditionEvent) -> TableChange {
        if event.is_type(object_type_ids::REFRESH_START_EVENT_TYPE) {
            // §5.5.7: conditions that the refresh does not report no longer exist.
            self.conditions.values_mut().for_each(|entry| entry.is_suspect = true);
            return TableChange::RefreshStarted;
        }
        if event.is_type(object_type_ids::REFRESH_END_EVENT_TYPE) {
            self.conditions.retain(|_, entry| !entry.is_suspect);
            return TableChange::RefreshEnded;
        }
        if event.is_type(object_type_ids::REFRESH_REQUIRED_EVENT_TYPE)
            || event.is_type(object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE)
        {
            return TableChange::RefreshRequired;
        }
        if event.condition_id.is_null() {
            return TableChange::Nothing;
        }
        let key = (event.condition_id.clone(), event.branch_id.clone());
        if !event.retain {
            return match self.conditions.remove(&key) {
                Some(_) => TableChange::Removed,
                None => TableChange::Nothing,
            };
        }
        if self.conditions.len() >= CONDITIONS_MAX && !self.conditions.contains_key(&key) {
            self.left_out += 1;
            return TableChange::Nothing;
        }
        self.conditions.insert(key, Entry { event, is_suspect: false });
        TableChange::Changed
    }

    /// The conditions, by descending severity, then newest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<&ConditionEvent> {
        let mut all: Vec<_> = self.conditions.values().map(|entry| &entry.event).collect();
        all.sort_by_key(|event| {
            let time = event.since().map_or(i64::MIN, UtcTime::ticks);
            (core::cmp::Reverse(event.severity), core::cmp::Reverse(time))
        });
        all
    }

    /// The conditions that the current refresh has not reported yet. They are removed at its end.
    pub fn suspects(&self) -> impl Iterator<Item = &ConditionEvent> {
        self.conditions.values().filter(|entry| entry.is_suspect).map(|entry| &entry.event)
    }

    /// Number of conditions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.conditions.len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Number of condition events that were dropped because the table was full.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Calls of condition Methods.
pub mod calls {
    use super::*;

    fn call(object: &NodeId, method: u32, inputs: Vec<Variant>) -> CallMethodRequest {
        CallMethodRequest {
            object_id: object.clone(),
            method_id: NodeId::numeric(0, method),
            input_arguments: inputs,
        }
    }

    fn about(condition: &NodeId, method: u32, event: &ByteString, comment: &str) -> CallMethodRequest {
        let comment = LocalizedText::from(comment);
        call(condition, method, vec![event.clone().into(), comment.into()])
    }

    /// Acknowledge (§5.7.3).
    #[must_use]
    pub fn acknowledge(condition: &NodeId, event: &ByteString, comment: &str) -> CallMethodRequest {
        about(condition, method_ids::ACKNOWLEDGEABLE_CONDITION_TYPE_ACKNOWLEDGE, event, comment)
    }

    /// Confirm (§5.7.4).
    #[must_use]
    pub fn confirm(condition: &NodeId, event: &ByteString, comment: &str) -> CallMethodRequest {
        about(condition, method_ids::ACKNOWLEDGEABLE_CONDITION_TYPE_CONFIRM, event, comment)
    }

    /// AddComment (§5.5.6).
    #[must_use]
    pub fn add_comment(condition: &NodeId, event: &ByteString, comment: &str) -> CallMethodRequest {
        about(condition, method_ids::CONDITION_TYPE_ADD_COMMENT, event, comment)
    }

    /// TimedShelve (§5.8.17.4), with the ConditionId as the Object.
    #[must_use]
    pub fn timed_shelve(condition: &NodeId, millis: f64) -> CallMethodRequest {
        call(condition, method_ids::SHELVED_STATE_MACHINE_TYPE_TIMED_SHELVE, vec![millis.into()])
    }

    /// OneShotShelve (§5.8.17.6).
    #[must_use]
    pub fn one_shot_shelve(condition: &NodeId) -> CallMethodRequest {
        call(condition, method_ids::SHELVED_STATE_MACHINE_TYPE_ONE_SHOT_SHELVE, Vec::new())
    }

    /// Unshelve (§5.8.17.2).
    #[must_use]
    pub fn unshelve(condition: &NodeId) -> CallMethodRequest {
        call(condition, method_ids::SHELVED_STATE_MACHINE_TYPE_UNSHELVE, Vec::new())
    }

    /// Enable (§5.5.5) or Disable (§5.5.4).
    #[must_use]
    pub fn enable(condition: &NodeId, enabled: bool) -> CallMethodRequest {
        let method =
            if enabled { method_ids::CONDITION_TYPE_ENABLE } else { method_ids::CONDITION_TYPE_DISABLE };
        call(condition, method, Vec::new())
    }

    /// Suppress (§5.8.8) or Unsuppress (§5.8.10).
    #[must_use]
    pub fn suppress(condition: &NodeId, suppressed: bool) -> CallMethodRequest {
        let method = if suppressed {
            method_ids::ALARM_CONDITION_TYPE_SUPPRESS
        } else {
            method_ids::ALARM_CONDITION_TYPE_UNSUPPRESS
        };
        call(condition, method, Vec::new())
    }

    /// Silence (§5.8.7).
    #[must_use]
    pub fn silence(condition: &NodeId) -> CallMethodRequest {
        call(condition, method_ids::ALARM_CONDITION_TYPE_SILENCE, Vec::new())
    }

    /// Reset (§5.8.5).
    #[must_use]
    pub fn reset(condition: &NodeId) -> CallMethodRequest {
        call(condition, method_ids::ALARM_CONDITION_TYPE_RESET, Vec::new())
    }

    /// Respond (§5.6.3).
    #[must_use]
    pub fn respond(condition: &NodeId, response: i32) -> CallMethodRequest {
        call(condition, method_ids::DIALOG_CONDITION_TYPE_RESPOND, vec![response.into()])
    }

    /// ConditionRefresh (§5.5.7).
    #[must_use]
    pub fn condition_refresh(subscription_id: u32) -> CallMethodRequest {
        let object = NodeId::numeric(0, object_type_ids::CONDITION_TYPE);
        call(&object, method_ids::CONDITION_TYPE_CONDITION_REFRESH, vec![subscription_id.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u32, severity: u16, retain: bool) -> ConditionEvent {
        ConditionEvent {
            event_type: NodeId::numeric(0, object_type_ids::ALARM_CONDITION_TYPE),
            condition_id: NodeId::numeric(1, number),
            severity,
            retain,
            ..ConditionEvent::default()
        }
    }

    fn marker(kind: u32) -> ConditionEvent {
        ConditionEvent { event_type: NodeId::numeric(0, kind), ..ConditionEvent::default() }
    }

    #[test]
    fn a_refresh_removes_unreported_conditions() {
        let mut table = ConditionTable::new();
        assert_eq!(table.take(event(1, 100, true)), TableChange::Changed);
        assert_eq!(table.take(event(2, 900, true)), TableChange::Changed);
        assert_eq!(table.sorted()[0].condition_id, NodeId::numeric(1, 2));
        let start = marker(object_type_ids::REFRESH_START_EVENT_TYPE);
        assert_eq!(table.take(start), TableChange::RefreshStarted);
        table.take(event(1, 100, true));
        // Not part of the refresh, but new in the meantime.
        table.take(event(3, 500, true));
        assert_eq!(table.len(), 3);
        let suspects: Vec<_> = table.suspects().map(|event| event.condition_id.clone()).collect();
        assert_eq!(suspects, [NodeId::numeric(1, 2)]);
        let end = marker(object_type_ids::REFRESH_END_EVENT_TYPE);
        assert_eq!(table.take(end), TableChange::RefreshEnded);
        assert_eq!(table.suspects().count(), 0);
        let left: Vec<_> = table.sorted().iter().map(|event| event.condition_id.clone()).collect();
        assert_eq!(left, [NodeId::numeric(1, 3), NodeId::numeric(1, 1)]);
        assert_eq!(table.take(event(3, 500, false)), TableChange::Removed);
        assert_eq!(table.take(event(3, 500, false)), TableChange::Nothing);
        let lost = marker(object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE);
        assert_eq!(table.take(lost), TableChange::RefreshRequired);
    }

    #[test]
    fn branches_stand_beside_their_condition() {
        let mut table = ConditionTable::new();
        table.take(event(1, 100, true));
        let branch = ConditionEvent { branch_id: NodeId::numeric(1, 77), ..event(1, 100, true) };
        table.take(branch.clone());
        assert_eq!(table.len(), 2);
        table.take(ConditionEvent { retain: false, ..branch });
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn the_query_selects_what_is_read() {
        let query = ConditionEvent::query();
        assert_eq!(query.names().len(), FIELDS.len());
        assert!(!query.event_filter().where_clause.elements.is_empty());
        let mut fields = vec![Variant::Empty; FIELDS.len()];
        fields[2] = NodeId::numeric(1, 5).into();
        fields[9] = 700u16.into();
        fields[13] = false.into();
        let read = ConditionEvent::read(&fields);
        assert_eq!((read.condition_id, read.severity, read.acked), (NodeId::numeric(1, 5), 700, Some(false)));
        assert_eq!(ConditionEvent::read(&[]).acked, None);
        // A comment is a later event of the same state.
        fields[7] = UtcTime::from_ticks(9).into();
        assert_eq!(ConditionEvent::read(&fields).since(), Some(UtcTime::from_ticks(9)));
        fields[22] = UtcTime::from_ticks(5).into();
        assert_eq!(ConditionEvent::read(&fields).since(), Some(UtcTime::from_ticks(5)));
        (fields[22], fields[24]) = (Variant::Empty, UtcTime::from_ticks(6).into());
        assert_eq!(ConditionEvent::read(&fields).since(), Some(UtcTime::from_ticks(6)));
    }
}
