//! A model of what a client may accept and may send, derived from the messages it received (Part 4 §5.5.1, §5.7,
//! §7.40).
//!
//! It shares no code with the client except the URL parser.

use std::sync::Arc;
use taktwerk_channel::ephemeral;
use taktwerk_client::EndpointUrl;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{
    EphemeralKey, MessageSecurityMode, OpenSecret, Provider, SealSecret, SecurityPolicy, SessionBinding,
};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_schema::{
    ActivateSessionRequest, ActivateSessionResponse, CreateSessionRequest, CreateSessionResponse,
    EndpointDescription, EphemeralKeyType, IssuedIdentityToken, UserNameIdentityToken, UserTokenPolicy,
    UserTokenType,
};
use taktwerk_types::{NodeId, UtcTime};

/// Key size of all toy certificates.
pub(super) const KEY_BITS: u16 = 2048;
/// Server names. Certificates with the last one are not trusted.
pub(super) const NAMES: [&str; 3] = ["server", "other", "untrusted"];
/// Policies of channels and of secrets.
pub(super) const POLICIES: [SecurityPolicy; 6] = [
    SecurityPolicy::Basic256Sha256,
    SecurityPolicy::ECC_nistP256,
    SecurityPolicy::ECC_nistP256_AesGcm,
    SecurityPolicy::Aes256_Sha256_RsaPss,
    SecurityPolicy::ECC_nistP384,
    SecurityPolicy::None,
];
/// The only transport profile.
pub(super) const PROFILE: &str = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";
/// The user name.
pub(super) const USER: &str = "joe";

/// A channel, as seen by its server.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) policy: SecurityPolicy,
    pub(super) mode: MessageSecurityMode,
    pub(super) thumbprint: Vec<u8>,
    /// The server's certificate.
    pub(super) certificate: Vec<u8>,
}

/// Everything that the client received on all its connections.
pub(super) struct Model {
    /// The client's provider, for verifying signatures.
    provider: Arc<DummyProvider>,
    /// Whether the client calls GetEndpoints.
    discovers: bool,
    /// Endpoints from GetEndpoints that were not compared with a session's list yet.
    discovered: Option<Vec<EndpointDescription>>,
    /// The endpoint list of a session that matched discovery, or the only list.
    offered: Vec<EndpointDescription>,
    /// The last nonce that a client may have accepted.
    nonce: Vec<u8>,
    session: Option<Session>,
}

/// The session of the last CreateSession response.
struct Session {
    token: NodeId,
    place: Place,
    certificate: Vec<u8>,
    nonce: Vec<u8>,
    client_nonce: Vec<u8>,
    key: Option<EphemeralKeyType>,
    offered: Vec<EndpointDescription>,
    /// Whether it may be activated, or why not.
    verdict: Result<(), &'static str>,
    activated: bool,
}

/// The keys a server needs to decrypt a secret.
pub(super) struct Reader<'a> {
    pub(super) keys: &'a [Arc<dyn EphemeralKey>],
    pub(super) secret: &'a [u8],
    pub(super) now: UtcTime,
}

/// Whether a nonce has a valid length (Part 4 §5.7.2.2, Table 15) and does not look like the output of a broken
/// generator.
fn is_nonce(nonce: &[u8]) -> bool {
    (32..=128).contains(&nonce.len()) && nonce.iter().any(|byte| *byte != 0)
}

impl Model {
    pub(super) fn new(provider: Arc<DummyProvider>, discovers: bool) -> Self {
        Self { provider, discovers, discovered: None, offered: Vec::new(), nonce: Vec::new(), session: None }
    }

    pub(super) fn told_endpoints(&mut self, endpoints: Vec<EndpointDescription>) {
        self.discovered = Some(endpoints);
    }

    /// CreateSession was requested: the previous session is forgotten.
    pub(super) fn asked_for_session(&mut self) {
        self.session = None;
    }

