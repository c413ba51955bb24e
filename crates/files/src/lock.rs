//! Locks a file, or a folder, for one program: two writers would corrupt it.

use crate::resolve;
use rustix::fs::OFlags;
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Only the owner may read and write.
const PRIVATE: u32 = 0o600;

/// Holds a lock on a file until it is dropped. The system releases the lock when the process ends for any reason.
///
/// The lock is a separate file next to the locked one, whose name ends in `.lock`. Programs that only read the file need no lock.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
    /// The file system does not support locks.
    is_missing: bool,
}

/// The path of the lock file of a path without links.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl FileLock {
    /// Locks a file, which need not exist yet. All links to a file have the same lock. Use [`Self::path`] for the file, because a link
    /// may be changed.
    ///
    /// # Errors
    /// Another process holds the lock, or the lock cannot be created. The message names the file and says what to do.
    pub fn of(path: &Path) -> io::Result<Self> {
        let real = resolve(path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot lock {}: {error}", path.display()))
        })?;
        let lock = beside(&real);
        Self::take(path, real, &lock, "file")
    }

    /// Locks a directory, which must exist, for the files of one kind: with a lock file of this name in it. All links to the directory
    /// have the same lock.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_folder(folder: &Path, name: &str) -> io::Result<Self> {
        Self::take(folder, folder.to_owned(), &folder.join(name), "folder")
    }

    /// `what` is locked: a file or a folder.
    fn take(path: &Path, real: PathBuf, lock: &Path, what: &str) -> io::Result<Self> {
        let failed = |error: io::Error| {
            let (path, lock) = (path.display(), lock.display());
            let text = format!(
                "cannot lock {path} with {lock}: {error}; the server must be able to write in that folder"
            );
            io::Error::new(error.kind(), text)
        };
        let mut file = open(lock).map_err(failed)?;
        let is_missing = match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => return Err(taken(path, lock, &mut file, what)),
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => true,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        };
        make_private(&file);
        // The process id is only for the error message, so a full disk must not prevent the start.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { file, path: real, is_missing })
    }

    /// The locked file, without links; or the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A warning for the log if the file system has no locks: another program may then use the file as well.
    #[must_use]
    pub fn warning(&self, path: &Path) -> Option<String> {
        let text = || {
            format!(
                "{} is on a file system without locks: make sure that no other server uses it",
                path.display()
            )
        };
        self.is_missing.then(text)
    }

    /// Releases the lock before the drop.
    ///
    /// # Errors
    /// The error of the system.
    pub fn release(&self) -> io::Result<()> {
        self.file.unlock()
    }
}

/// Opens the lock file without following links: a link could make it write to another file.
fn open(lock: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW).bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE).custom_flags(flags);
    let file = options.open(lock)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("this is not a regular file; remove it"));
    }
    Ok(file)
}

/// Only the owner may open the lock file: anyone who can open it can lock it.
fn make_private(file: &File) {
    let is_exposed = file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    if is_exposed {
        // This fails if another user owns the file; that user can lock it anyway.
        let _ = file.set_permissions(Permissions::from_mode(PRIVATE));
    }
}

fn taken(path: &Path, lock: &Path, file: &mut File, what: &str) -> io::Error {
    let (path, lock) = (path.display(), lock.display());
    let mut text = String::new();
    let read = file.take(16).read_to_string(&mut text);
    let advice = format!("two servers cannot share it. End the other one, or name another {what}");
    let text = match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(process) if is_gone(process) => format!(
            "{path} is locked, but process {process}, which used it last, is not visible from here. Another process may hold \
             {lock}: find it with `fuser -v {lock}` and end it, or name another {what}"
        ),
        Some(process) if process == std::process::id() => {
            format!(
                "{path} is used by this process already: two of its settings name the same {what}. Name another {what} for one of them"
            )
        }
        Some(process) => format!("{path} is used by process {process}: {advice}"),
        None => format!("{path} is used by another process: {advice}"),
    };
    io::Error::new(io::ErrorKind::ResourceBusy, text)
}

