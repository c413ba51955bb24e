//! HistoryRead (Part 4 §5.11.3).

use super::{PendingHistory, find};
use crate::account::Category;
use crate::effect::{HistoryResult, JobResult, Task};
use crate::error::Fault;
use crate::history::NodeHistory;
use crate::history::aggregate::{Aggregate, Configuration};
use crate::history::point::HistoryPoints;
use crate::history::read::{
    AnnotationPosition, Bounds, ModifiedPosition, NodeRead, Position, ProcessedPosition, RawPosition,
    ReadJob, encode_failure,
};
use crate::history::store::{Order, Span};
use crate::job_kind::JobKind;
use crate::reply::Reply;
use crate::request::Request;
use crate::service::Outcome;
use crate::service::context::Context;
use crate::service::deferred::{Fill, Gap};
use crate::service::gate::Caller;
use std::sync::Arc;
use taktwerk_schema::{
    AccessLevelType, AggregateConfiguration, HistoryReadResponse, PermissionType, ReadAnnotationDataDetails,
    ReadAtTimeDetails, ReadEventDetails, ReadProcessedDetails, ReadRawModifiedDetails,
};
use taktwerk_types::{
    Decode, ExtensionObject, NodeId, QualifiedName, StatusCode, Structure, TimestampsToReturn, UaString,
    UtcTime,
};

/// Smallest HistoryReadValueId in bytes: NodeId, IndexRange, DataEncoding, ContinuationPoint.
pub(crate) const NODE_LEN_MIN: usize = 2 + 4 + 6 + 4;

/// The checked details for all nodes.
enum Details {
    Raw(ReadRawModifiedDetails),
    Processed { details: ReadProcessedDetails, intervals: i64 },
    Times { times: Arc<[UtcTime]>, simple_bounds: bool, annotations: bool },
}

pub(crate) fn history_read(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut body = request.body.clone();
    let details = <ExtensionObject as Decode>::decode(&mut body)?;
    let timestamps = TimestampsToReturn::from_wire(i32::decode(&mut body)?)
        .map_err(|status| Fault::peer(status, "Part 4 §7.40"))?;
    let release = bool::decode(&mut body)?;
    if details.is::<ReadEventDetails>() {
        return super::events::read(cx, caller, request, reply, &details, release);
    }
    let details =
        Details::parse(&details, caller.count).map_err(|status| Fault::peer(status, "Part 11 §6.5"))?;
    if timestamps == TimestampsToReturn::Neither {
        return Err(Fault::peer(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID, "Part 11 §6.5.1"));
    }
    let limits = &cx.shared.config().limits;
    let mut list = caller.operations.clone();
    let mut nodes = Vec::with_capacity(caller.count);
    {
        let space = cx.shared.space().read();
        for index in 0..caller.count {
            let id = NodeId::decode(&mut list)?;
            let range = UaString::decode(&mut list)?;
            let encoding = QualifiedName::decode(&mut list)?;
            let continuation: Box<[u8]> = list.bytes()?.unwrap_or_default().into();
            let read = AccessLevelType::HISTORY_READ.0;
            let mut target = find(&space, &caller.decisions, &id, &[PermissionType::READ_HISTORY], read);
            let mut parsed = None;
            match limits.index_range(range.as_str()) {
                Ok(range) => parsed = range,
                Err(status) => target = target.and(Err(status)),
            }
            if encoding.namespace_index != 0 || !matches!(encoding.name.as_str(), "" | "Default Binary") {
                target = target.and(Err(StatusCode::BAD_DATA_ENCODING_UNSUPPORTED));
            }
            let mut position = None;
            if continuation.is_empty() {
                match target
                    .as_ref()
                    .map_err(|status| *status)
                    .and_then(|target| details.begin(index, target))
                {
                    Ok(begin) => position = Some(begin),
                    Err(status) => target = Err(status),
                }
            }
            nodes.push(NodeRead { target, range: parsed, position, continuation });
        }
    }
    let bounds = Bounds {
        values_max: limits.history_values_max,
        raw_max: limits.history_raw_values_max,
        len_max: cx.peer.response_len_max / 2,
        points_max: limits.history_continuation_points_max.into(),
    };
    let kept = nodes.len() * (size_of::<NodeRead>() + 64) + details.size();
    if !cx.has_capacity_for(1) {
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_per_connection_max"));
    }
    let charge = cx.account(Some(caller.session)).charge(Category::Requests, kept)?;
    let account = Arc::clone(cx.account(Some(caller.session)));
    let Some(session) = cx.sessions.get_mut(caller.session) else {
        return Err(Fault::local(StatusCode::BAD_SESSION_ID_INVALID, "the session was there"));
    };
    let points = session.history_points.get_or_insert_with(|| Arc::new(HistoryPoints::new(&account)));
    let count = nodes.len();
    let is_remote = |node: &NodeRead| node.target.as_ref().is_ok_and(|history| history.store.is_remote());
    let kind = if nodes.iter().any(is_remote) { JobKind::ReadRemoteHistory } else { JobKind::ReadHistory };
    let job = ReadJob { nodes, timestamps, release, points: Arc::clone(points), bounds, account };
    let task = Task::blocking(kind, move || {
        JobResult::History(match job.run() {
            Ok(encoded) => HistoryResult { encoded, statuses: Vec::new(), old: Vec::new() },
            Err(status) => HistoryResult::failed(count, status, encode_failure),
        })
    });
    let fill = Fill::History(PendingHistory { count, failure: encode_failure, notes: Vec::new() });
    reply.begin::<HistoryReadResponse>();
    let gaps = vec![(Gap::new(reply.body_len(), fill), task.charged(charge))];
    cx.gather(request, caller.session, HistoryReadResponse::BINARY_ENCODING_ID, gaps, reply)
}

