//! Formats numbers for display: three significant digits and a unit.

/// Three significant digits: `1.23`, `45.6`, `789`, `12 300`.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size >= 1_000.0 {
        return thousands(value.round() as i64);
    }
    let digits = if size == 0.0 || size >= 100.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        3
    };
    format!("{value:.digits$}")
}

/// A count: without decimals if it is a whole number.
#[must_use]
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { thousands(value as i64) } else { number(value) }
}

/// A whole number in groups of three digits.
#[must_use]
pub fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            // A narrow no-break space, so that terminals do not break the line there.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A time given in microseconds: `850 ns`, `12.3 µs`, `4.56 ms`, `2.00 s`.
#[must_use]
pub fn micros(us: f64) -> String {
    let size = us.abs();
    if size >= 1e6 {
        format!("{} s", number(us / 1e6))
    } else if size >= 1e3 {
        format!("{} ms", number(us / 1e3))
    } else if size >= 1.0 || size == 0.0 {
        format!("{} µs", number(us))
    } else {
        format!("{} ns", number(us * 1e3))
    }
}

/// Bytes with decimal units: `350 B`, `16.0 kB`, `7.12 MB`.
#[must_use]
pub fn bytes(count: f64) -> String {
    let size = count.abs();
    if size >= 1e9 {
        format!("{} GB", number(count / 1e9))
    } else if size >= 1e6 {
        format!("{} MB", number(count / 1e6))
    } else if size >= 1e3 {
        format!("{} kB", number(count / 1e3))
    } else {
        format!("{} B", number(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_units() {
        for (value, text) in [(0.0, "0"), (0.1234, "0.123"), (1.234, "1.23"), (45.67, "45.7"), (789.1, "789")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(thousands(-1_234_567), "-1\u{202f}234\u{202f}567");
        assert_eq!(thousands(999), "999");
        assert_eq!((count(1.0), count(50.0), count(3.5)), ("1".into(), "50".into(), "3.50".into()));
        assert_eq!((micros(0.85), micros(12.34)), ("850 ns".into(), "12.3 µs".into()));
        assert_eq!((micros(4_560.0), micros(2e6)), ("4.56 ms".into(), "2.00 s".into()));
        assert_eq!((bytes(350.0), bytes(7.123e6)), ("350 B".into(), "7.12 MB".into()));
        assert_eq!(number(f64::NAN), "–");
    }
}
