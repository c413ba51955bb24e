//! Guid (Part 6 §5.1.3, §5.2.2.6).

use crate::codec::{Decode, DecodeError, Decoder, Encode};
use core::fmt;
use core::str::FromStr;

/// A 16-byte globally unique identifier, stored in the order of its printed form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid([u8; 16]);

impl Guid {
    /// All zero.
    pub const NULL: Self = Self([0; 16]);

    /// From the bytes in the order of the printed form (as RFC 9562 orders them).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes in the order of the printed form.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Converts Data1 to Data3 to little-endian; applying it again reverts that.
    const fn swapped(b: [u8; 16]) -> [u8; 16] {
        [b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]]
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 32 hexadecimal digits in the form `8-4-4-4-12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a Guid: write it as 72962b91-fa75-4ae6-8d28-b404dc7daf63")]
pub struct ParseGuidError;

impl FromStr for Guid {
    type Err = ParseGuidError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim().trim_start_matches('{').trim_end_matches('}').as_bytes();
        if text.len() != 36 {
            return Err(ParseGuidError);
        }
        let mut bytes = [0u8; 16];
        let mut filled = 0;
        let mut high: Option<u8> = None;
        for (index, character) in text.iter().enumerate() {
            if matches!(index, 8 | 13 | 18 | 23) {
                if *character != b'-' {
                    return Err(ParseGuidError);
                }
                continue;
            }
            let digit = (*character as char).to_digit(16).ok_or(ParseGuidError)? as u8;
            match high.take() {
                None => high = Some(digit),
                Some(upper) => {
                    *bytes.get_mut(filled).ok_or(ParseGuidError)? = upper << 4 | digit;
                    filled += 1;
                }
            }
        }
        Ok(Self(bytes))
    }
}

impl Encode for Guid {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&Self::swapped(self.0));
    }
}

impl<'a> Decode<'a> for Guid {
    const MIN_LEN: usize = 16;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self(Self::swapped(decoder.take_array()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_example_of_part_6() {
        let guid: Guid = "72962B91-FA75-4AE6-8D28-B404DC7DAF63".parse().unwrap();
        let bytes = guid.encode_to_vec();
        assert_eq!(
            bytes,
            [0x91, 0x2B, 0x96, 0x72, 0x75, 0xFA, 0xE6, 0x4A, 0x8D, 0x28, 0xB4, 0x04, 0xDC, 0x7D, 0xAF, 0x63]
        );
        assert_eq!(Guid::decode_from(&bytes, Default::default()), Ok(guid));
        assert_eq!(guid.to_string().parse(), Ok(guid));
        assert!("72962B91-FA75-4AE6-8D28-B404DC7DAF6".parse::<Guid>().is_err());
        assert!("72962B91FFA75-4AE6-8D28-B404DC7DAF63".parse::<Guid>().is_err());
    }
}
