//! Recorded variables and alarms of a configuration that is read again.

use crate::installation::{BASE, Installation, LIMIT, apply, folder_of, run, until};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taktwerk::client::{EventQuery, Item, Subscription, Update};
use taktwerk::{Client, NodeId, Variant};
use taktwerk_lab::program::Running;

/// A server with the Variables 1, 2 and 3 in a folder.
struct Line {
    installation: Installation,
    server: Running,
}

impl Line {
    fn start(rules: &str) -> Self {
        let installation = Installation::new();
        let variables = folder_of(&[(1, 1.0), (2, 2.0), (3, 95.0)]);
        std::fs::write(installation.folder.path().join("line.xml"), variables).unwrap();
        write_file(&installation, rules);
        let server = installation.serve(&[]);
        Self { installation, server }
    }

    /// Applies other rules. Returns the output of the command.
    fn apply(&self, rules: &str) -> (i32, String) {
        write_file(&self.installation, rules);
        apply(&self.installation.file())
    }

    fn write(&self, id: u32, value: f64) {
        let (code, text) =
            run(&["write", self.server.url(), &format!("ns=2;i={id}"), "--", &value.to_string()]);
        assert_eq!(code, 0, "{text}");
    }

    /// The lists of alarms as lines.
    fn alarms(&self) -> String {
        let (code, text) = run(&["alarms", self.server.url(), "--list", "--json"]);
        assert_eq!(code, 0, "{text}");
        text
    }

    /// Waits until a Variable of an alarm has a value.
    fn until_shown(&self, alarm: u32, path: &str, value: &str) {
        let node = format!("ns=2;s={alarm}/LevelAlarm/{path}");
        until(&format!("{node} is {value}"), || {
            run(&["read", self.server.url(), &node, "--json"]).1.contains(value)
        });
    }
}

fn write_file(installation: &Installation, rules: &str) {
    let base = BASE.replace("[server]\n", "[server]\nnodesets = [\"line.xml\"]\n");
    let base = base.replace("simulated_plant = true", "simulated_plant = false");
    let other = installation.folder.path().join("other");
    std::fs::write(&other, format!("{base}[history]\nfile = \"h.db\"\n{rules}")).unwrap();
    std::fs::rename(other, installation.file()).unwrap();
}

