//! Durable subscriptions of servers that are killed at any moment: every value arrives in order, or the Overflow bit
//! shows that some are missing.
//!
//! `TAKTWERK_KILLS=100 cargo test -p taktwerk-cli --test serve durable` kills a hundred times; the default is three times.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use taktwerk::client::{Item, ReconnectPolicy, Subscription, Update};
use taktwerk::{Client, NodeId, Variant};

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
/// Signals of the server, and how many of them are monitored.
const SIGNALS: u32 = 500;
const MONITORED: u32 = 50;

/// A server that ends with the test.
struct Server(Child);

impl Server {
    fn start(file: &Path, port: u16) -> Self {
        let mut child = Command::new(BINARY)
            .args([
                "serve",
                "--port",
                &port.to_string(),
                "--policy",
                "None",
                "--no-plant",
                "--exit-with-stdin",
            ])
            .args(["--signals", &SIGNALS.to_string(), "--update", "5ms", "--durable"])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It prints its address when it listens.
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert!(output.read_line(&mut line).unwrap() > 0, "the server does not start");
        std::thread::spawn(move || output.lines().for_each(drop));
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The received values of one signal.
#[derive(Default)]
struct Seen {
    last: Option<f64>,
    values: u64,
    gaps: u64,
}

/// The received values of all signals.
#[derive(Default)]
struct Book {
    signals: BTreeMap<u32, Seen>,
    lost: Vec<String>,
}

impl Book {
    /// Signals count up by one. A restarted server starts again at the beginning.
    fn note(&mut self, update: Update) {
        let change = match update {
            Update::Change(change) => change,
            Update::Lagged(count) => return self.lost.push(format!("{count} changes dropped by the client")),
            Update::State(event) => return self.state(&format!("{event:?}")),
            _ => return,
        };
        let seen = self.signals.entry(change.item).or_default();
        let overflow = change.value.status().has_overflow();
        let Some(value) = change.value.value.as_ref().and_then(Variant::as_f64) else { return };
        let follows = seen.last.is_none_or(|last| value == last + 1.0);
        if !follows && !overflow {
            self.lost
                .push(format!("signal {}: {value} behind {:?} without Overflow", change.item, seen.last));
        }
        seen.gaps += u64::from(!follows);
        seen.values += 1;
        seen.last = Some(value);
    }

    fn state(&mut self, event: &str) {
        // The client would create the subscription again, and it would not be durable.
        if event.starts_with("Recreating") || event.starts_with("DataLost") {
            self.lost.push(event.to_owned());
        }
    }
}

async fn read(subscription: &mut Subscription, book: &mut Book, span: Duration) {
    let end = tokio::time::Instant::now() + span;
    while let Ok(Some(update)) = tokio::time::timeout_at(end, subscription.next()).await {
        book.note(update);
    }
}

/// Reads until every signal has a value from after the last start.
async fn catch_up(subscription: &mut Subscription, book: &mut Book) {
    let before: BTreeMap<u32, u64> = book.signals.iter().map(|(item, seen)| (*item, seen.values)).collect();
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        read(subscription, book, Duration::from_millis(300)).await;
        let has_news = |item: &u32| {
            book.signals.get(item).is_some_and(|seen| seen.values > before.get(item).copied().unwrap_or(0))
        };
        let news = (0..MONITORED).filter(has_news).count();
        if news == MONITORED as usize {
            return;
        }
        assert!(Instant::now() < end, "only {news} of {MONITORED} signals go on; {:?}", book.lost.first());
    }
}

/// Reads lines of JSON until one matches.
fn until(lines: &Receiver<String>, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|error| panic!("{what}: {error}"));
        let line: Value = serde_json::from_str(&line).unwrap();
        if is_it(&line) {
            return line;
        }
    }
}

