//! Values as they change: one OPC UA subscription per stream, one message per publishing cycle.

use super::values::{append_content, append_status, time_of};
use super::{Problem, Who, nodes::parse};
use crate::streams::Stream;
use crate::visitor::Visitor;
use axum::extract::ConnectInfo;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use futures_util::{FutureExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::DataValue;
use taktwerk::client::{Item, SubscriptionOptions, Update, Updates};
use tokio::time::{Instant, timeout_at};

/// Nodes of one stream.
const NODES_MAX: usize = 10_000;
/// Changes in one message.
const CHANGES_MAX: usize = 20_000;
/// How long a stream that is to end waits for values, behind its interval.
const ONCE_MAX: Duration = Duration::from_secs(5);
/// Bytes of one message, which ends with the change that exceeds them: values may be long.
const MESSAGE_LEN_MAX: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    nodes: Vec<String>,
    /// Milliseconds.
    interval: u32,
    /// Ends when each node has given its value: for pages that have no connection to spare for a stream.
    #[serde(default)]
    once: bool,
}

/// What a stream needs as long as it lives. The visitor's session stays open with it.
struct State {
    updates: Updates,
    /// Positions of nodes in the request, by item.
    positions: BTreeMap<u32, usize>,
    /// With what it ends, if it is to end.
    once: Option<Once>,
    _stream: Stream,
    _visitor: Arc<Visitor>,
}

/// What a stream that ends waits for.
struct Once {
    /// Items that have given no value yet.
    missing: BTreeSet<u32>,
    /// It waits no longer than this.
    end: Instant,
}

