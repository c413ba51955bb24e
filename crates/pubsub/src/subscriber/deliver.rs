//! Delivers payloads to readers.

use super::ask::Asker;
use super::group::GroupCount;
use super::open::{LIMITS, Opened, fresh};
use super::reader::Reader;
use super::tracker::{Number, Verdict};
use super::{
    DataSetMessage, Drop, Required, Sink, Subscriber, SubscriberCounters, SubscriberEvent, SubscriberOptions,
};
use crate::security::SecurityError;
use crate::time::Now;
use crate::uadp::FieldEncoding;
use crate::uadp::announcement::{Announcement, NumberedAnnouncement};
use crate::uadp::chunk::{Chunk, PieceScope};
use crate::uadp::data_set_message::{DataSetMessageHeader, DataSetMessageKind};
use crate::uadp::fields::{FieldsError, ReceivedField, decode_fields};
use crate::uadp::header::{NetworkMessageHeader, NetworkMessageType, WriterIds};
use crate::uadp::payload::DataSetPayload;
use crate::uadp::probe::Probe;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, Decoder};

impl Subscriber {
    /// Processes a received datagram of a connection. It is decrypted in place.
    pub fn receive(&mut self, connection: usize, datagram: &mut [u8], now: Now, sink: &mut dyn Sink) {
        self.counters.network_messages += 1;
        #[cfg(feature = "json")]
        if self.is_json(connection) {
            if let Err(reason) = self.receive_json(connection, datagram, now, sink) {
                self.dropped(connection, datagram, reason, sink);
            }
            return;
        }
        let outcome = match self.open(connection, datagram, now) {
            Ok(Some(opened)) => self.take(connection, datagram, &opened, now, sink),
            Ok(None) => {
                self.counters.unwanted += 1;
                Ok(())
            }
            Err(reason) => Err(reason),
        };
        if let Err(reason) = outcome {
            self.dropped(connection, datagram, reason, sink);
        }
    }

    fn take(
        &mut self,
        connection: usize,
        datagram: &[u8],
        opened: &Opened,
        now: Now,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let header = NetworkMessageHeader::decode(&mut Decoder::new(datagram, LIMITS))?;
        let payload = datagram.get(opened.payload.clone()).unwrap_or_default();
        if header.is_chunk {
            self.counters.chunks += 1;
            let chunk = Chunk::decode(&mut Decoder::new(payload, LIMITS))?;
            let Some(publisher_id) = header.publisher_id else {
                return Err(DecodeError::Invalid("chunk without PublisherId").into());
            };
            let writer_id = header.writer_ids.and_then(|ids| ids.get(0));
            if header.message_type == NetworkMessageType::DataSetMessages
                && !self.readers.iter().any(|reader| {
                    reader.index.connection == connection
                        && reader.wants_sender(header.publisher_id, header.group, header.data_set_class_id)
                        && reader.wants_writer(writer_id)
                })
            {
                self.counters.unwanted += 1;
                return Ok(());
            }
            let group_id = header.group.and_then(|group| group.writer_group_id);
            // All chunks have the same security, so that of the last one applies to the whole payload.
            let security = opened.security.as_ref().map(|by| (by.group_id.clone(), by.mode));
            let scope = PieceScope { connection, message_type: header.message_type, security };
            let whole =
                self.reassembler.push_within(scope, publisher_id, writer_id, group_id, &chunk, now.instant);
            self.counters.chunked_dropped = self.reassembler.dropped();
            let Some(whole) = whole else { return Ok(()) };
            return self.payload(connection, &header, &whole, None, opened, now, sink);
        }
        self.payload(connection, &header, payload, Some(datagram), opened, now, sink)
    }

