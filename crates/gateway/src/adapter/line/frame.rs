//! Splits a byte stream into frames.

use crate::lines::Lines;

/// Default first byte of a frame.
pub const STX: u8 = 0x02;
/// Default last byte of a frame.
pub const ETX: u8 = 0x03;

/// Splits bytes into frames. It buffers at most one frame.
#[derive(Debug, Clone)]
pub enum Framer {
    /// Lines ending with LF or CR LF.
    Lines(Lines),
    /// The bytes between two markers; bytes outside are dropped.
    Between {
        /// The marker before a frame.
        start: u8,
        /// The marker after a frame.
        end: u8,
        /// The incomplete frame.
        begun: Option<Vec<u8>>,
        /// Longest frame in bytes.
        most: usize,
    },
    /// Frames of fixed length.
    Fixed {
        /// The incomplete frame.
        begun: Vec<u8>,
        /// The length of a frame in bytes, at least 1.
        size: usize,
    },
    /// Frames with a length prefix.
    Length {
        /// The size of the length prefix, 1 to 4 bytes.
        size: usize,
        /// Whether the length is little endian.
        is_little_endian: bool,
        /// The length and the incomplete frame.
        begun: Vec<u8>,
        /// Longest frame in bytes.
        most: usize,
        /// Remaining bytes of a frame that is too long.
        skip: usize,
    },
}

impl Framer {
    /// Whether an incomplete frame has no mark by which its end could be found, so that only a pause can end it.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        match self {
            Self::Lines(_) | Self::Between { .. } => false,
            Self::Fixed { begun, .. } => !begun.is_empty(),
            Self::Length { begun, skip, .. } => !begun.is_empty() || *skip > 0,
        }
    }

    /// A frame begins after a pause: discards such an incomplete one.
    pub fn resume(&mut self) {
        match self {
            Self::Lines(_) | Self::Between { .. } => {}
            Self::Fixed { begun, .. } => begun.clear(),
            Self::Length { begun, skip, .. } => {
                begun.clear();
                *skip = 0;
            }
        }
    }

    /// Processes a piece. Complete frames are appended to `found`. Returns how many frames were dropped because they were too
    /// long.
    pub fn push(&mut self, piece: &[u8], found: &mut Vec<String>) -> u64 {
        let text = |frame: &[u8]| String::from_utf8_lossy(frame).into_owned();
        let mut dropped = 0;
        match self {
            Self::Lines(lines) => dropped = lines.push(piece, found),
            Self::Between { start, end, begun, most } => {
                for byte in piece {
                    match (*byte, begun.as_mut()) {
                        // A frame without its end marker is discarded.
                        (byte, None) if byte == *start => *begun = Some(Vec::new()),
                        (byte, Some(_)) if byte == *start && start != end => *begun = Some(Vec::new()),
                        (byte, Some(frame)) if byte == *end => {
                            found.push(text(frame));
                            *begun = None;
                        }
                        (_, Some(frame)) if frame.len() >= *most => {
                            *begun = None;
                            dropped += 1;
                        }
                        (byte, Some(frame)) => frame.push(byte),
                        (_, None) => {}
                    }
                }
            }
            Self::Fixed { begun, size } => {
                for byte in piece {
                    begun.push(*byte);
                    if begun.len() >= *size {
                        found.push(text(begun));
                        begun.clear();
                    }
                }
            }
            Self::Length { size, is_little_endian, begun, most, skip } => {
                let mut piece = piece;
                while !piece.is_empty() {
                    let skipped = (*skip).min(piece.len());
                    *skip -= skipped;
                    piece = piece.get(skipped..).unwrap_or_default();
                    let len = begun.get(..*size).map(|len| length(len, *is_little_endian));
                    let wanted = *size + len.unwrap_or(0) - begun.len();
                    let (part, rest) = piece.split_at(wanted.min(piece.len()));
                    begun.extend_from_slice(part);
                    piece = rest;
                    let Some(len) = begun.get(..*size).map(|len| length(len, *is_little_endian)) else {
                        continue;
                    };
                    if len > *most {
                        *skip = len;
                        begun.clear();
                        dropped += 1;
                    } else if begun.len() == *size + len {
                        found.push(text(begun.get(*size..).unwrap_or_default()));
                        begun.clear();
                    }
                }
            }
        }
        dropped
    }
}

fn length(bytes: &[u8], is_little_endian: bool) -> usize {
    let add = |length: usize, byte: &u8| length << 8 | usize::from(*byte);
    if is_little_endian { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_what_has_no_mark() {
        let fixed = || Framer::Fixed { begun: Vec::new(), size: 4 };
        let length =
            || Framer::Length { size: 1, is_little_endian: false, begun: Vec::new(), most: 9, skip: 0 };
        for (mut framer, stray, whole) in [
            (fixed(), b"z".as_slice(), b"X=07".as_slice()),
            (length(), b"\x05ab", b"\x04X=07"),
            // A length beyond the limit.
            (length(), b"\xf0", b"\x04X=07"),
        ] {
            let mut found = Vec::new();
            framer.push(stray, &mut found);
            assert!(framer.can_resume());
            framer.resume();
            framer.push(whole, &mut found);
            assert_eq!(found, ["X=07"]);
            assert!(!framer.can_resume(), "nothing is incomplete");
        }
        let mut lines = Framer::Lines(Lines::new(9));
        let mut found = Vec::new();
        lines.push(b"X=", &mut found);
        assert!(!lines.can_resume());
        lines.resume();
        lines.push(b"07\n", &mut found);
        assert_eq!(found, ["X=07"]);
    }

    #[test]
    fn frames_do_not_depend_on_the_pieces() {
        let text = b"x\x02one\x03\r\n\x02lost\x02two\x03\x021234567\x03\x02\x03";
        let stx = Framer::Between { start: STX, end: ETX, begun: None, most: 6 };
        let same = Framer::Between { start: b'1', end: b'1', begun: None, most: 6 };
        let fixed = Framer::Fixed { begun: Vec::new(), size: 4 };
        for size in 1..=text.len() {
            let cut = |mut framer: Framer| {
                let mut found = Vec::new();
                let dropped: u64 = text.chunks(size).map(|piece| framer.push(piece, &mut found)).sum();
                (found, dropped)
            };
            let (found, dropped) = cut(stx.clone());
            assert_eq!((found, dropped), (vec!["one".to_owned(), "two".to_owned(), String::new()], 1));
            assert_eq!(cut(same.clone()), (vec![], 1));
            let (found, _) = cut(fixed.clone());
            assert_eq!((found.len(), found.first().map(String::as_str)), (text.len() / 4, Some("x\u{2}on")));
        }
    }

    #[test]
    fn length_prefixed_frames_are_found_and_long_ones_skipped() {
        let framer = |is_little_endian| Framer::Length {
            size: 2,
            is_little_endian,
            begun: Vec::new(),
            most: 5,
            skip: 0,
        };
        let text = b"\x00\x03one\x00\x00\x00\x06toolon\x00\x05right\x00\x02x";
        for size in 1..=text.len() {
            let (mut framer, mut found) = (framer(false), Vec::new());
            let dropped: u64 = text.chunks(size).map(|piece| framer.push(piece, &mut found)).sum();
            assert_eq!(
                (found, dropped),
                (vec!["one".to_owned(), String::new(), "right".to_owned()], 1),
                "{size}"
            );
        }
        let mut found = Vec::new();
        assert_eq!(framer(true).push(b"\x01\x00a\xff\xff", &mut found), 1);
        assert_eq!(found, ["a"]);
    }
}
