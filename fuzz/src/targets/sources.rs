//! What the gateway's sources receive: Sparkplug B, bytes of serial devices, recordings, and responses over HTTP.

use super::gateway::{assert_type, kind};
use crate::input::Input;
use core::time::Duration;
use prost::Message;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::io::Cursor;
use std::time::Instant;
use taktwerk_gateway::adapter::http::{HttpTag, offers_in};
use taktwerk_gateway::adapter::line::frame::Framer;
use taktwerk_gateway::adapter::replay::layout::Tags;
use taktwerk_gateway::adapter::replay::rows::Rows;
use taktwerk_gateway::adapter::sparkplug::host::{Host, Told};
use taktwerk_gateway::feed::Reading;
use taktwerk_gateway::json_path::JsonPath;
use taktwerk_gateway::lines::Lines;
use taktwerk_gateway::sparkplug::datatype;
use taktwerk_gateway::sparkplug::elements::are_few;
use taktwerk_gateway::sparkplug::payload::Payload;
use taktwerk_gateway::value::{Kind, TYPES};

/// Checks that a reading has a value of the type, or a reason why there is none.
fn assert_reading(kind: Kind, reading: &Reading) {
    match reading.status.is_bad() {
        true => assert!(reading.value.is_empty()),
        false => assert_type(kind, &reading.value),
    }
}

const TOPICS: [&str; 8] = [
    "spBv1.0/G/NBIRTH/N",
    "spBv1.0/G/DBIRTH/N/D",
    "spBv1.0/G/NDATA/N",
    "spBv1.0/G/DDATA/N/D",
    "spBv1.0/G/DDEATH/N/D",
    "spBv1.0/G/NDEATH/N",
    "spBv1.0/G/NDATA/M",
    "spBv1.0/G/NCMD/N",
];

/// Messages of edge nodes. A rebirth is requested every five seconds at most.
pub fn sparkplug(data: &[u8]) {
    let mut input = Input::new(data);
    let mut host = Host::new(usize::from(input.byte()));
    let mut now = Instant::now();
    let mut asked: HashMap<String, Instant> = HashMap::new();
    while !input.is_empty() {
        now += Duration::from_secs(u64::from(input.byte() % 8));
        let topic = input.pick(&TOPICS);
        let payload = input.piece();
        if are_few(payload)
            && let Ok(decoded) = Payload::decode(payload)
        {
            let written = decoded.encode_to_vec();
            let again = Payload::decode(written.as_slice()).expect("it was just written");
            assert_eq!(again.encode_to_vec(), written);
        }
        for told in host.receive(topic, payload, now) {
            match told {
                Told::Value { id, kind, datatype, value, status, .. } => {
                    assert_eq!((id.group.as_str(), datatype::kind(datatype)), ("G", Some(kind)));
                    assert_reading(kind, &Reading { value, status, time: None });
                }
                Told::Rebirth { node, .. } => {
                    let before = asked.insert(node, now);
                    let pause = before.map(|before| now.duration_since(before));
                    assert!(pause.is_none_or(|pause| pause >= Duration::from_secs(5)), "{pause:?}");
                }
                Told::Dropped(_) | Told::Invalid => {}
            }
        }
    }
}

/// Bytes of a device, in pieces. Frames are the same however they are cut.
pub fn line(data: &[u8]) {
    let mut input = Input::new(data);
    let framing = input.below(4);
    let most = |input: &mut Input<'_>| usize::from(input.byte());
    let framer = match framing {
        0 => Framer::Lines(Lines::new(most(&mut input))),
        1 => {
            let (start, end) = (input.byte(), input.byte());
            Framer::Between { start, end, begun: None, most: most(&mut input) }
        }
        2 => Framer::Fixed { begun: Vec::new(), size: most(&mut input).max(1) },
        _ => {
            let (size, is_little_endian) = (input.below(4) + 1, input.flag());
            Framer::Length { size, is_little_endian, begun: Vec::new(), most: most(&mut input), skip: 0 }
        }
    };
    let cut = usize::from(input.byte()) + 1;
    let rest = input.rest();
    let split = |size: usize| {
        let (mut framer, mut found) = (framer.clone(), Vec::new());
        let dropped: u64 = rest.chunks(size).map(|piece| framer.push(piece, &mut found)).sum();
        (found, dropped)
    };
    let whole = split(rest.len().max(1));
    assert!(whole.0.len() as u64 + whole.1 <= rest.len() as u64);
    assert_eq!(split(cut), whole, "frames are the same however they are cut");
    assert_eq!(split(1), whole, "frames are the same byte by byte");
}

/// A recording in CSV.
pub fn replay(data: &[u8]) {
    let mut input = Input::new(data);
    let delimiter = input.pick(b",;\t");
    let is_narrow = input.flag();
    let mut tags = Tags::default();
    let mut kinds = Vec::new();
    let text = |input: &mut Input<'_>| String::from_utf8_lossy(input.piece()).into_owned();
    for _ in 0..3 {
        let kind = Kind::scalar(input.pick(&TYPES).1);
        tags.add(text(&mut input), kind);
        kinds.push(kind);
    }
    if is_narrow {
        tags.narrow = Some(("tag".to_owned(), "value".to_owned()));
    }
    let file = Cursor::new(input.rest().to_vec());
    let Ok((mut rows, headers)) = Rows::csv(file, delimiter) else { return };
    tags.time = headers.first().cloned();
    let Ok(layout) = tags.layout(&headers) else { return };
    let mut row = Vec::new();
    let mut count = 0;
    while let Ok(true) = rows.next(&mut row) {
        count += 1;
        assert!(count <= data.len(), "each row takes a byte");
        let _ = layout.time(&row);
        let readings = layout.readings(&row);
        assert!(readings.len() <= kinds.len());
        for (position, reading) in readings {
            assert_reading(kinds[position], &reading);
        }
    }
}

/// A response over HTTP. Every value that it offers is found where the offer says.
pub fn http(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = kind(&mut input);
    let path = |input: &mut Input<'_>| JsonPath::parse(&String::from_utf8_lossy(input.piece()));
    let (value, time) = (path(&mut input), path(&mut input));
    let most = usize::from(input.byte());
    let Ok(json) = serde_json::from_slice::<Json>(input.rest()) else { return };
    if let Some(value) = value {
        assert_reading(kind, &HttpTag { value, time, kind }.reading(&json));
    }
    let offers = offers_in(&json, most);
    assert!(offers.len() <= most);
    for offer in offers {
        let path = JsonPath::parse(&offer.address).unwrap_or_else(|| panic!("{} is no path", offer.address));
        let found = path.find(&json).unwrap_or_else(|| panic!("there is nothing at {}", offer.address));
        assert_eq!(found.to_string(), offer.value);
    }
}
