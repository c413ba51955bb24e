//! The header of a DataSetMessage (Part 14 §7.2.4.5.4, Table 162).

use taktwerk_schema::ConfigurationVersionDataType;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, Decoder, Encode, StatusCode, UtcTime};

const VALID: u8 = 0x01;
const ENCODING_SHIFT: u8 = 1;
const ENCODING_MASK: u8 = 0x06;
const SEQUENCE_NUMBER: u8 = 0x08;
const STATUS: u8 = 0x10;
const MAJOR_VERSION: u8 = 0x20;
const MINOR_VERSION: u8 = 0x40;
const FLAGS_2: u8 = 0x80;

const TYPE_MASK: u8 = 0x0f;
const TIMESTAMP: u8 = 0x10;
const PICO_SECONDS: u8 = 0x20;
const RESERVED_FLAGS_2: u8 = 0xc0;

/// The encoding of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FieldEncoding {
    /// Variants; a StatusCode replaces a Bad value.
    #[default]
    Variant,
    /// Only the values, typed by the DataSetMetaData, padded to fixed sizes (Part 14 §7.2.4.5.11).
    RawData,
    /// DataValues.
    DataValue,
}

/// The content of a DataSetMessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DataSetMessageKind {
    /// All fields.
    #[default]
    KeyFrame,
    /// The fields that have changed.
    DeltaFrame,
    /// An event.
    Event,
    /// No fields: the writer is alive.
    KeepAlive,
    /// An Action request.
    ActionRequest,
    /// An Action response.
    ActionResponse,
}

impl DataSetMessageKind {
    const fn number(self) -> u8 {
        match self {
            Self::KeyFrame => 0,
            Self::DeltaFrame => 1,
            Self::Event => 2,
            Self::KeepAlive => 3,
            Self::ActionRequest => 4,
            Self::ActionResponse => 5,
        }
    }
}

/// The header of a DataSetMessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSetMessageHeader {
    /// False: ignore the rest.
    pub is_valid: bool,
    /// The encoding of the fields.
    pub encoding: FieldEncoding,
    /// The content.
    pub kind: DataSetMessageKind,
    /// The sequence number of the writer's messages; for a keep-alive, that of the next message.
    pub sequence_number: Option<u16>,
    /// When the values were sampled.
    pub timestamp: Option<UtcTime>,
    /// Extra 10 ps ticks of the timestamp.
    pub picoseconds: Option<u16>,
    /// The overall status, of which the upper 16 bits are sent.
    pub status: Option<StatusCode>,
    /// The MajorVersion of the DataSetMetaData.
    pub major_version: Option<u32>,
    /// The MinorVersion of the DataSetMetaData.
    pub minor_version: Option<u32>,
    /// Write DataSetFlags2 even if it is zero: required by the layouts of Annex A.2.2.
    pub always_flags2: bool,
}

/// Offsets of the changing parts of an encoded header, for patching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSetMessageOffsets {
    /// DataSetFlags1.
    pub flags1: usize,
    /// The sequence number (UInt16).
    pub sequence_number: Option<usize>,
    /// The timestamp (DateTime).
    pub timestamp: Option<usize>,
    /// The picoseconds (UInt16).
    pub picoseconds: Option<usize>,
    /// The status (UInt16).
    pub status: Option<usize>,
    /// The first byte after the header.
    pub body: usize,
}

