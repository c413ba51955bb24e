//! Actions: their headers, and a responder with arbitrary requests, in UADP and JSON, with and without descriptions.

use super::plant::{self, PUBLISHER, at};
use crate::input::Input;
use std::collections::BTreeSet;
use std::sync::Arc;
use taktwerk_crypto::SeededEntropy;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_pubsub::action::{
    ActionDescription, ActionEngine, ActionMapping, ActionTarget, Request, Requestor, RequestorOptions,
    Responder, ResponderOptions,
};
use taktwerk_pubsub::config::build::field;
use taktwerk_pubsub::config::{Connection, DataSetWriter, GroupSecurity, WriterGroup};
use taktwerk_pubsub::uadp::SecurityMode;
use taktwerk_pubsub::uadp::action::{ActionBody, ActionHeader};
use taktwerk_pubsub::{PublisherId, Transmit};
use taktwerk_schema::{ActionTargetDataType, DataSetFieldContentMask, DataSetMetaDataType};
use taktwerk_types::{BuiltInType, Decoder, StatusCode};

/// Runs one of both.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    if input.flag() { exchange(&mut input) } else { headers(input.rest()) }
}

const TARGET: ActionTarget = ActionTarget { data_set_writer_id: 5, action_target_id: 2 };
const EXECUTIONS_MAX: usize = 8;

/// A correct requestor, and an attacker who changes, repeats and sends arbitrary messages.
fn exchange(input: &mut Input<'_>) {
    let setting = input.byte();
    let (is_raw, is_json) = (setting & 2 != 0, setting & 4 != 0);
    let is_secured = setting & 1 != 0 && !is_json;
    let mapping = if is_json { ActionMapping::Json } else { ActionMapping::Uadp };
    let mode = if is_secured { SecurityMode::SignAndEncrypt } else { SecurityMode::None };
    let security = GroupSecurity { mode, security_group_id: "group".into(), ..GroupSecurity::default() };
    let provider = Arc::new(AwsPubSubProvider);
    let responder_id = PublisherId::UInt16(PUBLISHER);
    let mut options = ResponderOptions::new(responder_id.clone(), security.clone());
    options.allow_unsecured = true;
    options.executions_max = EXECUTIONS_MAX;
    options.mapping = mapping;
    options.reliable = setting & 8 != 0;
    let entropy = |seed| Box::new(SeededEntropy::new(seed));
    let mut responder =
        Responder::new(options, [TARGET], provider.clone(), entropy(1)).expect("it may be unsecured");
    let mut options = RequestorOptions::new(PublisherId::Byte(1), security);
    options.allow_unsecured = true;
    options.mapping = mapping;
    options.reliable = setting & 8 != 0;
    let mut requestor = Requestor::new(options, provider, entropy(2)).expect("it may be unsecured");
    if is_secured {
        requestor.set_keys("group", Ok(&plant::keys()), at(0)).expect("they are keys");
        responder.set_keys("group", Ok(&plant::keys()), at(0)).expect("they are keys");
    }
    let (mut millis, mut asked, mut out) = (0, 0usize, Transmit::new());
    let mut heard: Vec<Vec<u8>> = Vec::new();
    let (mut executions, mut ended) = (Vec::new(), BTreeSet::new());
    while !input.is_empty() {
        match input.below(7) {
            0 if asked < 64 => {
                asked += 1;
                let request = Request {
                    connection: 0,
                    responder: responder_id.clone(),
                    data_set_writer_id: TARGET.data_set_writer_id,
                    action_target_id: TARGET.action_target_id,
                    inputs: vec![input.byte().into()],
                    timeout_nanos: u64::from(input.u16()) * 1_000_000,
                };
                requestor.request(request, at(millis)).expect("there is room");
            }
            1 => millis += u64::from(input.u16() % 2_000),
            2 if !executions.is_empty() => {
                let at_end = input.below(executions.len());
                let id = executions.swap_remove(at_end);
                responder.finish(id, StatusCode::GOOD, vec![input.byte().into()], at(millis));
            }
            6 => {
                let (connection, description) = described(input, is_json, is_raw);
                responder.describe(connection, vec![description], at(millis)).expect("it is in order");
                responder.announce(at(millis));
            }
            3 => {
                let len = usize::from(input.u16() % 512);
                heard.push(input.bytes(len).to_vec());
            }
            _ => {}
        }
        let _ = requestor.poll(at(millis), &mut out);
        let _ = responder.poll(at(millis), &mut out);
        heard.extend(out.iter().map(|datagram| datagram.bytes.to_vec()).take(16));
        out.clear();
        let Some(mut datagram) = heard.get(input.below(heard.len())).cloned() else { continue };
        if input.one_in(4) {
            let (place, change) = (usize::from(input.byte()), input.byte());
            if let Some(byte) = datagram.get_mut(place) {
                *byte ^= change;
            }
        }
        if heard.len() > 128 {
            heard.drain(..64);
        }
        let _ = requestor.receive(0, &mut datagram.clone(), at(millis));
        for execution in responder.receive(&mut datagram, at(millis)).unwrap_or_default() {
            assert_eq!(execution.target, TARGET);
            executions.push(execution.id);
            // With security, only genuine requests are executed.
            assert!(!is_secured || executions.len() <= asked);
        }
        assert!(responder.len() <= EXECUTIONS_MAX);
        while let Some(outcome) = requestor.poll_outcome() {
            assert!(ended.insert(outcome.request_id), "a request ended twice");
        }
        assert!(ended.len() <= asked);
    }
}

