//! Rows of a recording, as texts: from CSV, and from Parquet.

use crate::fault::{Fault, plain};
use std::fs::File;
use std::path::Path;

/// A recording that is being read.
pub(super) enum Rows {
    Csv(Box<csv::Reader<File>>, csv::StringRecord),
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet::Rows>),
}

/// Whether a file is to be read as Parquet.
pub(super) fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"))
}

impl Rows {
    /// Opens a file; gives the names of its columns, too.
    pub(super) fn open(path: &Path, delimiter: u8) -> Result<(Self, Vec<String>), Fault> {
        let target = || path.display().to_string();
        let file =
            File::open(path).map_err(|error| Fault::Connect { target: target(), reason: plain(&error) })?;
        if is_parquet(path) {
            #[cfg(feature = "parquet")]
            {
                let (rows, names) =
                    super::parquet::Rows::open(file).map_err(|error| Fault::other(target(), error))?;
                return Ok((Self::Parquet(Box::new(rows)), names));
            }
            #[cfg(not(feature = "parquet"))]
            return Err(Fault::other(target(), "this program is built without the feature `parquet`"));
        }
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(file);
        let names = reader.headers().map_err(|error| Fault::other(target(), error))?;
        let names = names.iter().map(str::to_owned).collect();
        Ok((Self::Csv(Box::new(reader), csv::StringRecord::new()), names))
    }

    /// Reads the next row into the cells; false at the end.
    pub(super) fn next(&mut self, cells: &mut Vec<String>) -> Result<bool, String> {
        match self {
            Self::Csv(reader, row) => {
                if !reader.read_record(row).map_err(|error| error.to_string())? {
                    return Ok(false);
                }
                cells.resize(row.len(), String::new());
                for (cell, text) in cells.iter_mut().zip(&*row) {
                    cell.clear();
                    cell.push_str(text);
                }
                Ok(true)
            }
            #[cfg(feature = "parquet")]
            Self::Parquet(rows) => rows.next(cells),
        }
    }
}
