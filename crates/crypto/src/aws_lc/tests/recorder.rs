//! A provider that records its operations with their lengths: everything that timing could reveal.

use crate::aws_lc::AwsLcProvider;
use crate::{
    CertificatePurpose, CryptoError, EphemeralKey, KeyAgreement, MessageSecurityMode, PayloadKeys, PeerKey,
    Provider, Role, SecurityPolicy,
};
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// An operation with its lengths in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation(pub(super) &'static str, pub(super) usize);

#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<Operation>>>);

impl Log {
    fn note(&self, what: &'static str, len: usize) {
        self.0.lock().unwrap().push(Operation(what, len));
    }
}

/// AWS-LC with a record of its operations.
#[derive(Debug)]
pub(super) struct Recorder {
    inner: AwsLcProvider,
    log: Log,
}

impl Recorder {
    pub(super) fn new(inner: AwsLcProvider) -> Self {
        Self { inner, log: Log::default() }
    }

    /// The operations since the last call.
    pub(super) fn take(&self) -> Vec<Operation> {
        core::mem::take(&mut *self.log.0.lock().unwrap())
    }
}

fn total(data: &[&[u8]]) -> usize {
    data.iter().map(|part| part.len()).sum()
}

struct RecordedKey {
    inner: Box<dyn PeerKey>,
    log: Log,
}

impl PeerKey for RecordedKey {
    fn signature_len(&self) -> usize {
        self.inner.signature_len()
    }

    fn verify(&self, data: &[&[u8]], signature: &[u8]) -> Result<(), CryptoError> {
        self.log.note("verify data", total(data));
        self.log.note("verify signature", signature.len());
        self.inner.verify(data, signature)
    }

    fn plain_block_len(&self) -> usize {
        self.inner.plain_block_len()
    }

    fn cipher_block_len(&self) -> usize {
        self.inner.cipher_block_len()
    }

    fn encrypt(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.log.note("encrypt", plain.len());
        self.inner.encrypt(plain, out)
    }
}

#[derive(Debug)]
struct RecordedEphemeral {
    inner: Arc<dyn EphemeralKey>,
    log: Log,
}

impl EphemeralKey for RecordedEphemeral {
    fn public_key(&self) -> &[u8] {
        self.inner.public_key()
    }

    fn derive(
        &self,
        peer_public_key: &[u8],
        salt: &[u8],
        len: usize,
    ) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        self.log.note("derive", peer_public_key.len() + salt.len() + len);
        self.inner.derive(peer_public_key, salt, len)
    }
}

impl Provider for Recorder {
    fn supports(&self, policy: SecurityPolicy) -> bool {
        self.inner.supports(policy)
    }

    fn own_certificate(&self, policy: SecurityPolicy) -> Option<&[u8]> {
        self.inner.own_certificate(policy)
    }

    fn thumbprint(&self, certificate: &[u8]) -> [u8; 20] {
        self.log.note("thumbprint", certificate.len());
        self.inner.thumbprint(certificate)
    }

    fn application_uri(&self, certificate: &[u8]) -> Option<String> {
        self.inner.application_uri(certificate)
    }

    fn validate(&self, certificate: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError> {
        self.log.note("validate", certificate.len());
        self.inner.validate(certificate, purpose)
    }

    fn peer_key(&self, policy: SecurityPolicy, certificate: &[u8]) -> Result<Box<dyn PeerKey>, CryptoError> {
        self.log.note("peer key", certificate.len());
        let inner = self.inner.peer_key(policy, certificate)?;
        Ok(Box::new(RecordedKey { inner, log: self.log.clone() }))
    }

    fn signature_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError> {
        self.inner.signature_len(policy)
    }

    fn sign(&self, policy: SecurityPolicy, data: &[&[u8]], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.log.note("sign", total(data));
        self.inner.sign(policy, data, out)
    }

    fn cipher_block_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError> {
        self.inner.cipher_block_len(policy)
    }

    fn decrypt(&self, policy: SecurityPolicy, cipher: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.log.note("decrypt", cipher.len());
        self.inner.decrypt(policy, cipher, out)
    }

    fn agree(
        &self,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        role: Role,
    ) -> Result<Box<dyn KeyAgreement>, CryptoError> {
        self.log.note("agree", 0);
        self.inner.agree(policy, mode, role)
    }

    fn digest(&self, policy: SecurityPolicy, data: &[&[u8]]) -> Result<Vec<u8>, CryptoError> {
        self.log.note("digest", total(data));
        self.inner.digest(policy, data)
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), CryptoError> {
        self.log.note("random", bytes.len());
        self.inner.random(bytes)
    }

    fn ephemeral_key(&self, policy: SecurityPolicy) -> Result<Arc<dyn EphemeralKey>, CryptoError> {
        let inner = self.inner.ephemeral_key(policy)?;
        Ok(Arc::new(RecordedEphemeral { inner, log: self.log.clone() }))
    }

    fn encrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        self.log.note("encrypt payload", payload.len());
        self.inner.encrypt_payload(policy, keys, headers, payload)
    }

    fn decrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        self.log.note("decrypt payload", payload.len());
        self.inner.decrypt_payload(policy, keys, headers, payload)
    }

    fn mac(
        &self,
        policy: SecurityPolicy,
        key: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        self.log.note("mac", key.len() + data.len());
        self.inner.mac(policy, key, data, out)
    }
}
