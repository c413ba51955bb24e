//! A gateway with a real broker (mosquitto). Skipped if it is not installed.

use crate::missing;
use crate::stand::{MS, Stand};
use rumqttc::{Client as Publisher, MqttOptions, QoS};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taktwerk_gateway::offer::Question;
use taktwerk_gateway::{GatewayConfig, discover};
use taktwerk_types::{StatusCode, UtcTime};

struct Broker {
    program: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Broker {
    /// `None` if mosquitto is not installed.
    fn start(port: u16) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mosquitto.conf");
        std::fs::write(&file, format!("listener {port} 127.0.0.1\nallow_anonymous true\n")).unwrap();
        let program = ["mosquitto", "/usr/sbin/mosquitto"].iter().find_map(|name| {
            Command::new(name).arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        });
        let Some(program) = program else {
            missing::skip(missing::MOSQUITTO, "mosquitto is not installed (apt-get install mosquitto)");
            return None;
        };
        let end = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "mosquitto does not listen");
            std::thread::sleep(10 * MS);
        }
        Some(Self { program, port, _folder: folder })
    }

    fn publisher(&self) -> Publisher {
        let mut options = MqttOptions::new("test", "127.0.0.1", self.port);
        options.set_max_packet_size(10 << 20, 10 << 20);
        let (client, mut connection) = Publisher::new(options, 1000);
        std::thread::spawn(move || connection.iter().take_while(Result::is_ok).count());
        client
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn source(port: u16, version: &str) -> String {
    format!(
        "[[source]]\nname = \"mq\"\ntype = \"mqtt\"\nurl = \"mqtt://127.0.0.1:{port}\"\nversion = \"{version}\"\n\
         retry = \"50 ms\"\nretry_max = \"100 ms\"\nlost_after = \"1 s\"\nnodes_max = 20\nqos = 1\npayload_max = 1000\n"
    )
}

const TAGS: &str = r#"
[[tag]]
source = "mq"
name = "T"
topic = "oven/t"
scale = 0.1
[[tag]]
source = "mq"
name = "J"
topic = "oven/json"
json = "$.m.v"
time = "ts"
type = "Int32"
[[tag]]
source = "mq"
name = "{last}"
path = "Lines/{1}"
topic = "line/+/sensors/#"
[[tag]]
source = "mq"
name = "All"
topic = "oven/all"
expand = true
[[tag]]
source = "mq"
name = "Set"
topic = "oven/set/state"
write_topic = "oven/set/state"
write_payload = '{"v": {value}}'
json = "v"
access = "read-write"
[[tag]]
source = "mq"
name = "{last}"
path = "Wild/{parent}"
topic = "wild/#"
"#;

async fn messages_become_values(version: &str) {
    let Some(broker) = Broker::start(free_port()) else { return };
    let stand = Stand::new(&(source(broker.port, version) + TAGS)).await;
    let publisher = broker.publisher();
    while !stand.source("mq").statistics.is_connected {
        tokio::time::sleep(10 * MS).await;
    }
    let send = |topic: &str, payload: &str| {
        publisher.publish(topic, QoS::AtLeastOnce, true, payload.as_bytes().to_vec()).unwrap();
    };
    send("oven/t", "215");
    stand.value("mq/T", 21.5).await;
    send("oven/json", r#"{"m":{"v":7},"ts":1700000000}"#);
    stand.value("mq/J", 7).await;
    let time = stand.read("mq/J").await.source_timestamp;
    assert_eq!(time, UtcTime::parse("2023-11-14T22:13:20Z"));
    send("oven/json", r#"{"m":{"v":3000000000}}"#);
    stand.until("mq/J", |value| value.status() == StatusCode::BAD_TYPE_MISMATCH).await;
    send("oven/json", "no json");
    send("line/7/sensors/flow", "1.5");
    send("line/8/sensors/deep/name", "ON");
    let until = |name: &'static str| stand.until_there(name);
    until("Lines/7/flow").await;
    stand.value("Lines/7/flow", 1.5).await;
    until("Lines/8/name").await;
    stand.value("Lines/8/name", "ON").await;
    send("oven/all", r#"{"a":1,"b":{"c":true}}"#);
    until("mq/All/b/c").await;
    stand.value("mq/All/a", 1.0).await;
    stand.value("mq/All/b/c", true).await;
    stand.until("mq/Set", |value| value.status() == StatusCode::BAD_WAITING_FOR_INITIAL_DATA).await;
    stand.write("mq/Set", 12.5).await.unwrap();
    stand.value("mq/Set", 12.5).await;
    // A flood of topics creates no more variables than allowed; too large messages create none.
    for number in 0..100 {
        send(&format!("wild/{number}"), "1");
    }
    send("wild/large", &"x".repeat(2000));
    stand.until("Wild/wild/0", |value| value.status() == StatusCode::GOOD).await;
    tokio::time::sleep(300 * MS).await;
    let seen = stand.source("mq");
    assert_eq!(seen.tags, 20, "{seen:?}");
    assert!(seen.statistics.dropped >= 80, "{seen:?}");
    let port = broker.port;
    drop(broker);
    stand.until("mq/T", |value| value.status() == StatusCode::UNCERTAIN_LAST_USABLE_VALUE).await;
    stand.until("mq/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    let error = stand.source("mq").statistics.last_error.unwrap();
    assert!(error.contains(&format!("127.0.0.1:{port}")) && !error.contains("os error"), "{error}");
    let broker = Broker::start(port).unwrap();
    broker.publisher().publish("oven/t", QoS::AtLeastOnce, true, "300").unwrap();
    stand.value("mq/T", 30.0).await;
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_3_1_1_become_values() {
    messages_become_values("3.1.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_5_become_values() {
    messages_become_values("5").await;
}

/// A retained message that is longer than any packet that a source wants comes with every connection.
async fn an_oversized_retained_message_costs_only_itself(version: &str) {
    let Some(broker) = Broker::start(free_port()) else { return };
    let publisher = broker.publisher();
    let send = |topic: &str, payload: String| {
        publisher.publish(topic, QoS::AtLeastOnce, true, payload.into_bytes()).unwrap();
    };
    send("wild/huge", "1".repeat(3 << 20));
    send("oven/t", "215".to_owned());
    let stand = Stand::new(&(source(broker.port, version) + TAGS)).await;
    stand.value("mq/T", 21.5).await;
    // The connection stays, and other topics go on.
    for round in 0..20 {
        send("oven/t", round.to_string());
        stand.value("mq/T", f64::from(round) / 10.0).await;
    }
    let seen = stand.source("mq").statistics;
    assert!(seen.is_connected, "{seen:?}");
    // A broker of version 5 knows the limit and does not send the message.
    if version == "3.1.1" {
        let error = seen.last_error.clone().unwrap_or_default();
        assert!(error.contains("wild/huge: a message has more than 1000 bytes"), "{seen:?}");
        assert_eq!((seen.errors, seen.dropped), (1, 1), "{seen:?}");
    } else {
        assert_eq!((seen.errors, seen.last_error.clone()), (0, None), "{seen:?}");
    }
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_retained_messages_of_3_1_1_are_dropped() {
    an_oversized_retained_message_costs_only_itself("3.1.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_retained_messages_of_5_are_dropped() {
    an_oversized_retained_message_costs_only_itself("5").await;
}

#[test]
fn topics_of_a_broker_are_listed() {
    let Some(broker) = Broker::start(free_port()) else { return };
    let publisher = broker.publisher();
    // The broker retains the messages.
    publisher.publish("line/1/temperature", QoS::AtLeastOnce, true, "20.5").unwrap();
    publisher.publish("line/1/state", QoS::AtLeastOnce, true, "{\"speed\": 3, \"mode\": \"auto\"}").unwrap();
    publisher.publish("other", QoS::AtLeastOnce, true, "x").unwrap();
    for version in ["3.1.1", "5"] {
        let text = source(broker.port, version);
        let mut config = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
        let source = &mut config.sources[0];
        let question = Question {
            settings: source.settings.clone(),
            within: Duration::from_secs(1),
            below: Some("line/#".to_owned()),
            most: 100,
            stop: Arc::default(),
        };
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let offers = discover::offers(source, &question).unwrap();
            let told: Vec<&str> = offers.iter().map(|offer| offer.address.as_str()).collect();
            // Messages may still be on their way to the broker.
            if told == ["line/1/state $.mode", "line/1/state $.speed", "line/1/temperature"] {
                break;
            }
            assert!(Instant::now() < end, "{told:?}");
        }
    }
}