    /// CreateSession was answered; `None` for an undecodable response or a refusal.
    pub(super) fn told_session(
        &mut self,
        request: &CreateSessionRequest,
        response: Option<CreateSessionResponse>,
        place: Place,
    ) {
        let Some(response) = response else { return };
        let believed = self.judge(request, &response, &place);
        if believed.is_ok() {
            self.nonce = response.server_nonce.as_bytes().to_vec();
            if self.discovered.take().is_some() || !self.discovers {
                self.offered.clone_from(&response.server_endpoints);
            }
        }
        let verdict = believed.and_then(|()| self.check_signature(request, &response, &place));
        let key = ephemeral::offered(&response.response_header.additional_header);
        self.session = Some(Session {
            token: response.authentication_token,
            place,
            certificate: response.server_certificate.as_bytes().to_vec(),
            nonce: response.server_nonce.as_bytes().to_vec(),
            client_nonce: request.client_nonce.as_bytes().to_vec(),
            key: key.and_then(Result::ok),
            offered: self.offered.clone(),
            verdict,
            activated: false,
        });
    }

    /// Checks everything except the signature.
    fn judge(
        &self,
        request: &CreateSessionRequest,
        response: &CreateSessionResponse,
        place: &Place,
    ) -> Result<(), &'static str> {
        if response.authentication_token.is_null() {
            return Err("there is no token");
        }
        if !place.policy.is_secure() {
            return Ok(());
        }
        if *response.server_certificate.as_bytes() != *place.certificate {
            return Err("the certificate is not the channel's");
        }
        let nonce = response.server_nonce.as_bytes();
        if !is_nonce(nonce) || *nonce == *self.nonce || *nonce == *request.client_nonce.as_bytes() {
            return Err("the nonce is not acceptable");
        }
        if self.discovered.as_ref().is_some_and(|known| !same(known, &response.server_endpoints)) {
            return Err("the endpoints are not those of discovery");
        }
        let uri = self.provider.application_uri(&place.certificate).unwrap_or_default();
        if response.server_endpoints.iter().any(|endpoint| endpoint.server.application_uri.as_str() != uri) {
            return Err("the endpoints are of another application");
        }
        Ok(())
    }

    fn check_signature(
        &self,
        request: &CreateSessionRequest,
        response: &CreateSessionResponse,
        place: &Place,
    ) -> Result<(), &'static str> {
        if !place.policy.is_secure() {
            return Ok(());
        }
        let binding = SessionBinding {
            channel_thumbprint: place.thumbprint.as_slice().into(),
            server_certificate: place.certificate.as_slice().into(),
            client_certificate: request.client_certificate.as_bytes().into(),
            server_nonce: response.server_nonce.as_bytes().to_vec(),
            client_nonce: request.client_nonce.as_bytes().to_vec(),
        };
        let data = binding.server_signature(place.policy).bytes(place.policy, &*self.provider);
        let signature = response.server_signature.signature.as_bytes();
        if self.is_signed(place.policy, &place.certificate, &data.expect("the dummy hashes"), signature) {
            Ok(())
        } else {
            Err("the signature is wrong")
        }
    }

    fn is_signed(&self, policy: SecurityPolicy, by: &[u8], data: &[u8], signature: &[u8]) -> bool {
        self.provider.peer_key(policy, by).is_ok_and(|key| key.verify(&[data], signature).is_ok())
    }

    /// A job that encrypts a secret: everything must be verified by then.
    pub(super) fn sealing(&self, job: &SealSecret) {
        let session = self.session.as_ref().expect("a secret without a session");
        assert!(session.activated || session.verdict.is_ok(), "a secret, though {:?}", session.verdict);
        assert!(is_nonce(&job.server_nonce), "a secret under a repeatable nonce");
        assert_eq!(job.server_nonce, session.nonce, "a secret under another nonce");
        assert_eq!(*job.receiver_certificate, *session.certificate, "a secret for another certificate");
        assert!(job.policy.is_secure() && job.policy.info().security_level > 0, "{}", job.policy);
        let vouched = match session.place.policy.is_secure() {
            true => *job.receiver_certificate == *session.place.certificate,
            false => !job.receiver_certificate.ends_with(b"untrusted"),
        };
        assert!(vouched, "a secret for an untrusted certificate");
        if uses_ephemeral_keys(job.policy) {
            let key = session.key.as_ref().expect("a secret for a key that was never offered");
            let public_key = key.public_key.as_bytes();
            assert_eq!(job.receiver_key.as_deref(), Some(public_key), "a secret for another key");
            let signature = key.signature.as_bytes();
            let is_signed = self.is_signed(job.policy, &session.certificate, public_key, signature);
            assert!(is_signed, "a secret for a key that the server has not signed");
        }
    }

    /// ActivateSession was requested.
    pub(super) fn asked_for_activation(
        &self,
        request: &ActivateSessionRequest,
        place: &Place,
        reader: &Reader<'_>,
    ) {
        let session = self.session.as_ref().expect("an activation without a session");
        assert_eq!(request.request_header.authentication_token, session.token);
        assert!(session.activated || session.verdict.is_ok(), "activated, though {:?}", session.verdict);
        if session.place.policy.is_secure() {
            let is_same = *place.certificate == *session.place.certificate;
            assert!(is_same, "a session is moved to another server");
            assert!(place.mode >= session.place.mode, "a session is moved to a weaker channel");
        }
        if place.policy.is_secure() {
            let own = self.provider.own_certificate(place.policy).unwrap_or_default();
            let binding = SessionBinding {
                channel_thumbprint: place.thumbprint.as_slice().into(),
                server_certificate: session.certificate.as_slice().into(),
                client_certificate: own.into(),
                server_nonce: session.nonce.clone(),
                client_nonce: session.client_nonce.clone(),
            };
            let data = binding.client_signature(place.policy).bytes(place.policy, &*self.provider);
            let signature = request.client_signature.signature.as_bytes();
            let data = data.expect("the dummy hashes");
            assert!(self.is_signed(place.policy, own, &data, signature), "the client signs something else");
        }
        let token = &request.user_identity_token;
        if let Ok(named) = token.decode::<UserNameIdentityToken>() {
            assert_eq!(named.user_name.as_str(), USER);
            let sealed = (named.encryption_algorithm.as_str(), named.password.as_bytes());
            let kind = UserTokenType::USER_NAME;
            session.check_secret(kind, named.policy_id.as_str(), sealed, place, reader, &self.provider);
        } else if let Ok(issued) = token.decode::<IssuedIdentityToken>() {
            let sealed = (issued.encryption_algorithm.as_str(), issued.token_data.as_bytes());
            let kind = UserTokenType::ISSUED_TOKEN;
            session.check_secret(kind, issued.policy_id.as_str(), sealed, place, reader, &self.provider);
        }
    }

    /// ActivateSession was answered.
    pub(super) fn told_activation(&mut self, response: Option<ActivateSessionResponse>, place: &Place) {
        let (Some(response), Some(session)) = (response, &mut self.session) else { return };
        let nonce = response.server_nonce.as_bytes();
        if place.policy.is_secure() && (!is_nonce(nonce) || *nonce == *session.nonce) {
            return;
        }
        self.nonce = nonce.to_vec();
        session.nonce = nonce.to_vec();
        let key = ephemeral::offered(&response.response_header.additional_header);
        session.key = key.and_then(Result::ok);
        session.activated = true;
    }
}

