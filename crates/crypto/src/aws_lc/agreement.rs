//! Key agreement for security tokens: nonces (Part 6 §6.7.6) or ephemeral keys (§6.8.1).

use super::chunk::{self, Material};
use super::{ffdhe, fill_random};
use crate::policy::{AsymmetricSignature, KeyExchange};
use crate::{
    CryptoError, EphemeralKey, KeyAgreement, MessageSecurityMode, PolicyInfo, Role, SecurityPolicy,
    SymmetricKeys,
};
use aws_lc_rs::agreement::{ECDH_P256, ECDH_P384, PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Salt};
use aws_lc_rs::hmac;
use core::fmt;
use zeroize::Zeroizing;

/// Prefix of an uncompressed point; the specification omits it.
const UNCOMPRESSED: u8 = 4;

pub(super) fn start(
    policy: SecurityPolicy,
    mode: MessageSecurityMode,
    role: Role,
    discloses: bool,
) -> Result<Box<dyn KeyAgreement>, CryptoError> {
    let info = policy.info();
    let terms = Terms { info, mode, role, discloses };
    if info.key_exchange == KeyExchange::RsaNonces {
        let mut nonce = Zeroizing::new(vec![0; info.nonce_len]);
        fill_random(&mut nonce)?;
        return Ok(Box::new(Nonces { terms, nonce }));
    }
    Ok(Box::new(Handshake { terms, key: Ephemeral::generate(policy)? }))
}

/// Policy and mode of the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) info: &'static PolicyInfo,
    pub(super) mode: MessageSecurityMode,
    pub(super) role: Role,
    /// Whether the key bytes are kept so that they can be disclosed.
    pub(super) discloses: bool,
}

/// Creates contexts from the key material of both directions.
pub(super) fn contexts(
    terms: Terms,
    client: &[u8],
    server: &[u8],
    chain: Option<Zeroizing<Vec<u8>>>,
) -> Result<Box<dyn SymmetricKeys>, CryptoError> {
    let Terms { info, mode, role, discloses } = terms;
    let (client, server) = (Material::cut(client, info)?, Material::cut(server, info)?);
    let keys = match role {
        Role::Client => chunk::keys(info, mode, client, server, chain)?,
        Role::Server => chunk::keys(info, mode, server, client, chain)?,
    };
    if !discloses {
        return Ok(keys);
    }
    Ok(Box::new(chunk::Disclosing { keys, client: client.disclose(), server: server.disclose() }))
}

/// Random nonces that were exchanged encrypted.
struct Nonces {
    terms: Terms,
    nonce: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").field("policy", &self.terms.info.policy).finish_non_exhaustive()
    }
}

impl KeyAgreement for Nonces {
    fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    fn derive(
        self: Box<Self>,
        peer_nonce: &[u8],
        _: Option<&[u8]>,
    ) -> Result<Box<dyn SymmetricKeys>, CryptoError> {
        let Terms { info, role, .. } = self.terms;
        if peer_nonce.len() != info.nonce_len || *peer_nonce == **self.nonce {
            return Err(CryptoError::Nonce);
        }
        let len = Material::len(info);
        // Each side's keys: the other's nonce is the secret, its own the seed (Part 6 §6.7.6, Table 62).
        let own = p_sha256(peer_nonce, &self.nonce, len);
        let peer = p_sha256(&self.nonce, peer_nonce, len);
        let (client, server) = match role {
            Role::Client => (&own, &peer),
            Role::Server => (&peer, &own),
        };
        contexts(self.terms, client, server, None)
    }
}

/// P_SHA256 of RFC 5246 §5.
pub(super) fn p_sha256(secret: &[u8], seed: &[u8], len: usize) -> Zeroizing<Vec<u8>> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut out = Zeroizing::new(Vec::with_capacity(len.next_multiple_of(32)));
    let mut chain = hmac::sign(&key, seed);
    while out.len() < len {
        let mut context = hmac::Context::with_key(&key);
        context.update(chain.as_ref());
        context.update(seed);
        out.extend_from_slice(context.sign().as_ref());
        chain = hmac::sign(&key, chain.as_ref());
    }
    out.truncate(len);
    out
}

enum EphemeralPrivate {
    Curve(PrivateKey),
    Ffdhe(ffdhe::PrivateKey),
}

/// An ephemeral key pair.
pub(super) struct Ephemeral {
    info: &'static PolicyInfo,
    private: EphemeralPrivate,
    public: Vec<u8>,
}

impl fmt::Debug for Ephemeral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ephemeral").field("policy", &self.info.policy).finish_non_exhaustive()
    }
}

