//! Assembles DataSetMessages into NetworkMessages in the [`Transmit`](crate::Transmit).

use super::plan::Room;
use super::writer::{Item, Place, Writer};
use super::{DATA, GroupIndex, Turn};
use crate::config::{Connection, WriterGroup, WriterGroupMessage};
use crate::network_message::{SECURED_LEN, write_message};
use crate::publisher_id::PublisherId;
use crate::security::SecurityError;
use crate::transmit::About;
use crate::uadp::SecurityMode;
use crate::uadp::chunk::{CHUNK_HEADER_LEN, split};
use crate::uadp::header::{GroupHeader, NetworkMessageHeader, PromotedFields, WriterIds};
use taktwerk_schema::UadpNetworkMessageContentMask as Mask;
use taktwerk_types::{Encode, Guid, Instant, Variant};

/// The common properties of a group's NetworkMessages.
#[derive(Debug)]
pub(super) struct Envelope {
    message: WriterGroupMessage,
    mask: Mask,
    publisher_id: Option<PublisherId>,
    data_set_class_id: Option<Guid>,
    writer_group_id: u16,
    group_version: u32,
    #[cfg(feature = "json")]
    json: crate::json::GroupSpec,
}

/// Why a message was not created.
#[derive(Debug)]
pub(super) enum Failure {
    /// The message is too large; its length.
    TooLarge(usize),
    Security(SecurityError),
}

impl From<SecurityError> for Failure {
    fn from(error: SecurityError) -> Self {
        Self::Security(error)
    }
}

/// A NetworkMessage to create.
pub(super) struct MessageKind<'a> {
    pub(super) items: &'a [Item],
    pub(super) ids: &'a [u16],
    pub(super) promoted: &'a [Variant],
    pub(super) writers: &'a [Writer],
    pub(super) made: &'a [u8],
    /// Number of the message in its cycle, from 1.
    pub(super) number: u16,
    pub(super) due: Instant,
}

impl<'a> MessageKind<'a> {
    fn bytes(&self, item: &Item) -> &'a [u8] {
        match &item.place {
            Place::Frame => self.writers.get(item.writer).map(Writer::frame),
            Place::Made(range) => self.made.get(range.clone()),
        }
        .unwrap_or_default()
    }

    fn about(&self, index: GroupIndex) -> About<'static> {
        About {
            connection: index.connection,
            writer_group: Some(index.group),
            writer: match self.items {
                [item] => Some(item.writer),
                _ => None,
            },
            kind: DATA,
            due: self.due,
            address: None,
        }
    }
}

impl Envelope {
    pub(super) fn new(connection: &Connection, group: &WriterGroup) -> Self {
        let (mask, group_version) = match &group.message {
            WriterGroupMessage::Uadp(uadp) => (uadp.network_message_content_mask, uadp.group_version),
            _ => (Mask::EMPTY, 0),
        };
        Self {
            message: group.message.clone(),
            mask,
            publisher_id: connection.publisher_id.clone(),
            data_set_class_id: None,
            writer_group_id: group.writer_group_id,
            group_version,
            #[cfg(feature = "json")]
            json: crate::json::GroupSpec::new(connection, group),
        }
    }

    pub(super) fn message(&self) -> &WriterGroupMessage {
        &self.message
    }

    pub(super) fn has(&self, bit: Mask) -> bool {
        self.mask.contains(bit)
    }

    /// Whether a NetworkMessage contains only one DataSetMessage.
    pub(super) fn is_single(&self) -> bool {
        match &self.message {
            #[cfg(feature = "json")]
            WriterGroupMessage::Json(json) => json
                .network_message_content_mask
                .contains(taktwerk_schema::JsonNetworkMessageContentMask::SINGLE_DATA_SET_MESSAGE),
            _ => self.has(Mask::PROMOTED_FIELDS),
        }
    }

    /// Overhead around the DataSetMessages in bytes, without the PayloadHeader.
    pub(super) fn fixed_len(&self, is_secured: bool) -> usize {
        let mut header = Vec::new();
        self.header(1, 1, Default::default()).encode(&mut header);
        header.len() + if is_secured { SECURED_LEN } else { 0 }
    }

