//! `taktwerk pki doctor`: explains why a certificate is refused, and which command fixes it.

use super::{StoreArgs, document, print_of, problems_document, warn};
use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::security;
use crate::session::{self, policy_name};
use clap::{Args, Parser, ValueEnum};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::SystemTime;
use taktwerk_client::endpoint_rank;
use taktwerk_config::file;
use taktwerk_crypto::CertificatePurpose;
use taktwerk_crypto::certificate::{Certificate, ValidationOptions, ValidationReport, ValidationRequest};
use taktwerk_pki::doctor::{Diagnosis, Patient, diagnose, expires_soon};
use taktwerk_pki::store::THUMBPRINT_DIGITS_MIN;
use taktwerk_pki::{
    ContentError, NewKey, OwnCertificate, Store, StoreValidator, encoding, first_certificate,
};
use taktwerk_schema::EndpointDescription;
use taktwerk_types::{StatusCode, UtcTime};

/// Arguments of `taktwerk pki doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// A file, the beginning of a thumbprint, or a server's URL or host[:port]. Default: the last rejected certificate.
    #[arg(value_name = "FILE|THUMBPRINT|URL")]
    what: Option<String>,

    /// With a server: the certificate that it presents with this SecurityPolicy. Default: the strongest that both sides
    /// support (best). A server may have one certificate for RSA and another one for curves.
    #[arg(long, value_name = "POLICY", env = "TAKTWERK_POLICY")]
    policy: Option<String>,

    /// Use of the certificate. Default: client for the store of a server, else server.
    #[arg(long = "as", value_name = "ROLE")]
    role: Option<Role>,

    /// Host name that clients connect to.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// ApplicationUri that the application claims.
    #[arg(long, value_name = "URI")]
    uri: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Client,
    Server,
    User,
}

/// The certificate under examination.
struct Case {
    chain: Vec<u8>,
    file: Option<PathBuf>,
    host: Option<String>,
    uri: Option<String>,
    url: Option<String>,
}

