//! The interface of history stores.

use super::event::StoredEvent;
use crate::account::HeapSize;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_schema::{Annotation, HistoryUpdateType};
use taktwerk_types::{ByteString, DataValue, StatusCode, UtcTime, Variant};

/// A Variable's name in a store, such as `nsu=urn:plant;s=Boiler`.
pub type NodeKey = Arc<str>;

/// One value of a Variable's history. A Variable has one value per source time.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryValue {
    /// SourceTimestamp: history is sorted by it.
    pub source: UtcTime,
    /// ServerTimestamp.
    pub server: UtcTime,
    /// Its quality.
    pub status: StatusCode,
    /// The value; empty if there is none.
    pub value: Variant,
}

impl HistoryValue {
    /// Whether value, status and times are equal. NaN equals the same NaN.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        (self.source, self.server, self.status) == (other.source, other.server, other.status)
            && self.value.same_as(&other.value)
    }

    /// Converts a DataValue; `now` is used if the server timestamp is missing.
    ///
    /// # Errors
    /// Bad_InvalidTimestamp without a source time.
    pub fn from_data_value(value: DataValue, now: UtcTime) -> Result<Self, StatusCode> {
        let source = value.source_timestamp.filter(|time| !time.is_null());
        Ok(Self {
            status: value.status(),
            source: source.ok_or(StatusCode::BAD_INVALID_TIMESTAMP)?,
            server: value.server_timestamp.unwrap_or(now),
            value: value.value.unwrap_or_default(),
        })
    }
}

impl HeapSize for HistoryValue {
    fn heap_size(&self) -> usize {
        self.value.heap_size()
    }
}

/// A time span, both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The earliest time.
    pub first: UtcTime,
    /// The latest time.
    pub last: UtcTime,
}

impl Span {
    /// All of time.
    pub const ALL: Self = Self { first: UtcTime::from_ticks(i64::MIN), last: UtcTime::from_ticks(i64::MAX) };

    /// Whether it contains a time.
    #[must_use]
    pub fn contains(&self, time: UtcTime) -> bool {
        self.first <= time && time <= self.last
    }

    /// The part that follows a time in reading order.
    #[must_use]
    pub fn behind(self, time: UtcTime, order: Order) -> Self {
        // There is no time behind the last one. `ALL` ends there, and the span must become empty.
        const NONE: Span = Span { first: UtcTime::from_ticks(1), last: UtcTime::from_ticks(0) };
        let step = if order == Order::Forward { 1 } else { -1 };
        match (time.ticks().checked_add(step).map(UtcTime::from_ticks), order) {
            (None, _) => NONE,
            (Some(next), Order::Forward) => Self { first: self.first.max(next), ..self },
            (Some(next), Order::Backward) => Self { last: self.last.min(next), ..self },
        }
    }

    /// Whether it contains no time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first > self.last
    }
}

/// Limits of one read. Values can be large, so their number alone does not bound the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Maximum number.
    pub count: usize,
    /// Bytes of heap after which reading stops; the last value may exceed it.
    pub bytes: usize,
}

impl ReadLimit {
    /// No limit.
    pub const NONE: Self = Self { count: usize::MAX, bytes: usize::MAX };

    /// A number of values, of any size.
    #[must_use]
    pub const fn count(count: usize) -> Self {
        Self { count, bytes: usize::MAX }
    }

    /// Whether reading must stop.
    #[must_use]
    pub const fn is_reached(self) -> bool {
        self.count == 0 || self.bytes == 0
    }

    /// Counts a returned value.
    pub fn give(&mut self, one: &impl HeapSize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(one.heap_size());
    }

    /// The remaining limit after some values.
    #[must_use]
    pub fn behind<'a, T: HeapSize + 'a>(mut self, given: impl IntoIterator<Item = &'a T>) -> Self {
        given.into_iter().for_each(|one| self.give(one));
        self
    }

    /// The values of an iterator that fit.
    pub fn of<T: HeapSize>(mut self, all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let mut all = all;
        core::iter::from_fn(move || {
            if self.is_reached() {
                return None;
            }
            let next = all.next()?;
            self.give(&next);
            Some(next)
        })
    }
}

