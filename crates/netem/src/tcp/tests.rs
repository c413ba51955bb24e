use super::*;
use crate::Profile;
use std::time::Duration;

fn link(text: &str) -> Profile {
    text.parse().unwrap()
}

fn config() -> Config {
    Config { send_buffer: 4 << 20, receive_buffer: 4 << 20, ..Config::linux(1500) }
}

fn run(text: &str, what: Exchange, seed: u64) -> Exchanged {
    exchange(&link(text), &config(), &what, seed).unwrap()
}

const BULK: Exchange = Exchange { request: 1_000_000, response: 1, count: 1 };

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[test]
fn a_line_without_loss_is_filled() {
    let done = run("rate=10mbit,delay=10ms,queue=1s", BULK, 1);
    // 1448 bytes in packets of 1500 bytes.
    let least = 1_000_000.0 * 1500.0 / 1448.0 * 8.0 / 10e6;
    let took = seconds(done.took);
    assert!(took > least && took < least + 0.12, "{took} {least}");
    assert_eq!(done.repetitions, [0, 0]);
    assert_eq!(done.connected, 20_000_000 + 2 * 48_000);
}

#[test]
fn a_request_and_its_response_take_a_round_trip_each() {
    let done = run("delay=10ms", Exchange { request: 100, response: 100, count: 50 }, 1);
    assert!(done.each.iter().all(|each| *each == 20_000_000), "{:?}", done.each);
    // Acknowledgements are piggybacked on data, except the first ones.
    assert!(done.segments < 2 * 50 + 10, "{}", done.segments);
}

#[test]
fn losses_are_repaired_without_a_timeout() {
    for seed in 0..20 {
        let done = run("rate=10mbit,delay=10ms,loss=1%,queue=1s", BULK, seed);
        assert!(done.repetitions[0] > 0);
        assert!(seconds(done.took) < 2.5, "seed {seed}: {}", seconds(done.took));
    }
}

#[test]
fn everything_arrives_over_any_link() {
    for seed in 0..60 {
        let text = "rate=2mbit,delay=5ms,jitter=20ms,loss=10%,burst=2,reorder=5%,duplicate=2%,queue=50ms";
        let what = Exchange { request: 5_000, response: 60_000, count: 3 };
        // Bursts are counted in packets, so all retransmissions of one segment can be lost in a single burst.
        let config = Config { give_up: Duration::from_secs(1_000_000), ..config() };
        let done = exchange(&link(text), &config, &what, seed);
        let done = done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(done.each.len(), 3, "seed {seed}");
    }
}

#[test]
fn algorithms_differ_in_their_window_after_a_loss() {
    let long = Exchange { request: 20_000_000, ..BULK };
    let of = |algorithm| {
        let config = Config { algorithm, ..config() };
        (0..5)
            .map(|seed| {
                exchange(&link("rate=50mbit,delay=20ms,loss=0.05%,queue=1s"), &config, &long, seed)
                    .unwrap()
                    .took
            })
            .sum::<u64>()
    };
    assert!(of(Algorithm::Cubic) < of(Algorithm::Reno));
}

#[test]
fn only_nagle_delays_small_segments() {
    // Nagle and delayed acknowledgements slow down a response in two writes; here the peer writes at once.
    let mut with = Endpoint::connect(Config { nagle: true, ..config() }, 0);
    let mut without = Endpoint::connect(config(), 0);
    for end in [&mut with, &mut without] {
        let syn = end.poll_transmit(0).unwrap();
        let mut peer = Endpoint::accept(config(), &syn, 5);
        end.receive(&peer.poll_transmit(5).unwrap(), 10);
        assert_eq!(end.write(10), 10);
        assert_eq!(end.poll_transmit(10).unwrap().len, 10);
        assert_eq!(end.write(10), 10);
    }
    assert_eq!(with.poll_transmit(10), None);
    assert_eq!(without.poll_transmit(10).unwrap().len, 10);
}

