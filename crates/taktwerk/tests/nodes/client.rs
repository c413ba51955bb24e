//! The library's client: handles and streams, timeouts, servers that return with changes.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use taktwerk::client::{Item, SubscriptionEvent, Update};
use taktwerk::schema::SubscriptionDiagnosticsDataType;
use taktwerk::{Client, NodeId, RunningServer, Server, StatusCode, Struct};

const PERIOD: Duration = Duration::from_millis(20);

/// A server with a variable `Level` in each of these namespaces; the number after the URI is its value.
fn plant(address: &str, namespaces: &[(&str, f64)]) -> RunningServer {
    let server = Server::builder().bind(address).anonymous().build().unwrap();
    for (uri, level) in namespaces {
        server.namespace(uri).variable("Level", *level).writable().add().unwrap();
    }
    server.spawn().unwrap()
}

async fn connect(server: &RunningServer) -> Client {
    Client::builder(&server.url())
        .unsecured()
        .request_timeout(Duration::from_secs(5))
        .connect()
        .await
        .unwrap()
}

/// The number of subscriptions on the server.
async fn subscriptions(client: &Client) -> u32 {
    // CurrentSubscriptionCount
    client.read_value("i=2285").await.unwrap()
}

async fn within<T>(limit: Duration, what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| panic!("{what}: not within {limit:?}"))
}

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn one_task_reads_while_another_monitors_more() {
    let server = plant("127.0.0.1:0", &[("urn:a", 1.0), ("urn:b", 2.0)]);
    let client = connect(&server).await;
    let (handle, mut updates) = client.subscribe(PERIOD).await.unwrap().split();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let reader = tokio::spawn(async move {
        while let Some(change) = updates.next_change().await {
            tell.send((change.item, change.value.value.unwrap())).unwrap();
        }
    });
    let mut numbers = Vec::new();
    for (node, value) in [("nsu=urn:a;s=Level", 1.0), ("nsu=urn:b;s=Level", 2.0)] {
        let number = within(SOON, "monitor", handle.clone().monitor(node)).await.unwrap();
        assert_eq!(within(SOON, "the value", told.recv()).await, Some((number, value.into())));
        numbers.push(number);
    }
    assert_ne!(numbers[0], numbers[1]);
    // Handles can be dropped; the stream continues.
    let last = handle.clone();
    drop(handle);
    client.write("nsu=urn:b;s=Level", 3.0).await.unwrap();
    assert_eq!(within(SOON, "the change", told.recv()).await, Some((numbers[1], 3.0.into())));
    last.set_publishing_mode(false).await.unwrap();
    client.write("nsu=urn:b;s=Level", 4.0).await.unwrap();
    tokio::time::sleep(PERIOD * 5).await;
    assert!(told.try_recv().is_err(), "nothing is published");
    // Other settings do not enable it again.
    last.modify(PERIOD * 2).await.unwrap();
    tokio::time::sleep(PERIOD * 5).await;
    assert!(told.try_recv().is_err(), "nothing is published");
    last.set_publishing_mode(true).await.unwrap();
    assert_eq!(within(SOON, "the change", told.recv()).await, Some((numbers[1], 4.0.into())));
    within(SOON, "delete", last.delete()).await.unwrap();
    within(SOON, "the end of the stream", reader).await.unwrap();
    assert_eq!(subscriptions(&client).await, 0);
    assert!(last.monitor("nsu=urn:a;s=Level").await.is_err());
}

#[tokio::test]
async fn dropping_the_stream_deletes_the_subscription() {
    let server = plant("127.0.0.1:0", &[("urn:a", 1.0)]);
    let client = connect(&server).await;
    let (handle, updates) = client.subscribe(PERIOD).await.unwrap().split();
    handle.monitor("nsu=urn:a;s=Level").await.unwrap();
    assert_eq!(subscriptions(&client).await, 1);
    drop(updates);
    let deleted = async {
        while subscriptions(&client).await > 0 {
            tokio::time::sleep(PERIOD).await;
        }
    };
    within(SOON, "the deletion", deleted).await;
    assert!(within(SOON, "the refusal", handle.monitor("nsu=urn:a;s=Level")).await.is_err());
    assert!(within(SOON, "the refusal", handle.modify(PERIOD)).await.is_err());
    assert!(within(SOON, "the refusal", handle.delete()).await.is_err());
}

