//! Figures of publishers, subscribers and brokers.

use super::super::study::Study;
use super::{Figures, Summary, cell};
use crate::outcome::Grid;
use std::collections::{BTreeMap, BTreeSet};
use taktwerk_sim::scenario::{Outcome, Scenario};

/// Adds the PubSub figures of a run.
pub(super) fn figures(scenario: &Scenario, outcome: &Outcome, all: &mut Figures) {
    let (parts, seconds) = (&scenario.pubsub, outcome.measured);
    for (subscribers, one) in parts.subscribers.iter().zip(&outcome.pubsub.subscribers) {
        let it = &one.figures;
        let mut put = |name: &str, value: f64| all.insert(format!("{}.{name}", subscribers.name), value);
        if it.times.count() > 0 {
            put("delay_mean_ms", it.times.mean() / 1e6);
            put("delay_p50_ms", it.times.quantile(0.5) as f64 / 1e6);
            put("delay_p99_ms", it.times.quantile(0.99) as f64 / 1e6);
            put("delay_max_ms", it.times.max() as f64 / 1e6);
        }
        put("per_second", it.arrived as f64 / seconds);
        put("due_per_second", one.due as f64 / seconds);
        put("missing_percent", one.due.saturating_sub(it.arrived) as f64 * 100.0 / one.due.max(1) as f64);
        put("lost_messages", it.lost as f64);
        put("old_messages", it.old as f64);
        put("out_of_sequence", it.out_of_sequence as f64);
        put("security_errors", it.security_errors as f64);
        put("timeouts", it.timeouts as f64);
        put("recoveries", it.recoveries as f64);
        put("socket_dropped", it.socket_dropped as f64);
        put("connections", it.connections as f64);
        if let Some(cpu) = one.cpu {
            put("subscriber_cpu_percent", cpu * 100.0);
        }
    }
    for (publishers, one) in parts.publishers.iter().zip(&outcome.pubsub.publishers) {
        let it = &one.figures;
        let mut put = |name: &str, value: f64| all.insert(format!("{}.{name}", publishers.name), value);
        put("published_per_second", it.messages as f64 / seconds);
        put("published_bits_s", it.bytes as f64 * 8.0 / seconds);
        put("missed_cycles", it.missed_cycles as f64);
        put("too_large", it.too_large as f64);
        put("outbox_dropped", it.dropped as f64);
        put("forgotten", it.forgotten as f64);
        put("publisher_connections", it.connections as f64);
        if let Some(cpu) = one.cpu {
            put("publisher_cpu_percent", cpu * 100.0);
        }
    }
    for (broker, one) in parts.brokers.iter().zip(&outcome.pubsub.brokers) {
        let it = &one.figures;
        let mut put = |name: &str, value: f64| all.insert(format!("{}.{name}", broker.name), value);
        put("received_per_second", it.received as f64 / seconds);
        put("sent_per_second", it.sent as f64 / seconds);
        put("repeated", it.repeated as f64);
        put("dropped", it.dropped as f64);
        put("queue_max", it.queue_max as f64);
        put("silent_clients", it.silent as f64);
        if let Some(cpu) = one.cpu {
            put("broker_cpu_percent", cpu * 100.0);
        }
    }
}

/// Adds the names of all PubSub figures that runs can have.
pub(super) fn names(scenario: &Scenario, all: &mut BTreeSet<String>) {
    let parts = &scenario.pubsub;
    let mut put = |of: &str, names: &[&str]| {
        all.extend(names.iter().map(|name| format!("{of}.{name}")));
    };
    for one in &parts.subscribers {
        put(&one.name, &["delay_mean_ms", "delay_p50_ms", "delay_p99_ms", "delay_max_ms"]);
        put(&one.name, &["per_second", "due_per_second", "missing_percent", "lost_messages", "old_messages"]);
        put(&one.name, &["out_of_sequence", "security_errors", "timeouts", "recoveries", "socket_dropped"]);
        put(&one.name, &["connections"]);
        if one.host.is_some() {
            put(&one.name, &["subscriber_cpu_percent"]);
        }
    }
    for one in &parts.publishers {
        put(&one.name, &["published_per_second", "published_bits_s", "missed_cycles", "too_large"]);
        put(&one.name, &["outbox_dropped", "forgotten", "publisher_connections"]);
        if one.host.is_some() {
            put(&one.name, &["publisher_cpu_percent"]);
        }
    }
    for one in &parts.brokers {
        put(&one.name, &["received_per_second", "sent_per_second", "repeated", "dropped", "queue_max"]);
        put(&one.name, &["silent_clients"]);
        if one.host.is_some() {
            put(&one.name, &["broker_cpu_percent"]);
        }
    }
}

