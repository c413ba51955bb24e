//! Parquet files. A file is written atomically and contains one batch, so each value is stored once.
//!
//! Values wait in the queue on disk until there are enough for a file, or until the oldest has waited long enough. The file name
//! contains the number of the first value, so writing a batch again replaces the file.

use super::block::Record;
use super::settings::DestinationSettings;
use super::{Batch, Sink, Taken};
use crate::fault::Fault;
use crate::fields::{Fields, Mistake};
use crate::value::to_json;
use core::time::Duration;
use futures_util::future::BoxFuture;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use taktwerk_types::{BuiltInType, UtcTime, Variant};

const SCHEMA: &str = "message tag_values {
    required int64 time (TIMESTAMP(MICROS, true));
    required int64 received (TIMESTAMP(MICROS, true));
    required binary tag (STRING);
    optional double value;
    optional binary text (STRING);
    required int32 status (INTEGER(32, false));
    required int64 number;
}";

/// Parquet files in a directory.
pub struct ParquetFiles {
    rows_max: usize,
    age_max: Duration,
    place: Arc<Place>,
}

struct Place {
    folder: PathBuf,
    sync: bool,
    /// A write past its deadline continues in the background. The next write waits for it.
    writing: Mutex<()>,
}

impl ParquetFiles {
    /// Takes the settings of a destination.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields, settings: &DestinationSettings) -> Result<Self, Mistake> {
        let (_, folder) = fields.required("folder", "\"values\"")?;
        Ok(Self {
            rows_max: fields.integer("rows_max", 1, 1_000_000)?.unwrap_or(100_000) as usize,
            age_max: fields.span("file_age")?.unwrap_or(Duration::from_secs(300)),
            place: Arc::new(Place {
                folder: fields.path().parent().map(|parent| parent.join(&folder)).unwrap_or_default(),
                sync: settings.limits.sync,
                writing: Mutex::default(),
            }),
        })
    }
}

impl Place {
    /// Writes a temporary file, and then renames it.
    fn write(&self, batch: &Batch) -> io::Result<()> {
        let Some(first) = batch.records.first() else { return Ok(()) };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::create_dir_all(&self.folder)?;
        // Without fraction, and without colons, which some systems do not allow in file names.
        let time = first.received.to_string();
        let time = time.split(['.', 'Z']).next().unwrap_or_default().replace(':', "-");
        let name = format!("{time}-{}.parquet", batch.key(first));
        let beside = self.folder.join(format!("{name}.part"));
        let file = write_rows(File::create(&beside)?, batch).map_err(io::Error::other)?;
        if self.sync {
            file.sync_all()?;
        }
        std::fs::rename(&beside, self.folder.join(&name))?;
        if self.sync { File::open(&self.folder)?.sync_all() } else { Ok(()) }
    }
}

/// Writes the records of a batch.
fn write_rows(file: File, batch: &Batch) -> Result<File, ParquetError> {
    let queue = KeyValue::new("taktwerk.queue".to_owned(), batch.queue.clone());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("taktwerk ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![queue]))
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let records = &batch.records;
    let micros = |time: UtcTime| i64::try_from(time.unix_nanos().div_euclid(1000)).unwrap_or_default();
    longs(&mut group, records.iter().map(|record| micros(record.time)).collect())?;
    longs(&mut group, records.iter().map(|record| micros(record.received)).collect())?;
    let tags: Vec<ByteArray> = records.iter().map(|record| ByteArray::from(&*record.tag)).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<ByteArrayType>().write_batch(&tags, None, None)?;
        column.close()?;
    }
    let values: Vec<Option<f64>> = records.iter().map(number).collect();
    if let Some(mut column) = group.next_column()? {
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<f64> = values.iter().copied().flatten().collect();
        column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    let texts: Vec<Option<String>> = records.iter().map(text).collect();
    if let Some(mut column) = group.next_column()? {
        let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
        let texts: Vec<ByteArray> =
            texts.into_iter().flatten().map(|text| ByteArray::from(text.into_bytes())).collect();
        column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?;
        column.close()?;
    }
    // Stores unsigned numbers as signed ones with the same bits.
    let statuses: Vec<i32> = records.iter().map(|record| record.status.0.cast_signed()).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<Int32Type>().write_batch(&statuses, None, None)?;
        column.close()?;
    }
    longs(&mut group, records.iter().map(|record| record.number as i64).collect())?;
    group.close()?;
    writer.into_inner()
}

