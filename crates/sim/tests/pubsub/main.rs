//! Publishers, subscribers and brokers in plants as described by users.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod faults;
mod plant;
mod records;
mod refused;

use core::time::Duration;
use plant::{mqtt, ms, publishers, secs, signals, simulate, subscribers, udp};
use taktwerk_model::HostProfile;
use taktwerk_sim::pubsub::figures::SubscriberFigures;
use taktwerk_sim::scenario::pubsub::{Encoding, Quality, SecurityMode, Transport};
use taktwerk_sim::scenario::{Host, Lines, Scenario};

#[test]
fn every_value_arrives_within_a_cycle_and_the_delay() {
    let outcome = simulate(&udp(), 1);
    let one = &outcome.pubsub.subscribers[0];
    // Two publishers with ten signals that change every 100 ms, two subscribers, ten seconds.
    assert_eq!((one.due, one.figures.arrived), (2 * 2 * 10 * 100, 2 * 2 * 10 * 100));
    let mean = one.figures.times.mean() / 1e6;
    // Two lines of 5 ms each, and on average at most half a cycle of 50 ms.
    assert!((10.0..60.0).contains(&mean), "{mean}");
    assert!(one.figures.times.max() < 62_000_000, "{}", one.figures.times.max());
    assert_eq!((one.figures.lost, one.figures.timeouts, one.figures.malformed), (0, 0, 0));
    let publisher = &outcome.pubsub.publishers[0].figures;
    assert_eq!((publisher.messages, publisher.missed_cycles, publisher.too_large), (2 * 200, 0, 0));
    assert_eq!(simulate(&udp(), 1), outcome, "equal seeds must give equal outcomes");
    assert_ne!(simulate(&udp(), 2).pubsub.subscribers[0].figures.times, one.figures.times);
}

#[test]
fn a_line_carries_a_multicast_message_once() {
    let bits = |transport, lines, count| {
        let mut scenario = udp();
        scenario.pubsub.publishers[0].transport = transport;
        scenario.pubsub.subscribers[0].count = count;
        scenario.links[0].lines = lines;
        let line = simulate(&scenario, 1).lines[0];
        (line.up_bits_s.round(), line.down_bits_s.round())
    };
    let (up, down) = bits(Transport::Multicast, Lines::One, 2);
    assert_eq!((up, down), (down, up), "each message must be carried once up and once down");
    assert_eq!(bits(Transport::Multicast, Lines::One, 4), (up, down));
    assert_eq!(bits(Transport::Unicast, Lines::One, 4), (4.0 * up, 4.0 * down));
    // Separate lines: each publisher sends half of the messages.
    assert_eq!(bits(Transport::Multicast, Lines::PerClient, 4), (up / 2.0, down));
    // On a shared medium, all receivers get a message while it is sent.
    let mut bus = udp();
    bus.links[0].is_half_duplex = true;
    let outcome = simulate(&bus, 1);
    assert_eq!((outcome.lines[0].up_bits_s.round(), outcome.lines[0].down_bits_s), (up, 0.0));
    assert!(outcome.pubsub.subscribers[0].figures.times.mean() < 60e6);
}

#[test]
fn lost_datagrams_are_counted_and_not_repeated() {
    let mut scenario = udp();
    scenario.links[0].profile = "rate=10mbit,delay=5ms,loss=5%".parse().unwrap();
    let one = simulate(&scenario, 1).pubsub.subscribers[0].clone();
    // Lost on one of two lines: nearly one in ten. Every second cycle has no new value.
    let messages = one.figures.messages as f64;
    let share = one.figures.lost as f64 / (messages + one.figures.lost as f64);
    assert!((0.06..0.14).contains(&share), "{share}");
    assert!(one.figures.arrived <= one.due && one.figures.arrived * 10 > one.due * 9, "{one:?}");
    // The content of lost delta frames is not repeated until the next key frame.
    scenario.pubsub.publishers[0].key_frame_count = 20;
    let deltas = simulate(&scenario, 1).pubsub.subscribers[0].clone();
    assert!(
        deltas.figures.arrived < one.figures.arrived,
        "{} {}",
        deltas.figures.arrived,
        one.figures.arrived
    );
}

