//! The Call service.

use super::attribute::variable;
use super::*;
use crate::callback::{CallContext, MethodCall, MethodHandler, MethodResult};
use crate::space::NodeSpec;
use crate::space::build::{Under, ValueShape};
use schema::{Argument, CallMethodRequest, CallMethodResult, CallRequest};
use taktwerk_schema::ids::{
    data_type_ids, method_ids, object_ids, object_type_ids, reference_type_ids, variable_type_ids,
};
use taktwerk_types::{BuiltInType, QualifiedName, Variant};

const ADD: u32 = 500;
const SLOW: u32 = 501;

struct Slow;

impl MethodHandler for Slow {
    fn call(&self, _: &CallContext, inputs: Vec<Variant>) -> MethodCall {
        MethodCall::Blocking(Box::new(move || Ok(inputs)))
    }
}

fn sum(context: &CallContext, inputs: Vec<Variant>) -> MethodResult {
    assert_eq!(context.object_id.namespace_index, 0);
    match inputs.as_slice() {
        [Variant::Double(one), Variant::Double(two)] if *two < 1e6 => Ok(vec![(one + two).into()]),
        _ => Err(StatusCode::BAD_OUT_OF_RANGE),
    }
}

/// Adds a Method with the id `ns=1;i=number` below Objects.
pub(super) fn add_method(server: &Server, number: u32, handler: Arc<dyn MethodHandler>, arguments: usize) {
    let id = NodeId::numeric(1, number);
    let name = QualifiedName::new(1, format!("m{number}"));
    let under = Under {
        parent: &object_ids::OBJECTS_FOLDER.into(),
        reference_type: &reference_type_ids::HAS_COMPONENT.into(),
        type_definition: None,
    };
    server.space.add_node(NodeSpec::method(id.clone(), name, Some(handler)), under, server.now.utc).unwrap();
    let argument = Argument {
        name: "x".into(),
        data_type: data_type_ids::DOUBLE.into(),
        value_rank: -1,
        ..Argument::default()
    };
    let value = Variant::from_structures(&vec![argument; arguments]);
    let spec = NodeSpec::variable(
        NodeId::numeric(1, number + 1000),
        QualifiedName::new(0, "InputArguments"),
        data_type_ids::ARGUMENT.into(),
        Some(value),
    )
    .shape(ValueShape {
        data_type: data_type_ids::ARGUMENT.into(),
        ..ValueShape::array(BuiltInType::ExtensionObject)
    });
    let under = Under {
        parent: &id,
        reference_type: &reference_type_ids::HAS_PROPERTY.into(),
        type_definition: Some(&variable_type_ids::PROPERTY_TYPE.into()),
    };
    server.space.add_node(spec, under, server.now.utc).unwrap();
}

fn server() -> Server {
    let server = Server::new();
    add_method(&server, ADD, Arc::new(sum), 2);
    add_method(&server, SLOW, Arc::new(Slow), 1);
    super::attribute::add(&server, variable(1, BuiltInType::Double, 1.0));
    server
}

fn request(
    object_id: impl Into<NodeId>,
    method_id: NodeId,
    input_arguments: Vec<Variant>,
) -> CallMethodRequest {
    CallMethodRequest { object_id: object_id.into(), method_id, input_arguments }
}

fn call(client: &mut Client, server: &mut Server, what: CallMethodRequest) -> CallMethodResult {
    let request = CallRequest { request_header: client.header(), methods_to_call: vec![what] };
    client.call(server, &request).unwrap().results.remove(0)
}

