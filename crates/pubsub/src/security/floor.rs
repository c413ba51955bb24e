//! The replay state of secured messages, kept across a restart of the receiver.
//!
//! Replay windows begin with the first received number. Without saved state, messages recorded before a restart could
//! be replayed to the receiver as long as the key is valid. With the saved marks, neither already accepted nor older
//! messages are accepted.

use super::replay::Replay;
use crate::publisher_id::PublisherId;
use taktwerk_crypto::PubSubKeys;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, DecodeLimits, Decoder, Encode, UaString, Variant};

/// Signed to identify keys. No NetworkMessage begins like this, because their version is 1.
const LABEL: &[u8] = b"taktwerk: the key of a replay mark";
/// First bytes of a file.
const MAGIC: [u8; 8] = *b"TKREPLY1";
/// Maximum number of marks: enough for the windows of several SecurityGroups.
const MARKS_MAX: usize = 65_536;
/// Limits for decoding a file.
const LIMITS: DecodeLimits = DecodeLimits { depth_max: 4, ..DecodeLimits::DEFAULT };

/// Identifies a key without revealing it.
pub(super) type KeyMark = [u8; 16];

/// The mark of a key; `None` if the library cannot sign with it.
pub(super) fn key_mark(keys: &dyn PubSubKeys) -> Option<KeyMark> {
    let mut signature = vec![0; keys.signature_len()];
    keys.sign(LABEL, &mut signature).ok()?;
    signature.get(..16)?.try_into().ok()
}

/// The replay state of one sender and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayMark {
    pub(super) security_group_id: String,
    pub(super) key: KeyMark,
    pub(super) publisher_id: Option<PublisherId>,
    pub(super) writer_group_id: Option<u16>,
    pub(super) window: Replay,
}

/// The replay state of all senders: returned by [`Subscriber::replay_floor`](crate::Subscriber::replay_floor) and
/// passed to the next subscriber.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayFloor {
    pub(super) marks: Vec<ReplayMark>,
}

impl ReplayFloor {
    /// Number of senders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The content for a file. It contains no secrets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let marks = self.marks.get(..MARKS_MAX).unwrap_or(&self.marks);
        u32::try_from(marks.len()).unwrap_or(u32::MAX).encode(&mut out);
        for mark in marks {
            UaString::from(mark.security_group_id.as_str()).encode(&mut out);
            out.extend_from_slice(&mark.key);
            mark.publisher_id.as_ref().map_or(Variant::Empty, PublisherId::to_variant).encode(&mut out);
            mark.writer_group_id.map_or(-1, i32::from).encode(&mut out);
            let (newest, seen) = mark.window.parts();
            newest.encode(&mut out);
            out.extend_from_slice(&seen.to_le_bytes());
        }
        out
    }

    /// Decodes the output of [`Self::encode`].
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes, LIMITS);
        if decoder.take_array::<8>()? != MAGIC {
            return Err(DecodeError::Invalid("no replay marks"));
        }
        let count = u32::from_le_bytes(decoder.take_array()?) as usize;
        if count > MARKS_MAX {
            return Err(DecodeError::Invalid("too many replay marks"));
        }
        let mut marks = Vec::new();
        for _ in 0..count {
            let security_group_id = UaString::decode(&mut decoder)?.as_str().to_owned();
            let key = decoder.take_array()?;
            let publisher_id = match Variant::decode(&mut decoder)? {
                Variant::Empty => None,
                id => Some(PublisherId::from_variant(&id).ok_or(DecodeError::Invalid("PublisherId"))?),
            };
            let writer_group_id = match i32::from_le_bytes(decoder.take_array()?) {
                -1 => None,
                id => Some(u16::try_from(id).map_err(|_| DecodeError::Invalid("WriterGroupId"))?),
            };
            let newest = u32::from_le_bytes(decoder.take_array()?);
            let window = Replay::from_parts(newest, u128::from_le_bytes(decoder.take_array()?));
            marks.push(ReplayMark { security_group_id, key, publisher_id, writer_group_id, window });
        }
        if decoder.remaining() > 0 {
            return Err(DecodeError::Invalid("bytes behind the replay marks"));
        }
        Ok(Self { marks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark() -> impl Strategy<Value = ReplayMark> {
        let id = prop_oneof![
            Just(None),
            any::<u8>().prop_map(|id| Some(PublisherId::Byte(id))),
            any::<u64>().prop_map(|id| Some(PublisherId::UInt64(id))),
            "[a-z]{0,5}".prop_map(|id| Some(PublisherId::String(id.into()))),
        ];
        ("[a-z ]{0,5}", any::<KeyMark>(), id, any::<Option<u16>>(), any::<u32>(), any::<u128>()).prop_map(
            |(security_group_id, key, publisher_id, writer_group_id, newest, seen)| {
                let window = Replay::from_parts(newest, seen);
                ReplayMark { security_group_id, key, publisher_id, writer_group_id, window }
            },
        )
    }

    proptest! {
        #[test]
        fn written_marks_can_be_read(marks in proptest::collection::vec(mark(), 0..5)) {
            let floor = ReplayFloor { marks };
            let bytes = floor.encode();
            prop_assert_eq!(ReplayFloor::decode(&bytes), Ok(floor));
            for cut in 0..bytes.len() {
                prop_assert!(ReplayFloor::decode(&bytes[..cut]).is_err(), "cut at {}", cut);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ReplayFloor::decode(&bytes);
            bytes.splice(0..0, MAGIC);
            let _ = ReplayFloor::decode(&bytes);
        }
    }
}
