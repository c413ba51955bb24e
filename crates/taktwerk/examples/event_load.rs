//! Measures a server's CPU time per delivered event: many clients receive events with a severity of at least 500.
//!
//! `cargo run --release -p taktwerk --example event_load -- URL=PID…`, for example with `taktwerk serve --events 1000`. Several
//! servers are measured in turn, and the last line compares the first with each of the others.
//!
//! Events are numbered, so that missing ones are detected. A server must report undelivered events with an
//! EventQueueOverflowEvent; otherwise the exit code is not zero.

#![allow(clippy::print_stdout)] // an example talks

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use taktwerk::client::{Item, Update};
use taktwerk::schema::ids::{object_ids, object_type_ids};
use taktwerk::{Client, NodeId, Variant};
use taktwerk_client::EventQuery;

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

const CLIENTS: usize = 100;
const ROUNDS: usize = 3;
const WARMUP: Duration = Duration::from_secs(2);
const SPAN: Duration = Duration::from_secs(5);
const FIELDS: [&str; 6] = ["EventId", "EventType", "SourceName", "Time", "Message", "Severity"];
const FILTER: &str = "Severity >= 500";
/// Only every second event matches.
const STEP: u64 = 2;

/// Counters of all clients.
#[derive(Debug, Default)]
struct Counts {
    delivered: AtomicU64,
    /// Events that report lost events.
    overflows: AtomicU64,
    /// Missing events that an overflow event reported.
    told: AtomicU64,
    /// Missing events without report.
    lost: AtomicU64,
    /// Updates for which this program was too slow, and events without number.
    faults: AtomicU64,
}

/// The state of one client.
#[derive(Debug, Default)]
struct Seen {
    last: Option<u64>,
    overflowed: bool,
}

impl Seen {
    fn take(&mut self, update: &Update, counts: &Counts) {
        let add = |count: &AtomicU64, number: u64| {
            count.fetch_add(number, Ordering::Relaxed);
        };
        let fields = match update {
            Update::Event(_, fields) => fields,
            Update::Lagged(missed) => return add(&counts.faults, *missed as u64),
            _ => return,
        };
        let overflow = object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE;
        if matches!(fields.get(1), Some(Variant::NodeId(kind)) if kind.ns0() == Some(overflow)) {
            self.overflowed = true;
            return add(&counts.overflows, 1);
        }
        let Some(number) = fields.get(4).and_then(number) else { return add(&counts.faults, 1) };
        add(&counts.delivered, 1);
        if let Some(last) = self.last.replace(number) {
            // Not the next number: also a repeated or late event.
            let missing = number.abs_diff(last + STEP) / STEP;
            if missing > 0 {
                add(if self.overflowed && number > last { &counts.told } else { &counts.lost }, missing);
                self.overflowed = false;
            }
        }
    }
}

/// The number at the end of an event's message.
fn number(message: &Variant) -> Option<u64> {
    match message {
        Variant::LocalizedText(text) => text.text.as_str().rsplit(' ').next()?.parse().ok(),
        _ => None,
    }
}

/// A server and its process.
struct Target {
    url: String,
    pid: u32,
    /// CPU time per delivered event for each round, in µs.
    costs: Vec<f64>,
}

impl Target {
    fn parse(text: &str) -> Result<Self> {
        let (url, pid) = text.rsplit_once('=').ok_or("each server is URL=PID")?;
        Ok(Self { url: url.to_owned(), pid: pid.parse()?, costs: Vec::new() })
    }

    /// CPU time of all threads.
    fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            nanos += text.split(' ').next().ok_or("schedstat is empty")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    async fn round(&mut self) -> Result<()> {
        let counts = Arc::<Counts>::default();
        let mut tasks = Vec::new();
        for _ in 0..CLIENTS {
            let client = Client::builder(&self.url).unsecured().connect().await?;
            let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
            let query = FIELDS.iter().fold(EventQuery::new(), |query, name| query.select(name));
            let item = Item::events(NodeId::numeric(0, object_ids::SERVER), query.filter(FILTER)?);
            subscription.monitor_item(item.queue(10_000)).await?;
            let counts = Arc::clone(&counts);
            tasks.push(tokio::spawn(async move {
                let mut seen = Seen::default();
                while let Some(update) = subscription.next().await {
                    seen.take(&update, &counts);
                }
                drop(client);
            }));
        }
        tokio::time::sleep(WARMUP).await;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (start, before, first) = (Instant::now(), self.cpu()?, get(&counts.delivered));
        tokio::time::sleep(SPAN).await;
        let (took, cpu) = (start.elapsed().as_secs_f64(), (self.cpu()? - before).as_secs_f64());
        let count = (get(&counts.delivered) - first) as f64;
        if count == 0.0 {
            return Err(format!("{} delivers no events", self.url).into());
        }
        let cost = cpu * 1e6 / count;
        println!(
            "{}: {:.0} events/s delivered to {CLIENTS} clients, server at {:.1} % of a core, {cost:.2} µs per event",
            self.url,
            count / took,
            100.0 * cpu / took
        );
        let [overflows, told, lost, faults] =
            [&counts.overflows, &counts.told, &counts.lost, &counts.faults].map(get);
        if overflows > 0 {
            println!("  {told} events were not delivered, reported by {overflows} overflow events");
        }
        if lost > 0 || faults > 0 {
            return Err(format!(
                "{}: {lost} events are missing or out of order without an overflow event; {faults} could not be received",
                self.url
            )
            .into());
        }
        self.costs.push(cost);
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(())
    }

    fn median(&mut self) -> f64 {
        self.costs.sort_by(f64::total_cmp);
        self.costs.get(self.costs.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut targets =
        std::env::args().skip(1).map(|text| Target::parse(&text)).collect::<Result<Vec<_>>>()?;
    if targets.is_empty() {
        return Err("name at least one server as URL=PID".into());
    }
    for _ in 0..ROUNDS {
        for target in &mut targets {
            target.round().await?;
        }
    }
    let medians: Vec<f64> = targets.iter_mut().map(Target::median).collect();
    for (target, median) in targets.iter().zip(&medians) {
        let (least, most) = (target.costs.first(), target.costs.last());
        println!(
            "{}: median {median:.2} µs per event, {:.2} to {:.2}; ratio to the first server {:.3}",
            target.url,
            least.unwrap_or(&f64::NAN),
            most.unwrap_or(&f64::NAN),
            medians.first().unwrap_or(&f64::NAN) / median
        );
    }
    Ok(())
}
