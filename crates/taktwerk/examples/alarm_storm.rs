//! Figures of alarms: a ConditionRefresh of many conditions, and a storm of alarms that many clients hear of, while another
//! client reads. `cargo run --release -p taktwerk --example alarm_storm -- [CONDITIONS] [STORM] [CLIENTS]`; the defaults are
//! 100000, 10000 and 20.

#![allow(clippy::print_stdout)] // an example talks

mod canary;

use canary::{Canary, percentile, yield_to_others};
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
fn print_turns(times: &TurnTimes) {
    let Turns { count, elapsed_max, cpu_max, long, .. } = times.take();
    println!("  {count} turns; longest {elapsed_max:?}, most CPU {cpu_max:?}, {long} of more than 1 ms");
}

fn is_overflow(fields: &[taktwerk::Variant]) -> bool {
    let overflow = taktwerk::schema::ids::object_type_ids::EVENT_QUEUE_OVERFLOW_EVENT_TYPE;
    matches!(fields.first(), Some(taktwerk::Variant::NodeId(id)) if id.ns0() == Some(overflow))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (conditions, storm, clients) = (argument(1, 100_000), argument(2, 10_000), argument(3, 20));
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

    let canary = Canary::start(url.clone());
    yield_to_others()?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut calm = canary.take()?;
    println!("canary, calm: p99 {:?} of {} reads", percentile(&mut calm, 0.99), calm.len());
    print_turns(&times);

    let operator = Client::builder(&url).unsecured().connect().await?;
    let start = Instant::now();
    let listed = operator.conditions().list().await?.len();
    let span = start.elapsed().as_secs_f64();
    let mut during = canary.take()?;
    println!("ConditionRefresh: {listed} conditions in {span:.2} s");
    println!("canary meanwhile: p99 {:?} of {} reads", percentile(&mut during, 0.99), during.len());
    print_turns(&times);

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
    let start = Instant::now();
    let changing = std::thread::spawn(move || {
        // Within one second, whatever their number.
        let storm = alarms.get(..storm).unwrap_or(&alarms);
        for (at, some) in storm.chunks(storm.len().div_ceil(100).max(1)).enumerate() {
            std::thread::sleep(
                (start + at as u32 * Duration::from_millis(9)).saturating_duration_since(Instant::now()),
            );
            some.iter().for_each(|alarm| alarm.set_active(false, "the storm"));
        }
        start.elapsed()
    });
    let mut all = (0, 0);
    for task in tasks {
        let (events, overflows) = task.await?;
        all = (all.0 + events, all.1 + overflows);
    }
    let took = start.elapsed().as_secs_f64();
    let mut meanwhile = canary.take()?;
    let raised = changing.join().map_err(|_| "the thread that raises alarms panicked")?;
    println!(
        "storm: {storm} alarms changed in {:.2} s, all events taken after {took:.2} s",
        raised.as_secs_f64()
    );
    println!("canary in the storm: p99 {:?} of {} reads", percentile(&mut meanwhile, 0.99), meanwhile.len());
    print_turns(&times);
    let account = running.shared().account();
    let (queued, max) = (account.used(Category::QueuedValues), account.max(Category::QueuedValues));
    println!("queued events: {queued} of {max} bytes; kept for clients: {} bytes", account.bytes());
    println!(
        "delivered to {clients} clients: {} of {} events, {} overflow events",
        all.0,
        clients * (storm / 2),
        all.1
    );
    Ok(())
}
