//! Value slots: storage for the values of Variables (design §4).
//!
//! A slot is one cache line. Its sequence number serializes writers; readers never lock. Both retry a bounded number of
//! times before they yield ([`crate::page`]), so that a preempted writer can finish.
//!
//! All other data for writers (watching shards, shards that want every write, whether the node was deleted) is also
//! changed only from inside the slot. So a shard that starts watching has either seen a write or is notified of it.

use crate::sync::{AtomicI64, AtomicU32, AtomicU64, PayloadCell, fence};
use core::sync::atomic::Ordering;
use std::sync::Arc;
use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// Maximum number of shards: each uses one bit in a slot's watchers, whose top bit is [`GONE`].
pub const SHARDS_MAX: usize = 63;
/// Bit of [`Slot::watchers`]: the node was deleted and the value is final.
const GONE: u64 = 1 << 63;

/// The value is in [`Slot::payload`], not inline.
const KIND_PAYLOAD: u8 = 0xff;

/// One variable's value.
#[cfg_attr(not(loom), repr(align(64)))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// Odd while a writer is inside; half of it is the number of writes.
    seq: AtomicU64,
    /// Status in the low half, then the kind byte, then the change counter (24 bits).
    meta: AtomicU64,
    /// The inline scalar.
    bits: AtomicU64,
    source: AtomicI64,
    server: AtomicI64,
    payload: PayloadCell,
    /// One bit per watching shard, and [`GONE`].
    watchers: AtomicU64,
    /// Number of shares. Without shares the slot can be reused for another node.
    pub(crate) owners: AtomicU32,
    /// Number of shards that want every write.
    queued_by: AtomicU32,
}

/// A consistent copy of a slot, used for encoding notifications. Scalars need no heap.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Built-in type number, 0 for null, 255 for a value in `payload`.
    pub kind: u8,
    /// The inline scalar's bits.
    pub bits: u64,
    /// A value that is not inline.
    pub payload: Option<Arc<Variant>>,
    /// StatusCode of the value.
    pub status: StatusCode,
    /// SourceTimestamp.
    pub source: UtcTime,
    /// ServerTimestamp.
    pub server: UtcTime,
    /// Counts changes of value or status, modulo 2^24.
    pub change: u32,
    /// Counts writes, modulo 2^32.
    pub write: u32,
}

impl Snapshot {
    /// Whether it is later than the write with this number.
    #[inline]
    pub fn is_after(&self, write: u32) -> bool {
        (self.write.wrapping_sub(write) as i32) > 0
    }
}

fn pack(status: StatusCode, kind: u8, change: u32) -> u64 {
    u64::from(status.0) | u64::from(kind) << 32 | u64::from(change & 0x00ff_ffff) << 40
}

impl Snapshot {
    /// The value as a Variant.
    pub fn value(&self) -> Variant {
        match self.kind {
            KIND_PAYLOAD => self.payload.as_deref().cloned().unwrap_or_default(),
            kind => Variant::from_word(kind, self.bits).unwrap_or_default(),
        }
    }

    /// A snapshot without a slot, from a stored value.
    pub fn from_data_value(value: DataValue) -> Self {
        let status = value.status();
        let source = value.source_timestamp.unwrap_or(UtcTime::NULL);
        let server = value.server_timestamp.unwrap_or(UtcTime::NULL);
        let value = value.value.unwrap_or_default();
        let (kind, bits, payload) = match value.to_word() {
            Some((kind, bits)) => (kind, bits, None),
            None => (KIND_PAYLOAD, 0, Some(Arc::new(value))),
        };
        Self { kind, bits, payload, status, source, server, change: 0, write: 0 }
    }

    /// The value as a number, for deadbands.
    pub fn as_f64(&self) -> Option<f64> {
        match self.kind {
            11 => Some(f64::from_bits(self.bits)),
            KIND_PAYLOAD => None,
            _ => self.value().as_f64(),
        }
    }

    /// The complete DataValue, with the status only if it is not Good.
    pub fn to_data_value(&self) -> DataValue {
        DataValue {
            value: Some(self.value()),
            status: (self.status != StatusCode::GOOD).then_some(self.status),
            source_timestamp: (!self.source.is_null()).then_some(self.source),
            server_timestamp: (!self.server.is_null()).then_some(self.server),
            ..DataValue::default()
        }
    }
}

