//! One connection to a broker.

use super::payload::{Part, typed};
use super::topic::{TOPIC_LEN_MAX, fill};
use super::{Map, Mqtt};
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Write, Writes};
use crate::mqtt::client::{Client, Connection, Incoming, too_long};
use crate::statistics::Count;
use crate::tag::{Access, Tag};
use crate::value::{Kind, to_json};
use std::collections::HashMap;
use taktwerk_types::{BuiltInType, StatusCode, Variant};
use tokio::time::timeout;

pub(super) async fn run(mqtt: &mut Mqtt, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
    let target = mqtt.broker.target();
    let deadline = feed.settings().deadline;
    let mut connection = Connection::new(&mqtt.broker, deadline, mqtt.maps.len())?;
    let connected = async {
        loop {
            if let Incoming::Connected = connection.events.next(&target).await? {
                return Ok::<(), Fault>(());
            }
        }
    };
    match timeout(deadline, connected).await {
        Err(_) => return Err(Fault::ConnectTimeout { target, after: deadline }),
        Ok(connected) => connected?,
    }
    let mut asked: Vec<&str> = Vec::new();
    // Tags with an exact topic are looked up by it; the others are searched.
    let mut by_topic: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut wild: Vec<usize> = Vec::new();
    for (index, map) in mqtt.maps.iter().enumerate() {
        if !asked.contains(&map.topic.as_str()) {
            asked.push(&map.topic);
            if !connection.client.subscribe(&map.topic, mqtt.qos) {
                feed.failed(&Fault::other(target.as_str(), format!("cannot subscribe to {}", map.topic)));
            }
        }
        if map.filter.has_wildcards() {
            wild.push(index);
        } else {
            by_topic.entry(&map.topic).or_default().push(index);
        }
    }
    feed.connected();
    let mut added = core::mem::take(&mut mqtt.added);
    let outcome = loop {
        tokio::select! {
            write = writes.next() => send(&connection.client, mqtt, feed, &write),
            incoming = connection.events.next(&target) => match incoming {
                Err(fault) => break Err(fault),
                Ok(Incoming::Message(topic, payload, _)) => {
                    if payload.len() > mqtt.broker.payload_max || topic.len() > TOPIC_LEN_MAX {
                        feed.statistics().add(Count::Dropped, 1);
                        if topic.len() <= TOPIC_LEN_MAX {
                            feed.failed(&too_long(&topic, mqtt.broker.payload_max));
                        }
                        continue;
                    }
                    let exact = by_topic.get(topic.as_str()).into_iter().flatten();
                    let mut readings = Vec::new();
                    let mut is_wanted = false;
                    for index in exact.chain(&wild) {
                        let Some(map) = mqtt.maps.get(*index) else { continue };
                        let Some(found) = map.filter.matches(&topic) else { continue };
                        is_wanted = true;
                        let parts = map.reader.read(&payload);
                        if parts.is_empty() {
                            feed.statistics().add(Count::Invalid, 1);
                            if let Some(position) = map.position {
                                readings.push((position, Reading::bad(StatusCode::BAD_TYPE_MISMATCH)));
                            }
                        }
                        for part in parts {
                            let place = Place { index: *index, map, topic: &topic, found: &found };
                            readings.extend(place.reading(part, feed, &mut added));
                        }
                    }
                    feed.statistics().add(Count::Dropped, usize::from(!is_wanted));
                    feed.deliver(readings);
                }
                Ok(Incoming::Refused) => {
                    feed.failed(&Fault::other(target.as_str(), "the broker refuses a topic; may this user read it?"));
                }
                Ok(Incoming::Connected) => feed.connected(),
                Ok(Incoming::Taken(_) | Incoming::Unsubscribed | Incoming::Other) => {}
            },
        }
    };
    mqtt.added = added;
    outcome
}

type Added = HashMap<(usize, String, String), Option<usize>>;

/// The target of a message.
struct Place<'a> {
    index: usize,
    map: &'a Map,
    topic: &'a str,
    found: &'a [&'a str],
}

