//! Encodes values as compressed columns: the content of one database row.
//!
//! Pcodec (crate `pco`) compresses numbers: it finds regular times, decimals and small differences. Columns that do not change
//! take almost no space. A checksum at the end detects damaged rows.

use core::fmt;
use pco::data_types::Number;
use pco::standalone::{simple_compress, simple_decompress_into};
use pco::{ChunkConfig, DEFAULT_COMPRESSION_LEVEL};
use std::collections::BTreeMap;
use taktwerk_server::history::HistoryValue;
use taktwerk_types::{Decode, DecodeLimits, Decoder, Encode, StatusCode, UtcTime, Variant};

/// The format version, stored as first byte.
const VERSION: u8 = 1;
/// Most values of a chunk. It bounds the memory that a damaged count can make the reader allocate.
pub const VALUES_MAX: usize = 1 << 20;
/// Kind of values that are neither numbers nor null: stored in a dictionary.
const OTHER: u8 = 255;

/// The chunk is damaged and cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged(&'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a chunk of values is damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

/// Compresses values.
#[must_use]
pub fn encode<'a>(values: impl IntoIterator<Item = &'a HistoryValue>) -> Vec<u8> {
    encode_with(&[], &values.into_iter().collect::<Vec<_>>())
}

/// Compresses values of many Variables, each with the number of its Variable.
#[must_use]
pub fn encode_batch(values: &[(u32, &HistoryValue)]) -> Vec<u8> {
    let nodes: Vec<u32> = values.iter().map(|(node, _)| *node).collect();
    encode_with(&nodes, &values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

fn encode_with(nodes: &[u32], values: &[&HistoryValue]) -> Vec<u8> {
    let mut out = vec![VERSION];
    varint(values.len() as u64, &mut out);
    out.push(u8::from(!nodes.is_empty()));
    if !nodes.is_empty() {
        column(nodes, |node| u64::from(*node), &mut out);
    }
    let times: Vec<i64> = values.iter().map(|value| value.source.ticks()).collect();
    column(&times, |time| *time as u64, &mut out);
    let delays: Vec<i64> =
        values.iter().map(|value| value.server.ticks().wrapping_sub(value.source.ticks())).collect();
    column(&delays, |delay| *delay as u64, &mut out);
    runs(values.iter().map(|value| value.status.0), &mut out);
    runs(values.iter().map(|value| u32::from(kind(&value.value))), &mut out);
    let mut by_kind: BTreeMap<u8, Vec<&Variant>> = BTreeMap::new();
    for value in values {
        by_kind.entry(kind(&value.value)).or_default().push(&value.value);
    }
    for (kind, values) in by_kind {
        encode_kind(kind, &values, &mut out);
    }
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// Reads a chunk and appends its values.
///
/// # Errors
/// The chunk is damaged. No values were appended.
pub fn decode(bytes: &[u8], out: &mut Vec<HistoryValue>) -> Result<(), Damaged> {
    let (nodes, mut values) = decode_with(bytes)?;
    if nodes.is_some() {
        return Err(Damaged("this is a batch"));
    }
    out.append(&mut values);
    Ok(())
}

/// Reads a batch.
///
/// # Errors
/// The batch is damaged.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<(u32, HistoryValue)>, Damaged> {
    let (nodes, values) = decode_with(bytes)?;
    let nodes = match nodes {
        Some(nodes) => nodes,
        None if values.is_empty() => Vec::new(),
        None => return Err(Damaged("this is not a batch")),
    };
    Ok(nodes.into_iter().zip(values).collect())
}

type Parts = (Option<Vec<u32>>, Vec<HistoryValue>);

fn decode_with(bytes: &[u8]) -> Result<Parts, Damaged> {
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or(Damaged("it is too short"))?;
    if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
        return Err(Damaged("its checksum is wrong"));
    }
    let mut rest = Reader(body);
    if rest.byte()? != VERSION {
        return Err(Damaged("unknown version"));
    }
    let count = rest.len(VALUES_MAX)?;
    let nodes = match rest.byte()? {
        0 => None,
        _ => Some(rest.column::<u32>(count, |bits| bits as u32)?),
    };
    let times: Vec<i64> = rest.column(count, |bits| bits as i64)?;
    let delays: Vec<i64> = rest.column(count, |bits| bits as i64)?;
    let statuses = rest.runs(count)?;
    let kinds = rest.runs(count)?;
    let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
    for (kind, len) in &kinds {
        *counts.entry(u8::try_from(*kind).map_err(|_| Damaged("a kind"))?).or_default() += len;
    }
    let mut columns: BTreeMap<u8, Column> = BTreeMap::new();
    for (kind, len) in counts {
        columns.insert(kind, rest.kind(kind, len)?);
    }
    let mut values = Vec::with_capacity(count);
    for (time, delay) in times.iter().zip(&delays) {
        values.push(HistoryValue {
            source: UtcTime::from_ticks(*time),
            server: UtcTime::from_ticks(time.wrapping_add(*delay)),
            status: StatusCode::GOOD,
            value: Variant::Empty,
        });
    }
    let mut at = 0;
    for (status, len) in statuses {
        for value in values.iter_mut().skip(at).take(len) {
            value.status = StatusCode(status);
        }
        at += len;
    }
    let mut at = 0;
    for (kind, len) in kinds {
        if let Some(column) = columns.get_mut(&(kind as u8)) {
            column.fill(values.iter_mut().skip(at).take(len));
        }
        at += len;
    }
    Ok((nodes, values))
}

fn kind(value: &Variant) -> u8 {
    value.to_word().map_or(OTHER, |(kind, _)| kind)
}

macro_rules! pick {
    ($values:expr, $out:expr, $variant:ident, $type:ty, $convert:expr, $bits:expr) => {{
        let numbers: Vec<$type> = $values
            .iter()
            .filter_map(
                |value| if let Variant::$variant(value) = value { Some($convert(*value)) } else { None },
            )
            .collect();
        column(&numbers, $bits, $out);
    }};
}

fn encode_kind(kind: u8, values: &[&Variant], out: &mut Vec<u8>) {
    match kind {
        0 => {}
        1 => pick!(values, out, Boolean, u16, u16::from, |value| u64::from(*value)),
        2 => pick!(values, out, SByte, i16, i16::from, |value| *value as u64),
        3 => pick!(values, out, Byte, u16, u16::from, |value| u64::from(*value)),
        4 => pick!(values, out, Int16, i16, |value| value, |value: &i16| *value as u64),
        5 => pick!(values, out, UInt16, u16, |value| value, |value: &u16| u64::from(*value)),
        6 => pick!(values, out, Int32, i32, |value| value, |value: &i32| *value as u64),
        7 => pick!(values, out, UInt32, u32, |value| value, |value: &u32| u64::from(*value)),
        8 => pick!(values, out, Int64, i64, |value| value, |value: &i64| *value as u64),
        9 => pick!(values, out, UInt64, u64, |value| value, |value: &u64| *value),
        10 => pick!(values, out, Float, f32, |value| value, |value: &f32| u64::from(value.to_bits())),
        11 => pick!(values, out, Double, f64, |value| value, |value: &f64| value.to_bits()),
        13 => pick!(values, out, DateTime, i64, |value: UtcTime| value.ticks(), |value: &i64| *value as u64),
        19 => {
            pick!(values, out, StatusCode, u32, |value: StatusCode| value.0, |value: &u32| u64::from(*value))
        }
        _ => dictionary(values, out),
    }
}

/// Stores each distinct value once, then the index for each value.
fn dictionary(values: &[&Variant], out: &mut Vec<u8>) {
    let mut known: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let mut entries: Vec<Vec<u8>> = Vec::new();
    let mut indexes: Vec<u32> = Vec::with_capacity(values.len());
    for value in values {
        let bytes = value.encode_to_vec();
        let next = entries.len() as u32;
        let index = *known.entry(bytes.clone()).or_insert(next);
        if index == next {
            entries.push(bytes);
        }
        indexes.push(index);
    }
    varint(entries.len() as u64, out);
    for entry in entries {
        varint(entry.len() as u64, out);
        out.extend_from_slice(&entry);
    }
    column(&indexes, |index| u64::from(*index), out);
}

/// Identical numbers take nine bytes; others are compressed.
fn column<T: Number>(numbers: &[T], bits: impl Fn(&T) -> u64, out: &mut Vec<u8>) {
    let first = numbers.first().map_or(0, &bits);
    if numbers.iter().all(|number| bits(number) == first) {
        out.push(0);
        out.extend_from_slice(&first.to_le_bytes());
        return;
    }
    let config = ChunkConfig::default().with_compression_level(DEFAULT_COMPRESSION_LEVEL);
    match simple_compress(numbers, &config) {
        Ok(bytes) => {
            out.push(1);
            varint(bytes.len() as u64, out);
            out.extend_from_slice(&bytes);
        }
        // Not expected for these numbers; if the library refuses them they are stored uncompressed.
        Err(_) => {
            out.push(2);
            numbers.iter().for_each(|number| out.extend_from_slice(&bits(number).to_le_bytes()));
        }
    }
}

/// Run-length encoding: each value with its repeat count.
fn runs(values: impl Iterator<Item = u32>, out: &mut Vec<u8>) {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((last, count)) if *last == value => *count += 1,
            _ => runs.push((value, 1)),
        }
    }
    varint(runs.len() as u64, out);
    for (value, count) in runs {
        varint(u64::from(value), out);
        varint(count, out);
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A column of one kind, in order.
enum Column {
    Numbers(u8, std::vec::IntoIter<u64>),
    Others(Vec<Variant>, std::vec::IntoIter<u32>),
}

impl Column {
    fn fill<'a>(&mut self, values: impl Iterator<Item = &'a mut HistoryValue>) {
        match self {
            Self::Numbers(kind, bits) => {
                let kind = *kind;
                for (value, bits) in values.zip(bits) {
                    value.value = Variant::from_word(kind, bits).unwrap_or_default();
                }
            }
            Self::Others(entries, indexes) => {
                for (value, index) in values.zip(indexes) {
                    value.value = entries.get(index as usize).cloned().unwrap_or_default();
                }
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Damaged> {
        self.take(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }

    fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged("a number is too long"))
    }

    fn len(&mut self, max: usize) -> Result<usize, Damaged> {
        let len = usize::try_from(self.varint()?).map_err(|_| Damaged("a length"))?;
        if len <= max { Ok(len) } else { Err(Damaged("a length is too large")) }
    }

    fn column<T: Number + Default>(
        &mut self,
        count: usize,
        of: impl Fn(u64) -> T,
    ) -> Result<Vec<T>, Damaged> {
        match self.byte()? {
            0 => {
                let bytes = self.take(8)?.first_chunk::<8>().copied().unwrap_or_default();
                Ok(vec![of(u64::from_le_bytes(bytes)); count])
            }
            1 => {
                let len = self.len(self.0.len())?;
                let bytes = self.take(len)?;
                let mut numbers = vec![T::default(); count];
                let progress =
                    simple_decompress_into(bytes, &mut numbers).map_err(|_| Damaged("a column"))?;
                if progress.n_processed != count {
                    return Err(Damaged("a column has the wrong length"));
                }
                Ok(numbers)
            }
            2 => {
                let bytes = self.take(count.checked_mul(8).ok_or(Damaged("a length"))?)?;
                let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk::<8>());
                Ok(words.map(|word| of(u64::from_le_bytes(*word))).collect())
            }
            _ => Err(Damaged("a column has an unknown encoding")),
        }
    }

    fn runs(&mut self, count: usize) -> Result<Vec<(u32, usize)>, Damaged> {
        let len = self.len(count)?;
        let mut runs = Vec::with_capacity(len);
        let mut sum = 0;
        for _ in 0..len {
            let value = u32::try_from(self.varint()?).map_err(|_| Damaged("a run"))?;
            let run = self.len(count - sum)?;
            sum += run;
            runs.push((value, run));
        }
        if sum == count { Ok(runs) } else { Err(Damaged("the runs have the wrong length")) }
    }

    fn kind(&mut self, kind: u8, count: usize) -> Result<Column, Damaged> {
        macro_rules! numbers {
            ($type:ty, $bits:expr) => {{
                let numbers: Vec<$type> = self.column(count, |bits| <$type>::from_le_bytes(first(bits)))?;
                numbers.into_iter().map($bits).collect::<Vec<u64>>()
            }};
        }
        let bits = match kind {
            0 => Vec::new(),
            1 | 3 | 5 => numbers!(u16, u64::from),
            2 | 4 => numbers!(i16, |value| value as u64),
            6 => numbers!(i32, |value| value as u64),
            7 | 19 => numbers!(u32, u64::from),
            8 | 13 => numbers!(i64, |value| value as u64),
            9 => numbers!(u64, |value| value),
            10 => numbers!(f32, |value| u64::from(value.to_bits())),
            11 => numbers!(f64, |value| value.to_bits()),
            OTHER => {
                let len = self.len(count)?;
                let mut entries = Vec::with_capacity(len);
                for _ in 0..len {
                    let size = self.len(self.0.len())?;
                    let mut decoder = Decoder::new(self.take(size)?, DecodeLimits::DEFAULT);
                    entries.push(Variant::decode(&mut decoder).map_err(|_| Damaged("a value"))?);
                }
                let indexes: Vec<u32> = self.column(count, |bits| bits as u32)?;
                if indexes.iter().any(|index| *index as usize >= len) {
                    return Err(Damaged("an index beyond the dictionary"));
                }
                return Ok(Column::Others(entries, indexes.into_iter()));
            }
            _ => return Err(Damaged("unknown kind of value")),
        };
        Ok(Column::Numbers(kind, bits.into_iter()))
    }
}

/// The low bytes of a word.
fn first<const N: usize>(bits: u64) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(bits.to_le_bytes()).for_each(|(to, from)| *to = from);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn variant() -> impl Strategy<Value = Variant> {
        prop_oneof![
            Just(Variant::Empty),
            any::<bool>().prop_map(Variant::from),
            any::<i8>().prop_map(Variant::from),
            any::<u8>().prop_map(Variant::from),
            any::<i16>().prop_map(Variant::from),
            any::<u16>().prop_map(Variant::from),
            any::<i32>().prop_map(Variant::from),
            any::<u32>().prop_map(Variant::from),
            any::<i64>().prop_map(Variant::from),
            any::<u64>().prop_map(Variant::from),
            any::<f32>().prop_map(Variant::from),
            any::<f64>().prop_map(Variant::from),
            any::<i64>().prop_map(|ticks| Variant::DateTime(UtcTime::from_ticks(ticks))),
            any::<u32>().prop_map(|code| Variant::StatusCode(StatusCode(code))),
            "[a-c]{0,3}".prop_map(|text| Variant::from(text.as_str())),
            prop::collection::vec(any::<f64>(), 0..4).prop_map(Variant::from),
        ]
    }

    fn value() -> impl Strategy<Value = HistoryValue> {
        (any::<i64>(), any::<i64>(), any::<u32>(), variant()).prop_map(|(source, server, status, value)| {
            HistoryValue {
                source: UtcTime::from_ticks(source),
                server: UtcTime::from_ticks(server),
                status: StatusCode(status),
                value,
            }
        })
    }

    proptest! {
        #[test]
        fn values_survive_a_round_trip(values in prop::collection::vec(value(), 0..60)) {
            let bytes = encode(&values);
            let mut back = Vec::new();
            decode(&bytes, &mut back).unwrap();
            prop_assert_eq!(values.len(), back.len());
            for (one, other) in values.iter().zip(&back) {
                prop_assert!(one.same_as(other), "{:?} {:?}", one, other);
            }
            let batch: Vec<(u32, &HistoryValue)> = (7..).zip(&values).collect();
            let back = decode_batch(&encode_batch(&batch)).unwrap();
            prop_assert_eq!(batch.len(), back.len());
            prop_assert!(batch.iter().zip(&back).all(|(one, other)| one.0 == other.0 && one.1.same_as(&other.1)));
        }

        #[test]
        fn damage_is_found(values in prop::collection::vec(value(), 1..20), at: prop::sample::Index, bit in 0u8..8) {
            let mut bytes = encode(&values);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(decode(&bytes, &mut Vec::new()).is_err());
        }

        #[test]
        fn decoding_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let sum = crc32fast::hash(&bytes);
            bytes.extend_from_slice(&sum.to_le_bytes());
            let _ = decode(&bytes, &mut Vec::new());
            let _ = decode_batch(&bytes);
        }
    }

    #[test]
    fn a_slow_sine_takes_less_than_four_bytes_per_value() {
        // A measurement of 0.001 resolution with noise in the last digit, once a second with jitter of the clock.
        let mut noise = 1u64;
        let mut random = || {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (noise >> 33) as f64 / (1u64 << 31) as f64
        };
        let values: Vec<HistoryValue> = (0..1024)
            .map(|at| {
                let sine = 50.0 + 20.0 * (f64::from(at) / 600.0).sin() + (random() - 0.5) * 0.004;
                let source = UtcTime::from_ticks(133_000_000_000_000_000 + i64::from(at) * 10_000_000);
                let value = ((sine * 1000.0).round() / 1000.0).into();
                HistoryValue { source, server: source, status: StatusCode::GOOD, value }
            })
            .collect();
        let bytes = encode(&values).len();
        assert!(bytes <= values.len() * 4, "{bytes} bytes for {} values", values.len());
    }
}
