//! UADP over UDP (Part 14 §7.3.2): multicast, broadcast and unicast, IPv4 and IPv6.
//!
//! The messages of a cycle are sent with one `sendmmsg`, and waiting datagrams are received with one `recvmmsg`.
//! Datagrams are not fragmented unless the configuration asks for messages larger than a frame.

use super::PubSubError;
use super::interface::Interface;
use core::mem::MaybeUninit;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    AddressFamily, MMsgHdr, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrAny,
    SocketFlags, SocketType, TxTimeFlags, bind, ipproto, sendmmsg, socket_with, sockopt,
};
use rustix::time::{ClockId, Timespec};
use smallvec::SmallVec;
use std::io::{self, IoSlice, IoSliceMut};

/// Maximum datagrams of one `sendmmsg` or `recvmmsg`.
const BATCH: usize = 32;
/// The largest UDP payload.
const DATAGRAM_MAX: usize = 65_535;
/// Requested size of the kernel's buffers: the burst of a cycle must fit.
const SOCKET_BUFFER: usize = 8 << 20;
/// Every host accepts datagrams of this size (576 bytes with the largest headers), whatever an interface reports.
const PAYLOAD_LEAST: usize = 508;
/// How long a full send buffer may delay a cycle.
const SEND_PATIENCE: Duration = Duration::from_millis(1);

/// UDP options.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpOptions {
    /// Time to live of multicast datagrams; 1: they stay in the local network.
    pub time_to_live: u8,
    /// Whether other programs on this machine receive the multicast datagrams, too.
    pub loopback: bool,
    /// Differentiated services field (the IPv4 TOS byte).
    pub type_of_service: u8,
    /// Let IP fragment datagrams that are larger than a frame; otherwise they are refused.
    pub fragment: bool,
    /// The kernel sends each datagram at a given time (SO_TXTIME). Needs an `fq` or `etf` queueing discipline.
    pub send_time: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self { time_to_live: 1, loopback: true, type_of_service: 0, fragment: false, send_time: false }
    }
}

/// Result of sending a batch of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Datagrams that the kernel accepted.
    pub datagrams: usize,
    /// Bytes of these datagrams.
    pub bytes: usize,
    /// Datagrams that the kernel refused.
    pub failed: usize,
    /// Error number of the last refused datagram.
    pub error: Option<i32>,
}

impl Sent {
    pub(crate) fn add(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.error = other.error.or(self.error);
    }
}

/// Sends datagrams.
#[derive(Debug)]
pub struct UdpSender {
    fd: OwnedFd,
    to: SocketAddr,
    any: SocketAddrAny,
    send_time: bool,
}

fn new_socket(address: &SocketAddr, doing: &str) -> Result<OwnedFd, PubSubError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))
        .map_err(|error| PubSubError::socket(doing, error))
}

impl UdpSender {
    /// A socket that sends to an address. Without an interface, the kernel's routes choose one; if there is no route
    /// for multicast, the loopback is used.
    ///
    /// # Errors
    /// The socket cannot be opened or set up.
    pub fn new(to: SocketAddr, interface: &Interface, options: &UdpOptions) -> Result<Self, PubSubError> {
        let to = scoped(to, interface)?;
        let doing = format!("send to {to}");
        let fd = new_socket(&to, &doing)?;
        let fail = |error: Errno| PubSubError::socket(doing.clone(), error);
        // Only privileged processes may exceed the limit; others get the maximum allowed.
        if sockopt::set_socket_send_buffer_size_force(&fd, SOCKET_BUFFER).is_err() {
            let _ = sockopt::set_socket_send_buffer_size(&fd, SOCKET_BUFFER);
        }
        match to.ip() {
            IpAddr::V4(ip) if ip.is_multicast() => {
                sockopt::set_ip_multicast_ttl(&fd, options.time_to_live.into()).map_err(fail)?;
                sockopt::set_ip_multicast_loop(&fd, options.loopback).map_err(fail)?;
                if interface.index != 0 {
                    multicast_if_v4(&fd, interface).map_err(fail)?;
                } else if no_route(&to) {
                    multicast_if_v4(&fd, &Interface::loopback()?).map_err(fail)?;
                }
            }
            IpAddr::V4(ip) => {
                if ip.is_broadcast() || ip.octets().last() == Some(&255) {
                    sockopt::set_socket_broadcast(&fd, true).map_err(fail)?;
                }
                if options.time_to_live > 1 {
                    sockopt::set_ip_ttl(&fd, options.time_to_live.into()).map_err(fail)?;
                }
            }
            IpAddr::V6(ip) if ip.is_multicast() => {
                sockopt::set_ipv6_multicast_hops(&fd, options.time_to_live.into()).map_err(fail)?;
                sockopt::set_ipv6_multicast_loop(&fd, options.loopback).map_err(fail)?;
                let index = match interface.index {
                    0 if no_route(&to) => Interface::loopback()?.index,
                    index => index,
                };
                if index != 0 {
                    sockopt::set_ipv6_multicast_if(&fd, index).map_err(fail)?;
                }
            }
            IpAddr::V6(_) => {}
        }
        if options.type_of_service != 0 && to.is_ipv4() {
            sockopt::set_ip_tos(&fd, options.type_of_service).map_err(fail)?;
        }
        if !options.fragment {
            if to.is_ipv4() {
                sockopt::set_ip_mtu_discover(&fd, sockopt::Ipv4PathMtuDiscovery::DO).map_err(fail)?;
            } else {
                sockopt::set_ipv6_mtu_discover(&fd, sockopt::Ipv6PathMtuDiscovery::DO).map_err(fail)?;
            }
        }
        if options.send_time {
            sockopt::set_txtime(&fd, ClockId::Monotonic, TxTimeFlags::empty()).map_err(fail)?;
        }
        Ok(Self { fd, to, any: to.as_any(), send_time: options.send_time })
    }

