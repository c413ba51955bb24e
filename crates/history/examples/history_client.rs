//! Measures how fast a client reads a long history over TCP: 30 days of one value per second, in SQLite. Each round opens the
//! file and starts a server anew. `cargo run --release -p taktwerk-history --example history_client -- [ROUNDS]`; the default is
//! 5.

#![allow(clippy::print_stdout)] // an example talks

use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk::client::{HistoryQuery, HistoryRange};
use taktwerk::history::Aggregate;
use taktwerk::{Client, Server};
use taktwerk_history::{Retention, SqliteStore};
use taktwerk_server::history::{HistoryStore, HistoryValue, NodeKey};
use taktwerk_types::{StatusCode, UtcTime};

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

const SECONDS: i64 = 30 * 86_400;
const RAW: usize = 1_000_000;
const NAMESPACE: &str = "urn:example:history";

fn time(second: i64) -> UtcTime {
    UtcTime::from_ticks(133_000_000_000_000_000 + second * 10_000_000)
}

/// A slow sine with noise in the last of three digits.
fn fill(store: &SqliteStore, key: &NodeKey) -> Result<()> {
    let mut noise = 1u64;
    let mut value = |second: i64| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (noise >> 33) as f64 / (1u64 << 31) as f64 - 0.5;
        let sine = 50.0 + 20.0 * (second as f64 / 600.0).sin() + random * 0.004;
        let (source, value) = (time(second), (sine * 1e3).round() / 1e3);
        HistoryValue { source, server: source, status: StatusCode::GOOD, value: value.into() }
    };
    for from in (0..SECONDS).step_by(100_000) {
        let to = SECONDS.min(from + 100_000);
        let batch: Vec<_> = (from..to).map(|second| (NodeKey::clone(key), value(second))).collect();
        store.append(&batch)?;
    }
    Ok(store.finish()?)
}

fn shown(name: &str, unit: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    let (median, least, most) = (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)));
    println!("{name}: {median:.3} {unit} ({least:.3} to {most:.3})");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("history.db");
    let key = {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build()?;
        let variable = server.namespace(NAMESPACE).variable("Level", 0.0).add()?;
        server.space().node_key(variable.id())
    };
    fill(&SqliteStore::open(&file, Retention::default())?, &key)?;
    let (mut raw, mut processed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for is_raw in [true, false] {
            let store = Arc::new(SqliteStore::open(&file, Retention::default())?);
            let server = Server::builder().bind("127.0.0.1:0").anonymous().history(store).build()?;
            let node = server.namespace(NAMESPACE).variable("Level", 0.0).historize().add()?.id().clone();
            let running = server.spawn()?;
            let client = Client::builder(&running.url()).unsecured().connect().await?;
            let start = Instant::now();
            if is_raw {
                let (first, behind) = (Some(time(0)), Some(time(RAW as i64)));
                let query = HistoryQuery::raw(HistoryRange { start: first, end: behind, limit: Some(RAW) });
                let mut pages = client.history_pages(node, &query)?;
                let mut count = 0;
                while let Some(page) = pages.next().await? {
                    count += page.values.len();
                }
                if count != RAW {
                    return Err(format!("{count} of {RAW} values").into());
                }
                raw.push(RAW as f64 / start.elapsed().as_secs_f64() / 1e6);
            } else {
                let query = HistoryQuery::Processed {
                    start: time(0),
                    end: time(SECONDS),
                    aggregate: Aggregate::Average.node_id(),
                    interval: Duration::from_secs(60),
                    configuration: None,
                };
                let count = client.history(node, query).await?.values.len();
                if count as i64 != SECONDS / 60 {
                    return Err(format!("{count} averages").into());
                }
                processed.push(start.elapsed().as_secs_f64());
            }
            client.disconnect().await;
            running.stop(Duration::from_secs(1));
        }
    }
    shown("raw read of 1 000 000 values by a client", "million values/s", raw);
    shown("average per minute over 30 days of seconds, read by a client", "s", processed);
    Ok(())
}
