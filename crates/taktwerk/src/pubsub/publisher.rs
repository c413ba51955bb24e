//! Publishing.

#[cfg(feature = "mqtt")]
use super::brokers::Brokers;
use super::data_set::{DataSet, Source, Sources, plan, resolve};
use super::setters::{datagram_setters, engine_setters, transport_setters};
use super::{KeySource, LatenessSnapshot, Prepare, PubSubStartError, PublisherId, RealTime, SecurityMode};
use core::fmt;
use core::time::Duration;
use std::sync::Arc;
use taktwerk_crypto::PubSubProvider;
use taktwerk_crypto::pubsub_aws::AwsPubSubProvider;
use taktwerk_net::pubsub::publisher::EventHandler;
use taktwerk_net::pubsub::{
    Link, PreparedChange, PublisherChange, PublisherDriverOptions, RunningPublisher, SentTotals, UdpOptions,
};
use taktwerk_pubsub::config::{Configuration, Connection, DataSetWriter, GroupSecurity, WriterGroup};
use taktwerk_pubsub::publisher::GroupCounters;
use taktwerk_pubsub::state::PubSubState;
use taktwerk_pubsub::{FieldWriter, GroupIndex, PublisherEvent};
use taktwerk_schema::DataSetFieldContentMask;
use taktwerk_server::space::AddressSpace;
use taktwerk_types::DataValue;

/// The message layout (Part 14 Annex A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Messages describe themselves: subscribers need no configuration.
    #[default]
    Dynamic,
    /// Every field has a fixed position: the shortest messages, with the lowest cost for sender and receiver.
    PeriodicFixed,
    /// JSON, for brokers.
    Json,
}

/// Settings of a publisher. Each has a default.
#[must_use = "nothing happens before start()"]
pub struct PublisherBuilder {
    configuration: Configuration,
    /// The connection and group of the short form.
    short: Option<Short>,
    /// Minimum message security of all WriterGroups.
    least: Option<(SecurityMode, String)>,
    sources: Vec<(String, Source)>,
    space: Option<Arc<AddressSpace>>,
    options: PublisherDriverOptions,
    #[cfg(feature = "mqtt")]
    mqtt: taktwerk_net::pubsub::mqtt::MqttOptions,
    provider: Arc<dyn PubSubProvider>,
}

struct Short {
    connection: Connection,
    interval: Duration,
    layout: Layout,
    security: GroupSecurity,
    message_size: u32,
    field_content: DataSetFieldContentMask,
}

impl fmt::Debug for PublisherBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl PublisherBuilder {
    fn new(configuration: Configuration, short: Option<Short>) -> Self {
        Self {
            configuration,
            short,
            least: None,
            sources: Vec::new(),
            space: None,
            options: PublisherDriverOptions::default(),
            #[cfg(feature = "mqtt")]
            mqtt: Default::default(),
            provider: Arc::new(AwsPubSubProvider),
        }
    }

    fn short(mut self, set: impl FnOnce(&mut Short)) -> Self {
        if let Some(short) = &mut self.short {
            set(short);
        }
        self
    }

    fn connection(self, set: impl FnOnce(&mut Connection)) -> Self {
        self.short(|short| set(&mut short.connection))
    }

    fn secured(mut self, mode: SecurityMode, security_group_id: &str) -> Self {
        self.least = Some((mode, security_group_id.to_owned()));
        self.configuration.strengthen_writers(mode, security_group_id);
        self.short(|short| {
            (short.security.mode, short.security.security_group_id) = (mode, security_group_id.to_owned());
        })
    }

    transport_setters! { options: options, mqtt: mqtt, provider: provider }
    datagram_setters! { options }
    engine_setters! {}

    /// The PublisherId as a 16-bit number. Default: 1.
    pub fn publisher_id(self, id: u16) -> Self {
        self.publisher(PublisherId::UInt16(id))
    }

    /// The PublisherId, of any type.
    pub fn publisher(self, id: PublisherId) -> Self {
        self.short(|short| short.connection.publisher_id = Some(id))
    }

    /// The publishing interval. Default: 100 ms.
    pub fn interval(self, interval: Duration) -> Self {
        self.short(|short| short.interval = interval)
    }

    /// The message layout. Default: [`Layout::Dynamic`]; for URLs such as `mqtt+json://…` JSON.
    pub fn layout(self, layout: Layout) -> Self {
        self.short(|short| short.layout = layout)
    }

    /// Largest NetworkMessage in bytes. Default: the size that fits into a frame. IP fragments larger ones.
    pub fn message_size(self, bytes: u32) -> Self {
        self.short(|short| short.message_size = bytes)
    }

    /// Additional content of each field, such as its status. Default: none; only bad values carry a status. Not available with
    /// [`Layout::PeriodicFixed`].
    pub fn field_content(self, mask: DataSetFieldContentMask) -> Self {
        self.short(|short| short.field_content = mask)
    }

