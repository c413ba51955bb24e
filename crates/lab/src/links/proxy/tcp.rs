//! One relayed connection: two sockets and the data in flight between them.

use super::{Lines, Way};
use crate::clock;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use std::{array, io};
use taktwerk_netem::emulator::Fate;

/// Maximum bytes in flight per direction and connection, like the buffers of a usual operating system.
const WINDOW: usize = 4 << 20;
/// Bytes of the IP and TCP headers of a segment.
const HEADERS: usize = 40;
/// Timeout for connecting to the server.
const CONNECT: Duration = Duration::from_secs(3);

/// A segment on its way.
#[derive(Debug)]
struct Segment {
    ready: u64,
    bytes: Vec<u8>,
}

/// One direction.
#[derive(Debug, Default)]
struct Half {
    flying: VecDeque<Segment>,
    in_flight: usize,
    /// Bytes of the first segment already written.
    written: usize,
    /// Arrival time of the last segment; segments of a connection are not reordered.
    last_ready: u64,
    /// The deadline already requested, so that each is requested only once.
    asked: u64,
    is_readable: bool,
    /// The receiver's buffer is full; an event reports when it has space.
    is_blocked: bool,
    /// Arrival time of the end of the stream, if the sender has ended its side.
    ended: Option<u64>,
    /// The end has been passed on to the receiver.
    is_shut: bool,
}

/// A connection through the link.
#[derive(Debug)]
pub(super) struct Connection {
    /// Client and server.
    ends: [TcpStream; 2],
    /// Up and down.
    halves: [Half; 2],
}

impl Connection {
    pub(super) fn open(client: TcpStream, target: SocketAddr, now: u64, lines: &Lines) -> io::Result<Self> {
        let server = TcpStream::connect_timeout(&target, CONNECT)?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
            end.set_nonblocking(true)?;
        }
        // The handshake takes a round trip, which neither side has noticed.
        let shaken = now.saturating_add(u64::try_from(lines.round_trip.as_nanos()).unwrap_or(0));
        let halves = array::from_fn(|_| Half { last_ready: shaken, is_readable: true, ..Half::default() });
        Ok(Self { ends: [client, server], halves })
    }

    pub(super) fn ends(&self) -> [&TcpStream; 2] {
        self.ends.each_ref()
    }

    /// Called when one of the ends has an event.
    pub(super) fn woken(&mut self) {
        self.halves.iter_mut().for_each(|half| half.is_readable = true);
    }

    /// Moves the data that can be moved now, and requests another call through `again`. Returns whether the connection
    /// has ended.
    pub(super) fn turn(&mut self, lines: &mut Lines, mut again: impl FnMut(u64)) -> bool {
        let [client, server] = &mut self.ends;
        let [up, down] = &mut self.halves;
        let mut broken = false;
        broken |= up.take(Way::Up, client, lines) | up.give(server);
        broken |= down.take(Way::Down, server, lines) | down.give(client);
        up.ask(Way::Up, lines, &mut again);
        down.ask(Way::Down, lines, &mut again);
        broken || (up.is_shut && down.is_shut)
    }
}

impl Half {
    /// Reads as much as the link accepts. Returns whether the connection broke.
    fn take(&mut self, way: Way, from: &mut TcpStream, lines: &mut Lines) -> bool {
        while self.is_readable && self.ended.is_none() && self.in_flight < WINDOW {
            let now = clock::monotonic();
            let segment = lines.segment;
            let round_trip = lines.round_trip;
            let line = lines.way(way);
            if line.room_at(now) > now {
                return false;
            }
            let mut bytes = vec![0; segment];
            match from.read(&mut bytes) {
                Ok(0) => self.ended = Some(self.last_ready.max(now)),
                Ok(count) => {
                    bytes.truncate(count);
                    let ready = match line.send(now, count + HEADERS) {
                        Fate::Arrives(at) => at,
                        Fate::Lost | Fate::Dropped => now.saturating_add(line.retransmission(round_trip)),
                    };
                    self.last_ready = self.last_ready.max(ready);
                    self.in_flight += count;
                    self.flying.push_back(Segment { ready: self.last_ready, bytes });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Writes the data that has arrived. Returns whether the connection broke.
    fn give(&mut self, to: &mut TcpStream) -> bool {
        let now = clock::monotonic();
        self.is_blocked = false;
        while let Some(first) = self.flying.front().filter(|segment| segment.ready <= now) {
            let left = first.bytes.get(self.written..).unwrap_or_default();
            match to.write(left) {
                Ok(count) if count == left.len() => {
                    self.in_flight -= first.bytes.len();
                    self.written = 0;
                    self.flying.pop_front();
                }
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        if self.flying.is_empty() && !self.is_shut && self.ended.is_some_and(|at| at <= now) {
            self.is_shut = true;
            let _ = to.shutdown(Shutdown::Write);
        }
        false
    }

    fn ask(&mut self, way: Way, lines: &mut Lines, again: &mut impl FnMut(u64)) {
        let now = clock::monotonic();
        let arrives = match self.flying.front() {
            Some(segment) => Some(segment.ready),
            None => self.ended.filter(|_| !self.is_shut),
        };
        let has_more = self.is_readable && self.ended.is_none();
        let room = has_more.then(|| lines.way(way).room_at(now)).filter(|_| self.in_flight < WINDOW);
        // Data that became due or writable since the last check is processed at once, because no event reports it.
        let arrives = arrives.filter(|_| !self.is_blocked);
        let next = [arrives, room].into_iter().flatten().map(|at| at.max(now + 1)).min();
        if let Some(next) = next.filter(|next| *next != self.asked) {
            self.asked = next;
            again(next);
        }
    }
}
