//! The table of cases: sent chain, known certificates, expected result.

use crate::forge::{Role, URI, now};
use taktwerk_crypto::SecurityPolicy;
use taktwerk_crypto::certificate::{
    AwsLcVerifier, Certificate, RevocationList, SIGNATURE_CHECKS_MAX, Step, TrustList, Validation,
    ValidationOptions, ValidationRequest, external_status,
};
use taktwerk_types::StatusCode;

/// The expected result: the local status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Good,
    Invalid,
    ChainIncomplete,
    PolicyCheckFailed,
    Untrusted,
    TimeInvalid,
    IssuerTimeInvalid,
    HostNameInvalid,
    UriInvalid,
    UseNotAllowed,
    IssuerUseNotAllowed,
    RevocationUnknown,
    IssuerRevocationUnknown,
    Revoked,
    IssuerRevoked,
}

impl Expect {
    /// The status in the local log, and the status that a server sends to its client (Part 4 §6.1.3).
    fn statuses(self) -> (StatusCode, StatusCode) {
        const CHECKS: StatusCode = StatusCode::BAD_SECURITY_CHECKS_FAILED;
        match self {
            Self::Good => (StatusCode::GOOD, StatusCode::GOOD),
            Self::Invalid => (StatusCode::BAD_CERTIFICATE_INVALID, CHECKS),
            Self::ChainIncomplete => (StatusCode::BAD_CERTIFICATE_CHAIN_INCOMPLETE, CHECKS),
            Self::PolicyCheckFailed => (StatusCode::BAD_CERTIFICATE_POLICY_CHECK_FAILED, CHECKS),
            Self::Untrusted => (StatusCode::BAD_CERTIFICATE_UNTRUSTED, CHECKS),
            Self::TimeInvalid => same(StatusCode::BAD_CERTIFICATE_TIME_INVALID),
            Self::IssuerTimeInvalid => same(StatusCode::BAD_CERTIFICATE_ISSUER_TIME_INVALID),
            Self::HostNameInvalid => same(StatusCode::BAD_CERTIFICATE_HOST_NAME_INVALID),
            Self::UriInvalid => same(StatusCode::BAD_CERTIFICATE_URI_INVALID),
            Self::UseNotAllowed => same(StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED),
            Self::IssuerUseNotAllowed => same(StatusCode::BAD_CERTIFICATE_ISSUER_USE_NOT_ALLOWED),
            Self::RevocationUnknown => (StatusCode::BAD_CERTIFICATE_REVOCATION_UNKNOWN, CHECKS),
            Self::IssuerRevocationUnknown => (StatusCode::BAD_CERTIFICATE_ISSUER_REVOCATION_UNKNOWN, CHECKS),
            Self::Revoked => (StatusCode::BAD_CERTIFICATE_REVOKED, CHECKS),
            Self::IssuerRevoked => (StatusCode::BAD_CERTIFICATE_ISSUER_REVOKED, CHECKS),
        }
    }
}

fn same(status: StatusCode) -> (StatusCode, StatusCode) {
    (status, status)
}

/// One case of the table.
pub(crate) struct Case {
    name: String,
    role: Role,
    sent: Vec<u8>,
    trust: TrustList,
    options: ValidationOptions,
    uri: Option<String>,
    policy: Option<SecurityPolicy>,
    /// Failing steps that the options suppress.
    overlooked: Vec<Step>,
}

impl Case {
    pub(crate) fn new(name: &str, role: Role, sent: &[u8]) -> Self {
        Self {
            name: format!("{name} ({role:?})"),
            role,
            sent: sent.to_vec(),
            trust: TrustList::new(),
            options: ValidationOptions::default(),
            uri: (role != Role::User).then(|| URI.to_owned()),
            policy: None,
            overlooked: Vec::new(),
        }
    }

    pub(crate) fn trust(mut self, der: &[u8]) -> Self {
        self.trust.trust(Certificate::from_der(der).unwrap());
        self
    }

