//! AuditEvents: their receivers and contents.

use super::audit::taken;
use super::events::{create, filter, item, next, parameters, subscription};
use super::secured::{ENCRYPT, Party, SIGN, server_with};
use super::*;
use crate::audit::AuditConfig;
use crate::authorization::{Authorization, IdentityRule};
use crate::config::UserTokenConfig;
use schema::ids::{object_ids, object_type_ids};
use schema::{WriteRequest, WriteValue};
use taktwerk_types::{BuiltInType, DataValue, Variant};

const SERVER: NodeId = NodeId::numeric(0, object_ids::SERVER);
const FIELDS: [&str; 6] = ["EventType", "SourceNode", "ClientUserId", "Status", "NewValue", "ServerId"];

/// A server with the suggested roles; Anonymous is an Engineer, and optionally a SecurityAdmin.
fn audited(is_security_admin: bool) -> Server {
    let server = server_with(&[SIGN, ENCRYPT], &[UserTokenConfig::anonymous()], |config| {
        config.audit = AuditConfig::all();
        let mut authorization = Authorization::suggested();
        authorization.role_mut("Engineer").unwrap().identities = vec![IdentityRule::Anonymous];
        if is_security_admin {
            authorization.role_mut("SecurityAdmin").unwrap().identities = vec![IdentityRule::Anonymous];
        }
        config.authorization = authorization;
    });
    super::attribute::add(&server, super::attribute::variable(1, BuiltInType::Double, 1.0));
    server
}

fn write(client: &mut Client, server: &mut Server) {
    let nodes_to_write = vec![WriteValue {
        node_id: NodeId::numeric(1, 1),
        attribute_id: 13,
        value: DataValue::new(2.5),
        ..Default::default()
    }];
    let request = WriteRequest { request_header: client.header(), nodes_to_write };
    assert_eq!(client.call(server, &request).unwrap().results, [StatusCode::GOOD]);
}

/// The audit events that a client receives for a write.
fn seen(is_security_admin: bool, security: super::secured::Security) -> Vec<Vec<Variant>> {
    let mut server = audited(is_security_admin);
    let mut party = Party::anonymous(&mut server, "client", security);
    let client = &mut party.client;
    // Earlier events are not for the item.
    taken(&mut server);
    let id = subscription(client, &mut server);
    let result = create(client, &mut server, id, item(SERVER, parameters(&filter(&FIELDS), 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert!(taken(&mut server).is_empty());
    write(client, &mut server);
    assert_eq!(taken(&mut server).len(), 1);
    next(client, &mut server).into_iter().map(|(_, fields)| fields).collect()
}

#[test]
fn a_security_admin_on_an_encrypted_channel_receives_audit_events() {
    let events = seen(true, ENCRYPT);
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let expected: [Variant; 6] = [
        NodeId::numeric(0, object_type_ids::AUDIT_WRITE_UPDATE_EVENT_TYPE).into(),
        NodeId::numeric(1, 1).into(),
        "System".into(),
        true.into(),
        "2.5".into(),
        APPLICATION.into(),
    ];
    assert_eq!(event.as_slice(), expected);
}

#[test]
fn other_clients_receive_no_audit_events() {
    assert!(seen(true, SIGN).is_empty(), "the channel is not encrypted");
    assert!(seen(false, ENCRYPT).is_empty(), "an Engineer is not a SecurityAdmin");
}
