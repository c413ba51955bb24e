//! Arbitrary input: no panic, and either a response or a close.

use super::attribute::{add, variable};
use super::*;
use proptest::prelude::*;
use taktwerk_types::BuiltInType;

/// Type ids of all requests, and some invalid ones.
const TYPES: &[u32] = &[
    0, 1, 397, 422, 428, 437, 446, 452, 461, 467, 473, 479, 488, 494, 500, 506, 527, 533, 554, 560, 566, 615,
    621, 631, 664, 673, 700, 712, 751, 763, 769, 775, 781, 787, 793, 799, 826, 832, 841, 847, 12208, 65535,
];

fn requests() -> impl Strategy<Value = Vec<(usize, Vec<u8>, bool)>> {
    let body = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        // Small numbers give plausible lengths and ids.
        proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), 0u8..8], 0..200),
    ];
    proptest::collection::vec((0..TYPES.len(), body, any::<bool>()), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn requests_of_any_bytes_are_answered(requests in requests()) {
        let mut server = Server::new();
        add(&server, variable(1, BuiltInType::Double, 1.0));
        let mut client = server.session();
        for (type_at, body, with_header) in requests {
            let mut bytes = Vec::new();
            if with_header {
                client.header().encode(&mut bytes);
            }
            bytes.extend_from_slice(&body);
            let type_id = TYPES[type_at];
            let id = client.send(&mut server, type_id, &Raw(bytes));
            // Even an empty HistoryUpdate is work for a thread that may block.
            while server.run_effect() {}
            client.drain(&mut server);
            let waits = type_id == schema::PublishRequest::BINARY_ENCODING_ID;
            let answered = client.responses.iter().any(|(request, _)| *request == id);
            prop_assert!(answered || waits || client.closed, "type {} was met with silence", type_id);
            client.responses.clear();
        }
        server.pass(Duration::from_secs(200));
        client.drain(&mut server);
        prop_assert_eq!(server.shard.session_count(), 0);
    }

    #[test]
    fn streams_of_any_bytes_end_in_silence_or_a_close(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..8),
        hello in any::<bool>(),
    ) {
        let mut server = Server::new();
        let id = if hello { server.connect().connection } else { server.shard.opened(server.now) };
        let mut tail = Vec::new();
        for chunk in chunks {
            tail.extend_from_slice(&chunk);
            let done = server.shard.received(id, &mut tail, server.now);
            prop_assert!(done <= tail.len());
            tail.drain(..done);
        }
        while let Some(id) = server.shard.poll_transmit() {
            let len = server.shard.unsent(id).len();
            server.shard.sent(id, len);
        }
        while server.shard.poll_close().is_some() {}
        server.pass(Duration::from_secs(8000));
        while let Some(id) = server.shard.poll_transmit() {
            let len = server.shard.unsent(id).len();
            server.shard.sent(id, len);
        }
        while server.shard.poll_close().is_some() {}
        // Nothing remains: no connection, no deadline.
        prop_assert_eq!(server.shard.connection_count(), 0);
        prop_assert_eq!(server.shard.poll_timeout(), None);
    }

    #[test]
    fn mutated_requests_do_not_panic(at in 0usize..400, with in any::<u8>(), cut in 0usize..400) {
        let mut server = Server::new();
        add(&server, variable(1, BuiltInType::Double, 1.0));
        let mut client = server.session();
        let read = schema::ReadRequest {
            request_header: client.header(),
            nodes_to_read: vec![
                schema::ReadValueId { node_id: NodeId::numeric(1, 1), attribute_id: 13, ..Default::default() };
                4
            ],
            ..Default::default()
        };
        let write = schema::WriteRequest {
            request_header: client.header(),
            nodes_to_write: vec![
                schema::WriteValue {
                    node_id: NodeId::numeric(1, 1),
                    attribute_id: 13,
                    value: taktwerk_types::DataValue::new(1.0),
                    ..Default::default()
                };
                4
            ],
        };
        for (type_id, mut bytes) in [
            (schema::ReadRequest::BINARY_ENCODING_ID, read.encode_to_vec()),
            (schema::WriteRequest::BINARY_ENCODING_ID, write.encode_to_vec()),
        ] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = with;
            }
            bytes.truncate(bytes.len().saturating_sub(cut % 50));
            let id = client.send(&mut server, type_id, &Raw(bytes));
            prop_assert!(client.closed || client.responses.iter().any(|(request, _)| *request == id));
        }
    }
}

/// Raw bytes.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}
