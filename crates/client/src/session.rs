//! A session and its activation.

use crate::effect::JobToken;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_crypto::{Job, MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_schema::{ActivateSessionRequest, EphemeralKeyType, UserTokenPolicy};
use taktwerk_types::NodeId;

/// A session. It outlives its connections.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: NodeId,
    pub(crate) authentication_token: NodeId,
    /// In milliseconds.
    pub(crate) revised_timeout_ms: f64,
    /// Signed by the next ActivateSession.
    pub(crate) server_nonce: Box<[u8]>,
    pub(crate) server_certificate: Arc<[u8]>,
    /// Security of the channel on which the session was created.
    pub(crate) security: (SecurityPolicy, MessageSecurityMode),
    /// Nonce of CreateSession.
    pub(crate) client_nonce: Box<[u8]>,
    /// The endpoint's token policies.
    pub(crate) token_policies: Vec<UserTokenPolicy>,
    /// The server's key for the next secret. Its signature must be verified before use.
    pub(crate) key: Option<EphemeralKeyType>,
    /// Whether ActivateSession has succeeded.
    pub(crate) activated: bool,
    /// Whether the application was notified of it.
    pub(crate) is_reported: bool,
    /// The subscriptions of the previous session have to be transferred.
    pub(crate) transfer_due: bool,
    /// Number of transfer attempts.
    pub(crate) transfers: u8,
}

/// An ActivateSession request that waits for its signatures.
#[derive(Debug)]
pub(crate) struct Activation {
    pub(crate) request: Box<ActivateSessionRequest>,
    pub(crate) steps: VecDeque<(Step, Job, Arc<dyn Provider>)>,
}

/// A job of an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The server's signature in CreateSession.
    VerifyServer,
    /// The client's signature.
    SignClient,
    /// Validation of the certificate that the password is encrypted for, if the channel has not validated it.
    ValidateServer,
    /// Signature of the server's key for a secret.
    VerifyKey,
    /// The user's password or token.
    EncryptSecret,
    /// Signature with the user certificate's key.
    SignUser,
}

/// The purpose of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobPurpose {
    /// A job of the channel.
    Channel,
    /// A step of an activation.
    Activation(Step),
    /// Validating the server's certificate again.
    Trust,
}

/// Jobs that the driver executes.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Jobs not completed yet.
    pub(crate) waiting: Vec<(JobToken, JobPurpose)>,
    /// The last token used.
    pub(crate) last: u32,
}

/// Nonces of the current or last session.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// Sent in the last CreateSession; the server signs it.
    pub(crate) client: Box<[u8]>,
    /// The server's last nonce, which must not be repeated.
    pub(crate) server: Box<[u8]>,
}

/// Length of our nonces in bytes; the specification requires at least 32.
pub(crate) const NONCE_LEN: usize = 32;
/// Maximum length of a nonce in bytes.
const NONCE_LEN_MAX: usize = 128;

/// Whether a nonce has a valid length and does not look like the output of a broken generator (Part 4 §5.7.2.2).
pub(crate) fn is_nonce(nonce: &[u8]) -> bool {
    (NONCE_LEN..=NONCE_LEN_MAX).contains(&nonce.len()) && nonce.iter().any(|byte| *byte != 0)
}
