//! All data that clients make a server store is charged: every request type with every field at its maximum, stored for
//! as long as the protocol allows, valid and malformed. The heap is measured, so data stored without a charge is
//! detected, also for new request types and fields.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr)] // a test fails by panicking

mod generated;

use core::time::Duration;
use generated::{Names, RawClient, Sizes, encode, name_of, paths, requests, responses};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;
use taktwerk_crypto::SeededEntropy;
use taktwerk_schema::{
    AccessLevelType, ActivateSessionRequest, CreateMonitoredItemsRequest, CreateSessionRequest,
    CreateSessionResponse, CreateSubscriptionRequest, CreateSubscriptionResponse, MonitoredItemCreateRequest,
    MonitoringMode, MonitoringParameters, ReadValueId, RequestHeader,
};
use taktwerk_server::space::NodeSpec;
use taktwerk_server::space::build::Under;
use taktwerk_server::{
    AddressSpace, Category, ConnectionId, Effect, Job, Limits, Now, ServerConfig, ServerShared, Shard,
};
use taktwerk_types::{Instant, NodeId, QualifiedName, UtcTime};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const URL: &str = "opc.tcp://host:4840";
/// Connections, each with a session.
const CLIENTS: usize = 8;
/// How often each client sends each request.
const ROUNDS: usize = 5;
/// The same for requests of which less is stored.
const ROUNDS_OTHERWISE: usize = 2;
/// Maximum sizes: the server's limits.
const SIZES: Sizes = Sizes { string: 128 << 10, bytes: 256 << 10, array: 256 << 10 };
/// Uncharged heap: spare buffers of the shard, tables that have grown, present values of variables, and this test
/// itself. Less than one field without a charge would use.
const UNCHARGED: usize = 4 << 20;

/// The longest lifetime of a subscription, in publishing intervals of up to a second.
const LIFETIME: u32 = 600;

/// Bytes of the heap in use.
fn heap() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

struct Party {
    shard: Shard,
    shared: Arc<ServerShared>,
    space: Arc<AddressSpace>,
    now: Now,
    clients: Vec<Client>,
    /// The heap before the first client.
    before: usize,
    writes: u64,
    /// Whether clients do not read the server's output.
    is_deaf: bool,
}

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    /// Bytes are changed, the end is missing, some messages never end.
    Malformed,
    /// Valid, but responses are not read.
    Deaf,
}

struct Client {
    connection: ConnectionId,
    raw: RawClient,
    names: Names,
    is_gone: bool,
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.string_len_max = SIZES.string as u32;
    limits.byte_string_len_max = SIZES.bytes as u32;
    limits.session_bytes_max = 4 << 20;
    limits.request_bytes_max = 4 << 20;
    limits.reassembly_bytes_max = 4 << 20;
    limits.unsent_bytes_max = 4 << 20;
    limits.response_len_max = 1 << 20;
    limits.spare_buffers_max = 4;
    limits.added_node_bytes_max = 4 << 20;
    limits.subscriptions.queue_places_max = 20_000;
    limits.subscriptions.queued_value_bytes_max = 4 << 20;
    limits.subscriptions.retransmission_bytes_total_max = 4 << 20;
    limits.subscriptions.monitored_items_max = 10_000;
    limits.subscriptions.subscriptions_max = 500;
    limits.subscriptions.lifetime_count_max = LIFETIME;
    limits.subscriptions.keep_alive_count_max = LIFETIME / 3;
    limits.subscriptions.publishing_interval_max = 1_000.0;
    limits
}

impl Party {
    fn new() -> Self {
        let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
        let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
        let mut config = ServerConfig::new("Test", "urn:test", URL, utc);
        config.limits = limits();
        config.node_management = true;
        config.channel.message_size_max = 1 << 20;
        let space = Arc::new(AddressSpace::new(1, 16, "urn:test"));
        let under = Under {
            parent: &NodeId::numeric(0, 85),
            reference_type: &NodeId::numeric(0, 35),
            type_definition: Some(&NodeId::numeric(0, 63)),
        };
        let spec = NodeSpec::variable(
            node(),
            QualifiedName::new(1, "long"),
            NodeId::numeric(0, 12),
            Some("".into()),
        );
        space.add_node(spec.access_level(AccessLevelType(3)), under, utc).unwrap();
        let shared = ServerShared::new(config, Arc::clone(&space), 1, utc);
        let shard = Shard::new(0, Arc::clone(&shared), Box::new(SeededEntropy::new(1)));
        let mut party =
            Self { shard, shared, space, now, clients: Vec::new(), before: 0, writes: 0, is_deaf: false };
        party.before = heap();
        for _ in 0..CLIENTS {
            party.join();
        }
        party
    }

