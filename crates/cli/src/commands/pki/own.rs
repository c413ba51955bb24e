//! `taktwerk pki init` and `csr`: our own certificates.

use super::{Place, document, print_of, unusable, warn};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use taktwerk_crypto::certificate::{Certificate, KeyKind};
use taktwerk_pki::create::{self, CertificateSettings};
use taktwerk_pki::{NewKey, OwnCertificate, PrivateKey, Store};

/// What a certificate shall say.
#[derive(Debug, Args)]
struct SettingsArgs {
    /// Kind of key: rsa2048, rsa3072, rsa4096, p256, p384 or ed25519.
    #[arg(long, value_name = "KIND", default_value = "rsa2048")]
    key: NewKey,

    /// Name of the application.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// ApplicationUri: exactly what the application calls itself.
    #[arg(long, value_name = "URI")]
    uri: Option<String>,

    /// Organization that runs the application.
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,

    /// Further host name or address by which the application is dialled; may be given several times.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,

    /// Days for which the certificate is valid.
    #[arg(long, value_name = "DAYS", default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,
}

/// Arguments of `taktwerk pki init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    #[command(flatten)]
    settings: SettingsArgs,

    /// Make a new certificate with a new key that says what the old one says; the old one goes to own/previous.
    #[arg(long)]
    renew: bool,
}

/// Arguments of `taktwerk pki csr`.
#[derive(Debug, Args)]
pub(super) struct CsrArgs {
    #[command(flatten)]
    settings: SettingsArgs,

    /// File for the request in PEM; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl SettingsArgs {
    /// The settings: as given, else as the certificate before says, else for this machine.
    fn settings(&self, at: &Place, before: Option<&Certificate>) -> CertificateSettings {
        let (name, uri) = if at.serve {
            ("Taktwerk demo server", "urn:taktwerk:demo-server")
        } else {
            ("taktwerk", "urn:taktwerk:client")
        };
        let old_name = before.and_then(Certificate::common_name);
        let old_uri = before.and_then(Certificate::application_uri);
        let name = self.name.as_deref().or(old_name.as_deref()).unwrap_or(name);
        let uri = self.uri.as_deref().or(old_uri).unwrap_or(uri);
        let mut settings = CertificateSettings::new(name, uri);
        if let Some(before) = before {
            settings.hosts.extend(before.extensions().dns_names.iter().cloned());
            settings.hosts.extend(before.extensions().ip_addresses.iter().map(ToString::to_string));
        }
        settings.hosts.extend(self.host.iter().cloned());
        settings.organization.clone_from(&self.organization);
        settings.lifetime = Duration::from_secs(u64::from(self.days) * 24 * 60 * 60);
        settings
    }
}

/// Whether a new key of this kind would take the place of an old one.
fn same_kind(new: NewKey, old: KeyKind) -> bool {
    match new {
        NewKey::NistP256 => old == KeyKind::NistP256,
        NewKey::NistP384 => old == KeyKind::NistP384,
        NewKey::Ed25519 => old == KeyKind::Ed25519,
        _ => old.is_rsa(),
    }
}

pub(super) fn init(arguments: &InitArgs, at: &Place, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    store.create().map_err(|error| unusable(&store, &error))?;
    let mut problems = Vec::new();
    let own = store.own(&mut problems);
    warn(&problems);
    let before = own.into_iter().find(|own| same_kind(arguments.settings.key, own.key.kind()));
    if let (Some(own), false) = (&before, arguments.renew) {
        if output.is_json() {
            return output
                .document(&json!({ "Made": false, "Own": document(&own.certificate, Some(&own.path)) }));
        }
        output.text(&format!("there is a certificate already: {}", own.path.display()))?;
        return describe(&own.certificate, output);
    }
    let settings = arguments.settings.settings(at, before.as_ref().map(|own| &own.certificate));
    let key = PrivateKey::generate(arguments.settings.key).map_err(|error| failed(&error))?;
    let certificate =
        create::self_signed(&settings, &key).map_err(|error| Failure::Usage(error.to_string()))?;
    let (path, key_path) = store
        .keep_own(core::slice::from_ref(&certificate), &key)
        .map_err(|error| unusable(&store, &error))?;
    let retired = retire(&store, before)?;
    if output.is_json() {
        return output.document(&json!({
            "Made": true,
            "Own": document(&certificate, Some(&path)),
            "Key": key_path.display().to_string(),
            "Previous": retired.map(|path| path.display().to_string()),
        }));
    }
    output.text(&format!("made {}\n     {}", path.display(), key_path.display()))?;
    if let Some(path) = retired {
        output.text(&format!("old  {}", path.display()))?;
        eprintln!("everybody who trusted the old certificate has to trust the new one");
    }
    describe(&certificate, output)
}

fn retire(store: &Store, before: Option<OwnCertificate>) -> Result<Option<PathBuf>, Failure> {
    match before {
        Some(own) => store.retire(&own).map(Some).map_err(|error| unusable(store, &error)),
        None => Ok(None),
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::Environment(error.to_string())
}

/// A few lines about a certificate of ours.
fn describe(certificate: &Certificate, output: Output) -> Result<(), Failure> {
    let extensions = certificate.extensions();
    let mut hosts = extensions.dns_names.clone();
    hosts.extend(extensions.ip_addresses.iter().map(ToString::to_string));
    output.text(&format!(
        "subject      {}\nURI          {}\nhosts        {}\nkey          {}\nvalid until  {}\nthumbprint   {}",
        certificate.subject_text(),
        certificate.application_uri().unwrap_or("none"),
        hosts.join(", "),
        certificate.key(),
        certificate.not_after(),
        print_of(certificate)
    ))
}

pub(super) fn csr(arguments: &CsrArgs, at: &Place, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let before = store.own(&mut Vec::new()).into_iter().next();
    let settings = arguments.settings.settings(at, before.as_ref().map(|own| &own.certificate));
    let key = PrivateKey::generate(arguments.settings.key).map_err(|error| failed(&error))?;
    let request = create::request(&settings, &key).map_err(|error| Failure::Usage(error.to_string()))?;
    let key_path = store.keep_key(&key, request.der()).map_err(|error| unusable(&store, &error))?;
    let pem = create::request_pem(&request);
    if let Some(path) = &arguments.out {
        std::fs::write(path, &pem)
            .map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))?;
    }
    if output.is_json() {
        return output.document(&json!({
            "Request": pem,
            "Subject": request.subject_text(),
            "Key": key_path.display().to_string(),
            "Path": arguments.out.as_ref().map(|path| path.display().to_string()),
        }));
    }
    match &arguments.out {
        Some(path) => output.text(&format!("request {} for {}", path.display(), request.subject_text()))?,
        None => output.text(&pem)?,
    }
    eprintln!(
        "the private key stays in {}; when the certificate comes: taktwerk pki import --own FILE --pki {}",
        key_path.display(),
        store.root().display()
    );
    Ok(())
}
