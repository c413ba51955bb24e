//! A reload that hangs: one signal ends the server in time, and nothing is lost.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod installation;

use installation::{BASE, Installation, LIMIT, run, until};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use taktwerk_types::UtcTime;

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
    const RULES: &str = r#"
[history]
file = "h.db"
[[history.record]]
below = "ns=2;s=Plant/Boiler"
[alarms]
file = "alarms"
[[alarms.alarm]]
variable = "ns=2;s=Plant/Boiler/Level"
name = "Held"
high = -1000.0
[[source]]
name = "sim"
type = "simulation"
interval = "20 ms"
[[tag]]
source = "sim"
name = "v"
[[destination]]
name = "archive"
type = "file"
folder = "values"
flush = "10 s"
"#;
    let installation = Installation::new();
    installation.write(RULES);
    let (mut child, url) = serve(&installation);
    let history = |url: &str| {
        let (code, text) = run(&["history", url, "ns=2;s=Plant/Boiler/Level", "--from", "-1h", "--csv"]);
        if code == 0 { text.lines().skip(1).map(str::to_owned).collect() } else { Vec::new() }
    };
    until("values are recorded", || history(&url).len() > 2);
    // Reading a pipe waits for its writer.
    let hanging = BASE.replace("[server]\n", "[server]\nnodesets = [\"/dev/stdin\"]\n");
    std::fs::write(installation.file(), format!("{hanging}{RULES}")).unwrap();
    send(&child, "-HUP");
    std::thread::sleep(Duration::from_secs(1));
    let before: Vec<String> = history(&url);
    assert!(before.len() > 2);
    // The server waits for connections that do not end. Its sources go on.
    let open = TcpStream::connect(url.strip_prefix("opc.tcp://").unwrap()).unwrap();
    let asked = Instant::now();
    send(&child, "-TERM");
    let mut comments = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if asked.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("one signal does not end the server");
        }
        let comment = (comments + 1).to_string();
        match run(&["alarms", &url, "--on", "Held", "--comment", &comment]) {
            (0, _) => comments += 1,
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let ended = taktwerk_net::clock::wall();
    drop(open);
    let log = std::fs::read_to_string(installation.folder.path().join("log")).unwrap();
    // The time of TimeoutStopSec in the package's service.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert!(log.contains("does not end"), "the reload did not hang: {log}");
    assert_eq!(status.code(), Some(0), "{log}");
    installation.write(RULES);
    let server = installation.serve(&[]);
    let after: Vec<String> = history(server.url());
    assert_eq!(after[..before.len()], before);
    assert!(!after.iter().any(|line| line.ends_with("BadDataLost")), "{after:?}");
    let (_, text) = run(&["read", server.url(), "ns=2;s=Plant/Boiler/Level/Held/Comment", "--json"]);
    assert!(comments > 2 && text.contains(&format!("\"{comments}\"")), "{comments} {text}");
    // The queue has what the source made until the end.
    let last = || {
        let files = std::fs::read_dir(installation.folder.path().join("values")).into_iter().flatten();
        let texts = files.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok());
        let texts: String = texts.collect();
        let received = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            UtcTime::parse(value["received"].as_str()?).map(UtcTime::unix_nanos)
        };
        texts.lines().filter_map(received).filter(|time| *time <= ended.unix_nanos()).max()
    };
    let is_near = |last: i128| ended.unix_nanos() - last < 700_000_000;
    until("the last values are sent", || last().is_some());
    assert!(last().is_some_and(is_near), "{:?}", last().map(|last| ended.unix_nanos() - last));
}