/// Opens a stream: first the status of each node (`null` if it is good), then changes: `{"time": T, "changes": […]}` with
/// `[position, value, status, milliseconds after T]` of each. Trailing elements that are `null` or 0 are left out, because most
/// values are good and many have the same time.
pub(crate) async fn open(
    Who(visitor): Who,
    Extension(ConnectInfo(peer)): Extension<ConnectInfo<SocketAddr>>,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    if wanted.nodes.is_empty() || wanted.nodes.len() > NODES_MAX {
        return Err(Problem::bad_request(format!("a stream has 1 to {NODES_MAX} nodes")));
    }
    let stream = visitor
        .streams
        .open(peer.ip(), visitor.user.is_none())
        .ok_or_else(|| Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many pages are open; close one"))?;
    let ids = wanted.nodes.iter().map(|node| parse(node)).collect::<Result<Vec<_>, _>>()?;
    let interval = Duration::from_millis(u64::from(wanted.interval.clamp(100, 60_000)));
    let subscription = visitor.client.subscribe(SubscriptionOptions::every(interval)).await?;
    let (handle, updates) = subscription.split();
    let results = handle.monitor_many(ids.into_iter().map(Item::new)).await?;
    let positions = results.iter().enumerate().map(|(position, (item, _))| (*item, position)).collect();
    let status = |status: &taktwerk::StatusCode| status.is_bad().then(|| status.to_string());
    let statuses: Vec<Option<String>> = results.iter().map(|(_, result)| status(result)).collect();
    let first = Event::default().event("items").data(json!(statuses).to_string());
    let missing = || results.iter().filter(|(_, status)| !status.is_bad()).map(|(item, _)| *item).collect();
    let once = wanted.once.then(|| Once { missing: missing(), end: Instant::now() + interval + ONCE_MAX });
    let state = State { updates, positions, once, _stream: stream, _visitor: visitor };
    let events = stream::once(async { Ok::<_, Infallible>(first) }).chain(stream::unfold(state, next));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

/// Waits for changes, and takes all that are there.
async fn next(mut state: State) -> Option<(Result<Event, Infallible>, State)> {
    let mut out = Changes::default();
    while !out.is_full() {
        let update = if out.count == 0 {
            match &state.once {
                None => state.updates.next().await?,
                Some(once) if once.missing.is_empty() => return None,
                Some(once) => timeout_at(once.end, state.updates.next()).await.ok()??,
            }
        } else {
            match state.updates.next().now_or_never() {
                Some(Some(update)) => update,
                _ => break,
            }
        };
        if let (Some(once), Update::Change(change)) = (&mut state.once, &update) {
            once.missing.remove(&change.item);
        }
        add(&state.positions, &update, &mut out);
    }
    Some((Ok(Event::default().data(out.message())), state))
}

/// Appends an update, if it is a change.
fn add(positions: &BTreeMap<u32, usize>, update: &Update, out: &mut Changes) {
    let Update::Change(change) = update else { return };
    if let Some(position) = positions.get(&change.item) {
        out.add(*position, &change.value);
    }
}

/// Changes as they are sent.
#[derive(Default)]
struct Changes {
    /// Elements of the list, with a comma between them.
    list: Vec<u8>,
    /// How many there are.
    count: usize,
    /// The time of the first.
    time: i64,
}

impl Changes {
    fn is_full(&self) -> bool {
        self.count >= CHANGES_MAX || self.list.len() >= MESSAGE_LEN_MAX
    }

    fn add(&mut self, position: usize, value: &DataValue) {
        let time = time_of(value);
        self.count += 1;
        if self.list.is_empty() {
            self.time = time;
        } else {
            self.list.push(b',');
        }
        self.list.extend_from_slice(format!("[{position},").as_bytes());
        append_content(value, &mut self.list);
        let (status, after) = (value.status(), time.saturating_sub(self.time));
        if status != taktwerk::StatusCode::GOOD || after != 0 {
            self.list.push(b',');
            append_status(status, &mut self.list);
        }
        if after != 0 {
            self.list.extend_from_slice(format!(",{after}").as_bytes());
        }
        self.list.push(b']');
    }

    fn message(self) -> String {
        // Whatever one value is made of, the others are told.
        let list = String::from_utf8_lossy(&self.list);
        format!("{{\"time\":{},\"changes\":[{list}]}}", self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::{StatusCode, UtcTime, Variant};

    #[test]
    fn changes_leave_out_what_most_of_them_have() {
        let value = |number: f64, millis: u64, status: StatusCode| DataValue {
            value: Some(Variant::Double(number)),
            status: Some(status),
            source_timestamp: Some(UtcTime::from_unix(Duration::from_millis(millis))),
            ..DataValue::default()
        };
        let mut changes = Changes::default();
        changes.add(3, &value(1.5, 7_000, StatusCode::GOOD));
        changes.add(4, &value(2.5, 7_000, StatusCode::GOOD));
        changes.add(5, &value(3.5, 7_020, StatusCode::GOOD));
        changes.add(6, &value(4.5, 6_990, StatusCode::BAD_DEVICE_FAILURE));
        changes.add(7, &value(5.5, 7_000, StatusCode::BAD_DEVICE_FAILURE));
        let message: serde_json::Value = serde_json::from_str(&changes.message()).unwrap();
        let bad = StatusCode::BAD_DEVICE_FAILURE.to_string();
        let list = json!([[3, 1.5], [4, 2.5], [5, 3.5, null, 20], [6, 4.5, bad, -10], [7, 5.5, bad]]);
        assert_eq!(message, json!({"time": 7_000, "changes": list}));
        let mut changes = Changes { list: b"[1,\"\xff\"]".to_vec(), count: 1, time: 7_000 };
        changes.add(2, &value(1.5, 7_000, StatusCode::GOOD));
        let message: serde_json::Value = serde_json::from_str(&changes.message()).unwrap();
        assert_eq!(message["changes"], json!([[1, "\u{fffd}"], [2, 1.5]]));
        let none: serde_json::Value = serde_json::from_str(&Changes::default().message()).unwrap();
        assert_eq!(none["changes"], json!([]));
    }

    #[test]
    fn a_message_with_long_values_ends_early() {
        let value = DataValue::new(Variant::from("x".repeat(5_000)));
        let mut changes = Changes::default();
        while !changes.is_full() {
            changes.add(0, &value);
        }
        assert_eq!(changes.count, MESSAGE_LEN_MAX.div_ceil(5_005 + 2));
        assert!(changes.message().len() < MESSAGE_LEN_MAX + 6_000);
        let mut changes = Changes::default();
        (0..CHANGES_MAX).for_each(|_| changes.add(0, &DataValue::new(1)));
        assert!(changes.is_full());
    }
}
