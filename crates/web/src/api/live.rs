//! Streams of values: one OPC UA subscription per stream, one message per publishing cycle.

use super::values::{append_content_up_to, append_status, time_of};
use super::{Problem, Who, nodes::parse};
use crate::backlog::{Backlogs, Feeder, NodeState, Reader};
use crate::state::App;
use crate::streams::Stream;
use crate::visitor::Visitor;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::StreamExt;
use futures_util::stream;
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
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

/// Maximum number of nodes per stream.
const NODES_MAX: usize = 10_000;
/// With `once`: how long a stream waits for values, in addition to its interval.
const ONCE_MAX: Duration = Duration::from_secs(5);
/// Size after which a message ends, in bytes. A page that does not read holds this much beside its backlog.
const MESSAGE_LEN_MAX: usize = 128 << 10;
/// Maximum length of a value as JSON, in bytes. Of longer ones, a table shows the type.
const VALUE_LEN_MAX: usize = 1_000;

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
struct Open {
    reader: Reader,
    /// Set if the stream ends after the first values.
    once: Option<Once>,
    /// Whether the visitor was logged off.
    ended: watch::Receiver<bool>,
    _task: Task,
    _stream: Stream,
    _visitor: Arc<Visitor>,
}

/// The task that fills the backlog. It ends with the stream, and so does the subscription.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a `once` stream waits for.
struct Once {
    /// Positions of nodes without a value so far.
    missing: BTreeSet<usize>,
    /// End of the wait.
    end: Instant,
}

/// Opens a stream. The first message contains the status of each node (`null` if it is good). Then changes follow:
/// `{"time": T, "changes": […]}` with `[position, value, status, milliseconds after T]` for each. Trailing elements
/// that are `null` or 0 are omitted, because most values are good and many have the same time.
pub(crate) async fn open(
    Who(visitor): Who,
    State(app): State<Arc<App>>,
    Extension(ConnectInfo(peer)): Extension<ConnectInfo<SocketAddr>>,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Problem> {
    if wanted.nodes.is_empty() || wanted.nodes.len() > NODES_MAX {
        return Err(Problem::bad_request(format!("a stream has 1 to {NODES_MAX} nodes")));
    }
    let stream = visitor
        .streams
        .open(peer.ip(), visitor.user.is_none(), wanted.nodes.len())
        .ok_or_else(|| Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many pages are open; close one"))?;
    let namespaces = visitor.client.namespaces();
    let ids = wanted.nodes.iter().map(|node| parse(&namespaces, node)).collect::<Result<Vec<_>, _>>()?;
    let interval = Duration::from_millis(u64::from(wanted.interval.clamp(100, 60_000)));
    let subscription = visitor.client.subscribe(SubscriptionOptions::every(interval)).await?;
    let (handle, updates) = subscription.split();
    let results = handle.monitor_many(ids.into_iter().map(Item::new)).await?;
    let positions = results.iter().enumerate().map(|(position, (item, _))| (*item, position)).collect();
    let status = |status: &taktwerk::StatusCode| status.is_bad().then(|| status.to_string());
    let statuses: Vec<Option<String>> = results.iter().map(|(_, result)| status(result)).collect();
    let first = Event::default().event("items").data(json!(statuses).to_string());
    let missing = || {
        let all = statuses.iter().enumerate();
        all.filter(|(_, status)| status.is_none()).map(|(position, _)| position).collect()
    };
    let once = wanted.once.then(|| Once { missing: missing(), end: Instant::now() + interval + ONCE_MAX });
    let (feeder, reader) = Backlogs::open(&app.backlogs);
    let task = Task(tokio::spawn(fill(updates, positions, feeder)).abort_handle());
    let open = Open { reader, once, ended: visitor.ended(), _task: task, _stream: stream, _visitor: visitor };
    let events = stream::once(async { Ok::<_, Infallible>(first) }).chain(stream::unfold(open, next));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

/// Puts changes into the backlog as they arrive, whether or not the page reads.
async fn fill(mut updates: Updates, positions: BTreeMap<u32, usize>, feeder: Feeder) {
    while let Some(update) = updates.next().await {
        let Update::Change(change) = update else { continue };
        let Some(position) = positions.get(&change.item) else { continue };
        if !feeder.put(*position, state_of(&change.value)) {
            tracing::debug!("a page with live values does not read them: its stream has ended");
            return;
        }
    }
}

fn state_of(value: &DataValue) -> NodeState {
    let mut content = Vec::new();
    append_content_up_to(VALUE_LEN_MAX, value, &mut content);
    NodeState { content: content.into(), status: value.status(), time: time_of(value) }
}

/// Waits for changes, and takes those that fit into a message.
async fn next(mut open: Open) -> Option<(Result<Event, Infallible>, Open)> {
    let Open { reader, once, ended, .. } = &mut open;
    let taken = async {
        match once {
            None => reader.take(MESSAGE_LEN_MAX).await,
            Some(once) if once.missing.is_empty() => None,
            Some(once) => timeout_at(once.end, reader.take(MESSAGE_LEN_MAX)).await.ok()?,
        }
    };
    let taken = tokio::select! {
        _ = ended.wait_for(|is_over| *is_over) => return None,
        taken = taken => taken?,
    };
    let mut out = Changes::default();
    for (position, state) in &taken {
        if let Some(once) = &mut open.once {
            once.missing.remove(position);
        }
        out.add(*position, state);
    }
    Some((Ok(Event::default().data(out.message())), open))
}

/// Changes of one message.
#[derive(Default)]
struct Changes {
    /// Elements of the list, separated by commas.
    list: Vec<u8>,
    /// Time of the first change.
    time: i64,
}

impl Changes {
    fn add(&mut self, position: usize, state: &NodeState) {
        let (status, time) = (state.status, state.time);
        if self.list.is_empty() {
            self.time = time;
        } else {
            self.list.push(b',');
        }
        self.list.extend_from_slice(format!("[{position},").as_bytes());
        self.list.extend_from_slice(&state.content);
        let after = time.saturating_sub(self.time);
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
        let value = |number: f64, millis: u64, status: StatusCode| {
            state_of(&DataValue {
                value: Some(Variant::Double(number)),
                status: Some(status),
                source_timestamp: Some(UtcTime::from_unix(Duration::from_millis(millis))),
                ..DataValue::default()
            })
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
        let mut changes = Changes { list: b"[1,\"\xff\"]".to_vec(), time: 7_000 };
        changes.add(2, &value(1.5, 7_000, StatusCode::GOOD));
        let message: serde_json::Value = serde_json::from_str(&changes.message()).unwrap();
        assert_eq!(message["changes"], json!([[1, "\u{fffd}"], [2, 1.5]]));
        let none: serde_json::Value = serde_json::from_str(&Changes::default().message()).unwrap();
        assert_eq!(none["changes"], json!([]));
    }

    #[test]
    fn long_values_are_shown_by_their_type() {
        let of = |len: usize| state_of(&DataValue::new(Variant::from("x".repeat(len)))).content;
        assert_eq!(of(VALUE_LEN_MAX - 2).len(), VALUE_LEN_MAX);
        assert_eq!(&*of(VALUE_LEN_MAX), b"\"String\"");
    }
}
