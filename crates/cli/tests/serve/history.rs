//! `serve --history` and `history`: recorded values survive kill -9, and gaps are marked.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");
const NODE: &str = "ns=2;s=Plant/Boiler/Level";

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        Self::spawn(Command::new(BINARY).arg("serve"), folder, Stdio::null())
    }

    /// Starts a server and collects its log.
    fn start_with_log(folder: &Path) -> (Self, Arc<Mutex<String>>) {
        Self::logged(Command::new(BINARY).arg("serve"), folder)
    }

    /// Starts a server on a full disk: with a limit of the size of its files.
    fn start_with_a_full_disk(folder: &Path) -> (Self, Arc<Mutex<String>>) {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"ulimit -S -f 0; exec "$0" "$@""#, BINARY, "serve"]);
        Self::logged(&mut shell, folder)
    }

    fn logged(command: &mut Command, folder: &Path) -> (Self, Arc<Mutex<String>>) {
        let mut server = Self::spawn(command, folder, Stdio::piped());
        // A pipe, because a file would be subject to the limit.
        let log = BufReader::new(server.child.stderr.take().unwrap());
        let told = Arc::<Mutex<String>>::default();
        let into = Arc::clone(&told);
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                into.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        (server, told)
    }

    fn spawn(command: &mut Command, folder: &Path, log: Stdio) -> Self {
        let mut child = command
            .args(["--quiet", "--port", "0", "--policy", "None", "--history"])
            .arg(folder.join("history.db"))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("READY ").unwrap().to_owned();
        Self { child, url }
    }

    /// The history of the node without the heading.
    fn history(&self, arguments: &[&str]) -> Vec<String> {
        let output = Command::new(BINARY)
            .args(["history", &self.url, NODE, "--policy", "None", "--csv"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().skip(1).map(str::to_owned).collect()
    }

    /// Sends SIGTERM.
    fn terminate(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Sets or removes the limit of file sizes for the server.
    fn limit_files(&self, bytes: Option<u64>) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    }

    /// Waits until `count` values are recorded.
    fn wait_for(&self, count: usize) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let found = self.history(&["--from", "-1h"]);
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < end, "only {} values are recorded", found.len());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn recorded_values_survive_kill_9_and_gaps_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let before = server.wait_for(3);
    // Dropping it sends SIGKILL.
    drop(server);
    let server = Server::start(folder.path());
    let after = server.wait_for(before.len() + 2);
    assert_eq!(after[..before.len()], before, "values were lost that clients had read");
    let gaps = after.iter().filter(|line| line.ends_with("BadDataLost")).count();
    assert_eq!(gaps, 1, "{after:?}");
    let minutes = server.history(&["--from", "-2m", "--aggregate", "Count", "--every", "4m"]);
    assert_eq!(minutes.len(), 1, "{minutes:?}");
    // Two minutes are 120 seconds without a partial interval.
    let seconds = server.history(&["--from", "-2m", "--aggregate", "Count", "--every", "1s"]);
    assert_eq!(seconds.len(), 120, "{:?}", seconds.last());
}

/// Annotations are added and listed, and survive kill -9.
#[test]
fn recorded_values_are_annotated() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let annotate = |node: &str, text: &str| {
        Command::new(BINARY)
            .args(["history", &server.url, node, "--policy", "None", "--at=-1m", "--annotate", text])
            .output()
            .unwrap()
    };
    let added = annotate(NODE, "the valve was stuck");
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    assert_eq!(String::from_utf8_lossy(&added.stdout), "1 annotation added\n");
    let refused = annotate("ns=2;s=Plant/Mode", "no history");
    assert_eq!(refused.status.code(), Some(4));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("no Property Annotations"), "{why}");
    let before = server.history(&["--annotations"]);
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(before[0].ends_with(",the valve was stuck"), "{before:?}");
    drop(server);
    let server = Server::start(folder.path());
    assert_eq!(server.history(&["--annotations"]), before);
    assert!(server.history(&["--annotations", "--from", "-30s"]).is_empty());
}