/// Two endpoints connected without a line.
fn joined(config: Config) -> (Endpoint, Endpoint) {
    let mut one = Endpoint::connect(config, 0);
    let mut other = Endpoint::accept(config, &one.poll_transmit(0).unwrap(), 0);
    one.receive(&other.poll_transmit(0).unwrap(), 0);
    other.receive(&one.poll_transmit(0).unwrap(), 0);
    assert_eq!(one.poll_event(), Some(Event::Connected));
    (one, other)
}

fn carry(from: &mut Endpoint, to: &mut Endpoint, now: u64) -> usize {
    let mut count = 0;
    while let Some(segment) = from.poll_transmit(now) {
        to.receive(&segment, now);
        count += 1;
    }
    count
}

#[test]
fn window_probes_recover_a_lost_window_update() {
    let (mut one, mut other) = joined(Config { send_buffer: 10_000, receive_buffer: 5_000, ..config() });
    assert_eq!(one.write(40_000), 10_000);
    while carry(&mut one, &mut other, 1) + carry(&mut other, &mut one, 1) > 0 {}
    assert_eq!((other.readable(), one.acknowledged()), (5_000, 5_000));
    other.read(5_000);
    // The window update is lost.
    assert!(other.poll_transmit(2).is_some() && other.poll_transmit(2).is_none());
    let at = one.poll_timeout().unwrap();
    one.handle_timeout(at);
    assert_eq!(carry(&mut one, &mut other, at), 1);
    assert_eq!(carry(&mut other, &mut one, at), 1);
    carry(&mut one, &mut other, at);
    assert_eq!(other.readable(), 5_000);
}

#[test]
fn connections_to_dead_peers_time_out() {
    let give_up = Duration::from_secs(30);
    let config = Config { give_up, ..config() };
    let mut alone = Endpoint::connect(config, 0);
    let (mut one, _) = joined(config);
    let (mut shut, mut reader) = joined(Config { receive_buffer: 100, ..config });
    one.write(10);
    assert!(one.poll_transmit(0).is_some());
    shut.write(1000);
    while carry(&mut shut, &mut reader, 1) + carry(&mut reader, &mut shut, 1) > 0 {}
    for (which, end) in [&mut alone, &mut one, &mut shut].into_iter().enumerate() {
        let (mut now, mut sent) = (0, 0);
        while let Some(at) = end.poll_timeout() {
            now = at;
            end.handle_timeout(now);
            while end.poll_transmit(now).is_some() {
                sent += 1;
            }
            assert!(sent < 50);
        }
        let last = core::iter::from_fn(|| end.poll_event()).last();
        assert_eq!(last, Some(Event::TimedOut), "end {which}");
        assert!((30..40).contains(&(now / 1_000_000_000)), "{now}");
        assert!(sent > 3);
    }
}

#[test]
fn closing_follows_the_data_and_aborting_is_immediate() {
    let (mut one, mut other) = joined(config());
    one.write(3_000);
    one.close();
    assert_eq!(one.write(1), 0);
    while carry(&mut one, &mut other, 1) + carry(&mut other, &mut one, 1) > 0 {}
    assert_eq!((other.readable(), other.is_finished()), (3_000, false));
    other.read(3_000);
    assert!(other.is_finished() && one.is_delivered());
    other.abort();
    carry(&mut other, &mut one, 2);
    assert_eq!(one.poll_event(), Some(Event::Reset));
    assert!(one.is_over() && one.poll_transmit(2).is_none() && one.poll_timeout().is_none());
}

#[test]
fn exchanges_over_dead_links_end() {
    let mut dead = link("rate=1mbit");
    dead.up.loss = crate::emulator::loss::Loss::Independent { probability: 1.0 };
    assert!(matches!(exchange(&dead, &config(), &BULK, 1), Err(ExchangeError::Unfinished(_))));
    dead.up.loss = crate::emulator::loss::Loss::None;
    dead.up.rate = Some(0);
    assert!(matches!(exchange(&dead, &config(), &BULK, 1), Err(ExchangeError::Unfinished(_))));
    let nothing = Exchange { count: 0, ..BULK };
    assert_eq!(exchange(&link("rate=1mbit"), &config(), &nothing, 1), Err(ExchangeError::Empty));
}
