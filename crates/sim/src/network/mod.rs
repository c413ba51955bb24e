//! Connections as TCP gives them to applications: reliable, in order, bounded buffers, and they break.
//!
//! [`Network`] holds the connections. What happens on them is scheduled as [`Wire`] events into the queue of whoever
//! drives the simulation, and comes back through [`Network::handle`]; what a host's sockets would report is taken from
//! [`Network::poll_signal`].
//!
//! Modelled: propagation delay, jitter, rate with framing, loss with repetition after a timeout that doubles, the
//! handshake, slow start and congestion avoidance, receive windows, bounded send buffers, orderly and hard closing,
//! connections given up. Not modelled: lost, delayed or duplicated acknowledgements, fast retransmission (each loss
//! costs a timeout), shared bottlenecks between connections, keep-alive probes.

mod link;
mod path;
mod stream;

pub use path::{Path, Route};
pub use stream::Traffic;

use crate::queue::EventQueue;
use core::time::Duration;
use link::{EndState, Link};
use std::collections::VecDeque;
use stream::{Fate, Segment};
use taktwerk_crypto::SeededEntropy;
use taktwerk_types::Instant;

/// A connection, or an attempt to make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

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
    Connect { first_sent: Instant, repetitions: u32 },
    Answer { accepted: bool },
    Arrive { writer: Side, segment: Segment },
    Repeat { writer: Side, segment: Segment },
    Acknowledge { writer: Side, received: u64, window_end: u64 },
    Reset { to: Side },
    Cut,
}

/// How long a client waits for an answer before it tries again to connect (Linux: TCP_TIMEOUT_INIT).
const CONNECT_RETRY: Duration = Duration::from_secs(1);

/// All connections of a simulation.
#[derive(Debug)]
pub struct Network {
    /// Dead ones give their memory back but never their id.
    links: Vec<Option<Box<Link>>>,
    signals: VecDeque<Signal>,
    entropy: SeededEntropy,
}

impl Network {
    /// Without connections. `entropy` decides on losses and jitter.
    #[must_use]
    pub fn new(entropy: SeededEntropy) -> Self {
        Self { links: Vec::new(), signals: VecDeque::new(), entropy }
    }

    /// A client starts to connect. [`Signal::Connected`] or [`Signal::Unreachable`] follows.
    pub fn connect<E: From<Wire>>(&mut self, route: &Route, queue: &mut EventQueue<E>) -> LinkId {
        let id = LinkId(u32::try_from(self.links.len()).unwrap_or(u32::MAX));
        let mut link = Box::new(Link::new(route));
        link.send(id, Side::Client, Kind::Connect { first_sent: queue.now(), repetitions: 0 }, queue);
        self.links.push(Some(link));
        id
    }

    /// The server takes an incoming connection: [`Signal::Incoming`] becomes a socket.
    pub fn accept<E: From<Wire>>(&mut self, id: LinkId, queue: &mut EventQueue<E>) -> End {
        if let Some(link) = self.link_mut(id) {
            *link.end(Side::Server) = EndState::Open;
            link.send(id, Side::Server, Kind::Answer { accepted: true }, queue);
        }
        End { link: id, side: Side::Server }
    }

    /// The server does not take an incoming connection.
    pub fn refuse<E: From<Wire>>(&mut self, id: LinkId, queue: &mut EventQueue<E>) {
        if let Some(link) = self.link_mut(id) {
            *link.end(Side::Server) = EndState::Gone;
            link.send(id, Side::Server, Kind::Answer { accepted: false }, queue);
        }
    }

    /// Writes to a socket; says how many bytes it took. [`Signal::Writable`] follows if it did not take all.
    pub fn write<E: From<Wire>>(&mut self, end: End, bytes: &[u8], queue: &mut EventQueue<E>) -> usize {
        let Some(link) = self.link_mut(end.link) else { return 0 };
        if *link.end(end.side) != EndState::Open {
            return 0;
        }
        let taken = link.stream(end.side).write(bytes);
        self.pump(end, queue);
        taken
    }

    /// How many bytes a socket has to read.
    #[must_use]
    pub fn readable(&self, end: End) -> usize {
        self.link(end.link).map_or(0, |link| link.streams[end.side.other() as usize].readable())
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
        let writer = end.side.other();
        if link.stream(writer).read(max, into) {
            link.acknowledge(end.link, writer, queue);
        }
        self.finish_if_read(end);
    }

