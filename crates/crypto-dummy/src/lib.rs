//! Toy cryptography with realistic sizes: signatures of the right length, padding, block sizes, key agreement.
//!
//! **It protects nothing.** Tests, fuzzers and the simulator use it to reach every code path behind a secured channel,
//! deterministically and fast. Signatures are checksums that anyone can compute; "encryption" is XOR.

pub mod pubsub;

pub use pubsub::DummyPubSubProvider;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use taktwerk_crypto::policy::{AsymmetricEncryption, KeyExchange};
use taktwerk_crypto::{
    CertificatePurpose, ChunkLayout, ChunkNonce, CryptoError, Entropy, EphemeralKey, KeyAgreement,
    MessageSecurityMode, PayloadKeys, PeerKey, Provider, Role, SecurityPolicy, SeededEntropy, SymmetricKeys,
};
use taktwerk_types::{StatusCode, UtcTime};
use zeroize::Zeroizing;

/// Prefix of a dummy certificate. The key size in bits (UInt16) and a name follow.
const CERTIFICATE_MAGIC: &[u8; 6] = b"DUMMY:";
/// Overhead of OAEP per block.
const OAEP_OVERHEAD: usize = 42;

/// A provider that accepts every policy and every [`dummy certificate`](certificate), except those named "untrusted".
#[derive(Debug, Clone)]
pub struct DummyProvider {
    certificate: Vec<u8>,
    key_bits: u16,
    seed: u64,
    /// Number of nonces made so far, so that all are different.
    nonces: Arc<AtomicU64>,
    /// Shared by clones, like a trust list.
    distrusts: Arc<AtomicBool>,
    distrusts_users: Arc<AtomicBool>,
    seals_nothing: Arc<AtomicBool>,
}

/// A dummy certificate for a name and a key size in bits.
#[must_use]
pub fn certificate(name: &str, key_bits: u16) -> Vec<u8> {
    let mut bytes = CERTIFICATE_MAGIC.to_vec();
    bytes.extend_from_slice(&key_bits.to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

fn key_bits_of(certificate: &[u8]) -> Result<u16, CryptoError> {
    let bits = certificate.strip_prefix(CERTIFICATE_MAGIC).and_then(|rest| rest.first_chunk::<2>());
    match bits.map(|bits| u16::from_le_bytes(*bits)) {
        Some(bits @ (2048 | 3072 | 4096)) => Ok(bits),
        _ => Err(CryptoError::certificate(StatusCode::BAD_CERTIFICATE_INVALID, "not a dummy certificate")),
    }
}

impl DummyProvider {
    /// A provider whose own certificate has this name and key size (2048, 3072 or 4096 bits).
    #[must_use]
    pub fn new(name: &str, key_bits: u16) -> Self {
        let certificate = certificate(name, key_bits);
        let seed = checksum(&[&certificate], 0);
        let (distrusts, distrusts_users) = (Arc::default(), Arc::default());
        let (nonces, seals_nothing) = (Arc::default(), Arc::default());
        Self { certificate, key_bits, seed, nonces, distrusts, distrusts_users, seals_nothing }
    }
}

impl DummyProvider {
    /// The same with a certificate of at least this many bytes: real ones have about 1 000.
    #[must_use]
    pub fn with_certificate_len(mut self, len: usize) -> Self {
        self.certificate.resize(len.max(self.certificate.len()), 0);
        self.seed = checksum(&[&self.certificate], 0);
        self
    }

    /// Refuses every certificate from now on, as if the trust list had been emptied.
    pub fn distrust_everybody(&self) {
        self.distrusts.store(true, Ordering::Relaxed);
    }

    /// Fails to secure any chunk from now on, including with keys in use, as if the library were out of memory.
    pub fn seal_nothing(&self) {
        self.seals_nothing.store(true, Ordering::Relaxed);
    }

    /// Refuses all user certificates from now on, but no application certificates.
    pub fn distrust_users(&self) {
        self.distrusts_users.store(true, Ordering::Relaxed);
    }
}

/// FNV-1a over the concatenation of the parts.
fn checksum(parts: &[&[u8]], seed: u64) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    sum
}

/// The same for one part, eight bytes at a time: a simulation calls it twice per chunk.
fn chunk_checksum(bytes: &[u8], seed: u64) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut sum = 0xcbf2_9ce4_8422_2325 ^ seed;
    for word in words {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0100_0000_01b3);
        sum ^= sum >> 32;
    }
    checksum(&[rest], sum)
}

