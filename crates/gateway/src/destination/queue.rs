//! The queue of a destination on disk: blocks of records in an SQLite file.
//!
//! A record keeps its number. It stays in the file from acceptance until the destination has confirmed it. So a killed process
//! loses no accepted record, but may send the last batch again.

use super::Batch;
use super::block::{self, Block, Record};
use super::parked::{self, Parked};
use core::time::Duration;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taktwerk_crypto::Entropy;
use taktwerk_types::UtcTime;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS block (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
";

/// A batch ends with the block that exceeds this many bytes.
const BATCH_BYTES: usize = 4 << 20;
/// Free pages released to the system at once.
const VACUUM_PAGES: u32 = 2000;
/// Most records that a power failure can remove from a queue. The destination may have received them already.
const LOST_MAX: i64 = u32::MAX as i64;

/// Why a queue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Another process uses the file.
    #[error("{}: another process uses this queue; give each destination and gateway its own queue", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be used.
    #[error("{}: {reason}; set `queue` to a file in a writable folder", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Reading or writing failed.
    #[error("the queue cannot be read or written: {0}")]
    Store(#[from] rusqlite::Error),
}

/// What to do with a new record if the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Drop the oldest records.
    DropOldest,
    /// Drop the new record.
    DropNewest,
}

/// Capacity and durability of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Maximum size of the records, in bytes.
    pub bytes_max: u64,
    /// Maximum age of a record.
    pub age_max: Option<Duration>,
    /// What to do at `bytes_max`.
    pub when_full: WhenFull,
    /// Maximum number of parked records. Beyond it, the queue waits for them.
    pub parked_max: u64,
    /// Whether accepted records also survive a power failure.
    pub sync: bool,
}

/// What happened to records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Records newly added to the queue.
    pub accepted: u64,
    /// Records dropped because the queue is full.
    pub evicted: u64,
    /// Records dropped because they expired.
    pub expired: u64,
}

/// The content of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Records.
    pub records: u64,
    /// Number of parked records among them.
    pub parked: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// When the oldest record was received.
    pub oldest: Option<UtcTime>,
}

struct Store {
    connection: Connection,
    next: u64,
    /// The last confirmed record. The rest of its block is still queued.
    confirmed: u64,
    /// Number of records in blocks that are still queued.
    records: u64,
    /// Size of all blocks in bytes.
    bytes: u64,
    parked: Parked,
    /// Expired records that are not told in an [`Outcome`] yet.
    expired: u64,
}

impl Store {
    /// Changes parked records in a transaction.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&rusqlite::Transaction<'_>, &mut Parked) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        let result = self.connection.transaction().and_then(|transaction| {
            let result = change(&transaction, &mut self.parked)?;
            transaction.commit()?;
            Ok(result)
        });
        if result.is_err() {
            self.parked = Parked::load(&self.connection)?;
        }
        result
    }
}

/// The number of unconfirmed records among `count` records that begin with `first`.
fn waiting(first: Option<i64>, count: i64, confirmed: u64) -> u64 {
    let done = first.map_or(0, |first| confirmed.saturating_add(1).saturating_sub(first as u64));
    (count as u64).saturating_sub(done)
}

type Sum = (Option<i64>, i64, i64);

