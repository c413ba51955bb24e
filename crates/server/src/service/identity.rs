//! User identity tokens (Part 4 §7.40): the claimed identity and the required proof.

use super::activate::names;
use crate::account::{HeapSize, allocation};
use crate::config::{EndpointConfig, ServerConfig, UserTokenConfig, UserTokenKind};
use crate::error::Fault;
use crate::session::proof::{SignatureProof, UserProof};
use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;
use taktwerk_crypto::der::leaf;
use taktwerk_crypto::{
    EphemeralKey, MessageSecurityMode, OpenSecret, Secret, SecurityPolicy, SessionBinding,
};
use taktwerk_schema::{
    ActivateSessionRequest, AnonymousIdentityToken, IssuedIdentityToken, UserNameIdentityToken,
    X509IdentityToken,
};
use taktwerk_types::{ByteString, StatusCode, UtcTime};

/// The token is malformed, or the endpoint does not offer its policy.
const INVALID: Fault = Fault::peer(StatusCode::BAD_IDENTITY_TOKEN_INVALID, "Part 4 §7.40");
/// The endpoint does not accept this kind of user.
const REJECTED: Fault = Fault::peer(StatusCode::BAD_IDENTITY_TOKEN_REJECTED, "Part 4 §7.40");

/// Longest encrypted secret, as a multiple of the longest secret: RSA blocks and headers add overhead.
const ENCRYPTION_FACTOR: usize = 4;
/// Minimum for the limit of an encrypted secret, in bytes: two blocks of the largest keys, and headers.
const ENCRYPTED_LEN_MIN: usize = 4096;

/// Longest algorithm name, in bytes: existing ones are URIs of some 60 characters.
const ALGORITHM_LEN_MAX: usize = 256;

/// The claimed user identity.
pub(crate) enum Claim {
    Anonymous,
    Password {
        user_name: Box<str>,
        /// An unencrypted password.
        plain: Option<Secret>,
    },
    Certificate {
        certificate: Arc<[u8]>,
        /// With its issuers, as received.
        chain: Arc<[u8]>,
        /// Set once the proof is verified.
        thumbprint: Box<str>,
    },
    IssuedToken {
        plain: Option<Secret>,
    },
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Password { .. } => "Password",
            Self::Certificate { .. } => "Certificate",
            Self::IssuedToken { .. } => "IssuedToken",
        })
    }
}

impl HeapSize for Claim {
    fn heap_size(&self) -> usize {
        let secret =
            |secret: &Option<Secret>| secret.as_ref().map_or(0, |secret| allocation(secret.expose().len()));
        match self {
            Self::Anonymous => 0,
            Self::Password { user_name, plain } => user_name.heap_size() + secret(plain),
            Self::Certificate { certificate, chain, thumbprint } => {
                certificate.heap_size() + chain.heap_size() + thumbprint.heap_size()
            }
            Self::IssuedToken { plain } => secret(plain),
        }
    }
}

impl Claim {
    /// The user name whose secret can be guessed. Certificates and tokens cannot be guessed.
    pub(crate) fn suspect(&self) -> Option<&str> {
        match self {
            Self::Password { user_name, .. } => Some(user_name),
            Self::Anonymous | Self::Certificate { .. } | Self::IssuedToken { .. } => None,
        }
    }
}

/// The context for checking tokens.
pub(crate) struct TokenContext<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) endpoint: &'a EndpointConfig,
    pub(crate) binding: &'a SessionBinding,
    /// The last key given to the client.
    pub(crate) ephemeral: Option<&'a (SecurityPolicy, Arc<dyn EphemeralKey>)>,
    pub(crate) now: UtcTime,
    /// The client's address.
    pub(crate) address: Option<IpAddr>,
}

