//! Extension points for applications: value sources, write handlers and methods.
//!
//! Slow callbacks run as [`Effect`](crate::Effect)s outside the shard, so that a device or database does not delay
//! other clients.

use crate::account::{Account, Category, Charge};
use core::any::Any;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::{Arc, Weak};
use taktwerk_types::{DataValue, NodeId, StatusCode, Variant};

/// The caller, for methods and write handlers that decide by user or session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallContext {
    /// The session's id.
    pub session_id: NodeId,
    /// The user's name, `None` for Anonymous.
    pub user: Option<Box<str>>,
    /// The user's name if the password must be changed first (Part 18 §5.2.8); `user` is `None` then.
    pub user_to_change: Option<Box<str>>,
    /// The Object the method is called on; null for reads and writes.
    pub object_id: NodeId,
    /// The roles of the session, sorted by id.
    pub roles: Arc<[NodeId]>,
    /// Whether the channel is encrypted. Methods that return secrets require it.
    pub encrypted: bool,
    /// Tells whether the session still exists.
    pub session_life: SessionLife,
    /// Account for data kept on behalf of the session.
    pub session_account: SessionAccount,
    /// The audit record of the call. Methods whose changes have their own EventType record them with
    /// [`AuditRecord::of_change`](crate::audit::AuditRecord::of_change).
    pub noted: NotedCall,
}

impl CallContext {
    /// A caller without a session that calls a Method on an Object with the rights of some roles.
    #[must_use]
    pub fn in_process(object_id: NodeId, roles: &[NodeId], encrypted: bool) -> Self {
        let mut roles = roles.to_vec();
        roles.sort();
        Self { object_id, roles: roles.into(), encrypted, ..Self::default() }
    }

    /// The client's ApplicationName in the session; `None` without a session or after it has ended.
    #[must_use]
    pub fn client_name(&self) -> Option<String> {
        let session = self.session_life.0.as_ref()?.upgrade()?;
        Some(session.client_name().to_owned())
    }

    /// The certificate of the client's application in DER, possibly with its issuers; `None` without one or without a
    /// session.
    #[must_use]
    pub fn client_certificate(&self) -> Option<Arc<[u8]>> {
        self.session_life.0.as_ref()?.upgrade()?.client_certificate()
    }
}

/// The audit record of a Method call; empty (the default) if calls are not audited. Opaque here: the audit module,
/// which is above this one, knows its type.
#[derive(Clone, Default)]
pub struct NotedCall(Option<Arc<dyn Any + Send + Sync>>);

impl NotedCall {
    pub(crate) fn of<T: Any + Send + Sync>(record: &Arc<T>) -> Self {
        let record: Arc<T> = Arc::clone(record);
        Self(Some(record))
    }

    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_deref()?.downcast_ref()
    }
}

impl fmt::Debug for NotedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotedCall")
    }
}

/// Tells whether a session has ended.
#[derive(Clone, Default)]
pub struct SessionLife(Option<Weak<dyn ClientOf>>);

/// Data about the client while its session exists.
pub(crate) trait ClientOf: Send + Sync {
    /// Its ApplicationName.
    fn client_name(&self) -> &str;
    /// The client certificate of its channel, in DER.
    fn client_certificate(&self) -> Option<Arc<[u8]>>;
    /// Whether it has a connection.
    fn is_connected(&self) -> bool;
    /// A number that changes with every request.
    fn requests(&self) -> u64;
}

/// The activity of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionActivity {
    /// Whether it has a connection. A session without one can be resumed until it times out.
    pub is_connected: bool,
    /// A number that changes with every request of the client.
    pub requests: u64,
}

impl SessionLife {
    /// Refers to a session, which it does not keep alive.
    pub(crate) fn of<T: ClientOf + 'static>(session: &Arc<T>) -> Self {
        let session: Weak<T> = Arc::downgrade(session);
        Self(Some(session))
    }

    /// Whether the session has ended. The default, which refers to no session, never ends.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|session| session.strong_count() == 0)
    }

    /// The session's activity; `None` if it has ended or there is none.
    #[must_use]
    pub fn activity(&self) -> Option<SessionActivity> {
        let session = self.0.as_ref()?.upgrade()?;
        Some(SessionActivity { is_connected: session.is_connected(), requests: session.requests() })
    }
}

