//! A session and what it takes to activate it.

use crate::effect::JobToken;
use std::collections::VecDeque;
use std::sync::Arc;
use taktwerk_crypto::{Job, MessageSecurityMode, Provider, SecurityPolicy};
use taktwerk_schema::{ActivateSessionRequest, EphemeralKeyType, UserTokenPolicy};
use taktwerk_types::NodeId;

/// A session as the server gave it to us. It outlives its connections.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: NodeId,
    pub(crate) authentication_token: NodeId,
    /// In milliseconds.
    pub(crate) revised_timeout_ms: f64,
    /// To be signed by the next ActivateSession.
    pub(crate) server_nonce: Box<[u8]>,
    pub(crate) server_certificate: Arc<[u8]>,
    /// Of the channel that the session was made on.
    pub(crate) security: (SecurityPolicy, MessageSecurityMode),
    /// Of CreateSession.
    pub(crate) client_nonce: Box<[u8]>,
    /// How the endpoint takes identities.
    pub(crate) token_policies: Vec<UserTokenPolicy>,
    /// The server's key for the next secret; whoever uses it checks its signature first.
    pub(crate) key: Option<EphemeralKeyType>,
    /// Whether ActivateSession has succeeded.
    pub(crate) activated: bool,
    /// Whether the application knows of it.
    pub(crate) told: bool,
    /// The subscriptions of the session before this one have not been taken over yet.
    pub(crate) transfer_due: bool,
    /// How often that was tried.
    pub(crate) transfers: u8,
}

/// An ActivateSession request that is waiting for its signatures.
#[derive(Debug)]
pub(crate) struct Activation {
    pub(crate) request: Box<ActivateSessionRequest>,
    pub(crate) steps: VecDeque<(Step, Job, Arc<dyn Provider>)>,
}

/// What a job of an activation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The server's signature in CreateSession.
    VerifyServer,
    /// Our signature.
    SignClient,
    /// The certificate that the password is encrypted for, where the channel has not vouched for it.
    ValidateServer,
    /// The signature of the server's key for a secret.
    VerifyKey,
    /// The user's password or token.
    EncryptSecret,
    /// The signature of the user's certificate.
    SignUser,
}

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobPurpose {
    /// The channel knows.
    Channel,
    /// A step of an activation.
    Activation(Step),
    /// The server's certificate is looked at again.
    Trust,
}

/// Jobs that the driver has.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Those that have not been completed.
    pub(crate) waiting: Vec<(JobToken, JobPurpose)>,
    /// The number of the last one.
    pub(crate) last: u32,
}

/// Nonces of the session that is made, or was made last.
#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// Of the last CreateSession: the server signs it.
    pub(crate) client: Box<[u8]>,
    /// The server's last one, which must not come again.
    pub(crate) server: Box<[u8]>,
}

/// Bytes of our nonces; the specification asks for 32 at least.
pub(crate) const NONCE_LEN: usize = 32;
/// Bytes of a nonce at most.
const NONCE_LEN_MAX: usize = 128;

/// Long enough and not too long, and not what a broken generator makes (Part 4 §5.7.2.2).
pub(crate) fn is_nonce(nonce: &[u8]) -> bool {
    (NONCE_LEN..=NONCE_LEN_MAX).contains(&nonce.len()) && nonce.iter().any(|byte| *byte != 0)
}
