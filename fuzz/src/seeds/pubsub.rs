//! Seeds of the PubSub targets.

use super::{Seeds, numbered};
use crate::targets::pubsub::plant::{self, at};
use taktwerk_pubsub::config::{Configuration, binary_file, toml};
use taktwerk_pubsub::uadp::action::{ActionBody, ActionHeader};
use taktwerk_pubsub::uadp::announcement::{Announcement, NumberedAnnouncement};
use taktwerk_pubsub::uadp::probe::Probe;
use taktwerk_pubsub::{DatagramKind, Transmit};
use taktwerk_schema::ActionState;
use taktwerk_types::{DataValue, Encode, NodeId, StatusCode, UaString, UtcTime, Variant};

/// Valid messages of every group, alone, and a script of cycles, changes and replays.
pub(super) fn uadp() -> Seeds {
    let mut sending = plant::publisher(plant::publishing());
    sending.start(at(0).instant, at(0));
    sending.set_keys("group", Ok(&plant::keys()), at(0)).expect("they are keys");
    let mut out = Transmit::new();
    let mut seeds = Vec::new();
    for cycle in 0..2u16 {
        out.clear();
        let mut values = |_: usize, fields: &mut [DataValue]| {
            fields[0] = DataValue::new(1.5f32);
            fields[1] = DataValue::new("text");
            fields[2] = DataValue::new(cycle);
            fields[3] = DataValue::new(vec![1i16, 2, 3]);
        };
        sending.poll(at(u64::from(cycle) * 10), &mut values, &mut out);
        seeds.extend(out.iter().map(|datagram| [&[0], datagram.bytes].concat()));
    }
    let cycle = [4, 7, 1, 2, 3, b'a', b'b', b'c'];
    let replay = |index: u8| [2, index];
    let change = |index: u8, place: u8| [1, index, 0, place, 1, 1];
    let pause = [3, 200];
    let mut script = vec![1];
    for round in 0..4 {
        script.extend(cycle);
        for index in 0..8 {
            script.extend(replay(round * 8 + index));
            script.extend(change(round * 8 + index, index * 5));
        }
        script.extend(pause);
    }
    seeds.push(script);
    let raw = [&[1, 0, 20, 0][..], &[0xF1, 1, 0xBA, 8, 1, 1, 0, 1, 1, 0, 1, 1, 0, 10, 0, 0, 0, 0]].concat();
    seeds.push(raw);
    numbered(seeds)
}

