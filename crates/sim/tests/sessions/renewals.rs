//! A hundred renewals of tokens with a lifetime of one second, under load: nothing is lost, every request is answered
//! correctly, and after each renewal there are messages that still use the previous token.
//!
//! Both ends are the production code; time is virtual, so the minute and a half takes only seconds. The same test in
//! real time and with other stacks is `interop/security.sh renewals`.

use crate::common::*;
use rcgen::{CertificateParams, KeyPair, RsaKeySize, SanType};
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{Client, ClientConfig, Security, SubscriptionEvent, Target};
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity};
use taktwerk_crypto::{
    CertificatePurpose, CertificateValidator, CryptoError, MessageSecurityMode, Provider, SecurityPolicy,
};
use taktwerk_crypto_dummy::DummyProvider;
use taktwerk_schema::{ReadRequest, ReadResponse, WriteRequest, WriteResponse, WriteValue};
use taktwerk_server::EndpointConfig;
use taktwerk_sim::plant::{Plant, monitor, url, value_of};
use taktwerk_sim::{EffectTime, Path, Route, Subscriber, World};
use taktwerk_types::{DataValue, StatusCode, Variant};

/// The number of renewals that both ends must show.
const RENEWALS: u32 = 100;
const LIFETIME_MS: u32 = 1_000;
/// Variables written by the server's application. They are followed by one that the client writes.
const WRITTEN_HERE: u32 = 8;
const WRITTEN_BY_CLIENT: u32 = WRITTEN_HERE;
/// Milliseconds between two rounds of load.
const ROUND_MS: u64 = 20;
/// A token is requested at three quarters of its lifetime, and the response takes up to a quarter of a second.
const ROUNDS: i64 = RENEWALS as i64 * 1_000 / ROUND_MS as i64;
/// Milliseconds that a response may still take after the last round.
const REST_MS: u64 = 3_000;

type Modes = (SecurityPolicy, MessageSecurityMode);

/// Runs a server, and a client that reads, writes and subscribes continuously through all its renewals.
fn hold(
    seed: u64,
    security: Modes,
    server: &Arc<dyn Provider>,
    client: &Arc<dyn Provider>,
    server_uri: &str,
) {
    let mut world = World::new(seed);
    let entropy = Box::new(world.fork_entropy());
    let plant = Plant::new(SERVER, WRITTEN_HERE + 1, world.utc_origin(), entropy, |config| {
        let mut endpoint = EndpointConfig::unsecured(&url(SERVER));
        (endpoint.policy, endpoint.mode) = security;
        config.endpoints = vec![endpoint];
        config.application_uri = server_uri.to_owned();
        config.provider = Arc::clone(server);
        config.check().unwrap();
    })
    .unwrap();
    let variables = plant.variables;
    let server = world.add_server(SERVER, plant.shard);

    let channel = ChannelConfig {
        provider: Arc::clone(client),
        utc_origin: world.utc_origin(),
        ..ChannelConfig::default()
    };
    let config = ClientConfig {
        channel: Arc::new(channel),
        token_lifetime_ms: LIFETIME_MS,
        ..ClientConfig::default()
    };
    let client = Client::new(Arc::new(config), Box::new(world.fork_entropy()));
    let items = (0..=WRITTEN_BY_CLIENT).map(|number| monitor(number, 1_000)).collect();
    let path = Path { jitter: millis(10), ..Path::LAN.with_delay(millis(20)) };
    let client = world.add_client(client, subscription(50.0, items), Route::symmetric(path));
    // Signatures take some time, and traffic continues meanwhile.
    let slow = EffectTime::Between(millis(2), millis(40));
    world.server_mut(server).effect_time = slow;
    world.client_mut(client).effect_time = slow;
    let target =
        Target { security: Security::Exactly(security.0, security.1), ..Target::new(&url(SERVER)).unwrap() };
    world.with_client(client, |client, _, now| client.connect(target, now.instant)).unwrap();
    let ready = |world: &World<Subscriber>| {
        (0..=WRITTEN_BY_CLIENT).all(|number| world.client(client).application.values_of(number).len() == 1)
    };
    assert!(world.run_while(secs(30), |world| !ready(world)).unwrap(), "{security:?}: no first values");
    let link = world.client(client).link();

    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        for variable in &variables[..WRITTEN_HERE as usize] {
            variable.set_at(round, world.now().utc);
        }
        let of_client = value_of(WRITTEN_BY_CLIENT);
        let write = WriteValue {
            node_id: of_client.node_id.clone(),
            attribute_id: of_client.attribute_id,
            value: DataValue::new(Variant::from(round)),
            ..WriteValue::default()
        };
        let write = WriteRequest { nodes_to_write: vec![write], ..WriteRequest::default() };
        writes.push(world.request(client, write).unwrap());
        let read = ReadRequest { nodes_to_read: vec![of_client, value_of(0)], ..ReadRequest::default() };
        reads.push(world.request(client, read).unwrap());
        world.run_for(millis(ROUND_MS)).unwrap();
    }
    world.run_for(millis(REST_MS)).unwrap();

    // The same connection from beginning to end, and no pending requests.
    assert_eq!(world.client(client).link(), link, "{security:?}");
    assert_eq!(world.client(client).waiting(), 0, "{security:?}");
    let used = world.tokens(client);
    assert!(used.issued > RENEWALS, "{security:?}: {used:?}");
    assert!(
        used.overlaps_of_client >= RENEWALS && used.overlaps_of_server >= RENEWALS,
        "{security:?}: {used:?}"
    );

    let app = &mut world.client_mut(client).application;
    let kept_alive = app.count_subscription(|event| matches!(event, SubscriptionEvent::KeepAlive));
    assert_eq!(app.events.len() - kept_alive, 3, "connected, subscription, items: {:?}", app.events);
    for number in 0..=WRITTEN_BY_CLIENT {
        let expected: Vec<i64> = (0..=ROUNDS).collect();
        assert_eq!(numbers(app, number), expected, "{security:?}: values of {number}");
    }
    let responses = core::mem::take(&mut app.responses);
    assert_eq!(responses.len(), writes.len() + reads.len(), "{security:?}");
    let (mut wrote, mut read) = (0, 0i64);
    let mut last_seen = 0;
    for (_, handle, reply) in responses {
        let reply = reply.unwrap();
        if Some(&handle) == writes.get(wrote) {
            let response: WriteResponse = reply.decode().unwrap();
            assert_eq!(response.results, [StatusCode::GOOD]);
            wrote += 1;
            continue;
        }
        assert_eq!(
            reads.get(read as usize),
            Some(&handle),
            "{security:?}: responses must be in the order of the requests"
        );
        read += 1;
        let response: ReadResponse = reply.decode().unwrap();
        let values: Vec<i64> = response
            .results
            .iter()
            .map(|value| i64::try_from(value.value.clone().unwrap()).unwrap())
            .collect();
        // For the variable that the client writes: exactly its last written value. For the server's variables: no value
        // older than before.
        assert_eq!(values[0], read, "{security:?}");
        assert!((last_seen..=ROUNDS).contains(&values[1]), "{security:?}: {} after {last_seen}", values[1]);
        last_seen = values[1];
    }
    assert_eq!((wrote as i64, read), (ROUNDS, ROUNDS), "{security:?}");
}

