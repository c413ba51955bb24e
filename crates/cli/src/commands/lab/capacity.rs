//! `lab capacity`: the largest load that a server sustains, in sessions and in signals per second.

use super::session;
use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::session::Session;
use crate::span;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use taktwerk_lab::capacity::{Found, Search, Verdict, judge};
use taktwerk_lab::figures;
use taktwerk_lab::place::Place;
use taktwerk_lab::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use taktwerk_lab::steady;
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::ReadValueId;
use taktwerk_schema::ids::variable_ids;
use taktwerk_types::{NodeId, Variant};

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Sessions with one subscription and one item each.
    Sessions,
    /// Monitored items that report every interval, over all sessions.
    Signals,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Signals => "signals per interval",
        }
    }
}

/// Arguments of `taktwerk lab capacity`.
#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// What to search for.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [What::Sessions, What::Signals])]
    what: Vec<What>,

    /// Sessions that share the signals.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1)]
    clients: u32,

    /// Publishing and sampling interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    interval: Duration,

    /// How often the server changes the values; without it, items are compared with the median item.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    update: Option<Duration>,

    /// How long each load is measured.
    #[arg(short, long, value_name = "SPAN", default_value = "3s", value_parser = span::seconds)]
    duration: Duration,

    /// Never try more than this.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    most: u64,

    /// For a plant that is running: reads only, grows slowly from one, and stops as soon as the server's own answers
    /// become slower.
    #[arg(long)]
    safe: bool,

    /// Write the document on core capacities to a file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A server that answers so many times slower than at rest is under strain, and so much slower is no noise.
const STRAIN: (f64, f64) = (2.0, 2_000.0);

/// How long a load may take to be set up before it counts as not sustained.
const SET_UP: Duration = Duration::from_secs(20);
/// How long a server may take to recover from a load that was too much.
const RECOVERY: Duration = Duration::from_secs(15);

/// What is published about limits: name and node.
const PUBLISHED: [(&str, u32); 6] = [
    ("MaxSessions", variable_ids::SERVER_SERVER_CAPABILITIES_MAX_SESSIONS),
    ("MaxSubscriptions", variable_ids::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS),
    ("MaxMonitoredItems", variable_ids::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS),
    ("MaxSubscriptionsPerSession", variable_ids::SERVER_SERVER_CAPABILITIES_MAX_SUBSCRIPTIONS_PER_SESSION),
    (
        "MaxMonitoredItemsPerSubscription",
        variable_ids::SERVER_SERVER_CAPABILITIES_MAX_MONITORED_ITEMS_PER_SUBSCRIPTION,
    ),
    ("MinSupportedSampleRate", variable_ids::SERVER_SERVER_CAPABILITIES_MIN_SUPPORTED_SAMPLE_RATE),
];

/// One load that was tried.
struct Tried {
    what: What,
    load: u64,
    verdict: Verdict,
}

/// Searches and reports.
pub(crate) fn run(arguments: &CapacityArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    let place = super::place(None)?.with_slack(SET_UP);
    let url = arguments.connection.endpoint.to_string();
    let published = published(arguments)?;
    let rest = answer_time(&place, &url)?;
    let bar = bar();
    let mut tried: Vec<Tried> = Vec::new();
    let mut results: Vec<(What, Found, Option<String>)> = Vec::new();
    for what in &arguments.what {
        let (first, growth) = match (arguments.safe, what) {
            (true, _) => (1, 1.3),
            (false, What::Sessions) => (10, 2.0),
            (false, What::Signals) => (100, 2.0),
        };
        let limit = published.iter().find(|(name, _)| *what == What::Sessions && *name == "MaxSessions");
        let limit = limit.and_then(|(_, value)| value.as_u64()).filter(|limit| *limit > 0);
        let most = match what {
            // The generator itself holds no more.
            What::Sessions => arguments.most.min(10_000).min(limit.unwrap_or(u64::MAX)),
            What::Signals => arguments.most,
        };
        let mut search = Search::new(first, most, growth, 0.1);
        let mut stopped = None;
        while let Some(load) = search.next() {
            if interrupt.asked() {
                bar.finish_and_clear();
                return Err(Failure::Interrupted);
            }
            bar.set_message(format!("{}: {load}", what.name()));
            let verdict = attempt(arguments, &place, &url, *what, load);
            tracing::info!(what = what.name(), load, ?verdict);
            match &verdict {
                Verdict::Sustained => search.note(true),
                Verdict::NotSustained { why } => {
                    search.note(false);
                    recover(&place, &url, rest, interrupt);
                    if arguments.safe {
                        // A plant is not driven to its limit twice.
                        search.note(false);
                        stopped = Some(format!("safe mode ends at the first miss: {why}"));
                        search.stop();
                    }
                }
                Verdict::Unknown { why } => {
                    stopped = Some(format!("the generator was the limit: {why}"));
                    search.stop();
                }
            }
            tried.push(Tried { what: *what, load, verdict });
            if arguments.safe && search.next().is_some() {
                let now = answer_time(&place, &url)?;
                if now > rest * STRAIN.0 && now > rest + STRAIN.1 {
                    stopped = Some(format!(
                        "safe mode ends: the server answers in {} instead of {}",
                        figures::micros(now),
                        figures::micros(rest)
                    ));
                    search.stop();
                }
            }
        }
        if stopped.is_none() && search.found().failed.is_none() {
            stopped = Some(format!("no more than {most} was tried"));
        }
        results.push((*what, search.found(), stopped));
    }
    bar.finish_and_clear();
    let document = document(arguments, &url, &published, rest, &results, &tried);
    if let Some(path) = &arguments.output {
        session::write_whole(path, &format!("{document:#}\n"))?;
    }
    if output.is_json() {
        return output.document(&document);
    }
    print(arguments, &results, &tried, &published, output)?;
    if results.iter().all(|(_, found, _)| found.sustained.is_none()) {
        let first = tried.first().map(|tried| format!("{:?}", tried.verdict)).unwrap_or_default();
        return Err(Failure::Worthless(first));
    }
    Ok(())
}

