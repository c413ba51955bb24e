//! OPC UA PubSub over an MQTT broker (Part 14 §7.2.4, §7.2.5): queued values are sent as delta frames and key frames with the
//! time of each value. For live PubSub over any transport use the server's `[pubsub]`.
//!
//! - `form`: the encodings; `data_set`: the fields; `security`: keys and secured messages.

mod data_set;
mod form;
mod security;

use super::block::Record;
use super::publishing::{Message, Messages, Publishing};
use super::settings::DestinationSettings;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake, Setting};
use crate::mqtt::Broker;
use data_set::DataSet;
use form::{Encoding, Form};
use futures_util::future::BoxFuture;
use security::Security;
use std::collections::HashSet;
use taktwerk::pubsub::DataSetMessageKind;
use taktwerk_net::clock::wall;

/// A broker that receives DataSetMessages.
pub struct PubSubSink {
    publishing: Publishing,
    form: Form,
    data_set: DataSet,
    security: Option<Security>,
    topic: String,
    /// The topic of retained metadata (UADP).
    meta_data_topic: String,
    /// The sequence number of the next announcement.
    announcement: u16,
    /// The id of the key that secured the last announcement.
    announced_with: Option<u32>,
    /// Whether the problem with key frames was logged.
    has_told: bool,
}

/// A field of a delta frame.
struct Field<'a> {
    index: u16,
    record: &'a Record,
    bytes: Vec<u8>,
}

