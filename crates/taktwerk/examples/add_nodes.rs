//! Benchmark of NodeManagement: a client adds nodes at a fixed rate and deletes them, while another client (the canary) reads.
//! `cargo run --release -p taktwerk --example add_nodes -- [NODES] [PER SECOND] [PER REQUEST] [ROUNDS] [THREADS]`; the defaults
//! are 300000, 100000, 100, 5 and 1.
//!
//! The exit code is not zero if nodes are added at less than nine tenths of the rate, or if the p99 of reads during the load
//! exceeds 1.5 times the p99 without load. Both are medians of the rounds.
//!
//! The server has one CPU to itself. Both clients share another one to simulate separate machines: the reading client has
//! priority over all others (SCHED_FIFO, which requires root), and the adding client runs only when the CPU is idle (SCHED_IDLE).

#![allow(clippy::print_stdout)] // an example talks

mod canary;

use canary::{CPUS, Canary, Waits, be_idle, percentile, run_on};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;
use taktwerk::client::NewNode;
use taktwerk::schema::ids::object_ids;
use taktwerk::server::{TurnTimes, Turns};
use taktwerk::types::{BuiltInType, QualifiedName};
use taktwerk::{Client, NodeId, Server};

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

fn argument(at: usize, default: u32) -> u32 {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Maximum of the canary's p99, as a multiple of its p99 without load.
const CANARY_MAX: f64 = 1.5;
/// Minimum fraction of the rate.
const RATE_MIN: f64 = 0.9;
/// Duration of the measurement without load before each round.
const CALM: Duration = Duration::from_secs(3);
/// The first id of a variable: far from ids that the server chooses.
const FIRST: u32 = 1 << 30;

/// Prints the latency of the canary's reads, and returns the 99th percentile.
fn heard(canary: &Canary, what: &str) -> Result<f64> {
    let mut reads = canary.take()?;
    let (median, slow) = (percentile(&mut reads, 0.5), percentile(&mut reads, 0.99));
    println!("  canary, {what}: p50 {median:?}, p99 {slow:?} of {} reads", reads.len());
    Ok(slow.as_secs_f64())
}

/// Sends requests at a fixed rate. Returns the operations per second.
async fn paced<F: Future<Output = Result<()>>>(
    (count, per_request, per_second): (u32, u32, u32),
    mut request: impl FnMut(u32) -> F,
) -> Result<f64> {
    let start = Instant::now();
    for from in (0..count).step_by(per_request as usize) {
        let due = start + Duration::from_secs_f64(f64::from(from) / f64::from(per_second));
        let ahead = due.saturating_duration_since(Instant::now());
        // Timers have a resolution of a millisecond, so requests due within one are sent together.
        if ahead >= Duration::from_millis(1) {
            tokio::time::sleep(ahead).await;
        }
        request(from).await?;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (count, per_second, per_request) = (argument(1, 300_000), argument(2, 100_000), argument(3, 100));
    let (rounds, threads) = (argument(4, 5), argument(5, 1));
    let load = (count, per_request, per_second);
    let [own, others] = CPUS;
    // The server's threads inherit the CPU of this one.
    run_on(own)?;
    let times = Arc::new(TurnTimes::default());
    let server = Server::builder().bind("127.0.0.1:0").anonymous().node_management();
    let server = server.shards(threads as usize).turn_times(Arc::clone(&times)).limits(|limits| {
        limits.added_nodes_max = 2 * count as usize;
        limits.added_node_bytes_max = 1 << 30;
    });
    let running = server.build()?.spawn()?;
    // As in `taktwerk serve`.
    taktwerk_memory::free_evenly();
    run_on(others)?;
    let canary = Canary::start(running.url());
    be_idle()?;
    let client = Client::builder(&running.url()).unsecured().connect().await?;
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let client = &client;
        let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
        let folder = NewNode::object(objects, QualifiedName::new(1, "Added"));
        let folder = client.add_nodes([folder]).await?.pop().ok_or("no answer")??;
        let one = |number: u32| {
            let name = QualifiedName::new(1, format!("V{number}"));
            NewNode::variable(folder.clone(), name, BuiltInType::Double, Some(1.0.into()))
                .id(NodeId::numeric(1, FIRST + number))
        };
        tokio::time::sleep(CALM).await;
        let calm = heard(&canary, "calm")?;
        times.take();
        let mut waits = Waits::of(own)?;
        let added = paced(load, |from| {
            let nodes = (from..count.min(from + per_request)).map(one);
            async move { Ok(client.add_nodes(nodes).await?.into_iter().try_for_each(|one| one.map(drop))?) }
        });
        rates.push(added.await?);
        println!("AddNodes: {:.0} nodes/s, {per_request} in each request", rates.last().unwrap_or(&0.0));
        let meanwhile = heard(&canary, "meanwhile")?;
        let Turns { count: turns, elapsed_max, cpu_max, long, .. } = times.take();
        println!("  {turns} turns; longest {elapsed_max:?}, most CPU {cpu_max:?}, {long} of more than 1 ms");
        waits.print(own)?;
        ratios.push(meanwhile / calm);
        let deleted = paced(load, |from| {
            let ids = (from..count.min(from + per_request)).map(|at| NodeId::numeric(1, FIRST + at));
            async move {
                let bad = client.delete_nodes(ids).await?.into_iter().find(|status| status.is_bad());
                bad.map_or(Ok(()), |status| Err(status.into()))
            }
        });
        println!("DeleteNodes: {:.0} nodes/s", deleted.await?);
        heard(&canary, "meanwhile")?;
        client.delete_nodes([folder.clone()]).await?;
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::MAX)
    };
    println!("canary during the load, p99 relative to no load, each round: {ratios:.2?}");
    let (ratio, rate) = (median(ratios), median(rates));
    println!("medians: {ratio:.2} times the p99 without load, {rate:.0} nodes/s");
    if ratio > CANARY_MAX {
        return Err(format!(
            "the canary's p99 is {ratio:.2} times that without load; the limit is {CANARY_MAX}"
        )
        .into());
    }
    if rate < RATE_MIN * f64::from(per_second) {
        return Err(format!("{rate:.0} nodes/s were added; the target is {per_second}").into());
    }
    Ok(())
}