#[test]
fn watch_continues_a_durable_subscription_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("subscriptions.db");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("127.0.0.1:{port}");
    let server = Server::start(&file, port);
    let mut watch = Command::new(BINARY)
        .args(["watch", &url, "ns=1;i=100000", "--policy", "None", "--json", "--durable", "1"])
        .args(["--queue", "20000", "--sampling", "0", "-I", "50"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (tell, lines) = channel();
    let output = BufReader::new(watch.stdout.take().unwrap());
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let is = |name: &'static str| move |line: &Value| line["Event"] == name;
    assert_eq!(until(&lines, "durable", is("Durable"))["RevisedLifetimeInHours"], 1);
    let number = |line: &Value| line["Value"]["Value"].as_f64().or_else(|| line["Value"].as_f64());
    until(&lines, "values", |line| number(line).is_some_and(|value| value > 20.0));
    server.kill();
    until(&lines, "the lost connection is reported", is("ConnectionLost"));
    let _server = Server::start(&file, port);
    // In the old session or in a new one, with the same subscription.
    until(&lines, "it is kept", |line| {
        assert_ne!(line["Event"], "Recreating");
        line["Event"] == "Kept" || line["Event"] == "Transferred"
    });
    // The signal starts again with the server, and the values before the client's reconnection were stored.
    let resumed = until(&lines, "what was kept is counted", is("Resumed"));
    assert!(resumed["Values"].as_u64().unwrap() > 0, "{resumed}");
    until(&lines, "it continues", |line| number(line).is_some_and(|value| value > 20.0));
    kill_process(Pid::from_child(&watch), Signal::INT).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(130));
}

#[test]
fn watch_reports_missing_support_for_durable_subscriptions() {
    let server = taktwerk_lab::program::Program::new(BINARY)
        .args([
            "serve",
            "--port",
            "0",
            "--policy",
            "None",
            "--no-plant",
            "--signals",
            "1",
            "--exit-with-stdin",
        ])
        .serve(Duration::from_secs(60))
        .unwrap();
    let output = Command::new(BINARY)
        .args(["watch", server.url(), "ns=1;i=100000", "--policy", "None", "--durable", "1"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("SetSubscriptionDurable: Bad") && told.contains("serve --durable FILE"), "{told}");
}

#[test]
fn nothing_is_lost_silently_when_the_server_is_killed() {
    let kills: u32 = std::env::var("TAKTWERK_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("subscriptions.db");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("opc.tcp://127.0.0.1:{port}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut server = Server::start(&file, port);
    let mut book = Book::default();
    // The retry delay must not grow, because the server is killed every second.
    let quick = ReconnectPolicy { delay_max: Duration::from_millis(200), ..ReconnectPolicy::default() };
    runtime.block_on(async {
        let client = Client::builder(&url).unsecured().reconnect(quick).connect().await.unwrap();
        let mut subscription = client.subscribe(Duration::from_millis(50)).await.unwrap();
        assert_eq!(subscription.handle().make_durable(1).await.unwrap(), 1);
        let items = (0..MONITORED).map(|at| {
            let node = NodeId::numeric(1, 100_000 + at);
            Item::new(node).sampling(Duration::ZERO).queue(20_000)
        });
        let results = subscription.monitor_many(items).await.unwrap();
        assert!(results.iter().all(|(_, status)| status.is_good()));
        for kill in 0..kills {
            // At any moment: right after the start, or later.
            let moment = u64::from(kill).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
            read(&mut subscription, &mut book, Duration::from_millis(200 + moment)).await;
            server.kill();
            server = Server::start(&file, port);
            catch_up(&mut subscription, &mut book).await;
            eprintln!("killed {} times, {} silent losses", kill + 1, book.lost.len());
        }
        client.disconnect().await;
    });
    let values: u64 = book.signals.values().map(|seen| seen.values).sum();
    let gaps: u64 = book.signals.values().map(|seen| seen.gaps).sum();
    eprintln!("{values} values, {gaps} gaps that were told of");
    assert!(book.lost.is_empty(), "{} losses, first {:?}", book.lost.len(), book.lost.first());
    assert!(gaps >= u64::from(MONITORED * kills) && values > gaps * 5, "{values} values, {gaps} gaps");
}
