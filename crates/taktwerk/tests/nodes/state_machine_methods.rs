//! Results of state machine Methods, and transitions to a certain state of a sub-machine (Part 16 §4.4.10).

use taktwerk::client::BrowseOptions;
use taktwerk::schema::Argument;
use taktwerk::schema::ids::reference_type_ids;
use taktwerk::state_machine::{Definition, StateMachine};
use taktwerk::types::ExtensionObject;
use taktwerk::{Client, Namespace, NodeId, QualifiedName, RunningServer, Server, StatusCode, Variant};

/// A pump whose speed is a sub-machine in the state Running.
fn pump() -> (RunningServer, Namespace, StateMachine) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    let speed = Definition::new("SpeedStateMachineType", "Slow").state("Fast").own_transition("Fast", "Slow");
    let speed = plant.state_machine_type(speed).unwrap();
    let pump = Definition::new("PumpStateMachineType", "Stopped")
        .state("Running")
        .sub_machine("Running", "Speed", &speed)
        .transition("Stopped", "Running", "Start")
        .transition_into("Stopped", "Speed", "Fast", "Boost")
        .own_transition_into("Running", "Speed", "Fast")
        .own_transition("Running", "Stopped")
        .inputs::<(u32,)>("Start", ["order"])
        .outputs::<(String, f64)>("Start", ["batch", "seconds"])
        .outputs::<(bool,)>("Boost", ["allowed"]);
    let kind = plant.state_machine_type(pump).unwrap();
    let hall = plant.object("Hall").event_notifier().add().unwrap();
    let machine = hall.state_machine("Pump", &kind, |_, step| {
        if step.transition == "StoppedToRunning" {
            assert_eq!(step.inner, None);
            // Undeclared types are rejected.
            assert_eq!(step.set_outputs((1u8,)), step.inputs::<(u32,)>().map_or(Ok(()), |_| WRONG));
            if let Ok((order,)) = step.inputs::<(u32,)>() {
                if order == 13 {
                    return Err(StatusCode::BAD_OUT_OF_RANGE);
                }
                step.set_outputs((format!("batch {order}"), 1.5))?;
            }
        }
        if step.transition == "StoppedToFast" {
            assert_eq!((step.to, step.inner), ("Running", Some("Fast")));
        }
        Ok(())
    });
    (server.spawn().unwrap(), plant, machine.unwrap())
}

const WRONG: Result<(), StatusCode> = Err(StatusCode::BAD_TYPE_MISMATCH);

#[tokio::test]
async fn a_method_returns_what_the_application_sets() {
    let (server, _, pump) = pump();
    let node = pump.node().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let method = |name: &str| node.child(name).unwrap().id().clone();
    for (property, names) in [("InputArguments", &["order"][..]), ("OutputArguments", &["batch", "seconds"])]
    {
        let property = node.child("Start").unwrap().child_named(&QualifiedName::new(0, property)).unwrap();
        let value: Variant = client.read_value(property.id().clone()).await.unwrap();
        let described = Vec::<ExtensionObject>::try_from(value).unwrap();
        let described = described.iter().map(|argument| argument.decode::<Argument>().unwrap());
        assert_eq!(described.map(|one| one.name.as_str().to_owned()).collect::<Vec<_>>(), names);
    }
    let called = client.call_variants(node.id().clone(), method("Start"), vec![7u32.into()]).await.unwrap();
    assert_eq!(called, ["batch 7".into(), Variant::from(1.5)]);
    pump.go_to("Stopped").unwrap();
    let refused = client.call_variants(node.id().clone(), method("Start"), vec![13u32.into()]).await;
    assert_eq!(refused.unwrap_err().status(), StatusCode::BAD_OUT_OF_RANGE);
    // Results that are not set are null.
    let called = client.call_variants(node.id().clone(), method("Boost"), Vec::new()).await.unwrap();
    assert_eq!(called, [Variant::Empty]);
    pump.go_to("Stopped").unwrap();
    // The application receives them too.
    let (batch, _): (String, f64) = pump.cause_for("Start", (8u32,)).unwrap();
    assert_eq!(batch, "batch 8");
    pump.go_to("Stopped").unwrap();
    assert_eq!(pump.cause_for::<(u8,)>("Start", (9u32,)), Err(StatusCode::BAD_TYPE_MISMATCH));
    assert_eq!(pump.state(), "Running");
    pump.go_to("Stopped").unwrap();
    // Without a Method the results are discarded.
    pump.go_to("Running").unwrap();
}

/// Every transition into the states of machine and sub-machine, from every state.
#[tokio::test]
async fn a_transition_leads_to_a_state_of_a_sub_machine() {
    let (server, plant, pump) = pump();
    let speed = pump.sub_machine("Speed").unwrap();
    let states = || (pump.state().to_owned(), speed.state().to_owned());
    let is = |outer: &str, inner: &str| assert_eq!(states(), (outer.to_owned(), inner.to_owned()));
    is("Stopped", "");
    pump.cause("Boost").unwrap();
    is("Running", "Fast");
    assert_eq!(pump.cause("Boost"), Err(StatusCode::BAD_INVALID_STATE));
    speed.go_to("Slow").unwrap();
    is("Running", "Slow");
    // Part 16 §4.4.10: the containing state is left and entered again.
    pump.go_into("Speed", "Fast").unwrap();
    is("Running", "Fast");
    assert_eq!(pump.go_into("Speed", "Slow"), Err(StatusCode::BAD_INVALID_STATE));
    assert_eq!(pump.go_into("Colour", "Red"), Err(StatusCode::BAD_INVALID_STATE));
    pump.go_to("Stopped").unwrap();
    is("Stopped", "");
    pump.go_to("Running").unwrap();
    is("Running", "Slow");
    // What clients see: the sub-machine, and the target of the type's transition.
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let kind = plant.node(NodeId::string(plant.index(), "PumpStateMachineType")).unwrap();
    let inner = plant.node(NodeId::string(plant.index(), "SpeedStateMachineType")).unwrap();
    let all = BrowseOptions {
        reference_type: NodeId::numeric(0, reference_type_ids::TO_STATE),
        ..BrowseOptions::default()
    };
    for (transition, leads_to) in [
        ("StoppedToFast", inner.child("Fast").unwrap()),
        ("RunningToFast", inner.child("Fast").unwrap()),
        ("StoppedToRunning", kind.child("Running").unwrap()),
    ] {
        let transition = kind.child(transition).unwrap().id().clone();
        let found = client.browse_with(transition, &all).await.unwrap();
        let targets: Vec<_> = found.iter().map(|found| found.node_id.node_id.clone()).collect();
        assert_eq!(targets, [leads_to.id().clone()]);
    }
}
