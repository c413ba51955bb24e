//! Contents of audit records, and what they must never contain.

use super::attribute::{add, variable};
use super::method::add_method;
use super::*;
use crate::audit::{AuditAction, AuditConfig, AuditRecord};
use crate::callback::{CallContext, MethodCall, MethodHandler, MethodResult, WriteCall, WriteHandler};
use schema::{CallMethodRequest, CallRequest, WriteRequest, WriteValue};
use taktwerk_schema::ids::object_ids;
use taktwerk_types::{BuiltInType, DataValue, Variant};

/// No data stored for a request may contain this.
pub(super) const CANARY: &str = "canary-7f3a";

pub(super) fn taken(server: &mut Server) -> Vec<AuditRecord> {
    core::iter::from_fn(|| server.shard.poll_audit()).collect()
}

fn audited() -> Server {
    let server = Server::with(|config| config.audit = AuditConfig::all());
    add(&server, variable(1, BuiltInType::Double, 1.0));
    add(&server, variable(2, BuiltInType::String, "old"));
    server
}

fn write(client: &mut Client, server: &mut Server, node_id: NodeId, value: impl Into<Variant>) -> StatusCode {
    let header = client.header();
    let request = WriteRequest {
        request_header: RequestHeader { audit_entry_id: "entry 1".into(), ..header },
        nodes_to_write: vec![WriteValue {
            node_id,
            attribute_id: 13,
            value: DataValue::new(value.into()),
            ..Default::default()
        }],
    };
    client.call(server, &request).unwrap().results[0]
}

#[test]
fn writes_are_audited_with_old_values_and_without_secrets() {
    let mut server = audited();
    let mut client = server.session();
    taken(&mut server);
    assert_eq!(write(&mut client, &mut server, NodeId::numeric(1, 1), 2.5), StatusCode::GOOD);
    assert_eq!(write(&mut client, &mut server, NodeId::numeric(1, 2), CANARY), StatusCode::GOOD);
    let refused = write(&mut client, &mut server, NodeId::string(1, CANARY), CANARY);
    assert_eq!(refused, StatusCode::BAD_NODE_ID_UNKNOWN);
    let records = taken(&mut server);
    let [number, text, refused] = records.as_slice() else { panic!("{records:?}") };
    let AuditAction::Write { node_id, old_value, new_value, attribute_id: 13, .. } = &number.action else {
        panic!("{number:?}")
    };
    assert_eq!(*node_id, NodeId::numeric(1, 1));
    assert_eq!((old_value.as_ref().unwrap().as_str(), new_value.as_str()), ("1", "2.5"));
    assert_eq!((number.status, &*number.client_audit_entry_id), (StatusCode::GOOD, "entry 1"));
    assert_eq!(number.event_type_name(), "AuditWriteUpdateEventType");
    assert!(!number.session_id.is_null() && number.secure_channel_id != 0);
    let AuditAction::Write { new_value, .. } = &text.action else { panic!("{text:?}") };
    assert_eq!(new_value.as_str(), "String (11 bytes)");
    let AuditAction::Write { node_id, old_value: None, .. } = &refused.action else { panic!("{refused:?}") };
    assert!(node_id.is_null());
    assert_eq!(refused.status, StatusCode::BAD_NODE_ID_UNKNOWN);
    assert!(!format!("{records:?}").contains(CANARY));
}

struct Slow;

impl MethodHandler for Slow {
    fn call(&self, _: &CallContext, _: Vec<Variant>) -> MethodCall {
        MethodCall::Blocking(Box::new(|| Err(StatusCode::BAD_OUT_OF_RANGE)))
    }
}

fn call(client: &mut Client, methods: &[u32]) -> CallRequest {
    let methods_to_call = methods
        .iter()
        .map(|number| CallMethodRequest {
            object_id: object_ids::OBJECTS_FOLDER.into(),
            method_id: NodeId::numeric(1, *number),
            input_arguments: Vec::new(),
        })
        .collect();
    CallRequest { request_header: client.header(), methods_to_call }
}

