//! Text files that the user names: plants, scenarios, profiles.

use crate::failure::Failure;
use std::path::Path;
use taktwerk_config::file;

/// Longest plant, scenario, or file of a host: one that is written by hand has some kilobytes.
pub(crate) const LEN_MAX: u64 = 16 << 20;
/// Longest recording of a meter.
pub(crate) const RECORDING_LEN_MAX: u64 = 256 << 20;

/// Reads a plant or a scenario; what is wrong with the file is the user's to mend.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    file::read_text(path, LEN_MAX)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_end_are_refused() {
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
