//! Events, one row each.

use super::{portion, row};
use postgres::types::ToSql;
use postgres::{Client, Row, Transaction};
use std::time::SystemTime;
use taktwerk_server::history::{
    EventCursor, Order, Perform, ReadLimit, Sees, Span, StoredEvent, merge_event,
};
use taktwerk_types::{ByteString, StatusCode, UtcTime, Variant};

/// The owner of events: the ApplicationUri of the server, and the node. Every server has a Server Object, so the node alone is
/// ambiguous.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) server: &'a str,
    pub(super) node: &'a str,
}

/// Events as table columns.
#[derive(Debug, Default)]
struct Columns {
    time: Vec<SystemTime>,
    ticks: Vec<i64>,
    event_id: Vec<Vec<u8>>,
    source: Vec<Option<String>>,
    severity: Vec<Option<i32>>,
    message: Vec<Option<String>>,
    data: Vec<Vec<u8>>,
}

impl Columns {
    fn of(events: &[StoredEvent]) -> Self {
        let mut all = Self::default();
        for event in events {
            all.time.push(row::time(event.time()));
            all.ticks.push(event.time().ticks());
            all.event_id.push(event.event_id().as_bytes().to_vec());
            all.source.push(text(event.field("SourceName")));
            all.severity.push(match event.field("Severity") {
                Some(Variant::UInt16(severity)) => Some((*severity).into()),
                _ => None,
            });
            all.message.push(text(event.field("Message")));
            let mut data = Vec::new();
            event.encode(&mut data);
            all.data.push(data);
        }
        all
    }
}

/// Text without NUL, which the database cannot store.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn text(value: Option<&Variant>) -> Option<String> {
    let text = match value? {
        Variant::String(text) => text.as_str(),
        Variant::LocalizedText(text) => text.text.as_str(),
        _ => return None,
    };
    Some(storable(text))
}

/// An identical event already stored comes from a retry after a broken connection.
const INSERT: &str = "INSERT INTO taktwerk_event (server, node, time, ticks, event_id, source, severity, message, data) \
                      SELECT $1, $2, t.time, t.ticks, t.event_id, t.source, t.severity, t.message, t.data FROM unnest( \
                      $3::timestamptz[], $4::bigint[], $5::bytea[], $6::text[], $7::integer[], $8::text[], $9::bytea[]) \
                      WITH ORDINALITY AS t(time, ticks, event_id, source, severity, message, data, n) \
                      WHERE NOT EXISTS (SELECT 1 FROM taktwerk_event e WHERE e.server = $1 AND e.node = $2 \
                      AND e.event_id = t.event_id AND e.ticks = t.ticks AND e.data = t.data AND length(t.event_id) > 0) \
                      ORDER BY t.n";

fn insert(
    transaction: &mut Transaction<'_>,
    of: Of<'_>,
    events: &[StoredEvent],
) -> Result<(), postgres::Error> {
    let c = Columns::of(events);
    let parameters: [&(dyn ToSql + Sync); 9] =
        [&of.server, &of.node, &c.time, &c.ticks, &c.event_id, &c.source, &c.severity, &c.message, &c.data];
    transaction.execute(INSERT, &parameters).map(drop)
}

pub(super) fn append(client: &mut Client, of: Of<'_>, events: &[StoredEvent]) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    insert(&mut transaction, of, events)?;
    transaction.commit()
}

/// A row of id, ticks and data. Damaged events are logged and skipped.
fn event(row: &Row) -> Result<Option<(EventCursor, StoredEvent)>, postgres::Error> {
    let cursor = EventCursor { number: row.try_get(0)?, time: UtcTime::from_ticks(row.try_get(1)?) };
    let data: &[u8] = row.try_get(2)?;
    match StoredEvent::from_bytes(data) {
        Ok(event) => Ok(Some((cursor, event))),
        Err(error) => {
            tracing::error!(event = cursor.number, %error, "history: an event is damaged");
            Ok(None)
        }
    }
}

/// The rows after `after`, until there are no more or `limit` is reached.
pub(super) fn read(
    client: &mut Client,
    of: Of<'_>,
    span: Span,
    order: Order,
    after: Option<EventCursor>,
    limit: ReadLimit,
) -> Result<Vec<(EventCursor, StoredEvent)>, postgres::Error> {
    let (query, nowhere) = match order {
        Order::Forward => (
            "SELECT id, ticks, data FROM taktwerk_event WHERE server = $1 AND node = $2 AND ticks BETWEEN $3 AND $4 \
             AND (ticks, id) > ($5, $6) ORDER BY ticks, id",
            EventCursor { time: span.first, number: i64::MIN },
        ),
        Order::Backward => (
            "SELECT id, ticks, data FROM taktwerk_event WHERE server = $1 AND node = $2 AND ticks BETWEEN $3 AND $4 \
             AND (ticks, id) < ($5, $6) ORDER BY ticks DESC, id DESC",
            EventCursor { time: span.last, number: i64::MAX },
        ),
    };
    let after = after.unwrap_or(nowhere);
    let (first, last, ticks) = (span.first.ticks(), span.last.ticks(), after.time.ticks());
    let parameters: [&(dyn ToSql + Sync); 6] = [&of.server, &of.node, &first, &last, &ticks, &after.number];
    portion::read(client, query, &parameters, limit, event)
}

/// The event with an EventId.
fn known(
    transaction: &mut Transaction<'_>,
    of: Of<'_>,
    id: &ByteString,
) -> Result<Option<(EventCursor, StoredEvent)>, postgres::Error> {
    let query = "SELECT id, ticks, data FROM taktwerk_event WHERE server = $1 AND node = $2 AND event_id = $3 \
                 ORDER BY id LIMIT 1 FOR UPDATE";
    match transaction.query_opt(query, &[&of.server, &of.node, &id.as_bytes()])? {
        Some(row) => event(&row),
        None => Ok(None),
    }
}

fn delete(transaction: &mut Transaction<'_>, cursor: EventCursor) -> Result<(), postgres::Error> {
    transaction.execute("DELETE FROM taktwerk_event WHERE id = $1", &[&cursor.number]).map(drop)
}

pub(super) fn update(
    client: &mut Client,
    of: Of<'_>,
    perform: Perform,
    events: Vec<StoredEvent>,
    sees: Sees<'_>,
) -> Result<Vec<StatusCode>, postgres::Error> {
    let mut transaction = client.transaction()?;
    let mut results = Vec::with_capacity(events.len());
    for event in events {
        let known = known(&mut transaction, of, &event.event_id())?;
        let cursor = known.as_ref().map(|(cursor, _)| *cursor);
        let (stored, status) = merge_event(perform, known.map(|(_, known)| known), event, sees);
        if let Some(stored) = stored {
            if let Some(cursor) = cursor {
                delete(&mut transaction, cursor)?;
            }
            insert(&mut transaction, of, &[stored])?;
        }
        results.push(status);
    }
    transaction.commit()?;
    Ok(results)
}

pub(super) fn remove(
    client: &mut Client,
    of: Of<'_>,
    ids: &[ByteString],
    sees: Sees<'_>,
) -> Result<Vec<StatusCode>, postgres::Error> {
    let mut transaction = client.transaction()?;
    let mut results = Vec::with_capacity(ids.len());
    for id in ids {
        results.push(match known(&mut transaction, of, id)? {
            Some((cursor, event)) if sees(&event) => {
                delete(&mut transaction, cursor)?;
                StatusCode::GOOD
            }
            _ => StatusCode::BAD_NO_ENTRY_EXISTS,
        });
    }
    transaction.commit()?;
    Ok(results)
}