/// A consistent copy of a slot whose value is inline: no heap, nothing to drop.
#[derive(Debug, Clone, Copy)]
pub struct Scalar {
    /// Built-in type number, 0 for null.
    pub kind: u8,
    /// As in [`Snapshot::bits`].
    pub bits: u64,
    /// StatusCode of the value.
    pub status: StatusCode,
    /// SourceTimestamp.
    pub source: UtcTime,
}

/// A value to be written to a slot. Its heap memory is allocated before the slot is entered.
#[derive(Debug)]
pub(crate) enum Incoming {
    Inline(u8, u64),
    Payload(Arc<Variant>),
}

impl Incoming {
    #[inline]
    pub(crate) fn of(value: Variant) -> Self {
        match value.to_word() {
            Some((kind, bits)) => Self::Inline(kind, bits),
            None => Self::Payload(Arc::new(value)),
        }
    }
}

/// The right to change a slot; holds the previous sequence number.
#[derive(Debug)]
#[must_use]
pub(crate) struct Inside(u64);

/// The watching shards of a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watchers {
    /// One bit per shard.
    pub(crate) shards: u64,
    /// Whether some of them want every write.
    pub(crate) queued: bool,
}

/// The number of writes for a sequence number, modulo 2^32.
#[inline]
const fn write_number(seq: u64) -> u32 {
    (seq >> 1) as u32
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            seq: AtomicU64::new(0),
            meta: AtomicU64::new(0),
            bits: AtomicU64::new(0),
            source: AtomicI64::new(0),
            server: AtomicI64::new(0),
            payload: PayloadCell::empty(),
            watchers: AtomicU64::new(0),
            owners: AtomicU32::new(0),
            queued_by: AtomicU32::new(0),
        }
    }

    /// Enters the slot as the only writer, unless another one is inside.
    #[inline]
    pub(crate) fn try_enter(&self) -> Option<Inside> {
        let seq = self.seq.load(Ordering::Relaxed);
        self.try_enter_at(seq)
    }

    /// Enters the slot as the only writer if its sequence number is still `seq`.
    #[inline]
    pub(crate) fn try_enter_at(&self, seq: u64) -> Option<Inside> {
        if seq & 1 != 0 {
            return None;
        }
        self.seq.compare_exchange_weak(seq, seq + 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // Orders the data stores after the odd sequence number, for readers that see one of them.
        fence(Ordering::Release);
        Some(Inside(seq))
    }

    /// Leaves without having changed the value.
    pub(crate) fn leave(&self, inside: Inside) {
        self.seq.store(inside.0, Ordering::Release);
    }

    /// Leaves after a write.
    #[inline]
    pub(crate) fn publish(&self, inside: Inside) {
        self.seq.store(inside.0.wrapping_add(2), Ordering::Release);
    }

    /// The watching shards; `None` if the node was deleted and the value is final.
    #[inline]
    pub(crate) fn watchers(&self, _: &Inside) -> Option<Watchers> {
        let shards = self.watchers.load(Ordering::Relaxed);
        let queued = shards != 0 && self.queued_by.load(Ordering::Relaxed) != 0;
        (shards & GONE == 0).then_some(Watchers { shards, queued })
    }

    /// The present payload with its sequence number, for a comparison outside the slot. None while a writer is inside.
    pub(crate) fn peek_payload(&self) -> Option<(Option<Arc<Variant>>, u64)> {
        let (snapshot, seq) = self.try_read()?;
        Some((snapshot.payload, seq))
    }

    /// Stores a value. `same`: whether it equals the present payload, if known. Returns the replaced payload, to be
    /// dropped outside the slot.
    #[inline]
    pub(crate) fn put(
        &self,
        _: &Inside,
        value: Incoming,
        same: Option<bool>,
        status: StatusCode,
        (source, server): (UtcTime, UtcTime),
    ) -> Option<Arc<Variant>> {
        let meta = self.meta.load(Ordering::Relaxed);
        let (old_status, old_kind, change) = (meta as u32, (meta >> 32) as u8, (meta >> 40) as u32);
        let (kind, changed, old) = match value {
            Incoming::Inline(kind, bits) => {
                let changed =
                    old_kind != kind || old_status != status.0 || self.bits.load(Ordering::Relaxed) != bits;
                self.bits.store(bits, Ordering::Relaxed);
                let old = if old_kind == KIND_PAYLOAD { self.payload.swap(None) } else { None };
                (kind, changed, old)
            }
            Incoming::Payload(value) => {
                let same =
                    same.unwrap_or_else(|| self.payload.load_full().is_some_and(|old| old.same_as(&value)));
                let old = if same { Some(value) } else { self.payload.swap(Some(value)) };
                (KIND_PAYLOAD, !same || old_status != status.0, old)
            }
        };
        self.meta.store(pack(status, kind, change.wrapping_add(u32::from(changed))), Ordering::Relaxed);
        self.source.store(source.ticks(), Ordering::Relaxed);
        self.server.store(server.ticks(), Ordering::Relaxed);
        old
    }

    /// The value just stored from inside, with the number of this write.
    pub(crate) fn written(&self, inside: &Inside) -> Snapshot {
        self.copy(inside.0.wrapping_add(2))
    }

    /// The number of the last write, for the one who is inside.
    #[inline]
    pub(crate) fn number(&self, inside: &Inside) -> u32 {
        write_number(inside.0)
    }

    /// The present value, before the writer inside stores a new one.
    pub(crate) fn unchanged(&self, inside: &Inside) -> Snapshot {
        self.copy(inside.0)
    }

    /// Starts or stops notifying a shard of writes.
    pub(crate) fn set_watched(&self, _: &Inside, shard: usize, watched: bool) {
        let all = self.watchers.load(Ordering::Relaxed);
        let bit = 1u64 << shard;
        self.watchers.store(if watched { all | bit } else { all & !bit }, Ordering::Relaxed);
    }

    /// Counts one shard more or less that wants every write.
    pub(crate) fn count_queued(&self, _: &Inside, queued: bool) {
        let count = self.queued_by.load(Ordering::Relaxed);
        let count = if queued { count + 1 } else { count.saturating_sub(1) };
        self.queued_by.store(count, Ordering::Relaxed);
    }

    /// The node was deleted, or the slot is reused. Watching shards do not change: they hold shares.
    pub(crate) fn set_gone(&self, _: &Inside, gone: bool) {
        let all = self.watchers.load(Ordering::Relaxed);
        self.watchers.store(if gone { all | GONE } else { all & !GONE }, Ordering::Relaxed);
    }

    /// Whether the node was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) & GONE != 0
    }

    /// The watching shards, as a hint without synchronization.
    pub(crate) fn watching(&self) -> u64 {
        self.watchers.load(Ordering::Relaxed) & !GONE
    }

    /// A consistent copy if the value is inline. None if a retry is needed.
    #[inline]
    pub(crate) fn try_read_scalar(&self) -> Option<Option<Scalar>> {
        let before = self.seq.load(Ordering::Acquire);
        if before & 1 != 0 {
            return None;
        }
        let meta = self.meta.load(Ordering::Relaxed);
        let scalar = Scalar {
            kind: (meta >> 32) as u8,
            bits: self.bits.load(Ordering::Relaxed),
            status: StatusCode(meta as u32),
            source: UtcTime::from_ticks(self.source.load(Ordering::Relaxed)),
        };
        fence(Ordering::Acquire);
        (self.seq.load(Ordering::Relaxed) == before).then(|| (scalar.kind != KIND_PAYLOAD).then_some(scalar))
    }

    /// A consistent copy with its sequence number. None if a retry is needed.
    #[inline]
    pub(crate) fn try_read(&self) -> Option<(Snapshot, u64)> {
        let before = self.seq.load(Ordering::Acquire);
        if before & 1 != 0 {
            return None;
        }
        let snapshot = self.copy(before);
        fence(Ordering::Acquire);
        (self.seq.load(Ordering::Relaxed) == before).then_some((snapshot, before))
    }

    #[inline]
    fn copy(&self, seq: u64) -> Snapshot {
        let meta = self.meta.load(Ordering::Relaxed);
        let kind = (meta >> 32) as u8;
        Snapshot {
            kind,
            bits: self.bits.load(Ordering::Relaxed),
            payload: if kind == KIND_PAYLOAD { self.payload.load_full() } else { None },
            status: StatusCode(meta as u32),
            source: UtcTime::from_ticks(self.source.load(Ordering::Relaxed)),
            server: UtcTime::from_ticks(self.server.load(Ordering::Relaxed)),
            change: (meta >> 40) as u32,
            write: write_number(seq),
        }
    }
}