    /// A client with a session, a subscription, and an item that queues every value of the variable.
    fn join(&mut self) {
        let is_deaf = core::mem::take(&mut self.is_deaf);
        let names = Names { token: NodeId::NULL, node: node(), subscription: 0 };
        let connection = self.shard.opened(self.now);
        self.clients.push(Client { connection, raw: RawClient::default(), names, is_gone: false });
        let at = self.clients.len() - 1;
        self.exchange(at, RawClient::hello(URL));
        let open = self.clients[at].raw.open();
        let received = self.exchange(at, open);
        self.clients[at].raw.opened(&received);
        let received = self.ask(at, |header| CreateSessionRequest {
            request_header: header,
            requested_session_timeout: 60_000.0,
            ..Default::default()
        });
        let [created] = &responses::<CreateSessionResponse>(&received)[..] else { panic!("no session") };
        self.clients[at].names.token = created.authentication_token.clone();
        self.ask(at, |header| ActivateSessionRequest { request_header: header, ..Default::default() });
        let received = self.ask(at, |header| CreateSubscriptionRequest {
            request_header: header,
            requested_publishing_interval: 100.0,
            requested_lifetime_count: LIFETIME,
            requested_max_keep_alive_count: LIFETIME / 3,
            publishing_enabled: true,
            ..Default::default()
        });
        let [created] = &responses::<CreateSubscriptionResponse>(&received)[..] else {
            panic!("no subscription")
        };
        let id = created.subscription_id;
        self.clients[at].names.subscription = id;
        let parameters = MonitoringParameters { queue_size: 100, discard_oldest: true, ..Default::default() };
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId { node_id: node(), attribute_id: 13, ..Default::default() },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: parameters,
        };
        self.ask(at, |header| CreateMonitoredItemsRequest {
            request_header: header,
            subscription_id: id,
            items_to_create: vec![item],
            ..Default::default()
        });
        self.is_deaf = is_deaf;
    }

    fn ask<T: taktwerk_types::Structure>(
        &mut self,
        at: usize,
        make: impl FnOnce(RequestHeader) -> T,
    ) -> Vec<u8> {
        let token = self.clients[at].names.token.clone();
        let header = RequestHeader { authentication_token: token, ..Default::default() };
        let request = self.clients[at].raw.request(&make(header));
        self.exchange(at, request)
    }

    /// Delivers bytes to the server and returns its immediate output.
    fn exchange(&mut self, at: usize, bytes: Vec<u8>) -> Vec<u8> {
        self.send(at, bytes);
        self.work(Some(self.clients[at].connection))
    }

    fn send(&mut self, at: usize, mut bytes: Vec<u8>) {
        let client = &mut self.clients[at];
        if !client.is_gone {
            let mut done = self.shard.received(client.connection, &mut bytes, self.now);
            // Unconsumed bytes are delivered again after other connections had their turn.
            for _ in 0..100 {
                if done == bytes.len()
                    || self.shard.poll_timeout().is_none_or(|(at, _)| at > self.now.instant)
                {
                    break;
                }
                self.shard.timer(self.now);
                done += self.shard.received(client.connection, &mut bytes[done..], self.now);
            }
        }
    }

    /// Acts as the driver. Returns the output for one connection.
    fn work(&mut self, of: Option<ConnectionId>) -> Vec<u8> {
        let mut received = Vec::new();
        loop {
            while let Some(id) = self.shard.poll_transmit() {
                let bytes = self.shard.unsent(id);
                let len = bytes.len();
                if Some(id) == of {
                    received.extend_from_slice(bytes);
                }
                if self.is_deaf {
                    self.shard.blocked(id, self.now);
                } else {
                    self.shard.sent(id, len);
                }
            }
            while let Some(id) = self.shard.poll_close() {
                let gone = self.clients.iter_mut().filter(|client| client.connection == id);
                gone.for_each(|client| client.is_gone = true);
            }
            while self.shard.poll_audit().is_some() {}
            let Some(Effect { token, job, .. }) = self.shard.poll_effect() else { return received };
            let Job::Blocking(run) = job else { panic!("no such work here") };
            self.shard.done(token, run(), self.now);
        }
    }

    /// Advances the time a little; the application writes values.
    fn tick(&mut self) {
        self.writes += 1;
        let text = format!("{:03000}", self.writes);
        self.space.variable(&node()).unwrap().set_at(text, self.now.utc);
        self.pass(Duration::from_millis(20));
    }

    fn pass(&mut self, span: Duration) {
        self.now.instant = self.now.instant + span;
        self.now.utc = self.now.utc.plus(span);
        for _ in 0..1_000 {
            if self.shard.poll_timeout().is_none_or(|(at, _)| at > self.now.instant) {
                break;
            }
            self.shard.timer(self.now);
            self.work(None);
        }
    }

    /// Checks for uncharged data and exceeded limits.
    fn check(&self, what: &str) {
        let account = self.shared.account();
        let kept = heap().saturating_sub(self.before);
        let charged = account.bytes();
        assert!(
            kept <= charged + UNCHARGED,
            "{what}: {} KiB are kept and {} KiB are charged: {account:?}",
            kept >> 10,
            charged >> 10
        );
        for category in Category::ALL {
            assert!(!account.is_over(category), "{what}: {}", category.name());
        }
    }

    /// Closes all connections, and waits until everything that outlives them has ended.
    fn end(mut self, what: &str) {
        self.is_deaf = false;
        for client in &self.clients {
            if !client.is_gone {
                self.shard.closed(client.connection, self.now);
            }
        }
        self.work(None);
        self.pass(Duration::from_secs(3_600));
        // Subscriptions count the cycles of their lifetime.
        for _ in 0..LIFETIME + 10 {
            self.pass(Duration::from_secs(1));
        }
        // Nodes added by clients outlive them.
        let added = [Category::AddedNodes, Category::AddedNodeCount];
        let nodes = self.shared.account().used(Category::AddedNodes);
        for category in Category::ALL.into_iter().filter(|category| !added.contains(category)) {
            let used = self.shared.account().used(category);
            assert_eq!(used, 0, "{what}: {} when all clients are gone", category.name());
        }
        assert!(
            heap().saturating_sub(self.before) <= UNCHARGED + nodes,
            "{what}: the heap is not given back"
        );
    }
}

