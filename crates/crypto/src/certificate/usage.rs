//! The step "certificate usage": whether the key may be used for its purpose (Part 6 §6.2.2 to §6.2.4).

use super::extensions::KeyUsage;
use super::reason::Reason;
use super::x509::Certificate;
use crate::CertificatePurpose;

/// A use that is not allowed.
pub(super) struct Misuse {
    pub(super) reason: Reason,
    /// Whether the failure must not be suppressed.
    pub(super) mandatory: bool,
}

impl Misuse {
    fn mandatory(reason: Reason) -> Self {
        Self { reason, mandatory: true }
    }

    fn optional(reason: Reason) -> Self {
        Self { reason, mandatory: false }
    }
}

/// The first misuse of the certificate at `depth` of a chain; 0 is the certificate being validated.
pub(super) fn check(chain: &[Certificate], depth: usize, purpose: &CertificatePurpose) -> Option<Misuse> {
    let certificate = chain.get(depth)?;
    if let Some(id) = &certificate.extensions().unknown_critical {
        return Some(Misuse::mandatory(Reason::CriticalExtension(id.clone())));
    }
    match depth {
        0 => match purpose {
            CertificatePurpose::User { .. } => user(certificate),
            CertificatePurpose::Server { .. } => application(certificate, "serverAuth"),
            _ => application(certificate, "clientAuth"),
        },
        _ => issuer(certificate, depth - 1),
    }
}

fn application(certificate: &Certificate, role: &'static str) -> Option<Misuse> {
    authority_as_leaf(certificate)
        .or_else(|| {
            // RSA policies sign and encrypt with the certificate's key; others only sign (Part 6 §6.2.2).
            let signs = KeyUsage::DIGITAL_SIGNATURE;
            let encrypts = KeyUsage::KEY_ENCIPHERMENT | KeyUsage::DATA_ENCIPHERMENT;
            let all = signs | KeyUsage::NON_REPUDIATION | encrypts;
            key_usage(certificate, if certificate.key().is_rsa() { all } else { signs })
        })
        .or_else(|| {
            let Some(usage) = certificate.extensions().extended_key_usage else {
                return Some(Misuse::optional(Reason::ExtendedKeyUsageMissing));
            };
            let allowed = if role == "serverAuth" { usage.server_auth } else { usage.client_auth };
            let reason = Reason::ExtendedKeyUsageLacks(role);
            (!allowed).then_some(Misuse { reason, mandatory: usage.critical })
        })
}

/// A user certificate must allow signing, which it does without a keyUsage extension (RFC 5280 §4.2.1.3). Its
/// extendedKeyUsage is checked only if critical. The requirements for application certificates (Part 6 §6.2.2) do not
/// apply.
fn user(certificate: &Certificate) -> Option<Misuse> {
    // Common tools mark self-signed user certificates as authorities, and they name no application. This is safe:
    // whoever has the key of a trusted self-signed certificate could issue another to themselves anyway.
    let authority = authority_as_leaf(certificate).filter(|_| !certificate.is_self_issued());
    let signs = || key_usage(certificate, KeyUsage::DIGITAL_SIGNATURE);
    let signs = || signs().filter(|misuse| !matches!(misuse.reason, Reason::KeyUsageMissing));
    authority.or_else(signs).or_else(|| {
        let usage = certificate.extensions().extended_key_usage.filter(|usage| usage.critical)?;
        let reason = Reason::ExtendedKeyUsageLacks("clientAuth");
        (!usage.client_auth).then_some(Misuse::mandatory(reason))
    })
}

/// Many stacks mark self-signed application certificates as authorities. These are accepted for the application itself,
/// and [`issuer`] prevents them from issuing others. Certificates issued by an authority must not be marked.
fn authority_as_leaf(certificate: &Certificate) -> Option<Misuse> {
    let is_ca = certificate.extensions().basic_constraints.is_some_and(|constraints| constraints.is_ca);
    let tolerated = certificate.is_self_issued() && certificate.application_uri().is_some();
    (is_ca && !tolerated).then(|| Misuse::mandatory(Reason::IsAuthority))
}

fn key_usage(certificate: &Certificate, needed: u16) -> Option<Misuse> {
    let Some(usage) = certificate.extensions().key_usage else {
        return Some(Misuse::optional(Reason::KeyUsageMissing));
    };
    let lacking = Reason::KeyUsageLacks(usage.lacking(needed));
    (!usage.allows(needed)).then_some(Misuse { reason: lacking, mandatory: usage.critical })
}

fn issuer(certificate: &Certificate, authorities_below: usize) -> Option<Misuse> {
    let extensions = certificate.extensions();
    let Some(constraints) = extensions.basic_constraints.filter(|constraints| constraints.is_ca) else {
        return Some(Misuse::mandatory(Reason::NotAuthority));
    };
    if let Some(uri) = extensions.uris.first() {
        return Some(Misuse::mandatory(Reason::IsApplication(uri.clone())));
    }
    if extensions.name_constraints {
        return Some(Misuse::mandatory(Reason::NameConstraints));
    }
    if let Some(allowed) = constraints.path_len
        && usize::try_from(allowed).is_ok_and(|allowed| authorities_below > allowed)
    {
        return Some(Misuse::mandatory(Reason::PathLength { allowed, found: authorities_below }));
    }
    key_usage(certificate, KeyUsage::KEY_CERT_SIGN)
}