/// A NetworkMessage before it is secured.
struct Plain {
    /// The key of its first value, by which subscribers detect a repeated message.
    key: String,
    frames: Vec<Vec<u8>>,
    len: usize,
    records: usize,
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
            let problem = format!("{url:?} has no confirmations, so a queue is not possible");
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
                Err(fields.mistake_in(line, key, problem, "remove + # and /"))
            }
        };
        let publisher_id = level("publisher_id", "taktwerk")?;
        let group = level("writer_group", "gateway")?;
        let writer = level("writer", &settings.name)?;
        let writer_id = fields.integer("writer_id", 1, 65_535)?.unwrap_or(1) as u16;
        let encodings = [("json", Encoding::Json), ("uadp", Encoding::Uadp)];
        let encoding = fields.word("encoding", &encodings)?.unwrap_or(Encoding::Json);
        let group_id = fields.integer("writer_group_id", 1, 65_535)?.unwrap_or(1) as u16;
        let key_frame_count = fields.integer("key_frame_count", 0, 1 << 31)?.unwrap_or(0) as u32;
        let security = Security::take(fields, settings)?;
        if security.is_some() && encoding == Encoding::Json {
            let hint = "set encoding = \"uadp\", or leave out the keys and use mqtts://";
            return Err(fields.mistake("JSON has no message security", hint));
        }
        let prefix = fields.text("prefix")?.unwrap_or_else(|| "opcua".to_owned());
        let root = match encoding {
            Encoding::Json => format!("{prefix}/json"),
            Encoding::Uadp => format!("{prefix}/uadp"),
        };
        let topic = format!("{root}/data/{publisher_id}/{group}/{writer}");
        if topic.contains(['+', '#', '\0']) {
            return Err(fields.mistake(format!("nothing can be sent to {topic}"), "remove + and #"));
        }
        let meta_data_topic = format!("{root}/metadata/{publisher_id}/{group}/{writer}");
        Ok(Self {
            publishing: Publishing::new(broker, settings.deadline),
            form: Form { encoding, publisher_id, group, group_id, writer, writer_id },
            data_set: DataSet::new(key_frame_count),
            security,
            topic,
            meta_data_topic,
            announcement: 0,
            announced_with: None,
            has_told: false,
        })
    }

    /// The fields of each DataSetMessage of a batch. Each message has at most one value per tag, so values of a tag stay in
    /// order.
    fn frames<'a>(&mut self, batch: &'a Batch, found: &mut Messages) -> Vec<Vec<Field<'a>>> {
        let payload_max = self.publishing.payload_max(&self.topic);
        let (around, frame_max) = (self.form.frame_len(), self.form.frame_max(payload_max));
        // A single field may be as large as a message.
        let alone_max = payload_max.saturating_sub(self.form.message_len());
        let now = wall();
        let mut frames: Vec<Vec<Field<'a>>> = Vec::new();
        let mut tags = HashSet::new();
        let mut len = 0;
        for record in &batch.records {
            let index = self.data_set.index_of(record, now);
            let bytes = index.map(|index| self.form.delta_field(index, record));
            let (Some(index), Some(bytes)) = (index, bytes) else {
                found.refused += 1;
                found.reason = Some("a data set has no more than 65535 fields".to_owned());
                continue;
            };
            if around + bytes.len() > alone_max {
                let len = self.form.message_len() + around + bytes.len();
                found.refused += 1;
                found.reason = Some(self.publishing.too_large(len, &self.topic));
                continue;
            }
            let next = len + bytes.len() + 1;
            if frames.is_empty() || next > frame_max || tags.contains(&index) {
                frames.push(Vec::new());
                tags.clear();
                len = around;
            }
            len += bytes.len() + 1;
            tags.insert(index);
            if let Some(frame) = frames.last_mut() {
                frame.push(Field { index, record, bytes });
            }
        }
        frames
    }

    /// The NetworkMessages of a batch. Records that cannot be sent are counted in `found`.
    fn plain(&mut self, batch: &Batch, found: &mut Messages) -> Vec<Plain> {
        self.data_set.begin();
        let frames = self.frames(batch, found);
        let payload_max = self.publishing.payload_max(&self.topic);
        let version = self.data_set.version();
        let mut messages: Vec<Plain> = Vec::new();
        for fields in frames {
            let Some(first) = fields.first().map(|field| batch.key(field.record)) else { continue };
            let records = fields.len();
            let values: Vec<_> = fields.iter().map(|field| (field.index, field.record)).collect();
            let key_frame = self.data_set.take(&values).then(|| {
                let fields = self.form.key_fields(&self.data_set);
                self.form.frame(&fields, DataSetMessageKind::KeyFrame, &version)
            });
            let is_small = |frame: &Vec<u8>| self.form.message_len() + frame.len() + 4 <= payload_max;
            if key_frame.as_ref().is_some_and(|frame| !is_small(frame)) && !self.has_told {
                self.has_told = true;
                tracing::warn!(
                    publisher = self.form.publisher_id,
                    "a key frame is larger than a message may be: delta frames are sent instead"
                );
            }
            let frame = key_frame.filter(is_small).unwrap_or_else(|| {
                let fields: Vec<_> = fields.into_iter().map(|field| field.bytes).collect();
                self.form.frame(&fields, DataSetMessageKind::DeltaFrame, &version)
            });
            let len = frame.len() + 4;
            match messages.last_mut() {
                Some(last) if last.len + len <= payload_max && self.form.has_room(&last.frames, &frame) => {
                    last.frames.push(frame);
                    last.len += len;
                    last.records += records;
                }
                _ => {
                    let len = self.form.message_len() + len;
                    messages.push(Plain { key: first, frames: vec![frame], len, records });
                }
            }
        }
        messages
    }

    /// The messages of a batch as sent.
    async fn messages(&mut self, batch: &Batch) -> Result<Messages, Fault> {
        let mut found = Messages::default();
        let plain = self.plain(batch, &mut found);
        if let Some(security) = &mut self.security {
            security.prepare().await?;
            // Later subscribers no longer have the key that secured the last announcement.
            let token = security.token();
            if core::mem::replace(&mut self.announced_with, token) != token {
                self.data_set.forget_announcement();
            }
        }
        if self.form.encoding == Encoding::Uadp && !self.data_set.is_announced() && !plain.is_empty() {
            let payload = self.announce().await?;
            if payload.len() > self.publishing.payload_max(&self.meta_data_topic) {
                let reason = format!(
                    "{} (the metadata of {} fields)",
                    self.publishing.too_large(payload.len(), &self.meta_data_topic),
                    self.data_set.fields.len(),
                );
                let hint = "let it be larger, or split the tags into several destinations";
                return Err(Fault::other(self.describe(), format!("{reason}: {hint}")));
            }
            let topic = self.meta_data_topic.clone();
            found.messages.push(Message { topic, payload, retain: true, records: 0 });
        }
        for Plain { key, frames, records, .. } in plain {
            let payload = match &mut self.security {
                None => {
                    let mut payload = Vec::new();
                    self.form.message(&key, &frames, None, &mut payload);
                    payload
                }
                Some(security) => {
                    security.prepare().await?;
                    security.secure(|header, out| self.form.message(&key, &frames, Some(header), out))?
                }
            };
            found.messages.push(Message { topic: self.topic.clone(), payload, retain: false, records });
        }
        Ok(found)
    }

    /// The metadata.
    async fn announce(&mut self) -> Result<Vec<u8>, Fault> {
        let meta_data = self.data_set.announce(&self.form.writer);
        let number = self.announcement;
        self.announcement = number.wrapping_add(1);
        match &mut self.security {
            None => {
                let mut payload = Vec::new();
                self.form.announcement(number, meta_data, None, &mut payload);
                Ok(payload)
            }
            Some(security) => {
                security.prepare().await?;
                security.secure(|header, out| self.form.announcement(number, meta_data, Some(header), out))
            }
        }
    }
}

