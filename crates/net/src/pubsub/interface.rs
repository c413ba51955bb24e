//! Network interfaces, by name or by address.

use super::PubSubError;
use core::net::{IpAddr, Ipv4Addr};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::LinkAddr;

/// A network interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index; 0 lets the kernel's routes choose.
    pub index: u32,
    /// One of its IPv4 addresses, if it has one.
    pub ipv4: Option<Ipv4Addr>,
    /// Its Ethernet address, if it has one.
    pub(crate) link: Option<LinkAddr>,
}

impl Interface {
    /// Lets the kernel's routes choose the interface.
    #[must_use]
    pub fn any() -> Self {
        Self { name: String::new(), index: 0, ipv4: None, link: None }
    }

    /// The loopback interface.
    ///
    /// # Errors
    /// There is no loopback interface.
    pub fn loopback() -> Result<Self, PubSubError> {
        Self::find("127.0.0.1").or_else(|_| Self::find("lo"))
    }

    /// Finds the interface with a name such as `eth0` or an address such as `192.168.1.7`. Empty text gives
    /// [`Self::any`].
    ///
    /// # Errors
    /// There is no such interface; the error lists the existing ones.
    pub fn find(text: &str) -> Result<Self, PubSubError> {
        if text.is_empty() {
            return Ok(Self::any());
        }
        let wrong = |reason: String| PubSubError::Interface { name: text.to_owned(), reason };
        let wanted: Option<IpAddr> = text.parse().ok();
        let all: Vec<_> = getifaddrs().map_err(|error| wrong(error.to_string()))?.collect();
        let has_address = |entry: &nix::ifaddrs::InterfaceAddress| {
            let Some(address) = &entry.address else { return false };
            let ip = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            let ip = ip.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())));
            ip.is_some() && ip == wanted
        };
        let name = if wanted.is_some() {
            all.iter().find(|entry| has_address(entry)).map(|entry| entry.interface_name.clone())
        } else {
            all.iter().find(|entry| entry.interface_name == text).map(|entry| entry.interface_name.clone())
        };
        let Some(name) = name else {
            let mut names: Vec<_> = all.iter().map(|entry| entry.interface_name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            return Err(wrong(format!("this machine has {}", names.join(", "))));
        };
        let own = || all.iter().filter(|entry| entry.interface_name == name);
        let addresses = || own().filter_map(|entry| entry.address.as_ref());
        let link = addresses().find_map(|address| address.as_link_addr().copied());
        let ipv4 = match wanted {
            Some(IpAddr::V4(v4)) => Some(v4),
            _ => addresses().find_map(|address| Some(address.as_sockaddr_in()?.ip())),
        };
        let index = nix::net::if_::if_nametoindex(name.as_str()).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { name, index, ipv4, link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_by_name_and_by_address() {
        let by_name = Interface::find("lo").unwrap();
        let by_address = Interface::find("127.0.0.1").unwrap();
        assert_eq!((by_name.index, &by_name.name), (by_address.index, &by_address.name));
        assert_eq!(by_name.ipv4, Some(Ipv4Addr::LOCALHOST));
        assert!(by_name.index > 0);
        assert_eq!(Interface::find("").unwrap().index, 0);
        let error = Interface::find("nosuch0").unwrap_err().to_string();
        assert!(error.contains("this machine has") && error.contains("lo"), "{error}");
        assert!(Interface::find("192.0.2.77").is_err());
    }
}
