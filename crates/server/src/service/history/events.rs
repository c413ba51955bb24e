//! HistoryRead of events (Part 11 §6.5.2). The job reads the server's event log and returns the events that a node
//! notifies of, that the client may see, and that pass its filter.

use super::PendingHistory;
use crate::account::Category;
use crate::authorization::Decisions;
use crate::effect::{HistoryResult, JobResult, Task};
use crate::error::Fault;
use crate::event::filter::EventFilter;
use crate::event::{Event, NewEvent};
use crate::history::point::{Begun, HistoryPoints, Point};
use crate::history::read::{Bounds, EventPosition, Position, encode_failure};
use crate::history::store::{EventCursor, Order, ReadLimit, Span};
use crate::history::{NodeHistory, NodeKey, StoredEvent};
use crate::job_kind::JobKind;
use crate::node_ix::NodeIx;
use crate::now::Now;
use crate::query::around::EventSurroundings;
use crate::reply::Reply;
use crate::request::Request;
use crate::service::Outcome;
use crate::service::context::Context;
use crate::service::deferred::{Fill, Gap};
use crate::service::gate::Caller;
use crate::service::read::unknown;
use crate::space::AddressSpace;
use crate::space::nodes::Nodes;
use std::sync::Arc;
use taktwerk_schema::{HistoryEvent, HistoryReadResponse, PermissionType, ReadEventDetails};
use taktwerk_types::codec::{encode_bytes, encode_len, encode_sized};
use taktwerk_types::{
    Decode, Encode, ExtensionObject, NodeId, QualifiedName, StatusCode, Structure, UaString, UtcTime,
};

/// Events per read from a store.
const BATCH: usize = 1_000;
/// Bytes per read from a store.
const BATCH_BYTES: usize = BATCH * 1_024;

/// An Object with recorded events.
#[derive(Debug)]
pub(super) struct Target {
    history: Arc<NodeHistory>,
    node: NodeIx,
    /// The key of its continuation points.
    key: NodeKey,
}

/// The event history of a node, if all of the permissions and EventNotifier bits are present.
///
/// # Errors
/// Bad_NodeIdUnknown, Bad_UserAccessDenied and the like; Bad_HistoryOperationUnsupported for nodes without recorded
/// events.
pub(super) fn find(
    nodes: &Nodes,
    decisions: &Decisions,
    id: &NodeId,
    permissions: &[PermissionType],
    bit: u8,
) -> Result<Target, StatusCode> {
    let node = nodes.resolve(id.as_ref()).ok_or_else(|| unknown(id.as_ref()))?;
    for permission in permissions {
        decisions.check(nodes, node, *permission)?;
    }
    let unsupported = StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED;
    let history = nodes.event_history().ok_or(unsupported)?;
    let bits = nodes.view(node).and_then(|view| view.event_notifier()).ok_or(unsupported)?;
    if bits & crate::space::events::HISTORY_READ == 0 {
        return Err(unsupported);
    }
    if bits & bit != bit {
        return Err(StatusCode::BAD_USER_ACCESS_DENIED);
    }
    Ok(Target { history: Arc::clone(history), node, key: format!("events of {id}").into() })
}

impl Target {
    /// The store of the events, and which of them these permissions can see at the node.
    pub(super) fn into_parts(
        self,
        space: &Arc<AddressSpace>,
        decisions: &Arc<Decisions>,
    ) -> (Arc<NodeHistory>, Sight) {
        let sight = Sight { space: Arc::clone(space), decisions: Arc::clone(decisions), node: self.node };
        (self.history, sight)
    }
}

/// The client's view of events at a node.
pub(super) struct Sight {
    space: Arc<AddressSpace>,
    decisions: Arc<Decisions>,
    node: NodeIx,
}

impl Sight {
    pub(super) fn sees_stored(&self, stored: &StoredEvent) -> bool {
        let event = self.space.shared_event_again(NewEvent::again(stored.clone()));
        sees(&self.decisions, self.node, &event)
    }
}

/// Whether these permissions can see an event at a node.
fn sees(decisions: &Decisions, node: NodeIx, event: &Event) -> bool {
    let may_receive = |set| decisions.of_set(set).contains(PermissionType::RECEIVE_EVENTS);
    event.access().into_iter().all(may_receive) && event.notifiers().contains(&node)
}

/// One node of a HistoryRead.
struct NodeRead {
    target: Result<Target, StatusCode>,
    continuation: Box<[u8]>,
}

/// A HistoryRead of events.
struct EventJob {
    nodes: Vec<NodeRead>,
    filter: Result<EventFilter, StatusCode>,
    position: EventPosition,
    release: bool,
    points: Arc<HistoryPoints>,
    bounds: Bounds,
    space: Arc<AddressSpace>,
    decisions: Arc<Decisions>,
    now: Now,
}

