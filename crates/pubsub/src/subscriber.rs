//! The subscriber engine: ReaderGroups and DataSetReaders (Part 14 §5.4.2.2, §6.2.8, §6.2.9).
//!
//! A driver hands every received datagram to [`Subscriber::receive`] and calls [`Subscriber::poll`] when
//! [`Subscriber::poll_timeout`] is due. Values and events come through a [`Sink`] during these calls.
//!
//! What is received is looked at in this order: header, signature, replay, payload. Whatever fails is counted and
//! dropped; nothing that is not verified changes any state.

use crate::config::{self, Configuration, Problem};
use crate::index::ReaderIndex;
use crate::publisher_id::PublisherIdRef;
use crate::security::{KeyRequest, KeyStore, KeyStoreOptions, ReplayFloor, SecurityError, SecurityKeys};
use crate::state::PubSubState;
use crate::time::Now;
use crate::transmit::Transmit;
use crate::uadp::announcement::NumberedAnnouncement;
use crate::uadp::chunk::{Reassembler, ReassemblyLimits};
use crate::uadp::fields::{FieldsError, ReceivedField};
use crate::uadp::probe::Probe;
use crate::uadp::{DataSetMessageKind, SecurityMode};
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_schema::{ConfigurationVersionDataType, DataSetMetaDataType};
use taktwerk_types::{DecodeError, Instant, StatusCode, UtcTime};

pub(crate) mod ask;
mod change;
mod deliver;
mod group;
#[cfg(feature = "json")]
mod json;
mod open;
mod reader;
mod tracker;

use ask::Asker;
pub(crate) use change::same_reader;
use group::GroupCount;
pub use group::{ReaderGroupCounters, ReaderGroupIndex};
use reader::Reader;

/// What a subscriber is given besides its configuration.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SubscriberOptions {
    /// How keys are asked for.
    pub key_store: KeyStoreOptions,
    /// What chunked messages may cost.
    pub reassembly: ReassemblyLimits,
    /// Nanoseconds without an accepted message after which sequence numbers may start again, for readers without a
    /// MessageReceiveTimeout: a publisher that was restarted.
    pub sequence_reset_nanos: u64,
    /// Ask publishers for metadata that is missing or has another MajorVersion.
    pub ask_for_meta_data: bool,
    /// Senders whose sequence numbers a reader without fixed ids keeps apart.
    pub senders_max: usize,
    /// Nanoseconds that the timestamp of a secured message with data may differ from now; others are dropped, and those
    /// without a timestamp. What was recorded before we were started cannot be played to us then for longer than this. Needs
    /// clocks that agree so far. `None`: any age.
    pub message_age_max_nanos: Option<u64>,
}

impl Default for SubscriberOptions {
    fn default() -> Self {
        Self {
            key_store: KeyStoreOptions::default(),
            reassembly: ReassemblyLimits::default(),
            sequence_reset_nanos: 10_000_000_000,
            ask_for_meta_data: true,
            senders_max: 256,
            message_age_max_nanos: None,
        }
    }
}

/// A DataSetMessage for a reader.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DataSetMessage<'a> {
    /// Who it is for.
    pub reader: ReaderIndex,
    /// Who sent it.
    pub publisher_id: Option<PublisherIdRef<'a>>,
    /// From which WriterGroup, if it says so.
    pub writer_group_id: Option<u16>,
    /// From which DataSetWriter, if it says so.
    pub data_set_writer_id: Option<u16>,
    /// Key frame, delta frame, event or keep-alive.
    pub kind: DataSetMessageKind,
    /// Its number in the writer's sequence.
    pub sequence_number: Option<u32>,
    /// Messages of the writer that did not arrive before this one.
    pub missing: u32,
    /// When the values were sampled; of the NetworkMessage if the DataSetMessage does not say.
    pub timestamp: Option<UtcTime>,
    /// The overall status; Good if it is not sent.
    pub status: StatusCode,
    /// The version of the metadata the fields belong to, as far as it is sent.
    pub major_version: Option<u32>,
    /// The fields.
    pub fields: &'a [ReceivedField],
    /// What the message itself calls its fields, by their index: of JSON without metadata, otherwise empty.
    pub names: &'a [&'a str],
    /// What the fields mean.
    pub meta_data: &'a DataSetMetaDataType,
}

