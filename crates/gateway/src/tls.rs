//! TLS for clients: rustls, with the system's authorities or a configured one.

use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Takes the setting `ca_file`: a PEM file with authorities, which must exist.
///
/// # Errors
/// The file cannot be read, or contains no authority.
pub fn take_ca(fields: &mut Fields) -> Result<Option<PathBuf>, Mistake> {
    let Some((line, file)) = fields.text_at("ca_file")? else { return Ok(None) };
    let path = fields.path().parent().map(|folder| folder.join(&file)).unwrap_or_else(|| file.into());
    match client(Some(&path)) {
        Ok(_) => Ok(Some(path)),
        Err(fault) => {
            let hint = "name a PEM file with the certificate of the authority; paths start from the folder of this file";
            Err(fields.mistake_in(line, "ca_file", fault.to_string(), hint))
        }
    }
}

/// How to correct a connection that TLS rejected; `None` for other errors.
#[must_use]
pub fn advice(error: &str) -> Option<&'static str> {
    let known = [
        (
            "UnknownIssuer",
            "its certificate was issued by an authority that is not trusted; set ca_file to the authority's file",
        ),
        ("not valid for name", "its certificate is for another host name; write that name in url"),
        ("NotValidForName", "its certificate is for another host name; write that name in url"),
        ("certificate expired", "its certificate has expired"),
        ("not valid yet", "its certificate is not valid yet; check the clocks"),
        (
            "CaUsedAsEndEntity",
            "it uses the certificate of an authority; give the server its own certificate, signed by the authority",
        ),
        ("BadSignature", "its certificate was not issued by the authority in ca_file"),
        ("InvalidContentType", "it does not speak TLS at this port; check url"),
    ];
    known.iter().find(|(part, _)| error.contains(part)).map(|(_, advice)| *advice)
}

/// The TLS configuration of a client that trusts the authorities in a file, or those of the system.
///
/// # Errors
/// The file cannot be read, or contains no authorities.
pub fn client(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let mut roots = RootCertStore::empty();
    let target = ca_file.map_or_else(|| "TLS".to_owned(), |path| path.display().to_string());
    match ca_file {
        Some(path) => {
            let fail = |error: &dyn core::fmt::Display| {
                Fault::other(target.clone(), format!("cannot read the authorities in this file: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;

    #[test]
    fn a_file_without_authorities_is_a_mistake_of_its_key() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("empty.pem"), "nothing").unwrap();
        let take = |text: &str| {
            let text = format!("[[destination]]\n{text}\n");
            let mut sections = Sections::parse(&folder.path().join("g.toml"), &text).unwrap();
            take_ca(&mut sections.destinations[0])
        };
        assert_eq!(take("a = 1").unwrap(), None);
        for (file, said) in [("none.pem", "none.pem: cannot read"), ("empty.pem", "there are no authorities")]
        {
            let error = take(&format!("ca_file = {file:?}")).unwrap_err().to_string();
            assert!(error.contains("g.toml:2: ca_file: ") && error.contains(said), "{error}");
        }
    }

    #[test]
    fn errors_of_tls_have_advice() {
        assert!(advice("invalid peer certificate: UnknownIssuer").unwrap().contains("ca_file"));
        assert_eq!(advice("connection refused"), None);
    }
}
