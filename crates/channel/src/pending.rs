//! State of an OpenSecureChannel exchange between its messages.

use crate::sequence;
use std::sync::Arc;
use taktwerk_crypto::{KeyAgreement, SecurityPolicy};
use taktwerk_types::Instant;

/// An OpenSecureChannel exchange that has not finished.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Server: a request is being checked.
    CheckRequest {
        headers_len: usize,
        certificate: Arc<[u8]>,
        policy: SecurityPolicy,
        reserved: ReservedNumber,
    },
    /// Server: the response is being secured.
    SealResponse { token_id: u32, lifetime_ms: u32, renewal: bool },
    /// Client: the request is being secured.
    SealRequest(Exchange),
    /// Client: the request has been sent.
    AwaitResponse(Exchange),
    /// Client: the response is being checked.
    CheckResponse { headers_len: usize, exchange: Exchange, reserved: ReservedNumber },
}

/// A client's request that awaits its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) request_id: u32,
    pub(crate) renewal: bool,
    pub(crate) sent_at: Instant,
    pub(crate) half: Option<Box<dyn KeyAgreement>>,
    pub(crate) signature: Vec<u8>,
}

/// Reserved position in the sequence of a chunk whose number is still encrypted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservedNumber {
    pub(crate) before: sequence::Received,
    pub(crate) number: u32,
}
