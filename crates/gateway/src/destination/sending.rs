//! Sends from the queue to the destination: batches, pauses after failures, and parked records.

use super::block::Record;
use super::forward::Destination;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::pause::jitter;
use crate::trace::TARGET;
use core::time::Duration;
use futures_util::FutureExt;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use taktwerk_net::clock::wall;
use tokio::time::{Instant, timeout};
use tracing::field::Empty;

/// Longest wait for records before the queue is checked again.
const IDLE: Duration = Duration::from_secs(1);

/// Sends the content of a destination's queue until the destination is stopped.
pub async fn forward(destination: Destination, sink: Box<dyn Sink>) {
    let mut sending = Sending::new(destination, sink);
    while !sending.destination.is_stopping() {
        sending.turn().await;
    }
}

struct Sending {
    destination: Destination,
    sink: Box<dyn Sink>,
    /// The next pause after a failure.
    pause: Duration,
    /// Most records in the next batch.
    size: usize,
    size_max: usize,
    /// The last logged message, to avoid repetition.
    last_told: String,
    last_parked: String,
    /// Whether the destination has ever accepted a record.
    is_proven: bool,
    /// When parked records are sent again; `None` if there are none.
    parked_due: Option<Instant>,
    parked_pause: Duration,
    /// Whether parked records are sent first. A failed batch is sent first again.
    is_parked_first: bool,
}

/// The next batch.
enum Next {
    /// Records of the queue: those to send, and those that must stay behind parked ones.
    Queue(Batch, Vec<Record>),
    Parked(Batch),
}

impl Sending {
    fn new(destination: Destination, sink: Box<dyn Sink>) -> Self {
        let retry = destination.settings().retry;
        let size_max = sink.batch_max().unwrap_or(destination.settings().batch_max);
        Self {
            pause: retry,
            size: size_max,
            size_max,
            last_told: String::new(),
            last_parked: String::new(),
            is_proven: false,
            // The previous run may have left some.
            parked_due: Some(Instant::now()),
            parked_pause: retry,
            is_parked_first: true,
            sink,
            destination,
        }
    }

