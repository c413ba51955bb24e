//! The slow part of CreateSession and ActivateSession: signatures, decryption, certificates. A shard describes it, a
//! worker thread does it.

use core::fmt;
use std::sync::Arc;
use taktwerk_crypto::{
    CertificatePurpose, CryptoError, Job, JobOutput, OpenSecret, Provider, Secret, SecurityPolicy, SignedData,
};
use taktwerk_types::StatusCode;

/// What the server does before it answers CreateSession: looks at whom it signs for, and signs.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) policy: SecurityPolicy,
    /// What the client says its ApplicationUri is.
    pub(crate) application_uri: Box<str>,
    /// The client's certificate, which is the channel's.
    pub(crate) certificate: Arc<[u8]>,
    pub(crate) data: SignedData,
}

impl Introduction {
    /// The signature.
    ///
    /// # Errors
    /// Bad_CertificateUriInvalid if the certificate names another application; Bad_InternalError.
    pub(crate) fn run(self, provider: &dyn Provider) -> Result<Vec<u8>, StatusCode> {
        // Nothing is signed before it is known what it is: a server that signs any bytes is an oracle.
        let uri = provider.application_uri(&self.certificate);
        if uri.as_deref() != Some(&*self.application_uri) {
            tracing::debug!(certificate = ?uri, claimed = &*self.application_uri, "ApplicationUri");
            return Err(StatusCode::BAD_CERTIFICATE_URI_INVALID);
        }
        match (Job::Sign { policy: self.policy, data: self.data }).run(provider) {
            Ok(JobOutput::Bytes(signature)) => Ok(signature),
            _ => Err(StatusCode::BAD_INTERNAL_ERROR),
        }
    }
}

/// A signature that somebody has to have made with the key of a certificate.
#[derive(Debug)]
pub(crate) struct SignatureProof {
    pub(crate) policy: SecurityPolicy,
    pub(crate) certificate: Arc<[u8]>,
    /// What it may cover, by the editions of the specification.
    pub(crate) data: Vec<SignedData>,
    pub(crate) signature: Vec<u8>,
}

impl SignatureProof {
    fn run(self, provider: &dyn Provider) -> Result<(), CryptoError> {
        let Self { policy, certificate, data, signature } = self;
        Job::Verify { policy, certificate, data, signature }.run(provider).map(|_| ())
    }
}

/// How a user shows who they are, as far as it needs keys.
pub(crate) enum UserProof {
    /// The client signs with the key of the user's certificate.
    Certificate(SignatureProof),
    /// A password or token that was encrypted for us.
    Secret(OpenSecret),
}

impl fmt::Debug for UserProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate(_) => "Certificate",
            Self::Secret(_) => "Secret",
        })
    }
}

/// What has to hold before an ActivateSession goes on.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// The client is still the one that created the session. Absent without security.
    pub(crate) client: Option<SignatureProof>,
    pub(crate) user: Option<UserProof>,
}

/// What a proof has brought to light.
pub(crate) enum Proven {
    /// It holds.
    Holds,
    /// It holds, and this is the secret.
    Secret(Secret),
    /// It holds, and this is the thumbprint of the user's certificate in digits.
    Thumbprint(Box<str>),
}

impl fmt::Debug for Proven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "Holds",
            Self::Secret(_) => "Secret",
            Self::Thumbprint(_) => "Thumbprint",
        })
    }
}

/// Which proof failed. What the client is told is decided elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client's signature.
    Client,
    /// The signature with the user's certificate.
    UserSignature,
    /// The user's certificate, or the secret: whatever is wrong with them.
    User,
}

impl Proof {
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_none() && self.user.is_none()
    }

    /// Checks everything.
    ///
    /// # Errors
    /// What did not hold.
    pub(crate) fn run(self, provider: &dyn Provider) -> Result<Proven, Refusal> {
        if let Some(client) = self.client {
            client.run(provider).map_err(|error| {
                tracing::debug!(%error, "client signature");
                Refusal::Client
            })?;
        }
        match self.user {
            None => Ok(Proven::Holds),
            Some(UserProof::Certificate(proof)) => {
                let certificate = Arc::clone(&proof.certificate);
                // First the signature: without the key nobody learns which certificates are trusted.
                proof.run(provider).map_err(|error| {
                    tracing::debug!(%error, "user signature");
                    Refusal::UserSignature
                })?;
                provider.validate(&certificate, &CertificatePurpose::User).map_err(|error| {
                    tracing::debug!(%error, "user certificate");
                    Refusal::User
                })?;
                let thumbprint = provider.thumbprint(&certificate);
                let digits: String = thumbprint.iter().map(|byte| format!("{byte:02X}")).collect();
                Ok(Proven::Thumbprint(digits.into()))
            }
            // Padding, length and nonce look alike from outside, and from here on.
            Some(UserProof::Secret(secret)) => secret.run(provider).map(Proven::Secret).map_err(|error| {
                tracing::debug!(%error, "user secret");
                Refusal::User
            }),
        }
    }
}
