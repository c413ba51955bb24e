//! The server's own alarms (Part 12 §7.8.3.1): its certificate expires, or its trust list is out of date.
//!
//! The source of the certificate alarm is the Server Object. Every client that receives the Server's events receives it; it
//! reveals no more than GetEndpoints. The source of the trust list alarm is DefaultApplicationGroup, which only SecurityAdmins
//! may see according to the specification.

use super::Server;
use crate::alarms::{AlarmError, ConditionSpec, Kind, Severities};
use crate::pki::Renewal;
use crate::space::{now, ns0};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use taktwerk_crypto::certificate::{Certificate, Hash, KeyKind};
use taktwerk_crypto::{Provider, SecurityPolicy, der};
use taktwerk_pki::{Group, StoreValidator};
use taktwerk_schema::ids::{object_ids, object_type_ids, variable_ids};
use taktwerk_schema::{AccessRestrictionType, PermissionType};
use taktwerk_server::AddressSpace;
use taktwerk_server::alarm::Certified;
use taktwerk_server::authorization::{Access, role::well_known};
use taktwerk_types::{ByteString, NodeId, QualifiedName, UtcTime};

/// Default ExpirationLimit (Part 9 §5.8.24.7).
pub(super) const EXPIRES_BEFORE: Duration = Duration::from_secs(14 * 86_400);
/// Between the middle and the upper range of Part 5 §6.4.2: no client can connect without a valid certificate.
const SEVERITY: u16 = 667;

const GROUP: u32 = object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP;
const TRUST_LIST: u32 =
    object_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST;
const LAST_UPDATE_TIME: u32 = variable_ids::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_LAST_UPDATE_TIME;

/// The ConditionId of the certificate alarm.
fn expired_id() -> NodeId {
    NodeId::string(1, "CertificateExpired")
}

/// The ConditionId of the trust list alarm.
fn out_of_date_id() -> NodeId {
    NodeId::string(1, "TrustListOutOfDate")
}

