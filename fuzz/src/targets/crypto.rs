//! Secured chunks and encrypted secrets with known keys: only genuine ones open.

use crate::input::Input;
use std::sync::{Arc, LazyLock};
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity, carries, material_len, symmetric_keys};
use taktwerk_crypto::{
    CertificatePurpose, CertificateValidator, ChunkNonce, CryptoError, EphemeralKey, MessageSecurityMode,
    OpenSecret, Provider, Role, SealSecret, Secret, SecurityPolicy,
};
use taktwerk_types::UtcTime;

const HEADERS_LEN: usize = 16;
const SECRET_LEN_MAX: usize = 1024;
const NOW: UtcTime = UtcTime::from_ticks(133_000_000_000_000_000);

fn policies() -> Vec<SecurityPolicy> {
    SecurityPolicy::ALL.iter().copied().filter(|policy| carries(*policy)).collect()
}

/// A chunk of arbitrary bytes under keys that the fuzzer cannot use, and a genuine one with changes.
pub fn chunk(data: &[u8]) {
    let mut input = Input::new(data);
    let policies = policies();
    let policy = policies[input.below(policies.len())];
    let mode = if input.flag() { MessageSecurityMode::SignAndEncrypt } else { MessageSecurityMode::Sign };
    let len = material_len(policy);
    let keys = |role, client, server| {
        symmetric_keys(policy, mode, role, &vec![client; len], &vec![server; len])
            .expect("the lengths are right")
    };
    let (mut client, mut server) = (keys(Role::Client, 1, 2), keys(Role::Server, 1, 2));
    let layout = client.layout();
    let nonce = ChunkNonce { token_id: input.u32(), last_sequence_number: input.u32() };
    if input.flag() {
        let mut bytes = input.rest().to_vec();
        let headers_len = HEADERS_LEN.min(bytes.len());
        // Without the keys, such bytes cannot be created. Nothing is sealed with these keys, because the fuzzer would
        // see the sealed bytes in the comparison below and replay them.
        let mut stranger = keys(Role::Server, 3, 4);
        assert!(stranger.open(&mut bytes, headers_len, nonce).is_err());
        return;
    }
    let body_len = usize::from(input.u16()) % 9000;
    let secured = (body_len + layout.signature_len).next_multiple_of(layout.block_len);
    let mut sealed = vec![0x5a; HEADERS_LEN + secured];
    client.seal(&mut sealed, HEADERS_LEN, nonce).expect("the chunk has its layout");
    let genuine = sealed.clone();
    change(&mut sealed, &mut input);
    let other = ChunkNonce { token_id: nonce.token_id ^ input.u32(), ..nonce };
    let headers_len = HEADERS_LEN.min(sealed.len());
    let same = sealed == genuine && (!policy.info().is_aead() || other == nonce);
    match server.open(&mut sealed, headers_len, other) {
        Ok(end) => {
            assert!(same, "a changed chunk was accepted");
            assert_eq!(end, genuine.len() - layout.signature_len);
        }
        Err(_) => assert!(!same, "a genuine chunk was refused"),
    }
}

/// Applies some changes at positions chosen by the fuzzer.
fn change(bytes: &mut Vec<u8>, input: &mut Input<'_>) {
    for _ in 0..input.below(4) {
        let at = usize::from(input.u16());
        let change = input.byte();
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= change;
        }
    }
    if input.flag() {
        bytes.truncate(usize::from(input.u16()));
    }
}

#[derive(Debug)]
struct Nobody;

impl CertificateValidator for Nobody {
    fn validate(&self, _: &[u8], _: &CertificatePurpose) -> Result<(), CryptoError> {
        Err(CryptoError::certificate(
            taktwerk_types::StatusCode::BAD_CERTIFICATE_UNTRUSTED,
            "no certificate is trusted",
        ))
    }
}

struct Party {
    provider: AwsLcProvider,
    /// An ephemeral key for each policy that needs one.
    keys: Vec<Option<Arc<dyn EphemeralKey>>>,
}

static PARTY: LazyLock<Party> = LazyLock::new(|| {
    let identity = |certificate: &[u8], key: &[u8]| {
        Identity::new(certificate.to_vec(), key).expect("the keys in fuzz/keys belong together")
    };
    let provider = AwsLcProvider::new(Arc::new(Nobody))
        .with_identity(identity(
            include_bytes!("../../keys/rsa.certificate.der"),
            include_bytes!("../../keys/rsa.key.der"),
        ))
        .with_identity(identity(
            include_bytes!("../../keys/p256.certificate.der"),
            include_bytes!("../../keys/p256.key.der"),
        ))
        .with_identity(identity(
            include_bytes!("../../keys/ed25519.certificate.der"),
            include_bytes!("../../keys/ed25519.key.der"),
        ));
    let keys = policies().into_iter().map(|policy| provider.ephemeral_key(policy).ok()).collect();
    Party { provider, keys }
});

/// A secret of arbitrary bytes, and a genuine one with changes.
pub fn secret(data: &[u8]) {
    let mut input = Input::new(data);
    let policies = policies();
    let index = input.below(policies.len());
    let (policy, key) = (policies[index], &PARTY.keys[index]);
    let provider = &PARTY.provider;
    let Some(own) = provider.own_certificate(policy) else { return };
    let job = |algorithm: &str, data: Vec<u8>| OpenSecret {
        policy,
        algorithm: algorithm.into(),
        data,
        server_nonce: vec![7; 32],
        now: NOW,
        key: key.clone(),
        sender_certificate: Some(own.into()),
        secret_len_max: SECRET_LEN_MAX,
    };
    let algorithm = policy.info().asymmetric_encryption.uri();
    if input.flag() {
        let algorithm = if input.flag() { "" } else { algorithm };
        assert!(job(algorithm, input.rest().to_vec()).run(provider).is_err());
        return;
    }
    let secret = vec![b'x'; usize::from(input.u16()) % (SECRET_LEN_MAX + 2)];
    let sealed = SealSecret {
        policy,
        receiver_certificate: own.into(),
        server_nonce: vec![7; 32],
        secret: Secret::new(secret.clone()),
        signing_time: NOW,
        receiver_key: key.as_ref().map(|key| key.public_key().to_vec()),
    }
    .run(provider)
    .expect("our own certificate can be encrypted for");
    let mut bytes = sealed.bytes.clone();
    change(&mut bytes, &mut input);
    let genuine = bytes == sealed.bytes && secret.len() <= SECRET_LEN_MAX;
    match job(sealed.algorithm, bytes).run(provider) {
        Ok(opened) => {
            assert!(genuine, "a changed secret was accepted");
            assert_eq!(opened.expose(), secret);
        }
        Err(error) => {
            assert_eq!(error, CryptoError::Decryption, "all faults give the same error");
            assert!(!genuine, "a genuine secret was refused");
        }
    }
}
