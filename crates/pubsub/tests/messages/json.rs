//! JSON NetworkMessages between a publisher and a subscriber.
#![cfg(feature = "json")]

use crate::common::{Got, at, configuration, publisher, subscriber};
use std::sync::Arc;
use taktwerk_crypto_dummy::DummyPubSubProvider;
use taktwerk_pubsub::config::{
    Configuration, DataSetWriter, DataSetWriterMessage, WriterGroup, WriterGroupMessage,
};
use taktwerk_pubsub::json::metadata;
use taktwerk_pubsub::uadp::{DataSetMessageKind, SecurityMode};
use taktwerk_pubsub::{DatagramKind, Subscriber, SubscriberEvent, SubscriberOptions, Transmit};
use taktwerk_schema::{
    DataSetFieldContentMask, JsonDataSetMessageContentMask as MessageMask,
    JsonNetworkMessageContentMask as NetworkMask,
};
use taktwerk_types::json::JsonLimits;
use taktwerk_types::json::parse::parse_bytes;
use taktwerk_types::{DataValue, StatusCode, Variant};

fn made(network: NetworkMask, message: MessageMask, fields: DataSetFieldContentMask) -> Configuration {
    let mut configuration = configuration(WriterGroup::json("g", 1, 10.0), 2, DataSetWriter::json);
    let group = &mut configuration.connections[0].writer_groups[0];
    if let WriterGroupMessage::Json(json) = &mut group.message {
        json.network_message_content_mask = network;
    }
    for writer in &mut group.writers {
        writer.field_content_mask = fields;
        if let DataSetWriterMessage::Json(json) = &mut writer.message {
            json.data_set_message_content_mask = message;
        }
    }
    configuration
}

fn source(_: usize, fields: &mut [DataValue]) {
    fields[0] = DataValue { status: Some(StatusCode::UNCERTAIN), ..DataValue::new(1.5f32) };
    fields[1] = DataValue::new("a \"b\"\n");
    fields[2] = DataValue::from_status(StatusCode::BAD_NOT_CONNECTED);
}

#[test]
fn verbose_text() {
    let network = NetworkMask::NETWORK_MESSAGE_HEADER
        | NetworkMask::DATA_SET_MESSAGE_HEADER
        | NetworkMask::PUBLISHER_ID
        | NetworkMask::SINGLE_DATA_SET_MESSAGE;
    let message = MessageMask::DATA_SET_WRITER_ID
        | MessageMask::SEQUENCE_NUMBER
        | MessageMask::MESSAGE_TYPE
        | MessageMask::FIELD_ENCODING2;
    let mut sending = publisher(made(network, message, DataSetFieldContentMask::EMPTY));
    sending.start(at(0).instant, at(0));
    let mut out = Transmit::new();
    sending.poll(at(0), &mut source, &mut out);
    assert_eq!(out.len(), 2, "one message for each writer");
    let text = String::from_utf8(out.iter().next().unwrap().bytes.to_vec()).unwrap();
    let (id, rest) = text.strip_prefix("{\"MessageId\":\"").unwrap().split_once('"').unwrap();
    assert!(id.len() > 16);
    let expected = r#","MessageType":"ua-data","PublisherId":"2234","Messages":{"DataSetWriterId":1,"SequenceNumber":1,"MessageType":"ua-keyframe","Payload":{"x":{"UaType":10,"Value":1.5,"Status":{"Code":1073741824,"Symbol":"Uncertain"}},"text":"a \"b\"\n","n":{"UaType":19,"Value":{"Code":2156527616,"Symbol":"BadNotConnected"}}}}}"#;
    assert_eq!(rest, expected);
}