#[test]
fn calls_are_audited_with_their_results() {
    let mut server = audited();
    let quick: Arc<dyn MethodHandler> =
        Arc::new(|_: &CallContext, _: Vec<Variant>| -> MethodResult { Ok(Vec::new()) });
    for (number, handler) in [(10, quick), (11, Arc::new(Slow))] {
        add_method(&server, number, handler, 0);
    }
    let mut client = server.session();
    taken(&mut server);
    let request = call(&mut client, &[10, 11, 99]);
    let id = client.send(&mut server, CallRequest::BINARY_ENCODING_ID, &request);
    let now: Vec<_> = taken(&mut server).iter().map(|record| record.status).collect();
    assert_eq!(now, [StatusCode::GOOD, StatusCode::BAD_METHOD_INVALID]);
    assert!(server.run_effect());
    client.drain(&mut server);
    assert!(client.response::<schema::CallResponse>(id).unwrap().is_ok());
    let later = taken(&mut server);
    assert_eq!(later.len(), 1);
    assert_eq!(later[0].status, StatusCode::BAD_OUT_OF_RANGE);
    assert!(
        matches!(&later[0].action, AuditAction::CallMethod { method_id, .. } if *method_id == NodeId::numeric(1, 11))
    );
    // An abandoned call is recorded too.
    let request = call(&mut client, &[11]);
    client.send(&mut server, CallRequest::BINARY_ENCODING_ID, &request);
    let close = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &close).unwrap();
    let left = taken(&mut server);
    assert!(left.iter().any(|record| record.status == StatusCode::BAD_REQUEST_INTERRUPTED), "{left:?}");
}

/// Stores even numbers on a worker thread; refuses odd ones there and negative ones at once.
struct Even(crate::space::VariableHandle);

impl WriteHandler for Even {
    fn write(&self, _: &CallContext, _: DataValue) -> Result<DataValue, StatusCode> {
        Err(StatusCode::BAD_NOT_WRITABLE)
    }

    fn begin_write(&self, _: &CallContext, value: DataValue) -> WriteCall {
        let Some(Variant::Int32(number)) = value.value else {
            return WriteCall::Now(Err(StatusCode::BAD_TYPE_MISMATCH));
        };
        if number < 0 {
            return WriteCall::Now(Err(StatusCode::BAD_OUT_OF_RANGE));
        }
        let variable = self.0.clone();
        WriteCall::Blocking(Box::new(move || {
            if number % 2 == 1 {
                return Err(StatusCode::BAD_DEVICE_FAILURE);
            }
            variable.set_at(number, UtcTime::NULL);
            Ok(())
        }))
    }
}

#[test]
fn slow_writes_are_answered_and_audited_when_done() {
    let mut server = audited();
    let id = NodeId::numeric(1, 70);
    add(&server, variable(70, BuiltInType::Int32, 1i32));
    add(&server, variable(71, BuiltInType::Int32, 1i32));
    let handle = server.space.variable(&id).unwrap();
    server.space.set_write_handler(&id, Arc::new(Even(handle.clone()))).unwrap();
    let mut client = server.session();
    taken(&mut server);
    let write = |client: &mut Client, server: &mut Server, numbers: &[(u32, i32)]| {
        let value = |(node, number): &(u32, i32)| WriteValue {
            node_id: NodeId::numeric(1, *node),
            attribute_id: 13,
            value: DataValue::new(*number),
            ..WriteValue::default()
        };
        let nodes_to_write = numbers.iter().map(value).collect();
        let request = WriteRequest { request_header: client.header(), nodes_to_write };
        client.send(server, WriteRequest::BINARY_ENCODING_ID, &request)
    };
    let request = write(&mut client, &mut server, &[(70, 3), (71, 5), (70, -1), (70, 4)]);
    let at_once: Vec<_> = taken(&mut server).iter().map(|record| record.status).collect();
    assert_eq!(at_once, [StatusCode::GOOD, StatusCode::BAD_OUT_OF_RANGE]);
    // In any order of completion, and not before the last one.
    assert!(server.run_effect());
    client.drain(&mut server);
    assert!(client.response::<schema::WriteResponse>(request).is_none());
    assert_eq!(handle.get().value, Some(1.into()));
    assert!(server.run_effect() && !server.run_effect());
    client.drain(&mut server);
    let response = client.response::<schema::WriteResponse>(request).unwrap().unwrap();
    let expected =
        [StatusCode::BAD_DEVICE_FAILURE, StatusCode::GOOD, StatusCode::BAD_OUT_OF_RANGE, StatusCode::GOOD];
    assert_eq!(response.results, expected);
    assert_eq!(handle.get().value, Some(4.into()));
    let later = taken(&mut server);
    let statuses: Vec<_> = later.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [StatusCode::BAD_DEVICE_FAILURE, StatusCode::GOOD]);
    let AuditAction::Write { old_value, new_value, .. } = &later[1].action else { panic!("{later:?}") };
    assert_eq!((old_value.as_ref().unwrap().as_str(), new_value.as_str()), ("1", "4"));
    // An abandoned write is recorded too, and nothing remains stored.
    write(&mut client, &mut server, &[(70, 6)]);
    let close = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &close).unwrap();
    let left = taken(&mut server);
    assert!(left.iter().any(|record| record.status == StatusCode::BAD_REQUEST_INTERRUPTED), "{left:?}");
    assert!(server.run_effect());
    assert_eq!(server.used(Category::Requests), 0);
}

