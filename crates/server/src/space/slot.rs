//! Value slots: where the values of Variables live (design §4).
//!
//! A slot is one cache line. Writers take turns by its sequence number; readers never lock. Both look again a bounded
//! number of times before they let others run ([`super::page`]), so that a writer that was preempted can finish.
//!
//! Everything that a writer looks at besides the value (who watches, who wants every write, whether the node is gone)
//! is changed as a writer changes the value: by the one who has entered. So a shard that starts to watch has either
//! seen a write or is told of it.

use super::sync::{AtomicI64, AtomicU32, AtomicU64, PayloadCell, fence};
use core::sync::atomic::Ordering;
use std::sync::Arc;
use taktwerk_types::{DataValue, StatusCode, UtcTime, Variant};

/// Most shards a server can have: one bit each in a slot's watchers, whose top bit has another use.
pub const SHARDS_MAX: usize = 63;
/// Bit of [`Slot::watchers`]: the node is gone, the value is final.
const GONE: u64 = 1 << 63;

/// The value is not inline but in [`Slot::payload`].
const KIND_PAYLOAD: u8 = 0xff;

/// One variable's value.
#[cfg_attr(not(loom), repr(align(64)))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// Odd while a writer is inside; half of it counts the writes.
    seq: AtomicU64,
    /// Status in the low half, then the kind byte, then the change counter (24 bits).
    meta: AtomicU64,
    /// The inline scalar.
    bits: AtomicU64,
    source: AtomicI64,
    server: AtomicI64,
    payload: PayloadCell,
    /// One bit per shard that watches, and [`GONE`].
    watchers: AtomicU64,
    /// How many shares of it there are. With none left it can serve another node.
    pub(super) owners: AtomicU32,
    /// How many shards want every write.
    queued_by: AtomicU32,
}

/// A consistent copy of a slot: what a publish encodes from. Scalars need no heap.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Built-in type number, 0 for null, [`KIND_PAYLOAD`] for a value in `payload`.
    pub(crate) kind: u8,
    /// The inline scalar's bits.
    pub(crate) bits: u64,
    pub(crate) payload: Option<Arc<Variant>>,
    pub(crate) status: StatusCode,
    pub(crate) source: UtcTime,
    pub(crate) server: UtcTime,
    /// Counts changes of value or status, modulo 2^24.
    pub(crate) change: u32,
    /// Counts writes, modulo 2^32.
    pub(crate) write: u32,
}

impl Snapshot {
    /// Whether it is of a later write than the one of that number.
    #[inline]
    pub(crate) fn is_after(&self, write: u32) -> bool {
        (self.write.wrapping_sub(write) as i32) > 0
    }
}

fn pack(status: StatusCode, kind: u8, change: u32) -> u64 {
    u64::from(status.0) | u64::from(kind) << 32 | u64::from(change & 0x00ff_ffff) << 40
}

/// Splits a value into what fits a slot's word; the rest goes behind a reference count.
fn inline(value: &Variant) -> Option<(u8, u64)> {
    Some(match value {
        Variant::Empty => (0, 0),
        Variant::Boolean(value) => (1, u64::from(*value)),
        Variant::SByte(value) => (2, u64::from(*value as u8)),
        Variant::Byte(value) => (3, u64::from(*value)),
        Variant::Int16(value) => (4, u64::from(*value as u16)),
        Variant::UInt16(value) => (5, u64::from(*value)),
        Variant::Int32(value) => (6, u64::from(*value as u32)),
        Variant::UInt32(value) => (7, u64::from(*value)),
        Variant::Int64(value) => (8, *value as u64),
        Variant::UInt64(value) => (9, *value),
        Variant::Float(value) => (10, u64::from(value.to_bits())),
        Variant::Double(value) => (11, value.to_bits()),
        Variant::DateTime(value) => (13, value.ticks() as u64),
        Variant::StatusCode(value) => (19, u64::from(value.0)),
        _ => return None,
    })
}

/// How many bytes of the word the binary encoding of an inline kind takes.
#[inline]
pub(crate) const fn inline_len(kind: u8) -> usize {
    match kind {
        1..=3 => 1,
        4 | 5 => 2,
        6 | 7 | 10 | 19 => 4,
        8 | 9 | 11 | 13 => 8,
        _ => 0,
    }
}

impl Snapshot {
    /// The value as a Variant.
    pub(crate) fn value(&self) -> Variant {
        let bits = self.bits;
        match self.kind {
            1 => Variant::Boolean(bits != 0),
            2 => Variant::SByte(bits as i8),
            3 => Variant::Byte(bits as u8),
            4 => Variant::Int16(bits as i16),
            5 => Variant::UInt16(bits as u16),
            6 => Variant::Int32(bits as i32),
            7 => Variant::UInt32(bits as u32),
            8 => Variant::Int64(bits as i64),
            9 => Variant::UInt64(bits),
            10 => Variant::Float(f32::from_bits(bits as u32)),
            11 => Variant::Double(f64::from_bits(bits)),
            13 => Variant::DateTime(UtcTime::from_ticks(bits as i64)),
            19 => Variant::StatusCode(StatusCode(bits as u32)),
            KIND_PAYLOAD => self.payload.as_deref().cloned().unwrap_or_default(),
            _ => Variant::Empty,
        }
    }

    /// Of no slot: a value that was kept.
    pub(crate) fn from_data_value(value: DataValue) -> Self {
        let status = value.status();
        let source = value.source_timestamp.unwrap_or(UtcTime::NULL);
        let server = value.server_timestamp.unwrap_or(UtcTime::NULL);
        let value = value.value.unwrap_or_default();
        let (kind, bits, payload) = match inline(&value) {
            Some((kind, bits)) => (kind, bits, None),
            None => (KIND_PAYLOAD, 0, Some(Arc::new(value))),
        };
        Self { kind, bits, payload, status, source, server, change: 0, write: 0 }
    }

