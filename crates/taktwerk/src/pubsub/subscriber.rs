//! Subscribing.

#[cfg(feature = "mqtt")]
use super::brokers::Brokers;
use super::setters::{engine_setters, transport_setters};
use super::target::{Targets, find_targets};
use super::{KeySource, PubSubStartError, PublisherId, RealTime, SecurityMode, SubscriberEvent};
use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
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

/// Settings of a subscriber. Each has a default.
#[must_use = "nothing happens before start()"]
pub struct SubscriberBuilder {
    configuration: Configuration,
    /// Whether the single reader of the short form is used.
    is_short: bool,
    /// Minimum message security of all readers.
    least: Option<(SecurityMode, String)>,
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
            least: None,
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

    fn secured(mut self, mode: SecurityMode, security_group_id: &str) -> Self {
        self.least = Some((mode, security_group_id.to_owned()));
        self.configuration.strengthen_readers(mode, security_group_id);
        self.connection(|connection| {
            for group in &mut connection.reader_groups {
                (group.security.mode, group.security.security_group_id) =
                    (mode, security_group_id.to_owned());
            }
        })
    }

    transport_setters! { options: options, mqtt: mqtt, provider: provider }
    engine_setters! {}

    fn reader(self, set: impl FnOnce(&mut DataSetReader)) -> Self {
        self.connection(|connection| {
            let groups = connection.reader_groups.iter_mut();
            if let Some(reader) = groups.flat_map(|group| group.readers.iter_mut()).next() {
                set(reader);
            }
        })
    }

    /// Receives only from this publisher. Default: from all.
    pub fn publisher_id(self, id: u16) -> Self {
        self.publisher(PublisherId::UInt16(id))
    }

    /// Receives only from this publisher, with an id of any type.
    pub fn publisher(self, id: PublisherId) -> Self {
        self.reader(|reader| reader.publisher_id = Some(id))
    }

    /// Receives only this WriterGroup. Default: all.
    pub fn writer_group(self, id: u16) -> Self {
        self.reader(|reader| reader.writer_group_id = id)
    }

    /// Receives only this DataSetWriter. Default: all.
    pub fn writer(self, id: u16) -> Self {
        self.reader(|reader| reader.data_set_writer_id = id)
    }

    /// The publishing interval (UADP). If messages arrive regularly, the subscriber busy-polls shortly before each
    /// ([`Self::only_sleep`]). Default: unknown.
    pub fn interval(self, interval: Duration) -> Self {
        self.reader(|reader| {
            if let DataSetReaderMessage::Uadp(uadp) = &mut reader.message {
                uadp.publishing_interval = interval.as_secs_f64() * 1e3;
            }
        })
    }

    /// The metadata of the fields. Default: the publisher's answer to a discovery request, if publisher and writer are set.
    /// Otherwise fields are identified by number.
    pub fn meta_data(self, meta_data: DataSetMetaDataType) -> Self {
        self.reader(|reader| reader.meta_data = meta_data)
    }

