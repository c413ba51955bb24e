//! Work that a shard does not do itself: it may block, or it is not pure.

use crate::account::Charge;
use crate::callback::{BoxFuture, MethodResult};
use crate::identity::Verdict;
use crate::session::proof::{Introduced, Proved, Refusal};
use core::fmt;
use taktwerk_crypto::{CryptoError, JobOutput, SecurityPolicy};
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

/// What an effect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum JobKind {
    /// An OpenSecureChannel request: the certificate is validated, one block or more decrypted with the server's key, and
    /// the signature verified.
    OpenChannel(SecurityPolicy),
    /// An OpenSecureChannel response: keys are agreed on and derived, the response is signed and encrypted.
    AnswerChannel(SecurityPolicy),
    /// A certificate in use is validated again, because a trust list has changed.
    ValidateCertificate,
    /// CreateSession: the server's signature, and if `offers_key` a key pair for the user's secret with a second one.
    SignSession {
        /// Whose algorithms are used.
        policy: SecurityPolicy,
        /// The response offers a key.
        offers_key: bool,
    },
    /// ActivateSession, before the user is known.
    ProveSession {
        /// The client's signature is verified with these algorithms; `None` without security.
        client: Option<SecurityPolicy>,
        /// What the user's token needs.
        user: UserProofKind,
        /// The response offers a key for the user's next secret.
        offers_key: bool,
    },
    /// The application checks a user name and password, a certificate, or an issued token.
    CheckCredential,
    /// A value source answers a Read.
    ReadValue,
    /// A value source gives the value of a monitored item.
    SampleValue,
    /// A method runs.
    CallMethod,
}

/// What it takes to look into a user's identity token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UserProofKind {
    /// Nothing: Anonymous, or a secret that was not encrypted.
    None,
    /// A signature is verified, and the user's certificate validated.
    Signature(SecurityPolicy),
    /// A password or token is decrypted.
    Secret(SecurityPolicy),
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
    /// Of the checks around a session.
    Session(SessionResult),
    /// Of a cryptographic job.
    Crypto(Result<JobOutput, CryptoError>),
    /// The effect could not be run, or its function panicked.
    Failed,
}

/// What came of the work for CreateSession or ActivateSession.
#[derive(Debug)]
pub struct SessionResult(pub(crate) SessionWork);

#[derive(Debug)]
pub(crate) enum SessionWork {
    /// The server's signature and key.
    Introduced(Result<Introduced, StatusCode>),
    /// Signatures and secrets.
    Proved(Result<Proved, Refusal>),
    /// What the application says of a user.
    Verified(Verdict),
}
