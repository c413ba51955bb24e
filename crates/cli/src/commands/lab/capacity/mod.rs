//! `lab capacity`: searches the largest load that a server sustains, in sessions, signals per second or items.
//!
//! - [`machine`]: whether this machine is idle enough; [`moving`]: the monitored variables; [`watch`]: the effect on
//!   other clients; [`blame`]: whether the server or this machine caused a failure.

mod blame;
mod machine;
mod moving;
mod watch;

use super::session;
use crate::attribute::Attribute;
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::node::NodeSpec;
use crate::output::Output;
use crate::overwrite::Overwrite;
use crate::session::Session;
use crate::span;
use blame::{Blame, blame};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use moving::Moving;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use taktwerk_lab::capacity::{Found, Search, Verdict, judge, usual};
use taktwerk_lab::figures;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::outcome::wrapped;
use taktwerk_lab::place::{Client, Place};
use taktwerk_lab::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use taktwerk_lab::steady;
use taktwerk_lab::table::{Align, Table};
use taktwerk_schema::ReadValueId;
use taktwerk_schema::ids::variable_ids;
use taktwerk_types::{NodeId, Variant};
use watch::{Noticed, Watch};

/// The quantity to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Sessions with one subscription and one item each.
    Sessions,
    /// Monitored items that report every interval, over all sessions.
    Signals,
    /// Monitored items that report every fifth interval, over all sessions: many items with little traffic.
    Items,
}

/// Intervals between two reports of a slow item.
const SLOWER: f64 = 5.0;

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Signals => "signals per interval",
            Self::Items => "slow items",
        }
    }

    /// The name of the published limit.
    fn limit(self) -> &'static str {
        match self {
            Self::Sessions => "MaxSessions",
            Self::Signals | Self::Items => "MaxMonitoredItems",
        }
    }
}

/// Arguments of `taktwerk lab capacity`.
#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    connection: ConnectionArgs,

    /// What to search for.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [What::Sessions, What::Signals, What::Items])]
    what: Vec<What>,

    /// Sessions that share the signals, and the slow items.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1)]
    clients: u32,

    /// Publishing and sampling interval in milliseconds.
    #[arg(short = 'I', long, value_name = "MS", default_value = "100", value_parser = span::millis)]
    interval: Duration,

    /// Interval at which the server changes the values, in milliseconds. Default: items are compared with the median
    /// item and with the first load.
    #[arg(long, value_name = "MS", value_parser = span::millis)]
    update: Option<Duration>,

    /// How long each load is measured.
    #[arg(short, long, value_name = "SPAN", default_value = "3s", value_parser = span::seconds)]
    duration: Duration,

    /// Stop the search after this time and report what was found; the present load is finished.
    #[arg(long, value_name = "SPAN", default_value = "5m", value_parser = span::seconds)]
    within: Duration,

    /// NodeId or browse path (with * and ?) to monitor; items are spread over the nodes. Can be repeated. Default:
    /// variables whose values change in every interval.
    #[arg(long, value_name = "NODE")]
    nodes: Vec<NodeSpec>,

    /// Never try more than this.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    most: u64,

    /// For a running plant: read only, increase the load slowly, and stop when responses to other clients become slower
    /// twice. A load that delays others by a second is stopped at once.
    #[arg(long)]
    safe: bool,

    /// Write the core capacities to this file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

/// A server is under strain if its response time exceeds the idle one by this factor and by this many microseconds.
const STRAIN: (f64, f64) = (2.0, 2_000.0);
/// The same for a severe strain, which needs no confirmation.
const SEVERE_STRAIN: (f64, f64) = (5.0, 20_000.0);

/// Setup time after which a load counts as not sustained.
const SET_UP: Duration = Duration::from_secs(20);
/// Maximum time for a server to recover from an overload.
const RECOVERY: Duration = Duration::from_secs(15);

/// Limits that servers publish: name and node.
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

/// Monitored items per request on a running plant, so that other clients are not delayed.
const GENTLE: u32 = 100;

/// A load that was tried.
struct Tried {
    what: What,
    load: u64,
    verdict: Verdict,
    /// Delivered values per second, if measured.
    delivered: Option<f64>,
    /// The effect on other clients; measured in safe mode only.
    noticed: Option<Noticed>,
}