impl Details {
    /// Parses the HistoryReadDetails of a request for `count` nodes.
    fn parse(object: &ExtensionObject, count: usize) -> Result<Self, StatusCode> {
        let invalid = StatusCode::BAD_HISTORY_OPERATION_INVALID;
        if object.is::<ReadRawModifiedDetails>() {
            let details: ReadRawModifiedDetails = object.decode().map_err(|_| invalid)?;
            // Two of start, end and number of values (Part 11 §6.5.3.1).
            let given =
                [!details.start_time.is_null(), !details.end_time.is_null(), details.num_values_per_node > 0];
            if given.iter().filter(|given| **given).count() < 2 {
                return Err(StatusCode::BAD_INVALID_TIMESTAMP_ARGUMENT);
            }
            return Ok(Self::Raw(details));
        }
        if object.is::<ReadProcessedDetails>() {
            let details: ReadProcessedDetails = object.decode().map_err(|_| invalid)?;
            if details.aggregate_type.len() != count {
                return Err(StatusCode::BAD_AGGREGATE_LIST_MISMATCH);
            }
            let (start, end) = (details.start_time, details.end_time);
            if start.is_null() || end.is_null() || start == end {
                return Err(StatusCode::BAD_INVALID_ARGUMENT);
            }
            let interval = details.processing_interval;
            if !interval.is_finite() || interval < 0.0 {
                return Err(StatusCode::BAD_INVALID_ARGUMENT);
            }
            let range = end.ticks().abs_diff(start.ticks()) as f64;
            // Part 13 §5.4.2.2: an interval of zero, or longer than the range, means the whole range.
            let ticks = (interval * 1e4).round();
            let intervals = if ticks < 1.0 || ticks >= range { 0 } else { ticks as i64 };
            return Ok(Self::Processed { details, intervals });
        }
        if object.is::<ReadAtTimeDetails>() {
            let details: ReadAtTimeDetails = object.decode().map_err(|_| invalid)?;
            let simple_bounds = details.use_simple_bounds;
            return Ok(Self::Times { times: details.req_times.into(), simple_bounds, annotations: false });
        }
        if object.is::<ReadAnnotationDataDetails>() {
            let details: ReadAnnotationDataDetails = object.decode().map_err(|_| invalid)?;
            let times = details.req_times.into();
            return Ok(Self::Times { times, simple_bounds: false, annotations: true });
        }
        Err(if object.is_null() { invalid } else { StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED })
    }

