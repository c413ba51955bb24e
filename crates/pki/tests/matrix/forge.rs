//! Creates valid and invalid certificates, authorities and revocation lists for the cases.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CustomExtension, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SanType, SerialNumber, date_time_ymd,
};
use std::sync::LazyLock;
use taktwerk_crypto::CertificatePurpose;
use taktwerk_types::UtcTime;

/// The ApplicationUri of every peer.
pub(crate) const URI: &str = "urn:test:peer";
/// The host of every server.
pub(crate) const HOST: &str = "peer.example";

/// The time of every validation.
pub(crate) fn now() -> UtcTime {
    UtcTime::from_civil(2030, 1, 1, 0, 0, 0).unwrap()
}

/// Keys, created once, because RSA keys take long.
pub(crate) struct Keys {
    pub(crate) leaf: KeyPair,
    pub(crate) other: KeyPair,
    pub(crate) root: KeyPair,
    pub(crate) sub: KeyPair,
    pub(crate) p384: KeyPair,
    pub(crate) ed25519: KeyPair,
    pub(crate) rsa2048: KeyPair,
    pub(crate) rsa3072: KeyPair,
    pub(crate) rsa4096: KeyPair,
}

pub(crate) static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let p256 = || KeyPair::generate().unwrap();
    let rsa = |size| KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).unwrap();
    Keys {
        leaf: p256(),
        other: p256(),
        root: p256(),
        sub: p256(),
        p384: KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap(),
        ed25519: KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap(),
        rsa2048: rsa(rcgen::RsaKeySize::_2048),
        rsa3072: rsa(rcgen::RsaKeySize::_3072),
        rsa4096: rsa(rcgen::RsaKeySize::_4096),
    }
});

/// The role of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
    User,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Server, Self::Client, Self::User];

    pub(crate) fn purpose(self) -> CertificatePurpose {
        match self {
            Self::Server => CertificatePurpose::Server { host_name: HOST.to_owned() },
            Self::Client => CertificatePurpose::Client { address: None },
            Self::User => CertificatePurpose::User { address: None },
        }
    }

    /// Parameters of a certificate that is valid for the role.
    pub(crate) fn leaf(self) -> CertificateParams {
        let mut params = named("peer");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if self != Self::User {
            params.subject_alt_names = vec![uri(URI), dns(HOST)];
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        }
        params
    }

    /// The same with the key usages that RSA keys need.
    pub(crate) fn rsa_leaf(self) -> CertificateParams {
        let mut params = self.leaf();
        if self != Self::User {
            params.key_usages.extend([
                KeyUsagePurpose::ContentCommitment,
                KeyUsagePurpose::KeyEncipherment,
                KeyUsagePurpose::DataEncipherment,
            ]);
        }
        params
    }
}

pub(crate) fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

pub(crate) fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

/// Minimal parameters: a name, valid at the time of the validations, not an authority.
pub(crate) fn named(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name.push(DnType::OrganizationName, "Test");
    params.distinguished_name = name;
    params.serial_number = Some(SerialNumber::from_slice(&[0x11, 0x22]));
    params.is_ca = IsCa::ExplicitNoCa;
    params.not_before = date_time_ymd(2029, 1, 1);
    params.not_after = date_time_ymd(2031, 1, 1);
    params
}

/// Self-signed.
pub(crate) fn self_signed(params: &CertificateParams, key: &KeyPair) -> Vec<u8> {
    params.self_signed(key).unwrap().der().to_vec()
}

/// Changes parameters within an expression.
pub(crate) fn with(
    mut params: CertificateParams,
    change: impl FnOnce(&mut CertificateParams),
) -> CertificateParams {
    change(&mut params);
    params
}

/// An authority.
pub(crate) struct Authority {
    pub(crate) params: CertificateParams,
    pub(crate) key: &'static KeyPair,
    pub(crate) der: Vec<u8>,
}

pub(crate) fn authority(name: &str) -> CertificateParams {
    let mut params = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params
}

impl Authority {
    pub(crate) fn root(params: CertificateParams, key: &'static KeyPair) -> Self {
        let der = self_signed(&params, key);
        Self { params, key, der }
    }

    pub(crate) fn sub(&self, params: CertificateParams, key: &'static KeyPair) -> Self {
        let der = self.issue(&params, key);
        Self { params, key, der }
    }

    pub(crate) fn issuer(&self) -> Issuer<'_, &'static KeyPair> {
        Issuer::from_params(&self.params, self.key)
    }

    pub(crate) fn issue(&self, params: &CertificateParams, key: &KeyPair) -> Vec<u8> {
        params.signed_by(key, &self.issuer()).unwrap().der().to_vec()
    }

    /// A current revocation list.
    pub(crate) fn list(&self, revoked: &[&[u8]]) -> Vec<u8> {
        self.list_of(revoked, 2029, 2031)
    }

    /// A revocation list valid from one year to another.
    pub(crate) fn list_of(&self, revoked: &[&[u8]], from: i32, to: i32) -> Vec<u8> {
        let revoked_certs = revoked
            .iter()
            .map(|serial| RevokedCertParams {
                serial_number: SerialNumber::from_slice(serial),
                revocation_time: date_time_ymd(2029, 6, 1),
                reason_code: Some(rcgen::RevocationReason::KeyCompromise),
                invalidity_date: None,
            })
            .collect();
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(from, 1, 1),
            next_update: date_time_ymd(to, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer()).unwrap().der().to_vec()
    }
}

/// Concatenates certificates as peers send them.
pub(crate) fn chain(certificates: &[&[u8]]) -> Vec<u8> {
    certificates.concat()
}

/// Replaces bytes that must occur exactly once. For editing DER by hand.
pub(crate) fn replaced(der: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let found: Vec<usize> = (0..der.len())
        .filter(|at| der.get(*at..at + from.len()).is_some_and(|bytes| bytes == from))
        .collect();
    assert_eq!(found.len(), 1, "{from:02x?} occurs at {found:?}");
    let (before, behind) = der.split_at(found[0]);
    [before, to, &behind[from.len()..]].concat()
}

/// A custom extension with DER content.
pub(crate) fn extension(oid: &[u64], critical: bool, content: &[u8]) -> CustomExtension {
    let mut extension = CustomExtension::from_oid_content(oid, content.to_vec());
    extension.set_criticality(critical);
    extension
}
