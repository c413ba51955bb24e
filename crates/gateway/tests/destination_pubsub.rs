//! Values as DataSetMessages to a real broker, mosquitto, and to our own subscriber. Without a broker this test says so and ends.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test fails by panicking, and says what it skips

mod broker;
mod counting;
mod stand;

use broker::{Broker, free_port};
use stand::{MS, Stand};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use taktwerk::pubsub::Subscriber;
use taktwerk_types::{UtcTime, Variant};

const LAST: u32 = 500;
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn our_subscriber_reads_each_value_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let (sender, values) = mpsc::channel();
    let subscriber = Subscriber::builder(&format!("mqtt+json://127.0.0.1:{port}"))
        .on_message(move |message| {
            assert_eq!(message.publisher_id.as_ref().unwrap().to_string(), "line-1");
            assert_eq!(message.data_set_writer_id, Some(7));
            for (field, name) in message.fields.iter().zip(message.names) {
                let _ = sender.send(((*name).to_owned(), field.value.clone()));
            }
        })
        .start()
        .unwrap();
    let end = Instant::now() + LIMIT;
    while !subscriber.brokers().iter().all(|broker| broker.is_connected()) {
        assert!(Instant::now() < end);
        tokio::time::sleep(10 * MS).await;
    }
    let text = format!(
        "{}[[destination]]\nname = \"cloud\"\ntype = \"pubsub\"\nurl = \"mqtt://127.0.0.1:{port}\"\nqueue = {:?}\n\
         flush = \"10 ms\"\npublisher_id = \"line-1\"\nwriter_id = 7\n",
        counting::source(LAST),
        folder.path().join("q.db").display().to_string(),
    );
    let stand = Stand::new(&text).await;
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("cloud", |view| view.counters.sent >= u64::from(LAST) && view.counters.queued == 0)
        .await;
    let mut numbers = Vec::new();
    while numbers.last() != Some(&i64::from(LAST)) {
        let (name, value) = values.recv_timeout(LIMIT).unwrap();
        assert_eq!(name, "counter/Count");
        let Some(Variant::Int64(number)) = value.value else { panic!("{value:?}") };
        let time = UtcTime::from_unix(Duration::from_secs(1_700_000_000 + number.cast_unsigned()));
        assert_eq!(value.source_timestamp, Some(time));
        numbers.push(number);
    }
    // The first ones may have come before the broker knew what the subscriber wants.
    let first = *numbers.first().unwrap();
    assert_eq!(numbers, (first..=i64::from(LAST)).collect::<Vec<_>>());
    let counted = stand.destination("cloud").counters;
    assert_eq!((counted.refused, counted.overrun, counted.evicted), (0, 0, 0), "{counted:?}");
    assert_eq!(subscriber.counters().malformed, 0);
    stand.end().await;
}
