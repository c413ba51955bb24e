//! Runs the effects of a shard on other threads and returns the results to it.

use super::core::Core;
use super::mailbox::{Mail, Mailbox};
use super::options::ServerOptions;
use crate::executor::Executor;
use crate::workers::Workers;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use taktwerk_server::{Effect, Job, JobKind, JobResult, Token};

/// The worker threads of all shards. Each kind of work has its own pool: blocked application callbacks do not delay
/// logins or handshakes, and password guessing does not delay handshakes.
#[derive(Clone)]
pub(super) struct Pools {
    security: Workers,
    credentials: Workers,
    callbacks: Workers,
    history: Workers,
    remote_history: Workers,
    subscriptions: Workers,
}

impl Pools {
    pub(super) fn new(options: &ServerOptions) -> Self {
        Self {
            security: Workers::new("taktwerk-crypto", options.security_threads_max),
            credentials: Workers::new("taktwerk-login", options.credential_threads_max),
            callbacks: Workers::new("taktwerk-call", options.callback_threads_max),
            history: Workers::new("taktwerk-history", options.history_threads_max),
            remote_history: Workers::new("taktwerk-remote-history", options.remote_history_threads_max),
            // The store of durable subscriptions has a single writer.
            subscriptions: Workers::new("taktwerk-durable", 1),
        }
    }

    fn of(&self, kind: JobKind) -> &Workers {
        match kind {
            JobKind::CheckCredential => &self.credentials,
            JobKind::ReadValue | JobKind::SampleValue | JobKind::CallMethod | JobKind::WriteValue => {
                &self.callbacks
            }
            JobKind::ReadHistory | JobKind::UpdateHistory => &self.history,
            JobKind::ReadRemoteHistory => &self.remote_history,
            JobKind::WriteSubscriptions => &self.subscriptions,
            _ => &self.security,
        }
    }
}

/// Where the effects of one shard run. The shard limits how many run at a time.
pub(super) struct Effects<C: Core> {
    mailbox: Arc<Mailbox<C>>,
    pools: Pools,
    executor: Arc<Executor>,
}

impl<C: Core> Effects<C> {
    pub(super) fn new(mailbox: Arc<Mailbox<C>>, pools: Pools, executor: Arc<Executor>) -> Self {
        Self { mailbox, pools, executor }
    }

    pub(super) fn run(&self, effect: Effect) {
        let Effect { token, kind, job } = effect;
        let mut answer = Answer { mailbox: Arc::clone(&self.mailbox), token: Some(token) };
        match job {
            Job::Blocking(function) => self.pools.of(kind).submit(move || {
                answer.give(catch_unwind(AssertUnwindSafe(function)).unwrap_or(JobResult::Failed));
            }),
            Job::Future(future) => {
                self.executor.spawn(async move { answer.give(future.await) });
            }
        }
    }
}

/// Sends the result of an effect, even if its future is dropped or panics.
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
