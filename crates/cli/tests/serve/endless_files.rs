//! Endless files and pipes without a writer: every command refuses them at once.

use std::path::Path;
use std::process::{Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
/// Memory limit of a command, in KiB: unlimited reading fails soon.
const MEMORY_KIB: u32 = 4_000_000;

/// Commands that read a file of the user; `FILE` is the file.
const COMMANDS: [&[&str]; 9] = [
    &["user", "add", "ann", "--file", "users.toml", "--password-file", "FILE"],
    &["read", "localhost:1", "i=2258", "--user", "ann", "--password-file", "FILE"],
    &["read", "localhost:1", "i=2258", "--token-file", "FILE"],
    &["read", "localhost:1", "i=2258", "--cert", "FILE", "--key", "FILE"],
    &["pubsub", "publish", "--config", "FILE"],
    &["pubsub", "publish", "opc.udp://localhost", "--keys", "FILE", "--security", "sign"],
    &["pubsub", "publish", "mqtt://ann@localhost", "--broker-password-file", "FILE"],
    &["serve", "--port", "0", "--policy", "None", "--nodeset", "FILE"],
    &["pki", "doctor", "FILE", "--pki", "pki"],
];

#[test]
fn endless_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status().unwrap().success());
    for file in [Path::new("/dev/zero"), &pipe] {
        let name = file.display().to_string();
        for command in COMMANDS {
            let arguments = command.iter().map(|word| if *word == "FILE" { name.as_str() } else { word });
            let limited = format!("ulimit -v {MEMORY_KIB}; exec timeout 60 \"$0\" \"$@\"");
            let output = Command::new("sh")
                .args(["-c", &limited, BINARY])
                .args(arguments)
                .current_dir(&folder)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            let last = told.lines().last().unwrap_or_default();
            assert!(matches!(output.status.code(), Some(1..=6)), "{command:?} {:?}: {told}", output.status);
            // `pki doctor` takes an unreadable file for the name of something else.
            let says_why = last.contains("name a regular file") || command[0] == "pki";
            assert!(last.starts_with("error: ") && last.contains(&name) && says_why, "{command:?}: {told}");
        }
    }
}
