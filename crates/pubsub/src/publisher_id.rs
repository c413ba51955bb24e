//! PublisherId (Part 14 §6.2.7.1): the identity of a sender.

use core::fmt;
use taktwerk_types::{DecodeError, Decoder, Encode, UaString, Variant};

/// The identity of a publisher. Two ids are equal only if their types are (Part 14 §7.2.4.4.2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the types are the specification's
pub enum PublisherId {
    Byte(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    String(Box<str>),
}

/// A PublisherId that borrows its text from a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the types are the specification's
pub enum PublisherIdRef<'a> {
    Byte(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    String(&'a str),
}

impl PublisherId {
    /// A borrowed copy.
    #[must_use]
    pub fn as_ref(&self) -> PublisherIdRef<'_> {
        match self {
            Self::Byte(id) => PublisherIdRef::Byte(*id),
            Self::UInt16(id) => PublisherIdRef::UInt16(*id),
            Self::UInt32(id) => PublisherIdRef::UInt32(*id),
            Self::UInt64(id) => PublisherIdRef::UInt64(*id),
            Self::String(id) => PublisherIdRef::String(id),
        }
    }

    /// From the value of a PubSubConnection's or DataSetReader's PublisherId; `None` for other types and for null.
    #[must_use]
    pub fn from_variant(value: &Variant) -> Option<Self> {
        Some(match value {
            Variant::Byte(id) => Self::Byte(*id),
            Variant::UInt16(id) => Self::UInt16(*id),
            Variant::UInt32(id) => Self::UInt32(*id),
            Variant::UInt64(id) => Self::UInt64(*id),
            Variant::String(id) => Self::String(id.as_deref()?.into()),
            _ => return None,
        })
    }

    /// Converts to the value of a PubSubConnection's PublisherId.
    #[must_use]
    pub fn to_variant(&self) -> Variant {
        match self {
            Self::Byte(id) => (*id).into(),
            Self::UInt16(id) => (*id).into(),
            Self::UInt32(id) => (*id).into(),
            Self::UInt64(id) => (*id).into(),
            Self::String(id) => UaString::from(&**id).into(),
        }
    }
}

impl From<u16> for PublisherId {
    fn from(id: u16) -> Self {
        Self::UInt16(id)
    }
}

impl From<&str> for PublisherId {
    fn from(id: &str) -> Self {
        Self::String(id.into())
    }
}

impl PublisherIdRef<'_> {
    /// The number of the type in ExtendedFlags1.
    #[must_use]
    pub const fn type_bits(&self) -> u8 {
        match self {
            Self::Byte(_) => 0,
            Self::UInt16(_) => 1,
            Self::UInt32(_) => 2,
            Self::UInt64(_) => 3,
            Self::String(_) => 4,
        }
    }

    /// An owned copy.
    #[must_use]
    pub fn to_owned(&self) -> PublisherId {
        match *self {
            Self::Byte(id) => PublisherId::Byte(id),
            Self::UInt16(id) => PublisherId::UInt16(id),
            Self::UInt32(id) => PublisherId::UInt32(id),
            Self::UInt64(id) => PublisherId::UInt64(id),
            Self::String(id) => PublisherId::String(id.into()),
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Byte(id) => id.encode(out),
            Self::UInt16(id) => id.encode(out),
            Self::UInt32(id) => id.encode(out),
            Self::UInt64(id) => id.encode(out),
            Self::String(id) => taktwerk_types::codec::encode_bytes(Some(id.as_bytes()), out),
        }
    }
}

impl<'a> PublisherIdRef<'a> {
    pub(crate) fn decode(type_bits: u8, decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(match type_bits {
            0 => Self::Byte(decoder.byte()?),
            1 => Self::UInt16(u16::from_le_bytes(decoder.take_array()?)),
            2 => Self::UInt32(u32::from_le_bytes(decoder.take_array()?)),
            3 => Self::UInt64(u64::from_le_bytes(decoder.take_array()?)),
            // A null String is not a valid id.
            4 => Self::String(decoder.str()?.ok_or(DecodeError::Invalid("PublisherId: null String"))?),
            _ => return Err(DecodeError::Invalid("PublisherId type: reserved")),
        })
    }
}

impl PartialEq<PublisherIdRef<'_>> for PublisherId {
    fn eq(&self, other: &PublisherIdRef<'_>) -> bool {
        self.as_ref() == *other
    }
}

impl fmt::Display for PublisherIdRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(id) => id.fmt(f),
            Self::UInt16(id) => id.fmt(f),
            Self::UInt32(id) => id.fmt(f),
            Self::UInt64(id) => id.fmt(f),
            Self::String(id) => f.pad(id),
        }
    }
}

/// Without its type, as in JSON messages and topics.
impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_part_of_the_identity() {
        assert_ne!(PublisherId::UInt16(7), PublisherId::UInt32(7));
        for id in [
            PublisherId::Byte(1),
            PublisherId::UInt16(2),
            PublisherId::UInt32(3),
            PublisherId::UInt64(u64::MAX),
            PublisherId::String("plant/7".into()),
        ] {
            assert_eq!(PublisherId::from_variant(&id.to_variant()), Some(id.clone()));
            assert_eq!(id, id.as_ref());
            let mut bytes = Vec::new();
            id.as_ref().encode(&mut bytes);
            let mut decoder = Decoder::new(&bytes, Default::default());
            assert_eq!(PublisherIdRef::decode(id.as_ref().type_bits(), &mut decoder), Ok(id.as_ref()));
            assert_eq!(decoder.remaining(), 0);
        }
        assert_eq!(PublisherId::from_variant(&Variant::Int32(1)), None);
    }
}
