//! The threads of a broker connection: one drives the connection, one feeds it from the outbox.
//!
//! While the broker is unavailable, the client accepts nothing and the feeder blocks. New messages stay in the outbox.

use super::broker::Shared;
use super::left::{Kind, Left};
use super::options::{Broker, Credentials, MqttOptions, MqttVersion, QualityOfService};
use super::outbox::Message;
use super::status::Status;
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Messages queued between feeder and connection: the number that can be lost with a connection under QoS 0.
const IN_HAND: usize = 16;
/// Maximum messages in flight without acknowledgement.
const IN_FLIGHT: u16 = 100;
/// Pause between attempts to connect: initial and maximum.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often the threads check whether to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long a closing connection waits for the broker.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(50);
/// Maximum packet size in either direction, in bytes.
const PACKET_MAX: usize = 16 << 20;

/// Threads to join at the end.
pub(super) type Threads = Vec<JoinHandle<()>>;

/// The settings of a client's MQTT session.
pub(super) struct Session {
    pub(super) client_id: String,
    /// Its subscriptions.
    pub(super) filters: Vec<(String, QualityOfService)>,
    /// Content type of its messages.
    pub(super) content_type: &'static str,
    /// Its Status messages.
    pub(super) status: Option<Status>,
}

impl Session {
    /// Topic and payload of the last will.
    fn last_will(&mut self) -> Option<(String, Vec<u8>)> {
        let status = self.status.as_mut()?;
        let will = status.last_will()?;
        Some((status.topic().to_owned(), will))
    }
}

/// Starts the threads.
pub(super) fn start(
    broker: Broker,
    session: Session,
    options: &MqttOptions,
    shared: &Arc<Shared>,
) -> io::Result<Threads> {
    // A guaranteed delivery needs the broker to keep the session while the connection is down.
    let is_clean = options.quality_of_service == QualityOfService::AtMostOnce
        && session.filters.iter().all(|(_, quality)| *quality == QualityOfService::AtMostOnce);
    match options.version {
        MqttVersion::V311 => v311::start(broker, session, is_clean, options, shared),
        MqttVersion::V5 => v5::start(broker, session, is_clean, options, shared),
    }
}

