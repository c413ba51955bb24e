//! The address of a server: `opc.tcp://host[:4840][/path]`, or `host[:port]`.

use std::fmt;
use std::str::FromStr;

/// The IANA port of opc.tcp.
const DEFAULT_PORT: u16 = 4840;

/// An endpoint URL with an explicit port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    path: String,
}

/// The text is not the address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseEndpointError {
    /// No host.
    #[error("no host in {0:?}: write opc.tcp://host:4840 or host:4840")]
    NoHost(String),
    /// No port.
    #[error("{0:?} is not a port: write a number from 1 to 65535")]
    Port(String),
    /// Another protocol.
    #[error("{0}:// is not supported: only opc.tcp:// is")]
    Scheme(String),
    /// The scheme without `://`.
    #[error("{0:?} is not the URL of a server: write opc.tcp://host:4840 or host:4840")]
    Url(String),
    /// A NodeId or browse path.
    #[error("{0:?} is a node, not a server: write the server's URL before it, or set TAKTWERK_ENDPOINT")]
    Node(String),
    /// An IPv6 address without brackets.
    #[error("an IPv6 address needs brackets: opc.tcp://[{0}]:4840")]
    Brackets(String),
}

impl Endpoint {
    /// The host without brackets.
    pub fn host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same server at another address.
    pub fn at(&self, address: std::net::SocketAddr) -> Self {
        let host = match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Self { host, port: address.port(), path: self.path.clone() }
    }

    /// Whether the host is this machine, judging by its name.
    pub fn is_loopback(&self) -> bool {
        let address: Result<std::net::IpAddr, _> = self.host().parse();
        self.host().eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.to_canonical().is_loopback())
    }
}

/// A server on this machine at the default port.
impl Default for Endpoint {
    fn default() -> Self {
        Self { host: "localhost".to_owned(), port: DEFAULT_PORT, path: String::new() }
    }
}

impl FromStr for Endpoint {
    type Err = ParseEndpointError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("opc.tcp") => rest,
            Some((scheme, _)) => return Err(ParseEndpointError::Scheme(scheme.to_owned())),
            None if text.starts_with('/') || text.contains('=') => {
                return Err(ParseEndpointError::Node(text.to_owned()));
            }
            None if text.to_ascii_lowercase().starts_with("opc.tcp") && !text.contains("opc.tcp.") => {
                return Err(ParseEndpointError::Url(text.to_owned()));
            }
            None => text,
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let no_host = || ParseEndpointError::NoHost(text.to_owned());
        let (host, port) = if let Some(inside) = authority.strip_prefix('[') {
            let (address, after) = inside.split_once(']').ok_or_else(no_host)?;
            let port = after.strip_prefix(':').or(after.is_empty().then_some(""));
            (format!("[{address}]"), port.ok_or_else(no_host)?)
        } else {
            match authority.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(ParseEndpointError::Brackets(authority.to_owned()));
                }
                Some((host, port)) => (host.to_owned(), port),
                None => (authority.to_owned(), ""),
            }
        };
        if host.is_empty() || host == "[]" || host.contains(char::is_whitespace) {
            return Err(no_host());
        }
        let port = match port {
            "" => DEFAULT_PORT,
            digits => digits
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| ParseEndpointError::Port(digits.to_owned()))?,
        };
        Ok(Self { host, port, path: path.to_owned() })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opc.tcp://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_forms() {
        for (text, url) in [
            ("localhost", "opc.tcp://localhost:4840"),
            ("plc7:4841", "opc.tcp://plc7:4841"),
            ("opc.tcp://10.0.0.1", "opc.tcp://10.0.0.1:4840"),
            ("OPC.TCP://host:1/a/b", "opc.tcp://host:1/a/b"),
            ("host/UA/Server", "opc.tcp://host:4840/UA/Server"),
            ("[::1]", "opc.tcp://[::1]:4840"),
            ("opc.tcp://[fe80::1]:48010/x", "opc.tcp://[fe80::1]:48010/x"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), url);
        }
        assert_eq!("[::1]:1".parse::<Endpoint>().unwrap().host(), "::1");
        let moved = "plc7/UA/Server".parse::<Endpoint>().unwrap().at("[::1]:7".parse().unwrap());
        assert_eq!(moved.to_string(), "opc.tcp://[::1]:7/UA/Server");
        for (text, here) in [
            ("localhost", true),
            ("[::1]", true),
            ("127.3.2.1:5", true),
            ("plc7", false),
            ("LocalHost", true),
            ("[::ffff:127.0.0.1]", true),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().is_loopback(), here, "{text}");
        }
    }

    #[test]
    fn refused_forms_say_why() {
        for (text, why) in [
            ("", "no host"),
            ("opc.tcp://", "no host"),
            (":4840", "no host"),
            ("host:0", "not a port"),
            ("host:70000", "not a port"),
            ("host:x", "not a port"),
            ("http://host", "not supported"),
            ("::1", "brackets"),
            ("[::1", "no host"),
            ("[::1]x", "no host"),
            ("two words", "no host"),
            ("i=2258", "is a node"),
            ("/Objects/2:Plant", "is a node"),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
