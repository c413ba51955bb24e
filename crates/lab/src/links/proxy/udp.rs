//! Relayed datagrams, with loss, reordering and duplication as on a real link.

use super::{Lines, Task, Way};
use crate::clock;
use crate::links::driver::{Deadlines, enlarge};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use taktwerk_netem::emulator::Fate;

/// Bytes of the IP and UDP headers.
const HEADERS: usize = 28;
/// The largest datagram.
const DATAGRAM: usize = 65_535;
/// Socket buffer in bytes: 100 Mbit/s for 100 ms, by the kernel's accounting.
const ROOM: usize = 4 << 20;
/// Maximum number of clients per route; datagrams of further clients are dropped.
const FLOWS_MAX: usize = 1_024;

/// The flow of one client to the server.
#[derive(Debug)]
struct Flow {
    client: SocketAddr,
    upstream: UdpSocket,
}

/// All clients of one route.
#[derive(Debug)]
pub(super) struct Flows {
    route: usize,
    socket: UdpSocket,
    target: SocketAddr,
    flows: Vec<Flow>,
    buffer: Vec<u8>,
}

impl Flows {
    pub(super) fn new(route: usize, socket: UdpSocket, target: SocketAddr) -> Self {
        enlarge(&socket, ROOM);
        Self { route, socket, target, flows: Vec::new(), buffer: vec![0; DATAGRAM] }
    }

    /// Receives datagrams from clients, or from the server for one of them.
    pub(super) fn receive(
        &mut self,
        flow: Option<usize>,
        lines: &mut Lines,
        deadlines: &mut Deadlines<Task>,
        watch: impl Fn(&UdpSocket, usize) -> io::Result<()>,
    ) {
        loop {
            let received = match flow {
                None => self.socket.recv_from(&mut self.buffer),
                Some(index) => match self.flows.get(index) {
                    Some(flow) => flow.upstream.recv(&mut self.buffer).map(|count| (count, flow.client)),
                    None => return,
                },
            };
            let (count, client) = match received {
                Ok(received) => received,
                // The next call reports a refused datagram; datagrams behind it are not affected.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => return,
            };
            let way = if flow.is_none() { Way::Up } else { Way::Down };
            if flow.is_none() && self.find(client).is_none() && self.open(client, &watch).is_err() {
                continue;
            }
            let line = lines.way(way);
            let fate = line.send(clock::monotonic(), count + HEADERS);
            if let Fate::Arrives(at) = fate {
                let copies = if line.twice() { 2 } else { 1 };
                for _ in 0..copies {
                    let bytes = self.buffer.get(..count).unwrap_or_default().to_vec();
                    deadlines.insert(at, Task::Datagram { route: self.route, flow: client, way, bytes });
                }
            }
        }
    }

    fn find(&self, client: SocketAddr) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.client == client)
    }

    fn open(
        &mut self,
        client: SocketAddr,
        watch: &impl Fn(&UdpSocket, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.flows.len() >= FLOWS_MAX {
            return Err(io::Error::other("too many clients"));
        }
        let any: SocketAddr = match self.target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let upstream = UdpSocket::bind(any)?;
        upstream.connect(self.target)?;
        enlarge(&upstream, ROOM);
        upstream.set_nonblocking(true)?;
        watch(&upstream, self.flows.len())?;
        self.flows.push(Flow { client, upstream });
        Ok(())
    }

    /// Forwards a datagram that has arrived. If the receiver is gone or full, the datagram is lost.
    pub(super) fn deliver(&self, client: SocketAddr, way: Way, bytes: &[u8]) {
        match way {
            Way::Up => {
                if let Some(flow) = self.find(client) {
                    let _ = flow.upstream.send(bytes);
                }
            }
            Way::Down => {
                let _ = self.socket.send_to(bytes, client);
            }
        }
    }
}
