//! Sessions on secured channels: creation, activation and transfer between channels.

use super::*;
use crate::config::{EndpointConfig, UserTokenConfig};
use crate::service::table::{Gate, find};
use schema::{
    ActivateSessionRequest, ActivateSessionResponse, CloseSessionRequest, CreateSessionRequest,
    CreateSessionResponse, ReadRequest, SignatureData,
};
use taktwerk_channel::ephemeral;
use taktwerk_crypto::secret::uses_ephemeral_keys;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy, SessionBinding, SignedData};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_types::ExtensionObject;

pub(super) type Security = (SecurityPolicy, MessageSecurityMode);

pub(super) const SIGN: Security = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign);
pub(super) const ENCRYPT: Security = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
const OTHER: Security = (SecurityPolicy::Aes256_Sha256_RsaPss, MessageSecurityMode::SignAndEncrypt);
const BOUND: Security = (SecurityPolicy::ECC_nistP256_AesGcm, MessageSecurityMode::SignAndEncrypt);

/// A server with these endpoints and user tokens.
pub(super) fn server(security: &[Security], tokens: &[UserTokenConfig]) -> Server {
    server_with(security, tokens, |_| {})
}

pub(super) fn server_with(
    security: &[Security],
    tokens: &[UserTokenConfig],
    change: impl FnOnce(&mut ServerConfig),
) -> Server {
    Server::with(|config| {
        config.provider = Arc::new(DummyProvider::new("server", 2048));
        config.endpoints = security
            .iter()
            .map(|(policy, mode)| EndpointConfig {
                url: URL.to_owned(),
                policy: *policy,
                mode: *mode,
                user_tokens: tokens.to_vec(),
            })
            .collect();
        change(config);
    })
}

/// A client with the data of its session.
pub(super) struct Party {
    pub(super) client: Client,
    pub(super) provider: Arc<DummyProvider>,
    pub(super) binding: SessionBinding,
    /// The key for the next secret.
    pub(super) receiver_key: Option<Vec<u8>>,
}

/// The parameters of a client that knows the server's certificate.
fn opening((policy, mode): Security) -> OpenParams {
    OpenParams {
        policy,
        mode,
        server_certificate: policy.is_secure().then(|| certificate("server", 2048).into()),
        ..OpenParams::insecure(URL)
    }
}

/// A client whose OpenSecureChannel request has arrived but is not processed yet.
fn knocking(server: &mut Server) -> Client {
    let mut client = server.dial(Arc::new(DummyProvider::new("client", 2048)), opening(ENCRYPT));
    client.exchange(server);
    client.exchange(server);
    client
}

impl Party {
    /// A client with an open channel.
    pub(super) fn connect(server: &mut Server, name: &str, security: Security) -> Self {
        let provider = Arc::new(DummyProvider::new(name, 2048));
        let client = server.connect_with(Arc::clone(&provider) as Arc<dyn Provider>, opening(security));
        let binding = SessionBinding {
            channel_thumbprint: client.channel.thumbprint().into(),
            server_certificate: certificate("server", 2048).into(),
            client_certificate: certificate(name, 2048).into(),
            server_nonce: Vec::new(),
            client_nonce: vec![7; 32],
        };
        Self { client, provider, binding, receiver_key: None }
    }

    /// A client with a session that is not activated.
    pub(super) fn created(server: &mut Server, name: &str, security: Security) -> Self {
        let mut party = Self::connect(server, name, security);
        party.create(server).unwrap();
        party
    }

    /// A client with an anonymous session.
    pub(super) fn anonymous(server: &mut Server, name: &str, security: Security) -> Self {
        let mut party = Self::created(server, name, security);
        party.activate(server, &ExtensionObject::NULL).unwrap();
        party
    }

    pub(super) fn policy(&self) -> SecurityPolicy {
        self.client.channel.policy()
    }

