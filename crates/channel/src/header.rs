//! Message and security headers (Part 6 §6.7.2, §7.1.2.2): parsed once into `Copy` values.

use crate::error::{ChannelError, PeerFault};
use core::ops::Range;
use taktwerk_types::DecodeError;

/// Bytes of the header that every message starts with.
pub(crate) const HEADER_LEN: usize = 8;
/// Bytes before the sequence header of MSG and CLO chunks: header, SecureChannelId, TokenId.
pub(crate) const SYMMETRIC_LEN: usize = 16;
/// Bytes of the sequence header.
pub(crate) const SEQUENCE_LEN: usize = 8;
/// Bytes before the body of MSG and CLO chunks.
pub(crate) const HEAD_LEN: usize = SYMMETRIC_LEN + SEQUENCE_LEN;

/// The three letters of a message (Part 6 §7.1.2.2, §6.7.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageType {
    Hello,
    Acknowledge,
    Error,
    ReverseHello,
    Open,
    Close,
    Message,
}

impl MessageType {
    pub(crate) const fn letters(self) -> &'static [u8; 3] {
        match self {
            Self::Hello => b"HEL",
            Self::Acknowledge => b"ACK",
            Self::Error => b"ERR",
            Self::ReverseHello => b"RHE",
            Self::Open => b"OPN",
            Self::Close => b"CLO",
            Self::Message => b"MSG",
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hello => "HEL",
            Self::Acknowledge => "ACK",
            Self::Error => "ERR",
            Self::ReverseHello => "RHE",
            Self::Open => "OPN",
            Self::Close => "CLO",
            Self::Message => "MSG",
        }
    }
}

/// The IsFinal byte (Part 6 §6.7.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsFinal {
    Final,
    Intermediate,
    Abort,
}

impl IsFinal {
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::Final => b'F',
            Self::Intermediate => b'C',
            Self::Abort => b'A',
        }
    }
}

/// The first eight bytes of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) message_type: MessageType,
    pub(crate) is_final: IsFinal,
    /// Bytes of the whole chunk.
    pub(crate) size: u32,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if it is not complete.
    #[inline]
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, PeerFault> {
        let Some(&[a, b, c, flag, s0, s1, s2, s3]) = bytes.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let message_type = match &[a, b, c] {
            b"MSG" => MessageType::Message,
            b"OPN" => MessageType::Open,
            b"CLO" => MessageType::Close,
            b"HEL" => MessageType::Hello,
            b"ACK" => MessageType::Acknowledge,
            b"ERR" => MessageType::Error,
            b"RHE" => MessageType::ReverseHello,
            _ => return Err(PeerFault::HeaderInvalid),
        };
        let is_final = match (flag, message_type) {
            (b'F', _) => IsFinal::Final,
            (b'C', MessageType::Message) => IsFinal::Intermediate,
            (b'A', MessageType::Message) => IsFinal::Abort,
            // The flag has a meaning on MSG only; elsewhere it is always F (Part 6 §6.7.2.2).
            _ => return Err(PeerFault::HeaderInvalid),
        };
        let size = u32::from_le_bytes([s0, s1, s2, s3]);
        let size_min = match message_type {
            MessageType::Message | MessageType::Close => HEAD_LEN,
            _ => HEADER_LEN,
        };
        if (size as usize) < size_min {
            return Err(PeerFault::HeaderInvalid);
        }
        Ok(Some(Self { message_type, is_final, size }))
    }

    /// Appends a header whose size is patched by [`patch_size`].
    pub(crate) fn begin(message_type: MessageType, out: &mut Vec<u8>) -> usize {
        let at = out.len();
        out.extend_from_slice(message_type.letters());
        out.extend_from_slice(&[b'F', 0, 0, 0, 0]);
        at
    }
}

/// Writes the size of the message that spans from `at` to the end of `out`.
pub(crate) fn patch_size(at: usize, out: &mut [u8]) {
    let size = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(at + 4..at + 8) {
        field.copy_from_slice(&size.to_le_bytes());
    }
}

/// The fixed header of a MSG or CLO chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymmetricHead {
    pub(crate) channel_id: u32,
    pub(crate) token_id: u32,
}

impl SymmetricHead {
    #[inline]
    pub(crate) fn parse(chunk: &[u8]) -> Option<Self> {
        Some(Self { channel_id: u32_at(chunk, 8)?, token_id: u32_at(chunk, 12)? })
    }
}

