//! Read (Part 4 §5.11.2): each DataValue is encoded before the next ReadValueId is decoded.

use super::Outcome;
use super::context::Context;
use super::deferred::{Fill, Gap};
use super::diagnostics;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::reply::Reply;
use super::request::Request;
use super::value::{encode_failure, encode_parts, encode_raw, encode_scalar, encode_snapshot, select};
use crate::account::HeapSize;
use crate::authorization::Decisions;
use crate::callback::SourceRead;
use crate::diagnostics::Live;
use crate::effect::{Job, JobResult, Task};
use crate::error::Fault;
use crate::job_kind::JobKind;
use crate::limits::Limits;
use crate::now::Now;
use crate::space::NodeIx;
use crate::space::attribute as attribute_of;
use crate::space::nodes::{Nodes, ValueAt};
use crate::space::view::attribute;
use crate::work::unit;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_schema::ids::data_type_ids;
use taktwerk_schema::{PermissionType, ReadResponse};
use taktwerk_slots::{SlotHandle, Snapshot};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    DataValue, Decode, DecodeError, DecodeLimits, Decoder, NodeIdRef, NumericRange, StatusCode,
    TimestampsToReturn, UtcTime, Variant,
};

/// Smallest encoded ReadValueId in bytes: NodeId (2), AttributeId, IndexRange, DataEncoding (2 + 4).
pub(crate) const ITEM_LEN_MIN: usize = 2 + 4 + 4 + 6;

/// Maximum age of the subscription diagnostics.
const REFRESH_EVERY: Duration = Duration::from_millis(100);

/// A borrowed ReadValueId (Part 4 §7.29).
struct Item<'a> {
    node_id: NodeIdRef<'a>,
    attribute_id: u32,
    index_range: &'a str,
    encoding_namespace: u16,
    encoding_name: &'a str,
}

impl<'a> Item<'a> {
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            node_id: NodeIdRef::decode(decoder)?,
            attribute_id: u32::decode(decoder)?,
            index_range: decoder.str()?.unwrap_or(""),
            encoding_namespace: u16::decode(decoder)?,
            encoding_name: decoder.str()?.unwrap_or(""),
        })
    }

    #[inline]
    fn is_plain_value(&self) -> bool {
        self.attribute_id == attribute::VALUE && self.index_range.is_empty() && !self.has_encoding()
    }

    fn has_encoding(&self) -> bool {
        !self.encoding_name.is_empty() || self.encoding_namespace != 0
    }
}

/// Bytes after the NodeId of an item for a whole Value: AttributeId, null IndexRange, null DataEncoding.
const PLAIN_TAIL_LEN: usize = 4 + 4 + 2 + 4;

/// Recognizes the most common ReadValueId: the whole Value of a node with a numeric id outside namespace 0. Returns
/// namespace, number and length without building any structure.
#[inline]
fn plain_numeric(bytes: &[u8]) -> Option<(u16, u32, usize)> {
    let (namespace, number, head) = match *bytes.first()? {
        1 => {
            let [_, namespace, low, high] = *bytes.first_chunk::<4>()?;
            (u16::from(namespace), u32::from(u16::from_le_bytes([low, high])), 4)
        }
        2 => {
            let [_, n0, n1, i0, i1, i2, i3] = *bytes.first_chunk::<7>()?;
            (u16::from_le_bytes([n0, n1]), u32::from_le_bytes([i0, i1, i2, i3]), 7)
        }
        _ => return None,
    };
    let tail = bytes.get(head..)?.first_chunk::<PLAIN_TAIL_LEN>()?;
    let [a0, a1, a2, a3, r0, r1, r2, r3, q0, q1, e0, e1, e2, e3] = *tail;
    let is_plain = u32::from_le_bytes([a0, a1, a2, a3]) == attribute::VALUE
        && i32::from_le_bytes([r0, r1, r2, r3]) <= 0
        && [q0, q1] == [0, 0]
        && i32::from_le_bytes([e0, e1, e2, e3]) <= 0;
    (is_plain && namespace != 0).then_some((namespace, number, head + PLAIN_TAIL_LEN))
}

