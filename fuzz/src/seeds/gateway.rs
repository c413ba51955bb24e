//! Seeds of the gateway's targets.

use super::{Seeds, numbered, variants};
use std::sync::Arc;
use taktwerk_gateway::destination::block::Builder;
use taktwerk_types::{StatusCode, UtcTime};

/// Blocks with one and with many tags.
pub(super) fn queue() -> Seeds {
    let time = |at: i64| UtcTime::from_ticks(133_000_000_000_000_000 + at * 10_000);
    let mut builder = Builder::default();
    for (at, value) in (0..).zip(variants()) {
        let name: Arc<str> = format!("Line {}/\"T\"", at % 3).into();
        let status = if at % 4 == 0 { StatusCode::BAD_NO_COMMUNICATION } else { StatusCode::GOOD };
        builder.push((at % 3) as u32, &name, &value, status, time(at), time(at + 1));
    }
    let many = builder.take().expect("there are values").body;
    let name: Arc<str> = "a".into();
    builder.push(0, &name, &1.5.into(), StatusCode::GOOD, time(0), time(0));
    numbered([many, builder.take().expect("there is a value").body])
}

fn piece(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

/// A type, two paths, whether to expand, a filter, a topic, a template, and a message.
pub(super) fn mqtt() -> Seeds {
    let seed = |kind: [u8; 2], texts: [&str; 2], expand: u8, topics: [&str; 3], message: &str| {
        let texts = texts.map(piece).concat();
        [&kind[..], &texts, &[expand], &topics.map(piece).concat(), message.as_bytes()].concat()
    };
    let topics = ["line/+/#", "line/7/a/b", "{1}/{last} {topic}{parent}"];
    numbered([
        seed([10, 1], ["", ""], 0, topics, "21.5"),
        seed([10, 1], ["$.m.v", "ts"], 0, topics, r#"{"m":{"v":7},"ts":1700000000}"#),
        seed([5, 0], ["a[1]", "t"], 0, topics, r#"{"a":[0,[1,2,3]],"t":"2026-01-02T03:04:05Z"}"#),
        seed(
            [11, 1],
            ["", "ts"],
            1,
            ["#", "x", "*/x"],
            r#"{"a":1,"b":{"c":[true,false],"d":"x"},"ts":1.5e12}"#,
        ),
        seed([7, 1], ["", ""], 0, topics, "-9223372036854775808"),
    ])
}

/// A type and a line.
pub(super) fn program() -> Seeds {
    let seed = |kind: [u8; 2], line: &str| [&kind[..], line.as_bytes()].concat();
    numbered([
        seed([10, 1], r#"{"id":0,"value":0.52,"time":"2026-01-01T12:00:00Z"}"#),
        seed(
            [11, 1],
            r#"[{"name":"Load","value":"x","time":1767268800.0},{"id":1,"status":"sensor_failure"}]"#,
        ),
        seed([3, 0], r#"{"id":18446744073709551615,"value":[1,-32768,32767],"status":1073741824}"#),
        seed([12, 1], r#"{"id":1,"value":"2026-01-01T12:00:00.123456789+01:00","status":"uncertain"}"#),
    ])
}

/// A format, a type, a position, a time, the maximum line, the piece size, and a file.
pub(super) fn text() -> Seeds {
    let seed = |head: [u8; 2], place: &str, time: &str, file: &str| {
        [&head[..], &piece(place), &piece(time), &[40, 3], file.as_bytes()].concat()
    };
    numbered([
        seed([0, 10], "T=(?<value>[-0-9.]+)", "", "T=21.5\r\nnothing\nT=x\n"),
        seed([0, 11], "(?<time>\\S+) (\\w+)$", "", "2026-01-01T12:00:00Z on\n1767268800 off\n"),
        seed([1, 10], "$.a.b[0]", "$.t", "{\"a\":{\"b\":[1.5]},\"t\":1700000000}\n"),
        seed([2, 4], "b", "a", "a;b\n1700000000;7\n1700000001;\"8\"\n"),
        seed([2, 6], "2", "1", "\u{feff}a;b\n2026-01-01T12:00:00Z;-1;x\n"),
    ])
}

/// The largest number of metrics, then messages: seconds, topic and payload.
pub(super) fn sparkplug() -> Seeds {
    use prost::Message as _;
    use taktwerk_gateway::sparkplug::payload::{Metric, Payload, PropertySet, Template, Value};
    let payload = |seq: u64, metrics: Vec<Metric>| {
        Payload { timestamp: Some(1_700_000_000_000), metrics, seq: Some(seq) }.encode_to_vec()
    };
    let with_alias = |metric: Metric, alias: u64| Metric { alias: Some(alias), ..metric };
    let session = || Metric::new("bdSeq", 8, Value::Long(7));
    let level = || with_alias(Metric::new("Level", 10, Value::Double(1.5)), 1);
    let message = |seconds: u8, topic: u8, payload: Vec<u8>| {
        [&[seconds, topic, u8::try_from(payload.len()).expect("it is short")][..], &payload].concat()
    };
    let template = Template { metrics: vec![level()], is_definition: None };
    let node_birth = payload(
        0,
        vec![
            session(),
            level(),
            Metric::new("Text", 12, Value::Text("on".to_owned())),
            Metric::new("List", 22, Value::Bytes(vec![1, 0, 255, 255])),
            Metric::new("Pump", 19, Value::Template(template)),
        ],
    );
    let by_alias = || Metric {
        alias: Some(1),
        value: Some(Value::Double(-2.0)),
        properties: Some(PropertySet::quality(500)),
        ..Metric::default()
    };
    let all = [
        vec![100],
        message(0, 0, node_birth.clone()),
        message(1, 1, payload(1, vec![Metric::new("V", 3, Value::Int(u32::MAX))])),
        message(0, 2, payload(2, vec![by_alias()])),
        message(0, 3, payload(3, vec![Metric::new("V", 3, Value::Int(2))])),
        message(0, 4, payload(4, Vec::new())),
        message(2, 5, payload(0, vec![session()])),
    ];
    // A gap in the sequence, another one at once, and one after the pause.
    let gaps = [
        vec![2],
        message(0, 0, node_birth),
        message(0, 2, payload(9, vec![by_alias()])),
        message(1, 2, payload(1, Vec::new())),
        message(7, 2, payload(1, Vec::new())),
    ];
    numbered([all.concat(), gaps.concat()])
}

/// A framing with its settings, the piece size, and bytes of a device.
pub(super) fn line() -> Seeds {
    let seed = |head: &[u8], bytes: &[u8]| [head, bytes].concat();
    numbered([
        seed(&[0, 20, 2], b"ST,GS,+ 12.5kg\r\nUS\n\xff\n"),
        seed(&[1, 2, 3, 20, 2], b"\x02 12.5\x03noise\x02\x02 13\x03"),
        seed(&[1, b'"', b'"', 20, 2], b"\"a\"b\"\""),
        seed(&[2, 5, 2], b"12.5 13.0 13.5"),
        seed(&[3, 1, 0, 20, 2], b"\0\x0412.5\0\0\x01\0xxx"),
        seed(&[3, 3, 1, 20, 2], b"\x02\0\0\x0012\xff\xff\xff\xff12"),
    ])
}

/// A delimiter, whether rows have one value, the columns, and a file.
pub(super) fn replay() -> Seeds {
    let seed = |head: [u8; 2], columns: &[(u8, &str)], file: &str| {
        let columns = columns.iter().map(|(kind, name)| [&[*kind][..], &piece(name)].concat());
        [&head[..], &columns.collect::<Vec<_>>().concat(), file.as_bytes()].concat()
    };
    numbered([
        seed(
            [0, 0],
            &[(10, "a"), (0, "b"), (11, "a")],
            "t,a,b\n2019-07-03T12:00:00Z,1.5,true\n1562155201,,x\n",
        ),
        seed([1, 0], &[(12, "t"), (6, "b"), (4, "c")], "t;b;c\n2019-07-03;-1;\"7\"\n"),
        seed([0, 1], &[(10, "T"), (11, "S"), (0, "x")], "t,tag,value,text\n1,T,1.5,\n2,S,,on\n3,U,1,\n"),
    ])
}

/// A type, two paths, the largest number of values, and a response.
pub(super) fn http() -> Seeds {
    let seed = |kind: [u8; 2], paths: [&str; 2], json: &str| {
        [&kind[..], &paths.map(piece).concat(), &[20], json.as_bytes()].concat()
    };
    numbered([
        seed([10, 1], ["$.a.b[0]", "$.t"], r#"{"a":{"b":[1.5]},"t":1700000000}"#),
        seed(
            [5, 0],
            ["a[-1]['c.d']", "t"],
            r#"{"a":[0,{"c.d":[1,2]}],"t":"2026-01-02T03:04:05Z","":{"it's":null}}"#,
        ),
        seed([11, 1], ["$", ""], r#"{"say \"x\"":true,"'\"":1,"é":{"x y":"z"}}"#),
    ])
}

/// The bytes of a frame, then a DBC file.
pub(super) fn can() -> Seeds {
    let file = "VERSION \"\"\nBU_: A\nBO_ 496 M: 8 A\n SG_ T : 0|12@0- (0.01,250) [229.52|270.47] \"K\" A\n SG_ S M : 16|4@1+ (1,0) [0|0] \"\" A\n \
        SG_ A m1M : 24|32@1- (1,0) [0|0] \"\" A\n SG_ B m2 : 24|8@1+ (1,0) [0|0] \"\" A\n\
        BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 65535;\nBA_DEF_DEF_ \"GenMsgCycleTime\" 100;\n\
        VAL_ 496 B 1 \"on\" 0 \"off\" ;\nSIG_VALTYPE_ 496 A : 1;\nSG_MUL_VAL_ 496 B S 2-3, 5-7;\n";
    let seed = |frame: &[u8]| [&[frame.len() as u8], frame, file.as_bytes()].concat();
    numbered([seed(&[0xC0, 6, 0xE1, 0, 0, 0xC0, 0x3F, 0]), seed(&[0, 0, 2, 1]), seed(&[])])
}

/// An address, then points with the registers of a device.
pub(super) fn modbus() -> Seeds {
    let words: Vec<u8> = (0..40).collect();
    let point = |format: [u8; 2], count: &[u8], first: u16| {
        let first = first.to_le_bytes();
        [&[0][..], &format, count, &[1], &first, &[0, 1, 20], &words].concat()
    };
    let single = [&piece("holding:100.3")[..], &point([1, 2], &[1], 100)].concat();
    let several = [
        &piece("40101")[..],
        &point([1, 6], &[0, 3], 10),
        &point([1, 7], &[1], 30),
        &point([0, 9], &[1], 31),
        &point([1, 4], &[0, 2], 33),
    ]
    .concat();
    numbered([single, several])
}

/// A configuration, a table of tags, and an expression.
pub(super) fn configuration() -> Seeds {
    let configuration = r#"
[gateway]
namespace = "urn:x"
threads = 2
[[source]]
name = "plc"
type = "modbus"
address = "localhost:502"
interval = "500 ms"
[[source]]
name = "mq"
type = "mqtt"
url = "mqtt:x"
[[source]]
name = "sim"
type = "simulation"
[[source]]
name = "calc"
type = "calculation"
[[tag]]
source = "plc"
name = "T"
address = "holding:1"
format = "float32"
scale = 0.1
range = [0, 100.5]
[[tag]]
source = "calc"
name = "F"
expression = "{plc} * 1.8 + 32 if {a b} > 1 else 0"
[[destination]]
name = "archive"
type = "file"
folder = "values"
tags = ["plc**", "*x*"]
queue_mb_max = 10
age_max = "2 d"
"#;
    let table = "name,path,address,format,scale,units,range\nT,\"A;B\",holding:0,int16,0.1,°C,0..300\n# no\nS,,1,,,,\n";
    let nodes =
        r#"[{"EndpointUrl":"opc.tcp:x","OpcNodes":[{"Id":"ns=2;s=a","OpcPublishingInterval":1000}]}]"#;
    let kepware = "Tag Name,Address,Data Type,Respect Data Type,Client Access,Scan Rate,Scaling\n\
                   \"T\",\"400001\",Short,1,R/W,100,\n\"G.U\",\"R0010.3\",Boolean,1,RO,500,\n";
    let formula = "sin({a}) ^ 2 + sqrt(abs({b})) if {a} > 0 && {b} <= 1e3 else 5 / 0";
    numbered([configuration, table, nodes, kepware, formula].map(|text| text.as_bytes().to_vec()))
}
