//! Simulations from the command line, as in docs/simulator.md.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    command.arg("sim").args(arguments).stdin(Stdio::null());
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).output().unwrap()
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// A file that is deleted when dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("taktwerk-sim-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const PLANT: &str = "docs/lab/plants/two-lines.toml";
const SHORT: [&str; 4] = ["--set", "time.duration_s=6", "--seeds", "2"];

#[test]
fn a_plant_produces_figures_tables_and_a_report() {
    let report = File::new("report.html");
    let text = sim(&[&[PLANT, "--report", report.path()][..], &SHORT].concat());
    let shown = String::from_utf8(text.stdout).unwrap();
    assert!(text.status.success() && shown.contains("historian"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let page = std::fs::read_to_string(&report.0).unwrap();
    assert!(page.contains("<svg") && page.contains("historian") && page.contains("leased line"), "{page}");

    let arguments = [&[PLANT, "--json", "--set", "client.2.every_ms=200"][..], &SHORT].concat();
    let one = document(&sim(&arguments));
    let figure =
        |document: &Value, name: &str| document["cases"][0]["figures"][name]["median"].as_f64().unwrap();
    assert_eq!(figure(&one, "historian.missing_percent"), 0.0);
    assert_eq!(figure(&one, "historian.reconnects"), 2.0);
    let mut again = document(&sim(&[&arguments[..], &["--threads", "1"]].concat()));
    // The duration is not part of the result.
    for measured in ["core_s", "memory_peak_bytes"] {
        assert!(one[measured].as_f64().unwrap() > 0.0, "{measured}");
        again[measured] = one[measured].clone();
    }
    assert_eq!(one, again, "the result does not depend on the number of threads");
    let slower = document(&sim(&[&arguments[..], &["--set", "link.0.delay=40ms"]].concat()));
    let delay = |document: &Value| figure(document, "report.round_trip_mean_ms");
    assert!(delay(&slower) > delay(&one) + 30.0);
}

#[test]
fn a_trace_is_written() {
    let trace = File::new("trace.json");
    let text = sim(&[PLANT, "--seeds", "1", "--set", "time.duration_s=6", "--trace", trace.path()]);
    let shown = String::from_utf8(text.stdout).unwrap();
    assert!(shown.contains(&format!("wrote {}", trace.path())), "{shown}");
    let document: Value = serde_json::from_slice(&std::fs::read(&trace.0).unwrap()).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["ph"] == "s" && event["name"] == "PublishResponse"));
    // An existing file is kept, and detected before the simulation.
    let again = [PLANT, "--seeds", "1000000", "--trace", trace.path()];
    let said = error(&sim(&again), 2);
    assert!(said.contains("exists already") && said.contains("--force"), "{said}");
    assert!(std::fs::read(&trace.0).unwrap().len() > 1_000);
    let forced = ["--seeds", "1", "--set", "time.duration_s=6", "--force"];
    assert!(sim(&[&[PLANT, "--trace", trace.path()][..], &forced].concat()).status.success());
    let said = error(&sim(&[PLANT, "--trace", "/nowhere/trace.json"]), 2);
    assert!(said.contains("cannot write /nowhere/trace.json"), "{said}");
}

