use super::*;
use crate::adapter::sparkplug::host::{Host, Told as Heard};
use std::time::Instant;

const PAYLOAD_MAX: usize = 100_000;

fn at(seconds: u64) -> UtcTime {
    UtcTime::from_unix(Duration::from_secs(1_700_000_000 + seconds))
}

fn edge() -> Edge {
    Edge::new("G".to_owned(), "E".to_owned(), Names::new(1), Duration::from_secs(5), PAYLOAD_MAX)
}

fn batch(records: &[(&str, Variant, u64)], is_last: bool) -> Batch {
    let record = |(number, (tag, value, seconds)): (usize, &(&str, Variant, u64))| Record {
        number: number as u64,
        tag: (*tag).into(),
        value: value.clone(),
        status: if value.is_empty() { StatusCode::BAD_NO_COMMUNICATION } else { StatusCode::GOOD },
        time: at(*seconds),
        received: at(*seconds),
    };
    Batch {
        queue: "q".to_owned(),
        records: records.iter().enumerate().map(record).collect(),
        is_last,
        next: 100,
        is_parked: false,
    }
}

/// Messages in short form: topic, sequence number, and metrics; `~` marks historical ones.
fn short(messages: &[Message]) -> Vec<String> {
    let metric = |metric: &Metric| {
        let name = match (&metric.name, metric.alias) {
            (Some(name), None) => name.clone(),
            (Some(name), Some(alias)) => format!("{name}#{alias}"),
            (None, alias) => format!("#{}", alias.unwrap_or(0)),
        };
        let value = match &metric.value {
            Some(Value::Double(number)) => number.to_string(),
            Some(Value::Int(number)) => number.to_string(),
            Some(Value::Long(number)) => number.to_string(),
            Some(Value::Text(text)) => text.clone(),
            Some(other) => format!("{other:?}"),
            None => "null".to_owned(),
        };
        let mark = if metric.is_historical == Some(true) { "~" } else { "" };
        format!("{name}={mark}{value}")
    };
    let one = |message: &Message| {
        let payload = Payload::decode(message.payload.as_slice()).unwrap();
        let metrics: Vec<String> = payload.metrics.iter().map(metric).collect();
        let seq = payload.seq.map_or_else(|| "-".to_owned(), |seq| seq.to_string());
        format!("{} {seq} {}", message.topic.trim_start_matches("spBv1.0/G/"), metrics.join(" "))
    };
    messages.iter().map(one).collect()
}

#[test]
fn births_come_before_data_and_again_for_new_metrics_and_types() {
    let mut edge = edge();
    assert!(!edge.has_tags());
    let death = edge.connect(at(0));
    assert_eq!(short(&[death]), ["NDEATH/E - bdSeq=0"]);
    let birth = "NBIRTH/E 0 bdSeq=0 Node Control/Rebirth=Boolean(false)";
    let told = edge.tell(&batch(&[("L/T", 1.5.into(), 0), ("Up", 7u32.into(), 0)], true), at(0));
    assert_eq!(
        short(&told.messages),
        [&*format!("{birth} Up#2=7"), "DBIRTH/E/L 1 T#1=1.5", "NDATA/E 2 #2=7", "DDATA/E/L 3 #1=1.5"]
    );
    let told = edge.tell(&batch(&[("L/T", 2.5.into(), 1), ("L/S", "x".into(), 1)], true), at(1));
    assert_eq!(short(&told.messages), ["DBIRTH/E/L 4 S#3=x T#1=1.5", "DDATA/E/L 5 #1=2.5 #3=x"]);
    // Another type requires a birth; an empty value is null.
    let told = edge.tell(&batch(&[("L/S", 3u8.into(), 2), ("L/T", Variant::Empty, 2)], true), at(2));
    assert_eq!(short(&told.messages), ["DBIRTH/E/L 6 S#3=3 T#1=2.5", "DDATA/E/L 7 #3=3 #1=null"]);
    // Unsupported types and conflicting names are rejected.
    let told = edge.tell(&batch(&[("L/F", vec![true].into(), 3), ("L/T", 4.5.into(), 3)], true), at(3));
    assert_eq!((told.refused, short(&told.messages)), (1, vec!["DDATA/E/L 8 #1=4.5".to_owned()]));
    assert_eq!(told.reason.unwrap(), "L/F: Sparkplug has no type for this value");
    // A new metric of the node itself requires births of all devices.
    let told = edge.tell(&batch(&[("New", 1u32.into(), 4)], true), at(4));
    assert_eq!(told.messages.len(), 3);
    assert!(short(&told.messages)[0].starts_with("NBIRTH/E 0 bdSeq=0"));
    // The next connection has another number.
    edge.disconnected();
    assert_eq!(short(&[edge.connect(at(5))]), ["NDEATH/E - bdSeq=1"]);
    assert!(short(&edge.birth(at(5)))[0].starts_with("NBIRTH/E 0 bdSeq=1"));
}

