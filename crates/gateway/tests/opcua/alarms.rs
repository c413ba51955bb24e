//! A gateway in front of a server with its own alarm types and fields. Clients of the gateway see the alarms as clients of that
//! server do: in events, after ConditionRefresh, and in the address space.

use crate::stand::{MS, Stand};
use std::time::{Duration, Instant};
use taktwerk::alarms::Alarm;
use taktwerk::client::{Attribute, BrowseOptions, Item, Subscription, Update};
use taktwerk::event::FieldName;
use taktwerk::schema::BrowseDirection;
use taktwerk::schema::dynamic::{DynamicStructure, DynamicValue};
use taktwerk::schema::ids::{object_type_ids, reference_type_ids};
use taktwerk::{Client, LocalizedText, Node, RunningServer, Server};
use taktwerk_client::EventQuery;
use taktwerk_client::condition::calls;
use taktwerk_types::{ExtensionObject, NodeId, QualifiedName, StatusCode, Variant};
use tokio::time::{sleep, timeout};

const URI: &str = "urn:example:machines";
/// JamAlarmType, a subtype of MachineAlarmType.
const JAM: u32 = 62;

/// A server with a press. Its model has another namespace index than at the gateway.
struct Machines {
    server: RunningServer,
    client: Client,
    index: u16,
}

impl Machines {
    async fn new() -> Self {
        let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
        for uri in ["urn:example:a", "urn:example:b"] {
            let _ = server.namespace(uri);
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machines/machines.NodeSet2.xml");
        server.import_nodesets([file]).unwrap();
        let server = server.spawn().unwrap();
        let client = Client::connect(&server.url()).await.unwrap();
        let index = index_at(&client).await.unwrap();
        Self { server, client, index }
    }

    fn source(&self) -> String {
        format!(
            "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\nmirror = \"nsu={URI};i=100\"\nretry = \"50 ms\"\n\
             publishing_interval = \"50 ms\"\nlost_after = \"300 ms\"\n",
            self.server.url()
        )
    }

    fn press(&self) -> Node {
        self.server.namespace("urn:example:a").node(NodeId::numeric(self.index, 101)).unwrap()
    }

    fn field(&self, path: &[&str]) -> FieldName {
        field(self.index, path)
    }

    async fn job(&self, order: &str) -> ExtensionObject {
        self.client.encode(&job(order, self.index)).await.unwrap()
    }

    async fn set(&self, alarm: &Alarm, cause: &str, force: f64) {
        alarm.set_field(self.field(&["Cause"]), cause).unwrap();
        alarm.set_field(self.field(&["Job"]), self.job(cause).await).unwrap();
        alarm.set_field(self.field(&["Force"]), force).unwrap();
        alarm.set_field(self.field(&["Force", "Highest"]), force * 2.0).unwrap();
        alarm.set_field(self.field(&["Valve"]), NodeId::numeric(self.index, 101)).unwrap();
    }
}

/// The index of the model's namespace.
async fn index_at(client: &Client) -> Option<u16> {
    let namespaces: Vec<String> = client.read_value("i=2255").await.unwrap();
    u16::try_from(namespaces.iter().position(|uri| uri == URI)?).ok()
}

fn field(index: u16, path: &[&str]) -> FieldName {
    FieldName::new(&path.iter().map(|name| QualifiedName::new(index, *name)).collect::<Vec<_>>())
}

fn job(order: &str, index: u16) -> DynamicStructure {
    let kind = |number| NodeId::numeric(index, number);
    let place = DynamicStructure::new(kind(1), "Position").with("X", 1.5).with("Y", 2.5);
    DynamicStructure::new(kind(3), "Job")
        .with("Order", order)
        .with("Places", DynamicValue::structures(vec![place]))
        .with("Mode", DynamicValue::Enumeration { value: 1, name: Some("Auto".into()) })
}

/// An alarm as seen by a client of the gateway.
#[derive(Debug, PartialEq)]
struct Seen {
    kind: NodeId,
    name: Variant,
    message: Variant,
    cause: Variant,
    order: DynamicStructure,
    force: [Variant; 2],
    valve: Variant,
}

fn expected(index: u16, name: &str, message: &str, (cause, force): (&str, f64)) -> Seen {
    Seen {
        kind: NodeId::numeric(index, JAM),
        name: name.into(),
        message: LocalizedText::from(message).into(),
        cause: cause.into(),
        order: job(cause, index),
        force: [force.into(), (force * 2.0).into()],
        // This value has a meaning only at the other server.
        valve: Variant::Empty,
    }
}

/// A client of the gateway that selects the additional fields of alarms.
struct Operator {
    client: Client,
    subscription: Subscription,
}

impl Operator {
    async fn new(stand: &Stand, index: u16) -> Self {
        let client = Client::connect(&stand.server.url()).await.unwrap();
        let kind = NodeId::numeric(index, JAM);
        let query = ["EventType", "ConditionName", "Message"]
            .iter()
            .fold(EventQuery::new(), |query, name| query.select(name));
        let query = [&["Cause"][..], &["Job"], &["Force"], &["Force", "Highest"], &["Valve"]]
            .iter()
            .fold(query, |query, path| query.select_of(&kind, field(index, path).path().to_vec()));
        let query = query.of_type(NodeId::numeric(0, object_type_ids::CONDITION_TYPE), "").unwrap();
        let subscription = client.subscribe(20 * MS).await.unwrap();
        subscription.monitor_item(Item::events(NodeId::string(2, "up/Press"), query)).await.unwrap();
        Self { client, subscription }
    }

