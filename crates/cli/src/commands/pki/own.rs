//! `taktwerk pki init` and `csr`: own certificates.

use super::{StoreArgs, document, print_of, unusable, warn};
use crate::failure::Failure;
use crate::output::Output;
use crate::overwrite::Overwrite;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use taktwerk_crypto::certificate::Certificate;
use taktwerk_pki::create::{self, CertificateSettings};
use taktwerk_pki::{NewKey, OwnCertificate, PrivateKey, Store};

/// The content of a certificate.
#[derive(Debug, Args)]
struct SettingsArgs {
    /// Kind of key: rsa2048, rsa3072, rsa4096, p256, p384 or ed25519. Default: the present kind, or rsa2048.
    #[arg(long, value_name = "KIND")]
    key: Option<NewKey>,

    /// Name of the application.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// ApplicationUri, exactly as the application reports it.
    #[arg(long, value_name = "URI")]
    uri: Option<String>,

    /// Organization that runs the application.
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,

    /// Additional host name or address of the application. Can be repeated.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
}

/// Arguments of `taktwerk pki init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    #[command(flatten)]
    settings: SettingsArgs,

    /// Validity of the certificate in days.
    #[arg(long, value_name = "DAYS", default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,

    /// Renew the certificates with new keys of the same kinds (with --key only that kind) and the same names. The old
    /// ones are moved to own/previous.
    #[arg(long)]
    renew: bool,
}

/// Arguments of `taktwerk pki csr`.
#[derive(Debug, Args)]
pub(super) struct CsrArgs {
    #[command(flatten)]
    settings: SettingsArgs,

    /// File for the request in PEM. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

impl SettingsArgs {
    /// The settings: from the command line, else from the previous certificate, else for this machine.
    fn settings(&self, at: &StoreArgs, before: Option<&Certificate>) -> CertificateSettings {
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
        let old_organization = before.and_then(Certificate::organization);
        settings.organization = self.organization.clone().or(old_organization);
        settings
    }
}

/// Whether a certificate matches the requested kind of key.
fn is_meant(asked: Option<NewKey>, own: &OwnCertificate) -> bool {
    asked.is_none_or(|key| key.serves_as(own.key.kind()))
}

pub(super) fn init(arguments: &InitArgs, at: &StoreArgs, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    store.create().map_err(|error| unusable(&store, &error))?;
    let mut problems = Vec::new();
    let mut own = store.own(&mut problems);
    warn(&problems);
    // A certificate of another kind belongs to the same application, so use its settings.
    let like = own.first().map(|own| own.certificate.clone());
    own.retain(|own| is_meant(arguments.settings.key, own));
    if !own.is_empty() && !arguments.renew {
        return is_there(&own, output);
    }
    if let Some(issued) = own.iter().find(|own| !own.certificate.is_self_issued()) {
        return Err(Failure::Usage(format!(
            "{} was issued by {}: ask that authority for a new one with taktwerk pki csr --pki {}, or move it away to \
             have a self-signed one made",
            issued.path.display(),
            issued.certificate.issuer_text(),
            store.root().display()
        )));
    }
    let mut made = Vec::new();
    if own.is_empty() {
        made.push(make(arguments, at, &store, None, like.as_ref())?);
    }
    for before in own {
        let like = before.certificate.clone();
        made.push(make(arguments, at, &store, Some(before), Some(&like))?);
    }
    if output.is_json() {
        let own: Vec<Value> = made.iter().map(Made::document).collect();
        return output.document(&json!({ "Made": true, "Own": own }));
    }
    for (number, made) in made.iter().enumerate() {
        if number > 0 {
            output.text("")?;
        }
        output.text(&format!("made {}\n     {}", made.path.display(), made.key_path.display()))?;
        if let Some(path) = &made.previous {
            output.text(&format!("old  {}", path.display()))?;
        }
        describe(&made.certificate, output)?;
    }
    if made.iter().any(|made| made.previous.is_some()) {
        tell!("applications that trusted an old certificate must trust the new one");
    }
    Ok(())
}

/// Reports existing certificates.
fn is_there(own: &[OwnCertificate], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let own: Vec<Value> = own.iter().map(|own| document(&own.certificate, Some(&own.path))).collect();
        return output.document(&json!({ "Made": false, "Own": own }));
    }
    for (number, own) in own.iter().enumerate() {
        if number > 0 {
            output.text("")?;
        }
        output.text(&format!("there is a certificate already: {}", own.path.display()))?;
        describe(&own.certificate, output)?;
    }
    Ok(())
}

