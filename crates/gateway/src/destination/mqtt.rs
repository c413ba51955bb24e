//! Messages to an MQTT broker, with QoS 1: a batch is confirmed when the broker has confirmed each message.

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

/// A broker that values are sent to.
pub struct MqttSink {
    publishing: Publishing,
    /// Whether the broker keeps the last message of each topic.
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
            let brackets = if self.is_list { 2 } else { 0 };
            if topic.is_empty()
                || topic.len() > TOPIC_LEN_MAX
                || payload.len() + brackets > self.publishing.broker.payload_max
            {
                found.refused += 1;
                found.reason = Some(match payload.len() + brackets > self.publishing.broker.payload_max {
                    true => {
                        format!("a message of {} bytes is larger than payload_max", payload.len() + brackets)
                    }
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
            match last
                .filter(|last| last.payload.len() + payload.len() + 2 <= self.publishing.broker.payload_max)
            {
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

/// A text as part of a topic: what has a meaning in filters is replaced.
fn topic_text(text: &str) -> String {
    text.replace(['+', '#', '\0'], "_")
}

impl Sink for MqttSink {
    fn describe(&self) -> String {
        self.publishing.broker.describe()
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        let messages = self.messages(batch);
        Box::pin(async move {
            self.publishing.open().await?;
            self.publishing.send(messages).await
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
        let text = format!("[[destination]]\nurl = \"mqtt://h\"\n{more}");
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
    fn the_payload_is_json_unless_another_one_is_wanted() {
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
}
