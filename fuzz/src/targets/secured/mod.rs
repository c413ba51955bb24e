//! The client with security: a server that has its key and sends arbitrary data, and a user's secret to be protected.
//!
//! The cryptography is a toy, so that the fuzzer gets past it; the channel is correct on both sides, so that messages
//! get through. The input determines what the server sends about endpoints, sessions, keys, nonces and signatures:
//! valid data, data with one or two errors, or random bytes. [`model`] derives from the same messages what a client may
//! accept; everything the client does with a secret must be allowed by it, but the client may be stricter. The secret's
//! bytes must not occur in anything that leaves the client, nor in its texts for users.

mod model;
mod server;

use super::client::{Asked, encode, params, proper};
use super::driven::{Driven, Scene, choose};
use crate::input::Input;
use core::time::Duration;
use model::{KEY_BITS, Model, NAMES, POLICIES, Place, Reader, USER};
use server::{Host, Link, split, tokens};
use std::sync::Arc;
use taktwerk_channel::ChannelConfig;
use taktwerk_client::{ClientConfig, ConnectionId, Delivery, Effect, Identity, JobToken, Security, Target};
use taktwerk_crypto::{CryptoError, Job, JobOutput, MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_crypto_dummy::{DummyProvider, certificate};
use taktwerk_schema::{
    ActivateSessionRequest, CreateSessionRequest, ReadRequest, ReadResponse, RequestHeader, ResponseHeader,
    ServiceFault, ids::encoding_ids as id, service::Response,
};
use taktwerk_sim::plant::{monitor, value_of};
use taktwerk_types::{Decode, DecodeLimits, Instant, StatusCode, UtcTime};

const URL: &str = "opc.tcp://host";
/// One short enough for the old format of secrets, and one too long for it.
const SECRETS: [&str; 2] = [
    "correct horse battery",
    concat!("a long one, ", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
];
/// Maximum running jobs per connection.
const JOBS_MAX: usize = 2;
/// Maximum late jobs of ended connections.
const LATE_MAX: usize = 8;

/// A conversation.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut scene = Talk::new(&mut input);
    while !input.is_empty() {
        scene.act(&mut input);
    }
    scene.finish();
}

struct Talk {
    driven: Driven,
    target: Target,
    secret: &'static str,
    host: Host,
    model: Model,
    link: Option<Link>,
    /// The header of the last CreateSession request.
    asked_at_first: RequestHeader,
    /// Jobs wait until the input completes them.
    is_slow: bool,
    jobs: Vec<(ConnectionId, JobToken, Job, Arc<dyn Provider>)>,
    /// The server itself has sent the secret, so repeating it reveals nothing.
    is_known: bool,
}

fn contains(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
}

/// Parses a response like a client; `None` if it is a refusal or has another type.
fn parse<T: Response>(message: &[u8]) -> Option<T> {
    let (type_id, body) = split(message)?;
    let response =
        T::decode_from(body, DecodeLimits::DEFAULT).ok().filter(|_| type_id == T::BINARY_ENCODING_ID);
    response.filter(|response| !response.header().service_result.is_bad())
}

impl Talk {
    fn new(input: &mut Input<'_>) -> Self {
        use MessageSecurityMode as Mode;
        let policy = input.pick(&POLICIES);
        let mode =
            if policy.is_secure() { input.pick(&[Mode::SignAndEncrypt, Mode::Sign]) } else { Mode::None };
        let exactly = Security::Exactly(policy, mode);
        let security = input.pick(&[exactly, exactly, Security::Best, Security::BestOrNone]);
        let secret = input.pick(&SECRETS);
        let named = || Identity::UserName { name: USER.into(), password: secret.into() };
        let identity = match input.below(8) {
            0..5 => named(),
            5 => Identity::IssuedToken { token: secret.into() },
            6 => Identity::X509 { provider: Arc::new(DummyProvider::new(USER, KEY_BITS)) },
            _ => Identity::Anonymous,
        };
        let of_tokens = input.below(POLICIES.len() + 1).checked_sub(1).map(|at| POLICIES[at].uri());
        let weaker = input.pick(&POLICIES);
        let options = input.byte();
        let discover = options & 1 == 0 || !matches!(security, Security::Exactly(..));
        let provider = Arc::new(DummyProvider::new("client", KEY_BITS));
        let channel =
            ChannelConfig { provider: Arc::<DummyProvider>::clone(&provider), ..ChannelConfig::default() };
        let mut config = ClientConfig {
            channel: Arc::new(channel),
            read_limits: options & 2 != 0,
            token_lifetime_ms: if options & 4 != 0 { 10_000 } else { 3_600_000 },
            ..ClientConfig::default()
        };
        config.reconnect.retry_first = options & 8 != 0;
        let mut target = Target::new(URL).expect("a URL");
        target.security = security;
        target.identity = identity;
        target.discover = discover;
        target.server_certificate = (!discover).then(|| certificate(NAMES[0], KEY_BITS).into());
        let mut policies = vec![policy, weaker, SecurityPolicy::None];
        policies.dedup();
        let mut scene = Self {
            driven: Driven::new(config, target.clone()),
            target,
            secret,
            host: Host::new(&policies, &tokens(of_tokens.unwrap_or_default())),
            model: Model::new(provider, discover),
            link: None,
            asked_at_first: RequestHeader::default(),
            is_slow: false,
            jobs: Vec::new(),
            is_known: false,
        };
        scene.settle();
        scene
    }

    fn act(&mut self, input: &mut Input<'_>) {
        match input.below(16) {
            0..6 => self.answer(input),
            6 => self.fault(input),
            7 => self.garbage(input),
            8 => self.unasked(input),
            9 => self.pass(Duration::from_millis(u64::from(input.byte()) * 50)),
            10 => self.pass(Duration::from_secs(u64::from(input.byte()))),
            11 => self.break_connection(),
            12 => self.work(input),
            13 => self.host.change(input),
            _ => self.command(input),
        }
        self.settle();
    }

    // ---- the application

    fn command(&mut self, input: &mut Input<'_>) {
        let driven = &mut self.driven;
        driven.commands += 1;
        let now = driven.now;
        match input.below(8) {
            0 if driven.subscriptions.len() < 2 => {
                let handle = driven.client.create_subscription(params(input), now);
                let items = (0..input.below(3)).map(|at| monitor(at as u32, 1));
                let _ = driven.client.add_items(handle, items.collect::<Vec<_>>(), now);
                driven.subscriptions.push(handle);
            }
            1..4 => {
                let nodes_to_read = vec![value_of(0); input.below(4)];
                let read = ReadRequest { nodes_to_read, ..ReadRequest::default() };
                let asked = driven.client.operate(read, now);
                driven.asked(asked);
            }
            4 => driven.client.disconnect(now),
            _ => driven.connect(|| self.target.clone()),
        }
    }

    // ---- the server

    /// Takes an outstanding request: usually the oldest.
    fn choose(&self, input: &mut Input<'_>) -> Option<Asked> {
        let requests = &self.link.as_ref()?.requests;
        requests.get(choose(requests, input)).cloned()
    }

    /// A response of the right type, correct or not; `None` to send nothing.
    fn proper(&mut self, asked: &Asked, input: &mut Input<'_>) -> Option<Vec<u8>> {
        let link = self.link.as_mut()?;
        let (place, provider) = (link.place(), Arc::clone(&link.provider));
        let limits = DecodeLimits::DEFAULT;
        Some(match asked.type_id {
            id::GET_ENDPOINTS_REQUEST_BINARY => encode(&self.host.list(input)),
            id::CREATE_SESSION_REQUEST_BINARY => {
                let request =
                    CreateSessionRequest::decode_from(&asked.body, limits).expect("it was read before");
                encode(&self.host.session(&request, &place, &provider, input))
            }
            id::ACTIVATE_SESSION_REQUEST_BINARY => {
                let request =
                    ActivateSessionRequest::decode_from(&asked.body, limits).expect("it was read before");
                encode(&self.host.activation(&request, &self.asked_at_first, &place, &provider, input))
            }
            _ => proper(asked, &mut link.numbers, input)?,
        })
    }

    fn say(&mut self, request_id: u32, message: &[u8]) {
        self.is_known |= contains(message, self.secret);
        let Some(link) = &mut self.link else { return };
        let Some(asked) = link.say(request_id, message) else { return };
        let place = link.place();
        match asked.type_id {
            id::GET_ENDPOINTS_REQUEST_BINARY => {
                if let Some(response) = parse::<taktwerk_schema::GetEndpointsResponse>(message) {
                    self.model.told_endpoints(response.endpoints);
                }
            }
            id::CREATE_SESSION_REQUEST_BINARY => {
                let request = CreateSessionRequest::decode_from(&asked.body, DecodeLimits::DEFAULT);
                let request = request.expect("it was read before");
                self.model.told_session(&request, parse(message), place);
            }
            id::ACTIVATE_SESSION_REQUEST_BINARY => self.model.told_activation(parse(message), &place),
            _ => {}
        }
    }

    /// Sends a valid or nearly valid response; sometimes twice.
    fn answer(&mut self, input: &mut Input<'_>) {
        let Some(asked) = self.choose(input) else { return };
        let Some(message) = self.proper(&asked, input) else { return };
        self.say(asked.request_id, &message);
        if input.byte() == 0xff {
            self.say(asked.request_id, &message);
        }
    }

    fn fault(&mut self, input: &mut Input<'_>) {
        let Some(asked) = self.choose(input) else { return };
        let status = input.pick(&[
            StatusCode::BAD_SESSION_ID_INVALID,
            StatusCode::BAD_SESSION_NOT_ACTIVATED,
            StatusCode::BAD_IDENTITY_TOKEN_REJECTED,
            StatusCode::BAD_NONCE_INVALID,
            StatusCode::BAD_SECURITY_CHECKS_FAILED,
            StatusCode::BAD_TOO_MANY_SESSIONS,
            StatusCode::BAD_SECURE_CHANNEL_ID_INVALID,
            StatusCode::GOOD,
        ]);
        let response_header = ResponseHeader { service_result: status, ..ResponseHeader::default() };
        self.say(asked.request_id, &encode(&ServiceFault { response_header }));
    }

    /// Sends random bytes, or the beginning of a response.
    fn garbage(&mut self, input: &mut Input<'_>) {
        let Some(asked) = self.choose(input) else { return };
        let message = if input.flag() {
            input.piece().to_vec()
        } else {
            let mut message = self.proper(&asked, input).unwrap_or_default();
            for _ in 0..input.below(4) {
                let at = usize::from(input.u16()) % message.len().max(1);
                let change = input.byte();
                message.get_mut(at).into_iter().for_each(|byte| *byte ^= change);
            }
            if input.flag() {
                message.truncate(usize::from(input.u16()));
            }
            message
        };
        self.say(asked.request_id, &message);
    }

    /// Sends a response without a request, or raw bytes.
    fn unasked(&mut self, input: &mut Input<'_>) {
        if input.flag() {
            let message = encode(&ReadResponse::default());
            self.say(input.edgy_u32(), &message);
        } else if let Some(link) = &mut self.link {
            let bytes = input.piece();
            self.is_known |= contains(bytes, self.secret);
            link.outbox.extend_from_slice(bytes);
            link.is_spoilt |= !bytes.is_empty();
        }
    }

    fn break_connection(&mut self) {
        if let Some(link) = self.link.take() {
            self.driven.closed(link.connection);
        }
    }

    // ---- the driver

    fn work(&mut self, input: &mut Input<'_>) {
        let action = input.below(4);
        if action == 0 {
            self.is_slow = !self.is_slow;
        }
        if !self.is_slow {
            return self.work_off();
        }
        if self.jobs.is_empty() {
            return;
        }
        let at = input.below(self.jobs.len());
        let (_, token, job, provider) = self.jobs.remove(at);
        let result = if action == 1 {
            Err(match input.below(4) {
                0 => CryptoError::Internal,
                1 => CryptoError::Signature,
                2 => CryptoError::KeyAgreement,
                _ => CryptoError::certificate(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "the input says so"),
            })
        } else {
            job.run(&*provider)
        };
        self.complete(token, result);
    }

    fn work_off(&mut self) {
        while !self.jobs.is_empty() {
            let (_, token, job, provider) = self.jobs.remove(0);
            self.complete(token, job.run(&*provider));
            self.settle();
        }
    }

    /// A job has finished.
    fn complete(&mut self, token: JobToken, result: Result<JobOutput, CryptoError>) {
        let driven = &mut self.driven;
        driven.client.complete(token, result, driven.now, &mut driven.deliveries);
    }

    fn send_to_server(&mut self, bytes: Vec<u8>) {
        if let Some(link) = &mut self.link {
            link.has_slow_client |= self.is_slow || !self.jobs.is_empty();
        }
        assert!(self.is_known || !contains(&bytes, self.secret), "the secret is sent in clear");
        let Some(link) = &mut self.link else { return };
        link.inbox.extend_from_slice(&bytes);
        let (messages, place) = (link.read(self.driven.now), link.place());
        for (request_id, message) in messages {
            self.heard(request_id, &message, &place);
        }
    }

    /// A request was received.
    fn heard(&mut self, request_id: u32, message: &[u8], place: &Place) {
        assert!(self.is_known || !contains(message, self.secret), "the secret is in a message");
        let (type_id, body) = split(message).expect("a type id of namespace 0");
        let limits = DecodeLimits::DEFAULT;
        match type_id {
            id::CREATE_SESSION_REQUEST_BINARY => {
                let request =
                    CreateSessionRequest::decode_from(body, limits).expect("the client encodes well");
                self.asked_at_first = request.request_header;
                self.model.asked_for_session();
            }
            id::ACTIVATE_SESSION_REQUEST_BINARY => {
                let request =
                    ActivateSessionRequest::decode_from(body, limits).expect("the client encodes well");
                let now = UtcTime::NULL.plus(self.driven.now.since(Instant::ZERO));
                let reader = Reader { keys: &self.host.keys, secret: self.secret.as_bytes(), now };
                self.model.asked_for_activation(&request, place, &reader);
            }
            _ => {}
        }
        if let Some(link) = &mut self.link {
            link.requests.push_back(Asked { request_id, type_id, body: body.to_vec() });
        }
    }

    /// Texts for users must not contain the secret.
    fn is_discreet(&self, told: &impl core::fmt::Debug) {
        let text = format!("{told:?}");
        assert!(self.is_known || !contains(text.as_bytes(), self.secret), "{text}");
    }

    /// In any state, the client can be ended, and is.
    fn finish(mut self) {
        self.is_slow = false;
        self.work_off();
        self.end();
        assert!(self.link.is_none());
        self.is_discreet(&self.driven.client);
    }
}

impl Scene for Talk {
    fn driven(&mut self) -> &mut Driven {
        &mut self.driven
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Connect { connection, .. } => {
                let driven = &mut self.driven;
                self.link = Some(Link::new(connection, self.host.name, driven.now));
                driven.client.handle_connected(connection, driven.now, &mut driven.deliveries);
            }
            Effect::Disconnect { connection, unsent } => {
                if self.link.as_ref().is_some_and(|link| link.connection == connection) {
                    self.send_to_server(unsent);
                    self.link = None;
                }
            }
            Effect::Crypto { token, job, provider } => {
                let connection = self.link.as_ref().map_or(ConnectionId(0), |link| link.connection);
                if let Job::SealSecret(job) = &*job {
                    self.model.sealing(job);
                }
                if !self.is_slow {
                    let result = job.run(&*provider);
                    return self.complete(token, result);
                }
                self.jobs.push((connection, token, *job, provider));
                if self.jobs.len() > LATE_MAX {
                    let (_, token, job, provider) = self.jobs.remove(0);
                    self.complete(token, job.run(&*provider));
                }
            }
        }
    }

    fn carry(&mut self) -> bool {
        let bytes = core::mem::take(self.driven.client.transmit());
        let mut busy = !bytes.is_empty() && self.link.is_some();
        self.send_to_server(bytes);
        let Some(link) = &mut self.link else { return false };
        busy |= link.tick(self.driven.now);
        busy |= self.driven.receive(link.connection, &mut link.outbox);
        if link.is_over() {
            self.break_connection();
            busy = true;
        }
        busy
    }

    fn delivered(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Response(_, Err(error)) => self.is_discreet(&error),
            Delivery::Event(event) => self.is_discreet(&event),
            _ => {}
        }
    }

    fn due(&self) -> Option<Instant> {
        self.link.as_ref().and_then(Link::due)
    }

    fn rested(&mut self) {
        if let Some(link) = &self.link {
            let running = self.jobs.iter().filter(|job| job.0 == link.connection).count();
            assert!(running <= JOBS_MAX, "{running} jobs at a time");
        }
    }
}