    pub(super) fn create_request(&mut self) -> CreateSessionRequest {
        let uri = self.provider.application_uri(&self.binding.client_certificate).unwrap();
        CreateSessionRequest {
            request_header: RequestHeader { authentication_token: NodeId::NULL, ..self.client.header() },
            client_description: schema::ApplicationDescription {
                application_uri: uri.into(),
                ..Default::default()
            },
            endpoint_url: URL.into(),
            client_nonce: self.binding.client_nonce.clone().into(),
            client_certificate: (&*self.binding.client_certificate).into(),
            requested_session_timeout: 60_000.0,
            ..Default::default()
        }
    }

    pub(super) fn create(&mut self, server: &mut Server) -> Result<CreateSessionResponse, StatusCode> {
        let mut request = self.create_request();
        if uses_ephemeral_keys(self.policy()) {
            request.request_header.additional_header = ephemeral::ask(self.policy());
        }
        let response = self.client.call(server, &request)?;
        self.take_key(&response.response_header.additional_header);
        self.client.token = response.authentication_token.clone();
        self.binding.server_nonce = response.server_nonce.as_bytes().to_vec();
        Ok(response)
    }

    pub(super) fn sign(&self, policy: SecurityPolicy, data: &SignedData) -> SignatureData {
        let mut signature = Vec::new();
        let bytes = data.bytes(policy, &*self.provider).unwrap();
        self.provider.sign(policy, &[&bytes], &mut signature).unwrap();
        SignatureData {
            algorithm: policy.info().asymmetric_signature.uri().into(),
            signature: signature.into(),
        }
    }

    pub(super) fn activate_request(&mut self, identity: &ExtensionObject) -> ActivateSessionRequest {
        let policy = self.policy();
        let client_signature = match policy {
            SecurityPolicy::None => SignatureData::default(),
            policy => self.sign(policy, &self.binding.client_signature(policy)),
        };
        ActivateSessionRequest {
            request_header: self.client.header(),
            client_signature,
            user_identity_token: identity.clone(),
            ..Default::default()
        }
    }

    pub(super) fn activate(
        &mut self,
        server: &mut Server,
        identity: &ExtensionObject,
    ) -> Result<(), StatusCode> {
        let request = self.activate_request(identity);
        self.activate_with(server, &request)
    }

    pub(super) fn activate_with(
        &mut self,
        server: &mut Server,
        request: &ActivateSessionRequest,
    ) -> Result<(), StatusCode> {
        let response: ActivateSessionResponse = self.client.call(server, request)?;
        self.take_key(&response.response_header.additional_header);
        let nonce = response.server_nonce.as_bytes().to_vec();
        assert!(nonce.len() >= 32 && nonce != self.binding.server_nonce, "a new nonce");
        self.binding.server_nonce = nonce;
        Ok(())
    }

    /// Stores the key offered by a response, if it is signed by the server.
    fn take_key(&mut self, header: &ExtensionObject) {
        let Some(Ok(key)) = ephemeral::offered(header) else { return };
        let peer = self.provider.peer_key(self.policy(), &self.binding.server_certificate).unwrap();
        peer.verify(&[key.public_key.as_bytes()], key.signature.as_bytes()).unwrap();
        self.receiver_key = Some(key.public_key.as_bytes().to_vec());
    }

    /// Takes over the session of another client.
    pub(super) fn adopt(&mut self, other: &Self) {
        self.client.token = other.client.token.clone();
        self.binding.server_nonce = other.binding.server_nonce.clone();
        self.binding.client_nonce = other.binding.client_nonce.clone();
        self.receiver_key = other.receiver_key.clone();
    }

    /// Whether the session is usable on this channel.
    pub(super) fn works(&mut self, server: &mut Server) -> Result<(), StatusCode> {
        let read = ReadRequest { request_header: self.client.header(), ..Default::default() };
        match self.client.call(server, &read).unwrap_err() {
            StatusCode::BAD_NOTHING_TO_DO => Ok(()),
            status => Err(status),
        }
    }
}

fn anonymous() -> [UserTokenConfig; 1] {
    [UserTokenConfig::anonymous()]
}

