//! Deletes what is beyond the retention, in many short transactions: values are recorded and read meanwhile.

use super::{Inner, SqliteStore};
use parking_lot::MutexGuard;
use rusqlite::{Connection, TransactionBehavior, params};
use taktwerk_server::history::StoreError;
use taktwerk_types::UtcTime;

/// Most chunks that are deleted together.
const CHUNKS_MAX: usize = 256;
/// Most modified values, annotations or events that are deleted together.
const ROWS_MAX: usize = 4_096;
/// The other tables are searched after so many portions of chunks.
const PORTIONS_MAX: usize = 64;

/// Tables besides the chunks: how to find the oldest rows, and how to delete one. They have no index by time alone, so they are
/// searched by a reader. The time is compared again, because another row may have the number by then.
const OTHERS: [(&str, &str); 3] = [
    (
        "SELECT id, 0, '', 0 FROM modified WHERE time < ? LIMIT ?",
        "DELETE FROM modified WHERE id = ? AND time < ?",
    ),
    ("SELECT id, 0, '', 0 FROM event WHERE time < ? LIMIT ?", "DELETE FROM event WHERE id = ? AND time < ?"),
    (
        "SELECT node, time, user, at FROM annotation WHERE time < ? LIMIT ?",
        "DELETE FROM annotation WHERE node = ? AND time < ? AND time = ? AND user = ? AND at = ?",
    ),
];

/// The key of a row: its number, or for an annotation its Variable, time, user and annotation time.
type Key = (i64, i64, String, i64);

