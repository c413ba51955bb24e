//! Reads the rows of a recording as text, from CSV and Parquet.

use crate::fault::{Fault, plain};
use std::io::{self, Read};
use std::path::Path;

/// An open recording.
pub struct Rows(Kind);

impl core::fmt::Debug for Rows {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

enum Kind {
    Csv(Box<csv::Reader<Limited<Box<dyn Read + Send>>>>, csv::StringRecord),
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet::Rows>),
}

/// Longest row in bytes. A file that is not a table may be a single row.
const ROW_LEN_MAX: usize = 1 << 20;

/// Limits the bytes that can be read before the limit is reset.
struct Limited<R> {
    from: R,
    left: usize,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let problem = format!(
                "a row is longer than {ROW_LEN_MAX} bytes: is this a table with one line for each row?"
            );
            return Err(io::Error::other(problem));
        }
        let room = into.len().min(self.left);
        let read = self.from.read(into.get_mut(..room).unwrap_or_default())?;
        self.left -= read;
        Ok(read)
    }
}

/// Whether a file should be read as Parquet.
pub(super) fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"))
}

impl Rows {
    /// Opens a file; also returns its column names.
    pub(super) fn open(path: &Path, delimiter: u8) -> Result<(Self, Vec<String>), Fault> {
        let target = || path.display().to_string();
        let file = taktwerk_config::file::open_regular(path)
            .map_err(|error| Fault::Connect { target: target(), reason: plain(&error) })?;
        if is_parquet(path) {
            #[cfg(feature = "parquet")]
            {
                let (rows, names) =
                    super::parquet::Rows::open(file).map_err(|error| Fault::other(target(), error))?;
                return Ok((Self(Kind::Parquet(Box::new(rows))), names));
            }
            #[cfg(not(feature = "parquet"))]
            return Err(Fault::other(target(), "this program is built without the feature `parquet`"));
        }
        Self::csv(file, delimiter).map_err(|error| Fault::other(target(), error))
    }

    /// Reads a CSV file; also returns its column names.
    ///
    /// # Errors
    /// The first line is too long.
    pub fn csv(from: impl Read + Send + 'static, delimiter: u8) -> Result<(Self, Vec<String>), String> {
        let from: Box<dyn Read + Send> = Box::new(from);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(Limited { from, left: ROW_LEN_MAX });
        let names = reader.headers().map_err(|error| error.to_string())?;
        let names = names.iter().map(str::to_owned).collect();
        Ok((Self(Kind::Csv(Box::new(reader), csv::StringRecord::new())), names))
    }

    /// Reads the next row into the cells; false at the end.
    ///
    /// # Errors
    /// The row is too long, or the file cannot be read.
    pub fn next(&mut self, cells: &mut Vec<String>) -> Result<bool, String> {
        match &mut self.0 {
            Kind::Csv(reader, row) => {
                reader.get_mut().left = ROW_LEN_MAX;
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
            Kind::Parquet(rows) => rows.next(cells),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn read(path: &Path) -> Result<Vec<Vec<String>>, String> {
        let (mut rows, _) = Rows::open(path, b',').map_err(|fault| fault.to_string())?;
        let (mut all, mut cells) = (Vec::new(), Vec::new());
        while rows.next(&mut cells)? {
            all.push(cells.clone());
        }
        Ok(all)
    }

    #[test]
    fn rows_are_limited_but_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.csv");
        let mut file = File::create(&path).unwrap();
        writeln!(file, "time,text").unwrap();
        let long = "x".repeat(ROW_LEN_MAX / 2);
        for row in 0..6 {
            writeln!(file, "{row},{long}").unwrap();
        }
        assert_eq!(read(&path).unwrap().len(), 6);
        // Data read ahead do not count twice.
        writeln!(file, "6,{long}{long}{long}").unwrap();
        assert!(read(&path).unwrap_err().contains("longer than 1048576 bytes"));
        // A header without end.
        std::fs::write(&path, "x".repeat(2 * ROW_LEN_MAX)).unwrap();
        assert!(read(&path).unwrap_err().contains("longer than 1048576 bytes"));
        assert!(read(Path::new("/dev/zero")).unwrap_err().contains("this is a device"));
    }
}
