//! The slow part of CreateSession and ActivateSession: signatures, decryption, certificates. A shard describes it, a
//! worker thread does it.

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

/// What the server does before it answers CreateSession: looks at whom it signs for, and signs.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) policy: SecurityPolicy,
    /// What the client says its ApplicationUri is.
    pub(crate) application_uri: Box<str>,
    /// The client's certificate, which is the channel's.
    pub(crate) certificate: Arc<[u8]>,
    pub(crate) data: SignedData,
    /// The client wants a key for a secret.
    pub(crate) key: Option<SecurityPolicy>,
}

/// An ephemeral key for the client's next secret, and our signature of its public half.
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
        // What the cryptographic library keeps of a key is some hundred bytes.
        self.signature.heap_size() + 1024
    }
}

/// What came of an [`Introduction`].
#[derive(Debug)]
pub(crate) struct Introduced {
    pub(crate) signature: Vec<u8>,
    pub(crate) key: Option<OfferedKey>,
}

impl Introduction {
    /// The signature, and the key if one was asked for.
    ///
    /// # Errors
    /// Bad_CertificateUriInvalid if the certificate names another application; Bad_InternalError.
    pub(crate) fn run(self, provider: &dyn Provider) -> Result<Introduced, StatusCode> {
        // Nothing is signed before it is known what it is: a server that signs any bytes is an oracle.
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
    Certificate {
        /// The signature.
        proof: SignatureProof,
        /// Where the client is.
        address: Option<IpAddr>,
    },
    /// A password or token that was encrypted for us.
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

/// What has to hold before an ActivateSession goes on.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// The client is still the one that created the session. Absent without security.
    pub(crate) client: Option<SignatureProof>,
    pub(crate) user: Option<UserProof>,
    /// The client can use a key for its next secret.
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

/// What came of a [`Proof`] that holds.
#[derive(Debug)]
pub(crate) struct Proved {
    pub(crate) proven: Proven,
    pub(crate) next_key: Option<OfferedKey>,
}

/// What a proof has brought to light.
pub(crate) enum Proven {
    /// It holds.
    Holds,
    /// It holds, and this is the secret.
    Secret(Secret),
    /// It holds for the user's certificate.
    Certificate {
        /// The certificate's thumbprint in digits.
        thumbprint: Box<str>,
        /// When the certificate ends to be good (Part 4 §7.40.5).
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

/// Which proof failed. What the client is told is decided elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client's signature.
    Client,
    /// The signature with the user's certificate.
    UserSignature,
    /// The user's certificate, for a reason that the client is not told.
    UserCertificate(StatusCode),
    /// The secret: whatever is wrong with it.
    User,
}

impl Proof {
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_none() && self.user.is_none() && self.next_key.is_none()
    }

    /// What the work is, for whoever plans it.
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

    /// Checks everything.
    ///
    /// # Errors
    /// What did not hold.
    pub(crate) fn run(self, provider: &dyn Provider) -> Result<Proved, Refusal> {
        let next_key = self.next_key;
        let proven = self.holds(provider)?;
        // Without the key the client's next secret is refused; this activation is as good as before.
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
                // First the signature: without the key nobody learns which certificates are trusted.
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
            // Padding, length and nonce look alike from outside, and from here on.
            Some(UserProof::Secret(secret)) => secret.run(provider).map(Proven::Secret).map_err(|error| {
                tracing::debug!(%error, "user secret");
                Refusal::User
            }),
        }
    }
}