/// All kinds of messages as text, and our values in every encoding.
pub(super) fn json() -> Seeds {
    let texts = [
        r#"{"MessageId":"1","MessageType":"ua-data","PublisherId":"7","Messages":[{"DataSetWriterId":1,"SequenceNumber":3,"MetaDataVersion":{"MajorVersion":1,"MinorVersion":1},"Timestamp":"2024-02-29T12:00:00Z","Status":0,"MessageType":"ua-keyframe","Payload":{"d":1.5,"s":"x","q":"9","b":"AQID","n":"i=85","c":{"Code":2147483648},"v":{"UaType":7,"Value":3}}}]}"#,
        r#"[{"DataSetWriterId":1,"MessageType":"ua-deltaframe","Payload":{"d":{"Value":1.0,"Status":{"Code":1073741824},"SourceTimestamp":"2024-02-29T12:00:00Z"}}},{"DataSetWriterId":1,"MessageType":"ua-keepalive"}]"#,
        r#"{"d":1,"s":null,"zz":[1,2,{"a":true}]}"#,
        r#"{"MessageId":"2","MessageType":"ua-metadata","PublisherId":"7","DataSetWriterId":1,"MetaData":{"Name":"set","Fields":[{"Name":"d","BuiltInType":11,"DataType":"i=11","ValueRank":-1}],"ConfigurationVersion":{"MajorVersion":2,"MinorVersion":1}}}"#,
        r#"{"DataSetWriterId":1,"MessageType":"ua-event","Payload":{"d":{"Type":11,"Body":2.5},"s":{"Type":12,"Body":"x"}}}"#,
    ];
    let mut seeds: Vec<_> = texts.iter().map(|text| [&[0, 0], text.as_bytes()].concat()).collect();
    let values: [Variant; 8] = [
        1.5.into(),
        "Grüße".into(),
        UtcTime::from_ticks(132_000_000_000_000_000).into(),
        (-7i64).into(),
        taktwerk_types::ByteString::from(vec![1, 2, 3]).into(),
        NodeId::string(2, "Boiler").into(),
        StatusCode::BAD_NODE_ID_UNKNOWN.into(),
        UaString::from("v").into(),
    ];
    for encoding in 0..4 {
        let mut seed = vec![1, encoding];
        values.iter().for_each(|value| value.encode(&mut seed));
        seeds.push(seed);
    }
    let status = r#"{"MessageId":"3","MessageType":"ua-status","PublisherId":"7","Timestamp":"2024-02-29T12:00:00Z","IsCyclic":true,"Status":2,"NextReportTime":"2024-02-29T12:00:05Z"}"#;
    seeds.push([&[0, 0], status.as_bytes()].concat());
    // Actions: all kinds of texts, and our values.
    let actions = [
        r#"{"MessageId":"4","MessageType":"ua-action-request","PublisherId":"7","Timestamp":"2024-02-29T12:00:00Z","ResponseAddress":"a","CorrelationData":"AQID","RequestorId":"9","TimeoutHint":1000,"Messages":[{"DataSetWriterId":1,"ActionTargetId":1,"MessageType":"ua-action-request","RequestId":1,"ActionState":1,"Payload":{"d":1.5,"s":{"UaType":12,"Value":"x"}}},{"DataSetWriterId":1,"ActionTargetId":2,"RequestId":2,"ActionState":"Executing_1"}]}"#,
        r#"{"MessageId":"5","MessageType":"ua-action-response","PublisherId":"7","Timestamp":"2024-02-29T12:00:00Z","CorrelationData":"AQID","RequestorId":"9","Messages":[{"DataSetWriterId":1,"ActionTargetId":1,"Status":{"Code":2147483648},"RequestId":1,"ActionState":2,"MetaDataVersion":{"MajorVersion":0},"Payload":{"d":2.5}}]}"#,
        r#"{"MessageId":"6","MessageType":"ua-action-metadata","PublisherId":"7","DataSetWriterId":1,"Timestamp":"2024-02-29T12:00:00Z","ActionTargets":[{"ActionTargetId":1,"Name":"t"}],"Request":{"Name":"a","Fields":[{"Name":"d","BuiltInType":11,"DataType":"i=11","ValueRank":-1}]},"Response":{"Name":"a"},"ActionMethods":[{"ObjectId":"i=85","MethodId":"i=11492"}]}"#,
        r#"{"MessageId":"7","MessageType":"ua-action-responder","PublisherId":"7","Timestamp":"2024-02-29T12:00:00Z","Connection":{"Name":"c","Enabled":true,"PublisherId":{"UaType":5,"Value":7},"WriterGroups":[{"Name":"g","WriterGroupId":1,"DataSetWriters":[{"Name":"w","DataSetWriterId":1,"DataSetFieldContentMask":32}]}]}}"#,
    ];
    seeds.extend(actions.iter().map(|text| [&[2, 1], text.as_bytes()].concat()));
    let mut seed = vec![2, 0];
    values.iter().for_each(|value| value.encode(&mut seed));
    seeds.push(seed);
    numbered(seeds)
}

fn step(kind: u8, writer_id: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).expect("it is short").to_le_bytes();
    [&[kind, writer_id], &len[..], payload, &[200]].concat()
}