/// A new certificate.
struct Made {
    certificate: Certificate,
    path: PathBuf,
    key_path: PathBuf,
    previous: Option<PathBuf>,
}

impl Made {
    fn document(&self) -> Value {
        let mut document = document(&self.certificate, Some(&self.path));
        document["PrivateKey"] = json!(self.key_path.display().to_string());
        document["Previous"] = json!(self.previous.as_ref().map(|path| path.display().to_string()));
        document
    }
}

/// Creates a self-signed certificate, possibly as a replacement.
fn make(
    arguments: &InitArgs,
    at: &StoreArgs,
    store: &Store,
    before: Option<OwnCertificate>,
    like: Option<&Certificate>,
) -> Result<Made, Failure> {
    let mut settings = arguments.settings.settings(at, like);
    settings.lifetime = Duration::from_secs(u64::from(arguments.days) * 24 * 60 * 60);
    let kind =
        arguments.settings.key.or_else(|| before.as_ref().and_then(|own| NewKey::like(own.key.kind())));
    let key = PrivateKey::generate(kind.unwrap_or_default()).map_err(|error| failed(&error))?;
    let certificate =
        create::self_signed(&settings, &key).map_err(|error| Failure::Usage(error.to_string()))?;
    let (path, key_path) =
        store.keep_own(core::slice::from_ref(&certificate), &key).map_err(|error| unusable(store, &error))?;
    let previous = match before {
        Some(own) => Some(store.retire(&own).map_err(|error| unusable(store, &error))?),
        None => None,
    };
    Ok(Made { certificate, path, key_path, previous })
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::Environment(error.to_string())
}

/// A summary of an own certificate.
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

pub(super) fn csr(arguments: &CsrArgs, at: &StoreArgs, output: Output) -> Result<(), Failure> {
    // Checked before a key is created: an existing request may belong to another key.
    arguments.out.as_deref().map_or(Ok(()), |path| arguments.overwrite.check(path))?;
    let store = at.store()?;
    let mut problems = Vec::new();
    let own = store.own(&mut problems);
    warn(&problems);
    // The certificate to replace, else any other one, which names the application.
    let is_rsa = |own: &&OwnCertificate| own.key.kind().is_rsa();
    let before = match arguments.settings.key {
        Some(_) => own.iter().find(|own| is_meant(arguments.settings.key, own)),
        // If there are several kinds, prefer RSA, which all peers support.
        None => own.iter().find(is_rsa),
    };
    let before = before.or(own.first());
    let settings = arguments.settings.settings(at, before.map(|own| &own.certificate));
    let kind = arguments.settings.key.or_else(|| before.and_then(|own| NewKey::like(own.key.kind())));
    let key = PrivateKey::generate(kind.unwrap_or_default()).map_err(|error| failed(&error))?;
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
            "KeyKind": key.kind().to_string(),
            "Key": key_path.display().to_string(),
            "Path": arguments.out.as_ref().map(|path| path.display().to_string()),
        }));
    }
    match &arguments.out {
        Some(path) => output.text(&format!(
            "request {} for {} with a key {}",
            path.display(),
            request.subject_text(),
            key.kind()
        ))?,
        None => output.text(&pem)?,
    }
    tell!(
        "the private key stays in {}; when the certificate comes: taktwerk pki import --own FILE --pki {}",
        key_path.display(),
        store.root().display()
    );
    Ok(())
}
