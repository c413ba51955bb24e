//! The messages of an edge node: births, data and deaths with their sequence numbers (Sparkplug 3.0, 6.4). Pure logic: no
//! connection, no clock.
//!
//! Old values of a backlog are marked as historical, so that hosts record them without showing them. At the end of the backlog,
//! each metric whose newest value was historical is sent once more as current.

use super::name::{MetricName, Names};
use crate::destination::Batch;
use crate::destination::block::Record;
use crate::sparkplug::datatype::{self, BOOLEAN};
use crate::sparkplug::payload::{Metric, Payload, PropertySet, Value};
use core::time::Duration;
use prost::Message as _;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use taktwerk_types::{StatusCode, UtcTime, Variant};

/// Most bytes of a value in addition to itself and its name: alias, type, time, quality, and their keys.
const OVERHEAD: usize = 64;
/// Most metrics in one data message.
const METRICS_MAX: usize = 500;
/// The type of metrics without a value yet: String.
const UNKNOWN: u32 = 12;
/// The type of `bdSeq`: UInt64.
const UINT64: u32 = 8;
const SESSION: &str = "bdSeq";
/// The metric by which hosts request births.
pub const REBIRTH: &str = "Node Control/Rebirth";

/// A message to the broker, with QoS 0 and not retained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its topic.
    pub topic: String,
    /// The payload.
    pub payload: Vec<u8>,
}

/// The messages for a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The number of records that cannot be sent.
    pub refused: usize,
    /// The reason.
    pub reason: Option<String>,
}

/// A known tag.
#[derive(Debug)]
struct Known {
    device: Option<Arc<str>>,
    metric: String,
    alias: u64,
    datatype: u32,
    value: Variant,
    status: StatusCode,
    time: UtcTime,
    /// Whether hosts have its newest value as current.
    is_shown: bool,
}

/// An edge node.
#[derive(Debug)]
pub struct Edge {
    group: String,
    node: String,
    names: Names,
    historical_after: Duration,
    payload_max: usize,
    /// Sorted, so that births are reproducible.
    tags: BTreeMap<Arc<str>, Known>,
    /// The tags by their aliases.
    aliases: HashMap<u64, Arc<str>>,
    next_alias: u64,
    seq: u8,
    session: u8,
    is_born: bool,
    /// Devices that need a new birth because their metrics changed; `None` is the node itself.
    stale: BTreeSet<Option<Arc<str>>>,
}

impl Edge {
    /// An edge node without tags. Values older than `historical_after` are historical. Data messages have at most half of
    /// `payload_max` bytes, and values larger than a quarter are rejected.
    #[must_use]
    pub fn new(
        group: String,
        node: String,
        names: Names,
        historical_after: Duration,
        payload_max: usize,
    ) -> Self {
        Self {
            group,
            node,
            names,
            historical_after,
            payload_max,
            tags: BTreeMap::new(),
            aliases: HashMap::new(),
            next_alias: 1,
            seq: 0,
            session: 0,
            is_born: false,
            stale: BTreeSet::new(),
        }
    }

    /// Numbers the aliases of tags from here on. Aliases of another edge node with the same name then mean nothing here.
    pub fn number_from(&mut self, first: u64) {
        self.next_alias = first;
    }

    /// Applies the broker's maximum packet size.
    pub fn limit(&mut self, payload_max: usize) {
        self.payload_max = payload_max;
    }

