//! The storage format of queued values: a table of tag names, then records in OPC UA Binary (Part 6 §5.2).

use std::collections::HashMap;
use std::sync::Arc;
use taktwerk_types::{
    DataValue, Decode, DecodeError, DecodeLimits, Decoder, Encode, StatusCode, UtcTime, Variant,
};

/// The format version, stored as first byte.
const VERSION: u8 = 1;
/// The encoding mask of a DataValue with value, status and both timestamps (Part 6 §5.2.2.17).
const MASK: u8 = 0x0F;
/// A block is full with this many records …
pub const RECORDS_MAX: u32 = 10_000;
/// … or this many bytes.
pub const BYTES_MAX: usize = 1 << 20;

/// A value of a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its number in the queue. Numbers increase. They have gaps after dropped records and after restarts.
    pub number: u64,
    /// The path and name of the tag: `Line 1/Oven/Temperature`.
    pub tag: Arc<str>,
    /// The value; empty if the status is bad.
    pub value: Variant,
    /// Its status.
    pub status: StatusCode,
    /// The source timestamp.
    pub time: UtcTime,
    /// When the gateway received it.
    pub received: UtcTime,
}

/// A complete block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The number of records.
    pub count: u32,
    /// When the first record was received.
    pub time: UtcTime,
    /// The encoded records.
    pub body: Vec<u8>,
}

/// The number of records in blocks.
pub(super) fn count(blocks: &[Block]) -> u64 {
    blocks.iter().map(|block| u64::from(block.count)).sum()
}

/// A block under construction.
#[derive(Debug, Default)]
pub struct Builder {
    /// The index of each tag in the table.
    places: HashMap<u32, u32>,
    names: Vec<Arc<str>>,
    names_len: usize,
    records: Vec<u8>,
    count: u32,
    time: Option<UtcTime>,
}

impl Builder {
    /// Adds a record. `id` identifies the tag name.
    pub fn push(
        &mut self,
        id: u32,
        name: &Arc<str>,
        value: &Variant,
        status: StatusCode,
        time: UtcTime,
        received: UtcTime,
    ) {
        let next = self.names.len() as u32;
        let place = *self.places.entry(id).or_insert(next);
        if place == next {
            self.names.push(Arc::clone(name));
            self.names_len += name.len() + 4;
        }
        place.encode(&mut self.records);
        self.records.push(MASK);
        value.encode(&mut self.records);
        status.encode(&mut self.records);
        time.encode(&mut self.records);
        received.encode(&mut self.records);
        self.count += 1;
        self.time.get_or_insert(received);
    }

    /// The size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len() + self.names_len
    }

    /// The number of records.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether it contains no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the block is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count >= RECORDS_MAX || self.len() >= BYTES_MAX
    }

    /// Takes the block, if there are records. The builder is empty afterwards.
    pub fn take(&mut self) -> Option<Block> {
        let time = self.time.take()?;
        let Self { names, records, count, .. } = core::mem::take(self);
        let mut body = vec![VERSION];
        (names.len() as u32).encode(&mut body);
        for name in names {
            taktwerk_types::codec::encode_bytes(Some(name.as_bytes()), &mut body);
        }
        count.encode(&mut body);
        body.extend_from_slice(&records);
        Some(Block { count, time, body })
    }
}

/// A block of one record.
#[must_use]
pub fn encode_one(record: &Record) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.push(0, &record.tag, &record.value, record.status, record.time, record.received);
    builder.take().map(|block| block.body).unwrap_or_default()
}

/// Decodes the records of a block; the first one gets the number `first`.
///
/// # Errors
/// The block is damaged.
pub fn decode(body: &[u8], first: u64) -> Result<Vec<Record>, DecodeError> {
    let mut decoder = Decoder::new(body, DecodeLimits::DEFAULT);
    if decoder.byte()? != VERSION {
        return Err(DecodeError::Invalid("version of a block"));
    }
    let names = decoder.array_len(4)?.unwrap_or(0);
    let mut tags: Vec<Arc<str>> = Vec::new();
    for _ in 0..names {
        let name = decoder.str()?.unwrap_or_default();
        decoder.allocate(name.len())?;
        tags.push(Arc::from(name));
    }
    // Each record has at least its tag, its mask, an empty value, a status and two times.
    let count = decoder.array_len(26)?.unwrap_or(0);
    decoder.allocate(count.saturating_mul(size_of::<Record>()))?;
    let mut records = Vec::new();
    for number in 0..count {
        let place = u32::decode(&mut decoder)?;
        let Some(tag) = tags.get(place as usize) else {
            return Err(DecodeError::Invalid("tag of a record"));
        };
        let data = DataValue::decode(&mut decoder)?;
        records.push(Record {
            number: first.saturating_add(number as u64),
            tag: Arc::clone(tag),
            status: data.status(),
            value: data.value.unwrap_or_default(),
            time: data.source_timestamp.unwrap_or_default(),
            received: data.server_timestamp.unwrap_or_default(),
        });
    }
    match decoder.remaining() {
        0 => Ok(records),
        _ => Err(DecodeError::Invalid("bytes after the last record")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let mut builder = Builder::default();
        assert!(builder.take().is_none());
        let (a, b): (Arc<str>, Arc<str>) = ("Line/A".into(), "Line/B".into());
        let time = |at: i64| UtcTime::from_ticks(133_000_000_000_000_000 + at);
        builder.push(7, &a, &1.5.into(), StatusCode::GOOD, time(1), time(2));
        builder.push(9, &b, &"x".into(), StatusCode::UNCERTAIN_LAST_USABLE_VALUE, time(3), time(4));
        builder.push(7, &a, &Variant::Empty, StatusCode::BAD_NO_COMMUNICATION, time(5), time(6));
        builder.push(7, &a, &vec![1i32, 2].into(), StatusCode::GOOD, time(7), time(8));
        let block = builder.take().unwrap();
        assert_eq!((block.count, block.time, builder.is_empty()), (4, time(2), true));
        let records = decode(&block.body, 100).unwrap();
        assert_eq!(records.iter().map(|record| record.number).collect::<Vec<_>>(), [100, 101, 102, 103]);
        assert_eq!(records.iter().map(|record| &*record.tag).collect::<Vec<_>>(), [&*a, &b, &a, &a]);
        assert_eq!(records[1].value, "x".into());
        assert_eq!(records[2].status, StatusCode::BAD_NO_COMMUNICATION);
        assert_eq!((records[3].time, records[3].received), (time(7), time(8)));
        for len in 0..block.body.len() {
            assert!(decode(&block.body[..len], 0).is_err(), "{len}");
        }
        let mut damaged = block.body.clone();
        damaged.push(0);
        assert!(decode(&damaged, 0).is_err());
    }

    #[test]
    fn a_block_is_full_by_count_or_size() {
        let name: Arc<str> = "A".into();
        let mut builder = Builder::default();
        let now = UtcTime::from_ticks(1);
        while !builder.is_full() {
            builder.push(0, &name, &1.0.into(), StatusCode::GOOD, now, now);
        }
        assert_eq!(builder.take().unwrap().count, RECORDS_MAX);
        let long = "x".repeat(BYTES_MAX);
        builder.push(0, &name, &long.as_str().into(), StatusCode::GOOD, now, now);
        assert!(builder.is_full());
    }
}
