//! Sessions on channels of every kind, by clients with arbitrary signatures: who is accepted, and what a token permits.
//!
//! The cryptography is a toy without cost, so that the fuzzer gets past it, but it keeps the essential property: a
//! signature is by one key over one text. A model knows the sessions, their connections and users. Everything that the
//! server grants must be granted by the model; the server may be stricter.

use super::server::finish;
use crate::input::Input;
use crate::server::{Security, Server};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::ephemeral;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{
    MessageSecurityMode, Provider, SealSecret, Secret, SecurityPolicy, SessionBinding, SignedData,
};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, AnonymousIdentityToken, ApplicationDescription, CloseSessionRequest,
    CreateSessionRequest, IssuedIdentityToken, ReadRequest, ReadValueId, RequestHeader, SignatureData,
    TransferSubscriptionsRequest, UserNameIdentityToken, X509IdentityToken,
};
use taktwerk_server::config::{EndpointConfig, UserTokenConfig};
use taktwerk_server::identity::{Accepted, Credential, IdentityVerifier, Verification};
use taktwerk_server::{ConnectionId, ServerConfig};
use taktwerk_types::{ExtensionObject, NodeId, StatusCode};

const SECURITY: [Security; 4] = [
    (SecurityPolicy::None, MessageSecurityMode::None),
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign),
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt),
    (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt),
];
/// Applications, by their certificate names.
const NAMES: [&str; 2] = ["one", "two"];
/// Maximum connections.
const PLACES: usize = 3;
const KEY_BITS: u16 = 2048;

/// Knows joe by his password, and accepts tokens that begin with "for ".
struct Staff;

impl IdentityVerifier for Staff {
    fn verify(&self, credential: Credential) -> Verification {
        let is_right = match &credential {
            Credential::Password { user_name, password } => {
                &**user_name == "joe" && password.expose() == b"secret"
            }
            Credential::Certificate { .. } => true,
            Credential::IssuedToken { token } => token.expose().starts_with(b"for "),
            _ => false,
        };
        let verdict =
            if is_right { Ok(Accepted::named("joe")) } else { Err(StatusCode::BAD_USER_ACCESS_DENIED) };
        Verification::Blocking(Box::new(move || verdict))
    }
}

fn configure(config: &mut ServerConfig) {
    let tokens = |is_secured: bool| {
        let mut tokens = vec![
            UserTokenConfig::anonymous(),
            UserTokenConfig::user_name(),
            UserTokenConfig::issued_token("{}"),
        ];
        tokens.extend(is_secured.then(UserTokenConfig::certificate));
        tokens
    };
    let url = config.endpoints[0].url.clone();
    config.provider = Arc::new(DummyProvider::new("server", KEY_BITS));
    config.allow_clear_passwords = true;
    config.verifier = Some(Arc::new(Staff));
    let endpoint = |(policy, mode): Security| EndpointConfig {
        url: url.clone(),
        policy,
        mode,
        user_tokens: tokens(policy.is_secure()),
    };
    config.endpoints = SECURITY.map(endpoint).into();
}

/// A connection.
struct Place {
    client: usize,
    connection: Option<ConnectionId>,
    security: Security,
    name: &'static str,
    provider: Arc<DummyProvider>,
}

/// A session that was created, active or not.
struct Known {
    token: NodeId,
    security: Security,
    /// The certificate name with which it was created.
    name: &'static str,
    /// The connection that its requests must use.
    connection: Option<ConnectionId>,
    user: Option<Who>,
    server_nonce: Vec<u8>,
    client_nonce: Vec<u8>,
    key: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Anonymous,
    Named,
    Certificate,
    Issued,
}

struct Scene {
    server: Server,
    places: Vec<Option<Place>>,
    known: Vec<Known>,
    handle: u32,
}