impl Place<'_> {
    fn reading(&self, part: Part, feed: &Feed, added: &mut Added) -> Option<(usize, Reading)> {
        let Part { path, json, time } = part;
        if let Some(position) = self.map.position {
            // With scaling, the message contains the device's number; the tag's type applies afterwards.
            let wanted = self.map.tag.kind.filter(|_| self.map.tag.scaling.is_identity());
            let value = Kind::scalar(wanted.unwrap_or(BuiltInType::Double)).of_json(&json);
            let reading = match value {
                Some(value) => Reading::good(value).at(time),
                None => {
                    feed.statistics().add(Count::Invalid, 1);
                    Reading::bad(StatusCode::BAD_TYPE_MISMATCH).at(time)
                }
            };
            return Some((position, reading));
        }
        let (kind, value) = match self.map.tag.kind {
            Some(kind) => (Kind::scalar(kind), Kind::scalar(kind).of_json(&json)),
            None => typed(&json),
        };
        let path: Vec<String> = path.iter().map(|name| escaped(name)).collect();
        let key = (self.index, self.topic.to_owned(), path.join("/"));
        let position = match added.get(&key) {
            Some(position) => *position,
            None if feed.len() >= feed.settings().nodes_max || added.len() >= feed.settings().nodes_max => {
                None
            }
            // Names are stored, so their length is limited.
            None if key.2.len() > TOPIC_LEN_MAX => None,
            None => {
                let position = self.add(&path, kind, feed);
                added.insert(key, position);
                position
            }
        };
        let Some(position) = position else {
            feed.statistics().add(Count::Dropped, 1);
            return None;
        };
        let value = value.unwrap_or(Variant::Empty);
        Some((position, Reading::good(value).at(time)))
    }

    /// Adds the variable of a topic.
    fn add(&self, path: &[String], kind: Kind, feed: &Feed) -> Option<usize> {
        let fill = |text: &str| fill(text, self.topic, self.found);
        let clean = |text: String| {
            text.chars().map(|char| if char.is_control() { '_' } else { char }).collect::<String>()
        };
        let mut folders: Vec<String> = self
            .map
            .tag
            .path
            .iter()
            .flat_map(|folder| fill(folder).split('/').map(str::to_owned).collect::<Vec<_>>())
            .filter(|folder| !folder.is_empty())
            .map(clean)
            .collect();
        let mut name = clean(fill(&self.map.tag.name));
        if let Some((last, between)) = path.split_last() {
            folders.push(name);
            folders.extend(between.iter().cloned().map(clean));
            name = clean(last.clone());
        }
        let mut name = name.replace('/', "_");
        if name.is_empty() {
            "_".clone_into(&mut name);
        }
        let tag = Tag { path: folders, name, access: Access::Read, ..self.map.tag.clone() };
        // A topic may have a value and subtopics: then a folder already has the name.
        let again = Tag { name: format!("{} (value)", tag.name), ..tag.clone() };
        match feed.add(&tag, kind).or_else(|_| feed.add(&again, kind)) {
            Ok(position) => Some(position),
            Err(error) => {
                feed.failed(&Fault::other(self.topic, error));
                None
            }
        }
    }
}

/// Escapes a name as one level of a path: `/` as `~1` and `~` as `~0` (RFC 6901 §3), so that different names stay different.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Sends a client's write.
fn send(client: &Client, mqtt: &Mqtt, feed: &Feed, write: &Write) {
    let map = mqtt.maps.iter().find(|map| map.position == Some(write.position));
    let sent = map.and_then(|map| map.write.as_ref()).is_some_and(|(topic, template, retain)| {
        let value = match &write.value {
            // A text by itself is sent without quotation marks; within JSON it has them.
            Variant::String(text) if template == "{value}" => text.as_str().to_owned(),
            value => to_json(value).to_string(),
        };
        client.publish(topic, mqtt.qos, *retain, template.replace("{value}", &value))
    });
    feed.statistics().add(if sent { Count::Writes } else { Count::WriteErrors }, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use crate::plant::Plant;
    use crate::settings::SourceSettings;
    use crate::source::Adapter;
    use std::path::Path;
    use std::sync::Arc;
    use taktwerk::Server;
    use taktwerk_types::NodeId;

    #[test]
    fn names_with_slashes_become_variables_of_their_own() {
        let text = "[[source]]\nurl = \"mqtt://h\"\n[[tag]]\nsource = \"mq\"\nname = \"All\"\ntopic = \"t\"\nexpand = true\n";
        let mut sections = Sections::parse(Path::new("g.toml"), text).unwrap();
        let settings = SourceSettings::take(&mut sections.sources[0], "mq".to_owned(), None).unwrap();
        let mut mqtt = Mqtt::take(&mut sections.sources[0], &settings).unwrap();
        let tag = Tag::take(&mut sections.tags[0]).unwrap();
        mqtt.add_tag(&tag, &mut sections.tags[0], 0).unwrap();
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let (feed, _writes) =
            Feed::new(settings, Arc::new(Plant::new(server.namespace("urn:test"))), Vec::new());
        let map = &mqtt.maps[0];
        let place = Place { index: 0, map, topic: "t", found: &[] };
        let mut added = HashMap::new();
        let parts = map.reader.read(br#"{"a":{"b":1},"a/b":2,"a~1b":3}"#);
        let readings: Vec<_> =
            parts.into_iter().filter_map(|part| place.reading(part, &feed, &mut added)).collect();
        feed.deliver(readings);
        for (name, value) in [("a/b", 1.0), ("a~1b", 2.0), ("a~01b", 3.0)] {
            let variable = server.space().variable(&NodeId::string(2, format!("mq/All/{name}")));
            let number = variable.unwrap().get().value.and_then(|value| value.as_f64());
            assert_eq!(number, Some(value), "{name}");
        }
        assert_eq!(feed.statistics().snapshot().errors, 0);
    }
}
