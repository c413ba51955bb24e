//! Access to a directory on disk from which no path can escape: every path is walked name by name from the directory itself, and
//! symbolic links are not followed.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::SystemTime;

/// Longest name, in bytes.
const NAME_LEN_MAX: usize = 255;
/// Deepest nesting of directories.
pub(super) const DEPTH_MAX: usize = 16;
/// Names read at a time while a directory is deleted.
const NAMES_AT_A_TIME: usize = 1_000;

/// The path of a file or directory within the shared directory; its names have been checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Route(Vec<String>);

impl Route {
    /// The route of an entry in this directory; `None` if the name is invalid.
    pub(super) fn join(&self, name: &str) -> Option<Self> {
        let is_name = !name.is_empty()
            && name.len() <= NAME_LEN_MAX
            && name != "."
            && name != ".."
            && !name.chars().any(|char| matches!(char, '/' | '\\') || char.is_control());
        if !is_name || self.0.len() >= DEPTH_MAX {
            return None;
        }
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Some(Self(names))
    }

    /// The route of the parent directory, and the name in it; `None` for the shared directory itself.
    pub(super) fn split(&self) -> Option<(Self, &str)> {
        let (name, directory) = self.0.split_last()?;
        Some((Self(directory.to_vec()), name))
    }

    /// Replaces the prefix `from` by `to`; `None` if the route does not begin with it, or would be too deep.
    pub(super) fn rebased(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(from.0.as_slice())?;
        let names: Vec<String> = to.0.iter().chain(rest).cloned().collect();
        (names.len() <= DEPTH_MAX).then_some(Self(names))
    }

    /// Whether the route equals `other` or is below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

/// An entry of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) route: Route,
    pub(super) is_directory: bool,
    /// Bytes.
    pub(super) size: u64,
}

/// Metadata of a file.
pub(super) struct Stat {
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

/// The shared directory.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Without NONBLOCK, opening a named pipe would block.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

fn not_found() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Links to the directory itself are followed, because the administrator chose the path.
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    fn directory(&self, route: &Route) -> io::Result<OwnedFd> {
        let mut here = rustix::fs::openat(&self.0, ".", DIRECTORY, Mode::empty())?;
        for name in &route.0 {
            here = rustix::fs::openat(&here, name.as_str(), DIRECTORY, Mode::empty())?;
        }
        Ok(here)
    }

