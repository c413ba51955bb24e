//! The tables of a history file.

use crate::file::Kind;

/// History files.
pub(super) const KIND: Kind =
    Kind { what: "history", version: 1, tables: TABLES, meanwhile: "recording goes on by itself" };

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
