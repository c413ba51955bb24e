//! Discovery: probes to a publisher, announcements to a subscriber, and messages in announced layouts.

use super::plant::{self, PUBLISHER, at};
use crate::input::Input;
use std::sync::LazyLock;
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::uadp::announcement::NumberedAnnouncement;
use taktwerk_pubsub::uadp::header::{GroupHeader, NetworkMessageHeader, NetworkMessageType, WriterIds};
use taktwerk_pubsub::uadp::probe::Probe;
use taktwerk_pubsub::{DataSetMessage, PublisherIdRef, Transmit};
use taktwerk_types::codec::Decode;
use taktwerk_types::{DataValue, DecodeLimits, Encode};

/// Maximum announcements of the publisher at once: endpoints, application, metadata and configuration of its eight
/// writers, and its four groups and connection with and without their children.
const ANNOUNCEMENTS_MAX: usize = 2 + 8 + 8 + 4 * 2 + 4;

/// Decoded values survive encoding and decoding.
fn round_trip<T: for<'a> Decode<'a> + Encode>(bytes: &[u8]) {
    if let Ok(value) = T::decode_from(bytes, DecodeLimits::DEFAULT) {
        let written = value.encode_to_vec();
        let again = T::decode_from(&written, DecodeLimits::DEFAULT).expect("what was written can be read");
        assert_eq!(written, again.encode_to_vec());
    }
}

/// A message of our publisher with a payload from the fuzzer.
fn framed(message_type: NetworkMessageType, writer_id: u16, payload: &[u8]) -> Vec<u8> {
    let ids = [writer_id];
    let is_data = message_type == NetworkMessageType::DataSetMessages;
    let group = GroupHeader { writer_group_id: Some(1), ..GroupHeader::default() };
    let header = NetworkMessageHeader {
        publisher_id: Some(PublisherIdRef::UInt16(PUBLISHER)),
        message_type,
        group: is_data.then_some(group),
        writer_ids: is_data.then_some(WriterIds::List(&ids)),
        ..NetworkMessageHeader::default()
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// Runs the target.
pub fn run(data: &[u8]) {
    static BOTH: LazyLock<(Configuration, Configuration)> =
        LazyLock::new(|| (plant::publishing(), plant::subscribing()));
    let mut input = Input::new(data);
    let mut sending = plant::publisher(BOTH.0.clone());
    let mut receiving = plant::subscriber(BOTH.1.clone());
    let mut sink = |_: &DataSetMessage<'_>| {};
    receiving.start(at(0), &mut sink);
    let (mut millis, mut out) = (0, Transmit::new());
    while !input.is_empty() {
        let kind = input.below(6);
        let writer_id = u16::from(input.byte() % 10);
        let len = usize::from(input.u16() % 2048);
        let payload = input.bytes(len);
        let message_type = match kind {
            0 | 1 => NetworkMessageType::DiscoveryProbe,
            2 | 3 => NetworkMessageType::DiscoveryAnnouncement,
            _ => NetworkMessageType::DataSetMessages,
        };
        let bytes = framed(message_type, writer_id, payload);
        match message_type {
            NetworkMessageType::DiscoveryProbe => round_trip::<Probe>(payload),
            NetworkMessageType::DiscoveryAnnouncement => round_trip::<NumberedAnnouncement>(payload),
            NetworkMessageType::DataSetMessages => {}
        }
        sending.receive(0, &bytes, at(millis));
        receiving.receive(0, &mut bytes.clone(), at(millis), &mut sink);
        millis += u64::from(input.byte());
        out.clear();
        let mut values = |_: usize, _: &mut [DataValue]| {};
        sending.poll(at(millis), &mut values, &mut out);
        assert!(out.len() <= ANNOUNCEMENTS_MAX, "{} announcements", out.len());
        // The subscriber understands the publisher's announcements.
        let malformed = receiving.counters().malformed;
        for datagram in out.iter() {
            receiving.receive(0, &mut datagram.bytes.to_vec(), at(millis), &mut sink);
        }
        assert_eq!(receiving.counters().malformed, malformed);
        out.clear();
        receiving.poll(at(millis), &mut sink, &mut out);
    }
}
