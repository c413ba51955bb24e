//! Follows the lines appended to a file, through rotation and truncation.

use super::open::open_regular;
use crate::lines::Lines;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes read in one step.
const STEP_MAX: usize = 256 << 10;
/// Bytes before the position that are compared each time, to detect a file that was truncated and refilled.
const RECENT_MAX: usize = 64;

/// Where to begin in a file that exists at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the first line.
    Begin,
    /// At the next new line.
    End,
}

/// New content of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The lines.
    pub lines: Vec<String>,
    /// How many lines were too long and dropped.
    pub dropped: u64,
    /// Whether there may be more.
    pub has_more: bool,
}

/// A position in a growing file. The file is kept open, so that the end of a renamed file is not lost.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    lines: Lines,
    /// Where to begin in the next file. Files created later are read from the beginning.
    start: Start,
    file: Option<File>,
    offset: u64,
    /// The bytes before the position when they were read.
    recent: Vec<u8>,
    /// Content that was read but not yet delivered.
    step: Option<Arc<Step>>,
    /// Whether the file did not exist at the last check.
    is_missing: bool,
}

impl Tail {
    /// Follows a file with lines of at most `line_max` bytes.
    #[must_use]
    pub fn new(path: PathBuf, start: Start, line_max: usize) -> Self {
        Self {
            path,
            lines: Lines::new(line_max),
            start,
            file: None,
            offset: 0,
            recent: Vec::new(),
            step: None,
            is_missing: false,
        }
    }

    /// Continues at the position of `other`, if it follows the same path.
    pub fn go_on_from(&mut self, other: &mut Self) {
        if other.path == self.path && (other.file.is_some() || other.step.is_some()) {
            self.lines.go_on_from(&other.lines);
            self.start = Start::Begin;
            self.file = other.file.take();
            self.offset = other.offset;
            self.recent = core::mem::take(&mut other.recent);
            self.step = other.step.take();
        }
    }

    /// Reads new content. The same content is returned until [`Self::done`], so that nothing is lost if the caller stopped
    /// waiting. Blocks on the drive.
    ///
    /// # Errors
    /// The file does not exist, or cannot be read. The position is kept.
    pub fn step(&mut self) -> io::Result<Arc<Step>> {
        let step = match self.step.take() {
            Some(step) => step,
            None => Arc::new(self.read()?),
        };
        Ok(Arc::clone(self.step.insert(step)))
    }

    /// Marks the content as delivered.
    pub fn done(&mut self) {
        self.step = None;
    }

    fn read(&mut self) -> io::Result<Step> {
        let mut step = Step::default();
        if self.file.is_none() {
            self.open()?;
        }
        let Some(file) = &mut self.file else { return Ok(step) };
        if file.metadata()?.len() < self.offset {
            // Truncated: continue at the start.
            self.offset = 0;
            self.recent.clear();
            self.lines.reset(false);
        }
        let overlap = self.recent.len();
        file.seek(SeekFrom::Start(self.offset - overlap as u64))?;
        let mut piece = Vec::new();
        file.by_ref().take((overlap + STEP_MAX) as u64).read_to_end(&mut piece)?;
        if !piece.starts_with(&self.recent) {
            // Truncated and refilled beyond the position: another file with the same name.
            self.offset = 0;
            self.recent.clear();
            self.lines.reset(false);
            step.has_more = true;
            return Ok(step);
        }
        self.recent = piece.get(piece.len().saturating_sub(RECENT_MAX)..).unwrap_or_default().to_vec();
        let piece = piece.get(overlap..).unwrap_or_default();
        self.offset += piece.len() as u64;
        step.dropped = self.lines.push(piece, &mut step.lines);
        step.has_more = piece.len() == STEP_MAX;
        if piece.is_empty() {
            let held = file.metadata()?;
            match std::fs::metadata(&self.path) {
                Ok(now) if (now.dev(), now.ino()) == (held.dev(), held.ino()) => {}
                Ok(_) => {
                    // Another file has its name, so this one is complete.
                    step.dropped += self.lines.finish(&mut step.lines);
                    self.file = None;
                    step.has_more = true;
                }
                // Renamed, and the next file does not exist yet. This is no fault unless it lasts. Further writes to the renamed
                // file are read.
                Err(error) if error.kind() == ErrorKind::NotFound && !self.is_missing => {
                    self.is_missing = true;
                    return Ok(step);
                }
                Err(error) => return Err(error),
            }
        }
        self.is_missing = false;
        Ok(step)
    }

