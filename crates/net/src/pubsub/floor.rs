//! A file with the sequence numbers that a subscriber or an Action responder has received, so that messages are not
//! accepted again after a restart.

use super::PubSubError;
use core::time::Duration;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use taktwerk_files::{PRIVATE, replace};
use taktwerk_pubsub::security::ReplayFloor;
use taktwerk_types::Instant;

/// Nanoseconds between checks for changes. After a crash, messages of this time may be accepted again.
const EVERY: u64 = 1_000_000_000;

/// How often the end of a thread is checked.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Maximum length of the file: some hundred thousand writers.
const LEN_MAX: u64 = 64 << 20;

/// Waits until a thread has ended, and so has written its file, at most for this time. Returns whether it has.
pub(super) fn has_ended(thread: Option<&JoinHandle<()>>, most: Duration) -> bool {
    let end = std::time::Instant::now() + most;
    while thread.is_some_and(|thread| !thread.is_finished()) {
        if std::time::Instant::now() >= end {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    true
}

/// The file and the thread that writes it, because a disk may be slow.
#[derive(Debug)]
pub(super) struct FloorFile {
    path: PathBuf,
    write: Option<Sender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    written: Vec<u8>,
    /// Number of received messages at the last check.
    seen: u64,
    next: Instant,
}

impl FloorFile {
    /// Reads the file before the engine starts, and writes it again.
    pub(super) fn open(path: &Path) -> Result<(Self, ReplayFloor), PubSubError> {
        let fail = |reason: String| PubSubError::ReplayFloor { path: path.to_owned(), reason };
        let floor = match taktwerk_files::read_bytes(path, LEN_MAX) {
            Ok(bytes) => ReplayFloor::decode(&bytes).map_err(|error| fail(error.to_string()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReplayFloor::default(),
            Err(error) => return Err(fail(error.to_string())),
        };
        let written = floor.encode();
        // Write it now, so that an error shows at the start.
        replace(path, &written, PRIVATE).map_err(|error| fail(error.to_string()))?;
        let (write, to_write) = mpsc::channel::<Vec<u8>>();
        let theirs = path.to_owned();
        let thread = std::thread::Builder::new().name("pubsub-floor".to_owned()).spawn(move || {
            let mut has_failed = false;
            while let Ok(mut bytes) = to_write.recv() {
                // Only the newest content matters.
                while let Ok(newer) = to_write.try_recv() {
                    bytes = newer;
                }
                match replace(&theirs, &bytes, PRIVATE) {
                    Ok(()) => has_failed = false,
                    Err(error) if !std::mem::replace(&mut has_failed, true) => {
                        let path = theirs.display();
                        tracing::error!(%path, %error, "cannot save the received sequence numbers: after a restart, replayed messages may be accepted");
                    }
                    Err(_) => {}
                }
            }
        });
        let thread = thread.map_err(|source| PubSubError::Thread { thread: "replay marks'", source })?;
        let file = Self {
            path: path.to_owned(),
            write: Some(write),
            thread: Some(thread),
            written,
            seen: 0,
            next: Instant::ZERO,
        };
        Ok((file, floor))
    }

    /// Has the file written if there is something new. `seen` counts the received messages.
    pub(super) fn look(&mut self, seen: u64, now: Instant, floor: impl FnOnce() -> ReplayFloor) {
        if now < self.next || seen == self.seen {
            return;
        }
        self.seen = seen;
        self.next = Instant::from_nanos(now.as_nanos().saturating_add(EVERY));
        let bytes = floor().encode();
        if bytes != self.written
            && let Some(write) = &self.write
        {
            self.written.clone_from(&bytes);
            // The thread ends only after this sender is dropped.
            let _ = write.send(bytes);
        }
    }

    /// Writes the file for the last time.
    pub(super) fn end(mut self, floor: ReplayFloor) {
        self.next = Instant::ZERO;
        self.look(self.seen.wrapping_add(1), Instant::ZERO, || floor);
        self.write = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            let path = self.path.display();
            tracing::error!(%path, "the received sequence numbers may not have been saved");
        }
    }
}
