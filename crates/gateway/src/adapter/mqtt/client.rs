//! The MQTT library, both versions alike.

use super::Mqtt;
use crate::fault::{Fault, plain};
use core::time::Duration;
use rumqttc::{Transport, v5};

/// Requests that wait for the connection.
const QUEUE: usize = 1024;
/// What a packet has besides its payload, at most.
const HEADER_MAX: usize = 70_000;

/// What comes from a broker.
#[derive(Debug)]
pub(super) enum Incoming {
    Connected,
    Message(String, bytes::Bytes),
    /// A filter is refused.
    Refused,
    Other,
}

/// A connection to a broker.
pub(super) enum Connection {
    V4(rumqttc::AsyncClient, Box<rumqttc::EventLoop>),
    V5(v5::AsyncClient, Box<v5::EventLoop>),
}

impl Connection {
    pub(super) fn new(mqtt: &Mqtt, deadline: Duration) -> Result<Self, Fault> {
        let tls = mqtt.is_tls.then(|| crate::tls::client(mqtt.ca_file.as_deref())).transpose()?;
        let transport =
            tls.map(|config| Transport::tls_with_config(rumqttc::TlsConfiguration::Rustls(config)));
        let password = match &mqtt.user {
            Some((user, file)) => {
                let text = taktwerk_config::file::read_text(file, 4096);
                let text = text.map_err(|error| Fault::connect(file.display().to_string(), &error))?;
                Some((user.clone(), text.trim_end_matches(['\r', '\n']).to_owned()))
            }
            None => None,
        };
        let seconds = deadline.as_secs().max(1);
        let filters = mqtt.maps.len() + QUEUE;
        Ok(if mqtt.is_v5 {
            let mut options = v5::MqttOptions::new(&mqtt.client_id, &mqtt.host, mqtt.port);
            options.set_keep_alive(mqtt.keep_alive).set_clean_start(true).set_connection_timeout(seconds);
            options.set_max_packet_size(u32::try_from(mqtt.payload_max + HEADER_MAX).ok());
            if let Some(transport) = transport {
                options.set_transport(transport);
            }
            if let Some((user, password)) = password {
                options.set_credentials(user, password);
            }
            let (client, events) = v5::AsyncClient::new(options, filters);
            Self::V5(client, Box::new(events))
        } else {
            let mut options = rumqttc::MqttOptions::new(&mqtt.client_id, &mqtt.host, mqtt.port);
            options.set_keep_alive(mqtt.keep_alive).set_clean_session(true);
            options.set_max_packet_size(mqtt.payload_max + HEADER_MAX, mqtt.payload_max + HEADER_MAX);
            if let Some(transport) = transport {
                options.set_transport(transport);
            }
            if let Some((user, password)) = password {
                options.set_credentials(user, password);
            }
            let (client, mut events) = rumqttc::AsyncClient::new(options, filters);
            let mut network = rumqttc::NetworkOptions::new();
            network.set_connection_timeout(seconds);
            network.set_tcp_nodelay(true);
            events.set_network_options(network);
            Self::V4(client, Box::new(events))
        })
    }

    /// What comes next.
    pub(super) async fn next(&mut self, target: &str) -> Result<Incoming, Fault> {
        match self {
            Self::V4(_, events) => {
                use rumqttc::{Event, Packet, SubscribeReasonCode};
                match events.poll().await {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => Ok(Incoming::Connected),
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        Ok(Incoming::Message(publish.topic, publish.payload))
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
                    Ok(_) => Ok(Incoming::Other),
                    Err(rumqttc::ConnectionError::Io(error)) => Err(broken(target, &error)),
                    Err(error) => Err(explained(target, &error.to_string())),
                }
            }
            Self::V5(_, events) => {
                use v5::Event;
                use v5::mqttbytes::v5::{Packet, SubscribeReasonCode};
                match events.poll().await {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => Ok(Incoming::Connected),
                    Ok(Event::Incoming(Packet::Publish(publish))) => {
                        let topic = String::from_utf8_lossy(&publish.topic).into_owned();
                        Ok(Incoming::Message(topic, publish.payload))
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
                    Ok(_) => Ok(Incoming::Other),
                    Err(v5::ConnectionError::Io(error)) => Err(broken(target, &error)),
                    Err(error) => Err(explained(target, &error.to_string())),
                }
            }
        }
    }

    /// Asks for topics; false if the filter is none.
    pub(super) fn subscribe(&self, filter: &str, qos: u8) -> bool {
        match self {
            Self::V4(client, _) => {
                let qos = rumqttc::qos(qos).unwrap_or(rumqttc::QoS::AtMostOnce);
                client.try_subscribe(filter, qos).is_ok()
            }
            Self::V5(client, _) => {
                let qos = v5::mqttbytes::qos(qos).unwrap_or(v5::mqttbytes::QoS::AtMostOnce);
                client.try_subscribe(filter, qos).is_ok()
            }
        }
    }

    /// Sends a message; false if there is no room.
    pub(super) fn publish(&self, topic: &str, qos: u8, retain: bool, payload: String) -> bool {
        match self {
            Self::V4(client, _) => {
                let qos = rumqttc::qos(qos).unwrap_or(rumqttc::QoS::AtMostOnce);
                client.try_publish(topic, qos, retain, payload).is_ok()
            }
            Self::V5(client, _) => {
                let qos = v5::mqttbytes::qos(qos).unwrap_or(v5::mqttbytes::QoS::AtMostOnce);
                client.try_publish(topic, qos, retain, payload).is_ok()
            }
        }
    }
}

fn broken(target: &str, error: &std::io::Error) -> Fault {
    Fault::Connect { target: target.to_owned(), reason: plain(error) }
}

fn explained(target: &str, error: &str) -> Fault {
    let advice = match error {
        text if text.contains("BadUserNamePassword") || text.contains("NotAuthorized") => {
            "the broker refuses the user; check user and password_file"
        }
        text if text.contains("UnknownIssuer") => {
            "its certificate is from an authority that is not trusted; name the authority's file with ca_file"
        }
        text if text.contains("not valid for name") => "its certificate is for another host name",
        text if text.contains("Network timeout") => "it does not answer",
        text if text.contains("ConnectionAborted") || text.contains("closed by peer") => {
            "the broker closed the connection"
        }
        text => text,
    };
    Fault::other(target, advice)
}
