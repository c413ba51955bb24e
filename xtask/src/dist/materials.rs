//! The software bill of materials in CycloneDX format: crates and versions in the program.

use super::{Place, build, captured, tools, write};
use crate::Failure;
use std::path::PathBuf;
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
    captured(&mut tool)?;
    let written = folder.join(format!("taktwerk{ENDING}"));
    let text = std::fs::read_to_string(&written);
    for path in leftovers(place)? {
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let text = text.map_err(|error| format!("{}: {error}; did the tool write it?", written.display()))?;
    // It contains the paths of workspace crates on this machine.
    let text = text.replace(&format!("{}/", place.root.display()), "");
    write(&place.result("bom.cdx.json"), text.as_bytes())
}

/// The files that the tool has written into the checkout.
fn leftovers(place: &Place) -> Result<Vec<PathBuf>, Failure> {
    let members = place.root.join("crates");
    let members = std::fs::read_dir(&members).map_err(|error| format!("{}: {error}", members.display()))?;
    let members = members.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut found = Vec::new();
    for folder in members.chain([place.root.join("xtask")]).filter(|folder| folder.is_dir()) {
        let files = super::files(&folder)?;
        found.extend(files.into_iter().filter(|path| path.to_string_lossy().ends_with(ENDING)));
    }
    Ok(found)
}
