//! Benchmark of the SQLite store: `cargo bench -p taktwerk-history`. It writes into a temporary directory.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;
use taktwerk_history::{Retention, SqliteStore};
use taktwerk_server::history::aggregate::bound::Rules;
use taktwerk_server::history::aggregate::{Aggregate, Configuration, Interval, compute};
use taktwerk_server::history::{HistoryStore, HistoryValue, NodeKey, Order, ReadLimit, Span};
use taktwerk_types::{StatusCode, UtcTime};

const SECOND: i64 = 10_000_000;

fn time(second: i64) -> UtcTime {
    UtcTime::from_ticks(133_000_000_000_000_000 + second * SECOND)
}

/// A slow sine with noise in the last of three digits.
fn value(second: i64, phase: u32, noise: &mut u64) -> HistoryValue {
    *noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let random = (*noise >> 33) as f64 / (1u64 << 31) as f64 - 0.5;
    let sine = 50.0 + 20.0 * (second as f64 / 600.0 + f64::from(phase)).sin() + random * 0.004;
    let source = time(second);
    let value = ((sine * 1000.0).round() / 1000.0).into();
    HistoryValue { source, server: source, status: StatusCode::GOOD, value }
}

fn per_second(count: usize, since: Instant) -> String {
    format!("{:.2} M/s", count as f64 / since.elapsed().as_secs_f64() / 1e6)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| SqliteStore::open(folder.path().join(name), Retention::default()).unwrap();
    let mut noise = 1;

    // 2 000 variables, 300 values each, in batches of one second.
    let store = open("many.db");
    let keys: Vec<NodeKey> = (0..2_000).map(|number| format!("nsu=urn:bench;i={number}").into()).collect();
    let batches: Vec<Vec<_>> = (0..300)
        .map(|second| {
            (0..).zip(&keys).map(|(phase, key)| (Arc::clone(key), value(second, phase, &mut noise))).collect()
        })
        .collect();
    let start = Instant::now();
    batches.iter().for_each(|batch| store.append(batch).unwrap());
    println!("append, 2 000 variables: {}", per_second(600_000, start));
    let start = Instant::now();
    store.close().unwrap();
    println!("and into chunks: {:.2} s for 600 000 values", start.elapsed().as_secs_f64());
    println!("bytes per value, 300 values per variable: {:.2}", store.size().unwrap() as f64 / 600_000.0);
    drop(store);

    // One variable, 30 days of seconds.
    let store = open("one.db");
    let key: NodeKey = "nsu=urn:bench;i=0".into();
    let count = 30 * 86_400;
    let start = Instant::now();
    for from in (0..count).step_by(100_000) {
        let batch: Vec<_> = (from..count.min(from + 100_000))
            .map(|second| (Arc::clone(&key), value(second, 0, &mut noise)))
            .collect();
        store.append(&batch).unwrap();
    }
    store.close().unwrap();
    println!("append, one variable: {}", per_second(count as usize, start));
    println!("bytes per value, full chunks: {:.2}", store.size().unwrap() as f64 / count as f64);
    drop(store);
    let store = open("one.db");
    let mut values = Vec::new();
    let start = Instant::now();
    store.read(&key, Span::ALL, Order::Forward, ReadLimit::count(1_000_000), &mut values).unwrap();
    println!("read of 1 000 000 values from a newly opened file: {}", per_second(values.len(), start));
    drop(store);
    let store = open("one.db");
    let mut values = Vec::new();
    let start = Instant::now();
    store.read(&key, Span::ALL, Order::Forward, ReadLimit::NONE, &mut values).unwrap();
    let rules = Rules::new(false, Configuration::default());
    let mut sum = 0.0;
    for (minute, piece) in (0..).zip(values.chunks(60)) {
        let (start, end) = (time(minute * 60), time(minute * 60 + 60));
        let interval = Interval { values: piece, start, end, is_short: false, annotations: 0, rules };
        sum += compute(Aggregate::Average, &interval).value.as_f64().unwrap_or_default();
    }
    println!(
        "average per minute over 30 days of seconds: {:.2} s (mean {:.3})",
        start.elapsed().as_secs_f64(),
        sum / (count / 60) as f64
    );
}
