//! A broker connection as publishers and subscribers see it.

use super::super::PubSubError;
use super::super::inlet::{Closing, Inlet};
use super::super::link::{Link, count_failed};
use super::super::subscriber::InletMaker;
use super::super::udp::Sent;
use super::client::{self, Session, Threads};
use super::options::{Broker, MqttOptions, QualityOfService};
use super::outbox::{Message, Outbox};
use super::status::Status;
use super::topics;
use crate::entropy::OsEntropy;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_crypto::Entropy;
use taktwerk_pubsub::Transmit;
use taktwerk_pubsub::config::Connection;
use taktwerk_types::hexadecimal;

/// Maximum received messages that wait for the subscriber's thread.
const RECEIVED_MAX: usize = 10_000;

/// State of a broker connection, shared by its threads and users.
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) connected: AtomicBool,
    /// The broker has acknowledged all subscriptions of this connection.
    pub(super) subscribed: AtomicBool,
    pub(super) outbox: Outbox,
    /// Topics that were subscribed to later.
    more: Mutex<Vec<(String, QualityOfService)>>,
    connections: AtomicU64,
    /// Messages passed to the client, and those of them that the broker has received.
    handed: AtomicU64,
    delivered: AtomicU64,
    received: Mutex<VecDeque<Vec<u8>>>,
    lost: AtomicU64,
    error: Mutex<String>,
    event: OwnedFd,
}

impl Shared {
    fn new(outbox: usize) -> io::Result<Self> {
        Ok(Self {
            stop: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            subscribed: AtomicBool::new(false),
            outbox: Outbox::new(outbox),
            more: Mutex::default(),
            connections: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            received: Mutex::default(),
            lost: AtomicU64::new(0),
            error: Mutex::default(),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub(super) fn set_connected(&self) {
        self.connections.fetch_add(1, Ordering::AcqRel);
        self.connected.store(true, Ordering::Release);
        lock(&self.error).clear();
    }

    /// Takes the topics that were added since the last call.
    pub(super) fn more(&self) -> Vec<(String, QualityOfService)> {
        core::mem::take(&mut *lock(&self.more))
    }

    /// Counts a message passed to the client.
    pub(super) fn handed(&self) {
        self.handed.fetch_add(1, Ordering::AcqRel);
    }

    /// Messages that the broker has not received yet.
    fn undelivered(&self) -> u64 {
        let (handed, delivered) =
            (self.handed.load(Ordering::Acquire), self.delivered.load(Ordering::Acquire));
        handed.saturating_sub(delivered) + self.outbox.counts().0 as u64
    }

    /// Counts a message that the broker has received.
    pub(super) fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn set_error(&self, error: String) {
        *lock(&self.error) = error;
    }

    pub(super) fn received(&self, payload: &[u8]) {
        let mut received = lock(&self.received);
        if received.len() >= RECEIVED_MAX {
            received.pop_front();
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        received.push_back(payload.to_vec());
        drop(received);
        // The counter cannot overflow in practice, and if it did, the reader would be awake already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a broker connection. May be read from any thread.
#[derive(Clone)]
pub struct BrokerStatus(Arc<Shared>);

impl core::fmt::Debug for BrokerStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BrokerStatus")
            .field("connected", &self.is_connected())
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}

impl BrokerStatus {
    /// Whether the connection is up.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.connected.load(Ordering::Acquire)
    }

    /// Whether the connection is up and the broker has acknowledged all subscriptions.
    #[must_use]
    pub fn is_subscribed(&self) -> bool {
        self.is_connected() && self.0.subscribed.load(Ordering::Acquire)
    }

    /// How often a connection was established.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.0.connections.load(Ordering::Acquire)
    }

    /// Number of messages in the outbox, and number of messages dropped because it was full.
    #[must_use]
    pub fn outbox(&self) -> (usize, u64) {
        self.0.outbox.counts()
    }

    /// Messages that the broker has received: with QoS 0 those written to a connection, otherwise those it has
    /// acknowledged.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.0.delivered.load(Ordering::Acquire)
    }

    /// Messages that wait for the broker or are in flight. They are lost when the connection is dropped, in addition to
    /// those already dropped ([`Self::outbox`]).
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.0.undelivered()
    }

    /// Received messages that were dropped because the subscriber was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Subscribes to one more topic, on this and all later connections.
    pub fn subscribe(&self, filter: &str, quality: QualityOfService) {
        lock(&self.0.more).push((filter.to_owned(), quality));
    }

    /// Why the connection is down; empty if it is up.
    #[must_use]
    pub fn error(&self) -> String {
        lock(&self.0.error).clone()
    }
}

/// Dropping it ends the threads.
struct Running {
    shared: Arc<Shared>,
    threads: Threads,
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the broker is connected, wait a moment for pending messages: the last one is often important.
        let patience = std::time::Instant::now() + core::time::Duration::from_millis(500);
        self.shared.outbox.close();
        while self.shared.connected.load(Ordering::Acquire)
            && self.shared.undelivered() > 0
            && std::time::Instant::now() < patience
        {
            std::thread::sleep(core::time::Duration::from_millis(5));
        }
        self.shared.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn client_id(options: &MqttOptions, role: &str) -> String {
    if !options.client_id.is_empty() {
        return options.client_id.clone();
    }
    unique(role)
}

/// A unique client id. MQTT 3.1.1 brokers need not accept more than 23 characters.
fn unique(role: &str) -> String {
    let mut random = [0; 6];
    OsEntropy.fill(&mut random);
    format!("taktwerk-{}{}", role.get(..1).unwrap_or_default(), hexadecimal::text(&random))
}

fn start(
    connection: &Connection,
    filters: Vec<(String, super::QualityOfService)>,
    role: &str,
    options: &MqttOptions,
) -> Result<Running, PubSubError> {
    let broker = Broker::parse(&connection.url, options)?;
    let fail = |source| PubSubError::Thread { thread: "MQTT", source };
    let shared = Arc::new(Shared::new(options.outbox).map_err(fail)?);
    let content_type =
        if topics::is_json(connection) { "application/json" } else { "application/opcua+uadp" };
    let id = client_id(options, role);
    let status = Status::of(options.status, &options.prefix, connection, &unique(role));
    let session = Session { client_id: id, filters, content_type, status };
    let threads = client::start(broker, session, options, &shared).map_err(fail)?;
    Ok(Running { shared, threads })
}

struct MqttLink {
    connection: Connection,
    options: MqttOptions,
    running: Running,
    /// Number of connections after the last announcement of metadata.
    announced: u64,
    failures: Vec<(usize, u64)>,
}

impl Link for MqttLink {
    fn send(&mut self, connection: usize, out: &Transmit, _at: Option<u64>) -> Sent {
        let mut sent = Sent::default();
        self.failures.clear();
        for datagram in out.iter().filter(|datagram| datagram.connection == connection) {
            let Some(to) = topics::destination(&self.options.prefix, &self.connection, &datagram) else {
                continue;
            };
            let gone = self.running.shared.outbox.push(Message {
                topic: to.topic,
                retain: to.retain,
                quality: to.quality.unwrap_or(self.options.quality_of_service),
                payload: datagram.bytes.to_vec(),
                writer_group: datagram.writer_group,
                expiry: to.expiry,
            });
            // A message that was dropped because the outbox is full.
            if let Some(gone) = gone {
                sent.failed += 1;
                count_failed(&mut self.failures, gone.writer_group, 1);
            }
            sent.datagrams += 1;
            sent.bytes += datagram.bytes.len();
        }
        sent
    }

