//! The RoleSet object and the roles below it (Part 18 §4.2 to §4.4).

use super::arguments::Inputs;
use super::{Management, Outcome, Refused, administers, method};
use crate::users::role::{Endpoint, Identity, is_role_name, mode_of};
use crate::users::{ManagedRole, Users, is_alike};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use taktwerk_crypto::SecurityPolicy;
use taktwerk_net::clock;
use taktwerk_schema::ids::{method_ids, object_ids, object_type_ids, reference_type_ids};
use taktwerk_schema::{
    AccessRestrictionType, EndpointType, IdentityMappingRuleType, MessageSecurityMode, PermissionType,
};
use taktwerk_server::AddressSpace;
use taktwerk_server::authorization::{Access, Authorization, EndpointRestriction, IdentityRule, role};
use taktwerk_server::callback::{CallContext, WriteCall, WriteHandler};
use taktwerk_server::space::build::Under;
use taktwerk_server::space::{NodeError, NodeSpec};
use taktwerk_types::{DataValue, NodeId, QualifiedName, StatusCode, Variant};

/// Maximum number of roles that clients can add.
const ADDED_MAX: usize = 64;
/// Maximum number of entries in each list of a role.
const ENTRIES_MAX: usize = 256;
/// Longest entry, in bytes.
const ENTRY_LEN_MAX: usize = 1024;

/// The methods of a role.
const METHODS: [(&str, super::Run); 6] = [
    ("AddIdentity", add_identity),
    ("RemoveIdentity", remove_identity),
    ("AddApplication", add_application),
    ("RemoveApplication", remove_application),
    ("AddEndpoint", add_endpoint),
    ("RemoveEndpoint", remove_endpoint),
];

/// Optional components of a role object that are present.
const OPTIONAL: [&str; 11] = [
    "ApplicationsExclude",
    "Applications",
    "EndpointsExclude",
    "Endpoints",
    "CustomConfiguration",
    "AddIdentity",
    "RemoveIdentity",
    "AddApplication",
    "RemoveApplication",
    "AddEndpoint",
    "RemoveEndpoint",
];

const fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

pub(super) fn install(management: &Arc<Management>, space: &Arc<AddressSpace>) -> Result<(), NodeError> {
    let add = ns0(method_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET_ADD_ROLE);
    space.set_method(&add, method(management, add_role))?;
    let remove = ns0(method_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET_REMOVE_ROLE);
    space.set_method(&remove, method(management, remove_role))?;
    for (_, id) in role::well_known::ALL {
        implement(management, space, &ns0(id))?;
    }
    let (authorization, _) = management.authorization();
    show(management, space, &authorization, &management.store.users())
}

/// Installs the methods of a role object.
fn implement(management: &Arc<Management>, space: &AddressSpace, role: &NodeId) -> Result<(), NodeError> {
    for (name, run) in METHODS {
        // Anonymous and AuthenticatedUser have no rules to change.
        if let Some(node) = space.child(role, &QualifiedName::new(0, name)) {
            space.set_method(&node, method(management, run))?;
        }
    }
    for list in [List::Applications, List::Endpoints] {
        if let Some(node) = space.child(role, &QualifiedName::new(0, list.property())) {
            let (management, role) = (Arc::downgrade(management), role.clone());
            let (begun, newest) = (AtomicU64::new(0), Arc::default());
            space.set_write_handler(&node, Arc::new(Exclude { management, role, list, begun, newest }))?;
        }
    }
    Ok(())
}

/// The list that an Exclude Property refers to.
#[derive(Debug, Clone, Copy)]
enum List {
    Applications,
    Endpoints,
}

impl List {
    const fn property(self) -> &'static str {
        match self {
            Self::Applications => "ApplicationsExclude",
            Self::Endpoints => "EndpointsExclude",
        }
    }
}

/// ApplicationsExclude or EndpointsExclude of a role: Properties that clients write (Part 18 §4.4.1).
struct Exclude {
    management: Weak<Management>,
    role: NodeId,
    list: List,
    /// Number of writes begun.
    begun: AtomicU64,
    /// Number of the newest applied write. The lock serializes writes.
    newest: Arc<Mutex<u64>>,
}

impl WriteHandler for Exclude {
    fn write(&self, caller: &CallContext, value: DataValue) -> Result<DataValue, StatusCode> {
        self.change(caller, &value)?()?;
        Ok(value)
    }

