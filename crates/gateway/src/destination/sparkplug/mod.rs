//! An edge node of Sparkplug B as destination.
//!
//! - [`name`]: tags as metrics of devices; [`edge`]: births, data and deaths; `session`: one connection.
//!
//! Sparkplug sends data with QoS 0, which brokers do not confirm. An unsubscription follows each batch: brokers process the
//! packets of a connection in order (MQTT 5 §4.6), so its answer confirms that the batch has arrived.

pub mod edge;
pub mod name;
mod session;

use super::settings::DestinationSettings;
use super::{Batch, Concern, Sink, Taken, WriteTag};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::mqtt::Broker;
use crate::sparkplug::is_level;
use core::time::Duration;
use edge::Edge;
use futures_util::future::BoxFuture;
use name::Names;
use session::{Job, Node};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use taktwerk_crypto::Entropy;
use taktwerk_net::entropy::OsEntropy;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// Approximate bytes of a metric in a birth in addition to its name: alias, type, time, a number, and their keys.
const METRIC_LEN: usize = 30;
/// Most levels of a device's path.
const LEVELS_MAX: u64 = 20;

/// An edge node at a broker.
pub struct SparkplugSink {
    node: Arc<Node>,
    device_levels: usize,
    description: String,
    link: Option<Link>,
}

/// The task that owns the connection. It also answers hosts while nothing is sent.
struct Link {
    jobs: mpsc::Sender<Job>,
    task: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        // The broker publishes the death.
        self.task.abort();
    }
}

impl SparkplugSink {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let broker = Broker::take(fields, &settings.name)?;
        let group = level_of(fields, "group", "\"Plant 1\"")?;
        let node = level_of(fields, "node", "\"Gateway 1\"")?;
        let primary_host = match fields.has("primary_host") {
            true => Some(level_of(fields, "primary_host", "\"SCADA\"")?),
            false => None,
        };
        let levels = fields.integer("device_levels", 0, LEVELS_MAX)?.unwrap_or(1) as usize;
        let historical_after = fields.span("historical_after")?.unwrap_or(Duration::from_secs(5));
        let description = format!("Sparkplug B edge node {group}/{node}, {}", broker.describe());
        // A returning node has the same client id. The broker then ends the old connection and publishes its death before the
        // birth of the new one.
        let broker = broker.named(format!("taktwerk-{group}-{node}"));
        let mut edge = Edge::new(group, node, Names::new(levels), historical_after, broker.payload_max);
        let obeys = fields.flag("commands")?.unwrap_or(false);
        if obeys {
            edge.number_from(first_alias());
        }
        Ok(Self {
            node: Arc::new(Node {
                broker,
                primary_host,
                deadline: settings.deadline,
                retry: settings.retry,
                retry_max: settings.retry_max,
                edge: Mutex::new(edge),
                obeys,
                write: OnceLock::new(),
            }),
            device_levels: levels,
            description,
            link: None,
        })
    }

    async fn send_all(&mut self, batch: &Batch) -> Result<Taken, Fault> {
        let link = self.link.take().filter(|link| !link.jobs.is_closed()).unwrap_or_else(|| {
            let (jobs, taken) = mpsc::channel(1);
            let task = tokio::spawn(session::run(Arc::clone(&self.node), taken));
            Link { jobs, task: task.abort_handle() }
        });
        let (reply, answer) = oneshot::channel();
        let ended = || Fault::Closed { target: self.node.broker.target() };
        let job = Job { batch: batch.clone(), reply };
        link.jobs.send(job).await.map_err(|_| ended())?;
        let result = answer.await.map_err(|_| ended())?;
        // If this is dropped before the answer, the connection is closed.
        self.link = Some(link);
        result
    }
}

/// A random first alias. Hosts may send commands with the aliases of the last run until they have the new births. Below 2^53, because
/// some programs keep numbers as Double.
fn first_alias() -> u64 {
    let mut random = [0; 4];
    OsEntropy.fill(&mut random);
    (u64::from(u32::from_be_bytes(random)) << 20) + 1
}

/// Takes a text that must be one level of a topic.
fn level_of(fields: &mut Fields, key: &'static str, example: &str) -> Result<String, Mistake> {
    let (line, text) = fields.required(key, example)?;
    if is_level(&text) {
        return Ok(text);
    }
    Err(fields.mistake_in(line, key, format!("{text:?} is no level of a topic"), "remove + # and /"))
}

impl Sink for SparkplugSink {
    fn describe(&self) -> String {
        self.description.clone()
    }

