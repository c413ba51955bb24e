//! A running WriterGroup.

use super::Values;
use super::assemble::{Envelope, MessageKind};
use super::plan::{Room, plan};
use super::repeat::Repeats;
use super::schedule::{Schedule, Step};
use super::writer::{Item, Writer};
use super::{GroupCounters, GroupIndex, PublisherEvent, PublisherOptions, Turn, is_json};
use crate::config::{Configuration, Problem, WriterGroupMessage};
use crate::state::{PubSubState, Trigger, next};
use crate::time::nanos;
use crate::uadp::SecurityMode;
use core::ops::Range;
use taktwerk_schema::{DataSetOrderingType, UadpNetworkMessageContentMask as Mask};
use taktwerk_types::Variant;

#[derive(Debug)]
pub(super) struct Group {
    pub(super) index: GroupIndex,
    pub(super) state: PubSubState,
    pub(super) security: Option<(String, SecurityMode)>,
    pub(super) schedule: Schedule,
    pub(super) counters: GroupCounters,
    keep_alive_nanos: u64,
    ordering: DataSetOrderingType,
    room: Room,
    writers: Vec<Writer>,
    envelope: Envelope,
    /// The messages of the current cycle.
    made: Vec<u8>,
    items: Vec<Item>,
    messages: Vec<Range<usize>>,
    sent: usize,
    ids: Vec<u16>,
    promoted: Vec<Variant>,
    /// The sequence number of the next NetworkMessage.
    next_number: u16,
    repeats: Repeats,
}

impl Group {
    pub(super) fn new(
        configuration: &Configuration,
        index: GroupIndex,
        options: &PublisherOptions,
    ) -> Result<Self, Vec<Problem>> {
        let connection = configuration.connections.get(index.connection);
        let config = connection.and_then(|connection| connection.writer_groups.get(index.group));
        let Some((connection, config)) = connection.zip(config) else {
            let element = format!("writer group {index:?}");
            return Err(vec![Problem { element, message: "there is no such group".to_owned() }]);
        };
        let mut writers = Vec::new();
        for (position, writer) in config.writers.iter().enumerate() {
            writers.push(Writer::new(configuration, config, position, writer)?);
        }
        let (schedule, ordering) = match &config.message {
            WriterGroupMessage::Uadp(uadp) => (
                Schedule::new(config.publishing_interval, uadp.sampling_offset, &uadp.publishing_offset),
                uadp.data_set_ordering,
            ),
            _ => (Schedule::new(config.publishing_interval, -1.0, &[]), DataSetOrderingType::UNDEFINED),
        };
        let security = match config.security.mode {
            SecurityMode::None => None,
            mode => Some((config.security.security_group_id.clone(), mode)),
        };
        let envelope = Envelope::new(connection, config);
        let message_len_max = match config.max_network_message_size {
            // Brokers accept larger messages than datagrams.
            0 if connection.url.starts_with("mqtt") => 256 * 1024,
            0 => options.message_len_max,
            size => size as usize,
        };
        let room = Room {
            message_len_max,
            fixed_len: envelope.fixed_len(security.is_some()),
            payload_header: envelope.has(Mask::PAYLOAD_HEADER),
            single: envelope.is_single(),
        };
        Ok(Self {
            index,
            state: PubSubState::DISABLED,
            security,
            schedule,
            counters: GroupCounters::default(),
            keep_alive_nanos: nanos(config.keep_alive_time),
            ordering,
            room,
            writers,
            envelope,
            made: Vec::new(),
            items: Vec::new(),
            messages: Vec::new(),
            sent: 0,
            ids: Vec::new(),
            promoted: Vec::new(),
            next_number: 1,
            repeats: Repeats::new(&config.transport),
        })
    }

    pub(super) fn is_enabled(&self, configuration: &Configuration) -> bool {
        let connection = configuration.connections.get(self.index.connection);
        connection.is_some_and(|connection| {
            connection.enabled
                && connection.writer_groups.get(self.index.group).is_some_and(|group| group.enabled)
        })
    }

    /// Updates its position for another configuration with the same settings.
    pub(super) fn rebind(&mut self, configuration: &Configuration, index: GroupIndex) {
        self.index = index;
        let connection = configuration.connections.get(index.connection);
        let Some(config) = connection.and_then(|connection| connection.writer_groups.get(index.group)) else {
            return;
        };
        for (writer, config) in self.writers.iter_mut().zip(&config.writers) {
            writer.rebind(configuration.data_sets.iter().position(|set| set.name == config.data_set_name));
            writer.set_enabled(config.enabled);
        }
    }

    /// Continues from an old group with the same name: takes its sequence numbers, counters and schedule.
    pub(super) fn take_over(&mut self, old: &Self, now: taktwerk_types::Instant) {
        if self.security == old.security {
            self.state = old.state;
        }
        self.counters = old.counters;
        self.next_number = old.next_number;
        self.schedule.take_over(&old.schedule, now);
        for writer in &mut self.writers {
            if let Some(before) = old.writers.iter().find(|before| before.id == writer.id) {
                writer.take_over(before);
            }
        }
    }

    /// The counters of its writers.
    pub(super) fn writer_counters(&self) -> impl Iterator<Item = super::WriterCounters> {
        self.writers.iter().map(Writer::counters)
    }

