//! What every request has to pass, and what every answer carries.

use crate::state::App;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

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

/// How long a request may take until the answer begins, most of all to arrive: each holds a place.
const PATIENCE: Duration = Duration::from_secs(30);

/// Refuses requests for other hosts (DNS rebinding) and from other sites, and adds the headers.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let mut response = match refusal(&app, request.method(), request.headers()) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => in_time(next.run(request)).await,
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

async fn in_time(response: impl Future<Output = Response>) -> Response {
    let late = || (StatusCode::REQUEST_TIMEOUT, "The request did not arrive in time.\n").into_response();
    timeout(PATIENCE, response).await.unwrap_or_else(|_| late())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_does_not_arrive_is_given_up() {
        let begin = tokio::time::Instant::now();
        let response = in_time(std::future::pending()).await;
        assert_eq!((response.status(), begin.elapsed()), (StatusCode::REQUEST_TIMEOUT, PATIENCE));
        assert_eq!(in_time(async { StatusCode::OK.into_response() }).await.status(), StatusCode::OK);
    }

    #[test]
    fn ports_are_no_part_of_a_host_name() {
        let names = ["localhost:8080", "localhost", "[::1]:8080", "[::1]", "127.0.0.1:80", ""];
        assert_eq!(names.map(host_name), ["localhost", "localhost", "[::1]", "[::1]", "127.0.0.1", ""]);
    }
}