/// The description of a responder, sometimes with other fields.
fn described(input: &mut Input<'_>, is_json: bool, is_raw: bool) -> (Connection, ActionDescription) {
    let url = if is_json { "mqtt+json://broker" } else { "opc.udp://239.0.0.1:4840" };
    let mut connection = Connection::new("actions", Some(PublisherId::UInt16(PUBLISHER)), url);
    let id = TARGET.data_set_writer_id;
    let (mut group, mut writer) = match is_json {
        true => (WriterGroup::json("group", 1, 100.0), DataSetWriter::json("writer", id, "")),
        false => (WriterGroup::dynamic("group", 1, 100.0), DataSetWriter::dynamic("writer", id, "")),
    };
    writer.field_content_mask =
        if is_raw { DataSetFieldContentMask::RAW_DATA } else { DataSetFieldContentMask::EMPTY };
    group.writers.push(writer);
    connection.writer_groups.push(group);
    let kinds = [BuiltInType::Byte, BuiltInType::Byte, BuiltInType::UInt16, BuiltInType::Double];
    let mut meta_data = || {
        let mut fields = vec![field("b", input.pick(&kinds))];
        if input.one_in(8) {
            fields.push(field("more", BuiltInType::Int32));
        }
        DataSetMetaDataType { name: "action".into(), fields, ..Default::default() }
    };
    let (request, response) = (meta_data(), meta_data());
    let targets =
        vec![ActionTargetDataType { action_target_id: TARGET.action_target_id, ..Default::default() }];
    let methods = Vec::new();
    (connection, ActionDescription { data_set_writer_id: id, targets, request, response, methods })
}

/// Decoded headers survive encoding and decoding.
fn headers(data: &[u8]) {
    let mut decoder = Decoder::new(data, Default::default());
    let Ok(header) = ActionHeader::decode(&mut decoder) else { return };
    let mut written = Vec::new();
    header.encode(&mut written);
    let body = ActionBody::decode(&mut decoder);
    if let Ok(body) = &body {
        body.encode(&mut written);
    }
    let mut again = Decoder::new(&written, Default::default());
    let mut twice = Vec::new();
    ActionHeader::decode(&mut again).expect("what was written can be read").encode(&mut twice);
    if let Ok(body) = &body {
        assert_eq!(ActionBody::decode(&mut again).as_ref(), Ok(body));
        body.encode(&mut twice);
    }
    assert_eq!(written, twice);
    assert_eq!(again.remaining(), 0);
}
