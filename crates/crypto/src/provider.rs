//! What a cryptographic library implements to secure channels.
//!
//! Two kinds of work are kept apart. Chunks are protected by [`SymmetricKeys`], a context keyed once per security
//! token and used in place on the connection's own buffers: this is the hot path. Everything with a certificate's
//! key is slow and is described as a [`crate::Job`], which calls the primitives of [`Provider`] on any thread.

use crate::certificate::Certificate;
use crate::{CryptoError, MessageSecurityMode, SecurityPolicy, der};
use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;
use taktwerk_types::UtcTime;
use zeroize::Zeroizing;

/// Which end of a channel we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// We opened the channel.
    Client,
    /// We answer.
    Server,
}

/// How a protected chunk is laid out behind its headers (Part 6 §6.7.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLayout {
    /// Bytes of the signature or authentication tag at the end.
    pub signature_len: usize,
    /// The cipher's block size in bytes. 1: nothing is padded and there is no PaddingSize byte.
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

/// What makes a chunk's initialization vector unique with authenticated ciphers (Part 6 §6.8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkNonce {
    /// The chunk's TokenId.
    pub token_id: u32,
    /// The SequenceNumber of the chunk before this one in the same direction; 0 before the first.
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

/// Is told the keys of every security token, so that recorded messages can be read: for looking for faults, on purpose.
/// Whoever has these keys has everything that the channel protects.
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
    /// What the client's messages are secured with.
    pub client: &'a DisclosedKeys,
    /// What the server's messages are secured with.
    pub server: &'a DisclosedKeys,
}

impl<'a> TokenKeys<'a> {
    /// The keys of a token that a provider has disclosed: the client's and the server's.
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

/// The keys of one security token, for both directions, ready for use: a token's contexts are made once.
pub trait SymmetricKeys: Send + fmt::Debug {
    /// How a chunk is laid out.
    fn layout(&self) -> ChunkLayout;

    /// Signs and, depending on the mode, encrypts an outgoing chunk in place.
    ///
    /// `chunk` is the whole chunk with its final size in the header; its last [`ChunkLayout::signature_len`] bytes
    /// are a gap for the signature, and the padding stands before them. The first `headers_len` bytes (message and
    /// security header) stay readable; encryption starts behind them, with the sequence header.
    ///
    /// # Errors
    /// Only if the library fails.
    fn seal(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce) -> Result<(), CryptoError>;

    /// Into how many chunks a long message is best cut, if its parts fit one each. A cipher that chains its blocks works
    /// on one at a time, however many the processor could: several chunks sealed side by side take a fraction of the time
    /// of one. 1: cutting gains nothing.
    fn lanes(&self) -> usize {
        1
    }

    /// Seals the chunks of a message, `chunk_len` bytes each and the last perhaps fewer, as [`Self::seal`] does one by
    /// one. `nonces` gives each its own.
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

    /// Decrypts an incoming chunk in place and checks its signature in constant time; says where body and padding
    /// end (the offset of the signature). Nothing decrypted may be used when this fails.
    ///
    /// # Errors
    /// [`CryptoError::Signature`], [`CryptoError::Decryption`] or [`CryptoError::Malformed`].
    fn open(&mut self, chunk: &mut [u8], headers_len: usize, nonce: ChunkNonce)
    -> Result<usize, CryptoError>;

    /// What the keys of the next token are chained to (policies with SecureChannelEnhancements, Part 6 §6.8.1).
    fn chain_secret(&self) -> Option<Vec<u8>> {
        None
    }

    /// The keys of the client and of the server as bytes, if the provider was told to disclose them.
    fn disclosed(&self) -> Option<(&DisclosedKeys, &DisclosedKeys)> {
        None
    }
}

/// Our half of a key agreement, between the request and its response.
pub trait KeyAgreement: Send + fmt::Debug {
    /// What we send: a random nonce, or an ephemeral public key. Its length is the policy's nonce length.
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

/// An ephemeral key pair for secrets (Part 6 §6.8.2, §6.8.3): a server hands the public half to the client, which
/// encrypts a password for it. Agree once and throw it away: what was encrypted for it stays secret for good.
pub trait EphemeralKey: Send + Sync + fmt::Debug {
    /// The public half, encoded as the nonces of the policy's channels are (Part 6 §6.8.1).
    fn public_key(&self) -> &[u8];

    /// `len` bytes of key material from both halves: the policy's HKDF over the shared secret, with `salt` as the
    /// salt and as the info (Part 6 §6.8.1, steps 2 and 3).
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
    /// Bytes of a signature by this key.
    fn signature_len(&self) -> usize;

    /// Checks a signature over the concatenation of `data`.
    ///
    /// # Errors
    /// [`CryptoError::Signature`].
    fn verify(&self, data: &[&[u8]], signature: &[u8]) -> Result<(), CryptoError>;

    /// Most bytes that one operation encrypts; 0 if the policy does not encrypt with certificates' keys.
    fn plain_block_len(&self) -> usize;

    /// Bytes of the result of one operation.
    fn cipher_block_len(&self) -> usize;

