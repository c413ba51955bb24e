//! Values as rows.

use crate::destination::block::Record;
use crate::value::to_json;
use bytes::BytesMut;
use core::time::Duration;
use std::time::SystemTime;
use taktwerk_types::{BuiltInType, UtcTime, Variant};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// The types of the columns time, received, tag, value, other, status.
pub(super) const TYPES: [Type; 6] =
    [Type::TIMESTAMPTZ, Type::TIMESTAMPTZ, Type::TEXT, Type::FLOAT8, Type::JSONB, Type::INT8];

/// A value as table columns.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub(super) time: SystemTime,
    pub(super) received: SystemTime,
    pub(super) tag: String,
    /// Numbers, and 0 and 1 for Booleans.
    pub(super) value: Option<f64>,
    /// Values that are not numbers, and integers that a double cannot represent.
    pub(super) other: Option<Jsonb>,
    pub(super) status: i64,
}

/// JSON as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Jsonb(pub(super) String);

impl ToSql for Jsonb {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        // The version of the format.
        out.extend_from_slice(&[1]);
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }

    to_sql_checked!();
}

/// The time in microseconds, the resolution of the database.
fn time(time: UtcTime) -> SystemTime {
    // The range of the database begins in 4713 BC.
    let micros = time.unix_nanos().div_euclid(1_000).clamp(-62_000_000_000_000_000, 250_000_000_000_000_000);
    let span = Duration::from_micros(u64::try_from(micros.unsigned_abs()).unwrap_or(u64::MAX));
    if micros >= 0 { SystemTime::UNIX_EPOCH + span } else { SystemTime::UNIX_EPOCH - span }
}

impl Row {
    pub(super) fn of(record: &Record) -> Self {
        let value = &record.value;
        let is_number = |kind: BuiltInType| (BuiltInType::SByte..=BuiltInType::Double).contains(&kind);
        let number = match value {
            Variant::Boolean(flag) => Some(f64::from(u8::from(*flag))),
            other if other.as_array().is_none() && other.built_in_type().is_some_and(is_number) => {
                other.as_f64()
            }
            _ => None,
        };
        let is_exact = match value {
            Variant::Int64(whole) => whole.unsigned_abs() <= 1 << 53,
            Variant::UInt64(whole) => *whole <= 1 << 53,
            Variant::Empty => true,
            _ => number.is_some(),
        };
        Self {
            time: time(record.time),
            received: time(record.received),
            // The database cannot store the character 0.
            tag: record.tag.replace('\0', "\u{fffd}"),
            value: number,
            other: (!is_exact).then(|| Jsonb(to_json(value).to_string().replace("\\u0000", "\u{fffd}"))),
            status: record.status.0.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::StatusCode;

    #[test]
    fn numbers_are_numbers_and_other_values_json() {
        let time = UtcTime::parse("2026-01-02T03:04:05.5Z").unwrap();
        let row = |value: Variant| {
            let record = Record {
                number: 1,
                tag: "a\0b".into(),
                value,
                status: StatusCode::GOOD,
                time,
                received: time,
            };
            let row = Row::of(&record);
            assert_eq!(row.tag, "a\u{fffd}b");
            (row.value, row.other.map(|json| json.0))
        };
        assert_eq!(row(1.5.into()), (Some(1.5), None));
        assert_eq!(row(true.into()), (Some(1.0), None));
        assert_eq!(row((-7i16).into()), (Some(-7.0), None));
        assert_eq!(row(u64::MAX.into()), (Some(u64::MAX as f64), Some("18446744073709551615".to_owned())));
        assert_eq!(row(vec![1, 2].into()), (None, Some("[1,2]".to_owned())));
        assert_eq!(row("x\0".into()), (None, Some("\"x\u{fffd}\"".to_owned())));
        assert_eq!(row(Variant::Empty), (None, None));
    }
}
