//! The resident memory that unknown clients can make a server use, with the most expensive requests kept as long as the
//! protocol allows. `Limits::memory_max` states the limit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)] // a test fails by panicking

#[path = "../../server/tests/generated/mod.rs"]
#[allow(dead_code)] // one of the two tests does not need all of it
mod generated;

use generated::{Names, RawClient, Sizes, encode, paths, requests, responses};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use taktwerk_channel::ChannelLimits;
use taktwerk_lab::program::{Program, Running};
use taktwerk_schema::{
    ActivateSessionRequest, ApplicationDescription, CreateMonitoredItemsRequest, CreateSessionRequest,
    CreateSessionResponse, CreateSubscriptionRequest, CreateSubscriptionResponse, MonitoredItemCreateRequest,
    MonitoringMode, MonitoringParameters, PublishRequest, ReadValueId, RequestHeader,
    SubscriptionAcknowledgement,
};
use taktwerk_server::Limits;
use taktwerk_types::{Decode, NodeId, Structure};

const LIMIT: Duration = Duration::from_secs(60);
/// Allowed memory beyond what is accounted, in bytes.
const MARGIN: usize = 64 << 20;

/// A field of `/proc/PID/status` in kB, converted to bytes.
fn memory(server: &Running, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

struct Client {
    stream: TcpStream,
    raw: RawClient,
    names: Names,
}

impl Client {
    fn connect(server: &Running) -> Self {
        let url = server.url();
        let address = url.trim_start_matches("opc.tcp://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.write_all(&RawClient::hello(url)).unwrap();
        let mut raw = RawClient::default();
        stream.write_all(&raw.open()).unwrap();
        let mut received = Vec::new();
        let mut part = [0; 4096];
        while !received.windows(4).any(|window| window == b"OPNF") {
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "the server closes the connection");
            received.extend_from_slice(&part[..count]);
        }
        raw.opened(&received);
        let names = Names { token: NodeId::NULL, node: NodeId::numeric(0, 2254), subscription: 0 };
        Self { stream, raw, names }
    }

    /// Sends a request; false if the connection is closed.
    fn send(&mut self, request: &impl Structure) -> bool {
        let bytes = self.raw.request(request);
        self.stream.write_all(&bytes).is_ok()
    }

    /// Sends a request and waits for a response of a type; `None` if another one arrives or the connection is closed.
    fn ask<T: Structure + for<'a> Decode<'a>>(&mut self, request: &impl Structure) -> Option<T> {
        if !self.send(request) {
            return None;
        }
        let mut received = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            let count = self.stream.read(&mut part).unwrap_or(0);
            if count == 0 {
                return None;
            }
            received.extend_from_slice(&part[..count]);
            let size = received.get(4..8).map(|size| u32::from_le_bytes(size.try_into().unwrap()) as usize);
            if size.is_some_and(|size| received.len() >= size) {
                return responses(&received).pop();
            }
        }
    }

    fn header(&self) -> RequestHeader {
        RequestHeader { authentication_token: self.names.token.clone(), ..Default::default() }
    }

    /// A session with a subscription.
    fn session(server: &Running) -> Self {
        let mut client = Self::connect(server);
        let request = CreateSessionRequest { requested_session_timeout: 60_000.0, ..Default::default() };
        let created: CreateSessionResponse = client.ask(&request).unwrap();
        client.names.token = created.authentication_token;
        let request = ActivateSessionRequest { request_header: client.header(), ..Default::default() };
        client.ask::<taktwerk_schema::ActivateSessionResponse>(&request).unwrap();
        let request = CreateSubscriptionRequest {
            request_header: client.header(),
            requested_publishing_interval: 100.0,
            requested_lifetime_count: 10_000,
            requested_max_keep_alive_count: 1_000,
            ..Default::default()
        };
        let created: CreateSubscriptionResponse = client.ask(&request).unwrap();
        client.names.subscription = created.subscription_id;
        client
    }
}

fn serve() -> Running {
    let arguments = ["serve", "--port", "0", "--exit-with-stdin", "--guarded", "--policy", "None"];
    Program::new(env!("CARGO_BIN_EXE_taktwerk")).args(arguments).serve(LIMIT).unwrap()
}

