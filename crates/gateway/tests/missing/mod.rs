//! What tests do if a program that they need is not installed.

#![allow(dead_code)] // each test uses some of it

use std::path::Path;

/// For the broker mosquitto.
pub(crate) const MOSQUITTO: &str = "TAKTWERK_TEST_MOSQUITTO";
/// For the other servers and libraries, which `interop/servers.sh` installs.
pub(crate) const SERVERS: &str = "TAKTWERK_TEST_SERVERS";

/// Skips the test, or fails if the environment variable is "required".
pub(crate) fn skip(variable: &str, why: &str) {
    assert!(std::env::var_os(variable).is_none_or(|wish| wish != "required"), "{why}");
    println!("skipped: {why}");
}

/// The Python with a library: the program in the environment variable, the one that `interop/servers.sh` installs, or that of
/// the system. `None` if it has no such library.
pub(crate) fn python(variable: &str, library: &str, folder: &str) -> Option<String> {
    let installed = format!("{}/../../target/peers/{folder}/bin/python", env!("CARGO_MANIFEST_DIR"));
    let installed = Some(installed).filter(|program| Path::new(program).is_file());
    let program = std::env::var(variable).ok().or(installed).unwrap_or_else(|| "python3".to_owned());
    let mut command = std::process::Command::new(&program);
    let found =
        command.args(["-c", &format!("import {library}")]).stderr(std::process::Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    skip(SERVERS, &format!("{program} has no {library}; see interop/{folder}/README.md"));
    None
}