#[test]
fn every_policy_and_mode_carries_sessions() {
    for policy in SecurityPolicy::ALL.iter().copied().filter(|policy| policy.is_secure()) {
        for mode in [MessageSecurityMode::Sign, MessageSecurityMode::SignAndEncrypt] {
            let mut server = server(&[(policy, mode)], &anonymous());
            let mut party = Party::connect(&mut server, "client", (policy, mode));
            let created = party.create(&mut server).unwrap();
            let data = party.binding.server_signature(policy).bytes(policy, &*party.provider).unwrap();
            let key = party.provider.peer_key(policy, &party.binding.server_certificate).unwrap();
            key.verify(&[&data], created.server_signature.signature.as_bytes()).unwrap();
            assert_eq!(created.server_signature.algorithm, policy.info().asymmetric_signature.uri());
            assert_eq!(*created.server_certificate.as_bytes(), *party.binding.server_certificate);
            party.activate(&mut server, &ExtensionObject::NULL).unwrap();
            party.works(&mut server).unwrap();
            // Again, with the new nonce.
            party.activate(&mut server, &ExtensionObject::NULL).unwrap();
            party.works(&mut server).unwrap();
        }
    }
}

#[test]
fn nothing_is_signed_for_an_untrusted_client() {
    let refused = |change: &dyn Fn(&mut CreateSessionRequest)| {
        let mut server = server(&[ENCRYPT], &anonymous());
        let mut party = Party::connect(&mut server, "client", ENCRYPT);
        let mut request = party.create_request();
        change(&mut request);
        let result = party.client.call(&mut server, &request);
        assert_eq!(server.shard.session_count(), usize::from(result.is_ok()));
        let counters = &server.shard.shared().live().counters;
        assert_eq!(counters.security_rejected_session_count.value(), u32::from(result.is_err()));
        assert_eq!(counters.current_session_count.value(), u32::from(result.is_ok()));
        result.err()
    };
    for len in [32, 33, 64, 128] {
        assert_eq!(refused(&|request| request.client_nonce = vec![1; len].into()), None);
    }
    for len in [0, 1, 16, 31, 129, 4096] {
        let status = refused(&|request| request.client_nonce = vec![1; len].into());
        assert_eq!(status, Some(StatusCode::BAD_NONCE_INVALID), "{len}");
    }
    let failed = Some(StatusCode::BAD_SECURITY_CHECKS_FAILED);
    for other in [certificate("other", 2048), certificate("client", 4096), b"junk".to_vec(), vec![]] {
        assert_eq!(refused(&|request| request.client_certificate = other.clone().into()), failed);
    }
    for uri in ["", "urn:dummy:clien", "urn:dummy:client2", "urn:dummy:Client", "urn:dummy:client "] {
        let status = refused(&|request| request.client_description.application_uri = uri.into());
        assert_eq!(status, Some(StatusCode::BAD_CERTIFICATE_URI_INVALID), "{uri:?}");
    }
}

#[test]
fn the_servers_own_certificate_is_refused() {
    let mut server = server(&[ENCRYPT], &anonymous());
    let mut party = Party::connect(&mut server, "server", ENCRYPT);
    assert_eq!(party.create(&mut server).unwrap_err(), StatusCode::BAD_SECURITY_CHECKS_FAILED);
    assert_eq!(server.shard.session_count(), 0);
}

#[test]
fn a_channel_without_an_endpoint_gives_no_session() {
    // Discovery works without security, sessions do not.
    let mut server = server(&[ENCRYPT], &anonymous());
    let mut client = server.connect();
    assert_eq!(client.create(&mut server).unwrap_err(), StatusCode::BAD_SECURITY_POLICY_REJECTED);
}

