//! The bodies of OpenSecureChannel and CloseSecureChannel (Part 6 §6.7.4, Part 4 §5.6.2, §5.6.3).

use crate::error::{ChannelError, PeerFault};
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_types::codec::encode_bytes;
use taktwerk_types::{
    Decode, DecodeError, DecodeLimits, Decoder, DiagnosticInfo, Encode, ExtensionObject, NodeIdRef,
    StatusCode, UaString, UtcTime,
};

/// Ids of the binary encodings (Part 6 Annex A).
const SERVICE_FAULT: u32 = 397;
const OPEN_REQUEST: u32 = 446;
const OPEN_RESPONSE: u32 = 449;
const CLOSE_REQUEST: u32 = 452;

/// SecurityTokenRequestType (Part 4 §5.6.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestType {
    Issue,
    Renew,
}

/// OpenSecureChannelRequest. `N` is the nonce: bytes when received, a length to leave open when sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenRequest<'a> {
    pub(crate) request_handle: u32,
    pub(crate) request_type: RequestType,
    pub(crate) mode: MessageSecurityMode,
    pub(crate) nonce: &'a [u8],
    pub(crate) lifetime_ms: u32,
}

/// OpenSecureChannelResponse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenResponse<'a> {
    pub(crate) request_handle: u32,
    pub(crate) timestamp: UtcTime,
    pub(crate) channel_id: u32,
    pub(crate) token_id: u32,
    pub(crate) created_at: UtcTime,
    pub(crate) lifetime_ms: u32,
    pub(crate) nonce: &'a [u8],
}

fn append_type(id: u32, out: &mut Vec<u8>) {
    NodeIdRef { namespace_index: 0, identifier: taktwerk_types::IdentifierRef::Numeric(id) }.encode(out);
}

/// A RequestHeader without a session (Part 4 §7.32).
fn append_request_header(timestamp: UtcTime, request_handle: u32, timeout_hint_ms: u32, out: &mut Vec<u8>) {
    append_type(0, out);
    timestamp.encode(out);
    request_handle.encode(out);
    0u32.encode(out);
    UaString::NULL.encode(out);
    timeout_hint_ms.encode(out);
    ExtensionObject::NULL.encode(out);
}

/// Appends a nonce of zeros, to be filled in later; says where it stands. No bytes are a null nonce.
fn append_nonce_gap(len: usize, out: &mut Vec<u8>) -> usize {
    if len == 0 {
        encode_bytes(None, out);
        return out.len();
    }
    taktwerk_types::codec::encode_len(len, out);
    let at = out.len();
    out.resize(at + len, 0);
    at
}

/// Appends type and body of a request with a gap for the nonce; says where the gap is.
pub(crate) fn append_open_request(
    request: &OpenRequest<'_>,
    nonce_len: usize,
    timestamp: UtcTime,
    timeout_hint_ms: u32,
    out: &mut Vec<u8>,
) -> usize {
    append_type(OPEN_REQUEST, out);
    append_request_header(timestamp, request.request_handle, timeout_hint_ms, out);
    0u32.encode(out);
    i32::from(request.request_type == RequestType::Renew).encode(out);
    request.mode.number().encode(out);
    let nonce_at = append_nonce_gap(nonce_len, out);
    request.lifetime_ms.encode(out);
    nonce_at
}

/// Appends type and body of a response with a gap for the nonce; says where the gap is.
pub(crate) fn append_open_response(
    response: &OpenResponse<'_>,
    nonce_len: usize,
    out: &mut Vec<u8>,
) -> usize {
    append_type(OPEN_RESPONSE, out);
    response.timestamp.encode(out);
    response.request_handle.encode(out);
    StatusCode::GOOD.encode(out);
    DiagnosticInfo::default().encode(out);
    (-1i32).encode(out);
    ExtensionObject::NULL.encode(out);
    0u32.encode(out);
    response.channel_id.encode(out);
    response.token_id.encode(out);
    response.created_at.encode(out);
    response.lifetime_ms.encode(out);
    append_nonce_gap(nonce_len, out)
}

/// Appends type and body of a CloseSecureChannel request.
pub(crate) fn append_close_request(timestamp: UtcTime, out: &mut Vec<u8>) {
    append_type(CLOSE_REQUEST, out);
    append_request_header(timestamp, 0, 0, out);
}

fn type_of(decoder: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    match NodeIdRef::decode(decoder)? {
        NodeIdRef { namespace_index: 0, identifier: taktwerk_types::IdentifierRef::Numeric(id) } => Ok(id),
        _ => Err(DecodeError::Invalid("message type id")),
    }
}