/// Parameters that apply to all items of a request.
#[derive(Clone, Copy)]
struct Params<'a> {
    limits: &'a Limits,
    /// In ms.
    max_age: f64,
    timestamps: TimestampsToReturn,
    now: Now,
    start_time: UtcTime,
    /// Whether the shard's diagnostics were published for this request.
    refreshed: bool,
}

impl Params<'_> {
    fn server(&self) -> Option<UtcTime> {
        self.timestamps.server().then_some(self.now.utc)
    }
}

/// The outcome of reading an item.
enum Reading {
    /// Encoded.
    Done,
    /// The address space must be unlocked before the value's source is called.
    Ask(Arc<dyn crate::callback::ValueSource>, Option<SlotHandle>),
    /// The value shows subscription diagnostics, which must be published first.
    Refresh,
}

/// A Read in progress.
#[derive(Debug)]
pub(crate) struct Read {
    /// In ms.
    max_age: f64,
    timestamps: TimestampsToReturn,
    /// Values that arrive later.
    pub(super) gaps: Vec<(Gap, Task)>,
}

pub(crate) fn read(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut body = request.body.clone();
    let max_age = f64::decode(&mut body)?;
    if max_age < 0.0 || max_age.is_nan() {
        return Err(Fault::peer(StatusCode::BAD_MAX_AGE_INVALID, "Part 4 §5.11.2.2"));
    }
    let timestamps = TimestampsToReturn::from_wire(i32::decode(&mut body)?)
        .map_err(|status| Fault::peer(status, "Part 4 §7.40"))?;
    encode_len(caller.count, reply.begin::<ReadResponse>());
    list::start(cx, caller, request, Cursor::Read(Read { max_age, timestamps, gaps: Vec::new() }), reply)
}

impl Read {
    #[inline]
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let decisions = &*caller.decisions;
        let mut params = Params {
            max_age: self.max_age,
            timestamps: self.timestamps,
            now: cx.now,
            start_time: cx.shared.config().start_time,
            refreshed: false,
            limits: &cx.shared.config().limits,
        };
        let mut nodes = cx.shared.space().read();
        while list.goes_on(reply)? {
            if let Some((namespace, number, len)) = plain_numeric(list.body.rest())
                && let Some(scalar) = nodes.readable_scalar(decisions, namespace, number)
            {
                list.body.take(len)?;
                encode_scalar(scalar, params.timestamps, params.now.utc, reply.out());
                list.left -= 1;
                list.units -= 1;
                continue;
            }
            let before = reply.len();
            let item = Item::decode(&mut list.body)?;
            let mut read = read_item(&nodes, decisions, &item, &params, reply.out());
            if matches!(read, Reading::Refresh) {
                // Collecting the diagnostics of all sessions is too expensive for every request.
                if *cx.published + REFRESH_EVERY <= cx.now.instant {
                    *cx.published = cx.now.instant;
                    diagnostics::publish(cx.shared, cx.sessions, cx.engine);
                }
                params.refreshed = true;
                read = read_item(&nodes, decisions, &item, &params, reply.out());
            }
            if let Reading::Ask(source, slot) = read {
                // A source is application code: it must not run while the address space is locked.
                drop(nodes);
                let range = params.limits.index_range(item.index_range).unwrap_or_default();
                self.ask(cx, &*source, slot, range, &params, reply);
                nodes = cx.shared.space().read();
            }
            list.done(unit::OPERATION, reply.len() - before);
        }
        Ok(())
    }

    /// Calls the source of a value.
    fn ask(
        &mut self,
        cx: &Context<'_>,
        source: &dyn crate::callback::ValueSource,
        slot: Option<SlotHandle>,
        range: Option<NumericRange>,
        params: &Params,
        reply: &mut Reply<'_>,
    ) {
        let wrap: fn(DataValue) -> JobResult = JobResult::Value;
        let (timestamps, now) = (params.timestamps, params.now.utc);
        let job = match source.read() {
            SourceRead::Now(value) => {
                return encode_value(complete(value, now), range.as_ref(), timestamps, now, reply.out());
            }
            _ if !cx.has_capacity_for(self.gaps.len() + 1) => {
                return encode_failure(StatusCode::BAD_SERVER_TOO_BUSY, params.server(), reply.out());
            }
            SourceRead::Blocking(run) => Job::blocking(run, wrap),
            SourceRead::Later(future) => Job::future(future, wrap),
        };
        let fill = Fill::Value(PendingValue { slot, range, timestamps });
        self.gaps.push((Gap::new(reply.body_len(), fill), Task::new(JobKind::ReadValue, job)));
    }
}