#[test]
fn methods_run_and_their_arguments_are_checked() {
    let mut server = server();
    let mut client = server.session();
    let objects = object_ids::OBJECTS_FOLDER;
    let id = || NodeId::numeric(1, ADD);
    let result = call(&mut client, &mut server, request(objects, id(), vec![1.0.into(), 2.0.into()]));
    assert_eq!(result.status_code, StatusCode::GOOD);
    assert_eq!(result.output_arguments, [Variant::from(3.0)]);
    assert_eq!(result.input_argument_results, [StatusCode::GOOD; 2]);
    let own = call(&mut client, &mut server, request(objects, id(), vec![1.0.into(), 1e7.into()]));
    assert_eq!(own.status_code, StatusCode::BAD_OUT_OF_RANGE);
    let wrong = call(&mut client, &mut server, request(objects, id(), vec![1.0.into(), "2".into()]));
    assert_eq!(wrong.status_code, StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(wrong.input_argument_results, [StatusCode::GOOD, StatusCode::BAD_TYPE_MISMATCH]);
    for (what, status) in [
        (request(objects, id(), vec![1.0.into()]), StatusCode::BAD_ARGUMENTS_MISSING),
        (request(objects, id(), vec![1.0.into(); 3]), StatusCode::BAD_TOO_MANY_ARGUMENTS),
        (request(NodeId::NULL, id(), vec![]), StatusCode::BAD_NODE_ID_INVALID),
        (request(NodeId::string(1, "x"), id(), vec![]), StatusCode::BAD_NODE_ID_UNKNOWN),
        (request(NodeId::numeric(1, 1), id(), vec![]), StatusCode::BAD_NODE_ID_INVALID),
        (request(object_ids::SERVER, id(), vec![]), StatusCode::BAD_METHOD_INVALID),
        (request(objects, NodeId::string(1, "x"), vec![]), StatusCode::BAD_METHOD_INVALID),
        (request(objects, NodeId::numeric(1, 1), vec![]), StatusCode::BAD_METHOD_INVALID),
        (
            request(object_ids::SERVER, method_ids::SERVER_SET_SUBSCRIPTION_DURABLE.into(), vec![]),
            StatusCode::BAD_NOT_EXECUTABLE,
        ),
    ] {
        assert_eq!(call(&mut client, &mut server, what).status_code, status);
    }
}

#[test]
fn responses_wait_for_slow_methods() {
    let mut server = server();
    let mut client = server.session();
    let objects = object_ids::OBJECTS_FOLDER;
    let slow = request(objects, NodeId::numeric(1, SLOW), vec![7.0.into()]);
    let fast = request(objects, NodeId::numeric(1, ADD), vec![1.0.into(), 1.0.into()]);
    let both = CallRequest { request_header: client.header(), methods_to_call: vec![slow, fast] };
    let id = client.send(&mut server, CallRequest::BINARY_ENCODING_ID, &both);
    assert!(client.responses.is_empty());
    assert!(server.run_effect());
    client.drain(&mut server);
    let results = client.response::<schema::CallResponse>(id).unwrap().unwrap().results;
    assert_eq!(results[0].output_arguments, [Variant::from(7.0)]);
    assert_eq!(results[1].output_arguments, [Variant::from(2.0)]);
}

#[test]
fn the_engines_methods_are_found_on_the_object_and_by_its_type() {
    let mut server = server();
    let mut client = server.session();
    for method in [method_ids::SERVER_GET_MONITORED_ITEMS, method_ids::SERVER_TYPE_GET_MONITORED_ITEMS] {
        let what = request(object_ids::SERVER, method.into(), vec![99u32.into()]);
        let result = call(&mut client, &mut server, what);
        assert_eq!(result.status_code, StatusCode::BAD_SUBSCRIPTION_ID_INVALID);
    }
    let on_type =
        request(object_type_ids::SERVER_TYPE, method_ids::SERVER_TYPE_RESEND_DATA.into(), vec![99u32.into()]);
    assert_eq!(call(&mut client, &mut server, on_type).status_code, StatusCode::BAD_NOT_EXECUTABLE);
}

/// Without a session, with the permissions of roles: the statuses equal those for clients.
#[test]
fn a_method_is_called_from_within_the_process() {
    use crate::authorization::access::Access;
    use taktwerk_crypto::MessageSecurityMode as Mode;
    use taktwerk_schema::{AccessRestrictionType, PermissionType};
    let server = server();
    let operator: NodeId = object_ids::WELL_KNOWN_ROLE_OPERATOR.into();
    let objects: NodeId = object_ids::OBJECTS_FOLDER.into();
    let call = |roles: &[NodeId], mode, number: u32, inputs: Vec<Variant>| {
        let caller = CallContext::in_process(objects.clone(), roles, mode == Mode::SignAndEncrypt);
        match server.space.call_method(&caller, mode, &NodeId::numeric(1, number), inputs)? {
            MethodCall::Now(result) => result,
            MethodCall::Blocking(run) => run(),
            MethodCall::Later(_) => Err(StatusCode::BAD_UNEXPECTED_ERROR),
        }
    };
    assert_eq!(call(&[], Mode::None, ADD, vec![1.0.into(), 2.0.into()]), Ok(vec![3.0.into()]));
    assert_eq!(call(&[], Mode::None, SLOW, vec![7.0.into()]), Ok(vec![7.0.into()]));
    let refused = [
        (ADD, vec![1.0.into()], StatusCode::BAD_ARGUMENTS_MISSING),
        (ADD, vec![1.0.into(), "x".into()], StatusCode::BAD_INVALID_ARGUMENT),
        (ADD, vec![1.0.into(), 1e7.into()], StatusCode::BAD_OUT_OF_RANGE),
        (999, Vec::new(), StatusCode::BAD_METHOD_INVALID),
    ];
    for (number, inputs, status) in refused {
        assert_eq!(call(&[], Mode::None, number, inputs), Err(status));
    }
    // Permissions are checked as for a client.
    let access = Access {
        role_permissions: Some(vec![(operator.clone(), PermissionType::CALL | PermissionType::BROWSE)]),
        access_restrictions: Some(AccessRestrictionType::ENCRYPTION_REQUIRED),
    };
    server.space.set_access(&NodeId::numeric(1, ADD), access).unwrap();
    let add = |roles: &[NodeId], mode| call(roles, mode, ADD, vec![1.0.into(), 2.0.into()]);
    assert_eq!(add(core::slice::from_ref(&operator), Mode::SignAndEncrypt), Ok(vec![3.0.into()]));
    assert_eq!(add(&[operator], Mode::Sign), Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT));
    assert_eq!(
        add(&[], Mode::SignAndEncrypt),
        Err(StatusCode::BAD_METHOD_INVALID),
        "its existence is not revealed"
    );
}

