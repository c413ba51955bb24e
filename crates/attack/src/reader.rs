//! Clients that send requests and never read.
//!
//! One half sends until the server stops reading: the server has to buffer responses and close the connection at last.
//! The other half sends so few requests that the responses fit into the kernel's buffers.

use crate::Run;
use crate::report::Findings;
use crate::wire::{Raw, Wire, WireError, dial};
use std::thread;
use std::time::{Duration, Instant};
use taktwerk_schema::{ReadRequest, ReadValueId};
use taktwerk_types::NodeId;

/// How long a server keeps a connection that reads nothing, and a margin.
const PATIENCE: Duration = Duration::from_secs(75);
/// Maximum time of sending, and the time without progress after which it stops.
const ASKING_MAX: Duration = Duration::from_secs(60);
const STANDSTILL: Duration = Duration::from_secs(2);
/// Number of requests of clients that send little.
const FEW: u64 = 3;
/// Maximum number of requests per connection: far more than a server reads from such a client.
const MANY: u64 = 5_000;
/// The server's budget for unsent bytes of unknown clients, and its overhead.
const UNSENT_MAX: u64 = (256 + 64) << 20;

/// A client that never reads.
struct Asker {
    wire: Wire,
    raw: Raw,
    /// The unsent rest of the current request.
    left: Vec<u8>,
    asked: u64,
    most: u64,
}

impl Asker {
    fn start(run: &Run<'_>, number: usize) -> Result<Self, WireError> {
        // A small window, so that the kernel buffers little.
        let mut wire = Wire::open_with(dial(run.address, run.source(number, 40), Some(4096))?)?;
        wire.create_session()?;
        wire.activate(taktwerk_types::ExtensionObject::NULL)?;
        let raw = wire.raw()?;
        let most = if number.is_multiple_of(2) { MANY } else { FEW };
        Ok(Self { wire, raw, left: Vec::new(), asked: 0, most })
    }

    /// Sends what the kernel accepts. Returns whether it accepted anything.
    fn ask(&mut self, request: &mut ReadRequest) -> Result<bool, WireError> {
        let mut moved = false;
        // A few requests at a time, so that all connections make progress.
        for _ in 0..8 {
            if self.left.is_empty() {
                if self.asked >= self.most {
                    break;
                }
                self.left = self.wire.written(request)?;
                self.asked += 1;
            }
            let count = self.raw.send(&self.left);
            self.left.drain(..count);
            moved |= count > 0;
            if !self.left.is_empty() {
                break;
            }
        }
        Ok(moved)
    }

    /// Whether the server has stopped reading or has closed the connection.
    fn is_stopped(&self) -> bool {
        self.raw.is_closed || !self.left.is_empty()
    }
}

pub(crate) fn zero_window(run: &Run<'_>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let (before, files) = (run.rss(), run.files());
    let mut askers = Vec::new();
    let mut failed = 0u64;
    for number in 0..run.connections {
        if run.is_over() {
            break;
        }
        match Asker::start(run, number) {
            Ok(asker) => askers.push(asker),
            Err(_) => failed += 1,
        }
    }
    let connected = askers.len();
    ask_on(run, &mut askers).map_err(|error| error.to_string())?;
    let held = run.rss().saturating_sub(before);
    let (many, few): (Vec<&Asker>, Vec<&Asker>) = askers.iter().partition(|asker| asker.most == MANY);
    let stopped = many.iter().filter(|asker| asker.is_stopped()).count();
    let mut counts: Vec<u64> = many.iter().map(|asker| asker.asked).collect();
    counts.sort_unstable();
    let median = counts.get(counts.len() / 2).copied().unwrap_or_default();
    findings.fact("connected", format!("{connected} (failed: {failed})"));
    findings.fact(
        "ask on and on",
        format!("{}, stopped after {median} requests of 500 values (median)", many.len()),
    );
    findings.fact("ask a little", format!("{}, {FEW} requests each", few.len()));
    let asked_little = !few.is_empty() && few.iter().all(|asker| asker.left.is_empty());
    // The client does not read, so it cannot see the end of a connection: count the server's open files.
    let began = Instant::now();
    let at_once = connected.saturating_sub(run.files().saturating_sub(files));
    let mut left = run.files().saturating_sub(files);
    while left > 0 && began.elapsed() < run.patience(PATIENCE) && !run.is_over() {
        thread::sleep(Duration::from_millis(500));
        left = run.files().saturating_sub(files);
    }
    let took = began.elapsed();
    let peak = run.peak().saturating_sub(before);
    findings.fact("memory with unread output", format!("{:.1} MiB more", held as f64 / f64::from(1 << 20)));
    findings.fact(
        "closed by the server",
        format!("{at_once} while they asked, the others after {:.1} s, {left} left", took.as_secs_f64()),
    );
    findings
        .claim("the server stops reading from clients that send on", stopped == many.len() && stopped > 0);
    findings.claim("it answers the other clients", asked_little);
    findings.claim("all are closed", left == 0);
    if run.judges_times {
        findings.claim("memory stays within the budget of unsent bytes", peak <= UNSENT_MAX);
    }
    Ok(findings)
}

/// Sends until nothing moves any more.
fn ask_on(run: &Run<'_>, askers: &mut [Asker]) -> Result<(), WireError> {
    let node = ReadValueId { node_id: NodeId::numeric(0, 2256), attribute_id: 13, ..ReadValueId::default() };
    let mut request = ReadRequest { nodes_to_read: vec![node; 500], ..ReadRequest::default() };
    let began = Instant::now();
    let mut moved_at = began;
    while moved_at.elapsed() < STANDSTILL && began.elapsed() < run.patience(ASKING_MAX) && !run.is_over() {
        let mut moved = false;
        for asker in askers.iter_mut().filter(|asker| !asker.raw.is_closed) {
            moved |= asker.ask(&mut request)?;
        }
        if moved {
            moved_at = Instant::now();
        } else {
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}
