//! Answers for supervisors: is it alive, is it ready.

use crate::state::App;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;
use taktwerk_schema::ServerState;

/// Alive: this process answers. A supervisor restarts it if it does not.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready: the server is running and takes clients. A load balancer sends clients elsewhere if it does not.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> (StatusCode, String) {
    let state = app.subject.shared.live().current_state();
    if state == ServerState::RUNNING {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: the server's state is {}\n", state.0))
    }
}
