//! Reading files that the user names. They may be anything: `/dev/zero` has no end, and a named pipe may wait for ever.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// Opens a file that is read from its beginning to its end: a regular file, after symbolic links, or an open descriptor
/// such as `/dev/stdin`.
///
/// # Errors
/// It cannot be opened, or is a named pipe, a device or a socket.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if is_descriptor(path) {
        return File::open(path);
    }
    // Before it is opened: opening a named pipe waits for a writer.
    check(std::fs::metadata(path)?.file_type())?;
    let file = File::open(path)?;
    // Another file may have taken its place meanwhile.
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a text file of at most `max` bytes. See [`open_regular`].
///
/// # Errors
/// It cannot be read, is no regular file, is longer, or is no UTF-8.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::other(format!("the file is longer than {max} bytes")));
    }
    let is_no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "the file is no text in UTF-8");
    String::from_utf8(bytes).map_err(is_no_text)
}

/// Whether the path names an open descriptor: shells write `/dev/fd/63` for `<(command)`, which is a pipe with a writer.
fn is_descriptor(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin") || folders.iter().any(|folder| path.parent() == Some(Path::new(folder)))
}

/// A directory passes: reading it fails by itself, with the usual words.
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
        _ => "no regular file",
    }
}

#[cfg(not(unix))]
fn kind(_: FileType) -> &'static str {
    "no regular file"
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
        // The limit is within a character.
        assert_eq!(told(&path, 1), "the file is longer than 1 bytes");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(told(&path, 7), "the file is no text in UTF-8");
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
