//! TLS of clients: rustls, with the system's authorities or one's own.

use crate::fault::Fault;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The configuration of a client that trusts the authorities in a file, or those of the system.
///
/// # Errors
/// The file cannot be read, or there are no authorities.
pub fn client(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let mut roots = RootCertStore::empty();
    let target = ca_file.map_or_else(|| "TLS".to_owned(), |path| path.display().to_string());
    match ca_file {
        Some(path) => {
            let fail = |error: &dyn core::fmt::Display| {
                Fault::other(target.clone(), format!("{error}; PEM is needed"))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fail(&error))? {
                roots.add(certificate.map_err(|error| fail(&error))?).map_err(|error| fail(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(Fault::other(target, "there are no authorities to trust; name a file with ca_file"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::other(target, error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
