//! Durable subscriptions in a SQLite file: one row for each record of a log.

use crate::file::Kind;
use crate::lock::{lock, make_private};
use core::fmt;
use core::time::Duration;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taktwerk_server::durable::{Change, DurableStore, Log};
use taktwerk_server::history::StoreError;

/// Files of durable subscriptions. Their format numbers differ from those of history files, which begin at 1.
const KIND: Kind = Kind {
    what: "durable subscription",
    version: 1001,
    tables: TABLES,
    meanwhile: "writing goes on by itself",
};
const TABLES: &str = "
CREATE TABLE log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription INTEGER NOT NULL,
    -- CRC-32 of the record.
    checksum INTEGER NOT NULL,
    record BLOB NOT NULL
);
CREATE INDEX log_subscription ON log (subscription, id);
";
/// How long a statement waits for another program that uses the file.
const BUSY: Duration = Duration::from_secs(10);

/// A store of durable subscriptions in a SQLite file.
pub struct SubscriptionStore {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// Released after the connection.
    _file_lock: taktwerk_files::FileLock,
}

impl fmt::Debug for SubscriptionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SubscriptionStore {
    /// Opens a file, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, belongs to another program, is used by another process, or was created by another
    /// version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let error = |error: rusqlite::Error| KIND.not_opened(&path, &error);
        make_private(&path)?;
        let connection = Connection::open(&path).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        KIND.prepare(&connection, &path)?;
        let file_lock = lock(&path)?;
        Ok(Self { path, connection: Mutex::new(connection), _file_lock: file_lock })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        failed(&self.path, error)
    }
}

/// A failure of the database.
fn failed(path: &Path, error: &rusqlite::Error) -> StoreError {
    KIND.failed(path, error)
}

fn write(transaction: &Transaction<'_>, changes: &[Change]) -> Result<(), rusqlite::Error> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO log (subscription, checksum, record) VALUES (?, ?, ?)")?;
    let mut delete = transaction.prepare_cached("DELETE FROM log WHERE subscription = ?")?;
    for change in changes {
        if let Change::Replace { subscription, .. } | Change::Delete { subscription } = change {
            delete.execute([subscription])?;
        }
        if let Change::Append { subscription, record } | Change::Replace { subscription, record } = change {
            insert.execute(params![subscription, crc32fast::hash(record), record])?;
        }
    }
    Ok(())
}

impl DurableStore for SubscriptionStore {
    fn load(&self) -> Result<Vec<Log>, StoreError> {
        let connection = self.lock();
        let mut logs: Vec<Log> = Vec::new();
        let ids = || -> Result<Vec<u32>, rusqlite::Error> {
            let mut select =
                connection.prepare("SELECT DISTINCT subscription FROM log ORDER BY subscription")?;
            select.query_map([], |row| row.get(0))?.collect()
        };
        for subscription in ids().map_err(|error| self.failed(&error))? {
            match read(&connection, subscription).map_err(|error| self.failed(&error))? {
                Some(records) => logs.push(Log { subscription, records }),
                None => tracing::error!(
                    subscription,
                    "{}: the log of a durable subscription is damaged; the subscription is not restored",
                    self.path.display()
                ),
            }
        }
        Ok(logs)
    }

    fn write(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let mut write = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            write(&transaction, changes)?;
            transaction.commit()
        };
        write().map_err(|error| self.failed(&error))
    }

    fn records(&self, subscription: u32) -> Result<Vec<Vec<u8>>, StoreError> {
        let records = read(&self.lock(), subscription).map_err(|error| self.failed(&error))?;
        records.ok_or_else(|| {
            StoreError::corrupted(format!(
                "{}: the log of durable subscription {subscription} is damaged",
                self.path.display()
            ))
        })
    }
}

/// The records of a subscription; `None` if a checksum is wrong.
fn read(connection: &Connection, subscription: u32) -> Result<Option<Vec<Vec<u8>>>, rusqlite::Error> {
    let mut select =
        connection.prepare_cached("SELECT checksum, record FROM log WHERE subscription = ? ORDER BY id")?;
    let rows =
        select.query_map([subscription], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, Vec<u8>>(1)?)))?;
    let rows: Vec<(u32, Vec<u8>)> = rows.collect::<Result<_, _>>()?;
    let is_good = rows.iter().all(|(checksum, record)| crc32fast::hash(record) == *checksum);
    Ok(is_good.then(|| rows.into_iter().map(|(_, record)| record).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(subscription: u32, record: &[u8]) -> Change {
        Change::Append { subscription, record: record.to_vec() }
    }

    #[test]
    fn logs_are_restored_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subscriptions.db");
        let store = SubscriptionStore::open(&path).unwrap();
        store.write(&[append(7, b"a"), append(u32::MAX, b"x"), append(7, b"b"), append(8, b"y")]).unwrap();
        store.write(&[append(7, b"c"), Change::Delete { subscription: 8 }]).unwrap();
        drop(store);
        let store = SubscriptionStore::open(&path).unwrap();
        let log = |subscription, records: &[&[u8]]| Log {
            subscription,
            records: records.iter().map(|record| record.to_vec()).collect(),
        };
        assert_eq!(store.load().unwrap(), [log(7, &[b"a", b"b", b"c"]), log(u32::MAX, &[b"x"])]);
        store
            .write(&[Change::Replace { subscription: 7, record: b"abc".to_vec() }, append(7, b"d")])
            .unwrap();
        assert_eq!(store.records(7).unwrap(), [b"abc".to_vec(), b"d".to_vec()]);
        assert_eq!(store.records(1).unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn damage_is_reported_and_affects_only_one_subscription() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subscriptions.db");
        let store = SubscriptionStore::open(&path).unwrap();
        store.write(&[append(1, b"good"), append(2, b"bad")]).unwrap();
        store.lock().execute("UPDATE log SET record = x'00' WHERE subscription = 2", []).unwrap();
        let logs = store.load().unwrap();
        assert_eq!(logs.iter().map(|log| log.subscription).collect::<Vec<_>>(), [1]);
        let error = store.records(2).unwrap_err();
        assert!(error.message.contains("damaged"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        drop(crate::SqliteStore::open(&path, crate::Retention::default()).unwrap());
        let error = SubscriptionStore::open(&path).unwrap_err();
        assert!(error.message.contains("format 1,"), "{error}");
        let text = folder.path().join("text");
        std::fs::write(&text, "no database ".repeat(1_000)).unwrap();
        let error = SubscriptionStore::open(&text).unwrap_err();
        assert!(error.message.contains("is not a durable subscription file"), "{error}");
    }
}
