//! The cost of a request in the server, without sockets: `cargo bench -p taktwerk-server`.
//!
//! Only the processing of a client's chunk in the shard, up to its response, is timed. Results are medians of batches,
//! and the heap allocations of the last batch.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)] // a program, not the core

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant as Clock;
use taktwerk_channel::{Channel, ChannelConfig, Event, OpenParams};
use taktwerk_crypto::SeededEntropy;
use taktwerk_schema::{
    ActivateSessionRequest, BrowseDescription, BrowseRequest, CreateSessionRequest, CreateSessionResponse,
    ReadRequest, ReadValueId, TimestampsToReturn, WriteRequest, WriteValue,
};
use taktwerk_server::space::NodeSpec;
use taktwerk_server::space::build::Under;
use taktwerk_server::{AddressSpace, ConnectionId, Now, ServerConfig, ServerShared, Shard};
use taktwerk_types::{
    DataValue, Decode, DecodeLimits, Decoder, Encode, Instant, NodeId, QualifiedName, Structure, UtcTime,
};

struct Bench {
    shard: Shard,
    connection: ConnectionId,
    channel: Channel,
    now: Now,
    token: NodeId,
}

impl Bench {
    fn new(variables: u32) -> Self {
        let utc = UtcTime::parse("2026-01-01T00:00:00Z").unwrap();
        let now = Now { instant: Instant::ZERO + Duration::from_secs(1), utc };
        let config = ServerConfig::new("bench", "urn:bench", "opc.tcp://host:4840", utc);
        let space = Arc::new(AddressSpace::new(1, 64, "urn:bench"));
        let namespace = space.add_namespace("urn:bench:nodes");
        let under = Under {
            parent: &NodeId::numeric(0, 85),
            reference_type: &NodeId::numeric(0, 35),
            type_definition: Some(&NodeId::numeric(0, 63)),
        };
        for number in 0..variables {
            let name = QualifiedName::new(namespace, format!("v{number}"));
            let spec = NodeSpec::variable(
                NodeId::numeric(namespace, 1000 + number),
                name,
                NodeId::numeric(0, 11),
                Some(f64::from(number).into()),
            )
            .access_level(taktwerk_schema::AccessLevelType(3));
            space.add_node(spec, under, utc).unwrap();
        }
        let shared = ServerShared::new(config, space, 1, utc);
        let mut shard = Shard::new(0, shared, Box::new(SeededEntropy::new(1)));
        let connection = shard.opened(now);
        let mut out = Vec::new();
        let params = OpenParams::insecure("opc.tcp://host:4840");
        let channel =
            Channel::client(Arc::new(ChannelConfig::default()), params, now.instant, &mut out).unwrap();
        let mut bench = Self { shard, connection, channel, now, token: NodeId::NULL };
        for _ in 0..2 {
            bench.shard.received(connection, &mut out, now);
            out.clear();
            let mut answer = bench.take();
            let _ = bench.channel.receive(&mut answer, now.instant, &mut out).unwrap();
        }
        let create = CreateSessionRequest::default();
        let response = bench.ask(&bench.header(&create, |request, header| request.request_header = header));
        let mut decoder = Decoder::new(&response, DecodeLimits::DEFAULT);
        NodeId::decode(&mut decoder).unwrap();
        bench.token = CreateSessionResponse::decode(&mut decoder).unwrap().authentication_token;
        let activate = ActivateSessionRequest::default();
        bench.ask(&bench.header(&activate, |request, header| request.request_header = header));
        bench
    }

    fn header<T: Clone>(&self, request: &T, set: impl FnOnce(&mut T, taktwerk_schema::RequestHeader)) -> T {
        let mut request = request.clone();
        set(
            &mut request,
            taktwerk_schema::RequestHeader { authentication_token: self.token.clone(), ..Default::default() },
        );
        request
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

    fn take(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        while let Some(id) = self.shard.poll_transmit() {
            answer.extend_from_slice(self.shard.unsent(id));
            let len = self.shard.unsent(id).len();
            self.shard.sent(id, len);
        }
        answer
    }

    fn ask<T: Structure>(&mut self, request: &T) -> Vec<u8> {
        let mut bytes = self.encode(request);
        let used = self.shard.received(self.connection, &mut bytes, self.now);
        assert_eq!(used, bytes.len());
        let mut answer = self.take();
        let received = self.channel.receive(&mut answer, self.now.instant, &mut Vec::new()).unwrap();
        match received.event {
            Event::Message { body, .. } => body.bytes(&answer).to_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// Median nanoseconds per request.
    fn time<T: Structure>(&mut self, name: &str, per: u32, request: &T) {
        const BATCH: usize = 200;
        // `cargo bench -- read` runs the benchmarks with that text in their names.
        let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
        if wanted.is_some_and(|wanted| !name.contains(&wanted)) {
            return;
        }
        let mut medians = Vec::new();
        for _ in 0..25 {
            let mut requests: Vec<Vec<u8>> = (0..BATCH).map(|_| self.encode(request)).collect();
            let start = Clock::now();
            for bytes in &mut requests {
                // One turn each, as with the driver.
                self.now.instant = self.now.instant + Duration::from_nanos(1);
                let used = self.shard.received(self.connection, bytes, self.now);
                assert_eq!(used, bytes.len());
                while let Some(id) = self.shard.poll_transmit() {
                    let len = self.shard.unsent(id).len();
                    self.shard.sent(id, len);
                }
            }
            medians.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        }
        medians.sort_by(f64::total_cmp);
        let median = medians[medians.len() / 2];
        println!("{name:24} {median:10.0} ns/request {:8.1} ns each", median / f64::from(per));
    }
}

fn main() {
    let mut bench = Bench::new(1000);
    for count in [1u32, 10, 100, 1000] {
        let read = ReadRequest {
            timestamps_to_return: TimestampsToReturn(2),
            nodes_to_read: (0..count)
                .map(|at| ReadValueId {
                    node_id: NodeId::numeric(2, 1000 + at),
                    attribute_id: 13,
                    ..ReadValueId::default()
                })
                .collect(),
            ..ReadRequest::default()
        };
        let read = bench.header(&read, |request, header| request.request_header = header);
        bench.time(&format!("read {count}"), count, &read);
    }
    for count in [1u32, 1000] {
        let write = WriteRequest {
            nodes_to_write: (0..count)
                .map(|at| WriteValue {
                    node_id: NodeId::numeric(2, 1000 + at),
                    attribute_id: 13,
                    value: DataValue::new(f64::from(at)),
                    ..WriteValue::default()
                })
                .collect(),
            ..WriteRequest::default()
        };
        let write = bench.header(&write, |request, header| request.request_header = header);
        bench.time(&format!("write {count}"), count, &write);
    }
    let browse = BrowseRequest {
        nodes_to_browse: vec![BrowseDescription {
            node_id: NodeId::numeric(0, 85),
            result_mask: 63,
            ..BrowseDescription::default()
        }],
        ..BrowseRequest::default()
    };
    let browse = bench.header(&browse, |request, header| request.request_header = header);
    bench.time("browse 1000 children", 1000, &browse);
}
