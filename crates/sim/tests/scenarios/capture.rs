//! Captured packets, read back with a parser that is independent of the simulation.

use core::time::Duration;
use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use taktwerk_crypto::{MessageSecurityMode, SecurityPolicy};
use taktwerk_sim::capture::Capture;
use taktwerk_sim::scenario::fault::Which;
use taktwerk_sim::scenario::{
    Clients, Fault, FaultKind, Instruments, Lines, Link, Load, Login, PubSub, RunError, Scenario, Server,
    Signals, Subscription, run, run_with,
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

fn scenario(line: &str) -> Scenario {
    let link = |name: &str| Link {
        name: name.into(),
        profile: line.parse().unwrap(),
        is_half_duplex: false,
        lines: Lines::PerClient,
    };
    let clients = |name: &str, link| Clients {
        name: name.into(),
        count: 2,
        server: 0,
        link: Some(link),
        host: None,
        threads: 1,
        items: None,
        load: Load::Subscribe(Subscription::new(Duration::from_millis(100))),
        security: (SecurityPolicy::None, MessageSecurityMode::None),
        login: Login::Anonymous,
        session_timeout: Duration::from_secs(60),
        authorities: Vec::new(),
    };
    Scenario {
        hosts: vec![],
        links: vec![link("line"), link("other line")],
        servers: vec![Server {
            name: "plc".into(),
            count: 1,
            host: None,
            shards: 1,
            signals: vec![Signals { count: 300, period: Duration::from_millis(50), value_len: 8 }],
            event_period: Duration::ZERO,
            spread: Duration::ZERO,
            history: 0,
            authorities: Vec::new(),
        }],
        clients: vec![clients("scada", 0), clients("historian", 1)],
        pubsub: PubSub::default(),
        authorities: Vec::new(),
        faults: vec![Fault {
            at: Duration::from_secs(1),
            lasts: Duration::ZERO,
            kind: FaultKind::Restart(Which { group: 0, number: None }),
        }],
        warmup: Duration::from_secs(1),
        measured: Duration::from_secs(3),
        settle: Duration::from_secs(60),
    }
}

/// A packet as a parser sees it.
struct Packet {
    nanos: u64,
    from: (u32, u16),
    to: (u32, u16),
    sequence: u32,
    acknowledged: Option<u32>,
    window: u16,
    options: Vec<TcpOptionElement>,
    flags: String,
    payload: Vec<u8>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn parse(file: &[u8]) -> Vec<Packet> {
    let head: Vec<u32> = (0..6).map(|field| u32_at(file, 4 * field)).collect();
    assert_eq!(head, [0xa1b2_3c4d, 0x0004_0002, 0, 0, 1 << 18, 1]);
    let (mut packets, mut at) = (Vec::new(), 24);
    while at < file.len() {
        let (seconds, nanos) = (u32_at(file, at), u32_at(file, at + 4));
        let (len, original) = (u32_at(file, at + 8), u32_at(file, at + 12));
        assert!(len == original && nanos < 1_000_000_000);
        let bytes = &file[at + 16..at + 16 + len as usize];
        at += 16 + len as usize;
        let sliced = SlicedPacket::from_ethernet(bytes).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4") };
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("no TCP") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let checksum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
        assert_eq!(Ok(tcp.checksum()), checksum);
        let flags = [(tcp.syn(), 'S'), (tcp.fin(), 'F'), (tcp.rst(), 'R'), (tcp.psh(), 'P')];
        packets.push(Packet {
            nanos: u64::from(seconds) * 1_000_000_000 + u64::from(nanos),
            from: (u32::from(ip.header().source_addr()), tcp.source_port()),
            to: (u32::from(ip.header().destination_addr()), tcp.destination_port()),
            sequence: tcp.sequence_number(),
            acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
            window: tcp.window_size(),
            options: tcp.options_iterator().collect::<Result<_, _>>().unwrap(),
            flags: flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect(),
            payload: tcp.payload().to_vec(),
        });
    }
    packets
}

/// One direction of a connection, by addresses and ports.
type Flow = ((u32, u16), (u32, u16));

/// The reassembled streams, and the number of bytes that were sent more than once.
fn streams(packets: &[Packet]) -> (BTreeMap<Flow, Vec<u8>>, usize) {
    let mut starts = BTreeMap::new();
    let mut streams: BTreeMap<Flow, Vec<u8>> = BTreeMap::new();
    let mut repeated = 0;
    for packet in packets {
        let flow = (packet.from, packet.to);
        if packet.flags.contains('S') {
            starts.insert(flow, packet.sequence.wrapping_add(1));
        }
        if packet.payload.is_empty() {
            continue;
        }
        let offset = packet.sequence.wrapping_sub(starts[&flow]) as usize;
        let stream = streams.entry(flow).or_default();
        assert!(offset <= stream.len(), "a sender must not skip bytes");
        for (at, byte) in packet.payload.iter().enumerate() {
            match stream.get(offset + at) {
                Some(known) => {
                    assert_eq!(known, byte, "retransmitted bytes must be the same");
                    repeated += 1;
                }
                None => stream.push(*byte),
            }
        }
    }
    // Only sent bytes are acknowledged.
    for packet in packets.iter().filter(|packet| packet.flags.is_empty()) {
        let back = (packet.to, packet.from);
        let sent = streams.get(&back).map_or(0, Vec::len);
        let acknowledged = packet.acknowledged.unwrap().wrapping_sub(starts[&back]) as usize;
        assert!(acknowledged <= sent + 1 && packet.window > 0, "{acknowledged} {sent}");
    }
    (streams, repeated)
}

/// The types of all chunks of a stream; the last chunk may be incomplete.
fn chunks(stream: &[u8]) -> Vec<String> {
    let (mut kinds, mut at) = (Vec::new(), 0);
    while at + 8 <= stream.len() {
        kinds.push(String::from_utf8(stream[at..at + 4].to_vec()).unwrap());
        at += u32_at(stream, at + 4) as usize;
    }
    kinds
}

fn capture(scenario: &Scenario) -> Vec<Packet> {
    let file = File::default();
    let captures = vec![(0, Capture::new(Box::new(file.clone())))];
    let instruments = Instruments { captures, ..Instruments::default() };
    let captured = run_with(scenario, 5, instruments, &mut |_| true).unwrap();
    assert_eq!(captured, run(scenario, 5, &mut |_| true).unwrap(), "a capture must not change the outcome");
    let packets = parse(&file.0.lock().unwrap());
    assert!(packets.is_sorted_by_key(|packet| packet.nanos));
    let day = packets[0].nanos / 1_000_000_000 / 86_400;
    assert_eq!(day, 20_454, "the first of January 2026");
    packets
}

#[test]
fn streams_are_whole_and_speak_opc_ua() {
    let packets = capture(&scenario("ethernet-100m,delay=2ms"));
    let (streams, repeated) = streams(&packets);
    assert_eq!(repeated, 0);
    // Two clients before and after the restart, both directions. The capture does not contain the other link.
    let clients: Vec<u32> =
        streams.keys().map(|((address, _), _)| *address).filter(|a| *a != 0x0a00_0001).collect();
    assert_eq!(clients.len(), 4);
    assert!(clients.iter().all(|address| [0x0a80_0001, 0x0a80_0002].contains(address)), "{clients:x?}");
    for ((from, _), stream) in &streams {
        let kinds = chunks(stream);
        let first = if from.1 == 4840 { "ACKF" } else { "HELF" };
        assert_eq!(kinds[..2], [first, "OPNF"].map(str::to_owned));
        assert!(kinds.len() > 10 && kinds[2..].iter().all(|kind| kind == "MSGF"), "{kinds:?}");
    }
    let syn = packets.iter().find(|packet| packet.flags == "S").unwrap();
    let TcpOptionElement::MaximumSegmentSize(mss) = syn.options[0] else { panic!("{:?}", syn.options) };
    assert_eq!(mss, 1460);
    let longest = packets.iter().map(|packet| packet.payload.len()).max().unwrap();
    assert_eq!(longest, usize::from(mss) - 12);
    assert!(
        packets.iter().any(|packet| packet.flags.contains('R')),
        "the death of a process must reset connections"
    );
}

#[test]
fn lost_packets_are_retransmitted() {
    let packets = capture(&scenario("ethernet-100m,delay=5ms,loss=3%"));
    let (streams, repeated) = streams(&packets);
    assert!(repeated > 1_000, "{repeated}");
    assert!(streams.values().all(|stream| chunks(stream).len() > 10));
    let is_sack =
        |option: &TcpOptionElement| matches!(option, TcpOptionElement::SelectiveAcknowledgement(..));
    assert!(packets.iter().any(|packet| packet.options.iter().any(is_sack)));
}

#[test]
fn a_full_disk_is_reported() {
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
    let captures = vec![(0, Capture::new(Box::new(Full(5_000))))];
    let instruments = Instruments { captures, ..Instruments::default() };
    let result = run_with(&scenario("ethernet-100m"), 5, instruments, &mut |_| true);
    let Err(RunError::Record(what)) = result else { panic!("{result:?}") };
    assert!(what.starts_with("a capture: "), "{what}");
}
