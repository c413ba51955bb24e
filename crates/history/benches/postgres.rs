//! Benchmark of the PostgreSQL store. It starts its own database server: `cargo bench -p taktwerk-history --features postgres
//! --bench postgres -- [ROUNDS]`; the default is 5 rounds. It writes into a temporary directory.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../src/postgres/database.rs"]
mod database;

use database::Database;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk_history::PostgresStore;
use taktwerk_server::history::{HistoryStore, HistoryValue, NodeKey};
use taktwerk_types::{StatusCode, UtcTime};

const VARIABLES: u32 = 2_000;
/// Batches of a round: one value of each variable per second.
const SECONDS: i64 = 250;

fn open(database: &Database) -> PostgresStore {
    for _ in 0..600 {
        match PostgresStore::open(&database.url(), "urn:bench", Duration::ZERO) {
            Ok(store) => return store,
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
    panic!("the database does not start");
}

fn main() {
    // Cargo passes `--bench` too.
    let rounds = std::env::args().find_map(|text| text.parse().ok()).unwrap_or(5);
    let Some(database) = Database::start() else { return };
    let store = open(&database);
    let keys: Vec<NodeKey> =
        (0..VARIABLES).map(|number| format!("nsu=urn:bench;i={number}").into()).collect();
    let mut rates = Vec::new();
    for round in 0..rounds {
        let batches: Vec<Vec<(NodeKey, HistoryValue)>> = (0..SECONDS)
            .step_by(5)
            .map(|from| {
                let seconds = from..from + 5;
                let at = |second: i64, key: &NodeKey| {
                    let source = UtcTime::from_ticks(
                        133_000_000_000_000_000 + (round * SECONDS + second) * 10_000_000,
                    );
                    let value = (second as f64 / 600.0).sin().into();
                    (
                        Arc::clone(key),
                        HistoryValue { source, server: source, status: StatusCode::GOOD, value },
                    )
                };
                seconds.flat_map(|second| keys.iter().map(move |key| at(second, key))).collect()
            })
            .collect();
        let count: usize = batches.iter().map(Vec::len).sum();
        let start = Instant::now();
        batches.iter().for_each(|batch| store.append(batch).unwrap());
        let rate = count as f64 / start.elapsed().as_secs_f64();
        println!("round {round}: {count} values by COPY, {rate:.0} values/s");
        rates.push(rate);
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "COPY: {:.0} values/s ({:.0} to {:.0})",
        rates[rates.len() / 2],
        rates[0],
        rates[rates.len() - 1]
    );
}