    /// Enables or disables a writer by its position.
    pub(super) fn set_writer_enabled(&mut self, writer: usize, enabled: bool) {
        if let Some(writer) = self.writers.get_mut(writer) {
            writer.set_enabled(enabled);
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.state == PubSubState::OPERATIONAL
    }

    /// When something is due.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = taktwerk_types::Instant> {
        self.schedule.deadline().into_iter().chain(self.repeats.deadline())
    }

    /// Sends due repetitions.
    pub(super) fn repeat(&mut self, turn: &mut Turn<'_>) {
        // A group that has failed in this turn sends nothing more.
        if self.runs() {
            self.counters.repeated += self.repeats.poll(self.index, turn.now.instant, turn.out);
        }
    }

    /// Resumes with a whole cycle and key frames.
    pub(super) fn resume(&mut self, now: taktwerk_types::Instant) {
        self.messages.clear();
        self.sent = 0;
        self.repeats.clear();
        self.schedule.resume(now);
        self.writers.iter_mut().for_each(Writer::restart);
    }

    /// Processes all that is due.
    pub(super) fn poll(
        &mut self,
        turn: &mut Turn<'_>,
        configuration: &Configuration,
        values: &mut dyn Values,
    ) {
        // Each step advances the schedule, and missed cycles are skipped: at most two cycles.
        while let Some(step) = self.schedule.step(turn.now.instant, self.messages.len()) {
            match step {
                Step::Sample => self.sample(turn, values),
                Step::Send { until } => {
                    if !self.send(turn, configuration, until) {
                        return;
                    }
                    let missed = self.schedule.sent(until, self.messages.len(), turn.now.instant);
                    if until >= self.messages.len() {
                        self.messages.clear();
                        self.sent = 0;
                    }
                    if missed > 0 {
                        self.counters.missed += missed;
                        turn.event(PublisherEvent::Missed { group: self.index, cycles: missed });
                    }
                }
            }
        }
    }

    fn sample(&mut self, turn: &mut Turn<'_>, values: &mut dyn Values) {
        self.counters.cycles += 1;
        self.made.clear();
        self.items.clear();
        for (position, writer) in self.writers.iter_mut().enumerate() {
            let too_large = writer.produce(
                turn,
                values,
                self.keep_alive_nanos,
                &mut self.counters,
                &mut self.made,
                &mut self.items,
            );
            for one in too_large {
                self.counters.too_large += 1;
                turn.event(one.event(self.index, position));
            }
        }
        plan(&mut self.items, self.ordering, self.room, &mut self.messages);
        self.sent = 0;
        self.schedule.sampled();
    }

    /// Sends the messages before position `until`. False if the group has failed.
    fn send(&mut self, turn: &mut Turn<'_>, configuration: &Configuration, until: usize) -> bool {
        let Some(connection) = configuration.connections.get(self.index.connection) else { return false };
        while self.sent < until {
            let Some(range) = self.messages.get(self.sent).cloned() else { break };
            let Some(items) = self.items.get(range) else { break };
            self.ids.clear();
            self.ids.extend(items.iter().map(|item| item.writer_id));
            self.promoted.clear();
            if self.envelope.has(Mask::PROMOTED_FIELDS)
                && let [item] = items
                && let Some(writer) = self.writers.get(item.writer)
            {
                self.promoted.extend(writer.promoted_values());
            }
            let message = MessageKind {
                items,
                ids: &self.ids,
                promoted: &self.promoted,
                writers: &self.writers,
                made: &self.made,
                number: u16::try_from(self.sent + 1).unwrap_or(u16::MAX),
                due: self.schedule.due(self.sent),
            };
            let before = turn.out.len();
            let outcome = if is_json_envelope(&self.envelope) {
                self.envelope.json(turn, self.index, connection, &message)
            } else {
                let security = self.security.as_ref().map(|(id, mode)| (id.as_str(), *mode));
                self.envelope.uadp(
                    turn,
                    self.index,
                    connection,
                    &message,
                    security,
                    self.room,
                    &mut self.next_number,
                )
            };
            match outcome {
                Ok(messages) => {
                    self.counters.network_messages += messages;
                    self.counters.repeats_dropped += self.repeats.remember(turn.out, before);
                    self.counters.data_set_messages += items.len() as u64;
                }
                Err(super::assemble::Failure::TooLarge(len)) => {
                    self.counters.too_large += 1;
                    let (writer, limit) =
                        (items.first().map_or(0, |item| item.writer), self.room.single_len_max());
                    if let Some(writer) = self.writers.get_mut(writer) {
                        writer.failed += 1;
                    }
                    turn.event(PublisherEvent::TooLarge { group: self.index, writer, len, limit });
                }
                Err(super::assemble::Failure::Security(error)) => {
                    self.counters.security_errors += 1;
                    self.state = next(self.state, Trigger::Fault, true);
                    turn.event(PublisherEvent::GroupState {
                        group: self.index,
                        state: self.state,
                        reason: Some(error),
                    });
                    return false;
                }
            }
            self.sent += 1;
        }
        true
    }
}

fn is_json_envelope(envelope: &Envelope) -> bool {
    is_json(envelope.message())
}
