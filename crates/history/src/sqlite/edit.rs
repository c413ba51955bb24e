//! Updates, deletions and annotations of a Variable, within one transaction.

use super::chunks;
use crate::chunk;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::collections::BTreeMap;
use taktwerk_schema::{Annotation, HistoryUpdateType};
use taktwerk_server::history::{
    AnnotationKey, HistoryValue, Modification, ModifiedValue, Order, Perform, ReadLimit, Span,
};
use taktwerk_types::{StatusCode, UtcTime};

/// Values after which a transaction that deletes ends, with the next full chunk.
const DELETED_AT_ONCE: u64 = 4_096;

/// A change of one Variable's history. All its values are in chunks.
pub(super) struct Edit<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(super) node: u32,
}

/// The values of an open chunk, and the times that belong to it.
struct Open {
    id: Option<i64>,
    values: BTreeMap<UtcTime, HistoryValue>,
    /// The start of the next chunk.
    end: Option<i64>,
    is_changed: bool,
}

impl Edit<'_> {
    pub(super) fn update(
        &self,
        perform: Perform,
        values: Vec<HistoryValue>,
        by: &Modification,
    ) -> Result<Vec<StatusCode>, rusqlite::Error> {
        let mut results = vec![StatusCode::GOOD; values.len()];
        // In order of time, so that each chunk is opened once. The sort is stable for equal times.
        let mut sorted: Vec<(usize, HistoryValue)> = values.into_iter().enumerate().collect();
        sorted.sort_by_key(|(_, value)| value.source);
        let mut open: Option<Open> = None;
        for (index, value) in sorted {
            let time = value.source.ticks();
            if open.as_ref().is_none_or(|open| open.end.is_some_and(|end| time >= end)) {
                self.finish(open.take())?;
                open = Some(self.open(time)?);
            }
            let Some(open) = &mut open else { continue };
            let exists = open.values.contains_key(&value.source);
            let result = match (perform, exists) {
                (Perform::Insert, true) => StatusCode::BAD_ENTRY_EXISTS,
                (Perform::Replace, false) => StatusCode::BAD_NO_ENTRY_EXISTS,
                (Perform::Remove, _) => StatusCode::BAD_HISTORY_OPERATION_INVALID,
                (Perform::Insert | Perform::Replace | Perform::Update, _) => {
                    open.is_changed = true;
                    match open.values.insert(value.source, value.clone()) {
                        Some(old) => {
                            let kind = if perform == Perform::Update {
                                HistoryUpdateType::UPDATE
                            } else {
                                HistoryUpdateType::REPLACE
                            };
                            self.note(&old, by, kind)?;
                            StatusCode::GOOD_ENTRY_REPLACED
                        }
                        None => {
                            self.note(&value, by, HistoryUpdateType::INSERT)?;
                            StatusCode::GOOD_ENTRY_INSERTED
                        }
                    }
                }
            };
            if let Some(place) = results.get_mut(index) {
                *place = result;
            }
        }
        self.finish(open)?;
        Ok(results)
    }

    /// The chunk that a time belongs to: the last one that begins before it, or the first one.
    fn open(&self, time: i64) -> Result<Open, rusqlite::Error> {
        let found = chunks::before(self.transaction, self.node, time)?;
        let end = chunks::next_first(self.transaction, self.node, time)?;
        let mut values = Vec::new();
        if let Some(found) = &found {
            found.decode(self.node, &mut values);
        }
        let values = values.into_iter().map(|value| (value.source, value)).collect();
        Ok(Open { id: found.map(|found| found.id), values, end, is_changed: false })
    }

    fn finish(&self, open: Option<Open>) -> Result<(), rusqlite::Error> {
        let Some(open) = open.filter(|open| open.is_changed) else { return Ok(()) };
        if let Some(id) = open.id {
            chunks::remove(self.transaction, id)?;
        }
        let values: Vec<HistoryValue> = open.values.into_values().collect();
        chunks::insert(self.transaction, self.node, &values)
    }

    fn note(
        &self,
        value: &HistoryValue,
        by: &Modification,
        kind: HistoryUpdateType,
    ) -> Result<(), rusqlite::Error> {
        let query = "INSERT INTO modified (node, time, at, kind, user, data) VALUES (?, ?, ?, ?, ?, ?)";
        let data = chunk::encode([value]);
        let (time, at) = (value.source.ticks(), by.time.ticks());
        let mut statement = self.transaction.prepare_cached(query)?;
        statement.execute(params![self.node, time, at, kind.0, &*by.user, data])?;
        Ok(())
    }

    /// Deletes the first values of a span. Returns their number, and the span that is left.
    pub(super) fn delete(
        &self,
        span: Span,
        by: &Modification,
    ) -> Result<(u64, Option<Span>), rusqlite::Error> {
        if span.is_empty() {
            return Ok((0, None));
        }
        let mut count = 0;
        let mut time = span.first.ticks();
        loop {
            let open = self.open(time)?;
            let (gone, left): (Vec<_>, Vec<_>) =
                open.values.into_values().partition(|value| span.contains(value.source));
            count += gone.len() as u64;
            for value in &gone {
                self.note(value, by, HistoryUpdateType::DELETE)?;
            }
            if let (Some(id), false) = (open.id, gone.is_empty()) {
                chunks::remove(self.transaction, id)?;
                chunks::insert(self.transaction, self.node, &left)?;
            }
            match open.end.filter(|end| *end <= span.last.ticks()) {
                Some(next) if count >= DELETED_AT_ONCE => {
                    return Ok((count, Some(Span { first: UtcTime::from_ticks(next), ..span })));
                }
                Some(next) => time = next,
                None => return Ok((count, None)),
            }
        }
    }

    /// Deletes the values at some times. Returns for each whether there was one.
    pub(super) fn delete_at(
        &self,
        times: &[UtcTime],
        by: &Modification,
    ) -> Result<Vec<bool>, rusqlite::Error> {
        let mut found = vec![false; times.len()];
        // In order of time, so that each chunk is opened once.
        let mut sorted: Vec<(usize, UtcTime)> = times.iter().copied().enumerate().collect();
        sorted.sort_by_key(|(_, time)| *time);
        let mut open: Option<Open> = None;
        for (index, time) in sorted {
            if open.as_ref().is_none_or(|open| open.end.is_some_and(|end| time.ticks() >= end)) {
                self.finish(open.take())?;
                open = Some(self.open(time.ticks())?);
            }
            if let Some(open) = &mut open
                && let Some(value) = open.values.remove(&time)
            {
                open.is_changed = true;
                self.note(&value, by, HistoryUpdateType::DELETE)?;
                if let Some(is_found) = found.get_mut(index) {
                    *is_found = true;
                }
            }
        }
        self.finish(open)?;
        Ok(found)
    }

    /// Deletes some modified values of a span. Returns their number: 0 if none are left.
    pub(super) fn delete_modified(&self, span: Span) -> Result<usize, rusqlite::Error> {
        let query = "DELETE FROM modified WHERE id IN \
                     (SELECT id FROM modified WHERE node = ? AND time BETWEEN ? AND ? LIMIT ?)";
        let max = i64::try_from(DELETED_AT_ONCE).unwrap_or(i64::MAX);
        self.transaction.execute(query, params![self.node, span.first.ticks(), span.last.ticks(), max])
    }

    pub(super) fn annotate(
        &self,
        perform: Perform,
        annotations: Vec<(UtcTime, Annotation)>,
    ) -> Result<Vec<StatusCode>, rusqlite::Error> {
        annotations
            .into_iter()
            .map(|(time, annotation)| self.annotate_one(perform, time, &annotation))
            .collect()
    }

    fn annotate_one(
        &self,
        perform: Perform,
        time: UtcTime,
        annotation: &Annotation,
    ) -> Result<StatusCode, rusqlite::Error> {
        let (user, message) = (annotation.user_name.as_str(), annotation.message.as_str());
        let (time, at) = (time.ticks(), annotation.annotation_time.ticks());
        let query = "SELECT 1 FROM annotation WHERE node = ? AND time = ? AND user = ? AND at = ?";
        let key = params![self.node, time, user, at];
        let exists = self.transaction.query_row(query, key, |_| Ok(())).optional()?.is_some();
        Ok(match (perform, exists) {
            (Perform::Insert, true) => StatusCode::BAD_ENTRY_EXISTS,
            (Perform::Replace | Perform::Remove, false) => StatusCode::BAD_NO_ENTRY_EXISTS,
            (Perform::Remove, true) => {
                let query = "DELETE FROM annotation WHERE node = ? AND time = ? AND user = ? AND at = ?";
                self.transaction.execute(query, params![self.node, time, user, at])?;
                StatusCode::GOOD
            }
            (Perform::Insert | Perform::Replace | Perform::Update, _) => {
                let query = "INSERT OR REPLACE INTO annotation VALUES (?, ?, ?, ?, ?)";
                self.transaction.execute(query, params![self.node, time, user, at, message])?;
                if exists { StatusCode::GOOD_ENTRY_REPLACED } else { StatusCode::GOOD_ENTRY_INSERTED }
            }
        })
    }
}

