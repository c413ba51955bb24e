//! Connections as TCP gives them to applications: reliable, in order, bounded buffers, and they break.
//!
//! [`Network`] holds the connections. What happens on them is scheduled as [`Wire`] events into the queue of whoever
//! drives the simulation, and comes back through [`Network::handle`]; what a host's sockets would report is taken from
//! [`Network::poll_signal`].
//!
//! TCP is that of [`taktwerk_netem::tcp`], the line that of [`taktwerk_netem::emulator`]: the laboratory puts real packets
//! through the same line. Each connection has a line of its own, or shares one ([`Network::add_line`]). Both directions carry
//! acknowledgements.
//!
//! Added here: sockets, the bytes themselves, cuts, partitions. Not modelled: a host that has closed hears of the other one's
//! end at once instead of waiting for its last segment.

mod datagram;
mod link;
mod packets;
mod path;
pub mod soap;
mod stream;

pub(crate) use datagram::HEADERS as DATAGRAM_HEADERS;
pub use datagram::{Datagram, Station};
pub use path::{Path, Route, Transport};
pub use stream::Traffic;

use crate::queue::EventQueue;
use link::{Carrier, EndState, Link};
use packets::Packets;
use std::collections::VecDeque;
use std::io;
use taktwerk_crypto::{Entropy, SeededEntropy};
use taktwerk_netem::Profile;
use taktwerk_netem::emulator::{Counters, Fate, Line};
use taktwerk_netem::tcp::{self, Endpoint, Segment};
use taktwerk_types::Instant;

/// A line that connections share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(u32);

/// What is spoken over a connection, for who looks at the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// OPC UA, between a client and a server.
    #[default]
    OpcUa,
    /// MQTT, between a publisher and a broker.
    PublisherToBroker,
    /// MQTT, between a subscriber and a broker.
    SubscriberToBroker,
}

/// A segment that is put on a line.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When.
    pub at: Instant,
    /// The connection.
    pub link: LinkId,
    /// Numbers of client and server, as [`Network::connect_hosts`] was told.
    pub hosts: (u32, u32),
    /// What is spoken.
    pub service: Service,
    /// The line, if it is one that connections share.
    pub line: Option<LineId>,
    /// Who sends it.
    pub from: Side,
    /// What TCP says.
    pub segment: &'a Segment,
    /// When the other end sent its last segment.
    pub other_sent: Option<Instant>,
    /// Most bytes in a segment that comes the other way.
    pub receives_at_most: usize,
}

/// Sees every packet that is put on a line, before the line decides what becomes of it.
pub trait Tap {
    /// A packet, and the bytes that it carries.
    fn packet(&mut self, packet: &Packet<'_>, payload: &mut dyn Iterator<Item = u8>);

    /// A datagram.
    fn datagram(&mut self, datagram: &Datagram<'_>) {
        let _ = datagram;
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// Something could not be written.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection, or an attempt to make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Its number: connections count from 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A socket: one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// The connection.
    pub link: LinkId,
    /// Which end of it.
    pub side: Side,
}

/// What a socket reports to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A client wants to connect: answer with [`Network::accept`] or [`Network::refuse`].
    Incoming(LinkId),
    /// The connection stands.
    Connected(End),
    /// Nobody listens, or nobody answers.
    Unreachable(End),
    /// There are bytes to read.
    Readable(End),
    /// A write that did not fit can go on.
    Writable(End),
    /// The connection has ended; the socket is gone.
    Closed(End, CloseReason),
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The other end closed it, and everything it sent has been read.
    Finished,
    /// It was cut, or the other end is gone.
    Reset,
    /// The other end did not acknowledge for too long.
    TimedOut,
}

/// Something on its way through the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    link: LinkId,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A segment arrives.
    Packet { to: Side, number: u32 },
    /// A timer of TCP, unless another one was set since.
    Timer { side: Side },
    /// A SOAP message of this side has been made.
    SoapMade { side: Side },
    /// A SOAP message for this side has been read.
    SoapRead { side: Side },
    /// The connection breaks.
    Cut,
}

/// All connections of a simulation.
pub struct Network {
    /// Dead ones give their memory back but never their id.
    links: Vec<Option<Box<Link>>>,
    signals: VecDeque<Signal>,
    medium: Medium,
    entropy: SeededEntropy,
}

