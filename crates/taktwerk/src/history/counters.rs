//! Counters and state of the recorder, for metrics and health checks.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// After this time without an answer, a store counts as failing.
pub(super) const UNANSWERED: Duration = Duration::from_secs(15);

/// Counters of the recorder.
#[derive(Debug, Default)]
pub struct RecorderCounters {
    pub(super) recorded: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) lost_early: AtomicU64,
    pub(super) lost_full: AtomicU64,
    pub(super) lost_at_stop: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) waiting: AtomicU64,
    pub(super) waiting_events: AtomicU64,
    pub(super) waiting_bytes: AtomicU64,
    state: Mutex<State>,
    kind: &'static str,
}

#[derive(Debug, Default)]
struct State {
    /// Since when the oldest value waits.
    oldest: Option<Instant>,
    /// The last error, until values are stored again.
    error: Option<String>,
}

impl RecorderCounters {
    pub(super) fn of(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    /// The kind of the store, such as `sqlite`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Stored values.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Stored events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Lost values and events, for any reason. The history has Bad_DataLost in place of values.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_early() + self.lost_full() + self.lost_at_stop()
    }

    /// Values and events that arrived faster than they could be taken.
    #[must_use]
    pub fn lost_early(&self) -> u64 {
        self.lost_early.load(Ordering::Relaxed)
    }

    /// Values and events dropped because the store failed for too long.
    #[must_use]
    pub fn lost_full(&self) -> u64 {
        self.lost_full.load(Ordering::Relaxed)
    }

    /// Values and events that could not be stored before the server stopped.
    #[must_use]
    pub fn lost_at_stop(&self) -> u64 {
        self.lost_at_stop.load(Ordering::Relaxed)
    }

    /// Failed writes to a store.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Values queued to be stored.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Events queued to be stored.
    #[must_use]
    pub fn waiting_events(&self) -> u64 {
        self.waiting_events.load(Ordering::Relaxed)
    }

    /// Memory of the queued values and events, in bytes.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// For how long the oldest queued value or event waits; zero if none does. It is an estimate after some were dropped.
    #[must_use]
    pub fn oldest(&self) -> Duration {
        self.state().oldest.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Why values cannot be stored at present, if so.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let state = self.state();
        let unanswered = || {
            let waiting =
                state.oldest.map(|since| since.elapsed()).filter(|waiting| *waiting >= UNANSWERED)?;
            Some(format!("the store has not answered for {} s", waiting.as_secs()))
        };
        state.error.clone().or_else(unanswered)
    }

    pub(super) fn note_error(&self, error: Option<String>) {
        self.state().error = error;
    }

    pub(super) fn note_oldest(&self, oldest: Option<Instant>) {
        self.state().oldest = oldest;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