    /// Opens the parent directory of a route; returns it with the name.
    fn parent<'a>(&self, route: &'a Route) -> io::Result<(OwnedFd, &'a str)> {
        let (name, directory) = route.0.split_last().ok_or_else(not_found)?;
        Ok((self.directory(&Route(directory.to_vec()))?, name))
    }

    /// Opens a file.
    pub(super) fn file(&self, route: &Route, write: bool) -> io::Result<File> {
        let (directory, name) = self.parent(route)?;
        let mode = if write { OFlags::RDWR } else { OFlags::RDONLY };
        let file = File::from(rustix::fs::openat(&directory, name, FILE | mode, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(not_found());
        }
        Ok(file)
    }

    pub(super) fn create_file(&self, route: &Route) -> io::Result<()> {
        let (directory, name) = self.parent(route)?;
        let flags = FILE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o640))?;
        Ok(())
    }

    pub(super) fn create_directory(&self, route: &Route) -> io::Result<()> {
        let (directory, name) = self.parent(route)?;
        Ok(rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o750))?)
    }

    /// Deletes a file, or a directory with its content. `freed` is increased by the size of deleted files, even on failure.
    pub(super) fn delete(&self, route: &Route, freed: &mut u64) -> io::Result<()> {
        let (directory, name) = self.parent(route)?;
        delete_at(&directory, &CString::new(name)?, 0, freed)
    }

    /// Renames or moves an entry. Existing entries are not overwritten.
    pub(super) fn rename(&self, from: &Route, to: &Route) -> io::Result<()> {
        let (old, old_name) = self.parent(from)?;
        let (new, new_name) = self.parent(to)?;
        let flags = RenameFlags::NOREPLACE;
        Ok(rustix::fs::renameat_with(&old, old_name, &new, new_name, flags)?)
    }

    /// Copies a file.
    pub(super) fn copy(&self, from: &Route, to: &Route) -> io::Result<()> {
        let mut source = self.file(from, false)?;
        self.create_file(to)?;
        let copied = self.file(to, true).and_then(|mut target| io::copy(&mut source, &mut target));
        if copied.is_err() {
            // Best effort: the first error is the one to report.
            let _ = self.delete(to, &mut 0);
        }
        copied.map(drop)
    }

    pub(super) fn stat(&self, route: &Route) -> io::Result<Stat> {
        let metadata = self.file(route, false)?.metadata()?;
        Ok(Stat { size: metadata.len(), modified: metadata.modified()? })
    }

    /// Files and directories at and below a directory, up to a number. Anything else, such as a link, is skipped.
    pub(super) fn list(&self, below: &Route, max: usize) -> io::Result<Vec<Entry>> {
        let mut found: Vec<Entry> = Vec::new();
        let mut next = vec![below.clone()];
        while let Some(route) = next.pop() {
            let directory = match self.directory(&route) {
                Ok(directory) => directory,
                // It was deleted, or may not be read: skip its content.
                Err(_) if route != *below => continue,
                Err(error) => return Err(error),
            };
            let mut names = Vec::new();
            for entry in Dir::read_from(&directory)? {
                names.push(entry?.file_name().to_owned());
                if names.len() > max {
                    break;
                }
            }
            names.sort();
            for name in names {
                let Some(route) = name.to_str().ok().and_then(|name| route.join(name)) else { continue };
                let Ok(stat) = rustix::fs::statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                let is_directory = match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => true,
                    FileType::RegularFile => false,
                    _ => continue,
                };
                if found.len() >= max {
                    return Ok(found);
                }
                if is_directory {
                    next.push(route.clone());
                }
                let size = if is_directory { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
                found.push(Entry { route, is_directory, size });
            }
        }
        Ok(found)
    }
}

