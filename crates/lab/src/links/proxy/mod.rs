//! A relay in user space as an emulated link, for programs that cannot run in a namespace and users who may not create
//! one.
//!
//! It relays TCP connections and UDP datagrams, which all share the line. It differs from a real network:
//!
//! - TCP never loses data here. A lost segment is delayed instead by the time of a retransmission, and blocks the
//!   following data on the same connection ([`Line::retransmission`]);
//! - acknowledgements and window updates use no rate; each segment counts with 40 bytes of headers;
//! - connecting takes a round trip, which is added before the first bytes.

mod tcp;
mod udp;

use super::driver::{Deadlines, Waiting, Waker, precise_timers};
use crate::clock;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use taktwerk_netem::emulator::{Counters, Line};
use taktwerk_netem::profile::Profile;
use tcp::Connection;
use udp::Flows;

/// Direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

/// A due event.
#[derive(Debug)]
pub(super) enum Task {
    /// Process a connection again.
    Connection(usize),
    /// Deliver a datagram.
    Datagram { route: usize, flow: SocketAddr, way: Way, bytes: Vec<u8> },
}

enum Command {
    Tcp(TcpListener, SocketAddr),
    Udp(UdpSocket, SocketAddr),
    Stop,
}

/// The two directions of the link.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) up: Line,
    pub(super) down: Line,
    pub(super) round_trip: Duration,
    /// Payload of a TCP segment in bytes.
    pub(super) segment: usize,
}

impl Lines {
    pub(super) fn way(&mut self, way: Way) -> &mut Line {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
}

/// A running relay. It ends when dropped.
#[derive(Debug)]
pub struct Proxy {
    commands: Sender<Command>,
    waker: Waker,
    counters: Arc<Mutex<[Counters; 2]>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a relay without any routes.
    ///
    /// # Errors
    /// If the system has no free file descriptors or threads.
    pub fn start(profile: &Profile, seed: u64) -> io::Result<Self> {
        let (commands, receiver) = mpsc::channel();
        let waiting = Waiting::new()?;
        let waker = waiting.waker();
        let counters = Arc::new(Mutex::new([Counters::default(); 2]));
        let lines = Lines {
            up: Line::new(profile.up.clone(), seed),
            down: Line::new(profile.down.clone(), seed.wrapping_add(1)),
            round_trip: Duration::from_secs_f64(profile.round_trip(40)),
            segment: usize::from(profile.mtu).saturating_sub(40).max(1),
        };
        let shared = Arc::clone(&counters);
        let thread = thread::Builder::new().name(format!("{}proxy", super::THREADS)).spawn(move || {
            Relay::new(waiting, lines, shared).run(&receiver);
        })?;
        Ok(Self { commands, waker, counters, thread: Some(thread) })
    }

    /// Opens a TCP route to a server. Returns the address for clients to connect to.
    ///
    /// # Errors
    /// If no port is available.
    pub fn tcp(&self, listen: Option<SocketAddr>, target: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(listen.unwrap_or((Ipv4Addr::LOCALHOST, 0).into()))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        self.command(Command::Tcp(listener, target))?;
        Ok(address)
    }

    /// Opens a UDP route to a server. Returns the address for clients to send to.
    ///
    /// # Errors
    /// If no port is available.
    pub fn udp(&self, listen: Option<SocketAddr>, target: SocketAddr) -> io::Result<SocketAddr> {
        let socket = UdpSocket::bind(listen.unwrap_or((Ipv4Addr::LOCALHOST, 0).into()))?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        self.command(Command::Udp(socket, target))?;
        Ok(address)
    }

