//! The server's side: a correct channel, and responses with errors chosen by the input.

use super::model::{KEY_BITS, NAMES, POLICIES, PROFILE, Place};
use crate::input::Input;
use crate::targets::client::{Asked, Numbers};
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_channel::{Channel, ChannelConfig, Event, ephemeral};
use taktwerk_client::ConnectionId;
use taktwerk_crypto::{EphemeralKey, Job, MessageSecurityMode, Provider, SecurityPolicy, SessionBinding};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_schema::{
    ActivateSessionRequest, ActivateSessionResponse, ApplicationDescription, CreateSessionRequest,
    CreateSessionResponse, EndpointDescription, EphemeralKeyType, GetEndpointsResponse, RequestHeader,
    ResponseHeader, UserTokenPolicy, UserTokenType,
};
use taktwerk_types::{
    ByteString, Decode, DecodeLimits, Decoder, ExtensionObject, Instant, NodeId, StatusCode, UaString,
};

/// Maximum keys that the server remembers.
const KEYS_MAX: usize = 16;

/// The server of all connections.
pub(super) struct Host {
    /// Name of the next connection's certificate.
    pub(super) name: &'static str,
    pub(super) endpoints: Vec<EndpointDescription>,
    pub(super) keys: Vec<Arc<dyn EphemeralKey>>,
    count: u32,
}

/// The server's side of a connection.
pub(super) struct Link {
    pub(super) connection: ConnectionId,
    channel: Channel,
    pub(super) provider: Arc<DummyProvider>,
    out: Vec<u8>,
    /// Bytes to the server.
    pub(super) inbox: Vec<u8>,
    /// Bytes to the client, not consumed yet.
    pub(super) outbox: Vec<u8>,
    /// Outstanding requests, oldest first.
    pub(super) requests: VecDeque<Asked>,
    pub(super) numbers: Numbers,
    was_open: bool,
    /// The client's jobs were delayed during this connection.
    pub(super) has_slow_client: bool,
    /// Bytes were sent that are no message. The client waits for their end, so the following bytes mean nothing.
    pub(super) is_spoilt: bool,
}

/// Token policies of the endpoints.
pub(super) fn tokens(policy_uri: &str) -> Vec<UserTokenPolicy> {
    [
        ("anonymous", UserTokenType::ANONYMOUS),
        ("username", UserTokenType::USER_NAME),
        ("certificate", UserTokenType::CERTIFICATE),
        ("jwt", UserTokenType::ISSUED_TOKEN),
    ]
    .map(|(policy_id, token_type)| UserTokenPolicy {
        policy_id: policy_id.into(),
        token_type,
        security_policy_uri: policy_uri.into(),
        ..UserTokenPolicy::default()
    })
    .into()
}

fn application(name: &str) -> String {
    format!("urn:dummy:{name}")
}

/// Number of errors in a response: usually none.
fn edits(input: &mut Input<'_>) -> usize {
    match input.byte() {
        0..0x90 => 0,
        0x90..0xe0 => 1,
        _ => 2,
    }
}

impl Host {
    /// A server with endpoints of a policy, of a weaker one, and without security.
    pub(super) fn new(policies: &[SecurityPolicy], tokens: &[UserTokenPolicy]) -> Self {
        use MessageSecurityMode as Mode;
        let kinds = policies.iter().flat_map(|policy| match policy.is_secure() {
            true => vec![(*policy, Mode::Sign), (*policy, Mode::SignAndEncrypt)],
            false => vec![(*policy, Mode::None)],
        });
        let endpoint = |(policy, mode): (SecurityPolicy, Mode)| EndpointDescription {
            endpoint_url: "opc.tcp://host:4840".into(),
            server: ApplicationDescription {
                application_uri: application(NAMES[0]).into(),
                ..ApplicationDescription::default()
            },
            server_certificate: certificate(NAMES[0], KEY_BITS).into(),
            security_mode: taktwerk_schema::MessageSecurityMode(mode.number()),
            security_policy_uri: policy.uri().into(),
            user_identity_tokens: tokens.to_vec(),
            transport_profile_uri: PROFILE.into(),
            security_level: policy.info().security_level,
        };
        Self { name: NAMES[0], endpoints: kinds.map(endpoint).collect(), keys: Vec::new(), count: 0 }
    }

