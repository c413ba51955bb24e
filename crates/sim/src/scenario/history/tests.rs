//! The check of histories finds every broken promise: stores that lose, mark, reorder or withhold values.

use super::*;
use crate::scenario::fault::Which;
use crate::scenario::{
    Clients, Fault, FaultKind, Host, Lines, Link, Load, Login, Operation, Pace, PubSub, Requests, Scenario,
    run,
};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_model::HostProfile;
use taktwerk_types::Variant;

const MS: Duration = Duration::from_millis(1);

fn scenario() -> Scenario {
    let requests = Requests { operation: Operation::ReadHistory(300), batch: 2, pace: Pace::Pause(100 * MS) };
    Scenario {
        hosts: vec![Host { name: "plc".into(), profile: HostProfile::free(1), competitors: vec![] }],
        links: vec![],
        servers: vec![Server {
            name: "plc".into(),
            count: 1,
            host: Some(0),
            shards: 1,
            signals: vec![Signals { count: 4, period: 20 * MS, value_len: 8 }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 500,
            authorities: Vec::new(),
        }],
        clients: vec![Clients {
            name: "report".into(),
            count: 1,
            server: 0,
            link: None,
            host: None,
            threads: 1,
            items: None,
            load: Load::Request(requests),
            security: (SecurityPolicy::None, MessageSecurityMode::None),
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(60),
            authorities: Vec::new(),
        }],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: vec![],
        warmup: 500 * MS,
        measured: Duration::from_secs(14),
        settle: Duration::from_secs(60),
    }
}

/// The broken promise, if values are changed before they are stored.
fn broken(tamper: Tamper) -> Option<String> {
    TAMPER.set(Some(tamper));
    let result = run(&scenario(), 1, &mut |_| true);
    TAMPER.set(None);
    result.err().map(|error| error.to_string())
}

/// The number of a written value; 0 for those from before the start.
fn number(value: &HistoryValue) -> i64 {
    match value.value {
        Variant::Int64(number) => number,
        _ => 0,
    }
}

#[test]
fn a_complete_history_keeps_the_promise() {
    assert_eq!(broken(|_| {}), None);
}

#[test]
fn a_store_that_loses_a_value_breaks_the_promise() {
    let told = broken(|values| values.retain(|(_, value)| number(value) != 40)).unwrap();
    assert!(told.contains("history has 41 after 39"), "{told}");
}

#[test]
fn a_mark_in_place_of_a_value_breaks_the_promise() {
    let told = broken(|values| {
        let lost = values.iter_mut().filter(|(_, value)| number(value) == 40);
        lost.for_each(|(_, value)| (value.status, value.value) = (StatusCode::BAD_DATA_LOST, Variant::Empty));
    });
    assert!(told.as_ref().is_some_and(|told| told.contains("history has a gap")), "{told:?}");
}

#[test]
fn values_in_the_wrong_order_break_the_promise() {
    let told = broken(|values| {
        for (_, value) in values {
            // Two neighbours swap their times.
            let shift = match number(value) {
                40 => 200_000,
                41 => -200_000,
                _ => 0,
            };
            value.source = UtcTime::from_ticks(value.source.ticks() + shift);
        }
    });
    assert!(told.as_ref().is_some_and(|told| told.contains("history has 42 after 40")), "{told:?}");
}

#[test]
fn a_store_that_stores_nothing_more_breaks_the_promise() {
    let told = broken(|values| values.retain(|(_, value)| number(value) < 40)).unwrap();
    assert!(told.contains("history ends with Some(39)"), "{told}");
    // Nothing at all, neither what is filled in before the start.
    let told = broken(Vec::clear).unwrap();
    assert!(told.contains("its history is empty"), "{told}");
}

#[test]
fn a_history_that_is_shorter_than_the_way_of_the_request_keeps_the_promise() {
    // 5 values are 100 ms; requests need 150 ms.
    let profile = "rate=100mbit,delay=150ms".parse().unwrap();
    let mut scenario = scenario();
    scenario.servers[0].history = 5;
    scenario.links = vec![Link { name: "far".into(), profile, is_half_duplex: false, lines: Lines::One }];
    scenario.clients[0].link = Some(0);
    assert_eq!(run(&scenario, 1, &mut |_| true).err().map(|error| error.to_string()), None);
    // An empty one of a server that keeps 400 ms still breaks it.
    scenario.servers[0].history = 20;
    TAMPER.set(Some(Vec::clear));
    let told = run(&scenario, 1, &mut |_| true).err().map(|error| error.to_string());
    TAMPER.set(None);
    assert!(told.as_ref().is_some_and(|told| told.contains("its history is empty")), "{told:?}");
}

/// Seed 30 188 513 of a campaign: a client writes, and the request for the history was under way for longer than the server
/// keeps values.
#[test]
fn values_that_clients_write_may_all_be_replaced_while_a_request_is_under_way() {
    let mut scenario = scenario();
    scenario.servers[0].history = 10;
    scenario.servers[0].signals = vec![Signals { count: 1, period: Duration::ZERO, value_len: 8 }];
    let requests =
        |operation, batch, pause| Load::Request(Requests { operation, batch, pace: Pace::Pause(pause) });
    scenario.clients[0].load = requests(Operation::ReadHistory(11), 1, 166 * MS);
    let mut writer = scenario.clients[0].clone();
    writer.name = "writer".into();
    writer.load = requests(Operation::Write, 1, 50 * MS);
    scenario.clients.push(writer);
    let which = Which { group: 0, number: None };
    scenario.faults = vec![Fault { at: 449 * MS, lasts: 2_000 * MS, kind: FaultKind::Partition(which) }];
    assert_eq!(run(&scenario, 1, &mut |_| true).err().map(|error| error.to_string()), None);
    // Without a writer, an empty history is a loss.
    scenario.clients.pop();
    TAMPER.set(Some(Vec::clear));
    let told = run(&scenario, 1, &mut |_| true).err().map(|error| error.to_string());
    TAMPER.set(None);
    assert!(told.as_ref().is_some_and(|told| told.contains("its history is empty")), "{told:?}");
}
