//! Typed events written by the generator: raised by a server, received by a client.

use core::time::Duration;
use taktwerk::alarms::AlarmError;
use taktwerk::client::Subscription;
use taktwerk::event::{BaseEvent, EmitError, EventType, ReadEventError, TypedEvents};
use taktwerk::schema::Range;
use taktwerk::{Client, LocalizedText, Node, NodeId, QualifiedName, RunningServer, Server, Struct, Variant};

/// The output of `EventTypes::generate` for the NodeSet; the tests of `taktwerk-nodeset` compare the two.
mod pump_events {
    include!("../typed_events/pump_events.rs");
}

use pump_events::{PumpAlarm, PumpStoppedEvent, PumpWornEvent};

const NODE_SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/typed_events/pumps.NodeSet2.xml");
const PUMPS: &str = "urn:example:pumps";
const PERIOD: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_secs(10);

/// A server on which the pumps have another namespace index than in their file, and a pump.
async fn plant() -> (RunningServer, Node, Client) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant");
    server.import_nodesets([NODE_SET]).unwrap();
    assert_eq!(server.namespace(PUMPS).index(), 3);
    let pump = plant.object("Area").event_notifier().add().unwrap().object("Pump 7").add().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    (server, pump, client)
}

async fn next<E: EventType>(
    subscription: &mut Subscription,
    events: &TypedEvents<E>,
) -> Result<E, ReadEventError> {
    let next = async {
        loop {
            if let Some(event) = events.read(subscription.next().await.unwrap()) {
                return event;
            }
        }
    };
    tokio::time::timeout(SOON, next).await.unwrap()
}

fn stopped(reason: &str) -> PumpStoppedEvent {
    PumpStoppedEvent {
        base: BaseEvent::new(700, "Pump 7 has stopped"),
        reason: reason.to_owned(),
        pressure: None,
        pressure_eu_range: None,
        speeds: vec![1.5, 0.0],
    }
}

#[tokio::test]
async fn events_raised_by_the_server_are_received_by_the_client() {
    let (_server, pump, client) = plant().await;
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let handle = subscription.handle();
    let events = handle.monitor_events::<PumpStoppedEvent>("i=2253", "severity >= 500").await.unwrap();
    pump.base_event().severity(900).message("of another type").emit().unwrap();
    let quiet = PumpStoppedEvent { base: BaseEvent::new(100, "not urgent"), ..stopped("") };
    assert!(pump.emit(quiet).unwrap().is_some());
    let pressure = PumpStoppedEvent {
        pressure: Some(2.5),
        pressure_eu_range: Some(Struct(Range { low: 0.0, high: 10.0 })),
        ..stopped("no power")
    };
    let id = pump.emit(pressure.clone()).unwrap().unwrap();
    let event = next(&mut subscription, &events).await.unwrap();
    assert_eq!(event.base.event_id, id);
    assert_eq!(event.base.source_name, "Pump 7");
    assert_eq!(&event.base.source_node, pump.id());
    assert_eq!(event.base.event_type, "ns=3;i=1001".parse().unwrap());
    assert_eq!(PumpStoppedEvent { base: pressure.base.clone(), ..event }, pressure);

    // An event of a subtype has the fields of its supertype; its own fields are available with its own struct.
    let worn = handle.monitor_events::<PumpWornEvent>("i=2253", "").await.unwrap();
    let base = BaseEvent { source_name: "Pump 8".into(), ..BaseEvent::new(600, "worn") };
    let own = PumpWornEvent {
        base,
        reason: "age".into(),
        pressure: None,
        pressure_eu_range: None,
        speeds: Vec::new(),
        r#type: 1500.0,
    };
    pump.emit(own.clone()).unwrap().unwrap();
    let mut found = (None, None);
    while found.0.is_none() || found.1.is_none() {
        let update = tokio::time::timeout(SOON, subscription.next()).await.unwrap().unwrap();
        match events.read(update.clone()) {
            Some(event) => found.0 = Some(event.unwrap()),
            None => found.1 = worn.read(update).map(Result::unwrap).or(found.1),
        }
    }
    let (event, worn) = (found.0.unwrap(), found.1.unwrap());
    assert_eq!((event.reason.as_str(), event.speeds.len()), ("age", 0));
    assert_eq!(worn.base.source_name, "Pump 8");
    assert_eq!(PumpWornEvent { base: own.base.clone(), ..worn }, own);
}

taktwerk::event_type! {
    /// With a field that the server's type does not have.
    struct Newer is ("urn:example:pumps", "i=1001") {
        reason: String = [("urn:example:pumps", "Reason")],
        operator: Option<String> = [("urn:example:pumps", "Operator")],
    }
    /// In a namespace that the server does not have.
    struct Foreign is ("urn:example:valves", "i=1001") {}
    /// Not declared as optional.
    struct Strict is ("urn:example:pumps", "i=1001") {
        pressure: f64 = [("urn:example:pumps", "Pressure")],
    }
    /// Declared with another type.
    struct Wrong is ("urn:example:pumps", "i=1001") {
        reason: f64 = [("urn:example:pumps", "Reason")],
    }
    /// Not an existing type.
    struct Unknown is ("urn:example:pumps", "i=4711") {}
}