/// The result of a search.
struct Outcome {
    what: What,
    found: Found,
    /// Why the search ended early, if it did.
    stopped: Option<String>,
    /// Whether the search itself failed.
    has_failed: bool,
    /// Why the result is invalid: the generator or this machine was the limit.
    invalid: Option<String>,
    /// Values per second of an item under the first sustained load.
    usual: Option<f64>,
}

/// A published limit: name and value.
type Limit = (&'static str, Value);

/// Searches and prints the result.
pub(crate) fn run(arguments: &CapacityArgs, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        session::can_write(path, arguments.overwrite)?;
    }
    if let Some(why) = machine::disturbance() {
        return Err(Failure::InvalidReported(why));
    }
    let begin = Instant::now();
    let url = arguments.connection.endpoint.to_string();
    let (published, Moving { nodes, said }) = prepare(arguments)?;
    let mut security = arguments.connection.security.clone();
    security.settle_for(&arguments.connection.endpoint);
    let client = Client { security, nodes, per_request: arguments.safe.then_some(GENTLE) };
    let stop = Arc::new(AtomicBool::new(false));
    let place = super::place(None)?.with_slack(SET_UP).with_client(client).with_stop(Arc::clone(&stop));
    let mut watch = Watch::new(&arguments.connection, stop);
    let rest = watch.at_rest()?;
    if !arguments.safe {
        watch.leave();
    }
    let mut searching = Searching {
        arguments,
        place: &place,
        url: &url,
        watch,
        rest,
        bar: bar(arguments.within),
        begin,
        interrupt,
        tried: Vec::new(),
    };
    let mut results: Vec<Outcome> = Vec::new();
    for (at, what) in arguments.what.iter().enumerate() {
        if interrupt.asked() {
            break;
        }
        // The remaining time is divided among the remaining searches.
        let left = arguments.within.saturating_sub(begin.elapsed());
        let end = Instant::now() + left / u32::try_from(arguments.what.len() - at).unwrap_or(1).max(1);
        results.push(searching.search(*what, most(arguments, &published, *what), end));
    }
    searching.bar.finish_and_clear();
    searching.watch.leave();
    let tried = searching.tried;
    let mut document = document(arguments, &url, &published, rest, &results, &tried);
    if let (Some(said), Some(document)) = (&said, document.as_object_mut()) {
        document.insert("chosen".to_owned(), json!(said));
    }
    if let Some(path) = &arguments.output {
        session::write_whole(path, &format!("{document:#}\n"))?;
    }
    if output.is_json() {
        output.document(&document)?;
    } else {
        print(arguments, rest, &results, &tried, &published, output)?;
        if let Some(said) = said {
            output.text(wrapped("", &said).trim_end())?;
        }
    }
    if interrupt.asked() {
        return Err(Failure::Interrupted);
    }
    if let Some(failed) = results.iter().find(|one| one.has_failed) {
        let why = failed.stopped.as_deref().unwrap_or_default();
        return Err(Failure::Environment(format!("the search for {} ended: {why}", failed.what.name())));
    }
    let invalid =
        results.iter().filter_map(|one| Some(format!("{}: {}", one.what.name(), one.invalid.as_ref()?)));
    let invalid: Vec<String> = invalid.collect();
    if !invalid.is_empty() {
        return Err(Failure::InvalidReported(invalid.join("; ")));
    }
    if results.iter().all(|one| one.found.sustained.is_none()) {
        let first = match tried.first().map(|tried| (tried.load, &tried.verdict)) {
            Some((load, Verdict::NotSustained { why, .. } | Verdict::Unknown { why })) => {
                format!("no load was sustained, not even {load}: {why}")
            }
            _ => "no load was tried: there was no time".to_owned(),
        };
        return Err(Failure::InvalidReported(first));
    }
    Ok(())
}

