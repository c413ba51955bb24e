//! Subscribing.

use super::target::{Targets, find_targets};
use super::{KeySource, PubSubStartError, PublisherId, RealTime, SecurityMode, SubscriberEvent};
use core::fmt;
use std::sync::Arc;
use taktwerk_crypto::PubSubProvider;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::pubsub::subscriber::InletMaker;
use taktwerk_net::pubsub::{Link, RunningSubscriber, SubscriberChange, SubscriberDriverOptions};
use taktwerk_pubsub::config::{
    Configuration, Connection, DataSetReader, DataSetReaderMessage, ReaderGroup, TRANSPORT_MQTT_JSON,
};
use taktwerk_pubsub::subscriber::SubscriberCounters;
use taktwerk_pubsub::{DataSetMessage, ReaderIndex, Sink};
use taktwerk_schema::{DataSetMetaDataType, JsonDataSetReaderMessageDataType};
use taktwerk_server::space::AddressSpace;

type OnMessage = Box<dyn FnMut(&DataSetMessage<'_>) + Send>;
type OnEvent = Box<dyn FnMut(SubscriberEvent) + Send>;

#[derive(Default)]
struct Callbacks {
    on_message: Option<OnMessage>,
    on_event: Option<OnEvent>,
}

impl Sink for Callbacks {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        if let Some(on_message) = &mut self.on_message {
            on_message(message);
        }
    }

    fn event(&mut self, event: SubscriberEvent) {
        if let Some(on_event) = &mut self.on_event {
            on_event(event);
        }
    }
}

/// A subscriber to be. Whatever is not set has the default that is named with it.
#[must_use = "nothing happens before start()"]
pub struct SubscriberBuilder {
    configuration: Configuration,
    /// The one reader of the short form.
    is_short: bool,
    callbacks: Callbacks,
    space: Option<Arc<AddressSpace>>,
    options: SubscriberDriverOptions,
    #[cfg(feature = "mqtt")]
    mqtt: taktwerk_net::pubsub::mqtt::MqttOptions,
    provider: Arc<dyn PubSubProvider>,
}

impl fmt::Debug for SubscriberBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriberBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl SubscriberBuilder {
    fn new(configuration: Configuration, is_short: bool) -> Self {
        Self {
            configuration,
            is_short,
            callbacks: Callbacks::default(),
            space: None,
            options: SubscriberDriverOptions::default(),
            #[cfg(feature = "mqtt")]
            mqtt: Default::default(),
            provider: Arc::new(AwsPubSubProvider),
        }
    }

    fn connection(mut self, set: impl FnOnce(&mut Connection)) -> Self {
        if let (true, Some(connection)) = (self.is_short, self.configuration.connections.first_mut()) {
            set(connection);
        }
        self
    }

    fn reader(self, set: impl FnOnce(&mut DataSetReader)) -> Self {
        self.connection(|connection| {
            let groups = connection.reader_groups.iter_mut();
            if let Some(reader) = groups.flat_map(|group| group.readers.iter_mut()).next() {
                set(reader);
            }
        })
    }

    /// The network interface by name or address. Default: what the kernel's routes choose.
    pub fn interface(self, interface: &str) -> Self {
        self.connection(|connection| connection.network_interface = interface.to_owned())
    }

    /// Only what this publisher sends. Default: anybody.
    pub fn publisher_id(self, id: u16) -> Self {
        self.publisher(PublisherId::UInt16(id))
    }

    /// Only what this publisher sends, as any kind of id.
    pub fn publisher(self, id: PublisherId) -> Self {
        self.reader(|reader| reader.publisher_id = Some(id))
    }

    /// Only this WriterGroup. Default: all.
    pub fn writer_group(self, id: u16) -> Self {
        self.reader(|reader| reader.writer_group_id = id)
    }

    /// Only this DataSetWriter. Default: all.
    pub fn writer(self, id: u16) -> Self {
        self.reader(|reader| reader.data_set_writer_id = id)
    }

    /// What the fields are. Default: what the publisher answers when it is asked, if publisher and writer are named;
    /// a subscriber to everybody knows fields by their numbers.
    pub fn meta_data(self, meta_data: DataSetMetaDataType) -> Self {
        self.reader(|reader| reader.meta_data = meta_data)
    }

