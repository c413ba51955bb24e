//! Real sessions over loopback: client drivers against the server driver.

use crate::common::{after, monitor, start, value_of, wait_until};
use core::time::Duration;
use std::sync::Arc;
use taktwerk_client::{ClientConfig, Delivery, Event, SubscriptionEvent, SubscriptionParams};
use taktwerk_net::client::{AsyncClient, BlockingClient, SubscriptionMessage};
use taktwerk_net::clock::monotonic;
use taktwerk_net::{RunningServer, ServerOptions};
use taktwerk_schema::ReadRequest;
use taktwerk_types::{StatusCode, Variant};

fn read(numbers: std::ops::Range<u32>) -> ReadRequest {
    ReadRequest { nodes_to_read: numbers.map(value_of).collect(), ..ReadRequest::default() }
}

#[test]
fn a_blocking_client_reads_and_watches() {
    let server = start(20_001, 1, ServerOptions::default());
    let (mut client, info) =
        BlockingClient::connect(Arc::new(ClientConfig::default()), server.target()).unwrap();
    assert_eq!(info.namespaces.len(), 2);
    server.variables[3].set_at(4.5, taktwerk_net::clock::wall());
    let response = client.call(&mut read(0..5)).unwrap();
    let values: Vec<_> = response.results.iter().map(|result| result.value.clone()).collect();
    assert_eq!(values[3], Some(Variant::from(4.5)));
    // More than the server's limit, in responses of several chunks each.
    let response = client.operate(read(0..20_001)).unwrap();
    assert_eq!(response.results.len(), 20_001);
    assert!(response.results.iter().all(|result| result.status() == StatusCode::GOOD));

    let params = SubscriptionParams { publishing_interval_ms: 20.0, ..SubscriptionParams::default() };
    let subscription = client.core().create_subscription(params, monotonic());
    client.core().add_items(subscription, (0..10).map(|number| monitor(number, 20.0)), monotonic()).unwrap();
    let _writer = server.write_every(Duration::from_millis(20));
    let mut changes = 0;
    let end = after(Duration::from_secs(10));
    while changes < 100 {
        assert!(monotonic() < end, "{changes} changes");
        if let Some(Delivery::DataChanges { values, .. }) = client.wait(end) {
            changes += values.len();
        }
    }
    client.disconnect();
    wait_until("the connection is closed", || server.running.connections() == 0);
}

#[test]
fn a_busy_polling_pair_answers() {
    let options = {
        let mut options = ServerOptions::default();
        options.busy_poll = Duration::from_millis(1);
        options
    };
    let server = start(1, 1, options);
    let (client, _) = BlockingClient::connect(Arc::default(), server.target()).unwrap();
    let mut client = client.busy_poll(true);
    let mut request = read(0..1);
    for _ in 0..200 {
        assert_eq!(client.call(&mut request).unwrap().results.len(), 1);
    }
}

#[test]
fn unreachable_servers_are_reported_at_once() {
    let server = start(0, 1, ServerOptions::default());
    let target = server.target();
    server.running.stop(Duration::ZERO);
    let error = BlockingClient::connect(Arc::default(), target).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

/// The server stops for good before its clients disconnect.
#[test]
fn a_client_whose_server_is_gone_disconnects_at_once() {
    let server = start(1, 1, ServerOptions::default());
    let mut config = ClientConfig::default();
    config.reconnect.enabled = false;
    let config = Arc::new(config);
    let (mut client, _) = BlockingClient::connect(Arc::clone(&config), server.target()).unwrap();
    let target = server.target();
    let (done, is_done) = std::sync::mpsc::channel();
    runtime().block_on(async {
        let (other, _, mut events) = AsyncClient::connect(config, target).await.unwrap();
        tokio::task::spawn_blocking(move || server.running.stop(Duration::ZERO)).await.unwrap();
        assert!(matches!(events.next().await, Some(Event::Disconnected(Some(_)))));
        tokio::time::timeout(Duration::from_secs(10), other.disconnect()).await.unwrap();
    });
    std::thread::spawn(move || {
        let end = after(Duration::from_secs(10));
        let is_end = |delivery: &Delivery| matches!(delivery, Delivery::Event(Event::Disconnected(Some(_))));
        let lost = std::iter::from_fn(|| client.wait(end)).any(|delivery| is_end(&delivery));
        client.disconnect();
        done.send(lost).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(true), "disconnect does not return");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn an_async_client_reads_watches_and_ends() {
    let server = start(10, 2, ServerOptions::default());
    let writer = server.write_every(Duration::from_millis(10));
    runtime().block_on(async {
        let (client, _, mut events) = AsyncClient::connect(Arc::default(), server.target()).await.unwrap();
        let (one, two) = tokio::join!(client.request(read(0..10), None), client.operate(read(0..3)));
        assert_eq!((one.unwrap().results.len(), two.unwrap().results.len()), (10, 3));
        let params = SubscriptionParams { publishing_interval_ms: 10.0, ..SubscriptionParams::default() };
        let (subscription, mut messages) = client.create_subscription(params).await.unwrap();
        client.add_items(subscription, (0..10).map(|number| monitor(number, 10.0))).await.unwrap();
        let (mut changes, mut created) = (0, 0);
        while changes < 200 {
            match messages.next().await.unwrap() {
                SubscriptionMessage::DataChanges { values, .. } => changes += values.len(),
                SubscriptionMessage::State(SubscriptionEvent::Items(items)) => created += items.len(),
                _ => {}
            }
        }
        assert_eq!(created, 10);
        client.disconnect().await;
        assert_eq!(events.next().await, Some(Event::Disconnected(None)));
        assert!(client.request(read(0..1), None).await.is_err());
    });
    wait_until("the connection is closed", || server.running.connections() == 0);
    drop(writer);
}

#[test]
fn a_client_reconnects_after_a_server_restart() {
    let server = start(3, 1, ServerOptions::default());
    let address = server.running.addresses()[0];
    let shared = Arc::clone(server.running.shared());
    let target = server.target();
    runtime().block_on(async {
        let (client, _, mut events) = AsyncClient::connect(Arc::default(), target).await.unwrap();
        let (subscription, mut messages) = client
            .create_subscription(SubscriptionParams { publishing_interval_ms: 20.0, ..Default::default() })
            .await
            .unwrap();
        client.add_items(subscription, (0..3).map(|number| monitor(number, 20.0))).await.unwrap();
        let mut changes = 0;
        while changes < 3 {
            if let SubscriptionMessage::DataChanges { values, .. } = messages.next().await.unwrap() {
                changes += values.len();
            }
        }
        tokio::task::spawn_blocking(move || server.running.stop(Duration::ZERO)).await.unwrap();
        assert!(matches!(events.next().await, Some(Event::ConnectionLost { .. })));
        let again = RunningServer::start(&shared, &[address], ServerOptions::default()).unwrap();
        let restored = loop {
            if let Event::Restored(how, _) = events.next().await.unwrap() {
                break how;
            }
        };
        assert_eq!(restored, taktwerk_client::Restored::NewSession);
        // The subscription was created again and reports all values.
        let mut values_again = 0;
        while values_again < 3 {
            if let SubscriptionMessage::DataChanges { values, .. } = messages.next().await.unwrap() {
                values_again += values.len();
            }
        }
        drop(client);
        assert_eq!(events.next().await, Some(Event::Disconnected(None)));
        drop(again);
    });
}
