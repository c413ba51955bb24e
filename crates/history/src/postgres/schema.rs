//! Creates the tables.

use super::timescale;
use postgres::Client;

const SCHEMA: &str = include_str!("schema.sql");

/// Whether the tables exist in their present form: the last index of the schema, and the last column that was added to a table.
const IS_COMPLETE: &str = "SELECT to_regclass('taktwerk_event_event_id') IS NOT NULL AND EXISTS (SELECT FROM pg_attribute \
                           WHERE attrelid = to_regclass('taktwerk_node') AND attname = 'owner' AND NOT attisdropped)";

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
