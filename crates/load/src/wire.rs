//! Bytes on the wire by layer, from the kernel's counters of each TCP connection (`sock_diag`, tcp(7) `TCP_INFO`).
//!
//! Works for any program and any protocol over TCP, without privileges and without capturing packets. The loopback
//! interface carries segments of up to 64 kB, which Ethernet cannot carry, so frames are computed for Ethernet. Each
//! figure says whether it is measured or computed.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// Payload of a full TCP segment on Ethernet with timestamps: 1 500 − 20 (IP) − 32 (TCP).
const SEGMENT: u64 = 1_448;
/// IPv4 header and TCP header with timestamps.
const TCP_IP: u64 = 52;
/// Ethernet header and frame check sequence.
const ETHERNET: u64 = 18;

/// Counters of the connections to a port so far, both directions, from the clients' end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// Connections.
    pub connections: u64,
    /// Payload bytes from client to server, retransmissions included.
    pub bytes_out: u64,
    /// Payload bytes from server to client.
    pub bytes_in: u64,
    /// Segments from client to server that carried data.
    pub data_segments_out: u64,
    /// Segments from server to client that carried data.
    pub data_segments_in: u64,
    /// All segments, both directions, pure acknowledgements included.
    pub segments: u64,
    /// Retransmitted segments: by clients, and by the server if its end is visible.
    pub retransmitted: u64,
}

/// Bytes between two readings of [`carried`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// Connections at the end.
    pub connections: u64,
    /// OPC UA (or MQTT) bytes from client to server, measured.
    pub payload_out_bytes: u64,
    /// The same from server to client.
    pub payload_in_bytes: u64,
    /// Segments without data, measured.
    pub acknowledgements: u64,
    /// Retransmitted segments, measured.
    pub retransmitted: u64,
    /// Ethernet frames needed for this, computed: data in segments of at most 1 448 bytes.
    pub frames: u64,
    /// Bytes of TCP and IP headers in these frames, computed: 52 each.
    pub tcp_ip_bytes: u64,
    /// Bytes of Ethernet headers and check sequences in these frames, computed: 18 each.
    pub ethernet_bytes: u64,
    /// Sum of all bytes.
    pub total_bytes: u64,
}

impl Wire {
    /// Difference between two readings.
    #[must_use]
    pub fn between(from: &Carried, to: &Carried) -> Self {
        let payload_out_bytes = to.bytes_out.saturating_sub(from.bytes_out);
        let payload_in_bytes = to.bytes_in.saturating_sub(from.bytes_in);
        let data_out = to.data_segments_out.saturating_sub(from.data_segments_out);
        let data_in = to.data_segments_in.saturating_sub(from.data_segments_in);
        let segments = to.segments.saturating_sub(from.segments);
        let acknowledgements = segments.saturating_sub(data_out + data_in);
        let frames = acknowledgements
            + data_out.max(payload_out_bytes.div_ceil(SEGMENT))
            + data_in.max(payload_in_bytes.div_ceil(SEGMENT));
        let (tcp_ip_bytes, ethernet_bytes) = (frames * TCP_IP, frames * ETHERNET);
        Self {
            connections: to.connections,
            payload_out_bytes,
            payload_in_bytes,
            acknowledgements,
            retransmitted: to.retransmitted.saturating_sub(from.retransmitted),
            frames,
            tcp_ip_bytes,
            ethernet_bytes,
            total_bytes: payload_out_bytes + payload_in_bytes + tcp_ip_bytes + ethernet_bytes,
        }
    }
}

/// Counters of all connections of this network namespace to a server's port. The server's retransmissions are known in
/// two cases: its end is in this namespace; or its process is given and has a separate namespace, whose total is then
/// used.
///
/// # Errors
/// If the kernel has no `sock_diag` for TCP.
pub fn carried(port: u16, server: Option<u32>) -> io::Result<Carried> {
    let mut carried =
        Carried { retransmitted: server.and_then(elsewhere).unwrap_or(0), ..Carried::default() };
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    for family in [AF_INET, AF_INET6] {
        dump(&socket, family, port, &mut carried)?;
    }
    Ok(carried)
}