impl DataSetMessageHeader {
    /// Appends the header and returns the offsets of its changing parts.
    pub fn encode(&self, out: &mut Vec<u8>) -> DataSetMessageOffsets {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        let encoding = match self.encoding {
            FieldEncoding::Variant => 0,
            FieldEncoding::RawData => 1,
            FieldEncoding::DataValue => 2,
        };
        let flags2 = self.kind.number()
            | bit(self.timestamp.is_some(), TIMESTAMP)
            | bit(self.picoseconds.is_some(), PICO_SECONDS);
        let has_flags2 = flags2 != 0 || self.always_flags2;
        let mut offsets = DataSetMessageOffsets { flags1: out.len(), ..Default::default() };
        out.push(
            bit(self.is_valid, VALID)
                | encoding << ENCODING_SHIFT
                | bit(self.sequence_number.is_some(), SEQUENCE_NUMBER)
                | bit(self.status.is_some(), STATUS)
                | bit(self.major_version.is_some(), MAJOR_VERSION)
                | bit(self.minor_version.is_some(), MINOR_VERSION)
                | bit(has_flags2, FLAGS_2),
        );
        if has_flags2 {
            out.push(flags2);
        }
        if let Some(number) = self.sequence_number {
            offsets.sequence_number = Some(out.len());
            number.encode(out);
        }
        if let Some(timestamp) = self.timestamp {
            offsets.timestamp = Some(out.len());
            timestamp.encode(out);
        }
        if let Some(picoseconds) = self.picoseconds {
            offsets.picoseconds = Some(out.len());
            picoseconds.encode(out);
        }
        if let Some(status) = self.status {
            offsets.status = Some(out.len());
            status_bits(status).encode(out);
        }
        if let Some(version) = self.major_version {
            version.encode(out);
        }
        if let Some(version) = self.minor_version {
            version.encode(out);
        }
        offsets.body = out.len();
        offsets
    }

    /// Decodes the header; `decoder` is then at the fields.
    ///
    /// # Errors
    /// Reserved values, or truncated bytes. If a message is not valid, only its first byte is checked.
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let flags1 = decoder.byte()?;
        if flags1 & VALID == 0 {
            return Ok(Self::default());
        }
        let encoding = match (flags1 & ENCODING_MASK) >> ENCODING_SHIFT {
            0 => FieldEncoding::Variant,
            1 => FieldEncoding::RawData,
            2 => FieldEncoding::DataValue,
            _ => return Err(DecodeError::Invalid("DataSetMessage field encoding: reserved")),
        };
        let flags2 = if flags1 & FLAGS_2 != 0 { decoder.byte()? } else { 0 };
        if flags2 & RESERVED_FLAGS_2 != 0 {
            return Err(DecodeError::Invalid("DataSetFlags2: reserved bits"));
        }
        let kind = match flags2 & TYPE_MASK {
            0 => DataSetMessageKind::KeyFrame,
            1 => DataSetMessageKind::DeltaFrame,
            2 => DataSetMessageKind::Event,
            3 => DataSetMessageKind::KeepAlive,
            4 => DataSetMessageKind::ActionRequest,
            5 => DataSetMessageKind::ActionResponse,
            _ => return Err(DecodeError::Invalid("DataSetMessage type: reserved")),
        };
        fn optional<'a, T: Decode<'a>>(
            present: bool,
            decoder: &mut Decoder<'a>,
        ) -> Result<Option<T>, DecodeError> {
            if present { T::decode(decoder).map(Some) } else { Ok(None) }
        }
        Ok(Self {
            is_valid: true,
            encoding,
            kind,
            sequence_number: optional(flags1 & SEQUENCE_NUMBER != 0, decoder)?,
            timestamp: optional(flags2 & TIMESTAMP != 0, decoder)?,
            picoseconds: optional(flags2 & PICO_SECONDS != 0, decoder)?,
            status: optional::<u16>(flags1 & STATUS != 0, decoder)?
                .map(|bits| StatusCode(u32::from(bits) << 16)),
            major_version: optional(flags1 & MAJOR_VERSION != 0, decoder)?,
            minor_version: optional(flags1 & MINOR_VERSION != 0, decoder)?,
            always_flags2: flags1 & FLAGS_2 != 0 && flags2 == 0,
        })
    }

    /// Whether the version in the header, if present, matches the metadata. With a different MajorVersion the fields
    /// cannot be decoded, with a different MinorVersion they can (Part 14 §5.2.3).
    #[must_use]
    pub fn fits(&self, version: &ConfigurationVersionDataType) -> bool {
        self.major_version.is_none_or(|major| major == version.major_version)
    }
}

/// The 16 bits of a StatusCode that a DataSetMessage carries.
#[must_use]
pub const fn status_bits(status: StatusCode) -> u16 {
    (status.0 >> 16) as u16
}
