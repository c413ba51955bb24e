//! User identity tokens (Part 4 §7.40): creating, encrypting and signing them.

use crate::config::{Identity, Target};
use crate::endpoint::{token_policy, token_type};
use crate::error::{ClientError, SecurityProblem};
use crate::session::{Step, is_nonce};
use std::sync::Arc;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{
    CertificatePurpose, EncryptedSecret, Job, MessageSecurityMode, Provider, SealSecret, Secret,
    SecurityPolicy, SessionBinding,
};
use taktwerk_schema::{
    AnonymousIdentityToken, EphemeralKeyType, IssuedIdentityToken, SignatureData, UserNameIdentityToken,
    UserTokenPolicy, X509IdentityToken,
};
use taktwerk_types::{ByteString, ExtensionObject, UtcTime};

/// Slow jobs in order, each with the provider that holds the keys.
pub(crate) type Steps = Vec<(Step, Job, Arc<dyn Provider>)>;

/// A user identity token and the jobs that complete it.
pub(crate) struct User {
    pub(crate) token: ExtensionObject,
    pub(crate) signature: SignatureData,
    pub(crate) steps: Steps,
}

/// The inputs for a user identity token.
pub(crate) struct Applicant<'a> {
    pub(crate) target: &'a Target,
    pub(crate) token_policies: &'a [UserTokenPolicy],
    pub(crate) server_certificate: &'a Arc<[u8]>,
    /// The server's key for encrypting a secret.
    pub(crate) key: Option<&'a EphemeralKeyType>,
    pub(crate) channel: (SecurityPolicy, MessageSecurityMode),
    pub(crate) provider: &'a Arc<dyn Provider>,
    pub(crate) binding: &'a SessionBinding,
    pub(crate) now: UtcTime,
}

/// The algorithms of a token policy: its own, or the channel's (Part 4 §7.41).
fn effective(policy: &UserTokenPolicy, channel: SecurityPolicy) -> SecurityPolicy {
    SecurityPolicy::from_uri(policy.security_policy_uri.as_str()).unwrap_or(channel)
}

/// The policy that a secret will be encrypted with, if it needs a key from the server (Part 6 §6.8.2). Without
/// discovery the token policies are unknown; then the channel's policy is assumed.
pub(crate) fn key_policy(
    token_policies: &[UserTokenPolicy],
    identity: &Identity,
    channel: SecurityPolicy,
    provider: &dyn Provider,
) -> Option<SecurityPolicy> {
    if !matches!(identity, Identity::UserName { .. } | Identity::IssuedToken { .. }) {
        return None;
    }
    let policy = token_policy(token_policies, identity, channel, provider)
        .map_or(channel, |policy| effective(policy, channel));
    (channel.is_secure() && uses_ephemeral_keys(policy)).then_some(policy)
}

/// Stores an encrypted secret in its token.
pub(crate) fn put_secret(token: &mut ExtensionObject, sealed: EncryptedSecret) {
    let EncryptedSecret { algorithm, bytes } = sealed;
    if let Ok(mut named) = token.decode::<UserNameIdentityToken>() {
        named.encryption_algorithm = algorithm.into();
        named.password = bytes.into();
        *token = ExtensionObject::new(&named);
    } else if let Ok(mut issued) = token.decode::<IssuedIdentityToken>() {
        issued.encryption_algorithm = algorithm.into();
        issued.token_data = bytes.into();
        *token = ExtensionObject::new(&issued);
    }
}

