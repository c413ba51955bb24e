//! DataValue (Part 4 §7.11, Part 6 §5.2.2.17): a value with its status and timestamps.

use super::Variant;
use crate::StatusCode;
use crate::codec::{Decode, DecodeError, Decoder, Encode};
use crate::time::UtcTime;

/// The timestamps that a Read or a MonitoredItem requests (Part 4 §7.40).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TimestampsToReturn {
    /// The time at the source of the value.
    #[default]
    Source,
    /// The time at which the server received the value.
    Server,
    /// Both.
    Both,
    /// None.
    Neither,
}

impl TimestampsToReturn {
    /// From the enumeration value on the wire; other numbers are Bad_TimestampsToReturnInvalid.
    pub fn from_wire(value: i32) -> Result<Self, StatusCode> {
        match value {
            0 => Ok(Self::Source),
            1 => Ok(Self::Server),
            2 => Ok(Self::Both),
            3 => Ok(Self::Neither),
            _ => Err(StatusCode::BAD_TIMESTAMPS_TO_RETURN_INVALID),
        }
    }

    /// Whether the source timestamp is wanted.
    #[must_use]
    pub const fn source(self) -> bool {
        matches!(self, Self::Source | Self::Both)
    }

    /// Whether the server timestamp is wanted.
    #[must_use]
    pub const fn server(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }
}

/// A value with its quality and timestamps. A missing status is Good.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataValue {
    /// The value; `None` when the operation failed.
    pub value: Option<Variant>,
    /// The quality; `None` is Good.
    pub status: Option<StatusCode>,
    /// When the source created the value.
    pub source_timestamp: Option<UtcTime>,
    /// When the server received it.
    pub server_timestamp: Option<UtcTime>,
    /// Extra 10 ps ticks of the source timestamp.
    pub source_picoseconds: Option<u16>,
    /// Extra 10 ps ticks of the server timestamp.
    pub server_picoseconds: Option<u16>,
}

impl DataValue {
    /// A good value without timestamps.
    pub fn new(value: impl Into<Variant>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// A status without a value, as the result of a failed read.
    #[must_use]
    pub fn from_status(status: StatusCode) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// The status; missing is Good.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_default()
    }

    /// `self` with both timestamps set.
    #[must_use]
    pub fn at(mut self, source: UtcTime, server: UtcTime) -> Self {
        self.source_timestamp = Some(source);
        self.server_timestamp = Some(server);
        self
    }

    /// Equality for change detection: like `==`, but a NaN equals the same NaN.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        let values = match (&self.value, &other.value) {
            (Some(one), Some(two)) => one.same_as(two),
            (one, two) => one.is_none() == two.is_none(),
        };
        values
            && (self.status, self.source_timestamp, self.server_timestamp)
                == (other.status, other.source_timestamp, other.server_timestamp)
            && (self.source_picoseconds, self.server_picoseconds)
                == (other.source_picoseconds, other.server_picoseconds)
    }
}

/// Bit of the encoding mask: a value follows.
pub const HAS_VALUE: u8 = 0x01;
/// Bit of the encoding mask: a status follows.
pub const HAS_STATUS: u8 = 0x02;
/// Bit of the encoding mask: a source timestamp follows.
pub const HAS_SOURCE_TIMESTAMP: u8 = 0x04;
/// Bit of the encoding mask: a server timestamp follows.
pub const HAS_SERVER_TIMESTAMP: u8 = 0x08;
/// Bit of the encoding mask: source picoseconds follow.
pub const HAS_SOURCE_PICOSECONDS: u8 = 0x10;
/// Bit of the encoding mask: server picoseconds follow.
pub const HAS_SERVER_PICOSECONDS: u8 = 0x20;

impl Encode for DataValue {
    fn encode(&self, out: &mut Vec<u8>) {
        let bit = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            bit(self.value.is_some(), HAS_VALUE)
                | bit(self.status.is_some(), HAS_STATUS)
                | bit(self.source_timestamp.is_some(), HAS_SOURCE_TIMESTAMP)
                | bit(self.server_timestamp.is_some(), HAS_SERVER_TIMESTAMP)
                | bit(self.source_picoseconds.is_some(), HAS_SOURCE_PICOSECONDS)
                | bit(self.server_picoseconds.is_some(), HAS_SERVER_PICOSECONDS),
        );
        if let Some(value) = &self.value {
            value.encode(out);
        }
        if let Some(status) = &self.status {
            status.encode(out);
        }
        if let Some(time) = &self.source_timestamp {
            time.encode(out);
        }
        if let Some(pico) = &self.source_picoseconds {
            pico.encode(out);
        }
        if let Some(time) = &self.server_timestamp {
            time.encode(out);
        }
        if let Some(pico) = &self.server_picoseconds {
            pico.encode(out);
        }
    }
}

impl<'a> Decode<'a> for DataValue {
    const MIN_LEN: usize = 1;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        fn field<'a, T: Decode<'a>>(
            mask: u8,
            bit: u8,
            decoder: &mut Decoder<'a>,
        ) -> Result<Option<T>, DecodeError> {
            if mask & bit != 0 { T::decode(decoder).map(Some) } else { Ok(None) }
        }
        let mask = decoder.byte()?;
        let value = if mask & HAS_VALUE != 0 { Some(decoder.nested(Variant::decode)?) } else { None };
        let status = field(mask, HAS_STATUS, decoder)?;
        let source_timestamp = field(mask, HAS_SOURCE_TIMESTAMP, decoder)?;
        let source_picoseconds = field(mask, HAS_SOURCE_PICOSECONDS, decoder)?;
        let server_timestamp = field(mask, HAS_SERVER_TIMESTAMP, decoder)?;
        let server_picoseconds = field(mask, HAS_SERVER_PICOSECONDS, decoder)?;
        Ok(Self { value, status, source_timestamp, server_timestamp, source_picoseconds, server_picoseconds })
    }
}
