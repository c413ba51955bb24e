//! Lists the topics of a broker whose messages arrive while listening.

use super::Mqtt;
use super::payload::{Reader, typed};
use super::topic::TOPIC_LEN_MAX;
use crate::fault::Fault;
use crate::json_path::written;
use crate::mqtt::client::{Connection, Incoming};
use crate::offer::{Offer, Question, quoted};
use core::time::Duration;
use std::collections::BTreeMap;
use tokio::time::{Instant, sleep, timeout};

/// Interval for checking whether to end early.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of a message that are kept.
const PAYLOAD_KEPT: usize = 16 << 10;

pub(super) async fn offers(mqtt: &Mqtt, question: &Question) -> Result<Vec<Offer>, Fault> {
    let target = mqtt.broker.target();
    let deadline = question.settings.deadline;
    let mut connection = Connection::new(&mqtt.broker, deadline, 1)?;
    let filter = question.below.as_deref().unwrap_or("#");
    if !connection.client.subscribe(filter, 0) {
        return Err(Fault::other(target, format!("{filter:?} is no filter of topics")));
    }
    let mut messages: BTreeMap<String, bytes::Bytes> = BTreeMap::new();
    let mut end = Instant::now() + deadline;
    let mut is_connected = false;
    while Instant::now() < end && !question.is_stopped() {
        let incoming = tokio::select! {
            incoming = connection.events.next(&target) => incoming?,
            () = sleep(LOOK) => continue,
        };
        match incoming {
            Incoming::Connected => {
                is_connected = true;
                end = Instant::now() + question.within;
            }
            Incoming::Message(topic, payload, _) => {
                let has_room = messages.len() < question.most || messages.contains_key(&topic);
                if topic.len() <= TOPIC_LEN_MAX && has_room {
                    let kept = payload.slice(..payload.len().min(PAYLOAD_KEPT));
                    messages.insert(topic, kept);
                }
            }
            Incoming::Refused => {
                return Err(Fault::other(
                    target,
                    format!("the broker refuses {filter:?}; may this user read it?"),
                ));
            }
            Incoming::Taken(_) | Incoming::Unsubscribed | Incoming::Other => {}
        }
    }
    if !is_connected && !question.is_stopped() {
        return Err(Fault::NoAnswer { target, after: deadline });
    }
    // Best effort: the broker may be slow.
    let _ = timeout(LOOK, connection.disconnect(&target)).await;
    let all = messages.iter().flat_map(|(topic, payload)| of_message(topic, payload));
    Ok(all.take(question.most).collect())
}

/// The values of a message: one, or each of an object.
fn of_message(topic: &str, payload: &[u8]) -> Vec<Offer> {
    let parts = Reader { expand: true, ..Reader::default() }.read(payload);
    let mut folders: Vec<String> =
        topic.split('/').filter(|level| !level.is_empty()).map(str::to_owned).collect();
    folders.iter_mut().for_each(|folder| *folder = clean(folder));
    let last = folders.pop().unwrap_or_else(|| "_".to_owned());
    let offer = |part: super::payload::Part| {
        let (kind, _) = typed(&part.json);
        let mut settings = vec![("topic", quoted(topic)), ("type", quoted(&format!("{:?}", kind.element)))];
        let mut path = folders.clone();
        let mut name = last.clone();
        let mut address = topic.to_owned();
        if let Some((leaf, between)) = part.path.split_last() {
            match written(&part.path) {
                Some(json) => {
                    address = format!("{topic} {json}");
                    settings.insert(1, ("json", quoted(&json)));
                }
                None => settings.clear(),
            }
            path.push(core::mem::replace(&mut name, clean(leaf)));
            path.extend(between.iter().map(|name| clean(name)));
        }
        if kind.is_array {
            // A tag has a single value.
            settings.clear();
        }
        Offer { address, name, path, kind: kind.to_string(), value: part.json.to_string(), settings }
    };
    parts.into_iter().map(offer).collect()
}

/// A valid name of a folder or variable.
fn clean(name: &str) -> String {
    name.chars().map(|char| if char.is_control() || char == '/' { '_' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_offers_its_values() {
        let one = of_message("line/1/temperature", b"20.5");
        assert_eq!(one.len(), 1);
        assert_eq!((one[0].address.as_str(), one[0].kind.as_str()), ("line/1/temperature", "Double"));
        assert_eq!(one[0].path, ["line", "1"]);
        let many = of_message("line/1/state", b"{\"a\": 1, \"b.c\": {\"d\": \"x\"}}");
        let addresses: Vec<&str> = many.iter().map(|offer| offer.address.as_str()).collect();
        assert_eq!(addresses, ["line/1/state $.a", "line/1/state $['b.c'].d"]);
        let tag = many[1].tag("broker").unwrap();
        assert!(tag.contains("path = \"line/1/state/b.c\"\n"), "{tag}");
        assert!(tag.contains("json = \"$['b.c'].d\"\ntype = \"String\"\n"), "{tag}");
    }
}
