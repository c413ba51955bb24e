//! Call (Part 4 §5.12.2).

use super::Outcome;
use super::context::Context;
use super::data_type::{Expected, Fit};
use super::gate::Caller;
use super::read::unknown;
use super::reply::{Reply, no_diagnostics};
use super::request::Request;
use crate::account::{Category, HeapSize};
use crate::audit::note::known_id;
use crate::audit::{AuditAction, AuditRecord, AuditValue};
use crate::authorization::{Decisions, Grant};
use crate::callback::{CallContext, MethodCall, MethodHandler, MethodResult};
use crate::error::Fault;
use crate::session::SessionKey;
use crate::shard::deferred::{Fill, Gap, deadline};
use crate::shard::effect::{Job, JobResult};
use crate::space::NodeIx;
use crate::space::nodes::{Nodes, ValueAt};
use crate::space::view::is_builtin_method;
use std::sync::Arc;
use taktwerk_schema::ids::{method_ids, reference_type_ids};
use taktwerk_schema::{Argument, CallResponse, NodeClass, PermissionType};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{
    ArrayValues, Decode, DecodeLimits, Encode, NodeId, QualifiedName, StatusCode, Structure, Variant,
};

/// Why a method was not called: its status, and the status of each argument if these are the reason.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    inputs: Vec<StatusCode>,
}

impl From<StatusCode> for Refusal {
    fn from(status: StatusCode) -> Self {
        Self { status, inputs: Vec::new() }
    }
}

/// What answers a call.
enum Callee {
    Handler(Arc<dyn MethodHandler>),
    /// A method of the subscription engine.
    Builtin(u32),
}

pub(crate) fn call(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    let (key, decisions) = (caller.session, &*caller.decisions);
    let (count, mut body) = (caller.count, caller.operations.clone());
    let limits = &cx.shared.config().limits;
    let mut gaps = Vec::new();
    let start = reply.begin::<CallResponse>().len();
    encode_len(count, reply.out());
    for _ in 0..count {
        let object_id = NodeId::decode(&mut body)?;
        let method_id = NodeId::decode(&mut body)?;
        let inputs: Vec<Variant> = body.array()?;
        let input_count = inputs.len();
        let note = cx.audit.notes_updates().then(|| {
            let action = note(&cx.shared.space().read(), &object_id, &method_id, &inputs);
            Box::new(cx.audit_record(Some(key), request, StatusCode::GOOD, action))
        });
        let prepared = {
            let nodes = cx.shared.space().read();
            prepare(&nodes, decisions, &object_id, &method_id, inputs)
        };
        let (callee, inputs) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                encode_refusal(&refusal, reply.out());
                noted(cx, note, refusal.status);
                continue;
            }
        };
        let handler = match callee {
            Callee::Handler(handler) => handler,
            Callee::Builtin(id) => {
                let result = builtin(cx, key, id, &inputs);
                encode_result(&result, input_count, reply.out());
                noted(cx, note, status_of(&result));
                continue;
            }
        };
        let caller = cx.sessions.get(key).map(|session| session.call_context(object_id)).unwrap_or_default();
        let wrap: fn(MethodResult) -> JobResult = JobResult::Method;
        // The work owns the arguments until it is done, whatever becomes of the request.
        let charge = match cx.account(Some(key)).charge(Category::Requests, inputs.heap_size()) {
            Ok(charge) => charge,
            Err(exhausted) => {
                encode_result(&Err(exhausted.status()), input_count, reply.out());
                noted(cx, note, exhausted.status());
                continue;
            }
        };
        let job = match handler.call(&caller, inputs) {
            MethodCall::Now(result) => {
                encode_result(&result, input_count, reply.out());
                noted(cx, note, status_of(&result));
                continue;
            }
            _ if !cx.deferrals.has_room_for(cx.peer.connection, gaps.len() + 1) => {
                encode_result(&Err(StatusCode::BAD_SERVER_TOO_BUSY), input_count, reply.out());
                noted(cx, note, StatusCode::BAD_SERVER_TOO_BUSY);
                continue;
            }
            MethodCall::Blocking(run) => Job::blocking(run, wrap),
            MethodCall::Later(future) => Job::future(future, wrap),
        };
        let at = reply.out().len() - start;
        gaps.push((Gap::new(at, Fill::Method { inputs: input_count, note }), job.charged(charge)));
    }
    no_diagnostics(reply.out());
    if gaps.is_empty() {
        return Ok(Outcome::Answered);
    }
    let until = deadline(cx.now.instant, request.header.timeout_hint, limits.deferred_timeout);
    let body = reply.take_body();
    cx.gather(request, key, until, CallResponse::BINARY_ENCODING_ID, body, gaps)
}

