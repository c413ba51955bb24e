//! The key service in a server's address space (Part 14 §8), and keys that a key service pushes to this server (§9.1.3.3).

use super::live::Live;
use super::states::States;
use super::{computed, has_role, set};
use crate::error::BuildError;
use crate::lock::lock;
use crate::space::{Space, now, ns0};
use std::sync::{Arc, Mutex, Weak};
use taktwerk_net::clock;
use taktwerk_net::entropy::OsEntropy;
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::security::{KeyService, SecurityKeys};
use taktwerk_schema::ids::{method_ids, object_ids, object_type_ids, reference_type_ids, variable_ids};
use taktwerk_schema::{PermissionType, RolePermissionType, SecurityGroupDataType};
use taktwerk_server::callback::CallContext;
use taktwerk_server::space::NodeSpec;
use taktwerk_server::space::build::Under;
use taktwerk_types::{ByteString, LocalizedText, NodeId, QualifiedName, StatusCode, UaString, Variant};

/// Most SecurityGroups that administrators may add.
const ADDED_MAX: usize = 1_024;

type Service = Arc<Mutex<KeyService>>;
type Outcome = Result<Vec<Variant>, StatusCode>;

/// A SecurityGroup's object and its settings.
#[derive(Debug, Clone)]
struct Group {
    id: String,
    node: NodeId,
    settings: SecurityGroupDataType,
}

/// State shared by the Methods.
pub(super) struct Server {
    live: Weak<Live>,
    service: Service,
    groups: Mutex<Vec<Group>>,
}

/// An argument of a call. Number and types have been checked.
fn argument<T: TryFrom<Variant>>(inputs: &[Variant], at: usize) -> Result<T, StatusCode> {
    let value = inputs.get(at).cloned().unwrap_or_default();
    T::try_from(value).map_err(|_| StatusCode::BAD_INVALID_ARGUMENT)
}

fn text(inputs: &[Variant], at: usize) -> Result<String, StatusCode> {
    argument::<UaString>(inputs, at).map(|text| text.as_str().to_owned())
}

/// Keys, and changes concerning them, require an encrypted channel.
fn encrypts(caller: &CallContext) -> Result<(), StatusCode> {
    if caller.encrypted { Ok(()) } else { Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT) }
}