/// Forwards bytes until told to swallow them.
fn relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let swallows = Arc::<AtomicBool>::default();
    let told = Arc::clone(&swallows);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(to).unwrap();
            for (mut from, mut into) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                let told = Arc::clone(&told);
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(count @ 1..) = std::io::Read::read(&mut from, &mut buffer) {
                        if !told.load(Ordering::Relaxed)
                            && std::io::Write::write_all(&mut into, &buffer[..count]).is_err()
                        {
                            return;
                        }
                    }
                });
            }
        }
    });
    (address, swallows)
}

/// Every future completes in time, even if the server does not answer.
#[tokio::test]
async fn every_wait_ends() {
    let server = plant("127.0.0.1:0", &[("urn:a", 1.0)]);
    let (address, swallows) = relay(server.addresses()[0]);
    let client = Client::builder(&format!("opc.tcp://{address}"))
        .unsecured()
        .request_timeout(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    let (handle, _updates) = client.subscribe(PERIOD).await.unwrap().split();
    swallows.store(true, Ordering::Relaxed);
    let limit = Duration::from_secs(3);
    let started = Instant::now();
    let node = "nsu=urn:a;s=Level";
    let (monitored, many, path, subscribed, modified, switched, read) = tokio::join!(
        within(limit, "monitor", handle.monitor(node)),
        within(
            limit,
            "monitor_many",
            handle.monitor_many((0..100).map(|id| Item::new(NodeId::numeric(2, id))))
        ),
        within(limit, "monitor_item", handle.monitor_item(Item::at_path(NodeId::numeric(0, 85), "2:Level"))),
        within(limit, "subscribe", client.subscribe(PERIOD)),
        within(limit, "modify", handle.modify(PERIOD)),
        within(limit, "set_publishing_mode", handle.set_publishing_mode(false)),
        within(limit, "read", client.read(node)),
    );
    assert!(monitored.is_err() && many.is_err() && path.is_err() && subscribed.is_err());
    assert!(modified.is_err() && switched.is_err() && read.is_err());
    // Also while the client tries to reconnect.
    assert!(within(limit, "monitor", handle.monitor(node)).await.is_err());
    assert!(within(limit, "subscribe", client.subscribe(PERIOD)).await.is_err());
    let _ = within(limit, "delete", handle.delete()).await;
    within(limit, "disconnect", client.disconnect()).await;
    assert!(started.elapsed() < limit * 3, "{:?}", started.elapsed());
}

/// A cancelled call leaves no item whose number is unknown.
#[tokio::test]
async fn a_cancelled_call_deletes_its_items() {
    let server = plant("127.0.0.1:0", &[("urn:a", 1.0)]);
    let client = connect(&server).await;
    let (handle, mut updates) = client.subscribe(PERIOD).await.unwrap().split();
    let (mut known, mut given_up) = (Vec::new(), 0);
    for _ in 0..30 {
        // Polled once or twice, which sends the request, and then dropped.
        match tokio::time::timeout(Duration::ZERO, handle.monitor("nsu=urn:a;s=Level")).await {
            Ok(number) => known.push(number.unwrap()),
            Err(_) => given_up += 1,
        }
    }
    assert!(given_up > 0);
    known.push(handle.monitor("nsu=urn:a;s=Level").await.unwrap());
    // Values sampled before an item was deleted have been published by then.
    tokio::time::sleep(PERIOD * 5).await;
    while tokio::time::timeout(PERIOD * 2, updates.next()).await.is_ok() {}
    client.write("nsu=urn:a;s=Level", 5.0).await.unwrap();
    let mut numbers = Vec::new();
    while let Ok(Some(update)) = tokio::time::timeout(PERIOD * 5, updates.next()).await {
        numbers.extend(match update {
            Update::Change(change) => Some(change.item),
            _ => None,
        });
    }
    numbers.sort_unstable();
    assert_eq!(numbers, known);
    // SubscriptionDiagnosticsArray
    type Diagnostics = Vec<Struct<SubscriptionDiagnosticsDataType>>;
    let diagnostics = client.read_value::<Diagnostics>("i=2290").await.unwrap();
    assert_eq!(diagnostics[0].0.monitored_item_count as usize, known.len());
}

/// A cancelled call leaves no subscription either: servers count those.
#[tokio::test]
async fn a_cancelled_subscription_is_deleted() {
    let server = plant("127.0.0.1:0", &[("urn:a", 1.0)]);
    let client = connect(&server).await;
    for patience in [0, 0, 0, 1, 2, 5].repeat(5) {
        let mut call = pin!(client.subscribe(PERIOD));
        // The future is dropped at some stage of its progress.
        let is_answered = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
        assert!(!is_answered);
        tokio::time::sleep(Duration::from_millis(patience)).await;
    }
    let begin = Instant::now();
    // CurrentSubscriptionCount
    while client.read_value::<u32>("i=2285").await.unwrap() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "subscriptions that nobody has are still there");
        tokio::time::sleep(PERIOD).await;
    }
    // None is created later.
    tokio::time::sleep(PERIOD * 5).await;
    assert_eq!(client.read_value::<u32>("i=2285").await.unwrap(), 0);
}

