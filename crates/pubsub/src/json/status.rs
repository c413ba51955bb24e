//! JSON Status messages (Part 14 §7.2.5.5.5).

use crate::uadp::announcement::Announcement;
use taktwerk_schema::PubSubState;
use taktwerk_types::UtcTime;
use taktwerk_types::json::write::{Members, plain, string};
use taktwerk_types::json::{Json, JsonContext, JsonDecode, JsonEncode, JsonError};

/// Appends a Status message. For cyclic messages, `cyclic` contains the time of the next one and the time of this one.
pub fn encode(
    message_id: &str,
    publisher_id: &str,
    state: PubSubState,
    cyclic: Option<(UtcTime, UtcTime)>,
    out: &mut Vec<u8>,
) {
    let context = JsonContext::default();
    let mut members = Members::open(out);
    members.name("MessageId", out);
    string(message_id, out);
    members.name("MessageType", out);
    string("ua-status", out);
    members.name("PublisherId", out);
    string(publisher_id, out);
    if let Some((_, timestamp)) = cyclic {
        members.name("Timestamp", out);
        timestamp.encode_json(&context, out);
    }
    members.name("IsCyclic", out);
    plain(cyclic.is_some(), out);
    members.name("Status", out);
    plain(state.0, out);
    if let Some((next_report, _)) = cyclic {
        members.name("NextReportTime", out);
        next_report.encode_json(&context, out);
    }
    members.close(out);
}

/// Parses a Status message.
///
/// # Errors
/// It is not a Status message.
pub fn decode(json: &Json<'_>) -> Result<Announcement, JsonError> {
    let context = JsonContext::default();
    let status = json.get("Status").ok_or(JsonError::Expected("Status"))?;
    let state = PubSubState(i32::decode_json(status, &context)?);
    let time = |name: &str| json.get(name).map(|time| UtcTime::decode_json(time, &context)).transpose();
    let is_cyclic = json.get("IsCyclic").map(|cyclic| bool::decode_json(cyclic, &context)).transpose()?;
    let cyclic = match (is_cyclic, time("NextReportTime")?, time("Timestamp")?) {
        (Some(true), Some(next_report), timestamp) => Some((next_report, timestamp.unwrap_or(UtcTime::NULL))),
        (Some(true), None, _) => return Err(JsonError::Expected("NextReportTime")),
        _ => None,
    };
    Ok(Announcement::Status { state, cyclic })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::json::JsonLimits;
    use taktwerk_types::json::parse::parse_bytes;

    #[test]
    fn written_messages_can_be_read() {
        let times = (UtcTime::from_unix(core::time::Duration::from_secs(7)), UtcTime::NULL);
        for (state, cyclic) in [(PubSubState::ERROR, None), (PubSubState::OPERATIONAL, Some(times))] {
            let mut out = Vec::new();
            encode("1", "a\"b", state, cyclic, &mut out);
            let json = parse_bytes(&out, JsonLimits::default()).unwrap();
            assert_eq!(json.get("PublisherId").and_then(Json::as_str), Some("a\"b"));
            assert_eq!(decode(&json).unwrap(), Announcement::Status { state, cyclic });
        }
        for broken in [&b"{}"[..], br#"{"Status":2,"IsCyclic":true}"#, br#"{"Status":"x"}"#] {
            assert!(decode(&parse_bytes(broken, JsonLimits::default()).unwrap()).is_err());
        }
    }
}
