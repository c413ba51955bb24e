//! Creates our own certificate, self-signed or as a request for an authority (Part 6 §6.2.2).

use crate::content::ContentError;
use crate::key::PrivateKey;
use core::net::IpAddr;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType,
    SerialNumber, string::Ia5String,
};
use std::time::{Duration, SystemTime};
use taktwerk_crypto::certificate::{Certificate, CertificateRequest, Malformed};

/// The content of a certificate for this application.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CertificateSettings {
    /// The application's name, used as common name.
    pub application_name: String,
    /// The ApplicationUri, exactly as in the application's configuration.
    pub application_uri: String,
    /// The organization that runs the application.
    pub organization: Option<String>,
    /// The host names and addresses by which clients connect.
    pub hosts: Vec<String>,
    /// How long the certificate is valid.
    pub lifetime: Duration,
}

/// Certificates are valid from a little before their creation, because clocks differ.
const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// Maximum length of the common name and of the organization, in characters (X.520; RFC 5280 Appendix A.1, ub-common-name and
/// ub-organization-name).
pub const SUBJECT_LEN_MAX: usize = 64;

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The name contains characters that a certificate cannot hold.
    #[error("{0:?} cannot be used in a certificate: use ASCII without spaces")]
    Name(String),
    /// A part of the subject is longer than X.520 allows. Other programs refuse such certificates.
    #[error(
        "the {what} has {length} characters; a certificate can hold at most {SUBJECT_LEN_MAX} (X.520). Use a shorter one"
    )]
    TooLong {
        /// Which part: name or organization.
        what: &'static str,
        /// Its length in characters.
        length: usize,
    },
    /// The library failed, or rejected the settings.
    #[error("the certificate could not be made: {0}")]
    Library(#[from] rcgen::Error),
    /// The created certificate cannot be parsed.
    #[error("the certificate could not be made: {0}")]
    Malformed(#[from] Malformed),
    /// The key cannot be created.
    #[error("{0}")]
    Key(#[from] ContentError),
}

impl CertificateSettings {
    /// Settings for an application on this machine: its host name and localhost, valid for two years.
    #[must_use]
    pub fn new(application_name: &str, application_uri: &str) -> Self {
        Self {
            application_name: application_name.to_owned(),
            application_uri: application_uri.to_owned(),
            organization: None,
            hosts: vec![host_name(), "localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()],
            lifetime: Duration::from_secs(2 * 365 * 24 * 60 * 60),
        }
    }

    fn parameters(&self, key: &PrivateKey, self_signed: bool) -> Result<CertificateParams, CreateError> {
        let ascii = |text: &str| {
            let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
            let name = Ia5String::try_from(text).map_err(|_| CreateError::Name(text.to_owned()));
            if fits { name } else { Err(CreateError::Name(text.to_owned())) }
        };
        let organization = self.organization.as_deref().unwrap_or_default();
        for (what, text) in [("name", self.application_name.as_str()), ("organization", organization)] {
            let length = text.chars().count();
            if length > SUBJECT_LEN_MAX {
                return Err(CreateError::TooLong { what, length });
            }
        }
        let mut parameters = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, self.application_name.as_str());
        if let Some(organization) = &self.organization {
            name.push(DnType::OrganizationName, organization.as_str());
        }
        parameters.distinguished_name = name;
        parameters.subject_alt_names.push(SanType::URI(ascii(&self.application_uri)?));
        let mut hosts: Vec<&String> = Vec::new();
        for host in &self.hosts {
            if !hosts.contains(&host) {
                hosts.push(host);
                parameters.subject_alt_names.push(match host.parse::<IpAddr>() {
                    Ok(address) => SanType::IpAddress(address),
                    Err(_) => SanType::DnsName(ascii(host)?),
                });
            }
        }
        parameters.is_ca = IsCa::ExplicitNoCa;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::ContentCommitment];
        if key.kind().is_rsa() {
            parameters
                .key_usages
                .extend([KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DataEncipherment]);
        }
        if self_signed {
            // Stacks that check a self-signed certificate as its own issuer require this usage.
            parameters.key_usages.push(KeyUsagePurpose::KeyCertSign);
        }
        parameters.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Ok(parameters)
    }
}

/// The host name of this machine; `localhost` if it has none.
#[must_use]
pub fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// Creates a self-signed certificate.
///
/// # Errors
/// [`CreateError`].
pub fn self_signed(settings: &CertificateSettings, key: &PrivateKey) -> Result<Certificate, CreateError> {
    let mut parameters = settings.parameters(key, true)?;
    let now = SystemTime::now();
    parameters.not_before = (now - BACKDATED).into();
    parameters.not_after = (now + settings.lifetime).into();
    let mut serial = [0; 16];
    aws_lc_rs::rand::fill(&mut serial).map_err(|_| rcgen::Error::RingUnspecified)?;
    // The serial number must be positive, without a leading zero byte.
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    parameters.serial_number = Some(SerialNumber::from_slice(&serial));
    parameters.use_authority_key_identifier_extension = true;
    let signer = key.signer()?;
    let certificate = parameters.self_signed(&signer)?;
    Ok(Certificate::from_der(certificate.der())?)
}

/// Creates a certificate request for an authority (PKCS#10).
///
/// # Errors
/// [`CreateError`].
pub fn request(settings: &CertificateSettings, key: &PrivateKey) -> Result<CertificateRequest, CreateError> {
    let parameters = settings.parameters(key, false)?;
    let request = parameters.serialize_request(&key.signer()?)?;
    Ok(CertificateRequest::from_der(request.der())?)
}

/// A request in PEM.
#[must_use]
pub fn request_pem(request: &CertificateRequest) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", request.der()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::NewKey;

    #[test]
    fn parts_of_the_subject_have_the_length_of_x520() {
        let key = PrivateKey::generate(NewKey::NistP256).unwrap();
        let of = |name: &str, organization: &str| {
            let mut settings = CertificateSettings::new(name, "urn:example:press");
            settings.organization = Some(organization.to_owned());
            let made = self_signed(&settings, &key).map(drop);
            let asked = request(&settings, &key).map(drop);
            assert_eq!(made.is_ok(), asked.is_ok());
            made.map_err(|error| error.to_string())
        };
        // The limit counts characters, not bytes.
        of(&"ü".repeat(SUBJECT_LEN_MAX), &"x".repeat(SUBJECT_LEN_MAX)).unwrap();
        let error = of(&"x".repeat(5_000), "Works").unwrap_err();
        assert!(error.contains("the name has 5000 characters") && error.contains("at most 64"), "{error}");
        let error = of("Press", &"x".repeat(SUBJECT_LEN_MAX + 1)).unwrap_err();
        assert!(error.contains("the organization has 65 characters"), "{error}");
    }
}
