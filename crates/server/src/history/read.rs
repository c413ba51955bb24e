//! The job of a HistoryRead: reads the stores and encodes the results.

use super::NodeHistory;
use super::aggregate::bound::{self, Rules};
use super::aggregate::{Aggregate, Configuration, processed};
use super::point::{Begun, HistoryPoints, Point};
use super::store::{
    AnnotationKey, EventCursor, HistoryStore, HistoryValue, ModifiedValue, NodeKey, Order, ReadLimit, Span,
    StoreError,
};
use crate::account::{Account, Category};
use std::sync::Arc;
use taktwerk_schema::{Annotation, HistoryData, HistoryModifiedData, ModificationInfo};
use taktwerk_types::codec::{encode_bytes, encode_len, encode_sized};
use taktwerk_types::variant::data_value::{
    HAS_SERVER_TIMESTAMP, HAS_SOURCE_TIMESTAMP, HAS_STATUS, HAS_VALUE,
};
use taktwerk_types::{
    Encode, ExtensionObject, NodeId, NumericRange, StatusCode, Structure, TimestampsToReturn, UtcTime,
    Variant,
};

/// Limits of one response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Values of all nodes.
    pub(crate) values_max: usize,
    /// Raw values processed for aggregates and interpolation.
    pub(crate) raw_max: usize,
    /// Bytes after which the rest is left to continuation points.
    pub(crate) len_max: usize,
    /// Continuation points of the session.
    pub(crate) points_max: usize,
}

/// Where reading a Variable's history begins or continues.
#[derive(Debug, Clone)]
pub(crate) enum Position {
    Raw(RawPosition),
    Modified(ModifiedPosition),
    AtTime {
        times: Arc<[UtcTime]>,
        next: usize,
        simple_bounds: bool,
    },
    /// Annotations at given times (Part 11 §6.5.6).
    Annotations {
        times: Arc<[UtcTime]>,
        next: usize,
    },
    /// Annotations of a range: raw data of an Annotations Property.
    AnnotationRange(AnnotationPosition),
    Processed(ProcessedPosition),
    /// For events, which another job reads.
    Events(EventPosition),
}

impl Position {
    /// Heap that it owns, in bytes.
    pub(crate) fn extra(&self) -> usize {
        match self {
            Self::AtTime { times, .. } | Self::Annotations { times, .. } => size_of_val(&**times),
            Self::AnnotationRange(position) => position.after.as_ref().map_or(0, |after| after.user.len()),
            Self::Raw(_) | Self::Modified(_) | Self::Processed(_) | Self::Events(_) => 0,
        }
    }
}

/// Reading raw values (Part 11 §6.5.3).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawPosition {
    pub(crate) order: Order,
    /// The next time, in reading order.
    pub(crate) next: UtcTime,
    /// End, exclusive. `None` without an end.
    pub(crate) end: Option<UtcTime>,
    /// Values per response; 0 is no limit.
    pub(crate) page: usize,
    /// Remaining number of values, if there is no end.
    pub(crate) left: Option<usize>,
    /// Whether to return the value at or before the start.
    pub(crate) start_bound: bool,
    /// Whether to return the value at or after the end.
    pub(crate) end_bound: bool,
    /// Only the end's bound remains to be returned.
    pub(crate) only_bound: bool,
}

impl Default for RawPosition {
    fn default() -> Self {
        Self {
            order: Order::Forward,
            next: UtcTime::NULL,
            end: None,
            page: 0,
            left: None,
            start_bound: false,
            end_bound: false,
            only_bound: false,
        }
    }
}

/// Reading modified values.
#[derive(Debug, Clone)]
pub(crate) struct ModifiedPosition {
    pub(crate) order: Order,
    pub(crate) span: Span,
    pub(crate) skip: usize,
    pub(crate) page: usize,
    pub(crate) left: Option<usize>,
}

/// Reading annotations with ReadRaw (Part 11 §5.1.2).
#[derive(Debug, Clone)]
pub(crate) struct AnnotationPosition {
    pub(crate) order: Order,
    pub(crate) span: Span,
    /// The last annotation that was returned.
    pub(crate) after: Option<AnnotationKey>,
    /// Annotations per response; 0 is no limit.
    pub(crate) page: usize,
    /// Remaining number of annotations, if there is no end.
    pub(crate) left: Option<usize>,
}

