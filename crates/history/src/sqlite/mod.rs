//! History in a SQLite file.
//!
//! New values are written in batches: one row holds the values of all Variables that arrived together. So all appended values
//! survive a crash. Values also stay in memory until a Variable has enough of them for a chunk, an indexed row of compressed
//! values. Batches are deleted when all their values are in chunks.
//!
//! - `events`: events; `schema`: the tables; `chunks`: finding, reading and changing chunks; `edit`: updates, deletions and annotations;
//!   `retention`: what expires.

mod chunks;
mod edit;
mod events;
mod retention;
mod schema;
#[cfg(test)]
mod tests;

use crate::chunk;
use crate::lock::{lock, make_private};
use core::fmt;
use core::time::Duration;
use parking_lot::MutexGuard;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::yield_now;
use taktwerk_schema::Annotation;
use taktwerk_server::account::HeapSize;
use taktwerk_server::history::{
    AnnotationKey, EventCursor, HistoryStore, HistoryValue, Modification, ModifiedValue, NodeKey, Order,
    Perform, ReadLimit, Sees, Span, StoreCapabilities, StoreError, StoredEvent, merge_unstored, sort_values,
};
use taktwerk_types::{ByteString, StatusCode, UtcTime, Variant};

/// Values of a full chunk.
const CHUNK_LEN: usize = 1_024;
/// Bytes of the arrays and texts in a full chunk, in addition to the values themselves. A chunk is read as a whole.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of arrays and texts in memory at which all values are moved into chunks.
const PENDING_BYTES_MAX: usize = 64 << 20;
/// Bytes of arrays and texts in a row of a batch.
const BATCH_BYTES: usize = 8 << 20;
/// Values in memory at which all of them are moved into chunks.
const PENDING_MAX: usize = 4 << 20;
/// Batches after which all values are moved into chunks: ten minutes at two batches per second.
const BATCHES_MAX: i64 = 1_200;
/// From this fraction of both limits on, each batch moves some of the oldest values into chunks, to spread the work.
const EARLY: (u32, u32) = (3, 4);
/// Due values that each batch moves into chunks; twice the batch's length if that is more.
const PORTION_MIN: usize = 1 << 15;
/// Values per row. Encoding a row blocks other threads on the same processor, so rows are short.
const BATCH_LEN: usize = 4_096;
/// Shortens some chunks by up to so many values, so that Variables written together do not fill their chunks at the same time.
const STAGGER: usize = 128;
/// Idle connections that are kept for reading.
const READERS_MAX: usize = 4;
/// How long a statement waits for another program that uses the file. The recorder tries again, and readers wait for it.
const BUSY: Duration = Duration::from_secs(2);

/// How long values are kept. Zero means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Older values are deleted.
    pub age: Duration,
    /// Maximum size of the file in bytes; beyond it the oldest values are deleted.
    pub size: u64,
}

/// A store in a SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    /// The open file: its device and number.
    file: (u64, u64),
    inner: parking_lot::Mutex<Inner>,
    readers: Mutex<Vec<Connection>>,
    retention: Retention,
    /// Released after the connections.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is held"))]
    file_lock: taktwerk_files::FileLock,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The connection that writes, and its state.
struct Inner {
    connection: Connection,
    nodes: BTreeMap<NodeKey, u32>,
    /// Values that are not yet in chunks, by Variable.
    pending: BTreeMap<u32, Pending>,
    pending_len: usize,
    pending_bytes: usize,
    /// Variables with enough pending values for a chunk.
    full: VecDeque<u32>,
    /// The keys by number, as shared with the recorder, and the number found last. Values arrive in the same order again and
    /// again, and comparing two addresses is cheaper than comparing two texts.
    keys: Vec<Option<NodeKey>>,
    last_node: u32,
    /// Variables that the file marks as recorded.
    marked: BTreeSet<u32>,
    /// The numbers of the newest batch and of the oldest one that is kept.
    last_batch: i64,
    first_batch: i64,
}

#[derive(Default)]
struct Pending {
    values: Vec<HistoryValue>,
    /// Bytes of the arrays and texts.
    bytes: usize,
    first_batch: i64,
}

impl Pending {
    fn is_full(&self, node: u32) -> bool {
        self.values.len() >= full_len(node) || self.bytes >= CHUNK_BYTES
    }
}

