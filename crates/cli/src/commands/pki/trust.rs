//! `taktwerk pki trust` and `reject`.

use super::{StoreArgs, document, print_of, unusable};
use crate::failure::Failure;
use crate::output::{Output, short};
use clap::Args;
use serde_json::json;
use std::io::IsTerminal;
use std::time::SystemTime;
use taktwerk_crypto::certificate::{AwsLcVerifier, Certificate};
use taktwerk_pki::store::THUMBPRINT_DIGITS_MIN;
use taktwerk_pki::{Entry, Store};
use taktwerk_types::UtcTime;

/// Arguments of `taktwerk pki trust`.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// A file, or a thumbprint (at least its first 8 digits). Without it, the rejected certificates are listed and you
    /// are asked which one to trust.
    #[arg(value_name = "FILE|THUMBPRINT")]
    certificate: Option<String>,
}

/// Arguments of `taktwerk pki reject`.
#[derive(Debug, Args)]
pub(super) struct RejectArgs {
    /// A file, or the beginning of the thumbprint of a trusted certificate.
    #[arg(value_name = "FILE|THUMBPRINT")]
    certificate: String,
}

pub(super) fn trust(arguments: &TrustArgs, at: &StoreArgs, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let entry = match &arguments.certificate {
        Some(what) => at.find(&store, what)?,
        None => match ask(&store, at, output)? {
            Some(entry) => entry,
            None => {
                tell!("nothing was trusted");
                return Ok(());
            }
        },
    };
    store.create().map_err(|error| unusable(&store, &error))?;
    let path = store.trust(at.group(), &entry.certificate).map_err(|error| unusable(&store, &error))?;
    // Certificates sent by the peer complete the chain, but are not trusted. An issuer is certain only if it has
    // signed.
    let mut issuers = Vec::new();
    for issuer in entry.behind.iter().filter(|issuer| issuer.is_authority()) {
        store.add_issuer(at.group(), issuer).map_err(|error| unusable(&store, &error))?;
        issuers.push(issuer.subject_text());
    }
    if output.is_json() {
        return output.document(&json!({
            "Trusted": document(&entry.certificate, Some(&path)),
            "Issuers": issuers,
        }));
    }
    output.text(&format!(
        "trusted: {}\n         thumbprint {}\n         {}",
        entry.certificate.subject_text(),
        print_of(&entry.certificate),
        path.display()
    ))?;
    for issuer in issuers {
        output.text(&format!("issuer:  {issuer}"))?;
    }
    if let Some(authority) = vouches_for_others(&entry.certificate) {
        tell!("warning: {authority} is a certificate authority: all certificates that it issued are trusted");
    }
    Ok(())
}

/// Lists the rejected certificates and asks which one to trust. The answer must be digits of the thumbprint, not a
/// position in the list: a peer can be rejected at any time with any name, and only the thumbprint identifies it.
fn ask(store: &Store, at: &StoreArgs, output: Output) -> Result<Option<Entry>, Failure> {
    let refused = store.rejected(at.group(), &mut Vec::new());
    if refused.is_empty() {
        let root = store.root().display();
        return Err(Failure::Usage(format!("no certificate was refused in {root}: name a file")));
    }
    let list = listed(store, at, &refused);
    if output.is_json() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::Usage(format!(
            "name the thumbprint of the certificate to trust; refused in {}:\n{list}",
            store.root().display()
        )));
    }
    tell!("Refused in {}:\n{list}", store.root().display());
    tell!("Compare the thumbprint with the one on the other machine (there: taktwerk pki show).");
    tell_part!("Thumbprint to trust, {THUMBPRINT_DIGITS_MIN} digits or more (Enter for none): ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Failure::Environment(error.to_string()))?;
    let answer = answer.trim();
    if answer.is_empty() { Ok(None) } else { at.find(store, answer).map(Some) }
}

/// A list of certificates with thumbprint, subject, address, and the time of the last rejection.
fn listed(store: &Store, at: &StoreArgs, entries: &[Entry]) -> String {
    let addresses = store.rejected_addresses(at.group());
    let line = |entry: &Entry| {
        let thumbprint = entry.thumbprint();
        let address = addresses.get(&thumbprint).map(|address| format!("from {address}, "));
        let modified = std::fs::metadata(&entry.path).and_then(|metadata| metadata.modified());
        let since = modified.ok().and_then(|modified| modified.duration_since(SystemTime::UNIX_EPOCH).ok());
        let when = short(since.map(UtcTime::from_unix));
        let subject = entry.certificate.subject_text();
        format!("  {thumbprint}  {subject}\n    {}last refused {when}\n", address.unwrap_or_default())
    };
    entries.iter().map(line).collect()
}

fn vouches_for_others(certificate: &Certificate) -> Option<String> {
    let is_application = certificate.application_uri().is_some();
    (certificate.is_authority() && !is_application).then(|| certificate.subject_text())
}

pub(super) fn reject(arguments: &RejectArgs, at: &StoreArgs, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let entry = at.find(&store, &arguments.certificate)?;
    let was_trusted =
        store.reject(at.group(), &entry.certificate).map_err(|error| unusable(&store, &error))?;
    // The certificate is still trusted if its issuer is.
    let trust = store.trust_list(at.group(), &mut Vec::new());
    let by_issuer = trust
        .trusted()
        .find(|issuer| issuer.subject() == entry.certificate.issuer() && signed(issuer, &entry.certificate))
        .map(Certificate::subject_text);
    if output.is_json() {
        return output.document(&json!({
            "Rejected": document(&entry.certificate, None),
            "WasTrusted": was_trusted,
            "StillTrustedThrough": by_issuer,
        }));
    }
    let what = if was_trusted { "no longer trusted" } else { "was not trusted" };
    output.text(&format!("{what}: {}", entry.certificate.subject_text()))?;
    if let Some(issuer) = by_issuer {
        tell!(
            "warning: it is still accepted because its issuer {issuer} is trusted; only a revocation list of that \
             issuer, or no longer trusting the issuer, changes that"
        );
    }
    Ok(())
}

fn signed(issuer: &Certificate, certificate: &Certificate) -> bool {
    use taktwerk_crypto::certificate::SignatureVerifier;
    issuer != certificate
        && AwsLcVerifier
            .verify(
                certificate.signature_algorithm(),
                issuer.verifying_key(),
                certificate.signed_bytes(),
                certificate.signature(),
            )
            .is_ok()
}
