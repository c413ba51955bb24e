//! A mirror follows a server whose nodes change, while it is connected and across a restart.

use crate::stand::{MS, Stand};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use taktwerk::client::{Attribute, NewNode, Subscription};
use taktwerk::{Client, RunningServer, Server};
use taktwerk_types::{BuiltInType, DataValue, NodeId, QualifiedName, StatusCode, Variant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

fn source(url: &str, mirror: &str) -> String {
    format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{url}\"\npublishing_interval = \"50 ms\"\nretry = \"50 ms\"\n\
         retry_max = \"200 ms\"\nlost_after = \"1 min\"\ndeadline = \"10 s\"\nmirror = [\"{mirror}\"]\n"
    )
}

/// An item at a mirrored variable.
struct Watch(Subscription);

impl Watch {
    async fn new(stand: &Stand, name: &str) -> Self {
        let subscription = stand.client.subscribe(20 * MS).await.unwrap();
        subscription.monitor(&*format!("nsu=urn:taktwerk:gateway;s={name}")).await.unwrap();
        Self(subscription)
    }

    /// Reads changes until one matches. Returns the statuses so far.
    async fn until(&mut self, what: impl Fn(&DataValue) -> bool) -> Vec<StatusCode> {
        let mut statuses = Vec::new();
        loop {
            let change = timeout(20_000 * MS, self.0.next_change()).await;
            let change = change.unwrap_or_else(|_| panic!("{statuses:?}")).unwrap();
            statuses.push(change.value.status());
            if what(&change.value) {
                return statuses;
            }
        }
    }
}

fn is(number: impl Into<Variant>) -> impl Fn(&DataValue) -> bool {
    let number = Some(number.into());
    move |value| value.value == number && value.status() == StatusCode::GOOD
}

fn is_unknown(value: &DataValue) -> bool {
    value.status() == StatusCode::BAD_NODE_ID_UNKNOWN
}

const LINE: NodeId = NodeId::numeric(1, 10);

fn node(number: u32) -> NodeId {
    NodeId::numeric(1, 100 + number)
}

fn variable(number: u32, name: &str, value: f64) -> NewNode {
    let name = QualifiedName::new(1, name);
    NewNode::variable(LINE, name, BuiltInType::Double, Some(value.into())).id(node(number))
}

async fn add(client: &Client, nodes: impl IntoIterator<Item = NewNode>) {
    for result in client.add_nodes(nodes).await.unwrap() {
        result.unwrap();
    }
}

/// Waits until a node of the mirror is deleted. Its value is bad before.
async fn until_gone(stand: &Stand, name: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    let node = format!("nsu=urn:taktwerk:gateway;s=up/{name}");
    while stand.client.read_attribute(&*node, Attribute::BrowseName).await.unwrap().value.is_some() {
        assert!(Instant::now() < end, "{name}");
        sleep(10 * MS).await;
    }
}

