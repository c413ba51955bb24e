//! A request and its response allocate nothing once the buffers have grown.

use crate::common::*;
use taktwerk_channel::{Body, Event};

/// The driver's buffers keep their capacities, and the channel buffers nothing.
#[test]
fn a_single_chunk_exchange_grows_nothing() {
    for (policy, mode) in securities() {
        let mut pair = secured(policy, mode).open();
        let request = pattern(200);
        let mut wire = Vec::with_capacity(4096);
        let mut none = Vec::new();
        for round in 0..100u32 {
            for (from, to) in [(true, false), (false, true)] {
                let (sender, receiver) = if from {
                    (&mut pair.client.channel, &mut pair.server.channel)
                } else {
                    (&mut pair.server.channel, &mut pair.client.channel)
                };
                assert_ne!(from, to);
                wire.clear();
                let capacity = wire.capacity();
                let start = sender.begin(&mut wire);
                wire.extend_from_slice(&request);
                sender.finish(start, round, &mut wire).unwrap();
                assert_eq!(wire.capacity(), capacity);
                let received = receiver.receive(&mut wire, pair.now, &mut none).unwrap();
                assert_eq!(received.consumed, wire.len());
                let Event::Message { request_id, body } = received.event else { panic!("no message") };
                assert!(matches!(body, Body::InBuffer { .. }));
                assert_eq!((request_id, body.bytes(&wire)), (round, request.as_slice()));
                assert_eq!((receiver.buffered_len(), sender.buffered_len(), none.capacity()), (0, 0, 0));
            }
        }
    }
}
