//! Many MQTT clients on one thread.

use super::packet::{MqttError, Qos, Version};
use super::session::{Event, Session};
use crate::clock;
use crate::links::driver::Waiting;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Size of the receive buffer in bytes.
const BUFFER: usize = 256 << 10;
/// Timeout for connecting to a broker.
const CONNECT: Duration = Duration::from_secs(5);

/// An event of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened<'a> {
    /// An event of the session.
    Event(Event<'a>),
    /// The connection is lost.
    Lost,
    /// The broker violated the protocol or refused something.
    Failed(&'a MqttError),
}

#[derive(Debug)]
struct Member {
    stream: TcpStream,
    session: Session,
    is_lost: bool,
}

/// The clients. The calling thread drives all of them.
#[derive(Debug)]
pub struct Fleet {
    waiting: Waiting,
    members: Vec<Member>,
    happened: Vec<u64>,
    buffer: Vec<u8>,
    busy_poll: bool,
    in_vain: Duration,
}

impl Fleet {
    /// No clients. With `busy_poll`, the thread never sleeps.
    ///
    /// # Errors
    /// If the system has no free file descriptors.
    pub fn new(busy_poll: bool) -> io::Result<Self> {
        Ok(Self {
            waiting: Waiting::new()?,
            members: Vec::new(),
            happened: Vec::new(),
            buffer: vec![0; BUFFER],
            busy_poll,
            in_vain: Duration::ZERO,
        })
    }

    /// Connects another client and returns its number. The broker's answer arrives as an event.
    ///
    /// # Errors
    /// If connecting fails.
    pub fn add(&mut self, broker: SocketAddr, version: Version, name: &str) -> io::Result<usize> {
        let stream = TcpStream::connect_timeout(&broker, CONNECT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        self.waiting.add_edges(&stream, self.members.len() as u64)?;
        self.members.push(Member { stream, session: Session::new(version, name), is_lost: false });
        let number = self.members.len() - 1;
        self.flush(number);
        Ok(number)
    }

    /// Number of clients.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no clients.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Approximate time spent busy-polling without events.
    #[must_use]
    pub fn in_vain(&self) -> Duration {
        self.in_vain
    }

    /// Bytes of MQTT received and sent by all clients.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        self.members.iter().fold((0, 0), |(received, sent), member| {
            let (more_received, more_sent) = member.session.bytes();
            (received + more_received, sent + more_sent)
        })
    }

    /// Subscribes a client.
    pub fn subscribe(&mut self, member: usize, filter: &str, qos: Qos) {
        if let Some(it) = self.members.get_mut(member) {
            it.session.subscribe(filter, qos);
        }
        self.flush(member);
    }

    /// Publishes a message and sends it at once. Returns `false` if the client has the maximum number of messages in
    /// flight.
    pub fn publish(&mut self, member: usize, topic: &str, payload: &[u8], qos: Qos) -> bool {
        let Some(it) = self.members.get_mut(member) else { return false };
        let is_sent = it.session.publish(topic, payload, qos).is_some();
        self.flush(member);
        is_sent
    }

    /// Sends DISCONNECT for all clients.
    pub fn disconnect(&mut self) {
        for number in 0..self.members.len() {
            if let Some(member) = self.members.get_mut(number) {
                member.session.disconnect();
            }
            self.flush(number);
        }
    }

    /// Sends pending bytes.
    fn flush(&mut self, number: usize) {
        let Some(member) = self.members.get_mut(number) else { return };
        while !member.is_lost && !member.session.output().is_empty() {
            match member.stream.write(member.session.output()) {
                Ok(0) => return,
                Ok(count) => member.session.sent(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The rest is sent when the socket becomes writable. Errors are reported when reading.
                Err(_) => return,
            }
        }
    }

    /// Waits for an event, or until the monotonic clock reaches `deadline`, and reports events to `tell`.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn run_once(&mut self, deadline: u64, mut tell: impl FnMut(usize, Happened<'_>)) -> io::Result<()> {
        let mut happened = std::mem::take(&mut self.happened);
        if self.busy_poll {
            let mut before = clock::monotonic();
            loop {
                self.waiting.wait(Some(0), &mut happened)?;
                if !happened.is_empty() {
                    break;
                }
                let now = clock::monotonic();
                self.in_vain += Duration::from_nanos(now - before);
                before = now;
                if now >= deadline {
                    break;
                }
            }
        } else {
            self.waiting.wait(Some(deadline), &mut happened)?;
        }
        for key in &happened {
            let number = usize::try_from(*key).unwrap_or(usize::MAX);
            self.read(number, &mut tell);
            self.flush(number);
        }
        self.happened = happened;
        Ok(())
    }

    /// Reads until nothing is left, as edge-triggered events require.
    fn read(&mut self, number: usize, tell: &mut impl FnMut(usize, Happened<'_>)) {
        let Some(member) = self.members.get_mut(number) else { return };
        while !member.is_lost {
            match member.stream.read(&mut self.buffer) {
                Ok(0) => {
                    member.is_lost = true;
                    tell(number, Happened::Lost);
                }
                Ok(count) => {
                    let bytes = self.buffer.get(..count).unwrap_or_default();
                    let result = member.session.receive(bytes, |event| tell(number, Happened::Event(event)));
                    if let Err(error) = result {
                        member.is_lost = true;
                        tell(number, Happened::Failed(&error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    member.is_lost = true;
                    tell(number, Happened::Lost);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::packet;
    use std::net::TcpListener;
    use std::thread;

    /// Accepts one client, acknowledges all of its packets, and sends its messages back.
    fn mirror() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let mut answer = Vec::new();
                match buffer[0] >> 4 {
                    1 => answer.extend([0x20, 2, 0, 0]),
                    8 => answer.extend([0x90, 3, buffer[2], buffer[3], 0]),
                    3 => packet::publish(
                        &mut answer,
                        Version::V311,
                        "t",
                        &buffer[5..count],
                        Qos::AtMostOnce,
                        0,
                    ),
                    _ => return,
                }
                stream.write_all(&answer).unwrap();
            }
        });
        address
    }

    #[test]
    fn messages_return_to_their_sender() {
        let mut fleet = Fleet::new(false).unwrap();
        let client = fleet.add(mirror(), Version::V311, "x").unwrap();
        let mut heard = Vec::new();
        let mut step = |fleet: &mut Fleet, expected: usize| {
            let end = clock::monotonic() + 10_000_000_000;
            while heard.len() < expected && clock::monotonic() < end {
                fleet.run_once(end, |number, what| heard.push(format!("{number} {what:?}"))).unwrap();
            }
            heard.clone()
        };
        assert_eq!(step(&mut fleet, 1).last().unwrap(), "0 Event(Connected)");
        fleet.subscribe(client, "t", Qos::AtMostOnce);
        assert_eq!(step(&mut fleet, 2).last().unwrap(), "0 Event(Subscribed)");
        assert!(fleet.publish(client, "t", b"hi", Qos::AtMostOnce));
        let last = step(&mut fleet, 3).pop().unwrap();
        assert_eq!(last, "0 Event(Message { topic: \"t\", payload: [104, 105] })");
        assert_eq!(fleet.in_vain(), Duration::ZERO, "no polling when sleeping");
        fleet.disconnect();
        assert_eq!(step(&mut fleet, 4).last().unwrap(), "0 Lost");
        assert!(fleet.bytes().0 > 10 && fleet.bytes().1 > 20);
    }

    #[test]
    fn idle_polling_is_counted() {
        let mut fleet = Fleet::new(true).unwrap();
        let begin = clock::monotonic();
        fleet.run_once(begin + 1_000_000, |_, what| panic!("{what:?}")).unwrap();
        assert!(fleet.in_vain() > Duration::ZERO);
    }
}
