//! Creates the tables.

use super::timescale;
use postgres::Client;

const SCHEMA: &str = include_str!("schema.sql");

/// Whether the tables exist in their present form: the last index of the schema, and the last column that was added to a table.
const IS_COMPLETE: &str = "SELECT to_regclass('taktwerk_event_event_id') IS NOT NULL AND EXISTS (SELECT FROM pg_attribute \
                           WHERE attrelid = to_regclass('taktwerk_node') AND attname = 'owner' AND NOT attisdropped)";
/// Whether the last column exists, or the table that has it is missing.
const HAS_OWNER: &str = "SELECT to_regclass('taktwerk_node') IS NULL OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = \
                         to_regclass('taktwerk_node') AND attname = 'owner' AND NOT attisdropped)";

/// The first of these tables exist in every version.
const TABLES: [&str; 5] =
    ["taktwerk_node", "taktwerk_value", "taktwerk_modified", "taktwerk_annotation", "taktwerk_event"];
const FIRST: usize = 4;

/// The missing tables of a history that exists, with the name of the database: they were dropped or renamed. New ones would hide
/// that, and the values in a renamed one.
pub(super) fn missing(client: &mut Client) -> Result<Option<String>, postgres::Error> {
    let query =
        "SELECT name, current_database() FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let rows = client.query(query, &[&TABLES.as_slice()])?;
    let mut missing: Vec<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    // An earlier version had fewer tables.
    let is_upgrade = !client.query_one(HAS_OWNER, &[])?.try_get::<_, bool>(0)?;
    if is_upgrade {
        missing.retain(|name| TABLES.iter().take(FIRST).any(|first| first == name));
    }
    let all = if is_upgrade { FIRST } else { TABLES.len() };
    let Some(row) = rows.first().filter(|_| !missing.is_empty() && missing.len() < all) else {
        return Ok(None);
    };
    let (database, names) = (row.try_get::<_, &str>(1)?, missing.join(", "));
    Ok(Some(format!(
        "the database {database:?} has a history without the table {names}: it was dropped or renamed. Rename it back, or restore it from a backup. For an empty history, drop the other tables with names that begin with taktwerk_"
    )))
}

/// Creates missing tables and columns. Returns whether old values are compressed.
pub(super) fn prepare(client: &mut Client) -> Result<bool, postgres::Error> {
    // The lock keeps servers that start at the same time from creating the same tables.
    client.batch_execute("SELECT pg_advisory_lock(7811)")?;
    let result = create(client).and_then(|()| timescale::prepare(client));
    client.batch_execute("SELECT pg_advisory_unlock(7811)")?;
    result
}

fn create(client: &mut Client) -> Result<(), postgres::Error> {
    // Statements that change nothing lock the tables too. They would wait for a dump of the database, and all other servers
    // would wait for them.
    if client.query_one(IS_COMPLETE, &[])?.try_get(0)? {
        return Ok(());
    }
    let created = client.batch_execute(&format!("BEGIN; SET LOCAL lock_timeout = '10s'; {SCHEMA} COMMIT"));
    if created.is_err() {
        client.batch_execute("ROLLBACK")?;
    }
    created
}