impl core::fmt::Debug for Network {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let alive = self.links.iter().flatten().count();
        f.debug_struct("Network")
            .field("links", &self.links.len())
            .field("alive", &alive)
            .finish_non_exhaustive()
    }
}

/// A line of several connections.
struct SharedLine {
    lines: [Line; 2],
    /// Both directions take turns on the first of them.
    is_half_duplex: bool,
}

impl SharedLine {
    fn of(&mut self, from: Side) -> &mut Line {
        &mut self.lines[if self.is_half_duplex { 0 } else { from as usize }]
    }
}

/// What packets travel on.
#[derive(Default)]
struct Medium {
    lines: Vec<SharedLine>,
    packets: Packets,
    tap: Option<Box<dyn Tap>>,
}

impl Network {
    /// Without connections. `entropy` decides on losses and jitter.
    #[must_use]
    pub fn new(entropy: SeededEntropy) -> Self {
        Self { links: Vec::new(), signals: VecDeque::new(), medium: Medium::default(), entropy }
    }

    /// Adds a line that connections share: see [`Route::on`].
    pub fn add_line(&mut self, link: &Profile) -> LineId {
        self.add_line_of(link, false)
    }

    /// Adds a line that connections share, both directions of which take turns: the conditions are those from client to server.
    pub fn add_half_duplex_line(&mut self, link: &Profile) -> LineId {
        self.add_line_of(link, true)
    }

    fn add_line_of(&mut self, link: &Profile, is_half_duplex: bool) -> LineId {
        let id = LineId(u32::try_from(self.medium.lines.len()).unwrap_or(u32::MAX));
        let mut line = |conditions| Line::new(conditions, self.entropy.next_u64());
        let lines = [line(link.up.clone()), line(link.down.clone())];
        self.medium.lines.push(SharedLine { lines, is_half_duplex });
        id
    }

    /// What a line has carried so far, client to server first. A half-duplex line counts both in the first.
    #[must_use]
    pub fn line(&self, id: LineId) -> [Counters; 2] {
        self.medium
            .lines
            .get(id.0 as usize)
            .map(|shared| [0, 1].map(|direction: usize| shared.lines[direction].counters()))
            .unwrap_or_default()
    }

    /// Shows every packet from now on.
    pub fn set_tap(&mut self, tap: Option<Box<dyn Tap>>) {
        self.medium.tap = tap;
    }

    /// Shows no more packets.
    pub(crate) fn take_tap(&mut self) -> Option<Box<dyn Tap>> {
        self.medium.tap.take()
    }

    /// A client starts to connect. [`Signal::Connected`] or [`Signal::Unreachable`] follows.
    pub fn connect<E: From<Wire>>(&mut self, route: &Route, queue: &mut EventQueue<E>) -> LinkId {
        self.connect_hosts((0, 0), route, queue)
    }

    /// As [`Network::connect`], with numbers of client and server for who looks at the packets.
    pub fn connect_hosts<E: From<Wire>>(
        &mut self,
        hosts: (u32, u32),
        route: &Route,
        queue: &mut EventQueue<E>,
    ) -> LinkId {
        self.connect_to(Service::OpcUa, hosts, route, queue)
    }

    /// As [`Network::connect_hosts`], for another protocol.
    pub(crate) fn connect_to<E: From<Wire>>(
        &mut self,
        service: Service,
        hosts: (u32, u32),
        route: &Route,
        queue: &mut EventQueue<E>,
    ) -> LinkId {
        let id = LinkId(u32::try_from(self.links.len()).unwrap_or(u32::MAX));
        let mut own = |path: &Path| Line::new(path.conditions(), self.entropy.next_u64());
        let carrier = match route.line {
            Some(line) if self.medium.lines.len() > line.0 as usize => Carrier::Shared(line),
            _ => Carrier::Own(Box::new([own(&route.to_server), own(&route.to_client)])),
        };
        self.links.push(Some(Box::new(Link::new((service, hosts), route, carrier, queue.now()))));
        self.pump(End { link: id, side: Side::Client }, queue);
        id
    }

    /// The server takes an incoming connection: [`Signal::Incoming`] becomes a socket.
    pub fn accept<E: From<Wire>>(&mut self, id: LinkId, queue: &mut EventQueue<E>) -> End {
        let end = End { link: id, side: Side::Server };
        if let Some(link) = self.link_mut(id) {
            *link.end(Side::Server) = EndState::Open;
            let [to_server, to_client] = &link.paths;
            let config = path::config(to_client, to_server);
            link.tcp[Side::Server as usize] =
                Some(Endpoint::accept(config, &link.syn, queue.now().as_nanos()));
            self.pump(end, queue);
        }
        end
    }