#[test]
fn a_backlog_is_historical_and_ends_with_the_current_values() {
    let mut edge = edge();
    edge.connect(at(0));
    edge.tell(&batch(&[("L/A", 0.0.into(), 0), ("L/B", 0.0.into(), 0)], true), at(0));
    edge.disconnected();
    edge.connect(at(100));
    let told = edge.tell(
        &batch(&[("L/A", 1.0.into(), 1), ("L/A", 2.0.into(), 2), ("L/B", 3.0.into(), 3)], false),
        at(100),
    );
    assert_eq!(
        short(&told.messages)[1..],
        ["DBIRTH/E/L 1 A#1=0 B#2=0", "DDATA/E/L 2 #1=~1 #1=~2 #2=~3"],
        "the birth tells what was current"
    );
    let told = edge.tell(&batch(&[("L/B", 4.0.into(), 4), ("L/B", 5.0.into(), 5)], true), at(100));
    assert_eq!(short(&told.messages), ["DDATA/E/L 3 #2=~4 #2=5 #1=2"], "the newest of A is told once more");
    let told = edge.tell(&batch(&[("L/B", 6.0.into(), 99), ("L/B", 7.0.into(), 100)], false), at(100));
    assert_eq!(short(&told.messages), ["DDATA/E/L 4 #2=6 #2=7"], "values that just came are current");
}

