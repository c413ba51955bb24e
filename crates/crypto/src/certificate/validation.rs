//! Validation of a certificate in the order of Part 4 §6.1.3.
//!
//! Each step checks every certificate of the chain, the peer's own first, before the next step begins. The first
//! failure that is not suppressed determines the result. All failures, suppressed or not, become [`Finding`]s for the
//! audit. The specification leaves two points open: if an issuer's signature does not verify, the result is
//! Bad_CertificateInvalid (if the issuer is missing, Bad_CertificateChainIncomplete); a signature algorithm that the
//! library does not support fails the security policy check, which could not succeed anyway.

use super::chain::{self, split_chain};
use super::extensions::KeyUsage;
use super::key::{Hash, KeyKind};
use super::options::ValidationOptions;
use super::reason::Reason;
use super::step::Step;
use super::trust::TrustList;
use super::usage;
use super::verify::{CheckFailure, Checks, SignatureVerifier};
use super::x509::Certificate;
use crate::policy::{AsymmetricSignature, KeyExchange};
use crate::{CertificatePurpose, CertificateRefusal, SecurityPolicy};
use core::net::IpAddr;
use taktwerk_types::{StatusCode, UtcTime};

/// The inputs of a validation besides the certificate.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// The trust list.
    pub trust: &'a TrustList,
    /// Verifies signatures.
    pub verifier: &'a dyn SignatureVerifier,
    /// The failures to suppress.
    pub options: ValidationOptions,
    /// The time at which the certificate has to be valid.
    pub now: UtcTime,
    /// Continue after a failure, to find all problems (`taktwerk pki doctor`). The result does not change.
    pub exhaustive: bool,
}

/// The intended use of the certificate.
#[derive(Debug, Clone, Copy)]
pub struct ValidationRequest<'a> {
    /// Its purpose.
    pub purpose: &'a CertificatePurpose,
    /// The ApplicationUri that the peer reports, once known: must equal the only URI in the certificate.
    pub application_uri: Option<&'a str>,
    /// The policy whose key lengths and kinds apply; without one, those of any unbroken policy.
    pub policy: Option<SecurityPolicy>,
}

impl<'a> ValidationRequest<'a> {
    /// A request for a purpose, without ApplicationUri and policy.
    #[must_use]
    pub fn new(purpose: &'a CertificatePurpose) -> Self {
        Self { purpose, application_uri: None, policy: None }
    }
}

/// A failed step, as reported to the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The step.
    pub step: Step,
    /// Depth of the certificate: 0 is the peer's own, 1 its issuer, and so on.
    pub depth: usize,
    /// The status of the failure, for the local log.
    pub status: StatusCode,
    /// The reason.
    pub reason: Reason,
    /// Whether the options suppress it.
    pub suppressed: bool,
    /// Subject of the certificate, as text; empty if it could not be parsed.
    pub subject: String,
}

impl Finding {
    /// A sentence for the log: the certificate and what is wrong with it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let who = match (self.depth, self.subject.as_str()) {
            (0, "") => return format!("{}", self.reason),
            (0, subject) => format!("certificate {subject}"),
            (_, subject) => format!("issuer {subject}"),
        };
        format!("{who}: {}", self.reason)
    }
}

/// The result of a validation.
#[derive(Debug, Clone)]
pub struct ValidationReport {
    findings: Vec<Finding>,
    chain: Vec<Certificate>,
    signature_checks: u32,
}

impl ValidationReport {
    /// All failures in the order of the steps, including suppressed ones.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The failure that determines the result; `None` if the certificate is accepted.
    #[must_use]
    pub fn failure(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| !finding.suppressed)
    }

    /// The checked chain, from the peer's certificate to the root; shorter if it is incomplete.
    #[must_use]
    pub fn chain(&self) -> &[Certificate] {
        &self.chain
    }

    /// Number of signature checks: at most [`super::SIGNATURE_CHECKS_MAX`].
    #[must_use]
    pub fn signature_checks(&self) -> u32 {
        self.signature_checks
    }

    /// The result without details.
    ///
    /// # Errors
    /// The refusal, with the local status and reason. [`CertificateRefusal::external`] gives the status for the peer.
    pub fn outcome(&self) -> Result<(), CertificateRefusal> {
        match self.failure() {
            Some(finding) => Err(CertificateRefusal::new(finding.status, finding.sentence())),
            None => Ok(()),
        }
    }
}

