//! Work that a shard does not do itself: it may block, or it is not pure.

use crate::account::Charge;
use crate::callback::{BoxFuture, MethodResult};
use crate::durable::work::Written;
use crate::identity::Verdict;
use crate::job_kind::JobKind;
use crate::session::proof::{Introduced, Proved, Refusal};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use taktwerk_crypto::{CryptoError, JobOutput};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{DataValue, StatusCode};

/// Names an effect; its result is given back with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    /// Which of a request's effects.
    pub(crate) part: u32,
}

/// Work for the driver. Every effect is to be answered with [`Shard::done`](crate::Shard::done), in any order;
/// how many can be outstanding is bounded by [`Limits::effects_max`](crate::Limits::effects_max).
#[derive(Debug)]
pub struct Effect {
    /// What to answer with.
    pub token: Token,
    /// What it costs, and on which threads it had better run, depends on this.
    pub kind: JobKind,
    /// What to do.
    pub job: Job,
}

/// A job and what kind it is.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) kind: JobKind,
    pub(crate) job: Job,
}

impl Task {
    pub(crate) fn new(kind: JobKind, job: Job) -> Self {
        Self { kind, job }
    }

    /// Work for a thread that may block.
    pub(crate) fn blocking(kind: JobKind, run: impl FnOnce() -> JobResult + Send + 'static) -> Self {
        Self { kind, job: Job::Blocking(Box::new(run)) }
    }

    /// Lets the work own the charge for what it works on: it can outlive the request that asked for it.
    pub(crate) fn charged(self, charge: Charge) -> Self {
        Self { kind: self.kind, job: self.job.charged(charge) }
    }

    /// Does nothing if the request is abandoned before the work begins.
    pub(crate) fn unless(self, is_abandoned: &Arc<AtomicBool>) -> Self {
        Self { kind: self.kind, job: self.job.unless(Arc::clone(is_abandoned)) }
    }
}

/// How an effect is run.
pub enum Job {
    /// On a thread that may block.
    Blocking(Box<dyn FnOnce() -> JobResult + Send>),
    /// On an executor.
    Future(BoxFuture<JobResult>),
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking(_) => "Blocking",
            Self::Future(_) => "Future",
        })
    }
}

impl Job {
    /// Wraps a blocking function and says what its result is.
    pub(crate) fn blocking<T: 'static>(run: Box<dyn FnOnce() -> T + Send>, wrap: fn(T) -> JobResult) -> Self {
        Self::Blocking(Box::new(move || wrap(run())))
    }

    /// Lets the work own the charge for what it works on: it can outlive the request that asked for it.
    pub(crate) fn charged(self, charge: Charge) -> Self {
        match self {
            Self::Blocking(run) => Self::Blocking(Box::new(move || {
                let result = run();
                drop(charge);
                result
            })),
            Self::Future(future) => Self::Future(Box::pin(async move {
                let result = future.await;
                drop(charge);
                result
            })),
        }
    }

    fn unless(self, is_abandoned: Arc<AtomicBool>) -> Self {
        match self {
            Self::Blocking(run) => Self::Blocking(Box::new(move || {
                if is_abandoned.load(Ordering::Acquire) { JobResult::Failed } else { run() }
            })),
            Self::Future(future) => Self::Future(Box::pin(async move {
                if is_abandoned.load(Ordering::Acquire) { JobResult::Failed } else { future.await }
            })),
        }
    }

    /// Wraps a future and says what its result is.
    pub(crate) fn future<T: Send + 'static>(future: BoxFuture<T>, wrap: fn(T) -> JobResult) -> Self {
        Self::Future(Box::pin(async move { wrap(future.await) }))
    }
}

/// The result of an effect.
#[derive(Debug)]
pub enum JobResult {
    /// Of a value source.
    Value(DataValue),
    /// Of a method.
    Method(MethodResult),
    /// Of a write.
    Written(StatusCode),
    /// Of the checks around a session.
    Session(SessionResult),
    /// Of a HistoryRead or HistoryUpdate.
    History(HistoryResult),
    /// Of a write of durable subscriptions.
    Durable(DurableResult),
    /// Of a cryptographic job.
    Crypto(Result<JobOutput, CryptoError>),
    /// The effect could not be run, or its function panicked.
    Failed,
}

/// What came of the work for CreateSession or ActivateSession.
#[derive(Debug)]
pub struct SessionResult(pub(crate) SessionWork);

/// What came of a write of durable subscriptions.
#[derive(Debug)]
pub struct DurableResult(pub(crate) Written);

/// What came of a HistoryRead or HistoryUpdate.
#[derive(Debug)]
pub struct HistoryResult {
    /// The results as the response carries them.
    pub(crate) encoded: Vec<u8>,
    /// For the audit: the status of each operation of a HistoryUpdate.
    pub(crate) statuses: Vec<StatusCode>,
}

impl HistoryResult {
    /// The same status for all operations; `failure` appends the result of one.
    pub(crate) fn failed(count: usize, status: StatusCode, failure: fn(StatusCode, &mut Vec<u8>)) -> Self {
        let mut encoded = Vec::new();
        encode_len(count, &mut encoded);
        for _ in 0..count {
            failure(status, &mut encoded);
        }
        encode_len(0, &mut encoded);
        Self { encoded, statuses: vec![status; count] }
    }
}

#[derive(Debug)]
pub(crate) enum SessionWork {
    /// The server's signature and key.
    Introduced(Result<Introduced, StatusCode>),
    /// Signatures and secrets.
    Proved(Result<Proved, Refusal>),
    /// What the application says of a user.
    Verified(Verdict),
}
