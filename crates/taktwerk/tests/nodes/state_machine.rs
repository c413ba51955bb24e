//! A client of a state machine with its own type: nodes, Methods that are executable in some states, events.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::time::Duration;
use std::sync::{Arc, Barrier};
use taktwerk::client::{BrowseOptions, EventQuery, Item, Subscription, Update};
use taktwerk::schema::ids::{object_type_ids, reference_type_ids};
use taktwerk::state_machine::{Definition, StateMachine};
use taktwerk::{
    BuildError, Client, LocalizedText, Namespace, Node, NodeId, QualifiedName, RunningServer, Server,
    StatusCode, Variant,
};

const SOON: Duration = Duration::from_secs(20);

fn definition() -> Definition {
    Definition::new("DoorStateMachineType", "Closed")
        .state("Opened")
        .state("Locked")
        .transition("Closed", "Opened", "Open")
        .transition("Opened", "Closed", "Close")
        .own_transition("Closed", "Locked")
        .own_transition("Locked", "Closed")
}

/// A door that rejects locking.
fn door() -> (RunningServer, Namespace, StateMachine) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let kind = plant.state_machine_type(definition()).unwrap();
    let oven = plant.object("Oven").event_notifier().add().unwrap();
    let door = oven
        .state_machine("Door", &kind, |door, step| {
            // No other transition is possible during this one.
            assert_eq!(door.state(), step.from);
            assert_eq!(door.cause("Open"), Err(StatusCode::BAD_INVALID_STATE));
            if step.transition == "ClosedToLocked" { Err(StatusCode::BAD_DEVICE_FAILURE) } else { Ok(()) }
        })
        .unwrap();
    (server.spawn().unwrap(), plant, door)
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
async fn a_client_causes_transitions_and_receives_events() {
    let (server, plant, door) = door();
    let node = door.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let kind = plant.node(NodeId::string(plant.index(), "DoorStateMachineType")).unwrap();
    let part = |name: &str| kind.child(name).unwrap().id().clone();
    let method = |name: &str| node.child(name).unwrap().id().clone();
    let call = async |method: NodeId| {
        let called = client.call_variants(node.id().clone(), method, Vec::new()).await;
        called.map(drop).map_err(|error| error.status())
    };
    let mut subscription = client.subscribe(Duration::from_millis(20)).await.unwrap();
    let query = EventQuery::new()
        .select("EventType")
        .select("Transition/Id")
        .select("FromState/Id")
        .select("ToState")
        .select("ToState/Id")
        .select("SourceName");
    subscription.monitor_item(Item::events(node.id().clone(), query)).await.unwrap();

    let states: Vec<NodeId> = client.read_value(member(&node, &["AvailableStates"])).await.unwrap();
    assert_eq!(states, [part("Closed"), part("Opened"), part("Locked")]);
    let transitions: Vec<NodeId> = client.read_value(member(&node, &["AvailableTransitions"])).await.unwrap();
    assert_eq!((transitions.len(), transitions[0].clone()), (4, part("ClosedToOpened")));
    let executable = async || {
        let mut found = Vec::new();
        for name in ["Open", "Close"] {
            let read = client.read_attribute(method(name), taktwerk::client::Attribute::Executable).await;
            found.push(bool::try_from(read.unwrap().value.unwrap()).unwrap());
        }
        found
    };
    assert_eq!(executable().await, [true, false]);
    assert_eq!(call(method("Close")).await, Err(StatusCode::BAD_NOT_EXECUTABLE));
    // A call of the type's Method refers to the object's.
    call(part("Open")).await.unwrap();
    assert_eq!((door.state(), executable().await), ("Opened", vec![false, true]));
    assert_eq!(call(method("Open")).await, Err(StatusCode::BAD_NOT_EXECUTABLE));
    let text = LocalizedText::new("en", "Opened");
    let id = |id: NodeId| Variant::from(id);
    assert_eq!(
        next(&mut subscription).await,
        [
            id(NodeId::numeric(0, object_type_ids::TRANSITION_EVENT_TYPE)),
            id(part("ClosedToOpened")),
            id(part("Closed")),
            text.clone().into(),
            id(part("Opened")),
            "Door".into(),
        ]
    );
    let current: LocalizedText = client.read_value(member(&node, &["CurrentState"])).await.unwrap();
    let number: u32 = client.read_value(member(&node, &["CurrentState", "Number"])).await.unwrap();
    assert_eq!((current, number), (text, 2));
    let name: QualifiedName = client.read_value(member(&node, &["LastTransition", "Name"])).await.unwrap();
    let last: NodeId = client.read_value(member(&node, &["LastTransition", "Id"])).await.unwrap();
    let number: u32 = client.read_value(member(&node, &["LastTransition", "Number"])).await.unwrap();
    assert_eq!(name, QualifiedName::new(plant.index(), "ClosedToOpened"));
    assert_eq!((last, number), (part("ClosedToOpened"), 1));

    // Transitions of the application.
    assert_eq!(door.go_to("Locked"), Err(StatusCode::BAD_INVALID_STATE), "not from here");
    assert_eq!(door.go_to("Ajar"), Err(StatusCode::BAD_INVALID_STATE));
    door.cause("Close").unwrap();
    assert_eq!(door.go_to("Locked"), Err(StatusCode::BAD_DEVICE_FAILURE), "it is refused");
    assert_eq!((door.state(), executable().await), ("Closed", vec![true, false]));
    assert_eq!(next(&mut subscription).await[1], id(part("OpenedToClosed")));
}

