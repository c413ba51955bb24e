//! How far the senders of secured messages were, kept over a restart of who receives them.
//!
//! Windows over nonces begin with the first number that is heard. What was recorded before a subscriber was started again
//! could so be played to it once more, as long as the key is good. With the marks of before, nothing is taken that was
//! taken already, nor what is older.

use super::replay::Replay;
use crate::publisher_id::PublisherId;
use taktwerk_crypto::PubSubKeys;
use taktwerk_types::codec::Decode;
use taktwerk_types::{DecodeError, DecodeLimits, Decoder, Encode, UaString, Variant};

/// What is signed to tell keys apart. It begins like no NetworkMessage, whose version is 1.
const LABEL: &[u8] = b"taktwerk: the key of a replay mark";
/// What files begin with.
const MAGIC: [u8; 8] = *b"TKREPLY1";
/// The most marks that are kept: the most windows of some SecurityGroups.
const MARKS_MAX: usize = 65_536;
/// Limits for what is read from a file.
const LIMITS: DecodeLimits = DecodeLimits { depth_max: 4, ..DecodeLimits::DEFAULT };

/// Tells a key from others without giving it away.
pub(super) type KeyMark = [u8; 16];

/// The mark of a key; `None` if the library cannot sign with it.
pub(super) fn key_mark(keys: &dyn PubSubKeys) -> Option<KeyMark> {
    let mut signature = vec![0; keys.signature_len()];
    keys.sign(LABEL, &mut signature).ok()?;
    signature.get(..16)?.try_into().ok()
}

/// How far one sender was with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayMark {
    pub(super) security_group_id: String,
    pub(super) key: KeyMark,
    pub(super) publisher_id: Option<PublisherId>,
    pub(super) writer_group_id: Option<u16>,
    pub(super) window: Replay,
}

/// How far all senders were: what [`Subscriber::replay_floor`](crate::Subscriber::replay_floor) gives, and what the next one
/// is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayFloor {
    pub(super) marks: Vec<ReplayMark>,
}

impl ReplayFloor {
    /// For how many senders it says something.
    #[must_use]
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// As the content of a file. There is nothing secret in it.
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

    /// Reads what [`Self::encode`] has written.
    ///
    /// # Errors
    /// It is something else.
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
        fn what_was_written_is_read(marks in proptest::collection::vec(mark(), 0..5)) {
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
