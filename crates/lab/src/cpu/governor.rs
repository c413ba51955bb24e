//! Sets CPU frequency governors and restores them.

use super::{NotPermitted, owned, owner_is_gone};
use crate::pin::CpuList;
use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The kernel's directory of CPUs.
const CPUS: &str = "/sys/devices/system/cpu";
/// Prefix of files that record the previous governor, one per process and CPU.
const PREFIX: &str = "taktwerk-governor-";

/// Directory of these records. Only the owner may write there, because records are applied with the rights of the user
/// who cleans up.
fn notes() -> PathBuf {
    let user = rustix::process::geteuid();
    let runtime =
        || std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    // Root has its own directory, not that of the user who became root.
    let place = if user.is_root() { Some(PathBuf::from("/run")) } else { runtime() };
    match place.filter(|place| place.is_dir()) {
        Some(place) => place.join("taktwerk-lab"),
        None => std::env::temp_dir().join(format!("taktwerk-lab-{}", user.as_raw())),
    }
}

/// Whether a path is a directory, not a link, and accessible to this user only.
fn is_private(folder: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    Ok(found.is_dir() && is_ours && found.mode() & 0o077 == 0)
}

/// Creates the directory of records, or checks that the existing one is private.
fn prepare(folder: &Path) -> Result<(), NotPermitted> {
    let failed = |why: String| NotPermitted(format!("cannot store records in {}: {why}", folder.display()));
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error.to_string())),
        _ => {}
    }
    match is_private(folder) {
        Ok(true) => Ok(()),
        Ok(false) => Err(failed("it is not a directory of this user alone: remove it".to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Creates a new record without following links.
fn write(note: &Path, text: &str) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(note)?;
    file.write_all(text.as_bytes())
}

/// Reads a record without following links.
fn read(note: &Path) -> io::Result<String> {
    let mut text = String::new();
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(note)?.read_to_string(&mut text)?;
    Ok(text)
}

/// A governor that is set until it is dropped.
#[derive(Debug)]
pub struct Governor {
    saved: Vec<PathBuf>,
    root: PathBuf,
}

impl Governor {
    /// Sets the governor of these CPUs.
    ///
    /// # Errors
    /// If the machine has no frequency scaling (most virtual machines), does not support the governor, or this process
    /// lacks the right.
    pub fn set(name: &str, cpus: &CpuList) -> Result<Self, NotPermitted> {
        Self::set_in(Path::new(CPUS), &notes(), name, cpus)
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
            // Write the record first: if the process is killed between both steps, clean-up can still restore the
            // governor.
            prepare(notes)?;
            let note = notes.join(format!("{}-{cpu}", owned(PREFIX)?));
            match write(&note, before.trim()) {
                Ok(()) => guard.saved.push(note),
                // This process has already set it. The first record has the original governor.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(NotPermitted(format!("cannot write {}: {error}", note.display())));
                }
            }
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

/// Restores the governor from a record.
fn restore(root: &Path, note: &Path) -> bool {
    let cpu = note.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit('-').next());
    let cpu = cpu.and_then(|cpu| cpu.parse::<usize>().ok());
    let (Some(cpu), Ok(before)) = (cpu, read(note)) else { return false };
    let done = fs::write(root.join(format!("cpu{cpu}/cpufreq/scaling_governor")), before.trim()).is_ok();
    let _ = fs::remove_file(note);
    done
}

/// Restores the governors that killed processes have set.
pub(super) fn clean() -> Vec<String> {
    clean_in(Path::new(CPUS), &notes())
}

fn clean_in(root: &Path, notes: &Path) -> Vec<String> {
    if !is_private(notes).unwrap_or(false) {
        // The directory is missing or belongs to another user.
        return Vec::new();
    }
    let entries = fs::read_dir(notes).into_iter().flatten().flatten();
    let left = entries.filter(|entry| owner_is_gone(&entry.file_name().to_string_lossy(), PREFIX));
    left.filter(|entry| restore(root, &entry.path()))
        .map(|entry| format!("governor put back: {}", entry.file_name().to_string_lossy()))
        .collect()
}

/// The governors that a CPU supports.
#[must_use]
pub fn known(cpu: usize) -> Vec<String> {
    let text = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_available_governors"));
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// The current governor of a CPU.
#[must_use]
pub fn of(cpu: usize) -> Option<String> {
    let text = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor")).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with one CPU that has a governor, and a missing directory for records.
    struct Machine {
        root: tempfile::TempDir,
        file: PathBuf,
        notes: PathBuf,
    }

    fn machine() -> Machine {
        let root = tempfile::tempdir().unwrap();
        let cpu = root.path().join("cpu0/cpufreq");
        fs::create_dir_all(&cpu).unwrap();
        fs::write(cpu.join("scaling_governor"), "schedutil\n").unwrap();
        fs::write(cpu.join("scaling_available_governors"), "performance schedutil\n").unwrap();
        Machine { file: cpu.join("scaling_governor"), notes: root.path().join("notes"), root }
    }

    impl Machine {
        fn set(&self, name: &str, cpu: usize) -> Result<Governor, NotPermitted> {
            Governor::set_in(self.root.path(), &self.notes, name, &CpuList::single(cpu))
        }

        fn present(&self) -> String {
            fs::read_to_string(&self.file).unwrap()
        }

        fn clean(&self) -> usize {
            clean_in(self.root.path(), &self.notes).len()
        }
    }

    #[test]
    fn governors_are_restored() {
        let machine = machine();
        let guard = machine.set("performance", 0).unwrap();
        assert_eq!(machine.present(), "performance");
        // A second change: only the first record has the original governor.
        drop(machine.set("performance", 0).unwrap());
        assert_eq!(machine.present(), "performance");
        assert_eq!(machine.clean(), 0, "its process is there");
        drop(guard);
        assert_eq!(machine.present(), "schedutil");
        assert!(machine.set("warp", 0).unwrap_err().to_string().contains("performance"));
        let missing = machine.set("performance", 7).unwrap_err();
        assert!(missing.to_string().contains("no frequency governor"), "{missing}");
    }

    #[test]
    fn governors_of_killed_processes_are_restored() {
        let machine = machine();
        fs::write(&machine.file, "performance").unwrap();
        prepare(&machine.notes).unwrap();
        let note = format!("{PREFIX}{}-0", crate::orphans::tests::nobody().short());
        write(&machine.notes.join(note), "schedutil").unwrap();
        assert_eq!(machine.clean(), 1);
        assert_eq!(machine.present(), "schedutil");
        assert_eq!(machine.clean(), 0);
    }

    #[test]
    fn records_of_other_users_and_links_are_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let machine = machine();
        let note = format!("{PREFIX}{}-0", crate::orphans::tests::nobody().short());
        // A directory that other users may write to.
        fs::create_dir(&machine.notes).unwrap();
        fs::set_permissions(&machine.notes, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(machine.notes.join(&note), "performance").unwrap();
        assert_eq!((machine.clean(), machine.present().as_str()), (0, "schedutil\n"));
        let refused = machine.set("performance", 0).unwrap_err().to_string();
        assert!(refused.contains("of this user alone"), "{refused}");
        fs::remove_dir_all(&machine.notes).unwrap();
        // A link to a suitable directory.
        let other = machine.root.path().join("other");
        prepare(&other).unwrap();
        symlink(&other, &machine.notes).unwrap();
        assert!(machine.set("performance", 0).is_err());
        fs::remove_file(&machine.notes).unwrap();
        // A link in place of a record is neither written through nor read.
        prepare(&machine.notes).unwrap();
        let target = machine.root.path().join("target");
        fs::write(&target, "performance").unwrap();
        symlink(&target, machine.notes.join(&note)).unwrap();
        assert!(write(&machine.notes.join(&note), "x").is_err());
        assert_eq!((machine.clean(), machine.present().as_str()), (0, "schedutil\n"));
        assert_eq!(fs::read_to_string(&target).unwrap(), "performance");
    }
}
