//! Logins with passwords, and history: slow jobs that take processors.

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_model::host::Cost;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Host, Load, Login, Operation, Outcome, Pace, PubSub, Requests, Scenario,
    Server, Signals, Subscription, run,
};

const NONE: (SecurityPolicy, MessageSecurityMode) = (SecurityPolicy::None, MessageSecurityMode::None);
const SECURED: (SecurityPolicy, MessageSecurityMode) =
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
/// Cost of a password.
const PASSWORD: Duration = Duration::from_millis(50);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn clients(name: &str, count: u32, load: Load) -> Clients {
    Clients {
        name: name.into(),
        count,
        server: 0,
        link: None,
        host: None,
        threads: 1,
        items: None,
        load,
        security: NONE,
        login: Login::Anonymous,
        session_timeout: Duration::from_secs(60),
        authorities: Vec::new(),
    }
}

fn subscribe(name: &str, count: u32) -> Clients {
    clients(name, count, Load::Subscribe(Subscription::new(ms(100))))
}

fn logging_in(name: &str, count: u32) -> Clients {
    Clients { login: Login::Password, ..subscribe(name, count) }
}

/// A server with these cores and the given slow jobs, each of which has a fixed cost. Everything else takes no time.
fn scenario(cores: u32, jobs: &[(&str, Duration)], clients: Vec<Clients>) -> Scenario {
    let mut profile = HostProfile::free(cores);
    profile.name = "test".into();
    let cost = |span: &Duration| Cost::Fixed(span.as_secs_f64() * 1e9);
    profile.jobs = jobs.iter().map(|(name, span)| ((*name).to_owned(), cost(span))).collect();
    Scenario {
        hosts: vec![Host { name: "plc".into(), profile, competitors: vec![] }],
        links: vec![],
        servers: vec![Server {
            name: "plc".into(),
            count: 1,
            host: Some(0),
            shards: 1,
            signals: vec![Signals { count: 10, period: ms(20), value_len: 8 }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients,
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: vec![],
        warmup: ms(500),
        measured: Duration::from_secs(4),
        settle: Duration::from_secs(60),
    }
}

fn simulate(scenario: &Scenario) -> Outcome {
    run(scenario, 1, &mut |_| true).unwrap()
}

fn refused(scenario: &Scenario) -> String {
    run(scenario, 1, &mut |_| true).unwrap_err().to_string()
}

/// The longest time until a client of a group has a session, in seconds.
fn up(outcome: &Outcome, group: usize) -> f64 {
    outcome.loads[group].session_up
}

#[test]
fn logins_queue_for_worker_cores() {
    let passwords = [("check-credential", PASSWORD)];
    let last = |cores| up(&simulate(&scenario(cores, &passwords, vec![logging_in("hmi", 12)])), 0);
    let (one, two, eight) = (last(1), last(2), last(8));
    // Twelve checks of 50 ms, one after the other.
    assert!((0.58..0.63).contains(&one), "{one}");
    assert!((0.29..0.33).contains(&two), "{two}");
    // The server runs two checks at a time, however many cores there are.
    assert!((0.29..0.33).contains(&eight), "{eight}");
    let free = up(&simulate(&scenario(1, &passwords, vec![subscribe("hmi", 12)])), 0);
    assert!(free < 0.03, "clients without a user do not wait: {free}");
}

#[test]
fn passwords_are_encrypted_over_secure_channels() {
    // Decrypting a password is one more operation with the server's key.
    let key = ("sign-session/Basic256Sha256", ms(20));
    let with = |login| {
        let secured = Clients { security: SECURED, login, ..subscribe("hmi", 1) };
        up(&simulate(&scenario(1, &[("check-credential", PASSWORD), key], vec![secured])), 0)
    };
    let (anonymous, password) = (with(Login::Anonymous), with(Login::Password));
    assert!((0.020..0.024).contains(&anonymous), "{anonymous}");
    assert!((0.090..0.094).contains(&password), "{password}");
}

#[test]
fn a_storm_of_logins_delays_handshakes_but_not_values() {
    let jobs = [("check-credential", PASSWORD), ("open-channel/Basic256Sha256", ms(10))];
    let values = subscribe("scada", 1);
    let secured = Clients { security: SECURED, ..subscribe("historian", 2) };
    let quiet = scenario(1, &jobs, vec![values.clone(), secured.clone()]);
    let mut storm = scenario(1, &jobs, vec![values, secured, logging_in("hmi", 40)]);
    let which = Which { group: 2, number: None };
    storm.faults = vec![Fault { at: ms(1_000), lasts: Duration::ZERO, kind: FaultKind::Cut(which) }];
    let (quiet, storm) = (simulate(&quiet), simulate(&storm));
    assert_eq!(storm.loads[2].reconnects, 40);
    // Forty logins take two seconds of the processor, most of the measured four with the reconnections.
    assert!(storm.servers[0].cpu.unwrap() > 0.4, "{:?}", storm.servers);
    // A handshake shares the processor with two checks.
    assert!(up(&storm, 1) > up(&quiet, 1) + 0.015, "{} {}", up(&quiet, 1), up(&storm, 1));
    for outcome in [&quiet, &storm] {
        assert_eq!((outcome.loads[0].arrived, outcome.loads[0].overflows), (10 * 200, 0));
    }
    // A shard that wakes preempts workers.
    let worst = |outcome: &Outcome| outcome.loads[0].times.max() as f64 / 1e6;
    assert!(worst(&storm) < worst(&quiet) + 1.0, "{} {}", worst(&quiet), worst(&storm));
}

fn history(values: u32, pace: Pace) -> Clients {
    let operation = Operation::ReadHistory(values);
    clients("report", 1, Load::Request(Requests { operation, batch: 2, pace }))
}

#[test]
fn history_is_recorded_completely_and_read_backwards() {
    let jobs = [("read-history", ms(2)), ("append-history", ms(3))];
    let mut scenario = scenario(2, &jobs, vec![history(300, Pace::Pause(ms(100)))]);
    scenario.servers[0].history = 500;
    let outcome = simulate(&scenario);
    let report = &outcome.loads[0];
    assert_eq!((report.arrived, report.failed), (report.due, 0));
    // A request each 102 ms, which takes as long as reading up to 1000 values.
    assert!((38..=40).contains(&report.due), "{}", report.due);
    let mean = report.times.mean() / 1e6;
    assert!((2.0..2.1).contains(&mean), "{mean}");
    // 2 ms each 102 ms for reading, and 3 ms each 500 ms for recording.
    let cpu = outcome.servers[0].cpu.unwrap();
    assert!((cpu - 2.0 / 102.0 - 3.0 / 500.0).abs() < 0.002, "{cpu}");
    // Values that were not stored when the process ended are missing, which is no broken promise.
    scenario.faults =
        vec![Fault { at: ms(900), lasts: ms(200), kind: FaultKind::Crash(Which { group: 0, number: None }) }];
    let outcome = simulate(&scenario);
    assert_eq!(outcome.loads[0].reconnects, 1);
    // The time that the server used before counts, too.
    let with_crash = outcome.servers[0].cpu.unwrap();
    assert!((0.85 * cpu..1.1 * cpu).contains(&with_crash), "{with_crash} instead of about {cpu}");
}

#[test]
fn requests_for_many_values_cost_more() {
    let mean = |values: u32| {
        let jobs = [("read-history", ms(2)), ("append-history", ms(0))];
        let mut scenario = scenario(1, &jobs, vec![history(values, Pace::Pause(ms(100)))]);
        scenario.servers[0].history = 5_000;
        simulate(&scenario).loads[0].times.mean() / 1e6
    };
    let (some, many) = (mean(500), mean(5_000));
    assert!((2.0..2.1).contains(&some) && (20.0..20.2).contains(&many), "{some} {many}");
}

#[test]
fn history_delays_values_only_by_the_core_that_it_takes() {
    let worst = |cores, reads: u32| {
        let jobs = [("read-history", ms(40)), ("append-history", ms(40))];
        let readers = Clients { count: reads, ..history(100, Pace::Pause(ms(1))) };
        let mut all = vec![subscribe("scada", 1)];
        all.extend((reads > 0).then_some(readers));
        let mut scenario = scenario(cores, &jobs, all);
        scenario.servers[0].history = 500;
        let outcome = simulate(&scenario);
        assert_eq!(outcome.loads[0].arrived, 10 * 200);
        let busy = outcome.servers[0].cpu.unwrap();
        (outcome.loads[0].times.max() as f64 / 1e6, busy)
    };
    let (quiet, _) = worst(1, 0);
    // Two threads for history use both cores, or share the only one.
    for (cores, expected) in [(2, 1.9), (1, 0.95)] {
        let (busy, cpu) = worst(cores, 4);
        assert!(cpu > expected, "{cpu} of {cores}");
        assert!(busy < quiet + 1.0, "{quiet} {busy}");
    }
}

#[test]
fn profiles_without_the_costs_are_refused() {
    let error = refused(&scenario(1, &[("read-history", ms(1))], vec![logging_in("hmi", 1)]));
    assert!(error.contains("host.0.profile") && error.contains("jobs.check-credential"), "{error}");
    let reads = || vec![history(10, Pace::Pause(ms(100)))];
    let with = |jobs: &[(&str, Duration)]| {
        let mut scenario = scenario(1, jobs, reads());
        scenario.servers[0].history = 100;
        scenario
    };
    let error = refused(&with(&[("append-history", ms(1))]));
    assert!(error.contains("cost of reading history (jobs.read-history)"), "{error}");
    let error = refused(&with(&[("read-history", ms(1))]));
    assert!(error.contains("jobs.append-history or jobs.update-history"), "{error}");
    // Files of earlier versions only have the cost of replacing values.
    assert!(
        simulate(&with(&[("read-history", ms(1)), ("update-history", ms(5))])).servers[0].cpu > Some(0.01)
    );
    // On a host that is free by intention, and without a host, everything is free.
    let mut free = with(&[]);
    free.hosts[0].profile = HostProfile::free(1);
    assert_eq!(simulate(&free).servers[0].cpu, Some(0.0));
}

#[test]
fn contradictions_are_named() {
    let error = refused(&scenario(1, &[("read-history", ms(1))], vec![history(10, Pace::Pause(ms(1)))]));
    assert!(error.contains("client.0.kind") && error.contains("history = 1000"), "{error}");
    let jobs = [("read-history", ms(1)), ("append-history", ms(1))];
    let with = |values: u32, kept: u32, count: u32| {
        let mut scenario = scenario(1, &jobs, vec![history(values, Pace::Pause(ms(1)))]);
        scenario.servers[0].history = kept;
        scenario.servers[0].signals[0].count = count;
        refused(&scenario)
    };
    assert!(with(60_000, 10, 10).contains("client.0.values: 2 variables with 60000 values"));
    assert!(with(0, 10, 10).contains("client.0.values"));
    assert!(with(10, 1_000_000, 10).contains("server.0.history: 10000000 stored values"));
    assert!(with(10, 1, 100_000).contains("server.0.history: the variables change 5000000 times a second"));
}
