//! Reading of text files that the user names: plants, scenarios, profiles.

use crate::failure::Failure;
use std::path::Path;
use taktwerk_config::file;

/// Longest plant, scenario or host file, in bytes. Files written by hand have some kilobytes.
pub(crate) const LEN_MAX: u64 = 16 << 20;
/// Longest recording of a power meter, in bytes.
pub(crate) const RECORDING_LEN_MAX: u64 = 256 << 20;

/// Reads a plant or a scenario. Errors are usage errors.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    file::read_text(path, LEN_MAX)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_and_too_long_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let told = |path: &Path| match read(path) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        let zero = Path::new("/dev/zero");
        assert_eq!(told(zero), "cannot read /dev/zero: this is a device; name a regular file");
        let pipe = folder.path().join("plant.toml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(told(&pipe).ends_with("plant.toml: this is a named pipe; name a regular file"));
        let long = folder.path().join("long.toml");
        std::fs::File::create(&long).unwrap().set_len(LEN_MAX + 1).unwrap();
        assert!(told(&long).ends_with("long.toml: the file is longer than 16777216 bytes"));
    }
}
