//! A server and its clients, joined without a network: what goes in arrives at once.
//!
//! The clients' channels are honest, so that requests get through to the services; the requests are not. Everything
//! the server says is checked: it decodes, it answers something, and nothing is answered twice.

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
/// Timer calls at one instant after which the shard is said not to come to rest.
const TURNS_MAX: usize = 10_000;
/// Most time that passes at once.
const PASS_MAX: Duration = Duration::from_secs(3 * 3600);
const NAME: &str = "fuzz";

/// A policy and a mode.
pub type Security = (SecurityPolicy, MessageSecurityMode);

/// What an answer is checked with: decodes the whole body.
type Check = fn(&mut Decoder<'_>) -> Result<(), DecodeError>;

/// A shard with everything around it.
pub struct Server {
    /// The state machine under test.
    pub shard: Shard,
    /// Its variables.
    pub variables: Vec<VariableHandle>,
    /// Where they are.
    pub space: Arc<AddressSpace>,
    /// The time.
    pub now: Now,
    clients: Vec<Option<Client>>,
}

/// A client with an honest channel.
struct Client {
    connection: ConnectionId,
    channel: Channel,
    /// Does what the channel asks for.
    provider: Arc<dyn Provider>,
    /// To the server, not consumed by it.
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    /// Requests that wait: what the answer has to be, if that is known, and the request's handle.
    waiting: BTreeMap<u32, (Option<Check>, u32)>,
    answers: Vec<Answer>,
    /// It has sent bytes that its channel knows nothing of: what comes back need not make sense to it.
    lies: bool,
}

/// A response as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Of the request.
    pub request_id: u32,
    /// Type id and body.
    pub message: Vec<u8>,
}

impl Answer {
    /// Reads it as a response of this type; `None` if it is another one.
    #[must_use]
    pub fn read<T: Response>(&self) -> Option<T> {
        let mut decoder = Decoder::new(&self.message, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).ok()?.ns0()?;
        (type_id == T::BINARY_ENCODING_ID).then(|| T::decode(&mut decoder).expect("it was checked"))
    }
}

/// Limits that a fuzzer reaches.
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

    /// A server without clients that is configured in another way.
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

    /// A client connects; its number, which the next one that connects may get again.
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

    /// How many clients have a connection.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.clients.iter().flatten().count()
    }

    /// The connection that a client has now; another one than before if it was closed and its number given away again.
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

    /// How long the server listens to a client that says nothing and has no session.
    #[must_use]
    pub fn silence_max() -> Duration {
        Duration::from_secs_f64(limits().sessionless_timeout / 1000.0)
    }

    /// Whether a client can send messages.
    #[must_use]
    pub fn is_open(&self, client: usize) -> bool {
        self.clients.get(client).and_then(Option::as_ref).is_some_and(|client| client.channel.is_open())
    }

    /// A client's socket breaks.
    pub fn disconnect(&mut self, client: usize) {
        if let Some(client) = self.clients.get_mut(client).and_then(Option::take) {
            self.shard.closed(client.connection, self.now);
            self.settle();
        }
    }

    /// A client sends bytes that its channel knows nothing of. It can say nothing sensible any more.
    pub fn raw(&mut self, client: usize, bytes: &[u8]) {
        if let Some(client) = self.clients.get_mut(client).and_then(Option::as_mut) {
            client.outbox.extend_from_slice(bytes);
            client.lies = true;
            self.settle();
        }
    }

    /// A client sends a message of any content. It is answered like every other.
    pub fn message(&mut self, client: usize, body: &[u8]) {
        self.send(client, body, None, 0);
    }

    /// A client sends a request; its RequestId, if it could be sent.
    pub fn request<R: Request>(&mut self, client: usize, request: &R) -> Option<u32> {
        let mut body = Vec::new();
        NodeId::numeric(0, R::BINARY_ENCODING_ID).encode(&mut body);
        request.encode(&mut body);
        let check: Check = |decoder| R::Response::decode(decoder).map(|_| ());
        self.send(client, &body, Some(check), request.header().request_handle)
    }

    /// A client sends a request that is answered within the turn.
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

    /// The answers that a client got and nobody took.
    pub fn take_answers(&mut self, client: usize) -> Vec<Answer> {
        let client = self.clients.get_mut(client).and_then(Option::as_mut);
        client.map(|client| core::mem::take(&mut client.answers)).unwrap_or_default()
    }

    /// Lets time pass, but not more than a few hours, with everything that is due on the way.
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
        // Hours of publishing every millisecond: no fault, but no use either.
        self.now.utc = self.now.utc.plus(end.since(self.now.instant));
        self.now.instant = end;
        self.settle();
    }

    /// Everything that happens at this instant.
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
            assert!(turn < TURNS_MAX, "no rest: {:?}", self.shard.poll_timeout());
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
                assert!(header.service_result.is_bad(), "a fault that is none: {}", header.service_result);
            }
            Some(check) => check(&mut decoder).unwrap_or_else(|error| panic!("{type_id}: {error}")),
            None => return,
        }
        assert_eq!(decoder.remaining(), 0, "bytes behind the response");
        self.answers.push(Answer { request_id, message });
    }
}
