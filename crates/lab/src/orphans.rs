//! Finds and ends programs that outlived the laboratory that started them.
//!
//! Peers exit when their standard input closes, so they end with the laboratory even if it is killed. Other programs,
//! such as brokers and installers, have the identity of their owner in their environment, and the next run finds them
//! by it. Files, directories and runs that depend on their owner have a shorter form in their name ([`mark`]).

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that names the owner: process id, start time, PID namespace and boot, with colons.
pub const OWNER: &str = "TAKTWERK_LAB_OWNER";

/// Time for a process to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// The identity of a process. Distinguishes it from later processes with the same id, from processes of other
/// containers, and from those of other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    /// Start time in clock ticks since the machine started.
    started: u64,
    /// Inode of its PID namespace.
    namespace: u64,
    boot: String,
}

impl Owner {
    /// This process; `None` without `/proc`.
    pub(crate) fn this() -> Option<Self> {
        let pid = std::process::id();
        Some(Self { pid, started: started(pid)?, namespace: namespace()?, boot: boot()? })
    }

    /// A process on this machine.
    pub(crate) fn here(pid: u32, started: u64, namespace: u64) -> Option<Self> {
        Some(Self { pid, started, namespace, boot: boot()? })
    }

    /// Short form for the names of files and control groups, which belong to this machine and do not outlive the boot.
    pub(crate) fn short(&self) -> String {
        format!("{}-{}-{}", self.pid, self.started, self.namespace)
    }

    /// Parses the output of [`Self::short`]; more text may follow after a hyphen.
    pub(crate) fn from_short(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').map_while(|part| part.parse::<u64>().ok());
        let mut number = || numbers.next();
        let (pid, started, namespace) = (number()?, number()?, number()?);
        Self::here(u32::try_from(pid).ok()?, started, namespace)
    }

    /// Whether the process still runs. Unknown for another namespace or machine.
    pub(crate) fn fate(&self) -> Fate {
        if Some(self.namespace) != namespace() || Some(&self.boot) != boot().as_ref() {
            return Fate::Unknown;
        }
        if started(self.pid) == Some(self.started) { Fate::Runs } else { Fate::Gone }
    }

    /// Whether it has ended; false if unknown.
    pub(crate) fn is_gone(&self) -> bool {
        self.fate() == Fate::Gone
    }
}

/// State of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has not ended.
    Runs,
    /// It has ended.
    Gone,
    /// It belongs to another container (PID namespace) and is not visible here.
    Unknown,
}

/// The identity of this process for the names of dependent files: process id, start time and PID namespace, with
/// hyphens; only the id without `/proc`.
#[must_use]
pub fn mark() -> String {
    Owner::this().map_or_else(|| std::process::id().to_string(), |owner| owner.short())
}

/// State of the process that left a [`mark`]; `None` if `mark` is not one. Earlier versions wrote only the process id,
/// which is looked up in this namespace.
#[must_use]
pub fn fate(mark: &str) -> Option<Fate> {
    if let Ok(pid) = mark.parse::<u32>() {
        return Some(if Path::new("/proc").join(pid.to_string()).exists() { Fate::Runs } else { Fate::Gone });
    }
    Owner::from_short(mark).map(|owner| owner.fate())
}

/// The identity for files that may outlive the boot: boot, process id, start time and PID namespace, with spaces.
#[cfg(feature = "laboratory")]
pub(crate) fn writer() -> String {
    let pid = std::process::id();
    let start = started(pid).map(|start| start.to_string()).unwrap_or_default();
    let namespace = namespace().map(|namespace| format!(" {namespace}")).unwrap_or_default();
    format!("{} {pid} {start}{namespace}", boot().unwrap_or_default())
}

/// State of a [`writer`]. Earlier versions wrote no namespace; this one is assumed.
#[cfg(feature = "laboratory")]
pub(crate) fn fate_of_writer(writer: &str) -> Fate {
    let mut parts = writer.split(' ');
    let (Some(of), Some(pid), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return Fate::Gone;
    };
    if of != boot().unwrap_or_default() {
        // No process outlives the boot.
        return Fate::Gone;
    }
    if parts.next().is_some_and(|of| Some(of) != namespace().map(|own| own.to_string()).as_deref()) {
        return Fate::Unknown;
    }
    let found = pid.parse().ok().and_then(started).map(|start| start.to_string());
    if found.as_deref() == Some(start) { Fate::Runs } else { Fate::Gone }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.pid, self.started, self.namespace, self.boot)
    }
}

impl FromStr for Owner {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(4, ':');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let (pid, started, namespace) = (number()?, number()?, number()?);
        let boot = parts.next().filter(|boot| !boot.is_empty()).ok_or(())?.to_owned();
        Ok(Self { pid: u32::try_from(pid).map_err(|_| ())?, started, namespace, boot })
    }
}

/// The identity of this process, for [`OWNER`]. Empty without `/proc`; then started programs have no owner.
#[must_use]
pub fn owner() -> String {
    Owner::this().map_or_else(String::new, |owner| owner.to_string())
}

