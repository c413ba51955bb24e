//! Keeps other programs off a CPU.
//!
//! In order of preference: CPUs isolated at boot (`isolcpus`), an isolated partition of cgroup version 2, and two
//! cpusets of cgroup version 1, one of which takes all other programs.

use super::{NotPermitted, owned, owner_is_gone};
use crate::pin::CpuList;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Prefix of our control groups, followed by their owner.
const PREFIX: &str = "taktwerk-lab-";
/// Directory of control groups.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Directory of cpusets in version 1.
const CPUSETS: &str = "/sys/fs/cgroup/cpuset";

/// Method of isolation.
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
    /// The control groups of the measured program and of all other programs.
    own: Option<PathBuf>,
    rest: Option<PathBuf>,
}

impl Isolation {
    /// Moves everything that can be moved off these CPUs.
    ///
    /// # Errors
    /// If the machine has no such mechanism, this process lacks the right, or no CPU would be left for other programs.
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

    /// The method used.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Moves a process onto the isolated CPUs.
    ///
    /// # Errors
    /// If the process has ended or may not be moved.
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

/// CPUs that the kernel was told to isolate at boot.
fn at_boot() -> Option<CpuList> {
    fs::read_to_string("/sys/devices/system/cpu/isolated").ok()?.trim().parse().ok()
}

/// The CPUs that remain for all other programs.
fn others(cpus: &CpuList) -> Result<CpuList, NotPermitted> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online: CpuList = online.trim().parse().unwrap_or_else(|_| CpuList::allowed());
    if let Some(missing) = cpus.cpus().iter().find(|cpu| !online.cpus().contains(cpu)) {
        return Err(NotPermitted(format!("there is no CPU {missing}; this machine has {online}")));
    }
    let left: Vec<String> =
        online.cpus().iter().filter(|cpu| !cpus.cpus().contains(cpu)).map(ToString::to_string).collect();
    left.join(",").parse().map_err(|_| {
        NotPermitted(format!("CPU {cpus} is all that this machine has: leave one for other programs"))
    })
}

fn partition(root: &Path, cpus: &CpuList) -> io::Result<Isolation> {
    // This write fails if the controller is already enabled and fixed. The check below is whether the group has its
    // files.
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

/// Path of a control group of this process.
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
    // Per-CPU kernel threads cannot be moved. A task that was moved while it started another one left the new task
    // behind, so look again.
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

/// How often to look for tasks started while others were moved.
const ROUNDS: u32 = 50;

/// Moves the tasks of a group back to its parent and removes the group. Tasks that are starting or ending at the same
/// time can make several attempts necessary.
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

/// Removes the groups of killed processes.
pub(super) fn clean() -> Vec<String> {
    let left =
        [CGROUPS, CPUSETS].into_iter().flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    left.filter(|entry| owner_is_gone(&entry.file_name().to_string_lossy(), PREFIX))
        .filter(|entry| dissolve(&entry.path()))
        .map(|entry| format!("control group removed: {}", entry.file_name().to_string_lossy()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_must_remain() {
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
        // The tasks of the groups are in the parent group again.
        assert_eq!(fs::read_to_string(root.join("tasks")).unwrap(), "12");
        fs::remove_dir_all(root).unwrap();
    }
}
