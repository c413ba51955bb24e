//! A destination with its queue: from the tap into the queue, and access to the queue.

use super::Batch;
use super::block::{Block, Record, count};
use super::counters::{Count, Counters, Snapshot};
use super::losses::Losses;
use super::queue::{Queue, QueueError};
use super::settings::DestinationSettings;
use super::tap::Tap;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_net::clock::wall;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// While no values arrive, the queue is checked every so many flush intervals.
const IDLE_TICKS: u32 = 10;

/// A destination with its queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Destination(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: DestinationSettings,
    description: String,
    tap: Arc<Tap>,
    /// The number of values that are being written to the queue.
    writing: AtomicU64,
    queue: Queue,
    counters: Arc<Counters>,
    stored: Notify,
    stopping: watch::Sender<bool>,
    losses: Mutex<Losses>,
}

/// The current state of a destination.
#[derive(Debug, Clone)]
pub struct DestinationView {
    /// Its name.
    pub name: String,
    /// Its kind and target.
    pub description: String,
    /// Its counters.
    pub counters: Snapshot,
    /// Values in memory that wait to be written to its queue. More than a few if the queue file cannot be written.
    pub unwritten: u64,
    /// Capacity of its queue, in bytes.
    pub queue_bytes_max: u64,
}

impl Destination {
    /// A destination with an open queue.
    ///
    /// # Errors
    /// The queue cannot be read.
    pub(crate) fn with_queue(
        settings: DestinationSettings,
        description: String,
        queue: Queue,
    ) -> Result<Self, QueueError> {
        let counters = Arc::new(Counters::default());
        let (include, exclude) = (settings.include.clone(), settings.exclude.clone());
        let tap = Arc::new(Tap::new(include, exclude, settings.every, Arc::clone(&counters)));
        let size = queue.size()?;
        counters.set_queue(size);
        Ok(Self(Arc::new(Shared {
            settings,
            description,
            tap,
            writing: AtomicU64::new(0),
            queue,
            counters,
            stored: Notify::new(),
            stopping: watch::Sender::new(false),
            losses: Mutex::default(),
        })))
    }

    /// The tap that collects its values.
    #[must_use]
    pub fn tap(&self) -> Arc<Tap> {
        Arc::clone(&self.0.tap)
    }

    /// The current state.
    #[must_use]
    pub fn view(&self) -> DestinationView {
        DestinationView {
            name: self.0.settings.name.clone(),
            description: self.0.description.clone(),
            counters: self.0.counters.snapshot(),
            unwritten: self.0.tap.count() + self.0.writing.load(Ordering::Relaxed),
            queue_bytes_max: self.0.settings.limits.bytes_max,
        }
    }

    fn failed(&self, error: &QueueError) {
        self.0.counters.failed(&error.to_string());
        tracing::error!(destination = self.0.settings.name, %error, "cannot use the queue");
    }

    /// Counts what is in the queue. Blocks.
    pub(crate) fn show_size(&self) {
        match self.0.queue.size() {
            Ok(size) => self.0.counters.set_queue(size),
            Err(error) => self.failed(&error),
        }
    }

    /// Writes collected values to the queue for the last time. Blocks. Returns those that cannot be written.
    #[must_use]
    pub fn flush(&self) -> Vec<Block> {
        self.write();
        self.0.tap.take()
    }

    /// Writes collected values to the queue. Blocks.
    pub(crate) fn write(&self) {
        self.append(self.0.tap.take());
    }

    /// Takes over values that this destination could not write with its earlier settings. Call it before [`Self::store`].
    pub(crate) fn take_over(&self, blocks: Vec<Block>) {
        self.0.tap.put_back(blocks);
    }

    /// Counts values as lost because they cannot be written.
    pub(crate) fn lose(&self, blocks: &[Block]) {
        self.0.counters.add(Count::Overrun, count(blocks));
        self.look_for_losses();
    }

    /// Blocks that cannot be written return to the tap. It drops new values when too many wait there.
    fn append(&self, blocks: Vec<Block>) {
        self.0.writing.store(count(&blocks), Ordering::Relaxed);
        let appended = self.0.queue.append(&blocks, wall());
        self.0.writing.store(0, Ordering::Relaxed);
        match appended {
            Ok(outcome) => {
                self.0.counters.add(Count::Accepted, outcome.accepted);
                self.0.counters.add(Count::Evicted, outcome.evicted);
                self.0.counters.add(Count::Expired, outcome.expired);
            }
            Err(error) => {
                self.0.tap.put_back(blocks);
                self.failed(&error);
            }
        }
        self.look_for_losses();
        self.show_size();
    }

