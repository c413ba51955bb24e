//! Reading from sockets.

use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// Bytes were read; `filled` means that the buffer is full and more may be waiting.
    Bytes { count: usize, filled: bool },
    /// No bytes are available now.
    Empty,
    /// The end of the stream, or the error that broke the connection.
    End(Option<Errno>),
}

/// Reads into a buffer.
pub(crate) fn read(fd: &OwnedFd, buffer: &mut [u8]) -> Read {
    let len = buffer.len();
    loop {
        return match recv(fd, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Read::End(None),
            Ok((count, _)) => Read::Bytes { count, filled: count == len },
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Read::Empty,
            Err(error) => Read::End(Some(error)),
        };
    }
}

/// Reads up to `most` bytes and appends them to a vector.
pub(crate) fn read_behind(fd: &OwnedFd, tail: &mut Vec<u8>, most: usize) -> Read {
    // A vector at least doubles when it grows, so the cost of a chunk does not depend on the number of pieces.
    tail.reserve(tail.len().min(most).max(8 << 10));
    let room = tail.capacity() - tail.len();
    loop {
        return match recv(fd, spare_capacity(tail), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Read::End(None),
            Ok((_, count)) => Read::Bytes { count, filled: count == room },
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Read::Empty,
            Err(error) => Read::End(Some(error)),
        };
    }
}
