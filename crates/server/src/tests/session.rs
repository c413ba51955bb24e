//! Sessions.

use super::*;

#[test]
fn a_session_is_created_activated_and_closed() {
    let mut server = Server::new();
    let mut client = server.connect();
    let created = client.create(&mut server).unwrap();
    assert_eq!(created.revised_session_timeout, 60_000.0);
    assert_ne!(created.session_id, created.authentication_token);
    assert_eq!(created.server_endpoints.len(), 1);
    assert_eq!(created.server_nonce.as_bytes().len(), 32);
    let activated = client.activate(&mut server).unwrap();
    assert_ne!(activated.server_nonce, created.server_nonce);
    assert_eq!(server.shard.session_count(), 1);
    let request = schema::CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &request).unwrap();
    assert_eq!(server.shard.session_count(), 0);
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}