/// Something else that happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SubscriberEvent {
    /// A reader has another state.
    State {
        /// Which one.
        reader: ReaderIndex,
        /// Its new state.
        state: PubSubState,
    },
    /// It has another configuration: positions in all events that follow are those of it.
    Reconfigured(Arc<Configuration>),
    /// The writer uses metadata with another MajorVersion: its fields are not read until the new metadata is there.
    MetaDataChanged {
        /// Which reader.
        reader: ReaderIndex,
        /// The version that was sent.
        major_version: u32,
    },
    /// A reader has new metadata, from the publisher.
    MetaDataReceived {
        /// Which reader.
        reader: ReaderIndex,
        /// Its version.
        version: ConfigurationVersionDataType,
    },
    /// A publisher announced something.
    Announcement {
        /// On which connection.
        connection: usize,
        /// Who.
        publisher_id: Option<crate::PublisherId>,
        /// What.
        announcement: Box<NumberedAnnouncement>,
    },
    /// A message was dropped.
    Dropped {
        /// On which connection.
        connection: usize,
        /// Why.
        reason: Drop,
    },
}

/// Why a message was dropped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Drop {
    /// It is malformed.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// It is not secured as it must be, forged, or a replay.
    #[error("security: {0}")]
    Security(#[from] SecurityError),
    /// The fields of a DataSetMessage cannot be read.
    #[error("fields: {0}")]
    Fields(#[from] FieldsError),
    /// A JSON message that is none.
    #[error("JSON: {0}")]
    Json(String),
}

/// Where everything goes.
pub trait Sink {
    /// Takes a DataSetMessage.
    fn message(&mut self, message: &DataSetMessage<'_>);

    /// Takes an event.
    fn event(&mut self, event: SubscriberEvent) {
        let _ = event;
    }

    /// The sink itself, for who changes it while the subscriber runs.
    fn as_any_mut(&mut self) -> Option<&mut dyn core::any::Any> {
        None
    }
}

/// A function that takes DataSetMessages; events are ignored.
impl<F: FnMut(&DataSetMessage<'_>)> Sink for F {
    fn message(&mut self, message: &DataSetMessage<'_>) {
        self(message);
    }
}

/// Counters of a subscriber (Part 14 §9.1.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SubscriberCounters {
    /// NetworkMessages received.
    pub network_messages: u64,
    /// DataSetMessages given to readers.
    pub data_set_messages: u64,
    /// DataSetMessages that did not arrive.
    pub missing: u64,
    /// DataSetMessages that came twice or too late.
    pub duplicates: u64,
    /// DataSetMessages whose sequence number made no sense.
    pub out_of_sequence: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Messages dropped because of their security.
    pub security_errors: u64,
    /// Of these, replays.
    pub replays: u64,
    /// Messages that no reader wants.
    pub unwanted: u64,
    /// Of these, secured ones that a reader without message security, and so without keys, would have wanted.
    pub unwanted_secured: u64,
    /// Chunks received.
    pub chunks: u64,
    /// Chunked messages given up.
    pub chunked_dropped: u64,
}

/// Counters of a DataSetReader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReaderCounters {
    /// DataSetMessages that were delivered.
    pub messages: u64,
    /// DataSetMessages for it that could not be read.
    pub failed: u64,
    /// NetworkMessages that may have been for it and were dropped because of their security.
    pub security_errors: u64,
    /// DataSetMessages that did not arrive.
    pub missing: u64,
    /// The number of the last DataSetMessage that had one.
    pub sequence_number: Option<u32>,
}

