//! The gateway's inputs from devices, brokers, programs, files of other products, and a damaged disk.

use crate::input::Input;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use taktwerk_gateway::adapter::calculation::Formula;
use taktwerk_gateway::adapter::can::bits::DATA_MAX;
use taktwerk_gateway::adapter::can::dbc::Network;
use taktwerk_gateway::adapter::modbus::address::{self, Format, Order, Point, Table};
use taktwerk_gateway::adapter::modbus::plan::{Bounds, Request, plan, split};
use taktwerk_gateway::adapter::modbus::registers;
use taktwerk_gateway::adapter::mqtt::payload::{Reader, typed};
use taktwerk_gateway::adapter::mqtt::topic::{Filter, fill};
use taktwerk_gateway::adapter::program::{frame, line};
use taktwerk_gateway::destination::Batch;
use taktwerk_gateway::destination::block::{self, Builder, Record};
use taktwerk_gateway::destination::pattern::Pattern;
use taktwerk_gateway::destination::template::{Template, json_text};
use taktwerk_gateway::extract::{Extractor, Format as TextFormat};
use taktwerk_gateway::fields::{Fields, Head};
use taktwerk_gateway::import::{self, Wishes};
use taktwerk_gateway::json_path::JsonPath;
use taktwerk_gateway::lines::Lines;
use taktwerk_gateway::tag::Tag;
use taktwerk_gateway::value::{Kind, TYPES, to_json};
use taktwerk_gateway::{GatewayConfig, table};
use taktwerk_types::{BuiltInType, DataValue, StatusCode};

