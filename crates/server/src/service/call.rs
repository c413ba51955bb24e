//! Call (Part 4 §5.12.2).

use super::Outcome;
use super::audit::known_id;
use super::condition::{self, ConditionCall};
use super::context::Context;
use super::deferred::{Fill, Gap};
use super::durable;
use super::gate::Caller;
use super::list::{self, Cursor, List};
use super::read::unknown;
use super::reply::Reply;
use super::request::Request;
use crate::account::{Category, HeapSize};
use crate::audit::{AuditAction, AuditCondition, AuditRecord, AuditValue, private_key_argument};
use crate::authorization::{Decisions, Grant};
use crate::callback::{CallContext, MethodCall, MethodHandler, MethodResult, NotedCall};
use crate::effect::{Job, JobResult, Task};
use crate::error::Fault;
use crate::job_kind::JobKind;
use crate::session::SessionKey;
use crate::space::NodeIx;
use crate::space::data_type::{Expected, Fit};
use crate::space::nodes::{Nodes, ValueAt};
use crate::work::unit;
use std::sync::Arc;
use taktwerk_schema::ids::{method_ids, reference_type_ids};
use taktwerk_schema::{Argument, CallResponse, NodeClass, PermissionType};
use taktwerk_types::codec::encode_len;
use taktwerk_types::{ArrayValues, Decode, DecodeLimits, Encode, NodeId, QualifiedName, StatusCode, Variant};

/// Why a method was not called: the status, and the status of each argument if the arguments are the reason.
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

/// What executes a call.
enum Callee {
    Handler(Arc<dyn MethodHandler>),
    /// A method of the subscription engine.
    Builtin(u32),
    /// A method of a condition.
    Condition(ConditionCall),
}

/// A Call in progress.
#[derive(Debug)]
pub(crate) struct Call {
    /// Results that arrive later.
    pub(super) gaps: Vec<(Gap, Task)>,
}

pub(crate) fn call(
    cx: &mut Context<'_>,
    caller: &Caller<'_>,
    request: &Request<'_>,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Fault> {
    encode_len(caller.count, reply.begin::<CallResponse>());
    list::start(cx, caller, request, Cursor::Call(Call { gaps: Vec::new() }), reply)
}

