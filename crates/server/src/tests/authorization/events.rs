//! Events sent to one user must not be republished to another user of the session with fewer permissions.

use super::super::events::{
    AREA, create, filter, item, next, parameters, plant, raise, severities, subscription,
};
use super::live::{log_on, server, session};
use super::*;
use schema::RepublishRequest;
use taktwerk_types::Variant;

const PUMP: NodeId = NodeId::numeric(1, 101);

fn again(client: &mut Client, server: &mut Server, id: u32) -> Result<(), StatusCode> {
    let request = RepublishRequest {
        request_header: client.header(),
        subscription_id: id,
        retransmit_sequence_number: 1,
    };
    client.call(server, &request).map(|_| ())
}

/// Operators receive the pump's events, observers do not; both may monitor the area.
fn for_operators() -> Access {
    let all = PermissionType::BROWSE | PermissionType::READ | PermissionType::RECEIVE_EVENTS;
    Access::roles([(role_id("Operator"), all), (role_id("Observer"), PermissionType::BROWSE)])
}

/// A session of `olaf` that has received an event of the pump.
fn told(server: &mut Server, access: Option<Access>) -> (Client, u32) {
    plant(&server.space);
    if let Some(access) = access {
        server.space.set_access(&PUMP, access).unwrap();
    }
    let mut client = session(server, "olaf");
    let id = subscription(&mut client, server);
    let result = create(&mut client, server, id, item(AREA, parameters(&filter(&["Severity"]), 0)));
    assert_eq!(result.status_code, StatusCode::GOOD);
    raise(server, PUMP, 300);
    assert_eq!(severities(&next(&mut client, server)), [Variant::from(300u16)]);
    assert_eq!(again(&mut client, server, id), Ok(()));
    (client, id)
}

#[test]
fn sent_events_are_not_republished_to_a_user_without_permission() {
    let mut server = server();
    let (mut client, id) = told(&mut server, Some(for_operators()));
    log_on(&mut client, &mut server, "olaf").unwrap();
    assert_eq!(again(&mut client, &mut server, id), Ok(()), "the same user");
    log_on(&mut client, &mut server, "otto").unwrap();
    assert_eq!(again(&mut client, &mut server, id), Err(StatusCode::BAD_MESSAGE_NOT_AVAILABLE));
    log_on(&mut client, &mut server, "olaf").unwrap();
    assert_eq!(again(&mut client, &mut server, id), Err(StatusCode::BAD_MESSAGE_NOT_AVAILABLE));
}

#[test]
fn sent_events_of_nodes_with_changed_permissions_are_not_republished() {
    let mut server = server();
    let (mut client, id) = told(&mut server, None);
    // Now neither user has the permission, so there is no difference between them.
    server.space.set_access(&PUMP, Access::roles([])).unwrap();
    assert_eq!(again(&mut client, &mut server, id), Ok(()), "it was sent to this user");
    log_on(&mut client, &mut server, "otto").unwrap();
    assert_eq!(again(&mut client, &mut server, id), Err(StatusCode::BAD_MESSAGE_NOT_AVAILABLE));
}

#[test]
fn messages_stay_for_a_user_with_equal_or_more_permissions() {
    let mut server = server();
    let (mut client, id) = told(&mut server, Some(for_operators()));
    let mut authorization = (*server.shard.shared().authorization()).clone();
    let engineer = authorization.role_mut("Engineer").unwrap();
    engineer.identities.push(IdentityRule::UserName("olaf".to_owned()));
    server.shard.shared().set_authorization(authorization, server.now.utc);
    assert_eq!(again(&mut client, &mut server, id), Ok(()));
}