fn repeat(sum: u64, len: usize) -> impl Iterator<Item = u8> {
    sum.to_le_bytes().into_iter().cycle().take(len)
}

/// ECC policies sign with r and s, the others with a number as long as the key.
fn signature_len(policy: SecurityPolicy, key_bits: u16) -> usize {
    let info = policy.info();
    if info.is_ecc() { usize::from(info.key_bits_max).div_ceil(8) * 2 } else { usize::from(key_bits) / 8 }
}

fn cipher_block_len(policy: SecurityPolicy, key_bits: u16) -> usize {
    match policy.info().asymmetric_encryption {
        AsymmetricEncryption::None => 0,
        _ => usize::from(key_bits) / 8,
    }
}

struct DummyPeerKey {
    seed: u64,
    signature_len: usize,
    cipher_block_len: usize,
}

impl PeerKey for DummyPeerKey {
    fn signature_len(&self) -> usize {
        self.signature_len
    }

    fn verify(&self, data: &[&[u8]], signature: &[u8]) -> Result<(), CryptoError> {
        let right = repeat(checksum(data, self.seed), self.signature_len).eq(signature.iter().copied());
        if right { Ok(()) } else { Err(CryptoError::Signature) }
    }

    fn plain_block_len(&self) -> usize {
        self.cipher_block_len.saturating_sub(OAEP_OVERHEAD)
    }

    fn cipher_block_len(&self) -> usize {
        self.cipher_block_len
    }

    fn encrypt(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        if self.cipher_block_len == 0 {
            return Err(CryptoError::Internal);
        }
        for block in plain.chunks(self.plain_block_len()) {
            let [low, high, ..] = block.len().to_le_bytes();
            out.extend_from_slice(&[low, high]);
            out.extend_from_slice(&[0xee; OAEP_OVERHEAD - 2]);
            out.extend(block.iter().map(|byte| byte ^ 0xa5));
            out.resize(out.len() + self.plain_block_len() - block.len(), 0);
        }
        Ok(())
    }
}

impl Provider for DummyProvider {
    fn supports(&self, _: SecurityPolicy) -> bool {
        true
    }

    fn own_certificate(&self, _: SecurityPolicy) -> Option<&[u8]> {
        Some(&self.certificate)
    }

    fn thumbprint(&self, certificate: &[u8]) -> [u8; 20] {
        let mut thumbprint = [0; 20];
        let sum = checksum(&[certificate], 1);
        thumbprint.iter_mut().zip(repeat(sum, 20)).for_each(|(to, from)| *to = from);
        thumbprint
    }

