//! An Ethernet switch with IGMP snooping and hosts at its ports: a kernel bridge with snooping and a querier in a
//! separate network namespace, and a namespace for each host.
//!
//! Nothing outlives the process, even if it is killed: the namespaces have no names.

use super::namespace::Namespace;
use std::io;

/// Name of the interface in each host.
pub const INTERFACE: &str = "eth0";

/// Maximum response time for queries, in 1/100 s. A switch that has just enabled snooping floods until then.
const RESPONSE: &str = "100";

/// A switch and its hosts. They are removed when dropped.
#[derive(Debug)]
pub struct Switch {
    switch: Namespace,
    hosts: Vec<Namespace>,
}

impl Switch {
    /// A switch with this many hosts, 10.78.0.1 and up, all interfaces up.
    ///
    /// # Errors
    /// Without the capability `CAP_SYS_ADMIN`, without the tool `ip`, or if the kernel has no bridges.
    pub fn new(hosts: u8) -> io::Result<Self> {
        let switch = Namespace::new()?;
        without_ipv6(&switch)?;
        let bridge = ["link", "add", "br0", "type", "bridge", "mcast_snooping", "1"];
        let querier = ["mcast_query_response_interval", RESPONSE, "mcast_startup_query_interval", RESPONSE];
        switch.tool("ip", &[bridge.as_slice(), &querier].concat())?;
        // Must be set last: the initial flooding time is fixed when the bridge becomes the querier.
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

    /// The network namespace of a host.
    #[must_use]
    pub fn host(&self, number: usize) -> Option<&Namespace> {
        self.hosts.get(number)
    }

    /// Enables IGMP snooping, or floods multicast to all hosts.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_snooping(&self, snooping: bool) -> io::Result<()> {
        let value = if snooping { "1" } else { "0" };
        self.switch.tool("ip", &["link", "set", "br0", "type", "bridge", "mcast_snooping", value]).map(drop)
    }

    /// Packets received by a host's interface.
    ///
    /// # Errors
    /// If the kernel does not provide counters.
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

/// Disables IPv6, whose constant multicast would be counted.
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
                // The experiment shows this message when it is skipped.
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
        // The first packets may be lost while the ports come up.
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
