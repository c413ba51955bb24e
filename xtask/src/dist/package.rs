//! Builds the Debian package with `cargo-deb`; `crates/cli/Cargo.toml` lists its contents.

use super::stage::Stage;
use super::{Machine, Place, captured, shown, tools, write};
use crate::Failure;
use std::path::Path;
use std::process::Command;

/// Makes the package.
pub(super) fn make(place: &Place, stage: &Stage, program: &Path, machine: Machine) -> Result<(), Failure> {
    println!("==> packaging for {}", machine.name());
    let staged = stage.folder.join("taktwerk");
    std::fs::copy(program, &staged).map_err(|error| format!("{}: {error}", staged.display()))?;
    write(&stage.folder.join("changelog"), changes(place)?.as_bytes())?;
    let mut deb = Command::new(tools::cargo_deb(place)?);
    deb.args(["--package", "taktwerk-cli", "--quiet", "--no-build", "--no-strip", "--no-dbgsym", "--locked"]);
    deb.args(["--target", &format!("{}-unknown-linux-gnu", machine.name())]);
    // The trailing slash makes it a folder.
    deb.arg("--output").arg(place.output.join(""));
    // A fixed time, so that the same sources give the same package.
    deb.env("SOURCE_DATE_EPOCH", place.time.to_string()).current_dir(&place.root);
    shown(&mut deb)
}

/// The changelog in Debian format; the changes themselves are in the project's own file.
fn changes(place: &Place) -> Result<String, Failure> {
    let date = captured(
        Command::new("date").args(["--utc", "--rfc-email", "--date"]).arg(format!("@{}", place.time)),
    )?;
    Ok(format!(
        "taktwerk ({}-1) unstable; urgency=medium\n\n  * See https://github.com/taktwerk/taktwerk/blob/main/CHANGELOG.md\n\n \
         -- The Taktwerk authors <packages@taktwerk.example>  {date}",
        place.version
    ))
}
