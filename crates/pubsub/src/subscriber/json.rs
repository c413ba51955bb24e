//! JSON NetworkMessages of a subscriber.

use super::deliver::{Context, Facts};
use super::reader::Reader;
use super::tracker::Number;
use super::{Drop, Sink, Subscriber, SubscriberEvent};
use crate::json::value::value;
use crate::json::{metadata, status, structure};
use crate::security::SecurityError;
use crate::time::Now;
use crate::uadp::announcement::NumberedAnnouncement;
use crate::uadp::fields::ReceivedField;
use crate::uadp::{DataSetMessageKind, SecurityMode};
use crate::{PublisherId, PublisherIdRef};
use taktwerk_types::json::parse::parse_bytes;
use taktwerk_types::json::{Json, JsonContext, JsonDecode, JsonError, JsonLimits};
use taktwerk_types::{BuiltInType, StatusCode, UtcTime};

impl From<JsonError> for Drop {
    fn from(error: JsonError) -> Self {
        Self::Json(error.to_string())
    }
}

impl Subscriber {
    /// Whether a connection carries JSON.
    pub(crate) fn is_json(&self, connection: usize) -> bool {
        self.readers.iter().any(|reader| reader.index.connection == connection && reader.is_json)
    }

    pub(crate) fn receive_json(
        &mut self,
        connection: usize,
        datagram: &[u8],
        now: Now,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let json = parse_bytes(datagram, JsonLimits::default())?;
        match json.get("MessageType").and_then(Json::as_str) {
            Some("ua-metadata") => {
                let message = metadata::decode(&json)?;
                for reader in &mut self.readers {
                    let named = reader.index.connection == connection
                        && reader.data_set_writer_id == message.data_set_writer_id
                        && reader.security.is_none()
                        && named(reader, Some(&message.publisher_id));
                    let version = &message.meta_data.configuration_version;
                    if named && (reader.meta_data.configuration_version != *version || !reader.knows_fields())
                    {
                        reader.set_meta_data(message.meta_data.clone(), sink);
                    }
                }
                return Ok(());
            }
            Some("ua-status") => {
                let announcement = status::decode(&json)?;
                let publisher_id = json.get("PublisherId").and_then(Json::as_str);
                sink.event(SubscriberEvent::Announcement {
                    connection,
                    publisher_id: publisher_id.map(|id| PublisherId::String(id.into())),
                    announcement: Box::new(NumberedAnnouncement { sequence_number: 0, announcement }),
                });
                return Ok(());
            }
            // Other message types with their own header; DataSetMessages have other types.
            Some(kind) if kind != "ua-data" && !kind.starts_with("ua-key") && !is_message(kind) => {
                return Ok(());
            }
            _ => {}
        }
        let has_header = json.get("Messages").is_some();
        let publisher_id = json.get("PublisherId").and_then(Json::as_str);
        let messages = json.get("Messages").unwrap_or(&json);
        let messages: &[Json<'_>] = match messages {
            Json::Array(messages) => messages,
            single => core::slice::from_ref(single),
        };
        let mut wanted = false;
        for message in messages {
            let own_id = message.get("PublisherId").and_then(Json::as_str);
            let publisher_id = publisher_id.filter(|_| has_header).or(own_id);
            let writer_id = match message.get("DataSetWriterId") {
                Some(id) => Some(u16::decode_json(id, &JsonContext::default())?),
                None => None,
            };
            for position in 0..self.readers.len() {
                let Some(reader) = self.readers.get_mut(position) else { break };
                let takes = reader.index.connection == connection
                    && reader.is_json
                    && reader.runs()
                    && reader.wants_writer(writer_id)
                    && named(reader, publisher_id);
                if takes && let Some(required) = &reader.security {
                    // JSON is never signed: a reader that requires security gets nothing.
                    let (actual, wanted) = (SecurityMode::None, required.mode);
                    return Err(SecurityError::ModeInsufficient { actual, wanted }.into());
                }
                if takes {
                    wanted = true;
                    let mut context = Context {
                        options: &self.options,
                        counters: &mut self.counters,
                        groups: &mut self.groups,
                        fields: &mut self.fields,
                        asker: &mut self.asker,
                        now,
                        age_max_nanos: None,
                    };
                    context.json(reader, publisher_id, writer_id, message, sink)?;
                }
            }
        }
        self.counters.unwanted += u64::from(!wanted);
        Ok(())
    }
}