    /// The value as a number, for deadbands.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self.kind {
            11 => Some(f64::from_bits(self.bits)),
            KIND_PAYLOAD => None,
            _ => self.value().as_f64(),
        }
    }

    /// The whole DataValue, with the status only where it is not Good.
    pub(crate) fn to_data_value(&self) -> DataValue {
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
pub(crate) struct Scalar {
    /// Built-in type number, 0 for null.
    pub(crate) kind: u8,
    pub(crate) bits: u64,
    pub(crate) status: StatusCode,
    pub(crate) source: UtcTime,
}

/// A value on its way into a slot. What it needs of the heap is made before the slot is entered.
#[derive(Debug)]
pub(super) enum Incoming {
    Inline(u8, u64),
    Payload(Arc<Variant>),
}

impl Incoming {
    #[inline]
    pub(super) fn of(value: Variant) -> Self {
        match inline(&value) {
            Some((kind, bits)) => Self::Inline(kind, bits),
            None => Self::Payload(Arc::new(value)),
        }
    }
}

/// The right to change a slot: what its sequence number was before.
#[derive(Debug)]
#[must_use]
pub(super) struct Inside(u64);

/// Who looks at a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watchers {
    /// One bit per shard.
    pub(super) shards: u64,
    /// Whether some of them want every write.
    pub(super) queued: bool,
}

/// How many writes a sequence number has counted, modulo 2^32.
#[inline]
const fn write_number(seq: u64) -> u32 {
    (seq >> 1) as u32
}

impl Slot {
    pub(super) fn new() -> Self {
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

    /// Becomes the one writer, if no other one is inside.
    #[inline]
    pub(super) fn try_enter(&self) -> Option<Inside> {
        let seq = self.seq.load(Ordering::Relaxed);
        self.try_enter_at(seq)
    }

    /// Becomes the one writer, if nothing was written since the sequence number was `seq`.
    #[inline]
    pub(super) fn try_enter_at(&self, seq: u64) -> Option<Inside> {
        if seq & 1 != 0 {
            return None;
        }
        self.seq.compare_exchange_weak(seq, seq + 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // Orders the data stores behind the odd sequence number, for readers that see one of them.
        fence(Ordering::Release);
        Some(Inside(seq))
    }

    /// Leaves without having changed the value.
    pub(super) fn leave(&self, inside: Inside) {
        self.seq.store(inside.0, Ordering::Release);
    }

    /// Leaves after a write.
    #[inline]
    pub(super) fn publish(&self, inside: Inside) {
        self.seq.store(inside.0.wrapping_add(2), Ordering::Release);
    }

    /// Who watches; none if the node is gone, whose value is final.
    #[inline]
    pub(super) fn watchers(&self, _: &Inside) -> Option<Watchers> {
        let shards = self.watchers.load(Ordering::Relaxed);
        let queued = shards != 0 && self.queued_by.load(Ordering::Relaxed) != 0;
        (shards & GONE == 0).then_some(Watchers { shards, queued })
    }

    /// The present value's payload and the sequence number at which it was taken, for a comparison outside. None
    /// while a writer is inside.
    pub(super) fn peek_payload(&self) -> Option<(Option<Arc<Variant>>, u64)> {
        let (snapshot, seq) = self.try_read()?;
        Some((snapshot.payload, seq))
    }

    /// Stores a value. `same` says whether it is known to equal the present one's payload. Gives back the payload
    /// that was replaced, to be dropped outside.
    #[inline]
    pub(super) fn put(
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

    /// The value as the one who is inside has just put it, with the number of this write.
    pub(super) fn written(&self, inside: &Inside) -> Snapshot {
        self.copy(inside.0.wrapping_add(2))
    }

    /// The number of the last write, for the one who is inside.
    #[inline]
    pub(super) fn number(&self, inside: &Inside) -> u32 {
        write_number(inside.0)
    }

    /// The value as it is, for one who is inside and has not written yet.
    pub(super) fn unchanged(&self, inside: &Inside) -> Snapshot {
        self.copy(inside.0)
    }

    /// Starts or stops telling a shard about writes.
    pub(super) fn set_watched(&self, _: &Inside, shard: usize, watched: bool) {
        let all = self.watchers.load(Ordering::Relaxed);
        let bit = 1u64 << shard;
        self.watchers.store(if watched { all | bit } else { all & !bit }, Ordering::Relaxed);
    }

    /// One shard more or less wants every write.
    pub(super) fn count_queued(&self, _: &Inside, queued: bool) {
        let count = self.queued_by.load(Ordering::Relaxed);
        let count = if queued { count + 1 } else { count.saturating_sub(1) };
        self.queued_by.store(count, Ordering::Relaxed);
    }

    /// The node is gone, or the slot serves another one. Watchers are not touched by that: they hold shares.
    pub(super) fn set_gone(&self, _: &Inside, gone: bool) {
        let all = self.watchers.load(Ordering::Relaxed);
        self.watchers.store(if gone { all | GONE } else { all & !GONE }, Ordering::Relaxed);
    }

    /// The shards that watch, for those who need no more than a hint.
    pub(super) fn watching(&self) -> u64 {
        self.watchers.load(Ordering::Relaxed) & !GONE
    }

    /// A consistent copy if the value is inline. None if another look is needed.
    #[inline]
    pub(super) fn try_read_scalar(&self) -> Option<Option<Scalar>> {
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

    /// A consistent copy, and the sequence number at which it was taken. None if another look is needed.
    #[inline]
    pub(super) fn try_read(&self) -> Option<(Snapshot, u64)> {
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