/// Handles a request with [`ReadEventDetails`].
pub(super) fn read(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
    details: &ExtensionObject,
    release: bool,
) -> Result<Outcome, Fault> {
    let details: ReadEventDetails = details
        .decode()
        .map_err(|_| Fault::peer(StatusCode::BAD_HISTORY_OPERATION_INVALID, "Part 11 §6.5"))?;
    let position = position(&details).map_err(|status| Fault::peer(status, "Part 11 §6.5.2"))?;
    let limits = &cx.shared.config().limits;
    let mut list = caller.operations.clone();
    let mut nodes = Vec::with_capacity(caller.count);
    let filter = {
        let space = cx.shared.space().read();
        for _ in 0..caller.count {
            let id = <NodeId as Decode>::decode(&mut list)?;
            let range = <UaString as Decode>::decode(&mut list)?;
            let _encoding = QualifiedName::decode(&mut list)?;
            let continuation: Box<[u8]> = list.bytes()?.unwrap_or_default().into();
            let permissions = [PermissionType::READ_HISTORY];
            let mut target = find(&space, &caller.decisions, &id, &permissions, 0);
            if !range.as_str().is_empty() {
                target = Err(StatusCode::BAD_INDEX_RANGE_INVALID);
            }
            nodes.push(NodeRead { target, continuation });
        }
        let range = |text: &str| limits.index_range(text);
        let compiled = EventFilter::compile(&details.filter, &*space, limits.event_filter(), &range);
        compiled.map(|(filter, _)| filter).map_err(|(status, _)| status)
    };
    let bounds = Bounds {
        values_max: limits.history_values_max,
        raw_max: limits.history_raw_values_max,
        len_max: cx.peer.response_len_max / 2,
        points_max: limits.history_continuation_points_max.into(),
    };
    if !cx.has_capacity_for(1) {
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_per_connection_max"));
    }
    // Memory for a batch of events, and for the request with its filter.
    let kept = nodes.len() * (size_of::<NodeRead>() + 64) + BATCH_BYTES + request.body.remaining();
    let charge = cx.account(Some(caller.session)).charge(Category::Requests, kept)?;
    let account = Arc::clone(cx.account(Some(caller.session)));
    let Some(session) = cx.sessions.get_mut(caller.session) else {
        return Err(Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"));
    };
    let points = session.history_points.get_or_insert_with(|| Arc::new(HistoryPoints::new(&account)));
    let count = nodes.len();
    let job = EventJob {
        nodes,
        filter,
        position,
        release,
        points: Arc::clone(points),
        bounds,
        space: Arc::clone(cx.shared.space()),
        decisions: Arc::clone(&caller.decisions),
        now: cx.now,
    };
    let task = Task::blocking(JobKind::ReadHistory, move || {
        JobResult::History(HistoryResult { encoded: job.run(), statuses: Vec::new(), old: Vec::new() })
    });
    let fill = Fill::History(PendingHistory { count, failure: encode_failure, notes: Vec::new() });
    reply.begin::<HistoryReadResponse>();
    let gaps = vec![(Gap::new(reply.body_len(), fill), task.charged(charge))];
    cx.gather(request, caller.session, HistoryReadResponse::BINARY_ENCODING_ID, gaps, reply)
}

/// Where to begin. As with raw values, two of start, end and number of events are given.
fn position(details: &ReadEventDetails) -> Result<EventPosition, StatusCode> {
    let (start, end, page) = (details.start_time, details.end_time, details.num_values_per_node as usize);
    let given = [!start.is_null(), !end.is_null(), page > 0];
    if given.iter().filter(|given| **given).count() < 2 {
        return Err(StatusCode::BAD_INVALID_TIMESTAMP_ARGUMENT);
    }
    let before = |time: UtcTime| UtcTime::from_ticks(time.ticks().saturating_sub(1));
    let behind = |time: UtcTime| UtcTime::from_ticks(time.ticks().saturating_add(1));
    // The end is exclusive, unless it equals the start.
    let (order, first, last) = match (start.is_null(), end.is_null()) {
        (true, _) => (Order::Backward, Span::ALL.first, end),
        (_, true) => (Order::Forward, start, Span::ALL.last),
        _ if end < start => (Order::Backward, behind(end), start),
        _ if end == start => (Order::Forward, start, end),
        _ => (Order::Forward, start, before(end)),
    };
    let has_end = !start.is_null() && !end.is_null();
    let left = (!has_end).then_some(page);
    Ok(EventPosition { order, span: Span { first, last }, after: None, page, left })
}

impl EventJob {
    /// Reads all nodes. Returns the encoded results.
    fn run(self) -> Vec<u8> {
        let mut out = Vec::new();
        encode_len(self.nodes.len(), &mut out);
        // For all nodes together: a request may name one node a thousand times.
        let (mut left, mut raw) = (self.bounds.values_max, self.bounds.raw_max);
        let request = self.points.begin();
        for node in &self.nodes {
            let before = out.len();
            if let Err(status) = self.one(node, request, (&mut left, &mut raw), &mut out) {
                out.truncate(before);
                encode_failure(status, &mut out);
            }
        }
        // There are no diagnostics.
        encode_len(0, &mut out);
        out
    }

    fn one(
        &self,
        node: &NodeRead,
        request: Begun,
        (left, raw): (&mut usize, &mut usize),
        out: &mut Vec<u8>,
    ) -> Result<(), StatusCode> {
        let target = node.target.as_ref().map_err(|status| *status)?;
        let mut position = if node.continuation.is_empty() {
            self.position.clone()
        } else {
            match self.points.take(&node.continuation, &target.key)? {
                Position::Events(position) => position,
                _ => return Err(StatusCode::BAD_CONTINUATION_POINT_INVALID),
            }
        };
        if self.release {
            encode_failure(StatusCode::GOOD, out);
            return Ok(());
        }
        let filter = self.filter.as_ref().map_err(|status| *status)?;
        let mut body = Vec::new();
        NodeId::numeric(0, HistoryEvent::BINARY_ENCODING_ID).encode(&mut body);
        body.push(1);
        let (mut count, mut is_done) = (0, Ok(true));
        encode_sized(&mut body, |body| {
            let at = body.len();
            encode_len(0, body);
            let len_max = self.bounds.len_max.saturating_sub(out.len());
            is_done = self.events(target, filter, &mut position, (*left, len_max), (&mut count, raw), body);
            if let Some(gap) = body.get_mut(at..at + 4) {
                gap.copy_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
            }
        });
        *left = left.saturating_sub(count);
        let continuation = match is_done? {
            true => None,
            false => {
                let point = Point { node: NodeKey::clone(&target.key), position: Position::Events(position) };
                Some(self.points.keep(point, self.bounds.points_max, request)?)
            }
        };
        let is_empty = count == 0 && continuation.is_none();
        if is_empty { StatusCode::GOOD_NO_DATA } else { StatusCode::GOOD }.encode(out);
        encode_bytes(continuation.as_ref().map(<[u8; 8]>::as_slice), out);
        out.append(&mut body);
        Ok(())
    }

    /// Appends events until there are enough or the limit of examined events is reached. Returns whether the end was
    /// reached.
    fn events(
        &self,
        target: &Target,
        filter: &EventFilter,
        position: &mut EventPosition,
        (count_max, len_max): (usize, usize),
        (count, raw): (&mut usize, &mut usize),
        body: &mut Vec<u8>,
    ) -> Result<bool, StatusCode> {
        let page = if position.page == 0 { usize::MAX } else { position.page };
        let count_max = page.min(count_max).min(position.left.unwrap_or(usize::MAX));
        if (count_max == 0 && position.left != Some(0)) || *raw == 0 {
            // The previous nodes have used up the limit of the request.
            return Ok(false);
        }
        loop {
            let mut batch: Vec<(EventCursor, StoredEvent)> = Vec::new();
            let (store, key) = (&target.history.store, &target.history.key);
            let limit = ReadLimit { count: BATCH, bytes: BATCH_BYTES };
            store
                .read_events(key, position.span, position.order, position.after, limit, &mut batch)
                .map_err(|error| {
                    tracing::warn!(%error, "events cannot be read");
                    error.status_of_read()
                })?;
            let is_last = !limit.behind(&batch).is_reached();
            *raw = raw.saturating_sub(batch.len());
            for (cursor, stored) in batch {
                if *count >= count_max || (*count > 0 && body.len() > len_max) {
                    return Ok(position.left == Some(0));
                }
                position.after = Some(cursor);
                let event = self.space.shared_event_again(NewEvent::again(stored));
                let around = EventSurroundings::new(&self.space, &self.decisions, self.now);
                if sees(&self.decisions, target.node, &event) && filter.passes(&event, &around) {
                    filter.encode_fields(&event, body);
                    *count += 1;
                    position.left = position.left.map(|left| left.saturating_sub(1));
                }
            }
            if is_last {
                return Ok(true);
            }
            if *raw == 0 {
                // The client continues with the continuation point.
                return Ok(false);
            }
        }
    }
}
