//! Changes of permissions and identities while clients are connected.

use super::super::diagnostics::structures;
use super::super::flow::{publish, subscribe, values};
use super::*;
use crate::callback::{SourceRead, ValueSource};
use core::sync::atomic::{AtomicU32, Ordering};
use schema::{
    ActivateSessionRequest, CallMethodRequest, CallRequest, CreateMonitoredItemsRequest,
    DataChangeNotification, DeleteMonitoredItemsRequest, MonitoredItemCreateRequest, MonitoringMode,
    PublishResponse, ReadValueId, RepublishRequest, TransferSubscriptionsRequest, UserNameIdentityToken,
};
use taktwerk_schema::ids::{method_ids, object_ids, variable_ids};
use taktwerk_types::{BuiltInType, ExtensionObject, QualifiedName, Variant};

const OPEN: u32 = 1;
const GUARDED: u32 = 2;

fn guarded() -> Access {
    Access::roles([
        (role_id("Operator"), PermissionType::BROWSE | PermissionType::READ | PermissionType::WRITE),
        (role_id("Observer"), PermissionType::BROWSE),
    ])
}

/// `olaf` is an Operator, `otto` an Observer; the others are users without further roles.
pub(super) fn server() -> Server {
    let mut authorization = Authorization::open();
    for (name, user) in [("Operator", "olaf"), ("Observer", "otto"), ("SecurityAdmin", "sara")] {
        authorization.role_mut(name).unwrap().identities.push(IdentityRule::UserName(user.to_owned()));
    }
    let server = Server::with(|config| {
        config.authorization = authorization;
        config.verifier = Some(Arc::new(|_: &str, _: &[u8]| Ok(())));
        config.allow_clear_passwords = true;
        config.endpoints[0].user_tokens.push(UserTokenConfig::user_name());
    });
    add(&server, variable(OPEN, BuiltInType::Double, 1.0));
    add(&server, variable(GUARDED, BuiltInType::Double, 2.0).access(guarded()));
    server
}

pub(super) fn log_on(client: &mut Client, server: &mut Server, user: &str) -> Result<(), StatusCode> {
    let token = UserNameIdentityToken {
        policy_id: "username".into(),
        user_name: user.into(),
        password: b"secret".as_slice().into(),
        ..Default::default()
    };
    let request = ActivateSessionRequest {
        request_header: client.header(),
        user_identity_token: ExtensionObject::new(&token),
        ..Default::default()
    };
    client.call(server, &request).map(|_| ())
}

pub(super) fn session(server: &mut Server, user: &str) -> Client {
    let mut client = server.connect();
    client.create(server).unwrap();
    log_on(&mut client, server, user).unwrap();
    client
}

fn status(client: &mut Client, server: &mut Server, number: u32) -> StatusCode {
    read(client, server, NodeId::numeric(1, number), 13).status()
}

/// Values and statuses of the next message; empty without one.
fn told(client: &mut Client, server: &mut Server) -> Vec<(Option<Variant>, StatusCode)> {
    publish(client, server);
    server.pass(Duration::from_millis(250));
    client.drain(server);
    // Earlier unanswered requests are answered first.
    let Some(request) = client.responses.first().map(|(id, _)| *id) else { return Vec::new() };
    let Some(response) = client.response::<PublishResponse>(request) else { return Vec::new() };
    let data = response.unwrap().notification_message.notification_data;
    data.iter()
        .flat_map(|data| data.decode::<DataChangeNotification>().unwrap().monitored_items)
        .map(|item| {
            let status = item.value.status();
            (item.value.value.filter(|value| !value.is_empty()), status)
        })
        .collect()
}

#[test]
fn roles_follow_users() {
    let mut server = server();
    for (user, expected) in [
        ("olaf", StatusCode::GOOD),
        ("otto", StatusCode::BAD_USER_ACCESS_DENIED),
        ("nele", StatusCode::BAD_NODE_ID_UNKNOWN),
    ] {
        let mut client = session(&mut server, user);
        assert_eq!(status(&mut client, &mut server, GUARDED), expected, "{user}");
        assert_eq!(status(&mut client, &mut server, OPEN), StatusCode::GOOD, "{user}");
    }
    // The same status as for a missing node, for every service.
    let mut client = server.session();
    for attribute_id in [1, 13, 18, 24, 25, 99] {
        let hidden = read(&mut client, &mut server, NodeId::numeric(1, GUARDED), attribute_id);
        let missing = read(&mut client, &mut server, NodeId::numeric(1, 999), attribute_id);
        assert_eq!(hidden, missing, "{attribute_id}");
    }
}

