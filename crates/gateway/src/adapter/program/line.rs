//! A line written by a program: a reading, or a list of readings.

use crate::feed::Reading;
use crate::json_time::time_of;
use crate::value::Kind;
use serde_json::Value as Json;
use taktwerk_types::{BuiltInType, ByteString, StatusCode, UtcTime};

/// How a program identifies a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By the number in the start message.
    Id(usize),
    /// By its name.
    Name(String),
}

/// A reading from a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The tag.
    pub tag: Named,
    /// The value, if there is one.
    pub value: Option<Json>,
    /// The value as bytes, which JSON does not have.
    pub bytes: Option<Vec<u8>>,
    /// Its status.
    pub status: StatusCode,
    /// The source timestamp.
    pub time: Option<UtcTime>,
}

const STATUSES: [(&str, StatusCode); 6] = [
    ("good", StatusCode::GOOD),
    ("uncertain", StatusCode::UNCERTAIN),
    ("bad", StatusCode::BAD),
    ("no_communication", StatusCode::BAD_NO_COMMUNICATION),
    ("sensor_failure", StatusCode::BAD_SENSOR_FAILURE),
    ("device_failure", StatusCode::BAD_DEVICE_FAILURE),
];

/// Most entries of a message. More would have to be shorter than any reading.
pub(super) const ENTRIES_MAX: usize = 1 << 16;

/// Parses a line into entries; an invalid entry is `None`. `None` if the line is not JSON, or has too many entries: each needs a
/// hundred times the memory of its two bytes.
#[must_use]
pub fn read(line: &[u8]) -> Option<Vec<Option<Entry>>> {
    let entries = match serde_json::from_slice(line).ok()? {
        Json::Array(entries) => entries,
        other => vec![other],
    };
    (entries.len() <= ENTRIES_MAX).then(|| entries.into_iter().map(entry).collect())
}

pub(super) fn entry(mut json: Json) -> Option<Entry> {
    let tag = match (json.get("id"), json.get("name")) {
        (Some(id), _) => Named::Id(usize::try_from(id.as_u64()?).ok()?),
        (None, Some(name)) => Named::Name(name.as_str()?.to_owned()),
        (None, None) => return None,
    };
    let status = match json.get("status") {
        None => StatusCode::GOOD,
        Some(Json::String(status)) => STATUSES.iter().find(|(name, _)| name == status)?.1,
        Some(number) => StatusCode(u32::try_from(number.as_u64()?).ok()?),
    };
    let time = json.get("time").and_then(time_of);
    Some(Entry { tag, status, time, value: json.get_mut("value").map(Json::take), bytes: None })
}

impl Entry {
    /// The reading for a tag of type `kind`; `None` if the value is missing or invalid.
    #[must_use]
    pub fn reading(&self, kind: Kind) -> Option<Reading> {
        let reading = if self.status.is_bad() {
            Reading::bad(self.status)
        } else if let (Some(bytes), BuiltInType::ByteString, false) =
            (&self.bytes, kind.element, kind.is_array)
        {
            let value = ByteString::from(bytes.clone()).into();
            Reading { value, status: self.status, time: None }
        } else {
            match kind.of_json(self.value.as_ref()?) {
                Some(value) => Reading { value, status: self.status, time: None },
                None => Reading::bad(StatusCode::BAD_TYPE_MISMATCH),
            }
        };
        Some(reading.at(self.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_readings_or_ignored() {
        let double = Kind::scalar(BuiltInType::Double);
        let one = |line: &str| read(line.as_bytes()).unwrap().remove(0);
        let entry = one(r#"{"id":3,"value":1.5,"time":1700000000}"#).unwrap();
        assert_eq!(entry.tag, Named::Id(3));
        let time = UtcTime::parse("2023-11-14T22:13:20Z");
        assert_eq!(entry.reading(double), Some(Reading::good(1.5).at(time)));
        let entry = one(r#"{"name":"a","status":"sensor_failure"}"#).unwrap();
        assert_eq!(entry.tag, Named::Name("a".to_owned()));
        assert_eq!(entry.reading(double), Some(Reading::bad(StatusCode::BAD_SENSOR_FAILURE)));
        assert_eq!(one(r#"{"id":0}"#).unwrap().reading(double), None);
        let wrong = one(r#"{"id":0,"value":"x"}"#).unwrap();
        assert_eq!(wrong.reading(double), Some(Reading::bad(StatusCode::BAD_TYPE_MISMATCH)));
        for nothing in [r#"{"id":-1,"value":1}"#, r#"{"value":1}"#, r#"{"id":0,"status":"fine"}"#, "7"] {
            assert_eq!(one(nothing), None, "{nothing}");
        }
        assert!(read(b"hello").is_none());
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert_eq!(read(list(ENTRIES_MAX).as_bytes()).map(|entries| entries.len()), Some(ENTRIES_MAX));
        assert!(read(list(ENTRIES_MAX + 1).as_bytes()).is_none());
        assert_eq!(read(b"[{\"id\":0,\"value\":1},2]").unwrap().len(), 2);
    }
}
