//! Builds the programs: one for the C library of distributions, and a static one.

use super::{Machine, Place, shown, symbols, tools};
use crate::Failure;
use std::path::PathBuf;
use std::process::Command;

/// The oldest supported C library: that of Debian 11, Ubuntu 20.04 and RHEL 9.
pub(super) const GLIBC: &str = "2.31";

/// Features of the command beyond the default ones. Users of packages cannot build it again with other features.
pub(super) const FEATURES: &str = "kafka,nats,parquet";

/// The programs for a machine.
pub(super) struct Programs {
    /// For distributions: resolves hosts and users with the system's configuration, and returns freed memory.
    pub(super) dynamic: PathBuf,
    /// Static, for containers and systems with an older or no glibc. The same as `dynamic` in a development build.
    pub(super) fixed: PathBuf,
    /// The one for this machine.
    pub(super) own: PathBuf,
}

fn target_directory(place: &Place) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| place.root.join("target"), Into::into)
}

/// The program built for tests, without symbols, which are half of it.
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
    // Does nothing if the target is installed; without rustup, the build reports what is missing.
    let _ = Command::new("rustup").args(["-q", "target", "add", &target]).current_dir(&place.root).status();
    let programs = tools::zig(place)?;
    let mut cargo = Command::new(programs.join("cargo-zigbuild"));
    cargo.args(["zigbuild", "--release", "--locked", "--package", "taktwerk-cli"]);
    cargo.args(["--features", FEATURES, "--target"]);
    cargo.arg(version.map_or_else(|| target.clone(), |version| format!("{target}.{version}")));
    cargo.current_dir(&place.root).env("PATH", tools::path_with(&programs));
    cargo.env("SOURCE_DATE_EPOCH", place.time.to_string());
    // Panic messages contain source paths: make them relative to the checkout.
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
