//! Existing files are overwritten only with `--force`.

use crate::failure::Failure;
use clap::Args;
use std::path::{Path, PathBuf};

/// The option of commands that write files.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Overwrite {
    /// Overwrite files that exist.
    #[arg(long)]
    force: bool,
}

impl Overwrite {
    /// The path for a file that the user does not name: with a number if the file exists, such as `report-2.html`, so that
    /// the command can be repeated. With `--force` always `path`.
    pub(crate) fn free(self, path: &Path) -> PathBuf {
        let numbered = |number: u32| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let end = path.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
            path.with_file_name(format!("{stem}-{number}{end}"))
        };
        let mut paths = core::iter::once(path.to_owned()).chain((2..).map(numbered));
        paths.find(|path| self.force || !path.exists()).unwrap_or_else(|| path.to_owned())
    }

    /// Refuses an existing file. Call it before anything is measured, simulated or read. [Devices](is_device) are
    /// allowed.
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

/// Whether the path is a pipe or a device such as /dev/stdout, which is written to and not replaced.
pub(crate) fn is_device(path: &Path) -> bool {
    path.exists() && !path.is_file() && !path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_kept_and_devices_are_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let (never, force) = (Overwrite { force: false }, Overwrite { force: true });
        let path = folder.path().join("report.html");
        assert!(never.check(&path).is_ok() && never.check(Path::new("/dev/null")).is_ok());
        std::fs::write(&path, "mine").unwrap();
        let refused = never.check(&path).unwrap_err().to_string();
        assert!(refused.contains("report.html exists already") && refused.contains("--force"), "{refused}");
        assert!(force.check(&path).is_ok());
        assert_eq!(
            (never.free(&path), force.free(&path)),
            (folder.path().join("report-2.html"), path.clone())
        );
        std::fs::write(folder.path().join("report-2.html"), "mine").unwrap();
        assert_eq!(never.free(&path), folder.path().join("report-3.html"));
        assert_eq!(never.free(&folder.path().join("new.html")), folder.path().join("new.html"));
    }
}
