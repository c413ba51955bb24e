//! What kinds of slow work there are, so that drivers can choose the threads and account for the cost.

use taktwerk_crypto::SecurityPolicy;

/// What an effect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum JobKind {
    /// An OpenSecureChannel request: the certificate is validated, one block or more decrypted with the server's key, and
    /// the signature verified.
    OpenChannel(SecurityPolicy),
    /// An OpenSecureChannel response: keys are agreed on and derived, the response is signed and encrypted.
    AnswerChannel(SecurityPolicy),
    /// A certificate in use is validated again, because a trust list has changed.
    ValidateCertificate,
    /// CreateSession: the server's signature, and if `offers_key` a key pair for the user's secret with a second one.
    SignSession {
        /// Whose algorithms are used.
        policy: SecurityPolicy,
        /// The response offers a key.
        offers_key: bool,
    },
    /// ActivateSession, before the user is known.
    ProveSession {
        /// The client's signature is verified with these algorithms; `None` without security.
        client: Option<SecurityPolicy>,
        /// What the user's token needs.
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
    /// A value is written whose handler may block.
    WriteValue,
    /// A HistoryRead asks stores.
    ReadHistory,
    /// A HistoryUpdate changes what stores have.
    UpdateHistory,
    /// What has changed of durable subscriptions is written.
    WriteSubscriptions,
}

impl JobKind {
    /// What host profiles call it: the work, and behind a slash the SecurityPolicy that decides on the cost.
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
            Self::UpdateHistory => "update-history".into(),
            Self::WriteSubscriptions => "write-subscriptions".into(),
        }
    }
}

/// What it takes to look into a user's identity token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UserProofKind {
    /// Nothing: Anonymous, or a secret that was not encrypted.
    None,
    /// A signature is verified, and the user's certificate validated.
    Signature(SecurityPolicy),
    /// A password or token is decrypted.
    Secret(SecurityPolicy),
}
