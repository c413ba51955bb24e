//! Health checks for supervisors and load balancers.

use crate::state::App;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;
use taktwerk_schema::ServerState;

/// Liveness: this process responds. If it does not, a supervisor restarts it.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Readiness: the server is running and accepts clients such as the dashboard. If not, a load balancer sends clients
/// elsewhere.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> (StatusCode, String) {
    let unready = |reason: String| (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n"));
    let state = app.subject.shared.live().current_state();
    if state != ServerState::RUNNING {
        return unready(format!("the server's state is {}", state.0));
    }
    match app.reach.check(&app.subject).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => unready(format!("the dashboard cannot connect to its server: {reason}")),
    }
}