/// The largest load to try.
fn most(arguments: &CapacityArgs, published: &[Limit], what: What) -> u64 {
    let limit = published.iter().find(|(name, _)| *name == what.limit());
    let limit = limit.and_then(|(_, value)| value.as_u64()).filter(|limit| *limit > 0);
    // The generator supports no more sessions. In safe mode, the observer has a session too.
    let held = if what == What::Sessions { 10_000 } else { u64::MAX };
    let watching = u64::from(arguments.safe && what == What::Sessions);
    arguments.most.min(held).min(limit.map_or(u64::MAX, |limit| limit.saturating_sub(watching).max(1)))
}

/// The state of a search.
struct Searching<'a> {
    arguments: &'a CapacityArgs,
    place: &'a Place,
    url: &'a str,
    watch: Watch<'a>,
    /// Response time of the idle server, in microseconds.
    rest: f64,
    bar: ProgressBar,
    begin: Instant,
    interrupt: &'a Interrupt,
    tried: Vec<Tried>,
}

impl Searching<'_> {
    /// Searches until the bracket is narrow or `end` is reached.
    fn search(&mut self, what: What, most: u64, end: Instant) -> Outcome {
        let (first, growth) = match (self.arguments.safe, what) {
            (true, _) => (1, 1.3),
            (false, What::Sessions) => (10, 2.0),
            (false, What::Signals) => (100, 2.0),
            (false, What::Items) => (1_000, 2.0),
        };
        let mut search = Search::new(first, most, growth, 0.1);
        let (mut stopped, mut has_failed, mut before) = (None, false, None);
        let (mut invalid, mut disturbed) = (None, None);
        while let Some(load) = search.next() {
            if self.interrupt.asked() {
                stopped = Some("interrupted".to_owned());
                break;
            }
            if Instant::now() >= end {
                let next = match missed(&self.tried, what, load) {
                    Some(why) => format!("looked at {load} again, where {why}"),
                    None => format!("continued with {load}"),
                };
                stopped = Some(format!(
                    "the time is over (--within {}): it would have {next}",
                    session::span(self.arguments.within.as_secs_f64())
                ));
                break;
            }
            self.tell(what, load, search.found());
            let (measured, noticed) = self.attempt(what, load);
            let delivered = measured.as_ref().ok().and_then(Measurement::signals_per_s);
            let judged = match &measured {
                _ if self.interrupt.asked() => continue,
                Ok(measurement) => judge(measurement, before),
                Err(Blame::Server(why)) => Verdict::NotSustained { why: why.clone(), clear: true },
                Err(Blame::Searcher(why)) => {
                    // Not a limit of the server, so the bracket does not change.
                    stopped = Some(format!("{load} could not be tried: {why}"));
                    has_failed = true;
                    break;
                }
            };
            let (verdict, is_severe) = combined_verdict(judged, self.rest, noticed);
            tracing::info!(what = what.name(), load, ?verdict, ?noticed);
            match &verdict {
                Verdict::Sustained => {
                    before = before.or_else(|| usual(measured.as_ref().ok()?));
                    search.note(true, false);
                }
                Verdict::NotSustained { clear, .. } => {
                    // Stop at once if a plant shows severe strain. Anything less may be an outlier, so try once more.
                    search.note(false, is_severe || (*clear && !self.arguments.safe));
                    let is_over = is_severe || search.next() != Some(load);
                    if self.arguments.safe && is_over {
                        let times = if is_severe { "" } else { ", seen twice" };
                        stopped = Some(format!("safe mode ends at a miss{times}"));
                        search.stop();
                    } else {
                        self.recover();
                    }
                }
                // Try once more: another program may have run for a moment.
                Verdict::Unknown { .. } if disturbed != Some(load) => disturbed = Some(load),
                Verdict::Unknown { why } => {
                    let why = format!("{load} cannot be judged: {why}");
                    (stopped, invalid) = (Some(why.clone()), Some(why));
                    search.stop();
                }
            }
            self.tried.push(Tried { what, load, verdict, delivered, noticed });
        }
        if stopped.is_none() && search.found().failed.is_none() {
            stopped = Some(format!("no more than {most} was tried"));
        }
        Outcome { what, found: search.found(), stopped, has_failed, invalid, usual: before }
    }

    fn tell(&self, what: What, load: u64, found: Found) {
        let of =
            |load: Option<u64>, word: &str| load.map_or_else(String::new, |load| format!(", {load} {word}"));
        self.bar.set_position(self.begin.elapsed().as_secs());
        self.bar.set_message(format!(
            "{}: trying {load}{}{}",
            what.name(),
            of(found.sustained, "sustained"),
            of(found.failed, "not")
        ));
    }

    /// Measures a load; in safe mode also its effect on other clients.
    fn attempt(&mut self, what: What, load: u64) -> (Result<Measurement, Blame>, Option<Noticed>) {
        let Some(condition) = condition(self.arguments, self.url, what, load) else {
            return (Err(Blame::Searcher("there is nothing to measure".to_owned())), None);
        };
        let measure = || self.place.measure("capacity", &condition, 0).map_err(|error| blame(&error));
        if !self.arguments.safe {
            return (measure(), None);
        }
        let window = Duration::from_secs_f64(condition.time.duration_s);
        let (measured, noticed) = self.watch.beside(Some(self.rest), window, measure);
        (measured, Some(noticed))
    }

    /// Waits until the server is as fast as when idle, so that one load does not affect the next.
    fn recover(&mut self) {
        let end = Instant::now() + RECOVERY;
        while Instant::now() < end && !self.interrupt.asked() {
            match self.watch.at_rest() {
                Ok(now) if strain(self.rest, now).is_none() => break,
                _ => std::thread::sleep(Duration::from_millis(500)),
            }
        }
        if !self.arguments.safe {
            self.watch.leave();
        }
    }
}