#[test]
fn attributes_show_the_permissions_of_the_user() {
    let mut server = server();
    let id = || NodeId::numeric(1, GUARDED);
    let mut operator = session(&mut server, "olaf");
    assert_eq!(read(&mut operator, &mut server, id(), 18).value, Some(3u8.into()));
    assert_eq!(read(&mut operator, &mut server, id(), 17).value, Some(3u8.into()));
    let mut observer = session(&mut server, "otto");
    assert_eq!(read(&mut observer, &mut server, id(), 18).value, Some(0u8.into()));
    assert_eq!(read(&mut observer, &mut server, id(), 24).status(), StatusCode::BAD_USER_ACCESS_DENIED);
    let mine = read(&mut observer, &mut server, id(), 25).value;
    let mine = structures::<schema::RolePermissionType>(mine);
    assert_eq!(mine.len(), 1);
    assert_eq!((&mine[0].role_id, mine[0].permissions), (&role_id("Observer"), PermissionType::BROWSE));
    // Without specified permissions nothing is published.
    let open = NodeId::numeric(1, OPEN);
    for attribute_id in [24, 25, 26] {
        let value = read(&mut observer, &mut server, open.clone(), attribute_id);
        assert_eq!(value.status(), StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
}

#[test]
fn values_stop_when_a_permission_is_removed_and_resume_when_it_is_granted() {
    let mut server = server();
    let mut client = session(&mut server, "olaf");
    let id = subscribe(&mut client, &mut server, NodeId::numeric(1, GUARDED));
    assert_eq!(told(&mut client, &mut server), [(Some(2.0.into()), StatusCode::GOOD)]);
    let handle = server.space.variable(&NodeId::numeric(1, GUARDED)).unwrap();
    handle.set_at(3.0, server.now.utc);
    server.space.set_access(&NodeId::numeric(1, GUARDED), Access::roles([])).unwrap();
    assert_eq!(told(&mut client, &mut server), [(None, StatusCode::BAD_NODE_ID_UNKNOWN)]);
    handle.set_at(4.0, server.now.utc);
    assert_eq!(told(&mut client, &mut server), []);
    // Neither earlier nor present values can be republished.
    let request = RepublishRequest {
        request_header: client.header(),
        subscription_id: id,
        retransmit_sequence_number: 1,
    };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_MESSAGE_NOT_AVAILABLE);
    let resend = CallMethodRequest {
        object_id: object_ids::SERVER.into(),
        method_id: method_ids::SERVER_RESEND_DATA.into(),
        input_arguments: vec![id.into()],
    };
    let request = CallRequest { request_header: client.header(), methods_to_call: vec![resend] };
    assert_eq!(client.call(&mut server, &request).unwrap().results[0].status_code, StatusCode::GOOD);
    assert_eq!(told(&mut client, &mut server), [(None, StatusCode::BAD_NODE_ID_UNKNOWN)]);
    server.space.set_access(&NodeId::numeric(1, GUARDED), guarded()).unwrap();
    assert_eq!(told(&mut client, &mut server), [(Some(4.0.into()), StatusCode::GOOD)]);
}

#[test]
fn values_of_deleted_items_are_not_republished_to_another_user() {
    let mut server = server();
    let mut client = session(&mut server, "olaf");
    let id = subscribe(&mut client, &mut server, NodeId::numeric(1, OPEN));
    let guarded =
        ReadValueId { node_id: NodeId::numeric(1, GUARDED), attribute_id: 13, ..Default::default() };
    let item = MonitoredItemCreateRequest {
        item_to_monitor: guarded,
        monitoring_mode: MonitoringMode::REPORTING,
        ..Default::default()
    };
    let request = CreateMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        items_to_create: vec![item],
        ..Default::default()
    };
    let item = client.call(&mut server, &request).unwrap().results[0].monitored_item_id;
    assert_eq!(told(&mut client, &mut server).len(), 2);
    let again = |client: &mut Client, server: &mut Server| {
        let request = RepublishRequest {
            request_header: client.header(),
            subscription_id: id,
            retransmit_sequence_number: 1,
        };
        client.call(server, &request).map(|_| ())
    };
    let request = DeleteMonitoredItemsRequest {
        request_header: client.header(),
        subscription_id: id,
        monitored_item_ids: vec![item],
    };
    assert_eq!(client.call(&mut server, &request).unwrap().results, [StatusCode::GOOD]);
    assert_eq!(again(&mut client, &mut server), Ok(()));
    log_on(&mut client, &mut server, "olaf").unwrap();
    assert_eq!(again(&mut client, &mut server), Ok(()), "the same user");
    log_on(&mut client, &mut server, "otto").unwrap();
    assert_eq!(again(&mut client, &mut server), Err(StatusCode::BAD_MESSAGE_NOT_AVAILABLE));
}

