//! Faults, and the promises that hold in spite of them.

use super::plant::{mqtt, ms, secs, simulate, udp};
use core::time::Duration;
use taktwerk_sim::scenario::fault::{NodeFault, Role, Which};
use taktwerk_sim::scenario::pubsub::{Quality, SecurityMode};
use taktwerk_sim::scenario::{Fault, FaultKind, RunError, Scenario, run};

const ALL: Which = Which { group: 0, number: None };
const FIRST: Which = Which { group: 0, number: Some(0) };

fn fault(at: u64, lasts: u64, role: Role, which: Which, what: NodeFault) -> Fault {
    let kind = FaultKind::Node(role, which, what);
    let lasts = if kind.lasts() { ms(lasts) } else { Duration::ZERO };
    Fault { at: ms(at), lasts, kind }
}

fn with(mut scenario: Scenario, faults: Vec<Fault>) -> Scenario {
    scenario.faults = faults;
    scenario
}

#[test]
fn with_quality_of_service_1_a_break_loses_nothing() {
    let faults = vec![
        fault(1_000, 0, Role::Publisher, ALL, NodeFault::Cut),
        fault(2_000, 0, Role::Subscriber, FIRST, NodeFault::Cut),
        fault(3_000, 0, Role::Broker, ALL, NodeFault::Storm),
        fault(4_000, 2_000, Role::Subscriber, ALL, NodeFault::Partition),
        fault(7_000, 1_000, Role::Publisher, FIRST, NodeFault::Partition),
    ];
    for seed in 1..=5 {
        let outcome = simulate(&with(mqtt(Quality::AtLeastOnce), faults.clone()), seed);
        let one = &outcome.pubsub.subscribers[0];
        assert_eq!((one.figures.arrived, one.figures.lost), (one.due, 0), "{outcome:?}");
        assert!(one.figures.connections >= 2 + 3, "{one:?}");
        assert!(outcome.pubsub.publishers[0].figures.connections >= 2 + 4, "{outcome:?}");
    }
    let outcome = simulate(&with(mqtt(Quality::AtMostOnce), faults), 1);
    let one = &outcome.pubsub.subscribers[0];
    assert!(one.figures.lost > 0, "{one:?}");
}

/// Seed 1 000 641 of a campaign. Messages that waited during a broken connection got packet identifiers that were still
/// in use, so all but one of them were lost without being counted.
#[test]
fn unsent_messages_survive_a_broken_connection() {
    for (seed, lasts) in [(1, 1_900), (2, 2_500), (3, 4_000)] {
        let away = vec![fault(1_500, lasts, Role::Publisher, ALL, NodeFault::Partition)];
        let mut scenario = with(mqtt(Quality::AtLeastOnce), away);
        scenario.pubsub.publishers[0].publishing_interval = ms(10);
        scenario.pubsub.brokers[0].keep_alive = secs(2);
        let outcome = simulate(&scenario, seed);
        let one = &outcome.pubsub.subscribers[0];
        assert_eq!((one.figures.arrived, one.figures.lost), (one.due, 0), "{outcome:?}");
        assert!(outcome.pubsub.publishers[0].figures.connections >= 2 + 2, "{outcome:?}");
    }
}

#[test]
fn messages_dropped_from_a_full_queue_are_counted() {
    // The connection breaks, and the subscriber cannot reconnect for three seconds.
    let away = [
        fault(2_000, 3_000, Role::Subscriber, FIRST, NodeFault::Partition),
        fault(2_001, 0, Role::Subscriber, FIRST, NodeFault::Cut),
    ];
    let mut scenario = with(mqtt(Quality::AtLeastOnce), away.to_vec());
    scenario.pubsub.brokers[0].limits.queue = 30;
    let outcome = simulate(&scenario, 1);
    let (one, broker) = (&outcome.pubsub.subscribers[0].figures, &outcome.pubsub.brokers[0].figures);
    // 40 messages per second, of which 30 are kept.
    assert!((60..120).contains(&broker.dropped), "{broker:?}");
    assert!(one.lost <= broker.dropped && one.lost > 0, "{one:?}");
    assert_eq!(broker.dropped_of.keys().collect::<Vec<_>>(), ["subscriber-1"]);
    assert!(broker.queue_max <= 30 + 20, "{broker:?}");
}

#[test]
fn a_stopped_reader_delays_only_its_own_messages() {
    let mut scenario = with(
        mqtt(Quality::AtLeastOnce),
        vec![fault(2_000, 5_000, Role::Subscriber, FIRST, NodeFault::SlowReader)],
    );
    scenario.pubsub.brokers[0].limits.queue = 10;
    let outcome = simulate(&scenario, 1);
    let (one, broker) = (&outcome.pubsub.subscribers[0], &outcome.pubsub.brokers[0].figures);
    // 20 in flight and 10 waiting, out of 200.
    assert!((150..200).contains(&broker.dropped), "{broker:?}");
    assert!(
        one.figures.arrived >= one.due / 2 + one.due / 4,
        "the other subscriber must have received everything: {one:?}"
    );
    // Datagrams wait in the socket's buffer, which is large enough.
    let slow = vec![fault(2_000, 5_000, Role::Subscriber, FIRST, NodeFault::SlowReader)];
    let outcome = simulate(&with(udp(), slow), 1);
    let one = &outcome.pubsub.subscribers[0];
    assert_eq!((one.figures.arrived, one.figures.socket_dropped), (one.due, 0));
    assert!(one.figures.times.max() > 4_900_000_000);
}

