//! A gateway as Sparkplug B edge node with a real broker (mosquitto), which is stopped and restarted, and with our own and a
//! foreign host. Skipped if the broker is not installed.

use crate::broker::{Broker, free_port};
use crate::counting;
use crate::device::Device;
use crate::foreign::Foreign;
use crate::stand::{MS, Stand};
use prost::Message;
use rumqttc::{Client, Event, MqttOptions, Packet, QoS};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use taktwerk_gateway::sparkplug::payload::{Metric, Payload, Value, rebirth};
use taktwerk_types::StatusCode;

const LAST: u32 = 2000;
const LIMIT: Duration = Duration::from_secs(60);

fn destination(port: u16, folder: &Path, more: &str) -> String {
    format!(
        "[[destination]]\nname = \"edge\"\ntype = \"sparkplug\"\nurl = \"mqtt://127.0.0.1:{port}\"\ngroup = \"G\"\n\
         node = \"E\"\nqueue = {:?}\nretry = \"20 ms\"\nretry_max = \"100 ms\"\nflush = \"10 ms\"\nbatch_max = 300\n{more}",
        folder.join("q.db").display().to_string(),
    )
}

/// A host application that publishes its online state once it listens.
struct Host {
    client: Client,
    messages: Receiver<(String, Payload)>,
}

impl Host {
    fn start(port: u16) -> Self {
        let mut options = MqttOptions::new("scada", "127.0.0.1", port);
        options.set_inflight(1000);
        let (client, mut connection) = Client::new(options, 100);
        let (out, messages) = channel();
        let own = client.clone();
        std::thread::spawn(move || {
            for event in connection.iter() {
                match event {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => {
                        own.try_subscribe("spBv1.0/G/#", QoS::AtLeastOnce).unwrap();
                    }
                    Ok(Event::Incoming(Packet::SubAck(_))) => {
                        let state = r#"{"online":true,"timestamp":1}"#;
                        own.try_publish("spBv1.0/STATE/scada", QoS::AtLeastOnce, true, state).unwrap();
                    }
                    Ok(Event::Incoming(Packet::Publish(message))) => {
                        let payload = Payload::decode(&*message.payload).unwrap();
                        assert!(!message.retain);
                        if out.send((message.topic, payload)).is_err() {
                            return;
                        }
                    }
                    Ok(_) => {}
                    Err(_) => std::thread::sleep(20 * MS),
                }
            }
        });
        Self { client, messages }
    }

    fn next(&self) -> (String, Payload) {
        self.messages.recv_timeout(LIMIT).unwrap()
    }

    fn until(&self, topic: &str) -> Payload {
        loop {
            let (found, payload) = self.next();
            if found == topic {
                return payload;
            }
        }
    }
}

fn session(payload: &Payload) -> Value {
    let metric = payload.metrics.iter().find(|metric| metric.name.as_deref() == Some("bdSeq"));
    metric.unwrap().value.clone().unwrap()
}

/// Received values of the counter.
#[derive(Default)]
struct Seen {
    seq: Option<u64>,
    names: HashMap<u64, String>,
    numbers: Vec<u64>,
    historical: usize,
    births: usize,
    current: u64,
}

impl Seen {
    fn take(&mut self, topic: &str, payload: &Payload) {
        match topic.split('/').nth(2).unwrap() {
            "NDEATH" => {
                self.seq = None;
                return;
            }
            "NCMD" => return,
            "NBIRTH" => {
                assert_eq!(payload.seq, Some(0));
                self.names.clear();
                self.births += 1;
            }
            _ => assert_eq!(payload.seq, self.seq.map(|seq| (seq + 1) % 256), "{topic}"),
        }
        self.seq = payload.seq;
        let is_data = topic.contains("DATA/");
        for metric in &payload.metrics {
            if let (Some(name), Some(alias)) = (&metric.name, metric.alias) {
                self.names.insert(alias, name.clone());
            }
            let Some(alias) = metric.alias else { continue };
            assert_eq!(self.names[&alias], "Count");
            let Some(Value::Long(number)) = metric.value else { continue };
            let is_historical = metric.is_historical.unwrap_or(false);
            if !is_historical {
                self.current = number;
            }
            // Births repeat values of data messages.
            if is_data {
                self.historical += usize::from(is_historical);
                self.numbers.push(number);
            }
        }
    }

