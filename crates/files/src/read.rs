//! Reads files that the user names. Such a path may be anything: `/dev/zero` has no end, and opening a named pipe may block for
//! ever.

use rustix::fs::OFlags;
use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Longest file with a password, a token or keys, in bytes. Most of these files use only the first line.
pub const SECRET_LEN_MAX: u64 = 64 << 10;
/// Longest file with certificates, in bytes. The list of authorities of a system has about 250 kB.
pub const CERTIFICATES_LEN_MAX: u64 = 4 << 20;

/// Opens a file for reading from beginning to end. The path must lead to a regular file (symbolic links are followed) or name an
/// open descriptor such as `/dev/stdin`.
///
/// # Errors
/// The file cannot be opened, or is a named pipe, a device or a socket.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if is_descriptor(path) {
        return File::open(path);
    }
    // Check before opening: opening a named pipe blocks until it has a writer.
    check(std::fs::metadata(path)?.file_type())?;
    let file = open_at_once(path)?;
    // Check again: the file may have been replaced between check and open.
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens the file without waiting for the other end of a pipe.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Reads a text file of at most `max` bytes. See [`open_regular`].
///
/// # Errors
/// The file cannot be read, is not a regular file, is longer than `max`, or is not UTF-8.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let is_no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8 text");
    String::from_utf8(read_bytes(path, max)?).map_err(is_no_text)
}

/// Reads a file of at most `max` bytes. See [`open_regular`].
///
/// # Errors
/// The file cannot be read, is not a regular file, or is longer than `max`.
pub fn read_bytes(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    // Allocate the full size at once: a growing vector leaves copies of a key or password in freed memory.
    let len = file.metadata().map_or(0, |found| found.len()).min(max);
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0).saturating_add(1));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::other(format!("the file is longer than {max} bytes")));
    }
    Ok(bytes)
}

/// Whether the path names an open descriptor. Shells pass `/dev/fd/63` for `<(command)`, a pipe that has a writer.
fn is_descriptor(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin") || folders.iter().any(|folder| path.parent() == Some(Path::new(folder)))
}

/// A directory passes this check: reading it fails with the usual system message.
fn check(found: FileType) -> io::Result<()> {
    if found.is_file() || found.is_dir() {
        return Ok(());
    }
    let problem = format!("this is {}; name a regular file", kind(found));
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

#[cfg(unix)]
fn kind(found: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match found {
        _ if found.is_fifo() => "a named pipe",
        _ if found.is_socket() => "a socket",
        _ if found.is_char_device() || found.is_block_device() => "a device",
        _ => "not a regular file",
    }
}

#[cfg(not(unix))]
fn kind(_: FileType) -> &'static str {
    "not a regular file"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("taktwerk-read-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn told(path: &Path, max: u64) -> String {
        read_text(path, max).unwrap_err().to_string()
    }

    #[test]
    fn devices_and_pipes_are_refused_before_they_are_opened() {
        let folder = folder("devices");
        let device = "this is a device; name a regular file";
        assert_eq!(told(Path::new("/dev/zero"), 10), device);
        let link = folder.join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(told(&link, 10), device);
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(told(&pipe, 10), "this is a named pipe; name a regular file");
        assert!(read_text(&folder, 10).is_err(), "a directory");
        // A pipe that replaces the file between check and open: opening must not wait for a writer.
        let (tell, opened) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(open_at_once(&pipe).map(|_| ())));
        opened.recv_timeout(std::time::Duration::from_secs(20)).unwrap().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_are_read_up_to_their_limit() {
        let folder = folder("limit");
        let path = folder.join("text");
        std::fs::write(&path, "häuser").unwrap();
        assert_eq!(read_text(&path, 7).unwrap(), "häuser");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read_text(&link, 7).unwrap(), "häuser");
        // The limit falls within a character.
        assert_eq!(told(&path, 1), "the file is longer than 1 bytes");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_bytes(&path, 1).unwrap(), [0xff]);
        assert!(read_bytes(&path, 0).is_err());
        assert_eq!(told(&path, 7), "the file is not UTF-8 text");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn descriptors_are_read_with_a_limit() {
        use std::os::fd::AsRawFd;
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"abc").unwrap();
        drop(writer);
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        assert_eq!(read_text(&path, 3).unwrap(), "abc");
        let zero = File::open("/dev/zero").unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", zero.as_raw_fd()));
        assert_eq!(told(&path, 9), "the file is longer than 9 bytes");
    }
}