/// Parses a token.
///
/// # Errors
/// Bad_IdentityTokenInvalid, Bad_IdentityTokenRejected, Bad_UserSignatureInvalid.
pub(crate) fn claim(
    context: &TokenContext<'_>,
    request: &ActivateSessionRequest,
) -> Result<(Claim, Option<UserProof>), Fault> {
    let TokenContext { config, endpoint, binding, .. } = context;
    let token = &request.user_identity_token;
    let offers =
        |kind: UserTokenKind| endpoint.user_tokens.iter().filter(move |offered| offered.kind == kind);
    let named = |kind: UserTokenKind, policy_id: &str| {
        if offers(kind).next().is_none() {
            return Err(REJECTED);
        }
        offers(kind).find(|offered| offered.policy_id == policy_id).ok_or(INVALID)
    };
    if token.type_id.is_null() || token.is::<AnonymousIdentityToken>() {
        // Anonymous clients often omit the policy id; that is harmless.
        let policy_id =
            token.decode::<AnonymousIdentityToken>().map(|token| token.policy_id).unwrap_or_default();
        let offered = |offered: &UserTokenConfig| policy_id.is_empty() || policy_id == *offered.policy_id;
        return offers(UserTokenKind::Anonymous)
            .any(offered)
            .then_some((Claim::Anonymous, None))
            .ok_or(REJECTED);
    }
    if token.is::<UserNameIdentityToken>() {
        let token: UserNameIdentityToken = token.decode().map_err(|_| INVALID)?;
        let offered = named(UserTokenKind::UserName, token.policy_id.as_str())?;
        let name = token.user_name.as_str();
        if name.is_empty() || name.len() > config.limits.user_secret_len_max {
            return Err(INVALID);
        }
        let secret = context.secret(
            offered,
            config.limits.user_secret_len_max,
            token.encryption_algorithm.as_str(),
            &token.password,
        )?;
        let (plain, proof) = secret.split();
        return Ok((Claim::Password { user_name: name.into(), plain }, proof));
    }
    if token.is::<IssuedIdentityToken>() {
        let token: IssuedIdentityToken = token.decode().map_err(|_| INVALID)?;
        let offered = named(UserTokenKind::IssuedToken, token.policy_id.as_str())?;
        let secret = context.secret(
            offered,
            config.limits.issued_token_len_max,
            token.encryption_algorithm.as_str(),
            &token.token_data,
        )?;
        let (plain, proof) = secret.split();
        return Ok((Claim::IssuedToken { plain }, proof));
    }
    if token.is::<X509IdentityToken>() {
        let token: X509IdentityToken = token.decode().map_err(|_| INVALID)?;
        let offered = named(UserTokenKind::Certificate, token.policy_id.as_str())?;
        let policy = offered.policy.unwrap_or(endpoint.policy);
        // Without an algorithm there is no proof (Part 4 §7.40.5).
        if !policy.is_secure() {
            return Err(REJECTED);
        }
        let chain = token.certificate_data.as_bytes();
        if chain.is_empty() || chain.len() > config.limits.user_certificate_len_max {
            return Err(INVALID);
        }
        let signature = &request.user_token_signature;
        if !names(signature, policy) || signature.signature.as_bytes().len() > config.limits.signature_len_max
        {
            return Err(Fault::Crypto { status: StatusCode::BAD_USER_SIGNATURE_INVALID });
        }
        let mut data = vec![binding.user_signature(policy)];
        data.extend(binding.client_signature_over_chain(policy));
        let certificate = leaf(chain).into();
        let chain: Arc<[u8]> = chain.into();
        let proof = SignatureProof {
            policy,
            certificate: Arc::clone(&chain),
            data,
            signature: signature.signature.as_bytes().to_vec(),
        };
        let claim = Claim::Certificate { certificate, chain, thumbprint: Box::default() };
        return Ok((claim, Some(UserProof::Certificate { proof, address: context.address })));
    }
    Err(INVALID)
}

/// A password or token as received.
enum Sent {
    Plain(Secret),
    Encrypted(UserProof),
}

impl Sent {
    fn split(self) -> (Option<Secret>, Option<UserProof>) {
        match self {
            Self::Plain(plain) => (Some(plain), None),
            Self::Encrypted(proof) => (None, Some(proof)),
        }
    }
}

impl TokenContext<'_> {
    /// Checks the format of a secret without decrypting it.
    fn secret(
        &self,
        offered: &UserTokenConfig,
        len_max: usize,
        algorithm: &str,
        bytes: &ByteString,
    ) -> Result<Sent, Fault> {
        let Self { config, endpoint, binding, ephemeral, now, .. } = *self;
        let policy = offered.policy.unwrap_or(endpoint.policy);
        let bytes = bytes.as_bytes();
        if !policy.is_secure() {
            let is_readable = endpoint.mode != MessageSecurityMode::SignAndEncrypt;
            if is_readable && !config.allow_clear_passwords {
                return Err(REJECTED);
            }
            if !algorithm.is_empty() || bytes.len() > len_max {
                return Err(INVALID);
            }
            return Ok(Sent::Plain(Secret::new(bytes.to_vec())));
        }
        let encrypted_len_max = (len_max * ENCRYPTION_FACTOR).max(ENCRYPTED_LEN_MIN);
        if bytes.is_empty() || bytes.len() > encrypted_len_max || algorithm.len() > ALGORITHM_LEN_MAX {
            return Err(INVALID);
        }
        Ok(Sent::Encrypted(UserProof::Secret(OpenSecret {
            policy,
            algorithm: algorithm.into(),
            data: bytes.to_vec(),
            server_nonce: binding.server_nonce.clone(),
            now,
            key: ephemeral.filter(|(of, _)| *of == policy).map(|(_, key)| Arc::clone(key)),
            sender_certificate: Some(Arc::clone(&binding.client_certificate))
                .filter(|known| !known.is_empty()),
            secret_len_max: len_max,
        })))
    }
}
