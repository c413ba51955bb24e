//! Writing files that must never be half there, and reading those that the user names.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use taktwerk_explain::{open_regular, read_text};

/// Read and written by the owner alone.
pub const PRIVATE: u32 = 0o600;
/// Read by everybody.
pub const PUBLIC: u32 = 0o644;

/// Replaces a file as a whole: whoever reads it finds the old content or the new one, also after a crash.
///
/// # Errors
/// The folder does not exist or cannot be written to, or the disk is full. The old file is there as it was then.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::other("this is no name of a file"))?;
    let mut other = std::ffi::OsString::from(".");
    other.push(name);
    other.push(format!(".{}.new", std::process::id()));
    let other: PathBuf = folder.join(other);
    // A file that was left by a process that died may be there, with whatever permissions.
    match std::fs::remove_file(&other) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_new(&other, content, mode).and_then(|()| std::fs::rename(&other, path));
    if written.is_err() {
        // What is left of it is of no use; that it cannot be removed either says nothing new.
        let _ = std::fs::remove_file(&other);
        return written;
    }
    // The name is in the folder, which has to reach the disk too.
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask may have taken bits away, and that is what it is for; it cannot have added any.
    file.write_all(content)?;
    file.sync_all()
}

/// Whether anybody but the owner can read or write a file.
///
/// # Errors
/// Nothing is known about it.
pub fn is_exposed(path: &Path) -> io::Result<bool> {
    let permissions: Permissions = std::fs::metadata(path)?.permissions();
    Ok(permissions.mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_cannot_be_written_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(&folder.path().join("no/users"), b"x", PRIVATE).is_err());
        // A folder stands in the way of the last step.
        let path = folder.path().join("users");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("inside"), "x").unwrap();
        assert!(replace(&path, b"x", PRIVATE).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
