//! Reads directories: their files, problems, and whether anything has changed.

use crate::content::ContentError;
use core::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most files that are read in one directory.
const FILES_MAX: usize = 10_000;

/// A file that was skipped, and why. It does not affect other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Problem {
    /// A problem with a file or directory.
    #[must_use]
    pub fn new(path: &Path, what: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), what: what.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

/// The regular files in a directory, sorted by name. Hidden and temporary files are skipped; a missing directory counts as empty.
pub(crate) fn files(folder: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(Problem::new(folder, error));
            return Vec::new();
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) if is_visible(&entry.path()) && entry.path().is_file() => files.push(entry.path()),
            Ok(_) => {}
            Err(error) => problems.push(Problem::new(folder, error)),
        }
    }
    files.sort();
    if files.len() > FILES_MAX {
        problems.push(Problem::new(folder, format!("only the first {FILES_MAX} files are used")));
        files.truncate(FILES_MAX);
    }
    files
}

fn is_visible(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        !name.starts_with('.') && !name.ends_with(".tmp")
    })
}

/// Reads every file of a directory with `read`.
pub(crate) fn each<T>(
    folder: &Path,
    len_max: u64,
    problems: &mut Vec<Problem>,
    read: impl Fn(&[u8]) -> Result<T, ContentError>,
) -> Vec<(PathBuf, T)> {
    let mut found = Vec::new();
    for path in files(folder, problems) {
        match taktwerk_files::read_bytes(&path, len_max) {
            Ok(bytes) => match read(&bytes) {
                Ok(content) => found.push((path, content)),
                Err(error) => problems.push(Problem::new(&path, error)),
            },
            Err(error) => problems.push(Problem::new(&path, error)),
        }
    }
    found
}

/// The time of the last change in the directories: a file was written, created or removed. `None` if no directory exists.
pub(crate) fn last_modified(folders: impl IntoIterator<Item = PathBuf>) -> Option<SystemTime> {
    let modified = |path: PathBuf| std::fs::metadata(path).ok()?.modified().ok();
    let all = folders.into_iter().flat_map(|folder| {
        let files = files(&folder, &mut Vec::new());
        files.into_iter().chain([folder]).filter_map(modified)
    });
    all.max()
}

/// A number that changes when a file in one of the directories appears, disappears or is written. Costs one `stat` per file. It
/// misses only a change of a file that keeps its length within the clock's resolution.
pub(crate) fn fingerprint(folders: impl IntoIterator<Item = PathBuf>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in folders {
        for path in files(&folder, &mut Vec::new()) {
            path.hash(&mut hasher);
            if let Ok(metadata) = std::fs::metadata(&path) {
                metadata.len().hash(&mut hasher);
                metadata.modified().ok().hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
