//! Writes packets to a file for Wireshark, tshark and tcpdump: pcap with nanoseconds, Ethernet, IPv4, TCP and UDP.
//!
//! Packets are recorded as sent, even if the line loses them. Their length is the length used by the model, without the
//! framing of a profile. Fields that the model does not have are made up: addresses (10.0.0.1 and up for servers,
//! 10.16.0.1 for brokers, 10.32.0.1 for publishers, 10.48.0.1 for certificate authorities, 10.128.0.1 for clients,
//! 10.160.0.1 for subscribers, 10.176.0.1 for those that ask authorities, 239.0.0.1 for multicast groups), ports (4840,
//! 1883 and 80; one for each connection of a client), initial sequence numbers, and
//! timestamps (RFC 7323), which count milliseconds and echo the other end's last segment even if it has not arrived.

use crate::network::{Datagram, LineId, Packet, Service, Side, Station, Tap};
use etherparse::{PacketBuilder, TcpOptionElement};
use std::collections::BTreeMap;
use std::io;
use taktwerk_netem::tcp::Segment;
use taktwerk_types::{Instant, UtcTime};

/// Magic number of pcap with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
/// Maximum length of a packet in the file.
const LONGEST: u32 = 1 << 18;
/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;
/// Scale of receive windows in bits (RFC 7323).
const WINDOW_SCALE: u8 = 7;
/// The registered port of OPC UA.
const OPC_UA: u16 = 4840;
/// The registered port of MQTT.
const MQTT: u16 = 1883;
/// The port of HTTP.
const HTTP: u16 = 80;
/// First ephemeral port of clients, as in Linux.
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 28_232;
const SERVERS: u32 = 0x0a00_0001;
const BROKERS: u32 = 0x0a10_0001;
const PUBLISHERS: u32 = 0x0a20_0001;
const AUTHORITIES: u32 = 0x0a30_0001;
const CLIENTS: u32 = 0x0a80_0001;
const SUBSCRIBERS: u32 = 0x0aa0_0001;
const ASKERS: u32 = 0x0ab0_0001;
const MULTICAST: u32 = 0xef00_0001;
/// Time to live of unicast and multicast datagrams; multicast stays in its network.
const HOPS: [u8; 2] = [64, 1];
/// Initial sequence numbers, large enough to be distinguished from offsets.
const FIRST_SEQUENCE: [u32; 2] = [1_000_000_000, 2_000_000_000];
/// Bytes of the timestamp option, which are not part of the maximum segment size (RFC 6691).
const TIMESTAMPS: usize = 12;

/// A capture file.
pub struct Capture {
    out: Box<dyn io::Write + Send>,
    failed: Option<io::Error>,
    packet: Vec<u8>,
    payload: Vec<u8>,
}

impl core::fmt::Debug for Capture {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Capture").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl Capture {
    /// A capture written to `out`, which should be buffered: there are two writes per packet.
    #[must_use]
    pub fn new(out: Box<dyn io::Write + Send>) -> Self {
        let mut capture = Self { out, failed: None, packet: Vec::new(), payload: Vec::new() };
        let mut head = MAGIC.to_le_bytes().to_vec();
        VERSION.iter().for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
        for field in [0, 0, LONGEST, ETHERNET] {
            head.extend_from_slice(&field.to_le_bytes());
        }
        capture.write(&head);
        capture
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }

    fn record(&mut self, utc_origin: UtcTime, packet: &Packet<'_>, payload: &mut dyn Iterator<Item = u8>) {
        self.payload.clear();
        self.payload.extend(payload.take(packet.segment.len));
        self.payload.resize(packet.segment.len, 0);
        self.packet.clear();
        if let Err(error) = frame(packet, &self.payload, &mut self.packet) {
            self.failed.get_or_insert(error);
            return;
        }
        self.write_packet(utc_origin, packet.at);
    }

    fn record_datagram(&mut self, utc_origin: UtcTime, datagram: &Datagram<'_>) {
        self.packet.clear();
        if let Err(error) = udp(datagram, &mut self.packet) {
            self.failed.get_or_insert(error);
            return;
        }
        self.write_packet(utc_origin, datagram.at);
    }

    fn write_packet(&mut self, utc_origin: UtcTime, at: Instant) {
        let (seconds, nanos) = unix_time(utc_origin, at);
        let len = u32::try_from(self.packet.len()).unwrap_or(u32::MAX);
        let head: Vec<u8> = [seconds, nanos, len, len].into_iter().flat_map(u32::to_le_bytes).collect();
        self.write(&head);
        let bytes = core::mem::take(&mut self.packet);
        self.write(&bytes);
        self.packet = bytes;
    }
}

fn unix_time(utc_origin: UtcTime, at: Instant) -> (u32, u32) {
    let origin = u128::try_from(utc_origin.unix_nanos()).unwrap_or_default();
    let nanos = origin + u128::from(at.as_nanos());
    let seconds = u32::try_from(nanos / 1_000_000_000).unwrap_or(u32::MAX);
    (seconds, (nanos % 1_000_000_000) as u32)
}

fn sequence(side: Side, offset: u64) -> u32 {
    // Numbers wrap; the SYN takes the first one.
    FIRST_SEQUENCE[side as usize].wrapping_add(1).wrapping_add(offset as u32)
}

fn milliseconds(at: Instant) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