/// Reading events (Part 11 §6.5.2).
#[derive(Debug, Clone)]
pub(crate) struct EventPosition {
    pub(crate) order: Order,
    pub(crate) span: Span,
    /// The last event that was examined.
    pub(crate) after: Option<EventCursor>,
    /// Events per response; 0 is no limit.
    pub(crate) page: usize,
    /// Remaining number of events, if there is no end.
    pub(crate) left: Option<usize>,
}

/// Reading aggregates (Part 11 §6.5.4).
#[derive(Debug, Clone)]
pub(crate) struct ProcessedPosition {
    pub(crate) aggregate: Aggregate,
    /// Start of the next interval.
    pub(crate) next: UtcTime,
    pub(crate) end: UtcTime,
    /// Interval in ticks; 0 is one interval up to the end.
    pub(crate) interval: i64,
    pub(crate) configuration: Configuration,
}

/// One node of a HistoryRead.
#[derive(Debug)]
pub(crate) struct NodeRead {
    /// Its history, or why it cannot be read.
    pub(crate) target: Result<Arc<NodeHistory>, StatusCode>,
    pub(crate) range: Option<NumericRange>,
    /// Where to begin; `None` with a continuation point.
    pub(crate) position: Option<Position>,
    pub(crate) continuation: Box<[u8]>,
}

/// A HistoryRead.
#[derive(Debug)]
pub(crate) struct ReadJob {
    pub(crate) nodes: Vec<NodeRead>,
    pub(crate) timestamps: TimestampsToReturn,
    /// Only release the continuation points.
    pub(crate) release: bool,
    pub(crate) points: Arc<HistoryPoints>,
    pub(crate) bounds: Bounds,
    /// Charged for the data held while the job runs.
    pub(crate) account: Arc<Account>,
}

/// The values read for a node.
struct Page {
    values: Values,
    /// Where to continue.
    rest: Option<Position>,
}

enum Values {
    Plain(Vec<HistoryValue>),
    Modified(Vec<ModifiedValue>),
    Annotations(Vec<(UtcTime, Annotation)>),
}

/// Memory of a value without its heap, in bytes.
const VALUE: usize = 64;
/// Maximum heap of a node's values, in bytes: arrays and texts. The last value may exceed it.
pub(crate) const HEAP_MAX: usize = 8 << 20;
/// Smallest encoded value, in bytes: mask, type, status or value, one timestamp.
const VALUE_LEN_MIN: usize = 8;

impl ReadJob {
    /// Maximum size of the values held at a time, in bytes.
    fn held(&self) -> usize {
        let (mut values, mut raw) = (0usize, 0);
        for node in &self.nodes {
            match &node.position {
                Some(
                    Position::Raw(RawPosition { page, .. })
                    | Position::Modified(ModifiedPosition { page, .. }),
                ) if *page > 0 => {
                    values = values.saturating_add(*page);
                }
                Some(Position::AtTime { times, .. }) => values = values.saturating_add(times.len()),
                Some(
                    Position::Raw(_)
                    | Position::Modified(_)
                    | Position::Annotations { .. }
                    | Position::AnnotationRange(_),
                ) => {
                    values = self.bounds.values_max;
                }
                Some(Position::Processed(_) | Position::Events(_)) | None => {
                    (values, raw) = (self.bounds.values_max, self.bounds.raw_max);
                }
            }
        }
        let values = values.min(self.bounds.values_max).saturating_add(raw);
        VALUE.saturating_mul(values).saturating_add(HEAP_MAX)
    }

    /// Reads all nodes. Returns the encoded results.
    ///
    /// # Errors
    /// Bad_OutOfMemory if the account limit does not allow the values.
    pub(crate) fn run(self) -> Result<Vec<u8>, StatusCode> {
        let charge = self.account.charge(Category::Requests, self.held());
        let charge = charge.map_err(|exhausted| exhausted.status())?;
        let mut out = Vec::new();
        encode_len(self.nodes.len(), &mut out);
        let mut left = self.bounds.values_max;
        let mut raw_left = self.bounds.raw_max.saturating_mul(3);
        let begun = self.points.begin();
        for node in &self.nodes {
            let before = out.len();
            if let Err(status) = self.one(node, begun, &mut left, &mut raw_left, &mut out) {
                out.truncate(before);
                encode_failure(status, &mut out);
            }
        }
        // Part 4 §5.11.3.2: there are no diagnostics.
        encode_len(0, &mut out);
        drop(charge);
        Ok(out)
    }