/// Every probe, its announcements, and a message in an announced layout.
pub(super) fn discovery() -> Seeds {
    let probes = [
        Probe::FindApplications,
        Probe::PublisherEndpoints,
        Probe::DataSetMetaData(vec![1, 3]),
        Probe::DataSetWriters(vec![]),
        Probe::WriterGroup { writer_group_id: 1, include_data_set_writers: true },
        Probe::PubSubConnections { include_writer_groups: true, include_data_set_writers: true },
    ];
    let mut seeds: Vec<_> = probes.iter().map(|probe| step(0, 0, &probe.encode_to_vec())).collect();
    let all = seeds.concat();
    seeds.push(all);
    let mut meta_data = plant::data_set("set1").meta_data;
    meta_data.configuration_version.major_version = 2;
    let announcement = Announcement::DataSetMetaData {
        writer_id: 1,
        meta_data: Box::new(meta_data),
        status: StatusCode::GOOD,
    };
    let announced = NumberedAnnouncement { sequence_number: 1, announcement }.encode_to_vec();
    let raw =
        [0x03, 0, 0, 0x80, 0x3f, 1, 0, 0, 0, b'a', 0, 0, 0, 0, 0, 0, 0, 5, 0, 3, 0, 0, 0, 1, 0, 2, 0, 3, 0];
    seeds.push([step(2, 0, &announced), step(4, 1, &raw)].concat());
    let status = Announcement::Status {
        state: taktwerk_pubsub::state::PubSubState::OPERATIONAL,
        cyclic: Some((UtcTime::from_ticks(2), UtcTime::from_ticks(1))),
    };
    seeds.push(step(
        2,
        0,
        &NumberedAnnouncement { sequence_number: 2, announcement: status }.encode_to_vec(),
    ));
    // The announcements of our publisher.
    let mut sending = plant::publisher(plant::publishing());
    sending.announce(0, at(0));
    let mut out = Transmit::new();
    sending.poll(at(0), &mut |_: usize, _: &mut [DataValue]| {}, &mut out);
    let announced = out.iter().filter(|datagram| datagram.kind == DatagramKind::MetaData);
    // After flags and PublisherId.
    seeds.extend(announced.take(2).filter_map(|datagram| Some(step(2, 0, datagram.bytes.get(5..)?))));
    numbered(seeds)
}

/// Headers with all fields and with none.
pub(super) fn action() -> Seeds {
    let full = ActionHeader {
        is_request: true,
        response_address: Some("opc.udp://10.0.0.1:4840"),
        correlation_data: Some(b"me"),
        requestor_id: Some(7u16.into()),
        timeout_hint: Some(250.0),
    };
    let body = ActionBody { target_id: 3, request_id: 4, state: ActionState::EXECUTING };
    let headers = [full, ActionHeader::default()].map(|header| {
        let mut bytes = vec![0];
        header.encode(&mut bytes);
        body.encode(&mut bytes);
        bytes
    });
    // With and without security: request, deliver everything, finish, wait.
    let script = |is_secured: u8| {
        let mut script = vec![1, is_secured, 0, 9, 0, 10, 0, 1];
        for round in 0..12 {
            script.extend([5, round, 1, 1, 100, 0, round, 1, 2, 0, 7, round + 1, 1, 4, round + 2, 1]);
        }
        script
    };
    // Described at the start and again later: as Variants, raw, secured and raw, and as JSON.
    let described = |setting: u8| {
        let mut script = vec![1, setting, 6, 0, 1, 0, 1, 0, 1, 1, 1];
        for round in 0..12 {
            script.extend([
                0,
                round,
                0,
                10,
                round,
                1,
                1,
                100,
                0,
                round,
                1,
                2,
                0,
                7,
                round + 1,
                1,
                4,
                round + 2,
                1,
            ]);
            script.extend([6, round, 1, 2, 1, round, 1]);
        }
        script
    };
    let settings = [0, 2, 3, 4, 6, 10, 14].map(described);
    numbered(headers.into_iter().chain([script(0), script(1)]).chain(settings))
}

/// Files and texts of two configurations.
pub(super) fn configuration() -> Seeds {
    let mut plain = plant::publishing();
    plain.connections[0].writer_groups.truncate(2);
    let file = |configuration: &Configuration| [&[0], &binary_file::write(configuration)[..]].concat();
    let text = toml::to_toml(&plain).expect("it is plain");
    let readers = r#"
key-services = ["opc.tcp://sks:4840"]
[[security-group]]
id = "plant"
key-lifetime = 3600000.0
policy = "PubSub-Aes256-CTR"
[[connection]]
name = "mqtt"
url = "mqtt://localhost:1883"
[[connection.reader-group]]
name = "in"
readers = [{ name = "s", writer-id = 4, fields = [{ name = "x", type = "Int32", node = "ns=1;i=5", dimensions = [2, 0] }] }]
"#;
    numbered([
        file(&plain),
        file(&plant::subscribing()),
        [&[1], text.as_bytes()].concat(),
        [&[1], readers.as_bytes()].concat(),
    ])
}
