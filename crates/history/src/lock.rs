//! Locks the database for one server and restricts its files to their owner.

use std::io;
use std::path::Path;
use taktwerk_files::FileLock;
use taktwerk_server::history::StoreError;

/// The system's error for a disk that fails; the standard library has no kind for it.
const EIO: i32 = 5;

/// Locks a database.
///
/// # Errors
/// Another process holds the lock, or the lock cannot be created.
pub(crate) fn lock(path: &Path) -> Result<FileLock, StoreError> {
    let lock = FileLock::of(path).map_err(|error| of_io(&error, error.to_string()))?;
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
        .map_err(|error| of_io(&error, format!("cannot create {}: {error}", path.display())))
}

/// A failure at the start. Only a full or broken disk passes by itself.
fn of_io(error: &io::Error, message: String) -> StoreError {
    use io::ErrorKind as E;
    match error.kind() {
        E::StorageFull | E::QuotaExceeded | E::FileTooLarge | E::ReadOnlyFilesystem => {
            StoreError::unavailable(format!("{message}. Free some space, or check the disk"))
        }
        _ if error.raw_os_error() == Some(EIO) => StoreError::unavailable(message),
        _ => StoreError::mistake(message),
    }
}
