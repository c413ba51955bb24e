//! JSON NetworkMessages: anything, and what we write ourselves.

use super::plant::{self, at};
use crate::input::Input;
use std::sync::LazyLock;
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetReaderMessage, DataSetWriter, DataSetWriterMessage,
    PublishedDataSet, ReaderGroup, WriterGroup,
};
use taktwerk_pubsub::{DataSetMessage, PublisherId, Transmit};
use taktwerk_schema::JsonDataSetMessageContentMask as Mask;
use taktwerk_types::codec::Decode;
use taktwerk_types::{BuiltInType, DataValue, Decoder, Variant};

/// Fields of the types whose JSON has a form of its own.
const FIELDS: [(&str, BuiltInType); 8] = [
    ("d", BuiltInType::Double),
    ("s", BuiltInType::String),
    ("t", BuiltInType::DateTime),
    ("q", BuiltInType::Int64),
    ("b", BuiltInType::ByteString),
    ("n", BuiltInType::NodeId),
    ("c", BuiltInType::StatusCode),
    ("v", BuiltInType::Variant),
];

/// One writer of all these fields, in one of the four encodings.
fn publishing(encoding: usize) -> Configuration {
    let fields = FIELDS.iter().map(|(name, kind)| field(name, *kind)).collect();
    let mut group = WriterGroup::json("g", 1, 10.0);
    let mut writer = DataSetWriter::json("w", 1, "set");
    if let DataSetWriterMessage::Json(json) = &mut writer.message {
        let bits = [Mask::EMPTY, Mask::FIELD_ENCODING1, Mask::FIELD_ENCODING2];
        let both = Mask::FIELD_ENCODING1 | Mask::FIELD_ENCODING2;
        json.data_set_message_content_mask =
            json.data_set_message_content_mask.difference(both) | bits.get(encoding).copied().unwrap_or(both);
    }
    group.writers.push(writer);
    let mut connection = Connection::new("mqtt", Some(PublisherId::UInt16(7)), "mqtt+json://broker:1883");
    connection.writer_groups.push(group);
    Configuration {
        enabled: true,
        data_sets: vec![PublishedDataSet::new("set", fields)],
        connections: vec![connection],
        ..Configuration::default()
    }
}

/// A reader that knows the fields, and one that knows nothing.
fn subscribing(encoding: usize) -> Configuration {
    let mut configuration = Configuration::subscriber_of(&publishing(encoding));
    let any = DataSetReader {
        name: "any".into(),
        enabled: true,
        message: DataSetReaderMessage::Json(Default::default()),
        ..DataSetReader::default()
    };
    configuration.connections[0].reader_groups.push(ReaderGroup::new("any", vec![any]));
    configuration
}

/// Text from anybody, or values of ours that have to arrive.
pub fn run(data: &[u8]) {
    static BOTH: LazyLock<Vec<(Configuration, Configuration)>> =
        LazyLock::new(|| (0..4).map(|encoding| (publishing(encoding), subscribing(encoding))).collect());
    let mut input = Input::new(data);
    let is_ours = input.flag();
    let (publishing, subscribing) = &BOTH[input.below(4)];
    let mut receiving = plant::subscriber(subscribing.clone());
    let mut fields = Vec::new();
    let mut sink = |message: &DataSetMessage<'_>| {
        if message.reader.group == 0 {
            fields = message.fields.to_vec();
        }
    };
    receiving.start(at(0), &mut sink);
    if !is_ours {
        receiving.receive(0, &mut input.rest().to_vec(), at(0), &mut sink);
        assert_eq!(receiving.counters().network_messages, 1);
        return;
    }
    let mut sending = plant::publisher(publishing.clone());
    sending.start(at(0).instant, at(0));
    // Each field has its type, or is null.
    let mut decoder = Decoder::new(input.rest(), Default::default());
    let mut sent = Vec::new();
    for (_, kind) in FIELDS {
        let value = Variant::decode(&mut decoder).unwrap_or_default();
        let fits = match kind {
            BuiltInType::Variant => matches!(value, Variant::Empty | Variant::UInt32(_) | Variant::String(_)),
            kind => value.built_in_type() == Some(kind) && value.as_array().is_none(),
        };
        sent.push(if fits { value } else { Variant::Empty });
    }
    let mut values = |_: usize, fields: &mut [DataValue]| {
        for (field, value) in fields.iter_mut().zip(&sent) {
            *field = DataValue::new(value.clone());
        }
    };
    let mut out = Transmit::new();
    sending.poll(at(0), &mut values, &mut out);
    assert_eq!(out.len(), 1);
    for datagram in out.iter() {
        receiving.receive(0, &mut datagram.bytes.to_vec(), at(0), &mut sink);
    }
    let counters = receiving.counters();
    assert_eq!(
        counters.malformed,
        0,
        "{}",
        out.iter().map(|one| String::from_utf8_lossy(one.bytes)).collect::<String>()
    );
    assert_eq!(fields.len(), FIELDS.len());
}
