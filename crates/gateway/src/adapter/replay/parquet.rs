//! Reads the rows of a Parquet file. Groups and lists become text.

use core::time::Duration;
use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use std::fs::File;
use taktwerk_types::UtcTime;

/// An open file, read by row group.
pub(super) struct Rows(RowIter<'static>);

impl Rows {
    /// Opens a file; also returns the column names.
    pub(super) fn open(file: File) -> Result<(Self, Vec<String>), String> {
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        let columns = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
        if let Some(codec) = columns.filter_map(|column| unreadable(column.compression())).next() {
            return Err(format!(
                "it is compressed with {codec}, which this program cannot read; write it again with snappy, gzip or without \
                 compression"
            ));
        }
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

/// The name of a codec that this program does not have. That of zstd is in C; the others are rare.
fn unreadable(codec: Compression) -> Option<&'static str> {
    match codec {
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_) => None,
        Compression::ZSTD(_) => Some("zstd"),
        Compression::BROTLI(_) => Some("brotli"),
        Compression::LZ4 | Compression::LZ4_RAW => Some("LZ4"),
        Compression::LZO => Some("LZO"),
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
        // Rust formats numbers so that they can be parsed again.
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::TimestampMillis(millis) => time(millis.saturating_mul(1000)),
        Field::TimestampMicros(micros) => time(micros),
        Field::Date(days) => time(i64::from(days) * 86_400_000_000),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A file written by PyArrow: `time` and `Level`.
    fn open(name: &str) -> Result<(Rows, Vec<String>), String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name);
        Rows::open(File::open(path).unwrap())
    }

    #[test]
    fn gzip_is_read_and_zstd_is_refused_with_the_way_out() {
        let (mut rows, names) = open("gzip.parquet").unwrap();
        assert_eq!(names, ["time", "Level"]);
        let (mut all, mut cells) = (Vec::new(), Vec::new());
        while rows.next(&mut cells).unwrap() {
            all.push(cells.clone());
        }
        assert_eq!(all.len(), 50);
        assert_eq!(all[0], ["2019-07-03T12:00:00Z", "0.5"]);
        assert_eq!(all[49], ["2019-07-03T12:00:00.98Z", "25"]);
        let refused = open("zstd.parquet").map(drop).unwrap_err();
        assert!(refused.contains("compressed with zstd") && refused.contains("snappy, gzip"), "{refused}");
    }
}
