//! Chunks of a Variable. Chunks do not overlap; each holds up to [`CHUNK_LEN`] values in order of time.

use super::{CHUNK_BYTES, CHUNK_LEN, lost};
use crate::chunk;
use rusqlite::{Connection, OptionalExtension, Row, params};
use taktwerk_server::account::HeapSize;
use taktwerk_server::history::{HistoryValue, Order, ReadLimit, Span, sort_values};
use taktwerk_types::UtcTime;

/// A chunk as a database row.
pub(super) struct Found {
    pub(super) id: i64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// The number of values.
    pub(super) count: u32,
    data: Vec<u8>,
}

impl Found {
    fn of(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            count: row.get(3)?,
            data: row.get(4)?,
        })
    }

    /// Appends the values of the chunk. For a damaged chunk, appends one Bad_DataLost value instead.
    pub(super) fn decode(&self, node: u32, out: &mut Vec<HistoryValue>) {
        if let Err(error) = chunk::decode(&self.data, out) {
            tracing::error!(node, chunk = self.id, values = self.count, %error, "history: values are lost");
            out.push(lost(UtcTime::from_ticks(self.first)));
        }
    }
}

const COLUMNS: &str = "SELECT id, first, last, count, data FROM chunk";

/// Appends values of a span, in order, until there are no more or `limit` is reached.
pub(super) fn read(
    connection: &Connection,
    node: u32,
    span: Span,
    order: Order,
    mut limit: ReadLimit,
    out: &mut Vec<HistoryValue>,
) -> Result<(), rusqlite::Error> {
    if span.is_empty() || limit.is_reached() {
        return Ok(());
    }
    let (first, last) = (span.first.ticks(), span.last.ticks());
    let query = match order {
        Order::Forward => format!(
            "{COLUMNS} WHERE node = ?1 AND first <= ?3 AND first >= \
             coalesce((SELECT max(first) FROM chunk WHERE node = ?1 AND first <= ?2), ?2) ORDER BY first"
        ),
        Order::Backward => {
            format!("{COLUMNS} WHERE node = ?1 AND first <= ?3 AND ?2 <= ?3 ORDER BY first DESC")
        }
    };
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query(params![node, first, last])?;
    let mut values = Vec::new();
    while let Some(row) = rows.next()? {
        let found = Found::of(row)?;
        if found.last < first {
            match order {
                Order::Forward => continue,
                Order::Backward => break,
            }
        }
        let before = out.len();
        let is_inside = found.first >= first && found.last <= last;
        if is_inside && order == Order::Forward {
            found.decode(node, out);
        } else {
            values.clear();
            found.decode(node, &mut values);
            values.retain(|value| span.contains(value.source));
            match order {
                Order::Forward => out.append(&mut values),
                Order::Backward => out.extend(values.drain(..).rev()),
            }
        }
        let mut given = before;
        for value in out.iter().skip(before) {
            if limit.is_reached() {
                break;
            }
            limit.give(value);
            given += 1;
        }
        out.truncate(given);
        if limit.is_reached() {
            break;
        }
    }
    Ok(())
}

/// Merges two sorted lists and appends values until `limit` is reached. For equal times, `newer` wins.
pub(super) fn merge(
    older: Vec<HistoryValue>,
    newer: Vec<HistoryValue>,
    order: Order,
    limit: ReadLimit,
    out: &mut Vec<HistoryValue>,
) {
    let (mut older, mut newer) = (older.into_iter().peekable(), newer.into_iter().peekable());
    let next = core::iter::from_fn(|| match (older.peek(), newer.peek()) {
        (None, None) => None,
        (Some(_), None) => older.next(),
        (None, Some(_)) => newer.next(),
        (Some(one), Some(other)) if one.source == other.source => {
            older.next();
            newer.next()
        }
        (Some(one), Some(other)) => {
            if (one.source < other.source) == (order == Order::Forward) {
                older.next()
            } else {
                newer.next()
            }
        }
    });
    out.extend(limit.of(next));
}

/// Adds values of a Variable, in any order, one chunk at a time. Clients choose source times, so one request can span all chunks
/// of the Variable; opening all of them at once would need unbounded memory.
pub(super) fn add(
    connection: &Connection,
    node: u32,
    mut values: Vec<HistoryValue>,
) -> Result<(), rusqlite::Error> {
    sort_values(&mut values);
    while let Some(time) = values.first().map(|value| value.source.ticks()) {
        let end = next_first(connection, node, time)?;
        let here = values.partition_point(|value| end.is_none_or(|end| value.source.ticks() < end));
        let behind = values.split_off(here);
        // The chunk that covers the values, or the previous one if it has free space.
        let has_room =
            |found: &Found| found.count as usize + here <= CHUNK_LEN && found.data.len() <= CHUNK_BYTES / 2;
        match before(connection, node, time)?.filter(|found| time <= found.last || has_room(found)) {
            None => insert(connection, node, &values)?,
            Some(found) => {
                let (mut old, mut all) = (Vec::new(), Vec::new());
                found.decode(node, &mut old);
                merge(old, values, Order::Forward, ReadLimit::NONE, &mut all);
                remove(connection, found.id)?;
                insert(connection, node, &all)?;
            }
        }
        values = behind;
    }
    Ok(())
}

/// The chunk that covers a time, or the last one that begins before it.
pub(super) fn before(
    connection: &Connection,
    node: u32,
    time: i64,
) -> Result<Option<Found>, rusqlite::Error> {
    let query = format!("{COLUMNS} WHERE node = ? AND first <= ? ORDER BY first DESC LIMIT 1");
    connection.prepare_cached(&query)?.query_row(params![node, time], Found::of).optional()
}

/// The start of the next chunk after a time.
pub(super) fn next_first(
    connection: &Connection,
    node: u32,
    time: i64,
) -> Result<Option<i64>, rusqlite::Error> {
    let query = "SELECT min(first) FROM chunk WHERE node = ? AND first > ?";
    connection.prepare_cached(query)?.query_row(params![node, time], |row| row.get(0))
}

pub(super) fn remove(connection: &Connection, id: i64) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("DELETE FROM chunk WHERE id = ?")?.execute([id])?;
    Ok(())
}

/// Inserts sorted values in pieces of about the same length.
pub(super) fn insert(
    connection: &Connection,
    node: u32,
    values: &[HistoryValue],
) -> Result<(), rusqlite::Error> {
    let pieces = values.len().div_ceil(CHUNK_LEN).max(1);
    let query = "INSERT INTO chunk (node, first, last, count, data) VALUES (?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(query)?;
    for piece in values.chunks(values.len().div_ceil(pieces).max(1)) {
        for piece in small(piece, |value| value.heap_size(), CHUNK_BYTES) {
            let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
            let (first, last) = (first.source.ticks(), last.source.ticks());
            statement.execute(params![node, first, last, piece.len() as i64, chunk::encode(piece)])?;
        }
    }
    Ok(())
}

/// Splits a list into pieces; each ends with the value that reaches the byte limit.
pub(super) fn small<T>(
    list: &[T],
    bytes: impl Fn(&T) -> usize + Clone,
    max: usize,
) -> impl Iterator<Item = &[T]> + Clone {
    let mut sum = 0usize;
    list.split_inclusive(move |one| {
        sum = sum.saturating_add(bytes(one));
        let is_last = sum >= max;
        if is_last {
            sum = 0;
        }
        is_last
    })
}
