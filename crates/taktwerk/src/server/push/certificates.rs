//! Certificate requests, new certificates, and rejected certificates (Part 12 §7.10).

use super::transaction::NewCertificate;
use super::{Inputs, Push, Run, unavailable};
use crate::lock::lock;
use crate::server::certificate_alarms::type_of;
use crate::space::{now, ns0};
use std::sync::Arc;
use taktwerk_crypto::CertificatePurpose;
use taktwerk_crypto::aws_lc::Identity;
use taktwerk_crypto::certificate::{
    AwsLcVerifier, CHAIN_LEN_MAX, Certificate, Validation, ValidationOptions, ValidationRequest,
};
use taktwerk_pki::{CertificateSettings, Group, Lists, NewKey, OwnCertificate, PrivateKey, Store, create};
use taktwerk_schema::ids::{object_ids, object_type_ids};
use taktwerk_server::callback::{CallContext, MethodResult};
use taktwerk_types::{ByteString, NodeId, StatusCode, UaString};

pub(super) const METHODS: &[(&str, Run)] = &[
    ("CreateSigningRequest", create_signing_request),
    ("UpdateCertificate", update_certificate),
    ("GetRejectedList", get_rejected_list),
    ("GetCertificates", get_certificates),
];

/// Shortest Nonce of CreateSigningRequest if a new key is requested, in bytes.
const NONCE_LEN_MIN: usize = 32;
/// Most bytes of rejected certificates in an answer.
const REJECTED_BYTES_MAX: usize = 256 * 1024;

/// The CertificateTypes of the own certificates.
pub(super) fn types(store: &Store) -> Vec<NodeId> {
    let mut types: Vec<NodeId> =
        store.own(&mut Vec::new()).iter().map(|own| ns0(type_of(&own.certificate))).collect();
    types.sort();
    types.dedup();
    types
}

/// # Errors
/// Bad_InvalidArgument for any group but that of the application.
fn check_group(group: &NodeId) -> Result<(), StatusCode> {
    let ours = object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP;
    if group.is_null() || *group == ns0(ours) { Ok(()) } else { Err(StatusCode::BAD_INVALID_ARGUMENT) }
}

/// The own certificate of a CertificateType. Null, and the abstract base type, mean the first one.
pub(super) fn own_of(store: &Store, kind: &NodeId) -> Result<OwnCertificate, StatusCode> {
    let is_any = kind.is_null() || *kind == ns0(object_type_ids::APPLICATION_CERTIFICATE_TYPE);
    let mut own = store.own(&mut Vec::new()).into_iter();
    own.find(|own| is_any || ns0(type_of(&own.certificate)) == *kind).ok_or(StatusCode::BAD_INVALID_ARGUMENT)
}

/// The content of a new certificate: that of the old one, with another subject if given, such as `CN=Press/O=Works`.
fn settings(before: &Certificate, uri: &str, subject: &str) -> Result<CertificateSettings, StatusCode> {
    // Clients do not choose these, so they are cut to what a certificate can hold.
    let cut = |text: String| text.chars().take(create::SUBJECT_LEN_MAX).collect::<String>();
    let name = cut(before.common_name().unwrap_or_else(|| uri.to_owned()));
    let mut settings = CertificateSettings::new(&name, uri);
    let extensions = before.extensions();
    settings.organization = before.organization().map(cut);
    settings.hosts = extensions.dns_names.clone();
    settings.hosts.extend(extensions.ip_addresses.iter().map(ToString::to_string));
    if !subject.is_empty() {
        let part = |name: &str| {
            let parts = subject.split([',', '/']).filter_map(|part| part.trim().split_once('='));
            parts
                .into_iter()
                .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim())
        };
        let name = part("CN").filter(|name| !name.is_empty()).ok_or(StatusCode::BAD_INVALID_ARGUMENT)?;
        settings.application_name = name.to_owned();
        settings.organization = part("O").map(str::to_owned);
    }
    Ok(settings)
}

/// A new key is stored in `own/private` until its certificate arrives, also across restarts. An earlier one is discarded (Part 12
/// §7.10.10).
fn create_signing_request(push: &Push, _: &CallContext, mut inputs: Inputs) -> MethodResult {
    check_group(&inputs.optional()?)?;
    let kind: NodeId = inputs.optional()?;
    let subject: UaString = inputs.optional()?;
    let new_key: bool = inputs.take()?;
    let nonce: ByteString = inputs.optional()?;
    if new_key && nonce.as_bytes().len() < NONCE_LEN_MIN {
        return Err(StatusCode::BAD_INVALID_ARGUMENT);
    }
    let store = push.trust.store();
    let own = own_of(store, &kind)?;
    let settings = settings(&own.certificate, &push.application_uri, subject.as_str())?;
    let failed = |error: &dyn core::fmt::Display| {
        tracing::warn!(%error, "cannot create a certificate request");
        StatusCode::BAD_INVALID_ARGUMENT
    };
    let purpose = type_of(&own.certificate);
    let request = if new_key {
        let kind = NewKey::like(own.key.kind()).unwrap_or_default();
        let key = PrivateKey::generate(kind).map_err(|error| failed(&error))?;
        let request = create::request(&settings, &key).map_err(|error| failed(&error))?;
        let changing = lock(&push.changing);
        store.keep_requested_key(purpose, &key).map_err(|error| unavailable(&error))?;
        drop(changing);
        request
    } else {
        create::request(&settings, &own.key).map_err(|error| failed(&error))?
    };
    Ok(vec![ByteString::from(request.der().to_vec()).into()])
}

