//! Write (Part 4 §5.11.4).
//!
//! `later`: writes whose handlers may block; `note`: audit records.

mod later;
mod note;

pub(crate) use later::PendingWrite;

use super::Outcome;
use super::context::Context;
use super::deferred::Gap;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::read::unknown;
use super::reply::Reply;
use super::request::Request;
use crate::account::HeapSize;
use crate::authorization::Decisions;
use crate::callback::{CallContext, WriteCall, WriteHandler};
use crate::effect::Task;
use crate::error::Fault;
use crate::space::NodeIx;
use crate::space::attribute as attribute_of;
use crate::space::data_type::{Expected, Fit};
use crate::space::nodes::{Nodes, ValueAt};
use crate::space::semantics::SemanticChanges;
use crate::space::view::attribute;
use crate::work::unit;
use note::Note;
use std::sync::Arc;
use taktwerk_schema::ids::reference_type_ids;
use taktwerk_schema::{AccessLevelType, PermissionType, WriteResponse};
use taktwerk_slots::{SlotHandle, Snapshot};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    DataValue, Decode, Encode, NodeId, NodeIdRef, NumericRange, StatusCode, UtcTime, Variant,
};

/// A checked write.
struct Target {
    slot: SlotHandle,
    handler: Option<Arc<dyn WriteHandler>>,
    /// The data to store; without a value if only a part of the value is written.
    value: DataValue,
    part: Option<Part>,
    /// The variable whose semantics this write changes.
    gives_meaning_to: Option<SlotHandle>,
}

/// A part of a value to write, and the requirements for the whole value.
struct Part {
    range: NumericRange,
    written: Variant,
    expected: Expected,
}

impl Part {
    /// The whole value with the part merged in.
    fn merge(&self, nodes: &Nodes, mut present: Variant) -> Result<Variant, StatusCode> {
        let written = self.expected.part(&present, self.written.clone());
        self.range.write(&mut present, &written)?;
        match self.expected.fit(nodes, present) {
            Fit::Yes(merged) => Ok(merged),
            Fit::WrongType | Fit::TooLong => Err(StatusCode::BAD_TYPE_MISMATCH),
        }
    }
}

/// Properties that define the semantics of a variable: a change sets the SemanticsChanged bit of the next value (Part 8
/// §5.2 and the variable types of §5.3).
const MEANINGFUL: &[&str] = &[
    "EURange",
    "InstrumentRange",
    "EngineeringUnits",
    "Title",
    "EnumStrings",
    "EnumValues",
    "ValueAsText",
    "TrueState",
    "FalseState",
    "ValuePrecision",
    "AxisDefinition",
    "XAxisDefinition",
    "YAxisDefinition",
    "ZAxisDefinition",
    "AxisScaleType",
];

/// The slot of the variable that a property describes.
fn described(nodes: &Nodes, property: NodeIx) -> Option<SlotHandle> {
    nodes.slot_handle(described_node(nodes, property)?)
}

/// The variable that a property describes.
fn described_node(nodes: &Nodes, property: NodeIx) -> Option<NodeIx> {
    let (namespace, name) = nodes.view(property)?.browse_name_parts();
    if namespace != 0 || !MEANINGFUL.contains(&&*name) {
        return None;
    }
    let mut owner = None;
    nodes.references(property, |reference| {
        if !reference.is_forward && reference.reference_type == NodeIx::ns0(reference_type_ids::HAS_PROPERTY)
        {
            owner = Some(reference.target);
        }
        owner.is_none()
    });
    owner
}

/// Whether a write has changed the value. Writing the same value does not change the semantics.
fn is_another(before: Option<&Snapshot>, slot: &SlotHandle) -> bool {
    let now = slot.read();
    before.is_none_or(|before| before.status != now.status || before.value() != now.value())
}

/// The semantics of a variable have changed: its readers see it with the next value, and event items receive an event
/// later.
fn meaning_changed(
    nodes: &Nodes,
    id: NodeIdRef<'_>,
    variable: Option<&SlotHandle>,
    changes: &mut Option<SemanticChanges>,
) {
    let Some(variable) = variable else { return };
    variable.semantics_changed();
    if let Some(changes) = changes
        && let Some(owner) = nodes.resolve(id).and_then(|property| described_node(nodes, property))
    {
        changes.add(nodes, owner);
    }
}

pub(crate) fn write(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    encode_len(caller.count, reply.begin::<WriteResponse>());
    list::start(cx, caller, request, Cursor::Write(Write { gaps: Vec::new() }), reply)
}

/// A Write in progress.
#[derive(Debug)]
pub(crate) struct Write {
    /// Results that arrive later.
    pub(super) gaps: Vec<(Gap, Task)>,
}

impl Write {
    #[inline]
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        let mut changes = cx.shared.space().events().is_watched().then(SemanticChanges::default);
        let result = work_through(cx, caller, request, list, reply, (&mut changes, &mut self.gaps));
        if let Some(changes) = changes {
            cx.shared.space().raise_semantic_changes(changes, cx.now.utc);
        }
        result
    }
}

