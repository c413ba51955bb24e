//! Counters of a source. They can be read at any time from any thread.

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
    /// Ticks of the last answer; 0 if there is none yet.
    last_answer: AtomicU64,
    is_connected: AtomicBool,
    /// The process id of a program adapter; 0 if it does not run.
    process: AtomicU32,
    last_error: Mutex<Option<String>>,
    incomplete: Mutex<Option<String>>,
}

/// The counters of a source at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Requests and polls.
    pub requests: u64,
    /// Answers, and messages that the source sent on its own.
    pub answers: u64,
    /// Requests without an answer, rejected requests, failed connections.
    pub errors: u64,
    /// Values stored in tags.
    pub values: u64,
    /// Values that do not fit the type of their tag.
    pub invalid: u64,
    /// Values and messages that were dropped: too large, or without a tag.
    pub dropped: u64,
    /// Values replaced by a newer one of the same tag before they could be stored, because of the rate limit.
    pub replaced: u64,
    /// Values written to the source.
    pub writes: u64,
    /// Failed writes.
    pub write_errors: u64,
    /// Established connections.
    pub connections: u64,
    /// How often a tag's value was overdue.
    pub missed: u64,
    /// Tags that are currently Uncertain_LastUsableValue.
    pub uncertain: u64,
    /// Tags that are currently Bad_NoCommunication.
    pub lost: u64,
    /// The time of the last answer.
    pub last_answer: Option<UtcTime>,
    /// Whether the source is connected, or answered the last request.
    pub is_connected: bool,
    /// The process id of a program adapter while it runs.
    pub process: Option<u32>,
    /// The last error.
    pub last_error: Option<String>,
    /// Why some of the source's data is currently missing; `None` if it is complete.
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

    /// Increases a counter.
    pub fn add(&self, count: Count, number: usize) {
        if number > 0 {
            self.counter(count).fetch_add(number as u64, Ordering::Relaxed);
        }
    }

    /// Records an answer.
    pub fn answered(&self, now: UtcTime) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.last_answer.store(now.ticks().max(0) as u64, Ordering::Relaxed);
    }

    /// The number of answers.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Records a connection.
    pub fn connected(&self) {
        if !self.is_connected.swap(true, Ordering::Relaxed) {
            self.connections.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records the loss of the connection.
    pub fn disconnected(&self) {
        self.is_connected.store(false, Ordering::Relaxed);
    }

    /// Records a failure.
    pub fn failed(&self, error: &str) {
        self.add(Count::Errors, 1);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_owned());
    }

    /// Sets why some of the source's data is missing; `None` if it is complete.
    pub fn set_incomplete(&self, why: Option<String>) {
        *self.incomplete.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Sets how many tags are uncertain or bad.
    pub fn set_quality(&self, uncertain: usize, lost: usize) {
        self.uncertain.store(uncertain as u64, Ordering::Relaxed);
        self.lost.store(lost as u64, Ordering::Relaxed);
    }

    /// Records the start or end of the adapter's process.
    pub fn set_process(&self, process: Option<u32>) {
        self.process.store(process.unwrap_or_default(), Ordering::Relaxed);
    }

    /// Whether the source is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    /// The counters at this moment.
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