/// The reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The earliest first.
    Forward,
    /// The latest first.
    Backward,
}

/// What an update does, depending on whether a value exists for the time (Part 11 §6.9.2, §6.9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Perform {
    /// Adds it; Bad_EntryExists if a value exists.
    Insert,
    /// Replaces it; Bad_NoEntryExists if none exists.
    Replace,
    /// Adds or replaces it.
    Update,
    /// Removes it; Bad_NoEntryExists if none exists. Only for annotations.
    Remove,
}

/// The time, kind and author of a modification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modification {
    /// The time.
    pub time: UtcTime,
    /// The kind.
    pub kind: HistoryUpdateType,
    /// The user; empty for Anonymous.
    pub user: Box<str>,
}

/// A value that an update inserted, replaced or deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifiedValue {
    /// The replaced or deleted value; for an insertion, the inserted one.
    pub value: HistoryValue,
    /// The modification.
    pub by: Modification,
}

impl HeapSize for ModifiedValue {
    fn heap_size(&self) -> usize {
        self.value.heap_size().saturating_add(self.by.user.len())
    }
}

/// The position of an event in a store: its time, and a number to distinguish events of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// The event's Time.
    pub time: UtcTime,
    /// Increases with each event that is added.
    pub number: i64,
}

/// Whether a client that changes events may see an event, at the node that it named and with its roles.
pub type Sees<'a> = &'a dyn Fn(&StoredEvent) -> bool;

/// Inserts or changes one event for [`HistoryStore::update_events`]; `known` is the stored event with its id. Returns
/// the event to store, if any, and the status (Part 11 §6.9.4).
pub fn merge_event(
    perform: Perform,
    known: Option<StoredEvent>,
    event: StoredEvent,
    sees: Sees<'_>,
) -> (Option<StoredEvent>, StatusCode) {
    if known.as_ref().is_some_and(|known| !sees(known)) {
        // The client may not see the stored event. Its EventId is nevertheless in use.
        let is_replaced = perform == Perform::Replace;
        let status = if is_replaced { StatusCode::BAD_NO_ENTRY_EXISTS } else { StatusCode::BAD_ENTRY_EXISTS };
        return (None, status);
    }
    let (stored, status) = merged(perform, known, event);
    match stored {
        Some(stored) if !sees(&stored) => (None, StatusCode::BAD_USER_ACCESS_DENIED),
        stored => (stored, status),
    }
}

fn merged(
    perform: Perform,
    known: Option<StoredEvent>,
    event: StoredEvent,
) -> (Option<StoredEvent>, StatusCode) {
    match (perform, known) {
        (Perform::Insert, Some(_)) => (None, StatusCode::BAD_ENTRY_EXISTS),
        (Perform::Replace, None) => (None, StatusCode::BAD_NO_ENTRY_EXISTS),
        (Perform::Remove, _) => (None, StatusCode::BAD_HISTORY_OPERATION_INVALID),
        (_, None) => (Some(event), StatusCode::GOOD_ENTRY_INSERTED),
        (_, Some(mut known)) => {
            for (path, value) in event.fields {
                known.set(path, value);
            }
            (Some(known), StatusCode::GOOD_ENTRY_REPLACED)
        }
    }
}

/// An event with its position.
impl HeapSize for (EventCursor, StoredEvent) {
    fn heap_size(&self) -> usize {
        self.1.heap_size()
    }
}

/// An annotation with its annotated time.
impl HeapSize for (UtcTime, Annotation) {
    fn heap_size(&self) -> usize {
        self.1.message.heap_size().saturating_add(self.1.user_name.heap_size())
    }
}

/// What identifies an annotation of a Variable. The server defines it (Part 11 §6.9.3.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnnotationKey {
    /// The annotated time.
    pub time: UtcTime,
    /// UserName.
    pub user: Box<str>,
    /// AnnotationTime.
    pub annotation_time: UtcTime,
}

impl AnnotationKey {
    /// The key of an annotation.
    #[must_use]
    pub fn of(time: UtcTime, annotation: &Annotation) -> Self {
        Self { time, user: annotation.user_name.as_str().into(), annotation_time: annotation.annotation_time }
    }
}