#[test]
fn another_user_of_the_session_sees_values_by_own_permissions() {
    let mut server = server();
    let mut client = session(&mut server, "olaf");
    subscribe(&mut client, &mut server, NodeId::numeric(1, GUARDED));
    assert_eq!(told(&mut client, &mut server), [(Some(2.0.into()), StatusCode::GOOD)]);
    log_on(&mut client, &mut server, "otto").unwrap();
    assert_eq!(told(&mut client, &mut server), [(None, StatusCode::BAD_USER_ACCESS_DENIED)]);
    assert_eq!(status(&mut client, &mut server, GUARDED), StatusCode::BAD_USER_ACCESS_DENIED);
    log_on(&mut client, &mut server, "olaf").unwrap();
    assert_eq!(told(&mut client, &mut server), [(Some(2.0.into()), StatusCode::GOOD)]);
}

#[test]
fn new_rules_apply_to_existing_sessions() {
    let mut server = server();
    let mut client = session(&mut server, "nele");
    subscribe(&mut client, &mut server, NodeId::numeric(1, OPEN));
    assert_eq!(values_of(&mut client, &mut server), [Variant::from(1.0)]);
    assert_eq!(status(&mut client, &mut server, GUARDED), StatusCode::BAD_NODE_ID_UNKNOWN);
    let mut authorization = Authorization::suggested();
    let operator = authorization.role_mut("Operator").unwrap();
    operator.identities.push(IdentityRule::UserName("nele".to_owned()));
    server.shard.shared().set_authorization(authorization.clone(), server.now.utc);
    assert_eq!(status(&mut client, &mut server, GUARDED), StatusCode::GOOD);
    authorization.roles.retain(|role| role.name == "Anonymous");
    server.shard.shared().set_authorization(authorization, server.now.utc);
    assert_eq!(status(&mut client, &mut server, GUARDED), StatusCode::BAD_NODE_ID_UNKNOWN);
    assert_eq!(told(&mut client, &mut server), [(None, StatusCode::BAD_NODE_ID_UNKNOWN)]);
}

fn values_of(client: &mut Client, server: &mut Server) -> Vec<Variant> {
    let request = publish(client, server);
    server.pass(Duration::from_millis(250));
    client.drain(server);
    values(&client.response::<PublishResponse>(request).unwrap().unwrap())
}

#[test]
fn the_suggested_permissions_keep_anonymous_clients_out_of_the_plant() {
    let mut server = Server::with(|config| config.authorization = Authorization::suggested());
    add(&server, variable(OPEN, BuiltInType::Double, 1.0));
    let mut client = server.session();
    assert_eq!(status(&mut client, &mut server, OPEN), StatusCode::BAD_NODE_ID_UNKNOWN);
    for id in [variable_ids::SERVER_SERVER_STATUS, variable_ids::SERVER_NAMESPACE_ARRAY] {
        assert_eq!(read(&mut client, &mut server, id.into(), 13).status(), StatusCode::GOOD);
    }
    // Attributes of the types can be read too.
    let kind = taktwerk_schema::ids::object_type_ids::BASE_OBJECT_TYPE;
    assert_eq!(read(&mut client, &mut server, kind.into(), 3).status(), StatusCode::GOOD);
}

