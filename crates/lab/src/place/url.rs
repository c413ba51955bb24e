//! Parses the URL of a running server or broker, as needed for a relay in front of it.

use crate::links::Link;
use crate::links::address::first_address;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout for connecting to a running server.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// `scheme://user@host:port/path`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url<'a> {
    scheme: &'a str,
    /// Including its `@`, or empty.
    user: &'a str,
    host: &'a str,
    port: Option<u16>,
    /// Including its `/`, or empty.
    path: &'a str,
}

impl<'a> Url<'a> {
    pub(super) fn parse(url: &'a str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("{url} is not a URL"))?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (user, host) = authority.rfind('@').map_or(("", authority), |at| authority.split_at(at + 1));
        let port = host.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = port.map_or((host, None), |(host, port)| (host, Some(port)));
        Ok(Self { scheme, user, host, port, path })
    }

    /// Its port, or the IANA default of its scheme.
    fn port(&self) -> Option<u16> {
        self.port.or(match self.scheme.split('+').next()? {
            "opc.tcp" => Some(4840),
            "mqtt" => Some(1883),
            "mqtts" => Some(8883),
            _ => None,
        })
    }

    /// All addresses of its host; at least one.
    fn addresses(&self, port: u16) -> Result<Vec<SocketAddr>, String> {
        let failed = |why: String| format!("{}: {why}", self.host);
        let found =
            format!("{}:{port}", self.host).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
        let found: Vec<SocketAddr> = found.collect();
        if found.is_empty() { Err(failed("the name has no address".to_owned())) } else { Ok(found) }
    }

    /// The same URL with another address.
    fn at(&self, address: SocketAddr) -> String {
        format!("{}://{}{address}{}", self.scheme, self.user, self.path)
    }

    /// Whether the address accepts connections. Skipped if the default port of the scheme is unknown.
    pub(super) fn listens(&self) -> Result<(), String> {
        let Some(port) = self.port() else { return Ok(()) };
        let mut error = String::new();
        for address in self.addresses(port)? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(_) => return Ok(()),
                Err(refused) => error = refused.to_string(),
            }
        }
        Err(error)
    }

    /// The URL of a relay to a server that is already running.
    pub(super) fn relayed(&self, link: &Link) -> Result<String, String> {
        let port = self.port().ok_or_else(|| format!("{} needs a port, no default is known", self.scheme))?;
        let server = first_address(self.addresses(port)?).ok_or("no address")?;
        self.reached(link, server)
    }

    /// The URL at which clients reach our server or broker behind a link.
    pub(super) fn behind(&self, link: &Link, server: IpAddr) -> Result<String, String> {
        let port = self.port.ok_or_else(|| format!("{}://{} has no port", self.scheme, self.host))?;
        self.reached(link, SocketAddr::new(server, port))
    }

    fn reached(&self, link: &Link, server: SocketAddr) -> Result<String, String> {
        Ok(self.at(link.reach(server).map_err(|error| error.to_string())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::Method;
    use std::net::TcpListener;

    #[test]
    fn parts_of_urls() {
        let url = Url::parse("mqtt+json://user:secret@[::1]/a/b").unwrap();
        let expected =
            Url { scheme: "mqtt+json", user: "user:secret@", host: "[::1]", port: None, path: "/a/b" };
        assert_eq!(url, expected);
        assert_eq!(url.port(), Some(1883));
        assert_eq!(url.at(([127, 0, 0, 1], 7).into()), "mqtt+json://user:secret@127.0.0.1:7/a/b");
        let url = Url::parse("opc.tcp://[fe80::1]:48010").unwrap();
        assert_eq!((url.host, url.port(), url.path), ("[fe80::1]", Some(48010), ""));
        assert_eq!(Url::parse("opc.tcp://plc").unwrap().port(), Some(4840));
        assert_eq!(Url::parse("opc.udp://plc").unwrap().port(), None);
        assert!(Url::parse("plc:4840").unwrap_err().contains("not a URL"));
    }

    #[test]
    fn listening_servers_are_detected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("mqtt://user@{}/x", listener.local_addr().unwrap());
        assert_eq!(Url::parse(&url).unwrap().listens(), Ok(()));
        assert!(Url::parse("opc.tcp://127.0.0.1:1").unwrap().listens().unwrap_err().contains("refused"));
        assert!(Url::parse("opc.tcp://no host").unwrap().listens().unwrap_err().contains("no host"));
        assert_eq!(Url::parse("opc.udp://no host").unwrap().listens(), Ok(()));
    }

    #[test]
    fn running_servers_are_reached_through_a_relay() {
        let link = Link::by(Method::Proxy, &"delay=1ms".parse().unwrap(), 1).unwrap();
        let relayed = |url: &'static str| Url::parse(url).unwrap().relayed(&link);
        let url = relayed("opc.tcp://127.0.0.1/path").unwrap();
        assert!(url.starts_with("opc.tcp://127.0.0.1:") && url.ends_with("/path"), "{url}");
        assert!(!url.contains(":4840/"), "{url}");
        let url = relayed("mqtt://user@127.0.0.1").unwrap();
        assert!(url.starts_with("mqtt://user@127.0.0.1:") && !url.contains("1883"), "{url}");
        assert!(relayed("opc.tcp://no host").is_err() && relayed("opc.udp://127.0.0.1").is_err());
        let own = Url::parse("opc.tcp://127.0.0.1").unwrap();
        assert!(own.behind(&link, link.server_address()).unwrap_err().contains("no port"));
    }
}