pub(super) fn read_modified(
    connection: &Connection,
    node: u32,
    span: Span,
    order: Order,
    skip: usize,
    mut limit: ReadLimit,
) -> Result<Vec<ModifiedValue>, rusqlite::Error> {
    let direction = if order == Order::Forward { "ASC" } else { "DESC" };
    let query = format!(
        "SELECT at, kind, user, data FROM modified WHERE node = ? AND time BETWEEN ? AND ? \
         ORDER BY time {direction}, id {direction} LIMIT ? OFFSET ?"
    );
    let mut statement = connection.prepare_cached(&query)?;
    let parameters =
        params![node, span.first.ticks(), span.last.ticks(), limited(limit.count), limited(skip)];
    let mut rows = statement.query(parameters)?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        if limit.is_reached() {
            break;
        }
        let data: Vec<u8> = row.get(3)?;
        let mut values = Vec::new();
        if let Err(error) = chunk::decode(&data, &mut values) {
            tracing::error!(node, %error, "history: a modified value is lost");
        }
        let by = Modification {
            time: UtcTime::from_ticks(row.get(0)?),
            kind: HistoryUpdateType(row.get(1)?),
            user: row.get::<_, String>(2)?.into(),
        };
        for value in values {
            let value = ModifiedValue { value, by: by.clone() };
            limit.give(&value);
            out.push(value);
        }
    }
    Ok(out)
}

