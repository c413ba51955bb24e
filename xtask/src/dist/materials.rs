//! The software bill of materials in CycloneDX format: crates and versions in the program.

use super::{Place, build, captured, tools, write};
use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Suffix of the tool's files. It writes one for every program of the workspace, beside its manifest.
const ENDING: &str = "_bin.cdx.json";

/// Writes it.
pub(super) fn make(place: &Place) -> Result<(), Failure> {
    println!("==> writing the bill of materials");
    let folder = place.root.join("crates").join("cli");
    let mut tool = Command::new(tools::cargo_cyclonedx(place)?);
    tool.args(["cyclonedx", "-q", "--format", "json", "--spec-version", "1.5", "--describe", "binaries"]);
    tool.args(["--no-build-deps", "--features", build::FEATURES, "--manifest-path"])
        .arg(folder.join("Cargo.toml"));
    tool.env("SOURCE_DATE_EPOCH", place.time.to_string()).current_dir(&place.root);
    let ended = captured(&mut tool);
    let written = folder.join(format!("taktwerk{ENDING}"));
    let text = std::fs::read_to_string(&written);
    for path in leftovers(place)? {
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    ended?;
    let text = text.map_err(|error| format!("{}: {error}; did the tool write it?", written.display()))?;
    // It contains the paths of workspace crates on this machine.
    let text = text.replace(&format!("{}/", place.root.display()), "");
    write(&place.result("bom.cdx.json"), text.as_bytes())
}

/// The files that the tool has written into the checkout.
fn leftovers(place: &Place) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for folder in members(&place.root)? {
        let files = super::files(&folder)?;
        found.extend(files.into_iter().filter(|path| path.to_string_lossy().ends_with(ENDING)));
    }
    Ok(found)
}

/// The folders of the packages: `crates/*` and others beside it.
fn members(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut members = Vec::new();
    for parent in [root.to_path_buf(), root.join("crates")] {
        let entries = std::fs::read_dir(&parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        let folders = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        members.extend(folders.filter(|folder| folder.join("Cargo.toml").is_file()));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_every_package_are_found() {
        let root = crate::workspace_root();
        let mut cargo = Command::new("cargo");
        cargo.args(["metadata", "--locked", "--no-deps", "--format-version", "1"]).current_dir(&root);
        let metadata: serde_json::Value = serde_json::from_str(&captured(&mut cargo).unwrap()).unwrap();
        let known = members(&root).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        assert!(packages.len() > 20);
        for package in packages {
            let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
            assert!(known.iter().any(|one| one == folder), "{}", folder.display());
        }
    }
}