fn options(packet: &Packet<'_>) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp,
        WindowScale,
    };
    let echo = packet.other_sent.filter(|_| packet.segment.ack).map_or(0, milliseconds);
    let stamp = Timestamp(milliseconds(packet.at), echo);
    let Segment { syn, sack, .. } = packet.segment;
    if *syn {
        let mss = packet.receives_at_most.saturating_add(TIMESTAMPS);
        let mss = MaximumSegmentSize(u16::try_from(mss).unwrap_or(u16::MAX));
        return vec![mss, SelectiveAcknowledgementPermitted, stamp, Noop, WindowScale(WINDOW_SCALE)];
    }
    let mut all = vec![Noop, Noop, stamp];
    let other = packet.from.other();
    let mut blocks =
        sack.iter().flatten().map(|(from, until)| (sequence(other, *from), sequence(other, *until)));
    if let Some(first) = blocks.next() {
        all.extend([Noop, Noop, SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), None])]);
    }
    all
}

fn frame(packet: &Packet<'_>, payload: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
    let (client, server) = packet.hosts;
    let (clients, servers, port) = match packet.service {
        Service::OpcUa => (CLIENTS, SERVERS, OPC_UA),
        Service::PublisherToBroker => (PUBLISHERS, BROKERS, MQTT),
        Service::SubscriberToBroker => (SUBSCRIBERS, BROKERS, MQTT),
        Service::Authority => (ASKERS, AUTHORITIES, HTTP),
    };
    let addresses = [clients.wrapping_add(client).to_be_bytes(), servers.wrapping_add(server).to_be_bytes()];
    let ports = [FIRST_PORT + (packet.link.number() % PORTS) as u16, port];
    let (from, to) = (packet.from as usize, packet.from.other() as usize);
    // A locally administered address that contains the IP address.
    let [a, b, c, d] = addresses[from];
    let [e, f, g, h] = addresses[to];
    let it = packet.segment;
    let space = it.window_end.saturating_sub(it.acknowledged);
    // The window of a SYN is not scaled.
    let space = if it.syn { space } else { space >> WINDOW_SCALE };
    let own = if it.syn { FIRST_SEQUENCE[from] } else { sequence(packet.from, it.sequence) };
    let window = u16::try_from(space).unwrap_or(u16::MAX);
    let mut builder = PacketBuilder::ethernet2([2, 0, a, b, c, d], [2, 0, e, f, g, h])
        .ipv4(addresses[from], addresses[to], 64)
        .tcp(ports[from], ports[to], own, window);
    if it.ack {
        builder = builder.ack(sequence(packet.from.other(), it.acknowledged));
    }
    if it.syn {
        builder = builder.syn();
    }
    if it.fin {
        builder = builder.fin();
    }
    if it.rst {
        builder = builder.rst();
    }
    if it.push && it.len > 0 {
        builder = builder.psh();
    }
    let builder = builder.options(&options(packet)).map_err(io::Error::other)?;
    builder.write_to_vec(into, payload).map_err(io::Error::other)
}

fn address(station: Station) -> [u8; 4] {
    let address = match station {
        Station::Publisher(number) => PUBLISHERS.wrapping_add(number),
        Station::Subscriber(number) => SUBSCRIBERS.wrapping_add(number),
        Station::Multicast(number) => MULTICAST.wrapping_add(number),
    };
    address.to_be_bytes()
}

/// A locally administered address that contains the IP address; for multicast groups according to RFC 1112.
fn hardware_address(station: Station) -> [u8; 6] {
    let [a, b, c, d] = address(station);
    match station {
        Station::Multicast(_) => [0x01, 0x00, 0x5e, b & 0x7f, c, d],
        _ => [2, 0, a, b, c, d],
    }
}

fn udp(datagram: &Datagram<'_>, into: &mut Vec<u8>) -> io::Result<()> {
    let (from, to) = (datagram.from, datagram.to);
    let hops = HOPS[usize::from(matches!(to, Station::Multicast(_)))];
    PacketBuilder::ethernet2(hardware_address(from), hardware_address(to))
        .ipv4(address(from), address(to), hops)
        .udp(OPC_UA, OPC_UA)
        .write_to_vec(into, datagram.payload)
        .map_err(io::Error::other)
}

/// The captures of a world; each records the packets of its lines.
#[derive(Debug)]
pub struct Captures {
    utc_origin: UtcTime,
    captures: Vec<Capture>,
    of_line: BTreeMap<LineId, usize>,
}

impl Captures {
    /// No captures. `utc_origin` is the wall-clock time at [`Instant::ZERO`].
    #[must_use]
    pub fn new(utc_origin: UtcTime) -> Self {
        Self { utc_origin, captures: Vec::new(), of_line: BTreeMap::new() }
    }

    /// Adds a capture for these lines.
    pub fn add(&mut self, lines: &[LineId], capture: Capture) {
        self.of_line.extend(lines.iter().map(|line| (*line, self.captures.len())));
        self.captures.push(capture);
    }
}

impl Tap for Captures {
    fn packet(&mut self, packet: &Packet<'_>, payload: &mut dyn Iterator<Item = u8>) {
        let capture = packet.line.and_then(|line| self.of_line.get(&line));
        if let Some(capture) = capture.and_then(|at| self.captures.get_mut(*at)) {
            capture.record(self.utc_origin, packet, payload);
        }
    }

    fn datagram(&mut self, datagram: &Datagram<'_>) {
        let capture = self.of_line.get(&datagram.line);
        if let Some(capture) = capture.and_then(|at| self.captures.get_mut(*at)) {
            capture.record_datagram(self.utc_origin, datagram);
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        for capture in &mut self.captures {
            match capture.failed.take() {
                Some(error) => return Err(error),
                None => capture.out.flush()?,
            }
        }
        Ok(())
    }
}
