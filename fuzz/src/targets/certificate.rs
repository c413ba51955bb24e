//! Certificates, revocation lists, requests, and whole validations.

use crate::input::Input;
use std::sync::atomic::{AtomicU32, Ordering};
use taktwerk_crypto::CertificatePurpose;
use taktwerk_crypto::certificate::{
    CHAIN_LEN_MAX, Certificate, CertificateRequest, PublicKey, RevocationList, SIGNATURE_CHECKS_MAX,
    SignatureAlgorithm, SignatureVerifier, TrustList, Validation, ValidationOptions, ValidationRequest,
    VerifyError, check_application_uri, names_host, split_chain,
};
use taktwerk_types::UtcTime;

/// Parses one certificate: the content must match the bytes.
pub fn x509(data: &[u8]) {
    let Ok(certificate) = Certificate::from_der(data) else { return };
    assert_eq!(certificate.der(), data);
    assert!(certificate.subject().starts_with(&[0x30]) && certificate.issuer().starts_with(&[0x30]));
    assert!(!certificate.serial().is_empty());
    for text in [certificate.subject_text(), certificate.issuer_text()] {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    let _ = (certificate.common_name(), certificate.key().bits(), certificate.signature_algorithm().hash());
    let _ = names_host(&certificate, "host");
    assert_eq!(check_application_uri(&certificate, None).is_ok(), certificate.application_uri().is_some());
    // It is its own chain of one.
    assert_eq!(split_chain(data).map(|chain| chain.len()), Ok(1));
}

/// Parses a revocation list: every serial number in it must be found.
pub fn revocation_list(data: &[u8]) {
    let Ok(list) = RevocationList::from_der(data) else { return };
    assert_eq!(list.der(), data);
    let _ = (list.revoked(&[]), list.revoked(&[1]), list.unsupported(), list.next_update());
    assert!(list.revoked_len() <= data.len());
    assert!(!list.issuer_text().chars().any(char::is_control));
}

/// A certificate signing request.
pub fn request(data: &[u8]) {
    let Ok(request) = CertificateRequest::from_der(data) else { return };
    assert_eq!(request.der(), data);
    let _ = request.verify(&Oracle { answers: 0, asked: AtomicU32::new(0) });
    assert!(!request.subject_text().chars().any(char::is_control));
}

/// Accepts or refuses each signature by a bit of the input.
#[derive(Debug)]
struct Oracle {
    answers: u64,
    asked: AtomicU32,
}

impl SignatureVerifier for Oracle {
    fn verify(&self, _: SignatureAlgorithm, _: PublicKey<'_>, _: &[u8], _: &[u8]) -> Result<(), VerifyError> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        match self.answers >> (2 * (number % 32)) & 3 {
            0 => Err(VerifyError::Wrong),
            1 => Err(VerifyError::Unsupported),
            _ => Ok(()),
        }
    }
}

/// A trust list from files and a chain from a peer: bounded work, and only certificates of the list are trusted.
pub fn validation(data: &[u8]) {
    let mut input = Input::new(data);
    let answers = u64::from(input.u32()) | u64::from(input.u32()) << 32;
    let options = ValidationOptions::from_bits(u32::from(input.byte()));
    let exhaustive = input.flag();
    let purpose = match input.below(3) {
        0 => CertificatePurpose::Client { address: None },
        1 => CertificatePurpose::Server { host_name: "peer.example".to_owned() },
        _ => CertificatePurpose::User { address: None },
    };
    let mut trust = TrustList::new();
    let mut sent = Vec::new();
    for _ in 0..24 {
        if input.is_empty() {
            break;
        }
        let kind = input.below(4);
        let bytes = piece(&mut input);
        match kind {
            0 => sent.extend_from_slice(&bytes),
            1 => Certificate::from_der(&bytes).into_iter().for_each(|certificate| trust.trust(certificate)),
            2 => Certificate::from_der(&bytes)
                .into_iter()
                .for_each(|certificate| trust.add_issuer(certificate)),
            _ => {
                RevocationList::from_der(&bytes).into_iter().for_each(|list| trust.add_revocation_list(list))
            }
        }
    }
    let oracle = Oracle { answers, asked: AtomicU32::new(0) };
    let now = UtcTime::from_civil(2030, 1, 1, 0, 0, 0).expect("a date");
    let request =
        ValidationRequest { application_uri: Some("urn:test:peer"), ..ValidationRequest::new(&purpose) };
    let report =
        Validation { trust: &trust, verifier: &oracle, options, now, exhaustive }.run(&sent, &request);
    assert!(oracle.asked.load(Ordering::Relaxed) <= SIGNATURE_CHECKS_MAX);
    assert_eq!(oracle.asked.load(Ordering::Relaxed), report.signature_checks());
    assert!(report.chain().len() <= CHAIN_LEN_MAX);
    if report.outcome().is_ok() {
        let chain = report.chain();
        assert!(chain.iter().any(|certificate| trust.is_trusted(certificate)));
        assert_eq!(split_chain(&sent).expect("it was accepted").first(), chain.first());
        assert!(chain.windows(2).all(|pair| pair[0].issuer() == pair[1].subject()));
    }
}

/// A real certificate, one with a change, or random bytes.
fn piece(input: &mut Input<'_>) -> Vec<u8> {
    let choice = usize::from(input.byte());
    let mut bytes = match REAL.get(choice % (REAL.len() + 1)) {
        Some(bytes) => bytes.to_vec(),
        None => {
            let len = usize::from(input.u16());
            input.bytes(len).to_vec()
        }
    };
    if choice >= 128 {
        let at = usize::from(input.u16());
        let value = input.byte();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    bytes
}

/// Real certificates and lists: two roots, authorities below them, leaves, circles.
const REAL: &[&[u8]] = &[
    include_bytes!("../../certificates/root.der"),
    include_bytes!("../../certificates/sub.der"),
    include_bytes!("../../certificates/cross.der"),
    include_bytes!("../../certificates/loop_a.der"),
    include_bytes!("../../certificates/loop_b.der"),
    include_bytes!("../../certificates/leaf.der"),
    include_bytes!("../../certificates/leaf_of_loop.der"),
    include_bytes!("../../certificates/self_signed.der"),
    include_bytes!("../../certificates/root.crl"),
    include_bytes!("../../certificates/sub.crl"),
];