    /// The header without ids and security.
    fn header(&self, number: u16, sequence_number: u16, now: crate::Now) -> NetworkMessageHeader<'_> {
        let group = GroupHeader {
            writer_group_id: self.has(Mask::WRITER_GROUP_ID).then_some(self.writer_group_id),
            group_version: self.has(Mask::GROUP_VERSION).then_some(self.group_version),
            network_message_number: self.has(Mask::NETWORK_MESSAGE_NUMBER).then_some(number),
            sequence_number: self.has(Mask::SEQUENCE_NUMBER).then_some(sequence_number),
        };
        let publisher_id = self.publisher_id.as_ref().filter(|_| self.has(Mask::PUBLISHER_ID));
        NetworkMessageHeader {
            publisher_id: publisher_id.map(PublisherId::as_ref),
            data_set_class_id: self.data_set_class_id.filter(|_| self.has(Mask::DATA_SET_CLASS_ID)),
            group: self.has(Mask::GROUP_HEADER).then_some(group),
            timestamp: self.has(Mask::TIMESTAMP).then_some(now.utc),
            picoseconds: self.has(Mask::PICO_SECONDS).then_some(0),
            ..NetworkMessageHeader::default()
        }
    }

    /// Creates a UADP NetworkMessage, or several chunks. Returns their number.
    #[allow(clippy::too_many_arguments)] // what a message is made of
    pub(super) fn uadp(
        &self,
        turn: &mut Turn<'_>,
        index: GroupIndex,
        _: &Connection,
        message: &MessageKind<'_>,
        security: Option<(&str, SecurityMode)>,
        room: Room,
        next_number: &mut u16,
    ) -> Result<u64, Failure> {
        if let [item] = message.items
            && item.len > room.single_len_max()
        {
            return self.chunks(turn, index, message, item, security, room, next_number);
        }
        let sequence_number = *next_number;
        let mut header = self.header(message.number, sequence_number, turn.now);
        header.writer_ids = self.has(Mask::PAYLOAD_HEADER).then_some(WriterIds::List(message.ids));
        header.promoted_fields =
            (!message.promoted.is_empty()).then_some(PromotedFields::List(message.promoted));
        self.write(turn, message.about(index), header, security, |out| {
            let start_of_message = out.1;
            let out = &mut *out.0;
            if message.items.len() > 1 && self.has(Mask::PAYLOAD_HEADER) {
                message.items.iter().for_each(|item| u16::try_from(item.len).unwrap_or(u16::MAX).encode(out));
            }
            for item in message.items {
                let place = start_of_message + item.offset;
                // A later fixed offset: the gap starts with a byte that marks it as not valid.
                if item.offset > 0 && out.len() < place {
                    out.resize(place, 0);
                }
                out.extend_from_slice(message.bytes(item));
            }
        })?;
        *next_number = sequence_number.wrapping_add(1);
        Ok(1)
    }

    #[allow(clippy::too_many_arguments)] // what a message is made of
    fn chunks(
        &self,
        turn: &mut Turn<'_>,
        index: GroupIndex,
        message: &MessageKind<'_>,
        item: &Item,
        security: Option<(&str, SecurityMode)>,
        room: Room,
        next_number: &mut u16,
    ) -> Result<u64, Failure> {
        let ids = [item.writer_id];
        // The writer id takes two bytes without a count, and ExtendedFlags1 and 2 mark the chunk.
        let overhead = room.fixed_len + 2 + 2 + CHUNK_HEADER_LEN;
        let piece_len = room.message_len_max.saturating_sub(overhead);
        if !self.has(Mask::PAYLOAD_HEADER) || piece_len == 0 {
            return Err(Failure::TooLarge(item.len));
        }
        let mut count = 0;
        for chunk in split(message.bytes(item), item.sequence_number, piece_len) {
            let sequence_number = *next_number;
            let mut header = self.header(message.number, sequence_number, turn.now);
            header.writer_ids = Some(WriterIds::List(&ids));
            header.is_chunk = true;
            self.write(turn, message.about(index), header, security, |out| chunk.encode(out.0))?;
            *next_number = sequence_number.wrapping_add(1);
            count += 1;
        }
        Ok(count)
    }

    fn write(
        &self,
        turn: &mut Turn<'_>,
        about: About<'_>,
        header: NetworkMessageHeader<'_>,
        security: Option<(&str, SecurityMode)>,
        payload: impl FnOnce((&mut Vec<u8>, usize)),
    ) -> Result<(), Failure> {
        write_message(turn.keys, turn.entropy, turn.now, turn.out, about, header, security, payload)
            .map_err(Failure::Security)
    }

    /// Creates a JSON NetworkMessage.
    pub(super) fn json(
        &mut self,
        turn: &mut Turn<'_>,
        index: GroupIndex,
        _: &Connection,
        message: &MessageKind<'_>,
    ) -> Result<u64, Failure> {
        #[cfg(feature = "json")]
        {
            let id = turn.entropy.next_u64();
            let json = &mut self.json;
            let wrote: Result<(), core::convert::Infallible> = turn.out.push(message.about(index), |out| {
                json.wrap(id, message.items.iter().map(|item| message.bytes(item)), out);
                Ok(())
            });
            let _ = wrote;
            Ok(1)
        }
        #[cfg(not(feature = "json"))]
        {
            let _ = (turn, index, message);
            Ok(0)
        }
    }
}
