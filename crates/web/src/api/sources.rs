//! The sources and destinations of a gateway.

use super::{Problem, Who};
use crate::sources::{DestinationState, SourceState};
use crate::state::App;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn list(State(app): State<Arc<App>>, Who(visitor): Who) -> Result<Json<Value>, Problem> {
    if !visitor.is_administrator().await {
        // Addresses of devices are not shown to everyone.
        return Err(Problem::forbidden(
            "sources require a user with the role SecurityAdmin or ConfigureAdmin",
        ));
    }
    let list = app.subject.sources.as_ref();
    let sources = list.map(|list| list.sources()).unwrap_or_default();
    let destinations = list.map(|list| list.destinations()).unwrap_or_default();
    Ok(Json(json!({
        "sources": sources.into_iter().map(shown).collect::<Vec<_>>(),
        "destinations": destinations.into_iter().map(destination).collect::<Vec<_>>(),
    })))
}

fn destination(destination: DestinationState) -> Value {
    json!({
        "name": destination.name,
        "description": destination.description,
        "isConnected": destination.is_connected,
        "queued": destination.queued,
        "parked": destination.parked,
        "queuedBytes": destination.queued_bytes,
        "queueBytesMax": destination.queue_bytes_max,
        "oldest": destination.oldest,
        "sent": destination.sent,
        "dropped": destination.dropped,
        "refused": destination.refused,
        "errors": destination.errors,
        "lastSent": destination.last_sent,
        "lastError": destination.last_error,
        "loss": destination.loss,
    })
}

fn shown(source: SourceState) -> Value {
    json!({
        "name": source.name,
        "description": source.description,
        "isConnected": source.is_connected,
        "tags": source.tags,
        "uncertain": source.uncertain,
        "lost": source.lost,
        "requests": source.requests,
        "answers": source.answers,
        "errors": source.errors,
        "values": source.values,
        "dropped": source.dropped,
        "invalid": source.invalid,
        "missed": source.missed,
        "writeErrors": source.write_errors,
        "lastAnswer": source.last_answer,
        "lastError": source.last_error,
        "incomplete": source.incomplete,
    })
}