    /// Closes a socket: what was written still goes out, what arrives is refused.
    pub fn close<E: From<Wire>>(&mut self, end: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(end.link) else { return };
        match *link.end(end.side) {
            EndState::Open => {
                *link.end(end.side) = EndState::Closing;
                link.stream(end.side).finish();
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
            link.send(end.link, end.side, Kind::Reset { to: end.side.other() }, queue);
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
    pub fn heal<E: From<Wire>>(&mut self, id: LinkId, queue: &mut EventQueue<E>) {
        let Some(link) = self.link_mut(id) else { return };
        link.partitioned = false;
        for writer in [Side::Client, Side::Server] {
            link.acknowledge(id, writer, queue);
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
        self.link(end.link).map_or_else(Traffic::default, |link| link.streams[end.side as usize].traffic())
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
            Kind::Connect { first_sent, repetitions } => self.on_connect(id, first_sent, repetitions, queue),
            Kind::Answer { accepted } => self.on_answer(id, accepted, queue),
            Kind::Arrive { writer, segment } => {
                self.on_arrive(End { link: id, side: writer }, segment, queue)
            }
            Kind::Repeat { writer, segment } => {
                self.on_repeat(End { link: id, side: writer }, segment, queue)
            }
            Kind::Acknowledge { writer, received, window_end } => {
                self.on_acknowledge(End { link: id, side: writer }, received, window_end, queue);
            }
            Kind::Reset { to } => {
                if self.link(id).is_some_and(|link| !link.partitioned) {
                    self.end(End { link: id, side: to }, CloseReason::Reset);
                }
            }
            Kind::Cut => self.cut(id),
        }
    }

    fn on_connect<E: From<Wire>>(
        &mut self,
        id: LinkId,
        first_sent: Instant,
        repetitions: u32,
        queue: &mut EventQueue<E>,
    ) {
        let Some(link) = self.links.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        if *link.end(Side::Client) != EndState::Opening {
            return;
        }
        let path = *link.stream(Side::Client).path();
        if !link.loses(&path, &mut self.entropy) {
            self.signals.push_back(Signal::Incoming(id));
        } else if queue.now().since(first_sent) > path.give_up {
            self.end(End { link: id, side: Side::Client }, CloseReason::TimedOut);
        } else {
            let kind = Kind::Connect { first_sent, repetitions: repetitions + 1 };
            queue
                .schedule_in(CONNECT_RETRY * (1 << repetitions.min(6)) + path.delay, Wire { link: id, kind });
        }
    }

    fn on_answer<E: From<Wire>>(&mut self, id: LinkId, accepted: bool, queue: &mut EventQueue<E>) {
        let end = End { link: id, side: Side::Client };
        let Some(link) = self.link_mut(id) else { return };
        let partitioned = link.partitioned;
        match *link.end(Side::Client) {
            EndState::Opening if partitioned => {
                queue.schedule_in(CONNECT_RETRY, Wire { link: id, kind: Kind::Answer { accepted } });
            }
            EndState::Opening if accepted => {
                *link.end(Side::Client) = EndState::Open;
                self.signals.push_back(Signal::Connected(end));
            }
            EndState::Opening => self.end(end, CloseReason::Reset),
            // The client has given the attempt up; the server is to know.
            _ => link.send(id, Side::Client, Kind::Reset { to: Side::Server }, queue),
        }
    }

    fn on_arrive<E: From<Wire>>(&mut self, writer: End, segment: Segment, queue: &mut EventQueue<E>) {
        let id = writer.link;
        let Some(link) = self.link_mut(id) else { return };
        if link.partitioned {
            let at = link.stream(writer.side).repeat_at(segment);
            queue.schedule(at, Wire { link: id, kind: Kind::Repeat { writer: writer.side, segment } });
            return;
        }
        let reader = End { link: id, side: writer.side.other() };
        match *link.end(reader.side) {
            EndState::Opening | EndState::Open | EndState::Broken => {}
            // The end of the stream is no data: both have closed.
            EndState::Closing if segment.len == 0 => {
                *link.end(reader.side) = EndState::Gone;
                return self.end(writer, CloseReason::Finished);
            }
            EndState::Closing | EndState::Gone => {
                *link.end(reader.side) = EndState::Gone;
                return link.send(id, reader.side, Kind::Reset { to: writer.side }, queue);
            }
        }
        let breaks = link.stream(writer.side).arrive(segment);
        link.acknowledge(id, writer.side, queue);
        if link.stream(writer.side).readable() > 0 {
            self.signals.push_back(Signal::Readable(reader));
        }
        if breaks {
            self.cut(id);
        }
        self.finish_if_read(reader);
    }

    fn on_repeat<E: From<Wire>>(&mut self, writer: End, segment: Segment, queue: &mut EventQueue<E>) {
        let Some(link) = self.links.get_mut(writer.link.0 as usize).and_then(Option::as_mut) else { return };
        if !matches!(*link.end(writer.side), EndState::Open | EndState::Closing) {
            return;
        }
        match link.stream(writer.side).repeat(segment, queue.now()) {
            Some(segment) => transmit(link, writer, segment, &mut self.entropy, queue),
            None => self.end(writer, CloseReason::TimedOut),
        }
    }

    fn on_acknowledge<E: From<Wire>>(
        &mut self,
        writer: End,
        received: u64,
        window_end: u64,
        queue: &mut EventQueue<E>,
    ) {
        let Some(link) = self.link_mut(writer.link) else { return };
        // One that is lost is made good when the path heals.
        if link.partitioned {
            return;
        }
        if link.stream(writer.side).acknowledge(received, window_end)
            && *link.end(writer.side) == EndState::Open
        {
            self.signals.push_back(Signal::Writable(writer));
        }
        self.pump(writer, queue);
    }

    /// Sends what the windows allow.
    fn pump<E: From<Wire>>(&mut self, writer: End, queue: &mut EventQueue<E>) {
        let Some(link) = self.links.get_mut(writer.link.0 as usize).and_then(Option::as_mut) else { return };
        if !matches!(*link.end(writer.side), EndState::Open | EndState::Closing) {
            return;
        }
        while let Some(segment) = link.stream(writer.side).next_segment(queue.now()) {
            transmit(link, writer, segment, &mut self.entropy, queue);
        }
    }

    /// Tells an end that its connection is over.
    fn end(&mut self, end: End, reason: CloseReason) {
        let Some(link) = self.link_mut(end.link) else { return };
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
        if link.stream(reader.side.other()).is_finished() {
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

fn transmit<E: From<Wire>>(
    link: &mut Link,
    writer: End,
    segment: Segment,
    entropy: &mut SeededEntropy,
    queue: &mut EventQueue<E>,
) {
    let End { link: id, side: writer } = writer;
    let (at, kind) = match link.stream(writer).transmit(segment, queue.now(), entropy) {
        Fate::Arrives(at) => (at, Kind::Arrive { writer, segment }),
        Fate::Repeat(at) => (at, Kind::Repeat { writer, segment }),
    };
    queue.schedule(at, Wire { link: id, kind });
}

#[cfg(test)]
mod tests;
