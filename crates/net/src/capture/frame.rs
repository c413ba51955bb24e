//! Ethernet, IP and TCP headers around captured bytes: only what a dissector needs to reassemble the stream.

use core::net::{IpAddr, SocketAddr};

/// Maximum payload of one packet, in bytes; it fits into an IP packet.
const SEGMENT_LEN: usize = 32_000;

const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// A captured TCP connection.
#[derive(Debug)]
pub(super) struct Flow {
    client: SocketAddr,
    server: SocketAddr,
    /// The next sequence numbers.
    client_next: u32,
    server_next: u32,
}

impl Flow {
    pub(super) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Self { client: plain(client), server: plain(server), client_next: 1000, server_next: 5000 }
    }

    pub(super) fn opened(&mut self, out: &mut Vec<Vec<u8>>) {
        out.push(self.packet(true, SYN, &[]));
        self.client_next = self.client_next.wrapping_add(1);
        out.push(self.packet(false, SYN | ACK, &[]));
        self.server_next = self.server_next.wrapping_add(1);
        out.push(self.packet(true, ACK, &[]));
    }

    pub(super) fn client_says(&mut self, bytes: &[u8], out: &mut Vec<Vec<u8>>) {
        for part in bytes.chunks(SEGMENT_LEN) {
            out.push(self.packet(true, PUSH | ACK, part));
            self.client_next = self.client_next.wrapping_add(part.len() as u32);
        }
    }

    pub(super) fn server_says(&mut self, bytes: &[u8], out: &mut Vec<Vec<u8>>) {
        for part in bytes.chunks(SEGMENT_LEN) {
            out.push(self.packet(false, PUSH | ACK, part));
            self.server_next = self.server_next.wrapping_add(part.len() as u32);
        }
    }

    pub(super) fn closed(&mut self, out: &mut Vec<Vec<u8>>) {
        out.push(self.packet(true, FIN | ACK, &[]));
        self.client_next = self.client_next.wrapping_add(1);
        out.push(self.packet(false, FIN | ACK, &[]));
        self.server_next = self.server_next.wrapping_add(1);
        out.push(self.packet(true, ACK, &[]));
    }

    fn packet(&self, is_to_server: bool, flags: u8, payload: &[u8]) -> Vec<u8> {
        let (from, to, sequence, acknowledged) = if is_to_server {
            (self.client, self.server, self.client_next, self.server_next)
        } else {
            (self.server, self.client, self.server_next, self.client_next)
        };
        let tcp_len = 20 + payload.len();
        let mut packet = Vec::with_capacity(54 + 20 + payload.len());
        // Made-up MAC addresses, one for each side.
        packet.extend_from_slice(&[2, 0, 0, 0, 0, 1 + u8::from(is_to_server)]);
        packet.extend_from_slice(&[2, 0, 0, 0, 0, 2 - u8::from(is_to_server)]);
        let mut pseudo: Vec<u8> = Vec::with_capacity(40);
        match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                packet.extend_from_slice(&[0x08, 0x00]);
                let mut header = vec![0x45, 0];
                header.extend_from_slice(&((20 + tcp_len) as u16).to_be_bytes());
                // No identification, "don't fragment", 64 hops, TCP, and an empty checksum.
                header.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
                header.extend_from_slice(&from.octets());
                header.extend_from_slice(&to.octets());
                let sum = checksum(&[&header]);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                packet.extend_from_slice(&header);
                pseudo.extend_from_slice(&from.octets());
                pseudo.extend_from_slice(&to.octets());
                pseudo.extend_from_slice(&[0, 6]);
                pseudo.extend_from_slice(&(tcp_len as u16).to_be_bytes());
            }
            (from, to) => {
                let six = |address: IpAddr| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                packet.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
                packet.extend_from_slice(&(tcp_len as u16).to_be_bytes());
                packet.extend_from_slice(&[6, 64]);
                packet.extend_from_slice(&six(from));
                packet.extend_from_slice(&six(to));
                pseudo.extend_from_slice(&six(from));
                pseudo.extend_from_slice(&six(to));
                pseudo.extend_from_slice(&(tcp_len as u32).to_be_bytes());
                pseudo.extend_from_slice(&[0, 0, 0, 6]);
            }
        }
        let mut header = Vec::with_capacity(20);
        header.extend_from_slice(&from.port().to_be_bytes());
        header.extend_from_slice(&to.port().to_be_bytes());
        header.extend_from_slice(&sequence.to_be_bytes());
        let acknowledged = if flags & ACK == 0 { 0 } else { acknowledged };
        header.extend_from_slice(&acknowledged.to_be_bytes());
        // Five words of header, the flags, the window, and zeros for checksum and urgent pointer.
        header.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        let sum = checksum(&[&pseudo, &header, payload]);
        header[16..18].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(&header);
        packet.extend_from_slice(payload);
        packet
    }
}

/// The Internet checksum (RFC 1071) over several parts. All but the last must have even lengths.
pub(super) fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