/// The number of values at which a Variable's chunk is full.
const fn full_len(node: u32) -> usize {
    CHUNK_LEN - (node as usize).wrapping_mul(7) % STAGGER
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let metadata = path.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// A failure of the database.
fn failed(path: &Path, error: &rusqlite::Error) -> StoreError {
    schema::KIND.failed(path, error)
}

impl SqliteStore {
    /// The name of this kind of store.
    pub const KIND: &'static str = "sqlite";

    /// What clients can do with a store of this retention.
    #[must_use]
    pub const fn capabilities_of(retention: Retention) -> StoreCapabilities {
        StoreCapabilities { time_max: retention.age, ..StoreCapabilities::ALL }
    }

    /// Opens a file, or creates it. If the process that used it last was not shut down properly, the history of every Variable
    /// that it recorded has Bad_DataLost after its last value. If that is in the
    /// future, there is another mark now.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, is used by another process, or was created by a later version.
    pub fn open(path: impl Into<PathBuf>, retention: Retention) -> Result<Self, StoreError> {
        let path = path.into();
        let error = |error: rusqlite::Error| schema::KIND.not_opened(&path, &error);
        make_private(&path)?;
        let connection = Connection::open(&path).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        schema::KIND.prepare(&connection, &path)?;
        let file_lock = lock(&path)?;
        connection.execute_batch(events::TABLE).map_err(error)?;
        let mut inner = Inner {
            connection,
            nodes: BTreeMap::new(),
            pending: BTreeMap::new(),
            pending_len: 0,
            pending_bytes: 0,
            full: VecDeque::new(),
            keys: Vec::new(),
            last_node: 0,
            marked: BTreeSet::new(),
            last_batch: 0,
            first_batch: 1,
        };
        inner.load(&path)?;
        let file = identity(&path)
            .map_err(|error| StoreError::unavailable(format!("cannot use {}: {error}", path.display())))?;
        Ok(Self {
            path,
            file,
            inner: parking_lot::Mutex::new(inner),
            readers: Mutex::default(),
            retention,
            file_lock,
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves all values into chunks and records that none are missing: the end of a proper shutdown.
    ///
    /// # Errors
    /// The database cannot be written. All appended values are stored nevertheless.
    pub fn close(&self) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let all: Vec<u32> = inner.pending.keys().copied().collect();
        inner.seal(&all).map_err(|error| failed(&self.path, &error))?;
        inner.marked.clear();
        inner.connection.execute("UPDATE node SET recorded = 0", []).map_err(|error| self.failed(&error))?;
        Ok(())
    }

    /// Bytes in use within the file.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn size(&self) -> Result<u64, StoreError> {
        size(&self.lock().connection).map_err(|error| self.failed(&error))
    }

    /// Checks that the open file still has its name. SQLite does not notice that a file was deleted, and everything that it wrote
    /// then would be lost.
    fn check_name(&self) -> Result<(), StoreError> {
        if identity(&self.path).is_ok_and(|found| found == self.file) {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "{} was deleted or replaced while the server uses it. Move the old file back, or restart the server for a new one",
            self.path.display()
        )))
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        failed(&self.path, error)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Runs `run` in a transaction.
    fn changing<T>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let mut inner = self.lock();
        let change = || {
            let transaction = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = run(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        let result = change();
        MutexGuard::unlock_fair(inner);
        result.map_err(|error| self.failed(&error))
    }

    /// Runs `run` with a separate connection, so that readers and the writer do not wait for each other.
    fn reading<T>(
        &self,
        run: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => {
                let flags =
                    rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection =
                    Connection::open_with_flags(&self.path, flags).map_err(|error| self.failed(&error))?;
                connection.busy_timeout(BUSY).map_err(|error| self.failed(&error))?;
                connection
            }
        };
        let result = run(&connection).map_err(|error| self.failed(&error));
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if result.is_ok() && readers.len() < READERS_MAX {
            readers.push(connection);
        }
        result
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "history: values stay in batches");
        }
    }
}

/// Bytes in use.
fn size(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let pragma = |name: &str| pragma(name).map(|value| u64::try_from(value).unwrap_or(0));
    Ok(pragma("page_count")?.saturating_sub(pragma("freelist_count")?) * pragma("page_size")?)
}