    /// Processes a complete payload. `message` is the whole NetworkMessage, for readers with fixed offsets.
    #[allow(clippy::too_many_arguments)] // what a payload comes with
    fn payload(
        &mut self,
        connection: usize,
        header: &NetworkMessageHeader<'_>,
        payload: &[u8],
        message: Option<&[u8]>,
        opened: &Opened,
        now: Now,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        match header.message_type {
            NetworkMessageType::DiscoveryProbe => {
                let probe = Probe::decode(&mut Decoder::new(payload, LIMITS))?;
                self.asker.overheard(connection, header.publisher_id, &probe, now.instant);
                return Ok(());
            }
            NetworkMessageType::DiscoveryAnnouncement => {
                let announcement = NumberedAnnouncement::decode(&mut Decoder::new(payload, LIMITS))?;
                self.announcement(connection, header, announcement, opened, sink);
                return Ok(());
            }
            // Actions are for requestors and responders.
            NetworkMessageType::DataSetMessages if header.has_action_header => return Ok(()),
            NetworkMessageType::DataSetMessages => {}
        }
        if header.writer_ids.is_none() {
            return self.fixed(connection, header, payload, message, opened, now, sink);
        }
        let ids = match header.writer_ids {
            // A chunked message is one DataSetMessage.
            Some(ids) if header.is_chunk => Some(WriterIds::Received(first_pair(ids))),
            ids => ids,
        };
        let age_max_nanos = self.age_max(header, opened);
        let mut wanted = false;
        // A DataSetMessage that cannot be decoded does not affect the others in the NetworkMessage.
        let mut failed = None;
        for (writer_id, bytes) in DataSetPayload::new(ids, payload)? {
            for position in 0..self.readers.len() {
                let Some(reader) = self.readers.get_mut(position) else { break };
                if reader.index.connection == connection
                    && reader.wants_writer(writer_id)
                    && reader.wants_sender(header.publisher_id, header.group, header.data_set_class_id)
                    && may(reader, opened)
                {
                    wanted = true;
                    let mut context = Context {
                        options: &self.options,
                        counters: &mut self.counters,
                        groups: &mut self.groups,
                        fields: &mut self.fields,
                        asker: &mut self.asker,
                        now,
                        age_max_nanos,
                    };
                    if let Err(error) = context.uadp(reader, header, writer_id, bytes, sink) {
                        failed.get_or_insert(error);
                    }
                }
            }
        }
        self.counters.unwanted += u64::from(!wanted);
        failed.map_or(Ok(()), Err)
    }

    /// Maximum age of DataSetMessages by their own timestamps; unnecessary if the NetworkMessage's timestamp was
    /// checked.
    fn age_max(&self, header: &NetworkMessageHeader<'_>, opened: &Opened) -> Option<u64> {
        self.options.message_age_max_nanos.filter(|_| opened.security.is_some() && header.timestamp.is_none())
    }

    /// A message without PayloadHeader: each reader knows the offset of its DataSetMessage.
    #[allow(clippy::too_many_arguments)] // what a payload comes with
    fn fixed(
        &mut self,
        connection: usize,
        header: &NetworkMessageHeader<'_>,
        payload: &[u8],
        message: Option<&[u8]>,
        opened: &Opened,
        now: Now,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let age_max_nanos = self.age_max(header, opened);
        let mut wanted = false;
        let mut failed = None;
        // Readers without an offset take the DataSetMessages in sequence, ordered by writer id, which works if all
        // sizes are fixed.
        let mut order: Vec<usize> = (0..self.readers.len())
            .filter(|position| {
                self.readers.get(*position).is_some_and(|reader| {
                    reader.index.connection == connection
                        && reader.wants_sender(header.publisher_id, header.group, header.data_set_class_id)
                        && may(reader, opened)
                })
            })
            .collect();
        order.sort_by_key(|position| self.readers.get(*position).map(|reader| reader.data_set_writer_id));
        let mut rest = payload;
        let mut previous = None;
        for position in order {
            let Some(reader) = self.readers.get_mut(position) else { break };
            let bytes = if reader.offset > 0 {
                let at = message.and_then(|message| message.get(reader.offset..opened.payload.end));
                at.ok_or(DecodeError::Invalid("DataSetOffset: behind the end of the message"))?
            } else if rest.is_empty() {
                continue;
            } else {
                rest
            };
            wanted = true;
            let writer_id = Some(reader.data_set_writer_id).filter(|id| *id != 0);
            let mut context = Context {
                options: &self.options,
                counters: &mut self.counters,
                groups: &mut self.groups,
                fields: &mut self.fields,
                asker: &mut self.asker,
                now,
                age_max_nanos,
            };
            match context.uadp(reader, header, writer_id, bytes, sink) {
                // Several readers of one writer read the same bytes.
                Ok(left) if reader.offset == 0 && previous != writer_id => {
                    previous = writer_id;
                    rest = bytes.get(bytes.len() - left..).unwrap_or_default();
                }
                Ok(_) => {}
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        self.counters.unwanted += u64::from(!wanted);
        failed.map_or(Ok(()), Err)
    }

    fn announcement(
        &mut self,
        connection: usize,
        header: &NetworkMessageHeader<'_>,
        announcement: NumberedAnnouncement,
        opened: &Opened,
        sink: &mut dyn Sink,
    ) {
        // Ignore answers that are not trusted.
        if self.is_answer(connection, header, &announcement.announcement, opened) {
            self.asker.answered(connection, header.publisher_id, &announcement.announcement);
        }
        if let Announcement::DataSetMetaData { writer_id, meta_data, status } = &announcement.announcement
            && !status.is_bad()
        {
            for reader in &mut self.readers {
                let named = reader.index.connection == connection
                    && reader.data_set_writer_id == *writer_id
                    && reader
                        .publisher_id
                        .as_ref()
                        .zip(header.publisher_id)
                        .is_some_and(|(own, id)| *own == id);
                // An announcement without security, or with other keys, must not change a reader that requires message
                // security.
                let trusted = may(reader, opened);
                let differs = reader.meta_data.configuration_version != meta_data.configuration_version
                    || !reader.knows_fields();
                if named && trusted && differs {
                    reader.set_meta_data((**meta_data).clone(), sink);
                }
            }
        }
        sink.event(SubscriberEvent::Announcement {
            connection,
            publisher_id: header.publisher_id.map(|id| id.to_owned()),
            announcement: Box::new(announcement),
        });
    }

    /// Whether an announcement may answer a question: metadata for a reader with message security must have that
    /// security.
    fn is_answer(
        &self,
        connection: usize,
        header: &NetworkMessageHeader<'_>,
        announcement: &Announcement,
        opened: &Opened,
    ) -> bool {
        let Announcement::DataSetMetaData { writer_id, .. } = announcement else { return true };
        self.readers.iter().all(|reader| {
            let is_named = reader.index.connection == connection
                && reader.data_set_writer_id == *writer_id
                && reader.publisher_id.as_ref().zip(header.publisher_id).is_some_and(|(own, id)| *own == id);
            !is_named || may(reader, opened)
        })
    }

    /// Requests metadata for readers without any.
    pub(crate) fn ask_where_unknown(&mut self, now: Now) {
        if !self.options.ask_for_meta_data {
            return;
        }
        for reader in &self.readers {
            if reader.enabled && !reader.knows_fields() && !reader.is_json {
                ask_for(reader, &mut self.asker, now);
            }
        }
    }
}

fn ask_for(reader: &Reader, asker: &mut Asker, now: Now) {
    if let Some(publisher_id) = &reader.publisher_id
        && reader.data_set_writer_id != 0
    {
        let probe = Probe::DataSetMetaData(vec![reader.data_set_writer_id]);
        asker.ask(reader.index.connection, Some(publisher_id.clone()), probe, now.instant);
    }
}

fn first_pair(ids: WriterIds<'_>) -> &[u8] {
    match ids {
        WriterIds::Received(bytes) => bytes.get(..2).unwrap_or_default(),
        WriterIds::List(_) => &[],
    }
}

/// Whether the message has the security that the reader requires.
fn may(reader: &Reader, opened: &Opened) -> bool {
    match (&reader.security, &opened.security) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(Required { group_id, mode }), Some(by)) => *group_id == by.group_id && by.mode >= *mode,
    }
}