#[test]
fn packets_of_a_link_are_written() {
    let file = File::new("line.pcap");
    let capture = format!("leased line={}", file.path());
    let short = [PLANT, "--seeds", "1", "--set", "time.duration_s=6", "--pcap"];
    let text = sim(&[&short[..], &[&capture]].concat());
    let shown = String::from_utf8(text.stdout).unwrap();
    assert!(shown.contains(&format!("wrote {}", file.path())), "{shown}");
    let packets = std::fs::read(&file.0).unwrap();
    assert_eq!(packets[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
    assert!(packets.windows(4).any(|bytes| bytes == b"HELF") && packets.len() > 100_000);
    let said = error(&sim(&[&short[..], &["wan=x.pcap"]].concat()), 2);
    assert!(said.contains("there is no link \"wan\"; there are leased line"), "{said}");
    let said = error(&sim(&[&short[..], &["leased line"]].concat()), 2);
    assert!(said.contains("write the name of a link, = and a file"), "{said}");
    let said = error(&sim(&[&short[..], &[&capture, "--pcap", &capture]].concat()), 2);
    assert!(said.contains("given twice"), "{said}");
}

#[test]
fn a_plant_with_pubsub_is_simulated() {
    let plant = "docs/lab/plants/fieldbus.toml";
    let (page, bus, trace) = (File::new("bus.html"), File::new("bus.pcap"), File::new("bus.json"));
    let (capture, line) = (format!("field bus={}", bus.path()), File::new("uplink.pcap"));
    let uplink = format!("uplink={}", line.path());
    let records = ["--pcap", &capture, "--pcap", &uplink, "--trace", trace.path(), "--report", page.path()];
    let text = sim(&[&[plant, "--seeds", "1"][..], &records].concat());
    let shown = String::from_utf8(text.stdout).unwrap();
    assert!(text.status.success(), "{shown}{}", String::from_utf8_lossy(&text.stderr));
    assert!(shown.contains("control-room") && shown.contains("longest queue"), "{shown}");
    let report = std::fs::read_to_string(&page.0).unwrap();
    assert!(report.contains("dashboard") && report.contains("<svg"));
    // UDP from port 4840 to port 4840; CONNECT of MQTT.
    let has = |file: &File, wanted: &[u8]| {
        std::fs::read(&file.0).unwrap().windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    assert!(has(&bus, &[239, 0, 0, 1, 0x12, 0xe8, 0x12, 0xe8]) && has(&line, b"MQTT"));
    assert!(has(&trace, b"NetworkMessage") && has(&trace, b"PUBLISH"));
    let figures = document(&sim(&[plant, "--json", "--seeds", "1"]));
    let figure = |name: &str| figures["cases"][0]["figures"][name]["median"].as_f64();
    assert_eq!(figure("archive.missing_percent"), Some(0.0));
    assert!(figure("dashboard.lost_messages").is_some() && figure("meter.missed_cycles") == Some(0.0));
    let said = error(&sim(&[plant, "--set", "threshold.1.below=1", "--seeds", "1"]), 99);
    assert!(said.contains("control-room.delay_p99_ms is"), "{said}");
}

#[test]
fn a_profile_of_this_machine_is_measured_and_used() {
    let profile = File::new("host.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    let measured =
        command.args(["lab", "calibrate", "--quick", "--json", "--host", profile.path()]).output().unwrap();
    let measured = document(&measured);
    assert!(measured["profile"]["server"]["send"].as_f64().unwrap() > 0.0, "{measured}");
    let jobs = measured["profile"]["jobs"].as_object().unwrap();
    assert!(jobs.contains_key("open-channel/Basic256Sha256"), "{jobs:?}");
    let short =
        [PLANT, "--json", "--seeds", "1", "--set", "time.duration_s=6", "--host-profile", profile.path()];
    let with = document(&sim(&short));
    let cpu = with["cases"][0]["figures"]["line.cpu_percent"]["median"].as_f64();
    assert!(cpu.unwrap() > 0.0, "{with}");
    let text = std::fs::read_to_string(&profile.0).unwrap();
    // Costs of another version are not comparable.
    std::fs::write(&profile.0, text.replace("version = \"", "version = \"0")).unwrap();
    let said = error(&sim(&short), 2);
    let line = |key: &str| 1 + text.lines().position(|line| line.starts_with(key)).unwrap();
    let place = format!("{}:{}: build.version: ", profile.path(), line("version = "));
    assert!(said.contains(&place) && said.contains("measured with version"), "{said}");
    let said = sim(&[&short[..], &["--any-build"]].concat());
    assert!(said.status.success());
    // An unknown counter.
    std::fs::write(&profile.0, text.replace("[server]", "[server]\nwidgets = 1.0")).unwrap();
    let said = error(&sim(&short), 2);
    let place = |at: usize| format!("{}:{at}: ", profile.path());
    assert!(said.contains(&place(line("[server]") + 1)) && said.contains("server.widgets = 1"), "{said}");
    // Values and formats that this version does not know.
    for (from, to, key) in
        [("format = 1", "format = 9", "format = 9"), ("send = ", "send = -", "server.send = -")]
    {
        std::fs::write(&profile.0, text.replacen(from, to, 1)).unwrap();
        let said = error(&sim(&short), 2);
        assert!(said.contains(&place(line(from))) && said.contains(key), "{said}");
    }
    // What was promised for another processor cannot be measured here.
    let cpu = text.lines().find(|line| line.starts_with("cpu = ")).unwrap();
    std::fs::write(&profile.0, text.replace(cpu, "cpu = \"abacus\"")).unwrap();
    assert!(sim(&short).status.success());
    for command in [
        ["lab", "truth", "--quick", "--host-profile", profile.path()].as_slice(),
        &["tune", "docs/lab/plants/cavalieri.toml", "--measure", "--host-profile", profile.path()],
    ] {
        let mut taktwerk = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        taktwerk.args(command).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let said = error(&taktwerk.stdin(Stdio::null()).output().unwrap(), 2);
        let place = format!("--host-profile: {}:{}: machine.cpu: ", profile.path(), line("cpu = "));
        assert!(said.contains(&place) && said.contains("measured on abacus"), "{said}");
    }
}

#[test]
fn hosts_that_come_with_the_program_are_used_by_name() {
    let short = [PLANT, "--json", "--seeds", "1", "--set", "time.duration_s=6", "--host-profile", "epyc-vm"];
    let placed = document(&sim(&short));
    let cpu = &placed["cases"][0]["figures"]["line.cpu_percent"]["median"];
    assert!(cpu.as_f64().is_some_and(|cpu| cpu > 0.0), "{placed}");

    // Cost models of another version are used with a warning.
    let models = include_str!("../../../../docs/lab/hosts/epyc-vm.json");
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(models.contains(&version), "no version in {models}");
    let old = File::new("models.json");
    std::fs::write(&old.0, models.replace(&version, "\"version\": \"0.0.1\"")).unwrap();
    let predict = |model: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(["model", "predict", "--items", "100", "--json", "--model", model]).output().unwrap()
    };
    let (own, other) = (predict("epyc-vm"), predict(old.path()));
    assert_eq!(document(&own), document(&other));
    assert!(!error(&own, 0).contains("measured with version"));
    assert!(error(&other, 0).contains("measured with version 0.0.1 on 20"));
}

/// The file size limit (`ulimit -f`) makes writing fail, and does not end the program.
#[test]
fn a_file_size_limit_is_reported() {
    let report = File::new("limit.html");
    let limited = "ulimit -f 1; exec \"$0\" sim docs/lab/plants/two-lines.toml --seeds 1 --report \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_taktwerk"), report.path()]).stdin(Stdio::null());
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let said = error(&command.output().unwrap(), 6);
    assert!(said.contains("limit.html") && said.contains("File too large"), "{said}");
    assert!(!Path::new(report.path()).exists(), "half a report");
}

