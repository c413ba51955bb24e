//! Times in JSON.

use core::time::Duration;
use serde_json::Value as Json;
use taktwerk_types::UtcTime;

/// A time as text (ISO 8601), or as seconds, milliseconds, microseconds or nanoseconds since 1970.
#[must_use]
pub fn time_of(json: &Json) -> Option<UtcTime> {
    match json {
        Json::String(text) => UtcTime::parse(text),
        Json::Number(number) => {
            let number = number.as_f64().filter(|number| *number > 0.0)?;
            // Up to the year 5138 the number of digits determines the unit.
            let seconds = match number {
                small if small < 1e11 => small,
                millis if millis < 1e14 => millis / 1e3,
                micros if micros < 1e17 => micros / 1e6,
                nanos => nanos / 1e9,
            };
            Duration::try_from_secs_f64(seconds).ok().map(UtcTime::from_unix)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_come_in_many_units() {
        let expected = UtcTime::parse("2023-11-14T22:13:20Z");
        let all = [
            json!(1_700_000_000),
            json!(1_700_000_000_000i64),
            json!(1_700_000_000_000_000i64),
            json!("2023-11-14T22:13:20Z"),
        ];
        for json in all {
            assert_eq!(time_of(&json), expected);
        }
        assert_eq!(time_of(&json!(-1)), None);
        assert_eq!(time_of(&json!("yesterday")), None);
    }
}