    pub(crate) fn issuer(mut self, der: &[u8]) -> Self {
        self.trust.add_issuer(Certificate::from_der(der).unwrap());
        self
    }

    pub(crate) fn list(mut self, der: &[u8]) -> Self {
        self.trust.add_revocation_list(RevocationList::from_der(der).unwrap());
        self
    }

    pub(crate) fn options(mut self, change: impl FnOnce(&mut ValidationOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(crate) fn uri(mut self, uri: Option<&str>) -> Self {
        self.uri = uri.map(str::to_owned);
        self
    }

    pub(crate) fn policy(mut self, policy: SecurityPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Expects a step that fails and is suppressed, but reported.
    pub(crate) fn overlooked(mut self, step: Step) -> Self {
        self.overlooked.push(step);
        self
    }
}

/// The cases of one test, and the wrong results.
#[derive(Default)]
pub(crate) struct Table {
    count: usize,
    wrong: Vec<String>,
}

impl Table {
    /// Runs a case.
    pub(crate) fn check(&mut self, case: Case, expect: Expect) {
        self.count += 1;
        let purpose = case.role.purpose();
        let request = ValidationRequest {
            purpose: &purpose,
            application_uri: case.uri.as_deref(),
            policy: case.policy,
        };
        let validation = Validation {
            trust: &case.trust,
            verifier: &AwsLcVerifier,
            options: case.options,
            now: now(),
            exhaustive: false,
        };
        let report = validation.run(&case.sent, &request);
        let local = report.outcome().map_or_else(|refusal| refusal.status(), |()| StatusCode::GOOD);
        let external = if local.is_good() { local } else { external_status(local, &purpose) };
        let (local_wanted, told_to_clients) = expect.statuses();
        let external_wanted = match case.role {
            _ if expect == Expect::Good => StatusCode::GOOD,
            // A client reports the reason to its user, a server hides it from its client; nothing is told about a user's
            // certificate.
            Role::Server => local_wanted,
            Role::Client => told_to_clients,
            Role::User => StatusCode::BAD_IDENTITY_TOKEN_REJECTED,
        };
        let overlooked: Vec<Step> =
            report.findings().iter().filter(|it| it.suppressed).map(|it| it.step).collect();
        let mut faults = Vec::new();
        if local != local_wanted {
            faults.push(format!("local {local}, not {local_wanted}"));
        }
        if external != external_wanted {
            faults.push(format!("external {external}, not {external_wanted}"));
        }
        if overlooked != case.overlooked {
            faults.push(format!("overlooked {overlooked:?}, not {:?}", case.overlooked));
        }
        if report.signature_checks() > SIGNATURE_CHECKS_MAX {
            faults.push(format!("{} signature checks", report.signature_checks()));
        }
        // The deciding finding is the last one and unsuppressed, with an audit event and a text.
        let decided = report.findings().iter().filter(|it| !it.suppressed).count();
        let last = report.findings().last();
        if expect != Expect::Good
            && (decided != 1 || last.is_none_or(|it| it.status != local || it.sentence().is_empty()))
        {
            faults.push(format!("findings {:?}", report.findings()));
        }
        // An exhaustive validation comes to the same decision.
        let all = Validation { exhaustive: true, ..validation }.run(&case.sent, &request);
        if all.failure().map(|it| it.status) != report.failure().map(|it| it.status) {
            faults.push(format!("exhaustively {:?}", all.findings()));
        }
        if !faults.is_empty() {
            let reason = report.failure().map(|it| it.sentence()).unwrap_or_default();
            self.wrong.push(format!("{}: {} [{reason}]", case.name, faults.join("; ")));
        }
    }

    /// Ends the test: fails on wrong results or too few cases.
    pub(crate) fn finish(self, at_least: usize) {
        assert!(self.wrong.is_empty(), "{} of {}:\n{}", self.wrong.len(), self.count, self.wrong.join("\n"));
        assert!(self.count >= at_least, "only {} cases", self.count);
    }
}
