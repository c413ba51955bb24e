//! Running what a shard does not do itself, and telling it the result.

use super::core::Core;
use super::mailbox::{Mail, Mailbox};
use crate::executor::Executor;
use crate::workers::Workers;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use taktwerk_server::{Effect, Job, JobResult, Token};

/// Where the effects of one shard run. How many run at a time is bounded by the shard.
pub(super) struct Effects<C: Core> {
    mailbox: Arc<Mailbox<C>>,
    workers: Workers,
    executor: Arc<Executor>,
}

impl<C: Core> Effects<C> {
    pub(super) fn new(mailbox: Arc<Mailbox<C>>, workers: Workers, executor: Arc<Executor>) -> Self {
        Self { mailbox, workers, executor }
    }

    pub(super) fn run(&self, effect: Effect) {
        let Effect { token, job, .. } = effect;
        let mut answer = Answer { mailbox: Arc::clone(&self.mailbox), token: Some(token) };
        match job {
            Job::Blocking(function) => self.workers.submit(move || {
                answer.give(catch_unwind(AssertUnwindSafe(function)).unwrap_or(JobResult::Failed));
            }),
            Job::Future(future) => {
                self.executor.spawn(async move { answer.give(future.await) });
            }
        }
    }
}

/// The answer that every effect owes, also when its future is dropped or panics.
struct Answer<C: Core> {
    mailbox: Arc<Mailbox<C>>,
    token: Option<Token>,
}

impl<C: Core> Answer<C> {
    fn give(&mut self, result: JobResult) {
        if let Some(token) = self.token.take() {
            self.mailbox.post(Mail::Done(token, result));
        }
    }
}

impl<C: Core> Drop for Answer<C> {
    fn drop(&mut self) {
        self.give(JobResult::Failed);
    }
}
