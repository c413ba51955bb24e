//! `alarms` against `serve`.

use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use taktwerk_lab::program::{Program, Running};

const LIMIT: Duration = Duration::from_secs(60);
const BINARY: &str = env!("CARGO_BIN_EXE_taktwerk");

fn demo() -> Running {
    Program::new(BINARY)
        .args(["serve", "--port", "0", "--policy", "None", "--exit-with-stdin", "--quiet"])
        .serve(LIMIT)
        .unwrap()
}

fn alarms(url: &str, arguments: &[&str]) -> Output {
    Command::new(BINARY).args(["alarms", url, "--policy", "None"]).args(arguments).output().unwrap()
}

fn list(url: &str) -> Vec<Value> {
    let output = alarms(url, &["--list", "--json", "-I", "100"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_alarm_of_the_demo_is_listed_acknowledged_and_shelved() {
    let server = demo();
    // The history begins an hour ago, so some sensor exceeds a limit soon; the level does so every four minutes.
    let end = Instant::now() + Duration::from_secs(240);
    let found = loop {
        let found = list(server.url());
        if let Some(alarm) = found.iter().find(|alarm| alarm["Acknowledged"] == false) {
            break alarm.clone();
        }
        assert!(Instant::now() < end, "no alarm in four minutes");
        std::thread::sleep(Duration::from_secs(2));
    };
    let id = found["ConditionId"].as_str().unwrap();
    assert!(found["Message"].as_str().unwrap().contains("limit"), "{found}");
    let output = alarms(server.url(), &["--acknowledge", id, "--comment", "seen", "--json"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    // If the severity has just increased, the server reports that instead.
    assert!(output.status.success() || told.contains("BadEventIdUnknown"), "{told}");
    if output.status.success() {
        let output = alarms(server.url(), &["--shelve", id, "--for", "30s"]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && told.contains("done"), "{told}");
        let now = list(server.url());
        let alarm = now.iter().find(|alarm| alarm["ConditionId"] == id).unwrap();
        assert_eq!(
            (alarm["SuppressedOrShelved"].clone(), alarm["Comment"].clone()),
            (true.into(), "seen".into())
        );
    }
    let output = alarms(server.url(), &["--acknowledge", "there is no such alarm"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no alarm in the list matches"));
}

/// Dialogs and acknowledged alarms need no acknowledgement: `--acknowledge all` is successful, however often it is used.
#[test]
fn all_alarms_are_acknowledged_repeatedly_beside_a_dialog() {
    let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:test:alarms").folder("Plant").unwrap();
    plant.variable("Hot", true).add().unwrap().alarm().off_normal(false).add().unwrap();
    let dialog = plant.dialog("Question", "Proceed?", &["Yes", "No"]).add().unwrap();
    dialog.ask();
    let running = server.spawn().unwrap();
    let url = running.url();
    let end = Instant::now() + LIMIT;
    while list(&url).len() < 2 {
        assert!(Instant::now() < end, "{:?}", list(&url));
        std::thread::sleep(Duration::from_millis(100));
    }
    for done in [1, 0] {
        let output = alarms(&url, &["--acknowledge", "all", "-I", "100"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), done, "{said}");
        let skipped = if done == 1 { "skipped 1 condition for" } else { "skipped 2 conditions for" };
        assert!(said.contains(skipped), "{said}");
    }
    // For one alarm, the server's reason is the result.
    let output = alarms(&url, &["--acknowledge", "Hot", "-I", "100"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("AlreadyAcked"), "{output:?}");
    // An empty list is no failure either.
    running.stop(Duration::from_secs(1));
    let empty = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap().spawn().unwrap();
    let output = alarms(&empty.url(), &["--acknowledge", "all", "-I", "100"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    empty.stop(Duration::from_secs(1));
}

/// The dialog of the demo plant is listed until an operator responds, and its answer is an event.
#[test]
fn the_demo_asks_a_question_until_an_operator_responds() {
    let server = demo();
    let dialog =
        || list(server.url()).into_iter().find(|alarm| alarm["ConditionName"] == "MaintenanceDialog");
    let end = Instant::now() + LIMIT;
    let found = loop {
        if let Some(found) = dialog() {
            break found;
        }
        assert!(Instant::now() < end, "the demo does not ask");
        std::thread::sleep(Duration::from_secs(1));
    };
    assert_eq!(found["Message"], "May the conveyor be stopped for maintenance?");
    let run = |arguments: &[&str]| {
        let output = Command::new(BINARY).args(arguments).args(["--policy", "None"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["call", server.url(), "ns=2;s=Plant/MaintenanceDialog/Respond", "1"]);
    assert_eq!(dialog(), None, "it is answered");
    let end = Instant::now() + LIMIT;
    while !run(&["history", server.url(), "i=2253", "--events"]).contains("Answer about maintenance: No") {
        assert!(Instant::now() < end, "the answer is no event");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn alarm_states_are_stored_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    let text = "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\n[security]\nnone = true\n\
                [identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n\
                [alarms]\nfile = \"alarms.bin\"\nmetrics_minutes = 10\n\
                [[alarms.alarm]]\nvariable = \"nsu=urn:taktwerk:demo-plant;s=Plant/Cycles\"\nname = \"Running\"\n\
                high = 5.0\nseverity = 250\n\
                [[alarms.group]]\nname = \"All\"\nmembers = [\"nsu=urn:taktwerk:demo-plant;s=Plant/Cycles/Running\"]\n\
                first_in_group = true\n";
    std::fs::write(&config, text).unwrap();
    let server = Program::new(BINARY)
        .args(["serve", "--config", config.to_str().unwrap(), "--exit-with-stdin", "--quiet"])
        .serve(LIMIT)
        .unwrap();
    let end = Instant::now() + LIMIT;
    while !list(server.url()).iter().any(|alarm| alarm["ConditionName"] == "Running") {
        assert!(Instant::now() < end, "the alarm does not come");
        std::thread::sleep(Duration::from_millis(200));
    }
    let read = |node: &str| {
        let output = Command::new(BINARY).args(["read", server.url(), node, "--json"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let first = read("nsu=urn:taktwerk:demo-plant;s=Plant/Cycles/Running/FirstInGroupFlag");
    assert!(first.contains("true"), "{first}");
    let metrics = read("ns=1;s=AlarmMetrics/MaximumAlarmRate/Rate");
    assert!(metrics.contains("10"), "{metrics}");
    while !folder.path().join("alarms.bin").is_file() {
        assert!(Instant::now() < end, "the file does not come");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(server);
    std::fs::write(&config, text.replace("high = 5.0", "high = 5.0\nlow = 6.0")).unwrap();
    let output = Command::new(BINARY).args(["serve", "--config", config.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("[[alarms.alarm]]") && told.contains("must rise"), "{told}");
    std::fs::write(&config, text.replace("Cycles/Running", "Cycles/Resting")).unwrap();
    let output = Command::new(BINARY).args(["serve", "--config", config.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("[[alarms.group]] name = \"All\"") && told.contains("is not an alarm"), "{told}");
}

/// The list is complete and empty, because the events are hidden.
#[test]
fn an_empty_list_says_that_the_user_may_not_see_alarms() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    let serve = |permissions: &str| {
        let text = format!(
            "[server]\nbind = [\"127.0.0.1:0\"]\n[security]\npolicies = []\nnone = true\n[identities]\nanonymous = true\n\
             [[namespace]]\nuri = \"http://opcfoundation.org/UA/\"\n[namespace.permissions]\n\
             Anonymous = [\"Browse\", \"Read\", \"Call\"{permissions}]\n"
        );
        std::fs::write(&config, text).unwrap();
        let program = Program::new(BINARY).args(["serve", "--config", config.to_str().unwrap()]);
        program.args(["--exit-with-stdin"]).serve(LIMIT).unwrap()
    };
    for (permissions, is_told) in [("", true), (", \"ReceiveEvents\"", false)] {
        let server = serve(permissions);
        let listed = alarms(server.url(), &["--list"]);
        let told = String::from_utf8_lossy(&listed.stderr).into_owned();
        assert!(listed.status.success(), "{told}");
        assert_eq!(
            told.contains("may not receive events of alarms from this server: log in"),
            is_told,
            "{told}"
        );
    }
}

/// The permissions in a file of `config init` are sufficient for operators.
#[cfg(feature = "gateway")]
#[test]
fn only_operators_see_and_acknowledge_alarms_of_a_generated_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let (config, users) = (folder.path().join("gateway.toml"), folder.path().join("users.toml"));
    let [config, users] = [&config, &users].map(|path| path.to_str().unwrap());
    let run = |arguments: &[&str], input: &str| {
        let secret = folder.path().join("secret");
        std::fs::write(&secret, input).unwrap();
        let input = std::fs::File::open(secret).unwrap();
        let output = Command::new(BINARY).args(arguments).stdin(input).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["config", "init", config, "--modbus", "127.0.0.1:9"], "");
    run(
        &["user", "add", "olaf", "--role", "Operator", "--file", users, "--password-file", "-"],
        "correct horse\n",
    );
    let text = std::fs::read_to_string(config).unwrap();
    let text = text
        .replace("127.0.0.1:4840", "127.0.0.1:0")
        .replace("anonymous = true", "anonymous = true\nclear_passwords = true\nusers_file = \"users.toml\"");
    let source = "[[source]]\nname = \"sim\"\ntype = \"simulation\"\ninterval = \"50 ms\"\n\
                  [[tag]]\nsource = \"sim\"\nname = \"v\"\nsignal = \"constant\"\nvalue = 7.0\nalarm_high = 5.0\n";
    std::fs::write(config, format!("{text}\n{source}")).unwrap();
    let server =
        Program::new(BINARY).args(["serve", "--config", config, "--exit-with-stdin"]).serve(LIMIT).unwrap();
    let nobody = alarms(server.url(), &["--list"]);
    let told = [nobody.stdout, nobody.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(!told.contains("sim/v") && told.contains("may") && told.contains("og in with --user"), "{told}");
    let password = folder.path().join("password");
    std::fs::write(&password, "correct horse\n").unwrap();
    // The password is encrypted for the server's certificate, but the messages are not.
    let pki = folder.path().join("client");
    let [password, pki] = [&password, &pki].map(|path| path.to_str().unwrap());
    let olaf = ["--user", "olaf", "--password-file", password, "--pki", pki, "--trust-on-first-use"];
    let end = Instant::now() + LIMIT;
    let id = loop {
        let listed = alarms(server.url(), &[&["--list", "--json", "-I", "100"], &olaf[..]].concat());
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
        if let Some(alarm) = listed.first() {
            break alarm["ConditionId"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < end, "the alarm does not come");
        std::thread::sleep(Duration::from_millis(200));
    };
    let done = alarms(server.url(), &[&["--acknowledge", &id, "--comment", "seen"], &olaf[..]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn configurations_support_all_kinds_and_own_types_of_alarms() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    let pumps = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let pumps = pumps.join("../taktwerk/tests/typed_events/pumps.NodeSet2.xml").canonicalize().unwrap();
    let plant = "nsu=urn:taktwerk:demo-plant;s=Plant";
    let text = format!(
        "[server]\nbind = [\"127.0.0.1:0\"]\nsimulated_plant = true\nnodesets = [\"{}\"]\n\
         [security]\nnone = true\n[identities]\nanonymous = true\n[permissions]\nunspecified = \"open\"\n\
         [[alarms.alarm]]\nvariable = \"{plant}/Cycles\"\nname = \"Stop\"\nnormal = 0\n\
         type = \"nsu=urn:example:pumps;i=1003\"\nfields = {{ Cause = \"no power\" }}\n\
         [[alarms.alarm]]\nvariable = \"{plant}/Cycles\"\nnormal = 0\n\
         instance = \"nsu=urn:example:pumps;i=5002\"\n\
         fields = {{ \"nsu=urn:example:pumps;Cause\" = \"a seal\" }}\n\
         [[alarms.alarm]]\nvariable = \"{plant}/Cycles\"\nname = \"Away\"\nhigh = 1.0\nlow = -1.0\n\
         setpoint = \"{plant}/TemperatureSetpoint\"\n\
         [[alarms.alarm]]\nvariable = \"{plant}/Cycles\"\nrate_of_change = true\nhigh = 1e6\n\
         [[alarms.alarm]]\nvariable = \"{plant}/Cycles\"\ntarget = \"{plant}/Cycles\"\nexpected_time = 1000.0\n",
        pumps.display()
    );
    std::fs::write(&config, &text).unwrap();
    let server = Program::new(BINARY)
        .args(["serve", "--config", config.to_str().unwrap(), "--exit-with-stdin", "--quiet"])
        .serve(LIMIT)
        .unwrap();
    let end = Instant::now() + LIMIT;
    let listed = loop {
        let listed = list(server.url());
        if ["Stop", "Leak", "Away"]
            .iter()
            .all(|name| listed.iter().any(|alarm| alarm["ConditionName"] == *name))
        {
            break listed;
        }
        assert!(Instant::now() < end, "the alarms do not come: {listed:?}");
        std::thread::sleep(Duration::from_millis(200));
    };
    let leak = listed.iter().find(|alarm| alarm["ConditionName"] == "Leak").unwrap();
    assert_eq!(leak["SourceName"], "Plant/Cycles", "{leak}");
    let read = |node: &str| {
        let output = Command::new(BINARY).args(["read", server.url(), node, "--json"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for (node, value) in [
        (format!("{plant}/Cycles/Stop/Cause"), "no power"),
        ("nsu=urn:example:pumps;i=5003".to_owned(), "a seal"),
        ("nsu=urn:example:pumps;i=5005".to_owned(), "true"),
        (format!("{plant}/Cycles/RateOfChangeAlarm/HighLimit"), "1000000"),
        (format!("{plant}/Cycles/DiscrepancyAlarm/ExpectedTime"), "1000"),
    ] {
        let told = read(&node);
        assert!(told.contains(value), "{node}: {told}");
    }
    drop(server);
    for (found, instead, why) in [
        (
            "pumps;i=1003",
            "pumps;i=4711",
            "type: this server has no node \"nsu=urn:example:pumps;i=4711\"; `taktwerk browse`",
        ),
        // The error is about the type, not about its fields.
        ("pumps;i=1003", "pumps;i=1001", "is not a subtype of"),
        ("normal = 0", "high = 0.5", "is not a subtype of"),
        ("{ Cause", "{ Effect", "has no field Effect (2:Effect)"),
        ("{ Cause", "{ \"0:ConditionName\"", "other fields are set by the alarm itself"),
        ("rate_of_change = true", "tolerance = 1.0", "need a target"),
        ("high = 1e6", "normal = 1", "need limits"),
        ("pumps;i=5002", "pumps;i=5001", "is not a subtype of"),
    ] {
        assert!(text.contains(found));
        std::fs::write(&config, text.replacen(found, instead, 1)).unwrap();
        let output =
            Command::new(BINARY).args(["serve", "--config", config.to_str().unwrap()]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{instead}: {told}");
        assert!(told.contains("server.toml:") && told.contains("alarms.alarm"), "{instead}: {told}");
        assert!(told.contains(why), "{instead}: {told}");
    }
}