    /// Adds a data set with its own DataSetWriter: 1 for the first, 2 for the second.
    pub fn data_set(mut self, data_set: DataSet) -> Self {
        let (published, source) = data_set.into_parts();
        self.sources.push((published.name.clone(), source));
        self.configuration.data_sets.push(published);
        self
    }

    /// Supplies the values of a data set of the configuration. `fill` is called on the timer thread and must not block. It
    /// returns false if there is nothing to send in this cycle (only for acyclic data sets).
    pub fn values(
        mut self,
        data_set: &str,
        fill: impl FnMut(&mut [DataValue]) -> bool + Send + 'static,
    ) -> Self {
        self.sources.push((data_set.to_owned(), Source::Application(Box::new(fill))));
        self
    }

    /// Writes the fields of a data set of the configuration directly into the message: see [`DataSet::from_writer`]. It returns
    /// false if there is nothing to send in this cycle (only for acyclic data sets).
    pub fn fields(
        mut self,
        data_set: &str,
        write: impl FnMut(&mut FieldWriter<'_>) -> bool + Send + 'static,
    ) -> Self {
        self.sources.push((data_set.to_owned(), Source::Writer(Box::new(write))));
        self
    }

    /// How long before the send time messages are prepared. Default: [`Prepare::Automatic`].
    pub fn prepare(mut self, prepare: Prepare) -> Self {
        self.options.prepare = prepare;
        self
    }

    /// Cycles that are sent later than this are counted as late, with the reason. Default: 1 ms.
    pub fn late_after(mut self, span: Duration) -> Self {
        self.options.late_after = span;
        self
    }

    /// Whether discovery probes are answered. Default: yes.
    pub fn discovery(mut self, answer: bool) -> Self {
        self.options.discovery = answer;
        self
    }

    /// Called on the timer thread with events of the groups. It must not block.
    pub fn on_event(mut self, handler: impl FnMut(&PublisherEvent) + Send + 'static) -> Self {
        let handler: EventHandler = Box::new(handler);
        self.options.events = Some(handler);
        self
    }

    /// Uses a transport supplied by the application for the connection at a position.
    pub fn link(mut self, connection: usize, link: Box<dyn Link>) -> Self {
        self.options.links.push((connection, link));
        self
    }

    /// The configuration, from which a subscriber's can be derived ([`Configuration::subscriber_of`]).
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        let mut configuration = self.configuration.clone();
        let Some(short) = &self.short else { return configuration };
        let millis = short.interval.as_secs_f64() * 1000.0;
        let mut group = match short.layout {
            Layout::Dynamic => WriterGroup::dynamic("group", 1, millis),
            Layout::PeriodicFixed => WriterGroup::periodic_fixed("group", 1, millis),
            Layout::Json => WriterGroup::json("group", 1, millis),
        };
        group.security = short.security.clone();
        group.max_network_message_size = short.message_size;
        for (position, data_set) in configuration.data_sets.iter().enumerate() {
            let make = match short.layout {
                Layout::Dynamic => DataSetWriter::dynamic,
                Layout::PeriodicFixed => DataSetWriter::periodic_fixed,
                Layout::Json => DataSetWriter::json,
            };
            let id = u16::try_from(position + 1).unwrap_or(u16::MAX);
            let mut writer = make(&data_set.name, id, &data_set.name);
            if short.layout != Layout::PeriodicFixed {
                writer.field_content_mask = short.field_content;
            }
            group.writers.push(writer);
        }
        let mut connection = short.connection.clone();
        connection.writer_groups.push(group);
        configuration.connections.push(connection);
        configuration
    }

    /// Starts publishing.
    ///
    /// # Errors
    /// The configuration, an address or a Variable is wrong, or the kernel refused a request.
    #[cfg_attr(not(feature = "mqtt"), allow(unused_mut))] // brokers' links are added
    pub fn start(mut self) -> Result<Publisher, PubSubStartError> {
        let configuration = self.configuration();
        #[cfg(feature = "mqtt")]
        let brokers = {
            let links = &self.options.links;
            let is_used = |position: usize, connection: &Connection| {
                !connection.writer_groups.is_empty() && !links.iter().any(|(of, _)| *of == position)
            };
            let (brokers, links) =
                Brokers::new(self.mqtt, &configuration, is_used, taktwerk_net::pubsub::mqtt::publisher_link)?;
            self.options.links.extend(links);
            brokers
        };
        let given = self.sources.iter().map(|(name, _)| name.clone()).collect();
        let sources = resolve(&configuration, self.sources, self.space.as_ref())?;
        let running = RunningPublisher::start(configuration, sources, self.provider, self.options)?;
        Ok(Publisher {
            running,
            given,
            least: self.least,
            space: self.space,
            #[cfg(feature = "mqtt")]
            brokers,
        })
    }
}

