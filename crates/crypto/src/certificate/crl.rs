//! A certificate revocation list (RFC 5280 §5), parsed strictly and once.

use super::extensions::{AUTHORITY_KEY_IDENTIFIER, CRL_NUMBER, REASON_CODE, authority_key_identifier, each};
use super::frame::{Frame, Signed};
use super::key::SignatureAlgorithm;
use super::reader::{Item, Malformed, context};
use super::x509::Certificate;
use super::{REVOCATION_LIST_LEN_MAX, name};
use core::fmt;
use core::ops::Range;
use der::Tag;
use std::sync::{Arc, OnceLock};
use taktwerk_types::UtcTime;

/// A revocation list: the original bytes and their content. Clones share both.
#[derive(Clone)]
pub struct RevocationList(Arc<Inner>);

struct Inner {
    signed: Signed,
    issuer: Range<usize>,
    this_update: UtcTime,
    next_update: Option<UtcTime>,
    authority_key_identifier: Option<Range<usize>>,
    /// Sorted by serial number.
    revoked: Vec<Entry>,
    unsupported: Option<String>,
    verified_by: OnceLock<Box<[u8]>>,
}

struct Entry {
    serial: Range<usize>,
    at: UtcTime,
}

impl RevocationList {
    /// Parses one revocation list; no bytes may follow it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not DER or not a revocation list as RFC 5280 describes it.
    pub fn from_der(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "revocation list";
        let frame = Frame::read(der, REVOCATION_LIST_LEN_MAX, WHAT)?;
        let mut fields = frame.body.items(WHAT)?;
        if let Some(version) = fields.optional(Tag::Integer, "version")?
            && version.small("version")? != 1
        {
            return Err(Malformed { what: "version", at: version.at });
        }
        let inner_algorithm = fields.tagged(Tag::Sequence, "signature algorithm")?;
        frame.agrees_with(&inner_algorithm)?;
        let issuer = fields.tagged(Tag::Sequence, "issuer")?;
        name::check(issuer.value, issuer.value_range().start)?;
        let this_update = fields.next("thisUpdate")?.time("thisUpdate")?;
        let mut next_update = None;
        for tag in [Tag::UtcTime, Tag::GeneralizedTime] {
            if let Some(item) = fields.optional(tag, "nextUpdate")? {
                next_update = Some(item.time("nextUpdate")?);
                break;
            }
        }
        let mut unsupported = None;
        let mut revoked = Vec::new();
        if let Some(list) = fields.optional(Tag::Sequence, "revokedCertificates")? {
            let mut items = list.items("revokedCertificates")?;
            while !items.is_finished() {
                revoked.push(entry(&items.next("revokedCertificates")?, &mut unsupported)?);
            }
        }
        revoked.sort_by(|a, b| der.get(a.serial.clone()).cmp(&der.get(b.serial.clone())));
        let mut key_identifier = None;
        if let Some(wrapper) = fields.optional(context(0, true), "extensions")? {
            let mut inner = wrapper.items("extensions")?;
            let sequence = inner.next("extensions")?;
            inner.finish("extensions")?;
            each(&sequence, |extension| {
                match extension.id {
                    AUTHORITY_KEY_IDENTIFIER => {
                        key_identifier = authority_key_identifier(&extension)?.identifier;
                    }
                    CRL_NUMBER => {}
                    // Delta lists and partial lists (RFC 5280 §5.2.4, §5.2.5) have a critical extension.
                    id if extension.critical => unsupported = Some(id.to_string()),
                    _ => {}
                }
                Ok(())
            })?;
        }
        fields.finish(WHAT)?;
        Ok(Self(Arc::new(Inner {
            signed: frame.sealed(der)?,
            issuer: issuer.range(),
            this_update,
            next_update,
            authority_key_identifier: key_identifier,
            revoked,
            unsupported,
            verified_by: OnceLock::new(),
        })))
    }

    /// The list's DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.0.signed.der
    }

    /// The signed bytes (tbsCertList).
    #[must_use]
    pub fn signed_bytes(&self) -> &[u8] {
        self.0.signed.body()
    }

    /// The signature.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        self.0.signed.signature()
    }

    /// The signature algorithm.
    #[must_use]
    pub fn signature_algorithm(&self) -> SignatureAlgorithm {
        self.0.signed.algorithm
    }

    /// The issuer's distinguished name in DER.
    #[must_use]
    pub fn issuer(&self) -> &[u8] {
        self.0.signed.part(&self.0.issuer)
    }

    /// The issuer as text, escaped.
    #[must_use]
    pub fn issuer_text(&self) -> String {
        name::text(self.issuer())
    }

    /// When it was issued (thisUpdate).
    #[must_use]
    pub fn this_update(&self) -> UtcTime {
        self.0.this_update
    }

    /// When the next list is due (nextUpdate).
    #[must_use]
    pub fn next_update(&self) -> Option<UtcTime> {
        self.0.next_update
    }

    /// Number of revoked certificates.
    #[must_use]
    pub fn revoked_len(&self) -> usize {
        self.0.revoked.len()
    }

    /// When the certificate with this serial number (as in DER) was revoked; `None` if it was not.
    #[must_use]
    pub fn revoked(&self, serial: &[u8]) -> Option<UtcTime> {
        let found =
            self.0.revoked.binary_search_by(|entry| self.0.signed.part(&entry.serial).cmp(serial)).ok()?;
        self.0.revoked.get(found).map(|entry| entry.at)
    }

    /// A critical extension that is not supported, which makes the list unusable.
    #[must_use]
    pub fn unsupported(&self) -> Option<&str> {
        self.0.unsupported.as_deref()
    }

    /// Whether `issuer` could have issued this list.
    pub(super) fn names_issuer(&self, issuer: &Certificate) -> bool {
        let key = self.0.authority_key_identifier.as_ref().map(|range| self.0.signed.part(range));
        self.issuer() == issuer.subject()
            && key.is_none_or(|key| issuer.subject_key_identifier().is_none_or(|theirs| key == theirs))
    }

    pub(super) fn is_verified_by(&self, issuer: &Certificate) -> bool {
        self.0.verified_by.get().is_some_and(|key| **key == *issuer.public_key_info())
    }

    pub(super) fn set_verified_by(&self, issuer: &Certificate) {
        let _ = self.0.verified_by.set(issuer.public_key_info().into());
    }
}

fn entry(item: &Item<'_>, unsupported: &mut Option<String>) -> Result<Entry, Malformed> {
    const WHAT: &str = "revokedCertificates";
    let mut parts = item.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let serial = parts.tagged(Tag::Integer, WHAT)?;
    let at = parts.next(WHAT)?.time(WHAT)?;
    if !parts.is_finished() {
        let extensions = parts.next(WHAT)?;
        each(&extensions, |extension| {
            // certificateIssuer (RFC 5280 §5.3.3) would apply the entry to another issuer's certificate.
            if extension.critical && extension.id != REASON_CODE {
                *unsupported = Some(extension.id.to_string());
            }
            Ok(())
        })?;
    }
    parts.finish(WHAT)?;
    Ok(Entry { serial: serial.value_range(), at })
}

impl PartialEq for RevocationList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.signed.der == other.0.signed.der
    }
}

impl Eq for RevocationList {}

impl fmt::Debug for RevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevocationList")
            .field("issuer", &self.issuer_text())
            .field("revoked", &self.revoked_len())
            .finish_non_exhaustive()
    }
}
