//! An X.509 v3 certificate (RFC 5280 §4.1), parsed strictly and once.

use super::extensions::Extensions;
use super::frame::{Frame, Signed};
use super::key::{KeyKind, SignatureAlgorithm, public_key};
use super::reader::{Items, Malformed, context};
use super::{CERTIFICATE_LEN_MAX, name};
use core::fmt;
use core::ops::Range;
use der::Tag;
use std::sync::{Arc, OnceLock};
use taktwerk_types::UtcTime;

/// RFC 5280 §4.1.2.2 allows 20 octets; some issuers use more.
const SERIAL_LEN_MAX: usize = 64;

/// A certificate: the original bytes and their content. Clones share both.
///
/// Equality compares the bytes.
#[derive(Clone)]
pub struct Certificate(Arc<Inner>);

struct Inner {
    signed: Signed,
    serial: Range<usize>,
    issuer: Range<usize>,
    subject: Range<usize>,
    not_before: UtcTime,
    not_after: UtcTime,
    public_key_info: Range<usize>,
    public_key: Range<usize>,
    key: KeyKind,
    extensions: Extensions,
    /// The public key with which the signature was verified, if it was.
    verified_by: OnceLock<Box<[u8]>>,
}

impl Certificate {
    /// Parses one certificate; nothing may follow it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not DER, not version 3, or not a certificate as RFC 5280 describes it.
    pub fn from_der(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "certificate";
        let frame = Frame::read(der, CERTIFICATE_LEN_MAX, WHAT)?;
        let mut fields = frame.body.items(WHAT)?;
        version(&mut fields)?;
        let serial = fields.tagged(Tag::Integer, "serial number")?;
        if serial.value.is_empty() || serial.value.len() > SERIAL_LEN_MAX {
            return Err(Malformed { what: "serial number", at: serial.at });
        }
        let inner_algorithm = fields.tagged(Tag::Sequence, "signature algorithm")?;
        frame.agrees_with(&inner_algorithm)?;
        let issuer = fields.tagged(Tag::Sequence, "issuer")?;
        name::check(issuer.value, issuer.value_range().start)?;
        let mut validity = fields.tagged(Tag::Sequence, "validity")?.items("validity")?;
        let not_before = validity.next("validity")?.time("validity")?;
        let not_after = validity.next("validity")?.time("validity")?;
        validity.finish("validity")?;
        let subject = fields.tagged(Tag::Sequence, "subject")?;
        name::check(subject.value, subject.value_range().start)?;
        let info = fields.tagged(Tag::Sequence, "public key")?;
        let (key, public_key) = public_key(&info)?;
        for unique_id in [1, 2] {
            fields.optional(context(unique_id, false), "unique identifier")?;
        }
        let extensions = match fields.optional(context(3, true), "extensions")? {
            Some(wrapper) => {
                let mut inner = wrapper.items("extensions")?;
                let sequence = inner.next("extensions")?;
                inner.finish("extensions")?;
                Extensions::read(&sequence)?
            }
            None => Extensions::default(),
        };
        fields.finish(WHAT)?;
        Ok(Self(Arc::new(Inner {
            signed: frame.sealed(der)?,
            serial: serial.value_range(),
            issuer: issuer.range(),
            subject: subject.range(),
            not_before,
            not_after,
            public_key_info: info.range(),
            public_key,
            key,
            extensions,
            verified_by: OnceLock::new(),
        })))
    }