#[test]
fn disconnecting_during_signing_leaves_nothing_behind() {
    let mut server = server(&[ENCRYPT], &anonymous());
    let mut party = Party::connect(&mut server, "client", ENCRYPT);
    let request = party.create_request();
    party.client.send(&mut server, CreateSessionRequest::BINARY_ENCODING_ID, &request);
    assert_eq!(server.shard.session_count(), 0, "nothing exists before the signature");
    server.shard.closed(party.client.connection, server.now);
    assert!(server.run_effect());
    assert_eq!(server.shard.session_count(), 0);
    assert_eq!(server.shard.shared().live().counters.current_session_count.value(), 0);
}

#[test]
fn signatures_beyond_the_budget_are_not_made() {
    let mut server = server_with(&[ENCRYPT], &anonymous(), |config| config.limits.effects_max = 2);
    let mut party = Party::connect(&mut server, "client", ENCRYPT);
    let [first, second, third] = [0; 3].map(|_| {
        let request = party.create_request();
        party.client.send(&mut server, CreateSessionRequest::BINARY_ENCODING_ID, &request)
    });
    let busy = party.client.response::<CreateSessionResponse>(third).unwrap();
    assert_eq!(busy.unwrap_err(), StatusCode::BAD_SERVER_TOO_BUSY);
    while server.run_effect() {}
    party.client.drain(&mut server);
    for id in [first, second] {
        assert!(party.client.response::<CreateSessionResponse>(id).unwrap().is_ok());
    }
}

/// An attempt without the key.
type Forgery = Box<dyn Fn(&mut Party, &mut ActivateSessionRequest)>;

#[test]
fn the_client_must_sign_each_activation() {
    for security in [SIGN, ENCRYPT, BOUND] {
        let refused = |change: &dyn Fn(&mut Party, &mut ActivateSessionRequest)| {
            let mut server = server(&[security], &anonymous());
            let mut party = Party::created(&mut server, "client", security);
            let mut request = party.activate_request(&ExtensionObject::NULL);
            change(&mut party, &mut request);
            let result = party.client.call(&mut server, &request);
            if result.is_err() {
                // The right signature is still accepted.
                party.activate(&mut server, &ExtensionObject::NULL).unwrap();
            }
            result.err()
        };
        assert_eq!(refused(&|_, _| {}), None);
        assert_eq!(refused(&|_, request| request.client_signature.algorithm = "".into()), None);
        let resign = move |party: &Party, change: &dyn Fn(&mut SessionBinding)| {
            let mut binding = party.binding.clone();
            change(&mut binding);
            party.sign(security.0, &binding.client_signature(security.0))
        };
        let mut wrong: Vec<Forgery> = vec![
            Box::new(|_, request| request.client_signature = SignatureData::default()),
            Box::new(|_, request| request.client_signature.signature = vec![0; 256].into()),
            Box::new(move |party, request| {
                request.client_signature = resign(party, &|binding| binding.server_nonce[0] ^= 1);
            }),
            Box::new(move |party, request| {
                request.client_signature =
                    resign(party, &|binding| binding.server_certificate = certificate("other", 2048).into());
            }),
            Box::new(move |party, request| {
                let stranger = Arc::new(DummyProvider::new("stranger", 2048));
                let provider = core::mem::replace(&mut party.provider, stranger);
                request.client_signature = resign(party, &|_| {});
                party.provider = provider;
            }),
        ];
        if security != BOUND {
            wrong.push(Box::new(|_, request| {
                request.client_signature.algorithm =
                    SecurityPolicy::Basic128Rsa15.info().asymmetric_signature.uri().into();
            }));
        } else {
            for change in [
                (|binding: &mut SessionBinding| binding.channel_thumbprint = vec![1; 64].into())
                    as fn(&mut SessionBinding),
                |binding| binding.client_nonce[0] ^= 1,
                |binding| binding.client_certificate = certificate("other", 2048).into(),
            ] {
                wrong.push(Box::new(move |party, request| {
                    request.client_signature = resign(party, &change);
                }));
            }
        }
        for (number, change) in wrong.iter().enumerate() {
            let status = refused(&**change);
            assert_eq!(status, Some(StatusCode::BAD_APPLICATION_SIGNATURE_INVALID), "{number} {security:?}");
        }
    }
}

