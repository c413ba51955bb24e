//! Connecting, requests, faults, timeouts, splitting, security.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod common;

use common::*;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_client::{
    ClientError, Event, Identity, Misuse, Note, OperationKind, Restored, Security, SecurityProblem, Target,
};
use taktwerk_crypto::dummy::{self, DummyProvider};
use taktwerk_crypto::{MessageSecurityMode, NullProvider, Provider, SecurityPolicy};
use taktwerk_schema::{
    ActivateSessionRequest, CreateSessionRequest, FindServersRequest, GetEndpointsRequest,
    GetEndpointsResponse, ReadRequest, ReadResponse, UserNameIdentityToken, UserTokenPolicy, UserTokenType,
    WriteRequest, WriteResponse, WriteValue,
};
use taktwerk_types::{DataValue, NodeId, StatusCode, Structure, Variant};

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
fn without_a_session_discovery_works() {
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
    // A request can be used again, and read as another type it is refused.
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
        // What was learned is not tried again.
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
    // One operation that is too large by itself fails.
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
fn the_strongest_endpoint_is_taken_over_a_second_connection() {
    let mut world = World::connected_with(secured(&[NONE, STRONG]));
    assert_eq!(world.dialled.len(), 2);
    let events = world.take_events();
    let [Event::Connected(info)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((info.policy, info.mode), STRONG);
    let handle = world.client.request(&mut read(1..2), None, world.now).unwrap();
    assert!(world.response::<ReadResponse>(handle).is_ok());
    // A lost connection comes back to the same session with the same security.
    world.break_connection();
    world.seconds(1);
    let events = world.take_events();
    assert!(matches!(&events[..], [Event::ConnectionLost { .. }, Event::Restored(Restored::SameSession, _)]));
    assert_eq!(world.dialled.len(), 3);
}

#[test]
fn endpoints_that_do_not_fit_are_told() {
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
fn an_edited_endpoint_list_is_noticed() {
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
    // Without any encryption the password stays here, unless that is allowed.
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
fn hostile_sessions_are_refused_before_a_secret_leaves() {
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
    // Over a channel without security the certificate is trusted only if the provider says so.
    for (certificate, trusted) in [("server", true), ("untrusted", false)] {
        let mut world = secured(&[NONE]).world();
        world.server.knobs.certificate = Some(dummy::certificate(certificate, 2048));
        world.client.connect(Target { identity: user(), ..target() }, world.now).unwrap();
        world.settle();
        assert_eq!(world.client.is_up(), trusted);
    }
}

#[test]
fn users_prove_their_certificate() {
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
fn a_server_that_refuses_the_session_is_told_at_once() {
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
fn an_idle_session_is_kept_alive_and_a_dead_connection_is_noticed() {
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

/// Every 15 s for three hours, with and without cryptography, while requests and notifications flow.
#[test]
fn tokens_are_renewed_for_hours() {
    for offered in [NONE, STRONG] {
        let mut setup = secured(&[NONE, offered]);
        setup.client.token_lifetime_ms = 20_000;
        let mut world = World::connected_with(setup);
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
