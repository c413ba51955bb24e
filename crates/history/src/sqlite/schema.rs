//! The tables of a history file.

use super::failed;
use rusqlite::Connection;
use std::path::Path;
use taktwerk_server::history::StoreError;

/// `PRAGMA user_version` of files that this version reads and writes.
const VERSION: i64 = 1;

/// Times are ticks of 100 ns since 1601-01-01 UTC.
const TABLES: &str = "
CREATE TABLE node (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    -- Values of batches up to this one are in chunks.
    sealed INTEGER NOT NULL DEFAULT 0,
    -- The process that uses the file has recorded values of it.
    recorded INTEGER NOT NULL DEFAULT 0,
    -- The latest time of a value in chunks.
    newest INTEGER NOT NULL DEFAULT (-9223372036854775808)
);
CREATE TABLE batch (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB NOT NULL);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    node INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX chunk_node ON chunk (node, first);
CREATE INDEX chunk_last ON chunk (last);
CREATE TABLE modified (
    id INTEGER PRIMARY KEY,
    node INTEGER NOT NULL,
    time INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    user TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX modified_node ON modified (node, time, id);
CREATE TABLE annotation (
    node INTEGER NOT NULL,
    time INTEGER NOT NULL,
    user TEXT NOT NULL,
    at INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (node, time, user, at)
) WITHOUT ROWID;
";

/// Makes the tables of a new file, and checks an old one.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let error = |error: rusqlite::Error| failed(path, &error);
    connection.pragma_update(None, "journal_mode", "WAL").map_err(error)?;
    // Every commit is on the disk when it returns.
    connection.pragma_update(None, "synchronous", "FULL").map_err(error)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(error)?;
    match version {
        VERSION => Ok(()),
        0 => {
            let tables: i64 = connection
                .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
                .map_err(error)?;
            if tables > 0 {
                return Err(StoreError::unavailable(format!(
                    "{} is a SQLite file of another program. Name another file for the history",
                    path.display()
                )));
            }
            let script = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;");
            connection.execute_batch(&script).map_err(error)
        }
        other => Err(StoreError::unavailable(format!(
            "{} has format {other}, this version reads format {VERSION}. Use the version that wrote it, or name another \
             file",
            path.display()
        ))),
    }
}