/// Remembers its caller.
#[derive(Default)]
struct Kept(std::sync::Mutex<Option<CallContext>>);

impl MethodHandler for Kept {
    fn call(&self, context: &CallContext, _: Vec<Variant>) -> MethodCall {
        *self.0.lock().unwrap() = Some(context.clone());
        MethodCall::Now(Ok(Vec::new()))
    }
}

/// Data that a Method keeps for a session can end when the client disconnects, not only with the session.
#[test]
fn methods_know_whether_their_callers_are_still_connected() {
    let mut server = Server::new();
    let kept = Arc::new(Kept::default());
    add_method(&server, ADD, kept.clone(), 0);
    let mut client = server.session();
    let what = || request(object_ids::OBJECTS_FOLDER, NodeId::numeric(1, ADD), Vec::new());
    assert_eq!(call(&mut client, &mut server, what()).status_code, StatusCode::GOOD);
    let life = kept.0.lock().unwrap().take().unwrap().session_life;
    let first = life.activity().unwrap();
    assert!(first.is_connected);
    call(&mut client, &mut server, what());
    assert_ne!(life.activity().unwrap().requests, first.requests);
    server.shard.closed(client.connection, server.now);
    assert!(!life.activity().unwrap().is_connected && !life.is_over());
    let mut back = server.connect();
    back.token = client.token.clone();
    back.activate(&mut server).unwrap();
    assert!(life.activity().unwrap().is_connected);
    let close = schema::CloseSessionRequest { request_header: back.header(), delete_subscriptions: true };
    back.call(&mut server, &close).unwrap();
    assert!(life.is_over() && life.activity().is_none());
}
