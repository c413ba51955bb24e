//! Messages to an MQTT broker with QoS 1: a batch is confirmed when the broker has confirmed each message.

use super::publishing::{Message, Messages, Publishing};
use super::settings::DestinationSettings;
use super::template::{Template, json_text};
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::mqtt::Broker;
use futures_util::future::BoxFuture;
use std::collections::HashMap;

/// Longest topic (MQTT 5 §1.5.4).
const TOPIC_LEN_MAX: usize = 65_535;
const TOPIC: &str = "taktwerk/{tag}";
const PAYLOAD: &str = r#"{"key":"{key}","tag":"{tag}","time":"{time}","status":"{status}","value":{value}}"#;

/// A broker that receives values.
pub struct MqttSink {
    publishing: Publishing,
    /// Whether the broker retains the last message of each topic.
    retain: bool,
    topic: Template,
    payload: Template,
    is_list: bool,
}

impl MqttSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let broker = Broker::take(fields, &settings.name)?;
        let topic = fields.text_at("topic")?;
        if let Some((line, text)) = &topic
            && (text.is_empty() || text.contains(['+', '#', '\0']))
        {
            let hint = "write a topic without + and #, such as topic = \"plant/{tag}\"";
            return Err(fields.mistake_in(*line, "topic", "nothing can be sent to this topic", hint));
        }
        Ok(Self {
            retain: fields.flag("retain")?.unwrap_or(false),
            publishing: Publishing::new(broker, settings.deadline),
            topic: Template::parse(topic.as_ref().map_or(TOPIC, |(_, text)| text)),
            payload: Template::parse(fields.text("payload")?.as_deref().unwrap_or(PAYLOAD)),
            is_list: fields.flag("list")?.unwrap_or(false),
        })
    }

    /// The messages of a batch. Values of a tag stay in order.
    fn messages(&self, batch: &Batch) -> Messages {
        let mut found = Messages::default();
        let mut open: HashMap<String, usize> = HashMap::new();
        for record in &batch.records {
            let topic = self.topic.fill(batch, record, topic_text);
            let payload = self.payload.fill(batch, record, json_text);
            let len = payload.len() + if self.is_list { 2 } else { 0 };
            let most = self.publishing.payload_max(&topic);
            if topic.is_empty() || topic.len() > TOPIC_LEN_MAX || len > most {
                found.refused += 1;
                found.reason = Some(match len > most {
                    true => self.publishing.too_large(len, &topic),
                    false => format!("a topic of {} bytes cannot be sent", topic.len()),
                });
                continue;
            }
            if !self.is_list {
                let (payload, retain) = (payload.into_bytes(), self.retain);
                found.messages.push(Message { topic, payload, retain, records: 1 });
                continue;
            }
            let last = open.get(&topic).and_then(|index| found.messages.get_mut(*index));
            match last.filter(|last| last.payload.len() + payload.len() + 2 <= most) {
                Some(last) => {
                    last.payload.push(b',');
                    last.payload.extend_from_slice(payload.as_bytes());
                    last.records += 1;
                }
                None => {
                    open.insert(topic.clone(), found.messages.len());
                    let (payload, retain) = (format!("[{payload}").into_bytes(), self.retain);
                    found.messages.push(Message { topic, payload, retain, records: 1 });
                }
            }
        }
        if self.is_list {
            found.messages.iter_mut().for_each(|message| message.payload.push(b']'));
        }
        found
    }
}

/// A text as part of a topic. Characters with a meaning in filters are replaced.
fn topic_text(text: &str) -> String {
    text.replace(['+', '#', '\0'], "_")
}

