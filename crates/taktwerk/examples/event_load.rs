//! What events cost a server: many clients take those whose severity is at least 500, and the CPU time of the server's process is
//! divided by the events that they got.
//!
//! `cargo run --release -p taktwerk --example event_load -- URL=PID…`, for example beside `taktwerk serve --events 1000`. With more
//! than one server they take turns, and the last line compares the first with each of the others.

#![allow(clippy::print_stdout)] // an example talks

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use taktwerk::client::{Item, Update};
use taktwerk::schema::ids::object_ids;
use taktwerk::{Client, NodeId};
use taktwerk_client::EventQuery;

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

const CLIENTS: usize = 100;
const ROUNDS: usize = 3;
const WARMUP: Duration = Duration::from_secs(2);
const SPAN: Duration = Duration::from_secs(5);
const FIELDS: [&str; 6] = ["EventId", "EventType", "SourceName", "Time", "Message", "Severity"];
const FILTER: &str = "Severity >= 500";

/// A server and the process that it runs in.
struct Target {
    url: String,
    pid: u32,
    /// CPU time per delivered event of each round, µs.
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
        let delivered = Arc::new(AtomicU64::new(0));
        let mut tasks = Vec::new();
        for _ in 0..CLIENTS {
            let client = Client::builder(&self.url).unsecured().connect().await?;
            let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
            let query = FIELDS.iter().fold(EventQuery::new(), |query, name| query.select(name));
            let item = Item::events(NodeId::numeric(0, object_ids::SERVER), query.filter(FILTER)?);
            subscription.monitor_item(item.queue(10_000)).await?;
            let count = Arc::clone(&delivered);
            tasks.push(tokio::spawn(async move {
                while let Some(update) = subscription.next().await {
                    count.fetch_add(u64::from(matches!(update, Update::Event(..))), Ordering::Relaxed);
                }
                drop(client);
            }));
        }
        tokio::time::sleep(WARMUP).await;
        let (start, before, first) = (Instant::now(), self.cpu()?, delivered.load(Ordering::Relaxed));
        tokio::time::sleep(SPAN).await;
        let (took, cpu) = (start.elapsed().as_secs_f64(), (self.cpu()? - before).as_secs_f64());
        let count = (delivered.load(Ordering::Relaxed) - first) as f64;
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
