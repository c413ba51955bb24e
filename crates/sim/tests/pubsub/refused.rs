//! Contradictions in the PubSub parts are refused.

use super::plant::{mqtt, ms, secs, signals, subscribers, udp};
use core::time::Duration;
use taktwerk_sim::scenario::fault::{NodeFault, Role, Which};
use taktwerk_sim::scenario::pubsub::{Encoding, Quality, SecurityMode};
use taktwerk_sim::scenario::{Fault, FaultKind, RunError, Scenario, run};

fn key(mut scenario: Scenario, change: impl FnOnce(&mut Scenario)) -> String {
    change(&mut scenario);
    match run(&scenario, 1, &mut |_| true) {
        Err(RunError::Invalid { key, .. }) => key,
        other => panic!("{other:?}"),
    }
}

#[test]
fn contradictions_are_reported_by_key() {
    let of = |change: fn(&mut Scenario)| key(udp(), change);
    assert_eq!(of(|it| it.pubsub.subscribers.clear()), "server");
    assert_eq!(of(|it| it.pubsub.publishers[0].count = 0), "publisher.0.count");
    assert_eq!(of(|it| it.pubsub.publishers[0].count = 70_000), "publisher");
    assert_eq!(of(|it| it.pubsub.publishers.push(it.pubsub.publishers[0].clone())), "publisher.1.name");
    assert_eq!(of(|it| it.pubsub.publishers[0].link = Some(7)), "publisher.0.link");
    assert_eq!(of(|it| it.pubsub.publishers[0].host = Some(0)), "publisher.0.host");
    assert_eq!(of(|it| it.pubsub.publishers[0].publishing_interval = ms(0)), "publisher.0.publishing_ms");
    assert_eq!(of(|it| it.pubsub.publishers[0].keep_alive_time = Some(ms(49))), "publisher.0.keep_alive_ms");
    assert_eq!(of(|it| it.pubsub.publishers[0].key_frame_count = 0), "publisher.0.key_frame_count");
    assert_eq!(of(|it| it.pubsub.publishers[0].fields = Some(0)), "publisher.0.fields");
    assert_eq!(of(|it| it.pubsub.publishers[0].encoding = Encoding::Json), "publisher.0.encoding");
    assert_eq!(of(|it| it.pubsub.publishers[0].signals.clear()), "publisher.0.signals");
    let short = |it: &mut Scenario| it.pubsub.publishers[0].signals[0].period = Duration::from_nanos(1);
    assert_eq!(of(short), "publisher.0.signals.0.period_ms");
    assert_eq!(of(|it| it.pubsub.publishers[0].signals[0].value_len = 0), "publisher.0.signals.0.bytes");
    let long = |it: &mut Scenario| it.pubsub.publishers[0].signals[0] = signals(4_000, 100, 100);
    assert_eq!(of(long), "publisher.0.signals.0.count");
    let many = |it: &mut Scenario| {
        it.pubsub.publishers[0].signals[0] = signals(1_000, 100, 8);
        it.pubsub.publishers[0].count = 60_000;
    };
    assert_eq!(of(many), "publisher.0.signals");
    let keys = |it: &mut Scenario| {
        it.pubsub.publishers[0].security = SecurityMode::Sign;
        it.pubsub.publishers[0].key_lifetime = ms(99);
    };
    assert_eq!(of(keys), "publisher.0.key_lifetime_s");
    assert_eq!(of(|it| it.pubsub.subscribers[0].count = 0), "subscriber.0.count");
    assert_eq!(of(|it| it.pubsub.subscribers[0].count = u32::MAX), "subscriber");
    assert_eq!(of(|it| it.pubsub.subscribers[0].link = Some(1)), "subscriber.0.link");
    assert_eq!(of(|it| it.pubsub.subscribers[0].host = Some(1)), "subscriber.0.host");
    assert_eq!(of(|it| it.pubsub.subscribers[0].publishers.clear()), "subscriber.0.publisher");
    assert_eq!(of(|it| it.pubsub.subscribers[0].publishers = vec![0, 0]), "subscriber.0.publisher");
    assert_eq!(of(|it| it.pubsub.subscribers.push(subscribers("x", vec![3]))), "subscriber.1.publisher");
    assert_eq!(of(|it| it.pubsub.subscribers[0].timeout = Some(ms(0))), "subscriber.0.timeout_ms");
    assert_eq!(of(|it| it.pubsub.subscribers[0].quality = Some(Quality::AtMostOnce)), "subscriber.0.qos");
    let of = |change: fn(&mut Scenario)| key(mqtt(Quality::AtLeastOnce), change);
    assert_eq!(of(|it| it.pubsub.brokers.clear()), "publisher.0.broker");
    assert_eq!(of(|it| it.pubsub.brokers[0].host = Some(0)), "broker.0.host");
    assert_eq!(of(|it| it.pubsub.brokers[0].limits.queue = 0), "broker.0.queue");
    assert_eq!(of(|it| it.pubsub.brokers[0].limits.in_flight = 0), "broker.0.in_flight");
    assert_eq!(of(|it| it.pubsub.brokers[0].keep_alive = ms(1)), "broker.0.keep_alive_s");
    let json = |it: &mut Scenario| {
        it.pubsub.publishers[0].encoding = Encoding::Json;
        it.pubsub.publishers[0].security = SecurityMode::Sign;
    };
    assert_eq!(of(json), "publisher.0.security");
    let mixed = |it: &mut Scenario| {
        it.pubsub.publishers.push(udp().pubsub.publishers[0].clone());
        it.pubsub.publishers[1].name = "other".into();
        it.pubsub.subscribers[0].publishers = vec![0, 1];
    };
    assert_eq!(of(mixed), "subscriber.0.publisher");
}

#[test]
fn faults_that_do_not_apply_are_reported() {
    let fault = |scenario: Scenario, role, number, what: NodeFault| {
        key(scenario, |it| {
            let kind = FaultKind::Node(role, Which { group: 0, number }, what);
            let lasts = if kind.lasts() { secs(1) } else { Duration::ZERO };
            it.faults.push(Fault { at: secs(1), lasts, kind });
        })
    };
    let broker = || mqtt(Quality::AtMostOnce);
    assert_eq!(fault(udp(), Role::Publisher, None, NodeFault::Cut), "fault.0.kind");
    assert_eq!(fault(udp(), Role::Subscriber, None, NodeFault::Cut), "fault.0.kind");
    assert_eq!(fault(udp(), Role::Publisher, None, NodeFault::SlowReader), "fault.0.kind");
    assert_eq!(fault(broker(), Role::Publisher, None, NodeFault::Storm), "fault.0.kind");
    assert_eq!(fault(broker(), Role::Broker, None, NodeFault::Partition), "fault.0.kind");
    assert_eq!(fault(broker(), Role::Broker, None, NodeFault::Clock(5)), "fault.0.kind");
    assert_eq!(fault(udp(), Role::Broker, None, NodeFault::Crash), "fault.0.kind");
    assert_eq!(fault(broker(), Role::Publisher, Some(2), NodeFault::Crash), "fault.0.number");
}
