//! The last lines of the log.

use super::{Problem, Who};
use crate::state::App;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) async fn get(State(app): State<Arc<App>>, Who(visitor): Who) -> Result<Json<Value>, Problem> {
    if !visitor.is_administrator().await {
        return Err(Problem::forbidden(
            "the log requires a user with the role SecurityAdmin or ConfigureAdmin",
        ));
    }
    let lines = app.subject.log.as_ref().map(|log| log.lines()).unwrap_or_default();
    let lines: Vec<Value> = lines
        .into_iter()
        .map(|line| {
            let time =
                line.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
            json!({ "time": time, "level": line.level.as_str(), "target": line.target, "text": line.text })
        })
        .collect();
    Ok(Json(json!({ "lines": lines })))
}
