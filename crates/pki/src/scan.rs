//! Looking through a folder: what is there, what is broken, and whether anything has changed.

use crate::content::ContentError;
use crate::file;
use core::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that are looked at in one folder.
const FILES_MAX: usize = 10_000;

/// A file that was passed over, and why. Nothing else suffers from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

impl Problem {
    /// A problem with a file or folder.
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

/// The regular files in a folder in the order of their names. Hidden and temporary ones are left out; a folder that
/// is not there is empty.
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

/// Reads every file of a folder with `read`.
pub(crate) fn each<T>(
    folder: &Path,
    len_max: usize,
    problems: &mut Vec<Problem>,
    read: impl Fn(&[u8]) -> Result<T, ContentError>,
) -> Vec<(PathBuf, T)> {
    let mut found = Vec::new();
    for path in files(folder, problems) {
        match file::read(&path, len_max) {
            Ok(Some(bytes)) => match read(&bytes) {
                Ok(content) => found.push((path, content)),
                Err(error) => problems.push(Problem::new(&path, error)),
            },
            Ok(None) => problems.push(Problem::new(&path, format!("longer than {len_max} bytes"))),
            Err(error) => problems.push(Problem::new(&path, error)),
        }
    }
    found
}

/// When a file in one of the folders was written last, or appeared or disappeared; `None` if there are no such folders.
pub(crate) fn last_modified(folders: impl IntoIterator<Item = PathBuf>) -> Option<SystemTime> {
    let modified = |path: PathBuf| std::fs::metadata(path).ok()?.modified().ok();
    let all = folders.into_iter().flat_map(|folder| {
        let files = files(&folder, &mut Vec::new());
        files.into_iter().chain([folder]).filter_map(modified)
    });
    all.max()
}

/// A number that changes when a file in one of the folders appears, disappears or is written. Costs one `stat` per
/// file; a changed file of the same length within the clock's granularity is the only thing that it can miss.
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