    /// The address it sends to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.to
    }

    /// Sends datagrams in order. If [`UdpOptions::send_time`] is set, the kernel sends them at `at`, on the monotonic
    /// clock in nanoseconds.
    pub fn send(&self, datagrams: &[&[u8]], at: Option<u64>) -> Sent {
        let at = at.filter(|_| self.send_time);
        if let ([datagram], None) = (datagrams, at) {
            return self.send_one(datagram);
        }
        let mut sent = Sent::default();
        for batch in datagrams.chunks(BATCH) {
            sent.add(self.send_batch(batch, at));
        }
        sent
    }

    /// Sends a single datagram without the setup of a batch. Most publishers send one per cycle, and code that is cold
    /// after a sleep costs time.
    fn send_one(&self, datagram: &[u8]) -> Sent {
        let mut waited = false;
        loop {
            match rustix::net::sendto(&self.fd, datagram, SendFlags::NOSIGNAL, &self.any) {
                Ok(bytes) => return Sent { datagrams: 1, bytes, ..Sent::default() },
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) if !waited => {
                    waited = true;
                    self.wait_writable();
                }
                Err(error) => {
                    return Sent { failed: 1, error: Some(error.raw_os_error()), ..Sent::default() };
                }
            }
        }
    }

    fn send_batch(&self, datagrams: &[&[u8]], at: Option<u64>) -> Sent {
        let slices: SmallVec<[[IoSlice<'_>; 1]; BATCH]> =
            datagrams.iter().map(|datagram| [IoSlice::new(datagram)]).collect();
        let mut spaces = [[MaybeUninit::uninit(); rustix::cmsg_space!(TxTime(1))]; BATCH];
        let mut controls: SmallVec<[SendAncillaryBuffer<'_, '_, '_>; BATCH]> = spaces
            .iter_mut()
            .take(if at.is_some() { BATCH } else { 0 })
            .map(|space| {
                let mut control = SendAncillaryBuffer::new(space);
                if let Some(at) = at {
                    control.push(SendAncillaryMessage::TxTime(at));
                }
                control
            })
            .collect();
        // Without a time, no control message is attached.
        if at.is_none() {
            controls.extend((0..slices.len()).map(|_| SendAncillaryBuffer::default()));
        }
        let mut headers: SmallVec<[MMsgHdr<'_>; BATCH]> = slices
            .iter()
            .zip(controls.iter_mut())
            .map(|(slice, control)| MMsgHdr::new_with_addr(&self.any, slice, control))
            .collect();
        let mut sent = Sent::default();
        let mut rest = headers.as_mut_slice();
        let mut waited = false;
        while !rest.is_empty() {
            match sendmmsg(&self.fd, rest, SendFlags::NOSIGNAL) {
                Ok(count) if count > 0 => {
                    let (done, left) = rest.split_at_mut(count.min(rest.len()));
                    sent.datagrams += done.len();
                    sent.bytes += done.iter().map(|header| header.bytes_sent()).sum::<usize>();
                    rest = left;
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) if !waited => {
                    waited = true;
                    self.wait_writable();
                }
                Err(error) => {
                    // The first datagram cannot be sent, but the others may.
                    sent.failed += 1;
                    sent.error = Some(error.raw_os_error());
                    rest = rest.get_mut(1..).unwrap_or_default();
                }
            }
        }
        sent
    }

    fn wait_writable(&self) {
        let patience = Timespec { tv_sec: 0, tv_nsec: SEND_PATIENCE.subsec_nanos().into() };
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::OUT)], Some(&patience));
    }
}

