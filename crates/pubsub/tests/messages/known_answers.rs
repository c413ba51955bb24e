//! Messages written by hand from the tables of Part 14: the layouts of Annex A and their headers.

use crate::common;
use crate::common::{at, connection, publisher, subscriber};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, DataSetWriter, PublishedDataSet, WriterGroup, WriterGroupMessage,
};
use taktwerk_pubsub::uadp::header::{NetworkMessageHeader, PromotedFields};
use taktwerk_pubsub::uadp::{
    DataSetMessageKind, GroupHeader, NetworkMessageType, SecurityHeader, SecurityMode, WriterIds,
};
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

/// A secured message without the random part of its nonce and without its signature.
fn secured(group: WriterGroup, mode: SecurityMode, make: fn(&str, u16, &str) -> DataSetWriter) -> Vec<u8> {
    let mut configuration = configuration(group, make);
    let group = &mut configuration.connections[0].writer_groups[0];
    group.security.mode = mode;
    group.security.security_group_id = "group".into();
    group.writers.truncate(1);
    let mut sending = publisher(configuration);
    sending.start(at(0).instant, at(0));
    sending.set_keys("group", Ok(&common::keys(7, 2, 1e6, 1e6)), at(0)).unwrap();
    let mut out = Transmit::new();
    let mut values = |_: usize, fields: &mut [DataValue]| {
        fields[0] = DataValue::new(true);
        fields[1] = DataValue::new(0x0102_0304i32);
    };
    sending.poll(at(0), &mut values, &mut out);
    out.iter().next().unwrap().bytes.to_vec()
}

/// Figures A.2 and A.3, A.5 and A.6: the periodic fixed layout with message security.
#[test]
fn periodic_fixed_layout_with_security() {
    let group = || WriterGroup::periodic_fixed("g", 0x0506, 10.0);
    for (mode, flags) in [(SecurityMode::Sign, "01"), (SecurityMode::SignAndEncrypt, "03")] {
        let message = secured(group(), mode, DataSetWriter::periodic_fixed);
        let head = hex(&format!(
            "B1 11 BA 08 0F 06 05 01 00 00 00 01 00 01 00
             {flags}           # what was done
             07 00 00 00       # SecurityTokenId
             08                # bytes of the nonce"
        ));
        assert_eq!(message[..head.len()], head);
        let nonce = &message[head.len()..][..8];
        assert_eq!(nonce[4..], [1, 0, 0, 0], "behind four random bytes the nonce counts");
        let payload = &message[head.len() + 8..message.len() - 32];
        let clear = hex("1B 01 00 00 00 01 04 03 02 01");
        assert_eq!(payload.len(), clear.len());
        assert_eq!(payload == clear, mode == SecurityMode::Sign);
    }
}

/// Figures A.8 and A.9, A.11 and A.12: the dynamic layout with message security. The PayloadHeader is never encrypted.
#[test]
fn dynamic_layout_with_security() {
    for (mode, flags) in [(SecurityMode::Sign, "01"), (SecurityMode::SignAndEncrypt, "03")] {
        let message = secured(WriterGroup::dynamic("g", 1, 10.0), mode, DataSetWriter::dynamic);
        let head = hex(&format!("D1 11 BA 08 01 01 00 {flags} 07 00 00 00 08"));
        assert_eq!(message[..head.len()], head);
        let payload = &message[head.len() + 8..message.len() - 32];
        let time = at(0).utc.ticks().to_le_bytes();
        let time: String = time.iter().map(|byte| format!("{byte:02x}")).collect();
        let clear = hex(&format!("D9 10 01 00 {time} 00 00 01 00 00 00 02 00 01 01 06 04 03 02 01"));
        assert_eq!(payload.len(), clear.len());
        assert_eq!(payload == clear, mode == SecurityMode::Sign);
    }
}