#[inline]
fn work_through(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    list: &mut List<'_>,
    reply: &mut Reply<'_>,
    (changes, gaps): (&mut Option<SemanticChanges>, &mut Vec<(Gap, Task)>),
) -> Result<(), Fault> {
    let (key, decisions) = (caller.session, &*caller.decisions);
    // The session's identity is assembled only if a handler needs it.
    let mut who: Option<CallContext> = None;
    let space = cx.shared.space();
    let notes = cx.audit.notes_updates();
    let mut nodes = space.read();
    while list.goes_on(reply)? {
        let before = list.body.remaining();
        let id = NodeIdRef::decode(&mut list.body)?;
        let attribute_id = u32::decode(&mut list.body)?;
        let index_range = list.body.str()?.unwrap_or("");
        let mut value = DataValue::decode(&mut list.body)?;
        let mut note = notes.then(|| Note::new(&nodes, id, attribute_id, index_range, &value));
        if note.is_none()
            && attribute_id == attribute::VALUE
            && index_range.is_empty()
            && write_plain(&nodes, decisions, id, &mut value, cx.now.utc)
        {
            StatusCode::GOOD.encode(reply.out());
            list.left -= 1;
            list.units -= 2;
            continue;
        }
        let range = || cx.shared.config().limits.index_range(index_range);
        let status = match check(&nodes, decisions, id, attribute_id, range, value, cx.now.utc) {
            Err(status) => status,
            Ok(Target { handler: None, slot, value, part, gives_meaning_to }) => {
                note.iter_mut().for_each(|note| note.replaces(&slot));
                let before = gives_meaning_to.is_some().then(|| slot.read());
                match store(&nodes, &slot, value, part.as_ref(), cx.now.utc) {
                    Err(status) => status,
                    Ok(()) => {
                        let variable = gives_meaning_to.filter(|_| is_another(before.as_ref(), &slot));
                        meaning_changed(&nodes, id, variable.as_ref(), changes);
                        StatusCode::GOOD
                    }
                }
            }
            Ok(Target { handler: Some(handler), slot, value, gives_meaning_to, .. }) => {
                // A handler is application code: it runs with the address space unlocked.
                drop(nodes);
                let sessions = &cx.sessions;
                let who = who.get_or_insert_with(|| {
                    sessions.get(key).map(|session| session.call_context(NodeId::NULL)).unwrap_or_default()
                });
                let size = value.heap_size();
                let written = if handler.may_block() && !cx.has_capacity_for(gaps.len() + 1) {
                    WriteCall::Now(Err(StatusCode::BAD_SERVER_TOO_BUSY))
                } else {
                    handler.begin_write(who, value)
                };
                nodes = space.read();
                match written {
                    WriteCall::Now(Ok(value)) => {
                        note.iter_mut().for_each(|note| note.replaces(&slot));
                        let before = gives_meaning_to.is_some().then(|| slot.read());
                        store_whole(&slot, value, cx.now.utc);
                        let variable = gives_meaning_to.filter(|_| is_another(before.as_ref(), &slot));
                        meaning_changed(&nodes, id, variable.as_ref(), changes);
                        StatusCode::GOOD
                    }
                    WriteCall::Now(Err(status)) => status,
                    WriteCall::Blocking(run) => {
                        note.iter_mut().for_each(|note| note.replaces(&slot));
                        match later::begin(cx, (key, request), (run, size), &mut note, gaps, reply) {
                            Err(status) => status,
                            Ok(()) => {
                                list.done(unit::OPERATION, before - list.body.remaining());
                                continue;
                            }
                        }
                    }
                }
            }
        };
        status.encode(reply.out());
        if let Some(Note(action)) = note {
            let record = cx.audit_record(Some(key), request, status, action);
            cx.audit.push_made(cx.now, record);
        }
        list.done(unit::OPERATION, before - list.body.remaining());
    }
    Ok(())
}

/// Fast path for most writes: a good scalar of exactly the variable's type. Returns false for any other write.
#[inline]
fn write_plain(
    nodes: &Nodes,
    decisions: &Decisions,
    id: NodeIdRef<'_>,
    value: &mut DataValue,
    now: UtcTime,
) -> bool {
    let has_picoseconds = value.source_picoseconds.is_some() || value.server_picoseconds.is_some();
    if value.status() != StatusCode::GOOD || value.server_timestamp.is_some() || has_picoseconds {
        return false;
    }
    let (Some(ix), Some(written)) = (nodes.resolve(id), value.value.take()) else { return false };
    value.value = nodes.write_scalar(decisions, ix, written, value.source_timestamp.unwrap_or(now), now);
    value.value.is_none()
}

