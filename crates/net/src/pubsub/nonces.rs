//! Sequence numbers of nonces, reserved in a file before they are used.
//!
//! A key that is given by hand outlives the process: whoever is started again with it must not begin with the first number
//! again. A nonce that is used twice gives away what AES-CTR encrypts, and receivers take an old number for a replay (Part 14
//! §7.2.3, §7.2.4.4.3.2). So ranges of numbers are reserved: the file says where the next one begins, and it reaches the disk
//! before a number of the range is used. What is not used of a range when the process ends is skipped. Processes that share
//! the file share the numbers.

use core::ops::Range;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What such a file begins with.
const HEAD: &str = "taktwerk nonces 1 next ";
/// Numbers in a range: the first one of a process, which may be short-lived, and those that follow.
const FIRST: u32 = 4_096;
const MORE: u32 = 65_536;

/// A file in which numbers are reserved. Clones reserve in the same file.
#[derive(Debug, Clone)]
pub struct NonceFile {
    path: PathBuf,
    has_reserved: bool,
}

impl NonceFile {
    /// The file need not exist yet; its folder has to.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), has_reserved: false }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether numbers can be reserved, without reserving any.
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
    /// The file cannot be read or written, holds something else, or all 2^32 numbers are used.
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

    /// Replaces the number in the file while no other process does.
    fn locked(&self, change: impl FnOnce(u32) -> io::Result<u32>) -> io::Result<u32> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new(".")))?;
        // The folder, because the file is another one after each change. Closing it gives the lock back.
        folder.lock()?;
        let next = match std::fs::read_to_string(&self.path) {
            Ok(text) => parse(&text)?,
            // 0 is what a counter begins with that was never used; the first number is 1.
            Err(error) if error.kind() == io::ErrorKind::NotFound => 1,
            Err(error) => return Err(error),
        };
        let next = change(next)?;
        let mut name = self.path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(".new");
        let beside = self.path.with_file_name(name);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(format!("{HEAD}{next}\n").as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, &self.path)?;
        folder.sync_all()?;
        Ok(next)
    }
}

fn parse(text: &str) -> io::Result<u32> {
    let number = text.strip_prefix(HEAD).and_then(|rest| rest.trim_end().parse().ok());
    number.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "this is no file with the numbers of a key; if nothing was ever sent with the key, remove it",
        )
    })
}

fn is_left(next: u32) -> io::Result<()> {
    if next < u32::MAX {
        return Ok(());
    }
    let used = "all numbers of the key are used: make a new key for the security group, and remove this file";
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
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
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
    }
}
