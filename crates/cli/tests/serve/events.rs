//! `events` against `serve`.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(60);
const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");

fn demo() -> Running {
    Program::new(BINARY)
        .args(["serve", "--port", "0", "--policy", "None", "--exit-with-stdin", "--quiet"])
        .serve(LIMIT)
        .unwrap()
}

fn events(url: &str, arguments: &[&str]) -> std::process::Output {
    Command::new(BINARY).args(["events", url, "--policy", "None"]).args(arguments).output().unwrap()
}

#[test]
fn events_of_the_demo_can_be_filtered() {
    let server = demo();
    let output = events(
        server.url(),
        &["--filter", "severity = 100 and message like 'Pallet%'", "-n", "1", "--json", "-d", "50"],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let event: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(event["Severity"], 100);
    assert_eq!(event["SourceName"], "Conveyor");
    assert_eq!(event["EventTypeName"], "BaseEventType");
    assert!(event["Message"]["Text"].as_str().unwrap().starts_with("Pallet "), "{event}");
}

#[test]
fn errors_are_reported() {
    let server = demo();
    let output = events(server.url(), &["--filter", "severity >="]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("--filter: cannot read the condition at character 12"), "{told}");
    // A folder of types has no events.
    let output = events(server.url(), &["i=86"]);
    assert_eq!(output.status.code(), Some(4));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("cannot monitor the events of i=86"), "{told}");
}

#[test]
fn ctrl_c_ends_it_with_130() {
    use rustix::process::{Pid, Signal, kill_process};
    let server = demo();
    let mut child = Command::new(BINARY)
        .args(["events", server.url(), "--policy", "None", "-v", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("EventId"), "{line}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
