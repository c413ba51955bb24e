//! Which writes of a Variable are recorded.

use super::store::HistoryValue;
use core::time::Duration;

/// Which writes of a Variable are recorded. The default records all of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rule {
    /// Only writes that change value or status.
    pub on_change: bool,
    /// Only numbers that differ from the last recorded one by more than this, and changes of status. 0 is off.
    pub deadband: f64,
    /// At most one value per interval. Changes of status are always recorded. Zero is off.
    pub interval: Duration,
}

impl Rule {
    /// Whether to record a value, given the last recorded one.
    #[must_use]
    pub fn takes(&self, last: &HistoryValue, next: &HistoryValue) -> bool {
        if last.status != next.status {
            return true;
        }
        let since = next.source.ticks().saturating_sub(last.source.ticks());
        let interval = i64::try_from(self.interval.as_nanos() / 100).unwrap_or(i64::MAX);
        // Times may go back, for example after one from a clock that was wrong: such values are recorded.
        if (0..interval).contains(&since) {
            return false;
        }
        if self.deadband > 0.0
            && let (Some(one), Some(other)) = (last.value.as_f64(), next.value.as_f64())
        {
            // A NaN differs from every number.
            let off = (one - other).abs();
            return off.is_nan() || off > self.deadband;
        }
        !self.on_change || !last.value.same_as(&next.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_types::{StatusCode, UtcTime};

    #[test]
    fn each_rule_skips_the_values_it_describes() {
        let value = |at: i64, number: f64, status| HistoryValue {
            source: UtcTime::from_ticks(at * 10_000_000),
            server: UtcTime::from_ticks(at * 10_000_000),
            status,
            value: number.into(),
        };
        let last = value(100, 1.0, StatusCode::GOOD);
        let takes = |rule: Rule, at, number| rule.takes(&last, &value(at, number, StatusCode::GOOD));
        assert!(takes(Rule::default(), 100, 1.0));
        let change = Rule { on_change: true, ..Rule::default() };
        assert!(!takes(change, 101, 1.0) && takes(change, 101, 1.5));
        let band = Rule { deadband: 0.5, ..Rule::default() };
        assert!(!takes(band, 101, 1.5) && takes(band, 101, 1.6) && takes(band, 101, f64::NAN));
        let slow = Rule { interval: Duration::from_secs(10), ..Rule::default() };
        assert!(!takes(slow, 109, 9.0) && takes(slow, 110, 9.0));
        // After a time in the future by mistake, recording goes on.
        for rule in [Rule::default(), slow, change] {
            assert!(takes(rule, 50, 9.0) && takes(rule, -1_000_000, 9.0));
        }
        for rule in [change, band, slow] {
            assert!(rule.takes(&last, &value(100, 1.0, StatusCode::BAD)));
        }
    }
}