impl Call {
    pub(super) fn work(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        list: &mut List<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Fault> {
        while list.goes_on(reply)? {
            let before = reply.len() + list.body.remaining();
            let object_id = NodeId::decode(&mut list.body)?;
            let method_id = NodeId::decode(&mut list.body)?;
            let inputs: Vec<Variant> = list.body.array()?;
            self.call_one(cx, caller, request, object_id, &method_id, inputs, reply);
            let bytes = (reply.len() + list.body.remaining()).abs_diff(before);
            list.done(unit::ITEM + cx.engine.take_owed(), bytes);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // the fields of one wire structure
    fn call_one(
        &mut self,
        cx: &mut Context<'_>,
        caller: &Caller<'_>,
        request: &Request<'_>,
        object_id: NodeId,
        method_id: &NodeId,
        inputs: Vec<Variant>,
        reply: &mut Reply<'_>,
    ) {
        let (key, decisions) = (caller.session, &*caller.decisions);
        let input_count = inputs.len();
        let mut note = cx.audit.notes_updates().then(|| {
            let action = note(&cx.shared.space().read(), &object_id, method_id, &inputs);
            Arc::new(cx.audit_record(Some(key), request, StatusCode::GOOD, action))
        });
        let space = cx.shared.space();
        // Looked up before the nodes are locked: writers of conditions lock the nodes after the conditions.
        let known = space.alarms().and_then(|alarms| alarms.condition_of(&object_id));
        let prepared = {
            let nodes = space.read();
            match known.and_then(|known| condition::find(&nodes, known, &object_id, method_id)) {
                Some(found) => {
                    note_condition(note.as_mut(), &found.call, &inputs);
                    prepare_condition(&nodes, decisions, &object_id, found, inputs)
                }
                None => prepare(&nodes, decisions, &object_id, method_id, inputs),
            }
        };
        let (callee, inputs) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                encode_refusal(&refusal, reply.out());
                return noted(cx, note, refusal.status);
            }
        };
        let handler = match callee {
            Callee::Handler(handler) => handler,
            Callee::Builtin(id) => {
                let result = builtin(cx, key, id, &inputs);
                encode_result(&result, input_count, reply.out());
                return noted(cx, note, status_of(&result));
            }
            Callee::Condition(call) => {
                let session = cx.sessions.get(key);
                let who = session.map(|session| session.call_context(object_id)).unwrap_or_default();
                let user = who.user.as_deref().unwrap_or_default();
                let result = call.run(cx.shared.space(), decisions, user, inputs, cx.now.utc);
                encode_result(&result, input_count, reply.out());
                return noted(cx, note, status_of(&result));
            }
        };
        let mut who = cx.sessions.get(key).map(|session| session.call_context(object_id)).unwrap_or_default();
        who.noted = note.as_ref().map(NotedCall::of).unwrap_or_default();
        let wrap: fn(MethodResult) -> JobResult = JobResult::Method;
        // The work owns the arguments until it is done, even if the request is abandoned.
        let charge = match cx.account(Some(key)).charge(Category::Requests, inputs.heap_size()) {
            Ok(charge) => charge,
            Err(exhausted) => {
                encode_result(&Err(exhausted.status()), input_count, reply.out());
                return noted(cx, note, exhausted.status());
            }
        };
        if handler.may_block() && !cx.has_capacity_for(self.gaps.len() + 1) {
            let busy = StatusCode::BAD_SERVER_TOO_BUSY;
            encode_result(&Err(busy), input_count, reply.out());
            return noted(cx, note, busy);
        }
        let job = match handler.call(&who, inputs) {
            MethodCall::Now(result) => {
                encode_result(&result, input_count, reply.out());
                return noted(cx, note, status_of(&result));
            }
            _ if !cx.has_capacity_for(self.gaps.len() + 1) => {
                encode_result(&Err(StatusCode::BAD_SERVER_TOO_BUSY), input_count, reply.out());
                return noted(cx, note, StatusCode::BAD_SERVER_TOO_BUSY);
            }
            MethodCall::Blocking(run) => Job::blocking(run, wrap),
            MethodCall::Later(future) => Job::future(future, wrap),
        };
        let fill = Fill::Method(PendingMethod { inputs: input_count, note });
        let task = Task::new(JobKind::CallMethod, job).charged(charge);
        self.gaps.push((Gap::new(reply.body_len(), fill), task));
    }
}

/// A running method.
#[derive(Debug)]
pub(crate) struct PendingMethod {
    inputs: usize,
    /// The audit record to complete with the result.
    note: Option<Arc<AuditRecord>>,
}

impl HeapSize for PendingMethod {
    fn heap_size(&self) -> usize {
        self.note.heap_size()
    }
}

impl PendingMethod {
    /// Appends the result to the response. Returns the audit record.
    pub(super) fn finish(&mut self, result: MethodResult, out: &mut Vec<u8>) -> Option<AuditRecord> {
        encode_result(&result, self.inputs, out);
        self.take_note().map(|note| AuditRecord { status: status_of(&result), ..note })
    }

    pub(super) fn take_note(&mut self) -> Option<AuditRecord> {
        self.note.take().map(Arc::unwrap_or_clone)
    }
}

/// Calls a Method for a caller without a session. Checks are those of a Call; nothing is audited.
///
/// # Errors
/// The status that a client would receive.
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
        // These methods are about the caller's own subscriptions.
        (Callee::Builtin(_), _) => Err(StatusCode::BAD_SUBSCRIPTION_ID_INVALID),
        // Methods of conditions are for operators, who have sessions.
        (Callee::Condition(_), _) => Err(StatusCode::BAD_NOT_SUPPORTED),
    }
}

/// The audit data of a call.
fn note(nodes: &Nodes, object_id: &NodeId, method_id: &NodeId, inputs: &[Variant]) -> AuditAction {
    let method_id = known_id(nodes, method_id.as_ref());
    let private_key = private_key_argument(&method_id);
    let shown = |(at, input): (usize, &Variant)| match private_key {
        Some(key) if key == at => AuditValue::of(&Variant::Empty),
        _ => AuditValue::of(input),
    };
    AuditAction::CallMethod {
        object_id: known_id(nodes, object_id.as_ref()),
        condition: AuditCondition::of_type(&method_id, inputs).map(Box::new),
        method_id,
        input_arguments: inputs.iter().enumerate().take(NOTED_INPUTS_MAX).map(shown).collect(),
        change: None,
    }
}

