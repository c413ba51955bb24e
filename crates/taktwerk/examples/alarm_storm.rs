//! Benchmark of alarms: a ConditionRefresh of many conditions, and an alarm storm received by many clients, while another client
//! (the canary) reads. `cargo run --release -p taktwerk --example alarm_storm -- [CONDITIONS] [STORM] [CLIENTS]`; the defaults
//! are 100000, 10000 and 20.
//!
//! The exit code is not zero in three cases: the p99 of reads during the storm exceeds twice the p99 without load (median of the
//! rounds); an event is neither delivered nor reported as lost; or a turn of the refresh uses more than a millisecond of CPU.
//!
//! There are [`ROUNDS`] rounds, alternating without and with a storm, because a single interruption of some milliseconds by the
//! host determines the p99 of five hundred reads.
//!
//! The server has one CPU to itself. The other programs share another one to simulate separate machines: the reading client has
//! priority over all others (SCHED_FIFO, which requires root), and the clients that receive events run only when the CPU is idle
//! (SCHED_IDLE). Otherwise they would delay the reads: the kernel lets a running thread continue for up to three milliseconds,
//! whatever its priority, before a waking thread runs.

#![allow(clippy::print_stdout)] // an example talks

mod canary;

use canary::{CPUS, Canary, Waits, be_idle, percentile, run_on};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;
use taktwerk::client::{Item, Subscription, Update};
use taktwerk::schema::ids::object_ids;
use taktwerk::server::{TurnTimes, Turns};
use taktwerk::{Alarm, Client, NodeId, Server};
use taktwerk_client::EventQuery;
use taktwerk_server::Category;

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

/// The filter of the storm's clients: it selects half of the alarms.
const FILTER: &str = "Severity >= 500";

