//! A client that reads one value repeatedly while others load the server, and the latency of its reads. Shared by the benchmark
//! examples.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk::Client;

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

/// The percentile `share` of the latencies.
pub(crate) fn percentile(latencies: &mut [Duration], share: f64) -> Duration {
    latencies.sort_unstable();
    let at = (latencies.len() as f64 * share) as usize;
    latencies.get(at.min(latencies.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The name of its thread.
const NAME: &str = "canary";

/// A client in its own thread that reads one value repeatedly, as from another machine: otherwise the event clients would delay
/// it, and not the server.
pub(crate) struct Canary {
    latencies: Arc<Mutex<Vec<Duration>>>,
}

impl Canary {
    pub(crate) fn start(url: String) -> Self {
        let latencies = Arc::<Mutex<Vec<Duration>>>::default();
        let found = Arc::clone(&latencies);
        // The name allows to look up the thread's CPU waits. If the thread fails, `take` reports that there are no reads.
        let thread = std::thread::Builder::new().name(NAME.to_owned());
        let _ = thread.spawn(move || {
            if let Err(error) = be_first() {
                println!("the canary's waits for a CPU count as latency: {error}");
            }
            let read = async {
                let client = Client::builder(&url).unsecured().connect().await?;
                loop {
                    let start = Instant::now();
                    client.read("i=2258").await?;
                    found.lock().map_err(|_| "poisoned")?.push(start.elapsed());
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // If it fails, the reads are missing and the next `take` fails.
            let _: Option<Result<()>> = runtime.ok().map(|runtime| runtime.block_on(read));
        });
        Self { latencies }
    }

    /// The latencies since the last call.
    pub(crate) fn take(&self) -> Result<Vec<Duration>> {
        let taken = core::mem::take(&mut *self.latencies.lock().map_err(|_| "poisoned")?);
        if taken.is_empty() { Err("the canary has no reads".into()) } else { Ok(taken) }
    }
}

/// The CPU of the server, and that of all others.
pub(crate) const CPUS: [usize; 2] = [0, 1];
/// Pins this thread, and threads that it starts, to one CPU.
pub(crate) fn run_on(cpu: usize) -> Result<()> {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &cpus)?)
}

/// Gives this thread priority over all others that are not real-time (SCHED_FIFO).
fn be_first() -> Result<()> {
    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let native = thread_priority::thread_native_id();
    Ok(thread_priority::set_thread_priority_and_policy(native, ThreadPriority::Min, policy)
        .map_err(|error| format!("cannot set SCHED_FIFO; run as root: {error}"))?)
}

/// Lets this thread, and threads that it starts, run only when the CPU is idle.
pub(crate) fn be_idle() -> Result<()> {
    use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let native = thread_priority::thread_native_id();
    Ok(thread_priority::set_thread_priority_and_policy(native, ThreadPriority::Min, policy)
        .map_err(|error| format!("cannot set SCHED_IDLE: {error}"))?)
}

/// Times that the server's threads and the canary waited for a CPU, and that the host took from this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    delay: Duration,
    steal: Duration,
}

impl Waits {
    /// The waits of the canary, and of threads on a CPU.
    pub(crate) fn of(cpu: usize) -> Result<Self> {
        let mut delay = 0;
        for thread in std::fs::read_dir("/proc/self/task")? {
            let thread = thread?.path();
            // The thread may have ended.
            let read = |name: &str| std::fs::read_to_string(thread.join(name)).unwrap_or_default();
            let status = read("status");
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            let is_on = cpus.is_some_and(|cpus| cpus.trim() == cpu.to_string());
            if is_on || read("comm").trim() == NAME {
                delay +=
                    read("schedstat").split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0u64);
            }
        }
        let stat = std::fs::read_to_string("/proc/stat")?;
        let ticks = stat.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse::<u64>().ok());
        Ok(Self { delay: Duration::from_nanos(delay), steal: Duration::from_millis(10 * ticks.unwrap_or(0)) })
    }

    /// Prints the increase since the last call.
    pub(crate) fn print(&mut self, cpu: usize) -> Result<()> {
        let before = core::mem::replace(self, Self::of(cpu)?);
        println!(
            "  server and canary waited {:?} for a CPU; the host took {:?}",
            self.delay.saturating_sub(before.delay),
            self.steal.saturating_sub(before.steal)
        );
        Ok(())
    }
}
