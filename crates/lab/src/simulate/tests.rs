//! Tests of valid and invalid files, and that outcomes do not depend on threads.

mod mistakes;

use super::study::Options;
use super::*;
use crate::simulate::seeds::Failed;
use taktwerk_model::host::HostProfile;
use taktwerk_sim::scenario::pubsub::{Encoding, Quality};
use taktwerk_sim::scenario::{FaultKind, Instruments, Load, Pace, RunError};

const PLANT: &str = r#"
name = "two lines"
[time]
warmup_s = 0.5
duration_s = 2
[[link]]
name = "wan"
profile = "ppp-2m"
delay = "5ms"
[[server]]
name = "plc"
count = 2
[[server.signals]]
count = 10
period_ms = 100
[[client]]
name = "scada"
server = "plc"
link = "wan"
publishing_ms = 200
[[client]]
name = "report"
kind = "read"
server = "plc"
link = "wan"
batch = 5
every_ms = 500
[[fault]]
at = "500ms"
kind = "cut"
client = "scada"
number = 2
"#;

fn parse(text: &str, sets: &[&str]) -> Result<Study, StudyError> {
    let profiles = |name: &str| match name {
        "pi.toml" => Ok(HostProfile::free(4)),
        other => Err(format!("cannot read {other}")),
    };
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    Study::parse(text, "p.toml", &Options { sets, profiles: &profiles, profile: None })
}

fn refused(text: &str, sets: &[&str]) -> String {
    parse(text, sets).map(|study| study.name).unwrap_err().to_string()
}

fn run(study: &Study, seeds: &[u64], threads: usize) -> Result<Vec<Run>, Box<Failed>> {
    run_all(&study.cases, seeds, threads, Instruments::default(), &mut |_, _| true)
}

#[test]
fn names_that_are_given_twice_and_missing_variables_are_mistakes() {
    let twice = |section: &str| format!("{PLANT}{section}");
    for (text, told) in [
        (twice("[[link]]\nname = \"wan\"\ndelay = \"1ms\"\n"), "link.1.name: another link has this name"),
        (
            twice("[[client]]\nname = \"scada\"\nserver = \"plc\"\npublishing_ms = 50\n"),
            "client.2.name: another client has this name",
        ),
        (
            twice("[[host]]\nname = \"h\"\nprofile = \"free\"\n")
                + "[[host]]\nname = \"h\"\nprofile = \"free\"\n",
            "host.1.name: another host has this name",
        ),
    ] {
        assert!(refused(&text, &[]).contains(told), "{}", refused(&text, &[]));
    }
    assert!(parse(PLANT, &["client.0.items=10"]).is_ok());
    let told = refused(PLANT, &["client.0.items=11"]);
    assert!(told.contains("client.0.items") && told.contains("10 variables"), "{told}");
}

#[test]
fn a_plant_is_read_and_simulated() {
    let study = parse(PLANT, &[]).unwrap();
    let scenario = &study.cases[0].scenario;
    assert_eq!((study.name.as_str(), study.cases.len(), scenario.servers[0].count), ("two lines", 1, 2));
    assert!(matches!(scenario.faults[0].kind, FaultKind::Cut(which) if which.number == Some(1)));
    let outcomes = |threads| -> Vec<_> {
        run(&study, &[1, 2, 3], threads).unwrap().into_iter().map(|run| (run.seed, run.outcome)).collect()
    };
    let one = outcomes(1);
    assert_eq!(one, outcomes(3), "outcomes do not depend on the number of threads");
    assert_ne!(one[0].1, one[1].1);
    let runs = run(&study, &[1, 2, 3], 2).unwrap();
    let figures = figures::summaries(0, scenario, &runs);
    assert_eq!(figures["scada.missing_percent"].median, 0.0);
    assert_eq!(figures["scada.reconnects"].median, 1.0);
    assert_eq!(figures["report.failed"].median, 0.0);
    assert!((10.0..20.0).contains(&figures["report.round_trip_mean_ms"].median), "{figures:?}");
    assert!(figures["scada.delay_mean_ms"].median > 5.0 && figures["wan.down_bits_s"].median > 1e4);
    let text = figures::outcome(&study, &runs).text();
    assert!(text.contains("scada") && text.contains("medians over 3 seeds"), "{text}");
    let is_narrow = |line: &str| unicode_width::UnicodeWidthStr::width(line) <= 100;
    assert!(text.lines().all(is_narrow), "{text}");
}

