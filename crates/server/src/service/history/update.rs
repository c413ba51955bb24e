//! HistoryUpdate (Part 4 §5.11.5).

use super::{PendingHistory, events, find};
use crate::account::{Category, HeapSize};
use crate::audit::{AuditAction, AuditHistory};
use crate::effect::{HistoryResult, JobResult, Task};
use crate::error::Fault;
use crate::history::StoredEvent;
use crate::history::store::{HistoryValue, Modification, Perform, Span};
use crate::history::update::{Change, NodeUpdate, SeesOwned, UpdateJob, Updated};
use crate::job_kind::JobKind;
use crate::reply::Reply;
use crate::request::Request;
use crate::service::Outcome;
use crate::service::audit::known_id;
use crate::service::context::Context;
use crate::service::deferred::{Fill, Gap};
use crate::service::gate::Caller;
use crate::space::data_type::{Expected, Fit};
use crate::space::nodes::Nodes;
use taktwerk_schema::{
    AccessLevelType, Annotation, DeleteAtTimeDetails, DeleteEventDetails, DeleteRawModifiedDetails,
    HistoryEventFieldList, HistoryUpdateResponse, HistoryUpdateResult, HistoryUpdateType, PerformUpdateType,
    PermissionType, UpdateDataDetails, UpdateEventDetails, UpdateStructureDataDetails,
};
use taktwerk_types::{
    DataValue, Decode, DecodeLimits, Encode, ExtensionObject, NodeId, QualifiedName, StatusCode, Structure,
    UtcTime, Variant,
};

/// An operation of the request.
struct Operation {
    node_id: NodeId,
    /// The type name of its details.
    name: &'static str,
    change: Change,
    permissions: &'static [PermissionType],
    /// Number of values or times.
    count: u32,
    /// The parameters for the audit record.
    noted: AuditHistory,
    /// Why it is refused, for any node.
    refused: Option<StatusCode>,
}

impl Operation {
    /// The memory that it takes until it is done, in bytes.
    fn kept(&self) -> usize {
        size_of::<Self>() + size_of::<NodeUpdate>() + self.node_id.heap_size() + self.change.heap_size()
    }
}

pub(crate) fn history_update(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let mut list = caller.operations.clone();
    let mut limits = cx.shared.config().limits.decode();
    let mut operations = Vec::with_capacity(caller.count);
    // Each operation is charged before the next one is decoded: a value can take 70 times as much memory as bytes on the wire.
    let mut charge = cx.account(Some(caller.session)).nothing(Category::Requests);
    for _ in 0..caller.count {
        let object = <ExtensionObject as Decode>::decode(&mut list)?;
        let operation = operation(&object, limits, cx.now.utc, cx.audit.notes_updates());
        charge.resize(charge.amount().saturating_add(operation.kept()))?;
        // The limit is for all operations of the request together.
        limits.memory_max = limits.memory_max.saturating_sub(operation.change.heap_size());
        operations.push(operation);
    }
    if !cx.has_capacity_for(1) {
        return Err(Fault::limit(StatusCode::BAD_SERVER_TOO_BUSY, "effects_per_connection_max"));
    }
    let (mut updates, mut notes) = (Vec::with_capacity(operations.len()), Vec::new());
    {
        let nodes = cx.shared.space().read();
        let write = AccessLevelType::HISTORY_WRITE.0;
        for operation in operations {
            let Operation { node_id, name, mut change, permissions, count, noted, refused } = operation;
            if cx.audit.notes_updates() {
                let node_id = known_id(&nodes, node_id.as_ref());
                let action = AuditAction::HistoryUpdate { node_id, details: name, count, parameters: noted };
                notes.push(cx.audit_record(Some(caller.session), request, StatusCode::GOOD, action));
            }
            let is_of_events = matches!(change, Change::Events(..) | Change::DeleteEvents(_));
            let mut sees = None;
            let target = match refused {
                Some(status) => Err(status),
                None if is_of_events => {
                    let bit = crate::space::events::HISTORY_WRITE;
                    let found = events::find(&nodes, &caller.decisions, &node_id, permissions, bit);
                    found.map(|target| {
                        let (history, sight) = target.into_parts(cx.shared.space(), &caller.decisions);
                        sees =
                            Some(Box::new(move |event: &StoredEvent| sight.sees_stored(event)) as SeesOwned);
                        history
                    })
                }
                None => find(&nodes, &caller.decisions, &node_id, permissions, write)
                    .and_then(|target| change.check(&target).map(|()| target))
                    .and_then(|target| check_types(&nodes, &node_id, &mut change).map(|()| target)),
            };
            if target.is_err() {
                charge.resize_anyway(charge.amount().saturating_sub(change.heap_size()));
                change = Change::Nothing;
            }
            updates.push(NodeUpdate { target, change, sees });
        }
    }
    let session = cx.sessions.get(caller.session);
    let user = session.map(|session| session.call_context(NodeId::NULL).user.unwrap_or_default());
    let by =
        Modification { time: cx.now.utc, kind: HistoryUpdateType::UPDATE, user: user.unwrap_or_default() };
    let count = updates.len();
    let job = UpdateJob { updates, by, is_noted: cx.audit.notes_updates() };
    let task = Task::blocking(JobKind::UpdateHistory, move || {
        let Updated { encoded, statuses, old } = job.run();
        JobResult::History(HistoryResult { encoded, statuses, old })
    });
    let fill = Fill::History(PendingHistory { count, failure: encode_failure, notes });
    reply.begin::<HistoryUpdateResponse>();
    let gaps = vec![(Gap::new(reply.body_len(), fill), task.charged(charge))];
    cx.gather(request, caller.session, HistoryUpdateResponse::BINARY_ENCODING_ID, gaps, reply)
}