    /// The server thread does not wait for files. The Property shows the value after it was saved and applied.
    fn begin_write(&self, caller: &CallContext, value: DataValue) -> WriteCall {
        match self.change(caller, &value) {
            Ok(change) => WriteCall::Blocking(Box::new(change)),
            Err(status) => WriteCall::Now(Err(status)),
        }
    }

    fn may_block(&self) -> bool {
        true
    }
}

impl Exclude {
    /// Checks a write, and returns its action.
    fn change(
        &self,
        caller: &CallContext,
        value: &DataValue,
    ) -> Result<impl FnOnce() -> Result<(), StatusCode> + Send + use<>, StatusCode> {
        administers(caller)?;
        let Some(Variant::Boolean(exclude)) = value.value else { return Err(StatusCode::BAD_TYPE_MISMATCH) };
        let management = self.management.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)?;
        let (role, list, newest) = (self.role.clone(), self.list, Arc::clone(&self.newest));
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let session = caller.session_life.clone();
        Ok(move || {
            let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            if session.is_over() {
                return Err(StatusCode::BAD_SESSION_CLOSED);
            }
            // Worker threads run in any order: skip a write that a newer one has replaced.
            if number > *newest {
                set_excludes(&management, &role, list, exclude)?;
                *newest = number;
            }
            Ok(())
        })
    }
}

fn set_excludes(
    management: &Arc<Management>,
    role: &NodeId,
    list: List,
    exclude: bool,
) -> Result<(), StatusCode> {
    change(management, role, |role, _| {
        match list {
            List::Applications => role.applications_exclude = exclude,
            List::Endpoints => role.endpoints_exclude = exclude,
        }
        Ok(())
    })
}

/// Adds objects for roles that have none.
pub(super) fn show(
    management: &Arc<Management>,
    space: &AddressSpace,
    authorization: &Authorization,
    users: &Users,
) -> Result<(), NodeError> {
    for role in &authorization.roles {
        if role.id.namespace_index == 1 && !space.contains(&role.id) {
            let known = users.roles.iter().find(|known| known.name == role.name);
            let namespace = known.map_or("", |known| known.namespace.as_str());
            let index = if namespace.is_empty() { 1 } else { space.add_namespace(namespace) };
            add_object(management, space, &role.id, QualifiedName::new(index, &*role.name))?;
        }
    }
    Ok(())
}

/// Access to a role object, as the specification defines it for well-known roles: administrators, over encrypted
/// channels.
fn restricted() -> Access {
    let all = PermissionType::BROWSE
        | PermissionType::READ
        | PermissionType::WRITE
        | PermissionType::CALL
        | PermissionType::READ_ROLE_PERMISSIONS
        | PermissionType::RECEIVE_EVENTS;
    Access::roles([(ns0(object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN), all)])
        .restricted(AccessRestrictionType::SIGNING_REQUIRED | AccessRestrictionType::ENCRYPTION_REQUIRED)
}

fn add_object(
    management: &Arc<Management>,
    space: &AddressSpace,
    id: &NodeId,
    name: QualifiedName,
) -> Result<(), NodeError> {
    let under = Under {
        parent: &ns0(object_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET),
        reference_type: &ns0(reference_type_ids::HAS_COMPONENT),
        type_definition: Some(&ns0(object_type_ids::ROLE_TYPE)),
    };
    let spec = NodeSpec::object(id.clone(), name).access(restricted());
    for (_, node) in space.add_instance(spec, under, &OPTIONAL, clock::wall())? {
        space.set_access(&node, restricted())?;
    }
    implement(management, space, id)
}

fn remove_object(space: &AddressSpace, id: &NodeId) {
    for name in OPTIONAL.iter().chain(&["Identities"]) {
        let Some(child) = space.child(id, &QualifiedName::new(0, *name)) else { continue };
        for arguments in ["InputArguments", "OutputArguments"] {
            if let Some(arguments) = space.child(&child, &QualifiedName::new(0, arguments)) {
                // Fails only if the node was deleted concurrently.
                let _ = space.delete_node(&arguments);
            }
        }
        let _ = space.delete_node(&child);
    }
    let _ = space.delete_node(id);
}