/// Connection options, parsed from a command line that this module builds.
#[derive(Parser)]
struct Dial {
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(arguments: &DoctorArgs, at: &StoreArgs, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    let case = case(arguments, at, &store)?;
    let Some(certificate) = first_certificate(&case.chain) else {
        return broken(&case, &store, output);
    };
    let role = arguments.role.unwrap_or(match (at.users, at.serve) {
        (true, _) => Role::User,
        (_, true) if case.url.is_none() => Role::Client,
        _ => Role::Server,
    });
    let purpose = purpose(role, arguments.host.clone().or(case.host.clone()), &certificate);
    let uri = arguments.uri.as_deref().or(case.uri.as_deref());
    let request = ValidationRequest { application_uri: uri, ..ValidationRequest::new(&purpose) };
    let mut problems = Vec::new();
    let own = store.own(&mut problems).iter().find(|own| own.certificate == certificate).map(|own| {
        // Kinds of keys that are not created are not used either.
        NewKey::like(own.key.kind()).unwrap_or_default()
    });
    // Reads the trust list, and reports invalid files in it.
    store.trust_list(at.group(), &mut problems);
    let validator = StoreValidator::new(store.clone(), ValidationOptions::default());
    let report = validator.report(&case.chain, &request, true);
    let thumbprint = print_of(&certificate);
    let patient = Patient {
        store: store.root(),
        users: at.users || matches!(role, Role::User),
        file: case.file.as_deref(),
        thumbprint: &thumbprint,
        own,
        is_issued: !certificate.is_self_issued(),
    };
    let file =
        if case.url.is_some() && report.failure().is_some() { keep(&store, at, &case.chain) } else { None };
    let patient = Patient { file: patient.file.or(file.as_deref()), ..patient };
    let diagnosis = diagnose(&report, &patient);
    let soon = expires_soon(certificate.not_after(), now(), &patient);
    if output.is_json() {
        output.document(&json!({
            "Accepted": report.failure().is_none(),
            "Status": report.failure().map_or(StatusCode::GOOD, |finding| finding.status).to_string(),
            "Diagnosis": diagnosis.sentence,
            "Command": diagnosis.command,
            "Advice": diagnosis.advice,
            "ExpiresSoon": soon.as_ref().map(|soon| &soon.sentence),
            "RenewalCommand": soon.as_ref().and_then(|soon| soon.command.as_ref()),
            "Certificate": document(&certificate, patient.file),
            "Findings": findings(&report),
            "Problems": problems_document(&problems),
        }))?;
    } else {
        examine(&certificate, &report, &diagnosis, soon.as_ref(), output)?;
        warn(&problems);
    }
    refused(&report)
}

/// The exit code depends on whether the certificate is accepted.
fn refused(report: &ValidationReport) -> Result<(), Failure> {
    match report.failure() {
        Some(finding) => Err(Failure::Connect(format!("the certificate is refused: {}", finding.status))),
        None => Ok(()),
    }
}

fn examine(
    certificate: &Certificate,
    report: &ValidationReport,
    diagnosis: &Diagnosis,
    soon: Option<&Diagnosis>,
    output: Output,
) -> Result<(), Failure> {
    output.text(&format!("{}, thumbprint {}", certificate.subject_text(), print_of(certificate)))?;
    prescribe(diagnosis, output)?;
    let decided = report.failure();
    let others: Vec<_> = report.findings().iter().filter(|finding| Some(*finding) != decided).collect();
    if !others.is_empty() {
        output.text("Besides:")?;
        for finding in others {
            output.text(&format!("  {}: {}", finding.status, finding.sentence()))?;
        }
    }
    soon.map_or(Ok(()), |soon| prescribe(soon, output))
}

fn prescribe(diagnosis: &Diagnosis, output: Output) -> Result<(), Failure> {
    output.text(&diagnosis.sentence)?;
    if let Some(command) = &diagnosis.command {
        output.text(&format!("  {command}"))?;
    }
    diagnosis.advice.as_ref().map_or(Ok(()), |advice| output.text(&format!("  ({advice})")))
}

/// Diagnoses bytes that are not a certificate.
fn broken(case: &Case, store: &Store, output: Output) -> Result<(), Failure> {
    let validator = StoreValidator::new(store.clone(), ValidationOptions::default());
    let purpose = CertificatePurpose::Client { address: None };
    let report = validator.report(&case.chain, &ValidationRequest::new(&purpose), true);
    let patient = Patient {
        store: store.root(),
        users: false,
        file: case.file.as_deref(),
        thumbprint: "",
        own: None,
        is_issued: false,
    };
    let mut diagnosis = diagnose(&report, &patient);
    if let (Some(file), Err(error)) = (&case.file, encoding::certificates(&case.chain)) {
        diagnosis.sentence = format!("Refused: {}: {error}.", file.display());
        if matches!(error, ContentError::Foreign(_)) {
            diagnosis.advice = None;
        }
    }
    if output.is_json() {
        output.document(&json!({
            "Accepted": false,
            "Diagnosis": diagnosis.sentence,
            "Advice": diagnosis.advice,
            "Findings": findings(&report),
        }))?;
    } else {
        prescribe(&diagnosis, output)?;
    }
    refused(&report)
}

fn findings(report: &ValidationReport) -> Value {
    let one = |finding: &taktwerk_crypto::certificate::Finding| {
        json!({
            "Step": finding.step.to_string(),
            "Status": finding.status.to_string(),
            "Depth": finding.depth,
            "Reason": finding.sentence(),
            "AuditEventType": finding.step.audit_event_type(),
            "Suppressed": finding.suppressed,
        })
    };
    report.findings().iter().map(one).collect()
}

/// Largest file that is examined, in bytes. Chains are much smaller.
const CASE_LEN_MAX: u64 = 1 << 20;

fn case(arguments: &DoctorArgs, at: &StoreArgs, store: &Store) -> Result<Case, Failure> {
    let Some(what) = &arguments.what else {
        let refused = store.rejected(at.group(), &mut Vec::new());
        if refused.len() > 1 {
            tell!(
                "note: {} certificates were refused; this is about the last one. taktwerk pki show lists all",
                refused.len()
            );
        }
        let last = refused.into_iter().next().ok_or_else(|| {
            Failure::Usage(format!(
                "no certificate was rejected in {}: name a file, a thumbprint or a server's URL",
                store.root().display()
            ))
        })?;
        return Ok(Case { chain: last.chain(), file: Some(last.path), host: None, uri: None, url: None });
    };
    let policy = arguments.policy.as_deref();
    if what.contains("://") {
        return presented(what, policy, store);
    }
    match at.find(store, what) {
        Ok(entry) => {
            Ok(Case { chain: entry.chain(), file: Some(entry.path), host: None, uri: None, url: None })
        }
        // Files that are not certificates, and own certificates, are examined too.
        Err(error) => match (file::read_bytes(what.as_ref(), CASE_LEN_MAX), own_by_thumbprint(store, what)) {
            (Ok(chain), _) => Ok(Case { chain, file: Some(what.into()), host: None, uri: None, url: None }),
            (Err(_), Some(own)) => {
                Ok(Case { chain: own.chain, file: Some(own.path), host: None, uri: None, url: None })
            }
            (Err(_), None) if may_be_host(what) => presented(what, policy, store),
            (Err(_), None) => Err(error),
        },
    }
}

/// An own certificate, by the beginning of its thumbprint.
fn own_by_thumbprint(store: &Store, what: &str) -> Option<OwnCertificate> {
    let wanted: String =
        what.chars().filter(|c| !matches!(c, ':' | ' ')).flat_map(char::to_lowercase).collect();
    let is_meant = |own: &OwnCertificate| {
        wanted.len() >= THUMBPRINT_DIGITS_MIN && print_of(&own.certificate).starts_with(&wanted)
    };
    store.own(&mut Vec::new()).into_iter().find(is_meant)
}

/// Whether a text that names no file is a server: `localhost`, an address, or a host with a port. Other words are more
/// likely misspelt file names.
fn may_be_host(what: &str) -> bool {
    let has_port = |(host, port): (&str, &str)| {
        let is_thumbprint = host.chars().all(|c| c.is_ascii_hexdigit() || c == ':');
        !is_thumbprint && !host.contains('/') && port.parse::<u16>().is_ok()
    };
    what == "localhost"
        || what.parse::<core::net::IpAddr>().is_ok()
        || what.rsplit_once(':').is_some_and(has_port)
}

/// The endpoint that a client with this policy and these kinds of keys uses. Without a policy, the strongest.
fn endpoint_of<'a>(
    endpoints: &'a [EndpointDescription],
    policy: Option<&str>,
    keys: &[NewKey],
) -> Option<&'a EndpointDescription> {
    let secured = endpoints.iter().filter(|endpoint| !endpoint.server_certificate.as_bytes().is_empty());
    let secured: Vec<_> = secured.collect();
    let is_wanted = |endpoint: &EndpointDescription| match policy.filter(|policy| !is_best(policy)) {
        Some(policy) => {
            policy_name(endpoint).eq_ignore_ascii_case(policy)
                || endpoint.security_policy_uri.as_str() == policy
        }
        None => endpoint_rank(endpoint).is_some_and(|(policy, _)| {
            let has_key = NewKey::for_policy(policy).is_some_and(|key| keys.contains(&key));
            has_key && !policy.is_deprecated()
        }),
    };
    let wanted = secured.iter().copied().filter(|endpoint| is_wanted(endpoint));
    let best = wanted.max_by_key(|endpoint| endpoint_rank(endpoint).map(|(_, rank)| rank));
    if policy.is_some_and(|policy| !is_best(policy)) {
        return best;
    }
    // A server with old policies only.
    best.or_else(|| secured.first().copied())
}