/// Refuses values that do not fit the DataType and ValueRank of the Variable, whether or not there are entries at their times. A bad
/// value may be null (Part 4 §7.11).
///
/// # Errors
/// The type of the Variable is not known.
fn check_types(nodes: &Nodes, id: &NodeId, change: &mut Change) -> Result<(), StatusCode> {
    let Change::Values(_, values) = change else { return Ok(()) };
    let view = nodes.resolve(id.as_ref()).and_then(|ix| nodes.view(ix));
    let expected = Expected::of_variable(nodes, &view.ok_or(StatusCode::BAD_NODE_ID_UNKNOWN)?)?;
    for entry in values {
        let Ok(value) = entry else { continue };
        if value.value.is_empty() && value.status.is_bad() {
            continue;
        }
        match expected.fit(nodes, core::mem::take(&mut value.value)) {
            Fit::Yes(fitting) => value.value = fitting,
            Fit::WrongType => *entry = Err(StatusCode::BAD_TYPE_MISMATCH),
            Fit::TooLong => *entry = Err(StatusCode::BAD_OUT_OF_RANGE),
        }
    }
    Ok(())
}

/// A HistoryUpdateResult with only a status.
fn encode_failure(status_code: StatusCode, out: &mut Vec<u8>) {
    HistoryUpdateResult { status_code, ..Default::default() }.encode(out);
}

/// Decodes an operation's details.
fn body<T: Structure>(object: &ExtensionObject, limits: DecodeLimits) -> Result<T, StatusCode> {
    let bytes = object.binary().ok_or(StatusCode::BAD_HISTORY_OPERATION_INVALID)?;
    T::decode_from(bytes, limits).map_err(|error| error.status())
}

/// An operation; with its parameters for the audit if `is_noted`.
fn operation(object: &ExtensionObject, limits: DecodeLimits, now: UtcTime, is_noted: bool) -> Operation {
    parse(object, limits, now, is_noted).unwrap_or_else(|status| Operation {
        node_id: NodeId::NULL,
        name: "",
        change: Change::Nothing,
        permissions: &[],
        count: 0,
        noted: AuditHistory::Unknown,
        refused: Some(status),
    })
}