/// The server returns on the same port with its namespaces in another order, and one of them missing. `nsu=` refers to the same
/// nodes as before, subscriptions continue, and missing nodes are reported.
#[tokio::test]
async fn nodes_keep_their_meaning_after_a_restart_with_other_namespaces() {
    let server = plant("127.0.0.1:0", &[("urn:gone", 1.0), ("urn:other", 2.0), ("urn:plant", 3.0)]);
    let address = server.addresses()[0].to_string();
    let client = connect(&server).await;
    let mut events = client.events().unwrap();
    assert_eq!(client.namespace_index("urn:plant"), Some(4));
    let mut subscription = client.subscribe(PERIOD).await.unwrap();
    let plant_item = subscription.monitor("nsu=urn:plant;s=Level").await.unwrap();
    // As in a program that found its node by browsing.
    let found = client.find("i=85", "4:Level").await.unwrap();
    let found_item = subscription.monitor_item(Item::new(found)).await.unwrap();
    let path_item = Item::at_path(NodeId::numeric(0, 85), "4:Level");
    let path_item = subscription.monitor_item(path_item).await.unwrap();
    let gone_item = subscription.monitor("nsu=urn:gone;s=Level").await.unwrap();
    for _ in 0..4 {
        within(SOON, "the first values", subscription.next_change()).await.unwrap();
    }
    tokio::task::spawn_blocking(move || server.stop(Duration::ZERO)).await.unwrap();
    let server = plant(&address, &[("urn:new", 10.0), ("urn:plant", 30.0), ("urn:other", 20.0)]);
    let mut values = std::collections::BTreeMap::new();
    let mut missing = Vec::new();
    while values.len() < 3 || missing.is_empty() {
        match within(SOON, "the values", subscription.next()).await.unwrap() {
            Update::Change(change) => {
                assert_eq!(change.node, NodeId::string(3, "Level"), "{change:?}");
                values.insert(change.item, change.value.value.unwrap());
            }
            Update::State(SubscriptionEvent::NamespaceMissing { namespace_uri, client_handles }) => {
                assert_eq!(namespace_uri, "urn:gone");
                missing.extend(client_handles);
            }
            _ => {}
        }
    }
    assert_eq!(missing, [gone_item]);
    let expected = [plant_item, found_item, path_item].map(|item| (item, 30.0.into()));
    assert_eq!(values.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(client.namespace_index("urn:plant"), Some(3));
    assert_eq!(client.read_value::<f64>("nsu=urn:plant;s=Level").await.unwrap(), 30.0);
    assert_eq!(client.read_value::<f64>("nsu=urn:other;s=Level").await.unwrap(), 20.0);
    client.write("nsu=urn:plant;s=Level", 31.0).await.unwrap();
    assert_eq!(client.read_value::<f64>("ns=3;s=Level").await.unwrap(), 31.0);
    let error = client.read_value::<f64>("nsu=urn:gone;s=Level").await.unwrap_err();
    assert!(error.to_string().contains("urn:gone") && error.to_string().contains("urn:new"), "{error}");
    assert_eq!(error.status(), StatusCode::BAD_NODE_ID_INVALID);
    let mut changed = false;
    while !changed {
        let event = within(SOON, "the note", events.next()).await.unwrap();
        changed = format!("{event:?}").contains("NamespacesChanged");
    }
    drop(server);
}
