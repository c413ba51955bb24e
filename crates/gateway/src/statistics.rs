//! What a source counts. Anybody may read it at any time.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use taktwerk_types::UtcTime;

/// The counters of a source.
#[derive(Debug, Default)]
pub struct Statistics {
    requests: AtomicU64,
    answers: AtomicU64,
    errors: AtomicU64,
    values: AtomicU64,
    invalid: AtomicU64,
    dropped: AtomicU64,
    replaced: AtomicU64,
    writes: AtomicU64,
    write_errors: AtomicU64,
    connections: AtomicU64,
    missed: AtomicU64,
    uncertain: AtomicU64,
    lost: AtomicU64,
    /// Ticks of the last answer; 0 if there was none.
    last_answer: AtomicU64,
    is_connected: AtomicBool,
    /// The process of an adapter that is a program; 0 if there is none.
    process: AtomicU32,
    last_error: Mutex<Option<String>>,
    incomplete: Mutex<Option<String>>,
}

/// What a source has counted so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Questions to the source: requests, polls.
    pub requests: u64,
    /// Answers, and messages that came by themselves.
    pub answers: u64,
    /// Questions without an answer, refused questions, connections that failed.
    pub errors: u64,
    /// Values stored in tags.
    pub values: u64,
    /// Values that do not fit their tag's type.
    pub invalid: u64,
    /// Values and messages thrown away: too large, or nobody's.
    pub dropped: u64,
    /// Values that a newer one of their tag has replaced before they could be stored: more than the source may store.
    pub replaced: u64,
    /// Values written to the source.
    pub writes: u64,
    /// Values that could not be written.
    pub write_errors: u64,
    /// Connections made.
    pub connections: u64,
    /// How often a tag's value did not come in time.
    pub missed: u64,
    /// Tags that are Uncertain_LastUsableValue now.
    pub uncertain: u64,
    /// Tags that are Bad_NoCommunication now.
    pub lost: u64,
    /// The time of the last answer.
    pub last_answer: Option<UtcTime>,
    /// Whether the source is connected, or answered last time.
    pub is_connected: bool,
    /// The process of an adapter that is a program, while it runs.
    pub process: Option<u32>,
    /// Why something failed last.
    pub last_error: Option<String>,
    /// Why some of what the source has is not here, if that is so now.
    pub incomplete: Option<String>,
}

/// A counter to be increased.
#[derive(Debug, Clone, Copy)]
pub enum Count {
    /// [`Snapshot::requests`]
    Requests,
    /// [`Snapshot::errors`]
    Errors,
    /// [`Snapshot::values`]
    Values,
    /// [`Snapshot::invalid`]
    Invalid,
    /// [`Snapshot::dropped`]
    Dropped,
    /// [`Snapshot::replaced`]
    Replaced,
    /// [`Snapshot::writes`]
    Writes,
    /// [`Snapshot::write_errors`]
    WriteErrors,
    /// [`Snapshot::missed`]
    Missed,
}

impl Statistics {
    fn counter(&self, count: Count) -> &AtomicU64 {
        match count {
            Count::Requests => &self.requests,
            Count::Errors => &self.errors,
            Count::Values => &self.values,
            Count::Invalid => &self.invalid,
            Count::Dropped => &self.dropped,
            Count::Replaced => &self.replaced,
            Count::Writes => &self.writes,
            Count::WriteErrors => &self.write_errors,
            Count::Missed => &self.missed,
        }
    }

    /// Counts.
    pub fn add(&self, count: Count, number: usize) {
        if number > 0 {
            self.counter(count).fetch_add(number as u64, Ordering::Relaxed);
        }
    }

    /// An answer has come.
    pub fn answered(&self, now: UtcTime) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.last_answer.store(now.ticks().max(0) as u64, Ordering::Relaxed);
    }

    /// How many answers have come.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// A connection was made.
    pub fn connected(&self) {
        if !self.is_connected.swap(true, Ordering::Relaxed) {
            self.connections.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The connection is gone.
    pub fn disconnected(&self) {
        self.is_connected.store(false, Ordering::Relaxed);
    }

    /// Something has failed.
    pub fn failed(&self, error: &str) {
        self.add(Count::Errors, 1);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_owned());
    }

    /// Why some of what the source has is not here; `None` if all is.
    pub fn set_incomplete(&self, why: Option<String>) {
        *self.incomplete.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// How many tags are not as they should be.
    pub fn set_quality(&self, uncertain: usize, lost: usize) {
        self.uncertain.store(uncertain as u64, Ordering::Relaxed);
        self.lost.store(lost as u64, Ordering::Relaxed);
    }

    /// The process of the adapter has begun, or ended.
    pub fn set_process(&self, process: Option<u32>) {
        self.process.store(process.unwrap_or_default(), Ordering::Relaxed);
    }

    /// Whether the source is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    /// What was counted so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last_answer = load(&self.last_answer);
        Snapshot {
            requests: load(&self.requests),
            answers: load(&self.answers),
            errors: load(&self.errors),
            values: load(&self.values),
            invalid: load(&self.invalid),
            dropped: load(&self.dropped),
            replaced: load(&self.replaced),
            writes: load(&self.writes),
            write_errors: load(&self.write_errors),
            connections: load(&self.connections),
            missed: load(&self.missed),
            uncertain: load(&self.uncertain),
            lost: load(&self.lost),
            last_answer: (last_answer > 0).then(|| UtcTime::from_ticks(last_answer as i64)),
            is_connected: self.is_connected(),
            process: Some(self.process.load(Ordering::Relaxed)).filter(|process| *process > 0),
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            incomplete: self.incomplete.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