impl SqliteStore {
    /// Deletes values beyond the retention; `now` is the wall-clock time. Returns the number of deleted values.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn retain(&self, now: UtcTime) -> Result<u64, StoreError> {
        let mut deleted = 0;
        if !self.retention.age.is_zero() {
            let age = i64::try_from(self.retention.age.as_nanos() / 100).unwrap_or(i64::MAX);
            let before = now.ticks().saturating_sub(age);
            while let Some((count, _)) = self.changing_some(|inner| inner.delete_chunks(before))? {
                deleted += count;
            }
            self.delete_others(before)?;
        }
        let max = self.retention.size;
        while max > 0 && self.size()? > max {
            let mut last = None;
            for _ in 0..PORTIONS_MAX {
                let Some((count, newest)) = self.changing_some(|inner| inner.delete_chunks(i64::MAX))? else {
                    break;
                };
                deleted += count;
                last = Some(newest);
                if self.size()? <= max {
                    break;
                }
            }
            match last {
                Some(last) => self.delete_others(last.saturating_add(1))?,
                // There are no values: the oldest events.
                None if self.changing_some(Inner::delete_events)? > 0 => {}
                None => break,
            }
        }
        Ok(deleted)
    }

    /// Deletes modified values, annotations and events before a time.
    fn delete_others(&self, before: i64) -> Result<(), StoreError> {
        for (find, delete) in OTHERS {
            loop {
                let keys = self.reading(|connection| find_rows(connection, find, before))?;
                self.changing_some(|inner| inner.delete_rows(delete, &keys, before))?;
                if keys.len() < ROWS_MAX {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Changes a part. Those that wait are next.
    fn changing_some<T>(
        &self,
        run: impl FnOnce(&mut Inner) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let mut inner = self.lock();
        let result = run(&mut inner);
        MutexGuard::unlock_fair(inner);
        result.map_err(|error| self.failed(&error))
    }
}

fn find_rows(connection: &Connection, query: &str, before: i64) -> Result<Vec<Key>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map(params![before, ROWS_MAX as i64], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    rows.collect()
}

impl Inner {
    /// Deletes the oldest chunks that end before a time, and returns the number of their values and the latest end. `None` if there
    /// are none.
    fn delete_chunks(&mut self, before: i64) -> Result<Option<(u64, i64)>, rusqlite::Error> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let oldest = "SELECT id, last, count FROM chunk WHERE last < ? ORDER BY last LIMIT ?";
        let found: Vec<(i64, i64, i64)> = {
            let mut statement = transaction.prepare_cached(oldest)?;
            let rows = statement.query_map(params![before, CHUNKS_MAX as i64], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            rows.collect::<Result<_, _>>()?
        };
        let Some(newest) = found.iter().map(|(_, last, _)| *last).max() else { return Ok(None) };
        {
            let mut delete = transaction.prepare_cached("DELETE FROM chunk WHERE id = ?")?;
            found.iter().try_for_each(|(id, ..)| delete.execute([id]).map(drop))?;
        }
        transaction.commit()?;
        let count = found.iter().map(|(.., count)| u64::try_from(*count).unwrap_or(0)).sum();
        Ok(Some((count, newest)))
    }

    fn delete_rows(&mut self, query: &str, keys: &[Key], before: i64) -> Result<(), rusqlite::Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut delete = transaction.prepare_cached(query)?;
            let has_number = delete.parameter_count() == 2;
            for (number, time, user, at) in keys {
                if has_number {
                    delete.execute(params![number, before])?;
                } else {
                    delete.execute(params![number, before, time, user, at])?;
                }
            }
        }
        transaction.commit()
    }

    /// Deletes the oldest events. Returns their number.
    fn delete_events(&mut self) -> Result<usize, rusqlite::Error> {
        let query = "DELETE FROM event WHERE id IN (SELECT id FROM event ORDER BY time, id LIMIT ?)";
        self.connection.execute(query, [ROWS_MAX as i64])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Retention, SqliteStore};
    use core::time::Duration;
    use std::sync::Arc;
    use taktwerk_schema::{Annotation, HistoryUpdateType};
    use taktwerk_server::history::{
        HistoryStore, HistoryValue, Modification, NodeKey, Order, Perform, ReadLimit, Span,
    };
    use taktwerk_types::{StatusCode, UtcTime};

    /// Keeps the last second.
    const SECOND: i64 = 10_000_000;

    fn open(folder: &tempfile::TempDir) -> SqliteStore {
        let retention = Retention { age: Duration::from_secs(1), size: 0 };
        SqliteStore::open(folder.path().join("history.db"), retention).unwrap()
    }

    fn value(at: i64) -> HistoryValue {
        let source = UtcTime::from_ticks(at);
        HistoryValue { source, server: source, status: StatusCode::GOOD, value: 1.0.into() }
    }

    fn by() -> Modification {
        Modification { time: UtcTime::from_ticks(0), kind: HistoryUpdateType::DELETE, user: "olaf".into() }
    }

    /// Records values while something else changes the store, and returns the result of a query after each of them.
    fn while_recording(store: &SqliteStore, query: &str, change: impl FnOnce() + Send) -> Vec<i64> {
        let mut results = Vec::new();
        std::thread::scope(|scope| {
            let changing = scope.spawn(change);
            for at in 0.. {
                if changing.is_finished() {
                    break;
                }
                store.append(&[("recorded".into(), value(100 * SECOND + at))]).unwrap();
                results.push(store.reading(|file| file.query_row(query, [], |row| row.get(0))).unwrap());
            }
        });
        results
    }

    #[test]
    fn values_are_recorded_while_many_others_expire() {
        const VARIABLES: i64 = 8_000;
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        // One chunk each.
        let old: Vec<_> = (0..VARIABLES).map(|at| (format!("v{at}").into(), value(at))).collect();
        store.append(&old).unwrap();
        store.close().unwrap();
        let query = "SELECT count(*) FROM chunk WHERE last < 10000000";
        let left = while_recording(&store, query, || {
            assert_eq!(store.retain(UtcTime::from_ticks(2 * SECOND)).unwrap(), VARIABLES as u64);
        });
        assert!(left.iter().any(|left| (1..VARIABLES).contains(left)), "{left:?}");
    }

    #[test]
    fn values_are_recorded_while_a_client_deletes_many_others() {
        const COUNT: i64 = 20_000;
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let key: NodeKey = "v".into();
        let all: Vec<_> = (0..COUNT).map(|at| (Arc::clone(&key), value(at))).collect();
        store.append(&all).unwrap();
        store.close().unwrap();
        let query = "SELECT count(*) FROM modified";
        let part = |noted: &i64| (1..COUNT).contains(noted);
        let noted = while_recording(&store, query, || {
            assert_eq!(store.delete(&key, Span::ALL, &by()).unwrap(), COUNT as u64);
        });
        assert!(noted.iter().any(part), "{noted:?}");
        let modified = store.read_modified(&key, Span::ALL, Order::Forward, 0, ReadLimit::NONE).unwrap();
        assert!(modified.iter().map(|one| one.value.source.ticks()).eq(0..COUNT));
        let noted = while_recording(&store, query, || {
            assert_eq!(store.delete_modified(&key, Span::ALL).unwrap(), COUNT as u64);
        });
        assert!(noted.iter().any(part), "{noted:?}");
    }

    #[test]
    fn modified_values_and_annotations_expire() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let key: NodeKey = "v".into();
        let times = || (0..10_000).chain([2 * SECOND, 3 * SECOND]);
        let annotations = times().map(|at| (UtcTime::from_ticks(at), Annotation::default())).collect();
        store.annotate(&key, Perform::Insert, annotations).unwrap();
        store.update(&key, Perform::Insert, times().map(value).collect(), &by()).unwrap();
        store.retain(UtcTime::from_ticks(3 * SECOND)).unwrap();
        let left = [2 * SECOND, 3 * SECOND];
        let found = store.annotations(&key, Span::ALL, Order::Forward, None, ReadLimit::NONE).unwrap();
        assert!(found.iter().map(|(time, _)| time.ticks()).eq(left));
        let found = store.read_modified(&key, Span::ALL, Order::Forward, 0, ReadLimit::NONE).unwrap();
        assert!(found.iter().map(|one| one.value.source.ticks()).eq(left));
    }
}
