//! Nonce sequence numbers, reserved in a file before they are used.
//!
//! A configured key outlives the process, so a restarted process must not begin with the first number again. A nonce
//! that is used twice reveals what AES-CTR encrypts, and receivers reject an old number as a replay (Part 14 §7.2.3,
//! §7.2.4.4.3.2). So ranges of numbers are reserved: the file holds the start of the next range, and it is synced to
//! disk before a number of the range is used. Unused numbers of a range are skipped after a restart. Processes that
//! share the file share the numbers.

use core::ops::Range;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use taktwerk_files::{PRIVATE, read_text, replace, resolve};

/// First bytes of the file.
const HEAD: &str = "taktwerk nonces 1 next ";
/// Maximum length of the file, which has one line.
const LEN_MAX: u64 = 1 << 10;
/// Size of a range: the first one of a process, which may be short-lived, and the following ones.
const FIRST: u32 = 4_096;
const MORE: u32 = 65_536;

/// A file in which nonce numbers are reserved. Clones use the same file.
#[derive(Debug, Clone)]
pub struct NonceFile {
    path: PathBuf,
    has_reserved: bool,
}

impl NonceFile {
    /// The file need not exist yet; its folder must.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), has_reserved: false }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks whether numbers can be reserved, without reserving any.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn check(&self) -> io::Result<()> {
        self.locked(|next| {
            is_left(next)?;
            Ok(next)
        })
        .map(|_| ())
    }

    /// Reserves the next range. It is on the disk when this returns.
    ///
    /// # Errors
    /// The file cannot be read or written, has other content, or all 2^32 numbers are used.
    pub fn reserve(&mut self) -> io::Result<Range<u32>> {
        let len = if self.has_reserved { MORE } else { FIRST };
        let mut reserved = 0..0;
        self.locked(|next| {
            is_left(next)?;
            reserved = next..next.saturating_add(len);
            Ok(reserved.end)
        })?;
        self.has_reserved = true;
        Ok(reserved)
    }

    /// Replaces the number in the file under a lock against other processes.
    fn locked(&self, change: impl FnOnce(u32) -> io::Result<u32>) -> io::Result<u32> {
        // Processes may use different links to the file.
        let path = resolve(&self.path)?;
        let folder = File::open(path.parent().unwrap_or(Path::new("/")))?;
        // Lock the folder, because each change replaces the file. Closing it releases the lock.
        folder.lock()?;
        let next = match read_text(&path, LEN_MAX) {
            Ok(text) => parse(&text)?,
            // 0 is the initial value of a counter that was never used; the first number is 1.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 1,
            Err(error) => return Err(error),
        };
        let next = change(next)?;
        replace(&path, format!("{HEAD}{next}\n").as_bytes(), PRIVATE)?;
        Ok(next)
    }
}

fn parse(text: &str) -> io::Result<u32> {
    let number = text.strip_prefix(HEAD).and_then(|rest| rest.trim_end().parse().ok());
    number.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "this is not a file of nonce numbers; remove it only if nothing was ever sent with the key",
        )
    })
}

fn is_left(next: u32) -> io::Result<()> {
    if next < u32::MAX {
        return Ok(());
    }
    let used =
        "all nonce numbers of the key are used; make a new key for the security group and remove this file";
    Err(io::Error::new(io::ErrorKind::QuotaExceeded, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_reserved_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plant.keys.nonces");
        let reserve_some = |path: PathBuf| {
            let mut file = NonceFile::new(path);
            (0..5).map(|_| file.reserve().unwrap()).collect::<Vec<_>>()
        };
        // Half of the processes use a link, which leads to the file before that exists.
        let other = tempfile::tempdir().unwrap();
        let link = other.path().join("link.nonces");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let path = if number % 2 == 0 { path.clone() } else { link.clone() };
                std::thread::spawn(move || reserve_some(path))
            })
            .collect();
        let mut all: Vec<Range<u32>> = Vec::new();
        for thread in threads {
            let of_one = thread.join().unwrap();
            assert!(of_one.windows(2).all(|two| two[0].end <= two[1].start), "a process only counts up");
            all.extend(of_one);
        }
        all.extend(reserve_some(path.clone()));
        all.extend(reserve_some(link.clone()));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        all.sort_by_key(|range| range.start);
        assert_eq!(all[0].start, 1);
        assert!(all.windows(2).all(|two| two[0].end == two[1].start), "{all:?}");
        assert_eq!(all[0].len(), FIRST as usize);
        NonceFile::new(&path).check().unwrap();
        assert_eq!(NonceFile::new(&path).reserve().unwrap().start, all.last().unwrap().end);
    }

    #[test]
    fn the_end_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nonces");
        std::fs::write(&path, format!("{HEAD}4294967290\n")).unwrap();
        let mut file = NonceFile::new(&path);
        assert_eq!(file.reserve().unwrap(), 4_294_967_290..u32::MAX);
        assert_eq!(file.reserve().unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        assert!(file.check().is_err());
        for other in ["", "taktwerk nonces 1 next ", "taktwerk nonces 1 next -3", "group = 1"] {
            std::fs::write(&path, other).unwrap();
            assert_eq!(file.reserve().unwrap_err().kind(), io::ErrorKind::InvalidData, "{other:?}");
        }
        assert!(NonceFile::new(folder.path().join("no/nonces")).reserve().is_err());
        // A file without an end, or a pipe without a writer, must not block.
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let endless = folder.path().join("endless");
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        for path in [pipe, endless] {
            assert!(NonceFile::new(&path).reserve().unwrap_err().to_string().contains("name a regular file"));
            assert!(super::super::floor::FloorFile::open(&path).is_err());
        }
    }
}
