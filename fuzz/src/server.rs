//! A server and its clients, connected without a network: bytes arrive at once.
//!
//! The clients' channels are correct, so that requests reach the services; the requests are not. All server output is
//! checked: it decodes, answers a request, and answers each only once.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use taktwerk_channel::{Channel, ChannelConfig, Event, OpenParams, Received};
use taktwerk_crypto::{MessageSecurityMode, NullProvider, Provider, SecurityPolicy, SeededEntropy};
use taktwerk_schema::service::{Request, Response};
use taktwerk_schema::{ResponseHeader, ServiceFault};
use taktwerk_server::space::VariableHandle;
use taktwerk_server::{AddressSpace, ConnectionId, Effect, Job, Limits, Now, ServerConfig, Shard};
use taktwerk_sim::plant::{Plant, url};
use taktwerk_types::{
    Decode, DecodeError, DecodeLimits, Decoder, Encode, Instant, NodeId, Structure, UtcTime,
};

/// How many variables the server has.
pub const VARIABLES: u32 = 4;
/// Maximum timer calls at one instant; more count as an endless loop.
const TURNS_MAX: usize = 10_000;
/// Maximum time step.
const PASS_MAX: Duration = Duration::from_secs(3 * 3600);
const NAME: &str = "fuzz";

/// A policy and a mode.
pub type Security = (SecurityPolicy, MessageSecurityMode);

/// A check of a response, which decodes the whole body.
type Check = fn(&mut Decoder<'_>) -> Result<(), DecodeError>;

/// A shard with its environment.
pub struct Server {
    /// The state machine under test.
    pub shard: Shard,
    /// Its variables.
    pub variables: Vec<VariableHandle>,
    /// Their address space.
    pub space: Arc<AddressSpace>,
    /// The time.
    pub now: Now,
    clients: Vec<Option<Client>>,
}

/// A client with a correct channel.
struct Client {
    connection: ConnectionId,
    channel: Channel,
    /// Executes the channel's jobs.
    provider: Arc<dyn Provider>,
    /// Bytes to the server, not consumed yet.
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    /// Outstanding requests: the expected response, if known, and the request's handle.
    waiting: BTreeMap<u32, (Option<Check>, u32)>,
    answers: Vec<Answer>,
    /// It has sent bytes that its channel does not know, so responses need not be valid for it.
    lies: bool,
}

/// A response as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The id of the request.
    pub request_id: u32,
    /// Type id and body.
    pub message: Vec<u8>,
}

impl Answer {
    /// Decodes a response of this type; `None` if it has another type.
    #[must_use]
    pub fn read<T: Response>(&self) -> Option<T> {
        let mut decoder = Decoder::new(&self.message, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).ok()?.ns0()?;
        (type_id == T::BINARY_ENCODING_ID).then(|| T::decode(&mut decoder).expect("it was checked"))
    }
}

/// Limits low enough for a fuzzer to reach.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.connections_max = 6;
    limits.sessions_max = 4;
    limits.references_per_browse_max = 20;
    limits.browse_continuation_points_max = 2;
    limits.nodes_per_read_max = 20;
    limits.nodes_per_write_max = 20;
    limits.nodes_per_browse_max = 20;
    limits.monitored_items_per_call_max = 20;
    limits.send_budget = 64 << 10;
    let subscriptions = &mut limits.subscriptions;
    subscriptions.subscriptions_max = 6;
    subscriptions.subscriptions_per_session_max = 4;
    subscriptions.monitored_items_max = 40;
    subscriptions.monitored_items_per_subscription_max = 30;
    subscriptions.queue_size_max = 20;
    subscriptions.publish_requests_per_session_max = 5;
    subscriptions.retransmission_len_max = 4;
    limits
}

