//! TCP connections as seen by applications: reliable, in order, with limited buffers, and breakable.
//!
//! [`Network`] holds the connections. Their events are scheduled as [`Wire`] events in the simulation's queue and
//! handled by [`Network::handle`]. Notifications of sockets are returned by [`Network::poll_signal`].
//!
//! TCP is that of [`taktwerk_netem::tcp`], the line that of [`taktwerk_netem::emulator`], which the laboratory also
//! uses for real packets. Each connection has its own line, or shares one ([`Network::add_line`]). Both directions
//! carry acknowledgements.
//!
//! This module adds sockets, the bytes themselves, cuts and partitions. Simplification: a host that has closed is
//! notified of the other end's close at once instead of after its last segment.

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

/// The protocol of a connection, for captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// OPC UA, between a client and a server.
    #[default]
    OpcUa,
    /// MQTT, between a publisher and a broker.
    PublisherToBroker,
    /// MQTT, between a subscriber and a broker.
    SubscriberToBroker,
    /// HTTP, to a certificate authority.
    Authority,
}

/// A segment put on a line.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Time of sending.
    pub at: Instant,
    /// The connection.
    pub link: LinkId,
    /// Numbers of client and server, as passed to [`Network::connect_hosts`].
    pub hosts: (u32, u32),
    /// The protocol.
    pub service: Service,
    /// The line, if it is a shared one.
    pub line: Option<LineId>,
    /// Sender.
    pub from: Side,
    /// The TCP segment.
    pub segment: &'a Segment,
    /// When the other end sent its last segment.
    pub other_sent: Option<Instant>,
    /// Maximum segment size of the other direction.
    pub receives_at_most: usize,
}

/// Observes every packet that is put on a line, before the line decides its fate.
pub trait Tap {
    /// A packet and its payload.
    fn packet(&mut self, packet: &Packet<'_>, payload: &mut dyn Iterator<Item = u8>);

    /// A datagram.
    fn datagram(&mut self, datagram: &Datagram<'_>) {
        let _ = datagram;
    }

    /// The end of the recording.
    ///
    /// # Errors
    /// Writing failed.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection, or a connection attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Its number, counting from 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// An end of a connection.
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
    /// The end.
    pub side: Side,
}

/// Notification of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A client wants to connect. Answer with [`Network::accept`] or [`Network::refuse`].
    Incoming(LinkId),
    /// The connection is established.
    Connected(End),
    /// The server refuses, or does not answer.
    Unreachable(End),
    /// There are bytes to read.
    Readable(End),
    /// A partial write can continue.
    Writable(End),
    /// The connection has ended; the socket no longer exists.
    Closed(End, CloseReason),
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The other end closed it, and everything it sent has been read.
    Finished,
    /// It was cut, or the other end has ended.
    Reset,
    /// The other end has not acknowledged for too long.
    TimedOut,
}

/// A scheduled event of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    link: LinkId,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A segment arrives.
    Packet { to: Side, number: u32 },
    /// A TCP timer; ignored if it was set again since.
    Timer { side: Side },
    /// A SOAP message of this side has been encoded.
    SoapMade { side: Side },
    /// A SOAP message for this side has been decoded.
    SoapRead { side: Side },
    /// The connection breaks.
    Cut,
}

/// All connections of a simulation.
pub struct Network {
    /// Dead connections free their memory, but ids are not reused.
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

/// A line shared by connections.
struct SharedLine {
    lines: [Line; 2],
    /// Whether both directions share the first one's capacity.
    is_half_duplex: bool,
}

impl SharedLine {
    fn of(&mut self, from: Side) -> &mut Line {
        &mut self.lines[if self.is_half_duplex { 0 } else { from as usize }]
    }
}

/// The line of a connection's packets.
#[derive(Default)]
struct Medium {
    lines: Vec<SharedLine>,
    packets: Packets,
    tap: Option<Box<dyn Tap>>,
}

impl Network {
    /// Without connections. `entropy` determines losses and jitter.
    #[must_use]
    pub fn new(entropy: SeededEntropy) -> Self {
        Self { links: Vec::new(), signals: VecDeque::new(), medium: Medium::default(), entropy }
    }

    /// Adds a line that connections can share: see [`Route::on`]. On a half-duplex line, both directions wait for each
    /// other; it has the properties of the direction from client to server.
    pub fn add_line(&mut self, link: &Profile, is_half_duplex: bool) -> LineId {
        let id = LineId(u32::try_from(self.medium.lines.len()).unwrap_or(u32::MAX));
        let mut line = |conditions| Line::new(conditions, self.entropy.next_u64());
        let lines = [line(link.up.clone()), line(link.down.clone())];
        self.medium.lines.push(SharedLine { lines, is_half_duplex });
        id
    }

    /// Counters of a line, client to server first. A half-duplex line counts both directions in the first.
    #[must_use]
    pub fn line(&self, id: LineId) -> [Counters; 2] {
        self.medium
            .lines
            .get(id.0 as usize)
            .map(|shared| [0, 1].map(|direction: usize| shared.lines[direction].counters()))
            .unwrap_or_default()
    }

    /// Sets the tap that observes every packet.
    pub fn set_tap(&mut self, tap: Option<Box<dyn Tap>>) {
        self.medium.tap = tap;
    }