#[test]
fn values_can_be_set() {
    let study = parse(PLANT, &["client.0.publishing_ms=50", "link.0.rate=5M", "server.0.count=3"]);
    let scenario = &study.unwrap().cases[0].scenario;
    assert_eq!((scenario.links[0].profile.up.rate, scenario.servers[0].count), (Some(5_000_000), 3));
    let Load::Subscribe(subscription) = &scenario.clients[0].load else { panic!() };
    assert_eq!(subscription.publishing_interval.as_millis(), 50);
}

#[test]
fn mistakes_are_reported_with_line_and_key() {
    for (from, to, wanted) in [
        (
            "server = \"plc\"\nlink",
            "server = \"plk\"\nlink",
            "p.toml:18: client.0.server: there is no server \"plk\"; there are plc",
        ),
        ("link = \"wan\"\npub", "link = \"lan\"\npub", "p.toml:19: client.0.link: there is no link \"lan\""),
        ("delay = \"5ms\"", "delay = 5", "p.toml:9: link.0.delay"),
        ("publishing_ms = 200", "batch = 7", "p.toml:20: client.0.batch: batch has no effect"),
        ("publishing_ms = 200", "", "client.0.publishing_ms: missing"),
        ("publishing_ms = 200", "publishing_ms = -1", "p.toml:20: client.0.publishing_ms"),
        ("publishing_ms = 200", "publishing_ms = 200\nmode = \"Sign\"", "client.0.policy: policy and mode"),
        (
            "publishing_ms = 200",
            "publishing_ms = 200\npolicy = \"Basic512\"",
            "there is no policy \"Basic512\"",
        ),
        ("publishing_ms = 200", "publishing_ms = 200\nhost = \"pi\"", "add [[host]]"),
        ("at = \"500ms\"", "at = \"soon\"", "p.toml:29: fault.0.at: \"soon\""),
        ("kind = \"cut\"", "kind = \"partition\"", "needs a duration"),
        ("kind = \"cut\"", "kind = \"cut\"\nfor = \"2s\"", "has no duration"),
        (
            "kind = \"cut\"",
            "kind = \"crash\"",
            "fault.0.client: this fault does not happen to clients: write server, publisher,",
        ),
        ("kind = \"cut\"", "kind = \"slow\"", "fault.0.kind: write authority = \"…\""),
        (
            "delay = \"5ms\"",
            "delay = \"5ms\"\njitter = \"1ms\"\ndistribution = \"flat\"",
            "p.toml:11: link.0.distribution: ",
        ),
        ("delay = \"5ms\"", "delay = \"5ms\"\nburst = -3", "p.toml:10: link.0.burst: "),
        ("kind = \"cut\"", "kind = \"clock\"", "the offset of the clock"),
        ("number = 2", "number = 0", "they count from 1"),
        ("name = \"wan\"", "nam = \"wan\"", "a link needs a name"),
        ("count = 2\n", "count = 2\nlines = 7\n", "unknown field `lines`"),
        ("every_ms = 500", "every_ms = 500\npause_ms = 5", "leave one out"),
        ("name = \"plc\"", "name = \"a b\"", "part of a URL"),
    ] {
        assert!(PLANT.contains(from), "{from}");
        let said = refused(&PLANT.replacen(from, to, 1), &[]);
        assert!(said.contains(wanted), "{to}: {said}");
    }
    assert!(refused("name = \"x\"", &[]).contains("does not describe a plant"));
    assert!(refused(PLANT, &["client.0.publishing_ms=fast"]).contains("--set client.0.publishing_ms=fast"));
    let host = PLANT.replacen("[[link]]", "[[host]]\nname = \"pi\"\nprofile = \"x.toml\"\n[[link]]", 1);
    assert!(refused(&host, &[]).contains("p.toml:8: host.0.profile: cannot read x.toml"));
    let host = host.replacen("x.toml", "pi.toml\"\ncores = \"", 1);
    assert!(refused(&host, &[]).contains("cores"));
}

