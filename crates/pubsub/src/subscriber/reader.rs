//! A running DataSetReader: its filter, state and metadata.

use super::tracker::Tracker;
use super::{ReaderCounters, ReaderIndex, Required, Sink, SubscriberEvent, SubscriberOptions};
use crate::config::{DataSetReader, DataSetReaderMessage, GroupSecurity};
use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::state::{PubSubState, Trigger, next};
use crate::time::nanos;
use crate::uadp::SecurityMode;
use crate::uadp::fields::FieldTypes;
use crate::uadp::raw::RawLayout;
use taktwerk_schema::DataSetMetaDataType;
use taktwerk_types::{BuiltInType, Guid, Instant};

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) index: ReaderIndex,
    /// Position of its group's counters.
    pub(crate) group: usize,
    pub(crate) enabled: bool,
    pub(crate) state: PubSubState,
    pub(crate) publisher_id: Option<PublisherId>,
    pub(crate) writer_group_id: u16,
    pub(crate) data_set_writer_id: u16,
    pub(crate) security: Option<Required>,
    /// Its messages are JSON.
    pub(crate) is_json: bool,
    class_id: Guid,
    group_version: u32,
    message_number: u16,
    /// Offset of its DataSetMessage in a NetworkMessage without PayloadHeader; 0: after the header.
    pub(crate) offset: usize,
    pub(crate) meta_data: DataSetMetaDataType,
    built_in_types: Vec<Option<BuiltInType>>,
    raw: Option<RawLayout>,
    timeout_nanos: u64,
    /// When it becomes in error without a message.
    deadline: Option<Instant>,
    pub(crate) tracker: Tracker,
    /// The version whose change was reported, to report it once.
    pub(crate) told_version: Option<u32>,
    /// The MinorVersion whose metadata was requested, to request it once.
    pub(crate) told_minor_version: Option<u32>,
    pub(crate) reset_nanos: u64,
    pub(crate) senders_max: usize,
    pub(crate) counters: ReaderCounters,
}

impl Reader {
    pub(crate) fn new(
        index: ReaderIndex,
        config: &DataSetReader,
        security: &GroupSecurity,
        enabled: bool,
        options: &SubscriberOptions,
    ) -> Self {
        let timeout_nanos = nanos(config.message_receive_timeout);
        let (class_id, group_version, message_number, offset) = match &config.message {
            DataSetReaderMessage::Uadp(uadp) => (
                uadp.data_set_class_id,
                uadp.group_version,
                uadp.network_message_number,
                usize::from(uadp.data_set_offset),
            ),
            _ => (Guid::NULL, 0, 0, 0),
        };
        let mut reader = Self {
            index,
            group: usize::MAX,
            enabled,
            state: PubSubState::DISABLED,
            publisher_id: config.publisher_id.clone(),
            writer_group_id: config.writer_group_id,
            data_set_writer_id: config.data_set_writer_id,
            security: match security.mode {
                SecurityMode::None => None,
                mode => Some(Required { group_id: security.security_group_id.clone(), mode }),
            },
            is_json: matches!(config.message, DataSetReaderMessage::Json(_)),
            class_id,
            group_version,
            message_number,
            offset,
            meta_data: DataSetMetaDataType::default(),
            built_in_types: Vec::new(),
            raw: None,
            timeout_nanos,
            deadline: None,
            tracker: Tracker::default(),
            told_version: None,
            told_minor_version: None,
            reset_nanos: if timeout_nanos > 0 { timeout_nanos } else { options.sequence_reset_nanos },
            senders_max: options.senders_max,
            counters: ReaderCounters::default(),
        };
        reader.learn(config.meta_data.clone());
        reader
    }

    /// Whether a NetworkMessage of this sender may be for the reader.
    pub(crate) fn wants_sender(
        &self,
        publisher_id: Option<PublisherIdRef<'_>>,
        group: Option<crate::uadp::GroupHeader>,
        class_id: Option<Guid>,
    ) -> bool {
        let runs = self.state != PubSubState::DISABLED && self.state != PubSubState::PAUSED;
        let group = group.unwrap_or_default();
        runs && self.publisher_id.as_ref().is_none_or(|wanted| publisher_id.is_none_or(|id| *wanted == id))
            && fits(self.writer_group_id, group.writer_group_id)
            && (self.group_version == 0 || group.group_version.is_none_or(|is| is == self.group_version))
            && fits(self.message_number, group.network_message_number)
            && (self.class_id == Guid::NULL || class_id.is_none_or(|id| id == self.class_id))
    }

    /// Whether it processes messages.
    #[cfg(feature = "json")]
    pub(crate) fn runs(&self) -> bool {
        self.state != PubSubState::DISABLED && self.state != PubSubState::PAUSED
    }

    /// Whether a DataSetMessage of this writer is for the reader.
    pub(crate) fn wants_writer(&self, writer_id: Option<u16>) -> bool {
        fits(self.data_set_writer_id, writer_id)
    }

    pub(crate) fn types(&self) -> FieldTypes<'_> {
        FieldTypes { built_in_types: &self.built_in_types, raw: self.raw.as_ref() }
    }

    pub(crate) fn knows_fields(&self) -> bool {
        !self.meta_data.fields.is_empty()
    }

    fn learn(&mut self, meta_data: DataSetMetaDataType) {
        self.built_in_types =
            meta_data.fields.iter().map(|field| BuiltInType::from_number(field.built_in_type)).collect();
        self.raw = if meta_data.fields.is_empty() { None } else { RawLayout::new(&meta_data).ok() };
        self.meta_data = meta_data;
    }

    pub(crate) fn set_meta_data(&mut self, meta_data: DataSetMetaDataType, sink: &mut dyn Sink) {
        let version = meta_data.configuration_version.clone();
        self.learn(meta_data);
        self.told_version = None;
        self.told_minor_version = None;
        sink.event(SubscriberEvent::MetaDataReceived { reader: self.index, version });
    }

    fn trigger(&mut self, trigger: Trigger, sink: &mut dyn Sink) {
        let state = next(self.state, trigger, true);
        if state != self.state {
            self.state = state;
            sink.event(SubscriberEvent::State { reader: self.index, state });
        }
    }

    pub(crate) fn enable(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.tracker.reset();
        self.wait(now);
        self.trigger(Trigger::Enable, sink);
    }

    pub(crate) fn disable(&mut self, sink: &mut dyn Sink) {
        self.deadline = None;
        self.trigger(Trigger::Disable, sink);
    }

    fn wait(&mut self, now: Instant) {
        self.deadline = (self.timeout_nanos > 0)
            .then(|| Instant::from_nanos(now.as_nanos().saturating_add(self.timeout_nanos)));
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sets the error state after a timeout; sequence numbers may restart then.
    pub(crate) fn check_timeout(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.tracker.reset();
            self.trigger(Trigger::Fault, sink);
        }
    }

    /// A message was received. A waiting reader becomes operational only with a complete message, an event or a
    /// keep-alive; after an error, with any message.
    pub(crate) fn arrived(&mut self, is_complete: bool, now: Instant, sink: &mut dyn Sink) {
        self.wait(now);
        match self.state {
            PubSubState::PRE_OPERATIONAL if is_complete => self.trigger(Trigger::Ready, sink),
            PubSubState::ERROR => self.trigger(Trigger::Recovered, sink),
            _ => {}
        }
    }
}

/// 0 accepts any, and an id that is not sent cannot be compared.
fn fits(wanted: u16, sent: Option<u16>) -> bool {
    wanted == 0 || sent.is_none_or(|sent| sent == wanted)
}