/// As many sessions as possible, with long strings and nonces.
fn sessions(server: &Running) -> Vec<Client> {
    let mut clients: Vec<_> = (0..6).map(|_| Client::connect(server)).collect();
    for (string, nonce) in [(1 << 20, 32), (4096, 32), (1, 15 << 20), (4096, 128)] {
        let text = "x".repeat(string);
        let description = ApplicationDescription {
            application_uri: text.as_str().into(),
            product_uri: text.as_str().into(),
            discovery_urls: vec![text.as_str().into(); 4],
            ..Default::default()
        };
        let count = if nonce > 128 { 2 } else { 50 };
        for client in &mut clients {
            for _ in 0..count {
                let request = CreateSessionRequest {
                    client_description: description.clone(),
                    endpoint_url: text.as_str().into(),
                    client_nonce: vec![7; nonce].into(),
                    requested_session_timeout: 3_600_000.0,
                    ..Default::default()
                };
                let response = client.ask::<CreateSessionResponse>(&request);
                assert!(response.is_none() || (string <= 4096 && nonce <= 128), "{string} {nonce}");
            }
        }
    }
    clients
}

/// Publish requests with a million acknowledgements, and with the maximum allowed number.
fn acknowledgements(server: &Running) -> Vec<Client> {
    let mut clients: Vec<_> = (0..3).map(|_| Client::session(server)).collect();
    for (count, times) in [(1_000_000, 20), (2_000, 100)] {
        for client in &mut clients {
            let request = PublishRequest {
                request_header: client.header(),
                subscription_acknowledgements: vec![SubscriptionAcknowledgement::default(); count],
            };
            (0..times).for_each(|_| assert!(client.send(&request)));
        }
    }
    clients
}

/// Items with an IndexRange of a mebibyte.
fn index_ranges(server: &Running) -> Vec<Client> {
    let mut client = Client::session(server);
    for range in ["0,".repeat((1 << 19) - 1) + "0", "0,".repeat(31) + "0"] {
        let item = MonitoredItemCreateRequest {
            item_to_monitor: ReadValueId {
                node_id: client.names.node.clone(),
                attribute_id: 13,
                index_range: range.as_str().into(),
                ..Default::default()
            },
            monitoring_mode: MonitoringMode::REPORTING,
            requested_parameters: MonitoringParameters { queue_size: 1, ..Default::default() },
        };
        for _ in 0..20 {
            let request = CreateMonitoredItemsRequest {
                request_header: client.header(),
                subscription_id: client.names.subscription,
                items_to_create: vec![item.clone(); 4],
                ..Default::default()
            };
            let created: taktwerk_schema::CreateMonitoredItemsResponse = client.ask(&request).unwrap();
            let is_short = range.len() < 100;
            let status: Vec<_> = created.results.iter().map(|result| result.status_code).collect();
            assert!(status.iter().all(|status| status.is_good() == is_short), "{status:?}");
        }
    }
    vec![client]
}

/// Every request type with every field at maximum length. Responses are not read.
fn generated_requests(server: &Running) -> Vec<Client> {
    let sizes = Sizes { string: 512 << 10, bytes: 512 << 10, array: 512 << 10 };
    let mut clients = Vec::new();
    for request in requests() {
        let mut client = Client::session(server);
        for path in paths(request) {
            let bytes = client.raw.message(&encode(request, &path, sizes, &client.names), true);
            if client.stream.write_all(&bytes).is_err() {
                client = Client::session(server);
            }
        }
        clients.push(client);
    }
    clients
}

/// Makes a server store something as long as the clients exist.
type Attack = fn(&Running) -> Vec<Client>;

#[test]
fn memory_stays_below_the_sum_of_the_limits() {
    let limits = Limits::default();
    let allowed = limits.memory_max(&ChannelLimits::default(), 1);
    let attacks: [(&str, Attack); 4] = [
        ("sessions", sessions),
        ("acknowledgements", acknowledgements),
        ("index ranges", index_ranges),
        ("generated requests", generated_requests),
    ];
    for (name, attack) in attacks {
        let server = serve();
        let idle = memory(&server, "VmRSS");
        let kept = attack(&server);
        std::thread::sleep(Duration::from_millis(200));
        let (now, most) = (memory(&server, "VmRSS"), memory(&server, "VmHWM"));
        println!("{name}: {} MiB idle, {} MiB now, {} MiB at most", idle >> 20, now >> 20, most >> 20);
        // Only sessions and requests are stored here.
        let kept_max = limits.session_bytes_max + limits.request_bytes_max;
        assert!(now <= idle + kept_max + MARGIN, "{name}: {} MiB", now >> 20);
        assert!(most <= allowed + MARGIN, "{name}: {} MiB of {}", most >> 20, allowed >> 20);
        drop(kept);
        server.stop().unwrap();
    }
}
