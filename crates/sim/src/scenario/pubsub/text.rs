//! Writes the PubSub parts of a scenario to its file.

use super::super::Scenario;
use super::super::text::Text;
use super::{Broker, Encoding, Publishers, Quality, SecurityMode, Subscribers, Transport};

/// Writes all of them.
pub(in crate::scenario) fn write(out: &mut Text, scenario: &Scenario) {
    let pubsub = &scenario.pubsub;
    pubsub.brokers.iter().for_each(|one| broker(out, one, scenario));
    pubsub.publishers.iter().for_each(|one| publishers(out, one, scenario));
    pubsub.subscribers.iter().for_each(|one| subscribers(out, one, scenario));
}

fn level(quality: Quality) -> u8 {
    match quality {
        Quality::AtMostOnce => 0,
        Quality::AtLeastOnce => 1,
    }
}

fn broker(out: &mut Text, broker: &Broker, scenario: &Scenario) {
    out.section("[[broker]]");
    out.string("name", &broker.name);
    out.name_of("host", &scenario.hosts, broker.host, |host| &host.name);
    out.number("queue", broker.limits.queue);
    out.number("in_flight", broker.limits.in_flight);
    out.number("keep_alive_s", broker.keep_alive.as_secs_f64());
}

fn publishers(out: &mut Text, publishers: &Publishers, scenario: &Scenario) {
    out.section("[[publisher]]");
    out.string("name", &publishers.name);
    out.number("count", publishers.count);
    out.name_of("link", &scenario.links, publishers.link, |link| &link.name);
    out.name_of("host", &scenario.hosts, publishers.host, |host| &host.name);
    match publishers.transport {
        Transport::Multicast => out.string("transport", "udp"),
        Transport::Unicast => {
            out.string("transport", "udp");
            out.string("address", "unicast");
        }
        Transport::Broker(broker, quality) => {
            out.string("transport", "mqtt");
            out.name_of("broker", &scenario.pubsub.brokers, Some(broker), |broker| &broker.name);
            out.number("qos", level(quality));
        }
    }
    if publishers.encoding == Encoding::Json {
        out.string("encoding", "json");
    }
    out.ms("publishing_ms", publishers.publishing_interval);
    if let Some(span) = publishers.keep_alive_time {
        out.ms("keep_alive_ms", span);
    }
    out.number("key_frame_count", publishers.key_frame_count);
    if let Some(fields) = publishers.fields {
        out.number("fields", fields);
    }
    if publishers.security != SecurityMode::None {
        out.string("security", &format!("{:?}", publishers.security));
        out.number("key_lifetime_s", publishers.key_lifetime.as_secs_f64());
    }
    for signals in &publishers.signals {
        out.section("[[publisher.signals]]");
        out.number("count", signals.count);
        out.ms("period_ms", signals.period);
        out.number("bytes", signals.value_len);
    }
}

fn subscribers(out: &mut Text, subscribers: &Subscribers, scenario: &Scenario) {
    out.section("[[subscriber]]");
    out.string("name", &subscribers.name);
    out.number("count", subscribers.count);
    let all = &scenario.pubsub.publishers;
    let names = subscribers.publishers.iter().filter_map(|at| all.get(*at));
    out.strings("publisher", names.map(|publishers| publishers.name.as_str()));
    out.name_of("link", &scenario.links, subscribers.link, |link| &link.name);
    out.name_of("host", &scenario.hosts, subscribers.host, |host| &host.name);
    if let Some(quality) = subscribers.quality {
        out.number("qos", level(quality));
    }
    if let Some(timeout) = subscribers.timeout {
        out.ms("timeout_ms", timeout);
    }
}
