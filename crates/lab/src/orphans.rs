//! Programs that outlived the laboratory that started them.
//!
//! Peers end with their standard input, so they end with us however we end. What does not (a broker that knows no such
//! thing, an installer) carries the name of its owner in its environment, and the next run finds it by that. Files, folders
//! and runs that are of no use without their owner carry a shorter name of it ([`mark`]).

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// The environment variable that names the owner: process id, start time, PID namespace and boot, with colons.
pub const OWNER: &str = "TAKTWERK_LAB_OWNER";

/// How long what was ended may take until it is gone.
const GRACE: Duration = Duration::from_secs(5);

/// A process, such that no other one is taken for it: none that has its id later, none of a container, where other processes
/// have the same ids, and none of another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    /// In clock ticks since the machine started.
    started: u64,
    /// The inode of its PID namespace.
    namespace: u64,
    boot: String,
}

impl Owner {
    /// This process; `None` without `/proc`.
    pub(crate) fn this() -> Option<Self> {
        let pid = std::process::id();
        Some(Self { pid, started: started(pid)?, namespace: namespace()?, boot: boot()? })
    }

    /// A process of this machine and this namespace.
    pub(crate) fn here(pid: u32, started: u64, namespace: u64) -> Option<Self> {
        Some(Self { pid, started, namespace, boot: boot()? })
    }

    /// What stands in the names of files and control groups that must not outlive it: they are this machine's and do not outlive
    /// the boot.
    pub(crate) fn short(&self) -> String {
        format!("{}-{}-{}", self.pid, self.started, self.namespace)
    }

    /// Reads what [`Self::short`] wrote; more may follow behind a hyphen.
    pub(crate) fn from_short(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').map_while(|part| part.parse::<u64>().ok());
        let mut number = || numbers.next();
        let (pid, started, namespace) = (number()?, number()?, number()?);
        Self::here(u32::try_from(pid).ok()?, started, namespace)
    }

    /// What became of it. Of another namespace or another machine nothing can be known.
    pub(crate) fn fate(&self) -> Fate {
        if Some(self.namespace) != namespace() || Some(&self.boot) != boot().as_ref() {
            return Fate::Unknown;
        }
        if started(self.pid) == Some(self.started) { Fate::Runs } else { Fate::Gone }
    }

    /// Whether it has ended; what nothing is known of is left alone.
    pub(crate) fn is_gone(&self) -> bool {
        self.fate() == Fate::Gone
    }
}

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has not ended.
    Runs,
    /// It has ended.
    Gone,
    /// It is one of another container (PID namespace), where the same ids are other processes: nothing can be known from here.
    Unknown,
}

/// This process in the names of files that are of no use without it: process id, start and PID namespace, with hyphens; the
/// id alone where there is no `/proc`.
#[must_use]
pub fn mark() -> String {
    Owner::this().map_or_else(|| std::process::id().to_string(), |owner| owner.short())
}

/// What became of the process that left a [`mark`]; `None` if it is none. Earlier versions left the process id alone, which is
/// taken for one of this namespace.
#[must_use]
pub fn fate(mark: &str) -> Option<Fate> {
    if let Ok(pid) = mark.parse::<u32>() {
        return Some(if Path::new("/proc").join(pid.to_string()).exists() { Fate::Runs } else { Fate::Gone });
    }
    Owner::from_short(mark).map(|owner| owner.fate())
}

/// What stands in a file that may outlive the boot: boot, process id, start and PID namespace, with spaces.
#[cfg(feature = "laboratory")]
pub(crate) fn writer() -> String {
    let pid = std::process::id();
    let start = started(pid).map(|start| start.to_string()).unwrap_or_default();
    let namespace = namespace().map(|namespace| format!(" {namespace}")).unwrap_or_default();
    format!("{} {pid} {start}{namespace}", boot().unwrap_or_default())
}

/// What became of a [`writer`]. Earlier versions noted no namespace: theirs is taken for this one.
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

