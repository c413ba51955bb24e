//! SIGINT and SIGTERM: the first asks the command to end and print what it has, the second ends it at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants the command to end.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// Lets a file that has reached the limit on its size (`ulimit -f`, `LimitFSIZE=`) be a write that fails, and not the end of the
/// command: the signal is caught so that the system does not end it, and nobody looks at the flag.
pub(crate) fn survive_file_size_limits() -> Result<(), Failure> {
    match flag::register(SIGXFSZ, Arc::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Environment(format!("cannot catch signals: {error}"))),
    }
}

impl Interrupt {
    /// Catches the signals from now on.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let failed = |error| Failure::Environment(format!("cannot catch signals: {error}"));
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the shutdown looks at the flag before this signal sets it.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked)).map_err(failed)?;
            flag::register(signal, Arc::clone(&asked)).map_err(failed)?;
        }
        Ok(Self(asked))
    }

    /// One that no signal asks for: they do what the system has them do.
    pub(crate) fn uncaught() -> Self {
        Self(Arc::default())
    }

    /// What is set as soon as it is asked for.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it was asked for.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