/// AddRole (Part 18 §4.2.2).
fn add_role(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let (name, namespace) = (inputs.text()?, inputs.text()?);
    let is_name = is_role_name(&name);
    let space = management.inner().space.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)?;
    // Only existing namespaces are allowed: otherwise a client could fill the NamespaceArray.
    let is_namespace =
        namespace.is_empty() || space.namespace_index(&namespace).is_some_and(|index| index > 0);
    if !is_name || !is_namespace {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    let (authorization, _) = management.authorization();
    let added = management.store.change(|users| -> Result<(), Refused> {
        // Names are unique without namespaces, because configuration and users files contain names only.
        if authorization.role(&name).is_some() || users.roles.iter().any(|role| role.name == name) {
            return Err(StatusCode::BAD_ALREADY_EXISTS.into());
        }
        let is_like = |other: &str| is_alike(&name, other);
        if authorization.roles.iter().any(|role| is_like(&role.name))
            || users.roles.iter().any(|role| is_like(&role.name))
        {
            return Err(StatusCode::BAD_INVALID_ARGUMENT.into());
        }
        if users.roles.iter().filter(|role| role.added).count() >= ADDED_MAX {
            return Err(StatusCode::BAD_NOT_SUPPORTED.into());
        }
        users.roles.push(ManagedRole::new(&name, &namespace));
        Ok(())
    });
    added.map_err(|refused| refused.0)?;
    management.users_changed();
    Ok(vec![ManagedRole::id_of(&name).into()])
}

/// RemoveRole (Part 18 §4.2.3). Only roles that clients have added can be removed, not those of the specification or
/// the configuration.
fn remove_role(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let id: NodeId = inputs.take()?;
    let (authorization, _) = management.authorization();
    let role =
        authorization.roles.iter().find(|role| role.id == id).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    let is_configured = management.inner().base.role(&role.name).is_some();
    let removed = management.store.change(|users| -> Result<(), Refused> {
        let at = users.roles.iter().position(|known| known.added && known.name == role.name);
        let Some(at) = at.filter(|_| !is_configured) else {
            return Err(StatusCode::BAD_REQUEST_NOT_ALLOWED.into());
        };
        users.roles.remove(at);
        users.forget_role(&role.name);
        Ok(())
    });
    removed.map_err(|refused| refused.0)?;
    if let Some(space) = management.inner().space.upgrade() {
        remove_object(&space, &id);
    }
    management.users_changed();
    Ok(Vec::new())
}

/// Changes the role that a method was called on.
fn edit(
    management: &Arc<Management>,
    caller: &CallContext,
    edit: impl FnOnce(&mut ManagedRole, &mut Users) -> Result<(), Refused>,
) -> Outcome {
    administers(caller)?;
    change(management, &caller.object_id, edit)?;
    Ok(Vec::new())
}

/// Changes a role, in the file and in the running server.
fn change(
    management: &Arc<Management>,
    id: &NodeId,
    edit: impl FnOnce(&mut ManagedRole, &mut Users) -> Result<(), Refused>,
) -> Result<(), StatusCode> {
    let base = management.inner().base.clone();
    let changed = management.store.change(|users| -> Result<(), Refused> {
        let mut current = base;
        for role in &users.roles {
            role.apply(&mut current);
        }
        let role = current.roles.iter().find(|role| role.id == *id);
        let role = role.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        let at = users.roles.iter().position(|known| known.name == role.name);
        // The entry is removed from the list during the change, because `edit` may change the users too.
        let before = at.map_or_else(|| ManagedRole::of(role), |at| users.roles.remove(at));
        let mut entry = before.clone();
        edit(&mut entry, users)?;
        // If only users' own roles have changed, the role stays that of the configuration.
        if at.is_some() || entry != before {
            users.roles.insert(at.unwrap_or(users.roles.len()), entry);
        }
        Ok(())
    });
    changed.map_err(|refused| refused.0)?;
    management.users_changed();
    Ok(())
}

/// Adds an entry unless it exists already.
fn add<T: PartialEq>(list: &mut Vec<T>, entry: T) -> Result<(), Refused> {
    if list.contains(&entry) {
        return Err(StatusCode::BAD_ALREADY_EXISTS.into());
    }
    if list.len() >= ENTRIES_MAX {
        return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE.into());
    }
    list.push(entry);
    Ok(())
}

/// Removes an entry.
fn remove<T: PartialEq>(list: &mut Vec<T>, entry: &T) -> Result<(), Refused> {
    let at = list.iter().position(|known| known == entry).ok_or(StatusCode::BAD_NOT_FOUND)?;
    list.remove(at);
    Ok(())
}

