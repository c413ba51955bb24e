//! Fields as Variants, RawData and JSON.

use super::*;
use crate::config::build::field;
use crate::config::{Connection, DataSetWriter, WriterGroup};
use crate::uadp::FieldEncoding;
use crate::uadp::action::{ActionBody, ActionHeader};
use crate::uadp::data_set_message::{DataSetMessageHeader, DataSetMessageKind};
use taktwerk_schema::{
    ActionState, ActionTargetDataType, ConfigurationVersionDataType, DataSetFieldContentMask as FieldMask,
    DataSetMetaDataType,
};
use taktwerk_types::{BuiltInType, Encode};

/// Sets a temperature; returns the previous value and who has set it.
fn description() -> ActionDescription {
    let meta_data = |fields| DataSetMetaDataType {
        name: "SetTemperature".into(),
        fields,
        configuration_version: ConfigurationVersionDataType { major_version: 3, minor_version: 4 },
        ..Default::default()
    };
    ActionDescription {
        data_set_writer_id: TARGET.data_set_writer_id,
        targets: vec![ActionTargetDataType {
            action_target_id: TARGET.action_target_id,
            name: "boiler 7".into(),
            ..Default::default()
        }],
        request: meta_data(vec![field("setpoint", BuiltInType::Double), field("ramp", BuiltInType::UInt16)]),
        response: meta_data(vec![field("before", BuiltInType::Double), field("ok", BuiltInType::Boolean)]),
        methods: Vec::new(),
    }
}

fn connection(json: bool, mask: FieldMask) -> Connection {
    let url = if json { "mqtt+json://me:secret/@broker" } else { "opc.udp://239.0.0.1:4840" };
    let mut connection = Connection::new("actions", Some(RESPONDER), url);
    let mut group = if json { WriterGroup::json("g", 1, 100.0) } else { WriterGroup::dynamic("g", 1, 100.0) };
    let id = TARGET.data_set_writer_id;
    let mut writer =
        if json { DataSetWriter::json("w", id, "") } else { DataSetWriter::dynamic("w", id, "") };
    writer.field_content_mask = mask;
    group.writers.push(writer);
    connection.writer_groups.push(group);
    connection
}

fn pair(mapping: ActionMapping, reliable: bool, requestor: PublisherId) -> (Requestor, Responder) {
    let provider = Arc::new(DummyPubSubProvider);
    let mut options = RequestorOptions::new(requestor, GroupSecurity::default());
    options.allow_unsecured = true;
    options.mapping = mapping;
    options.reliable = reliable;
    options.response_address = Some("me".into());
    let entropy = |seed| Box::new(SeededEntropy::new(seed));
    let requestor = Requestor::new(options, provider.clone(), entropy(1)).unwrap();
    let mut options = ResponderOptions::new(RESPONDER, GroupSecurity::default());
    options.allow_unsecured = true;
    options.mapping = mapping;
    options.reliable = reliable;
    let responder = Responder::new(options, [TARGET], provider, entropy(2)).unwrap();
    (requestor, responder)
}

fn ask(inputs: Vec<Variant>) -> Request {
    Request { inputs, ..request(TARGET, 0) }
}

/// Passes the responder's announcements to the requestor.
fn announce(responder: &mut Responder, requestor: &mut Requestor, millis: u64) -> usize {
    let mut out = Transmit::new();
    responder.announce(at(millis));
    responder.poll(at(millis), &mut out).unwrap();
    let told = sent(&mut out);
    for mut datagram in told.clone() {
        assert!(
            !String::from_utf8_lossy(&datagram).contains("secret"),
            "the broker's password is not announced"
        );
        requestor.receive(0, &mut datagram, at(millis)).unwrap();
    }
    told.len()
}

