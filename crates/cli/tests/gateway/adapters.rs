//! `serve --adapters`: child processes that set the variables of a server, their accounts, and their end; and loads of
//! the laboratory on such a server.

use crate::workspace::{Workspace, is_measured, json};
use serde_json::Value;
use std::time::{Duration, Instant};
use taktwerk_lab::process::Process;
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(60);
const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");

fn serve(arguments: &[&str]) -> Running {
    let server =
        Program::new(BINARY).args(["serve", "--port", "0", "--no-plant", "--exit-with-stdin", "--quiet"]);
    server.args(arguments).serve(LIMIT).unwrap()
}

fn tag(adapter: u32, tag: u32) -> String {
    format!("nsu=urn:taktwerk:gateway;s=adapter-{adapter}/value-{tag}")
}

/// The values of nodes; `None` unless all are good.
fn read(url: &str, nodes: &[String]) -> Option<Vec<f64>> {
    let read = Program::new(BINARY).args(["read", url]).args(nodes).arg("--json").run(LIMIT).unwrap();
    let all: Vec<Value> = serde_json::from_slice(&read.stdout).ok()?;
    let is_good = |one: &Value| one.get("StatusCode").is_none_or(|status| status["Code"].as_u64() == Some(0));
    let number = |one: &Value| one["Value"]["Value"].as_f64().or_else(|| one["Value"].as_f64());
    all.iter().map(|one| number(one).filter(|_| is_good(one))).collect()
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn is_running(pid: u32) -> bool {
    // A zombie process has ended too.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The adapters of a server by name.
fn adapters(server: &Running) -> Vec<(String, u32)> {
    let children = Process::new(server.pid()).children().into_iter();
    let mut named: Vec<_> = children.filter_map(|pid| Some((Process::new(pid).name()?, pid))).collect();
    named.sort();
    named
}

#[test]
fn adapters_set_values_are_accounted_for_restarted_and_end_with_the_server() {
    let server = serve(&["--adapters", "2:3:20", "--profile"]);
    let url = server.url();
    // Ready means that every tag has a value.
    let nodes: Vec<String> = [(1, 1), (1, 3), (2, 2)].map(|(adapter, value)| tag(adapter, value)).to_vec();
    let first = read(url, &nodes).unwrap();
    until("the values change", || read(url, &nodes).filter(|now| now.iter().zip(&first).all(|(a, b)| a > b)));
    let running = adapters(&server);
    let names: Vec<&str> = running.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["adapter-1", "adapter-2"]);

    // A write is answered with the value.
    let written =
        Program::new(BINARY).args(["write", url, &format!("{}=-7.5", tag(1, 2))]).run(LIMIT).unwrap();
    assert!(written.status.success(), "{written:?}");
    until("the written value stays", || read(url, &[tag(1, 2)]).filter(|now| now[0] == -7.5));

    // The accounts of all processes are there, and their sum is the total.
    let of = |object: &str, figure: &str| format!("ns=1;s=process/{object}{figure}");
    let objects = ["", "Program adapter-1/", "Program adapter-2/", "Total/"];
    let figures =
        ["CpuPercent", "ResidentMegabytes", "VoluntarySwitchesPerSecond", "InvoluntarySwitchesPerSecond"];
    for figure in figures {
        let nodes = objects.map(|object| of(object, figure)).to_vec();
        let sums = until(figure, || {
            let found = read(url, &nodes)?;
            let is_sum = (found[..3].iter().sum::<f64>() - found[3]).abs() < 1e-6;
            // Adapters that wait every 20 ms switch; few are preempted.
            (is_sum && (figure.starts_with("Inv") || found.iter().all(|value| *value > 0.0))).then_some(found)
        });
        assert!(figure != "VoluntarySwitchesPerSecond" || sums[1] > 10.0, "{sums:?}");
    }
    assert!(read(url, &[of("Network/", "CpuPercent")]).is_some_and(|percent| percent[0] >= 0.0));
    let starts = ["Program adapter-1/", "Program adapter-2/"].map(|object| of(object, "Starts")).to_vec();
    assert_eq!(read(url, &starts), Some(vec![1.0, 1.0]));

    // An adapter that is killed is started again, counted, and sets its values.
    let killed = running[0].1;
    assert!(Program::new("kill").args(["-9", &killed.to_string()]).run(LIMIT).unwrap().status.success());
    until("the adapter is started again", || read(url, &starts).filter(|starts| starts[..] == [2.0, 1.0]));
    let first = until("it has values", || read(url, &nodes[..1]));
    until("its values change", || read(url, &nodes[..1]).filter(|now| now != &first));
    let again = adapters(&server);
    assert!(again.len() == 2 && again.iter().all(|(_, pid)| *pid != killed), "{again:?}");
    assert_eq!(again[1], running[1], "the other one still runs");

    server.stop().unwrap();
    for (name, pid) in again {
        until(&format!("{name} ends"), || (!is_running(pid)).then_some(()));
    }
}

/// Their values do not fit in one line of the protocol.
#[test]
fn an_adapter_of_many_tags_is_ready_when_each_has_a_value() {
    let server = serve(&["--adapters", "1:30000:200"]);
    let nodes = [1, 1_000, 30_000].map(|value| tag(1, value));
    assert!(read(server.url(), &nodes).is_some(), "{:?}", adapters(&server));
}

#[test]
fn adapters_end_if_the_server_is_killed() {
    let server = serve(&["--adapters", "1:1:20"]);
    let running = adapters(&server);
    assert_eq!(running.len(), 1);
    assert!(
        Program::new("kill").args(["-9", &server.pid().to_string()]).run(LIMIT).unwrap().status.success()
    );
    until("the adapter ends", || (!is_running(running[0].1)).then_some(()));
}

#[test]
fn mistakes_are_told() {
    for (arguments, word) in [
        (&["serve", "--adapters", "2:3"][..], "COUNT:TAGS:MS"),
        (&["serve", "--adapters", "1:1:10", "--config", "x.toml"], "cannot be used with"),
    ] {
        let output = Program::new(BINARY).args(arguments).run(LIMIT).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(word), "{said}");
    }
}

