//! Payloads split over several NetworkMessages (Part 14 §7.2.4.4.4): splitting, and reassembly with limits.

use crate::publisher_id::{PublisherId, PublisherIdRef};
use crate::sequence::{Sequence, compare16};
use crate::uadp::SecurityMode;
use crate::uadp::header::NetworkMessageType;
use std::collections::BTreeMap;
use taktwerk_types::{DecodeError, Decoder, Encode, Instant};

/// Length of a chunk's header in bytes.
pub const CHUNK_HEADER_LEN: usize = 14;

/// A chunk of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The sequence number of the DataSetMessage or announcement that was split.
    pub message_sequence_number: u16,
    /// Offset of the chunk in the payload, in bytes.
    pub offset: u32,
    /// Length of the whole payload in bytes.
    pub total_size: u32,
    /// The bytes.
    pub data: &'a [u8],
}

impl Chunk<'_> {
    /// Appends the chunk.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.message_sequence_number.encode(out);
        self.offset.encode(out);
        self.total_size.encode(out);
        taktwerk_types::codec::encode_bytes(Some(self.data), out);
    }
}

impl<'a> Chunk<'a> {
    /// Parses a chunk.
    ///
    /// # Errors
    /// The chunk is not within the payload, or is empty.
    pub fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let message_sequence_number = u16::from_le_bytes(decoder.take_array()?);
        let offset = u32::from_le_bytes(decoder.take_array()?);
        let total_size = u32::from_le_bytes(decoder.take_array()?);
        let data = decoder.bytes()?.unwrap_or_default();
        let end = u64::from(offset) + data.len() as u64;
        if data.is_empty() || end > u64::from(total_size) {
            return Err(DecodeError::Invalid("chunk: it is not within the payload"));
        }
        Ok(Self { message_sequence_number, offset, total_size, data })
    }
}

/// Splits a payload into chunks of `piece_len` bytes; the last may be shorter.
pub fn split(
    payload: &[u8],
    message_sequence_number: u16,
    piece_len: usize,
) -> impl Iterator<Item = Chunk<'_>> {
    let total_size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let piece_len = piece_len.max(1);
    payload.chunks(piece_len).enumerate().map(move |(index, data)| Chunk {
        message_sequence_number,
        offset: u32::try_from(index * piece_len).unwrap_or(u32::MAX),
        total_size,
        data,
    })
}

/// Limits of reassembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Maximum payload in bytes.
    pub payload_len_max: usize,
    /// Maximum received bytes of all incomplete payloads, plus 64 per chunk.
    pub total_len_max: usize,
    /// Maximum number of incomplete payloads.
    pub payloads_max: usize,
    /// How long a payload waits for its chunks, in nanoseconds.
    pub timeout_nanos: u64,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self {
            payload_len_max: 4 << 20,
            total_len_max: 16 << 20,
            payloads_max: 64,
            timeout_nanos: 5_000_000_000,
        }
    }
}

/// Common properties of a payload's chunks besides their sender. Without this check, an attacker could add an unsigned
/// chunk to a signed payload, or displace it with a newer number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PieceScope {
    /// The connection.
    pub connection: usize,
    /// The message type.
    pub message_type: NetworkMessageType,
    /// The SecurityGroup whose keys have verified them, and the mode; `None`: unsecured.
    pub security: Option<(String, SecurityMode)>,
}

/// Identifies the payload of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    scope: PieceScope,
    publisher_id: PublisherId,
    /// The DataSetWriterId; `None` for discovery announcements.
    writer_id: Option<u16>,
    /// The WriterGroup, if known.
    group_id: Option<u16>,
}

/// Memory overhead per chunk, besides its bytes.
const PIECE_COST: usize = 64;

#[derive(Debug)]
struct Partial {
    sequence_number: u16,
    total_size: usize,
    piece_len: Option<usize>,
    /// The received chunks by offset. Stored separately: a single buffer would be allocated and cleared at full size
    /// for one small chunk that claims a late offset.
    pieces: BTreeMap<u32, Box<[u8]>>,
    received: usize,
    since: Instant,
}

/// Reassembles payloads. One at a time per writer, as the specification allows.
#[derive(Debug)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    partials: BTreeMap<Key, Partial>,
    held: usize,
    dropped: u64,
}

impl Reassembler {
    /// An empty reassembler.
    #[must_use]
    pub fn new(limits: ReassemblyLimits) -> Self {
        Self { limits, partials: BTreeMap::new(), held: 0, dropped: 0 }
    }

    /// Number of incomplete payloads that were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes currently stored.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes a chunk; returns the payload with the last missing chunk. All chunks must have the same scope.
    pub fn push(
        &mut self,
        publisher_id: PublisherIdRef<'_>,
        writer_id: Option<u16>,
        group_id: Option<u16>,
        chunk: &Chunk<'_>,
        now: Instant,
    ) -> Option<Vec<u8>> {
        self.push_within(PieceScope::default(), publisher_id, writer_id, group_id, chunk, now)
    }

