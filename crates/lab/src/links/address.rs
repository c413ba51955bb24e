//! Which of a server's addresses a link leads to.

use std::net::SocketAddr;

/// The first of those that a name stands for, IPv4 before IPv6 as servers mostly listen there. Clients do the same, so that
/// they reach through a link whom they reach without it.
#[must_use]
pub fn first_address(found: impl IntoIterator<Item = SocketAddr>) -> Option<SocketAddr> {
    // Of those with the same key it is the first.
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