/// Waits until the server answers as at rest again: what is left of one load must not be counted against the next.
fn recover(place: &Place, url: &str, rest: f64, interrupt: &Interrupt) {
    let end = Instant::now() + RECOVERY;
    while Instant::now() < end && !interrupt.asked() {
        match answer_time(place, url) {
            Ok(now) if now <= rest * STRAIN.0 || now <= rest + STRAIN.1 => return,
            _ => std::thread::sleep(Duration::from_millis(500)),
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{spinner} {elapsed} · {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    if std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
        bar.enable_steady_tick(Duration::from_millis(500));
    }
    bar
}

fn condition(arguments: &CapacityArgs, url: &str, what: What, load: u64) -> Option<Condition> {
    let load = u32::try_from(load).unwrap_or(u32::MAX);
    let interval = arguments.interval.as_secs_f64() * 1e3;
    let mut spec = LoadSpec::new(Kind::Subscribe);
    spec.clients = Some(Sweep::One(if what == What::Sessions { load } else { arguments.clients.min(load) }));
    spec.items = Some(Sweep::One(load));
    spec.publishing_ms = Some(Sweep::One(interval));
    spec.sampling_ms = Some(interval);
    let mut scenario = Scenario::new("capacity", spec);
    scenario.stacks = vec![url.to_owned()];
    scenario.server.update_ms = arguments.update.map_or(0.0, |update| update.as_secs_f64() * 1e3);
    // Not until it is steady: a server that is overloaded never is.
    scenario.time.warmup_s = (interval * steady::INTERVALS as f64 / 1e3).max(0.5);
    scenario.time.duration_s = arguments.duration.as_secs_f64();
    scenario.time.steady = false;
    scenario.conditions().into_iter().next()
}

fn attempt(arguments: &CapacityArgs, place: &Place, url: &str, what: What, load: u64) -> Verdict {
    let Some(condition) = condition(arguments, url, what, load) else {
        return Verdict::Unknown { why: "nothing to measure".to_owned() };
    };
    match place.measure("capacity", &condition, 0) {
        Ok(measurement) => judge(&measurement),
        // The server refuses sessions or items, or does not get them done: that is its limit.
        Err(error) => Verdict::NotSustained { why: error.to_string() },
    }
}

/// Median time of a single Read in microseconds.
fn answer_time(place: &Place, url: &str) -> Result<f64, Failure> {
    let mut load = LoadSpec::new(Kind::Read);
    load.count = Some(30);
    load.pause_ms = Some(5.0);
    let mut scenario = Scenario::new("capacity", load);
    scenario.stacks = vec![url.to_owned()];
    scenario.time.warmup_s = 0.05;
    let condition = scenario.conditions().into_iter().next();
    let measured = condition.map(|condition| place.measure("capacity", &condition, 0));
    match measured {
        Some(Ok(measurement)) => Ok(measurement.get("latency.uncorrected.p50_us").unwrap_or(0.0)),
        Some(Err(error)) => Err(Failure::Connect(error.to_string())),
        None => Ok(0.0),
    }
}

/// The limits that the server publishes itself; zero is no limit.
fn published(arguments: &CapacityArgs) -> Result<Vec<(&'static str, Value)>, Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let reads = PUBLISHED.iter().map(|(_, id)| ReadValueId {
        node_id: NodeId::numeric(0, *id),
        attribute_id: Attribute::VALUE.id(),
        ..Default::default()
    });
    let values = session.read(reads.collect())?;
    session.close();
    let number = |value: Option<Variant>| match value {
        Some(Variant::UInt32(value)) => json!(value),
        Some(Variant::Double(value)) => json!(value),
        _ => Value::Null,
    };
    Ok(PUBLISHED.iter().zip(values).map(|((name, _), value)| (*name, number(value.value))).collect())
}