/// What clients can do with the data of a store, in addition to reading them, and how long they are kept. The server
/// announces it in AccessLevels, HistoryServerCapabilities (Part 11 §5.2.3) and HistoricalDataConfigurations (§5.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCapabilities {
    /// Insert, replace, update and delete values.
    pub update: bool,
    /// Read and change annotations.
    pub annotations: bool,
    /// Insert, replace, update and delete events.
    pub events: bool,
    /// For how long values are kept (MaxTimeStoredValues); zero is unlimited.
    pub time_max: Duration,
    /// Number of values kept per Variable (MaxCountStoredValues); 0 is unlimited.
    pub count_max: u32,
}

impl StoreCapabilities {
    /// Everything, without limits.
    pub const ALL: Self =
        Self { update: true, annotations: true, events: true, time_max: Duration::ZERO, count_max: 0 };
}

/// A store operation failed.
#[derive(Debug, Clone)]
pub struct StoreError {
    /// The status for the client.
    pub status: StatusCode,
    /// The message for the operator: what failed, why, and what to do.
    pub message: String,
}

impl StoreError {
    /// A failure of the database, the disk or the network.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_RESOURCE_UNAVAILABLE, message: message.into() }
    }

    /// The store cannot be used as it is configured, for example because the file belongs to another program. Another attempt
    /// does not help: a server does not start with it.
    pub fn mistake(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_CONFIGURATION_ERROR, message: message.into() }
    }

    /// Whether only a change of the configuration helps.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        self.status == StatusCode::BAD_CONFIGURATION_ERROR
    }

    /// The status for a client that reads: a store that does not answer is Bad_DataUnavailable (Part 11 §6.2.2).
    #[must_use]
    pub fn status_of_read(&self) -> StatusCode {
        match self.status {
            StatusCode::BAD_RESOURCE_UNAVAILABLE => StatusCode::BAD_DATA_UNAVAILABLE,
            status => status,
        }
    }

    /// Stored data cannot be read any more.
    pub fn corrupted(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_DATA_LOST, message: message.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.status)
    }
}

impl std::error::Error for StoreError {}

