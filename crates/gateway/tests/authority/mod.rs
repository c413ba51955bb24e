//! A test authority and certificates signed by it.

#![allow(dead_code)] // each test uses some of it

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate for `localhost` in PEM.
pub(crate) struct Signed {
    /// The certificate of the authority.
    pub(crate) authority: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Creates an authority with a name, and a certificate signed by it.
pub(crate) fn sign(name: &str) -> Signed {
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    let authority = params.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    Signed { authority, certificate, key: key.serialize_pem() }
}
