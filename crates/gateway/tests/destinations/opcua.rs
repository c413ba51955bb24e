//! Writes values to another OPC UA server, which goes down and returns.

use crate::counting;
use crate::stand::Stand;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taktwerk::history::{HistoryStore, MemoryStore, Order, ReadLimit, Span};
use taktwerk::{RunningServer, Server};

const LAST: u32 = 1000;

fn destination(url: &str, folder: &Path, more: &str) -> String {
    format!(
        "[[destination]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"{url}\"\nqueue = {:?}\nretry = \"20 ms\"\n\
         retry_max = \"200 ms\"\nflush = \"10 ms\"\nbatch_max = 300\ndeadline = \"5 s\"\n\
         node = \"nsu=urn:example:up;s=Mirror/{{name}}\"\n{more}",
        folder.join("q.db").display().to_string(),
    )
}

/// Numbers that were written, as long as the test lasts.
type Written = Arc<Mutex<Vec<i64>>>;

/// A server with a variable of another type than the tag. It records written values.
fn other(address: &str, written: &Written) -> RunningServer {
    let server = Server::builder().bind(address).anonymous().build().unwrap();
    let folder = server.namespace("urn:example:up").folder("Mirror").unwrap();
    let written = Arc::clone(written);
    folder
        .variable("Count", 0i32)
        .on_write(move |_, value: i32| {
            written.lock().unwrap().push(i64::from(value));
            Ok(value)
        })
        .add()
        .unwrap();
    server.spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_written_in_order_across_restarts_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    let mut server = other("127.0.0.1:0", &written);
    let url = server.url();
    let text = counting::source(LAST) + &destination(&url, folder.path(), "");
    let stand = Stand::new(&text).await;
    for until in [50, 400] {
        stand.until_destination("up", |view| view.counters.sent > until).await;
        server.stop(Duration::from_secs(1));
        let failed = stand.destination("up").counters.errors;
        stand
            .until_destination("up", |view| view.counters.errors > failed && view.counters.queued > 20)
            .await;
        server = other(url.trim_start_matches("opc.tcp://"), &written);
    }
    stand.until_values("counter", LAST).await;
    stand
        .until_destination("up", |view| view.counters.sent >= u64::from(LAST) && view.counters.queued == 0)
        .await;
    let numbers = written.lock().unwrap().clone();
    // An unanswered batch is written again completely, followed by the next.
    let mut all: Vec<i64> = Vec::new();
    for number in &numbers {
        let is_next = all.last().is_none_or(|last| *number == last + 1);
        assert!(is_next || all.contains(number), "{number} after {:?}", all.last());
        if is_next {
            all.push(*number);
        }
    }
    assert_eq!(all, (1..=i64::from(LAST)).collect::<Vec<_>>());
    let counted = stand.destination("up").counters;
    assert_eq!((counted.refused, counted.overrun, counted.evicted), (0, 0, 0), "{counted:?}");
    stand.end().await;
    server.stop(Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_device_does_not_reorder_values() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let up = server.namespace("urn:example:up").folder("Mirror").unwrap();
    let numbers = Arc::clone(&written);
    up.variable("Count", 0i32)
        .on_write(move |_, value: i32| {
            let mut numbers = numbers.lock().unwrap();
            numbers.push(i64::from(value));
            // The device behind the server does not answer for a while.
            let attempts = numbers.iter().filter(|number| **number == 25).count();
            if value == 25 && attempts < 4 {
                Err(taktwerk::StatusCode::BAD_NO_COMMUNICATION)
            } else {
                Ok(value)
            }
        })
        .add()
        .unwrap();
    let server = server.spawn().unwrap();
    let text = counting::source(100) + &destination(&server.url(), folder.path(), "");
    let stand = Stand::new(&text).await;
    stand.until_destination("up", |view| view.counters.sent >= 100 && view.counters.queued == 0).await;
    let mut numbers = written.lock().unwrap().clone();
    assert_eq!(numbers.iter().filter(|number| **number == 25).count(), 4, "{numbers:?}");
    numbers.dedup();
    assert_eq!(numbers, (1..=100).collect::<Vec<i64>>());
    stand.end().await;
    server.stop(Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_variable_does_not_block_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let up = server.namespace("urn:example:up").folder("Mirror").unwrap();
    let is_away = Arc::new(AtomicBool::new(true));
    let (count, other) = (Written::default(), Written::default());
    for (name, numbers, is_bound) in
        [("Count", Arc::clone(&count), true), ("Other", Arc::clone(&other), false)]
    {
        let is_away = Arc::clone(&is_away);
        up.variable(name, 0i32)
            .on_write(move |_, value: i32| {
                if is_bound && is_away.load(Ordering::Relaxed) {
                    return Err(taktwerk::StatusCode::BAD_NO_COMMUNICATION);
                }
                numbers.lock().unwrap().push(i64::from(value));
                Ok(value)
            })
            .add()
            .unwrap();
    }
    let server = server.spawn().unwrap();
    let second = counting::source(200).replace("Count", "Other").replace("counter", "second");
    let text = counting::source(200) + &second + &destination(&server.url(), folder.path(), "");
    let stand = Stand::new(&text).await;
    let all: Vec<i64> = (1..=200).collect();
    // All values of one variable arrive while those of the other are parked.
    stand.until_destination("up", |view| view.counters.sent >= 200 && view.counters.parked >= 200).await;
    let seen = stand.destination("up").counters;
    assert!(
        seen.is_connected && seen.last_error.unwrap().contains("BadNoCommunication"),
        "the reason is shown"
    );
    assert_eq!((other.lock().unwrap().clone(), count.lock().unwrap().len()), (all.clone(), 0));
    // Parked values survive a restart and arrive in order.
    stand.end().await;
    let stand = Stand::new(&destination(&server.url(), folder.path(), "")).await;
    assert_eq!(stand.destination("up").counters.parked, 200);
    is_away.store(false, Ordering::Relaxed);
    stand.until_destination("up", |view| view.counters.queued == 0 && view.counters.sent == 200).await;
    assert_eq!((count.lock().unwrap().clone(), other.lock().unwrap().len()), (all, 200));
    let counted = stand.destination("up").counters;
    assert_eq!((counted.sent, counted.refused, counted.parked), (200, 0, 0), "{counted:?}");
    stand.end().await;
    server.stop(Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_go_into_a_history_with_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new(100_000));
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .history(Arc::clone(&store) as Arc<dyn HistoryStore>)
        .build()
        .unwrap();
    let up = server.namespace("urn:example:up").folder("Mirror").unwrap();
    up.variable("Count", 0i64).historize().writable_history().add().unwrap();
    let server = server.spawn().unwrap();
    let text = counting::source(LAST) + &destination(&server.url(), folder.path(), "write = \"history\"\n");
    let stand = Stand::new(&text).await;
    stand
        .until_destination("up", |view| view.counters.sent >= u64::from(LAST) && view.counters.queued == 0)
        .await;
    let mut values = Vec::new();
    let key = "nsu=urn:example:up;s=Mirror/Count".into();
    store.read(&key, Span::ALL, Order::Forward, ReadLimit::NONE, &mut values).unwrap();
    let recorded: Vec<(i64, i64)> = values
        .iter()
        .filter(|value| value.status.is_good())
        .filter_map(|value| {
            Some((value.source.unix_nanos() as i64 / 1_000_000_000, value.value.as_f64()? as i64))
        })
        .filter(|(_, number)| *number > 0)
        .collect();
    let expected: Vec<(i64, i64)> =
        (1..=i64::from(LAST)).map(|number| (1_700_000_000 + number, number)).collect();
    assert_eq!(recorded, expected);
    stand.end().await;
    server.stop(Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_wait_while_the_settings_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let written = Written::default();
    let server = other("127.0.0.1:0", &written);
    let text = counting::source(20)
        + &destination(
            &server.url(),
            folder.path(),
            "nodes = [\"counter/Count = nsu=urn:example:up;s=None\"]\n",
        );
    let stand = Stand::new(&text).await;
    stand
        .until_destination("up", |view| {
            let error = view.counters.last_error.clone().unwrap_or_default();
            view.counters.queued >= 20 && error.contains("counter/Count: cannot find")
        })
        .await;
    let counted = stand.destination("up").counters;
    assert_eq!((counted.sent, counted.refused), (0, 0), "{counted:?}");
    assert!(written.lock().unwrap().is_empty());
    stand.end().await;
    server.stop(Duration::from_secs(1));
}