/// A bar for the maximum time of the search.
fn bar(within: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(within.as_secs()), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{bar:16} {elapsed} of at most {len} s · {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    if std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(2));
        bar.enable_steady_tick(Duration::from_millis(500));
    }
    bar
}

/// Whether another client's response time (in microseconds; infinite without a response) shows strain.
fn strain(rest: f64, now: f64) -> Option<Verdict> {
    let is_beyond = |(times, more): (f64, f64)| now > rest * times && now > rest + more;
    let waited = || {
        if now.is_finite() { format!("took {}", figures::micros(now)) } else { "got no answer".to_owned() }
    };
    is_beyond(STRAIN).then(|| Verdict::NotSustained {
        why: format!("another client's Read {} under load, and {} at rest", waited(), figures::micros(rest)),
        clear: is_beyond(SEVERE_STRAIN),
    })
}

/// Combines the measurement with the effect on other clients. The flag marks severe strain, which needs no
/// confirmation.
fn combined_verdict(measured: Verdict, rest: f64, noticed: Option<Noticed>) -> (Verdict, bool) {
    let Some(noticed) = noticed else { return (measured, false) };
    // Also if the load has ended already, because its after-effects count.
    if noticed.is_ended || noticed.longest_us > watch::patience(rest).as_secs_f64() * 1e6 {
        let waited = match noticed.longest_us {
            longest if longest.is_finite() => format!("waited for {}", figures::micros(longest)),
            _ => "got no answer".to_owned(),
        };
        let ended = if noticed.is_ended { ", so that it was ended" } else { "" };
        let why = format!("another client's Read {waited} under load{ended}");
        return (Verdict::NotSustained { why, clear: true }, true);
    }
    match strain(rest, noticed.middle_us) {
        Some(great @ Verdict::NotSustained { clear: true, .. }) => (great, true),
        Some(strain) if measured == Verdict::Sustained => (strain, false),
        _ => (measured, false),
    }
}

