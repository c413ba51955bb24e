//! Finds the file that a path leads to, so that all names of a file have the same lock and the same content.

use std::io;
use std::path::{Path, PathBuf};

/// Most links that are followed, as in Linux.
const LINKS_MAX: usize = 40;

/// The absolute path of a file, without links. The file need not exist, but its directory must. If the path is a link without a
/// target, this is the missing target.
///
/// # Errors
/// The directory does not exist or cannot be searched, or the system does not allow to follow a link.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // The system checks links in directories that everyone can write to, canonicalize does not.
        match std::fs::metadata(&path) {
            Ok(_) => return path.canonicalize(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let name = path.file_name().ok_or_else(no_name)?;
        let directory = directory(&path).canonicalize()?;
        let here = directory.join(name);
        match std::fs::read_link(&here) {
            Ok(target) => path = directory.join(target),
            Err(_) => return Ok(here),
        }
    }
    Err(io::Error::other("too many links lead from one to the next"))
}

/// The directory of a file.
pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn no_name() -> io::Error {
    io::Error::other("the path does not end in a file name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn all_names_lead_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let other = root.join("other");
        std::fs::create_dir(&other).unwrap();
        symlink(&other, root.join("directory")).unwrap();
        symlink("../file", other.join("relative")).unwrap();
        symlink("directory/relative", root.join("chain")).unwrap();
        symlink(other.join("absolute"), root.join("loop")).unwrap();
        symlink(root.join("loop"), other.join("absolute")).unwrap();
        symlink("missing/file", root.join("nowhere")).unwrap();
        let file = root.join("file");
        // First without the file, then with it.
        for _ in 0..2 {
            for name in ["file", "other/../file", "directory/relative", "other/relative", "chain"] {
                assert_eq!(resolve(&root.join(name)).unwrap(), file, "{name}");
            }
            std::fs::write(&file, "content").unwrap();
        }
        for name in ["missing/file", "nowhere", "loop", "file/inside", "other/missing/.."] {
            assert!(resolve(&root.join(name)).is_err(), "{name}");
        }
    }
}