    /// Size in memory, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Times { times, .. } => size_of_val(&**times),
            Self::Raw(_) | Self::Processed { .. } => 0,
        }
    }

    /// Where reading a node begins.
    fn begin(&self, index: usize, target: &NodeHistory) -> Result<Position, StatusCode> {
        let has_annotations = target.store.capabilities().annotations;
        Ok(match self {
            Self::Times { annotations: true, .. } if !has_annotations => {
                return Err(StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED);
            }
            Self::Raw(details) if target.annotates.is_some() => {
                Position::AnnotationRange(annotations(details)?)
            }
            Self::Raw(_) | Self::Processed { .. } | Self::Times { annotations: false, .. }
                if target.annotates.is_some() =>
            {
                return Err(StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED);
            }
            Self::Times { times, simple_bounds, annotations: false } => {
                Position::AtTime { times: Arc::clone(times), next: 0, simple_bounds: *simple_bounds }
            }
            Self::Times { times, .. } => Position::Annotations { times: Arc::clone(times), next: 0 },
            Self::Processed { details, intervals } => {
                let aggregate = details.aggregate_type.get(index).and_then(NodeId::ns0);
                let unsupported = StatusCode::BAD_AGGREGATE_NOT_SUPPORTED;
                Position::Processed(ProcessedPosition {
                    aggregate: aggregate.and_then(Aggregate::from_id).ok_or(unsupported)?,
                    next: details.start_time,
                    end: details.end_time,
                    interval: *intervals,
                    configuration: configuration(&details.aggregate_configuration, target)?,
                })
            }
            Self::Raw(details) => raw(details),
        })
    }
}

fn configuration(wanted: &AggregateConfiguration, target: &NodeHistory) -> Result<Configuration, StatusCode> {
    Configuration::requested(wanted, target.aggregates)
}

/// Start, end and order. Part 11 §6.5.3.2: only an end means reading backwards from it.
fn direction(details: &ReadRawModifiedDetails) -> (UtcTime, Option<UtcTime>, Order) {
    let (start, end) = (details.start_time, details.end_time);
    match (start.is_null(), end.is_null()) {
        (true, _) => (end, None, Order::Backward),
        (_, true) => (start, None, Order::Forward),
        _ if end < start => (start, Some(end), Order::Backward),
        _ => (start, Some(end), Order::Forward),
    }
}

/// The span without the end, which is exclusive unless it equals the start.
fn span(start: UtcTime, end: Option<UtcTime>, order: Order) -> Span {
    let (mut first, mut last) = match order {
        Order::Forward => (start, end.unwrap_or(Span::ALL.last)),
        Order::Backward => (end.unwrap_or(Span::ALL.first), start),
    };
    if end.is_some_and(|end| end != start) {
        match order {
            Order::Forward => last = UtcTime::from_ticks(last.ticks().saturating_sub(1)),
            Order::Backward => first = UtcTime::from_ticks(first.ticks().saturating_add(1)),
        }
    }
    Span { first, last }
}

/// ReadRaw of an Annotations Property. Changes of annotations are not kept. Annotations have no bounding values: the
/// status for such data is Bad_BoundNotSupported (Part 11 §3.1.2).
fn annotations(details: &ReadRawModifiedDetails) -> Result<AnnotationPosition, StatusCode> {
    if details.is_read_modified {
        return Err(StatusCode::BAD_HISTORY_OPERATION_UNSUPPORTED);
    }
    if details.return_bounds {
        return Err(StatusCode::BAD_BOUND_NOT_SUPPORTED);
    }
    let page = details.num_values_per_node as usize;
    let (start, end, order) = direction(details);
    let left = end.is_none().then_some(page);
    Ok(AnnotationPosition { order, span: span(start, end, order), after: None, page, left })
}

fn raw(details: &ReadRawModifiedDetails) -> Position {
    let page = details.num_values_per_node as usize;
    let (start, end, order) = direction(details);
    let left = end.is_none().then_some(page);
    if details.is_read_modified {
        let span = span(start, end, order);
        return Position::Modified(ModifiedPosition { order, span, skip: 0, page, left });
    }
    Position::Raw(RawPosition {
        order,
        next: start,
        end,
        page,
        left,
        start_bound: details.return_bounds,
        end_bound: details.return_bounds && end.is_some(),
        only_bound: false,
    })
}
