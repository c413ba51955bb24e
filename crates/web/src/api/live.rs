//! Streams of values: one OPC UA subscription per stream, one message per publishing cycle.

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
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Maximum number of nodes per stream.
const NODES_MAX: usize = 10_000;
/// Maximum number of changes per message.
const CHANGES_MAX: usize = 20_000;
/// With `once`: how long a stream waits for values, in addition to its interval.
const ONCE_MAX: Duration = Duration::from_secs(5);
/// Size after which a message ends, in bytes. Values may be long.
const MESSAGE_LEN_MAX: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    nodes: Vec<String>,
    /// Interval in milliseconds.
    interval: u32,
    /// End the stream when each node has sent a value. For pages that have no connection for a stream.
    #[serde(default)]
    once: bool,
}

/// The state of a stream. It keeps the visitor's session open.
struct State {
    updates: Updates,
    /// Positions of the nodes in the request, by monitored item.
    positions: BTreeMap<u32, usize>,
    /// Set if the stream ends after the first values.
    once: Option<Once>,
    /// Whether the visitor was logged off.
    ended: watch::Receiver<bool>,
    _stream: Stream,
    _visitor: Arc<Visitor>,
}

/// What a `once` stream waits for.
struct Once {
    /// Items without a value so far.
    missing: BTreeSet<u32>,
    /// End of the wait.
    end: Instant,
}

/// Opens a stream. The first message contains the status of each node (`null` if it is good). Then changes follow:
/// `{"time": T, "changes": […]}` with `[position, value, status, milliseconds after T]` for each. Trailing elements
/// that are `null` or 0 are omitted, because most values are good and many have the same time.
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
    let state =
        State { updates, positions, once, ended: visitor.ended(), _stream: stream, _visitor: visitor };
    let events = stream::once(async { Ok::<_, Infallible>(first) }).chain(stream::unfold(state, next));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

/// Waits for changes, and takes all that are available.
async fn next(mut state: State) -> Option<(Result<Event, Infallible>, State)> {
    let mut out = Changes::default();
    while !out.is_full() {
        let update = if out.count == 0 {
            let State { updates, once, ended, .. } = &mut state;
            let update = async {
                match once {
                    None => updates.next().await,
                    Some(once) if once.missing.is_empty() => None,
                    Some(once) => timeout_at(once.end, updates.next()).await.ok()?,
                }
            };
            tokio::select! {
                _ = ended.wait_for(|is_over| *is_over) => return None,
                update = update => update?,
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

/// Appends an update if it is a change.
fn add(positions: &BTreeMap<u32, usize>, update: &Update, out: &mut Changes) {
    let Update::Change(change) = update else { return };
    if let Some(position) = positions.get(&change.item) {
        out.add(*position, &change.value);
    }
}

/// Changes of one message.
#[derive(Default)]
struct Changes {
    /// Elements of the list, separated by commas.
    list: Vec<u8>,
    /// Number of elements.
    count: usize,
    /// Time of the first change.
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
        // Invalid UTF-8 in one value must not suppress the others.
        let list = String::from_utf8_lossy(&self.list);
        format!("{{\"time\":{},\"changes\":[{list}]}}", self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk::{StatusCode, UtcTime, Variant};

    #[test]
    fn changes_omit_default_elements() {
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
    fn long_values_limit_the_message_size() {
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
