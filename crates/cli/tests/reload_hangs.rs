//! A reload that hangs: one signal ends the server in time, and nothing is lost.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod installation;

use installation::{BASE, Installation, LIMIT, run, until};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts the server with a pipe as standard input, which is never written.
fn serve(installation: &Installation) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--quiet", "--config"])
        .arg(installation.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(installation.folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("READY ").unwrap().to_owned();
    (child, url)
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn one_signal_ends_a_server_whose_reload_hangs() {
    const RECORDED: &str =
        "[history]\nfile = \"h.db\"\n[[history.record]]\nbelow = \"ns=2;s=Plant/Boiler\"\n";
    let installation = Installation::new();
    installation.write(RECORDED);
    let (mut child, url) = serve(&installation);
    let history = |url: &str| {
        let (code, text) = run(&["history", url, "ns=2;s=Plant/Boiler/Level", "--from", "-1h", "--csv"]);
        if code == 0 { text.lines().skip(1).map(str::to_owned).collect() } else { Vec::new() }
    };
    until("values are recorded", || history(&url).len() > 2);
    // Reading a pipe waits for its writer.
    let hanging = BASE.replace("[server]\n", "[server]\nnodesets = [\"/dev/stdin\"]\n");
    std::fs::write(installation.file(), format!("{hanging}{RECORDED}")).unwrap();
    send(&child, "-HUP");
    std::thread::sleep(Duration::from_secs(1));
    let before: Vec<String> = history(&url);
    let asked = Instant::now();
    send(&child, "-TERM");
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if asked.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("one signal does not end the server");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let log = std::fs::read_to_string(installation.folder.path().join("log")).unwrap();
    // The time of TimeoutStopSec in the package's service.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert!(log.contains("does not end"), "the reload did not hang: {log}");
    assert_eq!(status.code(), Some(0), "{log}");
    installation.write(RECORDED);
    let server = installation.serve(&[]);
    let after: Vec<String> = history(server.url());
    assert_eq!(after[..before.len()], before);
    assert!(!after.iter().any(|line| line.ends_with("BadDataLost")), "{after:?}");
}