    fn look_for_losses(&self) {
        let mut losses = self.0.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let when_full = self.0.settings.limits.when_full;
        let Some(loss) = losses.look(&self.0.counters.snapshot(), when_full, Instant::now()) else { return };
        self.0.counters.lost(&loss.reason);
        if let Some(values) = loss.logged {
            let destination = &self.0.settings.name;
            tracing::error!(destination, values, reason = loss.reason, "the destination loses values");
        }
    }

    /// Ends [`Self::store`] and the sending task: the latter when the batch that is being sent is confirmed or has failed.
    pub(crate) fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }

    async fn stopped(&self) {
        // It fails only if the sender is dropped, and `self` holds it.
        let _ = self.0.stopping.subscribe().wait_for(|is_stopping| *is_stopping).await;
    }

    /// Waits for a time, or until the destination is stopped.
    pub(super) async fn pause(&self, most: Duration) {
        let _ = timeout(most, self.stopped()).await;
    }

    /// Writes collected values to the queue until the destination is stopped.
    pub async fn store(self) {
        let mut ticks = interval(self.0.settings.flush);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle = 0;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.stopped() => return,
            }
            let blocks = self.0.tap.take();
            idle = if blocks.is_empty() { idle + 1 } else { 0 };
            // Records also expire while no values arrive.
            if blocks.is_empty() && (self.0.settings.limits.age_max.is_none() || idle % IDLE_TICKS != 0) {
                continue;
            }
            let destination = self.clone();
            // If it panics, the next tick continues.
            let _ = spawn_blocking(move || destination.append(blocks)).await;
            self.0.stored.notify_one();
        }
    }

    pub(crate) fn settings(&self) -> &DestinationSettings {
        &self.0.settings
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.0.queue
    }

    pub(super) fn description(&self) -> &str {
        &self.0.description
    }

    /// One round of [`Self::store`].
    #[cfg(test)]
    pub(super) fn store_once(&self) {
        self.append(self.0.tap.take());
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Waits until something is stored or the destination is stopped, at most for this time.
    pub(super) async fn stored(&self, most: Duration) {
        tokio::select! {
            () = self.0.stored.notified() => {}
            () = self.pause(most) => {}
        }
    }

    /// Runs a blocking function; `None` if it panics.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let destination = self.clone();
        spawn_blocking(move || work(&destination)).await.ok()
    }

    fn found<T>(&self, found: Result<(Option<T>, u64), QueueError>) -> Option<T> {
        match found {
            Ok((found, damaged)) => {
                if damaged > 0 {
                    self.0.counters.add(Count::Damaged, damaged);
                    self.0.counters.note("the queue had blocks that cannot be read");
                }
                found
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// The next batch of the queue, and the records in it that must stay behind parked ones. Blocks.
    pub(super) fn front(&self, records_max: usize) -> Option<(Batch, Vec<Record>)> {
        // Nothing is dropped because a variable is unavailable. If too much is parked, the other records wait too.
        if self.0.queue.is_parking_full() {
            return None;
        }
        let batch = self.found(self.0.queue.front(records_max))?;
        Some(self.0.queue.split(batch))
    }

    /// The next batch of parked records. Blocks.
    pub(super) fn front_parked(&self, records_max: usize) -> Option<Batch> {
        self.found(self.0.queue.front_parked(records_max))
    }

    /// Whether any records are parked.
    pub(super) fn has_parked(&self) -> bool {
        self.0.queue.has_parked()
    }

    fn is_confirmed(&self, confirmed: Result<(), QueueError>) -> bool {
        match confirmed {
            Ok(()) => {
                self.show_size();
                true
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    /// Removes all records up to a number from the queue, and parks some of them. `false` if the disk fails; nothing has changed
    /// then. Blocks.
    pub(super) fn confirm(&self, through: u64, parked: &[Record]) -> bool {
        let confirmed = self.0.queue.confirm(through, parked);
        self.is_confirmed(confirmed)
    }

    /// Removes a batch of parked records, except some. `false` if the disk fails. Blocks.
    pub(super) fn confirm_parked(&self, batch: &Batch, except: &HashSet<u64>) -> bool {
        let confirmed = self.0.queue.confirm_parked(batch, except);
        self.is_confirmed(confirmed)
    }
}
