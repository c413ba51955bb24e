//! An Ethernet switch that looks at IGMP, with hosts at its ports: a bridge of the kernel with snooping and a querier in a
//! network of its own, and a network for each host.
//!
//! Nothing outlives the process, however it ends: the networks have no names.

use super::namespace::Namespace;
use std::io;

/// What a host calls its interface.
pub const INTERFACE: &str = "eth0";

/// Hundredths of a second that hosts may take to answer a query: until then a switch that has just begun to look floods.
const RESPONSE: &str = "100";

/// A switch and its hosts. They are gone when this is.
#[derive(Debug)]
pub struct Switch {
    switch: Namespace,
    hosts: Vec<Namespace>,
}

impl Switch {
    /// A switch with so many hosts, 10.78.0.1 and on, all up.
    ///
    /// # Errors
    /// Without the capability `CAP_SYS_ADMIN`, without the tool `ip`, or where the kernel has no bridges.
    pub fn new(hosts: u8) -> io::Result<Self> {
        let switch = Namespace::new()?;
        without_ipv6(&switch)?;
        let bridge = ["link", "add", "br0", "type", "bridge", "mcast_snooping", "1"];
        let querier = ["mcast_query_response_interval", RESPONSE, "mcast_startup_query_interval", RESPONSE];
        switch.tool("ip", &[bridge.as_slice(), &querier].concat())?;
        // Afterwards: how long it floods at first is decided when it becomes the querier.
        switch.tool("ip", &["link", "set", "br0", "type", "bridge", "mcast_querier", "1"])?;
        let mut all = Vec::new();
        for number in 1..=hosts {
            let host = Namespace::new()?;
            without_ipv6(&host)?;
            let (port, path) = (format!("port{number}"), host.path());
            let pair =
                ["link", "add", "name", &port, "type", "veth", "peer", "name", INTERFACE, "netns", &path];
            switch.tool("ip", &pair)?;
            switch.tool("ip", &["link", "set", &port, "master", "br0", "up"])?;
            host.tool("ip", &["addr", "add", &format!("10.78.0.{number}/24"), "dev", INTERFACE])?;
            host.tool("ip", &["link", "set", "lo", "up"])?;
            host.tool("ip", &["link", "set", INTERFACE, "up"])?;
            all.push(host);
        }
        switch.tool("ip", &["link", "set", "br0", "up"])?;
        Ok(Self { switch, hosts: all })
    }

    /// The network of a host.
    #[must_use]
    pub fn host(&self, number: usize) -> Option<&Namespace> {
        self.hosts.get(number)
    }

    /// Whether the switch looks at IGMP, or sends multicast to everybody.
    ///
    /// # Errors
    /// The kernel does not do it.
    pub fn set_snooping(&self, snooping: bool) -> io::Result<()> {
        let value = if snooping { "1" } else { "0" };
        self.switch.tool("ip", &["link", "set", "br0", "type", "bridge", "mcast_snooping", value]).map(drop)
    }

    /// Packets that a host's interface has received.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn received(&self, number: usize) -> io::Result<u64> {
        let host = self.hosts.get(number).ok_or_else(|| io::Error::other("there is no such host"))?;
        let text = host.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
        packets_received(&text).ok_or_else(|| io::Error::other("the kernel does not count packets"))
    }
}

/// Received packets of the interface in `/proc/net/dev`.
fn packets_received(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(INTERFACE)?.strip_prefix(':'))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// IPv6 has multicast of its own all the time, which would be counted.
fn without_ipv6(namespace: &Namespace) -> io::Result<()> {
    namespace.inside(|| {
        // A kernel without IPv6 has no such file.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn hosts_reach_each_other_where_that_is_permitted() {
        let switch = match Switch::new(2) {
            Ok(switch) => switch,
            Err(error) => {
                // What the experiment says when it is skipped.
                assert!(!error.to_string().is_empty());
                return;
            }
        };
        let socket = |number: usize, address: &str| {
            switch.host(number).unwrap().inside(|| UdpSocket::bind(address).unwrap()).unwrap()
        };
        let (one, two) = (socket(0, "10.78.0.1:7000"), socket(1, "10.78.0.2:7000"));
        let before = switch.received(1).unwrap();
        two.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
        // The first ones may be lost while the ports come up.
        let came = (0..20).any(|_| {
            one.send_to(b"x", "10.78.0.2:7000").unwrap();
            two.recv(&mut [0; 8]).is_ok()
        });
        assert!(came);
        assert!(switch.received(1).unwrap() > before);
        assert!(switch.host(2).is_none() && switch.received(2).is_err());
        switch.set_snooping(false).unwrap();
    }

    #[test]
    fn the_kernels_count() {
        let text =
            "Inter-|   Receive\n face |bytes packets\n    lo: 1 2 0\n  eth0: 840 12 0 0 0 0 0 12 9 1\n";
        assert_eq!(packets_received(text), Some(12));
        assert_eq!(packets_received("lo: 1 2"), None);
    }
}