impl fmt::Debug for SessionLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLife").field("is_over", &self.is_over()).finish()
    }
}

/// The account of a session, for what a method keeps on its behalf, such as open files.
#[derive(Clone, Default)]
pub struct SessionAccount(Option<Arc<Account>>);

impl SessionAccount {
    pub(crate) fn of(account: &Arc<Account>) -> Self {
        Self(Some(Arc::clone(account)))
    }

    /// Charges bytes until the charge is dropped. Callers without a session have no account and are not charged.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the limit of the session, its address or the server is reached.
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

/// Default time limit for a source's answer.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);

/// Provides a Variable's value on each Read (Part 4 §5.11.2) and at each sampling.
pub trait ValueSource: Send + Sync {
    /// Starts reading the value.
    fn read(&self) -> SourceRead;

    /// Time limit if the value is not available at once. Default: [`DEADLINE_DEFAULT`].
    fn deadline(&self) -> Duration {
        DEADLINE_DEFAULT
    }
}

/// A source's answer.
#[non_exhaustive]
pub enum SourceRead {
    /// The value, available at once. The server fills in missing timestamps.
    Now(DataValue),
    /// Reading may block: the function runs on a worker thread.
    Blocking(Box<dyn FnOnce() -> DataValue + Send>),
    /// The value arrives later: the future runs on the driver's executor.
    Later(BoxFuture<DataValue>),
}

/// Checks a client's write before the value is stored. It can replace the value or refuse the write.
pub trait WriteHandler: Send + Sync {
    /// Returns the value to store, or the status that the client gets.
    ///
    /// # Errors
    /// Any status that the application wants the client to see.
    fn write(&self, context: &CallContext, value: DataValue) -> Result<DataValue, StatusCode>;

    /// Called by the server. Default: [`Self::write`] at once.
    fn begin_write(&self, context: &CallContext, value: DataValue) -> WriteCall {
        WriteCall::Now(self.write(context, value))
    }

    /// Whether [`Self::begin_write`] may return [`WriteCall::Blocking`]. If true, it is only called while a worker
    /// thread can accept work; otherwise the client gets Bad_ServerTooBusy. If false, the function in `Blocking` may be
    /// dropped without having run. Default: false.
    fn may_block(&self) -> bool {
        false
    }
}

/// The result of a client's write.
#[non_exhaustive]
pub enum WriteCall {
    /// The value to store, or the status that the client gets.
    Now(Result<DataValue, StatusCode>),
    /// The handler may block: the function runs on a worker thread, and the client gets its status afterwards. The
    /// function must store the value itself, because it may finish after the client has stopped waiting. It does not
    /// run if the client cancels the request before a thread is free. Unlike [`Self::Now`], it does not set the
    /// SemanticsChanged bit on the variables that this one describes.
    Blocking(Box<dyn FnOnce() -> Result<(), StatusCode> + Send>),
}

/// The implementation of a Method (Part 4 §5.12.2).
pub trait MethodHandler: Send + Sync {
    /// Runs the method. The server has checked number and types of `inputs` against InputArguments.
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall;

    /// Whether [`Self::call`] may return anything but [`MethodCall::Now`]. If true, it is only called while a worker
    /// thread can accept work; otherwise the client gets Bad_ServerTooBusy. If false, the returned work may be dropped
    /// without having run. Default: false.
    fn may_block(&self) -> bool {
        false
    }
}

/// Deletes an Object that the application created, when a client requests it with DeleteNodes (Part 4 §5.8.4).
pub trait DeleteHandler: Send + Sync {
    /// Deletes the Object with its parts. The server has checked the permission DeleteNode. Must not block.
    ///
    /// # Errors
    /// Why the Object cannot be deleted.
    fn delete(&self, context: &CallContext) -> Result<(), StatusCode>;
}

/// The outputs of a method, or the status for the client.
pub type MethodResult = Result<Vec<Variant>, StatusCode>;

/// A method's result.
#[non_exhaustive]
pub enum MethodCall {
    /// The result, available at once.
    Now(MethodResult),
    /// The method may block: the function runs on a worker thread. It does not run if the client cancels the request
    /// before a thread is free.
    Blocking(Box<dyn FnOnce() -> MethodResult + Send>),
    /// The result arrives later: the future runs on the driver's executor.
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
