//! A server of a scenario, and what its sensors write.

use super::Signals;
use crate::ids::ServerId;
use core::time::Duration;
use taktwerk_server::space::VariableHandle;
use taktwerk_types::{ByteString, Instant, Variant};

/// Number of the first variable: its id is ns=1;i=100000, as in servers for measurements, so that requests have the same length.
pub(super) const FIRST: u32 = 99_000;

/// Variables that change together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) signals: Signals,
    /// Value number `n` is written `n` periods after this.
    pub(super) start: Instant,
    /// The number of the value that was due last.
    pub(super) count: i64,
    pub(super) variables: Vec<VariableHandle>,
    /// Values of each variable that were written in the window.
    pub(super) written: u64,
}

/// One server.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) id: ServerId,
    pub(super) is_up: bool,
    pub(super) groups: Vec<Group>,
    /// Writes that count are made from the first of these times on, before the second.
    pub(super) window: (Instant, Instant),
    /// Sensors deliver no more after this.
    pub(super) until: Instant,
}

impl Group {
    /// The next value is due. If the server is down, its sensors are not read.
    pub(super) fn tick(&mut self, is_up: bool, is_counted: bool, now: taktwerk_types::UtcTime) {
        self.count += 1;
        if is_up {
            let (len, count) = (self.signals.value_len, self.count);
            self.variables.iter().for_each(|variable| variable.set_at(value(len, count), now));
            self.written += u64::from(is_counted);
        }
    }
}

/// What clients know of a group of variables: enough to tell when a value was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    pub(super) start: Instant,
    pub(super) period: Duration,
    pub(super) value_len: usize,
}

impl Rhythm {
    /// When a value was written; `None` if values do not change.
    pub(super) fn written_at(&self, number: i64) -> Option<Instant> {
        let period = u64::try_from(self.period.as_nanos()).ok().filter(|period| *period > 0)?;
        let number = u64::try_from(number).ok()?;
        let offset = period.checked_mul(number)?;
        Some(Instant::from_nanos(self.start.as_nanos().checked_add(offset)?))
    }

    /// The number of a value, as it can be told from its bytes and the present time.
    pub(super) fn number(&self, value: &Variant, now: Instant) -> Option<i64> {
        let low = low_bytes(value)?;
        let bits = 8 * u32::try_from(self.value_len.min(8)).unwrap_or(8);
        // Without a period, clients write: their numbers have nothing to do with time.
        if bits >= 64 || self.period.is_zero() {
            return i64::try_from(low).ok();
        }
        let newest = now.since(self.start).as_nanos() / self.period.as_nanos().max(1);
        let newest = u64::try_from(newest).ok()?;
        // The newest number with these bits that can have been written.
        let mask = (1u64 << bits) - 1;
        let behind = newest.wrapping_sub(low) & mask;
        i64::try_from(newest.checked_sub(behind)?).ok()
    }
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

/// A value of so many bytes that differs from the ones before and after.
pub(super) fn value(len: usize, count: i64) -> Variant {
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
    fn the_number_of_a_value_is_told_from_its_bytes_and_the_time() {
        for value_len in [1, 2, 3, 4, 5, 8, 20] {
            let start = Instant::from_nanos(5_000_000);
            let rhythm = Rhythm { start, period: Duration::from_millis(10), value_len };
            for number in [0i64, 1, 255, 256, 300, 66_000] {
                let at = rhythm.written_at(number).unwrap();
                let late = at + Duration::from_millis(1_234);
                assert_eq!(rhythm.number(&value(value_len, number), late), Some(number), "{value_len}");
            }
        }
        let still = Rhythm { start: Instant::from_nanos(5), period: Duration::ZERO, value_len: 4 };
        assert_eq!(
            (still.number(&value(4, 0), Instant::from_nanos(9)), still.written_at(1)),
            (Some(0), None)
        );
    }
}
