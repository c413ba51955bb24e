//! The header of a UADP NetworkMessage (Part 14 §7.2.4.4.2, Table 154).

use super::security_header::SecurityHeader;
use crate::publisher_id::PublisherIdRef;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, Decoder, Encode, Guid, UtcTime, Variant};

/// The version that is written, and the only one accepted.
pub const UADP_VERSION: u8 = 1;

const PUBLISHER_ID: u8 = 0x10;
const GROUP_HEADER: u8 = 0x20;
const PAYLOAD_HEADER: u8 = 0x40;
const EXTENDED_FLAGS_1: u8 = 0x80;

const DATA_SET_CLASS_ID: u8 = 0x08;
const SECURITY: u8 = 0x10;
const TIMESTAMP: u8 = 0x20;
const PICO_SECONDS: u8 = 0x40;
const EXTENDED_FLAGS_2: u8 = 0x80;

const CHUNK: u8 = 0x01;
const PROMOTED_FIELDS: u8 = 0x02;
const TYPE_SHIFT: u8 = 2;
const TYPE_MASK: u8 = 0x1c;
const ACTION_HEADER: u8 = 0x20;
const RESERVED_FLAGS_2: u8 = 0xc0;

const WRITER_GROUP_ID: u8 = 0x01;
const GROUP_VERSION: u8 = 0x02;
const NETWORK_MESSAGE_NUMBER: u8 = 0x04;
const SEQUENCE_NUMBER: u8 = 0x08;
const RESERVED_GROUP_FLAGS: u8 = 0xf0;

/// The kind of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum NetworkMessageType {
    /// DataSetMessages, or Actions if there is an ActionHeader.
    #[default]
    DataSetMessages,
    /// A discovery probe (Part 14 §7.2.4.6.12).
    DiscoveryProbe,
    /// A discovery announcement (Part 14 §7.2.4.6.3).
    DiscoveryAnnouncement,
}

/// The GroupHeader: each field is optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupHeader {
    /// The WriterGroup of the publisher.
    pub writer_group_id: Option<u16>,
    /// The version of the group's header and payload layout (VersionTime).
    pub group_version: Option<u32>,
    /// The number of this message within its publishing cycle, from 1.
    pub network_message_number: Option<u16>,
    /// The sequence number of NetworkMessages in the WriterGroup.
    pub sequence_number: Option<u16>,
}

/// The PayloadHeader: the DataSetWriterIds of the DataSetMessages, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterIds<'a> {
    /// As in a received message: pairs of bytes.
    Received(&'a [u8]),
    /// To send; at most 255.
    List(&'a [u16]),
}

impl<'a> WriterIds<'a> {
    /// Number of DataSetMessages.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Received(bytes) => bytes.len() / 2,
            Self::List(ids) => ids.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of the DataSetMessage at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u16> {
        match self {
            Self::Received(bytes) => {
                bytes.get(index * 2..index * 2 + 2)?.try_into().ok().map(u16::from_le_bytes)
            }
            Self::List(ids) => ids.get(index).copied(),
        }
    }

    /// All ids, in order.
    pub fn iter(self) -> impl Iterator<Item = u16> + 'a {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

/// Compares ids by value, however they are stored.
fn same_ids(one: WriterIds<'_>, two: WriterIds<'_>) -> bool {
    one.iter().eq(two.iter())
}

/// The fields promoted into the header, where they are readable without keys (Part 14 §7.2.4.4.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PromotedFields<'a> {
    /// As in a received message, after their size.
    Received(&'a [u8]),
    /// To send.
    List(&'a [Variant]),
}

impl PromotedFields<'_> {
    /// The values.
    ///
    /// # Errors
    /// The bytes are not Variants.
    pub fn decode(&self, limits: taktwerk_types::DecodeLimits) -> Result<Vec<Variant>, DecodeError> {
        match self {
            Self::List(values) => Ok(values.to_vec()),
            Self::Received(bytes) => {
                let mut decoder = Decoder::new(bytes, limits);
                let mut values = Vec::new();
                while decoder.remaining() > 0 {
                    values.push(Variant::decode(&mut decoder)?);
                }
                Ok(values)
            }
        }
    }
}

/// The header of a NetworkMessage, including the SecurityHeader.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetworkMessageHeader<'a> {
    /// The sender (for Actions: the responder).
    pub publisher_id: Option<PublisherIdRef<'a>>,
    /// The DataSetClass of all DataSetMessages.
    pub data_set_class_id: Option<Guid>,
    /// The GroupHeader.
    pub group: Option<GroupHeader>,
    /// The PayloadHeader; not for discovery. For a chunk: its DataSetWriterId.
    pub writer_ids: Option<WriterIds<'a>>,
    /// Creation time of the message.
    pub timestamp: Option<UtcTime>,
    /// Extra 10 ps ticks of the timestamp; needs a timestamp.
    pub picoseconds: Option<u16>,
    /// Promoted fields; only with exactly one DataSetMessage.
    pub promoted_fields: Option<PromotedFields<'a>>,
    /// Security of the message.
    pub security: Option<SecurityHeader<'a>>,
    /// The kind of payload.
    pub message_type: NetworkMessageType,
    /// The payload is a chunk.
    pub is_chunk: bool,
    /// An ActionHeader precedes the payload, in the encrypted part.
    pub has_action_header: bool,
}

impl PartialEq for NetworkMessageHeader<'_> {
    fn eq(&self, other: &Self) -> bool {
        let ids = match (self.writer_ids, other.writer_ids) {
            (Some(one), Some(two)) => same_ids(one, two),
            (one, two) => one.is_none() == two.is_none(),
        };
        let promoted = match (&self.promoted_fields, &other.promoted_fields) {
            (Some(one), Some(two)) => one.decode(Default::default()) == two.decode(Default::default()),
            (one, two) => one.is_none() == two.is_none(),
        };
        ids && promoted
            && (self.publisher_id, self.data_set_class_id, self.group)
                == (other.publisher_id, other.data_set_class_id, other.group)
            && (self.timestamp, self.picoseconds, self.security)
                == (other.timestamp, other.picoseconds, other.security)
            && (self.message_type, self.is_chunk, self.has_action_header)
                == (other.message_type, other.is_chunk, other.has_action_header)
    }
}