fn parse(
    object: &ExtensionObject,
    limits: DecodeLimits,
    now: UtcTime,
    is_noted: bool,
) -> Result<Operation, StatusCode> {
    use PermissionType as P;
    let noted = |make: &dyn Fn() -> AuditHistory| if is_noted { make() } else { AuditHistory::Unknown };
    let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    if object.is::<UpdateDataDetails>() {
        let details: UpdateDataDetails = body(object, limits)?;
        let (perform, permissions) = perform(details.perform_insert_replace)?;
        if perform == Perform::Remove {
            // Part 11 §6.9.2: values are removed with DeleteRawModifiedDetails or DeleteAtTimeDetails.
            return Err(StatusCode::BAD_HISTORY_OPERATION_INVALID);
        }
        let number = count(details.update_values.len());
        let kind = details.perform_insert_replace;
        let noted = noted(&|| AuditHistory::values(kind, &details.update_values));
        let values = details.update_values.into_iter();
        return Ok(Operation {
            noted,
            node_id: details.node_id,
            name: "UpdateDataDetails",
            change: Change::Values(
                perform,
                values.map(|value| HistoryValue::from_data_value(value, now)).collect(),
            ),
            permissions,
            count: number,
            refused: None,
        });
    }
    if object.is::<UpdateStructureDataDetails>() {
        let details: UpdateStructureDataDetails = body(object, limits)?;
        let (perform, permissions) = perform(details.perform_insert_replace)?;
        let number = count(details.update_values.len());
        let kind = details.perform_insert_replace;
        return Ok(Operation {
            noted: noted(&|| AuditHistory::annotations(kind, &details.update_values)),
            node_id: details.node_id,
            name: "UpdateStructureDataDetails",
            change: Change::Annotations(perform, details.update_values.into_iter().map(annotation).collect()),
            permissions,
            count: number,
            refused: None,
        });
    }
    if object.is::<DeleteRawModifiedDetails>() {
        let details: DeleteRawModifiedDetails = body(object, limits)?;
        let (start, end) = (details.start_time, details.end_time);
        if start.is_null() || end.is_null() {
            return Err(StatusCode::BAD_INVALID_TIMESTAMP_ARGUMENT);
        }
        // The later end is exclusive, unless both are equal.
        let (first, high) = (start.min(end), start.max(end));
        let last = UtcTime::from_ticks(high.ticks() - i64::from(high != first));
        let span = Span { first, last };
        let is_delete_modified = details.is_delete_modified;
        return Ok(Operation {
            noted: AuditHistory::DeleteRange {
                is_delete_modified,
                start_time: start,
                end_time: end,
                old_values: Vec::new(),
            },
            node_id: details.node_id,
            name: "DeleteRawModifiedDetails",
            change: if details.is_delete_modified {
                Change::DeleteModified(span)
            } else {
                Change::Delete(span)
            },
            permissions: &[P::DELETE_HISTORY],
            count: 0,
            refused: None,
        });
    }
    if object.is::<DeleteAtTimeDetails>() {
        let details: DeleteAtTimeDetails = body(object, limits)?;
        return Ok(Operation {
            node_id: details.node_id,
            name: "DeleteAtTimeDetails",
            count: count(details.req_times.len()),
            noted: noted(&|| AuditHistory::delete_times(&details.req_times)),
            change: Change::DeleteAt(details.req_times),
            permissions: &[P::DELETE_HISTORY],
            refused: None,
        });
    }
    if object.is::<UpdateEventDetails>() {
        let details: UpdateEventDetails = body(object, limits)?;
        let (kind, permissions) = perform(details.perform_insert_replace)?;
        let requested = details.perform_insert_replace;
        let noted = noted(&|| AuditHistory::events(requested, &details.filter, &details.event_data));
        let paths: Vec<Vec<QualifiedName>> =
            details.filter.select_clauses.into_iter().map(|clause| clause.browse_path).collect();
        let one = |list: HistoryEventFieldList| event(&paths, list.event_fields, kind);
        return Ok(Operation {
            node_id: details.node_id,
            name: "UpdateEventDetails",
            noted,
            count: count(details.event_data.len()),
            change: Change::Events(kind, details.event_data.into_iter().map(one).collect()),
            permissions,
            refused: None,
        });
    }
    if object.is::<DeleteEventDetails>() {
        let details: DeleteEventDetails = body(object, limits)?;
        return Ok(Operation {
            node_id: details.node_id,
            name: "DeleteEventDetails",
            count: count(details.event_ids.len()),
            noted: noted(&|| AuditHistory::delete_events(&details.event_ids)),
            change: Change::DeleteEvents(details.event_ids),
            permissions: &[P::DELETE_HISTORY],
            refused: None,
        });
    }
    Err(StatusCode::BAD_HISTORY_OPERATION_INVALID)
}

/// An event from the fields given by a client. Inserted events need at least EventId, EventType and Time (Part 11
/// §6.9.4.2).
fn event(
    paths: &[Vec<QualifiedName>],
    values: Vec<Variant>,
    kind: Perform,
) -> Result<StoredEvent, StatusCode> {
    if values.len() != paths.len() {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    let mut event = StoredEvent { condition: None, fields: Vec::with_capacity(values.len()) };
    for (path, value) in paths.iter().zip(values) {
        if !value.is_empty() && !path.is_empty() {
            event.set(path.clone(), value);
        }
    }
    let has_type = matches!(event.field("EventType"), Some(Variant::NodeId(_)));
    let is_whole = has_type && !event.time().is_null();
    if event.event_id().as_bytes().is_empty() || (kind != Perform::Replace && !is_whole) {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    Ok(event)
}

/// The update type and the required permissions (Part 3 §8.55).
fn perform(kind: PerformUpdateType) -> Result<(Perform, &'static [PermissionType]), StatusCode> {
    use PermissionType as P;
    Ok(match kind {
        PerformUpdateType::INSERT => (Perform::Insert, &[P::INSERT_HISTORY]),
        PerformUpdateType::REPLACE => (Perform::Replace, &[P::MODIFY_HISTORY]),
        PerformUpdateType::UPDATE => (Perform::Update, &[P::INSERT_HISTORY, P::MODIFY_HISTORY]),
        PerformUpdateType::REMOVE => (Perform::Remove, &[P::DELETE_HISTORY]),
        _ => return Err(StatusCode::BAD_HISTORY_OPERATION_INVALID),
    })
}

/// An Annotation and its annotated time (Part 11 §5.6, §6.9.3).
fn annotation(value: DataValue) -> Result<(UtcTime, Annotation), StatusCode> {
    let time = value.source_timestamp.filter(|time| !time.is_null());
    let time = time.ok_or(StatusCode::BAD_INVALID_TIMESTAMP)?;
    let Some(Variant::ExtensionObject(object)) = value.value else {
        return Err(StatusCode::BAD_TYPE_MISMATCH);
    };
    Ok((time, object.decode().map_err(|_| StatusCode::BAD_TYPE_MISMATCH)?))
}