impl Inner {
    /// Reads the Variables and the values that are not in chunks, and marks gaps after an improper shutdown.
    fn load(&mut self, path: &Path) -> Result<(), StoreError> {
        let error = |error: rusqlite::Error| schema::KIND.not_opened(path, &error);
        let mut recorded: BTreeMap<u32, i64> = BTreeMap::new();
        {
            let mut nodes = self
                .connection
                .prepare("SELECT id, key, sealed, recorded, newest FROM node")
                .map_err(error)?;
            let mut rows = nodes.query([]).map_err(error)?;
            let mut sealed: BTreeMap<u32, i64> = BTreeMap::new();
            while let Some(row) = rows.next().map_err(error)? {
                let id: u32 = row.get(0).map_err(error)?;
                let key: String = row.get(1).map_err(error)?;
                sealed.insert(id, row.get(2).map_err(error)?);
                if row.get::<_, bool>(3).map_err(error)? {
                    recorded.insert(id, row.get(4).map_err(error)?);
                }
                self.nodes.insert(key.into(), id);
            }
            let mut batches =
                self.connection.prepare("SELECT id, data FROM batch ORDER BY id").map_err(error)?;
            let mut rows = batches.query([]).map_err(error)?;
            while let Some(row) = rows.next().map_err(error)? {
                let (id, data): (i64, Vec<u8>) = (row.get(0).map_err(error)?, row.get(1).map_err(error)?);
                if self.last_batch == 0 {
                    self.first_batch = id;
                }
                self.last_batch = id;
                let values = match chunk::decode_batch(&data) {
                    Ok(values) => values,
                    Err(error) => {
                        tracing::error!(batch = id, %error, "history: a batch of values is lost");
                        continue;
                    }
                };
                for (node, value) in values {
                    if let Some(newest) = recorded.get_mut(&node) {
                        *newest = (*newest).max(value.source.ticks());
                    }
                    if sealed.get(&node).is_some_and(|sealed| *sealed >= id) {
                        continue;
                    }
                    let pending = self.pending.entry(node).or_default();
                    if pending.values.is_empty() {
                        pending.first_batch = id;
                    }
                    let bytes = value.heap_size();
                    pending.values.push(value);
                    pending.bytes += bytes;
                    self.pending_len += 1;
                    self.pending_bytes += bytes;
                }
            }
            if self.last_batch == 0 {
                let known = self
                    .connection
                    .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'batch'", [], |row| row.get(0))
                    .optional();
                self.last_batch = known.map_err(error)?.unwrap_or(0);
                self.first_batch = self.last_batch + 1;
            }
        }
        let is_full = |(node, pending): &(&u32, &Pending)| pending.is_full(**node);
        self.full = self.pending.iter().filter(is_full).map(|(node, _)| *node).collect();
        if recorded.is_empty() {
            return Ok(());
        }
        tracing::warn!(
            variables = recorded.len(),
            "history: the process that recorded last was not shut down properly; up to its last second of values is missing \
             and marked Bad_DataLost"
        );
        let now = crate::now().ticks();
        let lost: Vec<(u32, HistoryValue)> = recorded
            .into_iter()
            .filter(|(_, newest)| *newest > i64::MIN)
            .flat_map(|(node, newest)| crate::gap(newest, now).map(move |time| (node, lost(time))))
            .collect();
        let values: Vec<(u32, &HistoryValue)> = lost.iter().map(|(node, value)| (*node, value)).collect();
        self.append(&values, &[]).map_err(error)?;
        self.marked.clear();
        self.connection.execute("UPDATE node SET recorded = 0", []).map_err(error)?;
        Ok(())
    }

    /// The number of a known Variable.
    fn number(&mut self, key: &NodeKey) -> Option<u32> {
        let next = if (self.last_node as usize) < self.keys.len() { self.last_node + 1 } else { 1 };
        let expected = self.keys.get(next as usize - 1).and_then(Option::as_ref);
        let number = if expected.is_some_and(|expected| Arc::ptr_eq(expected, key)) {
            next
        } else {
            let number = *self.nodes.get(key)?;
            let at = (number as usize).saturating_sub(1);
            if self.keys.len() <= at {
                self.keys.resize(at + 1, None);
            }
            if let Some(known) = self.keys.get_mut(at) {
                *known = Some(Arc::clone(key));
            }
            number
        };
        self.last_node = number;
        Some(number)
    }

