//! The packaging tools at pinned versions, installed in `target/tools` on first use.

use super::{Place, shown};
use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes Debian packages.
const CARGO_DEB: (&str, &str) = ("cargo-deb", "3.8.0");
/// Writes bills of materials.
const CARGO_CYCLONEDX: (&str, &str) = ("cargo-cyclonedx", "0.5.9");
/// A C compiler and linker for every target, and the cargo command that uses it, as Python packages.
const ZIG: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// The path of `cargo-deb`.
pub(super) fn cargo_deb(place: &Place) -> Result<PathBuf, Failure> {
    installed(place, CARGO_DEB)
}

/// The path of `cargo-cyclonedx`.
pub(super) fn cargo_cyclonedx(place: &Place) -> Result<PathBuf, Failure> {
    installed(place, CARGO_CYCLONEDX)
}

fn tools(place: &Place) -> PathBuf {
    place.root.join("target").join("tools")
}

/// Installs a program with cargo, in one folder per version, so that versions are not confused.
fn installed(place: &Place, (name, version): (&str, &str)) -> Result<PathBuf, Failure> {
    let folder = tools(place).join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.is_file() {
        println!("==> installing {name} {version}");
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--locked", "--version", version, "--root"]).arg(&folder).arg(name);
        // They run for some seconds: compiling them for speed takes longer.
        let quick = [("LTO", "off"), ("OPT_LEVEL", "1"), ("CODEGEN_UNITS", "16"), ("DEBUG", "0")];
        cargo.envs(quick.map(|(key, value)| (format!("CARGO_PROFILE_RELEASE_{key}"), value)));
        // A separate build folder, to keep the checkout's target directory clean.
        cargo.env("CARGO_TARGET_DIR", folder.join("build")).current_dir(&place.root);
        let outcome = shown(&mut cargo);
        let _ = std::fs::remove_dir_all(folder.join("build"));
        outcome?;
    }
    Ok(program)
}

/// The folder with `cargo-zigbuild` and a Python with the compiler.
pub(super) fn zig(place: &Place) -> Result<PathBuf, Failure> {
    let folder = tools(place).join(ZIG.join("-").replace("==", "-"));
    let programs = folder.join("bin");
    let complete = folder.join("complete");
    if !complete.is_file() {
        println!("==> installing {}", ZIG.join(" and "));
        let _ = std::fs::remove_dir_all(&folder);
        shown(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        shown(Command::new(programs.join("pip")).args(["install", "--quiet"]).args(ZIG))?;
        super::write(&complete, b"")?;
    }
    Ok(programs)
}

/// The search path with a folder prepended.
pub(super) fn path_with(folder: &Path) -> std::ffi::OsString {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&rest));
    // Joining fails only for a folder with a colon; then the program is not found, which is reported.
    std::env::join_paths(folders).unwrap_or(rest)
}
