//! A core with nothing else on it.
//!
//! In order of preference: CPUs that were isolated at boot (`isolcpus`), an isolated partition of cgroup version 2, and
//! two cpusets of cgroup version 1, one of which takes everything else.

use super::{NotPermitted, owned, owner_is_gone};
use crate::pin::CpuList;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Control groups of ours begin with this and with whose they are.
const PREFIX: &str = "taktwerk-lab-";
/// Where control groups are.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Where version 1 keeps its cpusets.
const CPUSETS: &str = "/sys/fs/cgroup/cpuset";

/// By what a core is kept free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The kernel was started with `isolcpus`.
    Boot,
    /// A partition of cgroup version 2.
    Partition,
    /// Cpusets of cgroup version 1.
    Cpuset,
}

/// Isolated CPUs, until this is dropped.
#[derive(Debug)]
pub struct Isolation {
    kind: Kind,
    /// The group of the measured program, and the group of everything else.
    own: Option<PathBuf>,
    rest: Option<PathBuf>,
}

impl Isolation {
    /// Frees these CPUs of everything that can be moved.
    ///
    /// # Errors
    /// If the machine has no means for it, this process may not, or no CPU would be left for the rest.
    pub fn of(cpus: &CpuList) -> Result<Self, NotPermitted> {
        if at_boot().is_some_and(|isolated| cpus.cpus().iter().all(|cpu| isolated.cpus().contains(cpu))) {
            return Ok(Self { kind: Kind::Boot, own: None, rest: None });
        }
        let others = others(cpus)?;
        let refused = |error: io::Error| {
            NotPermitted(format!(
                "CPU {cpus} cannot be isolated ({error}): run as root, or start the kernel with isolcpus={cpus}, or \
                 measure without isolation"
            ))
        };
        let version_2 = Path::new(CGROUPS).join("cgroup.controllers");
        if fs::read_to_string(version_2).is_ok_and(|text| text.split_whitespace().any(|it| it == "cpuset")) {
            return partition(Path::new(CGROUPS), cpus).map_err(refused);
        }
        if Path::new(CPUSETS).join("cpuset.cpus").exists() {
            return cpusets(Path::new(CPUSETS), cpus, &others).map_err(refused);
        }
        Err(NotPermitted(format!(
            "CPU {cpus} cannot be isolated: this machine has no cpusets and was not started with isolcpus={cpus}; \
             measure without isolation"
        )))
    }

    /// By what.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Moves a process onto the isolated CPUs.
    ///
    /// # Errors
    /// If it is gone or may not be moved.
    pub fn admit(&self, pid: u32) -> io::Result<()> {
        match &self.own {
            Some(group) => fs::write(group.join("cgroup.procs"), pid.to_string()),
            None => Ok(()),
        }
    }
}

impl Drop for Isolation {
    fn drop(&mut self) {
        for group in [&self.own, &self.rest].into_iter().flatten() {
            dissolve(group);
        }
    }
}

/// CPUs that the kernel was told to leave alone.
fn at_boot() -> Option<CpuList> {
    fs::read_to_string("/sys/devices/system/cpu/isolated").ok()?.trim().parse().ok()
}

/// The CPUs that are left for everything else.
fn others(cpus: &CpuList) -> Result<CpuList, NotPermitted> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online: CpuList = online.trim().parse().unwrap_or_else(|_| CpuList::allowed());
    if let Some(missing) = cpus.cpus().iter().find(|cpu| !online.cpus().contains(cpu)) {
        return Err(NotPermitted(format!("there is no CPU {missing}; this machine has {online}")));
    }
    let left: Vec<String> =
        online.cpus().iter().filter(|cpu| !cpus.cpus().contains(cpu)).map(ToString::to_string).collect();
    left.join(",").parse().map_err(|_| {
        NotPermitted(format!("CPU {cpus} is all that this machine has: leave one for everything else"))
    })
}