#[test]
fn values_that_change_more_often_than_they_are_sampled_are_replaced() {
    let mut scenario = udp();
    scenario.pubsub.publishers[0].signals = vec![signals(5, 10, 8)];
    let one = simulate(&scenario, 1).pubsub.subscribers[0].clone();
    let share = one.figures.arrived as f64 / one.due as f64;
    assert!((0.19..0.21).contains(&share), "a cycle of 50 ms sends only the last of five values: {share}");
    assert_eq!(one.figures.lost, 0);
}

#[test]
fn many_fields_become_several_data_sets_and_datagrams() {
    let mut scenario = udp();
    scenario.pubsub.publishers[0].signals = vec![signals(300, 100, 20), signals(7, 0, 2)];
    scenario.pubsub.publishers[0].fields = Some(50);
    let split = simulate(&scenario, 1);
    let one = &split.pubsub.subscribers[0];
    assert_eq!((one.due, one.figures.arrived), (2 * 2 * 300 * 100, 2 * 2 * 300 * 100));
    // 6 DataSets of 50 values with 20 bytes fill one datagram each; the last one does not fit into any of them.
    assert!(split.pubsub.publishers[0].figures.messages >= 2 * 200 * 6);
    // A DataSet that is larger than a datagram is sent in chunks.
    scenario.pubsub.publishers[0].fields = None;
    let chunked = simulate(&scenario, 1);
    assert_eq!(chunked.pubsub.subscribers[0].figures.arrived, one.figures.arrived);
}

#[test]
fn everything_arrives_over_a_broker() {
    for (encoding, quality) in [
        (Encoding::Uadp, Quality::AtMostOnce),
        (Encoding::Uadp, Quality::AtLeastOnce),
        (Encoding::Json, Quality::AtLeastOnce),
    ] {
        let mut scenario = mqtt(quality);
        scenario.pubsub.publishers[0].encoding = encoding;
        let outcome = simulate(&scenario, 1);
        let one = &outcome.pubsub.subscribers[0];
        assert_eq!((one.due, one.figures.arrived), (4_000, 4_000), "{encoding:?} {quality:?}");
        assert_eq!((one.figures.lost, one.figures.old, one.figures.malformed), (0, 0, 0));
        let broker = &outcome.pubsub.brokers[0].figures;
        assert!((395..=405).contains(&broker.received), "{broker:?}");
        assert!((790..=810).contains(&broker.sent), "{broker:?}");
        assert_eq!((broker.dropped, broker.repeated, broker.silent), (0, 0, 0));
        // One connection for each of two publishers and two subscribers.
        assert_eq!((outcome.pubsub.publishers[0].figures.connections, one.figures.connections), (2, 2));
        assert!(
            outcome.lines[0].up_bits_s > 0.0 && outcome.lines[0].down_bits_s > outcome.lines[0].up_bits_s
        );
    }
    // TCP retransmits what the link loses.
    let mut lossy = mqtt(Quality::AtMostOnce);
    lossy.links[0].profile = "rate=10mbit,delay=5ms,loss=3%".parse().unwrap();
    let outcome = simulate(&lossy, 1);
    let one = &outcome.pubsub.subscribers[0];
    assert_eq!((one.figures.arrived, one.figures.lost), (4_000, 0));
    assert!(outcome.lines[0].lost > 20);
}

#[test]
fn secured_messages_are_longer_and_keys_change() {
    let bits = |security, lifetime: Duration| {
        let mut scenario = udp();
        scenario.pubsub.publishers[0].security = security;
        scenario.pubsub.publishers[0].key_lifetime = lifetime;
        let outcome = simulate(&scenario, 1);
        let one = &outcome.pubsub.subscribers[0];
        assert_eq!((one.figures.arrived, one.figures.security_errors), (4_000, 0), "{security:?}");
        outcome.pubsub.publishers[0].figures.bytes
    };
    let none = bits(SecurityMode::None, secs(3600));
    // A SecurityHeader of 14 bytes including the nonce, a signature of 32, and a flag in the header.
    let sign = bits(SecurityMode::Sign, secs(3600));
    assert_eq!((sign - none) % 400, 0);
    assert!((46..=48).contains(&((sign - none) / 400)), "{}", (sign - none) / 400);
    assert_eq!(bits(SecurityMode::SignAndEncrypt, ms(700)), sign);
}