/// Drives a connection. `step` returns the next event or the error that broke the connection.
fn drive<E: core::fmt::Display>(shared: &Shared, mut step: impl FnMut(&Shared) -> Option<Result<(), E>>) {
    let mut pause = PAUSE;
    while !shared.stop.load(Ordering::Acquire) {
        match step(shared) {
            None => {}
            Some(Ok(())) => pause = PAUSE,
            Some(Err(error)) => {
                if shared.connected.swap(false, Ordering::AcqRel) || pause == PAUSE {
                    let error = explained(error.to_string());
                    tracing::warn!(error, "no connection to the broker; retrying");
                }
                shared.set_error(explained(error.to_string()));
                // In slices, so that ending does not wait for the whole pause.
                let mut left = pause;
                while !left.is_zero() && !shared.stop.load(Ordering::Acquire) {
                    let slice = left.min(LOOK);
                    std::thread::sleep(slice);
                    left -= slice;
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
    shared.connected.store(false, Ordering::Release);
}

/// Adds advice to the client's error message.
fn explained(error: String) -> String {
    let advice = match error.as_str() {
        "Network timeout" => "the broker does not answer",
        text if text.contains("BadUserNamePassword") || text.contains("NotAuthorized") => {
            "check the user and the password (mqtts://user:password@host)"
        }
        text if text.contains("UnknownIssuer") => {
            "the broker's certificate authority is not trusted; name its certificate (--broker-ca, ca_file)"
        }
        text if text.contains("not valid for name") => {
            "use a host name that the broker's certificate contains"
        }
        text if text.contains("CertificateRequired") => "the broker requires a client certificate",
        _ => return error,
    };
    format!("{error}: {advice}")
}

/// Feeds a connection until it is gone or the outbox is closed and empty.
fn feed(shared: &Shared, publish: impl Fn(Message) -> bool) {
    while !shared.outbox.is_done() {
        if let Some(message) = shared.outbox.pop(LOOK) {
            shared.handed();
            if !publish(message) {
                return;
            }
        }
    }
}

macro_rules! mqtt_version {
    ($module:ident, $($path:ident)::+, $incoming:path, $packet:path, $request:path, $qos:path, $reason:path) => {
        fn quality(quality: QualityOfService) -> $qos {
            use $qos as Qos;
            match quality {
                QualityOfService::AtMostOnce => Qos::AtMostOnce,
                QualityOfService::AtLeastOnce => Qos::AtLeastOnce,
                QualityOfService::ExactlyOnce => Qos::ExactlyOnce,
            }
        }

        fn run(
            connection: $($path)::+::Connection,
            client: $($path)::+::Client,
            session: Session,
            shared: Arc<Shared>,
        ) {
            use $incoming as Incoming;
            use $packet as Packet;
            use $request as Request;
            use $reason as Reason;
            let Session { mut filters, mut status, .. } = session;
            let (mut unsubscribed, mut open): (Vec<usize>, usize) = (Vec::new(), 0);
            let told = Arc::clone(&shared);
            let tell = |topic: &str, payload: Vec<u8>| {
                let qos = quality(QualityOfService::AtLeastOnce);
                let is_taken = client.try_publish(topic, qos, true, payload).is_ok();
                if is_taken {
                    told.handed();
                }
                is_taken
            };
            // Counts messages that the broker has received.
            let count = |shared: &Shared, event: &Incoming| match event {
                // QoS 0 has no acknowledgement.
                Incoming::Outgoing(rumqttc::Outgoing::Publish(0)) => shared.delivered(),
                Incoming::Incoming(Packet::PubAck(answer)) if is_taken(answer) => shared.delivered(),
                Incoming::Incoming(Packet::PubAck(_)) => {
                    shared.set_error("the broker refuses a message; check whether this user may write to its topic".to_owned());
                }
                Incoming::Incoming(Packet::PubComp(_)) => shared.delivered(),
                _ => {}
            };
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    tracing::error!(%error, "cannot start the broker connection");
                    return shared.set_error(error.to_string());
                }
            };
            let mut events = connection.eventloop;
            let (mut left, mut in_flight_max) = (Left::new(), IN_FLIGHT);
            let kind = |request: &Request| match request {
                Request::Publish(publish) if publish.pkid == 0 => Kind::New,
                Request::Publish(_) | Request::PubRel(_) => Kind::Sent,
                _ => Kind::Gone,
            };
            drive(&shared, |shared| {
                let is_free = events.state.inflight() < in_flight_max && events.state.collision.is_none();
                left.step(&mut events.pending, is_free);
                // Keep polling the same future: it may be establishing a connection, which would start again each time
                // if that takes longer than `LOOK`.
                let event = {
                let mut next = pin!(events.poll());
                loop {
                    if let Some(status) = &mut status {
                        let now = std::time::Instant::now();
                        if let Some(payload) = status.due(now, crate::clock::wall())
                            && tell(status.topic(), payload)
                        {
                            status.told(now);
                        }
                    }
                    let is_connected = shared.connected.load(Ordering::Acquire);
                    for more in if is_connected { shared.more() } else { Vec::new() } {
                        if filters.iter().all(|(known, _)| *known != more.0) {
                            unsubscribed.push(filters.len());
                            filters.push(more);
                            open += 1;
                        }
                    }
                    // Subscriptions that did not fit into the client's queue at first.
                    unsubscribed.retain(|at| {
                        filters.get(*at).is_some_and(|(filter, qos)| {
                            client.try_subscribe(filter.as_str(), quality(*qos)).is_err()
                        })
                    });
                    match runtime.block_on(async { timeout(LOOK, next.as_mut()).await }) {
                        Ok(event) => break event,
                        Err(_) if shared.stop.load(Ordering::Acquire) => return None,
                        Err(_) => {}
                    }
                }
                };
                if event.is_err() {
                    let collided = events.state.collision.take().map(|mut publish| {
                        publish.pkid = 0;
                        Request::Publish(publish)
                    });
                    left.broke(&mut events.pending, collided, kind);
                }
                if let Ok(event) = &event {
                    count(shared, event);
                }
                match event {
                    Ok(Incoming::Incoming(Packet::ConnAck(answer))) => {
                        in_flight_max = most_in_flight(&answer);
                        shared.subscribed.store(filters.is_empty(), Ordering::Release);
                        shared.set_connected();
                        unsubscribed = (0..filters.len()).collect();
                        open = filters.len();
                        if let Some(status) = &mut status {
                            status.connected(std::time::Instant::now());
                        }
                        Some(Ok(()))
                    }
                    Ok(Incoming::Incoming(Packet::SubAck(answer))) => {
                        // One result per filter, in order.
                        let filter = filters.len().checked_sub(open).and_then(|at| filters.get(at));
                        if answer.return_codes.iter().any(|code| !matches!(code, Reason::Success(_))) {
                            let filter = filter.map(|(filter, _)| filter.as_str()).unwrap_or_default();
                            tracing::warn!(filter, "the broker refuses the subscription; check whether this user may read the topic");
                            shared.set_error(format!("the broker refuses the subscription to {filter}"));
                        }
                        open = open.saturating_sub(1);
                        // Later subscriptions do not affect the acknowledged ones.
                        if open == 0 {
                            shared.subscribed.store(true, Ordering::Release);
                        }
                        Some(Ok(()))
                    }
                    Ok(Incoming::Incoming(Packet::Publish(publish))) => {
                        shared.received(&publish.payload);
                        Some(Ok(()))
                    }
                    Ok(_) => Some(Ok(())),
                    Err(error) => {
                        if let Some(status) = &mut status {
                            status.disconnected();
                        }
                        Some(Err(error))
                    }
                }
            });
            // Send the last Status message before disconnecting; the broker then discards the last will.
            if let Some(status) = &mut status
                && let Some(payload) = status.end()
            {
                let qos = quality(QualityOfService::AtLeastOnce);
                let _ = client.try_publish(status.topic(), qos, true, payload);
            }
            let _ = client.try_disconnect();
            for _ in 0..IN_HAND * 4 {
                let event = runtime.block_on(async { timeout(CLOSE_TIMEOUT, events.poll()).await });
                // Only the last Status message is acknowledged now, and it is not counted.
                if !matches!(event, Ok(Ok(_))) {
                    return;
                }
            }
        }
    };
}

mod v311 {
    use super::*;
    use rumqttc::{Client, LastWill, MqttOptions as Settings, TlsConfiguration, Transport};

    /// MQTT 3.1.1 acknowledgements carry no reason code.
    fn is_taken(_: &rumqttc::PubAck) -> bool {
        true
    }

    fn most_in_flight(_: &rumqttc::ConnAck) -> u16 {
        IN_FLIGHT
    }

    mqtt_version!(
        v311,
        rumqttc,
        rumqttc::Event,
        rumqttc::Packet,
        rumqttc::Request,
        rumqttc::QoS,
        rumqttc::SubscribeReasonCode
    );

    pub(super) fn start(
        broker: Broker,
        mut session: Session,
        is_clean: bool,
        options: &MqttOptions,
        shared: &Arc<Shared>,
    ) -> io::Result<Threads> {
        let mut settings = Settings::new(session.client_id.clone(), broker.host, broker.port);
        if let Some((topic, will)) = session.last_will() {
            let quality = quality(QualityOfService::AtLeastOnce);
            settings.set_last_will(LastWill::new(topic, will, quality, true));
        }
        settings.set_keep_alive(options.keep_alive.max(Duration::from_secs(1)));
        settings.set_clean_session(is_clean);
        settings.set_inflight(IN_FLIGHT);
        settings.set_max_packet_size(PACKET_MAX, PACKET_MAX);
        if let Some(Credentials { user, password }) = broker.credentials {
            settings.set_credentials(user, password);
        }
        if let Some(config) = broker.tls {
            settings.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(config)));
        }
        let (client, mut connection) = Client::new(settings, IN_HAND);
        let mut network = connection.eventloop.network_options();
        network.set_tcp_nodelay(true);
        connection.eventloop.set_network_options(network);
        let (theirs, feeding, subscribing) = (Arc::clone(shared), client.clone(), client);
        let feeder = std::thread::Builder::new().name("pubsub-mqtt-out".to_owned()).spawn(move || {
            feed(&theirs, |message| {
                let qos = quality(message.quality);
                feeding.publish(message.topic, qos, message.retain, message.payload).is_ok()
            });
        })?;
        let theirs = Arc::clone(shared);
        let driver = std::thread::Builder::new()
            .name("pubsub-mqtt".to_owned())
            .spawn(move || run(connection, subscribing, session, theirs))?;
        Ok(vec![driver, feeder])
    }
}

mod v5;