    /// Stores values of known and of `new` Variables: all of them or none.
    fn append(
        &mut self,
        values: &[(u32, &HistoryValue)],
        new: &[(u32, &str)],
    ) -> Result<(), rusqlite::Error> {
        let first = self.last_batch + 1;
        let rows = values.chunks(BATCH_LEN);
        let rows = rows.flat_map(|row| chunks::small(row, |(_, value)| value.heap_size(), BATCH_BYTES));
        let batches = || (first..).zip(rows.clone());
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (id, key) in new {
            transaction.execute("INSERT INTO node (id, key) VALUES (?, ?)", params![id, key])?;
        }
        let unmarked: BTreeSet<u32> =
            values.iter().map(|(node, _)| *node).filter(|node| !self.marked.contains(node)).collect();
        {
            let mut mark =
                transaction.prepare_cached("UPDATE node SET recorded = 1 WHERE id = ? AND recorded = 0")?;
            for node in &unmarked {
                mark.execute([node])?;
            }
            let mut insert = transaction.prepare_cached("INSERT INTO batch (id, data) VALUES (?, ?)")?;
            for (id, batch) in batches() {
                insert.execute(params![id, chunk::encode_batch(batch)])?;
                yield_now();
            }
        }
        transaction.commit()?;
        yield_now();
        self.marked.extend(unmarked);
        for (id, batch) in batches() {
            self.hold(id, batch);
            yield_now();
        }
        let due = self.due(values.len());
        // The values are stored by now. If this fails, a later batch tries again.
        if !due.is_empty()
            && let Err(error) = self.seal(&due)
        {
            tracing::warn!(%error, "history: values cannot be put into chunks yet");
            self.full.extend(due);
        }
        Ok(())
    }

    /// Holds the values of a batch in memory until they are moved into chunks.
    fn hold(&mut self, id: i64, values: &[(u32, &HistoryValue)]) {
        self.last_batch = id;
        let mut full = Vec::new();
        for (node, value) in values {
            let pending = self.pending.entry(*node).or_default();
            if pending.values.is_empty() {
                pending.first_batch = id;
            }
            let bytes = value.heap_size();
            let was_full = pending.is_full(*node);
            pending.values.push((*value).clone());
            pending.bytes += bytes;
            self.pending_bytes += bytes;
            if !was_full && pending.is_full(*node) {
                full.push(*node);
            }
        }
        self.full.extend(full);
        self.pending_len += values.len();
    }

    /// The Variables whose values are moved into chunks after a batch of `added` values.
    fn due(&mut self, added: usize) -> Vec<u32> {
        let batches = self.last_batch - self.first_batch;
        let is_much = self.pending_len > PENDING_MAX || self.pending_bytes > PENDING_BYTES_MAX;
        if is_much || batches >= BATCHES_MAX {
            let oldest = self.last_batch - BATCHES_MAX / 2;
            let is_due = |pending: &Pending| is_much || pending.first_batch <= oldest;
            return self.pending.iter().filter(|(_, one)| is_due(one)).map(|(node, _)| *node).collect();
        }
        let mut portion = (2 * added).max(PORTION_MIN);
        let mut due = Vec::new();
        let mut take = |node: u32, len: usize| {
            let has_room = portion > 0;
            if has_room && len > 0 {
                due.push(node);
                portion = portion.saturating_sub(len);
            }
            has_room
        };
        while let Some(node) = self.full.front().copied() {
            // Its values may be in chunks already, because they were old.
            let full = self.pending.get(&node).filter(|pending| pending.is_full(node));
            if full.is_some_and(|pending| !take(node, pending.values.len())) {
                break;
            }
            self.full.pop_front();
        }
        let (part, whole) = EARLY;
        if self.pending_len > PENDING_MAX / whole as usize * part as usize
            || batches > BATCHES_MAX / i64::from(whole) * i64::from(part)
        {
            let mut oldest: Vec<(i64, u32, usize)> =
                self.pending.iter().map(|(node, one)| (one.first_batch, *node, one.values.len())).collect();
            oldest.sort_unstable();
            for (_, node, len) in oldest {
                if !take(node, len) {
                    break;
                }
            }
        }
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Moves the pending values of some Variables, sorted by number, into chunks, and deletes batches that are no longer needed.
    fn seal(&mut self, nodes: &[u32]) -> Result<(), rusqlite::Error> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for node in nodes {
            if let Some(pending) = self.pending.get(node) {
                chunks::add(&transaction, *node, pending.values.clone())?;
                note_sealed(&transaction, *node, self.last_batch, &pending.values)?;
                yield_now();
            }
        }
        let needed = self.pending.iter().filter(|(node, _)| nodes.binary_search(node).is_err());
        let first = needed.map(|(_, pending)| pending.first_batch).min().unwrap_or(self.last_batch + 1);
        if first > self.first_batch {
            transaction.execute("DELETE FROM batch WHERE id < ?", [first])?;
        }
        transaction.commit()?;
        self.first_batch = first;
        for node in nodes {
            self.forget(*node);
        }
        Ok(())
    }