const SCENARIO: &str = r#"
name = "a gateway"
[server]
adapters = "2:15:10"
[load]
kind = "read"
batch = 30
pause_ms = 1
[time]
warmup_s = 0.2
duration_s = 1.5
repetitions = 1
[[threshold]]
metric = "profile.processes.adapter-1.cpu_percent"
above = 0.0
"#;

#[test]
fn a_scenario_accounts_for_each_process_over_time() {
    let workspace = Workspace::new("adapters");
    std::fs::write(workspace.0.join("scenario.toml"), SCENARIO).unwrap();
    let stream = workspace.0.join("stream.ndjson");
    let run = workspace.run(&[
        "lab",
        "run",
        "scenario.toml",
        "--stream",
        "stream.ndjson",
        "-o",
        "r.html",
        "--json",
    ]);
    // A single measurement has no interval, so the threshold is open.
    assert!(is_measured(&run), "{run:?}");
    let lines = std::fs::read_to_string(&stream).unwrap();
    let measured: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let profile = &measured["profile"];
    let processes = profile["processes"].as_object().unwrap_or_else(|| panic!("{measured}"));
    let names: Vec<&str> = processes.keys().map(String::as_str).collect();
    assert_eq!(names, ["adapter-1", "adapter-2", "server"]);
    for figure in
        ["cpu_s", "cpu_percent", "rss_bytes", "voluntary_switches", "involuntary_switches", "starts"]
    {
        let number = |one: &Value| one[figure].as_f64().unwrap_or_else(|| panic!("{figure}: {one}"));
        let sum: f64 = processes.values().map(number).sum();
        let total = number(&profile["total"]);
        assert!((sum - total).abs() <= 1e-6 * total.max(1.0), "{figure}: {sum} {total}");
    }
    let moments = profile["at_s"].as_array().unwrap().len();
    assert!(moments >= 4, "{profile}");
    for (name, process) in processes {
        assert!(process["cpu_s"].as_f64() > Some(0.0) && process["starts"] == 1, "{name}: {process}");
        for series in ["cpu_percent", "rss_bytes", "voluntary_per_s", "involuntary_per_s"] {
            let values = process["over_time"][series].as_array().unwrap();
            assert_eq!(values.len(), moments, "{name}: {series}");
        }
    }
    // Every read value was good: all adapters had started before.
    assert_eq!(measured["metrics"]["bad"], 0.0, "{measured}");
    assert!(
        measured["metrics"]["profile.processes.adapter-2.cpu_percent"].as_f64() > Some(0.0),
        "{measured}"
    );
    let outcome = json(&run)["outcomes"][0].clone();
    let titles = |of: &str| -> Vec<String> {
        let all = outcome[of].as_array().unwrap().iter();
        all.filter_map(|one| one["title"].as_str().map(str::to_owned)).collect()
    };
    assert!(titles("grids").iter().any(|title| title.starts_with("Processes of the server")), "{outcome}");
    assert!(titles("charts").iter().any(|title| title.starts_with("CPU by process over time")), "{outcome}");
    let html = std::fs::read_to_string(workspace.0.join("r.html")).unwrap();
    assert!(html.contains("adapter-2") && html.contains("class=\"band s"), "no areas");
    let text = workspace.run(&["lab", "run", "scenario.toml"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("adapter-2") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
