//! Mistakes found before simulating: unknown words, and unknown figures.

use super::*;
use crate::scenario::Scenario as LabScenario;
use std::collections::BTreeSet;

/// All keys of all kinds of files that take one of several words: the file, the replacement, and the message after file
/// and line.
#[test]
fn unknown_words_are_reported_with_key_and_alternatives() {
    let read = "name = \"r\"\n[load]\nkind = \"read\"\n[cpu]\ncondition = \"same\"\n";
    let tune = "name = \"t\"\nlink = \"ppp-2m\"\n[[signals]]\ncount = 5\nperiod_ms = 10\n[tune]\nminimize = [\"delay_p99\"]\n\
                [tune.search]\nsecurity = [\"none\", \"sign\"]\ntransport = \"tcp\"\n";
    for (text, from, to, key, near) in [
        (PLANT, "kind = \"cut\"", "kind = \"cutt\"", "fault.kind", "cut"),
        (PLANT, "kind = \"read\"", "kind = \"reed\"", "client.kind", "read"),
        (PLANT, "delay = \"5ms\"", "lines = \"per-sever\"", "link.0.lines", "per-server"),
        (FIELDBUS, "transport = \"mqtt\"", "transport = \"mqttt\"", "publisher.transport", "mqtt"),
        (
            FIELDBUS,
            "transport = \"mqtt\"",
            "transport = \"mqtt\"\naddress = \"multicst\"",
            "publisher.address",
            "multicast",
        ),
        (FIELDBUS, "encoding = \"json\"", "encoding = \"jsn\"", "publisher.encoding", "json"),
        (read, "kind = \"read\"", "kind = \"raed\"", "load.kind", "read"),
        (read, "condition = \"same\"", "condition = \"smae\"", "cpu.condition", "same"),
        (tune, "\"sign\"", "\"sing\"", "tune.search.security", "sign"),
        (tune, "transport = \"tcp\"", "transport = \"udpp\"", "tune.search.transport", ""),
    ] {
        assert!(text.contains(from), "{from}");
        let wrong = text.replacen(from, to, 1);
        let said = refused(&wrong, &[]);
        let written = to.lines().last().unwrap_or_default();
        let line = 1 + wrong.lines().position(|line| line.contains(written)).unwrap_or_default();
        let (_, word) = to.rsplit_once(" = ").unwrap_or(("", to));
        assert!(said.starts_with(&format!("p.toml:{line}: {key}: there is no {word}")), "{to}: {said}");
        assert!(said.contains("; did you mean \"") || near.is_empty(), "{to}: {said}");
        assert!(said.contains(&format!("\"{near}")) && said.contains("write \""), "{to}: {said}");
        assert!(!said.contains('|') && !said.contains('`'), "not in words: {said}");
    }
}

#[test]
fn requests_without_an_end_are_refused_before_the_run() {
    let near = PLANT.replace("profile = \"ppp-2m\"\ndelay = \"5ms\"", "delay = \"0ms\"");
    let without = near.replace("every_ms = 500", "pause_ms = 0");
    let line_of = |line: &str| 1 + without.lines().position(|one| one == line).unwrap();
    let said = refused(&without, &[]);
    let begin = format!("p.toml:{}: client.1.pause_ms: requests without a pause", line_of("pause_ms = 0"));
    assert!(said.starts_with(&begin), "{said}");
    // The default.
    let said = refused(&near.replace("every_ms = 500\n", ""), &[]);
    let begin = format!("p.toml:{}: client.1.kind: requests", line_of("kind = \"read\""));
    assert!(said.starts_with(&begin), "{said}");
    let said = refused("name = \"r\"\n[load]\nkind = \"read\"\n", &[]);
    assert!(said.starts_with("p.toml:3: load.kind: requests"), "{said}");
    // A pause or a delay is enough, and a host with costs.
    parse(&without, &["client.1.pause_ms=1"]).unwrap();
    parse(&without, &["link.0.delay=1ms"]).unwrap();
    let hosts = format!("{without}[[host]]\nname = \"pi\"\nprofile = \"pi.toml\"\n");
    let hosts = hosts.replace("name = \"plc\"", "name = \"plc\"\nhost = \"pi\"");
    assert!(refused(&hosts, &[]).contains("client.1.pause_ms"), "pi.toml has no costs");
    let mut profile = HostProfile::free(4);
    profile.server.insert("message".to_owned(), 1_000.0);
    let profiles = |_: &str| Ok(profile.clone());
    let options = Options { sets: Vec::new(), profiles: &profiles, profile: None };
    Study::parse(&hosts, "p.toml", &options).unwrap();
}

