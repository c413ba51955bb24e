//! Bytes as hexadecimal digits, strictly: `from_str_radix` would accept `+f`.

/// Two digits for each byte.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a text; `None` if it is not pairs of hexadecimal digits.
#[must_use]
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |char: u8| char::from(char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_survive() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&text(&all)), Some(all));
        assert_eq!(
            (text(&[0, 0xfe]), bytes("00FE"), bytes("")),
            ("00fe".into(), Some(vec![0, 0xfe]), Some(vec![]))
        );
    }

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        for wrong in ["0", "abc", "+f", "-1", "0x", " 1", "zz", "é", "0é1", "00 11"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
