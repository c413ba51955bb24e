//! Records a process and its child processes over time.

use crate::process::{Process, Snapshot, Usage};
use crate::result::{OfProcess, Profile, Series};
use std::collections::BTreeMap;

/// Fewest readings within a window.
const READINGS_MIN: usize = 3;
/// Most intervals of a profile. More readings are combined.
const INTERVALS_MAX: usize = 200;
/// Most child processes of a recording, also of ended ones.
const CHILDREN_MAX: usize = 1_000;

/// Counters since the start of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counters {
    cpu_s: f64,
    voluntary: f64,
    involuntary: f64,
    /// Not a counter.
    rss: f64,
}

impl Counters {
    fn add(&mut self, used: &Usage) {
        self.cpu_s += used.cpu_s;
        self.voluntary += used.voluntary_switches as f64;
        self.involuntary += used.involuntary_switches as f64;
        self.rss = used.rss_bytes as f64;
    }

    /// The sum with another process.
    fn plus(self, other: Self) -> Self {
        Self {
            cpu_s: self.cpu_s + other.cpu_s,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
            rss: self.rss + other.rss,
        }
    }
}

/// A child process, or the process itself.
#[derive(Debug, Default)]
struct Known {
    /// A process has another name until it executes its program, so the last one counts.
    name: String,
    before: Snapshot,
    counters: Counters,
}

/// The counters at one time.
#[derive(Debug, Clone, Default)]
struct Reading {
    /// Milliseconds since 1970.
    at_ms: f64,
    by_process: BTreeMap<u32, Counters>,
    /// CPU time of the network, seconds.
    network_s: Option<f64>,
}

/// Records a process and its child processes. Ended processes keep what they have used.
#[derive(Debug)]
pub struct Recorder {
    process: Process,
    known: BTreeMap<u32, Known>,
    readings: Vec<Reading>,
}

impl Recorder {
    /// Records the process with an id.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self { process: Process::new(pid), known: BTreeMap::new(), readings: Vec::new() }
    }

    /// Reads the counters. `at_ms` is the time in milliseconds since 1970, `network_ns` the CPU time of the network so
    /// far in nanoseconds, if it is known.
    pub fn read(&mut self, at_ms: f64, network_ns: Option<u64>) {
        let own = self.process.pid();
        // Processes that have ended have no memory.
        self.known.values_mut().for_each(|known| known.counters.rss = 0.0);
        for pid in std::iter::once(own).chain(self.process.children()) {
            let process = Process::new(pid);
            // The process may end at any time.
            let Ok(snapshot) = process.snapshot() else { continue };
            if self.known.len() > CHILDREN_MAX && !self.known.contains_key(&pid) {
                continue;
            }
            let known = self.known.entry(pid).or_default();
            known.counters.add(&Usage::between(&known.before, &snapshot));
            known.before = snapshot;
            if pid == own {
                Profile::SERVER.clone_into(&mut known.name);
            } else if let Some(name) = process.name() {
                known.name = name;
            }
        }
        let by_process = self.known.iter().map(|(pid, known)| (*pid, known.counters)).collect();
        let network_s = network_ns.map(|nanos| nanos as f64 / 1e9);
        self.readings.push(Reading { at_ms, by_process, network_s });
    }

    /// The resources used between the first and the last reading within a window, in milliseconds since 1970. `None` if
    /// there are too few readings.
    #[must_use]
    pub fn profile(&self, from_ms: f64, until_ms: f64) -> Option<Profile> {
        let is_within = |one: &&Reading| from_ms <= one.at_ms && one.at_ms <= until_ms;
        let within: Vec<&Reading> = self.readings.iter().filter(is_within).collect();
        if within.len() < READINGS_MIN {
            return None;
        }
        let stride = (within.len() - 1).div_ceil(INTERVALS_MAX);
        let marks: Vec<&Reading> = within.into_iter().step_by(stride).collect();
        let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (pid, known) in &self.known {
            by_name.entry(known.name.as_str()).or_default().push(*pid);
        }
        let series = |pids: &[u32]| -> Vec<Counters> {
            let of = |mark: &&Reading| {
                let each = pids.iter().filter_map(|pid| mark.by_process.get(pid));
                each.fold(Counters::default(), |sum, one| sum.plus(*one))
            };
            marks.iter().map(of).collect()
        };
        let seconds: Vec<f64> = marks.windows(2).map(|pair| (pair[1].at_ms - pair[0].at_ms) / 1e3).collect();
        let last = marks.last()?;
        let of = |(name, pids): (&&str, &Vec<u32>)| {
            let seen = pids.iter().filter(|pid| last.by_process.contains_key(pid)).count();
            (seen > 0).then(|| ((*name).to_owned(), used(&series(pids), &seconds, seen as u64)))
        };
        let processes: BTreeMap<String, OfProcess> = by_name.iter().filter_map(of).collect();
        let all: Vec<u32> = self.known.keys().copied().collect();
        let starts = processes.values().map(|one| one.starts).sum();
        let network: Option<Vec<f64>> = marks.iter().map(|mark| mark.network_s).collect();
        let network = network.unwrap_or_default();
        let window_s: f64 = seconds.iter().sum();
        Some(Profile {
            window_s,
            at_s: marks.iter().skip(1).map(|mark| (mark.at_ms - from_ms) / 1e3).collect(),
            processes,
            total: used(&series(&all), &seconds, starts),
            network_percent: change(&network).map(|used| used / window_s.max(1e-9) * 100.0),
            network_percents: rates(&network, &seconds, 100.0),
        })
    }
}

