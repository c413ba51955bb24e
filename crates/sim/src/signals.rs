//! Values that count up, so that a receiver can determine a value's number and when it was written.

use core::time::Duration;
use taktwerk_types::{ByteString, Instant, Variant};

/// What receivers know about signals that change together: enough to determine when a value was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rhythm {
    pub(crate) start: Instant,
    pub(crate) period: Duration,
    /// Values are written up to this much later, evenly.
    pub(crate) spread: Duration,
    pub(crate) value_len: usize,
}

impl Rhythm {
    /// When a value was written; `None` if values do not change.
    pub(crate) fn written_at(&self, number: i64) -> Option<Instant> {
        let period = u64::try_from(self.period.as_nanos()).ok().filter(|period| *period > 0)?;
        let number = u64::try_from(number).ok()?;
        let offset = period.checked_mul(number)?.checked_add(later(number, self.spread))?;
        Some(Instant::from_nanos(self.start.as_nanos().checked_add(offset)?))
    }

    /// The number of the current value at a time: 0 until the first value is written.
    pub(crate) fn newest(&self, at: Instant) -> i64 {
        if self.period.is_zero() {
            return 0;
        }
        let number = at.since(self.start).as_nanos() / self.period.as_nanos();
        i64::try_from(number).unwrap_or(i64::MAX)
    }

    /// The number of values written from `from` on, and before `until`.
    pub(crate) fn written(&self, from: Instant, until: Instant) -> u64 {
        // The last number just before a time; the first written value has the number 1.
        let before = |at: Instant| {
            let nanos = at.as_nanos().saturating_sub(1).max(self.start.as_nanos());
            self.newest(Instant::from_nanos(nanos))
        };
        u64::try_from(before(until).saturating_sub(before(from))).unwrap_or(0)
    }

    /// The number of a value, determined from its bytes and the current time.
    pub(crate) fn number(&self, value: &Variant, now: Instant) -> Option<i64> {
        let low = low_bytes(value)?;
        let bits = 8 * u32::try_from(self.value_len.min(8)).unwrap_or(8);
        // Without a period, clients write the values: their numbers are unrelated to time.
        if bits >= 64 || self.period.is_zero() {
            return i64::try_from(low).ok();
        }
        let newest = now.since(self.start).as_nanos() / self.period.as_nanos().max(1);
        let newest = u64::try_from(newest).ok()?;
        // The newest number with these low bits that can have been written.
        let mask = (1u64 << bits) - 1;
        let behind = newest.wrapping_sub(low) & mask;
        i64::try_from(newest.checked_sub(behind)?).ok()
    }
}

/// A part of `spread` in nanoseconds. Any run of numbers has parts that are evenly distributed: the multiples of the golden
/// ratio (Weyl's sequence).
pub(crate) fn later(number: u64, spread: Duration) -> u64 {
    let fraction = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let nanos = (u128::from(fraction) * spread.as_nanos()) >> 64;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

fn low_bytes(value: &Variant) -> Option<u64> {
    let number = match value {
        Variant::Byte(value) => u64::from(*value),
        Variant::Int16(value) => u64::from(value.cast_unsigned()),
        Variant::Int32(value) => u64::from(value.cast_unsigned()),
        Variant::Int64(value) => value.cast_unsigned(),
        Variant::ByteString(bytes) => {
            let bytes = bytes.as_deref()?;
            let mut low = [0; 8];
            low.iter_mut().zip(bytes).for_each(|(low, byte)| *low = *byte);
            u64::from_le_bytes(low)
        }
        _ => return None,
    };
    Some(number)
}

/// A value with this many bytes that differs from its predecessor and successor.
#[must_use]
pub fn value(len: usize, count: i64) -> Variant {
    let [low, next, ..] = count.to_le_bytes();
    match len {
        1 => Variant::from(low),
        2 => Variant::from(i16::from_le_bytes([low, next])),
        4 => Variant::from(count as i32),
        8 => Variant::from(count),
        len => {
            let bytes: Vec<u8> = count.to_le_bytes().into_iter().cycle().take(len).collect();
            Variant::from(ByteString::from(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_value_follows_from_its_bytes_and_the_time() {
        for value_len in [1, 2, 3, 4, 5, 8, 20] {
            let start = Instant::from_nanos(5_000_000);
            let spread = Duration::from_millis(10);
            let rhythm = Rhythm { start, period: spread, spread, value_len };
            for number in [0i64, 1, 255, 256, 300, 66_000] {
                let at = rhythm.written_at(number).unwrap();
                let late = at + Duration::from_millis(1_234);
                assert_eq!(rhythm.number(&value(value_len, number), late), Some(number), "{value_len}");
            }
        }
        let rhythm = Rhythm {
            start: Instant::from_nanos(1_000),
            period: Duration::from_nanos(10),
            spread: Duration::ZERO,
            value_len: 8,
        };
        let at = Instant::from_nanos;
        assert_eq!([0, 1_009, 1_010, 1_025].map(|nanos| rhythm.newest(at(nanos))), [0, 0, 1, 2]);
        // The start is included, the end is not.
        let written = |from, until| rhythm.written(at(from), at(until));
        assert_eq!(
            [written(0, 1_010), written(0, 1_011), written(1_010, 1_030), written(1_011, 1_031)],
            [0, 1, 2, 2]
        );
        let still = Rhythm { start: Instant::from_nanos(5), period: Duration::ZERO, ..rhythm };
        assert_eq!(
            (still.number(&value(4, 0), Instant::from_nanos(9)), still.written_at(1)),
            (Some(0), None)
        );
    }

    #[test]
    fn spread_writes_come_evenly_within_their_period_and_in_order() {
        let period = Duration::from_millis(10);
        let start = Instant::from_nanos(0);
        let rhythm = Rhythm { start, period, spread: period, value_len: 8 };
        let mut tenths = [0; 10];
        for number in 1..=1_000 {
            let written = rhythm.written_at(number).unwrap();
            let late = written.as_nanos() - 10_000_000 * number as u64;
            tenths[(late / 1_000_000) as usize] += 1;
            assert!(written < rhythm.written_at(number + 1).unwrap() || late > 0);
        }
        assert!(tenths.iter().all(|count| (95..=105).contains(count)), "{tenths:?}");
    }
}
