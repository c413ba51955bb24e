//! Explains in one sentence what is wrong with a certificate, and names the command that corrects it.

use crate::OwnCertificate;
use crate::key::NewKey;
use crate::layout::thumbprint_text;
use std::path::Path;
use taktwerk_crypto::certificate::{Finding, Reason, Step, ValidationReport, thumbprint};
use taktwerk_types::UtcTime;

/// The context that is needed to name a complete command.
#[derive(Debug, Clone)]
pub struct Patient<'a> {
    /// The store's directory as the user wrote it.
    pub store: &'a Path,
    /// Whether the certificate belongs to the users' trust list.
    pub users: bool,
    /// The file of the certificate, if there is one.
    pub file: Option<&'a Path>,
    /// The certificate's thumbprint.
    pub thumbprint: &'a str,
    /// For our own certificate: the kind of key that would replace its key.
    pub own: Option<NewKey>,
    /// Whether an authority issued the certificate. Then only the authority can renew it.
    pub is_issued: bool,
}

/// A diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// One sentence: rejected or accepted, and why.
    pub sentence: String,
    /// The command that corrects it; `None` if no `taktwerk` command can.
    pub command: Option<String>,
    /// What another person has to do, if necessary.
    pub advice: Option<String>,
}

/// Explains a validation report.
#[must_use]
pub fn diagnose(report: &ValidationReport, patient: &Patient<'_>) -> Diagnosis {
    match report.failure() {
        Some(finding) => refused(finding, patient),
        None => accepted(report),
    }
}

fn accepted(report: &ValidationReport) -> Diagnosis {
    let sentence = match report.findings() {
        [] => "The certificate is accepted.".to_owned(),
        [only] => {
            format!("The certificate is accepted, with a fault that the options ignore: {}.", only.reason)
        }
        several => {
            format!("The certificate is accepted, with {} faults that the options ignore.", several.len())
        }
    };
    Diagnosis { sentence, command: None, advice: None }
}

fn refused(finding: &Finding, patient: &Patient<'_>) -> Diagnosis {
    let who = if finding.depth == 0 {
        "the certificate".to_owned()
    } else {
        format!("its issuer {}", finding.subject)
    };
    let sentence = match finding.step {
        Step::TrustList if patient.own.is_some() => {
            "Not in our own trust list, which is normal: this is our own certificate. The other applications must trust it."
                .to_owned()
        }
        Step::TrustList => {
            "Rejected: the certificate is not trusted: neither it nor any of its issuers is in trusted/certs."
                .to_owned()
        }
        _ => format!("Refused: {who} fails the check of the {}: {}.", finding.step, finding.reason),
    };
    let (command, advice) = cure(finding, patient);
    Diagnosis { sentence, command, advice }
}

