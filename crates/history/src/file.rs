//! Opening of SQLite files and their error messages, common to all stores of this crate.

use rusqlite::Connection;
use std::path::Path;
use taktwerk_server::history::StoreError;

/// A kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// What it holds, such as `history`.
    pub(crate) what: &'static str,
    /// `PRAGMA user_version` of files that this version reads and writes.
    pub(crate) version: i64,
    /// The tables of a new file.
    pub(crate) tables: &'static str,
    /// What happens until the file can be written again; appended to "Free some space;".
    pub(crate) meanwhile: &'static str,
}

impl Kind {
    /// A failure of the database.
    pub(crate) fn failed(self, path: &Path, error: &rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode as E;
        let (path, meanwhile, what) = (path.display(), self.meanwhile, self.what);
        match error.sqlite_error_code() {
            Some(E::DiskFull) => StoreError::unavailable(format!(
                "cannot write {path}: the disk is full. Free some space; {meanwhile}"
            )),
            Some(E::SystemIoFailure) => StoreError::unavailable(format!(
                "cannot write {path}: the system reports {error}. Check the disk, and the limit on the size of files; \
                 {meanwhile}"
            )),
            Some(E::DatabaseCorrupt) => StoreError::corrupted(format!(
                "{path} is damaged: {error}. Restore it from a backup, or save what is left with `sqlite3 {path} .recover`"
            )),
            Some(E::NotADatabase) => StoreError::corrupted(format!(
                "{path} is not a {what} file. Move it away, or name another file"
            )),
            _ => StoreError::unavailable(format!("cannot use {path}: {error}")),
        }
    }

    /// A failure when a file is opened.
    pub(crate) fn not_opened(self, path: &Path, error: &rusqlite::Error) -> StoreError {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) || path.is_dir() {
            return StoreError::mistake(self.failed(path, error).message);
        }
        Self { meanwhile: "it can be opened then", ..self }.failed(path, error)
    }

    /// Creates the tables of a new file, or checks the format of an existing one.
    pub(crate) fn prepare(self, connection: &Connection, path: &Path) -> Result<(), StoreError> {
        let error = |error: rusqlite::Error| self.not_opened(path, &error);
        connection.pragma_update(None, "journal_mode", "WAL").map_err(error)?;
        // Every commit is on the disk when it returns.
        connection.pragma_update(None, "synchronous", "FULL").map_err(error)?;
        let known: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(error)?;
        let Self { what, version, tables, .. } = self;
        if known == version {
            return Ok(());
        }
        if known != 0 {
            return Err(StoreError::mistake(format!(
                "{} has format {known}, this version reads {what} files of format {version}. Use the version that wrote it, or \
                 name another file",
                path.display()
            )));
        }
        let count = "SELECT count(*) FROM sqlite_master";
        if connection.query_row(count, [], |row| row.get::<_, i64>(0)).map_err(error)? > 0 {
            return Err(StoreError::mistake(format!(
                "{} is a SQLite file of another program. Name another {what} file",
                path.display()
            )));
        }
        let script = format!("BEGIN IMMEDIATE; {tables} PRAGMA user_version = {version}; COMMIT;");
        connection.execute_batch(&script).map_err(error)
    }
}
