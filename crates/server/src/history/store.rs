//! What a store of history has to do.

use super::event::StoredEvent;
use crate::account::HeapSize;
use core::fmt;
use std::sync::Arc;
use taktwerk_schema::{Annotation, HistoryUpdateType};
use taktwerk_types::{ByteString, DataValue, StatusCode, UtcTime, Variant};

/// A Variable's name in a store, such as `nsu=urn:plant;s=Boiler`.
pub type NodeKey = Arc<str>;

/// One value of a Variable's history. A Variable has one value per source time.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryValue {
    /// When the value was made: what history is ordered by.
    pub source: UtcTime,
    /// When the server knew it.
    pub server: UtcTime,
    /// Its quality.
    pub status: StatusCode,
    /// The value; empty if there is none.
    pub value: Variant,
}

impl HistoryValue {
    /// Whether the values, their qualities and times are the same. A NaN equals the same NaN.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        (self.source, self.server, self.status) == (other.source, other.server, other.status)
            && self.value.same_as(&other.value)
    }

    /// From what a client or variable says; `now` stands for a missing server time.
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

/// A span of time. Both ends belong to it.
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

    /// Whether a time belongs to it.
    #[must_use]
    pub fn contains(&self, time: UtcTime) -> bool {
        self.first <= time && time <= self.last
    }

    /// Whether no time belongs to it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first > self.last
    }
}

/// How much is read at once. Values can be large: their number alone does not bound what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// How many.
    pub count: usize,
    /// Bytes of heap after which no more are read: the last one may go beyond.
    pub bytes: usize,
}

impl ReadLimit {
    /// No limit.
    pub const NONE: Self = Self { count: usize::MAX, bytes: usize::MAX };

    /// So many, however large they are.
    #[must_use]
    pub const fn count(count: usize) -> Self {
        Self { count, bytes: usize::MAX }
    }

    /// Whether nothing more is to be read.
    #[must_use]
    pub const fn is_reached(self) -> bool {
        self.count == 0 || self.bytes == 0
    }

    /// Counts one that is given.
    pub fn give(&mut self, one: &impl HeapSize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(one.heap_size());
    }

    /// What is left behind those that were given.
    #[must_use]
    pub fn behind<'a, T: HeapSize + 'a>(mut self, given: impl IntoIterator<Item = &'a T>) -> Self {
        given.into_iter().for_each(|one| self.give(one));
        self
    }

    /// Those of an iterator that fit.
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

/// In which order values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The earliest first.
    Forward,
    /// The latest first.
    Backward,
}

/// What an update does with a value whose time has a value already, or has none (Part 11 §6.9.2, §6.9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Perform {
    /// Adds it; Bad_EntryExists if there is one.
    Insert,
    /// Replaces it; Bad_NoEntryExists if there is none.
    Replace,
    /// Adds or replaces it.
    Update,
    /// Removes it; Bad_NoEntryExists if there is none. Only annotations are removed in this way.
    Remove,
}

/// Who changed history, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modification {
    /// When.
    pub time: UtcTime,
    /// What was done.
    pub kind: HistoryUpdateType,
    /// Who; empty for Anonymous.
    pub user: Box<str>,
}

/// A value that an update inserted, replaced or deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifiedValue {
    /// What was replaced or deleted; for an insertion, what was inserted.
    pub value: HistoryValue,
    /// Who did it.
    pub by: Modification,
}

impl HeapSize for ModifiedValue {
    fn heap_size(&self) -> usize {
        self.value.heap_size().saturating_add(self.by.user.len())
    }
}

/// Where an event stands in a store: its time, and a number for those of the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventCursor {
    /// When it happened.
    pub time: UtcTime,
    /// Grows with each event that is added.
    pub number: i64,
}

/// Whether somebody who changes events sees one of them: at the node that they have named, with the roles that they have.
pub type Sees<'a> = &'a dyn Fn(&StoredEvent) -> bool;