/// A running publisher. It stops on drop.
#[derive(Debug)]
pub struct Publisher {
    running: RunningPublisher,
    /// Data sets whose values the application supplies.
    given: Vec<String>,
    /// Minimum message security of all WriterGroups.
    least: Option<(SecurityMode, String)>,
    space: Option<Arc<AddressSpace>>,
    #[cfg(feature = "mqtt")]
    brokers: Brokers,
}

impl Publisher {
    /// A publisher with one connection and one WriterGroup.
    pub fn builder(url: &str) -> PublisherBuilder {
        let connection = Connection::new("connection", Some(PublisherId::UInt16(1)), url);
        let is_json = url.contains("+json://");
        let short = Short {
            connection,
            interval: Duration::from_millis(100),
            layout: if is_json { Layout::Json } else { Layout::Dynamic },
            security: GroupSecurity::default(),
            message_size: 0,
            field_content: DataSetFieldContentMask::default(),
        };
        PublisherBuilder::new(Configuration { enabled: true, ..Configuration::default() }, Some(short))
    }

    /// A publisher of a whole configuration.
    pub fn of(configuration: Configuration) -> PublisherBuilder {
        PublisherBuilder::new(configuration, None)
    }

    /// The lateness of its cycles, with reasons.
    #[must_use]
    pub fn lateness(&self) -> LatenessSnapshot {
        self.running.lateness()
    }

    /// Totals of sent messages.
    #[must_use]
    pub fn sent(&self) -> SentTotals {
        self.running.sent()
    }

    /// The states of the connections to brokers.
    #[cfg(feature = "mqtt")]
    #[must_use]
    pub fn brokers(&self) -> Vec<taktwerk_net::pubsub::mqtt::BrokerStatus> {
        self.brokers.statuses()
    }

    /// Switches to another configuration while running. Unchanged parts continue without a gap; elements with the same name
    /// continue their sequence numbers. Values that the application supplies stay connected. The minimum of
    /// [`security`](PublisherBuilder::security) applies to the new configuration too.
    ///
    /// # Errors
    /// The configuration, an address or a Variable is wrong; nothing has changed then.
    pub fn reconfigure(&self, configuration: Configuration) -> Result<(), PubSubStartError> {
        let prepared = self.prepare(configuration)?;
        self.running.commit(prepared);
        Ok(())
    }

    /// The part of [`Self::reconfigure`] that can fail. The [`driver`](Self::driver) commits the result.
    ///
    /// # Errors
    /// As there.
    pub fn prepare(&self, mut configuration: Configuration) -> Result<PreparedChange, PubSubStartError> {
        if let Some((mode, group)) = &self.least {
            configuration.strengthen_writers(*mode, group);
        }
        let current = self.running.configuration();
        let plan = plan(&current, &configuration, &self.given, self.space.as_ref())?;
        let mut change = PublisherChange::new(configuration);
        change.values = Some(Box::new(move |values| {
            let sources = values.as_any_mut().and_then(|values| values.downcast_mut::<Sources>());
            // Always succeeds: the sources were created here.
            if let Some(sources) = sources {
                sources.change(plan);
            }
        }));
        #[cfg(feature = "mqtt")]
        let statuses = {
            let (statuses, links) = self.brokers.change(
                &current,
                &change.configuration,
                |_, connection| !connection.writer_groups.is_empty(),
                taktwerk_net::pubsub::sends_alike,
                taktwerk_net::pubsub::mqtt::publisher_link,
            )?;
            change.links.extend(links);
            statuses
        };
        let prepared = self.running.prepare(change)?;
        #[cfg(feature = "mqtt")]
        self.brokers.commit(statuses);
        Ok(prepared)
    }

    /// State and counters of each WriterGroup; empty if the publisher has failed.
    #[must_use]
    pub fn groups(&self) -> Vec<(GroupIndex, PubSubState, GroupCounters)> {
        let all = self.running.ask(|engine, _| {
            let groups = engine.groups();
            groups.map(|group| (group, engine.state(group), engine.counters(group))).collect()
        });
        all.unwrap_or_default()
    }

    /// Enables or disables a WriterGroup.
    pub fn set_enabled(&self, group: GroupIndex, enabled: bool) {
        self.running.run(move |engine, now| engine.set_enabled(group, enabled, now.instant, now));
    }

    /// Enables or disables one DataSetWriter of a group, by its position.
    pub fn set_writer_enabled(&self, group: GroupIndex, writer: usize, enabled: bool) {
        self.running.run(move |engine, _| engine.set_writer_enabled(group, writer, enabled));
    }

    /// The engine's thread.
    #[must_use]
    pub fn driver(&self) -> &RunningPublisher {
        &self.running
    }

    /// Stops and waits for the thread.
    pub fn stop(self) {
        self.running.stop();
    }
}
