//! Resources used by a process, from `/proc/<pid>`.
//!
//! CPU time is from the process's own clock in nanoseconds, which includes threads that have ended. Its split into user
//! and kernel time is from `stat`, whose ticks are too coarse for the total. Context switches, migrations and waiting
//! time are counted per existing thread (`/proc/<pid>/task`). They do not include what a thread does between the first
//! snapshot and its end, but its end does not reduce the totals of other threads.

mod parse;

use nix::time::ClockId;
use nix::unistd::Pid;
use parse::{ParseProcError, Sched, SchedStat, Stat, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Counters of a process at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Time of the snapshot in monotonic nanoseconds.
    pub at: u64,
    /// CPU time of all threads, including those that have ended, in nanoseconds.
    pub cpu: u64,
    /// User time in clock ticks.
    pub user_ticks: u64,
    /// Kernel time in clock ticks.
    pub system_ticks: u64,
    /// Memory in RAM, bytes.
    pub rss: u64,
    /// Part of it that is not backed by files.
    pub rss_anonymous: u64,
    /// The largest [`Self::rss`] so far.
    pub rss_peak: u64,
    /// Threads.
    pub threads: u64,
    /// The existing threads by id.
    each: BTreeMap<u32, Thread>,
}

/// Counters of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Thread {
    /// Context switches because it waited.
    voluntary_switches: u64,
    /// Context switches because it was preempted.
    involuntary_switches: u64,
    /// Migrations to another CPU; zero if the kernel does not provide it.
    migrations: u64,
    /// Time ready to run without a CPU, in nanoseconds.
    waiting: u64,
}

/// Total time of all threads on a CPU, and ready to run without a CPU, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// On a CPU.
    pub on_cpu: u64,
    /// Waiting in a run queue.
    pub waiting: u64,
}

impl Turns {
    /// Difference from an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            on_cpu: self.on_cpu.saturating_sub(earlier.on_cpu),
            waiting: self.waiting.saturating_sub(earlier.waiting),
        }
    }
}

/// Why the resources of a process cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The process does not exist.
    #[error("no process {pid}: it has ended, or the id is wrong")]
    Gone {
        /// The id.
        pid: u32,
    },
    /// A file below `/proc` cannot be read.
    #[error("cannot read {path}: {source}; for another user's process, run as that user or as root")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file below `/proc` has an unknown format.
    #[error("cannot parse {path}: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ParseProcError,
    },
}

/// A process to observe.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    pid: u32,
}

