//! `bench update`: how long a server's application takes to set its values, by one or several threads (Burger et al.
//! 2019, RQ6). The server is within this process; a client in another one subscribes to its values.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::serve::load;
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use taktwerk::{RunningServer, Server};
use taktwerk_lab::clock;
use taktwerk_lab::latency::Times;
use taktwerk_lab::validity::Invalid;
use taktwerk_load::result::Updates;
use taktwerk_load::specification::Update;
use taktwerk_net::clock as wall_clock;
use taktwerk_server::space::VariableHandle;

/// Cycles before the first that counts.
const WARM_UP: u64 = 3;

/// Values that the client subscribes to at most: the paper's hundred.
const SUBSCRIBED: u32 = 100;
/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(20);

/// A client in a process of its own. It ends when this is dropped, or this process.
struct Client(Child);

impl Client {
    fn subscribe(server: &RunningServer, arguments: &Update) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::Environment(format!("cannot start the client: {error}"));
        let interval = format!("{}", arguments.interval.as_secs_f64() * 1e3);
        let items = arguments.signals.min(SUBSCRIBED).to_string();
        let child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["bench", "subscribe", &server.url(), "--policy", "None", "--exit-with-stdin", "-d", "1h"])
            .args(["--items", &items, "-I", &interval, "--sampling", &interval])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let client = Self(child.map_err(failed)?);
        let end = std::time::Instant::now() + CONNECT;
        while server.connections() == 0 {
            if std::time::Instant::now() >= end {
                return Err(Failure::Environment(format!("the client did not connect to {}", server.url())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(client)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the threads share.
struct Crew<'a> {
    handles: &'a [VariableHandle],
    start: Barrier,
    done: Barrier,
    cycle: AtomicU64,
    end: AtomicBool,
}

impl Crew<'_> {
    fn work(&self, part: usize, parts: usize) {
        let share = self.handles.len().div_ceil(parts);
        let (now, cycle) = (wall_clock::wall(), self.cycle.load(Ordering::Relaxed));
        let mut random = cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part as u64;
        for handle in self.handles.iter().skip(part * share).take(share) {
            // Any cheap generator will do: values must differ from cycle to cycle.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            handle.set_at((random >> 11) as f64, now);
        }
    }
}

/// Measures and reports.
pub(crate) fn run(arguments: &Update, output: Output, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(cpus) = &arguments.cpu {
        cpus.pin().map_err(|error| Failure::Environment(error.to_string()))?;
    }
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .build()
        .map_err(|error| Failure::Environment(error.to_string()))?;
    let handles = load::add(&server, arguments.signals)?;
    let server = server.spawn().map_err(|error| Failure::Environment(error.to_string()))?;
    let client = Client::subscribe(&server, arguments)?;
    let parts = arguments.threads as usize;
    let crew = Crew {
        handles: &handles,
        start: Barrier::new(parts),
        done: Barrier::new(parts),
        cycle: AtomicU64::new(0),
        end: AtomicBool::new(false),
    };
    let mut times = Times::new();
    let mut progress = Progress::new("cycles", arguments.count);
    std::thread::scope(|scope| {
        for part in 1..parts {
            let crew = &crew;
            scope.spawn(move || {
                loop {
                    crew.start.wait();
                    if crew.end.load(Ordering::Relaxed) {
                        return;
                    }
                    crew.work(part, parts);
                    crew.done.wait();
                }
            });
        }
        let interval = u64::try_from(arguments.interval.as_nanos()).unwrap_or(u64::MAX);
        let begin = clock::monotonic();
        for cycle in 0..arguments.count + WARM_UP {
            clock::sleep_until(begin.saturating_add(cycle.saturating_mul(interval)));
            if interrupt.asked() {
                break;
            }
            crew.cycle.store(cycle, Ordering::Relaxed);
            let from = clock::monotonic();
            crew.start.wait();
            crew.work(0, parts);
            crew.done.wait();
            if cycle >= WARM_UP {
                times.record(clock::monotonic() - from);
            }
            progress.at(times.count());
        }
        crew.end.store(true, Ordering::Relaxed);
        crew.start.wait();
    });
    drop(client);
    let mut report = super::report::Report::new("update", &server.url());
    report.part(&Updates {
        requested: json!({"signals": arguments.signals, "threads": arguments.threads, "count": arguments.count,
            "interval_ms": arguments.interval.as_secs_f64() * 1e3}),
        run_span: times.summary(),
    });
    report.histogram("run_span", &times);
    report.times("run span of a cycle", &times);
    report.fact("signals", arguments.signals.to_string());
    report.fact("threads", arguments.threads.to_string());
    if times.count() == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    report.print(output, interrupt)
}
