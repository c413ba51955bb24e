//! Work that a shard does not do itself because it may block or has side effects.

use crate::account::Charge;
use crate::callback::{BoxFuture, MethodResult};
use crate::durable::work::Written;
use crate::history::HistoryValue;
use crate::identity::Verdict;
use crate::job_kind::JobKind;
use crate::session::proof::{Introduced, Proved, Refusal};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use taktwerk_crypto::{CryptoError, JobOutput};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{DataValue, StatusCode};

/// Identifies an effect. Return it with the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    /// Which of the request's effects.
    pub(crate) part: u32,
}

/// Work for the driver. Answer every effect with [`Shard::done`](crate::Shard::done), in any order. The number of
/// outstanding effects is limited by [`Limits::effects_max`](crate::Limits::effects_max).
#[derive(Debug)]
pub struct Effect {
    /// Identifies the effect in the answer.
    pub token: Token,
    /// The kind of work. Its cost and the suitable threads depend on it.
    pub kind: JobKind,
    /// The work.
    pub job: Job,
}

/// A job and its kind.
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

    /// Attaches the charge for the data that the work uses: the work can outlive its request.
    pub(crate) fn charged(self, charge: Charge) -> Self {
        Self { kind: self.kind, job: self.job.charged(charge) }
    }

    /// Skips the work if the request is abandoned before it begins.
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
    /// Wraps a blocking function and the conversion of its result.
    pub(crate) fn blocking<T: 'static>(run: Box<dyn FnOnce() -> T + Send>, wrap: fn(T) -> JobResult) -> Self {
        Self::Blocking(Box::new(move || wrap(run())))
    }

    /// Attaches the charge for the data that the work uses: the work can outlive its request.
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

    /// Wraps a future and the conversion of its result.
    pub(crate) fn future<T: Send + 'static>(future: BoxFuture<T>, wrap: fn(T) -> JobResult) -> Self {
        Self::Future(Box::pin(async move { wrap(future.await) }))
    }
}

/// The result of an effect.
#[derive(Debug)]
pub enum JobResult {
    /// Result of a value source.
    Value(DataValue),
    /// Result of a method.
    Method(MethodResult),
    /// Result of a write.
    Written(StatusCode),
    /// Result of the checks for a session.
    Session(SessionResult),
    /// Result of a HistoryRead or HistoryUpdate.
    History(HistoryResult),
    /// Result of a write of durable subscriptions.
    Durable(DurableResult),
    /// Result of a cryptographic job.
    Crypto(Result<JobOutput, CryptoError>),
    /// The effect could not be run, or its function panicked.
    Failed,
}

/// The result of the work for CreateSession or ActivateSession.
#[derive(Debug)]
pub struct SessionResult(pub(crate) SessionWork);

/// The result of a write of durable subscriptions.
#[derive(Debug)]
pub struct DurableResult(pub(crate) Written);

/// The result of a HistoryRead or HistoryUpdate.
#[derive(Debug)]
pub struct HistoryResult {
    /// The encoded results for the response.
    pub(crate) encoded: Vec<u8>,
    /// For the audit: the status of each operation of a HistoryUpdate.
    pub(crate) statuses: Vec<StatusCode>,
    /// For the audit: some of the values before each operation.
    pub(crate) old: Vec<Vec<HistoryValue>>,
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
        Self { encoded, statuses: vec![status; count], old: Vec::new() }
    }
}

#[derive(Debug)]
pub(crate) enum SessionWork {
    /// The server's signature and key.
    Introduced(Result<Introduced, StatusCode>),
    /// Signatures and secrets.
    Proved(Result<Proved, Refusal>),
    /// The application's verdict on a user.
    Verified(Verdict),
}
