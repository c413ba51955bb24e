//! What a subscriber or a responder of Actions has received, in a file, so that nothing is taken again after a restart.

use super::PubSubError;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use taktwerk_pubsub::security::ReplayFloor;
use taktwerk_types::Instant;

/// Nanoseconds between looks at what is new: so much may be taken again after a crash.
const EVERY: u64 = 1_000_000_000;

/// The file, and the thread that writes it: a disk may be slow.
#[derive(Debug)]
pub(super) struct FloorFile {
    path: PathBuf,
    write: Option<Sender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    written: Vec<u8>,
    /// What was received when it was last looked at.
    seen: u64,
    next: Instant,
}

impl FloorFile {
    /// Reads the file for an engine that does not run yet, and will write it again.
    pub(super) fn open(path: &Path) -> Result<(Self, ReplayFloor), PubSubError> {
        let fail = |reason: String| PubSubError::ReplayFloor { path: path.to_owned(), reason };
        let floor = match std::fs::read(path) {
            Ok(bytes) => ReplayFloor::decode(&bytes).map_err(|error| fail(error.to_string()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReplayFloor::default(),
            Err(error) => return Err(fail(error.to_string())),
        };
        let written = floor.encode();
        // Whoever cannot write it learns that now, and not when it is needed.
        store(path, &written).map_err(|error| fail(error.to_string()))?;
        let (write, to_write) = mpsc::channel::<Vec<u8>>();
        let theirs = path.to_owned();
        let thread = std::thread::Builder::new().name("pubsub-floor".to_owned()).spawn(move || {
            let mut has_failed = false;
            while let Ok(mut bytes) = to_write.recv() {
                // Only the newest counts.
                while let Ok(newer) = to_write.try_recv() {
                    bytes = newer;
                }
                match store(&theirs, &bytes) {
                    Ok(()) => has_failed = false,
                    Err(error) if !std::mem::replace(&mut has_failed, true) => {
                        let path = theirs.display();
                        tracing::error!(%path, %error, "what was received cannot be written: after a restart it may be taken again");
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

    /// Has it written, if there is something new: `seen` counts what was received.
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
            // It ends only after this.
            let _ = write.send(bytes);
        }
    }

    /// Writes it for the last time.
    pub(super) fn end(mut self, floor: ReplayFloor) {
        self.next = Instant::ZERO;
        self.look(self.seen.wrapping_add(1), Instant::ZERO, || floor);
        self.write = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            let path = self.path.display();
            tracing::error!(%path, "what was received may not have been written");
        }
    }
}

/// Replaces the file as a whole.
fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(".new");
    let beside = path.with_file_name(name);
    let mut file: File =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