#[test]
fn raw_data_is_used_once_the_metadata_is_known() {
    let (mut requestor, mut responder) = pair(ActionMapping::Uadp, false, PublisherId::UInt16(9));
    responder.describe(connection(false, FieldMask::RAW_DATA), vec![description()], at(0)).unwrap();
    let mut out = Transmit::new();
    let mut exchange =
        |requestor: &mut Requestor, responder: &mut Responder, outputs: Vec<Variant>, millis| {
            requestor.request(ask(vec![21.5.into(), 7u16.into()]), at(millis)).unwrap();
            requestor.poll(at(millis), &mut out).unwrap();
            // The last one: those before only confirm earlier executions.
            let question = sent(&mut out).pop().unwrap();
            let execution = responder.receive(&mut question.clone(), at(millis)).unwrap().remove(0);
            assert_eq!(execution.inputs, [Variant::from(21.5), Variant::from(7u16)]);
            assert_eq!(execution.deadline, Some(at(millis + 5_000).instant));
            assert!(responder.finish(execution.id, StatusCode::GOOD, outputs, at(millis)));
            responder.poll(at(millis), &mut out).unwrap();
            let answer = sent(&mut out).pop().unwrap();
            requestor.receive(0, &mut answer.clone(), at(millis)).unwrap();
            (question.len(), answer, requestor.poll_outcome())
        };
    let outputs = || vec![Variant::from(19.0), true.into()];
    // Without metadata the request contains Variants, and the response waits until the requestor has discovered the
    // responder.
    let (variants, mut answer, unheard) = exchange(&mut requestor, &mut responder, outputs(), 0);
    assert_eq!(unheard, None);
    assert!(requestor.poll_timeout().is_some());
    announce(&mut responder, &mut requestor, 1);
    requestor.receive(0, &mut answer, at(2)).unwrap();
    assert_eq!(requestor.poll_outcome().unwrap().outputs, outputs());
    // With metadata, two type bytes are saved and four bytes of version added.
    let (raw, _, outcome) = exchange(&mut requestor, &mut responder, outputs(), 1_000);
    assert_eq!((raw, outcome.map(|one| one.outputs)), (variants + 2, Some(outputs())));
    // Inputs that do not fit are not sent.
    for (wrong, status) in [
        (vec!["warm".into(), 7u16.into()], StatusCode::BAD_TYPE_MISMATCH),
        (vec![1.0.into()], StatusCode::BAD_ARGUMENTS_MISSING),
        (vec![1.0.into(), 7u16.into(), 1.into()], StatusCode::BAD_TOO_MANY_ARGUMENTS),
    ] {
        requestor.request(ask(wrong), at(2_000)).unwrap();
        let mut out = Transmit::new();
        requestor.poll(at(2_000), &mut out).unwrap();
        assert_eq!(requestor.poll_outcome().map(|one| (one.status, one.outputs)), Some((status, Vec::new())));
    }
    let wrong = vec!["nineteen".into(), true.into()];
    let (.., outcome) = exchange(&mut requestor, &mut responder, wrong, 3_000);
    assert_eq!(outcome.map(|one| one.status), Some(StatusCode::BAD_TYPE_MISMATCH));
    // Requests with an outdated metadata version are refused, not guessed.
    let mut changed = description();
    changed.request.configuration_version.major_version = 4;
    changed.request.fields.swap(0, 1);
    responder.describe(connection(false, FieldMask::RAW_DATA), vec![changed], at(4_000)).unwrap();
    let mut out = Transmit::new();
    requestor.request(ask(vec![21.5.into(), 7u16.into()]), at(4_000)).unwrap();
    requestor.poll(at(4_000), &mut out).unwrap();
    let mut question = sent(&mut out).pop().unwrap();
    assert_eq!(responder.receive(&mut question, at(4_000)).unwrap(), []);
    responder.poll(at(4_000), &mut out).unwrap();
    for mut answer in sent(&mut out) {
        requestor.receive(0, &mut answer, at(4_000)).unwrap();
    }
    assert_eq!(requestor.poll_outcome().unwrap().status, StatusCode::BAD_CONFIGURATION_ERROR);
}

