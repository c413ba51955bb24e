//! Hello, Acknowledge, Error and ReverseHello (Part 6 §7.1.2.3 – §7.1.2.6).

use crate::error::{ChannelError, PeerFault};
use crate::header::{HEADER_LEN, Header, MessageType, patch_size};
use taktwerk_types::codec::encode_bytes;
use taktwerk_types::{Decode, DecodeError, DecodeLimits, Decoder, Encode, StatusCode};

/// Longest URL or reason in these messages, in bytes.
pub(crate) const TEXT_LEN_MAX: u32 = 4096;
/// Largest of these messages: a ReverseHello with two texts.
pub(crate) const HELLO_SIZE_MAX: u32 = HEADER_LEN as u32 + 2 * (4 + TEXT_LEN_MAX);
/// The protocol version of this specification.
pub(crate) const PROTOCOL_VERSION: u32 = 0;

/// The buffer sizes and limits that both Hello and Acknowledge carry. Sizes in bytes; 0 in a maximum is "no limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) version: u32,
    pub(crate) receive_buffer_size: u32,
    pub(crate) send_buffer_size: u32,
    pub(crate) message_size_max: u32,
    pub(crate) chunk_count_max: u32,
}

impl Sizes {
    fn append(self, out: &mut Vec<u8>) {
        for field in [
            self.version,
            self.receive_buffer_size,
            self.send_buffer_size,
            self.message_size_max,
            self.chunk_count_max,
        ] {
            field.encode(out);
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: u32::decode(decoder)?,
            receive_buffer_size: u32::decode(decoder)?,
            send_buffer_size: u32::decode(decoder)?,
            message_size_max: u32::decode(decoder)?,
            chunk_count_max: u32::decode(decoder)?,
        })
    }
}

fn decoder(message: &[u8]) -> Decoder<'_> {
    let limits = DecodeLimits { string_len_max: TEXT_LEN_MAX, ..DecodeLimits::DEFAULT };
    Decoder::new(message.get(HEADER_LEN..).unwrap_or_default(), limits)
}

pub(crate) fn append_hello(sizes: Sizes, endpoint_url: &str, out: &mut Vec<u8>) {
    let at = Header::begin(MessageType::Hello, out);
    sizes.append(out);
    encode_bytes(Some(endpoint_url.as_bytes()), out);
    patch_size(at, out);
}

/// Reads a Hello; a null URL reads as empty.
pub(crate) fn parse_hello(message: &[u8]) -> Result<(Sizes, &str), ChannelError> {
    let mut decoder = decoder(message);
    let sizes = Sizes::decode(&mut decoder)?;
    match decoder.str() {
        Ok(url) => Ok((sizes, url.unwrap_or_default())),
        Err(DecodeError::Limit { .. }) => Err(PeerFault::EndpointUrlInvalid.into()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn append_acknowledge(sizes: Sizes, out: &mut Vec<u8>) {
    let at = Header::begin(MessageType::Acknowledge, out);
    sizes.append(out);
    patch_size(at, out);
}

pub(crate) fn parse_acknowledge(message: &[u8]) -> Result<Sizes, ChannelError> {
    Ok(Sizes::decode(&mut decoder(message))?)
}

pub(crate) fn append_error(status: StatusCode, reason: &str, out: &mut Vec<u8>) {
    let at = Header::begin(MessageType::Error, out);
    append_error_body(status, reason, out);
    patch_size(at, out);
}

/// The body format shared by Error messages and abort chunks (Part 6 §7.1.2.5, §6.7.3).
pub(crate) fn append_error_body(status: StatusCode, reason: &str, out: &mut Vec<u8>) {
    status.encode(out);
    let mut end = reason.len().min(TEXT_LEN_MAX as usize);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = reason.get(..end).filter(|reason| !reason.is_empty());
    encode_bytes(reason.map(str::as_bytes), out);
}

/// Reads the body of an Error message or abort chunk. A reason that is too long or not UTF-8 is dropped; the status is
/// what matters.
pub(crate) fn parse_error_body(body: &[u8]) -> Result<(StatusCode, &str), ChannelError> {
    let limits = DecodeLimits { string_len_max: TEXT_LEN_MAX, ..DecodeLimits::DEFAULT };
    let mut decoder = Decoder::new(body, limits);
    let status = StatusCode::decode(&mut decoder)?;
    Ok((status, decoder.str().ok().flatten().unwrap_or_default()))
}

pub(crate) fn append_reverse_hello(server_uri: &str, endpoint_url: &str, out: &mut Vec<u8>) {
    let at = Header::begin(MessageType::ReverseHello, out);
    encode_bytes(Some(server_uri.as_bytes()), out);
    encode_bytes(Some(endpoint_url.as_bytes()), out);
    patch_size(at, out);
}

/// Reads a ReverseHello: (serverUri, endpointUrl).
pub(crate) fn parse_reverse_hello(message: &[u8]) -> Result<(&str, &str), ChannelError> {
    let mut decoder = decoder(message);
    let mut text = || match decoder.str() {
        Ok(text) => Ok(text.unwrap_or_default()),
        Err(DecodeError::Limit { .. }) => Err(ChannelError::from(PeerFault::EndpointUrlInvalid)),
        Err(error) => Err(error.into()),
    };
    Ok((text()?, text()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        version: 0,
        receive_buffer_size: 1,
        send_buffer_size: 2,
        message_size_max: 3,
        chunk_count_max: 4,
    };

    #[test]
    fn messages_round_trip_and_refuse_truncation() {
        let mut out = Vec::new();
        append_hello(SIZES, "opc.tcp://x", &mut out);
        assert_eq!(out[4..8], u32::try_from(out.len()).unwrap().to_le_bytes());
        assert_eq!(parse_hello(&out), Ok((SIZES, "opc.tcp://x")));
        assert!((0..out.len()).all(|cut| parse_hello(&out[..cut]).is_err()));
        out.clear();
        append_acknowledge(SIZES, &mut out);
        assert_eq!(parse_acknowledge(&out), Ok(SIZES));
        out.clear();
        append_reverse_hello("urn:x", "opc.tcp://x", &mut out);
        assert_eq!(parse_reverse_hello(&out), Ok(("urn:x", "opc.tcp://x")));
    }

    #[test]
    fn url_of_4096_bytes_is_the_longest() {
        for (len, fits) in [(4096, true), (4097, false)] {
            let mut out = Vec::new();
            append_hello(SIZES, &"u".repeat(len), &mut out);
            assert_eq!(parse_hello(&out).is_ok(), fits);
        }
    }

    #[test]
    fn long_reasons_are_cut_and_ignored() {
        let mut out = Vec::new();
        append_error_body(StatusCode::BAD_TIMEOUT, &"ä".repeat(3000), &mut out);
        let (status, reason) = parse_error_body(&out).unwrap();
        assert_eq!((status, reason.len()), (StatusCode::BAD_TIMEOUT, 4096));
        out.clear();
        StatusCode::BAD_TIMEOUT.encode(&mut out);
        encode_bytes(Some(&[b'x'; 5000]), &mut out);
        assert_eq!(parse_error_body(&out), Ok((StatusCode::BAD_TIMEOUT, "")));
    }
}
