//! A running emulated link, independent of the method.

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

/// Method of emulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Two network namespaces with tbf or netem of the kernel between them.
    Kernel,
    /// Two network namespaces with an emulator that carries IP packets between them.
    Tun,
    /// A relay in user space on loopback.
    Proxy,
}

impl Method {
    /// All methods, the most exact first.
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
            .ok_or_else(|| format!("unknown method {text:?}: use kernel, tun or proxy"))
    }
}

/// The link cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create the link {profile} with the method {method}: {source}{}", hint(.method, .source))]
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
        (Method::Kernel, _) => "; try the method tun, which needs fewer kernel features",
        _ => "",
    }
}

#[derive(Debug)]
enum Made {
    Kernel(Kernel),
    Tun(Tun),
    Proxy(Proxy),
}

/// A running link.
#[derive(Debug)]
pub struct Link {
    profile: Profile,
    made: Made,
    notes: Vec<String>,
}

impl Link {
    /// Creates a link with the most exact method that works here. [`Link::notes`] says why others failed.
    ///
    /// # Errors
    /// If no method works.
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

    /// Creates a link with the given method.
    ///
    /// # Errors
    /// If the method does not work here; the message says what is missing.
    pub fn by(method: Method, profile: &Profile, seed: u64) -> Result<Self, LinkError> {
        let made = match method {
            Method::Kernel => Kernel::start(profile).map(Made::Kernel),
            Method::Tun => Tun::start(profile, seed).map(Made::Tun),
            Method::Proxy => Proxy::start(profile, seed).map(Made::Proxy),
        };
        let failed = |source| LinkError { profile: profile.name.clone(), method, source };
        Ok(Self { profile: profile.clone(), made: made.map_err(failed)?, notes: Vec::new() })
    }

    /// The requested profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The method used.
    #[must_use]
    pub fn method(&self) -> Method {
        match self.made {
            Made::Kernel(_) => Method::Kernel,
            Made::Tun(_) => Method::Tun,
            Made::Proxy(_) => Method::Proxy,
        }
    }

    /// Why more exact methods were not used.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The network namespace for clients, if the link is between namespaces.
    #[must_use]
    pub fn client_place(&self) -> Option<&Namespace> {
        match &self.made {
            Made::Kernel(it) => Some(&it.client),
            Made::Tun(it) => Some(&it.client),
            Made::Proxy(_) => None,
        }
    }

    /// The network namespace for servers, if the link is between namespaces.
    #[must_use]
    pub fn server_place(&self) -> Option<&Namespace> {
        match &self.made {
            Made::Kernel(it) => Some(&it.server),
            Made::Tun(it) => Some(&it.server),
            Made::Proxy(_) => None,
        }
    }

    /// The address for servers to listen on.
    #[must_use]
    pub fn server_address(&self) -> IpAddr {
        match self.made {
            Made::Kernel(_) | Made::Tun(_) => tun::SERVER.into(),
            Made::Proxy(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// The TCP address at which clients reach a server behind the link.
    ///
    /// # Errors
    /// If the relay cannot open a port.
    pub fn reach(&self, server: SocketAddr) -> io::Result<SocketAddr> {
        self.reach_at(None, server)
    }

    /// Like [`Self::reach`], with a fixed address for the relay.
    ///
    /// # Errors
    /// If the relay cannot listen there.
    pub fn reach_at(&self, listen: Option<SocketAddr>, server: SocketAddr) -> io::Result<SocketAddr> {
        match &self.made {
            Made::Kernel(_) | Made::Tun(_) => Ok(server),
            Made::Proxy(proxy) => proxy.tcp(listen, server),
        }
    }

    /// The UDP address at which clients reach a server behind the link.
    ///
    /// # Errors
    /// If the relay cannot open a port.
    pub fn reach_udp(&self, server: SocketAddr) -> io::Result<SocketAddr> {
        self.reach_udp_at(None, server)
    }

    /// Like [`Self::reach_udp`], with a fixed address for the relay.
    ///
    /// # Errors
    /// If the relay cannot listen there.
    pub fn reach_udp_at(&self, listen: Option<SocketAddr>, server: SocketAddr) -> io::Result<SocketAddr> {
        match &self.made {
            Made::Kernel(_) | Made::Tun(_) => Ok(server),
            Made::Proxy(proxy) => proxy.udp(listen, server),
        }
    }

    /// What each direction has carried so far, client to server first. The kernel method counts only packets and bytes.
    #[must_use]
    pub fn counters(&self) -> [Counters; 2] {
        match &self.made {
            Made::Kernel(kernel) => kernel.counters(&self.profile),
            Made::Tun(tun) => tun.counters(),
            Made::Proxy(proxy) => proxy.counters(),
        }
    }
}
