//! Copies a store while it is in use.

use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use taktwerk_server::history::StoreError;

/// Writes the current content of a SQLite store into a new file. A server may be writing to the store. Values that the server has
/// not committed yet, at most its last second, are not included.
///
/// # Errors
/// The store cannot be read, the new file exists already or cannot be written, or the disk is full. No new file is left then.
pub fn snapshot(store: &Path, copy: &Path) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| StoreError::unavailable(format!("{}: {error}", store.display()));
    if copy.exists() {
        return Err(StoreError::unavailable(format!("{} exists already", copy.display())));
    }
    // Without the flag that creates a file, a misspelt name is an error.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(store, flags).map_err(failed)?;
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(failed)?;
    let Some(name) = copy.to_str() else {
        return Err(StoreError::unavailable(format!(
            "the path {} is not UTF-8; name another file",
            copy.display()
        )));
    };
    connection.execute("VACUUM INTO ?1", [name]).map(drop).map_err(|error| {
        // Best effort: the first error is the one to report.
        let _ = std::fs::remove_file(copy);
        failed(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Retention, SqliteStore};

    #[test]
    fn a_store_in_use_is_copied_and_no_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("history.db"), folder.path().join("copy.db"));
        let store = SqliteStore::open(&path, Retention::default()).unwrap();
        snapshot(&path, &copy).unwrap();
        let error = snapshot(&path, &copy).unwrap_err();
        assert!(error.message.contains("exists already"), "{}", error.message);
        store.close().unwrap();
        SqliteStore::open(&copy, Retention::default()).unwrap().close().unwrap();
    }

    #[test]
    fn a_file_that_is_not_a_store_leaves_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy.db");
        assert!(snapshot(&folder.path().join("missing.db"), &copy).is_err());
        assert!(!folder.path().join("missing.db").exists());
        let broken = folder.path().join("broken.db");
        std::fs::write(&broken, [7; 8192]).unwrap();
        assert!(snapshot(&broken, &copy).is_err());
        assert!(!copy.exists());
    }
}