/// Offsets of the changing parts of an encoded header, for patching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeaderOffsets {
    /// The NetworkMessage sequence number (UInt16).
    pub sequence_number: Option<usize>,
    /// The timestamp (DateTime).
    pub timestamp: Option<usize>,
    /// The picoseconds (UInt16).
    pub picoseconds: Option<usize>,
    /// The promoted fields, after their size.
    pub promoted_fields: Option<usize>,
    /// The SecurityHeader.
    pub security: Option<usize>,
    /// The first byte after the header, where encryption starts.
    pub payload: usize,
}

impl NetworkMessageHeader<'_> {
    /// Appends the header and returns the offsets of its changing parts.
    pub fn encode(&self, out: &mut Vec<u8>) -> HeaderOffsets {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        let kind = match self.message_type {
            NetworkMessageType::DataSetMessages => 0,
            NetworkMessageType::DiscoveryProbe => 1,
            NetworkMessageType::DiscoveryAnnouncement => 2,
        };
        let flags2 = bit(self.is_chunk, CHUNK)
            | bit(self.promoted_fields.is_some(), PROMOTED_FIELDS)
            | kind << TYPE_SHIFT
            | bit(self.has_action_header, ACTION_HEADER);
        let flags1 = self.publisher_id.as_ref().map_or(0, PublisherIdRef::type_bits)
            | bit(self.data_set_class_id.is_some(), DATA_SET_CLASS_ID)
            | bit(self.security.is_some(), SECURITY)
            | bit(self.timestamp.is_some(), TIMESTAMP)
            | bit(self.timestamp.is_some() && self.picoseconds.is_some(), PICO_SECONDS)
            | bit(flags2 != 0, EXTENDED_FLAGS_2);
        out.push(
            UADP_VERSION
                | bit(self.publisher_id.is_some(), PUBLISHER_ID)
                | bit(self.group.is_some(), GROUP_HEADER)
                | bit(self.writer_ids.is_some(), PAYLOAD_HEADER)
                | bit(flags1 != 0, EXTENDED_FLAGS_1),
        );
        if flags1 != 0 {
            out.push(flags1);
        }
        if flags2 != 0 {
            out.push(flags2);
        }
        if let Some(id) = &self.publisher_id {
            id.encode(out);
        }
        if let Some(id) = &self.data_set_class_id {
            id.encode(out);
        }
        let mut offsets = HeaderOffsets::default();
        if let Some(group) = &self.group {
            offsets.sequence_number = group.encode(out);
        }
        if let Some(ids) = self.writer_ids {
            if !self.is_chunk {
                out.push(u8::try_from(ids.len()).unwrap_or(u8::MAX));
            }
            let count = if self.is_chunk { 1 } else { usize::from(u8::MAX) };
            ids.iter().take(count).for_each(|id| id.encode(out));
        }
        if let Some(timestamp) = self.timestamp {
            offsets.timestamp = Some(out.len());
            timestamp.encode(out);
            if let Some(picoseconds) = self.picoseconds {
                offsets.picoseconds = Some(out.len());
                picoseconds.encode(out);
            }
        }
        if let Some(promoted) = &self.promoted_fields {
            let at = out.len();
            out.extend_from_slice(&[0; 2]);
            match promoted {
                PromotedFields::Received(bytes) => out.extend_from_slice(bytes),
                PromotedFields::List(values) => values.iter().for_each(|value| value.encode(out)),
            }
            let size = u16::try_from(out.len() - at - 2).unwrap_or(u16::MAX);
            if let Some(gap) = out.get_mut(at..at + 2) {
                gap.copy_from_slice(&size.to_le_bytes());
            }
            offsets.promoted_fields = Some(at + 2);
        }
        if let Some(security) = &self.security {
            offsets.security = Some(out.len());
            security.encode(out);
        }
        offsets.payload = out.len();
        offsets
    }
}