/// A sequence of client actions around sessions.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Scene {
        server: Server::with(configure),
        places: (0..PLACES).map(|_| None).collect(),
        known: Vec::new(),
        handle: 0,
    };
    while !input.is_empty() {
        scene.act(&mut input);
    }
    finish(scene.server);
}

impl Scene {
    fn act(&mut self, input: &mut Input<'_>) {
        let at = input.below(PLACES);
        let is_there = self.places[at].as_ref().is_some_and(|place| {
            place.connection.is_some() && self.server.connection(place.client) == place.connection
        });
        match input.below(10) {
            choice if !is_there || choice == 0 => self.connect(at, input),
            1 | 2 => self.create(at, input),
            3..=5 => self.activate(at, input),
            6 | 7 => self.use_token(at, input),
            8 => self.close(at, input),
            _ => match input.below(3) {
                0 => self.leave(at),
                1 => self.server.pass(Duration::from_millis(u64::from(input.u16()))),
                _ => {
                    let client = self.places[at].as_ref().map_or(0, |place| place.client);
                    self.server.message(client, input.piece());
                }
            },
        }
    }

    fn connect(&mut self, at: usize, input: &mut Input<'_>) {
        self.leave(at);
        let security = input.pick(&SECURITY);
        let name = input.pick(&NAMES);
        let provider = Arc::new(DummyProvider::new(name, KEY_BITS));
        let of_server = certificate("server", KEY_BITS);
        let client = self.server.connect_with(provider.clone(), security, &of_server);
        let connection = self.server.connection(client);
        self.places[at] = Some(Place { client, connection, security, name, provider });
    }

    fn leave(&mut self, at: usize) {
        if let Some(place) = self.places[at].take()
            && self.server.connection(place.client) == place.connection
        {
            self.server.disconnect(place.client);
        }
    }

    fn header(&mut self, token: &NodeId) -> RequestHeader {
        self.handle += 1;
        RequestHeader {
            authentication_token: token.clone(),
            request_handle: self.handle,
            timeout_hint: 5000,
            ..RequestHeader::default()
        }
    }

    fn token(&self, input: &mut Input<'_>) -> (NodeId, Option<usize>) {
        match self.known.len() {
            0 => (NodeId::opaque(0, input.piece().to_vec()), None),
            len => {
                let at = input.below(len);
                (self.known[at].token.clone(), Some(at))
            }
        }
    }

    fn create(&mut self, at: usize, input: &mut Input<'_>) {
        let header = self.header(&NodeId::NULL);
        let Some(place) = &self.places[at] else { return };
        let (policy, _) = place.security;
        let nonce_len = input.pick(&[32, 32, 32, 32, 64, 128, 0, 31, 129]);
        let named = input.pick(&[place.name, place.name, place.name, "", NAMES[0], NAMES[1], "server"]);
        let described = input.pick(&[place.name, place.name, place.name, NAMES[0], NAMES[1]]);
        let own = |name: &str| if name.is_empty() { Vec::new() } else { certificate(name, KEY_BITS) };
        let uri = place.provider.application_uri(&own(described)).unwrap_or_default();
        let client_nonce = vec![self.handle as u8; nonce_len];
        let mut request = CreateSessionRequest {
            request_header: header,
            client_description: ApplicationDescription {
                application_uri: uri.into(),
                ..ApplicationDescription::default()
            },
            client_nonce: client_nonce.clone().into(),
            client_certificate: own(named).into(),
            requested_session_timeout: 60_000.0,
            ..CreateSessionRequest::default()
        };
        if uses_ephemeral_keys(policy) && input.flag() {
            request.request_header.additional_header = ephemeral::ask(policy);
        }
        let Some(response) = self.server.call(place.client, &request) else { return };
        if policy.is_secure() {
            assert!((32..=128).contains(&nonce_len), "a nonce of {nonce_len} bytes");
            assert_eq!(
                (named, described),
                (place.name, place.name),
                "another certificate than the channel's"
            );
        }
        assert!(self.known.iter().all(|known| known.token != response.authentication_token));
        assert!(response.server_nonce.as_bytes().len() >= 32);
        let offered = ephemeral::offered(&response.response_header.additional_header);
        self.known.push(Known {
            token: response.authentication_token,
            security: place.security,
            name: place.name,
            connection: place.connection,
            user: None,
            server_nonce: response.server_nonce.as_bytes().to_vec(),
            client_nonce,
            key: offered.and_then(Result::ok).map(|key| key.public_key.as_bytes().to_vec()),
        });
        if self.known.len() > 8 {
            self.known.remove(0);
        }
    }

