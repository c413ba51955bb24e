//! Push management of certificates (Part 12 §7.10): SecurityAdmins read and change the trust lists and renew the server's
//! certificates with the Methods of ServerConfiguration, over an encrypted channel.
//!
//! - `trust_list`: the trust lists as files; `open`: trust lists opened by clients; `content`: a trust list as one structure;
//! - `certificates`: requests and new certificates; `transaction`: changes that wait for ApplyChanges; `apply`: ApplyChanges;
//! - `changes`: audit records and warnings; `left_out`: parts of ServerConfiguration that are not implemented.
//!
//! The files of the PKI directory are the only state. Changes by other programs, such as `taktwerk pki`, are detected as usual.

mod apply;
mod certificates;
mod changes;
mod content;
mod left_out;
mod open;
mod transaction;
mod trust_list;

pub(super) use left_out::leave_out;

use super::Server;
use crate::lock::lock;
use crate::pki::Renewal;
use crate::space::{now, ns0};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Instant, UNIX_EPOCH};
use taktwerk_net::AuditSink;
use taktwerk_pki::{Group, Lists, StoreValidator};
use taktwerk_schema::ids::{object_ids, variable_ids};
use taktwerk_server::AddressSpace;
use taktwerk_server::authorization::role::well_known;
use taktwerk_server::callback::{CallContext, MethodCall, MethodHandler, MethodResult};
use taktwerk_server::space::NodeError;
use taktwerk_types::{NodeId, QualifiedName, StatusCode, UaString, UtcTime, Variant};
use transaction::State;

/// MaxTrustListSize: most bytes of a trust list written by a client.
const TRUST_LIST_BYTES_MAX: usize = 4 << 20;

const GROUPS: [(u32, Group); 2] = [
    (object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP, Group::Applications),
    (object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_USER_TOKEN_GROUP, Group::Users),
];

/// State shared by the Methods.
struct Push {
    space: Weak<AddressSpace>,
    trust: Arc<StoreValidator>,
    application_uri: String,
    /// The receiver of audit records.
    sink: Arc<dyn AuditSink>,
    /// Loads new certificates.
    renewal: Arc<Renewal>,
    /// Open trust lists, and the transaction.
    state: Mutex<State>,
    /// Serializes changes of files. Locked before `state`.
    changing: Mutex<()>,
}

type Run = fn(&Push, &CallContext, Inputs) -> MethodResult;

/// A Method that runs on a worker thread because it reads and writes files.
struct Method(Arc<Push>, Run);

impl MethodHandler for Method {
    fn call(&self, context: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        let (push, run, context) = (Arc::clone(&self.0), self.1, context.clone());
        MethodCall::Blocking(Box::new(move || {
            administers(&context)?;
            run(&push, &context, Inputs(inputs.into_iter()))
        }))
    }

    fn may_block(&self) -> bool {
        true
    }
}

