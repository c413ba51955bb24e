//! Folders that clients read and write, as a configuration names them.

use super::ServeError;
use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;
use taktwerk::Server;
use taktwerk::files::FileSystem;
use taktwerk_config::ConfigFile;

/// How often it is looked at what others have changed in the folders.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// The folders of a running server. Others change them too, so a thread looks at them: a disk that hangs costs this thread,
/// and neither reloading nor the end of the server.
pub(super) struct Shares {
    end: Arc<AtomicBool>,
    thread: Thread,
}

impl Shares {
    /// Shows the folders of a configuration below the Objects folder; `None` if it names none.
    pub(super) fn start(file: &ConfigFile, server: &Server) -> Result<Option<Self>, Failure> {
        let shares = file.shares().map_err(|error| Failure::Usage(error.to_string()))?;
        if shares.is_empty() {
            return Ok(None);
        }
        let files = FileSystem::new(server).map_err(ServeError::from)?;
        for (name, folder, options) in shares {
            files.share(&server.objects(), &name, &folder, options).map_err(|error| {
                Failure::Usage(format!(
                    "[[files]] name = \"{name}\": {error}; make the folder, or name another one"
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
        // It is not waited for: the disk may hang.
        self.thread.unpark();
    }
}

/// Looks at the folders until the end. Counted from the end of each look: a slow disk is not asked all the time.
fn refresh(files: &FileSystem, end: &AtomicBool) {
    // Said once, until it works again.
    let mut is_broken = false;
    while !end.load(Ordering::Relaxed) {
        std::thread::park_timeout(REFRESH_EVERY);
        match files.refresh() {
            Ok(()) => is_broken = false,
            Err(error) if !is_broken => {
                is_broken = true;
                tracing::error!(%error, "a folder of [[files]] cannot be read; clients see what was there before");
            }
            Err(_) => {}
        }
    }
}
