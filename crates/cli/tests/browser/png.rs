//! Pixels of a screenshot (PNG, W3C Recommendation, second edition): eight bits per channel, not interlaced, as Chromium
//! writes them.

use flate2::read::ZlibDecoder;
use std::collections::BTreeSet;
use std::io::Read;

/// An RGB image.
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Decodes a file.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
        let (mut header, mut packed) = (Vec::new(), Vec::new());
        while let Some((length, body)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            match &body[..4] {
                b"IHDR" => header.extend_from_slice(&body[4..][..length]),
                b"IDAT" => packed.extend_from_slice(&body[4..][..length]),
                _ => {}
            }
            // The data is followed by a checksum.
            rest = &body[4 + length + 4..];
        }
        let number = |at: usize| u32::from_be_bytes(header[at..][..4].try_into().unwrap());
        let (width, height) = (number(0), number(4));
        let channels = match header[8..13] {
            [8, 2, 0, 0, 0] => 3,
            [8, 6, 0, 0, 0] => 4,
            ref other => panic!("another kind of PNG: {other:?}"),
        };
        let mut lines = Vec::new();
        ZlibDecoder::new(&packed[..]).read_to_end(&mut lines).unwrap();
        let row = width as usize * channels;
        let mut above = vec![0u8; row];
        let mut pixels = Vec::with_capacity((width * height) as usize);
        for line in lines.chunks_exact_mut(1 + row) {
            let (filter, line) = line.split_first_mut().unwrap();
            unfilter(*filter, line, &above, channels);
            pixels.extend(line.chunks_exact(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]));
            above.copy_from_slice(line);
        }
        assert_eq!(pixels.len(), (width * height) as usize);
        Self { width, height, pixels }
    }

    /// The number of colours, counted up to `most`.
    pub(crate) fn colours(&self, most: usize) -> usize {
        let mut seen = BTreeSet::<[u8; 3]>::new();
        for pair in self.pixels.windows(2).filter(|pair| pair[0] != pair[1]) {
            seen.extend(pair);
            if seen.len() >= most {
                break;
            }
        }
        seen.len().max(1)
    }

    /// The number of pixels in a part that are neither white nor black nor grey.
    pub(crate) fn coloured(&self, left: u32, top: u32, width: u32, height: u32) -> usize {
        let rows = self.pixels.chunks_exact(self.width as usize).skip(top as usize).take(height as usize);
        let pixels = rows.flat_map(|row| row.iter().skip(left as usize).take(width as usize));
        pixels.filter(|pixel| pixel.iter().max().unwrap() - pixel.iter().min().unwrap() > 40).count()
    }
}

/// Reverses the filter of a line (chapter 9).
fn unfilter(filter: u8, line: &mut [u8], above: &[u8], channels: usize) {
    for at in 0..line.len() {
        let before = |from: &[u8]| if at >= channels { from[at - channels] } else { 0 };
        let (left, up, corner) = (before(line), above[at], before(above));
        let predicted = match filter {
            0 => 0,
            1 => left,
            2 => up,
            3 => ((u16::from(left) + u16::from(up)) / 2) as u8,
            4 => paeth(left, up, corner),
            other => panic!("no such filter: {other}"),
        };
        line[at] = line[at].wrapping_add(predicted);
    }
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let estimate = i16::from(left) + i16::from(up) - i16::from(corner);
    let distance = |it: u8| (estimate - i16::from(it)).abs();
    [left, up, corner].into_iter().min_by_key(|it| distance(*it)).unwrap()
}
