//! JSON NetworkMessages: arbitrary ones, and our own; also for Actions.

use super::plant::{self, at};
use crate::input::Input;
use std::sync::{Arc, LazyLock};
use taktwerk_crypto::SeededEntropy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_pubsub::action::{
    ActionDescription, ActionEngine, ActionMapping, ActionTarget, Request, Requestor, RequestorOptions,
    Responder, ResponderOptions,
};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetReaderMessage, DataSetWriter, DataSetWriterMessage,
    GroupSecurity, PublishedDataSet, ReaderGroup, WriterGroup,
};
use taktwerk_pubsub::{DataSetMessage, PublisherId, Transmit};
use taktwerk_schema::{ActionTargetDataType, DataSetMetaDataType, JsonDataSetMessageContentMask as Mask};
use taktwerk_types::codec::Decode;
use taktwerk_types::{BuiltInType, DataValue, Decoder, StatusCode, Variant};

/// Fields of the types with a special JSON form.
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

/// One writer with all these fields, in one of the four encodings.
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

/// A reader that knows the fields, and one without metadata.
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

/// A requestor and a responder of one Action with these fields, after discovery.
fn actions() -> (Requestor, Responder) {
    let provider = Arc::new(AwsPubSubProvider);
    let entropy = |seed| Box::new(SeededEntropy::new(seed));
    let responder_id = PublisherId::UInt16(7);
    let mut options = RequestorOptions::new(PublisherId::UInt16(9), GroupSecurity::default());
    options.allow_unsecured = true;
    (options.mapping, options.reliable) = (ActionMapping::Json, true);
    let mut requestor = Requestor::new(options, provider.clone(), entropy(1)).expect("it may be unsecured");
    let mut options = ResponderOptions::new(responder_id.clone(), GroupSecurity::default());
    options.allow_unsecured = true;
    (options.mapping, options.reliable) = (ActionMapping::Json, true);
    let target = ActionTarget { data_set_writer_id: 1, action_target_id: 1 };
    let mut responder = Responder::new(options, [target], provider, entropy(2)).expect("it may be unsecured");
    let fields = FIELDS.iter().map(|(name, kind)| field(name, *kind)).collect();
    let request = DataSetMetaDataType { name: "a".into(), fields, ..Default::default() };
    let description = ActionDescription {
        data_set_writer_id: 1,
        targets: vec![ActionTargetDataType { action_target_id: 1, ..Default::default() }],
        response: request.clone(),
        request,
        methods: Vec::new(),
    };
    let connection = publishing(0).connections.remove(0);
    responder.describe(connection, vec![description], at(0)).expect("it is in order");
    responder.announce(at(0));
    let mut out = Transmit::new();
    responder.poll(at(0), &mut out).expect("there is no security");
    for datagram in out.iter() {
        requestor.receive(0, &mut datagram.bytes.to_vec(), at(0)).expect("it is ours");
    }
    (requestor, responder)
}

fn ask(requestor: &mut Requestor, inputs: Vec<Variant>) -> Transmit {
    let request = Request {
        connection: 0,
        responder: PublisherId::UInt16(7),
        data_set_writer_id: 1,
        action_target_id: 1,
        inputs,
        timeout_nanos: 1_000_000_000,
    };
    requestor.request(request, at(0)).expect("there is room");
    let mut out = Transmit::new();
    requestor.poll(at(0), &mut out).expect("there is no security");
    out
}

/// Arbitrary text for both, or our values, which must arrive and be returned.
fn action(input: &mut Input<'_>) {
    let (mut requestor, mut responder) = actions();
    if input.flag() {
        ask(&mut requestor, vec![1.5.into()]);
        let _ = requestor.receive(0, &mut input.rest().to_vec(), at(1));
        for execution in responder.receive(&mut input.rest().to_vec(), at(1)).unwrap_or_default() {
            assert_eq!((execution.target.data_set_writer_id, execution.target.action_target_id), (1, 1));
            assert!(matches!(execution.inputs.len(), 0 | 8), "{:?}", execution.inputs);
            responder.finish(execution.id, StatusCode::GOOD, execution.inputs, at(1));
        }
        let mut out = Transmit::new();
        responder.poll(at(1), &mut out).expect("there is no security");
        return;
    }
    let inputs = values(input);
    let out = ask(&mut requestor, inputs.clone());
    assert_eq!(out.len(), 1);
    let mut question = out.iter().next().expect("it is one").bytes.to_vec();
    let said = String::from_utf8_lossy(&question).into_owned();
    let executions = responder.receive(&mut question, at(1)).expect("it is ours");
    let [execution] = executions.as_slice() else { panic!("{said}: {executions:?}") };
    assert_eq!(execution.inputs.len(), inputs.len(), "{said}");
    responder.finish(execution.id, StatusCode::GOOD, execution.inputs.clone(), at(1));
    let mut out = Transmit::new();
    responder.poll(at(1), &mut out).expect("there is no security");
    for datagram in out.iter() {
        requestor.receive(0, &mut datagram.bytes.to_vec(), at(1)).expect("it is ours");
    }
    let outcome = requestor.poll_outcome().expect("it was answered");
    assert_eq!((outcome.status, outcome.outputs.len()), (StatusCode::GOOD, inputs.len()), "{said}");
}

/// A value of the type of each field, or null.
fn values(input: &Input<'_>) -> Vec<Variant> {
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
    sent
}

/// Arbitrary text, or our values, which must arrive.
pub fn run(data: &[u8]) {
    static BOTH: LazyLock<Vec<(Configuration, Configuration)>> =
        LazyLock::new(|| (0..4).map(|encoding| (publishing(encoding), subscribing(encoding))).collect());
    let mut input = Input::new(data);
    let is_ours = match input.byte() {
        0 => false,
        1 => true,
        _ => return action(&mut input),
    };
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
    let sent = values(&input);
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