/// A member of DefaultApplicationGroup with its name from the specification.
fn spec(id: NodeId, name: &str, source: u32, kind: Kind) -> ConditionSpec {
    ConditionSpec {
        class: object_type_ids::SYSTEM_CONDITION_CLASS_TYPE,
        severities: Severities { inner: SEVERITY, outer: SEVERITY },
        parent: Some(ns0(GROUP)),
        browse_name: Some(QualifiedName::new(0, name)),
        ..ConditionSpec::new(id, name, ns0(source), kind)
    }
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The certificate of a provider that expires first, with its expiration.
fn first_to_expire(provider: &dyn Provider) -> Option<(UtcTime, Certified)> {
    let chains = SecurityPolicy::ALL.iter().filter_map(|policy| provider.own_certificate(*policy));
    let certificates = chains.filter_map(|chain| Certificate::from_der(der::leaf(chain)).ok());
    let first = certificates.min_by_key(|certificate| certificate.not_after().ticks())?;
    let certificate = ByteString::from(first.der().to_vec());
    Some((first.not_after(), Certified { kind: ns0(type_of(&first)), certificate }))
}

/// The CertificateType of an application's certificate (Part 12 §7.8.4).
pub(super) fn type_of(certificate: &Certificate) -> u32 {
    use object_type_ids as t;
    match certificate.key() {
        KeyKind::Rsa { .. } if certificate.signature_algorithm().hash() == Some(Hash::Sha1) => {
            t::RSA_MIN_APPLICATION_CERTIFICATE_TYPE
        }
        KeyKind::Rsa { .. } => t::RSA_SHA256_APPLICATION_CERTIFICATE_TYPE,
        KeyKind::NistP256 => t::ECC_NIST_P256_APPLICATION_CERTIFICATE_TYPE,
        KeyKind::NistP384 => t::ECC_NIST_P384_APPLICATION_CERTIFICATE_TYPE,
        KeyKind::BrainpoolP256r1 => t::ECC_BRAINPOOL_P256R1_APPLICATION_CERTIFICATE_TYPE,
        KeyKind::BrainpoolP384r1 => t::ECC_BRAINPOOL_P384R1_APPLICATION_CERTIFICATE_TYPE,
        KeyKind::Ed25519 => t::ECC_CURVE25519_APPLICATION_CERTIFICATE_TYPE,
        KeyKind::Ed448 => t::ECC_CURVE448_APPLICATION_CERTIFICATE_TYPE,
        _ => t::APPLICATION_CERTIFICATE_TYPE,
    }
}

/// Adds the server's own alarms.
pub(super) fn add(
    server: &Server,
    provider: &dyn Provider,
    before: Duration,
    trust: Option<(&Arc<StoreValidator>, Duration)>,
) -> Result<(), AlarmError> {
    if !before.is_zero() {
        add_expired(server, provider, before)?;
    }
    match trust {
        Some((trust, frequency)) => add_out_of_date(server, trust, frequency),
        None => Ok(()),
    }
}

/// Adds CertificateExpired, if the server has a certificate. One alarm covers all certificates: it shows the one that expires
/// first.
fn add_expired(server: &Server, provider: &dyn Provider, before: Duration) -> Result<(), AlarmError> {
    let Some((date, certified)) = first_to_expire(provider) else { return Ok(()) };
    let kind = Kind::Expiration { limit: millis(before) };
    server.add_condition(ConditionSpec {
        date: Some(date),
        certified: Some(certified),
        ..spec(expired_id(), "CertificateExpired", object_ids::SERVER, kind)
    })
}

/// Updates CertificateExpired after the provider's certificates have changed.
pub(super) fn certificates_changed(space: &Arc<AddressSpace>, provider: &dyn Provider) {
    let Some((date, certified)) = first_to_expire(provider) else { return };
    // Fails only if the alarm is disabled.
    let _ = space.set_condition_date(&expired_id(), date, Some(certified), now());
}

/// Reloads the server's certificates when their files change, and updates CertificateExpired.
pub(super) fn follow(
    server: &Server,
    trust: &StoreValidator,
    renewal: Arc<Renewal>,
    provider: &Arc<dyn Provider>,
) {
    let (space, provider) = (Arc::downgrade(server.space()), Arc::downgrade(provider));
    let (count, followed) = (renewal.counter(), AtomicU64::new(renewal.counter().load(Ordering::Acquire)));
    trust.on_look(move || {
        let (Some(space), Some(provider)) = (space.upgrade(), provider.upgrade()) else { return };
        renewal.look();
        let count = count.load(Ordering::Acquire);
        if followed.swap(count, Ordering::AcqRel) != count {
            certificates_changed(&space, &*provider);
        }
    });
}

/// Adds TrustListOutOfDate, which is active if the trust list has not changed for longer than `frequency`.
fn add_out_of_date(
    server: &Server,
    trust: &Arc<StoreValidator>,
    frequency: Duration,
) -> Result<(), AlarmError> {
    let kind = Kind::OutOfDate { frequency: millis(frequency), trust_list: ns0(TRUST_LIST) };
    let everything =
        PermissionType::BROWSE | PermissionType::READ | PermissionType::RECEIVE_EVENTS | PermissionType::CALL;
    let access = Access::roles([(ns0(well_known::SECURITY_ADMIN), everything)])
        .restricted(AccessRestrictionType::SIGNING_REQUIRED);
    let date = last_update(trust);
    server.add_condition(ConditionSpec {
        date: Some(date),
        access,
        ..spec(out_of_date_id(), "TrustListOutOfDate", GROUP, kind)
    })?;
    show_last_update(server.space(), date);
    let space: Weak<AddressSpace> = Arc::downgrade(server.space());
    let store: Weak<StoreValidator> = Arc::downgrade(trust);
    trust.on_change(move |_| {
        let (Some(space), Some(trust)) = (space.upgrade(), store.upgrade()) else { return };
        let date = last_update(&trust);
        show_last_update(&space, date);
        let _ = space.set_condition_date(&out_of_date_id(), date, None, now());
    });
    Ok(())
}

/// When the trust list was last changed, but never later than now: the clock may have been set back.
fn last_update(trust: &StoreValidator) -> UtcTime {
    let changed = trust.store().last_update(Group::Applications).unwrap_or_else(SystemTime::now);
    let changed = UtcTime::from_unix(changed.duration_since(UNIX_EPOCH).unwrap_or_default());
    if changed.ticks() > now().ticks() { now() } else { changed }
}

/// LastUpdateTime of the TrustList Object (Part 12 §7.8.2.1).
fn show_last_update(space: &AddressSpace, date: UtcTime) {
    if let Ok(variable) = space.variable(&ns0(LAST_UPDATE_TIME)) {
        variable.set_at(date, now());
    }
}
