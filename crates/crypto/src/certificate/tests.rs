//! Tests of parsing, without cryptography. The validation is tested by the matrix in `crates/pki/tests`.

use super::*;
use proptest::prelude::*;
use taktwerk_types::UtcTime;

const PSS: &[u8] = include_bytes!("../../../pki/tests/matrix/fixtures/pss_2048.der");
const MD5: &[u8] = include_bytes!("../../../pki/tests/matrix/fixtures/md5_2048.der");
const BRAINPOOL: &[u8] = include_bytes!("../../../pki/tests/matrix/fixtures/brainpool.der");

/// Accepts all signatures, or none.
#[derive(Debug)]
struct Oracle(bool);

impl SignatureVerifier for Oracle {
    fn verify(&self, _: SignatureAlgorithm, _: PublicKey<'_>, _: &[u8], _: &[u8]) -> Result<(), VerifyError> {
        if self.0 { Ok(()) } else { Err(VerifyError::Wrong) }
    }
}

#[test]
fn every_field_is_read() {
    let certificate = Certificate::from_der(PSS).unwrap();
    assert_eq!(certificate.der(), PSS);
    assert_eq!(certificate.subject_text(), "CN=pss_2048, O=Test");
    assert_eq!(certificate.common_name().as_deref(), Some("pss_2048"));
    assert!(certificate.is_self_issued());
    assert_eq!(certificate.serial(), [7]);
    assert_eq!(certificate.key(), KeyKind::Rsa { bits: 2048 });
    assert_eq!(certificate.signature_algorithm(), SignatureAlgorithm::RsaPss(Hash::Sha256));
    assert_eq!(certificate.signature().len(), 256);
    assert!(PSS.windows(certificate.signed_bytes().len()).any(|part| part == certificate.signed_bytes()));
    assert!(certificate.not_before() < certificate.not_after());
    assert!(certificate.not_after() > UtcTime::from_civil(2100, 1, 1, 0, 0, 0).unwrap());
    assert_eq!(certificate.application_uri(), Some("urn:test:peer"));
    let extensions = certificate.extensions();
    assert_eq!(extensions.dns_names, ["peer.example"]);
    assert_eq!(extensions.basic_constraints, Some(BasicConstraints { is_ca: false, path_len: None }));
    let usage = extensions.key_usage.unwrap();
    assert!(usage.critical && usage.allows(KeyUsage::DIGITAL_SIGNATURE | KeyUsage::KEY_CERT_SIGN));
    assert_eq!(usage.lacking(KeyUsage::DATA_ENCIPHERMENT | KeyUsage::CRL_SIGN), "cRLSign");
    let extended = extensions.extended_key_usage.unwrap();
    assert!(extended.server_auth && extended.client_auth && !extended.critical);
    assert_eq!(certificate.subject_key_identifier(), certificate.authority_key_identifier());
    assert!(!certificate.is_authority());
    let other = Certificate::from_der(MD5).unwrap();
    assert_eq!(other.signature_algorithm(), SignatureAlgorithm::Unknown);
    assert_ne!(certificate, other);
    assert_eq!(Certificate::from_der(BRAINPOOL).unwrap().key(), KeyKind::BrainpoolP256r1);
}

#[test]
fn chains_are_split_where_the_certificates_end() {
    let both = [PSS, MD5].concat();
    let chain = split_chain(&both).unwrap();
    assert_eq!(chain.iter().map(Certificate::der).collect::<Vec<_>>(), [PSS, MD5]);
    assert_eq!(split_chain(&[]), Err(ChainError::Empty));
    assert_eq!(split_chain(&[0; CHAIN_BYTES_MAX + 1]), Err(ChainError::TooManyBytes));
    assert_eq!(split_chain(&PSS.repeat(11)), Err(ChainError::TooManyCertificates));
    let broken = [PSS, &MD5[1..]].concat();
    assert!(matches!(split_chain(&broken), Err(ChainError::Malformed { number: 2, .. })));
    for len in 0..PSS.len() {
        assert!(split_chain(&PSS[..len]).is_err(), "{len}");
    }
}

/// A valid signature is not verified again with the same key.
#[test]
fn valid_signatures_are_verified_once() {
    let mut trust = TrustList::new();
    trust.trust(Certificate::from_der(PSS).unwrap());
    let purpose = crate::CertificatePurpose::Client { address: None };
    let request = ValidationRequest::new(&purpose);
    let run = |verifier| {
        let now = UtcTime::from_civil(2030, 1, 1, 0, 0, 0).unwrap();
        let options = ValidationOptions::default();
        Validation { trust: &trust, verifier, options, now, exhaustive: false }.run(PSS, &request)
    };
    assert_eq!(run(&Oracle(false)).failure().map(|finding| finding.step), Some(Step::Signature));
    let first = run(&Oracle(true));
    assert_eq!((first.outcome(), first.signature_checks()), (Ok(()), 1));
    // A verifier that would refuse is not called: bytes and key are the same.
    let second = run(&Oracle(false));
    assert_eq!((second.outcome(), second.signature_checks()), (Ok(()), 0));
}

#[test]
fn a_trust_list_contains_a_certificate_once() {
    let certificate = Certificate::from_der(PSS).unwrap();
    let mut trust = TrustList::new();
    trust.add_issuer(certificate.clone());
    assert!(!trust.is_trusted(&certificate));
    trust.trust(certificate.clone());
    trust.add_issuer(certificate.clone());
    assert!(trust.is_trusted(&Certificate::from_der(PSS).unwrap()));
    assert_eq!((trust.trusted_len(), trust.issuers_len()), (1, 0));
    assert_eq!((trust.trusted().count(), trust.issuers().count()), (1, 0));
}

proptest! {
    /// Altered bytes never panic, and what is parsed matches the bytes.
    #[test]
    fn altered_bytes_are_read_or_refused(edits in prop::collection::vec((0..PSS.len(), any::<u8>()), 1..4)) {
        let mut der = PSS.to_vec();
        for (at, byte) in edits {
            der[at] = byte;
        }
        if let Ok(certificate) = Certificate::from_der(&der) {
            prop_assert_eq!(certificate.der(), &der[..]);
            prop_assert!(certificate.signed_bytes().len() < der.len());
            let _ = (certificate.subject_text(), certificate.issuer_text());
        }
        let _ = RevocationList::from_der(&der);
        let _ = CertificateRequest::from_der(&der);
    }
}
