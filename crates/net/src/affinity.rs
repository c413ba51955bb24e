//! Pinning a thread to one CPU.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;

/// Pins the calling thread to a CPU.
///
/// # Errors
/// The CPU does not exist, or this process may not use it.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no CPU {cpu}")));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!("cannot run on CPU {cpu} ({error}): choose one that `taskset -p $$` shows as allowed"),
        )
    })
}