/// Maximum payload of a datagram that fits a frame to an address: the limit of Ethernet, or less if the interface's
/// limit is lower (tunnels, virtual machines).
pub(crate) fn payload_max(to: SocketAddr, interface: &Interface) -> usize {
    let (frame, headers) = if to.is_ipv6() { (1452, 48) } else { (1472, 28) };
    let mtu = || {
        // A separate socket: a connected one receives errors that the sender does not need.
        let probe = UdpSender::new(to, interface, &UdpOptions::default()).ok()?;
        rustix::net::connect(&probe.fd, &probe.to).ok()?;
        let mtu = if to.is_ipv6() { sockopt::ipv6_mtu(&probe.fd) } else { sockopt::ip_mtu(&probe.fd) };
        usize::try_from(mtu.ok()?).ok()
    };
    mtu().map_or(frame, |mtu| frame.min(mtu.saturating_sub(headers)).max(PAYLOAD_LEAST))
}

fn multicast_if_v4(fd: &OwnedFd, interface: &Interface) -> Result<(), Errno> {
    let unspecified = Ipv4Addr::UNSPECIFIED;
    sockopt::set_ip_multicast_if_with_ifindex(fd, &unspecified, &unspecified, interface.index)
}

/// Completes a link-local address with its interface.
fn scoped(address: SocketAddr, interface: &Interface) -> Result<SocketAddr, PubSubError> {
    let SocketAddr::V6(mut v6) = address else { return Ok(address) };
    let first = v6.ip().octets();
    let is_link_local = v6.ip().is_unicast_link_local() || first[0] == 0xff && first[1] & 0xf == 2;
    if !is_link_local || v6.scope_id() != 0 {
        return Ok(address);
    }
    if interface.index == 0 {
        let reason = "a link-local address needs a network interface; name the network interface";
        return Err(PubSubError::address(&format!("opc.udp://{address}"), reason));
    }
    v6.set_scope_id(interface.index);
    Ok(SocketAddr::V6(v6))
}

/// Whether the kernel has no route to an address. Connecting a UDP socket sends nothing.
fn no_route(to: &SocketAddr) -> bool {
    let Ok(fd) = new_socket(to, "look for a route") else { return false };
    matches!(rustix::net::connect(&fd, to), Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NODEV))
}

/// Receives datagrams in batches, into reused buffers.
pub struct UdpReceiver {
    fd: OwnedFd,
    buffers: Vec<u8>,
    headers: MultiHeaders<()>,
}

impl core::fmt::Debug for UdpReceiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("UdpReceiver").field("fd", &self.fd).finish_non_exhaustive()
    }
}

