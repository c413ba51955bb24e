//! Replaces files atomically.

use crate::resolve::{directory, no_name, resolve};
use crate::temporary;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Only the owner may read and write.
pub const PRIVATE: u32 = 0o600;
/// Everyone may read, the owner may write.
pub const PUBLIC: u32 = 0o644;

/// Replaces a file atomically: readers find the old content or the new one, also after a crash. If the path is a link, it stays,
/// and the file that it leads to is replaced.
///
/// # Errors
/// The directory does not exist or cannot be written to, or the disk is full. The old file is then unchanged.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    Staged::write(path, content, mode)?.commit()
}

/// New content that is on the disk, in a temporary file beside the one that it will replace. Dropping it removes the temporary
/// file.
#[derive(Debug)]
pub struct Staged {
    temporary: PathBuf,
    path: PathBuf,
    /// The temporary file. It is locked.
    file: File,
    is_committed: bool,
}

impl Staged {
    /// Writes new content for a file, with these permissions. If the path is a link, the file that it leads to will be replaced. If
    /// only the owner may read the content, temporary files that killed processes left for the file are removed.
    ///
    /// # Errors
    /// The directory does not exist or cannot be written to, the path leads to something other than a regular file, or the disk is
    /// full.
    pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<Self> {
        path.file_name().ok_or_else(no_name)?;
        let path = resolve(path)?;
        // A device would be replaced by a file.
        if std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("this is not a regular file"));
        }
        if mode & 0o077 == 0 {
            temporary::remove_left(&path);
        }
        // The umask may remove bits of the mode, which is intended.
        let (temporary, file) = temporary::create(&path, mode)?;
        let mut staged = Self { temporary, path, file, is_committed: false };
        staged.file.write_all(content)?;
        staged.file.sync_all()?;
        Ok(staged)
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// The file cannot be replaced, and keeps its content; or the directory cannot be flushed to the disk.
    pub fn commit(mut self) -> io::Result<()> {
        std::fs::rename(&self.temporary, &self.path)?;
        self.is_committed = true;
        flush(directory(&self.path))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_committed {
            // Best effort: another error is the one to report.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Creates an empty file that only its owner can read and write, for a database that other code will open and fill. An existing
/// file keeps its content and its permissions: an administrator may have granted access. If the path is a link, the file that it
/// leads to is created.
///
/// # Errors
/// The file cannot be created.
pub fn create_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(resolve(path)?) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Removes a file. A missing file is not an error.
///
/// # Errors
/// The file cannot be removed, or the directory cannot be flushed to the disk.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_if_present(path)?;
    flush(directory(path))
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// New and removed names must reach the disk too: they are stored in the directory.
fn flush(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Whether users other than the owner can read or write a file.
///
/// # Errors
/// The file's metadata cannot be read.
pub fn is_exposed(path: &Path) -> io::Result<bool> {
    let permissions: Permissions = std::fs::metadata(path)?.permissions();
    Ok(permissions.mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_text;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        replace(&path, b"one", PRIVATE).unwrap();
        replace(&path, b"two", PRIVATE).unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "two");
        assert!(!is_exposed(&path).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(read_text(&path, 2).is_err());
        replace(&path, b"three", PUBLIC).unwrap();
        assert!(is_exposed(&path).unwrap());
    }

    #[test]
    fn a_new_database_is_private_and_an_existing_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("new"), folder.path().join("link"));
        std::os::unix::fs::symlink("new", &link).unwrap();
        create_private(&link).unwrap();
        assert!(!is_exposed(&target).unwrap());
        replace(&target, b"values", PUBLIC).unwrap();
        create_private(&link).unwrap();
        assert!(is_exposed(&target).unwrap() && read_text(&target, 10).unwrap() == "values");
        assert!(create_private(&folder.path().join("missing/new")).is_err());
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(&folder.path().join("no/users"), b"x", PRIVATE).is_err());
        // A directory blocks the final rename.
        let path = folder.path().join("users");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("inside"), "x").unwrap();
        assert!(replace(&path, b"x", PRIVATE).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn staged_content_replaces_nothing_until_it_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("states");
        replace(&path, b"old", PRIVATE).unwrap();
        let staged = Staged::write(&path, b"new", PRIVATE).unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "old");
        drop(staged);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // Two at the same time do not disturb each other.
        let (one, two) =
            (Staged::write(&path, b"one", PRIVATE).unwrap(), Staged::write(&path, b"two", PRIVATE).unwrap());
        two.commit().unwrap();
        one.commit().unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "one");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// A link to another file must not become a file: others use that file, and its lock.
    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        use std::os::unix::fs::symlink;
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, link) = (folder.path().join("states"), other.path().join("link"));
        symlink(&path, &link).unwrap();
        for content in ["created", "replaced"] {
            replace(&link, content.as_bytes(), PRIVATE).unwrap();
            assert_eq!(read_text(&path, 10).unwrap(), content);
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        let device = other.path().join("device");
        symlink("/dev/null", &device).unwrap();
        for path in [device.as_path(), Path::new("/dev/null")] {
            assert!(replace(path, b"x", PRIVATE).unwrap_err().to_string().contains("not a regular file"));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 2);
    }
}
