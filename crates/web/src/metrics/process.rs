//! Resource usage of the process, with the standard metric names for it.

use crate::exposition::{Collector, Exposition};
use std::fmt;
use std::fs;

/// Reads /proc for each scrape.
#[derive(Debug)]
pub(crate) struct ProcessMetrics;

impl Collector for ProcessMetrics {
    fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        if let Some(usage) = stat.as_deref().and_then(Usage::parse) {
            let ticks = rustix::param::clock_ticks_per_second() as f64;
            let page = rustix::param::page_size() as f64;
            let cpu = (usage.user + usage.system) as f64 / ticks;
            out.counter("process_cpu_seconds", "User and system CPU time", cpu)?;
            out.gauge(
                "process_resident_memory_bytes",
                "Resident memory",
                usage.resident_pages as f64 * page,
            )?;
            out.gauge("process_virtual_memory_bytes", "Virtual memory", usage.virtual_bytes as f64)?;
            out.gauge("process_threads", "Threads", usage.threads as f64)?;
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            out.gauge("process_open_fds", "Open file descriptors", files.count() as f64)?;
        }
        if let Some(max) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            out.gauge("process_max_fds", "Maximum number of open file descriptors", max as f64)?;
        }
        Ok(())
    }
}

/// Fields of /proc/PID/stat (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Usage {
    /// Clock ticks.
    user: u64,
    /// Clock ticks.
    system: u64,
    threads: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Usage {
    fn parse(stat: &str) -> Option<Self> {
        // The program name is in parentheses and may contain spaces and parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Self {
            user: field(14)?,
            system: field(15)?,
            threads: field(20)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_after_any_program_name() {
        let stat =
            "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 0 0 20 0 5 0 100 4096 33 18446744073709551615";
        let usage = Usage { user: 11, system: 12, threads: 5, virtual_bytes: 4096, resident_pages: 33 };
        assert_eq!(Usage::parse(stat), Some(usage));
        assert_eq!(Usage::parse("7 (a) S"), None);
    }
}
