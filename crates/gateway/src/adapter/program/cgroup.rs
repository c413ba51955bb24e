//! Limits the resources of a program with control groups, version 2 (`man 7 cgroups`).
//!
//! The group of a program is a child of this process's group, in the subtree that the system has delegated (`Delegate=yes` of
//! systemd). A group with limited child groups must not contain processes. So this process moves into its own child group, next
//! to those of the programs.

use core::time::Duration;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The mount point of control groups.
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// The group of this process.
const OWN: &str = "taktwerk-main";
/// The period for CPU limits, in microseconds.
const PERIOD: u64 = 100_000;

/// The limits of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Limits {
    /// Memory in bytes.
    pub(super) memory: Option<u64>,
    /// Number of processors: 0.5 is half of one.
    pub(super) cpus: Option<f64>,
}

impl Limits {
    fn controllers(self) -> Vec<&'static str> {
        self.memory.map(|_| "memory").into_iter().chain(self.cpus.map(|_| "cpu")).collect()
    }
}

/// Resources used by the processes of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// CPU time.
    pub(super) cpu: Duration,
    /// Peak memory in bytes.
    pub(super) memory: u64,
    /// Number of processes killed because of the memory limit.
    pub(super) killed: u64,
}

/// The group of a program. All processes in it are killed on drop.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

