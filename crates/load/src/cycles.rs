//! CPU cycles of another process, from the processor's performance counters. Not available on most virtual machines,
//! and only with the permission described in `/proc/sys/kernel/perf_event_paranoid`.

use crate::process::Process;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// Counters of all threads that a process has at the start.
#[derive(Debug)]
pub struct Cycles(Vec<Counter>);

impl Cycles {
    /// Starts counting; `None` if the machine has no counters or this process may not use them.
    #[must_use]
    pub fn count(process: Process) -> Option<Self> {
        let count = |thread: u32| -> Option<Counter> {
            let thread = i32::try_from(thread).ok()?;
            let mut counter = Builder::new().kind(Hardware::CPU_CYCLES).observe_pid(thread).build().ok()?;
            counter.enable().ok()?;
            Some(counter)
        };
        let counters: Option<Vec<Counter>> = process.threads().into_iter().map(count).collect();
        counters.filter(|counters| !counters.is_empty()).map(Self)
    }

    /// Cycles since the start.
    pub fn read(&mut self) -> Option<u64> {
        self.0.iter_mut().map(|counter| counter.read().ok()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_counted_or_unavailable() {
        if let Some(mut cycles) = Cycles::count(Process::own()) {
            let first = cycles.read().unwrap();
            let mut spent = 0u64;
            (0..1_000_000u64).for_each(|value| spent = spent.wrapping_add(value * value));
            assert!(cycles.read().unwrap() > first, "{spent}");
        }
        assert!(Cycles::count(Process::new(u32::MAX - 7)).is_none());
    }
}