/// A wrong path must not cost the time of a simulation, and no output may overwrite another one.
#[test]
fn outputs_are_checked_before_the_simulation() {
    let (one, folder) = (File::new("same.out"), std::env::temp_dir());
    // Another path of the same file.
    let other = folder.join(".").join(one.0.file_name().unwrap());
    let capture = format!("leased line={}", other.display());
    for (options, wanted) in [
        (["--report", "nowhere/report.html"].as_slice(), "the directory nowhere does not exist"),
        (&["--trace", "nowhere/trace.json"], "the directory nowhere does not exist"),
        (&["--pcap", "leased line=nowhere/line.pcap"], "the directory nowhere does not exist"),
        (&["--report", folder.to_str().unwrap()], "it is a directory"),
        (&["--trace", one.path(), "--pcap", &capture], "--trace and --pcap are both "),
        (&["--report", one.path(), "--trace", other.to_str().unwrap()], "--report and --trace are both "),
        (&["--report", PLANT, "--force"], "the plant and --report are both "),
    ] {
        // Longer than this test may take.
        let long = [PLANT, "--set", "time.duration_s=80000"];
        let said = error(&sim(&[&long[..], options].concat()), 2);
        assert!(said.contains(wanted), "{options:?}: {said}");
        assert!(!one.0.exists(), "{options:?}");
    }
}