impl Sink for PubSubSink {
    fn describe(&self) -> String {
        let secured = self.security.as_ref().map(|security| format!(", {}", security.describe()));
        let (publisher, broker) = (&self.form.publisher_id, self.publishing.broker.describe());
        format!("PubSub, publisher {publisher}, {broker}{}", secured.unwrap_or_default())
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(async move {
            if self.publishing.open().await? {
                self.data_set.forget_announcement();
            }
            let messages = self.messages(batch).await?;
            let taken = self.publishing.send(messages).await?;
            self.data_set.commit();
            Ok(taken)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk_types::{StatusCode, UtcTime, Variant};

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
            next: 100,
            is_parked: false,
        }
    }

    fn messages(sink: &mut PubSubSink, batch: &Batch) -> Messages {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(sink.messages(batch)).unwrap()
    }

    #[test]
    fn delta_frames_of_a_batch_contain_each_tag_once() {
        let good = StatusCode::GOOD;
        let batch = batch(&[
            ("L/a", 1.5.into(), good),
            ("L/b", "x\"".into(), good),
            ("L/a", Variant::Empty, StatusCode::BAD_NO_COMMUNICATION),
        ]);
        let mut sink = sink("url = \"mqtt://h\"\npublisher_id = \"p\"\nwriter_id = 7\n").unwrap();
        let found = messages(&mut sink, &batch);
        assert_eq!((found.messages.len(), found.refused), (1, 0));
        let message = &found.messages[0];
        assert_eq!((&*message.topic, message.records), ("opcua/json/data/p/gateway/d", 3));
        let json: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
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
        let batch = batch(&[("a", text(100), good), ("b", text(1100), good), ("c", text(2000), good)]);
        let mut sink = sink("url = \"mqtt://h\"\npayload_max = 1500\n").unwrap();
        let found = messages(&mut sink, &batch);
        assert_eq!((found.messages.len(), found.refused), (2, 1));
        assert!(found.messages.iter().all(|message| message.payload.len() <= 1500));
        assert!(found.reason.unwrap().contains("larger than payload_max"));
    }

    /// The DataSetMessages of the UADP messages of a batch: their kind, and their fields with index.
    fn uadp(found: &Messages) -> Vec<(DataSetMessageKind, Vec<(u16, Variant)>)> {
        use taktwerk_pubsub::uadp::fields::{FieldTypes, decode_fields};
        use taktwerk_pubsub::uadp::payload::DataSetPayload;
        use taktwerk_pubsub::uadp::{DataSetMessageHeader, NetworkMessageHeader};
        use taktwerk_types::{DecodeLimits, Decoder};
        let mut all = Vec::new();
        for message in found.messages.iter().filter(|message| !message.retain) {
            let mut decoder = Decoder::new(&message.payload, DecodeLimits::DEFAULT);
            let header = NetworkMessageHeader::decode(&mut decoder).unwrap();
            assert_eq!(header.publisher_id.unwrap().to_owned().to_string(), "p");
            assert_eq!(header.group.unwrap().writer_group_id, Some(3));
            for (id, bytes) in DataSetPayload::new(header.writer_ids, decoder.rest()).unwrap() {
                assert_eq!(id, Some(7));
                let mut decoder = Decoder::new(bytes, DecodeLimits::DEFAULT);
                let header = DataSetMessageHeader::decode(&mut decoder).unwrap();
                let mut fields = Vec::new();
                decode_fields(&header, &mut decoder, FieldTypes::default(), &mut fields).unwrap();
                assert_eq!(decoder.remaining(), 0);
                let value = |field: &taktwerk_pubsub::uadp::fields::ReceivedField| {
                    (field.index, field.value.value.clone().unwrap_or_default())
                };
                all.push((header.kind, fields.iter().map(value).collect()));
            }
        }
        all
    }

    const UADP: &str =
        "url = \"mqtt://h\"\nencoding = \"uadp\"\npublisher_id = \"p\"\nwriter_group_id = 3\nwriter_id = 7\n";

    #[test]
    fn uadp_fields_have_the_index_of_the_metadata() {
        use DataSetMessageKind::DeltaFrame;
        let good = StatusCode::GOOD;
        let mut sink = sink(UADP).unwrap();
        let first = messages(
            &mut sink,
            &batch(&[("a", 1.into(), good), ("b", 2.5.into(), good), ("a", 3.into(), good)]),
        );
        let topics: Vec<_> =
            first.messages.iter().map(|message| (&*message.topic, message.retain, message.records)).collect();
        assert_eq!(
            topics,
            [("opcua/uadp/metadata/p/gateway/d", true, 0), ("opcua/uadp/data/p/gateway/d", false, 3)]
        );
        let expected =
            [(DeltaFrame, vec![(0, 1.into()), (1, 2.5.into())]), (DeltaFrame, vec![(0, 3.into())])];
        assert_eq!(uadp(&first), expected);
        // Unconfirmed metadata are announced again, and then no more.
        let again = messages(&mut sink, &batch(&[("b", 4.5.into(), good)]));
        assert!(again.messages[0].retain);
        sink.data_set.commit();
        let next = messages(&mut sink, &batch(&[("b", 5.5.into(), good)]));
        assert_eq!((next.messages.len(), uadp(&next)), (1, vec![(DeltaFrame, vec![(1, 5.5.into())])]));
    }

    #[test]
    fn every_nth_message_is_a_key_frame_with_all_last_values() {
        use DataSetMessageKind::{DeltaFrame, KeyFrame};
        let good = StatusCode::GOOD;
        let values =
            [("a", 1.into(), good), ("b", 2.into(), good), ("a", 3.into(), good), ("a", 4.into(), good)];
        let mut sink = sink(&format!("{UADP}key_frame_count = 2\n")).unwrap();
        let expected = [
            (DeltaFrame, vec![(0, 1.into()), (1, 2.into())]),
            (KeyFrame, vec![(0, 3.into()), (1, 2.into())]),
            (DeltaFrame, vec![(0, 4.into())]),
        ];
        assert_eq!(uadp(&messages(&mut sink, &batch(&values))), expected);
        sink.data_set.commit();
        let next = messages(&mut sink, &batch(&[("b", 5.into(), good)]));
        assert_eq!(uadp(&next), [(KeyFrame, vec![(0, 4.into()), (1, 5.into())])]);
        // A key frame that is too large is replaced by a delta frame.
        let long = Variant::from("x".repeat(600).as_str());
        let mut small = self::sink(&format!("{UADP}key_frame_count = 2\npayload_max = 1000\n")).unwrap();
        let found = messages(&mut small, &batch(&[("a", long.clone(), good), ("b", long, good)]));
        let kinds: Vec<_> = uadp(&found).iter().map(|(kind, fields)| (*kind, fields.len())).collect();
        assert_eq!(kinds, [(DeltaFrame, 1), (DeltaFrame, 1)]);
    }

    #[tokio::test]
    async fn metadata_is_announced_again_with_each_key() {
        let mut sink = sink(UADP).unwrap();
        let lifetime = std::time::Duration::from_secs(2);
        sink.security = Some(security::tests::two_keys(lifetime));
        let batch = batch(&[("a", 1.into(), StatusCode::GOOD)]);
        let mut kinds = Vec::new();
        for pause in [0, 0, 2100, 0] {
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
            let found = sink.messages(&batch).await.unwrap();
            sink.data_set.commit();
            kinds.push(found.messages.iter().map(|message| message.retain).collect::<Vec<_>>());
        }
        assert_eq!(kinds, [vec![true, false], vec![false], vec![true, false], vec![false]]);
    }

    #[test]
    fn json_key_frames_say_so() {
        let good = StatusCode::GOOD;
        let mut sink = sink("url = \"mqtt://h\"\nkey_frame_count = 1\n").unwrap();
        messages(&mut sink, &batch(&[("a", 1.into(), good)]));
        sink.data_set.commit();
        let found = messages(&mut sink, &batch(&[("b", 2.into(), good)]));
        let json: serde_json::Value = serde_json::from_slice(&found.messages[0].payload).unwrap();
        let message = &json["Messages"][0];
        assert_eq!(message["MessageType"], "ua-keyframe");
        let values = |tag: &str| message["Payload"][tag]["Value"].clone();
        assert_eq!((values("a"), values("b")), (1.into(), 2.into()));
    }

    #[test]
    fn uadp_messages_hold_many_data_set_messages_within_the_size_limit() {
        let good = StatusCode::GOOD;
        let long = Variant::from("x".repeat(70_000).as_str());
        let mut values = vec![("a", Variant::from(1), good); 600];
        values[300].1 = long;
        let mut sink = sink(UADP).unwrap();
        let found = messages(&mut sink, &batch(&values));
        let sent = uadp(&found);
        assert_eq!((sent.len(), found.refused), (600, 0));
        let records: Vec<_> = found.messages.iter().map(|message| message.records).collect();
        // Up to 255 in each, and the long one alone; the first message is the metadata.
        assert_eq!(records, [0, 255, 45, 1, 255, 44]);
    }

    #[test]
    fn settings_of_message_security_that_cannot_work_are_refused() {
        for (more, said) in [
            ("message_security = \"sign\"", "message_security needs the keys of a security group"),
            ("keys = \"no.keys\"", "g.toml:7: keys: cannot read no.keys"),
            ("key_service = \"http://h\"", "g.toml:7: key_service: \"http://h\" is no URL"),
            ("key_service = \"opc.tcp://h\"", "key_service requires a security group"),
            ("keys = \"a\"\nkey_service = \"opc.tcp://h\"", "exclude each other"),
            (
                "security_group = \"g\"\nkey_service = \"opc.tcp://h\"\nmessage_security = \"none\"",
                "nothing is secured",
            ),
        ] {
            let error = sink(&format!("{UADP}{more}\n")).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
        let json = "url = \"mqtt://h\"\nsecurity_group = \"g\"\nkey_service = \"opc.tcp://h\"\n";
        assert!(sink(json).err().unwrap().to_string().contains("JSON has no message security"));
    }

    #[test]
    fn transports_without_confirmations_are_rejected() {
        for (settings, said) in [
            (
                "url = \"opc.udp://239.0.0.1:4840\"",
                "g.toml:2: url: \"opc.udp://239.0.0.1:4840\" has no confirmations",
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