const FIELDBUS: &str = include_str!("../../../../docs/lab/plants/fieldbus.toml");

#[test]
fn a_plant_with_pubsub_is_read_and_simulated() {
    let study = parse(FIELDBUS, &["time.duration_s=15"]).unwrap();
    let scenario = &study.cases[0].scenario;
    let parts = &scenario.pubsub;
    assert_eq!((parts.brokers.len(), parts.publishers.len(), parts.subscribers.len()), (1, 2, 3));
    assert_eq!((parts.brokers[0].limits.queue, parts.publishers[1].encoding), (200, Encoding::Json));
    assert_eq!(
        (parts.subscribers[1].quality, parts.subscribers[1].publishers[0]),
        (Some(Quality::AtMostOnce), 1)
    );
    let outcomes = |threads| -> Vec<_> {
        run(&study, &[1, 2], threads).unwrap().into_iter().map(|run| (run.seed, run.outcome)).collect()
    };
    assert_eq!(outcomes(1), outcomes(2), "outcomes do not depend on the number of threads");
    let runs = run(&study, &[1, 2], 2).unwrap();
    let figures = figures::summaries(0, scenario, &runs);
    assert_eq!(figures::broken(&study, &runs), Vec::<String>::new());
    assert_eq!(figures["archive.lost_messages"].median, 0.0);
    assert!(figures["archive.delay_max_ms"].median > 5_000.0, "{figures:?}");
    assert!(figures["control-room.lost_messages"].median > 0.0, "{figures:?}");
    assert!((figures["machine.published_per_second"].median / 200.0 - 1.0).abs() < 0.01, "{figures:?}");
    assert!(figures["broker.sent_per_second"].median > 1.0 && figures["broker.queue_max"].median >= 5.0);
    assert!(figures["field bus.up_bits_s"].median > 1e5, "{figures:?}");
    let text = figures::outcome(&study, &runs).text();
    assert!(text.contains("control-room") && text.contains("Brokers"), "{text}");
    let is_narrow = |line: &str| unicode_width::UnicodeWidthStr::width(line) <= 100;
    assert!(text.lines().all(is_narrow), "{text}");
    // The file that a campaign would print is equivalent.
    let again = taktwerk_sim::scenario::text::to_toml(scenario, "again");
    let again = parse(&again, &[]).unwrap();
    assert_eq!(again.cases[0].scenario, *scenario, "{:?}", again.cases[0].scenario);
}