impl Ephemeral {
    pub(super) fn generate(policy: SecurityPolicy) -> Result<Self, CryptoError> {
        let failed = |_| CryptoError::Internal;
        let info = policy.info();
        let algorithm = match info.key_exchange {
            KeyExchange::NistP256 => &ECDH_P256,
            KeyExchange::NistP384 => &ECDH_P384,
            KeyExchange::Curve25519 => &X25519,
            KeyExchange::Ffdhe3072 => {
                let private = ffdhe::PrivateKey::generate()?;
                let public = private.public_key();
                return Ok(Self { info, private: EphemeralPrivate::Ffdhe(private), public });
            }
            _ => return Err(CryptoError::PolicyUnsupported),
        };
        let private = PrivateKey::generate(algorithm).map_err(failed)?;
        let public = private.compute_public_key().map_err(failed)?;
        let public = match public.as_ref() {
            [UNCOMPRESSED, point @ ..] if point.len() == info.nonce_len => point,
            public if public.len() == info.nonce_len => public,
            _ => return Err(CryptoError::Internal),
        };
        Ok(Self { info, public: public.to_vec(), private: EphemeralPrivate::Curve(private) })
    }

    /// The shared secret. The library refuses points that are not on the curve, and a zero result.
    fn shared(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        if peer.len() != self.info.nonce_len || *peer == *self.public {
            return Err(CryptoError::Nonce);
        }
        match &self.private {
            EphemeralPrivate::Ffdhe(private) => private.shared(peer),
            EphemeralPrivate::Curve(private) => {
                let mut encoded = Vec::with_capacity(peer.len() + 1);
                if self.info.key_exchange != KeyExchange::Curve25519 {
                    encoded.push(UNCOMPRESSED);
                }
                encoded.extend_from_slice(peer);
                let peer = UnparsedPublicKey::new(private.algorithm(), encoded);
                agree(private, peer, CryptoError::KeyAgreement, |secret| Ok(Zeroizing::new(secret.to_vec())))
            }
        }
    }
}

impl EphemeralKey for Ephemeral {
    fn public_key(&self) -> &[u8] {
        &self.public
    }

    fn derive(
        &self,
        peer_public_key: &[u8],
        salt: &[u8],
        len: usize,
    ) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        hkdf(self.info, &self.shared(peer_public_key)?, salt, len)
    }
}

/// Output length of HKDF.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF with the policy's hash; the salt is also the info (Part 6 §6.8.1).
pub(super) fn hkdf(
    info: &PolicyInfo,
    secret: &[u8],
    salt: &[u8],
    len: usize,
) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    let algorithm = match info.asymmetric_signature {
        AsymmetricSignature::EcdsaSha384 => HKDF_SHA384,
        _ => HKDF_SHA256,
    };
    let mut out = Zeroizing::new(vec![0; len]);
    let key = Salt::new(algorithm, salt).extract(secret);
    let expanded = key.expand(&[salt], Length(len)).and_then(|okm| okm.fill(&mut out));
    expanded.map_err(|_| CryptoError::Internal)?;
    Ok(out)
}

/// Ephemeral keys in OpenSecureChannel.
#[derive(Debug)]
struct Handshake {
    terms: Terms,
    key: Ephemeral,
}

impl KeyAgreement for Handshake {
    fn nonce(&self) -> &[u8] {
        &self.key.public
    }

    fn derive(
        self: Box<Self>,
        peer_nonce: &[u8],
        previous: Option<&[u8]>,
    ) -> Result<Box<dyn SymmetricKeys>, CryptoError> {
        let Terms { info, role, .. } = self.terms;
        let mut secret = self.key.shared(peer_nonce)?;
        if let Some(previous) = previous.filter(|_| info.enhancements) {
            // A stolen private key alone does not reveal earlier messages (Part 6 §6.8.1, step 2).
            if previous.len() != secret.len() {
                return Err(CryptoError::Internal);
            }
            secret.iter_mut().zip(previous).for_each(|(byte, before)| *byte ^= before);
        }
        let (client_nonce, server_nonce) = match role {
            Role::Client => (self.key.public.as_slice(), peer_nonce),
            Role::Server => (peer_nonce, self.key.public.as_slice()),
        };
        let (client, server) = channel_material(info, self.terms.mode, &secret, client_nonce, server_nonce)?;
        let chain = info.enhancements.then_some(secret);
        contexts(self.terms, &client, &server, chain)
    }
}

/// Bytes that are split into keys.
type KeyMaterial = Zeroizing<Vec<u8>>;

/// The key material of client and server (Part 6 §6.8.1, steps 1 to 3).
pub(super) fn channel_material(
    info: &PolicyInfo,
    mode: MessageSecurityMode,
    secret: &[u8],
    client_nonce: &[u8],
    server_nonce: &[u8],
) -> Result<(KeyMaterial, KeyMaterial), CryptoError> {
    let len = Material::agreed_len(info, mode);
    let len_field = u16::try_from(len).map_err(|_| CryptoError::Internal)?.to_le_bytes();
    let server_salt = [&len_field, b"opcua-server".as_slice(), server_nonce, client_nonce].concat();
    let client_salt = [&len_field, b"opcua-client".as_slice(), client_nonce, server_nonce].concat();
    Ok((hkdf(info, secret, &client_salt, len)?, hkdf(info, secret, &server_salt, len)?))
}