    fn activate(&mut self, at: usize, input: &mut Input<'_>) {
        let (token, which) = self.token(input);
        let header = self.header(&token);
        let Some(place) = &self.places[at] else { return };
        let (policy, mode) = place.security;
        let thumbprint = self.server.thumbprint(place.client);
        let known = which.map(|which| &self.known[which]);
        let mut binding = SessionBinding {
            channel_thumbprint: thumbprint.into(),
            server_certificate: certificate("server", KEY_BITS).into(),
            client_certificate: certificate(place.name, KEY_BITS).into(),
            server_nonce: known.map(|known| known.server_nonce.clone()).unwrap_or_default(),
            client_nonce: known.map(|known| known.client_nonce.clone()).unwrap_or_default(),
        };
        // One in four signatures is wrong.
        let is_genuine = match input.below(16) {
            0 => {
                binding.server_nonce.iter_mut().for_each(|byte| *byte ^= 1);
                false
            }
            1 if !policy.info().enhancements => true,
            1 => {
                binding.channel_thumbprint = vec![1; 64].into();
                false
            }
            _ => true,
        };
        let signer = input.pick(&[place.name, place.name, place.name, place.name, NAMES[0], NAMES[1]]);
        let sign = |name: &str, data: &SignedData| {
            let provider = DummyProvider::new(name, KEY_BITS);
            let mut signature = Vec::new();
            let bytes = data.bytes(policy, &provider).expect("the dummy hashes");
            provider.sign(policy, &[&bytes], &mut signature).expect("the dummy signs");
            SignatureData {
                algorithm: policy.info().asymmetric_signature.uri().into(),
                signature: signature.into(),
            }
        };
        let mut request =
            ActivateSessionRequest { request_header: header, ..ActivateSessionRequest::default() };
        if policy.is_secure() {
            request.client_signature = sign(signer, &binding.client_signature(policy));
        }
        let seal = |secret: &[u8], nonce: &[u8]| -> (Vec<u8>, String) {
            if !policy.is_secure() {
                return (secret.to_vec(), String::new());
            }
            let seal = SealSecret {
                policy,
                receiver_certificate: Arc::clone(&binding.server_certificate),
                server_nonce: nonce.to_vec(),
                secret: Secret::new(secret.to_vec()),
                signing_time: self.server.now.utc,
                receiver_key: known.and_then(|known| known.key.clone()),
            };
            seal.run(&*place.provider)
                .map_or((vec![1], String::new()), |sealed| (sealed.bytes, sealed.algorithm.into()))
        };
        let is_right = !input.one_in(4);
        let nonce = known.map(|known| known.server_nonce.clone()).unwrap_or_default();
        let who = input.pick(&[Who::Anonymous, Who::Anonymous, Who::Named, Who::Certificate, Who::Issued]);
        request.user_identity_token = match who {
            Who::Anonymous => ExtensionObject::new(&AnonymousIdentityToken::default()),
            Who::Named => {
                let (password, algorithm) = seal(if is_right { b"secret" } else { b"guess" }, &nonce);
                ExtensionObject::new(&UserNameIdentityToken {
                    policy_id: "username".into(),
                    user_name: "joe".into(),
                    password: password.into(),
                    encryption_algorithm: algorithm.into(),
                })
            }
            Who::Issued => {
                let (token, algorithm) = seal(if is_right { b"for joe" } else { b"forged" }, &nonce);
                ExtensionObject::new(&IssuedIdentityToken {
                    policy_id: "jwt".into(),
                    token_data: token.into(),
                    encryption_algorithm: algorithm.into(),
                })
            }
            Who::Certificate => {
                if policy.is_secure() {
                    let name = if is_right { "joe" } else { "thief" };
                    request.user_token_signature = sign(name, &binding.user_signature(policy));
                }
                ExtensionObject::new(&X509IdentityToken {
                    policy_id: "certificate".into(),
                    certificate_data: certificate("joe", KEY_BITS).into(),
                })
            }
        };
        if uses_ephemeral_keys(policy) {
            request.request_header.additional_header = ephemeral::ask(policy);
        }
        let Some(response) = self.server.call(place.client, &request) else { return };
        // It was granted: check that it was allowed.
        let known = which.map(|which| &mut self.known[which]).expect("an unknown token");
        let is_same = known.connection == place.connection;
        assert_eq!(known.security, place.security, "a session on another kind of channel");
        if policy.is_secure() {
            assert!(is_genuine && signer == place.name, "an activation that the client has not signed");
            assert_eq!(known.name, place.name, "another application");
        }
        assert!(is_right || who == Who::Anonymous, "{who:?} without the right secret");
        assert!(who != Who::Certificate || policy.is_secure(), "nothing was proved");
        assert!(is_same || known.user.is_some(), "a first activation over another channel");
        assert!(is_same || known.user == Some(who), "another user over another channel");
        let is_readable = mode == MessageSecurityMode::Sign;
        assert!(is_same || !is_readable || who != Who::Anonymous, "Anonymous moved to a readable channel");
        let fresh = response.server_nonce.as_bytes().to_vec();
        assert!(fresh.len() >= 32 && fresh != known.server_nonce, "a nonce that comes again");
        known.server_nonce = fresh;
        known.connection = place.connection;
        known.user = Some(who);
        let offered = ephemeral::offered(&response.response_header.additional_header);
        known.key = offered.and_then(Result::ok).map(|key| key.public_key.as_bytes().to_vec());
    }

