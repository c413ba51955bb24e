//! A file that is replaced by a new one when it is large or old; the old ones are kept up to a number.
//!
//! `audit.jsonl` becomes `audit.jsonl.20260304T112233.123456Z`, so names sort by time. The crates for this rotate by size or by
//! time and leave the permissions of files that exist as they are; both are wanted here, and the rest is few lines.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use taktwerk_types::UtcTime;

/// When a file is replaced, and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes after which a new file begins.
    pub bytes_max: u64,
    /// Age after which a new file begins.
    pub age_max: Duration,
    /// Files that are kept, the current one included.
    pub files: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { bytes_max: 64 << 20, age_max: Duration::from_secs(24 * 3600), files: 30 }
    }
}

/// The current file.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    len: u64,
    begun: SystemTime,
    /// A write failed: the last line may be there in part.
    is_torn: bool,
    /// Something was written that may not be on the disk yet.
    is_dirty: bool,
}

impl RotatingFile {
    /// Opens a file to append to it. Only its owner can read and write it from now on, whatever it was before.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(crate::file::PRIVATE).open(path)?;
        let metadata = file.metadata()?;
        // A device or pipe is not ours to change.
        if metadata.is_file() && metadata.permissions().mode() & 0o777 != crate::file::PRIVATE {
            file.set_permissions(Permissions::from_mode(crate::file::PRIVATE))?;
        }
        let begun = begun(&metadata);
        let path = path.to_owned();
        Ok(Self { path, rotation, file, len: metadata.len(), begun, is_torn: false, is_dirty: false })
    }

    /// Appends whole lines, to a new file if the current one is full or old.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let is_old = self.begun.elapsed().is_ok_and(|age| age >= self.rotation.age_max);
        let is_full = self.len.saturating_add(lines.len() as u64) > self.rotation.bytes_max;
        if self.len > 0 && (is_old || is_full) {
            self.rotate()?;
        }
        if self.is_torn {
            // What came before ends in the middle of a line.
            self.file.write_all(b"\n")?;
            self.is_torn = false;
        }
        self.is_dirty = true;
        self.file.write_all(lines).inspect_err(|_| self.is_torn = true)?;
        self.len = self.len.saturating_add(lines.len() as u64);
        Ok(())
    }

    /// Makes sure that what was written is on the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if core::mem::take(&mut self.is_dirty) {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        let name = self.free_name();
        std::fs::rename(&self.path, &name)?;
        let old = core::mem::replace(self, Self::open(&self.path, self.rotation.clone())?);
        drop(old);
        let mut kept = self.older();
        let surplus = kept.len().saturating_sub(self.rotation.files.saturating_sub(1));
        for path in kept.drain(..surplus) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    /// A name with the present time that is not taken: behind those of all older files.
    fn free_name(&self) -> PathBuf {
        loop {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let time = UtcTime::from_unix(Duration::from_secs(since.as_secs())).to_string();
            let digits = |text: &str| text.chars().filter(|c| !matches!(c, '-' | ':')).collect::<String>();
            let second = digits(time.split(['.', 'Z']).next().unwrap_or_default());
            let name = self.with_ending(&format!("{second}.{:06}Z", since.subsec_micros()));
            // Two in one microsecond: the clock moves on.
            if !name.exists() {
                return name;
            }
        }
    }

    fn with_ending(&self, ending: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        name.into()
    }

    /// The files before this one, the oldest first.
    fn older(&self) -> Vec<PathBuf> {
        let mut prefix = OsString::from(self.path.file_name().unwrap_or_default());
        prefix.push(".");
        let prefix = prefix.to_string_lossy().into_owned();
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_older = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(ending) = name.strip_prefix(&prefix) else { return false };
            ending.len() >= 16 && ending.starts_with(|c: char| c.is_ascii_digit()) && ending.contains('Z')
        };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut older: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_older).collect();
        older.sort();
        older
    }
}

/// When a file was begun, as far as the file system knows.
fn begun(metadata: &std::fs::Metadata) -> SystemTime {
    metadata.created().or_else(|_| metadata.modified()).unwrap_or_else(|_| SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn contents(file: &RotatingFile) -> Vec<String> {
        let mut paths = file.older();
        paths.push(file.path.clone());
        paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn a_file_that_is_full_makes_room_for_a_new_one_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(folder.path().join("audit.jsonl.notes"), "not ours").unwrap();
        let rotation = Rotation { bytes_max: 10, files: 3, ..Rotation::default() };
        let mut file = RotatingFile::open(&path, rotation.clone()).unwrap();
        for number in 0..9 {
            file.append(format!("line{number}\n").as_bytes()).unwrap();
        }
        assert_eq!(contents(&file), ["line6\n", "line7\n", "line8\n"]);
        // More than fits is written nevertheless, and a restart goes on.
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        file.append(b"a long line\nand another\n").unwrap();
        file.append(b"x\n").unwrap();
        assert_eq!(contents(&file), ["line8\n", "a long line\nand another\n", "x\n"]);
        assert!(file.older().iter().all(|path| mode(path) == 0o600));
        assert!(folder.path().join("audit.jsonl.notes").exists());
    }

    #[test]
    fn a_file_that_is_old_makes_room_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation { age_max: Duration::from_millis(50), ..Rotation::default() };
        let mut file = RotatingFile::open(&folder.path().join("audit"), rotation).unwrap();
        file.append(b"one\n").unwrap();
        std::thread::sleep(Duration::from_millis(60));
        file.append(b"two\n").unwrap();
        assert_eq!(contents(&file), ["one\n", "two\n"]);
    }

    #[test]
    fn a_file_that_exists_becomes_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(&path, "before\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let mut file = RotatingFile::open(&path, Rotation::default()).unwrap();
        file.append(b"after\n").unwrap();
        file.sync().unwrap();
        assert_eq!((mode(&path), contents(&file)), (0o600, vec!["before\nafter\n".to_owned()]));
    }
}