/// How much a counter has grown; `None` without readings.
fn change(counter: &[f64]) -> Option<f64> {
    Some((counter.last()? - counter.first()?).max(0.0))
}

/// The growth of a counter per second in each interval, times a factor.
fn rates(counter: &[f64], seconds: &[f64], factor: f64) -> Vec<f64> {
    let rate = |(pair, seconds): (&[f64], &f64)| (pair[1] - pair[0]).max(0.0) / seconds.max(1e-9) * factor;
    counter.windows(2).zip(seconds).map(rate).collect()
}

/// The resources of processes whose counters at the ends of the intervals are these.
fn used(counters: &[Counters], seconds: &[f64], starts: u64) -> OfProcess {
    let of = |what: fn(&Counters) -> f64| -> Vec<f64> { counters.iter().map(what).collect() };
    let (cpu, voluntary, involuntary) =
        (of(|one| one.cpu_s), of(|one| one.voluntary), of(|one| one.involuntary));
    let cpu_s = change(&cpu).unwrap_or_default();
    OfProcess {
        starts,
        cpu_s,
        cpu_percent: cpu_s / seconds.iter().sum::<f64>().max(1e-9) * 100.0,
        rss_bytes: counters.last().map_or(0.0, |one| one.rss),
        voluntary_switches: change(&voluntary).unwrap_or_default(),
        involuntary_switches: change(&involuntary).unwrap_or_default(),
        over_time: Series {
            cpu_percent: rates(&cpu, seconds, 100.0),
            rss_bytes: counters.iter().skip(1).map(|one| one.rss).collect(),
            voluntary_per_s: rates(&voluntary, seconds, 1.0),
            involuntary_per_s: rates(&involuntary, seconds, 1.0),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// Readings every 100 ms: process 1 uses half a core, and process 7 (a fifth) is replaced by process 8 after 1 s.
    fn recorded() -> Recorder {
        let mut recorder = Recorder::new(1);
        for (pid, name) in [(1, Profile::SERVER), (7, "adapter"), (8, "adapter")] {
            recorder.known.insert(pid, Known { name: name.to_owned(), ..Known::default() });
        }
        for number in 0..=30u32 {
            let at = f64::from(number) / 10.0;
            let counters = |share: f64, seconds: f64, rss: f64| Counters {
                cpu_s: share * seconds,
                voluntary: 100.0 * seconds,
                involuntary: 10.0 * seconds,
                rss,
            };
            let mut by_process = BTreeMap::from([(1, counters(0.5, at, 1e6))]);
            by_process.insert(7, counters(0.2, at.min(1.0), if at < 1.0 { 2e6 } else { 0.0 }));
            if at > 1.0 {
                by_process.insert(8, counters(0.2, at - 1.0, 3e6));
            }
            recorder.readings.push(Reading { at_ms: at * 1e3, by_process, network_s: Some(at * 0.05) });
        }
        recorder
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9 * other.abs().max(1.0)
    }

    #[test]
    fn the_sum_of_the_processes_is_the_total() {
        let profile = recorded().profile(250.0, 2_750.0).unwrap();
        let [server, adapter] = ["server", "adapter"].map(|name| &profile.processes[name]);
        assert!(is_near(server.cpu_percent, 50.0) && is_near(adapter.cpu_percent, 20.0), "{profile:?}");
        assert_eq!((server.starts, adapter.starts, profile.total.starts), (1, 2, 3));
        assert!(is_near(profile.total.cpu_s, server.cpu_s + adapter.cpu_s));
        assert!(is_near(profile.total.voluntary_switches, 480.0), "{}", profile.total.voluntary_switches);
        assert!(is_near(profile.total.involuntary_switches, 48.0));
        assert_eq!((adapter.rss_bytes, profile.total.rss_bytes), (3e6, 4e6));
        assert!(profile.network_percent.is_some_and(|percent| is_near(percent, 5.0)));
        // From the first reading in the window to the last one.
        assert!(is_near(profile.window_s, 2.4) && is_near(server.cpu_s, 1.2));
        assert!(is_near(profile.at_s[0], 0.15) && is_near(*profile.at_s.last().unwrap(), 2.45));
        for (at, total) in profile.total.over_time.cpu_percent.iter().enumerate() {
            let parts = server.over_time.cpu_percent[at] + adapter.over_time.cpu_percent[at];
            assert!(is_near(*total, parts) && is_near(*total, 70.0), "{at}: {total} {parts}");
        }
        assert_eq!(profile.at_s.len(), profile.network_percents.len());
        let order: Vec<&str> = profile.in_order().map(|(name, _)| name).collect();
        assert_eq!(order, ["server", "adapter"]);
    }

    #[test]
    fn long_recordings_are_combined_and_short_windows_have_no_profile() {
        let mut recorder = recorded();
        let last = recorder.readings.last().cloned().unwrap();
        for number in 1..=1_000u32 {
            recorder.readings.push(Reading { at_ms: 3_000.0 + f64::from(number) * 100.0, ..last.clone() });
        }
        let profile = recorder.profile(50.0, 102_950.0).unwrap();
        assert!(profile.at_s.len() <= INTERVALS_MAX && profile.window_s > 102.0, "{}", profile.at_s.len());
        assert_eq!(profile.at_s.len(), profile.total.over_time.cpu_percent.len());
        assert_eq!(recorder.profile(250.0, 450.0), None, "two readings");
        assert!(recorder.profile(250.0, 550.0).is_some_and(|profile| profile.at_s.len() == 2));
    }

    struct Busy(Child);

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn child_processes_are_found_and_ended_ones_keep_their_time() {
        // A shell with a busy child, which ends by itself.
        let script = "sh -c 'n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done' & wait; exec sleep 30";
        let busy = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        let busy = Busy(busy);
        let mut recorder = Recorder::new(busy.0.id());
        let (begun, mut had_child) = (Instant::now(), false);
        let passed = || begun.elapsed().as_secs_f64() * 1e3;
        loop {
            recorder.read(passed(), None);
            let has_child = !recorder.process.children().is_empty();
            had_child |= has_child;
            if had_child && !has_child {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        recorder.read(passed(), None);
        let profile = recorder.profile(0.0, f64::MAX).unwrap();
        let child = &profile.processes["sh"];
        assert!(child.cpu_s > 0.0 && child.rss_bytes == 0.0, "{child:?}");
        assert!(is_near(profile.total.cpu_s, profile.processes["server"].cpu_s + child.cpu_s));
        assert_eq!((profile.network_percent, profile.network_percents.len()), (None, 0));
    }
}