fn node() -> NodeId {
    NodeId::numeric(1, 1)
}

/// A deterministic generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// A single test, because the heap is measured for the whole process.
#[test]
fn data_stored_for_clients_is_charged() {
    let all: Vec<_> = requests().collect();
    assert!(all.len() >= 35, "{} request types", all.len());
    let mut numbers = Numbers(1);
    for request in all {
        for manner in [Manner::Whole, Manner::Malformed, Manner::Deaf] {
            let is_malformed = manner == Manner::Malformed;
            let mut party = Party::new();
            party.check("without requests");
            party.is_deaf = manner == Manner::Deaf;
            for path in paths(request) {
                let name = format!("{manner:?} {}", name_of(request, &path));
                for _ in 0..if manner == Manner::Whole { ROUNDS } else { ROUNDS_OTHERWISE } {
                    for at in 0..CLIENTS {
                        if party.clients[at].is_gone {
                            continue;
                        }
                        let mut body = encode(request, &path, SIZES, &party.clients[at].names);
                        if is_malformed {
                            for _ in 0..1 + numbers.below(3) {
                                let place = numbers.below(body.len());
                                body[place] = numbers.below(256) as u8;
                            }
                            body.truncate(body.len() - numbers.below(body.len() / 2));
                        }
                        // Some never end.
                        let is_finished = !is_malformed || numbers.below(8) > 0;
                        let bytes = party.clients[at].raw.message(&body, is_finished);
                        drop(body);
                        party.send(at, bytes);
                        party.work(None);
                    }
                    party.tick();
                    party.check(&name);
                }
                // A connection or session ended by the request is opened again.
                for at in 0..CLIENTS {
                    if party.clients[at].is_gone {
                        party.clients.remove(at);
                        party.join();
                    }
                }
            }
            party.end(request.name);
        }
    }
}
