//! Recording of connections and their keys, for debugging.
//!
//! Recording must be requested explicitly: the application passes a [`Capture`] or a [`KeyLogFile`] to a server or
//! client. Together the two files reveal all traffic, passwords included.
//!
//! - [`Capture`]: a file in libpcap format, which Wireshark opens;
//! - [`KeyLogFile`]: keys in the format of Wireshark's OPC UA dissector;
//! - `frame`: Ethernet, IP and TCP headers around the bytes of a socket.

mod frame;
mod keys;
#[cfg(test)]
mod tests;

pub use keys::KeyLogFile;

use core::net::SocketAddr;
use frame::Flow;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Longest packet in the file, in bytes.
const SNAP_LEN: u32 = 256 << 10;
/// LINKTYPE_ETHERNET.
const LINK_TYPE: u32 = 1;

/// A capture file for connections.
#[derive(Debug)]
pub struct Capture {
    file: Mutex<File>,
}

impl Capture {
    /// Creates a file that only its owner can read, or truncates an existing one.
    ///
    /// # Errors
    /// The file cannot be written, belongs to another user, is a symbolic link, or is readable by others.
    pub fn create(path: &Path) -> io::Result<Arc<Self>> {
        let mut file = private(path, false)?;
        let mut head = Vec::with_capacity(24);
        // The magic number for timestamps in microseconds, version 2.4, time zone 0, accuracy 0.
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, SNAP_LEN, LINK_TYPE] {
            head.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.write_all(&head)?;
        Ok(Arc::new(Self { file: Mutex::new(file) }))
    }

    /// A connection between two addresses. The first one is the client.
    #[must_use]
    pub fn stream(self: &Arc<Self>, client: SocketAddr, server: SocketAddr) -> CaptureStream {
        let mut stream = CaptureStream { capture: Arc::clone(self), flow: Flow::new(client, server) };
        stream.write(|flow, out| flow.opened(out));
        stream
    }
}

/// One connection in a capture. Dropping it records the end of the connection.
#[derive(Debug)]
pub struct CaptureStream {
    capture: Arc<Capture>,
    flow: Flow,
}

impl CaptureStream {
    /// Bytes on their way to the server.
    pub fn client_says(&mut self, bytes: &[u8]) {
        self.write(|flow, out| flow.client_says(bytes, out));
    }

    /// Bytes on their way to the client.
    pub fn server_says(&mut self, bytes: &[u8]) {
        self.write(|flow, out| flow.server_says(bytes, out));
    }

    fn write(&mut self, packets: impl FnOnce(&mut Flow, &mut Vec<Vec<u8>>)) {
        let mut frames = Vec::new();
        packets(&mut self.flow, &mut frames);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let mut out = Vec::new();
        for frame in frames {
            let len = u32::try_from(frame.len()).unwrap_or(SNAP_LEN);
            // Valid until 2106.
            let seconds = u32::try_from(now.as_secs()).unwrap_or(u32::MAX);
            for word in [seconds, now.subsec_micros(), len, len] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            out.extend_from_slice(&frame);
        }
        let mut file = self.capture.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&out) {
            tracing::error!(%error, "cannot write to the capture file: the capture is incomplete");
        }
    }
}

impl Drop for CaptureStream {
    fn drop(&mut self) {
        self.write(|flow, out| flow.closed(out));
    }
}

/// Opens or creates a file that only its owner can read. An existing file must belong to this user and be private:
/// another user could have created it, or a symbolic link, at that path.
fn private(path: &Path, appends: bool) -> io::Result<File> {
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    options.create(true).write(!appends).append(appends).mode(0o600).custom_flags(no_links);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            io::Error::new(io::ErrorKind::PermissionDenied, "this is a symbolic link; name the file itself")
        }
        _ => error,
    })?;
    let metadata = file.metadata()?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "other users can read this file; make it private (chmod 600) or name a new file",
        ));
    }
    if !appends && metadata.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}