#[test]
fn readers_detect_a_silent_publisher() {
    let mut scenario = with(udp(), vec![fault(2_000, 4_000, Role::Publisher, FIRST, NodeFault::Partition)]);
    let outcome = simulate(&scenario, 1);
    let one = &outcome.pubsub.subscribers[0].figures;
    // The keep-alive interval is ten times 50 ms, and the timeout three times that: 1.5 s. One reader in each
    // subscriber.
    assert_eq!((one.timeouts, one.recoveries), (2, 2));
    // Sequence numbers restart for the reader, so nothing counts as missing.
    assert!(one.lost == 0 && one.arrived < outcome.pubsub.subscribers[0].due, "{one:?}");
    scenario.pubsub.subscribers[0].timeout = Some(secs(5));
    let one = simulate(&scenario, 1).pubsub.subscribers[0].figures.clone();
    assert_eq!((one.timeouts, one.lost), (0, 2 * 80));
}

#[test]
fn a_restarted_publisher_is_received_after_the_timeout() {
    let scenario = with(udp(), vec![fault(3_000, 0, Role::Publisher, ALL, NodeFault::Restart)]);
    let outcome = simulate(&scenario, 1);
    let one = &outcome.pubsub.subscribers[0].figures;
    // Its numbers restart at 1: readers treat them as old until the timeout has elapsed.
    assert_eq!((one.timeouts, one.recoveries), (4, 4), "{one:?}");
    assert!(one.old + one.out_of_sequence > 50, "{one:?}");
    assert_eq!(outcome.pubsub.publishers[0].figures.lives, 4);
}

#[test]
fn nonces_are_not_used_twice_after_a_crash() {
    for security in [SecurityMode::Sign, SecurityMode::SignAndEncrypt] {
        let mut scenario = with(
            udp(),
            vec![
                fault(1_000, 1_000, Role::Publisher, ALL, NodeFault::Crash),
                fault(3_000, 0, Role::Publisher, FIRST, NodeFault::Restart),
                fault(4_000, 500, Role::Subscriber, ALL, NodeFault::Crash),
                fault(6_000, 0, Role::Subscriber, FIRST, NodeFault::Restart),
            ],
        );
        for lifetime in [secs(1), secs(3600)] {
            scenario.pubsub.publishers[0].security = security;
            scenario.pubsub.publishers[0].key_lifetime = lifetime;
            let one = simulate(&scenario, 1).pubsub.subscribers[0].figures.clone();
            assert!(one.lives == 5 && one.arrived > 1_000, "{one:?}");
        }
    }
}

/// One fault of each kind.
fn all_faults(has_broker: bool) -> Vec<Fault> {
    let mut faults = vec![
        fault(1_000, 1_000, Role::Publisher, FIRST, NodeFault::Crash),
        fault(1_500, 2_000, Role::Subscriber, FIRST, NodeFault::Partition),
        fault(3_000, 1_000, Role::Subscriber, ALL, NodeFault::SlowReader),
        fault(4_000, 3_000, Role::Publisher, ALL, NodeFault::Clock(-3_600_000_000_000)),
        fault(4_500, 3_000, Role::Subscriber, ALL, NodeFault::Clock(7_200_000_000_000)),
        fault(6_500, 1_500, Role::Subscriber, FIRST, NodeFault::Crash),
        fault(8_500, 0, Role::Publisher, ALL, NodeFault::Restart),
    ];
    if has_broker {
        faults.extend([
            fault(500, 0, Role::Subscriber, FIRST, NodeFault::Cut),
            fault(2_500, 0, Role::Publisher, FIRST, NodeFault::Cut),
            fault(5_000, 0, Role::Broker, ALL, NodeFault::Storm),
            fault(6_000, 1_500, Role::Broker, ALL, NodeFault::Crash),
            fault(9_000, 0, Role::Broker, ALL, NodeFault::Restart),
        ]);
    }
    faults
}

#[test]
fn promises_hold_through_all_faults() {
    for seed in 1..=3 {
        for (scenario, has_broker) in
            [(udp(), false), (mqtt(Quality::AtMostOnce), true), (mqtt(Quality::AtLeastOnce), true)]
        {
            let mut scenario = with(scenario, all_faults(has_broker));
            let plain = simulate(&scenario, seed).pubsub.subscribers[0].clone();
            assert!(plain.figures.arrived * 10 > plain.due * 3, "{plain:?}");
            assert!(plain.figures.arrived <= plain.due, "{plain:?}");
            scenario.pubsub.publishers[0].security = SecurityMode::SignAndEncrypt;
            scenario.pubsub.publishers[0].key_lifetime = secs(2);
            scenario.links[0].profile = "rate=10mbit,delay=5ms,jitter=5ms,loss=2%".parse().unwrap();
            let secured = simulate(&scenario, seed).pubsub.subscribers[0].clone();
            assert!(secured.figures.arrived * 10 > secured.due * 2, "{secured:?}");
        }
    }
}

#[test]
fn a_subscriber_that_cannot_reconnect_breaks_a_promise() {
    let kind = FaultKind::Node(Role::Subscriber, Which { group: 0, number: Some(1) }, NodeFault::Partition);
    let mut scenario = with(udp(), vec![Fault { at: ms(9_900), lasts: secs(5), kind }]);
    // Nothing gets through until the end of the settling time, and the next message is too late.
    scenario.pubsub.publishers[0].publishing_interval = secs(2);
    scenario.settle = ms(1);
    match run(&scenario, 1, &mut |_| true) {
        Err(RunError::Broken(violation)) => {
            let said = violation.to_string();
            assert!(said.contains("subscriber scada 2") && said.contains("of 20 fields"), "{said}");
        }
        other => panic!("{other:?}"),
    }
}
