//! State of edge nodes in a host application: births, deaths, aliases, sequence numbers. Pure logic: no connection, no clock.
//!
//! The host requests a rebirth after a gap in the sequence, or after a metric without birth. Until the rebirth, all data of the
//! node are ignored (Sparkplug 3.0, 6.4.8 and 6.4.27).

use crate::sparkplug::datatype::{self, TEMPLATE};
use crate::sparkplug::elements::are_few;
use crate::sparkplug::payload::{Metric, Payload, Property, Value};
use crate::value::Kind;
use core::time::Duration;
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Least time between rebirth requests to a node.
const REBIRTH_PAUSE: Duration = Duration::from_secs(5);
/// Most edge nodes that are remembered.
const NODES_MAX: usize = 4096;
/// Longest name of a metric.
const NAME_LEN_MAX: usize = 500;

/// The path of a metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MetricId {
    /// The group.
    pub group: String,
    /// The edge node.
    pub node: String,
    /// The device; `None` for metrics of the node itself.
    pub device: Option<String>,
    /// The name.
    pub name: String,
}

/// The effect of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A value, or why there is none.
    Value {
        /// The metric.
        id: Arc<MetricId>,
        /// Its type.
        kind: Kind,
        /// The Sparkplug data type.
        datatype: u32,
        /// The value; empty if there is none.
        value: Variant,
        /// Its status.
        status: StatusCode,
        /// The source timestamp.
        time: Option<UtcTime>,
        /// The engineering unit from the birth.
        units: Option<String>,
    },
    /// Request a rebirth from an edge node.
    Rebirth {
        /// The group.
        group: String,
        /// The edge node.
        node: String,
    },
    /// Number of values that cannot be shown: of an unsupported type, outdated, or beyond the limit.
    Dropped(usize),
    /// An invalid message.
    Invalid,
}

/// A metric from a birth.
#[derive(Debug)]
struct Known {
    id: Arc<MetricId>,
    kind: Kind,
    datatype: u32,
}

#[derive(Debug, Default)]
struct Node {
    is_online: bool,
    /// The session number, so that a late death of the previous session is not mistaken for the current one's.
    session: Option<u64>,
    seq: u8,
    /// Metrics by device and name; `None` for metrics that are not shown. Data of those are no reason for a rebirth.
    metrics: HashMap<(Option<String>, String), Option<Arc<Known>>>,
    /// Aliases of existing metrics only.
    aliases: HashMap<u64, (Option<String>, String)>,
    asked: Option<Instant>,
}

/// The edge nodes.
#[derive(Debug)]
pub struct Host {
    nodes: HashMap<(String, String), Node>,
    metrics: usize,
    metrics_max: usize,
}

impl Host {
    /// A host without known nodes.
    #[must_use]
    pub fn new(metrics_max: usize) -> Self {
        Self { nodes: HashMap::new(), metrics: 0, metrics_max }
    }

    /// Processes a message.
    pub fn receive(&mut self, topic: &str, payload: &[u8], now: Instant) -> Vec<Told> {
        let levels: Vec<&str> = topic.split('/').collect();
        let (group, kind, name, device) = match *levels.as_slice() {
            ["spBv1.0", group, kind, node] => (group, kind, node, None),
            ["spBv1.0", group, kind, node, device] => (group, kind, node, Some(device.to_owned())),
            _ => return Vec::new(),
        };
        let is_node = device.is_none();
        if !matches!(
            (kind, is_node),
            ("NBIRTH" | "NDATA" | "NDEATH", true) | ("DBIRTH" | "DDATA" | "DDEATH", false)
        ) {
            // Commands, and states of hosts.
            return Vec::new();
        }
        let payload = are_few(payload).then(|| Payload::decode(payload));
        let Some(Ok(payload)) = payload else { return vec![Told::Invalid] };
        let key = (group.to_owned(), name.to_owned());
        if !self.nodes.contains_key(&key) && self.nodes.len() >= NODES_MAX {
            return vec![Told::Dropped(payload.metrics.len())];
        }
        let node = self.nodes.entry(key).or_default();
        let mut turn = Turn {
            group,
            name,
            device,
            node,
            metrics: &mut self.metrics,
            metrics_max: self.metrics_max,
            time: payload.timestamp.and_then(datatype::time),
            told: Vec::new(),
        };
        match kind {
            "NBIRTH" => turn.node_birth(payload),
            "NDEATH" => turn.node_death(&payload),
            kind => {
                if !turn.follows(payload.seq) {
                    turn.ask(now);
                    return turn.told;
                }
                match kind {
                    "DBIRTH" => {
                        turn.forget_device();
                        turn.birth(payload.metrics);
                    }
                    "DDEATH" => turn.lost(),
                    _ => {
                        if !turn.data(payload.metrics) {
                            turn.ask(now);
                        }
                    }
                }
            }
        }
        turn.told
    }
}

