//! Certificate authorities that validate certificates.
//!
//! An authority is not a node of the simulated world. The duration of a query is calculated before the simulation, by a
//! TCP exchange over a link of its own ([`taktwerk_netem`], with losses and delays): connection, request, lookup, answer.
//! In a hierarchy, the authorities are queried one after the other, from the issuer of the certificate to the root. The
//! sum becomes the cost of validation in a host profile. So queries do not compete with each other, for the authority's
//! processor or for the line of the session.

use core::time::Duration;
use taktwerk_netem::Profile;
use taktwerk_netem::tcp::{Config, Exchange, ExchangeError, exchange};

/// A certificate authority.
#[derive(Debug, Clone, PartialEq)]
pub struct Authority {
    /// Name.
    pub name: String,
    /// The link to it; `None` for a program on the same machine.
    pub link: Option<Profile>,
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of an answer: a revocation list, or a signed status.
    pub response: usize,
    /// Time to look up a certificate.
    pub lookup: Duration,
}

impl Authority {
    /// Duration of a query.
    ///
    /// # Errors
    /// The link loses everything, or there is nothing to send.
    pub fn ask(&self, seed: u64) -> Result<Duration, ExchangeError> {
        let Some(link) = &self.link else { return Ok(self.lookup) };
        let what = Exchange { request: self.request, response: self.response, count: 1 };
        let exchanged = exchange(link, &Config::linux(link.mtu), &what, seed)?;
        Ok(Duration::from_nanos(exchanged.connected.saturating_add(exchanged.took)) + self.lookup)
    }
}

/// Time to validate a certificate with this hierarchy, issuer first.
///
/// # Errors
/// As [`Authority::ask`].
pub fn validate(hierarchy: &[Authority], seed: u64) -> Result<Duration, ExchangeError> {
    (0..).zip(hierarchy).map(|(at, authority)| authority.ask(seed.wrapping_add(at))).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests fail by panicking
mod tests {
    use super::*;

    fn far(lookup_ms: u64) -> Authority {
        Authority {
            name: "root".into(),
            link: Some("rate=1mbit,delay=50ms".parse().unwrap()),
            request: 300,
            response: 12_000,
            lookup: Duration::from_millis(lookup_ms),
        }
    }

    #[test]
    fn remote_authorities_cost_round_trips_and_transmission_time() {
        let took = far(0).ask(1).unwrap();
        // Two round trips of 100 ms, and 12 kB at 1 Mbit/s.
        assert!((0.296..0.33).contains(&took.as_secs_f64()), "{took:?}");
        assert_eq!(far(700).ask(1).unwrap(), took + Duration::from_millis(700));
        let here = Authority { link: None, ..far(75) };
        assert_eq!(here.ask(1), Ok(Duration::from_millis(75)));
        assert_eq!(validate(&[far(0), far(10), here], 1), Ok(took * 2 + Duration::from_millis(85)));
        assert_eq!(validate(&[], 1), Ok(Duration::ZERO));
    }

    #[test]
    fn empty_requests_are_an_error() {
        assert!(Authority { request: 0, ..far(0) }.ask(1).is_err());
    }
}