fn partition(root: &Path, cpus: &CpuList) -> io::Result<Isolation> {
    // Refused if it is on already in a way that cannot be changed; what counts is whether the group gets its files.
    let _ = fs::write(root.join("cgroup.subtree_control"), "+cpuset");
    let own = group(root, "own")?;
    fs::create_dir(&own)?;
    let isolation = Isolation { kind: Kind::Partition, own: Some(own.clone()), rest: None };
    fs::write(own.join("cpuset.cpus"), cpus.to_string())?;
    let switch = own.join("cpuset.cpus.partition");
    if fs::write(&switch, "isolated").is_err() {
        fs::write(&switch, "root")?;
    }
    let state = fs::read_to_string(&switch)?;
    if state.contains("invalid") || state.trim() == "member" {
        return Err(io::Error::other(format!("the kernel says: {}", state.trim())));
    }
    Ok(isolation)
}

/// Where a control group of this process is.
fn group(root: &Path, name: &str) -> io::Result<PathBuf> {
    let owned = owned(PREFIX).map_err(io::Error::other)?;
    Ok(root.join(format!("{owned}-{name}")))
}

fn cpusets(root: &Path, cpus: &CpuList, others: &CpuList) -> io::Result<Isolation> {
    let (own, rest) = (group(root, "own")?, group(root, "rest")?);
    let isolation = Isolation { kind: Kind::Cpuset, own: Some(own.clone()), rest: Some(rest.clone()) };
    let memory = fs::read_to_string(root.join("cpuset.mems"))?;
    for (group, cpus) in [(&own, cpus), (&rest, others)] {
        fs::create_dir(group)?;
        fs::write(group.join("cpuset.cpus"), cpus.to_string())?;
        fs::write(group.join("cpuset.mems"), memory.trim())?;
    }
    // Kernel threads that belong to a CPU refuse; they are the machine itself. A task that was moved while it made
    // another one has left that behind: look again.
    let mut before = String::new();
    for _ in 0..ROUNDS {
        let there = fs::read_to_string(root.join("tasks"))?;
        if there == before {
            break;
        }
        for task in there.lines() {
            let _ = fs::write(rest.join("tasks"), task);
        }
        before = there;
    }
    Ok(isolation)
}

/// How often tasks are looked for that were made while others were moved.
const ROUNDS: u32 = 50;

/// Gives what is in a group back to its parent and removes it. A machine that starts programs meanwhile, or has not quite
/// ended one, needs more than one attempt.
fn dissolve(group: &Path) -> bool {
    let Some(parent) = group.parent() else { return false };
    for _ in 0..ROUNDS {
        for list in ["tasks", "cgroup.procs"] {
            for task in fs::read_to_string(group.join(list)).unwrap_or_default().lines() {
                let _ = fs::write(parent.join(list), task);
            }
        }
        match fs::remove_dir(group) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    }
    false
}

/// Dissolves the groups of killed processes.
pub(super) fn clean() -> Vec<String> {
    let left =
        [CGROUPS, CPUSETS].into_iter().flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    left.filter(|entry| owner_is_gone(&entry.file_name().to_string_lossy(), PREFIX))
        .filter(|entry| dissolve(&entry.path()))
        .map(|entry| format!("control group dissolved: {}", entry.file_name().to_string_lossy()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_has_to_be_left() {
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        let all: CpuList = online.trim().parse().unwrap();
        assert!(Isolation::of(&all).unwrap_err().to_string().contains("leave one"));
        let error = Isolation::of(&CpuList::single(1000)).unwrap_err();
        assert!(error.to_string().contains("no CPU 1000"), "{error}");
    }

    #[test]
    fn groups_of_the_first_version() {
        let root = std::env::temp_dir().join(format!("cpuset-test-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("cpuset.mems"), "0\n").unwrap();
        fs::write(root.join("tasks"), "11\n12\n").unwrap();
        let isolation = cpusets(&root, &CpuList::single(1), &CpuList::single(0)).unwrap();
        let (own, rest) = (isolation.own.clone().unwrap(), isolation.rest.clone().unwrap());
        assert_eq!(fs::read_to_string(own.join("cpuset.cpus")).unwrap(), "1");
        assert_eq!(fs::read_to_string(rest.join("cpuset.cpus")).unwrap(), "0");
        assert_eq!(fs::read_to_string(rest.join("tasks")).unwrap(), "12");
        isolation.admit(99).unwrap();
        assert_eq!(fs::read_to_string(own.join("cgroup.procs")).unwrap(), "99");
        drop(isolation);
        // Who was in the groups is in their parent again.
        assert_eq!(fs::read_to_string(root.join("tasks")).unwrap(), "12");
        fs::remove_dir_all(root).unwrap();
    }
}
