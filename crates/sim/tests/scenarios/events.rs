//! Event items and durable subscriptions in scenarios: what is lost is reported, and the rest arrives in order. The
//! rules are checked by the clients of a scenario; here are the cases that must have occurred.

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_sim::campaign;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Load, LoadOutcome, Login, PubSub, Scenario, Server, Signals, Subscription,
};

const ALL: Which = Which { group: 0, number: None };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn fault(at: u64, lasts: u64, kind: FaultKind) -> Fault {
    Fault { at: ms(at), lasts: ms(lasts), kind }
}

/// Four clients of a server with three shards that raises an event every 20 ms.
fn scenario(subscription: Subscription, faults: Vec<Fault>) -> Scenario {
    Scenario {
        hosts: vec![],
        links: vec![],
        servers: vec![Server {
            name: "server-0".into(),
            count: 1,
            host: None,
            shards: 3,
            signals: vec![Signals { count: 3, period: ms(50), value_len: 8 }],
            event_period: ms(20),
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![Clients {
            name: "client-0".into(),
            count: 4,
            server: 0,
            link: None,
            host: None,
            threads: 1,
            items: None,
            load: Load::Subscribe(subscription),
            security: (SecurityPolicy::None, MessageSecurityMode::None),
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(2),
            authorities: Vec::new(),
        }],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults,
        warmup: ms(200),
        measured: ms(8_000),
        settle: Duration::from_secs(60),
    }
}

fn run(scenario: &Scenario) -> LoadOutcome {
    let outcome = campaign::run(scenario, 5).unwrap_or_else(|error| panic!("{error}"));
    outcome.loads[0].clone()
}

#[test]
fn without_faults_every_event_arrives() {
    let subscription = Subscription { event_queue: Some(0), ..Subscription::new(ms(100)) };
    let outcome = run(&scenario(subscription, vec![]));
    // 8.2 s of 50 events per second for four clients, except the last interval.
    assert!(outcome.events >= 4 * 400, "{outcome:?}");
    assert_eq!((outcome.event_overflows, outcome.losses), (0, 0));
}

#[test]
fn short_event_queues_overflow_and_say_so() {
    // 50 events per interval, but at most 10 fit into the queue.
    let subscription = Subscription { event_queue: Some(1), ..Subscription::new(ms(1_000)) };
    let outcome = run(&scenario(subscription, vec![]));
    assert!(outcome.event_overflows >= 4 * 6, "{outcome:?}");
    assert!(outcome.events >= 4 * 6 * 10, "{outcome:?}");
    assert_eq!(outcome.losses, 0);
}

/// Lost connections, sessions that expire, and subscriptions that move between shards.
#[test]
fn events_survive_reconnects_and_transfers() {
    let faults = vec![
        fault(500, 0, FaultKind::Storm(ALL)),
        fault(1_500, 0, FaultKind::Storm(ALL)),
        // Longer than the timeout of the sessions: new sessions take the subscriptions over.
        fault(2_000, 4_000, FaultKind::Partition(ALL)),
        fault(7_000, 0, FaultKind::Cut(ALL)),
    ];
    let subscription = Subscription { event_queue: Some(1_000), ..Subscription::new(ms(50)) };
    let outcome = run(&scenario(subscription, faults));
    assert!(outcome.reconnects >= 4 * 3, "{outcome:?}");
    assert!(outcome.events >= 4 * 400, "{outcome:?}");
    assert_eq!((outcome.event_overflows, outcome.losses), (0, 0), "{outcome:?}");
}

#[test]
fn durable_subscriptions_survive_crashes() {
    let crash = |at| fault(at, 700, FaultKind::Crash(ALL));
    let subscription =
        Subscription { event_queue: Some(1_000), is_durable: true, ..Subscription::new(ms(100)) };
    let faults = vec![crash(1_000), crash(3_000), crash(5_000)];
    let outcome = run(&scenario(subscription.clone(), faults.clone()));
    assert_eq!((outcome.durable, outcome.transfers), (4, 4 * 3), "{outcome:?}");
    assert_eq!(outcome.losses, 0, "no subscription had to be created again: {outcome:?}");
    // Each crash loses the values and events in between, which is reported.
    assert!(outcome.overflows >= 4 * 3 * 3, "{outcome:?}");
    assert!(outcome.event_overflows >= 4 * 3, "{outcome:?}");
    // An ordinary one does not survive.
    let outcome = run(&scenario(Subscription { is_durable: false, ..subscription }, faults));
    assert_eq!((outcome.durable, outcome.transfers), (0, 0), "{outcome:?}");
    assert!(outcome.losses >= 4 * 3, "{outcome:?}");
}