#[test]
fn data_values_are_refused_in_actions() {
    let (_, mut responder) = pair(ActionMapping::Uadp, false, PublisherId::UInt16(9));
    let refused = responder.describe(connection(false, FieldMask::STATUS_CODE), vec![description()], at(0));
    assert_eq!(refused, Err(ActionError::DataValues(TARGET.data_set_writer_id)));
    let mut unfit = description();
    unfit.response.fields[0].built_in_type = BuiltInType::NodeId.number();
    let refused = responder.describe(connection(false, FieldMask::RAW_DATA), vec![unfit], at(0));
    assert!(matches!(refused, Err(ActionError::NoRawData { writer_id: 5, .. })), "{refused:?}");
    // The sender is told.
    let mut question = Vec::new();
    let writer_ids = [TARGET.data_set_writer_id];
    super::super::message::network_header(RESPONDER.as_ref(), &writer_ids).encode(&mut question);
    ActionHeader { is_request: true, correlation_data: Some(b"me"), ..ActionHeader::default() }
        .encode(&mut question);
    DataSetMessageHeader {
        is_valid: true,
        kind: DataSetMessageKind::ActionRequest,
        encoding: FieldEncoding::DataValue,
        ..DataSetMessageHeader::default()
    }
    .encode(&mut question);
    ActionBody { target_id: TARGET.action_target_id, request_id: 1, state: ActionState::EXECUTING }
        .encode(&mut question);
    [1u8, 0, 1].iter().for_each(|byte| byte.encode(&mut question));
    Variant::from(1.0).encode(&mut question);
    assert_eq!(responder.receive(&mut question, at(0)).unwrap(), []);
    let mut out = Transmit::new();
    responder.poll(at(0), &mut out).unwrap();
    let answer = sent(&mut out).remove(0);
    let status = (StatusCode::BAD_DATA_ENCODING_UNSUPPORTED.0 >> 16) as u16;
    assert!(answer.windows(2).any(|bytes| bytes == status.to_le_bytes()), "{answer:x?}");
}

/// Raw fields with a leading count (Part 14 §7.2.4.5.9), and without (a possible reading of §7.2.4.5.11).
#[test]
fn raw_fields_are_read_with_and_without_their_count() {
    let (_, mut responder) = pair(ActionMapping::Uadp, false, PublisherId::UInt16(9));
    responder.describe(connection(false, FieldMask::RAW_DATA), vec![description()], at(0)).unwrap();
    let question = |request_id: u16, count: Option<u16>, fields: &[u8]| {
        let mut question = Vec::new();
        let writer_ids = [TARGET.data_set_writer_id];
        super::super::message::network_header(RESPONDER.as_ref(), &writer_ids).encode(&mut question);
        ActionHeader { is_request: true, correlation_data: Some(b"me"), ..ActionHeader::default() }
            .encode(&mut question);
        DataSetMessageHeader {
            is_valid: true,
            kind: DataSetMessageKind::ActionRequest,
            encoding: FieldEncoding::RawData,
            major_version: Some(3),
            ..DataSetMessageHeader::default()
        }
        .encode(&mut question);
        ActionBody { target_id: TARGET.action_target_id, request_id, state: ActionState::EXECUTING }
            .encode(&mut question);
        count.into_iter().for_each(|count| count.encode(&mut question));
        question.extend_from_slice(fields);
        question
    };
    let mut fields = Vec::new();
    21.1f64.encode(&mut fields);
    7u16.encode(&mut fields);
    for (id, count) in [(1, Some(2)), (2, None)] {
        let executions = responder.receive(&mut question(id, count, &fields), at(0)).unwrap();
        assert_eq!(executions[0].inputs, [Variant::from(21.1), Variant::from(7u16)], "{count:?}");
    }
    // No fields are valid; anything between is refused.
    assert_eq!(responder.receive(&mut question(3, Some(0), &[]), at(0)).unwrap()[0].inputs, []);
    assert!(responder.receive(&mut question(4, Some(3), &fields), at(0)).is_err());
    assert!(responder.receive(&mut question(5, None, &fields[..9]), at(0)).is_err());
}

