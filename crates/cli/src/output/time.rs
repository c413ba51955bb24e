//! Times for display.

use taktwerk_net::clock;
use taktwerk_types::UtcTime;

/// The time of day in milliseconds (UTC) if it is today, otherwise with the date.
pub(crate) fn short(time: Option<UtcTime>) -> String {
    time.map(|time| relative_to(time, clock::wall())).unwrap_or_default()
}

fn relative_to(time: UtcTime, now: UtcTime) -> String {
    let (text, today) = (time.to_string(), now.to_string());
    let Some((date, clock)) = text.split_once('T') else { return text };
    let (seconds, fraction) =
        clock.trim_end_matches('Z').split_once('.').unwrap_or((clock.trim_end_matches('Z'), ""));
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    if today.starts_with(date) { format!("{seconds}.{millis}") } else { format!("{date} {seconds}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_today_have_no_date() {
        let time = |text: &str| UtcTime::parse(text).unwrap();
        let now = time("2026-03-04T12:00:00Z");
        assert_eq!(relative_to(time("2026-03-04T11:22:33.4567Z"), now), "11:22:33.456");
        assert_eq!(relative_to(time("2026-03-04T11:22:33Z"), now), "11:22:33.000");
        assert_eq!(relative_to(time("2026-03-03T11:22:33.4Z"), now), "2026-03-03 11:22:33");
    }
}
