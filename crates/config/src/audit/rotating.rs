//! An append-only file with rotation by size and age. A maximum number of old files is kept.
//!
//! `audit.jsonl` becomes `audit.jsonl.20260304T112233.123456Z`, so names sort by time. Existing crates rotate by size
//! or by age, not by both, and do not restrict the permissions of existing files.

use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use taktwerk_types::UtcTime;

/// When a file is rotated, and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Size in bytes after which a new file is started.
    pub bytes_max: u64,
    /// Age after which a new file is started.
    pub age_max: Duration,
    /// Number of files to keep, including the current one.
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
    /// A write failed: the last line may be incomplete.
    is_torn: bool,
    /// Written data may not be on the disk yet.
    is_dirty: bool,
}

impl RotatingFile {
    /// Opens a file for appending, and restricts an existing file to its owner.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        // Non-blocking only while opening: a pipe without a reader is an error. Later writes wait for a slow reader.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(crate::file::PRIVATE).custom_flags(flags);
        let file = options.open(path)?;
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
        let metadata = file.metadata()?;
        // Permissions of devices and pipes are not changed.
        if metadata.is_file() && metadata.permissions().mode() & 0o777 != crate::file::PRIVATE {
            file.set_permissions(Permissions::from_mode(crate::file::PRIVATE))?;
        }
        let begun = begun(&metadata);
        // Rotation renames the file, not a link to it.
        let path = if metadata.is_file() { taktwerk_files::resolve(path)? } else { path.to_owned() };
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
            // The previous write ended in the middle of a line.
            self.file.write_all(b"\n")?;
            self.is_torn = false;
        }
        self.is_dirty = true;
        self.file.write_all(lines).inspect_err(|_| self.is_torn = true)?;
        self.len = self.len.saturating_add(lines.len() as u64);
        Ok(())
    }

    /// Syncs written data to the disk.
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

    /// An unused name with the current time, which sorts after all older files.
    fn free_name(&self) -> PathBuf {
        loop {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let time = UtcTime::from_unix(Duration::from_secs(since.as_secs())).to_string();
            let digits = |text: &str| text.chars().filter(|c| !matches!(c, '-' | ':')).collect::<String>();
            let second = digits(time.split(['.', 'Z']).next().unwrap_or_default());
            let name = self.with_ending(&format!("{second}.{:06}Z", since.subsec_micros()));
            // The name is taken within the same microsecond: try the next one.
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

    /// The rotated files, oldest first.
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

/// Creation time of a file, or its modification time.
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
    fn full_files_are_rotated_and_the_oldest_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(folder.path().join("audit.jsonl.notes"), "not ours").unwrap();
        let rotation = Rotation { bytes_max: 10, files: 3, ..Rotation::default() };
        let mut file = RotatingFile::open(&path, rotation.clone()).unwrap();
        for number in 0..9 {
            file.append(format!("line{number}\n").as_bytes()).unwrap();
        }
        assert_eq!(contents(&file), ["line6\n", "line7\n", "line8\n"]);
        // A write larger than the limit is still written, and a restart continues the file.
        let mut file = RotatingFile::open(&path, rotation).unwrap();
        file.append(b"a long line\nand another\n").unwrap();
        file.append(b"x\n").unwrap();
        assert_eq!(contents(&file), ["line8\n", "a long line\nand another\n", "x\n"]);
        assert!(file.older().iter().all(|path| mode(path) == 0o600));
        assert!(folder.path().join("audit.jsonl.notes").exists());
    }

    #[test]
    fn old_files_are_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation { age_max: Duration::from_millis(50), ..Rotation::default() };
        let mut file = RotatingFile::open(&folder.path().join("audit"), rotation).unwrap();
        file.append(b"one\n").unwrap();
        std::thread::sleep(Duration::from_millis(60));
        file.append(b"two\n").unwrap();
        assert_eq!(contents(&file), ["one\n", "two\n"]);
    }

    /// Otherwise the lock, which is beside the file, would be that of another one.
    #[test]
    fn rotation_leaves_a_link_and_renames_its_file() {
        let (folder, links) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = links.path().join("link.jsonl");
        std::os::unix::fs::symlink(folder.path().join("audit.jsonl"), &link).unwrap();
        let rotation = Rotation { bytes_max: 4, ..Rotation::default() };
        let mut file = RotatingFile::open(&link, rotation).unwrap();
        file.append(b"one\n").unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(contents(&file), ["one\n", "two\n"]);
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "two\n");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(links.path()).unwrap().count(), 1);
    }

    #[test]
    fn existing_files_become_private() {
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