#[test]
fn a_nonce_is_accepted_once() {
    let mut server = server(&[ENCRYPT], &anonymous());
    let mut party = Party::created(&mut server, "client", ENCRYPT);
    let first = party.activate_request(&ExtensionObject::NULL);
    party.activate_with(&mut server, &first).unwrap();
    // Replay.
    let status = party.client.call(&mut server, &first).unwrap_err();
    assert_eq!(status, StatusCode::BAD_APPLICATION_SIGNATURE_INVALID);
    // Two with the same nonce, both verified before either is answered.
    let request = party.activate_request(&ExtensionObject::NULL);
    let ids =
        [0, 1].map(|_| party.client.send(&mut server, ActivateSessionRequest::BINARY_ENCODING_ID, &request));
    while server.run_effect() {}
    party.client.drain(&mut server);
    let results = ids.map(|id| party.client.response::<ActivateSessionResponse>(id).unwrap().err());
    assert_eq!(results, [None, Some(StatusCode::BAD_NONCE_INVALID)]);
}

#[test]
fn tokens_and_nonces_do_not_repeat() {
    let mut server = server(&[ENCRYPT], &anonymous());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let mut party = Party::connect(&mut server, "client", ENCRYPT);
        let created = party.create(&mut server).unwrap();
        assert!(seen.insert(created.server_nonce.as_bytes().to_vec()));
        assert!(seen.insert(format!("{:?}", created.authentication_token).into_bytes()));
        assert!(seen.insert(format!("{:?}", created.session_id).into_bytes()));
        for _ in 0..3 {
            party.activate(&mut server, &ExtensionObject::NULL).unwrap();
            assert!(seen.insert(party.binding.server_nonce.clone()));
        }
    }
}

#[test]
fn a_session_stays_on_its_channel_until_it_is_activated() {
    let mut server = server(&[ENCRYPT], &anonymous());
    let first = Party::created(&mut server, "client", ENCRYPT);
    let mut other = Party::connect(&mut server, "client", ENCRYPT);
    other.adopt(&first);
    let status = other.activate(&mut server, &ExtensionObject::NULL).unwrap_err();
    assert_eq!(status, StatusCode::BAD_SECURE_CHANNEL_ID_INVALID);
    assert_eq!(server.shard.session_count(), 1, "another client does not end it");
}

#[test]
fn only_the_same_application_can_move_a_session() {
    for security in [ENCRYPT, BOUND] {
        let mut server = server(&[security, SIGN, OTHER], &anonymous());
        let mut first = Party::anonymous(&mut server, "client", security);
        for (name, other_security) in [("other", security), ("client", SIGN), ("client", OTHER)] {
            let mut other = Party::connect(&mut server, name, other_security);
            other.adopt(&first);
            let status = other.activate(&mut server, &ExtensionObject::NULL).unwrap_err();
            assert_eq!(status, StatusCode::BAD_SECURITY_CHECKS_FAILED, "{name} {other_security:?}");
            assert_eq!(other.works(&mut server), Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID));
            first.works(&mut server).unwrap();
        }
        let mut again = Party::connect(&mut server, "client", security);
        again.adopt(&first);
        // With channel binding, a signature for the old channel is not valid on the new one.
        let mut stale = again.activate_request(&ExtensionObject::NULL);
        stale.client_signature = first.sign(security.0, &first.binding.client_signature(security.0));
        assert_eq!(again.client.call(&mut server, &stale).is_err(), security == BOUND);
        if security == BOUND {
            again.activate(&mut server, &ExtensionObject::NULL).unwrap();
        }
        again.works(&mut server).unwrap();
        assert_eq!(first.works(&mut server), Err(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID));
        assert_eq!(server.shard.session_count(), 1);
    }
}

