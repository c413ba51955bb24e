//! What certificates, revocation lists and requests have in common: something signed, how, and the signature
//! (RFC 5280 §4.1.1).

use super::key::{SignatureAlgorithm, signature_algorithm};
use super::reader::{Item, Malformed};
use core::ops::Range;
use der::Tag;

/// The outermost element, taken apart.
pub(super) struct Frame<'a> {
    /// What the signature covers.
    pub(super) body: Item<'a>,
    algorithm: Item<'a>,
    signature: Range<usize>,
}

impl<'a> Frame<'a> {
    /// Takes at most `len_max` bytes apart; nothing may follow the element.
    pub(super) fn read(der: &'a [u8], len_max: usize, what: &'static str) -> Result<Self, Malformed> {
        if der.len() > len_max {
            return Err(Malformed { what, at: 0 });
        }
        let mut parts = Item::only(der, what)?.tagged(Tag::Sequence, what)?.items(what)?;
        let body = parts.tagged(Tag::Sequence, what)?;
        let algorithm = parts.tagged(Tag::Sequence, "signature algorithm")?;
        let signature = parts.tagged(Tag::BitString, "signature")?;
        parts.finish(what)?;
        let bytes = signature.whole_bits("signature")?;
        let end = signature.at + signature.raw.len();
        Ok(Self { body, algorithm, signature: end - bytes.len()..end })
    }

    /// The body says how it is signed, too. RFC 5280 §4.1.1.2: both have to say the same, or the signed bytes could be
    /// passed off as signed otherwise.
    pub(super) fn agrees_with(&self, inner: &Item<'_>) -> Result<(), Malformed> {
        if inner.raw == self.algorithm.raw {
            Ok(())
        } else {
            Err(Malformed { what: "signature algorithm", at: self.algorithm.at })
        }
    }

    /// What is kept of the frame.
    pub(super) fn sealed(&self, der: &[u8]) -> Result<Signed, Malformed> {
        Ok(Signed {
            der: der.into(),
            body: self.body.range(),
            algorithm: signature_algorithm(&self.algorithm)?,
            signature: self.signature.clone(),
        })
    }
}

/// Signed bytes as they came.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) der: Box<[u8]>,
    body: Range<usize>,
    pub(super) algorithm: SignatureAlgorithm,
    signature: Range<usize>,
}

impl Signed {
    /// A part of the bytes. All ranges were made from these bytes; an empty slice is never seen.
    pub(super) fn part(&self, range: &Range<usize>) -> &[u8] {
        self.der.get(range.clone()).unwrap_or_default()
    }

    /// What the signature covers.
    pub(super) fn body(&self) -> &[u8] {
        self.part(&self.body)
    }

    pub(super) fn signature(&self) -> &[u8] {
        self.part(&self.signature)
    }
}