/// Stores values of Variables. All calls may block: the server makes them on worker threads.
///
/// A read-only source, such as a device that remembers its values, implements only [`read`](Self::read). A store that
/// clients can change also returns its [`capabilities`](Self::capabilities).
pub trait HistoryStore: Send + Sync + fmt::Debug {
    /// The kind of store, for metrics: a word such as `sqlite`.
    fn kind(&self) -> &'static str {
        "custom"
    }

    /// Whether [`Self::read`] waits for another OPC UA server. The server reads such stores on threads of their own, so that
    /// another server that hangs does not delay its own history.
    fn is_remote(&self) -> bool {
        false
    }

    /// What clients can do besides reading values. Default: nothing.
    fn capabilities(&self) -> StoreCapabilities {
        StoreCapabilities::default()
    }

    /// Adds recorded values. A value replaces an existing one of the same time, without a modified value.
    ///
    /// # Errors
    /// No value was stored.
    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        let _ = values;
        Err(unsupported())
    }

    /// Appends the values of a span to `out`, in order, up to `limit`.
    ///
    /// # Errors
    /// The values could not be read.
    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError>;

    /// The modified values of a span, sorted by source time, without the first `skip`, up to `limit`.
    ///
    /// # Errors
    /// The values could not be read.
    fn read_modified(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        skip: usize,
        limit: ReadLimit,
    ) -> Result<Vec<ModifiedValue>, StoreError> {
        let _ = (node, span, order, skip, limit);
        Err(unsupported())
    }

    /// Inserts, replaces or updates values. Returns a status for each. Previous values are kept as modified values.
    ///
    /// # Errors
    /// Nothing was changed.
    fn update(
        &self,
        node: &NodeKey,
        perform: Perform,
        values: Vec<HistoryValue>,
        by: &Modification,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let _ = (node, perform, values, by);
        Err(unsupported())
    }

    /// Deletes the values of a span and keeps them as modified values. Returns their number. A span can have millions of values:
    /// delete them in parts, so that the recorder and readers do not wait for all of them.
    ///
    /// # Errors
    /// Some values may be deleted.
    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        let _ = (node, span, by);
        Err(unsupported())
    }

    /// Deletes the values at some times as [`Self::delete`] does. Returns for each time whether there was one. Stores
    /// that delete many values together faster than one by one implement it.
    ///
    /// # Errors
    /// The values of earlier times may be deleted.
    fn delete_at(
        &self,
        node: &NodeKey,
        times: &[UtcTime],
        by: &Modification,
    ) -> Result<Vec<bool>, StoreError> {
        let one = |time: &UtcTime| {
            let count = self.delete(node, Span { first: *time, last: *time }, by)?;
            Ok(count > 0)
        };
        times.iter().map(one).collect()
    }

    /// Deletes the modified values of a span. Returns their number.
    ///
    /// # Errors
    /// Some of them may be deleted.
    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        let _ = (node, span);
        Err(unsupported())
    }

    /// The annotations of a span with their annotated times, up to `limit`. They are sorted by annotated time; the store
    /// defines the order of those of the same time. If `after` is given, only those that follow it in reading order.
    ///
    /// # Errors
    /// The annotations could not be read.
    fn annotations(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<&AnnotationKey>,
        limit: ReadLimit,
    ) -> Result<Vec<(UtcTime, Annotation)>, StoreError> {
        let _ = (node, span, order, after, limit);
        Ok(Vec::new())
    }

    /// Inserts, replaces, updates or removes annotations. Returns a status for each. They are identified by their
    /// [`AnnotationKey`].
    ///
    /// # Errors
    /// Nothing was changed.
    fn annotate(
        &self,
        node: &NodeKey,
        perform: Perform,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let _ = (node, perform, annotations);
        Err(unsupported())
    }

    /// Adds events in the order in which they were raised.
    ///
    /// # Errors
    /// No event was stored.
    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        let _ = (node, events);
        Err(unsupported())
    }

    /// Appends events of a span to `out`, up to `limit`: sorted by time, and by insertion order for the same time. If
    /// `after` is given, only later ones.
    ///
    /// # Errors
    /// The events could not be read.
    fn read_events(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<EventCursor>,
        limit: ReadLimit,
        out: &mut Vec<(EventCursor, StoredEvent)>,
    ) -> Result<(), StoreError> {
        let _ = (node, span, order, after, limit, out);
        Err(unsupported())
    }

    /// Inserts, replaces or updates events, identified by their EventIds. Returns a status for each. A replacement
    /// replaces the fields that it contains. Only events that `sees` accepts may be changed, and the result must also
    /// be accepted: [`merge_event`] decides.
    ///
    /// # Errors
    /// Nothing was changed.
    fn update_events(
        &self,
        node: &NodeKey,
        perform: Perform,
        events: Vec<StoredEvent>,
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let _ = (node, perform, events, sees);
        Err(unsupported())
    }

    /// Deletes events by their EventIds. Returns a status for each. Events that `sees` rejects are treated as missing.
    ///
    /// # Errors
    /// Nothing was deleted.
    fn delete_events(
        &self,
        node: &NodeKey,
        ids: &[ByteString],
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        let _ = (node, ids, sees);
        Err(unsupported())
    }

    /// Deletes data beyond the retention period. Called from time to time with the wall time.
    ///
    /// # Errors
    /// Nothing, or only a part, was deleted.
    fn maintain(&self, now: UtcTime) -> Result<(), StoreError> {
        let _ = now;
        Ok(())
    }

    /// The recording process ends regularly: makes all appended data persistent.
    ///
    /// # Errors
    /// The data may not be persistent.
    fn finish(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Marks values of a Variable as lost from a time on. Until its next value the history returns Bad_DataLost.
    ///
    /// # Errors
    /// The mark was not stored.
    fn lost(&self, node: &NodeKey, from: UtcTime) -> Result<(), StoreError> {
        let status = StatusCode::BAD_DATA_LOST;
        let value = HistoryValue { source: from, server: from, status, value: Variant::Empty };
        self.append(&[(Arc::clone(node), value)])
    }
}

fn unsupported() -> StoreError {
    StoreError {
        status: StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED,
        message: "this history source is read-only".to_owned(),
    }
}
