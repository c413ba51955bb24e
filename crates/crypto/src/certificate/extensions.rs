//! The certificate extensions that affect validation (RFC 5280 §4.2, Part 6 §6.2.2).

use super::reader::{Item, Items, Malformed, context};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use der::Tag;
use der::asn1::ObjectIdentifier;

/// Maximum number of extensions; real certificates have fewer.
const EXTENSIONS_MAX: usize = 64;
/// Maximum number of names in a subjectAltName.
const NAMES_MAX: usize = 256;
/// Maximum length of a name in bytes; longer ones fit no endpoint URL (Part 6 §7.1.2.3).
const NAME_LEN_MAX: usize = 4096;

const SUBJECT_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.14");
const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
pub(super) const CRL_NUMBER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.20");
pub(super) const REASON_CODE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.21");
const NAME_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.30");
pub(super) const AUTHORITY_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");
const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// The keyUsage extension: permitted uses of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUsage {
    bits: u16,
    /// Whether the extension is marked critical.
    pub critical: bool,
}

impl KeyUsage {
    /// digitalSignature.
    pub const DIGITAL_SIGNATURE: u16 = 1 << 0;
    /// nonRepudiation, also called contentCommitment.
    pub const NON_REPUDIATION: u16 = 1 << 1;
    /// keyEncipherment.
    pub const KEY_ENCIPHERMENT: u16 = 1 << 2;
    /// dataEncipherment.
    pub const DATA_ENCIPHERMENT: u16 = 1 << 3;
    /// keyCertSign.
    pub const KEY_CERT_SIGN: u16 = 1 << 5;
    /// cRLSign.
    pub const CRL_SIGN: u16 = 1 << 6;

    /// Whether all of `bits` are allowed.
    #[must_use]
    pub const fn allows(self, bits: u16) -> bool {
        self.bits & bits == bits
    }

    /// The names of those of `bits` that are not allowed.
    #[must_use]
    pub fn lacking(self, bits: u16) -> String {
        const NAMES: [(u16, &str); 6] = [
            (KeyUsage::DIGITAL_SIGNATURE, "digitalSignature"),
            (KeyUsage::NON_REPUDIATION, "nonRepudiation"),
            (KeyUsage::KEY_ENCIPHERMENT, "keyEncipherment"),
            (KeyUsage::DATA_ENCIPHERMENT, "dataEncipherment"),
            (KeyUsage::KEY_CERT_SIGN, "keyCertSign"),
            (KeyUsage::CRL_SIGN, "cRLSign"),
        ];
        let missing = bits & !self.bits;
        let names: Vec<&str> =
            NAMES.iter().filter(|entry| missing & entry.0 != 0).map(|entry| entry.1).collect();
        names.join(", ")
    }
}

/// The extendedKeyUsage extension, as far as OPC UA uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedKeyUsage {
    /// serverAuth.
    pub server_auth: bool,
    /// clientAuth.
    pub client_auth: bool,
    /// Whether the extension is marked critical.
    pub critical: bool,
}

/// The basicConstraints extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasicConstraints {
    /// Whether the subject may issue certificates.
    pub is_ca: bool,
    /// Maximum number of intermediate authorities below this one; `None` is unlimited.
    pub path_len: Option<u32>,
}

/// The extensions that affect validation. All others are harmless or in [`Extensions::unknown_critical`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    /// basicConstraints.
    pub basic_constraints: Option<BasicConstraints>,
    /// keyUsage.
    pub key_usage: Option<KeyUsage>,
    /// extendedKeyUsage.
    pub extended_key_usage: Option<ExtendedKeyUsage>,
    /// The uniformResourceIdentifiers of subjectAltName. In an application's certificate: its ApplicationUri.
    pub uris: Vec<String>,
    /// The dNSNames of subjectAltName.
    pub dns_names: Vec<String>,
    /// The iPAddresses of subjectAltName.
    pub ip_addresses: Vec<IpAddr>,
    /// A critical extension that is not supported: the certificate must not be used (RFC 5280 §4.2).
    pub unknown_critical: Option<String>,
    /// Whether there are nameConstraints. They are not evaluated, so such an authority is refused.
    pub name_constraints: bool,
    pub(super) subject_key_identifier: Option<Range<usize>>,
    pub(super) authority_key_identifier: Option<Range<usize>>,
    /// authorityCertSerialNumber: the content of the INTEGER.
    pub(super) authority_serial: Option<Range<usize>>,
}

/// An extension with unparsed content.
pub(super) struct Raw<'a> {
    pub(super) id: ObjectIdentifier,
    pub(super) critical: bool,
    octets: Item<'a>,
}

impl<'a> Raw<'a> {
    /// The element in the OCTET STRING. Unsupported extensions need not contain DER.
    pub(super) fn content(&self, what: &'static str) -> Result<Item<'a>, Malformed> {
        let mut inner = Items::new(self.octets.value, self.octets.value_range().start, what)?;
        let content = inner.next(what)?;
        inner.finish(what)?;
        Ok(content)
    }
}

/// Calls `each` for every extension of a SEQUENCE of them.
pub(super) fn each<'a>(
    sequence: &Item<'a>,
    mut visit: impl FnMut(Raw<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    const WHAT: &str = "extensions";
    let mut items = sequence.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let mut seen: Vec<ObjectIdentifier> = Vec::new();
    while !items.is_finished() {
        let item = items.tagged(Tag::Sequence, WHAT)?;
        let mut parts = item.items(WHAT)?;
        let id = parts.tagged(Tag::ObjectIdentifier, WHAT)?.oid(WHAT)?;
        let critical = match parts.optional(Tag::Boolean, WHAT)? {
            // DER omits default values, but many issuers write them.
            Some(flag) => flag.boolean(WHAT)?,
            None => false,
        };
        let octets = parts.tagged(Tag::OctetString, WHAT)?;
        parts.finish(WHAT)?;
        if seen.contains(&id) || seen.len() == EXTENSIONS_MAX {
            return Err(Malformed { what: WHAT, at: item.at });
        }
        seen.push(id);
        visit(Raw { id, critical, octets })?;
    }
    Ok(())
}

impl Extensions {
    /// Reads a SEQUENCE OF Extension.
    pub(super) fn read(sequence: &Item<'_>) -> Result<Self, Malformed> {
        let mut all = Self::default();
        each(sequence, |extension| all.take(&extension))?;
        Ok(all)
    }

