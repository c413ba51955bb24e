//! A gateway in front of another server: mirrored, merged, written through, and back after a restart.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod stand;

use stand::{MS, Stand};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use taktwerk::{Client, RunningServer, Server, Unit, Variable};
use taktwerk_gateway::offer::Question;
use taktwerk_gateway::{GatewayConfig, discover};
use taktwerk_types::{BuiltInType, NodeId, StatusCode, UaString, Variant};
use tokio::time::sleep;

struct Other {
    server: RunningServer,
    temperature: Variable<f64>,
}

/// A plant to be mirrored. It is there before the gateway looks.
fn other(address: &str) -> Other {
    let server = Server::builder().bind(address).anonymous().build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let boiler = plant.object("Boiler").add().unwrap();
    let temperature =
        boiler.variable("Temperature", 21.5).units(Unit::CELSIUS).range(0.0..=150.0).add().unwrap();
    boiler.variable("Setpoint", 60.0).writable().add().unwrap();
    boiler.variable("Names", vec!["a".to_owned(), "b".to_owned()]).add().unwrap();
    boiler.variable("Gone", 1i32).add().unwrap().set_status(StatusCode::BAD_SENSOR_FAILURE);
    // Two names of two namespaces, and a loop.
    server
        .namespace("urn:example:second")
        .node(boiler.id().clone())
        .unwrap()
        .variable("Temperature", 1u8)
        .add()
        .unwrap();
    boiler.refers_to(NodeId::numeric(0, 35), &plant).unwrap();
    Other { server: server.spawn().unwrap(), temperature }
}

fn source(other: &RunningServer, more: &str) -> String {
    format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{}\"\npublishing_interval = \"50 ms\"\nretry = \"50 ms\"\n\
         retry_max = \"200 ms\"\nlost_after = \"1 s\"\ndeadline = \"2 s\"\n{more}\n",
        other.url()
    )
}

