//! A minimal DER reader: finds the first certificate of a chain and two of its fields.

/// The first element of concatenated DER: a certificate that its issuers follow. All bytes if they are not DER.
#[must_use]
pub fn leaf(chain: &[u8]) -> &[u8] {
    let [0x30, first, rest @ ..] = chain else { return chain };
    let (header_len, len) = match usize::from(*first) {
        len @ 0..0x80 => (2, Some(len)),
        long => {
            let count = long - 0x80;
            let bytes = rest.get(..count.min(4)).unwrap_or_default();
            let len = bytes.iter().fold(0usize, |len, byte| len << 8 | usize::from(*byte));
            (2 + count, (1..=4).contains(&count).then_some(len))
        }
    };
    len.and_then(|len| chain.get(..header_len.checked_add(len)?)).unwrap_or(chain)
}

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The extensions of a certificate (RFC 5280 §4.1).
const EXTENSIONS: u8 = 0xa3;
/// uniformResourceIdentifier of a GeneralName (RFC 5280 §4.2.1.6).
const URI: u8 = 0x86;
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// Reads consecutive DER elements.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next element: its tag, the whole element, and its content.
    pub(crate) fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // Three length bytes suffice for the longest certificate; indefinite lengths are not DER.
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        let (whole, _) = self.0.split_at_checked(self.0.len() - rest.len())?;
        self.0 = rest;
        Some((tag, whole, content))
    }

    /// The content of the next element, which must have this tag.
    pub(crate) fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|next| next.0 == tag).map(|next| next.2)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The ApplicationUri of the first certificate of a chain: the only URI among the subject's alternative names (Part 6
/// §6.2.2). `None` if there is none, if there are several, or if it is not a certificate.
#[must_use]
pub fn application_uri(chain: &[u8]) -> Option<&str> {
    let certificate = Reader(leaf(chain)).content(SEQUENCE)?;
    let mut fields = Reader(Reader(certificate).content(SEQUENCE)?);
    let extensions = loop {
        let (tag, _, content) = fields.next()?;
        if tag == EXTENSIONS {
            break content;
        }
    };
    let mut extensions = Reader(Reader(extensions).content(SEQUENCE)?);
    let mut found = None;
    while !extensions.is_empty() {
        let mut extension = Reader(extensions.content(SEQUENCE)?);
        if extension.content(OBJECT_IDENTIFIER)? != SUBJECT_ALT_NAME {
            continue;
        }
        // The critical flag may be in between.
        let (tag, _, content) = extension.next()?;
        let value = if tag == OCTET_STRING { content } else { extension.content(OCTET_STRING)? };
        let mut names = Reader(Reader(value).content(SEQUENCE)?);
        while !names.is_empty() {
            let (tag, _, content) = names.next()?;
            if tag == URI && found.replace(content).is_some() {
                return None;
            }
        }
    }
    found.and_then(|uri| core::str::from_utf8(uri).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaf_is_the_first_der_element() {
        assert_eq!(leaf(&[0x30, 2, 1, 2, 0x30, 1, 9]), [0x30, 2, 1, 2]);
        let mut long = vec![0x30, 0x82, 1, 0];
        long.resize(4 + 256, 7);
        let mut chain = long.clone();
        chain.extend_from_slice(&[0x30, 0]);
        assert_eq!(leaf(&chain), long);
        for odd in [&[][..], &[0x30], &[0x30, 5, 1], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 0x80, 1], b"DUMMY"]
        {
            assert_eq!(leaf(odd), odd);
        }
    }

    fn certificate(names: Vec<rcgen::SanType>) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::default();
        params.subject_alt_names = names;
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn an_application_has_one_uri() {
        use rcgen::SanType::{DnsName, URI};
        let uri = |uri: &str| URI(uri.try_into().unwrap());
        let dns = DnsName("host".try_into().unwrap());
        let good = certificate(vec![dns.clone(), uri("urn:host:app")]);
        assert_eq!(application_uri(&good), Some("urn:host:app"));
        let chain = [good.as_slice(), &certificate(vec![uri("urn:issuer")])].concat();
        assert_eq!(application_uri(&chain), Some("urn:host:app"));
        assert_eq!(application_uri(&certificate(vec![uri("urn:a"), uri("urn:b")])), None);
        assert_eq!(application_uri(&certificate(vec![dns])), None);
        assert_eq!(application_uri(&certificate(Vec::new())), None);
        for len in 0..good.len() {
            assert_eq!(application_uri(&good[..len]), None, "{len}");
        }
        for at in 0..good.len() {
            let mut broken = good.clone();
            broken[at] ^= 0x81;
            let _ = application_uri(&broken);
        }
    }
}