/// This process, for [`OWNER`]. Without `/proc` it is empty, and what it starts belongs to nobody.
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

/// Ends programs whose owner is gone, waits until they are gone too, and says which.
#[must_use]
pub fn clean() -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let (mut said, mut ended) = (Vec::new(), Vec::new());
    for pid in pids.filter(|pid| *pid != std::process::id()) {
        // Held before it is looked at: a process that takes its id meanwhile is not the one that is ended.
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

/// Whether a process does anything yet: one that nobody has waited for does not.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// Whether this environment names an owner that is gone.
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

    /// A process of this machine that has ended: no machine has so many at a time.
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
        // The same process id, but another start: somebody else's by now.
        assert!(is_orphan(&entry(&Owner { started: 1, ..this.clone() })));
        assert!(is_orphan(&entry(&nobody())));
        // Of a container or a machine whose processes are not seen here.
        assert!(!is_orphan(&entry(&Owner { namespace: 1, ..nobody() })));
        assert!(!is_orphan(&entry(&Owner { boot: "another".to_owned(), ..nobody() })));
        for text in ["nonsense", "4194999:77", "4194999:77:1", "4194999:77:1:"] {
            assert!(text.parse::<Owner>().is_err());
            assert!(!is_orphan(format!("{OWNER}={text}\0").as_bytes()), "{text}");
        }
        assert!(!is_orphan(b"PATH=/bin\0"));
    }

    #[test]
    fn marks_tell_what_runs_what_is_gone_and_what_nobody_knows() {
        let this = Owner::this().unwrap();
        assert_eq!((mark(), fate(&mark())), (this.short(), Some(Fate::Runs)));
        assert_eq!(Owner::from_short(&format!("{}-rest", this.short())), Some(this.clone()));
        assert_eq!(fate(&nobody().short()), Some(Fate::Gone));
        // The same process id and start in another container.
        assert_eq!(fate(&Owner { namespace: 1, ..this }.short()), Some(Fate::Unknown));
        // As earlier versions wrote them.
        assert_eq!((fate("1"), fate("4194999")), (Some(Fate::Runs), Some(Fate::Gone)));
        for text in ["", "own", "1-2", "1-2-x", "-1-2-3"] {
            assert_eq!(fate(text), None, "{text}");
        }
    }

    #[cfg(feature = "laboratory")]
    #[test]
    fn writers_of_files_are_known_as_far_as_they_can_be_seen() {
        let this = writer();
        let [boot, pid, start, namespace] = this.split(' ').collect::<Vec<_>>()[..] else { panic!("{this}") };
        assert_eq!(fate_of_writer(&this), Fate::Runs);
        assert_eq!(fate_of_writer(&format!("{boot} {pid} 1 {namespace}")), Fate::Gone);
        // Dead or alive: that container is not seen from here. After a restart of the machine none of it is left.
        assert_eq!(fate_of_writer(&format!("{boot} {pid} {start} 1")), Fate::Unknown);
        assert_eq!(fate_of_writer(&format!("another {pid} {start} 1")), Fate::Gone);
        // As earlier versions wrote it.
        assert_eq!(fate_of_writer(&format!("{boot} {pid} {start}")), Fate::Runs);
        assert_eq!(fate_of_writer(&format!("{boot} {pid} 1")), Fate::Gone);
        assert_eq!(fate_of_writer("nonsense"), Fate::Gone);
    }

    #[test]
    fn an_orphan_is_ended_and_nobody_else() {
        let spawn = |owner: String| {
            Command::new("/bin/sleep").arg("60").env(OWNER, owner).stdin(Stdio::null()).spawn().unwrap()
        };
        let mut ours = spawn(owner());
        let mut others = spawn(Owner { namespace: 1, ..nobody() }.to_string());
        let mut orphan = spawn(nobody().to_string());
        // A process that has just begun has no environment for a moment: its parent goes on before the kernel has written it.
        let ended = (0..500).find_map(|_| {
            // Another test may be faster, but ended it is.
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
