//! The commands of the laboratory: killed links leave nothing behind, and peers and brokers work.

#![allow(clippy::unwrap_used)] // a test that panics has failed

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn taktwerk() -> Command {
    Command::new(env!("CARGO_BIN_EXE_taktwerk"))
}

fn run(arguments: &[&str]) -> Output {
    taktwerk().args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn is_running(pid: u64) -> bool {
    // A zombie process has ended too.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn links_are_listed_and_mistakes_named() {
    let listed = json(&run(&["lab", "links", "list", "--json"]));
    assert_eq!(listed.as_array().map(Vec::len), Some(10));
    let mistake = run(&["lab", "links", "probe", "5g"]);
    assert_eq!(mistake.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&mistake.stderr).contains("wan-tokyo"));
}

#[test]
fn loads_without_a_simulation_are_refused_before_measuring() {
    for (arguments, hint) in [
        (["--window", "0"], "write 0.1 to 600 seconds"),
        (["--links", "5g"], "5g"),
        (["--host-profile", "no-such-profile.toml"], "cannot read no-such-profile.toml"),
    ] {
        let output = run(&[&["lab", "truth"], &arguments[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(hint), "{said}");
    }
}

#[test]
fn a_comparison_names_unknown_rows_and_missing_peers() {
    let mistake = run(&["lab", "versus", "open62541", "--rows", "no-such-row"]);
    assert_eq!(mistake.status.code(), Some(2), "{mistake:?}");
    let said = String::from_utf8_lossy(&mistake.stderr);
    assert!(said.contains("no-such-row") && said.contains("read-rtt"), "{said}");
    let empty = tempfile::tempdir().unwrap();
    let missing = taktwerk()
        .args(["lab", "versus", "open62541", "--quick", "--rows", "read-rtt"])
        .env("TAKTWERK_PEERS", empty.path())
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(6), "{missing:?}");
}

#[test]
fn a_closed_output_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = taktwerk().args(["lab", "list"]).stdin(Stdio::null()).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), &b""[..]), "{output:?}");
}

/// Processes with this owner in their environment.
fn children_of(owner: u32) -> Vec<u64> {
    let mark = format!("TAKTWERK_LAB_OWNER={owner}:");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| String::from_utf8_lossy(&environment).contains(&mark))
        })
        .filter(|pid| is_running(*pid))
        .collect()
}