#[tokio::test]
async fn mismatches_are_errors_that_name_the_cause() {
    let (_server, pump, client) = plant().await;
    let base = BaseEvent::new(1, "");
    let newer = |operator| Newer { base: base.clone(), reason: String::new(), operator };
    let error = pump.emit(newer(Some("Ada".to_owned()))).unwrap_err();
    assert!(error.to_string().contains("has no field 3:Operator"), "{error}");
    assert_eq!(pump.emit(newer(None)), Ok(None));
    let error = pump.emit(Foreign { base: base.clone() }).unwrap_err();
    assert_eq!(error, EmitError::Namespace { uri: "urn:example:valves".into() });
    let error = pump.emit(Unknown { base: base.clone() }).unwrap_err();
    assert!(error.to_string().contains("no event type ns=3;i=4711"), "{error}");

    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let handle = subscription.handle();
    let error = handle.monitor_events::<Foreign>("i=2253", "").await.unwrap_err();
    assert!(error.to_string().contains("urn:example:valves") && error.to_string().contains(PUMPS), "{error}");
    assert!(handle.monitor_events::<BaseEvent>("i=2253", "severity >").await.is_err());
    assert!(handle.monitor_events::<Unknown>("i=2253", "").await.is_err());
    let strict = handle.monitor_events::<Strict>("i=2253", "").await.unwrap();
    pump.emit(stopped("no power")).unwrap().unwrap();
    let error = next(&mut subscription, &strict).await.unwrap_err();
    assert_eq!(error, ReadEventError::Missing { field: "Pressure".into() });
    let wrong = handle.monitor_events::<Wrong>("i=2253", "").await.unwrap();
    pump.emit(stopped("no power")).unwrap().unwrap();
    let error = next(&mut subscription, &wrong).await.unwrap_err();
    assert!(matches!(&error, ReadEventError::WrongType { field, .. } if field == "Reason"), "{error}");
}

#[tokio::test]
async fn alarms_are_received_as_types_and_are_not_raised_as_events() {
    let (_server, pump, client) = plant().await;
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let handle = subscription.handle();
    let events =
        handle.monitor_events::<taktwerk::event::standard::AlarmCondition>("i=2253", "").await.unwrap();
    let leak = pump.alarm("Leak").severity(900).confirm().add().unwrap();
    leak.set_active(true, "The pump leaks");
    let event = next(&mut subscription, &events).await.unwrap();
    assert_eq!(&event.condition_id, leak.id());
    assert_eq!((event.base.severity, event.base.message.text.as_str()), (900, "The pump leaks"));
    assert!(event.active_state_id && !event.acked_state_id && event.retain && event.enabled_state_id);
    assert_eq!(event.confirmed_state_id, Some(true));
    assert_eq!(event.condition_name, "Leak");
    let error = pump.emit(event).unwrap_err();
    assert!(error.to_string().contains("add an alarm"), "{error}");
}

#[tokio::test]
async fn an_alarm_has_the_fields_of_its_own_type() {
    let (server, pump, client) = plant().await;
    let space = server.namespace("urn:plant").space().clone();
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let handle = subscription.handle();
    let events = handle.monitor_events::<PumpAlarm>("i=2253", "").await.unwrap();
    let kind: NodeId = "ns=3;i=1003".parse().unwrap();
    let running = pump.variable("Running", true).add().unwrap();
    let add = |field: &str, value: &str| {
        let alarm = running.alarm().off_normal(true).of_type(kind.clone()).branches();
        alarm.name("Stop").field(field, value).add()
    };
    // A field of the specification's type, and one that the type does not have.
    assert!(matches!(add("Severity", "x"), Err(AlarmError::Field { .. })));
    assert!(matches!(add("3:Nothing", "x"), Err(AlarmError::Field { .. })));
    let alarm = add("3:Cause", "unknown").unwrap();
    let shown = |name: &str| {
        let field = space.child(alarm.id(), &QualifiedName::new(3, name))?;
        space.variable(&field).ok()?.get().value
    };
    assert_eq!((shown("Cause"), shown("Operator")), (Some("unknown".into()), None));
    alarm.set_field("3:Cause", "no power").unwrap();
    assert!(alarm.set_field("3:Other", 1).is_err());
    // Values of another type or rank than the field's.
    for value in [
        Variant::from(1i32),
        Variant::from(vec![taktwerk::types::UaString::from("a"), taktwerk::types::UaString::from("b")]),
        Variant::from(true),
    ] {
        let error = alarm.set_field("3:Cause", value.clone()).unwrap_err();
        assert!(matches!(error, AlarmError::FieldType { .. }), "{value:?}: {error}");
        assert!(error.to_string().contains("Cause has the type String"), "{error}");
        let spec = running.alarm().off_normal(true).of_type(kind.clone()).name("Other");
        assert!(matches!(spec.field("3:Cause", value).add(), Err(AlarmError::FieldType { .. })));
    }
    alarm.set_field("3:Cause", Variant::Empty).unwrap();
    alarm.set_field("3:Cause", "no power").unwrap();
    assert_eq!(shown("Cause"), Some("unknown".into()));
    running.set(false);
    let event = next(&mut subscription, &events).await.unwrap();
    assert_eq!((event.cause.as_str(), event.operator), ("no power", None));
    assert!(event.active_state_id);
    assert_eq!(shown("Cause"), Some("no power".into()));
    // A refresh has the values of the last event, even after the field has changed.
    alarm.set_field("3:Cause", "blocked").unwrap();
    let id = handle.server_id().await.unwrap().unwrap();
    let refresh = "i=3875".parse::<NodeId>().unwrap();
    client.call::<_, ()>("i=2782".parse::<NodeId>().unwrap(), refresh, (id,)).await.unwrap();
    let again = loop {
        match next(&mut subscription, &events).await {
            Ok(again) if again.base.event_id == event.base.event_id => break again,
            // The previous change.
            other => drop(other),
        }
    };
    assert_eq!(again.cause, "no power");
    running.set(true);
    assert_eq!(next(&mut subscription, &events).await.unwrap().cause, "blocked");
}