/// A value of a Read that is being fetched.
#[derive(Debug)]
pub(crate) struct PendingValue {
    /// The slot in which the value is stored too, for MaxAge and for monitored items.
    slot: Option<SlotHandle>,
    range: Option<NumericRange>,
    timestamps: TimestampsToReturn,
}

impl HeapSize for PendingValue {
    fn heap_size(&self) -> usize {
        self.range.heap_size()
    }
}

impl PendingValue {
    /// Stores a received value and appends it to the response.
    pub(super) fn finish(&self, value: DataValue, now: UtcTime, out: &mut Vec<u8>) {
        let value = complete(value, now);
        if let Some(slot) = &self.slot {
            keep(slot, &value, now);
        }
        encode_value(value, self.range.as_ref(), self.timestamps, now, out);
    }

    /// Appends a status instead of a value that was not fetched. The stored value does not change.
    pub(super) fn refuse(&mut self, status: StatusCode, now: UtcTime, out: &mut Vec<u8>) {
        self.slot = None;
        self.finish(DataValue::from_status(status), now, out);
    }
}

#[inline]
fn read_item(
    nodes: &Nodes,
    decisions: &Decisions,
    item: &Item<'_>,
    params: &Params<'_>,
    out: &mut Vec<u8>,
) -> Reading {
    let Some(ix) = nodes.resolve(item.node_id) else {
        encode_failure(unknown(item.node_id), params.server(), out);
        return Reading::Done;
    };
    if item.is_plain_value()
        && let Some(snapshot) = nodes.readable_slot(decisions, ix)
    {
        encode_snapshot(&snapshot, params.timestamps, params.now.utc, out);
        return Reading::Done;
    }
    match read_general(nodes, decisions, ix, item, params, out) {
        Ok(read) => read,
        Err(status) => {
            encode_failure(status, params.server(), out);
            Reading::Done
        }
    }
}

/// The status for an unknown NodeId.
pub(crate) fn unknown(id: NodeIdRef<'_>) -> StatusCode {
    if id.is_null() { StatusCode::BAD_NODE_ID_INVALID } else { StatusCode::BAD_NODE_ID_UNKNOWN }
}