#[test]
fn nothing_is_lost_under_any_kind_of_policy() {
    use MessageSecurityMode::{None, Sign, SignAndEncrypt};
    let kinds = [
        (SecurityPolicy::None, None),
        (SecurityPolicy::Basic256Sha256, Sign),
        (SecurityPolicy::Aes256_Sha256_RsaPss, SignAndEncrypt),
        (SecurityPolicy::ECC_nistP384, SignAndEncrypt),
        (SecurityPolicy::ECC_curve25519_ChaChaPoly, SignAndEncrypt),
        (SecurityPolicy::RSA_DH_AesGcm, Sign),
    ];
    let server: Arc<dyn Provider> = Arc::new(DummyProvider::new("server", 2048));
    let client: Arc<dyn Provider> = Arc::new(DummyProvider::new("client", 2048));
    for (seed, kind) in kinds.into_iter().enumerate() {
        hold(seed as u64, kind, &server, &client, "urn:dummy:server");
    }
}

/// Trusts every certificate: trust decisions are tested elsewhere.
#[derive(Debug)]
struct Trusting;

impl CertificateValidator for Trusting {
    fn validate(&self, _: &[u8], _: &CertificatePurpose) -> Result<(), CryptoError> {
        Ok(())
    }
}

fn with_keys(uri: &str) -> Arc<dyn Provider> {
    let keys = [
        KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
    ];
    let mut provider = AwsLcProvider::new(Arc::new(Trusting));
    for key in keys {
        let key = key.unwrap();
        let mut parameters = CertificateParams::new([SERVER.to_owned()]).unwrap();
        parameters.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
        let certificate = parameters.self_signed(&key).unwrap();
        let identity = Identity::new(certificate.der().to_vec(), &key.serialize_der()).unwrap();
        provider = provider.with_identity(identity);
    }
    Arc::new(provider)
}

/// The same with real key agreement and real cryptography. Bytes are not reproducible, because keys are random.
#[test]
fn nothing_is_lost_with_real_keys() {
    let (server, client) = (with_keys("urn:server"), with_keys("urn:client"));
    let kinds = [SecurityPolicy::Basic256Sha256, SecurityPolicy::ECC_nistP256_AesGcm];
    for (seed, policy) in kinds.into_iter().enumerate() {
        let security = (policy, MessageSecurityMode::SignAndEncrypt);
        hold(seed as u64, security, &server, &client, "urn:server");
    }
}
