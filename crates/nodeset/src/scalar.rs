//! Parses simple values in XML Schema format.

use taktwerk_types::UtcTime;

/// Parses a DateTime. Times before 1601 become null and times after 9999 the maximum (Part 6 §5.2.2.5).
pub(crate) fn date_time(text: &str) -> Option<UtcTime> {
    let text = text.trim();
    // An offset is a sign, hours and minutes; longer text is invalid and could overflow.
    let (_, clock) = text.split_once('T').unwrap_or((text, ""));
    if clock.rfind(['+', '-']).is_some_and(|at| clock.len() - at > "+14:00".len()) {
        return None;
    }
    if let Some(year) = text.split('-').next().and_then(|year| year.parse::<u32>().ok()) {
        if year < 1601 {
            return Some(UtcTime::NULL);
        }
        if year > 9999 {
            return Some(UtcTime::MAX);
        }
    }
    UtcTime::parse(text)
}

/// Parses a Boolean.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "True" => Some(true),
        "false" | "0" | "False" => Some(false),
        _ => None,
    }
}

/// Parses a Float or Double with XML Schema's names for special values.
pub(crate) fn float(text: &str) -> Option<f64> {
    match text {
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_the_range_are_clamped() {
        assert_eq!(date_time("0001-01-01T00:00:00Z"), Some(UtcTime::NULL));
        assert_eq!(date_time("12000-01-01T00:00:00Z"), Some(UtcTime::MAX));
        assert_eq!(date_time("yesterday"), None);
        assert_eq!(date_time(""), None);
        assert_eq!(date_time("2024-01-01T00:00:00+999999999999999:00"), None);
        assert_eq!(date_time("2024-01-01T02:00:00+02:00"), date_time("2024-01-01T00:00:00Z"));
        assert!(date_time(" 2024-05-06T07:08:09Z ").is_some());
    }

    #[test]
    fn schema_names_of_floats() {
        assert_eq!(float("-INF"), Some(f64::NEG_INFINITY));
        assert!(float("NaN").is_some_and(f64::is_nan));
        assert_eq!(float("1e3"), Some(1000.0));
        assert_eq!(float("one"), None);
        assert_eq!(boolean("yes"), None);
    }
}
