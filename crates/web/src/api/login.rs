//! Logging on and off.

use super::{COOKIE, Problem, Who, cookie};
use crate::state::App;
use crate::visitor::{is_administrator, may_trust};
use axum::Extension;
use axum::Json;
use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use taktwerk_server::diagnostics::SessionRights;

/// Maximum length of a name or password, in bytes.
const TEXT_LEN_MAX: usize = 512;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    user: String,
    password: String,
}

/// The head of a request, for handlers that read the cookie themselves.
pub(crate) struct Head(Parts);

#[axum::async_trait]
impl FromRequestParts<Arc<App>> for Head {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        Ok(Self(parts.clone()))
    }
}

/// The visitor's user, and which pages are available.
pub(crate) async fn session(State(app): State<Arc<App>>, who: Result<Who, Problem>) -> Json<Value> {
    let config = app.subject.shared.config();
    let visitor = who.as_ref().ok().map(|who| &who.0);
    let rights = match visitor {
        Some(visitor) => visitor.rights().await.unwrap_or_default(),
        None => SessionRights::default(),
    };
    let is_user = visitor.is_some_and(|visitor| visitor.user.is_some());
    let is_administrator = is_user && is_administrator(&rights);
    Json(json!({
        "application": config.application_name.as_str(),
        "version": version(config),
        "user": visitor.and_then(|visitor| visitor.user.as_deref()),
        "isOpen": visitor.is_some(),
        "roles": visitor.map(|visitor| visitor.names(&rights)),
        "csrf": visitor.map(|visitor| &visitor.csrf),
        "mayTrust": is_user && may_trust(&rights),
        "hasSources": app.subject.sources.as_ref().is_some_and(|list| list.is_gateway()) && is_administrator,
        "isAdministrator": is_administrator,
    }))
}

/// The software version: that of the application, or of Taktwerk.
fn version(config: &taktwerk_server::ServerConfig) -> &str {
    let version = config.build_info.software_version.as_str();
    if version.is_empty() { env!("CARGO_PKG_VERSION") } else { version }
}

/// Logs on with a user and a password of the server.
pub(crate) async fn log_on(
    State(app): State<Arc<App>>,
    Extension(ConnectInfo(peer)): Extension<ConnectInfo<SocketAddr>>,
    Json(login): Json<Login>,
) -> Result<Response, Problem> {
    if login.user.is_empty() || login.user.len() > TEXT_LEN_MAX || login.password.len() > TEXT_LEN_MAX {
        return Err(Problem::bad_request("user and password must have 1 to 512 bytes"));
    }
    let address = peer.ip();
    if !app.logins.pass(address, &login.user, Instant::now()) {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many attempts; try again in a minute"));
    }
    let (cookie, visitor) =
        app.visitors.log_on(&app.subject, &login.user, &login.password).await.map_err(Problem::of_log_on)?;
    app.logins.succeeded(address, &login.user);
    let mut headers = HeaderMap::new();
    set_cookie(&app, &mut headers, &cookie, None);
    Ok((headers, Json(json!({ "user": visitor.user, "csrf": visitor.csrf }))).into_response())
}

/// Logs off.
pub(crate) async fn log_off(State(app): State<Arc<App>>, _: Who, head: Head) -> Response {
    if let Some(cookie) = cookie(&head.0) {
        app.visitors.log_off(cookie);
    }
    let mut headers = HeaderMap::new();
    set_cookie(&app, &mut headers, "", Some(0));
    (headers, StatusCode::NO_CONTENT).into_response()
}

fn set_cookie(app: &App, headers: &mut HeaderMap, value: &str, max_age: Option<u32>) {
    let secure = if app.settings.tls.is_some() { "; Secure" } else { "" };
    let age = max_age.map(|age| format!("; Max-Age={age}")).unwrap_or_default();
    let cookie = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, cookie);
    }
}
