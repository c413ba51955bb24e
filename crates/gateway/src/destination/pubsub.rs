//! OPC UA PubSub over an MQTT broker, in the JSON mapping (Part 14 §7.2.5): what waits in the queue becomes delta frames with
//! the time of each value. Live PubSub, over any transport, is a matter of the server (`[pubsub]`).

use super::block::Record;
use super::publishing::{Message, Messages, Publishing};
use super::settings::DestinationSettings;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake, Setting};
use crate::mqtt::Broker;
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use taktwerk_types::json::write::{Members, plain, string};
use taktwerk_types::json::{JsonContext, JsonEncode, encode_value};
use taktwerk_types::{StatusCode, Variant};

/// What a NetworkMessage has around its DataSetMessages, and one of those around its fields, at most, besides names.
const HEADERS_LEN: usize = 400;

/// A broker that DataSetMessages are published to.
pub struct PubSubSink {
    publishing: Publishing,
    publisher_id: String,
    group: String,
    writer: String,
    writer_id: u16,
    topic: String,
}

impl PubSubSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        if let Some(Setting::Text(url)) = fields.get("url")
            && ["opc.udp://", "opc.eth://"].iter().any(|scheme| url.starts_with(scheme))
        {
            let problem = format!("{url:?} confirms nothing, so nothing could wait for it");
            let hint = "publish the tags live, with [pubsub], or write \"mqtt://broker\"";
            let line = fields.take("url").map_or(0, |(line, _)| line);
            return Err(fields.mistake_in(line, "url", problem, hint));
        }
        let broker = Broker::take(fields, &settings.name)?;
        let mut level = |key: &'static str, default: &str| match fields.text_at(key)? {
            None => Ok(default.to_owned()),
            Some((_, text)) if crate::sparkplug::is_level(&text) => Ok(text),
            Some((line, text)) => {
                let problem = format!("{text:?} is no level of a topic");
                Err(fields.mistake_in(line, key, problem, "leave out + # and /"))
            }
        };
        let publisher_id = level("publisher_id", "taktwerk")?;
        let group = level("writer_group", "gateway")?;
        let writer = level("writer", &settings.name)?;
        let writer_id = fields.integer("writer_id", 1, 65_535)?.unwrap_or(1) as u16;
        let prefix = fields.text("prefix")?.unwrap_or_else(|| "opcua".to_owned());
        let topic = format!("{prefix}/json/data/{publisher_id}/{group}/{writer}");
        if topic.contains(['+', '#', '\0']) {
            return Err(fields.mistake(format!("nothing can be sent to {topic}"), "leave out + and #"));
        }
        let publishing = Publishing::new(broker, false, settings.deadline);
        Ok(Self { publishing, publisher_id, group, writer, writer_id, topic })
    }

    /// The NetworkMessages of a batch. Values of a tag stay in order: each DataSetMessage has at most one.
    fn messages(&self, batch: &Batch) -> Messages {
        let mut found = Messages::default();
        let most = self.publishing.broker.payload_max;
        let mut open = NetworkMessage::default();
        for record in &batch.records {
            let field = field(record);
            let names = self.publisher_id.len() + self.group.len() + self.writer.len();
            let bytes = HEADERS_LEN + names + field.len();
            if bytes > most {
                found.refused += 1;
                found.reason = Some(format!("a message of {bytes} bytes is larger than payload_max"));
                continue;
            }
            if open.len + bytes > most {
                found.messages.extend(self.close(core::mem::take(&mut open)));
            }
            if open.first.is_none() {
                open.first = Some(batch.key(record));
            }
            open.add(record, &field, bytes);
        }
        found.messages.extend(self.close(open));
        found
    }

    /// The message, if it has a field.
    fn close(&self, open: NetworkMessage) -> Option<Message> {
        let key = open.first?;
        let mut out = Vec::with_capacity(open.len);
        let mut members = Members::open(&mut out);
        for (name, text) in [
            ("MessageId", &*key),
            ("MessageType", "ua-data"),
            ("PublisherId", &self.publisher_id),
            ("WriterGroupName", &self.group),
        ] {
            members.name(name, &mut out);
            string(text, &mut out);
        }
        members.name("Messages", &mut out);
        for (at, fields) in open.messages.iter().enumerate() {
            out.push(if at == 0 { b'[' } else { b',' });
            let mut message = Members::open(&mut out);
            message.name("DataSetWriterId", &mut out);
            plain(self.writer_id, &mut out);
            message.name("DataSetWriterName", &mut out);
            string(&self.writer, &mut out);
            message.name("MessageType", &mut out);
            string("ua-deltaframe", &mut out);
            message.name("Payload", &mut out);
            out.push(b'{');
            out.extend_from_slice(fields);
            out.push(b'}');
            message.close(&mut out);
        }
        out.push(b']');
        members.close(&mut out);
        let payload = String::from_utf8(out).ok()?;
        Some(Message { topic: self.topic.clone(), payload, records: open.records })
    }
}

/// A NetworkMessage that is being made.
#[derive(Default)]
struct NetworkMessage {
    /// The key of its first value, by which subscribers recognize a message that is sent again.
    first: Option<String>,
    messages: Vec<Vec<u8>>,
    /// The tags of the last DataSetMessage.
    tags: HashSet<std::sync::Arc<str>>,
    records: usize,
    /// Its size, at most.
    len: usize,
}

