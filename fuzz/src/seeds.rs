//! Generates the committed seeds: inputs that get each target past its first checks.
//!
//! `cargo test --no-default-features --lib write_seeds -- --ignored` rewrites them. Inputs that once made a target
//! panic are added by hand as `found-…` and stay.

mod gateway;
mod pubsub;

use std::path::Path;
use taktwerk_schema as schema;
use taktwerk_schema::{
    Argument, DataChangeFilter, EUInformation, EnumValueType, ReadRequest, ReadValueId, RequestHeader,
    ServerStatusDataType,
};
use taktwerk_types::{
    ByteString, DataValue, DiagnosticInfo, Encode, ExpandedNodeId, ExtensionObject, Guid, LocalizedText,
    NodeId, QualifiedName, StatusCode, Structure, UaString, UtcTime, Variant,
};

/// The seeds of a target with their file names.
type Seeds = Vec<(String, Vec<u8>)>;

fn numbered(seeds: impl IntoIterator<Item = Vec<u8>>) -> Seeds {
    (0..).zip(seeds).map(|(number, seed): (u32, _)| (format!("seed-{number:02}"), seed)).collect()
}

/// A choice, followed by an encoding.
fn chosen(choice: &[u8], value: &impl Encode) -> Vec<u8> {
    let mut seed = choice.to_vec();
    value.encode(&mut seed);
    seed
}

fn variants() -> Vec<Variant> {
    vec![
        Variant::Empty,
        Variant::from(true),
        Variant::from(-7i16),
        Variant::from(1.5),
        Variant::from(f32::NAN),
        Variant::from("Grüße"),
        Variant::from(UtcTime::from_ticks(132_000_000_000_000_000)),
        Variant::from(Guid::default()),
        Variant::from(NodeId::string(2, "Boiler")),
        Variant::from(ExpandedNodeId::from(NodeId::opaque(3, vec![1, 2, 3]))),
        Variant::from(StatusCode::BAD_NODE_ID_UNKNOWN),
        Variant::from(QualifiedName::new(1, "Name")),
        Variant::from(LocalizedText::new("de", "Wert")),
        Variant::from(DataValue::new(5u8)),
        Variant::from_structure(&EUInformation::default()),
        Variant::from(vec![1u32, 2, 3, 4, 5, 6]),
        Variant::matrix(vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], vec![2, 3]).expect("six elements"),
        Variant::from(vec![Variant::from(1u8), Variant::from(vec![Variant::Empty])]),
        Variant::from(vec![UaString::from("a"), UaString::default()]),
    ]
}

fn data_value() -> DataValue {
    DataValue { status: Some(StatusCode::UNCERTAIN), ..DataValue::new(3u64) }
        .at(UtcTime::from_ticks(1), UtcTime::from_ticks(2))
}

fn decode_variant() -> Seeds {
    let mut seeds: Vec<Vec<u8>> = variants().iter().map(|value| chosen(&[2], value)).collect();
    seeds.push(chosen(&[0], &data_value()));
    let inner = DiagnosticInfo { symbolic_id: Some(3), ..DiagnosticInfo::default() };
    let outer = DiagnosticInfo { inner_diagnostic_info: Some(Box::new(inner)), ..DiagnosticInfo::default() };
    seeds.push(chosen(&[1], &outer));
    numbered(seeds)
}

fn structure<T: Structure + Encode>(name: &str, value: &T) -> Vec<u8> {
    let at =
        crate::targets::decode::STRUCTURES.iter().position(|entry| entry.0 == name).expect("it is generated");
    chosen(&u16::try_from(at).expect("there are fewer").to_le_bytes(), value)
}

fn read_request() -> ReadRequest {
    let node_id = NodeId::numeric(0, 2258);
    ReadRequest {
        request_header: RequestHeader { request_handle: 7, timeout_hint: 1000, ..RequestHeader::default() },
        nodes_to_read: vec![ReadValueId { node_id, attribute_id: 13, ..ReadValueId::default() }; 2],
        ..ReadRequest::default()
    }
}

