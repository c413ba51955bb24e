//! A common interface to the MQTT library for both protocol versions.

use super::Broker;
use crate::fault::{Fault, plain};
use core::time::Duration;
use rumqttc::{Transport, v5};

/// Most requests queued for the connection.
const QUEUE: usize = 1024;
/// Most bytes of a packet in addition to its payload.
const HEADER_MAX: usize = 70_000;
/// Longest packet that is received from a broker of MQTT 3.1.1, which cannot be told a limit. The library cannot skip a packet: a
/// longer one ends the connection, and if the broker retains it, every following connection too. So messages that are longer than
/// `payload_max` are received and then dropped by the source, which names their topic.
const PACKET_MAX: usize = (64 << 20) + HEADER_MAX;

/// An event from a broker.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The connection is established.
    Connected,
    /// A message with its topic. The last value says whether the broker had retained it.
    Message(String, bytes::Bytes, bool),
    /// The broker rejected a filter.
    Refused,
    /// The broker has processed an unsubscription, and everything sent before it.
    Unsubscribed,
    /// The broker's answer to a message with QoS 1.
    Taken(Answer),
    /// Anything else.
    Other,
}

/// A broker's answer to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Accepted.
    Taken,
    /// Rejected permanently.
    Never(String),
    /// Rejected; the broker may accept it later.
    NotNow(String),
}

/// A message that the broker publishes with QoS 1 if the connection breaks.
#[derive(Debug, Clone)]
pub struct Will {
    /// Its topic.
    pub topic: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// Whether the broker retains it.
    pub retain: bool,
}

/// A connection to a broker: its sending and its receiving half.
pub struct Connection {
    /// The sending half.
    pub client: Client,
    /// The receiving half. Messages are only sent while it is polled.
    pub events: Events,
}

/// The sending half.
pub enum Client {
    /// MQTT 3.1.1
    V4(rumqttc::AsyncClient),
    /// MQTT 5
    V5(v5::AsyncClient),
}

/// The receiving half.
pub enum Events {
    /// MQTT 3.1.1
    V4(Box<rumqttc::EventLoop>),
    /// MQTT 5, with the broker's maximum packet size (MQTT 5 §3.2.2.3.6).
    V5(Box<v5::EventLoop>, Option<u32>),
}

/// Most bytes of a PUBLISH in addition to topic and payload: type, remaining length, topic length, packet id, and the length of
/// empty properties (MQTT 5 §3.3).
const PUBLISH_LEN: usize = 1 + 4 + 2 + 2 + 1;

/// The longest payload for a topic, given the maximum packet size.
#[must_use]
pub fn payload_room(packet_max: Option<usize>, topic: &str) -> usize {
    packet_max.map_or(usize::MAX, |most| most.saturating_sub(PUBLISH_LEN + topic.len()))
}

impl Connection {
    /// A connection that is opened when its events are polled. `filters` is the number of topic filters.
    ///
    /// # Errors
    /// A file of the settings cannot be read.
    pub fn new(mqtt: &Broker, deadline: Duration, filters: usize) -> Result<Self, Fault> {
        Self::with_will(mqtt, deadline, filters, None)
    }

    /// Like [`Self::new`], with a message that the broker publishes when the connection breaks.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_will(
        mqtt: &Broker,
        deadline: Duration,
        filters: usize,
        will: Option<Will>,
    ) -> Result<Self, Fault> {
        let tls = mqtt.is_tls.then(|| mqtt.tls.config()).transpose()?;
        let transport =
            tls.map(|config| Transport::tls_with_config(rumqttc::TlsConfiguration::Rustls(config)));
        let password = match &mqtt.user {
            Some((user, file)) => {
                let text = taktwerk_config::file::read_text(file, 4096);
                let text = text.map_err(|error| Fault::unreadable("password_file", file, &error))?;
                Some((user.clone(), text.trim_end_matches(['\r', '\n']).to_owned()))
            }
            None => None,
        };
        let seconds = deadline.as_secs().max(1);
        let requests = filters + QUEUE;
        Ok(if mqtt.is_v5 {
            let mut options = v5::MqttOptions::new(&mqtt.client_id, &mqtt.host, mqtt.port);
            options.set_keep_alive(mqtt.keep_alive).set_clean_start(true).set_connection_timeout(seconds);
            // The broker does not deliver longer messages, and continues with the others (MQTT 5 §3.1.2.11.4).
            options.set_max_packet_size(u32::try_from(mqtt.payload_max + HEADER_MAX).ok());
            if let Some(transport) = transport {
                options.set_transport(transport);
            }
            if let Some((user, password)) = password {
                options.set_credentials(user, password);
            }
            if let Some(Will { topic, payload, retain }) = will {
                let qos = v5::mqttbytes::QoS::AtLeastOnce;
                options.set_last_will(v5::mqttbytes::v5::LastWill::new(topic, payload, qos, retain, None));
            }
            let (client, events) = v5::AsyncClient::new(options, requests);
            Self { client: Client::V5(client), events: Events::V5(Box::new(events), None) }
        } else {
            let mut options = rumqttc::MqttOptions::new(&mqtt.client_id, &mqtt.host, mqtt.port);
            options.set_keep_alive(mqtt.keep_alive).set_clean_session(true);
            options.set_max_packet_size(PACKET_MAX, mqtt.payload_max + HEADER_MAX);
            if let Some(transport) = transport {
                options.set_transport(transport);
            }
            if let Some((user, password)) = password {
                options.set_credentials(user, password);
            }
            if let Some(Will { topic, payload, retain }) = will {
                let qos = rumqttc::QoS::AtLeastOnce;
                options.set_last_will(rumqttc::LastWill::new(topic, payload, qos, retain));
            }
            let (client, mut events) = rumqttc::AsyncClient::new(options, requests);
            let mut network = rumqttc::NetworkOptions::new();
            network.set_connection_timeout(seconds);
            network.set_tcp_nodelay(true);
            events.set_network_options(network);
            Self { client: Client::V4(client), events: Events::V4(Box::new(events)) }
        })
    }

    /// Sends DISCONNECT, so that the broker does not treat the end as a failure.
    pub async fn disconnect(mut self, target: &str) {
        let is_queued = self.client.disconnect();
        while is_queued && self.events.next(target).await.is_ok() {}
    }
}

