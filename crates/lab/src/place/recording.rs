//! Records the processes of a server while a load runs, to find out what each used within the load's window.

use super::watch::{Watch, window};
use crate::links::THREADS;
use crate::machine;
use crate::pin::CpuList;
use crate::process::Process;
use std::time::Duration;
use taktwerk_load::recorder::Recorder;
use taktwerk_load::result::{Accounts, Profile};

/// Interval between two readings. A reading of three processes takes less than 1 ms.
const EVERY: Duration = Duration::from_millis(100);

/// The thread that reads the counters.
pub(super) struct Recording(Watch<Recorder>);

impl Recording {
    /// Starts to record a server and its child processes, on these CPUs.
    pub(super) fn start(server_pid: u32, cpus: CpuList) -> std::io::Result<Self> {
        let read = |recorder: &mut Recorder, at_ms: f64| recorder.read(at_ms, network());
        Watch::start("recording", EVERY, cpus, Recorder::new(server_pid), read).map(Self)
    }

    /// The profile of the window of a load; `None` if its time is unknown or it was too short.
    pub(super) fn profile(self, accounts: &Accounts) -> Option<Profile> {
        let recorder = self.0.end()?;
        let (from, until) = window(accounts)?;
        recorder.profile(from, until)
    }
}

/// CPU time of the network so far, in nanoseconds: interrupts, and the threads of this process that emulate links. Only
/// the link of the load carries something.
fn network() -> Option<u64> {
    let threads = Process::own().by_thread();
    let links: u64 =
        threads.iter().filter(|(name, _)| name.starts_with(THREADS)).map(|(_, nanos)| nanos).sum();
    Some(machine::interrupts()? + links)
}
