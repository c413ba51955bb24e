//! Age of values on arrival, from the time of writing that the values contain.
//!
//! Source timestamps do not show this for every server, because some set them when they sample a value.

use crate::client::Session;
use crate::error::GeneratorError;
use crate::values;
use std::time::Duration;
use taktwerk_load::latency::Times;
use taktwerk_types::{DataValue, NodeId, UtcTime, Variant};

/// Numbers that would be an older or a later time, in nanoseconds, are not times of writing.
const OLDEST: i128 = 3_600_000_000_000;
const LATEST: i128 = 1_000_000_000;
/// Pairs of reads for detecting timestamps that are set when sampling.
const PAIRS: usize = 10;
/// Time between the pairs, so that they see different writes.
const APART: Duration = Duration::from_millis(3);

/// Statistics of the times in values.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// From the write to the application: one sample per value.
    pub(super) delay: Times,
    /// From the write to the source timestamp: one sample per value.
    pub(super) stamped: Times,
    /// Number of values without a time.
    pub(super) untold: u64,
}

impl Written {
    /// Counts a value that arrived at a time in nanoseconds since 1970.
    #[inline]
    pub(super) fn arrived(&mut self, value: &DataValue, at: i128) {
        let is_recent = |written: &i128| (-LATEST..OLDEST).contains(&(at - written));
        let Some(written) = value.value.as_ref().and_then(time_of).filter(is_recent) else {
            self.untold += 1;
            return;
        };
        self.delay.record(u64::try_from(at - written).unwrap_or(0));
        if let Some(source) = value.source_timestamp {
            self.stamped.record(u64::try_from(source.unix_nanos() - written).unwrap_or(0));
        }
    }

    /// Whether source timestamps are later than the writes.
    pub(super) fn is_stamped_late(&self) -> bool {
        self.stamped.percentile(50.0) > 1_000_000
    }
}

/// The time in a value, in nanoseconds since 1970; a Double contains seconds.
fn time_of(value: &Variant) -> Option<i128> {
    match value {
        Variant::Double(seconds) if seconds.is_finite() => Some((seconds * 1e9) as i128),
        Variant::DateTime(time) => Some(time.unix_nanos()),
        _ => None,
    }
}

/// Whether the server sets source timestamps when it samples: then two immediate reads return the same value with
/// different timestamps.
pub(super) fn is_stamped_when_sampled(session: &mut Session, node: &NodeId) -> Result<bool, GeneratorError> {
    let mut read = || -> Result<Option<(Variant, UtcTime)>, GeneratorError> {
        let result = session.read(vec![values::of(node.clone())])?.into_iter().next();
        Ok(result.and_then(|result| result.value.zip(result.source_timestamp)))
    };
    for _ in 0..PAIRS {
        if let (Some(one), Some(other)) = (read()?, read()?)
            && one.0 == other.0
            && one.1 != other.1
        {
            return Ok(true);
        }
        std::thread::sleep(APART);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_contain_their_time_of_writing() {
        let second = 1_000_000_000;
        let at = 1_700_000_000 * second;
        let mut written = Written::default();
        written.arrived(&DataValue::new(Variant::Double(1_699_999_999.5)), at);
        assert_eq!((written.delay.count(), written.delay.max() / 10_000_000), (1, 50));
        assert_eq!(written.stamped.count(), 0);
        let time = UtcTime::from_unix(Duration::from_secs(1_699_999_998));
        let stamped = UtcTime::from_unix(Duration::from_secs(1_699_999_999));
        let value = DataValue { source_timestamp: Some(stamped), ..DataValue::new(Variant::DateTime(time)) };
        written.arrived(&value, at);
        assert_eq!((written.delay.max() / 100_000_000, written.stamped.max() / 100_000_000), (20, 10));
        assert!(written.is_stamped_late());
        written.arrived(&DataValue::new(Variant::String("now".into())), at);
        written.arrived(&DataValue::new(Variant::Double(f64::NAN)), at);
        written.arrived(&DataValue::new(Variant::Double(21.5)), at);
        assert_eq!((written.untold, written.delay.count()), (3, 2));
    }
}