fn linked(seconds: &str) -> Child {
    let server = format!("echo READY nothing://:1; exec sleep {seconds}");
    taktwerk()
        .args(["lab", "links", "run", "rate=50mbit,delay=1ms", "--unverified", "--server", &server])
        .args(["--", "sleep", seconds])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn clean_removes_everything_of_a_killed_link() {
    // At several moments: while the networks are created, while the server starts, while both run.
    for moment in [0, 20, 60, 150, 400, 1_500] {
        let mut lab = linked("298");
        let owner = lab.id();
        std::thread::sleep(Duration::from_millis(moment));
        lab.kill().unwrap();
        lab.wait().unwrap();
        let cleaned = run(&["lab", "links", "clean", "--json"]);
        assert!(cleaned.status.success(), "{cleaned:?}");
        until("orphans are ended", || children_of(owner).is_empty());
    }
    // The next one works.
    let mut lab = linked("0.2");
    assert!(lab.wait().unwrap().success());
}

#[test]
fn an_interrupted_link_leaves_nothing_behind() {
    let mut lab = linked("297");
    let owner = lab.id();
    until("both ends run", || children_of(owner).len() >= 2);
    let interrupted = Command::new("kill").args(["-INT", &owner.to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    assert_eq!(children_of(owner), Vec::<u64>::new());
}

/// An installer that never ends: a Python that sleeps instead of creating an environment.
fn installing(place: &Path) -> Child {
    use std::os::unix::fs::PermissionsExt;
    let tools = place.join("tools");
    let python = tools.join("python3");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(&python, "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nsleep 295 & wait\n").unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut lab = taktwerk();
    lab.args(["lab", "peers", "install", "asyncua", "--dir"]).arg(place.join("peers")).env("PATH", path);
    lab.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn an_installer_ends_with_an_interrupt_and_is_found_after_a_kill() {
    let place = std::env::temp_dir().join(format!("taktwerk-installing-{}", std::process::id()));
    let mut lab = installing(&place);
    let owner = lab.id();
    until("it installs", || children_of(owner).len() >= 2);
    assert!(Command::new("kill").args(["-INT", &owner.to_string()]).status().unwrap().success());
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    until("all of it has ended", || children_of(owner).is_empty());

    let mut lab = installing(&place);
    let owner = lab.id();
    until("it installs again", || children_of(owner).len() >= 2);
    lab.kill().unwrap();
    lab.wait().unwrap();
    // The next command ends the rest first.
    let mut next = installing(&place);
    until("the next one installs", || children_of(next.id()).len() >= 2);
    assert_eq!(children_of(owner), Vec::<u64>::new());
    assert!(Command::new("kill").args(["-INT", &next.id().to_string()]).status().unwrap().success());
    assert_eq!(next.wait().unwrap().code(), Some(130));
    std::fs::remove_dir_all(place).unwrap();
}

/// OPC UA over every method that works here, with the load at one end and the server at the other.
#[test]
fn opc_ua_over_links() {
    let exe = env!("CARGO_BIN_EXE_taktwerk");
    let port = "48123";
    let mut worked = 0;
    for method in ["tun", "proxy"] {
        // Without privileges only the relay works. It uses a free port; the other methods have their own networks.
        let (listen, load) = match method {
            "tun" => (port, format!("opc.tcp://$LINK_SERVER:{port}")),
            _ => ("0", "opc.tcp://$LINK_SERVER".to_owned()),
        };
        let server = format!("exec {exe} serve --no-plant --signals 10 --update 100 --port {listen} $BIND");
        let server = match method {
            "tun" => server.replace("$BIND", "--bind 10.198.77.2 --policy None"),
            _ => server.replace("$BIND", ""),
        };
        // A non-loopback address: SecurityPolicy None must be requested.
        let load = format!("{exe} bench read {load} --policy None -n 5 --warmup 0 --json");
        let output = run(&[
            "lab",
            "links",
            "run",
            "delay=20ms,rate=20mbit",
            "--method",
            method,
            "--unverified",
            "--server",
            &server,
            "--",
            "sh",
            "-c",
            &load,
        ]);
        if method == "tun" && output.status.code() == Some(6) {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("root") || said.contains("/dev/net/tun") || said.contains("ip"), "{said}");
            continue;
        }
        assert!(output.status.success(), "{method}: {output:?}");
        let result = json(&output);
        assert_eq!(result["requests"], 5, "{result}");
        // The round trip cannot be faster than the link.
        let p50 = result["latency"]["uncorrected"]["p50_us"].as_f64().unwrap();
        assert!(p50 > 39_900.0, "{result}");
        worked += 1;
    }
    assert!(worked >= 1);
}

/// A load over a link to a server that runs already and is not aware of it.
#[test]
fn a_load_over_a_link() {
    let server = taktwerk_lab::program::Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args([
            "serve",
            "--no-plant",
            "--signals",
            "10",
            "--port",
            "0",
            "--policy",
            "None",
            "--exit-with-stdin",
        ])
        .serve(Duration::from_secs(60))
        .unwrap();
    let read =
        |link| run(&["bench", "read", server.url(), "-n", "5", "--warmup", "0", "--link", link, "--json"]);
    let output = read("delay=20ms");
    if output.status.code() == Some(6) {
        // If the relay got too little CPU time, nothing is measured and that is reported.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("machine may be busy"), "{said}");
    } else {
        let result = json(&output);
        assert_eq!(result["url"], server.url(), "{result}");
        assert!(result["latency"]["uncorrected"]["p50_us"].as_f64().unwrap() > 39_900.0, "{result}");
        assert!(result["link"]["round_trips"]["mean_ms"].as_f64().unwrap() > 39.9, "{result}");
        assert_eq!(result["link"]["method"], "proxy");
    }
    let unknown = read("moon");
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("wan-tokyo"), "{unknown:?}");
    let password = ["bench", "read", "192.0.2.1", "-u", "joe", "-p", "secret", "--link", "delay=1ms"];
    let password = run(&[&password[..], &["--policy", "None"]].concat());
    assert_eq!(password.status.code(), Some(2), "{password:?}");
}

/// The capacity of an unprepared server, most of whose variables do not change.
#[test]
fn capacity_monitors_changing_variables() {
    let server = taktwerk_lab::program::Program::new(env!("CARGO_BIN_EXE_taktwerk"))
        .args(["serve", "--port", "0", "--exit-with-stdin"])
        .serve(Duration::from_secs(60))
        .unwrap();
    let capacity = |more: &[&str]| {
        let first = ["lab", "capacity", server.url(), "--safe", "--what", "signals", "--within", "1ms"];
        // Tests run in parallel, and a busy machine is not judged: repeat until it is idle for a moment.
        for _ in 0..100 {
            let output = run(&[&first, &["-d", "300ms", "--json"][..], more].concat());
            if !String::from_utf8_lossy(&output.stderr).contains("this machine is busy") {
                return output;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("the machine was busy all the time");
    };
    let chosen = capacity(&[]);
    let said = json(&chosen)["chosen"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("of") && said.contains("every 100 ms"), "{chosen:?}");
    // There was no time for any load. That is no fault of the server.
    assert_eq!(chosen.status.code(), Some(5), "{chosen:?}");
    assert!(String::from_utf8_lossy(&chosen.stderr).contains("no time"), "{chosen:?}");
    let named = capacity(&["-I", "1", "--nodes", "/Objects/2:Plant/2:Boiler/2:Temperature"]);
    assert_eq!((named.status.code(), &json(&named)["chosen"]), (Some(5), &Value::Null), "{named:?}");
}

#[test]
fn reported_cpu_conditions_are_the_actual_ones() {
    let own = json(&run(&["lab", "cpu", "show", "--json"]));
    assert_eq!(own["class"], "other");
    let first = own["cpus"].as_str().unwrap().split([',', '-']).next().unwrap();
    let pinned = run(&["lab", "cpu", "run", "--cpus", first, "--json", "--", "sleep", "0.3"]);
    assert!(pinned.status.success(), "{pinned:?}");
    let told: Value = serde_json::from_slice(&pinned.stderr).unwrap();
    assert_eq!(told["conditions"]["cpus"], first);
    // Real-time scheduling is permitted, or refused with advice, but never silently ignored.
    let real_time = run(&["lab", "cpu", "run", "--class", "rr:1", "--json", "--", "sleep", "0.3"]);
    let said = String::from_utf8_lossy(&real_time.stderr).into_owned();
    match real_time.status.code() {
        Some(0) => assert!(said.contains("rr:1"), "{said}"),
        code => assert!(code == Some(6) && (said.contains("root") || said.contains("chrt")), "{said}"),
    }
    let nowhere = run(&["lab", "cpu", "run", "--cpus", "4000", "--isolate", "--", "sleep", "9"]);
    assert!(matches!(nowhere.status.code(), Some(2 | 6)), "{nowhere:?}");
    let failed = run(&["lab", "cpu", "run", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.status.code(), Some(3), "its own code is passed on: {failed:?}");
}

/// The directory of installed peers, if it exists.
fn peers() -> Option<PathBuf> {
    let named = std::env::var_os("TAKTWERK_PEERS").map(PathBuf::from);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    named.or(Some(checkout)).filter(|path| path.is_dir())
}

/// Each peer passes all checks, or reports how to install it.
#[test]
fn installed_peers_pass_their_checks() {
    let directory = peers().unwrap_or_else(std::env::temp_dir);
    let directory = directory.to_str().unwrap();
    let listed = json(&run(&["lab", "peers", "list", "--dir", directory, "--json"]));
    for peer in listed["peers"].as_array().unwrap() {
        let name = peer["name"].as_str().unwrap();
        if peer["state"]["state"] != "installed" {
            let command = peer["state"]["command"].as_str().unwrap();
            assert!(command.contains("install"), "{peer}");
            continue;
        }
        let output = run(&["lab", "peers", "check", name, "--dir", directory, "--json"]);
        let result = json(&output);
        assert_eq!(result["failed"], 0, "{result:#}");
        // A gateway is checked with its devices: start, both devices, end.
        let least = if peer["role"] == "gateway" { 4 } else { 8 };
        assert!(result["peers"][0]["checks"].as_array().unwrap().len() >= least, "{result:#}");
    }
}

/// A peer ends with the process that started it, however that process ends.
#[test]
fn peers_end_with_their_owner() {
    let Some(directory) = peers() else { return assert!(peers().is_none()) };
    let directory = directory.to_str().unwrap();
    let listed = json(&run(&["lab", "peers", "list", "--dir", directory, "--json"]));
    for peer in listed["peers"].as_array().unwrap() {
        if peer["state"]["state"] != "installed" {
            continue;
        }
        let name = peer["name"].as_str().unwrap();
        let mut owner = taktwerk()
            .args(["lab", "peers", "run", name, "--dir", directory, "--variables", "1", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(owner.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let ready: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
        let pid = ready["pid"].as_u64().unwrap();
        assert!(is_running(pid), "{name}");
        owner.kill().unwrap();
        owner.wait().unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        until(&format!("{name} ends with its owner"), || !is_running(pid));
    }
}

/// A peer creates a new certificate at each start. Loads trust it for one measurement.
#[test]
fn a_peer_is_measured_with_encryption() {
    let Some(directory) = peers().filter(|path| path.join("open62541/bin/o6-server").is_file()) else {
        return assert!(!taktwerk_lab::place::can_encrypt("asyncua"));
    };
    let place = std::env::temp_dir().join(format!("taktwerk-lab-encrypted-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let scenario = place.join("scenario.toml");
    let text = r#"
name = "encrypted peer"
stacks = ["open62541"]
[load]
kind = "read"
count = 20
[security]
policy = "Basic256Sha256"
mode = "SignAndEncrypt"
[time]
warmup_s = 0.1
repetitions = 2
"#;
    std::fs::write(&scenario, text).unwrap();
    let output = taktwerk()
        .args(["lab", "run", scenario.to_str().unwrap(), "--json"])
        .env("TAKTWERK_PEERS", &directory)
        .env("TAKTWERK_RESULTS", place.join("results.sqlite"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    // Validity of the measurement is not checked, because tests run in parallel.
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("cannot connect") && !said.contains("refused"), "{said}");
    assert_eq!(json(&output)["run"]["measurements"], 2);
}

#[test]
fn the_embedded_broker_ends_with_its_owner() {
    let mut broker = taktwerk()
        .args(["pubsub", "broker", "--listen", "127.0.0.1:0", "--exit-with-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(broker.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("READY ").unwrap_or_else(|| panic!("{line:?}"));
    let pid = broker.id().to_string();
    for (message, pattern) in
        [("bytes", "round-trip"), ("uadp", "round-trip"), ("uadp", "fan"), ("bytes", "fan")]
    {
        let clients = if pattern == "fan" { "5" } else { "1" };
        let load = ["bench", "mqtt", url, "--message", message, "--pattern", pattern, "-c", clients];
        let rest = ["-n", "20", "--payload", "100", "--warmup", "0", "--server-pid", &pid, "--json"];
        let result = json(&run(&[&load[..], &rest[..]].concat()));
        let figure = |name: &str| result.pointer(name).and_then(Value::as_u64);
        assert_eq!(
            (figure("/messages"), figure("/missing")),
            (Some(20), Some(0)),
            "{message}, {pattern}: {result}"
        );
        assert_eq!(result.pointer("/requested/message").and_then(Value::as_str), Some(message));
    }
    drop(broker.stdin.take());
    until("the broker outlives its owner", || !is_running(u64::from(broker.id())));
    broker.wait().unwrap();
}