/// The status a server returns when a certificate was refused with a local status (Part 4 §6.1.3, §5.7.3).
///
/// A user only gets the rejection of the token; an application gets [`CertificateRefusal::external`]. A client returns
/// no status: its user sees the local one.
#[must_use]
pub fn external_status(local: StatusCode, purpose: &CertificatePurpose) -> StatusCode {
    match purpose {
        CertificatePurpose::Server { .. } => local,
        CertificatePurpose::User { .. } => StatusCode::BAD_IDENTITY_TOKEN_REJECTED,
        _ => CertificateRefusal::new(local, "").external(),
    }
}

impl Validation<'_> {
    /// Validates the first certificate in `chain`; the following ones can complete its chain.
    #[must_use]
    pub fn run(&self, chain: &[u8], request: &ValidationRequest<'_>) -> ValidationReport {
        let mut run = Run {
            validation: self,
            request,
            checks: Checks::new(self.verifier),
            findings: Vec::new(),
            chain: Vec::new(),
        };
        // `None` means stopped at a failure. The findings contain the result either way.
        let _ = run.all_steps(chain);
        ValidationReport { findings: run.findings, signature_checks: run.checks.done(), chain: run.chain }
    }
}

struct Run<'a> {
    validation: &'a Validation<'a>,
    request: &'a ValidationRequest<'a>,
    checks: Checks<'a>,
    findings: Vec<Finding>,
    chain: Vec<Certificate>,
}