impl UdpReceiver {
    /// Listens at an address: a multicast group to join, a broadcast address, or an address of this machine. For any
    /// other address, listens at the port on all addresses.
    ///
    /// # Errors
    /// The socket cannot be opened or set up.
    pub fn new(at: SocketAddr, interface: &Interface) -> Result<Self, PubSubError> {
        let at = scoped(at, interface)?;
        let doing = format!("listen at {at}");
        let fd = new_socket(&at, &doing)?;
        let fail = |error: Errno| PubSubError::socket(doing.clone(), error);
        // Several subscribers on one machine each get every multicast datagram.
        sockopt::set_socket_reuseaddr(&fd, true).map_err(fail)?;
        if sockopt::set_socket_recv_buffer_size_force(&fd, SOCKET_BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&fd, SOCKET_BUFFER);
        }
        if at.is_ipv6() {
            sockopt::set_ipv6_v6only(&fd, true).map_err(fail)?;
        }
        match bind(&fd, &at) {
            Ok(()) => {}
            Err(Errno::ADDRNOTAVAIL) => {
                let all = match at.ip() {
                    IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port())),
                    IpAddr::V6(_) => SocketAddr::from((core::net::Ipv6Addr::UNSPECIFIED, at.port())),
                };
                bind(&fd, &all).map_err(fail)?;
            }
            Err(error) => return Err(fail(error)),
        }
        join(&fd, at, interface).map_err(fail)?;
        Ok(Self {
            fd,
            buffers: vec![0; BATCH * DATAGRAM_MAX],
            headers: MultiHeaders::preallocate(BATCH, None),
        })
    }

    /// The address it listens at, with the actual port.
    ///
    /// # Errors
    /// The kernel does not return it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.fd)?).map_err(io::Error::from)
    }

    /// Receives waiting datagrams, at most a batch, and returns their number. Less than [`Self::batch`] means that no
    /// more are waiting.
    ///
    /// # Errors
    /// The socket failed.
    pub fn receive(&mut self, mut take: impl FnMut(&mut [u8])) -> io::Result<usize> {
        // The first datagram is received alone: often it is the only one, and it does not wait for the setup of a
        // batch.
        let buffer = self.buffers.get_mut(..DATAGRAM_MAX).unwrap_or_default();
        let first = match rustix::net::recv(&self.fd, buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        if let Some(datagram) = self.buffers.get_mut(..first) {
            take(datagram);
        }
        self.receive_batch(take).map(|count| (count + 1).min(BATCH))
    }

    fn receive_batch(&mut self, mut take: impl FnMut(&mut [u8])) -> io::Result<usize> {
        let mut lengths: SmallVec<[usize; BATCH]> = SmallVec::new();
        {
            let mut buffers = self.buffers.chunks_exact_mut(DATAGRAM_MAX);
            let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
                core::array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
            let fd = self.fd.as_raw_fd();
            match recvmmsg(fd, &mut self.headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
                Ok(messages) => lengths.extend(messages.map(|message| message.bytes)),
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => return Ok(0),
                // An ICMP error about a datagram that was sent; receiving is not affected.
                Err(nix::errno::Errno::ECONNREFUSED) => return Ok(0),
                Err(error) => return Err(io::Error::from_raw_os_error(error as i32)),
            }
        }
        for (buffer, length) in self.buffers.chunks_exact_mut(DATAGRAM_MAX).zip(&lengths) {
            if let Some(datagram) = buffer.get_mut(..*length) {
                take(datagram);
            }
        }
        Ok(lengths.len())
    }

    /// Maximum datagrams per [`Self::receive`].
    #[must_use]
    pub const fn batch(&self) -> usize {
        BATCH
    }
}

impl AsFd for UdpReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn join(fd: &OwnedFd, group: SocketAddr, interface: &Interface) -> Result<(), Errno> {
    match group.ip() {
        IpAddr::V4(ip) if ip.is_multicast() => {
            let add =
                |index| sockopt::set_ip_add_membership_with_ifindex(fd, &ip, &Ipv4Addr::UNSPECIFIED, index);
            match add(interface.index) {
                Err(Errno::NODEV) if interface.index == 0 => add(loopback_index()?),
                outcome => outcome,
            }
        }
        IpAddr::V6(ip) if ip.is_multicast() => {
            let add = |index| sockopt::set_ipv6_add_membership(fd, &ip, index);
            match add(interface.index) {
                Err(Errno::NODEV) if interface.index == 0 => add(loopback_index()?),
                outcome => outcome,
            }
        }
        _ => Ok(()),
    }
}

/// If there is no route for multicast, publishers on this machine send through the loopback.
fn loopback_index() -> Result<u32, Errno> {
    Interface::loopback().map(|interface| interface.index).map_err(|_| Errno::NODEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_fits_a_frame_where_the_interface_would_take_more() {
        let loopback = Interface::loopback().unwrap();
        for (to, expected) in [("127.0.0.1:4840", 1472), ("239.0.0.1:4840", 1472), ("[::1]:4840", 1452)] {
            let most = payload_max(to.parse().unwrap(), &loopback);
            // The loopback carries 64 kB; without IPv6 the size is unknown.
            assert_eq!(most, expected, "{to}");
        }
        let nowhere = Interface { index: u32::MAX, ..Interface::any() };
        assert_eq!(payload_max("239.0.0.1:4840".parse().unwrap(), &nowhere), 1472);
    }
}