/// Blocks of a damaged queue. Readable content must survive writing and reading.
pub fn queue(data: &[u8]) {
    let Ok(records) = block::decode(data, 1) else { return };
    let mut builder = Builder::default();
    // A damaged table may contain duplicate names, which the queue treats as one tag.
    let mut names: Vec<Arc<str>> = records.iter().map(|record| Arc::clone(&record.tag)).collect();
    names.sort();
    names.dedup();
    for record in &records {
        let id = names.binary_search(&record.tag).expect("it was just put there");
        let Record { tag, value, status, time, received, .. } = record;
        builder.push(id as u32, tag, value, *status, *time, *received);
    }
    let Some(written) = builder.take() else { return };
    assert_eq!(written.count as usize, records.len());
    let again = block::decode(&written.body, 1).expect("it was just written");
    assert!(again.iter().zip(&records).all(|(one, other)| one.tag == other.tag
        && one.number == other.number
        && one.value.same_as(&other.value)
        && (one.status, one.time, one.received) == (other.status, other.time, other.received)));
    let template =
        Template::parse(r#"{"t":"{tag}","p":"{path}","v":{value},"s":"{status}","k":"{key}","at":"{time}"}"#);
    let batch = Batch { queue: "q".to_owned(), records, is_last: true, is_parked: false, next: u64::MAX };
    for record in &batch.records {
        let text = template.fill(&batch, record, json_text);
        let json: Json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(json["t"], *record.tag);
    }
}

pub(super) fn kind(input: &mut Input<'_>) -> Kind {
    Kind { element: input.pick(&TYPES).1, is_array: input.one_in(3) }
}

/// Messages of a broker, with paths into them and topics.
pub fn mqtt(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = kind(&mut input);
    let text = |input: &mut Input<'_>| String::from_utf8_lossy(input.piece()).into_owned();
    let path = |input: &mut Input<'_>| JsonPath::parse(&text(input));
    let reader = Reader { value: path(&mut input), time: path(&mut input), expand: input.flag() };
    let (filter, topic, template) = (text(&mut input), text(&mut input), text(&mut input));
    if let Some(filter) = Filter::parse(&filter)
        && let Some(found) = filter.matches(&topic)
    {
        assert!(found.iter().all(|part| topic.contains(part)));
        let _ = fill(&template, &topic, &found);
    }
    let _ = Pattern::new(&template).matches(&topic);
    for part in reader.read(input.rest()) {
        if let Some(value) = kind.of_json(&part.json) {
            assert_type(kind, &value);
        }
        let (kind, value) = typed(&part.json);
        if let Some(value) = value {
            assert_type(kind, &value);
        }
    }
}

/// Checks that a value has the requested type and can be printed.
pub(super) fn assert_type(kind: Kind, value: &taktwerk_types::Variant) {
    assert_eq!((value.built_in_type(), value.as_array().is_some()), (Some(kind.element), kind.is_array));
    let _ = to_json(value).to_string();
}

/// Lines of a program, and its messages in CBOR.
pub fn program(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = kind(&mut input);
    let entries = match input.one_in(2) {
        true => frame::entries(input.rest()),
        false => line::read(input.rest()),
    };
    for entry in entries.into_iter().flatten().flatten() {
        let Some(reading) = entry.reading(kind) else { continue };
        if reading.status.is_bad() {
            assert!(reading.value.is_empty());
        } else {
            assert_type(kind, &reading.value);
        }
    }
}

/// Files of other programs: lines in pieces, and values in text, JSON and rows.
pub fn text(data: &[u8]) {
    let mut input = Input::new(data);
    let format = input.pick(&[TextFormat::Text, TextFormat::Json, TextFormat::Csv(b';')]);
    let kind = input.pick(&TYPES);
    let text = |input: &mut Input<'_>| String::from_utf8_lossy(input.piece()).into_owned();
    let key = match format {
        TextFormat::Text => "pattern",
        TextFormat::Json => "json",
        TextFormat::Csv(_) => "column",
    };
    let cells = [("source", "s".to_owned()), ("name", "T".to_owned()), ("type", kind.0.to_owned())];
    let own = [(key, text(&mut input)), ("time", text(&mut input))];
    let cells = cells.into_iter().chain(own).map(|(key, cell)| (key.to_owned(), cell));
    let head = Arc::new(Head { line: 1, columns: BTreeSet::new() });
    let mut fields = Fields::of_cells(Path::new("t.csv"), (&head, 2), cells);
    let tag = Tag::take(&mut fields).expect("these settings are right");
    let mut extractor = Extractor::new(format);
    extractor.set_columns(vec!["a".to_owned(), "b".to_owned()]);
    let Ok(kind) = extractor.add_tag(&tag, &mut fields) else { return };
    let most = usize::from(input.byte());
    let cut = usize::from(input.byte()) + 1;
    let rest = input.rest();
    let split = |size: usize| {
        let (mut lines, mut found) = (Lines::new(most), Vec::new());
        let dropped: u64 = rest.chunks(size).map(|piece| lines.push(piece, &mut found)).sum();
        (found, dropped)
    };
    let whole = split(rest.len().max(1));
    assert_eq!(split(cut), whole, "lines are the same however they are cut");
    let texts = whole.0.iter().filter_map(|line| extractor.line(line)).flatten().map(|(_, reading)| reading);
    let file = extractor.whole(&String::from_utf8_lossy(rest)).unwrap_or_default();
    for reading in texts.chain(file) {
        if reading.status.is_bad() {
            assert!(reading.value.is_empty());
        } else {
            assert_type(kind, &reading.value);
        }
    }
}

/// A DBC file, and a frame of each of its messages. A frame that can be encoded decodes to the same values.
pub fn can(data: &[u8]) {
    let mut input = Input::new(data);
    let frame = input.piece();
    let frame = &frame[..frame.len().min(DATA_MAX)];
    let Ok(network) = Network::parse(input.rest()) else { return };
    for message in &network.messages {
        for (position, signal) in message.signals.iter().enumerate() {
            let Ok(Some(value)) = message.value(position, frame) else { continue };
            assert!(matches!(message.label(position, frame), Ok(Some(_))));
            let mut again = frame.to_vec();
            // Fractions are rounded, and signals may share bits with their switches.
            let is_exact = !matches!(signal.kind(), BuiltInType::Float | BuiltInType::Double);
            if message.set(position, &value, &mut again).is_ok() && is_exact {
                assert_eq!(again, frame, "{value:?}");
            }
        }
    }
}

const NUMBERS: [BuiltInType; 8] = [
    BuiltInType::Int16,
    BuiltInType::UInt16,
    BuiltInType::Int32,
    BuiltInType::UInt32,
    BuiltInType::Int64,
    BuiltInType::UInt64,
    BuiltInType::Float,
    BuiltInType::Double,
];

fn point(input: &mut Input<'_>) -> Point {
    let table = input.pick(&[Table::Holding, Table::Input, Table::Coil, Table::Discrete]);
    let format = match table.is_bits() {
        true => Format::Bit,
        false if input.one_in(6) => Format::Text(u16::from(input.byte()) % 40 + 1),
        false => Format::Number(input.pick(&NUMBERS)),
    };
    let most = address::REGISTERS_MAX / format.width().max(1);
    let order = |input: &mut Input<'_>| input.pick(&[Order::Big, Order::Little]);
    let count = input.one_in(3).then(|| u16::from(input.byte()) % most.max(1) + 1);
    Point {
        unit: input.byte() % 3,
        table,
        first: input.u16() % 60_000,
        format,
        bit: 0,
        count,
        word_order: order(input),
        byte_order: order(input),
    }
}

/// Registers of a device, and requests for points at any address.
pub fn modbus(data: &[u8]) {
    let mut input = Input::new(data);
    if let Some((table, _, bit)) = address::parse(&String::from_utf8_lossy(input.piece())) {
        assert!(bit.is_none_or(|bit| bit < 16 && !table.is_bits()));
    }
    let mut points = Vec::new();
    while !input.is_empty() && points.len() < 40 {
        points.push(point(&mut input));
        let Some(point) = points.last() else { break };
        let words: Vec<u16> = (0..input.byte()).map(|_| input.u16()).collect();
        let Some(value) = registers::decode(&words, point) else { continue };
        assert!(words.len() >= usize::from(point.width()));
        // A value read from a device can be written back without change.
        if point.table.is_writable()
            && let Some(again) = registers::encode(&value, point)
        {
            let same = registers::decode(&again, point);
            assert!(same.is_some_and(|same| same.same_as(&value)), "{value:?} {point:?} {again:?}");
        }
    }
    let bounds = Bounds { registers: address::REGISTERS_MAX, gap: 16 };
    let mut requests = plan(&points, bounds);
    for _ in 0..7 {
        let mut seen: Vec<usize> = requests.iter().flat_map(|request| request.points.clone()).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..points.len()), "each point is in one request");
        let smaller = |request: Request| split(&request, &points, bounds).unwrap_or_else(|| vec![request]);
        requests = requests.into_iter().flat_map(smaller).collect();
    }
}

/// Configurations, tables of tags, files of other products, and expressions.
pub fn configuration(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let path = Path::new("/nowhere/gateway.toml");
    // The files it names do not exist; a leading slash would leave the folder.
    if !text.contains(['/', '\\']) {
        match GatewayConfig::parse(path, text) {
            Ok(config) => assert!(config.is_none_or(|config| config.tag_count() < text.len())),
            Err(mistake) => assert!(mistake.to_string().starts_with("/nowhere/gateway.toml")),
        }
    }
    if let Ok(tags) = table::parse(path, "plc", text) {
        assert!(tags.len() <= text.len());
    }
    if let Ok(imported) = import::read(path, text, &Wishes::default()) {
        let text = imported.text();
        taktwerk_gateway::fields::Sections::parse(path, &text)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    if let Ok(formula) = Formula::parse(text) {
        let reading = formula.evaluate(|_| Some(DataValue::new(2.5)));
        assert!(reading.status.is_bad() || !reading.value.is_empty());
        assert!(formula.evaluate(|_| None).status != StatusCode::GOOD || !text.contains('{'));
    }
    let _ = Kind::scalar(BuiltInType::DateTime).coerce(text.into());
}
