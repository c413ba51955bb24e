//! Figures of alarms: a ConditionRefresh of many conditions, and a storm of alarms that many clients hear of, while another
//! client reads. `cargo run --release -p taktwerk --example alarm_storm -- [CONDITIONS] [STORM] [CLIENTS]`; the defaults are
//! 100000, 10000 and 20.
//!
//! The exit code is not zero if the reads of the storm take more than twice as long as the calm ones (p99), if an event is
//! neither delivered nor told as lost, or if a turn of the refresh uses more than a millisecond.
//!
//! The server has one CPU for itself. The clients that take events and the program that changes the alarms would be other
//! machines, and so would the client that reads: they have another CPU, where the client that reads goes before all others
//! (SCHED_FIFO, for which the program needs to be root) and those that take events run only while no other wants to
//! (SCHED_IDLE). Otherwise they would delay the reads: the kernel lets a thread that has begun run for up to three
//! milliseconds, however low its priority is, before one that wakes up goes on.

#![allow(clippy::print_stdout)] // an example talks

mod canary;

use canary::{CPUS, Canary, Waits, be_idle, percentile, run_on};
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

/// What a client of the storm selects: half of the alarms are severe enough.
const FILTER: &str = "Severity >= 500";

fn argument(at: usize, default: usize) -> usize {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the canary's p99 may become, in times of the calm one.
const CANARY_MAX: f64 = 2.0;

/// Takes events until so many have come or nothing comes any more. Events that say that others were lost count by themselves.
async fn take(subscription: &mut Subscription, count: usize) -> (usize, usize) {
    let (mut events, mut overflows) = (0, 0);
    while events < count {
        match tokio::time::timeout(Duration::from_secs(5), subscription.next()).await {
            Ok(Some(Update::Event(_, fields))) => {
                let overflow = is_overflow(&fields);
                events += usize::from(!overflow);
                overflows += usize::from(overflow);
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    (events, overflows)
}

/// What the shard has done since the last call: while it is in a turn, all other clients wait.
/// Returns how many used more than a millisecond.
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
    // The server's threads come from this one.
    run_on(own)?;
    let times = Arc::new(TurnTimes::default());
    let server = Server::builder().bind("127.0.0.1:0").anonymous().turn_times(Arc::clone(&times)).build()?;
    let plant = server.namespace("urn:example:storm").object("Plant").event_notifier().add()?;
    let start = Instant::now();
    let alarms: Vec<Alarm> = (0..conditions)
        .map(|at| {
            let severity = if at % 2 == 0 { 700 } else { 300 };
            // Instances in the address space would take dozens of nodes each.
            plant.alarm(&format!("Alarm {at}")).severity(severity).without_nodes().add()
        })
        .collect::<core::result::Result<_, _>>()?;
    println!("{conditions} conditions made in {:.2} s", start.elapsed().as_secs_f64());
    alarms.iter().for_each(|alarm| alarm.set_active(true, "before the clients came"));
    // As `taktwerk serve` does.
    taktwerk_memory::free_evenly();
    let running = server.spawn()?;
    let url = running.url();

    run_on(others)?;
    let canary = Canary::start(url.clone());
    // The program that changes the alarms shares locks with the server: it must not be held up while it has one.
    let (begin, begun) = std::sync::mpsc::channel::<Instant>();
    let changing = std::thread::spawn(move || -> Option<Duration> {
        let start = begun.recv().ok()?;
        // Within one second, whatever their number.
        let storm = alarms.get(..storm).unwrap_or(&alarms);
        for (at, some) in storm.chunks(storm.len().div_ceil(900).max(1)).enumerate() {
            std::thread::sleep(
                (start + at as u32 * Duration::from_millis(1)).saturating_duration_since(Instant::now()),
            );
            some.iter().for_each(|alarm| alarm.set_active(false, "the storm"));
        }
        Some(start.elapsed())
    });
    be_idle()?;
    // The first reads are those of a client that has just connected.
    tokio::time::sleep(Duration::from_millis(500)).await;
    canary.take()?;
    let mut waits = Waits::of(own)?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut calm = canary.take()?;
    let calm_p99 = percentile(&mut calm, 0.99);
    println!("canary, calm: p99 {calm_p99:?} of {} reads", calm.len());
    print_turns(&times);
    waits.print(own)?;

    let operator = Client::builder(&url).unsecured().connect().await?;
    let start = Instant::now();
    let listed = operator.conditions().list().await?.len();
    let span = start.elapsed().as_secs_f64();
    let mut during = canary.take()?;
    println!("ConditionRefresh: {listed} conditions in {span:.2} s");
    println!("canary meanwhile: p99 {:?} of {} reads", percentile(&mut during, 0.99), during.len());
    let long_turns = print_turns(&times);
    waits.print(own)?;

    let mut tasks = Vec::new();
    for _ in 0..clients {
        let client = Client::builder(&url).unsecured().connect().await?;
        let mut subscription = client.subscribe(Duration::from_millis(100)).await?;
        let query = EventQuery::new().select("EventType").select("Severity").filter(FILTER)?;
        let item = Item::events(NodeId::numeric(0, object_ids::SERVER), query).queue(10_000);
        subscription.monitor_item(item).await?;
        tasks.push(tokio::spawn(async move {
            let found = take(&mut subscription, storm / 2).await;
            drop(client);
            found
        }));
    }
    times.take();
    canary.take()?;
    waits = Waits::of(own)?;
    let start = Instant::now();
    begin.send(start)?;
    let (mut all, mut untold) = ((0, 0), 0);
    for task in tasks {
        let (events, overflows) = task.await?;
        if events < storm / 2 && overflows == 0 {
            untold += storm / 2 - events;
        }
        all = (all.0 + events, all.1 + overflows);
    }
    let took = start.elapsed().as_secs_f64();
    let mut meanwhile = canary.take()?;
    let raised = changing.join().ok().flatten().ok_or("the thread that raises alarms has failed")?;
    println!(
        "storm: {storm} alarms changed in {:.2} s, all events taken after {took:.2} s",
        raised.as_secs_f64()
    );
    let storm_p99 = percentile(&mut meanwhile, 0.99);
    let ratio = storm_p99.as_secs_f64() / calm_p99.as_secs_f64();
    println!(
        "canary in the storm: p99 {storm_p99:?} of {} reads, {ratio:.2} times the calm one",
        meanwhile.len()
    );
    print_turns(&times);
    waits.print(own)?;
    let account = running.shared().account();
    let (queued, max) = (account.used(Category::QueuedValues), account.max(Category::QueuedValues));
    println!("queued events: {queued} of {max} bytes; kept for clients: {} bytes", account.bytes());
    println!(
        "delivered to {clients} clients: {} of {} events, {} overflow events",
        all.0,
        clients * (storm / 2),
        all.1
    );
    let mut faults = Vec::new();
    if ratio > CANARY_MAX {
        faults.push(format!("the canary's p99 is {ratio:.2} times the calm one, not at most {CANARY_MAX}"));
    }
    if untold > 0 {
        faults.push(format!("{untold} events are missing, and no overflow event says so"));
    }
    if long_turns > 0 {
        faults.push(format!("{long_turns} turns of the refresh used more than 1 ms"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ").into()) }
}
