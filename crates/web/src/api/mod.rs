//! The API of the page: JSON over HTTP, and values as server-sent events.

mod alarms;
mod certificates;
mod live;
mod log;
mod login;
mod nodes;
mod problem;
mod pubsub;
mod server;
mod sources;
mod values;

pub(crate) use problem::Problem;

use crate::state::App;
use crate::visitor::Visitor;
use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::routing::{get, post};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The name of the cookie.
const COOKIE: &str = "taktwerk";

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/session", get(login::session))
        .route("/login", post(login::log_on))
        .route("/logout", post(login::log_off))
        .route("/browse", get(nodes::browse))
        .route("/node", get(nodes::node))
        .route("/write", post(nodes::write))
        .route("/live", post(live::open))
        .route("/history", get(values::history))
        .route("/server", get(server::get))
        .route("/sources", get(sources::list))
        .route("/pubsub", get(pubsub::list))
        .route("/alarms", get(alarms::list).post(alarms::operate))
        .route("/certificates", get(certificates::list))
        .route("/certificates/trust", post(certificates::trust))
        .route("/log", get(log::get))
}

/// The visitor of a request. Requests with side effects must contain the visitor's token.
pub(crate) struct Who(pub(crate) Arc<Visitor>);

#[axum::async_trait]
impl FromRequestParts<Arc<App>> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let found = cookie(parts).and_then(|cookie| app.visitors.find(cookie));
        let visitor = match found {
            Some(visitor) => visitor,
            None if app.settings.anonymous && app.subject.is_anonymous_allowed => {
                app.visitors.anonymous(&app.subject).await?
            }
            None => return Err(Problem::new(StatusCode::UNAUTHORIZED, "log on first")),
        };
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let given = parts.headers.get(crate::guard::CSRF_HEADER);
            let given = given.map(|value| value.as_bytes()).unwrap_or_default();
            if !bool::from(given.ct_eq(visitor.csrf.as_bytes())) {
                return Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    "the token of this page has expired; reload the page",
                ));
            }
        }
        Ok(Self(visitor))
    }
}

/// The value of the session cookie.
pub(crate) fn cookie(parts: &Parts) -> Option<&str> {
    let cookies = parts.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE).then_some(value))
}