    /// The server does not take an incoming connection.
    pub fn refuse<E: From<Wire>>(&mut self, id: LinkId, queue: &mut EventQueue<E>) {
        if let Some(link) = self.link_mut(id) {
            *link.end(Side::Server) = EndState::Gone;
            self.answer_reset(End { link: id, side: Side::Server }, queue);
        }
    }

    /// Writes to a socket; says how many bytes it took. [`Signal::Writable`] follows if it did not take all.
    pub fn write<E: From<Wire>>(&mut self, end: End, bytes: &[u8], queue: &mut EventQueue<E>) -> usize {
        let Some(link) = self.link_mut(end.link) else { return 0 };
        if *link.end(end.side) != EndState::Open {
            return 0;
        }
        if link.soap.is_some() {
            return self.write_soap(end, bytes, queue);
        }
        let taken = link.tcp(end.side).map_or(0, |tcp| tcp.write(bytes.len()));
        link.stream(end.side).write(bytes.get(..taken).unwrap_or_default());
        self.pump(end, queue);
        taken
    }

    /// How many bytes a socket has to read.
    #[must_use]
    pub fn readable(&self, end: End) -> usize {
        let writer = end.side.other() as usize;
        self.link(end.link).map_or(0, |link| match &link.soap {
            Some(soap) => soap.readable(writer),
            None => link.streams[writer].readable(),
        })
    }

    /// Appends at most `max` bytes from a socket to `into`.
    pub fn read<E: From<Wire>>(
        &mut self,
        end: End,
        max: usize,
        into: &mut Vec<u8>,
        queue: &mut EventQueue<E>,
    ) {
        let Some(link) = self.link_mut(end.link) else { return };
        if !matches!(*link.end(end.side), EndState::Open | EndState::Broken) {
            return;
        }
        if let Some(soap) = &mut link.soap {
            soap.read(end.side.other() as usize, max, into);
            return self.finish_if_read(end);
        }
        let len = link.stream(end.side.other()).read(max, into);
        if let Some(tcp) = link.tcp(end.side).filter(|_| len > 0) {
            tcp.read(len);
            self.pump(end, queue);
        }
        self.finish_if_read(end);
    }