    /// The operator changes the configuration, or another server answers from now on.
    pub(super) fn change(&mut self, input: &mut Input<'_>) {
        if input.flag() {
            edit_list(&mut self.endpoints, input);
            return;
        }
        self.name = input.pick(&NAMES);
        if input.flag() {
            for endpoint in &mut self.endpoints {
                endpoint.server.application_uri = application(self.name).into();
                endpoint.server_certificate = certificate(self.name, KEY_BITS).into();
            }
        }
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count
    }

    /// A new nonce.
    fn nonce(&mut self) -> Vec<u8> {
        self.next().to_le_bytes().repeat(8)
    }

    pub(super) fn list(&self, input: &mut Input<'_>) -> GetEndpointsResponse {
        let mut endpoints = self.endpoints.clone();
        for _ in 0..edits(input) {
            edit_list(&mut endpoints, input);
        }
        GetEndpointsResponse { endpoints, ..GetEndpointsResponse::default() }
    }

    pub(super) fn session(
        &mut self,
        request: &CreateSessionRequest,
        place: &Place,
        provider: &DummyProvider,
        input: &mut Input<'_>,
    ) -> CreateSessionResponse {
        let number = self.next();
        let mut response = CreateSessionResponse {
            session_id: NodeId::numeric(1, number),
            authentication_token: NodeId::opaque(1, number.to_le_bytes().to_vec()),
            revised_session_timeout: 60_000.0,
            server_nonce: self.nonce().into(),
            server_certificate: place.certificate.clone().into(),
            server_endpoints: self.endpoints.clone(),
            ..CreateSessionResponse::default()
        };
        response.response_header.additional_header = self.key(&request.request_header, provider);
        sign(&mut response, request, place, provider);
        let count = edits(input);
        for _ in 0..count {
            self.edit_session(&mut response, request, place, provider, input);
        }
        // The error may be in the server's own data.
        if count > 0 && input.flag() {
            sign(&mut response, request, place, provider);
        }
        response
    }

    pub(super) fn activation(
        &mut self,
        request: &ActivateSessionRequest,
        asked_at_first: &RequestHeader,
        place: &Place,
        provider: &DummyProvider,
        input: &mut Input<'_>,
    ) -> ActivateSessionResponse {
        let mut response =
            ActivateSessionResponse { server_nonce: self.nonce().into(), ..Default::default() };
        // Without a new request it is a key for the same policy (Part 6 §6.8.2).
        let is_new = ephemeral::wanted(&request.request_header.additional_header).is_some();
        let header = if is_new { &request.request_header } else { asked_at_first };
        response.response_header.additional_header = self.key(header, provider);
        for _ in 0..edits(input) {
            match input.below(3) {
                0 => response.server_nonce = self.bad_nonce(&[], input),
                1 => {
                    let header = &mut response.response_header;
                    self.edit_key(header, place.policy, provider, input);
                }
                _ => {
                    response.response_header.service_result =
                        input.pick(&[StatusCode::UNCERTAIN, StatusCode::BAD_USER_ACCESS_DENIED]);
                }
            }
        }
        response
    }

    /// The requested key, signed.
    fn key(&mut self, header: &RequestHeader, provider: &DummyProvider) -> ExtensionObject {
        match ephemeral::wanted(&header.additional_header) {
            None => ExtensionObject::NULL,
            Some(Err(status)) => ephemeral::offer(None, Err(status)),
            Some(Ok(policy)) => match provider.ephemeral_key(policy) {
                Err(_) => ephemeral::offer(None, Err(StatusCode::BAD_SECURITY_POLICY_REJECTED)),
                Ok(key) => {
                    let offer = signed_key(key.public_key(), policy, provider);
                    self.keys.truncate(KEYS_MAX - 1);
                    self.keys.insert(0, key);
                    ephemeral::offer(Some(policy), Ok(offer))
                }
            },
        }
    }

