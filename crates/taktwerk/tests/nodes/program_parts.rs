//! Diagnostics and results of Programs, their arguments, and creation and deletion (Part 10).

use core::time::Duration;
use taktwerk::client::{EventQuery, Item, Update};
use taktwerk::program::{Command, Program, State, Transition};
use taktwerk::schema::ProgramDiagnostic2DataType;
use taktwerk::types::ExtensionObject;
use taktwerk::{Client, Node, NodeId, QualifiedName, RunningServer, Server, StatusCode, UtcTime, Variant};
use taktwerk_server::authorization::Access;

const SOON: Duration = Duration::from_secs(20);

fn member(node: &Node, path: &[&str]) -> NodeId {
    path.iter()
        .fold(node.clone(), |node, name| node.child_named(&QualifiedName::new(0, *name)).unwrap())
        .id()
        .clone()
}

/// A batch whose Start takes an order and returns a number.
fn batch() -> (RunningServer, Program) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let machine = server.namespace("urn:plant").object("Machine").event_notifier().add().unwrap();
    let batch = machine
        .new_program("Batch")
        .inputs::<(String,)>(Command::Start, ["order"])
        .outputs::<(u32, f64)>(Command::Start, ["number", "seconds"])
        .add(|program, transition| {
            if transition == Transition::ReadyToRunning {
                let (order,): (String,) = program.inputs()?;
                if order.is_empty() {
                    return Err(StatusCode::BAD_OUT_OF_RANGE);
                }
                assert_eq!(program.set_outputs((1u8,)), Err(StatusCode::BAD_TYPE_MISMATCH));
                program.set_outputs((7u32, 1.5))?;
                program.set_intermediate_result(order.as_str());
            }
            Ok(())
        })
        .unwrap();
    (server.spawn().unwrap(), batch)
}

#[tokio::test]
async fn diagnostics_show_caller_method_arguments_and_result() {
    let (server, program) = batch();
    let node = program.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let diagnostic = async || -> ProgramDiagnostic2DataType {
        let value: ExtensionObject = client.read_value(member(&node, &["ProgramDiagnostic"])).await.unwrap();
        value.decode().unwrap()
    };
    let call = async |command: Command, inputs: Vec<Variant>| {
        let called = client.call_variants(node.id().clone(), member(&node, &[command.name()]), inputs).await;
        called.map_err(|error| error.status())
    };
    let before = diagnostic().await;
    assert!(!before.invocation_creation_time.is_null() && before.last_transition_time.is_null());
    assert_eq!((before.create_session_id, before.last_method_call.as_str()), (NodeId::NULL, ""));

    // Calls with wrong arguments do not reach the Program.
    assert_eq!(call(Command::Start, Vec::new()).await, Err(StatusCode::BAD_ARGUMENTS_MISSING));
    assert_eq!(call(Command::Start, vec!["".into()]).await, Err(StatusCode::BAD_OUT_OF_RANGE));
    let refused = diagnostic().await;
    assert_eq!(refused.last_method_return_status, StatusCode::BAD_OUT_OF_RANGE);
    assert!(refused.last_transition_time.is_null() && refused.last_method_output_values.is_empty());

    let outputs = call(Command::Start, vec!["red".into()]).await.unwrap();
    assert_eq!(outputs, [Variant::from(7u32), Variant::from(1.5)]);
    let started = diagnostic().await;
    assert_eq!(started.last_method_call.as_str(), "Start");
    assert!(started.last_method_session_id != NodeId::NULL);
    assert_eq!(started.last_method_input_values, ["red".into()]);
    assert_eq!(started.last_method_output_values, outputs);
    let names = |arguments: &[taktwerk::schema::Argument]| -> Vec<String> {
        arguments.iter().map(|argument| argument.name.as_str().to_owned()).collect()
    };
    assert_eq!(names(&started.last_method_input_arguments), ["order"]);
    assert_eq!(names(&started.last_method_output_arguments), ["number", "seconds"]);
    assert_eq!(started.last_method_return_status, StatusCode::GOOD);
    assert!(started.last_method_call_time.ticks() >= started.invocation_creation_time.ticks());
    // The components have the same values.
    let part = async |name: &str| -> Variant {
        client.read_value(member(&node, &["ProgramDiagnostic", name])).await.unwrap()
    };
    assert_eq!(part("LastMethodCall").await, "Start".into());
    assert_eq!(part("LastTransitionTime").await, started.last_transition_time.into());

    assert_eq!(call(Command::Resume, Vec::new()).await, Err(StatusCode::BAD_INVALID_STATE));
    let last = diagnostic().await;
    assert_eq!(
        (last.last_method_call.as_str(), last.last_method_return_status),
        ("Resume", StatusCode::BAD_INVALID_STATE)
    );
    assert!(last.last_method_output_arguments.is_empty());
    // A transition by the application is not a call.
    program.finish().unwrap();
    let finished = diagnostic().await;
    assert!(finished.last_transition_time.ticks() >= last.last_transition_time.ticks());
    assert_eq!(finished.last_method_call.as_str(), "Resume");
    let _: UtcTime = finished.last_method_call_time;
}