    fn review(&self, tags: &[String]) -> Option<Concern> {
        let mut names = Names::new(self.device_levels);
        let mut births: BTreeMap<Option<Arc<str>>, (usize, usize)> = BTreeMap::new();
        for name in tags.iter().filter_map(|tag| names.take(tag).ok()) {
            let (metrics, bytes) = births.entry(name.device).or_default();
            *metrics += 1;
            *bytes += name.metric.len() + METRIC_LEN;
        }
        let most = self.node.broker.payload_max;
        let (device, (metrics, bytes)) = births.into_iter().find(|(_, (_, bytes))| *bytes > most)?;
        let whose = device.map_or_else(|| "the node".to_owned(), |device| format!("the device {device:?}"));
        Some(Concern {
            key: "payload_max",
            problem: format!(
                "the birth of {whose} with {metrics} metrics has about {bytes} bytes, more than {most}"
            ),
            hint: "set payload_max to more, or device_levels so that devices have fewer metrics".to_owned(),
        })
    }

    fn take_commands(&mut self, write: WriteTag) {
        // It is called once.
        let _ = self.node.write.set(write);
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        Box::pin(self.send_all(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::block::Record;
    use crate::fields::Sections;
    use crate::sparkplug::payload::{Metric, Payload, Value};
    use prost::Message as _;
    use std::path::Path;
    use taktwerk_types::{StatusCode, UtcTime};

    fn sink(text: &str) -> Result<SparkplugSink, String> {
        let text = format!("[[destination]]\n{text}\n");
        let mut fields = Sections::parse(Path::new("g.toml"), &text).unwrap().destinations.remove(0);
        let settings = DestinationSettings::take(&mut fields, "d".to_owned()).unwrap();
        let sink = SparkplugSink::take(&mut fields, &settings).map_err(|error| error.to_string())?;
        fields.finish().map_err(|error| error.to_string())?;
        Ok(sink)
    }

    /// A host that has not received the births of the restarted gateway sends commands with the aliases of those before.
    #[test]
    fn aliases_of_an_earlier_run_name_no_tag() {
        let time = UtcTime::from_unix(Duration::from_secs(1_700_000_000));
        let run = |tags: [&str; 2]| {
            let sink = sink("url = \"mqtt://b\"\ngroup = \"G\"\nnode = \"E\"\ncommands = true").unwrap();
            let record = |tag: &str| Record {
                number: 1,
                tag: tag.into(),
                value: 1.5.into(),
                status: StatusCode::GOOD,
                time,
                received: time,
            };
            let batch = Batch {
                queue: "q".to_owned(),
                records: tags.map(record).into(),
                is_last: true,
                next: 100,
                is_parked: false,
            };
            let told = sink.node.edge.lock().unwrap().tell(&batch, time);
            let birth = Payload::decode(&*told.messages[1].payload).unwrap();
            let aliases: Vec<u64> = birth.metrics.iter().filter_map(|metric| metric.alias).collect();
            assert!(aliases.len() == 2 && aliases.iter().all(|alias| *alias < 1 << 53), "{aliases:?}");
            (sink, aliases)
        };
        let (before, now) = (run(["L/A", "L/B"]), run(["L/B", "L/A"]));
        for alias in &before.1 {
            let metric = Metric { alias: Some(*alias), value: Some(Value::Double(2.5)), ..Metric::default() };
            let payload = Payload { timestamp: Some(1), metrics: vec![metric], seq: None };
            let obeys = |sink: &SparkplugSink| {
                let edge = sink.node.edge.lock().unwrap();
                edge.command(Some("L"), &payload)[0].is_ok()
            };
            assert!(obeys(&before.0) && !obeys(&now.0), "{:?} {:?}", before.1, now.1);
        }
    }

    #[test]
    fn names_in_topics_are_checked() {
        let fine = "url = \"mqtt://b\"\ngroup = \"Plant 1\"\nnode = \"G\"\nprimary_host = \"SCADA\"\ndevice_levels = 2";
        let found = sink(fine).unwrap();
        assert_eq!(found.describe(), "Sparkplug B edge node Plant 1/G, MQTT 3.1.1 b:1883");
        for (text, said) in [
            (
                fine.replace("Plant 1", "a/b"),
                "g.toml:3: group: \"a/b\" is no level of a topic; remove + # and /",
            ),
            (fine.replace("node = \"G\"\n", ""), "g.toml:1: node is missing; write node = \"Gateway 1\""),
            (fine.replace("SCADA", "#"), "g.toml:5: primary_host: \"#\" is no level of a topic"),
            (fine.replace("levels = 2", "levels = 21"), "g.toml:6: device_levels: the number does not fit"),
        ] {
            let error = sink(&text).err().unwrap();
            assert!(error.starts_with(said), "{error}\n{said}");
        }
    }
}
