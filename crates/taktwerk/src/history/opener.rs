//! A store that may be unavailable when the server starts.

use super::{HistoryStore, StoreError};
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use taktwerk_server::history::StoreCapabilities;

/// Pause between two attempts to open a store.
const RETRY_EVERY: Duration = Duration::from_secs(5);

type Open = Box<dyn Fn() -> Result<Arc<dyn HistoryStore>, StoreError> + Send + Sync>;

/// Opens a history store, and retries if it is unavailable, as with a full disk or a database that is down. A server with it
/// starts in any case. Values wait in memory until the store is open.
pub struct HistoryOpener {
    kind: &'static str,
    capabilities: StoreCapabilities,
    /// Pause between two attempts.
    retry_every: Duration,
    open: Open,
    store: OnceLock<Arc<dyn HistoryStore>>,
    /// The last failed attempt.
    failed: Mutex<Option<(Instant, StoreError)>>,
}

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
        let (store, failed) = (store.into(), Mutex::default());
        Self { kind, capabilities, retry_every: RETRY_EVERY, open: Box::new(open), store, failed }
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
        Self::open_every(kind, capabilities, RETRY_EVERY, open)
    }

    pub(super) fn open_every(
        kind: &'static str,
        capabilities: StoreCapabilities,
        retry_every: Duration,
        open: impl Fn() -> Result<Arc<dyn HistoryStore>, StoreError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let (store, failed) = (OnceLock::new(), Mutex::default());
        let opener = Self { kind, capabilities, retry_every, open: Box::new(open), store, failed };
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
        // Opening may take long, and one attempt at a time is enough.
        let Ok(mut failed) = self.failed.try_lock() else {
            return Err(StoreError::unavailable("the history store is being opened"));
        };
        if let Some((_, error)) = failed.as_ref().filter(|(at, _)| at.elapsed() < self.retry_every) {
            // It may have been opened in the meantime.
            return self.store.get().ok_or_else(|| error.clone());
        }
        match (self.open)() {
            Ok(store) => Ok(self.store.get_or_init(|| store)),
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}
