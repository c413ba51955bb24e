//! One connection of a host application to a broker.

use super::host::{Host, MetricId, Told};
use super::{Place, Sparkplug};
use crate::fault::Fault;
use crate::feed::{Feed, Reading, Write, Writes};
use crate::mqtt::client::{Client, Connection, Incoming, Will, too_long};
use crate::sparkplug::datatype;
use crate::sparkplug::payload::{Metric, Payload, rebirth};
use crate::statistics::Count;
use crate::tag::{Access, Model, Scaling, Tag, units};
use crate::value::Kind;
use prost::Message;
use std::sync::Arc;
use std::time::Instant;
use taktwerk_net::clock::wall;
use tokio::time::timeout;

pub(super) async fn run(sparkplug: &mut Sparkplug, feed: &Feed, writes: &mut Writes) -> Result<(), Fault> {
    let target = sparkplug.broker.target();
    let deadline = feed.settings().deadline;
    let started = millis();
    // Edge nodes that wait for this primary host see from it whether the host is online (Sparkplug 3.0, 6.4.29).
    let state = sparkplug.host_id.as_ref().map(|id| format!("spBv1.0/STATE/{id}"));
    let told = |online: bool| format!("{{\"online\":{online},\"timestamp\":{started}}}");
    let will = state.clone().map(|topic| Will { topic, payload: told(false).into_bytes(), retain: true });
    let filters = sparkplug.groups.len();
    let mut connection = Connection::with_will(&sparkplug.broker, deadline, filters, will)?;
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
    for group in &sparkplug.groups {
        if !connection.client.subscribe(&format!("spBv1.0/{group}/#"), 1) {
            feed.failed(&Fault::other(target.as_str(), format!("cannot subscribe to the group {group}")));
        }
    }
    if let Some(topic) = &state {
        connection.client.publish(topic, 1, true, told(true));
    }
    feed.connected();
    // State from before this connection may be outdated.
    let mut host = Host::new(sparkplug.nodes_max);
    loop {
        tokio::select! {
            write = writes.next() => {
                let sent = send(sparkplug, &connection.client, &write);
                feed.statistics().add(if sent { Count::Writes } else { Count::WriteErrors }, 1);
            }
            incoming = connection.events.next(&target) => match incoming? {
                Incoming::Message(topic, payload, _) if payload.len() > sparkplug.broker.payload_max => {
                    feed.statistics().add(Count::Dropped, 1);
                    feed.failed(&too_long(&topic, sparkplug.broker.payload_max));
                }
                Incoming::Message(topic, payload, _) => {
                    let told = host.receive(&topic, &payload, Instant::now());
                    take(sparkplug, &connection.client, feed, told);
                }
                Incoming::Refused => {
                    feed.failed(&Fault::other(target.as_str(), "the broker refuses a group; may this user read it?"));
                }
                Incoming::Connected => feed.connected(),
                Incoming::Taken(_) | Incoming::Unsubscribed | Incoming::Other => {}
            },
        }
    }
}

fn millis() -> u64 {
    u64::try_from(wall().unix_nanos() / 1_000_000).unwrap_or(0)
}

fn take(sparkplug: &mut Sparkplug, client: &Client, feed: &Feed, told: Vec<Told>) {
    let mut readings = Vec::new();
    for told in told {
        match told {
            Told::Value { id, kind, datatype, value, status, time, units } => {
                let place = place(sparkplug, feed, &id, kind, datatype, units);
                match place {
                    Some(place) => readings.push((place.position, Reading { value, status, time })),
                    None => feed.statistics().add(Count::Dropped, 1),
                }
            }
            Told::Rebirth { group, node } => {
                feed.statistics().add(Count::Requests, 1);
                client.publish(&format!("spBv1.0/{group}/NCMD/{node}"), 0, false, rebirth(millis()));
            }
            Told::Dropped(count) => feed.statistics().add(Count::Dropped, count),
            Told::Invalid => feed.statistics().add(Count::Invalid, 1),
        }
    }
    feed.deliver(readings);
}

/// The variable of a metric, which is added if it does not exist.
fn place(
    sparkplug: &mut Sparkplug,
    feed: &Feed,
    id: &Arc<MetricId>,
    kind: Kind,
    datatype: u32,
    unit: Option<String>,
) -> Option<Place> {
    if let Some(place) = sparkplug.added.get(id) {
        return *place;
    }
    if sparkplug.added.len() >= sparkplug.nodes_max {
        return None;
    }
    let named = sparkplug.tags.iter().find(|(_, other)| *other == **id);
    let tag = match named {
        Some((tag, _)) => Some(tag.clone()),
        None => sparkplug.expand.then(|| tag_of(&feed.settings().name, id, sparkplug.writable)),
    };
    let place = tag.and_then(|mut tag| {
        tag.units = tag.units.or_else(|| unit.filter(|_| kind.is_number()).map(|unit| units(&unit)));
        match feed.add(&tag, kind) {
            Ok(position) => Some(Place { position, datatype }),
            Err(error) => {
                feed.failed(&Fault::other(format!("{}/{}: {}", id.group, id.node, id.name), error));
                None
            }
        }
    });
    sparkplug.added.insert(Arc::clone(id), place);
    place
}

/// A metric as a tag: folders for group, node, device and the parts of its name.
fn tag_of(source: &str, id: &MetricId, writable: bool) -> Tag {
    let clean = |name: &str| name.replace(char::is_control, "_");
    let mut parts: Vec<String> = id.name.split('/').filter(|part| !part.is_empty()).map(clean).collect();
    let name = parts.pop().unwrap_or_else(|| "_".to_owned());
    let mut path = vec![source.to_owned(), clean(&id.group), clean(&id.node)];
    path.extend(id.device.as_deref().map(clean));
    path.extend(parts);
    Tag {
        source: source.to_owned(),
        name,
        path,
        description: None,
        kind: None,
        scaling: Scaling::IDENTITY,
        units: None,
        range: None,
        states: Vec::new(),
        deadband: 0.0,
        access: if writable { Access::ReadWrite } else { Access::Read },
        historize: false,
        expect_every: None,
        stale_after: None,
        lost_after: None,
        roles: Default::default(),
        alarm: None,
        model: Model::default(),
    }
}

/// Sends a client's write as a command; the node publishes the resulting value.
fn send(sparkplug: &Sparkplug, client: &Client, write: &Write) -> bool {
    let is_meant = |place: &Option<Place>| place.is_some_and(|place| place.position == write.position);
    let Some((id, Some(place))) = sparkplug.added.iter().find(|(_, place)| is_meant(place)) else {
        return false;
    };
    let kind = datatype::kind(place.datatype);
    // The reverse scaling yields a Double.
    let value = kind.and_then(|kind| kind.coerce(write.value.clone()));
    let Some(value) = value.and_then(|value| datatype::encode(place.datatype, &value)) else { return false };
    let metric = Metric { timestamp: Some(millis()), ..Metric::new(&id.name, place.datatype, value) };
    let payload = Payload { timestamp: Some(millis()), metrics: vec![metric], seq: None };
    let topic = match &id.device {
        Some(device) => format!("spBv1.0/{}/DCMD/{}/{device}", id.group, id.node),
        None => format!("spBv1.0/{}/NCMD/{}", id.group, id.node),
    };
    client.publish(&topic, 0, false, payload.encode_to_vec())
}
