//! Connecting, requests, faults, timeouts, splitting, security.

use crate::common::*;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::{ChannelConfig, ChannelError};
use taktwerk_client::{
    ClientError, Event, Identity, Misuse, Note, OperationKind, Restored, Security, SecurityProblem, Target,
};
use taktwerk_crypto::{CryptoError, MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_crypto_dummy::{self as dummy, DummyProvider};
use taktwerk_schema::{
    ActivateSessionRequest, CreateSessionRequest, FindServersRequest, GetEndpointsRequest,
    GetEndpointsResponse, ReadRequest, ReadResponse, UserNameIdentityToken, UserTokenPolicy, UserTokenType,
    WriteRequest, WriteResponse, WriteValue,
};
use taktwerk_types::{DataValue, Instant, NodeId, StatusCode, Structure, Variant};

#[test]
fn connects_reads_the_limits_and_disconnects() {
    let mut world = Setup::default().world();
    world.server.knobs.published_max = 7;
    world.client.connect(target(), world.now).unwrap();
    assert!(world.client.connect(target(), world.now).is_err());
    world.settle();
    let events = world.take_events();
    let [Event::Connected(info)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(info.limits.max(OperationKind::Read), 7);
    assert_eq!(info.limits.max(OperationKind::Write), usize::MAX);
    assert_eq!(info.namespaces.len(), 2);
    assert_eq!(world.dialled.len(), 1);
    world.client.disconnect(world.now);
    world.seconds(1);
    assert_eq!(world.take_events(), [Event::Disconnected(None)]);
    assert!(world.server.sessions.is_empty() && world.server.connections.is_empty());
    assert_eq!(world.client.poll_timeout(), None);
}

#[test]
fn a_direct_target_takes_the_fewest_round_trips() {
    let mut setup = Setup::default();
    setup.client.read_limits = false;
    let mut world = setup.world();
    world.client.connect(Target::direct("plc").unwrap(), world.now).unwrap();
    world.settle();
    assert!(world.client.is_up());
    let wanted = [CreateSessionRequest::BINARY_ENCODING_ID, ActivateSessionRequest::BINARY_ENCODING_ID];
    assert_eq!(world.server.received, wanted);
}

#[test]
fn discovery_works_without_a_session() {
    let mut world = Setup::default().world();
    world.client.connect(Target { session: false, ..target() }, world.now).unwrap();
    world.settle();
    let handle = world.client.request(&mut GetEndpointsRequest::default(), None, world.now).unwrap();
    assert_eq!(world.response::<GetEndpointsResponse>(handle).unwrap().endpoints.len(), 1);
    assert!(world.server.sessions.is_empty());
}

#[test]
fn requests_are_answered_by_handle_and_faults_are_typed() {
    let mut world = World::connected();
    let first = world.client.request(&mut read(1..3), None, world.now).unwrap();
    let second = world.client.request(&mut read(7..8), None, world.now).unwrap();
    let unknown = world.client.request(&mut FindServersRequest::default(), None, world.now).unwrap();
    assert_eq!(world.client.outstanding(), (0, 3));
    let answer = world.response::<ReadResponse>(second).unwrap();
    assert_eq!(answer.results[0].value, Some(Variant::UInt32(7)));
    assert_eq!(world.response::<ReadResponse>(first).unwrap().results.len(), 2);
    let error = world.response::<ReadResponse>(unknown).unwrap_err();
    assert_eq!(
        error,
        ClientError::Service { service: "FindServers", status: StatusCode::BAD_SERVICE_UNSUPPORTED }
    );
    assert_eq!(world.client.outstanding(), (0, 0));
    // A request can be reused, and a response is refused as another type.
    let mut request = read(1..2);
    for _ in 0..3 {
        let handle = world.client.request(&mut request, None, world.now).unwrap();
        assert!(world.response::<ReadResponse>(handle).is_ok());
    }
    let handle = world.client.request(&mut request, None, world.now).unwrap();
    assert_eq!(world.response::<WriteResponse>(handle).unwrap_err(), Misuse::WrongType.into());
}

#[test]
fn a_late_answer_is_dropped_and_the_request_has_timed_out() {
    let mut world = World::connected();
    world.server.knobs.silent.insert(ReadRequest::BINARY_ENCODING_ID);
    let handle = world.client.request(&mut read(1..2), Some(Duration::from_secs(3)), world.now).unwrap();
    world.run(Duration::from_millis(2999));
    assert!(world.responses.is_empty());
    world.run(Duration::from_millis(1));
    assert_eq!(world.response::<ReadResponse>(handle).unwrap_err(), ClientError::Timeout("Read"));
    world.server.knobs.silent.clear();
    let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
    assert!(world.response::<ReadResponse>(handle).is_ok());
}

#[test]
fn requests_without_a_connection_are_refused() {
    let mut world = Setup::default().world();
    let refused = world.client.request(&mut read(1..2), None, world.now);
    assert_eq!(refused, Err(Misuse::NotConnected.into()));
    let mut setup = Setup::default();
    setup.client.outstanding_max = 2;
    let mut world = World::connected_with(setup);
    world.client.request(&mut read(1..2), None, world.now).unwrap();
    world.client.request(&mut read(1..2), None, world.now).unwrap();
    let refused = world.client.request(&mut read(1..2), None, world.now);
    assert_eq!(refused, Err(Misuse::TooManyRequests.into()));
}

#[test]
fn lists_are_split_over_the_limits_and_joined_in_order() {
    for (published, enforced) in [(0, usize::MAX), (7, 7), (0, 9), (100, 3), (1, 1)] {
        let mut world = Setup::default().world();
        world.server.knobs.published_max = published;
        world.server.knobs.enforced_max = enforced;
        world.client.connect(target(), world.now).unwrap();
        world.settle();
        assert!(world.client.is_up());
        for count in [0u32, 1, 7, 100] {
            let handle = world.client.operate(read(0..count), world.now).unwrap();
            let answer = world.response::<ReadResponse>(handle).unwrap();
            let values: Vec<_> = answer.results.into_iter().map(|result| result.value).collect();
            assert_eq!(values, (0..count).map(|id| Some(Variant::UInt32(id))).collect::<Vec<_>>());
        }
        // The learned limit is used from now on.
        world.server.received.clear();
        let handle = world.client.operate(read(0..50), world.now).unwrap();
        world.response::<ReadResponse>(handle).unwrap();
        let requests = world.server.received.len();
        assert!(requests <= 100usize.div_ceil(enforced.min(50)).max(1) * 2, "{requests} for {enforced}");
    }
}

#[test]
fn responses_too_large_for_the_client_are_split() {
    let mut setup = Setup::default();
    setup.limits.message_size_max = 100_000;
    let mut world = World::connected_with(setup);
    let mut request = read(0..0);
    for size in [30_000u32, 40_000, 50_000, 60_000, 90_000, 10] {
        let node_id = NodeId::numeric(2, size);
        request.nodes_to_read.push(taktwerk_schema::ReadValueId {
            node_id,
            attribute_id: 13,
            ..Default::default()
        });
    }
    let handle = world.client.operate(request, world.now).unwrap();
    let answer = world.response::<ReadResponse>(handle).unwrap();
    let lens =
        answer.results.into_iter().map(|result| String::try_from(result.value.unwrap()).unwrap().len());
    assert_eq!(lens.collect::<Vec<_>>(), [30_000, 40_000, 50_000, 60_000, 90_000, 10]);
    // A single operation that is too large fails.
    let node_id = NodeId::numeric(2, 200_000);
    let mut request = read(0..0);
    request.nodes_to_read.push(taktwerk_schema::ReadValueId {
        node_id,
        attribute_id: 13,
        ..Default::default()
    });
    let handle = world.client.operate(request, world.now).unwrap();
    assert_eq!(
        world.response::<ReadResponse>(handle).unwrap_err().status(),
        StatusCode::BAD_RESPONSE_TOO_LARGE
    );
}

#[test]
fn requests_too_large_for_the_server_are_split_or_refused() {
    let mut setup = Setup::default();
    setup.server_limits.message_size_max = 50_000;
    let mut world = World::connected_with(setup);
    let write = |size: usize| WriteValue {
        node_id: NodeId::numeric(1, 1),
        attribute_id: 13,
        value: DataValue::new("x".repeat(size)),
        ..Default::default()
    };
    let request =
        WriteRequest { nodes_to_write: (0..20).map(|_| write(10_000)).collect(), ..Default::default() };
    let handle = world.client.operate(request.clone(), world.now).unwrap();
    assert_eq!(world.response::<WriteResponse>(handle).unwrap().results.len(), 20);
    assert_eq!(world.server.written.len(), 20);
    assert!(world.client.request(&mut request.clone(), None, world.now).is_err());
    let request = WriteRequest { nodes_to_write: vec![write(60_000)], ..Default::default() };
    let handle = world.client.operate(request, world.now).unwrap();
    world.run(Duration::from_millis(1));
    let error = world.response::<WriteResponse>(handle).unwrap_err();
    assert_eq!(error.status(), StatusCode::BAD_REQUEST_TOO_LARGE);
}

fn secured(offered: &[(SecurityPolicy, MessageSecurityMode)]) -> Setup {
    let dummy = |name| Arc::new(DummyProvider::new(name, 2048)) as Arc<dyn Provider>;
    Setup { providers: (dummy("client"), dummy("server")), offered: offered.to_vec(), ..Setup::default() }
}

const NONE: (SecurityPolicy, MessageSecurityMode) = (SecurityPolicy::None, MessageSecurityMode::None);
const STRONG: (SecurityPolicy, MessageSecurityMode) =
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);

#[test]
fn the_strongest_endpoint_is_used_on_a_second_connection() {
    let mut world = World::connected_with(secured(&[NONE, STRONG]));
    assert_eq!(world.dialled.len(), 2);
    let events = world.take_events();
    let [Event::Connected(info)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((info.policy, info.mode), STRONG);
    let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
    assert!(world.response::<ReadResponse>(handle).is_ok());
    // After a lost connection, the session continues with the same security.
    world.break_connection();
    world.seconds(1);
    let events = world.take_events();
    assert!(matches!(&events[..], [Event::ConnectionLost { .. }, Event::Restored(Restored::SameSession, _)]));
    assert_eq!(world.dialled.len(), 3);
}

#[test]
fn unsuitable_endpoints_are_reported() {
    let mut world = secured(&[NONE]).world();
    world.client.connect(Target { security: Security::Best, ..target() }, world.now).unwrap();
    world.settle();
    let events = world.take_events();
    let [Event::Disconnected(Some(ClientError::Security(SecurityProblem::NoEndpoint { offered, .. })))] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(offered.len(), 1);
}

#[test]
fn an_edited_endpoint_list_is_detected() {
    let mut world = secured(&[NONE, STRONG]).world();
    let mut edited = world.server.endpoint_list();
    edited.push(edited[1].clone());
    edited[2].security_mode = taktwerk_schema::MessageSecurityMode::SIGN;
    world.server.knobs.endpoints_in_session = Some(edited);
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    let events = world.take_events();
    let changed = ClientError::Security(SecurityProblem::EndpointsChanged);
    assert_eq!(events, [Event::Disconnected(Some(changed))]);
}

#[test]
fn hosts_are_rewritten_with_a_note() {
    let mut world = Setup::default().world();
    world.server.knobs.announced_host = Some("inner-name".into());
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    let events = world.take_events();
    assert!(
        matches!(&events[..], [Event::Note(Note::HostRewritten { .. }), Event::Connected(_)]),
        "{events:?}"
    );
    assert_eq!(world.dialled, ["opc.tcp://plc:4840"]);
}

fn user() -> Identity {
    Identity::UserName { name: "joe".into(), password: "secret".into() }
}

#[test]
fn passwords_are_encrypted_or_not_sent() {
    let mut world = secured(&[STRONG, NONE]).world();
    world.client.connect(Target { identity: user(), ..target() }, world.now).unwrap();
    world.settle();
    assert!(world.client.is_up(), "{:?}", world.take_events());
    let token = world.server.sessions.values().next().unwrap().identity.clone().unwrap();
    let token = token.decode::<UserNameIdentityToken>().unwrap();
    assert_eq!(token.user_name, "joe");
    let mut plain = Vec::new();
    world.server.config.provider.decrypt(STRONG.0, token.password.as_bytes(), &mut plain).unwrap();
    assert_eq!(&plain[..10], b"\x26\0\0\0secret");
    // Without encryption the password is not sent, unless that is allowed.
    for allowed in [false, true] {
        let mut world = Setup::default().world();
        let policy = UserTokenPolicy { token_type: UserTokenType::USER_NAME, ..Default::default() };
        world.server.token_policies = vec![policy];
        let target = Target { identity: user(), allow_plaintext_password: allowed, ..target() };
        world.client.connect(target, world.now).unwrap();
        world.settle();
        assert_eq!(world.client.is_up(), allowed);
        if !allowed {
            let refused = ClientError::Security(SecurityProblem::PlaintextPassword);
            assert_eq!(world.take_events(), [Event::Disconnected(Some(refused))]);
            assert!(!world.server.received.contains(&ActivateSessionRequest::BINARY_ENCODING_ID));
        }
    }
}

#[test]
fn hostile_sessions_are_refused_before_a_secret_is_sent() {
    let refused = |change: &dyn Fn(&mut World)| {
        let mut world = secured(&[STRONG]).world();
        change(&mut world);
        let target = Target {
            security: Security::Exactly(STRONG.0, STRONG.1),
            discover: false,
            server_certificate: Some(dummy::certificate("server", 2048).into()),
            ..target()
        };
        world.client.connect(Target { identity: user(), ..target }, world.now).unwrap();
        world.settle();
        match world.take_events().pop() {
            Some(Event::Disconnected(Some(ClientError::Security(problem)))) => Some(problem),
            Some(Event::Connected(_)) => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|world| world.server.knobs.stale_nonce = true), Some(SecurityProblem::Nonce));
    let other = |world: &mut World| world.server.knobs.certificate = Some(dummy::certificate("other", 2048));
    assert_eq!(refused(&other), Some(SecurityProblem::CertificateChanged));
    // Over an unsecured channel, the certificate must be validated by the provider.
    for (certificate, trusted) in [("server", true), ("untrusted", false)] {
        let mut world = secured(&[NONE]).world();
        world.server.knobs.certificate = Some(dummy::certificate(certificate, 2048));
        let security = Security::Exactly(NONE.0, NONE.1);
        world.client.connect(Target { identity: user(), security, ..target() }, world.now).unwrap();
        world.settle();
        assert_eq!(world.client.is_up(), trusted);
    }
}

/// The error of a client with a password identity, and whether the password was sent.
fn against(
    offered: &[(SecurityPolicy, MessageSecurityMode)],
    security: Security,
    change: impl Fn(&mut World),
) -> (Option<SecurityProblem>, bool) {
    let mut world = secured(offered).world();
    change(&mut world);
    world.client.connect(Target { identity: user(), security, ..target() }, world.now).unwrap();
    world.settle();
    let left = world.server.received.contains(&ActivateSessionRequest::BINARY_ENCODING_ID);
    match world.take_events().pop() {
        Some(Event::Disconnected(Some(ClientError::Security(problem)))) => (Some(problem), left),
        Some(Event::Connected(_)) => (None, left),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_that_does_not_fit_its_channel_gets_no_password() {
    use taktwerk_schema::CreateSessionResponse as Created;
    let refused = |edit: fn(&mut Created)| {
        let offered = [NONE, STRONG];
        let (problem, left) =
            against(&offered, Security::Best, |world| world.server.knobs.edit_created = Some(edit));
        assert!(problem.is_none() || !left, "the password left for {problem:?}");
        problem
    };
    assert_eq!(refused(|_| {}), None);
    let nonces: [fn(&mut Created); 5] = [
        |created| created.server_nonce = Vec::new().into(),
        |created| created.server_nonce = vec![1; 31].into(),
        |created| created.server_nonce = vec![0; 32].into(),
        |created| created.server_nonce = vec![0; 128].into(),
        |created| created.server_nonce = taktwerk_types::ByteString::NULL,
    ];
    for edit in nonces {
        assert_eq!(refused(edit), Some(SecurityProblem::Nonce));
    }
    let signatures: [fn(&mut Created); 4] = [
        |created| created.server_signature = Default::default(),
        |created| created.server_signature.signature = vec![0; 256].into(),
        |created| {
            let mut signature = created.server_signature.signature.as_bytes().to_vec();
            signature[17] ^= 1;
            created.server_signature.signature = signature.into();
        },
        |created| {
            let signature = created.server_signature.signature.as_bytes();
            created.server_signature.signature = signature[..signature.len() - 1].into();
        },
    ];
    for edit in signatures {
        assert_eq!(refused(edit), Some(SecurityProblem::Crypto(CryptoError::Signature)));
    }
    let certificates: [fn(&mut Created); 3] = [
        |created| created.server_certificate = taktwerk_types::ByteString::NULL,
        |created| created.server_certificate = dummy::certificate("server", 4096).into(),
        |created| created.server_certificate = dummy::certificate("client", 2048).into(),
    ];
    for edit in certificates {
        assert_eq!(refused(edit), Some(SecurityProblem::CertificateChanged));
    }
    assert_eq!(
        refused(|created| created.authentication_token = NodeId::NULL),
        Some(SecurityProblem::TokenRepeated)
    );
    let lists: [fn(&mut Created); 8] = [
        |created| created.server_endpoints.clear(),
        |created| drop(created.server_endpoints.pop()),
        |created| created.server_endpoints.push(created.server_endpoints[0].clone()),
        |created| created.server_endpoints[1].security_level = 200,
        |created| created.server_endpoints[1].endpoint_url = "opc.tcp://plc:4841".into(),
        |created| created.server_endpoints[1].security_policy_uri = SecurityPolicy::Basic256.uri().into(),
        |created| created.server_endpoints[1].user_identity_tokens.truncate(1),
        |created| created.server_endpoints[1].user_identity_tokens[1].security_policy_uri = "".into(),
    ];
    for edit in lists {
        assert_eq!(refused(edit), Some(SecurityProblem::EndpointsChanged));
    }
}

#[test]
fn edited_discovery_gets_no_password() {
    type Edit = fn(&mut Vec<taktwerk_schema::EndpointDescription>);
    let offered = [NONE, STRONG, (SecurityPolicy::Aes256_Sha256_RsaPss, MessageSecurityMode::SignAndEncrypt)];
    let refused = |security, edit: Edit| {
        let (problem, left) =
            against(&offered, security, |world| world.server.knobs.edit_discovery = Some(edit));
        assert!(problem.is_none() || !left, "the password left for {problem:?}");
        problem
    };
    let pinned = Security::Exactly(STRONG.0, STRONG.1);
    assert_eq!(refused(pinned, |_| {}), None);
    // Only None is left, with an unencrypted password.
    let downgrade: Edit = |list| {
        list.truncate(1);
        list[0].user_identity_tokens[1].security_policy_uri = SecurityPolicy::None.uri().into();
    };
    assert!(matches!(refused(pinned, downgrade), Some(SecurityProblem::NoEndpoint { .. })));
    assert!(matches!(refused(Security::Best, downgrade), Some(SecurityProblem::NoEndpoint { .. })));
    assert_eq!(refused(Security::BestOrNone, downgrade), Some(SecurityProblem::PlaintextPassword));
    // The strongest endpoint is hidden, but the list in CreateSession contains it.
    let hide: Edit = |list| drop(list.pop());
    assert_eq!(refused(Security::Best, hide), Some(SecurityProblem::EndpointsChanged));
    assert_eq!(refused(pinned, hide), Some(SecurityProblem::EndpointsChanged));
    // An additional endpoint that looks best and has no transport profile: it is compared like the others.
    let nameless: Edit = |list| {
        let mut copy = list[1].clone();
        copy.security_level = 255;
        copy.transport_profile_uri = "".into();
        copy.user_identity_tokens[1].security_policy_uri = SecurityPolicy::Aes128_Sha256_RsaOaep.uri().into();
        list.push(copy);
    };
    assert_eq!(refused(pinned, nameless), Some(SecurityProblem::EndpointsChanged));
    // Passwords unencrypted, or encrypted with a broken policy.
    let clear: Edit = |list| {
        for endpoint in list {
            endpoint.user_identity_tokens[1].security_policy_uri = SecurityPolicy::None.uri().into();
        }
    };
    assert_eq!(refused(pinned, clear), Some(SecurityProblem::EndpointsChanged));
    let broken: Edit = |list| {
        for endpoint in list {
            endpoint.user_identity_tokens[1].security_policy_uri = SecurityPolicy::Basic128Rsa15.uri().into();
        }
    };
    assert_eq!(refused(pinned, broken), Some(SecurityProblem::NoTokenPolicy("user name")));
    // Another server's certificate: the answering server has another key.
    let other: Edit = |list| {
        for endpoint in list {
            endpoint.server_certificate = dummy::certificate("untrusted", 2048).into();
        }
    };
    let mut world = secured(&offered).world();
    world.server.knobs.edit_discovery = Some(other);
    world.client.connect(Target { identity: user(), security: pinned, ..target() }, world.now).unwrap();
    world.settle();
    assert!(!world.client.is_up());
    assert!(!world.server.received.contains(&CreateSessionRequest::BINARY_ENCODING_ID));
    // The server is another application than its endpoints state.
    let renamed: Edit = |list| {
        for endpoint in list {
            endpoint.server.application_uri = "urn:dummy:other".into();
        }
    };
    let problem = refused(pinned, renamed);
    assert!(matches!(
        problem,
        Some(SecurityProblem::EndpointsChanged | SecurityProblem::ApplicationUri { .. })
    ));
    let mut world = secured(&offered).world();
    world.server.knobs.edit_discovery = Some(renamed);
    world.server.knobs.edit_created = Some(|created| renamed_list(&mut created.server_endpoints));
    world.client.connect(Target { identity: user(), security: pinned, ..target() }, world.now).unwrap();
    world.settle();
    let events = world.take_events();
    let named = SecurityProblem::ApplicationUri { certificate: Some("urn:dummy:server".into()) };
    assert_eq!(events, [Event::Disconnected(Some(ClientError::Security(named)))]);
}

fn renamed_list(list: &mut [taktwerk_schema::EndpointDescription]) {
    for endpoint in list {
        endpoint.server.application_uri = "urn:dummy:other".into();
    }
}

#[test]
fn nonces_of_activations_are_checked() {
    let edits: [fn(&mut taktwerk_schema::ActivateSessionResponse); 3] = [
        |activated| activated.server_nonce = Vec::new().into(),
        |activated| activated.server_nonce = vec![5; 16].into(),
        |activated| activated.server_nonce = vec![0; 64].into(),
    ];
    for edit in edits {
        let (problem, _) = against(&[NONE, STRONG], Security::Best, |world| {
            world.server.knobs.edit_activated = Some(edit);
        });
        assert_eq!(problem, Some(SecurityProblem::Nonce));
    }
}

#[test]
fn a_password_is_not_encrypted_with_a_repeatable_nonce() {
    // The channel has no security, but the password is encrypted.
    let (problem, left) = against(&[NONE], Security::BestOrNone, |world| {
        world.server.knobs.certificate = Some(dummy::certificate("server", 2048));
        world.server.knobs.edit_created = Some(|created| created.server_nonce = vec![0; 32].into());
    });
    assert_eq!((problem, left), (Some(SecurityProblem::Nonce), false));
}

#[test]
fn a_server_that_repeats_itself_on_reconnection_is_refused() {
    let mut world = World::connected_with(Setup { client: retrying().client, ..secured(&[NONE, STRONG]) });
    world.take_events();
    // The session is lost, and the new one has the same nonce.
    world.server.forget_sessions();
    world.server.knobs.edit_activated = None;
    world.server.knobs.edit_created = Some(|created| created.server_nonce = vec![102; 32].into());
    world.break_connection();
    world.seconds(1);
    let events = world.take_events();
    let nonce = ClientError::Security(SecurityProblem::Nonce);
    let refused = |event: &Event| matches!(event, Event::ConnectFailed { error, .. } | Event::Disconnected(Some(error)) if *error == nonce);
    assert!(events.iter().any(refused), "{events:?}");
}

#[test]
fn issued_tokens_are_encrypted() {
    let mut world = secured(&[STRONG, NONE]).world();
    world.server.token_policies =
        vec![UserTokenPolicy { token_type: UserTokenType::ISSUED_TOKEN, ..Default::default() }];
    let token = "header.payload.signature".repeat(20);
    let identity = Identity::IssuedToken { token: token.as_str().into() };
    assert!(!format!("{identity:?}").contains("payload"));
    world.client.connect(Target { identity, ..target() }, world.now).unwrap();
    world.settle();
    assert!(world.client.is_up(), "{:?}", world.take_events());
    let sent = world.server.sessions.values().next().unwrap().identity.clone().unwrap();
    let sent = sent.decode::<taktwerk_schema::IssuedIdentityToken>().unwrap();
    let open = taktwerk_crypto::OpenSecret {
        policy: STRONG.0,
        algorithm: sent.encryption_algorithm.as_str().into(),
        data: sent.token_data.as_bytes().to_vec(),
        server_nonce: vec![101; 32],
        now: taktwerk_types::UtcTime::from_ticks(0),
        key: None,
        sender_certificate: None,
        secret_len_max: 4096,
    };
    let opened = open.run(world.server.config.provider.as_ref());
    assert!(opened.is_ok() || opened == Err(CryptoError::Decryption), "the server's clock is not set here");
    assert!(!sent.token_data.as_bytes().windows(7).any(|part| part == b"payload"));
}

#[test]
fn user_certificates_are_proved() {
    let mut setup = secured(&[STRONG]);
    setup.offered.push(NONE);
    let mut world = setup.world();
    let policy = UserTokenPolicy { token_type: UserTokenType::CERTIFICATE, ..Default::default() };
    world.server.token_policies = vec![policy];
    let identity = Identity::X509 { provider: Arc::new(DummyProvider::new("joe", 2048)) };
    world.client.connect(Target { identity, security: Security::Best, ..target() }, world.now).unwrap();
    world.settle();
    assert!(world.client.is_up());
    let mut world = Setup::default().world();
    world.server.token_policies =
        vec![UserTokenPolicy { token_type: UserTokenType::CERTIFICATE, ..Default::default() }];
    let identity = Identity::X509 { provider: Arc::new(NullProvider) };
    world.client.connect(Target { identity, ..target() }, world.now).unwrap();
    world.settle();
    assert!(matches!(world.take_events()[..], [Event::Disconnected(Some(ClientError::Security(_)))]));
}

#[test]
fn a_refused_session_is_reported_at_once() {
    let mut world = Setup::default().world();
    let busy = (CreateSessionRequest::BINARY_ENCODING_ID, StatusCode::BAD_TOO_MANY_SESSIONS);
    world.server.knobs.faults.push(busy);
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    let error = ClientError::Service { service: "CreateSession", status: StatusCode::BAD_TOO_MANY_SESSIONS };
    assert_eq!(world.take_events(), [Event::Disconnected(Some(error))]);
    let mut world = Setup::default().world();
    world.refuse = true;
    world.client.connect(target(), world.now).unwrap();
    world.settle();
    assert_eq!(world.take_events(), [Event::Disconnected(Some(ClientError::Connection("refused".into())))]);
}

#[test]
fn idle_sessions_are_kept_alive_and_dead_connections_detected() {
    let mut world = World::connected();
    let before = world.server.received.len();
    world.seconds(100);
    assert_eq!(world.server.received.len() - before, 10);
    world.take_events();
    world.dead = true;
    world.seconds(21);
    let events = world.take_events();
    let [Event::ConnectionLost { error, .. }, Event::Restored(Restored::SameSession, _)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*error, ClientError::Timeout("Read"));
}

/// A renewal every 15 s for three hours, with and without cryptography, with requests and notifications in between.
#[test]
fn tokens_are_renewed_for_hours() {
    for offered in [NONE, STRONG] {
        let mut setup = secured(&[NONE, offered]);
        setup.client.token_lifetime_ms = 20_000;
        let mut world = setup.world();
        let security = Security::Exactly(offered.0, offered.1);
        world.client.connect(Target { security, ..target() }, world.now).unwrap();
        world.settle();
        let (_, id) = world.subscribe(1);
        world.take_events();
        let before = world.opens;
        for value in 0..1080 {
            world.server.change(id, 0, f64::from(value));
            let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
            world.seconds(10);
            assert!(world.response::<ReadResponse>(handle).is_ok());
        }
        assert_eq!(world.take_values().len(), 1080);
        assert!((710..=730).contains(&(world.opens - before)), "{}", world.opens - before);
        assert!(world.subscription_events().len() > 1000 && world.dialled.len() <= 2);
    }
}

#[test]
fn a_client_that_cannot_secure_messages_reconnects() {
    let failing = DummyProvider::new("client", 2048);
    let mut setup = Setup { client: retrying().client, ..secured(&[NONE, STRONG]) };
    setup.providers.0 = Arc::new(failing.clone());
    let mut world = World::connected_with(setup);
    world.take_events();
    failing.seal_nothing();
    let now = world.now;
    let refused = world.client.request(&mut read(0..1), None, now);
    assert!(matches!(refused, Err(ClientError::Channel(ChannelError::Crypto(_)))), "{refused:?}");
    assert_eq!(world.client.poll_timeout().map(|(at, _)| at), Some(Instant::ZERO), "not after a deadline");
    world.run(Duration::from_millis(1));
    let events = world.take_events();
    let lost = |event: &Event| {
        let Event::ConnectionLost { error, .. } = event else { return false };
        matches!(error, ClientError::Channel(ChannelError::Crypto(CryptoError::Internal)))
    };
    assert!(events.iter().any(lost), "{events:?}");
}

#[test]
fn a_server_that_is_no_longer_trusted_is_disconnected() {
    let trust = DummyProvider::new("client", 2048);
    let changes = Arc::new(core::sync::atomic::AtomicU64::new(0));
    let mut setup = secured(&[NONE, STRONG]);
    setup.providers.0 = Arc::new(trust.clone());
    setup.client.trust_list_changes = Arc::clone(&changes);
    let mut world = World::connected_with(setup);
    world.take_events();
    // A change that does not affect this server.
    changes.fetch_add(1, core::sync::atomic::Ordering::Release);
    world.seconds(30);
    assert!(world.client.is_up());
    assert_eq!(world.take_events(), []);
    trust.distrust_everybody();
    world.seconds(30);
    assert!(world.client.is_up(), "the change of the list was not announced");
    changes.fetch_add(1, core::sync::atomic::Ordering::Release);
    world.seconds(30);
    let events = world.take_events();
    let is_refusal = |error: &ClientError| {
        matches!(error, ClientError::Security(SecurityProblem::Crypto(CryptoError::Certificate(_))))
    };
    let left = events.iter().any(|event| match event {
        Event::Disconnected(Some(error)) | Event::ConnectionLost { error, .. } => is_refusal(error),
        _ => false,
    });
    assert!(left, "{events:?}");
    assert!(!world.client.is_up());
}

#[test]
fn a_changed_server_certificate_triggers_discovery() {
    let mut world = World::connected_with(Setup { client: retrying().client, ..secured(&[NONE, STRONG]) });
    world.take_events();
    let provider = Arc::new(DummyProvider::new("server", 4096));
    let config = taktwerk_channel::ChannelConfig::clone(&world.server.config);
    world.server.config = Arc::new(taktwerk_channel::ChannelConfig { provider, ..config });
    world.server.forget_sessions();
    let dialled = world.dialled.len();
    world.break_connection();
    world.seconds(60);
    let events = world.take_events();
    assert!(matches!(events.last(), Some(Event::Restored(Restored::NewSession, _))), "{events:?}");
    assert!(world.client.is_up());
    // With the old certificate, for the endpoints, and with the new certificate; plus one or two retries.
    assert!((3..=6).contains(&(world.dialled.len() - dialled)), "{:?}", &world.dialled[dialled..]);
}

#[test]
fn a_relay_is_dialled_and_the_server_url_is_kept() {
    let mut world = secured(&[NONE, STRONG]).world();
    let via = taktwerk_client::EndpointUrl::parse("opc.tcp://127.0.0.1:4999").unwrap();
    world.client.connect(Target { via: Some(via), ..target() }, world.now).unwrap();
    world.settle();
    assert!(world.client.is_up());
    assert_eq!(world.dialled, ["opc.tcp://127.0.0.1:4999"; 2]);
    let named: Vec<&str> = world.server.named.iter().map(String::as_str).collect();
    assert_eq!(named, ["opc.tcp://plc:4840"]);
}

#[test]
fn a_client_with_a_certificate_is_not_downgraded_to_none() {
    // An attacker has removed all but None from the endpoint list.
    let stripped = |client: Arc<dyn Provider>| {
        let mut setup = secured(&[NONE, STRONG]);
        setup.providers.0 = client;
        let mut world = setup.world();
        world.server.knobs.edit_discovery = Some(|list| list.truncate(1));
        world.client.connect(target(), world.now).unwrap();
        world.settle();
        world.take_events()
    };
    let with = stripped(Arc::new(DummyProvider::new("client", 2048)));
    let [Event::Disconnected(Some(ClientError::Security(problem)))] = &with[..] else { panic!("{with:?}") };
    assert!(matches!(problem, SecurityProblem::NoEndpoint { .. }));
    let without = stripped(Arc::new(NullProvider));
    assert!(matches!(&without[..], [Event::Connected(_)]), "{without:?}");
}

/// Another server with a trusted certificate answers after a reconnect. It must neither get the session's token nor be
/// accepted without the proof in CreateSession.
#[test]
fn a_session_is_not_moved_to_another_server() {
    let mut world = secured(&[NONE, STRONG]).world();
    world
        .client
        .connect(Target { security: Security::Best, identity: user(), ..target() }, world.now)
        .unwrap();
    world.settle();
    assert!(world.client.is_up());
    let other = ChannelConfig {
        provider: Arc::new(DummyProvider::new("other", 2048)),
        ..(*world.server.config).clone()
    };
    world.server.config = Arc::new(other);
    world.server.received.clear();
    world.take_events();
    world.break_connection();
    world.seconds(5);
    assert!(world.server.received.contains(&CreateSessionRequest::BINARY_ENCODING_ID), "{:?}", world.events);
    assert!(!world.server.received.contains(&ActivateSessionRequest::BINARY_ENCODING_ID));
    assert!(!world.client.is_up());
}
