//! A gateway in front of a server with its own types: clients of the gateway can use them like those of that server.

use crate::stand::{MS, Stand};
use std::path::Path;
use std::time::{Duration, Instant};
use taktwerk::client::{Attribute, BrowseOptions};
use taktwerk::event::FieldName;
use taktwerk::schema::dynamic::{DynamicStructure, DynamicValue};
use taktwerk::schema::ids::reference_type_ids;
use taktwerk::schema::{Argument, BrowseDirection, EnumDefinition};
use taktwerk::{Client, LocalizedText, RunningServer, Server};
use taktwerk_gateway::GatewayConfig;
use taktwerk_types::{ArrayValues, ExtensionObject, NodeId, QualifiedName, StatusCode, Variant};
use tokio::time::sleep;

const URI: &str = "urn:example:machines";

/// A server whose model has another index than at the gateway.
fn machines() -> RunningServer {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    for uri in ["urn:example:a", "urn:example:b"] {
        let _ = server.namespace(uri);
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machines/machines.NodeSet2.xml");
    server.import_nodesets([file]).unwrap();
    server.spawn().unwrap()
}

fn source(other: &RunningServer) -> String {
    format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\nmirror = \"nsu={URI};i=100\"\nretry = \"50 ms\"\n\
         publishing_interval = \"50 ms\"\n",
        other.url()
    )
}

/// The NodeId of a model node on a server.
async fn model(client: &Client, number: u32) -> NodeId {
    let namespaces: Vec<String> = client.read_value("i=2255").await.unwrap();
    let index = namespaces.iter().position(|uri| uri == URI).unwrap();
    NodeId::numeric(u16::try_from(index).unwrap(), number)
}

fn job(order: u32, data_type: &dyn Fn(u32) -> NodeId) -> DynamicStructure {
    let place = |x: f64| DynamicStructure::new(data_type(1), "Position").with("X", x).with("Y", -x);
    DynamicStructure::new(data_type(3), "Job")
        .with("Order", format!("Order {order}").as_str())
        .with("Places", DynamicValue::structures(vec![place(1.5), place(2.5)]))
        .with("Mode", DynamicValue::Enumeration { value: 1, name: Some("Auto".into()) })
}