    /// Counters of both directions, client to server first.
    #[must_use]
    pub fn counters(&self) -> [Counters; 2] {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, command: Command) -> io::Result<()> {
        self.commands.send(command).map_err(|_| io::Error::other("the relay has ended"))?;
        self.waker.wake();
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.command(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Keys of epoll: kind of file and index.
const TCP_ROUTE: u64 = 1 << 60;
const UDP_ROUTE: u64 = 2 << 60;
const UDP_FLOW: u64 = 3 << 60;
const KIND: u64 = 15 << 60;

struct Relay {
    waiting: Waiting,
    lines: Lines,
    deadlines: Deadlines<Task>,
    routes: Vec<(TcpListener, SocketAddr)>,
    connections: Vec<Option<Connection>>,
    flows: Vec<Flows>,
    counters: Arc<Mutex<[Counters; 2]>>,
}

impl Relay {
    fn new(waiting: Waiting, lines: Lines, counters: Arc<Mutex<[Counters; 2]>>) -> Self {
        Self {
            waiting,
            lines,
            deadlines: Deadlines::new(),
            routes: Vec::new(),
            connections: Vec::new(),
            flows: Vec::new(),
            counters,
        }
    }

    fn run(mut self, commands: &Receiver<Command>) {
        precise_timers();
        let mut happened = Vec::new();
        loop {
            loop {
                match commands.try_recv() {
                    Ok(Command::Tcp(listener, target)) => {
                        let key = TCP_ROUTE | self.routes.len() as u64;
                        if self.waiting.add_readable(&listener, key).is_ok() {
                            self.routes.push((listener, target));
                        }
                    }
                    Ok(Command::Udp(socket, target)) => {
                        let route = self.flows.len();
                        if self.waiting.add_readable(&socket, UDP_ROUTE | route as u64).is_ok() {
                            self.flows.push(Flows::new(route, socket, target));
                        }
                    }
                    Ok(Command::Stop) | Err(mpsc::TryRecvError::Disconnected) => return,
                    Err(mpsc::TryRecvError::Empty) => break,
                }
            }
            while let Some(task) = self.deadlines.take(clock::monotonic()) {
                match task {
                    Task::Connection(index) => self.turn(index),
                    Task::Datagram { route, flow, way, bytes } => {
                        if let Some(flows) = self.flows.get(route) {
                            flows.deliver(flow, way, &bytes);
                        }
                    }
                }
            }
            *self.counters.lock().unwrap_or_else(PoisonError::into_inner) =
                [self.lines.up.counters(), self.lines.down.counters()];
            if self.waiting.wait(self.deadlines.next(), &mut happened).is_err() {
                return;
            }
            for key in &happened {
                let index = usize::try_from(key & !KIND).unwrap_or(usize::MAX);
                match key & KIND {
                    TCP_ROUTE => self.accept(index),
                    UDP_ROUTE => self.datagrams(index, None),
                    UDP_FLOW => self.datagrams(index >> 32, Some(index & 0xffff_ffff)),
                    _ => {
                        // The two ends of a connection have adjacent keys.
                        if let Some(connection) = self.connections.get_mut(index / 2).and_then(Option::as_mut)
                        {
                            connection.woken();
                        }
                        self.turn(index / 2);
                    }
                }
            }
        }
    }

    fn accept(&mut self, route: usize) {
        while let Some((Ok((client, _)), target)) =
            self.routes.get(route).map(|(listener, target)| (listener.accept(), *target))
        {
            let now = clock::monotonic();
            let Ok(connection) = Connection::open(client, target, now, &self.lines) else { continue };
            let index = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
            let [client, server] = connection.ends();
            let is_watched = self.waiting.add_edges(client, 2 * index as u64).is_ok()
                && self.waiting.add_edges(server, 2 * index as u64 + 1).is_ok();
            if !is_watched {
                continue;
            }
            if index == self.connections.len() {
                self.connections.push(None);
            }
            if let Some(place) = self.connections.get_mut(index) {
                *place = Some(connection);
            }
            self.turn(index);
        }
    }

    /// Moves available data on a connection; removes the connection when it has ended.
    fn turn(&mut self, index: usize) {
        let Some(place) = self.connections.get_mut(index) else { return };
        let Some(connection) = place else { return };
        let deadlines = &mut self.deadlines;
        let is_over = connection.turn(&mut self.lines, |at| deadlines.insert(at, Task::Connection(index)));
        if is_over {
            *place = None;
        }
    }

    /// Receives datagrams from clients of a route, or from the server for one of its clients.
    fn datagrams(&mut self, route: usize, flow: Option<usize>) {
        let Some(flows) = self.flows.get_mut(route) else { return };
        let waiting = &self.waiting;
        let watch = |socket: &UdpSocket, flow: usize| {
            waiting.add_readable(socket, UDP_FLOW | (route as u64) << 32 | flow as u64)
        };
        flows.receive(flow, &mut self.lines, &mut self.deadlines, watch);
    }
}

#[cfg(test)]
mod tests;