    /// The certificate's DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.0.signed.der
    }

    /// The signed content (tbsCertificate).
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

    /// The serial number's bytes as in DER.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        self.0.signed.part(&self.0.serial)
    }

    /// The issuer's distinguished name in DER. Compare these bytes, not the text.
    #[must_use]
    pub fn issuer(&self) -> &[u8] {
        self.0.signed.part(&self.0.issuer)
    }

    /// The subject's distinguished name in DER. Compare these bytes, not the text.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        self.0.signed.part(&self.0.subject)
    }

    /// The issuer as text, escaped.
    #[must_use]
    pub fn issuer_text(&self) -> String {
        name::text(self.issuer())
    }

    /// The subject as text, escaped.
    #[must_use]
    pub fn subject_text(&self) -> String {
        name::text(self.subject())
    }

    /// The subject in the format of role identity criteria: `CN="…"/O="…"` (Part 18 §4.4.3). `None` if a value contains
    /// a quotation mark, because the text could equal that of another name.
    #[must_use]
    pub fn subject_criteria(&self) -> Option<String> {
        name::criteria(self.subject())
    }

    /// The issuer in the same format.
    #[must_use]
    pub fn issuer_criteria(&self) -> Option<String> {
        name::criteria(self.issuer())
    }

    /// The subject's common name as text, escaped. Never use it as a file name.
    #[must_use]
    pub fn common_name(&self) -> Option<String> {
        name::common_name(self.subject())
    }

    /// The subject's organization as text, escaped.
    #[must_use]
    pub fn organization(&self) -> Option<String> {
        name::organization(self.subject())
    }

    /// Start of the validity period.
    #[must_use]
    pub fn not_before(&self) -> UtcTime {
        self.0.not_before
    }

    /// End of the validity period, inclusive.
    #[must_use]
    pub fn not_after(&self) -> UtcTime {
        self.0.not_after
    }

    /// The kind of the public key.
    #[must_use]
    pub fn key(&self) -> KeyKind {
        self.0.key
    }

    /// The SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn public_key_info(&self) -> &[u8] {
        self.0.signed.part(&self.0.public_key_info)
    }

    /// The public key itself: an RSAPublicKey in DER, an uncompressed point, or the bytes of an Edwards-curve key.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.0.signed.part(&self.0.public_key)
    }

    /// The extensions.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    /// The ApplicationUri: the URI in subjectAltName, if there is exactly one (Part 6 §6.2.2).
    #[must_use]
    pub fn application_uri(&self) -> Option<&str> {
        match self.0.extensions.uris.as_slice() {
            [uri] => Some(uri),
            _ => None,
        }
    }

    /// The bytes of subjectKeyIdentifier.
    #[must_use]
    pub fn subject_key_identifier(&self) -> Option<&[u8]> {
        self.0.extensions.subject_key_identifier.as_ref().map(|range| self.0.signed.part(range))
    }

    /// The keyIdentifier of authorityKeyIdentifier.
    #[must_use]
    pub fn authority_key_identifier(&self) -> Option<&[u8]> {
        self.0.extensions.authority_key_identifier.as_ref().map(|range| self.0.signed.part(range))
    }

    /// The authorityCertSerialNumber of authorityKeyIdentifier.
    #[must_use]
    pub fn authority_serial(&self) -> Option<&[u8]> {
        self.0.extensions.authority_serial.as_ref().map(|range| self.0.signed.part(range))
    }

    /// Whether subject and issuer have the same name. Only a signature check shows whether it is self-signed.
    #[must_use]
    pub fn is_self_issued(&self) -> bool {
        self.subject() == self.issuer()
    }

    /// Whether basicConstraints and keyUsage allow the subject to issue certificates.
    #[must_use]
    pub fn is_authority(&self) -> bool {
        let extensions = self.extensions();
        extensions.basic_constraints.is_some_and(|constraints| constraints.is_ca)
            && extensions
                .key_usage
                .is_none_or(|usage| usage.allows(super::extensions::KeyUsage::KEY_CERT_SIGN))
    }

    /// Whether `issuer` could have issued this certificate: same name, and no contradicting identifiers.
    pub(super) fn names_issuer(&self, issuer: &Self) -> bool {
        let agrees = |ours: Option<&[u8]>, theirs: Option<&[u8]>| {
            ours.is_none_or(|ours| theirs.is_none_or(|theirs| ours == theirs))
        };
        self.issuer() == issuer.subject()
            && agrees(self.authority_key_identifier(), issuer.subject_key_identifier())
            && agrees(self.authority_serial(), Some(issuer.serial()))
    }

    /// Whether the signature was already verified with this public key.
    pub(super) fn is_verified_by(&self, issuer: &Self) -> bool {
        self.0.verified_by.get().is_some_and(|key| **key == *issuer.public_key_info())
    }

    /// Caches that the signature is valid for this public key: none of them changes.
    pub(super) fn set_verified_by(&self, issuer: &Self) {
        let _ = self.0.verified_by.set(issuer.public_key_info().into());
    }
}

/// The version must be 3, because the validation needs extensions (Part 6 §6.2.2).
fn version(fields: &mut Items<'_>) -> Result<(), Malformed> {
    const WHAT: &str = "version (X.509 v3 is required)";
    let item = fields.tagged(context(0, true), WHAT)?;
    let mut inner = item.items(WHAT)?;
    let number = inner.tagged(Tag::Integer, WHAT)?.small(WHAT)?;
    inner.finish(WHAT)?;
    if number == 2 { Ok(()) } else { Err(Malformed { what: WHAT, at: item.at }) }
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.signed.der == other.0.signed.der
    }
}

impl Eq for Certificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("subject", &self.subject_text())
            .field("issuer", &self.issuer_text())
            .field("len", &self.0.signed.der.len())
            .finish_non_exhaustive()
    }
}
