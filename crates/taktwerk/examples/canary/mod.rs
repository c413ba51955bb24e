//! A client that reads one value again and again while others load the server, and what its reads took. The examples that
//! measure share it.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use taktwerk::Client;

type Result<T> = core::result::Result<T, Box<dyn std::error::Error>>;

/// The latency that this share of all stays below.
pub(crate) fn percentile(latencies: &mut [Duration], share: f64) -> Duration {
    latencies.sort_unstable();
    let at = (latencies.len() as f64 * share) as usize;
    latencies.get(at.min(latencies.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The name of its thread.
const NAME: &str = "canary";

/// A client in a thread of its own that reads one value again and again, as a client on another machine would: the clients
/// that take events would otherwise delay it, not the server.
pub(crate) struct Canary {
    latencies: Arc<Mutex<Vec<Duration>>>,
}

impl Canary {
    pub(crate) fn start(url: String) -> Self {
        let latencies = Arc::<Mutex<Vec<Duration>>>::default();
        let found = Arc::clone(&latencies);
        // It has a name so that its waits for a CPU can be looked up. Without the thread nothing is found, which `take` tells.
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
            // Without it, its figures are missing and the next look at them fails.
            let _: Option<Result<()>> = runtime.ok().map(|runtime| runtime.block_on(read));
        });
        Self { latencies }
    }

    /// The latencies since the last call.
    pub(crate) fn take(&self) -> Result<Vec<Duration>> {
        let taken = core::mem::take(&mut *self.latencies.lock().map_err(|_| "poisoned")?);
        if taken.is_empty() { Err("the canary reads nothing".into()) } else { Ok(taken) }
    }
}

/// Where the server runs, and where everybody else does.
pub(crate) const CPUS: [usize; 2] = [0, 1];
/// From now on this thread, and those that it starts, run on one CPU.
pub(crate) fn run_on(cpu: usize) -> Result<()> {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &cpus)?)
}

/// This thread runs before all that are not real-time, as if it were alone on its machine (SCHED_FIFO).
fn be_first() -> Result<()> {
    use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let native = thread_priority::thread_native_id();
    Ok(thread_priority::set_thread_priority_and_policy(native, ThreadPriority::Min, policy)
        .map_err(|error| format!("SCHED_FIFO is not to be had, run as root: {error}"))?)
}

/// This thread, and those that it starts, run only while no other wants to.
pub(crate) fn be_idle() -> Result<()> {
    use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let native = thread_priority::thread_native_id();
    Ok(thread_priority::set_thread_priority_and_policy(native, ThreadPriority::Min, policy)
        .map_err(|error| format!("SCHED_IDLE is not to be had: {error}"))?)
}

/// What the server's threads and the canary waited for a CPU, and what the host took from this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    delay: Duration,
    steal: Duration,
}

impl Waits {
    /// Of the canary, and of the threads that run on a CPU.
    pub(crate) fn of(cpu: usize) -> Result<Self> {
        let mut delay = 0;
        for thread in std::fs::read_dir("/proc/self/task")? {
            let thread = thread?.path();
            // It may have ended since.
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

    /// Prints what has come since the last call.
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