#[tokio::test]
async fn results_are_in_events_and_finally_in_an_object() {
    let (server, program) = batch();
    let node = program.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let mut subscription = client.subscribe(Duration::from_millis(20)).await.unwrap();
    let query = EventQuery::new().select("IntermediateResult").select("ToState");
    subscription.monitor_item(Item::events(node.id().clone(), query)).await.unwrap();
    let start = member(&node, &["Start"]);
    client.call_variants(node.id().clone(), start, vec!["blue".into()]).await.unwrap();
    let event = async {
        loop {
            if let Update::Event(_, fields) = subscription.next().await.unwrap() {
                return fields;
            }
        }
    };
    assert_eq!(tokio::time::timeout(SOON, event).await.unwrap()[0], "blue".into());
    // FinalResultData exists once there are results.
    assert!(node.child_named(&QualifiedName::new(0, "FinalResultData")).is_err());
    let pieces = program.final_results().unwrap().variable("Pieces", 12u32).add().unwrap();
    assert_eq!(program.final_results().unwrap().id(), &member(&node, &["FinalResultData"]));
    let read: u32 = client.read_value(pieces.id().clone()).await.unwrap();
    assert_eq!(read, 12);
}

#[test]
fn a_program_deletes_itself_when_its_execution_has_ended() {
    use Transition as T;
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let machine = server.namespace("urn:plant").object("Machine").event_notifier().add().unwrap();
    // Each final transition, with the commands that lead to it; those by the application last.
    type Way<'a> = (T, &'a [Command], fn(&Program) -> Result<(), StatusCode>);
    let halt = |program: &Program| program.command(Command::Halt);
    let nothing = |_: &Program| Ok(());
    let ways: [Way<'_>; 7] = [
        (T::ReadyToRunning, &[Command::Start], nothing),
        (T::RunningToSuspended, &[Command::Start, Command::Suspend], nothing),
        (T::SuspendedToRunning, &[Command::Start, Command::Suspend, Command::Resume], nothing),
        (T::ReadyToHalted, &[], halt),
        (T::RunningToHalted, &[Command::Start], Program::fail),
        (T::RunningToReady, &[Command::Start], Program::finish),
        (T::SuspendedToReady, &[Command::Start, Command::Suspend], Program::finish),
    ];
    for (transition, commands, end) in ways {
        let before = server.space().node_count();
        let name = transition.name();
        let program = machine.new_program(name).auto_delete().add(|_, _| Ok(())).unwrap();
        program.final_results().unwrap().variable("Pieces", 1u32).add().unwrap();
        for command in commands {
            program.command(*command).unwrap();
        }
        end(&program).unwrap();
        assert_eq!(program.state(), transition.to());
        let is_gone = server.space().node_count() == before;
        assert_eq!(is_gone, transition.ends_execution(), "{name}");
        assert_eq!(program.final_results().is_err(), is_gone);
        if is_gone {
            // No further transition is possible.
            assert_eq!(program.command(Command::Start), Err(StatusCode::BAD_INVALID_STATE), "{name}");
            assert_eq!(program.command(Command::Reset), Err(StatusCode::BAD_INVALID_STATE), "{name}");
        }
    }
}

#[test]
fn a_program_that_cannot_be_added_leaves_no_nodes() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let hall = server.namespace("urn:plant").object("Hall").event_notifier().add().unwrap();
    // Clients that may add nodes choose their ids.
    let other = hall.object("Batch/Suspend").add().unwrap();
    let before = server.space().node_count();
    assert!(hall.program("Batch", |_, _| Ok(())).is_err());
    assert_eq!(server.space().node_count(), before);
    other.delete().unwrap();
    assert_eq!(hall.program("Batch", |_, _| Ok(())).unwrap().state(), State::Ready);
}

