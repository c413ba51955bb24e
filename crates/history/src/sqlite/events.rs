//! Events, one row each.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use taktwerk_server::history::{
    EventCursor, Order, Perform, ReadLimit, Sees, Span, StoredEvent, merge_event,
};
use taktwerk_types::{ByteString, StatusCode, UtcTime};

/// Opening an older file without this table creates it.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    node TEXT NOT NULL,
    time INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS event_time ON event (node, time, id);
CREATE INDEX IF NOT EXISTS event_event_id ON event (node, event_id);
";

fn insert(transaction: &Transaction<'_>, node: &str, event: &StoredEvent) -> Result<(), rusqlite::Error> {
    let mut statement =
        transaction.prepare_cached("INSERT INTO event (node, time, event_id, data) VALUES (?, ?, ?, ?)")?;
    let mut data = Vec::new();
    event.encode(&mut data);
    statement.execute(params![node, event.time().ticks(), event.event_id().as_bytes(), data])?;
    Ok(())
}

pub(super) fn append(
    transaction: &Transaction<'_>,
    node: &str,
    events: &[StoredEvent],
) -> Result<(), rusqlite::Error> {
    events.iter().try_for_each(|event| insert(transaction, node, event))
}

/// A row of id, time and data.
fn row(row: &Row<'_>) -> Result<(EventCursor, Vec<u8>), rusqlite::Error> {
    let cursor = EventCursor { number: row.get(0)?, time: UtcTime::from_ticks(row.get(1)?) };
    Ok((cursor, row.get(2)?))
}

pub(super) fn read(
    connection: &Connection,
    node: &str,
    span: Span,
    order: Order,
    after: Option<EventCursor>,
    mut limit: ReadLimit,
) -> Result<Vec<(EventCursor, StoredEvent)>, rusqlite::Error> {
    let (query, nowhere) = match order {
        Order::Forward => (
            "SELECT id, time, data FROM event WHERE node = ? AND time >= ? AND time <= ? AND (time, id) > (?, ?) \
             ORDER BY time, id",
            EventCursor { time: span.first, number: i64::MIN },
        ),
        Order::Backward => (
            "SELECT id, time, data FROM event WHERE node = ? AND time >= ? AND time <= ? AND (time, id) < (?, ?) \
             ORDER BY time DESC, id DESC",
            EventCursor { time: span.last, number: i64::MAX },
        ),
    };
    let after = after.unwrap_or(nowhere);
    let mut statement = connection.prepare_cached(query)?;
    let (first, last) = (span.first.ticks(), span.last.ticks());
    let rows = statement.query_map(params![node, first, last, after.time.ticks(), after.number], row)?;
    let mut found = Vec::new();
    for one in rows {
        // Below the limit there are no more rows, whether or not some were damaged.
        if limit.is_reached() {
            break;
        }
        let (cursor, data) = one?;
        match StoredEvent::from_bytes(&data) {
            Ok(event) => {
                limit.give(&event);
                found.push((cursor, event));
            }
            Err(error) => tracing::error!(event = cursor.number, %error, "history: an event is damaged"),
        }
    }
    Ok(found)
}

/// The event with an EventId.
fn known(
    transaction: &Transaction<'_>,
    node: &str,
    id: &ByteString,
) -> Result<Option<(EventCursor, StoredEvent)>, rusqlite::Error> {
    let query = "SELECT id, time, data FROM event WHERE node = ? AND event_id = ? LIMIT 1";
    let found = transaction.query_row(query, params![node, id.as_bytes()], row).optional()?;
    Ok(found.and_then(|(cursor, data)| Some((cursor, StoredEvent::from_bytes(&data).ok()?))))
}

fn delete(transaction: &Transaction<'_>, cursor: EventCursor) -> Result<(), rusqlite::Error> {
    transaction.execute("DELETE FROM event WHERE id = ?", [cursor.number]).map(drop)
}

pub(super) fn update(
    transaction: &Transaction<'_>,
    node: &str,
    perform: Perform,
    events: Vec<StoredEvent>,
    sees: Sees<'_>,
) -> Result<Vec<StatusCode>, rusqlite::Error> {
    let one = |event: StoredEvent| {
        let known = known(transaction, node, &event.event_id())?;
        let cursor = known.as_ref().map(|(cursor, _)| *cursor);
        let (stored, status) = merge_event(perform, known.map(|(_, known)| known), event, sees);
        if let Some(stored) = stored {
            cursor.map_or(Ok(()), |cursor| delete(transaction, cursor))?;
            insert(transaction, node, &stored)?;
        }
        Ok(status)
    };
    events.into_iter().map(one).collect()
}

pub(super) fn remove(
    transaction: &Transaction<'_>,
    node: &str,
    ids: &[ByteString],
    sees: Sees<'_>,
) -> Result<Vec<StatusCode>, rusqlite::Error> {
    let one = |id: &ByteString| match known(transaction, node, id)? {
        Some((cursor, event)) if sees(&event) => delete(transaction, cursor).map(|()| StatusCode::GOOD),
        _ => Ok(StatusCode::BAD_NO_ENTRY_EXISTS),
    };
    ids.iter().map(one).collect()
}
