//! What a service manager is told, by systemd's protocol: ready, reloading, stopping, and that the server still answers.
//!
//! Without NOTIFY_SOCKET in the environment all of it does nothing.

use crate::failure::Failure;
use sd_notify::NotifyState;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Says that clients are served.
pub(super) fn ready(url: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(&format!("serving {url}"))]);
}

/// Says that the configuration is read again; [`ready`] or [`done`] ends it.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

/// Says what became of a configuration.
pub(super) fn done(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Says that the server ends.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}

/// Tells the service manager that the server answers, for as long as it does.
///
/// The question is that of any client: a Hello on a connection of its own, one for each shard. A server that answers or
/// refuses, because strangers have taken all connections for example, is alive; one whose threads hang does neither, and the
/// service manager starts it again.
#[derive(Debug)]
pub(super) struct Watchdog {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Begins, if the service manager wants it.
    pub(super) fn start(address: SocketAddr, shards: usize) -> Result<Option<Self>, Failure> {
        let Some(interval) = sd_notify::watchdog_enabled() else { return Ok(None) };
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let work = move || {
            while !ended.load(Ordering::Relaxed) {
                match answers(address, shards, interval / 2) {
                    Ok(()) => send(&[NotifyState::Watchdog]),
                    Err(error) => tracing::error!(%error, "the server does not answer its own watchdog"),
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
            // It may wait for an answer; the process need not.
            drop(thread);
        }
    }
}

/// Whether the server answers or refuses as many connections as it has shards, all within `patience`.
fn answers(address: SocketAddr, shards: usize, patience: Duration) -> io::Result<()> {
    let address = reachable(address);
    let streams: Vec<TcpStream> = (0..shards)
        .map(|_| hello(address, patience))
        .filter(|stream| !matches!(stream, Err(error) if is_refusal(error)))
        .collect::<io::Result<_>>()?;
    for mut stream in streams {
        match stream.read(&mut [0; 8]) {
            // An Acknowledge, an Error, or the end: somebody is there.
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

/// Where a server that listens everywhere is reached from here.
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
    fn a_server_that_answers_or_refuses_is_alive() {
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
    fn one_that_hangs_is_not() {
        let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = answers(hanging.local_addr().unwrap(), 1, Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        // Nobody listens: the threads are gone.
        let address = hanging.local_addr().unwrap();
        drop(hanging);
        assert!(answers(address, 1, Duration::from_millis(100)).is_err());
    }
}
