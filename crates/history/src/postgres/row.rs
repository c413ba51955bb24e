//! Conversion between values and rows.

use core::time::Duration;
use postgres::Row;
use std::time::SystemTime;
use taktwerk_server::history::HistoryValue;
use taktwerk_types::{Decode, DecodeLimits, Decoder, Encode, StatusCode, UtcTime, Variant};

/// The columns of a value, in the order of [`value`].
pub(super) const VALUE: &str = "ticks, server_ticks, status, type, value, other";

/// A value as table columns.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) time: SystemTime,
    pub(super) ticks: i64,
    pub(super) server_ticks: i64,
    pub(super) status: i64,
    pub(super) kind: i16,
    pub(super) value: Option<f64>,
    pub(super) other: Option<Vec<u8>>,
}

/// The time rounded down to a microsecond, as the database stores it.
pub(super) fn time(time: UtcTime) -> SystemTime {
    // The range of the database begins in 4713 BC.
    let micros = time.unix_nanos().div_euclid(1_000).clamp(-62_000_000_000_000_000, 250_000_000_000_000_000);
    let span = Duration::from_micros(u64::try_from(micros.unsigned_abs()).unwrap_or(u64::MAX));
    if micros >= 0 { SystemTime::UNIX_EPOCH + span } else { SystemTime::UNIX_EPOCH - span }
}

impl Columns {
    pub(super) fn of(value: &HistoryValue) -> Self {
        let (kind, number) = match &value.value {
            Variant::Empty => (0, None),
            Variant::Boolean(value) => (1, Some(f64::from(u8::from(*value)))),
            other => match other.built_in_type().map(|kind| i16::from(kind.number())) {
                Some(kind @ 2..=11) if other.as_array().is_none() => (kind, other.as_f64()),
                _ => (255, None),
            },
        };
        let is_exact = match &value.value {
            Variant::Int64(value) => (*value as f64) as i64 == *value && value.unsigned_abs() <= 1 << 53,
            Variant::UInt64(value) => *value <= 1 << 53,
            _ => kind != 255,
        };
        Self {
            time: time(value.source),
            ticks: value.source.ticks(),
            server_ticks: value.server.ticks(),
            status: value.status.0.into(),
            kind,
            value: number,
            other: (!is_exact).then(|| value.value.encode_to_vec()),
        }
    }
}

/// Reads the columns ticks, server_ticks, status, type, value and other, beginning at column `at`.
pub(super) fn value(row: &Row, at: usize) -> Result<HistoryValue, postgres::Error> {
    let number: Option<f64> = row.try_get(at + 4)?;
    let other: Option<&[u8]> = row.try_get(at + 5)?;
    let kind: i16 = row.try_get(at + 3)?;
    let number = number.unwrap_or_default();
    let value = match (other, kind) {
        (Some(bytes), _) => {
            Variant::decode(&mut Decoder::new(bytes, DecodeLimits::DEFAULT)).unwrap_or_default()
        }
        (None, 1) => Variant::Boolean(number != 0.0),
        (None, 2) => Variant::SByte(number as i8),
        (None, 3) => Variant::Byte(number as u8),
        (None, 4) => Variant::Int16(number as i16),
        (None, 5) => Variant::UInt16(number as u16),
        (None, 6) => Variant::Int32(number as i32),
        (None, 7) => Variant::UInt32(number as u32),
        (None, 8) => Variant::Int64(number as i64),
        (None, 9) => Variant::UInt64(number as u64),
        (None, 10) => Variant::Float(number as f32),
        (None, 11) => Variant::Double(number),
        (None, _) => Variant::Empty,
    };
    Ok(HistoryValue {
        source: UtcTime::from_ticks(row.try_get(at)?),
        server: UtcTime::from_ticks(row.try_get(at + 1)?),
        status: StatusCode(u32::try_from(row.try_get::<_, i64>(at + 2)?).unwrap_or(StatusCode::BAD.0)),
        value,
    })
}