/// The processing of one message of a node.
struct Turn<'a> {
    group: &'a str,
    name: &'a str,
    device: Option<String>,
    node: &'a mut Node,
    metrics: &'a mut usize,
    metrics_max: usize,
    time: Option<UtcTime>,
    told: Vec<Told>,
}

impl Turn<'_> {
    fn node_birth(&mut self, payload: Payload) {
        let Some(seq) = payload.seq.and_then(|seq| u8::try_from(seq).ok()) else {
            self.told.push(Told::Invalid);
            return;
        };
        *self.metrics = self.metrics.saturating_sub(self.node.metrics.len());
        // Devices are born after their node.
        let asked = self.node.asked.take();
        *self.node = Node { is_online: true, session: session(&payload), seq, asked, ..Node::default() };
        self.birth(payload.metrics);
    }

    fn node_death(&mut self, payload: &Payload) {
        if !self.node.is_online || session(payload) != self.node.session {
            return;
        }
        self.node.is_online = false;
        self.lost();
    }

    /// Whether a message is the next one in the sequence.
    fn follows(&mut self, seq: Option<u64>) -> bool {
        let expected = self.node.seq.wrapping_add(1);
        if !self.node.is_online || seq != Some(u64::from(expected)) {
            return false;
        }
        self.node.seq = expected;
        true
    }

    /// Requests a rebirth. Until then the state of the node is unknown.
    fn ask(&mut self, now: Instant) {
        if self.node.is_online {
            self.node.is_online = false;
            self.lost();
        }
        if self.node.asked.is_none_or(|asked| now.duration_since(asked) >= REBIRTH_PAUSE) {
            self.node.asked = Some(now);
            let (group, node) = (self.group.to_owned(), self.name.to_owned());
            self.told.push(Told::Rebirth { group, node });
        }
    }

    /// Invalidates the values of the device, or of the node with all its devices.
    fn lost(&mut self) {
        let is_meant = |known: &&Arc<Known>| self.device.is_none() || known.id.device == self.device;
        let mut lost: Vec<&Arc<Known>> = self.node.metrics.values().flatten().filter(is_meant).collect();
        lost.sort_by(|one, two| one.id.cmp(&two.id));
        let lost = lost.into_iter().map(|known| Told::Value {
            id: Arc::clone(&known.id),
            kind: known.kind,
            datatype: known.datatype,
            value: Variant::Empty,
            status: StatusCode::BAD_NO_COMMUNICATION,
            time: self.time,
            units: None,
        });
        self.told.extend(lost);
    }

    fn forget_device(&mut self) {
        let before = self.node.metrics.len();
        self.node.metrics.retain(|(device, _), _| *device != self.device);
        self.node.aliases.retain(|_, (device, _)| *device != self.device);
        *self.metrics = self.metrics.saturating_sub(before - self.node.metrics.len());
    }

    fn birth(&mut self, metrics: Vec<Metric>) {
        for metric in metrics {
            let Some(name) = metric.name.clone().filter(|name| name.len() <= NAME_LEN_MAX) else {
                self.told.push(Told::Invalid);
                continue;
            };
            let alias = metric.alias;
            self.each(name.clone(), metric, true);
            let key = (self.device.clone(), name);
            let node = &mut *self.node;
            if let Some(alias) = alias.filter(|_| node.metrics.contains_key(&key))
                && (node.aliases.len() < node.metrics.len() || node.aliases.contains_key(&alias))
            {
                node.aliases.insert(alias, key);
            }
        }
    }

    /// Processes values; false if a metric has no birth.
    fn data(&mut self, metrics: Vec<Metric>) -> bool {
        let mut is_known = true;
        for metric in metrics {
            let name = match (&metric.name, metric.alias) {
                (Some(name), _) => Some(name.clone()),
                (None, Some(alias)) => match self.node.aliases.get(&alias) {
                    Some((device, name)) if *device == self.device => Some(name.clone()),
                    _ => None,
                },
                (None, None) => None,
            };
            // Metrics beyond the limit have no alias either.
            let is_full = *self.metrics >= self.metrics_max;
            is_known &= name.map_or(is_full, |name| self.each(name, metric, false));
        }
        is_known
    }

    /// Registers a metric from a birth; false if the limit is reached.
    fn admit(&mut self, key: (Option<String>, String), datatype: u32) -> bool {
        if self.node.metrics.contains_key(&key) {
            return true;
        }
        if *self.metrics >= self.metrics_max {
            return false;
        }
        let known = datatype::kind(datatype).map(|kind| {
            let id = MetricId {
                group: self.group.to_owned(),
                node: self.name.to_owned(),
                device: key.0.clone(),
                name: key.1.clone(),
            };
            Arc::new(Known { id: Arc::new(id), kind, datatype })
        });
        *self.metrics += 1;
        self.node.metrics.insert(key, known);
        true
    }

    /// Processes a metric, or the members of a template; false if a metric has no birth.
    fn each(&mut self, name: String, metric: Metric, is_birth: bool) -> bool {
        if let Some(Value::Template(template)) = metric.value {
            let mut is_known = true;
            if is_birth {
                // The template itself has an alias; its members are shown.
                self.admit((self.device.clone(), name.clone()), TEMPLATE);
            }
            if !template.is_definition.unwrap_or(false) {
                // The decoder limits the depth.
                for member in template.metrics {
                    let Some(part) = &member.name else { continue };
                    let name = format!("{name}/{part}");
                    is_known &= name.len() > NAME_LEN_MAX || self.each(name, member, is_birth);
                }
            }
            return is_known;
        }
        // Commands, and metrics of the protocol itself.
        if name.starts_with("Node Control/") || name.starts_with("Device Control/") || name == "bdSeq" {
            return true;
        }
        let key = (self.device.clone(), name);
        if is_birth && !self.admit(key.clone(), metric.datatype.unwrap_or(0)) {
            self.told.push(Told::Dropped(1));
            return true;
        }
        let known = match self.node.metrics.get(&key) {
            Some(Some(known)) => known,
            Some(None) => {
                self.told.push(Told::Dropped(usize::from(metric.datatype != Some(TEMPLATE))));
                return true;
            }
            None => return *self.metrics >= self.metrics_max,
        };
        if metric.is_historical.unwrap_or(false) {
            self.told.push(Told::Dropped(1));
            return true;
        }
        let (value, status) = reading(&metric, known.datatype);
        let units = match metric.property("engUnit").filter(|_| is_birth) {
            Some(Property::Text(units)) => Some(units.clone()),
            _ => None,
        };
        self.told.push(Told::Value {
            id: Arc::clone(&known.id),
            kind: known.kind,
            datatype: known.datatype,
            value,
            status,
            time: metric.timestamp.and_then(datatype::time).or(self.time),
            units,
        });
        true
    }
}

