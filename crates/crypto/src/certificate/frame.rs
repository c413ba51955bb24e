//! The outer structure of certificates, revocation lists and requests: signed content, algorithm, and signature (RFC
//! 5280 §4.1.1).

use super::key::{SignatureAlgorithm, signature_algorithm};
use super::reader::{Item, Malformed};
use core::ops::Range;
use der::Tag;

/// The parsed outermost element.
pub(super) struct Frame<'a> {
    /// The signed content.
    pub(super) body: Item<'a>,
    algorithm: Item<'a>,
    signature: Range<usize>,
}

impl<'a> Frame<'a> {
    /// Parses at most `len_max` bytes; nothing may follow the element.
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

    /// Checks that the body names the same signature algorithm. RFC 5280 §4.1.1.2 requires it; otherwise the outer
    /// algorithm, which is not signed, could be exchanged.
    pub(super) fn agrees_with(&self, inner: &Item<'_>) -> Result<(), Malformed> {
        if inner.raw == self.algorithm.raw {
            Ok(())
        } else {
            Err(Malformed { what: "signature algorithm", at: self.algorithm.at })
        }
    }

    /// The owned bytes and positions.
    pub(super) fn sealed(&self, der: &[u8]) -> Result<Signed, Malformed> {
        Ok(Signed {
            der: der.into(),
            body: self.body.range(),
            algorithm: signature_algorithm(&self.algorithm)?,
            signature: self.signature.clone(),
        })
    }
}

/// The original signed bytes.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) der: Box<[u8]>,
    body: Range<usize>,
    pub(super) algorithm: SignatureAlgorithm,
    signature: Range<usize>,
}

impl Signed {
    /// A part of the bytes. All ranges come from these bytes, so the fallback to an empty slice does not happen.
    pub(super) fn part(&self, range: &Range<usize>) -> &[u8] {
        self.der.get(range.clone()).unwrap_or_default()
    }

    /// The signed content.
    pub(super) fn body(&self) -> &[u8] {
        self.part(&self.body)
    }

    pub(super) fn signature(&self) -> &[u8] {
        self.part(&self.signature)
    }
}
