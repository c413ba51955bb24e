//! The cost of a changing address space for its users, without sockets: `cargo bench -p taktwerk-server --bench nodes`.
//!
//! - Another thread replaces a NodeSet while subscriptions of many clients run: the duration of each turn of their
//!   shard, and whether values of unchanged nodes are lost.
//! - A client of one shard adds nodes while a client of another shard reads: nodes per second, and read latencies.
//! - The same client deletes them.
//!
//! Baseline figures without changes are printed as well. A turn's elapsed time includes other programs, the host and
//! waiting for locks; its CPU time does not.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // a program, not the core

use core::time::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as Clock;
use taktwerk_channel::{Channel, ChannelConfig, Event, OpenParams};
use taktwerk_crypto::SeededEntropy;
use taktwerk_nodeset::TypeDictionary;
use taktwerk_schema::service::Request;
use taktwerk_schema::{
    ActivateSessionRequest, AddNodesItem, AddNodesRequest, CreateMonitoredItemsRequest, CreateSessionRequest,
    CreateSubscriptionRequest, DataChangeNotification, DeleteNodesItem, DeleteNodesRequest,
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, NodeAttributesMask, NodeClass,
    PublishRequest, PublishResponse, ReadRequest, ReadValueId, RequestHeader, SubscriptionAcknowledgement,
    TimestampsToReturn, VariableAttributes,
};
use taktwerk_server::space::import::Importer;
use taktwerk_server::space::{NodeSpec, VariableHandle, build::Under};
use taktwerk_server::{AddressSpace, ConnectionId, Now, ServerConfig, ServerShared, Shard};
use taktwerk_types::{
    Decode, DecodeLimits, Decoder, Encode, ExpandedNodeId, ExtensionObject, Instant, NodeId, QualifiedName,
    Structure, UtcTime, Variant,
};

const URL: &str = "opc.tcp://host:4840";
const NODES: u32 = 20_000;
const CLIENTS: usize = 100;
/// Items of each client, on unchanged nodes.
const ITEMS: u32 = 50;
/// More than is written between two messages, even on a busy machine.
const QUEUE: u32 = 500;
const ADDED: u32 = 100_000;
const PER_REQUEST: u32 = 1_000;

/// A shard with its clock and the durations of its turns.
struct Host {
    shard: Shard,
    begun: Clock,
    utc: UtcTime,
    turns: Vec<Turn>,
}

/// The duration of one call of the shard.
#[derive(Clone, Copy)]
struct Turn {
    /// By the clock.
    elapsed: Duration,
    /// CPU time of the thread.
    cpu: Duration,
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

struct Client {
    connection: ConnectionId,
    channel: Channel,
    token: NodeId,
    inbox: Vec<u8>,
}

impl Host {
    fn new(index: usize, shared: &Arc<ServerShared>, begun: Clock, utc: UtcTime) -> Self {
        let shard = Shard::new(index, Arc::clone(shared), Box::new(SeededEntropy::new(index as u64)));
        Self { shard, begun, utc, turns: Vec::new() }
    }

    fn now(&self) -> Now {
        let passed = self.begun.elapsed() + Duration::from_secs(1);
        Now { instant: Instant::ZERO + passed, utc: self.utc.plus(passed) }
    }

    /// One turn, timed.
    fn turn(&mut self, run: impl FnOnce(&mut Shard, Now)) {
        let now = self.now();
        let (start, cpu) = (Clock::now(), thread_cpu());
        run(&mut self.shard, now);
        self.turns.push(Turn { cpu: thread_cpu() - cpu, elapsed: start.elapsed() });
    }

    /// Handles due deadlines.
    fn due(&mut self) {
        while self.shard.poll_timeout().is_some_and(|(at, _)| at <= self.now().instant) {
            self.turn(|shard, now| shard.timer(now));
        }
    }

    fn take(&mut self, clients: &mut [Client]) {
        while let Some(id) = self.shard.poll_transmit() {
            let bytes = self.shard.unsent(id);
            if let Some(client) = clients.iter_mut().find(|client| client.connection == id) {
                client.inbox.extend_from_slice(bytes);
            }
            let len = bytes.len();
            self.shard.sent(id, len);
        }
    }