impl NetworkMessage {
    fn add(&mut self, record: &Record, field: &[u8], bytes: usize) {
        if self.messages.is_empty() || !self.tags.insert(record.tag.clone()) {
            self.tags = HashSet::from([record.tag.clone()]);
            self.messages.push(Vec::new());
        }
        if let Some(last) = self.messages.last_mut() {
            if !last.is_empty() {
                last.push(b',');
            }
            last.extend_from_slice(field);
        }
        self.records += 1;
        self.len += bytes;
    }
}

/// A field: the tag's name, and a DataValue with its type.
fn field(record: &Record) -> Vec<u8> {
    let context = JsonContext { verbose: false, namespaces: &[], structures: None };
    let mut out = Vec::new();
    string(&record.tag, &mut out);
    out.push(b':');
    let mut members = Members::open(&mut out);
    if record.value != Variant::Empty && !record.status.is_bad() {
        members.name("UaType", &mut out);
        plain(record.value.built_in_type().map_or(0, |kind| kind.number()), &mut out);
        members.name("Value", &mut out);
        encode_value(&record.value, &context, &mut out);
    }
    if record.status != StatusCode::GOOD {
        members.name("Status", &mut out);
        record.status.encode_json(&context, &mut out);
    }
    members.name("SourceTimestamp", &mut out);
    record.time.encode_json(&context, &mut out);
    members.close(&mut out);
    out
}

impl Sink for PubSubSink {
    fn describe(&self) -> String {
        format!("PubSub, publisher {}, {}", self.publisher_id, self.publishing.broker.describe())
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        let messages = self.messages(batch);
        Box::pin(self.publishing.send(messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk_types::UtcTime;

    fn sink(more: &str) -> Result<PubSubSink, Mistake> {
        let text = format!("[[destination]]\n{more}");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        let settings = DestinationSettings::take(&mut fields, "d".to_owned())?;
        let sink = PubSubSink::take(&mut fields, &settings)?;
        fields.finish().map(|()| sink)
    }

    fn batch(values: &[(&str, Variant, StatusCode)]) -> Batch {
        let time = UtcTime::parse("2026-01-02T03:04:05Z").unwrap();
        let record = |(index, (tag, value, status)): (usize, &(&str, Variant, StatusCode))| Record {
            number: index as u64,
            tag: (*tag).into(),
            value: value.clone(),
            status: *status,
            time,
            received: time,
        };
        Batch {
            queue: "q".to_owned(),
            records: values.iter().enumerate().map(record).collect(),
            is_last: true,
        }
    }

    #[test]
    fn a_batch_becomes_delta_frames_in_which_each_tag_is_once() {
        let good = StatusCode::GOOD;
        let batch = batch(&[
            ("L/a", 1.5.into(), good),
            ("L/b", "x\"".into(), good),
            ("L/a", Variant::Empty, StatusCode::BAD_NO_COMMUNICATION),
        ]);
        let sink = sink("url = \"mqtt://h\"\npublisher_id = \"p\"\nwriter_id = 7\n").unwrap();
        let found = sink.messages(&batch);
        assert_eq!((found.messages.len(), found.refused), (1, 0));
        let message = &found.messages[0];
        assert_eq!((&*message.topic, message.records), ("opcua/json/data/p/gateway/d", 3));
        let json: serde_json::Value = serde_json::from_str(&message.payload).unwrap();
        let time = "2026-01-02T03:04:05Z";
        assert_eq!(
            json,
            serde_json::json!({
                "MessageId": "q-0", "MessageType": "ua-data", "PublisherId": "p", "WriterGroupName": "gateway",
                "Messages": [
                    { "DataSetWriterId": 7, "DataSetWriterName": "d", "MessageType": "ua-deltaframe", "Payload": {
                        "L/a": { "UaType": 11, "Value": 1.5, "SourceTimestamp": time },
                        "L/b": { "UaType": 12, "Value": "x\"", "SourceTimestamp": time } } },
                    { "DataSetWriterId": 7, "DataSetWriterName": "d", "MessageType": "ua-deltaframe", "Payload": {
                        "L/a": { "Status": json["Messages"][1]["Payload"]["L/a"]["Status"], "SourceTimestamp": time } } },
                ],
            })
        );
        assert_eq!(json["Messages"][1]["Payload"]["L/a"]["Status"]["Code"], 0x8031_0000u32);
    }

    #[test]
    fn messages_are_not_larger_than_payload_max() {
        let text = |len| Variant::from("x".repeat(len).as_str());
        let good = StatusCode::GOOD;
        let batch = batch(&[("a", text(100), good), ("b", text(900), good), ("c", text(2000), good)]);
        let sink = sink("url = \"mqtt://h\"\npayload_max = 1500\n").unwrap();
        let found = sink.messages(&batch);
        assert_eq!((found.messages.len(), found.refused), (2, 1));
        assert!(found.messages.iter().all(|message| message.payload.len() <= 1500));
        assert!(found.reason.unwrap().contains("larger than payload_max"));
    }

    #[test]
    fn transports_that_confirm_nothing_are_refused() {
        for (settings, said) in [
            (
                "url = \"opc.udp://239.0.0.1:4840\"",
                "g.toml:2: url: \"opc.udp://239.0.0.1:4840\" confirms nothing",
            ),
            (
                "url = \"mqtt://h\"\nwriter_group = \"a/b\"",
                "g.toml:3: writer_group: \"a/b\" is no level of a topic",
            ),
            ("url = \"mqtt://h\"\nprefix = \"a/#\"", "nothing can be sent to a/#/json/data"),
            ("url = \"mqtt://h\"\nwriter_id = 0", "g.toml:3: writer_id: the number does not fit"),
        ] {
            let error = sink(settings).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