fn longs(group: &mut SerializedRowGroupWriter<'_, File>, values: Vec<i64>) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<Int64Type>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}

/// The number of a record; 0 or 1 for a Boolean.
fn number(record: &Record) -> Option<f64> {
    let is_number = |kind: BuiltInType| (BuiltInType::SByte..=BuiltInType::Double).contains(&kind);
    match &record.value {
        Variant::Boolean(flag) => Some(f64::from(u8::from(*flag))),
        other if other.as_array().is_none() && other.built_in_type().is_some_and(is_number) => other.as_f64(),
        _ => None,
    }
}

/// Values that are not numbers, and integers that a double cannot represent.
fn text(record: &Record) -> Option<String> {
    match (&record.value, number(record)) {
        (Variant::Empty, _) => None,
        (Variant::Int64(whole), Some(number)) if number as i128 != i128::from(*whole) => {
            Some(whole.to_string())
        }
        (Variant::UInt64(whole), Some(number)) if number as i128 != i128::from(*whole) => {
            Some(whole.to_string())
        }
        (_, Some(_)) => None,
        (Variant::String(text), None) => Some(text.as_str().to_owned()),
        (Variant::DateTime(time), None) => Some(time.to_string()),
        (other, None) => Some(to_json(other).to_string()),
    }
}

impl Sink for ParquetFiles {
    fn describe(&self) -> String {
        format!("Parquet files in {}", self.place.folder.display())
    }

    fn batch_max(&self) -> Option<usize> {
        Some(self.rows_max)
    }

    fn is_worth_it(&self, queued: u64, waited: Duration) -> bool {
        queued >= self.rows_max as u64 || waited >= self.age_max
    }

    fn send<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Result<Taken, Fault>> {
        let (place, batch) = (Arc::clone(&self.place), batch.clone());
        Box::pin(async move {
            let target = place.folder.display().to_string();
            let written = tokio::task::spawn_blocking(move || place.write(&batch)).await;
            match written {
                Ok(Ok(())) => Ok(Taken::default()),
                Ok(Err(error)) => Err(Fault::other(target, crate::fault::plain(&error))),
                Err(_) => Err(Fault::other(target, "writing panicked; please report this")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use taktwerk_types::StatusCode;

    #[test]
    fn a_batch_is_one_file_and_rewriting_it_replaces_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { folder: folder.path().join("deep"), sync: true, writing: Mutex::default() };
        let time = UtcTime::parse("2026-01-02T03:04:05.678901Z").unwrap();
        let values: [Variant; 6] =
            [1.5.into(), "x\"y".into(), true.into(), u64::MAX.into(), vec![1, 2].into(), Variant::Empty];
        let record = |(number, value): (usize, &Variant)| Record {
            number: number as u64 + 7,
            tag: "Line 1/T".into(),
            value: value.clone(),
            status: if value.is_empty() { StatusCode::BAD_NO_COMMUNICATION } else { StatusCode::GOOD },
            time,
            received: time,
        };
        let records: Vec<Record> = values.iter().enumerate().map(record).collect();
        let mut batch = Batch {
            queue: "0a".to_owned(),
            records: records[..2].to_vec(),
            is_last: true,
            next: 100,
            is_parked: false,
        };
        place.write(&batch).unwrap();
        batch.records = records;
        place.write(&batch).unwrap();
        let files: Vec<PathBuf> =
            std::fs::read_dir(&place.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files, [place.folder.join("2026-01-02T03-04-05-0a-7.parquet")]);
        let reader = SerializedFileReader::new(File::open(&files[0]).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(
            metadata
                .iter()
                .any(|entry| entry.key == "taktwerk.queue" && entry.value.as_deref() == Some("0a"))
        );
        let rows: Vec<String> = reader
            .into_iter()
            .map(|row| {
                let columns = row.unwrap().into_columns();
                columns.iter().map(|(_, field)| field.to_string()).collect::<Vec<_>>().join("|")
            })
            .collect();
        let at = "2026-01-02 03:04:05.678901 +00:00";
        let row = |rest: &str| format!("{at}|{at}|\"Line 1/T\"|{rest}");
        assert_eq!(
            rows,
            [
                row("1.5|null|0|7"),
                row("null|\"x\"y\"|0|8"),
                row("1.0|null|0|9"),
                row("1.8446744073709552E19|\"18446744073709551615\"|0|10"),
                row("null|\"[1,2]\"|0|11"),
                row(&format!("null|null|{}|12", StatusCode::BAD_NO_COMMUNICATION.0)),
            ]
        );
    }
}