    /// Closes a socket: what was written still goes out, what arrives is refused.
    pub fn close<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(end.link) else { return };
        match *link.end(end.side) {
            EndState::Open => {
                *link.end(end.side) = EndState::Closing;
                if link.soap.is_some() {
                    self.close_soap(end);
                } else if let Some(tcp) = link.tcp(end.side) {
                    tcp.close();
                }
                self.pump(end, queue);
            }
            EndState::Opening | EndState::Broken => *link.end(end.side) = EndState::Gone,
            EndState::Closing | EndState::Gone => {}
        }
        self.forget_dead(end.link);
    }

    /// Ends a socket at once and tells the other end, as when its process dies.
    pub fn reset<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(end.link) else { return };
        if *link.end(end.side) != EndState::Gone {
            *link.end(end.side) = EndState::Gone;
            link.tcp[end.side as usize] = None;
            self.answer_reset(end, queue);
        }
        self.forget_dead(end.link);
    }

    /// Breaks a connection: both ends are told now.
    pub fn cut(&mut self, id: LinkId) {
        for side in [Side::Client, Side::Server] {
            self.end(End { link: id, side }, CloseReason::Reset);
        }
    }

    /// Breaks a connection later, as [`Network::cut`].
    pub fn cut_at<E: From<Wire>>(&mut self, id: LinkId, at: Instant, queue: &mut EventQueue<E>) {
        queue.schedule(at, Wire { link: id, kind: Kind::Cut });
    }

    /// Breaks a connection as soon as `bytes` of what `end` writes have arrived, counted from its start. Not one byte
    /// more is delivered.
    pub fn cut_at_byte(&mut self, end: End, bytes: u64) {
        if let Some(link) = self.link_mut(end.link) {
            link.stream(end.side).set_cut(bytes);
        }
    }

    /// Lets nothing through any more, silently.
    pub fn partition(&mut self, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.partitioned = true;
        }
    }

    /// Lets things through again. What was lost is repeated when its sender's timer says so.
    pub fn heal(&mut self, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.partitioned = false;
        }
    }

    /// Whether one of the ends still has a socket.
    #[must_use]
    pub fn is_alive(&self, id: LinkId) -> bool {
        self.link(id).is_some()
    }

    /// What `end` has put on the wire; nothing if the connection is gone.
    #[must_use]
    pub fn traffic(&self, end: End) -> Traffic {
        self.link(end.link).map_or_else(Traffic::default, |link| link.streams[end.side as usize].traffic)
    }

    /// The next thing that a socket reports. Take all of them after each event and each call.
    pub fn poll_signal(&mut self) -> Option<Signal> {
        let signal = self.signals.pop_front()?;
        if let Signal::Closed(end, _) | Signal::Unreachable(end) = signal {
            if let Some(link) = self.link_mut(end.link) {
                *link.end(end.side) = EndState::Gone;
                // The one that closed first has been waiting for this.
                let other = link.end(end.side.other());
                if matches!(other, EndState::Closing | EndState::Opening) {
                    *other = EndState::Gone;
                }
            }
            self.forget_dead(end.link);
        }
        Some(signal)
    }

    /// Something arrives, or a timer of the network's runs out.
    pub fn handle<E: From<Wire>>(&mut self, wire: Wire, queue: &mut EventQueue<E>) {
        let id = wire.link;
        match wire.kind {
            Kind::Packet { to, number } => {
                let segment = self.medium.packets.take(number);
                self.on_packet(End { link: id, side: to }, &segment, queue);
            }
            Kind::Timer { side } => self.on_timer(End { link: id, side }, queue),
            Kind::SoapMade { side } => self.send_soap(End { link: id, side }, queue),
            Kind::SoapRead { side } => self.on_soap_read(End { link: id, side }, queue.now()),
            Kind::Cut => self.cut(id),
        }
    }

    fn on_packet<E: From<Wire>>(&mut self, to: End, segment: &Segment, queue: &mut EventQueue<E>) {
        let Some(link) = self.links.get_mut(to.link.0 as usize).and_then(Option::as_mut) else { return };
        if link.partitioned {
            link.stream(to.side.other()).traffic.lost += 1;
            return;
        }
        match *link.end(to.side) {
            EndState::Opening if to.side == Side::Server => {
                if segment.syn && !core::mem::replace(&mut link.is_announced, true) {
                    link.syn = *segment;
                    self.signals.push_back(Signal::Incoming(to.link));
                }
                return;
            }
            EndState::Opening | EndState::Open | EndState::Broken => {}
            // Both have closed.
            EndState::Closing if segment.fin && segment.len == 0 => {
                *link.end(to.side) = EndState::Gone;
                return self.end(End { side: to.side.other(), ..to }, CloseReason::Finished);
            }
            EndState::Closing if segment.len == 0 => {}
            EndState::Closing | EndState::Gone => {
                *link.end(to.side) = EndState::Gone;
                link.tcp[to.side as usize] = None;
                if !segment.rst {
                    self.answer_reset(to, queue);
                }
                return;
            }
        }
        let Some(tcp) = link.tcp[to.side as usize].as_mut() else { return };
        tcp.receive(segment, queue.now().as_nanos());
        let (arrived, acknowledged) = (tcp.arrived(), tcp.acknowledged());
        let breaks = link.stream(to.side.other()).arrive(arrived);
        link.stream(to.side).acknowledge(acknowledged);
        if link.soap.is_some() {
            self.collect_soap(to, queue);
        }
        self.report(to, queue);
        // Before the application wakes up, as an operating system does.
        self.pump(to, queue);
        if breaks {
            self.cut(to.link);
        }
        self.finish_if_read(to);
    }

    fn on_timer<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(end.link) else { return };
        let armed = &mut link.armed[end.side as usize];
        if *armed != Some(queue.now()) {
            return;
        }
        *armed = None;
        if let Some(tcp) = link.tcp(end.side) {
            tcp.handle_timeout(queue.now().as_nanos());
            self.report(end, queue);
            self.pump(end, queue);
        }
    }

    /// Passes on what TCP reports.
    fn report<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        while let Some(event) =
            self.link_mut(end.link).and_then(|link| link.tcp(end.side)).and_then(Endpoint::poll_event)
        {
            let Some(link) = self.link_mut(end.link) else { return };
            let is_open = *link.end(end.side) == EndState::Open;
            let has_bytes = link.stream(end.side.other()).readable() > 0;
            match event {
                tcp::Event::Connected => {
                    *link.end(end.side) = EndState::Open;
                    self.signals.push_back(Signal::Connected(end));
                }
                tcp::Event::Readable if has_bytes => self.signals.push_back(Signal::Readable(end)),
                tcp::Event::Writable if link.soap.is_some() => self.send_soap(end, queue),
                tcp::Event::Writable if is_open => self.signals.push_back(Signal::Writable(end)),
                tcp::Event::Readable | tcp::Event::Writable => {}
                tcp::Event::Reset => self.end(end, CloseReason::Reset),
                tcp::Event::TimedOut => self.end(end, CloseReason::TimedOut),
            }
        }
    }

    /// Sends what TCP lets go, and sets its timer.
    fn pump<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.links.get_mut(end.link.0 as usize).and_then(Option::as_mut) else { return };
        if matches!(*link.end(end.side), EndState::Broken | EndState::Gone) {
            return;
        }
        let now = queue.now();
        while let Some(segment) = link.tcp(end.side).and_then(|tcp| tcp.poll_transmit(now.as_nanos())) {
            self.medium.send(link, end, segment, queue);
        }
        let Some(tcp) = link.tcp(end.side) else { return };
        let (repetitions, timeout) = (tcp.repetitions(), tcp.poll_timeout());
        link.stream(end.side).traffic.repetitions = repetitions;
        let armed = &mut link.armed[end.side as usize];
        if let Some(at) = timeout.map(|at| Instant::from_nanos(at).max(now))
            && armed.is_none_or(|armed| armed > at)
        {
            *armed = Some(at);
            queue.schedule(at, Wire { link: end.link, kind: Kind::Timer { side: end.side } });
        }
    }

    /// The core writes a part of a message that becomes a SOAP message.
    fn write_soap<E: From<Wire>>(&mut self, end: End, bytes: &[u8], queue: &mut EventQueue<E>) -> usize {
        let Some(link) = self.link_mut(end.link) else { return 0 };
        let limit = link.paths[end.side as usize].send_buffer;
        let Some(soap) = &mut link.soap else { return 0 };
        if soap.is_full(end.side as usize, limit) {
            soap.wants_room[end.side as usize] = true;
            return 0;
        }
        for at in soap.write(end.side as usize, bytes, queue.now()) {
            queue.schedule(at, Wire { link: end.link, kind: Kind::SoapMade { side: end.side } });
        }
        bytes.len()
    }

    /// Puts on the wire what has been made. What the bytes say does not matter.
    fn send_soap<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let Some(link) = self.link_mut(end.link) else { return };
        let limit = link.paths[end.side as usize].send_buffer;
        let Some(soap) = &mut link.soap else { return };
        let mut left = soap.pending(end.side as usize, queue.now());
        if let Some(tcp) = link.tcp[end.side as usize].as_mut() {
            while left > 0 {
                let taken = tcp.write(left.min(ZEROS.len()));
                link.streams[end.side as usize].write(ZEROS.get(..taken).unwrap_or_default());
                soap.put(end.side as usize, taken);
                left -= taken;
                if taken == 0 {
                    break;
                }
            }
        }
        let has_room = !soap.is_full(end.side as usize, limit);
        if has_room && core::mem::take(&mut soap.wants_room[end.side as usize]) {
            self.signals.push_back(Signal::Writable(end));
        }
        self.close_soap(end);
        self.pump(end, queue);
    }

    /// A connection that was closed ends when the last message has been made.
    fn close_soap(&mut self, end: End) {
        let Some(link) = self.link_mut(end.link) else { return };
        let is_closing = *link.end(end.side) == EndState::Closing;
        let is_empty = link.soap.as_ref().is_some_and(|soap| soap.is_sent(end.side as usize));
        if let Some(tcp) = link.tcp(end.side).filter(|_| is_closing && is_empty) {
            tcp.close();
        }
    }

    /// Bytes of SOAP messages have arrived.
    fn collect_soap<E: From<Wire>>(&mut self, to: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(to.link) else { return };
        let writer = to.side.other();
        let mut bytes = Vec::new();
        let len = link.streams[writer as usize].read(usize::MAX, &mut bytes);
        if let Some(tcp) = link.tcp(to.side) {
            tcp.read(len);
        }
        let Some(soap) = &mut link.soap else { return };
        for at in soap.arrive(writer as usize, len, queue.now()) {
            queue.schedule(at, Wire { link: to.link, kind: Kind::SoapRead { side: to.side } });
        }
    }

    fn on_soap_read(&mut self, to: End, now: Instant) {
        let Some(link) = self.link_mut(to.link) else { return };
        let Some(soap) = &mut link.soap else { return };
        soap.deliver(to.side.other() as usize, now);
        if matches!(*link.end(to.side), EndState::Open) {
            self.signals.push_back(Signal::Readable(to));
        }
        self.finish_if_read(to);
    }

    /// The host of `end` knows nothing of the connection.
    fn answer_reset<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        if let Some(link) = self.links.get_mut(end.link.0 as usize).and_then(Option::as_mut) {
            let segment = Segment { rst: true, ack: true, ..Segment::default() };
            self.medium.send(link, end, segment, queue);
        }
    }

    /// Tells an end that its connection is over.
    fn end(&mut self, end: End, reason: CloseReason) {
        let Some(link) = self.link_mut(end.link) else { return };
        link.tcp[end.side as usize] = None;
        let state = link.end(end.side);
        match *state {
            EndState::Opening if end.side == Side::Client => {
                *state = EndState::Broken;
                self.signals.push_back(Signal::Unreachable(end));
            }
            EndState::Open => {
                *state = EndState::Broken;
                self.signals.push_back(Signal::Closed(end, reason));
            }
            EndState::Opening | EndState::Closing => *state = EndState::Gone,
            EndState::Broken | EndState::Gone => {}
        }
        self.forget_dead(end.link);
    }

    fn finish_if_read(&mut self, reader: End) {
        let Some(link) = self.link_mut(reader.link) else { return };
        let writer = reader.side.other() as usize;
        let reads = link.soap.as_ref().is_some_and(|soap| soap.is_reading(writer));
        if !reads && link.tcp(reader.side).is_some_and(|tcp| tcp.is_finished()) {
            self.end(reader, CloseReason::Finished);
        }
    }

    fn forget_dead(&mut self, id: LinkId) {
        if let Some(place) = self.links.get_mut(id.0 as usize)
            && place.as_ref().is_some_and(|link| link.is_dead())
        {
            *place = None;
        }
    }

    fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(id.0 as usize)?.as_deref()
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(id.0 as usize)?.as_deref_mut()
    }
}

