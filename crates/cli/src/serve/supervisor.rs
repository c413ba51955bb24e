//! Notifications for the service manager with systemd's protocol: ready, reloading, stopping, and the watchdog.
//!
//! Without NOTIFY_SOCKET in the environment, nothing is sent.

use crate::failure::Failure;
use sd_notify::NotifyState;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reports that the server is ready.
pub(super) fn ready(url: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(&format!("serving {url}"))]);
}

/// Reports that the configuration is being reloaded; [`ready`] or [`done`] must follow.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// Reports the result of a reload.
pub(super) fn done(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that the server is stopping.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot notify the service manager");
    }
}

/// Sends watchdog notifications while the server responds.
///
/// The check is a Hello on a new connection for each shard, as any client sends. A server that responds or refuses is
/// alive, for example if clients have used up all connections. A server with hanging threads does neither, and the
/// service manager restarts it.
#[derive(Debug)]
pub(super) struct Watchdog {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the checks, if the service manager has enabled the watchdog.
    pub(super) fn start(address: SocketAddr, shards: usize) -> Result<Option<Self>, Failure> {
        let Some(interval) = sd_notify::watchdog_enabled() else { return Ok(None) };
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let work = move || {
            while !ended.load(Ordering::Relaxed) {
                match answers(address, shards, interval / 2) {
                    Ok(()) => send(&[NotifyState::Watchdog]),
                    Err(error) => tracing::error!(%error, "the server does not respond to its watchdog"),
                }
                std::thread::park_timeout(interval / 4);
            }
        };
        let thread =
            std::thread::Builder::new().name("watchdog".to_owned()).stack_size(128 << 10).spawn(work);
        let thread =
            thread.map_err(|error| Failure::Environment(format!("cannot start a thread: {error}")))?;
        Ok(Some(Self { end, thread: Some(thread) }))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread may be waiting for a response, so it is not joined.
            drop(thread);
        }
    }
}

/// Whether the server responds to or refuses as many connections as it has shards, all within `patience`.
fn answers(address: SocketAddr, shards: usize, patience: Duration) -> io::Result<()> {
    let address = reachable(address);
    let streams: Vec<TcpStream> = (0..shards)
        .map(|_| hello(address, patience))
        .filter(|stream| !matches!(stream, Err(error) if is_refusal(error)))
        .collect::<io::Result<_>>()?;
    for mut stream in streams {
        match stream.read(&mut [0; 8]) {
            // An Acknowledge, an Error, or a closed connection: the server is alive.
            Ok(_) => {}
            Err(error) if is_refusal(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// Part 6 §7.1.2.3: version 0, buffers of 8 192 bytes, any message, no URL.
fn hello(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut message = Vec::from(*b"HELF");
    for field in [32u32, 0, 8192, 8192, 0, 0, u32::MAX] {
        message.extend_from_slice(&field.to_le_bytes());
    }
    stream.write_all(&message)?;
    Ok(stream)
}

/// The address to connect to, if the server listens on all interfaces.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn servers_that_respond_or_refuse_are_alive() {
        let server =
            taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap().spawn().unwrap();
        answers(server.addresses()[0], 2, Duration::from_secs(10)).unwrap();
        server.stop(Duration::ZERO);
        let refusing = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = refusing.local_addr().unwrap();
        let refuse = std::thread::spawn(move || drop(refusing.accept().unwrap()));
        answers(address, 1, Duration::from_secs(10)).unwrap();
        refuse.join().unwrap();
    }

    #[test]
    fn hanging_servers_are_not_alive() {
        let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = answers(hanging.local_addr().unwrap(), 1, Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        // Nothing listens any more, as if the threads had ended.
        let address = hanging.local_addr().unwrap();
        drop(hanging);
        assert!(answers(address, 1, Duration::from_millis(100)).is_err());
    }
}