fn argument(at: usize, default: usize) -> usize {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Maximum of the canary's p99, as a multiple of its p99 without load.
const CANARY_MAX: f64 = 2.0;

/// Number of rounds, each without load and with a storm.
const ROUNDS: usize = 5;
/// Duration of the measurement without load before a storm.
const CALM: Duration = Duration::from_secs(3);
/// A storm is over after this time without events.
const SILENCE: Duration = Duration::from_secs(5);

/// Counters of a client.
#[derive(Debug, Default)]
struct Taken {
    events: AtomicUsize,
    /// Events that report lost events.
    overflows: AtomicUsize,
}

/// Counts events until the subscription ends.
async fn take(subscription: &mut Subscription, taken: &Taken) {
    while let Some(update) = subscription.next().await {
        if let Update::Event(_, fields) = update {
            let counter = if is_overflow(&fields) { &taken.overflows } else { &taken.events };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Takes the counters of all clients since the last call.
fn counted(clients: &[Arc<Taken>], of: fn(&Taken) -> &AtomicUsize) -> Vec<usize> {
    clients.iter().map(|one| of(one).swap(0, Ordering::Relaxed)).collect()
}

/// Waits until each client has `wanted` events or a report of lost ones, or no more events arrive. Returns the time of the last
/// event.
async fn all_taken(clients: &[Arc<Taken>], wanted: usize) -> Instant {
    let events = |one: &Arc<Taken>| one.events.load(Ordering::Relaxed);
    let is_told = |one: &Arc<Taken>| one.overflows.load(Ordering::Relaxed) > 0;
    let (mut before, mut last) = (0, Instant::now());
    loop {
        let sum = clients.iter().map(events).sum();
        if sum != before {
            (before, last) = (sum, Instant::now());
        }
        let silence = if clients.iter().any(is_told) { Duration::from_millis(300) } else { SILENCE };
        if clients.iter().all(|one| events(one) >= wanted) || last.elapsed() > silence {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Prints the shard's turns since the last call; during a turn all other clients wait. Returns how many used more than a
/// millisecond.
fn print_turns(times: &TurnTimes) -> u64 {
    let Turns { count, elapsed_max, cpu_max, long, .. } = times.take();
    println!("  {count} turns; longest {elapsed_max:?}, most CPU {cpu_max:?}, {long} of more than 1 ms");
    long
}

fn is_overflow(fields: &[taktwerk::Variant]) -> bool {
    let overflow = taktwerk::schema::ids::object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE;
    matches!(fields.first(), Some(taktwerk::Variant::NodeId(id)) if id.ns0() == Some(overflow))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (conditions, storm, clients) = (argument(1, 100_000), argument(2, 10_000), argument(3, 20));
    let [own, others] = CPUS;
    // The server's threads inherit the CPU of this one.
    run_on(own)?;
    let times = Arc::new(TurnTimes::default());
    let server = Server::builder().bind("127.0.0.1:0").anonymous().turn_times(Arc::clone(&times)).build()?;
    let plant = server.namespace("urn:example:storm").object("Plant").event_notifier().add()?;
    let start = Instant::now();
    let alarms: Vec<Alarm> = (0..conditions)
        .map(|at| {
            let severity = if at % 2 == 0 { 700 } else { 300 };
            // With nodes in the address space each alarm would need dozens of nodes.
            plant.alarm(&format!("Alarm {at}")).severity(severity).without_nodes().add()
        })
        .collect::<core::result::Result<_, _>>()?;
    println!("{conditions} conditions made in {:.2} s", start.elapsed().as_secs_f64());
    alarms.iter().for_each(|alarm| alarm.set_active(true, "before the clients came"));
    // As in `taktwerk serve`.
    taktwerk_memory::free_evenly();
    let running = server.spawn()?;
    let url = running.url();

    run_on(others)?;
    let canary = Canary::start(url.clone());
    // The program that changes the alarms shares locks with the server, so it must not be preempted while it holds one.
    let (begin, begun) = std::sync::mpsc::channel::<bool>();
    let (end, ended) = std::sync::mpsc::channel::<Duration>();
    std::thread::spawn(move || {
        let storm = alarms.get(..storm).unwrap_or(&alarms);
        while let Ok(is_active) = begun.recv() {
            let start = Instant::now();
            // Within one second, whatever their number.
            for (at, some) in storm.chunks(storm.len().div_ceil(900).max(1)).enumerate() {
                let due = start + at as u32 * Duration::from_millis(1);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                some.iter().for_each(|alarm| alarm.set_active(is_active, "the storm"));
            }
            // The receiver is gone only if the program has failed.
            let _ = end.send(start.elapsed());
        }
    });
    be_idle()?;
    // Skip the first reads after connecting.
    tokio::time::sleep(Duration::from_millis(500)).await;
    canary.take()?;
    times.take();
    let mut waits = Waits::of(own)?;

    let operator = Client::builder(&url).unsecured().connect().await?;
    let start = Instant::now();
    let listed = operator.conditions().list().await?.len();
    let span = start.elapsed().as_secs_f64();
    let mut during = canary.take()?;
    println!("ConditionRefresh: {listed} conditions in {span:.2} s");
    println!("canary meanwhile: p99 {:?} of {} reads", percentile(&mut during, 0.99), during.len());
    let long_turns = print_turns(&times);
    waits.print(own)?;

    let mut taken = Vec::new();
    for _ in 0..clients {
        let client = Client::builder(&url).unsecured().connect().await?;
        let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
        let query = EventQuery::new().select("EventType").select("Severity").filter(FILTER)?;
        let item = Item::events(NodeId::numeric(0, object_ids::SERVER), query).queue(10_000);
        subscription.monitor_item(item).await?;
        let own = Arc::new(Taken::default());
        taken.push(Arc::clone(&own));
        tokio::spawn(async move {
            take(&mut subscription, &own).await;
            drop(client);
        });
    }
    let (mut ratios, mut untold, mut sum, mut overflows) = (Vec::new(), 0, 0, 0);
    for round in 1..=ROUNDS {
        // Discard earlier reads, if any.
        let _ = canary.take();
        tokio::time::sleep(CALM).await;
        let mut calm = canary.take()?;
        let calm_p99 = percentile(&mut calm, 0.99);
        times.take();
        waits = Waits::of(own)?;
        let start = Instant::now();
        // The alarms are active before the first storm.
        begin.send(round % 2 == 0)?;
        let took = (all_taken(&taken, storm / 2).await - start).as_secs_f64();
        let mut meanwhile = canary.take()?;
        // Reads during the silence after the storm do not count.
        meanwhile.truncate((took / start.elapsed().as_secs_f64() * meanwhile.len() as f64).ceil() as usize);
        let (events, told) = (counted(&taken, |one| &one.events), counted(&taken, |one| &one.overflows));
        untold += events
            .iter()
            .zip(&told)
            .filter(|(_, told)| **told == 0)
            .map(|(events, _)| (storm / 2).saturating_sub(*events))
            .sum::<usize>();
        (sum, overflows) = (sum + events.iter().sum::<usize>(), overflows + told.iter().sum::<usize>());
        let raised = ended.recv_timeout(SILENCE).map_err(|_| "the thread that raises alarms has failed")?;
        let storm_p99 = percentile(&mut meanwhile, 0.99);
        let ratio = storm_p99.as_secs_f64() / calm_p99.as_secs_f64();
        ratios.push(ratio);
        println!(
            "storm {round}: {storm} alarms changed in {:.2} s, all events taken after {took:.2} s\n  canary: p99 {calm_p99:?} of \
             {} reads before, {storm_p99:?} of {} reads in the storm: {ratio:.2} times",
            raised.as_secs_f64(),
            calm.len(),
            meanwhile.len()
        );
        print_turns(&times);
        waits.print(own)?;
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios.get(ROUNDS / 2).copied().unwrap_or(f64::MAX);
    println!(
        "canary in the storm: p99 {ratio:.2} times that without load (median of {ROUNDS} rounds; {:.2} to {:.2})",
        ratios.first().copied().unwrap_or_default(),
        ratios.last().copied().unwrap_or_default()
    );
    let account = running.shared().account();
    let (queued, max) = (account.used(Category::QueuedValues), account.max(Category::QueuedValues));
    println!("queued events: {queued} of {max} bytes; kept for clients: {} bytes", account.bytes());
    println!(
        "delivered to {clients} clients: {sum} of {} events, {overflows} overflow events",
        clients * ROUNDS * (storm / 2),
    );
    let mut faults = Vec::new();
    if ratio > CANARY_MAX {
        faults.push(format!(
            "the canary's p99 is {ratio:.2} times that without load; the limit is {CANARY_MAX}"
        ));
    }
    if untold > 0 {
        faults.push(format!("{untold} events are missing without an overflow event"));
    }
    if long_turns > 0 {
        faults.push(format!("{long_turns} turns of the refresh used more than 1 ms"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ").into()) }
}
