//! Opens files of other programs safely.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file.
///
/// # Errors
/// The path is not a regular file, or cannot be opened.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    // Check first: opening a device may have side effects.
    if !std::fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    open_checked(path)
}

/// Opens the path without blocking: it may have been replaced by a pipe, and opening a pipe blocks.
fn open_checked(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

fn no_file() -> io::Error {
    io::Error::other("is not a regular file; name a file, not a directory or pipe")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread::spawn;
    use std::time::Duration;

    #[test]
    fn a_pipe_that_replaces_a_file_is_rejected_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (tell, told) = mpsc::channel();
        let (at, again) = (path.clone(), path.clone());
        spawn(move || tell.send(open_checked(&at).map(|_| ())));
        let error = told.recv_timeout(Duration::from_secs(20)).expect("it must not wait").unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        assert!(open_regular(&again).is_err());
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(open_regular(&file).is_ok());
    }
}
