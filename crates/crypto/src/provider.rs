//! The interface that a cryptographic library implements for secure channels.
//!
//! It separates two kinds of work. [`SymmetricKeys`] protects chunks: a context keyed once per security token, which
//! works in place on the connection's buffers. This is the hot path. Operations with a certificate's key are slow and
//! are described as a [`crate::Job`], which calls the primitives of [`Provider`] on any thread.

use crate::certificate::Certificate;
use crate::{CryptoError, MessageSecurityMode, SecurityPolicy, der};
use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;
use taktwerk_types::UtcTime;
use zeroize::Zeroizing;

/// The role on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The side that opened the channel.
    Client,
    /// The side that accepted it.
    Server,
}

/// Layout of a protected chunk after its headers (Part 6 §6.7.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLayout {
    /// Length of the signature or authentication tag at the end, in bytes.
    pub signature_len: usize,
    /// The cipher's block size in bytes. 1 means that there is no padding and no PaddingSize byte.
    pub block_len: usize,
}

impl ChunkLayout {
    /// The layout of a policy's chunks in a mode.
    #[must_use]
    pub fn of(policy: SecurityPolicy, mode: MessageSecurityMode) -> Self {
        let info = policy.info();
        match mode {
            MessageSecurityMode::None => Self { signature_len: 0, block_len: 1 },
            MessageSecurityMode::Sign => Self { signature_len: info.signature_len, block_len: 1 },
            MessageSecurityMode::SignAndEncrypt => {
                Self { signature_len: info.signature_len, block_len: info.block_len() }
            }
        }
    }
}

/// Makes a chunk's initialization vector unique with authenticated ciphers (Part 6 §6.8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkNonce {
    /// The chunk's TokenId.
    pub token_id: u32,
    /// The SequenceNumber of the previous chunk in the same direction; 0 before the first.
    pub last_sequence_number: u32,
}

/// The keys of one direction as bytes.
pub struct DisclosedKeys {
    /// For signatures; empty with authenticated ciphers.
    pub signing_key: Zeroizing<Vec<u8>>,
    /// For encryption.
    pub encrypting_key: Zeroizing<Vec<u8>>,
    /// The initialization vector.
    pub iv: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for DisclosedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DisclosedKeys(secret)")
    }
}

/// Receives the keys of every security token, so that recorded traffic can be decrypted for debugging. The keys reveal
/// everything that the channel protects.
pub trait KeyLog: Send + Sync + fmt::Debug {
    /// A channel has a new token.
    fn token(&self, token: &TokenKeys<'_>);
}

/// The keys of a security token, for a [`KeyLog`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TokenKeys<'a> {
    /// The SecureChannelId.
    pub channel_id: u32,
    /// The TokenId.
    pub token_id: u32,
    /// The policy.
    pub policy: SecurityPolicy,
    /// The mode.
    pub mode: MessageSecurityMode,
    /// The keys for the client's messages.
    pub client: &'a DisclosedKeys,
    /// The keys for the server's messages.
    pub server: &'a DisclosedKeys,
}

impl<'a> TokenKeys<'a> {
    /// The keys that a provider has disclosed for a token: the client's and the server's.
    #[must_use]
    pub fn new(
        (channel_id, token_id): (u32, u32),
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        (client, server): (&'a DisclosedKeys, &'a DisclosedKeys),
    ) -> Self {
        Self { channel_id, token_id, policy, mode, client, server }
    }
}

/// The keys of one security token, for both directions. The contexts are created once per token.
pub trait SymmetricKeys: Send + fmt::Debug {
    /// The chunk layout.
    fn layout(&self) -> ChunkLayout;

    /// Signs and, depending on the mode, encrypts an outgoing chunk in place.
    ///
    /// `chunk` is the whole chunk with its final size in the header. Its last [`ChunkLayout::signature_len`] bytes are
    /// reserved for the signature, and the padding is before them. The first `headers_len` bytes (message and security
    /// header) stay readable; encryption starts after them, with the sequence header.
    ///
    /// # Errors
    /// Only if the library fails.
    fn seal(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce) -> Result<(), CryptoError>;

    /// The number of chunks into which a long message is best split. A cipher in CBC mode processes one block at a
    /// time, although the processor could do several. Several chunks sealed in parallel take a fraction of the time of
    /// one. 1 means that splitting gains nothing.
    fn lanes(&self) -> usize {
        1
    }

