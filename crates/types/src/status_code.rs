//! StatusCode (Part 4 §7.39): 32 bits, of which the top two are the severity.

use crate::codec::{Decode, DecodeError, Decoder, Encode};
use core::fmt;

mod generated;

/// The outcome of an operation, or the quality of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StatusCode(pub u32);

impl StatusCode {
    /// The info type DataValue: the limit, overflow and other bits below are valid.
    pub const INFO_TYPE_DATA_VALUE: u32 = 0x0000_0400;
    /// Values were lost because a MonitoredItem queue was full (Part 4 §7.39.1, InfoBits).
    pub const OVERFLOW: u32 = 0x0000_0080;
    /// The structure of the value has changed: read the node's type again.
    pub const STRUCTURE_CHANGED: u32 = 0x0000_8000;
    /// Properties that define the value's meaning (EURange, EngineeringUnits, …) have changed.
    pub const SEMANTICS_CHANGED: u32 = 0x0000_4000;

    /// The code without info bits.
    #[must_use]
    pub const fn code(self) -> Self {
        Self(self.0 & 0xffff_0000 & !(Self::STRUCTURE_CHANGED | Self::SEMANTICS_CHANGED))
    }

    /// Severity is Good.
    #[must_use]
    pub const fn is_good(self) -> bool {
        self.0 >> 30 == 0
    }

    /// Severity is Uncertain.
    #[must_use]
    pub const fn is_uncertain(self) -> bool {
        self.0 >> 30 == 1
    }

    /// Severity is Bad.
    #[must_use]
    pub const fn is_bad(self) -> bool {
        self.0 >> 31 == 1
    }

    /// `self` with the Overflow bit and its info type.
    #[must_use]
    pub const fn with_overflow(self) -> Self {
        Self(self.0 | Self::INFO_TYPE_DATA_VALUE | Self::OVERFLOW)
    }

    /// Whether the Overflow bit is set.
    #[must_use]
    pub const fn has_overflow(self) -> bool {
        self.0 & (Self::INFO_TYPE_DATA_VALUE | Self::OVERFLOW) == Self::INFO_TYPE_DATA_VALUE | Self::OVERFLOW
    }

    /// The specification's name, such as `BadNodeIdUnknown`; `None` for undefined codes.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.1)
    }

    /// The specification's description; `None` for undefined codes.
    #[must_use]
    pub fn description(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.2)
    }

    /// Finds a code by its name, with or without underscores (`Bad_NodeIdUnknown`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('_', "");
        generated::TABLE.iter().find(|entry| entry.1.eq_ignore_ascii_case(&name)).map(|entry| Self(entry.0))
    }

    fn entry(self) -> Option<&'static (u32, &'static str, &'static str)> {
        let code = self.code().0;
        let at = generated::TABLE.binary_search_by_key(&code, |entry| entry.0).ok()?;
        generated::TABLE.get(at)
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "0x{:08X}", self.0),
        }
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StatusCode {}

impl Encode for StatusCode {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for StatusCode {
    const MIN_LEN: usize = 4;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        u32::decode(decoder).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ignore_info_bits() {
        assert_eq!(StatusCode::BAD_NODE_ID_UNKNOWN.to_string(), "BadNodeIdUnknown");
        assert_eq!(StatusCode::from_name("Bad_NodeIdUnknown"), Some(StatusCode::BAD_NODE_ID_UNKNOWN));
        let overflow = StatusCode::GOOD.with_overflow();
        assert!(overflow.is_good() && overflow.has_overflow());
        assert_eq!(overflow.name(), Some("Good"));
        assert!(generated::TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