/// Waits until the mirror is there.
async fn mirrored(stand: &Stand) {
    for _ in 0..1000 {
        if stand.source("up").statistics.values > 3 {
            return;
        }
        sleep(10 * MS).await;
    }
    panic!("{:?}", stand.source("up"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subtree_is_mirrored_with_types_and_written_through() {
    let other = other("127.0.0.1:0");
    let stand = Stand::new(&source(&other.server, "mirror = \"nsu=urn:example:plant;s=Plant\"")).await;
    mirrored(&stand).await;
    stand.value("up/Boiler/Temperature", 21.5).await;
    stand.value("up/Boiler/Names", vec![UaString::from("a"), UaString::from("b")]).await;
    stand.until("up/Boiler/Gone", |value| value.status() == StatusCode::BAD_SENSOR_FAILURE).await;
    let id = |name: &str| format!("nsu=urn:taktwerk:gateway;s=up/Boiler/{name}");
    let data_type =
        stand.client.read_attribute(&*id("Temperature"), taktwerk::client::Attribute::DataType).await;
    let double = NodeId::numeric(0, u32::from(BuiltInType::Double.number()));
    assert_eq!(data_type.unwrap().value, Some(Variant::from(double)));
    let range = stand.client.find(&*id("Temperature"), "EURange").await.unwrap();
    assert!(stand.client.read(range).await.unwrap().value.is_some());
    other.temperature.set(22.5);
    stand.value("up/Boiler/Temperature", 22.5).await;
    stand.write("up/Boiler/Setpoint", 70.0).await.unwrap();
    stand.value("up/Boiler/Setpoint", 70.0).await;
    assert_eq!(stand.write("up/Boiler/Temperature", 1.0).await, Err(StatusCode::BAD_NOT_WRITABLE));
    let counted = stand.source("up").statistics;
    assert_eq!(counted.writes, 1);
    assert_eq!(counted.dropped, 1, "the second name");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_server_sees_one_session_however_many_clients_there_are() {
    let other = other("127.0.0.1:0");
    let stand = Stand::new(&source(&other.server, "mirror = \"nsu=urn:example:plant;s=Plant\"")).await;
    mirrored(&stand).await;
    let mut clients = Vec::new();
    for _ in 0..10 {
        let client = Client::connect(&stand.server.url()).await.unwrap();
        let mut subscription = client.subscribe(50 * MS).await.unwrap();
        subscription.monitor("nsu=urn:taktwerk:gateway;s=up/Boiler/Temperature").await.unwrap();
        assert!(subscription.next_change().await.is_some());
        clients.push((client, subscription));
    }
    let watch = Client::connect(&other.server.url()).await.unwrap();
    // CurrentSessionCount, CurrentSubscriptionCount: the gateway's and, of sessions, our own.
    assert_eq!(watch.read_value::<u32>("i=2277").await.unwrap(), 2);
    assert_eq!(watch.read_value::<u32>("i=2285").await.unwrap(), 1);
    other.temperature.set(33.0);
    for (_, subscription) in &mut clients {
        loop {
            let change = tokio::time::timeout(5000 * MS, subscription.next_change()).await.unwrap().unwrap();
            if change.value::<f64>() == Ok(33.0) {
                break;
            }
        }
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_and_comes_back_is_found_again() {
    let first = other("127.0.0.1:0");
    let address = first.server.addresses()[0].to_string();
    let tag = "[[tag]]\nsource = \"up\"\nname = \"T\"\naddress = \"nsu=urn:example:plant;s=Plant/Boiler/Temperature\"\n\
               scale = 2.0\n[[tag]]\nsource = \"up\"\nname = \"No\"\ntype = \"Double\"\naddress = \"nsu=urn:example:plant;s=No\"\n";
    let stand =
        Stand::new(&(source(&first.server, "mirror = \"nsu=urn:example:plant;s=Plant\"") + tag)).await;
    mirrored(&stand).await;
    stand.value("up/T", 43.0).await;
    stand.until("up/No", |value| value.status() == StatusCode::BAD_NODE_ID_UNKNOWN).await;
    let tags = stand.source("up").tags;
    first.server.stop(Duration::ZERO);
    stand.until("up/T", |value| value.status() == StatusCode::UNCERTAIN_LAST_USABLE_VALUE).await;
    stand.until("up/Boiler/Temperature", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    assert_eq!(stand.write("up/Boiler/Setpoint", 1.0).await, Err(StatusCode::BAD_NO_COMMUNICATION));
    let second = other(&address);
    second.temperature.set(50.0);
    stand.value("up/T", 100.0).await;
    stand.value("up/Boiler/Temperature", 50.0).await;
    assert_eq!(stand.source("up").tags, tags, "nothing is added twice");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_accepts_and_says_nothing_is_given_up_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let text = format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"opc.tcp://{address}\"\ndeadline = \"300 ms\"\nretry = \"50 ms\"\n\
         mirror = [\"i=85\"]\n[[source]]\nname = \"ok\"\ntype = \"simulation\"\ninterval = \"20 ms\"\nstale_after = \"1 s\"\n\
         [[tag]]\nsource = \"ok\"\nname = \"v\"\n"
    );
    let stand = Stand::new(&text).await;
    for _ in 0..300 {
        if stand.source("up").statistics.errors > 1 {
            break;
        }
        sleep(10 * MS).await;
    }
    let error = stand.source("up").statistics.last_error.unwrap();
    assert_eq!(error, format!("connection to {address} timed out after 300ms"));
    let other = stand.source("ok").statistics;
    assert!(other.answers > 20 && other.missed == 0, "{other:?}");
    stand.end().await;
}

#[test]
fn a_server_tells_its_variables_and_they_become_tags() {
    let other = other("127.0.0.1:0");
    let mut found = discover::source_of_url(&other.server.url()).unwrap();
    let mut question = Question {
        settings: found.settings.clone(),
        within: MS,
        below: None,
        most: 100,
        stop: Arc::default(),
    };
    let offers = discover::offers(&mut found, &question).unwrap();
    let setpoint = offers.iter().find(|offer| offer.name == "Setpoint").unwrap();
    assert_eq!(setpoint.path, ["Plant", "Boiler"]);
    assert_eq!((setpoint.kind.as_str(), setpoint.value.as_str()), ("Double", "60.0"));
    // What it offers is a configuration that can be read back.
    let tags: Vec<String> = offers.iter().filter_map(|offer| offer.tag("up")).collect();
    let tags: Vec<&String> = tags.iter().filter(|tag| !tag.contains("second")).collect();
    let text = tags.iter().map(|tag| tag.as_str()).collect::<String>();
    let text = format!("{}{text}", source(&other.server, ""));
    let config = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
    assert_eq!(config.tag_count(), tags.len());
    assert!(config.tag_count() >= 4, "{text}");
    assert!(text.contains("access = \"read-write\""), "{text}");
    question.most = 2;
    assert_eq!(discover::offers(&mut found, &question).unwrap().len(), 2);
    question.below = Some("nsu=urn:example:plant;s=Nothing".to_owned());
    let nothing = discover::offers(&mut found, &question);
    assert!(nothing.as_ref().map_or(true, Vec::is_empty), "{nothing:?}");
}
