//! Values as they change: one OPC UA subscription per stream, one message per publishing cycle.

use super::values::append;
use super::{Problem, Who, nodes::parse};
use crate::visitor::{STREAMS_MAX, Visitor};
use axum::Json;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use taktwerk::client::{Item, SubscriptionOptions, Update, Updates};

/// Nodes of one stream.
const NODES_MAX: usize = 10_000;
/// Changes in one message.
const CHANGES_MAX: usize = 20_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    nodes: Vec<String>,
    /// Milliseconds.
    interval: u32,
}

/// Gives its place back when the stream ends.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(visitor: &Visitor) -> Result<Self, Problem> {
        // All anonymous visitors share one session and so its streams.
        let max = if visitor.user.is_some() { STREAMS_MAX } else { STREAMS_MAX * 8 };
        let count = &visitor.streams;
        let taken = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < max).then_some(n + 1));
        match taken {
            Ok(_) => Ok(Self(Arc::clone(count))),
            Err(_) => Err(Problem::new(
                axum::http::StatusCode::TOO_MANY_REQUESTS,
                "too many pages are open; close one",
            )),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a stream needs as long as it lives. The visitor's session stays open with it.
struct State {
    updates: Updates,
    /// Positions of nodes in the request, by item.
    positions: BTreeMap<u32, usize>,
    _place: Place,
    _visitor: Arc<Visitor>,
}

/// Opens a stream: first the status of each node (`null` if it is good), then `[position, value, status, milliseconds]`
/// of each change.
pub(crate) async fn open(Who(visitor): Who, Json(wanted): Json<Wanted>) -> Result<Response, Problem> {
    if wanted.nodes.is_empty() || wanted.nodes.len() > NODES_MAX {
        return Err(Problem::bad_request(format!("a stream has 1 to {NODES_MAX} nodes")));
    }
    let place = Place::take(&visitor)?;
    let ids = wanted.nodes.iter().map(|node| parse(node)).collect::<Result<Vec<_>, _>>()?;
    let interval = Duration::from_millis(u64::from(wanted.interval.clamp(100, 60_000)));
    let subscription = visitor.client.subscribe(SubscriptionOptions::every(interval)).await?;
    let (handle, updates) = subscription.split();
    let results = handle.monitor_many(ids.into_iter().map(Item::new)).await?;
    let positions = results.iter().enumerate().map(|(position, (item, _))| (*item, position)).collect();
    let status = |status: &taktwerk::StatusCode| status.is_bad().then(|| status.to_string());
    let statuses: Vec<Option<String>> = results.iter().map(|(_, result)| status(result)).collect();
    let first = Event::default().event("items").data(json!(statuses).to_string());
    let state = State { updates, positions, _place: place, _visitor: visitor };
    let events = stream::once(async { Ok::<_, Infallible>(first) }).chain(stream::unfold(state, next));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

/// Waits for changes, and takes all that are there.
async fn next(mut state: State) -> Option<(Result<Event, Infallible>, State)> {
    let mut out = Vec::with_capacity(1024);
    let mut count = 0;
    loop {
        let update = if count == 0 {
            state.updates.next().await?
        } else {
            match state.updates.next().now_or_never() {
                Some(Some(update)) if count < CHANGES_MAX => update,
                Some(Some(update)) => {
                    add(&state.positions, &update, &mut out);
                    break;
                }
                _ => break,
            }
        };
        if add(&state.positions, &update, &mut out) {
            count += 1;
        }
    }
    out.push(b']');
    let text = String::from_utf8(out).unwrap_or_else(|_| "[]".to_owned());
    Some((Ok(Event::default().data(text)), state))
}

/// Appends a change. Whether it is one.
fn add(positions: &BTreeMap<u32, usize>, update: &Update, out: &mut Vec<u8>) -> bool {
    let Update::Change(change) = update else { return false };
    let Some(position) = positions.get(&change.item) else { return false };
    out.push(if out.is_empty() { b'[' } else { b',' });
    out.extend_from_slice(format!("[{position},").as_bytes());
    append(&change.value, out);
    out.push(b']');
    true
}
