//! TCP connections with a deadline, and errors that name the other side.

use crate::fault::{Fault, plain};
use core::time::Duration;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Splits `host:port`. The port is optional; an IPv6 address is in brackets.
#[must_use]
pub fn host_and_port(text: &str, default_port: u16) -> Option<(String, u16)> {
    let text = text.trim();
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_name) {
        return None;
    }
    let port = match port {
        None => default_port,
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
    };
    Some((host.to_owned(), port))
}

/// A connection is probed after this time without data …
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// … until this many probes had no answer …
const KEEP_ALIVE_PROBES: u32 = 3;
/// … with this pause between probes.
const KEEP_ALIVE_PAUSE: Duration = Duration::from_secs(5);

/// Connects. Keep-alive probes detect a device that lost power, because it does not close its connections.
///
/// # Errors
/// The name cannot be resolved, the connection is refused, or the deadline has passed.
pub async fn tcp(host: &str, port: u16, deadline: Duration) -> Result<TcpStream, Fault> {
    let target = target(host, port);
    match timeout(deadline, TcpStream::connect((host, port))).await {
        Err(_) => Err(Fault::ConnectTimeout { target, after: deadline }),
        Ok(Err(error)) => Err(Fault::Connect { target, reason: plain(&error) }),
        Ok(Ok(stream)) => {
            // Requests are small and wait for their answers, so Nagle's algorithm would only add latency.
            stream.set_nodelay(true).map_err(|error| Fault::connect(target.clone(), &error))?;
            keep_alive(&stream).map_err(|error| Fault::connect(target, &error.into()))?;
            Ok(stream)
        }
    }
}

fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_PAUSE)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_PROBES)
}

/// Whether a host is this machine.
#[must_use]
pub fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Formats host and port.
#[must_use]
pub fn target(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_connection_is_probed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = tcp("127.0.0.1", port, Duration::from_secs(20)).await.unwrap();
        assert_eq!(sockopt::socket_keepalive(&stream), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(KEEP_ALIVE));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(KEEP_ALIVE_PAUSE));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(KEEP_ALIVE_PROBES));
    }

    #[test]
    fn hosts_and_ports_are_parsed() {
        let some = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(host_and_port("plc", 502), some("plc", 502));
        assert_eq!(host_and_port("10.0.0.7:1502", 502), some("10.0.0.7", 1502));
        assert_eq!(host_and_port("[::1]:1502", 502), some("::1", 1502));
        assert_eq!(host_and_port("[::1]", 502), some("::1", 502));
        for wrong in ["", ":502", "plc:", "plc:x", "plc:0", "plc:70000", "a b", "tcp://plc"] {
            assert_eq!(host_and_port(wrong, 502), None, "{wrong}");
        }
    }
}
