//! Measures what recording costs the clients that are served at the same time, on one processor.
//!
//! `taktwerk serve` runs on CPU 0 with 20 000 signals that change every 100 ms; a client on CPU 1 monitors 10 000 of them. Rounds
//! without history alternate with rounds that record all signals in SQLite. Requires the commands `taktwerk` (in the directory
//! above this program's) and `taskset`.
//!
//! `cargo build --release -p taktwerk-cli && cargo run --release -p taktwerk-history --example beside_serving -- [ROUNDS]
//! [SECONDS]`; the defaults are 3 and 30.

#![allow(clippy::print_stdout)] // an example talks

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use taktwerk_history::{Retention, SqliteStore};
use taktwerk_server::history::{HistoryStore, NodeKey, Order, ReadLimit, Span};

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

const SIGNALS: u32 = 20_000;
const WATCHED: u32 = 10_000;
/// Recorded signals whose values are counted.
const COUNTED: u32 = 100;
/// Writes per second of a signal.
const RATE: f64 = 10.0;

fn argument(at: usize, default: u32) -> u32 {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A server that exits when its standard input closes.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(taktwerk: &Path, history: Option<&Path>) -> Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(taktwerk);
        command.args(["serve", "--port", "0", "--policy", "None", "--no-plant", "--exit-with-stdin"]);
        command.args(["--signals", &SIGNALS.to_string(), "--update", "100", "--signal-values", "sine"]);
        if let Some(file) = history {
            command.arg("--history-signals").arg("--history").arg(file);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        for line in lines {
            if let Some(url) = line?.strip_prefix("READY ") {
                return Ok(Self { child, url: url.to_owned() });
            }
        }
        Err("the server does not start".into())
    }

    /// Stops the server so that everything is in its file.
    fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ends with {status}").into()) }
    }
}

/// The processor time used by a process, in seconds.
fn cpu(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Ok((ticks(11) + ticks(12)) as f64 / 100.0)
}

/// One load as measured by `bench subscribe`: p50 and p99 of the delivery latency and p99 of the interval, in ms.
fn load(taktwerk: &Path, server: &Server, seconds: u32) -> Result<BTreeMap<&'static str, f64>> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(taktwerk).args([
        "bench",
        "subscribe",
        &server.url,
        "-I",
        "100",
        "--steady",
    ]);
    command.args(["--items", &WATCHED.to_string(), "-d", &format!("{seconds}s"), "-j", "-q"]);
    let before = cpu(server.child.id())?;
    let output = command.stderr(Stdio::inherit()).output()?;
    let used = cpu(server.child.id())? - before;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |part: &str, name: &str| document[part][name].as_f64().ok_or(format!("no {part} {name}"));
    let (least, most) = (number("progress", "min_per_item")?, f64::from(seconds) * RATE);
    if least < most * 0.99 {
        println!("an item has {least} of {most} values");
    }
    Ok(BTreeMap::from([
        ("delivery p50", number("delivery", "p50_us")? / 1e3),
        ("delivery p90", number("delivery", "p90_us")? / 1e3),
        ("delivery p99", number("delivery", "p99_us")? / 1e3),
        ("delivery max", number("delivery", "max_us")? / 1e3),
        ("interval p99", number("message_interval", "p99_us")? / 1e3),
        ("CPU s", used),
    ]))
}

/// Values per second between the first and the last of some signals, values that are missing, and bytes per value.
fn recorded(file: &Path) -> Result<(f64, u64, f64)> {
    let store = SqliteStore::open(file, Retention::default())?;
    let (mut all, mut lost, mut rates) = (0, 0, Vec::new());
    for number in (0..SIGNALS).step_by((SIGNALS / COUNTED) as usize) {
        let key = NodeKey::from(format!("nsu=urn:taktwerk:demo-server;i={}", 100_000 + number));
        let mut values = Vec::new();
        store.read(&key, Span::ALL, Order::Forward, ReadLimit::NONE, &mut values)?;
        let good = values.iter().filter(|value| value.status.is_good()).count();
        lost += (values.len() - good) as u64;
        all += good;
        let (Some(first), Some(last)) = (values.get(1), values.last()) else {
            return Err(format!("{key} has no history").into());
        };
        let span = (last.source.ticks() - first.source.ticks()) as f64 / 1e7;
        rates.push((good.saturating_sub(2)) as f64 / span);
    }
    let rate = rates.iter().sum::<f64>() / rates.len() as f64 * f64::from(SIGNALS);
    let count = all as f64 / f64::from(COUNTED) * f64::from(SIGNALS);
    Ok((rate, lost, store.size()? as f64 / count))
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}

fn main() -> Result<()> {
    let (rounds, seconds) = (argument(1, 3), argument(2, 30));
    let program = std::env::current_exe()?;
    let taktwerk: PathBuf = program.ancestors().nth(2).ok_or("no folder")?.join("taktwerk");
    let mut found: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for round in 0..rounds {
        for with_history in [false, true] {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("history.db");
            let server = Server::start(&taktwerk, with_history.then_some(&*file))?;
            let measured = load(&taktwerk, &server, seconds)?;
            server.stop()?;
            println!("round {round}, history {with_history}: {measured:.2?}");
            for (name, value) in measured {
                found.entry(name).or_default()[usize::from(with_history)].push(value);
            }
            if with_history {
                let (rate, lost, bytes) = recorded(&file)?;
                println!("recorded {rate:.0} values/s, {bytes:.2} bytes each, {lost} marks of lost values");
            }
        }
    }
    for (name, both) in found {
        let [without, with] = both.map(median);
        let shown = |(median, least, most): (f64, f64, f64)| format!("{median:.2} ({least:.2} to {most:.2})");
        println!(
            "{name}: {} without history, {} with, ratio {:.2}",
            shown(without),
            shown(with),
            with.0 / without.0
        );
    }
    Ok(())
}
