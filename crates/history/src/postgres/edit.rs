//! Changes and deletes values. Old values and deleted ones become modified values.

use super::append::put;
use super::row::{self, Columns, VALUE};
use postgres::types::ToSql;
use postgres::{Client, Transaction};
use std::collections::BTreeSet;
use std::time::SystemTime;
use taktwerk_schema::HistoryUpdateType;
use taktwerk_server::history::{HistoryValue, Modification, NodeKey, Perform, Span};
use taktwerk_types::{StatusCode, UtcTime};

/// Most values that are deleted by one statement. It takes a fraction of a second.
pub(super) const DELETED_AT_ONCE: i64 = 10_000;

/// The deletion of a span in parts.
#[derive(Debug)]
pub(super) struct Deletion {
    /// What is left to do.
    pub(super) left: Option<Span>,
    /// The number of deleted values.
    pub(super) deleted: u64,
}

/// The number of a Variable. Queried separately: a database that compresses would decompress the values of all Variables for a
/// query within the query.
fn number(client: &mut Client, node: &NodeKey) -> Result<Option<i32>, postgres::Error> {
    let key: &str = node;
    let row = client.query_opt("SELECT id FROM taktwerk_node WHERE key = $1", &[&key])?;
    row.map(|row| row.try_get(0)).transpose()
}

/// Deletes the first values of a span.
pub(super) fn delete_part(
    client: &mut Client,
    node: &NodeKey,
    all: &mut Deletion,
    by: &Modification,
) -> Result<(), postgres::Error> {
    let Some(span) = all.left.filter(|span| !span.is_empty()) else {
        all.left = None;
        return Ok(());
    };
    let Some(number) = number(client, node)? else {
        all.left = None;
        return Ok(());
    };
    let (first, last) = (row::time(span.first), row::time(span.last));
    let (first_ticks, last_ticks) = (span.first.ticks(), span.last.ticks());
    // The end of a part is found first, because a database that compresses needs constants.
    let end = client.query_opt(
        "SELECT ticks FROM taktwerk_value WHERE node = $1 AND time >= $2 AND time <= $3 AND ticks BETWEEN $4 AND $5 \
         ORDER BY time, ticks OFFSET $6 LIMIT 1",
        &[&number, &first, &last, &first_ticks, &last_ticks, &(DELETED_AT_ONCE - 1)],
    )?;
    let end = end.map(|row| row.try_get(0).map(UtcTime::from_ticks)).transpose()?;
    let part = Span { last: end.unwrap_or(span.last), ..span };
    let query = format!(
        "WITH gone AS (DELETE FROM taktwerk_value WHERE node = $1 \
         AND time >= $2 AND time <= $3 AND ticks BETWEEN $4 AND $5 RETURNING node, {VALUE}) \
         INSERT INTO taktwerk_modified (node, {VALUE}, changed_at, change, changed_by) \
         SELECT node, {VALUE}, $6, $7, $8 FROM gone ORDER BY ticks"
    );
    let user: &str = &by.user;
    let kind = HistoryUpdateType::DELETE.0;
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &number,
        &first,
        &row::time(part.last),
        &first_ticks,
        &part.last.ticks(),
        &by.time.ticks(),
        &kind,
        &user,
    ];
    all.deleted += client.execute(&query, &parameters)?;
    let rest = Span { first: UtcTime::from_ticks(part.last.ticks().saturating_add(1)), ..span };
    all.left = end.map(|_| rest).filter(|rest| !rest.is_empty());
    Ok(())
}

/// Deletes the values at some times with one statement. Returns for each time whether there was one.
pub(super) fn delete_at(
    client: &mut Client,
    node: &NodeKey,
    times: &[UtcTime],
    by: &Modification,
) -> Result<Vec<bool>, postgres::Error> {
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return Ok(Vec::new()) };
    let Some(number) = number(client, node)? else { return Ok(vec![false; times.len()]) };
    // The span lets a database that compresses decompress only what it needs.
    let query = format!(
        "WITH gone AS (DELETE FROM taktwerk_value v USING unnest($2::timestamptz[], $3::bigint[]) AS t(at, tick) \
         WHERE v.node = $1 AND v.time = t.at AND v.ticks = t.tick AND v.time >= $4 AND v.time <= $5 \
         RETURNING node, {VALUE}), \
         noted AS (INSERT INTO taktwerk_modified (node, {VALUE}, changed_at, change, changed_by) \
         SELECT node, {VALUE}, $6, $7, $8 FROM gone ORDER BY ticks RETURNING ticks) SELECT ticks FROM noted"
    );
    // A value is found by the first of equal times.
    let unique: BTreeSet<UtcTime> = times.iter().copied().collect();
    let at: Vec<SystemTime> = unique.iter().map(|time| row::time(*time)).collect();
    let ticks: Vec<i64> = unique.iter().map(|time| time.ticks()).collect();
    let user: &str = &by.user;
    let kind = HistoryUpdateType::DELETE.0;
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&number, &at, &ticks, &row::time(*first), &row::time(*last), &by.time.ticks(), &kind, &user];
    let rows = client.query(&query, &parameters)?;
    let mut gone = rows.iter().map(|row| row.try_get(0)).collect::<Result<BTreeSet<i64>, _>>()?;
    Ok(times.iter().map(|time| gone.remove(&time.ticks())).collect())
}

