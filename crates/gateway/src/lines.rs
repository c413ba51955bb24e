//! Splits a byte stream into lines.

/// Splits bytes into lines. It buffers at most one line, and drops lines that are too long.
#[derive(Debug, Clone)]
pub struct Lines {
    begun: Vec<u8>,
    most: usize,
    /// Whether the current line is discarded up to its end.
    is_skipping: bool,
}

impl Lines {
    /// `most` is the maximum length of a line in bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { begun: Vec::new(), most, is_skipping: false }
    }

    /// Processes a piece. Complete lines without line ends (`\n` or `\r\n`) are appended to `found`. Returns how many lines were
    /// dropped because they were too long.
    pub fn push(&mut self, piece: &[u8], found: &mut Vec<String>) -> u64 {
        let mut dropped = 0;
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            if !self.is_skipping {
                // One byte more than a line may have: it can be the \r of the line end.
                if self.begun.len() + text.len() > self.most + 1 {
                    self.drop_line();
                    dropped += 1;
                } else {
                    self.begun.extend_from_slice(text);
                }
            }
            if is_whole && !core::mem::take(&mut self.is_skipping) {
                dropped += self.end(found);
            }
        }
        dropped
    }

    /// Appends the last line if it has no line end. Returns how many lines were dropped.
    pub fn finish(&mut self, found: &mut Vec<String>) -> u64 {
        let is_skipping = core::mem::take(&mut self.is_skipping);
        if is_skipping || self.begun.is_empty() { 0 } else { self.end(found) }
    }

    /// Discards the current line. With `is_within`, the next bytes are the rest of a line and are discarded too.
    pub fn reset(&mut self, is_within: bool) {
        self.begun.clear();
        self.is_skipping = is_within;
    }

    /// Continues the current line of `other`, with the limits of `self`.
    pub fn go_on_from(&mut self, other: &Self) {
        self.is_skipping = other.is_skipping || other.begun.len() > self.most + 1;
        self.begun.clear();
        if !self.is_skipping {
            self.begun.extend_from_slice(&other.begun);
        }
    }

    fn end(&mut self, found: &mut Vec<String>) -> u64 {
        let line = self.begun.strip_suffix(b"\r").unwrap_or(&self.begun);
        let fits = line.len() <= self.most;
        if fits {
            found.push(String::from_utf8_lossy(line).into_owned());
        }
        self.begun.clear();
        u64::from(!fits)
    }

    fn drop_line(&mut self) {
        self.begun = Vec::new();
        self.is_skipping = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_the_pieces() {
        let text = b"one\r\ntwo\n\n12345\r\n123456\r\n1234567\nlast";
        for size in 1..text.len() {
            let (mut lines, mut found, mut dropped) = (Lines::new(5), Vec::new(), 0);
            for piece in text.chunks(size) {
                dropped += lines.push(piece, &mut found);
            }
            assert_eq!(found, ["one", "two", "", "12345"], "pieces of {size}");
            assert_eq!(dropped, 2, "pieces of {size}");
            assert_eq!(lines.finish(&mut found), 0);
            assert_eq!(found.last().map(String::as_str), Some("last"));
        }
    }

    #[test]
    fn an_endless_line_is_bounded_by_the_limit() {
        let (mut lines, mut found) = (Lines::new(10), Vec::new());
        let dropped: u64 = (0..1000).map(|_| lines.push(&[b'x'; 100], &mut found)).sum();
        assert_eq!((dropped, lines.begun.capacity()), (1, 0));
        lines.push(b"\nnext\n", &mut found);
        assert_eq!(found, ["next"]);
        lines.reset(true);
        lines.push(b"rest\nwhole\n", &mut found);
        assert_eq!(found, ["next", "whole"]);
    }
}