#[test]
fn a_threshold_of_an_unknown_figure_is_refused_before_the_run() {
    let with = |metric: &str| format!("{PLANT}[[threshold]]\nmetric = \"{metric}\"\nbelow = 5\n");
    assert_eq!(
        refused(&with("scada.delay_p99ms"), &[]),
        "p.toml:34: threshold.0.metric: there is no figure \"scada.delay_p99ms\"; did you mean \"scada.delay_p99_ms\"?"
    );
    // Requests have round trips, subscriptions delays.
    assert!(refused(&with("report.delay_p99_ms"), &[]).contains("report.round_trip_p99_ms"));
    assert!(refused(&with("sevrer"), &[]).contains("there are report.due_per_second, "));
    let cpu = refused(&with("plc.cpu_percent"), &[]);
    assert!(cpu.contains("no processor is simulated: add [[host]]"), "{cpu}");
    let set = refused(&with("scada.losses"), &["threshold.0.metric=scada.loses"]);
    assert!(set.starts_with("--set threshold.0.metric=scada.loses: there is no figure"), "{set}");
    let none = format!("{PLANT}[[threshold]]\nmetric = \"scada.losses\"\n");
    assert!(refused(&none, &[]).contains("p.toml:34: threshold.0.metric: a threshold needs below or above"));
    assert!(parse(&with("scada.delay_p99_ms"), &[]).is_ok());
}

#[test]
fn thresholds_that_no_figure_meets_are_refused_before_the_run() {
    let text = format!("{PLANT}[[threshold]]\nmetric = \"scada.delay_p99_ms\"\nbelow = 5\nabove = 9\n");
    assert_eq!(
        refused(&text, &[]),
        "p.toml:34: threshold.0.metric: no scada.delay_p99_ms is below 5 and above 9: change or remove one of both"
    );
    assert!(parse(&text, &["threshold.0.below=10"]).is_ok());
    for (set, key) in [("below=nan", "below"), ("above=nan", "above"), ("above=inf", "above")] {
        let said = refused(&text, &[&format!("threshold.0.{set}")]);
        assert!(said.starts_with(&format!("--set threshold.0.{set}: a threshold of ")), "{key}: {said}");
    }
}

#[test]
fn clients_have_at_most_64_threads() {
    for count in ["0", "65", "1000000000"] {
        let said = refused(PLANT, &[&format!("client.0.threads={count}")]);
        assert!(said.contains("write 1 to 64"), "{said}");
    }
}

/// Otherwise the link would be told for a mistake elsewhere.
#[test]
fn wrong_values_are_reported_before_a_link_without_capacity() {
    let sets = ["link.0.rate=1kbit", "client.0.publishing_ms=0"];
    assert_eq!(refused(PLANT, &sets), "--set client.0.publishing_ms=0: 0 ms: write more than 0");
    assert!(refused(PLANT, &sets[..1]).starts_with("--set link.0.rate=1kbit: "));
}

/// Zero means that values do not change, or that there is no pause.
#[test]
fn times_below_a_nanosecond_do_not_become_zero() {
    for set in ["server.0.signals.0.period_ms=1e-9", "time.warmup_s=1e-12", "client.0.sampling_ms=1e-7"] {
        let said = refused(PLANT, &[set]);
        assert!(said.starts_with(&format!("--set {set}: ")) && said.contains("nanosecond"), "{said}");
    }
}

#[test]
fn other_traffic_leaves_what_it_says() {
    // 2 kbit/s of 2 Mbit/s, which the load exceeds, and 20 bit/s.
    assert!(refused(PLANT, &["link.0.busy=99.9%"]).contains("carries 2 kbit/s"));
    let said = refused(PLANT, &["link.0.busy=99.999%"]);
    assert!(said.starts_with("--set link.0.busy=99.999%: ") && said.contains("leave 1 kbit/s"), "{said}");
}

/// The largest response is larger than usual: that is no broken promise.
#[test]
fn plants_with_long_notifications_keep_their_promises() {
    let long = "name = \"u\"\n[time]\nwarmup_s = 0.2\nduration_s = 1\n[[link]]\nname = \"l\"\nrate = \"1G\"\n[[server]]\nname = \"s\"\n\
                [[server.signals]]\ncount = 1000\nperiod_ms = 500\nbytes = 4000\n[[client]]\nname = \"c\"\nserver = \"s\"\nlink = \"l\"\n\
                publishing_ms = 100\n";
    run(&parse(long, &[]).unwrap(), &[1], 1).unwrap();
}

