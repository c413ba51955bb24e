//! The standard methods that let clients change users and roles (Part 18): AddUser, ChangePassword, AddRole,
//! AddIdentity and similar. Changes take effect at once and are stored in the users file.
//!
//! The methods require the role SecurityAdmin and an encrypted channel. ChangePassword is allowed for every user of the
//! file. They run on worker threads, because a password hash takes tens of milliseconds.
//!
//! - `users`: the UserManagement object (Part 18 §5); `roles`: the RoleSet object (§4.2 to §4.4);
//! - `arguments`: decoding of arguments.

mod arguments;
mod roles;
mod users;

use crate::users::{UserStore, UsersError};
use arguments::Inputs;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use taktwerk_net::clock;
use taktwerk_schema::ids::object_ids;
use taktwerk_server::authorization::Authorization;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler};
use taktwerk_server::space::NodeError;
use taktwerk_server::{AddressSpace, ServerShared};
use taktwerk_types::{NodeId, StatusCode, Variant};

/// How long the session of a user who has changed the password stays open, so that the response reaches the client.
const RESPONSE_GRACE: Duration = Duration::from_millis(500);

/// The result of a method.
type Outcome = Result<Vec<Variant>, StatusCode>;

/// The methods that change users and roles of a server.
#[derive(Debug)]
pub struct Management {
    store: Arc<UserStore>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The roles of the configuration, without the users file.
    base: Authorization,
    space: Weak<AddressSpace>,
    /// Set when the server runs.
    server: Weak<ServerShared>,
    /// When the sessions of changed users are closed.
    ending: Option<Instant>,
    attempts: users::Attempts,
}

impl Management {
    /// Manages the users and roles of a store; `base` contains the roles of the configuration.
    #[must_use]
    pub fn new(store: Arc<UserStore>, base: Authorization) -> Arc<Self> {
        let attempts = users::Attempts::default();
        let inner = Inner { base, space: Weak::new(), server: Weak::new(), ending: None, attempts };
        Arc::new(Self { store, inner: Mutex::new(inner) })
    }

    /// Installs the methods in a server's address space, and adds objects for roles in the server's own namespace.
    ///
    /// # Errors
    /// Nodes with the same ids exist already.
    pub fn install(self: &Arc<Self>, space: &Arc<AddressSpace>) -> Result<(), NodeError> {
        self.inner().space = Arc::downgrade(space);
        users::install(self, space)?;
        roles::install(self, space)
    }

    /// Applies changes to a running server from now on.
    pub fn start(&self, server: &Arc<ServerShared>) {
        self.inner().server = Arc::downgrade(server);
    }

    /// The roles including the users file, and the names in that file that are not roles.
    #[must_use]
    pub fn authorization(&self) -> (Authorization, Vec<String>) {
        let mut authorization = self.inner().base.clone();
        let unknown = self.store.grant(&mut authorization);
        (authorization, unknown)
    }

    /// Replaces the roles of the configuration.
    pub fn set_base(self: &Arc<Self>, base: Authorization) {
        let mut inner = self.inner();
        inner.base = base;
        self.publish(&inner);
    }

    /// Applies the current content of the users file. Returns the names in it that are not roles.
    pub fn users_changed(self: &Arc<Self>) -> Vec<String> {
        let inner = self.inner();
        let unknown = self.publish(&inner);
        if let Some(server) = inner.server.upgrade() {
            // Close the sessions of users that were removed.
            server.trust_list_changed();
        }
        unknown
    }

    /// Closes sessions whose time has come. Call it several times a second.
    pub fn tick(&self) {
        let mut inner = self.inner();
        if inner.ending.is_some_and(|at| at <= Instant::now()) {
            inner.ending = None;
            if let Some(server) = inner.server.upgrade() {
                server.trust_list_changed();
            }
        }
    }

    /// Schedules the closing of sessions of changed users, after the response had time to reach the client. A further
    /// change does not postpone it.
    fn end_soon(&self) {
        self.inner().ending.get_or_insert_with(|| Instant::now() + RESPONSE_GRACE);
    }

    fn publish(self: &Arc<Self>, inner: &Inner) -> Vec<String> {
        let mut authorization = inner.base.clone();
        let unknown = self.store.grant(&mut authorization);
        if let Some(space) = inner.space.upgrade() {
            if let Err(error) = roles::show(self, &space, &authorization, &self.store.users()) {
                tracing::warn!(%error, "cannot add a role to the RoleSet");
            }
        }
        if let Some(server) = inner.server.upgrade() {
            server.set_authorization(authorization, clock::wall());
        }
        unknown
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requires the permission to administer security, and an encrypted channel.
fn administers(caller: &CallContext) -> Result<(), StatusCode> {
    if !caller.encrypted {
        return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    }
    let wanted = NodeId::numeric(0, object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN);
    if caller.roles.contains(&wanted) { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
}

type Run = fn(&Arc<Management>, &CallContext, Inputs) -> Outcome;

/// A method handler that runs on a worker thread.
fn method(management: &Arc<Management>, run: Run) -> Arc<dyn MethodHandler> {
    struct Method(Weak<Management>, Run);
    impl MethodHandler for Method {
        fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
            let (management, context, run) = (self.0.upgrade(), context.clone(), self.1);
            MethodCall::Blocking(Box::new(move || {
                let management = management.ok_or(StatusCode::BAD_SHUTDOWN)?;
                run(&management, &context, Inputs::new(inputs))
            }))
        }

        fn may_block(&self) -> bool {
            true
        }
    }
    Arc::new(Method(Arc::downgrade(management), run))
}

/// The status of a refused change.
struct Refused(StatusCode);

impl From<UsersError> for Refused {
    fn from(error: UsersError) -> Self {
        Self(match error {
            UsersError::Exists(_) => StatusCode::BAD_ALREADY_EXISTS,
            UsersError::Unknown(_) => StatusCode::BAD_NOT_FOUND,
            UsersError::Password => StatusCode::BAD_OUT_OF_RANGE,
            UsersError::Name | UsersError::Alike { .. } => StatusCode::BAD_INVALID_ARGUMENT,
            UsersError::File { .. } | UsersError::Exposed { .. } | UsersError::Malformed { .. } => {
                tracing::error!(%error, "the users cannot be changed");
                StatusCode::BAD_RESOURCE_UNAVAILABLE
            }
        })
    }
}

impl From<StatusCode> for Refused {
    fn from(status: StatusCode) -> Self {
        Self(status)
    }
}
