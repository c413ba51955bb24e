//! Reads publishers, subscribers and brokers in the simulator's own files.

use super::super::study::StudyError;
use super::{FaultName, FaultSpec, Reader, SignalsSpec, one, span};
use serde::Deserialize;
use taktwerk_sim::scenario::fault::{NodeFault, Role, Which};
use taktwerk_sim::scenario::pubsub::{
    Broker, BrokerLimits, Encoding, Publishers, Quality, SecurityMode, Subscribers, Transport,
};
use taktwerk_sim::scenario::{FaultKind, Scenario, Signals};

/// Keep-alive interval of MQTT clients in seconds, as in `taktwerk-net`.
const KEEP_ALIVE: f64 = 10.0;
/// Default lifetime of the keys of a SecurityGroup, in seconds.
const KEY_LIFETIME: f64 = 3600.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrokerSpec {
    name: String,
    host: Option<String>,
    queue: Option<usize>,
    in_flight: Option<u16>,
    keep_alive_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TransportSpec {
    #[default]
    Udp,
    Mqtt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AddressSpec {
    Multicast,
    Unicast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EncodingSpec {
    #[default]
    Uadp,
    Json,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublisherSpec {
    name: String,
    #[serde(default = "one")]
    count: u32,
    link: Option<String>,
    host: Option<String>,
    #[serde(default)]
    transport: TransportSpec,
    address: Option<AddressSpec>,
    broker: Option<String>,
    qos: Option<u8>,
    #[serde(default)]
    encoding: EncodingSpec,
    publishing_ms: Option<f64>,
    keep_alive_ms: Option<f64>,
    #[serde(default = "one")]
    key_frame_count: u32,
    fields: Option<u32>,
    security: Option<String>,
    key_lifetime_s: Option<f64>,
    #[serde(default)]
    signals: Vec<SignalsSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriberSpec {
    name: String,
    #[serde(default = "one")]
    count: u32,
    publisher: Option<toml::Value>,
    link: Option<String>,
    host: Option<String>,
    qos: Option<u8>,
    timeout_ms: Option<f64>,
}

fn names<T>(all: &[T], name: impl Fn(&T) -> &str) -> Vec<&str> {
    all.iter().map(name).collect()
}

impl Reader<'_> {
    fn place(
        &self,
        key: impl Fn(&str) -> String,
        (link, host): (Option<&String>, Option<&String>),
        scenario: &Scenario,
    ) -> Result<(Option<usize>, Option<usize>), StudyError> {
        let links = names(&scenario.links, |link| &link.name);
        let hosts = names(&scenario.hosts, |host| &host.name);
        let link = link.map(|link| self.find(&key("link"), "link", link, &links)).transpose()?;
        let host = host.map(|host| self.find(&key("host"), "host", host, &hosts)).transpose()?;
        Ok((link, host))
    }

    fn quality(&self, key: &str, qos: Option<u8>) -> Result<Option<Quality>, StudyError> {
        match qos {
            None => Ok(None),
            Some(0) => Ok(Some(Quality::AtMostOnce)),
            Some(1) => Ok(Some(Quality::AtLeastOnce)),
            Some(other) => {
                let problem = format!("quality of service {other} is not simulated: write 0 or 1");
                Err(self.wrong(key, problem))
            }
        }
    }

    pub(super) fn broker(
        &self,
        at: usize,
        spec: &BrokerSpec,
        scenario: &Scenario,
    ) -> Result<Broker, StudyError> {
        let key = |field: &str| format!("broker.{at}.{field}");
        let (_, host) = self.place(key, (None, spec.host.as_ref()), scenario)?;
        if scenario.pubsub.brokers.iter().any(|other| other.name == spec.name) {
            return Err(self.wrong(&key("name"), "another broker has this name"));
        }
        let usual = BrokerLimits::default();
        let limits = BrokerLimits {
            queue: spec.queue.unwrap_or(usual.queue),
            in_flight: spec.in_flight.unwrap_or(usual.in_flight),
        };
        let keep_alive = self.seconds(&key("keep_alive_s"), spec.keep_alive_s.unwrap_or(KEEP_ALIVE))?;
        Ok(Broker { name: spec.name.clone(), host, limits, keep_alive })
    }

    fn transport(
        &self,
        at: usize,
        spec: &PublisherSpec,
        scenario: &Scenario,
    ) -> Result<Transport, StudyError> {
        let key = |field: &str| format!("publisher.{at}.{field}");
        let brokers = names(&scenario.pubsub.brokers, |broker| &broker.name);
        match spec.transport {
            TransportSpec::Udp => {
                for (field, is_given) in [("broker", spec.broker.is_some()), ("qos", spec.qos.is_some())] {
                    if is_given {
                        let problem = "UDP has no broker: leave it out, or write transport = \"mqtt\"";
                        return Err(self.wrong(&key(field), problem));
                    }
                }
                Ok(match spec.address {
                    Some(AddressSpec::Unicast) => Transport::Unicast,
                    _ => Transport::Multicast,
                })
            }
            TransportSpec::Mqtt => {
                if spec.address.is_some() {
                    let problem = "messages go to the broker: leave it out, or write transport = \"udp\"";
                    return Err(self.wrong(&key("address"), problem));
                }
                let Some(broker) = &spec.broker else {
                    let problem = "MQTT needs a broker: write broker = \"…\", the name of a [[broker]]";
                    return Err(self.wrong(&key("transport"), problem));
                };
                let broker = self.find(&key("broker"), "broker", broker, &brokers)?;
                let quality = self.quality(&key("qos"), spec.qos)?.unwrap_or_default();
                Ok(Transport::Broker(broker, quality))
            }
        }
    }

    pub(super) fn publishers(
        &self,
        at: usize,
        spec: &PublisherSpec,
        scenario: &Scenario,
    ) -> Result<Publishers, StudyError> {
        let key = |field: &str| format!("publisher.{at}.{field}");
        let (link, host) = self.place(key, (spec.link.as_ref(), spec.host.as_ref()), scenario)?;
        let Some(interval) = spec.publishing_ms else {
            let problem = "missing: write the publishing interval in milliseconds";
            return Err(self.wrong(&key("publishing_ms"), problem));
        };
        let security = match spec.security.as_deref().unwrap_or("None").to_ascii_lowercase().as_str() {
            "none" => SecurityMode::None,
            "sign" => SecurityMode::Sign,
            "signandencrypt" | "sign-and-encrypt" => SecurityMode::SignAndEncrypt,
            _ => {
                let given = spec.security.as_deref().unwrap_or_default();
                let problem = format!("there is no mode {given:?}: write None, Sign or SignAndEncrypt");
                return Err(self.wrong(&key("security"), problem));
            }
        };
        if security == SecurityMode::None && spec.key_lifetime_s.is_some() {
            let problem = "without security there are no keys: leave it out, or write security = \"Sign\"";
            return Err(self.wrong(&key("key_lifetime_s"), problem));
        }
        let mut signals = Vec::new();
        for (group, one) in spec.signals.iter().enumerate() {
            let period = self.ms(&key(&format!("signals.{group}.period_ms")), one.period_ms)?;
            signals.push(Signals { count: one.count, period, value_len: one.bytes });
        }
        let keep_alive = spec.keep_alive_ms.map(|ms| self.ms(&key("keep_alive_ms"), ms)).transpose()?;
        Ok(Publishers {
            name: spec.name.clone(),
            count: spec.count,
            link,
            host,
            transport: self.transport(at, spec, scenario)?,
            encoding: match spec.encoding {
                EncodingSpec::Uadp => Encoding::Uadp,
                EncodingSpec::Json => Encoding::Json,
            },
            publishing_interval: self.ms(&key("publishing_ms"), interval)?,
            keep_alive_time: keep_alive,
            key_frame_count: spec.key_frame_count,
            fields: spec.fields,
            security,
            key_lifetime: self
                .seconds(&key("key_lifetime_s"), spec.key_lifetime_s.unwrap_or(KEY_LIFETIME))?,
            signals,
        })
    }

    pub(super) fn subscribers(
        &self,
        at: usize,
        spec: &SubscriberSpec,
        scenario: &Scenario,
    ) -> Result<Subscribers, StudyError> {
        let key = |field: &str| format!("subscriber.{at}.{field}");
        let (link, host) = self.place(key, (spec.link.as_ref(), spec.host.as_ref()), scenario)?;
        // Figures of subscribers and clients share one namespace.
        let taken = scenario.clients.iter().map(|clients| &clients.name);
        let mut taken = taken.chain(scenario.pubsub.subscribers.iter().map(|other| &other.name));
        if taken.any(|name| *name == spec.name) {
            return Err(self.wrong(&key("name"), "another subscriber or client has this name"));
        }
        let known = names(&scenario.pubsub.publishers, |publishers| &publishers.name);
        let mut publishers = Vec::new();
        for name in self.listed(&key("publisher"), spec.publisher.as_ref())? {
            publishers.push(self.find(&key("publisher"), "publisher", name, &known)?);
        }
        let timeout = spec.timeout_ms.map(|ms| self.ms(&key("timeout_ms"), ms)).transpose()?;
        Ok(Subscribers {
            name: spec.name.clone(),
            count: spec.count,
            publishers,
            link,
            host,
            quality: self.quality(&key("qos"), spec.qos)?,
            timeout,
        })
    }

    /// Parses a name, or a list of names.
    fn listed<'a>(&self, key: &str, value: Option<&'a toml::Value>) -> Result<Vec<&'a str>, StudyError> {
        let problem = "write the name of a [[publisher]], or a list such as [\"line-1\", \"line-2\"]";
        let wrong = || self.wrong(key, problem);
        match value {
            Some(toml::Value::String(name)) => Ok(vec![name]),
            Some(toml::Value::Array(all)) if !all.is_empty() => {
                all.iter().map(|one| one.as_str().ok_or_else(wrong)).collect()
            }
            _ => Err(wrong()),
        }
    }

    /// A fault of publishers, subscribers, a broker or an authority; `None` if the fault names none of them.
    pub(super) fn node_fault(
        &self,
        at: usize,
        fault: &FaultSpec,
        number: Option<u32>,
        scenario: &Scenario,
    ) -> Result<Option<FaultKind>, StudyError> {
        let key = |field: &str| format!("fault.{at}.{field}");
        let pubsub = &scenario.pubsub;
        let named = [
            (Role::Publisher, &fault.publisher, names(&pubsub.publishers, |one| &one.name)),
            (Role::Subscriber, &fault.subscriber, names(&pubsub.subscribers, |one| &one.name)),
            (Role::Broker, &fault.broker, names(&pubsub.brokers, |one| &one.name)),
            (Role::Authority, &fault.authority, names(&scenario.authorities, |one| &one.name)),
        ];
        let mut given = named.into_iter().filter_map(|(role, name, all)| Some((role, name.as_ref()?, all)));
        let Some((role, name, all)) = given.next() else { return Ok(None) };
        let has_other = fault.client.is_some() || fault.server.is_some() || given.next().is_some();
        if has_other {
            return Err(
                self.wrong(&key(role.name()), "a fault affects only one kind of node: leave the others out")
            );
        }
        let group = self.find(&key(role.name()), role.name(), name, &all)?;
        let what = match fault.kind {
            FaultName::Cut => NodeFault::Cut,
            FaultName::Partition => NodeFault::Partition,
            FaultName::Crash => NodeFault::Crash,
            FaultName::Restart => NodeFault::Restart,
            FaultName::SlowReader => NodeFault::SlowReader,
            FaultName::Storm => NodeFault::Storm,
            FaultName::Slow => NodeFault::Slow(self.slowdown(&key("by"), fault.by.as_ref())?),
            FaultName::Clock => {
                let seconds = fault.offset.as_deref().and_then(span).filter(|seconds| *seconds != 0.0);
                let Some(seconds) = seconds else {
                    let problem = "write the offset of the clock, such as \"-1h\"";
                    return Err(self.wrong(&key("offset"), problem));
                };
                NodeFault::Clock((seconds * 1e9) as i64)
            }
        };
        Ok(Some(FaultKind::Node(role, Which { group, number }, what)))
    }
}

/// Assigns machines to everything without one, in the same way as for servers and clients.
pub(in crate::simulate) fn place(
    scenario: &mut Scenario,
    host: &mut dyn FnMut(&mut Scenario, &str) -> usize,
) {
    for at in 0..scenario.pubsub.brokers.len() {
        let broker = scenario.pubsub.brokers.get(at).filter(|one| one.host.is_none());
        let Some(name) = broker.map(|broker| broker.name.clone()) else { continue };
        let own = host(scenario, &name);
        scenario.pubsub.brokers.iter_mut().skip(at).take(1).for_each(|one| one.host = Some(own));
    }
    for at in 0..scenario.pubsub.publishers.len() {
        let publishers = scenario.pubsub.publishers.get(at).filter(|one| one.host.is_none());
        let Some(name) = publishers.map(|publishers| publishers.name.clone()) else { continue };
        let own = host(scenario, &name);
        scenario.pubsub.publishers.iter_mut().skip(at).take(1).for_each(|one| one.host = Some(own));
    }
    if scenario.pubsub.subscribers.iter().any(|one| one.host.is_none()) {
        let own = host(scenario, "subscribers");
        scenario.pubsub.subscribers.iter_mut().for_each(|one| one.host = one.host.or(Some(own)));
    }
}
