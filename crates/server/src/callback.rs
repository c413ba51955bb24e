//! What applications plug into the address space: value sources, write handlers and methods.
//!
//! Callbacks marked slow run as [`Effect`](crate::Effect)s outside the shard, so no device or database can hold up
//! other clients.

use crate::account::{Account, Category, Charge};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::{Arc, Weak};
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};

/// Who calls: for methods and write handlers that decide by user or session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallContext {
    /// The session's id.
    pub session_id: NodeId,
    /// The user's name, `None` for Anonymous.
    pub user: Option<Box<str>>,
    /// The user's name if the password has to be changed before anything else (Part 18 §5.2.8); `user` is `None` then.
    pub user_to_change: Option<Box<str>>,
    /// The Object the method is called on; null for reads and writes.
    pub object_id: NodeId,
    /// The roles of the session, in the order of their ids.
    pub roles: Arc<[NodeId]>,
    /// Whether the channel encrypts: what hands out secrets asks for it.
    pub encrypted: bool,
    /// Whether the session is still there: for what is kept for it.
    pub session_life: SessionLife,
    /// What is kept for the session is charged here.
    pub session_account: SessionAccount,
}

impl CallContext {
    /// Somebody without a session who calls a Method on an Object, with the rights of some roles.
    #[must_use]
    pub fn in_process(object_id: NodeId, roles: &[NodeId], encrypted: bool) -> Self {
        let mut roles = roles.to_vec();
        roles.sort();
        Self { object_id, roles: roles.into(), encrypted, ..Self::default() }
    }

    /// The ApplicationName of the client, as it has given it for the session; `None` without a session, or if it is over.
    #[must_use]
    pub fn client_name(&self) -> Option<String> {
        let session = self.session_life.0.as_ref()?.upgrade()?;
        Some(session.client_name().to_owned())
    }
}

/// Tells whether a session has ended.
#[derive(Clone, Default)]
pub struct SessionLife(Option<Weak<dyn ClientOf>>);

/// What is known of the client as long as its session is there.
pub(crate) trait ClientOf: Send + Sync {
    /// Its ApplicationName.
    fn client_name(&self) -> &str;
}

impl SessionLife {
    /// Lives as long as something that the session keeps.
    pub(crate) fn of<T: ClientOf + 'static>(session: &Arc<T>) -> Self {
        let session: Weak<T> = Arc::downgrade(session);
        Self(Some(session))
    }

    /// Whether the session has ended. What is nobody's (the default) does not end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|session| session.strong_count() == 0)
    }
}

impl fmt::Debug for SessionLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLife").field("is_over", &self.is_over()).finish()
    }
}

/// The account of a session, for what a method keeps for it: open files, for example.
#[derive(Clone, Default)]
pub struct SessionAccount(Option<Arc<Account>>);

impl SessionAccount {
    pub(crate) fn of(account: &Arc<Account>) -> Self {
        Self(Some(Arc::clone(account)))
    }

    /// Charges bytes until the charge is dropped. Callers without a session have no account: nothing is charged.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the session, its address or the server may not keep more.
    pub fn charge(&self, bytes: usize) -> Result<Option<Charge>, StatusCode> {
        let charge = |account: &Arc<Account>| account.charge(Category::Sessions, bytes);
        self.0.as_ref().map(charge).transpose().map_err(|exhausted| exhausted.status())
    }
}

impl fmt::Debug for SessionAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionAccount")
    }
}

/// A future that a driver runs on its executor.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How long a source may take to answer, unless it says otherwise.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);

/// Produces a Variable's value when somebody asks (Part 4 §5.11.2) or at each sampling.
pub trait ValueSource: Send + Sync {
    /// How the value is made.
    fn read(&self) -> SourceRead;

    /// How long that may take, if it is not made at once. Default: [`DEADLINE_DEFAULT`].
    fn deadline(&self) -> Duration {
        DEADLINE_DEFAULT
    }
}