impl Applicant<'_> {
    /// Creates the token.
    ///
    /// # Errors
    /// It would expose the user's secret, or the server does not support it.
    pub(crate) fn identify(&self) -> Result<User, ClientError> {
        let plain = |token| User { token, signature: SignatureData::default(), steps: Vec::new() };
        let identity = &self.target.identity;
        let (channel, _) = self.channel;
        let Some(token_policy) = token_policy(self.token_policies, identity, channel, self.provider.as_ref())
        else {
            // If a server has no token policies, a missing token means anonymous (Part 4 §5.7.3.2).
            if matches!(identity, Identity::Anonymous) && self.token_policies.is_empty() {
                return Ok(plain(ExtensionObject::NULL));
            }
            return Err(SecurityProblem::NoTokenPolicy(token_type(identity).1).into());
        };
        let policy_id = token_policy.policy_id.clone();
        let policy = effective(token_policy, channel);
        match identity {
            Identity::Anonymous => Ok(plain(ExtensionObject::new(&AnonymousIdentityToken { policy_id }))),
            Identity::UserName { name, password } => {
                let mut token =
                    UserNameIdentityToken { policy_id, user_name: (&**name).into(), ..Default::default() };
                let steps = self.seal(policy, password.expose().as_bytes())?;
                if steps.is_empty() {
                    token.password = password.expose().as_bytes().into();
                }
                Ok(User { steps, ..plain(ExtensionObject::new(&token)) })
            }
            Identity::IssuedToken { token: secret } => {
                let mut token = IssuedIdentityToken { policy_id, ..Default::default() };
                let steps = self.seal(policy, secret.expose().as_bytes())?;
                if steps.is_empty() {
                    token.token_data = secret.expose().as_bytes().into();
                }
                Ok(User { steps, ..plain(ExtensionObject::new(&token)) })
            }
            Identity::X509 { provider } => {
                if !policy.is_secure() {
                    return Err(SecurityProblem::Unsupported(policy, self.channel.1).into());
                }
                let certificate = provider.own_certificate(policy);
                let certificate = certificate.ok_or(SecurityProblem::UserCertificate(policy))?;
                let certificate_data = ByteString::from(certificate);
                let token = X509IdentityToken { policy_id, certificate_data };
                let signature = SignatureData {
                    algorithm: policy.info().asymmetric_signature.uri().into(),
                    ..SignatureData::default()
                };
                let job = Job::Sign { policy, data: self.binding.user_signature(policy) };
                let steps = vec![(Step::SignUser, job, Arc::clone(provider))];
                Ok(User { token: ExtensionObject::new(&token), signature, steps })
            }
        }
    }

    /// The jobs that encrypt a secret; none if it is sent unencrypted.
    fn seal(&self, policy: SecurityPolicy, secret: &[u8]) -> Result<Steps, SecurityProblem> {
        if !policy.is_secure() {
            if !self.target.allow_plaintext_password {
                return Err(SecurityProblem::PlaintextPassword);
            }
            return Ok(Vec::new());
        }
        if self.server_certificate.is_empty() {
            return Err(SecurityProblem::CertificateChanged);
        }
        // A secret encrypted with a repeated nonce could be replayed.
        if !is_nonce(&self.binding.server_nonce) {
            return Err(SecurityProblem::Nonce);
        }
        let mut steps = Vec::new();
        let mut step = |step, job| steps.push((step, job, Arc::clone(self.provider)));
        if !self.channel.0.is_secure() {
            // On an unsecured channel anyone could have sent this certificate: validate it before encrypting a secret
            // for it.
            let purpose = CertificatePurpose::Server { host_name: self.target.url.host.clone().into() };
            step(
                Step::ValidateServer,
                Job::Validate { certificate: Arc::clone(self.server_certificate), purpose },
            );
        }
        let mut receiver_key = None;
        if uses_ephemeral_keys(policy) {
            let key = self.key.ok_or(SecurityProblem::NoKey(policy))?;
            let public_key = key.public_key.as_bytes().to_vec();
            step(
                Step::VerifyKey,
                Job::Verify {
                    policy,
                    certificate: Arc::clone(self.server_certificate),
                    data: vec![public_key.clone().into()],
                    signature: key.signature.as_bytes().to_vec(),
                },
            );
            receiver_key = Some(public_key);
        }
        let seal = SealSecret {
            policy,
            receiver_certificate: Arc::clone(self.server_certificate),
            server_nonce: self.binding.server_nonce.clone(),
            secret: Secret::new(secret.to_vec()),
            signing_time: self.now,
            receiver_key,
        };
        step(Step::EncryptSecret, Job::SealSecret(seal));
        Ok(steps)
    }
}
