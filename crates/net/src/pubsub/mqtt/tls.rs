//! TLS to a broker with rustls and aws-lc: the system's or configured authorities, and an optional client certificate.

use super::super::PubSubError;
use super::options::MqttOptions;
use std::path::Path;
use std::sync::Arc;
use taktwerk_files::{CERTIFICATES_LEN_MAX, SECRET_LEN_MAX, read_bytes};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(super) fn config(options: &MqttOptions) -> Result<Arc<ClientConfig>, PubSubError> {
    let wrong = |what: &Path, reason: String| PubSubError::Address {
        url: what.display().to_string(),
        reason: format!("{reason}; PEM is needed"),
    };
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, PubSubError> {
        let bytes = read_bytes(path, CERTIFICATES_LEN_MAX).map_err(|error| wrong(path, error.to_string()))?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let all = all.map_err(|error| wrong(path, error.to_string()))?;
        if all.is_empty() { Err(wrong(path, "the file contains no certificate".to_owned())) } else { Ok(all) }
    };
    let mut roots = RootCertStore::empty();
    match &options.ca_file {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| wrong(path, error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                let reason = "this system has no list of certificate authorities; name the file with the broker's authority (ca_file)";
                return Err(PubSubError::address("mqtts", reason));
            }
        }
    }
    let fail = |error: tokio_rustls::rustls::Error| PubSubError::address("mqtts", error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(fail)?
        .with_root_certificates(roots);
    let config = match &options.certificate {
        Some((certificate, key_file)) => {
            let bytes =
                read_bytes(key_file, SECRET_LEN_MAX).map_err(|error| wrong(key_file, error.to_string()))?;
            let key =
                PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| wrong(key_file, error.to_string()))?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(fail)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}
