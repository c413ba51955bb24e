//! The bodies of OpenSecureChannel and CloseSecureChannel (Part 6 §6.7.4, Part 4 §5.6.2, §5.6.3).
//!
//! The structures come from the schema. This module adds a gap for a nonce that is filled in later, and the checks that
//! precede all other processing of a message.

use crate::error::{ChannelError, PeerFault};
use taktwerk_crypto::MessageSecurityMode;
use taktwerk_schema::{
    CloseSecureChannelRequest, OpenSecureChannelRequest, OpenSecureChannelResponse, RequestHeader,
    ResponseHeader, SecurityTokenRequestType, ServiceFault,
};
use taktwerk_types::{
    ByteString, Decode, DecodeError, DecodeLimits, Decoder, Encode, NodeId, NodeIdRef, Structure, UtcTime,
};

/// The strings and arrays in these messages are short.
const LIMITS: DecodeLimits = DecodeLimits {
    string_len_max: 4096,
    byte_string_len_max: 4096,
    array_len_max: 1024,
    depth_max: 16,
    memory_max: 1 << 20,
};

/// Appends the type id of a message and the message.
fn append<T: Structure>(message: &T, out: &mut Vec<u8>) {
    NodeId::numeric(0, T::BINARY_ENCODING_ID).encode(out);
    message.encode(out);
}

/// A nonce of zeros, to be filled in later; null if its length is 0.
fn gap(nonce_len: usize) -> ByteString {
    if nonce_len == 0 { ByteString::NULL } else { vec![0; nonce_len].into() }
}

/// What a client requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenRequest {
    pub(crate) request_handle: u32,
    pub(crate) renewal: bool,
    pub(crate) mode: MessageSecurityMode,
    pub(crate) nonce_len: usize,
    pub(crate) lifetime_ms: u32,
    pub(crate) timestamp: UtcTime,
    pub(crate) timeout_hint_ms: u32,
}

impl OpenRequest {
    /// Appends type and body. Returns the position of the nonce.
    pub(crate) fn append(self, out: &mut Vec<u8>) -> usize {
        let request = OpenSecureChannelRequest {
            request_header: RequestHeader {
                timestamp: self.timestamp,
                request_handle: self.request_handle,
                timeout_hint: self.timeout_hint_ms,
                ..RequestHeader::default()
            },
            client_protocol_version: 0,
            request_type: if self.renewal {
                SecurityTokenRequestType::RENEW
            } else {
                SecurityTokenRequestType::ISSUE
            },
            security_mode: taktwerk_schema::MessageSecurityMode(self.mode.number()),
            client_nonce: gap(self.nonce_len),
            requested_lifetime: self.lifetime_ms,
        };
        append(&request, out);
        // The lifetime follows the nonce.
        out.len() - size_of::<u32>() - self.nonce_len
    }
}

/// Appends type and body of a response with a gap for the nonce. Returns the position of the gap.
pub(crate) fn append_open_response(
    mut response: OpenSecureChannelResponse,
    nonce_len: usize,
    out: &mut Vec<u8>,
) -> usize {
    response.server_nonce = gap(nonce_len);
    append(&response, out);
    out.len() - nonce_len
}

/// Appends type and body of a CloseSecureChannel request.
pub(crate) fn append_close_request(timestamp: UtcTime, out: &mut Vec<u8>) {
    let request_header = RequestHeader { timestamp, ..RequestHeader::default() };
    append(&CloseSecureChannelRequest { request_header }, out);
}

fn type_of(decoder: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    NodeIdRef::decode(decoder)?.to_owned().ns0().ok_or(DecodeError::Invalid("message type id"))
}

/// Reads type and body of a request.
pub(crate) fn parse_open_request(body: &[u8]) -> Result<OpenSecureChannelRequest, ChannelError> {
    let decoder = &mut Decoder::new(body, LIMITS);
    if type_of(decoder)? != OpenSecureChannelRequest::BINARY_ENCODING_ID {
        return Err(PeerFault::Unexpected("another service in an OPN message").into());
    }
    Ok(OpenSecureChannelRequest::decode(decoder)?)
}

/// Reads type and body of a response. A service fault becomes [`PeerFault::Refused`].
pub(crate) fn parse_open_response(body: &[u8]) -> Result<OpenSecureChannelResponse, ChannelError> {
    let decoder = &mut Decoder::new(body, LIMITS);
    let refused = |header: &ResponseHeader| ChannelError::from(PeerFault::Refused(header.service_result));
    match type_of(decoder)? {
        ServiceFault::BINARY_ENCODING_ID => Err(refused(&ServiceFault::decode(decoder)?.response_header)),
        OpenSecureChannelResponse::BINARY_ENCODING_ID => {
            let response = OpenSecureChannelResponse::decode(decoder)?;
            let header = &response.response_header;
            if header.service_result.is_bad() { Err(refused(header)) } else { Ok(response) }
        }
        _ => Err(PeerFault::Unexpected("another service in an OPN message").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_schema::ChannelSecurityToken;
    use taktwerk_types::StatusCode;

    #[test]
    fn the_gap_is_where_the_nonce_stands() {
        for nonce_len in [0, 32] {
            let request = OpenRequest {
                request_handle: 9,
                renewal: true,
                mode: MessageSecurityMode::Sign,
                nonce_len,
                lifetime_ms: 5,
                timestamp: UtcTime::NULL,
                timeout_hint_ms: 1,
            };
            let mut out = Vec::new();
            let at = request.append(&mut out);
            out[at..at + nonce_len].fill(7);
            let parsed = parse_open_request(&out).unwrap();
            assert_eq!(parsed.client_nonce.as_bytes(), vec![7; nonce_len]);
            assert_eq!(
                (parsed.request_type, parsed.requested_lifetime),
                (SecurityTokenRequestType::RENEW, 5)
            );
            assert!((0..out.len()).all(|cut| parse_open_request(&out[..cut]).is_err()));
            out.clear();
            let response = OpenSecureChannelResponse {
                security_token: ChannelSecurityToken { channel_id: 2, token_id: 3, ..Default::default() },
                ..Default::default()
            };
            let at = append_open_response(response.clone(), nonce_len, &mut out);
            out[at..at + nonce_len].fill(7);
            let parsed = parse_open_response(&out).unwrap();
            assert_eq!(parsed.server_nonce.as_bytes(), vec![7; nonce_len]);
            assert_eq!(parsed.security_token, response.security_token);
            assert!((0..out.len()).all(|cut| parse_open_response(&out[..cut]).is_err()));
        }
    }

    #[test]
    fn faults_are_refusals() {
        let service_result = StatusCode::BAD_SECURITY_POLICY_REJECTED;
        let response_header = ResponseHeader { service_result, ..Default::default() };
        let mut out = Vec::new();
        append(&ServiceFault { response_header }, &mut out);
        assert_eq!(parse_open_response(&out), Err(PeerFault::Refused(service_result).into()));
    }
}