    /// Appends the encryption of `plain` to `out`, one operation per plain block; only the last may be shorter.
    ///
    /// # Errors
    /// Only if the library fails.
    fn encrypt(&self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError>;
}

/// What a certificate is to be used for: its checks depend on it (Part 4 §6.1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificatePurpose {
    /// A client application that opens a channel to us.
    Client {
        /// Where it comes from, if that is known. It decides nothing: administrators are shown it.
        address: Option<IpAddr>,
    },
    /// The server application that we open a channel to; the name is the host we dialled.
    Server {
        /// Host name or address as in the endpoint URL.
        host_name: String,
    },
    /// A user who logs on with a certificate.
    User {
        /// Where the user's client is, if that is known. It decides nothing: administrators are shown it.
        address: Option<IpAddr>,
    },
}

impl CertificatePurpose {
    /// Where the certificate comes from, if that is known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Client { address } | Self::User { address } => *address,
            Self::Server { .. } => None,
        }
    }
}

/// A cryptographic library together with our own certificates and keys and our trust lists.
///
/// The primitives may block for as long as they need: they run inside [`crate::Job::run`].
pub trait Provider: Send + Sync + fmt::Debug {
    /// Whether the policy can be used here.
    fn supports(&self, policy: SecurityPolicy) -> bool;

    /// Our own certificate for the policy, with its chain: the SenderCertificate of the security header.
    fn own_certificate(&self, policy: SecurityPolicy) -> Option<&[u8]>;

    /// The SHA-1 digest of the first certificate in a chain: a name for it, not a protection.
    fn thumbprint(&self, certificate: &[u8]) -> [u8; 20];

    /// The ApplicationUri in the first certificate of a chain: its only URI among the subject's alternative names
    /// (Part 6 §6.2.2). `None` if it has none or several, or is no certificate.
    fn application_uri(&self, certificate: &[u8]) -> Option<String>;

    /// When the first certificate of a chain ends to be valid; `None` if it is no certificate.
    fn valid_until(&self, certificate: &[u8]) -> Option<UtcTime> {
        Certificate::from_der(der::leaf(certificate)).ok().map(|read| read.not_after())
    }

    /// Decides whether a certificate is trusted for a purpose.
    ///
    /// # Errors
    /// [`CryptoError::Certificate`] with the step that failed.
    fn validate(&self, certificate: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError>;

    /// The public key of a certificate, checked to be of the kind and size that the policy wants.
    ///
    /// # Errors
    /// [`CryptoError::Certificate`].
    fn peer_key(&self, policy: SecurityPolicy, certificate: &[u8]) -> Result<Box<dyn PeerKey>, CryptoError>;

    /// Bytes of a signature by our own key.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`].
    fn signature_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError>;

    /// Appends the signature over the concatenation of `data` by our own key.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`], or the library fails.
    fn sign(&self, policy: SecurityPolicy, data: &[&[u8]], out: &mut Vec<u8>) -> Result<(), CryptoError>;

    /// Bytes of one block that was encrypted for us; 0 if the policy does not encrypt with certificates' keys.
    ///
    /// # Errors
    /// [`CryptoError::NoOwnCertificate`].
    fn cipher_block_len(&self, policy: SecurityPolicy) -> Result<usize, CryptoError>;

    /// Appends the decryption of `cipher` by our own key to `out`. Takes the same time whatever is wrong.
    ///
    /// # Errors
    /// [`CryptoError::Decryption`].
    fn decrypt(&self, policy: SecurityPolicy, cipher: &[u8], out: &mut Vec<u8>) -> Result<(), CryptoError>;

    /// Starts a key agreement: makes our nonce or ephemeral key.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`], or the library fails.
    fn agree(
        &self,
        policy: SecurityPolicy,
        mode: MessageSecurityMode,
        role: Role,
    ) -> Result<Box<dyn KeyAgreement>, CryptoError>;

    /// The digest of the concatenation of `data` by the hash of the policy's CertificateThumbprintAlgorithm, as
    /// channel-bound signatures take it of certificates (Part 4 §6.1.8).
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`].
    fn digest(&self, policy: SecurityPolicy, data: &[&[u8]]) -> Result<Vec<u8>, CryptoError>;

    /// Overwrites `bytes` with random ones fit for keys.
    ///
    /// # Errors
    /// Only if the library fails.
    fn random(&self, bytes: &mut [u8]) -> Result<(), CryptoError>;

    /// Makes an ephemeral key pair of the policy.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] if the policy has none, or the library fails.
    fn ephemeral_key(&self, policy: SecurityPolicy) -> Result<Arc<dyn EphemeralKey>, CryptoError>;

    /// Encrypts a payload in place with the policy's SymmetricEncryptionAlgorithm. Block ciphers want it padded; an
    /// authenticated one covers `headers` too and appends its tag.
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

    /// Appends the policy's SymmetricSignatureAlgorithm over `data` with a key.
    ///
    /// # Errors
    /// [`CryptoError::PolicyUnsupported`] if the policy has none of its own, as with authenticated ciphers.
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
    /// As long as the policy's [`crate::PolicyInfo::encrypting_key_len`].
    pub encrypting_key: &'a [u8],
    /// As long as the policy's [`crate::PolicyInfo::iv_len`].
    pub iv: &'a [u8],
}

impl fmt::Debug for PayloadKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadKeys(secret)")
    }
}