/// Security of a group or reader, as the receiving side needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) group_id: String,
    pub(crate) mode: SecurityMode,
}

/// All readers of a configuration.
pub struct Subscriber {
    configuration: Arc<Configuration>,
    pub(crate) options: SubscriberOptions,
    pub(crate) readers: Vec<Reader>,
    pub(crate) groups: Vec<GroupCount>,
    keys: KeyStore,
    reassembler: Reassembler,
    pub(crate) asker: Asker,
    pub(crate) counters: SubscriberCounters,
    /// Fields of the message that is being delivered: memory that is used again.
    pub(crate) fields: Vec<ReceivedField>,
    /// What nonces of secured probes are made of; without it, probes are not secured.
    entropy: Option<Box<dyn Entropy>>,
}

impl core::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Subscriber")
            .field("readers", &self.readers.len())
            .field("keys", &self.keys)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Subscriber {
    /// A subscriber that does not run yet.
    ///
    /// # Errors
    /// All that is wrong with the configuration.
    pub fn new(
        configuration: Configuration,
        options: SubscriberOptions,
        provider: Arc<dyn PubSubProvider>,
    ) -> Result<Self, Vec<Problem>> {
        let problems = config::validate(&configuration);
        if !problems.is_empty() {
            return Err(problems);
        }
        let configuration = Arc::new(configuration);
        let mut keys = KeyStore::new(provider, options.key_store);
        let mut readers = Vec::new();
        for (connection_index, connection) in configuration.connections.iter().enumerate() {
            for (group_index, group) in connection.reader_groups.iter().enumerate() {
                for (reader_index, reader) in group.readers.iter().enumerate() {
                    let index = ReaderIndex {
                        connection: connection_index,
                        group: group_index,
                        reader: reader_index,
                    };
                    let security = reader.security.as_ref().unwrap_or(&group.security);
                    if security.mode != SecurityMode::None {
                        let services = match security.security_key_services.as_slice() {
                            [] => configuration.default_security_key_services.as_slice(),
                            own => own,
                        };
                        keys.add_group(&security.security_group_id, services);
                    }
                    let enabled =
                        configuration.enabled && connection.enabled && group.enabled && reader.enabled;
                    readers.push(Reader::new(index, reader, security, enabled, &options));
                }
            }
        }
        let groups = GroupCount::all(&configuration);
        readers.iter_mut().for_each(|reader| reader.group = group::slot(&groups, reader));
        Ok(Self {
            configuration,
            options,
            readers,
            groups,
            keys,
            reassembler: Reassembler::new(options.reassembly),
            asker: Asker::default(),
            counters: SubscriberCounters::default(),
            fields: Vec::new(),
            entropy: None,
        })
    }

    /// Secures the probes about data that is secured, in turns with probes that are not: many publishers understand only
    /// these. Without this, none is secured.
    #[must_use]
    pub fn securing_probes(mut self, entropy: Box<dyn Entropy>) -> Self {
        self.entropy = Some(entropy);
        self
    }

    /// The configuration.
    #[must_use]
    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    /// Starts all enabled readers: from now on they wait for messages.
    pub fn start(&mut self, now: Now, sink: &mut dyn Sink) {
        for reader in &mut self.readers {
            if reader.enabled {
                reader.enable(now.instant, sink);
            }
        }
        self.ask_where_unknown(now);
    }

    /// Stops all readers.
    pub fn stop(&mut self, sink: &mut dyn Sink) {
        self.readers.iter_mut().for_each(|reader| reader.disable(sink));
    }

    /// Enables or disables a reader.
    pub fn set_enabled(&mut self, index: ReaderIndex, enabled: bool, now: Now, sink: &mut dyn Sink) {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.index == index) {
            if enabled { reader.enable(now.instant, sink) } else { reader.disable(sink) }
        }
    }

    /// When [`Self::poll`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.readers.iter().filter_map(Reader::deadline).chain(self.asker.poll_timeout()).min()
    }

    /// Does all that is due: readers whose messages stay out are in error; questions to publishers.
    pub fn poll(&mut self, now: Now, sink: &mut dyn Sink, out: &mut Transmit) {
        for reader in &mut self.readers {
            reader.check_timeout(now.instant, sink);
        }
        self.reassembler.expire(now.instant);
        self.counters.chunked_dropped = self.reassembler.dropped();
        let entropy: Option<&mut dyn Entropy> = match &mut self.entropy {
            Some(entropy) => Some(&mut **entropy),
            None => None,
        };
        let readers = self.readers.as_slice();
        self.asker.poll(now, out, &mut self.keys, entropy, |connection, publisher_id, probe| {
            ask::security(connection, publisher_id, probe, readers)
        });
    }

    /// Asks publishers on a connection; the answers come as [`SubscriberEvent::Announcement`].
    pub fn probe(
        &mut self,
        connection: usize,
        publisher_id: Option<crate::PublisherId>,
        probe: Probe,
        now: Now,
    ) {
        self.asker.ask(connection, publisher_id, probe, now.instant);
    }

    /// A call of GetSecurityKeys to make now.
    pub fn poll_key_request(&mut self, now: Now) -> Option<KeyRequest> {
        self.keys.poll_request(now.instant)
    }

    /// When [`Self::poll_key_request`] has something.
    #[must_use]
    pub fn key_timeout(&self) -> Option<Instant> {
        self.keys.poll_timeout()
    }

    /// The outcome of such a call, or keys that were pushed.
    ///
    /// # Errors
    /// The group is not known, or the keys cannot be used.
    pub fn set_keys(
        &mut self,
        security_group_id: &str,
        outcome: Result<&SecurityKeys, StatusCode>,
        now: Now,
    ) -> Result<(), SecurityError> {
        self.keys.answer(security_group_id, outcome, now.instant)
    }

    /// Goes on from what another one had received, which runs no more: nothing that it has taken is taken again. To be called
    /// before there are keys.
    #[must_use]
    pub fn not_below(mut self, floor: ReplayFloor) -> Self {
        self.keys.restore(floor);
        self
    }

    /// What was received so far, for [`Self::not_below`] of the next one.
    #[must_use]
    pub fn replay_floor(&self) -> ReplayFloor {
        self.keys.replay_floor()
    }

    /// The keys of a group are known to be others now, because the key service has invalidated them or changed to the next:
    /// they are asked for at once.
    pub fn refresh_keys(&mut self, security_group_id: &str, now: Now) {
        self.keys.refresh(security_group_id, now.instant);
    }

    /// The state of a reader.
    #[must_use]
    pub fn state(&self, index: ReaderIndex) -> PubSubState {
        let reader = self.readers.iter().find(|reader| reader.index == index);
        reader.map_or(PubSubState::DISABLED, |reader| reader.state)
    }

    /// The metadata a reader uses.
    #[must_use]
    pub fn meta_data(&self, index: ReaderIndex) -> Option<&DataSetMetaDataType> {
        self.readers.iter().find(|reader| reader.index == index).map(|reader| &reader.meta_data)
    }

    /// Gives a reader metadata: from a configuration file, a retained broker message, a server.
    pub fn set_meta_data(&mut self, index: ReaderIndex, meta_data: DataSetMetaDataType, sink: &mut dyn Sink) {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.index == index) {
            reader.set_meta_data(meta_data, sink);
        }
    }

    /// What was received so far.
    #[must_use]
    pub fn counters(&self) -> SubscriberCounters {
        self.counters
    }

    /// The counters of all readers.
    pub fn reader_counters(&self) -> impl Iterator<Item = (ReaderIndex, ReaderCounters)> {
        self.readers.iter().map(|reader| (reader.index, reader.counters))
    }

    /// All readers.
    pub fn readers(&self) -> impl Iterator<Item = ReaderIndex> {
        self.readers.iter().map(|reader| reader.index)
    }
}
