//! Identifies files that contain no certificate, so that the message can say which wrong file the user chose.

use crate::key::PrivateKey;
use taktwerk_crypto::certificate::{CertificateRequest, RevocationList};

const REQUEST: &str = "this is a request for a certificate (PKCS#10); give it to a certificate authority, and import \
                       the certificate that comes back";
const PRIVATE_KEY: &str =
    "this is a private key; import its certificate, with: taktwerk pki import --own CERTIFICATE --key KEY";
const PUBLIC_KEY: &str = "this is only a public key; a certificate also names its owner";
const BUNDLE: &str = "this is a PKCS#7 bundle; unpack it with: openssl pkcs7 -inform PEM|DER -in FILE -print_certs \
                      -out PLAIN.pem, and import PLAIN.pem";
const REVOCATION_LIST: &str = "this is a revocation list; import it with: taktwerk pki import FILE";
const UNARMOURED: &str = "this is the inside of a PEM file; put a line -----BEGIN CERTIFICATE----- in front of it \
                          and -----END CERTIFICATE----- behind it";

/// Identifies PEM blocks without a certificate. `tags` are the labels after BEGIN.
pub(crate) fn of_pem<'a>(tags: impl Iterator<Item = &'a str>) -> &'static str {
    let mut found = None;
    for tag in tags {
        let what = match tag {
            "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => REQUEST,
            "PUBLIC KEY" | "RSA PUBLIC KEY" => PUBLIC_KEY,
            "PKCS7" | "CMS" => BUNDLE,
            "X509 CRL" => REVOCATION_LIST,
            _ if tag.ends_with("PRIVATE KEY") => PRIVATE_KEY,
            _ => continue,
        };
        found = found.or(Some(what));
    }
    found.unwrap_or(
        "there is no block in it from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----; a file that ends \
         early was not copied completely",
    )
}

/// Identifies bytes that are neither PEM nor a certificate in DER; `None` if they look like a broken certificate.
pub(crate) fn of_other(bytes: &[u8]) -> Option<&'static str> {
    let trimmed = bytes.trim_ascii();
    if trimmed.is_empty() {
        return Some("the file is empty");
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Some("this text is UTF-16, as some editors save it; save it as UTF-8 or ASCII");
    }
    if bytes.first() == Some(&0x30) && !bytes.is_ascii() {
        return of_der(bytes);
    }
    if trimmed.starts_with(b"MI") && trimmed.iter().all(|byte| is_base64(*byte) || byte.is_ascii_whitespace())
    {
        return Some(UNARMOURED);
    }
    if trimmed.starts_with(b"<") {
        return Some("this is a web page or XML; check the link from which it was saved");
    }
    if trimmed.starts_with(b"ssh-") || trimmed.starts_with(b"ecdsa-sha2-") {
        return Some("this is a key for SSH; OPC UA needs an X.509 certificate");
    }
    Some(if core::str::from_utf8(bytes).is_ok() {
        "this is text; a certificate is binary (DER), or text from -----BEGIN CERTIFICATE----- to -----END \
         CERTIFICATE----- (PEM)"
    } else {
        "nothing in it looks like a certificate, neither in DER nor in PEM"
    })
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The object identifier of the content type signedData (RFC 2315 §14).
const SIGNED_DATA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// Largest offset of a content type: after tag and length.
const CONTENT_TYPE_AT_MAX: usize = 6;

fn of_der(bytes: &[u8]) -> Option<&'static str> {
    if CertificateRequest::from_der(bytes).is_ok() {
        Some(REQUEST)
    } else if RevocationList::from_der(bytes).is_ok() {
        Some(REVOCATION_LIST)
    } else if PrivateKey::read(bytes).is_ok() {
        Some(PRIVATE_KEY)
    } else if (2..=CONTENT_TYPE_AT_MAX)
        .any(|at| bytes.get(at..).is_some_and(|rest| rest.starts_with(SIGNED_DATA)))
    {
        Some(BUNDLE)
    } else if is_cut_short(bytes) {
        Some("the file ends before the certificate does; it was not copied completely")
    } else {
        None
    }
}

/// Whether the outermost element is longer than the file.
fn is_cut_short(bytes: &[u8]) -> bool {
    let (header_len, len) = match bytes {
        [_, len @ 0..=0x7f, ..] => (2, usize::from(*len)),
        [_, 0x81, len, ..] => (3, usize::from(*len)),
        [_, 0x82, high, low, ..] => (4, usize::from(u16::from_be_bytes([*high, *low]))),
        _ => return false,
    };
    header_len + len > bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ContentError;
    use crate::create::{CertificateSettings, request, self_signed};
    use crate::encoding::certificates;
    use crate::key::NewKey;

    fn told(bytes: &[u8]) -> String {
        certificates(bytes).unwrap_err().to_string()
    }

    #[test]
    fn wrong_files_are_identified() {
        let key = PrivateKey::generate(NewKey::NistP256).unwrap();
        let settings = CertificateSettings::new("Boiler", "urn:example:boiler");
        let asked = request(&settings, &key).unwrap();
        let certificate = self_signed(&settings, &key).unwrap();
        let armoured = crate::encoding::certificate_pem(&certificate);
        let inside: String = armoured.lines().filter(|line| !line.starts_with('-')).collect();
        let utf16: Vec<u8> =
            [0xfeff].into_iter().chain(armoured.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let signed_data = [&[0x30, 0x0d], SIGNED_DATA, &[0xa0, 0x00]].concat();
        let (asked_pem, key_pem) = (crate::create::request_pem(&asked), key.pem());
        let public = pem::encode(&pem::Pem::new("PUBLIC KEY", [1, 2, 3]));
        let cases: &[(&[u8], &str)] = &[
            (b"", "empty"),
            (b" \n\n", "empty"),
            (b"hello\n", "this is text"),
            ("gr\u{fc}\u{df} Gott".as_bytes(), "this is text"),
            (b"<!DOCTYPE html><html>", "a web page"),
            (b"ssh-ed25519 AAAAC3Nza engineer@plant", "SSH"),
            (&[0xfe, 0x01, 0x80, 0x99], "nothing in it looks like a certificate"),
            (asked.der(), "a request for a certificate"),
            (asked_pem.as_bytes(), "a request for a certificate"),
            (key.pkcs8(), "a private key"),
            (key_pem.as_bytes(), "a private key"),
            (public.as_bytes(), "a public key"),
            (&signed_data, "PKCS#7"),
            (&certificate.der()[..200], "not copied completely"),
            (&armoured.as_bytes()[..200], "not copied completely"),
            (inside.as_bytes(), "the inside of a PEM file"),
            (&utf16, "UTF-16"),
        ];
        for (bytes, expected) in cases {
            let told = told(bytes);
            assert!(told.contains(expected), "{expected}: {told}");
            assert!(!told.contains("sent"), "nobody has sent anything: {told}");
        }
        assert_eq!(certificates(certificate.der()).unwrap(), core::slice::from_ref(&certificate));
        // Whatever is cut or changed, there is a message, and a broken certificate is not taken for another kind of file.
        let mut broken = certificate.der().to_vec();
        broken[30] ^= 0xff;
        if let Err(error) = certificates(&broken) {
            assert!(matches!(error, ContentError::Malformed(_) | ContentError::Chain(_)), "{error}");
        }
        for len in 0..certificate.der().len() {
            assert!(!told(&certificate.der()[..len]).is_empty());
        }
    }
}