/// Allows only SecurityAdmins over an encrypted channel, independent of the nodes' permissions.
fn administers(caller: &CallContext) -> Result<(), StatusCode> {
    if !caller.encrypted {
        return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    }
    // A user who must change the password may do nothing else (Part 18 §5.2.8).
    let is_admin = caller.roles.contains(&ns0(well_known::SECURITY_ADMIN)) && caller.user_to_change.is_none();
    if is_admin { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
}

/// The arguments of a call. Number and types have been checked.
struct Inputs(std::vec::IntoIter<Variant>);

impl Inputs {
    fn take<T: TryFrom<Variant>>(&mut self) -> Result<T, StatusCode> {
        self.0.next().and_then(|value| value.try_into().ok()).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
    }

    /// A value that may be null.
    fn optional<T: TryFrom<Variant> + Default>(&mut self) -> Result<T, StatusCode> {
        match self.0.next() {
            None | Some(Variant::Empty) => Ok(T::default()),
            Some(value) => value.try_into().map_err(|_| StatusCode::BAD_INVALID_ARGUMENT),
        }
    }
}

/// The status for files that cannot be read or written.
fn unavailable(error: &dyn core::fmt::Display) -> StatusCode {
    tracing::error!(%error, "push management cannot read or write the PKI");
    StatusCode::BAD_RESOURCE_UNAVAILABLE
}

/// Adds the Methods and sets the Properties.
pub(super) fn install(
    server: &Server,
    trust: &Arc<StoreValidator>,
    renewal: Arc<Renewal>,
    sink: Arc<dyn AuditSink>,
) -> Result<(), NodeError> {
    let space = server.space();
    let push = Arc::new(Push {
        space: Arc::downgrade(space),
        trust: Arc::clone(trust),
        application_uri: server.config().application_uri.clone(),
        sink,
        renewal,
        state: Mutex::default(),
        changing: Mutex::default(),
    });
    let methods = GROUPS.iter().map(|(group, _)| (trust_list_of(space, *group), trust_list::METHODS));
    let configuration = Some(ns0(object_ids::SERVER_CONFIGURATION));
    let others = [certificates::METHODS, apply::METHODS].map(|methods| (configuration.clone(), methods));
    for (object, methods) in methods.chain(others) {
        let Some(object) = object else { continue };
        for (name, run) in methods {
            if let Some(method) = space.child(&object, &QualifiedName::new(0, *name)) {
                space.set_method(&method, Arc::new(Method(Arc::clone(&push), *run)))?;
            }
        }
    }
    let show = |id: u32, value: Variant| {
        if let Ok(variable) = space.variable(&ns0(id)) {
            variable.set_at(value, now());
        }
    };
    show(variable_ids::SERVER_CONFIGURATION_MAX_TRUST_LIST_SIZE, (TRUST_LIST_BYTES_MAX as u32).into());
    show(
        variable_ids::SERVER_CONFIGURATION_SUPPORTED_PRIVATE_KEY_FORMATS,
        vec![UaString::from("PEM")].into(),
    );
    show(variable_ids::SERVER_CONFIGURATION_MULTICAST_DNS_ENABLED, false.into());
    push.show_types();
    push.show_trust_lists();
    let weak = Arc::downgrade(&push);
    trust.on_change(move |_| {
        if let Some(push) = weak.upgrade() {
            push.show_trust_lists();
        }
    });
    let weak = Arc::downgrade(&push);
    trust.on_look(move || {
        if let Some(push) = weak.upgrade() {
            push.tidy();
        }
    });
    Ok(())
}

/// The TrustList of a CertificateGroup.
fn trust_list_of(space: &AddressSpace, group: u32) -> Option<NodeId> {
    space.child(&ns0(group), &QualifiedName::new(0, "TrustList"))
}

impl Push {
    /// The open trust lists and the transaction, after removing those of ended sessions.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.tidy(Instant::now());
        state
    }

    /// Closes trust lists of ended or idle sessions. Called every second.
    fn tidy(&self) {
        let has_closed = lock(&self.state).tidy(Instant::now());
        if has_closed {
            self.show_trust_lists();
        }
    }

    /// A trust list including the caller's pending changes; without a transaction the current one.
    fn lists_of(&self, caller: &CallContext, group: Group) -> Lists {
        let replacement = self.state().own(caller).and_then(|own| own.replacement_of(group).cloned());
        let before = self.trust.store().lists(group);
        match replacement {
            Some(new) => new.over(before),
            None => before,
        }
    }

    /// The group whose TrustList an Object is.
    fn group_of(&self, object: &NodeId) -> Result<Group, StatusCode> {
        let space = self.space.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)?;
        let is_it = |(group, _): &&(u32, Group)| trust_list_of(&space, *group).as_ref() == Some(object);
        GROUPS.iter().find(is_it).map(|(_, group)| *group).ok_or(StatusCode::BAD_NOT_SUPPORTED)
    }

    /// Shows CertificateTypes of DefaultApplicationGroup: those of the server's certificates.
    fn show_types(&self) {
        let types: Vec<NodeId> = certificates::types(self.trust.store());
        let id =
            variable_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_CERTIFICATE_TYPES;
        if let Some(variable) = self.space.upgrade().and_then(|space| space.variable(&ns0(id)).ok()) {
            variable.set_at(types, now());
        }
    }

    /// Shows LastUpdateTime and other Properties of the TrustLists. Size has no meaning for them (Part 12 §7.8.2.1).
    fn show_trust_lists(&self) {
        let Some(space) = self.space.upgrade() else { return };
        for (id, group) in GROUPS {
            let Some(list) = trust_list_of(&space, id) else { continue };
            let set = |name: &str, value: Variant| {
                let variable = space.child(&list, &QualifiedName::new(0, name));
                if let Some(variable) = variable.and_then(|id| space.variable(&id).ok()) {
                    variable.set_at(value, now());
                }
            };
            let size = space.child(&list, &QualifiedName::new(0, "Size"));
            if let Some(size) = size.and_then(|id| space.variable(&id).ok()) {
                size.set_with(Variant::Empty, StatusCode::BAD_NOT_SUPPORTED, now(), now());
            }
            let changed = self.trust.store().last_update(group);
            let changed = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
            set("Writable", true.into());
            set("UserWritable", true.into());
            let open = self.state().handles.count(group);
            set("OpenCount", open.into());
            set("LastUpdateTime", changed.map_or(UtcTime::NULL, UtcTime::from_unix).into());
        }
    }
}
