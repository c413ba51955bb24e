//! Finds the last line of a queue in a folder whose files have lines of several queues.

use super::{Batch, Format, leads_nowhere, named};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read at once.
pub(super) const BLOCK: u64 = 1 << 20;
/// Bytes of the newest files that are searched, after a start and a failed write that cannot be undone.
const SEARCHED_MAX: u64 = 1 << 30;

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
    let (mut end, mut rest) = (len, Vec::new());
    while end > 0 && *left > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = read_block(file, start, end)?;
        block.append(&mut rest);
        // The first line may have begun before.
        let whole = match block.iter().position(|byte| *byte == b'\n') {
            _ if start == 0 => 0,
            Some(at) => at + 1,
            None => block.len(),
        };
        let (first, lines) = block.split_at(whole);
        if let Some(number) = wanted.last_in(&String::from_utf8_lossy(lines)) {
            return Ok(Some(number));
        }
        rest.extend_from_slice(first);
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