impl Medium {
    /// Puts a segment on the line.
    fn send<E: From<Wire>>(
        &mut self,
        link: &mut Link,
        from: End,
        segment: Segment,
        queue: &mut EventQueue<E>,
    ) {
        let now = queue.now();
        if let Some(tap) = &mut self.tap {
            let line = match link.carrier {
                Carrier::Own(_) => None,
                Carrier::Shared(line) => Some(line),
            };
            let other_sent = link.last_sent[from.side.other() as usize];
            link.last_sent[from.side as usize] = Some(now);
            let (hosts, service, segment) = (link.hosts, link.service, &segment);
            let receives_at_most = link.paths[from.side.other() as usize].segment_len;
            let packet = Packet {
                at: now,
                link: from.link,
                hosts,
                service,
                line,
                from: from.side,
                segment,
                other_sent,
                receives_at_most,
            };
            let mut payload = link.streams[from.side as usize].bytes(segment.sequence, segment.len);
            tap.packet(&packet, &mut payload);
        }
        let line = match &mut link.carrier {
            Carrier::Own(lines) => &mut lines[from.side as usize],
            Carrier::Shared(id) => match self.lines.get_mut(id.0 as usize) {
                Some(shared) => shared.of(from.side),
                None => return,
            },
        };
        let packet = segment.packet_len(link.paths[from.side as usize].overhead);
        let traffic = &mut link.streams[from.side as usize].traffic;
        traffic.segments += 1;
        traffic.wire_bytes += (packet + line.conditions().overhead) as u64;
        match line.send(now.as_nanos(), packet) {
            Fate::Arrives(at) => {
                let twice = line.twice();
                for _ in 0..=usize::from(twice) {
                    let number = self.packets.put(segment);
                    let kind = Kind::Packet { to: from.side.other(), number };
                    queue.schedule(Instant::from_nanos(at), Wire { link: from.link, kind });
                }
            }
            Fate::Lost | Fate::Dropped => traffic.lost += 1,
        }
    }
}

#[cfg(test)]
mod tests;
