//! A Program from a client: methods, states and transition events.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use taktwerk::client::{EventQuery, Item, Subscription, Update};
use taktwerk::program::{Command, Program, State, Transition};
use taktwerk::schema::ids::object_type_ids;
use taktwerk::{Client, Node, NodeId, QualifiedName, RunningServer, Server, StatusCode, Variant};

const SOON: Duration = Duration::from_secs(20);

/// A batch that rejects Suspend, and the requested transitions.
fn batch() -> (RunningServer, Program, Arc<Mutex<Vec<Transition>>>) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let machine = server.namespace("urn:plant").object("Machine").event_notifier().add().unwrap();
    let asked: Arc<Mutex<Vec<Transition>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let program = machine
        .program("Batch", move |program, transition| {
            seen.lock().unwrap().push(transition);
            // No other command is possible during a transition.
            assert_eq!(program.state(), transition.from());
            assert_eq!(program.command(Command::Halt), Err(StatusCode::BAD_INVALID_STATE));
            match transition {
                Transition::RunningToSuspended => Err(StatusCode::BAD_DEVICE_FAILURE),
                _ => Ok(()),
            }
        })
        .unwrap();
    (server.spawn().unwrap(), program, asked)
}

fn member(node: &Node, path: &[&str]) -> NodeId {
    path.iter()
        .fold(node.clone(), |node, name| node.child_named(&QualifiedName::new(0, *name)).unwrap())
        .id()
        .clone()
}

async fn next(subscription: &mut Subscription) -> Vec<Variant> {
    let next = async {
        loop {
            if let Update::Event(_, fields) = subscription.next().await.unwrap() {
                return fields;
            }
        }
    };
    tokio::time::timeout(SOON, next).await.unwrap()
}

#[tokio::test]
async fn a_client_runs_a_program_and_receives_transition_events() {
    let (server, program, asked) = batch();
    let node = program.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let call = async |command: Command| {
        let method = member(&node, &[command.name()]);
        client
            .call_variants(node.id().clone(), method, Vec::new())
            .await
            .map(drop)
            .map_err(|error| error.status())
    };
    let state = async || -> String {
        let text: taktwerk::LocalizedText =
            client.read_value(member(&node, &["CurrentState"])).await.unwrap();
        text.text.as_str().to_owned()
    };
    let mut subscription = client.subscribe(Duration::from_millis(20)).await.unwrap();
    let query = EventQuery::new()
        .select("EventType")
        .select("Transition/Id")
        .select("FromState/Id")
        .select("ToState")
        .select("SourceName");
    subscription.monitor_item(Item::events(node.id().clone(), query)).await.unwrap();
    assert_eq!(state().await, "Ready");
    assert_eq!(call(Command::Resume).await, Err(StatusCode::BAD_INVALID_STATE));
    call(Command::Start).await.unwrap();
    assert_eq!((state().await.as_str(), program.state()), ("Running", State::Running));
    let id = |id: u32| Variant::from(NodeId::numeric(0, id));
    let event = next(&mut subscription).await;
    assert_eq!(event[0], id(object_type_ids::PROGRAM_TRANSITION_EVENT_TYPE));
    assert_eq!(event[1], id(Transition::ReadyToRunning.object_id()));
    assert_eq!(event[2], id(State::Ready.object_id()));
    assert_eq!(event[3], taktwerk::LocalizedText::new("en", "Running").into());
    assert_eq!(event[4], "Batch".into());
    let number: u32 = client.read_value(member(&node, &["CurrentState", "Number"])).await.unwrap();
    let last: NodeId = client.read_value(member(&node, &["LastTransition", "Id"])).await.unwrap();
    assert_eq!((number, last), (13, NodeId::numeric(0, Transition::ReadyToRunning.object_id())));

    // An error of the application leaves the state unchanged.
    assert_eq!(call(Command::Suspend).await, Err(StatusCode::BAD_DEVICE_FAILURE));
    assert_eq!(program.state(), State::Running);
    program.finish().unwrap();
    assert_eq!(program.finish(), Err(StatusCode::BAD_INVALID_STATE));
    call(Command::Start).await.unwrap();
    program.fail().unwrap();
    assert_eq!(call(Command::Start).await, Err(StatusCode::BAD_INVALID_STATE));
    call(Command::Reset).await.unwrap();
    let recycled: i32 = client.read_value(member(&node, &["RecycleCount"])).await.unwrap();
    assert_eq!((state().await.as_str(), recycled), ("Ready", 1));
    use Transition as T;
    let done = [
        T::ReadyToRunning,
        T::RunningToSuspended,
        T::RunningToReady,
        T::ReadyToRunning,
        T::RunningToHalted,
        T::HaltedToReady,
    ];
    assert_eq!(*asked.lock().unwrap(), done);
    for transition in [T::RunningToReady, T::ReadyToRunning, T::RunningToHalted, T::HaltedToReady] {
        assert_eq!(next(&mut subscription).await[1], id(transition.object_id()));
    }
}

#[test]
fn programs_do_not_keep_the_server_alive() {
    let (server, program, _) = batch();
    server.stop(Duration::from_secs(1));
    // Commands still work then, but are not shown.
    assert!(program.node().is_none());
    program.command(Command::Start).unwrap();
    assert_eq!(program.state(), State::Running);
}

#[test]
fn work_that_ends_during_a_transition_takes_effect_after_it() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let machine = server.namespace("urn:plant").object("Machine").event_notifier().add().unwrap();
    let asked: Arc<Mutex<Vec<Transition>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let batch = machine
        .program("Batch", move |program, transition| {
            seen.lock().unwrap().push(transition);
            if transition == Transition::ReadyToRunning {
                // The work is so short that it ends before Start has completed.
                program.finish()?;
                assert_eq!(program.state(), State::Ready);
            }
            Ok(())
        })
        .unwrap();
    use Transition as T;
    batch.command(Command::Start).unwrap();
    assert_eq!(batch.state(), State::Ready);
    assert_eq!(*asked.lock().unwrap(), [T::ReadyToRunning, T::RunningToReady]);

    let drill = machine
        .program("Drill", |program, transition| {
            if transition == T::RunningToSuspended {
                program.finish()?;
                program.fail()?;
                program.finish()?;
                return Err(StatusCode::BAD_DEVICE_FAILURE);
            }
            Ok(())
        })
        .unwrap();
    drill.command(Command::Start).unwrap();
    // The command fails, but the failure of the work takes effect.
    assert_eq!(drill.command(Command::Suspend), Err(StatusCode::BAD_DEVICE_FAILURE));
    assert_eq!(drill.state(), State::Halted);
    drill.command(Command::Reset).unwrap();
    // There is no work that could end.
    assert_eq!(drill.finish(), Err(StatusCode::BAD_INVALID_STATE));
    assert_eq!(drill.state(), State::Ready);
}