impl Process {
    /// The process with an id.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// This process.
    #[must_use]
    pub fn own() -> Self {
        Self { pid: std::process::id() }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Run and waiting time of its threads so far; cheap enough to read around every request.
    ///
    /// # Errors
    /// If the process has ended, or reading is not permitted.
    pub fn turns(&self) -> Result<Turns, ProcessError> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.pid));
        let mut turns = Turns::default();
        let entries = fs::read_dir(&tasks).map_err(|source| self.failed(tasks.clone(), source))?;
        for entry in entries.filter_map(Result::ok) {
            if let Ok(times) = self.read::<SchedStat>(entry.path().join("schedstat")) {
                turns.waiting += times.waiting;
            }
        }
        turns.on_cpu = self.cpu()?;
        Ok(turns)
    }

    /// The process's CPU clock, nanoseconds.
    fn cpu(&self) -> Result<u64, ProcessError> {
        let gone = ProcessError::Gone { pid: self.pid };
        let Ok(pid) = i32::try_from(self.pid) else { return Err(gone) };
        let read = || ClockId::pid_cpu_clock_id(Pid::from_raw(pid))?.now();
        let time = Duration::from(read().map_err(|_| gone)?);
        Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// CPU time of its threads so far in nanoseconds, summed by thread name.
    #[must_use]
    pub fn by_thread(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for thread in self.threads() {
            let directory = PathBuf::from(format!("/proc/{}/task/{thread}", self.pid));
            let Ok(name) = fs::read_to_string(directory.join("comm")) else { continue };
            if let Ok(times) = self.read::<SchedStat>(directory.join("schedstat")) {
                *all.entry(name.trim().to_owned()).or_default() += times.on_cpu;
            }
        }
        all
    }

    /// The ids of its threads.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        let entries = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// Its name, which the kernel cuts at 15 bytes; `None` if it has ended.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.pid)).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// The ids of its child processes. Empty if the kernel does not list them.
    #[must_use]
    pub fn children(&self) -> Vec<u32> {
        let of = |thread| fs::read_to_string(format!("/proc/{}/task/{thread}/children", self.pid)).ok();
        let lists: Vec<String> = self.threads().into_iter().filter_map(of).collect();
        lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|id| id.parse().ok()).collect()
    }

    /// A snapshot of its counters.
    ///
    /// # Errors
    /// If the process has ended, or reading is not permitted.
    pub fn snapshot(&self) -> Result<Snapshot, ProcessError> {
        let directory = PathBuf::from(format!("/proc/{}", self.pid));
        let stat: Stat = self.read(directory.join("stat"))?;
        let status: Status = self.read(directory.join("status"))?;
        let mut snapshot = Snapshot {
            user_ticks: stat.user_ticks,
            system_ticks: stat.system_ticks,
            rss: status.rss,
            rss_anonymous: status.rss_anonymous,
            rss_peak: status.rss_peak,
            threads: status.threads,
            ..Snapshot::default()
        };
        let tasks = directory.join("task");
        let entries =
            fs::read_dir(&tasks).map_err(|source| self.failed(tasks.clone(), source))?.filter_map(Result::ok);
        for entry in entries {
            // A thread that ends while the list is read is not an error.
            let (Ok(times), Ok(status)) = (
                self.read::<SchedStat>(entry.path().join("schedstat")),
                self.read::<Status>(entry.path().join("status")),
            ) else {
                continue;
            };
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let thread = Thread {
                voluntary_switches: status.voluntary_switches,
                involuntary_switches: status.involuntary_switches,
                migrations: self
                    .read::<Sched>(entry.path().join("sched"))
                    .map_or(0, |sched| sched.migrations),
                waiting: times.waiting,
            };
            snapshot.each.insert(id, thread);
        }
        snapshot.cpu = self.cpu()?;
        snapshot.at = crate::clock::monotonic();
        Ok(snapshot)
    }

    fn read<T: std::str::FromStr<Err = ParseProcError>>(&self, path: PathBuf) -> Result<T, ProcessError> {
        let text = fs::read_to_string(&path).map_err(|source| self.failed(path.clone(), source))?;
        text.parse().map_err(|source| ProcessError::Parse { path, source })
    }

    fn failed(&self, path: PathBuf, source: io::Error) -> ProcessError {
        // ESRCH: the process ended between opening and reading.
        let gone = source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(3);
        if gone { ProcessError::Gone { pid: self.pid } } else { ProcessError::Read { path, source } }
    }
}

/// Resources used by a process between two snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Length of the window, seconds.
    pub seconds: f64,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Part of it in user mode. The split is accurate to about 10 ms.
    pub user_s: f64,
    /// Part of it in kernel mode.
    pub system_s: f64,
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Context switches because a thread waited.
    pub voluntary_switches: u64,
    /// Context switches because a thread was preempted.
    pub involuntary_switches: u64,
    /// Migrations of threads to another CPU.
    #[serde(default)]
    pub migrations: u64,
    /// Time ready to run but not running, seconds.
    #[serde(default)]
    pub runqueue_wait_s: f64,
    /// Memory at the end, bytes.
    pub rss_bytes: u64,
    /// Growth within the window in bytes.
    #[serde(default)]
    pub rss_growth_bytes: i64,
    /// Peak memory in bytes.
    #[serde(default)]
    pub rss_peak_bytes: u64,
    /// Threads at the end.
    #[serde(default)]
    pub threads: u64,
}