/// Allows only administrators of the key service.
fn administers(caller: &CallContext) -> Result<(), StatusCode> {
    encrypts(caller)?;
    let roles = [object_ids::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_ADMIN];
    if has_role(caller, &roles) { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
}

/// Whether a caller may get the keys of a group: one of its roles may Call the group's object. If the group sets no roles,
/// SecurityKeyServerAccess is required.
fn gets_keys(caller: &CallContext, permissions: &[RolePermissionType]) -> bool {
    if permissions.is_empty() {
        return has_role(caller, &[object_ids::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_ACCESS]);
    }
    permissions.iter().any(|permission| {
        permission.permissions.contains(PermissionType::CALL) && caller.roles.contains(&permission.role_id)
    })
}

impl Server {
    fn group(&self, id: &str) -> Option<Group> {
        lock(&self.groups).iter().find(|group| group.id == id).cloned()
    }

    /// GetSecurityKeys (Part 14 §8.3.2). A caller without access to any keys does not learn which groups exist.
    fn get_keys(&self, caller: &CallContext, inputs: &[Variant]) -> Outcome {
        let id = text(inputs, 0)?;
        let (start, count): (u32, u32) = (argument(inputs, 1)?, argument(inputs, 2)?);
        let permissions = self.group(&id).map(|group| group.settings.role_permissions).unwrap_or_default();
        let permitted = gets_keys(caller, &permissions);
        let now = clock::monotonic();
        let keys = lock(&self.service).get_security_keys(
            &id,
            start,
            count,
            caller.encrypted,
            permitted,
            &mut OsEntropy,
            now,
        )?;
        let data: Vec<ByteString> = keys.keys.into_iter().map(ByteString::from).collect();
        Ok(vec![
            UaString::from(keys.security_policy_uri.as_str()).into(),
            keys.first_token_id.into(),
            data.into(),
            keys.time_to_next_key.into(),
            keys.key_lifetime.into(),
        ])
    }

    /// GetSecurityGroup (Part 14 §8.3.3).
    fn get_group(&self, caller: &CallContext, inputs: &[Variant]) -> Outcome {
        encrypts(caller)?;
        let group = self.group(&text(inputs, 0)?).ok_or(StatusCode::BAD_NO_MATCH)?;
        if administers(caller).is_err() && !gets_keys(caller, &group.settings.role_permissions) {
            return Err(StatusCode::BAD_USER_ACCESS_DENIED);
        }
        Ok(vec![group.node.into()])
    }

    /// AddSecurityGroup (Part 14 §8.5.2): the name is also the id.
    fn add(self: &Arc<Self>, caller: &CallContext, inputs: &[Variant]) -> Outcome {
        administers(caller)?;
        let name = text(inputs, 0)?;
        let group = SecurityGroupDataType {
            name: name.as_str().into(),
            security_group_id: name.as_str().into(),
            key_lifetime: argument(inputs, 1)?,
            security_policy_uri: argument(inputs, 2)?,
            max_future_key_count: argument(inputs, 3)?,
            max_past_key_count: argument(inputs, 4)?,
            ..SecurityGroupDataType::default()
        };
        if lock(&self.groups).len() >= ADDED_MAX {
            return Err(StatusCode::BAD_RESOURCE_UNAVAILABLE);
        }
        let live = self.live()?;
        let node = self.add_group(&live.space()?, &group)?;
        let written = live.change(|configuration, _| {
            configuration.security_groups.push(group);
            Ok(())
        });
        if let Err(status) = written {
            self.remove_group(&live.space()?, &name)?;
            return Err(status);
        }
        Ok(vec![UaString::from(name.as_str()).into(), node.into()])
    }

    /// RemoveSecurityGroup (Part 14 §8.5.3).
    fn remove(&self, caller: &CallContext, inputs: &[Variant]) -> Outcome {
        administers(caller)?;
        let node: NodeId = argument(inputs, 0)?;
        let group = lock(&self.groups).iter().find(|group| group.node == node).map(|group| group.id.clone());
        let id = group.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
        // The group itself is removed when the configuration no longer contains it.
        self.live()?.change(|configuration, _| {
            configuration.security_groups.retain(|group| group.security_group_id.as_str() != id);
            Ok(())
        })?;
        Ok(Vec::new())
    }

    fn live(&self) -> Result<Arc<Live>, StatusCode> {
        self.live.upgrade().ok_or(StatusCode::BAD_SHUTDOWN)
    }

    /// Applies the groups of a configuration. Groups whose settings changed get new keys.
    pub(super) fn sync(self: &Arc<Self>, space: &Space, configuration: &Configuration) {
        let wanted = &configuration.security_groups;
        let known = lock(&self.groups).clone();
        for group in &known {
            if !wanted.contains(&group.settings)
                && let Err(status) = self.remove_group(space, &group.id)
            {
                tracing::warn!(group = group.id, %status, "a security group could not be removed");
            }
        }
        for group in wanted {
            if known.iter().any(|known| known.settings == *group) {
                continue;
            }
            let id = group.security_group_id.as_str();
            match self.add_group(space, group) {
                // A group with changed settings gets new keys (Part 14 §6.2.12.2).
                Ok(_) => {
                    if let Some(live) = self.live.upgrade() {
                        live.states.refresh_keys(id);
                    }
                }
                Err(status) => tracing::warn!(id, %status, "a security group cannot be served"),
            }
        }
    }

    fn remove_group(&self, space: &Space, id: &str) -> Result<(), StatusCode> {
        let mut groups = lock(&self.groups);
        let at = groups.iter().position(|group| group.id == id);
        let group = groups.remove(at.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?);
        drop(groups);
        lock(&self.service).remove_group(&group.id)?;
        for name in MEMBERS.iter().chain(&METHODS) {
            if let Some(child) = space.child(&group.node, &QualifiedName::new(0, *name)) {
                let _ = space.delete_node(&child);
            }
        }
        space.delete_node(&group.node).map_err(|error| error.status())
    }

    /// Creates a group's keys and its object.
    fn add_group(
        self: &Arc<Self>,
        space: &Space,
        group: &SecurityGroupDataType,
    ) -> Result<NodeId, StatusCode> {
        let id = group.security_group_id.as_str().to_owned();
        lock(&self.service).add_group(group, &mut OsEntropy, clock::monotonic())?;
        let node = self.add_node(space, &id, group).map_err(|error| {
            // Without its object, the group could not be removed.
            let _ = lock(&self.service).remove_group(&id);
            error.status()
        })?;
        lock(&self.groups).push(Group { id, node: node.clone(), settings: group.clone() });
        Ok(node)
    }

    fn add_node(
        self: &Arc<Self>,
        space: &Space,
        id: &str,
        group: &SecurityGroupDataType,
    ) -> Result<NodeId, BuildError> {
        let parent = ns0(object_ids::PUBLISH_SUBSCRIBE_SECURITY_GROUPS);
        let (reference_type, type_id) =
            (ns0(reference_type_ids::HAS_COMPONENT), ns0(object_type_ids::SECURITY_GROUP_TYPE));
        let node = NodeId::string(1, format!("PubSub/SecurityGroups/{id}"));
        let spec =
            NodeSpec::object(node.clone(), QualifiedName::new(1, id)).display_name(LocalizedText::from(id));
        let under =
            Under { parent: &parent, reference_type: &reference_type, type_definition: Some(&type_id) };
        let members = space.add_instance(spec, under, &METHODS, now())?;
        let find = |name: &str| members.iter().find(|(path, _)| path == name).map(|(_, id)| id);
        let values: [Variant; 5] = [
            group.security_group_id.clone().into(),
            group.key_lifetime.into(),
            group.security_policy_uri.clone().into(),
            group.max_future_key_count.into(),
            group.max_past_key_count.into(),
        ];
        for (name, value) in MEMBERS.iter().zip(values) {
            if let Some(member) = find(name) {
                set(space, member, value)?;
            }
        }
        type Act =
            fn(&mut KeyService, &str, &mut OsEntropy, taktwerk_types::Instant) -> Result<(), StatusCode>;
        let acts: [Act; 2] = [
            |service, id, entropy, now| service.invalidate_keys(id, entropy, now),
            |service, id, entropy, now| service.force_key_rotation(id, entropy, now),
        ];
        for (name, act) in METHODS.iter().zip(acts) {
            let (server, id) = (Arc::clone(self), id.to_owned());
            let handler = move |caller: &CallContext, _: super::methods::Inputs| {
                administers(caller)?;
                act(&mut lock(&server.service), &id, &mut OsEntropy, clock::monotonic())?;
                // Engines that use the group must not wait for half of a key's lifetime.
                if let Ok(live) = server.live() {
                    live.states.refresh_keys(&id);
                }
                Ok(Vec::new())
            };
            // Responders that are being changed would block, which a shard must not do.
            if let Some(member) = find(name) {
                space.set_method(member, super::methods::blocking(handler))?;
            }
        }
        Ok(node)
    }
}

/// The Properties of a SecurityGroup.
const MEMBERS: [&str; 5] =
    ["SecurityGroupId", "KeyLifetime", "SecurityPolicyUri", "MaxFutureKeyCount", "MaxPastKeyCount"];
/// The Methods of a SecurityGroup.
const METHODS: [&str; 2] = ["InvalidateKeys", "ForceKeyRotation"];

/// Adds the key service.
pub(super) fn serve(space: &Space, service: &Service, live: &Arc<Live>) -> Result<(), BuildError> {
    let server = Arc::new(Server {
        live: Arc::downgrade(live),
        service: Arc::clone(service),
        groups: Mutex::default(),
    });
    let mut inner = live.inner();
    for group in &live.states.configuration().security_groups {
        let id = group.security_group_id.as_str().to_owned();
        server.add_group(space, group).map_err(|status| BuildError::SecurityGroup { id, status })?;
    }
    inner.key_server = Some(Arc::clone(&server));
    drop(inner);
    type Run = fn(&Arc<Server>, &CallContext, &[Variant]) -> Outcome;
    let methods: [(u32, Run); 4] = [
        (method_ids::PUBLISH_SUBSCRIBE_GET_SECURITY_KEYS, |server, caller, inputs| {
            server.get_keys(caller, inputs)
        }),
        (method_ids::PUBLISH_SUBSCRIBE_GET_SECURITY_GROUP, |server, caller, inputs| {
            server.get_group(caller, inputs)
        }),
        (method_ids::PUBLISH_SUBSCRIBE_SECURITY_GROUPS_ADD_SECURITY_GROUP, Server::add),
        (method_ids::PUBLISH_SUBSCRIBE_SECURITY_GROUPS_REMOVE_SECURITY_GROUP, |server, caller, inputs| {
            server.remove(caller, inputs)
        }),
    ];
    for (id, run) in methods {
        let server = Arc::clone(&server);
        let handler =
            move |caller: &CallContext, inputs: super::methods::Inputs| run(&server, caller, &inputs.rest());
        space.set_method(&ns0(id), super::methods::blocking(handler))?;
    }
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CAPABLITIES_SUPPORT_SECURITY_KEY_SERVER, || true)
}

