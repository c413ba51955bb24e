//! Time: [`Instant`] for deadlines (monotonic, given by the driver), [`UtcTime`] for timestamps on the wire.

use crate::codec::{Decode, DecodeError, Decoder, Encode};
use core::fmt;
use core::ops::{Add, Sub};

/// The specification's `Duration`: milliseconds as a Double (Part 3 §8.13).
pub type Duration = f64;

/// A point on a monotonic clock, in nanoseconds since an origin that the driver chooses.
///
/// The core never reads a clock: drivers pass an `Instant`, simulators increment one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than any deadline.
    pub const FAR: Self = Self(u64::MAX);

    /// From nanoseconds since the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This point plus `millis` milliseconds; negative and non-finite spans add nothing.
    #[must_use]
    pub fn plus_millis_f64(self, millis: f64) -> Self {
        Self(self.0.saturating_add(nanos_from_millis(millis)))
    }

    /// The span since `earlier`, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Milliseconds (the specification's Duration) as whole nanoseconds; negative and non-finite give zero.
#[must_use]
pub fn nanos_from_millis(millis: f64) -> u64 {
    // `as` saturates and maps NaN to zero, which makes hostile values harmless.
    (millis.max(0.0) * 1e6) as u64
}

impl Add<core::time::Duration> for Instant {
    type Output = Self;
    fn add(self, span: core::time::Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Instant {
    type Output = core::time::Duration;
    fn sub(self, earlier: Self) -> core::time::Duration {
        self.since(earlier)
    }
}

/// DateTime (Part 6 §5.2.2.5): 100 ns ticks since 1601-01-01 UTC. Zero is "no time".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UtcTime(i64);

/// Ticks between 1601-01-01 and 1970-01-01.
const UNIX_EPOCH_TICKS: i64 = 116_444_736_000_000_000;

impl UtcTime {
    /// The null DateTime.
    pub const NULL: Self = Self(0);
    /// The latest DateTime: times from 9999-12-31 23:59:59 on encode as this.
    pub const MAX: Self = Self(i64::MAX);

    /// From 100 ns ticks since 1601-01-01.
    #[must_use]
    pub const fn from_ticks(ticks: i64) -> Self {
        Self(ticks)
    }

    /// 100 ns ticks since 1601-01-01.
    #[must_use]
    pub const fn ticks(self) -> i64 {
        self.0
    }

    /// From a span since 1970-01-01.
    #[must_use]
    pub fn from_unix(since: core::time::Duration) -> Self {
        let ticks = i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX);
        Self(ticks.saturating_add(UNIX_EPOCH_TICKS))
    }

    /// Nanoseconds since 1970-01-01 (negative before).
    #[must_use]
    pub const fn unix_nanos(self) -> i128 {
        (self.0 as i128 - UNIX_EPOCH_TICKS as i128) * 100
    }

    /// Whether this is null.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 <= 0
    }

    /// This time plus a span.
    #[must_use]
    pub fn plus(self, span: core::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_nanos() / 100).unwrap_or(i64::MAX)))
    }

    /// From a civil date and time of day in UTC; months and days count from 1. `None` if a part is out of range.
    #[must_use]
    pub fn from_civil(year: i32, month: u32, day: u32, hour: u32, minute: u32, second: u32) -> Option<Self> {
        if !(1601..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        if hour > 24 || minute > 59 || second > 60 {
            return None;
        }
        let seconds = days_from_civil(i64::from(year), i64::from(month), i64::from(day)) * 86_400
            + i64::from(hour) * 3600
            + i64::from(minute) * 60
            + i64::from(second);
        Some(Self(seconds * 10_000_000 + UNIX_EPOCH_TICKS))
    }

    /// Parses ISO 8601 as in XML and JSON: `2024-05-06T07:08:09.123Z`, with optional fraction and offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
        let mut parts = date.splitn(3, '-');
        let year = parts.next()?.parse().ok()?;
        let month = parts.next()?.parse().ok()?;
        let day = parts.next()?.parse().ok()?;
        let (clock, offset_minutes) = split_offset(clock)?;
        let mut parts = clock.splitn(3, ':');
        let hour = parts.next()?.parse().ok()?;
        let minute = parts.next()?.parse().ok()?;
        let seconds = parts.next().unwrap_or("0");
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let base = Self::from_civil(year, month, day, hour, minute, whole.parse().ok()?)?;
        let mut ticks = 0i64;
        let mut scale = 1_000_000;
        for digit in fraction.chars().take(7) {
            ticks += i64::from(digit.to_digit(10)?) * scale;
            scale /= 10;
        }
        Some(Self(base.0 + ticks - offset_minutes * 60 * 10_000_000))
    }
}

fn split_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0)) };
    let (clock, offset) = clock.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    // Offsets are less than a day (XML Schema allows 14 hours).
    (hours < 24 && minutes < 60).then(|| (clock, sign * (i64::from(hours) * 60 + i64::from(minutes))))
}

/// Days since 1970-01-01 of a proleptic Gregorian date.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date of a day since 1970-01-01, as (year, month, day).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = i128::from(self.0) - i128::from(UNIX_EPOCH_TICKS);
        let seconds = i64::try_from(ticks.div_euclid(10_000_000)).unwrap_or(i64::MAX);
        let fraction = ticks.rem_euclid(10_000_000);
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let clock = seconds.rem_euclid(86_400);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            clock / 3600,
            clock / 60 % 60,
            clock % 60
        )?;
        if fraction != 0 {
            let text = format!("{fraction:07}");
            write!(f, ".{}", text.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl Encode for UtcTime {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl<'a> Decode<'a> for UtcTime {
    const MIN_LEN: usize = 8;
    #[inline]
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        i64::decode(decoder).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_times_round_trip() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2024-02-29T23:59:59.1234567Z",
            "2000-12-31T00:00:01.5Z",
            "1601-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            let time = UtcTime::parse(text).unwrap();
            assert_eq!(time.to_string(), text);
        }
        assert_eq!(UtcTime::parse("1970-01-01T02:00:00+02:00"), UtcTime::parse("1970-01-01T00:00:00Z"));
        assert_eq!(UtcTime::parse("1970-13-01T02:00:00"), None);
        assert_eq!(UtcTime::parse("2024-01-01T00:00:00+999999999999999:00"), None);
        assert_eq!(UtcTime::from_unix(core::time::Duration::ZERO).ticks(), UNIX_EPOCH_TICKS);
    }

    #[test]
    fn hostile_durations_do_not_overflow() {
        assert_eq!(nanos_from_millis(f64::NAN), 0);
        assert_eq!(nanos_from_millis(-1.0), 0);
        assert_eq!(nanos_from_millis(f64::INFINITY), u64::MAX);
        assert_eq!(Instant::from_nanos(5).plus_millis_f64(f64::INFINITY), Instant::FAR);
    }
}
