//! Checks whether other users can change or read a file that matters for security.
//!
//! A key that others can read is compromised, and so is a configuration that others can write. Such files are rejected with the
//! command that corrects the permissions. The owner of a file is not checked: an administrator who is not root may configure a
//! server that runs as root.

use std::io;
use std::path::{Path, PathBuf};

/// What other users must not be able to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Change it: configurations and trust lists.
    Write,
    /// Read or change it: keys. As with other programs, the group may read a key that belongs to root.
    ReadAndWrite,
}

/// What other users can do with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exposure {
    /// They can read it.
    #[error("others can read {}; run: chmod 600 {}", .0.display(), .0.display())]
    Read(PathBuf),
    /// They can change it.
    #[error("others can change {}; run: chmod go-w {}", .0.display(), .0.display())]
    Write(PathBuf),
    /// They can replace it with another file.
    #[error("others can replace files in the folder {}; run: chmod o-w {}", .0.display(), .0.display())]
    Folder(PathBuf),
}

/// Checks a file and its parent directories. A directory that everyone can write to, without the sticky bit, lets everyone
/// replace the files in it.
///
/// # Errors
/// Bad permissions, as [`io::ErrorKind::PermissionDenied`] with an [`Exposure`]; or the metadata cannot be read.
pub fn check(path: &Path, protection: Protection) -> io::Result<()> {
    let path = std::fs::canonicalize(path)?;
    match exposure(&path, protection)? {
        Some(exposure) => Err(io::Error::new(io::ErrorKind::PermissionDenied, exposure)),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn exposure(path: &Path, protection: Protection) -> io::Result<Option<Exposure>> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let metadata = std::fs::metadata(path)?;
    let mode = metadata.mode();
    let readable = if metadata.uid() == 0 { 0o004 } else { 0o044 };
    if metadata.is_file() {
        if protection == Protection::ReadAndWrite && mode & readable != 0 {
            return Ok(Some(Exposure::Read(path.to_owned())));
        }
        if mode & 0o022 != 0 {
            return Ok(Some(Exposure::Write(path.to_owned())));
        }
    }
    for folder in path.ancestors().filter(|folder| *folder != path || metadata.is_dir()) {
        let mode = std::fs::metadata(folder)?.mode();
        if mode & 0o002 != 0 && mode & STICKY == 0 {
            return Ok(Some(Exposure::Folder(folder.to_owned())));
        }
    }
    Ok(None)
}

#[cfg(not(unix))]
fn exposure(_: &Path, _: Protection) -> io::Result<Option<Exposure>> {
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn told(path: &Path, protection: Protection) -> String {
        check(path, protection).map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn exposure_is_reported_with_the_command_that_corrects_it() {
        let above = std::env::temp_dir().join(format!("taktwerk-permissions-{}", std::process::id()));
        let folder = above.join("inside");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        fs::write(&path, "x").unwrap();
        let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let is_root = fs::metadata(&path).unwrap().uid() == 0;
        for (mode, write, read) in [
            (0o600, "fine", "fine"),
            (0o640, "fine", if is_root { "fine" } else { "chmod 600" }),
            (0o644, "fine", "chmod 600"),
            (0o604, "fine", "chmod 600"),
            (0o620, "chmod go-w", "chmod go-w"),
            (0o602, "chmod go-w", "chmod go-w"),
            (0o666, "chmod go-w", "chmod 600"),
        ] {
            set(&path, mode);
            let (can_write, can_read) =
                (told(&path, Protection::Write), told(&path, Protection::ReadAndWrite));
            assert!(can_write.contains(write), "{mode:o}: {can_write}");
            assert!(can_read.contains(read), "{mode:o}: {can_read}");
        }
        set(&path, 0o600);
        // For a link, the permissions of its target count.
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(told(&link, Protection::ReadAndWrite), "fine");
        for exposed in [&folder, &above] {
            set(exposed, 0o777);
            for path in [&path, &link, &folder] {
                assert!(told(path, Protection::Write).contains("chmod o-w"), "{}", path.display());
            }
            set(exposed, 0o1777);
            assert_eq!(
                told(&path, Protection::Write),
                "fine",
                "with the sticky bit only owners replace files"
            );
            set(exposed, 0o755);
        }
        assert_eq!(check(&folder.join("no"), Protection::Write).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&above).unwrap();
    }
}
