//! Reads the actual CPU conditions of a program.

use super::class::Class;
use super::governor;
use crate::pin::CpuList;
use std::fs;
use taktwerk_load::observed::Observed;

/// Observes a process.
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

/// Number of other programs that may use one of the CPUs.
fn others(pid: u32, cpus: &CpuList) -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|other| *other != pid)
        // Kernel threads and ended processes have no command line.
        .filter(|other| fs::read(format!("/proc/{other}/cmdline")).is_ok_and(|line| !line.is_empty()))
        .filter(|other| {
            allowed(*other).is_some_and(|list| list.cpus().iter().any(|cpu| cpus.cpus().contains(cpu)))
        })
        .count()
}

/// Number of hardware threads in the same core.
fn siblings(cpu: usize) -> usize {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<CpuList>().ok());
    list.map_or(1, |list| list.cpus().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program() {
        let seen = observe(std::process::id()).unwrap();
        assert_eq!(seen.cpus, allowed(std::process::id()).unwrap().to_string());
        assert!(!seen.class.is_empty());
        assert!(observe(u32::MAX).is_none());
        // The test runner may use the same CPUs.
        assert!(seen.others >= 1, "{seen:?}");
    }
}