#[test]
fn a_transfer_applies_the_restrictions_of_the_new_channel() {
    let mut server = server();
    let secret = guarded().restricted(AccessRestrictionType::ENCRYPTION_REQUIRED);
    add(&server, variable(3, BuiltInType::Double, 7.0).access(secret));
    let mut client = session(&mut server, "olaf");
    let roles = vec![role_id("Operator")];
    server.shard.grant(&client.token, roles, MessageSecurityMode::SignAndEncrypt, server.now);
    let id = subscribe(&mut client, &mut server, NodeId::numeric(1, 3));
    assert_eq!(told(&mut client, &mut server), [(Some(7.0.into()), StatusCode::GOOD)]);
    let mut plain = session(&mut server, "olaf");
    let request = TransferSubscriptionsRequest {
        request_header: plain.header(),
        subscription_ids: vec![id],
        send_initial_values: true,
    };
    let result = plain.call(&mut server, &request).unwrap().results.remove(0);
    assert_eq!((result.status_code, result.available_sequence_numbers), (StatusCode::GOOD, Vec::new()));
    assert_eq!(told(&mut plain, &mut server), [(None, StatusCode::BAD_SECURITY_MODE_INSUFFICIENT)]);
    // And never to another user.
    let mut other = session(&mut server, "otto");
    let request = TransferSubscriptionsRequest {
        request_header: other.header(),
        subscription_ids: vec![id],
        send_initial_values: true,
    };
    let result = other.call(&mut server, &request).unwrap().results.remove(0);
    assert_eq!(result.status_code, StatusCode::BAD_USER_ACCESS_DENIED);
}

