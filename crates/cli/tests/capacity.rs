//! The search for a server's capacity does not report limits of this machine as limits of the server.

#![allow(clippy::unwrap_used)] // a test that panics has failed

use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

fn server(sessions: &str) -> Running {
    Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args([
            "serve",
            "--no-plant",
            "--signals",
            "100",
            "--update",
            "50",
            "--port",
            "0",
            "--policy",
            "None",
        ])
        .args(["--max-sessions", sessions, "--exit-with-stdin"])
        .serve(Duration::from_secs(60))
        .unwrap()
}

/// Searches for sessions with at most `files` open files.
fn sessions(server: &Running, files: u32) -> (Output, Value) {
    let line = format!(
        "ulimit -n {files}; exec {} lab capacity {} --what sessions -I 50 --update 50 -d 300ms --within 3m --json",
        env!("CARGO_BIN_EXE_taktwerk"),
        server.url()
    );
    let search = || Command::new("/bin/sh").args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
    let is_busy = |output: &Output| String::from_utf8_lossy(&output.stderr).contains("machine is busy");
    // Other tests run at the same time.
    let output = (0..60).map(|_| search()).find(|output| !is_busy(output)).unwrap();
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, document)
}

#[test]
fn running_out_of_files_is_no_limit_of_the_server() {
    let server = server("1000");
    let (output, document) = sessions(&server, 64);
    let found = &document["measured"][0];
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(6) && said.contains("ulimit -n"), "{output:?}");
    // The result so far is reported, without an upper limit.
    assert_eq!((&found["failed"], &found["not_sustained"]), (&Value::Bool(true), &Value::Null), "{found}");
    assert!(found["ended_because"].as_str().unwrap().contains("could not be tried"), "{found}");
    // On a busy machine even the first load may be too large.
    if let Some(sustained) = found["sustained"].as_u64() {
        assert!((1..64).contains(&sustained) && found["per_second"].as_f64().unwrap() > 0.0, "{found}");
    }
}

#[test]
fn refused_sessions_are_the_limit_of_the_server() {
    // The server publishes its limit. Another session uses one of the slots.
    let server = server("12");
    let taken = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["watch", server.url(), "ns=1;i=100000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut taken = taken.unwrap();
    let (output, document) = sessions(&server, 1_024);
    taken.kill().unwrap();
    taken.wait().unwrap();
    assert_ne!(output.status.code(), Some(6), "{output:?}");
    assert_eq!(document["measured"][0]["failed"], false, "{document:#}");
    let tried = document["tried"].as_array().unwrap();
    let refused = tried.iter().find(|tried| tried["load"] == 12).unwrap();
    let why = refused["outcome"]["why"].as_str().unwrap();
    // The server may also replace a session that was created but not activated.
    assert!(why.contains("BadTooManySessions") || why.contains("BadSessionIdInvalid"), "{document:#}");
    assert_eq!((&refused["outcome"]["clear"], &refused["per_second"]), (&Value::Bool(true), &Value::Null));
    // A refused load must not affect the next, smaller one.
    let next = tried.iter().find(|tried| tried["load"] == 11).unwrap();
    assert!(!next["outcome"].to_string().contains("Session"), "{document:#}");
}

#[test]
fn a_busy_machine_makes_the_result_invalid() {
    let server = server("1000");
    let end = AtomicBool::new(false);
    let spinners = std::thread::available_parallelism().unwrap().get() * 4;
    let output = std::thread::scope(|scope| {
        for _ in 0..spinners {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let output = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
            .args(["lab", "capacity", server.url(), "--what", "sessions", "-d", "300ms", "--json"])
            .stdin(Stdio::null())
            .output();
        end.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(5) && said.contains("this machine is busy"), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}