    /// Like [`Self::push`], for chunks of several connections, kinds and security levels: only chunks of the same scope
    /// are combined.
    pub fn push_within(
        &mut self,
        scope: PieceScope,
        publisher_id: PublisherIdRef<'_>,
        writer_id: Option<u16>,
        group_id: Option<u16>,
        chunk: &Chunk<'_>,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let total_size = chunk.total_size as usize;
        if total_size > self.limits.payload_len_max {
            self.dropped += 1;
            return None;
        }
        self.expire(now);
        let key = Key { scope, publisher_id: publisher_id.to_owned(), writer_id, group_id };
        if let Some(partial) = self.partials.get(&key) {
            let another = partial.sequence_number != chunk.message_sequence_number;
            if another && compare16(chunk.message_sequence_number, partial.sequence_number) == Sequence::Older
            {
                return None;
            }
            if another || partial.total_size != total_size {
                self.forget(&key);
                self.dropped += 1;
            }
        }
        if !self.partials.contains_key(&key) {
            if self.partials.len() >= self.limits.payloads_max {
                self.forget_oldest();
            }
            let partial = Partial {
                sequence_number: chunk.message_sequence_number,
                total_size,
                piece_len: None,
                pieces: BTreeMap::new(),
                received: 0,
                since: now,
            };
            self.partials.insert(key.clone(), partial);
        }
        let partial = self.partials.get_mut(&key)?;
        let before = partial.held();
        let taken = partial.take(chunk);
        self.held = self.held + partial.held() - before;
        if !taken {
            return None;
        }
        if partial.received == partial.total_size {
            let partial = self.partials.remove(&key)?;
            self.held -= partial.held();
            return Some(partial.whole());
        }
        while self.held > self.limits.total_len_max && !self.partials.is_empty() {
            self.forget_oldest();
        }
        None
    }

    /// Drops payloads that have waited too long.
    pub fn expire(&mut self, now: Instant) {
        let timeout = self.limits.timeout_nanos;
        let late = self
            .partials
            .iter()
            .find(|(_, partial)| now.as_nanos().saturating_sub(partial.since.as_nanos()) > timeout);
        if let Some(key) = late.map(|(key, _)| key.clone()) {
            self.forget(&key);
            self.dropped += 1;
            self.expire(now);
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(partial) = self.partials.remove(key) {
            self.held -= partial.held();
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.partials.iter().min_by_key(|(_, partial)| partial.since);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.forget(&key);
            self.dropped += 1;
        }
    }
}

impl Partial {
    /// Its share of the limit.
    fn held(&self) -> usize {
        self.received + self.pieces.len() * PIECE_COST
    }

    /// The payload, when all chunks are present.
    fn whole(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.received);
        self.pieces.values().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// False if the chunk is already present or does not match the others.
    fn take(&mut self, chunk: &Chunk<'_>) -> bool {
        let (start, len) = (chunk.offset as usize, chunk.data.len());
        let end = start.saturating_add(len);
        if len == 0 || end > self.total_size {
            return false;
        }
        // All chunks except the last have the same size, and chunks never overlap.
        let is_last = end == self.total_size;
        if !is_last && *self.piece_len.get_or_insert(len) != len {
            return false;
        }
        let before = self.pieces.range(..=chunk.offset).next_back();
        let overlaps_before = before.is_some_and(|(offset, piece)| *offset as usize + piece.len() > start);
        let after = self.pieces.range(chunk.offset..).next();
        if overlaps_before || after.is_some_and(|(offset, _)| (*offset as usize) < end) {
            return false;
        }
        self.pieces.insert(chunk.offset, chunk.data.into());
        self.received += len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHO: PublisherIdRef<'static> = PublisherIdRef::UInt16(1);

    fn push(to: &mut Reassembler, chunk: &Chunk<'_>) -> Option<Vec<u8>> {
        to.push(WHO, Some(1), None, chunk, Instant::ZERO)
    }

    proptest! {
        #[test]
        fn any_order_and_duplicates_give_the_payload(
            payload in proptest::collection::vec(any::<u8>(), 1..400),
            piece_len in 1usize..100,
            order in proptest::collection::vec(any::<usize>(), 0..40),
        ) {
            let pieces: Vec<_> = split(&payload, 9, piece_len).collect();
            let mut to = Reassembler::new(ReassemblyLimits::default());
            let mut whole = None;
            let shuffled = order.iter().map(|index| index % pieces.len()).chain((0..pieces.len()).rev());
            for index in shuffled {
                let mut bytes = Vec::new();
                pieces[index].encode(&mut bytes);
                prop_assert_eq!(bytes.len(), CHUNK_HEADER_LEN + pieces[index].data.len());
                let chunk = Chunk::decode(&mut Decoder::new(&bytes, Default::default())).unwrap();
                if let Some(payload) = push(&mut to, &chunk) {
                    whole = Some(payload);
                    break;
                }
            }
            prop_assert_eq!(whole, Some(payload));
            prop_assert_eq!(to.held(), 0);
        }
    }

    #[test]
    fn chunks_of_other_scopes_are_not_combined() {
        let signed =
            PieceScope { security: Some(("g".to_owned(), SecurityMode::Sign)), ..PieceScope::default() };
        let strangers = [
            PieceScope::default(),
            PieceScope { security: Some(("other".to_owned(), SecurityMode::Sign)), ..PieceScope::default() },
            PieceScope { message_type: NetworkMessageType::DiscoveryAnnouncement, ..signed.clone() },
            PieceScope { connection: 1, ..signed.clone() },
        ];
        let (good, forged) = ([1u8; 30], [6u8; 30]);
        for stranger in strangers {
            let mut to = Reassembler::new(ReassemblyLimits::default());
            let mut push = |scope: &PieceScope, chunk: &Chunk<'_>| {
                to.push_within(scope.clone(), WHO, Some(1), None, chunk, Instant::ZERO)
            };
            let pieces: Vec<_> = split(&good, 9, 10).collect();
            let same: Vec<_> = split(&forged, 9, 10).collect();
            let newer: Vec<_> = split(&forged, 10, 10).collect();
            assert_eq!(push(&signed, &pieces[0]), None);
            assert_eq!(push(&stranger, &same[1]), None);
            assert_eq!(push(&stranger, &newer[2]), None);
            assert_eq!(push(&signed, &pieces[2]), None);
            assert_eq!(push(&signed, &pieces[1]), Some(good.to_vec()), "{stranger:?}");
        }
    }

