//! From the tap to the queue, and from the queue to the destination.

use super::block::Block;
use super::counters::{Count, Counters, Snapshot};
use super::queue::{Queue, QueueError};
use super::settings::DestinationSettings;
use super::tap::Tap;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::pause::jitter;
use core::time::Duration;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use taktwerk_net::clock::wall;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How often the queue is looked at while nothing comes, in units of the flush interval.
const IDLE_TICKS: u32 = 10;

/// A destination with its queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Destination(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: DestinationSettings,
    description: String,
    tap: Arc<Tap>,
    queue: Queue,
    counters: Arc<Counters>,
    stored: Notify,
}

/// A destination as it is shown.
#[derive(Debug, Clone)]
pub struct DestinationView {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// What it has counted.
    pub counters: Snapshot,
}

impl Destination {
    /// Opens the queue of a destination.
    ///
    /// # Errors
    /// The queue cannot be used.
    pub fn open(settings: DestinationSettings, description: String) -> Result<Self, QueueError> {
        let queue = Queue::open(&settings.queue, settings.limits)?;
        let counters = Arc::new(Counters::default());
        let (include, exclude) = (settings.include.clone(), settings.exclude.clone());
        let tap = Arc::new(Tap::new(include, exclude, settings.every, Arc::clone(&counters)));
        let size = queue.size()?;
        counters.set_queue(size.records, size.bytes, size.oldest);
        Ok(Self(Arc::new(Shared { settings, description, tap, queue, counters, stored: Notify::new() })))
    }

    /// What collects its values.
    #[must_use]
    pub fn tap(&self) -> Arc<Tap> {
        Arc::clone(&self.0.tap)
    }

    /// What can be seen of it.
    #[must_use]
    pub fn view(&self) -> DestinationView {
        DestinationView {
            name: self.0.settings.name.clone(),
            description: self.0.description.clone(),
            counters: self.0.counters.snapshot(),
        }
    }

    fn failed(&self, error: &QueueError) {
        self.0.counters.failed(&error.to_string());
        tracing::error!(destination = self.0.settings.name, %error, "the queue does not work");
    }

    fn show_size(&self) {
        match self.0.queue.size() {
            Ok(size) => self.0.counters.set_queue(size.records, size.bytes, size.oldest),
            Err(error) => self.failed(&error),
        }
    }

    /// Writes what was collected to the queue. It blocks.
    pub fn flush(&self) {
        self.append(&self.0.tap.take());
    }

    fn append(&self, blocks: &[Block]) {
        match self.0.queue.append(blocks, wall()) {
            Ok(outcome) => {
                self.0.counters.add(Count::Accepted, outcome.accepted);
                self.0.counters.add(Count::Evicted, outcome.evicted);
                self.0.counters.add(Count::Expired, outcome.expired);
            }
            Err(error) => {
                let lost: u64 = blocks.iter().map(|block| u64::from(block.count)).sum();
                self.0.counters.add(Count::Overrun, lost);
                self.failed(&error);
            }
        }
        self.show_size();
    }

    /// Writes collected values to the queue, for ever.
    pub async fn store(self) {
        let mut ticks = interval(self.0.settings.flush);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle = 0;
        loop {
            ticks.tick().await;
            let blocks = self.0.tap.take();
            idle = if blocks.is_empty() { idle + 1 } else { 0 };
            // Records expire also while nothing comes.
            if blocks.is_empty() && (self.0.settings.limits.age_max.is_none() || idle % IDLE_TICKS != 0) {
                continue;
            }
            let destination = self.clone();
            // It does not panic, and if it does, the next tick goes on.
            let _ = spawn_blocking(move || destination.append(&blocks)).await;
            self.0.stored.notify_one();
        }
    }

    /// Takes a batch from the queue.
    async fn front(&self, records_max: usize) -> Option<Batch> {
        let destination = self.clone();
        let found = spawn_blocking(move || {
            let found = destination.0.queue.front(records_max);
            match found {
                Ok((batch, damaged)) => {
                    if damaged > 0 {
                        destination.0.counters.add(Count::Overrun, damaged);
                        destination.0.counters.note("the queue had blocks that cannot be read");
                    }
                    batch
                }
                Err(error) => {
                    destination.failed(&error);
                    None
                }
            }
        });
        found.await.ok().flatten()
    }

    async fn remove(&self, batch: &Batch) {
        let Some(last) = batch.records.last().map(|record| record.number) else { return };
        let destination = self.clone();
        let removed = spawn_blocking(move || {
            match destination.0.queue.remove(last) {
                Ok(()) => destination.show_size(),
                Err(error) => destination.failed(&error),
            };
        });
        let _ = removed.await;
    }

    /// Sends what is in the queue, for ever.
    pub async fn forward(self, mut sink: Box<dyn Sink>) {
        let settings = &self.0.settings;
        let mut pause = settings.retry;
        let mut last_told = String::new();
        let mut size = settings.batch_max;
        let mut is_proven = false;
        loop {
            let Some(batch) = self.front(size).await else {
                // Looks again also by itself, should the queue not have answered.
                let _ = timeout(Duration::from_secs(1), self.0.stored.notified()).await;
                continue;
            };
            let result = match self.send(&mut *sink, &batch).await {
                // Whoever has not taken anything yet does not refuse the values, but the settings.
                Ok(Taken { refused, reason: Some(reason) })
                    if refused >= batch.records.len() && !is_proven =>
                {
                    Err(Fault::other(self.0.description.as_str(), reason))
                }
                result => result,
            };
            match result {
                Ok(taken) => {
                    is_proven |= taken.refused < batch.records.len();
                    self.remove(&batch).await;
                    let (records, refused) = (batch.records.len() as u64, taken.refused as u64);
                    self.0.counters.confirmed(records, refused, wall());
                    if let Some(reason) = taken.reason {
                        self.0.counters.note(&reason);
                        tracing::warn!(destination = settings.name, refused, reason, "values are refused");
                    }
                    pause = settings.retry;
                    last_told.clear();
                    size = (size * 2).min(settings.batch_max);
                }
                Err(fault) => {
                    if matches!(fault, Fault::NoAnswer { .. }) {
                        // A slow destination may take a smaller batch in time.
                        size = (batch.records.len() / 4).max(1);
                    }
                    let told = fault.to_string();
                    self.0.counters.disconnected();
                    self.0.counters.failed(&told);
                    if told == last_told {
                        tracing::debug!(destination = settings.name, error = told, "still not sent");
                    } else {
                        tracing::warn!(
                            destination = settings.name,
                            error = told,
                            "values wait; trying again"
                        );
                        last_told = told;
                    }
                    sleep(pause + jitter(pause)).await;
                    pause = (pause * 2).min(settings.retry_max);
                }
            }
        }
    }

    async fn send(&self, sink: &mut dyn Sink, batch: &Batch) -> Result<Taken, Fault> {
        let deadline = self.0.settings.deadline;
        let target = || self.0.description.clone();
        // A panic of a library costs a pause.
        match timeout(deadline, AssertUnwindSafe(sink.send(batch)).catch_unwind()).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Fault::other(target(), "the destination panicked; please report this")),
            Err(_) => Err(Fault::NoAnswer { target: target(), after: deadline }),
        }
    }
}