/// The sequence header (Part 6 §6.7.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequenceHead {
    pub(crate) sequence_number: u32,
    pub(crate) request_id: u32,
}

impl SequenceHead {
    #[inline]
    pub(crate) fn parse(chunk: &[u8], at: usize) -> Option<Self> {
        Some(Self { sequence_number: u32_at(chunk, at)?, request_id: u32_at(chunk, at + 4)? })
    }

    pub(crate) fn append(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence_number.to_le_bytes());
        out.extend_from_slice(&self.request_id.to_le_bytes());
    }
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Positions of the fields in the security header of an OpenSecureChannel chunk (Part 6 §6.7.2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsymmetricHead {
    pub(crate) channel_id: u32,
    pub(crate) policy_uri: Range<usize>,
    /// Empty if null.
    pub(crate) sender_certificate: Range<usize>,
    /// Empty if null.
    pub(crate) receiver_thumbprint: Range<usize>,
    /// Where the sequence header starts.
    pub(crate) len: usize,
}

impl AsymmetricHead {
    pub(crate) fn parse(chunk: &[u8]) -> Result<Self, ChannelError> {
        let mut at = HEADER_LEN;
        let channel_id = u32_at(chunk, at).ok_or(DecodeError::Truncated { needed: 4 })?;
        at += 4;
        // Part 6 §6.7.2.3: the URI has at most 255 bytes. The certificate is bounded by the size of the chunk.
        let policy_uri = byte_string(chunk, &mut at, 255)?;
        let sender_certificate = byte_string(chunk, &mut at, usize::MAX)?;
        let receiver_thumbprint = byte_string(chunk, &mut at, 20)?;
        Ok(Self { channel_id, policy_uri, sender_certificate, receiver_thumbprint, len: at })
    }

    /// Appends the security header; null fields are empty slices.
    pub(crate) fn append(
        channel_id: u32,
        uri: &str,
        certificate: &[u8],
        thumbprint: &[u8],
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&channel_id.to_le_bytes());
        for (field, nullable) in [(uri.as_bytes(), false), (certificate, true), (thumbprint, true)] {
            if field.is_empty() && nullable {
                taktwerk_types::codec::encode_bytes(None, out);
            } else {
                taktwerk_types::codec::encode_bytes(Some(field), out);
            }
        }
    }
}

fn byte_string(chunk: &[u8], at: &mut usize, len_max: usize) -> Result<Range<usize>, ChannelError> {
    let len = u32_at(chunk, *at).ok_or(DecodeError::Truncated { needed: 4 })?;
    *at += 4;
    // Any negative length is null.
    let len = usize::try_from(len as i32).unwrap_or(0);
    if len > len_max {
        return Err(DecodeError::Invalid("security header").into());
    }
    let start = *at;
    let end = start.checked_add(len).filter(|end| *end <= chunk.len());
    *at = end.ok_or(DecodeError::Truncated { needed: len })?;
    Ok(start..*at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_apart() {
        assert_eq!(Header::parse(b"MSGF"), Ok(None));
        assert_eq!(
            Header::parse(b"MSGC\x18\0\0\0rest"),
            Ok(Some(Header {
                message_type: MessageType::Message,
                is_final: IsFinal::Intermediate,
                size: 24
            }))
        );
        for bad in [b"MSGX\x18\0\0\0", b"OPNC\x18\0\0\0", b"GET / HT", b"MSGF\x17\0\0\0", b"HELF\x07\0\0\0"] {
            assert_eq!(Header::parse(bad), Err(PeerFault::HeaderInvalid));
        }
    }

    #[test]
    fn asymmetric_headers_round_trip_and_refuse_overrun() {
        let mut chunk = b"OPNF\0\0\0\0".to_vec();
        AsymmetricHead::append(7, "uri", b"cert", b"", &mut chunk);
        let head = AsymmetricHead::parse(&chunk).unwrap();
        assert_eq!(&chunk[head.policy_uri.clone()], b"uri");
        assert_eq!(&chunk[head.sender_certificate.clone()], b"cert");
        assert!(head.receiver_thumbprint.is_empty());
        assert_eq!((head.channel_id, head.len), (7, chunk.len()));
        for cut in 8..chunk.len() {
            assert!(AsymmetricHead::parse(&chunk[..cut]).is_err());
        }
        chunk[12..16].copy_from_slice(&i32::MAX.to_le_bytes());
        assert!(AsymmetricHead::parse(&chunk).is_err());
    }
}
