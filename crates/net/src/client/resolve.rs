//! Resolves host names to addresses.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::io;
use std::net::ToSocketAddrs;
use taktwerk_client::EndpointUrl;

/// A cache of resolved hosts: thousands of clients of one server resolve its name once.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    known: BTreeMap<(Box<str>, u16), SocketAddr>,
}

impl Resolver {
    /// The first address of a host, IPv4 before IPv6 because most servers listen on IPv4. Blocks for names that are not
    /// cached.
    pub(super) fn resolve(&mut self, url: &EndpointUrl) -> io::Result<SocketAddr> {
        let key = (url.host.clone(), url.port);
        if let Some(address) = self.known.get(&key) {
            return Ok(*address);
        }
        let address = first_address(&url.host, url.port)?;
        self.known.insert(key, address);
        Ok(address)
    }
}

pub(super) fn first_address(host: &str, port: u16) -> io::Result<SocketAddr> {
    let all: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let first = all.iter().find(|address| address.is_ipv4()).or_else(|| all.first());
    first.copied().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")))
}
