//! A DataSetWriter: converts values to DataSetMessages (Part 14 §6.2.4).

use super::frame::{Frame, Made, Spec};
use super::{GroupCounters, PublisherEvent, Turn, WriterCounters};
use super::{InPlace, Values};
use crate::config::{
    Configuration, DataSetSource, DataSetWriter, DataSetWriterMessage, Problem, WriterGroup,
};
use crate::uadp::FieldEncoding;
use crate::uadp::fields::encoding_of;
use crate::uadp::raw::RawLayout;
use core::ops::Range;
use taktwerk_types::{DataValue, Instant, Variant};

/// When a writer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In every cycle.
    Cyclic,
    /// When the source has values.
    Acyclic,
    /// Events.
    Events,
    /// Only keep-alives: there is no data set.
    Heartbeat,
    /// Only responses to Actions.
    Actions,
}

/// How the messages are encoded.
#[derive(Debug)]
enum Codec {
    Uadp(Box<Spec>),
    #[cfg(feature = "json")]
    Json(Box<crate::json::WriterSpec>),
    /// A mapping that is not compiled in: nothing is sent.
    None,
}

/// Location of a DataSetMessage's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In the writer's frame.
    Frame,
    /// In the group's buffer.
    Made(Range<usize>),
}

/// A DataSetMessage of this cycle.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Position of the writer in the group.
    pub(super) writer: usize,
    pub(super) writer_id: u16,
    /// Number of the required NetworkMessage; 0: any.
    pub(super) message_number: u16,
    /// Required start in it; 0: anywhere.
    pub(super) offset: usize,
    pub(super) place: Place,
    pub(super) len: usize,
    pub(super) sequence_number: u16,
}

#[derive(Debug)]
pub(super) struct Writer {
    position: usize,
    pub(super) id: u16,
    enabled: bool,
    data_set: usize,
    kind: Kind,
    codec: Codec,
    key_frame_count: u32,
    message_number: u16,
    offset: usize,
    frame: Frame,
    values: Vec<DataValue>,
    /// The values sent last, to detect changes.
    sent: Vec<DataValue>,
    changed: Vec<u16>,
    event: Vec<Variant>,
    /// The sequence number of the next message with data.
    next_number: u32,
    cycles_since_key: u32,
    last_sent: Option<Instant>,
    /// Number of DataSetMessages that were too large.
    pub(super) failed: u64,
    /// The fields promoted to the header.
    pub(super) promoted: Vec<usize>,
}

impl Writer {
    pub(super) fn new(
        configuration: &Configuration,
        group: &WriterGroup,
        position: usize,
        writer: &DataSetWriter,
    ) -> Result<Self, Vec<Problem>> {
        let found = configuration.data_sets.iter().position(|set| set.name == writer.data_set_name);
        let data_set = found.and_then(|at| configuration.data_sets.get(at));
        let kind = match data_set.map(|set| &set.source) {
            None => Kind::Heartbeat,
            Some(DataSetSource::Items(_) | DataSetSource::Custom { cyclic: true }) => Kind::Cyclic,
            Some(DataSetSource::Custom { cyclic: false }) => Kind::Acyclic,
            Some(DataSetSource::Events(_)) => Kind::Events,
            Some(DataSetSource::Actions(_) | DataSetSource::ActionMethods(_)) => Kind::Actions,
        };
        let empty = Default::default();
        let meta_data = data_set.map_or(&empty, |set| &set.meta_data);
        let (mut message_number, mut offset) = (0, 0);
        let codec = match &writer.message {
            DataSetWriterMessage::Uadp(uadp) => {
                message_number = uadp.network_message_number;
                offset = usize::from(uadp.data_set_offset);
                let encoding = encoding_of(writer.field_content_mask);
                let raw = match encoding {
                    FieldEncoding::RawData => Some(RawLayout::new(meta_data).map_err(|error| {
                        vec![Problem {
                            element: format!("writer group {:?} / writer {:?}", group.name, writer.name),
                            message: error.to_string(),
                        }]
                    })?),
                    _ => None,
                };
                Codec::Uadp(Box::new(Spec {
                    content: uadp.data_set_message_content_mask,
                    fields: writer.field_content_mask,
                    encoding,
                    version: meta_data.configuration_version.clone(),
                    raw,
                    configured_size: usize::from(uadp.configured_size),
                }))
            }
            #[cfg(feature = "json")]
            DataSetWriterMessage::Json(_) => {
                Codec::Json(Box::new(crate::json::WriterSpec::new(group, writer, meta_data)))
            }
            _ => Codec::None,
        };
        let fields = meta_data.fields.len();
        let is_promoted = taktwerk_schema::DataSetFieldFlags::PROMOTED_FIELD;
        Ok(Self {
            position,
            id: writer.data_set_writer_id,
            enabled: writer.enabled,
            data_set: found.unwrap_or(usize::MAX),
            kind,
            codec,
            key_frame_count: writer.key_frame_count,
            message_number,
            offset,
            frame: Frame::default(),
            values: vec![DataValue::default(); fields],
            sent: Vec::new(),
            changed: Vec::new(),
            event: Vec::new(),
            next_number: 1,
            cycles_since_key: 0,
            last_sent: None,
            failed: 0,
            promoted: (0..fields)
                .filter(|index| {
                    meta_data.fields.get(*index).is_some_and(|field| field.field_flags.contains(is_promoted))
                })
                .collect(),
        })
    }