/// Checks a new certificate and keeps it until ApplyChanges. Without a key it is the answer to a request.
fn update_certificate(push: &Push, caller: &CallContext, mut inputs: Inputs) -> MethodResult {
    check_group(&inputs.optional()?)?;
    let kind: NodeId = inputs.optional()?;
    let der: ByteString = inputs.take()?;
    let issuers: Vec<ByteString> = inputs.optional()?;
    let format: UaString = inputs.optional()?;
    let key: ByteString = inputs.optional()?;
    push.state().not_of_others(caller)?;
    let store = push.trust.store();
    let before = own_of(store, &kind)?;
    let invalid = |_| StatusCode::BAD_CERTIFICATE_INVALID;
    if issuers.len() >= CHAIN_LEN_MAX {
        return Err(StatusCode::BAD_CERTIFICATE_INVALID);
    }
    let certificate = Certificate::from_der(der.as_bytes()).map_err(invalid)?;
    let issuers: Result<Vec<_>, _> =
        issuers.iter().map(|der| Certificate::from_der(der.as_bytes())).collect();
    let issuers = issuers.map_err(invalid)?;
    let chain =
        validated(&push.lists_of(caller, Group::Applications), certificate, &issuers, &push.application_uri)?;
    let certificate = chain.first().ok_or(StatusCode::BAD_CERTIFICATE_INVALID)?;
    if !NewKey::like(before.key.kind()).is_some_and(|kind| kind.serves_as(certificate.key())) {
        return Err(StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED);
    }
    let key = if key.as_bytes().is_empty() {
        // The key of a request, or the key in use.
        store.key_of(certificate).ok_or(StatusCode::BAD_SECURITY_CHECKS_FAILED)?
    } else if format.as_str().eq_ignore_ascii_case("PEM") {
        PrivateKey::read(key.as_bytes()).map_err(|_| StatusCode::BAD_SECURITY_CHECKS_FAILED)?
    } else {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    };
    let bytes = chain.iter().flat_map(|one| one.der()).copied().collect();
    Identity::new(bytes, key.pkcs8()).map_err(|reason| {
        tracing::warn!(%reason, "a new certificate was rejected");
        StatusCode::BAD_SECURITY_CHECKS_FAILED
    })?;
    let new = NewCertificate { kind: type_of(&before.certificate), chain, key: Arc::new(key) };
    push.state().transaction(caller)?.add_certificate(new);
    Ok(vec![true.into()])
}

/// Validates a future own certificate as clients will (Part 4 §6.1.3), with the issuers sent along and those of the trust list.
/// Suppressible errors are ignored, but the certificate must be valid now. Returns it with the issuers that were sent, in the
/// order of the chain.
pub(super) fn validated(
    lists: &Lists,
    certificate: Certificate,
    issuers: &[Certificate],
    uri: &str,
) -> Result<Vec<Certificate>, StatusCode> {
    let mut trust = lists.trust_list();
    trust.trust(certificate.clone());
    issuers.iter().cloned().for_each(|issuer| trust.add_issuer(issuer));
    let mut options = ValidationOptions::default();
    options.suppress_host_name_invalid = true;
    options.suppress_revocation_status_unknown = true;
    options.suppress_issuer_certificate_expired = true;
    options.suppress_issuer_revocation_status_unknown = true;
    options.suppress_use_not_allowed = true;
    let purpose = CertificatePurpose::Server { host_name: String::new() };
    let request = ValidationRequest { application_uri: Some(uri), ..ValidationRequest::new(&purpose) };
    let validation =
        Validation { trust: &trust, verifier: &AwsLcVerifier, options, now: now(), exhaustive: false };
    let report = validation.run(certificate.der(), &request);
    if let Some(failure) = report.failure() {
        tracing::warn!(reason = failure.sentence(), "a new certificate was rejected");
        return Err(failure.status);
    }
    if certificate.is_authority() {
        return Err(StatusCode::BAD_CERTIFICATE_USE_NOT_ALLOWED);
    }
    let sent = report.chain().iter().skip(1).filter(|issuer| issuers.contains(issuer)).cloned();
    Ok(core::iter::once(certificate.clone()).chain(sent).collect())
}

/// The most recently rejected applications and users.
fn get_rejected_list(push: &Push, _: &CallContext, _: Inputs) -> MethodResult {
    let store = push.trust.store();
    let groups = [Group::Applications, Group::Users];
    let all = groups.into_iter().flat_map(|group| store.rejected(group, &mut Vec::new()));
    let mut len = 0;
    let fits = |der: &ByteString| {
        len += der.as_bytes().len();
        len <= REJECTED_BYTES_MAX
    };
    let all: Vec<ByteString> =
        all.map(|entry| ByteString::from(entry.certificate.der().to_vec())).take_while(fits).collect();
    Ok(vec![all.into()])
}

fn get_certificates(push: &Push, _: &CallContext, mut inputs: Inputs) -> MethodResult {
    check_group(&inputs.optional()?)?;
    let own = push.trust.store().own(&mut Vec::new());
    let types: Vec<NodeId> = own.iter().map(|own| ns0(type_of(&own.certificate))).collect();
    let certificates: Vec<ByteString> =
        own.into_iter().map(|own| ByteString::from(own.certificate.der().to_vec())).collect();
    Ok(vec![types.into(), certificates.into()])
}
