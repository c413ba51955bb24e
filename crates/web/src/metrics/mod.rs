//! `/metrics`: metrics of the server, the process, and additional collectors.

mod headroom;
mod history;
mod process;
mod server;

use crate::exposition::{Collector, exposition};
use crate::settings::Access;
use crate::state::App;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use taktwerk_server::ServerShared;

pub use history::HistoryMetrics;

/// The metrics of server and process.
pub(crate) fn of_server(shared: &Arc<ServerShared>) -> [Arc<dyn Collector>; 3] {
    [
        Arc::new(server::ServerMetrics(Arc::clone(shared))),
        Arc::new(headroom::HeadroomMetrics::of(shared)),
        Arc::new(process::ProcessMetrics),
    ]
}

/// `/metrics`.
pub(crate) async fn get(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let allowed = match &app.settings.metrics {
        Access::Open => true,
        Access::Closed => false,
        Access::Token(token) => {
            let given = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
            let given = given.strip_prefix(b"Bearer ").unwrap_or_default();
            bool::from(given.ct_eq(token.as_bytes()))
        }
    };
    if !allowed {
        let advice = "Metrics need a token here. Set metrics_token_file in the section [web], and send the token as \
                      \"Authorization: Bearer TOKEN\".\n";
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], advice).into_response();
    }
    let visitors: Arc<dyn Collector> =
        Arc::new(server::DashboardMetrics(app.visitors.len(), app.backlogs.counts()));
    let own = of_server(&app.subject.shared).into_iter().chain([visitors]);
    match exposition(own.chain(app.subject.collectors.iter().cloned())) {
        Ok(text) => {
            let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, media_type)], text).into_response()
        }
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "The metrics cannot be written.\n").into_response(),
    }
}