#[tokio::test]
async fn the_type_describes_its_transitions() {
    let (server, plant, _door) = door();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let kind = plant.node(NodeId::string(plant.index(), "DoorStateMachineType")).unwrap();
    let part = |name: &str| kind.child(name).unwrap().id().clone();
    let all = BrowseOptions {
        reference_type: NodeId::numeric(0, reference_type_ids::REFERENCES),
        ..BrowseOptions::default()
    };
    let found = client.browse_with(part("ClosedToOpened"), &all).await.unwrap();
    let to = |reference: u32| {
        let is_it = |found: &&taktwerk::schema::ReferenceDescription| {
            found.is_forward && found.reference_type_id == NodeId::numeric(0, reference)
        };
        found.iter().find(is_it).map(|found| found.node_id.node_id.clone())
    };
    use reference_type_ids as r;
    assert_eq!(to(r::FROM_STATE), Some(part("Closed")));
    assert_eq!(to(r::TO_STATE), Some(part("Opened")));
    assert_eq!(to(r::HAS_CAUSE), Some(part("Open")));
    assert_eq!(to(r::HAS_EFFECT), Some(NodeId::numeric(0, object_type_ids::TRANSITION_EVENT_TYPE)));
    // Instances do not have their own state objects.
    let missing = plant.node(NodeId::string(plant.index(), "Oven/Door/Closed"));
    assert!(missing.is_err());
    // The name of a type is unique, and an invalid one leaves no nodes.
    assert!(matches!(plant.state_machine_type(definition()), Err(BuildError::Node(_))));
    let broken = Definition::new("Broken", "A").own_transition("A", "B");
    let told = plant.state_machine_type(broken).unwrap_err();
    assert_eq!(told.status(), StatusCode::BAD_INVALID_ARGUMENT);
    assert_eq!(
        told.to_string(),
        "the state machine Broken cannot be built: there is no state B: name it with state() first"
    );
}

#[test]
fn a_panic_of_the_application_leaves_the_machine_usable() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let kind = plant.state_machine_type(definition()).unwrap();
    let oven = plant.object("Oven").event_notifier().add().unwrap();
    let door = oven
        .state_machine("Door", &kind, |_, step| {
            assert_ne!(step.to, "Locked", "there is no lock");
            Ok(())
        })
        .unwrap();
    let other = door.clone();
    assert!(std::thread::spawn(move || other.go_to("Locked")).join().is_err());
    door.cause("Open").unwrap();
    assert_eq!(door.state(), "Opened");
    // It does not keep the server alive.
    drop((server, plant, oven, kind));
    assert!(door.node().is_none());
}

