//! Files that exist are overwritten only if the user says so.

use crate::failure::Failure;
use clap::Args;
use std::path::Path;

/// The option of commands that write files which the user names.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Overwrite {
    /// Overwrite files that exist.
    #[arg(long)]
    force: bool,
}

impl Overwrite {
    /// For files that the user does not name.
    pub(crate) const ALWAYS: Self = Self { force: true };

    /// Refuses a file that exists. To be called before anything is measured, simulated or read. [Devices](is_device) have
    /// nothing to lose.
    pub(crate) fn check(self, path: &Path) -> Result<(), Failure> {
        if self.force || !path.is_file() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{} exists already; name another file, or pass --force to overwrite it",
            path.display()
        )))
    }
}

/// Whether something is there that is written to, and not replaced: a pipe, or a device such as /dev/stdout.
pub(crate) fn is_device(path: &Path) -> bool {
    path.exists() && !path.is_file() && !path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_exist_are_kept_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (never, force) = (Overwrite { force: false }, Overwrite { force: true });
        let path = folder.path().join("report.html");
        assert!(never.check(&path).is_ok() && never.check(Path::new("/dev/null")).is_ok());
        std::fs::write(&path, "mine").unwrap();
        let refused = never.check(&path).unwrap_err().to_string();
        assert!(refused.contains("report.html exists already") && refused.contains("--force"), "{refused}");
        assert!(force.check(&path).is_ok());
    }
}
