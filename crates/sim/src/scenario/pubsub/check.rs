//! Checks the PubSub parts of a plant for contradictions.

use super::super::fault::{FaultKind, NodeFault, Role};
use super::super::{Fault, RunError, Scenario};
use super::{Encoding, Publishers, SecurityMode, Transport};
use core::time::Duration;

/// Maximum number of fields of all readers, and of signals of all publishers: a larger number is a typing error.
const MANY: u64 = 20_000_000;
/// Maximum number of DataSets per publisher, and of publishers: their ids have 16 bits.
const IDS: u64 = 65_000;
/// Maximum value length, so that a DataSetMessage fits into a message of a broker.
const LONGEST: usize = 1 << 16;
/// Maximum length of a DataSetMessage.
const MESSAGE_MAX: u64 = 200_000;

type Wrong = Result<(), (String, String)>;

fn wrong(key: String, problem: &str) -> Wrong {
    Err((key, problem.to_owned()))
}

/// Finds the first contradiction.
pub(in crate::scenario) fn check(scenario: &Scenario) -> Result<(), RunError> {
    brokers(scenario)
        .and_then(|()| publishers(scenario))
        .and_then(|()| subscribers(scenario))
        .map_err(|(key, problem)| RunError::Invalid { key, problem })
}

fn is_bad(at: Option<usize>, len: usize) -> bool {
    at.is_some_and(|at| at >= len)
}

fn brokers(scenario: &Scenario) -> Wrong {
    for (number, broker) in scenario.pubsub.brokers.iter().enumerate() {
        let key = |field: &str| format!("broker.{number}.{field}");
        if is_bad(broker.host, scenario.hosts.len()) {
            return wrong(key("host"), "there is no such host");
        }
        if broker.limits.queue == 0 {
            return wrong(key("queue"), "0: write at least 1");
        }
        if broker.limits.in_flight == 0 {
            return wrong(key("in_flight"), "0: write at least 1");
        }
        if broker.keep_alive < Duration::from_secs(1) || broker.keep_alive > Duration::from_secs(65_535) {
            return wrong(key("keep_alive_s"), "write 1 to 65535 s: MQTT counts seconds");
        }
    }
    Ok(())
}

fn publishers(scenario: &Scenario) -> Wrong {
    let all = &scenario.pubsub.publishers;
    let count: u64 = all.iter().map(|publishers| u64::from(publishers.count)).sum();
    if count > IDS {
        return wrong("publisher".to_owned(), &format!("{count} publishers are more than {IDS}"));
    }
    let mut published = 0u64;
    for (number, publishers) in all.iter().enumerate() {
        let key = |field: &str| format!("publisher.{number}.{field}");
        if publishers.count == 0 {
            return wrong(key("count"), "0: write at least 1, or leave the publishers out");
        }
        if all.iter().take(number).any(|other| other.name == publishers.name) {
            return wrong(key("name"), "another group of publishers has this name");
        }
        if is_bad(publishers.link, scenario.links.len()) {
            return wrong(key("link"), "there is no such link");
        }
        if is_bad(publishers.host, scenario.hosts.len()) {
            return wrong(key("host"), "there is no such host");
        }
        if publishers.publishing_interval < Duration::from_micros(100) {
            return wrong(key("publishing_ms"), "write at least 0.1 ms");
        }
        if publishers.keep_alive() < publishers.publishing_interval {
            return wrong(key("keep_alive_ms"), "write at least publishing_ms");
        }
        if publishers.key_frame_count == 0 {
            return wrong(key("key_frame_count"), "0: write at least 1; 1 sends all fields every time");
        }
        if publishers.fields == Some(0) {
            return wrong(key("fields"), "0: write at least 1, or leave it out for all of a group");
        }
        transport(publishers, scenario, key)?;
        signals(publishers, key)?;
        let own: u64 = publishers.signals.iter().map(|signals| u64::from(signals.count)).sum();
        published = published.saturating_add(own.saturating_mul(u64::from(publishers.count)));
        if published > MANY {
            return wrong(key("signals"), &format!("{published} signals are more than {MANY}"));
        }
    }
    Ok(())
}

fn transport(publishers: &Publishers, scenario: &Scenario, key: impl Fn(&str) -> String) -> Wrong {
    if let Transport::Broker(broker, _) = publishers.transport {
        if broker >= scenario.pubsub.brokers.len() {
            return wrong(key("broker"), "there is no such broker");
        }
    } else if publishers.encoding == Encoding::Json {
        return wrong(
            key("encoding"),
            "JSON needs a broker: write transport = \"mqtt\", or encoding = \"uadp\"",
        );
    }
    if publishers.security != SecurityMode::None {
        if publishers.encoding == Encoding::Json {
            return wrong(key("security"), "JSON messages cannot be secured: write encoding = \"uadp\"");
        }
        if publishers.key_lifetime < Duration::from_millis(100) {
            return wrong(key("key_lifetime_s"), "write at least 0.1 s");
        }
    }
    Ok(())
}

