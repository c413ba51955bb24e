//! The laboratory as a program: a scenario, its results, its report in a browser, and cleanup after it was killed.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking, and says what it skips

mod browser;
mod workspace;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use workspace::{Workspace, is_measured, json};

const SCENARIO: &str = r#"
name = "two small loads"
[server]
update_ms = 50
[load]
kind = "subscribe"
clients = [1, 3]
items = 30
publishing_ms = 50
[time]
warmup_s = 0.2
duration_s = 0.5
repetitions = 2
steady = false
[[threshold]]
metric = "progress.items"
above = 29
"#;

impl Workspace {
    fn scenario(&self, text: &str) {
        fs::write(self.0.join("scenario.toml"), text).unwrap();
    }
}

#[test]
fn a_scenario_is_measured_stored_compared_and_reported() {
    let workspace = Workspace::new("scenario");
    workspace.scenario(SCENARIO);
    let two = workspace.run(&["lab", "run", "scenario.toml", "--stream", "-", "--json"]);
    assert_eq!(two.status.code(), Some(2), "two kinds of documents on one stream: {two:?}");
    fs::write(workspace.0.join("results.sqlite"), "").unwrap();
    let none = workspace.run(&["lab", "report"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(none.status.code() == Some(2) && said.contains("no complete run"), "{said}");
    let first = workspace.run(&[
        "lab",
        "run",
        "scenario.toml",
        "--name",
        "first",
        "--stream",
        "stream.ndjson",
        "--json",
    ]);
    assert!(is_measured(&first), "{first:?}");
    assert_eq!(json(&first)["run"]["measurements"], 4);
    let lines = fs::read_to_string(workspace.0.join("stream.ndjson")).unwrap();
    assert_eq!(lines.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 4);

    let second = workspace.run(&["lab", "run", "scenario.toml", "--name", "second", "-o", "report.html"]);
    assert!(is_measured(&second), "{second:?}");
    let html = fs::read_to_string(workspace.0.join("report.html")).unwrap();
    assert!(html.contains("two small loads") && html.contains("<svg") && !html.contains("<script"));
    assert!(html.contains("Servers ran on CPU"), "the CPU conditions are missing");

    let runs = json(&workspace.run(&["lab", "runs", "--json"]));
    assert_eq!(runs["runs"][1]["state"], "complete");
    let csv = workspace.run(&["lab", "runs", "--csv", "first"]);
    assert_eq!(String::from_utf8(csv.stdout).unwrap().trim().lines().count(), 5);
    let compared = workspace.run(&["lab", "compare", "first", "second", "--json"]);
    let compared = json(&compared);
    assert!(compared["same_machine"].as_bool().unwrap(), "{compared}");

    let wrong = workspace.run(&["lab", "compare", "first", "third"]);
    assert_eq!(wrong.status.code(), Some(2));
    let wrong = workspace.run(&["lab", "compare", "first", "second", "--metric", "no.such"]);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("have no figure no.such") && said.contains("progress.items"), "{said}");
    workspace.scenario(&SCENARIO.replace("clients", "cleints"));
    let wrong = workspace.run(&["lab", "run", "scenario.toml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("cleints"), "{wrong:?}");

    let runs = json(&workspace.run(&["lab", "runs", "--json"]))["runs"].as_array().unwrap().len();
    workspace.scenario(&format!("{SCENARIO}\n[cpu]\ngovernor = \"no such governor\""));
    let refused = workspace.run(&["lab", "run", "scenario.toml"]);
    assert_eq!(refused.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("governor"), "{refused:?}");
    // Conditions that are not possible here are detected before the run, and leave no run behind.
    let asked = |line: &str, code: i32, word: &str| {
        workspace.scenario(&SCENARIO.replace("[server]", &format!("{line}\n[server]")));
        let refused = workspace.run(&["lab", "run", "scenario.toml"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{line}: {said}");
    };
    asked("link = \"no-such-link\"", 2, "no-such-link");
    asked("stacks = [\"no-such-stack\"]", 6, "no-such-stack");
    asked("stacks = [\"opc.tcp://127.0.0.1:1\"]", 3, "no server listens");
    asked("[cpu]\nserver = \"900\"\n", 6, "900");
    for (before, after, word) in [
        ("clients = [1, 3]", "clients = []", "load.clients"),
        ("repetitions = 2", "repetitions = 4294967295", "measurements"),
    ] {
        workspace.scenario(&SCENARIO.replace(before, after));
        let refused = workspace.run(&["lab", "run", "scenario.toml"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(word), "{after}: {said}");
    }
    workspace.scenario(SCENARIO);
    for output in ["/no/such/folder/x.html", "/tmp"] {
        let refused = workspace.run(&["lab", "run", "scenario.toml", "-o", output]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(workspace.run(&["lab", "runs", "--results", "typo/x.sqlite"]).status.code(), Some(2));
    assert!(!workspace.0.join("typo").exists());
    for nothing in [["-n", "0"], ["-d", "0s"]] {
        let refused = workspace.run(&[&["bench", "read", "127.0.0.1:1"][..], &nothing].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(json(&workspace.run(&["lab", "runs", "--json"]))["runs"].as_array().unwrap().len(), runs);

    if let Some(browser) = browser::browser() {
        let figures = browser::look_at(&browser, &html, &workspace.0);
        assert!(figures.iter().any(|one| one.marks("line") > 0), "{figures:?}");
    }
}

/// Processes whose command line contains a text.
fn processes(with: &str) -> Vec<u32> {
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(with)
    })
    .collect()
}

#[test]
fn a_killed_run_leaves_no_processes_and_keeps_complete_measurements() {
    let workspace = Workspace::new("killed");
    workspace.scenario(&SCENARIO.replace("repetitions = 2", "repetitions = 200"));
    let mut lab = workspace
        .command(&["lab", "run", "scenario.toml", "--name", "killed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let state = || {
        let runs = json(&workspace.run(&["lab", "runs", "--json"]));
        let run = runs["runs"][0].clone();
        (run["state"].as_str().map(str::to_owned), run["measurements"].as_u64().unwrap_or(0))
    };
    let end = Instant::now() + Duration::from_secs(120);
    while state().1 < 2 {
        assert!(Instant::now() < end, "nothing was measured: {:?}", lab.try_wait());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(state().0.as_deref(), Some("running"));
    lab.kill().unwrap();
    lab.wait().unwrap();
    let (after, kept) = state();
    assert_eq!(after.as_deref(), Some("incomplete"));
    assert!(kept >= 2);
    // Its server and load notice that their standard input has been closed.
    let mark = workspace.0.display().to_string();
    let end = Instant::now() + Duration::from_secs(30);
    while !processes(&mark).is_empty() {
        assert!(Instant::now() < end, "still there: {:?}", processes(&mark));
        std::thread::sleep(Duration::from_millis(100));
    }
    // By default, reports are not written for incomplete runs.
    assert_eq!(workspace.run(&["lab", "report"]).status.code(), Some(2));
    assert_eq!(workspace.run(&["lab", "report", "killed"]).status.code(), Some(0));

    // The same command resumes the run: it measures only what is missing, and then the run is complete.
    let resume = ["lab", "run", "scenario.toml", "--resume", "killed"];
    workspace.scenario(&SCENARIO.replace("two small loads", "something else"));
    let other = workspace.run(&resume);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("two small loads"), "{other:?}");
    let repetitions = kept / 2 + 1;
    workspace.scenario(&SCENARIO.replace("repetitions = 2", &format!("repetitions = {repetitions}")));
    let resumed = workspace.run(&[&resume[..], &["--stream", "all.ndjson"]].concat());
    assert!(is_measured(&resumed), "{resumed:?}");
    assert_eq!(state(), (Some("complete".to_owned()), 2 * repetitions));
    // The stream contains the whole run, not only the resumed part.
    let lines = fs::read_to_string(workspace.0.join("all.ndjson")).unwrap().lines().count() as u64;
    assert_eq!(lines, 2 * repetitions);
}

/// Control groups of a process.
fn groups_of(owner: u32) -> Vec<PathBuf> {
    let prefix = format!("taktwerk-lab-{owner}-");
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpuset"].into_iter();
    let entries = roots.flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect()
}

#[test]
fn the_next_run_releases_an_isolated_cpu_of_a_killed_run() {
    let workspace = Workspace::new("isolated");
    let cpus = json(&workspace.run(&["lab", "cpu", "show", "--json"]))["cpus"].as_str().unwrap().to_owned();
    let last = cpus.rsplit([',', '-']).next().unwrap().to_owned();
    let mut killed = workspace
        .command(&["lab", "cpu", "run", "--cpus", &last, "--isolate", "--json", "--", "sleep", "61"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(killed.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let Ok(told) = serde_json::from_str::<Value>(&said) else {
        // Without root or cpusets, it must report that, and there is nothing to kill.
        assert_eq!(killed.wait().unwrap().code(), Some(6), "{said}");
        assert!(said.contains("isolat"), "{said}");
        eprintln!("skipped: no CPU can be isolated here: {}", said.trim());
        return;
    };
    let owner = killed.id();
    let is_by_group = told["isolation"] != "boot";
    assert_eq!(!groups_of(owner).is_empty(), is_by_group, "{told}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(!groups_of(owner).is_empty(), is_by_group, "nothing outlived it, so nothing is tested");

    workspace.scenario(&SCENARIO.replace("repetitions = 2", "repetitions = 1"));
    let next = workspace.run(&["lab", "run", "scenario.toml"]);
    assert!(is_measured(&next), "{next:?}");
    assert_eq!(groups_of(owner), Vec::<PathBuf>::new());
    let child = u32::try_from(told["pid"].as_u64().unwrap()).unwrap();
    let state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "its program is still running: {state}");
}

#[test]
fn the_register_of_experiments_is_complete() {
    let workspace = Workspace::new("list");
    let list = json(&workspace.run(&["lab", "list", "--json"]));
    let experiments = list["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 24);
    assert!(experiments.iter().any(|one| one["id"] == "morato-pubsub" && one["missing"].is_null()));
    let shown = workspace.run(&["lab", "list"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let row = shown.lines().find(|line| line.contains("burger-cpu")).unwrap();
    assert!(shown.contains("full form") && row.contains(" min ") && row.contains(" h "), "{shown}");
    let unknown = workspace.run(&["lab", "reproduce", "nobody-1999"]);
    assert_eq!(unknown.status.code(), Some(2));
}

/// Reads the output of a terminal until its other end is closed.
fn read_all(terminal: rustix::fd::OwnedFd) -> std::thread::JoinHandle<String> {
    use std::io::Read;
    let mut terminal = fs::File::from(terminal);
    std::thread::spawn(move || {
        let (mut text, mut block) = (Vec::new(), [0u8; 4096]);
        // A terminal without users returns an error instead of an end of file.
        while let Ok(count @ 1..) = terminal.read(&mut block) {
            text.extend_from_slice(&block[..count]);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

#[test]
fn a_live_view_ends_with_ctrl_c_and_restores_the_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
    use std::os::unix::process::CommandExt;

    let workspace = Workspace::new("tui");
    workspace.scenario(&SCENARIO.replace("repetitions = 2", "repetitions = 200"));
    let without = workspace.run(&["lab", "run", "scenario.toml", "--tui"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("needs a terminal"), "{without:?}");

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let end = || fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let kept = end();
    let before = tcgetattr(&kept).unwrap();
    let mut lab = workspace
        .command(&["lab", "run", "scenario.toml", "--tui", "--name", "tui"])
        // A terminal type is set, because not every shell that runs tests has one.
        .env("TERM", "xterm")
        .stdin(end())
        .stdout(Stdio::null())
        .stderr(end())
        // Ctrl-C signals the whole process group, so the command needs its own group.
        .process_group(0)
        .spawn()
        .unwrap();
    let mut keys = fs::File::from(rustix::io::dup(&terminal).unwrap());
    let screen = read_all(terminal);
    let runs = || json(&workspace.run(&["lab", "runs", "--json"]))["runs"][0].clone();
    let limit = Instant::now() + Duration::from_secs(120);
    while runs()["measurements"].as_u64().unwrap_or(0) < 2 {
        let ended = lab.try_wait().unwrap();
        assert!(ended.is_none(), "it has ended before anything was measured: {ended:?}");
        assert!(Instant::now() < limit, "nothing was measured");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!tcgetattr(&kept).unwrap().local_modes.contains(LocalModes::ECHO), "the terminal is not raw");
    std::io::Write::write_all(&mut keys, b"\x03").unwrap();
    let status = loop {
        assert!(Instant::now() < limit, "Ctrl-C does not end it");
        if let Some(status) = lab.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(130));
    assert_eq!(tcgetattr(&kept).unwrap().local_modes, before.local_modes);
    drop((kept, keys));
    let shown = screen.join().unwrap();
    assert!(shown.contains("\u{1b}[?1049h") && shown.contains("\u{1b}[?1049l"), "{shown:?}");
    assert!(shown.contains("two small loads") && shown.contains("measurements"), "{shown:?}");
    assert_eq!(runs()["state"], "incomplete");
}

/// A peer's publisher is started, received and ended. Without it, advice is printed before anything is measured.
#[test]
fn a_peers_publisher_is_received() {
    let workspace = Workspace::new("publisher");
    workspace.scenario(
        "name = \"theirs\"\nstacks = [\"open62541\"]\n[server]\nupdate_ms = 31\n[load]\nkind = \"pubsub\"\nitems = 1\n\
         publishing_ms = 50\n[time]\nwarmup_s = 0.2\nduration_s = 1.0\nrepetitions = 1\n",
    );
    let named = std::env::var_os("TAKTWERK_PEERS").map(PathBuf::from);
    let peers = named.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"));
    let mut lab = workspace.command(&["lab", "run", "scenario.toml", "--json"]);
    let run = lab.env("TAKTWERK_PEERS", &peers).output().unwrap();
    if !peers.join("open62541/bin/o6-publisher").is_file() {
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(6) && said.contains("lab peers install open62541"), "{said}");
        return;
    }
    let document = json(&run);
    assert_eq!(run.status.code(), Some(0), "{document:#}");
    // Columns exist only if values are known.
    let columns = document["outcomes"][0]["grids"][0]["columns"].as_array().unwrap();
    assert!(columns.iter().any(|title| title == "delivery p50 µs"), "{document:#}");
}