fn decode_any_structure() -> Seeds {
    let mut seeds = vec![
        structure("ReadRequest", &read_request()),
        structure("Argument", &Argument { name: "in".into(), ..Argument::default() }),
        structure("ServerStatusDataType", &ServerStatusDataType::default()),
        structure("DataChangeFilter", &DataChangeFilter::default()),
        structure("EnumValueType", &EnumValueType::default()),
    ];
    // Zeros decode as a value of most structures: one input for each.
    for number in 0..crate::targets::decode::STRUCTURES.len() as u16 {
        if number % 16 == 0 {
            let mut seed = number.to_le_bytes().to_vec();
            seed.resize(200, 0);
            seeds.push(seed);
        }
    }
    numbered(seeds)
}

fn decode_extension_object() -> Seeds {
    numbered([
        ExtensionObject::NULL.encode_to_vec(),
        ExtensionObject::new(&Argument { name: "in".into(), ..Argument::default() }).encode_to_vec(),
        ExtensionObject::new(&DataChangeFilter::default()).encode_to_vec(),
        ExtensionObject::from_binary(NodeId::numeric(4, 99), vec![1, 2, 3]).encode_to_vec(),
        ExtensionObject::new(&read_request()).encode_to_vec(),
    ])
}

/// Definitions byte by byte: kind, then fields of type, rank and option; then bodies with their lengths.
fn decode_dynamic_structure() -> Seeds {
    let plain = [1, 0, 2, 6 + 4, 0, 0, 12 + 4, 2, 0];
    let optional = [1, 1, 2, 0, 0, 1, 11 + 4, 0, 1];
    let union = [1, 2, 2, 1, 0, 0, 1 + 4, 0, 0];
    let enumeration = [0, 2, 0, 1, 0];
    let definitions = [&plain[..], &optional, &union, &enumeration].concat();
    let bodies: [&[u8]; 4] = [
        &[1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b'],
        &[1, 0, 0, 0, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
        &[2, 0, 0, 0, 1],
        &[],
    ];
    let bodies =
        bodies.iter().flat_map(|body| core::iter::once(body.len() as u8).chain(body.iter().copied()));
    let whole: Vec<u8> = definitions.iter().copied().chain(bodies).collect();
    // A structure that contains itself, and one of arrays of itself.
    let circular = [1, 0, 1, 0, 0, 0].iter().chain(&[0; 60]).copied().collect();
    let circular_array = [1, 0, 1, 0, 2, 0].iter().chain(&[1; 60]).copied().collect();
    numbered([whole, circular, circular_array])
}

/// Choices of the chunk reader: secured channel or not, opened or not, then operations.
fn chunk_reader() -> Seeds {
    let mut seeds = Vec::new();
    for secured in [0, 1] {
        for opened in [0, 1] {
            let start = [secured, opened];
            // Valid messages of several lengths, whole and in pieces.
            seeds.push(
                [&start[..], &[2, 100, 0, 0, 255, 255, 2, 0x40, 0x1f, 0, 10, 0, 2, 0x80, 0x3e, 0, 0, 1]]
                    .concat(),
            );
            // One byte changed.
            seeds.push([&start[..], &[2, 100, 0, 1, 20, 0, 1, 255, 255]].concat());
            // Two parts and an end, then an abort.
            seeds.push([&start[..], &[1, 3, 1, 2, 3, 0, 1, 1, 3, 4, 5, 6, 0, 1, 1, 1, 7, 0, 0]].concat());
            seeds.push(
                [&start[..], &[1, 3, 1, 2, 3, 0, 1, 1, 8, 0, 0, 0x80, 0x80, 255, 255, 255, 255, 0, 2]]
                    .concat(),
            );
            // Time passes: the token is renewed, then expires; our side sends.
            seeds
                .push([&start[..], &[3, 0xfc, 0x00, 0x30, 0x2a, 0, 5, 4, 10, 0, 3, 0xff, 4, 10, 0]].concat());
            // A manual Hello, truncated.
            seeds.push([&start[..], &[0, 12], b"HELF\x20\0\0\0\0\0\0\0"].concat());
        }
    }
    numbered(seeds)
}

/// Messages that need no session, and some that do.
fn server_bytes() -> Seeds {
    fn message<T: Structure + Encode>(value: &T) -> Vec<u8> {
        let mut body = NodeId::numeric(0, T::BINARY_ENCODING_ID).encode_to_vec();
        value.encode(&mut body);
        let mut seed = vec![0, 4];
        seed.extend_from_slice(&(body.len() as u16).to_le_bytes());
        seed.extend_from_slice(&body);
        seed
    }
    let session = schema::CreateSessionRequest { requested_session_timeout: 1000.0, ..Default::default() };
    numbered([
        message(&schema::FindServersRequest::default()),
        message(&schema::GetEndpointsRequest::default()),
        message(&session),
        [message(&session), message(&schema::ActivateSessionRequest::default()), message(&read_request())]
            .concat(),
        message(&schema::CreateSubscriptionRequest::default()),
        message(&schema::PublishRequest::default()),
        message(&schema::CancelRequest::default()),
        message(&schema::HistoryReadRequest::default()),
        // Another connection, raw bytes on it, time, its end.
        [&[0, 0, 1, 3, 8], &b"HELF\x08\0\0\0"[..], &[1, 3, 8], b"MSGF\xff\xff\0\0", &[0, 2, 0xfd, 1, 1]]
            .concat(),
    ])
}

/// The log of a subscription without items: header, a message, and an orderly end; and one that begins in the middle.
fn durable_log() -> Seeds {
    use taktwerk_types::{Encode, UaString};
    let mut header = vec![1, 1];
    vec![UaString::from("http://opcfoundation.org/UA/"), UaString::from("urn:fuzz")].encode(&mut header);
    ByteString::from(vec![0]).encode(&mut header);
    vec![NodeId::numeric(0, 15644)].encode(&mut header);
    1i32.encode(&mut header);
    100.0f64.encode(&mut header);
    [36_000u32, 10, 0].iter().for_each(|number| number.encode(&mut header));
    5u8.encode(&mut header);
    true.encode(&mut header);
    1u32.encode(&mut header);
    let mut messages = vec![1, 9];
    2u32.encode(&mut messages);
    vec![1u32].encode(&mut messages);
    1u32.encode(&mut messages);
    1u32.encode(&mut messages);
    ByteString::from(vec![0; 40]).encode(&mut messages);
    let framed = |record: &[u8]| {
        let len = u16::try_from(record.len()).expect("records of seeds are short");
        [&len.to_le_bytes(), record].concat()
    };
    numbered([
        framed(&header),
        [framed(&header), framed(&messages), framed(&[1, 10])].concat(),
        framed(&messages),
    ])
}

/// A chunk and a batch of values of several types.
fn history_stored() -> Seeds {
    use taktwerk_server::history::HistoryValue;
    let time = |at: i64| UtcTime::from_ticks(133_000_000_000_000_000 + at * 10_000);
    let value = |at: i64, value: Variant| HistoryValue {
        source: time(at),
        server: time(at),
        status: if at % 5 == 0 { StatusCode::UNCERTAIN } else { StatusCode::GOOD },
        value,
    };
    let numbers: Vec<_> = (0..40).map(|at| value(at, (at as f64).sqrt().into())).collect();
    let mixed: Vec<_> = (0..).zip(variants()).map(|(at, one)| value(at, one)).collect();
    let batch: Vec<(u32, &HistoryValue)> = (1..).zip(&numbers).collect();
    numbered([
        taktwerk_history::chunk::encode(&numbers),
        taktwerk_history::chunk::encode(&mixed),
        taktwerk_history::chunk::encode_batch(&batch),
    ])
}

/// Choices of the history target: values are inserted, read in each way, and monitored.
fn history_requests() -> Seeds {
    let insert = [3, 0, 3, 4, 5, 10, 0, 0, 0, 3, 1, 7, 20, 0, 0, 0, 3, 1, 9, 30, 1, 0, 0, 3, 1, 4];
    let raw = [0, 1, 0, 0, 2, 5, 0, 60, 0, 4, 0, 10, 1, 2, 1];
    let processed = [1, 0, 0, 0, 3, 5, 0, 60, 0, 0, 40, 1, 1, 0, 100, 0, 0, 2, 1];
    let at_times = [2, 0, 0, 0, 3, 5, 0, 60, 0, 1, 4, 10, 0, 15, 0, 20, 0, 25, 0, 1, 2, 1];
    let delete = [4, 0, 1, 0, 0, 5, 0, 20, 0];
    let monitor = [5, 20, 0, 7, 40, 1, 1, 100, 0, 0, 0, 2, 50, 4, 1];
    let (publish, write) = ([6, 60], [7, 0, 5]);
    let all = [&insert[..], &raw, &processed, &at_times, &delete, &raw, &monitor, &write, &publish].concat();
    numbered([insert.to_vec(), [&insert[..], &processed].concat(), all])
}

/// Choices of the alarm target: inputs rise and fall, time passes, alarms are acknowledged, shelved and suppressed, and
/// the server is restarted.
fn alarm_methods() -> Seeds {
    let rise = |variable: u8| [0, 3, variable];
    let fall = |variable: u8| [0, 0, variable];
    let call = |method: u8| [5, 0, 0, 1, 1, method, 1, 1];
    let mut seeds = vec![[&rise(0)[..], &rise(1), &[3, 0, 20], &fall(0), &rise(0), &[4]].concat()];
    seeds.extend((0..20).map(|method| [&rise(0)[..], &call(method), &fall(0), &call(method), &[4]].concat()));
    numbered(seeds)
}

/// Choices of the event target: an item with fields and a condition, events, a refresh, a publishing cycle.
fn event_filters() -> Seeds {
    // One filter with the fields EventType and Severity; without a where clause, or with Severity >= 1.
    let fields = [2, 1, 2, 1, 0, 0, 1, 2, 6, 0, 0];
    let condition = [1, 1, 4, 1, 3, 1, 2, 6, 0, 0, 8, 0, 1];
    let settings = [1, 1, 0, 7, 1, 20, 1];
    let create = |condition: &[u8]| [&[4, 0][..], &fields, condition, &settings].concat();
    let raise = [0, 3, 0, 4, 10, 0, 1, 0];
    let (publish, pass, refresh) = ([8], [10, 60], [13, 1, 1]);
    let cycle = [&publish[..], &raise, &pass].concat();
    let mut seeds = vec![
        [&create(&[0]), &cycle[..], &cycle, &refresh, &cycle].concat(),
        [&create(&condition), &cycle[..], &[12, 1, 0], &refresh, &cycle].concat(),
        [&create(&condition), &raise[..], &[6], &fields, &[0], &settings[3..], &cycle].concat(),
    ];
    // And random ones.
    let mut entropy = taktwerk_crypto::SeededEntropy::new(13);
    for _ in 0..16 {
        let mut seed = vec![0; 400];
        taktwerk_crypto::Entropy::fill(&mut entropy, &mut seed);
        seeds.push(seed);
    }
    numbered(seeds)
}

/// Choices of the file target: method, object, roles (1: Engineer), session (1: the first), then the arguments, of
/// which the last is not replaced (1).
fn file_methods() -> Seeds {
    let call = |method: u8, object: u8, inputs: &[u8]| [&[method, object, 1, 1], inputs, &[1]].concat();
    let (open, close, read) = (call(0, 2, &[2]), call(1, 2, &[1]), call(2, 2, &[1, 0]));
    let (write, seek) = (call(3, 2, &[1, 1, 3, 65, 66, 67]), call(5, 2, &[1, 1]));
    let temporary = [call(10, 1, &[]), call(2, 5, &[1, 0]), call(1, 5, &[1])].concat();
    let committed = [call(11, 1, &[]), call(3, 5, &[1, 1, 2, 65, 66]), call(12, 1, &[1])].concat();
    let created =
        [call(7, 0, &[1, 1]), call(6, 3, &[3]), call(9, 0, &[5, 3, 1, 0]), call(8, 3, &[4])].concat();
    let escapes = (4..12).map(|name| [call(7, 0, &[name, 1]), call(6, 3, &[name])].concat());
    let mut seeds = vec![[&open[..], &write, &seek, &read, &close].concat(), temporary, committed, created];
    seeds.extend(escapes);
    numbered(seeds)
}

/// Choices of the query target: types with data, relations, pages, nodes that are added and deleted.
fn query_requests() -> Seeds {
    let types = [0, 2, 1, 1, 0, 1, 1, 0, 3, 0, 0, 0];
    let related = [0, 0, 1, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0];
    let (next, add, delete) = ([4, 1, 0, 1], [6, 1, 2, 0], [7, 1]);
    let mut seeds = vec![
        [&types[..], &next, &next].concat(),
        [&add[..], &types, &related, &delete, &next].concat(),
        [&related[..], &types, &add, &next].concat(),
    ];
    // And random ones.
    let mut entropy = taktwerk_crypto::SeededEntropy::new(11);
    for _ in 0..8 {
        let mut seed = vec![0; 300];
        taktwerk_crypto::Entropy::fill(&mut entropy, &mut seed);
        seeds.push(seed);
    }
    numbered(seeds)
}

/// Choices of the request target. The fuzzer finds most of its behaviour; these are starting points.
fn server_requests() -> Seeds {
    let subscribe = [0, 7, 25, 60, 5, 0, 1, 0];
    let item = [0, 8, 0, 0, 0, 13, 0, 0, 2, 5, 1, 0, 10, 1, 2];
    let publish = [0, 0, 0];
    let write = [0, 5, 0, 1, 3, 3];
    let pause = [0, 3, 60];
    let cycle = [&publish[..], &write, &pause].concat();
    let mut seeds = vec![
        [&subscribe[..], &item, &cycle, &cycle, &cycle].concat(),
        [&subscribe[..], &item, &subscribe, &publish, &publish, &pause, &[0, 14, 1, 20], &cycle].concat(),
        [&subscribe[..], &item, &cycle, &[1, 10, 0, 0, 3, 1], &cycle, &[1, 0, 0], &pause].concat(),
        [&[0, 12, 0, 1, 7, 0, 7, 1, 0, 0, 2, 7][..], &[0, 12, 2, 0, 0, 0]].concat(),
    ];
    // And random ones.
    let mut entropy = taktwerk_crypto::SeededEntropy::new(7);
    for _ in 0..12 {
        let mut seed = vec![0; 400];
        taktwerk_crypto::Entropy::fill(&mut entropy, &mut seed);
        seeds.push(seed);
    }
    numbered(seeds)
}

/// Choices of the client target: a session, a subscription with items, messages.
fn client_responses() -> Seeds {
    // Without reading limits, without retries, without discovery: CreateSession and ActivateSession are answered.
    let start = [0, 0, 0, 0, 0, 5, 60, 0, 0, 0, 0];
    let subscribe = [13, 0, 10, 30, 10, 0, 0, 0, 10, 10, 0];
    let items = [13, 1, 2, 1, 2, 0, 0, 1, 7, 2, 8, 0];
    let publish = [0, 0, 0, 0, 0, 1, 2, 0, 0];
    let gap = [0, 0, 0xe2, 0, 0, 4, 1, 2, 3, 4, 0, 0];
    let pause = [10, 20];
    let broken = [12, 11, 1, 0, 0, 0];
    let cycle = [&publish[..], &pause].concat();
    let mut seeds = vec![
        [&start[..], &subscribe, &items, &cycle, &cycle, &gap, &cycle].concat(),
        [&start[..], &subscribe, &items, &cycle, &broken, &cycle, &cycle].concat(),
        [&[1, 1, 1], &start[3..], &subscribe, &items, &cycle, &[7, 0, 0], &cycle].concat(),
    ];
    let mut entropy = taktwerk_crypto::SeededEntropy::new(8);
    for _ in 0..12 {
        let mut seed = vec![0; 300];
        taktwerk_crypto::Entropy::fill(&mut entropy, &mut seed);
        seeds.push(seed);
    }
    numbered(seeds)
}

/// Choices of the secured client target: every policy without errors, then with one error at a time.
fn client_secured() -> Seeds {
    // Each answer: the action, the oldest request, no error, not repeated.
    let fine = [0, 0, 0, 0];
    let connected = fine.repeat(3);
    let again = [[14, 5].as_slice(), &fine].concat();
    let mut seeds = Vec::new();
    for policy in 0..5u8 {
        for (secret, tokens, options) in [(0, 0, 4), (1, 1, 0), (0, 3, 1), (1, policy + 1, 8)] {
            // Policy, mode, exactly this, secret, user name, policy of secrets, weaker policy, options.
            let start = [policy, secret, 0, secret, 0, tokens, 0, options];
            let read = [14, 1, 2, 0, 0, 3, 3, 0];
            let back = [[11, 10, 2].as_slice(), &fine, &read].concat();
            let renewed = [10, 8, 10, 8];
            seeds.push([&start[..], &connected, &read, &back, &renewed, &read, &back].concat());
        }
        let start = [policy, 0, 0, 0, 0, 0, 0, 0];
        // Zeros have no effect without a connection, so every attempt begins in a known state.
        let attempts = |edits: &mut dyn Iterator<Item = [u8; 4]>| -> Vec<u8> {
            let tries = edits.flat_map(|[edit, one, two, signed]| {
                [&[0, 0, 0x90, edit, one, two, signed, 0, 0, 0, 0, 0, 0], again.as_slice()].concat()
            });
            start.iter().chain(&fine).copied().chain(tries).collect()
        };
        // The CreateSession response: nonce, certificate, signature, endpoints, token, key.
        for signed in 0..2 {
            let edits = (0..7).flat_map(|edit| (0..7).map(move |how| (edit, how)));
            let edits = edits.flat_map(|(edit, how)| [[edit, how, 1, signed], [edit, 1, how, signed]]);
            seeds.push(attempts(&mut edits.into_iter()));
        }
        // The GetEndpoints response.
        let lists = (0..11).flat_map(|edit| {
            [0, 0, 0x90, 2, edit, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].into_iter().chain([14, 5])
        });
        seeds.push(start.iter().copied().chain(lists).collect());
        // Slow jobs, completed one by one, then one that fails, then a connection that breaks in between.
        let slow =
            [12, 0].iter().copied().chain([12, 2, 0].repeat(12)).chain(fine).chain([12, 2, 0].repeat(9));
        let slow: Vec<u8> = start.iter().chain(&fine).copied().chain(slow).collect();
        seeds.push(
            [&slow[..], &[12, 1, 0, 0], &again, &[12, 2, 0], &[11], &[12, 2, 0], &[10, 9], &connected]
                .concat(),
        );
    }
    // Without security: a secret with its own policy, and one that must not be sent.
    for tokens in [0, 1, 3, 4] {
        seeds.push([&[5, 0, 0, 0, tokens, 0, 0][..], &connected, &[11, 10, 3], &connected].concat());
    }
    let mut entropy = taktwerk_crypto::SeededEntropy::new(9);
    for _ in 0..8 {
        let mut seed = vec![0; 300];
        taktwerk_crypto::Entropy::fill(&mut entropy, &mut seed);
        seeds.push(seed);
    }
    numbered(seeds)
}

const NODE_SET: &str = r#"<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
<NamespaceUris><Uri>urn:a</Uri></NamespaceUris>
<Models><Model ModelUri="urn:a" Version="1" PublicationDate="2024-01-01T00:00:00Z"/></Models>
<Aliases><Alias Alias="HasSubtype">i=45</Alias></Aliases>
<UADataType NodeId="i=6" BrowseName="Int32"/>
<UADataType NodeId="i=22" BrowseName="Structure" IsAbstract="true"/>
<UADataType NodeId="ns=1;i=2" BrowseName="1:P"><References><Reference ReferenceType="HasSubtype" IsForward="false">i=22</Reference></References>
<Definition Name="1:P"><Field Name="X" DataType="i=6"/><Field Name="L" DataType="i=6" ValueRank="1" IsOptional="true"/></Definition></UADataType>
<UAObject NodeId="ns=1;i=3" BrowseName="Default Binary"><References><Reference ReferenceType="i=38" IsForward="false">ns=1;i=2</Reference></References></UAObject>
<UAVariable NodeId="ns=1;s=V" BrowseName="1:V" DataType="i=24" ValueRank="-2" ArrayDimensions="2,3"><DisplayName>V</DisplayName><Value>@</Value></UAVariable>
</UANodeSet>"#;

fn nodeset_xml() -> Seeds {
    let values = [
        "<Int32>5</Int32>",
        "<ListOfDouble><Double>1.5</Double><Double>-INF</Double></ListOfDouble>",
        "<ExtensionObject><TypeId><Identifier>ns=1;i=3</Identifier></TypeId><Body><P><X>1</X><L><Int32>2</Int32></L></P></Body></ExtensionObject>",
        "<Matrix><Dimensions><UInt32>1</UInt32><UInt32>2</UInt32></Dimensions><Elements><Byte>1</Byte><Byte>2</Byte></Elements></Matrix>",
        "<DataValue><Value><Variant><Value><Guid><String>72962b91-fa75-4ae6-8d28-b404dc7daf63</String></Guid></Value></Variant></Value></DataValue>",
        "<LocalizedText><Locale>de</Locale><Text>Wert</Text></LocalizedText>",
        "<ByteString>AQID</ByteString>",
        "<DateTime>2024-02-29T23:59:59.5+02:00</DateTime>",
    ];
    numbered(values.iter().map(|value| NODE_SET.replace('@', value).into_bytes()))
}

fn event_condition() -> Seeds {
    let texts = [
        "severity >= 500 and message like '%pump%'",
        "not (EnabledState/Id = false or 2:Pressure between -1.5 and 3e4)",
        "relatedto (i=2004, relatedto (i=58, i=61, i=35, 0, true, false), i=47, 1) and inview 'ns=2;s=North wing'",
        "SourceNode = ns=2;s=Pump or Severity in (1, 2, 3)",
        "BranchId is not null and oftype i=2915",
        "Message not like 'it''s%' and Retain",
    ];
    numbered(texts.iter().map(|text| text.as_bytes().to_vec()))
}

fn node_id_text() -> Seeds {
    let texts = [
        "i=85",
        "ns=2;s=Boiler/Temperature",
        "ns=65535;g=72962b91-fa75-4ae6-8d28-b404dc7daf63",
        "ns=1;b=AQID",
        "nsu=http://a/%3B;i=1",
        "svr=3;nsu=urn:a;s=x",
        "svr=1;ns=2;i=0",
        "s=",
        "ns=0;s=;=%",
    ];
    numbered(texts.iter().map(|text| text.as_bytes().to_vec()))
}

fn numeric_range() -> Seeds {
    let mut seeds = Vec::new();
    for (range, target, source) in [
        ("1", Variant::from(vec![1u32, 2, 3]), Variant::from(vec![9u32])),
        ("0:1", Variant::from("text"), Variant::from("ab")),
        ("1:2,0:1", variants()[16].clone(), Variant::matrix(vec![9.0; 2], vec![1, 2]).expect("two elements")),
        ("0,1", Variant::from(vec![UaString::from("ab")]), Variant::from(vec![UaString::from("x")])),
        ("4294967295", Variant::from(vec![1u8]), Variant::from(vec![1u8])),
    ] {
        let mut seed = vec![range.len() as u8];
        seed.extend_from_slice(range.as_bytes());
        for value in [target, source] {
            let bytes = value.encode_to_vec();
            seed.push(bytes.len() as u8);
            seed.extend_from_slice(&bytes);
        }
        seeds.push(seed);
    }
    numbered(seeds)
}

fn certificates(extension: &str) -> Seeds {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("certificates");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("it is committed")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    numbered(files.iter().map(|path| std::fs::read(path).expect("it can be read")))
}

/// Answers of the signature oracle, options, purpose, then pieces: kind and index.
fn certificate_validation() -> Seeds {
    let head = |purpose: u8| [[0xff; 8].as_slice(), &[64, 0, purpose]].concat();
    // The pieces by number: root, sub, cross, loop_a, loop_b, leaf, leaf_of_loop, self_signed, root.crl, sub.crl.
    let chain = [1, 0, 2, 1, 3, 8, 3, 9, 0, 5];
    let sent = [1, 0, 3, 8, 3, 9, 0, 5, 0, 1, 0, 0];
    let circle = [0, 6, 0, 3, 0, 4, 1, 3, 2, 4];
    let crossed = [2, 0, 2, 1, 0, 5, 0, 1, 0, 2, 0, 0];
    let own = [1, 7, 0, 7];
    let mut seeds = Vec::new();
    for purpose in 0..3 {
        for pieces in [&chain[..], &sent, &circle, &crossed, &own] {
            seeds.push([&head(purpose)[..], pieces].concat());
        }
    }
    numbered(seeds)
}

#[test]
#[ignore = "writes into the source tree"]
fn write_seeds() {
    let all: &[(&str, Seeds)] = &[
        ("decode_variant", decode_variant()),
        ("decode_any_structure", decode_any_structure()),
        ("decode_extension_object", decode_extension_object()),
        ("decode_dynamic_structure", decode_dynamic_structure()),
        ("chunk_reader_server", chunk_reader()),
        ("chunk_reader_client", chunk_reader()),
        ("server_bytes", server_bytes()),
        ("server_requests", server_requests()),
        ("alarm_methods", alarm_methods()),
        ("file_methods", file_methods()),
        ("event_filters", event_filters()),
        ("alarm_stored", numbered(crate::targets::alarms::stored_seeds())),
        ("durable_log", durable_log()),
        ("history_stored", history_stored()),
        ("history_requests", history_requests()),
        ("query_requests", query_requests()),
        ("client_responses", client_responses()),
        ("client_secured", client_secured()),
        ("nodeset_xml", nodeset_xml()),
        ("node_id_text", node_id_text()),
        ("event_condition", event_condition()),
        ("numeric_range", numeric_range()),
        ("x509_certificate", certificates("der")),
        ("x509_revocation_list", certificates("crl")),
        ("x509_request", certificates("csr")),
        ("certificate_validation", certificate_validation()),
        ("pubsub_uadp", pubsub::uadp()),
        ("pubsub_json", pubsub::json()),
        ("pubsub_discovery", pubsub::discovery()),
        ("pubsub_action", pubsub::action()),
        ("pubsub_configuration", pubsub::configuration()),
        ("gateway_queue", gateway::queue()),
        ("gateway_mqtt", gateway::mqtt()),
        ("gateway_program", gateway::program()),
        ("gateway_text", gateway::text()),
        ("gateway_sparkplug", gateway::sparkplug()),
        ("gateway_line", gateway::line()),
        ("gateway_replay", gateway::replay()),
        ("gateway_http", gateway::http()),
        ("gateway_can", gateway::can()),
        ("gateway_modbus", gateway::modbus()),
        ("gateway_configuration", gateway::configuration()),
    ];
    for (target, seeds) in all {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, seed) in seeds {
            std::fs::write(folder.join(name), seed).unwrap();
        }
    }
}
