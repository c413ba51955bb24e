//! Sessions.

use super::*;
use crate::config::UserTokenConfig;
use crate::identity::{Accepted, Credential, IdentityVerifier, Verification};
use schema::{
    ActivateSessionRequest, CancelRequest, CloseSessionRequest, ReadRequest, UserNameIdentityToken,
};
use taktwerk_types::ExtensionObject;

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
    let request = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &request).unwrap();
    assert_eq!(server.shard.session_count(), 0);
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

#[test]
fn a_request_before_activation_ends_the_session() {
    let mut server = Server::new();
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    let read = ReadRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &read).unwrap_err(), StatusCode::BAD_SESSION_NOT_ACTIVATED);
    assert_eq!(server.shard.session_count(), 0);
    assert_eq!(client.activate(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

#[test]
fn a_session_can_be_closed_before_activation() {
    let mut server = Server::new();
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    let request = CloseSessionRequest { request_header: client.header(), delete_subscriptions: true };
    client.call(&mut server, &request).unwrap();
    assert_eq!(server.shard.session_count(), 0);
}

#[test]
fn tokens_are_valid_on_their_channel_only_and_sessions_move() {
    let mut server = Server::new();
    let mut client = server.session();
    let mut other = server.connect();
    other.token = client.token.clone();
    let read = ReadRequest { request_header: other.header(), ..Default::default() };
    assert_eq!(other.call(&mut server, &read).unwrap_err(), StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    // Activating there moves the session.
    other.activate(&mut server).unwrap();
    assert_eq!(other.call(&mut server, &read).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    assert_eq!(client.call(&mut server, &read).unwrap_err(), StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    // The end of the old connection does not affect the session.
    server.shard.closed(client.connection, server.now);
    assert_eq!(other.call(&mut server, &read).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    server.shard.closed(other.connection, server.now);
    let mut third = server.connect();
    third.token = client.token.clone();
    third.activate(&mut server).unwrap();
    assert_eq!(third.call(&mut server, &read).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    assert_eq!(server.shard.session_count(), 1);
}

#[test]
fn a_session_that_was_not_activated_stays_on_its_channel() {
    let mut server = Server::new();
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    let mut other = server.connect();
    other.token = client.token.clone();
    assert_eq!(other.activate(&mut server).unwrap_err(), StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
}

#[test]
fn forged_tokens_are_refused() {
    let mut server = Server::new();
    let mut client = server.session();
    let taktwerk_types::Identifier::Opaque(token) = client.token.identifier.clone() else { panic!() };
    for at in 0..token.as_bytes().len() {
        let mut forged = token.as_bytes().to_vec();
        forged[at] ^= 0x40;
        client.token = NodeId::opaque(0, forged);
        let read = ReadRequest { request_header: client.header(), ..Default::default() };
        assert_eq!(client.call(&mut server, &read).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    }
    client.token = NodeId::numeric(0, 1);
    assert_eq!(client.activate(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

#[test]
fn silent_sessions_time_out_and_busy_ones_do_not() {
    let mut server = Server::new();
    let mut silent = server.session();
    let mut busy = server.session();
    for _ in 0..4 {
        server.pass(Duration::from_secs(20));
        let read = ReadRequest { request_header: busy.header(), ..Default::default() };
        assert_eq!(busy.call(&mut server, &read).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
    }
    assert_eq!(server.shard.session_count(), 1);
    assert_eq!(server.shard.shared().live().counters.session_timeout_count.value(), 1);
    let read = ReadRequest { request_header: silent.header(), ..Default::default() };
    assert_eq!(silent.call(&mut server, &read).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
}

#[test]
fn the_oldest_unactivated_session_is_evicted() {
    let mut server = Server::with(|config| config.limits.sessions_max = 2);
    let mut first = server.session();
    let mut second = server.connect();
    second.create(&mut server).unwrap();
    let mut third = server.connect();
    third.create(&mut server).unwrap();
    third.activate(&mut server).unwrap();
    assert_eq!(second.activate(&mut server).unwrap_err(), StatusCode::BAD_SESSION_ID_INVALID);
    assert_eq!(second.create(&mut server).unwrap_err(), StatusCode::BAD_TOO_MANY_SESSIONS);
    assert_eq!(server.shard.shared().live().counters.rejected_session_count.value(), 1);
    let request = CloseSessionRequest { request_header: first.header(), delete_subscriptions: true };
    first.call(&mut server, &request).unwrap();
    second.create(&mut server).unwrap();
}

pub(super) fn with_users(server: &mut ServerConfig, verifier: Arc<dyn IdentityVerifier>) {
    server.endpoints[0].user_tokens = vec![UserTokenConfig::user_name()];
    server.verifier = Some(verifier);
    server.allow_clear_passwords = true;
}

pub(super) fn login(client: &mut Client, name: &str, password: &str) -> ActivateSessionRequest {
    let token = UserNameIdentityToken {
        policy_id: "username".into(),
        user_name: name.into(),
        password: password.as_bytes().into(),
        ..Default::default()
    };
    ActivateSessionRequest {
        request_header: client.header(),
        user_identity_token: ExtensionObject::new(&token),
        ..Default::default()
    }
}

#[test]
fn users_are_checked() {
    let check = |name: &str, password: &[u8]| {
        if (name, password) == ("operator", b"secret") {
            Ok(())
        } else {
            Err(StatusCode::BAD_USER_ACCESS_DENIED)
        }
    };
    let mut server = Server::with(|config| with_users(config, Arc::new(check)));
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    assert_eq!(client.activate(&mut server).unwrap_err(), StatusCode::BAD_IDENTITY_TOKEN_REJECTED);
    let wrong = login(&mut client, "operator", "guess");
    assert_eq!(client.call(&mut server, &wrong).unwrap_err(), StatusCode::BAD_USER_ACCESS_DENIED);
    let nobody = login(&mut client, "", "secret");
    assert_eq!(client.call(&mut server, &nobody).unwrap_err(), StatusCode::BAD_IDENTITY_TOKEN_INVALID);
    let right = login(&mut client, "operator", "secret");
    client.call(&mut server, &right).unwrap();
    // Another user cannot move the session to another channel.
    let check = server.shard.shared().live().counters.security_rejected_session_count.value();
    assert_eq!(check, 1);
}

#[derive(Debug)]
struct Slow;

impl IdentityVerifier for Slow {
    fn verify(&self, credential: Credential) -> Verification {
        let right = matches!(credential, Credential::Password { user_name, .. } if &*user_name == "operator");
        Verification::Blocking(Box::new(move || {
            if right { Ok(Accepted::default()) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) }
        }))
    }
}

#[test]
fn slow_checks_of_users_do_not_delay_other_clients() {
    let mut server = Server::with(|config| with_users(config, Arc::new(Slow)));
    let mut client = server.connect();
    client.create(&mut server).unwrap();
    for (name, expected) in [("nobody", Err(StatusCode::BAD_USER_ACCESS_DENIED)), ("operator", Ok(()))] {
        let request = login(&mut client, name, "x");
        let id = client.send(&mut server, ActivateSessionRequest::BINARY_ENCODING_ID, &request);
        assert!(client.response::<schema::ActivateSessionResponse>(id).is_none());
        assert!(server.run_effect());
        client.drain(&mut server);
        let result = client.response::<schema::ActivateSessionResponse>(id).unwrap();
        assert_eq!(result.map(|_| ()), expected);
    }
}

#[test]
fn unknown_services_and_broken_requests_are_answered() {
    let mut server = Server::new();
    let mut client = server.session();
    let request =
        schema::FindServersOnNetworkRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &request).unwrap_err(), StatusCode::BAD_SERVICE_UNSUPPORTED);
    // Only the header of a request that needs more.
    let header = client.header();
    let id = client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &header);
    let fault = client.response::<schema::ReadResponse>(id).unwrap().unwrap_err();
    assert_eq!(fault, StatusCode::BAD_DECODING_ERROR);
    // Not even a header.
    let id = client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &7u8);
    let fault = client.response::<schema::ReadResponse>(id).unwrap().unwrap_err();
    assert_eq!(fault, StatusCode::BAD_DECODING_ERROR);
    // The session still works.
    let read = ReadRequest { request_header: client.header(), ..Default::default() };
    assert_eq!(client.call(&mut server, &read).unwrap_err(), StatusCode::BAD_NOTHING_TO_DO);
}

#[test]
fn cancel_without_waiting_requests_finds_nothing() {
    let mut server = Server::new();
    let mut client = server.session();
    let request = CancelRequest { request_header: client.header(), request_handle: 99 };
    assert_eq!(client.call(&mut server, &request).unwrap().cancel_count, 0);
}
