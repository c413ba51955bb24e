//! Texts with placeholders: topics, payloads, names of nodes.

use super::Batch;
use super::block::Record;
use crate::value::to_json;
use core::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Tag,
    Path,
    Name,
    Value,
    Status,
    Time,
    TimeMs,
    Received,
    Key,
}

const FIELDS: [(&str, Field); 9] = [
    ("{tag}", Field::Tag),
    ("{path}", Field::Path),
    ("{name}", Field::Name),
    ("{value}", Field::Value),
    ("{status}", Field::Status),
    ("{time}", Field::Time),
    ("{time_ms}", Field::TimeMs),
    ("{received}", Field::Received),
    ("{key}", Field::Key),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

/// A text with placeholders. Other texts in braces stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

impl Template {
    /// Parses a text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let field = FIELDS.iter().find(|(name, _)| rest.starts_with(name));
            let taken = match field {
                Some((name, field)) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(core::mem::take(&mut plain)));
                    }
                    parts.push(Part::Field(*field));
                    name.len()
                }
                None => {
                    plain.push(first);
                    first.len_utf8()
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Self(parts)
    }

    /// The text for a record. `quote` is applied to the text of each placeholder except values, which are JSON.
    #[must_use]
    pub fn fill(&self, batch: &Batch, record: &Record, quote: fn(&str) -> String) -> String {
        let (path, name) = record.tag.rsplit_once('/').unwrap_or(("", &record.tag));
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Field(Field::Tag) => text.push_str(&quote(&record.tag)),
                Part::Field(Field::Path) => text.push_str(&quote(path)),
                Part::Field(Field::Name) => text.push_str(&quote(name)),
                Part::Field(Field::Value) => text.push_str(&to_json(&record.value).to_string()),
                Part::Field(Field::Status) => text.push_str(&status(record)),
                Part::Field(Field::Time) => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{}", record.time);
                }
                Part::Field(Field::Received) => {
                    let _ = write!(text, "{}", record.received);
                }
                Part::Field(Field::TimeMs) => {
                    let _ = write!(text, "{}", record.time.unix_nanos().div_euclid(1_000_000));
                }
                Part::Field(Field::Key) => text.push_str(&batch.key(record)),
            }
        }
        text
    }
}

/// The name of a record's status, or its number.
#[must_use]
pub fn status(record: &Record) -> String {
    match record.status.name() {
        Some(name) => name.to_owned(),
        None => format!("0x{:08X}", record.status.0),
    }
}

/// A text escaped for a JSON string.
#[must_use]
pub fn json_text(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{StatusCode, UtcTime};

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let time = UtcTime::parse("2026-01-02T03:04:05.5Z").unwrap();
        let record = Record {
            number: 7,
            tag: "Line \"1\"/T".into(),
            value: "a\"b".into(),
            status: StatusCode::GOOD,
            time,
            received: time,
        };
        let batch =
            Batch { queue: "q".to_owned(), records: Vec::new(), is_last: true, next: 1, is_parked: false };
        let fill = |text: &str| Template::parse(text).fill(&batch, &record, json_text);
        assert_eq!(fill(r#"{"v":{value},"t":"{tag}"}"#), r#"{"v":"a\"b","t":"Line \"1\"/T"}"#);
        assert_eq!(fill("{path}|{name}|{status}|{key}|{x}"), r#"Line \"1\"|T|Good|q-7|{x}"#);
        assert_eq!(fill("{time} {time_ms} {received}"), format!("{time} 1767323045500 {time}"));
    }
}