#[test]
fn a_node_with_session_required_is_reached_only_in_sessions() {
    let mut server = server();
    let access = guarded().restricted(AccessRestrictionType::SESSION_REQUIRED);
    add(&server, variable(3, BuiltInType::Double, 7.0).access(access));
    let id = || NodeId::numeric(1, 3);
    let mut client = session(&mut server, "olaf");
    assert_eq!(read(&mut client, &mut server, id(), 13).value, Some(7.0.into()));
    assert_eq!(read(&mut client, &mut server, id(), 26).value, Some(4u16.into()));
    subscribe(&mut client, &mut server, id());
    assert_eq!(told(&mut client, &mut server), [(Some(7.0.into()), StatusCode::GOOD)]);
    // Roles apply as usual.
    let mut other = session(&mut server, "otto");
    assert_eq!(status(&mut other, &mut server, 3), StatusCode::BAD_USER_ACCESS_DENIED);
    // A session is always necessary: neither a request without a token nor a SessionlessInvoke works.
    let mut stranger = server.connect();
    let node_id = id();
    let mut request = schema::ReadRequest {
        request_header: stranger.header(),
        nodes_to_read: vec![schema::ReadValueId { node_id, attribute_id: 13, ..Default::default() }],
        ..Default::default()
    };
    assert!(request.request_header.authentication_token.is_null());
    assert_eq!(stranger.call(&mut server, &request).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    request.request_header = stranger.header();
    let mut envelope = schema::SessionlessInvokeRequestType::default().encode_to_vec();
    NodeId::numeric(0, schema::ReadRequest::BINARY_ENCODING_ID).encode(&mut envelope);
    request.encode(&mut envelope);
    let type_id = schema::SessionlessInvokeRequestType::BINARY_ENCODING_ID;
    let sent = stranger.send(&mut server, type_id, &Raw(envelope));
    let answer = stranger.response::<schema::ReadResponse>(sent);
    assert!(matches!(answer, None | Some(Err(_))), "{answer:?}");
}

/// Already encoded bytes.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

struct Counting(Arc<AtomicU32>);

impl ValueSource for Counting {
    fn read(&self) -> SourceRead {
        self.0.fetch_add(1, Ordering::Relaxed);
        SourceRead::Now(taktwerk_types::DataValue::new(5.0))
    }
}

#[test]
fn sources_are_not_read_for_items_without_permission() {
    let mut server = server();
    let asked = Arc::new(AtomicU32::new(0));
    let source = Arc::new(Counting(Arc::clone(&asked)));
    add(&server, variable(3, BuiltInType::Double, 0.0).source(source).access(guarded()));
    let mut client = session(&mut server, "otto");
    subscribe(&mut client, &mut server, NodeId::numeric(1, 3));
    assert_eq!(told(&mut client, &mut server), [(None, StatusCode::BAD_USER_ACCESS_DENIED)]);
    assert_eq!(status(&mut client, &mut server, 3), StatusCode::BAD_USER_ACCESS_DENIED);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    log_on(&mut client, &mut server, "olaf").unwrap();
    assert_eq!(told(&mut client, &mut server), [(Some(5.0.into()), StatusCode::GOOD)]);
    assert!(asked.load(Ordering::Relaxed) > 0);
}

#[test]
fn only_administrators_on_an_encrypted_channel_see_security_diagnostics_and_roles() {
    let mut server = server();
    let mut client = session(&mut server, "sara");
    let array =
        variable_ids::SERVER_SERVER_DIAGNOSTICS_SESSIONS_DIAGNOSTICS_SUMMARY_SESSION_SECURITY_DIAGNOSTICS_ARRAY;
    let identities = variable_ids::WELL_KNOWN_ROLE_OBSERVER_IDENTITIES;
    for id in [array, identities] {
        let value = read(&mut client, &mut server, id.into(), 13);
        assert_eq!(value.status(), StatusCode::BAD_SECURITY_MODE_INSUFFICIENT, "{id}");
    }
    let mut other = session(&mut server, "olaf");
    for id in [array, identities] {
        let value = read(&mut other, &mut server, id.into(), 13);
        assert_eq!(value.status(), StatusCode::BAD_USER_ACCESS_DENIED, "{id}");
    }
    let encrypted = MessageSecurityMode::SignAndEncrypt;
    server.shard.grant(&client.token, vec![role_id("SecurityAdmin")], encrypted, server.now);
    let value = read(&mut client, &mut server, array.into(), 13).value;
    let all = structures::<schema::SessionSecurityDiagnosticsDataType>(value);
    let users: Vec<_> = all.iter().map(|entry| entry.client_user_id_of_session.as_str()).collect();
    assert_eq!(users, ["sara", "olaf"]);
    assert_eq!(all[0].authentication_mechanism.as_str(), "UserName");
    let value = read(&mut client, &mut server, identities.into(), 13).value;
    let rules = structures::<schema::IdentityMappingRuleType>(value);
    assert_eq!((rules.len(), rules[0].criteria.as_str()), (1, "otto"));
}

#[test]
fn administrators_see_the_default_permissions_of_namespaces() {
    let mut server = server();
    let index = server.space.add_namespace("urn:plant");
    let access = guarded().restricted(AccessRestrictionType::SIGNING_REQUIRED);
    server.space.set_namespace_access(index, access);
    let namespaces = NodeId::numeric(0, object_ids::SERVER_NAMESPACES);
    let object = server.space.child(&namespaces, &QualifiedName::new(index, "urn:plant")).unwrap();
    let property = |name: &str| server.space.child(&object, &QualifiedName::new(0, name)).unwrap();
    let (uri, permissions, restrictions) =
        (property("NamespaceUri"), property("DefaultRolePermissions"), property("DefaultAccessRestrictions"));
    let mut client = session(&mut server, "sara");
    let look = |server: &mut Server, client: &mut Client, id: &NodeId| read(client, server, id.clone(), 13);
    assert_eq!(look(&mut server, &mut client, &uri).value, Some("urn:plant".into()));
    let shown = structures::<schema::RolePermissionType>(look(&mut server, &mut client, &permissions).value);
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0].role_id, role_id("Operator"));
    assert_eq!(look(&mut server, &mut client, &restrictions).value, Some(1u16.into()));
    let mut other = session(&mut server, "olaf");
    for id in [&permissions, &restrictions] {
        assert_eq!(look(&mut server, &mut other, id).status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    }
    // Revoked defaults are no longer shown, and the object stays the same.
    server.space.set_namespace_access(index, Access::default());
    assert_eq!(look(&mut server, &mut client, &permissions).value, None);
    assert_eq!(server.space.child(&namespaces, &QualifiedName::new(index, "urn:plant")), Some(object));
    // The object of namespace 0 comes from the specification.
    server.space.set_namespace_access(0, guarded());
    let own = variable_ids::OPCUA_NAMESPACE_METADATA_DEFAULT_ROLE_PERMISSIONS;
    let shown = look(&mut server, &mut client, &NodeId::numeric(0, own)).value;
    assert_eq!(structures::<schema::RolePermissionType>(shown).len(), 2);
}
