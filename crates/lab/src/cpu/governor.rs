//! Who sets the frequency of the CPUs.

use super::{NotPermitted, owner_is_gone};
use crate::pin::CpuList;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel keeps the CPUs.
const CPUS: &str = "/sys/devices/system/cpu";
/// Files with what was there before, one per process and CPU.
const PREFIX: &str = "taktwerk-governor-";

/// A governor that was set, until it is dropped.
#[derive(Debug)]
pub struct Governor {
    saved: Vec<PathBuf>,
    root: PathBuf,
}

impl Governor {
    /// Sets the governor of these CPUs.
    ///
    /// # Errors
    /// If the machine has no frequency scaling (most virtual machines), does not know the governor, or this process may
    /// not set it.
    pub fn set(name: &str, cpus: &CpuList) -> Result<Self, NotPermitted> {
        Self::set_in(Path::new(CPUS), &std::env::temp_dir(), name, cpus)
    }

    fn set_in(root: &Path, notes: &Path, name: &str, cpus: &CpuList) -> Result<Self, NotPermitted> {
        let mut guard = Self { saved: Vec::new(), root: root.to_owned() };
        for cpu in cpus.cpus() {
            let file = root.join(format!("cpu{cpu}/cpufreq/scaling_governor"));
            let before = fs::read_to_string(&file).map_err(|_| {
                NotPermitted(format!(
                    "CPU {cpu} has no frequency governor on this machine (virtual machines usually have none): \
                     measure without a governor"
                ))
            })?;
            let known =
                fs::read_to_string(file.with_file_name("scaling_available_governors")).unwrap_or_default();
            if !known.is_empty() && !known.split_whitespace().any(|it| it == name) {
                return Err(NotPermitted(format!(
                    "there is no governor {name:?}; CPU {cpu} has {}",
                    known.trim()
                )));
            }
            // First the note, so that a process killed in between leaves what is needed to undo it.
            let note = notes.join(format!("{PREFIX}{}-{cpu}", std::process::id()));
            fs::write(&note, before.trim())
                .map_err(|error| NotPermitted(format!("cannot write {}: {error}", note.display())))?;
            guard.saved.push(note);
            fs::write(&file, name).map_err(|error| {
                NotPermitted(format!("the governor of CPU {cpu} cannot be set ({error}): run as root"))
            })?;
        }
        Ok(guard)
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        for note in &self.saved {
            restore(&self.root, note);
        }
    }
}

/// Puts back what stands in a note.
fn restore(root: &Path, note: &Path) -> bool {
    let cpu = note.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit('-').next());
    let (Some(cpu), Ok(before)) = (cpu, fs::read_to_string(note)) else { return false };
    let done = fs::write(root.join(format!("cpu{cpu}/cpufreq/scaling_governor")), before.trim()).is_ok();
    let _ = fs::remove_file(note);
    done
}

/// Puts back what killed processes have set.
pub(super) fn clean() -> Vec<String> {
    clean_in(Path::new(CPUS), &std::env::temp_dir())
}

fn clean_in(root: &Path, notes: &Path) -> Vec<String> {
    let entries = fs::read_dir(notes).into_iter().flatten().flatten();
    let left = entries.filter(|entry| owner_is_gone(&entry.file_name().to_string_lossy(), PREFIX));
    left.filter(|entry| restore(root, &entry.path()))
        .map(|entry| format!("governor put back: {}", entry.file_name().to_string_lossy()))
        .collect()
}

/// The governors that a CPU knows.
#[must_use]
pub fn known(cpu: usize) -> Vec<String> {
    let text = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_available_governors"));
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// The governor of a CPU.
#[must_use]
pub fn of(cpu: usize) -> Option<String> {
    let text = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor")).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with one CPU whose governor can be set.
    fn machine(name: &str) -> (PathBuf, PathBuf) {
        let root = std::env::temp_dir().join(format!("governor-test-{name}-{}", std::process::id()));
        let cpu = root.join("cpu0/cpufreq");
        fs::create_dir_all(&cpu).unwrap();
        fs::write(cpu.join("scaling_governor"), "schedutil\n").unwrap();
        fs::write(cpu.join("scaling_available_governors"), "performance schedutil\n").unwrap();
        (root, cpu.join("scaling_governor"))
    }

    #[test]
    fn is_put_back() {
        let (root, file) = machine("back");
        let cpus = CpuList::single(0);
        let guard = Governor::set_in(&root, &root, "performance", &cpus).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "performance");
        drop(guard);
        assert_eq!(fs::read_to_string(&file).unwrap(), "schedutil");
        assert!(
            Governor::set_in(&root, &root, "warp", &cpus).unwrap_err().to_string().contains("performance")
        );
        let missing = Governor::set_in(&root, &root, "performance", &CpuList::single(7)).unwrap_err();
        assert!(missing.to_string().contains("no frequency governor"), "{missing}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_put_back() {
        let (root, file) = machine("killed");
        fs::write(&file, "performance").unwrap();
        fs::write(root.join(format!("{PREFIX}4194999-0")), "schedutil").unwrap();
        assert_eq!(clean_in(&root, &root).len(), 1);
        assert_eq!(fs::read_to_string(&file).unwrap(), "schedutil");
        assert!(clean_in(&root, &root).is_empty());
        fs::remove_dir_all(root).unwrap();
    }
}
