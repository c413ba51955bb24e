//! CPU cycles of another process, where the processor's counters can be had: not on most virtual machines, and only
//! with the permission that `/proc/sys/kernel/perf_event_paranoid` describes.

use crate::process::Process;
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// Counters on all threads that a process has now.
#[derive(Debug)]
pub struct Cycles(Vec<Counter>);

impl Cycles {
    /// Starts to count; `None` where the machine has no counters or this process may not use them.
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

    /// Cycles since then.
    pub fn read(&mut self) -> Option<u64> {
        self.0.iter_mut().map(|counter| counter.read().ok()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_or_says_that_it_cannot() {
        if let Some(mut cycles) = Cycles::count(Process::own()) {
            let first = cycles.read().unwrap();
            let mut spent = 0u64;
            (0..1_000_000u64).for_each(|value| spent = spent.wrapping_add(value * value));
            assert!(cycles.read().unwrap() > first, "{spent}");
        }
        assert!(Cycles::count(Process::new(u32::MAX - 7)).is_none());
    }
}