/// What was missed under a load, the last time it was tried.
fn missed(tried: &[Tried], what: What, load: u64) -> Option<&str> {
    tried.iter().rev().filter(|one| one.what == what && one.load == load).find_map(|one| match &one.verdict {
        Verdict::NotSustained { why } => Some(why.as_str()),
        _ => None,
    })
}

fn per_second(arguments: &CapacityArgs, items: u64) -> f64 {
    items as f64 / arguments.interval.as_secs_f64().max(1e-6)
}

fn document(
    arguments: &CapacityArgs,
    url: &str,
    published: &[(&'static str, Value)],
    rest: f64,
    results: &[(What, Found, Option<String>)],
    tried: &[Tried],
) -> Value {
    let published: serde_json::Map<String, Value> =
        published.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let results: Vec<Value> = results
        .iter()
        .map(|(what, found, stopped)| {
            json!({
                "what": what.name(),
                "sustained": found.sustained,
                "not_sustained": found.failed,
                "per_second": (*what == What::Signals)
                    .then(|| found.sustained.map(|items| per_second(arguments, items))),
                "ended_because": stopped,
            })
        })
        .collect();
    let tried: Vec<Value> = tried
        .iter()
        .map(|one| json!({"what": one.what.name(), "load": one.load, "outcome": one.verdict}))
        .collect();
    json!({
        "document": "Core Capacities",
        "url": url,
        "publishing_ms": arguments.interval.as_secs_f64() * 1e3,
        "safe": arguments.safe,
        "read_at_rest_us": rest,
        "published_limits": published,
        "measured": results,
        "tried": tried,
    })
}

fn print(
    arguments: &CapacityArgs,
    results: &[(What, Found, Option<String>)],
    tried: &[Tried],
    published: &[(&'static str, Value)],
    output: Output,
) -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("capacity", Align::Left),
        ("sustained", Align::Right),
        ("not", Align::Right),
        ("per second", Align::Right),
    ]);
    let shown = |load: Option<u64>| {
        load.map_or_else(
            || "–".to_owned(),
            |load| figures::thousands(i64::try_from(load).unwrap_or(i64::MAX)),
        )
    };
    for (what, found, _) in results {
        let rate = (*what == What::Signals).then_some(found.sustained).flatten();
        table.row([
            what.name().to_owned(),
            shown(found.sustained),
            shown(found.failed),
            rate.map_or_else(String::new, |items| figures::number(per_second(arguments, items))),
        ]);
    }
    output.text(&table.to_string())?;
    for (what, found, stopped) in results {
        if let Some((load, why)) = found.failed.and_then(|load| Some((load, missed(tried, *what, load)?))) {
            output.text(&format!("{}: of {} {why}", what.name(), shown(Some(load))))?;
        }
        if let Some(reason) = stopped {
            output.text(&format!("{}: {reason}", what.name()))?;
        }
    }
    output.text("")?;
    let mut limits = Table::new(&[("published by the server", Align::Left), ("limit", Align::Right)]);
    for (name, value) in published {
        let text = match value {
            Value::Null => "not published".to_owned(),
            value if value.as_f64() == Some(0.0) => "none".to_owned(),
            value => value.to_string(),
        };
        limits.row([(*name).to_owned(), text]);
    }
    output.text(&limits.to_string())?;
    output.text(
        "sustained: every item received 99 % of its values and messages came within 110 % of the interval; within 10 %",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        capacity: CapacityArgs,
    }

    #[test]
    fn loads_are_made_from_the_arguments() {
        let arguments = Command::try_parse_from(["x", "localhost", "-c", "5", "--safe"]).unwrap().capacity;
        assert_eq!(arguments.what, [What::Sessions, What::Signals]);
        let sessions = condition(&arguments, "opc.tcp://h:1", What::Sessions, 40).unwrap();
        assert_eq!((sessions.clients, sessions.items), (40, Some(40)));
        let signals = condition(&arguments, "opc.tcp://h:1", What::Signals, 3).unwrap();
        assert_eq!((signals.clients, signals.items), (3, Some(3)));
        assert!((per_second(&arguments, 500) - 5_000.0).abs() < 1e-6);
        let not = |load, why: &str| Tried {
            what: What::Signals,
            load,
            verdict: Verdict::NotSustained { why: why.to_owned() },
        };
        let tried = [not(800, "late"), not(700, "lost"), not(700, "late")];
        assert_eq!(missed(&tried, What::Signals, 700), Some("late"));
        assert_eq!(missed(&tried, What::Sessions, 700), None);
    }
}
