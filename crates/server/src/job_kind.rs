//! The kinds of slow work. Drivers use them to choose threads and to account for the cost.

use taktwerk_crypto::SecurityPolicy;

/// The kind of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum JobKind {
    /// An OpenSecureChannel request: validate the certificate, decrypt with the server's key, verify the signature.
    OpenChannel(SecurityPolicy),
    /// An OpenSecureChannel response: agree on and derive keys, sign and encrypt the response.
    AnswerChannel(SecurityPolicy),
    /// Validate a certificate in use again after a change of a trust list.
    ValidateCertificate,
    /// CreateSession: the server's signature and, if `offers_key`, a signed key pair for the user's secret.
    SignSession {
        /// The policy whose algorithms are used.
        policy: SecurityPolicy,
        /// The response offers a key.
        offers_key: bool,
    },
    /// ActivateSession, before the user is known.
    ProveSession {
        /// The policy for verifying the client's signature; `None` without security.
        client: Option<SecurityPolicy>,
        /// The work for the user's token.
        user: UserProofKind,
        /// The response offers a key for the user's next secret.
        offers_key: bool,
    },
    /// The application checks a user name and password, a certificate, or an issued token.
    CheckCredential,
    /// A value source answers a Read.
    ReadValue,
    /// A value source gives the value of a monitored item.
    SampleValue,
    /// A method runs.
    CallMethod,
    /// A write handler that may block writes a value.
    WriteValue,
    /// A HistoryRead reads from stores.
    ReadHistory,
    /// A HistoryRead reads from a store that waits for another server.
    ReadRemoteHistory,
    /// A HistoryUpdate changes stored data.
    UpdateHistory,
    /// Changes of durable subscriptions are written.
    WriteSubscriptions,
}

impl JobKind {
    /// The name in host profiles: the work, then a slash and the SecurityPolicy that determines the cost.
    #[must_use]
    pub fn name(&self) -> String {
        let key = |offers: bool| if offers { "+key" } else { "" };
        match self {
            Self::OpenChannel(policy) => format!("open-channel/{}", policy.name()),
            Self::AnswerChannel(policy) => format!("answer-channel/{}", policy.name()),
            Self::ValidateCertificate => "validate-certificate".into(),
            Self::SignSession { policy, offers_key } => {
                format!("sign-session{}/{}", key(*offers_key), policy.name())
            }
            Self::ProveSession { client, user, offers_key } => {
                let user = match user {
                    UserProofKind::None => String::new(),
                    UserProofKind::Signature(policy) => format!("+user-signature:{}", policy.name()),
                    UserProofKind::Secret(policy) => format!("+user-secret:{}", policy.name()),
                };
                let client = client.map_or("None", |policy| policy.name());
                format!("prove-session{}{user}/{client}", key(*offers_key))
            }
            Self::CheckCredential => "check-credential".into(),
            Self::ReadValue => "read-value".into(),
            Self::SampleValue => "sample-value".into(),
            Self::CallMethod => "call-method".into(),
            Self::WriteValue => "write-value".into(),
            Self::ReadHistory => "read-history".into(),
            Self::ReadRemoteHistory => "read-remote-history".into(),
            Self::UpdateHistory => "update-history".into(),
            Self::WriteSubscriptions => "write-subscriptions".into(),
        }
    }
}

/// The work for a user's identity token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UserProofKind {
    /// None: Anonymous, or an unencrypted secret.
    None,
    /// A signature is verified, and the user's certificate validated.
    Signature(SecurityPolicy),
    /// A password or token is decrypted.
    Secret(SecurityPolicy),
}
