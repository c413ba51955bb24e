//! The CPU conditions that a program really has.

use super::class::Class;
use super::governor;
use crate::pin::CpuList;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;

/// What stands beside a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The CPUs that the program may use.
    pub cpus: String,
    /// How many other programs may use one of them, kernel threads not counted. 0 is an isolated core.
    pub others: usize,
    /// Scheduling class and priority.
    pub class: String,
    /// Governor of the first of these CPUs; none on most virtual machines.
    pub governor: Option<String>,
    /// Whether a CPU of these shares its core with another (hyper-threading).
    pub shares_core: bool,
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = match self.others {
            0 => "nothing else".to_owned(),
            1 => "1 other program".to_owned(),
            others => format!("{others} other programs"),
        };
        let governor = self.governor.as_deref().unwrap_or("none");
        let core = if self.shares_core { ", core shared by hyper-threading" } else { "" };
        write!(f, "CPU {} with {others}, class {}, governor {governor}{core}", self.cpus, self.class)
    }
}

/// Looks at a process.
#[must_use]
pub fn observe(pid: u32) -> Option<Observed> {
    let cpus = allowed(pid)?;
    let first = cpus.cpus().first().copied().unwrap_or(0);
    Some(Observed {
        others: others(pid, &cpus),
        class: Class::of(pid)?.to_string(),
        governor: governor::of(first),
        shares_core: cpus.cpus().iter().any(|cpu| siblings(*cpu) > 1),
        cpus: cpus.to_string(),
    })
}

/// The CPUs that a process may use.
fn allowed(pid: u32) -> Option<CpuList> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    line.trim().parse().ok()
}

/// Programs beside `pid` that may use one of the CPUs.
fn others(pid: u32, cpus: &CpuList) -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|other| *other != pid)
        // Kernel threads have no command line, and neither have those that have ended.
        .filter(|other| fs::read(format!("/proc/{other}/cmdline")).is_ok_and(|line| !line.is_empty()))
        .filter(|other| {
            allowed(*other).is_some_and(|list| list.cpus().iter().any(|cpu| cpus.cpus().contains(cpu)))
        })
        .count()
}

/// How many CPUs are in the same core.
fn siblings(cpu: usize) -> usize {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<CpuList>().ok());
    list.map_or(1, |list| list.cpus().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let seen = Observed {
            cpus: "1".to_owned(),
            others: 0,
            class: "fifo:50".to_owned(),
            governor: None,
            shares_core: true,
        };
        assert_eq!(
            seen.to_string(),
            "CPU 1 with nothing else, class fifo:50, governor none, core shared by hyper-threading"
        );
    }

    #[test]
    fn this_program() {
        let seen = observe(std::process::id()).unwrap();
        assert_eq!(seen.cpus, allowed(std::process::id()).unwrap().to_string());
        assert!(!seen.class.is_empty());
        assert!(observe(u32::MAX).is_none());
        // Whatever runs this test may use the same CPUs.
        assert!(seen.others >= 1, "{seen:?}");
    }
}
