//! Records the processes of a server while a load runs, to find out what each used within the load's window.

use crate::machine;
use crate::process::Process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taktwerk_load::recorder::Recorder;
use taktwerk_load::result::{Accounts, Profile};

/// Interval between two readings. A reading takes less than 1 ms.
const EVERY: Duration = Duration::from_millis(100);
/// Begin of the names of threads that emulate links.
const LINK_THREADS: &str = "link-";

/// A thread that reads the counters until it is asked for the result.
pub(super) struct Recording {
    stop: Sender<()>,
    thread: JoinHandle<Recorder>,
}

impl Recording {
    /// Starts to record a server and its child processes.
    pub(super) fn start(server_pid: u32) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("recording".to_owned()).spawn(move || {
            let mut recorder = Recorder::new(server_pid);
            read(&mut recorder);
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                read(&mut recorder);
            }
            read(&mut recorder);
            recorder
        })?;
        Ok(Self { stop, thread })
    }

    /// The profile of the window of a load; `None` if its time is unknown or it was too short.
    pub(super) fn profile(self, accounts: &Accounts) -> Option<Profile> {
        // The thread may have ended already.
        let _ = self.stop.send(());
        let recorder = self.thread.join().ok()?;
        let from = accounts.started_unix_ms? as f64;
        recorder.profile(from, from + accounts.window_s * 1e3)
    }
}

fn read(recorder: &mut Recorder) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    recorder.read(since.as_secs_f64() * 1e3, network());
}

/// CPU time of the network so far, in nanoseconds: interrupts, and the threads of this process that emulate links. Only
/// the link of the load carries something.
fn network() -> Option<u64> {
    let threads = Process::own().by_thread();
    let links: u64 =
        threads.iter().filter(|(name, _)| name.starts_with(LINK_THREADS)).map(|(_, nanos)| nanos).sum();
    Some(machine::interrupts()? + links)
}