    /// Seals the chunks of a message like [`Self::seal`]. Each has `chunk_len` bytes, the last one possibly fewer.
    /// `nonces` gives the nonce of each.
    ///
    /// # Errors
    /// As [`Self::seal`].
    fn seal_message(
        &mut self,
        message: &mut [u8],
        chunk_len: usize,
        headers_len: usize,
        nonces: &mut dyn Iterator<Item = ChunkNonce>,
    ) -> Result<(), CryptoError> {
        for chunk in message.chunks_mut(chunk_len.max(1)) {
            let nonce = nonces.next().ok_or(CryptoError::Internal)?;
            self.seal(chunk, headers_len, nonce)?;
        }
        Ok(())
    }

    /// Decrypts an incoming chunk in place and verifies its signature in constant time. Returns the end of body and
    /// padding (the offset of the signature). Decrypted data must not be used if this fails.
    ///
    /// # Errors
    /// [`CryptoError::Signature`], [`CryptoError::Decryption`] or [`CryptoError::Malformed`].
    fn open(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce)
    -> Result<usize, CryptoError>;

    /// The secret that the next token's keys are chained to (policies with SecureChannelEnhancements, Part 6 §6.8.1).
    fn chain_secret(&self) -> Option<Vec<u8>> {
        None
    }

    /// The key bytes of client and server, if the provider discloses them.
    fn disclosed(&self) -> Option<(&DisclosedKeys, &DisclosedKeys)> {
        None
    }
}

/// Our half of a key agreement, kept between request and response.
pub trait KeyAgreement: Send + fmt::Debug {
    /// The bytes to send: a random nonce, or an ephemeral public key. Their length is the policy's nonce length.
    fn nonce(&self) -> &[u8];

    /// Derives a token's keys from both halves (Part 6 §6.7.6, §6.8.1).
    ///
    /// # Errors
    /// [`CryptoError::Nonce`] or [`CryptoError::KeyAgreement`] if the peer's half cannot be used.
    fn derive(
        self: Box<Self>,
        peer_nonce: &[u8],
        previous: Option<&[u8]>,
    ) -> Result<Box<dyn SymmetricKeys>, CryptoError>;
}

/// An ephemeral key pair for secrets (Part 6 §6.8.2, §6.8.3). A server sends the public half to the client, which
/// encrypts a password for it. Use it for one agreement and drop it: secrets encrypted for it then stay confidential.
pub trait EphemeralKey: Send + Sync + fmt::Debug {
    /// The public half, encoded like the nonces of the policy's channels (Part 6 §6.8.1).
    fn public_key(&self) -> &[u8];

    /// Derives `len` bytes of key material from both halves: the policy's HKDF over the shared secret, with `salt` as
    /// salt and info (Part 6 §6.8.1, steps 2 and 3).
    ///
    /// # Errors
    /// [`CryptoError::KeyAgreement`] if the peer's half is not a usable public key.
    fn derive(
        &self,
        peer_public_key: &[u8],
        salt: &[u8],
        len: usize,
    ) -> Result<Zeroizing<Vec<u8>>, CryptoError>;
}

/// A peer's public key, taken from its certificate.
pub trait PeerKey {
    /// Length of a signature by this key, in bytes.
    fn signature_len(&self) -> usize;

    /// Verifies a signature over the concatenation of `data`.
    ///
    /// # Errors
    /// [`CryptoError::Signature`].
    fn verify(&self, data: &[&[u8]], signature: &[u8]) -> Result<(), CryptoError>;

    /// Maximum plain bytes per block; 0 if the policy does not encrypt with certificate keys.
    fn plain_block_len(&self) -> usize;

    /// Length of an encrypted block, in bytes.
    fn cipher_block_len(&self) -> usize;

    /// Encrypts `plain` block by block and appends the result to `out`; only the last block may be shorter.
    ///
    /// # Errors
    /// Only if the library fails.
    fn encrypt(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError>;
}

/// The intended use of a certificate, which determines its checks (Part 4 §6.1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificatePurpose {
    /// A client application that opens a channel to us.
    Client {
        /// Its address, if known. Only shown to administrators.
        address: Option<IpAddr>,
    },
    /// The server application that we connect to.
    Server {
        /// The host name or address in the endpoint URL.
        host_name: String,
    },
    /// A user who logs on with a certificate.
    User {
        /// The address of the user's client, if known. Only shown to administrators.
        address: Option<IpAddr>,
    },
}

impl CertificatePurpose {
    /// The address from which the certificate was received, if known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Client { address } | Self::User { address } => *address,
            Self::Server { .. } => None,
        }
    }
}

