//! The publisher engine: WriterGroups on their schedules (Part 14 §5.4.1.2, §6.2.4, §6.2.6).
//!
//! A driver calls [`Publisher::poll`] when [`Publisher::poll_timeout`] is due and sends the messages in the
//! [`Transmit`]. It passes received datagrams to [`Publisher::receive`] and makes the calls from
//! [`Publisher::poll_key_request`].
//!
//! Cycles are at `start + n × PublishingInterval` whatever the driver does, so lateness does not accumulate. Missed
//! cycles are counted and skipped.

use crate::config::{self, Configuration, Problem, WriterGroupMessage};
use crate::index::GroupIndex;
use crate::publisher_id::PublisherId;
use crate::security::{KeyRequest, KeyStore, KeyStoreOptions, SecurityError, SecurityKeys};
use crate::state::{PubSubState, Trigger, next};
use crate::time::Now;
use crate::transmit::{DatagramKind, Transmit};
use crate::uadp::SecurityMode;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_crypto::{Entropy, PubSubProvider};
use taktwerk_types::{Instant, StatusCode};

mod answer;
mod assemble;
mod change;
mod frame;
mod group;
mod in_place;
mod plan;
mod repeat;
mod schedule;
mod values;
mod writer;

use answer::Announcer;
pub(crate) use change::same_group;
use group::Group;
pub use in_place::{FieldWriter, Number};
pub use values::{InPlace, Values};

/// Options of a publisher besides its configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PublisherOptions {
    /// Options of key requests.
    pub key_store: KeyStoreOptions,
    /// Maximum NetworkMessage in bytes if not configured. Default: the payload of a UDP datagram in one Ethernet frame.
    pub message_len_max: usize,
    /// Maximum events per DataSetWriter and cycle; the rest follows in the next cycle.
    pub events_max: usize,
    /// Minimum nanoseconds between two announcements of the same kind (Part 14 §7.2.4.6.12.2).
    pub announcement_pause_nanos: u64,
    /// The application behind the publisher, for announcements.
    pub application: taktwerk_schema::ApplicationDescription,
    /// Its capability identifiers (Part 12).
    pub capabilities: Vec<taktwerk_types::UaString>,
    /// Endpoints of its server, if it has one.
    pub endpoints: Vec<taktwerk_schema::EndpointDescription>,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            key_store: KeyStoreOptions::default(),
            message_len_max: 1472,
            events_max: 64,
            announcement_pause_nanos: 500_000_000,
            application: Default::default(),
            capabilities: Vec::new(),
            endpoints: Vec::new(),
        }
    }
}

/// An event of a publisher.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PublisherEvent {
    /// The state of a WriterGroup has changed.
    GroupState {
        /// The group.
        group: GroupIndex,
        /// Its new state.
        state: PubSubState,
        /// The reason of an error.
        reason: Option<SecurityError>,
    },
    /// The configuration has changed: positions in all following events refer to it.
    Reconfigured(Arc<Configuration>),
    /// Cycles were missed because the driver called too late.
    Missed {
        /// The group.
        group: GroupIndex,
        /// Number of missed cycles.
        cycles: u64,
    },
    /// A DataSetMessage exceeds its ConfiguredSize or the maximum NetworkMessage and was not sent.
    TooLarge {
        /// The group.
        group: GroupIndex,
        /// Position of the writer in the group.
        writer: usize,
        /// Length of the message in bytes.
        len: usize,
        /// Maximum length in bytes.
        limit: usize,
    },
}

/// Counters of a WriterGroup (Part 14 §9.1.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GroupCounters {
    /// Cycles run.
    pub cycles: u64,
    /// Cycles missed.
    pub missed: u64,
    /// NetworkMessages created.
    pub network_messages: u64,
    /// DataSetMessages in them.
    pub data_set_messages: u64,
    /// Keep-alives among them.
    pub keep_alives: u64,
    /// Repeated NetworkMessages (MessageRepeatCount), not counted above.
    pub repeated: u64,
    /// Repetitions dropped because too many were waiting.
    pub repeats_dropped: u64,
    /// NetworkMessages that the transport did not accept.
    pub failed_transmissions: u64,
    /// NetworkMessages not created because of their security.
    pub security_errors: u64,
    /// DataSetMessages not sent because of their size.
    pub too_large: u64,
    /// Number of DataSetMessages that could not be patched and were laid out again.
    pub layouts: u64,
}

/// Counters of a DataSetWriter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WriterCounters {
    /// DataSetMessages not sent because of their size.
    pub failed: u64,
    /// Sequence number of the last DataSetMessage with data; 0 before the first.
    pub sequence_number: u32,
}

