//! The programs: one for the C library of distributions, one without any.

use super::{Machine, Place, shown, symbols, tools};
use crate::Failure;
use std::path::PathBuf;
use std::process::Command;

/// The oldest C library that the packages run with: that of Debian 11, Ubuntu 20.04 and RHEL 9.
pub(super) const GLIBC: &str = "2.31";

/// The programs for a machine.
pub(super) struct Programs {
    /// For distributions: it finds hosts and users as the system is set up, and gives memory back.
    pub(super) dynamic: PathBuf,
    /// Without any library: for containers and for systems with an older or no glibc. The same as `dynamic` for a
    /// development build.
    pub(super) fixed: PathBuf,
    /// One that runs here.
    pub(super) own: PathBuf,
}

fn target_directory(place: &Place) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| place.root.join("target"), Into::into)
}

/// The program that tests have built, without the names in it, which are half of it.
pub(super) fn development(place: &Place) -> Result<Programs, Failure> {
    let built = target_directory(place).join("debug").join("taktwerk");
    if !built.is_file() {
        return Err(format!("{} is missing: run cargo build -p taktwerk-cli first", built.display()));
    }
    let program = built.with_file_name("taktwerk-stripped");
    shown(Command::new("strip").arg("-o").arg(&program).arg(&built))?;
    Ok(Programs { dynamic: program.clone(), fixed: program.clone(), own: program })
}

/// Builds both programs for a machine.
pub(super) fn release(place: &Place, machine: Machine) -> Result<Programs, Failure> {
    let own = Machine::own()?;
    let dynamic = compile(place, machine, "gnu", Some(GLIBC))?;
    let fixed = compile(place, machine, "musl", None)?;
    let own = if own == machine { dynamic.clone() } else { compile(place, own, "gnu", Some(GLIBC))? };
    Ok(Programs { dynamic, fixed, own })
}

fn compile(
    place: &Place,
    machine: Machine,
    library: &str,
    version: Option<&str>,
) -> Result<PathBuf, Failure> {
    let target = format!("{}-unknown-linux-{library}", machine.name());
    println!("==> building for {target}");
    // It does nothing where the target is there; without rustup the build says what is missing.
    let _ = Command::new("rustup").args(["-q", "target", "add", &target]).current_dir(&place.root).status();
    let programs = tools::zig(place)?;
    let mut cargo = Command::new(programs.join("cargo-zigbuild"));
    cargo.args(["zigbuild", "--release", "--locked", "--package", "taktwerk-cli", "--target"]);
    cargo.arg(version.map_or_else(|| target.clone(), |version| format!("{target}.{version}")));
    cargo.current_dir(&place.root).env("PATH", tools::path_with(&programs));
    // Messages of panics name source files: as they are called in the checkout, not where it lies on this machine.
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
        .unwrap_or_default();
    cargo.env(
        "RUSTFLAGS",
        format!(
            "--remap-path-prefix={}=. --remap-path-prefix={}=cargo",
            place.root.display(),
            home.display()
        ),
    );
    shown(&mut cargo)?;
    let program = target_directory(place).join(target).join("release").join("taktwerk");
    symbols::refuse(&program)?;
    Ok(program)
}