    fn bad_nonce(&self, of_client: &[u8], input: &mut Input<'_>) -> ByteString {
        let earlier = u32::from(input.byte());
        match input.below(6) {
            0 => Vec::new(),
            1 => vec![7; 31],
            2 => vec![0; 32],
            3 => self.count.wrapping_sub(earlier).to_le_bytes().repeat(8),
            4 => of_client.to_vec(),
            _ => input.piece().to_vec(),
        }
        .into()
    }

    fn edit_key(
        &self,
        header: &mut ResponseHeader,
        policy: SecurityPolicy,
        provider: &DummyProvider,
        input: &mut Input<'_>,
    ) {
        let known = ephemeral::offered(&header.additional_header).and_then(Result::ok).unwrap_or_default();
        let public_key = known.public_key.as_bytes();
        let key = match input.below(7) {
            0 => {
                header.additional_header = ExtensionObject::NULL;
                return;
            }
            1 => Err(StatusCode::BAD_SECURITY_POLICY_REJECTED),
            2 => {
                let mut signature = known.signature.as_bytes().to_vec();
                let at = usize::from(input.byte()) % signature.len().max(1);
                signature.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
                Ok(EphemeralKeyType { signature: signature.into(), ..known })
            }
            3 => Ok(signed_key(public_key, policy, &DummyProvider::new(NAMES[1], KEY_BITS))),
            4 => {
                // Correctly signed, but unusable.
                let mut odd = public_key.to_vec();
                odd.resize(usize::from(input.byte()), 3);
                Ok(signed_key(&odd, policy, provider))
            }
            5 if !self.keys.is_empty() => {
                let old = &self.keys[input.below(self.keys.len())];
                Ok(signed_key(old.public_key(), policy, provider))
            }
            _ => {
                header.additional_header =
                    ExtensionObject::from_binary(NodeId::numeric(0, 17537), input.piece().to_vec());
                return;
            }
        };
        header.additional_header = ephemeral::offer(Some(policy), key);
    }

    fn edit_session(
        &mut self,
        response: &mut CreateSessionResponse,
        request: &CreateSessionRequest,
        place: &Place,
        provider: &DummyProvider,
        input: &mut Input<'_>,
    ) {
        match input.below(9) {
            0 => response.server_nonce = self.bad_nonce(request.client_nonce.as_bytes(), input),
            1 => {
                response.server_certificate = match input.below(5) {
                    0 => ByteString::default(),
                    1 => input.piece().to_vec().into(),
                    at => certificate(NAMES[at - 2], KEY_BITS).into(),
                };
            }
            2 => edit_signature(response, request, place, provider, input),
            3 => {
                let mut list = core::mem::take(&mut response.server_endpoints);
                edit_list(&mut list, input);
                response.server_endpoints = list;
            }
            4 => {
                response.authentication_token = match input.below(3) {
                    0 => NodeId::NULL,
                    1 => NodeId::opaque(1, self.count.wrapping_sub(2).to_le_bytes().to_vec()),
                    _ => NodeId::opaque(0, input.piece().to_vec()),
                };
            }
            5 | 6 => self.edit_key(&mut response.response_header, place.policy, provider, input),
            7 => response.revised_session_timeout = input.f64(),
            _ => {
                response.response_header.service_result =
                    input.pick(&[StatusCode::UNCERTAIN, StatusCode::BAD_TOO_MANY_SESSIONS]);
            }
        }
    }
}

fn signed_key(public_key: &[u8], policy: SecurityPolicy, provider: &DummyProvider) -> EphemeralKeyType {
    let mut signature = Vec::new();
    provider.sign(policy, &[public_key], &mut signature).expect("the dummy signs");
    EphemeralKeyType { public_key: public_key.to_vec().into(), signature: signature.into() }
}

/// The server's signature in CreateSession (Part 4 §5.7.2.2).
fn sign(
    response: &mut CreateSessionResponse,
    request: &CreateSessionRequest,
    place: &Place,
    provider: &DummyProvider,
) {
    if !place.policy.is_secure() {
        return;
    }
    let binding = SessionBinding {
        channel_thumbprint: place.thumbprint.as_slice().into(),
        server_certificate: response.server_certificate.as_bytes().into(),
        client_certificate: request.client_certificate.as_bytes().into(),
        server_nonce: response.server_nonce.as_bytes().to_vec(),
        client_nonce: request.client_nonce.as_bytes().to_vec(),
    };
    let data =
        binding.server_signature(place.policy).bytes(place.policy, provider).expect("the dummy hashes");
    let mut signature = Vec::new();
    provider.sign(place.policy, &[&data], &mut signature).expect("the dummy signs");
    response.server_signature.signature = signature.into();
    response.server_signature.algorithm = place.policy.info().asymmetric_signature.uri().into();
}