    /// Drops the pending values of a Variable, which are in chunks now.
    fn forget(&mut self, node: u32) {
        if let Some(pending) = self.pending.remove(&node) {
            self.pending_len -= pending.values.len();
            self.pending_bytes -= pending.bytes;
        }
    }
}

/// Records that the values of a Variable up to a batch are in chunks.
fn note_sealed(
    transaction: &Transaction<'_>,
    node: u32,
    batch: i64,
    values: &[HistoryValue],
) -> Result<(), rusqlite::Error> {
    let newest = values.iter().map(|value| value.source.ticks()).max().unwrap_or(i64::MIN);
    let mut note =
        transaction.prepare_cached("UPDATE node SET sealed = ?, newest = max(newest, ?) WHERE id = ?")?;
    note.execute(params![batch, newest, node])?;
    Ok(())
}

/// The mark for values that are missing from this time on.
fn lost(time: UtcTime) -> HistoryValue {
    HistoryValue { source: time, server: time, status: StatusCode::BAD_DATA_LOST, value: Variant::Empty }
}

impl HistoryStore for SqliteStore {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn capabilities(&self) -> StoreCapabilities {
        Self::capabilities_of(self.retention)
    }

    fn append(&self, values: &[(NodeKey, HistoryValue)]) -> Result<(), StoreError> {
        if values.is_empty() {
            return Ok(());
        }
        self.check_name()?;
        let mut inner = self.lock();
        let mut new: BTreeMap<&str, u32> = BTreeMap::new();
        let next = u32::try_from(inner.nodes.len()).unwrap_or(u32::MAX) + 1;
        let mut numbered = Vec::with_capacity(values.len());
        for (key, value) in values {
            let node = match inner.number(key) {
                Some(node) => node,
                None => {
                    let next = next + u32::try_from(new.len()).unwrap_or(u32::MAX - next);
                    *new.entry(&**key).or_insert(next)
                }
            };
            numbered.push((node, value));
        }
        let new: Vec<(u32, &str)> = new.into_iter().map(|(key, id)| (id, key)).collect();
        inner.append(&numbered, &new).map_err(|error| self.failed(&error))?;
        for (id, key) in new {
            inner.nodes.insert(key.into(), id);
        }
        Ok(())
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        // Read the memory first: a value that moves into a chunk in between is found twice, which is harmless, and never missed.
        let (id, mut pending) = {
            let inner = self.lock();
            let Some(id) = inner.nodes.get(node).copied() else { return Ok(()) };
            let pending = inner.pending.get(&id).map(|pending| pending.values.as_slice()).unwrap_or_default();
            let inside = pending.iter().filter(|value| span.contains(value.source));
            (id, inside.cloned().collect::<Vec<_>>())
        };
        sort_values(&mut pending);
        if order == Order::Backward {
            pending.reverse();
        }
        let more = |after: Option<&HistoryValue>, limit: ReadLimit, found: &mut Vec<HistoryValue>| {
            let span = after.map_or(span, |after| span.behind(after.source, order));
            self.reading(|connection| chunks::read(connection, id, span, order, limit, found))
        };
        merge_unstored(pending, order, limit, |value| value.source, out, more)
    }

    fn append_events(&self, node: &NodeKey, events: &[StoredEvent]) -> Result<(), StoreError> {
        self.check_name()?;
        self.changing(|transaction| events::append(transaction, node, events))
    }