    /// `urn:dummy:` and the name.
    fn application_uri(&self, certificate: &[u8]) -> Option<String> {
        key_bits_of(certificate).ok()?;
        let name = certificate.get(CERTIFICATE_MAGIC.len() + 2..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        Some(format!("urn:dummy:{}", core::str::from_utf8(name).ok()?))
    }

    /// A name can start with "until TICKS ".
    fn valid_until(&self, certificate: &[u8]) -> Option<UtcTime> {
        let name = core::str::from_utf8(certificate.get(CERTIFICATE_MAGIC.len() + 2..)?).ok()?;
        let (ticks, _) = name.strip_prefix("until ")?.split_once(' ')?;
        ticks.parse().ok().map(UtcTime::from_ticks)
    }

    fn validate(&self, certificate: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError> {
        key_bits_of(certificate)?;
        let distrusts = match purpose {
            CertificatePurpose::User { .. } => self.distrusts_users.load(Ordering::Relaxed),
            _ => false,
        };
        if distrusts || certificate.ends_with(b"untrusted") || self.distrusts.load(Ordering::Relaxed) {
            return Err(CryptoError::certificate(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "its name says so"));
        }
        Ok(())
    }

    fn peer_key(&self, policy: SecurityPolicy, certificate: &[u8]) -> Result<Box<dyn PeerKey>, CryptoError> {
        let bits = key_bits_of(certificate)?;
        Ok(Box::new(DummyPeerKey {
            seed: checksum(&[certificate], 0),
            signature_len: signature_len(policy, bits),
            cipher_block_len: cipher_block_len(policy, bits),
        }))
    }

    fn signature_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError> {
        Ok(signature_len(policy, self.key_bits))
    }

    fn sign(&self, policy: SecurityPolicy, data: &[&[u8]], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        out.extend(repeat(checksum(data, self.seed), signature_len(policy, self.key_bits)));
        Ok(())
    }

    fn cipher_block_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError> {
        Ok(cipher_block_len(policy, self.key_bits))
    }

    fn decrypt(&self, policy: SecurityPolicy, cipher: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError> {
        let block_len = cipher_block_len(policy, self.key_bits);
        if block_len == 0 || !cipher.len().is_multiple_of(block_len) {
            return Err(CryptoError::Decryption);
        }
        for block in cipher.chunks(block_len) {
            let (seed, data) = block.split_at(OAEP_OVERHEAD);
            let [low, high, rest @ ..] = seed else { return Err(CryptoError::Decryption) };
            let len = usize::from(u16::from_le_bytes([*low, *high]));
            let data = data.get(..len).filter(|_| rest.iter().all(|byte| *byte == 0xee));
            out.extend(data.ok_or(CryptoError::Decryption)?.iter().map(|byte| byte ^ 0xa5));
        }
        Ok(())
    }

    fn agree(
        &self,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        role: Role,
    ) -> Result<Box<dyn KeyAgreement>, CryptoError> {
        let count = self.nonces.fetch_add(1, Ordering::Relaxed);
        let nonce = repeat(self.seed.wrapping_add(count), policy.info().nonce_len).collect();
        let seals_nothing = Arc::clone(&self.seals_nothing);
        Ok(Box::new(DummyAgreement { policy, mode, role, nonce, seals_nothing }))
    }

    fn digest(&self, policy: SecurityPolicy, data: &[&[u8]]) -> Result<Vec<u8>, CryptoError> {
        let len = if policy.info().key_bits_max == 384 { 48 } else { 32 };
        Ok(repeat(checksum(data, 7), len).collect())
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), CryptoError> {
        let count = self.nonces.fetch_add(1, Ordering::Relaxed);
        SeededEntropy::new(self.seed.wrapping_add(count)).fill(bytes);
        Ok(())
    }

    fn ephemeral_key(&self, policy: SecurityPolicy) -> Result<Arc<dyn EphemeralKey>, CryptoError> {
        if matches!(policy.info().key_exchange, KeyExchange::None | KeyExchange::RsaNonces) {
            return Err(CryptoError::PolicyUnsupported);
        }
        let mut public_key = vec![0; policy.info().nonce_len];
        self.random(&mut public_key)?;
        Ok(Arc::new(DummyEphemeral { public_key }))
    }

    fn encrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        let info = policy.info();
        let tag = checksum(&[headers, payload], 3);
        if !payload.len().is_multiple_of(info.block_len()) {
            return Err(CryptoError::Malformed);
        }
        crypt_payload(keys, payload);
        if info.is_aead() {
            payload.extend(repeat(tag, info.signature_len));
        }
        Ok(())
    }

    fn decrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        let info = policy.info();
        let tag_len = if info.is_aead() { info.signature_len } else { 0 };
        let len = payload.len().checked_sub(tag_len).ok_or(CryptoError::Decryption)?;
        let tag = payload.split_off(len);
        crypt_payload(keys, payload);
        let right = repeat(checksum(&[headers, payload], 3), tag_len).eq(tag);
        if right && len.is_multiple_of(info.block_len()) { Ok(()) } else { Err(CryptoError::Decryption) }
    }

    fn mac(
        &self,
        policy: SecurityPolicy,
        key: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CryptoError> {
        out.extend(repeat(checksum(&[key, data], 4), policy.info().signature_len));
        Ok(())
    }
}

fn crypt_payload(keys: PayloadKeys<'_>, payload: &mut [u8]) {
    let stream = checksum(&[keys.encrypting_key, keys.iv], 5).to_le_bytes();
    payload.iter_mut().zip(stream.into_iter().cycle()).for_each(|(byte, key)| *byte ^= key);
}

#[derive(Debug)]
struct DummyEphemeral {
    public_key: Vec<u8>,
}

impl EphemeralKey for DummyEphemeral {
    fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    fn derive(
        &self,
        peer_public_key: &[u8],
        salt: &[u8],
        len: usize,
    ) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        if peer_public_key.len() != self.public_key.len() {
            return Err(CryptoError::KeyAgreement);
        }
        // Both sides must get the same result, so the order of the halves must not matter.
        let (own, peer) = (checksum(&[&self.public_key], 6), checksum(&[peer_public_key], 6));
        Ok(Zeroizing::new(repeat(checksum(&[salt], own ^ peer), len).collect()))
    }
}

#[derive(Debug)]
struct DummyAgreement {
    policy: SecurityPolicy,
    mode: MessageSecurityMode,
    role: Role,
    nonce: Vec<u8>,
    seals_nothing: Arc<AtomicBool>,
}

impl KeyAgreement for DummyAgreement {
    fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    fn derive(
        self: Box<Self>,
        peer_nonce: &[u8],
        previous: Option<&[u8]>,
    ) -> Result<Box<dyn SymmetricKeys>, CryptoError> {
        if peer_nonce.len() != self.policy.info().nonce_len {
            return Err(CryptoError::Nonce);
        }
        let (client, server) = match self.role {
            Role::Client => (self.nonce.as_slice(), peer_nonce),
            Role::Server => (peer_nonce, self.nonce.as_slice()),
        };
        let chain = checksum(&[client, server, previous.unwrap_or_default()], 0);
        let (own, peer) = match self.role {
            Role::Client => (chain ^ 1, chain ^ 2),
            Role::Server => (chain ^ 2, chain ^ 1),
        };
        let chained = self.policy.info().enhancements;
        Ok(Box::new(DummyKeys {
            layout: ChunkLayout::of(self.policy, self.mode),
            aead: self.policy.info().is_aead(),
            encrypts: self.mode == MessageSecurityMode::SignAndEncrypt,
            own,
            peer,
            chain: chained.then_some(chain),
            seals_nothing: self.seals_nothing,
        }))
    }
}

#[derive(Debug)]
struct DummyKeys {
    layout: ChunkLayout,
    aead: bool,
    encrypts: bool,
    own: u64,
    peer: u64,
    chain: Option<u64>,
    seals_nothing: Arc<AtomicBool>,
}

impl DummyKeys {
    /// Only authenticated ciphers depend on the nonce.
    fn keyed(&self, key: u64, nonce: ChunkNonce) -> u64 {
        if !self.aead {
            return key;
        }
        key ^ u64::from(nonce.token_id) << 32 ^ u64::from(nonce.last_sequence_number)
    }