impl Session {
    /// The intended server can decrypt the secret, with an algorithm that it has announced.
    fn check_secret(
        &self,
        kind: UserTokenType,
        policy_id: &str,
        (algorithm, data): (&str, &[u8]),
        place: &Place,
        reader: &Reader<'_>,
        client: &DummyProvider,
    ) {
        let Some(name) = NAMES.iter().find(|name| certificate(name, KEY_BITS) == self.certificate) else {
            assert!(!place.policy.is_secure(), "a channel without a server");
            return;
        };
        let key = self.key.as_ref().map(|key| key.public_key.as_bytes()).unwrap_or_default();
        let open = |policy: SecurityPolicy| {
            let job = OpenSecret {
                policy,
                algorithm: algorithm.into(),
                data: data.to_vec(),
                server_nonce: self.nonce.clone(),
                now: reader.now,
                key: reader.keys.iter().find(|known| *known.public_key() == *key).cloned(),
                sender_certificate: client.own_certificate(policy).map(Into::into),
                secret_len_max: 1000,
            };
            job.run(&DummyProvider::new(name, KEY_BITS))
        };
        let readable: Vec<SecurityPolicy> = POLICIES
            .into_iter()
            .filter(|policy| open(*policy).is_ok_and(|secret| *secret.expose() == *reader.secret))
            .collect();
        // If the server announced a key without having its private half, it cannot decrypt the secret.
        let is_lost = algorithm.is_empty() && !reader.keys.iter().any(|known| *known.public_key() == *key);
        assert!(!readable.is_empty() || is_lost, "a secret that the server cannot read");
        if !place.policy.is_secure() || is_lost {
            return;
        }
        let fits = |token: &UserTokenPolicy| {
            let own = SecurityPolicy::from_uri(token.security_policy_uri.as_str());
            token.token_type == kind
                && token.policy_id.as_str() == policy_id
                && readable.contains(&own.unwrap_or(self.place.policy))
        };
        let is_this = |endpoint: &&EndpointDescription| {
            endpoint.security_policy_uri.as_str() == self.place.policy.uri()
                && endpoint.security_mode.0 == self.place.mode.number()
        };
        let announced = self.offered.iter().filter(is_this).flat_map(|known| &known.user_identity_tokens);
        assert!(
            announced.into_iter().any(fits),
            "a secret in a form that the server has not announced: {policy_id:?}"
        );
    }
}

