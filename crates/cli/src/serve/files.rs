//! Directories that clients read and write (`[[files]]`).

use super::ServeError;
use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;
use taktwerk::Server;
use taktwerk::files::FileSystem;
use taktwerk_config::ConfigFile;

/// Interval at which changes by other programs are detected.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// The shared directories of a running server. A thread detects changes by other programs, so that a hanging disk does
/// not block reloading or the end of the server.
pub(super) struct Shares {
    end: Arc<AtomicBool>,
    thread: Thread,
}

impl Shares {
    /// Adds the directories of a configuration below the Objects folder; `None` if it has none.
    pub(super) fn start(file: &ConfigFile, server: &Server) -> Result<Option<Self>, Failure> {
        let shares = file.shares().map_err(|error| Failure::Usage(error.to_string()))?;
        if shares.is_empty() {
            return Ok(None);
        }
        let files = FileSystem::new(server).map_err(ServeError::from)?;
        for (name, folder, options) in shares {
            files.share(&server.objects(), &name, &folder, options).map_err(|error| {
                Failure::Usage(format!(
                    "[[files]] name = \"{name}\": {error}; create the directory, or name another one"
                ))
            })?;
        }
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let builder = std::thread::Builder::new().name("files".to_owned()).stack_size(256 << 10);
        let started = builder.spawn(move || refresh(&files, &ended));
        let started =
            started.map_err(|error| Failure::Environment(format!("cannot start a thread: {error}")))?;
        Ok(Some(Self { end, thread: started.thread().clone() }))
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        // The thread is not joined, because the disk may hang.
        self.thread.unpark();
    }
}

/// Checks the directories until the end. The interval starts after each check, so that a slow disk is not busy all the
/// time.
fn refresh(files: &FileSystem, end: &AtomicBool) {
    // Log only the first failure.
    let mut is_broken = false;
    while !end.load(Ordering::Relaxed) {
        std::thread::park_timeout(REFRESH_EVERY);
        match files.refresh() {
            Ok(()) => is_broken = false,
            Err(error) if !is_broken => {
                is_broken = true;
                tracing::error!(%error, "cannot read a directory of [[files]]; clients see its previous content");
            }
            Err(_) => {}
        }
    }
}