/// Whether a policy means the strongest one. Without security, no certificate is used: then the strongest is shown, too.
fn is_best(policy: &str) -> bool {
    policy.eq_ignore_ascii_case("best") || policy.eq_ignore_ascii_case("None")
}

/// The kinds of keys that a connection with this store uses. Those of the default are created at the first connection.
fn keys_of(store: &Store) -> Vec<NewKey> {
    let own = store.own(&mut Vec::new());
    security::NEW_KEYS.into_iter().chain(own.iter().filter_map(|own| NewKey::like(own.key.kind()))).collect()
}

/// The certificate that a server presents with its endpoints.
fn presented(url: &str, policy: Option<&str>, store: &Store) -> Result<Case, Failure> {
    let dial = Dial::try_parse_from(["doctor", url]).map_err(|error| Failure::Usage(error.to_string()))?;
    let endpoints = session::endpoints(&dial.connection)?;
    let endpoint = endpoint_of(&endpoints, policy, &keys_of(store)).ok_or_else(|| {
        Failure::Connect(match policy {
            Some(policy) => format!(
                "{url} presents no certificate with --policy {policy}: taktwerk endpoints lists its policies"
            ),
            None => format!("{url} presents no certificate: it has only endpoints without security"),
        })
    })?;
    let is_other = |other: &&EndpointDescription| {
        let certificate = &other.server_certificate;
        !certificate.as_bytes().is_empty() && *certificate != endpoint.server_certificate
    };
    let name = policy_name(endpoint);
    if dial.connection.endpoint.is_loopback()
        && policy.is_none_or(|policy| policy.eq_ignore_ascii_case("None"))
    {
        tell!(
            "note: commands connect to this machine without security, unless you pass --policy. With --policy best they use \
             {name} and this certificate"
        );
    }
    if let Some(other) = endpoints.iter().find(is_other) {
        tell!(
            "note: this is the certificate for {name}; the server has another one, which --policy {} shows",
            policy_name(other)
        );
    }
    Ok(Case {
        chain: endpoint.server_certificate.as_bytes().to_vec(),
        file: None,
        host: Some(dial.connection.endpoint.host().to_owned()),
        uri: Some(endpoint.server.application_uri.as_str().to_owned()),
        url: Some(url.to_owned()),
    })
}