fn condition(arguments: &CapacityArgs, url: &str, what: What, load: u64) -> Option<Condition> {
    let load = u32::try_from(load).unwrap_or(u32::MAX);
    let interval = interval_ms(arguments, what);
    let mut spec = LoadSpec::new(Kind::Subscribe);
    spec.clients = Some(Sweep::One(if what == What::Sessions { load } else { arguments.clients.min(load) }));
    spec.items = Some(Sweep::One(load));
    spec.publishing_ms = Some(Sweep::One(interval));
    spec.sampling_ms = Some(interval);
    let mut scenario = Scenario::new("capacity", spec);
    scenario.stacks = vec![url.to_owned()];
    scenario.server.update_ms = arguments.update.map_or(0.0, |update| update.as_secs_f64() * 1e3);
    // Does not wait for a steady state, which an overloaded server never reaches.
    let settled =
        if what == What::Items { steady::INTERVALS as f64 / SLOWER } else { steady::INTERVALS as f64 };
    scenario.time.warmup_s = (interval * settled / 1e3).max(0.5);
    // A window of less than five intervals would be too inexact.
    scenario.time.duration_s = arguments.duration.as_secs_f64();
    if what == What::Items {
        scenario.time.duration_s = scenario.time.duration_s.max(interval * 5.0 / 1e3);
    }
    scenario.time.steady = false;
    scenario.conditions().into_iter().next()
}

/// Reads the limits that the server publishes (zero means no limit), and selects the variables to monitor.
fn prepare(arguments: &CapacityArgs) -> Result<(Vec<Limit>, Moving), Failure> {
    let mut session = Session::connect(&arguments.connection)?;
    let reads = PUBLISHED.iter().map(|(_, id)| ReadValueId {
        node_id: NodeId::numeric(0, *id),
        attribute_id: Attribute::VALUE.id(),
        ..Default::default()
    });
    let values = session.read(reads.collect())?;
    let moving = moving::find(&mut session, arguments)?;
    session.close();
    let number = |value: Option<Variant>| match value {
        Some(Variant::UInt32(value)) => json!(value),
        Some(Variant::Double(value)) => json!(value),
        _ => Value::Null,
    };
    let limits = PUBLISHED.iter().zip(values).map(|((name, _), value)| (*name, number(value.value)));
    Ok((limits.collect(), moving))
}

/// What was missed at the last attempt of a load.
fn missed(tried: &[Tried], what: What, load: u64) -> Option<&str> {
    tried.iter().rev().filter(|one| one.what == what && one.load == load).find_map(|one| match &one.verdict {
        Verdict::NotSustained { why, .. } => Some(why.as_str()),
        _ => None,
    })
}

/// Publishing and sampling interval in milliseconds.
fn interval_ms(arguments: &CapacityArgs, what: What) -> f64 {
    let interval = arguments.interval.as_secs_f64() * 1e3;
    if what == What::Items { interval * SLOWER } else { interval }
}

/// Delivered values per second at the last success of the largest sustained load.
fn delivered(tried: &[Tried], outcome: &Outcome) -> Option<f64> {
    let is_it = |one: &&Tried| {
        one.what == outcome.what
            && Some(one.load) == outcome.found.sustained
            && one.verdict == Verdict::Sustained
    };
    tried.iter().rev().find(is_it)?.delivered
}

