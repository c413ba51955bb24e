//! MQTT 5.

use super::*;
use rumqttc::v5::mqttbytes::v5::{ConnAck, LastWill, PubAck, PubAckReason, PublishProperties};
use rumqttc::v5::{Client, MqttOptions as Settings};
use rumqttc::{TlsConfiguration, Transport};

fn is_taken(answer: &PubAck) -> bool {
    matches!(answer.reason, PubAckReason::Success | PubAckReason::NoMatchingSubscribers)
}

/// The broker's limit of messages in flight (MQTT 5 §3.2.2.3.3).
fn most_in_flight(answer: &ConnAck) -> u16 {
    let allowed = answer.properties.as_ref().and_then(|properties| properties.receive_max);
    allowed.map_or(IN_FLIGHT, |allowed| allowed.min(IN_FLIGHT))
}

mqtt_version!(
    v5,
    rumqttc::v5,
    rumqttc::v5::Event,
    rumqttc::v5::mqttbytes::v5::Packet,
    rumqttc::v5::Request,
    rumqttc::v5::mqttbytes::QoS,
    rumqttc::v5::mqttbytes::v5::SubscribeReasonCode
);

/// How long a broker keeps the session, in seconds.
const SESSION: u32 = 3600;

pub(super) fn start(
    broker: Broker,
    mut session: Session,
    is_clean: bool,
    options: &MqttOptions,
    shared: &Arc<Shared>,
) -> io::Result<Threads> {
    let content_type = session.content_type;
    let mut settings = Settings::new(session.client_id.clone(), broker.host, broker.port);
    if let Some((topic, will)) = session.last_will() {
        let quality = quality(QualityOfService::AtLeastOnce);
        settings.set_last_will(LastWill::new(topic, will, quality, true, None));
    }
    settings.set_keep_alive(options.keep_alive.max(Duration::from_secs(1)));
    settings.set_clean_start(is_clean);
    settings.set_outgoing_inflight_upper_limit(IN_FLIGHT);
    if !is_clean {
        settings.set_session_expiry_interval(Some(SESSION));
    }
    settings.set_max_packet_size(Some(PACKET_MAX as u32));
    if let Some(Credentials { user, password }) = broker.credentials {
        settings.set_credentials(user, password);
    }
    if let Some(config) = broker.tls {
        settings.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(config)));
    }
    let mut network = settings.network_options();
    network.set_tcp_nodelay(true);
    settings.set_network_options(network);
    let (client, connection) = Client::new(settings, IN_HAND);
    let (theirs, feeding, subscribing) = (Arc::clone(shared), client.clone(), client);
    let feeder = std::thread::Builder::new().name("pubsub-mqtt-out".to_owned()).spawn(move || {
        feed(&theirs, |message| {
            let properties = PublishProperties {
                message_expiry_interval: message.expiry,
                content_type: Some(content_type.to_owned()),
                ..PublishProperties::default()
            };
            let qos = quality(message.quality);
            let (topic, payload) = (message.topic, message.payload);
            feeding.publish_with_properties(topic, qos, message.retain, payload, properties).is_ok()
        });
    })?;
    let theirs = Arc::clone(shared);
    let driver = std::thread::Builder::new()
        .name("pubsub-mqtt".to_owned())
        .spawn(move || run(connection, subscribing, session, theirs))?;
    Ok(vec![driver, feeder])
}