#[test]
fn an_attack_is_counted_instead_of_recorded() {
    let mut server = audited();
    let mut client = server.session();
    server.pass(Duration::from_secs(2));
    taken(&mut server);
    for _ in 0..1_500 {
        write(&mut client, &mut server, NodeId::numeric(1, 99), CANARY);
    }
    let mut records = taken(&mut server);
    assert_eq!(records.len(), 1000);
    server.pass(Duration::from_secs(2));
    records.extend(taken(&mut server));
    let counted = records.iter().find_map(|record| match record.action {
        AuditAction::Suppressed { count, .. } => Some(count),
        _ => None,
    });
    assert_eq!(counted, Some(500));
}

#[test]
fn opening_and_closing_channels_is_audited() {
    let mut server = audited();
    let client = server.connect();
    let opened = taken(&mut server);
    assert_eq!(opened.len(), 1, "{opened:?}");
    assert!(matches!(opened[0].action, AuditAction::OpenSecureChannel { is_renewal: false, .. }));
    let mut garbage = b"GARBAGE!".to_vec();
    server.shard.received(client.connection, &mut garbage, server.now);
    let failed = taken(&mut server);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].status.is_bad());
}

#[test]
fn auditing_is_off_by_default() {
    let mut server = Server::new();
    add(&server, variable(1, BuiltInType::Double, 1.0));
    let mut client = server.session();
    assert_eq!(write(&mut client, &mut server, NodeId::numeric(1, 1), 2.5), StatusCode::GOOD);
    assert_eq!(taken(&mut server), []);
}

fn log_on(client: &mut Client, server: &mut Server, user: &str, password: &str) -> Result<(), StatusCode> {
    let token = schema::UserNameIdentityToken {
        policy_id: "username".into(),
        user_name: user.into(),
        password: password.as_bytes().into(),
        ..Default::default()
    };
    let request = schema::ActivateSessionRequest {
        request_header: client.header(),
        user_identity_token: taktwerk_types::ExtensionObject::new(&token),
        ..Default::default()
    };
    client.call(server, &request).map(|_| ())
}

#[test]
fn sessions_are_audited_with_users_and_without_passwords() {
    let mut server = Server::with(|config| {
        config.audit = AuditConfig::all();
        config.verifier = Some(Arc::new(|_: &str, password: &[u8]| {
            if password == CANARY.as_bytes() { Ok(()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
        }));
        config.allow_clear_passwords = true;
        config.endpoints[0].user_tokens.push(crate::config::UserTokenConfig::user_name());
    });
    let mut client = server.connect();
    taken(&mut server);
    client.create(&mut server).unwrap();
    let created = taken(&mut server);
    assert_eq!(created.len(), 1, "{created:?}");
    assert!(
        matches!(created[0].action, AuditAction::CreateSession { revised_session_timeout, .. } if revised_session_timeout > 0.0)
    );
    let wrong = format!("{CANARY}-wrong");
    log_on(&mut client, &mut server, "olaf", &wrong).unwrap_err();
    log_on(&mut client, &mut server, "olaf", CANARY).unwrap();
    let records = taken(&mut server);
    let [refused, accepted] = records.as_slice() else { panic!("{records:?}") };
    let AuditAction::ActivateSession { user, .. } = &refused.action else { panic!("{refused:?}") };
    assert_eq!(
        (user.kind, &*user.name, refused.status),
        ("UserName", "olaf", StatusCode::BAD_USER_ACCESS_DENIED)
    );
    let AuditAction::ActivateSession { user, roles } = &accepted.action else { panic!("{accepted:?}") };
    assert_eq!((user.kind, &*user.name, accepted.status), ("UserName", "olaf", StatusCode::GOOD));
    assert_eq!(roles.len(), 2);
    assert_eq!(&*accepted.client_user_id, "olaf");
    let first = format!("{records:?}");
    let cancel = schema::CancelRequest { request_header: client.header(), request_handle: 7 };
    client.call(&mut server, &cancel).unwrap();
    let close = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &close).unwrap();
    // Closing a session that does not exist.
    client.call(&mut server, &close).unwrap_err();
    let records = taken(&mut server);
    let [cancelled, closed, missing] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(cancelled.action, AuditAction::Cancel { request_handle: 7 });
    assert_eq!((&closed.action, closed.status), (&AuditAction::CloseSession, StatusCode::GOOD));
    assert_eq!(missing.status, StatusCode::BAD_SESSION_ID_INVALID);
    assert!(missing.session_id.is_null());
    // Neither in a record nor in any Debug output.
    let everything = format!("{records:?} {first} {:?}", server.shard.shared());
    assert!(!everything.contains(CANARY), "{everything}");
}