/// The parts of a subscriber that delivery needs besides the reader.
pub(crate) struct Context<'a> {
    pub(crate) options: &'a SubscriberOptions,
    pub(crate) counters: &'a mut SubscriberCounters,
    pub(crate) groups: &'a mut [GroupCount],
    pub(crate) fields: &'a mut Vec<ReceivedField>,
    pub(crate) asker: &'a mut Asker,
    pub(crate) now: Now,
    /// Maximum age of the DataSetMessage by its own timestamp, in nanoseconds.
    pub(crate) age_max_nanos: Option<u64>,
}

impl Context<'_> {
    /// Delivers a UADP DataSetMessage to a reader. Returns the number of bytes after it.
    fn uadp(
        &mut self,
        reader: &mut Reader,
        network: &NetworkMessageHeader<'_>,
        writer_id: Option<u16>,
        bytes: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<usize, Drop> {
        let mut decoder = Decoder::new(bytes, LIMITS);
        let header = DataSetMessageHeader::decode(&mut decoder)?;
        if !header.is_valid {
            return Ok(decoder.remaining());
        }
        if matches!(header.kind, DataSetMessageKind::ActionRequest | DataSetMessageKind::ActionResponse) {
            return Ok(decoder.remaining());
        }
        if let Some(max) = self.age_max_nanos {
            fresh(header.timestamp.ok_or(SecurityError::Undated)?, self.now, max)?;
        }
        if let Some(major_version) = header.major_version
            && reader.knows_fields()
            && !header.fits(&reader.meta_data.configuration_version)
        {
            self.changed(reader, major_version, sink);
            return Ok(decoder.remaining());
        }
        if let Some(minor_version) = header.minor_version
            && reader.knows_fields()
            && ![0, minor_version].contains(&reader.meta_data.configuration_version.minor_version)
        {
            // Known fields can still be decoded. But a major change also changes the MinorVersion, and if the
            // MajorVersion is not sent, raw data would be misinterpreted.
            self.outdated(reader, minor_version);
            if header.major_version.is_none() && header.encoding == FieldEncoding::RawData {
                return Ok(decoder.remaining());
            }
        }
        // Decode the fields first: an undecodable message does not count as received.
        let types = reader.types();
        if let Err(error) = decode_fields(&header, &mut decoder, types, self.fields) {
            reader.counters.failed += 1;
            if error == FieldsError::NoMetaData && self.options.ask_for_meta_data {
                ask_for(reader, self.asker, self.now);
            }
            return Err(error.into());
        }
        let group_id = network.group.and_then(|group| group.writer_group_id);
        let number = header.sequence_number.map(Number::Short);
        let Some(missing) =
            self.number(reader, network.publisher_id, group_id, writer_id, number, header.kind)
        else {
            return Ok(decoder.remaining());
        };
        let message = Facts {
            publisher_id: network.publisher_id,
            group_id,
            writer_id,
            kind: header.kind,
            sequence_number: number.map(Number::value),
            missing,
            timestamp: header.timestamp.or(network.timestamp),
            status: header.status.unwrap_or_default(),
            major_version: header.major_version,
            names: &[],
        };
        self.hand_over(reader, &message, sink);
        Ok(decoder.remaining())
    }

    /// The writer's metadata has another MajorVersion than ours.
    pub(crate) fn changed(&mut self, reader: &mut Reader, major_version: u32, sink: &mut dyn Sink) {
        if reader.told_version != Some(major_version) {
            reader.told_version = Some(major_version);
            sink.event(SubscriberEvent::MetaDataChanged { reader: reader.index, major_version });
            if self.options.ask_for_meta_data {
                ask_for(reader, self.asker, self.now);
            }
        }
    }

    /// The writer's metadata is newer than ours or different: request it once.
    fn outdated(&mut self, reader: &mut Reader, minor_version: u32) {
        if reader.told_minor_version != Some(minor_version) && self.options.ask_for_meta_data {
            reader.told_minor_version = Some(minor_version);
            ask_for(reader, self.asker, self.now);
        }
    }

    /// Checks the sequence number. Returns how many messages are missing, or `None` if this one must not be delivered.
    pub(crate) fn number(
        &mut self,
        reader: &mut Reader,
        publisher_id: Option<crate::PublisherIdRef<'_>>,
        group_id: Option<u16>,
        writer_id: Option<u16>,
        number: Option<Number>,
        kind: DataSetMessageKind,
    ) -> Option<u32> {
        let Some(number) = number else { return Some(0) };
        let verdict = reader.tracker.check(
            publisher_id,
            group_id,
            writer_id,
            number,
            kind == DataSetMessageKind::KeepAlive,
            self.now.instant,
            reader.reset_nanos,
            reader.senders_max,
        );
        match verdict {
            Verdict::New { missing } => {
                self.counters.missing += u64::from(missing);
                Some(missing)
            }
            Verdict::Old => {
                self.counters.duplicates += 1;
                None
            }
            Verdict::Invalid => {
                self.counters.out_of_sequence += 1;
                None
            }
        }
    }

    pub(crate) fn hand_over(&mut self, reader: &mut Reader, facts: &Facts<'_>, sink: &mut dyn Sink) {
        self.counters.data_set_messages += 1;
        reader.counters.messages += 1;
        if let Some(group) = self.groups.get_mut(reader.group) {
            group.received(self.counters.network_messages);
        }
        reader.counters.missing += u64::from(facts.missing);
        if facts.sequence_number.is_some() {
            reader.counters.sequence_number = facts.sequence_number;
        }
        let is_complete = facts.kind != DataSetMessageKind::DeltaFrame;
        reader.arrived(is_complete, self.now.instant, sink);
        sink.message(&DataSetMessage {
            reader: reader.index,
            publisher_id: facts.publisher_id,
            writer_group_id: facts.group_id,
            data_set_writer_id: facts.writer_id,
            kind: facts.kind,
            sequence_number: facts.sequence_number,
            missing: facts.missing,
            timestamp: facts.timestamp,
            status: facts.status,
            major_version: facts.major_version,
            fields: self.fields,
            names: facts.names,
            meta_data: &reader.meta_data,
        });
    }
}

/// A DataSetMessage without its fields.
pub(crate) struct Facts<'a> {
    pub(crate) publisher_id: Option<crate::PublisherIdRef<'a>>,
    pub(crate) group_id: Option<u16>,
    pub(crate) writer_id: Option<u16>,
    pub(crate) kind: DataSetMessageKind,
    pub(crate) sequence_number: Option<u32>,
    pub(crate) missing: u32,
    pub(crate) timestamp: Option<taktwerk_types::UtcTime>,
    pub(crate) status: taktwerk_types::StatusCode,
    pub(crate) major_version: Option<u32>,
    pub(crate) names: &'a [&'a str],
}