impl Server {
    /// A server without clients.
    #[must_use]
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A server without clients, with another configuration.
    #[must_use]
    pub fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let utc = UtcTime::from_civil(2026, 1, 1, 0, 0, 0).unwrap_or_default();
        let entropy = Box::new(SeededEntropy::new(1));
        let plant = Plant::new(NAME, VARIABLES, utc, entropy, |config| {
            config.limits = limits();
            change(config);
        })
        .expect("the variables have different ids");
        let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
        Self { shard: plant.shard, variables: plant.variables, space: plant.space, now, clients: Vec::new() }
    }

    /// Connects a client; returns its number, which may be reused later.
    pub fn connect(&mut self) -> usize {
        let none = (SecurityPolicy::None, MessageSecurityMode::None);
        self.connect_with(Arc::new(NullProvider), none, &[])
    }

    /// A client with certificates connects.
    pub fn connect_with(
        &mut self,
        provider: Arc<dyn Provider>,
        (policy, mode): Security,
        server_certificate: &[u8],
    ) -> usize {
        let connection = self.shard.opened(self.now);
        let mut outbox = Vec::new();
        let config = ChannelConfig { provider: Arc::clone(&provider), ..ChannelConfig::default() };
        let params = OpenParams {
            policy,
            mode,
            server_certificate: policy.is_secure().then(|| server_certificate.into()),
            ..OpenParams::insecure(url(NAME))
        };
        let channel = Channel::client(Arc::new(config), params, self.now.instant, &mut outbox);
        let channel = channel.expect("the provider carries the policy");
        let client = Client {
            connection,
            channel,
            provider,
            outbox,
            inbox: Vec::new(),
            waiting: BTreeMap::new(),
            answers: Vec::new(),
            lies: false,
        };
        let place = self.clients.iter().position(Option::is_none).unwrap_or_else(|| {
            self.clients.push(None);
            self.clients.len() - 1
        });
        self.clients[place] = Some(client);
        self.settle();
        place
    }

    /// Number of connected clients.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.clients.iter().flatten().count()
    }

    /// The current connection of a client; it changes if it was closed and the number was reused.
    #[must_use]
    pub fn connection(&self, client: usize) -> Option<ConnectionId> {
        self.clients.get(client).and_then(Option::as_ref).map(|client| client.connection)
    }

    /// The ChannelThumbprint of a client's channel.
    #[must_use]
    pub fn thumbprint(&self, client: usize) -> Vec<u8> {
        let client = self.clients.get(client).and_then(Option::as_ref);
        client.map(|client| client.channel.thumbprint().to_vec()).unwrap_or_default()
    }

    /// How long the server keeps an idle client without a session.
    #[must_use]
    pub fn silence_max() -> Duration {
        Duration::from_secs_f64(limits().sessionless_timeout / 1000.0)
    }

    /// Whether a client can send messages.
    #[must_use]
    pub fn is_open(&self, client: usize) -> bool {
        self.clients.get(client).and_then(Option::as_ref).is_some_and(|client| client.channel.is_open())
    }

    /// Breaks a client's connection.
    pub fn disconnect(&mut self, client: usize) {
        if let Some(client) = self.clients.get_mut(client).and_then(Option::take) {
            self.shard.closed(client.connection, self.now);
            self.settle();
        }
    }

    /// Sends raw bytes that the client's channel does not know. It can send nothing valid afterwards.
    pub fn raw(&mut self, client: usize, bytes: &[u8]) {
        if let Some(client) = self.clients.get_mut(client).and_then(Option::as_mut) {
            client.outbox.extend_from_slice(bytes);
            client.lies = true;
            self.settle();
        }
    }

    /// Sends a message with any content. It must be answered like others.
    pub fn message(&mut self, client: usize, body: &[u8]) {
        self.send(client, body, None, 0);
    }

    /// Sends a request; returns its RequestId if it could be sent.
    pub fn request<R: Request>(&mut self, client: usize, request: &R) -> Option<u32> {
        let mut body = Vec::new();
        NodeId::numeric(0, R::BINARY_ENCODING_ID).encode(&mut body);
        request.encode(&mut body);
        let check: Check = |decoder| R::Response::decode(decoder).map(|_| ());
        self.send(client, &body, Some(check), request.header().request_handle)
    }

    /// Sends a request that is answered within the turn.
    pub fn call<R: Request>(&mut self, client: usize, request: &R) -> Option<R::Response> {
        let id = self.request(client, request)?;
        let answers = &mut self.clients.get_mut(client)?.as_mut()?.answers;
        let at = answers.iter().position(|answer| answer.request_id == id)?;
        answers.swap_remove(at).read()
    }

    fn send(&mut self, client: usize, body: &[u8], check: Option<Check>, handle: u32) -> Option<u32> {
        let client = self.clients.get_mut(client)?.as_mut()?;
        if !client.channel.is_open() {
            return None;
        }
        let start = client.channel.begin(&mut client.outbox);
        client.outbox.extend_from_slice(body);
        let id = client.channel.next_request_id();
        client.channel.finish(start, id, &mut client.outbox).ok()?;
        client.waiting.insert(id, (check, handle));
        self.settle();
        Some(id)
    }

    /// The responses of a client that were not taken yet.
    pub fn take_answers(&mut self, client: usize) -> Vec<Answer> {
        let client = self.clients.get_mut(client).and_then(Option::as_mut);
        client.map(|client| core::mem::take(&mut client.answers)).unwrap_or_default()
    }

    /// Lets time pass, at most a few hours, including everything that becomes due.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now.instant + span.min(PASS_MAX);
        for _ in 0..TURNS_MAX {
            let due = self.shard.poll_timeout().map_or(end, |(at, _)| at.min(end)).max(self.now.instant);
            self.now.utc = self.now.utc.plus(due.since(self.now.instant));
            self.now.instant = due;
            self.settle();
            if due >= end {
                return;
            }
        }
        // Skip hours of publishing every millisecond, which would find nothing new.
        self.now.utc = self.now.utc.plus(end.since(self.now.instant));
        self.now.instant = end;
        self.settle();
    }

    /// Processes everything at the current instant.
    fn settle(&mut self) {
        for turn in 0.. {
            let mut busy = false;
            for place in 0..self.clients.len() {
                busy |= self.feed(place);
            }
            busy |= self.drain();
            if self.shard.poll_timeout().is_some_and(|(at, _)| at <= self.now.instant) {
                self.shard.timer(self.now);
                busy = true;
            }
            if !busy {
                break;
            }
            assert!(turn < TURNS_MAX, "endless loop: {:?}", self.shard.poll_timeout());
        }
        assert_eq!(self.shard.connection_count(), self.connected());
    }

    fn feed(&mut self, place: usize) -> bool {
        let Some(client) = &mut self.clients[place] else { return false };
        if client.outbox.is_empty() || !self.shard.wants_read(client.connection) {
            return false;
        }
        let given = client.outbox.len();
        let consumed = self.shard.received(client.connection, &mut client.outbox, self.now);
        assert!(consumed <= given, "{consumed} of {given} bytes consumed");
        client.outbox.drain(..consumed);
        consumed > 0
    }

    fn drain(&mut self) -> bool {
        let mut busy = false;
        while let Some(id) = self.shard.poll_transmit() {
            busy = true;
            let bytes = self.shard.unsent(id);
            let len = bytes.len();
            let client = self.clients.iter_mut().flatten().find(|client| client.connection == id);
            client.expect("only what is open sends").inbox.extend_from_slice(bytes);
            self.shard.sent(id, len);
        }
        while let Some(Effect { token, job, .. }) = self.shard.poll_effect() {
            busy = true;
            let Job::Blocking(run) = job else { panic!("nothing here gives a future") };
            self.shard.done(token, run(), self.now);
        }
        for client in self.clients.iter_mut().flatten() {
            client.receive(self.now.instant);
        }
        while let Some(id) = self.shard.poll_close() {
            busy = true;
            let place = self
                .clients
                .iter_mut()
                .find(|client| client.as_ref().is_some_and(|client| client.connection == id));
            *place.expect("only what is open is closed") = None;
        }
        assert!(self.shard.poll_move().is_none(), "there is no other shard");
        busy
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    fn receive(&mut self, now: Instant) {
        let mut at = 0;
        while !self.channel.is_closed() {
            let buf = &mut self.inbox[at..];
            let Received { consumed, event } = match self.channel.receive(buf, now, &mut self.outbox) {
                Ok(received) => received,
                Err(_) if self.lies => break,
                Err(error) => panic!("the server breaks the protocol: {error}"),
            };
            match event {
                Event::NeedMore { .. } => break,
                Event::Message { request_id, body } => {
                    let message = body.bytes(buf).to_vec();
                    self.answered(request_id, message);
                }
                Event::Effect(job) => {
                    let mut next = Some(job);
                    while let Some(job) = next.take() {
                        let result = job.run(&*self.provider);
                        if let Ok(Event::Effect(job)) = self.channel.complete(result, now, &mut self.outbox) {
                            next = Some(job);
                        }
                    }
                }
                Event::Aborted { request_id, .. } => {
                    let known = self.waiting.remove(&request_id).is_some();
                    assert!(known || self.lies, "an abort of nothing");
                }
                _ => {}
            }
            at += consumed;
        }
        self.inbox.drain(..at);
    }

    fn answered(&mut self, request_id: u32, message: Vec<u8>) {
        let Some((check, handle)) = self.waiting.remove(&request_id) else {
            assert!(self.lies, "an answer to nothing");
            return;
        };
        let mut decoder = Decoder::new(&message, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).expect("a type id").ns0().expect("of namespace 0");
        let mut header = decoder.clone();
        let header = ResponseHeader::decode(&mut header).expect("a response header");
        if check.is_some() {
            assert_eq!(header.request_handle, handle);
        }
        let is_fault = type_id == ServiceFault::BINARY_ENCODING_ID;
        match check {
            _ if is_fault => {
                ServiceFault::decode(&mut decoder).expect("a fault");
                assert!(
                    header.service_result.is_bad(),
                    "a fault with a good status: {}",
                    header.service_result
                );
            }
            Some(check) => check(&mut decoder).unwrap_or_else(|error| panic!("{type_id}: {error}")),
            None => return,
        }
        assert_eq!(decoder.remaining(), 0, "bytes after the response");
        self.answers.push(Answer { request_id, message });
    }
}
