//! The subscriber engine: ReaderGroups and DataSetReaders (Part 14 §5.4.2.2, §6.2.8, §6.2.9).
//!
//! A driver passes every received datagram to [`Subscriber::receive`] and calls [`Subscriber::poll`] when
//! [`Subscriber::poll_timeout`] is due. Values and events are delivered to a [`Sink`] during these calls.
//!
//! Received messages are checked in this order: header, signature, replay, payload. Failures are counted and the
//! message is dropped. Unverified messages do not change any state.

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

/// Options of a subscriber besides its configuration.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SubscriberOptions {
    /// Options of key requests.
    pub key_store: KeyStoreOptions,
    /// Limits for chunked messages.
    pub reassembly: ReassemblyLimits,
    /// Nanoseconds without an accepted message after which sequence numbers may restart, for readers without a
    /// MessageReceiveTimeout: the publisher was restarted.
    pub sequence_reset_nanos: u64,
    /// Request metadata from publishers if it is missing or the MajorVersion differs.
    pub ask_for_meta_data: bool,
    /// Maximum senders whose sequence numbers a reader without fixed ids tracks.
    pub senders_max: usize,
    /// Maximum difference between the timestamp of a secured data message and now, in nanoseconds; others are dropped,
    /// and messages without timestamp. After a start, older recordings can then not be replayed. Requires sufficiently
    /// synchronized clocks. `None`: any age.
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
    /// The reader.
    pub reader: ReaderIndex,
    /// The sender.
    pub publisher_id: Option<PublisherIdRef<'a>>,
    /// Its WriterGroup, if sent.
    pub writer_group_id: Option<u16>,
    /// Its DataSetWriter, if sent.
    pub data_set_writer_id: Option<u16>,
    /// Key frame, delta frame, event or keep-alive.
    pub kind: DataSetMessageKind,
    /// Its sequence number.
    pub sequence_number: Option<u32>,
    /// Number of the writer's messages missing before this one.
    pub missing: u32,
    /// Sampling time of the values; that of the NetworkMessage if the DataSetMessage has none.
    pub timestamp: Option<UtcTime>,
    /// The overall status; Good if not sent.
    pub status: StatusCode,
    /// The MajorVersion of the fields' metadata, if sent.
    pub major_version: Option<u32>,
    /// The fields.
    pub fields: &'a [ReceivedField],
    /// The field names in the message, by index: for JSON without metadata, otherwise empty.
    pub names: &'a [&'a str],
    /// Metadata of the fields.
    pub meta_data: &'a DataSetMetaDataType,
}

/// An event of a subscriber.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SubscriberEvent {
    /// The state of a reader has changed.
    State {
        /// The reader.
        reader: ReaderIndex,
        /// Its new state.
        state: PubSubState,
    },
    /// The configuration has changed: positions in all following events refer to it.
    Reconfigured(Arc<Configuration>),
    /// The writer uses another MajorVersion: its fields are not read until the new metadata is available.
    MetaDataChanged {
        /// The reader.
        reader: ReaderIndex,
        /// The received version.
        major_version: u32,
    },
    /// A reader has received metadata from the publisher.
    MetaDataReceived {
        /// The reader.
        reader: ReaderIndex,
        /// Its version.
        version: ConfigurationVersionDataType,
    },
    /// A publisher announced something.
    Announcement {
        /// The connection.
        connection: usize,
        /// The publisher.
        publisher_id: Option<crate::PublisherId>,
        /// The announcement.
        announcement: Box<NumberedAnnouncement>,
    },
    /// A message was dropped.
    Dropped {
        /// The connection.
        connection: usize,
        /// The reason.
        reason: Drop,
    },
}

/// Why a message was dropped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Drop {
    /// The message is malformed.
    #[error("malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// The message is not secured as required, forged, or replayed.
    #[error("security: {0}")]
    Security(#[from] SecurityError),
    /// The fields of a DataSetMessage cannot be decoded.
    #[error("fields: {0}")]
    Fields(#[from] FieldsError),
    /// An invalid JSON message.
    #[error("JSON: {0}")]
    Json(String),
}

/// Receives everything that a subscriber delivers.
pub trait Sink {
    /// Takes a DataSetMessage.
    fn message(&mut self, message: &DataSetMessage<'_>);

    /// Takes an event.
    fn event(&mut self, event: SubscriberEvent) {
        let _ = event;
    }

    /// The concrete sink, to be changed while the subscriber runs.
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
    /// DataSetMessages delivered to readers.
    pub data_set_messages: u64,
    /// DataSetMessages that did not arrive.
    pub missing: u64,
    /// DataSetMessages received twice or too late.
    pub duplicates: u64,
    /// DataSetMessages with an invalid sequence number.
    pub out_of_sequence: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Messages dropped because of their security.
    pub security_errors: u64,
    /// Replays among them.
    pub replays: u64,
    /// Messages for no reader.
    pub unwanted: u64,
    /// Secured messages among them that a reader without message security, and so without keys, would have accepted.
    pub unwanted_secured: u64,
    /// Chunks received.
    pub chunks: u64,
    /// Chunked messages that were incomplete.
    pub chunked_dropped: u64,
}

/// Counters of a DataSetReader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReaderCounters {
    /// DataSetMessages that were delivered.
    pub messages: u64,
    /// DataSetMessages for it that could not be decoded.
    pub failed: u64,
    /// NetworkMessages that may have been for it and were dropped because of their security.
    pub security_errors: u64,
    /// DataSetMessages that did not arrive.
    pub missing: u64,
    /// Sequence number of the last DataSetMessage that had one.
    pub sequence_number: Option<u32>,
}

/// Required security of a group or reader.
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
    /// Fields of the message being delivered; the buffer is reused.
    pub(crate) fields: Vec<ReceivedField>,
    /// Randomness for nonces of secured probes; without it, probes are not secured.
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
    /// Creates a stopped subscriber.
    ///
    /// # Errors
    /// All problems of the configuration.
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

    /// Secures probes about secured data, alternating with unsecured ones, because many publishers support only these.
    /// Without this option, no probe is secured.
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

    /// Starts all enabled readers.
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

    /// Processes all that is due: timeouts of readers, and requests to publishers.
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

    /// Sends a probe on a connection; answers arrive as [`SubscriberEvent::Announcement`].
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

    /// Takes the result of such a call, or keys that were pushed.
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

    /// Continues from the replay state of a previous subscriber: messages that it has accepted are not accepted again.
    /// Call it before there are keys.
    #[must_use]
    pub fn not_below(mut self, floor: ReplayFloor) -> Self {
        self.keys.restore(floor);
        self
    }

    /// The replay state, for [`Self::not_below`] of the next subscriber.
    #[must_use]
    pub fn replay_floor(&self) -> ReplayFloor {
        self.keys.replay_floor()
    }

    /// The keys of a group have changed, because the key service has invalidated them or moved to the next: fetch them
    /// at once.
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

    /// Sets the metadata of a reader: from a configuration file, a retained broker message, or a server.
    pub fn set_meta_data(&mut self, index: ReaderIndex, meta_data: DataSetMetaDataType, sink: &mut dyn Sink) {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.index == index) {
            reader.set_meta_data(meta_data, sink);
        }
    }

    /// Counters of received messages.
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
