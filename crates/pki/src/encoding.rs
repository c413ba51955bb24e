//! Detects PEM or DER from the content, never from the file name.

use crate::content::{ContentError, blocks, is_pem, is_pkcs12};
use crate::foreign;
use taktwerk_crypto::certificate::{Certificate, ChainError, RevocationList, split_chain};

/// The certificates in a file, in file order: one or a chain, in PEM or DER.
///
/// # Errors
/// [`ContentError`].
pub fn certificates(bytes: &[u8]) -> Result<Vec<Certificate>, ContentError> {
    if !is_pem(bytes) {
        if is_pkcs12(bytes) {
            return Err(ContentError::Pkcs12);
        }
        return split_chain(bytes).map_err(|error| match (foreign::of_other(bytes), error) {
            (Some(what), _) => ContentError::Foreign(what),
            // The message about a sent chain would be wrong for a file.
            (None, ChainError::Malformed { number: 1, fault }) => fault.into(),
            (None, error) => error.into(),
        });
    }
    let blocks = blocks(bytes)?;
    let mut all = Vec::new();
    for block in blocks.iter().filter(|block| block.tag().ends_with("CERTIFICATE")) {
        all.push(Certificate::from_der(block.contents())?);
    }
    if all.is_empty() {
        Err(ContentError::Foreign(foreign::of_pem(blocks.iter().map(pem::Pem::tag))))
    } else {
        Ok(all)
    }
}

/// The revocation lists in a file: one in DER, any number in PEM.
///
/// # Errors
/// [`ContentError`].
pub fn revocation_lists(bytes: &[u8]) -> Result<Vec<RevocationList>, ContentError> {
    if !is_pem(bytes) {
        return Ok(vec![RevocationList::from_der(bytes)?]);
    }
    let mut all = Vec::new();
    for block in blocks(bytes)?.iter().filter(|block| block.tag() == "X509 CRL") {
        all.push(RevocationList::from_der(block.contents())?);
    }
    if all.is_empty() { Err(ContentError::Absent("revocation list")) } else { Ok(all) }
}

/// A certificate in PEM.
#[must_use]
pub fn certificate_pem(certificate: &Certificate) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate.der()))
}