/// TCP retransmissions in the network namespace of a process; `None` if it is this namespace or unknown.
fn elsewhere(pid: u32) -> Option<u64> {
    let theirs = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    if theirs == fs::read_link("/proc/thread-self/ns/net").ok()? {
        return None;
    }
    retransmitted(&fs::read_to_string(format!("/proc/{pid}/net/snmp")).ok()?)
}

/// The counter `RetransSegs` of `/proc/net/snmp`: a line of names, followed by a line of figures.
fn retransmitted(snmp: &str) -> Option<u64> {
    let mut tcp = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let at = tcp.next()?.split(' ').position(|name| name == "RetransSegs")?;
    tcp.next()?.split(' ').nth(at)?.parse().ok()
}

fn dump(socket: &Socket, family: u8, port: u16, carried: &mut Carried) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let socket_id = if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() };
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::ESTABLISHED,
        socket_id,
    };
    let mut packet = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let length = socket.recv(&mut &mut buffer[..], 0)?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let Ok(message) = NetlinkMessage::<SockDiagMessage>::deserialize(rest) else {
                return Err(io::Error::other("cannot parse the kernel's list of sockets"));
            };
            match &message.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    let ends = &response.header.socket_id;
                    for nla in response.nlas.iter() {
                        match nla {
                            Nla::TcpInfo(info) if ends.destination_port == port => carried.add(info),
                            // The server's end of the same connections.
                            Nla::TcpInfo(info) if ends.source_port == port => {
                                carried.retransmitted += u64::from(info.total_retrans);
                            }
                            _ => {}
                        }
                    }
                }
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
            // Messages are aligned to four bytes.
            let step = (message.header.length as usize).next_multiple_of(4).max(4);
            rest = rest.get(step..).unwrap_or_default();
        }
    }
}

impl Carried {
    fn add(&mut self, info: &TcpInfo) {
        self.connections += 1;
        self.bytes_out += info.bytes_sent;
        self.bytes_in += info.bytes_received;
        self.data_segments_out += u64::from(info.data_segs_out);
        self.data_segments_in += u64::from(info.data_segs_in);
        self.segments += u64::from(info.segs_out) + u64::from(info.segs_in);
        self.retransmitted += u64::from(info.total_retrans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn counts_the_bytes_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = carried(port, None).unwrap();
        assert_eq!(before.connections, 1);
        client.write_all(&[7; 5_000]).unwrap();
        let mut buffer = [0; 5_000];
        server.read_exact(&mut buffer).unwrap();
        server.write_all(&[8; 100]).unwrap();
        client.read_exact(&mut buffer[..100]).unwrap();
        let wire = Wire::between(&before, &carried(port, None).unwrap());
        assert_eq!((wire.payload_out_bytes, wire.payload_in_bytes), (5_000, 100));
        // Four data frames from the client, one from the server, and pure acknowledgements.
        assert_eq!(wire.frames, 5 + wire.acknowledgements);
        assert_eq!(wire.total_bytes, 5_100 + wire.frames * 70);
    }

    #[test]
    fn retransmissions_of_other_namespaces_are_read_there() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm OutSegs RetransSegs InErrs\nTcp: 1 51736076 26865 0\nUdp: x\n";
        assert_eq!(retransmitted(text), Some(26_865));
        assert_eq!((retransmitted("Tcp: RetransSegs\n"), retransmitted("")), (None, None));
        // In the same namespace, the counters of the connections include them.
        assert_eq!(elsewhere(std::process::id()), None);
        let own = fs::read_to_string("/proc/self/net/snmp").unwrap();
        assert!(retransmitted(&own).is_some(), "{own}");
    }

    #[test]
    fn a_port_without_connections_carries_nothing() {
        assert_eq!(carried(1, None).unwrap(), Carried::default());
    }
}