#[test]
fn processors_take_time() {
    let mut profile = HostProfile::free(1);
    profile.server.insert("items_walked".into(), 100_000.0);
    profile.server.insert("send".into(), 1_000_000.0);
    profile.client.insert("receive".into(), 2_000_000.0);
    profile.client.insert("notifications".into(), 50_000.0);
    let host = |name: &str| Host { name: name.into(), profile: profile.clone(), competitors: vec![] };
    let placed = |mut scenario: Scenario| {
        scenario.hosts = vec![host("plc"), host("pc"), host("broker")];
        scenario.pubsub.publishers[0].host = Some(0);
        scenario.pubsub.subscribers[0].host = Some(1);
        scenario.pubsub.brokers.iter_mut().for_each(|broker| broker.host = Some(2));
        simulate(&scenario, 1)
    };
    let (with, without) = (placed(udp()), simulate(&udp(), 1));
    // Each publisher: twenty cycles per second with ten fields and one datagram. All subscribers: twice 40 messages of
    // ten fields.
    let (publisher, one) = (with.pubsub.publishers[0].cpu.unwrap(), &with.pubsub.subscribers[0]);
    assert!((publisher / 0.04 - 1.0).abs() < 0.03, "{publisher}");
    assert!((one.cpu.unwrap() / 0.2 - 1.0).abs() < 0.03, "{:?}", one.cpu);
    assert_eq!(one.figures.arrived, 4_000);
    // One millisecond for the values, one to send, two to receive; half a millisecond to deliver the values.
    let least = |figures: &SubscriberFigures| figures.times.buckets().next().unwrap().0;
    let (with_it, without_it) = (least(&one.figures), least(&without.pubsub.subscribers[0].figures));
    assert!(with_it >= 14_400_000 && without_it >= 10_000_000, "{with_it} {without_it}");
    assert_eq!(without.pubsub.publishers[0].cpu, None);
    let broker = placed(mqtt(Quality::AtLeastOnce));
    assert_eq!(broker.pubsub.subscribers[0].figures.arrived, 4_000);
    // Each outgoing message takes a millisecond: 80 per second to subscribers, plus acknowledgements.
    assert!(
        (0.08..0.2).contains(&broker.pubsub.brokers[0].cpu.unwrap()),
        "{:?}",
        broker.pubsub.brokers[0].cpu
    );
}

#[test]
fn a_subscriber_that_is_too_slow_loses_datagrams_at_its_socket() {
    let mut profile = HostProfile::free(1);
    profile.client.insert("receive".into(), 1_000_000.0);
    let mut scenario = udp();
    scenario.hosts = vec![Host { name: "slow".into(), profile, competitors: vec![] }];
    scenario.pubsub.subscribers[0].host = Some(0);
    scenario.pubsub.subscribers[0].count = 1;
    // It can handle 1 000 messages per second, but 2 000 of 1 400 bytes arrive: 8 MiB are full after some seconds.
    scenario.pubsub.publishers[0].count = 1;
    scenario.links[0].profile = "rate=1gbit,delay=1ms".parse().unwrap();
    scenario.pubsub.publishers[0].signals = vec![signals(1, 100, 1_400)];
    scenario.pubsub.publishers[0].publishing_interval = Duration::from_micros(500);
    let one = simulate(&scenario, 1).pubsub.subscribers[0].clone();
    let figures = &one.figures;
    assert!(figures.socket_dropped > 1_000 && figures.lost > 1_000, "{one:?}");
    assert!(figures.times.max() > 4_000_000_000, "they must wait in the buffer: {}", figures.times.max());
}

#[test]
fn groups_can_share_a_subscriber() {
    let mut scenario = udp();
    scenario.pubsub.publishers.push(publishers("more", Transport::Unicast));
    scenario.pubsub.publishers[1].signals = vec![signals(3, 50, 4)];
    scenario.pubsub.subscribers[0].publishers = vec![0, 1];
    scenario.pubsub.subscribers.push(subscribers("second", vec![1]));
    let outcome = simulate(&scenario, 1);
    let [both, second] = &outcome.pubsub.subscribers[..] else { panic!("{outcome:?}") };
    assert_eq!((both.due, both.figures.arrived), (4_000 + 2 * 2 * 3 * 200, 4_000 + 2 * 2 * 3 * 200));
    assert_eq!((second.due, second.figures.arrived), (2 * 2 * 3 * 200, 2 * 2 * 3 * 200));
}