#[test]
fn pubsub_mistakes_are_reported_with_line_and_key() {
    for (from, to, wanted) in [
        (
            "publisher = \"machine\"\nlink",
            "publisher = \"machin\"\nlink",
            "subscriber.0.publisher: there is no publisher \"machin\"; there are machine, meter",
        ),
        ("publisher = \"machine\"\nlink", "publisher = []\nlink", "or a list such as"),
        (
            "publisher = \"machine\"\nlink",
            "link",
            "subscriber.0.publisher: write the name of a [[publisher]]",
        ),
        (
            "broker = \"broker\"\nqos",
            "broker = \"other\"\nqos",
            "publisher.1.broker: there is no broker \"other\"; there are broker",
        ),
        ("broker = \"broker\"\nqos", "qos", "publisher.1.transport: MQTT needs a broker"),
        ("qos = 1", "qos = 2", "publisher.1.qos: quality of service 2 is not simulated: write 0 or 1"),
        ("transport = \"mqtt\"", "transport = \"tcp\"", "there is no \"tcp\"; write \"udp\" or \"mqtt\""),
        ("transport = \"mqtt\"", "", "publisher.1.broker: UDP has no broker"),
        (
            "transport = \"mqtt\"",
            "transport = \"mqtt\"\naddress = \"unicast\"",
            "publisher.1.address: messages go to the broker",
        ),
        (
            "security = \"SignAndEncrypt\"",
            "security = \"Encrypt\"",
            "there is no mode \"Encrypt\": write None, Sign or SignAndEncrypt",
        ),
        ("security = \"SignAndEncrypt\"", "key_lifetime_s = 5", "without security there are no keys"),
        ("publishing_ms = 20\n", "", "publisher.0.publishing_ms: missing"),
        ("queue = 200", "queue = 200\nqueues = 1", "unknown field `queues`"),
        ("name = \"dashboard\"", "name = \"archive\"", "another subscriber or client has this name"),
        (
            "kind = \"restart\"\npublisher",
            "kind = \"restart\"\nbroker = \"broker\"\npublisher",
            "leave the others out",
        ),
        (
            "subscriber = \"archive\"",
            "subscriber = \"x\"",
            "fault.0.subscriber: there is no subscriber \"x\"",
        ),
        (
            "kind = \"restart\"\npublisher",
            "kind = \"clock\"\nfor = \"1s\"\npublisher",
            "the offset of the clock",
        ),
    ] {
        assert!(FIELDBUS.contains(from), "{from}");
        let said = refused(&FIELDBUS.replacen(from, to, 1), &[]);
        assert!(said.contains(wanted) && said.starts_with("p.toml"), "{to}: {said}");
    }
    let said = refused(FIELDBUS, &["link.0.rate=100k"]);
    assert!(
        said.starts_with("--set link.0.rate=100k: link \"field bus\" carries 100 kbit/s from publishers"),
        "{said}"
    );
    let study = parse(FIELDBUS, &["fault.0.kind=storm"]).map(|study| study.name);
    assert!(study.unwrap_err().to_string().contains("has no duration"));
    let said = refused(FIELDBUS, &["publisher.0.fields=0"]);
    assert!(said.starts_with("--set publisher.0.fields=0: 0: write at least 1"), "{said}");
}

#[test]
fn a_profile_assigns_hosts_to_publishers_subscribers_and_brokers() {
    let mut profile = HostProfile::free(2);
    profile.server.insert("send".into(), 100_000.0);
    profile.client.insert("receive".into(), 100_000.0);
    let profiles = |_: &str| Err(String::new());
    let options = Options { sets: Vec::new(), profiles: &profiles, profile: Some(profile) };
    let study = Study::parse(FIELDBUS, "p.toml", &options).unwrap();
    let scenario = &study.cases[0].scenario;
    // One host for the broker, two kinds for publishers, one for all subscribers.
    assert_eq!(scenario.hosts.len(), 4);
    let figures = figures::summaries(0, scenario, &run(&study, &[1], 1).unwrap());
    // Fifty datagrams a second of each machine; four times as many for each of two subscribers.
    assert!((figures["machine.publisher_cpu_percent"].median - 0.5).abs() < 0.02, "{figures:?}");
    assert!((figures["control-room.subscriber_cpu_percent"].median - 4.0).abs() < 0.1, "{figures:?}");
    assert!(figures["broker.broker_cpu_percent"].median > 0.0);
}

#[test]
fn overloaded_links_are_reported_before_simulating() {
    let said = refused(PLANT, &["server.0.signals.0.count=5000"]);
    assert!(said.starts_with("p.toml:6: link.0.rate: link \"wan\" carries 2 Mbit/s"), "{said}");
    // 100 000 values of 30 bytes per second, with headers.
    assert!(said.contains("at least 25 Mbit/s") && said.contains("Raise the rate"), "{said}");
    // Only one value of each item per interval is requested.
    assert!(
        parse(PLANT, &["server.0.signals.0.count=1500", "client.0.queue=1", "client.0.publishing_ms=1000"])
            .is_ok()
    );
    assert!(refused(PLANT, &["link.0.busy=99.999%"]).contains("link.0"));
}