/// Calls a Method for somebody who has no session: checked as a Call is, and nothing is noted.
///
/// # Errors
/// What a client would be told that may not, or not so, call it.
pub(crate) fn call_in_process(
    nodes: &Nodes,
    grant: Grant,
    caller: &CallContext,
    method_id: &NodeId,
    inputs: Vec<Variant>,
) -> Result<(Arc<dyn MethodHandler>, Vec<Variant>), StatusCode> {
    let decisions = Decisions::new(nodes.access(), grant);
    let prepared = prepare(nodes, &decisions, &caller.object_id, method_id, inputs);
    match prepared.map_err(|refusal| refusal.status)? {
        (Callee::Handler(handler), inputs) => Ok((handler, inputs)),
        // They are about the caller's own subscriptions.
        (Callee::Builtin(_), _) => Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
    }
}

/// What is noted of a call.
fn note(nodes: &Nodes, object_id: &NodeId, method_id: &NodeId, inputs: &[Variant]) -> AuditAction {
    AuditAction::CallMethod {
        object_id: known_id(nodes, object_id.as_ref()),
        method_id: known_id(nodes, method_id.as_ref()),
        input_arguments: inputs.iter().take(NOTED_INPUTS_MAX).map(AuditValue::of).collect(),
    }
}

/// Arguments of a call that are noted.
const NOTED_INPUTS_MAX: usize = 16;

/// Notes what became of a call.
fn noted(cx: &mut Context<'_>, note: Option<Box<AuditRecord>>, status: StatusCode) {
    if let Some(note) = note {
        cx.audit.push_made(cx.now, AuditRecord { status, ..*note });
    }
}

/// What a method's result is for the audit.
pub(crate) fn status_of(result: &MethodResult) -> StatusCode {
    result.as_ref().err().copied().unwrap_or(StatusCode::GOOD)
}

/// Appends the CallMethodResult of a method that ran.
pub(crate) fn encode_result(result: &MethodResult, inputs: usize, out: &mut Vec<u8>) {
    match result {
        Ok(outputs) => {
            StatusCode::GOOD.encode(out);
            // Part 4 §5.12.2.2: one result per argument.
            encode_len(inputs, out);
            for _ in 0..inputs {
                StatusCode::GOOD.encode(out);
            }
            encode_len(0, out);
            outputs.encode(out);
        }
        Err(status) => encode_refusal(&Refusal::from(*status), out),
    }
}

fn encode_refusal(refusal: &Refusal, out: &mut Vec<u8>) {
    refusal.status.encode(out);
    refusal.inputs.encode(out);
    encode_len(0, out);
    encode_len(0, out);
}

/// Finds the method and checks its arguments.
fn prepare(
    nodes: &Nodes,
    decisions: &Decisions,
    object_id: &NodeId,
    method_id: &NodeId,
    inputs: Vec<Variant>,
) -> Result<(Callee, Vec<Variant>), Refusal> {
    let object = nodes.resolve(object_id.as_ref()).ok_or_else(|| unknown(object_id.as_ref()))?;
    if !decisions.knows(nodes, object) {
        return Err(StatusCode::BAD_NODE_ID_UNKNOWN.into());
    }
    let class = nodes.view(object).map(|view| view.class());
    if !matches!(class, Some(NodeClass::OBJECT | NodeClass::OBJECT_TYPE)) {
        return Err(StatusCode::BAD_NODE_ID_INVALID.into());
    }
    let invalid = StatusCode::BAD_METHOD_INVALID;
    let method = nodes.resolve(method_id.as_ref()).ok_or(invalid)?;
    if !decisions.knows(nodes, method) {
        return Err(invalid.into());
    }
    let is_method = |ix: NodeIx| nodes.view(ix).is_some_and(|view| view.class() == NodeClass::METHOD);
    if !is_method(method) {
        return Err(invalid.into());
    }
    let method = find_method(nodes, object, method).ok_or(invalid)?;
    let view = nodes.view(method).ok_or(invalid)?;
    if view.executable() != Some(true) {
        return Err(StatusCode::BAD_NOT_EXECUTABLE.into());
    }
    // Part 3 §8.55, Call: on the object that is passed and on the method.
    decisions.check(nodes, object, PermissionType::CALL)?;
    decisions.check(nodes, method, PermissionType::CALL)?;
    let inputs = check_inputs(nodes, method, inputs)?;
    let callee = match nodes.method_handler(method) {
        Some(handler) => Callee::Handler(Arc::clone(handler)),
        None if is_builtin_method(method.index) => Callee::Builtin(method.index),
        None => return Err(StatusCode::BAD_NOT_IMPLEMENTED.into()),
    };
    Ok((callee, inputs))
}

