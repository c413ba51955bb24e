//! A JSON message of sixteen bytes that contains its publishing time: a number of ten digits, microseconds of the
//! monotonic clock, which wraps after two and a half hours.

/// Smallest number with ten digits.
const FIRST: u64 = 1_000_000_000;
/// Count of numbers with ten digits.
const COUNT: u64 = 9_000_000_000;
/// Bytes before the number.
const HEAD: usize = r#"{"v":"#.len();

/// The topic of a number.
pub(super) fn topic(number: u32) -> String {
    format!("bench/{number}")
}

/// The filter for all of these topics.
pub(super) fn topic_filter() -> String {
    "bench/+".to_owned()
}

/// The message for a time on the monotonic clock, in nanoseconds.
pub(super) fn message(now: u64) -> String {
    format!(r#"{{"v":{}}}"#, FIRST + now / 1_000 % COUNT)
}

/// Age of a message with this number, in nanoseconds; `None` if the number is invalid.
pub(super) fn age(number: u64, now: u64) -> Option<u64> {
    let published = number.checked_sub(FIRST).filter(|published| *published < COUNT)?;
    Some((now / 1_000 % COUNT + COUNT - published) % COUNT * 1_000)
}

/// The number in a message.
pub(super) fn number(message: &[u8]) -> Option<u64> {
    let digits = message.get(HEAD..)?.strip_suffix(b"}")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_their_publishing_time() {
        for published in [0, 5_000, 9_000_000_000_000 - 1_000, 123_456_789_123_000_u64] {
            let message = message(published);
            assert_eq!(message.len(), 16);
            let number = number(message.as_bytes()).unwrap();
            for later in [0, 1_000, 7_000_000] {
                assert_eq!(age(number, published + later), Some(later));
            }
        }
        assert_eq!(age(999_999_999, 0), None);
        assert_eq!(number(br#"{"v":x}"#), None);
        assert_eq!(number(b""), None);
    }
}