/// Over a reliable transport every message is sent once, in both mappings.
#[test]
fn reliable_transports_get_each_message_once() {
    let (mut requestor, mut responder) = pair(ActionMapping::Uadp, true, PublisherId::UInt16(9));
    let mut out = Transmit::new();
    requestor.set_connected(false, at(0));
    requestor.request(ask(vec![1.5.into()]), at(0)).unwrap();
    requestor.poll(at(0), &mut out).unwrap();
    assert!(out.is_empty(), "the response could not be received");
    requestor.set_connected(true, at(10));
    assert_eq!(requestor.poll_timeout(), Some(at(10).instant));
    requestor.poll(at(10), &mut out).unwrap();
    requestor.poll(at(1_000), &mut out).unwrap();
    let questions = sent(&mut out);
    assert_eq!(questions.len(), 1);
    let execution = responder.receive(&mut questions[0].clone(), at(10)).unwrap().remove(0);
    assert_eq!(
        responder.receive(&mut questions[0].clone(), at(11)).unwrap(),
        [],
        "the broker delivered it twice"
    );
    responder.poll(at(11), &mut out).unwrap();
    out.clear();
    responder.finish(execution.id, StatusCode::GOOD, vec![2.5.into()], at(50));
    for millis in [50, 150, 250] {
        responder.poll(at(millis), &mut out).unwrap();
    }
    let answers = sent(&mut out);
    assert_eq!(answers.len(), 1);
    requestor.receive(0, &mut answers[0].clone(), at(60)).unwrap();
    assert_eq!(requestor.poll_outcome().unwrap().outputs, [Variant::from(2.5)]);
    assert_eq!(requestor.poll_timeout(), None);
    assert_eq!(responder.receive(&mut questions[0].clone(), at(70)).unwrap(), [], "it is remembered");
    responder.poll(at(61_000), &mut out).unwrap();
    assert!(responder.is_empty() && out.is_empty());
    // A response with raw data is requested only when it can be decoded.
    responder.describe(connection(false, FieldMask::RAW_DATA), vec![description()], at(62_000)).unwrap();
    responder.announce(at(62_000));
    responder.poll(at(62_000), &mut out).unwrap();
    // It announces the Actions and then the fields, or in reverse order.
    let mut told = sent(&mut out);
    told.sort_by_key(|one| !String::from_utf8_lossy(one).contains("239.0.0.1"));
    requestor.receive(0, &mut told[0], at(62_000)).unwrap();
    requestor.request(ask(vec![1.5.into(), 2u16.into()]), at(62_000)).unwrap();
    requestor.poll(at(62_000), &mut out).unwrap();
    assert!(out.is_empty());
    requestor.receive(0, &mut told[1], at(62_010)).unwrap();
    requestor.poll(at(62_010), &mut out).unwrap();
    let execution = responder.receive(&mut sent(&mut out)[0], at(62_010)).unwrap().remove(0);
    responder.finish(execution.id, StatusCode::GOOD, vec![19.5.into(), true.into()], at(62_020));
    responder.poll(at(62_020), &mut out).unwrap();
    requestor.receive(0, &mut sent(&mut out)[0], at(62_020)).unwrap();
    assert_eq!(requestor.poll_outcome().unwrap().outputs, [Variant::from(19.5), true.into()]);
    // Requests that were never sent are distinguished from those that may have been executed.
    requestor.set_connected(false, at(100_000));
    requestor.request(ask(Vec::new()), at(100_000)).unwrap();
    requestor.poll(at(105_000), &mut out).unwrap();
    assert_eq!(requestor.poll_outcome().unwrap().status, StatusCode::BAD_NO_COMMUNICATION);
}

#[cfg(feature = "json")]
mod json {
    use super::*;
    use taktwerk_types::json::parse::parse_bytes;
    use taktwerk_types::json::{Json, JsonLimits};

    fn text(datagram: &[u8]) -> String {
        String::from_utf8(datagram.to_vec()).unwrap()
    }

    fn answer(responder: &mut Responder, millis: u64) -> Option<String> {
        let mut out = Transmit::new();
        responder.poll(at(millis), &mut out).unwrap();
        sent(&mut out).pop().map(|datagram| text(&datagram))
    }

    #[test]
    fn json_cannot_be_secured() {
        for (mode, allowed) in [(SecurityMode::Sign, true), (SecurityMode::None, false)] {
            let mut options = ResponderOptions::new(RESPONDER, security(mode));
            options.allow_unsecured = allowed;
            options.mapping = ActionMapping::Json;
            let entropy = Box::new(SeededEntropy::new(1));
            let refused = Responder::new(options, [TARGET], Arc::new(DummyPubSubProvider), entropy);
            assert!(matches!(refused, Err(ActionError::JsonSecured)));
        }
    }