/// Whether the process does not exist, as far as the system tells.
fn is_gone(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replace;

    /// A directory that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("taktwerk-lock-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn told(path: &Path) -> String {
        FileLock::of(path).unwrap_err().to_string()
    }

    /// Retries: programs started by other tests inherit all open files for a moment.
    fn taken_soon(path: &Path) -> FileLock {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            match FileLock::of(path) {
                Err(_) if std::time::Instant::now() < end => std::thread::yield_now(),
                lock => return lock.unwrap(),
            }
        }
    }

    #[test]
    fn a_file_has_one_owner_until_the_lock_is_released() {
        let folder = Folder::new("owner");
        let path = folder.0.join("durable.db");
        let first = FileLock::of(&path).unwrap();
        let refused = told(&path);
        assert!(refused.contains("durable.db is used by this process already"), "{refused}");
        std::fs::write(beside(&path), "1").unwrap();
        assert!(told(&path).contains("is used by process 1: two servers"), "{}", told(&path));
        drop(first);
        let again = taken_soon(&path);
        again.release().unwrap();
        assert_eq!(taken_soon(&path).warning(&path), None);
    }

    #[test]
    fn a_folder_has_one_owner_for_each_kind_of_files() {
        let folder = Folder::new("folder");
        let link = folder.0.with_extension("link");
        std::os::unix::fs::symlink(&folder.0, &link).unwrap();
        let of = |folder: &Path, name: &str| FileLock::of_folder(folder, name);
        let first = of(&folder.0, "jsonl.lock").unwrap();
        let refused = of(&link, "jsonl.lock").unwrap_err().to_string();
        assert!(refused.contains("name the same folder"), "{refused}");
        drop(of(&folder.0, "csv.lock").unwrap());
        drop(first);
        std::fs::remove_file(&link).unwrap();
        assert!(of(&link, "jsonl.lock").is_err(), "the folder must exist");
    }

    #[test]
    fn the_content_of_the_lock_file_does_not_matter() {
        let folder = Folder::new("text");
        let path = folder.0.join("history.db");
        std::fs::write(beside(&path), "x".repeat(100)).unwrap();
        let _first = FileLock::of(&path).unwrap();
        let written = std::fs::read_to_string(beside(&path)).unwrap();
        assert_eq!(written, std::process::id().to_string());
        std::fs::write(beside(&path), "nonsense").unwrap();
        assert!(told(&path).contains("another process"));
        assert!(told(&folder.0.join("none").join("history.db")).contains("cannot lock"));
    }

    /// A process that has ended holds no lock; the message must not name it as the holder.
    #[test]
    fn a_process_that_has_ended_is_not_named_as_the_holder() {
        let folder = Folder::new("ended");
        let path = folder.0.join("history.db");
        let _first = FileLock::of(&path).unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        std::fs::write(beside(&path), ended.id().to_string()).unwrap();
        let refused = told(&path);
        assert!(refused.contains("is not visible from here") && refused.contains("fuser -v"), "{refused}");
    }

    /// Anyone who can open a file can lock it, even read-only.
    #[test]
    fn only_the_owner_can_open_the_lock() {
        let folder = Folder::new("mode");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let path = folder.0.join("new.db");
        let _new = FileLock::of(&path).unwrap();
        assert_eq!(mode(&beside(&path)), PRIVATE);
        let path = folder.0.join("old.db");
        std::fs::write(beside(&path), "").unwrap();
        std::fs::set_permissions(beside(&path), Permissions::from_mode(0o644)).unwrap();
        let _old = FileLock::of(&path).unwrap();
        assert_eq!(mode(&beside(&path)), PRIVATE);
    }

    /// Two names of one file use one lock, and a link in place of the lock file is never followed for writing.
    #[test]
    fn links_lead_to_the_same_lock_and_to_no_other_file() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new("links");
        let (path, link) = (folder.0.join("history.db"), folder.0.join("other.db"));
        std::fs::write(&path, "data").unwrap();
        symlink(&path, &link).unwrap();
        let first = FileLock::of(&path).unwrap();
        assert!(told(&link).contains("is used by"), "{}", told(&link));
        // Also after the file was replaced through a link in another directory, and if the link was there before the file.
        let (early, other) = (folder.0.join("early.db"), folder.0.join("other"));
        std::fs::create_dir(&other).unwrap();
        let far = other.join("far.db");
        symlink(&early, &far).unwrap();
        let second = FileLock::of(&far).unwrap();
        for (link, path) in [(&link, &path), (&far, &early)] {
            replace(link, b"new data", PRIVATE).unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), "new data");
            assert!(told(link).contains("is used by") && told(path).contains("is used by"), "{}", told(link));
        }
        assert_eq!(second.path(), early.canonicalize().unwrap());
        drop((first, second));
        let victim = folder.0.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let path = folder.0.join("alarms.bin");
        symlink(&victim, beside(&path)).unwrap();
        assert!(told(&path).contains("cannot lock"), "{}", told(&path));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn a_pipe_is_refused_as_lock_file() {
        let folder = Folder::new("pipe");
        let path = folder.0.join("history.db");
        assert!(std::process::Command::new("mkfifo").arg(beside(&path)).status().unwrap().success());
        assert!(told(&path).contains("not a regular file"));
    }
}
