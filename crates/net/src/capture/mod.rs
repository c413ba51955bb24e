//! Recording what goes over connections, and the keys to read it: for looking for faults, on purpose.
//!
//! Nothing here is on by itself or by the environment alone: somebody has to hand a [`Capture`] or a [`KeyLogFile`] to a
//! server or client. Together the two files give away everything that was said, passwords included.
//!
//! - [`Capture`]: a file in the format of libpcap that Wireshark opens; [`KeyLogFile`]: keys in the form that its OPC UA
//!   dissector reads; `frame`: Ethernet, IP and TCP around bytes that came out of a socket.

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

/// Longest packet, in bytes, that readers have to expect.
const SNAP_LEN: u32 = 256 << 10;
/// LINKTYPE_ETHERNET.
const LINK_TYPE: u32 = 1;

/// A file that connections are recorded in.
#[derive(Debug)]
pub struct Capture {
    file: Mutex<File>,
}

impl Capture {
    /// Begins a file, which only its owner can read. What was in it is gone.
    ///
    /// # Errors
    /// It cannot be written, belongs to somebody else, is a link, or others can read it.
    pub fn create(path: &Path) -> io::Result<Arc<Self>> {
        let mut file = private(path, false)?;
        let mut head = Vec::with_capacity(24);
        // The magic number of times in microseconds, version 2.4, no time zone, no accuracy.
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, SNAP_LEN, LINK_TYPE] {
            head.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.write_all(&head)?;
        Ok(Arc::new(Self { file: Mutex::new(file) }))
    }

    /// A connection between two addresses, of which the first has dialled.
    #[must_use]
    pub fn stream(self: &Arc<Self>, client: SocketAddr, server: SocketAddr) -> CaptureStream {
        let mut stream = CaptureStream { capture: Arc::clone(self), flow: Flow::new(client, server) };
        stream.write(|flow, out| flow.opened(out));
        stream
    }
}

/// One connection in a capture. It ends when this is dropped.
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
            // Until 2106.
            let seconds = u32::try_from(now.as_secs()).unwrap_or(u32::MAX);
            for word in [seconds, now.subsec_micros(), len, len] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            out.extend_from_slice(&frame);
        }
        let mut file = self.capture.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&out) {
            tracing::error!(%error, "the capture is incomplete");
        }
    }
}

impl Drop for CaptureStream {
    fn drop(&mut self) {
        self.write(|flow, out| flow.closed(out));
    }
}

/// Opens a file for what nobody else is to read, or begins one. One that is there has to be ours and private: somebody who
/// knows where it will be could have made it before us, or put a link there.
fn private(path: &Path, appends: bool) -> io::Result<File> {
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    options.create(true).write(!appends).append(appends).mode(0o600).custom_flags(no_links);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            io::Error::new(io::ErrorKind::PermissionDenied, "this is a link: name the file itself")
        }
        _ => error,
    })?;
    let metadata = file.metadata()?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "others can read this file: make it private (chmod 600) or name one that is not there yet",
        ));
    }
    if !appends && metadata.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}