fn rule(inputs: &mut Inputs) -> Result<IdentityRule, StatusCode> {
    let rule: IdentityMappingRuleType = inputs.structure()?;
    let criteria = rule.criteria.as_str();
    if criteria.len() > ENTRY_LEN_MAX || criteria.chars().any(char::is_control) {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    IdentityRule::from_criteria(rule.criteria_type, criteria).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
}

/// Administrative roles, which clients without a user cannot have (Part 18 §4.4.1).
const ADMINISTRATORS: [&str; 3] = ["SecurityAdmin", "ConfigureAdmin", "SecurityKeyServerAdmin"];

/// AddIdentity (Part 18 §4.4.5). A rule for a user of the file is stored in that user's roles.
fn add_identity(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let rule = rule(&mut inputs)?;
    edit(management, caller, |role, users| {
        if rule == IdentityRule::Anonymous && ADMINISTRATORS.contains(&role.name.as_str()) {
            return Err(StatusCode::BAD_REQUEST_NOT_ALLOWED.into());
        }
        if let IdentityRule::UserName(name) = &rule
            && let Some(user) = users.get(name)
        {
            let is_there =
                user.roles.contains(&role.name) || role.identities.iter().any(|identity| identity.0 == rule);
            if is_there {
                return Err(StatusCode::BAD_ALREADY_EXISTS.into());
            }
            users.edit(name, |user| user.roles.push(role.name.clone()))?;
            return Ok(());
        }
        add(&mut role.identities, Identity(rule))
    })
}

/// RemoveIdentity (Part 18 §4.4.6).
fn remove_identity(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let rule = rule(&mut inputs)?;
    edit(management, caller, |role, users| {
        let mut is_removed = false;
        if let IdentityRule::UserName(name) = &rule
            && users.get(name).is_some_and(|user| user.roles.contains(&role.name))
        {
            users.edit(name, |user| user.roles.retain(|known| *known != role.name))?;
            is_removed = true;
        }
        match remove(&mut role.identities, &Identity(rule)) {
            Err(_) if is_removed => {}
            other => other?,
        }
        let has_administrators = role.name != "SecurityAdmin"
            || !role.identities.is_empty()
            || users.iter().any(|user| !user.disabled && user.roles.contains(&role.name));
        // The last SecurityAdmin cannot be removed: no client could grant the role again.
        if has_administrators { Ok(()) } else { Err(StatusCode::BAD_REQUEST_NOT_ALLOWED.into()) }
    })
}

fn application(inputs: &mut Inputs) -> Result<String, StatusCode> {
    let uri = inputs.text()?;
    let is_uri = !uri.is_empty() && uri.len() <= ENTRY_LEN_MAX && !uri.chars().any(char::is_control);
    if is_uri { Ok(uri) } else { Err(StatusCode::BAD_INVALID_ARGUMENT) }
}

/// AddApplication (Part 18 §4.4.7).
fn add_application(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let uri = application(&mut inputs)?;
    edit(management, caller, |role, _| add(&mut role.applications, uri))
}

/// RemoveApplication (Part 18 §4.4.8).
fn remove_application(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let uri = application(&mut inputs)?;
    edit(management, caller, |role, _| remove(&mut role.applications, &uri))
}

fn endpoint(inputs: &mut Inputs) -> Result<Endpoint, StatusCode> {
    let invalid = StatusCode::BAD_INVALID_ARGUMENT;
    let given: EndpointType = inputs.structure()?;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (url, policy) = (text(given.endpoint_url.as_str()), text(given.security_policy_uri.as_str()));
    if url.as_ref().is_some_and(|url| url.len() > ENTRY_LEN_MAX || url.chars().any(char::is_control)) {
        return Err(invalid);
    }
    let mode = match given.security_mode {
        MessageSecurityMode(0) => None,
        MessageSecurityMode(number) => {
            let number = u8::try_from(number).map_err(|_| invalid)?;
            Some(mode_of(number).ok_or(invalid)?)
        }
    };
    let policy = policy.map(|uri| SecurityPolicy::from_uri(&uri).ok_or(invalid)).transpose()?;
    Ok(Endpoint::of(&EndpointRestriction { url, mode, policy }))
}

/// AddEndpoint (Part 18 §4.4.9).
fn add_endpoint(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let endpoint = endpoint(&mut inputs)?;
    edit(management, caller, |role, _| add(&mut role.endpoints, endpoint))
}

/// RemoveEndpoint (Part 18 §4.4.10).
fn remove_endpoint(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let endpoint = endpoint(&mut inputs)?;
    edit(management, caller, |role, _| remove(&mut role.endpoints, &endpoint))
}
