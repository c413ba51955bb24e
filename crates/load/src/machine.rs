//! Describes the machine of a measurement, because results of different machines must not be mixed.

use serde::{Deserialize, Serialize};
use std::fs;

/// Description of a machine, part of every result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Number of online CPUs.
    pub cpus: usize,
    /// Whether it is a virtual machine, on which waking a sleeping CPU costs tens of microseconds.
    pub virtual_machine: bool,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Whether the kernel is a real-time one (PREEMPT_RT).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real_time: bool,
    /// Frequency governor of CPU 0, if there is one.
    pub governor: Option<String>,
    /// Whether this program was built with optimisation.
    pub optimised: bool,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory_bytes: field(&meminfo, "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes * 1024),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            real_time: read("/sys/kernel/realtime").is_some_and(|text| text == "1"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// Total busy time of all CPUs so far, in nanoseconds with the resolution of a clock tick; `None` if the kernel does
/// not provide it.
#[must_use]
pub fn busy() -> Option<u64> {
    // All except the two idle ones. Stolen time is not work of this machine.
    time_of(|at| at < 7 && ![3, 4].contains(&at))
}

/// Total time of all CPUs in interrupts so far, in nanoseconds as [`busy`]. Most of it is work for networks: packets are
/// received in softirqs.
#[must_use]
pub fn interrupts() -> Option<u64> {
    time_of(|at| [5, 6].contains(&at))
}

/// Time of all CPUs in some states: user, nice, system, idle, iowait, irq, softirq, steal.
fn time_of(is_wanted: fn(usize) -> bool) -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let ticks = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let wanted = ticks.enumerate().filter(|(at, _)| is_wanted(*at));
    Some(wanted.filter_map(|(_, ticks)| ticks.parse::<u64>().ok()).sum::<u64>() * tick)
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files() {
        let text = "processor\t: 0\nmodel name\t: A: B\nMemTotal:       24684084 kB\n";
        assert_eq!(field(text, "model name"), Some("A: B"));
        assert_eq!(field(text, "MemTotal"), Some("24684084 kB"));
        assert_eq!(field(text, "flags"), None);
        let machine = Machine::this();
        assert!(machine.cpus >= 1 && !machine.kernel.is_empty());
        assert!(busy().is_none_or(|busy| busy > 0));
        let (Some(interrupts), Some(busy)) = (interrupts(), busy()) else { panic!("no times of the CPUs") };
        assert!(interrupts <= busy, "interrupts are a part of it");
    }
}
