//! The files that `taktwerk tune` writes are valid for their programs.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use taktwerk_config::ConfigFile;

const PLANT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab/plants/cavalieri.toml");

/// A directory that is deleted when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taktwerk-tuned-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Tunes the paper's plant with formulas only.
    fn tune(&self, more: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        let out = self.0.join("tuned");
        command.args(["tune", PLANT, "--no-simulation", "--json", "-o"]).arg(&out).args(more);
        let output = command.current_dir(&self.0).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join("tuned").join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `config check` accepts the file. No user can log on until one is added.
fn server(path: &Path) -> ConfigFile {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    let output = command.args(["config", "check", "--json"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["Users"], &told["Anonymous"]), (&0.into(), &false.into()), "{told}");
    assert!(told["Warnings"][0].as_str().unwrap().contains("taktwerk user add"), "{told}");
    ConfigFile::load(path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_file_is_valid_and_has_the_recommended_settings() {
    let place = Place::new("files");
    let told = place.tune(&["--endpoint", "opc.tcp://plc7:4840"]);
    let best = &told["recommended"];
    let interval = best["publishing_ms"].as_f64().unwrap();
    assert_eq!(best["security"], "sign-and-encrypt");

    let configuration = server(&place.path("server.toml"));
    // An existing users file is kept.
    let mut add = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    let password = place.0.join("password");
    std::fs::write(&password, "a long enough secret\n").unwrap();
    add.args(["user", "add", "olaf", "--role", "Operator", "--password-file"]).arg(&password);
    let added = add.arg("--file").arg(place.path("users.toml")).output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    place.tune(&["--force"]);
    assert!(place.text("users.toml").contains("olaf"));
    place.tune(&["--endpoint", "opc.tcp://plc7:4840", "--force"]);
    let modes = configuration.modes().unwrap();
    assert_eq!(format!("{modes:?}"), "[SignAndEncrypt]");
    let mut limits = taktwerk_server::Limits::default();
    configuration.apply_limits(&mut limits);
    assert!(limits.subscriptions.publishing_interval_min <= interval, "{limits:?}");

    // OPC Publisher: a list of endpoints with their nodes.
    let publisher: Value = serde_json::from_str(&place.text("publishednodes.json")).unwrap();
    let [endpoint] = &publisher.as_array().unwrap()[..] else { panic!("{publisher}") };
    assert_eq!(endpoint["EndpointUrl"], "opc.tcp://plc7:4840");
    assert_eq!(endpoint["UseSecurity"], true);
    assert_eq!(endpoint["EndpointSecurityMode"], "SignAndEncrypt");
    let nodes = endpoint["OpcNodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 15);
    for node in nodes {
        assert_eq!(node["OpcPublishingInterval"].as_f64(), Some(interval.round()), "{node}");
        assert!(node["QueueSize"].as_u64().unwrap() >= 2 && node["Id"].is_string(), "{node}");
    }

    // Telegraf: the input plugin opcua_listener.
    let telegraf: toml::Table = place.text("telegraf.conf").parse().unwrap();
    let listener = &telegraf["inputs"]["opcua_listener"][0];
    assert_eq!(listener["endpoint"].as_str(), Some("opc.tcp://plc7:4840"));
    assert_eq!(listener["security_mode"].as_str(), Some("SignAndEncrypt"));
    assert_eq!(listener["nodes"].as_array().unwrap().len(), 15);
    assert_eq!(listener["subscription_interval"].as_str(), Some(&*format!("{}us", (interval * 1e3).round())));

    let client: toml::Table = place.text("client.toml").parse().unwrap();
    let subscription = &client["subscription"];
    assert_eq!(subscription["requested_publishing_interval_ms"].as_float(), Some(interval));
    assert!(place.text("front.svg").starts_with("<svg"));
}

/// Whatever makes a search useless is told with its place, also if only formulas are asked.
#[test]
fn what_prevents_a_recommendation_is_told_with_its_place() {
    let place = Place::new("places");
    let line = |key: &str| {
        let text = std::fs::read_to_string(PLANT).unwrap();
        1 + text.lines().position(|line| line.starts_with(key)).unwrap()
    };
    let link = format!("{PLANT}:{}: link.", line("profile = "));
    for (arguments, code, wanted) in [
        (["--set", "signals.0.count=5000"].as_slice(), 2, &*link),
        (&["--set", "link.rate=300k"], 2, "--set link.rate=300k: the link has no capacity"),
        (&["--constraint", "delay_p99_ms <= 1"], 99, "--constraint \"delay_p99_ms <= 1\": no setting meets"),
        (&["--set", "tune.host=nope"], 2, "--set tune.host=nope: cannot read nope: "),
        (&["--endpoint", "opc.http://somewhere"], 2, "'opc.http://somewhere' for '--endpoint <URL>'"),
        (&["--set", "signals.0.nodes=[\"nope\"]"], 2, "[\"nope\"]: not a NodeId: \"nope\""),
        (&["--set", "signals.0.nodes=[\"svr=1;i=1\"]"], 2, "without svr="),
        (&["--set", "signals.0.nodes=[\"ns=2;s=\"]"], 2, "the identifier is empty"),
        (&["--set", "signals.0.nodes=[\"i=1\"]", "--set", "signals.0.count=0"], 2, "0 is not from 1"),
        (&["--node", "i=85"], 2, "--node i=85 has no effect with a file"),
        (&["--set", "link.busy=99.9999%"], 2, "--set link.busy=99.9999%: "),
        (&["-o", PLANT], 6, "cannot make "),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(["tune", PLANT, "--no-simulation"]).args(arguments);
        let output = command.current_dir(&place.0).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
}

#[test]
fn formulas_say_that_they_ignore_losses() {
    let place = Place::new("losses");
    let notes = |more: &[&str]| place.tune(more)["notes"].to_string();
    assert!(!notes(&[]).contains("loses packets"));
    assert!(notes(&["--force", "--set", "link.loss=1%"]).contains("the link loses packets"));
}

/// A single figure is minimized, within constraints.
#[test]
fn one_figure_can_be_minimized() {
    let place = Place::new("single");
    let tuned = place.tune(&["--minimize", "bandwidth_bits_s", "--constraint", "delay_p99_ms <= 50"]);
    let [delay, own] =
        ["delay_p99_ms", "bandwidth_bits_s"].map(|name| tuned["recommended"][name].as_f64().unwrap());
    let all = tuned["points"].as_array().unwrap().iter().filter(|point| point["is_feasible"] == true);
    let least = all.map(|point| point["bandwidth_bits_s"].as_f64().unwrap()).fold(f64::MAX, f64::min);
    assert!(delay <= 50.0 && own <= least, "{delay} ms, {own} of {least} bit/s");
}

#[test]
fn a_clock_for_publish_requests_and_a_number_of_them_exclude_each_other() {
    let place = Place::new("clock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    command.args(["tune", PLANT, "--no-simulation", "--set", "tune.search.publish_requests=[1,2]"]);
    let output = command.current_dir(&place.0).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("tune.publish_every") && said.contains("remove one of both"), "{said}");
}

#[test]
fn the_laboratory_accepts_the_confirmation_scenario() {
    let place = Place::new("confirm");
    let plant = place.0.join("plant.toml");
    std::fs::write(&plant, "link = \"ppp-2m\"\n[[signals]]\ncount = 15\nperiod_ms = 10\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
    command.args(["tune", "plant.toml", "--no-simulation", "-o", "tuned"]).current_dir(&place.0);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("confirm.toml"));
    let scenario =
        taktwerk_lab::scenario::Scenario::parse(&place.text("confirm.toml"), "confirm.toml").unwrap();
    let [condition] = &scenario.conditions()[..] else { panic!("{scenario:?}") };
    assert_eq!((condition.link.as_deref(), condition.items), (Some("ppp-2m"), Some(15)));
    let [set] = condition.server.sets[..] else { panic!("{condition:?}") };
    assert_eq!((set.count, set.period_ms, scenario.thresholds.len()), (15, 10.0, 3));
    scenario.check_measured(&place.text("confirm.toml"), "confirm.toml").unwrap();
}

/// The load of a confirmation without its link, which would need rights.
#[test]
fn the_confirmation_load_measures_every_value_of_all_sets() {
    let text = "name = \"x\"\n[server]\nsets = [\"5:5:4\", \"3:15:8\"]\n\
                [load]\nkind = \"subscribe\"\nclients = 2\nitems = 16\npublishing_ms = 40\nsampling_ms = 0\n\
                queue = 100\neach_value = true\npublish_every = 0.8\n\
                [time]\nwarmup_s = 0.5\nduration_s = 2\nrepetitions = 1\nsteady = false\n";
    let scenario = taktwerk_lab::scenario::Scenario::parse(text, "x.toml").unwrap();
    let place = taktwerk_lab::place::Place::new(env!("CARGO_BIN_EXE_taktwerk").into(), "/none".into());
    let one = place.measure("", &scenario.conditions()[0], 0).unwrap();
    let figure = |name: &str| one.metrics.get(name).copied().unwrap_or_else(|| panic!("{name}: {one:?}"));
    // Two clients receive 1 200 values/s each. A busy machine skips some updates.
    let values = figure("notifications");
    assert!((3_000.0..5_300.0).contains(&values), "{values}");
    assert_eq!((figure("age.count"), figure("progress.overflows")), (values, 0.0));
    assert!(figure("age.mean_us") < figure("age.p99_us") && figure("delivery.count") < values / 4.0);
    // The clock is faster than the messages, so the server refuses the rest.
    assert!(figure("publish_requests_refused") > 0.0);
}

#[test]
fn a_recommendation_that_cannot_be_measured_says_why() {
    let place = Place::new("unmeasured");
    let signals = "[[signals]]\ncount = 15\nperiod_ms = 10\n";
    std::fs::write(place.0.join("line.toml"), format!("link = \"ppp-2m\"\n{signals}")).unwrap();
    std::fs::write(
        place.0.join("shared.toml"),
        format!("{signals}[link]\nrate = \"2mbit\"\nshared = true\n"),
    )
    .unwrap();
    for (plant, set, why) in [
        ("line.toml", "tune.search.transport=pubsub", "PubSub cannot be measured"),
        ("shared.toml", "tune.search.transport=session", "both directions share"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(["tune", plant, "--no-simulation", "--measure", "--json", "--set", set]);
        let output = command.current_dir(&place.0).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{plant}: {said}");
        assert!(said.contains("was not confirmed") && said.contains(why), "{plant}: {said}");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["confirmation"]["confirmed"], Value::Null);
        assert!(told["recommended"]["publishing_ms"].is_number(), "{told}");
    }
}