fn delete_at(directory: impl AsFd, name: &CStr, depth: usize, freed: &mut u64) -> io::Result<()> {
    let stat = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            *freed = freed.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        }
        return Ok(());
    }
    if depth < DEPTH_MAX {
        let inside = rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty())?;
        // A directory may have any number of entries, so names are read in portions.
        loop {
            let mut names: Vec<CString> = Vec::new();
            for entry in Dir::read_from(&inside)? {
                let entry = entry?;
                if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    names.push(entry.file_name().to_owned());
                }
                if names.len() >= NAMES_AT_A_TIME {
                    break;
                }
            }
            for name in &names {
                delete_at(&inside, name, depth + 1, freed)?;
            }
            if names.len() < NAMES_AT_A_TIME {
                break;
            }
        }
    }
    Ok(rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn route(names: &[&str]) -> Route {
        names.iter().fold(Route::default(), |route, name| route.join(name).unwrap())
    }

    /// A shared directory next to a secret.
    fn folder(name: &str) -> (std::path::PathBuf, Folder) {
        let base = std::env::temp_dir().join(format!("taktwerk-files-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir_all(base.join("shared/inner")).unwrap();
        std::fs::write(base.join("secret"), "secret").unwrap();
        std::fs::write(base.join("shared/a.txt"), "abc").unwrap();
        std::fs::write(base.join("shared/inner/b.txt"), "bc").unwrap();
        let folder = Folder::open(&base.join("shared")).unwrap();
        (base, folder)
    }

    #[test]
    fn names_that_lead_elsewhere_are_rejected() {
        let root = Route::default();
        for name in ["", ".", "..", "/", "a/b", "../secret", "a\\b", "a\0b", "a\nb", &"x".repeat(256)] {
            assert_eq!(root.join(name), None, "{name:?}");
        }
        for name in ["a", "...", "..a", " ", "ä", &"x".repeat(255)] {
            assert!(root.join(name).is_some(), "{name:?}");
        }
        let deep = (0..DEPTH_MAX).fold(root, |route, _| route.join("d").unwrap());
        assert_eq!(deep.join("d"), None);
        let (from, to) = (route(&["d"]), route(&["e", "f"]));
        assert_eq!(route(&["d", "x"]).rebased(&from, &to), Some(route(&["e", "f", "x"])));
        assert_eq!((to.rebased(&from, &to), deep.rebased(&from, &to)), (None, None));
    }

    #[test]
    fn links_are_not_followed() {
        let (base, folder) = folder("links");
        symlink(base.join("secret"), base.join("shared/link")).unwrap();
        symlink(&base, base.join("shared/up")).unwrap();
        symlink("inner", base.join("shared/sideways")).unwrap();
        for names in [&["link"][..], &["up", "secret"], &["sideways", "b.txt"], &["up", "shared", "a.txt"]] {
            let route = route(names);
            assert!(folder.file(&route, false).is_err(), "{names:?}");
            assert!(folder.file(&route, true).is_err(), "{names:?}");
            assert!(folder.stat(&route).is_err(), "{names:?}");
        }
        assert!(folder.create_file(&route(&["up", "new"])).is_err());
        assert!(folder.create_file(&route(&["link"])).is_err(), "the link's name is taken");
        assert!(folder.create_directory(&route(&["sideways", "new"])).is_err());
        assert!(folder.rename(&route(&["a.txt"]), &route(&["up", "a.txt"])).is_err());
        assert!(folder.copy(&route(&["link"]), &route(&["copy"])).is_err());
        // Deleting a link deletes only the link.
        folder.delete(&route(&["up"]), &mut 0).unwrap();
        assert!(base.join("secret").exists() && base.join("shared/a.txt").exists());
        let entries = folder.list(&Route::default(), 100).unwrap();
        let routes: Vec<_> = entries.iter().map(|entry| entry.route.0.join("/")).collect();
        assert_eq!(routes, ["a.txt", "inner", "inner/b.txt"], "no links");
        // Deleting a directory does not delete the targets of links in it.
        symlink(&base, base.join("shared/inner/up")).unwrap();
        folder.delete(&route(&["inner"]), &mut 0).unwrap();
        assert!(base.join("secret").exists() && !base.join("shared/inner").exists());
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn special_files_are_not_opened() {
        let (base, folder) = folder("kinds");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            base.join("shared/pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        // A blocking open would wait forever for the other end.
        assert!(folder.file(&route(&["pipe"]), false).is_err());
        assert!(folder.file(&route(&["inner"]), false).is_err());
        assert_eq!(folder.list(&Route::default(), 2).unwrap().len(), 2);
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn files_are_created_moved_copied_and_deleted() {
        let (base, folder) = folder("changes");
        let (new, copy, moved) = (route(&["new"]), route(&["inner", "copy"]), route(&["inner", "moved"]));
        folder.create_file(&new).unwrap();
        assert_eq!(folder.create_file(&new).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        folder.copy(&route(&["a.txt"]), &copy).unwrap();
        assert_eq!(folder.copy(&route(&["a.txt"]), &copy).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let mut text = String::new();
        folder.file(&copy, false).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), folder.stat(&copy).unwrap().size), ("abc", 3));
        folder.rename(&copy, &moved).unwrap();
        assert_eq!(folder.rename(&new, &moved).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        folder.create_directory(&route(&["inner", "deeper"])).unwrap();
        assert_eq!(folder.file(&moved, true).unwrap().metadata().unwrap().len(), 3);
        // More entries than are read at a time, one of them with a name that is not UTF-8.
        for number in 0..=NAMES_AT_A_TIME {
            std::fs::write(base.join(format!("shared/inner/deeper/{number}")), "12").unwrap();
        }
        use std::os::unix::ffi::OsStrExt;
        std::fs::write(base.join("shared/inner").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        let mut freed = 0;
        folder.delete(&route(&["inner"]), &mut freed).unwrap();
        assert_eq!(freed, 2 * (NAMES_AT_A_TIME as u64 + 1) + 2 + 3);
        assert!(folder.stat(&moved).is_err());
        std::fs::remove_dir_all(base).unwrap();
    }
}