fn alarm(id: u32, settings: &str) -> String {
    format!("[[alarms.alarm]]\nvariable = \"nsu=urn:line;i={id}\"\n{settings}\n")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A client that gets SourceName, Retain, AckedState, ActiveState and HighLimit of all events.
async fn watching(url: &str) -> Subscription {
    let client = Client::builder(url).unsecured().connect().await.unwrap();
    let subscription = client.subscribe(Duration::from_millis(50)).await.unwrap();
    let query = EventQuery::new()
        .select("SourceName")
        .select("Retain")
        .select("AckedState/Id")
        .select("ActiveState/Id")
        .select("HighLimit");
    let server = NodeId::numeric(0, 2253);
    subscription.monitor_item(Item::events(server, query).queue(1000)).await.unwrap();
    subscription
}

/// The next events, as texts.
async fn next(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    while events.len() < count {
        if let Update::Event(_, fields) =
            tokio::time::timeout(LIMIT, subscription.next()).await.unwrap().unwrap()
        {
            events.push(fields.iter().map(Variant::to_string).collect::<Vec<_>>().join(" "));
        }
    }
    events
}

/// Which events have come until now: none later than the write of a Variable that ends the wait.
async fn come(subscription: &mut Subscription, wait: Duration) -> Vec<String> {
    let mut events = Vec::new();
    while let Ok(Some(update)) = tokio::time::timeout(wait, subscription.next()).await {
        if let Update::Event(_, fields) = update {
            events.push(fields.iter().map(Variant::to_string).collect::<Vec<_>>().join(" "));
        }
    }
    events
}

#[test]
fn changed_alarms_keep_what_operators_did_and_others_are_not_touched() {
    let (first, second) = (alarm(1, "high = 80.0"), alarm(2, "high = 80.0\nlatching = true"));
    let line = Line::start(&format!("{first}{second}"));
    line.write(1, 90.0);
    line.write(2, 90.0);
    line.until_shown(1, "ActiveState/Id", "true");
    line.until_shown(2, "ActiveState/Id", "true");
    let url = line.server.url().to_owned();
    for arguments in [["--acknowledge", "V1"], ["--shelve", "V1"]] {
        let (code, text) = run(&[&["alarms", &url], &arguments[..]].concat());
        assert_eq!(code, 0, "{text}");
    }
    let runtime = runtime();
    let mut client = runtime.block_on(watching(&url));
    // One changes, one is new.
    let text = format!("{}{second}{}", alarm(1, "high = 70.0\nseverity = 600"), alarm(3, "high = 80.0"));
    assert_eq!(line.apply(&text), (0, "applied: alarms.alarm\n".to_owned()));
    let mut events = runtime.block_on(next(&mut client, 2));
    events.sort();
    assert_eq!(events, ["Line/V1 true true true 70", "Line/V3 true false true 80"]);
    line.until_shown(1, "HighLimit", "70");
    line.until_shown(1, "AckedState/Id", "true");
    line.until_shown(1, "ShelvingState/CurrentState", "One Shot Shelved");
    line.until_shown(1, "Severity", "600");
    // The same file again, and one with a mistake.
    assert_eq!(line.apply(&text), (0, "no setting that a running server can apply has changed\n".to_owned()));
    for (wrong, said) in [
        (alarm(1, "high = 60.0\nlow = 65.0"), "must rise"),
        (alarm(4, "high = 60.0"), "this server has no node"),
        (format!("{}{}", alarm(1, "high = 60.0"), alarm(1, "high = 61.0")), "exists already"),
        (format!("{}[[history.record]]\nbelow = \"nsu=urn:line;i=9\"\n", alarm(1, "high = 60.0")), "no node"),
    ] {
        let (code, text) = line.apply(&wrong);
        assert!(code == 2 && text.contains(said), "{wrong}: {code} {text}");
        let hangup = Command::new("kill").args(["-HUP", &line.server.pid().to_string()]).status().unwrap();
        assert!(hangup.success());
    }
    assert_eq!(runtime.block_on(come(&mut client, Duration::from_secs(2))), [""; 0]);
    line.until_shown(1, "HighLimit", "70");
    // The first is inactive with its new limit; the second goes, and clients learn it.
    let text = format!("{}{}", alarm(1, "high = 97.0"), alarm(3, "high = 80.0"));
    assert_eq!(line.apply(&text).0, 0);
    let mut events = runtime.block_on(next(&mut client, 2));
    events.sort();
    assert_eq!(events, ["Line/V1 false true false 97", "Line/V2 false true false 80"]);
    let (code, _) = run(&["read", &url, "ns=2;s=2/LevelAlarm/ActiveState"]);
    assert_eq!(code, 4, "its nodes are gone");
    let list = line.alarms();
    assert!(list.contains("Line/V3") && !list.contains("Line/V1") && !list.contains("Line/V2"), "{list}");
    // The alarms work with what was applied.
    line.write(1, 98.0);
    line.write(2, 99.0);
    assert_eq!(runtime.block_on(next(&mut client, 1)), ["Line/V1 true false true 97"]);
}

/// Groups follow their sections, and alarms that are added again return to their groups.
#[test]
fn groups_change_and_keep_alarms_of_another_type() {
    let both = format!("{}{}", alarm(1, "high = 80.0"), alarm(2, "high = 80.0"));
    let id = |id: u32| format!("\"nsu=urn:line;s={id}/LevelAlarm\"");
    let group = |members: &str, more: &str| {
        format!("{both}[[alarms.group]]\nname = \"Trip\"\nmembers = [{members}]\n{more}\n")
    };
    let line = Line::start(&group(&id(1), &format!("suppresses = [{}]", id(2))));
    line.write(1, 90.0);
    line.until_shown(2, "SuppressedState/Id", "true");
    let only = "applied: alarms.group\n".to_owned();
    assert_eq!(line.apply(&both), (0, only.clone()));
    line.until_shown(2, "SuppressedState/Id", "false");
    let first = group(&format!("{}, {}", id(2), id(1)), "first_in_group = true");
    assert_eq!(line.apply(&first), (0, only));
    line.until_shown(1, "FirstInGroupFlag", "true");
    line.until_shown(2, "FirstInGroupFlag", "false");
    let nothing = (0, "no setting that a running server can apply has changed\n".to_owned());
    assert_eq!(line.apply(&first), nothing);
    // An alarm of another type is another instance.
    let other = first.replacen("high = 80.0", "high = 80.0\nnon_exclusive = true", 1);
    assert_eq!(line.apply(&other), (0, "applied: alarms.alarm\n".to_owned()));
    line.until_shown(1, "FirstInGroupFlag", "true");
    // A group with a mistake changes nothing.
    let (code, text) = line.apply(&group(&id(7), ""));
    assert!(code == 2 && text.contains("Trip") && text.contains("is not an alarm"), "{code} {text}");
    line.until_shown(1, "FirstInGroupFlag", "true");
    assert_eq!(line.apply(&other), nothing);
}

/// While a client writes, one rule changes again and again: the history of the other one has every value once.
#[test]
fn recording_rules_change_under_load_without_gaps_in_others() {
    let rule = |id: u32, more: &str| format!("[[history.record]]\nbelow = \"nsu=urn:line;i={id}\"\n{more}");
    let kept = rule(1, "");
    let line = Line::start(&format!("{kept}{}", alarm(3, "high = 80.0")));
    let url = line.server.url().to_owned();
    let (stop, runtime) = (Arc::new(AtomicBool::new(false)), runtime());
    let mut client = runtime.block_on(watching(&url));
    let writer = {
        let (url, stop) = (url.clone(), Arc::clone(&stop));
        runtime.spawn(async move {
            let client = Client::builder(&url).unsecured().connect().await.unwrap();
            let mut count = 0u32;
            while !stop.load(Ordering::Relaxed) {
                count += 1;
                for id in [1, 2] {
                    client.write(NodeId::numeric(2, id), 1000.0 + f64::from(count)).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            count
        })
    };
    for round in 0..3 {
        for (more, changed) in [
            (rule(2, ""), "applied: history.record\n"),
            (rule(2, "deadband = 10.0\n"), "applied: history.record\n"),
            (rule(2, "deadband = 10.0\n"), "no setting that a running server can apply has changed\n"),
            (String::new(), "applied: history.record\n"),
        ] {
            let (code, text) = line.apply(&format!("{kept}{more}{}", alarm(3, "high = 80.0")));
            assert_eq!((code, text.as_str()), (0, changed), "{round} {more}");
            std::thread::sleep(Duration::from_millis(700));
        }
    }
    stop.store(true, Ordering::Relaxed);
    let count = runtime.block_on(writer).unwrap();
    let history = |id: u32| {
        let (code, text) = run(&["history", &url, &format!("ns=2;i={id}"), "--from", "-1h", "--csv"]);
        assert_eq!(code, 0, "{text}");
        text
    };
    let values = |text: &str| -> Vec<u32> {
        let value = |line: &str| line.split(',').find_map(|field| field.parse::<f64>().ok());
        let values = text.lines().filter_map(value).filter(|value| *value > 1000.0);
        values.map(|value| (value - 1000.0) as u32).collect()
    };
    let expected: Vec<u32> = (1..=count).collect();
    until("everything is stored", || values(&history(1)).last() == Some(&count));
    assert_eq!(values(&history(1)), expected, "no gap, and nothing twice");
    // The other one has gaps, which its history names.
    let other = history(2);
    let some = values(&other);
    assert!(!some.is_empty() && some.len() < expected.len(), "{} of {count}", some.len());
    assert!(some.is_sorted_by(|one, next| one < next), "{some:?}");
    assert_eq!(other.matches("BadDataLost").count(), 3, "{other}");
    let read = run(&["read", &url, "ns=2;i=2", "--attribute", "Historizing"]);
    assert!(read.1.contains("false"), "{read:?}");
    // The alarm was not touched.
    assert_eq!(runtime.block_on(come(&mut client, Duration::from_millis(500))), [""; 0]);
}

#[test]
fn without_a_store_recording_waits_for_a_restart() {
    let installation = Installation::new();
    installation.write("");
    let server = installation.serve(&[]);
    let plant = "nsu=urn:taktwerk:demo-plant;s=Plant/Boiler/Level";
    installation.write(&format!("[history]\nfile = \"h.db\"\n[[history.record]]\nbelow = \"{plant}\"\n"));
    let (code, text) = apply(&installation.file());
    assert_eq!(
        (code, text.contains("waiting for a restart: history.file, history.record\n")),
        (0, true),
        "{text}"
    );
    assert!(!text.contains("applied"), "{text}");
    drop(server);
    let server = installation.serve(&[]);
    until("it is recorded", || run(&["history", server.url(), plant, "--from", "-1h", "--csv"]).0 == 0);
}

/// A node of a changed alarm may come with a NodeSet of the same reload. SIGHUP applies both.
#[test]
fn rules_can_name_nodes_of_a_nodeset_that_changes_with_them() {
    let line = Line::start("");
    std::fs::write(line.installation.folder.path().join("line.xml"), folder_of(&[(1, 1.0), (7, 99.0)]))
        .unwrap();
    write_file(&line.installation, &alarm(7, "high = 80.0"));
    let hangup = Command::new("kill").args(["-HUP", &line.server.pid().to_string()]).status().unwrap();
    assert!(hangup.success());
    line.until_shown(7, "ActiveState/Id", "true");
    // Both go together, too.
    std::fs::write(line.installation.folder.path().join("line.xml"), folder_of(&[(1, 1.0)])).unwrap();
    let (code, text) = line.apply("");
    assert!(code == 0 && text.contains("alarms.alarm"), "{text}");
    assert!(!line.alarms().contains("V7"));
}

/// Clients add nodes that only the running server knows, so a mistake of an alarm on them is found late.
#[test]
fn a_reload_that_fails_late_tells_what_was_applied_and_can_be_taken_back() {
    let web = |address: &str| format!("[web]\nbind = \"{address}\"\n[node_management]\nenabled = true\n");
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let (before, after) = (free(), free());
    let line = Line::start(&web(&before));
    // The alarm would have the NodeId of the second one.
    for name in ["Added", "Added/LevelAlarm"] {
        let id = format!("ns=1;s={name}");
        let (code, text) = run(&["node", "add", line.server.url(), "/Objects", name, "1.5", "--id", &id]);
        assert_eq!(code, 0, "{text}");
    }
    let late = "[[alarms.alarm]]\nvariable = \"ns=1;s=Added\"\nhigh = 80.0\n";
    let recorded = "[[history.record]]\nbelow = \"nsu=urn:line;i=1\"\n";
    let (code, text) = line.apply(&format!("{}{}{late}{recorded}", web(&after), alarm(3, "high = 80.0")));
    let told = if cfg!(feature = "web") { "web.bind, history.record" } else { "history.record" };
    let told = format!("the server applied only {told}, alarms.alarm: ");
    assert!(code == 2 && text.contains(&told) && text.contains("exists already"), "{code} {text}");
    let listens = |address: &str| std::net::TcpStream::connect(address).is_ok();
    line.until_shown(3, "ActiveState/Id", "true");
    let (code, text) = line.apply(&web(&before));
    assert!(code == 0 && text.contains("history.record") && text.contains("alarms.alarm"), "{code} {text}");
    assert!(!line.alarms().contains("V3"));
    if cfg!(feature = "web") {
        assert!(text.contains("web.bind") && listens(&before) && !listens(&after), "{text}");
    }
}

/// The group itself has not changed, and its alarm exists.
#[test]
fn an_alarm_that_fails_late_does_not_take_others_out_of_their_groups() {
    let managed = "[node_management]\nenabled = true\n";
    let rules = |settings: &str| {
        let id = |id: u32| format!("\"nsu=urn:line;s={id}/LevelAlarm\"");
        let alarms = format!("{}{}", alarm(1, &format!("high = 80.0\n{settings}")), alarm(2, "high = 80.0"));
        let group = format!("members = [{}]\nsuppresses = [{}]\n", id(1), id(2));
        format!("{managed}{alarms}[[alarms.group]]\nname = \"Trip\"\n{group}")
    };
    let line = Line::start(&rules(""));
    for name in ["Added", "Added/LevelAlarm"] {
        let id = format!("ns=1;s={name}");
        let (code, text) = run(&["node", "add", line.server.url(), "/Objects", name, "1.5", "--id", &id]);
        assert_eq!(code, 0, "{text}");
    }
    let late = "[[alarms.alarm]]\nvariable = \"ns=1;s=Added\"\nhigh = 80.0\n";
    let (code, text) = line.apply(&format!("{}{late}", rules("non_exclusive = true")));
    assert!(code == 2 && text.contains("exists already"), "{code} {text}");
    line.write(1, 90.0);
    line.until_shown(1, "HighState/Id", "true");
    line.until_shown(2, "SuppressedState/Id", "true");
}