/// A cryptographic library together with our certificates, keys and trust lists.
///
/// The primitives may block as long as necessary: they run inside [`crate::Job::run`].
pub trait Provider: Send + Sync + fmt::Debug {
    /// Whether the policy is usable.
    fn supports(&self, policy: SecurityPolicy) -> bool;

    /// Our certificate for the policy, with its chain: the SenderCertificate of the security header.
    fn own_certificate(&self, policy: SecurityPolicy) -> Option<&[u8]>;

    /// The SHA-1 digest of the first certificate in a chain: an identifier, not a protection.
    fn thumbprint(&self, certificate: &[u8]) -> [u8; 20];

    /// The ApplicationUri in the first certificate of a chain: the only URI among the subject's alternative names (Part
    /// 6 §6.2.2). `None` if there is none, if there are several, or if it is not a certificate.
    fn application_uri(&self, certificate: &[u8]) -> Option<String>;

    /// When the first certificate of a chain expires; `None` if it is not a certificate.
    fn valid_until(&self, certificate: &[u8]) -> Option<UtcTime> {
        Certificate::from_der(der::leaf(certificate)).ok().map(|read| read.not_after())
    }

    /// Decides whether a certificate is trusted for a purpose.
    ///
    /// # Errors
    /// [`CryptoError::Certificate`] with the failed step.
    fn validate(&self, certificate: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError>;

    /// The public key of a certificate. Checks that its kind and size fit the policy.
    ///
    /// # Errors
    /// [`CryptoError::Certificate`].
    fn peer_key(&self, policy: SecurityPolicy, certificate: &[u8]) -> Result<Box<dyn PeerKey>, CryptoError>;

    /// Length of a signature by our key, in bytes.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`].
    fn signature_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError>;

    /// Signs the concatenation of `data` with our key and appends the signature.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`], or the library fails.
    fn sign(&self, policy: SecurityPolicy, data: &[&[u8]], out: &mut Vec<u8>) -> Result<(), CryptoError>;

    /// Length of a block encrypted for us, in bytes; 0 if the policy does not encrypt with certificate keys.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`].
    fn cipher_block_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError>;

    /// Decrypts `cipher` with our key and appends the result to `out`. Takes the same time for every fault.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`].
    fn decrypt(&self, policy: SecurityPolicy, cipher: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError>;

    /// Starts a key agreement: creates our nonce or ephemeral key.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`], or the library fails.
    fn agree(
        &self,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        role: Role,
    ) -> Result<Box<dyn KeyAgreement>, CryptoError>;

    /// The digest of the concatenation of `data` with the hash of the policy's CertificateThumbprintAlgorithm, for
    /// channel-bound signatures (Part 4 §6.1.8).
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`].
    fn digest(&self, policy: SecurityPolicy, data: &[&[u8]]) -> Result<Vec<u8>, CryptoError>;

    /// Fills `bytes` with random bytes suitable for keys.
    ///
    /// # Errors
    /// Only if the library fails.
    fn random(&self, bytes: &mut [u8]) -> Result<(), CryptoError>;

    /// Creates an ephemeral key pair of the policy.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] if the policy has no ephemeral keys, or the library fails.
    fn ephemeral_key(&self, policy: SecurityPolicy) -> Result<Arc<dyn EphemeralKey>, CryptoError>;

    /// Encrypts a payload in place with the policy's SymmetricEncryptionAlgorithm. Block ciphers require padding; an
    /// authenticated cipher also covers `headers` and appends its tag.
    ///
    /// # Errors
    /// [`CryptoError::Malformed`] if a length does not fit the algorithm, or the library fails.
    fn encrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError>;

    /// The reverse of [`Provider::encrypt_payload`].
    ///
    /// # Errors
    /// [`CryptoError::Decryption`].
    fn decrypt_payload(
        &self,
        policy: SecurityPolicy,
        keys: PayloadKeys<'_>,
        headers: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<(), CryptoError>;

    /// Signs `data` with the policy's SymmetricSignatureAlgorithm and appends the signature.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] if the policy has none, as with authenticated ciphers.
    fn mac(
        &self,
        policy: SecurityPolicy,
        key: &[u8],
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CryptoError>;
}

/// The key and the initialization vector of one payload.
#[derive(Clone, Copy)]
pub struct PayloadKeys<'a> {
    /// Length: the policy's [`crate::PolicyInfo::encrypting_key_len`].
    pub encrypting_key: &'a [u8],
    /// Length: the policy's [`crate::PolicyInfo::iv_len`].
    pub iv: &'a [u8],
}

impl fmt::Debug for PayloadKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadKeys(secret)")
    }
}