    fn failures(&self) -> &[(usize, u64)] {
        &self.failures
    }

    fn wants_announcement(&mut self) -> bool {
        let connections = self.running.shared.connections.load(Ordering::Acquire);
        core::mem::replace(&mut self.announced, connections) != connections
    }
}

/// A publisher's link to the broker of a connection. It connects in the background and reconnects after a loss.
///
/// # Errors
/// The URL is invalid or the certificates cannot be used.
pub fn publisher_link(
    connection: &Connection,
    options: &MqttOptions,
) -> Result<(Box<dyn Link>, BrokerStatus), PubSubError> {
    let running = start(connection, Vec::new(), "publisher", options)?;
    let status = BrokerStatus(Arc::clone(&running.shared));
    let link = MqttLink {
        connection: connection.clone(),
        options: options.clone(),
        running,
        announced: 0,
        failures: Vec::new(),
    };
    Ok((Box::new(link), status))
}

struct MqttInlet {
    running: Running,
}

impl Inlet for MqttInlet {
    fn fd(&self) -> BorrowedFd<'_> {
        self.running.shared.event.as_fd()
    }

    fn receive(&mut self, take: &mut dyn FnMut(&mut [u8])) -> io::Result<bool> {
        let mut counter = [0; 8];
        // Reading may find the counter at zero, which is no error.
        let _ = rustix::io::read(&self.running.shared.event, &mut counter);
        let received = core::mem::take(&mut *lock(&self.running.shared.received));
        for mut message in received {
            take(&mut message);
        }
        Ok(false)
    }

    fn close(self: Box<Self>) -> Option<Closing> {
        Some(Box::new(move || drop(self)))
    }
}

/// A subscriber's inlet from the broker of a connection, for the topics of its readers.
///
/// # Errors
/// The URL is invalid or the certificates cannot be used.
pub fn subscriber_inlet(
    connection: &Connection,
    options: &MqttOptions,
) -> Result<(InletMaker, BrokerStatus), PubSubError> {
    let filters = topics::filters(&options.prefix, connection).into_iter();
    let filters = filters.map(|(filter, quality)| (filter, quality.unwrap_or(options.quality_of_service)));
    let mut filters: Vec<_> = filters.collect();
    if options.receive_status {
        let status = topics::status_filters(&options.prefix, connection).into_iter();
        filters.extend(status.map(|filter| (filter, super::QualityOfService::AtLeastOnce)));
    }
    inlet_of(connection, filters, options)
}

/// The inlet of an Action requestor or responder from the broker of a connection, for some topics.
///
/// # Errors
/// The URL is invalid or the certificates cannot be used.
pub fn action_inlet(
    connection: &Connection,
    filters: Vec<String>,
    options: &MqttOptions,
) -> Result<(InletMaker, BrokerStatus), PubSubError> {
    let filters = filters.into_iter().map(|filter| (filter, options.quality_of_service));
    inlet_of(connection, filters.collect(), options)
}

fn inlet_of(
    connection: &Connection,
    filters: Vec<(String, super::QualityOfService)>,
    options: &MqttOptions,
) -> Result<(InletMaker, BrokerStatus), PubSubError> {
    let running = start(connection, filters, "subscriber", options)?;
    let status = BrokerStatus(Arc::clone(&running.shared));
    let inlet = MqttInlet { running };
    let make: InletMaker = Box::new(move || Ok(Box::new(inlet) as Box<dyn Inlet>));
    Ok((make, status))
}