    /// The bytes of the writer's key frame.
    pub(super) fn frame(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// The promoted fields of the last sample.
    pub(super) fn promoted_values<'a>(&'a self) -> impl Iterator<Item = Variant> + 'a {
        let values = self.promoted.iter().filter_map(|index| self.values.get(*index));
        values.map(|value| value.value.clone().unwrap_or_default())
    }

    /// Samples and appends the DataSetMessages of this cycle.
    pub(super) fn produce(
        &mut self,
        turn: &mut Turn<'_>,
        values: &mut dyn Values,
        keep_alive_nanos: u64,
        counters: &mut GroupCounters,
        made: &mut Vec<u8>,
        items: &mut Vec<Item>,
    ) -> Vec<TooLarge> {
        let mut too_large = Vec::new();
        if !self.enabled || self.kind == Kind::Actions {
            return too_large;
        }
        let before = items.len();
        match self.kind {
            Kind::Cyclic | Kind::Acyclic => {
                if !self.in_place(turn, values, items)
                    && values.sample(self.data_set, &mut self.values, turn.now)
                {
                    self.data(turn, counters, made, items, &mut too_large);
                }
            }
            Kind::Events => {
                for _ in 0..turn.options.events_max {
                    self.event.clear();
                    if !values.next_event(self.data_set, &mut self.event) {
                        break;
                    }
                    self.event_message(turn, made, items, &mut too_large);
                }
            }
            Kind::Heartbeat | Kind::Actions => {}
        }
        self.failed += too_large.len() as u64;
        let now = turn.now.instant;
        if items.len() > before {
            self.last_sent = Some(now);
        } else {
            let last = *self.last_sent.get_or_insert(now);
            if keep_alive_nanos > 0 && now.as_nanos().saturating_sub(last.as_nanos()) >= keep_alive_nanos {
                self.keep_alive(turn, made, items, &mut too_large);
                self.last_sent = Some(now);
                counters.keep_alives += 1;
            }
        }
        too_large
    }

    fn item(&self, place: Place, len: usize, number: u32) -> Item {
        Item {
            writer: self.position,
            writer_id: self.id,
            message_number: self.message_number,
            offset: self.offset,
            place,
            len,
            sequence_number: short(number),
        }
    }

    /// Lets the source write into the laid-out message. False if it has to be sampled.
    fn in_place(&mut self, turn: &Turn<'_>, values: &mut dyn Values, items: &mut Vec<Item>) -> bool {
        let Codec::Uadp(spec) = &self.codec else { return false };
        // Delta frames and promoted fields need the values.
        if self.key_frame_count > 1 || !self.promoted.is_empty() {
            return false;
        }
        let Some(mut fields) = self.frame.fields(spec) else { return false };
        match values.write(self.data_set, &mut fields, turn.now) {
            InPlace::NotOffered => return false,
            InPlace::NothingToSend => return true,
            InPlace::Written => {}
        }
        let Some(bad) = fields.finish() else { return false };
        let number = self.next_number;
        self.frame.stamp(bad, short(number), turn.now);
        items.push(self.item(Place::Frame, self.frame.bytes().len(), number));
        self.cycles_since_key = 0;
        self.next_number = number.wrapping_add(1);
        true
    }

    fn data(
        &mut self,
        turn: &mut Turn<'_>,
        counters: &mut GroupCounters,
        made: &mut Vec<u8>,
        items: &mut Vec<Item>,
        too_large: &mut Vec<TooLarge>,
    ) {
        let number = self.next_number;
        let key_frame = self.key_frame_count <= 1
            || self.sent.is_empty()
            || self.cycles_since_key + 1 >= self.key_frame_count;
        if !key_frame {
            self.cycles_since_key += 1;
            self.find_changes();
            if self.changed.is_empty() {
                return;
            }
            // A delta frame that is not shorter than a key frame is useless (Part 14 §7.2.4.5.6).
            if self.changed.len() < self.values.len() {
                let start = made.len();
                let outcome = match &mut self.codec {
                    Codec::Uadp(spec) => {
                        spec.delta(&self.values, &self.changed, short(number), turn.now, made)
                    }
                    #[cfg(feature = "json")]
                    Codec::Json(spec) => {
                        spec.delta(&self.values, &self.changed, number, turn.now, made);
                        Ok(())
                    }
                    Codec::None => return,
                };
                let is_shorter =
                    made.len() - start < self.frame.bytes().len() || self.frame.bytes().is_empty();
                if outcome.is_ok() && is_shorter {
                    items.push(self.item(Place::Made(start..made.len()), made.len() - start, number));
                    self.next_number = number.wrapping_add(1);
                    self.remember_changes();
                    return;
                }
                made.truncate(start);
            }
        }
        self.cycles_since_key = 0;
        match &mut self.codec {
            Codec::Uadp(spec) => {
                match self.frame.write(spec, &self.values, short(number), turn.now) {
                    Ok(Made::LaidOut) => counters.layouts += 1,
                    Ok(Made::Patched) => {}
                    Err(len) => too_large.push(TooLarge { len, limit: spec.configured_size }),
                }
                items.push(self.item(Place::Frame, self.frame.bytes().len(), number));
            }
            #[cfg(feature = "json")]
            Codec::Json(spec) => {
                let start = made.len();
                spec.key_frame(&self.values, number, turn.now, made);
                items.push(self.item(Place::Made(start..made.len()), made.len() - start, number));
            }
            Codec::None => return,
        }
        self.next_number = number.wrapping_add(1);
        if self.key_frame_count > 1 {
            self.sent.clone_from(&self.values);
        }
    }

    fn find_changes(&mut self) {
        self.changed.clear();
        for (index, (value, sent)) in self.values.iter().zip(&self.sent).enumerate() {
            let same_value = match (&value.value, &sent.value) {
                (Some(one), Some(two)) => one.same_as(two),
                (one, two) => one.is_none() == two.is_none(),
            };
            if !(same_value && value.status() == sent.status()) {
                self.changed.extend(u16::try_from(index).ok());
            }
        }
    }

    fn remember_changes(&mut self) {
        for index in &self.changed {
            let index = usize::from(*index);
            if let (Some(sent), Some(value)) = (self.sent.get_mut(index), self.values.get(index)) {
                sent.clone_from(value);
            }
        }
    }

    fn event_message(
        &mut self,
        turn: &mut Turn<'_>,
        made: &mut Vec<u8>,
        items: &mut Vec<Item>,
        too_large: &mut Vec<TooLarge>,
    ) {
        let (number, start) = (self.next_number, made.len());
        match &mut self.codec {
            Codec::Uadp(spec) => {
                if let Err(len) = spec.event(&self.event, short(number), turn.now, made) {
                    too_large.push(TooLarge { len, limit: spec.configured_size });
                }
            }
            #[cfg(feature = "json")]
            Codec::Json(spec) => spec.event(&self.event, number, turn.now, made),
            Codec::None => return,
        }
        items.push(self.item(Place::Made(start..made.len()), made.len() - start, number));
        self.next_number = number.wrapping_add(1);
    }

    fn keep_alive(
        &mut self,
        turn: &mut Turn<'_>,
        made: &mut Vec<u8>,
        items: &mut Vec<Item>,
        too_large: &mut Vec<TooLarge>,
    ) {
        let (number, start) = (self.next_number, made.len());
        match &mut self.codec {
            Codec::Uadp(spec) => {
                if let Err(len) = spec.keep_alive(short(number), turn.now, made) {
                    too_large.push(TooLarge { len, limit: spec.configured_size });
                }
            }
            #[cfg(feature = "json")]
            Codec::Json(spec) => spec.keep_alive(number, turn.now, made),
            Codec::None => return,
        }
        items.push(self.item(Place::Made(start..made.len()), made.len() - start, number));
    }

    /// Enables or disables it. The first message after enabling is a key frame.
    pub(super) fn set_enabled(&mut self, enabled: bool) {
        if enabled && !self.enabled {
            self.restart();
        }
        self.enabled = enabled;
    }

    /// The position of its data set has changed.
    pub(super) fn rebind(&mut self, data_set: Option<usize>) {
        self.data_set = data_set.unwrap_or(usize::MAX);
    }

    /// Continues with the sequence numbers of another writer with the same id.
    pub(super) fn take_over(&mut self, old: &Self) {
        self.next_number = old.next_number;
        self.failed = old.failed;
    }

    /// Its counters.
    pub(super) fn counters(&self) -> WriterCounters {
        WriterCounters { failed: self.failed, sequence_number: self.next_number.wrapping_sub(1) }
    }

    /// Restarts: the next message is a key frame.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        self.cycles_since_key = 0;
        self.last_sent = None;
    }
}

/// UADP sends 16 bits of a sequence number, JSON all 32.
const fn short(number: u32) -> u16 {
    (number & 0xffff) as u16
}

/// A DataSetMessage that exceeds its ConfiguredSize.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooLarge {
    pub(super) len: usize,
    pub(super) limit: usize,
}

impl TooLarge {
    pub(super) fn event(self, group: super::GroupIndex, writer: usize) -> PublisherEvent {
        PublisherEvent::TooLarge { group, writer, len: self.len, limit: self.limit }
    }
}
