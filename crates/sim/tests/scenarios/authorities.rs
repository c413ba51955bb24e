//! Certificate authorities as nodes: servers and clients ask them over links before they accept a certificate.

use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_model::host::Cost;
use taktwerk_sim::Trace;
use taktwerk_sim::authority::{self, Protocol, Unknown};
use taktwerk_sim::calls::{Checks, Remote, Setup, call};
use taktwerk_sim::capture::Capture;
use taktwerk_sim::scenario::fault::{NodeFault, Role, Which};
use taktwerk_sim::scenario::{
    Authority, Clients, Fault, FaultKind, Host, Instruments, Lines, Link, Load, Login, Outcome, PubSub,
    RunError, Scenario, Server, Signals, Subscription, run, run_with, text,
};

const SECURED: (SecurityPolicy, MessageSecurityMode) =
    (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Servers with one client each, and two authorities behind a line. Servers ask both.
fn plant(servers: u32) -> Scenario {
    let link = |name: &str, profile: &str| Link {
        name: name.into(),
        profile: profile.parse().unwrap(),
        is_half_duplex: false,
        lines: Lines::One,
    };
    let authority = |name: &str| Authority { link: Some(1), processing: ms(300), ..Authority::new(name) };
    Scenario {
        hosts: vec![],
        links: vec![link("line", "rate=10mbit,delay=1ms"), link("far", "rate=2mbit,delay=50ms")],
        servers: vec![Server {
            name: "plc".into(),
            count: servers,
            host: None,
            shards: 1,
            signals: vec![Signals { count: 1, period: ms(100), value_len: 8 }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: vec![0, 1],
        }],
        clients: vec![Clients {
            name: "scada".into(),
            count: 1,
            server: 0,
            link: Some(0),
            host: None,
            threads: 1,
            items: None,
            load: Load::Subscribe(Subscription::new(ms(200))),
            security: SECURED,
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(60),
            authorities: vec![],
        }],
        pubsub: PubSub::default(),
        authorities: vec![authority("issuer"), authority("root")],
        faults: vec![],
        warmup: ms(500),
        measured: Duration::from_secs(10),
        settle: Duration::from_secs(120),
    }
}

/// All processors have the prices of this profile.
fn with_machines(mut scenario: Scenario, profile: &HostProfile) -> Scenario {
    let host = |name: &str| Host { name: name.into(), profile: profile.clone(), competitors: vec![] };
    scenario.hosts = ["plc", "office", "issuer", "root"].map(host).into();
    scenario.servers[0].host = Some(0);
    scenario.clients[0].host = Some(1);
    (scenario.authorities[0].host, scenario.authorities[1].host) = (Some(2), Some(3));
    scenario
}

fn simulate(scenario: &Scenario) -> Outcome {
    run(scenario, 1, &mut |_| true).unwrap()
}

fn session_up(outcome: &Outcome) -> f64 {
    outcome.loads[0].session_up
}

#[test]
fn each_authority_costs_its_round_trips_and_its_processing() {
    let mut scenario = plant(1);
    scenario.servers[0].authorities.clear();
    let without = session_up(&simulate(&scenario));
    scenario.servers[0].authorities = vec![0];
    let one = simulate(&scenario);
    // Connection and request: two round trips of 100 ms. 300 ms of processing, and 2.3 kB at 2 Mbit/s.
    let added = session_up(&one) - without;
    assert!((0.5..0.53).contains(&added), "{added}");
    let figures = &one.authorities[0].figures;
    assert_eq!((figures.requests, figures.answers, figures.unanswered), (1, 1, 0), "{figures:?}");
    assert_eq!(one.authorities[1].figures.requests, 0);
    let told = figures.times.mean() / 1e9;
    assert!((told - added).abs() < 0.01, "{told} {added}");
    // The client asks both, after the server has asked one.
    scenario.clients[0].authorities = vec![0, 1];
    let three = session_up(&simulate(&scenario)) - without;
    assert!((three / added - 3.0).abs() < 0.05, "{three} {added}");
}

#[test]
fn runs_with_authorities_are_deterministic() {
    let mut scenario = with_machines(plant(3), &HostProfile::free(1));
    scenario.clients[0].authorities = vec![0, 1];
    scenario.faults = vec![storm(), fault(NodeFault::Partition)];
    let one = simulate(&scenario);
    assert_eq!(one, simulate(&scenario));
    assert!(one.authorities[0].figures.unanswered > 0, "{one:?}");
    assert_ne!(one, run(&scenario, 2, &mut |_| true).unwrap());
}

#[test]
fn servers_that_ask_at_the_same_time_queue_at_the_authority() {
    for has_machines in [false, true] {
        let of = |servers: u32| {
            let mut scenario = plant(servers);
            // Clients begin within a few milliseconds.
            scenario.servers[0].authorities = vec![0];
            let scenario =
                if has_machines { with_machines(scenario, &HostProfile::free(1)) } else { scenario };
            simulate(&scenario)
        };
        let (one, three) = (of(1), of(3));
        let waited = session_up(&three) - session_up(&one);
        // The last of three waits for the other two.
        assert!((0.57..0.63).contains(&waited), "{has_machines}: {waited}");
        let figures = &three.authorities[0].figures;
        assert_eq!((figures.requests, figures.connections_max), (3, 3), "{figures:?}");
        let worst = figures.times.max() as f64 / figures.times.quantile(0.01) as f64;
        assert!(worst > 2.0, "{figures:?}");
    }
}

#[test]
fn answers_cost_what_the_host_profile_says() {
    let mut profile = HostProfile::free(1);
    profile.jobs.insert("sign-session/Basic256Sha256".into(), Cost::Fixed(2e8));
    profile.client_jobs.insert("verify/Basic256Sha256".into(), Cost::Fixed(3e7));
    for name in ["chunks_received", "chunks_sent"] {
        profile.server.insert(name.into(), 1e7);
    }
    let mut scenario = with_machines(plant(1), &HostProfile::free(1));
    scenario.servers[0].authorities = vec![0];
    scenario.authorities[0].processing = Duration::ZERO;
    let without = session_up(&simulate(&scenario));
    scenario.hosts[2].profile = profile.clone();
    let at_authority = session_up(&simulate(&scenario)) - without;
    // A request, an answer and its signature.
    assert!((at_authority - 0.22).abs() < 1e-3, "{at_authority}");
    // A list was signed beforehand.
    scenario.authorities[0].protocol = Protocol::Crl(Duration::from_secs(3_600));
    let list = session_up(&simulate(&scenario)) - without;
    assert!((list - 0.02).abs() < 2e-3, "{list}");
}

fn storm() -> Fault {
    let kind = FaultKind::Storm(Which { group: 0, number: None });
    Fault { at: ms(1_500), lasts: Duration::ZERO, kind }
}

/// From one second to five seconds.
fn fault(what: NodeFault) -> Fault {
    let kind = FaultKind::Node(Role::Authority, Which { group: 0, number: None }, what);
    Fault { at: ms(1_000), lasts: Duration::from_secs(4), kind }
}

#[test]
fn an_unreachable_authority_keeps_clients_out_until_it_is_back() {
    let mut scenario = plant(1);
    scenario.authorities[0].timeout = ms(700);
    scenario.faults = vec![storm(), fault(NodeFault::Partition)];
    let cut_off = simulate(&scenario);
    let load = &cut_off.loads[0];
    let figures = &cut_off.authorities[0].figures;
    assert!(figures.unanswered >= 1 && load.failed_attempts >= figures.unanswered, "{cut_off:?}");
    // The client lost its connection after 1.5 s and gets it back after the authority answers again, at 5 s.
    assert!((3.5..10.0).contains(&load.outage), "{load:?}");
    assert_eq!(load.reconnects, 1);
    // If the check may fail, only the time without an answer is lost.
    scenario.authorities[0].unknown = Unknown::Accept;
    let accepted = simulate(&scenario).loads[0].clone();
    assert_eq!((accepted.reconnects, accepted.failed_attempts), (1, 0), "{accepted:?}");
    assert!((1.1..2.5).contains(&accepted.outage), "{accepted:?}");
    // A process that is down refuses connections at once.
    scenario.authorities[0].unknown = Unknown::Refuse;
    scenario.faults = vec![storm(), fault(NodeFault::Crash)];
    let crashed = simulate(&scenario);
    assert!(crashed.loads[0].outage > 3.5 && crashed.authorities[0].figures.unanswered > 2, "{crashed:?}");
}

#[test]
fn a_slow_authority_delays_the_session() {
    let mut scenario = plant(1);
    scenario.faults = vec![storm()];
    let usual = simulate(&scenario).loads[0].outage;
    scenario.faults = vec![storm(), fault(NodeFault::Slow(ms(1_200)))];
    let slow = simulate(&scenario).loads[0].outage;
    assert!((1.1..1.3).contains(&(slow - usual)), "{slow} {usual}");
}

#[test]
fn clients_without_an_authority_never_get_a_session() {
    let mut scenario = plant(1);
    (scenario.servers[0].authorities, scenario.clients[0].authorities) = (vec![], vec![0]);
    scenario.authorities[0].timeout = ms(100);
    // The line takes longer than that.
    let error = run(&scenario, 1, &mut |_| true).unwrap_err();
    let RunError::NoSession(1, 1, _, why) = &error else { panic!("{error}") };
    assert!(why.contains("BadCertificateRevocationUnknown"), "{why}");
    // Above the issuer, the status is another one.
    scenario.authorities[0].timeout = Duration::from_secs(5);
    scenario.authorities[1].timeout = ms(100);
    scenario.clients[0].authorities = vec![0, 1];
    let error = run(&scenario, 1, &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("BadCertificateIssuerRevocationUnknown"), "{error}");
}

#[test]
fn lists_are_kept_until_they_expire() {
    let mut scenario = plant(1);
    scenario.faults = vec![storm(), Fault { at: ms(6_000), ..storm() }];
    let requests = |scenario: &Scenario| simulate(scenario).authorities[0].figures.requests;
    assert_eq!(requests(&scenario), 3);
    scenario.authorities[0].protocol = Protocol::Crl(Duration::from_secs(3_600));
    assert_eq!(requests(&scenario), 1);
    scenario.authorities[0].protocol = Protocol::Crl(ms(3_000));
    assert_eq!(requests(&scenario), 2);
}

#[test]
fn workers_that_wait_for_an_authority_handle_no_other_handshake() {
    let of = |count: u32| {
        let mut scenario = with_machines(plant(1), &HostProfile::free(4));
        scenario.servers[0].authorities = vec![0];
        // Only the line takes time, so requests do not wait for each other at the authority.
        scenario.authorities[0].processing = Duration::ZERO;
        scenario.clients[0].count = count;
        session_up(&simulate(&scenario))
    };
    let (four, five) = (of(4), of(5));
    assert!(five - four > 0.15, "{four} {five}");
}

#[test]
fn contradictions_are_refused() {
    let refused = |change: fn(&mut Scenario), key: &str| {
        let mut scenario = plant(1);
        change(&mut scenario);
        let error = run(&scenario, 1, &mut |_| true).unwrap_err();
        assert!(matches!(&error, RunError::Invalid { key: found, .. } if found == key), "{key}: {error}");
    };
    refused(|it| it.servers[0].authorities = vec![7], "server.0.authorities");
    refused(|it| it.clients[0].authorities = vec![7], "client.0.authorities");
    refused(
        |it| it.clients[0].security = (SecurityPolicy::None, MessageSecurityMode::None),
        "server.0.authorities",
    );
    refused(|it| it.authorities[1].name = "issuer".into(), "authority.1.name");
    refused(|it| it.authorities[0].link = Some(9), "authority.0.link");
    refused(|it| it.authorities[0].host = Some(9), "authority.0.host");
    refused(|it| it.authorities[0].timeout = Duration::ZERO, "authority.0.timeout_s");
    refused(|it| it.authorities[0].response_len = 0, "authority.0.response_bytes");
    refused(|it| it.faults = vec![fault(NodeFault::Cut)], "fault.0.kind");
    refused(
        |it| {
            let which = Which { group: 0, number: None };
            let kind = FaultKind::Node(Role::Broker, which, NodeFault::Slow(ms(1)));
            it.faults = vec![Fault { at: ms(1), lasts: ms(1), kind }];
        },
        "fault.0.kind",
    );
}

#[test]
fn a_scenario_with_authorities_is_written_completely() {
    let mut scenario = plant(1);
    scenario.authorities[0].protocol = Protocol::Crl(Duration::from_secs(60));
    scenario.authorities[1].unknown = Unknown::Accept;
    scenario.faults = vec![fault(NodeFault::Slow(ms(1_500)))];
    let written = text::to_toml(&scenario, "plant");
    for line in [
        "[[authority]]",
        "protocol = \"crl\"",
        "valid_s = 60",
        "on_failure = \"accept\"",
        "authorities = [\"issuer\", \"root\"]",
        "authority = \"issuer\"",
        "by = \"1500ms\"",
    ] {
        assert!(written.contains(line), "{line}:\n{written}");
    }
}

#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl io::Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn requests_are_in_traces_and_captures() {
    let scenario = with_machines(plant(1), &HostProfile::free(1));
    let (trace, capture) = (File::default(), File::default());
    let instruments = Instruments {
        trace: Some(Trace::new(Box::new(trace.clone()))),
        captures: vec![(1, Capture::new(Box::new(capture.clone())))],
        ..Instruments::default()
    };
    let recorded = run_with(&scenario, 1, instruments, &mut |_| true).unwrap();
    assert_eq!(recorded, simulate(&scenario), "records must not change the outcome");
    let trace = String::from_utf8(trace.0.lock().unwrap().clone()).unwrap();
    for name in ["certificate authority issuer", "checks of plc", "send HTTP", "receive HTTP"] {
        assert!(trace.contains(name), "{name}");
    }
    let capture = capture.0.lock().unwrap();
    let count = |text: &str| capture.windows(text.len()).filter(|part| *part == text.as_bytes()).count();
    // One request to each authority, and its answer.
    assert_eq!(count("POST /ocsp HTTP/1.1"), 2);
    assert_eq!(count("HTTP/1.1 200 OK"), 2);
    // To port 80 of 10.48.0.1 and 10.48.0.2, from 10.176.0.1.
    assert!(capture.windows(8).any(|part| part == [10, 176, 0, 1, 10, 48, 0, 2]));
}

#[test]
fn sessions_opened_together_share_the_authorities() {
    let remote = Remote {
        authority: authority::Authority {
            name: "root".into(),
            protocol: Protocol::Ocsp,
            response_len: 4_000,
            processing: Duration::from_secs(1),
        },
        link: "rate=2mbit,delay=50ms".parse().unwrap(),
        host: Some(HostProfile::free(1)),
    };
    let of = |others, checks: Checks| {
        let link = "ppp-2m".parse().unwrap();
        let setup = Setup { security: SECURED, checks, others, ..Setup::new(link) };
        call(&setup, &[]).unwrap().session_up.as_secs_f64()
    };
    let without = of(0, Checks::None);
    let one = of(0, Checks::Remote(vec![remote.clone()])) - without;
    // Client and server each wait for 1 s, two round trips and the transmission.
    assert!((2.4..2.5).contains(&one), "{one}");
    let two = of(1, Checks::Remote(vec![remote.clone()])) - without;
    // All four requests wait for each other.
    assert!((4.1..4.4).contains(&two), "{two} {one}");
    // Authorities on the machines of client and server do not wait for each other.
    let local = of(3, Checks::Local(remote.authority)) - without;
    assert!((1.95..2.1).contains(&local), "{local}");
}
