//! Checks of every request, and security headers of every response.

use crate::state::App;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The header for the visitor's token, required in every request with side effects.
pub(crate) const CSRF_HEADER: &str = "x-csrf-token";

/// Only the page's own files are loaded and executed, no site may frame the page, and content types are not guessed.
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

/// Timeout until the response begins. It covers slow requests, because each occupies a slot.
const PATIENCE: Duration = Duration::from_secs(30);

/// Refuses requests for other hosts (DNS rebinding) and from other sites, and adds the security headers.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let mut response = match host(&request) {
        None => (StatusCode::BAD_REQUEST, "The request must have one valid Host header.\n").into_response(),
        Some(host) => match refusal(&app, host, request.method(), request.headers()) {
            Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
            None => in_time(next.run(request)).await,
        },
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

fn refusal(app: &App, host: &str, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if !app.hosts.is_empty() && !app.hosts.contains(&host_name(host).to_ascii_lowercase()) {
        return Some("This host name is not allowed. Add it to host_names in the section [web].\n");
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

/// The Host header (RFC 9112 §3.2). `None` if the request must be refused: the header is repeated, invalid, differs
/// from the request line, or is missing in HTTP/1.1.
fn host(request: &Request<Body>) -> Option<&str> {
    let mut all = request.headers().get_all(header::HOST).iter();
    let host = match (all.next(), all.next()) {
        (None, _) if request.version() < Version::HTTP_11 => "",
        (Some(host), None) => host.to_str().ok().filter(|host| is_host(host))?,
        _ => return None,
    };
    let named = request.uri().authority();
    named.is_none_or(|named| named.as_str().eq_ignore_ascii_case(host)).then_some(host)
}

/// Whether the text is a host with an optional port and nothing else.
fn is_host(text: &str) -> bool {
    let Ok(parsed) = text.parse::<Authority>() else { return false };
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    let port = text.strip_prefix(parsed.host()).map(|rest| rest.strip_prefix(':').unwrap_or(rest));
    !text.contains('@') && !parsed.host().is_empty() && port.is_some_and(is_port)
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
    async fn incomplete_requests_time_out() {
        let begin = tokio::time::Instant::now();
        let response = in_time(std::future::pending()).await;
        assert_eq!((response.status(), begin.elapsed()), (StatusCode::REQUEST_TIMEOUT, PATIENCE));
        assert_eq!(in_time(async { StatusCode::OK.into_response() }).await.status(), StatusCode::OK);
    }

    #[test]
    fn requests_need_exactly_one_valid_host() {
        let of = |hosts: &[&str]| {
            let mut request = Request::builder().uri("/");
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            host(&request.body(Body::empty()).unwrap()).map(str::to_owned)
        };
        for good in ["localhost", "127.0.0.1:28080", "[::1]", "[::1]:80", "plant.example.com:443"] {
            assert_eq!(of(&[good]).as_deref(), Some(good));
        }
        for bad in [
            "127.0.0.1:28080@evil",
            "evil@127.0.0.1",
            "localhost:x",
            "localhost:99999",
            "a b",
            "a/b",
            "",
            ":80",
        ] {
            assert_eq!(of(&[bad]), None, "{bad}");
        }
        assert_eq!(of(&["localhost", "evil"]), None);
        assert_eq!(of(&["localhost", "localhost"]), None);
        assert_eq!(of(&[]), None);
        let named = |uri: &str| {
            let request = Request::builder().uri(uri).header(header::HOST, "localhost").body(Body::empty());
            host(&request.unwrap()).is_some()
        };
        assert!(named("http://localhost/") && !named("http://evil/"));
    }

    #[test]
    fn ports_are_removed_from_host_names() {
        let names = ["localhost:8080", "localhost", "[::1]:8080", "[::1]", "127.0.0.1:80", ""];
        assert_eq!(names.map(host_name), ["localhost", "localhost", "[::1]", "[::1]", "127.0.0.1", ""]);
    }
}
