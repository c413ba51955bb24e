//! A link that stands: whichever way it was made, and until it is dropped.

use super::kernel::{self, Kernel};
use super::namespace::Namespace;
use super::proxy::Proxy;
use super::tun::{self, Tun};
use serde::Serialize;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use taktwerk_netem::emulator::Counters;
use taktwerk_netem::profile::Profile;

/// How a link is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Two network namespaces, and the kernel's own tbf or netem between them.
    Kernel,
    /// Two network namespaces, and an emulator that carries IP packets between them.
    Tun,
    /// A relay in user space on loopback.
    Proxy,
}

impl Method {
    /// All, the most exact first.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Tun, Self::Proxy];
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Tun => "tun",
            Self::Proxy => "proxy",
        })
    }
}

impl std::str::FromStr for Method {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|method| method.to_string() == text)
            .ok_or_else(|| format!("there is no method {text:?}; there are kernel, tun and proxy"))
    }
}

/// The link cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the link {profile} cannot be made by {method}: {source}{}", hint(.method, .source))]
pub struct LinkError {
    profile: String,
    method: Method,
    source: io::Error,
}

fn hint(method: &Method, error: &io::Error) -> &'static str {
    match (method, error.kind()) {
        (Method::Kernel | Method::Tun, io::ErrorKind::PermissionDenied) => {
            "; run as root, or use the method proxy, which needs no rights"
        }
        (Method::Tun, io::ErrorKind::NotFound) => "; is /dev/net/tun there?",
        (Method::Kernel, _) => "; the method tun needs less of the kernel",
        _ => "",
    }
}

#[derive(Debug)]
enum Made {
    Kernel(Kernel),
    Tun(Tun),
    Proxy(Proxy),
}

/// A link that stands.
#[derive(Debug)]
pub struct Link {
    profile: Profile,
    made: Made,
    notes: Vec<String>,
}

impl Link {
    /// Makes a link in the most exact way that works here. [`Link::notes`] says why others did not.
    ///
    /// # Errors
    /// If none works.
    pub fn up(profile: &Profile, seed: u64) -> Result<Self, LinkError> {
        let mut notes = Vec::new();
        if kernel::requirement(profile).is_some() {
            match Self::by(Method::Kernel, profile, seed) {
                Ok(link) => return Ok(link),
                Err(error) => notes.push(error.to_string()),
            }
        }
        let link = match Self::by(Method::Tun, profile, seed) {
            Ok(link) => link,
            Err(error) => {
                notes.push(error.to_string());
                Self::by(Method::Proxy, profile, seed)?
            }
        };
        Ok(Self { notes, ..link })
    }

    /// Makes a link in one way.
    ///
    /// # Errors
    /// If it does not work here; the message says what is missing.
    pub fn by(method: Method, profile: &Profile, seed: u64) -> Result<Self, LinkError> {
        let made = match method {
            Method::Kernel => Kernel::start(profile).map(Made::Kernel),
            Method::Tun => Tun::start(profile, seed).map(Made::Tun),
            Method::Proxy => Proxy::start(profile, seed).map(Made::Proxy),
        };
        let failed = |source| LinkError { profile: profile.name.clone(), method, source };
        Ok(Self { profile: profile.clone(), made: made.map_err(failed)?, notes: Vec::new() })
    }

    /// What was asked for.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How it was made.
    #[must_use]
    pub fn method(&self) -> Method {
        match self.made {
            Made::Kernel(_) => Method::Kernel,
            Made::Tun(_) => Method::Tun,
            Made::Proxy(_) => Method::Proxy,
        }
    }

    /// Why more exact ways were not taken.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The network that clients have to be in, if the link is one between networks.
    #[must_use]
    pub fn client_place(&self) -> Option<&Namespace> {
        match &self.made {
            Made::Kernel(it) => Some(&it.client),
            Made::Tun(it) => Some(&it.client),
            Made::Proxy(_) => None,
        }
    }

    /// The network that servers have to be in, if the link is one between networks.
    #[must_use]
    pub fn server_place(&self) -> Option<&Namespace> {
        match &self.made {
            Made::Kernel(it) => Some(&it.server),
            Made::Tun(it) => Some(&it.server),
            Made::Proxy(_) => None,
        }
    }

    /// The address that servers have to listen on.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        match self.made {
            Made::Kernel(_) | Made::Tun(_) => tun::SERVER.into(),
            Made::Proxy(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// Where clients have to connect to by TCP in order to reach a server behind the link.
    ///
    /// # Errors
    /// If a relay can open no port.
    pub fn reach(&self, server: SocketAddr) -> io::Result<SocketAddr> {
        self.reach_at(None, server)
    }

    /// The same, with the address on which a relay listens.
    ///
    /// # Errors
    /// If a relay cannot listen there.
    pub fn reach_at(&self, listen: Option<SocketAddr>, server: SocketAddr) -> io::Result<SocketAddr> {
        match &self.made {
            Made::Kernel(_) | Made::Tun(_) => Ok(server),
            Made::Proxy(proxy) => proxy.tcp(listen, server),
        }
    }

    /// Where clients have to send datagrams to in order to reach a server behind the link.
    ///
    /// # Errors
    /// If a relay can open no port.
    pub fn reach_udp(&self, server: SocketAddr) -> io::Result<SocketAddr> {
        self.reach_udp_at(None, server)
    }

    /// The same, with the address on which a relay listens.
    ///
    /// # Errors
    /// If a relay cannot listen there.
    pub fn reach_udp_at(&self, listen: Option<SocketAddr>, server: SocketAddr) -> io::Result<SocketAddr> {
        match &self.made {
            Made::Kernel(_) | Made::Tun(_) => Ok(server),
            Made::Proxy(proxy) => proxy.udp(listen, server),
        }
    }

    /// What the two directions have carried so far, client to server first. The kernel counts packets and bytes only.
    #[must_use]
    pub fn counters(&self) -> [Counters; 2] {
        match &self.made {
            Made::Kernel(kernel) => kernel.counters(&self.profile),
            Made::Tun(tun) => tun.counters(),
            Made::Proxy(proxy) => proxy.counters(),
        }
    }
}
