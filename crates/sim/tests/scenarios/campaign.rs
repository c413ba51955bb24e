//! Scripts found by campaigns, and a few seeds of a campaign.

use core::time::Duration;
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_sim::campaign;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Lines, Link, Load, Login, Operation, Pace, PubSub, Requests, Scenario, Server,
    Signals, Subscription,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One subscriber, and one variable that changes every 50 ms.
fn scenario(subscription: Subscription, measured: Duration, faults: Vec<Fault>) -> Scenario {
    Scenario {
        hosts: vec![],
        links: vec![],
        servers: vec![Server {
            name: "server-0".into(),
            count: 1,
            host: None,
            shards: 1,
            signals: vec![Signals { count: 1, period: ms(50), value_len: 4 }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![Clients {
            name: "client-1".into(),
            count: 1,
            server: 0,
            link: None,
            host: None,
            threads: 1,
            items: None,
            load: Load::Subscribe(subscription),
            security: (SecurityPolicy::None, MessageSecurityMode::None),
            login: Login::Anonymous,
            session_timeout: Duration::from_secs(10),
            authorities: Vec::new(),
        }],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults,
        warmup: Duration::ZERO,
        measured,
        settle: Duration::from_secs(120),
    }
}

/// Seed 358. The subscription has a lifetime of 30 ms and ends during the partition. The client created it again but
/// sent no Publish requests while it waited because of the previous failure, so the new subscription ended too,
/// endlessly.
#[test]
fn a_subscription_with_a_short_lifetime_comes_back() {
    let subscription =
        Subscription { keep_alive_count: 1, lifetime_count: Some(3), ..Subscription::new(ms(10)) };
    let which = Which { group: 0, number: Some(0) };
    let fault = Fault { at: ms(571), lasts: ms(30), kind: FaultKind::Partition(which) };
    let outcome = campaign::run(&scenario(subscription, ms(671), vec![fault]), 358).unwrap();
    assert!(outcome.loads[0].losses > 0, "{:?}", outcome.loads);
}

/// Seed 30 048 440. After a storm, subscriptions move to other shards with queued events. The simulator gave some messages
/// between shards only with the next input of the server, and the events of up to 800 ms were lost in the move.
#[test]
fn subscriptions_move_between_shards_at_once() {
    let mut scenario = scenario(Subscription::new(ms(1_000)), ms(12_000), vec![]);
    scenario.links.push(Link {
        name: "link-0".into(),
        profile: "ppp-2m,rate=2mbit,delay=100ms,jitter=15ms,loss=2%".parse().unwrap(),
        is_half_duplex: false,
        lines: Lines::One,
    });
    let server = &mut scenario.servers[0];
    (server.shards, server.event_period, server.signals[0].period) = (3, ms(250), Duration::ZERO);
    let storm = FaultKind::Storm(Which { group: 0, number: Some(0) });
    scenario.faults =
        [2_607, 1_396].map(|at| Fault { at: ms(at), lasts: Duration::ZERO, kind: storm }).into();
    let clients = &mut scenario.clients[0];
    (clients.count, clients.link) = (3, Some(0));
    clients.session_timeout = Duration::from_secs(60);
    clients.security = (SecurityPolicy::Basic256Sha256, MessageSecurityMode::Sign);
    clients.load = Load::Subscribe(Subscription {
        keep_alive_count: 10,
        lifetime_count: Some(60),
        notifications_max: 0,
        event_queue: Some(20),
        ..Subscription::new(ms(1_000))
    });
    for seed in [2, 30_048_440] {
        let load = &campaign::run(&scenario, seed).unwrap().loads[0];
        assert_eq!((load.event_overflows, load.losses), (0, 0), "{seed}: {load:?}");
        assert!(load.reconnects >= 3 && load.events > 100, "{seed}: {load:?}");
    }
}

/// Seed 1 003 967. A client that sends a request every 8 ms over a line with a round trip of 200 ms is late, but not
/// stuck. A client whose server is unreachable is stuck.
#[test]
fn a_client_that_is_late_is_not_stuck() {
    let mut scenario = scenario(Subscription::new(ms(10)), ms(6_000), vec![]);
    scenario.links.push(Link {
        name: "far".into(),
        profile: "rate=1gbit,delay=100ms".parse().unwrap(),
        is_half_duplex: false,
        lines: Lines::One,
    });
    scenario.clients[0].link = Some(0);
    scenario.clients[0].load =
        Load::Request(Requests { operation: Operation::Read, batch: 1, pace: Pace::Every(ms(8)) });
    scenario.settle = Duration::from_secs(20);
    let outcome = campaign::run(&scenario, 1).unwrap();
    assert!(outcome.loads[0].arrived > 100, "{:?}", outcome.loads);
    let which = Which { group: 0, number: Some(0) };
    let away = Fault { at: ms(5_000), lasts: ms(900), kind: FaultKind::Partition(which) };
    scenario.faults.push(away);
    scenario.settle = ms(1);
    let error = campaign::run(&scenario, 1).unwrap_err().to_string();
    assert!(error.contains("waits for an answer"), "{error}");
}

#[test]
fn no_promise_is_broken() {
    for seed in 0..40 {
        if let Err(error) = campaign::run(&campaign::script(seed), seed) {
            panic!(
                "seed {seed}: {error}; `cargo xtask simulate --from {seed} --seeds 1` prints the shortest script"
            );
        }
    }
}
