//! Models and plants on the command line: fitting, prediction and sizing.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use taktwerk_lab::latency::Times;
use taktwerk_lab::measurement::Measurement;
use taktwerk_lab::scenario::{Condition, Kind, LoadSpec, Scenario, Sweep};
use taktwerk_lab::store::Store;

/// A directory with the results of an ideal, noise-free calibration.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taktwerk-models-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taktwerk"));
        command.args(arguments).current_dir(&self.0).env("TAKTWERK_RESULTS", self.0.join("results.sqlite"));
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Stores a run of `lab calibrate` of two stacks: the own one, and one that is two hundred times as expensive.
    fn calibrated(name: &str) -> Self {
        let place = Self::new(name);
        let mut store = Store::open(&place.0.join("results.sqlite")).unwrap();
        let run = store.begin("made", "calibrate", true, &json!({})).unwrap();
        for (stack, times) in [("own", 1.0), ("slow", 200.0)] {
            for condition in conditions(stack) {
                for repetition in 0..2 {
                    store.add(run, &measured(&condition, repetition, times)).unwrap();
                }
            }
        }
        store.finish(run, &[]).unwrap();
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn conditions(stack: &str) -> Vec<Condition> {
    let mut all = Vec::new();
    for interval in [50.0, 100.0, 250.0] {
        let mut load = LoadSpec::new(Kind::Subscribe);
        load.clients = Some(Sweep::Many(vec![1, 5, 20]));
        load.items = Some(Sweep::Many(vec![100, 1_000, 5_000]));
        load.publishing_ms = Some(interval.into());
        let mut scenario = Scenario::new("calibrate", load);
        scenario.stacks = vec![stack.to_owned()];
        all.extend(scenario.conditions());
    }
    all
}

/// CPU: 0.3 % at rest, 0.4 µs per signal and 20 µs per message, multiplied by `times`. Memory: 20 MB, 1 kB per item,
/// 100 kB per client. Network: 20 bytes per signal and 150 per message.
fn measured(condition: &Condition, repetition: u32, times: f64) -> Measurement {
    let (items, clients) = (f64::from(condition.items.unwrap()), f64::from(condition.clients));
    let rate = 1e3 / condition.publishing_ms.unwrap();
    let (signals, messages) = (items * rate, clients * rate);
    let document = json!({
        "window_s": 1.0, "per_second": signals, "invalid": [],
        "server": {
            "cpu_percent": (0.3 + signals * 0.4e-4 + messages * 20e-4) * times,
            "rss_bytes": 20e6 + items * 1e3 + clients * 1e5,
        },
        "wire": {"total_bytes": signals * 20.0 + messages * 150.0},
    });
    Measurement::from_document("calibrate", condition.clone(), repetition, document)
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_fitted_model_predicts_its_own_data() {
    let place = Place::calibrated("fit");
    let fitted = place.run(&["model", "fit", "-o", "model.json", "--json"]);
    assert_eq!(code(&fitted), Some(0), "{fitted:?}");
    let stacks: Vec<Value> =
        document(&fitted).as_array().unwrap().iter().map(|model| model["stack"].clone()).collect();
    assert_eq!(stacks, ["own", "slow"]);
    // The file is sufficient on a machine without results.
    let predict_items = |items: &str, more: &[&str]| {
        let load = ["model", "predict", "--items", items, "-c", "10", "-I", "100", "--json"];
        place.run(&[&load[..], more].concat())
    };
    let predict = |more: &[&str]| predict_items("2000", more);
    std::fs::write(place.0.join("none.json"), "[]").unwrap();
    std::fs::remove_file(place.0.join("results.sqlite")).unwrap();
    let predicted = document(&predict(&["--model", "model.json"]));
    let near = |pointer: &str, expected: f64| {
        let value = predicted.pointer(pointer).and_then(Value::as_f64).unwrap();
        assert!((value / expected - 1.0).abs() < 0.05, "{pointer}: {value} instead of {expected}");
    };
    // 20 000 signals and 100 messages per second.
    near("/prediction/cpu_percent", 0.3 + 0.8 + 0.2);
    near("/memory_bytes", 20e6 + 2e6 + 1e6);
    near("/wire_bytes_per_s", 400e3 + 15e3);
    assert_eq!(predicted["outside"], json!([]));
    let said = predict(&["--model", "model.json", "--encrypted"]);
    assert!(document(&said)["outside"][0].as_str().unwrap().contains("encryption"), "{said:?}");
    for (wrong, word) in [
        (predict(&["--model", "model.json", "--stack", "milo"]), "available: own, slow"),
        (predict(&["--model", "no-such-file"]), "cannot read no-such-file"),
        (predict(&["--model", "none.json"]), "is not a file of models: it contains no model"),
        (predict_items("inf", &["--model", "model.json"]), "a number from 0 on"),
        (predict(&[]), "lab calibrate --quick"),
    ] {
        let said = String::from_utf8_lossy(&wrong.stderr);
        assert!(code(&wrong) == Some(2) && said.contains(word), "{wrong:?}");
    }
}

#[test]
fn the_exit_code_says_whether_plants_fit() {
    let place = Place::calibrated("size");
    assert_eq!(code(&place.run(&["model", "fit", "-o", "model.json"])), Some(0));
    let plants = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/plants");
    for plant in ["burger-case-1.toml", "burger-case-2.toml"] {
        let plant = plants.join(plant);
        let size = |more: &[&str]| {
            let size = ["size", plant.to_str().unwrap(), "--model", "model.json"];
            place.run(&[&size[..], more].concat())
        };
        let verdicts = |output: &Output| -> Vec<String> {
            let nodes = document(output)["nodes"].as_array().unwrap().clone();
            nodes.iter().map(|node| node["verdict"].as_str().unwrap().to_owned()).collect()
        };
        let fits = size(&["--json"]);
        assert_eq!((code(&fits), verdicts(&fits).len()), (Some(0), 2), "{fits:?}");
        let text = size(&[]);
        let said = String::from_utf8_lossy(&text.stdout);
        assert!(code(&text) == Some(0) && said.contains("controller") && said.contains("FCI"), "{said}");
        // A load that is cheap for the own stack is more than a core at two hundred times the price.
        let slow = size(&["--stack", "slow"]);
        let said = String::from_utf8_lossy(&slow.stderr);
        assert!(code(&slow) == Some(99) && said.contains("does not hold"), "{slow:?}");
        let slow = size(&["--stack", "slow", "--json"]);
        assert_ne!(verdicts(&slow), verdicts(&fits), "{slow:?}");
        assert_eq!(code(&slow), Some(99), "{slow:?}");
    }
    let wrong = place.run(&["size", "no-such-plant.toml", "--model", "model.json"]);
    assert_eq!(code(&wrong), Some(2), "{wrong:?}");
}

#[test]
fn a_fully_calibrated_plant_needs_no_stored_results() {
    let place = Place::calibrated("calibrated");
    assert_eq!(code(&place.run(&["model", "fit", "-o", "small.json"])), Some(0));
    std::fs::remove_file(place.0.join("results.sqlite")).unwrap();
    let plant = |hardware: &str| {
        let node = "[[node]]\nname = \"a\"\npoints = 100\nclients = 2\ninterval_ms = 100\n";
        let small = "[[hardware]]\nname = \"small\"\ncalibration = \"small.json\"\n";
        let text = format!("name = \"x\"\n{small}{node}{hardware}");
        std::fs::write(place.0.join("plant.toml"), text).unwrap();
        place.run(&["size", "plant.toml", "--json"])
    };
    let sized = plant("hardware = \"small\"");
    assert!(code(&sized) == Some(0) && document(&sized)["nodes"][0]["verdict"] == "fits", "{sized:?}");
    let missing = plant("");
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(code(&missing) == Some(2) && said.contains("lab calibrate"), "{missing:?}");
}

#[test]
fn a_calibration_without_measurements_is_invalid() {
    let place = Place::new("calibrate");
    let failed = place.run(&["lab", "calibrate", "--quick", "--program", "/bin/false", "--json"]);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(code(&failed) == Some(5) && said.contains("too few for a model"), "{failed:?}");
    // All attempts are stored, with the reason for each failure.
    let runs = document(&place.run(&["lab", "runs", "--json"]));
    assert_eq!(runs["runs"][0]["state"], "complete", "{runs}");
    assert_eq!(runs["runs"][0]["invalid"], runs["runs"][0]["measurements"], "{runs}");
}

#[test]
fn a_running_server_shows_the_load_that_the_model_predicts() {
    let place = Place::calibrated("headroom");
    assert_eq!(code(&place.run(&["model", "fit", "-o", "model.json"])), Some(0));
    let ramp = |more: &[&str]| {
        let all = ["lab", "headroom", "--model", "model.json", "--steps", "1", "--json"];
        place.run(&[&all, more].concat())
    };
    // Twelve clients: per second 60 000 signals of 0.4 µs and 600 messages of 20 µs, plus 0.3 % at rest.
    let output = ramp(&["--until", "4", "--window", "5"]);
    match code(&output) {
        // The error of a model from another build may exceed the allowed one.
        Some(0 | 99) => {
            let holds = &document(&output)["findings"][0]["holds"];
            assert_eq!(holds.as_bool(), Some(code(&output) == Some(0)), "{holds}");
            let step = &document(&output)["steps"][0];
            let predicted = step["predicted"].as_f64().unwrap();
            assert!((3.0..6.0).contains(&predicted), "{step}");
            assert!(step["actual"].as_f64().unwrap() > 0.0, "{step}");
        }
        // The load generator reports if this machine has too little time for it.
        other => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(other == Some(5) && said.contains("clients: "), "{other:?} {said}");
        }
    }
    for (wrong, hint) in [
        (["--until", "0"], "--until 0"),
        (["--window", "1"], "write 3 to 600 seconds"),
        (["--model", "none.json"], "cannot read none.json"),
    ] {
        let all: &[&str] = if wrong[0] == "--model" {
            &["lab", "headroom"]
        } else {
            &["lab", "headroom", "--model", "model.json"]
        };
        let output = place.run(&[all, &wrong].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(code(&output) == Some(2) && said.contains(hint), "{said}");
    }
}

#[test]
fn stored_measurements_are_compared_with_another_host_profile() {
    let place = Place::new("truth");
    let mut store = Store::open(&place.0.join("results.sqlite")).unwrap();
    let mut load = LoadSpec::new(Kind::Read);
    (load.batch, load.pause_ms) = (Some(Sweep::One(30)), Some(5.0));
    let condition = Scenario::new("truth", load).conditions().remove(0);
    let run = store.begin("before", "truth", false, &json!({"program": "another build"})).unwrap();
    for (repetition, cpu) in [(0, 0.8), (1, 1.0)] {
        let document = json!({
            "window_s": 1.0, "invalid": [],
            "server": {"threads_percent": {"taktwerk-0": cpu, "signals": 9.0}},
            "generator": {"cpu_percent": 2.0},
        });
        let mut one = Measurement::from_document("truth", condition.clone(), repetition, document);
        let mut times = Times::new();
        (0..190).for_each(|_| times.record(100_000));
        one.histograms.insert("latency".to_owned(), times);
        store.add(run, &one).unwrap();
    }
    store.finish(run, &[]).unwrap();
    let other = store.begin("loads", "calibrate", true, &json!({})).unwrap();
    store.finish(other, &[]).unwrap();
    drop(store);
    let said = place.run(&["lab", "truth", "--stored", "before", "--host-profile", "epyc-vm", "--json"]);
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    let pairs = said["pairs"].as_array().unwrap();
    assert_eq!((said["run"].as_i64(), pairs.len()), (Some(run), 1), "{said}");
    let [measured, simulated] = [0, 1].map(|at| pairs[0]["figures"][2][at].as_f64().unwrap());
    assert!((measured - 0.9).abs() < 1e-9 && simulated > 0.0, "{said}");
    let cpu = &said["summary"]["errors"][2];
    assert!((cpu["again"].as_f64().unwrap() - (1.0f64 / 0.8).ln()).abs() < 1e-9, "{cpu}");
    for (run, hint) in [("loads", "lab truth"), ("no-such-run", "no-such-run")] {
        let refused = place.run(&["lab", "truth", "--stored", run, "--host-profile", "epyc-vm"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(hint), "{said}");
    }
    let alone = place.run(&["lab", "truth", "--stored", "before"]);
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
}