fn document(
    arguments: &CapacityArgs,
    url: &str,
    published: &[Limit],
    rest: f64,
    results: &[Outcome],
    tried: &[Tried],
) -> Value {
    let published: serde_json::Map<String, Value> =
        published.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let results: Vec<Value> = results
        .iter()
        .map(|one| {
            json!({
                "what": one.what.name(),
                "sustained": one.found.sustained,
                "not_sustained": one.found.failed,
                "publishing_ms": interval_ms(arguments, one.what),
                "per_second": delivered(tried, one),
                "usual_per_item_s": one.usual,
                "ended_because": one.stopped,
                "failed": one.has_failed,
                "invalid": one.invalid,
            })
        })
        .collect();
    let tried: Vec<Value> = tried
        .iter()
        .map(|one| {
            // Infinite becomes null: there was no response.
            json!({
                "what": one.what.name(),
                "load": one.load,
                "outcome": one.verdict,
                "per_second": one.delivered,
                "others_read_us": one.noticed.map(|noticed| noticed.middle_us),
                "others_longest_us": one.noticed.map(|noticed| noticed.longest_us),
            })
        })
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

/// The effect of sustained loads on other clients.
fn others(rest: f64, tried: &[Tried]) -> Option<String> {
    let sustained = tried.iter().filter(|one| one.verdict == Verdict::Sustained);
    let noticed: Vec<Noticed> = sustained.filter_map(|one| one.noticed).collect();
    let most = |of: fn(&Noticed) -> f64| noticed.iter().map(of).reduce(f64::max);
    let (middle, longest) = (most(|one| one.middle_us)?, most(|one| one.longest_us)?);
    Some(format!(
        "another client's Reads took {} at rest and at most {} under sustained loads (the median of each); one \
         took {}, including setup",
        figures::micros(rest),
        figures::micros(middle),
        figures::micros(longest)
    ))
}

fn print(
    arguments: &CapacityArgs,
    rest: f64,
    results: &[Outcome],
    tried: &[Tried],
    published: &[Limit],
    output: Output,
) -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("capacity", Align::Left),
        ("sustained", Align::Right),
        ("not", Align::Right),
        ("delivered/s", Align::Right),
    ]);
    let shown = |load: Option<u64>| {
        load.map_or_else(
            || "–".to_owned(),
            |load| figures::thousands(i64::try_from(load).unwrap_or(i64::MAX)),
        )
    };
    for one in results {
        table.row([
            one.what.name().to_owned(),
            shown(one.found.sustained),
            shown(one.found.failed),
            delivered(tried, one).map_or_else(String::new, figures::number),
        ]);
    }
    output.text(&table.to_string())?;
    for Outcome { what, found, stopped, .. } in results {
        if let Some((load, why)) = found.failed.and_then(|load| Some((load, missed(tried, *what, load)?))) {
            output
                .text(wrapped("", &format!("{}: of {} {why}", what.name(), shown(Some(load)))).trim_end())?;
        }
        if let Some(reason) = stopped {
            output.text(wrapped("", &format!("{}: {reason}", what.name())).trim_end())?;
        }
    }
    if let Some(said) = others(rest, tried) {
        output.text(wrapped("", &said).trim_end())?;
    }
    output.text("")?;
    let mut limits = Table::new(&[("published by the server", Align::Left), ("limit", Align::Right)]);
    for (name, value) in published {
        let text = match value {
            Value::Null => "not published".to_owned(),
            value if value.as_f64() == Some(0.0) => "none".to_owned(),
            value => value.as_i64().map_or_else(|| value.to_string(), figures::thousands),
        };
        limits.row([(*name).to_owned(), text]);
    }
    output.text(&limits.to_string())?;
    let mut meaning =
        "sustained: every item received 99 % of its values and messages came within 110 % of the interval; its values \
         are "
            .to_owned();
    meaning.push_str(if arguments.update.is_some() {
        "one each --update"
    } else {
        "those of the median item"
    });
    meaning.push_str(", or those under the first load if more");
    meaning.push_str(if arguments.safe {
        "; other clients were not slowed down; safe mode does not try loads between the two"
    } else {
        "; the bracket is narrower than 10 % unless the search ended before"
    });
    output.text(wrapped("", &meaning).trim_end())?;
    if results.iter().any(|one| one.what == What::Items) {
        let slow = figures::number(interval_ms(arguments, What::Items));
        output.text(&format!("slow items: each reports every {slow} ms"))?;
    }
    Ok(())
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
    fn slow_responses_to_other_clients_are_strain() {
        let clear = |now: f64| match strain(140.0, now) {
            Some(Verdict::NotSustained { clear, why }) => {
                assert!(why.contains("140 µs at rest"), "{why}");
                Some(clear)
            }
            _ => None,
        };
        // Twice as long is not a strain if the difference is below 2 ms.
        assert_eq!(
            (clear(400.0), clear(4_000.0), clear(25_000.0), clear(f64::INFINITY)),
            (None, Some(false), Some(true), Some(true))
        );
        assert_eq!(strain(30_000.0, 50_000.0), None);
    }

    #[test]
    fn the_effect_on_other_clients_has_priority() {
        let noticed = |middle_us, longest_us, is_ended| Some(Noticed { middle_us, longest_us, is_ended });
        let of = |middle_us: f64, is_ended: bool| noticed(middle_us, 234_000.0, is_ended);
        let missed = Verdict::NotSustained { why: "late".into(), clear: false };
        let why = |verdict: &Verdict| match verdict {
            Verdict::NotSustained { why, .. } => why.clone(),
            _ => String::new(),
        };
        assert_eq!(combined_verdict(missed.clone(), 140.0, None), (missed.clone(), false));
        assert_eq!(
            combined_verdict(Verdict::Sustained, 140.0, of(200.0, false)),
            (Verdict::Sustained, false)
        );
        // A moderate delay does not override the measurement.
        assert_eq!(combined_verdict(missed.clone(), 140.0, of(4_000.0, false)), (missed.clone(), false));
        let (verdict, is_severe) = combined_verdict(Verdict::Sustained, 140.0, of(4_000.0, false));
        assert!(why(&verdict).contains("4.00 ms") && !is_severe, "{verdict:?}");
        let (verdict, is_severe) = combined_verdict(missed, 140.0, of(f64::INFINITY, false));
        assert!(why(&verdict).contains("no answer") && is_severe, "{verdict:?}");
        let (verdict, is_severe) =
            combined_verdict(Verdict::Sustained, 140.0, noticed(150.0, 1_234_000.0, false));
        assert!(why(&verdict).contains("1.23 s") && is_severe, "{verdict:?}");
        let (verdict, is_severe) =
            combined_verdict(Verdict::Sustained, 140.0, noticed(150.0, f64::INFINITY, true));
        assert!(
            why(&verdict).ends_with("no answer under load, so that it was ended") && is_severe,
            "{verdict:?}"
        );
        // A server that needs a second when idle has a longer timeout.
        let slow = combined_verdict(Verdict::Sustained, 1e6, noticed(1.1e6, 3e6, false));
        assert_eq!(slow, (Verdict::Sustained, false));
    }

    #[test]
    fn conditions_follow_the_arguments() {
        let arguments = Command::try_parse_from(["x", "localhost", "-c", "5", "--safe"]).unwrap().capacity;
        assert_eq!(arguments.what, [What::Sessions, What::Signals, What::Items]);
        let sessions = condition(&arguments, "opc.tcp://h:1", What::Sessions, 40).unwrap();
        assert_eq!((sessions.clients, sessions.items), (40, Some(40)));
        let signals = condition(&arguments, "opc.tcp://h:1", What::Signals, 3).unwrap();
        assert_eq!((signals.clients, signals.items), (3, Some(3)));
        let slow = condition(&arguments, "opc.tcp://h:1", What::Items, 500).unwrap();
        assert_eq!(slow.publishing_ms, Some(500.0));
        let limits: [Limit; 2] = [("MaxSessions", json!(30)), ("MaxMonitoredItems", json!(0))];
        // One session is for the observer.
        assert_eq!(most(&arguments, &limits, What::Sessions), 29);
        assert_eq!(most(&arguments, &limits, What::Items), 1_000_000);
        let not = |load, why: &str| Tried {
            what: What::Signals,
            load,
            verdict: Verdict::NotSustained { why: why.to_owned(), clear: false },
            delivered: Some(1.0),
            noticed: None,
        };
        let tried = [not(800, "late"), not(700, "lost"), not(700, "late")];
        assert_eq!(missed(&tried, What::Signals, 700), Some("late"));
        assert_eq!(missed(&tried, What::Sessions, 700), None);
    }

    #[test]
    fn delivered_values_are_those_measured() {
        let of = |load, delivered, verdict| Tried {
            what: What::Signals,
            load,
            verdict,
            delivered: Some(delivered),
            noticed: None,
        };
        let late = Verdict::NotSustained { why: "late".into(), clear: false };
        let tried = [
            of(100, 990.0, Verdict::Sustained),
            of(200, 1_500.0, late.clone()),
            of(200, 1_960.0, Verdict::Sustained),
            of(400, 2_100.0, late),
        ];
        let outcome = |what, sustained| Outcome {
            what,
            found: Found { sustained, failed: Some(400) },
            stopped: None,
            has_failed: false,
            invalid: None,
            usual: Some(9.8),
        };
        assert_eq!(delivered(&tried, &outcome(What::Signals, Some(200))), Some(1_960.0));
        assert_eq!(delivered(&tried, &outcome(What::Signals, None)), None);
        assert_eq!(delivered(&tried, &outcome(What::Items, Some(200))), None);
    }
}