/// Maximum events kept for the driver; further ones replace the oldest.
const EVENTS_KEPT: usize = 256;

/// All WriterGroups of a configuration.
pub struct Publisher {
    configuration: Arc<Configuration>,
    options: PublisherOptions,
    groups: Vec<Group>,
    keys: KeyStore,
    entropy: Box<dyn Entropy>,
    announcer: Announcer,
    events: VecDeque<PublisherEvent>,
}

impl core::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Publisher")
            .field("groups", &self.groups.len())
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// The parts of an engine that are used during a turn.
struct Turn<'a> {
    now: Now,
    options: &'a PublisherOptions,
    keys: &'a mut KeyStore,
    entropy: &'a mut dyn Entropy,
    events: &'a mut VecDeque<PublisherEvent>,
    out: &'a mut Transmit,
}

impl Turn<'_> {
    fn event(&mut self, event: PublisherEvent) {
        if self.events.len() >= EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl Publisher {
    /// Creates a stopped publisher.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub fn new(
        configuration: Configuration,
        options: PublisherOptions,
        provider: Arc<dyn PubSubProvider>,
        entropy: Box<dyn Entropy>,
    ) -> Result<Self, Vec<Problem>> {
        let problems = config::validate(&configuration);
        if !problems.is_empty() {
            return Err(problems);
        }
        let configuration = Arc::new(configuration);
        let mut keys = KeyStore::new(provider, options.key_store);
        let mut groups = Vec::new();
        for (connection_index, connection) in configuration.connections.iter().enumerate() {
            for (group_index, group) in connection.writer_groups.iter().enumerate() {
                if group.security.mode != SecurityMode::None {
                    let services = match group.security.security_key_services.as_slice() {
                        [] => configuration.default_security_key_services.as_slice(),
                        own => own,
                    };
                    keys.add_group(&group.security.security_group_id, services);
                }
                let index = GroupIndex { connection: connection_index, group: group_index };
                groups.push(Group::new(&configuration, index, &options)?);
            }
        }
        let announcer = Announcer::new(&configuration);
        Ok(Self { configuration, options, groups, keys, entropy, announcer, events: VecDeque::new() })
    }

    /// The configuration.
    #[must_use]
    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    /// Starts all enabled groups, their first cycles at `start`; groups with message security wait for keys.
    pub fn start(&mut self, start: Instant, now: Now) {
        self.announcer.start(now);
        for position in 0..self.groups.len() {
            let Some(group) = self.groups.get(position) else { continue };
            if self.configuration.enabled && group.is_enabled(&self.configuration) {
                self.set_enabled(group.index, true, start, now);
            }
        }
    }

    /// Stops all groups.
    pub fn stop(&mut self, now: Now) {
        self.announcer.stop();
        for position in 0..self.groups.len() {
            let Some(index) = self.groups.get(position).map(|group| group.index) else { continue };
            self.set_enabled(index, false, now.instant, now);
        }
    }

    /// Enables or disables a group; its first cycle is at `start`.
    pub fn set_enabled(&mut self, index: GroupIndex, enabled: bool, start: Instant, now: Now) {
        let trigger = if enabled { Trigger::Enable } else { Trigger::Disable };
        if enabled && let Some(group) = self.group_mut(index) {
            group.schedule.start(start.max(now.instant));
        }
        self.trigger(index, trigger, None);
        self.look_for_keys(now);
    }

    /// Enables or disables one writer of a group, by its position.
    pub fn set_writer_enabled(&mut self, index: GroupIndex, writer: usize, enabled: bool) {
        if let Some(group) = self.group_mut(index) {
            group.set_writer_enabled(writer, enabled);
        }
    }

    fn trigger(&mut self, index: GroupIndex, trigger: Trigger, reason: Option<SecurityError>) {
        let Some(group) = self.group_mut(index) else { return };
        let state = next(group.state, trigger, true);
        if state != group.state {
            group.state = state;
            if self.events.len() >= EVENTS_KEPT {
                self.events.pop_front();
            }
            self.events.push_back(PublisherEvent::GroupState { group: index, state, reason });
        }
    }

    fn group_mut(&mut self, index: GroupIndex) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| group.index == index)
    }

    fn group(&self, index: GroupIndex) -> Option<&Group> {
        self.groups.iter().find(|group| group.index == index)
    }

    /// Groups become operational when their keys are available, and fail when their keys have expired.
    fn look_for_keys(&mut self, now: Now) {
        for position in 0..self.groups.len() {
            let Some(group) = self.groups.get(position) else { continue };
            let index = group.index;
            let outcome = match &group.security {
                None => Ok(()),
                Some((id, _)) => match self.keys.ring_mut(id) {
                    Some(ring) => ring.advance(now.instant).and_then(|()| ring.check_nonces()),
                    None => Err(SecurityError::NoKeys),
                },
            };
            match (group.state, outcome) {
                (PubSubState::PRE_OPERATIONAL | PubSubState::ERROR, Ok(())) => {
                    self.trigger(index, Trigger::Ready, None);
                    if let Some(group) = self.group_mut(index) {
                        group.resume(now.instant);
                    }
                }
                // Without keys it keeps waiting; a running group that has lost its keys fails.
                (PubSubState::OPERATIONAL, Err(error))
                | (PubSubState::PRE_OPERATIONAL, Err(error @ SecurityError::KeysExpired)) => {
                    self.trigger(index, Trigger::Fault, Some(error));
                }
                _ => {}
            }
        }
    }

    /// When [`Self::poll`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let running = self.groups.iter().filter(|group| group.runs());
        let groups = running.flat_map(Group::deadlines);
        let keys = self.groups.iter().filter(|group| group.state == PubSubState::OPERATIONAL);
        let changes =
            keys.filter_map(|group| Some(self.keys.ring(&group.security.as_ref()?.0)?.next_change()));
        groups.chain(changes).chain(self.announcer.poll_timeout()).min()
    }

    /// Processes all that is due: samples values, creates messages, changes keys.
    pub fn poll(&mut self, now: Now, values: &mut dyn Values, out: &mut Transmit) {
        self.look_for_keys(now);
        let mut turn = Turn {
            now,
            options: &self.options,
            keys: &mut self.keys,
            entropy: &mut *self.entropy,
            events: &mut self.events,
            out,
        };
        // Groups with higher priority are sent first (Part 14 §6.2.6.4); the list is sorted accordingly.
        for group in &mut self.groups {
            if group.runs() {
                group.poll(&mut turn, &self.configuration, values);
                group.repeat(&mut turn);
            }
        }
        self.announcer.poll(&mut turn, &self.configuration);
    }

    /// Processes a received datagram: answers discovery probes. Other and malformed messages are ignored.
    pub fn receive(&mut self, connection: usize, datagram: &[u8], now: Now) {
        let keys = &mut self.keys;
        self.announcer.receive(&self.configuration, &self.options, keys, connection, datagram, now);
    }

    /// Announces metadata and configuration of a connection's writers without a probe: at startup on a broker, and
    /// after changes.
    pub fn announce(&mut self, connection: usize, now: Now) {
        self.announcer.announce_all(&self.configuration, connection, now);
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
        let result = self.keys.answer(security_group_id, outcome, now.instant);
        self.look_for_keys(now);
        result
    }

    /// The keys of a group have changed, because the key service has invalidated them or moved to the next: fetch them
    /// at once.
    pub fn refresh_keys(&mut self, security_group_id: &str, now: Now) {
        self.keys.refresh(security_group_id, now.instant);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<PublisherEvent> {
        self.events.pop_front()
    }

    /// The state of a group.
    #[must_use]
    pub fn state(&self, index: GroupIndex) -> PubSubState {
        self.group(index).map_or(PubSubState::DISABLED, |group| group.state)
    }

    /// The counters of a group.
    #[must_use]
    pub fn counters(&self, index: GroupIndex) -> GroupCounters {
        self.group(index).map(|group| group.counters).unwrap_or_default()
    }

    /// Reports that the transport did not accept messages of a group.
    pub fn transmission_failed(&mut self, index: GroupIndex, messages: u64) {
        if let Some(group) = self.groups.iter_mut().find(|group| group.index == index) {
            group.counters.failed_transmissions += messages;
        }
    }

    /// The counters of a group's DataSetWriters, in order.
    pub fn writer_counters(&self, index: GroupIndex) -> impl Iterator<Item = WriterCounters> {
        self.group(index).into_iter().flat_map(Group::writer_counters)
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = GroupIndex> {
        self.groups.iter().map(|group| group.index)
    }

    /// The publisher's id on a connection.
    #[must_use]
    pub fn publisher_id(&self, connection: usize) -> Option<&PublisherId> {
        self.configuration.connections.get(connection)?.publisher_id.as_ref()
    }
}

/// Whether a group's messages are JSON.
fn is_json(message: &WriterGroupMessage) -> bool {
    matches!(message, WriterGroupMessage::Json(_))
}

/// Also for messages that contain only a keep-alive: brokers need no distinction.
const DATA: DatagramKind = DatagramKind::Data;
