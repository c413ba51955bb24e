//! Comparison of sequence numbers (Part 14 §7.2.3).

/// A received sequence number compared with the last one processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// The successor, or a later number if messages are missing.
    Newer {
        /// Number of missing messages in between.
        missing: u32,
    },
    /// The same number or an older one: ignore the message.
    Older,
    /// Neither: the sender has restarted, or the number is invalid.
    Invalid,
}

/// Compares 16-bit sequence numbers of NetworkMessages and DataSetMessages.
#[must_use]
pub const fn compare16(received: u16, last: u16) -> Sequence {
    match received.wrapping_sub(last).wrapping_sub(1) {
        missing @ 0..0x4000 => Sequence::Newer { missing: missing as u32 },
        0xc001.. => Sequence::Older,
        _ => Sequence::Invalid,
    }
}

/// Compares 32-bit sequence numbers of security nonces and JSON DataSetMessages.
#[must_use]
pub const fn compare32(received: u32, last: u32) -> Sequence {
    match received.wrapping_sub(last).wrapping_sub(1) {
        missing @ 0..0x4000_0000 => Sequence::Newer { missing },
        0xc000_0001.. => Sequence::Older,
        _ => Sequence::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_of_the_specification() {
        assert_eq!(compare32(6, 5), Sequence::Newer { missing: 0 });
        assert_eq!(compare32(5, 5), Sequence::Older);
        assert_eq!(compare32(0, u32::MAX), Sequence::Newer { missing: 0 });
        for (received, last) in
            [(1u32, 0u32), (0x4000_0000, 0), (0x4000_0001, 0), (0xc000_0001, 0), (0xc000_0002, 0)]
        {
            let result = (u64::from(u32::MAX) + u64::from(received) - u64::from(last)) % (1 << 32);
            let expected = match result {
                0..0x4000_0000 => Sequence::Newer { missing: result as u32 },
                0xc000_0001.. => Sequence::Older,
                _ => Sequence::Invalid,
            };
            assert_eq!(compare32(received, last), expected);
        }
    }

    #[test]
    fn sixteen_bits_roll_over() {
        assert_eq!(compare16(2, u16::MAX), Sequence::Newer { missing: 2 });
        assert_eq!(compare16(u16::MAX, 2), Sequence::Older);
        assert_eq!(compare16(0x8000, 0), Sequence::Invalid);
    }
}
