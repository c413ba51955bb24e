//! Certificate authorities that are asked whether a certificate is still good.
//!
//! An authority is a node at the far end of a link. Asking it opens a TCP connection, sends a request, waits until the
//! authority has looked it up, and receives the answer. A hierarchy is asked one authority after the other, from the issuer
//! of the certificate up to the root. The link is that of [`taktwerk_netem`], with its losses and delays.

use core::time::Duration;
use taktwerk_netem::Profile;
use taktwerk_netem::tcp::{Config, Exchange, ExchangeError, exchange};

/// One authority.
#[derive(Debug, Clone, PartialEq)]
pub struct Authority {
    /// What people call it.
    pub name: String,
    /// The link to it; `None` is a program on the same machine.
    pub link: Option<Profile>,
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of an answer: a revocation list, or a signed status.
    pub response: usize,
    /// How long it takes to look up a certificate.
    pub lookup: Duration,
}

impl Authority {
    /// How long asking it takes.
    ///
    /// # Errors
    /// The link lets nothing through, or nothing is to be sent.
    pub fn ask(&self, seed: u64) -> Result<Duration, ExchangeError> {
        let Some(link) = &self.link else { return Ok(self.lookup) };
        let what = Exchange { request: self.request, response: self.response, count: 1 };
        let exchanged = exchange(link, &Config::linux(link.mtu), &what, seed)?;
        Ok(Duration::from_nanos(exchanged.connected.saturating_add(exchanged.took)) + self.lookup)
    }
}

/// How long it takes to validate a certificate with this hierarchy, the issuer first.
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
    fn a_far_authority_costs_round_trips_and_line_time() {
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
    fn nothing_to_ask_is_an_error() {
        assert!(Authority { request: 0, ..far(0) }.ask(1).is_err());
    }
}