    #[test]
    fn limits_hold() {
        let limits =
            ReassemblyLimits { payload_len_max: 100, total_len_max: 100, payloads_max: 2, timeout_nanos: 10 };
        let mut to = Reassembler::new(limits);
        let chunk = |offset, total_size, data| Chunk { message_sequence_number: 1, offset, total_size, data };
        assert_eq!(push(&mut to, &chunk(0, 101, b"x")), None);
        assert_eq!((to.held(), to.dropped()), (0, 1));
        for writer in 0..5 {
            assert_eq!(to.push(WHO, Some(writer), None, &chunk(90, 100, b"x"), Instant::ZERO), None);
            assert!(to.held() <= 100);
        }
        to.expire(Instant::from_nanos(11));
        assert_eq!(to.held(), 0);
        assert!(to.partials.is_empty());
    }

    /// Only received bytes take memory, whatever offset they claim.
    #[test]
    fn a_small_chunk_of_a_large_payload_takes_little_memory() {
        let limits = ReassemblyLimits::default();
        let mut to = Reassembler::new(limits);
        let total_size = u32::try_from(limits.payload_len_max).unwrap();
        for writer in 0..32 {
            let last = Chunk { message_sequence_number: 1, offset: total_size - 1, total_size, data: b"x" };
            assert_eq!(to.push(WHO, Some(writer), None, &last, Instant::ZERO), None);
        }
        assert_eq!((to.held(), to.dropped()), (32 * (1 + PIECE_COST), 0));
        // Many small chunks are counted with their overhead.
        let small = |offset| Chunk { message_sequence_number: 2, offset, total_size, data: b"x" };
        for offset in 0..1_000 {
            push(&mut to, &small(offset));
        }
        assert_eq!(to.held(), (31 + 1_000) * (1 + PIECE_COST));
    }

    #[test]
    fn a_newer_payload_replaces_and_an_older_is_ignored() {
        let mut to = Reassembler::new(ReassemblyLimits::default());
        let chunk =
            |number, offset, data| Chunk { message_sequence_number: number, offset, total_size: 2, data };
        assert_eq!(push(&mut to, &chunk(5, 0, b"a")), None);
        assert_eq!(push(&mut to, &chunk(4, 0, b"x")), None);
        assert_eq!(push(&mut to, &chunk(6, 1, b"c")), None);
        assert_eq!(push(&mut to, &chunk(5, 1, b"b")), None);
        assert_eq!(push(&mut to, &chunk(6, 0, b"b")), Some(b"bc".to_vec()));
    }

    #[test]
    fn a_piece_outside_is_refused() {
        for (offset, total_size, data) in [(0, 0, &b""[..]), (5, 5, b"x"), (u32::MAX, u32::MAX, b"xx")] {
            let mut bytes = Vec::new();
            Chunk { message_sequence_number: 0, offset, total_size, data }.encode(&mut bytes);
            assert!(Chunk::decode(&mut Decoder::new(&bytes, Default::default())).is_err());
        }
    }
}