fn read(folder: &Path, file: &str) -> Result<String, String> {
    let path = folder.join(file);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(folder: &Path, file: &str, text: &str) -> Result<(), String> {
    let path = folder.join(file);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The parent of a process.
fn parent(process: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Moves this process and its children out of a group.
fn make_way(base: &Path) -> Result<(), String> {
    let own = std::process::id();
    let processes = read(base, "cgroup.procs")?;
    let processes: Vec<&str> = processes.lines().collect();
    let is_ours = |process: &&&str| process.parse() == Ok(own) || parent(process) == Some(own);
    if processes.iter().filter(is_ours).count() < processes.len() {
        return Err(format!(
            "there are other processes in {}; run as a service with Delegate=yes",
            base.display()
        ));
    }
    let beside = base.join(OWN);
    fs::create_dir_all(&beside).map_err(|error| format!("{}: {error}", beside.display()))?;
    processes.iter().try_for_each(|process| write(&beside, "cgroup.procs", process))
}

impl Group {
    /// Creates the group of a source. `groups` is the content of `/proc/self/cgroup`.
    ///
    /// # Errors
    /// Why the group cannot be created.
    pub(super) fn make(root: &Path, groups: &str, source: &str, limits: Limits) -> Result<Self, String> {
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or("this system has no control groups of version 2")?;
        // If this process has already moved, the base is its parent.
        let own = Path::new(own);
        let base = root.join(if own.ends_with(OWN) { own.parent().unwrap_or(own) } else { own });
        let available = read(&base, "cgroup.controllers")?;
        for wanted in limits.controllers() {
            if !available.split_whitespace().any(|controller| controller == wanted) {
                let place = base.display();
                return Err(format!(
                    "the controller {wanted} is not available in {place}; set Delegate=yes for the service"
                ));
            }
        }
        let wanted: Vec<String> =
            limits.controllers().iter().map(|controller| format!("+{controller}")).collect();
        let switch_on = || write(&base, "cgroup.subtree_control", &wanted.join(" "));
        // The kernel refuses this while processes are in the group.
        if switch_on().is_err() {
            make_way(&base)?;
            switch_on()?;
        }
        let name = source.bytes().fold(String::from("source-"), |mut name, byte| {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
                other => name.push_str(&format!("_{other:02x}")),
            }
            name
        });
        let group = Self(base.join(name));
        fs::create_dir_all(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
        // A leftover group may have other limits.
        if limits.memory.is_none() {
            let _ = write(&group.0, "memory.max", "max");
        }
        if limits.cpus.is_none() {
            let _ = write(&group.0, "cpu.max", &format!("max {PERIOD}"));
        }
        if let Some(memory) = limits.memory {
            write(&group.0, "memory.max", &memory.to_string())?;
            // No swap. If memory runs out, kill all processes of the program together: a part of them is useless. Kernels without
            // swap lack this file.
            let _ = write(&group.0, "memory.swap.max", "0");
            let _ = write(&group.0, "memory.oom.group", "1");
        }
        if let Some(cpus) = limits.cpus {
            let quota = (cpus * PERIOD as f64).max(1000.0) as u64;
            write(&group.0, "cpu.max", &format!("{quota} {PERIOD}"))?;
        }
        Ok(group)
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    /// The system rejects it.
    pub(super) fn add(&self, process: u32) -> Result<(), String> {
        write(&self.0, "cgroup.procs", &process.to_string())
    }

    /// Resources used so far by its processes.
    pub(super) fn usage(&self) -> Usage {
        let number = |file: &str, key: &str| {
            let text = read(&self.0, file).unwrap_or_default();
            let found = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
            found.unwrap_or(0)
        };
        let peak = number("memory.peak", "");
        Usage {
            cpu: Duration::from_micros(number("cpu.stat", "usage_usec ")),
            // Kernels before 5.19 do not record the peak.
            memory: if peak > 0 { peak } else { number("memory.current", "") },
            killed: number("memory.events", "oom_kill "),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Also kills remaining child processes. A group with processes cannot be removed; the next program of this source reuses
        // it.
        let _ = write(&self.0, "cgroup.kill", "1");
        for _ in 0..10 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { memory: Some(1 << 20), cpus: Some(0.25) };

    #[test]
    fn a_group_stands_beside_this_process_and_has_the_limits() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("system.slice/taktwerk.service");
        fs::create_dir_all(&base).unwrap();
        let groups = "1:name=systemd:/x\n0::/system.slice/taktwerk.service\n";
        let make = |groups: &str| Group::make(root.path(), groups, "a b", LIMITS);
        assert!(make("4:memory:/x\n").unwrap_err().contains("version 2"));
        fs::write(base.join("cgroup.controllers"), "cpu pids\n").unwrap();
        assert!(make(groups).unwrap_err().contains("memory is not available"));
        fs::write(base.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let group = make(groups).unwrap();
        assert_eq!(group.0, base.join("source-a_20b"));
        let text = |file: &str| fs::read_to_string(group.0.join(file)).unwrap();
        assert_eq!((text("memory.max"), text("cpu.max")), ("1048576".to_owned(), "25000 100000".to_owned()));
        assert_eq!(fs::read_to_string(base.join("cgroup.subtree_control")).unwrap(), "+memory +cpu");
        group.add(7).unwrap();
        assert_eq!(text("cgroup.procs"), "7");
        fs::write(group.0.join("cpu.stat"), "usage_usec 1500\nuser_usec 1\n").unwrap();
        fs::write(group.0.join("memory.peak"), "4096\n").unwrap();
        fs::write(group.0.join("memory.events"), "oom 1\noom_kill 2\n").unwrap();
        assert_eq!(group.usage(), Usage { cpu: Duration::from_micros(1500), memory: 4096, killed: 2 });
        // After this process has moved, the location is the same.
        let again = make(&format!("0::/system.slice/taktwerk.service/{OWN}\n")).unwrap();
        assert_eq!(again.0, group.0);
        // The name of another service may end with the same text.
        let service = root.path().join(format!("x-{OWN}"));
        fs::create_dir_all(&service).unwrap();
        fs::write(service.join("cgroup.controllers"), "cpu memory\n").unwrap();
        let other = Group::make(root.path(), &format!("0::/x-{OWN}\n"), "s", LIMITS).unwrap();
        assert_eq!(other.0, service.join("source-s"));
        // A limit that was removed from the settings is removed from a leftover group.
        let without = Limits { memory: None, ..LIMITS };
        Group::make(root.path(), groups, "a b", without).unwrap();
        assert_eq!((text("memory.max"), text("cpu.max")), ("max".to_owned(), "25000 100000".to_owned()));
    }

    #[test]
    fn only_processes_of_this_program_are_moved() {
        let base = tempfile::tempdir().unwrap();
        let own = std::process::id();
        fs::write(base.path().join("cgroup.procs"), format!("{own}\n")).unwrap();
        make_way(base.path()).unwrap();
        let moved = fs::read_to_string(base.path().join(OWN).join("cgroup.procs")).unwrap();
        assert_eq!(moved, own.to_string());
        fs::write(base.path().join("cgroup.procs"), format!("{own}\n1\n")).unwrap();
        assert!(make_way(base.path()).unwrap_err().contains("other processes"));
    }

    #[test]
    #[allow(clippy::print_stderr)] // reports why it is skipped
    fn the_system_ends_a_program_that_takes_too_much_memory() {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let limits = Limits { memory: Some(16 << 20), cpus: None };
        let name = format!("test-{}", std::process::id());
        let group = match Group::make(Path::new(ROOT), &groups, &name, limits) {
            Ok(group) => group,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return;
            }
        };
        // Waits until it is in the group, then doubles a text until it is killed.
        let script = "read x; a=0123456789abcdef; while :; do a=$a$a; done";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        group.add(child.id()).unwrap();
        drop(child.stdin.take());
        assert!(!child.wait().unwrap().success());
        let usage = group.usage();
        assert!(usage.killed > 0, "{usage:?}");
        let path = group.0.clone();
        drop(group);
        assert!(!path.exists());
    }
}
