//! Sends values to a real NATS server, which is killed and restarted. Skipped if it is not installed.

#![cfg(feature = "nats")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it skips

mod counting;
mod missing;
mod nats;
mod stand;

use async_nats::jetstream::{self, consumer};
use futures_util::StreamExt;
use nats::Server;
use stand::Stand;
use std::net::TcpListener;

const LAST: u32 = 2000;

#[tokio::test(flavor = "multi_thread")]
async fn each_value_is_stored_once_although_the_server_is_killed() {
    let Some(program) = nats::program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Server::start(&program, folder.path(), port);
    let text = format!(
        "{}[[destination]]\nname = \"nats\"\ntype = \"nats\"\nurl = \"nats://127.0.0.1:{port}\"\nqueue = {:?}\n\
         subject = \"plant.{{tag}}\"\nstream = \"PLANT\"\nretry = \"20 ms\"\nretry_max = \"200 ms\"\nflush = \"10 ms\"\n\
         batch_max = 300\n",
        counting::source(LAST),
        folder.path().join("q.db").display().to_string(),
    );
    let stand = Stand::new(&text).await;
    for until in [50, 600] {
        stand.until_destination("nats", |view| view.counters.sent > until).await;
        drop(server);
        let failed = stand.destination("nats").counters.errors;
        stand
            .until_destination("nats", |view| view.counters.errors > failed && view.counters.queued > 20)
            .await;
        server = Server::start(&program, folder.path(), port);
    }
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("nats", |view| view.counters.sent >= u64::from(LAST) && view.counters.queued == 0)
        .await;
    let client = async_nats::connect(format!("127.0.0.1:{port}")).await.unwrap();
    let stream = jetstream::new(client).get_stream("PLANT").await.unwrap();
    let ordered = consumer::pull::Config::default();
    let mut messages = stream.create_consumer(ordered).await.unwrap().messages().await.unwrap();
    let mut numbers = Vec::new();
    loop {
        let message = messages.next().await.unwrap().unwrap();
        assert_eq!(&*message.subject, "plant.counter.Count");
        let json: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
        // After the last value, the tag becomes uncertain.
        if json["status"] == "Good" {
            numbers.push(json["value"].as_i64().unwrap());
        }
        message.ack().await.unwrap();
        if message.info().unwrap().pending == 0 {
            break;
        }
    }
    assert_eq!(numbers, (1..=i64::from(LAST)).collect::<Vec<_>>());
    let counted = stand.destination("nats").counters;
    assert_eq!((counted.refused, counted.overrun, counted.evicted), (0, 0, 0), "{counted:?}");
    stand.end().await;
}