/// The annotations of a span, after `after` in reading order, until the limit is reached.
pub(super) fn annotations(
    connection: &Connection,
    node: u32,
    span: Span,
    order: Order,
    after: Option<&AnnotationKey>,
    limit: ReadLimit,
) -> Result<Vec<(UtcTime, Annotation)>, rusqlite::Error> {
    let (sign, direction) = if order == Order::Forward { (">", "ASC") } else { ("<", "DESC") };
    let query = format!(
        "SELECT time, user, at, message FROM annotation WHERE node = ?1 AND time BETWEEN ?2 AND ?3 \
         AND (?4 OR (time, user, at) {sign} (?5, ?6, ?7)) \
         ORDER BY time {direction}, user {direction}, at {direction} LIMIT ?8"
    );
    let mut statement = connection.prepare_cached(&query)?;
    let parameters = params![
        node,
        span.first.ticks(),
        span.last.ticks(),
        after.is_none(),
        after.map_or(0, |after| after.time.ticks()),
        after.map_or("", |after| &after.user),
        after.map_or(0, |after| after.annotation_time.ticks()),
        limited(limit.count),
    ];
    let rows = statement.query_map(parameters, |row| {
        let annotation = Annotation {
            user_name: row.get::<_, String>(1)?.as_str().into(),
            annotation_time: UtcTime::from_ticks(row.get(2)?),
            message: row.get::<_, String>(3)?.as_str().into(),
        };
        Ok((UtcTime::from_ticks(row.get(0)?), annotation))
    })?;
    let mut left = limit;
    let mut out = Vec::new();
    for one in rows {
        let one = one?;
        left.give(&one);
        out.push(one);
        if left.is_reached() {
            break;
        }
    }
    Ok(out)
}

/// A row limit as SQLite's integer.
fn limited(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