#[test]
fn anonymous_does_not_move_to_an_unencrypted_channel() {
    let mut server = server(&[SIGN], &anonymous());
    let mut first = Party::anonymous(&mut server, "client", SIGN);
    let mut again = Party::connect(&mut server, "client", SIGN);
    again.adopt(&first);
    let status = again.activate(&mut server, &ExtensionObject::NULL).unwrap_err();
    assert_eq!(status, StatusCode::BAD_IDENTITY_CHANGE_NOT_SUPPORTED);
    // On its own channel it can be activated any number of times.
    first.activate(&mut server, &ExtensionObject::NULL).unwrap();
    first.works(&mut server).unwrap();
}

/// All requests of the schema, and some unknown ones.
fn requests() -> Vec<u32> {
    let known = |id: &u32| schema::message_name(*id).is_some_and(|name| name.ends_with("Request"));
    let mut ids: Vec<u32> = (0..=u32::from(u16::MAX)).filter(known).collect();
    assert!(ids.len() >= 37, "{}", ids.len());
    ids.extend([0, 1, 9999, u32::from(u16::MAX)]);
    ids
}

#[test]
fn no_service_but_discovery_works_without_an_activated_session() {
    for type_id in requests() {
        let status = |prepare: &dyn Fn(&mut Server) -> Party| {
            let mut server = server(&[ENCRYPT], &anonymous());
            let mut party = prepare(&mut server);
            let before = server.shard.session_count();
            let header = party.client.header();
            let id = party.client.send(&mut server, type_id, &header);
            while server.run_effect() {}
            party.client.drain(&mut server);
            let result = party.client.response::<ServiceFault>(id).map(|result| result.unwrap_err());
            (result, before - server.shard.session_count())
        };
        let without = status(&|server| Party::connect(server, "client", ENCRYPT));
        let unactivated = status(&|server| Party::created(server, "client", ENCRYPT));
        let elsewhere = status(&|server| {
            let first = Party::anonymous(server, "client", ENCRYPT);
            let mut other = Party::connect(server, "client", ENCRYPT);
            other.adopt(&first);
            other
        });
        let closed = status(&|server| {
            let mut party = Party::anonymous(server, "client", ENCRYPT);
            let request =
                CloseSessionRequest { request_header: party.client.header(), delete_subscriptions: true };
            party.client.call(server, &request).unwrap();
            party
        });
        let name = schema::message_name(type_id).unwrap_or("unknown");
        let session_unknown = (Some(StatusCode::BAD_SESSION_ID_INVALID), 0);
        match find(type_id).gate {
            Gate::Activated => {
                assert_eq!(without, session_unknown, "{name}");
                assert_eq!(unactivated, (Some(StatusCode::BAD_SESSION_NOT_ACTIVATED), 1), "{name}");
                assert_eq!(elsewhere, (Some(StatusCode::BAD_SECURE_CHANNEL_ID_INVALID), 0), "{name}");
                assert_eq!(closed, session_unknown, "{name}");
            }
            Gate::Created | Gate::Any => {
                assert_eq!((&without, &closed), (&session_unknown, &session_unknown), "{name}");
                assert_eq!(elsewhere.1, 0, "{name}");
            }
            // A body that is too short, or an unsupported service.
            Gate::Open => {
                for (status, ended) in [without, unactivated, elsewhere, closed] {
                    let status = status.unwrap();
                    assert!(
                        [StatusCode::BAD_DECODING_ERROR, StatusCode::BAD_SERVICE_UNSUPPORTED]
                            .contains(&status),
                        "{name} {status}"
                    );
                    assert_eq!(ended, 0, "{name}");
                }
            }
        }
    }
}

