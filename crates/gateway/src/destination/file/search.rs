//! Finds the last line of a queue in a folder whose files have lines of several queues.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read at once.
const BLOCK: u64 = 1 << 20;
/// Bytes of the newest files that are searched, after a start and a failed write that cannot be undone.
const SEARCHED_MAX: u64 = 1 << 30;

/// The number of the last record of a queue. Looks into the most recently written files first.
pub(super) fn last_number(folder: &Path, extension: &str, queue: &str) -> io::Result<Option<u64>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|found| found == extension) {
            let metadata = entry.metadata()?;
            files.push((metadata.modified()?, entry.path(), metadata.len()));
        }
    }
    files.sort();
    let mut left = SEARCHED_MAX;
    for (_, path, len) in files.into_iter().rev() {
        if let Some(number) = in_file(&mut File::open(path)?, len, queue, &mut left)? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The number of the last record of a queue in a file. Reads from the end, at most `left` bytes.
fn in_file(file: &mut File, len: u64, queue: &str, left: &mut u64) -> io::Result<Option<u64>> {
    let (mut end, mut rest) = (len, Vec::new());
    while end > 0 && *left > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        file.take(end - start).read_to_end(&mut block)?;
        block.append(&mut rest);
        // The first line may have begun before.
        let whole = match block.iter().position(|byte| *byte == b'\n') {
            _ if start == 0 => 0,
            Some(at) => at + 1,
            None => block.len(),
        };
        let (first, lines) = block.split_at(whole);
        if let Some(number) = number_in(&String::from_utf8_lossy(lines), queue) {
            return Ok(Some(number));
        }
        rest.extend_from_slice(first);
        *left = left.saturating_sub(end - start);
        end = start;
    }
    Ok(None)
}

/// The number of the last record of a queue in lines.
fn number_in(lines: &str, queue: &str) -> Option<u64> {
    let mark = format!("{queue}-");
    // CSV values may contain line breaks and any text, so only a key at the start of a line counts.
    let number = |line: &str| -> Option<u64> {
        let key = match line.strip_prefix('{') {
            // Most lines are of other queues.
            Some(_) if !line.contains(&mark) => return None,
            Some(_) => {
                let json: serde_json::Value = serde_json::from_str(line).ok()?;
                json.get("key")?.as_str()?.to_owned()
            }
            None => line.split(',').next()?.to_owned(),
        };
        key.strip_prefix(&mark)?.parse().ok()
    };
    lines.lines().rev().find_map(number)
}