#[tokio::test]
async fn clients_create_programs_of_a_type_up_to_a_limit() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let hall = plant.object("Hall").event_notifier().add().unwrap();
    let kind = hall.new_program("BatchType").auto_delete().add_type(2, |_, _| Ok(())).unwrap();
    let kind_node = plant.node(kind.id().clone()).unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let create = async |name: &str| -> Result<NodeId, StatusCode> {
        let method = member(&kind_node, &["Create"]);
        let called = client.call_variants(kind.id().clone(), method, vec![name.into()]).await;
        let outputs = called.map_err(|error| error.status())?;
        Ok(NodeId::try_from(outputs[0].clone()).unwrap())
    };
    let count = async || -> u32 { client.read_value(member(&kind_node, &["InstanceCount"])).await.unwrap() };
    for wrong in ["", "a/b", "a\nb", &"x".repeat(129)] {
        assert_eq!(create(wrong).await, Err(StatusCode::BAD_BROWSE_NAME_INVALID));
    }
    let first = create("One").await.unwrap();
    assert_eq!(create("One").await, Err(StatusCode::BAD_BROWSE_NAME_DUPLICATED));
    create("Two").await.unwrap();
    assert_eq!(create("Three").await, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
    assert_eq!((count().await, kind.programs().len()), (2, 2));
    let node = plant.node(first.clone()).unwrap();
    let diagnostic: ExtensionObject = client.read_value(member(&node, &["ProgramDiagnostic"])).await.unwrap();
    let diagnostic: ProgramDiagnostic2DataType = diagnostic.decode().unwrap();
    assert!(diagnostic.create_session_id != NodeId::NULL);
    assert!(!diagnostic.create_client_name.as_str().is_empty());
    // Its Methods work, and its end allows another instance.
    let call = async |command: Command| {
        client.call_variants(first.clone(), member(&node, &[command.name()]), Vec::new()).await.unwrap();
    };
    call(Command::Start).await;
    assert!(kind.programs().iter().any(|program| program.state() == State::Running));
    call(Command::Halt).await;
    assert_eq!((count().await, kind.programs().len()), (1, 1));
    assert!(!plant.space().contains(&first));
    create("Three").await.unwrap();
    create("One").await.unwrap_err();
}

/// Part 10 §4.2.10: with DeleteNodes, in the state Halted.
#[tokio::test]
async fn clients_delete_programs_that_are_deletable_while_they_are_halted() {
    // Without `node_management`, nothing else can be deleted.
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let hall = plant.object("Hall").event_notifier().add().unwrap();
    let kind = hall.new_program("BatchType").deletable().add_type(2, |_, _| Ok(())).unwrap();
    let kind_node = plant.node(kind.id().clone()).unwrap();
    let fixed = hall.program("Fixed", |_, _| Ok(())).unwrap();
    let hidden = hall.new_program("Hidden").deletable().add(|_, _| Ok(())).unwrap();
    let hidden_node = hidden.node().unwrap();
    server.space().set_access(hidden_node.id(), Access::roles([])).unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let create = async |name: &str| -> NodeId {
        let method = member(&kind_node, &["Create"]);
        let called = client.call_variants(kind.id().clone(), method, vec![name.into()]).await;
        NodeId::try_from(called.unwrap()[0].clone()).unwrap()
    };
    let delete = async |id: &NodeId| client.delete_nodes([id.clone()]).await.unwrap()[0];
    let deletable =
        async |node: &Node| -> bool { client.read_value(member(node, &["Deletable"])).await.unwrap() };
    let count = async || -> u32 { client.read_value(member(&kind_node, &["InstanceCount"])).await.unwrap() };
    let before = server.space().node_count();
    let first = create("One").await;
    create("Two").await;
    let node = plant.node(first.clone()).unwrap();
    let fixed_node = fixed.node().unwrap();
    assert!(deletable(&node).await && !deletable(&fixed_node).await);
    let call = async |command: Command| {
        client.call_variants(first.clone(), member(&node, &[command.name()]), Vec::new()).await.unwrap();
    };
    assert_eq!(delete(&first).await, StatusCode::BAD_INVALID_STATE, "Ready");
    call(Command::Start).await;
    assert_eq!(delete(&first).await, StatusCode::BAD_INVALID_STATE, "Running");
    call(Command::Halt).await;
    let halted = kind.programs().into_iter().find(|program| program.state() == State::Halted).unwrap();
    assert!(halted.exists());
    assert_eq!(delete(&first).await, StatusCode::GOOD);
    assert!(!halted.exists() && !server.space().contains(&first));
    assert_eq!(
        halted.command(Command::Reset),
        Err(StatusCode::BAD_INVALID_STATE),
        "it begins nothing any more"
    );
    assert_eq!((count().await, kind.programs().len()), (1, 1));
    assert_eq!(delete(&first).await, StatusCode::BAD_NODE_ID_UNKNOWN);
    // Programs that are not deletable stay, and so do those that clients may not see.
    fixed.command(Command::Halt).unwrap();
    hidden.command(Command::Halt).unwrap();
    for id in [fixed_node.id(), hall.id(), kind.id()] {
        assert_eq!(delete(id).await, StatusCode::BAD_NO_DELETE_RIGHTS, "{id}");
    }
    assert!(delete(hidden_node.id()).await.is_bad() && hidden.exists());
    // Nothing remains: its name can be used again, and the limit allows another instance.
    let again = create("One").await;
    assert_eq!(again, first);
    let programs = kind.programs();
    for program in &programs {
        program.command(Command::Halt).unwrap();
        assert_eq!(delete(program.node().unwrap().id()).await, StatusCode::GOOD);
    }
    assert_eq!(server.space().node_count(), before);
}