fn store_whole(slot: &SlotHandle, value: DataValue, now: UtcTime) {
    let status = value.status();
    let source = value.source_timestamp.unwrap_or(now);
    let server = value.server_timestamp.unwrap_or(now);
    slot.set(value.value.unwrap_or_default(), status, source, server);
}

/// Stores a value, or atomically changes a part of the present one.
fn store(
    nodes: &Nodes,
    slot: &SlotHandle,
    value: DataValue,
    part: Option<&Part>,
    now: UtcTime,
) -> Result<(), StatusCode> {
    let Some(part) = part else {
        store_whole(slot, value, now);
        return Ok(());
    };
    let source = value.source_timestamp.unwrap_or(now);
    let server = value.server_timestamp.unwrap_or(now);
    slot.update(value.status(), source, server, |present| part.merge(nodes, present))
}

/// Checks one WriteValue. A part is merged here only for handlers, which receive whole values.
fn check(
    nodes: &Nodes,
    decisions: &Decisions,
    id: NodeIdRef<'_>,
    attribute_id: u32,
    index_range: impl FnOnce() -> Result<Option<NumericRange>, StatusCode>,
    mut value: DataValue,
    now: UtcTime,
) -> Result<Target, StatusCode> {
    let ix = nodes.resolve(id).ok_or_else(|| unknown(id))?;
    let view = nodes.view(ix).ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?;
    if !decisions.knows(nodes, ix) {
        return Err(StatusCode::BAD_NODE_ID_UNKNOWN);
    }
    if attribute_id != attribute::VALUE {
        // WriteMask is 0 everywhere: other attributes may exist but cannot be written.
        attribute_of(nodes, decisions, ix, &view, attribute_id)?;
        return Err(StatusCode::BAD_NOT_WRITABLE);
    }
    if !view.has_value() {
        return Err(StatusCode::BAD_ATTRIBUTE_ID_INVALID);
    }
    let access = view.access_level().unwrap_or(0);
    if access & AccessLevelType::CURRENT_WRITE.0 == 0 {
        return Err(StatusCode::BAD_NOT_WRITABLE);
    }
    decisions.check(nodes, ix, PermissionType::WRITE)?;
    let (slot, handler) = match nodes.value_at(ix) {
        ValueAt::Slot(_) => (nodes.slot_handle(ix), nodes.write_handler(ix)),
        ValueAt::Source(..) => match nodes.write_handler(ix) {
            // The next value from the source would overwrite it.
            None => return Err(StatusCode::BAD_WRITE_NOT_SUPPORTED),
            handler => (nodes.slot_handle(ix), handler),
        },
        ValueAt::Static(_) | ValueAt::Computed(_) | ValueAt::None => {
            return Err(StatusCode::BAD_NOT_WRITABLE);
        }
    };
    let slot = slot.ok_or(StatusCode::BAD_NOT_WRITABLE)?;
    check_quality(access, &mut value, now)?;
    // Only writes that contain a value are supported here.
    let written = value.value.take().ok_or(StatusCode::BAD_WRITE_NOT_SUPPORTED)?;
    let expected = Expected::of_variable(nodes, &view)?;
    let mut part = None;
    match index_range()? {
        None => match expected.fit(nodes, written) {
            Fit::Yes(written) => value.value = Some(written),
            Fit::WrongType => return Err(StatusCode::BAD_TYPE_MISMATCH),
            Fit::TooLong => return Err(StatusCode::BAD_OUT_OF_RANGE),
        },
        Some(range) => {
            let given = Part { range, written, expected };
            if handler.is_some() {
                value.value = Some(given.merge(nodes, slot.read().value())?);
            } else {
                part = Some(given);
            }
        }
    }
    Ok(Target { slot, handler: handler.cloned(), value, part, gives_meaning_to: described(nodes, ix) })
}

/// Status and timestamps written with a value (Part 4 §5.11.4.2; Part 3 §8.57 for the bits).
///
/// A status other than Good needs StatusWrite. Source timestamps are always accepted: they belong to the value, and
/// most clients send one. The server timestamp is when the server received the value, so without TimestampWrite it is
/// the server's.
fn check_quality(access: u8, value: &mut DataValue, now: UtcTime) -> Result<(), StatusCode> {
    if value.status() != StatusCode::GOOD && access & AccessLevelType::STATUS_WRITE.0 == 0 {
        return Err(StatusCode::BAD_WRITE_NOT_SUPPORTED);
    }
    // Unsupported data is refused, not dropped (Part 4 §5.11.4.2); 0 picoseconds count as none.
    let picoseconds = [value.source_picoseconds.take(), value.server_picoseconds.take()];
    let keeps_times = access & AccessLevelType::TIMESTAMP_WRITE.0 != 0;
    if picoseconds.iter().flatten().any(|picoseconds| *picoseconds != 0)
        || (value.server_timestamp.is_some() && !keeps_times)
    {
        return Err(StatusCode::BAD_WRITE_NOT_SUPPORTED);
    }
    value.server_timestamp.get_or_insert(now);
    Ok(())
}
