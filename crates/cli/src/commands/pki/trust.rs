//! `taktwerk pki trust` and `reject`.

use super::{Place, document, print_of, unusable};
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use serde_json::json;
use taktwerk_crypto::certificate::{AwsLcVerifier, Certificate};

/// Arguments of `taktwerk pki trust`.
#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    /// A file, or the beginning of the thumbprint of a certificate in the store; the last refused one without it.
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

pub(super) fn trust(arguments: &TrustArgs, at: &Place, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let entry = match &arguments.certificate {
        Some(what) => at.find(&store, what)?,
        None => store.rejected(at.group(), &mut Vec::new()).into_iter().next().ok_or_else(|| {
            Failure::Usage(format!("nobody was refused in {}: name a file", store.root().display()))
        })?,
    };
    store.create().map_err(|error| unusable(&store, &error))?;
    let path = store.trust(at.group(), &entry.certificate).map_err(|error| unusable(&store, &error))?;
    // What the peer sent along completes the chain, but is not trusted: so much is sure only if it signed.
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
        tell!("warning: {authority} is a certificate authority: everybody whom it certifies is trusted");
    }
    Ok(())
}

fn vouches_for_others(certificate: &Certificate) -> Option<String> {
    let is_application = certificate.application_uri().is_some();
    (certificate.is_authority() && !is_application).then(|| certificate.subject_text())
}

pub(super) fn reject(arguments: &RejectArgs, at: &Place, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let entry = at.find(&store, &arguments.certificate)?;
    let was_trusted =
        store.reject(at.group(), &entry.certificate).map_err(|error| unusable(&store, &error))?;
    // Its issuers may be trusted, and then it still is.
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