    fn read_events(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<EventCursor>,
        limit: ReadLimit,
        out: &mut Vec<(EventCursor, StoredEvent)>,
    ) -> Result<(), StoreError> {
        out.extend(self.reading(|connection| events::read(connection, node, span, order, after, limit))?);
        Ok(())
    }

    fn update_events(
        &self,
        node: &NodeKey,
        perform: Perform,
        events: Vec<StoredEvent>,
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.changing(|transaction| events::update(transaction, node, perform, events, sees))
    }

    fn delete_events(
        &self,
        node: &NodeKey,
        ids: &[ByteString],
        sees: Sees<'_>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.changing(|transaction| events::remove(transaction, node, ids, sees))
    }

    fn read_modified(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        skip: usize,
        limit: ReadLimit,
    ) -> Result<Vec<ModifiedValue>, StoreError> {
        let Some(id) = self.lock().nodes.get(node).copied() else { return Ok(Vec::new()) };
        self.reading(|connection| edit::read_modified(connection, id, span, order, skip, limit))
    }

    fn update(
        &self,
        node: &NodeKey,
        perform: Perform,
        values: Vec<HistoryValue>,
        by: &Modification,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.edit(node, |edit| edit.update(perform, values, by))
    }

    fn delete(&self, node: &NodeKey, span: Span, by: &Modification) -> Result<u64, StoreError> {
        let (mut deleted, mut left) = (0, Some(span));
        while let Some(span) = left {
            let (count, rest) = self.edit(node, |edit| edit.delete(span, by))?;
            (deleted, left) = (deleted + count, rest);
        }
        Ok(deleted)
    }

    fn delete_at(
        &self,
        node: &NodeKey,
        times: &[UtcTime],
        by: &Modification,
    ) -> Result<Vec<bool>, StoreError> {
        self.edit(node, |edit| edit.delete_at(times, by))
    }

    fn delete_modified(&self, node: &NodeKey, span: Span) -> Result<u64, StoreError> {
        let (mut deleted, mut is_more) = (0, true);
        while is_more {
            let count = self.edit(node, |edit| edit.delete_modified(span))?;
            deleted += count as u64;
            is_more = count > 0;
        }
        Ok(deleted)
    }

    fn annotations(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        after: Option<&AnnotationKey>,
        limit: ReadLimit,
    ) -> Result<Vec<(UtcTime, Annotation)>, StoreError> {
        let Some(id) = self.lock().nodes.get(node).copied() else { return Ok(Vec::new()) };
        self.reading(|connection| edit::annotations(connection, id, span, order, after, limit))
    }

    fn annotate(
        &self,
        node: &NodeKey,
        perform: Perform,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, StoreError> {
        self.edit(node, |edit| edit.annotate(perform, annotations))
    }

    fn maintain(&self, now: UtcTime) -> Result<(), StoreError> {
        let deleted = self.retain(now)?;
        tracing::debug!(deleted, "history: values beyond the retention are deleted");
        Ok(())
    }

    fn finish(&self) -> Result<(), StoreError> {
        self.close()
    }
}

impl SqliteStore {
    /// Changes the history of a Variable in one transaction. Those that wait are next: a client may change many parts.
    fn edit<T>(
        &self,
        node: &NodeKey,
        run: impl FnOnce(&edit::Edit<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let mut inner = self.lock();
        let result = inner.edit(node, run);
        MutexGuard::unlock_fair(inner);
        result.map_err(|error| self.failed(&error))
    }
}

impl Inner {
    fn edit<T>(
        &mut self,
        node: &NodeKey,
        run: impl FnOnce(&edit::Edit<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        let known = self.nodes.get(node).copied();
        let id = known.unwrap_or_else(|| u32::try_from(self.nodes.len()).unwrap_or(u32::MAX) + 1);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if known.is_none() {
            transaction.execute("INSERT INTO node (id, key) VALUES (?, ?)", params![id, &**node])?;
        }
        if let Some(pending) = self.pending.get(&id) {
            chunks::add(&transaction, id, pending.values.clone())?;
            note_sealed(&transaction, id, self.last_batch, &pending.values)?;
        }
        let result = run(&edit::Edit { transaction: &transaction, node: id })?;
        transaction.commit()?;
        if known.is_none() {
            self.nodes.insert(Arc::clone(node), id);
        }
        self.forget(id);
        Ok(result)
    }
}