/// Reads the first record, the number of records, and the size of blocks.
fn sum(row: &rusqlite::Row<'_>) -> rusqlite::Result<Sum> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

const SUM: &str = "SELECT min(first), coalesce(sum(count), 0), coalesce(sum(length(body)), 0) FROM block";

/// The path of a file without links, if it exists.
fn place(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A queue on disk. Its calls block on the disk.
pub struct Queue {
    id: String,
    path: PathBuf,
    limits: QueueLimits,
    /// Shared with the queue of the destination before it was changed, until that one has ended.
    store: Arc<Mutex<Store>>,
}

impl core::fmt::Debug for Queue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Queue").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Queue {
    /// Opens a queue, or creates it.
    ///
    /// # Errors
    /// The file belongs to another program, or cannot be used.
    pub fn open(path: &Path, limits: QueueLimits) -> Result<Self, QueueError> {
        let explain = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                QueueError::Locked { path: path.to_owned() }
            }
            _ => QueueError::Open { path: path.to_owned(), reason: error.to_string() },
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| QueueError::Open {
                path: path.to_owned(),
                reason: crate::fault::plain(&error),
            })?;
        }
        // Like the history: the values are the same. SQLite gives its auxiliary files the same permissions.
        taktwerk_files::create_private(path).map_err(|error| QueueError::Open {
            path: path.to_owned(),
            reason: crate::fault::plain(&error),
        })?;
        Self::load(path, limits).map_err(explain)
    }

    fn load(path: &Path, limits: QueueLimits) -> Result<Self, rusqlite::Error> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_millis(500))?;
        // Before the first table: free pages can then be released without rewriting the file.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        // A single process: no shared memory file is needed.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(parked::SCHEMA)?;
        let meta = "SELECT value FROM meta WHERE key = ?1";
        let id: Option<String> = connection.query_row(meta, ["id"], |row| row.get(0)).optional()?;
        let id = match id {
            Some(id) => id,
            None => {
                let mut random = [0; 8];
                taktwerk_net::entropy::OsEntropy.fill(&mut random);
                let id = format!("{:016x}", u64::from_be_bytes(random));
                connection.execute("INSERT INTO meta VALUES ('id', ?1)", [&id])?;
                id
            }
        };
        let mut next: Option<i64> = connection.query_row(meta, ["next"], |row| row.get(0)).optional()?;
        if !limits.sync {
            // A power failure may have removed records that the destination has received. It would mistake new records with the
            // same numbers for those, so skip these numbers. The skip is on disk before the first new number is used.
            next = next.map(|next| (next | LOST_MAX).saturating_add(1));
            let sql = "INSERT OR REPLACE INTO meta VALUES ('next', ?1)";
            connection.execute(sql, [next.unwrap_or(1)])?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
        }
        let confirmed: Option<i64> =
            connection.query_row(meta, ["confirmed"], |row| row.get(0)).optional()?;
        let confirmed = confirmed.unwrap_or(0) as u64;
        let (first, records, bytes) = connection.query_row(SUM, [], sum)?;
        let parked = Parked::load(&connection)?;
        let store = Store {
            connection,
            parked,
            next: next.unwrap_or(1) as u64,
            confirmed,
            records: waiting(first, records, confirmed),
            bytes: bytes as u64,
            expired: 0,
        };
        Ok(Self { id, path: place(path), limits, store: Arc::new(Mutex::new(store)) })
    }

    /// The same queue with other limits. Its file stays open, and its records stay in it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn with_limits(&self, limits: QueueLimits) -> Result<Self, QueueError> {
        let synchronous = if limits.sync { "FULL" } else { "NORMAL" };
        self.lock().connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(Self { id: self.id.clone(), path: self.path.clone(), limits, store: Arc::clone(&self.store) })
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is in a file, however the path is written.
    #[must_use]
    pub fn is_in(&self, path: &Path) -> bool {
        self.path == place(path)
    }

    /// Runs SQL in the file, such as to make it fail.
    #[cfg(test)]
    pub(crate) fn execute(&self, sql: &str) {
        self.lock().connection.execute_batch(sql).unwrap();
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds blocks. When this returns, they survive the end of the process.
    ///
    /// # Errors
    /// The disk is full or fails; no block is accepted then, and the queue keeps what it has.
    pub fn append(&self, blocks: &[Block], now: UtcTime) -> Result<Outcome, QueueError> {
        let mut guard = self.lock();
        let store = &mut *guard;
        let mut outcome = Outcome::default();
        let oldest_time =
            self.limits.age_max.map(|age| now.ticks().saturating_sub((age.as_nanos() / 100) as i64));
        if let Some(limit) = oldest_time
            && store.parked.records() > 0
        {
            store.expired += store.change(|transaction, parked| parked.expire(transaction, limit))?;
        }
        let (mut next, mut records, mut bytes) = (store.next, store.records, store.bytes);
        let confirmed = store.confirmed;
        let parked_bytes = store.parked.bytes();
        let transaction = store.connection.transaction()?;
        {
            let sql = "SELECT first, count, length(body) FROM block ORDER BY first LIMIT 1";
            let mut oldest = transaction.prepare_cached(sql)?;
            let mut remove = transaction.prepare_cached("DELETE FROM block WHERE first = ?1")?;
            let mut insert = transaction.prepare_cached("INSERT INTO block VALUES (?1, ?2, ?3, ?4)")?;
            while let Some(limit) = oldest_time {
                let sql = "SELECT first, count, length(body), time FROM block ORDER BY first LIMIT 1";
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
                let found = transaction.prepare_cached(sql)?.query_row([], row).optional()?;
                let found: Option<(i64, i64, i64, i64)> = found.filter(|(.., time)| *time < limit);
                let Some((first, old, len, _)) = found else { break };
                remove.execute([first])?;
                let old = waiting(Some(first), old, confirmed);
                outcome.expired += old;
                records -= old.min(records);
                bytes -= (len as u64).min(bytes);
            }
            for block in blocks {
                let count = u64::from(block.count);
                let len = block.body.len() as u64;
                while bytes + parked_bytes + len > self.limits.bytes_max
                    && self.limits.when_full == WhenFull::DropOldest
                {
                    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                    let found: Option<(i64, i64, i64)> = oldest.query_row([], row).optional()?;
                    let Some((first, old, old_len)) = found else { break };
                    remove.execute([first])?;
                    let old = waiting(Some(first), old, confirmed);
                    outcome.evicted += old;
                    records -= old.min(records);
                    bytes -= (old_len as u64).min(bytes);
                }
                if bytes + parked_bytes + len > self.limits.bytes_max {
                    outcome.evicted += count;
                    continue;
                }
                insert.execute(params![next as i64, block.count, block.time.ticks(), block.body])?;
                next += count;
                records += count;
                bytes += len;
                outcome.accepted += count;
            }
            let sql = "INSERT OR REPLACE INTO meta VALUES ('next', ?1)";
            transaction.prepare_cached(sql)?.execute([next as i64])?;
        }
        transaction.commit()?;
        (store.next, store.records, store.bytes) = (next, records, bytes);
        outcome.expired += core::mem::take(&mut store.expired);
        Ok(outcome)
    }

    /// The oldest records, at most so many; `None` if there are none. Unreadable blocks are removed; the second number counts
    /// their records.
    ///
    /// # Errors
    /// The disk fails.
    pub fn front(&self, records_max: usize) -> Result<(Option<Batch>, u64), QueueError> {
        let mut guard = self.lock();
        let confirmed = guard.confirmed;
        let mut records = Vec::new();
        let mut is_last = true;
        let mut damaged: Vec<(i64, u64, u64)> = Vec::new();
        {
            let sql = "SELECT first, count, body FROM block ORDER BY first";
            let mut blocks = guard.connection.prepare_cached(sql)?;
            let mut rows = blocks.query([])?;
            let mut bytes = 0;
            while let Some(row) = rows.next()? {
                let (first, count): (i64, i64) = (row.get(0)?, row.get(1)?);
                let body = row.get_ref(2)?.as_blob().unwrap_or_default();
                let is_full = records.len() >= records_max || bytes + body.len() > BATCH_BYTES;
                if is_full && !records.is_empty() {
                    is_last = false;
                    break;
                }
                bytes += body.len();
                match block::decode(body, first as u64) {
                    Ok(found) if found.len() as i64 == count => {
                        let mut waiting = found.into_iter().filter(|record| record.number > confirmed);
                        records.extend(waiting.by_ref().take(records_max - records.len()));
                        is_last = waiting.next().is_none();
                    }
                    _ => damaged.push((first, waiting(Some(first), count, confirmed), body.len() as u64)),
                }
            }
        }
        let mut lost = 0;
        for (first, count, len) in damaged {
            guard.connection.execute("DELETE FROM block WHERE first = ?1", [first])?;
            guard.records -= count.min(guard.records);
            guard.bytes -= len.min(guard.bytes);
            lost += count;
        }
        let batch = (!records.is_empty()).then(|| Batch {
            queue: self.id.clone(),
            records,
            is_last,
            next: guard.next,
            is_parked: false,
        });
        Ok((batch, lost))
    }

    /// Removes records that the destination has confirmed: all up to a number, except some that are parked.
    ///
    /// # Errors
    /// The disk fails.
    pub fn confirm(&self, through: u64, parked: &[Record]) -> Result<(), QueueError> {
        let mut guard = self.lock();
        let store = &mut *guard;
        let confirmed = store.confirmed;
        // The last batch of a destination before it was changed may be confirmed late, after the changed one has sent it, too. Its
        // records are then confirmed or parked already, or no longer parked.
        let parked = parked.iter().filter(|record| record.number > confirmed);
        let through = i64::try_from(through.max(confirmed)).unwrap_or(i64::MAX);
        let (removed, bytes) = store.change(|transaction, all| {
            // The first condition uses the key, so that a long backlog is not scanned for each batch.
            let whole = "first <= ?1 AND first + count - 1 <= ?1";
            let (first, records, bytes) =
                transaction.prepare_cached(&format!("{SUM} WHERE {whole}"))?.query_row([through], sum)?;
            let removed = waiting(first, records, confirmed);
            transaction.prepare_cached(&format!("DELETE FROM block WHERE {whole}"))?.execute([through])?;
            // The rest of a partly confirmed block stays.
            let rest = "SELECT first FROM block WHERE first <= ?1";
            let rest: Option<i64> =
                transaction.prepare_cached(rest)?.query_row([through], |row| row.get(0)).optional()?;
            let part = rest.map_or(0, |first| waiting(Some(first), through - first + 1, confirmed));
            let sql = "INSERT OR REPLACE INTO meta VALUES ('confirmed', ?1)";
            transaction.prepare_cached(sql)?.execute([through])?;
            all.insert(transaction, parked)?;
            Ok((removed + part, bytes))
        })?;
        store.confirmed = store.confirmed.max(through as u64);
        store.records -= removed.min(store.records);
        store.bytes -= (bytes as u64).min(store.bytes);
        if store.records == 0 {
            // Release the space of a sent backlog in bounded portions. If it fails, the space is released later; the records are
            // removed in any case.
            let _ = store.connection.execute_batch(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"));
        }
        Ok(())
    }

    /// Splits off the records of a batch that must stay behind parked ones of their tags.
    #[must_use]
    pub fn split(&self, batch: Batch) -> (Batch, Vec<Record>) {
        let store = self.lock();
        if store.parked.records() == 0 {
            return (batch, Vec::new());
        }
        let (held, records) = batch.records.into_iter().partition(|record| store.parked.has(&record.tag));
        (Batch { records, ..batch }, held)
    }

    /// Whether any records are parked.
    #[must_use]
    pub fn has_parked(&self) -> bool {
        self.lock().parked.records() > 0
    }

    /// Whether so many records are parked that the queue waits for them.
    #[must_use]
    pub fn is_parking_full(&self) -> bool {
        let store = self.lock();
        let parked = &store.parked;
        parked.records() >= self.limits.parked_max.max(1) || parked.bytes() >= self.limits.bytes_max / 4
    }

    /// The oldest parked records of each tag, at most so many; `None` if there are none. Unreadable ones are removed; the second
    /// number counts them.
    ///
    /// # Errors
    /// The disk fails.
    pub fn front_parked(&self, records_max: usize) -> Result<(Option<Batch>, u64), QueueError> {
        let mut store = self.lock();
        if store.parked.records() == 0 {
            return Ok((None, 0));
        }
        let (records, damaged) = store.parked.front(&store.connection, records_max)?;
        let lost = damaged.len() as u64;
        if !damaged.is_empty() {
            store.change(|transaction, all| {
                damaged.iter().try_for_each(|number| all.remove(transaction, *number).map(drop))
            })?;
        }
        let batch = (!records.is_empty()).then(|| Batch {
            queue: self.id.clone(),
            records,
            is_last: false,
            next: store.next,
            is_parked: true,
        });
        Ok((batch, lost))
    }

    /// Removes the parked records of a batch that the destination has confirmed, except some.
    ///
    /// # Errors
    /// The disk fails.
    pub fn confirm_parked(&self, batch: &Batch, except: &HashSet<u64>) -> Result<(), QueueError> {
        let mut store = self.lock();
        let numbers = batch.records.iter().map(|record| record.number);
        store.change(|transaction, all| {
            let mut done = numbers.filter(|number| !except.contains(number));
            done.try_for_each(|number| all.remove(transaction, number).map(drop))
        })?;
        store.parked.turn(&batch.records);
        Ok(())
    }

    /// The content of the queue.
    ///
    /// # Errors
    /// The disk fails.
    pub fn size(&self) -> Result<Size, QueueError> {
        let store = self.lock();
        let sql = "SELECT time FROM block ORDER BY first LIMIT 1";
        let oldest: Option<i64> =
            store.connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
        let parked = store.parked.oldest(&store.connection)?;
        Ok(Size {
            records: store.records + store.parked.records(),
            parked: store.parked.records(),
            bytes: store.bytes + store.parked.bytes(),
            oldest: oldest.map(UtcTime::from_ticks).into_iter().chain(parked).min(),
        })
    }
}

#[cfg(test)]
mod tests;