/// Start time of a process, in clock ticks since the machine started (field 22).
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The PID namespace of this process: `pid:[4026531836]`.
fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Ends programs whose owner has ended, waits for them, and describes them.
#[must_use]
pub fn clean() -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let (mut said, mut ended) = (Vec::new(), Vec::new());
    for pid in pids.filter(|pid| *pid != std::process::id()) {
        // Open a pidfd before checking: the id could be reused by another process in between.
        let held = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(Ok(held)) = held.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { continue };
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if !is_orphan(&environment) {
            continue;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if pidfd_send_signal(&held, Signal::KILL).is_ok() {
            said.push(format!("program ended: {pid} {}", line.trim()));
            ended.push(pid);
        }
    }
    let end = Instant::now() + GRACE;
    while ended.iter().any(|pid| is_running(*pid)) && Instant::now() < end {
        thread::sleep(Duration::from_millis(2));
    }
    said
}

/// Whether a process runs, and is not a zombie.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// Whether the owner named in this environment has ended.
fn is_orphan(environment: &[u8]) -> bool {
    let prefix = format!("{OWNER}=");
    let owner = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix(&prefix));
    owner.and_then(|owner| owner.parse::<Owner>().ok()).is_some_and(|owner| owner.is_gone())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A process of this machine that has ended. No machine has that many processes.
    pub(crate) fn nobody() -> Owner {
        Owner { pid: 4_194_999, started: 77, ..Owner::this().unwrap() }
    }

    #[test]
    fn owners_are_told_apart() {
        let entry = |owner: &Owner| format!("PATH=/bin\0{OWNER}={owner}\0HOME=/\0").into_bytes();
        let this = Owner::this().unwrap();
        assert_eq!(this.to_string().parse(), Ok(this.clone()));
        assert_eq!(owner(), this.to_string());
        assert!(!is_orphan(&entry(&this)));
        // The same process id with another start time is a different process.
        assert!(is_orphan(&entry(&Owner { started: 1, ..this.clone() })));
        assert!(is_orphan(&entry(&nobody())));
        // Owners in other containers or on other machines are not visible here.
        assert!(!is_orphan(&entry(&Owner { namespace: 1, ..nobody() })));
        assert!(!is_orphan(&entry(&Owner { boot: "another".to_owned(), ..nobody() })));
        for text in ["nonsense", "4194999:77", "4194999:77:1", "4194999:77:1:"] {
            assert!(text.parse::<Owner>().is_err());
            assert!(!is_orphan(format!("{OWNER}={text}\0").as_bytes()), "{text}");
        }
        assert!(!is_orphan(b"PATH=/bin\0"));
    }

    #[test]
    fn marks_show_running_ended_and_unknown_processes() {
        let this = Owner::this().unwrap();
        assert_eq!((mark(), fate(&mark())), (this.short(), Some(Fate::Runs)));
        assert_eq!(Owner::from_short(&format!("{}-rest", this.short())), Some(this.clone()));
        assert_eq!(fate(&nobody().short()), Some(Fate::Gone));
        // The same process id and start in another container.
        assert_eq!(fate(&Owner { namespace: 1, ..this }.short()), Some(Fate::Unknown));
        // Format of earlier versions.
        assert_eq!((fate("1"), fate("4194999")), (Some(Fate::Runs), Some(Fate::Gone)));
        for text in ["", "own", "1-2", "1-2-x", "-1-2-3"] {
            assert_eq!(fate(text), None, "{text}");
        }
    }

    #[cfg(feature = "laboratory")]
    #[test]
    fn writers_in_other_containers_are_unknown() {
        let this = writer();
        let [boot, pid, start, namespace] = this.split(' ').collect::<Vec<_>>()[..] else { panic!("{this}") };
        assert_eq!(fate_of_writer(&this), Fate::Runs);
        assert_eq!(fate_of_writer(&format!("{boot} {pid} 1 {namespace}")), Fate::Gone);
        // Running or ended: another container is not visible here. After a restart of the machine it has certainly
        // ended.
        assert_eq!(fate_of_writer(&format!("{boot} {pid} {start} 1")), Fate::Unknown);
        assert_eq!(fate_of_writer(&format!("another {pid} {start} 1")), Fate::Gone);
        // Format of earlier versions.
        assert_eq!(fate_of_writer(&format!("{boot} {pid} {start}")), Fate::Runs);
        assert_eq!(fate_of_writer(&format!("{boot} {pid} 1")), Fate::Gone);
        assert_eq!(fate_of_writer("nonsense"), Fate::Gone);
    }

    #[test]
    fn only_orphans_are_ended() {
        let spawn = |owner: String| {
            Command::new("/bin/sleep").arg("60").env(OWNER, owner).stdin(Stdio::null()).spawn().unwrap()
        };
        let mut ours = spawn(owner());
        let mut others = spawn(Owner { namespace: 1, ..nobody() }.to_string());
        let mut orphan = spawn(nobody().to_string());
        // A new process briefly has no environment: its parent continues before the kernel has written it.
        let ended = (0..500).find_map(|_| {
            // Another test may be faster, but the process must end.
            let _ = clean();
            std::thread::sleep(core::time::Duration::from_millis(10));
            orphan.try_wait().unwrap()
        });
        assert!(!ended.unwrap().success());
        for child in [&mut ours, &mut others] {
            assert!(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
