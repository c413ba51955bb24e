//! Frames within bytes that come in pieces.

use crate::lines::Lines;

const STX: u8 = 0x02;
const ETX: u8 = 0x03;

/// Cuts bytes into frames. It keeps at most one frame.
#[derive(Debug, Clone)]
pub enum Framer {
    /// Lines that end with LF or CR LF.
    Lines(Lines),
    /// What stands between STX and ETX; what is outside is thrown away.
    StxEtx {
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
}

impl Framer {
    /// Takes a piece: its whole frames go to `found`. Gives how many frames were dropped because they are too long.
    pub fn push(&mut self, piece: &[u8], found: &mut Vec<String>) -> u64 {
        let text = |frame: &[u8]| String::from_utf8_lossy(frame).into_owned();
        let mut dropped = 0;
        match self {
            Self::Lines(lines) => dropped = lines.push(piece, found),
            Self::StxEtx { begun, most } => {
                for byte in piece {
                    match (*byte, begun.as_mut()) {
                        // A frame without an end is none.
                        (STX, _) => *begun = Some(Vec::new()),
                        (ETX, Some(frame)) => {
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
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_same_however_they_are_cut() {
        let text = b"x\x02one\x03\r\n\x02lost\x02two\x03\x021234567\x03\x02\x03";
        let stx = Framer::StxEtx { begun: None, most: 6 };
        let fixed = Framer::Fixed { begun: Vec::new(), size: 4 };
        for size in 1..=text.len() {
            let cut = |mut framer: Framer| {
                let mut found = Vec::new();
                let dropped: u64 = text.chunks(size).map(|piece| framer.push(piece, &mut found)).sum();
                (found, dropped)
            };
            let (found, dropped) = cut(stx.clone());
            assert_eq!((found, dropped), (vec!["one".to_owned(), "two".to_owned(), String::new()], 1));
            let (found, _) = cut(fixed.clone());
            assert_eq!((found.len(), found.first().map(String::as_str)), (text.len() / 4, Some("x\u{2}on")));
        }
    }
}
