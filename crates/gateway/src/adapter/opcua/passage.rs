//! Forwards clients' requests other than values to the other server: method calls and history.
//!
//! Both survive the connection; without one, requests are rejected immediately.

use super::translation::Translation;
use crate::fault::Fault;
use crate::opcua::address;
use core::time::Duration;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use taktwerk::Client;
use taktwerk::client::{HistoryQuery, HistoryRange, ToNodeId};
use taktwerk::history::{HistoryStore, HistoryValue, NodeKey, Order, ReadLimit, Span, StoreError};
use taktwerk_types::{DataValue, NodeId, StatusCode, UtcTime, Variant};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Most calls and reads that wait for an answer; more are rejected.
const PENDING_MAX: usize = 64;

/// A connection, its runtime, and its translation of ids.
type Link = (Client, Handle, Arc<Translation>);

/// Access to the other server.
#[derive(Debug)]
pub(super) struct Passage {
    link: RwLock<Option<Link>>,
    /// Until when history reads fail at once, because the server did not answer the last one.
    avoided_until: Mutex<Option<Instant>>,
    pending: Arc<Semaphore>,
}

impl Default for Passage {
    fn default() -> Self {
        Self {
            link: RwLock::default(),
            avoided_until: Mutex::default(),
            pending: Arc::new(Semaphore::new(PENDING_MAX)),
        }
    }
}

impl Passage {
    /// Sets the current connection. Must be called within the gateway's runtime.
    pub(super) fn open(&self, client: &Client, translation: Arc<Translation>) {
        *self.link.write().unwrap_or_else(PoisonError::into_inner) =
            Some((client.clone(), Handle::current(), translation));
    }

