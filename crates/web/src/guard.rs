//! What every request has to pass, and what every answer carries.

use crate::state::App;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The header that has to carry a visitor's token in every request that changes something.
pub(crate) const CSRF_HEADER: &str = "x-csrf-token";

/// Only our own files run and load; nobody frames the page; types are what we say.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; \
         base-uri 'none'; form-action 'self'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Refuses requests for other hosts (DNS rebinding) and from other sites, and adds the headers.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let mut response = match refusal(&app, request.method(), request.headers()) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn refusal(app: &App, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    if !app.hosts.is_empty() && !app.hosts.contains(&host_name(host).to_ascii_lowercase()) {
        return Some("This host name is not served. Add it to host_names in the section [web].\n");
    }
    if method == Method::GET || method == Method::HEAD {
        return None;
    }
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return Some("Requests from other sites are refused.\n");
    }
    let foreign = text(header::ORIGIN).is_some_and(|origin| {
        origin.split_once("://").is_none_or(|(_, origin)| !origin.eq_ignore_ascii_case(host))
    });
    foreign.then_some("Requests from other sites are refused.\n")
}

/// A Host header without its port.
fn host_name(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host.ends_with(']') => host.get(..colon).unwrap_or(host),
        _ => host,
    }
}

/// So many attempts per address and span; more have to wait.
#[derive(Debug)]
pub(crate) struct RateLimit {
    attempts_max: u32,
    span: Duration,
    addresses: Mutex<BTreeMap<IpAddr, (Instant, u32)>>,
}

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

impl RateLimit {
    pub(crate) fn new(attempts_max: u32, span: Duration) -> Self {
        Self { attempts_max, span, addresses: Mutex::default() }
    }

    /// Counts an attempt. Whether it may be made.
    pub(crate) fn pass(&self, address: IpAddr, now: Instant) -> bool {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&address) {
            addresses.retain(|_, (since, _)| now.saturating_duration_since(*since) < self.span);
            if addresses.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        let (since, count) = addresses.entry(address).or_insert((now, 0));
        if now.saturating_duration_since(*since) >= self.span {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= self.attempts_max
    }

    /// Forgets the attempts of an address: one of them succeeded.
    pub(crate) fn succeeded(&self, address: IpAddr) {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_no_part_of_a_host_name() {
        let names = ["localhost:8080", "localhost", "[::1]:8080", "[::1]", "127.0.0.1:80", ""];
        assert_eq!(names.map(host_name), ["localhost", "localhost", "[::1]", "[::1]", "127.0.0.1", ""]);
    }

    #[test]
    fn attempts_are_limited_per_address_and_span() {
        let limit = RateLimit::new(2, Duration::from_secs(60));
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let now = Instant::now();
        assert_eq!([(); 3].map(|()| limit.pass(one, now)), [true, true, false]);
        assert!(limit.pass(other, now));
        assert!(limit.pass(one, now + Duration::from_secs(60)));
        limit.succeeded(one);
        assert_eq!([(); 3].map(|()| limit.pass(one, now)), [true, true, false]);
    }

    #[test]
    fn the_addresses_are_bounded() {
        let limit = RateLimit::new(1, Duration::from_secs(60));
        let now = Instant::now();
        for number in 0..ADDRESSES_MAX as u32 {
            assert!(limit.pass(IpAddr::from(number.to_be_bytes()), now));
        }
        assert!(!limit.pass(IpAddr::from([255, 0, 0, 1]), now));
        assert!(limit.pass(IpAddr::from([255, 0, 0, 1]), now + Duration::from_secs(61)));
    }
}