impl Run<'_> {
    /// Records a failure. `None` if the validation ends here.
    fn fail(&mut self, step: Step, depth: usize, reason: Reason, suppressed: bool) -> Option<()> {
        let subject = self.chain.get(depth).map(Certificate::subject_text).unwrap_or_default();
        let status = step.status(depth);
        self.findings.push(Finding { step, depth, status, reason, suppressed, subject });
        (suppressed || self.validation.exhaustive).then_some(())
    }

    fn all_steps(&mut self, bytes: &[u8]) -> Option<()> {
        let sent = match split_chain(bytes) {
            Ok(sent) => sent,
            Err(error) => {
                // Without a parsed certificate, no other step is possible.
                self.fail(Step::Structure, 0, Reason::Chain(error), false);
                return None;
            }
        };
        let built = chain::build(&sent, self.validation.trust, &mut self.checks);
        self.chain = built.chain;
        if let Some((step, depth, reason)) = built.fault {
            self.fail(step, depth, reason, false)?;
        }
        self.security_policy()?;
        self.trust_list()?;
        self.validity_period()?;
        self.host_name()?;
        self.uri()?;
        self.usage()?;
        self.find_revocation_lists()?;
        self.revocation()
    }

    fn security_policy(&mut self) -> Option<()> {
        let suppressed = self.validation.options.suppress_policy_check_failed;
        for depth in 0..self.chain.len() {
            if let Some(reason) = self.policy_violation(depth) {
                self.fail(Step::SecurityPolicy, depth, reason, suppressed)?;
            }
        }
        Some(())
    }

    fn policy_violation(&self, depth: usize) -> Option<Reason> {
        let certificate = self.chain.get(depth)?;
        // A user's key may be of another kind than the channel's policy uses.
        let policy = self.request.policy.filter(|_| !self.is_user());
        if let Some(reason) = key_violation(certificate.key(), policy) {
            return Some(reason);
        }
        if certificate.signature_algorithm().hash() == Some(Hash::Sha1) {
            return Some(Reason::HashTooWeak(Hash::Sha1));
        }
        let issuer = self.chain.get(depth + 1)?;
        let (bits, issuer_bits) = (certificate.key().bits(), issuer.key().bits());
        let comparable = certificate.key().is_rsa() == issuer.key().is_rsa();
        (comparable && bits > issuer_bits).then_some(Reason::IssuerKeyShorter { bits, issuer_bits })
    }

    fn trust_list(&mut self) -> Option<()> {
        let trust = self.validation.trust;
        if self.chain.iter().any(|certificate| trust.is_trusted(certificate)) {
            return Some(());
        }
        self.fail(Step::TrustList, 0, Reason::NotTrusted, false)
    }

    fn validity_period(&mut self) -> Option<()> {
        let Validation { options, now, .. } = *self.validation;
        for depth in 0..self.chain.len() {
            let Some(certificate) = self.chain.get(depth) else { break };
            let reason = if now < certificate.not_before() {
                Reason::NotYetValid(certificate.not_before())
            } else if now > certificate.not_after() {
                Reason::Expired(certificate.not_after())
            } else {
                continue;
            };
            let suppressed = match depth {
                0 => options.suppress_certificate_expired,
                _ => options.suppress_issuer_certificate_expired,
            };
            self.fail(Step::ValidityPeriod, depth, reason, suppressed)?;
        }
        Some(())
    }

    fn host_name(&mut self) -> Option<()> {
        let CertificatePurpose::Server { host_name } = self.request.purpose else { return Some(()) };
        let certificate = self.chain.first()?;
        if names_host(certificate, host_name) {
            return Some(());
        }
        let extensions = certificate.extensions();
        let mut names = extensions.dns_names.clone();
        names.extend(extensions.ip_addresses.iter().map(ToString::to_string));
        let reason = Reason::HostName { host: host_name.clone(), names };
        self.fail(Step::HostName, 0, reason, self.validation.options.suppress_host_name_invalid)
    }

    fn is_user(&self) -> bool {
        matches!(self.request.purpose, CertificatePurpose::User { .. })
    }

    fn uri(&mut self) -> Option<()> {
        if self.is_user() {
            return Some(());
        }
        match check_application_uri(self.chain.first()?, self.request.application_uri) {
            Ok(()) => Some(()),
            Err(reason) => self.fail(Step::Uri, 0, reason, false),
        }
    }

    fn usage(&mut self) -> Option<()> {
        for depth in 0..self.chain.len() {
            if let Some(misuse) = usage::check(&self.chain, depth, self.request.purpose) {
                let suppressed = !misuse.mandatory && self.validation.options.suppress_use_not_allowed;
                self.fail(Step::Usage, depth, misuse.reason, suppressed)?;
            }
        }
        Some(())
    }

    fn find_revocation_lists(&mut self) -> Option<()> {
        let options = self.validation.options;
        if options.disable_revocation_lists {
            return Some(());
        }
        for depth in 0..self.chain.len().saturating_sub(1) {
            if let Some(reason) = self.revocation_unknown(depth) {
                let suppressed = match depth {
                    0 => options.suppress_revocation_status_unknown,
                    _ => options.suppress_issuer_revocation_status_unknown,
                };
                self.fail(Step::FindRevocationList, depth, reason, suppressed)?;
            }
        }
        Some(())
    }

    /// `None` if the issuer of the certificate at `depth` has a current revocation list.
    fn revocation_unknown(&mut self, depth: usize) -> Option<Reason> {
        let issuer = self.chain.get(depth + 1)?.clone();
        let name = issuer.subject_text();
        let unusable = |why| Reason::RevocationListUnusable { issuer: name.clone(), why };
        let mut worst = Reason::NoRevocationList(name.clone());
        for list in self.validation.trust.lists_of(issuer.subject()) {
            let now = self.validation.now;
            worst = if list.unsupported().is_some() {
                unusable("it has a critical extension that is not supported")
            } else if !list.names_issuer(&issuer) {
                unusable("it was signed with another key of an issuer with that name")
            } else if issuer.extensions().key_usage.is_some_and(|usage| !usage.allows(KeyUsage::CRL_SIGN)) {
                unusable("the issuer may not sign revocation lists (cRLSign)")
            } else if list.signature_algorithm().hash() == Some(Hash::Sha1)
                && !self.validation.options.suppress_policy_check_failed
            {
                unusable("it is signed with SHA-1")
            } else if let Err(failure) = self.checks.list(list, &issuer) {
                unusable(match failure {
                    CheckFailure::Wrong => "its signature was not made by that issuer",
                    CheckFailure::Unsupported => "its signature algorithm is not supported",
                    CheckFailure::Spent => "too many signature checks are needed",
                })
            } else if now < list.this_update() {
                unusable("its issue time is in the future")
            } else {
                match list.next_update() {
                    Some(due) if now > due => Reason::RevocationListOutdated { issuer: name.clone(), due },
                    _ => return None,
                }
            };
        }
        Some(worst)
    }

    fn revocation(&mut self) -> Option<()> {
        for depth in 0..self.chain.len().saturating_sub(1) {
            if let Some(at) = self.revoked_at(depth) {
                self.fail(Step::Revocation, depth, Reason::Revoked(at), false)?;
            }
        }
        Some(())
    }

    /// When the certificate at `depth` was revoked. An outdated list still counts; a forged one does not.
    fn revoked_at(&mut self, depth: usize) -> Option<UtcTime> {
        let certificate = self.chain.get(depth)?.clone();
        let issuer = self.chain.get(depth + 1)?.clone();
        self.validation
            .trust
            .lists_of(issuer.subject())
            .iter()
            .filter(|list| list.unsupported().is_none() && list.names_issuer(&issuer))
            .filter_map(|list| list.revoked(certificate.serial()).map(|at| (list, at)))
            .find_map(|(list, at)| self.checks.list(list, &issuer).is_ok().then_some(at))
    }
}

