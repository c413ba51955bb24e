//! The programs around the peers' libraries, as text. The build script packs them, because they are mostly lock files
//! and would be 2 % of the command's size.

use flate2::read::ZlibDecoder;
use std::io::Read;
use std::sync::LazyLock;

/// A file below `interop/`: its path there and its text.
pub(super) type Source = (&'static str, &'static str);

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sources.z"));

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    let read = ZlibDecoder::new(PACKED).read_to_string(&mut text);
    assert!(read.is_ok(), "the build script packs text");
    text
});

static ALL: LazyLock<Vec<Source>> = LazyLock::new(|| unpack(&TEXT));

/// Unpacks the files: for each file a line with its length in bytes and its path, then its text.
fn unpack(mut text: &'static str) -> Vec<Source> {
    let mut sources = Vec::new();
    while let Some((header, rest)) = text.split_once('\n') {
        let file = header.split_once(' ').and_then(|(length, path)| {
            let (content, rest) = rest.split_at_checked(length.parse().ok()?)?;
            Some((path, content, rest))
        });
        let Some((path, content, rest)) = file else { break };
        sources.push((path, content));
        text = rest;
    }
    sources
}

/// All files.
pub(super) fn all() -> &'static [Source] {
    &ALL
}

/// The files of a directory.
pub(super) fn of(folder: &str) -> impl Iterator<Item = &'static Source> {
    let prefix = format!("{folder}/");
    all().iter().filter(move |(path, _)| path.starts_with(&prefix))
}

/// Hash of the files of a directory (FNV-1a).
pub(super) fn fingerprint(folder: &str) -> u64 {
    of(folder)
        .flat_map(|(path, text)| path.bytes().chain([0]).chain(text.bytes()))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}