/// The strings and arrays in these messages are short.
const LIMITS: DecodeLimits =
    DecodeLimits { string_len_max: 4096, byte_string_len_max: 4096, array_len_max: 1024, depth_max: 16 };

/// Reads type and body of a request.
pub(crate) fn parse_open_request(body: &[u8]) -> Result<OpenRequest<'_>, ChannelError> {
    let decoder = &mut Decoder::new(body, LIMITS);
    if type_of(decoder)? != OPEN_REQUEST {
        return Err(PeerFault::Unexpected("another service in an OPN message").into());
    }
    NodeIdRef::decode(decoder)?;
    UtcTime::decode(decoder)?;
    let request_handle = u32::decode(decoder)?;
    u32::decode(decoder)?;
    decoder.str()?;
    u32::decode(decoder)?;
    <ExtensionObject as Decode>::decode(decoder)?;
    // The version was negotiated in the Hello; this one repeats it.
    u32::decode(decoder)?;
    let request_type = match i32::decode(decoder)? {
        0 => RequestType::Issue,
        1 => RequestType::Renew,
        _ => return Err(PeerFault::RequestTypeInvalid.into()),
    };
    let mode = MessageSecurityMode::from_number(i32::decode(decoder)?).ok_or(PeerFault::ModeRejected)?;
    let nonce = decoder.bytes()?.unwrap_or_default();
    let lifetime_ms = u32::decode(decoder)?;
    Ok(OpenRequest { request_handle, request_type, mode, nonce, lifetime_ms })
}

/// Reads type and body of a response. A service fault becomes [`PeerFault::Refused`].
pub(crate) fn parse_open_response(body: &[u8]) -> Result<OpenResponse<'_>, ChannelError> {
    let decoder = &mut Decoder::new(body, LIMITS);
    let type_id = type_of(decoder)?;
    if type_id != OPEN_RESPONSE && type_id != SERVICE_FAULT {
        return Err(PeerFault::Unexpected("another service in an OPN message").into());
    }
    let timestamp = UtcTime::decode(decoder)?;
    let request_handle = u32::decode(decoder)?;
    let status = StatusCode::decode(decoder)?;
    if status.is_bad() || type_id == SERVICE_FAULT {
        return Err(PeerFault::Refused(status).into());
    }
    DiagnosticInfo::decode(decoder)?;
    Vec::<UaString>::decode(decoder)?;
    <ExtensionObject as Decode>::decode(decoder)?;
    u32::decode(decoder)?;
    let channel_id = u32::decode(decoder)?;
    let token_id = u32::decode(decoder)?;
    let created_at = UtcTime::decode(decoder)?;
    let lifetime_ms = u32::decode(decoder)?;
    let nonce = decoder.bytes()?.unwrap_or_default();
    Ok(OpenResponse { request_handle, timestamp, channel_id, token_id, created_at, lifetime_ms, nonce })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_trip_at_every_truncation() {
        for nonce_len in [0, 32] {
            let nonce = vec![0; nonce_len];
            let request = OpenRequest {
                request_handle: 9,
                request_type: RequestType::Renew,
                mode: MessageSecurityMode::Sign,
                nonce: &nonce,
                lifetime_ms: 5,
            };
            let mut out = Vec::new();
            let at = append_open_request(&request, nonce_len, UtcTime::NULL, 1, &mut out);
            assert_eq!(at + nonce_len + 4, out.len());
            assert_eq!(parse_open_request(&out), Ok(request));
            assert!((0..out.len()).all(|cut| parse_open_request(&out[..cut]).is_err()));
        }
    }

    #[test]
    fn responses_round_trip_and_faults_are_told() {
        let response = OpenResponse {
            request_handle: 9,
            timestamp: UtcTime::from_ticks(1),
            channel_id: 2,
            token_id: 3,
            created_at: UtcTime::from_ticks(4),
            lifetime_ms: 5,
            nonce: &[0; 32],
        };
        let mut out = Vec::new();
        append_open_response(&response, 32, &mut out);
        assert_eq!(parse_open_response(&out), Ok(response));
        assert!((0..out.len()).all(|cut| parse_open_response(&out[..cut]).is_err()));
        let mut fault = vec![1, 0];
        fault.extend_from_slice(&397u16.to_le_bytes());
        fault.extend_from_slice(&[0; 12]);
        StatusCode::BAD_SECURITY_POLICY_REJECTED.encode(&mut fault);
        assert_eq!(
            parse_open_response(&fault),
            Err(PeerFault::Refused(StatusCode::BAD_SECURITY_POLICY_REJECTED).into())
        );
    }
}