    async fn turn(&mut self) {
        let Some(next) = self.next().await else {
            let wait = self.parked_due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()));
            self.destination.stored(wait.min(IDLE)).await;
            return;
        };
        let batch = match &next {
            Next::Queue(batch, _) | Next::Parked(batch) => batch,
        };
        let count = batch.records.len();
        let span = tracing::debug_span!(
            target: TARGET,
            "destination.send",
            destination = self.destination.settings().name,
            records = count,
            refused = Empty,
            error = Empty
        );
        let result = match self.send(&next).await {
            // If the destination has never accepted a record, the settings are wrong rather than the values.
            Ok(Taken { refused, reason: Some(reason), .. })
                if refused > 0 && refused >= count && !self.is_proven =>
            {
                Err(Fault::other(self.destination.description(), reason))
            }
            result => result,
        };
        match &result {
            Ok(taken) => span.record("refused", taken.refused),
            Err(fault) => span.record("error", fault.to_string()),
        };
        drop(span);
        match result {
            Ok(taken) => self.taken(next, taken).await,
            Err(fault) => {
                self.is_parked_first = matches!(next, Next::Parked(_));
                self.failed(fault, count).await;
            }
        }
    }

    /// Takes the next batch from the queue.
    async fn next(&mut self) -> Option<Next> {
        let is_due = self.parked_due.is_some_and(|due| due <= Instant::now());
        if is_due && self.is_parked_first {
            let size = self.size;
            let parked = self.destination.blocking(move |it| it.front_parked(size)).await.flatten();
            if let Some(batch) = parked {
                return Some(Next::Parked(batch));
            }
            // They may exist but be unreadable now.
            let has_parked = self.destination.blocking(Destination::has_parked).await.unwrap_or(true);
            self.parked_due = has_parked.then(|| Instant::now() + self.parked_pause);
        }
        self.is_parked_first = true;
        let seen = self.destination.counters().snapshot();
        let waited = seen.oldest.map_or(0, |oldest| wall().unix_nanos() - oldest.unix_nanos());
        let waited = Duration::from_nanos(u64::try_from(waited).unwrap_or(0));
        if seen.queued > 0 && !self.sink.is_worth_it(seen.queued, waited) {
            return None;
        }
        let size = self.size;
        let (batch, held) = self.destination.blocking(move |it| it.front(size)).await.flatten()?;
        Some(Next::Queue(batch, held))
    }

    async fn taken(&mut self, next: Next, taken: Taken) {
        let Taken { refused, reason, parked } = taken;
        let again: HashSet<u64> = parked.into_iter().collect();
        let is_parking = !again.is_empty();
        let settings_retry = self.destination.settings().retry;
        let count = match &next {
            Next::Queue(batch, _) | Next::Parked(batch) => batch.records.len(),
        };
        let is_of_parked = matches!(next, Next::Parked(_));
        let is_new = is_parking || matches!(&next, Next::Queue(_, held) if !held.is_empty());
        let except = again.clone();
        let confirm = move |it: &Destination| match next {
            Next::Queue(batch, mut held) => {
                let last = batch.records.iter().chain(&held).map(|record| record.number).max();
                held.extend(batch.records.into_iter().filter(|record| except.contains(&record.number)));
                it.confirm(last.unwrap_or(0), &held)
            }
            Next::Parked(batch) => it.confirm_parked(&batch, &except),
        };
        let confirmed = self.destination.blocking(confirm).await;
        if confirmed.is_none() {
            tracing::error!(
                destination = self.destination.settings().name,
                "the queue panicked; please report this"
            );
        }
        if confirmed != Some(true) {
            // The records are still in the queue. Without a pause they would be sent in a tight loop.
            self.is_parked_first = is_of_parked;
            let reason = "the queue cannot be written; values are sent again";
            self.failed(Fault::other(self.destination.description(), reason), count).await;
            return;
        }
        if is_of_parked {
            // While the destination accepts any, parked records continue without a pause, alternating with the queue.
            self.is_parked_first = false;
            if again.len() < count {
                self.parked_pause = settings_retry;
                self.parked_due = Some(Instant::now());
            } else {
                self.parked_due = Some(Instant::now() + self.parked_pause + jitter(self.parked_pause));
                self.parked_pause = (self.parked_pause * 2).min(self.destination.settings().retry_max);
            }
        } else if is_new && self.parked_due.is_none() {
            self.parked_pause = settings_retry;
            self.parked_due = Some(Instant::now() + settings_retry);
        }
        let sent = count.saturating_sub(refused + again.len());
        self.is_proven |= sent > 0;
        let counters = self.destination.counters();
        counters.confirmed(sent as u64, refused as u64, wall());
        let name = &self.destination.settings().name;
        match reason {
            Some(reason) if is_parking => {
                counters.note(&reason);
                if reason != self.last_parked {
                    tracing::warn!(
                        destination = name,
                        reason,
                        "values of single variables are parked; others are sent"
                    );
                    self.last_parked = reason;
                }
            }
            Some(reason) => {
                counters.note(&reason);
                tracing::warn!(destination = name, refused, reason, "the destination rejects values");
            }
            None => {}
        }
        self.pause = settings_retry;
        self.last_told.clear();
        self.size = (self.size * 2).min(self.size_max);
    }

    async fn failed(&mut self, fault: Fault, count: usize) {
        if matches!(fault, Fault::NoAnswer { .. }) {
            // A slow destination may accept a smaller batch in time.
            self.size = (count / 4).max(1);
        }
        let told = fault.to_string();
        let name = &self.destination.settings().name;
        let counters = self.destination.counters();
        counters.disconnected();
        counters.failed(&told);
        if told == self.last_told {
            tracing::debug!(destination = name, error = told, "still not sent");
        } else {
            tracing::warn!(destination = name, error = told, "values wait; trying again");
            self.last_told = told;
        }
        self.destination.pause(self.pause + jitter(self.pause)).await;
        self.pause = (self.pause * 2).min(self.destination.settings().retry_max);
    }

    async fn send(&mut self, next: &Next) -> Result<Taken, Fault> {
        let batch = match next {
            // All records stay behind parked ones.
            Next::Queue(batch, _) if batch.records.is_empty() => return Ok(Taken::default()),
            Next::Queue(batch, _) | Next::Parked(batch) => batch,
        };
        let deadline = self.destination.settings().deadline;
        let target = || self.destination.description().to_owned();
        // A panic of a library costs only a pause.
        match timeout(deadline, AssertUnwindSafe(self.sink.send(batch)).catch_unwind()).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Fault::other(target(), "the destination panicked; please report this")),
            Err(_) => Err(Fault::NoAnswer { target: target(), after: deadline }),
        }
    }
}

#[cfg(test)]
mod tests;
