//! Tests of the emulator in virtual time.

use super::delay::{Delay, Jitter};
use super::loss::Loss;
use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn drain(emulator: &mut Emulator<u32>) -> Vec<(u64, u32)> {
    let mut arrived = Vec::new();
    while let Some(at) = emulator.next_arrival() {
        assert_eq!(emulator.receive(at.saturating_sub(1)), None);
        arrived.extend(emulator.receive(at).map(|item| (at, item)));
    }
    arrived
}

#[test]
fn the_line_sends_one_after_the_other() {
    // 1250 bytes at 10 Mbit/s take 1 ms.
    let conditions = Conditions {
        rate: Some(10_000_000),
        delay: Delay::constant(Duration::from_millis(5)),
        ..Conditions::default()
    };
    let mut emulator = Emulator::new(conditions, 1);
    for item in 0..4 {
        assert_eq!(emulator.send(0, 1250, item), Fate::Arrives((6 + u64::from(item)) * MS));
    }
    // The line was idle in between; credit does not accumulate.
    assert_eq!(emulator.send(20 * MS, 1250, 4), Fate::Arrives(26 * MS));
    let times: Vec<u64> = drain(&mut emulator).into_iter().map(|(at, _)| at / MS).collect();
    assert_eq!(times, [6, 7, 8, 9, 26]);
}

#[test]
fn overhead_other_traffic_and_costs_per_packet_count() {
    let conditions = Conditions { rate: Some(2_000_000), overhead: 8, ..Conditions::default() };
    assert_eq!(conditions.line_time(242), MS);
    let busy = Conditions { busy: 0.3, ..conditions.clone() };
    assert_eq!(busy.line_time(342) / 1000, 2_000);
    let slow = Conditions { per_packet: Duration::from_millis(3), ..conditions };
    assert_eq!(slow.line_time(242), 4 * MS);
}

#[test]
fn a_full_queue_drops_and_recovers() {
    let conditions =
        Conditions { rate: Some(1_000_000), queue: Duration::from_millis(10), ..Conditions::default() };
    let mut emulator = Emulator::new(conditions, 1);
    // 125 bytes take 1 ms: eleven packets fit, one on the line and 10 ms in the queue.
    let fates: Vec<Fate> = (0..15).map(|item| emulator.send(0, 125, item)).collect();
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::Dropped).count(), 4);
    assert_eq!(emulator.counters().dropped, 4);
    assert!(matches!(emulator.send(5 * MS, 125, 99), Fate::Arrives(_)));
    assert_eq!(drain(&mut emulator).len(), 12);
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let delay = Delay {
        base: Duration::from_millis(20),
        jitter: Jitter::Exponential { mean: Duration::from_millis(10) },
        repeats: None,
    };
    let conditions = Conditions { delay, ..Conditions::default() };
    let order = |conditions: Conditions| {
        let mut emulator = Emulator::new(conditions, 9);
        (0..1_000u32).for_each(|item| {
            emulator.send(u64::from(item) * MS, 100, item);
        });
        let items: Vec<u32> = drain(&mut emulator).into_iter().map(|(_, item)| item).collect();
        assert_eq!(items.len(), 1_000);
        (items.is_sorted(), emulator.counters().reordered)
    };
    assert_eq!(order(conditions.clone()), (true, 0));
    let (is_sorted, reordered) = order(Conditions { reorder: 0.05, ..conditions });
    assert!(!is_sorted && (20..90).contains(&reordered), "{reordered}");
}

