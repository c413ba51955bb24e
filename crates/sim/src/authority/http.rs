//! HTTP/1.1 messages between askers and authorities (RFC 9112). Bodies are zeros.

use super::{Authority, Protocol};

/// Bytes of an OCSP request for one certificate with SHA-1 hashes and a nonce, as OpenSSL sends it.
const OCSP_REQUEST: usize = 112;
/// Maximum length of the headers of a message.
const HEAD_MAX: usize = 4_096;
const END: &[u8] = b"\r\n\r\n";
const LENGTH: &str = "content-length:";

/// The stream is not HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

fn message(head: &str, body_len: usize) -> Vec<u8> {
    let mut bytes = head.as_bytes().to_vec();
    bytes.extend_from_slice(END);
    bytes.resize(bytes.len() + body_len, 0);
    bytes
}

/// A request for the status of a certificate.
pub(super) fn request(authority: &Authority) -> Vec<u8> {
    let host = &authority.name;
    match authority.protocol {
        Protocol::Ocsp => message(
            &format!(
                "POST /ocsp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/ocsp-request\r\n\
                 Content-Length: {OCSP_REQUEST}\r\nConnection: close"
            ),
            OCSP_REQUEST,
        ),
        Protocol::Crl(_) => message(
            &format!("GET /authority.crl HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nConnection: close"),
            0,
        ),
    }
}

/// The answer.
pub(super) fn answer(authority: &Authority) -> Vec<u8> {
    let kind = match authority.protocol {
        Protocol::Ocsp => "ocsp-response",
        Protocol::Crl(_) => "pkix-crl",
    };
    let len = authority.response_len;
    message(
        &format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/{kind}\r\nContent-Length: {len}\r\n\
             Connection: close"
        ),
        len,
    )
}

/// The length of the first message; `None` if it is not complete.
pub(super) fn complete(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let searched = bytes.get(..HEAD_MAX).unwrap_or(bytes);
    let Some(end) = searched.windows(END.len()).position(|part| part == END) else {
        return if bytes.len() > HEAD_MAX { Err(Malformed) } else { Ok(None) };
    };
    let head = bytes.get(..end).and_then(|head| core::str::from_utf8(head).ok()).ok_or(Malformed)?;
    let mut lengths = head.lines().filter_map(|line| {
        let (name, value) = line.split_at_checked(LENGTH.len())?;
        name.eq_ignore_ascii_case(LENGTH).then(|| value.trim())
    });
    let body = lengths.next_back().map_or(Ok(0), |text| text.parse::<usize>().map_err(|_| Malformed))?;
    let len = end.saturating_add(END.len()).saturating_add(body);
    Ok((bytes.len() >= len).then_some(len))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests fail by panicking
mod tests {
    use super::*;
    use core::time::Duration;

    fn authority(protocol: Protocol) -> Authority {
        Authority { name: "ca".into(), protocol, response_len: 1_900, processing: Duration::ZERO }
    }

    #[test]
    fn messages_end_where_their_length_says() {
        for protocol in [Protocol::Ocsp, Protocol::Crl(Duration::ZERO)] {
            for whole in [request(&authority(protocol)), answer(&authority(protocol))] {
                for len in 0..whole.len() {
                    assert_eq!(complete(&whole[..len]), Ok(None), "{len}");
                }
                assert_eq!(complete(&whole), Ok(Some(whole.len())));
                let twice = [whole.clone(), whole.clone()].concat();
                assert_eq!(complete(&twice), Ok(Some(whole.len())));
            }
        }
        assert!(answer(&authority(Protocol::Ocsp)).len() > 1_900);
    }

    #[test]
    fn other_streams_are_refused() {
        assert_eq!(complete(&[7; HEAD_MAX + 1]), Err(Malformed));
        assert_eq!(complete(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), Err(Malformed));
    }
}
