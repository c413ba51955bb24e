//! Finds contradictions in a scenario.

use super::build::invalid;
use super::{Load, Operation, Pace, Requests, RunError, Scenario, authority, history, prices, pubsub};
use core::time::Duration;

/// Maximum number of monitored items, signals, clients and servers: a larger number is a typing error.
const MANY: u64 = 20_000_000;

/// Finds values that are wrong or contradict each other, without simulating.
///
/// # Errors
/// [`RunError::Invalid`].
pub fn check(scenario: &Scenario) -> Result<(), RunError> {
    let wrong = |key: String, problem: &str| Err(invalid(&key, &problem));
    // A plant may consist of PubSub only.
    let has_pubsub = !scenario.pubsub.subscribers.is_empty();
    if scenario.servers.is_empty() && !has_pubsub {
        return wrong("server".to_owned(), "there is no server: describe at least one");
    }
    if scenario.clients.is_empty() && !has_pubsub {
        return wrong("client".to_owned(), "there is no client: describe at least one");
    }
    if scenario.measured.is_zero() {
        return wrong("time.duration_s".to_owned(), "0 s: write more than 0");
    }
    for (number, server) in scenario.servers.iter().enumerate() {
        let key = |field: &str| format!("server.{number}.{field}");
        if server.count == 0 {
            return wrong(key("count"), "0: write at least 1, or leave the server out");
        }
        if scenario.servers.iter().take(number).any(|other| other.name == server.name) {
            return wrong(key("name"), "another server has this name");
        }
        if server.signals.iter().map(|signals| u64::from(signals.count)).sum::<u64>() == 0 {
            return wrong(key("signals"), "the server has no variables");
        }
        for (group, signals) in server.signals.iter().enumerate() {
            let key = |field: &str| key(&format!("signals.{group}.{field}"));
            if !signals.period.is_zero() && signals.period < Duration::from_micros(100) {
                return wrong(
                    key("period_ms"),
                    "below 0.1 ms: write at least 0.1, or 0 for values that do not change",
                );
            }
            if !(1..=1 << 16).contains(&signals.value_len) {
                return wrong(key("bytes"), "write 1 to 65536 bytes");
            }
        }
        if !server.event_period.is_zero() && server.event_period < Duration::from_millis(1) {
            return wrong(key("event_period_ms"), "below 1 ms: write at least 1, or 0 for no events");
        }
        history::check_server(server).or_else(|problem| wrong(key("history"), &problem))?;
        if server.host.is_some_and(|host| host >= scenario.hosts.len()) {
            return wrong(key("host"), "there is no such host");
        }
        if !(1..=64).contains(&server.shards) {
            return wrong(key("threads"), "write 1 to 64");
        }
    }
    let mut items = 0u64;
    for (number, clients) in scenario.clients.iter().enumerate() {
        let key = |field: &str| format!("client.{number}.{field}");
        let Some(server) = scenario.servers.get(clients.server) else {
            return wrong(key("server"), "there is no such server");
        };
        if !(1..=64).contains(&clients.threads) {
            return wrong(key("threads"), "write 1 to 64");
        }
        let all = u64::from(server.count) * u64::from(clients.count);
        let signals: u64 = server.signals.iter().map(|signals| u64::from(signals.count)).sum();
        items =
            items.saturating_add(all.saturating_mul(clients.items.map_or(signals, u64::from).min(signals)));
        if clients.count == 0 {
            return wrong(key("count"), "0: write at least 1, or leave the clients out");
        }
        if clients.items == Some(0) {
            return wrong(key("items"), "0: write at least 1, or leave it out for all variables");
        }
        if clients.link.is_some_and(|link| link >= scenario.links.len()) {
            return wrong(key("link"), "there is no such link");
        }
        if clients.host.is_some_and(|host| host >= scenario.hosts.len()) {
            return wrong(key("host"), "there is no such host");
        }
        match &clients.load {
            Load::Subscribe(it) if it.publishing_interval.is_zero() => {
                return wrong(key("publishing_ms"), "0 ms: write more than 0");
            }
            Load::Subscribe(it) if it.queue_size == Some(0) => {
                return wrong(key("queue"), "0: write at least 1");
            }
            Load::Subscribe(it) if it.publish_requests == Some(0) => {
                return wrong(
                    key("publish_requests"),
                    "0: write at least 1; without a request the server cannot publish",
                );
            }
            Load::Subscribe(it) if it.publish_every.is_some_and(|share| !(1..=100).contains(&share)) => {
                return wrong(
                    key("publish_every"),
                    "write a share of the publishing interval from 0.01 to 1",
                );
            }
            Load::Subscribe(it)
                if it.publish_every.is_some()
                    && (it.publish_requests.is_some() || it.event_queue.is_some() || it.is_durable) =>
            {
                let problem = "publish_every needs a plain subscription: remove publish_requests, event_queue and durable";
                return wrong(key("publish_every"), problem);
            }
            Load::Subscribe(it) if it.event_queue.is_some() && server.event_period.is_zero() => {
                return wrong(
                    key("event_queue"),
                    "the server raises no events: write event_period_ms for it",
                );
            }
            Load::Request(it) if it.batch == 0 => return wrong(key("batch"), "0: write at least 1"),
            Load::Request(it) if it.pace == Pace::Every(Duration::ZERO) => {
                return wrong(
                    key("every_ms"),
                    "0 ms: write more than 0, or pause_ms = 0 for requests without a pause",
                );
            }
            Load::Request(it)
                if it.operation == Operation::Write
                    && server.signals.iter().any(|one| !one.period.is_zero()) =>
            {
                let problem = "these variables change by themselves: write period_ms = 0 for variables that clients write";
                return wrong(key("kind"), problem);
            }
            Load::Request(Requests { operation: Operation::ReadHistory(values), batch, .. }) => {
                history::check_request(server, *batch, *values)
                    .or_else(|(field, problem)| wrong(key(field), &problem))?;
            }
            _ => {}
        }
    }
    if items > MANY {
        return wrong("client".to_owned(), &format!("{items} monitored items are more than {MANY}"));
    }
    let mut signals = 0u64;
    for (number, server) in scenario.servers.iter().enumerate() {
        let own: u64 = server.signals.iter().map(|signals| u64::from(signals.count)).sum();
        signals = signals.saturating_add(own.saturating_mul(u64::from(server.count)));
        if signals > MANY {
            let key = format!("server.{number}.signals");
            return wrong(key, &format!("{signals} signals are more than {MANY}"));
        }
    }
    prices::check(scenario).or_else(|(host, problem)| wrong(format!("host.{host}.profile"), &problem))?;
    pubsub::check(scenario)?;
    authority::check(scenario).or_else(|(key, problem)| wrong(key, &problem))?;
    for (number, fault) in scenario.faults.iter().enumerate() {
        let key = |field: &str| format!("fault.{number}.{field}");
        let which = fault.kind.which();
        let of_pubsub = pubsub::target(fault, scenario);
        if let Some((_, Some(problem))) = of_pubsub {
            return wrong(key("kind"), problem);
        }
        let (known, count) = if let Some((count, _)) = of_pubsub {
            (count > 0, count)
        } else if fault.kind.is_of_server() {
            (
                scenario.servers.get(which.group).is_some(),
                scenario.servers.get(which.group).map_or(0, |one| one.count),
            )
        } else {
            let clients = scenario.clients.get(which.group);
            let servers = clients.and_then(|one| scenario.servers.get(one.server)).map_or(0, |one| one.count);
            (clients.is_some(), clients.map_or(0, |one| one.count.saturating_mul(servers)))
        };
        if !known {
            return wrong(key("kind"), "there is no such target");
        }
        if let Some(number) = which.number.filter(|number| *number >= count) {
            // Files count from 1.
            return wrong(key("number"), &format!("{}: there are {count}", u64::from(number) + 1));
        }
        if fault.kind.lasts() && fault.lasts.is_zero() {
            return wrong(key("for"), "0 s: write how long the fault lasts");
        }
        if fault.at >= scenario.measured {
            let (at, measured) = (fault.at.as_secs_f64(), scenario.measured.as_secs_f64());
            return wrong(
                key("at"),
                &format!(
                    "{at} s is after the end of the measurement (time.duration_s is {measured}): write less"
                ),
            );
        }
    }
    Ok(())
}
