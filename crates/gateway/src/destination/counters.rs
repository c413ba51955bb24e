//! Counters of a destination. They can be read at any time from any thread.

use super::queue::Size;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use taktwerk_types::UtcTime;

/// The counters of a destination.
#[derive(Debug, Default)]
pub struct Counters {
    counts: [AtomicU64; 9],
    queued: AtomicU64,
    parked: AtomicU64,
    queued_bytes: AtomicU64,
    oldest: AtomicU64,
    last_sent: AtomicU64,
    is_connected: AtomicBool,
    last_error: Mutex<Option<String>>,
    /// Why values were last lost, and when.
    loss: Mutex<Option<(String, Instant)>>,
}

/// How long a loss is shown after the last lost value.
const LOSS_SHOWN: Duration = Duration::from_secs(60);

/// A counter to be increased.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Count {
    /// [`Snapshot::accepted`]
    Accepted,
    /// [`Snapshot::sent`]
    Sent,
    /// [`Snapshot::batches`]
    Batches,
    /// [`Snapshot::errors`]
    Errors,
    /// [`Snapshot::refused`]
    Refused,
    /// [`Snapshot::overrun`]
    Overrun,
    /// [`Snapshot::evicted`]
    Evicted,
    /// [`Snapshot::expired`]
    Expired,
    /// [`Snapshot::damaged`]
    Damaged,
}

/// The counters of a destination at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Values written to the queue.
    pub accepted: u64,
    /// Values confirmed by the destination.
    pub sent: u64,
    /// Batches confirmed by the destination.
    pub batches: u64,
    /// Failed attempts to send, and errors of the queue.
    pub errors: u64,
    /// Values that the destination rejected permanently.
    pub refused: u64,
    /// Values dropped before they reached the queue, because the disk was too slow or full.
    pub overrun: u64,
    /// Values dropped because the queue was full.
    pub evicted: u64,
    /// Values dropped because they expired.
    pub expired: u64,
    /// Values dropped because their block in the queue file cannot be read.
    pub damaged: u64,
    /// Values currently in the queue.
    pub queued: u64,
    /// Queued values that are parked: they wait for single variables of the destination while others are sent.
    pub parked: u64,
    /// Size of the values currently in the queue, in bytes.
    pub queued_bytes: u64,
    /// When the oldest value in the queue was received.
    pub oldest: Option<UtcTime>,
    /// When the destination last confirmed a batch.
    pub last_sent: Option<UtcTime>,
    /// Whether the last attempt to send succeeded.
    pub is_connected: bool,
    /// The last error.
    pub last_error: Option<String>,
    /// Why values are lost, if some were within the last minute.
    pub loss: Option<String>,
}

impl Counters {
    /// Increases a counter.
    pub fn add(&self, count: Count, number: u64) {
        if number > 0
            && let Some(counter) = self.counts.get(count as usize)
        {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// Records a confirmed batch.
    pub fn confirmed(&self, sent: u64, refused: u64, now: UtcTime) {
        self.add(Count::Sent, sent);
        self.add(Count::Refused, refused);
        self.add(Count::Batches, 1);
        self.last_sent.store(now.ticks().max(0) as u64, Ordering::Relaxed);
        self.is_connected.store(true, Ordering::Relaxed);
    }

    /// Records a failure.
    pub fn failed(&self, error: &str) {
        self.add(Count::Errors, 1);
        self.note(error);
    }

    /// Records that the destination cannot be reached.
    pub fn disconnected(&self) {
        self.is_connected.store(false, Ordering::Relaxed);
    }

    /// Stores an error as the last one.
    pub fn note(&self, error: &str) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_owned());
    }

    /// Stores why values are lost.
    pub fn lost(&self, reason: &str) {
        *self.loss.lock().unwrap_or_else(PoisonError::into_inner) = Some((reason.to_owned(), Instant::now()));
    }

    /// Sets the current size of the queue.
    pub fn set_queue(&self, size: Size) {
        self.queued.store(size.records, Ordering::Relaxed);
        self.parked.store(size.parked, Ordering::Relaxed);
        self.queued_bytes.store(size.bytes, Ordering::Relaxed);
        self.oldest.store(size.oldest.map_or(0, |time| time.ticks().max(0) as u64), Ordering::Relaxed);
    }

    /// The counters at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let count = |count: Count| {
            self.counts.get(count as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
        };
        let time = |ticks: &AtomicU64| {
            let ticks = ticks.load(Ordering::Relaxed);
            (ticks > 0).then(|| UtcTime::from_ticks(ticks as i64))
        };
        Snapshot {
            accepted: count(Count::Accepted),
            sent: count(Count::Sent),
            batches: count(Count::Batches),
            errors: count(Count::Errors),
            refused: count(Count::Refused),
            overrun: count(Count::Overrun),
            evicted: count(Count::Evicted),
            expired: count(Count::Expired),
            damaged: count(Count::Damaged),
            queued: self.queued.load(Ordering::Relaxed),
            parked: self.parked.load(Ordering::Relaxed),
            queued_bytes: self.queued_bytes.load(Ordering::Relaxed),
            oldest: time(&self.oldest),
            last_sent: time(&self.last_sent),
            is_connected: self.is_connected.load(Ordering::Relaxed),
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            loss: {
                let loss = self.loss.lock().unwrap_or_else(PoisonError::into_inner);
                loss.as_ref().filter(|(_, at)| at.elapsed() < LOSS_SHOWN).map(|(reason, _)| reason.clone())
            },
        }
    }
}