    async fn refresh(&self) {
        let id = self.subscription.handle().server_id().await.unwrap().unwrap();
        self.client.conditions().call("refresh", calls::condition_refresh(id)).await.unwrap();
    }

    /// The next alarm that arrives with its additional fields.
    async fn next(&mut self, stand: &Stand) -> Seen {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(Instant::now() < end, "{:?}", stand.source("up"));
            let Ok(Some(Update::Event(_, fields))) = timeout(200 * MS, self.subscription.next()).await else {
                continue;
            };
            let [kind, name, message, cause, job, force, highest, valve] = fields.try_into().unwrap();
            let (Variant::NodeId(kind), Variant::ExtensionObject(job)) = (kind, job) else { continue };
            let order = self.client.decode(&job).await.unwrap();
            return Seen { kind: *kind, name, message, cause, order, force: [force, highest], valve };
        }
    }
}

/// Waits until the gateway has the alarm type.
async fn until_known(stand: &Stand) -> u16 {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(index) = index_at(&stand.client).await
            && stand.server.space().contains(&NodeId::numeric(index, JAM))
        {
            return index;
        }
        assert!(Instant::now() < end, "{:?}", stand.source("up"));
        sleep(20 * MS).await;
    }
}

async fn until(stand: &Stand, what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(
            Instant::now() < end,
            "{what}: {:?}\n{:?}",
            stand.source("up"),
            stand.server.conditions().all()
        );
        sleep(20 * MS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_alarms_come_in_events_after_a_refresh_and_in_the_address_space() {
    let machines = Machines::new().await;
    let kind = NodeId::numeric(machines.index, JAM);
    let alarm = machines.press().alarm("Jam").severity(600).of_type(kind);
    let alarm = alarm.field(machines.field(&["Cause"]), "").add().unwrap();
    machines.set(&alarm, "sheet", 12.5).await;
    alarm.set_active(true, "The press is jammed");
    let stand = Stand::new(&machines.source()).await;
    let index = until_known(&stand).await;
    assert_ne!(index, machines.index, "the test is about different indexes");
    until(&stand, "it is active", || stand.server.conditions().all().iter().any(|view| view.state.active))
        .await;
    // A later client refreshes the current state.
    let mut operator = Operator::new(&stand, index).await;
    operator.refresh().await;
    let seen = operator.next(&stand).await;
    assert_eq!(seen, expected(index, "Jam", "The press is jammed", ("sheet", 12.5)));
    // A change of a field alone is reported: at the other server the next event contains it.
    machines.set(&alarm, "tool", 20.0).await;
    alarm.set_active_with(true, 700, "The tool is broken");
    let seen = operator.next(&stand).await;
    assert_eq!(seen, expected(index, "Jam", "The tool is broken", ("tool", 20.0)));
    operator.refresh().await;
    assert_eq!(operator.next(&stand).await, expected(index, "Jam", "The tool is broken", ("tool", 20.0)));
    // The instance has the same type, with the fields.
    let at = |name: &str| NodeId::string(2, name);
    let options = BrowseOptions {
        direction: BrowseDirection::FORWARD,
        reference_type: NodeId::numeric(0, reference_type_ids::HAS_TYPE_DEFINITION),
        ..BrowseOptions::default()
    };
    let found = stand.client.browse_with(at("up/Press/Jam"), &options).await.unwrap();
    assert_eq!(found[0].node_id.local(), Some(&NodeId::numeric(index, JAM)));
    stand.value("up/Press/Jam/Cause", "tool").await;
    stand.value("up/Press/Jam/Force", 20.0).await;
    let name = stand.client.read_attribute(at("up/Press/Jam/Cause"), Attribute::BrowseName).await.unwrap();
    assert_eq!(name.value, Some(Variant::from(QualifiedName::new(index, "Cause"))));
    // It is acknowledged here by the ConditionId of the instance.
    let listed = operator.client.conditions().list().await.unwrap().pop().unwrap();
    assert_eq!(
        (listed.condition_id.clone(), listed.event_type.clone()),
        (at("up/Press/Jam"), NodeId::numeric(index, JAM))
    );
    operator.client.conditions().acknowledge(&listed, "seen").await.unwrap();
    until(&stand, "it is acknowledged there", || alarm.view().unwrap().state.acked).await;
    stand.end().await;
}

/// The address space of the other server does not show that there are alarms of this type.
#[tokio::test(flavor = "multi_thread")]
async fn types_of_alarms_without_nodes_are_found_by_their_events() {
    let machines = Machines::new().await;
    let stand = Stand::new(&machines.source()).await;
    stand.value("up/Press/Mode", 1i32).await;
    until(&stand, "it has asked for the conditions", || stand.source("up").statistics.answers > 0).await;
    let known = |stand: &Stand, index: u16| stand.server.space().contains(&NodeId::numeric(index, JAM));
    let index = index_at(&stand.client).await.unwrap();
    assert!(!known(&stand, index), "the test is about a type that is not known yet");
    let kind = NodeId::numeric(machines.index, JAM);
    let alarm = machines.press().alarm("Jam").severity(600).of_type(kind).without_nodes().add().unwrap();
    machines.set(&alarm, "sheet", 12.5).await;
    alarm.set_active(true, "The press is jammed");
    let index = until_known(&stand).await;
    let has_fields = || {
        let all = stand.server.conditions().all();
        all.iter().any(|view| view.state.active && view.state.own.is_some())
    };
    until(&stand, "it is active with its fields", has_fields).await;
    let mut operator = Operator::new(&stand, index).await;
    operator.refresh().await;
    assert_eq!(operator.next(&stand).await, expected(index, "Jam", "The press is jammed", ("sheet", 12.5)));
    // Another alarm of the type, with all fields at once.
    let kind = NodeId::numeric(machines.index, JAM);
    let second = machines.press().alarm("Guard").of_type(kind).without_nodes().add().unwrap();
    machines.set(&second, "door", 1.0).await;
    second.set_active(true, "The guard is open");
    assert_eq!(operator.next(&stand).await, expected(index, "Guard", "The guard is open", ("door", 1.0)));
    // A null field there is null here.
    second.set_field(machines.field(&["Cause"]), Variant::Empty).unwrap();
    second.set_active_with(true, 900, "Still open");
    let seen = operator.next(&stand).await;
    assert_eq!((seen.message, seen.cause), (LocalizedText::from("Still open").into(), Variant::Empty));
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_alarms_keep_their_types_and_limits() {
    let machines = Machines::new().await;
    let level = machines.press().variable("Level", 50.0).add().unwrap();
    level.alarm().high(80.0).high_high(95.0).add().unwrap();
    level.set(90.0);
    let stand = Stand::new(&machines.source()).await;
    let operators = stand.client.conditions();
    let end = Instant::now() + Duration::from_secs(20);
    let alarm = loop {
        if let Some(alarm) = operators.list().await.unwrap().pop() {
            break alarm;
        }
        assert!(Instant::now() < end, "{:?}", stand.source("up"));
    };
    let kind = NodeId::numeric(0, object_type_ids::EXCLUSIVE_LEVEL_ALARM_TYPE);
    assert_eq!((alarm.event_type, alarm.limit.as_str()), (kind.clone(), "High"));
    let mut subscription = stand.client.subscribe(20 * MS).await.unwrap();
    let query =
        EventQuery::new().select("HighLimit").select("LimitState/CurrentState").of_type(kind, "").unwrap();
    subscription.monitor_item(Item::events(NodeId::numeric(0, 2253), query)).await.unwrap();
    level.set(99.0);
    let fields = loop {
        if let Update::Event(_, fields) =
            timeout(Duration::from_secs(20), subscription.next()).await.unwrap().unwrap()
        {
            break fields;
        }
    };
    assert_eq!(fields, [Variant::from(80.0), LocalizedText::new("en", "HighHigh").into()]);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alarms_of_a_lost_server_are_marked_and_removed_with_their_source() {
    let machines = Machines::new().await;
    let alarm = machines.press().alarm("Jam").severity(600).add().unwrap();
    alarm.set_active(true, "The press is jammed");
    let mut stand = Stand::new(&machines.source()).await;
    let state = |stand: &Stand| stand.server.conditions().all().pop().map(|view| view.state);
    let quality = |stand: &Stand| state(stand).map(|state| state.quality);
    until(&stand, "it is active", || state(&stand).is_some_and(|state| state.active)).await;
    assert_eq!(quality(&stand), Some(StatusCode::GOOD));
    // The event has the other server's time.
    assert_eq!(state(&stand).unwrap().time, alarm.view().unwrap().state.time);
    let address = machines.server.addresses()[0].to_string();
    machines.client.disconnect().await;
    machines.server.stop(Duration::ZERO);
    until(&stand, "it says so", || quality(&stand) == Some(StatusCode::BAD_NO_COMMUNICATION)).await;
    assert!(state(&stand).unwrap().active, "nobody knows that it is inactive");
    // The source is removed from the configuration.
    let config = taktwerk_gateway::GatewayConfig::parse(std::path::Path::new("g.toml"), "[gateway]\n");
    let config = config.unwrap().unwrap();
    let applied = tokio::task::block_in_place(|| stand.gateway.apply(config)).unwrap();
    assert_eq!(applied.removed, ["up"], "{address}");
    assert!(state(&stand).is_none());
    stand.end().await;
}
