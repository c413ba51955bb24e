//! Services over the wire: a client channel and a shard, connected in memory, in virtual time.

mod aggregates;
mod alarm_adding;
mod alarm_groups;
mod alarm_plain;
mod alarm_redefining;
mod alarm_removing;
mod alarm_replaced;
mod alarms;
mod alias_methods;
mod aliases;
mod annotations;
mod attacks;
mod attribute;
mod audit;
mod audit_events;
mod audit_kinds;
mod authorization;
mod diagnostics;
mod discovery;
mod durable;
mod effects;
mod event_history;
mod event_ranges;
mod event_relations;
mod event_rings;
mod events;
mod fair_items;
mod filtered_retain;
mod flow;
mod headroom;
mod history;
mod hostile;
mod interfaces;
mod limits;
mod method;
mod model_changes;
mod node_management;
mod node_references;
mod query;
mod secured;
mod session;
mod shared_events;
mod system_events;
mod transfer;
mod truth;
mod turns;
mod turns_between;
mod users;
mod view;
mod views;

use crate::account::Category;
use crate::config::ServerConfig;
use crate::shard::{ConnectionId, Effect, Job, Shard};
use crate::space::AddressSpace;
use crate::{Now, ServerShared};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_channel::{Channel, ChannelConfig, Event, OpenParams, Received};
use taktwerk_crypto::{NullProvider, Provider, SeededEntropy};
use taktwerk_schema as schema;
use taktwerk_schema::service::{Request, Response};
use taktwerk_schema::{RequestHeader, ServiceFault};
use taktwerk_types::{
    Decode, DecodeLimits, Decoder, Encode, Instant, NodeId, StatusCode, Structure, UtcTime,
};

pub(crate) const URL: &str = "opc.tcp://host:4840/test";
pub(crate) const APPLICATION: &str = "urn:test:server";

/// A server of one shard with its own clock.
pub(crate) struct Server {
    pub(crate) shard: Shard,
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) now: Now,
    /// The address of further connections.
    pub(crate) from: Option<core::net::IpAddr>,
}

/// A client on one connection.
pub(crate) struct Client {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: Channel,
    provider: Arc<dyn Provider>,
    /// Bytes to the server.
    out: Vec<u8>,
    /// Unprocessed bytes from the server.
    inbox: Vec<u8>,
    pub(crate) token: NodeId,
    handle: u32,
    /// Received responses: request id and body.
    pub(crate) responses: Vec<(u32, Vec<u8>)>,
    pub(crate) closed: bool,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
        let mut config = ServerConfig::new("Test", APPLICATION, URL, utc);
        change(&mut config);
        let space = Arc::new(AddressSpace::new(1, 64, APPLICATION));
        let shared = ServerShared::new(config, Arc::clone(&space), 1, utc);
        let shard = Shard::new(0, shared, Box::new(SeededEntropy::new(1)));
        let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
        Self { shard, space, now, from: None }
    }

    /// Advances the time, handling everything that becomes due.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now.instant + span;
        loop {
            let next = self.shard.poll_timeout().map_or(end, |(at, _)| at.min(end));
            let next = next.max(self.now.instant);
            self.now.utc = self.now.utc.plus(next.since(self.now.instant));
            self.now.instant = next;
            if self.shard.poll_timeout().is_some_and(|(at, _)| at <= next) {
                self.shard.timer(self.now);
                continue;
            }
            if next >= end {
                return;
            }
        }
    }

    pub(crate) fn connect(&mut self) -> Client {
        self.connect_with(Arc::new(NullProvider), OpenParams::insecure(URL))
    }

    /// A client with an open channel.
    pub(crate) fn connect_with(&mut self, provider: Arc<dyn Provider>, params: OpenParams) -> Client {
        let mut client = self.dial(provider, params);
        for _ in 0..8 {
            client.exchange(self);
            while self.run_effect() {}
        }
        assert!(client.channel.is_open());
        client
    }

    /// A client that has not sent anything yet.
    pub(crate) fn dial(&mut self, provider: Arc<dyn Provider>, params: OpenParams) -> Client {
        let connection = match self.from {
            Some(address) => {
                self.shard.shared().admit(address, self.now.instant).unwrap();
                self.shard.opened_from(address, self.now)
            }
            None => self.shard.opened(self.now),
        };
        let mut out = Vec::new();
        let config = ChannelConfig { provider: Arc::clone(&provider), ..ChannelConfig::default() };
        let channel = Channel::client(Arc::new(config), params, self.now.instant, &mut out).unwrap();
        Client {
            connection,
            channel,
            provider,
            out,
            inbox: Vec::new(),
            token: NodeId::NULL,
            handle: 0,
            responses: Vec::new(),
            closed: false,
        }
    }

    /// A client with an activated session.
    pub(crate) fn session(&mut self) -> Client {
        let mut client = self.connect();
        client.create(self).unwrap();
        client.activate(self).unwrap();
        client
    }

    /// What the server stores of a category for all clients together.
    pub(crate) fn used(&self, category: Category) -> usize {
        self.shard.shared().account().used(category)
    }

    /// Whether a category exceeds its limit.
    pub(crate) fn is_over(&self, category: Category) -> bool {
        self.shard.shared().account().is_over(category)
    }

    /// Asserts that nothing is stored for any client.
    pub(crate) fn assert_nothing_is_kept(&mut self) {
        assert_eq!(self.filter_count(), 0, "event filters without items");
        for category in Category::ALL {
            assert_eq!(self.used(category), 0, "{}", category.name());
        }
    }

    /// Number of event filters in the shard.
    pub(crate) fn filter_count(&mut self) -> usize {
        self.shard.context(None, self.now).engine.filter_count()
    }

    /// Runs one effect and returns its result to the shard.
    pub(crate) fn run_effect(&mut self) -> bool {
        let Some(Effect { token, job, .. }) = self.shard.poll_effect() else { return false };
        let result = match job {
            Job::Blocking(run) => run(),
            Job::Future(_) => panic!("tests use blocking effects"),
        };
        self.shard.done(token, result, self.now);
        true
    }
}

