//! UADP in Ethernet frames (Part 14 §7.3.3): no IP, no UDP, the EtherType 0xB62C, and a priority in the VLAN tag.
//!
//! Needs the capability CAP_NET_RAW. The interface must be named. A network card only passes on multicast groups it is
//! configured for: to receive groups from other machines, run `ip maddress add 01:00:5e:00:00:01 dev eth0`, or set
//! promiscuous mode.

use super::PubSubError;
use super::address::VlanTag;
use super::interface::Interface;
use super::link::{Link, count_failed};
use super::udp::Sent;
use nix::sys::socket::LinkAddr;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;
use taktwerk_pubsub::Transmit;

/// The EtherType of UADP.
pub const ETHER_TYPE: u16 = 0xB62C;
/// The EtherType of a VLAN tag.
const VLAN_TYPE: u16 = 0x8100;
/// Maximum payload of a frame, in bytes.
pub const PAYLOAD_MAX: usize = 1500;
/// Minimum payload of a frame, in bytes; shorter ones are padded with zeros.
const PAYLOAD_MIN: usize = 46;

/// Sends frames.
#[derive(Debug)]
pub struct EthernetSender {
    fd: OwnedFd,
    frame: Vec<u8>,
    header_len: usize,
}

fn open(interface: &Interface, doing: &str) -> Result<(OwnedFd, LinkAddr), PubSubError> {
    let Some(link) = interface.link else {
        let reason = "opc.eth:// needs the name of an Ethernet interface".to_owned();
        return Err(PubSubError::Interface { name: interface.name.clone(), reason });
    };
    let number = core::num::NonZeroU32::new(u32::from(ETHER_TYPE.to_be()));
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, number.map(Protocol::from_raw))
        .map_err(|error| PubSubError::socket(doing, error))?;
    // The address has no protocol of its own, so the socket's protocol stays.
    nix::sys::socket::bind(fd.as_raw_fd(), &link).map_err(|error| PubSubError::socket(doing, error))?;
    Ok((fd, link))
}

impl EthernetSender {
    /// A socket that sends to a station or group on an interface.
    ///
    /// # Errors
    /// Raw sockets are not permitted, or there is no such interface.
    pub fn new(to: [u8; 6], vlan: Option<VlanTag>, interface: &Interface) -> Result<Self, PubSubError> {
        let (fd, link) = open(interface, &format!("send Ethernet frames on {}", interface.name))?;
        let own = link.addr().unwrap_or_default();
        let mut frame = Vec::with_capacity(18 + PAYLOAD_MAX);
        frame.extend_from_slice(&to);
        frame.extend_from_slice(&own);
        if let Some(tag) = vlan {
            frame.extend_from_slice(&VLAN_TYPE.to_be_bytes());
            frame.extend_from_slice(&(u16::from(tag.priority) << 13 | tag.id).to_be_bytes());
        }
        frame.extend_from_slice(&ETHER_TYPE.to_be_bytes());
        let header_len = frame.len();
        Ok(Self { fd, frame, header_len })
    }

    /// Sends a message in a frame.
    ///
    /// # Errors
    /// The kernel refuses the frame.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.frame.truncate(self.header_len);
        self.frame.extend_from_slice(message);
        self.frame.resize(self.frame.len().max(self.header_len + PAYLOAD_MIN), 0);
        loop {
            match send(&self.fd, &self.frame, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A connection over Ethernet.
#[derive(Debug)]
pub(crate) struct EthernetLink {
    sender: EthernetSender,
    failures: Vec<(usize, u64)>,
}

impl EthernetLink {
    pub(crate) fn new(sender: EthernetSender) -> Self {
        Self { sender, failures: Vec::new() }
    }
}

impl Link for EthernetLink {
    fn may_announce(&self) -> bool {
        false
    }

    fn send(&mut self, connection: usize, out: &Transmit, _at: Option<u64>) -> Sent {
        let mut sent = Sent::default();
        self.failures.clear();
        for datagram in out.iter().filter(|datagram| datagram.connection == connection) {
            match self.sender.send(datagram.bytes) {
                Ok(()) => {
                    sent.datagrams += 1;
                    sent.bytes += datagram.bytes.len();
                }
                Err(error) => {
                    sent.failed += 1;
                    sent.error = error.raw_os_error();
                    count_failed(&mut self.failures, datagram.writer_group, 1);
                }
            }
        }
        sent
    }

    fn failures(&self) -> &[(usize, u64)] {
        &self.failures
    }
}

/// Receives frames sent to one station or group.
#[derive(Debug)]
pub struct EthernetReceiver {
    fd: OwnedFd,
    to: [u8; 6],
    buffer: Vec<u8>,
}

impl EthernetReceiver {
    /// A socket that receives the frames sent to `to` on an interface.
    ///
    /// # Errors
    /// Raw sockets are not permitted, or there is no such interface.
    pub fn new(to: [u8; 6], interface: &Interface) -> Result<Self, PubSubError> {
        let (fd, _) = open(interface, &format!("receive Ethernet frames on {}", interface.name))?;
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&fd, 4 << 20);
        Ok(Self { fd, to, buffer: vec![0; 65_535] })
    }

    /// Receives one frame, if one is waiting. True if a frame was received or skipped.
    ///
    /// # Errors
    /// The socket failed.
    pub fn receive(&mut self, mut take: impl FnMut(&mut [u8])) -> io::Result<bool> {
        let length = match recv(&self.fd, &mut *self.buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let Some(frame) = self.buffer.get_mut(..length) else { return Ok(true) };
        let type_at = |frame: &[u8], at: usize| {
            frame.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes)
        };
        // The kernel usually removes VLAN tags; remaining ones are skipped here.
        let payload = match type_at(frame, 12) {
            Some(ETHER_TYPE) => 14,
            Some(VLAN_TYPE) if type_at(frame, 16) == Some(ETHER_TYPE) => 18,
            _ => return Ok(true),
        };
        if frame.get(..6) == Some(&self.to[..]) {
            if let Some(message) = frame.get_mut(payload..) {
                take(message);
            }
        }
        Ok(true)
    }
}

impl AsFd for EthernetReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