    /// Sends requests with a token, which must be answered only on its connection and after activation.
    fn use_token(&mut self, at: usize, input: &mut Input<'_>) {
        let (token, which) = self.token(input);
        let header = self.header(&token);
        let Some(place) = &self.places[at] else { return };
        let granted = if input.flag() {
            let nodes_to_read =
                vec![ReadValueId { node_id: 2258.into(), attribute_id: 13, ..ReadValueId::default() }];
            let request = ReadRequest { request_header: header, nodes_to_read, ..ReadRequest::default() };
            self.granted(place.client, &request)
        } else {
            let request = TransferSubscriptionsRequest {
                request_header: header,
                subscription_ids: vec![input.u32()],
                ..TransferSubscriptionsRequest::default()
            };
            self.granted(place.client, &request)
        };
        let may = which.map(|which| &self.known[which]).is_some_and(|known| {
            known.user.is_some()
                && self.places[at].as_ref().is_some_and(|place| known.connection == place.connection)
        });
        assert!(may || !granted, "a service for a token that is not valid here");
    }

    fn granted<R: Request>(&mut self, client: usize, request: &R) -> bool {
        self.server.call(client, request).is_some()
    }

    fn close(&mut self, at: usize, input: &mut Input<'_>) {
        let (token, which) = self.token(input);
        let header = self.header(&token);
        let Some(place) = &self.places[at] else { return };
        let request = CloseSessionRequest { request_header: header, delete_subscriptions: input.flag() };
        if self.server.call(place.client, &request).is_some() {
            let known = which.map(|which| self.known.remove(which)).expect("an unknown token");
            assert_eq!(known.connection, place.connection, "closed from another connection");
        }
    }
}