/// The layout JSON-Minimal (Part 14 §A.3.2): only the values.
#[test]
fn minimal_layout() {
    let network = NetworkMask::SINGLE_DATA_SET_MESSAGE;
    assert_eq!(network.bits(), 4, "Table A.16");
    let fields = DataSetFieldContentMask::RAW_DATA;
    let configuration = made(network, MessageMask::FIELD_ENCODING2, fields);
    let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
    let mut sending = publisher(configuration);
    let (mut got, mut out) = (Got::default(), Transmit::new());
    sending.start(at(0).instant, at(0));
    receiving.start(at(0), &mut got);
    let mut values = |_: usize, fields: &mut [DataValue]| {
        let parts: [Variant; 3] = [1.5f32.into(), "a".into(), 7u16.into()];
        fields.iter_mut().zip(parts).for_each(|(field, value)| *field = DataValue::new(value));
    };
    sending.poll(at(0), &mut values, &mut out);
    let texts: Vec<_> = out.iter().map(|datagram| datagram.bytes.to_vec()).collect();
    assert_eq!(texts, [br#"{"x":1.5,"text":"a","n":7}"#; 2]);
    for mut text in texts {
        receiving.receive(0, &mut text, at(0), &mut got);
    }
    assert!(!got.messages.is_empty());
    assert_eq!(got.messages[0].fields[2].value, DataValue::new(7u16));
}

#[test]
fn every_mask_round_trips() {
    let mut checked = 0;
    for network_bits in 0..128u32 {
        for message_bits in (0..4096u32).step_by(151) {
            let network = NetworkMask(network_bits);
            let message = MessageMask(message_bits);
            let fields = match checked % 3 {
                0 => DataSetFieldContentMask::EMPTY,
                1 => DataSetFieldContentMask::RAW_DATA,
                _ => DataSetFieldContentMask::STATUS_CODE | DataSetFieldContentMask::SOURCE_TIMESTAMP,
            };
            checked += 1;
            let configuration = made(network, message, fields);
            let mut receiving = subscriber(Configuration::subscriber_of(&configuration));
            let mut sending = publisher(configuration);
            let (mut got, mut out) = (Got::default(), Transmit::new());
            sending.start(at(0).instant, at(0));
            receiving.start(at(0), &mut got);
            sending.poll(at(0), &mut source, &mut out);
            for datagram in out.iter() {
                assert!(parse_bytes(datagram.bytes, JsonLimits::default()).is_ok());
                receiving.receive(0, &mut datagram.bytes.to_vec(), at(0), &mut got);
            }
            assert!(receiving.counters().malformed == 0, "{:?}", got.events);
            assert!(got.messages.len() >= 2, "{network} {message}");
            for received in &got.messages {
                assert_eq!(received.kind, DataSetMessageKind::KeyFrame);
                assert_eq!(received.fields.len(), 3);
                assert_eq!(received.fields[0].value.value, Some(1.5f32.into()));
                assert_eq!(received.fields[1].value.value, Some("a \"b\"\n".into()));
                assert_eq!(received.fields[2].value.status, Some(StatusCode::BAD_NOT_CONNECTED));
            }
        }
    }
    assert!(checked > 3_000);
}

#[test]
fn metadata_messages() {
    let configuration = made(
        NetworkMask::NETWORK_MESSAGE_HEADER
            | NetworkMask::DATA_SET_MESSAGE_HEADER
            | NetworkMask::PUBLISHER_ID,
        MessageMask::DATA_SET_WRITER_ID | MessageMask::FIELD_ENCODING2,
        DataSetFieldContentMask::EMPTY,
    );
    let meta_data = configuration.data_sets[0].meta_data.clone();
    let mut text = Vec::new();
    metadata::encode("m", "2234", 1, "w", &meta_data, at(0), &mut text);
    let json = parse_bytes(&text, JsonLimits::default()).unwrap();
    let message = metadata::decode(&json).unwrap();
    assert_eq!((message.publisher_id.as_str(), message.data_set_writer_id), ("2234", 1));
    assert_eq!(message.meta_data, meta_data);
    let mut reading = Configuration::subscriber_of(&configuration);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    // A publisher announces metadata in the same form.
    let mut sending = publisher(configuration);
    sending.announce(0, at(0));
    let mut out = Transmit::new();
    sending.poll(at(0), &mut source, &mut out);
    assert_eq!(out.len(), 2, "one for each writer");
    let announced = out.iter().next().unwrap();
    assert_eq!((announced.kind, announced.writer), (DatagramKind::MetaData, Some(0)));
    let mut text = announced.bytes.to_vec();
    let mut receiving = subscriber(reading);
    let mut got = Got::default();
    receiving.start(at(0), &mut got);
    receiving.receive(0, &mut text, at(0), &mut got);
    assert!(got.events.iter().any(|event| matches!(event, SubscriberEvent::MetaDataReceived { .. })));
    let index = receiving.readers().next().unwrap();
    assert_eq!(receiving.meta_data(index), Some(&meta_data));
}

#[test]
fn without_metadata_values_are_guessed() {
    let configuration =
        made(NetworkMask::EMPTY, MessageMask::FIELD_ENCODING2, DataSetFieldContentMask::EMPTY);
    let mut reading = Configuration::subscriber_of(&configuration);
    reading.connections[0].reader_groups[0].readers.truncate(1);
    reading.connections[0].reader_groups[0].readers[0].meta_data = Default::default();
    let mut receiving = subscriber(reading);
    let mut got = Got::default();
    receiving.start(at(0), &mut got);
    let mut text = br#"{"a":1,"b":"t","c":[true,null],"d":1.5}"#.to_vec();
    receiving.receive(0, &mut text, at(0), &mut got);
    let values: Vec<_> =
        got.messages[0].fields.iter().map(|field| field.value.value.clone().unwrap()).collect();
    assert_eq!(values[0], Variant::from(1i64));
    assert_eq!(values[1], Variant::from("t"));
    assert_eq!(values[3], Variant::from(1.5));
    assert_eq!(got.messages[0].names, ["a", "b", "c", "d"]);
    receiving.receive(0, &mut b"{".to_vec(), at(0), &mut got);
    assert_eq!(receiving.counters().malformed, 1);
}

/// A reader that requires signatures refuses JSON, which is never signed (Part 14 §7.2.5), instead of accepting it.
#[test]
fn a_secured_reader_takes_no_json() {
    let network = NetworkMask::NETWORK_MESSAGE_HEADER
        | NetworkMask::DATA_SET_MESSAGE_HEADER
        | NetworkMask::PUBLISHER_ID
        | NetworkMask::SINGLE_DATA_SET_MESSAGE;
    let message = MessageMask::DATA_SET_WRITER_ID | MessageMask::MESSAGE_TYPE | MessageMask::FIELD_ENCODING2;
    let configuration = made(network, message, DataSetFieldContentMask::EMPTY);
    let mut sending = publisher(configuration.clone());
    sending.start(at(0).instant, at(0));
    let mut out = Transmit::new();
    sending.poll(at(0), &mut source, &mut out);
    for mode in [SecurityMode::None, SecurityMode::Sign, SecurityMode::SignAndEncrypt] {
        let mut wanted = Configuration::subscriber_of(&configuration);
        let group = &mut wanted.connections[0].reader_groups[0];
        group.security.mode = mode;
        group.security.security_group_id = "g".into();
        group.readers.iter_mut().for_each(|reader| reader.security = None);
        if mode != SecurityMode::None {
            let made = Subscriber::new(wanted, SubscriberOptions::default(), Arc::new(DummyPubSubProvider));
            let refused = format!("{:?}", made.err().unwrap());
            assert!(refused.contains("JSON messages are never secured"), "{mode:?}: {refused}");
            continue;
        }
        let mut receiving = subscriber(wanted);
        let mut got = Got::default();
        receiving.start(at(0), &mut got);
        for datagram in out.iter() {
            receiving.receive(0, &mut datagram.bytes.to_vec(), at(0), &mut got);
        }
        assert_eq!((got.messages.len(), receiving.counters().security_errors), (2, 0));
    }
}
