//! Sources of values: a device that hangs affects only its own values.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use taktwerk::{Client, RunningServer, Server, StatusCode, UtcTime};

const SOON: Duration = Duration::from_secs(20);

/// A blocking operation that can be released.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, std::sync::Condvar)>);

impl Gate {
    fn pass(&self) {
        let (open, opened) = &*self.0;
        let guard = open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_while(guard, |open| !*open).unwrap());
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

async fn within<T>(limit: Duration, what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, wait).await.unwrap_or_else(|_| panic!("{what}: not within {limit:?}"))
}

async fn log_on(server: &RunningServer) -> Client {
    let client = Client::builder(&server.url()).unsecured().user("joe", "secret").allow_plaintext_password();
    within(SOON, "the login", client.connect()).await.unwrap()
}

fn age(time: Option<UtcTime>) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = UtcTime::from_unix(now);
    Duration::from_nanos((now.ticks() - time.unwrap().ticks()).max(0) as u64 * 100)
}

/// 49 devices answer, one hangs, and so do ten variables with their own sources, more than there are worker threads.
#[tokio::test]
async fn a_device_that_hangs_affects_only_its_own_values() {
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .users(|name: &str, password: &[u8]| {
            if (name, password) == ("joe", b"secret") {
                Ok(())
            } else {
                Err(StatusCode::BAD_USER_ACCESS_DENIED)
            }
        })
        .allow_clear_passwords()
        .build()
        .unwrap();
    let plant = server.namespace("urn:plant").objects();
    let gate = Gate::default();
    for number in 0..50 {
        let device = plant.folder(&format!("Device {number}")).unwrap();
        let values: Vec<_> =
            (0..4).map(|value| device.variable_of::<u64>(&format!("Value {value}")).add().unwrap()).collect();
        let (count, gate) = (AtomicU64::new(0), gate.clone());
        let source = server.source(&format!("device {number}")).variables(&values);
        let _source = source
            .interval(Duration::from_millis(50))
            .deadline(Duration::from_millis(500))
            .read_many(move |readings| {
                let round = count.fetch_add(1, Ordering::Relaxed);
                if number == 7 && round > 0 {
                    gate.pass();
                }
                (0..readings.len()).for_each(|position| readings.set(position, round));
                Ok(())
            })
            .unwrap();
    }
    for number in 0..10 {
        let gate = gate.clone();
        plant
            .variable(&format!("Slow {number}"), 0.0)
            .source_deadline(Duration::from_millis(300))
            .blocking_source(move || {
                gate.pass();
                Ok(1.0)
            })
            .add()
            .unwrap();
    }
    plant.method("Work").blocking_handler(|_, ()| Ok(())).unwrap();
    let server = server.spawn().unwrap();
    let client = log_on(&server).await;
    let slow = |number| format!("nsu=urn:plant;s=Slow {number}");
    let mut subscription = client.subscribe(Duration::from_millis(50)).await.unwrap();
    let mut devices = BTreeMap::new();
    for number in 0..50 {
        let item = subscription.monitor(format!("nsu=urn:plant;s=Device {number}/Value 0")).await.unwrap();
        devices.insert(item, number);
    }
    for number in 0..10 {
        subscription.monitor(slow(number)).await.unwrap();
    }
    // All of them hang by now.
    let asked = Instant::now();
    for number in 0..10 {
        let value = within(SOON, "the read", client.read(slow(number))).await.unwrap();
        assert_eq!(value.status(), StatusCode::BAD_NO_COMMUNICATION, "there was no value before");
    }
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    // Other clients log in and call methods.
    for _ in 0..10 {
        let other = log_on(&server).await;
        within(SOON, "the call", other.call::<(), ()>("i=85", "nsu=urn:plant;s=Work", ())).await.unwrap();
        within(SOON, "the end", other.disconnect()).await;
    }
    // The values of the other devices stay current.
    let mut current = BTreeSet::new();
    let end = Instant::now() + SOON;
    while current.len() < 49 && Instant::now() < end {
        let change = within(SOON, "a change", subscription.next_change()).await.unwrap();
        if let Some(number) = devices.get(&change.item)
            && *number != 7
        {
            assert!(change.value.status().is_good(), "{change:?}");
            if age(change.value.source_timestamp) < Duration::from_secs(1) {
                current.insert(*number);
            }
        }
    }
    assert_eq!(current.len(), 49, "{current:?}");
    let hanging = "nsu=urn:plant;s=Device 7/Value 3";
    let lost = async {
        while client.read(hanging).await.unwrap().status() != StatusCode::BAD_NO_COMMUNICATION {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(SOON, "the loss", lost).await;
    let value = client.read(hanging).await.unwrap();
    assert_eq!(value.status(), StatusCode::BAD_NO_COMMUNICATION, "and it stays so");
    assert!(age(value.source_timestamp) < Duration::from_secs(2), "{value:?}");
    // The device answers again.
    gate.open();
    let back = async {
        while !client.read(hanging).await.unwrap().status().is_good()
            || !client.read(slow(3)).await.unwrap().status().is_good()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(SOON, "the device", back).await;
}

/// A future that hangs is dropped; one that panics is called again; writes reach the device.
#[tokio::test]
async fn asynchronous_sources_and_writes() {
    let server = Server::builder().bind("127.0.0.1:0").anonymous().build().unwrap();
    let plant = server.namespace("urn:plant").objects();
    let values: Vec<_> = ["A", "B"].map(|name| plant.variable_of::<f64>(name).add().unwrap()).into();
    let device = Arc::new(Mutex::new([1.0, 2.0]));
    let (read, written) = (Arc::clone(&device), Arc::clone(&device));
    let rounds = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&rounds);
    let source = server
        .source("device")
        .variables(&values)
        .interval(Duration::from_millis(50))
        .deadline(Duration::from_millis(200))
        .write_many_async(move |values| {
            let written = Arc::clone(&written);
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                for (position, value) in values {
                    written.lock().unwrap()[position] = value.value.and_then(|value| value.as_f64()).unwrap();
                }
                Ok(())
            }
        })
        .read_many_async(move |mut readings| {
            let (read, rounds) = (Arc::clone(&read), Arc::clone(&rounds));
            async move {
                match rounds.fetch_add(1, Ordering::Relaxed) {
                    1 => panic!("on purpose"),
                    3 => core::future::pending().await,
                    _ => {}
                }
                let values = *read.lock().unwrap();
                values.into_iter().enumerate().for_each(|(position, value)| readings.set(position, value));
                Ok(readings)
            }
        })
        .unwrap();
    let server = server.spawn().unwrap();
    let client = Client::builder(&server.url()).unsecured().connect().await.unwrap();
    let reaches = async |wanted: f64| {
        let reached = async {
            while client.read("nsu=urn:plant;s=B").await.unwrap().value.and_then(|value| value.as_f64())
                != Some(wanted)
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within(SOON, "the value", reached).await;
    };
    reaches(2.0).await;
    // After the one that panics and the one that hangs.
    let past = async {
        while counted.load(Ordering::Relaxed) < 5
            || !client.read("nsu=urn:plant;s=A").await.unwrap().status().is_good()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(SOON, "the next answers", past).await;
    client.write("nsu=urn:plant;s=B", 5.0).await.unwrap();
    reaches(5.0).await;
    assert_eq!(*device.lock().unwrap(), [1.0, 5.0]);
    source.stop();
    let value = client.read("nsu=urn:plant;s=B").await.unwrap();
    assert_eq!(value.status(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE);
    let refused = client.write("nsu=urn:plant;s=B", 6.0).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_NO_COMMUNICATION);
}

/// More hanging methods than threads do not delay a login, which uses other threads.
#[tokio::test]
async fn methods_that_hang_do_not_delay_logins() {
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .users(|name: &str, password: &[u8]| {
            if (name, password) == ("joe", b"secret") {
                Ok(())
            } else {
                Err(StatusCode::BAD_USER_ACCESS_DENIED)
            }
        })
        .allow_clear_passwords()
        .build()
        .unwrap();
    let gate = Gate::default();
    let held = gate.clone();
    let hangs = move |_: &taktwerk::CallContext, ()| {
        held.pass();
        Ok(())
    };
    server.namespace("urn:plant").objects().method("Hang").blocking_handler(hangs).unwrap();
    let server = server.spawn().unwrap();
    let client = log_on(&server).await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call::<(), ()>("i=85", "nsu=urn:plant;s=Hang", ()).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    for _ in 0..5 {
        within(SOON, "the end", log_on(&server).await.disconnect()).await;
    }
    assert!(calls.iter().all(|call| !call.is_finished()), "they still hang");
    gate.open();
    for call in calls {
        within(SOON, "the call", call).await.unwrap().unwrap();
    }
}
