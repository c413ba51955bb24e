//! A gateway as Sparkplug B host application with a real broker (mosquitto) and an edge node. Skipped if the broker is not
//! installed.

use crate::broker::{Broker, free_port};
use crate::foreign::Foreign;
use crate::stand::{MS, Stand};
use prost::Message;
use rumqttc::{Client, Event, MqttOptions, Packet, QoS};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use taktwerk_gateway::sparkplug::payload::{Metric, Payload, Value};
use taktwerk_types::{StatusCode, UtcTime};

/// An edge node with a device.
struct Edge {
    client: Client,
    incoming: Receiver<(String, Vec<u8>)>,
    seq: u64,
}

impl Edge {
    fn connect(port: u16) -> Self {
        let (client, mut connection) = Client::new(MqttOptions::new("edge", "127.0.0.1", port), 100);
        client.subscribe("spBv1.0/+/NCMD/#", QoS::AtLeastOnce).unwrap();
        client.subscribe("spBv1.0/+/DCMD/#", QoS::AtLeastOnce).unwrap();
        client.subscribe("spBv1.0/STATE/#", QoS::AtLeastOnce).unwrap();
        let (out, incoming) = channel();
        std::thread::spawn(move || {
            for event in connection.iter().map_while(Result::ok) {
                if let Event::Incoming(Packet::Publish(message)) = event
                    && out.send((message.topic, message.payload.to_vec())).is_err()
                {
                    return;
                }
            }
        });
        Self { client, incoming, seq: 0 }
    }

    fn tell(&mut self, topic: &str, metrics: Vec<Metric>) {
        let payload = Payload { timestamp: Some(1_700_000_000_000), metrics, seq: Some(self.seq) };
        self.seq = (self.seq + 1) % 256;
        let topic = format!("spBv1.0/{topic}");
        self.client.publish(topic, QoS::AtLeastOnce, false, payload.encode_to_vec()).unwrap();
    }

    fn birth(&mut self) {
        self.seq = 0;
        let session = Metric::new("bdSeq", 8, Value::Long(0));
        self.tell("Plant/NBIRTH/Edge", vec![session, Metric::new("Uptime", 8, Value::Long(7))]);
        let temperature = Metric::new("Oven/Temperature", 9, Value::Float(20.5));
        let setpoint = Metric::new("Setpoint", 3, Value::Int(-5i32 as u32));
        let device = vec![Metric { alias: Some(1), ..temperature }, Metric { alias: Some(2), ..setpoint }];
        self.tell("Plant/DBIRTH/Edge/PLC", device);
    }

    /// Waits for a message with a topic.
    fn next(&self, topic: &str) -> Vec<u8> {
        loop {
            let (found, payload) = self.incoming.recv_timeout(Duration::from_secs(20)).unwrap();
            if found == topic {
                return payload;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edge_node_is_followed_from_birth_to_death() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    for version in ["3.1.1", "5"] {
        let text = format!(
            "[[source]]\nname = \"sp\"\ntype = \"sparkplug\"\nurl = \"mqtt://127.0.0.1:{}\"\nversion = \"{version}\"\n\
             groups = [\"Plant\"]\nhost_id = \"scada-{version}\"\nwritable = true\nretry = \"50 ms\"\n\
             [[tag]]\nsource = \"sp\"\nname = \"T\"\ngroup = \"Plant\"\nnode = \"Edge\"\ndevice = \"PLC\"\nmetric = \"Oven/Temperature\"\n\
             scale = 2\nunits = \"°C\"\n",
            port
        );
        let mut edge = Edge::connect(port);
        let stand = Stand::new(&text).await;
        let state = edge.next(&format!("spBv1.0/STATE/scada-{version}"));
        assert!(String::from_utf8(state).unwrap().starts_with("{\"online\":true,\"timestamp\":"));
        // The host does not know the node, so it requests a rebirth.
        edge.seq = 42;
        edge.tell("Plant/NDATA/Edge", vec![Metric::new("Uptime", 8, Value::Long(8))]);
        let command = Payload::decode(edge.next("spBv1.0/Plant/NCMD/Edge").as_slice()).unwrap();
        assert_eq!(command.metrics[0].name.as_deref(), Some("Node Control/Rebirth"));
        assert_eq!(command.metrics[0].value, Some(Value::Boolean(true)));
        edge.birth();
        stand.until_there("sp/Plant/Edge/PLC/Setpoint").await;
        stand.value("sp/T", 41.0).await;
        stand.value("sp/Plant/Edge/Uptime", 7u64).await;
        stand.value("sp/Plant/Edge/PLC/Setpoint", -5i32).await;
        let alias = |alias, value| Metric { alias: Some(alias), value: Some(value), ..Metric::default() };
        edge.tell("Plant/DDATA/Edge/PLC", vec![alias(1, Value::Float(21.0))]);
        stand.value("sp/T", 42.0).await;
        stand.write("sp/Plant/Edge/PLC/Setpoint", -7i32).await.unwrap();
        let command = Payload::decode(edge.next("spBv1.0/Plant/DCMD/Edge/PLC").as_slice()).unwrap();
        let written = &command.metrics[0];
        assert_eq!((written.name.as_deref(), written.datatype), (Some("Setpoint"), Some(3)));
        assert_eq!(written.value, Some(Value::Int(-7i32 as u32)));
        edge.tell("Plant/DDEATH/Edge/PLC", Vec::new());
        stand.until("sp/T", |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
        stand.value("sp/Plant/Edge/Uptime", 7u64).await;
        // A birth restores it, with the same variable.
        edge.birth();
        stand.value("sp/T", 41.0).await;
        assert_eq!(stand.source("sp").tags, 3);
        stand.end().await;
        let gone = edge.next(&format!("spBv1.0/STATE/scada-{version}"));
        assert!(String::from_utf8(gone).unwrap().starts_with("{\"online\":false"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edge_node_of_another_library_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_broker) = Broker::start(folder.path(), port, "") else { return };
    let text = format!(
        "[[source]]\nname = \"sp\"\ntype = \"sparkplug\"\nurl = \"mqtt://127.0.0.1:{}\"\nwritable = true\n",
        port
    );
    let stand = Stand::new(&text).await;
    while !stand.source("sp").statistics.is_connected {
        tokio::time::sleep(10 * MS).await;
    }
    let Some(edge) = Foreign::start("edge.py", &[&port.to_string()]) else { return };
    edge.until("READY");
    stand.until_there("sp/G/E/D/Oven/T").await;
    stand.value("sp/G/E/D/Oven/T", 21.5).await;
    stand.value("sp/G/E/D/Set", -5i32).await;
    stand.value("sp/G/E/D/Curve", vec![1i16, -2, 3]).await;
    stand.value("sp/G/E/D/Name", "x").await;
    stand
        .until("sp/G/E/D/When", |value| value.value == Some(UtcTime::from_unix(JANUARY_2_2024).into()))
        .await;
    stand.value("sp/G/E/Uptime", 5u64).await;
    stand.write("sp/G/E/D/Set", 42i32).await.unwrap();
    edge.until("COMMAND spBv1.0/G/DCMD/E/D Set 42");
    // The broker publishes its death.
    drop(edge);
    for name in ["sp/G/E/Uptime", "sp/G/E/D/Oven/T"] {
        stand.until(name, |value| value.status() == StatusCode::BAD_NO_COMMUNICATION).await;
    }
    stand.end().await;
}

const JANUARY_2_2024: Duration = Duration::from_secs(1_704_153_600);
