//! Counts heap allocations of a whole server process while it publishes: updates, sampling, publishing, encoding,
//! sockets and timers. The load is a separate process, `taktwerk bench subscribe`.
//!
//! `cargo bench -p taktwerk-cli --bench allocations -- --taktwerk PATH` prints one JSON document.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a benchmark prints results

use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use taktwerk::{RunningServer, Server, Variable};
use taktwerk_lab::clock;
use taktwerk_lab::program::Program;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIGNALS: u32 = 1_000;
const CLIENTS: u32 = 10;
const PERIOD_MS: u64 = 100;
/// Start of the counted window: everything is connected, and buffers have reached their size.
const SETTLED: Duration = Duration::from_secs(5);
/// Length of the counted window.
const WINDOW: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test` and `cargo bench` without arguments only check that this builds and starts.
    let Some(path) = arguments.iter().position(|argument| argument == "--taktwerk") else {
        eprintln!("give the path of the load generator: --taktwerk PATH");
        return ExitCode::SUCCESS;
    };
    match measure(arguments.get(path + 1).map(PathBuf::from).unwrap_or_default()) {
        Ok(document) => {
            println!("{document:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(taktwerk: PathBuf) -> Result<Value, Box<dyn Error>> {
    let (running, signals) = serve()?;
    let updates = std::thread::Builder::new().name("signals".into()).spawn(move || update(&signals))?;
    let seconds = (SETTLED + WINDOW).as_secs() + 1;
    let load = Program::new(taktwerk)
        .args([
            "bench",
            "subscribe",
            &running.url(),
            "--json",
            "-I",
            "100",
            "--sampling",
            "100",
            "--update",
            "100",
        ])
        .arg("-c")
        .arg(CLIENTS)
        .arg("--items")
        .arg(SIGNALS)
        .arg("-d")
        .arg(seconds)
        .args(["--warmup", "0"]);
    let load = std::thread::spawn(move || load.run(Duration::from_secs(60)));

    clock::sleep_until(clock::monotonic() + nanos(SETTLED));
    let region = Region::new(ALLOCATOR);
    clock::sleep_until(clock::monotonic() + nanos(WINDOW));
    let change = region.change();

    let output = load.join().map_err(|_| "the load's thread panicked")??;
    let result: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the load failed: {}", String::from_utf8_lossy(&output.stderr)))?;
    let received = result.pointer("/progress/mean_per_item").and_then(Value::as_f64).unwrap_or(0.0);
    if received < seconds as f64 {
        // Ten per second are expected. Without messages, zero allocations would prove nothing.
        return Err(format!("only {received} notifications per item arrived in {seconds} s").into());
    }
    let cycles = u64::from(CLIENTS) * WINDOW.as_secs() * 1_000 / PERIOD_MS;
    let allocations = change.allocations + change.reallocations;
    running.stop(Duration::from_secs(1));
    drop(updates);
    Ok(json!({
        "signals": SIGNALS,
        "clients": CLIENTS,
        "publish_cycles": cycles,
        "notifications": u64::from(SIGNALS) * WINDOW.as_secs() * 1_000 / PERIOD_MS,
        "allocations": allocations,
        "bytes": change.bytes_allocated,
        "allocations_per_cycle": allocations as f64 / cycles as f64,
    }))
}

/// A running server and its signals.
type Served = (RunningServer, Vec<Variable<f64>>);

fn serve() -> Result<Served, Box<dyn Error>> {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build()?;
    let folder = server.objects().folder("signals")?;
    let signals = (0..SIGNALS)
        .map(|signal| {
            let id = taktwerk::NodeId::numeric(1, 100_000 + signal);
            folder.variable(&format!("signal{signal}"), f64::from(signal)).node_id(id).add()
        })
        .collect::<Result<_, _>>()?;
    Ok((server.spawn()?, signals))
}

/// Updates the signals until the process ends.
fn update(signals: &[Variable<f64>]) {
    let start = clock::monotonic();
    for tick in 1u32.. {
        clock::sleep_until(start + u64::from(tick) * PERIOD_MS * 1_000_000);
        let now = taktwerk_net::clock::wall();
        for (signal, variable) in (0u32..).zip(signals) {
            variable.set_at(f64::from(tick + signal), now);
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