#[test]
fn endpoints_describe_their_requirements() {
    let tokens = [UserTokenConfig::anonymous(), UserTokenConfig::user_name().with_policy(ENCRYPT.0)];
    let mut server = server(&[(SecurityPolicy::None, MessageSecurityMode::None), SIGN, OTHER], &tokens);
    let mut client = server.connect();
    let request = schema::GetEndpointsRequest { request_header: client.header(), ..Default::default() };
    let endpoints = client.call(&mut server, &request).unwrap().endpoints;
    assert_eq!(endpoints.len(), 3);
    for endpoint in &endpoints {
        // Also the one without security: passwords are encrypted for it.
        assert_eq!(*endpoint.server_certificate.as_bytes(), certificate("server", 2048));
        assert_eq!(endpoint.user_identity_tokens[1].security_policy_uri, ENCRYPT.0.uri());
        assert_eq!(endpoint.user_identity_tokens[1].policy_id, "username-Basic256Sha256");
    }
    let levels: Vec<u8> = endpoints.iter().map(|endpoint| endpoint.security_level).collect();
    // Clients that take the first endpoint get a secured one.
    assert!(levels[0] > 0 && levels[1] > levels[0] && levels[2] == 0, "{levels:?}");
    let mut party = Party::connect(&mut server, "client", SIGN);
    assert_eq!(party.create(&mut server).unwrap().server_endpoints, endpoints);
}

/// Part 12 §7.8.2.5: clients that are no longer trusted are disconnected; clients without a certificate stay.
#[test]
fn a_changed_trust_list_closes_channels() {
    const OPEN: Security = (SecurityPolicy::None, MessageSecurityMode::None);
    let provider = DummyProvider::new("server", 2048);
    let trust = provider.clone();
    let mut server =
        server_with(&[ENCRYPT, OPEN], &anonymous(), |config| config.provider = Arc::new(provider));
    let mut secured = Party::anonymous(&mut server, "client", ENCRYPT);
    let mut open = Party::anonymous(&mut server, "client", OPEN);
    // A change that affects no client.
    server.shard.shared().trust_list_changed();
    secured.works(&mut server).unwrap();
    while server.run_effect() {}
    secured.works(&mut server).unwrap();
    assert_eq!((server.shard.session_count(), server.shard.connection_count()), (2, 2));
    trust.distrust_everybody();
    secured.works(&mut server).unwrap();
    server.shard.shared().trust_list_changed();
    // Another client's request is enough for the shard to notice the change.
    open.works(&mut server).unwrap();
    while server.run_effect() {}
    assert_eq!(server.shard.session_count(), 1, "the session went with its channel");
    open.works(&mut server).unwrap();
}

/// The audit record of a refused client: its identity and request, which the channel does not store.
#[test]
fn a_refused_channel_is_audited_with_its_request() {
    use crate::audit::{AuditAction, AuditConfig};
    let provider = DummyProvider::new("server", 2048);
    provider.distrust_everybody();
    let mut server = server_with(&[ENCRYPT], &anonymous(), |config| {
        config.audit = AuditConfig::all();
        config.provider = Arc::new(provider.clone());
    });
    let mut client = knocking(&mut server);
    while server.run_effect() {}
    client.drain(&mut server);
    assert!(client.closed);
    let records = super::audit::taken(&mut server);
    let shown: String =
        provider.thumbprint(&certificate("client", 2048)).iter().map(|byte| format!("{byte:02X}")).collect();
    let certificates = records.iter().filter_map(|record| match &record.action {
        AuditAction::Certificate { thumbprint, .. } => Some(&**thumbprint),
        _ => None,
    });
    assert_eq!(certificates.collect::<Vec<_>>(), [&*shown], "{records:?}");
    let opened = records.iter().filter_map(|record| match &record.action {
        AuditAction::OpenSecureChannel {
            client_certificate_thumbprint,
            security_policy,
            security_mode,
            ..
        } => {
            Some((&**client_certificate_thumbprint, *security_policy, *security_mode, record.status.is_bad()))
        }
        _ => None,
    });
    assert_eq!(opened.collect::<Vec<_>>(), [(&*shown, Some(ENCRYPT.0), None, true)], "{records:?}");
}