    /// Removes the tap.
    pub(crate) fn take_tap(&mut self) -> Option<Box<dyn Tap>> {
        self.medium.tap.take()
    }

    /// Starts to connect. [`Signal::Connected`] or [`Signal::Unreachable`] follows.
    pub fn connect<E: From<Wire>>(&mut self, route: &Route, queue: &mut EventQueue<E>) -> LinkId {
        self.connect_hosts((0, 0), route, queue)
    }

    /// Like [`Network::connect`], with numbers of client and server for a tap.
    pub fn connect_hosts<E: From<Wire>>(
        &mut self,
        hosts: (u32, u32),
        route: &Route,
        queue: &mut EventQueue<E>,
    ) -> LinkId {
        self.connect_to(Service::OpcUa, hosts, route, queue)
    }

    /// Like [`Network::connect_hosts`], for another protocol.
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

    /// Accepts an incoming connection ([`Signal::Incoming`]) and returns its socket.
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

    /// Refuses an incoming connection.
    pub fn refuse<E: From<Wire>>(&mut self, id: LinkId, queue: &mut EventQueue<E>) {
        if let Some(link) = self.link_mut(id) {
            *link.end(Side::Server) = EndState::Gone;
            self.answer_reset(End { link: id, side: Side::Server }, queue);
        }
    }

    /// Writes to a socket. Returns the number of accepted bytes; [`Signal::Writable`] follows if not all were accepted.
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

    /// Number of readable bytes of a socket.
    #[must_use]
    pub fn readable(&self, end: End) -> usize {
        let writer = end.side.other() as usize;
        self.link(end.link).map_or(0, |link| match &link.soap {
            Some(soap) => soap.readable(writer),
            None => link.streams[writer].readable(),
        })
    }

    /// Reads at most `max` bytes from a socket and appends them to `into`.
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

    /// Closes a socket: written data is still sent, received data is refused.
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

    /// Ends a socket at once and resets the other end, as when a process crashes.
    pub fn reset<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(end.link) else { return };
        if *link.end(end.side) != EndState::Gone {
            *link.end(end.side) = EndState::Gone;
            link.tcp[end.side as usize] = None;
            self.answer_reset(end, queue);
        }
        self.forget_dead(end.link);
    }

    /// Breaks a connection: both ends are notified now.
    pub fn cut(&mut self, id: LinkId) {
        for side in [Side::Client, Side::Server] {
            self.end(End { link: id, side }, CloseReason::Reset);
        }
    }

    /// Breaks a connection later, like [`Network::cut`].
    pub fn cut_at<E: From<Wire>>(&mut self, id: LinkId, at: Instant, queue: &mut EventQueue<E>) {
        queue.schedule(at, Wire { link: id, kind: Kind::Cut });
    }

    /// Breaks a connection when exactly `bytes` bytes written by `end` have been delivered, counted from its start.
    pub fn cut_at_byte(&mut self, end: End, bytes: u64) {
        if let Some(link) = self.link_mut(end.link) {
            link.stream(end.side).set_cut(bytes);
        }
    }

    /// Drops everything from now on, without notification.
    pub fn partition(&mut self, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.partitioned = true;
        }
    }

    /// Ends a partition. Lost segments are retransmitted when their timers expire.
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

    /// Traffic sent by `end`; zero if the connection no longer exists.
    #[must_use]
    pub fn traffic(&self, end: End) -> Traffic {
        self.link(end.link).map_or_else(Traffic::default, |link| link.streams[end.side as usize].traffic)
    }

    /// The next notification of a socket. Call it until `None` after each event and each call.
    pub fn poll_signal(&mut self) -> Option<Signal> {
        let signal = self.signals.pop_front()?;
        if let Signal::Closed(end, _) | Signal::Unreachable(end) = signal {
            if let Some(link) = self.link_mut(end.link) {
                *link.end(end.side) = EndState::Gone;
                // The end that closed first has been waiting for this.
                let other = link.end(end.side.other());
                if matches!(other, EndState::Closing | EndState::Opening) {
                    *other = EndState::Gone;
                }
            }
            self.forget_dead(end.link);
        }
        Some(signal)
    }

    /// Handles an arrival or a timer.
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
            // Both ends have closed.
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
        // Before the application wakes up, as in an operating system.
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

    /// Forwards the events of TCP.
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

    /// Sends the segments that TCP has ready, and sets its timer.
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

    /// The core writes part of a message that becomes a SOAP message.
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

    /// Sends encoded SOAP messages. Their content does not matter.
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

    /// A closed connection ends when its last message has been encoded.
    fn close_soap(&mut self, end: End) {
        let Some(link) = self.link_mut(end.link) else { return };
        let is_closing = *link.end(end.side) == EndState::Closing;
        let is_empty = link.soap.as_ref().is_some_and(|soap| soap.is_sent(end.side as usize));
        if let Some(tcp) = link.tcp(end.side).filter(|_| is_closing && is_empty) {
            tcp.close();
        }
    }

    /// Receives bytes of SOAP messages.
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

    /// The host of `end` does not know the connection: answers with a reset.
    fn answer_reset<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        if let Some(link) = self.links.get_mut(end.link.0 as usize).and_then(Option::as_mut) {
            let segment = Segment { rst: true, ack: true, ..Segment::default() };
            self.medium.send(link, end, segment, queue);
        }
    }

    /// Notifies an end that its connection has ended.
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