    #[test]
    fn actions_go_as_json() {
        for mask in [FieldMask::EMPTY, FieldMask::RAW_DATA] {
            let (mut requestor, mut responder) =
                pair(ActionMapping::Json, true, PublisherId::String("me".into()));
            responder.describe(connection(true, mask), vec![description()], at(0)).unwrap();
            requestor.set_address(&RESPONDER, 5, "ask/me/here".into(), at(0));
            let id = requestor.request(ask(vec![21.5.into(), 7u16.into()]), at(0)).unwrap();
            let mut out = Transmit::new();
            requestor.poll(at(0), &mut out).unwrap();
            assert!(out.is_empty(), "the names of the fields are not known");
            assert_eq!(announce(&mut responder, &mut requestor, 10), 2);
            requestor.poll(at(10), &mut out).unwrap();
            assert_eq!(out.iter().next().unwrap().address, Some("ask/me/here"));
            let mut question = sent(&mut out).remove(0);
            let request = text(&question);
            let json = parse_bytes(&question, JsonLimits::default()).unwrap();
            let of = |name: &str| json.get(name).and_then(Json::as_str);
            assert_eq!((of("MessageType"), of("PublisherId")), (Some("ua-action-request"), Some("7")));
            assert_eq!((of("ResponseAddress"), of("RequestorId")), (Some("me"), Some("me")));
            assert!(of("CorrelationData").is_some() && of("Timestamp").is_some(), "{request}");
            let part = &json.get("Messages").and_then(Json::as_array).unwrap()[0];
            let payload = part.get("Payload").and_then(|payload| payload.get("ramp")).unwrap();
            match mask {
                FieldMask::RAW_DATA => assert!(matches!(payload, Json::Number(number) if *number == "7")),
                _ => assert!(payload.get("UaType").is_some(), "{request}"),
            }
            let execution = responder.receive(&mut question, at(11)).unwrap().remove(0);
            assert_eq!(execution.inputs, [Variant::from(21.5), Variant::from(7u16)]);
            responder.finish(execution.id, StatusCode::GOOD, vec![19.0.into(), true.into()], at(12));
            let response = answer(&mut responder, 12).unwrap();
            assert!(response.contains("\"Status\":{}"), "{response}");
            assert!(!response.contains("ResponseAddress"), "{response}");
            requestor.receive(0, &mut response.into_bytes(), at(13)).unwrap();
            let outputs = vec![Variant::from(19.0), true.into()];
            assert_eq!(
                requestor.poll_outcome(),
                Some(Outcome { request_id: id, status: StatusCode::GOOD, outputs })
            );
            // The requestor has learned what was announced.
            let heard: Vec<_> = core::iter::from_fn(|| requestor.poll_announcement()).collect();
            let found = heard.iter().find_map(|(_, one)| ActionDescription::from_announcement(one));
            assert_eq!(found, Some(description()));
            assert!(heard.iter().all(|(id, _)| *id == PublisherId::String("7".into())));
        }
    }