    fn one(
        &self,
        node: &NodeRead,
        request: Begun,
        left: &mut usize,
        raw_left: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StatusCode> {
        let target = node.target.as_ref().map_err(|status| *status)?;
        let position = match &node.position {
            Some(position) => position.clone(),
            None => self.points.take(&node.continuation, &target.points_key())?,
        };
        if self.release {
            encode_failure(StatusCode::GOOD, out);
            return Ok(());
        }
        let begun = position.clone();
        let bytes = self.bounds.len_max.saturating_sub(out.len());
        let limit = ReadLimit { count: (*left).min(bytes / VALUE_LEN_MIN), bytes: bytes.min(HEAP_MAX) };
        let page = read(target, position, limit, self.bounds.raw_max, raw_left).map_err(|error| {
            tracing::warn!(node = &*target.key, %error, "history cannot be read");
            error.status_of_read()
        })?;
        let Page { values, mut rest } = page;
        let start = out.len();
        StatusCode::GOOD.encode(out);
        let (type_id, count) = match &values {
            Values::Plain(values) => (HistoryData::BINARY_ENCODING_ID, values.len()),
            Values::Modified(values) => (HistoryModifiedData::BINARY_ENCODING_ID, values.len()),
            Values::Annotations(values) => (HistoryData::BINARY_ENCODING_ID, values.len()),
        };
        // The continuation point is inserted at the front once it is known.
        let mut body = Vec::with_capacity(32 + count * 24);
        NodeId::numeric(0, type_id).encode(&mut body);
        body.push(1);
        let mut given = 0;
        encode_sized(&mut body, |body| {
            let at = body.len();
            encode_len(0, body);
            let full = self.bounds.len_max.saturating_sub(out.len());
            match &values {
                Values::Plain(values) => {
                    for value in values {
                        if given > 0 && body.len() > full {
                            break;
                        }
                        encode_value(value, node.range.as_ref(), self.timestamps, body);
                        given += 1;
                    }
                    put_count(body, at, given);
                }
                Values::Annotations(values) => {
                    for (time, annotation) in values {
                        if given > 0 && body.len() > full {
                            break;
                        }
                        let value = annotation_value(*time, annotation);
                        encode_value(&value, node.range.as_ref(), self.timestamps, body);
                        given += 1;
                    }
                    put_count(body, at, given);
                }
                Values::Modified(values) => {
                    for value in values {
                        if given > 0 && body.len() > full {
                            break;
                        }
                        encode_value(&value.value, node.range.as_ref(), self.timestamps, body);
                        given += 1;
                    }
                    put_count(body, at, given);
                    encode_len(given, body);
                    for value in values.iter().take(given) {
                        encode_modification(value, body);
                    }
                }
            }
        });
        if given < count {
            rest = Some(values.rest(given, begun).ok_or(StatusCode::BAD_RESPONSE_TOO_LARGE)?);
        }
        *left = left.saturating_sub(given);
        let continuation = match rest {
            None => None,
            Some(position) => {
                let point = Point { node: target.points_key(), position };
                Some(self.points.keep(point, self.bounds.points_max, request)?)
            }
        };
        if given == 0 && continuation.is_none() {
            out.truncate(start);
            StatusCode::GOOD_NO_DATA.encode(out);
        }
        encode_bytes(continuation.as_ref().map(<[u8; 8]>::as_slice), out);
        out.append(&mut body);
        Ok(())
    }
}

impl Values {
    /// Where to continue if only `given` values were returned, starting from `begun`.
    fn rest(&self, given: usize, begun: Position) -> Option<Position> {
        match (self, begun) {
            (Self::Modified(_), Position::Modified(mut position)) => {
                position.skip += given;
                position.left = position.left.map(|left| left.saturating_sub(given));
                Some(Position::Modified(position))
            }
            (Self::Annotations(values), Position::AnnotationRange(mut position)) => {
                if let Some((time, annotation)) = given.checked_sub(1).and_then(|last| values.get(last)) {
                    position.after = Some(AnnotationKey::of(*time, annotation));
                }
                position.left = position.left.map(|left| left.saturating_sub(given));
                Some(Position::AnnotationRange(position))
            }
            (Self::Plain(values), Position::Raw(mut position)) => {
                let next = values.get(given)?.source;
                let is_behind = position.end.is_some_and(|end| match position.order {
                    Order::Forward => next >= end,
                    Order::Backward => next <= end,
                });
                position.only_bound = is_behind;
                position.end_bound |= is_behind;
                position.start_bound = false;
                position.next = next;
                position.left = position.left.map(|left| left.saturating_sub(given));
                Some(Position::Raw(position))
            }
            (Self::Plain(values), Position::Processed(mut position)) => {
                position.next = values.get(given)?.source;
                Some(Position::Processed(position))
            }
            (Self::Plain(_), Position::AtTime { times, simple_bounds, next }) => {
                Some(Position::AtTime { times, next: next + given, simple_bounds })
            }
            _ => None,
        }
    }
}

fn put_count(body: &mut [u8], at: usize, count: usize) {
    if let Some(gap) = body.get_mut(at..at + 4) {
        gap.copy_from_slice(&(count as u32).to_le_bytes());
    }
}

/// A HistoryReadResult without data.
pub(crate) fn encode_failure(status: StatusCode, out: &mut Vec<u8>) {
    status.encode(out);
    encode_bytes(None, out);
    ExtensionObject::NULL.encode(out);
}

fn encode_value(
    value: &HistoryValue,
    range: Option<&NumericRange>,
    timestamps: TimestampsToReturn,
    out: &mut Vec<u8>,
) {
    let mut status = value.status;
    let mut part = None;
    if let (Some(range), false) = (range, value.value.is_empty()) {
        match range.read(&value.value) {
            Ok(read) => part = Some(read),
            Err(failure) => {
                status = failure;
                part = Some(Variant::Empty);
            }
        }
    }
    let shown = part.as_ref().unwrap_or(&value.value);
    let mut mask = 0;
    if !shown.is_empty() {
        mask |= HAS_VALUE;
    }
    if status != StatusCode::GOOD {
        mask |= HAS_STATUS;
    }
    if timestamps.source() {
        mask |= HAS_SOURCE_TIMESTAMP;
    }
    if timestamps.server() {
        mask |= HAS_SERVER_TIMESTAMP;
    }
    out.push(mask);
    if mask & HAS_VALUE != 0 {
        shown.encode(out);
    }
    if mask & HAS_STATUS != 0 {
        status.encode(out);
    }
    if timestamps.source() {
        value.source.encode(out);
    }
    if timestamps.server() {
        value.server.encode(out);
    }
}

fn encode_modification(value: &ModifiedValue, out: &mut Vec<u8>) {
    let info = ModificationInfo {
        modification_time: value.by.time,
        update_type: value.by.kind,
        user_name: (&*value.by.user).into(),
    };
    info.encode(out);
}

/// Reads values from a position on.
fn read(
    target: &NodeHistory,
    position: Position,
    mut limit: ReadLimit,
    raw_max: usize,
    raw_left: &mut usize,
) -> Result<Page, StoreError> {
    let store = &*target.store;
    match position {
        Position::Raw(position) => raw(store, &target.key, position, limit),
        Position::Modified(position) => modified(store, &target.key, position, limit),
        Position::AtTime { times, next, simple_bounds } => {
            let rules = Rules::new(target.stepped, target.aggregates);
            let mut values = Vec::new();
            let mut at = next;
            while let Some(time) =
                times.get(at).filter(|_| !limit.is_reached() && (*raw_left > 0 || at == next))
            {
                *raw_left = raw_left.saturating_sub(QUERY);
                let value = bound::at_time(store, &target.key, *time, rules, simple_bounds)?;
                limit.give(&value);
                values.push(value);
                at += 1;
            }
            let rest = (at < times.len()).then_some(Position::AtTime { times, next: at, simple_bounds });
            Ok(Page { values: Values::Plain(values), rest })
        }
        Position::Annotations { times, next } => {
            let mut values = Vec::new();
            let mut at = next;
            // All annotations of one time are returned together.
            limit.count = (limit.count / ANNOTATION_VALUES).max(1);
            while let Some(time) =
                times.get(at).filter(|_| !limit.is_reached() && (*raw_left > 0 || at == next))
            {
                *raw_left = raw_left.saturating_sub(QUERY);
                let span = Span { first: *time, last: *time };
                let of_time = ReadLimit { count: ANNOTATIONS_MAX, ..limit };
                let found = store.annotations(&target.key, span, Order::Forward, None, of_time)?;
                limit = limit.behind(&found);
                values.extend(found.iter().map(|(source, annotation)| annotation_value(*source, annotation)));
                at += 1;
            }
            let rest = (at < times.len()).then_some(Position::Annotations { times, next: at });
            Ok(Page { values: Values::Plain(values), rest })
        }
        Position::AnnotationRange(position) => annotations(store, &target.key, position, limit),
        // The node has a history of values, not of events.
        Position::Events(_) => {
            let status = StatusCode::BAD_CONTINUATION_POINT_INVALID;
            Err(StoreError { status, message: "a continuation point of events".to_owned() })
        }
        Position::Processed(position) => {
            let mut values = Vec::new();
            let rest = processed::read(target, position, limit, raw_max, raw_left, &mut values)?;
            Ok(Page { values: Values::Plain(values), rest: rest.map(Position::Processed) })
        }
    }
}

/// Cost of a store query, in raw values: a HistoryRead of many times or intervals is work even without values.
pub(crate) const QUERY: usize = 100;
/// Maximum number of annotations returned for one time.
const ANNOTATIONS_MAX: usize = 1_000;
/// Size of an annotation without its texts, in values.
const ANNOTATION_VALUES: usize = 8;

/// The result for a missing bound (Part 11 §6.5.3.2).
fn no_bound(time: UtcTime) -> HistoryValue {
    let status = StatusCode::BAD_BOUND_NOT_FOUND;
    HistoryValue { source: time, server: time, status, value: Variant::Empty }
}

fn opposite(order: Order) -> Order {
    match order {
        Order::Forward => Order::Backward,
        Order::Backward => Order::Forward,
    }
}

/// The span from a time on, in reading order.
fn from(time: UtcTime, order: Order) -> Span {
    match order {
        Order::Forward => Span { first: time, ..Span::ALL },
        Order::Backward => Span { last: time, ..Span::ALL },
    }
}

fn raw(
    store: &dyn HistoryStore,
    node: &NodeKey,
    mut position: RawPosition,
    limit: ReadLimit,
) -> Result<Page, StoreError> {
    let order = position.order;
    let mut max = if position.page == 0 { limit.count } else { limit.count.min(position.page) };
    max = position.left.map_or(max, |left| max.min(left));
    let mut values = Vec::new();
    if max == 0 {
        let rest = (position.left != Some(0)).then_some(Position::Raw(position));
        return Ok(Page { values: Values::Plain(values), rest });
    }
    if position.start_bound {
        position.start_bound = false;
        let one = ReadLimit::count(1);
        store.read(node, from(position.next, opposite(order)), opposite(order), one, &mut values)?;
        match values.first() {
            // It is also the first value of the range.
            Some(value) if value.source == position.next => values.clear(),
            Some(_) => {}
            None => values.push(no_bound(position.next)),
        }
    }
    let mut rest = None;
    if !position.only_bound {
        let mut span = from(position.next, order);
        if let Some(end) = position.end {
            // Part 11 §6.5.3.2: a range of length zero is one point in time.
            let tick = i64::from(end != position.next);
            match order {
                Order::Forward => span.last = UtcTime::from_ticks(end.ticks().saturating_sub(tick)),
                Order::Backward => span.first = UtcTime::from_ticks(end.ticks().saturating_add(tick)),
            }
        }
        // One more value shows whether there are more.
        let wanted = ReadLimit { count: max + 1 - values.len(), bytes: limit.bytes };
        let mut has_more = false;
        let before = values.len();
        if !span.is_empty() {
            store.read(node, span, order, wanted, &mut values)?;
            has_more = wanted.behind(values.iter().skip(before)).bytes == 0;
        }
        if values.len() > max {
            let next = values.pop().map_or(position.next, |value| value.source);
            rest = Some(RawPosition { next, ..position.clone() });
        } else if let Some(last) = values.last().filter(|_| has_more) {
            // The byte limit was reached, so later values were not read.
            let step = if order == Order::Forward { 1 } else { -1 };
            let next = UtcTime::from_ticks(last.source.ticks().saturating_add(step));
            if next != last.source && span.contains(next) {
                rest = Some(RawPosition { next, ..position.clone() });
            }
        }
    }
    let end = position.end.unwrap_or(position.next);
    let is_at_end =
        |value: &HistoryValue| value.source == end && value.status != StatusCode::BAD_BOUND_NOT_FOUND;
    // A range of length zero already has its one value and needs no further page.
    if rest.is_none() && position.end_bound && !values.last().is_some_and(is_at_end) {
        if values.len() < max {
            let before = values.len();
            store.read(node, from(end, order), order, ReadLimit::count(1), &mut values)?;
            if values.len() == before {
                values.push(no_bound(end));
            }
        } else {
            rest = Some(RawPosition { only_bound: true, ..position.clone() });
        }
    }
    if let Some(left) = position.left {
        let left = left.saturating_sub(values.len());
        rest = rest.filter(|_| left > 0).map(|rest| RawPosition { left: Some(left), ..rest });
    }
    Ok(Page { values: Values::Plain(values), rest: rest.map(Position::Raw) })
}

fn modified(
    store: &dyn HistoryStore,
    node: &NodeKey,
    position: ModifiedPosition,
    limit: ReadLimit,
) -> Result<Page, StoreError> {
    let mut max = if position.page == 0 { limit.count } else { limit.count.min(position.page) };
    max = position.left.map_or(max, |left| max.min(left));
    let ModifiedPosition { order, span, skip, .. } = position;
    let wanted = ReadLimit { count: max + 1, bytes: limit.bytes };
    let mut values = store.read_modified(node, span, order, skip, wanted)?;
    let has_more = wanted.behind(&values).is_reached();
    values.truncate(max);
    let left = position.left.map(|left| left - values.len());
    let rest = (has_more && left != Some(0))
        .then(|| Position::Modified(ModifiedPosition { skip: skip + values.len(), left, ..position }));
    Ok(Page { values: Values::Modified(values), rest })
}

fn annotations(
    store: &dyn HistoryStore,
    node: &NodeKey,
    mut position: AnnotationPosition,
    limit: ReadLimit,
) -> Result<Page, StoreError> {
    if limit.is_reached() {
        return Ok(Page {
            values: Values::Annotations(Vec::new()),
            rest: Some(Position::AnnotationRange(position)),
        });
    }
    let mut max = (limit.count / ANNOTATION_VALUES).max(1);
    if position.page > 0 {
        max = max.min(position.page);
    }
    max = position.left.map_or(max, |left| max.min(left));
    // One more annotation shows whether there are more.
    let wanted = ReadLimit { count: max + 1, bytes: limit.bytes };
    let mut found =
        store.annotations(node, position.span, position.order, position.after.as_ref(), wanted)?;
    let has_more = wanted.behind(&found).is_reached();
    found.truncate(max);
    if let Some((time, annotation)) = found.last() {
        position.after = Some(AnnotationKey::of(*time, annotation));
    }
    position.left = position.left.map(|left| left.saturating_sub(found.len()));
    let rest = (has_more && position.left != Some(0)).then_some(Position::AnnotationRange(position));
    Ok(Page { values: Values::Annotations(found), rest })
}

/// An annotation as the value of an Annotations Property: its SourceTimestamp is the annotated time.
fn annotation_value(source: UtcTime, annotation: &Annotation) -> HistoryValue {
    HistoryValue {
        source,
        server: annotation.annotation_time,
        status: StatusCode::GOOD,
        value: Variant::from_structure(annotation),
    }
}
