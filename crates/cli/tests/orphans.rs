//! Commands that start programs or create links first end those of killed runs. In a separate file, because these
//! commands would also end the programs of tests in the same process.

#![allow(clippy::unwrap_used)] // a test that panics has failed

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program of a killed run: its owner is a process of this machine that has ended.
fn orphan() -> Child {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace = namespace.to_str().unwrap().trim_start_matches("pid:[").trim_end_matches(']').to_owned();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let owner = format!("4194999:77:{namespace}:{}", boot.trim());
    let mut child = Command::new("/bin/sleep").arg("296").env("TAKTWERK_LAB_OWNER", owner).spawn().unwrap();
    // Until exec, its environment is that of this test. Another process on this machine may end it at once.
    let line = format!("/proc/{}/cmdline", child.id());
    let end = Instant::now() + Duration::from_secs(60);
    while !fs::read(&line).unwrap_or_default().starts_with(b"/bin/sleep")
        && child.try_wait().unwrap().is_none()
    {
        assert!(Instant::now() < end, "it does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn commands_first_end_programs_of_killed_runs() {
    let nowhere = tempfile::tempdir().unwrap();
    let folder = nowhere.path().to_str().unwrap();
    for arguments in [
        &["lab", "links", "probe", "rate=50mbit", "--method", "proxy"][..],
        &["lab", "cpu", "run", "--", "true"],
        &["lab", "peers", "check", "--dir", folder],
        &["lab", "peers", "run", "gopcua", "--dir", folder],
        &["lab", "peers", "install", "gopcua", "--dir", "/dev/null/nowhere"],
        &["lab", "calibrate", "--quick", "--stacks", "nobody", "--program", "/no/such/program"],
        &["bench", "mqtt", "--peer", "rumqttd", "-d", "100ms"],
        &["bench", "read", "127.0.0.1:1", "--link", "delay=1ms", "-d", "100ms"],
    ] {
        let mut orphan = orphan();
        // Whether the command itself succeeds here is not relevant.
        let mut taktwerk = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        taktwerk
            .args(arguments)
            .env("TAKTWERK_PEERS", folder)
            .env("TAKTWERK_RESULTS", nowhere.path().join("x"));
        let said = taktwerk.stdin(Stdio::null()).output().unwrap();
        let ended = orphan.try_wait().unwrap();
        if ended.is_none() {
            orphan.kill().unwrap();
            orphan.wait().unwrap();
        }
        assert!(ended.is_some_and(|status| !status.success()), "{arguments:?}: {said:?}");
    }
}