    /// Whether it has any tags.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        !self.tags.is_empty()
    }

    /// The topic of its messages of a kind: `NDATA`, `NCMD`.
    #[must_use]
    pub fn topic(&self, kind: &str, device: Option<&str>) -> String {
        let Self { group, node, .. } = self;
        match device {
            Some(device) => format!("spBv1.0/{group}/{kind}/{node}/{device}"),
            None => format!("spBv1.0/{group}/{kind}/{node}"),
        }
    }

    /// A connection begins: returns the death message for the broker. The birth has the same number.
    pub fn connect(&mut self, now: UtcTime) -> Message {
        self.is_born = false;
        let payload =
            Payload { timestamp: Some(millis(now)), metrics: vec![self.session_metric(now)], seq: None };
        Message { topic: self.topic("NDEATH", None), payload: payload.encode_to_vec() }
    }

    /// A connection has ended; the next one gets another number.
    pub fn disconnected(&mut self) {
        self.is_born = false;
        self.session = self.session.wrapping_add(1);
    }

    fn session_metric(&self, now: UtcTime) -> Metric {
        let metric = Metric::new(SESSION, UINT64, Value::Long(u64::from(self.session)));
        Metric { timestamp: Some(millis(now)), ..metric }
    }

    /// The births of the node and all its devices.
    pub fn birth(&mut self, now: UtcTime) -> Vec<Message> {
        self.is_born = true;
        self.stale.clear();
        let rebirth = Metric::new(REBIRTH, BOOLEAN, Value::Boolean(false));
        let mut metrics = vec![self.session_metric(now), Metric { timestamp: Some(millis(now)), ..rebirth }];
        metrics.extend(self.metrics_of(None));
        self.seq = 0;
        let topic = self.topic("NBIRTH", None);
        let mut messages = vec![self.message(topic, metrics, now)];
        let devices: BTreeSet<Arc<str>> =
            self.tags.values().filter_map(|known| known.device.clone()).collect();
        messages.extend(devices.into_iter().map(|device| self.device_birth(&device, now)));
        messages
    }

    fn device_birth(&mut self, device: &Arc<str>, now: UtcTime) -> Message {
        let metrics = self.metrics_of(Some(device));
        let topic = self.topic("DBIRTH", Some(device));
        self.message(topic, metrics, now)
    }

    /// All metrics of a device, or of the node, with their current values.
    fn metrics_of(&mut self, device: Option<&Arc<str>>) -> Vec<Metric> {
        let of_device = self.tags.values_mut().filter(|known| known.device.as_ref() == device);
        let metrics = of_device.map(|known| {
            known.is_shown = true;
            let told = metric(known.datatype, &known.value, known.status, known.time);
            Metric {
                name: Some(known.metric.clone()),
                alias: Some(known.alias),
                datatype: Some(known.datatype),
                ..told
            }
        });
        metrics.collect()
    }

    /// A message with the next sequence number.
    fn message(&mut self, topic: String, metrics: Vec<Metric>, now: UtcTime) -> Message {
        let payload = Payload { timestamp: Some(millis(now)), metrics, seq: Some(u64::from(self.seq)) };
        self.seq = self.seq.wrapping_add(1);
        Message { topic, payload: payload.encode_to_vec() }
    }

    /// The messages for a batch, preceded by births where necessary.
    pub fn tell(&mut self, batch: &Batch, now: UtcTime) -> Told {
        let mut told = Told::default();
        let mut last: HashMap<&str, u64> = HashMap::new();
        let mut taken = Vec::new();
        for record in &batch.records {
            match self.know(record) {
                Ok(()) => {
                    last.insert(&record.tag, record.number);
                    taken.push(record);
                }
                Err(reason) => {
                    told.refused += 1;
                    told.reason = Some(reason);
                }
            }
        }
        if !self.is_born || self.stale.contains(&None) {
            told.messages = self.birth(now);
        } else {
            for device in core::mem::take(&mut self.stale).into_iter().flatten() {
                let birth = self.device_birth(&device, now);
                told.messages.push(birth);
            }
        }
        let mut data: BTreeMap<Option<Arc<str>>, Vec<Metric>> = BTreeMap::new();
        for record in taken {
            let Some(known) = self.tags.get_mut(&record.tag) else { continue };
            let is_newest = last.get(&*record.tag) == Some(&record.number);
            let waited = now.unix_nanos().saturating_sub(record.received.unix_nanos());
            let is_old = waited > self.historical_after.as_nanos() as i128;
            let is_historical = is_old && !(is_newest && batch.is_last);
            known.value.clone_from(&record.value);
            (known.status, known.time, known.is_shown) = (record.status, record.time, !is_historical);
            let told = metric(known.datatype, &record.value, record.status, record.time);
            let is_historical = is_historical.then_some(true);
            data.entry(known.device.clone()).or_default().push(Metric {
                alias: Some(known.alias),
                is_historical,
                ..told
            });
        }
        if batch.is_last {
            for known in self.tags.values_mut().filter(|known| !known.is_shown) {
                known.is_shown = true;
                let told = metric(known.datatype, &known.value, known.status, known.time);
                data.entry(known.device.clone())
                    .or_default()
                    .push(Metric { alias: Some(known.alias), ..told });
            }
        }
        for (device, mut metrics) in data {
            let topic = self.topic(if device.is_some() { "DDATA" } else { "NDATA" }, device.as_deref());
            while !metrics.is_empty() {
                let mut bytes = 0;
                let fits = metrics.iter().take(METRICS_MAX).take_while(|metric| {
                    bytes += framed(metric);
                    bytes <= self.payload_max / 2
                });
                // One always fits: it has at most half that size.
                let count = fits.count().max(1);
                let rest = metrics.split_off(count);
                let message = self.message(topic.clone(), metrics, now);
                told.messages.push(message);
                metrics = rest;
            }
        }
        told
    }

    /// The tags and values of a command to the node or to a device (NCMD and DCMD). Metrics that are no command
    /// to a tag are errors.
    pub fn command(
        &self,
        device: Option<&str>,
        payload: &Payload,
    ) -> Vec<Result<(Arc<str>, Variant), String>> {
        let of_device = self.tags.iter().filter(|(_, known)| known.device.as_deref() == device);
        let mut names: Option<HashMap<&str, &Arc<str>>> = None;
        let commands = payload.metrics.iter().filter(|metric| metric.name.as_deref() != Some(REBIRTH));
        let commands = commands.map(|metric| {
            let what = || match (&metric.name, metric.alias) {
                (Some(name), _) => format!("the metric {name:?}"),
                (None, Some(alias)) => format!("the metric with alias {alias}"),
                (None, None) => "a metric without name and alias".to_owned(),
            };
            let tag = match (metric.alias, &metric.name) {
                (Some(alias), _) => self.aliases.get(&alias),
                (None, Some(name)) => {
                    let all = names.get_or_insert_with(|| {
                        of_device.clone().map(|(tag, known)| (known.metric.as_str(), tag)).collect()
                    });
                    all.get(name.as_str()).copied()
                }
                (None, None) => None,
            };
            let known = tag.and_then(|tag| Some((tag, self.tags.get(tag)?)));
            let Some((tag, known)) = known.filter(|(_, known)| known.device.as_deref() == device) else {
                return Err(format!("{} does not exist here", what()));
            };
            let datatype = metric.datatype.unwrap_or(known.datatype);
            let value = metric.value.as_ref().filter(|_| metric.is_null != Some(true));
            match value.and_then(|value| datatype::decode(datatype, value)) {
                Some(value) => Ok((Arc::clone(tag), value)),
                None => Err(format!("{} has no value of its type", what())),
            }
        });
        commands.collect()
    }

    /// Registers a record's tag with the type of its value.
    fn know(&mut self, record: &Record) -> Result<(), String> {
        let datatype = match &record.value {
            Variant::Empty => None,
            value => {
                let datatype = datatype::of(value);
                let encoded = datatype.and_then(|datatype| datatype::encode(datatype, value));
                let Some(encoded) = encoded else {
                    return Err(format!("{}: Sparkplug has no type for this value", record.tag));
                };
                let bare = Metric { value: Some(encoded), ..Metric::default() };
                let size = framed(&bare) + record.tag.len() + OVERHEAD;
                if size > self.payload_max / 4 {
                    let reason = "larger than a quarter of payload_max or of what the broker accepts; increase that limit";
                    return Err(format!("{}: a value of {size} bytes is {reason}", record.tag));
                }
                datatype
            }
        };
        if let Some(known) = self.tags.get_mut(&record.tag) {
            if let Some(datatype) = datatype.filter(|datatype| *datatype != known.datatype) {
                known.datatype = datatype;
                // A value of the previous type is invalid.
                (known.value, known.status) = (record.value.clone(), record.status);
                self.stale.insert(known.device.clone());
            }
            return Ok(());
        }
        let MetricName { device, metric } = self.names.take(&record.tag)?;
        self.stale.insert(device.clone());
        let known = Known {
            device,
            metric,
            alias: self.next_alias,
            datatype: datatype.unwrap_or(UNKNOWN),
            value: record.value.clone(),
            status: record.status,
            time: record.time,
            is_shown: true,
        };
        self.aliases.insert(self.next_alias, Arc::clone(&record.tag));
        self.next_alias += 1;
        self.tags.insert(Arc::clone(&record.tag), known);
        Ok(())
    }
}

fn millis(time: UtcTime) -> u64 {
    u64::try_from(time.unix_nanos() / 1_000_000).unwrap_or(0)
}

/// The size of a metric in a payload.
fn framed(metric: &Metric) -> usize {
    let len = metric.encoded_len();
    1 + prost::length_delimiter_len(len) + len
}

/// A metric without a name.
fn metric(datatype: u32, value: &Variant, status: StatusCode, time: UtcTime) -> Metric {
    let value = datatype::encode(datatype, value);
    let quality = match status {
        status if status.is_good() => None,
        status if status.is_bad() => Some(0),
        _ => Some(500),
    };
    Metric {
        timestamp: Some(millis(time)),
        is_null: value.is_none().then_some(true),
        properties: quality.map(PropertySet::quality),
        value,
        ..Metric::default()
    }
}

#[cfg(test)]
mod tests;