/// A server whose nodes clients may change, with a line that has a NodeVersion.
async fn line() -> (RunningServer, Client) {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().node_management().build().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::connect(&server.url()).await.unwrap();
    let objects = NodeId::numeric(0, 85);
    let version =
        NewNode::variable(LINE, QualifiedName::new(0, "NodeVersion"), BuiltInType::String, Some("1".into()));
    let nodes = [
        NewNode::object(objects, QualifiedName::new(1, "Line")).id(LINE),
        version.type_definition(NodeId::numeric(0, 68)).reference_type(NodeId::numeric(0, 46)),
        variable(0, "Stays", 0.0),
        variable(1, "Goes", 1.0),
        variable(2, "Again", 2.0),
        variable(3, "Other", 3.0),
    ];
    add(&client, nodes).await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn added_nodes_appear_and_deleted_ones_go() {
    let (server, client) = line().await;
    let stand = Stand::new(&source(&server.url(), "ns=1;i=10")).await;
    stand.until_there("up/Other").await;
    let mut stays = Watch::new(&stand, "up/Stays").await;
    let mut goes = Watch::new(&stand, "up/Goes").await;
    let mut other = Watch::new(&stand, "up/Other").await;
    stays.until(is(0.0)).await;
    goes.until(is(1.0)).await;
    other.until(is(3.0)).await;
    let tags = stand.source("up").tags;
    add(&client, [variable(4, "New", 4.0)]).await;
    stand.until_there("up/New").await;
    stand.value("up/New", 4.0).await;
    assert_eq!(stand.source("up").tags, tags + 1);
    client.delete_nodes([node(1), node(4)]).await.unwrap();
    goes.until(is_unknown).await;
    for gone in ["up/Goes", "up/New"] {
        stand.until(gone, is_unknown).await;
    }
    // Deleted, not only bad.
    until_gone(&stand, "Goes").await;
    until_gone(&stand, "New").await;
    // Another node of the same name: the item of a client continues.
    client.delete_nodes([node(3)]).await.unwrap();
    add(&client, [variable(5, "Other", 33.0)]).await;
    other.until(is(33.0)).await;
    // The same node, deleted and added again before the mirror has noticed.
    client.delete_nodes([node(2)]).await.unwrap();
    add(&client, [variable(2, "Again", 22.0)]).await;
    stand.value("up/Again", 22.0).await;
    // Nodes come and go: their places are used again.
    for round in 0..3 {
        add(&client, (10..15).map(|number| variable(number, &format!("R{round}-{number}"), 5.0))).await;
        stand.until_there(&format!("up/R{round}-14")).await;
        client.delete_nodes((10..15).map(node)).await.unwrap();
        until_gone(&stand, &format!("R{round}-10")).await;
    }
    // Other variables were not touched, and neither was the connection.
    add(&client, [variable(6, "Last", 6.0)]).await;
    stand.value("up/Last", 6.0).await;
    assert!(timeout(100 * MS, stays.0.next_change()).await.is_err());
    stand.value("up/Stays", 0.0).await;
    let source = stand.source("up");
    assert_eq!((source.statistics.connections, source.tags), (1, tags), "{source:?}");
    stand.end().await;
}

/// A connection to a server whose answers can be held back.
struct Slow {
    address: SocketAddr,
    is_held: watch::Sender<bool>,
}

impl Slow {
    async fn to(server: &RunningServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, target) = (listener.local_addr().unwrap(), server.addresses()[0]);
        let (is_held, held) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut held = held.clone();
                let (mut from_server, mut to_server) = TcpStream::connect(target).await.unwrap().into_split();
                let (mut from_client, mut to_client) = client.into_split();
                tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
                tokio::spawn(async move {
                    let mut bytes = [0; 1 << 16];
                    while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                        if held.wait_for(|is_held| !is_held).await.is_err()
                            || to_client.write_all(&bytes[..count]).await.is_err()
                        {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, is_held }
    }
}

/// The new variable has the position of the deleted one in the source.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_deleted_variable_reaches_no_other_one() {
    let (server, client) = line().await;
    add(&client, [variable(20, "Deleted", 1.0).writable()]).await;
    let slow = Slow::to(&server).await;
    let text = source(&format!("opc.tcp://{}", slow.address), "ns=1;i=10") + "writable = true\n";
    let stand = Stand::new(&text).await;
    stand.until_there("up/Deleted").await;
    stand.value("up/Deleted", 1.0).await;
    client.delete_nodes([node(20)]).await.unwrap();
    add(&client, [variable(21, "Added", 2.0).writable()]).await;
    // The same message reports the changes, and the mirror browses soon after it.
    stand.until("up/Deleted", is_unknown).await;
    slow.is_held.send_replace(true);
    sleep(600 * MS).await;
    let is_accepted = stand.write("up/Deleted", 99.0).await.is_ok();
    slow.is_held.send_replace(false);
    stand.until_there("up/Added").await;
    // A write to the new variable is carried out, after all earlier ones.
    let end = Instant::now() + Duration::from_secs(20);
    while stand.write("up/Added", 3.0).await.is_err() {
        assert!(Instant::now() < end, "{:?}", stand.source("up"));
        sleep(10 * MS).await;
    }
    stand.value("up/Added", 3.0).await;
    let counted = stand.source("up").statistics;
    assert_eq!((counted.writes, counted.write_errors), (1, u64::from(is_accepted)), "{counted:?}");
    stand.end().await;
}

/// A plant; `is_new` after the server was set up anew.
fn plant(address: &str, is_new: bool) -> RunningServer {
    let server = Server::builder().bind(address).anonymous().build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let boiler = plant.object("Boiler").add().unwrap();
    boiler.variable("Temperature", if is_new { 2.0 } else { 1.0 }).add().unwrap();
    // The same name with another NodeId.
    let id = NodeId::numeric(plant.id().namespace_index, if is_new { 2 } else { 1 });
    boiler.variable("Pressure", if is_new { 20.0 } else { 10.0 }).node_id(id).add().unwrap();
    if is_new {
        plant.object("Tank").add().unwrap().variable("Level", 5i32).add().unwrap();
        boiler.variable("State", 7i32).add().unwrap();
    } else {
        plant.object("Valve").add().unwrap().variable("Position", 3.0).add().unwrap();
        // The same NodeId with another DataType.
        boiler.variable("State", 7.5).add().unwrap();
    }
    server.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_with_other_nodes_is_mirrored_anew() {
    let first = plant("127.0.0.1:0", false);
    let address = first.addresses()[0].to_string();
    let stand = Stand::new(&source(&first.url(), "nsu=urn:example:plant;s=Plant")).await;
    stand.until_there("up/Valve/Position").await;
    let mut temperature = Watch::new(&stand, "up/Boiler/Temperature").await;
    let mut pressure = Watch::new(&stand, "up/Boiler/Pressure").await;
    let mut position = Watch::new(&stand, "up/Valve/Position").await;
    temperature.until(is(1.0)).await;
    pressure.until(is(10.0)).await;
    position.until(is(3.0)).await;
    stand.value("up/Boiler/State", 7.5).await;
    let tags = stand.source("up").tags;
    first.stop(Duration::ZERO);
    let second = plant(&address, true);
    position.until(is_unknown).await;
    for statuses in [temperature.until(is(2.0)).await, pressure.until(is(20.0)).await] {
        assert!(!statuses.contains(&StatusCode::BAD_NODE_ID_UNKNOWN), "{statuses:?}");
    }
    stand.until_there("up/Tank/Level").await;
    stand.value("up/Tank/Level", 5i32).await;
    stand.value("up/Boiler/State", 7i32).await;
    // The folder of the deleted variable is deleted, too.
    until_gone(&stand, "Valve").await;
    assert_eq!(stand.source("up").tags, tags);
    stand.end().await;
    second.stop(Duration::ZERO);
}

/// A plant with a variable and a method of the same name: only one of them can be mirrored.
fn twice_named(address: &str, has_method: bool) -> RunningServer {
    let server = Server::builder().bind(address).anonymous().build().unwrap();
    let plant = server.namespace("urn:example:plant").folder("Plant").unwrap();
    let press = plant.object("Press").add().unwrap();
    press.variable("Start", if has_method { 1.0 } else { 2.0 }).add().unwrap();
    if has_method {
        let method = press.method("Start").node_id(NodeId::numeric(plant.id().namespace_index, 7));
        method.browse_name(QualifiedName::new(1, "Start")).handler(|_, (): ()| Ok(())).unwrap();
    }
    server.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_method_that_is_not_mirrored_deletes_no_other_node() {
    let first = twice_named("127.0.0.1:0", true);
    let address = first.addresses()[0].to_string();
    let stand = Stand::new(&source(&first.url(), "nsu=urn:example:plant;s=Plant")).await;
    stand.until_there("up/Press/Start").await;
    stand.value("up/Press/Start", 1.0).await;
    first.stop(Duration::ZERO);
    let second = twice_named(&address, false);
    stand.value("up/Press/Start", 2.0).await;
    sleep(200 * MS).await;
    stand.value("up/Press/Start", 2.0).await;
    stand.end().await;
    second.stop(Duration::ZERO);
}