impl Sink for MqttSink {
    fn describe(&self) -> String {
        self.publishing.broker.describe()
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(async move {
            self.publishing.open().await?;
            // After connecting, because the broker announces its maximum size.
            self.publishing.send(self.messages(batch)).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::block::Record;
    use crate::fields::Sections;
    use std::path::Path;
    use taktwerk_types::{StatusCode, UtcTime};

    fn sink(more: &str) -> Result<MqttSink, Mistake> {
        sink_at("mqtt://h", more)
    }

    fn sink_at(url: &str, more: &str) -> Result<MqttSink, Mistake> {
        let text = format!("[[destination]]\nurl = \"{url}\"\n{more}");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        let settings = DestinationSettings::take(&mut fields, "d".to_owned())?;
        let sink = MqttSink::take(&mut fields, &settings)?;
        fields.finish().map(|()| sink)
    }

    fn text(message: &Message) -> &str {
        std::str::from_utf8(&message.payload).unwrap()
    }

    fn batch(values: &[(&str, &str)]) -> Batch {
        let time = UtcTime::parse("2026-01-02T03:04:05Z").unwrap();
        let record = |(index, (tag, value)): (usize, &(&str, &str))| Record {
            number: index as u64,
            tag: (*tag).into(),
            value: (*value).into(),
            status: StatusCode::GOOD,
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

    #[test]
    fn each_value_is_a_message_or_those_of_a_topic_are_a_list() {
        let batch = batch(&[("L/a+b", "1"), ("L/c", "2"), ("L/a+b", "3"), ("L/c", "much too long for it")]);
        let single = sink("payload = '{value}'\npayload_max = 10").unwrap().messages(&batch);
        let shown: Vec<_> = single.messages.iter().map(|message| (&*message.topic, text(message))).collect();
        assert_eq!(
            shown,
            [("taktwerk/L/a_b", "\"1\""), ("taktwerk/L/c", "\"2\""), ("taktwerk/L/a_b", "\"3\"")]
        );
        assert_eq!(single.refused, 1);
        let list = sink("payload = '{value}'\npayload_max = 10\nlist = true").unwrap().messages(&batch);
        let shown: Vec<_> = list.messages.iter().map(|message| (text(message), message.records)).collect();
        assert_eq!((shown, list.refused), (vec![("[\"1\",\"3\"]", 2), ("[\"2\"]", 1)], 1));
        let full = sink("payload = '{value}'\npayload_max = 7\nlist = true\ntopic = \"all\"").unwrap();
        let full = full.messages(&batch);
        let shown: Vec<_> = full.messages.iter().map(text).collect();
        assert_eq!(shown, ["[\"1\"]", "[\"2\"]", "[\"3\"]"]);
    }

    #[test]
    fn the_payload_is_json_by_default() {
        let messages = sink("").unwrap().messages(&batch(&[("L/\"a\"", "x\"y")]));
        let json: serde_json::Value = serde_json::from_slice(&messages.messages[0].payload).unwrap();
        assert_eq!(
            (&json["tag"], &json["value"], &json["key"]),
            (&"L/\"a\"".into(), &"x\"y".into(), &"q-0".into())
        );
        let error = sink("topic = \"a/#\"").err().unwrap().to_string();
        assert!(error.contains("nothing can be sent to this topic"), "{error}");
        let error = sink("url2 = \"\"").err().unwrap().to_string();
        assert!(error.contains("did you mean `url`"), "{error}");
    }

    /// A broker of MQTT 5 that accepts packets up to a size, and closes the connection after a larger one. Returns its port, and
    /// the accepted payloads.
    async fn small_broker(packet_max: usize) -> (u16, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let taken = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let payloads = std::sync::Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                'connection: while let Ok(kind) = stream.read_u8().await {
                    let (mut len, mut shift, mut header) = (0, 0, 1);
                    loop {
                        let Ok(byte) = stream.read_u8().await else { break 'connection };
                        len |= usize::from(byte & 0x7f) << shift;
                        (shift, header) = (shift + 7, header + 1);
                        if byte & 0x80 == 0 {
                            break;
                        }
                    }
                    let mut body = vec![0; len];
                    if stream.read_exact(&mut body).await.is_err() || header + len > packet_max {
                        break;
                    }
                    let mut answer = vec![0xD0, 0];
                    match kind >> 4 {
                        1 => {
                            answer = vec![0x20, 8, 0, 0, 5, 0x27];
                            answer.extend((packet_max as u32).to_be_bytes());
                        }
                        3 => {
                            let topic = usize::from(u16::from_be_bytes([body[0], body[1]]));
                            answer = vec![0x40, 2, body[2 + topic], body[3 + topic]];
                            let payload = body[2 + topic + 3..].to_vec();
                            payloads.lock().unwrap().push(String::from_utf8(payload).unwrap());
                        }
                        _ => {}
                    }
                    if stream.write_all(&answer).await.is_err() {
                        break;
                    }
                }
            }
        });
        (port, taken)
    }

    #[tokio::test]
    async fn messages_respect_the_broker_limit_and_larger_values_are_rejected() {
        let long = "x".repeat(150);
        let values: Vec<(String, String)> = (0..30)
            .map(|at| ("L".to_owned(), if at == 10 { long.clone() } else { format!("value {at:03}") }))
            .collect();
        let values: Vec<(&str, &str)> = values.iter().map(|(tag, value)| (&**tag, &**value)).collect();
        let batch = batch(&values);
        for list in ["true", "false"] {
            let (port, taken) = small_broker(120).await;
            let more = format!("payload = '{{value}}'\nversion = \"5\"\nlist = {list}\n");
            let mut sink = sink_at(&format!("mqtt://127.0.0.1:{port}"), &more).unwrap();
            let answer = sink.send(&batch).await.unwrap();
            assert_eq!(answer.refused, 1, "{answer:?}");
            assert!(answer.reason.unwrap().contains("that the broker accepts"));
            let taken = taken.lock().unwrap().concat();
            let count = (0..30).filter(|at| taken.contains(&format!("value {at:03}"))).count();
            assert!(count == 29 && !taken.contains(&long), "{taken}");
        }
    }
}
