//! A mirror is browsed again beside its values: they are not delayed by the many requests.

use crate::stand::{MS, Stand};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use taktwerk::client::NewNode;
use taktwerk::{Client, Server};
use taktwerk_types::{BuiltInType, NodeId, QualifiedName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until, timeout};

/// The delay of the relay in each direction.
const DELAY: Duration = Duration::from_millis(50);
/// Objects below each other: browsing takes a request for each.
const LEVELS: u32 = 14;
const LINE: NodeId = NodeId::numeric(1, 10);

/// Passes bytes on, each after [`DELAY`].
fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let (send, mut sent) = mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let due = tokio::time::Instant::now() + DELAY;
            if send.send((due, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((due, bytes)) = sent.recv().await {
            sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
}

/// A relay to a server far away. Returns its URL.
async fn relay(server: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("opc.tcp://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(server).await.unwrap();
            let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
            pass(near_read, far_write);
            pass(far_read, near_write);
        }
    });
    url
}

async fn add(client: &Client, nodes: impl IntoIterator<Item = NewNode>) {
    for result in client.add_nodes(nodes).await.unwrap() {
        result.unwrap();
    }
}

fn variable(parent: NodeId, number: u32, name: &str) -> NewNode {
    let name = QualifiedName::new(1, name);
    NewNode::variable(parent, name, BuiltInType::Double, Some(0.0.into())).id(NodeId::numeric(1, number))
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_not_delayed_while_a_mirror_is_browsed_again() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().node_management().build().unwrap();
    let server = server.spawn().unwrap();
    let client = Client::connect(&server.url()).await.unwrap();
    let version =
        NewNode::variable(LINE, QualifiedName::new(0, "NodeVersion"), BuiltInType::String, Some("1".into()));
    let line = NewNode::object(NodeId::numeric(0, 85), QualifiedName::new(1, "Line")).id(LINE);
    let version = version.type_definition(NodeId::numeric(0, 68)).reference_type(NodeId::numeric(0, 46));
    add(&client, [line, version, variable(LINE, 100, "Level").writable()]).await;
    let mut parent = LINE;
    for level in 0..LEVELS {
        let id = NodeId::numeric(1, 200 + level);
        let object = NewNode::object(parent, QualifiedName::new(1, "Part")).id(id.clone());
        add(&client, [object]).await;
        parent = id;
    }
    let url = relay(server.addresses()[0]).await;
    let text = format!(
        "[[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{url}\"\npublishing_interval = \"50 ms\"\ndepth_max = 30\n\
         lost_after = \"1 min\"\ndeadline = \"20 s\"\nmirror = [\"ns=1;i=10\"]\n"
    );
    let stand = Stand::new(&text).await;
    let patience = Instant::now() + Duration::from_secs(300);
    while !stand.read("up/Level").await.status().is_good() {
        assert!(Instant::now() < patience, "{:?}", stand.gateway.sources().views());
        sleep(20 * MS).await;
    }
    let subscription = stand.client.subscribe(20 * MS).await.unwrap();
    subscription.monitor("nsu=urn:taktwerk:gateway;s=up/Level").await.unwrap();
    // The value changes all the time.
    let writing = tokio::spawn({
        let client = Client::connect(&server.url()).await.unwrap();
        async move {
            for number in 1..u32::MAX {
                client.write(NodeId::numeric(1, 100), f64::from(number)).await.unwrap();
                sleep(50 * MS).await;
            }
        }
    });
    let next = async |subscription: &mut taktwerk::client::Subscription| {
        timeout(Duration::from_secs(60), subscription.next_change()).await.unwrap().unwrap();
        Instant::now()
    };
    let mut subscription = subscription;
    for _ in 0..20 {
        next(&mut subscription).await;
    }
    // The model changes.
    add(&client, [variable(LINE, 101, "New")]).await;
    let begin = Instant::now();
    let (mut last, mut longest) = (begin, Duration::ZERO);
    let mut looked = begin;
    loop {
        let now = next(&mut subscription).await;
        longest = longest.max(now - last);
        last = now;
        if now - looked > 200 * MS {
            looked = now;
            if stand.read("up/New").await.status().is_good() {
                break;
            }
        }
        assert!(Instant::now() < patience, "{:?}", stand.gateway.sources().views());
    }
    let took = begin.elapsed();
    assert!(took > LEVELS * DELAY, "browsing took only {took:?}");
    assert!(longest * 3 < took, "values were delayed by {longest:?} of {took:?}");
    writing.abort();
    stand.end().await;
}