fn edit_signature(
    response: &mut CreateSessionResponse,
    request: &CreateSessionRequest,
    place: &Place,
    provider: &DummyProvider,
    input: &mut Input<'_>,
) {
    match input.below(6) {
        0 => response.server_signature.signature = ByteString::default(),
        1 => {
            let mut signature = response.server_signature.signature.as_bytes().to_vec();
            let at = usize::from(input.byte()) % signature.len().max(1);
            signature.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << (input.byte() % 8));
            response.server_signature.signature = signature.into();
        }
        2 => sign(response, request, place, &DummyProvider::new(NAMES[1], KEY_BITS)),
        3 => {
            // Made on another channel, which old policies cannot detect.
            let elsewhere = Place { thumbprint: vec![1; 64], ..place.clone() };
            sign(response, request, &elsewhere, provider);
        }
        4 => {
            let mut other = request.clone();
            other.client_nonce = vec![1; 32].into();
            sign(response, &other, place, provider);
        }
        _ => response.server_signature.signature = input.piece().to_vec().into(),
    }
}

fn edit_list(list: &mut Vec<EndpointDescription>, input: &mut Input<'_>) {
    if list.is_empty() {
        return;
    }
    let at = input.below(list.len());
    let endpoint = &mut list[at];
    match input.below(11) {
        0 => drop(list.remove(at)),
        1 => {
            // An endpoint that looks best of all but differs.
            let mut copy = endpoint.clone();
            copy.security_level = 255;
            copy.transport_profile_uri = input.pick(&[PROFILE, ""]).into();
            if input.flag() {
                let at = input.below(copy.user_identity_tokens.len());
                copy.user_identity_tokens.get_mut(at).into_iter().for_each(|token| edit_token(token, input));
            }
            list.push(copy);
        }
        2 => {
            let urls =
                ["opc.tcp://HOST:4840", "opc.tcp://elsewhere:4840", "opc.tcp://host:1/path", "", "x://"];
            endpoint.endpoint_url = input.pick(&urls).into();
        }
        3 => endpoint.security_policy_uri = input.pick(&POLICIES).uri().into(),
        4 => endpoint.security_mode = taktwerk_schema::MessageSecurityMode(i32::from(input.byte() % 5)),
        5 => endpoint.server_certificate = certificate(input.pick(&NAMES), KEY_BITS).into(),
        6 => endpoint.server.application_uri = application(input.pick(&NAMES)).into(),
        7 => {
            let uris = ["", "http://opcfoundation.org/UA-Profile/Transport/https-uabinary", PROFILE];
            endpoint.transport_profile_uri = input.pick(&uris).into();
        }
        8 => endpoint.security_level = input.byte(),
        9 => endpoint.user_identity_tokens.clear(),
        _ => {
            let at = input.below(endpoint.user_identity_tokens.len());
            endpoint.user_identity_tokens.get_mut(at).into_iter().for_each(|token| edit_token(token, input));
        }
    }
}

fn edit_token(token: &mut UserTokenPolicy, input: &mut Input<'_>) {
    match input.below(4) {
        0 => token.policy_id = input.pick(&["", "username", "jwt", "x"]).into(),
        1 => token.token_type = UserTokenType(i32::from(input.byte() % 5)),
        2 => {
            let old = [SecurityPolicy::Basic128Rsa15, SecurityPolicy::Basic256];
            let choices: Vec<SecurityPolicy> = POLICIES.into_iter().chain(old).collect();
            token.security_policy_uri = input.pick(&choices).uri().into();
        }
        _ => token.security_policy_uri = UaString::from(input.pick(&["", "http://nobody/knows#this"])),
    }
}

