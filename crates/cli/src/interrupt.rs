//! SIGINT and SIGTERM: the first one requests the command to end and print what it has, the second one ends it at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the command was interrupted.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// Turns exceeding the file size limit (`ulimit -f`, `LimitFSIZE=`) into a failed write. Without a handler, SIGXFSZ
/// would end the process. The flag is not used.
pub(crate) fn survive_file_size_limits() -> Result<(), Failure> {
    match flag::register(SIGXFSZ, Arc::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Environment(format!("cannot catch signals: {error}"))),
    }
}

impl Interrupt {
    /// Installs handlers for the signals.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let failed = |error| Failure::Environment(format!("cannot catch signals: {error}"));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown handler must check the flag before this signal sets it.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked)).map_err(failed)?;
            flag::register(signal, Arc::clone(&asked)).map_err(failed)?;
        }
        Ok(Self(asked))
    }

    /// Without handlers: signals have their default action.
    pub(crate) fn uncaught() -> Self {
        Self(Arc::default())
    }

    /// The flag, which a signal sets.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether a signal was received.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
