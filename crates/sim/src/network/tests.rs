use super::*;
use core::time::Duration;
use taktwerk_crypto::Entropy;

/// A connection whose ends are driven manually.
struct Bench {
    network: Network,
    queue: EventQueue<Wire>,
    log: Vec<(Duration, Signal)>,
    client: End,
    server: End,
    read: [Vec<u8>; 2],
    /// By side: whether arriving data is read at once.
    reads: [bool; 2],
    listens: bool,
}

const START: Instant = Instant::from_nanos(1_000_000_000);

impl Bench {
    fn new(path: Path, seed: u64) -> Self {
        let mut queue = EventQueue::new(START);
        let mut network = Network::new(SeededEntropy::new(seed));
        let link = network.connect(&Route::symmetric(path), &mut queue);
        Self {
            network,
            queue,
            log: vec![],
            client: End { link, side: Side::Client },
            server: End { link, side: Side::Server },
            read: [vec![], vec![]],
            reads: [true; 2],
            listens: true,
        }
    }

    fn connected(path: Path, seed: u64) -> Self {
        let mut bench = Self::new(path, seed);
        while !bench.log.iter().any(|(_, signal)| matches!(signal, Signal::Connected(_))) {
            assert!(bench.step(Instant::FAR), "never connected");
        }
        bench.log.clear();
        bench
    }

    fn step(&mut self, until: Instant) -> bool {
        let Some(wire) = self.queue.pop_until(until) else { return false };
        self.network.handle(wire, &mut self.queue);
        self.signals();
        true
    }

    fn signals(&mut self) {
        while let Some(signal) = self.network.poll_signal() {
            match signal {
                Signal::Incoming(link) if self.listens => {
                    self.network.accept(link, &mut self.queue);
                }
                Signal::Incoming(link) => self.network.refuse(link, &mut self.queue),
                Signal::Readable(end) => {
                    if self.reads[end.side as usize] {
                        self.read(end);
                    }
                    continue;
                }
                _ => {}
            }
            self.log.push((self.queue.now().since(START), signal));
        }
    }

    fn read(&mut self, end: End) {
        let into = &mut self.read[end.side as usize];
        self.network.read(end, usize::MAX, into, &mut self.queue);
    }

    fn write(&mut self, end: End, bytes: &[u8]) -> usize {
        let taken = self.network.write(end, bytes, &mut self.queue);
        self.signals();
        taken
    }

    fn run(&mut self, span: Duration) {
        let until = self.queue.now() + span;
        while self.step(until) {}
        self.queue.advance(until);
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8)) as u8).collect()
}

#[test]
fn connecting_takes_one_round_trip_and_data_half_of_one() {
    let mut bench = Bench::new(Path::IDEAL.with_delay(Duration::from_millis(20)), 1);
    bench.run(Duration::from_secs(1));
    let (client, link) = (bench.client, bench.client.link);
    assert_eq!(
        bench.log,
        [
            (Duration::from_millis(20), Signal::Incoming(link)),
            (Duration::from_millis(40), Signal::Connected(client)),
        ]
    );
    bench.write(client, b"hello");
    bench.run(Duration::from_millis(19));
    assert!(bench.read[1].is_empty());
    bench.run(Duration::from_millis(1));
    assert_eq!(bench.read[1], b"hello");
}

#[test]
fn rate_and_framing_set_the_pace() {
    // 1 MB at 8 Mbit/s with 1 000 bytes in segments of 1 050: 1.05 s, plus the start of the window.
    let path = Path {
        rate: Some(8_000_000),
        segment_len: 1000,
        overhead: 50,
        send_buffer: 2 << 20,
        receive_buffer: 2 << 20,
        ..Path::IDEAL.with_delay(Duration::from_millis(1))
    };
    let mut bench = Bench::connected(path, 1);
    let (start, client) = (bench.queue.now(), bench.client);
    bench.write(client, &bytes(1_000_000));
    while bench.read[1].len() < 1_000_000 {
        assert!(bench.step(Instant::FAR));
    }
    let took = bench.queue.now().since(start);
    assert!(took >= Duration::from_millis(1051) && took < Duration::from_millis(1060), "{took:?}");
    // The data, the SYN with its options, and the acknowledgement of the handshake.
    assert_eq!(bench.network.traffic(client).wire_bytes, 1_050_000 + 58 + 50);
}

