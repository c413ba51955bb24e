//! Rows of a Parquet file. Groups and lists are shown as text.

use core::time::Duration;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use std::fs::File;
use taktwerk_types::UtcTime;

/// A file that is being read, one row group at a time.
pub(super) struct Rows(RowIter<'static>);

impl Rows {
    /// Reads the schema; gives the names of the columns, too.
    pub(super) fn open(file: File) -> Result<(Self, Vec<String>), String> {
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        let schema = reader.metadata().file_metadata().schema();
        let names = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
        Ok((Self(reader.into_iter()), names))
    }

    pub(super) fn next(&mut self, cells: &mut Vec<String>) -> Result<bool, String> {
        let Some(row) = self.0.next() else { return Ok(false) };
        let row = row.map_err(|error| error.to_string())?;
        cells.clear();
        cells.extend(row.into_columns().into_iter().map(|(_, field)| text(field)));
        Ok(true)
    }
}

fn text(field: Field) -> String {
    let time = |micros: i64| {
        let since = u64::try_from(micros).map(Duration::from_micros);
        since.map_or_else(|_| String::new(), |since| UtcTime::from_unix(since).to_string())
    };
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text,
        // Numbers as Rust writes them can be read again.
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::TimestampMillis(millis) => time(millis.saturating_mul(1000)),
        Field::TimestampMicros(micros) => time(micros),
        Field::Date(days) => time(i64::from(days) * 86_400_000_000),
        other => other.to_string(),
    }
}