/// The method to run on an object: its own, or the one of its type (Part 4 §5.12.2.2).
fn find_method(nodes: &Nodes, object: NodeIx, method: NodeIx) -> Option<NodeIx> {
    if has_component(nodes, object, method) {
        return Some(method);
    }
    let definition = nodes.forward_target(object, reference_type_ids::HAS_TYPE_DEFINITION);
    // An ObjectType is asked for a method of its supertypes.
    let mut kind = definition.or_else(|| nodes.supertype(object));
    for _ in 0..64 {
        let here = kind?;
        if has_component(nodes, here, method) {
            // The client named the type's method; the object's own, if it has one, is what runs.
            let name = nodes.view(method)?.browse_name();
            let own = nodes
                .child(object, &name)
                .filter(|own| nodes.view(*own).is_some_and(|view| view.class() == NodeClass::METHOD));
            return Some(own.unwrap_or(method));
        }
        kind = nodes.supertype(here);
    }
    None
}

fn has_component(nodes: &Nodes, parent: NodeIx, method: NodeIx) -> bool {
    let component = NodeIx::ns0(reference_type_ids::HAS_COMPONENT);
    let mut found = false;
    nodes.references(parent, |reference| {
        found = reference.is_forward
            && reference.target == method
            && nodes.is_subtype(reference.reference_type, component);
        !found
    });
    found
}

/// Checks number and types against the InputArguments property.
fn check_inputs(nodes: &Nodes, method: NodeIx, inputs: Vec<Variant>) -> Result<Vec<Variant>, Refusal> {
    let arguments = input_arguments(nodes, method)?;
    if inputs.len() < arguments.len() {
        return Err(StatusCode::BAD_ARGUMENTS_MISSING.into());
    }
    if inputs.len() > arguments.len() {
        return Err(StatusCode::BAD_TOO_MANY_ARGUMENTS.into());
    }
    let mut results = Vec::with_capacity(inputs.len());
    let mut checked = Vec::with_capacity(inputs.len());
    for (argument, input) in arguments.iter().zip(inputs) {
        let dimensions = argument.array_dimensions.clone();
        let expected = Expected::new(nodes, argument.data_type.as_ref(), argument.value_rank, dimensions)?;
        results.push(match expected.fit(nodes, input) {
            Fit::Yes(input) => {
                checked.push(input);
                StatusCode::GOOD
            }
            Fit::WrongType => StatusCode::BAD_TYPE_MISMATCH,
            Fit::TooLong => StatusCode::BAD_OUT_OF_RANGE,
        });
    }
    if results.iter().any(|status| status.is_bad()) {
        return Err(Refusal { status: StatusCode::BAD_INVALID_ARGUMENT, inputs: results });
    }
    Ok(checked)
}

fn input_arguments(nodes: &Nodes, method: NodeIx) -> Result<Vec<Argument>, StatusCode> {
    let broken = StatusCode::BAD_INTERNAL_ERROR;
    let Some(property) = nodes.child(method, &QualifiedName::new(0, "InputArguments")) else {
        return Ok(Vec::new());
    };
    let value = match nodes.value_at(property) {
        ValueAt::Slot(slot) | ValueAt::Source(_, slot) => nodes.slot(slot).ok_or(broken)?.value(),
        ValueAt::Static(bytes) => Variant::decode_from(bytes, DecodeLimits::DEFAULT).map_err(|_| broken)?,
        ValueAt::Computed(_) | ValueAt::None => return Ok(Vec::new()),
    };
    match value {
        Variant::Array(array) => match array.values {
            ArrayValues::ExtensionObject(objects) => {
                objects.iter().map(|object| object.decode().map_err(|_| broken)).collect()
            }
            _ => Err(broken),
        },
        _ => Ok(Vec::new()),
    }
}

/// GetMonitoredItems and ResendData (Part 5 §9.1, §9.2).
fn builtin(cx: &mut Context<'_>, key: SessionKey, method: u32, inputs: &[Variant]) -> MethodResult {
    let Some(Variant::UInt32(subscription_id)) = inputs.first() else {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    };
    let place = cx.engine.find_any(*subscription_id).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
    // Other sessions' subscriptions exist, but are not theirs to ask about.
    cx.engine.find(key.into(), *subscription_id).map_err(|_| StatusCode::BAD_USER_ACCESS_DENIED)?;
    match method {
        method_ids::SERVER_GET_MONITORED_ITEMS => {
            let (server, client) = cx.engine.item_handles(place);
            Ok(vec![server.into(), client.into()])
        }
        method_ids::SERVER_RESEND_DATA => {
            cx.engine.resend_data(place);
            Ok(Vec::new())
        }
        _ => Err(StatusCode::BAD_NOT_IMPLEMENTED),
    }
}