/// Accepts pushed keys.
pub(super) fn accept(space: &Space, states: &Arc<States>) -> Result<(), BuildError> {
    let states = Arc::clone(states);
    let handler =
        move |caller: &CallContext, inputs: super::methods::Inputs| push(&states, caller, &inputs.rest());
    let handler = super::methods::blocking(handler);
    space.set_method(&ns0(method_ids::PUBLISH_SUBSCRIBE_SET_SECURITY_KEYS), handler)?;
    computed(space, variable_ids::PUBLISH_SUBSCRIBE_PUB_SUB_CAPABLITIES_SUPPORT_SECURITY_KEY_PUSH, || true)
}

/// SetSecurityKeys.
fn push(states: &States, caller: &CallContext, inputs: &[Variant]) -> Outcome {
    encrypts(caller)?;
    if !has_role(caller, &[object_ids::WELL_KNOWN_ROLE_SECURITY_KEY_SERVER_PUSH]) {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    let current: ByteString = argument(inputs, 3)?;
    let future: Vec<ByteString> = argument(inputs, 4)?;
    let keys = core::iter::once(current).chain(future);
    let keys = SecurityKeys {
        security_policy_uri: text(inputs, 1)?,
        first_token_id: argument(inputs, 2)?,
        keys: keys.map(|key| key.as_bytes().to_vec()).collect(),
        time_to_next_key: argument(inputs, 5)?,
        key_lifetime: argument(inputs, 6)?,
        current_token_id: None,
        nonces: None,
    };
    let policy = taktwerk_crypto::PubSubSecurityPolicy::from_uri(&keys.security_policy_uri)
        .ok_or(StatusCode::BAD_SECURITY_POLICY_REJECTED)?;
    let is_whole = keys.keys.iter().all(|key| key.len() == policy.key_data_len());
    if !is_whole || keys.first_token_id == 0 {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    states.set_security_keys(&text(inputs, 0)?, keys)?;
    Ok(Vec::new())
}