    /// Only messages that are secured like this, with the keys of a security group, which come from `keys`.
    pub fn security(
        mut self,
        mode: SecurityMode,
        security_group_id: &str,
        keys: impl KeySource + 'static,
    ) -> Self {
        self.options.keys = Some(Box::new(keys));
        let id = security_group_id.to_owned();
        self.connection(|connection| {
            for group in &mut connection.reader_groups {
                group.security.mode = mode;
                group.security.security_group_id.clone_from(&id);
            }
        })
    }

    /// Where keys of security groups come from.
    pub fn keys(mut self, keys: impl KeySource + 'static) -> Self {
        self.options.keys = Some(Box::new(keys));
        self
    }

    /// Where the Variables are that the configuration's TargetVariables name.
    pub fn space(mut self, space: &Arc<AddressSpace>) -> Self {
        self.space = Some(Arc::clone(space));
        self
    }

    /// Is given each DataSetMessage, on the receiving thread: it must not wait.
    pub fn on_message(mut self, on_message: impl FnMut(&DataSetMessage<'_>) + Send + 'static) -> Self {
        self.callbacks.on_message = Some(Box::new(on_message));
        self
    }

    /// Is told of everything else, on the receiving thread: it must not wait.
    pub fn on_event(mut self, on_event: impl FnMut(SubscriberEvent) + Send + 'static) -> Self {
        self.callbacks.on_event = Some(Box::new(on_event));
        self
    }

    /// What the kernel is asked to do for being on time. Default: nothing that needs a right.
    pub fn real_time(mut self, real_time: RealTime) -> Self {
        self.options.real_time = real_time;
        self
    }

    /// Never sleep: spends a CPU on taking messages at once. Default: no.
    pub fn busy_poll(mut self, busy: bool) -> Self {
        self.options.busy_poll = busy;
        self
    }

    /// A transport of the application's own for a connection, by its position.
    pub fn inlet(mut self, connection: usize, inlet: InletMaker, link: Option<Box<dyn Link>>) -> Self {
        self.options.inlets.push((connection, inlet));
        self.options.links.extend(link.map(|link| (connection, link)));
        self
    }

    /// How to talk to brokers.
    #[cfg(feature = "mqtt")]
    pub fn mqtt(mut self, options: taktwerk_net::pubsub::mqtt::MqttOptions) -> Self {
        self.mqtt = options;
        self
    }

    /// Another cryptographic library. Default: aws-lc.
    pub fn provider(mut self, provider: Arc<dyn PubSubProvider>) -> Self {
        self.provider = provider;
        self
    }

    /// Starts receiving.
    ///
    /// # Errors
    /// What is wrong with the configuration, its addresses, the Variables it names, or what was asked of the kernel.
    #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' inlets are added
    pub fn start(mut self) -> Result<Subscriber, PubSubStartError> {
        #[cfg(feature = "mqtt")]
        let brokers = {
            let mut brokers = Vec::new();
            for (position, connection) in self.configuration.connections.iter().enumerate() {
                let is_given = self.options.inlets.iter().any(|(of, _)| *of == position);
                if connection.url.starts_with("mqtt") && !connection.reader_groups.is_empty() && !is_given {
                    let (inlet, status) =
                        taktwerk_net::pubsub::mqtt::subscriber_inlet(connection, &self.mqtt)?;
                    self.options.inlets.push((position, inlet));
                    brokers.push((connection.name.clone(), status));
                }
            }
            brokers
        };
        let sink = Targets::resolve(&self.configuration, self.space.as_ref(), self.callbacks)?;
        let running = RunningSubscriber::start(self.configuration, sink, self.provider, self.options)?;
        Ok(Subscriber {
            running,
            space: self.space,
            #[cfg(feature = "mqtt")]
            mqtt: self.mqtt,
            #[cfg(feature = "mqtt")]
            brokers: brokers.into(),
        })
    }
}

/// A running subscriber. It stops when it is dropped.
#[derive(Debug)]
pub struct Subscriber {
    running: RunningSubscriber,
    space: Option<Arc<AddressSpace>>,
    #[cfg(feature = "mqtt")]
    mqtt: taktwerk_net::pubsub::mqtt::MqttOptions,
    /// By the names of their connections.
    #[cfg(feature = "mqtt")]
    brokers: std::sync::Mutex<Vec<(String, taktwerk_net::pubsub::mqtt::BrokerStatus)>>,
}

impl Subscriber {
    /// A subscriber to everything that comes to an address; the builder narrows it.
    pub fn builder(url: &str) -> SubscriberBuilder {
        let mut connection = Connection::new("connection", None, url);
        let is_json = connection.transport_profile_uri == TRANSPORT_MQTT_JSON;
        let message = if is_json {
            DataSetReaderMessage::Json(JsonDataSetReaderMessageDataType::default())
        } else {
            DataSetReaderMessage::default()
        };
        let name = "reader".to_owned();
        let reader = DataSetReader { name, enabled: true, message, ..DataSetReader::default() };
        connection.reader_groups.push(ReaderGroup::new("group", vec![reader]));
        let connections = vec![connection];
        let configuration = Configuration { enabled: true, connections, ..Configuration::default() };
        SubscriberBuilder::new(configuration, true)
    }