/// A pump with a sub-machine in its state Running, and a Method with arguments.
fn pump() -> (RunningServer, Namespace, StateMachine) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let speed = Definition::new("SpeedStateMachineType", "Slow")
        .state("Fast")
        .transition("Slow", "Fast", "Accelerate")
        .own_transition("Fast", "Slow");
    let speed = plant.state_machine_type(speed).unwrap();
    let pump = Definition::new("PumpStateMachineType", "Stopped")
        .state("Running")
        .transition("Stopped", "Running", "Start")
        .transition("Running", "Stopped", "Stop")
        .transition("Running", "Running", "Start")
        .inputs::<(f64, String)>("Start", ["speed", "reason"])
        .sub_machine("Running", "Speed", &speed);
    let pump = plant.state_machine_type(pump).unwrap();
    let hall = plant.object("Hall").event_notifier().add().unwrap();
    let told = hall.variable("Told", String::new()).add().unwrap();
    let pump = hall
        .state_machine("Pump", &pump, move |machine, step| {
            if machine.name() == "Pump" && step.to == "Running" {
                let (speed, reason): (f64, String) = step.inputs()?;
                if speed > 100.0 {
                    return Err(StatusCode::BAD_OUT_OF_RANGE);
                }
                told.set(format!("{speed} {reason}"));
            }
            assert_eq!(step.inputs::<(u8,)>(), Err(StatusCode::BAD_INVALID_ARGUMENT));
            Ok(())
        })
        .unwrap();
    (server.spawn().unwrap(), plant, pump)
}

#[tokio::test]
async fn a_method_has_arguments() {
    let (server, plant, pump) = pump();
    let node = pump.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let start = node.child("Start").unwrap().id().clone();
    let call = async |inputs: Vec<Variant>| {
        let called = client.call_variants(node.id().clone(), start.clone(), inputs).await;
        called.map(drop).map_err(|error| error.status())
    };
    assert_eq!(call(vec![]).await, Err(StatusCode::BAD_ARGUMENTS_MISSING));
    assert_eq!(call(vec!["fast".into(), "x".into()]).await, Err(StatusCode::BAD_INVALID_ARGUMENT));
    assert_eq!(call(vec![101.0.into(), "x".into()]).await, Err(StatusCode::BAD_OUT_OF_RANGE));
    assert_eq!(pump.state(), "Stopped");
    call(vec![40.0.into(), "demand".into()]).await.unwrap();
    let told = NodeId::string(plant.index(), "Hall/Told");
    assert_eq!(client.read_value::<String>(told.clone()).await.unwrap(), "40 demand");
    // The application supplies arguments too, or gets the same error as a client.
    assert_eq!(pump.cause("Start"), Err(StatusCode::BAD_INVALID_ARGUMENT));
    pump.cause_with("Start", (50.0, "test".to_owned())).unwrap();
    assert_eq!(client.read_value::<String>(told).await.unwrap(), "50 test");
}