    /// JSON as other stacks write it: no MessageTypes inside, values without types, Status as a number.
    #[test]
    fn json_of_other_stacks_is_understood() {
        let (_, mut responder) = pair(ActionMapping::Json, true, PublisherId::String("me".into()));
        responder.describe(connection(true, FieldMask::EMPTY), vec![description()], at(0)).unwrap();
        let request = |part: &str| {
            format!(
                r#"{{"MessageId":"32235f26","MessageType":"ua-action-request","PublisherId":"7",
                "Timestamp":"2022-11-28T12:01:00.0923534Z","ResponseAddress":"answers","CorrelationData":"0RKKl/tH",
                "RequestorId":"cloud","TimeoutHint":15000,"Messages":[{part}]}}"#
            )
        };
        let ask =
            |responder: &mut Responder, part: &str| responder.receive(&mut request(part).into_bytes(), at(0));
        let part = r#"{"DataSetWriterId":5,"ActionTargetId":2,"RequestId":1,"ActionState":1,
            "Payload":{"ramp":3,"setpoint":70.25}}"#;
        let execution = ask(&mut responder, part).unwrap().remove(0);
        assert_eq!(
            execution.inputs,
            [Variant::from(70.25), Variant::from(3u16)],
            "in the order of the metadata"
        );
        assert_eq!(execution.deadline, Some(at(15_000).instant));
        responder.finish(execution.id, StatusCode::BAD_OUT_OF_RANGE, Vec::new(), at(1));
        let response = answer(&mut responder, 1).unwrap();
        for expected in [
            r#""MessageType":"ua-action-response""#,
            r#""CorrelationData":"0RKKl/tH""#,
            r#""RequestorId":"cloud""#,
            r#""RequestId":1"#,
            r#""ActionState":2"#,
            r#""Status":{"Code":2151415808}"#,
        ] {
            assert!(response.contains(expected), "{expected} in {response}");
        }
        // A missing field, an unknown field, another version, another target.
        let parts = r#"{"DataSetWriterId":5,"ActionTargetId":2,"RequestId":2,"ActionState":"Executing_1",
            "MetaDataVersion":{"MajorVersion":3},"Payload":{"setpoint":{"UaType":11,"Value":1}}},
            {"DataSetWriterId":5,"ActionTargetId":2,"RequestId":3,"ActionState":1,"Payload":{"force":true}},
            {"DataSetWriterId":5,"ActionTargetId":2,"RequestId":4,"ActionState":1,
            "MetaDataVersion":{"MajorVersion":2},"Payload":{"setpoint":1}},
            {"DataSetWriterId":5,"ActionTargetId":3,"RequestId":5,"ActionState":1,"Payload":{"setpoint":1}}"#;
        let executions = ask(&mut responder, parts).unwrap();
        let [execution] = executions.as_slice() else { panic!("{executions:?}") };
        assert_eq!(execution.inputs, [Variant::from(1.0), Variant::Empty]);
        let mut out = Transmit::new();
        responder.poll(at(2), &mut out).unwrap();
        let answers: Vec<String> = sent(&mut out).iter().map(|one| text(one)).collect();
        for (number, status) in [
            (3, StatusCode::BAD_INVALID_ARGUMENT),
            (4, StatusCode::BAD_CONFIGURATION_ERROR),
            (5, StatusCode::BAD_NOT_FOUND),
        ] {
            let (number, status) = (format!("\"RequestId\":{number},"), format!("{{\"Code\":{}}}", status.0));
            let found = answers.iter().filter(|one| one.contains(&number) && one.contains(&status));
            assert_eq!(found.count(), 1, "{number} {status} in {answers:?}");
        }
        // Invalid requests give an error or are ignored, but are never executed.
        for (broken, is_error) in [
            (r#"{"MessageType":"ua-data","PublisherId":"7","Messages":[]}"#, false),
            (r#"{"MessageType":"ua-action-request","PublisherId":"8","Messages":[]}"#, false),
            (r#"{"MessageType":"ua-action-request","Messages":[]}"#, true),
            (r#"{"MessageType":"ua-action-request","PublisherId":"7"}"#, true),
            (r#"{"MessageType":"ua-action-request","PublisherId":"7","Messages":[7]}"#, true),
            (r#"{"MessageType":"ua-action-request","PublisherId":"7","Messages":[{"ActionState":3}]}"#, true),
            (
                r#"{"MessageType":"ua-action-request","PublisherId":"7",
                "Messages":[{"MessageType":"ua-action-response"}]}"#,
                true,
            ),
            ("no JSON", true),
        ] {
            let received = responder.receive(&mut broken.as_bytes().to_vec(), at(3));
            assert_eq!(received.is_err(), is_error, "{broken}: {received:?}");
            assert!(received.unwrap_or_default().is_empty());
        }
    }

    #[test]
    fn undescribed_fields_are_numbered() {
        let (mut requestor, mut responder) = pair(ActionMapping::Json, true, PublisherId::UInt16(9));
        let mut bare = description();
        bare.request.fields.clear();
        bare.response.fields.clear();
        // The responder does not announce its fields, so the requestor is configured.
        requestor.describe(&RESPONDER, &bare, at(0));
        requestor.request(ask(vec!["a".into(), vec![1i32, 2].into()]), at(0)).unwrap();
        let mut out = Transmit::new();
        requestor.poll(at(0), &mut out).unwrap();
        let mut question = sent(&mut out).remove(0);
        assert!(text(&question).contains("\"Field2\""), "{}", text(&question));
        let execution = responder.receive(&mut question, at(0)).unwrap().remove(0);
        assert_eq!(execution.inputs, [Variant::from("a"), vec![1i32, 2].into()]);
    }
}