#[test]
fn nothing_is_lost_or_reordered_over_any_path() {
    for seed in 0..30 {
        let path = Path {
            jitter: Duration::from_millis(30),
            loss_ppm: 100_000,
            rate: Some(1_000_000),
            segment_len: 100,
            send_buffer: 3000,
            receive_buffer: 2000,
            give_up: Duration::from_secs(1_000_000),
            ..Path::IDEAL.with_delay(Duration::from_millis(5))
        };
        let mut bench = Bench::connected(path, seed);
        let mut entropy = SeededEntropy::new(seed);
        let (sent, client) = (bytes(20_000), bench.client);
        let mut at = 0;
        while bench.read[1].len() < sent.len() {
            let piece = (1 + entropy.below(700) as usize).min(sent.len() - at);
            at += bench.write(client, &sent[at..at + piece]);
            if entropy.below(50) == 0 {
                bench.network.partition(client.link);
                bench.run(Duration::from_secs(3));
                bench.network.heal(client.link);
            }
            if !bench.step(Instant::FAR) {
                assert!(at < sent.len(), "seed {seed}: stuck at {at}, {} read", bench.read[1].len());
            }
        }
        assert!(bench.read[1] == sent, "seed {seed}");
        assert!(bench.network.traffic(client).repetitions > 0);
        assert!(bench.log.iter().all(|(_, signal)| matches!(signal, Signal::Writable(_))), "{:?}", bench.log);
    }
}