    /// Removes the current connection.
    pub(super) fn close(&self) {
        self.avoid(Duration::ZERO);
        *self.link.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether a history read shall wait for the server. Reads of all servers wait in one queue. One that hangs delays the others
    /// by one timeout, not by one for each read.
    fn is_avoided(&self) -> bool {
        let until = *self.avoided_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn avoid(&self, time: Duration) {
        *self.avoided_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
    }

    fn link(&self) -> Result<Link, StatusCode> {
        let link = self.link.read().unwrap_or_else(PoisonError::into_inner).clone();
        link.ok_or(StatusCode::BAD_NO_COMMUNICATION)
    }

    /// Calls a method of an object; both are texts that stay valid across connections.
    pub(super) async fn call(
        &self,
        object: &str,
        method: &str,
        inputs: Vec<Variant>,
    ) -> Result<Vec<Variant>, StatusCode> {
        let (client, runtime, translation) = self.link()?;
        let inputs: Option<_> = inputs.into_iter().map(|input| translation.argument_there(input)).collect();
        let inputs = inputs.ok_or(StatusCode::BAD_NOT_SUPPORTED)?;
        let permit = Arc::clone(&self.pending).try_acquire_owned();
        let permit = permit.map_err(|_| StatusCode::BAD_TOO_MANY_OPERATIONS)?;
        let namespaces = client.namespaces();
        let unknown = |_| StatusCode::BAD_NODE_ID_UNKNOWN;
        let object = object.to_node_id(&namespaces).map_err(unknown)?;
        let method = method.to_node_id(&namespaces).map_err(unknown)?;
        // The calling server may have another runtime.
        let answer = runtime.spawn(async move {
            let _permit = permit;
            client.call_variants(object, method, inputs).await
        });
        let outputs = answer.await.map_err(|_| StatusCode::BAD_NO_COMMUNICATION)?;
        let outputs = outputs.map_err(|error| error.status())?;
        let outputs: Option<_> =
            outputs.into_iter().map(|output| translation.argument_here(output)).collect();
        outputs.ok_or(StatusCode::BAD_NOT_SUPPORTED)
    }
}

/// Closes a connection on drop, even if the task was aborted: otherwise a gateway that lost its lease would continue calls and
/// history reads. The session is closed properly within a timeout, so that neither server waits for the other.
#[derive(Debug)]
pub(super) struct Ending {
    passage: Arc<Passage>,
    client: Client,
    runtime: Handle,
    deadline: Duration,
}

impl Ending {
    /// Must be called within the gateway's runtime.
    pub(super) fn new(passage: &Arc<Passage>, client: &Client, deadline: Duration) -> Self {
        Self { passage: Arc::clone(passage), client: client.clone(), runtime: Handle::current(), deadline }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.passage.close();
        let (client, deadline) = (self.client.clone(), self.deadline);
        self.runtime.spawn(async move { timeout(deadline, client.disconnect()).await });
    }
}

/// The history stored by the other server, by the addresses of its nodes.
#[derive(Debug)]
pub(super) struct RemoteHistory {
    passage: Arc<Passage>,
    deadline: Duration,
}

impl RemoteHistory {
    pub(super) fn new(passage: &Arc<Passage>, deadline: Duration) -> Self {
        Self { passage: Arc::clone(passage), deadline }
    }

    /// The key of a node in this store.
    pub(super) fn key(node: &NodeId, namespaces: &[taktwerk_types::UaString]) -> NodeKey {
        address(node, namespaces).into()
    }
}

impl HistoryStore for RemoteHistory {
    fn is_remote(&self) -> bool {
        true
    }

    fn read(
        &self,
        node: &NodeKey,
        span: Span,
        order: Order,
        limit: ReadLimit,
        out: &mut Vec<HistoryValue>,
    ) -> Result<(), StoreError> {
        if span.is_empty() || limit.is_reached() {
            return Ok(());
        }
        let refused = |status: StatusCode, message: String| StoreError { status, message };
        let away = |status| refused(status, "the server that keeps this history is not connected".to_owned());
        let (client, runtime, _) = self.passage.link().map_err(away)?;
        let late = |message| refused(StatusCode::BAD_TIMEOUT, message);
        if self.passage.is_avoided() {
            return Err(late("the server did not answer the previous read".to_owned()));
        }
        let permit = Arc::clone(&self.passage.pending).try_acquire_owned().map_err(|_| {
            let message = format!("{PENDING_MAX} requests to the server wait for an answer already");
            refused(StatusCode::BAD_TOO_MANY_OPERATIONS, message)
        })?;
        let query = HistoryQuery::raw(range(span, order, limit.count));
        let (answer, answered) = sync_channel(1);
        let node = node.to_string();
        let deadline = self.deadline;
        runtime.spawn(async move {
            let _permit = permit;
            // One history read takes several requests, each with its own timeout. So limit them together.
            if let Ok(page) = timeout(deadline, client.history(&*node, query)).await {
                // The caller may have timed out.
                let _ = answer.send(page);
            }
        });
        let page = answered.recv_timeout(deadline).map_err(|_| {
            self.passage.avoid(deadline);
            late(format!("the server did not answer within {deadline:?}"))
        })?;
        let page = page.map_err(|error| {
            if error.status() == StatusCode::BAD_TIMEOUT {
                self.passage.avoid(deadline);
            }
            refused(error.status(), error.to_string())
        })?;
        let values = page.values.into_iter().filter_map(|value| stored(value).ok());
        out.extend(limit.of(values.filter(|value| span.contains(value.source))));
        Ok(())
    }
}

fn stored(value: DataValue) -> Result<HistoryValue, StatusCode> {
    let server = value.server_timestamp.or(value.source_timestamp).unwrap_or(UtcTime::NULL);
    HistoryValue::from_data_value(value, server)
}

/// A span in the form of HistoryRead: the end is exclusive, and open ends are omitted.
fn range(span: Span, order: Order, limit: usize) -> HistoryRange {
    let (first, last) = (span.first.ticks(), span.last.ticks());
    let time = UtcTime::from_ticks;
    let is_open = |ticks: i64| ticks == i64::MIN || ticks == i64::MAX;
    let range = match order {
        Order::Forward => HistoryRange {
            start: Some(time(first.max(1))),
            end: (!is_open(last)).then(|| time(last.saturating_add(1))),
            limit: None,
        },
        Order::Backward if first > 1 => HistoryRange {
            start: Some(time(if is_open(last) { TIME_MAX } else { last })),
            end: Some(time(first - 1)),
            limit: None,
        },
        Order::Backward => HistoryRange {
            start: None,
            end: Some(time(if is_open(last) { TIME_MAX } else { last.saturating_add(1) })),
            limit: None,
        },
    };
    range.limit(limit)
}

/// The end of the year 9999, the last time that servers support (Part 6 §5.2.2.5).
const TIME_MAX: i64 = 2_650_467_743_990_000_000;

/// The message about methods that are not mirrored.
pub(super) fn left_out(target: &str, count: usize) -> Fault {
    Fault::other(target, format!("{count} methods have the name of another node and are not mirrored"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_become_ranges_of_history_read() {
        let span = |first, last| Span { first: UtcTime::from_ticks(first), last: UtcTime::from_ticks(last) };
        let ticks = |range: HistoryRange| {
            let ticks = |time: Option<UtcTime>| time.map(UtcTime::ticks);
            (ticks(range.start), ticks(range.end), range.limit)
        };
        let open = (i64::MIN, i64::MAX);
        assert_eq!(ticks(range(span(100, 200), Order::Forward, 5)), (Some(100), Some(201), Some(5)));
        assert_eq!(ticks(range(span(100, 200), Order::Backward, 5)), (Some(200), Some(99), Some(5)));
        assert_eq!(ticks(range(span(open.0, open.1), Order::Forward, 5)), (Some(1), None, Some(5)));
        assert_eq!(ticks(range(span(open.0, 200), Order::Backward, 5)), (None, Some(201), Some(5)));
        assert_eq!(ticks(range(span(open.0, open.1), Order::Backward, 5)), (None, Some(TIME_MAX), Some(5)));
        assert_eq!(ticks(range(span(100, open.1), Order::Backward, 5)), (Some(TIME_MAX), Some(99), Some(5)));
    }

    #[test]
    fn a_server_that_did_not_answer_is_avoided_for_a_while() {
        let passage = Passage::default();
        assert!(!passage.is_avoided());
        passage.avoid(Duration::from_secs(60));
        assert!(passage.is_avoided());
        passage.avoid(Duration::ZERO);
        assert!(!passage.is_avoided());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_aborted_task_leaves_no_session() {
        let server = taktwerk::Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        let server = server.spawn().unwrap();
        let client = Client::connect(&server.url()).await.unwrap();
        let passage = Arc::new(Passage::default());
        passage.open(&client, Arc::default());
        let ending = Ending::new(&passage, &client, Duration::from_secs(10));
        let (begin, begun) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let _ending = ending;
            begin.send(()).unwrap();
            core::future::pending::<()>().await;
        });
        begun.await.unwrap();
        assert!(passage.link().is_ok());
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(passage.link().unwrap_err(), StatusCode::BAD_NO_COMMUNICATION);
        let watch = Client::connect(&server.url()).await.unwrap();
        let alone = async {
            // CurrentSessionCount
            while watch.read_value::<u32>("i=2277").await.unwrap() > 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), alone).await.unwrap();
        drop(client);
    }

    #[test]
    fn nothing_waits_without_a_connection() {
        let passage = Arc::new(Passage::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let refused = runtime.block_on(passage.call("i=1", "i=2", Vec::new()));
        assert_eq!(refused, Err(StatusCode::BAD_NO_COMMUNICATION));
        let history = RemoteHistory::new(&passage, Duration::from_secs(1));
        let read =
            history.read(&"i=1".into(), Span::ALL, Order::Forward, ReadLimit::count(1), &mut Vec::new());
        assert_eq!(read.unwrap_err().status, StatusCode::BAD_NO_COMMUNICATION);
    }
}