#[test]
fn dense_streams_keep_the_rate_with_any_delay() {
    // Delays with a long tail, as in a mobile network: 1 250 bytes at 4 Mbit/s, one packet every 2.5 ms, for 10 s.
    let delay = Delay {
        base: Duration::from_millis(71),
        jitter: Jitter::LogNormal { mean: Duration::from_millis(57), std: Duration::from_millis(95) },
        repeats: None,
    };
    let conditions =
        Conditions { rate: Some(4_000_000), queue: Duration::from_secs(2), delay, ..Conditions::default() };
    let mut emulator = Emulator::new(conditions, 4);
    (0..4_000u32).for_each(|item| {
        emulator.send(u64::from(item) * MS * 5 / 2, 1_250, item);
    });
    let arrived = drain(&mut emulator);
    let span = arrived.last().unwrap().0 - arrived.first().unwrap().0;
    let rate = arrived.len() as f64 * 1_250.0 * 8.0 / (span as f64 / 1e9);
    assert!((rate / 4e6 - 1.0).abs() < 0.1, "{rate}");
    let mean = arrived.iter().map(|(at, item)| *at as f64 - f64::from(*item) * 2.5e6).sum::<f64>() / 4e9;
    // Keeping the order increases the mean, but not by a multiple.
    assert!((128.0..300.0).contains(&mean), "{mean}");
}

#[test]
fn repeated_losses_increase_the_retransmission_delay() {
    let round_trip = Duration::from_millis(40);
    let mut line = Line::new(Conditions::default(), 1);
    assert_eq!(line.retransmission(round_trip), 80 * MS);
    assert_eq!(line.retransmission(Duration::ZERO), 10 * MS);
    let loss = Loss::Independent { probability: 0.5 };
    let mut lossy = Line::new(Conditions { loss, ..Conditions::default() }, 1);
    let late: Vec<u64> = (0..1_000).map(|_| lossy.retransmission(round_trip) / MS).collect();
    for (lateness, share) in [(80, 500), (280, 250), (680, 125)] {
        let count = late.iter().filter(|it| **it == lateness).count();
        assert!(count.abs_diff(share) < 60, "{lateness}: {count}");
    }
    assert!(late.iter().all(|it| *it <= 80 + 200 * 63));
}

#[test]
fn runs_are_reproducible_by_seed() {
    let run = |seed| {
        let conditions = Conditions {
            rate: Some(5_000_000),
            delay: Delay {
                base: Duration::from_millis(3),
                jitter: Jitter::Normal { std: Duration::from_millis(1) },
                repeats: None,
            },
            loss: Loss::bursts(0.05, 3.0),
            reorder: 0.02,
            duplicate: 0.02,
            ..Conditions::default()
        };
        let mut emulator = Emulator::new(conditions, seed);
        (0..2_000u32).for_each(|item| {
            emulator.send(u64::from(item) * MS, 200, item);
        });
        (drain(&mut emulator), emulator.counters())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

proptest! {
    /// For any properties: packets do not arrive before they are sent, none are invented, and each has exactly one
    /// fate.
    #[test]
    fn packets_are_conserved(
        rate in proptest::option::of(1_000u64..1_000_000_000),
        loss in 0.0f64..1.0, reorder in 0.0f64..0.5, duplicate in 0.0f64..0.5, jitter in 0u64..100,
        queue in 0u64..50, seed: u64,
        packets in proptest::collection::vec((0u64..20_000_000, 1usize..9_000), 1..200),
    ) {
        let delay = Delay {
            base: Duration::from_millis(1),
            jitter: Jitter::Normal { std: Duration::from_millis(jitter) },
            repeats: None,
        };
        let conditions = Conditions {
            rate, reorder, duplicate, delay,
            loss: Loss::Independent { probability: loss },
            queue: Duration::from_millis(queue),
            ..Conditions::default()
        };
        let mut emulator = Emulator::new(conditions, seed);
        let (mut now, mut sent, mut expected) = (0, Vec::new(), 0u64);
        for (gap, bytes) in packets {
            now += gap;
            let fate = emulator.send(now, bytes, sent.len() as u32);
            sent.push(now);
            if let Fate::Arrives(at) = fate {
                prop_assert!(at >= now);
                expected += 1;
            }
        }
        let counters = emulator.counters();
        prop_assert_eq!(counters.packets, sent.len() as u64);
        prop_assert_eq!(counters.packets - counters.lost - counters.dropped, expected);
        let arrived = drain(&mut emulator);
        prop_assert_eq!(arrived.len() as u64, expected + counters.duplicated);
        for (at, item) in arrived {
            prop_assert!(at >= sent[item as usize]);
        }
    }
}
