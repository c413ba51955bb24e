//! The lines that are appended to a file, through rotation and truncation.

use crate::lines::Lines;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Bytes read in one step.
const STEP_MAX: usize = 256 << 10;

/// Where to begin in a file that is there at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first line.
    Begin,
    /// With the next line.
    End,
}

/// What is new in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The lines.
    pub lines: Vec<String>,
    /// How many lines were too long.
    pub dropped: u64,
    /// Whether there may be more.
    pub has_more: bool,
}

/// A place in a file that grows. The file is held open, so that the end of a file that was renamed is not lost.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    lines: Lines,
    /// Where to begin in the next file that is opened: those that come later are read whole.
    start: Start,
    file: Option<File>,
    offset: u64,
    /// Whether no file had the name last time.
    is_missing: bool,
}

impl Tail {
    /// Follows a file with lines of at most `line_max` bytes.
    #[must_use]
    pub fn new(path: PathBuf, start: Start, line_max: usize) -> Self {
        Self { path, lines: Lines::new(line_max), start, file: None, offset: 0, is_missing: false }
    }

    /// Reads what is new. It blocks while the drive does.
    ///
    /// # Errors
    /// There is no file, or it cannot be read. The place is kept.
    pub fn step(&mut self) -> io::Result<Step> {
        let mut step = Step::default();
        if self.file.is_none() {
            self.open()?;
        }
        let Some(file) = &mut self.file else { return Ok(step) };
        if file.metadata()?.len() < self.offset {
            // Truncated: what comes now begins at the start.
            self.offset = 0;
            self.lines.reset(false);
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut piece = Vec::new();
        file.by_ref().take(STEP_MAX as u64).read_to_end(&mut piece)?;
        self.offset += piece.len() as u64;
        step.dropped = self.lines.push(&piece, &mut step.lines);
        step.has_more = piece.len() == STEP_MAX;
        if piece.is_empty() {
            let held = file.metadata()?;
            match std::fs::metadata(&self.path) {
                Ok(now) if (now.dev(), now.ino()) == (held.dev(), held.ino()) => {}
                Ok(_) => {
                    // Another file has its name: this one has ended.
                    step.dropped += self.lines.finish(&mut step.lines);
                    self.file = None;
                    step.has_more = true;
                }
                // Renamed, and the next one is not there yet: no fault, unless it lasts. What is still written to this one
                // is read.
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
            // Whatever comes is new.
            self.start = Start::Begin;
        }
        // Opening a pipe waits for its other end.
        if !found?.is_file() {
            return Err(io::Error::other("is no regular file"));
        }
        let mut file = File::open(&self.path)?;
        self.lines.reset(false);
        self.offset = 0;
        if core::mem::replace(&mut self.start, Start::Begin) == Start::End {
            let len = file.metadata()?.len();
            if let Some(last) = len.checked_sub(1) {
                let mut byte = [0];
                file.seek(SeekFrom::Start(last))?;
                file.read_exact(&mut byte)?;
                self.offset = len;
                self.lines.reset(byte != *b"\n");
            }
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

    fn lines(tail: &mut Tail) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            let step = tail.step().unwrap();
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
        // Renamed, and written to once more before the next one is there.
        let gone = folder.path().join("a.log.1");
        fs::rename(&path, &gone).unwrap();
        append(&gone, "last\nno end");
        assert_eq!(tail.step().unwrap().lines, ["last"]);
        assert_eq!(tail.step().unwrap(), Step::default(), "it may be there soon");
        assert_eq!(tail.step().unwrap_err().kind(), ErrorKind::NotFound);
        append(&path, "first\n");
        assert_eq!(lines(&mut tail), ["no end", "first"]);
        fs::write(&path, "x\n").unwrap();
        assert_eq!(lines(&mut tail), ["x"], "truncated");
    }

    #[test]
    fn a_file_that_comes_later_is_read_whole_and_long_lines_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut tail = Tail::new(path.clone(), Start::End, 5);
        assert_eq!(tail.step().unwrap_err().kind(), ErrorKind::NotFound);
        append(&path, "a\n123456\nb\n");
        let step = tail.step().unwrap();
        assert_eq!((step.lines, step.dropped), (vec!["a".to_owned(), "b".to_owned()], 1));
        let mut tail = Tail::new(folder.path().to_owned(), Start::Begin, 5);
        assert!(tail.step().unwrap_err().to_string().contains("no regular file"));
    }

    #[test]
    fn a_large_file_is_read_in_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "123456789\n".repeat(60_000)).unwrap();
        let mut tail = Tail::new(path, Start::Begin, 100);
        let step = tail.step().unwrap();
        assert!(step.has_more && step.lines.len() < 30_000, "{}", step.lines.len());
        assert_eq!(step.lines.len() + lines(&mut tail).len(), 60_000);
    }
}
