//! Compresses responses with gzip if the browser accepts it (RFC 9110 §8.4.1.3).
//!
//! Only for the files of the page and for lists of nodes. They contain no secrets, so their length reveals nothing
//! (BREACH attack).

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Shorter responses fit into one packet anyway.
const LEN_MIN: usize = 1_400;

/// Whether the browser accepts gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| {
        let (coding, weight) = one.split_once(';').unwrap_or((one, ""));
        let is_refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Compresses with gzip; `None` if that is not shorter.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|shorter| shorter.len() < bytes.len())
}

/// The headers for the encoding.
pub(crate) fn encoding_headers(is_compressed: bool) -> impl IntoIterator<Item = (HeaderName, HeaderValue)> {
    let vary = (header::VARY, HeaderValue::from_static("accept-encoding"));
    let encoding = (header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    [Some(vary), is_compressed.then_some(encoding)].into_iter().flatten()
}

/// A JSON response, compressed if the browser accepts it and it is worthwhile.
pub(crate) fn json(headers: &HeaderMap, value: &serde_json::Value) -> Response {
    let bytes = value.to_string().into_bytes();
    let is_worth_it = bytes.len() >= LEN_MIN && accepts_gzip(headers);
    let compressed = is_worth_it.then(|| gzip(&bytes, Compression::fast())).flatten();
    let is_compressed = compressed.is_some();
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (content_type, compressed.unwrap_or(bytes)).into_response();
    response.headers_mut().extend(encoding_headers(is_compressed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn headers(accepted: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))])
    }

    #[test]
    fn accept_encoding_is_evaluated() {
        for taken in ["gzip", "gzip, deflate, br", "br;q=1.0, GZIP;q=0.5"] {
            assert!(accepts_gzip(&headers(taken)), "{taken}");
        }
        for refused in ["br", "gzip;q=0", "identity, gzip; q=0.0", "*;q=0"] {
            assert!(!accepts_gzip(&headers(refused)), "{refused}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn long_responses_are_compressed_losslessly() {
        let text = "value ".repeat(1_000);
        let bytes = gzip(text.as_bytes(), Compression::fast()).unwrap();
        let mut again = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut again).unwrap();
        assert!(bytes.len() < 100 && again == text);
        assert_eq!(gzip(b"a", Compression::fast()), None);
        let encoding = |response: Response| response.headers().get(header::CONTENT_ENCODING).cloned();
        let long = serde_json::json!(text);
        assert_eq!(encoding(json(&headers("gzip"), &long)), Some(HeaderValue::from_static("gzip")));
        assert_eq!(encoding(json(&headers("br"), &long)), None);
        assert_eq!(encoding(json(&headers("gzip"), &serde_json::json!("short"))), None);
    }
}
