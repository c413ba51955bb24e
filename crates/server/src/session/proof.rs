//! The slow part of CreateSession and ActivateSession: signatures, decryption, certificates. The shard creates the job;
//! a worker thread runs it.

use crate::account::{HeapSize, allocation, heap_size};
use crate::job_kind::{JobKind, UserProofKind};
use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;
use taktwerk_crypto::{
    CertificatePurpose, CryptoError, EphemeralKey, Job, JobOutput, OpenSecret, Provider, Secret,
    SecurityPolicy, SignedData,
};
use taktwerk_types::{StatusCode, UtcTime};

/// The job for CreateSession: checks the client's certificate and signs the response.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) policy: SecurityPolicy,
    /// The ApplicationUri that the client claims.
    pub(crate) application_uri: Box<str>,
    /// The client's certificate, identical to the channel's.
    pub(crate) certificate: Arc<[u8]>,
    pub(crate) data: SignedData,
    /// The client requests a key for a secret.
    pub(crate) key: Option<SecurityPolicy>,
}

/// An ephemeral key for the client's next secret, with the server's signature of its public part.
#[derive(Debug)]
pub(crate) struct OfferedKey {
    pub(crate) policy: SecurityPolicy,
    pub(crate) key: Arc<dyn EphemeralKey>,
    pub(crate) signature: Vec<u8>,
}

impl OfferedKey {
    fn make(policy: SecurityPolicy, provider: &dyn Provider) -> Result<Self, CryptoError> {
        let key = provider.ephemeral_key(policy)?;
        let mut signature = Vec::new();
        provider.sign(policy, &[key.public_key()], &mut signature)?;
        Ok(Self { policy, key, signature })
    }
}

impl HeapSize for OfferedKey {
    fn heap_size(&self) -> usize {
        // The cryptographic library keeps some hundred bytes per key.
        self.signature.heap_size() + 1024
    }
}

/// The result of an [`Introduction`].
#[derive(Debug)]
pub(crate) struct Introduced {
    pub(crate) signature: Vec<u8>,
    pub(crate) key: Option<OfferedKey>,
}

impl Introduction {
    /// Creates the signature, and the key if requested.
    ///
    /// # Errors
    /// Bad_CertificateUriInvalid if the certificate names another application; Bad_InternalError.
    pub(crate) fn run(self, provider: &dyn Provider) -> Result<Introduced, StatusCode> {
        // The certificate is checked before signing: a server that signs arbitrary bytes is an oracle.
        let uri = provider.application_uri(&self.certificate);
        if uri.as_deref() != Some(&*self.application_uri) {
            tracing::debug!(certificate = ?uri, claimed = &*self.application_uri, "ApplicationUri");
            return Err(StatusCode::BAD_CERTIFICATE_URI_INVALID);
        }
        let work = || {
            let Self { policy, data, key, .. } = self;
            let JobOutput::Bytes(signature) = (Job::Sign { policy, data }).run(provider)? else {
                return Err(CryptoError::Internal);
            };
            let key = key.map(|policy| OfferedKey::make(policy, provider)).transpose()?;
            Ok(Introduced { signature, key })
        };
        work().map_err(|error: CryptoError| {
            tracing::warn!(%error, "signing");
            StatusCode::BAD_INTERNAL_ERROR
        })
    }
}

/// A signature to verify with the key of a certificate.
#[derive(Debug)]
pub(crate) struct SignatureProof {
    pub(crate) policy: SecurityPolicy,
    pub(crate) certificate: Arc<[u8]>,
    /// The data it may cover, depending on the edition of the specification.
    pub(crate) data: Vec<SignedData>,
    pub(crate) signature: Vec<u8>,
}

impl SignatureProof {
    fn run(self, provider: &dyn Provider) -> Result<(), CryptoError> {
        let Self { policy, certificate, data, signature } = self;
        Job::Verify { policy, certificate, data, signature }.run(provider).map(|_| ())
    }
}

/// The proof of a user identity, as far as it needs keys.
pub(crate) enum UserProof {
    /// The client signs with the key of the user's certificate.
    Certificate {
        /// The signature.
        proof: SignatureProof,
        /// The client's address.
        address: Option<IpAddr>,
    },
    /// A password or token that was encrypted for the server.
    Secret(OpenSecret),
}

impl fmt::Debug for UserProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate { .. } => "Certificate",
            Self::Secret(_) => "Secret",
        })
    }
}

/// The checks of an ActivateSession.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// The signature of the client that created the session. Absent without security.
    pub(crate) client: Option<SignatureProof>,
    pub(crate) user: Option<UserProof>,
    /// The client supports a key for its next secret.
    pub(crate) next_key: Option<SecurityPolicy>,
}

