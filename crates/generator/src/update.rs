//! `bench update`: time that a server's application takes to set its values, with one or several threads (Burger et al.
//! 2019, RQ6). The server is in this process; a client in another process subscribes to its values.

use crate::common::pin;
use crate::context::Context;
use crate::error::GeneratorError;
use crate::report::{Finished, Report};
use crate::signals;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use taktwerk::{RunningServer, Server};
use taktwerk_load::clock;
use taktwerk_load::connection::{ConnectionArgs, SecurityArgs};
use taktwerk_load::latency::Times;
use taktwerk_load::result::{Updates, UpdatesRequested};
use taktwerk_load::specification::{Common, Specification, Subscribe, Update};
use taktwerk_load::validity::Invalid;
use taktwerk_net::clock as wall_clock;
use taktwerk_server::space::VariableHandle;

/// Cycles before the first counted one.
const WARM_UP: u64 = 3;

/// Maximum number of values that the client subscribes to, as in the paper.
const SUBSCRIBED: u32 = 100;
/// Longer than any measurement.
const LONGER: Duration = Duration::from_secs(3_600);
/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// A client in a separate process. It ends when dropped, and with this process.
struct Client(Child);

impl Client {
    fn subscribe(
        server: &RunningServer,
        arguments: &Update,
        context: &Context<'_>,
    ) -> Result<Self, GeneratorError> {
        let failed =
            |error: std::io::Error| GeneratorError::Environment(format!("cannot start the client: {error}"));
        let endpoint = server.url().parse().map_err(GeneratorError::environment)?;
        let security = SecurityArgs { policy: Some("None".to_owned()), ..SecurityArgs::default() };
        let load = Specification::Subscribe(Subscribe {
            common: Common {
                connection: ConnectionArgs { endpoint, security },
                duration: LONGER,
                ..Common::default()
            },
            items: Some(arguments.signals.min(SUBSCRIBED)),
            interval: arguments.interval,
            sampling: Some(arguments.interval),
            ..Subscribe::default()
        });
        let load = serde_json::to_string(&load).map_err(GeneratorError::environment)?;
        let child = Command::new(context.program()?)
            .args(["bench", "specified"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut client = Self(child.map_err(failed)?);
        if let Some(input) = &mut client.0.stdin {
            // Keep it open: the client exits when it closes.
            writeln!(input, "{load}").map_err(failed)?;
        }
        let end = std::time::Instant::now() + CONNECT;
        while server.connections() == 0 {
            if std::time::Instant::now() >= end {
                return Err(GeneratorError::Environment(format!(
                    "the client did not connect to {}",
                    server.url()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(client)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// State shared by the threads.
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
            // Quality does not matter; values must only differ between cycles.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            handle.set_at((random >> 11) as f64, now);
        }
    }
}

/// Measures and reports.
pub(crate) fn run(arguments: &Update, context: &Context<'_>) -> Result<Finished, GeneratorError> {
    pin(arguments.cpu.as_ref())?;
    let server =
        Server::builder().bind("127.0.0.1:0").anonymous().build().map_err(GeneratorError::environment)?;
    let handles = signals::add(&server, arguments.signals).map_err(GeneratorError::environment)?;
    let server = server.spawn().map_err(GeneratorError::environment)?;
    let client = Client::subscribe(&server, arguments, context)?;
    let parts = arguments.threads as usize;
    let crew = Crew {
        handles: &handles,
        start: Barrier::new(parts),
        done: Barrier::new(parts),
        cycle: AtomicU64::new(0),
        end: AtomicBool::new(false),
    };
    let mut times = Times::new();
    let mut progress = context.step("cycles", arguments.count);
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
            if context.is_ended() {
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
    let mut report = Report::new("update", &server.url());
    report.part(&Updates {
        requested: UpdatesRequested {
            signals: arguments.signals,
            threads: arguments.threads,
            count: arguments.count,
            interval_ms: arguments.interval.as_secs_f64() * 1e3,
        },
        run_span: times.summary(),
    });
    report.histogram("run_span", &times);
    report.times("run span of a cycle", &times);
    report.fact("signals", arguments.signals.to_string());
    report.fact("threads", arguments.threads.to_string());
    if times.count() == 0 {
        report.invalid([Invalid::NoSamples]);
    }
    Ok(report.finish(context, None))
}