#[test]
fn uploads_need_capacity_too() {
    // 1 000 writes per second with five values of 500 bytes.
    let constant = ["server.0.signals.0.period_ms=0", "server.0.signals.0.bytes=500"];
    let writes = [&constant[..], &["client.1.kind=write", "client.1.every_ms=1"]].concat();
    let said = refused(PLANT, &writes);
    assert!(said.starts_with("p.toml:6: link.0.rate: link \"wan\" carries 2 Mbit/s to the server"), "{said}");
    assert!(said.contains("its clients send at least 43.5") && said.contains("fewer or smaller"), "{said}");
    // Two clients with 1 000 Publish requests per second; the few bytes of the values fit.
    let publishing =
        ["server.0.signals.0.period_ms=1", "server.0.signals.0.count=1", "client.0.publishing_ms=1"];
    let narrow = [&publishing[..], &["link.0.rate=4M", "link.0.up-rate=1M"]].concat();
    let said = refused(PLANT, &narrow);
    assert!(
        said.starts_with("--set link.0.up-rate=1M: link \"wan\" carries 1 Mbit/s to the server"),
        "{said}"
    );
    assert!(said.contains("at least 1.86 Mbit/s"), "{said}");
    // Each direction has enough for itself, but not both on one line.
    let wide = [&publishing[..], &["link.0.rate=4M"]].concat();
    assert!(parse(PLANT, &wide).is_ok());
    let said = refused(PLANT, &[&wide[..], &["link.0.shared=true"]].concat());
    assert!(said.contains("carries 4 Mbit/s in both directions together"), "{said}");
}

#[test]
fn files_with_one_link_name_its_key() {
    let plant = "[link]\nrate = \"300k\"\n[[signals]]\ncount = 50\nperiod_ms = 10\n";
    let said = refused(plant, &[]);
    assert!(said.starts_with("p.toml:2: link.rate: link "), "{said}");
}

#[test]
fn a_shared_line_has_the_same_properties_in_both_directions() {
    for (text, place) in [
        (PLANT.replace("delay = \"5ms\"", "up-rate = \"1M\"\nshared = true"), "p.toml:10: link.0.shared"),
        (
            "[link]\nup-rate = \"1M\"\nshared = true\n[[signals]]\ncount = 1\nperiod_ms = 10\n".into(),
            "p.toml:3: link.shared",
        ),
    ] {
        let said = refused(&text, &[]);
        assert!(said.starts_with(place) && said.contains("same properties in both"), "{said}");
    }
}