/// Inserts or changes one event as [`HistoryStore::update_events`] has it: `known` is the one with its id. Gives what is to be
/// stored, if anything, and the status (Part 11 §6.9.4).
pub fn merge_event(
    perform: Perform,
    known: Option<StoredEvent>,
    event: StoredEvent,
    sees: Sees<'_>,
) -> (Option<StoredEvent>, StatusCode) {
    if known.as_ref().is_some_and(|known| !sees(known)) {
        // It belongs to somebody else. The EventId is taken all the same.
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

/// An event that was read, and where it stands.
impl HeapSize for (EventCursor, StoredEvent) {
    fn heap_size(&self) -> usize {
        self.1.heap_size()
    }
}

/// An annotation that was read, and the time that it is about.
impl HeapSize for (UtcTime, Annotation) {
    fn heap_size(&self) -> usize {
        self.1.message.heap_size().saturating_add(self.1.user_name.heap_size())
    }
}

/// A store could not do what it was asked to.
#[derive(Debug, Clone)]
pub struct StoreError {
    /// What a client is told.
    pub status: StatusCode,
    /// What the operator is told: what failed, why, and what to do.
    pub message: String,
}

impl StoreError {
    /// A failure of the database, the disk or the network.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_RESOURCE_UNAVAILABLE, message: message.into() }
    }

    /// Stored data that cannot be read any more.
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

/// Keeps values of Variables. All calls may block: the server makes them on worker threads.
///
/// A source of its own, such as a device that remembers its values, implements [`read`](Self::read) alone and is read
/// like every other store.
pub trait HistoryStore: Send + Sync + fmt::Debug {
    /// Adds values as they were recorded. A value whose time has one already replaces it, without a trace.
    ///
    /// # Errors
    /// None of them were stored.
    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        let _ = values;
        Err(unsupported())
    }

    /// Appends values of a span to `out`, in order, until there are no more or `limit` is reached.
    ///
    /// # Errors
    /// They could not be read.
    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError>;

    /// The values of a span that were modified, in order of their source times, behind the first `skip`, until there are no
    /// more or `limit` is reached.
    ///
    /// # Errors
    /// They could not be read.
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

    /// Inserts, replaces or updates values; gives a status for each. What was there is kept as modified.
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

    /// Deletes the values of a span and keeps them as modified; gives their number.
    ///
    /// # Errors
    /// Nothing was deleted.
    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        let _ = (node, span, by);
        Err(unsupported())
    }

    /// Forgets what was modified in a span; gives the number of values.
    ///
    /// # Errors
    /// Nothing was deleted.
    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        let _ = (node, span);
        Err(unsupported())
    }

    /// The annotations of a span in order of the times that they are about, until there are no more or `limit` is reached.
    ///
    /// # Errors
    /// They could not be read.
    fn annotations(
        &self,
        node: &NodeKey,
        span: Span,
        limit: ReadLimit,
    ) -> Result<Vec<(UtcTime, Annotation)>, StoreError> {
        let _ = (node, span, limit);
        Ok(Vec::new())
    }

    /// Inserts, replaces, updates or removes annotations; gives a status for each. An annotation is the same one if time,
    /// user and annotation time are the same.
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

    /// Adds events as they were raised, in that order.
    ///
    /// # Errors
    /// None of them were stored.
    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        let _ = (node, events);
        Err(unsupported())
    }

    /// Appends events of a span to `out`, until there are no more or `limit` is reached: ordered by time, those of the same
    /// time as they were added; only those behind `after`, if it is given.
    ///
    /// # Errors
    /// They could not be read.
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

    /// Inserts, replaces or updates events, which are told apart by their EventIds; gives a status for each. What replaces
    /// an event replaces the fields that it has. Only events that `sees` lets pass are changed, and only into such events:
    /// [`merge_event`] decides.
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

    /// Deletes events by their EventIds; gives a status for each. Those that `sees` does not let pass are not there.
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

    /// Deletes what is older than the store keeps; called now and then with the wall time.
    ///
    /// # Errors
    /// Nothing, or not everything, was deleted.
    fn maintain(&self, now: UtcTime) -> Result<(), StoreError> {
        let _ = now;
        Ok(())
    }

    /// The process that records ends in order: everything that was appended is to be safe.
    ///
    /// # Errors
    /// It may not be.
    fn finish(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Notes that values of a Variable were lost from a time on. Until its next value the history says Bad_DataLost.
    ///
    /// # Errors
    /// It was not stored.
    fn lost(&self, node: &NodeKey, from: UtcTime) -> Result<(), StoreError> {
        let status = StatusCode::BAD_DATA_LOST;
        let value = HistoryValue { source: from, server: from, status, value: Variant::Empty };
        self.append(&[(Arc::clone(node), value)])
    }
}

fn unsupported() -> StoreError {
    StoreError {
        status: StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED,
        message: "this source of history can only be read".to_owned(),
    }
}
