//! Files that are whole or not there: written beside their place, flushed, then renamed; read with a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// Everybody who may see the folder.
    Public,
    /// Its owner only (mode 0600).
    Private,
}

/// Distinguishes the temporary files of one process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Writes a file so that a crash at any moment leaves the old file or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8], secrecy: Secrecy) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}-{count}.tmp", std::process::id()));
    let result = write_new(&temporary, bytes, secrecy).and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        // Nothing more can be done about it if even this fails; readers skip the name.
        let _ = std::fs::remove_file(&temporary);
    }
    result?;
    sync_folder(folder)
}

fn write_new(path: &Path, bytes: &[u8], secrecy: Secrecy) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if secrecy == Secrecy::Private { 0o600 } else { 0o644 });
    }
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes renames and removals in a folder last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Removes a file; that it is not there any more is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    path.parent().map_or(Ok(()), sync_folder)
}

/// Reads a regular file of at most `max` bytes. `None` if it is longer.
pub(crate) fn read(path: &Path, max: usize) -> io::Result<Option<Vec<u8>>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= max).then_some(bytes))
}
