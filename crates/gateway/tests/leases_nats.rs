//! Gateways that share sources with keys in NATS; one is killed and one suspended. Skipped without a NATS server.

#![cfg(feature = "nats")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it measures

mod device;
mod group;
mod missing;
mod nats;
mod stand;

use device::Device;
use group::{Gateway, INTERVAL, SOURCES, each_is_polled_by_one, node, until, within_two_intervals};
use nats::Server;
use stand::MS;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Not a separate test: runs in the child process until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    group::child().await;
}

async fn share(one: &Gateway, two: &Gateway) -> Duration {
    until("they share", async || one.fresh().await == 3 && two.fresh().await == 3).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_is_replaced_and_a_suspended_one_writes_nothing() {
    let Some(program) = nats::program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::start(&program, folder.path(), port);
    let devices: Vec<Arc<Device>> = (0..SOURCES).map(|_| Device::start(4)).collect();
    let text = group::text(&devices, &format!("url = \"nats://127.0.0.1:{port}\"\n"));
    let mut one = Gateway::start(&text).await;
    until("the first one asks everything", async || one.fresh().await == SOURCES).await;
    let two = Gateway::start(&text).await;
    share(&one, &two).await;
    each_is_polled_by_one(&devices, 2 * INTERVAL).await;
    one.kill();
    let took = until("the other one asks everything", async || two.fresh().await == SOURCES).await;
    within_two_intervals(took);
    // A third gateway starts, and is suspended for longer than its leases.
    let three = Gateway::start(&text).await;
    share(&two, &three).await;
    let mut stopped = None;
    for source in 0..SOURCES {
        if three.is_fresh(source).await {
            stopped = Some(source);
        }
    }
    let source = stopped.unwrap();
    three.signal("STOP");
    let took = until("the other one asks everything", async || two.fresh().await == SOURCES).await;
    within_two_intervals(took);
    // A write sent to it in the meantime does not reach the device when it resumes.
    let client = three.client.clone();
    let write = tokio::spawn(async move { client.write(&*node(source), 4711u16).await });
    sleep(100 * MS).await;
    three.signal("CONT");
    // The write may be accepted before the gateway notices, and is then dropped.
    let _ = write.await.unwrap();
    share(&two, &three).await;
    assert_ne!(devices[source].holding.lock().unwrap()[0], 4711);
    for source in 0..SOURCES {
        let is_own = three.is_fresh(source).await;
        assert_eq!(three.client.write(&*node(source), 4712u16).await.is_ok(), is_own, "{source}");
    }
    // A restarted server keeps the leases.
    drop(server);
    let _server = Server::start(&program, folder.path(), port);
    sleep(INTERVAL).await;
    share(&two, &three).await;
}
