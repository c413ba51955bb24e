//! Parsing DER. The `der` crate parses tags and lengths strictly; this module records the position of each element.
//!
//! Names, serial numbers and signed content are compared and hashed byte for byte, so every element is kept as a range
//! of the original bytes and nothing is re-encoded.

use core::ops::Range;
use der::asn1::{BitStringRef, GeneralizedTime, ObjectIdentifier, UtcTime as ShortTime};
use der::{Decode, Header, Reader, SliceReader, Tag};
use taktwerk_types::UtcTime;

/// Malformed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} is malformed (at byte {at})")]
pub struct Malformed {
    /// The structure that was being parsed.
    pub what: &'static str,
    /// Offset of its element.
    pub at: usize,
}

/// One element: its tag and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) tag: Tag,
    /// The element with tag and length.
    pub(super) raw: &'a [u8],
    /// Its content.
    pub(super) value: &'a [u8],
    /// Offset of `raw` in the document.
    pub(super) at: usize,
}

impl<'a> Item<'a> {
    /// The only element in `bytes`.
    pub(super) fn only(bytes: &'a [u8], what: &'static str) -> Result<Self, Malformed> {
        let mut items = Items { reader: reader(bytes, what, 0)?, base: 0 };
        let item = items.next(what)?;
        items.finish(what)?;
        Ok(item)
    }

    /// The range of the whole element in the document.
    pub(super) fn range(&self) -> Range<usize> {
        self.at..self.at + self.raw.len()
    }

    /// The range of its content in the document.
    pub(super) fn value_range(&self) -> Range<usize> {
        let end = self.at + self.raw.len();
        end - self.value.len()..end
    }

    fn fault(&self, what: &'static str) -> Malformed {
        Malformed { what, at: self.at }
    }

    /// The elements in its content.
    pub(super) fn items(&self, what: &'static str) -> Result<Items<'a>, Malformed> {
        let base = self.at + self.raw.len() - self.value.len();
        if !self.tag.is_constructed() {
            return Err(self.fault(what));
        }
        Ok(Items { reader: reader(self.value, what, self.at)?, base })
    }

    pub(super) fn tagged(self, tag: Tag, what: &'static str) -> Result<Self, Malformed> {
        if self.tag == tag { Ok(self) } else { Err(self.fault(what)) }
    }

    fn decode<T: Decode<'a>>(&self, what: &'static str) -> Result<T, Malformed> {
        T::from_der(self.raw).map_err(|_| self.fault(what))
    }

    pub(super) fn oid(&self, what: &'static str) -> Result<ObjectIdentifier, Malformed> {
        self.decode(what)
    }

    pub(super) fn boolean(&self, what: &'static str) -> Result<bool, Malformed> {
        self.decode(what)
    }

    pub(super) fn small(&self, what: &'static str) -> Result<u32, Malformed> {
        self.decode(what)
    }

    /// The big-endian bytes of a non-negative integer, without leading zeros.
    pub(super) fn unsigned(&self, what: &'static str) -> Result<&'a [u8], Malformed> {
        self.decode::<der::asn1::UintRef<'a>>(what).map(|number| number.as_bytes())
    }

    pub(super) fn bits(&self, what: &'static str) -> Result<BitStringRef<'a>, Malformed> {
        self.decode(what)
    }

    /// The bytes of a bit string without unused bits.
    pub(super) fn whole_bits(&self, what: &'static str) -> Result<&'a [u8], Malformed> {
        self.bits(what)?.as_bytes().ok_or_else(|| self.fault(what))
    }

    /// A UTCTime or GeneralizedTime as RFC 5280 §4.1.2.5 allows them.
    pub(super) fn time(&self, what: &'static str) -> Result<UtcTime, Malformed> {
        let since = match self.tag {
            Tag::UtcTime => self.decode::<ShortTime>(what)?.to_unix_duration(),
            Tag::GeneralizedTime => self.decode::<GeneralizedTime>(what)?.to_unix_duration(),
            _ => return Err(self.fault(what)),
        };
        Ok(UtcTime::from_unix(since))
    }
}

fn reader<'a>(bytes: &'a [u8], what: &'static str, at: usize) -> Result<SliceReader<'a>, Malformed> {
    SliceReader::new(bytes).map_err(|_| Malformed { what, at })
}

/// The elements of a constructed element, in order.
#[derive(Debug, Clone)]
pub(super) struct Items<'a> {
    reader: SliceReader<'a>,
    base: usize,
}

impl<'a> Items<'a> {
    /// The consecutive elements in `bytes`, which start at offset `base` of the document.
    pub(super) fn new(bytes: &'a [u8], base: usize, what: &'static str) -> Result<Self, Malformed> {
        Ok(Self { reader: reader(bytes, what, base)?, base })
    }

    fn at(&self) -> usize {
        self.base + usize::try_from(self.reader.position()).unwrap_or(usize::MAX - self.base)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.reader.is_finished()
    }

    /// The next element; an error if there is none.
    pub(super) fn next(&mut self, what: &'static str) -> Result<Item<'a>, Malformed> {
        let at = self.at();
        let fault = Malformed { what, at };
        let header = Header::peek(&self.reader).map_err(|_| fault)?;
        let raw = self.reader.tlv_bytes().map_err(|_| fault)?;
        let len = usize::try_from(header.length()).map_err(|_| fault)?;
        let value = raw.len().checked_sub(len).and_then(|start| raw.get(start..)).ok_or(fault)?;
        Ok(Item { tag: header.tag(), raw, value, at })
    }

    /// The next element, which must have this tag.
    pub(super) fn tagged(&mut self, tag: Tag, what: &'static str) -> Result<Item<'a>, Malformed> {
        self.next(what)?.tagged(tag, what)
    }

    /// The next element if it has this tag.
    pub(super) fn optional(&mut self, tag: Tag, what: &'static str) -> Result<Option<Item<'a>>, Malformed> {
        let next = Header::peek(&self.reader).ok().map(|header| header.tag());
        if next == Some(tag) { self.next(what).map(Some) } else { Ok(None) }
    }

    /// Checks that no element follows.
    pub(super) fn finish(self, what: &'static str) -> Result<(), Malformed> {
        if self.is_finished() { Ok(()) } else { Err(Malformed { what, at: self.at() }) }
    }
}

/// A tag of the class "context-specific".
pub(super) fn context(number: u32, constructed: bool) -> Tag {
    Tag::ContextSpecific { constructed, number: der::TagNumber(number) }
}