/// Whether signals change more often than they are sampled.
pub(super) fn leaves_out(scenario: &Scenario) -> bool {
    scenario.pubsub.publishers.iter().any(|publishers| {
        let changing = publishers.signals.iter().filter(|signals| !signals.period.is_zero());
        changing.map(|signals| signals.period).any(|period| period < publishers.publishing_interval)
    })
}

/// Everything that has a processor: kind, name, and figure.
pub(super) fn processors(scenario: &Scenario) -> Vec<(&'static str, &str, String)> {
    let parts = &scenario.pubsub;
    let brokers = parts.brokers.iter().map(|one| ("broker", one.name.as_str()));
    let publishers = parts.publishers.iter().map(|one| ("publisher", one.name.as_str()));
    let subscribers = parts.subscribers.iter().map(|one| ("subscriber", one.name.as_str()));
    let all = brokers.chain(publishers).chain(subscribers);
    all.map(|(what, name)| (what, name, format!("{name}.{what}_cpu_percent"))).collect()
}

/// A table: its title, its columns with their figures, and the rows of a scenario.
struct Table {
    title: String,
    columns: &'static [(&'static str, &'static str)],
    rows: fn(&Scenario) -> Vec<&str>,
}

/// The tables of all cases.
pub(super) fn grids(study: &Study, all: &[BTreeMap<String, Summary>], over: &str) -> Vec<Grid> {
    let tables = [
        Table {
            title: format!("Delay from write in the publisher to application; {over}"),
            columns: &[
                ("subscribers", ""),
                ("mean ms", "delay_mean_ms"),
                ("p99 ms", "delay_p99_ms"),
                ("max ms", "delay_max_ms"),
                ("values/s", "per_second"),
                ("missing %", "missing_percent"),
            ],
            rows: |scenario| scenario.pubsub.subscribers.iter().map(|one| one.name.as_str()).collect(),
        },
        Table {
            title: "DataSetMessages at subscribers, in the whole simulation".to_owned(),
            columns: &[
                ("subscribers", ""),
                ("lost", "lost_messages"),
                ("old", "old_messages"),
                ("no sequence", "out_of_sequence"),
                ("timeouts", "timeouts"),
            ],
            rows: |scenario| scenario.pubsub.subscribers.iter().map(|one| one.name.as_str()).collect(),
        },
        Table {
            title: "Publishers".to_owned(),
            columns: &[
                ("publishers", ""),
                ("messages/s", "published_per_second"),
                ("bit/s", "published_bits_s"),
                ("missed cycles", "missed_cycles"),
                ("dropped", "outbox_dropped"),
            ],
            rows: |scenario| scenario.pubsub.publishers.iter().map(|one| one.name.as_str()).collect(),
        },
        Table {
            title: "Brokers".to_owned(),
            columns: &[
                ("broker", ""),
                ("received/s", "received_per_second"),
                ("sent/s", "sent_per_second"),
                ("repeated", "repeated"),
                ("dropped", "dropped"),
                ("longest queue", "queue_max"),
            ],
            rows: |scenario| scenario.pubsub.brokers.iter().map(|one| one.name.as_str()).collect(),
        },
    ];
    tables.iter().filter_map(|table| grid(table, study, all)).collect()
}

fn grid(table: &Table, study: &Study, all: &[BTreeMap<String, Summary>]) -> Option<Grid> {
    let titles: Vec<&str> = table.columns.iter().map(|(title, _)| *title).collect();
    let mut grid = Grid::new(&table.title, 1, &titles);
    for (case, figures) in study.cases.iter().zip(all) {
        for name in (table.rows)(&case.scenario) {
            let label =
                if study.cases.len() > 1 { format!("{}, {name}", case.label) } else { name.to_owned() };
            let columns = table.columns.iter().skip(1);
            let cells = columns.map(|(_, figure)| cell(figures.get(&format!("{name}.{figure}"))));
            grid.row(std::iter::once(label).chain(cells));
        }
    }
    (!grid.rows.is_empty()).then_some(grid)
}