/// Adds the Method of a condition, which may have been called by the id of the instance's own Method.
fn note_condition(note: Option<&mut Arc<AuditRecord>>, call: &ConditionCall, inputs: &[Variant]) {
    if let Some(record) = note.and_then(Arc::get_mut)
        && let AuditAction::CallMethod { condition, .. } = &mut record.action
    {
        *condition = call.noted(inputs).map(Box::new);
    }
}

/// Maximum number of audited arguments per call.
const NOTED_INPUTS_MAX: usize = 16;

/// Completes the audit record of a call.
fn noted(cx: &mut Context<'_>, note: Option<Arc<AuditRecord>>, status: StatusCode) {
    if let Some(note) = note {
        cx.audit.push_made(cx.now, AuditRecord { status, ..Arc::unwrap_or_clone(note) });
    }
}

/// The status of a method's result, for the audit.
fn status_of(result: &MethodResult) -> StatusCode {
    result.as_ref().err().copied().unwrap_or(StatusCode::GOOD)
}

/// Appends the CallMethodResult of a method that ran.
fn encode_result(result: &MethodResult, inputs: usize, out: &mut Vec<u8>) {
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

/// Checks permissions and arguments of a condition's method.
fn prepare_condition(
    nodes: &Nodes,
    decisions: &Decisions,
    object_id: &NodeId,
    found: condition::Found,
    inputs: Vec<Variant>,
) -> Result<(Callee, Vec<Variant>), Refusal> {
    let condition::Found { call, method, arguments, source } = found;
    condition::check(nodes, decisions, object_id, method, &source)?;
    let inputs = check_inputs(nodes, arguments, inputs)?;
    Ok((Callee::Condition(call), inputs))
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
    // Part 3 §8.55, Call: needed on the given object and on the method.
    decisions.check(nodes, object, PermissionType::CALL)?;
    decisions.check(nodes, method, PermissionType::CALL)?;
    let inputs = check_inputs(nodes, method, inputs)?;
    let callee = match nodes.method_handler(method) {
        Some(handler) => Callee::Handler(Arc::clone(handler)),
        None if nodes.is_builtin_method(method.index) => Callee::Builtin(method.index),
        None => return Err(StatusCode::BAD_NOT_IMPLEMENTED.into()),
    };
    Ok((callee, inputs))
}

/// The method to run on an object: its own, or that of its type (Part 4 §5.12.2.2).
fn find_method(nodes: &Nodes, object: NodeIx, method: NodeIx) -> Option<NodeIx> {
    if has_component(nodes, object, method) {
        return Some(method);
    }
    let definition = nodes.forward_target(object, reference_type_ids::HAS_TYPE_DEFINITION);
    // For an ObjectType, methods of its supertypes are included.
    let mut kind = definition.or_else(|| nodes.supertype(object));
    for _ in 0..64 {
        let here = kind?;
        if has_component(nodes, here, method) {
            // The client named the type's method. If the object has its own, that one is run.
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

/// Checks number and types of the arguments against the InputArguments property.
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

/// GetMonitoredItems, ResendData and SetSubscriptionDurable (Part 5 §9.1 to §9.3), ConditionRefresh and ConditionRefresh2 (Part 9 §5.5.7, §5.5.8).
fn builtin(cx: &mut Context<'_>, key: SessionKey, method: u32, inputs: &[Variant]) -> MethodResult {
    let Some(Variant::UInt32(subscription_id)) = inputs.first() else {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    };
    let place = cx.engine.find_any(*subscription_id).ok_or(StatusCode::BAD_SUBSCRIPTION_ID_INVALID)?;
    // Subscriptions of other sessions exist, but are not accessible.
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
        method_ids::SERVER_SET_SUBSCRIPTION_DURABLE => {
            let Some(Variant::UInt32(hours)) = inputs.get(1) else {
                return Err(StatusCode::BAD_INVALID_ARGUMENT);
            };
            Ok(vec![durable::set(cx, key, place, *hours)?.into()])
        }
        method_ids::CONDITION_TYPE_CONDITION_REFRESH => {
            cx.engine.condition_refresh(place, None, cx.now)?;
            Ok(Vec::new())
        }
        method_ids::CONDITION_TYPE_CONDITION_REFRESH2 => {
            let Some(Variant::UInt32(item)) = inputs.get(1) else {
                return Err(StatusCode::BAD_INVALID_ARGUMENT);
            };
            cx.engine.condition_refresh(place, Some(*item), cx.now)?;
            Ok(Vec::new())
        }
        _ => Err(StatusCode::BAD_NOT_IMPLEMENTED),
    }
}
