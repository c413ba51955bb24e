//! Values that fit into a word: stored in slots and in columns of histories without the heap.

use super::Variant;
use crate::{StatusCode, UtcTime};

impl Variant {
    /// The number of the built-in type (0 for null) and the bits of the value, in the order of the binary encoding;
    /// `None` if the value does not fit into a word.
    ///
    /// ```
    /// use taktwerk_types::Variant;
    /// assert_eq!(Variant::Int16(-1).to_word(), Some((4, 0xffff)));
    /// assert_eq!(Variant::from_word(4, 0xffff), Some(Variant::Int16(-1)));
    /// assert_eq!(Variant::from("text").to_word(), None);
    /// ```
    #[inline]
    #[must_use]
    pub fn to_word(&self) -> Option<(u8, u64)> {
        Some(match self {
            Self::Empty => (0, 0),
            Self::Boolean(value) => (1, u64::from(*value)),
            Self::SByte(value) => (2, u64::from(*value as u8)),
            Self::Byte(value) => (3, u64::from(*value)),
            Self::Int16(value) => (4, u64::from(*value as u16)),
            Self::UInt16(value) => (5, u64::from(*value)),
            Self::Int32(value) => (6, u64::from(*value as u32)),
            Self::UInt32(value) => (7, u64::from(*value)),
            Self::Int64(value) => (8, *value as u64),
            Self::UInt64(value) => (9, *value),
            Self::Float(value) => (10, u64::from(value.to_bits())),
            Self::Double(value) => (11, value.to_bits()),
            Self::DateTime(value) => (13, value.ticks() as u64),
            Self::StatusCode(value) => (19, u64::from(value.0)),
            _ => return None,
        })
    }

    /// The value of a type number and bits; bits that the type does not have are ignored. `None` for types that do not fit
    /// into a word.
    #[inline]
    #[must_use]
    pub fn from_word(kind: u8, bits: u64) -> Option<Self> {
        Some(match kind {
            0 => Self::Empty,
            1 => Self::Boolean(bits != 0),
            2 => Self::SByte(bits as i8),
            3 => Self::Byte(bits as u8),
            4 => Self::Int16(bits as i16),
            5 => Self::UInt16(bits as u16),
            6 => Self::Int32(bits as i32),
            7 => Self::UInt32(bits as u32),
            8 => Self::Int64(bits as i64),
            9 => Self::UInt64(bits),
            10 => Self::Float(f32::from_bits(bits as u32)),
            11 => Self::Double(f64::from_bits(bits)),
            13 => Self::DateTime(UtcTime::from_ticks(bits as i64)),
            19 => Self::StatusCode(StatusCode(bits as u32)),
            _ => return None,
        })
    }

    /// Number of bytes of the binary encoding of a value of this type that fits into a word; 0 for all others.
    #[inline]
    #[must_use]
    pub const fn word_len(kind: u8) -> usize {
        match kind {
            1..=3 => 1,
            4 | 5 => 2,
            6 | 7 | 10 | 19 => 4,
            8 | 9 | 11 | 13 => 8,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encode;

    #[test]
    fn the_word_is_the_binary_encoding() {
        let values: [Variant; 14] = [
            Variant::Empty,
            true.into(),
            (-5i8).into(),
            200u8.into(),
            (-300i16).into(),
            60_000u16.into(),
            (-70_000i32).into(),
            4_000_000_000u32.into(),
            i64::MIN.into(),
            u64::MAX.into(),
            1.5f32.into(),
            (-2.5f64).into(),
            Variant::DateTime(UtcTime::from_ticks(-7)),
            Variant::StatusCode(StatusCode::BAD_TIMEOUT),
        ];
        for value in values {
            let (kind, bits) = value.to_word().unwrap();
            let mut encoded = vec![kind];
            encoded.extend_from_slice(&bits.to_le_bytes()[..Variant::word_len(kind)]);
            assert_eq!(value.encode_to_vec(), encoded, "{value:?}");
            assert_eq!(Variant::from_word(kind, bits), Some(value));
        }
        assert_eq!((Variant::from_word(12, 0), Variant::word_len(12)), (None, 0));
    }
}