    fn give(&mut self, client: &Client, mut bytes: Vec<u8>) {
        self.turn(|shard, now| {
            let used = shard.received(client.connection, &mut bytes, now);
            assert_eq!(used, bytes.len());
        });
    }

    fn connect(&mut self) -> Client {
        let now = self.now();
        let mut out = Vec::new();
        let channel = Channel::client(
            Arc::new(ChannelConfig::default()),
            OpenParams::insecure(URL),
            now.instant,
            &mut out,
        );
        let connection = self.shard.opened(now);
        let mut client =
            Client { connection, channel: channel.unwrap(), token: NodeId::NULL, inbox: Vec::new() };
        for _ in 0..2 {
            self.give(&client, core::mem::take(&mut out));
            self.take(core::slice::from_mut(&mut client));
            let mut inbox = core::mem::take(&mut client.inbox);
            let _ = client.channel.receive(&mut inbox, now.instant, &mut out).unwrap();
        }
        let created = self.call(&mut client, CreateSessionRequest::default(), |request, header| {
            request.request_header = header;
        });
        client.token = created.authentication_token;
        self.call(&mut client, ActivateSessionRequest::default(), |request, header| {
            request.request_header = header;
        });
        client
    }

    /// Sends a request and receives its response, with all turns in between.
    fn call<R: Request>(
        &mut self,
        client: &mut Client,
        mut request: R,
        set: impl FnOnce(&mut R, RequestHeader),
    ) -> R::Response {
        set(&mut request, client.header());
        let bytes = client.encode(&request);
        self.give(client, bytes);
        loop {
            self.take(core::slice::from_mut(client));
            if let Some(body) = client.receive(self.now().instant).pop() {
                let mut decoder = Decoder::new(&body, DecodeLimits::DEFAULT);
                let kind = NodeId::decode(&mut decoder).unwrap();
                assert_eq!(kind.ns0(), Some(R::Response::BINARY_ENCODING_ID), "the service failed");
                return R::Response::decode(&mut decoder).unwrap();
            }
            // Long requests need several turns.
            self.due();
        }
    }
}

impl Client {
    fn header(&self) -> RequestHeader {
        RequestHeader { authentication_token: self.token.clone(), ..RequestHeader::default() }
    }

    fn encode<T: Structure>(&mut self, request: &T) -> Vec<u8> {
        let mut out = Vec::new();
        let start = self.channel.begin(&mut out);
        NodeId::numeric(0, T::BINARY_ENCODING_ID).encode(&mut out);
        request.encode(&mut out);
        let id = self.channel.next_request_id();
        self.channel.finish(start, id, &mut out).unwrap();
        out
    }

