//! What is wrong with a certificate in one sentence, and the command that mends it.

use crate::OwnCertificate;
use crate::key::NewKey;
use crate::layout::thumbprint_text;
use std::path::Path;
use taktwerk_crypto::certificate::{Finding, Reason, Step, ValidationReport, thumbprint};
use taktwerk_types::UtcTime;

/// What a doctor needs to know to name commands that can be copied.
#[derive(Debug, Clone)]
pub struct Patient<'a> {
    /// The store's folder as the user wrote it.
    pub store: &'a Path,
    /// Whether it is the users' trust list.
    pub users: bool,
    /// The file in which the certificate lies, if it lies in one.
    pub file: Option<&'a Path>,
    /// The certificate's thumbprint.
    pub thumbprint: &'a str,
    /// If the certificate is our own: the kind of key that would take the place of its key.
    pub own: Option<NewKey>,
    /// Whether an authority has issued it: then only the authority can renew it.
    pub is_issued: bool,
}

/// A diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// One sentence: refused or accepted, and why.
    pub sentence: String,
    /// The command that mends it; `None` if no command of ours can.
    pub command: Option<String>,
    /// What somebody else has to do, where that is what it takes.
    pub advice: Option<String>,
}

/// The diagnosis for a report.
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
        [only] => format!("The certificate is accepted, although {}.", only.reason),
        several => format!("The certificate is accepted, although {} things are overlooked.", several.len()),
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
            "Refused here, which does not matter: this is our own certificate. Those we talk to have to trust it."
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

/// What helps: a command, somebody else's work, or both.
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
            (None, Some(format!("bring {what} to the other machine and run there: taktwerk pki trust FILE")))
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
            advice("the revocation list in the store is of no use; get another one from the authority"),
        ),
        Reason::Expired(_) | Reason::KeyLength { .. } | Reason::HashTooWeak(_) | Reason::KeyKind(_)
            if finding.depth == 0 && patient.own.is_some() =>
        {
            (renew(""), None)
        }
        Reason::HostName { host, .. } if patient.own.is_some() => (renew(&format!(" --host {host}")), None),
        Reason::HostName { names, .. } => match names.first() {
            Some(name) => {
                (None, Some(format!("dial the server by a name in its certificate, for example {name}")))
            }
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
        Reason::Revoked(_) => {
            (None, advice("its issuer no longer vouches for it; its owner has to get a new one"))
        }
        Reason::Chain(_) => (None, advice("this is not what a certificate looks like; get a fresh copy")),
        _ => (None, advice(ask)),
    }
}

/// Names the certificate that is meant among several of ours.
fn kind(patient: &Patient<'_>) -> String {
    patient.own.map_or(String::new(), |key| format!(" --key {key}"))
}

fn options(patient: &Patient<'_>) -> String {
    let users = if patient.users { " --users" } else { "" };
    format!("{users} --pki {}", patient.store.display())
}

/// A warning if the certificate will expire within 30 days, and the command that mends it for one of ours.
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
        "the authority that issued it signs the request; bring its answer home with \
                                 taktwerk pki import --own"
            .to_owned()
    });
    Some(Diagnosis { sentence, command, advice })
}

/// A warning about a certificate of our own that has expired, or will within 30 days, and the command that mends it.
#[must_use]
pub fn own_expiry(own: &OwnCertificate, store: &Path, now: UtcTime) -> Option<Diagnosis> {
    let thumbprint = thumbprint_text(&thumbprint(own.certificate.der()));
    let patient = Patient {
        store,
        users: false,
        file: Some(&own.path),
        thumbprint: &thumbprint,
        // A key that we would not make is none that we use.
        own: Some(NewKey::like(own.key.kind()).unwrap_or_default()),
        is_issued: !own.certificate.is_self_issued(),
    };
    let end = own.certificate.not_after();
    if end > now {
        return expires_soon(end, now, &patient);
    }
    // What it says otherwise is for one that is about to.
    let mended = expires_soon(now, now, &patient)?;
    Some(Diagnosis { sentence: format!("It expired at {end}: peers reject it."), ..mended })
}

/// The command that asks an authority for a new certificate.
fn request(patient: &Patient<'_>, more: &str) -> Option<String> {
    Some(format!("taktwerk pki csr --out request.csr{}{more}{}", kind(patient), options(patient)))
}