    fn crypt(&self, secured: &mut [u8], key: u64) {
        if self.encrypts {
            let (words, rest) = secured.as_chunks_mut();
            for word in words {
                *word = (u64::from_le_bytes(*word) ^ key).to_le_bytes();
            }
            rest.iter_mut().zip(key.to_le_bytes()).for_each(|(byte, key)| *byte ^= key);
        }
    }
}

impl SymmetricKeys for DummyKeys {
    fn layout(&self) -> ChunkLayout {
        self.layout
    }

    fn seal(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce) -> Result<(), CryptoError> {
        if self.seals_nothing.load(Ordering::Relaxed) {
            return Err(CryptoError::Internal);
        }
        let key = self.keyed(self.own, nonce);
        let signed_len = chunk.len().checked_sub(self.layout.signature_len).ok_or(CryptoError::Malformed)?;
        let (signed, signature) = chunk.split_at_mut(signed_len);
        let sum = chunk_checksum(signed, key);
        signature.iter_mut().zip(repeat(sum, usize::MAX)).for_each(|(to, from)| *to = from);
        // An authenticated cipher leaves its tag readable; the others encrypt the signature, too.
        let end = if self.aead { signed_len } else { chunk.len() };
        self.crypt(chunk.get_mut(headers_len..end).ok_or(CryptoError::Malformed)?, key);
        Ok(())
    }

