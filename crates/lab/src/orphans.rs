//! Programs that outlived the laboratory that started them.
//!
//! Peers end with their standard input, so they end with us however we end. What does not (a broker that knows no such
//! thing) carries the name of its owner in its environment, and the next run finds it by that.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// The environment variable: process id and start time of the owner.
pub const OWNER: &str = "TAKTWERK_LAB_OWNER";

/// This process, such that no later one is taken for it.
#[must_use]
pub fn owner() -> String {
    let pid = std::process::id();
    format!("{pid}:{}", started(pid).unwrap_or_default())
}

/// Start time of a process, in clock ticks since the machine started (field 22).
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// Ends programs whose owner is gone, and says which.
#[must_use]
pub fn clean() -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut ended = Vec::new();
    for pid in pids.filter(|pid| *pid != std::process::id()) {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        if !is_orphan(&environment) {
            continue;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            if kill_process(process, Signal::KILL).is_ok() {
                ended.push(format!("program ended: {pid} {}", line.trim()));
            }
        }
    }
    ended
}

/// Whether this environment names an owner that is gone.
fn is_orphan(environment: &[u8]) -> bool {
    let prefix = format!("{OWNER}=");
    let owner = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix(&prefix));
    let Some((pid, start)) = owner.and_then(|owner| owner.split_once(':')) else { return false };
    match (pid.parse(), start.parse()) {
        (Ok(pid), Ok(start)) => started(pid) != Some(start),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn owners_are_told_apart() {
        let entry = |owner: &str| format!("PATH=/bin\0{OWNER}={owner}\0HOME=/\0").into_bytes();
        assert!(!is_orphan(&entry(&owner())));
        // The same process id, but another start: somebody else's by now.
        assert!(is_orphan(&entry(&format!("{}:1", std::process::id()))));
        assert!(is_orphan(&entry("4194999:77")));
        assert!(!is_orphan(&entry("nonsense")) && !is_orphan(b"PATH=/bin\0"));
    }

    #[test]
    fn an_orphan_is_ended_and_nobody_else() {
        let spawn = |owner: String| {
            Command::new("/bin/sleep").arg("60").env(OWNER, owner).stdin(Stdio::null()).spawn().unwrap()
        };
        let mut ours = spawn(owner());
        let mut orphan = spawn("4194999:77".to_owned());
        // A process that has just begun has no environment for a moment: its parent goes on before the kernel has written it.
        let ended = (0..500).find_map(|_| {
            // Another test may be faster, but ended it is.
            let _ = clean();
            std::thread::sleep(core::time::Duration::from_millis(10));
            orphan.try_wait().unwrap()
        });
        assert!(!ended.unwrap().success());
        assert!(ours.try_wait().unwrap().is_none());
        ours.kill().unwrap();
        ours.wait().unwrap();
    }
}
