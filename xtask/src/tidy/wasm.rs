//! Checks that the core builds without an operating system.

use super::CORE;
use crate::Failure;
use std::path::Path;
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Checks every core crate for the target. If the target cannot be installed, prints a message and checks nothing.
pub(super) fn check(root: &Path) -> Result<(), Failure> {
    if let Err(reason) = install() {
        println!("wasm: not checked, the target {TARGET} cannot be installed here: {reason}");
        return Ok(());
    }
    let present: Vec<&str> =
        CORE.into_iter().filter(|name| root.join("crates").join(name).join("Cargo.toml").is_file()).collect();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["check", "--quiet", "--lib", "--target", TARGET]).current_dir(root);
    for name in &present {
        cargo.arg("-p").arg(format!("taktwerk-{name}"));
    }
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the core does not build for {TARGET}"));
    }
    println!("wasm: {} build for {TARGET}", present.join(", "));
    Ok(())
}

fn install() -> Result<(), String> {
    let list = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let list = list.map_err(|error| format!("rustup: {error}"))?;
    if String::from_utf8_lossy(&list.stdout).lines().any(|line| line.trim() == TARGET) {
        return Ok(());
    }
    let add = Command::new("rustup").args(["target", "add", TARGET]).output();
    let add = add.map_err(|error| format!("rustup: {error}"))?;
    if add.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&add.stderr);
    Err(message.lines().last().unwrap_or("rustup failed").trim().to_owned())
}
