//! Bit fields in the bytes of a frame, in the layouts of DBC files.

use core::ops::RangeInclusive;

/// Longest payload of a frame, that of CAN FD.
pub const DATA_MAX: usize = 64;

/// The number format of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// An unsigned integer.
    Unsigned,
    /// An integer in two's complement.
    Signed,
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
}

/// The bits of a signal in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    start: u16,
    size: u8,
    is_big_endian: bool,
}

impl Bits {
    /// `size` bits from `start`: the least significant bit for little endian, the most significant bit for big endian. Both are
    /// counted as in DBC files, from the least significant bit of byte 0. `None` if the bits are not within `len` bytes.
    #[must_use]
    pub fn new(start: u64, size: u64, is_big_endian: bool, len: usize) -> Option<Self> {
        let start = u16::try_from(start).ok().filter(|start| usize::from(*start) < DATA_MAX * 8)?;
        let size = u8::try_from(size).ok().filter(|size| (1..=64).contains(size))?;
        let bits = Self { start, size, is_big_endian };
        (bits.bytes_needed() <= len.min(DATA_MAX)).then_some(bits)
    }

    /// The number of bits.
    #[must_use]
    pub fn size(self) -> u8 {
        self.size
    }

    /// The frame length needed for all bits, in bytes.
    #[must_use]
    pub fn bytes_needed(self) -> usize {
        self.bytes().end() + 1
    }

    /// The first bit, in the order of bits from start to end.
    fn first(self) -> usize {
        let start = usize::from(self.start);
        if self.is_big_endian { start / 8 * 8 + 7 - start % 8 } else { start }
    }

    fn bytes(self) -> RangeInclusive<usize> {
        let first = self.first();
        first / 8..=(first + usize::from(self.size) - 1) / 8
    }

    /// The distance of the bits from the least significant bit of their bytes, taken as one number.
    fn shift(self) -> usize {
        if self.is_big_endian {
            self.bytes().end() * 8 + 7 - (self.first() + usize::from(self.size) - 1)
        } else {
            self.first() % 8
        }
    }

    /// All bits set.
    #[must_use]
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - u32::from(self.size))
    }

    /// The bytes as one number.
    fn number(self, bytes: &[u8]) -> u128 {
        let add = |number: u128, byte: &u8| number << 8 | u128::from(*byte);
        if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }

    /// The bits; `None` if the frame is too short.
    #[must_use]
    pub fn get(self, data: &[u8]) -> Option<u64> {
        let number = self.number(data.get(self.bytes())?);
        Some((number >> self.shift()) as u64 & self.mask())
    }

    /// Replaces the bits; false if the frame is too short.
    #[must_use]
    pub fn set(self, data: &mut [u8], raw: u64) -> bool {
        let Some(bytes) = data.get_mut(self.bytes()) else { return false };
        let mask = u128::from(self.mask()) << self.shift();
        let number = self.number(bytes) & !mask | u128::from(raw) << self.shift() & mask;
        let count = bytes.len();
        for (at, byte) in bytes.iter_mut().enumerate() {
            let place = if self.is_big_endian { count - 1 - at } else { at };
            *byte = (number >> (8 * place)) as u8;
        }
        true
    }

    /// Interprets the bits as two's complement.
    #[must_use]
    pub fn signed(self, raw: u64) -> i64 {
        let unused = 64 - u32::from(self.size);
        (raw << unused).cast_signed() >> unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small reproducible generator for tests.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// A bit-by-bit reference implementation of the DBC format.
    fn slowly(start: u16, size: u8, is_big_endian: bool, data: &[u8]) -> u64 {
        let mut at = usize::from(start);
        let mut raw = 0;
        for bit in 0..u32::from(size) {
            let is_set = u64::from(data[at / 8] >> (at % 8) & 1);
            if is_big_endian {
                raw = raw << 1 | is_set;
                at = if at % 8 == 0 { at + 15 } else { at - 1 };
            } else {
                raw |= is_set << bit;
                at += 1;
            }
        }
        raw
    }

    #[test]
    fn written_bits_are_read_back_and_other_bits_stay() {
        let mut state = 0x9E37_79B9_7F4A_7C15;
        let mut found = 0;
        while found < 20_000 {
            let len = random(&mut state) as usize % (DATA_MAX + 1);
            let (start, size) = (random(&mut state) % 520, random(&mut state) % 66);
            let is_big_endian = random(&mut state).is_multiple_of(2);
            let Some(bits) = Bits::new(start, size, is_big_endian, len) else { continue };
            found += 1;
            let mut data = [0; DATA_MAX];
            data.fill_with(|| random(&mut state) as u8);
            let data = &mut data[..len];
            assert_eq!(bits.get(data), Some(slowly(start as u16, size as u8, is_big_endian, data)));
            let (before, raw) = (data.to_vec(), random(&mut state));
            let old = bits.get(data).unwrap();
            assert!(bits.set(data, raw));
            assert_eq!(bits.get(data), Some(raw & bits.mask()), "{bits:?}");
            assert!(bits.set(data, old));
            assert_eq!(data, before, "{bits:?}");
            assert_eq!(bits.get(&data[..bits.bytes_needed() - 1]), None);
        }
    }

    #[test]
    fn bits_outside_of_a_frame_are_refused_and_signs_are_extended() {
        assert!(Bits::new(0, 64, false, 8).is_some() && Bits::new(7, 64, true, 8).is_some());
        for (start, size, is_big_endian, len) in [
            (0, 0, false, 8),
            (0, 65, false, 64),
            (1, 64, false, 8),
            (0, 64, true, 8),
            (512, 1, false, 64),
            (8, 1, true, 1),
        ] {
            assert_eq!(Bits::new(start, size, is_big_endian, len), None, "{start}|{size}");
        }
        assert_eq!(Bits::new(0, 12, true, 8).unwrap().signed(0xFFF), -1);
        assert_eq!(Bits::new(0, 12, false, 8).unwrap().signed(0x7FF), 0x7FF);
        assert_eq!(Bits::new(0, 64, false, 8).unwrap().signed(u64::MAX), -1);
    }
}
