//! TCP sockets as the event loops want them: non-blocking, without Nagle's delay, never raising SIGPIPE.

use crate::error::BindError;
use core::net::SocketAddr;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, acceptfrom_with, bind, connect, getpeername,
    getsockname, ipproto, listen, send, socket_with, sockopt,
};
use rustix::time::Timespec;
use std::io;

/// Socket options of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// SO_SNDBUF in bytes; `None` uses the kernel's autotuning. A small buffer limits what the kernel holds for a
    /// client that does not read.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in bytes; `None` uses the kernel's autotuning.
    pub receive_buffer: Option<usize>,
    /// TCP_USER_TIMEOUT: how long sent bytes may stay unacknowledged before the kernel ends the connection. Without it,
    /// a peer that reads nothing is not detected as long as the kernel's buffers have space. `None` uses the kernel's
    /// default: about 15 minutes for a peer that does not answer, no limit for one that does.
    pub user_timeout: Option<Duration>,
}

impl SocketOptions {
    fn apply(&self, fd: impl AsFd) -> io::Result<()> {
        let fd = fd.as_fd();
        sockopt::set_tcp_nodelay(fd, true)?;
        if let Some(bytes) = self.send_buffer {
            sockopt::set_socket_send_buffer_size(fd, bytes)?;
        }
        if let Some(bytes) = self.receive_buffer {
            sockopt::set_socket_recv_buffer_size(fd, bytes)?;
        }
        if let Some(span) = self.user_timeout {
            // Zero would select the kernel's default.
            let millis = u32::try_from(span.as_millis()).unwrap_or(u32::MAX).max(1);
            sockopt::set_tcp_user_timeout(fd, millis)?;
        }
        Ok(())
    }
}

fn new_socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?)
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; port 0 takes a free port.
    ///
    /// # Errors
    /// The address cannot be used; the error says why and what to do.
    pub fn bind(address: SocketAddr, backlog: i32) -> Result<Self, BindError> {
        let fail = |error: io::Error| BindError::new(address, error);
        let fd = new_socket(&address).map_err(fail)?;
        let set_up = || -> io::Result<SocketAddr> {
            sockopt::set_socket_reuseaddr(&fd, true)?;
            if address.is_ipv6() {
                // Each address is bound on its own, so that `[::]` and `0.0.0.0` can be given together.
                sockopt::set_ipv6_v6only(&fd, true)?;
            }
            bind(&fd, &address)?;
            listen(&fd, backlog)?;
            SocketAddr::try_from(getsockname(&fd)?).map_err(io::Error::from)
        };
        let address = set_up().map_err(fail)?;
        Ok(Self { fd, address })
    }

    /// The address with the actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The next waiting connection, or `None`.
    pub(crate) fn accept(
        &self,
        options: &SocketOptions,
    ) -> Result<Option<(OwnedFd, SocketAddr)>, AcceptError> {
        loop {
            return match acceptfrom_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok((fd, peer)) => {
                    // A connection that is reset between accept and here fails these calls: it is dropped.
                    let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) else { continue };
                    if options.apply(&fd).is_err() {
                        continue;
                    }
                    Ok(Some((fd, peer)))
                }
                Err(Errno::AGAIN) => Ok(None),
                // The connection was reset while it waited, or the network had a problem with it (accept(2)).
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::NETDOWN
                    | Errno::PROTO
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH
                    | Errno::NETUNREACH
                    | Errno::OPNOTSUPP,
                ) => continue,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    Err(AcceptError::Exhausted(error.into()))
                }
                Err(error) => Err(AcceptError::Broken(error.into())),
            };
        }
    }
}

/// Why no connection could be accepted.
#[derive(Debug)]
pub(crate) enum AcceptError {
    /// No file descriptors or memory: retry after a pause.
    Exhausted(io::Error),
    /// The listener itself is broken.
    Broken(io::Error),
}

/// Starts to connect. The socket becomes writable when connecting has succeeded or failed (see [`connect_result`]).
pub(crate) fn start_connect(address: &SocketAddr, options: &SocketOptions) -> io::Result<OwnedFd> {
    let fd = new_socket(address)?;
    options.apply(&fd)?;
    match connect(&fd, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error.into()),
    }
}

/// The result of a connect, once the socket is writable.
pub(crate) fn connect_result(fd: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(fd)??)
}

/// Result of a send.
#[derive(Debug)]
pub(crate) enum Sent {
    /// Number of bytes sent, perhaps not all.
    Bytes(usize),
    /// Nothing was sent: the kernel's buffer is full.
    Blocked,
    /// The connection is broken.
    Gone(Errno),
}

/// Sends as much as the kernel accepts.
#[inline]
pub(crate) fn send_some(fd: impl AsFd, bytes: &[u8]) -> Sent {
    loop {
        return match send(fd.as_fd(), bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) => Sent::Bytes(count),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Sent::Blocked,
            Err(error) => Sent::Gone(error),
        };
    }
}

/// Connects and waits for the result. The socket is then blocking.
pub(crate) fn connect_blocking(
    address: &SocketAddr,
    options: &SocketOptions,
    timeout: Duration,
) -> io::Result<OwnedFd> {
    let fd = start_connect(address, options)?;
    let timeout = Timespec { tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
    let mut ready = [PollFd::new(&fd, PollFlags::OUT)];
    if poll(&mut ready, Some(&timeout))? == 0 {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within the timeout"));
    }
    connect_result(&fd)?;
    ioctl_fionbio(&fd, false)?;
    Ok(fd)
}
/// Both addresses of a connected socket: local and remote. `None` if it is no longer connected.
pub(crate) fn addresses(fd: &OwnedFd) -> Option<(SocketAddr, SocketAddr)> {
    let own = SocketAddr::try_from(getsockname(fd).ok()?).ok()?;
    let peer = SocketAddr::try_from(getpeername(fd).ok()??).ok()?;
    Some((own, peer))
}
