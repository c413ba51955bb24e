//! A client in the server's own process. Client and server trust each other without the trust lists.

use super::{Pki, PkiError};
use std::net::IpAddr;
use std::sync::Arc;
use taktwerk_crypto::aws_lc::{AwsLcProvider, Identity};
use taktwerk_crypto::{
    CertificatePurpose, CertificateRefusal, CertificateValidator, CryptoError, Provider, der,
};
use taktwerk_pki::{CertificateSettings, CreateError, InProcess, NewKey, PrivateKey, create};
use taktwerk_types::StatusCode;

/// The certificates of a client in the server's own process, such as a dashboard. Created by [`Pki::in_process_client`].
///
/// Its keys exist only in memory. The server trusts it as long as this value lives, for connections from this machine. It trusts
/// exactly the server's current certificates. It counts as a trusted application, also for roles that require one.
#[derive(Debug)]
pub struct InProcessClient {
    provider: Arc<AwsLcProvider>,
    server: Arc<AwsLcProvider>,
    application_uri: String,
    address: IpAddr,
    /// The server trusts the client as long as this value lives.
    _trusted: Arc<InProcess>,
}

impl Pki {
    /// Creates certificates for a client in this process that connects to the server of this PKI directory at `address`.
    ///
    /// # Errors
    /// [`PkiError`].
    pub fn in_process_client(
        &self,
        settings: &CertificateSettings,
        address: IpAddr,
    ) -> Result<InProcessClient, PkiError> {
        let policies = self.provider.usable_policies();
        let is_wanted =
            |key: &NewKey| policies.iter().any(|policy| NewKey::for_policy(*policy) == Some(*key));
        let mut provider = AwsLcProvider::new(Arc::new(OwnServer(Arc::clone(&self.provider))));
        let mut certificates = Vec::new();
        for kind in NewKey::ALL.into_iter().filter(is_wanted) {
            let key = PrivateKey::generate(kind).map_err(CreateError::from)?;
            let certificate = create::self_signed(settings, &key)?;
            let identity = Identity::new(certificate.der().to_vec(), key.pkcs8());
            let path = self.store().root().to_owned();
            provider =
                provider.with_identity(identity.map_err(|reason| PkiError::Identity { path, reason })?);
            certificates.push(certificate);
        }
        let trusted = Arc::new(InProcess::new(certificates, address));
        self.validator.trust_in_process(&trusted);
        Ok(InProcessClient {
            provider: Arc::new(provider),
            server: Arc::clone(&self.provider),
            application_uri: settings.application_uri.clone(),
            address,
            _trusted: trusted,
        })
    }
}

impl InProcessClient {
    /// The cryptographic provider for the client.
    #[must_use]
    pub fn provider(&self) -> Arc<dyn Provider> {
        self.provider.clone()
    }

    /// The ApplicationUri in its certificates.
    #[must_use]
    pub fn application_uri(&self) -> &str {
        &self.application_uri
    }

    /// Whether client and server trust each other if the server presents this certificate.
    ///
    /// # Errors
    /// The refusal, with the side that refuses.
    pub fn verify(&self, server_certificate: &[u8]) -> Result<(), CryptoError> {
        let server = CertificatePurpose::Server { host_name: self.address.to_string() };
        self.provider.validate(server_certificate, &server)?;
        let client = CertificatePurpose::Client { address: Some(self.address) };
        self.provider
            .identities()
            .iter()
            .try_for_each(|identity| self.server.validate(identity.chain(), &client))
    }
}

/// Trusts only the current certificates of the server in this process. Files are not read, because they could be outdated.
#[derive(Debug)]
struct OwnServer(Arc<AwsLcProvider>);

impl CertificateValidator for OwnServer {
    fn validate(&self, chain_der: &[u8], purpose: &CertificatePurpose) -> Result<(), CryptoError> {
        let is_server = matches!(purpose, CertificatePurpose::Server { .. });
        let leaf = der::leaf(chain_der);
        if is_server && self.0.identities().iter().any(|own| der::leaf(own.chain()) == leaf) {
            return Ok(());
        }
        let reason = "it is not the current certificate of the server in this process";
        let refusal = CertificateRefusal::new(StatusCode::BAD_CERTIFICATE_UNTRUSTED, reason);
        Err(CryptoError::Certificate(Box::new(refusal)))
    }
}