impl GroupHeader {
    /// Appends the header; returns the offset of the sequence number.
    fn encode(&self, out: &mut Vec<u8>) -> Option<usize> {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            bit(self.writer_group_id.is_some(), WRITER_GROUP_ID)
                | bit(self.group_version.is_some(), GROUP_VERSION)
                | bit(self.network_message_number.is_some(), NETWORK_MESSAGE_NUMBER)
                | bit(self.sequence_number.is_some(), SEQUENCE_NUMBER),
        );
        if let Some(id) = self.writer_group_id {
            id.encode(out);
        }
        if let Some(version) = self.group_version {
            version.encode(out);
        }
        if let Some(number) = self.network_message_number {
            number.encode(out);
        }
        let number = self.sequence_number?;
        let at = out.len();
        number.encode(out);
        Some(at)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let flags = decoder.byte()?;
        if flags & RESERVED_GROUP_FLAGS != 0 {
            return Err(DecodeError::Invalid("GroupFlags: reserved bits"));
        }
        Ok(Self {
            writer_group_id: optional(flags, WRITER_GROUP_ID, decoder)?,
            group_version: optional(flags, GROUP_VERSION, decoder)?,
            network_message_number: optional(flags, NETWORK_MESSAGE_NUMBER, decoder)?,
            sequence_number: optional(flags, SEQUENCE_NUMBER, decoder)?,
        })
    }
}

fn optional<'a, T: Decode<'a>>(
    flags: u8,
    bit: u8,
    decoder: &mut Decoder<'a>,
) -> Result<Option<T>, DecodeError> {
    if flags & bit != 0 { T::decode(decoder).map(Some) } else { Ok(None) }
}

impl<'a> NetworkMessageHeader<'a> {
    /// Decodes the header; `decoder` is then at the payload, which may be encrypted.
    ///
    /// # Errors
    /// Another version, reserved values, or truncated bytes: skip the message (Part 14 §7.2.4.4.2).
    pub fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let flags = decoder.byte()?;
        if flags & 0x0f != UADP_VERSION {
            return Err(DecodeError::Invalid("UADPVersion: only 1 is known"));
        }
        let flags1 = if flags & EXTENDED_FLAGS_1 != 0 { decoder.byte()? } else { 0 };
        let flags2 = if flags1 & EXTENDED_FLAGS_2 != 0 { decoder.byte()? } else { 0 };
        if flags2 & RESERVED_FLAGS_2 != 0 {
            return Err(DecodeError::Invalid("ExtendedFlags2: reserved bits"));
        }
        let message_type = match (flags2 & TYPE_MASK) >> TYPE_SHIFT {
            0 => NetworkMessageType::DataSetMessages,
            1 => NetworkMessageType::DiscoveryProbe,
            2 => NetworkMessageType::DiscoveryAnnouncement,
            _ => return Err(DecodeError::Invalid("NetworkMessage type: reserved")),
        };
        let is_chunk = flags2 & CHUNK != 0;
        let publisher_id = if flags & PUBLISHER_ID != 0 {
            Some(PublisherIdRef::decode(flags1 & 0x07, decoder)?)
        } else {
            None
        };
        let data_set_class_id = optional(flags1, DATA_SET_CLASS_ID, decoder)?;
        let group = if flags & GROUP_HEADER != 0 { Some(GroupHeader::decode(decoder)?) } else { None };
        let writer_ids = if flags & PAYLOAD_HEADER != 0 {
            let count = if is_chunk { 1 } else { usize::from(decoder.byte()?) };
            Some(WriterIds::Received(decoder.take(count * 2)?))
        } else {
            None
        };
        let timestamp = optional(flags1, TIMESTAMP, decoder)?;
        let picoseconds = optional(flags1, PICO_SECONDS, decoder)?;
        let promoted_fields = if flags2 & PROMOTED_FIELDS != 0 {
            let size = u16::decode(decoder)?;
            Some(PromotedFields::Received(decoder.take(usize::from(size))?))
        } else {
            None
        };
        let security = if flags1 & SECURITY != 0 { Some(SecurityHeader::decode(decoder)?) } else { None };
        Ok(Self {
            publisher_id,
            data_set_class_id,
            group,
            writer_ids,
            timestamp,
            picoseconds,
            promoted_fields,
            security,
            message_type,
            is_chunk,
            has_action_header: flags2 & ACTION_HEADER != 0,
        })
    }
}
