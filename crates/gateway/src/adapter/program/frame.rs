//! Messages in CBOR (RFC 8949): an item with a length prefix of four bytes in big-endian order.

use super::LINE_LEN_MAX;
use super::line::{self, Entry};
use ciborium::Value as Cbor;
use serde_json::Value as Json;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of the length prefix.
const HEAD: usize = 4;
/// Deepest nesting of items.
const DEPTH_MAX: usize = 32;

/// Encodes a message with its length.
pub(super) fn write(message: &Json) -> Vec<u8> {
    let mut frame = vec![0; HEAD];
    // Writing to memory cannot fail, and CBOR can represent all JSON.
    let _ = ciborium::into_writer(message, &mut frame);
    let length = u32::try_from(frame.len() - HEAD).unwrap_or(u32::MAX).to_be_bytes();
    for (byte, length) in frame.iter_mut().zip(length) {
        *byte = length;
    }
    frame
}

/// Reads until `frame` is a complete message with its length; false at the end of the stream. The future can be dropped and
/// called again.
pub(super) async fn read<R: AsyncRead + Unpin>(from: &mut R, frame: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let length = match frame.first_chunk::<HEAD>() {
            Some(head) => u64::from(u32::from_be_bytes(*head)),
            None => 0,
        };
        if length > LINE_LEN_MAX {
            return Err(io::Error::other(format!("wrote a message of more than {LINE_LEN_MAX} bytes")));
        }
        let wanted = HEAD as u64 + length;
        let left = wanted.saturating_sub(frame.len() as u64);
        if left == 0 {
            return Ok(true);
        }
        if (&mut *from).take(left).read_buf(frame).await? == 0 {
            return Ok(false);
        }
    }
}

/// Decodes a message with its length. `None` if it is not CBOR, or has more than one item.
#[must_use]
pub fn entries(frame: &[u8]) -> Option<Vec<Option<Entry>>> {
    let mut body = frame.get(HEAD..)?;
    let item: Cbor = ciborium::de::from_reader_with_recursion_limit(&mut body, DEPTH_MAX).ok()?;
    let items = match item {
        _ if !body.is_empty() => return None,
        Cbor::Array(items) => items,
        other => vec![other],
    };
    (items.len() <= line::ENTRIES_MAX).then(|| items.into_iter().map(entry).collect())
}

fn entry(item: Cbor) -> Option<Entry> {
    let value = item.as_map().and_then(|map| map.iter().find(|(key, _)| key.as_text() == Some("value")));
    let bytes = value.and_then(|(_, value)| value.as_bytes()).cloned();
    Some(Entry { bytes, ..line::entry(json(item))? })
}

/// Converts an item to JSON, the basis of tag types.
fn json(item: Cbor) -> Json {
    match item {
        Cbor::Integer(number) => match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => (i128::from(number) as f64).into(),
        },
        Cbor::Float(number) => number.into(),
        Cbor::Text(text) => text.into(),
        Cbor::Bool(flag) => flag.into(),
        // The key already determines the meaning, so CBOR tags are ignored.
        Cbor::Tag(_, item) => json(*item),
        Cbor::Array(items) => items.into_iter().map(json).collect(),
        Cbor::Map(entries) => entries
            .into_iter()
            .filter_map(|(key, value)| match key {
                Cbor::Text(key) => Some((key, json(value))),
                _ => None,
            })
            .collect(),
        _ => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::program::line::Named;
    use crate::feed::Reading;
    use crate::value::Kind;
    use serde_json::json;
    use taktwerk_types::{BuiltInType, ByteString, StatusCode, UtcTime, Variant};

    fn frame(item: &Cbor) -> Vec<u8> {
        let mut body = Vec::new();
        ciborium::into_writer(item, &mut body).unwrap();
        [&(body.len() as u32).to_be_bytes()[..], &body].concat()
    }

    #[tokio::test]
    async fn messages_come_in_pieces_and_end() {
        let one = write(&json!({ "id": 1, "value": 2.5 }));
        let two = write(&json!([]));
        let both = [&one[..], &two, &one[..3]].concat();
        // One byte at a time.
        let (mut writer, mut reader) = tokio::io::duplex(1);
        let sender = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut writer, &both).await.unwrap();
        });
        let mut found = Vec::new();
        let mut message = Vec::new();
        while read(&mut reader, &mut message).await.unwrap() {
            found.push(core::mem::take(&mut message));
        }
        sender.await.unwrap();
        assert_eq!(found, [one, two]);
        let long = [0, 0x10, 0, 1, 0];
        assert!(read(&mut &long[..], &mut Vec::new()).await.is_err());
    }

    #[test]
    fn messages_are_readings_or_ignored() {
        let double = Kind::scalar(BuiltInType::Double);
        let text = |text: &str| Cbor::Text(text.to_owned());
        let item = Cbor::Map(vec![
            (text("id"), Cbor::Integer(3.into())),
            (text("value"), Cbor::Float(1.5)),
            (text("time"), Cbor::Tag(1, Box::new(Cbor::Integer(1_700_000_000.into())))),
            (Cbor::Integer(9.into()), Cbor::Null),
        ]);
        let entry = entries(&frame(&item)).unwrap().remove(0).unwrap();
        assert_eq!(entry.tag, Named::Id(3));
        let time = UtcTime::parse("2023-11-14T22:13:20Z");
        assert_eq!(entry.reading(double), Some(Reading::good(1.5).at(time)));
        let not =
            Cbor::Map(vec![(text("id"), Cbor::Integer(0.into())), (text("value"), Cbor::Float(f64::NAN))]);
        let entry = entries(&frame(&not)).unwrap().remove(0).unwrap();
        assert_eq!(entry.reading(double), Some(Reading::bad(StatusCode::BAD_TYPE_MISMATCH)));
        let bytes = Cbor::Map(vec![(text("name"), text("a")), (text("value"), Cbor::Bytes(vec![0, 0xff]))]);
        let entry = entries(&frame(&Cbor::Array(vec![bytes, Cbor::Null]))).unwrap();
        assert_eq!((entry.len(), &entry[1]), (2, &None));
        let value = Variant::from(ByteString::from(vec![0, 0xff]));
        let of = |kind| entry[0].as_ref().unwrap().reading(Kind::scalar(kind));
        assert_eq!(of(BuiltInType::ByteString), Some(Reading::good(value)));
        assert_eq!(of(BuiltInType::Double), Some(Reading::bad(StatusCode::BAD_TYPE_MISMATCH)));
        let whole = frame(&item);
        for length in 0..whole.len() {
            assert!(entries(&whole[..length]).is_none(), "{length}");
        }
        let more = [&whole[..], &[0]].concat();
        assert!(entries(&more).is_none());
        let deep = [&[0, 0, 0, 100][..], &[0x81; 100]].concat();
        assert!(entries(&deep).is_none());
    }
}