/// A channel that cannot secure its output has ended: it is released at once with everything that depends on it.
#[test]
fn a_channel_that_cannot_send_is_released_at_once() {
    for published in [false, true] {
        let provider = DummyProvider::new("server", 2048);
        let failing = provider.clone();
        let mut server = server_with(&[ENCRYPT], &anonymous(), |config| config.provider = Arc::new(provider));
        let node = super::attribute::variable(1, taktwerk_types::BuiltInType::Double, 1.0);
        super::attribute::add(&server, node);
        let mut party = Party::anonymous(&mut server, "client", ENCRYPT);
        super::flow::subscribe(&mut party.client, &mut server, NodeId::numeric(1, 1));
        super::flow::publish(&mut party.client, &mut server);
        let id = party.client.connection;
        let (session, _) = server.shard.sessions.iter().next().unwrap();
        let bound_to = |server: &Server| server.shard.sessions.get(session).unwrap().connection;
        assert_eq!(bound_to(&server), Some(id));
        failing.seal_nothing();
        if published {
            // The first values are due after a publishing interval, outside any request.
            server.pass(Duration::from_millis(110));
        } else {
            let read = ReadRequest { request_header: party.client.header(), ..Default::default() };
            party.client.send(&mut server, ReadRequest::BINARY_ENCODING_ID, &read);
        }
        server.pass(Duration::ZERO);
        assert_eq!(bound_to(&server), None, "{published}");
        party.client.drain(&mut server);
        assert!(party.client.closed && party.client.channel.is_closed(), "{published}");
        assert!(party.client.responses.is_empty());
        assert_eq!((server.shard.connection_count(), server.shard.session_count()), (0, 1), "{published}");
        let counters = &server.shard.shared().live().counters;
        assert_eq!(counters.current_connection_count.value(), 0);
        // Nothing remains to be checked before the session times out.
        let next = server.shard.poll_timeout().unwrap().0;
        assert!(next > server.now.instant, "{published} {:?}", server.shard.poll_timeout());
    }
}

/// Validations that a shard has begun do not reach a connection that moves to another shard: it is validated there.
#[test]
fn a_moved_connection_is_validated_on_its_new_shard() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Noticed {
        /// The certificate is being validated when the connection moves.
        Before,
        /// There is no connection when the shard checks.
        OnTheWay,
        /// Nothing has changed.
        Never,
    }
    for noticed in [Noticed::Before, Noticed::OnTheWay, Noticed::Never] {
        let provider = DummyProvider::new("server", 2048);
        let trust = provider.clone();
        let mut server = server_with(&[ENCRYPT], &anonymous(), |config| config.provider = Arc::new(provider));
        let mut party = Party::anonymous(&mut server, "client", ENCRYPT);
        if noticed != Noticed::Never {
            trust.distrust_everybody();
            server.shard.shared().trust_list_changed();
        }
        if noticed == Noticed::Before {
            server.shard.timer(server.now);
        }
        let state = server.shard.export(party.client.connection, server.now).unwrap();
        server.shard.timer(server.now);
        while server.run_effect() {}
        party.client.connection = server.shard.import(state, server.now);
        let looks = server.run_effect();
        assert_eq!(looks, noticed != Noticed::Never, "{noticed:?}");
        party.client.drain(&mut server);
        assert_eq!(party.client.closed, noticed != Noticed::Never, "{noticed:?}");
        assert_eq!(server.shard.connection_count(), usize::from(noticed == Noticed::Never));
    }
}

/// The certificate is validated, then the list changes, and then the channel is opened.
#[test]
fn a_trust_list_that_changes_during_a_handshake_is_not_missed() {
    for changes in [false, true] {
        let provider = DummyProvider::new("server", 2048);
        let trust = provider.clone();
        let mut server = server_with(&[ENCRYPT], &anonymous(), |config| config.provider = Arc::new(provider));
        let mut client = knocking(&mut server);
        assert!(server.run_effect(), "the request is opened, its certificate accepted");
        if changes {
            trust.distrust_everybody();
            server.shard.shared().trust_list_changed();
        }
        // The shard notices the change while there is no channel with this certificate.
        server.shard.timer(server.now);
        while server.run_effect() {}
        client.drain(&mut server);
        assert_eq!(client.closed, changes);
        assert_eq!(server.shard.connection_count(), usize::from(!changes));
    }
}
