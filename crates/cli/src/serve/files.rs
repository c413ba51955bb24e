//! Folders that clients read and write, as a configuration names them.

use super::ServeError;
use crate::failure::Failure;
use std::time::{Duration, Instant};
use taktwerk::Server;
use taktwerk::files::FileSystem;
use taktwerk_config::ConfigFile;

/// How often it is looked at what others have changed in the folders.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// The folders of a running server.
pub(super) struct Shares {
    files: FileSystem,
    next: Instant,
    /// Said once, until it works again.
    is_broken: bool,
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
        Ok(Some(Self { files, next: Instant::now() + REFRESH_EVERY, is_broken: false }))
    }

    /// Looks at the folders when it is time.
    pub(super) fn tick(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        let refreshed = self.files.refresh();
        // Counted from the end: a slow disk is not asked all the time.
        self.next = Instant::now() + REFRESH_EVERY;
        match refreshed {
            Ok(()) => self.is_broken = false,
            Err(error) if !self.is_broken => {
                self.is_broken = true;
                tracing::error!(%error, "a folder of [[files]] cannot be read; clients see what was there before");
            }
            Err(_) => {}
        }
    }
}