/// Hosts reconstruct what was sent, and never need to request a birth.
#[test]
fn our_host_follows_through_sequence_number_wraps() {
    let mut edge = edge();
    let mut host = Host::new(1000);
    edge.connect(at(0));
    let mut expected = Vec::new();
    let mut heard = Vec::new();
    for round in 0..300u64 {
        let value = round as f64;
        let tag = if round % 2 == 0 { "L/A" } else { "M/B" };
        expected.push((tag.replace('/', ":"), value));
        let told = edge.tell(&batch(&[(tag, value.into(), round)], true), at(round));
        for message in told.messages {
            for told in host.receive(&message.topic, &message.payload, Instant::now()) {
                match told {
                    Heard::Value { id, value, status, .. } => {
                        assert_eq!(status, StatusCode::GOOD);
                        let device = id.device.clone().unwrap();
                        heard.push((format!("{device}:{}", id.name), value.as_f64().unwrap()));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    // Births contain the first values, and data messages repeat them.
    heard.dedup();
    assert_eq!(heard, expected);
}

#[test]
fn large_batches_are_split_into_messages() {
    let mut edge = edge();
    edge.connect(at(0));
    let records: Vec<(&str, Variant, u64)> =
        (0..1200).map(|value| ("L/A", f64::from(value).into(), 0)).collect();
    let told = edge.tell(&batch(&records, true), at(0));
    let count = |message: &Message| Payload::decode(message.payload.as_slice()).unwrap().metrics.len();
    assert_eq!(told.messages.iter().map(count).collect::<Vec<_>>(), [2, 1, 500, 500, 200]);
}

#[test]
fn too_large_values_are_rejected_and_others_sent_within_the_limit() {
    let mut edge = edge();
    edge.connect(at(0));
    let text = |len: usize| Variant::from("x".repeat(len).as_str());
    let told = edge.tell(&batch(&[("L/A", text(PAYLOAD_MAX), 0), ("L/A", text(3), 0)], true), at(0));
    assert_eq!(told.refused, 1);
    let reason = told.reason.unwrap();
    assert!(
        reason.starts_with("L/A: a value of 100") && reason.contains("quarter of payload_max"),
        "{reason}"
    );
    assert_eq!(short(&told.messages).last().unwrap(), "DDATA/E/L 2 #1=xxx");
    // A value just within the limit is sent, also in births; a few large ones fill a message.
    let largest = PAYLOAD_MAX / 4 - OVERHEAD - "L/A".len() - 8;
    let records: Vec<(&str, Variant, u64)> = (0..7).map(|_| ("L/A", text(largest), 0)).collect();
    let told = edge.tell(&batch(&records, true), at(0));
    let metrics = told.messages.iter().map(|message| {
        assert!(message.payload.len() <= PAYLOAD_MAX / 2 + OVERHEAD, "{}", message.payload.len());
        Payload::decode(message.payload.as_slice()).unwrap().metrics.len()
    });
    assert_eq!((metrics.collect::<Vec<_>>(), told.refused), (vec![2, 2, 2, 1], 0));
    assert!(edge.birth(at(0)).iter().all(|message| message.payload.len() <= PAYLOAD_MAX));
    let told = edge.tell(&batch(&[("L/A", text(largest + 9), 0)], true), at(0));
    assert_eq!((told.refused, told.messages), (1, Vec::new()));
}

#[test]
fn commands_name_metrics_by_name_or_alias_of_their_device() {
    let mut edge = edge();
    edge.tell(
        &batch(&[("L/Oven/T", 1.5.into(), 0), ("Mode", 3u16.into(), 0), ("L/Off", Variant::Empty, 0)], true),
        at(0),
    );
    let command = |device: Option<&str>, metric: Metric| {
        let payload = Payload { timestamp: Some(1), metrics: vec![metric], seq: None };
        let mut found = edge.command(device, &payload);
        assert!(found.len() < 2);
        found.pop().map(|one| one.map(|(tag, value)| (tag.to_string(), value)))
    };
    let named = |name: &str, datatype, value| Metric::new(name, datatype, value);
    let by_alias = |alias, value| Metric { alias: Some(alias), value: Some(value), ..Metric::default() };
    let is = |tag: &str, value: Variant| Some(Ok((tag.to_owned(), value)));
    assert_eq!(command(Some("L"), named("Oven/T", 10, Value::Double(2.5))), is("L/Oven/T", 2.5.into()));
    assert_eq!(command(Some("L"), by_alias(1, Value::Double(3.5))), is("L/Oven/T", 3.5.into()));
    assert_eq!(command(None, by_alias(2, Value::Int(7))), is("Mode", 7u16.into()));
    // The type of the command counts: the tag converts it.
    assert_eq!(command(None, named("Mode", 10, Value::Double(7.0))), is("Mode", 7.0.into()));
    for (device, metric) in [
        (None, named("Oven/T", 10, Value::Double(2.5))),
        (None, by_alias(1, Value::Double(2.5))),
        (Some("K"), named("Oven/T", 10, Value::Double(2.5))),
        (Some("L"), named("Mode", 6, Value::Int(1))),
        (Some("L"), by_alias(9, Value::Double(2.5))),
        (Some("L"), Metric { value: Some(Value::Double(1.0)), ..Metric::default() }),
        (Some("L"), named("Oven/T", 10, Value::Int(1))),
        (None, by_alias(2, Value::Int(70_000))),
        (Some("L"), Metric { is_null: Some(true), ..by_alias(1, Value::Double(2.5)) }),
        (Some("L"), Metric { alias: Some(1), ..Metric::default() }),
    ] {
        assert!(command(device, metric.clone()).unwrap().is_err(), "{device:?} {metric:?}");
    }
    assert_eq!(command(None, named(REBIRTH, BOOLEAN, Value::Boolean(true))), None);
}
