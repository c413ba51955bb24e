//! Sends values to a real broker (mosquitto), which is stopped and restarted. Skipped if it is not installed.

use crate::broker::{Broker, free_port};
use crate::counting;
use crate::stand::{MS, Stand};
use rumqttc::{Client as Subscriber, Event, MqttOptions, Packet, QoS};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LAST: u32 = 2000;
const LIMIT: Duration = Duration::from_secs(60);

/// A broker that keeps sessions and messages on disk when it is asked to end.
fn start(folder: &Path, port: u16) -> Option<Broker> {
    let more =
        format!("persistence true\npersistence_location {}/\nmax_queued_messages 0\n", folder.display());
    Broker::start(folder, port, &more)
}

/// A subscriber with a session that outlives connections.
fn subscribe(port: u16) -> mpsc::Receiver<serde_json::Value> {
    let mut options = MqttOptions::new("listener", "127.0.0.1", port);
    // A list of 300 values is longer than the library accepts by default. On a busy machine there are such lists.
    options.set_clean_session(false).set_inflight(1000).set_max_packet_size(1 << 20, 1 << 20);
    let (client, mut connection) = Subscriber::new(options, 100);
    client.subscribe("plant/#", QoS::AtLeastOnce).unwrap();
    let (sender, receiver) = mpsc::channel();
    let (ready, subscribed) = mpsc::channel();
    std::thread::spawn(move || {
        let _client = client;
        for event in connection.iter() {
            match event {
                Ok(Event::Incoming(Packet::SubAck(_))) => drop(ready.send(())),
                Ok(Event::Incoming(Packet::Publish(message))) => {
                    assert_eq!(message.topic, "plant/counter/Count");
                    if sender.send(serde_json::from_slice(&message.payload).unwrap()).is_err() {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => std::thread::sleep(20 * MS),
            }
        }
    });
    subscribed.recv_timeout(LIMIT).unwrap();
    receiver
}

async fn values_reach_a_broker_that_comes_and_goes(
    more: &str,
    values_of: fn(serde_json::Value) -> Vec<serde_json::Value>,
) {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(broker) = start(folder.path(), port) else { return };
    let messages = subscribe(port);
    let text = format!(
        "{}[[destination]]\nname = \"broker\"\ntype = \"mqtt\"\nurl = \"mqtt://127.0.0.1:{port}\"\nqueue = {:?}\n\
         topic = \"plant/{{tag}}\"\nretry = \"20 ms\"\nretry_max = \"100 ms\"\nflush = \"10 ms\"\nbatch_max = 300\n{more}",
        counting::source(LAST),
        folder.path().join("q.db").display().to_string(),
    );
    let stand = Stand::new(&text).await;
    let mut arrived: Vec<(String, i64)> = Vec::new();
    let mut take = |until: i64| {
        let end = Instant::now() + LIMIT;
        while arrived.last().is_none_or(|(_, number)| *number < until) {
            let message = messages.recv_timeout(end.saturating_duration_since(Instant::now()));
            let message = message.unwrap_or_else(|_| {
                let counters = stand.destination("broker").counters;
                panic!("{until} does not come: {:?}; {counters:?}", arrived.last())
            });
            for value in values_of(message) {
                if let Some(number) = value["value"].as_i64() {
                    arrived.push((value["key"].as_str().unwrap().to_owned(), number));
                }
            }
        }
    };
    let mut broker = Some(broker);
    for until in [50, 600] {
        take(until);
        broker.take().unwrap().stop();
        let failed = stand.destination("broker").counters.errors;
        stand
            .until_destination("broker", |view| view.counters.errors > failed && view.counters.queued > 20)
            .await;
        assert!(!stand.destination("broker").counters.is_connected);
        broker = start(folder.path(), port);
    }
    take(i64::from(LAST));
    let numbers = counting::once(arrived.iter().map(|(key, number)| (&**key, *number)));
    assert_eq!(numbers, (1..=i64::from(LAST)).collect::<Vec<_>>());
    stand
        .until_destination("broker", |view| {
            view.counters.queued == 0 && view.counters.sent == view.counters.accepted
        })
        .await;
    let counted = stand.destination("broker").counters;
    assert_eq!((counted.refused, counted.overrun, counted.evicted), (0, 0, 0), "{counted:?}");
    assert_eq!(counted.sent, counted.accepted);
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_reach_a_broker_of_3_1_1_one_by_one() {
    values_reach_a_broker_that_comes_and_goes("", |value| vec![value]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_reach_a_broker_of_5_as_lists() {
    let list = |value: serde_json::Value| value.as_array().unwrap().clone();
    values_reach_a_broker_that_comes_and_goes("version = \"5\"\nlist = true\n", list).await;
}
