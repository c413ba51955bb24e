//! Certificates and providers for tests, made once per process.

use crate::aws_lc::{AwsLcProvider, Identity};
use crate::{CertificatePurpose, CertificateValidator, CryptoError, der};
use rcgen::{CertificateParams, KeyPair, RsaKeySize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use taktwerk_types::StatusCode;

/// Trusts all certificates without the name "untrusted".
#[derive(Debug)]
struct Naive;

impl CertificateValidator for Naive {
    fn validate(&self, chain_der: &[u8], _: &CertificatePurpose) -> Result<(), CryptoError> {
        if der::leaf(chain_der).windows(9).any(|at| at == b"untrusted") {
            return Err(CryptoError::certificate(StatusCode::BAD_CERTIFICATE_UNTRUSTED, "named so"));
        }
        Ok(())
    }
}

type Made = Mutex<Option<BTreeMap<(&'static str, String), (Vec<u8>, Vec<u8>)>>>;

/// A self-signed certificate and its key in PKCS #8.
pub(super) fn key(kind: &'static str, name: &str) -> (Vec<u8>, Vec<u8>) {
    static MADE: Made = Mutex::new(None);
    let mut made = MADE.lock().unwrap();
    let made = made.get_or_insert_with(BTreeMap::new);
    made.entry((kind, name.to_owned()))
        .or_insert_with(|| {
            let key = match kind {
                "RSA2048" => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
                "RSA4096" => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
                "P-256" => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
                "P-384" => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
                "Ed25519" => KeyPair::generate_for(&rcgen::PKCS_ED25519),
                _ => panic!("no such kind"),
            }
            .unwrap();
            let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
            (certificate.der().to_vec(), key.serialize_der())
        })
        .clone()
}

pub(super) fn identity(kind: &'static str, name: &str) -> Identity {
    let (certificate, key) = key(kind, name);
    Identity::new(certificate, &key).unwrap()
}

/// A provider with certificates of all kinds.
pub(super) fn provider(name: &str) -> AwsLcProvider {
    with_rsa(name, "RSA2048")
}

pub(super) fn with_rsa(name: &str, rsa: &'static str) -> AwsLcProvider {
    [rsa, "P-256", "P-384", "Ed25519"]
        .into_iter()
        .fold(AwsLcProvider::new(Arc::new(Naive)), |provider, kind| {
            provider.with_identity(identity(kind, name))
        })
}
