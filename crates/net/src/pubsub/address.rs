//! The URLs of connections (Part 14 §7.3.2.1, §7.3.3, §7.3.4).

use super::PubSubError;
use core::fmt;
use core::net::SocketAddr;
use std::net::ToSocketAddrs;

/// The IANA port of OPC UA, also over UDP.
const PORT: u16 = 4840;

/// Default discovery address (Part 14 §7.3.2.1).
pub const DISCOVERY_URL: &str = "opc.udp://224.0.2.14:4840";

/// A VLAN and the priority in it (IEEE 802.1Q).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// VLAN id, 0 to 4094; 0 carries a priority only.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
}

/// The address that a connection sends to or receives from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// `opc.udp://host[:port]`, resolved.
    Udp(SocketAddr),
    /// `opc.eth://host[:vid[.pcp]]` with a MAC address.
    Ethernet {
        /// MAC address of the station or group.
        mac: [u8; 6],
        /// The VLAN, if there is one.
        vlan: Option<VlanTag>,
    },
    /// `mqtt://` or `mqtts://`, parsed by the broker client.
    Broker(String),
}

impl Address {
    /// Parses a URL and resolves its host name.
    ///
    /// # Errors
    /// The URL is invalid, or the host name cannot be resolved.
    pub fn parse(url: &str) -> Result<Self, PubSubError> {
        let wrong = |reason: &str| PubSubError::address(url, reason);
        if url.starts_with("mqtt://") || url.starts_with("mqtts://") {
            return Ok(Self::Broker(url.to_owned()));
        }
        if let Some(rest) = url.strip_prefix("opc.eth://") {
            return ethernet(rest.trim_end_matches('/')).map_err(|reason| wrong(&reason));
        }
        let Some(rest) = url.strip_prefix("opc.udp://") else {
            return Err(wrong(
                "write opc.udp://host[:port], opc.eth://mac[:vid[.pcp]] or mqtt://host[:port]",
            ));
        };
        let host = rest.split('/').next().unwrap_or_default();
        let has_port = match host.rfind(']') {
            Some(end) => host.get(end + 1..).is_some_and(|tail| tail.starts_with(':')),
            None => host.contains(':'),
        };
        let target = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
        let found = target.to_socket_addrs().map_err(|error| wrong(&format!("{error}; write host:port")))?;
        // Prefer IPv4 if a name has addresses of both kinds: PubSub networks use it.
        let mut found: Vec<SocketAddr> = found.collect();
        found.sort_by_key(SocketAddr::is_ipv6);
        found.first().copied().map(Self::Udp).ok_or_else(|| wrong("the name has no address"))
    }

    /// Whether it is a multicast address.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        match self {
            Self::Udp(address) => address.ip().is_multicast(),
            Self::Ethernet { mac, .. } => mac.first().is_some_and(|first| first & 1 == 1),
            Self::Broker(_) => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "opc.udp://{address}"),
            Self::Ethernet { mac, vlan } => {
                let text: Vec<_> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
                write!(f, "opc.eth://{}", text.join("-"))?;
                match vlan {
                    Some(tag) => write!(f, ":{}.{}", tag.id, tag.priority),
                    None => Ok(()),
                }
            }
            Self::Broker(url) => f.write_str(url),
        }
    }
}

fn ethernet(text: &str) -> Result<Address, String> {
    let (host, tag) = match text.split_once(':') {
        // A MAC address may also be written with colons.
        Some(_) if text.matches(':').count() >= 5 => {
            let end = text.match_indices(':').nth(5).map_or(text.len(), |(at, _)| at);
            (text.get(..end).unwrap_or(text), text.get(end + 1..))
        }
        Some((host, tag)) => (host, Some(tag)),
        None => (text, None),
    };
    let bytes: Vec<u8> =
        host.split(['-', ':']).map(|part| u8::from_str_radix(part, 16)).collect::<Result<_, _>>().map_err(
            |_| format!("{host:?} is not a MAC address; write six bytes such as 01-00-5e-00-00-01"),
        )?;
    let mac = <[u8; 6]>::try_from(bytes).map_err(|_| "a MAC address has six bytes".to_owned())?;
    let vlan = tag.map(vlan).transpose()?;
    Ok(Address::Ethernet { mac, vlan })
}

fn vlan(text: &str) -> Result<VlanTag, String> {
    let wrong = || format!("{text:?} is not a VLAN; write id or id.priority such as 5.6");
    let (id, priority) = text.split_once('.').unwrap_or((text, "0"));
    let (id, priority) = (id.parse().map_err(|_| wrong())?, priority.parse().map_err(|_| wrong())?);
    if id > 4094 || priority > 7 { Err(wrong()) } else { Ok(VlanTag { id, priority }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let shown = |url: &str| Address::parse(url).map(|address| address.to_string());
        assert_eq!(shown("opc.udp://239.0.0.1").unwrap(), "opc.udp://239.0.0.1:4840");
        assert_eq!(shown("opc.udp://127.0.0.1:5000/").unwrap(), "opc.udp://127.0.0.1:5000");
        assert_eq!(shown("opc.udp://[ff02::5]").unwrap(), "opc.udp://[ff02::5]:4840");
        assert_eq!(shown("opc.udp://[::1]:99").unwrap(), "opc.udp://[::1]:99");
        assert_eq!(shown("opc.eth://01-00-5E-00-00-01").unwrap(), "opc.eth://01-00-5e-00-00-01");
        assert_eq!(shown("opc.eth://01-00-5E-00-00-01:5.6").unwrap(), "opc.eth://01-00-5e-00-00-01:5.6");
        assert_eq!(shown("opc.eth://01:00:5E:00:00:01:7").unwrap(), "opc.eth://01-00-5e-00-00-01:7.0");
        assert!(Address::parse("opc.udp://239.0.0.1").unwrap().is_multicast());
        assert!(Address::parse("opc.eth://01-00-5E-00-00-01").unwrap().is_multicast());
        assert!(!Address::parse("opc.eth://02-00-5E-00-00-01").unwrap().is_multicast());
        for wrong in [
            "",
            "udp://x",
            "opc.udp://",
            "opc.eth://01-02",
            "opc.eth://01-00-5E-00-00-01:5000",
            "opc.eth://x",
        ] {
            let error = shown(wrong).unwrap_err();
            assert!(matches!(error, PubSubError::Address { .. }), "{wrong}: {error}");
        }
    }
}
