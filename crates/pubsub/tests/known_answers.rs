//! Messages written by hand from the tables of Part 14: the layouts of Annex A and the headers around them.
#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{at, connection, publisher, subscriber};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, DataSetWriter, PublishedDataSet, WriterGroup, WriterGroupMessage,
};
use taktwerk_pubsub::uadp::header::{NetworkMessageHeader, PromotedFields};
use taktwerk_pubsub::uadp::{GroupHeader, NetworkMessageType, SecurityHeader, SecurityMode, WriterIds};
use taktwerk_pubsub::{PublisherId, PublisherIdRef, Transmit};
use taktwerk_types::{BuiltInType, DataValue, Decoder, Guid, StatusCode, UtcTime, Variant};

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.lines().map(|line| line.split('#').next().unwrap()).collect();
    let digits: Vec<char> = digits.chars().filter(|character| !character.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

fn configuration(group: WriterGroup, make: fn(&str, u16, &str) -> DataSetWriter) -> Configuration {
    let fields = vec![field("flag", BuiltInType::Boolean), field("count", BuiltInType::Int32)];
    let mut configuration = Configuration { enabled: true, ..Configuration::default() };
    let mut connection = connection();
    let mut group = group;
    for id in [1, 2] {
        let name = format!("set{id}");
        configuration.data_sets.push(PublishedDataSet::new(&name, fields.clone()));
        group.writers.push(make(&name, id, &name));
    }
    connection.writer_groups.push(group);
    configuration.connections.push(connection);
    configuration
}

fn first_message(configuration: Configuration) -> Vec<u8> {
    let mut sending = publisher(configuration);
    sending.start(at(0).instant, at(0));
    let mut out = Transmit::new();
    let mut values = |set: usize, fields: &mut [DataValue]| {
        fields[0] = DataValue::new(set == 0);
        fields[1] = DataValue::new(0x0102_0304i32 + set as i32);
    };
    sending.poll(at(0), &mut values, &mut out);
    assert_eq!(out.len(), 1);
    out.iter().next().unwrap().bytes.to_vec()
}

/// Figures A.1 and A.4: PublisherId UInt16, whole GroupHeader, no PayloadHeader; RawData with number and status.
#[test]
fn periodic_fixed_layout() {
    let group = WriterGroup::periodic_fixed("g", 0x0506, 10.0);
    let expected =
        hex("B1 01        # version 1, PublisherId, GroupHeader, ExtendedFlags1; PublisherId is UInt16
         BA 08        # 2234
         0F           # all four fields of the GroupHeader
         06 05        # WriterGroupId
         01 00 00 00  # GroupVersion
         01 00        # NetworkMessageNumber
         01 00        # SequenceNumber
         1B           # valid, RawData, number, status
         01 00        # number
         00 00        # Good
         01           # flag
         04 03 02 01  # count
         1B 01 00 00 00 00 05 03 02 01");
    assert_eq!(first_message(configuration(group, DataSetWriter::periodic_fixed)), expected);
}

/// Figures A.7 and A.10: PublisherId and PayloadHeader; number, timestamp, status, minor version.
#[test]
fn dynamic_layout() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), DataSetWriter::dynamic);
    configuration.connections[0].publisher_id = Some(PublisherId::UInt64(0x1122_3344_5566_7788));
    let time = at(0).utc.ticks().to_le_bytes();
    let time: String = time.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = hex(&format!(
        "D1 03                    # version 1, PublisherId, PayloadHeader, ExtendedFlags1; UInt64
         88 77 66 55 44 33 22 11
         02 01 00 02 00           # two messages, of writers 1 and 2
         1B 00 1B 00              # 27 bytes each
         D9 10                    # valid, Variant, number, status, minor version, flags 2; key frame, timestamp
         01 00 {time} 00 00 01 00 00 00
         02 00                    # two fields
         01 01                    # Boolean
         06 04 03 02 01           # Int32
         D9 10 01 00 {time} 00 00 01 00 00 00 02 00 01 00 06 05 03 02 01"
    ));
    assert_eq!(first_message(configuration), expected);
}

