//! Durable subscriptions (Part 4 §6.8): passing changes to a job, and restoring at the start.

use super::{Shard, outbox};
use crate::durable::Change;
use crate::durable::work::Written;
use crate::effect::{DurableResult, JobResult, Task};
use crate::history::StoreError;
use crate::job_kind::JobKind;
use crate::now::Now;
use crate::service::deferred::Kind;
use crate::service::durable;
use std::sync::Arc;

impl Shard {
    /// Restores the durable subscriptions of an earlier run before anything else happens.
    #[inline]
    pub(super) fn restore(&mut self, now: Now) {
        if !self.restoring.is_empty() {
            self.restore_all(now);
        }
    }

    #[cold]
    fn restore_all(&mut self, now: Now) {
        for saved in core::mem::take(&mut self.restoring) {
            durable::restore(&mut self.context(None, now), saved);
        }
        self.count_engine();
    }

    /// Starts a write if one is due and none is in progress.
    #[inline]
    pub(super) fn write_durable(&mut self, now: Now) {
        if self.engine.write_deadline().is_some_and(|at| at <= now.instant) {
            self.start_write(now);
        }
    }

    #[cold]
    fn start_write(&mut self, now: Now) {
        let Some(config) = &self.shared.config().durable else { return };
        let store = Arc::clone(&config.store);
        let Some(batch) = self.engine.collect_durable(self.shared.space(), now) else { return };
        let changes = Arc::clone(&batch.changes);
        let task = Task::blocking(JobKind::WriteSubscriptions, move || {
            JobResult::Durable(DurableResult(batch.run(&*store)))
        });
        self.deferrals.run_apart(Kind::Durable(changes), task);
    }

    /// A write is done: sends messages that waited for it, and processes pending transfers to other shards.
    pub(super) fn durable_written(&mut self, changes: Arc<Vec<Change>>, result: Option<JobResult>, now: Now) {
        let written = match result {
            Some(JobResult::Durable(DurableResult(written))) => written,
            _ => Written {
                result: Err(StoreError::unavailable("the store has failed".to_owned())),
                shortened: Vec::new(),
            },
        };
        let limits = &self.shared.config().limits;
        let mut outbox =
            outbox(&mut self.connections, &mut self.output.transmit, &mut self.output.buffers, now, limits);
        self.engine.durable_written(changes, written, now, &mut outbox);
        // Transfer requests that waited for the write.
        for ask in core::mem::take(&mut self.transfers.postponed) {
            self.asked(ask, now);
        }
        self.write_durable(now);
    }

    /// Whether the shard must write before the server ends.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.engine.is_ending_durable()
    }
}