    /// Called with each DataSetMessage on the receiving thread. It must not block.
    pub fn on_message(mut self, on_message: impl FnMut(&DataSetMessage<'_>) + Send + 'static) -> Self {
        self.callbacks.on_message = Some(Box::new(on_message));
        self
    }

    /// Called with all other events on the receiving thread. It must not block.
    pub fn on_event(mut self, on_event: impl FnMut(SubscriberEvent) + Send + 'static) -> Self {
        self.callbacks.on_event = Some(Box::new(on_event));
        self
    }

    /// Always busy-polls: uses a whole CPU for the lowest latency. Default: no.
    pub fn busy_poll(mut self, busy: bool) -> Self {
        self.options.busy_poll = busy;
        self
    }

    /// Always sleeps until a message arrives. Otherwise, the subscriber busy-polls for up to 375 µs per cycle before messages
    /// that arrive at regular intervals and whose reader has a PublishingInterval. That halves their delivery time.
    pub fn only_sleep(mut self, only: bool) -> Self {
        self.options.only_sleep = only;
        self
    }

    /// Rejects secured messages whose timestamp differs more from the current time, and those without a timestamp. This limits
    /// replay of recorded messages to a restarted subscriber. Requires synchronized clocks. Default: any age.
    pub fn message_age_max(mut self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.options.engine.message_age_max_nanos = Some(nanos);
        self
    }

    /// Stores in a file which secured messages were received, so that none is accepted again after a restart. Messages of the
    /// last second before a crash are not covered. Each subscriber needs its own file. Default: nothing is stored.
    pub fn replay_floor(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.replay_floor = Some(path.into());
        self
    }

    /// Uses a transport supplied by the application for the connection at a position.
    pub fn inlet(mut self, connection: usize, inlet: InletMaker, link: Option<Box<dyn Link>>) -> Self {
        self.options.inlets.push((connection, inlet));
        self.options.links.extend(link.map(|link| (connection, link)));
        self
    }

    /// The configuration.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Starts receiving.
    ///
    /// # Errors
    /// The configuration, an address or a Variable is wrong, or the kernel refused a request.
    #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' inlets are added
    pub fn start(mut self) -> Result<Subscriber, PubSubStartError> {
        #[cfg(feature = "mqtt")]
        let brokers = {
            let inlets = &self.options.inlets;
            let is_used = |position: usize, connection: &Connection| {
                !connection.reader_groups.is_empty() && !inlets.iter().any(|(of, _)| *of == position)
            };
            let make = taktwerk_net::pubsub::mqtt::subscriber_inlet;
            let (brokers, inlets) = Brokers::new(self.mqtt, &self.configuration, is_used, make)?;
            self.options.inlets.extend(inlets);
            brokers
        };
        let sink = Targets::resolve(&self.configuration, self.space.as_ref(), self.callbacks)?;
        let running = RunningSubscriber::start(self.configuration, sink, self.provider, self.options)?;
        Ok(Subscriber {
            running,
            least: self.least,
            space: self.space,
            #[cfg(feature = "mqtt")]
            brokers,
        })
    }
}

/// A running subscriber. It stops on drop.
#[derive(Debug)]
pub struct Subscriber {
    running: RunningSubscriber,
    /// Minimum message security of all readers.
    least: Option<(SecurityMode, String)>,
    space: Option<Arc<AddressSpace>>,
    #[cfg(feature = "mqtt")]
    brokers: Brokers,
}

impl Subscriber {
    /// Begins a subscriber to all messages that arrive at an address; the builder restricts it.
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

    /// Begins a subscriber with a whole configuration; [`Configuration::subscriber_of`] derives it from a publisher's.
    pub fn of(configuration: Configuration) -> SubscriberBuilder {
        SubscriberBuilder::new(configuration, false)
    }

    /// The states of the connections to brokers.
    #[cfg(feature = "mqtt")]
    #[must_use]
    pub fn brokers(&self) -> Vec<taktwerk_net::pubsub::mqtt::BrokerStatus> {
        self.brokers.statuses()
    }

    /// Switches to another configuration while running. Unchanged readers continue; others wait for their first message.
    ///
    /// # Errors
    /// The configuration, an address or a Variable is wrong; nothing has changed then.
    pub fn reconfigure(&self, mut configuration: Configuration) -> Result<(), PubSubStartError> {
        if let Some((mode, group)) = &self.least {
            configuration.strengthen_readers(*mode, group);
        }
        let targets = find_targets(&configuration, self.space.as_ref())?;
        let mut change = SubscriberChange::new(configuration);
        change.sink = Some(Box::new(move |sink| {
            let sink = sink.as_any_mut().and_then(|sink| sink.downcast_mut::<Targets<Callbacks>>());
            // Always succeeds: the sink was created here.
            if let Some(sink) = sink {
                sink.change(targets);
            }
        }));
        #[cfg(feature = "mqtt")]
        let statuses = {
            let (statuses, inlets) = self.brokers.change(
                &self.running.configuration().unwrap_or_default(),
                &change.configuration,
                |_, connection| !connection.reader_groups.is_empty(),
                taktwerk_net::pubsub::receives_alike,
                taktwerk_net::pubsub::mqtt::subscriber_inlet,
            )?;
            change.inlets.extend(inlets);
            statuses
        };
        self.running.reconfigure(change)?;
        #[cfg(feature = "mqtt")]
        self.brokers.commit(statuses);
        Ok(())
    }

    /// Totals of received messages.
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
