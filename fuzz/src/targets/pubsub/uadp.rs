//! UADP: the decoders alone, and a subscriber with a correct publisher and an attacker.

use super::plant::{self, SECURED, at};
use crate::input::Input;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use taktwerk_pubsub::config::Configuration;
use taktwerk_pubsub::uadp::data_set_message::DataSetMessageHeader;
use taktwerk_pubsub::uadp::fields::{FieldTypes, ReceivedField, decode_fields};
use taktwerk_pubsub::uadp::header::{NetworkMessageHeader, NetworkMessageType};
use taktwerk_pubsub::uadp::payload::DataSetPayload;
use taktwerk_pubsub::uadp::raw::RawLayout;
use taktwerk_pubsub::{DataSetMessage, Publisher, Sink, Subscriber, Transmit};
use taktwerk_types::{BuiltInType, DataValue, Decoder};

/// Maximum genuine messages kept for changes and replays.
const KEPT: usize = 64;

/// Runs one of both.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    if input.flag() { exchange(&mut input) } else { message(input.rest()) }
}

/// Passes one message to all decoders. Decoded content must survive encoding and decoding without loss.
fn message(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes, Default::default());
    let Ok(header) = NetworkMessageHeader::decode(&mut decoder) else { return };
    let mut written = Vec::new();
    let offsets = header.encode(&mut written);
    assert_eq!(offsets.payload, written.len());
    let mut again = Vec::new();
    NetworkMessageHeader::decode(&mut Decoder::new(&written, Default::default()))
        .expect("what was written can be read")
        .encode(&mut again);
    assert_eq!(written, again);
    if header.message_type != NetworkMessageType::DataSetMessages || header.is_chunk {
        return;
    }
    let Ok(payload) = DataSetPayload::new(header.writer_ids, decoder.rest()) else { return };
    static LAYOUT: LazyLock<RawLayout> =
        LazyLock::new(|| RawLayout::new(&plant::data_set("").meta_data).expect("it has fixed sizes"));
    let known: Vec<_> = plant::data_set("")
        .meta_data
        .fields
        .iter()
        .map(|field| BuiltInType::from_number(field.built_in_type))
        .collect();
    let types = FieldTypes { built_in_types: &known, raw: Some(&LAYOUT) };
    let mut fields: Vec<ReceivedField> = Vec::new();
    for (_, bytes) in payload {
        for types in [types, FieldTypes::default()] {
            let mut decoder = Decoder::new(bytes, Default::default());
            let Ok(header) = DataSetMessageHeader::decode(&mut decoder) else { break };
            let mut written = Vec::new();
            header.encode(&mut written);
            let again = DataSetMessageHeader::decode(&mut Decoder::new(&written, Default::default()));
            assert_eq!(again.as_ref(), Ok(&header));
            if decode_fields(&header, &mut decoder, types, &mut fields).is_ok() {
                // A field takes at least a byte, unless its offset is known.
                assert!(fields.len() <= bytes.len().max(known.len()));
            }
        }
    }
}

/// The subscriber's deliveries.
#[derive(Default)]
struct Taken {
    secured: usize,
    all: usize,
}

impl Sink for Taken {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        self.all += 1;
        self.secured += usize::from(message.reader.group == SECURED);
        assert!(message.fields.len() <= usize::from(u16::MAX));
    }
}

struct Exchange {
    sending: Publisher,
    receiving: Subscriber,
    taken: Taken,
    honest: Vec<Vec<u8>>,
    /// Genuine messages that a secured reader has accepted.
    spent: BTreeSet<Vec<u8>>,
    millis: u64,
    given: u64,
}

impl Exchange {
    /// Passes a datagram to the subscriber: secured readers accept it only if it is genuine, and once.
    fn give(&mut self, mut datagram: Vec<u8>) {
        let before = self.taken.secured;
        let genuine = self.honest.contains(&datagram);
        let original = datagram.clone();
        self.receiving.receive(0, &mut datagram, at(self.millis), &mut self.taken);
        self.given += 1;
        if self.taken.secured > before {
            assert!(genuine, "a forged message was accepted");
            assert!(self.spent.insert(original), "a replayed message was accepted");
        }
        let counters = self.receiving.counters();
        assert_eq!(counters.network_messages, self.given);
        assert_eq!(counters.data_set_messages, self.taken.all as u64);
    }

    /// Publishes and keeps the sent messages.
    fn cycle(&mut self, input: &mut Input<'_>) {
        self.millis += 10;
        let mut out = Transmit::new();
        let (float, word) = (input.byte(), input.u16());
        let text = String::from_utf8_lossy(input.piece()).into_owned();
        let mut values = |_: usize, fields: &mut [DataValue]| {
            fields[0] = DataValue::new(f32::from(float));
            fields[1] = DataValue::new(text.clone());
            fields[2] = DataValue::new(word);
            fields[3] = DataValue::new(vec![1i16; usize::from(word % 5)]);
        };
        self.sending.poll(at(self.millis), &mut values, &mut out);
        for datagram in out.iter() {
            if self.honest.len() < KEPT {
                self.honest.push(datagram.bytes.to_vec());
            }
        }
    }

    fn pick(&self, input: &mut Input<'_>) -> Vec<u8> {
        let at = input.below(self.honest.len());
        self.honest.get(at).cloned().unwrap_or_default()
    }
}

/// A correct publisher, an attacker who receives, changes and repeats its messages, and a subscriber.
fn exchange(input: &mut Input<'_>) {
    static BOTH: LazyLock<(Configuration, Configuration)> =
        LazyLock::new(|| (plant::publishing(), plant::subscribing()));
    let mut on = Exchange {
        sending: plant::publisher(BOTH.0.clone()),
        receiving: plant::subscriber(BOTH.1.clone()),
        taken: Taken::default(),
        honest: Vec::new(),
        spent: BTreeSet::new(),
        millis: 0,
        given: 0,
    };
    on.sending.start(at(0).instant, at(0));
    on.receiving.start(at(0), &mut on.taken);
    on.sending.set_keys("group", Ok(&plant::keys()), at(0)).expect("they are keys");
    on.receiving.set_keys("group", Ok(&plant::keys()), at(0)).expect("they are keys");
    while !input.is_empty() {
        match input.below(6) {
            0 => {
                let len = usize::from(input.u16() % 1500);
                let bytes = input.bytes(len).to_vec();
                on.give(bytes);
            }
            1 => {
                let mut bytes = on.pick(input);
                for _ in 0..=input.below(3) {
                    let (at, change) = (usize::from(input.byte()), input.byte());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= change;
                    }
                }
                if input.one_in(8) {
                    bytes.truncate(usize::from(input.byte()));
                }
                on.give(bytes);
            }
            2 => {
                let bytes = on.pick(input);
                on.give(bytes);
            }
            3 => {
                on.millis += u64::from(input.edgy_u32() % 20_000);
                let mut out = Transmit::new();
                on.receiving.poll(at(on.millis), &mut on.taken, &mut out);
            }
            _ => on.cycle(input),
        }
    }
}
