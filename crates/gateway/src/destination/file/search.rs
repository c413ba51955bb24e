//! Finds the last line of a queue in a folder whose files have lines of several queues.

use super::{Batch, Format, leads_nowhere, named};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read at once.
pub(super) const BLOCK: u64 = 1 << 20;
/// Bytes of the newest files that are searched, after a start and a failed write that cannot be undone.
const SEARCHED_MAX: u64 = 1 << 30;
/// Longest line that is looked at. No record is longer.
const LINE_LEN_MAX: usize = 64 << 20;

/// The number of the last record of the batch's queue. Looks into the most recently written files first.
pub(super) fn last_number(folder: &Path, format: Format, batch: &Batch) -> io::Result<Option<u64>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|found| found != format.extension()) {
            continue;
        }
        let failed = |error: io::Error| named("read", &path, &error);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => {
                let written = found.modified().map_err(failed)?;
                files.push((written, path, found.len()));
            }
            // Folders, pipes and devices: opening a pipe could block.
            Ok(_) => {}
            // A link that leads nowhere, or a file that was removed meanwhile.
            Err(error) if leads_nowhere(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    files.sort();
    let wanted = Wanted { format, mark: format!("{}-", batch.queue), next: batch.next };
    let mut left = SEARCHED_MAX;
    for (_, path, len) in files.into_iter().rev() {
        let found = match taktwerk_files::open_regular(&path) {
            Ok(mut file) => in_file(&mut file, len, &wanted, &mut left),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(number) = found.map_err(|error| named("read", &path, &error))? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Bytes of a file. Fewer if the file has become shorter.
pub(super) fn read_block(file: &mut File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut block = Vec::new();
    // Not what others append meanwhile.
    file.take(end.saturating_sub(start)).read_to_end(&mut block)?;
    Ok(block)
}

/// The number of the last record of a queue in a file. Reads from the end, at most `left` bytes.
fn in_file(file: &mut File, len: u64, wanted: &Wanted, left: &mut u64) -> io::Result<Option<u64>> {
    // The rest of a line that may have begun before, the last part first.
    let (mut end, mut rest, mut rest_len) = (len, Vec::new(), 0);
    while end > 0 && *left > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = read_block(file, start, end)?;
        let whole = match block.iter().position(|byte| *byte == b'\n') {
            _ if start == 0 => Some(0),
            found => found.map(|at| at + 1),
        };
        if let Some(at) = whole {
            let mut lines = block.split_off(at);
            rest.drain(..).rev().for_each(|part: Vec<u8>| lines.extend(part));
            rest_len = 0;
            if let Some(number) = wanted.last_in(&String::from_utf8_lossy(&lines)) {
                return Ok(Some(number));
            }
        }
        rest_len += block.len();
        rest.push(block);
        if rest_len > LINE_LEN_MAX {
            (rest, rest_len) = (Vec::new(), 0);
        }
        *left = left.saturating_sub(end - start);
        end = start;
    }
    Ok(None)
}

/// The lines of a queue.
struct Wanted {
    format: Format,
    /// The beginning of its keys.
    mark: String,
    /// Its records have smaller numbers.
    next: u64,
}

impl Wanted {
    /// The number of the last record in lines.
    fn last_in(&self, lines: &str) -> Option<u64> {
        lines.split_inclusive('\n').rev().find_map(|line| self.number(line))
    }

    fn number(&self, line: &str) -> Option<u64> {
        // A line without its end is removed before the next write.
        let line = line.strip_suffix('\n')?;
        let key = match self.format {
            // Most lines are of other queues.
            Format::JsonLines if !line.contains(&self.mark) => return None,
            Format::JsonLines => {
                let json: serde_json::Value = serde_json::from_str(line).ok()?;
                json.get("key")?.as_str()?.to_owned()
            }
            Format::Csv => line.split(',').next()?.to_owned(),
        };
        let number: u64 = key.strip_prefix(&self.mark)?.parse().ok()?;
        // Earlier programs wrote texts with line breaks, so a line of such a text may look like a record. It must not hide
        // records to come.
        (number < self.next).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::{Duration, Instant};

    /// As of a crash of the file system, or written by another program.
    #[test]
    fn a_file_without_line_breaks_is_read_once() {
        let mut file = tempfile::tempfile().unwrap();
        let lines = |numbers: core::ops::Range<u64>| -> String {
            numbers.map(|number| format!("00ff-{number},a\n")).collect()
        };
        file.write_all(lines(1..4).as_bytes()).unwrap();
        let hole = 256 << 20;
        file.set_len(hole).unwrap();
        let wanted = Wanted { format: Format::Csv, mark: "00ff-".to_owned(), next: 100 };
        let begun = Instant::now();
        let mut left = SEARCHED_MAX;
        assert_eq!(in_file(&mut file, hole, &wanted, &mut left).unwrap(), Some(3));
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert_eq!(left, SEARCHED_MAX - hole + BLOCK);
        // A line over several blocks, and records behind it.
        let long = 3 * BLOCK + 10;
        file.seek(SeekFrom::Start(0)).unwrap();
        file.set_len(0).unwrap();
        let text = format!("{}00ff-4,{}\n{}", lines(1..4), "x".repeat(long as usize), lines(5..6));
        file.write_all(text.as_bytes()).unwrap();
        let before = |next| Wanted { format: Format::Csv, mark: "00ff-".to_owned(), next };
        for (next, found) in [(6, 5), (5, 4), (4, 3)] {
            let mut left = SEARCHED_MAX;
            let number = in_file(&mut file, text.len() as u64, &before(next), &mut left).unwrap();
            assert_eq!(number, Some(found));
        }
    }
}
