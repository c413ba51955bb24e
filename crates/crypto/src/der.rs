//! As much of DER as it takes to find the first certificate of a chain.

/// The first element of concatenated DER: a certificate whose issuers stand behind it. Everything, if it is not DER.
#[must_use]
pub fn leaf(chain: &[u8]) -> &[u8] {
    let [0x30, first, rest @ ..] = chain else { return chain };
    let (header_len, len) = match usize::from(*first) {
        len @ 0..0x80 => (2, Some(len)),
        long => {
            let count = long - 0x80;
            let bytes = rest.get(..count.min(4)).unwrap_or_default();
            let len = bytes.iter().fold(0usize, |len, byte| len << 8 | usize::from(*byte));
            (2 + count, (1..=4).contains(&count).then_some(len))
        }
    };
    len.and_then(|len| chain.get(..header_len.checked_add(len)?)).unwrap_or(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaf_is_the_first_der_element() {
        assert_eq!(leaf(&[0x30, 2, 1, 2, 0x30, 1, 9]), [0x30, 2, 1, 2]);
        let mut long = vec![0x30, 0x82, 1, 0];
        long.resize(4 + 256, 7);
        let mut chain = long.clone();
        chain.extend_from_slice(&[0x30, 0]);
        assert_eq!(leaf(&chain), long);
        for odd in [&[][..], &[0x30], &[0x30, 5, 1], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 0x80, 1], b"DUMMY"]
        {
            assert_eq!(leaf(odd), odd);
        }
    }
}
