//! Locks the database for one server and restricts its files to their owner.

use std::path::Path;
use taktwerk_files::FileLock;
use taktwerk_server::history::StoreError;

/// Locks a database.
///
/// # Errors
/// Another process holds the lock, or the lock cannot be created.
pub(crate) fn lock(path: &Path) -> Result<FileLock, StoreError> {
    let lock = FileLock::of(path).map_err(|error| StoreError::unavailable(error.to_string()))?;
    if let Some(warning) = lock.warning(path) {
        tracing::warn!("{warning}");
    }
    Ok(lock)
}

/// Creates the file of a new database so that only its owner can read it. SQLite gives its auxiliary files the same permissions.
///
/// # Errors
/// The file cannot be created.
pub(crate) fn make_private(path: &Path) -> Result<(), StoreError> {
    taktwerk_files::create_private(path)
        .map_err(|error| StoreError::unavailable(format!("cannot create {}: {error}", path.display())))
}
