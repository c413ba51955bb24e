//! A certificate signing request (PKCS#10, RFC 2986).

use super::extensions::Extensions;
use super::frame::{Frame, Signed};
use super::key::{KeyKind, SignatureAlgorithm, public_key};
use super::reader::{Malformed, context};
use super::{CERTIFICATE_LEN_MAX, name};
use core::ops::Range;
use der::Tag;
use der::asn1::ObjectIdentifier;

const EXTENSION_REQUEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.14");

/// A certificate signing request.
#[derive(Debug, Clone)]
pub struct CertificateRequest {
    signed: Signed,
    subject: Range<usize>,
    public_key_info: Range<usize>,
    public_key: Range<usize>,
    key: KeyKind,
    extensions: Extensions,
}

impl CertificateRequest {
    /// Parses one request; nothing may follow it. Its signature is not verified here.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not DER or not a request.
    pub fn from_der(der: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "certificate request";
        let frame = Frame::read(der, CERTIFICATE_LEN_MAX, WHAT)?;
        let mut fields = frame.body.items(WHAT)?;
        let version = fields.tagged(Tag::Integer, "version")?;
        if version.small("version")? != 0 {
            return Err(Malformed { what: "version", at: version.at });
        }
        let subject = fields.tagged(Tag::Sequence, "subject")?;
        name::check(subject.value, subject.value_range().start)?;
        let info = fields.tagged(Tag::Sequence, "public key")?;
        let (key, public_key) = public_key(&info)?;
        let mut extensions = None;
        if let Some(attributes) = fields.optional(context(0, true), "attributes")? {
            let mut items = attributes.items("attributes")?;
            while !items.is_finished() {
                let attribute = items.tagged(Tag::Sequence, "attributes")?;
                let mut pair = attribute.items("attributes")?;
                let id = pair.tagged(Tag::ObjectIdentifier, "attributes")?.oid("attributes")?;
                let values = pair.tagged(Tag::Set, "attributes")?;
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
            signed: frame.sealed(der)?,
            subject: subject.range(),
            public_key_info: info.range(),
            public_key,
            key,
            extensions: extensions.unwrap_or_default(),
        })
    }

    /// The request's DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.signed.der
    }

    /// The signed content.
    #[must_use]
    pub fn signed_bytes(&self) -> &[u8] {
        self.signed.body()
    }

    /// The signature, made with the key in the request.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        self.signed.signature()
    }

    /// The signature algorithm.
    #[must_use]
    pub fn signature_algorithm(&self) -> SignatureAlgorithm {
        self.signed.algorithm
    }

    /// The subject as text, escaped.
    #[must_use]
    pub fn subject_text(&self) -> String {
        name::text(self.signed.part(&self.subject))
    }

    /// The kind of the public key.
    #[must_use]
    pub fn key(&self) -> KeyKind {
        self.key
    }

    /// The SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn public_key_info(&self) -> &[u8] {
        self.signed.part(&self.public_key_info)
    }

    /// The public key itself, as in [`super::Certificate::public_key`].
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.signed.part(&self.public_key)
    }

    /// The requested extensions.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }
}