#[test]
fn a_seed_repeats() {
    let run = |seed| {
        let path = Path { jitter: Duration::from_millis(9), loss_ppm: 50_000, segment_len: 50, ..Path::LAN };
        let mut bench = Bench::connected(path, seed);
        let client = bench.client;
        bench.write(client, &bytes(5000));
        bench.run(Duration::from_secs(100));
        (bench.network.traffic(client), bench.queue.scheduled(), bench.queue.next_at())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn stopped_readers_block_the_writer() {
    let path = Path { send_buffer: 10_000, receive_buffer: 5000, ..Path::LAN };
    let mut bench = Bench::connected(path, 1);
    let (client, server) = (bench.client, bench.server);
    bench.reads = [false; 2];
    let sent = bytes(40_000);
    let mut at = bench.write(client, &sent);
    assert_eq!(at, 10_000);
    bench.run(Duration::from_secs(10));
    // The receiver's 5 000 bytes are acknowledged and have left the send buffer.
    assert_eq!(bench.log.len(), 1);
    at += bench.write(client, &sent[at..]);
    bench.run(Duration::from_secs(10));
    assert_eq!((at, bench.network.readable(server)), (15_000, 5000));
    assert_eq!((bench.write(client, &sent[at..]), bench.log.len()), (0, 1));
    bench.reads = [true; 2];
    bench.read(server);
    bench.run(Duration::from_secs(1));
    assert_eq!(bench.read[1], sent[..15_000]);
    assert_eq!(bench.log.len(), 2);
}

#[test]
fn a_cut_delivers_exactly_the_bytes_before_it() {
    for cut in 0..300 {
        let mut bench = Bench::connected(Path { segment_len: 64, ..Path::LAN }, 1);
        let (client, server) = (bench.client, bench.server);
        bench.network.cut_at_byte(client, cut);
        bench.write(client, &bytes(300));
        bench.run(Duration::from_secs(1));
        assert_eq!(bench.read[1], bytes(cut as usize));
        let reset = CloseReason::Reset;
        let seen: Vec<Signal> = bench.log.iter().map(|(_, signal)| *signal).collect();
        assert_eq!(seen, [Signal::Closed(client, reset), Signal::Closed(server, reset)]);
        assert!(bench.network.link(client.link).is_none(), "memory is freed");
        assert_eq!(bench.write(client, b"more"), 0);
    }
}

#[test]
fn closing_delivers_what_was_written() {
    let mut bench = Bench::connected(Path { loss_ppm: 200_000, segment_len: 10, ..Path::LAN }, 3);
    let (client, server) = (bench.client, bench.server);
    bench.write(client, &bytes(500));
    bench.network.close(client, &mut bench.queue);
    assert_eq!(bench.write(client, b"too late"), 0);
    bench.run(Duration::from_secs(100));
    assert_eq!(bench.read[1], bytes(500));
    assert_eq!(bench.log.last().unwrap().1, Signal::Closed(server, CloseReason::Finished));
    assert!(bench.network.link(client.link).is_none());
}

#[test]
fn writing_to_an_ended_process_causes_a_reset() {
    let mut bench = Bench::connected(Path::LAN, 1);
    let (client, server) = (bench.client, bench.server);
    bench.network.partition(client.link);
    bench.network.reset(server, &mut bench.queue);
    bench.run(Duration::from_secs(1));
    // The reset was lost, so the client only notices when it writes.
    bench.network.heal(client.link);
    bench.run(Duration::from_secs(1));
    assert!(bench.log.is_empty());
    bench.write(client, b"hello?");
    bench.run(Duration::from_secs(1));
    assert_eq!(bench.log.last().unwrap().1, Signal::Closed(client, CloseReason::Reset));
    assert!(bench.network.link(client.link).is_none());
}

#[test]
fn connecting_without_an_answer_times_out() {
    let mut refused = Bench::new(Path::IDEAL.with_delay(Duration::from_millis(3)), 1);
    refused.listens = false;
    refused.run(Duration::from_secs(1));
    let unreachable = Signal::Unreachable(refused.client);
    assert_eq!(*refused.log.last().unwrap(), (Duration::from_millis(6), unreachable));

    let mut lost = Bench::new(Path::LAN, 1);
    lost.network.partition(lost.client.link);
    lost.run(Duration::from_secs(1000));
    let (after, signal) = *lost.log.last().unwrap();
    assert!(after >= Path::LAN.give_up && signal == unreachable, "{after:?} {signal:?}");
    assert!(lost.network.link(lost.client.link).is_none());

    let mut late = Bench::connected(Path::LAN, 1);
    let client = late.client;
    late.network.partition(client.link);
    late.write(client, b"anybody?");
    late.run(Duration::from_secs(1000));
    assert_eq!(late.log.last().unwrap().1, Signal::Closed(client, CloseReason::TimedOut));
}

/// Time for several clients to send this much each over one line, and the line's counters.
fn share(link: &str, clients: usize, len: usize) -> (Duration, [Counters; 2]) {
    let profile: Profile = link.parse().unwrap();
    let mut queue = EventQueue::<Wire>::new(START);
    let mut network = Network::new(SeededEntropy::new(3));
    let line = network.add_line(&profile, false);
    let path = Path { send_buffer: 4 << 20, receive_buffer: 4 << 20, ..Route::on(line, &profile).to_server };
    let route = Route { line: Some(line), ..Route::symmetric(path) };
    let links: Vec<LinkId> = (0..clients).map(|_| network.connect(&route, &mut queue)).collect();
    let mut read = vec![0; clients];
    let mut into = Vec::new();
    while read.iter().any(|read| *read < len) {
        let wire = queue.pop_until(Instant::FAR).expect("everything arrives");
        network.handle(wire, &mut queue);
        while let Some(signal) = network.poll_signal() {
            match signal {
                Signal::Incoming(link) => drop(network.accept(link, &mut queue)),
                Signal::Connected(end) => assert_eq!(network.write(end, &bytes(len), &mut queue), len),
                Signal::Readable(end) => {
                    into.clear();
                    network.read(end, usize::MAX, &mut into, &mut queue);
                    let at = links.iter().position(|link| *link == end.link).unwrap();
                    read[at] += into.len();
                }
                other => panic!("{other:?}"),
            }
        }
    }
    (queue.now().since(START), network.line(line))
}

#[test]
fn connections_share_a_line_and_acknowledgements_are_on_it() {
    let (alone, lines) = share("rate=8mbit,delay=5ms,queue=2s", 1, 500_000);
    let (both, _) = share("rate=8mbit,delay=5ms,queue=2s", 2, 500_000);
    // 500 000 bytes in packets of 1 500 with 1 448 bytes of payload at 8 Mbit/s.
    assert!((0.51..0.56).contains(&alone.as_secs_f64()), "{alone:?}");
    assert!((1.03..1.08).contains(&both.as_secs_f64()), "{both:?}");
    // One acknowledgement for two segments, plus those at the beginning.
    assert!(
        lines[1].packets > lines[0].packets / 2 && lines[1].packets < lines[0].packets * 2 / 3,
        "{lines:?}"
    );
}

#[test]
fn other_traffic_leaves_the_rest_of_the_rate() {
    let (free, _) = share("ppp-2m", 1, 100_000);
    let (busy, _) = share("ppp-2m,busy=30%", 1, 100_000);
    let ratio = busy.as_secs_f64() / free.as_secs_f64();
    assert!((1.38..1.46).contains(&ratio), "{ratio}");
}

#[test]
fn overloaded_lines_have_bounded_queues() {
    let (took, lines) = share("rate=1mbit,delay=10ms,queue=100ms", 50, 20_000);
    assert!(lines[0].dropped > 0 && took < Duration::from_secs(300), "{took:?} {lines:?}");
}