/// The value of a metric with its status, derived from the property `Quality`: 192 is good, 0 bad, 500 stale.
fn reading(metric: &Metric, datatype: u32) -> (Variant, StatusCode) {
    let quality = match metric.property("Quality") {
        Some(Property::Int(quality)) => u64::from(*quality),
        Some(Property::Long(quality)) => *quality,
        _ => 192,
    };
    if metric.is_null.unwrap_or(false) || (metric.value.is_none() && quality == 192) {
        return (Variant::Empty, StatusCode::BAD_NO_DATA);
    }
    let value = metric.value.as_ref().and_then(|value| datatype::decode(datatype, value));
    match (quality, value) {
        (192, Some(value)) => (value, StatusCode::GOOD),
        (500, Some(value)) => (value, StatusCode::UNCERTAIN_LAST_USABLE_VALUE),
        (192, None) => (Variant::Empty, StatusCode::BAD_TYPE_MISMATCH),
        _ => (Variant::Empty, StatusCode::BAD_DEVICE_FAILURE),
    }
}

/// The number of the session that a birth begins and a death ends.
fn session(payload: &Payload) -> Option<u64> {
    let metric = payload.metrics.iter().find(|metric| metric.name.as_deref() == Some("bdSeq"))?;
    match metric.value {
        Some(Value::Long(number)) => Some(number),
        Some(Value::Int(number)) => Some(u64::from(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