impl Events {
    /// The broker's maximum packet size, if it has one. Known once connected.
    #[must_use]
    pub fn packet_max(&self) -> Option<usize> {
        match self {
            Self::V4(_) => None,
            Self::V5(_, most) => most.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        }
    }

    /// The next event.
    ///
    /// # Errors
    /// The connection failed or was lost.
    pub async fn next(&mut self, target: &str) -> Result<Incoming, Fault> {
        match self {
            Self::V4(events) => {
                use rumqttc::{Event, Packet, SubscribeReasonCode};
                match events.poll().await {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => Ok(Incoming::Connected),
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        Ok(Incoming::Message(publish.topic, publish.payload, publish.retain))
                    }
                    Ok(Event::Incoming(Packet::SubAck(answer))) => {
                        let is_taken =
                            |code: &SubscribeReasonCode| matches!(code, SubscribeReasonCode::Success(_));
                        Ok(if answer.return_codes.iter().all(is_taken) {
                            Incoming::Other
                        } else {
                            Incoming::Refused
                        })
                    }
                    Ok(Event::Incoming(Packet::PubAck(_))) => Ok(Incoming::Taken(Answer::Taken)),
                    Ok(Event::Incoming(Packet::UnsubAck(_))) => Ok(Incoming::Unsubscribed),
                    Ok(_) => Ok(Incoming::Other),
                    Err(rumqttc::ConnectionError::Io(error)) => Err(broken(target, &error)),
                    Err(rumqttc::ConnectionError::MqttState(rumqttc::StateError::Deserialization(
                        rumqttc::mqttbytes::Error::PayloadSizeLimitExceeded(len),
                    ))) => Err(oversized(target, len, PACKET_MAX)),
                    Err(error) => Err(explained(target, &error.to_string())),
                }
            }
            Self::V5(events, packet_max) => {
                use v5::Event;
                use v5::mqttbytes::v5::{Packet, SubscribeReasonCode};
                match events.poll().await {
                    Ok(Event::Incoming(Packet::ConnAck(answer))) => {
                        *packet_max = answer.properties.and_then(|it| it.max_packet_size);
                        Ok(Incoming::Connected)
                    }
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        let topic = String::from_utf8_lossy(&publish.topic).into_owned();
                        Ok(Incoming::Message(topic, publish.payload, publish.retain))
                    }
                    Ok(Event::Incoming(Packet::SubAck(answer))) => {
                        let is_taken =
                            |code: &SubscribeReasonCode| matches!(code, SubscribeReasonCode::Success(_));
                        Ok(if answer.return_codes.iter().all(is_taken) {
                            Incoming::Other
                        } else {
                            Incoming::Refused
                        })
                    }
                    Ok(Event::Incoming(Packet::PubAck(ack))) => Ok(Incoming::Taken(answer(ack.reason))),
                    Ok(Event::Incoming(Packet::UnsubAck(_))) => Ok(Incoming::Unsubscribed),
                    Ok(_) => Ok(Incoming::Other),
                    Err(v5::ConnectionError::Io(error)) => Err(broken(target, &error)),
                    Err(v5::ConnectionError::MqttState(v5::StateError::Deserialization(
                        v5::mqttbytes::Error::PayloadSizeLimitExceeded { pkt_size, max },
                    ))) => Err(oversized(target, pkt_size, usize::try_from(max).unwrap_or(usize::MAX))),
                    Err(error) => Err(explained(target, &error.to_string())),
                }
            }
        }
    }
}