    fn last(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_reach_a_host_across_restarts_of_the_broker() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(broker) = Broker::start(folder.path(), port, "") else { return };
    let host = Host::start(port);
    let more = "primary_host = \"scada\"\nhistorical_after = \"200 ms\"\n";
    let text = counting::source(LAST) + &destination(port, folder.path(), more);
    let stand = Stand::new(&text).await;
    let mut seen = Seen::default();
    let mut broker = Some(broker);
    for until in [50, 600] {
        while seen.last() < until {
            let (topic, payload) = host.next();
            seen.take(&topic, &payload);
        }
        broker.take().unwrap().stop();
        let failed = stand.destination("edge").counters.errors;
        stand
            .until_destination("edge", |view| view.counters.errors > failed && view.counters.queued > 200)
            .await;
        broker = Broker::start(folder.path(), port, "");
        // Messages of the previous connection may have been lost with the broker.
        while let Ok((topic, payload)) = host.messages.recv_timeout(LIMIT) {
            let is_birth = topic == "spBv1.0/G/NBIRTH/E";
            seen.take(&topic, &payload);
            if is_birth {
                break;
            }
        }
    }
    while seen.last() < u64::from(LAST) || seen.current < u64::from(LAST) {
        let (topic, payload) = host.next();
        seen.take(&topic, &payload);
    }
    stand
        .until_destination("edge", |view| {
            view.counters.queued == 0 && view.counters.sent == view.counters.accepted
        })
        .await;
    // An unconfirmed batch is sent again completely, followed by the next.
    let mut all: Vec<u64> = vec![0];
    for number in &seen.numbers {
        let is_next = *number == all.last().unwrap() + 1;
        assert!(is_next || all.contains(number), "{number} after {:?}", all.last());
        if is_next {
            all.push(*number);
        }
    }
    assert_eq!(all.len() as u32, LAST + 1);
    assert!(seen.historical > 100 && seen.births >= 3, "{} {}", seen.historical, seen.births);
    let counted = stand.destination("edge").counters;
    assert_eq!((counted.sent, counted.refused, counted.overrun), (counted.accepted, 0, 0), "{counted:?}");
    // A new host requests a rebirth.
    let metrics = |payload: &Payload| payload.metrics.iter().find(|metric| metric.alias.is_some()).cloned();
    host.client.publish("spBv1.0/G/NCMD/E", QoS::AtMostOnce, false, rebirth(1)).unwrap();
    let born = host.until("spBv1.0/G/NBIRTH/E");
    let metric: Metric = metrics(&host.until("spBv1.0/G/DBIRTH/E/counter")).unwrap();
    assert_eq!((metric.name.as_deref(), metric.datatype), (Some("Count"), Some(4)));
    assert_eq!(metric.value, Some(Value::Long(u64::from(LAST))));
    // Many requests do not cause many births.
    let started = Instant::now();
    let (mut asked, mut births) = (0, 0);
    for _ in 0..300 {
        host.client.publish("spBv1.0/G/NCMD/E", QoS::AtMostOnce, false, rebirth(1)).unwrap();
    }
    while asked < 300 || births == 0 {
        let (topic, _) = host.next();
        asked += u64::from(topic == "spBv1.0/G/NCMD/E");
        births += u64::from(topic == "spBv1.0/G/NBIRTH/E");
    }
    // The broker publishes the death of the same session.
    stand.end().await;
    let died = loop {
        let (topic, payload) = host.next();
        births += u64::from(topic == "spBv1.0/G/NBIRTH/E");
        if topic == "spBv1.0/G/NDEATH/E" {
            break payload;
        }
    };
    assert!(births <= started.elapsed().as_secs() + 2, "{births} births");
    assert_eq!((session(&died), died.seq), (session(&born), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn our_host_shows_the_values_of_our_edge_node() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let url = format!("url = \"mqtt://127.0.0.1:{port}\"\n");
    let host =
        Stand::new(&format!("[[source]]\nname = \"sp\"\ntype = \"sparkplug\"\n{url}host_id = \"scada\"\n"))
            .await;
    let more = "primary_host = \"scada\"\nversion = \"5\"\n";
    let edge = Stand::new(&(counting::source(300) + &destination(port, folder.path(), more))).await;
    host.until_there("sp/G/E/counter/Count").await;
    host.value("sp/G/E/counter/Count", 300i64).await;
    assert_eq!(host.source("sp").statistics.invalid, 0);
    edge.end().await;
    host.until("sp/G/E/counter/Count", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    host.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_wait_for_the_primary_host() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let text = counting::source(50) + &destination(port, folder.path(), "primary_host = \"scada\"\n");
    let stand = Stand::new(&text).await;
    let is_told = |error: &Option<String>| {
        error.as_ref().is_some_and(|error| error.contains("the primary host \"scada\" is offline"))
    };
    stand
        .until_destination("edge", |view| view.counters.queued >= 50 && is_told(&view.counters.last_error))
        .await;
    assert_eq!(stand.destination("edge").counters.sent, 0);
    let host = Host::start(port);
    host.until("spBv1.0/G/NBIRTH/E");
    stand.until_destination("edge", |view| view.counters.sent == 50).await;
    host.client.publish("spBv1.0/STATE/scada", QoS::AtLeastOnce, true, r#"{"online":false}"#).unwrap();
    host.until("spBv1.0/G/NDEATH/E");
    stand.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_another_library_understands_our_edge_node() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let Some(mut host) = Foreign::start("host.py", &[&port.to_string(), "G"]) else { return };
    host.until("READY");
    let program = r#"echo '{"name":"T","value":21.5}'; echo '{"name":"Text","value":"x"}'; echo '{"name":"On","value":true}'; \
                     echo '{"name":"List","value":[1.5,2.5]}'; exec sleep 1000"#;
    let tag = |name: &str, kind: &str| {
        format!("[[tag]]\nsource = \"s\"\nname = \"{name}\"\npath = \"Line 1/Oven\"\ntype = \"{kind}\"\n")
    };
    let text =
        format!("[[source]]\nname = \"s\"\ntype = \"program\"\ncommand = [\"sh\", \"-c\", {program:?}]\n")
            + &tag("T", "Double")
            + &tag("Text", "String")
            + &tag("On", "Boolean")
            + &tag("List", "Double").replace("Double\"", "Double\"\narray = true");
    let stand = Stand::new(&(text + &destination(port, folder.path(), ""))).await;
    stand.until_destination("edge", |view| view.counters.sent >= 4).await;
    writeln!(host.input(), "E").unwrap();
    for line in ["NBIRTH -", "  Node Control/Rebirth = False", "DBIRTH Line 1"] {
        host.until(line);
    }
    for line in ["  Oven/List = (1.5, 2.5)", "  Oven/On = True", "  Oven/T = 21.5", "  Oven/Text = x"] {
        host.until(line);
    }
    stand.end().await;
    host.until("NDEATH -");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_write_tags_only_if_commands_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let device = Device::start(20);
    device.holding.lock().unwrap()[1] = 5;
    let tag = |name: &str, address: u32, access: &str| {
        format!(
            "[[tag]]\nsource = \"s\"\nname = \"{name}\"\npath = \"Line 1\"\naddress = \"holding:{address}\"\naccess = \"{access}\"\n"
        )
    };
    let text = format!(
        "[[source]]\nname = \"s\"\ntype = \"modbus\"\naddress = \"{}\"\ninterval = \"30 ms\"\nstale_after = \"5 s\"\n{}{}",
        device.address,
        tag("Setpoint", 0, "read-write"),
        tag("Level", 1, "read"),
    );
    let host = Host::start(port);
    let command = |name: &str, number: u32, retain: bool| {
        let metrics = vec![Metric::new(name, 7, Value::Int(number))];
        let payload = Payload { timestamp: Some(1), metrics, seq: None };
        host.client
            .publish("spBv1.0/G/DCMD/E/Line 1", QoS::AtLeastOnce, retain, payload.encode_to_vec())
            .unwrap();
    };
    let holding = |at: usize| device.holding.lock().unwrap()[at];
    // The host has subscribed when it hears itself.
    let is_heard = || {
        let ping = Payload::default().encode_to_vec();
        host.client.publish("spBv1.0/G/NDATA/ping", QoS::AtLeastOnce, false, ping).unwrap();
        host.messages.recv_timeout(100 * MS).is_ok()
    };
    while !is_heard() {}
    // A retained command of the past is not carried out.
    command("Setpoint", 66, true);
    for (more, is_allowed) in [("", false), ("commands = true\n", true)] {
        let stand = Stand::new(&(text.clone() + &destination(port, folder.path(), more))).await;
        let born = host.until("spBv1.0/G/DBIRTH/E/Line 1");
        let setpoint = born.metrics.iter().find(|metric| metric.name.as_deref() == Some("Setpoint")).unwrap();
        // Refused: not writable, unknown, and of another type.
        command("Level", 7, false);
        command("Nothing", 7, false);
        command("Setpoint", 70_000, false);
        command("Setpoint", 42, false);
        if is_allowed {
            let is_set =
                |metric: &Metric| metric.alias == setpoint.alias && metric.value == Some(Value::Int(42));
            while !host.until("spBv1.0/G/DDATA/E/Line 1").metrics.iter().any(is_set) {}
            assert_eq!(holding(0), 42);
        } else {
            // Commands are processed in order: a birth after them shows that they were.
            host.client.publish("spBv1.0/G/NCMD/E", QoS::AtLeastOnce, false, rebirth(1)).unwrap();
            host.until("spBv1.0/G/DBIRTH/E/Line 1");
            assert_eq!(holding(0), 0);
        }
        assert_eq!(holding(1), 5);
        stand.end().await;
        host.until("spBv1.0/G/NDEATH/E");
    }
}
