//! TLS for clients: rustls, with the system's authorities or a configured one, and with client certificates.

use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk_crypto::certificate::Certificate;
use taktwerk_pki::permissions::{self, Protection};
use taktwerk_pki::{PrivateKey, Store};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Longest file of a key.
const KEY_LEN_MAX: u64 = 64 << 10;

/// The TLS settings of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientTls {
    /// A PEM file with authorities; `None` for those of the system.
    ca_file: Option<PathBuf>,
    /// The files of the client's certificate and of its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl ClientTls {
    /// Trusts the authorities in a file, or those of the system, and has no certificate.
    #[must_use]
    pub const fn trusting(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, identity: None }
    }

    /// Takes the settings `ca_file`, `certificate_file` and `key_file`. The files must exist and be usable. `is_tls` says whether
    /// connections use TLS.
    ///
    /// # Errors
    /// A file cannot be read or has other content, others can read the key, or the certificate is not used.
    pub fn take(fields: &mut Fields, is_tls: bool) -> Result<Self, Mistake> {
        let ca = fields.text_at("ca_file")?;
        let ca_file = ca.as_ref().map(|(_, file)| beside(fields, file));
        let certificate = fields.text_at("certificate_file")?;
        let key = fields.text_at("key_file")?;
        let files = [("certificate_file", &certificate), ("key_file", &key)];
        if let Some((name, Some((line, _)))) = files.iter().find(|(_, file)| file.is_some())
            && !is_tls
        {
            let hint = "use mqtts://, https:// or tls:// in url, or set tls = true";
            return Err(fields.mistake_in(*line, name, "a client certificate needs TLS", hint));
        }
        let identity = match (&certificate, &key) {
            (Some((_, certificate)), Some((_, key))) => {
                Some((beside(fields, certificate), beside(fields, key)))
            }
            (None, None) => None,
            (Some((line, _)), None) => {
                let hint = "set key_file, too";
                return Err(fields.mistake_in(*line, "certificate_file", "its private key is missing", hint));
            }
            (None, Some((line, _))) => {
                let hint = "set certificate_file, too";
                return Err(fields.mistake_in(*line, "key_file", "its certificate is missing", hint));
            }
        };
        if let Err(fault) = roots(ca_file.as_deref())
            && let Some((line, _)) = ca
        {
            let hint = "name a PEM file with the certificate of the authority; paths start from the folder of this file";
            return Err(fields.mistake_in(line, "ca_file", fault.to_string(), hint));
        }
        if let Some((certificate_file, key_file)) = &identity
            && let Err((is_key, problem)) = read_identity(certificate_file, key_file)
        {
            let (name, at) = if is_key { ("key_file", &key) } else { ("certificate_file", &certificate) };
            let line = at.as_ref().map_or(0, |(line, _)| *line);
            return Err(fields.mistake_in(line, name, problem, identity_hint(is_key)));
        }
        Ok(Self { ca_file, identity })
    }

    /// The configuration of connections. The files are read again, because certificates are renewed.
    ///
    /// # Errors
    /// A file cannot be read, or has other content.
    pub fn config(&self) -> Result<Arc<ClientConfig>, Fault> {
        let roots = roots(self.ca_file.as_deref())?;
        let fail = |error: tokio_rustls::rustls::Error| Fault::other("TLS", error);
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_root_certificates(roots);
        let Some((certificate_file, key_file)) = &self.identity else {
            return Ok(Arc::new(builder.with_no_client_auth()));
        };
        let (chain, key) = read_identity(certificate_file, key_file).map_err(|(is_key, problem)| {
            Fault::other(if is_key { "key_file" } else { "certificate_file" }, problem)
        })?;
        let chain = chain.iter().map(|one| CertificateDer::from(one.der().to_vec())).collect();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.pkcs8().to_vec()));
        builder
            .with_client_auth_cert(chain, key)
            .map(Arc::new)
            .map_err(|error| Fault::other(certificate_file.display().to_string(), error))
    }
}

/// What to do about an unusable certificate or key.
#[must_use]
pub fn identity_hint(is_key: bool) -> &'static str {
    match is_key {
        true => "name a PEM or DER file with the private key, readable only by the user of the gateway",
        false => {
            "name a PEM or DER file with the certificate, and behind it those of intermediate authorities"
        }
    }
}

/// A path relative to the directory of the configuration file.
fn beside(fields: &Fields, file: &str) -> PathBuf {
    fields.path().parent().map(|folder| folder.join(file)).unwrap_or_else(|| file.into())
}

