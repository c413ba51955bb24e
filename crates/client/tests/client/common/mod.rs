//! A client and a scripted server connected in memory, in virtual time.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses its part
#![allow(clippy::unwrap_used)] // helpers of tests are tests

pub mod server;

use core::time::Duration;
use server::Server;
use std::sync::Arc;
use taktwerk_channel::{ChannelConfig, ChannelLimits};
use taktwerk_client::{
    Client, ClientConfig, ClientError, ConnectionId, Delivery, Effect, Event, EventQueue, RequestHandle,
    SubscriptionEvent, SubscriptionHandle, Target,
};
use taktwerk_crypto::{MessageSecurityMode, NullProvider, Provider, SecurityPolicy, SeededEntropy};
use taktwerk_schema::service::Response;
use taktwerk_schema::{
    MonitoredItemCreateRequest, MonitoringMode, MonitoringParameters, ReadRequest, ReadValueId,
};
use taktwerk_types::{Instant, NodeId, Variant};

pub const START: Instant = Instant::from_nanos(5_000_000_000);

/// Changes bytes in transit.
pub type Tamper = Box<dyn FnMut(&mut Vec<u8>)>;

pub struct World {
    pub client: Client,
    pub server: Server,
    pub now: Instant,
    pub queue: EventQueue,
    connection: Option<ConnectionId>,
    inbox: Vec<u8>,
    /// New connections are refused.
    pub refuse: bool,
    /// No bytes are transferred any more, without notice: a half-open connection.
    pub dead: bool,
    /// Cut the connection after this many transfers.
    pub cut_after: Option<u32>,
    /// Changes the server's bytes before the client receives them.
    pub tamper: Option<Tamper>,
    pub dialled: Vec<String>,
    /// Number of OpenSecureChannel requests sent.
    pub opens: u32,
    /// All events since they were last taken.
    pub events: Vec<Event>,
    /// Values in the order they were delivered: (subscription, client handle, value).
    pub values: Vec<(SubscriptionHandle, u32, f64)>,
    pub responses: Vec<(RequestHandle, Result<taktwerk_client::OwnedReply, ClientError>)>,
}

pub struct Setup {
    pub client: ClientConfig,
    pub limits: ChannelLimits,
    pub server_limits: ChannelLimits,
    pub providers: (Arc<dyn Provider>, Arc<dyn Provider>),
    pub offered: Vec<(SecurityPolicy, MessageSecurityMode)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            client: ClientConfig::default(),
            limits: ChannelLimits::default(),
            server_limits: ChannelLimits::default(),
            providers: (Arc::new(NullProvider), Arc::new(NullProvider)),
            offered: vec![(SecurityPolicy::None, MessageSecurityMode::None)],
        }
    }
}

impl Setup {
    pub fn world(self) -> World {
        let channel =
            ChannelConfig { limits: self.limits, provider: self.providers.0, ..ChannelConfig::default() };
        let config = ClientConfig { channel: Arc::new(channel), ..self.client };
        let server_config = ChannelConfig {
            limits: self.server_limits,
            provider: self.providers.1,
            security: self.offered,
            ..ChannelConfig::default()
        };
        World {
            client: Client::new(Arc::new(config), Box::new(SeededEntropy::new(1))),
            server: Server::new(Arc::new(server_config)),
            now: START,
            queue: EventQueue::default(),
            connection: None,
            inbox: vec![],
            refuse: false,
            dead: false,
            cut_after: None,
            tamper: None,
            dialled: vec![],
            opens: 0,
            events: vec![],
            values: vec![],
            responses: vec![],
        }
    }
}

pub fn target() -> Target {
    Target::new("opc.tcp://plc:4840").unwrap()
}

pub fn retrying() -> Setup {
    let mut setup = Setup::default();
    setup.client.reconnect.retry_first = true;
    setup
}

impl World {
    pub fn connected() -> Self {
        Self::connected_with(Setup::default())
    }

    pub fn connected_with(setup: Setup) -> Self {
        let mut world = setup.world();
        world.client.connect(target(), world.now).unwrap();
        world.settle();
        assert!(world.client.is_up(), "{:?}", world.events);
        world
    }