    /// A subscriber of a whole configuration; [`Configuration::subscriber_of`] makes it of a publisher's.
    pub fn of(configuration: Configuration) -> SubscriberBuilder {
        SubscriberBuilder::new(configuration, false)
    }

    /// How the connections to brokers stand.
    #[cfg(feature = "mqtt")]
    #[must_use]
    pub fn brokers(&self) -> Vec<taktwerk_net::pubsub::mqtt::BrokerStatus> {
        crate::pubsub_model::lock(&self.brokers).iter().map(|(_, status)| status.clone()).collect()
    }

    /// Takes another configuration while it runs: readers that are not touched by it go on, others wait for their
    /// first message.
    ///
    /// # Errors
    /// What is wrong with the configuration, its addresses or the Variables it names; nothing has changed then.
    pub fn reconfigure(&self, configuration: Configuration) -> Result<(), PubSubStartError> {
        let targets = find_targets(&configuration, self.space.as_ref())?;
        let mut change = SubscriberChange::new(configuration);
        change.sink = Some(Box::new(move |sink| {
            let sink = sink.as_any_mut().and_then(|sink| sink.downcast_mut::<Targets<Callbacks>>());
            // It was made by us.
            if let Some(sink) = sink {
                sink.change(targets);
            }
        }));
        #[cfg(feature = "mqtt")]
        let brokers = self.brokers_of(&mut change)?;
        self.running.reconfigure(change)?;
        #[cfg(feature = "mqtt")]
        {
            *crate::pubsub_model::lock(&self.brokers) = brokers;
        }
        Ok(())
    }

    /// Inlets from brokers that are new, and how all brokers stand.
    #[cfg(feature = "mqtt")]
    fn brokers_of(
        &self,
        change: &mut SubscriberChange,
    ) -> Result<Vec<(String, taktwerk_net::pubsub::mqtt::BrokerStatus)>, PubSubStartError> {
        let current = self.running.configuration().unwrap_or_default();
        let known = crate::pubsub_model::lock(&self.brokers);
        let mut brokers = Vec::new();
        for (position, connection) in change.configuration.connections.iter().enumerate() {
            if !connection.url.starts_with("mqtt") || connection.reader_groups.is_empty() {
                continue;
            }
            let before = current.connection(&connection.name);
            let is_kept =
                before.is_some_and(|before| taktwerk_net::pubsub::receives_alike(before, connection));
            match known.iter().find(|(name, _)| is_kept && *name == connection.name) {
                Some(one) => brokers.push(one.clone()),
                // An inlet of the application's own.
                None if is_kept => {}
                None => {
                    let (inlet, status) =
                        taktwerk_net::pubsub::mqtt::subscriber_inlet(connection, &self.mqtt)?;
                    change.inlets.push((position, inlet));
                    brokers.push((connection.name.clone(), status));
                }
            }
        }
        Ok(brokers)
    }

    /// What was received so far.
    #[must_use]
    pub fn counters(&self) -> SubscriberCounters {
        self.running.counters()
    }

    /// Enables or disables a reader.
    pub fn set_enabled(&self, reader: ReaderIndex, enabled: bool) {
        self.running.run(move |engine, now, sink| engine.set_enabled(reader, enabled, now, sink));
    }

    /// The engine's thread.
    #[must_use]
    pub fn driver(&self) -> &RunningSubscriber {
        &self.running
    }

    /// Stops and waits for the thread.
    pub fn stop(self) {
        self.running.stop();
    }
}