impl Link {
    pub(super) fn new(connection: ConnectionId, name: &str, now: Instant) -> Self {
        let provider = Arc::new(DummyProvider::new(name, KEY_BITS));
        use MessageSecurityMode as Mode;
        let security = POLICIES.iter().flat_map(|policy| match policy.is_secure() {
            true => vec![(*policy, Mode::Sign), (*policy, Mode::SignAndEncrypt)],
            false => vec![(*policy, Mode::None)],
        });
        let config = ChannelConfig {
            provider: Arc::<DummyProvider>::clone(&provider),
            security: security.collect(),
            ..ChannelConfig::default()
        };
        Self {
            connection,
            channel: Channel::server(Arc::new(config), 7, now),
            provider,
            out: Vec::new(),
            inbox: Vec::new(),
            outbox: Vec::new(),
            requests: VecDeque::new(),
            numbers: Numbers::default(),
            was_open: false,
            has_slow_client: false,
            is_spoilt: false,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place {
            policy: self.channel.policy(),
            mode: self.channel.mode(),
            thumbprint: self.channel.thumbprint().to_vec(),
            certificate: self.provider.own_certificate(self.channel.policy()).unwrap_or_default().to_vec(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.channel.is_closed() && self.outbox.is_empty()
    }

    /// When the channel has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.channel.poll_timeout().map(|(at, _)| at)
    }

    /// Processes what is due: new tokens, or closing for a client that is too slow.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|at| at <= now);
        if is_due {
            let _ = self.channel.handle_timeout(now, &mut self.out);
            self.outbox.append(&mut self.out);
        }
        is_due
    }

    /// Reads received bytes; returns the bodies of the messages.
    pub(super) fn read(&mut self, now: Instant) -> Vec<(u32, Vec<u8>)> {
        let mut messages = Vec::new();
        let mut at = 0;
        while !self.channel.is_closed() {
            let buf = &mut self.inbox[at..];
            let received = match self.channel.receive(buf, now, &mut self.out) {
                Ok(received) => received,
                Err(error) => {
                    // After an edited endpoint list, the client may open a channel that does not exist. A client with
                    // slow cryptography may still wait for the next token when the current one expires; its messages
                    // are then refused, and the sequence is broken.
                    let may_break = !self.was_open || self.has_slow_client;
                    assert!(may_break, "the client breaks the protocol: {error}");
                    break;
                }
            };
            let consumed = received.consumed;
            match received.event {
                Event::NeedMore { .. } => break,
                Event::Message { request_id, body } => messages.push((request_id, body.bytes(buf).to_vec())),
                Event::Effect(job) => self.run(*job, now),
                Event::Opened => self.was_open = true,
                _ => {}
            }
            at += consumed;
        }
        self.inbox.drain(..at);
        if self.channel.is_closed() {
            self.inbox.clear();
        }
        self.outbox.append(&mut self.out);
        messages
    }

    fn run(&mut self, job: Job, now: Instant) {
        let mut next = Some(job);
        while let Some(job) = next.take() {
            let result = job.run(&*self.provider);
            match self.channel.complete(result, now, &mut self.out) {
                Ok(Event::Effect(job)) => next = Some(*job),
                Ok(Event::Opened) => self.was_open = true,
                Ok(_) => {}
                Err(error) => assert!(!self.was_open, "the client breaks the protocol: {error}"),
            }
        }
    }

    /// Sends a message; returns the request that it answers, if it was outstanding.
    pub(super) fn say(&mut self, request_id: u32, message: &[u8]) -> Option<Asked> {
        if !self.channel.is_open() || self.is_spoilt {
            return None;
        }
        let start = self.channel.begin(&mut self.out);
        self.out.extend_from_slice(message);
        self.channel.finish(start, request_id, &mut self.out).ok()?;
        self.outbox.append(&mut self.out);
        let at = self.requests.iter().position(|asked| asked.request_id == request_id)?;
        self.requests.remove(at)
    }
}

/// The type of a message and the bytes after it.
pub(super) fn split(message: &[u8]) -> Option<(u32, &[u8])> {
    let mut decoder = Decoder::new(message, DecodeLimits::DEFAULT);
    let type_id = NodeId::decode(&mut decoder).ok()?.ns0()?;
    Some((type_id, decoder.rest()))
}
