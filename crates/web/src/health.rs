//! Health checks for supervisors and load balancers.

use crate::state::App;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use taktwerk_schema::ServerState;

/// Liveness: this process responds. If it does not, a supervisor restarts it.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Parameters of `/readyz`.
#[derive(Debug, Deserialize)]
pub(crate) struct Ready {
    /// `history`: ready although the history cannot be stored, for load balancers of live values.
    exclude: Option<String>,
}

/// Readiness: the server is running, accepts clients such as the dashboard, and stores its history. If not, a load balancer
/// sends clients elsewhere.
pub(crate) async fn readyz(
    State(app): State<Arc<App>>,
    Query(parameters): Query<Ready>,
) -> (StatusCode, String) {
    let unready = |reason: String| (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n"));
    let state = app.subject.shared.live().current_state();
    if state != ServerState::RUNNING {
        return unready(format!("the server's state is {}", state.0));
    }
    let has_history = parameters.exclude.as_deref() != Some("history");
    let history = app.subject.history.as_ref().filter(|_| has_history);
    if history.is_some_and(|history| history.problem().is_some()) {
        // Not the reason: it names files, and anyone may ask.
        return unready("the history cannot be stored; the log says why".to_owned());
    }
    match app.reach.check(&app.subject).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => unready(format!("the dashboard cannot connect to its server: {reason}")),
    }
}
