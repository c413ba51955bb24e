//! QualifiedName and LocalizedText (Part 6 §5.2.2.13, §5.2.2.14).

use crate::codec::{Decode, DecodeError, Decoder, Encode};
use crate::string::UaString;
use core::fmt;

/// A name with the index of the namespace that defines it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QualifiedName {
    /// Index into the server's NamespaceArray.
    pub namespace_index: u16,
    /// The name; the specification allows at most 512 characters.
    pub name: UaString,
}

impl QualifiedName {
    /// A name in a namespace.
    pub fn new(namespace_index: u16, name: impl Into<UaString>) -> Self {
        Self { namespace_index, name: name.into() }
    }

    /// Whether this is the null QualifiedName.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.namespace_index == 0 && self.name.is_empty()
    }

    /// Parses the printed form `2:Boiler`; without a colon the namespace is 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.split_once(':').and_then(|(index, name)| Some((index.parse().ok()?, name))) {
            Some((index, name)) => Self::new(index, name),
            None => Self::new(0, text),
        }
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace_index != 0 {
            write!(f, "{}:", self.namespace_index)?;
        }
        write!(f, "{}", self.name)
    }
}

impl Encode for QualifiedName {
    fn encode(&self, out: &mut Vec<u8>) {
        self.namespace_index.encode(out);
        self.name.encode(out);
    }
}

impl<'a> Decode<'a> for QualifiedName {
    const MIN_LEN: usize = 6;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Self { namespace_index: u16::decode(decoder)?, name: UaString::decode(decoder)? })
    }
}

/// Human-readable text with its locale.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LocalizedText {
    /// RFC 3066 locale such as `en-US`, or null.
    pub locale: UaString,
    /// The text, or null.
    pub text: UaString,
}

impl LocalizedText {
    /// Text with a locale.
    pub fn new(locale: impl Into<UaString>, text: impl Into<UaString>) -> Self {
        Self { locale: locale.into(), text: text.into() }
    }

    /// Text without a locale.
    pub fn from_text(text: impl Into<UaString>) -> Self {
        Self { locale: UaString::NULL, text: text.into() }
    }
}

impl From<&str> for LocalizedText {
    fn from(text: &str) -> Self {
        Self::from_text(text)
    }
}

impl fmt::Display for LocalizedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Encode for LocalizedText {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(!self.locale.is_null()) | u8::from(!self.text.is_null()) << 1);
        if !self.locale.is_null() {
            self.locale.encode(out);
        }
        if !self.text.is_null() {
            self.text.encode(out);
        }
    }
}

impl<'a> Decode<'a> for LocalizedText {
    const MIN_LEN: usize = 1;
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let mask = decoder.byte()?;
        let locale = if mask & 1 != 0 { UaString::decode(decoder)? } else { UaString::NULL };
        let text = if mask & 2 != 0 { UaString::decode(decoder)? } else { UaString::NULL };
        Ok(Self { locale, text })
    }
}