fn signals(publishers: &Publishers, key: impl Fn(&str) -> String) -> Wrong {
    if publishers.signals.iter().map(|signals| u64::from(signals.count)).sum::<u64>() == 0 {
        return wrong(key("signals"), "the publisher has no signals");
    }
    for (group, signals) in publishers.signals.iter().enumerate() {
        let key = |field: &str| key(&format!("signals.{group}.{field}"));
        if !signals.period.is_zero() && signals.period < Duration::from_micros(100) {
            return wrong(
                key("period_ms"),
                "below 0.1 ms: write at least 0.1, or 0 for values that do not change",
            );
        }
        if !(1..=LONGEST).contains(&signals.value_len) {
            return wrong(key("bytes"), "write 1 to 65536 bytes");
        }
        let most = u64::from(publishers.fields.unwrap_or(signals.count).min(signals.count));
        // JSON encodes bytes as base64, with a name for each field.
        let each = match publishers.encoding {
            Encoding::Uadp => signals.value_len as u64 + 5,
            Encoding::Json => signals.value_len as u64 * 2 + 60,
        };
        if most.saturating_mul(each) > MESSAGE_MAX || most > 65_000 {
            let problem = format!(
                "a DataSetMessage of {most} fields is longer than {MESSAGE_MAX} bytes: write fields = … to get \
                 several DataSets"
            );
            return wrong(key("count"), &problem);
        }
    }
    if publishers.data_sets().len() as u64 > IDS {
        return wrong(
            key("fields"),
            &format!("this makes more than {IDS} DataSets: write more fields per DataSet"),
        );
    }
    Ok(())
}

fn subscribers(scenario: &Scenario) -> Wrong {
    let mut fields = 0u64;
    for (number, subscribers) in scenario.pubsub.subscribers.iter().enumerate() {
        let key = |field: &str| format!("subscriber.{number}.{field}");
        if subscribers.count == 0 {
            return wrong(key("count"), "0: write at least 1, or leave the subscribers out");
        }
        if is_bad(subscribers.link, scenario.links.len()) {
            return wrong(key("link"), "there is no such link");
        }
        if is_bad(subscribers.host, scenario.hosts.len()) {
            return wrong(key("host"), "there is no such host");
        }
        if subscribers.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return wrong(key("timeout_ms"), "0 ms: write more than 0, or leave it out");
        }
        let mut seen: Vec<usize> = Vec::new();
        let mut first: Option<&Publishers> = None;
        for at in &subscribers.publishers {
            let Some(publishers) = scenario.pubsub.publishers.get(*at) else {
                return wrong(key("publisher"), "there is no such publisher");
            };
            if seen.contains(at) {
                return wrong(key("publisher"), "it names the same publisher twice");
            }
            seen.push(*at);
            let other = *first.get_or_insert(publishers);
            if !same(other.transport, publishers.transport) || other.encoding != publishers.encoding {
                let problem = format!(
                    "{} and {} have different transports, brokers or encodings: write one [[subscriber]] for each",
                    other.name, publishers.name
                );
                return wrong(key("publisher"), &problem);
            }
            let signals: u64 = publishers.signals.iter().map(|signals| u64::from(signals.count)).sum();
            let each = signals.saturating_mul(publishers.count.into());
            fields = fields.saturating_add(each.saturating_mul(subscribers.count.into()));
        }
        let Some(first) = first else {
            return wrong(key("publisher"), "no publisher is named: name at least one");
        };
        if subscribers.quality.is_some() && !matches!(first.transport, Transport::Broker(..)) {
            return wrong(key("qos"), "quality of service needs a broker: leave it out");
        }
    }
    if fields > MANY {
        return wrong("subscriber".to_owned(), &format!("{fields} subscribed fields are more than {MANY}"));
    }
    Ok(())
}

/// Whether one subscriber can receive both.
fn same(one: Transport, other: Transport) -> bool {
    match (one, other) {
        (Transport::Broker(one, _), Transport::Broker(other, _)) => one == other,
        (one, other) => !matches!(one, Transport::Broker(..)) && !matches!(other, Transport::Broker(..)),
    }
}

/// How many targets a fault of PubSub has, and why the fault does not apply to them.
pub(in crate::scenario) fn target(fault: &Fault, scenario: &Scenario) -> Option<(u32, Option<&'static str>)> {
    let FaultKind::Node(role, which, what) = fault.kind else { return None };
    let pubsub = &scenario.pubsub;
    let over_broker = |at: Option<&Publishers>| {
        at.is_some_and(|publishers| matches!(publishers.transport, Transport::Broker(..)))
    };
    let (count, has_connection) = match role {
        Role::Broker => (pubsub.brokers.get(which.group).map_or(0, |_| 1), true),
        Role::Authority => (scenario.authorities.get(which.group).map_or(0, |_| 1), true),
        Role::Publisher => {
            let publishers = pubsub.publishers.get(which.group);
            (publishers.map_or(0, |one| one.count), over_broker(publishers))
        }
        Role::Subscriber => {
            let subscribers = pubsub.subscribers.get(which.group);
            let first = subscribers.and_then(|one| pubsub.publishers.get(*one.publishers.first()?));
            (subscribers.map_or(0, |one| one.count), over_broker(first))
        }
    };
    let problem = match (what, role) {
        (
            NodeFault::Partition | NodeFault::Crash | NodeFault::Restart | NodeFault::Slow(_),
            Role::Authority,
        ) => None,
        (_, Role::Authority) => Some(
            "this fault does not apply to a certificate authority: write partition, crash, restart or slow",
        ),
        (NodeFault::Slow(_), _) => Some("only a certificate authority can be slow"),
        (NodeFault::Cut, Role::Publisher | Role::Subscriber) if !has_connection => {
            Some("datagrams have no connection that could be cut: write partition")
        }
        (NodeFault::Storm, Role::Broker) => None,
        (NodeFault::Storm, _) => Some("a storm needs a broker or a server as its target"),
        (NodeFault::SlowReader, Role::Subscriber) => None,
        (NodeFault::SlowReader, _) => Some("a slow reader must be a subscriber or a client"),
        (NodeFault::Cut | NodeFault::Partition | NodeFault::Clock(_), Role::Broker) => {
            Some("this fault does not apply to a broker: write its publishers or subscribers as the target")
        }
        _ => None,
    };
    Some((count, problem))
}