#[tokio::test]
async fn a_sub_machine_is_active_only_in_its_state() {
    let (server, plant, pump) = pump();
    let node = pump.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let speed = pump.sub_machine("Speed").unwrap();
    assert!(pump.sub_machine("Colour").is_none());
    let object = speed.node().unwrap();
    let accelerate = object.child("Accelerate").unwrap().id().clone();
    let current = async || {
        let read = client.read_value::<LocalizedText>(member(&object, &["CurrentState"])).await;
        read.map(|text| text.text.as_str().to_owned()).map_err(|error| error.status())
    };
    let call = async || {
        let called = client.call_variants(object.id().clone(), accelerate.clone(), Vec::new()).await;
        called.map(drop).map_err(|error| error.status())
    };
    let last = async || {
        let read = client.read_value::<LocalizedText>(member(&object, &["LastTransition"])).await;
        read.map(|text| text.text.as_str().to_owned()).map_err(|error| error.status())
    };
    let inactive = Err(StatusCode::BAD_STATE_NOT_ACTIVE);
    assert_eq!(last().await, inactive);
    assert_eq!((current().await, speed.state()), (inactive.clone(), ""));
    assert_eq!(call().await, Err(StatusCode::BAD_NOT_EXECUTABLE));
    assert_eq!(speed.go_to("Fast"), Err(StatusCode::BAD_INVALID_STATE));
    let start = || pump.cause_with("Start", (1.0, String::new())).unwrap();
    start();
    assert_eq!((current().await, speed.state()), (Ok("Slow".to_owned()), "Slow"));
    // Its events are reported at the containing machine.
    let mut subscription = client.subscribe(Duration::from_millis(20)).await.unwrap();
    let query = EventQuery::new().select("ToState").select("SourceName");
    subscription.monitor_item(Item::events(node.id().clone(), query)).await.unwrap();
    call().await.unwrap();
    assert_eq!((current().await, last().await), (Ok("Fast".to_owned()), Ok("SlowToFast".to_owned())));
    assert_eq!(next(&mut subscription).await, [LocalizedText::new("en", "Fast").into(), "Speed".into()]);
    // When the state is entered again, the sub-machine starts in its initial state.
    start();
    assert_eq!(current().await, Ok("Slow".to_owned()));
    assert_eq!(last().await, Err(StatusCode::BAD_WAITING_FOR_INITIAL_DATA));
    pump.cause("Stop").unwrap();
    assert_eq!((current().await, speed.state(), pump.state()), (inactive.clone(), "", "Stopped"));
    assert_eq!(last().await, inactive);
    // The type refers to it (Part 16 §4.4.16).
    let kind = plant.node(NodeId::string(plant.index(), "PumpStateMachineType")).unwrap();
    let all = BrowseOptions {
        reference_type: NodeId::numeric(0, reference_type_ids::HAS_SUB_STATE_MACHINE),
        ..BrowseOptions::default()
    };
    let state = kind.child("Running").unwrap().id().clone();
    let found = client.browse_with(state, &all).await.unwrap();
    let inside: Vec<_> = found.iter().map(|found| found.node_id.node_id.clone()).collect();
    assert_eq!(inside, [kind.child("Speed").unwrap().id().clone()]);
}

/// A transition of the sub-machine ends while its containing state is left: finally it is shown as inactive.
#[test]
fn a_sub_machine_is_inactive_if_its_state_is_left_concurrently() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let speed = Definition::new("SpeedStateMachineType", "Slow").state("Fast").own_transition("Slow", "Fast");
    let speed = plant.state_machine_type(speed).unwrap();
    let pump = Definition::new("PumpStateMachineType", "Stopped")
        .state("Running")
        .own_transition("Stopped", "Running")
        .own_transition("Running", "Stopped")
        .sub_machine("Running", "Speed", &speed);
    let pump = plant.state_machine_type(pump).unwrap();
    // Both transitions continue at the same time, with varying delay.
    let (both, later) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU32::new(0)));
    let (meets, waits) = (Arc::clone(&both), Arc::clone(&later));
    let pump = plant
        .objects()
        .state_machine("Pump", &pump, move |_, step| {
            if step.to != "Running" {
                meets.wait();
            }
            if step.to == "Fast" {
                (0..waits.load(Relaxed)).for_each(|_| core::hint::spin_loop());
            }
            Ok(())
        })
        .unwrap();
    let speed = pump.sub_machine("Speed").unwrap();
    let object = speed.node().unwrap();
    let shown = ["CurrentState", "LastTransition"]
        .map(|name| plant.space().variable(&member(&object, &[name])).unwrap());
    let mut made = 0;
    for round in 0..400 {
        later.store(round * 10, Relaxed);
        pump.go_to("Running").unwrap();
        std::thread::scope(|scope| {
            let fast = scope.spawn(|| speed.go_to("Fast"));
            pump.go_to("Stopped").unwrap();
            made += u32::from(fast.join().unwrap().is_ok());
        });
        let statuses = shown.each_ref().map(|variable| variable.get().status());
        assert_eq!(statuses, [StatusCode::BAD_STATE_NOT_ACTIVE; 2], "round {round}");
    }
    assert!(made > 0, "the machine inside never came first");
}
