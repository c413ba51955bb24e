//! Frames within bytes that come in pieces.

use crate::lines::Lines;

/// The first byte of a frame unless the settings say otherwise.
pub const STX: u8 = 0x02;
/// The last byte of a frame unless the settings say otherwise.
pub const ETX: u8 = 0x03;

/// Cuts bytes into frames. It keeps at most one frame.
#[derive(Debug, Clone)]
pub enum Framer {
    /// Lines that end with LF or CR LF.
    Lines(Lines),
    /// What stands between two bytes; what is outside is thrown away.
    Between {
        /// The byte in front of a frame.
        start: u8,
        /// The byte behind it.
        end: u8,
        /// The frame that has begun.
        begun: Option<Vec<u8>>,
        /// Longest frame in bytes.
        most: usize,
    },
    /// Frames of so many bytes.
    Fixed {
        /// The frame that has begun.
        begun: Vec<u8>,
        /// The bytes of a frame, from 1 on.
        size: usize,
    },
    /// Frames behind their length.
    Length {
        /// The bytes of the length, from 1 to 4.
        size: usize,
        /// Whether the least significant byte of the length comes first.
        is_little_endian: bool,
        /// The length and the frame that have begun.
        begun: Vec<u8>,
        /// Longest frame in bytes.
        most: usize,
        /// How many bytes of a frame that is too long are still to come.
        skip: usize,
    },
}

impl Framer {
    /// Takes a piece: its whole frames go to `found`. Gives how many frames were dropped because they are too long.
    pub fn push(&mut self, piece: &[u8], found: &mut Vec<String>) -> u64 {
        let text = |frame: &[u8]| String::from_utf8_lossy(frame).into_owned();
        let mut dropped = 0;
        match self {
            Self::Lines(lines) => dropped = lines.push(piece, found),
            Self::Between { start, end, begun, most } => {
                for byte in piece {
                    match (*byte, begun.as_mut()) {
                        // A frame without an end is none.
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
    fn frames_are_the_same_however_they_are_cut() {
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
    fn frames_behind_their_length_are_found_and_long_ones_skipped() {
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