    /// Executes effects and transfers bytes until nothing changes.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            if !self.step() {
                self.collect();
                return;
            }
        }
        panic!("never silent");
    }

    fn step(&mut self) -> bool {
        let now = self.now;
        if let Some(effect) = self.client.poll_effect() {
            match effect {
                Effect::Connect { connection, url } => {
                    self.dialled.push(url.to_string());
                    if self.refuse {
                        self.client.handle_closed(connection, "refused", now, &mut self.queue);
                    } else {
                        self.inbox.clear();
                        self.connection = Some(connection);
                        self.dead = false;
                        self.server.accept(connection, now);
                        self.client.handle_connected(connection, now, &mut self.queue);
                    }
                }
                Effect::Disconnect { connection, unsent } => {
                    if !self.dead {
                        self.server.receive(connection, &unsent, now);
                    }
                    self.server.hang_up(connection);
                    if self.connection == Some(connection) {
                        self.connection = None;
                    }
                }
                Effect::Crypto { token, job, provider } => {
                    let result = job.run(provider.as_ref());
                    self.client.complete(token, result, now, &mut self.queue);
                }
            }
            return true;
        }
        let Some(connection) = self.connection else {
            self.client.transmit().clear();
            return false;
        };
        let to_server = core::mem::take(self.client.transmit());
        let to_client = self
            .server
            .connections
            .get_mut(&connection)
            .map(|known| core::mem::take(&mut known.out))
            .unwrap_or_default();
        if self.dead {
            return false;
        }
        if to_server.is_empty() && to_client.is_empty() {
            return false;
        }
        self.opens += u32::from(to_server.starts_with(b"OPN"));
        if !self.cut(connection) && !to_server.is_empty() {
            self.server.receive(connection, &to_server, now);
        }
        if self.connection.is_some() && !to_client.is_empty() && !self.cut(connection) {
            let mut to_client = to_client;
            if let Some(tamper) = &mut self.tamper {
                tamper(&mut to_client);
            }
            self.inbox.extend_from_slice(&to_client);
            let consumed = self.client.received(connection, &mut self.inbox, now, &mut self.queue);
            self.inbox.drain(..consumed.min(self.inbox.len()));
            assert!(self.inbox.len() <= 1 << 20, "the client does not consume received bytes");
        }
        true
    }

    /// Counts down to the cut; true if the connection has just been cut.
    fn cut(&mut self, connection: ConnectionId) -> bool {
        match &mut self.cut_after {
            None => false,
            Some(0) => {
                self.cut_after = None;
                self.break_connection();
                let _ = connection;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }

    /// The network resets the connection.
    pub fn break_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.server.hang_up(connection);
            self.inbox.clear();
            self.client.handle_closed(connection, "reset", self.now, &mut self.queue);
        }
    }

    fn collect(&mut self) {
        while let Some(delivery) = self.queue.pop() {
            match delivery {
                Delivery::Event(event) => self.events.push(event),
                Delivery::Response(handle, result) => self.responses.push((handle, result)),
                Delivery::DataChanges { subscription, values, .. } => {
                    for (handle, value) in values {
                        let value = match value.value {
                            Some(Variant::Double(value)) => value,
                            // A tampered value: must not equal any expected one.
                            _ => f64::NAN,
                        };
                        self.values.push((subscription, handle, value));
                    }
                }
                Delivery::Events { .. } => {}
            }
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        loop {
            let client = self.client.poll_timeout().map_or(Instant::FAR, |(at, _)| at);
            let next = client.min(self.server.due());
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.server.tick(self.now);
            self.client.handle_timeout(self.now, &mut self.queue);
            self.settle();
        }
        self.now = end;
    }

    pub fn seconds(&mut self, seconds: u64) {
        self.run(Duration::from_secs(seconds));
    }

    pub fn take_events(&mut self) -> Vec<Event> {
        self.collect();
        core::mem::take(&mut self.events)
    }

    pub fn take_values(&mut self) -> Vec<f64> {
        self.collect();
        core::mem::take(&mut self.values).into_iter().map(|(_, _, value)| value).collect()
    }

    pub fn subscription_events(&mut self) -> Vec<SubscriptionEvent> {
        let events = self.take_events().into_iter();
        events
            .filter_map(|event| match event {
                Event::Subscription(_, event) => Some(event),
                _ => None,
            })
            .collect()
    }

    /// The typed response to a request.
    pub fn response<T: Response + 'static>(&mut self, handle: RequestHandle) -> Result<T, ClientError> {
        self.settle();
        let at = self.responses.iter().position(|(known, _)| *known == handle).expect("answered");
        self.responses.swap_remove(at).1.and_then(|reply| reply.decode())
    }

    /// A subscription with items, after its first cycle.
    pub fn subscribe(&mut self, items: u32) -> (SubscriptionHandle, u32) {
        let handle = self.client.create_subscription(params(), self.now);
        self.client.add_items(handle, (0..items).map(item), self.now).unwrap();
        self.settle();
        self.run(Duration::from_millis(150));
        let id = self.client.subscription_id(handle).unwrap();
        (handle, id)
    }
}

pub fn params() -> taktwerk_client::SubscriptionParams {
    taktwerk_client::SubscriptionParams {
        publishing_interval_ms: 100.0,
        keep_alive_count: 10,
        lifetime_count: 100,
        ..Default::default()
    }
}

pub fn item(client_handle: u32) -> MonitoredItemCreateRequest {
    MonitoredItemCreateRequest {
        item_to_monitor: ReadValueId {
            node_id: NodeId::numeric(1, client_handle),
            attribute_id: 13,
            ..Default::default()
        },
        monitoring_mode: MonitoringMode::REPORTING,
        requested_parameters: MonitoringParameters { client_handle, queue_size: 1, ..Default::default() },
    }
}

pub fn read(ids: impl Iterator<Item = u32>) -> ReadRequest {
    let node = |id| ReadValueId { node_id: NodeId::numeric(1, id), attribute_id: 13, ..Default::default() };
    ReadRequest { nodes_to_read: ids.map(node).collect(), ..Default::default() }
}