/// A DataSetMessage in two chunks (Table 161), the second one first.
#[test]
fn a_chunked_message_is_understood() {
    let configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), DataSetWriter::dynamic);
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut got = common::Got::default();
    receiving.start(at(0), &mut got);
    let mut second = hex("D1 81 01        # PublisherId, PayloadHeader, flags 2: a chunk
         BA 08
         01 00           # the DataSetWriterId, without a count
         05 00           # MessageSequenceNumber
         06 00 00 00     # ChunkOffset
         0A 00 00 00     # TotalSize
         04 00 00 00 2A 00 00 00");
    receiving.receive(0, &mut second, at(0), &mut got);
    assert!(got.messages.is_empty());
    let mut first = hex("D1 81 01 BA 08 01 00 05 00 00 00 00 00 0A 00 00 00 06 00 00 00 01 02 00 01 01 06");
    receiving.receive(0, &mut first, at(0), &mut got);
    assert_eq!(got.messages.len(), 1, "{:?}", got.events);
    assert_eq!(got.messages[0].fields[1].value, DataValue::new(42i32));
}

/// Keep-alive, event and invalid DataSetMessages (Tables 162 to 167).
#[test]
fn other_kinds_of_data_set_messages_are_understood() {
    let configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), DataSetWriter::dynamic);
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut got = common::Got::default();
    receiving.start(at(0), &mut got);
    for message in [
        "D1 01 BA 08 01 01 00 89 03 07 00                            # keep-alive: the next number",
        "D1 01 BA 08 01 01 00 89 02 07 00 02 00 01 01 06 2A 00 00 00 # event",
        "D1 01 BA 08 01 01 00 88 03 09 00                            # not valid",
    ] {
        receiving.receive(0, &mut hex(message), at(0), &mut got);
    }
    let kinds: Vec<_> = got.messages.iter().map(|message| (message.kind, message.sequence_number)).collect();
    assert_eq!(kinds, [(DataSetMessageKind::KeepAlive, Some(7)), (DataSetMessageKind::Event, Some(7))]);
    assert_eq!(got.messages[1].fields[1].value, DataValue::new(42i32));
}

/// A probe for metadata and its answer (§7.2.4.6.3, §7.2.4.6.12): flags as the clauses require, with a security header
/// for no security.
#[test]
fn discovery_messages() {
    let mut configuration = configuration(WriterGroup::dynamic("g", 1, 10.0), DataSetWriter::dynamic);
    let mut reading = Configuration::subscriber_of(&configuration);
    configuration.data_sets[0].meta_data.name = "ab".into();
    configuration.data_sets[0].meta_data.fields.clear();
    reading.connections[0].reader_groups[0].readers.truncate(1);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let mut receiving = subscriber(reading);
    let mut got = common::Got::default();
    receiving.start(at(0), &mut got);
    let mut out = Transmit::new();
    receiving.poll(at(600), &mut got, &mut out);
    let probe = hex("91 91 04           # PublisherId, flags 1: security, flags 2: a probe
         BA 08
         00 00 00 00 00 00  # no security
         01                 # of the publisher's information
         02                 # metadata
         01 00 00 00 01 00  # of writer 1");
    assert_eq!(out.iter().next().unwrap().bytes, probe);
    let mut sending = publisher(configuration);
    sending.receive(0, &probe, at(0));
    out.clear();
    sending.poll(at(0), &mut |_: usize, _: &mut [DataValue]| {}, &mut out);
    let head = hex("91 91 08           # an announcement
         BA 08 00 00 00 00 00 00
         02 01 00           # metadata, the first announcement
         01 00              # of writer 1
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 # no namespaces and types
         02 00 00 00 61 62  # its name");
    let announced = out.iter().next().unwrap().bytes;
    assert_eq!(announced[..head.len()], head);
    assert!(announced.ends_with(&[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), "version and Good: {announced:02x?}");
}

/// A header with all fields, in the order of Table 154.
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

/// Messages with reserved values are skipped, as the tables require.
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

/// A common message of other stacks: UInt16 publisher, group header with id only, one writer, delta frame.
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