/// Stores the certificate of a server as rejected, so that it can be trusted by its thumbprint.
fn keep(store: &Store, at: &StoreArgs, chain: &[u8]) -> Option<PathBuf> {
    let folder = store.folder(at.group(), taktwerk_pki::Folder::Rejected);
    taktwerk_pki::RejectedStore::new(folder).offer(chain, None)
}

fn purpose(role: Role, host: Option<String>, certificate: &Certificate) -> CertificatePurpose {
    match role {
        Role::Client => CertificatePurpose::Client { address: None },
        Role::User => CertificatePurpose::User { address: None },
        Role::Server => {
            // Without a host, use any host name of the certificate, so that the check passes.
            let extensions = certificate.extensions();
            let any = || {
                let address = extensions.ip_addresses.first().map(ToString::to_string);
                extensions.dns_names.first().cloned().or(address).unwrap_or_default()
            };
            CertificatePurpose::Server { host_name: host.unwrap_or_else(any) }
        }
    }
}

fn now() -> UtcTime {
    UtcTime::from_unix(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_distinguished_from_files_and_thumbprints() {
        for host in
            ["localhost", "localhost:4840", "127.0.0.1", "10.0.0.7:4841", "plc7:4840", "[::1]:4840", "::1"]
        {
            assert!(may_be_host(host), "{host}");
        }
        for other in
            ["server.der", "own/certs/server.der", "e96957aa", "e9:69:57:aa:12", "server.der:x", "plc7"]
        {
            assert!(!may_be_host(other), "{other}");
        }
    }

    #[test]
    fn the_certificate_matches_the_policy() {
        let endpoint = |name: &str, certificate: &[u8], level| EndpointDescription {
            security_policy_uri: format!("http://opcfoundation.org/UA/SecurityPolicy#{name}").into(),
            server_certificate: certificate.to_vec().into(),
            security_level: level,
            security_mode: taktwerk_schema::MessageSecurityMode(if certificate.is_empty() { 1 } else { 3 }),
            ..EndpointDescription::default()
        };
        let all = [
            endpoint("None", &[], 0),
            endpoint("Basic256Sha256", &[1], 9),
            endpoint("ECC_nistP256_AesGcm", &[2], 1),
            endpoint("Aes256_Sha256_RsaPss", &[1], 5),
            endpoint("ECC_nistP384_AesGcm", &[3], 2),
        ];
        let of = |policy, keys: &[NewKey]| {
            endpoint_of(&all, policy, keys).map(|found| found.server_certificate.as_bytes().to_vec())
        };
        let both = [NewKey::Rsa2048, NewKey::NistP256];
        // What a connection uses: not the first one, and not one that needs a key of another kind.
        assert_eq!(of(None, &both), Some(vec![2]));
        assert_eq!(of(Some("best"), &both), Some(vec![2]));
        assert_eq!(of(None, &both[..1]), Some(vec![1]));
        assert_eq!(of(Some("ecc_nistp384_aesgcm"), &both), Some(vec![3]));
        assert_eq!(of(Some("None"), &both), Some(vec![2]), "without security no certificate is used");
        assert_eq!(of(Some("Basic128"), &both), None);
        assert_eq!(endpoint_of(&all[..1], None, &both), None);
        // No connection uses an endpoint of another transport.
        let https = EndpointDescription {
            transport_profile_uri: "http://opcfoundation.org/UA-Profile/Transport/https-uabinary".into(),
            ..endpoint("ECC_nistP256_AesGcm", &[4], 9)
        };
        let all = [&all[..], &[https]].concat();
        for policy in [None, Some("ECC_nistP256_AesGcm")] {
            let found = endpoint_of(&all, policy, &both).unwrap();
            assert_eq!(found.server_certificate.as_bytes(), [2], "{policy:?}");
        }
    }
}
