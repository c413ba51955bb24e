//! A certificate signing request (PKCS#10, RFC 2986): what an authority is asked to certify.

use super::extensions::Extensions;
use super::key::{KeyKind, SignatureAlgorithm, public_key, signature_algorithm};
use super::reader::{Item, Malformed, context};
use super::{CERTIFICATE_LEN_MAX, name};
use core::ops::Range;
use der::Tag;
use der::asn1::ObjectIdentifier;

const EXTENSION_REQUEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.14");

/// A certificate signing request.
#[derive(Debug, Clone)]
pub struct CertificateRequest {
    der: Box<[u8]>,
    signed: Range<usize>,
    subject: Range<usize>,
    public_key_info: Range<usize>,
    public_key: Range<usize>,
    key: KeyKind,
    algorithm: SignatureAlgorithm,
    signature: Range<usize>,
    extensions: Extensions,
}

impl CertificateRequest {
    /// Reads one request; nothing may follow it. Its signature is not checked here.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not DER or not a request.
    pub fn from_der(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "certificate request";
        if der.len() > CERTIFICATE_LEN_MAX {
            return Err(Malformed { what: WHAT, at: 0 });
        }
        let mut parts = Item::only(der, WHAT)?.expect(Tag::Sequence, WHAT)?.items(WHAT)?;
        let signed = parts.expect(Tag::Sequence, WHAT)?;
        let algorithm = parts.expect(Tag::Sequence, "signature algorithm")?;
        let signature = parts.expect(Tag::BitString, "signature")?;
        parts.finish(WHAT)?;
        let signature_bytes = signature.whole_bits("signature")?;
        let end = signature.at + signature.raw.len();

        let mut fields = signed.items(WHAT)?;
        let version = fields.expect(Tag::Integer, "version")?;
        if version.small("version")? != 0 {
            return Err(Malformed { what: "version", at: version.at });
        }
        let subject = fields.expect(Tag::Sequence, "subject")?;
        name::check(subject.value, subject.value_range().start)?;
        let info = fields.expect(Tag::Sequence, "public key")?;
        let (key, public_key) = public_key(&info)?;
        let mut extensions = None;
        if let Some(attributes) = fields.optional(context(0, true), "attributes")? {
            let mut items = attributes.items("attributes")?;
            while !items.is_finished() {
                let attribute = items.expect(Tag::Sequence, "attributes")?;
                let mut pair = attribute.items("attributes")?;
                let id = pair.expect(Tag::ObjectIdentifier, "attributes")?.oid("attributes")?;
                let values = pair.expect(Tag::Set, "attributes")?;
                pair.finish("attributes")?;
                if id == EXTENSION_REQUEST {
                    let mut values = values.items("attributes")?;
                    let sequence = values.next("attributes")?;
                    values.finish("attributes")?;
                    if extensions.replace(Extensions::read(&sequence)?).is_some() {
                        return Err(Malformed { what: "attributes", at: attribute.at });
                    }
                }
            }
        }
        fields.finish(WHAT)?;
        Ok(Self {
            der: der.into(),
            signed: signed.range(),
            subject: subject.range(),
            public_key_info: info.range(),
            public_key,
            key,
            algorithm: signature_algorithm(&algorithm)?,
            signature: end - signature_bytes.len()..end,
            extensions: extensions.unwrap_or_default(),
        })
    }

    fn part(&self, range: &Range<usize>) -> &[u8] {
        self.der.get(range.clone()).unwrap_or_default()
    }

    /// The request's DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// What the signature covers.
    #[must_use]
    pub fn signed_bytes(&self) -> &[u8] {
        self.part(&self.signed)
    }

    /// The signature, by the key that the request holds.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        self.part(&self.signature)
    }

    /// How it is signed.
    #[must_use]
    pub fn signature_algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// The subject for people, escaped.
    #[must_use]
    pub fn subject_text(&self) -> String {
        name::text(self.part(&self.subject))
    }

    /// What the public key is.
    #[must_use]
    pub fn key(&self) -> KeyKind {
        self.key
    }

    /// The SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn public_key_info(&self) -> &[u8] {
        self.part(&self.public_key_info)
    }

    /// The public key itself, as in [`super::Certificate::public_key`].
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.part(&self.public_key)
    }

    /// The extensions that are asked for.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }
}
