//! Which services need what of a session (Part 4 §5.7.2.1): whatever is not named here needs an activated one.

use taktwerk_schema as schema;
use taktwerk_types::Structure;

/// What a service needs before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing: discovery, and what creates sessions.
    Open,
    /// A session, which the service itself looks for: it may not be activated yet, or live elsewhere.
    Session,
    /// An activated session on the channel that the request came through.
    Activated,
}

/// What a service needs, by the id of its request's encoding.
#[inline]
pub(crate) fn gate(type_id: u32) -> Gate {
    match type_id {
        schema::FindServersRequest::BINARY_ENCODING_ID
        | schema::FindServersOnNetworkRequest::BINARY_ENCODING_ID
        | schema::RegisterServerRequest::BINARY_ENCODING_ID
        | schema::RegisterServer2Request::BINARY_ENCODING_ID
        | schema::GetEndpointsRequest::BINARY_ENCODING_ID
        | schema::CreateSessionRequest::BINARY_ENCODING_ID => Gate::Open,
        schema::ActivateSessionRequest::BINARY_ENCODING_ID
        | schema::CloseSessionRequest::BINARY_ENCODING_ID => Gate::Session,
        _ => Gate::Activated,
    }
}