fn is_message(kind: &str) -> bool {
    matches!(kind, "ua-keyframe" | "ua-deltaframe" | "ua-event" | "ua-keepalive")
}

/// Whether a message of this publisher is for the reader: JSON does not carry the type of the id.
fn named(reader: &Reader, publisher_id: Option<&str>) -> bool {
    match (&reader.publisher_id, publisher_id) {
        (Some(wanted), Some(id)) => wanted.to_string() == id,
        _ => true,
    }
}

impl Context<'_> {
    fn json(
        &mut self,
        reader: &mut Reader,
        publisher_id: Option<&str>,
        writer_id: Option<u16>,
        message: &Json<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let plain = JsonContext::default();
        let is_bare = message.get("Payload").is_none()
            && message.get("DataSetWriterId").is_none()
            && message.get("SequenceNumber").is_none()
            && message.get("MessageType").is_none();
        let payload = if is_bare { Some(message) } else { message.get("Payload") };
        let kind = match message.get("MessageType").and_then(Json::as_str) {
            Some("ua-deltaframe") => DataSetMessageKind::DeltaFrame,
            Some("ua-event") => DataSetMessageKind::Event,
            Some("ua-keepalive") => DataSetMessageKind::KeepAlive,
            _ if payload.is_none() => DataSetMessageKind::KeepAlive,
            _ => DataSetMessageKind::KeyFrame,
        };
        let header = if is_bare { &Json::Null } else { message };
        let version = header.get("MetaDataVersion").and_then(|version| version.get("MajorVersion"));
        let major_version = version.map(|version| u32::decode_json(version, &plain)).transpose()?;
        if let Some(major) = major_version
            && reader.knows_fields()
            && major != reader.meta_data.configuration_version.major_version
        {
            self.changed(reader, major, sink);
            return Ok(());
        }
        self.fields.clear();
        let mut names = Vec::new();
        if let Some(payload) = payload.filter(|_| kind != DataSetMessageKind::KeepAlive) {
            fields(reader, payload, self.fields)?;
            if !reader.knows_fields() {
                names.extend(payload.as_object().into_iter().flatten().map(|(name, _)| &**name));
            }
        }
        let number =
            header.get("SequenceNumber").map(|number| u32::decode_json(number, &plain)).transpose()?;
        let number = number.map(Number::Long);
        let id = publisher_id.map(PublisherIdRef::String);
        let Some(missing) = self.number(reader, id, None, writer_id, number, kind) else { return Ok(()) };
        let timestamp = header.get("Timestamp").map(|time| UtcTime::decode_json(time, &plain)).transpose()?;
        let status =
            header.get("Status").map(|status| StatusCode::decode_json(status, &plain)).transpose()?;
        let facts = Facts {
            publisher_id: id,
            group_id: None,
            writer_id,
            kind,
            sequence_number: number.map(Number::value),
            missing,
            timestamp,
            status: status.unwrap_or_default(),
            major_version,
            names: &names,
        };
        self.hand_over(reader, &facts, sink);
        Ok(())
    }
}

/// Decodes the payload. Names are looked up in the metadata; without metadata fields are numbered in order.
fn fields(reader: &Reader, payload: &Json<'_>, fields: &mut Vec<ReceivedField>) -> Result<(), JsonError> {
    let members = payload.as_object().ok_or(JsonError::Expected("an object as Payload"))?;
    let mut namespaces = vec!["http://opcfoundation.org/UA/"];
    namespaces.extend(reader.meta_data.namespaces.iter().map(|uri| uri.as_str()));
    let context =
        JsonContext { verbose: false, namespaces: &namespaces, structures: Some(&structure::Standard) };
    for (position, (name, json)) in members.iter().enumerate() {
        let known = reader.meta_data.fields.iter().position(|field| field.name.as_str() == &**name);
        let index = match known {
            Some(index) => index,
            // A field that our metadata does not contain: a newer MinorVersion.
            None if reader.knows_fields() => continue,
            None => position,
        };
        let kind = known
            .and_then(|index| reader.meta_data.fields.get(index))
            .and_then(|field| BuiltInType::from_number(field.built_in_type));
        let Ok(index) = u16::try_from(index) else { continue };
        fields.push(ReceivedField { index, value: value(kind, json, &context)? });
    }
    Ok(())
}