/// A header with everything, in the order of Table 154.
#[test]
fn header_with_everything() {
    let promoted = [Variant::from(7u8)];
    let header = NetworkMessageHeader {
        publisher_id: Some(PublisherIdRef::String("ab")),
        data_set_class_id: Some(Guid::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])),
        group: Some(GroupHeader {
            writer_group_id: Some(1),
            group_version: Some(2),
            network_message_number: Some(3),
            sequence_number: Some(4),
        }),
        writer_ids: Some(WriterIds::List(&[9])),
        timestamp: Some(UtcTime::from_ticks(5)),
        picoseconds: Some(6),
        promoted_fields: Some(PromotedFields::List(&promoted)),
        security: Some(SecurityHeader {
            mode: SecurityMode::SignAndEncrypt,
            force_key_reset: true,
            token_id: 8,
            nonce: &[1, 2, 3, 4, 5, 6, 7, 8],
            footer_len: Some(2),
        }),
        message_type: NetworkMessageType::DataSetMessages,
        is_chunk: false,
        has_action_header: true,
    };
    let expected = hex("F1 FC 22                                       # flags
         02 00 00 00 61 62                              # PublisherId
         03 02 01 00 05 04 07 06 08 09 0A 0B 0C 0D 0E 0F # DataSetClassId
         0F 01 00 02 00 00 00 03 00 04 00               # GroupHeader
         01 09 00                                       # PayloadHeader
         05 00 00 00 00 00 00 00 06 00                  # timestamp, picoseconds
         02 00 03 07                                    # promoted fields
         0F 08 00 00 00 08 01 02 03 04 05 06 07 08 02 00 # SecurityHeader");
    let mut bytes = Vec::new();
    let offsets = header.encode(&mut bytes);
    assert_eq!(bytes, expected);
    assert_eq!(offsets.payload, bytes.len());
    let mut decoder = Decoder::new(&bytes, Default::default());
    assert_eq!(NetworkMessageHeader::decode(&mut decoder), Ok(header));
    assert_eq!(decoder.remaining(), 0);
}

/// Reserved values are skipped, as the tables ask.
#[test]
fn reserved_values_are_refused() {
    for bytes in
        ["02", "11", "91 05 00", "81 80 40", "81 80 80", "81 80 0C", "21 10", "81 10 10 00 00 00 00 00"]
    {
        let bytes = hex(bytes);
        let result = NetworkMessageHeader::decode(&mut Decoder::new(&bytes, Default::default()));
        assert!(result.is_err(), "{bytes:02x?}");
    }
    // Encrypted but not signed.
    let bytes = hex("81 10 02 01 00 00 00 00");
    assert!(NetworkMessageHeader::decode(&mut Decoder::new(&bytes, Default::default())).is_err());
}

/// A message as it is usually sent by others: UInt16 publisher, group header with id only, one writer, delta frame.
#[test]
fn a_foreign_message_is_understood() {
    let mut group = WriterGroup::dynamic("g", 100, 10.0);
    group.header_layout_uri.clear();
    if let WriterGroupMessage::Uadp(uadp) = &mut group.message {
        uadp.group_version = 0;
    }
    let configuration = configuration(group, DataSetWriter::dynamic);
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut got = common::Got::default();
    receiving.start(at(0), &mut got);
    let mut key_frame = hex("F1 01 BA 08 01 64 00 01 02 00 01 02 00 01 01 06 2A 00 00 00");
    receiving.receive(0, &mut key_frame, at(0), &mut got);
    let mut delta = hex("F1 01 BA 08 01 64 00 01 02 00 81 01 01 00 01 00 13 00 00 31 80");
    receiving.receive(0, &mut delta, at(0), &mut got);
    assert_eq!(got.messages.len(), 2, "{:?}", got.events);
    assert_eq!(got.messages[0].fields[1].value, DataValue::new(42i32));
    assert_eq!(got.messages[1].fields[0].index, 1);
    assert_eq!(got.messages[1].fields[0].value.status, Some(StatusCode(0x8031_0000)));
    // Another publisher, another type of the same id, another group, another writer.
    for other in [
        "F1 01 BB 08 01 64 00 01 02 00 01 00 00",
        "F1 02 BA 08 00 00 01 64 00 01 02 00 01 00 00",
        "F1 01 BA 08 01 65 00 01 02 00 01 00 00",
        "F1 01 BA 08 01 64 00 01 09 00 01 00 00",
    ] {
        receiving.receive(0, &mut hex(other), at(0), &mut got);
    }
    assert_eq!(got.messages.len(), 2);
    assert_eq!(receiving.counters().unwanted, 4);
}