/// To a process, a file size limit looks like a full disk.
#[test]
fn a_full_disk_is_reported_and_values_are_stored_later() {
    let folder = tempfile::tempdir().unwrap();
    let (server, log) = Server::start_with_log(folder.path());
    let before = server.wait_for(3);
    server.limit_files(Some(1));
    let end = Instant::now() + Duration::from_secs(60);
    let told = loop {
        let told = log.lock().unwrap().clone();
        if told.contains("cannot store values; retrying") {
            break told;
        }
        assert!(Instant::now() < end, "{told}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(told.contains("history.db") && told.contains("recording goes on by itself"), "{told}");
    // The server continues with current values and with the existing history.
    let read = Command::new(BINARY).args(["read", &server.url, NODE, "--policy", "None"]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    // Clients read what waits, too.
    let waiting = server.wait_for(before.len() + 3);
    assert_eq!(waiting[..before.len()], before);
    server.limit_files(None);
    let after = server.wait_for(before.len() + 4);
    assert_eq!(after[..before.len()], before);
    assert!(!after.iter().any(|line| line.ends_with("BadDataLost")), "{after:?}");
}

/// Current values are more important than recording them.
#[test]
fn a_server_starts_with_a_full_disk_and_records_later() {
    let folder = tempfile::tempdir().unwrap();
    let (server, log) = Server::start_with_a_full_disk(folder.path());
    let end = Instant::now() + Duration::from_secs(60);
    while !log.lock().unwrap().contains("wait in memory until it can be opened") {
        assert!(Instant::now() < end, "{}", log.lock().unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(log.lock().unwrap().contains("history.db"), "{}", log.lock().unwrap());
    let ask = |command: &str| {
        Command::new(BINARY).args([command, &server.url, NODE, "--policy", "None"]).output().unwrap()
    };
    assert!(ask("read").status.success());
    let refused = ask("history");
    let why =
        String::from_utf8_lossy(&refused.stderr).into_owned() + &String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && why.contains("BadDataUnavailable"), "{why}");
    server.limit_files(None);
    let end = Instant::now() + Duration::from_secs(60);
    while !ask("history").status.success() {
        assert!(Instant::now() < end, "{}", log.lock().unwrap());
        std::thread::sleep(Duration::from_millis(200));
    }
    server.wait_for(3);
}

/// Another program holds the file: clients read what waits, and the server stops in bounded time and says what is lost.
#[test]
fn a_locked_file_delays_no_reader_and_no_stop() {
    let folder = tempfile::tempdir().unwrap();
    for signals in [1, 2] {
        let (mut server, log) = Server::start_with_log(folder.path());
        let before = server.wait_for(3);
        let other = rusqlite::Connection::open(folder.path().join("history.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let locked = Instant::now();
        let waiting = server.wait_for(before.len() + 5);
        assert_eq!(waiting[..before.len()], before);
        assert!(locked.elapsed() > Duration::from_secs(2), "the file was not locked");
        for _ in 0..signals {
            server.terminate();
            std::thread::sleep(Duration::from_millis(300));
        }
        let asked = Instant::now();
        let status = server.child.wait().unwrap();
        // The time of TimeoutStopSec in the package's service.
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
        assert!(signals == 2 || asked.elapsed() > Duration::from_secs(9), "{:?}", asked.elapsed());
        assert_eq!(status.code(), Some(if signals == 1 { 6 } else { 130 }));
        std::thread::sleep(Duration::from_millis(300));
        let told = log.lock().unwrap().clone();
        assert!(told.contains("of the history could not be stored and are lost"), "{told}");
        other.execute_batch("ROLLBACK").unwrap();
    }
}

/// The server waits ten seconds for the file, and one attempt takes two.
#[test]
fn nothing_is_lost_if_a_locked_file_is_free_while_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, log) = Server::start_with_log(folder.path());
    let before = server.wait_for(3);
    let other = rusqlite::Connection::open(folder.path().join("history.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = server.wait_for(before.len() + 3);
    server.terminate();
    std::thread::sleep(Duration::from_secs(5));
    other.execute_batch("ROLLBACK").unwrap();
    let status = server.child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{}", log.lock().unwrap());
    let server = Server::start(folder.path());
    let after = server.wait_for(waiting.len());
    assert_eq!(after[..waiting.len()], waiting);
    assert!(!after.iter().any(|line| line.ends_with("BadDataLost")), "{after:?}");
}

#[test]
fn events_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    let text = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\n\
                [identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n\
                [history]\nfile = \"history.db\"\nevents = true\n";
    std::fs::write(&config, text).unwrap();
    let start = || {
        taktwerk_lab::program::Program::new(BINARY)
            .args(["serve", "--config", config.to_str().unwrap(), "--exit-with-stdin", "--quiet"])
            .serve(Duration::from_secs(60))
            .unwrap()
    };
    let read = |url: &str, more: &[&str]| -> Vec<serde_json::Value> {
        let words = ["history", url, "i=2253", "--events", "--json", "--policy", "None"];
        let output = Command::new(BINARY).args(words).args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let server = start();
    let end = Instant::now() + Duration::from_secs(120);
    let before = loop {
        let found = read(server.url(), &[]);
        if found.len() >= 2 {
            break found;
        }
        assert!(Instant::now() < end, "only {} events are kept", found.len());
        std::thread::sleep(Duration::from_millis(500));
    };
    drop(server);
    let server = start();
    let after = read(server.url(), &["-n", &before.len().to_string()]);
    assert_eq!(after, before);
    assert_eq!(read(server.url(), &["--filter", "Severity < 1"]).len(), 0);
}

#[test]
fn databases_of_other_programs_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    std::fs::write(&file, "this is a text and no database, and it is long enough to be looked at as one")
        .unwrap();
    let output = Command::new(BINARY)
        .args(["serve", "--port", "0", "--policy", "None", "--history"])
        .arg(&file)
        .output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("is not a history file"), "{told}");
}
