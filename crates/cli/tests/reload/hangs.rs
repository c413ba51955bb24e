//! A reload that hangs: one signal ends the server in time, and nothing is lost.

use crate::installation::{BASE, Installation, LIMIT, run, until};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use taktwerk_types::UtcTime;

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

/// A server whose reload hangs, and its URL.
fn hanging(installation: &Installation, more: &str) -> (Child, String) {
    installation.write(&format!("{RULES}{more}"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--quiet", "--config"])
        .arg(installation.file())
        // Never written.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(installation.folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("READY ").unwrap().to_owned();
    until("values are recorded", || history(&url).len() > 2);
    // Reading a pipe waits for its writer.
    let hanging = BASE.replace("[server]\n", "[server]\nnodesets = [\"/dev/stdin\"]\n");
    std::fs::write(installation.file(), format!("{hanging}{RULES}{more}")).unwrap();
    send(&child, "-HUP");
    std::thread::sleep(Duration::from_secs(1));
    (child, url)
}

fn history(url: &str) -> Vec<String> {
    let (code, text) = run(&["history", url, "ns=2;s=Plant/Boiler/Level", "--from", "-1h", "--csv"]);
    if code == 0 { text.lines().skip(1).map(str::to_owned).collect() } else { Vec::new() }
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Ends the server by one signal. Returns its status and when it ended.
fn end(child: &mut Child, log: &str, mut meanwhile: impl FnMut()) -> (ExitStatus, UtcTime) {
    let asked = Instant::now();
    send(child, "-TERM");
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if asked.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("one signal does not end the server");
        }
        meanwhile();
    };
    let ended = taktwerk_net::clock::wall();
    // The time of TimeoutStopSec in the package's service.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("does not respond"), "the reload did not hang: {log}");
    (status, ended)
}

#[test]
fn one_signal_ends_a_server_whose_reload_hangs() {
    let installation = Installation::new();
    let log = installation.folder.path().join("log").display().to_string();
    let (mut child, url) = hanging(&installation, "");
    let before: Vec<String> = history(&url);
    assert!(before.len() > 2);
    let mut comments = 0;
    let comment = || {
        let next = (comments + 1).to_string();
        match run(&["alarms", &url, "-I", "10", "--on", "Held", "--comment", &next]) {
            (0, _) => comments += 1,
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let (status, _) = end(&mut child, &log, comment);
    assert_eq!(status.code(), Some(0));
    installation.write(RULES);
    let server = installation.serve(&[]);
    let after: Vec<String> = history(server.url());
    assert_eq!(after[..before.len()], before);
    assert!(!after.iter().any(|line| line.ends_with("BadDataLost")), "{after:?}");
    let (_, text) = run(&["read", server.url(), "ns=2;s=Plant/Boiler/Level/Held/Comment", "--json"]);
    assert!(comments > 10 && text.contains(&format!("\"{comments}\"")), "{comments} {text}");
}

/// The history makes the end last longer. Sources go on meanwhile.
#[test]
fn destinations_get_the_values_until_the_end() {
    let installation = Installation::new();
    let folder = installation.folder.path();
    let (mut child, _) = hanging(&installation, "");
    let other = rusqlite::Connection::open(folder.join("h.db")).unwrap();
    other.busy_timeout(LIMIT).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let wait = || std::thread::sleep(Duration::from_millis(10));
    let (status, ended) = end(&mut child, &folder.join("log").display().to_string(), wait);
    assert_eq!(status.code(), Some(6), "values of the history are lost");
    drop(other);
    installation.write(RULES);
    let _server = installation.serve(&[]);
    let last = || {
        let files = std::fs::read_dir(folder.join("values")).into_iter().flatten();
        let texts: String =
            files.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok()).collect();
        let received = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            UtcTime::parse(value["received"].as_str()?).map(UtcTime::unix_nanos)
        };
        texts.lines().filter_map(received).filter(|time| *time <= ended.unix_nanos()).max()
    };
    let is_near = |last: i128| ended.unix_nanos() - last < 1_000_000_000;
    until("the last values are sent", || last().is_some_and(is_near));
}

/// Otherwise recorded messages of the last second would be accepted again after the next start.
#[test]
fn the_last_sequence_numbers_of_pubsub_are_saved() {
    let installation = Installation::new();
    let folder = installation.folder.path();
    let file = |name: &str| folder.join(name).display().to_string();
    let (code, keys) = run(&["pubsub", "keys", "plant"]);
    assert_eq!(code, 0, "{keys}");
    std::fs::write(file("plant.keys"), keys).unwrap();
    std::fs::set_permissions(file("plant.keys"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    // The test passes on messages when it wants.
    let tap = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    tap.set_read_timeout(Some(LIMIT)).unwrap();
    let there = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (from, to) = (format!("opc.udp://{}", tap.local_addr().unwrap()), format!("opc.udp://{there}"));
    let (keys, reader) = (file("plant.keys"), file("reader.toml"));
    let secured = ["--security", "sign-and-encrypt", "--keys", &keys];
    let written = ["pubsub", "publish", &to, "-d", "0.1", "--write-subscriber", &reader];
    let (code, text) = run(&[&written[..], &secured].concat());
    assert_eq!(code, 0, "{text}");
    let more =
        "[pubsub]\nconfiguration = \"reader.toml\"\nkeys = [\"plant.keys\"]\nreplay_file = \"line.replay\"\n";
    let (mut child, _) = hanging(&installation, more);
    let mut publisher = Command::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args([&["pubsub", "publish", &from, "-I", "50"], &secured[..]].concat())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let saved = || std::fs::read(folder.join("line.replay")).unwrap();
    let pass = || {
        let mut datagram = [0; 2048];
        let len = tap.recv(&mut datagram).unwrap();
        tap.send_to(&datagram[..len], there).unwrap();
    };
    let begin = saved();
    until("the first message is saved", || {
        pass();
        saved() != begin
    });
    // The first message after a second is saved at once, and the next one not within a second.
    let (asked, mut at_end) = (Instant::now(), None);
    let meanwhile = || {
        std::thread::sleep(Duration::from_millis(10));
        if asked.elapsed() > Duration::from_millis(4_300) && at_end.is_none() {
            let before = saved();
            until("a message is saved", || {
                pass();
                saved() != before
            });
            at_end = Some(saved());
            pass();
        }
    };
    let (status, _) = end(&mut child, &file("log"), meanwhile);
    publisher.kill().unwrap();
    publisher.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_ne!(Some(saved()), at_end, "the last message is missing");
}