impl Client {
    /// Sends waiting bytes and receives the answers.
    pub(crate) fn exchange(&mut self, server: &mut Server) {
        self.push(server);
        self.drain(server);
        // Long requests need several turns.
        while !server.shard.turns.is_idle() {
            server.shard.timer(server.now);
            self.push(server);
            self.drain(server);
        }
    }

    /// Number of bytes to be sent.
    pub(crate) fn queued(&self) -> usize {
        self.out.len()
    }

    /// Sends waiting bytes.
    pub(crate) fn push(&mut self, server: &mut Server) {
        if server.shard.wants_read(self.connection) {
            let mut sent = core::mem::take(&mut self.out);
            let done = server.shard.received(self.connection, &mut sent, server.now);
            self.out = sent.split_off(done);
        }
    }

    /// Receives the server's bytes.
    pub(crate) fn drain(&mut self, server: &mut Server) {
        while let Some(id) = server.shard.poll_transmit() {
            let bytes = server.shard.unsent(id).to_vec();
            server.shard.sent(id, bytes.len());
            if id == self.connection {
                self.inbox.extend_from_slice(&bytes);
            }
        }
        while let Some(id) = server.shard.poll_close() {
            self.closed |= id == self.connection;
        }
        self.deliver(&[], server.now.instant);
    }

    /// Delivers bytes from the server.
    pub(crate) fn deliver(&mut self, bytes: &[u8], now: Instant) {
        self.inbox.extend_from_slice(bytes);
        while !self.inbox.is_empty() {
            let Ok(Received { consumed, event }) = self.channel.receive(&mut self.inbox, now, &mut self.out)
            else {
                self.inbox.clear();
                return;
            };
            match event {
                Event::NeedMore { .. } => return,
                Event::Message { request_id, body } => {
                    self.responses.push((request_id, body.bytes(&self.inbox).to_vec()));
                    self.inbox.drain(..consumed);
                }
                other => {
                    self.inbox.drain(..consumed);
                    let mut event = other;
                    while let Event::Effect(job) = event {
                        let result = job.run(&*self.provider);
                        let complete = self.channel.complete(result, now, &mut self.out);
                        event = complete.unwrap_or(Event::Handled);
                    }
                }
            }
        }
    }

    pub(crate) fn header(&mut self) -> RequestHeader {
        self.handle += 1;
        RequestHeader {
            authentication_token: self.token.clone(),
            request_handle: self.handle,
            timeout_hint: 10_000,
            ..RequestHeader::default()
        }
    }

    /// Sends a request. Returns its RequestId.
    pub(crate) fn send(&mut self, server: &mut Server, type_id: u32, body: &impl Encode) -> u32 {
        let request_id = self.enqueue(type_id, body);
        self.exchange(server);
        request_id
    }

    /// Queues a request for sending. Returns its RequestId.
    pub(crate) fn enqueue(&mut self, type_id: u32, body: &impl Encode) -> u32 {
        let start = self.channel.begin(&mut self.out);
        NodeId::numeric(0, type_id).encode(&mut self.out);
        body.encode(&mut self.out);
        let request_id = self.channel.next_request_id();
        self.channel.finish(start, request_id, &mut self.out).unwrap();
        request_id
    }

    /// The response to a request, if it has arrived.
    pub(crate) fn response<T: Structure>(&mut self, request_id: u32) -> Option<Result<T, StatusCode>> {
        let at = self.responses.iter().position(|(id, _)| *id == request_id)?;
        let (_, body) = self.responses.remove(at);
        let mut decoder = Decoder::new(&body, DecodeLimits::DEFAULT);
        let type_id = NodeId::decode(&mut decoder).unwrap().ns0().unwrap();
        if type_id == ServiceFault::BINARY_ENCODING_ID {
            let fault = ServiceFault::decode(&mut decoder).unwrap();
            return Some(Err(fault.response_header.service_result));
        }
        assert_eq!(type_id, T::BINARY_ENCODING_ID);
        let response = T::decode(&mut decoder).unwrap();
        assert_eq!(decoder.remaining(), 0);
        Some(Ok(response))
    }

    /// Sends a request and receives its response.
    pub(crate) fn call<R: Request>(
        &mut self,
        server: &mut Server,
        request: &R,
    ) -> Result<R::Response, StatusCode>
    where
        R::Response: Response,
    {
        let id = self.send(server, R::BINARY_ENCODING_ID, request);
        while !self.has_response(id) && server.run_effect() {
            self.drain(server);
        }
        self.response(id).expect("every request is answered")
    }

    pub(crate) fn has_response(&self, request_id: u32) -> bool {
        self.responses.iter().any(|(id, _)| *id == request_id)
    }

    pub(crate) fn create(
        &mut self,
        server: &mut Server,
    ) -> Result<schema::CreateSessionResponse, StatusCode> {
        let request = schema::CreateSessionRequest {
            request_header: self.header(),
            endpoint_url: URL.into(),
            session_name: "test".into(),
            requested_session_timeout: 60_000.0,
            ..Default::default()
        };
        let response = self.call(server, &request)?;
        self.token = response.authentication_token.clone();
        Ok(response)
    }

    pub(crate) fn activate(
        &mut self,
        server: &mut Server,
    ) -> Result<schema::ActivateSessionResponse, StatusCode> {
        let request = schema::ActivateSessionRequest { request_header: self.header(), ..Default::default() };
        self.call(server, &request)
    }
}