    fn open(&mut self) -> io::Result<()> {
        let found = std::fs::metadata(&self.path);
        if let Err(error) = &found
            && error.kind() == ErrorKind::NotFound
        {
            // Files created later are read from the beginning.
            self.start = Start::Begin;
        }
        found?;
        let mut file = open_regular(&self.path)?;
        self.lines.reset(false);
        self.offset = 0;
        self.recent.clear();
        if core::mem::replace(&mut self.start, Start::Begin) == Start::End {
            let len = file.metadata()?.len();
            let overlap = len.min(RECENT_MAX as u64);
            file.seek(SeekFrom::Start(len - overlap))?;
            let mut recent = Vec::new();
            file.by_ref().take(overlap).read_to_end(&mut recent)?;
            self.offset = len - overlap + recent.len() as u64;
            self.lines.reset(recent.last().is_some_and(|byte| *byte != b'\n'));
            self.recent = recent;
        }
        self.file = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::path::Path;

    fn append(path: &Path, text: &str) {
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn next(tail: &mut Tail) -> io::Result<Step> {
        let step = tail.step().map(|step| Step { lines: step.lines.clone(), ..*step });
        tail.done();
        step
    }

    fn lines(tail: &mut Tail) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            let step = next(tail).unwrap();
            found.extend(step.lines);
            if !step.has_more {
                return found;
            }
        }
    }

    #[test]
    fn lines_are_followed_through_rotation_and_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        append(&path, "old\nbeg");
        let mut tail = Tail::new(path.clone(), Start::End, 100);
        assert_eq!(lines(&mut tail), [""; 0]);
        append(&path, "un\nnew\npart");
        assert_eq!(lines(&mut tail), ["new"], "the rest of a line that had begun is none");
        append(&path, "ly\n");
        assert_eq!(lines(&mut tail), ["partly"]);
        // Renamed, and written to once more before the next file exists.
        let gone = folder.path().join("a.log.1");
        fs::rename(&path, &gone).unwrap();
        append(&gone, "last\nno end");
        assert_eq!(next(&mut tail).unwrap().lines, ["last"]);
        assert_eq!(next(&mut tail).unwrap(), Step::default(), "it may be there soon");
        assert_eq!(next(&mut tail).unwrap_err().kind(), ErrorKind::NotFound);
        append(&path, "first\n");
        assert_eq!(lines(&mut tail), ["no end", "first"]);
        fs::write(&path, "x\n").unwrap();
        assert_eq!(lines(&mut tail), ["x"], "truncated");
    }

    #[test]
    fn a_file_created_later_is_read_from_its_start_and_long_lines_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut tail = Tail::new(path.clone(), Start::End, 5);
        assert_eq!(next(&mut tail).unwrap_err().kind(), ErrorKind::NotFound);
        append(&path, "a\n123456\nb\n");
        let step = next(&mut tail).unwrap();
        assert_eq!((step.lines, step.dropped), (vec!["a".to_owned(), "b".to_owned()], 1));
        let mut tail = Tail::new(folder.path().to_owned(), Start::Begin, 5);
        assert!(next(&mut tail).unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn a_file_truncated_and_refilled_between_checks_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        append(&path, "12:00 a\n12:01 b\n");
        let mut tail = Tail::new(path.clone(), Start::End, 100);
        assert_eq!(lines(&mut tail), [""; 0]);
        fs::write(&path, "12:02 c\n12:03 d\n").unwrap();
        assert_eq!(lines(&mut tail), ["12:02 c", "12:03 d"], "as long as before");
        fs::write(&path, "12:04 e\n12:05 f\n12:06 g\n12:07 h").unwrap();
        assert_eq!(lines(&mut tail), ["12:04 e", "12:05 f", "12:06 g"], "longer than before");
        append(&path, "\n");
        assert_eq!(lines(&mut tail), ["12:07 h"]);
    }

    #[test]
    fn undelivered_lines_are_returned_again_and_handed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        append(&path, "old\n");
        let mut tail = Tail::new(path.clone(), Start::End, 100);
        assert_eq!(lines(&mut tail), [""; 0]);
        append(&path, "one\ntw");
        assert_eq!(tail.step().unwrap().lines, ["one"]);
        assert_eq!(tail.step().unwrap().lines, ["one"], "it was not delivered");
        append(&path, "o\nthree\n");
        let mut other = Tail::new(folder.path().join("b.log"), Start::End, 100);
        other.go_on_from(&mut tail);
        let mut heir = Tail::new(path, Start::End, 200);
        heir.go_on_from(&mut tail);
        assert_eq!(lines(&mut heir), ["one"]);
        assert_eq!(lines(&mut heir), ["two", "three"]);
    }

    #[test]
    fn a_large_file_is_read_in_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "123456789\n".repeat(60_000)).unwrap();
        let mut tail = Tail::new(path, Start::Begin, 100);
        let step = next(&mut tail).unwrap();
        assert!(step.has_more && step.lines.len() < 30_000, "{}", step.lines.len());
        assert_eq!(step.lines.len() + lines(&mut tail).len(), 60_000);
    }
}
