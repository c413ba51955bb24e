//! Origins of connections: addresses and networks as numbers for comparing and counting.

use core::net::IpAddr;

/// The origin of a connection: an IPv4 address, or the /64 network of an IPv6 address, because a host controls all
/// addresses of such a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(u64);

impl Origin {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            // No IPv6 /64 network except multicast begins with 16 ones, so the numbers of both families do not overlap.
            IpAddr::V4(address) => Self(0xffff << 48 | u64::from(u32::from(address))),
            IpAddr::V6(address) => Self((u128::from(address) >> 64) as u64),
        }
    }
}

/// The network around an [`Origin`]: the first 24 bits of an IPv4 address, or 48 of an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Network(u64);

impl Network {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let Origin(origin) = address.into();
        let host_bits = if address.to_canonical().is_ipv4() { 8 } else { 16 };
        Self(origin >> host_bits << host_bits)
    }
}
