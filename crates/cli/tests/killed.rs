//! Killed runs of the laboratory: results are kept, all programs end, and `--resume` measures the rest.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking, and says what it skips

mod workspace;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use workspace::{Workspace, is_measured, json};

impl Workspace {
    /// Starts a command without reading its output, except errors.
    fn start(&self, arguments: &[&str]) -> Child {
        let errors = fs::File::create(self.0.join("errors")).unwrap();
        self.command(arguments).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
    }

    /// The state of a run and its number of measurements; `None` before it has started.
    fn state(&self, name: &str) -> Option<(String, u64)> {
        let runs = json(&self.run(&["lab", "runs", "--json"]));
        let run = runs["runs"].as_array().unwrap().iter().find(|run| run["name"] == name)?.clone();
        Some((run["state"].as_str().unwrap().to_owned(), run["measurements"].as_u64().unwrap()))
    }

    /// Waits until a run has `count` measurements. Returns whether it is still running.
    fn measured(&self, child: &mut Child, name: &str, count: u64) -> bool {
        let end = Instant::now() + Duration::from_secs(120);
        while self.state(name).is_none_or(|(_, measured)| measured < count) {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(Instant::now() < end, "nothing was measured");
            std::thread::sleep(Duration::from_millis(100));
        }
        true
    }
}

/// Programs of a run, found by the marker in their environment.
fn programs_of(owner: u32) -> Vec<u32> {
    let mark = format!("TAKTWERK_LAB_OWNER={owner}:");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_its = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&mark) && !stat.contains(") Z ")
    };
    pids.filter(is_its).collect()
}

fn until_gone(owner: u32) {
    let end = Instant::now() + Duration::from_secs(30);
    while !programs_of(owner).is_empty() {
        assert!(Instant::now() < end, "still there: {:?}", programs_of(owner));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn kill(mut child: Child) -> u32 {
    child.kill().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn a_killed_experiment_can_be_resumed_and_reported() {
    let workspace = Workspace::new("reproduce");
    let reproduce = |repetitions: &str, more: &[&str]| -> Command {
        let words = ["lab", "reproduce", "rocha-payload", "--quick", "--stacks", "own", "--repetitions"];
        workspace.command(&[&words[..], &[repetitions], more].concat())
    };
    let once = reproduce("1", &["--name", "once", "-o", "once.html", "--json"]).output().unwrap();
    assert!(is_measured(&once), "{once:?}");
    let document = json(&once);
    let loads = document["run"]["measurements"].as_u64().unwrap();
    assert!(loads >= 3, "{document:#}");
    assert_eq!(document["outcomes"][0]["id"], "rocha-payload");
    let report = fs::read_to_string(workspace.0.join("once.html")).unwrap();
    assert!(report.contains("Rocha et al. 2019") && report.contains("<svg"), "the report lacks something");

    let mut lab = reproduce("200", &["--name", "killed"]);
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(workspace.measured(&mut lab, "killed", 2), "it ended by itself");
    assert_eq!(workspace.state("killed").unwrap().0, "running");
    let owner = kill(lab);
    let (state, kept) = workspace.state("killed").unwrap();
    assert!(state == "incomplete" && kept >= 2, "{state} {kept}");
    until_gone(owner);
    assert_eq!(workspace.run(&["lab", "report", "killed", "-o", "killed.html"]).status.code(), Some(0));

    let repetitions = kept / loads + 1;
    let resumed = reproduce(&repetitions.to_string(), &["--resume", "killed"]).output().unwrap();
    assert!(is_measured(&resumed), "{resumed:?}");
    assert_eq!(workspace.state("killed"), Some(("complete".to_owned(), loads * repetitions)));
    assert!(workspace.0.join("taktwerk-report.html").is_file());
}

const OVER_A_LINK: &str = r#"
name = "over a link"
link = "delay=20ms"
[load]
kind = "read"
count = 5
[time]
warmup_s = 0.1
repetitions = 100
"#;

#[test]
fn the_next_run_cleans_up_after_a_killed_run_over_a_link() {
    let workspace = Workspace::new("link");
    fs::write(workspace.0.join("scenario.toml"), OVER_A_LINK).unwrap();
    // While the link is created, and while it is probed.
    for moment in [50, 400, 1_500] {
        let lab = workspace.start(&["lab", "run", "scenario.toml", "--name", "early"]);
        std::thread::sleep(Duration::from_millis(moment));
        let owner = kill(lab);
        let cleaned = workspace.run(&["lab", "links", "clean", "--json"]);
        assert!(cleaned.status.success(), "{cleaned:?}");
        until_gone(owner);
    }
    let mut lab = workspace.start(&["lab", "run", "scenario.toml", "--name", "killed"]);
    if !workspace.measured(&mut lab, "killed", 1) {
        // If the emulator got too little CPU time, nothing is measured and that is reported.
        let said = fs::read_to_string(workspace.0.join("errors")).unwrap();
        assert!(
            lab.wait().unwrap().code() == Some(6) && said.contains("the probe found deviations"),
            "{said}"
        );
        eprintln!("skipped: {}", said.trim());
        return;
    }
    let owner = kill(lab);
    let (state, kept) = workspace.state("killed").unwrap();
    assert!(state == "incomplete" && kept >= 1, "{state} {kept}");
    // This time the next run cleans up.
    let repetitions = kept + 1;
    let fewer = OVER_A_LINK.replace("repetitions = 100", &format!("repetitions = {repetitions}"));
    fs::write(workspace.0.join("scenario.toml"), fewer).unwrap();
    let resumed = workspace.run(&["lab", "run", "scenario.toml", "--resume", "killed"]);
    until_gone(owner);
    let said = String::from_utf8_lossy(&resumed.stderr);
    if resumed.status.code() == Some(6) && said.contains("the probe found deviations") {
        eprintln!("skipped: {}", said.trim());
        return;
    }
    assert!(is_measured(&resumed), "{resumed:?}");
    assert_eq!(workspace.state("killed"), Some(("complete".to_owned(), repetitions)));
}