#[test]
fn the_network_of_a_node_is_that_of_its_hardware() {
    let text = "name = \"p\"\n[[hardware]]\nname = \"h\"\nnetwork_mbit = 0.1\n[[node]]\nname = \"fci\"\npoints = 4000\n\
                clients = 4\ninterval_ms = 100\nhardware = \"h\"\n";
    let said = refused(text, &[]);
    assert!(said.starts_with("p.toml:4: hardware.0.network_mbit: link \"network of fci\" carries"), "{said}");
    let said = refused(text, &["hardware.0.network_mbit=0.2"]);
    assert!(said.starts_with("--set hardware.0.network_mbit=0.2: link \"network of fci\""), "{said}");
    // The checks of `size` name the key, and the option that replaced it.
    assert_eq!(
        refused(text, &["node.0.count=0"]),
        "--set node.0.count=0: it must be at least 1: otherwise remove the node"
    );
    let unnamed = text.replace("hardware = \"h\"\n", "").replace("points = 4000", "points = 4000000");
    assert!(
        refused(&unnamed, &[]).starts_with("p.toml:5: node.0.hardware: link"),
        "{}",
        refused(&unnamed, &[])
    );
}

#[test]
fn unsimulated_laboratory_thresholds_are_left_out_with_a_note() {
    let with = |metric: &str| {
        format!(
            "name = \"s\"\n[load]\nkind = \"subscribe\"\npublishing_ms = 100\n[[threshold]]\nmetric = \"{metric}\"\nbelow = 5\n"
        )
    };
    let study = parse(&with("server.rss_bytes"), &[]).unwrap();
    assert!(study.thresholds.is_empty());
    assert!(study.notes.iter().any(|note| note.contains("the threshold of server.rss_bytes is left out")));
    assert_eq!(parse(&with("delivery.p99_us"), &[]).unwrap().thresholds.len(), 1);
    let text = with("delivery.p99us");
    let wanted = "p.toml:6: threshold.0.metric: there is no figure \"delivery.p99us\"; did you mean \"delivery.p99_us\"?";
    assert_eq!(refused(&text, &[]), wanted);
    // The laboratory reports the same message.
    let scenario = LabScenario::parse(&text, "p.toml").unwrap();
    assert_eq!(scenario.check_measured(&text, "p.toml").unwrap_err().to_string(), wanted);
    let simulated = format!("stacks = [\"sim\"]\n{}", with("delivery.p99_us"));
    parse(&simulated, &[]).unwrap();
    assert_eq!(
        LabScenario::parse(&simulated, "p.toml")
            .unwrap()
            .check_measured(&simulated, "p.toml")
            .unwrap_err()
            .to_string(),
        "p.toml:1: stacks: \"sim\" is simulated, not measured: run `taktwerk sim p.toml`, or name other stacks"
    );
    let fine = with("server.rss_bytes");
    assert!(LabScenario::parse(&fine, "p.toml").unwrap().check_measured(&fine, "p.toml").is_ok());
}

#[test]
fn a_gateway_with_adapters_is_not_simulated() {
    let text = "name = \"s\"\n[server]\nadapters = \"2:15:10\"\n[load]\nkind = \"read\"\nbatch = 30\n";
    let said = refused(text, &[]);
    assert!(said.contains("server.adapters: adapters are not simulated: write signals"), "{said}");
}

/// The names in results and the names accepted in thresholds are defined in two places; they must agree.
#[test]
fn the_names_of_figures_are_those_that_runs_have() {
    let profiles = |_: &str| Err(String::new());
    for (text, sets) in [(PLANT, &["time.duration_s=3"][..]), (FIELDBUS, &["time.duration_s=15"])] {
        for profile in [None, Some(HostProfile::free(2))] {
            let sets = sets.iter().map(|set| (*set).to_owned()).collect();
            let study =
                Study::parse(text, "p.toml", &Options { sets, profiles: &profiles, profile }).unwrap();
            let scenario = &study.cases[0].scenario;
            let runs = run(&study, &[1], 1).unwrap();
            let found: BTreeSet<String> = figures::summaries(0, scenario, &runs).into_keys().collect();
            assert_eq!(found, figures::names(scenario));
        }
    }
}
