//! Reads messages: a number, a text, or a part of JSON.

use crate::json_path::JsonPath;
use crate::json_time::time_of;
use crate::value::{Kind, kind_of_json};
use serde_json::Value as Json;
use taktwerk_types::{UtcTime, Variant};

/// Most values of one message that become variables.
const LEAVES_MAX: usize = 1000;

/// How the messages of a tag are read.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// The path of the value; `None` for the whole message.
    pub value: Option<JsonPath>,
    /// The path of its time.
    pub time: Option<JsonPath>,
    /// Whether each value of an object becomes a separate variable.
    pub expand: bool,
}

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its path in an expanded object; empty otherwise.
    pub path: Vec<String>,
    /// The value.
    pub json: Json,
    /// The source timestamp.
    pub time: Option<UtcTime>,
}

impl Reader {
    /// The values of a message; none if the wanted value is missing.
    #[must_use]
    pub fn read(&self, payload: &[u8]) -> Vec<Part> {
        let json = match serde_json::from_slice::<Json>(payload) {
            Ok(json) => json,
            // A message that is not JSON is a text.
            Err(_) if self.value.is_none() => Json::String(String::from_utf8_lossy(payload).into_owned()),
            Err(_) => return Vec::new(),
        };
        let time = self.time.as_ref().and_then(|path| path.find(&json)).and_then(time_of);
        let value = match &self.value {
            None => Some(&json),
            Some(path) => path.find(&json),
        };
        let Some(value) = value.filter(|value| !value.is_null()) else { return Vec::new() };
        let mut parts = Vec::new();
        if self.expand && value.is_object() {
            expand(value, &mut Vec::new(), time, &mut parts);
        } else {
            parts.push(Part { path: Vec::new(), json: value.clone(), time });
        }
        parts
    }
}

fn expand(json: &Json, path: &mut Vec<String>, time: Option<UtcTime>, parts: &mut Vec<Part>) {
    match json {
        // serde_json limits the depth.
        Json::Object(entries) => {
            for (name, value) in entries {
                path.push(name.clone());
                expand(value, path, time, parts);
                path.pop();
            }
        }
        Json::Null => {}
        value if parts.len() < LEAVES_MAX => {
            parts.push(Part { path: path.clone(), json: value.clone(), time });
        }
        _ => {}
    }
}

/// The type and value of a part, for a variable of unknown type.
#[must_use]
pub fn typed(json: &Json) -> (Kind, Option<Variant>) {
    let kind = kind_of_json(json);
    (kind, kind.of_json(json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reader(value: Option<&str>, expand: bool) -> Reader {
        Reader {
            value: value.map(|path| JsonPath::parse(path).unwrap()),
            time: JsonPath::parse("ts"),
            expand,
        }
    }

    #[test]
    fn messages_are_numbers_texts_or_json() {
        let read = |reader: &Reader, payload: &[u8]| {
            reader.read(payload).into_iter().map(|it| it.json).collect::<Vec<_>>()
        };
        assert_eq!(read(&reader(None, false), b"21.5"), [json!(21.5)]);
        assert_eq!(read(&reader(None, false), b"ON"), [json!("ON")]);
        assert_eq!(read(&reader(None, false), &[0xFF]), [json!("\u{fffd}")]);
        assert_eq!(read(&reader(Some("t.c"), false), br#"{"t":{"c":7}}"#), [json!(7)]);
        assert_eq!(read(&reader(Some("t.c"), false), b"7"), [] as [Json; 0]);
        assert_eq!(read(&reader(Some("t.c"), false), b"{\"t\""), [] as [Json; 0]);
        assert_eq!(read(&reader(None, false), b"null"), [] as [Json; 0]);
        let parts = reader(None, true).read(br#"{"a":1,"b":{"c":[1,2],"d":null},"ts":1700000000}"#);
        let shown: Vec<_> = parts.iter().map(|part| (part.path.join("/"), part.json.clone())).collect();
        assert_eq!(
            shown,
            [
                ("a".to_owned(), json!(1)),
                ("b/c".to_owned(), json!([1, 2])),
                ("ts".to_owned(), json!(1_700_000_000))
            ]
        );
        assert_eq!(parts[0].time, UtcTime::parse("2023-11-14T22:13:20Z"));
    }

    #[test]
    fn a_deep_or_wide_message_is_bounded() {
        let deep = [b"{\"a\":".repeat(10_000), b"1".to_vec(), b"}".repeat(10_000)].concat();
        // Deeper than the parser allows: treated as a text.
        assert!(matches!(&reader(None, true).read(&deep)[..], [Part { json: Json::String(_), .. }]));
        let wide: Vec<String> = (0..5000).map(|at| format!("\"k{at}\":{at}")).collect();
        assert_eq!(reader(None, true).read(format!("{{{}}}", wide.join(",")).as_bytes()).len(), LEAVES_MAX);
    }
}