    fn take(&mut self, extension: &Raw<'_>) -> Result<(), Malformed> {
        let critical = extension.critical;
        match extension.id {
            BASIC_CONSTRAINTS => self.basic_constraints = Some(basic_constraints(extension)?),
            KEY_USAGE => self.key_usage = Some(key_usage(extension)?),
            EXTENDED_KEY_USAGE => self.extended_key_usage = Some(extended_key_usage(extension)?),
            SUBJECT_ALT_NAME => self.subject_alt_name(extension)?,
            SUBJECT_KEY_IDENTIFIER => {
                const WHAT: &str = "subjectKeyIdentifier";
                let item = extension.content(WHAT)?.tagged(Tag::OctetString, WHAT)?;
                self.subject_key_identifier = Some(item.value_range());
            }
            AUTHORITY_KEY_IDENTIFIER => {
                let key = authority_key_identifier(extension)?;
                self.authority_key_identifier = key.identifier;
                self.authority_serial = key.serial;
            }
            NAME_CONSTRAINTS => self.name_constraints = true,
            id if critical && self.unknown_critical.is_none() => {
                self.unknown_critical = Some(id.to_string());
            }
            _ => {}
        }
        Ok(())
    }

    fn subject_alt_name(&mut self, extension: &Raw<'_>) -> Result<(), Malformed> {
        const WHAT: &str = "subjectAltName";
        let mut names = extension.content(WHAT)?.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
        let mut count = 0;
        while !names.is_finished() {
            let name = names.next(WHAT)?;
            let fault = Malformed { what: WHAT, at: name.at };
            count += 1;
            if count > NAMES_MAX || name.value.len() > NAME_LEN_MAX {
                return Err(fault);
            }
            let text = || {
                let text = core::str::from_utf8(name.value).ok().filter(|text| text.is_ascii());
                text.filter(|text| !text.contains('\0')).map(str::to_owned).ok_or(fault)
            };
            if name.tag == context(6, false) {
                self.uris.push(text()?);
            } else if name.tag == context(2, false) {
                self.dns_names.push(text()?);
            } else if name.tag == context(7, false) {
                self.ip_addresses.push(ip_address(name.value).ok_or(fault)?);
            } else if !name.tag.is_context_specific() {
                return Err(fault);
            }
        }
        Ok(())
    }
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).into())
}

fn basic_constraints(extension: &Raw<'_>) -> Result<BasicConstraints, Malformed> {
    const WHAT: &str = "basicConstraints";
    let mut items = extension.content(WHAT)?.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let is_ca = match items.optional(Tag::Boolean, WHAT)? {
        Some(flag) => flag.boolean(WHAT)?,
        None => false,
    };
    let path_len = match items.optional(Tag::Integer, WHAT)? {
        Some(number) => Some(number.small(WHAT)?),
        None => None,
    };
    items.finish(WHAT)?;
    Ok(BasicConstraints { is_ca, path_len })
}

fn key_usage(extension: &Raw<'_>) -> Result<KeyUsage, Malformed> {
    let string = extension.content("keyUsage")?.bits("keyUsage")?;
    // Bit 0 of the specification is the most significant bit of the first byte.
    let bits = (0..9u16)
        .filter(|number| string.get(usize::from(*number)) == Some(true))
        .fold(0, |bits, number| bits | 1 << number);
    Ok(KeyUsage { bits, critical: extension.critical })
}

fn extended_key_usage(extension: &Raw<'_>) -> Result<ExtendedKeyUsage, Malformed> {
    const WHAT: &str = "extendedKeyUsage";
    let critical = extension.critical;
    let mut usage = ExtendedKeyUsage { server_auth: false, client_auth: false, critical };
    let mut items = extension.content(WHAT)?.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    while !items.is_finished() {
        match items.tagged(Tag::ObjectIdentifier, WHAT)?.oid(WHAT)? {
            SERVER_AUTH => usage.server_auth = true,
            CLIENT_AUTH => usage.client_auth = true,
            _ => {}
        }
    }
    Ok(usage)
}

/// Positions of the parts of authorityKeyIdentifier.
pub(super) struct AuthorityKey {
    pub(super) identifier: Option<Range<usize>>,
    pub(super) serial: Option<Range<usize>>,
}

pub(super) fn authority_key_identifier(extension: &Raw<'_>) -> Result<AuthorityKey, Malformed> {
    const WHAT: &str = "authorityKeyIdentifier";
    let mut items = extension.content(WHAT)?.tagged(Tag::Sequence, WHAT)?.items(WHAT)?;
    let identifier = items.optional(context(0, false), WHAT)?.map(|item| item.value_range());
    let _issuer = items.optional(context(1, true), WHAT)?;
    let serial = items.optional(context(2, false), WHAT)?.map(|item| item.value_range());
    items.finish(WHAT)?;
    Ok(AuthorityKey { identifier, serial })
}
