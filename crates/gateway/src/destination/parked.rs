//! Parked records: they wait in the queue file for single variables of a destination. Later records of other tags continue, so
//! each tag keeps its order.

use super::block::{self, Record};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::sync::Arc;
use taktwerk_types::UtcTime;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS parked (
    number INTEGER PRIMARY KEY, tag TEXT NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS parked_tag ON parked (tag, number);
";

/// The parked records. The table is authoritative; this is a cache.
#[derive(Debug, Default)]
pub(super) struct Parked {
    tags: HashMap<Arc<str>, u64>,
    records: u64,
    bytes: u64,
    /// The tag with which the last turn ended.
    last: Option<Arc<str>>,
}

impl Parked {
    /// Reads the parked records.
    pub(super) fn load(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let mut parked = Self::default();
        let sql = "SELECT tag, count(*), sum(length(body)) FROM parked GROUP BY tag";
        let mut tags = connection.prepare(sql)?;
        let mut rows = tags.query([])?;
        while let Some(row) = rows.next()? {
            let (tag, records, bytes): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            parked.tags.insert(tag.into(), records as u64);
            parked.records += records as u64;
            parked.bytes += bytes as u64;
        }
        Ok(parked)
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn has(&self, tag: &str) -> bool {
        self.tags.contains_key(tag)
    }

    /// Adds records that are not parked already.
    pub(super) fn insert<'a>(
        &mut self,
        connection: &Connection,
        records: impl Iterator<Item = &'a Record>,
    ) -> Result<(), rusqlite::Error> {
        let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO parked VALUES (?1, ?2, ?3, ?4)")?;
        for record in records {
            let body = block::encode_one(record);
            let values = params![record.number as i64, record.tag, record.received.ticks(), body];
            if insert.execute(values)? == 0 {
                continue;
            }
            *self.tags.entry(Arc::clone(&record.tag)).or_default() += 1;
            self.records += 1;
            self.bytes += body.len() as u64;
        }
        Ok(())
    }

    fn forget(&mut self, tag: &str, len: i64) {
        if let Some(count) = self.tags.get_mut(tag) {
            *count -= 1;
            if *count == 0 {
                self.tags.remove(tag);
            }
        }
        self.records -= 1.min(self.records);
        self.bytes -= (len as u64).min(self.bytes);
    }

    /// Removes a record; false if it does not exist.
    pub(super) fn remove(&mut self, connection: &Connection, number: u64) -> Result<bool, rusqlite::Error> {
        let sql = "DELETE FROM parked WHERE number = ?1 RETURNING tag, length(body)";
        let mut remove = connection.prepare_cached(sql)?;
        let mut rows = remove.query([number as i64])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        let (tag, len): (String, i64) = (row.get(0)?, row.get(1)?);
        self.forget(&tag, len);
        Ok(true)
    }

    /// Removes the oldest records received before a time. Returns their number.
    pub(super) fn expire(&mut self, connection: &Connection, before: i64) -> Result<u64, rusqlite::Error> {
        let mut expired = 0;
        while self.records > 0 {
            let sql = "SELECT number, time FROM parked ORDER BY number LIMIT 1";
            let (number, time): (i64, i64) =
                connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if time >= before {
                break;
            }
            expired += u64::from(self.remove(connection, number as u64)?);
        }
        Ok(expired)
    }

    /// When the oldest record was received.
    pub(super) fn oldest(&self, connection: &Connection) -> Result<Option<UtcTime>, rusqlite::Error> {
        if self.records == 0 {
            return Ok(None);
        }
        let sql = "SELECT time FROM parked ORDER BY number LIMIT 1";
        let ticks = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(Some(UtcTime::from_ticks(ticks)))
    }

    /// The oldest records, tags in turn: at most so many, sorted by number; and the numbers of unreadable ones.
    pub(super) fn front(
        &self,
        connection: &Connection,
        records_max: usize,
    ) -> Result<(Vec<Record>, Vec<u64>), rusqlite::Error> {
        let mut tags: Vec<&Arc<str>> = self.tags.keys().collect();
        tags.sort_unstable();
        let after = self.last.as_ref().map_or(0, |last| tags.partition_point(|tag| *tag <= last));
        let first = if after < tags.len() { after } else { 0 };
        tags.rotate_left(first);
        tags.truncate(records_max);
        let each = (records_max / tags.len().max(1)).max(1);
        let (mut records, mut damaged) = (Vec::new(), Vec::new());
        let sql = "SELECT number, body FROM parked WHERE tag = ?1 ORDER BY number LIMIT ?2";
        let mut oldest = connection.prepare_cached(sql)?;
        for tag in tags {
            let mut rows = oldest.query(params![tag, each as i64])?;
            while let Some(row) = rows.next()? {
                let number: i64 = row.get(0)?;
                let body = row.get_ref(1)?.as_blob().unwrap_or_default();
                match block::decode(body, number as u64) {
                    Ok(mut found) if found.len() == 1 => records.append(&mut found),
                    _ => damaged.push(number as u64),
                }
            }
        }
        records.sort_by_key(|record| record.number);
        Ok((records, damaged))
    }

    /// Begins the next turn after the last of these tags.
    pub(super) fn turn(&mut self, records: &[Record]) {
        // If the turn wrapped around, it ended with the largest tag up to its starting point.
        let mut tags: Vec<&Arc<str>> = records.iter().map(|record| &record.tag).collect();
        tags.sort_unstable();
        let behind = self.last.as_ref().map_or(0, |last| tags.partition_point(|tag| *tag <= last));
        let last = if behind > 0 { tags.get(behind - 1) } else { tags.last() };
        self.last = last.map(|tag| Arc::clone(tag));
    }
}