fn structure(value: Option<Variant>) -> ExtensionObject {
    match value {
        Some(Variant::ExtensionObject(object)) => *object,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn structures_and_enumerations_of_a_mirrored_server_can_be_decoded_here() {
    let other = machines();
    let there = Client::connect(&other.url()).await.unwrap();
    let origin = model(&there, 0).await.namespace_index;
    let node = |number| NodeId::numeric(origin, number);
    let object = there.encode(&job(1, &node)).await.unwrap();
    there.write(node(103), Variant::from(object)).await.unwrap();
    let stand = Stand::new(&source(&other)).await;
    let value = stand.until("up/Press/Job", |value| value.value.is_some()).await;
    let index = model(&stand.client, 0).await.namespace_index;
    assert_ne!(index, origin, "the test is about different indexes");
    let own = |number| NodeId::numeric(index, number);
    let object = structure(value.value);
    assert_eq!(object.type_id, own(4));
    assert_eq!(stand.client.decode(&object).await.unwrap(), job(1, &own));
    // A value written here arrives there.
    let object = stand.client.encode(&job(2, &own)).await.unwrap();
    stand.write("up/Press/Job", object).await.unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let arrived = loop {
        let object = structure(there.read(node(103)).await.unwrap().value);
        let found = there.decode(&object).await.unwrap();
        if found == job(2, &node) {
            break object;
        }
        assert!(Instant::now() < end, "{found:?}");
        sleep(20 * MS).await;
    };
    assert_eq!(arrived.type_id, node(4));
    // A structure of another type is rejected.
    let wrong = stand
        .client
        .encode(&DynamicStructure::new(own(1), "Position").with("X", 1.0).with("Y", 1.0))
        .await
        .unwrap();
    assert!(stand.write("up/Press/Job", wrong).await.is_err());
    // The enumeration.
    let mode = "nsu=urn:taktwerk:gateway;s=up/Press/Mode";
    stand.value("up/Press/Mode", 1i32).await;
    let data_type = stand.client.read_attribute(mode, Attribute::DataType).await.unwrap();
    assert_eq!(data_type.value, Some(Variant::from(own(5))));
    let definition = stand.client.read_attribute(own(5), Attribute::DataTypeDefinition).await.unwrap();
    let names: Vec<_> = structure(definition.value).decode::<EnumDefinition>().unwrap().fields;
    assert_eq!(names.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["Off", "Auto"]);
    let strings = stand.client.read(own(6)).await.unwrap();
    let expected = vec![LocalizedText::from("Off"), LocalizedText::from("Auto")];
    assert_eq!(strings.value, Some(Variant::from(expected)));
    // A NodeId in a structure would refer to another node here.
    let link = stand.read("up/Press/Link").await;
    assert_eq!(link.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_and_variables_are_instances_of_the_types_of_the_mirrored_server() {
    let other = machines();
    let stand = Stand::new(&source(&other)).await;
    stand.value("up/Press/Mode", 1i32).await;
    let index = model(&stand.client, 0).await.namespace_index;
    let own = |number| NodeId::numeric(index, number);
    let follow = async |node: NodeId, kind: u32, direction: BrowseDirection| {
        let options =
            BrowseOptions { direction, reference_type: NodeId::numeric(0, kind), ..BrowseOptions::default() };
        let found = stand.client.browse_with(node, &options).await.unwrap();
        found.into_iter().filter_map(|found| found.node_id.local().cloned()).collect::<Vec<_>>()
    };
    let at = |name: &str| NodeId::string(2, name);
    let (kind, subtype) = (reference_type_ids::HAS_TYPE_DEFINITION, reference_type_ids::HAS_SUBTYPE);
    assert_eq!(follow(at("up/Press"), kind, BrowseDirection::FORWARD).await, [own(22)]);
    assert_eq!(follow(at("up/Press/Mode"), kind, BrowseDirection::FORWARD).await, [own(30)]);
    // The supertypes were added too, up to namespace 0, with their members.
    assert_eq!(follow(own(22), subtype, BrowseDirection::INVERSE).await, [own(20)]);
    assert_eq!(follow(own(20), subtype, BrowseDirection::INVERSE).await, [NodeId::numeric(0, 58)]);
    let members = reference_type_ids::HAS_COMPONENT;
    assert_eq!(follow(own(20), members, BrowseDirection::FORWARD).await, [own(21)]);
    // Members have the BrowseNames of the type, so that clients find them.
    assert_eq!(follow(at("up/Press"), members, BrowseDirection::FORWARD).await.len(), 2);
    let name = stand.client.read_attribute(at("up/Press/Mode"), Attribute::BrowseName).await.unwrap();
    assert_eq!(name.value, Some(Variant::from(QualifiedName::new(index, "Mode"))));
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_the_type_of_the_mirrored_server() {
    use taktwerk::client::{Item, Update};
    use taktwerk_client::EventQuery;
    let other = machines();
    let there = Client::connect(&other.url()).await.unwrap();
    let stand = Stand::new(&source(&other)).await;
    stand.value("up/Press/Mode", 1i32).await;
    let expected = model(&stand.client, 40).await;
    let press = model(&there, 101).await;
    let kind = model(&there, 40).await;
    let press = other.namespace("urn:example:a").node(press).unwrap();
    let mut subscription = stand.client.subscribe(20 * MS).await.unwrap();
    let here = expected.namespace_index;
    let job_there =
        there.encode(&job(3, &|number| NodeId::numeric(kind.namespace_index, number))).await.unwrap();
    let query = EventQuery::new()
        .select("EventType")
        .select("Message")
        .select_of(&expected, vec![QualifiedName::new(here, "Order")])
        .select_of(&expected, vec![QualifiedName::new(here, "Job")]);
    let item = Item::events(NodeId::string(2, "up/Press"), query);
    subscription.monitor_item(item).await.unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let fields = loop {
        assert!(Instant::now() < end, "{:?}", stand.source("up"));
        let name = |name: &str| FieldName::new(&[QualifiedName::new(kind.namespace_index, name)]);
        let event = press.event(kind.clone()).message("Job done").field(name("Order"), "A-7");
        event.field(name("Job"), job_there.clone()).emit();
        if let Ok(Some(Update::Event(_, fields))) = tokio::time::timeout(200 * MS, subscription.next()).await
        {
            break fields;
        }
    };
    let [kind, message, order, done] = fields.try_into().unwrap();
    assert_eq!((kind, message), (Variant::from(expected), LocalizedText::from("Job done").into()));
    // The additional fields; structures have their local encoding ids.
    assert_eq!(order, Variant::from("A-7"));
    let done = stand.client.decode(&structure(Some(done))).await.unwrap();
    assert_eq!(done, job(3, &|number| NodeId::numeric(here, number)));
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_take_and_give_structures_of_the_mirrored_server() {
    let other = machines();
    let there = Client::connect(&other.url()).await.unwrap();
    let origin = model(&there, 0).await.namespace_index;
    let press = other.namespace("urn:example:a").node(NodeId::numeric(origin, 101)).unwrap();
    let argument = |name: &str, number| Argument {
        name: name.into(),
        data_type: NodeId::numeric(origin, number),
        value_rank: -1,
        ..Argument::default()
    };
    // One method returns its argument; the other has a structure with a NodeId as argument.
    let (takes, gives) = (argument("Job", 3), argument("Same", 3));
    let run = press.method("Run");
    run.dynamic_handler(vec![takes], vec![gives], |_, inputs| async move { Ok(inputs) }).unwrap();
    let link = press.method("Follow");
    link.dynamic_handler(vec![argument("Link", 7)], vec![], |_, _| async move { Ok(Vec::new()) }).unwrap();
    let stand = Stand::new(&source(&other)).await;
    stand.value("up/Press/Mode", 1i32).await;
    stand.until_there("up/Press/Run").await;
    let index = model(&stand.client, 0).await.namespace_index;
    let own = |number| NodeId::numeric(index, number);
    let object = stand.client.encode(&job(4, &own)).await.unwrap();
    let at = |name: &str| NodeId::string(2, name);
    let call = stand.client.call_variants(at("up/Press"), at("up/Press/Run"), vec![object.into()]);
    let [same] = call.await.unwrap().try_into().unwrap();
    let same = structure(Some(same));
    assert_eq!(same.type_id, own(4));
    assert_eq!(stand.client.decode(&same).await.unwrap(), job(4, &own));
    // Clients see the type of the argument.
    let inputs = stand.client.find(at("up/Press/Run"), "InputArguments").await.unwrap();
    let inputs = stand.client.read(inputs).await.unwrap().value.unwrap();
    let ArrayValues::ExtensionObject(inputs) = &inputs.as_array().unwrap().values else {
        panic!("{inputs:?}")
    };
    assert_eq!(inputs[0].decode::<Argument>().unwrap().data_type, own(3));
    let missing = stand.client.read_attribute(at("up/Press/Follow"), Attribute::BrowseName).await.unwrap();
    assert_eq!(missing.status(), StatusCode::BAD_NODE_ID_UNKNOWN);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_between_mirrored_nodes_are_here_too() {
    let other = machines();
    let there = Client::connect(&other.url()).await.unwrap();
    let origin = model(&there, 0).await.namespace_index;
    let node = |number| other.namespace("urn:example:a").node(NodeId::numeric(origin, number)).unwrap();
    let robot = node(100).object("Robot").add().unwrap();
    robot.variable("Speed", 1.5).add().unwrap();
    robot.refers_to(NodeId::numeric(origin, 50), &node(101)).unwrap();
    robot.refers_to(NodeId::numeric(0, reference_type_ids::ORGANIZES), &node(102)).unwrap();
    let stand = Stand::new(&source(&other)).await;
    stand.value("up/Robot/Speed", 1.5).await;
    let index = model(&stand.client, 0).await.namespace_index;
    let at = |name: &str| NodeId::string(2, name);
    let feeds = NodeId::numeric(index, 50);
    for (from, kind, direction, expected) in [
        ("up/Robot", feeds.clone(), BrowseDirection::FORWARD, "up/Press"),
        ("up/Press", feeds, BrowseDirection::INVERSE, "up/Robot"),
        (
            "up/Robot",
            NodeId::numeric(0, reference_type_ids::ORGANIZES),
            BrowseDirection::FORWARD,
            "up/Press/Mode",
        ),
    ] {
        let options = BrowseOptions { direction, reference_type: kind, ..BrowseOptions::default() };
        let found = stand.client.browse_with(at(from), &options).await.unwrap();
        assert!(found.iter().any(|found| found.node_id.local() == Some(&at(expected))), "{from}: {found:?}");
    }
    assert_eq!(stand.source("up").statistics.errors, 0);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_share_the_types_that_several_have() {
    // Enough sources that several add the same types at the same time.
    let names = ["up", "two", "three", "four", "five", "six"];
    let all = names.map(|_| machines());
    let texts =
        names.iter().zip(&all).map(|(name, one)| source(one).replace("\"up\"", &format!("\"{name}\"")));
    let stand = Stand::new(&texts.collect::<String>()).await;
    for name in names {
        stand.value(&format!("{name}/Press/Mode"), 1i32).await;
        let errors = stand.source(name).statistics;
        assert_eq!(errors.errors, 0, "{errors:?}");
        let kind = stand
            .client
            .browse_with(
                NodeId::string(2, format!("{name}/Press")),
                &BrowseOptions {
                    reference_type: NodeId::numeric(0, reference_type_ids::HAS_TYPE_DEFINITION),
                    ..BrowseOptions::default()
                },
            )
            .await
            .unwrap();
        assert_eq!(kind[0].browse_name.name.as_str(), "PressType");
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_cannot_add_types_to_the_namespace_of_tags() {
    const OWN: &str = "urn:taktwerk:gateway";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.NodeSet2.xml");
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machines/machines.NodeSet2.xml"));
    std::fs::write(&file, text.unwrap().replace(URI, OWN)).unwrap();
    let other = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    other.import_nodesets([&file]).unwrap();
    let other = other.spawn().unwrap();
    let stand = Stand::new(&source(&other).replace(URI, OWN)).await;
    stand.value("up/Press/Mode", 1i32).await;
    for number in [1, 4, 5, 20, 22] {
        let name =
            stand.client.read_attribute(NodeId::numeric(2, number), Attribute::BrowseName).await.unwrap();
        assert_eq!(name.status(), StatusCode::BAD_NODE_ID_UNKNOWN, "{number}");
    }
    stand.end().await;
}

/// Applies another configuration.
fn apply(stand: &mut Stand, text: &str) {
    let config = GatewayConfig::parse(Path::new("g.toml"), text).unwrap().unwrap();
    assert_eq!(tokio::task::block_in_place(|| stand.gateway.apply(config)).unwrap().failed, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn types_are_removed_with_their_last_source_and_added_again() {
    let (one, two) = (machines(), machines());
    let signals = "[[source]]\nname = \"signals\"\ntype = \"simulation\"\ninterval = \"1 s\"\n";
    let second = source(&two).replace("\"up\"", "\"two\"");
    let mut stand = Stand::new(&format!("{signals}{}{second}", source(&one))).await;
    stand.value("up/Press/Mode", 1i32).await;
    stand.value("two/Press/Mode", 1i32).await;
    let index = model(&stand.client, 0).await.namespace_index;
    let own = |number| NodeId::numeric(index, number);
    let name = async |client: Client, number| {
        client.read_attribute(own(number), Attribute::BrowseName).await.unwrap().status()
    };
    let all = [1, 3, 4, 5, 20, 21, 22, 30];
    apply(&mut stand, &format!("{signals}{second}"));
    for number in all {
        assert_eq!(name(stand.client.clone(), number).await, StatusCode::GOOD, "{number}");
    }
    apply(&mut stand, signals);
    for number in all {
        let status = name(stand.client.clone(), number).await;
        assert_eq!(status, StatusCode::BAD_NODE_ID_UNKNOWN, "{number}");
    }
    // As for a new source.
    apply(&mut stand, &format!("{signals}{}", source(&one)));
    stand.value("up/Press/Mode", 1i32).await;
    let there = Client::connect(&one.url()).await.unwrap();
    let origin = model(&there, 0).await.namespace_index;
    let object = there.encode(&job(1, &|number| NodeId::numeric(origin, number))).await.unwrap();
    there.write(NodeId::numeric(origin, 103), Variant::from(object)).await.unwrap();
    let value = stand.until("up/Press/Job", |value| value.value.is_some()).await;
    assert_eq!(stand.client.decode(&structure(value.value)).await.unwrap(), job(1, &own));
    stand.end().await;
}
