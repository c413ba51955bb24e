//! Plants as described by users.

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Host, Lines, Link, Load, Login, Operation, Outcome, Pace, PubSub, Requests,
    RunError, Scenario, Server, Signals, Subscription, run,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn clients(name: &str, count: u32, load: Load) -> Clients {
    Clients {
        name: name.into(),
        count,
        server: 0,
        link: Some(0),
        host: None,
        threads: 1,
        items: None,
        load,
        security: (SecurityPolicy::None, MessageSecurityMode::None),
        login: Login::Anonymous,
        session_timeout: secs(60),
        authorities: Vec::new(),
    }
}

/// Two servers, each with two subscribers over one line.
fn scenario() -> Scenario {
    Scenario {
        hosts: vec![],
        links: vec![Link {
            name: "line".into(),
            profile: "ppp-2m,delay=5ms".parse().unwrap(),
            is_half_duplex: false,
            lines: Lines::One,
        }],
        servers: vec![Server {
            name: "plc".into(),
            count: 2,
            host: None,
            shards: 1,
            signals: vec![
                Signals { count: 20, period: ms(50), value_len: 8 },
                Signals { count: 5, period: Duration::ZERO, value_len: 4 },
            ],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![clients("scada", 2, Load::Subscribe(Subscription::new(ms(200))))],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: vec![],
        warmup: secs(1),
        measured: secs(10),
        settle: secs(60),
    }
}

fn simulate(scenario: &Scenario, seed: u64) -> Outcome {
    run(scenario, seed, &mut |_| true).unwrap()
}

#[test]
fn every_value_arrives_within_interval_and_delay() {
    let outcome = simulate(&scenario(), 1);
    let load = &outcome.loads[0];
    // Two servers with two clients each; 200 writes to each of 20 variables in ten seconds.
    assert_eq!((load.due, load.arrived), (2 * 2 * 20 * 200, 2 * 2 * 20 * 200));
    assert_eq!((load.overflows, load.losses, load.reconnects), (0, 0, 0));
    let mean = load.times.mean() / 1e6;
    assert!((5.0..150.0).contains(&mean), "{mean}");
    assert!(load.times.max() < 300_000_000, "{}", load.times.max());
    let line = &outcome.lines[0];
    assert_eq!((line.lines, line.lost), (1, 0));
    assert!(line.down_bits_s > line.up_bits_s && line.utilisation.unwrap() < 1.0, "{line:?}");
    assert_eq!(simulate(&scenario(), 1), outcome, "equal seeds must give equal outcomes");
    assert_ne!(simulate(&scenario(), 2).loads[0].times, load.times);
}

#[test]
fn a_clock_that_reconnects_has_one_subscription() {
    let mut plant = scenario();
    plant.links[0].profile = "ppp-10m,delay=5ms".parse().unwrap();
    let clocked = Subscription { publish_every: Some(80), ..Subscription::new(ms(200)) };
    plant.clients = vec![clients("scada", 2, Load::Subscribe(clocked))];
    plant.measured = secs(60);
    let calm = simulate(&plant, 1);
    let cut = FaultKind::Cut(Which { group: 0, number: None });
    plant.faults = vec![Fault { at: ms(500), lasts: Duration::ZERO, kind: cut }];
    let cut = simulate(&plant, 1);
    let (calm, cut) = ((&calm.loads[0], calm.lines[0]), (&cut.loads[0], cut.lines[0]));
    assert_eq!((cut.0.reconnects, calm.0.due), (4, calm.0.arrived), "{:?}", cut.0);
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.05;
    assert!(near(cut.0.arrived as f64, calm.0.arrived as f64), "{:?} {:?}", cut.0, calm.0);
    assert!(near(cut.0.messages as f64, calm.0.messages as f64), "{:?} {:?}", cut.0, calm.0);
    assert!(near(cut.1.down_bits_s, calm.1.down_bits_s), "{:?} {:?}", cut.1, calm.1);
}

#[test]
fn a_clock_has_more_items_than_a_request_may_create() {
    let mut plant = scenario();
    plant.links[0].profile = "ethernet-100m".parse().unwrap();
    plant.servers[0].signals = vec![Signals { count: 10_001, period: ms(1_000), value_len: 4 }];
    let clocked = Subscription { publish_every: Some(80), ..Subscription::new(ms(500)) };
    plant.clients = vec![clients("scada", 1, Load::Subscribe(clocked))];
    plant.measured = secs(3);
    let outcome = simulate(&plant, 1);
    assert_eq!((outcome.loads[0].due, outcome.loads[0].arrived), (2 * 3 * 10_001, 2 * 3 * 10_001));
}

#[test]
fn separate_lines_carry_less_each() {
    let one = simulate(&scenario(), 1).lines[0].down_bits_s;
    let with = |lines: Lines| {
        let mut scenario = scenario();
        scenario.links[0].lines = lines;
        simulate(&scenario, 1).lines[0]
    };
    let (per_server, per_client) = (with(Lines::PerServer), with(Lines::PerClient));
    assert_eq!((per_server.lines, per_client.lines), (2, 4));
    assert!((1.9..2.1).contains(&(one / per_server.down_bits_s)), "{one} {per_server:?}");
    assert!((3.8..4.2).contains(&(one / per_client.down_bits_s)), "{one} {per_client:?}");
    let mut both = scenario();
    both.links[0].is_half_duplex = true;
    let both = simulate(&both, 1).lines[0];
    assert_eq!(both.down_bits_s, 0.0);
    assert!(both.up_bits_s > one);
}

#[test]
fn round_trips_are_measured_from_the_due_times() {
    let mut scenario = scenario();
    let load = |operation, pace| Load::Request(Requests { operation, batch: 5, pace });
    scenario.servers[0].signals = vec![Signals { count: 10, period: Duration::ZERO, value_len: 8 }];
    scenario.clients = vec![
        clients("report", 1, load(Operation::Read, Pace::Every(ms(500)))),
        clients("panel", 1, load(Operation::Read, Pace::Pause(ms(100)))),
        clients("recipe", 1, load(Operation::Write, Pace::Pause(ms(1000)))),
    ];
    let outcome = simulate(&scenario, 3);
    let [report, panel, recipe] = &outcome.loads[..] else { panic!() };
    assert!((38..=40).contains(&report.due), "{}", report.due);
    for load in [report, panel, recipe] {
        assert_eq!((load.arrived, load.failed), (load.due, 0));
        // Two delays, plus the transmission time of both packets.
        let mean = load.times.mean() / 1e6;
        assert!((10.0..14.0).contains(&mean), "{mean}");
    }
    assert!((panel.due as f64 - 2.0 * 10.0 / 0.111).abs() < 6.0, "{}", panel.due);
}

#[test]
fn processors_take_time_and_are_accounted_for() {
    let mut scenario = scenario();
    let mut profile = HostProfile::free(1);
    profile.server.insert("notifications".into(), 100_000.0);
    profile.client.insert("notifications".into(), 50_000.0);
    scenario.hosts = vec![
        Host { name: "plc".into(), profile: profile.clone(), competitors: vec![] },
        Host { name: "pc".into(), profile, competitors: vec![] },
    ];
    scenario.servers[0].host = Some(0);
    scenario.clients[0].host = Some(1);
    let with = simulate(&scenario, 1);
    // 20 variables, 20 changes per second, two clients: 800 notifications per second from each server; 1600 to the
    // clients.
    let (server, client) = (with.servers[0].cpu.unwrap(), with.clients[0].cpu.unwrap());
    assert!((server / 0.08 - 1.0).abs() < 0.03, "{server}");
    assert!((client / 0.08 - 1.0).abs() < 0.03, "{client}");
    let without = simulate(&self::scenario(), 1);
    assert!(with.loads[0].times.mean() > without.loads[0].times.mean() + 1e6);
    assert_eq!(without.servers[0].cpu, None);
}

fn all_faults() -> Vec<Fault> {
    let all = Which { group: 0, number: None };
    let first = Which { group: 0, number: Some(0) };
    let fault = |at: u64, lasts: u64, kind| Fault { at: ms(at), lasts: ms(lasts), kind };
    vec![
        fault(500, 0, FaultKind::Cut(first)),
        fault(1_500, 2_000, FaultKind::Partition(Which { group: 0, number: Some(1) })),
        fault(3_000, 1_000, FaultKind::SlowReader(Which { group: 0, number: Some(2) })),
        fault(4_000, 3_000, FaultKind::ServerClock(all, -3_600_000_000_000)),
        fault(4_500, 3_000, FaultKind::ClientClock(all, 7_200_000_000_000)),
        fault(5_000, 0, FaultKind::Storm(all)),
        fault(6_500, 1_500, FaultKind::Crash(first)),
        fault(8_500, 0, FaultKind::Restart(Which { group: 0, number: Some(1) })),
    ]
}

#[test]
fn promises_hold_through_all_faults() {
    let mut scenario = Scenario { faults: all_faults(), ..scenario() };
    for seed in 1..=5 {
        let outcome = simulate(&scenario, seed);
        let load = &outcome.loads[0];
        // Each client of each server lost its connection at least twice.
        assert!(load.reconnects >= 8, "{load:?}");
        assert!(load.losses >= 4, "each restart must lose the subscriptions: {load:?}");
        assert!(load.arrived <= load.due && load.arrived * 10 > load.due * 5, "{load:?}");
    }
    scenario.clients[0].security = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
    assert!(simulate(&scenario, 1).loads[0].reconnects >= 8);
}

#[test]
fn a_client_that_cannot_reconnect_breaks_a_promise() {
    // The server is unreachable for longer than the settling time of the clients.
    let kind = FaultKind::Partition(Which { group: 0, number: Some(1) });
    let mut scenario = Scenario { faults: vec![Fault { at: secs(9), lasts: secs(5), kind }], ..scenario() };
    scenario.settle = ms(1);
    match run(&scenario, 1, &mut |_| true) {
        Err(RunError::Broken(violation)) => {
            let said = violation.to_string();
            assert!(said.contains("client 2 of scada at plc-1") && said.contains("20 of 25 items"), "{said}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_can_be_stopped() {
    let mut asked = 0;
    let stopped = run(&scenario(), 1, &mut |progress| {
        asked += 1;
        progress.simulated < secs(2)
    });
    assert_eq!(stopped, Err(RunError::Stopped));
    assert!(asked > 10);
}

#[test]
fn a_panic_is_an_error_of_the_run() {
    let panicked = run(&scenario(), 1, &mut |progress| {
        assert!(progress.simulated < secs(2), "after {:?}", secs(2));
        true
    });
    assert_eq!(panicked, Err(RunError::Panicked("after 2s".to_owned())));
    assert!(run(&scenario(), 1, &mut |_| true).is_ok());
}

/// A scenario whose requests take no virtual time.
fn standing_still() -> Scenario {
    let mut scenario = scenario();
    scenario.links[0].profile = "delay=0ms".parse().unwrap();
    let requests = Requests { operation: Operation::Read, batch: 1, pace: Pace::Pause(Duration::ZERO) };
    scenario.clients = vec![clients("greedy", 1, Load::Request(requests))];
    scenario
}

#[test]
fn requests_that_take_no_time_are_reported() {
    let stands = run(&standing_still(), 1, &mut |_| true).unwrap_err();
    assert!(matches!(stands, RunError::Standstill(_)), "{stands}");
    assert!(stands.to_string().contains("--host-profile"), "{stands}");
    // A pause is sufficient.
    let mut paused = standing_still();
    let requests = Requests { operation: Operation::Read, batch: 1, pace: Pace::Pause(ms(100)) };
    paused.clients = vec![clients("modest", 1, Load::Request(requests))];
    assert!(run(&paused, 1, &mut |_| true).is_ok());
}

#[test]
fn a_run_can_be_stopped_while_time_stands_still() {
    let (mut last, mut equal) = (Duration::MAX, 0);
    let stopped = run(&standing_still(), 1, &mut |progress| {
        equal = if progress.simulated == last { equal + 1 } else { 0 };
        last = progress.simulated;
        equal < 3
    });
    assert_eq!(stopped, Err(RunError::Stopped));
}

#[test]
fn contradictions_are_reported_by_key() {
    let key = |change: fn(&mut Scenario)| {
        let mut scenario = scenario();
        change(&mut scenario);
        match run(&scenario, 1, &mut |_| true) {
            Err(RunError::Invalid { key, .. }) => key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(key(|it| it.servers.clear()), "server");
    assert_eq!(key(|it| it.clients.clear()), "client");
    assert_eq!(key(|it| it.measured = Duration::ZERO), "time.duration_s");
    assert_eq!(key(|it| it.servers[0].count = 0), "server.0.count");
    assert_eq!(key(|it| it.servers[0].signals.clear()), "server.0.signals");
    assert_eq!(
        key(|it| it.servers[0].signals[0].period = ms(0) + Duration::from_nanos(1)),
        "server.0.signals.0.period_ms"
    );
    assert_eq!(key(|it| it.servers[0].signals[1].value_len = 0), "server.0.signals.1.bytes");
    assert_eq!(key(|it| it.servers[0].host = Some(0)), "server.0.host");
    assert_eq!(key(|it| it.servers[0].shards = 0), "server.0.threads");
    assert_eq!(key(|it| it.servers.push(it.servers[0].clone())), "server.1.name");
    assert_eq!(key(|it| it.clients[0].count = 0), "client.0.count");
    assert_eq!(key(|it| it.clients[0].server = 5), "client.0.server");
    assert_eq!(key(|it| it.clients[0].link = Some(7)), "client.0.link");
    assert_eq!(key(|it| it.clients[0].host = Some(0)), "client.0.host");
    assert_eq!(key(|it| it.clients[0].items = Some(0)), "client.0.items");
    assert_eq!(
        key(|it| it.clients[0].load = Load::Subscribe(Subscription::new(Duration::ZERO))),
        "client.0.publishing_ms"
    );
    let write = |it: &mut Scenario| {
        it.clients[0].load =
            Load::Request(Requests { operation: Operation::Write, batch: 1, pace: Pace::Pause(ms(1)) });
    };
    assert_eq!(key(write), "client.0.kind");
    let fault = |it: &mut Scenario, at: u64, lasts: u64, number: u32| {
        let kind = FaultKind::Crash(Which { group: 0, number: Some(number) });
        it.faults.push(Fault { at: secs(at), lasts: secs(lasts), kind });
    };
    assert_eq!(key(|it| it.servers[0].count = u32::MAX), "client");
    assert!(key(|it| it.clients[0].count = u32::MAX).starts_with("client"));
    let many = |it: &mut Scenario| {
        it.servers[0].signals[0].count = 4_000_000_000;
        it.clients[0].items = Some(1);
    };
    assert_eq!(key(many), "server.0.signals");
    // Few signals per server, but many servers.
    let many = |it: &mut Scenario| {
        let mut other = it.servers[0].clone();
        (other.name, other.count) = ("other".into(), 1_000_000);
        it.servers.push(other);
    };
    assert_eq!(key(many), "server.1.signals");
    let mut late = scenario();
    for (at, lasts, number, wanted) in
        [(1, 0, 0, "fault.0.for"), (99, 1, 0, "fault.0.at"), (1, 1, 2, "fault.0.number")]
    {
        late.faults.clear();
        fault(&mut late, at, lasts, number);
        match run(&late, 1, &mut |_| true) {
            Err(RunError::Invalid { key, .. }) => assert_eq!(key, wanted),
            other => panic!("{other:?}"),
        }
    }
}
