//! The page and its files, embedded in the program.

use crate::compress;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use std::sync::LazyLock;

/// A file of the page.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const ASSETS: [Asset; 4] = [
    Asset { path: "/", media_type: "text/html; charset=utf-8", content: include_str!("index.html") },
    Asset { path: "/app.css", media_type: "text/css; charset=utf-8", content: include_str!("app.css") },
    Asset { path: "/app.js", media_type: "text/javascript; charset=utf-8", content: include_str!("app.js") },
    Asset { path: "/icon.svg", media_type: "image/svg+xml", content: include_str!("icon.svg") },
];

/// The files compressed with gzip, created for the first browser that requests them.
static COMPRESSED: LazyLock<[Option<Vec<u8>>; 4]> =
    LazyLock::new(|| ASSETS.map(|asset| compress::gzip(asset.content.as_bytes(), Compression::best())));

/// All paths.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    ASSETS.iter().map(|asset| asset.path)
}

/// Sends a file, or 304 if the browser has it.
pub(crate) async fn get(uri: axum::http::Uri, headers: HeaderMap) -> Response {
    let Some((at, asset)) = ASSETS.iter().enumerate().find(|(_, asset)| asset.path == uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let compressed =
        compress::accepts_gzip(&headers).then(|| COMPRESSED.get(at).and_then(Option::as_deref)).flatten();
    let mark = if compressed.is_some() { "-gzip" } else { "" };
    let tag = format!("\"{:016x}{mark}\"", fingerprint(asset.content));
    let known =
        headers.get_all(header::IF_NONE_MATCH).iter().any(|known| matches(known.as_bytes(), tag.as_bytes()));
    let common = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if known {
        let mut response = (StatusCode::NOT_MODIFIED, common).into_response();
        // RFC 9110 §15.4.5: the same headers as with 200.
        response.headers_mut().extend(compress::encoding_headers(false));
        return response;
    }
    let content = compressed.unwrap_or(asset.content.as_bytes());
    let mut response = (common, [(header::CONTENT_TYPE, asset.media_type)], content).into_response();
    response.headers_mut().extend(compress::encoding_headers(compressed.is_some()));
    response
}

/// Whether an If-None-Match contains an entity tag. Tags are compared weakly, because a proxy may have made one weak
/// (RFC 9110 §13.1.2).
fn matches(known: &[u8], tag: &[u8]) -> bool {
    let mut tags = known.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    tags.any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag)
}

/// FNV-1a, to distinguish versions of a file.
fn fingerprint(content: &str) -> u64 {
    content
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #[test]
    fn entity_tags_are_compared_weakly() {
        for known in ["\"a\"", "W/\"a\"", "\"b\", W/\"a\"", "*"] {
            assert!(super::matches(known.as_bytes(), b"\"a\""), "{known}");
        }
        for known in ["\"b\"", "a", "", "W/"] {
            assert!(!super::matches(known.as_bytes(), b"\"a\""), "{known}");
        }
    }

    use super::*;

    #[test]
    fn the_page_is_self_contained_and_small() {
        for asset in &ASSETS {
            let foreign = asset.content.replace("http://www.w3.org/", "");
            assert!(!foreign.contains("http://") && !foreign.contains("https://"), "{}", asset.path);
        }
        assert!(ASSETS.iter().map(|asset| asset.content.len()).sum::<usize>() < 300_000);
    }
}