/// Deletes some modified values of a span. Returns their number: 0 if none are left.
pub(super) fn delete_modified(
    client: &mut Client,
    node: &NodeKey,
    span: Span,
) -> Result<u64, postgres::Error> {
    let query = "DELETE FROM taktwerk_modified WHERE id IN (SELECT id FROM taktwerk_modified WHERE node = \
                 (SELECT id FROM taktwerk_node WHERE key = $1) AND ticks BETWEEN $2 AND $3 LIMIT $4)";
    let key: &str = node;
    client.execute(query, &[&key, &span.first.ticks(), &span.last.ticks(), &DELETED_AT_ONCE])
}

/// Changes values of Variables, given by number: all of them or none.
pub(super) fn update(
    client: &mut Client,
    nodes: &[i32],
    perform: Perform,
    values: &[(NodeKey, HistoryValue)],
    by: &Modification,
) -> Result<Vec<StatusCode>, postgres::Error> {
    let mut transaction = client.transaction()?;
    // One change of a Variable at a time, whichever server makes it. Compressed values themselves cannot be locked.
    transaction.execute("SELECT 1 FROM taktwerk_node WHERE id = ANY($1) FOR UPDATE", &[&nodes])?;
    let mut results = Vec::with_capacity(values.len());
    for (node, (_, value)) in nodes.iter().zip(values) {
        results.push(update_one(&mut transaction, *node, perform, value, by)?);
    }
    transaction.commit()?;
    Ok(results)
}

fn update_one(
    transaction: &mut Transaction<'_>,
    node: i32,
    perform: Perform,
    value: &HistoryValue,
    by: &Modification,
) -> Result<StatusCode, postgres::Error> {
    let query = format!("SELECT {VALUE} FROM taktwerk_value WHERE node = $1 AND time = $2 AND ticks = $3");
    let (time, ticks) = (row::time(value.source), value.source.ticks());
    let old = transaction.query_opt(&query, &[&node, &time, &ticks])?;
    let old = old.map(|row| row::value(&row, 0)).transpose()?;
    Ok(match (perform, old) {
        (Perform::Insert, Some(_)) => StatusCode::BAD_ENTRY_EXISTS,
        (Perform::Replace, None) => StatusCode::BAD_NO_ENTRY_EXISTS,
        (Perform::Remove, _) => StatusCode::BAD_HISTORY_OPERATION_INVALID,
        (Perform::Replace | Perform::Update, Some(old)) => {
            let kind = if perform == Perform::Update {
                HistoryUpdateType::UPDATE
            } else {
                HistoryUpdateType::REPLACE
            };
            note(transaction, node, &old, by, kind)?;
            put(transaction, node, value)?;
            StatusCode::GOOD_ENTRY_REPLACED
        }
        (Perform::Insert | Perform::Update, None) => {
            note(transaction, node, value, by, HistoryUpdateType::INSERT)?;
            put(transaction, node, value)?;
            StatusCode::GOOD_ENTRY_INSERTED
        }
    })
}

fn note(
    transaction: &mut Transaction<'_>,
    node: i32,
    value: &HistoryValue,
    by: &Modification,
    kind: HistoryUpdateType,
) -> Result<(), postgres::Error> {
    let c = Columns::of(value);
    let user: &str = &by.user;
    let query = format!(
        "INSERT INTO taktwerk_modified (node, {VALUE}, changed_at, change, changed_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    );
    let at = by.time.ticks();
    let parameters: [&(dyn ToSql + Sync); 10] =
        [&node, &c.ticks, &c.server_ticks, &c.status, &c.kind, &c.value, &c.other, &at, &kind.0, &user];
    transaction.execute(&query, &parameters)?;
    Ok(())
}
