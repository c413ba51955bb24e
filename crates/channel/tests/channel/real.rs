//! Complete channels with real cryptography: every policy and mode, with renewals, and what real keys refuse.

use crate::common::*;
use core::time::Duration;
use rcgen::{CertificateParams, KeyPair, RsaKeySize};
use std::sync::{Arc, LazyLock};
use taktwerk_channel::{Channel, ChannelConfig, ChannelError, OpenParams};
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity};
use taktwerk_crypto::{
    CertificatePurpose, CertificateValidator, CryptoError, MessageSecurityMode, Provider, SecurityPolicy,
};
use taktwerk_types::StatusCode;

/// Trusts every certificate whose name is client or server.
#[derive(Debug)]
struct ByName;

impl CertificateValidator for ByName {
    fn validate(&self, chain_der: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError> {
        let name: &[u8] = match purpose {
            CertificatePurpose::Client { .. } => b"the-client",
            CertificatePurpose::Server { host_name } => {
                assert_eq!(host_name, "host");
                b"the-server"
            }
            CertificatePurpose::User { .. } => b"the-user",
        };
        if chain_der.windows(name.len()).any(|at| at == name) {
            return Ok(());
        }
        Err(CryptoError::certificate(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "of another name"))
    }
}

fn make(name: &str) -> Arc<AwsLcProvider> {
    let keys = [
        KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        KeyPair::generate_for(&rcgen::PKCS_ED25519),
    ];
    let mut provider = AwsLcProvider::new(Arc::new(ByName));
    for key in keys {
        let key = key.unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
        let identity = Identity::new(certificate.der().to_vec(), &key.serialize_der()).unwrap();
        provider = provider.with_identity(identity);
    }
    Arc::new(provider)
}

static CLIENT: LazyLock<Arc<AwsLcProvider>> = LazyLock::new(|| make("the-client"));
static SERVER: LazyLock<Arc<AwsLcProvider>> = LazyLock::new(|| make("the-server"));
static STRANGER: LazyLock<Arc<AwsLcProvider>> = LazyLock::new(|| make("a-stranger"));

fn carried() -> Vec<(SecurityPolicy, MessageSecurityMode)> {
    let modes = [MessageSecurityMode::Sign, MessageSecurityMode::SignAndEncrypt];
    SERVER.usable_policies().into_iter().flat_map(|policy| modes.map(|mode| (policy, mode))).collect()
}

fn pair(
    client: &Arc<AwsLcProvider>,
    server: &Arc<AwsLcProvider>,
    (policy, mode): (SecurityPolicy, MessageSecurityMode),
    lifetime_ms: u32,
) -> Pair {
    let config = |provider: &Arc<AwsLcProvider>| {
        let mut limits = small_buffers();
        limits.lifetime_min_ms = 1;
        let provider: Arc<dyn Provider> = provider.clone();
        Arc::new(ChannelConfig { limits, provider, security: vec![(policy, mode)], ..Default::default() })
    };
    let params = OpenParams {
        endpoint_url: URL.into(),
        policy,
        mode,
        server_certificate: server.own_certificate(policy).map(Into::into),
        lifetime_ms,
    };
    let mut out = Vec::new();
    let channel = Channel::client(config(client), params, START, &mut out).unwrap();
    Pair {
        client: End::new(channel, client.clone(), out),
        server: End::new(Channel::server(config(server), 77, START), server.clone(), vec![]),
        now: START,
    }
}

#[test]
fn every_policy_and_mode_opens_carries_messages_and_renews() {
    for security in carried() {
        let mut pair = pair(&CLIENT, &SERVER, security, 1000);
        pair.deliver_all();
        assert_eq!(pair.client.take_seen(), [Seen::Opened], "{security:?}");
        assert_eq!(pair.server.take_seen(), [Seen::Opened], "{security:?}");
        assert_eq!(pair.client.channel.thumbprint(), pair.server.channel.thumbprint());
        assert!(!pair.client.channel.thumbprint().is_empty());
        // A new token every 750 ms, with short and long messages in between, in both directions.
        for round in 0..10u32 {
            let body = pattern([0, 1, 15, 16, 100, 1000, 8100, 8192, 20_000, 65_000][round as usize]);
            pair.client.send(round, &body).unwrap();
            pair.server.send(round, &body).unwrap();
            if round % 2 == 0 {
                // Both tokens are in use while messages are in flight.
                pair.now = pair.now + Duration::from_millis(750);
                pair.client.tick(pair.now);
            }
            pair.deliver_all();
            let message = Seen::Message(round, body);
            let renewed = round % 2 == 0;
            let expected = |seen: Vec<Seen>| {
                assert!(seen.contains(&message), "{security:?} {round}");
                assert_eq!(seen.contains(&Seen::Renewed), renewed, "{security:?} {round}");
                assert_eq!(seen.len(), 1 + usize::from(renewed), "{security:?} {round} {seen:?}");
            };
            expected(pair.client.take_seen());
            expected(pair.server.take_seen());
        }
        assert!(pair.client.send(99, b"still open").is_ok());
    }
}

#[test]
fn a_hundred_renewals_lose_nothing() {
    let all = [
        (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt),
        (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt),
        (SecurityPolicy::ECC_curve25519_ChaChaPoly, MessageSecurityMode::Sign),
    ];
    for security in all {
        let mut pair = pair(&CLIENT, &SERVER, security, 1000);
        pair.deliver_all();
        pair.client.take_seen();
        pair.server.take_seen();
        let (mut renewals, mut sent, mut received) = (0, 0u32, 0u32);
        while renewals < 100 {
            for _ in 0..3 {
                pair.client.send(sent, &sent.to_le_bytes()).unwrap();
                sent += 1;
            }
            pair.run(Duration::from_millis(100));
            pair.deliver_all();
            renewals += pair.client.take_seen().iter().filter(|seen| **seen == Seen::Renewed).count();
            for seen in pair.server.take_seen() {
                match seen {
                    Seen::Message(id, body) => {
                        assert_eq!((id, body), (received, received.to_le_bytes().to_vec()));
                        received += 1;
                    }
                    Seen::Renewed => {}
                    other => panic!("{security:?} {other:?}"),
                }
            }
        }
        assert_eq!(sent, received, "{security:?}");
    }
}

#[test]
fn untrusted_certificates_open_no_channel() {
    for security in carried() {
        let mut stranger = pair(&STRANGER, &SERVER, security, 1000);
        stranger.deliver_all();
        let refused = stranger.server.take_seen();
        let [Seen::Failed(ChannelError::Crypto(CryptoError::Certificate(refusal)))] = refused.as_slice()
        else {
            panic!("{refused:?}");
        };
        assert_eq!(refusal.status(), StatusCode::BAD_CERTIFICATE_UNTRUSTED);
        let told = stranger.client.take_seen();
        assert!(!told.contains(&Seen::Opened), "{told:?}");

        let mut fooled = pair(&CLIENT, &STRANGER, security, 1000);
        fooled.deliver_all();
        assert!(!fooled.client.take_seen().contains(&Seen::Opened));
    }
}

#[test]
fn a_flipped_bit_ends_the_channel() {
    for security in carried() {
        for back in [1, 17, 60] {
            let mut pair = pair(&CLIENT, &SERVER, security, 1000);
            pair.deliver_all();
            pair.server.take_seen();
            pair.client.send(1, &pattern(100)).unwrap();
            let at = pair.client.out.len() - back;
            pair.client.out[at] ^= 0x20;
            pair.deliver_all();
            let seen = pair.server.take_seen();
            let [Seen::Failed(error @ ChannelError::Crypto(_))] = seen.as_slice() else {
                panic!("{security:?} {seen:?}");
            };
            assert_eq!(error.wire(), Some((StatusCode::BAD_SECURITY_CHECKS_FAILED, "")));
        }
    }
}