/// `tune` and `sim` read the same plant file and simulate the same line.
#[test]
fn a_line_is_the_same_in_tune_and_sim() {
    use crate::tuning::Simulation;
    use taktwerk_model::tune::{Evaluate, Problem, Settings, problem};
    const PLANT: &str = "
        link = { profile = \"ppp-2m\", busy = \"30%\", rate = \"350k\", delay = \"6ms\" }
        [[signals]]
        count = 5
        period_ms = 20
        [tune]
        measured_s = 5
        search.publishing_ms = 20
    ";
    let delays = [false, true].map(|is_shared| {
        let sets = vec![format!("link.shared={is_shared}")];
        let study = parse(PLANT, &[sets[0].as_str()]).unwrap();
        let figures = figures::summaries(0, &study.cases[0].scenario, &run(&study, &[1], 1).unwrap());
        let options = problem::Options { sets, ..problem::Options::default() };
        let problem = Problem::parse(PLANT, "p.toml", &options).unwrap();
        let settings = Settings { publishing_ms: 20.0, ..Settings::usual() };
        let tuned = Simulation::new(&problem, None).evaluate(&settings, 1).unwrap().delay_mean_ms;
        // tune adds the time to wake a thread.
        let (simulated, tuned) = (figures["subscribe.delay_mean_ms"].median, tuned - problem.wake_us / 1e3);
        assert!((simulated / tuned - 1.0).abs() < 0.02, "{is_shared}: {simulated} {tuned}");
        tuned
    });
    assert!(delays[1] > delays[0] * 1.05, "{delays:?}");
}

#[test]
fn contradictions_found_by_the_simulator_have_a_line() {
    let said = refused(PLANT, &["client.0.count=0"]);
    assert_eq!(said, "--set client.0.count=0: 0: write at least 1, or leave the clients out");
}

#[test]
fn scenarios_of_the_laboratory_are_simulated() {
    let text = r#"
        name = "reads"
        stacks = ["sim", "open62541"]
        link = "ethernet-100m"
        [load]
        kind = "read"
        clients = [1, 4]
        batch = 10
        rate = 100
        [time]
        warmup_s = 0.5
        duration_s = 2
        [[threshold]]
        metric = "latency.corrected.p99_us"
        below = 100
    "#;
    let study = parse(text, &[]).unwrap();
    assert_eq!(study.cases.len(), 2);
    assert!(study.notes.iter().any(|note| note.contains("open62541")));
    let Load::Request(requests) = &study.cases[1].scenario.clients[0].load else { panic!() };
    assert_eq!(requests.pace, Pace::Every(core::time::Duration::from_millis(40)));
    let runs = run(&study, &[1], 2).unwrap();
    for run in &runs {
        assert!((190..=210).contains(&run.outcome.loads[0].arrived), "{run:?}");
    }
    // Two delays of 30 µs and two packets: more than 100 µs.
    let broken = figures::broken(&study, &runs);
    assert!(broken.len() == 2 && broken[0].contains("should be below 100"), "{broken:?}");
    assert!(
        refused(&text.replace("\"read\"", "\"browse\""), &[])
            .contains("load.kind: \"browse\" is not simulated")
    );
    let subscribe = "name = \"s\"\n[load]\nkind = \"subscribe\"\nitems = 100\nclients = 2\npublishing_ms = 100\n[time]\nwarmup_s = 1\nduration_s = 2";
    let study = parse(subscribe, &[]).unwrap();
    let runs = run(&study, &[1], 1).unwrap();
    let load = &runs[0].outcome.loads[0];
    assert!(load.arrived >= 100 * 19 && load.due == 2_000, "{load:?}");
}

#[test]
fn a_profile_assigns_hosts_to_servers_and_clients() {
    let text = "name = \"r\"\n[load]\nkind = \"read\"\nrate = 50\n[time]\nwarmup_s = 0.1\nduration_s = 2\n[cpu]\ncondition = ";
    let mut profile = HostProfile::free(2);
    profile.server.insert("requests".into(), 200_000.0);
    profile.client.insert("responses".into(), 100_000.0);
    let profiles = |_: &str| Err(String::new());
    let figures = |condition: &str| {
        let options = Options { sets: Vec::new(), profiles: &profiles, profile: Some(profile.clone()) };
        let study = Study::parse(&format!("{text}\"{condition}\""), "r.toml", &options).unwrap();
        let runs = run(&study, &[1], 1).unwrap();
        (study.cases[0].scenario.hosts.len(), figures::summaries(0, &study.cases[0].scenario, &runs))
    };
    let (hosts, alone) = figures("isolated");
    assert_eq!(hosts, 2);
    assert!((alone["server.cpu_percent"].median - 1.0).abs() < 0.05, "{alone:?}");
    assert!((alone["read.client_cpu_percent"].median - 0.5).abs() < 0.05, "{alone:?}");
    assert_eq!(figures("same").0, 1);
    let loaded = figures("loaded").1;
    assert!(loaded["read.round_trip_max_ms"].median >= alone["read.round_trip_max_ms"].median);
}

#[test]
fn plants_of_size_and_tune_are_simulated() {
    let size = "name = \"p\"\n[[hardware]]\nname = \"h\"\nnetwork_mbit = 10\n[[node]]\nname = \"fci\"\ncount = 2\npoints = 40\nclients = 4\ninterval_ms = 100\nchanging = 0.5\nhardware = \"h\"";
    let study = parse(size, &["node.0.count=3"]).unwrap();
    let scenario = &study.cases[0].scenario;
    let server = &scenario.servers[0];
    assert_eq!((server.count, server.signals[0].count, server.signals[1].count), (3, 5, 5));
    assert_eq!((scenario.clients[0].count, scenario.links[0].profile.up.rate), (4, Some(10_000_000)));
    for (set, told) in [
        ("node.0.points=100000000", "write 1 to 10000000"),
        ("node.0.points=0", "it must be a positive number"),
        ("node.0.clients=0", "it must be a positive number"),
        ("node.0.clients=0.1", "write 1 to 1000000"),
        ("node.0.interval_ms=0", "it must be a positive number"),
        ("node.0.interval_ms=0.01", "write 0.1 to 3600000"),
        ("node.0.changing=3", "not a share from 0 to 1"),
    ] {
        let error = refused(size, &[set]);
        assert!(error.starts_with(&format!("--set {set}: ")) && error.contains(told), "{error}");
    }
    let tune = "name = \"t\"\nlink = \"ppp-2m\"\n[[signals]]\ncount = 5\nperiod_ms = 10\n[tune]\nmeasured_s = 1\n[tune.search]\npublishing_ms = { from = 10, to = 160 }";
    let study = parse(tune, &[]).unwrap();
    let labels: Vec<&str> = study.cases.iter().map(|case| case.label.as_str()).collect();
    assert_eq!(labels[0], "publishing_ms=10");
    assert_eq!((labels.len(), labels[2], labels[4]), (5, "publishing_ms=40", "publishing_ms=160"));
    let runs = run(&study, &[1], 2).unwrap();
    let delays: Vec<f64> = runs.iter().map(|run| run.outcome.loads[0].times.mean()).collect();
    assert!(delays.is_sorted(), "{delays:?}");
    assert!(runs.iter().all(|run| run.outcome.loads[0].arrived == run.outcome.loads[0].due));
}

#[test]
fn the_large_plant_is_simulated_at_a_thousandth_of_its_size() {
    let text = include_str!("../../../../docs/lab/plants/large.toml");
    let whole = parse(text, &[]).unwrap();
    let scenario = &whole.cases[0].scenario;
    let servers = u64::from(scenario.servers[0].count);
    let all = |of: fn(&taktwerk_sim::scenario::Clients) -> u32| -> u64 {
        scenario.clients.iter().map(|clients| servers * u64::from(of(clients))).sum()
    };
    let items = all(|clients| clients.count * clients.items.unwrap());
    assert_eq!((servers, all(|clients| clients.count), items), (1_000, 10_000, 1_000_000));
    let study = parse(text, &["server.0.count=1", "time.duration_s=3"]).unwrap();
    let runs = run(&study, &[1], 1).unwrap();
    // Each item gets a value per second: 640, 280 and 80 of them.
    let arrived: Vec<u64> = runs[0].outcome.loads.iter().map(|load| load.arrived).collect();
    assert_eq!(arrived, [1_920, 840, 240]);
    assert!(figures::broken(&study, &runs).is_empty());
    assert!(figures::memory_peak().unwrap() > 1 << 20);
}

#[test]
fn scripts_of_campaigns_can_be_read_back() {
    use taktwerk_sim::campaign::script;
    use taktwerk_sim::scenario::text::{faults_to_toml, to_toml};
    for seed in 0..300 {
        let scenario = script(seed);
        let text = to_toml(&scenario, "a \"script\"");
        // Profiles with costs are files of their own.
        let profiles = |name: &str| {
            let named = scenario.hosts.iter().find(|host| host.profile.name == name);
            named.map(|host| host.profile.clone()).ok_or_else(|| format!("there is no {name}"))
        };
        let options = Options { sets: Vec::new(), profiles: &profiles, profile: None };
        let study = Study::parse(&text, "p.toml", &options)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert_eq!(study.cases[0].scenario, scenario, "seed {seed}\n{text}");
        assert!(text.ends_with(&faults_to_toml(&scenario)), "seed {seed}");
    }
}

#[test]
fn all_seeds_are_stopped_when_the_caller_says_so() {
    let study = parse(PLANT, &["time.duration_s=200"]).unwrap();
    let failed = run_all(&study.cases, &[1, 2, 3, 4], 2, Instruments::default(), &mut |done, _| done < 1_000)
        .unwrap_err();
    assert_eq!(failed.error, RunError::Stopped);
}