#[test]
fn mistakes_are_reported_with_position_and_exit_code() {
    let said = error(&sim(&[PLANT, "--set", "link.0.rate=256k"]), 2);
    assert!(said.contains("--set link.0.rate=256k: link \"leased line\" carries 256 kbit/s"), "{said}");
    let said = error(&sim(&[PLANT, "--set", "client.0.server=plc"]), 2);
    assert!(said.contains("there is no server \"plc\"; there are line"), "{said}");
    let said = error(&sim(&["nowhere.toml"]), 2);
    assert!(said.contains("cannot read nowhere.toml"), "{said}");
    let limit = ["--set", "threshold.0.metric=historian.delay_mean_ms"];
    let said = error(&sim(&[&[PLANT][..], &SHORT, &limit].concat()), 99);
    assert!(said.contains("historian.delay_mean_ms is") && said.contains("below"), "{said}");
    let said = error(&sim(&[&[PLANT][..], &SHORT, &["--set", "time.settle_s=0"]].concat()), 5);
    assert!(said.contains("seed 1: a promise is broken after") && said.contains("at line-1"), "{said}");
    // Values in flight count as stuck at once, so the assertion fails without a fault.
    assert!(said.contains("it needs no fault: the plant alone shows it"), "{said}");
    assert!(said.contains("--seeds 1 --seed 1"), "{said}");
}

/// What makes each plant of `docs/lab/plants` short, and a figure that it must have.
const PLANTS: [(&str, &[&str], &str); 8] = [
    ("burger-case-1.toml", &[], "per_second"),
    ("burger-case-2.toml", &["node.0.count=1", "node.1.count=1"], "per_second"),
    ("cavalieri.toml", &["tune.measured_s=1", "tune.search.publishing_ms=40"], "delay_mean_ms"),
    ("certificates.toml", &["time.duration_s=16"], "plant-ca.answer_mean_ms"),
    ("fieldbus.toml", &["time.duration_s=11"], "delay_mean_ms"),
    ("large.toml", &["server.0.count=2", "time.duration_s=2"], "per_second"),
    ("shift-change.toml", &["time.duration_s=4"], "report.round_trip_mean_ms"),
    ("two-lines.toml", &["time.duration_s=6"], "historian.delay_mean_ms"),
];

#[test]
fn every_plant_of_the_book_is_simulated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/plants");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = PLANTS.iter().find(|(known, ..)| *known == name);
        let (_, sets, figure) = known.unwrap_or_else(|| panic!("add {name} to PLANTS"));
        let file = format!("docs/lab/plants/{name}");
        let mut arguments = vec![file.as_str(), "--json", "--seeds", "1"];
        arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
        let all = document(&sim(&arguments));
        for case in all["cases"].as_array().unwrap() {
            let figures = case["figures"].as_object().unwrap();
            // `due_per_second` is another figure.
            let is_it = |known: &str| known == *figure || known.ends_with(&format!(".{figure}"));
            let found = figures.iter().find(|(known, _)| is_it(known));
            let median = found.and_then(|(_, one)| one["median"].as_f64());
            assert!(median.is_some_and(|value| value > 0.0), "{name}: {figures:?}");
        }
        seen += 1;
    }
    assert_eq!(seen, PLANTS.len(), "PLANTS names a file that does not exist");
}