/// Reads everything but the whole Value of an ordinary Variable.
fn read_general(
    nodes: &Nodes,
    decisions: &Decisions,
    ix: NodeIx,
    item: &Item<'_>,
    params: &Params<'_>,
    out: &mut Vec<u8>,
) -> Result<Reading, StatusCode> {
    let view = nodes.view(ix).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if !decisions.knows(nodes, ix) {
        // Checked first, so that no other status reveals that the node exists.
        return Err(StatusCode::BAD_NODE_ID_UNKNOWN);
    }
    let range = params.limits.index_range(item.index_range)?;
    if item.attribute_id != attribute::VALUE {
        if item.has_encoding() {
            return Err(StatusCode::BAD_DATA_ENCODING_INVALID);
        }
        let mut value = attribute_of(nodes, decisions, ix, &view, item.attribute_id)?;
        if let Some(range) = &range {
            value = range.read(&value)?;
        }
        encode_parts(Some(&value), None, None, params.server(), out);
        return Ok(Reading::Done);
    }
    if !view.has_value() {
        return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
    if !view.is_readable() {
        return Err(StatusCode::BAD_NOT_READABLE);
    }
    decisions.check(nodes, ix, PermissionType::READ)?;
    if item.has_encoding() {
        check_encoding(nodes, &view, item)?;
    }
    let utc = params.now.utc;
    match nodes.value_at(ix) {
        ValueAt::Slot(slot) => {
            let snapshot = nodes.slot(slot).ok_or(StatusCode::BAD_INTERNAL_ERROR)?;
            encode_selected(&snapshot, range.as_ref(), params, out);
        }
        ValueAt::Source(source, slot) => {
            let cached = nodes.slot(slot).filter(|snapshot| is_fresh(snapshot, params.max_age, utc));
            if let Some(snapshot) = cached {
                encode_selected(&snapshot, range.as_ref(), params, out);
                return Ok(Reading::Done);
            }
            return Ok(Reading::Ask(Arc::clone(source), nodes.slot_handle(ix)));
        }
        ValueAt::Static(bytes) if range.is_none() => {
            // Values from the static data are as old as the server.
            let source = params.timestamps.source().then_some(params.start_time);
            encode_raw(bytes, source, params.server(), out);
        }
        ValueAt::Static(bytes) => {
            let value = Variant::decode_from(bytes, DecodeLimits::DEFAULT)
                .map_err(|_| StatusCode::BAD_INTERNAL_ERROR)?;
            let value = DataValue::new(value).at(params.start_time, utc);
            encode_value(value, range.as_ref(), params.timestamps, utc, out);
        }
        ValueAt::Computed(ix) if !params.refreshed && Live::shows_subscriptions(ix) => {
            return Ok(Reading::Refresh);
        }
        ValueAt::Computed(ix) => {
            let value = nodes.computed(ix, utc)?;
            encode_value(DataValue::new(value).at(utc, utc), range.as_ref(), params.timestamps, utc, out);
        }
        ValueAt::None => {
            let value = DataValue::new(nodes.unset_value(ix)?).at(params.start_time, utc);
            encode_value(value, range.as_ref(), params.timestamps, utc, out);
        }
    }
    Ok(Reading::Done)
}

/// DataEncoding (Part 4 §5.11.2.2): only structures have one, and only the binary one is supported here.
fn check_encoding(
    nodes: &Nodes,
    view: &crate::space::view::NodeView<'_>,
    item: &Item<'_>,
) -> Result<(), StatusCode> {
    let structure = NodeIx::ns0(data_type_ids::STRUCTURE);
    let is_structure = view
        .data_type()
        .and_then(|id| nodes.resolve(id.as_ref()))
        .is_some_and(|data_type| nodes.is_subtype(data_type, structure));
    if !is_structure {
        return Err(StatusCode::BAD_DATA_ENCODING_INVALID);
    }
    if item.encoding_namespace == 0 && item.encoding_name == "Default Binary" {
        Ok(())
    } else {
        Err(StatusCode::BAD_DATA_ENCODING_UNSUPPORTED)
    }
}

/// Whether a source's last value is recent enough for MaxAge (Part 4 §5.11.2.2): 0 requires a new one, Int32.MaxValue
/// and more accept any.
fn is_fresh(snapshot: &Snapshot, max_age: f64, now: UtcTime) -> bool {
    if max_age <= 0.0 || snapshot.server.is_null() {
        return false;
    }
    let age = (now.ticks().saturating_sub(snapshot.server.ticks())) as f64 / 1e4;
    max_age >= f64::from(i32::MAX) || age <= max_age
}

fn encode_selected(
    snapshot: &Snapshot,
    range: Option<&NumericRange>,
    params: &Params<'_>,
    out: &mut Vec<u8>,
) {
    match range {
        None => encode_snapshot(snapshot, params.timestamps, params.now.utc, out),
        Some(_) => encode_value(snapshot.to_data_value(), range, params.timestamps, params.now.utc, out),
    }
}

/// Fills in fields that a source omitted.
fn complete(mut value: DataValue, now: UtcTime) -> DataValue {
    value.source_timestamp = value.source_timestamp.or(Some(now));
    value.server_timestamp = value.server_timestamp.or(Some(now));
    value
}

/// Stores a source's value in its slot.
fn keep(slot: &SlotHandle, value: &DataValue, now: UtcTime) {
    let variant = value.value.clone().unwrap_or_default();
    slot.set(variant, value.status(), value.source_timestamp.unwrap_or(now), now);
}

/// Appends a DataValue with the requested part and timestamps.
fn encode_value(
    value: DataValue,
    range: Option<&NumericRange>,
    timestamps: TimestampsToReturn,
    server: UtcTime,
    out: &mut Vec<u8>,
) {
    let value = match range {
        Some(range) => select(value, range),
        None => value,
    };
    let source = if timestamps.source() { value.source_timestamp } else { None };
    let server = timestamps.server().then_some(server);
    encode_parts(value.value.as_ref(), value.status, source, server, out);
}
