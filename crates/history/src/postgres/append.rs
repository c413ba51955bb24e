//! Adds values.

use super::Writer;
use super::row::Columns;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Transaction};
use std::collections::BTreeSet;
use taktwerk_server::history::{HistoryValue, NodeKey};
use taktwerk_types::{StatusCode, Variant};

/// Marks the gap after the last value if the previous process was not shut down properly.
pub(super) fn mark_gaps(client: &mut Client, owner: &str) -> Result<(), postgres::Error> {
    let rows = client.query(
        "SELECT n.id, (SELECT max(ticks) FROM taktwerk_value v WHERE v.node = n.id AND v.time = \
         (SELECT max(time) FROM taktwerk_value w WHERE w.node = n.id)) FROM taktwerk_node n WHERE recorded_by = $1",
        &[&owner],
    )?;
    if !rows.is_empty() {
        tracing::warn!(
            variables = rows.len(),
            "history: the process that recorded last was not shut down properly; up to its last second of values is missing \
             and marked Bad_DataLost"
        );
    }
    let mut transaction = client.transaction()?;
    let now = crate::now().ticks();
    for row in rows {
        let Some(ticks) = row.try_get::<_, Option<i64>>(1)? else { continue };
        for source in crate::gap(ticks, now) {
            let status = StatusCode::BAD_DATA_LOST;
            let value = HistoryValue { source, server: source, status, value: Variant::Empty };
            put(&mut transaction, row.try_get(0)?, &value)?;
        }
    }
    transaction.execute("UPDATE taktwerk_node SET recorded_by = NULL WHERE recorded_by = $1", &[&owner])?;
    transaction.commit()
}

const INSERT: &str = "INSERT INTO taktwerk_value (node, time, ticks, server_ticks, status, type, value, other) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (node, time, ticks) DO UPDATE SET \
                      server_ticks = excluded.server_ticks, status = excluded.status, type = excluded.type, \
                      value = excluded.value, other = excluded.other";

/// Adds or replaces one value.
pub(super) fn put(
    transaction: &mut Transaction<'_>,
    node: i32,
    value: &HistoryValue,
) -> Result<(), postgres::Error> {
    let c = Columns::of(value);
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&node, &c.time, &c.ticks, &c.server_ticks, &c.status, &c.kind, &c.value, &c.other];
    transaction.execute(INSERT, &parameters)?;
    Ok(())
}

const TYPES: [Type; 8] = [
    Type::INT4,
    Type::TIMESTAMPTZ,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT2,
    Type::FLOAT8,
    Type::BYTEA,
];

/// Copies values into a table.
fn copy<'a>(
    transaction: &mut Transaction<'_>,
    table: &str,
    values: impl Iterator<Item = (i32, &'a HistoryValue)>,
) -> Result<(), postgres::Error> {
    let statement = format!(
        "COPY {table} (node, time, ticks, server_ticks, status, type, value, other) FROM STDIN BINARY"
    );
    let mut writer = BinaryCopyInWriter::new(transaction.copy_in(&statement)?, &TYPES);
    for (node, value) in values {
        let c = Columns::of(value);
        writer.write(&[&node, &c.time, &c.ticks, &c.server_ticks, &c.status, &c.kind, &c.value, &c.other])?;
    }
    writer.finish()?;
    Ok(())
}

/// The numbers of Variables. New Variables get a number and this owner.
pub(super) fn numbers(
    client: &mut Client,
    writer: &mut Writer,
    owner: &str,
    values: &[(NodeKey, HistoryValue)],
) -> Result<Vec<i32>, postgres::Error> {
    let mut missing: BTreeSet<&str> = BTreeSet::new();
    missing.extend(values.iter().map(|(key, _)| &**key).filter(|key| !writer.nodes.contains_key(*key)));
    if !missing.is_empty() {
        let keys: Vec<&str> = missing.into_iter().collect();
        client.execute(
            "INSERT INTO taktwerk_node (key, owner) SELECT unnest($1::text[]), $2 ON CONFLICT (key) DO NOTHING",
            &[&keys, &owner],
        )?;
        for row in client.query("SELECT key, id FROM taktwerk_node WHERE key = ANY($1)", &[&keys])? {
            writer.nodes.insert(row.try_get::<_, &str>(0)?.into(), row.try_get(1)?);
        }
    }
    Ok(values.iter().map(|(key, _)| writer.nodes.get(key).copied().unwrap_or_default()).collect())
}

/// Adds values of Variables that `owner` records. Values with the same time are replaced.
pub(super) fn append(
    client: &mut Client,
    writer: &mut Writer,
    owner: &str,
    values: &[(NodeKey, HistoryValue)],
) -> Result<(), postgres::Error> {
    let nodes = numbers(client, writer, owner, values)?;
    let new: Vec<i32> = nodes
        .iter()
        .copied()
        .filter(|node| !writer.recorded.contains(node))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    if !new.is_empty() {
        client.execute(
            "UPDATE taktwerk_node SET recorded_by = $1, owner = $1 WHERE id = ANY($2)",
            &[&owner, &new],
        )?;
        writer.recorded.extend(new);
    }
    let pairs = || nodes.iter().copied().zip(values.iter().map(|(_, value)| value));
    let mut transaction = client.transaction()?;
    match copy(&mut transaction, "taktwerk_value", pairs()) {
        Ok(()) => return transaction.commit(),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => transaction.rollback()?,
        Err(error) => return Err(error),
    }
    // Some values exist already: sent before a connection broke, or with the same time.
    let mut transaction = client.transaction()?;
    transaction.batch_execute(
        "CREATE TEMPORARY TABLE taktwerk_new (LIKE taktwerk_value, n bigint GENERATED ALWAYS AS IDENTITY) ON COMMIT DROP",
    )?;
    copy(&mut transaction, "taktwerk_new", pairs())?;
    transaction.batch_execute(
        "INSERT INTO taktwerk_value SELECT DISTINCT ON (node, time, ticks) node, time, ticks, server_ticks, status, \
         type, value, other FROM taktwerk_new ORDER BY node, time, ticks, n DESC ON CONFLICT (node, time, ticks) DO \
         UPDATE SET server_ticks = excluded.server_ticks, status = excluded.status, type = excluded.type, \
         value = excluded.value, other = excluded.other",
    )?;
    transaction.commit()
}