#[tokio::test]
async fn an_instance_of_a_node_set_becomes_an_alarm() {
    let (server, _, client) = plant().await;
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let events = subscription.handle().monitor_events::<PumpAlarm>("i=2253", "").await.unwrap();
    let plant = server.namespace("urn:plant");
    let refused = plant.node("ns=3;i=5001".parse::<NodeId>().unwrap()).unwrap().bind_alarm().add();
    assert!(matches!(refused, Err(AlarmError::NoInstance(_))));
    let instance: NodeId = "ns=3;i=5002".parse().unwrap();
    let dry = plant.variable("Dry", true).add().unwrap();
    // Its type does not support limits.
    let refused = dry.bind_alarm(instance.clone()).high(1.0).add();
    assert!(matches!(refused, Err(AlarmError::Type { .. })));
    dry.bind_alarm(instance.clone()).off_normal(true).field("3:Cause", "a seal").add().unwrap();
    let again = dry.bind_alarm(instance.clone()).off_normal(true).add();
    assert!(matches!(again, Err(AlarmError::Taken(_))));
    dry.set(false);
    let event = next(&mut subscription, &events).await.unwrap();
    assert_eq!(event.condition_id, instance);
    assert_eq!((event.cause.as_str(), event.condition_name.as_str()), ("a seal", "Leak"));
    let active: bool = client.read_value("ns=3;i=5005").await.unwrap();
    assert!(active);
    // The type's Method, as called by clients (Part 9 §5.7.3).
    let method: NodeId = "i=9111".parse().unwrap();
    let inputs = (event.base.event_id, LocalizedText::from("seen"));
    client.call::<_, ()>(instance.clone(), method, inputs).await.unwrap();
    assert!(next(&mut subscription, &events).await.unwrap().acked_state_id);
    // The instance's Method has no InputArguments, so those of the type apply.
    dry.set(true);
    next(&mut subscription, &events).await.unwrap();
    dry.set(false);
    let event = next(&mut subscription, &events).await.unwrap();
    assert!(!event.acked_state_id);
    let own: NodeId = "ns=3;i=5006".parse().unwrap();
    let wrong = client.call::<_, ()>(instance.clone(), own.clone(), (1, 2)).await.unwrap_err();
    assert_eq!(wrong.status(), taktwerk::StatusCode::BAD_INVALID_ARGUMENT);
    let inputs = (event.base.event_id, LocalizedText::from("seen again"));
    client.call::<_, ()>(instance, own, inputs).await.unwrap();
    assert!(next(&mut subscription, &events).await.unwrap().acked_state_id);
}

#[tokio::test]
async fn lost_events_are_reported() {
    let (_server, pump, client) = plant().await;
    let mut subscription = client.subscribe(Duration::from_millis(300)).await.unwrap();
    let handle = subscription.handle();
    let events = handle.monitor_events_queued::<PumpStoppedEvent>("i=2253", "", 5).await.unwrap();
    for number in 0..20 {
        pump.emit(stopped(&number.to_string())).unwrap().unwrap();
    }
    let mut lost = 0;
    loop {
        match next(&mut subscription, &events).await {
            Ok(event) if event.reason == "19" => break,
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, ReadEventError::Lost);
                lost += 1;
            }
        }
    }
    assert!(lost > 0);
}
