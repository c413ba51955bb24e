//! A store that may be unavailable when the server starts.

use super::{HistoryStore, StoreError};
use core::fmt;
use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Instant;
use taktwerk_server::history::StoreCapabilities;

/// Pause between two attempts to open a store.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// How long to wait for an attempt to end. A database that hangs may accept a connection and never answer.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

type Opened = Result<Arc<dyn HistoryStore>, StoreError>;
type Open = Arc<dyn Fn() -> Opened + Send + Sync>;

/// The last attempt to open a store.
#[derive(Default)]
enum Attempt {
    #[default]
    None,
    /// It runs on a thread of its own.
    Running(Receiver<Opened>),
    Failed(Instant, StoreError),
}

/// Opens a history store, and retries if it is unavailable, as with a full disk or a database that is down. A server with it
/// starts in any case. Values wait in memory until the store is open. If the store does not answer within ten seconds, the attempt
/// continues in the background.
pub struct HistoryOpener {
    kind: &'static str,
    capabilities: StoreCapabilities,
    times: Times,
    open: Open,
    store: OnceLock<Arc<dyn HistoryStore>>,
    attempt: Mutex<Attempt>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Pause between two attempts.
    pub(super) retry_every: Duration,
    /// How long to wait for one.
    pub(super) attempt_max: Duration,
}

const TIMES: Times = Times { retry_every: RETRY_EVERY, attempt_max: ATTEMPT_MAX };

impl fmt::Debug for HistoryOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryOpener")
            .field("kind", &self.kind)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl From<Arc<dyn HistoryStore>> for HistoryOpener {
    /// An open store.
    fn from(store: Arc<dyn HistoryStore>) -> Self {
        let (kind, capabilities) = (store.kind(), store.capabilities());
        let open = || Err(StoreError::unavailable("the store is open"));
        Self {
            kind,
            capabilities,
            times: TIMES,
            open: Arc::new(open),
            store: store.into(),
            attempt: Mutex::default(),
        }
    }
}

impl HistoryOpener {
    /// Opens a store of this kind and with these capabilities. An unavailable store is logged and retried.
    ///
    /// # Errors
    /// The store cannot be used as it is configured ([`StoreError::is_mistake`]).
    pub fn open(
        kind: &'static str,
        capabilities: StoreCapabilities,
        open: impl Fn() -> Result<Arc<dyn HistoryStore>, StoreError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        Self::open_with(kind, capabilities, TIMES, open)
    }

    pub(super) fn open_with(
        kind: &'static str,
        capabilities: StoreCapabilities,
        times: Times,
        open: impl Fn() -> Result<Arc<dyn HistoryStore>, StoreError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let (store, attempt) = (OnceLock::new(), Mutex::default());
        let opener = Self { kind, capabilities, times, open: Arc::new(open), store, attempt };
        match opener.store() {
            Err(error) if error.is_mistake() => return Err(error),
            Err(error) => {
                tracing::error!(
                    target: "taktwerk::outage",
                    error = error.message,
                    "history: the store is unavailable. The server starts, and values wait in memory until it can be opened"
                );
            }
            Ok(_) => {}
        }
        Ok(opener)
    }

    pub(super) const fn kind(&self) -> &'static str {
        self.kind
    }

    pub(super) const fn capabilities(&self) -> StoreCapabilities {
        self.capabilities
    }

    /// The store, if it is open.
    pub(super) fn opened(&self) -> Option<&Arc<dyn HistoryStore>> {
        self.store.get()
    }

    /// The store. Opens it if the last attempt was some time ago.
    pub(super) fn store(&self) -> Result<&Arc<dyn HistoryStore>, StoreError> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        // One attempt at a time is enough.
        let Ok(mut attempt) = self.attempt.try_lock() else { return Err(opening()) };
        // It may have been opened in the meantime.
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let (answer, wait_max) = match core::mem::take(&mut *attempt) {
            Attempt::Running(answer) => (answer, Duration::ZERO),
            Attempt::Failed(at, error) if at.elapsed() < self.times.retry_every => {
                *attempt = Attempt::Failed(at, error.clone());
                return Err(error);
            }
            Attempt::Failed(..) | Attempt::None => (self.begin(), self.times.attempt_max),
        };
        let error = match answer.recv_timeout(wait_max) {
            Ok(Ok(store)) => return Ok(self.store.get_or_init(|| store)),
            Ok(Err(error)) => error,
            Err(RecvTimeoutError::Timeout) => {
                *attempt = Attempt::Running(answer);
                return Err(opening());
            }
            Err(RecvTimeoutError::Disconnected) => {
                StoreError::unavailable("the history store cannot be opened")
            }
        };
        *attempt = Attempt::Failed(Instant::now(), error.clone());
        Err(error)
    }

    /// Begins an attempt on a thread of its own.
    fn begin(&self) -> Receiver<Opened> {
        let (answer, answered) = channel();
        let (open, answers) = (Arc::clone(&self.open), answer.clone());
        // If nobody waits any more, the store is closed.
        let run = move || drop(answers.send(open()));
        if let Err(error) = thread::Builder::new().name("taktwerk-open".to_owned()).spawn(run) {
            let error =
                StoreError::unavailable(format!("cannot start a thread for the history store: {error}"));
            drop(answer.send(Err(error)));
        }
        answered
    }
}

fn opening() -> StoreError {
    StoreError::unavailable("the history store is still being opened; it does not answer")
}
