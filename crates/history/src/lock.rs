//! A file belongs to one server: what two would write into it belongs to neither.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use taktwerk_server::history::StoreError;

/// Holds a file for as long as it lives. The system gives it back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    #[cfg_attr(not(test), expect(dead_code, reason = "it is held"))]
    file: File,
}

/// The file beside it that is locked. Programs that only read the database need no lock.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl FileLock {
    /// Locks a file.
    ///
    /// # Errors
    /// Another process has it, or the lock cannot be made.
    pub(crate) fn of(path: &Path) -> Result<Self, StoreError> {
        let lock = beside(path);
        let failed = |error: std::io::Error| {
            StoreError::unavailable(format!(
                "cannot lock {} with {}: {error}",
                path.display(),
                lock.display()
            ))
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(taken(path, &mut file)),
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
                tracing::warn!(
                    "{} is on a file system without locks: make sure that no other server uses it",
                    path.display()
                );
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The number only helps people: a full disk is no reason not to start.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { file })
    }
}

#[cfg(test)]
impl FileLock {
    /// Lets go of the file, as the end of the process does.
    pub(crate) fn release(&self) {
        self.file.unlock().unwrap();
    }
}

fn taken(path: &Path, file: &mut File) -> StoreError {
    let mut text = String::new();
    let read = file.take(16).read_to_string(&mut text);
    let process = read.ok().and_then(|_| text.parse::<u32>().ok());
    let who = process.map_or_else(|| "another process".to_owned(), |number| format!("process {number}"));
    StoreError::unavailable(format!(
        "{} is used by {who}: two servers cannot share it. End the other one, or name another file",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_owner_until_that_one_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("durable.db");
        let first = FileLock::of(&path).unwrap();
        let refused = FileLock::of(&path).unwrap_err().to_string();
        let owner = format!("is used by process {}", std::process::id());
        assert!(refused.contains("durable.db") && refused.contains(&owner), "{refused}");
        drop(first);
        FileLock::of(&path).unwrap();
    }

    #[test]
    fn what_stands_in_the_lock_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        std::fs::write(beside(&path), "x".repeat(100)).unwrap();
        let _first = FileLock::of(&path).unwrap();
        let written = std::fs::read_to_string(beside(&path)).unwrap();
        assert_eq!(written, std::process::id().to_string());
        std::fs::write(beside(&path), "nonsense").unwrap();
        assert!(FileLock::of(&path).unwrap_err().to_string().contains("another process"));
        let in_no_folder = folder.path().join("none").join("history.db");
        assert!(FileLock::of(&in_no_folder).unwrap_err().to_string().contains("cannot lock"));
    }
}