/// Whether two lists have the same endpoints with our transport profile, by the fields of Part 4 §5.5.1.
fn same(one: &[EndpointDescription], other: &[EndpointDescription]) -> bool {
    let ours = |list: &[EndpointDescription]| -> Vec<EndpointDescription> {
        let is_ours =
            |known: &&EndpointDescription| ["", PROFILE].contains(&known.transport_profile_uri.as_str());
        list.iter().filter(is_ours).cloned().collect()
    };
    let (one, mut other) = (ours(one), ours(other));
    one.len() == other.len()
        && one.iter().all(|endpoint| {
            let at = other.iter().position(|known| is_equal(endpoint, known));
            at.map(|at| other.swap_remove(at)).is_some()
        })
}

fn is_equal(one: &EndpointDescription, other: &EndpointDescription) -> bool {
    let url = |endpoint: &EndpointDescription| {
        let url = endpoint.endpoint_url.as_str().to_owned();
        EndpointUrl::parse(&url)
            .map_or(url, |url| EndpointUrl { host: url.host.to_ascii_lowercase().into(), ..url }.to_string())
    };
    let tokens = |endpoint: &EndpointDescription| {
        let text = |text: &taktwerk_types::UaString| text.as_str().to_owned();
        let mut tokens: Vec<_> = endpoint
            .user_identity_tokens
            .iter()
            .map(|token| {
                (
                    token.token_type.0,
                    text(&token.policy_id),
                    text(&token.issued_token_type),
                    text(&token.issuer_endpoint_url),
                    text(&token.security_policy_uri),
                )
            })
            .collect();
        tokens.sort();
        tokens
    };
    one.server.application_uri.as_str() == other.server.application_uri.as_str()
        && url(one) == url(other)
        && one.transport_profile_uri.as_str() == other.transport_profile_uri.as_str()
        && one.security_policy_uri.as_str() == other.security_policy_uri.as_str()
        && one.security_mode == other.security_mode
        && one.security_level == other.security_level
        && tokens(one) == tokens(other)
}