    fn open(
        &mut self,
        chunk: &mut [u8],
        headers_len: usize,
        nonce: ChunkNonce,
    ) -> Result<usize, CryptoError> {
        let key = self.keyed(self.peer, nonce);
        let signed_len = chunk.len().checked_sub(self.layout.signature_len).ok_or(CryptoError::Malformed)?;
        let end = if self.aead { signed_len } else { chunk.len() };
        let secured = chunk.get_mut(headers_len..end).ok_or(CryptoError::Malformed)?;
        if !secured.len().is_multiple_of(self.layout.block_len) {
            return Err(CryptoError::Decryption);
        }
        self.crypt(secured, key);
        let (signed, signature) = chunk.split_at(signed_len);
        if signed_len < headers_len
            || !repeat(chunk_checksum(signed, key), signature.len()).eq(signature.iter().copied())
        {
            return Err(CryptoError::Signature);
        }
        Ok(signed_len)
    }

    fn chain_secret(&self) -> Option<Vec<u8>> {
        self.chain.map(|chain| chain.to_le_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_crypto::{Agreed, Agreement, Job, JobOutput, OpenChunk, SealChunk};

    /// A chunk sealed by one provider opens at the other, for every policy and key size, and the keys agree.
    #[test]
    fn jobs_round_trip_for_every_policy() {
        for policy in SecurityPolicy::ALL.iter().copied().filter(|policy| *policy != SecurityPolicy::None) {
            for (bits, body_len) in [(2048, 0), (2048, 172), (3072, 300), (4096, 1000), (4096, 1)] {
                round_trip(policy, bits, body_len);
            }
        }
    }

    fn round_trip(policy: SecurityPolicy, bits: u16, body_len: usize) {
        let client = DummyProvider::new("client", bits);
        let server = DummyProvider::new("server", bits);
        let headers_len = 20 + client.certificate.len();
        let mut chunk = b"OPNF....".to_vec();
        chunk.extend_from_slice(&[7; 12]);
        chunk.extend_from_slice(&client.certificate);
        let nonce_at = chunk.len() + 8;
        chunk.resize(nonce_at + policy.info().nonce_len + body_len, 3);
        let plain_len = chunk.len();
        let sealed = Job::SealChunk(SealChunk {
            policy,
            mode: MessageSecurityMode::SignAndEncrypt,
            role: Role::Client,
            chunk,
            headers_len,
            nonce_at,
            receiver_certificate: server.certificate.clone().into(),
            agreement: Agreement::Start,
            binding: vec![],
        })
        .run(&client)
        .unwrap();
        let JobOutput::Sealed { chunk, agreed: Agreed::Half(half), .. } = sealed else {
            panic!("{sealed:?}")
        };
        assert_eq!(chunk[4..8], u32::try_from(chunk.len()).unwrap().to_le_bytes());
        let open = |chunk: Vec<u8>| {
            Job::OpenChunk(OpenChunk {
                policy,
                chunk,
                headers_len,
                sender_certificate: 20..headers_len,
                receiver_thumbprint: server.thumbprint(&server.certificate),
                purpose: CertificatePurpose::Client { address: None },
                binding: vec![],
            })
            .run(&server)
        };
        let mut forged = chunk.clone();
        *forged.last_mut().unwrap() ^= 1;
        assert!(open(forged).is_err());
        let JobOutput::Opened { chunk: plain, body_end, .. } = open(chunk).unwrap() else { panic!() };
        assert_eq!(body_end, plain_len);
        let client_nonce = &plain[nonce_at..nonce_at + policy.info().nonce_len];
        let other = server.agree(policy, MessageSecurityMode::SignAndEncrypt, Role::Server).unwrap();
        let server_nonce = other.nonce().to_vec();
        let mut theirs = other.derive(client_nonce, None).unwrap();
        let mut ours = half.derive(&server_nonce, None).unwrap();
        let nonce = ChunkNonce { token_id: 1, last_sequence_number: 5 };
        let signature_len = ours.layout().signature_len;
        let body_end = 16 + (48 + signature_len).next_multiple_of(16) - signature_len;
        let mut chunk = vec![1; body_end + signature_len];
        ours.seal(&mut chunk, 16, nonce).unwrap();
        assert_eq!(theirs.open(&mut chunk, 16, nonce), Ok(body_end));
        assert!(chunk[..body_end].iter().all(|byte| *byte == 1));
    }
}
