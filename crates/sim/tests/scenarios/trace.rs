//! Traces in the format that Perfetto reads.

use core::time::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_sim::Trace;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Host, Instruments, Lines, Link, Load, Login, PubSub, RunError, Scenario,
    Server, Signals, Subscription, run, run_with,
};

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

/// A disk that is full after this many bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn scenario(has_machines: bool) -> Scenario {
    let mut profile = HostProfile::free(1);
    for costs in [&mut profile.server, &mut profile.client] {
        for name in ["wake", "turn", "receive", "send", "timer"] {
            costs.insert(name.into(), 5_000.0);
        }
    }
    let host = |name: &str| Host { name: name.into(), profile: profile.clone(), competitors: Vec::new() };
    let which = Which { group: 0, number: Some(0) };
    let fault = |at, kind| Fault { at: secs(at), lasts: secs(1), kind };
    Scenario {
        hosts: vec![host("cabinet"), host("office \"1\"")],
        links: vec![Link {
            name: "line".into(),
            profile: "ethernet-100m,delay=2ms".parse().unwrap(),
            is_half_duplex: false,
            lines: Lines::One,
        }],
        servers: vec![Server {
            name: "plc".into(),
            count: 1,
            host: has_machines.then_some(0),
            shards: 2,
            signals: vec![Signals { count: 300, period: Duration::from_millis(100), value_len: 8 }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![Clients {
            name: "scada".into(),
            count: 2,
            server: 0,
            link: Some(0),
            host: has_machines.then_some(1),
            threads: 1,
            items: None,
            load: Load::Subscribe(Subscription::new(Duration::from_millis(200))),
            security: (SecurityPolicy::None, MessageSecurityMode::None),
            login: Login::Anonymous,
            session_timeout: secs(60),
            authorities: Vec::new(),
        }],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: vec![fault(1, FaultKind::Cut(which)), fault(2, FaultKind::Crash(which))],
        warmup: secs(1),
        measured: secs(4),
        settle: secs(60),
    }
}

fn trace(scenario: &Scenario) -> Vec<Value> {
    let file = File::default();
    let instruments =
        Instruments { trace: Some(Trace::new(Box::new(file.clone()))), ..Instruments::default() };
    let traced = run_with(scenario, 7, instruments, &mut |_| true).unwrap();
    assert_eq!(traced, run(scenario, 7, &mut |_| true).unwrap(), "a trace must not change the outcome");
    let text = file.0.lock().unwrap();
    let mut whole: Value = serde_json::from_slice(&text).unwrap();
    let Value::Array(events) = whole["traceEvents"].take() else { panic!("no list") };
    events
}

/// Nanoseconds, exactly: microseconds have three decimals.
fn nanos(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

type Thread = (u64, u64);

fn thread(event: &Value) -> Thread {
    (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())
}

/// All slices by thread, as (from, until, name); fails if a begin or an end has no counterpart.
fn slices(events: &[Value]) -> BTreeMap<Thread, Vec<(u64, u64, String)>> {
    let mut open: BTreeMap<Thread, Vec<(u64, String)>> = BTreeMap::new();
    let mut all: BTreeMap<Thread, Vec<(u64, u64, String)>> = BTreeMap::new();
    for event in events {
        let (at, name) = (|| nanos(&event["ts"]), || event["name"].as_str().unwrap().to_owned());
        match event["ph"].as_str().unwrap() {
            "X" => {
                all.entry(thread(event)).or_default().push((at(), at() + nanos(&event["dur"]), name()));
            }
            "B" => open.entry(thread(event)).or_default().push((at(), name())),
            "E" => {
                let (from, name) = open.get_mut(&thread(event)).unwrap().pop().unwrap();
                all.entry(thread(event)).or_default().push((from, at(), name));
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    all
}

fn names(events: &[Value], kind: &str) -> BTreeMap<Thread, String> {
    let named = events.iter().filter(|event| event["ph"] == "M" && event["name"] == kind);
    named.map(|event| (thread(event), event["args"]["name"].as_str().unwrap().to_owned())).collect()
}

fn check_nesting(slices: &BTreeMap<Thread, Vec<(u64, u64, String)>>) {
    for (thread, slices) in slices {
        let mut sorted = slices.clone();
        // The longer one is the outer one.
        sorted.sort_by_key(|(from, until, _)| (*from, core::cmp::Reverse(*until)));
        let mut around: Vec<u64> = Vec::new();
        for (from, until, name) in sorted {
            around.retain(|end| *end > from);
            assert!(until >= from && around.iter().all(|end| until <= *end), "{thread:?} {from} {name}");
            around.push(until);
        }
    }
}

fn check_flows(events: &[Value], slices: &BTreeMap<Thread, Vec<(u64, u64, String)>>) -> BTreeSet<String> {
    let mut ends: BTreeMap<u64, Vec<(&str, Thread, u64)>> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    for event in events.iter().filter(|event| event["cat"] == "message") {
        let phase = event["ph"].as_str().unwrap();
        let end = (phase, thread(event), nanos(&event["ts"]));
        ends.entry(event["id"].as_u64().unwrap()).or_default().push(end);
        kinds.insert(event["name"].as_str().unwrap().to_owned());
    }
    for (id, ends) in ends {
        let [("s", from, sent), ("f", to, received)] = ends[..] else { panic!("{id}: {ends:?}") };
        assert!(from != to && sent < received, "{id}: {ends:?}");
        for (thread, at) in [(from, sent), (to, received)] {
            let is_held = slices[&thread].iter().any(|(from, until, _)| (*from..*until).contains(&at));
            assert!(is_held, "flow {id} is not attached to a slice");
        }
    }
    kinds
}

#[test]
fn slices_nest_and_messages_have_both_ends() {
    let events = trace(&scenario(true));
    let slices = slices(&events);
    check_nesting(&slices);
    let kinds = check_flows(&events, &slices);
    for kind in ["Hello", "OpenSecureChannel", "CreateSessionRequest", "PublishRequest", "PublishResponse"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let processes: BTreeSet<String> = names(&events, "process_name").into_values().collect();
    let expected = [
        "client 1 of scada at plc",
        "client 2 of scada at plc",
        "host cabinet",
        "host office \"1\"",
        "scenario",
        "server plc",
        "threads of clients",
    ];
    assert_eq!(processes, expected.map(str::to_owned).into());
    let threads = names(&events, "thread_name");
    let of = |wanted: &str| {
        let found = threads.iter().filter(|(_, name)| *name == wanted).map(|(thread, _)| *thread);
        found
            .flat_map(|thread| slices[&thread].iter().map(|(.., name)| name.as_str()))
            .collect::<BTreeSet<_>>()
    };
    for step in ["turn", "wake", "receive", "send", "timer", "accept"] {
        assert!(of("shard 0").contains(step) && of("shard 1").contains(step), "{step}: {:?}", of("shard 0"));
    }
    assert_eq!(of("core 0"), ["clients, thread 0", "plc, shard 0", "plc, shard 1"].into());
    let marks: Vec<&str> =
        events.iter().filter(|event| event["ph"] == "i").filter_map(|event| event["name"].as_str()).collect();
    assert_eq!(marks, ["cut", "crash", "crash is over"]);
}

#[test]
fn without_machines_and_with_encryption_connections_are_shown() {
    let mut scenario = scenario(false);
    scenario.clients[0].security = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::SignAndEncrypt);
    let events = trace(&scenario);
    let slices = slices(&events);
    check_nesting(&slices);
    let kinds = check_flows(&events, &slices);
    // GetEndpoints is sent without encryption.
    assert!(kinds.contains("GetEndpointsRequest") && kinds.contains("MSG"), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind.starts_with("Publish")), "{kinds:?}");
}

#[test]
fn a_full_disk_is_reported() {
    let instruments =
        Instruments { trace: Some(Trace::new(Box::new(Full(10_000)))), ..Instruments::default() };
    let result = run_with(&scenario(false), 7, instruments, &mut |_| true);
    let Err(RunError::Record(what)) = result else { panic!("{result:?}") };
    assert!(what.starts_with("the trace: "), "{what}");
}