impl Usage {
    /// From a snapshot to a later one.
    #[must_use]
    pub fn between(from: &Snapshot, to: &Snapshot) -> Self {
        let seconds = to.at.saturating_sub(from.at) as f64 / 1e9;
        let cpu_s = to.cpu.saturating_sub(from.cpu) as f64 / 1e9;
        let user = to.user_ticks.saturating_sub(from.user_ticks) as f64;
        let system = to.system_ticks.saturating_sub(from.system_ticks) as f64;
        let user_share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
        let growth = i128::from(to.rss) - i128::from(from.rss);
        // All counters of a thread that started within the window belong to the window.
        let sum = |count: fn(&Thread) -> u64| -> u64 {
            let grown = |(id, thread)| count(thread).saturating_sub(from.each.get(id).map_or(0, count));
            to.each.iter().map(grown).sum()
        };
        Self {
            seconds,
            cpu_s,
            user_s: cpu_s * user_share,
            system_s: cpu_s * (1.0 - user_share),
            cpu_percent: if seconds > 0.0 { cpu_s / seconds * 100.0 } else { 0.0 },
            voluntary_switches: sum(|thread| thread.voluntary_switches),
            involuntary_switches: sum(|thread| thread.involuntary_switches),
            migrations: sum(|thread| thread.migrations),
            runqueue_wait_s: sum(|thread| thread.waiting) as f64 / 1e9,
            rss_bytes: to.rss,
            rss_growth_bytes: i64::try_from(growth).unwrap_or(0),
            rss_peak_bytes: to.rss_peak,
            threads: to.threads,
        }
    }

    /// CPU time per unit of work in microseconds; zero without work.
    #[must_use]
    pub fn cpu_us_per(&self, units: u64) -> f64 {
        if units == 0 { 0.0 } else { self.cpu_s * 1e6 / units as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_for_this_process() {
        let process = Process::own();
        let before = process.snapshot().unwrap();
        let mut spent = 0u64;
        let start = crate::clock::thread_cpu();
        while crate::clock::thread_cpu() - start < 30_000_000 {
            spent = spent.wrapping_mul(31).wrapping_add(1);
        }
        std::thread::sleep(Duration::from_millis(5));
        let usage = Usage::between(&before, &process.snapshot().unwrap());
        assert!(usage.cpu_s >= 0.03, "{usage:?} {spent}");
        assert!((usage.user_s + usage.system_s - usage.cpu_s).abs() < 1e-9);
        assert!(usage.rss_bytes > 100_000 && usage.voluntary_switches >= 1, "{usage:?}");
    }

    /// Threads for a server's handshakes end some time after them.
    #[test]
    fn ended_threads_keep_their_cpu_time() {
        let work = || {
            let mut spent = 0u64;
            while crate::clock::thread_cpu() < 20_000_000 {
                spent = std::hint::black_box(spent.wrapping_mul(31).wrapping_add(1));
            }
        };
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (told, ready) = std::sync::mpsc::channel();
        let worked_before = std::thread::spawn(move || {
            work();
            told.send(()).unwrap();
            // Until the sender is dropped.
            let _ = receiver.recv();
        });
        ready.recv().unwrap();
        let process = Process::own();
        let (before, turns) = (process.snapshot().unwrap(), process.turns().unwrap());
        drop(sender);
        worked_before.join().unwrap();
        std::thread::spawn(work).join().unwrap();
        let usage = Usage::between(&before, &process.snapshot().unwrap());
        assert!(usage.cpu_s >= 0.02, "{usage:?}");
        assert!(process.turns().unwrap().since(&turns).on_cpu >= 20_000_000);
    }

    #[test]
    fn a_missing_process_is_named() {
        let error = Process::new(u32::MAX - 7).snapshot().unwrap_err();
        assert!(matches!(error, ProcessError::Gone { .. }), "{error}");
    }

    #[test]
    fn usage_is_a_difference() {
        let from = Snapshot { at: 1_000_000_000, cpu: 500, rss: 2_000, user_ticks: 1, ..Snapshot::default() };
        let to = Snapshot {
            at: 3_000_000_000,
            cpu: 1_000_000_500,
            rss: 1_000,
            user_ticks: 4,
            system_ticks: 1,
            ..Snapshot::default()
        };
        let usage = Usage::between(&from, &to);
        assert_eq!((usage.cpu_percent, usage.user_s, usage.rss_growth_bytes), (50.0, 0.75, -1_000));
        assert_eq!((usage.cpu_us_per(1_000), usage.cpu_us_per(0)), (1_000.0, 0.0));
    }
}
