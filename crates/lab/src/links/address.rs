//! Chooses the address of a server behind a link.

use std::net::SocketAddr;

/// The first address of a name, IPv4 before IPv6, because most servers listen on IPv4. Clients use the same rule, so
/// that they reach the same server with and without a link.
#[must_use]
pub fn first_address(found: impl IntoIterator<Item = SocketAddr>) -> Option<SocketAddr> {
    // `min_by_key` returns the first of equal keys.
    found.into_iter().min_by_key(SocketAddr::is_ipv6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_comes_first_and_then_the_order_of_the_resolver() {
        let first = |found: &[&str]| {
            first_address(found.iter().map(|it| it.parse().unwrap())).map(|address| address.to_string())
        };
        assert_eq!(first(&["[::1]:4840", "127.0.0.1:4840"]).as_deref(), Some("127.0.0.1:4840"));
        assert_eq!(first(&["[::1]:1", "10.0.0.2:1", "10.0.0.1:1"]).as_deref(), Some("10.0.0.2:1"));
        assert_eq!(first(&["[fe80::2]:1", "[fe80::1]:1"]).as_deref(), Some("[fe80::2]:1"));
        assert_eq!(first(&[]), None);
    }
}