#[test]
fn operators_that_log_in_together_wait_for_passwords() {
    let plant = "docs/lab/plants/shift-change.toml";
    let of = |login: &str| {
        let login = format!("client.1.login={login}");
        document(&sim(&[plant, "--json", "--seeds", "1", "--set", &login, "--set", "time.duration_s=5"]))
    };
    let figure = |document: &Value, name: &str| {
        document["cases"][0]["figures"][name]["median"].as_f64().unwrap_or_else(|| panic!("{name}"))
    };
    let (passwords, anonymous) = (of("password"), of("anonymous"));
    // Each of 40 clients loses its connection once and restores it.
    for document in [&passwords, &anonymous] {
        assert_eq!(figure(document, "operators.reconnects"), 40.0);
        assert_eq!(figure(document, "report.failed"), 0.0);
        assert_eq!(figure(document, "control-room.missing_percent"), 0.0);
    }
    let up = |document: &Value| figure(document, "operators.session_up_ms");
    assert!(up(&passwords) > up(&anonymous) + 100.0, "{} {}", up(&passwords), up(&anonymous));
    let outage = |document: &Value| figure(document, "operators.outage_ms");
    assert!(outage(&passwords) > outage(&anonymous), "{} {}", outage(&passwords), outage(&anonymous));
}

#[test]
fn authorities_that_are_far_or_down_are_answers_of_a_plant() {
    let plant = "docs/lab/plants/certificates.toml";
    let of = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", *set]);
        document(&sim(&[plant, "--json", "--seeds", "1"].into_iter().chain(sets).collect::<Vec<_>>()))
    };
    let figure = |document: &Value, name: &str| {
        document["cases"][0]["figures"][name]["median"].as_f64().unwrap_or_else(|| panic!("{name}"))
    };
    let (near, far) = (of(&["link.1.delay=1ms"]), of(&["link.1.delay=300ms"]));
    let up = |document: &Value| figure(document, "control-room.session_up_ms");
    assert!(up(&far) > up(&near) + 2_000.0, "{} {}", up(&far), up(&near));
    assert!(figure(&near, "plant-ca.unanswered") > 0.0, "{near}");
    let accepts = of(&["link.1.delay=1ms", "authority.0.on_failure=accept", "authority.0.timeout_s=1"]);
    let outage = |document: &Value| figure(document, "control-room.outage_ms");
    assert!(outage(&accepts) < outage(&near), "{} {}", outage(&accepts), outage(&near));

    let said = error(&sim(&[plant, "--set", "server.0.authorities=[\"nobody\"]"]), 2);
    assert!(said.contains("server.0.authorities") && said.contains("there are plant-ca, root-ca"), "{said}");
    let said = error(&sim(&[plant, "--set", "authority.0.valid_s=9"]), 2);
    assert!(said.contains("OCSP answers are not kept"), "{said}");
    let said = error(&sim(&[plant, "--set", "fault.0.kind=slow"]), 2);
    assert!(said.contains("fault.0.by") && said.contains("such as \"2s\""), "{said}");
    let said = error(&sim(&[plant, "--set", "fault.1.kind=slow"]), 2);
    assert!(said.contains("only a certificate authority can be slow"), "{said}");
}

#[test]
fn plants_of_tune_keep_their_clock_and_their_machines() {
    let plant = "docs/lab/plants/cavalieri.toml";
    let short =
        ["--json", "--seeds", "1", "--set", "tune.measured_s=4", "--set", "tune.search.publishing_ms=20"];
    let of = |more: &[&str]| document(&sim(&[&[plant][..], &short, more].concat()));
    let figure = |document: &Value, name: &str| document["cases"][0]["figures"][name]["median"].as_f64();
    let clock = of(&[]);
    let every = of(&["--set", "tune.publish_every=0.4"]);
    let up = |document: &Value| {
        figure(document, "link.up_bits_s").or(figure(document, "ppp-2m,busy=30%.up_bits_s"))
    };
    let (clock, every) = (up(&clock).unwrap(), up(&every).unwrap());
    // Twice as many Publish requests.
    assert!(every > clock * 1.5, "{every} {clock}");
    let placed = of(&["--set", "tune.host=epyc-vm"]);
    assert!(figure(&placed, "server.cpu_percent").is_some_and(|cpu| cpu > 0.0), "{placed}");
    assert!(figure(&placed, "subscribe.client_cpu_percent").is_some_and(|cpu| cpu > 0.0), "{placed}");
    let said = error(&sim(&[plant, "--set", "tune.host=vax"]), 2);
    assert!(said.contains("tune.host") && said.contains("cannot read") && said.contains("epyc-vm"), "{said}");
}
