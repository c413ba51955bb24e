//! String, ByteString and XmlElement (Part 6 §5.2.2.4, §5.2.2.7, §5.2.2.8). Each can be null, which is not empty.

use crate::codec::{Decode, DecodeError, Decoder, Encode, encode_bytes};
use core::fmt;

/// A nullable UTF-8 string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UaString(Option<Box<str>>);

impl UaString {
    /// The null string.
    pub const NULL: Self = Self(None);

    /// The text, or `None` if null.
    #[must_use]
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text; null gives the empty text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("")
    }

    /// Whether this is the null string.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this is null or has no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl From<&str> for UaString {
    fn from(text: &str) -> Self {
        Self(Some(text.into()))
    }
}

impl From<String> for UaString {
    fn from(text: String) -> Self {
        Self(Some(text.into_boxed_str()))
    }
}

impl From<Option<&str>> for UaString {
    fn from(text: Option<&str>) -> Self {
        Self(text.map(Into::into))
    }
}

impl PartialEq<str> for UaString {
    fn eq(&self, other: &str) -> bool {
        self.0.as_deref() == Some(other)
    }
}

impl PartialEq<&str> for UaString {
    fn eq(&self, other: &&str) -> bool {
        self.0.as_deref() == Some(*other)
    }
}

impl fmt::Debug for UaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("null"),
            Some(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl fmt::Display for UaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Encode for UaString {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.0.as_deref().map(str::as_bytes), out);
    }
}

impl<'a> Decode<'a> for UaString {
    const MIN_LEN: usize = 4;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let text = decoder.str()?;
        decoder.allocate(text.map_or(0, str::len))?;
        Ok(Self::from(text))
    }
}

/// A nullable sequence of bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteString(Option<Box<[u8]>>);

impl ByteString {
    /// The null ByteString.
    pub const NULL: Self = Self(None);

    /// The bytes, or `None` if null.
    #[must_use]
    pub fn as_deref(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }

    /// The bytes; null gives no bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }

    /// Whether this is the null ByteString.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }
}

impl From<&[u8]> for ByteString {
    fn from(bytes: &[u8]) -> Self {
        Self(Some(bytes.into()))
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Some(bytes.into_boxed_slice()))
    }
}

impl From<Option<&[u8]>> for ByteString {
    fn from(bytes: Option<&[u8]>) -> Self {
        Self(bytes.map(Into::into))
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("null"),
            Some(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl Encode for ByteString {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.0.as_deref(), out);
    }
}

impl<'a> Decode<'a> for ByteString {
    const MIN_LEN: usize = 4;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let bytes = decoder.bytes()?;
        decoder.allocate(bytes.map_or(0, <[u8]>::len))?;
        Ok(Self::from(bytes))
    }
}

/// A nullable XML fragment, kept as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct XmlElement(UaString);

impl XmlElement {
    /// The fragment, or `None` if null.
    #[must_use]
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<&str> for XmlElement {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for XmlElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Encode for XmlElement {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for XmlElement {
    const MIN_LEN: usize = 4;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        UaString::decode(decoder).map(Self)
    }
}
