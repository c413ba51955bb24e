//! Notation of time spans on the command line: `50us`, `100ms`, `2.5s`, `1m`, `1h`.

use std::time::Duration;

/// The text is not a time span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time span: write 50us, 100ms, 2.5s, 1m or 1h")]
pub struct ParseSpanError(String);

fn parse(text: &str, default_unit: f64) -> Result<Duration, ParseSpanError> {
    let error = || ParseSpanError(text.to_owned());
    let text = text.trim();
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit.trim() {
        "" => default_unit,
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let number: f64 = number.parse().map_err(|_| error())?;
    // Limited to a year, which is longer than any measurement and cannot overflow nanoseconds.
    Some(number * seconds)
        .filter(|span| *span <= 365.0 * 86_400.0)
        .map(Duration::from_secs_f64)
        .ok_or_else(error)
}

/// Parses a span; a plain number is in seconds.
pub fn seconds(text: &str) -> Result<Duration, ParseSpanError> {
    parse(text, 1.0)
}

/// Parses a span above zero; a plain number is in seconds.
pub fn some(text: &str) -> Result<Duration, ParseSpanError> {
    Some(seconds(text)?).filter(|span| !span.is_zero()).ok_or_else(|| ParseSpanError(text.to_owned()))
}

/// Parses a span; a plain number is in milliseconds, the protocol's unit.
pub fn millis(text: &str) -> Result<Duration, ParseSpanError> {
    parse(text, 1e-3)
}

/// Parses a span; a plain number is in microseconds.
pub fn micros(text: &str) -> Result<Duration, ParseSpanError> {
    parse(text, 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_defaults() {
        for (text, nanos) in [
            ("50us", 50_000),
            ("2.5s", 2_500_000_000),
            ("100ms", 100_000_000),
            ("1m", 60_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(seconds(text), Ok(Duration::from_nanos(nanos)));
        }
        assert!(some("0s").is_err() && some("1ms").is_ok());
        assert_eq!(seconds("3"), Ok(Duration::from_secs(3)));
        assert_eq!(millis("3"), Ok(Duration::from_millis(3)));
        assert_eq!(micros("3"), Ok(Duration::from_micros(3)));
        for bad in ["", "s", "1x", "-1s", "1e400", "inf", "NaN", "99999999h"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