    /// The bodies of received messages.
    fn receive(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        let mut at = 0;
        while at < self.inbox.len() {
            let received = self.channel.receive(&mut self.inbox[at..], now, &mut Vec::new()).unwrap();
            if received.consumed == 0 {
                break;
            }
            if let Event::Message { body, .. } = received.event {
                bodies.push(body.bytes(&self.inbox[at..]).to_vec());
            }
            at += received.consumed;
        }
        self.inbox.drain(..at);
        bodies
    }
}

/// A model with variables in one folder. `edition` is the value of every second variable, which differs between
/// editions.
fn model(edition: u32) -> String {
    let mut text = String::from(
        r#"<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd"><NamespaceUris><Uri>urn:line</Uri></NamespaceUris>
        <Models><Model ModelUri="urn:line"><RequiredModel ModelUri="http://opcfoundation.org/UA/"/></Model></Models>
        <UAObject NodeId="ns=1;i=1" BrowseName="1:Line"><References>
        <Reference ReferenceType="i=35" IsForward="false">i=85</Reference><Reference ReferenceType="i=40">i=61</Reference>
        </References></UAObject>"#,
    );
    for number in 0..NODES {
        let value = if number % 2 == 0 { 0 } else { edition };
        write!(
            text,
            r#"<UAVariable NodeId="ns=1;i={}" BrowseName="1:V{number}" DataType="i=11" AccessLevel="3"><References>
            <Reference ReferenceType="i=47" IsForward="false">ns=1;i=1</Reference><Reference ReferenceType="i=40">i=63</Reference>
            </References><Value><Double xmlns="http://opcfoundation.org/UA/2008/02/Types.xsd">{value}</Double></Value></UAVariable>"#,
            number + 10
        )
        .unwrap();
    }
    text + "</UANodeSet>"
}

fn shown(name: &str, turns: &[Turn]) {
    println!("{name}: {} turns", turns.len());
    for (what, of) in
        [("clock", (|turn| turn.elapsed) as fn(&Turn) -> Duration), ("CPU time", |turn| turn.cpu)]
    {
        let mut times: Vec<Duration> = turns.iter().map(of).collect();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let sum: Duration = times.iter().sum();
        let long = times.iter().filter(|time| **time > Duration::from_millis(1)).count();
        println!(
            "  {what}: sum {:.1} ms, p50 {:?}, p99 {:?}, longest {:?}, {long} of more than 1 ms",
            sum.as_secs_f64() * 1e3,
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}

/// Publishing for `CLIENTS` clients until `stop`. Repeatedly writes each unchanged variable, and counts notifications
/// and missing values.
struct Plant {
    host: Host,
    clients: Vec<Client>,
    subscriptions: Vec<u32>,
    variables: Vec<VariableHandle>,
    written: u32,
    received: Vec<Vec<f64>>,
}

impl Plant {
    fn new(mut host: Host, namespace: u16) -> Self {
        let id = |number: u32| NodeId::numeric(namespace, 10 + 2 * number);
        let space = Arc::clone(host.shard.shared().space());
        let variables = (0..ITEMS).map(|number| space.variable(&id(number)).unwrap()).collect();
        let (mut clients, mut subscriptions) = (Vec::new(), Vec::new());
        for _ in 0..CLIENTS {
            let mut client = host.connect();
            let subscription = CreateSubscriptionRequest {
                requested_publishing_interval: 20.0,
                requested_lifetime_count: 10_000,
                requested_max_keep_alive_count: 1_000,
                publishing_enabled: true,
                ..CreateSubscriptionRequest::default()
            };
            let created = host.call(&mut client, subscription, |it, header| it.request_header = header);
            let item = |number: u32| MonitoredItemCreateRequest {
                item_to_monitor: ReadValueId {
                    node_id: id(number),
                    attribute_id: 13,
                    ..ReadValueId::default()
                },
                monitoring_mode: MonitoringMode::REPORTING,
                requested_parameters: MonitoringParameters {
                    client_handle: number,
                    sampling_interval: 0.0,
                    queue_size: QUEUE,
                    discard_oldest: true,
                    ..MonitoringParameters::default()
                },
            };
            let items = CreateMonitoredItemsRequest {
                subscription_id: created.subscription_id,
                timestamps_to_return: TimestampsToReturn::NEITHER,
                items_to_create: (0..ITEMS).map(item).collect(),
                ..CreateMonitoredItemsRequest::default()
            };
            let results = host.call(&mut client, items, |it, header| it.request_header = header).results;
            // If the server had revised the queue size, values would be lost, with the Overflow bit.
            assert!(
                results
                    .iter()
                    .all(|result| result.status_code.is_good() && result.revised_queue_size == QUEUE)
            );
            for _ in 0..3 {
                publish(&mut host, &mut client, None);
            }
            clients.push(client);
            subscriptions.push(created.subscription_id);
        }
        let received = vec![vec![0.0; ITEMS as usize]; CLIENTS];
        Self { host, clients, subscriptions, variables, written: 0, received }
    }

    /// Runs until `is_over`. Returns the turns. No value may be missing.
    fn run(&mut self, is_over: impl Fn() -> bool) -> Vec<Turn> {
        self.host.turns.clear();
        let mut next_write = Clock::now();
        while !is_over() {
            if Clock::now() >= next_write {
                next_write += Duration::from_millis(10);
                self.written += 1;
                let now = self.host.now().utc;
                self.variables.iter().for_each(|variable| variable.set_at(f64::from(self.written), now));
            }
            self.step();
            std::thread::sleep(Duration::from_micros(200));
        }
        core::mem::take(&mut self.host.turns)
    }

    fn step(&mut self) {
        self.host.due();
        self.host.take(&mut self.clients);
        let now = self.host.now().instant;
        for (client, (received, id)) in
            self.clients.iter_mut().zip(self.received.iter_mut().zip(&self.subscriptions))
        {
            for body in client.receive(now) {
                let mut decoder = Decoder::new(&body, DecodeLimits::DEFAULT);
                NodeId::decode(&mut decoder).unwrap();
                let response = PublishResponse::decode(&mut decoder).unwrap();
                let message = &response.notification_message;
                for data in &message.notification_data {
                    for item in data.decode::<DataChangeNotification>().unwrap().monitored_items {
                        let value = item.value.value.as_ref().and_then(Variant::as_f64).unwrap();
                        let last = &mut received[item.client_handle as usize];
                        assert!(value == *last + 1.0 || value == 0.0, "{value} after {last} of {id}");
                        *last = value;
                    }
                }
                publish(&mut self.host, client, Some((*id, message.sequence_number)));
            }
        }
    }

    /// Receives the remaining messages. Returns how many values each item got.
    fn finish(mut self) -> u32 {
        let end = Clock::now() + Duration::from_secs(10);
        let wanted = f64::from(self.written);
        while self.received.iter().flatten().any(|last| *last < wanted) {
            assert!(Clock::now() < end, "values are missing at the end");
            self.step();
        }
        self.written
    }
}

fn publish(host: &mut Host, client: &mut Client, acknowledged: Option<(u32, u32)>) {
    let acknowledgement = acknowledged.map(|(subscription_id, sequence_number)| {
        SubscriptionAcknowledgement { subscription_id, sequence_number }
    });
    let request = PublishRequest {
        request_header: client.header(),
        subscription_acknowledgements: acknowledgement.into_iter().collect(),
    };
    let bytes = client.encode(&request);
    host.give(client, bytes);
}

fn server(change: impl FnOnce(&mut ServerConfig)) -> (Arc<ServerShared>, UtcTime) {
    let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
    let mut config = ServerConfig::new("bench", "urn:bench", URL, utc);
    change(&mut config);
    let space = Arc::new(AddressSpace::new(2, 1 << 16, "urn:bench"));
    (ServerShared::new(config, space, 2, utc), utc)
}

/// Replaces a NodeSet.
fn replacing() {
    let (shared, utc) = server(|_| {});
    let space = Arc::clone(shared.space());
    let mut importer = Importer::new(TypeDictionary::default());
    let file = |edition| [("line.xml".to_owned(), model(edition))];
    let imported = importer.import(&space, &file(1), utc).unwrap();
    assert_eq!(imported.node_count, NODES as usize + 1);
    let namespace = imported.namespaces[0].0;
    let mut plant = Plant::new(Host::new(0, &shared, Clock::now(), utc), namespace);
    let calm_end = Clock::now() + Duration::from_secs(2);
    let calm = plant.run(|| Clock::now() >= calm_end);
    shown("subscriptions, calm", &calm);
    let prepared = importer.prepare(&space, &file(2), Some(imported.batch)).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&done);
    let replacing = std::thread::spawn(move || {
        let start = Clock::now();
        let imported = importer.replace(&space, prepared, utc);
        let took = start.elapsed();
        told.store(true, Ordering::Relaxed);
        (took, imported)
    });
    let meanwhile = plant.run(|| done.load(Ordering::Relaxed));
    let (took, imported) = replacing.join().unwrap();
    shown("subscriptions, while a NodeSet is replaced", &meanwhile);
    println!(
        "NodeSet of {NODES} nodes replaced in {:.0} ms: {} deleted, {} added; {CLIENTS} clients subscribed",
        took.as_secs_f64() * 1e3,
        imported.deleted_count,
        imported.node_count
    );
    let values = plant.finish();
    println!("nodes that stayed: {values} values to each of {} items, none lost", CLIENTS * ITEMS as usize);
}

/// Reads repeatedly until `stop`. Returns the turns.
fn reading(host: &mut Host, client: &mut Client, id: &NodeId, is_over: impl Fn() -> bool) -> Vec<Turn> {
    host.turns.clear();
    while !is_over() {
        let request = ReadRequest {
            nodes_to_read: vec![ReadValueId {
                node_id: id.clone(),
                attribute_id: 13,
                ..ReadValueId::default()
            }],
            ..ReadRequest::default()
        };
        let response = host.call(client, request, |it, header| it.request_header = header);
        assert!(response.results[0].status().is_good());
        std::thread::sleep(Duration::from_micros(100));
    }
    core::mem::take(&mut host.turns)
}

/// A client adds and deletes nodes while another one reads.
fn adding() {
    let (shared, utc) = server(|config| {
        config.node_management = true;
        config.limits.added_nodes_max = 2 * ADDED as usize;
        config.limits.added_node_bytes_max = 1 << 30;
    });
    let parent = NodeId::numeric(0, 85);
    let id = NodeId::numeric(1, 1);
    let under = Under {
        parent: &parent,
        reference_type: &NodeId::numeric(0, 35),
        type_definition: Some(&NodeId::numeric(0, 63)),
    };
    let spec = NodeSpec::variable(
        id.clone(),
        QualifiedName::new(1, "read"),
        NodeId::numeric(0, 11),
        Some(1.0.into()),
    );
    shared.space().add_node(spec, under, utc).unwrap();
    let begun = Clock::now();
    let stage = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (told, reader) = (Arc::clone(&stage), Arc::clone(&shared));
    let reads = std::thread::spawn(move || {
        let mut host = Host::new(1, &reader, begun, utc);
        let mut client = host.connect();
        (0..3)
            .map(|at| reading(&mut host, &mut client, &id, || told.load(Ordering::Relaxed) > at))
            .collect::<Vec<_>>()
    });
    let mut host = Host::new(0, &shared, begun, utc);
    let mut client = host.connect();
    std::thread::sleep(Duration::from_secs(2));
    let attributes = VariableAttributes {
        specified_attributes: (NodeAttributesMask::VALUE.0
            | NodeAttributesMask::DATA_TYPE.0
            | NodeAttributesMask::VALUE_RANK.0) as u32,
        value: 1.0.into(),
        data_type: NodeId::numeric(0, 11),
        value_rank: -1,
        ..VariableAttributes::default()
    };
    let item = |number: u32| AddNodesItem {
        parent_node_id: parent.clone().into(),
        reference_type_id: NodeId::numeric(0, 35),
        requested_new_node_id: NodeId::numeric(1, 1000 + number).into(),
        browse_name: QualifiedName::new(1, format!("V{number}")),
        node_class: NodeClass::VARIABLE,
        node_attributes: ExtensionObject::new(&attributes),
        type_definition: ExpandedNodeId::from(NodeId::numeric(0, 63)),
    };
    let requests = || (0..ADDED / PER_REQUEST).map(|at| at * PER_REQUEST..(at + 1) * PER_REQUEST);
    let all: Vec<AddNodesRequest> = requests()
        .map(|range| AddNodesRequest {
            nodes_to_add: range.map(item).collect(),
            ..AddNodesRequest::default()
        })
        .collect();
    stage.store(1, Ordering::Relaxed);
    let start = Clock::now();
    for request in all {
        let results = host.call(&mut client, request, |it, header| it.request_header = header).results;
        assert!(results.iter().all(|result| result.status_code.is_good()), "{:?}", results[0].status_code);
    }
    let took = start.elapsed().as_secs_f64();
    stage.store(2, Ordering::Relaxed);
    println!("AddNodes: {ADDED} nodes in {:.0} ms, {:.0} nodes/s", took * 1e3, f64::from(ADDED) / took);
    let start = Clock::now();
    for range in requests() {
        let item = |number: u32| DeleteNodesItem {
            node_id: NodeId::numeric(1, 1000 + number),
            delete_target_references: true,
        };
        let request = DeleteNodesRequest {
            nodes_to_delete: range.map(item).collect(),
            ..DeleteNodesRequest::default()
        };
        let results = host.call(&mut client, request, |it, header| it.request_header = header).results;
        assert!(results.iter().all(|status| status.is_good()));
    }
    let took = start.elapsed().as_secs_f64();
    stage.store(3, Ordering::Relaxed);
    println!(
        "DeleteNodes: {ADDED} nodes of one folder in {:.0} ms, {:.0} nodes/s",
        took * 1e3,
        f64::from(ADDED) / took
    );
    for (name, turns) in
        ["calm", "while nodes are added", "while nodes are deleted"].into_iter().zip(reads.join().unwrap())
    {
        shown(&format!("reads of another shard, {name}"), &turns);
    }
}

fn main() {
    replacing();
    adding();
}