/// A source's answer.
#[non_exhaustive]
pub enum SourceRead {
    /// The value, at once. Missing timestamps are filled in by the server.
    Now(DataValue),
    /// The value comes from something that may block: the function runs on a worker thread.
    Blocking(Box<dyn FnOnce() -> DataValue + Send>),
    /// The value comes later: the future runs on the driver's executor.
    Later(BoxFuture<DataValue>),
}

/// Decides on a client's write before the value is stored, and can replace the value or refuse.
pub trait WriteHandler: Send + Sync {
    /// Returns the value to store, or the status that the client gets.
    ///
    /// # Errors
    /// Whatever status the application wants the client to see.
    fn write(&self, context: &CallContext, value: DataValue) -> Result<DataValue, StatusCode>;

    /// What the server calls: [`Self::write`], unless that takes its time.
    fn begin_write(&self, context: &CallContext, value: DataValue) -> WriteCall {
        WriteCall::Now(self.write(context, value))
    }

    /// Whether [`Self::begin_write`] may answer [`WriteCall::Blocking`]. If true, it is only called while there is room for
    /// work on a worker thread; otherwise the client gets Bad_ServerTooBusy. If false, the function in `Blocking` may be
    /// dropped without having run. Default: false.
    fn may_block(&self) -> bool {
        false
    }
}

/// What becomes of a client's write.
#[non_exhaustive]
pub enum WriteCall {
    /// The value to store, or the status that the client gets.
    Now(Result<DataValue, StatusCode>),
    /// The handler may block: the function runs on a worker thread, and the client gets its status then. The function stores
    /// the value, because it may end when no client waits for it any more. It does not run if the client gives the request up
    /// before a thread is free. Unlike after [`Self::Now`], values of the
    /// variable that this one describes get no SemanticsChanged bit.
    Blocking(Box<dyn FnOnce() -> Result<(), StatusCode> + Send>),
}

/// The implementation of a Method (Part 4 §5.12.2).
pub trait MethodHandler: Send + Sync {
    /// Runs the method; the server has checked number and types of `inputs` against InputArguments.
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall;

    /// Whether [`Self::call`] may answer something else than [`MethodCall::Now`]. If true, it is only called while there is
    /// room for work on a worker thread; otherwise the client gets Bad_ServerTooBusy. If false, what it answers may be
    /// dropped without having run. Default: false.
    fn may_block(&self) -> bool {
        false
    }
}

/// Deletes an Object that the application has made when a client asks for it with DeleteNodes (Part 4 §5.8.4).
pub trait DeleteHandler: Send + Sync {
    /// Deletes the Object with its parts. The server has checked the permission DeleteNode. Must not block.
    ///
    /// # Errors
    /// Why it stays.
    fn delete(&self, context: &CallContext) -> Result<(), StatusCode>;
}

/// The outputs of a method or the status that the client gets.
pub type MethodResult = Result<Vec<Variant>, StatusCode>;

/// A method's answer.
#[non_exhaustive]
pub enum MethodCall {
    /// The result, at once.
    Now(MethodResult),
    /// The method may block: the function runs on a worker thread. It does not run if the client gives the request up before
    /// a thread is free.
    Blocking(Box<dyn FnOnce() -> MethodResult + Send>),
    /// The result comes later: the future runs on the driver's executor.
    Later(BoxFuture<MethodResult>),
}

impl fmt::Debug for dyn ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ValueSource")
    }
}

impl fmt::Debug for dyn WriteHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteHandler")
    }
}

impl fmt::Debug for dyn MethodHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MethodHandler")
    }
}

impl fmt::Debug for dyn DeleteHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeleteHandler")
    }
}

impl<F: Fn() -> DataValue + Send + Sync> ValueSource for F {
    fn read(&self) -> SourceRead {
        SourceRead::Now(self())
    }
}

impl<F> WriteHandler for F
where
    F: Fn(&CallContext, DataValue) -> Result<DataValue, StatusCode> + Send + Sync,
{
    fn write(&self, context: &CallContext, value: DataValue) -> Result<DataValue, StatusCode> {
        self(context, value)
    }
}

impl<F: Fn(&CallContext, Vec<Variant>) -> MethodResult + Send + Sync> MethodHandler for F {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        MethodCall::Now(self(context, inputs))
    }
}