/// Why a policy, or every unbroken policy, does not allow a key.
fn key_violation(key: KeyKind, policy: Option<SecurityPolicy>) -> Option<Reason> {
    let length = |bits, min, max| {
        let fits = (min..=max).contains(&bits);
        (!fits).then_some(Reason::KeyLength { bits, min, max })
    };
    let Some(policy) = policy else {
        return match key {
            KeyKind::Rsa { bits } => {
                let info = SecurityPolicy::Basic256Sha256.info();
                length(bits, info.key_bits_min, info.key_bits_max)
            }
            KeyKind::Unknown => Some(Reason::KeyKind(key)),
            _ => None,
        };
    };
    let info = policy.info();
    let fits = match (info.asymmetric_signature, info.key_exchange) {
        (AsymmetricSignature::None, _) => true,
        (_, KeyExchange::NistP256) => key == KeyKind::NistP256,
        (_, KeyExchange::NistP384) => key == KeyKind::NistP384,
        (_, KeyExchange::BrainpoolP256r1) => key == KeyKind::BrainpoolP256r1,
        (_, KeyExchange::BrainpoolP384r1) => key == KeyKind::BrainpoolP384r1,
        (_, KeyExchange::Curve25519) => key == KeyKind::Ed25519,
        (_, KeyExchange::Curve448) => key == KeyKind::Ed448,
        _ => key.is_rsa(),
    };
    match key {
        _ if !fits => Some(Reason::KeyKind(key)),
        KeyKind::Rsa { bits } if info.key_bits_max > 0 => length(bits, info.key_bits_min, info.key_bits_max),
        _ => None,
    }
}

/// Checks the ApplicationUri of a certificate: exactly one URI, which must equal `expected` if given (Part 4 §6.1.3,
/// Part 6 §6.2.2). Sessions call this with the URI from CreateSession.
///
/// # Errors
/// [`Reason::UriMissing`], [`Reason::UriAmbiguous`] or [`Reason::UriMismatch`]; the status is Bad_CertificateUriInvalid.
pub fn check_application_uri(certificate: &Certificate, expected: Option<&str>) -> Result<(), Reason> {
    match (certificate.extensions().uris.as_slice(), expected) {
        ([], _) => Err(Reason::UriMissing),
        ([found], Some(expected)) if found != expected => {
            Err(Reason::UriMismatch { found: found.clone(), expected: expected.to_owned() })
        }
        ([_], _) => Ok(()),
        (several, _) => Err(Reason::UriAmbiguous(several.len())),
    }
}

/// Whether a certificate is for the host of an endpoint URL. Wildcards are not supported (Part 4 §6.1.3).
#[must_use]
pub fn names_host(certificate: &Certificate, host: &str) -> bool {
    let extensions = certificate.extensions();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>()
        && extensions.ip_addresses.contains(&address)
    {
        return true;
    }
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    !bare.is_empty()
        && extensions
            .dns_names
            .iter()
            .any(|name| name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(bare))
}