impl Client {
    /// Sends DISCONNECT; false if the queue is full.
    fn disconnect(&self) -> bool {
        match self {
            Self::V4(client) => client.try_disconnect().is_ok(),
            Self::V5(client) => client.try_disconnect().is_ok(),
        }
    }

    /// Subscribes to a filter; false if the filter is invalid.
    pub fn subscribe(&self, filter: &str, qos: u8) -> bool {
        match self {
            Self::V4(client) => {
                let qos = rumqttc::qos(qos).unwrap_or(rumqttc::QoS::AtMostOnce);
                client.try_subscribe(filter, qos).is_ok()
            }
            Self::V5(client) => {
                let qos = v5::mqttbytes::qos(qos).unwrap_or(v5::mqttbytes::QoS::AtMostOnce);
                client.try_subscribe(filter, qos).is_ok()
            }
        }
    }

    /// Unsubscribes from a filter; false if the queue is full.
    pub fn unsubscribe(&self, filter: &str) -> bool {
        match self {
            Self::V4(client) => client.try_unsubscribe(filter).is_ok(),
            Self::V5(client) => client.try_unsubscribe(filter).is_ok(),
        }
    }

    /// Publishes a message; false if the queue is full.
    pub fn publish(&self, topic: &str, qos: u8, retain: bool, payload: impl Into<Vec<u8>>) -> bool {
        let payload: Vec<u8> = payload.into();
        match self {
            Self::V4(client) => {
                let qos = rumqttc::qos(qos).unwrap_or(rumqttc::QoS::AtMostOnce);
                client.try_publish(topic, qos, retain, payload).is_ok()
            }
            Self::V5(client) => {
                let qos = v5::mqttbytes::qos(qos).unwrap_or(v5::mqttbytes::QoS::AtMostOnce);
                client.try_publish(topic, qos, retain, payload).is_ok()
            }
        }
    }
}

/// MQTT 5 §3.4.2.1
fn answer(reason: v5::mqttbytes::v5::PubAckReason) -> Answer {
    use v5::mqttbytes::v5::PubAckReason as Reason;
    match reason {
        Reason::Success | Reason::NoMatchingSubscribers => Answer::Taken,
        Reason::TopicNameInvalid => Answer::Never("the broker refuses the topic".to_owned()),
        Reason::PayloadFormatInvalid => Answer::Never("the broker refuses the payload".to_owned()),
        Reason::NotAuthorized => {
            Answer::NotNow("the broker does not let this user write to the topic".to_owned())
        }
        Reason::QuotaExceeded => Answer::NotNow("the broker's quota is exceeded".to_owned()),
        other => Answer::NotNow(format!("the broker does not take a message: {other:?}")),
    }
}

fn broken(target: &str, error: &std::io::Error) -> Fault {
    Fault::Connect { target: target.to_owned(), reason: plain(error) }
}

/// The topic is not known: it is in the packet that was not read.
fn oversized(target: &str, len: usize, most: usize) -> Fault {
    let reason = format!(
        "the broker sends a message of {len} bytes, more than {most}, and no connection gets past it; remove it if the broker \
         retains it, or exclude its topic from those of the tags"
    );
    Fault::other(target, reason)
}

/// A message that is longer than the setting of a source.
pub fn too_long(topic: &str, payload_max: usize) -> Fault {
    let reason = format!(
        "a message has more than {payload_max} bytes and is dropped; increase payload_max if it is needed"
    );
    Fault::other(topic, reason)
}

fn explained(target: &str, error: &str) -> Fault {
    let advice = match error {
        text if text.contains("BadUserNamePassword") || text.contains("NotAuthorized") => {
            "the broker refuses the user; check user and password_file"
        }
        text if text.contains("Network timeout") => "it does not answer",
        text if text.contains("ConnectionAborted") || text.contains("closed by peer") => {
            "the broker closed the connection"
        }
        text => crate::tls::advice(text).unwrap_or(text),
    };
    Fault::other(target, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use v5::mqttbytes::QoS;
    use v5::mqttbytes::v5::Publish;

    #[test]
    fn the_largest_payload_fits_into_a_packet() {
        assert_eq!((payload_room(None, "a"), payload_room(Some(5), "a/b")), (usize::MAX, 0));
        for most in [40, 200, 20_000, 70_000] {
            let topic = "plant/oven";
            let room = payload_room(Some(most), topic);
            let mut publish = Publish::new(topic, QoS::AtLeastOnce, vec![0; room], None);
            publish.pkid = 1;
            let mut packet = bytes::BytesMut::new();
            publish.write(&mut packet).unwrap();
            assert!(packet.len() <= most && packet.len() + 4 > most, "{most}: {}", packet.len());
        }
    }
}