/// Reads a certificate with its chain, and its key.
///
/// # Errors
/// What is wrong with a file: with that of the key, if the first value is true.
pub fn read_identity(
    certificate_file: &Path,
    key_file: &Path,
) -> Result<(Vec<Certificate>, PrivateKey), (bool, String)> {
    let chain = Store::read_certificates(certificate_file).map_err(|problem| (false, problem))?;
    let of_key = |problem: &dyn core::fmt::Display| (true, format!("{}: {problem}", key_file.display()));
    let of_io = |error: std::io::Error| of_key(&crate::fault::plain(&error));
    permissions::check(key_file, Protection::ReadAndWrite).map_err(of_io)?;
    let bytes = taktwerk_files::read_bytes(key_file, KEY_LEN_MAX).map_err(of_io)?;
    let key = PrivateKey::read(&bytes).map_err(|error| of_key(&error))?;
    match chain.first() {
        Some(leaf) if key.belongs_to(leaf) => Ok((chain, key)),
        Some(_) => {
            let problem = format!("this is not the key of the certificate in {}", certificate_file.display());
            Err(of_key(&problem))
        }
        None => Err((false, format!("{}: the file contains no certificate", certificate_file.display()))),
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
        ("alert: CertificateRequired", "it requires a client certificate; set certificate_file and key_file"),
        (
            "alert: UnknownCA",
            "it does not trust the authority of the client certificate; check certificate_file",
        ),
        (
            "alert: BadCertificate",
            "it refuses the client certificate, or requires one; check certificate_file",
        ),
        ("alert: CertificateUnknown", "it refuses the client certificate; check certificate_file"),
        ("alert: CertificateExpired", "the client certificate has expired; renew it"),
        ("InvalidContentType", "it does not speak TLS at this port; check url"),
    ];
    known.iter().find(|(part, _)| error.contains(part)).map(|(_, advice)| *advice)
}

/// The authorities in a file, or those of the system.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    let target = ca_file.map_or_else(|| "TLS".to_owned(), |path| path.display().to_string());
    match ca_file {
        Some(path) => {
            let fail = |error: &dyn core::fmt::Display| {
                Fault::other(target.clone(), format!("cannot read the authorities in this file: {error}"))
            };
            let bytes = taktwerk_files::read_bytes(path, taktwerk_files::CERTIFICATES_LEN_MAX);
            let bytes = bytes.map_err(|error| fail(&crate::fault::plain(&error)))?;
            for certificate in CertificateDer::pem_slice_iter(&bytes) {
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
    Ok(roots)
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
            ClientTls::take(&mut sections.destinations[0], true)
        };
        assert!(take("a = 1").unwrap().ca_file.is_none());
        let endless = std::fs::File::create(folder.path().join("long.pem")).unwrap();
        endless.set_len(taktwerk_files::CERTIFICATES_LEN_MAX + 1).unwrap();
        for (file, said) in [
            ("none.pem", "none.pem: cannot read"),
            ("empty.pem", "there are no authorities"),
            ("long.pem", "the file is longer than"),
            ("/dev/zero", "name a regular file"),
        ] {
            let error = take(&format!("ca_file = {file:?}")).unwrap_err().to_string();
            assert!(error.contains("g.toml:2: ca_file: ") && error.contains(said), "{error}");
        }
    }

    #[test]
    fn unusable_client_certificates_are_mistakes_of_their_keys() {
        use std::fs::{Permissions, set_permissions, write};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a", "b"] {
            let key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::new(vec!["gateway".to_owned()]).unwrap();
            write(at(&format!("{name}.pem")), params.self_signed(&key).unwrap().pem()).unwrap();
            write(at(&format!("{name}.key")), key.serialize_pem()).unwrap();
            set_permissions(at(&format!("{name}.key")), Permissions::from_mode(0o600)).unwrap();
        }
        write(at("open.key"), std::fs::read(at("a.key")).unwrap()).unwrap();
        set_permissions(at("open.key"), Permissions::from_mode(0o644)).unwrap();
        write(at("ca.pem"), std::fs::read(at("a.pem")).unwrap()).unwrap();
        let take = |certificate: &str, key: &str, is_tls| {
            let line = |name: &str, file: &str| match file {
                "" => "\n".to_owned(),
                file => format!("{name} = {file:?}\n"),
            };
            let text = format!(
                "[[destination]]\n{}{}ca_file = \"ca.pem\"\n",
                line("certificate_file", certificate),
                line("key_file", key)
            );
            let mut sections = Sections::parse(&at("g.toml"), &text).unwrap();
            let taken = ClientTls::take(&mut sections.destinations[0], is_tls);
            taken.map_err(|error| error.to_string())
        };
        take("a.pem", "a.key", true).unwrap().config().unwrap();
        assert!(take("", "", false).is_ok());
        for (certificate, key, is_tls, key_of_error, said) in [
            ("a.pem", "", true, "2: certificate_file", "its private key is missing; set key_file"),
            ("", "a.key", true, "3: key_file", "its certificate is missing; set certificate_file"),
            ("a.pem", "a.key", false, "2: certificate_file", "needs TLS"),
            ("none.pem", "a.key", true, "2: certificate_file", "none.pem: "),
            ("a.key", "a.key", true, "2: certificate_file", "a.key: "),
            ("a.pem", "none.key", true, "3: key_file", "none.key: "),
            ("a.pem", "b.pem", true, "3: key_file", "b.pem: "),
            ("a.pem", "b.key", true, "3: key_file", "this is not the key of the certificate in"),
            ("a.pem", "open.key", true, "3: key_file", "chmod 600"),
        ] {
            let error = take(certificate, key, is_tls).unwrap_err();
            assert!(error.contains(&format!("g.toml:{key_of_error}: ")) && error.contains(said), "{error}");
        }
        // It is read again for each connection.
        let taken = take("a.pem", "a.key", true).unwrap();
        set_permissions(at("a.key"), Permissions::from_mode(0o604)).unwrap();
        let fault = taken.config().unwrap_err().to_string();
        assert!(fault.contains("key_file") && fault.contains("chmod 600"), "{fault}");
    }

    #[test]
    fn errors_of_tls_have_advice() {
        assert!(advice("invalid peer certificate: UnknownIssuer").unwrap().contains("ca_file"));
        assert_eq!(advice("connection refused"), None);
    }
}