/// How to correct a finding: a command, advice for another person, or both.
fn cure(finding: &Finding, patient: &Patient<'_>) -> (Option<String>, Option<String>) {
    let command = |rest: String| Some(format!("taktwerk pki {rest}{}", options(patient)));
    let advice = |text: &str| Some(text.to_owned());
    let renew = |options: &str| match patient.is_issued {
        false => command(format!("init --renew{}{options}", kind(patient))),
        true => request(patient, options),
    };
    let ask = "its owner has to get a new certificate";
    match &finding.reason {
        Reason::NotTrusted if patient.own.is_some() => {
            let what = patient.file.map_or(patient.thumbprint.to_owned(), |file| file.display().to_string());
            (None, Some(format!("copy {what} to the other machine and run there: taktwerk pki trust FILE")))
        }
        Reason::NotTrusted => {
            let what = patient.file.map_or(patient.thumbprint.to_owned(), |file| file.display().to_string());
            (
                command(format!("trust {what}")),
                advice("compare the thumbprint with the one on the other machine first"),
            )
        }
        Reason::IssuerNotFound(_) => (
            command("import --issuer ISSUER.der".to_owned()),
            advice("ISSUER.der is the certificate of that authority; get it from its operator"),
        ),
        Reason::NoRevocationList(_) | Reason::RevocationListOutdated { .. } => (
            command("import LIST.crl".to_owned()),
            advice("LIST.crl is the current revocation list of that authority; get it from its operator"),
        ),
        Reason::RevocationListUnusable { .. } => (
            command("import LIST.crl".to_owned()),
            advice("the revocation list in the store is unusable; get another one from the authority"),
        ),
        Reason::Expired(_) | Reason::KeyLength { .. } | Reason::HashTooWeak(_) | Reason::KeyKind(_)
            if finding.depth == 0 && patient.own.is_some() =>
        {
            (renew(""), None)
        }
        Reason::HostName { host, .. } if patient.own.is_some() => (renew(&format!(" --host {host}")), None),
        Reason::HostName { names, .. } => match names.first() {
            Some(name) => (
                None,
                Some(format!("connect to the server by a name in its certificate, for example {name}")),
            ),
            None => (None, advice("the server needs a certificate that names its host")),
        },
        Reason::NotYetValid(_) => (None, advice("compare the clocks of both machines")),
        Reason::Expired(_) if finding.depth > 0 => {
            (None, advice("the authority has to renew its own certificate"))
        }
        Reason::UriMismatch { found, .. } if patient.own.is_some() => {
            (renew(""), Some(format!("or run the application with the ApplicationUri {found}")))
        }
        Reason::UriMissing
        | Reason::UriAmbiguous(_)
        | Reason::KeyUsageMissing
        | Reason::KeyUsageLacks(_)
        | Reason::ExtendedKeyUsageMissing
        | Reason::ExtendedKeyUsageLacks(_)
        | Reason::IsAuthority
            if finding.depth == 0 && patient.own.is_some() =>
        {
            (renew(""), None)
        }
        Reason::SignatureWrong(_) => (
            None,
            advice(
                "the certificate was altered, or another authority has the same name; get a fresh copy of both",
            ),
        ),
        Reason::Revoked(_) => (None, advice("its issuer revoked it; its owner has to get a new one")),
        Reason::Chain(_) => (None, advice("the certificate is malformed; get a fresh copy")),
        _ => (None, advice(ask)),
    }
}

/// The option that selects one of several own certificates.
fn kind(patient: &Patient<'_>) -> String {
    patient.own.map_or(String::new(), |key| format!(" --key {key}"))
}

fn options(patient: &Patient<'_>) -> String {
    let users = if patient.users { " --users" } else { "" };
    format!("{users} --pki {}", patient.store.display())
}

/// A warning if the certificate expires within 30 days; for our own certificate with the command that renews it.
#[must_use]
pub fn expires_soon(not_after: UtcTime, now: UtcTime, patient: &Patient<'_>) -> Option<Diagnosis> {
    let left = (not_after.unix_nanos() - now.unix_nanos()) / 1_000_000_000;
    if !(0..30 * 86_400).contains(&left) {
        return None;
    }
    let sentence = format!("It expires in {} days, at {not_after}.", left / 86_400);
    let command = patient.own.and_then(|_| match patient.is_issued {
        false => Some(format!("taktwerk pki init --renew{}{}", kind(patient), options(patient))),
        true => request(patient, ""),
    });
    let advice = patient.own.filter(|_| patient.is_issued);
    let advice = advice.map(|_| {
        "the authority that issued it signs the request; import the signed certificate with \
                                 taktwerk pki import --own"
            .to_owned()
    });
    Some(Diagnosis { sentence, command, advice })
}

/// A warning if our own certificate has expired or expires within 30 days, with the command that renews it.
#[must_use]
pub fn own_expiry(own: &OwnCertificate, store: &Path, now: UtcTime) -> Option<Diagnosis> {
    let thumbprint = thumbprint_text(&thumbprint(own.certificate.der()));
    let patient = Patient {
        store,
        users: false,
        file: Some(&own.path),
        thumbprint: &thumbprint,
        // If the kind of key is unsupported, suggest the default.
        own: Some(NewKey::like(own.key.kind()).unwrap_or_default()),
        is_issued: !own.certificate.is_self_issued(),
    };
    let end = own.certificate.not_after();
    if end > now {
        return expires_soon(end, now, &patient);
    }
    // Only the sentence differs from the warning about a certificate that expires soon.
    let mended = expires_soon(now, now, &patient)?;
    Some(Diagnosis { sentence: format!("It expired at {end}: peers reject it."), ..mended })
}

/// The command that creates a request for a new certificate.
fn request(patient: &Patient<'_>, more: &str) -> Option<String> {
    Some(format!("taktwerk pki csr --out request.csr{}{more}{}", kind(patient), options(patient)))
}