heap_size!(Proof { client, user; next_key });

impl HeapSize for SignatureProof {
    fn heap_size(&self) -> usize {
        let Self { policy: _, certificate, data, signature } = self;
        let data: usize = data.iter().map(|data| size_of_val(data) + data.memory_len()).sum();
        certificate.heap_size() + allocation(data) + signature.heap_size()
    }
}

impl HeapSize for UserProof {
    fn heap_size(&self) -> usize {
        match self {
            Self::Certificate { proof, .. } => proof.heap_size(),
            Self::Secret(OpenSecret { algorithm, data, server_nonce, sender_certificate, .. }) => {
                algorithm.heap_size()
                    + data.heap_size()
                    + server_nonce.heap_size()
                    + sender_certificate.heap_size()
            }
        }
    }
}

/// The result of a successful [`Proof`].
#[derive(Debug)]
pub(crate) struct Proved {
    pub(crate) proven: Proven,
    pub(crate) next_key: Option<OfferedKey>,
}

/// What a user proof yields.
pub(crate) enum Proven {
    /// The proof is valid.
    Holds,
    /// The proof is valid and contains this secret.
    Secret(Secret),
    /// The proof is valid for the user's certificate.
    Certificate {
        /// The certificate's thumbprint in hexadecimal digits.
        thumbprint: Box<str>,
        /// When the certificate expires (Part 4 §7.40.5).
        until: Option<UtcTime>,
    },
}

impl fmt::Debug for Proven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "Holds",
            Self::Secret(_) => "Secret",
            Self::Certificate { .. } => "Certificate",
        })
    }
}

/// Which check failed. The status for the client is chosen elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client's signature.
    Client,
    /// The signature with the user's certificate.
    UserSignature,
    /// The user's certificate. The client does not learn the reason.
    UserCertificate(StatusCode),
    /// The secret, for any reason.
    User,
}

impl Proof {
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_none() && self.user.is_none() && self.next_key.is_none()
    }

    /// The kind of work, for scheduling.
    pub(crate) fn kind(&self) -> JobKind {
        JobKind::ProveSession {
            client: self.client.as_ref().map(|proof| proof.policy),
            user: match &self.user {
                None => UserProofKind::None,
                Some(UserProof::Certificate { proof, .. }) => UserProofKind::Signature(proof.policy),
                Some(UserProof::Secret(secret)) => UserProofKind::Secret(secret.policy),
            },
            offers_key: self.next_key.is_some(),
        }
    }

    /// Runs all checks.
    ///
    /// # Errors
    /// The check that failed.
    pub(crate) fn run(self, provider: &dyn Provider) -> Result<Proved, Refusal> {
        let next_key = self.next_key;
        let proven = self.holds(provider)?;
        // Without the key the client's next secret will be refused, but this activation can succeed.
        let next_key = next_key.and_then(|policy| OfferedKey::make(policy, provider).ok());
        Ok(Proved { proven, next_key })
    }

    fn holds(self, provider: &dyn Provider) -> Result<Proven, Refusal> {
        if let Some(client) = self.client {
            client.run(provider).map_err(|error| {
                tracing::debug!(%error, "client signature");
                Refusal::Client
            })?;
        }
        match self.user {
            None => Ok(Proven::Holds),
            Some(UserProof::Certificate { proof, address }) => {
                let certificate = Arc::clone(&proof.certificate);
                // The signature first: without the key, a client must not learn which certificates are trusted.
                proof.run(provider).map_err(|error| {
                    tracing::debug!(%error, "user signature");
                    Refusal::UserSignature
                })?;
                provider.validate(&certificate, &CertificatePurpose::User { address }).map_err(|error| {
                    tracing::debug!(%error, "user certificate");
                    match error {
                        CryptoError::Certificate(refusal) => Refusal::UserCertificate(refusal.status()),
                        _ => Refusal::User,
                    }
                })?;
                let thumbprint = provider.thumbprint(&certificate);
                let digits: String = thumbprint.iter().map(|byte| format!("{byte:02X}")).collect();
                let until = provider.valid_until(&certificate);
                Ok(Proven::Certificate { thumbprint: digits.into(), until })
            }
            // Errors in padding, length and nonce must be indistinguishable, here and later.
            Some(UserProof::Secret(secret)) => secret.run(provider).map(Proven::Secret).map_err(|error| {
                tracing::debug!(%error, "user secret");
                Refusal::User
            }),
        }
    }
}
