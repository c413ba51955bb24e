//! Temporary files with new content, and those that killed processes left.
//!
//! A process locks its temporary file until it has replaced the other one or removed it. So a temporary file that can be locked
//! belongs to no running process, also not to one in another container.

use crate::resolve::directory;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Writing takes a moment: an older temporary file is one of a process that was killed.
const LEFTOVER_AGE: Duration = Duration::from_secs(60);
/// Most names that are tried. A name is taken if it was left by a process with the same number.
const NAMES_MAX: usize = 1_000;

/// Distinguishes the temporary files of one process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Creates a temporary file beside the one that it will replace, and locks it.
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    for _ in 0..NAMES_MAX {
        let mut name = prefix(path);
        name.push(format!("{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let temporary = directory(path).join(name);
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary) {
            Ok(file) if is_ours(&file)? => return Ok((temporary, file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => remove_if_left(&temporary),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many temporary files"))
}

/// Locks a new file. Returns whether it is still there: another process may have taken it for one that was left.
fn is_ours(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Without locks, nobody removes it.
        Err(TryLockError::Error(_)) => Ok(true),
        Ok(()) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// Removes the temporary files that killed processes left for a file. They may have secrets.
pub(crate) fn remove_left(path: &Path) {
    let prefix = prefix(path);
    for entry in std::fs::read_dir(directory(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let numbers = name.as_bytes().strip_prefix(prefix.as_bytes());
        if numbers.and_then(|numbers| str::from_utf8(numbers).ok()).is_some_and(are_numbers) {
            remove_if_left(&entry.path());
        }
    }
}

/// Removes a temporary file if no running process has locked it. Best effort: the next replacement tries again.
fn remove_if_left(temporary: &Path) {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(temporary);
    if let Ok(file) = file
        && file.try_lock().is_ok()
    {
        let _ = std::fs::remove_file(temporary);
    }
}

/// Removes the temporary files that killed processes left in a directory which belongs to the program.
pub fn remove_leftovers(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_old = || entry.metadata()?.modified()?.elapsed().map_err(io::Error::other);
        if name.to_str().is_some_and(is_temporary) && is_old().is_ok_and(|age| age > LEFTOVER_AGE) {
            // Best effort: they do no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// How the names of the temporary files for a file begin.
fn prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Whether [`create`] makes such names.
fn is_temporary(name: &str) -> bool {
    // The last part but one: `.name.12-3.tmp`.
    let at = name.trim_end_matches(".tmp").rfind('.').map(|dot| dot + 1);
    name.starts_with('.') && at.filter(|at| *at > 1).and_then(|at| name.get(at..)).is_some_and(are_numbers)
}

/// Whether this is how the names of temporary files end: the numbers of the process and of the file.
fn are_numbers(end: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = end.strip_suffix(".tmp").and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, count)| is_number(process) && is_number(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PRIVATE, Staged, replace};

    #[test]
    fn only_old_temporary_files_are_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        let names = [".a.der.12-3.tmp", ".b.der.12-3.tmp", "a.der", ".a.tmp", ".hidden.1-x.tmp", "a.1-2.tmp"];
        for name in names {
            let file = File::create(folder.path().join(name)).unwrap();
            if name != ".b.der.12-3.tmp" {
                file.set_modified(hour_ago).unwrap();
            }
        }
        remove_leftovers(folder.path());
        let left: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [false, true, true, true, true, true]);
        remove_leftovers(&folder.path().join("missing"));
    }

    /// A key or a password must not stay in a file that nobody looks at.
    #[test]
    fn a_replacement_removes_what_killed_processes_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("states");
        let names = [
            ".states.1-0.tmp",
            ".states.999999-7.tmp",
            ".states.old.1-0.tmp",
            ".other.1-0.tmp",
            ".states.tmp",
            "states.1-0.tmp",
            ".states.1-x.tmp",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "secret").unwrap();
        }
        std::os::unix::fs::symlink(
            folder.path().join("states.1-0.tmp"),
            folder.path().join(".states.2-0.tmp"),
        )
        .unwrap();
        // Another replacement has not ended.
        let staged = Staged::write(&path, b"staged", PRIVATE).unwrap();
        replace(&path, b"new", PRIVATE).unwrap();
        let left: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [false, false, true, true, true, true, true]);
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        staged.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"staged");
    }

    /// Names of a process with the same number, for example in another container.
    #[test]
    fn names_that_are_taken_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("states");
        let next = COUNT.load(Ordering::Relaxed);
        let theirs = |count: u32| folder.path().join(format!(".states.{}-{count}.tmp", std::process::id()));
        let locked: Vec<File> = (next..next + 200)
            .map(|count| {
                let file = File::create(theirs(count)).unwrap();
                file.lock().unwrap();
                file
            })
            .collect();
        replace(&path, b"new", PRIVATE).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!((next..next + 200).all(|count| theirs(count).exists()));
        drop(locked);
        // Programs started by other tests inherit all open files, and so the locks, for a moment.
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while std::fs::read_dir(folder.path()).unwrap().count() > 1 && std::time::Instant::now() < end {
            replace(&path, b"newer", PRIVATE).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn concurrent_replacements_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("states");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for round in 0..10 {
                        replace(path, format!("{thread} {round}").as_bytes(), PRIVATE).unwrap();
                    }
                });
            }
        });
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(" 9"));
        replace(&path, b"last", PRIVATE).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
