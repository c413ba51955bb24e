//! CPU cost of a page with many live values: `cargo bench -p taktwerk-web --bench dashboard`.
//!
//! A server in this process has 5 000 variables that change once per second. Another thread reads the stream of a page
//! that shows them all and discards it. The output contains the CPU time of each thread without and with the page as a
//! share of one core, the bytes of the stream, and the time until every value has arrived. The threads of the reader
//! and of the writer do not count.
//!
//! `-- --values 5000 --seconds 30 --every 1000` are the defaults. First paint and bytes of a whole page in a real browser are printed by
//! `cargo test -p taktwerk-cli --test dashboard a_page_of_a_server -- --nocapture`, of a release build with `TAKTWERK_PROGRAM`.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a program that measures

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use taktwerk::{Server, Variable};
use taktwerk_web::{Settings, Subject, WebServer};

/// Threads that do not belong to the server.
const OTHERS: [&str; 2] = ["page", "writer"];
/// Maximum cost of a page, in percent of a core.
const LIMIT: f64 = 2.0;

fn argument(name: &str, default: u64) -> u64 {
    let mut all = std::env::args().skip_while(|argument| argument != name).skip(1);
    all.next().map_or(default, |text| text.parse().unwrap())
}

/// CPU time of each thread by its name, in seconds (proc(5), /proc/PID/task/TID/stat).
fn cpu() -> BTreeMap<String, f64> {
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut found = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
        let (before, after) = stat.rsplit_once(')').unwrap();
        let name = before.split_once('(').unwrap().1.trim_end_matches(|char: char| char.is_ascii_digit());
        let fields: Vec<u64> = after.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
        *found.entry(name.trim_end_matches('-').to_owned()).or_default() +=
            fields.iter().sum::<u64>() as f64 / per_second;
    }
    found
}

/// CPU time of the server's threads in a span, in percent of a core.
fn measure(span: Duration) -> BTreeMap<String, f64> {
    let (before, begin) = (cpu(), Instant::now());
    sleep(span);
    let (after, elapsed) = (cpu(), begin.elapsed().as_secs_f64());
    let of_server = after.into_iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
    of_server
        .map(|(name, seconds)| {
            let spent = seconds - before.get(&name).copied().unwrap_or_default();
            (name, 100.0 * spent / elapsed)
        })
        .collect()
}

/// What a page has received.
#[derive(Debug, Default)]
struct Received {
    bytes: AtomicU64,
    changes: AtomicU64,
    ends: AtomicBool,
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Opens the stream of a page. Returns the time until each value has arrived.
fn page(address: SocketAddr, values: u64, received: &Arc<Received>) -> Duration {
    let session: serde_json::Value = serde_json::from_str(&get(address, "/api/session")).unwrap();
    let nodes: Vec<String> = (0..values).map(|number| format!("ns=2;s=Plant/V{number}")).collect();
    let body = serde_json::json!({ "nodes": nodes, "interval": 500 }).to_string();
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api/live HTTP/1.1\r\nHost: localhost\r\nX-CSRF-Token: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        session["csrf"].as_str().unwrap(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let (told, whole) = std::sync::mpsc::channel();
    let received = Arc::clone(received);
    let read = move || {
        let mut missing: BTreeSet<u64> = (0..values).collect();
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while !received.ends.load(Ordering::Relaxed) {
            line.clear();
            if lines.read_until(b'\n', &mut line).unwrap() == 0 {
                return;
            }
            received.bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
            let Some(data) = line.strip_prefix(b"data: ".as_slice()) else { continue };
            // Each change begins with `[POSITION,`.
            let text = String::from_utf8_lossy(data);
            let Some((_, list)) = text.split_once("\"changes\":[") else { continue };
            let positions =
                list.split('[').skip(1).filter_map(|one| one.split(',').next()?.parse::<u64>().ok());
            let mut count = 0;
            for position in positions {
                count += 1;
                missing.remove(&position);
            }
            received.changes.fetch_add(count, Ordering::Relaxed);
            if missing.is_empty() {
                let _ = told.send(());
            }
        }
    };
    std::thread::Builder::new().name("page".to_owned()).spawn(read).unwrap();
    whole.recv_timeout(Duration::from_secs(60)).unwrap();
    begin.elapsed()
}

fn main() {
    let (values, seconds) = (argument("--values", 5000), argument("--seconds", 30));
    let every = Duration::from_millis(argument("--every", 1000));
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:bench").object("Plant").add().unwrap();
    let variables: Vec<Variable<f64>> =
        (0..values).map(|number| plant.variable(&format!("V{number}"), 0.0).add().unwrap()).collect();
    let running = server.spawn().unwrap();
    let subject = Subject {
        shared: Arc::clone(running.shared()),
        url: running.url(),
        server_pki: None,
        dashboard: None,
        is_anonymous_allowed: true,
        collectors: Vec::new(),
        sources: None,
        history: None,
        log: None,
    };
    let web = WebServer::start(subject, Settings::at(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
    let write = move || {
        let mut next = Instant::now();
        for round in 0u64.. {
            for (number, variable) in variables.iter().enumerate() {
                variable.set(round as f64 + number as f64 / 1e4);
            }
            next += every;
            sleep(next.saturating_duration_since(Instant::now()));
        }
    };
    std::thread::Builder::new().name("writer".to_owned()).spawn(write).unwrap();
    // Wait until the server is idle and the anonymous session exists.
    let _ = get(web.address(), "/api/server");
    sleep(Duration::from_secs(2));
    let span = Duration::from_secs(seconds);
    let without = measure(span);
    let received = Arc::new(Received::default());
    let whole = page(web.address(), values, &received);
    sleep(Duration::from_secs(2));
    let seen = |count: &AtomicU64| count.swap(0, Ordering::Relaxed) as f64 / seconds as f64;
    let _ = (seen(&received.bytes), seen(&received.changes));
    let with = measure(span);
    let (bytes, changes) = (seen(&received.bytes), seen(&received.changes));
    received.ends.store(true, Ordering::Relaxed);
    println!(
        "{values} values that change every {every:?}, a page with an interval of 500 ms, {seconds} s each"
    );
    println!("all values had arrived after {:.0} ms", whole.as_secs_f64() * 1e3);
    println!("stream: {changes:.0} changes per second, {:.1} kB/s", bytes / 1e3);
    println!("{:<24}{:>12}{:>12}", "thread", "without", "with");
    for (name, share) in &with {
        let before = without.get(name).copied().unwrap_or_default();
        if *share >= 0.05 || before >= 0.05 {
            println!("{name:<24}{before:>10.2} %{share:>10.2} %");
        }
    }
    let sum = |of: &BTreeMap<String, f64>| of.values().sum::<f64>();
    let cost = sum(&with) - sum(&without);
    println!("{:<24}{:>10.2} %{:>10.2} %", "sum", sum(&without), sum(&with));
    let is_met = if cost <= LIMIT { "within" } else { "above" };
    println!("the page costs {cost:.2} % of a core, {is_met} the limit of {LIMIT} %");
}
